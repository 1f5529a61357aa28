/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/jobs.h"

static int show(struct invocation *in, struct client *client, const struct output *output, struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	json_t *policy = NULL;
	int rc = client_get(client, "/api/v1/policy", &policy, err);

	(void)in;
	if (rc < 0)
		return rc;
	if (!output_value(output, policy, "name")) {
		output_yaml(policy, &out);
		output_buf(&out);
	}
	json_decref(policy);
	return 0;
}

static int run_policy(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

const struct command command_policy = {
	.name = "policy",
	.arguments = "",
	.summary = "show the scheduling policy's values",
	.route = "GET /api/v1/policy",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_policy,
};
