/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and GPUs. */
#include <stdlib.h>
#include <string.h>
#include "api/call.h"
#include "api/order.h"
#include "api/slices.h"
#include "api/tally.h"
#include "base/check.h"
#include "core/model/taken.h"
#include "core/placement/demand.h"
#include "base/clock.h"

static struct named *nodes_by_name(struct call *call, uint32_t *ret_count)
{
	const struct facts *f = call->facts;
	struct named *order = arena_new_array(call->arena, struct named, f->nodes.count + 1);

	*ret_count = 0;
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (node->name.v && node->state != NODE_GONE)
			order[(*ret_count)++] = (struct named){ facts_name(f, node->name), id };
	}
	named_sort(order, *ret_count);
	return order;
}

static void count_add(struct buf *out, const char *key, struct gpu_count count)
{
	out_object(out, key);
	out_int(out, "total", count.total);
	out_int(out, "allocated", count.allocated);
	out_int(out, "free", count.free);
	out_int(out, "unusable", count.unusable);
	out_int(out, "shared", count.shared);
	out_share(out, "open", count.open_share);
	out_int(out, "cut", count.cut);
	out_end(out, '}');
}

/* A job among those before the place in the node's list of what its GPUs hold. */
static void job_once_add(struct buf *out, uint32_t job, uint32_t *seen, uint32_t *count)
{
	for (uint32_t i = 0; i < *count; i++)
		if (seen[i] == job)
			return;
	seen[(*count)++] = job;
	out_int(out, NULL, job);
}

/* Jobs with GPUs on the node, each once. (One without GPUs is not counted by GPU; the job itself says where it is.) */
static void node_jobs_add(struct buf *out, const struct tally *tally, const struct node *node,
			  uint32_t id)
{
	const size_t first = (size_t)(id - 1) * NODE_GPUS_MAX;
	uint32_t room = NODE_GPUS_MAX, count = 0, *seen;

	for (uint32_t i = 0; i < node->gpu_count; i++)
		for (uint32_t at = tally->gpu_part[first + i]; at; at = tally->parts[at - 1].next)
			room++;
	seen = calloc(room, sizeof *seen);
	CHECK(seen);
	out_list(out, "jobs");
	for (uint32_t i = 0; i < node->gpu_count; i++) {
		uint32_t part = tally->gpu_part[first + i];

		if (tally->gpu_job[first + i])
			job_once_add(out, tally->gpu_job[first + i], seen, &count);
		for (; part; part = tally->parts[part - 1].next)
			job_once_add(out, tally->parts[part - 1].job, seen, &count);
	}
	out_end(out, ']');
	free(seen);
}

static void numa_add(struct buf *out, const struct facts *f, const struct node *node)
{
	char cpus[REASON_MAX_BYTES + 1];

	out_list(out, "numa");
	for (uint32_t i = 0; i < NUMA_MAX && node->numa_gpus[i]; i++) {
		out_object(out, NULL);
		out_list(out, "gpus");
		for (uint32_t gpu = 0; gpu < NODE_GPUS_MAX; gpu++)
			if (node->numa_gpus[i] >> gpu & 1)
				out_int(out, NULL, gpu);
		out_end(out, ']');
		out_int(out, "cpu_milli", node->numa_cpu_milli[i]);
		out_text(out, "cpus", node_numa_cpus(f, node, i, cpus));
		out_int(out, "nics", node->numa_nics[i]);
		out_end(out, '}');
	}
	out_end(out, ']');
}

/* GPUs that something uses which Fairlead did not place. */
static void taken_add(struct buf *out, const struct facts *f, struct node_id id)
{
	out_list(out, "taken");
	for (uint32_t gpu = 0; gpu < node_get(f, id)->gpu_count; gpu++) {
		const char *by = gpu_taken_by(f, id, gpu);

		if (!by)
			continue;
		out_object(out, NULL);
		out_int(out, "index", gpu);
		out_text(out, "by", by);
		out_end(out, '}');
	}
	out_end(out, ']');
}

