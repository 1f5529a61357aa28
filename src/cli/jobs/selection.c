/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/selection.h"

#include "base/check.h"
#include "cli/client.h"

const struct flag selection_flags[] = {
	{ "me", 0, NULL, "your own; the default without --user, --team and --queue", false },
	{ "state", 's', "STATES", "only in these states, separated by commas: queued,running",
	  false },
	{ "user", 'u', "NAME", "only this user's", false },
	{ "team", 0, "NAME", "only this team's", false },
	{ "queue", 'q', "NAME", "only of this queue", false },
	{ "name", 'n', "NAME", "only with this name", false },
	{ 0 },
};

bool selection_is_given(const struct invocation *in)
{
	for (const struct flag *flag = selection_flags; flag->name; flag++)
		if (arg_has(in, flag->name))
			return true;
	return false;
}

int selection_check(const struct invocation *in, struct err *err)
{
	if (arg_has(in, "me") && arg_has(in, "user"))
		return err_set(err, ERR_INVALID,
			       "--me and --user contradict each other; leave one of them out");
	return 0;
}

void selection_add(const struct invocation *in, bool everybody, struct buf *path)
{
	static const char *const fields[] = { "state", "user", "team", "queue", "name" };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (arg_has(in, fields[i]))
			query_add(path, fields[i], arg_flag(in, fields[i]));
	everybody = everybody || arg_has(in, "user") || arg_has(in, "team") || arg_has(in, "queue");
	if (arg_has(in, "me") || !everybody)
		query_add(path, "mine", "1");
}
