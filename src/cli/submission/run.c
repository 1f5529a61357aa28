/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"
#include "cli/submission/submission.h"

static int say_end(struct client *client, const json_t *job, const struct invocation *in)
{
	AUTO_BUF out = BUF_INIT;

	job_end_sentence(job, job_whole_reason(client, in->arena, job), &out);
	if (strcmp(get_text(job, "state"), "succeeded") != 0)
		notice("%s", buf_text(&out));
	return follow_exit_status(job, arg_has(in, "wait"));
}

/* What nobody will read: bytes in a pipe, or of a file that stands at its beginning (one in its middle belongs to a loop of the shell). */
static int64_t input_waiting(void)
{
	struct stat st;
	int bytes = 0;

	if (fstat(STDIN_FILENO, &st) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 ? (int64_t)st.st_size : 0;
	if ((S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) &&
	    ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0)
		return bytes;
	return 0;
}

/* Once, when there is something to lose. */
static void remark_input(bool *said)
{
	const int64_t bytes = *said ? 0 : input_waiting();

	if (!bytes)
		return;
	*said = true;
	notice("%lld byte%s on standard input %s not passed to the job, whose own is empty; write them to a file and let the command read that",
	       (long long)bytes, bytes == 1 ? "" : "s", bytes == 1 ? "is" : "are");
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
		return 130;
	}
	rc = say_end(client, job, in);
	json_decref(job);
	return rc;
}

/* How many sentences about those that failed: an array has up to 10,000 jobs. */
enum { ENDS_SAID = 10 };

/* Waits for all of them, without their output. The exit status is that of the first, by number, that did not succeed. */
static int wait_for_all(struct invocation *in, struct client *client, uint32_t first,
			uint32_t count, struct err *err)
{
	uint32_t failed = 0;
	int status = 0;

	for (uint32_t id = first; id < first + count; id++) {
		struct follow_options options = { .job = id, .quiet = true };
		json_t *job = NULL;
		int rc = follow_job(client, in->arena, &options, &job, err), one;

		if (rc == FOLLOW_DETACHED)
			notice("the waiting has ended; what is submitted goes on. `fairlead jobs` shows it");
		if (rc != 0)
			return rc == FOLLOW_DETACHED ? 130 : rc;
		if (failed < ENDS_SAID)
			one = say_end(client, job, in);
		else
			one = follow_exit_status(job, true);
		json_decref(job);
		failed += one != 0;
		status = status ? status : one;
	}
	if (count > 1 && failed)
		notice("%u of the %u jobs did not succeed", failed, count);
	return status;
}

/* `run FILE.yaml` of a file that is no program: its user means submit. */
static int refuse_job_file(const struct invocation *in, struct err *err)
{
	const char *word = in->arg_count == 1 ? in->args[0] : "";
	const char *dot = strrchr(word, '.');

	if (!dot ||
	    (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0 && strcmp(dot, ".json") != 0) ||
	    access(word, F_OK) != 0 || access(word, X_OK) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "\"%s\" is a job file, not a program: `fairlead submit %s` submits it", word,
		       word);
}

static int run_run(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct submission submission;
	struct output output;
	json_t *answer = NULL;
	bool input_said = false;
	uint32_t id;
	int rc;

	if (arg_has(in, "detach") && arg_has(in, "wait"))
		return err_set(err, ERR_INVALID,
			       "--detach and --wait contradict each other; leave one of them out");
	rc = refuse_job_file(in, err);
	if (rc >= 0)
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
	remark_input(&input_said);
	if (arg_has(in, "dry-run")) {
		rc = show_dry_run(&output, answer);
		json_decref(answer);
		return rc;
	}
	id = submitted_job(answer);
	if (arg_has(in, "detach") || get_int(answer, "array_count") > 1 ||
	    output.form != OUTPUT_TABLE) {
		uint32_t count = (uint32_t)get_int(answer, "array_count");

		show_submitted(&output, answer);
		json_decref(answer);
		return arg_has(in, "wait") ? wait_for_all(in, client, id, count ? count : 1, err)
					   : 0;
	}
	interrupt_watch(); /* from here on Ctrl-C detaches */
	say_submitted(answer);
	json_decref(answer);
	rc = follow(in, client, id, err);
	remark_input(&input_said);
	return rc;
}

static const struct flag flags[] = {
	{ "detach", 'd', NULL, "don't follow it: print its number and come back", false },
	{ "wait", 'w', NULL, "pass the job's own exit code on", false },
	{ "dry-run", 0, NULL,
	  "check it and say what would happen; nothing is submitted. Exit status 1 if it can't start on this cluster",
	  false },
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
		"job-file`). Its output is shown until it ends. Ctrl-C detaches and exits with 130: the job goes on. Nothing "
		"can be typed to the job: its standard input is empty.\n\n"
		"The exit status is 0 when the job succeeded and 1 when it did not; with --wait it is the job's own. An array "
		"is not followed: its numbers are printed, and with --wait the command waits for all of it and exits as the first of its jobs, "
		"by number, that did not succeed.",
	.flags = flags,
	.examples =
		"fairlead run -- nvidia-smi\tone GPU, shown until it ends\n"
		"fairlead run -g 8 -t 4 -- python3 train.py\tfour processes with 8 GPUs each\n"
		"fairlead run -d --tier best-effort -- ./embed.sh\tspare GPUs, in the background\n"
		"fairlead run --wait -g 0 -- make test\tno GPU; a script sees make's exit code\n"
		"fairlead run --checkpoint signal --checkpoint-grace 2m -- python3 train.py\tmay be stopped, saves its work first",
	.route = "POST /api/v1/jobs",
	.shares = SHARES_JOB | SHARES_ENVIRONMENT | SHARES_DAEMON | SHARES_OUTPUT,
	.least = 1,
	.most = -1,
	.rest = true,
	.run = run_run,
};
