/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/space.h"

#include <string.h>

#include "base/check.h"
#include "core/placement/numa.h"
#include "core/placement/parts.h"
#include "core/placement/speed.h"

void space_init(struct space *space)
{
	memset(space, 0, sizeof(*space));
}

void space_deinit(struct space *space)
{
	buf_deinit(&space->nodes.buf);
	buf_deinit(&space->rank_of.buf);
	buf_deinit(&space->domains.buf);
	buf_deinit(&space->traits.buf);
	buf_deinit(&space->named.buf);
	buf_deinit(&space->data_names.buf);
	buf_deinit(&space->data_ranks.buf);
	buf_deinit(&space->counts.buf);
	buf_deinit(&space->sets.buf);
	buf_deinit(&space->fabric.buf);
	buf_deinit(&space->log.buf);
	buf_deinit(&space->gpu_parts.buf);
	buf_deinit(&space->part_sets.buf);
	buf_deinit(&space->parts_log.buf);
	buf_deinit(&space->numa_rooms.buf);
	buf_deinit(&space->numa_log.buf);
	memset(space, 0, sizeof(*space));
}

static void buf_copy(struct buf *to, const struct buf *from)
{
	array_resize(to, from->size, 1);
	if (from->size)
		memcpy(to->data, from->data, from->size);
}

void space_copy(struct space *to, const struct space *from)
{
	struct space old = *to;

	*to = *from;
	to->log_count = to->parts_log_count = to->numa_log_count = 0;
	to->nodes.buf = old.nodes.buf;
	to->rank_of.buf = old.rank_of.buf;
	to->domains.buf = old.domains.buf;
	to->traits.buf = old.traits.buf;
	to->named.buf = old.named.buf;
	to->data_names.buf = old.data_names.buf;
	to->data_ranks.buf = old.data_ranks.buf;
	to->counts.buf = old.counts.buf;
	to->sets.buf = old.sets.buf;
	to->fabric.buf = old.fabric.buf;
	to->log.buf = old.log.buf;
	to->gpu_parts.buf = old.gpu_parts.buf;
	to->part_sets.buf = old.part_sets.buf;
	to->parts_log.buf = old.parts_log.buf;
	to->numa_rooms.buf = old.numa_rooms.buf;
	to->numa_log.buf = old.numa_log.buf;
	buf_copy(&to->nodes.buf, &from->nodes.buf);
	buf_copy(&to->rank_of.buf, &from->rank_of.buf);
	buf_copy(&to->domains.buf, &from->domains.buf);
	buf_copy(&to->traits.buf, &from->traits.buf);
	buf_copy(&to->named.buf, &from->named.buf);
	buf_copy(&to->data_names.buf, &from->data_names.buf);
	buf_copy(&to->data_ranks.buf, &from->data_ranks.buf);
	buf_copy(&to->counts.buf, &from->counts.buf);
	buf_copy(&to->sets.buf, &from->sets.buf);
	buf_copy(&to->fabric.buf, &from->fabric.buf);
	buf_copy(&to->gpu_parts.buf, &from->gpu_parts.buf);
	buf_copy(&to->part_sets.buf, &from->part_sets.buf);
	buf_copy(&to->numa_rooms.buf, &from->numa_rooms.buf);
}

/* --- questions ------------------------------------------------------------------------------------ */

int32_t space_rank(const struct space *space, uint32_t node)
{
	if (node == 0 || node >= space->rank_of.buf.size / sizeof(int32_t))
		return RANK_NONE;
	return space->rank_of.at[node];
}

int64_t space_free_share(const struct space *space, uint32_t domain, uint64_t classes)
{
	return space_free_gpus(space, domain, classes) * GPU_SHARE + space->open_share;
}

int64_t shape_share(const struct space *space, const struct shape *shape, uint32_t tasks)
{
	uint32_t share = 0;

	if (!shape_is_part(shape))
		return shape_gpus(shape, tasks) * GPU_SHARE;
	if (shape->gpu_part)
		return (int64_t)shape->gpu_part * tasks;
	for (uint32_t i = 0; i < space->traits_count; i++) {
		const struct traits *traits = &space->traits.at[i];
		struct gpu_part part = shape_part(shape, traits->gpu_memory_mib);

		if (part.share > share && traits_suit(traits, shape))
			share = part.share;
	}
	return (int64_t)share * tasks;
}

