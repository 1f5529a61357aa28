/* SPDX-License-Identifier: Apache-2.0 */
/* cancel, hold, release: one small change of each job named. */
#include <string.h>

#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/actions.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/selection.h"
#include "cli/output/problem.h"

/* Asks on the terminal; without one nobody can answer. */
static int ask_yes(const struct invocation *in, size_t count, struct err *err)
{
	char answer[16];

	if (arg_has(in, "yes") || count < 2)
		return 0;
	if (isatty(STDIN_FILENO) != 1)
		return err_set(err, ERR_INVALID,
			       "%zu jobs would be cancelled; say --yes where nobody can be asked",
			       count);
	fprintf(stderr, "Cancel %zu jobs? [y/N] ", count);
	fflush(stderr);
	if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
		return err_set(err, ERR_INVALID, "nothing was cancelled");
	return 0;
}

struct change {
	const char *verb; /* "cancel" */
	const char *one, *many; /* "is being cancelled", "are being cancelled" */
	int status; /* of the first that failed */
};

/* A hold stops nothing: when it takes effect depends on what the job does now. */
static bool holds_later(struct client *client, struct arena *arena, const struct change *change,
			uint32_t id)
{
	json_t *job = NULL;
	struct err unseen;
	bool later;

	if (strcmp(change->verb, "hold") != 0 ||
	    client_get(client, client_path(arena, "/api/v1/jobs/%u", id), &job, &unseen) < 0)
		return false;
	later = job_hold_is_late(job);
	json_decref(job);
	return later;
}

static void say_done(struct client *client, struct arena *arena, const struct change *change,
		     const struct named_jobs *named, size_t index, const json_t *answer)
{
	AUTO_BUF out = BUF_INIT;

	named_job_say(named, index, &out);
	if (holds_later(client, arena, change, named->jobs[index])) {
		buf_adds(
			&out,
			" runs on: the hold takes effect when it would start again. To stop it now: fairlead cancel\n");
		output_buf(&out);
		return;
	}
	buf_addf(&out, " %s\n", get_bool(answer, "already") ? "was so already" : change->one);
	output_buf(&out);
}

/* A request for each of a few, so that each is told of. */
static int change_few(struct invocation *in, struct client *client, const struct named_jobs *named,
		      struct change change, const json_t *body)
{
	struct err err;

	for (size_t i = 0; i < named->count; i++) {
		json_t *answer = NULL;

		if (client_send(client, "POST",
				client_path(in->arena, "/api/v1/jobs/%u/%s", named->jobs[i],
					    change.verb),
				body, &answer, &err) < 0) {
			change.status = change.status ? change.status : err_code_exit(err.code);
			problem_show(&err);
			continue;
		}
		say_done(client, in->arena, &change, named, i, answer);
		json_decref(answer);
	}
	return change.status;
}

static json_t *body_make(const struct invocation *in)
{
	json_t *body = json_object();

	if (arg_has(in, "reason"))
		json_object_set_new(body, "reason", json_string(arg_flag(in, "reason")));
	return body;
}

/* Does all, says what failed, and answers the first one's exit status. query: what means them, NULL = these jobs. */
static int change_all(struct invocation *in, struct client *client, const char *query,
		      const struct named_jobs *named, struct change change, struct err *err)
{
	json_t *body = body_make(in);
	int rc;

	if (!query && named->count <= ACTIONS_FEW) {
		rc = change_few(in, client, named, change, body);
	} else {
		json_object_set_new(body, "action", json_string(change.verb));
		rc = actions_do(in, client, query, named, body, change.many, err);
	}
	json_decref(body);
	return rc;
}

/* What `fairlead jobs --active` with the same flags lists. --all: the caller's own, as --me. */
static int selected_jobs(struct invocation *in, struct client *client, struct named_jobs *ret,
			 struct err *err)
{
	json_t *rows = NULL, *row;
	AUTO_BUF path = BUF_INIT;
	size_t index;
	int rc;

	buf_adds(&path, "/api/v1/jobs?ended=0");
	selection_add(in, false, &path);
	rc = fetch_jobs(client, in->arena, path.data, INT32_MAX, &rows, NULL, err);
	if (rc < 0)
		return rc;
	ret->jobs = arena_new_array(in->arena, uint32_t, json_array_size(rows) + 1);
	ret->arrays = arena_new_array(in->arena, uint32_t, json_array_size(rows) + 1);
	json_array_foreach(rows, index, row)
	{
		ret->arrays[index] = (uint32_t)get_int(row, "array_first");
		ret->jobs[index] = (uint32_t)get_int(row, "id");
	}
	ret->count = json_array_size(rows);
	json_decref(rows);
	return 0;
}

static int cancel_check(const struct invocation *in, struct err *err)
{
	const bool selects = arg_has(in, "all") || selection_is_given(in);

	if (in->arg_count && arg_has(in, "all"))
		return err_set(err, ERR_INVALID,
			       "--all cancels all jobs of yours; leave the numbers out");
	if (in->arg_count && selects)
		return err_set(
			err, ERR_INVALID,
			"cancel takes numbers, or flags that say which jobs; leave one of them out");
	if (!in->arg_count && !selects)
		return err_set(
			err, ERR_INVALID,
			"cancel needs ID..., or --me, --state and other flags that say which jobs");
	return selection_check(in, err);
}

