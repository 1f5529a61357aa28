/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/written.h"

#include <errno.h>
#include <stdbool.h>

int written(const char *path, int (*put)(const void *context, FILE *out, struct err *err),
	    const void *context, struct err *err)
{
	FILE *out = path ? fopen(path, "we") : stdout;
	bool good;
	int rc;

	if (!out)
		return err_errno(err, ERR_IO, errno, "can't write %s", path);
	rc = put(context, out, err);
	good = fflush(out) == 0 && !ferror(out);
	if (path)
		good = fclose(out) == 0 && good;
	if (rc == 0 && !good)
		rc = err_errno(err, ERR_IO, errno, "can't write %s",
			       path ? path : "to standard output");
	if (rc < 0 && path)
		remove(path);
	return rc;
}
