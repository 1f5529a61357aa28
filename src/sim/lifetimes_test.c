/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lifetimes.h"

#include "core/model/edit.h"
#include "core/scheduling/testing.h"
#include "sim/engine_sim.h"

#define MINUTE INT64_C(60000)
#define DAY (24 * 60 * MINUTE)

static uint32_t begin(struct world *w)
{
	uint32_t job = world_submit(w, (struct wish){ .name = "train", .gpus = 1 });

	world_run(w);
	return job;
}

static void end(struct world *w, uint32_t job)
{
	world_exit(w, job, 0);
	world_run(w);
}

/* Five, one after the other. */
static void five_end(struct world *w)
{
	for (int i = 1; i <= 5; i++) {
		uint32_t job = begin(w);

		world_at(w, w->now_ms + 10 * i * MINUTE);
		end(w, job);
	}
}

static bool ask(const struct world *w, int64_t ran_ms, uint32_t per_mille, int64_t *ret_ms)
{
	const struct like_wish wish = {
		.user = "ann", .name = "train", .queue = "default", .gpus = 1
	};
	struct lifetimes l;
	bool known;

	lifetimes_make(&w->facts, w->now_ms, &l);
	known = lifetimes_rest_ms(&l, &wish, LIKE_ALL, ran_ms, per_mille, ret_ms);
	lifetimes_deinit(&l);
	return known;
}

static int64_t rest(const struct world *w, int64_t ran_ms, uint32_t per_mille)
{
	int64_t rest_ms = -1;

	assert_true(ask(w, ran_ms, per_mille, &rest_ms));
	return rest_ms;
}

#define assert_about(is_ms, minutes)                                                               \
	assert_in_range((is_ms), (int64_t)((minutes) * MINUTE) - 100,                              \
			(int64_t)((minutes) * MINUTE) + 100)

static void test_of_five_that_ended_a_new_one_outlives_all_in_one_case_of_six(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	five_end(&w);
	assert_about(rest(&w, 0, 1), 10);
	assert_about(rest(&w, 0, 500), 30); /* three cases of six */
	assert_about(rest(&w, 30 * MINUTE, 500), 15); /* of three two outlive 40 min, one 50 */
	assert_about(rest(&w, 0, 900), 50 / 6.0 / 0.1); /* beyond all that was seen */
	assert_about(rest(&w, 100 * MINUTE, 500), 100);
	world_deinit(&w);
}

static void test_who_still_runs_counts_for_the_time_that_it_was_seen(void **state)
{
	uint32_t runs[5];
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	five_end(&w);
	for (int i = 0; i < 5; i++)
		runs[i] = begin(&w);
	world_at(&w, w.now_ms + 60 * MINUTE);
	assert_true(rest(&w, 0, 454) <= 50 * MINUTE &&
		    rest(&w, 0, 455) >= 60 * MINUTE); /* 5 of 11 */
	assert_about(rest(&w, 0, 500), 60 * 6 / 5.5);
	assert_about(rest(&w, 55 * MINUTE, 500), 65);
	end(&w,
	    runs[0]); /* six of eleven: of ten one more, and none of the four others had the time */
	assert_true(rest(&w, 0, 545) <= 60 * MINUTE && rest(&w, 0, 546) >= 60 * MINUTE);
	world_deinit(&w);
}

static void test_who_began_before_the_days_that_are_watched_was_never_seen_young(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 0; i < 3; i++)
		begin(&w);
	world_at(&w, w.now_ms + 9 * DAY);
	five_end(&w);
	assert_about(rest(&w, 0, 500), 30); /* as if there were no others */
	/* At their age none ended: nobody of it is known to end before. */
	assert_true(rest(&w, DAY, 10) > 8 * DAY);
	world_deinit(&w);
}

static void test_too_few_say_nothing(void **state)
{
	int64_t rest_ms;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	assert_false(ask(&w, 0, 500, &rest_ms));
	for (int i = 1; i <= 4; i++) {
		uint32_t job = begin(&w);

		world_at(&w, w.now_ms + 10 * i * MINUTE);
		end(&w, job);
	}
	begin(&w);
	world_at(&w, w.now_ms + MINUTE);
	assert_false(ask(&w, 0, 500, &rest_ms));
	world_deinit(&w);
}

static void test_the_closest_likeness_that_is_known_is_taken(void **state)
{
	const struct like_wish
		train = { .user = "ann", .name = "train", .queue = "default", .gpus = 1 },
		other = { .user = "ann", .name = "other", .queue = "default", .gpus = 1 };
	struct lifetimes l;
	int64_t rest_ms;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	five_end(&w);
	lifetimes_make(&w.facts, w.now_ms, &l);
	assert_true(lifetimes_rest_ms(&l, &train, LIKE_NAME, 0, 500, &rest_ms));
	assert_false(lifetimes_rest_ms(&l, &other, LIKE_NAME, 0, 500, &rest_ms));
	assert_true(lifetimes_rest_ms(&l, &other, LIKE_ALL, 0, 500, &rest_ms));
	assert_about(rest_ms, 30);
	lifetimes_deinit(&l);
	world_deinit(&w);
}