static void node_add(struct buf *out, const struct facts *f, const struct tally *tally, uint32_t id,
		     int64_t fragment, const bool *wishes)
{
	const struct slices_idle slices = slices_idle(f, tally, id, wishes);
	const struct node *node = node_get(f, (struct node_id){ id });
	char list[EVENT_TEXT_MAX + 1];

	out_object(out, NULL);
	out_text(out, "name", facts_name(f, node->name));
	out_text(out, "state", node_state_name(node->state));
	out_text(out, "reason", facts_text(f, node->reason));
	out_int(out, "drain_ms", node->drain_ms);
	out_int(out, "maintenance_from_ms", node->window_from_ms);
	out_int(out, "maintenance_to_ms", node->window_to_ms);
	out_text(out, "maintenance_reason", facts_text(f, node->window_reason));
	out_bool(out, "simulated", node->simulated);
	out_text(out, "model", facts_name(f, node->model));
	out_text(out, "driver", facts_name(f, node->driver));
	out_text(out, "cuda", facts_name(f, node->cuda));
	out_text(out, "class", node_class_name(node->class));
	out_text(out, "partitioning", partitioning_name(node->partitioning));
	out_bool(out, "slices_only", node->slices_only);
	out_text(out, "capacity", capacity_name(node->capacity));
	out_text(out, "labels", names_text(f, node->label, LABELS_MAX, list));
	out_text(out, "taints", names_text(f, node->taint, TAINTS_MAX, list));
	out_text(out, "data", names_text(f, node->data, NODE_DATA_MAX, list));
	numa_add(out, f, node);
	out_int(out, "gpu_memory_mib", node->gpu_memory_mib);
	out_int(out, "cpu_milli", node->cpu_milli);
	out_int(out, "ram_mib", node->ram_mib);
	out_list(out, "domains");
	for (uint32_t level = 0; level < f->level_count && level < LEVELS_MAX; level++)
		out_text(out, NULL, facts_name(f, node->domain[level]));
	out_end(out, ']');
	count_add(out, "gpus", tally_node(tally, f, (struct node_id){ id }));
	out_share(out, "fragment", fragment);
	out_share(out, "slices_idle", slices.idle);
	out_share(out, "slices_unasked", slices.unasked);
	taken_add(out, f, (struct node_id){ id });
	node_jobs_add(out, tally, node, id);
	out_end(out, '}');
}

void handle_node_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct tally tally;
	struct buf out = BUF_INIT;
	uint32_t count;
	const struct named *order = nodes_by_name(call, &count);
	int64_t *fragments;
	const bool *wishes = slices_wishes(f, call->arena);

	fragments = arena_new_array(call->arena, int64_t, f->nodes.count + 1);
	demand_fragments(f, call->arena, fragments);
	tally_init(&tally, f);
	out_object(&out, NULL);
	out_list(&out, "nodes");
	for (uint32_t i = 0; i < count; i++)
		node_add(&out, f, &tally, order[i].id, fragments[order[i].id - 1], wishes);
	out_end(&out, ']');
	out_list(&out, "levels");
	for (uint32_t level = 0; level < f->level_count && level < LEVELS_MAX; level++)
		out_text(&out, NULL, facts_name(f, f->level[level]));
	out_end(&out, ']');
	out_end(&out, '}');
	tally_deinit(&tally);
	call_reply(call, 200, &out);
}

static const char *job_user(const struct facts *f, uint32_t job)
{
	return job ? facts_name(f, job_get(f, (struct job_id){ job })->user) : "";
}

static void parts_add(struct buf *out, const struct facts *f, const struct tally *tally,
		      uint32_t row)
{
	out_list(out, "parts");
	for (uint32_t at = tally->gpu_part[row]; at; at = tally->parts[at - 1].next) {
		const struct tally_part *part = &tally->parts[at - 1];

		out_object(out, NULL);
		out_int(out, "job", part->job);
		out_text(out, "user", job_user(f, part->job));
		out_share(out, "share", part->share);
		out_int(out, "memory_mib", part->mib);
		out_end(out, '}');
	}
	out_end(out, ']');
}

