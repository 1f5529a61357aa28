/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/space.h"

#include <string.h>

#include "base/check.h"
#include "core/placement/numa.h"
#include "core/placement/parts.h"
#include "core/placement/space_inner.h"
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
	buf_deinit(&space->stands.buf);
	buf_deinit(&space->moves.buf);
	buf_deinit(&space->counts.buf);
	buf_deinit(&space->sets.buf);
	buf_deinit(&space->odd.buf);
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

/* Of the rows by class only those that there are: all of them are far more than the rest of a small cluster. */
static void demand_copy(struct demand *to, const struct demand *from, uint32_t class_count)
{
	memcpy(to, from, offsetof(struct demand, rows));
	memcpy(to->rows, from->rows, class_count * sizeof(from->rows[0]));
}

/* All but the demand, which stands last. */
static void head_copy(struct space *to, const struct space *from)
{
	memcpy(to, from, offsetof(struct space, demand));
}

void space_copy(struct space *to, const struct space *from)
{
	struct space old;

	head_copy(&old, to);
	head_copy(to, from);
	demand_copy(&to->demand, &from->demand, from->class_count);
	to->log_count = to->parts_log_count = to->numa_log_count = 0;
	to->nodes.buf = old.nodes.buf;
	to->rank_of.buf = old.rank_of.buf;
	to->domains.buf = old.domains.buf;
	to->traits.buf = old.traits.buf;
	to->named.buf = old.named.buf;
	to->data_names.buf = old.data_names.buf;
	to->data_ranks.buf = old.data_ranks.buf;
	to->stands.buf = old.stands.buf;
	to->moves.buf = old.moves.buf;
	to->counts.buf = old.counts.buf;
	to->sets.buf = old.sets.buf;
	to->odd.buf = old.odd.buf;
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
	buf_copy(&to->stands.buf, &from->stands.buf);
	buf_copy(&to->moves.buf, &from->moves.buf);
	buf_copy(&to->counts.buf, &from->counts.buf);
	buf_copy(&to->sets.buf, &from->sets.buf);
	buf_copy(&to->odd.buf, &from->odd.buf);
	buf_copy(&to->fabric.buf, &from->fabric.buf);
	buf_copy(&to->gpu_parts.buf, &from->gpu_parts.buf);
	buf_copy(&to->part_sets.buf, &from->part_sets.buf);
	buf_copy(&to->numa_rooms.buf, &from->numa_rooms.buf);
}

/* Equal in `to` again: of the buffers only what says something of the node. */
static void node_copy(struct space *to, const struct space *from, uint32_t rank)
{
	struct place_node *n = &to->nodes.at[rank];
	size_t gpu = (size_t)rank * from->gpus_max, room = (size_t)rank * NUMA_MAX;

	space_node_count_in(to, rank, false);
	if (from->parts)
		parts_copy(to, from, rank);
	memcpy(n, space_at(from, rank), sizeof(*n));
	space_node_count_in(to, rank, true);
	space_odd_follow(to, rank);
	if (from->parts)
		memcpy(&to->gpu_parts.at[gpu], &from->gpu_parts.at[gpu],
		       from->gpus_max * sizeof(*from->gpu_parts.at));
	if (from->numa)
		memcpy(&to->numa_rooms.at[room], &from->numa_rooms.at[room],
		       NUMA_MAX * sizeof(*from->numa_rooms.at));
}

