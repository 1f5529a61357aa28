/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/availability.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/replay/rows.h"
#include "sim/replay/workload.h"

static int change_read(struct rows *in, struct availability *a)
{
	struct availability_change *c = &a->changes[a->count];
	const char *at = rows_field(in, "at_s"), *there = rows_field(in, "there");

	*c = (struct availability_change){ .node = rows_field(in, "node"), .line = in->line };
	if (!rows_thousandths(at, WORKLOAD_TIME_MAX_MS, &c->at_ms))
		return rows_complain(in, "at_s is \"%.40s\": wanted are seconds", at);
	if (a->count && c->at_ms < a->changes[a->count - 1].at_ms)
		return rows_complain(in, "at_s is %.40s, before that of the line before", at);
	if (strcmp(there, "0") != 0 && strcmp(there, "1") != 0)
		return rows_complain(in, "there is \"%.40s\": wanted is 1, or 0 when the node goes",
				     there);
	c->there = *there == '1';
	if (!*c->node)
		return rows_complain(in, "the node has no name");
	a->count++;
	return 0;
}

int availability_parse(const char *path, char *text, struct availability *ret, struct err *err)
{
	static const char *const needed[] = { "at_s", "node", "there" };
	struct rows in;
	uint32_t room = 0;
	char *first;
	int rc;

	*ret = (struct availability){ .path = path };
	rows_init(&in, path, text, err);
	first = rows_line(&in);
	if (!first || strcmp(first, "#fairlead-availability 1") != 0)
		return rows_complain(&in, "the first line must be \"#fairlead-availability 1\"");
	rc = rows_head(&in, needed, 3);
	if (rc == 0 && in.count > 3)
		rc = rows_complain(&in, "there are more columns than at_s, node and there");
	while (rc >= 0 && (rc = rows_next(&in)) == 1) {
		if (ret->count == AVAILABILITY_MAX)
			return rows_complain(&in, "there are more than %d changes",
					     AVAILABILITY_MAX);
		if (ret->count == room) {
			room = room ? room * 2 : 1024;
			ret->changes = reallocarray(ret->changes, room, sizeof *ret->changes);
			CHECK(ret->changes);
		}
		rc = change_read(&in, ret);
	}
	return rc;
}

int availability_read(const char *path, struct availability *ret, struct err *err)
{
	int rc;

	*ret = (struct availability){ 0 };
	rc = rows_text(path, &ret->text, err);
	if (rc == 0)
		rc = availability_parse(path, ret->text, ret, err);
	if (rc < 0)
		availability_deinit(ret);
	return rc;
}

int availability_no_node(const struct availability *a, uint32_t change, struct err *err)
{
	return err_at(err, ERR_INVALID, a->path, (int)a->changes[change].line, 1,
		      "the cluster has no node \"%.60s\"", a->changes[change].node);
}

void availability_deinit(struct availability *a)
{
	free(a->changes);
	free(a->text);
	*a = (struct availability){ 0 };
}