uint32_t share_tasks(const struct space *space, const struct shape *shape, int64_t room,
		     uint32_t most)
{
	int64_t one;

	if (shape->role_count)
		return shape_tasks_within(shape, roles_gpus, room > 0 ? room / GPU_SHARE : 0, most);
	one = shape_share(space, shape, 1);
	if (one && room / one < most)
		return room > 0 ? (uint32_t)(room / one) : 0;
	return most;
}

static size_t counts_at(const struct space *space, uint32_t domain, uint32_t class)
{
	return ((size_t)domain * space->class_count + class) * (space->gpus_max + 1);
}

static size_t set_at(const struct space *space, uint32_t class, uint32_t free)
{
	return ((size_t)class * (space->gpus_max + 1) + free) * bits_words(space->node_count);
}

const uint32_t *space_counts(const struct space *space, uint32_t domain, uint32_t class)
{
	return space->counts.at + counts_at(space, domain, class);
}

const uint64_t *space_set(const struct space *space, uint32_t class, uint32_t free)
{
	return space->sets.at + set_at(space, class, free);
}

bool space_node_suits(const struct space *space, uint32_t rank, const struct shape *shape)
{
	return traits_suit(&space->traits.at[space_at(space, rank)->traits], shape);
}

static struct traits_named named_of(const struct space *space)
{
	return (struct traits_named){ space->named.at,
				      (uint32_t)(space->named.buf.size / sizeof(uint32_t)) };
}

static bool names_known(const struct traits_named *named, const struct name_id *list, uint32_t room)
{
	for (uint32_t i = 0; i < room && list[i].v; i++)
		if (!traits_named_has(named, list[i]))
			return false;
	return true;
}

/* Its place in the list; beyond the last = no wish names it. */
static uint32_t data_index(const struct space *space, struct name_id name)
{
	uint32_t count = (uint32_t)(space->data_names.buf.size / sizeof(uint32_t)), at = 0;

	while (at < count && space->data_names.at[at] != name.v)
		at++;
	return at;
}

const uint64_t *space_data(const struct space *space, struct name_id name)
{
	uint32_t count = (uint32_t)(space->data_names.buf.size / sizeof(uint32_t)),
		 at = data_index(space, name);

	return at < count ? space->data_ranks.at + (size_t)at * bits_row(space->node_count) : NULL;
}

bool space_knows(const struct space *space, const struct shape *shape)
{
	struct traits_named named = named_of(space);

	if (shape_is_part(shape) && !space->parts)
		return false;
	for (uint32_t i = 0; i < SHAPE_DATA_MAX && shape->data[i].v; i++)
		if (!space_data(space, shape->data[i]))
			return false;
	return names_known(&named, shape->regions, SHAPE_REGIONS_MAX) &&
	       names_known(&named, shape->labels, SHAPE_LABELS_MAX) &&
	       names_known(&named, shape->tolerates, SHAPE_LABELS_MAX);
}

uint32_t space_classes_of(const struct space *space, const struct shape *shape, uint64_t *ret_mask)
{
	uint32_t count = 0;

	*ret_mask = 0;
	for (uint32_t i = 0; i < space->traits_count; i++) {
		uint32_t class = i < CLASS_MIXED ? i : CLASS_MIXED;

		if (*ret_mask >> class & 1 || !traits_suit(&space->traits.at[i], shape))
			continue;
		*ret_mask |= UINT64_C(1) << class;
		count++;
	}
	return count;
}

int64_t space_free_gpus(const struct space *space, uint32_t domain, uint64_t classes)
{
	int64_t free = 0;

	if (space->class_count < CLASSES_MAX)
		classes &= (UINT64_C(1) << space->class_count) - 1;
	for (; classes; classes &= classes - 1) {
		const uint32_t *counts =
			space_counts(space, domain, (uint32_t)__builtin_ctzll(classes));

		for (uint32_t f = 1; f <= space->gpus_max; f++)
			free += (int64_t)counts[f] * f;
	}
	return free;
}

int64_t space_all_gpus(const struct space *space)
{
	return space->gpus_usable;
}

