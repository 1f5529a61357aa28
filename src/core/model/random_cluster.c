/* SPDX-License-Identifier: Apache-2.0 */
/* Random prices and budgets; reservations in advance; parts, marks and slices of nodes; descriptions of a fabric: some makes of hosts,
 * figures of some levels. */
#include "base/arena.h"
#include "core/model/random_events.h"

static int64_t rate(struct random *r, uint32_t most)
{
	switch (random_below(r, 40)) {
	case 0: return -1;
	case 1: return INT64_MAX;
	case 2: return 0;
	default: return 1 + random_below(r, most);
	}
}

static void random_make(struct random *r, int64_t *ret)
{
	uint32_t at = 2;

	ret[0] = 1 + random_below(r, 8);
	ret[1] = random_below(r, 40) ? random_below(r, 5) : 99;
	while (at < 2 + MAKE_RATES)
		ret[at++] = rate(r, 500000);
	while (at < MAKE_FIELDS)
		ret[at++] = random_below(r, 3) ? 0 : (int64_t)random_below(r, 256);
}

void random_fabric(struct random *r, const struct facts *f, struct arena *arena,
		   struct event_fabric_set *e)
{
	static const char *const models[] = { "", "model-0", "model-0,model-1",
					      "model-2,,model-1" };
	uint32_t makes = random_below(r, 4), levels = random_below(r, 4),
		 nodes = random_below(r, 4);
	int64_t *make = arena_new_array(arena, int64_t, (size_t)makes *MAKE_FIELDS + 1),
		*level = arena_new_array(arena, int64_t, (size_t)levels *FABRIC_LEVEL_FIELDS + 1),
		*list = arena_new_array(arena, int64_t, (size_t)2 * nodes + 1);

	for (uint32_t i = 0; i < makes; i++)
		random_make(r, make + (size_t)i * MAKE_FIELDS);
	for (uint32_t i = 0; i < levels * FABRIC_LEVEL_FIELDS; i++)
		level[i] = i % FABRIC_LEVEL_FIELDS ? rate(r, 5000) : (int64_t)random_below(r, 4);
	for (uint32_t i = 0; i < nodes; i++) {
		list[i] = random_below(r, f->nodes.count + 2);
		list[nodes + i] = random_below(r, makes + 2);
	}
	e->levels = level;
	e->levels_count = levels * FABRIC_LEVEL_FIELDS;
	e->models = models[random_below(r, 4)];
	e->makes = make;
	e->makes_count = random_below(r, 30) ? makes * MAKE_FIELDS : makes;
	e->nodes = list;
	e->node_makes = list + nodes;
	e->nodes_count = nodes;
	e->node_makes_count = random_below(r, 30) ? nodes : 0;
	if (random_below(r, 2)) {
		int64_t *said = arena_new_array(arena, int64_t, nodes + 1);

		for (uint32_t i = 0; i < nodes; i++)
			said[i] = random_below(r, 20) ? (int64_t)random_below(r, 1 << 26) : -1;
		e->node_said = said;
		e->node_said_count = random_below(r, 30) ? nodes : 1;
	}
}

void random_node_found(struct random *r, const struct facts *f, struct arena *arena,
		       struct event_node_found *e)
{
	int64_t *groups = arena_new_array(arena, int64_t, 6);

	for (uint32_t i = 0; i < 6; i++)
		groups[i] = random_below(r, 30) ? (int64_t)random_below(r, 256) : -1;
	e->node = random_recent(r, f->nodes.count);
	e->given = random_below(r, FOUND_ALL + 2);
	e->islands = groups;
	e->islands_count = random_below(r, 4);
	e->switches = groups + 3;
	e->switches_count = random_below(r, 4);
	e->nics = random_upto(r, 9);
	e->nic_mbps = rate(r, 100000);
	e->nvlink_mbps = rate(r, 900000);
	e->reduces = random_below(r, 2);
	e->pcie_mbps = rate(r, 50000);
	e->source = random_upto(r, SOURCE_FILE);
}

void random_money(struct random *r, struct arena *arena, struct event *e)
{
	if (e->kind == EVENT_PRICE_SET) {
		e->price_set.model = arena_printf(arena, "model%u", random_below(r, 3));
		e->price_set.micro_per_hour = (int64_t)random_below(r, 101) - 1;
	} else {
		e->budget_set.queue = arena_printf(arena, "q%u", random_below(r, 6));
		e->budget_set.left_micro = (int64_t)random_below(r, 1001) - 1;
		e->budget_set.currency = "EUR";
	}
}

