/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of GPUs: how they are told, and how an admin cuts GPUs. */
#include "api/slices.h"

#include <stdlib.h>
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

const bool *slices_wishes(const struct facts *f, struct arena *arena)
{
	bool *wishes = arena_new_array(arena, bool, f->shapes.count + 1);

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		if ((job_is_waiting(job) || job_is_live(job)) && shape_get(f, job->shape)->slice)
			wishes[job->shape.v] = true;
	}
	return wishes;
}

static bool is_asked(const struct facts *f, const bool *wishes, uint32_t wish)
{
	for (uint32_t id = 1; id <= f->shapes.count; id++)
		if (wishes[id] && shape_get(f, (struct shape_id){ id })->slice == wish)
			return true;
	return false;
}

static bool is_held(const struct tally *tally, uint32_t row, uint32_t slice)
{
	for (uint32_t at = tally->gpu_part[row]; at; at = tally->parts[at - 1].next)
		if (tally->parts[at - 1].slice == slice)
			return true;
	return false;
}

struct slices_idle slices_idle(const struct facts *f, const struct tally *tally, uint32_t node_id,
			       const bool *wishes)
{
	const struct node *node = node_get(f, (struct node_id){ node_id });
	const struct geometry *geometry = node_geometry(f, node);
	struct slices_idle sum = { 0, 0 };

	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++)
		for (uint32_t start = 0; node->layout[gpu] && start < LAYOUT_SLOTS; start++) {
			const uint32_t kind = layout_kind(node->layout[gpu], start);
			const struct slice_profile *p = geometry_profile(geometry, kind);
			uint32_t share;

			if (!p || is_held(tally, (node_id - 1) * NODE_GPUS_MAX + gpu,
					  slice_at(kind, start)))
				continue;
			share = slice_share(profile_wish(p));
			sum.idle += share;
			sum.unasked += is_asked(f, wishes, profile_wish(p)) ? 0 : share;
		}
	return sum;
}

static int counts_compare(const void *a, const void *b)
{
	const struct slice_count *x = a, *y = b;
	int order = strcmp(x->model, y->model);

	return order ? order : strcmp(x->slice, y->slice);
}

static struct slice_count *count_row(struct slice_count *rows, uint32_t *count, const char *model,
				     const struct slice_profile *profile)
{
	char name[SLICE_TEXT_MAX];
	uint32_t at = 0;

	slice_wish_text(profile_wish(profile), name);
	while (at < *count &&
	       (strcmp(rows[at].model, model) != 0 || strcmp(rows[at].slice, name) != 0))
		at++;
	if (at == SLICE_COUNTS_MAX)
		return NULL;
	if (at == *count) {
		rows[at] = (struct slice_count){ .model = model };
		memcpy(rows[at].slice, name, sizeof(name));
		(*count)++;
	}
	return &rows[at];
}

static void gpu_count_slices(const struct facts *f, const struct tally *tally, uint32_t id,
			     uint32_t gpu, struct slice_count *rows, uint32_t *count)
{
	const struct node *node = node_get(f, (struct node_id){ id });
	const struct geometry *geometry = node_geometry(f, node);
	bool takes_work = node->state == NODE_READY && !(node->set_aside_mask >> gpu & 1);

	for (uint32_t start = 0; node->layout[gpu] && start < LAYOUT_SLOTS; start++) {
		const uint32_t kind = layout_kind(node->layout[gpu], start);
		const struct slice_profile *p = geometry_profile(geometry, kind);
		struct slice_count *row =
			p ? count_row(rows, count, facts_name(f, node->model), p) : NULL;

		if (!row)
			continue;
		if (is_held(tally, (id - 1) * NODE_GPUS_MAX + gpu, slice_at(kind, start)))
			row->held++;
		else if (takes_work)
			row->free++;
		else
			row->unusable++;
	}
}

uint32_t slices_count(const struct facts *f, const struct tally *tally,
		      struct slice_count ret[SLICE_COUNTS_MAX])
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		for (uint32_t gpu = 0; node->state != NODE_GONE && gpu < node->gpu_count; gpu++)
			gpu_count_slices(f, tally, id, gpu, ret, &count);
	}
	qsort(ret, count, sizeof(*ret), counts_compare);
	return count;
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