void space_copy_next(struct space *to, struct space *from, uint32_t *since, uint64_t *seen)
{
	uint32_t first = *since - 1, count = from->log_count;

	if (!*since || from->log_low < first || count - first > from->node_count * 4) {
		space_copy(to, from);
	} else {
		for (uint32_t i = first; i < count; i++) {
			uint32_t rank = from->log.at[i].rank;

			if (seen[rank / 64] >> rank % 64 & 1)
				continue;
			seen[rank / 64] |= UINT64_C(1) << rank % 64;
			node_copy(to, from, rank);
		}
		for (uint32_t i = first; i < count; i++)
			seen[from->log.at[i].rank / 64] = 0;
		to->open_share = from->open_share;
		to->slice_share = from->slice_share;
		demand_copy(&to->demand, &from->demand, from->class_count);
	}
	*since = count + 1;
	from->log_low = count;
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
	return space_free_gpus(space, domain, classes) * GPU_SHARE + space->open_share +
	       space->slice_share;
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

const uint64_t *space_odd(const struct space *space)
{
	return space->odd.at;
}

bool space_node_suits(const struct space *space, uint32_t rank, const struct shape *shape)
{
	return traits_suit(&space->traits.at[space_at(space, rank)->traits], shape);
}

struct traits_named space_named(const struct space *space)
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
uint32_t space_data_index(const struct space *space, struct name_id name)
{
	uint32_t count = (uint32_t)(space->data_names.buf.size / sizeof(uint32_t)), at = 0;

	while (at < count && space->data_names.at[at] != name.v)
		at++;
	return at;
}

const uint64_t *space_data(const struct space *space, struct name_id name)
{
	uint32_t count = (uint32_t)(space->data_names.buf.size / sizeof(uint32_t)),
		 at = space_data_index(space, name);

	return at < count ? space->data_ranks.at + (size_t)at * bits_row(space->node_count) : NULL;
}

static bool masks_known(const struct traits_named *named, const struct shape *shape)
{
	struct name_id mask;

	for (uint32_t at = 0; (mask = shape_mask_next(shape, &at)).v;)
		if (!traits_named_has(named, mask))
			return false;
	return true;
}

bool space_knows(const struct space *space, const struct shape *shape)
{
	struct traits_named named = space_named(space);

	if ((shape_is_part(shape) && !space->parts) || (shape->slice && !space->slices))
		return false;
	for (uint32_t i = 0; i < SHAPE_DATA_MAX && shape->data[i].v; i++)
		if (!space_data(space, shape->data[i]))
			return false;
	return names_known(&named, shape->regions, SHAPE_REGIONS_MAX) &&
	       names_known(&named, shape->labels, SHAPE_LABELS_MAX) &&
	       names_known(&named, shape->tolerates, SHAPE_LABELS_MAX) &&
	       masks_known(&named, shape);
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

static int64_t counts_gpus(const struct space *space, const uint32_t *counts)
{
	int64_t gpus = 0;

	for (uint32_t free = 1; free <= space->gpus_max; free++)
		gpus += (int64_t)counts[free] * free;
	return gpus;
}

int64_t space_free_gpus(const struct space *space, uint32_t domain, uint64_t classes)
{
	int64_t free = 0;

	if (space->class_count < CLASSES_MAX)
		classes &= (UINT64_C(1) << space->class_count) - 1;
	for (; classes; classes &= classes - 1) {
		uint32_t class = (uint32_t)__builtin_ctzll(classes);

		free += domain ? counts_gpus(space, space_counts(space, domain, class))
			       : space->free_gpus[class];
	}
	return free;
}

int64_t space_rank_share(const struct space *space, uint32_t rank)
{
	const struct place_node *n = space_at(space, rank);

	return (int64_t)bits_count(n->usable) * GPU_SHARE - n->lost_share;
}

/* --- changes -------------------------------------------------------------------------------------- */

/* Puts the node into (+1) or out of (-1) the counts and sets, as its free GPUs are now. */
void space_node_count_in(struct space *space, uint32_t rank, bool in)
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
	space->free_gpus[n->class] += in ? free : -free;
	set = space->sets.at + set_at(space, n->class, free);
	if (in)
		bits_add(set, space->node_count, rank);
	else
		bits_remove(set, space->node_count, rank);
}

static bool node_is_odd(const struct space *space, uint32_t rank)
{
	const struct place_node *n = space_at(space, rank),
				*first = space_at(space, space->class_first[n->class]);

	return n->shared || n->cpu_free != first->cpu_all || n->ram_free != first->ram_all;
}

void space_odd_follow(struct space *space, uint32_t rank)
{
	if (node_is_odd(space, rank))
		bits_add(space->odd.at, space->node_count, rank);
	else
		bits_remove(space->odd.at, space->node_count, rank);
}

struct space_undo space_node_now(const struct space *space, uint32_t rank)
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

struct space_undo *space_node_log(struct space *space, uint32_t rank)
{
	size_t room = space->log.buf.size / sizeof(struct space_undo);

	if (space->log_count == room)
		array_resize(&space->log.buf, room ? room * 2 : 64, sizeof(struct space_undo));
	space->log.at[space->log_count] = space_node_now(space, rank);
	return &space->log.at[space->log_count++];
}

/* Could more or less be open of GPUs that are shared? Most changes are of whole GPUs. */
static bool shared_are_touched(const struct place_node *n, const struct space_undo *to)
{
	return (n->shared | n->sliced) &
	       ((n->usable ^ to->usable) | (n->busy ^ to->busy) | (n->promised ^ to->promised) |
		(n->blocked ^ to->blocked));
}

void space_node_put(struct space *space, uint32_t rank, const struct space_undo *to, bool parts)
{
	struct place_node *n = &space->nodes.at[rank];
	bool follows = space->parts && (parts || shared_are_touched(n, to));
	bool moves = n->ready != to->ready ||
		     bits_count(place_node_free(n)) !=
			     bits_count(to->usable & ~to->busy & ~to->promised & ~to->blocked);

	if (moves)
		space_node_count_in(space, rank, false);
	n->usable = to->usable;
	n->busy = to->busy;
	n->promised = to->promised;
	n->blocked = to->blocked;
	n->shut = to->shut;
	n->cpu_free = to->cpu_free;
	n->ram_free = to->ram_free;
	n->ready = to->ready;
	if (moves)
		space_node_count_in(space, rank, true);
	if (follows)
		parts_follow(space, rank);
	space_odd_follow(space, rank);
}

/* More of it is held or promised, or less. Of a GPU held in parts the bit in the mask says that there are some. */
static void node_hold(struct space *space, uint32_t rank, const struct hold *hold, bool promise,
		      bool more)
{
	struct space_undo to = space_node_now(space, rank), *undo = space_node_log(space, rank);
	uint32_t *mask = promise ? &to.promised : &to.busy;

	if (hold->part && !(hold->mask & space_at(space, rank)->all)) {
		/* The node has fewer GPUs than when the task was placed: of one that is not there nothing is held. */
	} else if (hold->part) {
		bool any = parts_change(space, rank, hold, promise, more);

		undo->parts = 1;
		*mask = any ? *mask | hold->mask : *mask & ~hold->mask;
		to.busy |= space_at(space, rank)->sliced;
	} else {
		uint32_t gpus = hold->mask & ~(promise ? 0 : space_at(space, rank)->sliced);

		CHECK((*mask & gpus) == (more ? 0 : gpus));
		*mask ^= gpus;
	}
	if (hold->aligned && space->numa)
		undo->numa = numa_change(space, rank, hold, more);
	to.cpu_free -= more ? hold->cpu_milli : -hold->cpu_milli;
	to.ram_free -= more ? hold->ram_mib : -hold->ram_mib;
	space_node_put(space, rank, &to, undo->parts > 0);
}

bool hold_join(struct hold *sum, const struct hold *more)
{
	if (sum->part || more->part || sum->aligned || more->aligned)
		return false;
	sum->mask |= more->mask;
	sum->cpu_milli += more->cpu_milli;
	sum->ram_mib += more->ram_mib;
	return true;
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
	struct space_undo to = space_node_now(space, rank);

	to.blocked = mask;
	to.shut = shut && (to.ready || to.shut);
	to.ready = (to.ready || space_at(space, rank)->shut) && !to.shut;
	if (to.blocked == space_at(space, rank)->blocked && to.shut == space_at(space, rank)->shut)
		return;
	space_node_log(space, rank);
	space_node_put(space, rank, &to, false);
}

void space_close(struct space *space, uint32_t rank)
{
	struct space_undo to = space_node_now(space, rank);

	space_node_log(space, rank);
	to.usable = 0;
	to.ready = to.shut = false;
	space_node_put(space, rank, &to, false);
}

void space_open(struct space *space, uint32_t rank, uint32_t usable)
{
	struct space_undo to = space_node_now(space, rank);

	space_node_log(space, rank);
	to.usable = space_at(space, rank)->all & usable;
	to.ready = true;
	space_node_put(space, rank, &to, false);
}

void space_idle(struct space *space)
{
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		struct space_undo to = space_node_now(space, rank),
				  *undo = space_node_log(space, rank);

		if (space->parts)
			undo->parts = parts_clear(space, rank);
		if (space->numa)
			undo->numa = numa_clear(space, rank);
		to.busy = space_at(space, rank)->sliced;
		to.promised = 0;
		to.blocked = 0;
		to.ready = to.ready || to.shut;
		to.shut = false;
		to.cpu_free = space_at(space, rank)->cpu_all;
		to.ram_free = space_at(space, rank)->ram_all;
		space_node_put(space, rank, &to, undo->parts > 0);
	}
}

