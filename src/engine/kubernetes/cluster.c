/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster as the two watches tell it. Pods of others are counted on their nodes; pods of ours belong to an attempt that the daemon
 * knows, or are left over from one that is over: those are deleted, and let go when they have ended.
 */
#include "engine/kubernetes/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/kubernetes/authority.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"

/* --- attempts --------------------------------------------------------------------------------------------- */

struct attempt_entry *live_find(struct engine *engine, uint64_t id)
{
	struct attempt_entry *attempt = NULL;

	HASH_FIND(hh, engine->attempts, &id, sizeof(id), attempt);
	return attempt;
}

struct attempt_entry *live_add(struct engine *engine, uint64_t id, uint32_t tasks)
{
	struct attempt_entry *attempt = live_find(engine, id);

	if (attempt)
		return attempt;
	attempt = calloc(1, sizeof(*attempt));
	CHECK(attempt);
	attempt->id = id;
	attempt->tasks = tasks;
	attempt->ranks = calloc(tasks ? tasks : 1, sizeof(*attempt->ranks));
	CHECK(attempt->ranks);
	HASH_ADD(hh, engine->attempts, id, sizeof(attempt->id), attempt);
	return attempt;
}

void live_widen(struct attempt_entry *attempt, uint32_t tasks)
{
	struct rank_state *ranks = calloc(tasks, sizeof(*ranks));

	CHECK(ranks && tasks >= attempt->tasks);
	memcpy(ranks, attempt->ranks, attempt->tasks * sizeof(*ranks));
	free(attempt->ranks);
	attempt->ranks = ranks;
	attempt->tasks = tasks;
}

void live_remove(struct engine *engine, struct attempt_entry *attempt)
{
	HASH_DEL(engine->attempts, attempt);
	gangs_decide_not(engine, attempt);
	free(attempt->parts[0]);
	free(attempt->parts[1]);
	free(attempt->disrupted);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		free(attempt->ranks[rank].claims);
		free(attempt->ranks[rank].kept);
	}
	free(attempt->ranks);
	free(attempt);
}

/* --- nodes -------------------------------------------------------------------------------------------------- */

static struct node_entry *node_entry_get(struct engine *engine, const char *name)
{
	struct node_entry *entry = NULL;

