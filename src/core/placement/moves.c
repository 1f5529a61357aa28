/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it takes to bring data sets to nodes: computed when the space is built, for each place that the description of data sets and
 * transfers tells apart.
 *
 *	imagenet: 150 GB in eu; transfers eu to us: 0.09 a GB, 1 GB/s; any to any: 0.12 a GB, 0.5 GB/s
 *	a node in eu		nothing
 *	a node in us		13.50, 150 s
 *	a node in asia		18.00, 300 s
 *
 * Of several copies the one counts that costs least, then the nearest in time. A rule for both places comes before one for the place data
 * come from, that before one for the place they go to, that before the one for any two. Where no rule says anything nobody knows, and
 * such a node comes after all of which it is known. Within a place that keeps a copy data take nothing, unless a rule names it.
 */
#include <string.h>

#include "base/check.h"
#include "core/placement/space_inner.h"

__extension__ typedef __int128 wide;

/* Where a node stands, as far as any data set or transfer names it: the narrowest last. */
struct stand {
	struct name_id at[LEVELS_MAX];
};

static const struct transfer *transfer_get(const struct facts *facts, uint32_t row)
{
	return table_get(&facts->transfers, row);
}

static const struct data_set *data_get(const struct facts *facts, uint32_t row)
{
	return table_get(&facts->data_sets, row);
}

static void mark(uint64_t *named, struct name_id name)
{
	named[name.v / 64] |= UINT64_C(1) << name.v % 64;
}

/* A bit for each name that a transfer or a data set has for a place. */
static void places_mark(const struct facts *facts, uint64_t *named)
{
	for (uint32_t row = 1; row <= facts->transfers.count; row++) {
		mark(named, transfer_get(facts, row)->from);
		mark(named, transfer_get(facts, row)->to);
	}
	for (uint32_t row = 1; row <= facts->data_sets.count; row++)
		for (uint32_t i = 0; i < DATA_PLACES_MAX && data_get(facts, row)->place[i].v; i++)
			mark(named, data_get(facts, row)->place[i]);
}

static void stand_of(const struct facts *facts, const uint64_t *named, const struct node *node,
		     struct stand *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (uint32_t l = 0; l < facts->level_count; l++)
		if (node->domain[l].v &&
		    named[node->domain[l].v / 64] >> node->domain[l].v % 64 & 1)
			ret->at[l] = node->domain[l];
}

static bool stand_has(const struct stand *stand, struct name_id place)
{
	for (uint32_t l = 0; l < LEVELS_MAX; l++)
		if (stand->at[l].v && name_same(stand->at[l], place))
			return true;
	return false;
}

/* --- one data set to one place ------------------------------------------------------------------------- */

static bool is_any(const struct facts *facts, struct name_id name)
{
	return strcmp(facts_name(facts, name), "any") == 0;
}

/* How well the rule is about this way: the larger the better, 0 = it is not. A copy in the place itself needs a rule that names both. */
static uint32_t rule_fits(const struct facts *facts, const struct transfer *t, struct name_id from,
			  const struct stand *to)
{
	bool within = from.v && stand_has(to, from), from_any = is_any(facts, t->from);
	uint32_t level = 0;

	if (t->micro_per_gb < 0 || (!from_any && !(from.v && name_same(t->from, from))))
		return 0;
	for (uint32_t l = 0; l < LEVELS_MAX; l++)
		if (to->at[l].v && name_same(to->at[l], t->to))
			level = l + 2;
	if (!level && is_any(facts, t->to))
		level = 1;
	if (!level || (within && (from_any || level == 1)))
		return 0;
	return level == 1 ? (from_any ? 1 : 100) : (from_any ? level : 100 + level);
}

static struct data_move move_by(const struct transfer *t, uint32_t size_mib)
{
	int64_t bytes = (int64_t)size_mib << 20;

	return (struct data_move){ .ms = t->mbps ? (bytes + (int64_t)t->mbps * 1000 - 1) /
							   ((int64_t)t->mbps * 1000)
						 : 0,
				   .micro = (int64_t)((wide)bytes * t->micro_per_gb / 1000000000) };
}

static struct data_move move_from(const struct facts *facts, const struct data_set *d,
				  struct name_id from, const struct stand *to)
{
	const struct transfer *best = NULL;
	uint32_t most = 0;

	for (uint32_t row = 1; row <= facts->transfers.count; row++) {
		uint32_t fits = rule_fits(facts, transfer_get(facts, row), from, to);

		if (fits > most) {
			most = fits;
			best = transfer_get(facts, row);
		}
	}
	if (best)
		return move_by(best, d->size_mib);
	return (struct data_move){ .ms = from.v && stand_has(to, from) ? 0 : -1 };
}

