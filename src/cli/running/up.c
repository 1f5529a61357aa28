/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/running/serving.h"
#include "daemon/daemon.h"

static int run_up(struct invocation *in, struct err *err)
{
	const struct daemon_options options = {
		.cluster = arg_flag(in, "cluster"),
		.data = client_data_folder(in),
		.listen = arg_flag(in, "listen"),
		.nodes = arg_flag(in, "nodes"),
		.store = arg_flag(in, "store"),
		.accept_loss = arg_has(in, "accept-loss"),
		.background = arg_has(in, "detach"),
	};

	if (options.nodes && options.cluster)
		return err_set(
			err, ERR_INVALID,
			"--nodes and --cluster both say which nodes there are: give one of them");
	return daemon_run(&options, err);
}

static const struct flag flags[] = {
	{ "nodes", 0, "SPEC",
	  "simulated nodes instead of this machine's GPUs: sim:4x8xH100-80GB is four with eight each; behind a model, with a slash each: numa=2, islands=2 (NVLink), rack=4 (nodes in a rack)",
	  false },
	{ "cluster", 0, "FILE",
	  "the simulated nodes of a cluster file, with its levels, labels, slices and fabric; looked at again at each start",
	  false },
	SERVING_FLAGS,
	{ 0 },
};

const struct command command_up = {
	.name = "up",
	.arguments = "",
	.summary = "start the daemon",
	.about =
		"The daemon keeps everything in its data folder and takes up what runs there when it starts again: stopping or killing it "
		"neither stops nor changes running jobs. On this machine commands reach it through a socket in the folder, and the system "
		"says who is calling; whoever starts it first is its administrator. `fairlead down` stops it.\n\n"
		"Without --nodes it uses the GPUs of this machine. With simulated nodes the processes of jobs are real, the GPUs are not, "
		"and every screen says so.",
	.flags = flags,
	.examples =
		"fairlead up -d\tthis machine's GPUs, in the background\n"
		"fairlead up --data /tmp/try --nodes sim:2x4xH100-80GB\ta playground\n"
		"fairlead up -d --cluster site.yaml\tthe cluster that `fairlead sim replay` plays on\n"
		"fairlead up -d --listen 127.0.0.1:7070\talso over TCP, with tokens",
	.run = run_up,
};
