/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/output/output.h"
#include "cli/simulation/recorded_journal.h"
#include "sim/replay/whatif.h"

enum { CHANGES_MAX = 64 };

static int changes_read(struct invocation *in, struct whatif_changes *ret, struct err *err)
{
	const char **nodes = arena_new_array(in->arena, const char *, CHANGES_MAX);
	const char **slices = arena_new_array(in->arena, const char *, CHANGES_MAX);
	const char *text;

	*ret = (struct whatif_changes){ .nodes = nodes,
					.slices = slices,
					.availability = arg_flag(in, "availability"),
					.policy = arg_flag(in, "policy") };
	if (arg_number(in, "spot", 0, 100, -1, &ret->spot, err) < 0)
		return -1;
	while ((text = arg_flag_at(in, "nodes", ret->node_count))) {
		if (ret->node_count == CHANGES_MAX)
			return err_set(err, ERR_INVALID, "more than %d times --nodes", CHANGES_MAX);
		nodes[ret->node_count++] = text;
	}
	while ((text = arg_flag_at(in, "slices", ret->slice_count))) {
		if (ret->slice_count == CHANGES_MAX)
			return err_set(err, ERR_INVALID, "more than %d times --slices",
				       CHANGES_MAX);
		slices[ret->slice_count++] = text;
	}
	if (!ret->node_count && !ret->policy && ret->spot < 0 && !ret->availability &&
	    !ret->slice_count)
		return err_set(
			err, ERR_INVALID,
			"what if what? Say --nodes, --policy, --slices, --spot or --availability");
	return 0;
}

static void tell(struct invocation *in, const struct whatif *whatif)
{
	struct output output;
	AUTO_BUF json = BUF_INIT;

	output_init(&output, in);
	if (output.form != OUTPUT_JSON) {
		whatif_tell(whatif, stdout);
		return;
	}
	replay_json(&json, "journal", whatif->results, WHATIF_COLUMNS);
	output_buf(&json);
}

static int run_what_if(struct invocation *in, struct err *err)
{
	struct whatif_changes changes;
	struct recorded recorded;
	struct whatif whatif;
	int rc = changes_read(in, &changes, err);

	if (rc == 0)
		rc = client_may_read_folder(in, err);
	if (rc < 0)
		return rc;
	rc = recorded_journal_read(client_data_folder(in), &recorded, err);
	if (rc == 0) {
		rc = whatif_run(&recorded, &changes, &whatif, err);
		if (rc == 0)
			tell(in, &whatif);
		whatif_deinit(&whatif);
	}
	recorded_deinit(&recorded);
	return rc;
}

static const struct flag flags[] = {
	{ "nodes", 0, "CHANGE",
	  "+4xMODEL: four more nodes like those with that model of GPU; -2xMODEL: two fewer",
	  true },
	{ "spot", 0, "PERCENT",
	  "so much of the nodes of each model, the last ones, are spot nodes, and the others are not",
	  false },
	{ "slices", 0, "MODEL",
	  "GPUs of that model are cut into slices (MIG) as the queue asks for them, and jobs that asked for a part of a GPU take slices",
	  true },
	{ "availability", 0, "FILE", "when nodes are there: docs/workload-format.md", false },
	{ "policy", 0, "FILE",
	  "queues and policy in place of those of the cluster: docs/workload-format.md", false },
	{ "output", 'o', "table|json", "form of what is printed; default table", false },
	{ 0 },
};

const struct command command_plan_what_if = {
	.name = "plan what-if",
	.arguments = "",
	.summary =
		"play the cluster's own history with other nodes, slices, spot nodes or another policy",
	.about =
		"The jobs of the journal run again in virtual time, on the code that schedules real ones: once on the nodes, queues and policy of "
		"today, once with the changes, beside what really happened. The data folder is only read. What is taken as simple is said.",
	.flags = flags,
	.examples = "fairlead plan what-if --nodes +4xH100-80GB\n"
		    "fairlead plan what-if --nodes -2xA100-80GB --policy lend-everything.yaml\n"
		    "fairlead plan what-if --slices A100-80GB\n"
		    "fairlead plan what-if --spot 50 --availability east.csv",
	.shares = SHARES_DAEMON,
	.run = run_what_if,
};
