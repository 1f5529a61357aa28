/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/output/output.h"
#include "cli/output/problem.h"
#include "cli/table/commands.h"
#include "cli/running/serving.h"
#include "daemon/daemon.h"

/* What the folder's last start was told; NULL = nothing is known. A file that is no such note counts as none. */
static json_t *start_read(const char *folder, struct arena *arena)
{
	return json_load_file(arena_printf(arena, "%s/start", folder), 0, NULL);
}

/* The flag's value; without one that of the last start, which is said. "none" ends that. */
static const char *value_of(const struct invocation *in, const json_t *last, const char *flag)
{
	const char *said = arg_flag(in, flag), *noted = get_text(last, flag);

	if (said)
		return strcmp(said, "none") == 0 ? NULL : said;
	if (!*noted)
		return NULL;
	notice("--%s %s, as at the last start of this folder; --%s none ends that", flag, noted,
	       flag);
	return arena_strdup(in->arena, noted);
}

static const char *start_text(const struct daemon_options *options, struct arena *arena)
{
	json_t *note = json_object();
	const char *cluster = options->cluster ? realpath(options->cluster, NULL) : NULL;
	char *text;
	const char *kept;

	if (options->nodes)
		json_object_set_new(note, "nodes", json_string(options->nodes));
	if (cluster)
		json_object_set_new(note, "cluster", json_string(cluster));
	if (options->listen)
		json_object_set_new(note, "listen", json_string(options->listen));
	text = json_dumps(note, JSON_COMPACT);
	kept = text ? arena_strdup(arena, text) : NULL;
	free(text);
	free((char *)(uintptr_t)cluster);
	json_decref(note);
	return kept;
}

/* A folder that --data names by mistake, such as a home folder, would be filled with the daemon's files. */
static int folder_check(const char *path, struct err *err)
{
	static const char *const own[] = { "journal",   "keys",           "start",      "store",
					   "logs",      "history.sqlite", "code",       "snapshots",
					   "run",       "attempts",       "daemon.log", "lock",
					   "quarantine" };
	char first[256] = "";
	DIR *folder = opendir(path);

	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    strcmp(entry->d_name, "lost+found") == 0)
			continue;
		for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
			if (strcmp(entry->d_name, own[i]) == 0) {
				closedir(folder);
				return 0;
			}
		if (!first[0])
			snprintf(first, sizeof(first), "%s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	return first[0]
		       ? err_set(err, ERR_INVALID,
				 "--data %.200s: the folder holds other files (\"%.60s\") and nothing of Fairlead; name an empty or a new one",
				 path, first)
		       : 0;
}

static int run_up(struct invocation *in, struct err *err)
{
	const bool nodes_said = arg_has(in, "nodes") || arg_has(in, "cluster");
	const char *folder = client_data_folder(in);
	json_t *last;

	if (arg_has(in, "data") && folder_check(folder, err) < 0)
		return -(int)err->code;
	last = start_read(folder, in->arena);
	struct daemon_options options = {
		.data = folder,
		.listen = value_of(in, last, "listen"),
		.store = arg_flag(in, "store"),
		.accept_loss = arg_has(in, "accept-loss"),
		.background = arg_has(in, "detach"),
	};

	options.nodes = value_of(in, nodes_said ? NULL : last, "nodes");
	options.cluster = value_of(in, nodes_said ? NULL : last, "cluster");
	json_decref(last);
	if (options.nodes && options.cluster)
		return err_set(
			err, ERR_INVALID,
			"--nodes and --cluster both say which nodes there are: give one of them");
	options.remember = start_text(&options, in->arena);
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
		"and every screen says so.\n\n"
		"The folder remembers --nodes, --cluster and --listen: a later start without them uses them again and says so. \"none\" as their value ends that.",
	.flags = flags,
	.examples =
		"fairlead up -d\tthis machine's GPUs, in the background\n"
		"fairlead up --data /tmp/try --nodes sim:2x4xH100-80GB\ta playground\n"
		"fairlead up -d --cluster site.yaml\tthe cluster that `fairlead sim replay` plays on\n"
		"fairlead up -d --listen 127.0.0.1:7070\talso over TCP, with tokens",
	.run = run_up,
};