	HASH_FIND_STR(engine->nodes, name, entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	CHECK(entry);
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	HASH_ADD_STR(engine->nodes, name, entry);
	return entry;
}

struct node_entry *node_entry_find(struct engine *engine, const char *name)
{
	return *name ? node_entry_get(engine, name) : NULL;
}

void node_changed(struct engine *engine, struct node_entry *entry)
{
	if (entry->changed)
		return;
	entry->changed = true;
	entry->next_changed = engine->changed;
	engine->changed = entry;
}

static int64_t rest(int64_t room, int64_t taken)
{
	return room > taken ? room - taken : 0;
}

/* "9.0", "8.6.0": in tenths; 0 = it is none. */
static uint32_t capability_of(const char *text)
{
	unsigned major, minor = 0;

	return sscanf(text, "%2u.%1u", &major, &minor) >= 1 && major <= 99 ? major * 10 + minor : 0;
}

/* Of a node without a device plugin whose driver publishes its GPUs. */
static void gpus_describe(struct engine *engine, struct node_entry *entry,
			  const struct gpu_table *table, struct engine_node *ret)
{
	ret->gpus = table->count;
	ret->gpus_by_index = true;
	ret->gpus_taken_mask = devices_taken(engine, table);
	ret->taken = claimants_look(engine, entry, table, ret->gpus_taken_mask, &ret->taken_count);
	if (!ret->product[0])
		snprintf(ret->product, sizeof(ret->product), "%s", table->product);
	if (!ret->gpu_memory_mib)
		ret->gpu_memory_mib = table->memory_mib;
	if (!ret->driver[0])
		snprintf(ret->driver, sizeof(ret->driver), "%s", table->driver_version);
	if (!ret->cuda[0])
		snprintf(ret->cuda, sizeof(ret->cuda), "%s", table->cuda);
	if (!ret->capability)
		ret->capability = capability_of(table->compute);
}

static void node_describe(struct engine *engine, struct node_entry *entry, struct engine_node *ret)
{
	const struct kube_node *node = entry->node;
	const struct gpu_table *table = node->room.gpus ? NULL : devices_gpus(engine, node->name);

	*ret = (struct engine_node){
		.gpus = node->room.gpus > 64 ? 64 : (uint32_t)node->room.gpus,
		.gpus_taken = node->parts               ? 0
			      : entry->others.gpus > 64 ? 64
							: (uint32_t)entry->others.gpus,
		.gpu_memory_mib = node->gpu_memory_mib,
		.cpu_milli = rest(node->room.cpu_milli, entry->others.cpu_milli),
		.ram_mib = rest(node->room.memory_mib, entry->others.memory_mib),
		.ready = node->ready && !node->deleting,
		.spot = node->spot,
		.goes = node->goes,
		.goes_in_ms = node->goes_in_s * 1000,
		.cordoned = node->cordoned || node->problem[0] || node->unclear || entry->unclear,
		.levels = engine->levels,
	};
	snprintf(ret->name, sizeof(ret->name), "%.63s", node->name);
	snprintf(ret->product, sizeof(ret->product), "%s", node->product);
	snprintf(ret->driver, sizeof(ret->driver), "%.63s", node->driver);
	snprintf(ret->cuda, sizeof(ret->cuda), "%.63s", node->cuda);
	ret->capability = capability_of(node->compute);
	snprintf(ret->labels, sizeof(ret->labels), "%s", node->labels);
	snprintf(ret->taints, sizeof(ret->taints), "%s", node->taints);
	memcpy(ret->places, node->places.name, sizeof(ret->places));
	holders_say(entry, ret->gpus_taken_by);
	devices_label(engine, entry, ret->labels);
	claimants_clear(entry);
	if (table)
		gpus_describe(engine, entry, table, ret);
	snprintf(ret->reason, sizeof(ret->reason), "Kubernetes: %s",
		 node->deleting     ? "the node is being deleted"
		 : !node->ready     ? "the node is not ready"
		 : node->off        ? "the node is out of service"
		 : node->goes       ? node->goes_why
		 : node->unclear    ? "what the API server says of the node can't be read"
		 : entry->unclear   ? "what a pod on it takes can't be read"
		 : node->problem[0] ? node->problem
		 : node->cordoned   ? "the node is cordoned"
				    : "");
}

/* Names longer than the core's, and more GPUs than it knows in one node, are left aside and said once. */
static bool node_fits(struct node_entry *entry)
{
	bool fits = strlen(entry->name) < KUBE_NODE_NAME_MAX && entry->node->room.gpus <= 32;

	if (!fits && !entry->unfit)
		log_line(LOG_WARN, "Kubernetes: node %s is left aside: %s", entry->name,
			 entry->node->room.gpus > 32 ? "it has more than 32 GPUs"
						     : "its name has more than 63 characters");
	entry->unfit = !fits;
	return fits;
}

static void node_tell(struct engine *engine, struct node_entry *entry)
{
	struct engine_node told = { .gone = true };

	if (entry->node && node_fits(entry)) {
		node_describe(engine, entry, &told);
		if (!entry->told)
			entry->told_now = true;
		entry->told = true;
	} else if (entry->told) {
		snprintf(told.name, sizeof(told.name), "%.63s", entry->name);
		entry->told = false;
	} else {
		return;
	}
	engine->options.node(engine->options.context, &told);
	if (entry->told_now)
		masks_node_told(engine, entry->name);
	entry->told_now = false;
}

/* A level that no node had before concerns all: what each says of its place counts by the levels there are. */
static void levels_follow(struct engine *engine)
{
	struct node_entry *entry, *next;
	uint32_t levels = engine->levels;

	for (entry = engine->changed; entry; entry = entry->next_changed)
		if (entry->node)
			levels |= places_levels(&entry->node->places);
	if (levels == engine->levels)
		return;
	engine->levels = levels;
	HASH_ITER(hh, engine->nodes, entry, next)
	{
		node_changed(engine, entry);
	}
}

/* Before both lists are there, what pods take is not known, and nothing may be placed by it. */
static void tell_changed_nodes(struct engine *engine)
{
	struct node_entry *entry;

	if (!engine->pods_listed || !engine->nodes_listed || !devices_listed(engine))
		return;
	devices_refresh(engine);
	if (!engine->changed)
		return;
	levels_follow(engine);
	authority_changed(engine);
	least_of_nodes(engine);
	while ((entry = engine->changed)) {
		engine->changed = entry->next_changed;
		entry->changed = false;
		node_tell(engine, entry);
	}
}

static void tell_all_names(struct engine *engine)
{
	const char **names = calloc(HASH_COUNT(engine->nodes) + 1, sizeof(*names));
	struct node_entry *entry, *next;
	size_t count = 0;

	CHECK(names);
	HASH_ITER(hh, engine->nodes, entry, next)
	{
		if (entry->told)
			names[count++] = entry->name;
	}
	engine->options.nodes(engine->options.context, names, count);
	free(names);
}

static void node_is_gone(struct engine *engine, struct node_entry *entry)
{
	if (!entry->node)
		return;
	free(entry->node);
	entry->node = NULL;
	claimants_clear(entry);
	node_changed(engine, entry);
	masks_node(engine, entry->name, NULL);
	/* First: else the core, told of an end alone, would place the job there again. */
	if (entry->told)
		node_tell(engine, entry);
	ranks_saw_node(engine, entry->name);
}

static void nodes_begin(void *context)
{
	struct engine *engine = context;
	struct node_entry *entry, *next;

	pthread_mutex_lock(&engine->lock);
	engine->nodes_unclear_next = false;
	HASH_ITER(hh, engine->nodes, entry, next)
	{
		entry->seen = false;
	}
	pthread_mutex_unlock(&engine->lock);
}

/* Of a node that can't be read as a whole, what was known before stands, but for that it takes nothing new. */
static void node_keep(struct node_entry *entry, struct kube_node *node)
{
	if (!entry->unclear_said)
		log_line(
			LOG_WARN,
			"Kubernetes: what the API server says of node %s can't be read: it gets no new work",
			entry->name);
	entry->unclear_said = true;
	if (!entry->node)
		return;
	*node = *entry->node;
	node->unclear = true;
}

static void node_is_there_now(struct engine *engine, struct node_entry *entry,
			      struct kube_node *node)
{
	bool before = entry->node && entry->node->ready, off = entry->node && entry->node->off,
	     went = entry->node && entry->node->goes, came = !entry->node;