static void gpu_add(struct buf *out, const struct facts *f, const struct tally *tally,
		    uint32_t node_id, uint32_t index)
{
	const struct node *node = node_get(f, (struct node_id){ node_id });
	const uint32_t row = (node_id - 1) * NODE_GPUS_MAX + index, job = tally->gpu_job[row];
	const bool aside = node->set_aside_mask >> index & 1;
	const struct gpu_part open = tally_open(tally, f, (struct node_id){ node_id }, index);
	const struct gpu_record *record =
		row + 1 <= f->gpus.count ? table_get(&f->gpus, row + 1) : NULL;

	out_object(out, NULL);
	out_text(out, "node", facts_name(f, node->name));
	out_int(out, "index", index);
	out_text(out, "model", facts_name(f, node->model));
	out_int(out, "memory_mib", node->gpu_memory_mib);
	out_text(out, "state",
		 node->layout[index] && !aside && node->state == NODE_READY ? "cut"
		 : tally->gpu_part[row]                                     ? "shared"
		 : job                                                      ? "allocated"
		 : aside                                                    ? "set-aside"
		 : node->state == NODE_READY                                ? "free"
									    : "unusable");
	out_text(out, "reason", aside && record ? facts_text(f, record->reason) : "");
	out_int(out, "job", job);
	out_text(out, "user", job_user(f, job));
	parts_add(out, f, tally, row);
	out_share(out, "open", open.share);
	out_int(out, "open_mib", open.mib);
	slices_add(out, f, tally, node_id, index);
	out_bool(out, "simulated", node->simulated);
	out_end(out, '}');
}

void handle_gpu_list(struct call *call)
{
	const struct facts *f = call->facts;
	const char *only = call_query(call, "node");
	struct tally tally;
	struct err err = { 0 };
	struct buf out = BUF_INIT;
	uint32_t count;
	const struct named *order = nodes_by_name(call, &count);

	if (only && !facts_node_find(f, only).v) {
		err_set(&err, ERR_NOT_FOUND,
			"there is no node \"%s\"; `fairlead nodes` lists those there are", only);
		call_fail(call, &err);
		return;
	}
	tally_init(&tally, f);
	out_object(&out, NULL);
	out_list(&out, "gpus");
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < node_get(f, (struct node_id){ order[i].id })->gpu_count;
		     k++)
			if (!only || !strcmp(only, order[i].name))
				gpu_add(&out, f, &tally, order[i].id, k);
	out_end(&out, ']');
	out_end(&out, '}');
	tally_deinit(&tally);
	call_reply(call, 200, &out);
}

/* --- changes ------------------------------------------------------------------------------------------------------------- */

int node_find(struct call *call, struct node_id *ret, struct err *err)
{
	const char *name = call->match.param[0];

	*ret = facts_node_find(call->facts, name);
	if (!ret->v)
		return err_set(err, ERR_NOT_FOUND,
			       "there is no node \"%s\"; `fairlead nodes` lists those there are",
			       name);
	return 0;
}

void handle_node_state(struct call *call)
{
	static const struct {
		const char *word;
		enum node_state state;
	} words[] = {
		{ "ready", NODE_READY },
		{ "cordoned", NODE_CORDONED },
		{ "draining", NODE_DRAINING },
	};
	struct event event = call_event(call, EVENT_NODE_STATE);
	const struct conf *body, *within;
	const char *state = "";
	struct err err = { 0 };
	struct node_id id;
	bool given;

	if (node_find(call, &id, &err) < 0 || call_body(call, &body, &err) < 0 ||
	    body_text(body, "state", 32, &state, &given, &err) < 0 ||
	    body_text(body, "reason", EVENT_TEXT_MAX - 1, &event.node_state.reason, &given, &err) <
		    0) {
		call_fail(call, &err);
		return;
	}
	within = conf_find(body, "within");
	if (within && conf_duration(&err, "request body", within, "within",
				    &event.node_state.within_ms) < 0) {
		call_fail(call, &err);
		return;
	}
	event.node_state.node = id.v;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].word, state)) {
			event.node_state.state = words[i].state;
			if (words[i].state == NODE_CORDONED && !*event.node_state.reason)
				event.node_state
					.reason = /* else one that the daemon cordoned would be the daemon's to set ready */
					arena_printf(call->arena, "cordoned by %s", event.actor);
			call_send(call, &event);
			return;
		}
	err_set(&err, ERR_INVALID, "node state \"%s\": expected ready, cordoned or draining",
		state);
	call_fail(call, &err);
}