void space_clear(struct space *space)
{
	space_idle(space);
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		struct space_undo to = space_node_now(space, rank);

		to.usable = space_at(space, rank)->all;
		to.ready = true;
		to.busy = 0; /* a GPU that is cut can be made whole, and has slices until then */
		space_node_put(space, rank, &to, false);
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
		space_node_put(space, undo->rank, undo, undo->parts > 0);
	}
	if (space->log_low > mark)
		space->log_low = mark;
}

void space_commit(struct space *space)
{
	space->log_count = space->parts_log_count = space->numa_log_count = space->log_low = 0;
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
	for (uint32_t domain = 0; domain < space->domain_count; domain++)
		for (uint32_t class = 0; class < space->class_count; class ++)
			for (uint32_t free = 0; free <= space->gpus_max; free++)
				CHECK(space_counts(space, domain, class)[free] ==
				      counted(space, domain, class, free));
	for (uint32_t class = 0; class < space->class_count; class ++)
		CHECK(space->free_gpus[class] == counts_gpus(space, space_counts(space, 0, class)));
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *n = space_at(space, rank);
		uint32_t free = bits_count(place_node_free(n));
		const uint64_t *set = space_set(space, n->class, free);

		CHECK((n->usable & ~n->all) == 0);
		CHECK((bits_next(space->odd.at, space->node_count, rank, rank + 1) == rank) ==
		      node_is_odd(space, rank));
		CHECK((bits_next(set, space->node_count, rank, rank + 1) == rank) == n->ready);
	}
	if (space->parts)
		parts_verify(space);
}

