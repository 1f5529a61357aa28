/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/running/serving.h"
#include "daemon/daemon.h"
#include "engine/engine.h"
#include "base/parse.h"
#include "cli/running/shepherd_address.h"

enum { LEASE_USUAL_MS = 300 * 1000, LEASE_LEAST_MS = 10 * 1000, LEASE_MOST_MS = 3600 * 1000 };

/* How its pods reach the daemon. */
static int find_shepherds(struct invocation *in, char server[SHEPHERD_ADDRESS_MAX],
			  struct engine_cluster *ret, struct err *err)
{
	const char *listen = arg_flag(in, "pod-listen"), *address = arg_flag(in, "pod-address"),
		   *image = arg_flag(in, "shepherd-image"), *lease = arg_flag(in, "pod-lease");

	if (!listen && !address && !image && !lease)
		return 0;
	if (!listen || !image)
		return err_set(
			err, ERR_INVALID,
			"pods have shepherds with --pod-listen, where they reach this daemon, and --shepherd-image, where they have the program from: give both");
	ret->lease_ms = LEASE_USUAL_MS;
	if (lease && parse_duration(lease, &ret->lease_ms, err) < 0)
		return -1;
	if (ret->lease_ms < LEASE_LEAST_MS || ret->lease_ms > LEASE_MOST_MS)
		return err_set(err, ERR_INVALID, "--pod-lease %.40s: expected 10s to 1h", lease);
	ret->shepherd_server = server;
	ret->shepherd_image = image;
	return shepherd_address(address ? address : listen, server, err);
}

enum { HOST_PATHS_MAX = 16, LABEL_KEY_MAX = 253 };

static int level_find(const char *text, size_t size)
{
	for (int i = 0; i < ENGINE_LEVELS; i++)
		if (strlen(engine_level_names[i]) == size &&
		    strncmp(engine_level_names[i], text, size) == 0)
			return i;
	return -1;
}

/* LEVEL=KEY */
static int find_level_labels(const struct invocation *in, struct engine_level_labels *ret,
			     struct err *err)
{
	const char *text;

	for (size_t i = 0; (text = arg_flag_at(in, "topology-label", i)); i++) {
		const size_t size = strcspn(text, "=");
		const char *key = text + size + (text[size] == '=');
		const int level = level_find(text, size);

		if (i == ENGINE_LEVEL_LABELS_MAX)
			return err_set(err, ERR_INVALID,
				       "--topology-label is given more than %d times",
				       ENGINE_LEVEL_LABELS_MAX);
		if (level < 0 || !*key || strlen(key) > LABEL_KEY_MAX || strpbrk(key, "=, "))
			return err_set(
				err, ERR_INVALID,
				"--topology-label %.200s: expected a level (region, zone, core, spine, leaf, island), = and the key of a label of nodes, such as leaf=cloud.provider.com/topology-rack",
				text);
		if (strcmp(key, "kubernetes.io/hostname") == 0)
			return err_set(
				err, ERR_INVALID,
				"--topology-label %.200s: that label says which node it is, and a node is below all levels; leave it out",
				text);
		for (uint32_t j = 0; j < ret->count; j++)
			if (strcmp(ret->label[j].key, key) == 0)
				return err_set(err, ERR_INVALID,
					       "--topology-label names the label %.200s twice",
					       key);
		ret->label[ret->count].level = (uint32_t)level;
		ret->label[ret->count++].key = key;
	}
	return 0;
}

static int run_serve(struct invocation *in, struct err *err)
{
	const char *engine = arg_flag(in, "engine");
	const char *host_paths[HOST_PATHS_MAX + 1] = { NULL };
	char server[SHEPHERD_ADDRESS_MAX];
	struct engine_cluster cluster = {
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
		.pod_listen = arg_flag(in, "pod-listen"),
		.store = arg_flag(in, "store"),
		.kubernetes = &cluster,
		.stand_by = arg_has(in, "stand-by"),
		.accept_loss = arg_has(in, "accept-loss"),
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
	if (find_level_labels(in, &cluster.level_labels, err) < 0 ||
	    find_shepherds(in, server, &cluster, err) < 0)
		return -1;
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
	{ "topology-label", 0, "LEVEL=KEY",
	  "a label of nodes that says where they stand: region, zone, core, spine, leaf or island; such as the labels that a Topology of Kueue names",
	  true },
	{ "pod-listen", 0, "HOST:PORT",
	  "where shepherds in pods reach this daemon, over HTTP; nothing else is answered there. With it jobs may have checkpoints and snapshots of folders",
	  false },
	{ "pod-address", 0, "HOST:PORT",
	  "what pods are told of it: a Service, say; its name is looked up once; default: what --pod-listen says",
	  false },
	{ "shepherd-image", 0, "NAME",
	  "container image with the program fairlead-pod-shepherd, such as the daemon's own",
	  false },
	{ "pod-lease", 0, "DURATION",
	  "so long a task in a pod with a shepherd goes on without a word from the daemon, 10s to 1h; default: 5m",
	  false },
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
