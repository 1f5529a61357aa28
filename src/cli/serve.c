/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/serving.h"
#include "daemon/daemon.h"
#include "engine/engine.h"

enum { HOST_PATHS_MAX = 16 };

static int run_serve(struct invocation *in, struct err *err)
{
	const char *engine = arg_flag(in, "engine");
	const char *host_paths[HOST_PATHS_MAX + 1] = { NULL };
	const struct engine_cluster cluster = {
		.config = arg_flag(in, "kubeconfig"),
		.context = arg_flag(in, "context"),
		.namespace = arg_flag(in, "namespace"),
		.image = arg_flag(in, "image"),
		.host_paths = host_paths,
		.moved = arg_has(in, "moved"),
	};
	const struct daemon_options options = {
		.data = client_data_folder(in),
		.listen = arg_flag(in, "listen"),
		.store = arg_flag(in, "store"),
		.kubernetes = &cluster,
		.stand_by = arg_has(in, "stand-by"),
		.background = arg_has(in, "detach"),
	};

	for (size_t i = 0; arg_flag_at(in, "host-path", i); i++) {
		if (i == HOST_PATHS_MAX)
			return err_set(err, ERR_INVALID, "--host-path is given more than %d times",
				       HOST_PATHS_MAX);
		host_paths[i] = arg_flag_at(in, "host-path", i);
		if (host_paths[i][0] != '/' || strstr(host_paths[i], "/.."))
			return err_set(err, ERR_INVALID,
				       "--host-path %.200s: it must be an absolute path without ..",
				       host_paths[i]);
	}
	if (!engine)
		return err_set(err, ERR_INVALID, "say where jobs run: --engine kubernetes");
	if (strcmp(engine, "kubernetes") != 0)
		return err_set(
			err, ERR_UNSUPPORTED,
			"there is no engine \"%.60s\" here: kubernetes is; `fairlead up` runs jobs on this machine",
			engine);
	return daemon_run(&options, err);
}

static const struct flag flags[] = {
	{ "engine", 0, "kubernetes", "where jobs run", false },
	{ "kubeconfig", 0, "FILE",
	  "address of the API server and account; default: KUBECONFIG, the pod's own account, ~/.kube/config",
	  false },
	{ "context", 0, "NAME", "context of that file; default: the current one", false },
	{ "namespace", 0, "NAME", "where pods of jobs are made; default: the context's", false },
	{ "image", 0, "NAME", "container image of jobs that name none", false },
	{ "host-path", 0, "DIR",
	  "a folder of nodes that jobs may mount, and what is in it, as volumes: {NAME: {host: DIR, path: PATH}}",
	  true },
	{ "stand-by", 0, NULL,
	  "be one of several daemons on the journal in --store: one leads, by a Lease; the others follow and take over",
	  false },
	{ "moved", 0, NULL,
	  "the cluster or namespace where the journal's jobs ran is no more: take them for gone, and start them anew here",
	  false },
	SERVING_FLAGS,
	{ 0 },
};

const struct command command_serve = {
	.name = "serve",
	.arguments = "",
	.summary = "start the daemon for a cluster",
	.about =
		"As `fairlead up`, but jobs run as pods on the nodes of a Kubernetes cluster, in place of processes on this machine. Nodes, their "
		"GPUs and what other pods take of them are read from the API server and followed. docs/kubernetes.md says what works, and "
		"which rights the account needs.\n\n"
		"Stopping or killing the daemon neither stops nor changes running pods; the next one on the same data folder finds them again.",
	.flags = flags,
	.examples =
		"fairlead serve --engine kubernetes --image pytorch/pytorch:2.8.0\tthe cluster of ~/.kube/config\n"
		"fairlead serve -d --engine kubernetes --kubeconfig FILE --namespace training\tin the background",
	.run = run_serve,
};