	if (node->unclear)
		node_keep(entry, node);
	else
		entry->unclear_said = false;
	if (came || memcmp(entry->node, node, sizeof(*node)) != 0)
		node_changed(engine, entry);
	free(entry->node);
	entry->node = node;
	if (came)
		devices_node_came(engine, entry);
	entry->removal_s = node->removal_s;
	engine->gangs.nodes_go |= went != node->goes;
	if (came || before != node->ready || off != node->off)
		ranks_saw_node(engine, entry->name);
}

static void node_came(void *context, const char *json, size_t size, bool deleted)
{
	struct engine *engine = context;
	struct kube_node *node = malloc(sizeof(*node));
	struct placed_node *placed = NULL;
	struct node_entry *entry;
	struct err err = { 0 };

	CHECK(node);
	if (node_read(json, size, &engine->options.cluster->level_labels, node, &err) < 0) {
		log_line(LOG_WARN, "Kubernetes: a node can't be read, not even its name: %s",
			 err.text);
		pthread_mutex_lock(&engine->lock);
		engine->nodes_unclear = engine->nodes_unclear_next = true;
		pthread_mutex_unlock(&engine->lock);
		free(node);
		return;
	}
	/* What the core can't use of it, nothing can be placed on. */
	if (!deleted && placed_node_read(json, size, &placed, &err) < 0)
		node->unclear = true;
	pthread_mutex_lock(&engine->lock);
	entry = node_entry_get(engine, node->name);
	entry->seen = !deleted;
	if (deleted) {
		node_is_gone(engine, entry);
		free(node);
	} else {
		if (placed)
			masks_node(engine, entry->name, placed);
		node_is_there_now(engine, entry, node);
	}
	pthread_mutex_unlock(&engine->lock);
}

/* Of pods that were told before the nodes were. */
static void look_at_nodes_of_ranks(struct engine *engine)
{
	struct attempt_entry *attempt, *next;

	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			const struct rank_state *state = &attempt->ranks[rank];

			if (state->bound && !state->over && !node_answers(engine, state->node))
				ranks_saw_node(engine, state->node);
		}
	}
}

/* What was said of attempts before a restart may no longer be so. */
static void look_at_all(struct engine *engine)
{
	struct attempt_entry *attempt, *next;

	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		attempt_look(engine, attempt);
	}
}

static void nodes_listed(void *context)
{
	struct engine *engine = context;
	struct node_entry *entry, *next;

	pthread_mutex_lock(&engine->lock);
	engine->nodes_listed = true;
	engine->nodes_unclear = engine->nodes_unclear_next;
	HASH_ITER(hh, engine->nodes, entry, next)
	{
		if (!entry->seen && !engine->nodes_unclear)
			node_is_gone(engine, entry);
	}
	look_at_nodes_of_ranks(engine);
	look_at_all(engine);
	tell_changed_nodes(engine);
	if (engine->pods_listed && devices_listed(engine) && !engine->nodes_unclear)
		tell_all_names(engine);
	masks_flush(engine, false);
	pthread_cond_broadcast(&engine->listed);
	pthread_mutex_unlock(&engine->lock);
}