/* From now on where nothing else is said. */
void handle_node_maintenance(struct call *call)
{
	struct event event = call_event(call, EVENT_NODE_WINDOW);
	struct event_node_window *e = &event.node_window;
	const struct conf *body;
	struct err err = { 0 };
	struct node_id id;
	bool given, from, to, lasts, off = false;
	int64_t now_ms = clock_wall_ms(), end_ms = 0;

	e->from_ms = now_ms;
	if (node_find(call, &id, &err) < 0 || call_body(call, &body, &err) < 0 ||
	    body_moment(body, "from", now_ms, &e->from_ms, &from, &err) < 0 ||
	    body_moment(body, "to", now_ms, &e->to_ms, &to, &err) < 0 ||
	    body_moment(body, "for", e->from_ms, &end_ms, &lasts, &err) < 0 ||
	    body_bool(body, "off", &off, &given, &err) < 0 ||
	    body_text(body, "reason", EVENT_TEXT_MAX - 1, &e->reason, &given, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (off && (from || to || lasts || given)) {
		err_set(&err, ERR_INVALID,
			"\"off\" calls maintenance off: it goes with no other field");
		call_fail(call, &err);
		return;
	}
	if (!off && to == lasts) {
		err_set(&err, ERR_INVALID,
			"the request body needs \"to\", when the maintenance ends, or \"for\", how long it lasts");
		call_fail(call, &err);
		return;
	}
	e->node = id.v;
	e->to_ms = to ? e->to_ms : end_ms;
	if (off)
		e->from_ms = e->to_ms = 0;
	call_send(call, &event);
}

static int capacity_read(const struct conf *body, int64_t *ret, struct err *err)
{
	const char *text = "";
	uint8_t number;
	bool given;

	if (body_text(body, "capacity", 32, &text, &given, err) < 0)
		return -(int)err->code;
	if (given && (!capacity_find(text, &number) || number > CAPACITY_SPOT))
		return err_set(err, ERR_INVALID, "capacity \"%s\": expected on-demand or spot",
			       text);
	if (given)
		*ret = number;
	return 0;
}

void handle_node_marks(struct call *call)
{
	struct event event = call_event(call, EVENT_NODE_MARKED);
	char labels[EVENT_TEXT_MAX + 1], taints[EVENT_TEXT_MAX + 1], data[EVENT_TEXT_MAX + 1];
	const struct facts *f = call->facts;
	const struct conf *body;
	const struct node *node;
	const char *class = "any", *cuts = "fixed";
	struct err err = { 0 };
	struct node_id id;
	uint8_t number;
	bool given, only = false;

	if (node_find(call, &id, &err) < 0)
		goto fail;
	node = node_get(f, id);
	event.node_marked.node = id.v;
	event.node_marked.labels =
		arena_strdup(call->arena, names_text(f, node->label, LABELS_MAX, labels));
	event.node_marked.taints =
		arena_strdup(call->arena, names_text(f, node->taint, TAINTS_MAX, taints));
	event.node_marked.data =
		arena_strdup(call->arena, names_text(f, node->data, NODE_DATA_MAX, data));
	event.node_marked.class = node->class;
	event.node_marked.partitioning = node->partitioning;
	event.node_marked.slices_only = node->slices_only;
	event.node_marked.capacity = node->capacity;
	only = node->slices_only;
	if (call_body(call, &body, &err) < 0 ||
	    body_text(body, "labels", EVENT_TEXT_MAX, &event.node_marked.labels, &given, &err) <
		    0 ||
	    body_text(body, "taints", EVENT_TEXT_MAX, &event.node_marked.taints, &given, &err) <
		    0 ||
	    body_text(body, "data", EVENT_TEXT_MAX, &event.node_marked.data, &given, &err) < 0 ||
	    body_text(body, "class", 32, &class, &given, &err) < 0)
		goto fail;
	if (given && !node_class_find(class, &number)) {
		err_set(&err, ERR_INVALID, "node class \"%s\": expected any, training or inference",
			class);
		goto fail;
	}
	if (given)
		event.node_marked.class = number;
	if (body_text(body, "partitioning", 32, &cuts, &given, &err) < 0)
		goto fail;
	if (given && !partitioning_find(cuts, &number)) {
		err_set(&err, ERR_INVALID, "partitioning \"%s\": expected fixed, auto or off",
			cuts);
		goto fail;
	}
	if (given)
		event.node_marked.partitioning = number;
	if (body_bool(body, "slices_only", &only, &given, &err) < 0 ||
	    capacity_read(body, &event.node_marked.capacity, &err) < 0)
		goto fail;
	event.node_marked.slices_only = only;
	call_send(call, &event);
	return;
fail:
	call_fail(call, &err);
}

int gpu_mask_read(struct call *call, const struct conf *body, struct node_id id, int64_t *ret,
		  struct err *err)
{
	const struct node *node = node_get(call->facts, id);
	const int64_t all = (int64_t)(((uint64_t)1 << node->gpu_count) - 1);
	int64_t index = 0;
	bool by_index, by_mask;

	if (!node->gpu_count)
		return err_set(err, ERR_INVALID, "node \"%s\" has no GPUs",
			       facts_name(call->facts, node->name));
	if (body_int(body, "index", 0, INT32_MAX, &index, &by_index, err) < 0 ||
	    body_int(body, "mask", 1, all, ret, &by_mask, err) < 0)
		return -(int)ERR_INVALID;
	if (by_index && index >= node->gpu_count)
		return err_set(err, ERR_NOT_FOUND,
			       "node \"%s\" has no GPU %lld; its GPUs are 0 to %u",
			       facts_name(call->facts, node->name), (long long)index,
			       node->gpu_count - 1u);
	if (by_index == by_mask)
		return err_set(
			err, ERR_INVALID,
			"the request body needs \"index\" (one GPU, from 0) or \"mask\" (bit i stands for GPU i)");
	if (by_index)
		*ret = (int64_t)1 << index;
	return 0;
}

void handle_gpu_set(struct call *call)
{
	struct event event = call_event(call, EVENT_GPU_STATE);
	const struct conf *body;
	struct err err = { 0 };
	struct node_id id;
	bool given, aside = false;

	if (node_find(call, &id, &err) < 0 || call_body(call, &body, &err) < 0 ||
	    gpu_mask_read(call, body, id, &event.gpu_state.mask, &err) < 0 ||
	    body_text(body, "reason", EVENT_TEXT_MAX - 1, &event.gpu_state.reason, &given, &err) <
		    0 ||
	    body_bool(body, "set_aside", &aside, &given, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!given) {
		err_set(&err, ERR_INVALID, "the request body needs \"set_aside\", true or false");
		call_fail(call, &err);
		return;
	}
	if (taken_by(event.gpu_state.reason) ||
	    strncmp(event.gpu_state.reason, GPU_SILENT, strlen(GPU_SILENT)) == 0) {
		err_set(&err, ERR_INVALID,
			"a reason that begins with \"" GPU_TAKEN "\" or \"" GPU_SILENT
			"\" is Fairlead's own, and would end by itself; use other words");
		call_fail(call, &err);
		return;
	}
	event.gpu_state.node = id.v;
	event.gpu_state.set_aside = aside;
	call_send(call, &event);
}
