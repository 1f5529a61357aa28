/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/space.h"

#include <string.h>

#include "base/check.h"
#include "core/placement/numa.h"
#include "core/placement/parts.h"
#include "core/placement/space_inner.h"
#include "core/placement/speed.h"

/* --- build ---------------------------------------------------------------------------------------- */

/* Order of nodes: names of the domains from the widest level on, then the own name. Nodes without a
 * domain come first at that level (its name is ""). */
static int node_compare(const struct facts *facts, uint32_t a, uint32_t b)
{
	const struct node *na = node_get(facts, (struct node_id){ a }),
			  *nb = node_get(facts, (struct node_id){ b });
	int order;

	for (uint32_t level = 0; level < facts->level_count; level++) {
		if (name_same(na->domain[level], nb->domain[level]))
			continue;
		order = strcmp(facts_name(facts, na->domain[level]),
			       facts_name(facts, nb->domain[level]));
		if (order)
			return order;
	}
	if (name_same(na->name, nb->name))
		return a < b ? -1
			     : a > b; /* names are unique; keeps the order total all the same */
	return strcmp(facts_name(facts, na->name), facts_name(facts, nb->name));
}

/* Merge sort from `from` into itself with `to` as room; stable, so it needs no luck with equal ones. */
static void nodes_sort(const struct facts *facts, uint32_t *from, uint32_t *room, uint32_t count)
{
	uint32_t half = count / 2, i = 0, j = half, n = 0;

	if (count < 2)
		return;
	nodes_sort(facts, from, room, half);
	nodes_sort(facts, from + half, room, count - half);
	while (i < half && j < count)
		room[n++] = node_compare(facts, from[j], from[i]) < 0 ? from[j++] : from[i++];
	while (i < half)
		room[n++] = from[i++];
	while (j < count)
		room[n++] = from[j++];
	memcpy(from, room, n * sizeof(*from));
}

/* Traits get the same number whatever order nodes came in: they are numbered by first rank. */
static uint32_t traits_find(struct space *space, const struct facts *facts, const struct node *node,
			    uint32_t make)
{
	struct traits_named named = space_named(space);
	struct traits traits;

	memset(&traits, 0, sizeof traits);
	traits_read(&traits, facts, node, &named);
	traits.make = make;
	for (uint32_t i = 0; i < space->traits_count; i++)
		if (memcmp(&space->traits.at[i], &traits, sizeof(traits)) == 0)
			return i;
	array_resize(&space->traits.buf, space->traits_count + 1, sizeof(traits));
	memcpy(&space->traits.at[space->traits_count], &traits, sizeof traits);
	return space->traits_count++;
}

/* Puts the number into the sorted list, which has `count` of them; how many it then has. */
static uint32_t named_add(uint32_t *list, uint32_t count, struct name_id name)
{
	uint32_t at = count;

	while (at > 0 && list[at - 1] > name.v)
		at--;
	if (at > 0 && list[at - 1] == name.v)
		return count;
	memmove(&list[at + 1], &list[at], (count - at) * sizeof(*list));
	list[at] = name.v;
	return count + 1;
}

/* Wishes are some hundreds; few name a label at all, and then mostly one that another has named. */
static void named_build(struct space *space, const struct facts *facts)
{
	enum { EACH = SHAPE_REGIONS_MAX + 2 * SHAPE_LABELS_MAX + ROLES_MAX + 2 };
	uint32_t count = 0;

	for (uint32_t id = 1; id <= facts->shapes.count; id++) {
		const struct shape *shape = shape_get(facts, (struct shape_id){ id });
		struct name_id mask;

		if (space_knows(space, shape))
			continue;
		array_resize(&space->named.buf, (size_t)count + EACH, sizeof(uint32_t));
		for (uint32_t i = 0; i < SHAPE_REGIONS_MAX && shape->regions[i].v; i++)
			count = named_add(space->named.at, count, shape->regions[i]);
		for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->labels[i].v; i++)
			count = named_add(space->named.at, count, shape->labels[i]);
		for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->tolerates[i].v; i++)
			count = named_add(space->named.at, count, shape->tolerates[i]);
		for (uint32_t at = 0; (mask = shape_mask_next(shape, &at)).v;)
			count = named_add(space->named.at, count, mask);
		array_resize(&space->named.buf, count, sizeof(uint32_t));
	}
}

