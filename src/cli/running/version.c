/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/output/output.h"

static int run_version(struct invocation *in, struct err *err)
{
	struct output output;
	json_t *answer = json_pack("{s:s}", "version", FAIRLEAD_VERSION);

	(void)err;
	output_init(&output, in);
	if (!output_value(&output, answer, "version"))
		output_write("fairlead " FAIRLEAD_VERSION "\n",
			     sizeof("fairlead " FAIRLEAD_VERSION "\n") - 1);
	json_decref(answer);
	return 0;
}

const struct command command_version = {
	.name = "version",
	.arguments = "",
	.summary = "say which version this is",
	.shares = SHARES_OUTPUT,
	.run = run_version,
};
