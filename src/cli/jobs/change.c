/* SPDX-License-Identifier: Apache-2.0 */
/* change: what jobs ask for from now on. */
#include <string.h>

#include "api/jobfile/jobfile.h"
#include "base/parse.h"
#include "cli/jobs/array.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"
#include "cli/submission/submission.h"
#include "cli/table/commands.h"

struct changing {
	struct invocation *in;
	struct client *client;
	struct output output;
	struct buf body; /* the document */
	bool dry_run;
	int status; /* of the first that failed */
};

static void delay_say(const json_t *delay, struct buf *out)
{
	const int64_t later_ms = get_int(delay, "later_ms");
	char duration[DURATION_TEXT_MAX];

	buf_addf(out, "  job %lld \"", (long long)get_int(delay, "id"));
	say_text(out, get_text(delay, "name"));
	buf_adds(out, "\" of ");
	say_text(out, get_text(delay, "user"));
	if (later_ms < 0)
		buf_adds(out, ": not in the time that was worked out\n");
	else
		buf_addf(out, ": %s later\n", format_duration_short(later_ms, duration));
}

/* Who is delayed, and when the job would start. */
static void dry_run_say(const char *what, const json_t *answer, struct buf *out)
{
	const json_t *delays = json_object_get(answer, "delays"), *delay;
	const int64_t delayed = get_int(answer, "delayed");
	size_t index;

	if (!get_text(answer, "changes")[0]) {
		buf_addf(out, "%s: all of that is so already\n", what);
		return;
	}
	buf_addf(out, "%s would change: ", what);
	for (const char *at = get_text(answer, "changes"); *at; at++)
		buf_addf(out, "%c%s", *at, *at == ',' ? " " : "");
	buf_addc(out, '\n');
	say_estimate(answer, out);
	if (!delayed)
		buf_adds(out,
			 get_bool(answer, "cut")
				 ? "No job that starts in the time worked out would start later.\n"
				 : "No job would start later.\n");
	else
		buf_addf(out, "%lld job%s would start later:\n", (long long)delayed,
			 delayed == 1 ? "" : "s");
	json_array_foreach(delays, index, delay) delay_say(delay, out);
	if (delayed > (int64_t)json_array_size(delays))
		buf_addf(out, "  and %lld more\n",
			 (long long)(delayed - (int64_t)json_array_size(delays)));
}

static void changed_say(const char *what, const json_t *answer, struct buf *out)
{
	const int64_t matched = get_int(answer, "matched"), failed = get_int(answer, "failed");

	if (matched == 1) {
		buf_addf(out, "%s %s\n", what,
			 get_int(answer, "already") ? "was so already" : "is changed");
		return;
	}
	buf_addf(out, "%s: %lld jobs are changed", what, (long long)get_int(answer, "done"));
	if (get_int(answer, "already"))
		buf_addf(out, ", %lld were so already", (long long)get_int(answer, "already"));
	if (failed)
		buf_addf(out, ", %lld stay as they are", (long long)failed);
	buf_addc(out, '\n');
}

static void answer_show(struct changing *c, const char *what, const json_t *answer)
{
	AUTO_BUF out = BUF_INIT;

	if (output_value(&c->output, answer, what))
		return;
	if (c->dry_run)
		dry_run_say(what, answer, &out);
	else
		changed_say(what, answer, &out);
	output_buf(&out);
	if (get_int(answer, "failed"))
		notice("%s: %s", what, get_text(answer, "problem"));
}

static void change_one(struct changing *c, const char *path, const char *what)
{
	struct call call = { .method = "PATCH",
			     .path = path,
			     .content_type = "application/yaml",
			     .body = c->body.data,
			     .body_size = c->body.size };
	json_t *answer = NULL;
	struct err err;

	if (client_call(c->client, &call, &answer, &err) < 0) {
		err.line = err.column = 0; /* places in what was sent mean nothing to the reader */
		err.file[0] = '\0';
		if (!c->status)
			c->status = err_code_exit(err.code);
		problem_show(&err);
		return;
	}
	answer_show(c, what, answer);
	json_decref(answer);
}

static const char *path_of(const struct changing *c, uint32_t job, bool array)
{
	return arena_printf(c->in->arena, "/api/v1/jobs/%u%s%s%s", job,
			    array || c->dry_run ? "?" : "", array ? "array=1&" : "",
			    c->dry_run ? "dry_run=1" : "");
}

/* 12: one job, or all of array 12 that have not ended. */
static int change_whole(struct changing *c, const char *word, struct err *err)
{
	json_t *job = NULL;
	struct err unknown;
	bool array;
	uint32_t id;
	int rc = arg_job(word, &id, err);

	if (rc < 0)
		return rc;
	array = client_get(c->client, client_path(c->in->arena, "/api/v1/jobs/%u", id), &job,
			   &unknown) >= 0 &&
		job_is_array(job);
	json_decref(job);
	change_one(c, path_of(c, id, array),
		   arena_printf(c->in->arena, "%s %u", array ? "array" : "job", id));
	return 0;
}

static int change_members(struct changing *c, const char *word, struct err *err)
{
	struct named_jobs named = { 0 };
	int rc = named_jobs_of(c->in, c->client, word, &named, err);

	for (size_t i = 0; rc >= 0 && i < named.count; i++) {
		AUTO_BUF what = BUF_INIT;

		named_job_say(&named, i, &what);
		change_one(c, path_of(c, named.jobs[i], false), buf_text(&what));
	}
	return rc;
}

static int run_change(struct invocation *in, struct err *err)
{
	struct changing c = { .in = in, .dry_run = arg_has(in, "dry-run") };
	AUTO_CLIENT client = NULL;
	struct submission submission;
	int rc = submission_changes(in, &submission, err);

	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc < 0)
		return rc;
	c.client = client;
	output_init(&c.output, in);
	jobfile_write(submission.document, &c.body);
	for (int i = 0; i < in->arg_count && rc >= 0; i++)
		rc = array_numbers_find(in->args[i]) ? change_members(&c, in->args[i], err)
						     : change_whole(&c, in->args[i], err);
	buf_deinit(&c.body);
	return rc < 0 ? rc : c.status;
}

static const struct flag flags[] = {
	{ "dry-run", 0, NULL,
	  "change nothing, and say when the job would start then and which jobs would start later",
	  false },
	{ "unset", 0, "FIELD",
	  "back to the default: deadline, gpus.model and other fields of the job file", true },
	{ "array-limit", 0, "N", "number of jobs of the array that may run at once", false },
	{ 0 },
};

const struct command command_change = {
	.name = "change",
	.arguments = "ID...",
	.summary = "change what jobs ask for",
	.about =
		"A job that waits keeps its number and its place in the order, and is decided on as if it had been submitted so. A job that has "
		"started changes its name, limit and deadline; a limit beyond that of its queue needs a lead of the queue or an admin. What is not "
		"named stays. The number of an array means all of its jobs that have not ended; one of them is written 40[3]. What a job runs is not "
		"changed: cancel it and submit it again.",
	.flags = flags,
	.examples =
		"fairlead change 12 --limit 6h\n"
		"fairlead change 12 --gpus 2 --model A100-80GB --dry-run\twhen it would start then, and whom it would delay\n"
		"fairlead change 12 --unset deadline\n"
		"fairlead change 40 --array-limit 8\tof array 40 eight jobs at once",
	.route = "PATCH /api/v1/jobs/{id}",
	.shares = SHARES_CHANGES | SHARES_DAEMON | SHARES_OUTPUT,
	.least = 1,
	.most = -1,
	.argument = ARGUMENT_JOB,
	.run = run_change,
};
