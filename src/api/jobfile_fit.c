/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes about the place in a job file that go beyond what a node must have: tasks apart from one another. */
#include "api/jobfile_reading.h"
#include "base/check.h"
#include "base/parse.h"

int read_spread(struct reading *r, const struct conf *c, const char *what)
{
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &r->job->spread);

	if (rc < 0)
		return rc;
	if (parse_name(r->job->spread, what, &why) < 0)
		return conf_error(r->err, r->file, c, "%s", why.text);
	return 0;
}
