/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spot nodes: what their pools do, and which nodes a job uses for now.
 *
 * A node is there unless it is down or gone. While it is, `turned_ms` says since when; when it turns, the interval that has ended is
 * added to its pool.
 */
#include "core/model/apply.h"
#include "core/model/edit.h"

enum {
	INTERVALS_MAX = 64
}; /* of a pool: then half of the times and of their number is forgotten */
#define INTERVAL_MAX_MS (INT64_C(20) * 366 * 86400 * 1000)

static bool node_is_there(const struct node *node)
{
	return node->state != NODE_DOWN && node->state != NODE_GONE;
}

static void pool_note(struct pool *pool, bool there, int64_t lasted_ms)
{
	int64_t *sum_ms = there ? &pool->there_ms : &pool->away_ms;
	uint32_t *count = there ? &pool->there : &pool->away;

	lasted_ms = lasted_ms < 0 ? 0 : lasted_ms;
	if (*count >= INTERVALS_MAX) {
		*count /= 2;
		*sum_ms /= 2;
	}
	++*count;
	*sum_ms += lasted_ms < INTERVAL_MAX_MS ? lasted_ms : INTERVAL_MAX_MS;
}

/* The row of the pool that the node belongs to; 0 = none, or not made yet. */
static uint32_t pool_find(const struct facts *f, const struct node *node)
{
	for (uint32_t row = 1; node->capacity == CAPACITY_SPOT && row <= f->pools.count; row++) {
		const struct pool *p = table_get(&f->pools, row);

		if (name_same(p->model, node->model) && name_same(p->place, node->domain[0]))
			return row;
	}
	return 0;
}

/* The same, made when it is new; 0 when there is no room either. */
static uint32_t pool_get(struct facts *f, const struct node *node)
{
	uint32_t row = pool_find(f, node);
	struct pool *pool;

	if (row || node->capacity != CAPACITY_SPOT || f->pools.count >= POOLS_MAX)
		return row;
	row = table_add(&f->pools);
	pool = table_edit(&f->pools, row);
	pool->model = node->model;
	pool->place = node->domain[0];
	pool->turned_ms = f->now_ms;
	return row;
}

struct spot_was spot_node_was(const struct facts *f, struct node_id id)
{
	const struct node *node = node_get(f, id);

	return (struct spot_was){ pool_find(f, node), node_is_there(node) };
}

/* One node more or less is there. */
static void pool_count(struct facts *f, uint32_t row, bool more)
{
	struct pool *pool = table_edit(&f->pools, row);

	pool->nodes_there += more ? 1 : pool->nodes_there ? UINT32_MAX : 0;
	if (pool->nodes_there == more) /* the first, or the last */
		pool->turned_ms = f->now_ms;
}

/* Only an interval that began and ended in the same pool teaches it anything. */
void spot_node_is(struct facts *f, struct node_id id, struct spot_was was)
{
	bool there = node_is_there(node_get(f, id));
	uint32_t row = pool_get(f, node_get(f, id));

	if (row == was.row && there == was.there)
		return;
	if (row && row == was.row)
		pool_note(table_edit(&f->pools, row), was.there,
			  f->now_ms - node_get(f, id)->turned_ms);
	if (was.row && was.there)
		pool_count(f, was.row, false);
	if (row && there)
		pool_count(f, row, true);
	node_edit(f, id)->turned_ms = row ? f->now_ms : 0;
}

/* Only of a job that waits: where one runs says its place. */
void apply_capacity_chosen(struct facts *f, const struct event_capacity_chosen *e)
{
	struct job_id id = { (uint32_t)e->job };
	struct shape shape;

	if (!job_is_there(f, e->job) || !job_is_waiting(job_get(f, id)) || e->capacity < 0 ||
	    e->capacity > CAPACITY_ANY)
		return;
	shape = *shape_get(f, job_get(f, id)->shape);
	shape.capacity = e->capacity == CAPACITY_ON_DEMAND ? 0 : (uint32_t)e->capacity;
	job_edit(f, id)->shape = facts_intern_shape(f, &shape);
}
