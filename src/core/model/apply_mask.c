/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of nodes: whoever runs the work knows rules that the core does not (what pods on a node want of others, host ports, volumes), and says
 * by name which nodes are left for jobs of one kind. A node has a bit for each mask, so that a change costs what has changed.
 */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"

uint32_t facts_mask_find(const struct facts *f, struct name_id name)
{
	for (uint32_t row = 1; name.v && row <= f->masks.count; row++)
		if (name_same(mask_get(f, row)->name, name))
			return row;
	return 0;
}

uint32_t mask_nodes(const struct facts *f, uint32_t row)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		count += node->state != NODE_GONE && node_is_in(node, row);
	}
	return count;
}

static uint32_t row_for(struct facts *f, const char *name)
{
	uint32_t row = facts_mask_find(f, facts_name_find(f, name));

	if (row)
		return row;
	for (row = 1; row <= f->masks.count; row++)
		if (!mask_get(f, row)->name.v)
			return row;
	return f->masks.count < MASKS_MAX ? table_add(&f->masks) : 0;
}

static void bit_put(struct facts *f, uint32_t node, uint32_t row, bool in)
{
	uint32_t bit = UINT32_C(1) << (row - 1) % 32;

	if (node_is_in(node_get(f, (struct node_id){ node }), row) != in)
		node_edit(f, (struct node_id){ node })->mask_bits[(row - 1) / 32] ^= bit;
}

static void mask_end(struct facts *f, uint32_t row)
{
	if (!row)
		return;
	for (uint32_t id = 1; id <= f->nodes.count; id++)
		bit_put(f, id, row, false);
	facts_put_text(f, mask_get(f, row)->why, "");
	memset(table_edit(&f->masks, row), 0, sizeof(struct node_mask));
}

static bool nodes_exist(const struct facts *f, const int64_t *nodes, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!id_exists(&f->nodes, nodes[i]))
			return false;
	return true;
}

void apply_node_mask(struct facts *f, const struct event_node_mask *e)
{
	struct node_mask made;
	uint32_t row;

	if (!*e->name || !nodes_exist(f, e->in, e->in_count) ||
	    !nodes_exist(f, e->out, e->out_count))
		return;
	if (e->ended) {
		mask_end(f, facts_mask_find(f, facts_name_find(f, e->name)));
		return;
	}
	row = row_for(f, e->name);
	if (!row)
		return;
	made.name = facts_intern(f, e->name);
	made.why = facts_put_text(f, mask_get(f, row)->why, e->why);
	*(struct node_mask *)table_edit(&f->masks, row) = made;
	for (uint32_t i = 0; i < e->in_count; i++)
		bit_put(f, (uint32_t)e->in[i], row, true);
	for (uint32_t i = 0; i < e->out_count; i++)
		bit_put(f, (uint32_t)e->out[i], row, false);
}
