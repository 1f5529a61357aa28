/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of GPUs: how they are told, and how an admin cuts GPUs. */
#include "api/slices.h"

#include <string.h>

#include "core/partitioning/geometry.h"

static const struct geometry *node_geometry(const struct facts *f, const struct node *node)
{
	return geometry_of(facts_name(f, node->model), node->gpu_memory_mib);
}

void slices_add(struct buf *out, const struct facts *f, const struct tally *tally, uint32_t node_id,
		uint32_t index)
{
	const struct node *node = node_get(f, (struct node_id){ node_id });
	const struct geometry *geometry = node_geometry(f, node);
	const uint32_t row = (node_id - 1) * NODE_GPUS_MAX + index;

	out_list(out, "slices");
	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++) {
		const uint32_t kind = layout_kind(node->layout[index], start);
		const struct slice_profile *profile = geometry_profile(geometry, kind);
		char name[SLICE_TEXT_MAX];
		uint32_t job = 0;

		if (!kind || !profile)
			continue;
		for (uint32_t at = tally->gpu_part[row]; at; at = tally->parts[at - 1].next)
			if (tally->parts[at - 1].slice == slice_at(kind, start))
				job = tally->parts[at - 1].job;
		out_object(out, NULL);
		out_text(out, "slice", slice_wish_text(profile_wish(profile), name));
		out_int(out, "start", start);
		out_int(out, "memory_mib", profile->memory_mib);
		out_int(out, "job", job);
		out_end(out, '}');
	}
	out_end(out, ']');
}

void handle_gpu_cut(struct call *call)
{
	struct event event = call_event(call, EVENT_LAYOUT_SET);
	struct event_layout_set *e = &event.layout_set;
	int64_t gpus[NODE_GPUS_MAX], layouts[NODE_GPUS_MAX], mask = 0;
	const struct facts *f = call->facts;
	const struct geometry *geometry;
	const struct conf *body;
	const char *slices = "";
	struct err err = { 0 };
	struct node_id id;
	uint32_t layout = 0;
	bool given;

	if (node_find(call, &id, &err) < 0 || call_body(call, &body, &err) < 0 ||
	    gpu_mask_read(call, body, id, &mask, &err) < 0 ||
	    body_text(body, "reason", EVENT_TEXT_MAX - 1, &e->reason, &given, &err) < 0 ||
	    body_text(body, "slices", EVENT_TEXT_MAX, &slices, &given, &err) < 0)
		goto fail;
	if (!given) {
		err_set(&err, ERR_INVALID,
			"the request body needs \"slices\": names such as 3g.40gb with commas between, or \"\" for a whole GPU");
		goto fail;
	}
	geometry = node_geometry(f, node_get(f, id));
	if (*slices && !geometry) {
		err_set(&err, ERR_INVALID, "node \"%s\": GPUs of model %s can't be cut into slices",
			facts_name(f, node_get(f, id)->name),
			facts_name(f, node_get(f, id)->model));
		goto fail;
	}
	if (*slices && layout_parse(geometry, slices, &layout, &err) < 0)
		goto fail;
	for (; mask; mask &= mask - 1) {
		gpus[e->gpus_count] = __builtin_ctzll((uint64_t)mask);
		layouts[e->gpus_count++] = layout;
	}
	e->node = id.v;
	e->layouts_count = e->gpus_count;
	e->gpus = gpus;
	e->layouts = layouts;
	call_send(call, &event);
	return;
fail:
	call_fail(call, &err);
}
