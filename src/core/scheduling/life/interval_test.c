/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/interval.h"

#include "core/scheduling/testing.h"

enum { MINUTE = 60000 };

static struct interval chosen(const struct world *w, int64_t ranks, int64_t cost_ms)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, "test");
	struct interval interval;

	e.job_submitted.name = "train";
	e.job_submitted.user = "ann";
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.tasks_min = ranks;
	e.job_submitted.checkpoint_cost_ms = cost_ms;
	interval_choose(&w->facts, &e.job_submitted, &interval);
	return interval;
}

/* The worked example of interval.h. */
static void without_history_a_rank_breaks_once_in_200_days(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(chosen(&w, 64, 0).every_ms, 5692 * 1000); /* 94.9 min */
	assert_int_equal(chosen(&w, 64, 0).mean_ms, INT64_C(4500) * MINUTE);
	assert_int_equal(chosen(&w, 64, 4 * MINUTE).every_ms, 11384 * 1000); /* twice as long */
	assert_int_equal(chosen(&w, 16, 0).every_ms, 11384 * 1000);
	world_deinit(&w);
}

static void it_is_never_below_a_minute_nor_above_a_day(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(chosen(&w, 10000000, 1000).every_ms, MINUTE);
	assert_int_equal(chosen(&w, 1, INT64_C(86400) * 1000).every_ms, INT64_C(86400) * 1000);
	world_deinit(&w);
}

static void machines_that_broke_make_it_shorter(void **state)
{
	struct interval before, after;
	struct event e;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	job = world_submit(&w, (struct wish){ .name = "other", .gpus = 1 });
	world_run(&w);
	before = chosen(&w, 1, MINUTE);
	assert_int_equal(before.failures, 0);
	e = world_event(&w, EVENT_ATTEMPT_ENDED);
	e.attempt_ended.attempt = job_get(&w.facts, (struct job_id){ job })->attempt.v;
	e.attempt_ended.why = STOP_LOST;
	world_apply(&w, &e);
	after = chosen(&w, 1, MINUTE);
	assert_int_equal(after.failures, 1);
	assert_true(after.mean_ms <= before.mean_ms / 2 + MINUTE);
	assert_true(after.every_ms < before.every_ms);
	world_deinit(&w);
}

/* The worked example of interval.h; then it is stopped for others twice in an hour each, and standard work changes nothing. */
static void best_effort_work_is_stopped_by_others_too(void **state)
{
	struct event_job_submitted e = { .name = "train",
					 .user = "ann",
					 .tasks_min = 1,
					 .checkpoint = 1,
					 .tier = TIER_BEST_EFFORT };
	struct interval interval;
	struct event ended;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	interval_choose(&w.facts, &e, &interval);
	assert_true(interval.goes_first && interval.stops == 0);
	assert_int_equal(interval.mean_ms / 6000, 14328); /* 1,432.8 min */
	assert_int_equal(interval.every_ms, 3211 * 1000); /* 53.5 min */
	for (uint8_t i = 0; i < 4; i++) {
		uint32_t job = world_submit(
			&w, (struct wish){ .name = "other", .gpus = 1, .best_effort = i < 2 });

		world_decide(&w);
		world_run(&w);
		world_at(&w, w.now_ms + INT64_C(60) * MINUTE);
		ended = world_event(&w, EVENT_ATTEMPT_ENDED);
		ended.attempt_ended.attempt = job_get(&w.facts, (struct job_id){ job })->attempt.v;
		ended.attempt_ended.why = STOP_EVICTED;
		world_apply(&w, &ended);
	}
	interval_choose(&w.facts, &e, &interval);
	assert_int_equal(interval.stops, 2);
	assert_int_equal(interval.mean_ms / MINUTE, 519); /* 26 h / 3, and 200 days beside */
	e.tasks_min = 64; /* others stop a gang as a whole, machines break each rank */
	interval_choose(&w.facts, &e, &interval);
	assert_int_equal(interval.mean_ms / MINUTE, 466);
	e.tier = TIER_STANDARD;
	interval_choose(&w.facts, &e, &interval);
	assert_false(interval.goes_first);
	assert_int_equal(interval.mean_ms / MINUTE, 4503);
	world_deinit(&w);
}