void cluster_list_came(struct engine *engine)
{
	if (!engine->pods_listed || !engine->nodes_listed || !devices_listed(engine))
		return;
	gangs_look(engine);
	tell_changed_nodes(engine);
	if (!engine->nodes_unclear)
		tell_all_names(engine);
	pthread_cond_broadcast(&engine->listed);
}

void cluster_paused(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	gangs_decide(engine);
	gangs_look(engine);
	tell_changed_nodes(engine);
	masks_flush(engine, false);
	pthread_mutex_unlock(&engine->lock);
}

/* --- pods ----------------------------------------------------------------------------------------------------- */

static void count_not(struct engine *engine, struct pod_entry *entry)
{
	if (!entry->node)
		return;
	entry->node->others.gpus -= entry->use.gpus;
	entry->node->others.cpu_milli -= entry->use.cpu_milli;
	entry->node->others.memory_mib -= entry->use.memory_mib;
	entry->node->unclear -= entry->unclear;
	node_changed(engine, entry->node);
	entry->node = NULL;
}

static void count(struct engine *engine, struct pod_entry *entry, const struct kube_pod *pod)
{
	bool counts = pod->node[0] && !pod_is_over(pod) && !entry->ours;
	struct node_entry *node = counts ? node_entry_get(engine, pod->node) : NULL;

	if (node == entry->node &&
	    (!node || (entry->unclear == pod->unclear &&
		       memcmp(&entry->use, &pod->use, sizeof(pod->use)) == 0)))
		return;
	count_not(engine, entry);
	entry->use = pod->use;
	entry->unclear = pod->unclear;
	entry->node = node;
	if (!node)
		return;
	node->others.gpus += pod->use.gpus;
	node->others.cpu_milli += pod->use.cpu_milli;
	node->others.memory_mib += pod->use.memory_mib;
	node->unclear += pod->unclear;
	node_changed(engine, node);
}

static struct pod_entry *pod_entry_get(struct engine *engine, const char *uid)
{
	struct pod_entry *entry = NULL;

