/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of GPUs in scenarios: `mig: [[1g.10gb, 1g.10gb], []]` and `slices_only` of a node; which slice a running task has. */
#include "base/check.h"
#include "core/partitioning/geometry.h"
#include "sim/reader.h"
#include "sim/runner.h"

static const struct geometry *geometry_here(const struct scenario_node *node)
{
	return geometry_of(node->model, (uint32_t)node->gpu_memory_mib);
}

static int read_layout(struct reader *r, const struct conf *c, const struct scenario_node *node,
		       int64_t *ret)
{
	const char *text = "";
	uint32_t layout;
	struct err why;

	if (c->type != CONF_LIST)
		return conf_error(r->err, r->file, c,
				  "mig: a list of slices for each GPU, as in [[1g.10gb], []]");
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i]->type != CONF_SCALAR)
			return conf_error(r->err, r->file, c->items[i],
					  "mig: the name of a slice is expected, such as 1g.10gb");
		text = arena_printf(r->arena, "%s%s%s", text, i ? "," : "", c->items[i]->text);
	}
	if (layout_parse(geometry_here(node), text, &layout, &why) < 0)
		return conf_error(r->err, r->file, c, "mig: %s", why.text);
	*ret = layout;
	return 0;
}

int scenario_read_slices(struct reader *r, const struct conf *item, struct scenario_node *node)
{
	const struct conf *list = conf_find(item, "mig");
	int64_t *layouts = arena_new_array(r->arena, int64_t, NODE_GPUS_MAX);
	bool allowed = false;
	int rc = reader_bool(r, item, "slices_only", &node->slices_only);

	if (rc == 0)
		rc = reader_bool(r, item, "mig_allowed", &allowed);
	if (allowed)
		node->partitioning = PARTITIONING_AUTO;

	if (rc < 0 || !list)
		return rc;
	if (list->type != CONF_LIST || list->count > node->gpus)
		return conf_error(r->err, r->file, list,
				  "mig: a list of slices for each GPU, of which there are %u",
				  node->gpus);
	if (!geometry_here(node))
		return conf_error(r->err, r->file, list,
				  "mig: GPUs of model \"%s\" can't be cut into slices",
				  node->model);
	for (size_t i = 0; rc == 0 && i < list->count; i++)
		rc = read_layout(r, list->items[i], node, &layouts[i]);
	node->layouts = layouts;
	node->layout_count = (uint32_t)list->count;
	return rc;
}

/* The instance with number `index` of the layout, -1 = the first of this kind that is not in `taken`; 0 = none such. */
static uint32_t instance_find(uint32_t layout, uint32_t kind, int32_t index, uint32_t taken)
{
	int32_t at = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++) {
		if (!layout_kind(layout, start))
			continue;
		if (layout_kind(layout, start) == kind && !(taken >> start & 1) &&
		    (index < 0 || index == at))
			return slice_at(kind, start);
		at++;
	}
	return 0;
}

uint32_t run_slice_take(struct run_node *node, const struct scenario_job *job, uint32_t gpu,
			int32_t index)
{
	uint32_t wish = 0, slice;
	const struct slice_profile *profile;

	if (!slice_wish_parse(job->slice, &wish) || gpu >= node->from->layout_count)
		return 0;
	profile = geometry_wished(geometry_here(node->from), wish);
	slice = profile ? instance_find((uint32_t)node->from->layouts[gpu], profile->kind, index,
					node->slices[gpu])
			: 0;
	if (slice)
		node->slices[gpu] |= UINT32_C(1) << slice_at_start(slice);
	return slice;
}

struct gpu_part run_slice_part(const struct run_node *node, uint32_t slice)
{
	const struct geometry *geometry = geometry_here(node->from);
	const struct slice_profile *profile = geometry_profile(geometry, slice_at_kind(slice));

	CHECK(profile);
	return (struct gpu_part){ slice_share(profile_wish(profile)), profile->memory_mib };
}