/* --- changes -------------------------------------------------------------------------------------- */

/* Puts the node into (+1) or out of (-1) the counts and sets, as its free GPUs are now. */
static void node_count_in(struct space *space, uint32_t rank, bool in)
{
	const struct place_node *n = space_at(space, rank);
	uint32_t free = bits_count(place_node_free(n));
	uint64_t *set;

	if (!n->ready)
		return;
	for (uint32_t level = 0; level <= space->level_count; level++) {
		uint32_t *count =
			space->counts.at + counts_at(space, n->domain[level], n->class) + free;

		*count = in ? *count + 1 : *count - 1;
	}
	set = space->sets.at + set_at(space, n->class, free);
	if (in)
		bits_add(set, space->node_count, rank);
	else
		bits_remove(set, space->node_count, rank);
}

static struct space_undo node_now(const struct space *space, uint32_t rank)
{
	const struct place_node *n = space_at(space, rank);

	return (struct space_undo){ .rank = rank,
				    .usable = n->usable,
				    .busy = n->busy,
				    .promised = n->promised,
				    .blocked = n->blocked,
				    .cpu_free = n->cpu_free,
				    .ram_free = n->ram_free,
				    .ready = n->ready,
				    .shut = n->shut };
}

static struct space_undo *node_log(struct space *space, uint32_t rank)
{
	size_t room = space->log.buf.size / sizeof(struct space_undo);

	if (space->log_count == room)
		array_resize(&space->log.buf, room ? room * 2 : 64, sizeof(struct space_undo));
	space->log.at[space->log_count] = node_now(space, rank);
	return &space->log.at[space->log_count++];
}

static void node_put(struct space *space, uint32_t rank, const struct space_undo *to)
{
	struct place_node *n = &space->nodes.at[rank];
	bool moves = n->ready != to->ready ||
		     bits_count(place_node_free(n)) !=
			     bits_count(to->usable & ~to->busy & ~to->promised & ~to->blocked);

	if (moves)
		node_count_in(space, rank, false);
	if (n->usable != to->usable)
		space->gpus_usable +=
			(int64_t)bits_count(to->usable) - (int64_t)bits_count(n->usable);
	n->usable = to->usable;
	n->busy = to->busy;
	n->promised = to->promised;
	n->blocked = to->blocked;
	n->shut = to->shut;
	n->cpu_free = to->cpu_free;
	n->ram_free = to->ram_free;
	n->ready = to->ready;
	if (moves)
		node_count_in(space, rank, true);
	if (space->parts)
		parts_follow(space, rank);
}

/* More of it is held or promised, or less. Of a GPU held in parts the bit in the mask says that there are some. */
static void node_hold(struct space *space, uint32_t rank, const struct hold *hold, bool promise,
		      bool more)
{
	struct space_undo to = node_now(space, rank), *undo = node_log(space, rank);
	uint32_t *mask = promise ? &to.promised : &to.busy;

	if (hold->part && !(hold->mask & space_at(space, rank)->all)) {
		/* The node has fewer GPUs than when the task was placed: of one that is not there nothing is held. */
	} else if (hold->part) {
		bool any = parts_change(space, rank, hold, promise, more);

		undo->parts = 1;
		*mask = any ? *mask | hold->mask : *mask & ~hold->mask;
	} else {
		CHECK((*mask & hold->mask) == (more ? 0 : hold->mask));
		*mask ^= hold->mask;
	}
	if (hold->aligned && space->numa)
		undo->numa = numa_change(space, rank, hold, more);
	to.cpu_free -= more ? hold->cpu_milli : -hold->cpu_milli;
	to.ram_free -= more ? hold->ram_mib : -hold->ram_mib;
	node_put(space, rank, &to);
}

void space_take(struct space *space, uint32_t rank, const struct hold *hold)
{
	node_hold(space, rank, hold, false, true);
}

void space_give(struct space *space, uint32_t rank, const struct hold *hold)
{
	node_hold(space, rank, hold, false, false);
}

void space_promise(struct space *space, uint32_t rank, const struct hold *hold)
{
	node_hold(space, rank, hold, true, true);
}

void space_unpromise(struct space *space, uint32_t rank, const struct hold *hold)
{
	node_hold(space, rank, hold, true, false);
}