/* Which nodes keep what wishes name. After the nodes. */
static void data_build(struct space *space, const struct facts *facts)
{
	uint32_t count = 0, row = bits_row(space->node_count);

	for (uint32_t id = 1; id <= facts->shapes.count; id++) {
		const struct shape *shape = shape_get(facts, (struct shape_id){ id });

		if (!shape->data[0].v)
			continue;
		array_resize(&space->data_names.buf, (size_t)count + SHAPE_DATA_MAX,
			     sizeof(uint32_t));
		for (uint32_t i = 0; i < SHAPE_DATA_MAX && shape->data[i].v; i++)
			count = named_add(space->data_names.at, count, shape->data[i]);
		array_resize(&space->data_names.buf, count, sizeof(uint32_t));
	}
	array_resize(&space->data_ranks.buf, (size_t)count * row + 1, sizeof(uint64_t));
	for (uint32_t rank = 0; count && rank < space->node_count; rank++) {
		const struct node *node =
			node_get(facts, (struct node_id){ space_at(space, rank)->node });

		for (uint32_t i = 0; i < NODE_DATA_MAX && node->data[i].v; i++) {
			uint32_t at = space_data_index(space, node->data[i]);

			if (at < count)
				space->data_ranks.at[(size_t)at * row + rank / 64] |= UINT64_C(1)
										      << rank % 64;
		}
	}
}

static uint32_t gpus_mask(uint32_t count)
{
	return count >= 32 ? UINT32_MAX : (UINT32_C(1) << count) - 1;
}

static void node_state_read(struct place_node *n, const struct node *node)
{
	n->ready = node->state == NODE_READY;
	n->usable = n->ready ? n->all & ~node->set_aside_mask : 0;
}

static void node_build(struct space *space, const struct facts *facts, const struct node *node,
		       struct place_node *n)
{
	uint32_t rest;

	n->all = gpus_mask(node->gpu_count);
	n->cpu_all = n->cpu_free = node->cpu_milli ? (int64_t)node->cpu_milli : SPACE_UNLIMITED;
	n->ram_all = n->ram_free = node->ram_mib ? (int64_t)node->ram_mib : SPACE_UNLIMITED;
	n->make = speed_make(space, facts, node);
	n->traits = traits_find(space, facts, node, n->make);
	n->class = (uint8_t)(n->traits < CLASS_MIXED ? n->traits : CLASS_MIXED);
	rest = n->all;
	for (uint32_t i = 0; i < ISLANDS_MAX && node->island_mask[i]; i++) {
		if (!(node->island_mask[i] & rest))
			continue;
		n->island[n->island_count++] = node->island_mask[i] & rest;
		rest &= ~node->island_mask[i];
	}
	if (n->island_count == 0) {
		n->island[n->island_count++] = n->all;
	} else if (rest && n->island_count < ISLANDS_MAX) {
		n->island[n->island_count++] = rest;
	} else {
		n->island[n->island_count - 1] |= rest;
	}
	space->islands |= n->island_count > 1;
	if (node->gpu_count > space->gpus_max)
		space->gpus_max = node->gpu_count;
	node_state_read(n, node);
}

static bool domain_begins(const struct facts *facts, const struct space *space, uint32_t rank,
			  uint32_t level)
{
	const struct node *before, *here;

	if (rank == 0)
		return true;
	before = node_get(facts, (struct node_id){ space_at(space, rank - 1)->node });
	here = node_get(facts, (struct node_id){ space_at(space, rank)->node });
	for (uint32_t i = 0; i < level; i++)
		if (!name_same(before->domain[i], here->domain[i]))
			return true;
	return false;
}

static void domains_build(struct space *space, const struct facts *facts)
{
	space->domain_count = 0;
	for (uint32_t level = 0; level <= space->level_count; level++) {
		space->level_first[level] = space->domain_count;
		for (uint32_t rank = 0; rank < space->node_count; rank++) {
			struct place_node *n = &space->nodes.at[rank];
			struct domain *domain;

			if (domain_begins(facts, space, rank, level)) {
				array_resize(&space->domains.buf, space->domain_count + 1,
					     sizeof(*domain));
				domain = &space->domains.at[space->domain_count++];
				domain->first = rank;
				domain->level = (uint8_t)level;
				if (level)
					domain->name = node_get(facts, (struct node_id){ n->node })
							       ->domain[level - 1];
			}
			n->domain[level] = space->domain_count - 1;
			space->domains.at[n->domain[level]].end = rank + 1;
		}
		if (space->node_count == 0 &&
		    level == 0) { /* the cluster exists without nodes too */
			array_resize(&space->domains.buf, 1, sizeof(struct domain));
			space->domain_count = 1;
		}
	}
	space->level_first[space->level_count + 1] = space->domain_count;
}

