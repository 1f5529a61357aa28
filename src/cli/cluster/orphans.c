/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "cli/table/commands.h"
#include "cli/output/output.h"
#include "cli/output/problem.h"
#include "engine/kubernetes/orphans.h"

static struct engine_cluster cluster_of(const struct invocation *in)
{
	return (struct engine_cluster){ .config = arg_flag(in, "kubeconfig"),
					.context = arg_flag(in, "context"),
					.namespace = arg_flag(in, "namespace") };
}

static json_t *row_of(const struct orphan *orphan)
{
	return json_pack("{s:s, s:s, s:I, s:s, s:s, s:b, s:s}", "instance", orphan->instance, "pod",
			 orphan->name, "job", (json_int_t)orphan->job, "node", orphan->node,
			 "state",
			 orphan->over       ? "over"
			 : orphan->deleting ? "stopping"
			 : orphan->node[0]  ? "bound"
					    : "waits",
			 "deleting", orphan->deleting, "leader", orphan->leader);
}

static const struct column columns[] = {
	{ "INSTANCE", "instance", CELL_TEXT },
	{ "POD", "pod", CELL_TEXT },
	{ "JOB", "job", CELL_INT },
	{ "STATE", "state", CELL_TEXT },
	{ "NODE", "node", CELL_TEXT },
	{ "LEADER", "leader", CELL_TEXT },
	{ 0 },
};

static int run_orphans(struct invocation *in, struct err *err)
{
	const struct engine_cluster cluster = cluster_of(in);
	struct orphan *found = NULL;
	struct output output;
	json_t *rows;
	size_t count = 0, led = 0;
	int rc = orphans_list(&cluster, &found, &count, err);

	if (rc < 0)
		return rc;
	rows = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(rows, row_of(&found[i]));
		led += found[i].leader[0] && strcmp(found[i].leader, "?") != 0;
	}
	output_init(&output, in);
	rc = output_list(&output, columns, rows, "pod", err);
	json_decref(rows);
	free(found);
	if (!count)
		notice("no pod of Fairlead's is held in that namespace");
	if (led)
		notice("%zu of %zu belong to a daemon that lives (LEADER): they are no orphans, it lets them go itself when their ends are recorded.",
		       led, count);
	return rc;
}

static int refuse_led(const struct engine_cluster *cluster, const char *instance, struct err *err)
{
	char leader[256];
	int rc = orphans_leader(cluster, instance, leader, err);

	if (rc == 0 && leader[0])
		rc = err_set(
			err, ERR_CONFLICT,
			"a daemon of Fairlead %.20s leads, and lets its pods go itself when their ends are recorded: %s",
			instance, leader);
	return rc;
}

static int let_go(const struct engine_cluster *cluster, const char *instance,
		  const struct orphan *found, size_t count, struct err *err)
{
	size_t gone = 0, left = 0, known = 0;

	for (size_t i = 0; i < count; i++) {
		if (strcmp(found[i].instance, instance) != 0)
			continue;
		known++;
		if (!found[i].over) {
			left++;
			continue;
		}
		if (orphan_let_go(cluster, &found[i], err) < 0)
			return err_prefix(err, "%zu pods let go", gone);
		gone++;
	}
	if (!known)
		return err_set(
			err, ERR_NOT_FOUND,
			"no pod of Fairlead \"%.20s\" is held here: `fairlead orphans` lists those that are",
			instance);
	notice("%zu pods let go.", gone);
	if (left)
		notice("%zu are not over and stay as they are. To stop them: kubectl delete pods -l fairlead.dev/instance=%s; when they have ended, let go again.",
		       left, instance);
	return 0;
}

static int run_let_go(struct invocation *in, struct err *err)
{
	const struct engine_cluster cluster = cluster_of(in);
	struct orphan *found = NULL;
	size_t count = 0;
	int rc = refuse_led(&cluster, in->args[0], err);

	if (rc == 0)
		rc = orphans_list(&cluster, &found, &count, err);
	if (rc == 0)
		rc = let_go(&cluster, in->args[0], found, count, err);
	free(found);
	return rc;
}

#define WHERE                                                                                                  \
	{ "kubeconfig", 0, "FILE",                                                                             \
	  "address of the API server and account; default: KUBECONFIG, the pod's own account, ~/.kube/config", \
	  false },                                                                                             \
		{ "context", 0, "NAME", "context of that file; default: the current one", false },             \
	{                                                                                                      \
		"namespace", 0, "NAME", "where the pods are; default: the context's", false                    \
	}

static const struct flag flags[] = { WHERE, { 0 } };

const struct command command_orphans = {
	.name = "orphans",
	.arguments = "[list]",
	.summary = "list pods that Kubernetes keeps until a Fairlead has recorded their end",
	.about =
		"A pod of Fairlead's can be deleted when its end is in the journal. When the journal is lost for good, nobody records it, and the pods stay. This "
		"lists all pods that are kept, of every Fairlead in the namespace; the instance says whose they are, and LEADER which daemon renewed its Lease within the last 30 seconds: such a "
		"daemon lives, and its pods are no orphans (? = the account may not look). Asks the API server; no daemon is needed.",
	.flags = flags,
	.examples = "fairlead orphans --namespace fairlead-jobs",
	.shares = SHARES_LIST,
	.run = run_orphans,
};

const struct command command_orphans_let_go = {
	.name = "orphans let-go",
	.arguments = "INSTANCE",
	.summary = "let Kubernetes delete the ended pods of a Fairlead whose journal is lost",
	.about =
		"Takes the finalizer from the pods of this instance in which nothing runs any more; the others stay as they are. Only for a journal that is lost: a daemon that has it "
		"takes the pods of jobs that are not recorded yet for lost, and runs those jobs again. While a daemon renews the instance's Lease this is refused; one "
		"that may not have a Lease says so in its log, so look for it yourself.",
	.flags = flags,
	.examples = "fairlead orphans let-go 3f2a9c1b5d6e7f80 --namespace fairlead-jobs",
	.least = 1,
	.most = 1,
	.run = run_let_go,
};
