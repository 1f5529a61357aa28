/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/submission/submission.h"

static int run_submit(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct submission submission;
	struct output output;
	json_t *answer = NULL;
	int rc = submission_read(in, in->args[0], &submission, err);

	if (rc >= 0)
		rc = submission_check(in, &submission, err);
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
	{ "dry-run", 0, NULL, "check it and say what would happen; nothing is submitted", false },
	{ "quiet", 'q', NULL, "print only the job's number", false },
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
		"runs in the current folder.",
	.flags = flags,
	.examples =
		"fairlead submit train.yaml\n"
		"fairlead submit --dry-run train.yaml\twould it start now, where, or what does it wait for\n"
		"id=$(fairlead submit -q train.yaml)\tthe number, for scripts",
	.route = "POST /api/v1/jobs",
	.shares = SHARES_DAEMON | SHARES_OUTPUT,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_FILE,
	.run = run_submit,
};
