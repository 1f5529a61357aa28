/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/jobs.h"
#include "cli/problem.h"
#include "cli/submission.h"

static int say_end(struct client *client, const json_t *job, const struct invocation *in)
{
	AUTO_BUF out = BUF_INIT;

	job_end_sentence(job, job_whole_reason(client, in->arena, job), &out);
	if (strcmp(get_text(job, "state"), "succeeded") != 0)
		notice("%s", buf_text(&out));
	return follow_exit_status(job, arg_has(in, "wait"));
}

static int follow(struct invocation *in, struct client *client, uint32_t id, struct err *err)
{
	struct follow_options options = { .job = id };
	json_t *job = NULL;
	int rc = follow_job(client, in->arena, &options, &job, err);

	if (rc < 0)
		return rc;
	if (rc == FOLLOW_DETACHED) {
		notice("detached; job %u goes on. `fairlead logs -f %u` shows its output again, `fairlead cancel %u` stops it",
		       id, id, id);
		return arg_has(in, "wait") ? 130 : 0;
	}
	rc = say_end(client, job, in);
	json_decref(job);
	return rc;
}

static int run_run(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct submission submission;
	struct output output;
	json_t *answer = NULL;
	uint32_t id;
	int rc;

	if (arg_has(in, "detach") && arg_has(in, "wait"))
		return err_set(err, ERR_INVALID,
			       "--detach and --wait contradict each other; leave one of them out");
	rc = submission_from_flags(in, &submission, err);
	if (rc >= 0)
		rc = submission_check(in, &submission, err);
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = submission_send(in, client, &submission, arg_has(in, "dry-run"), &answer, err);
	if (rc < 0)
		return rc;
	output_init(&output, in);
	if (arg_has(in, "dry-run")) {
		rc = show_dry_run(&output, answer);
		json_decref(answer);
		return rc;
	}
	id = submitted_job(answer);
	if (arg_has(in, "detach") || get_int(answer, "array_count") > 1 ||
	    output.form != OUTPUT_TABLE) {
		show_submitted(&output, answer);
		json_decref(answer);
		return 0;
	}
	say_submitted(answer);
	json_decref(answer);
	return follow(in, client, id, err);
}

static const struct flag flags[] = {
	{ "detach", 'd', NULL, "don't follow it: print its number and come back", false },
	{ "wait", 'w', NULL, "pass the job's own exit code on", false },
	{ "dry-run", 0, NULL, "check it and say what would happen; nothing is submitted", false },
	{ "key", 0, "TEXT",
	  "the same key within 7 days gives the same job, so that a script can try again", false },
	{ 0 },
};

const struct command command_run = {
	.name = "run",
	.arguments = "[--] COMMAND...",
	.summary = "submit a command and follow its output",
	.about =
		"The command runs on the GPUs that Fairlead gives it, in the current folder, with the flags' fields (see `fairlead help "
		"job-file`). Its output is shown until it ends. Ctrl-C detaches: the job goes on.\n\n"
		"The exit status is 0 when the job succeeded and 1 when it did not; with --wait it is the job's own.",
	.flags = flags,
	.examples =
		"fairlead run -- nvidia-smi\tone GPU, shown until it ends\n"
		"fairlead run -g 8 -t 4 -- python3 train.py\tfour processes with 8 GPUs each\n"
		"fairlead run -d --tier best-effort -- ./embed.sh\tspare GPUs, in the background\n"
		"fairlead run --wait -g 0 -- make test\tno GPU; a script sees make's exit code\n"
		"fairlead run --checkpoint signal --checkpoint-grace 2m -- python3 train.py\tmay be stopped, saves its work first",
	.route = "POST /api/v1/jobs",
	.shares = SHARES_JOB | SHARES_DAEMON | SHARES_OUTPUT,
	.least = 1,
	.most = -1,
	.rest = true,
	.run = run_run,
};