bool space_same(const struct space *a, const struct space *b)
{
	return a->node_count == b->node_count && a->gpus == b->gpus &&
	       a->domain_count == b->domain_count && a->class_count == b->class_count &&
	       a->nodes.buf.size == b->nodes.buf.size && a->counts.buf.size == b->counts.buf.size &&
	       a->sets.buf.size == b->sets.buf.size &&
	       (a->nodes.buf.size == 0 ||
		memcmp(a->nodes.at, b->nodes.at, a->nodes.buf.size) == 0) &&
	       (a->counts.buf.size == 0 ||
		memcmp(a->counts.at, b->counts.at, a->counts.buf.size) == 0) &&
	       (a->sets.buf.size == 0 || memcmp(a->sets.at, b->sets.at, a->sets.buf.size) == 0) &&
	       a->odd.buf.size == b->odd.buf.size &&
	       (a->odd.buf.size == 0 || memcmp(a->odd.at, b->odd.at, a->odd.buf.size) == 0) &&
	       a->fabric.buf.size == b->fabric.buf.size &&
	       a->numa_rooms.buf.size == b->numa_rooms.buf.size &&
	       (a->numa_rooms.buf.size == 0 ||
		memcmp(a->numa_rooms.at, b->numa_rooms.at, a->numa_rooms.buf.size) == 0) &&
	       parts_same(a, b);
}