static void what_a_checkpoint_of_a_like_job_took_is_measured(void **state)
{
	struct event e;
	struct world w;
	uint32_t job, attempt;

	(void)state;
	world_init(&w, "n0:8");
	job = world_submit(
		&w, (struct wish){ .name = "train", .user = "ann", .gpus = 1, .checkpoint = true });
	world_run(&w);
	attempt = job_get(&w.facts, (struct job_id){ job })->attempt.v;
	e = world_event(&w, EVENT_ATTEMPT_WARNED);
	e.attempt_warned.attempt = attempt;
	e.attempt_warned.deadline_ms = w.now_ms + 60 * MINUTE;
	world_apply(&w, &e);
	world_at(&w, w.now_ms + 4 * MINUTE);
	e = world_event(&w, EVENT_CHECKPOINT_SAVED);
	e.checkpoint_saved.job = job;
	e.checkpoint_saved.attempt = attempt;
	e.checkpoint_saved.number = 1;
	e.checkpoint_saved.at_ms = w.now_ms;
	e.checkpoint_saved.path = "x";
	world_apply(&w, &e);
	assert_int_equal(chosen(&w, 1, 0).measured, 1);
	assert_int_equal(chosen(&w, 1, 0).cost_ms, 4 * MINUTE);
	assert_int_equal(chosen(&w, 1, 2 * MINUTE).cost_ms, 2 * MINUTE); /* declared */
	world_deinit(&w);
}

static void node_is_spot(struct world *w, const char *name)
{
	struct event e = world_event(w, EVENT_NODE_MARKED);

	e.node_marked.node = facts_node_find(&w->facts, name).v;
	e.node_marked.capacity = CAPACITY_SPOT;
	world_apply(w, &e);
}

static struct interval chosen_for(const struct world *w, struct event_job_submitted job)
{
	struct interval interval;

	job.name = "train";
	job.user = "ann";
	job.kind = KIND_TRAINING;
	job.tasks_min = job.tasks_min ? job.tasks_min : 1;
	job.grace_ms = job.grace_ms ? job.grace_ms : 2 * MINUTE;
	interval_choose(&w->facts, &job, &interval);
	return interval;
}

/* The second worked example of interval.h. */
static void where_a_notice_is_shorter_than_a_checkpoint_reclaims_are_breaks(void **state)
{
	const struct event_job_submitted job = { .checkpoint = 1,
						 .gpus = 8,
						 .tier = TIER_STANDARD };
	struct event_job_submitted other;
	struct interval interval, alone;
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:8 n1:8");
	alone = chosen_for(&w, job);
	assert_false(alone.tight); /* there are no spot nodes */
	node_is_spot(&w, "n0");
	interval = chosen_for(&w, job);
	assert_int_equal(interval.notice_ms, 30000);
	assert_int_equal(interval.mean_ms, 3599 * 1000);
	assert_int_equal(interval.every_ms, 657 * 1000); /* 10.95 min */

	/* 16 ranks of one GPU lie on two nodes of 8, so half the time; two of 8 GPUs likewise. */
	other = job;
	other.gpus = 1;
	other.tasks_min = 16;
	assert_int_equal(chosen_for(&w, other).mean_ms / 1000 / 10, 179);
	other.gpus = 8;
	other.tasks_min = 2;
	assert_int_equal(chosen_for(&w, other).mean_ms / 1000 / 10, 179);

	/* Enough of a notice for its checkpoint; and jobs that are on no spot node. */
	other = job;
	other.checkpoint_cost_ms = 30000;
	assert_false(chosen_for(&w, other).tight);
	other.checkpoint_cost_ms = 30001;
	assert_int_equal(chosen_for(&w, other).notice_ms, 30000);
	other = job;
	other.capacity = CAPACITY_ON_DEMAND;
	assert_false(chosen_for(&w, other).tight);
	assert_int_equal(chosen_for(&w, other).every_ms, alone.every_ms);
	other = job;
	other.tier = TIER_CRITICAL;
	assert_false(chosen_for(&w, other).tight);

	/* EC2's two minutes; but the job's own grace ends before. */
	e = world_event(&w, EVENT_POLICY_SET);
	e.policy_set.spot_notice_ms = 2 * MINUTE;
	world_apply(&w, &e);
	assert_false(chosen_for(&w, job).tight);
	other = job;
	other.grace_ms = 20000;
	assert_int_equal(chosen_for(&w, other).notice_ms, 20000);

	/* Nodes that stay longer are worth fewer checkpoints. */
	world_at(&w, w.now_ms + INT64_C(99) * 60 * MINUTE);
	assert_int_equal(chosen_for(&w, other).mean_ms / MINUTE, 5877);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_history_a_rank_breaks_once_in_200_days),
		cmocka_unit_test(it_is_never_below_a_minute_nor_above_a_day),
		cmocka_unit_test(machines_that_broke_make_it_shorter),
		cmocka_unit_test(best_effort_work_is_stopped_by_others_too),
		cmocka_unit_test(where_a_notice_is_shorter_than_a_checkpoint_reclaims_are_breaks),
		cmocka_unit_test(what_a_checkpoint_of_a_like_job_took_is_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
