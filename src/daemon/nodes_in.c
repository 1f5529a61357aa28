/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that an engine with a cluster of its own finds become facts: what they have, their labels and taints, whether they take work.
 *
 * What people said of a node to Fairlead stays: a cordon, a drain, a quarantine. The engine takes back only states that it set itself, which
 * their reason tells. So it is with GPUs that other work takes: a device plugin says how many of a node are taken and not which, so as many
 * of those that are free are set aside, with a reason of ours. Where a driver publishes the devices (DRA) it is known which they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/log.h"
#include "core/model/taken.h"
#include "daemon/state.h"
#include "node/discover.h"

#define STATE_REASON "Kubernetes: "
#define CLOSED_BEFORE "; closed by a person before"
#define STAYS_CLOSED "closed by a person before a notice that was withdrawn"

/* --- on the way ------------------------------------------------------------------------------------------- */

void nodes_report(void *daemon, const struct engine_node *node)
{
	struct daemon *d = daemon;
	const size_t size = node->taken_count * sizeof(*node->taken);
	struct node_message *message = calloc(1, sizeof(*message) + size);

	CHECK(message);
	message->message.kind = CORE_NODE;
	message->node = *node;
	if (size)
		memcpy(message->taken, node->taken, size);
	message->node.taken = message->taken;
	mailbox_send(&d->core_box, &message->message);
}

void nodes_report_all(void *daemon, const char *const *names, size_t count)
{
	struct daemon *d = daemon;
	struct nodes_message *message = calloc(1, sizeof(*message));

	CHECK(message);
	message->message.kind = CORE_NODES;
	message->names = calloc(count + 1, sizeof(*message->names));
	CHECK(message->names);
	for (size_t i = 0; i < count; i++) {
		message->names[i] = strdup(names[i]);
		CHECK(message->names[i]);
	}
	message->count = count;
	mailbox_send(&d->core_box, &message->message);
}

void nodes_message_destroy(struct nodes_message *message)
{
	for (size_t i = 0; i < message->count; i++)
		free(message->names[i]);
	free(message->names);
	free(message);
}

/* --- in the core's thread ------------------------------------------------------------------------------------- */

static void admit(struct daemon *d, struct batch *batch, struct event *event, const char *node)
{
	struct err err = { 0 };

	if (core_admit_own(d, batch, event, &err) < 0)
		log_line(LOG_WARN, "what Kubernetes says of node %s is not taken: %s", node,
			 err.text);
	batch->essential = true;
}

/* --- where it stands ---------------------------------------------------------------------------------------------- */

static int ladder_index(const char *name)
{
	for (int i = 0; i < ENGINE_LEVELS; i++)
		if (strcmp(engine_level_names[i], name) == 0)
			return i;
	return -1;
}

/* A person, by a file, comes before what nodes say of themselves. */
static bool place_is_said(const struct node *node, uint32_t level)
{
	return node->said >> (SAID_FILE + level) & 1 || node->said >> (SAID_LABEL + level) & 1;
}

static bool levels_are_said(const struct facts *facts)
{
	for (uint32_t l = 0; l < facts->level_count; l++) {
		if (ladder_index(facts_name(facts, facts->level[l])) < 0)
			return true;
		for (uint32_t id = 1; id <= facts->nodes.count; id++)
			if (place_is_said(node_get(facts, (struct node_id){ id }), l))
				return true;
	}
	return false;
}

/* Levels that nodes say of themselves are the cluster's, unless people have described others. Those once there stay: jobs may name them. */
static void set_levels(struct daemon *d, struct batch *batch, uint32_t told)
{
	struct event event = event_make(EVENT_LEVELS_SET, 0, "engine");
	char levels[EVENT_TEXT_MAX + 1] = "";
	struct err err = { 0 };
	uint32_t there = 0;
	size_t size = 0;

	for (uint32_t l = 0; l < d->facts.level_count; l++) {
		int at = ladder_index(facts_name(&d->facts, d->facts.level[l]));

		there |= at < 0 ? 0 : UINT32_C(1) << at;
	}
	if (!(told & ~there) || told == d->levels_refused || levels_are_said(&d->facts))
		return;
	for (uint32_t i = 0; i < ENGINE_LEVELS; i++)
		if ((told | there) >> i & 1)
			size += (size_t)snprintf(levels + size, sizeof(levels) - size, "%s%s",
						 size ? "," : "", engine_level_names[i]);
	event.levels_set.levels = levels;
	d->levels_refused = 0;
	batch->essential = true;
	if (core_admit_own(d, batch, &event, &err) >= 0)
		return;
	d->levels_refused = told;
	log_line(LOG_WARN, "the levels %s of Kubernetes' labels are not taken: %s", levels,
		 err.text);
}