static bool move_is_less(const struct data_move *a, const struct data_move *b)
{
	if ((a->ms < 0) != (b->ms < 0))
		return b->ms < 0;
	return a->micro != b->micro ? a->micro < b->micro : a->ms < b->ms;
}

/* Where no domain keeps it, some node does, or somebody outside. */
static struct data_move move_least(const struct facts *facts, const struct data_set *d,
				   const struct stand *to)
{
	struct data_move least = move_from(facts, d, d->place[0], to);

	for (uint32_t i = 1; i < DATA_PLACES_MAX && d->place[i].v; i++) {
		struct data_move move = move_from(facts, d, d->place[i], to);

		if (move_is_less(&move, &least))
			least = move;
	}
	return least;
}

/* --- all ------------------------------------------------------------------------------------------------- */

static uint32_t data_count(const struct space *space)
{
	return (uint32_t)(space->data_names.buf.size / sizeof(uint32_t));
}

static bool any_size_is_known(const struct space *space, const struct facts *facts)
{
	for (uint32_t k = 0; facts->data_sets.count && k < data_count(space); k++)
		if (facts_data_find(facts, (struct name_id){ space->data_names.at[k] }))
			return true;
	return false;
}

static void stand_fill(struct space *space, const struct facts *facts, const struct stand *stand,
		       struct data_move *ret)
{
	for (uint32_t k = 0; k < data_count(space); k++) {
		const struct data_set *d =
			facts_data_find(facts, (struct name_id){ space->data_names.at[k] });

		if (d && !stand)
			ret[k].ms = 1;
		else if (d)
			ret[k] = move_least(facts, d, stand);
	}
}

void moves_build(struct space *space, const struct facts *facts)
{
	struct stand stands[STANDS_MAX + 1];
	ARRAY(uint64_t) named = { .buf = BUF_INIT };
	uint32_t count = 1, data = data_count(space), at = 0;

	if (!any_size_is_known(space, facts))
		return;
	array_resize(&space->stands.buf, space->node_count, sizeof(uint8_t));
	array_resize(&space->moves.buf, data, sizeof(struct data_move));
	stand_fill(space, facts, NULL, space->moves.at);
	array_resize(&named.buf, facts->names.count / 64 + (size_t)1, sizeof(uint64_t));
	places_mark(facts, named.at);
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		struct stand here;

		stand_of(facts, named.at,
			 node_get(facts, (struct node_id){ space_at(space, rank)->node }), &here);
		if (!at || memcmp(&stands[at], &here, sizeof(here)) != 0)
			for (at = 1; at < count && memcmp(&stands[at], &here, sizeof(here)) != 0;)
				at++;
		if (at == count && count < STANDS_MAX) {
			stands[count++] = here;
			array_resize(&space->moves.buf, (size_t)count * data,
				     sizeof(struct data_move));
			stand_fill(space, facts, &here, space->moves.at + (size_t)at * data);
		}
		space->stands.at[rank] = (uint8_t)(at < count ? at : 0);
		at = at < count ? at : 0;
	}
	buf_deinit(&named.buf);
}

bool space_data_weighs(const struct space *space, const struct shape *shape)
{
	for (uint32_t i = 0; space->moves.buf.size && i < SHAPE_DATA_MAX && shape->data[i].v; i++) {
		uint32_t k = space_data_index(space, shape->data[i]);

		if (k < data_count(space) && space->moves.at[k].ms)
			return true;
	}
	return false;
}

/* One after the other; of what the node keeps nothing. */
struct data_move space_data_move(const struct space *space, const struct shape *shape,
				 uint32_t rank)
{
	uint32_t stand = space->stands.at[rank];
	struct data_move sum = { 0 };

	for (uint32_t i = 0; i < SHAPE_DATA_MAX && shape->data[i].v; i++) {
		const uint64_t *keeps = space_data(space, shape->data[i]);
		uint32_t k = space_data_index(space, shape->data[i]);
		const struct data_move *move =
			&space->moves.at[(size_t)stand * data_count(space) + k];

		if (k >= data_count(space) || !space->moves.at[k].ms ||
		    (keeps && keeps[rank / 64] >> rank % 64 & 1))
			continue;
		if (!stand || move->ms < 0 || sum.ms < 0) {
			sum.ms = -1;
			continue;
		}
		sum.ms += move->ms;
		sum.micro += move->micro;
	}
	return sum;
}