static uint32_t run_for(struct world *w, int64_t minutes, int code)
{
	uint32_t job = begin(w);

	world_at(w, w->now_ms + minutes * MINUTE);
	world_exit(w, job, code);
	world_run(w);
	return job;
}

static void test_of_many_that_end_at_one_age_none_ends_before(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	run_for(&w, 60, 0);
	for (int i = 0; i < 9; i++)
		run_for(&w, 600, 0);
	assert_about(rest(&w, 0, 500), 600);
	assert_about(
		rest(&w, 0, 190),
		600); /* of eleven one ended before, and but one of ten is spread over the time between */
	assert_about(rest(&w, 300 * MINUTE, 500), 300);
	assert_in_range(rest(&w, 300 * MINUTE, 10), 40 * MINUTE, 60 * MINUTE);
	world_deinit(&w);
}

static void test_who_failed_held_its_place_too(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	five_end(&w);
	for (int i = 0; i < 20; i++)
		run_for(&w, 5, 1);
	assert_about(rest(&w, 0, 500), 5);
	world_deinit(&w);
}

/* Forty that end on one day, one a day old, the next two: each was seen alone at its age, and halves the chance to get so far. */
static void test_what_is_said_of_the_old_does_not_depend_on_how_few_get_there(void **state)
{
	uint32_t runs[40];
	struct world w;

	(void)state;
	world_init(&w, "n0:8 n1:8 n2:8 n3:8 n4:8");
	w.facts.policy.keep_ended_ms = DAY;
	for (int i = 0; i < 40; i++) {
		runs[i] = begin(&w);
		world_at(&w, w.now_ms + DAY);
	}
	for (int i = 0; i < 40; i++)
		end(&w, runs[i]);
	for (int days = 1; days < 40; days++)
		assert_in_range(rest(&w, days * DAY, 499), DAY * 99 / 100, DAY);
	world_deinit(&w);
}

static void test_who_was_evicted_and_given_up_is_not_known_to_have_ended(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 0; i < 5; i++)
		run_for(&w, 600, 0);
	for (int i = 0; i < 20; i++) {
		uint32_t id = run_for(&w, 30, 0);
		struct job *job = job_edit(&w.facts, (struct job_id){ id });

		job->state = JOB_CANCELLED;
		job->evicted = true;
	}
	assert_about(rest(&w, 0, 500), 600);
	world_deinit(&w);
}

/* Ended jobs that are forgotten must not be missing beside those that run. */
static void test_no_more_days_are_watched_than_ended_jobs_are_kept(void **state)
{
	struct lifetimes l;
	int64_t rest_ms;
	const struct like_wish wish = {
		.user = "ann", .name = "train", .queue = "default", .gpus = 1
	};
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	five_end(&w);
	world_at(&w, w.now_ms + 60 * MINUTE);
	assert_true(ask(&w, 0, 500, &rest_ms));
	w.facts.policy.keep_ended_ms = 30 * MINUTE;
	lifetimes_make(&w.facts, w.now_ms, &l);
	assert_false(lifetimes_rest_ms(&l, &wish, LIKE_ALL, 0, 500, &rest_ms));
	lifetimes_deinit(&l);
	world_deinit(&w);
}

/* The newest LIFETIMES_MAX ends, to the minute; all of the last minute, however many. */
static void test_so_many_ends_are_watched_and_no_more(void **state)
{
	enum { EACH = LIFETIMES_MAX / 4 };
	int64_t rest_ms;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	w.quiet = true;
	for (int i = 0; i < 5; i++) {
		uint32_t first = world_submit(
			&w, (struct wish){ .name = "train", .gpus = 1, .array = EACH });

		for (uint32_t id = first; id < first + EACH; id++) {
			struct job *job = job_edit(&w.facts, (struct job_id){ id });

			job->state = JOB_SUCCEEDED;
			job->run_ms = (i + 1) * 10 * MINUTE;
			job->state_ms = w.now_ms + i * MINUTE;
		}
	}
	w.now_ms += 4 * MINUTE;
	assert_true(ask(&w, 0, 1, &rest_ms)); /* the first minute's are too many */
	assert_about(rest_ms, 20);
	for (uint32_t id = 1; id <= w.facts.jobs.count; id++)
		job_edit(&w.facts, (struct job_id){ id })->state_ms = w.now_ms;
	assert_true(ask(&w, 0, 1, &rest_ms));
	assert_about(rest_ms, 10);
	world_deinit(&w);
}