static const char *domains_of(const struct facts *facts, struct node_id id,
			      const struct engine_node *found, char ret[EVENT_TEXT_MAX + 1])
{
	size_t size = 0;

	ret[0] = '\0';
	for (uint32_t l = 0; l < facts->level_count; l++) {
		int at = ladder_index(facts_name(facts, facts->level[l]));
		const struct node *node = id.v ? node_get(facts, id) : NULL;
		const char *domain = node ? facts_name(facts, node->domain[l]) : "";

		if (at >= 0 && !(node && place_is_said(node, l)))
			domain = found->places[at];
		size += (size_t)snprintf(ret + size, EVENT_TEXT_MAX + 1 - size, "%s%s",
					 l ? "," : "", domain);
	}
	return ret;
}

/* --- what it is ------------------------------------------------------------------------------------------------------- */

static void set_node(struct daemon *d, struct batch *batch, const struct engine_node *found)
{
	struct event event = event_make(EVENT_NODE_SET, 0, "engine");
	struct event_node_set *e = &event.node_set;
	char domains[EVENT_TEXT_MAX + 1];

	e->name = found->name;
	e->gpus = found->gpus;
	e->model = found->gpus
			   ? node_model_name(found->product, (uint64_t)found->gpu_memory_mib << 20,
					     &batch->arena)
			   : "";
	e->driver = found->driver;
	e->cuda = found->gpus ? found->cuda : "";
	e->capability = found->gpus ? found->capability : 0;
	e->gpu_memory_mib = found->gpus ? found->gpu_memory_mib : 0;
	e->cpu_milli = found->cpu_milli > INT32_MAX ? INT32_MAX : found->cpu_milli;
	e->ram_mib = found->ram_mib > INT32_MAX ? INT32_MAX : found->ram_mib;
	e->domains = domains_of(&d->facts, facts_node_find(&d->facts, found->name), found, domains);
	admit(d, batch, &event, found->name);
}

static void mark_node(struct daemon *d, struct batch *batch, struct node_id id,
		      const struct engine_node *found)
{
	struct event event = event_make(EVENT_NODE_MARKED, 0, "engine");
	const struct node *node = node_get(&d->facts, id);
	char data[EVENT_TEXT_MAX + 1];

	event.node_marked.node = id.v;
	event.node_marked.labels = found->labels;
	event.node_marked.taints = found->taints;
	event.node_marked.class = node->class;
	event.node_marked.data = names_text(&d->facts, node->data, NODE_DATA_MAX, data);
	event.node_marked.partitioning = node->partitioning;
	event.node_marked.slices_only = node->slices_only;
	event.node_marked.capacity = found->spot ? CAPACITY_SPOT : node->capacity;
	admit(d, batch, &event, found->name);
}

static bool is_ours(const struct facts *facts, const struct node *node)
{
	return node->state == NODE_READY ||
	       ((node->state == NODE_CORDONED || node->state == NODE_DOWN ||
		 node->state == NODE_DRAINING) &&
		strncmp(facts_text(facts, node->reason), STATE_REASON, strlen(STATE_REASON)) == 0);
}

/* By a person, now or before a notice came; also while it is down since. */
static bool is_closed(const struct facts *facts, const struct node *node)
{
	return !is_ours(facts, node) || strstr(facts_text(facts, node->reason), CLOSED_BEFORE);
}