void space_block(struct space *space, uint32_t rank, uint32_t mask, bool shut)
{
	struct space_undo to = node_now(space, rank);

	to.blocked = mask;
	to.shut = shut && (to.ready || to.shut);
	to.ready = (to.ready || space_at(space, rank)->shut) && !to.shut;
	if (to.blocked == space_at(space, rank)->blocked && to.shut == space_at(space, rank)->shut)
		return;
	node_log(space, rank);
	node_put(space, rank, &to);
}

void space_close(struct space *space, uint32_t rank)
{
	struct space_undo to = node_now(space, rank);

	node_log(space, rank);
	to.usable = 0;
	to.ready = to.shut = false;
	node_put(space, rank, &to);
}

void space_open(struct space *space, uint32_t rank, uint32_t usable)
{
	struct space_undo to = node_now(space, rank);

	node_log(space, rank);
	to.usable = space_at(space, rank)->all & usable;
	to.ready = true;
	node_put(space, rank, &to);
}

void space_idle(struct space *space)
{
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		struct space_undo to = node_now(space, rank), *undo = node_log(space, rank);

		if (space->parts)
			undo->parts = parts_clear(space, rank);
		if (space->numa)
			undo->numa = numa_clear(space, rank);
		to.busy = 0;
		to.promised = 0;
		to.blocked = 0;
		to.ready = to.ready || to.shut;
		to.shut = false;
		to.cpu_free = space_at(space, rank)->cpu_all;
		to.ram_free = space_at(space, rank)->ram_all;
		node_put(space, rank, &to);
	}
}

void space_clear(struct space *space)
{
	space_idle(space);
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		struct space_undo to = node_now(space, rank);

		to.usable = space_at(space, rank)->all;
		to.ready = true;
		node_put(space, rank, &to);
	}
}

uint32_t space_mark(const struct space *space)
{
	return space->log_count;
}

void space_rollback(struct space *space, uint32_t mark)
{
	CHECK(mark <= space->log_count);
	while (space->log_count > mark) {
		const struct space_undo *undo = &space->log.at[--space->log_count];

		if (undo->parts)
			parts_rollback(space, undo->parts);
		if (undo->numa)
			numa_rollback(space, undo->numa);
		node_put(space, undo->rank, undo);
	}
}

void space_commit(struct space *space)
{
	space->log_count = space->parts_log_count = space->numa_log_count = 0;
}

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
	struct traits_named named = named_of(space);
	struct traits traits = { 0 };

	traits_read(&traits, facts, node, &named);
	traits.make = make;
	for (uint32_t i = 0; i < space->traits_count; i++)
		if (memcmp(&space->traits.at[i], &traits, sizeof(traits)) == 0)
			return i;
	array_resize(&space->traits.buf, space->traits_count + 1, sizeof(traits));
	space->traits.at[space->traits_count] = traits;
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
	enum { EACH = SHAPE_REGIONS_MAX + 2 * SHAPE_LABELS_MAX };
	uint32_t count = 0;

	for (uint32_t id = 1; id <= facts->shapes.count; id++) {
		const struct shape *shape = shape_get(facts, (struct shape_id){ id });

		if (space_knows(space, shape))
			continue;
		array_resize(&space->named.buf, (size_t)count + EACH, sizeof(uint32_t));
		for (uint32_t i = 0; i < SHAPE_REGIONS_MAX && shape->regions[i].v; i++)
			count = named_add(space->named.at, count, shape->regions[i]);
		for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->labels[i].v; i++)
			count = named_add(space->named.at, count, shape->labels[i]);
		for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->tolerates[i].v; i++)
			count = named_add(space->named.at, count, shape->tolerates[i]);
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
			uint32_t at = data_index(space, node->data[i]);

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
	buf_clear(&space->counts.buf);
	buf_clear(&space->sets.buf);
	buf_clear(&space->fabric.buf);
	buf_clear(&space->gpu_parts.buf);
	buf_clear(&space->part_sets.buf);
	buf_clear(&space->numa_rooms.buf);
	space->numa = false;
	space->numa_log_count = 0;
	space->parts = false;
	space->open_share = 0;
	space->parts_log_count = 0;
	space->class_count = space->traits_count = space->gpus_max = space->node_count =
		space->log_count = 0;
	space->gpus_usable = 0;
	space->islands = space->several_models = space->priced = false;
}