	HASH_FIND_STR(engine->pods, uid, entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	CHECK(entry);
	snprintf(entry->uid, sizeof(entry->uid), "%s", uid);
	HASH_ADD_STR(engine->pods, uid, entry);
	return entry;
}

/* Of an attempt that is over: its end is recorded, or it was never to be. */
static void left_over(struct engine *engine, const struct kube_pod *pod)
{
	bool never_runs = pod->deleting && !pod->node[0];

	if (pod->finalizer && (pod_is_over(pod) || never_runs) && pod->changes &&
	    !live_find(engine, pod->attempt))
		pod_part(engine, pod);
	else if (pod->finalizer && (pod_is_over(pod) || never_runs))
		pod_let_go(engine, pod->namespace, pod->name, pod->uid);
	else if (!pod->deleting && !pod_is_over(pod))
		pod_delete(engine, pod->namespace, pod->name, pod->uid, GRACE_USUAL_S);
}

/* Of an earlier start of a rank: the core starts it anew when that one's end is recorded. */
static void earlier_start(struct engine *engine, const struct kube_pod *pod)
{
	if (!pod->deleting && !pod_is_over(pod))
		pod_delete(engine, pod->namespace, pod->name, pod->uid, GRACE_USUAL_S);
	if (pod->finalizer)
		pod_let_go(engine, pod->namespace, pod->name, pod->uid);
}

/* The rank that it is now: one that others made may have become that since it was told last. */
static struct attempt_entry *attempt_of(struct engine *engine, const struct pod_entry *entry,
					uint32_t *ret_rank)
{
	*ret_rank = entry->rank;
	return entry->ours ? live_find(engine, entry->attempt)
			   : gangs_attempt(engine, entry->uid, ret_rank);
}

static void pod_is_gone(struct engine *engine, struct pod_entry *entry)
{
	uint32_t rank;
	struct attempt_entry *attempt = attempt_of(engine, entry, &rank);

	count_not(engine, entry);
	holder_leave(entry);
	if (attempt && rank < attempt->tasks && strcmp(attempt->ranks[rank].uid, entry->uid) == 0)
		rank_lost_pod(engine, attempt, rank, "its pod was removed from Kubernetes");
	masks_pod(engine, entry->uid, NULL);
	gangs_lost(engine, entry->uid);
	HASH_DEL(engine->pods, entry);
	scheduler_drop(entry);
	free(entry);
}

/* It bears the name of a rank's pod, and another one is or was that: made by somebody's hand, or by a request that was carried out late. */
static bool is_double(const struct attempt_entry *attempt, uint32_t rank,
		      const struct kube_pod *pod)
{
	const char *uid = attempt->ranks[rank].uid;

	return uid[0] && strcmp(uid, pod->uid) != 0;
}

static void pod_is_there(struct engine *engine, struct kube_pod *pod)
{
	struct pod_entry *entry = pod_entry_get(engine, pod->uid);
	bool of_us = manifest_owns(&engine->site, pod);
	uint32_t rank = (uint32_t)pod->rank;
	struct attempt_entry *attempt =
		of_us ? live_find(engine, pod->attempt) : gangs_attempt(engine, pod->uid, &rank);
	bool belongs = attempt && rank < attempt->tasks &&
		       pod->launch == attempt->ranks[rank].launch && !is_double(attempt, rank, pod);

	entry->seen = true;
	scheduler_keep(entry, pod->scheduler);
	entry->ours = belongs;
	entry->attempt = attempt ? attempt->id : 0;
	entry->rank = rank;
	count(engine, entry, pod);
	holder_follow(engine, entry, pod);
	if (belongs && pod->unclear)
		rank_saw_unclear(engine, attempt, rank, pod);
	else if (belongs)
		rank_saw_pod(engine, attempt, rank, pod);
	else if (of_us && attempt && rank < attempt->tasks &&
		 pod->launch < attempt->ranks[rank].launch)
		earlier_start(engine, pod);
	else if (of_us && !pod->unclear)
		left_over(engine, pod);
}

static void pods_begin(void *context)
{
	struct engine *engine = context;
	struct pod_entry *entry, *next;

	pthread_mutex_lock(&engine->lock);
	engine->pods_unclear_next = false;
	HASH_ITER(hh, engine->pods, entry, next)
	{
		entry->seen = false;
	}
	gangs_begin(engine);
	pthread_mutex_unlock(&engine->lock);
}

static int64_t up(int64_t amount, int64_t unit)
{
	return amount / unit + (amount % unit != 0);
}

/* By all rules of the API: amounts of the pod as a whole and resizes under way too. */
static void use_from(const struct placed_pod *pod, struct kube_use *ret)
{
	static const struct kube_use none;

	*ret = none;
	PLACED_EACH(pod, placed_amount, amount, pod->requests)
	{
		const char *name = placed_text(pod, amount->name);
		int64_t milli = amount->milli < 0 ? 0 : amount->milli;

		if (strcmp(name, KUBE_GPU) == 0)
			ret->gpus = up(milli, 1000);
		else if (strcmp(name, "cpu") == 0)
			ret->cpu_milli = milli;
		else if (strcmp(name, "memory") == 0)
			ret->memory_mib = up(milli, INT64_C(1048576000));
	}
}

static void pod_came(void *context, const char *json, size_t size, bool deleted)
{
	struct engine *engine = context;
	struct kube_pod pod;
	struct placed_pod *placed = NULL;
	struct pod_entry *entry = NULL;
	struct err err = { 0 };
	uint32_t rank;

	if (pod_read(json, size, &pod, &err) < 0) {
		log_line(LOG_WARN, "Kubernetes: a pod can't be read, not even its name: %s",
			 err.text);
		pthread_mutex_lock(&engine->lock);
		engine->pods_unclear = engine->pods_unclear_next = true;
		pthread_mutex_unlock(&engine->lock);
		return;
	}
	if (!deleted && placed_pod_read(json, size, &placed, &err) < 0)
		pod.unclear = true;
	else if (!deleted)
		use_from(placed, &pod.use);
	pthread_mutex_lock(&engine->lock);
	if (!deleted) {
		if (placed)
			masks_pod(engine, pod.uid, placed);
		/* A pod of ours whose labels were taken away is still ours. */
		if (!manifest_owns(&engine->site, &pod) && pod_is_for_us(engine, &pod))
			gangs_saw(engine, json, size, &pod);
		pod_is_there(engine, &pod);
	} else {
		HASH_FIND_STR(engine->pods, pod.uid, entry);
		if (entry) {
			if (pod_is_over(&pod) && attempt_of(engine, entry, &rank))
				pod_is_there(engine, &pod); /* what it was last says how it ended */
			pod_is_gone(engine, entry);
		}
	}
	pthread_mutex_unlock(&engine->lock);
}

/* Ranks of adopted attempts that have no pod. What this process makes is told by the answers. */
static void tell_missing(struct engine *engine)
{
	struct attempt_entry *attempt, *next;

	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			struct rank_state *state = &attempt->ranks[rank];

			if (attempt->described || state->uid[0])
				continue;
			state->unclear = engine->pods_unclear; /* that pod may be its own */
			if (!state->unclear)
				rank_report(engine, attempt, rank, ENGINE_GONE);
		}
	}
}