/* It goes, and sooner than is known: that is news also of a node that a person has closed. */
static bool goes_sooner(const struct daemon *d, const struct node *node,
			const struct engine_node *found)
{
	int64_t at_ms = found->goes_in_ms ? d->facts.now_ms + found->goes_in_ms : 0;

	if (node->state != NODE_DRAINING)
		return is_ours(&d->facts, node) || node->state == NODE_CORDONED ||
		       node->state == NODE_QUARANTINED;
	/* Told again of the same: its time runs since it was told first. */
	if (strncmp(facts_text(&d->facts, node->reason), found->reason, strlen(found->reason)) == 0)
		return false;
	return at_ms && (!node->drain_ms || at_ms < node->drain_ms);
}

static void set_state(struct daemon *d, struct batch *batch, struct node_id id,
		      const struct engine_node *found)
{
	struct event event = event_make(EVENT_NODE_STATE, 0, "engine");
	const struct node *node = node_get(&d->facts, id);
	enum node_state state = !found->ready     ? NODE_DOWN
				: found->goes     ? NODE_DRAINING
				: found->cordoned ? NODE_CORDONED
						  : NODE_READY;
	char reason[sizeof(found->reason) + sizeof(CLOSED_BEFORE)];
	bool closed;

	if (state == NODE_DRAINING ? !goes_sooner(d, node, found)
				   : node->state == state || !is_ours(&d->facts, node))
		return;
	closed = is_closed(&d->facts, node);
	snprintf(reason, sizeof(reason), "%s%s", state == NODE_READY ? "" : found->reason,
		 closed ? CLOSED_BEFORE : "");
	/* What a person closed stays closed when the notice is withdrawn. */
	if ((state == NODE_READY || state == NODE_CORDONED) && closed) {
		state = NODE_CORDONED;
		snprintf(reason, sizeof(reason), "%s", STAYS_CLOSED);
	}
	event.node_state.node = id.v;
	event.node_state.state = state;
	event.node_state.within_ms = state == NODE_DRAINING ? found->goes_in_ms : 0;
	event.node_state.reason = reason;
	admit(d, batch, &event, found->name);
}

/* GPUs that tasks of ours hold. */
static uint32_t held_mask(const struct facts *facts, struct node_id id)
{
	uint32_t held = 0;

	for (uint32_t a = 1; a <= facts->attempts.count; a++) {
		const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ a });

		if (attempt->state == ATTEMPT_OVER || attempt->state == ATTEMPT_FREE)
			continue;
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			const struct task *task = task_get(facts, attempt, rank);

			if (task->node.v == id.v && task_holds(task))
				held |= (uint32_t)task->gpu_mask;
		}
	}
	return held;
}

static uint32_t taken_mask(const struct facts *facts, struct node_id id)
{
	uint32_t taken = 0;

	for (uint32_t i = 0; i < node_get(facts, id)->gpu_count; i++)
		taken |= gpu_taken_by(facts, id, i) ? UINT32_C(1) << i : 0;
	return taken;
}

/* By what the engine says; "" = by pods that it does not name. */
static void set_aside(struct daemon *d, struct batch *batch, struct node_id id, uint32_t mask,
		      const char *by, const char *node)
{
	struct event event = event_make(EVENT_GPU_STATE, 0, "engine");
	char reason[sizeof(((struct engine_taken *)NULL)->by) + sizeof(GPU_TAKEN)];

	if (!mask)
		return;
	snprintf(reason, sizeof(reason), GPU_TAKEN "%s", by);
	event.gpu_state.node = id.v;
	event.gpu_state.mask = mask;
	event.gpu_state.set_aside = true;
	event.gpu_state.reason = by[0] ? reason : GPU_TAKEN_PODS;
	admit(d, batch, &event, node);
}

static void give_back(struct daemon *d, struct batch *batch, struct node_id id, uint32_t mask,
		      const char *node)
{
	struct event event = event_make(EVENT_GPU_STATE, 0, "engine");

	if (!mask)
		return;
	event.gpu_state.node = id.v;
	event.gpu_state.mask = mask;
	event.gpu_state.reason = "";
	admit(d, batch, &event, node);
}

/* Those of the mask that are taken already, and by others. */
static void say_anew(struct daemon *d, struct batch *batch, struct node_id id, uint32_t mask,
		     const char *by, const char *node)
{
	uint32_t changed = 0;

	for (uint32_t i = 0; by[0] && i < NODE_GPUS_MAX; i++) {
		const char *before = mask >> i & 1 ? gpu_taken_by(&d->facts, id, i) : NULL;

		if (before && strcmp(before, by) != 0)
			changed |= UINT32_C(1) << i;
	}
	set_aside(d, batch, id, changed, by, node);
}

