/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/actions.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"

static int prioritize_many(struct invocation *in, struct client *client, const char *query,
			   const struct named_jobs *named, int64_t priority, struct err *err)
{
	json_t *action =
		json_pack("{s:s,s:I}", "action", "priority", "priority", (json_int_t)priority);
	int rc =
		actions_do(in, client, query, named, action,
			   arena_printf(in->arena, "have priority %lld", (long long)priority), err);

	json_decref(action);
	return rc;
}

static int run_priority(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	const char *done, *query = NULL;
	json_t *body;
	int64_t priority, count = 0;
	struct named_jobs named = { 0 };
	int rc = arg_number(in, "to", -1000, 1000, INT64_MIN, &priority, err);

	if (rc >= 0 && !arg_has(in, "to"))
		rc = err_set(err, ERR_INVALID, "priority needs --to N, from -1000 to 1000");
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = actions_array_query(in, client, &query, err);
	if (rc >= 0)
		rc = actions_settle(in, client, &query,
				    json_pack("{s:s,s:I}", "action", "priority", "priority",
					      (json_int_t)priority),
				    &count, err);
	if (rc >= 0 && !query)
		rc = named_jobs(in, client, &named, err);
	if (rc >= 0 && (query || named.count > ACTIONS_FEW))
		return prioritize_many(in, client, query, &named, priority, err);
	done = arena_printf(in->arena, "has priority %lld", (long long)priority);
	body = json_pack("{s:I}", "priority", (json_int_t)priority);
	for (size_t i = 0; i < named.count && rc >= 0; i++) {
		AUTO_BUF what = BUF_INIT;

		named_job_say(&named, i, &what);
		rc = change_noun(client, "POST",
				 client_path(in->arena, "/api/v1/jobs/%u/priority", named.jobs[i]),
				 body, done, buf_text(&what), err);
	}
	json_decref(body);
	return rc;
}

static const struct flag flags[] = {
	{ "to", 0, "N",
	  "the new one, -1000 to 1000; the higher one goes first inside its queue and tier",
	  false },
	{ 0 },
};

const struct command command_priority = {
	.name = "priority",
	.arguments = "ID...",
	.summary = "change the order of waiting jobs inside their queue",
	.about =
		"The number of an array means all of its jobs that have not ended; one of them is written 40[3].",
	.flags = flags,
	.examples = "fairlead priority 12 --to 10\n"
		    "fairlead priority 40 --to 10\tall of array 40",
	.route = "POST /api/v1/jobs/{id}/priority",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_priority,
};
