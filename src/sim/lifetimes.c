/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lifetimes.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define MINUTE_MS INT64_C(60000)
#define AGE_MAX_MS (INT64_C(1) << 50)
/* No smaller chance is told apart: a thousand that each ended alone of their age. */
#define CHANCE_MIN 1e-300
#define ALIKE (1 + 1e-9) /* chances that differ by less come of rounding */

enum { MINUTES = 7 * 24 * 60 };

struct lifetimes_point {
	int64_t age_ms; /* at which some ended */
	double begins; /* chance left when one of them has ended: down to it in proportion from the point before */
	double chance; /* to outlive it */
};

struct lifetimes_group {
	int64_t key;
	uint32_t first, count; /* its points, by age, chances falling; at least one */
	int64_t oldest_ms; /* the greatest age that was seen */
};

struct watched {
	int64_t key, from_ms, to_ms;
	bool ended; /* at to_ms; else nobody knows more: it runs, or was evicted and given up */
};

struct watching {
	struct watched *list;
	uint32_t count, room;
	int64_t since_ms, now_ms;
};

/* --- who was watched --------------------------------------------------------------------------------------------------- */

/* However it ended: it held its GPUs so long. What a failure lost is in the length of its attempt only. */
static int64_t whole_age(const struct facts *f, const struct job *job)
{
	const struct attempt *last = job->last_attempt.v ? attempt_get(f, job->last_attempt) : NULL;
	const int64_t held_ms = last && last->released_ms && last->ended_ms
					? last->ended_ms - last->released_ms
					: 0;

	return job->run_ms > held_ms ? job->run_ms : held_ms;
}

/* Since when: so many days ago as ended jobs are known for, or later where more than LIFETIMES_MAX have ended since. */
static int64_t since(const struct facts *f, int64_t now_ms)
{
	const int64_t kept = f->policy.keep_ended_ms / MINUTE_MS;
	uint32_t *ended = calloc(MINUTES, sizeof(*ended)), count = 0, minute = 0;

	CHECK(ended);
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });
		const int64_t ago = (now_ms - job->state_ms) / MINUTE_MS;

		if (job_state_is_final(job->state) && ago >= 0 && ago < MINUTES)
			ended[ago]++;
	}
	while (!minute ||
	       (minute < MINUTES && minute < kept && count + ended[minute] <= LIFETIMES_MAX))
		count += ended[minute++];
	free(ended);
	return now_ms - minute * MINUTE_MS;
}

static void watch(struct watching *w, const struct facts *f, const struct job *job, int64_t age_ms,
		  int64_t until_ms, bool ended)
{
	const int64_t before_ms = age_ms - (until_ms - w->since_ms);
	struct like_wish wish;

	if (age_ms <= 0 || age_ms > AGE_MAX_MS)
		return;
	wish = like_wish_of(f, job);
	if (w->count + LIKE_LEVELS > w->room) {
		w->room = w->room ? w->room * 2 : 1024;
		w->list = reallocarray(w->list, w->room, sizeof(*w->list));
		CHECK(w->list);
	}
	for (int level = LIKE_ALL; level <= (int)like_closest(&wish); level++)
		w->list[w->count++] =
			(struct watched){ .key = like_key(&wish, (enum like_level)level),
					  .from_ms = before_ms > 0 ? before_ms : 0,
					  .to_ms = age_ms,
					  .ended = ended };
}

/* Of its attempt, 0 where it does not run. */
static int64_t age_of(const struct facts *f, const struct job *job, int64_t now_ms)
{
	const int64_t since_ms = job->attempt.v ? attempt_get(f, job->attempt)->released_ms : 0;

	return since_ms && since_ms < now_ms ? now_ms - since_ms : 0;
}

static void watch_all(struct watching *w, const struct facts *f)
{
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		if (job->state == JOB_NONE)
			continue;
		if (!job_state_is_final(job->state))
			watch(w, f, job, job->run_ms + age_of(f, job, w->now_ms), w->now_ms, false);
		else if (job->state_ms > w->since_ms && job->state_ms <= w->now_ms &&
			 run_says_something(f, job, job->state, whole_age(f, job)))
			watch(w, f, job, whole_age(f, job), job->state_ms, !job->evicted);
	}
}

/* --- what it says ------------------------------------------------------------------------------------------------------- */

static int compare(int64_t x, int64_t y)
{
	return (x > y) - (x < y);
}

static int by_end(const void *a, const void *b)
{
	const struct watched *x = a, *y = b;
	const int key = compare(x->key, y->key);

	return key ? key : compare(x->to_ms, y->to_ms);
}

static int by_begin(const void *a, const void *b)
{
	const struct watched *const *x = a, *const *y = b;
	const int key = compare((*x)->key, (*y)->key);

	return key ? key : compare((*x)->from_ms, (*y)->from_ms);
}