/* From the last index down: those that nobody holds first, so that what is placed goes on undisturbed. */
static uint32_t choose(uint32_t from, uint32_t count)
{
	uint32_t chosen = 0;

	for (uint32_t i = NODE_GPUS_MAX; i-- > 0 && count > 0;) {
		if (!(from >> i & 1))
			continue;
		chosen |= UINT32_C(1) << i;
		count--;
	}
	return chosen;
}

/* Which ones are taken is known, and mostly by what. Those too that a task holds which will not get them: it is to go elsewhere. */
static void take_those(struct daemon *d, struct batch *batch, struct node_id id, uint32_t all,
		       const struct engine_node *found)
{
	uint32_t wanted = (uint32_t)found->gpus_taken_mask & all, rest = wanted;
	uint32_t aside = node_get(&d->facts, id)->set_aside_mask;

	for (uint32_t i = 0; i < found->taken_count; i++) {
		uint32_t mask = (uint32_t)found->taken[i].gpus & rest;

		rest &= ~mask;
		set_aside(d, batch, id, mask & ~aside, found->taken[i].by, found->name);
		say_anew(d, batch, id, mask & aside, found->taken[i].by, found->name);
	}
	set_aside(d, batch, id, rest & ~aside, found->gpus_taken_by, found->name);
	give_back(d, batch, id, taken_mask(&d->facts, id) & ~wanted, found->name);
}

/* How many are taken is known; all of a node are for one reason. */
static void take_away(struct daemon *d, struct batch *batch, struct node_id id,
		      const struct engine_node *found)
{
	const struct node *node = node_get(&d->facts, id);
	uint32_t all = node->gpu_count >= 32 ? UINT32_MAX : (UINT32_C(1) << node->gpu_count) - 1;
	uint32_t taken = taken_mask(&d->facts, id);
	uint32_t count = (uint32_t)__builtin_popcount(taken);

	if (found->gpus_by_index) {
		take_those(d, batch, id, all, found);
		return;
	}
	if (found->gpus_taken > count)
		set_aside(d, batch, id,
			  choose(all & ~node->set_aside_mask & ~held_mask(&d->facts, id),
				 found->gpus_taken - count),
			  found->gpus_taken_by, found->name);
	else
		give_back(d, batch, id, choose(taken, count - found->gpus_taken), found->name);
	say_anew(d, batch, id, taken, found->gpus_taken_by, found->name);
}

static void node_gone(struct daemon *d, struct batch *batch, struct node_id id, const char *name)
{
	struct event event = event_make(EVENT_NODE_STATE, 0, "engine");

	if (node_get(&d->facts, id)->state == NODE_GONE)
		return;
	event.node_state.node = id.v;
	event.node_state.state = NODE_GONE;
	event.node_state.reason = STATE_REASON "there is no such node any more";
	admit(d, batch, &event, name);
}

void take_node(struct daemon *d, struct batch *batch, struct node_message *message)
{
	const struct engine_node *found = &message->node;
	struct node_id id = facts_node_find(&d->facts, found->name);

	if (found->gone) {
		if (id.v)
			node_gone(d, batch, id, found->name);
	} else {
		set_levels(d, batch, found->levels);
		set_node(d, batch, found);
		id = facts_node_find(&d->facts, found->name);
	}
	if (id.v && !found->gone) {
		mark_node(d, batch, id, found);
		take_away(d, batch, id, found);
		set_state(d, batch, id, found);
	}
	free(message);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void take_nodes(struct daemon *d, struct batch *batch, struct nodes_message *message)
{
	qsort(message->names, message->count, sizeof(*message->names), compare_names);
	for (uint32_t id = 1; id <= d->facts.nodes.count; id++) {
		const char *name =
			facts_name(&d->facts, node_get(&d->facts, (struct node_id){ id })->name);
		char *key = (char *)(uintptr_t)name;

		if (!bsearch(&key, message->names, message->count, sizeof(*message->names),
			     compare_names))
			node_gone(d, batch, (struct node_id){ id }, name);
	}
	nodes_message_destroy(message);
}