void random_data(struct random *r, struct arena *arena, struct event *e)
{
	static const char *const places[] = { "z0", "z1", "rack0", "any", "" };

	if (e->kind == EVENT_DATA_SET) {
		const char *first, *comma, *second;

		e->data_set.name = arena_printf(arena, "data%u", random_below(r, 4));
		e->data_set.size_mib = random_mostly(r, (int64_t)random_below(r, 4) * 100000);
		second = places[random_below(r, 5)];
		comma = random_below(r, 2) ? "," : "";
		first = places[random_below(r, 4)];
		e->data_set.places = arena_printf(arena, "%s%s%s", first, comma, second);
	} else {
		e->transfer_set.from = places[random_below(r, 5)];
		e->transfer_set.to = places[random_below(r, 5)];
		e->transfer_set.micro_per_gb = random_mostly(r, (int64_t)random_below(r, 100) - 1);
		e->transfer_set.mbps = random_mostly(r, (int64_t)random_below(r, 3) * 1000);
	}
}

void random_node_numa(struct random *r, const struct facts *f, struct arena *arena,
		      struct event_node_numa *e)
{
	int64_t *lists = arena_new_array(arena, int64_t, 6);

	e->node = random_recent(r, f->nodes.count);
	e->gpus = lists;
	e->cpu_milli = lists + 2;
	e->nics = lists + 4;
	lists[0] = random_mostly(r, 15);
	lists[1] = random_mostly(r, 240);
	lists[2] = random_upto(r, 32000);
	lists[3] = random_upto(r, 32000);
	lists[4] = random_upto(r, 2);
	e->gpus_count = random_below(r, 3);
	e->cpu_milli_count = random_below(r, 2) ? e->gpus_count : 0;
	e->nics_count = random_below(r, 2) ? e->gpus_count : 0;
	e->cpus = random_below(r, 2) ? "0-3;4-7" : "";
}

/* A list of a few labels, in any order, some twice. */
const char *random_labels(struct random *r, struct arena *arena, uint32_t most)
{
	const char *list = "";

	for (uint32_t count = random_below(r, most + 1); count > 0; count--) {
		uint32_t key = random_below(r, 5), value = random_below(r, 3);

		list = arena_printf(arena, "%s%sk%u=v%u", list, *list ? "," : "", key, value);
	}
	return list;
}

void random_node_marked(struct random *r, const struct facts *f, struct arena *arena,
			struct event_node_marked *e)
{
	e->node = random_recent(r, f->nodes.count);
	e->labels = random_labels(r, arena, 4);
	e->taints = random_labels(r, arena, 2);
	e->partitioning = random_upto(r, PARTITIONING_OFF);
	e->slices_only = !random_below(r, 4);
	e->class = random_upto(r, NODE_CLASS_INFERENCE);
	e->data = random_below(r, 2) ? "" : random_labels(r, arena, 4);
	e->capacity = random_upto(r, CAPACITY_SPOT);
}

const char *random_slice(struct random *r)
{
	static const char *const names[] = { "1g.10gb", "3g.40gb", "7g.80gb", "1g.10gb+me",
					     "a slice" };

	return random_below(r, 3) ? "" : names[random_below(r, 5)];
}

const int64_t *random_slices(struct random *r, struct arena *arena, uint32_t count,
			     uint32_t *ret_count)
{
	int64_t *slices = arena_new_array(arena, int64_t, (size_t)count + 1);

	*ret_count = 0;
	if (random_below(r, 3))
		return slices;
	for (uint32_t i = 0; i < count; i++)
		slices[i] = random_mostly(r, slice_at(random_below(r, SLICE_KINDS), i % 8));
	*ret_count = random_below(r, 20) ? count : count - 1;
	return slices;
}

/* Layouts that overlap now and then, of GPUs that are not there. */
void random_layouts(struct random *r, const struct facts *f, struct arena *arena,
		    struct event_layout_set *e)
{
	static const uint32_t known[] = { 0, SLICE_1G, SLICE_3G | SLICE_3G << 16,
					  SLICE_3G | SLICE_2G << 4, SLICE_7G };
	uint32_t count = random_below(r, 4);
	int64_t *lists = arena_new_array(arena, int64_t, (size_t)2 * count + 1);