/* The query of what the flags mean, as selected_jobs asks for it. */
static const char *selected_query(struct invocation *in)
{
	AUTO_BUF path = BUF_INIT;

	buf_addc(&path, '?');
	selection_add(in, false, &path);
	return arena_strdup(in->arena, buf_text(&path) + 1 + (path.data[1] == '&'));
}

static int run_cancel(struct invocation *in, struct err *err)
{
	struct named_jobs named = { 0 };
	AUTO_CLIENT client = NULL;
	const char *query = NULL;
	int64_t count = 0;
	int rc = cancel_check(in, err);

	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0 && in->arg_count)
		rc = actions_array_query(in, client, &query, err);
	else if (rc >= 0)
		query = selected_query(in);
	if (rc >= 0)
		rc = actions_settle(in, client, &query, json_pack("{s:s}", "action", "cancel"),
				    &count, err);
	if (rc >= 0 && !query)
		rc = in->arg_count ? named_jobs(in, client, &named, err)
				   : selected_jobs(in, client, &named, err);
	if (rc >= 0)
		rc = ask_yes(in, query ? (size_t)count : named.count, err);
	if (rc < 0)
		return rc;
	if (!query && !named.count)
		notice(selection_is_given(in) ? "no such job waits or runs"
					      : "no job of yours waits or runs");
	return change_all(in, client, query, &named,
			  (struct change){ .verb = "cancel",
					   .one = "is being cancelled",
					   .many = "are being cancelled" },
			  err);
}

static int run_simple(struct invocation *in, struct change change, struct err *err)
{
	struct named_jobs named = { 0 };
	AUTO_CLIENT client = NULL;
	const char *query = NULL;
	int64_t count = 0;
	int rc = client_open(in, &client, err);

	if (rc >= 0)
		rc = actions_array_query(in, client, &query, err);
	if (rc >= 0)
		rc = actions_settle(in, client, &query, json_pack("{s:s}", "action", change.verb),
				    &count, err);
	if (rc >= 0 && !query)
		rc = named_jobs(in, client, &named, err);
	return rc < 0 ? rc : change_all(in, client, query, &named, change, err);
}

static int run_hold(struct invocation *in, struct err *err)
{
	return run_simple(
		in, (struct change){ .verb = "hold", .one = "is held", .many = "are held" }, err);
}

static int run_release(struct invocation *in, struct err *err)
{
	return run_simple(
		in, (struct change){ .verb = "release", .one = "may start", .many = "may start" },
		err);
}

static const struct flag cancel_flags[] = {
	{ "all", 0, NULL, "all jobs of yours that wait or run: the same as --me", false },
	{ "yes", 'y', NULL, "don't ask when there are several", false },
	{ "reason", 0, "TEXT", "shown with the job", false },
	{ 0 },
};
static const struct flag reason_flags[] = {
	{ "reason", 0, "TEXT", "shown with the job", false },
	{ 0 },
};

const struct command command_cancel = {
	.name = "cancel",
	.arguments = "[ID...]",
	.summary = "stop jobs for good",
	.about =
		"A job that runs gets SIGTERM, then after its grace SIGKILL. The number of an array means all of its jobs that have not ended. "
		"Without numbers the flags say which: those that `fairlead jobs --active` lists with the same flags. Several at once are asked about on a terminal; scripts say --yes. Of "
		"more than 20 only the sums are printed.",
	.flags = cancel_flags,
	.examples =
		"fairlead cancel 12\n"
		"fairlead cancel 40 --yes\tall of array 40\n"
		"fairlead cancel '40[0-7]' --yes\tjobs of array 40, as `fairlead jobs` shows them\n"
		"fairlead cancel --me --state queued,held,preempted\tall of yours that wait",
	.route = "POST /api/v1/jobs/{id}/cancel",
	.shares = SHARES_SELECTION | SHARES_DAEMON,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_cancel,
};

const struct command command_hold = {
	.name = "hold",
	.arguments = "ID...",
	.summary = "keep waiting jobs from starting",
	.about =
		"A job that runs goes on: the hold takes effect when it would start again, after an eviction or a failure. "
		"The number of an array means all of its jobs that have not ended; one of them is written 40[3].",
	.flags = reason_flags,
	.examples = "fairlead hold 12 --reason \"data not there yet\"\n"
		    "fairlead hold 40\tall of array 40",
	.route = "POST /api/v1/jobs/{id}/hold",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_hold,
};

const struct command command_release = {
	.name = "release",
	.arguments = "ID...",
	.summary = "let jobs start that are held, or pause after losses",
	.about =
		"The number of an array means all of its jobs that have not ended; one of them is written 40[3].",
	.examples = "fairlead release 12\n"
		    "fairlead release '40[0-2,5]'\tfour jobs of array 40",
	.route = "POST /api/v1/jobs/{id}/release",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_release,
};
