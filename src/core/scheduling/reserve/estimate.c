/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/reserve/estimate.h"

#include "core/scheduling/view/view.h"

enum { LIKELY = 500, SAFE = 900 };

/* Rising times at[0..count), count > 0. */
static int64_t spread_at(const int64_t *at, uint32_t count, uint32_t per_mille)
{
	uint64_t place = (uint64_t)per_mille * (count + 1); /* in 1/1000, the first is at 1000 */
	uint32_t below = (uint32_t)(place / 1000);

	if (below < 1)
		return at[0];
	if (below >= count)
		return at[count - 1];
	return at[below - 1] + (at[below] - at[below - 1]) / 1000 * (int64_t)(place % 1000);
}

/* It ran longer than all like it: as a job runs on, the more is left. Even odds to double, one in ten to go on nine times as long. */
static int64_t rest_of_old(int64_t ran_ms, uint32_t per_mille)
{
	return ran_ms / (1000 - per_mille) * per_mille;
}

static int64_t rest_by_likes(const struct like_runs *runs, int64_t ran_ms, uint32_t per_mille)
{
	uint32_t first = 0;

	while (first < runs->count && runs->ms[first] <= ran_ms)
		first++;
	if (first == runs->count)
		return rest_of_old(ran_ms, per_mille);
	return spread_at(runs->ms + first, runs->count - first, per_mille) - ran_ms;
}

static int64_t rest_by_word(const struct facts *facts, const struct job *job, int64_t ran_ms,
			    uint32_t per_mille)
{
	int64_t said_ms = job->estimate_ms ? job->estimate_ms : job->limit_ms;

	if (!said_ms) {
		/* In made-up facts it may have learnt from runs that were made up. */
		struct job bare = *job;

		bare.likely_s = 0;
		said_ms = job->run_ms + job_expected_ms(facts, &bare);
	}
	if (said_ms <= ran_ms)
		return rest_of_old(ran_ms, per_mille);
	return (said_ms - ran_ms) / 1000 * per_mille;
}

int64_t estimate_in_limit_ms(const struct job *job, int64_t ran_ms, int64_t rest_ms)
{
	int64_t left_ms = job->limit_ms - ran_ms;

	if (job->limit_ms && rest_ms > left_ms)
		rest_ms = left_ms;
	return rest_ms > 0 ? rest_ms : 1;
}

static bool runs_like(const struct facts *facts, const struct facts *memory, const struct job *job,
		      struct like_runs *ret)
{
	struct like_wish wish = like_wish_of(facts, job);

	likes_find(memory, &wish, ret);
	return ret->count > 0;
}

int64_t estimate_rest_ms(const struct facts *facts, const struct facts *memory,
			 const struct job *job, int64_t age_ms, uint32_t per_mille)
{
	int64_t ran_ms = job->run_ms + age_ms;
	struct like_runs runs;
	int64_t rest_ms;

	if (runs_like(facts, memory, job, &runs))
		rest_ms = rest_by_likes(&runs, ran_ms, per_mille);
	else
		rest_ms = rest_by_word(facts, job, ran_ms, per_mille);
	return estimate_in_limit_ms(job, ran_ms, rest_ms);
}

bool estimate_by_likes(const struct facts *facts, const struct job *job, int64_t *ret_likely_ms,
		       int64_t *ret_safe_ms)
{
	struct like_runs runs;

	if (!facts->likes.count || !runs_like(facts, facts, job, &runs))
		return false;
	*ret_likely_ms =
		estimate_in_limit_ms(job, job->run_ms, rest_by_likes(&runs, job->run_ms, LIKELY));
	*ret_safe_ms =
		estimate_in_limit_ms(job, job->run_ms, rest_by_likes(&runs, job->run_ms, SAFE));
	return true;
}

int64_t estimate_new_ms(const struct facts *facts, const struct like_wish *wish)
{
	struct like_runs runs;

	likes_find(facts, wish, &runs);
	return runs.count ? spread_at(runs.ms, runs.count, SAFE) : 0;
}