	for (uint32_t i = 0; i < count; i++) {
		lists[i] = random_upto(r, 5);
		lists[count + i] = random_mostly(r, known[random_below(r, 5)]);
	}
	e->node = random_recent(r, f->nodes.count);
	e->gpus = lists;
	e->layouts = lists + count;
	e->gpus_count = count;
	e->layouts_count = random_below(r, 20) ? count : 0;
	e->reason = random_below(r, 2) ? "" : "asked for";
}

static const char *named(struct random *r, struct arena *arena, const char *what)
{
	return arena_printf(arena, "%s%u", what, random_below(r, 6));
}

void random_node_mask(struct random *r, const struct facts *f, struct arena *arena,
		      struct event_node_mask *e)
{
	int64_t *in = arena_new_array(arena, int64_t, 4), *out = arena_new_array(arena, int64_t, 4);

	e->name = named(r, arena, "mask");
	e->in = in;
	e->out = out;
	e->in_count = random_below(r, 4);
	e->out_count = random_below(r, 3);
	for (uint32_t i = 0; i < 4; i++) {
		in[i] = random_recent(r, f->nodes.count);
		out[i] = random_recent(r, f->nodes.count);
	}
	e->why = random_below(r, 2) ? "" : "node affinity leaves them";
	e->ended = random_below(r, 6) == 0;
}

void random_booking(struct random *r, const struct facts *f, struct arena *arena,
		    struct event_booking_set *e)
{
	uint32_t count = random_below(r, 4);
	int64_t *nodes = arena_new_array(arena, int64_t, (size_t)count + 1),
		*masks = arena_new_array(arena, int64_t, (size_t)count + 1);

	for (uint32_t i = 0; i < count; i++) {
		nodes[i] = random_recent(r, f->nodes.count);
		masks[i] = random_upto(r, 255);
	}
	e->name = named(r, arena, "book");
	e->queue = random_below(r, 4) ? named(r, arena, "q") : "";
	e->user = random_below(r, 4) ? "" : named(r, arena, "u");
	e->team = random_below(r, 4) ? "" : named(r, arena, "t");
	e->from_ms = random_upto(r, 500000);
	e->to_ms = random_upto(r, 900000);
	e->keep = random_upto(r, 1);
	e->model = random_below(r, 2) ? "" : "model-1";
	e->gpus = random_upto(r, 8);
	e->nodes = nodes;
	e->masks = masks;
	e->nodes_count = e->masks_count = count;
	e->reason = named(r, arena, "reason ");
}

void random_moves(struct random *r, const struct facts *f, struct arena *arena,
		  struct event_moves_planned *e)
{
	uint32_t count = random_below(r, 4);
	int64_t *jobs = arena_new_array(arena, int64_t, count + 1);

	for (uint32_t i = 0; i < count; i++)
		jobs[i] = random_recent(r, f->jobs.count);
	e->for_job = random_below(r, 3) ? random_recent(r, f->jobs.count) : 0;
	e->jobs = jobs;
	e->jobs_count = count;
	e->lost_gpu_ms = random_upto(r, 1000);
	e->gained_share = random_upto(r, 8 * GPU_SHARE);
	e->again_ms = random_mostly(r, 0);
}

/* Changes half a year apart, mostly. */
void random_zone(struct random *r, int64_t now_ms, struct arena *arena, struct event_zone_set *e)
{
	static const char *const names[] = { "Europe/Berlin", "America/New_York", "UTC",
					     "nowhere" };
	uint32_t count = random_below(r, 4);
	int64_t *at_ms = arena_new_array(arena, int64_t, (size_t)count + 1),
		*then_ms = arena_new_array(arena, int64_t, (size_t)count + 1);

	for (uint32_t i = 0; i < count; i++) {
		at_ms[i] =
			now_ms + i * INT64_C(15768000000) + (int64_t)random_below(r, 3) * 86400000;
		then_ms[i] = (int64_t)random_below(r, 30) * 3600000;
	}
	e->name = names[random_below(r, 4)];
	e->ahead_ms = ((int64_t)random_below(r, 25) - 12) * 3600000;
	e->at_ms = at_ms;
	e->at_ms_count = count;
	e->then_ms = then_ms;
	e->then_ms_count = random_below(r, 8) ? count : 0;
}
