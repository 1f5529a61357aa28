/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/prose.h"
#include "cli/submission/foreign.h"
#include "cli/submission/submission.h"

/* A file that is refused may be another scheduler's: what its lines are called here helps more than where it is wrong. */
static int explain_foreign(const struct submission *submission, struct err *err)
{
	const enum foreign_kind kind =
		submission->text ? foreign_recognise(submission->text) : FOREIGN_NONE;
	AUTO_BUF out = BUF_INIT;

	if (kind == FOREIGN_NONE)
		return -(int)err->code;
	foreign_explain(kind, submission->text, &out);
	prose_wrap(&out, terminal_width(STDERR_FILENO), 42);
	err_set(err, ERR_INVALID,
		"%.200s is %s, not a job file; nothing was submitted. `fairlead help job-file` describes one%s",
		submission->file, foreign_name(kind),
		kind == FOREIGN_SCRIPT ? ", and `fairlead run -- sh FILE` runs the script as it is"
				       : "");
	if (out.size)
		fputs("What its lines are called in a job file:\n\n", stderr);
	fputs(buf_text(&out), stderr);
	fputs(out.size ? "\n" : "", stderr);
	return -(int)err->code;
}

static int run_submit(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct submission submission = { 0 };
	struct output output;
	json_t *answer = NULL;
	int rc = submission_read(in, in->args[0], &submission, err);

	if (rc >= 0)
		rc = submission_check(in, &submission, err);
	if (rc < 0)
		return explain_foreign(&submission, err);
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = submission_send(in, client, &submission, arg_has(in, "dry-run"), &answer, err);
	if (rc < 0)
		return rc;
	output_init(&output, in);
	if (arg_has(in, "quiet"))
		output.form = OUTPUT_NAME;
	if (arg_has(in, "dry-run"))
		rc = show_dry_run(&output, answer);
	else
		show_submitted(&output, answer);
	json_decref(answer);
	return rc;
}

static const struct flag flags[] = {
	{ "dry-run", 0, NULL,
	  "check it and say what would happen; nothing is submitted. Exit status 1 if it can't start on this cluster",
	  false },
	{ "quiet", 0, NULL, "print only the job's number", false },
	{ "key", 0, "TEXT",
	  "the same key within 7 days gives the same job, so that a script can try again", false },
	{ 0 },
};

const struct command command_submit = {
	.name = "submit",
	.arguments = "FILE|-",
	.summary = "submit a job file",
	.about =
		"The file is YAML or JSON; `fairlead help job-file` lists its fields. \"-\" reads standard input. Without workdir the job "
		"runs in the current folder. An sbatch script, and a file of SkyPilot, dstack or Kubernetes, is refused with what each of its "
		"lines is called in a job file.",
	.flags = flags,
	.examples =
		"fairlead submit train.yaml\n"
		"fairlead submit --dry-run train.yaml\twould it start now, where, or what does it wait for\n"
		"id=$(fairlead submit --quiet train.yaml)\tthe number, for scripts",
	.route = "POST /api/v1/jobs",
	.shares = SHARES_ENVIRONMENT | SHARES_DAEMON | SHARES_OUTPUT,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_FILE,
	.run = run_submit,
};