static void clear(struct space *space)
{
	buf_clear(&space->nodes.buf);
	buf_clear(&space->rank_of.buf);
	buf_clear(&space->domains.buf);
	buf_clear(&space->traits.buf);
	buf_clear(&space->named.buf);
	buf_clear(&space->data_names.buf);
	buf_clear(&space->data_ranks.buf);
	buf_clear(&space->stands.buf);
	buf_clear(&space->moves.buf);
	buf_clear(&space->counts.buf);
	memset(space->free_gpus, 0, sizeof(space->free_gpus));
	buf_clear(&space->sets.buf);
	buf_clear(&space->odd.buf);
	buf_clear(&space->fabric.buf);
	buf_clear(&space->gpu_parts.buf);
	buf_clear(&space->part_sets.buf);
	buf_clear(&space->numa_rooms.buf);
	space->numa = false;
	space->numa_log_count = 0;
	space->parts = space->slices = false;
	space->open_share = space->slice_share = 0;
	space->parts_log_count = 0;
	space->class_count = space->traits_count = space->gpus_max = space->node_count =
		space->log_count = 0;
	space->islands = space->several_models = space->priced = false;
}

void space_build(struct space *space, const struct facts *facts)
{
	ARRAY(uint32_t) order = { .buf = BUF_INIT }, room = { .buf = BUF_INIT };
	uint32_t count = 0;

	clear(space);
	memset(&space->demand, 0, sizeof(space->demand));
	array_resize(&order.buf, facts->nodes.count, sizeof(uint32_t));
	array_resize(&room.buf, facts->nodes.count, sizeof(uint32_t));
	array_resize(&space->rank_of.buf, (size_t)facts->nodes.count + 1, sizeof(int32_t));
	for (uint32_t id = 1; id <= facts->nodes.count; id++) {
		space->rank_of.at[id] = RANK_NONE;
		if (node_get(facts, (struct node_id){ id })->state != NODE_GONE)
			order.at[count++] = id;
	}
	nodes_sort(facts, order.at, room.at, count);
	named_build(space, facts);
	space->node_count = count;
	space->level_count = facts->level_count;
	speed_begin(space, facts);
	array_resize(&space->nodes.buf, count, sizeof(struct place_node));
	space->gpus = 0;
	for (uint32_t rank = 0; rank < count; rank++) {
		space->nodes.at[rank].node = order.at[rank];
		space->rank_of.at[order.at[rank]] = (int32_t)rank;
		node_build(space, facts, node_get(facts, (struct node_id){ order.at[rank] }),
			   &space->nodes.at[rank]);
		space->gpus += bits_count(space->nodes.at[rank].all);
	}
	space->class_count = space->traits_count < CLASSES_MAX ? space->traits_count : CLASSES_MAX;
	domains_build(space, facts);
	data_build(space, facts);
	moves_build(space, facts);
	speed_settle(space);
	numa_build(space, facts);
	array_resize(&space->counts.buf,
		     (size_t)space->domain_count * space->class_count * (space->gpus_max + 1),
		     sizeof(uint32_t));
	array_resize(&space->sets.buf,
		     (size_t)space->class_count * (space->gpus_max + 1) * bits_words(count),
		     sizeof(uint64_t));
	for (uint32_t i = 0; i < space->traits_count; i++) {
		space->priced |= space->traits.at[i].price_micro > 0;
		space->several_models |=
			!name_same(space->traits.at[i].model, space->traits.at[0].model) ||
			space->traits.at[i].spot != space->traits.at[0].spot;
		space->spot |= space->traits.at[i].spot != 0;
	}
	parts_build(space, facts);
	array_resize(&space->odd.buf, bits_words(count), sizeof(uint64_t));
	for (uint32_t rank = count; rank-- > 0;)
		space->class_first[space_at(space, rank)->class] = rank;
	for (uint32_t rank = 0; rank < count; rank++) {
		space_node_count_in(space, rank, true);
		space_odd_follow(space, rank);
	}
	buf_deinit(&order.buf);
	buf_deinit(&room.buf);
}

bool space_layout_refresh(struct space *space, const struct facts *facts, struct node_id node)
{
	int32_t rank = space_rank(space, node.v);

	if (!space->slices || rank == RANK_NONE)
		return false;
	space_node_count_in(space, (uint32_t)rank, false);
	slices_read(space, (uint32_t)rank, node_get(facts, node));
	space_node_count_in(space, (uint32_t)rank, true);
	parts_follow(space, (uint32_t)rank);
	space_odd_follow(space, (uint32_t)rank);
	return true;
}

void space_node_refresh(struct space *space, const struct facts *facts, struct node_id node)
{
	int32_t rank = space_rank(space, node.v);
	struct place_node to;
	struct space_undo undo;

	CHECK(rank != RANK_NONE);
	to = *space_at(space, (uint32_t)rank);
	node_state_read(&to, node_get(facts, node));
	undo = space_node_now(space, (uint32_t)rank);
	undo.ready = to.ready;
	undo.usable = to.usable;
	space_node_log(space, (uint32_t)rank);
	space_node_put(space, (uint32_t)rank, &undo, true);
}