/* list: of one key, by their ends; begun: the same, by their beginnings. */
static void group_make(struct lifetimes *l, const struct watched *list,
		       const struct watched *const *begun, uint32_t count, uint32_t *point_count)
{
	struct lifetimes_group *group = &l->groups[l->group_count];
	uint32_t begins = 0, ends = 0;
	double chance = 1, one;

	*group = (struct lifetimes_group){ .key = list->key,
					   .first = *point_count,
					   .oldest_ms = list[count - 1].to_ms };
	for (uint32_t next, done = 0; done < count; done = next) {
		const int64_t age_ms = list[done].to_ms;
		uint32_t ended = 0;

		for (next = done; next < count && list[next].to_ms == age_ms; next++)
			ended += list[next].ended;
		while (begins < count && begun[begins]->from_ms < age_ms)
			begins++;
		ends += ended;
		if (!ended)
			continue;
		one = chance * (begins - done) / (begins - done + 1);
		chance = chance * (begins - done + 1 - ended) / (begins - done + 1);
		chance = chance > CHANCE_MIN ? chance : CHANCE_MIN;
		l->points[(*point_count)++] = (struct lifetimes_point){ age_ms, one, chance };
	}
	if (ends < LIKE_LEAST) {
		*point_count = group->first;
		return;
	}
	group->count = *point_count - group->first;
	l->group_count++;
}

void lifetimes_make(const struct facts *facts, int64_t now_ms, struct lifetimes *ret)
{
	struct watching w = { .now_ms = now_ms, .since_ms = since(facts, now_ms) };
	const struct watched **begun;
	uint32_t points = 0;

	*ret = (struct lifetimes){ 0 };
	watch_all(&w, facts);
	ret->groups = calloc((size_t)w.count + 1, sizeof(*ret->groups));
	ret->points = calloc((size_t)w.count + 1, sizeof(*ret->points));
	begun = calloc((size_t)w.count + 1, sizeof(*begun));
	CHECK(ret->groups && ret->points && begun);
	if (w.count)
		qsort(w.list, w.count, sizeof(*w.list), by_end);
	for (uint32_t i = 0; i < w.count; i++)
		begun[i] = &w.list[i];
	qsort(begun, w.count, sizeof(*begun), by_begin);
	for (uint32_t first = 0, next; first < w.count; first = next) {
		for (next = first; next < w.count && w.list[next].key == w.list[first].key; next++)
			;
		group_make(ret, w.list + first, begun + first, next - first, &points);
	}
	free(begun);
	free(w.list);
	ret->groups = reallocarray(ret->groups, (size_t)ret->group_count + 1, sizeof(*ret->groups));
	ret->points = reallocarray(ret->points, (size_t)points + 1, sizeof(*ret->points));
	CHECK(ret->groups && ret->points);
}

void lifetimes_deinit(struct lifetimes *l)
{
	free(l->groups);
	free(l->points);
	*l = (struct lifetimes){ 0 };
}

/* --- asking -------------------------------------------------------------------------------------------------------------- */

static const struct lifetimes_group *group_find(const struct lifetimes *l, int64_t key)
{
	uint32_t low = 0, high = l->group_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (l->groups[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return low < l->group_count && l->groups[low].key == key ? &l->groups[low] : NULL;
}

static double part(int64_t of, int64_t all)
{
	return (double)of / (double)all;
}

/* The chance to outlive an age. */
static double chance_at(const struct lifetimes_group *g, const struct lifetimes_point *at,
			int64_t age_ms)
{
	uint32_t low = 0, high = g->count; /* the first point beyond the age */

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (at[middle].age_ms <= age_ms)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 1;
	if (low < g->count)
		return at[low - 1].chance - (at[low - 1].chance - at[low].begins) *
						    part(age_ms - at[low - 1].age_ms,
							 at[low].age_ms - at[low - 1].age_ms);
	return at[low - 1].chance * (age_ms > g->oldest_ms ? part(g->oldest_ms, age_ms) : 1);
}

/* The age that is outlived with no greater chance. */
static int64_t age_at(const struct lifetimes_group *g, const struct lifetimes_point *at,
		      double chance)
{
	uint32_t low = 0, high = g->count;
	double age_ms;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (at[middle].chance > chance * ALIKE)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && low < g->count && chance > at[low].begins)
		return at[low - 1].age_ms +
		       (int64_t)((double)(at[low].age_ms - at[low - 1].age_ms) *
				 ((at[low - 1].chance - chance) /
				  (at[low - 1].chance - at[low].begins)));
	if (low < g->count)
		return at[low].age_ms;
	age_ms = (double)g->oldest_ms * (at[g->count - 1].chance / chance);
	return age_ms < (double)AGE_MAX_MS ? (int64_t)age_ms : AGE_MAX_MS;
}

bool lifetimes_rest_ms(const struct lifetimes *l, const struct like_wish *wish,
		       enum like_level at_least, int64_t ran_ms, uint32_t per_mille,
		       int64_t *ret_ms)
{
	const struct lifetimes_group *g = NULL;
	const struct lifetimes_point *at;
	double chance;

	for (int level = (int)like_closest(wish); !g && level >= (int)at_least; level--)
		g = group_find(l, like_key(wish, (enum like_level)level));
	if (!g)
		return false;
	at = &l->points[g->first];
	chance = chance_at(g, at, ran_ms) * (1000 - per_mille) / 1000;
	*ret_ms = age_at(g, at, chance) - ran_ms;
	return true;
}