void space_build(struct space *space, const struct facts *facts)
{
	ARRAY(uint32_t) order = { .buf = BUF_INIT }, room = { .buf = BUF_INIT };
	uint32_t count = 0;

	clear(space);
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
	for (uint32_t rank = 0; rank < count; rank++) {
		space->nodes.at[rank].node = order.at[rank];
		space->rank_of.at[order.at[rank]] = (int32_t)rank;
		node_build(space, facts, node_get(facts, (struct node_id){ order.at[rank] }),
			   &space->nodes.at[rank]);
	}
	space->class_count = space->traits_count < CLASSES_MAX ? space->traits_count : CLASSES_MAX;
	domains_build(space, facts);
	data_build(space, facts);
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
			!name_same(space->traits.at[i].model, space->traits.at[0].model);
	}
	parts_build(space, facts);
	for (uint32_t rank = 0; rank < count; rank++) {
		node_count_in(space, rank, true);
		space->gpus_usable += bits_count(space_at(space, rank)->usable);
	}
	buf_deinit(&order.buf);
	buf_deinit(&room.buf);
}

void space_node_refresh(struct space *space, const struct facts *facts, struct node_id node)
{
	int32_t rank = space_rank(space, node.v);
	struct place_node to;
	struct space_undo undo;

	CHECK(rank != RANK_NONE);
	to = *space_at(space, (uint32_t)rank);
	node_state_read(&to, node_get(facts, node));
	undo = node_now(space, (uint32_t)rank);
	undo.ready = to.ready;
	undo.usable = to.usable;
	node_log(space, (uint32_t)rank);
	node_put(space, (uint32_t)rank, &undo);
}

/* --- checks ---------------------------------------------------------------------------------------- */

static uint32_t counted(const struct space *space, uint32_t domain, uint32_t class, uint32_t free)
{
	const struct domain *d = &space->domains.at[domain];
	uint32_t count = 0;

	for (uint32_t rank = d->first; rank < d->end; rank++) {
		const struct place_node *n = space_at(space, rank);

		count += n->ready && n->class == class && bits_count(place_node_free(n)) == free;
	}
	return count;
}

void space_verify(const struct space *space)
{
	int64_t usable = 0;

	for (uint32_t domain = 0; domain < space->domain_count; domain++)
		for (uint32_t class = 0; class < space->class_count; class ++)
			for (uint32_t free = 0; free <= space->gpus_max; free++)
				CHECK(space_counts(space, domain, class)[free] ==
				      counted(space, domain, class, free));
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *n = space_at(space, rank);
		uint32_t free = bits_count(place_node_free(n));
		const uint64_t *set = space_set(space, n->class, free);

		usable += bits_count(n->usable);
		CHECK((n->usable & ~n->all) == 0);
		CHECK((bits_next(set, space->node_count, rank, rank + 1) == rank) == n->ready);
	}
	CHECK(usable == space->gpus_usable);
	if (space->parts)
		parts_verify(space);
}

bool space_same(const struct space *a, const struct space *b)
{
	return a->node_count == b->node_count && a->domain_count == b->domain_count &&
	       a->class_count == b->class_count && a->nodes.buf.size == b->nodes.buf.size &&
	       a->counts.buf.size == b->counts.buf.size && a->sets.buf.size == b->sets.buf.size &&
	       (a->nodes.buf.size == 0 ||
		memcmp(a->nodes.at, b->nodes.at, a->nodes.buf.size) == 0) &&
	       (a->counts.buf.size == 0 ||
		memcmp(a->counts.at, b->counts.at, a->counts.buf.size) == 0) &&
	       (a->sets.buf.size == 0 || memcmp(a->sets.at, b->sets.at, a->sets.buf.size) == 0) &&
	       a->fabric.buf.size == b->fabric.buf.size &&
	       a->numa_rooms.buf.size == b->numa_rooms.buf.size &&
	       (a->numa_rooms.buf.size == 0 ||
		memcmp(a->numa_rooms.at, b->numa_rooms.at, a->numa_rooms.buf.size) == 0) &&
	       parts_same(a, b);
}