/* Of attempts that are being stopped, ranks whose pods were to be made: there are none, and none will be. */
static void stop_missing(struct engine *engine)
{
	struct attempt_entry *attempt, *next;

	engine->missing_told = true;
	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		for (uint32_t rank = 0;
		     attempt->changes && attempt->stopping && rank < attempt->tasks; rank++)
			if (!attempt->ranks[rank].uid[0])
				rank_stop(engine, attempt, rank);
	}
}

/* A pod that was made and removed between two watches is in neither; that of an answer which came with the list may still be told. */
static void look_for_unseen(struct engine *engine)
{
	struct attempt_entry *attempt, *next;
	const struct pod_entry *entry;

	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		for (uint32_t rank = 0; !attempt->gang && rank < attempt->tasks; rank++) {
			const struct rank_state *state = &attempt->ranks[rank];

			if (!state->uid[0] || state->over)
				continue;
			HASH_FIND_STR(engine->pods, state->uid, entry);
			if (!entry)
				rank_look(engine, attempt, rank);
		}
	}
}

static void pods_listed(void *context)
{
	struct engine *engine = context;
	struct pod_entry *entry, *next;

	pthread_mutex_lock(&engine->lock);
	engine->pods_unclear = engine->pods_unclear_next;
	HASH_ITER(hh, engine->pods, entry, next)
	{
		if (!entry->seen && !engine->pods_unclear)
			pod_is_gone(engine, entry);
	}
	gangs_listed(engine);
	if (!engine->missing_told)
		tell_missing(engine);
	if (!engine->missing_told && !engine->pods_unclear)
		stop_missing(engine);
	engine->missing_told |= !engine->pods_unclear;
	look_for_unseen(engine);
	engine->pods_listed = true;
	look_at_all(engine);
	tell_changed_nodes(engine);
	if (engine->nodes_listed && devices_listed(engine) && !engine->nodes_unclear)
		tell_all_names(engine);
	masks_listed(engine);
	gangs_look(engine);
	masks_flush(engine, false);
	pthread_cond_broadcast(&engine->listed);
	pthread_mutex_unlock(&engine->lock);
}

/* --- begin and end ---------------------------------------------------------------------------------------------- */

void follow_start(struct engine *engine)
{
	devices_start(engine);
	sources_start(engine);
	budgets_start(engine);
	engine->node_watch =
		watch_create(engine->client, &(struct watch_options){ .path = "/api/v1/nodes",
								      .context = engine,
								      .begin = nodes_begin,
								      .object = node_came,
								      .listed = nodes_listed,
								      .pause = cluster_paused });
	engine->pod_watch =
		watch_create(engine->client, &(struct watch_options){ .path = "/api/v1/pods",
								      .context = engine,
								      .begin = pods_begin,
								      .object = pod_came,
								      .listed = pods_listed,
								      .pause = cluster_paused });
}

void cluster_deinit(struct engine *engine)
{
	struct node_entry *node, *next_node;
	struct pod_entry *pod, *next_pod;
	struct attempt_entry *attempt, *next;

	errands_deinit(engine);
	authority_deinit(engine);
	devices_deinit(engine);
	gangs_deinit(engine);
	budgets_deinit(engine);
	masks_deinit(engine);
	sources_deinit(engine);
	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		live_remove(engine, attempt);
	}
	HASH_ITER(hh, engine->pods, pod, next_pod)
	{
		HASH_DEL(engine->pods, pod);
		holder_leave(pod);
		scheduler_drop(pod);
		free(pod);
	}
	HASH_ITER(hh, engine->nodes, node, next_node)
	{
		HASH_DEL(engine->nodes, node);
		claimants_clear(node);
		free(node->node);
		free(node);
	}
	watch_destroy(engine->pod_watch);
	watch_destroy(engine->node_watch);
}