/* --- beside the definition ------------------------------------------------------------------------------------------- */

enum { JOBS = 300, SEEDS = 20 };

struct life {
	uint32_t job;
	int64_t from_ms, to_ms; /* ages */
	bool ended;
};

/* By the definition, one job after the other. */
static double chance_to_outlive(const struct life *lives, int64_t age_ms)
{
	double chance = 1;

	for (int i = 0; i < JOBS; i++) {
		int watched = 1, ended = 0;
		bool is_first = true;

		if (!lives[i].ended || lives[i].to_ms > age_ms)
			continue;
		for (int k = 0; k < JOBS; k++) {
			const bool same = lives[k].ended && lives[k].to_ms == lives[i].to_ms;

			is_first &= !same || k >= i;
			ended += same;
			watched += lives[k].from_ms < lives[i].to_ms &&
				   lives[k].to_ms >= lives[i].to_ms;
		}
		if (is_first)
			chance *= (double)(watched - ended) / watched;
	}
	return chance;
}

/* They begin over ten days; each ends within its time, or still runs. */
static void live(struct world *w, struct life *lives, uint64_t seed)
{
	struct sim_random random = { seed };
	int64_t began_ms[JOBS], ends_ms[JOBS];

	for (int64_t minute = 0, next = 0; minute < 10 * 24 * 60; minute += 20) {
		world_at(w, w->now_ms + 20 * MINUTE);
		for (; next < JOBS && next * 10 * 24 * 60 / JOBS <= minute; next++) {
			uint64_t dice = sim_random_next(&random);

			lives[next] = (struct life){ .job = begin(w) };
			began_ms[next] = w->now_ms;
			ends_ms[next] =
				w->now_ms +
				(int64_t)(dice % 5 ? dice % 7 + 1 : dice % 900 + 1) * 20 * MINUTE;
		}
		for (int64_t i = 0; i < next; i++)
			if (!lives[i].ended && ends_ms[i] <= w->now_ms) {
				end(w, lives[i].job);
				lives[i].ended = true;
				ends_ms[i] = w->now_ms;
			}
	}
	for (int i = 0; i < JOBS; i++) {
		const int64_t until_ms = lives[i].ended ? ends_ms[i] : w->now_ms;
		const int64_t since_ms = w->now_ms - 7 * DAY;

		lives[i].to_ms = until_ms > since_ms ? until_ms - began_ms[i] : -1;
		lives[i].from_ms = began_ms[i] < since_ms ? since_ms - began_ms[i] : 0;
		lives[i].ended &= until_ms > since_ms;
	}
}

static void test_chances_are_those_of_the_definition(void **state)
{
	static struct life lives[JOBS];
	static double chances[JOBS];

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world w;

		world_init(&w, "n0:8 n1:8 n2:8 n3:8 n4:8 n5:8 n6:8 n7:8");
		live(&w, lives, seed);
		for (int i = 0; i < JOBS; i++)
			chances[i] = chance_to_outlive(lives, lives[i].to_ms);
		for (uint32_t per_mille = 20; per_mille < 1000; per_mille += 49) {
			const int64_t age_ms = rest(&w, 0, per_mille);
			const double left = (1000 - per_mille) / 1000.0;

			/* Between two ages at which some ended: fewer outlive the one, and more the other. */
			for (int i = 0; i < JOBS; i++) {
				const double chance = chances[i];

				if (lives[i].ended && chance > left + 1e-6)
					assert_true(age_ms >= lives[i].to_ms);
				if (lives[i].ended && chance < left - 1e-6)
					assert_true(age_ms <= lives[i].to_ms);
			}
		}
		world_deinit(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_of_five_that_ended_a_new_one_outlives_all_in_one_case_of_six),
		cmocka_unit_test(test_who_still_runs_counts_for_the_time_that_it_was_seen),
		cmocka_unit_test(
			test_who_began_before_the_days_that_are_watched_was_never_seen_young),
		cmocka_unit_test(test_too_few_say_nothing),
		cmocka_unit_test(test_the_closest_likeness_that_is_known_is_taken),
		cmocka_unit_test(test_of_many_that_end_at_one_age_none_ends_before),
		cmocka_unit_test(test_who_failed_held_its_place_too),
		cmocka_unit_test(test_what_is_said_of_the_old_does_not_depend_on_how_few_get_there),
		cmocka_unit_test(test_who_was_evicted_and_given_up_is_not_known_to_have_ended),
		cmocka_unit_test(test_no_more_days_are_watched_than_ended_jobs_are_kept),
		cmocka_unit_test(test_so_many_ends_are_watched_and_no_more),
		cmocka_unit_test(test_chances_are_those_of_the_definition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
