/* SPDX-License-Identifier: Apache-2.0 */
/* cancel, hold, release: one small change of each job named. */
#include <string.h>

#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/jobs.h"
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

/* A line for each job while they can be read at a glance; of more only the sums. */
enum { LINES_MAX = 20 };

struct change {
	const char *verb; /* "cancel" */
	const char *one, *many; /* "is being cancelled", "are being cancelled" */
	size_t count, done, already, failed;
	int status; /* of the first that failed */
};

static void say_done(struct change *change, uint32_t job, const json_t *answer)
{
	AUTO_BUF out = BUF_INIT;
	bool already = get_bool(answer, "already");

	*(already ? &change->already : &change->done) += 1;
	if (change->count > LINES_MAX)
		return;
	buf_addf(&out, "job %u %s\n", job, already ? "was so already" : change->one);
	output_buf(&out);
}

static void say_failed(struct change *change, const struct err *err)
{
	if (!change->status)
		change->status = err_code_exit(err->code);
	if (change->failed++ < LINES_MAX)
		problem_show(err);
}

static void say_sums(const struct change *change)
{
	AUTO_BUF out = BUF_INIT;

	if (change->count <= LINES_MAX)
		return;
	buf_addf(&out, "%zu jobs %s", change->done, change->many);
	if (change->already)
		buf_addf(&out, ", %zu were so already", change->already);
	if (change->failed)
		buf_addf(&out, ", %zu can't be", change->failed);
	buf_addc(&out, '\n');
	output_buf(&out);
}

/* Does all, says what failed, and answers the first one's exit status. */
static int change_all(struct invocation *in, struct client *client, const struct named_jobs *named,
		      struct change change)
{
	json_t *body = json_object(), *answer;
	struct err err;

	change.count = named->count;
	if (arg_has(in, "reason"))
		json_object_set_new(body, "reason", json_string(arg_flag(in, "reason")));
	for (size_t i = 0; i < named->count; i++) {
		answer = NULL;
		if (client_send(client, "POST",
				client_path(in->arena, "/api/v1/jobs/%u/%s", named->jobs[i],
					    change.verb),
				body, &answer, &err) < 0) {
			say_failed(&change, &err);
			continue;
		}
		say_done(&change, named->jobs[i], answer);
		json_decref(answer);
	}
	say_sums(&change);
	json_decref(body);
	return change.status;
}

/*
 * The caller's own jobs that are not over. An administrator's --all too: others' jobs are named one
 * by one.
 */
static int own_jobs(struct invocation *in, struct client *client, uint32_t **ret, size_t *ret_count,
		    struct err *err)
{
	json_t *caller = NULL, *rows = NULL, *row;
	AUTO_BUF path = BUF_INIT;
	size_t index;
	int rc = client_get(client, "/api/v1/whoami", &caller, err);

	if (rc < 0)
		return rc;
	buf_adds(&path, "/api/v1/jobs");
	query_add(&path, "user", get_text(caller, "user"));
	json_decref(caller);
	rc = fetch_jobs(client, in->arena, path.data, INT32_MAX, &rows, err);
	if (rc < 0)
		return rc;
	*ret = arena_new_array(in->arena, uint32_t, json_array_size(rows) + 1);
	*ret_count = 0;
	json_array_foreach(rows, index, row) if (!state_is_final(get_text(row, "state")))(
		*ret)[(*ret_count)++] = (uint32_t)get_int(row, "id");
	json_decref(rows);
	return 0;
}

static int run_cancel(struct invocation *in, struct err *err)
{
	struct named_jobs named = { 0 };
	AUTO_CLIENT client = NULL;
	int rc;

	if (arg_has(in, "all") == (in->arg_count > 0))
		return err_set(err, ERR_INVALID,
			       in->arg_count
				       ? "--all cancels all jobs of yours; leave the numbers out"
				       : "cancel needs ID..., or --all");
	rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = in->arg_count ? named_jobs(in, client, &named, err)
				   : own_jobs(in, client, &named.jobs, &named.count, err);
	if (rc >= 0)
		rc = ask_yes(in, named.count, err);
	if (rc < 0)
		return rc;
	if (!named.count)
		notice("no job of yours waits or runs");
	return change_all(in, client, &named,
			  (struct change){ .verb = "cancel",
					   .one = "is being cancelled",
					   .many = "are being cancelled" });
}

static int run_simple(struct invocation *in, struct change change, struct err *err)
{
	struct named_jobs named = { 0 };
	AUTO_CLIENT client = NULL;
	int rc = client_open(in, &client, err);

	if (rc >= 0)
		rc = named_jobs(in, client, &named, err);
	return rc < 0 ? rc : change_all(in, client, &named, change);
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
	{ "all", 0, NULL, "all jobs of yours that wait or run", false },
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
	.arguments = "ID...",
	.summary = "stop jobs for good",
	.about =
		"A job that runs gets SIGTERM, then after its grace SIGKILL. Several at once are asked about on a terminal; scripts say --yes. Of "
		"more than 20 only the sums are printed.",
	.flags = cancel_flags,
	.examples =
		"fairlead cancel 12\n"
		"fairlead cancel '40_[0-7]' --yes\tjobs of array 40, as `fairlead jobs` shows them\n"
		"fairlead cancel --all --yes\tall of yours",
	.route = "POST /api/v1/jobs/{id}/cancel",
	.shares = SHARES_DAEMON,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_cancel,
};

const struct command command_hold = {
	.name = "hold",
	.arguments = "ID...",
	.summary = "keep waiting jobs from starting",
	.flags = reason_flags,
	.examples = "fairlead hold 12 --reason \"data not there yet\"",
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
	.examples = "fairlead release 12",
	.route = "POST /api/v1/jobs/{id}/release",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_release,
};
