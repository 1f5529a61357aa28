/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/spot.h"

#include "base/check.h"

__extension__ typedef __int128 wide;

enum { FIRST_MS = 3600000, INTERVALS_MAX = 64 };

/* --- what a pool does ----------------------------------------------------------------------------------------- */

void spot_pool_note(struct spot_pool *pool, bool there, int64_t lasted_ms)
{
	int64_t *sum_ms = there ? &pool->there_ms : &pool->away_ms;
	uint32_t *count = there ? &pool->there : &pool->away;

	CHECK(lasted_ms >= 0);
	if (lasted_ms > SPOT_TIME_MAX_MS)
		lasted_ms = SPOT_TIME_MAX_MS;
	if (*count == INTERVALS_MAX) {
		*count /= 2;
		*sum_ms /= 2;
	}
	++*count;
	*sum_ms += lasted_ms;
}

/* One interval of an hour stands beside what was seen, so that the first ones seen do not say all. */
int64_t spot_pool_mean(const struct spot_pool *pool, bool there)
{
	return ((there ? pool->there_ms : pool->away_ms) + FIRST_MS) /
	       ((int64_t)(there ? pool->there : pool->away) + 1);
}

/* --- what there is to spend ------------------------------------------------------------------------------------- */

int64_t spot_spare(const struct spot_task *t)
{
	const int64_t back_ms = t->at == SPOT_ON_DEMAND ? t->pending_ms : t->restart_ms;

	return t->left_ms - t->look_ms - t->work_ms - t->lose_ms - back_ms;
}

int64_t spot_reserve(const struct spot_task *t, const struct spot_pool *pool)
{
	const int64_t turn_ms = spot_pool_mean(pool, true) + spot_pool_mean(pool, false);

	if (t->left_ms <= 0)
		return 0;
	return (int64_t)((wide)4 * t->restart_ms * t->left_ms / turn_ms);
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

/* To spot, and from there back on demand. */
static bool can_go(const struct spot_task *t)
{
	return t->left_ms - t->look_ms - t->work_ms - t->lose_ms - 2 * t->restart_ms > 0;
}

static bool pays(const struct spot_task *t, int64_t mean_ms)
{
	const int64_t lasts_ms = (mean_ms + t->since_ms) / 2;

	return (wide)(t->demand_micro - t->spot_micro) * lasts_ms >=
	       (wide)(t->demand_micro + t->spot_micro) * t->restart_ms;
}

/* Few restarts are left: they go to machines that have shown that they last. */
static bool has_lasted(const struct spot_task *t, int64_t mean_ms, int64_t spare_ms,
		       int64_t reserve_ms)
{
	return spare_ms >= reserve_ms ||
	       (wide)t->since_ms * spare_ms >= (wide)(mean_ms / 4) * (reserve_ms - spare_ms);
}

enum spot_place spot_choose(const struct spot_task *t, const struct spot_pool *pool)
{
	const int64_t spare_ms = spot_spare(t), reserve_ms = spot_reserve(t, pool);
	const int64_t mean_ms = spot_pool_mean(pool, true);
	const bool there = t->there && t->spot_micro < t->demand_micro;

	if (there && t->at == SPOT_ON_SPOT && spare_ms >= 0)
		return SPOT_ON_SPOT;
	if (spare_ms <= 0)
		return SPOT_ON_DEMAND;
	if (there && t->at == SPOT_ON_DEMAND)
		return can_go(t) && pays(t, mean_ms) && has_lasted(t, mean_ms, spare_ms, reserve_ms)
			       ? SPOT_ON_SPOT
			       : SPOT_ON_DEMAND;
	if (there)
		return can_go(t) ? SPOT_ON_SPOT : SPOT_ON_DEMAND;
	if (t->at == SPOT_ON_DEMAND)
		return spare_ms > reserve_ms + mean_ms + spot_pool_mean(pool, false)
			       ? SPOT_WAITS
			       : SPOT_ON_DEMAND;
	return spare_ms > reserve_ms ? SPOT_WAITS : SPOT_ON_DEMAND;
}
