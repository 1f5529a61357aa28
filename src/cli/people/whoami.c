/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	json_t *caller = NULL;
	int rc = client_get(client, "/api/v1/whoami", &caller, err);

	(void)in;
	if (rc < 0)
		return rc;
	if (!output_value(output, caller, "user")) {
		say_text(&out, get_text(caller, "user"));
		buf_addf(&out, ", role %s", get_text(caller, "role"));
		if (get_text(caller, "team")[0]) {
			buf_adds(&out, ", team ");
			say_text(&out, get_text(caller, "team"));
		}
		buf_addf(&out, " (by %s, at %s)\n", get_text(caller, "by"), client_where(client));
		output_buf(&out);
	}
	json_decref(caller);
	return 0;
}

static int run_whoami(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

const struct command command_whoami = {
	.name = "whoami",
	.arguments = "",
	.summary = "say who you are to the daemon",
	.route = "GET /api/v1/whoami",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_whoami,
};
