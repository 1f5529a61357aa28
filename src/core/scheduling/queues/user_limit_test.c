/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that one user's jobs hold at once in a queue. */
#include "core/scheduling/queues/user_limit.h"

#include <string.h>

#include "core/scheduling/testing.h"

static void queue_set(struct world *w, const char *name, const char *parent, int64_t limit,
		      int64_t user_limit, int64_t user_part)
{
	struct event e = world_event(w, EVENT_QUEUE_SET);

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.limit_share = limit < 0 ? -1 : limit * GPU_SHARE;
	e.queue_set.weight = 1;
	e.queue_set.user_limit_share = user_limit * GPU_SHARE;
	e.queue_set.user_part = user_part;
	world_apply(w, &e);
}

static uint32_t submit(struct world *w, const char *user, const char *queue, int64_t gpus)
{
	return world_submit(w, (struct wish){ .user = user, .queue = queue, .gpus = gpus });
}

static const char *why(struct world *w, uint32_t job)
{
	struct explanation e;

	explain_job(&w->facts, w->view, (struct job_id){ job }, &w->step, &e);
	assert_int_equal(e.reason, REASON_QUOTA_LIMIT);
	return arena_printf(&w->step, "%s; %s", e.summary, e.remedy);
}

static void one_user_holds_so_much_and_the_next_one_starts(void **state)
{
	struct world w;
	uint32_t first, second, third, other;

	(void)state;
	world_init(&w, "n0:8");
	queue_set(&w, "a", "", -1, 3, 0);
	first = submit(&w, "ann", "a", 2);
	second = submit(&w, "ann", "a", 2);
	third = submit(&w, "ann", "a", 1);
	other = submit(&w, "bob", "a", 2);
	world_run(&w);
	assert_true(world_running(&w, first));
	assert_false(world_running(&w, second));
	assert_true(world_running(&w, third));
	assert_true(world_running(&w, other));
	assert_non_null(strstr(
		why(&w, second),
		"needs 2 GPUs, but the jobs of user \"ann\" may hold 0 more in queue \"a\" (its limit per user is 3)"));
	assert_non_null(
		strstr(why(&w, second),
		       "jobs of user \"ann\" that give back 2 GPUs, or an admin, who can raise"));
	world_exit(&w, first, 0);
	world_run(&w);
	assert_true(world_running(&w, second));
	world_deinit(&w);
}

/* Alike but for their users: what one user may not start does not hold up another. */
static void jobs_alike_of_two_users_do_not_wait_for_each_other(void **state)
{
	struct world w;
	uint32_t ann = 0, bob = 0, jobs[20];

	(void)state;
	world_init(&w, "n0:8");
	queue_set(&w, "a", "", -1, 2, 0);
	for (int i = 0; i < 20; i++)
		jobs[i] = submit(&w, i < 10 ? "ann" : "bob", "a", 1);
	world_run(&w);
	for (int i = 0; i < 20; i++)
		*(i < 10 ? &ann : &bob) += world_running(&w, jobs[i]);
	assert_int_equal(ann, 2);
	assert_int_equal(bob, 2);
	world_deinit(&w);
}

static void a_limit_covers_the_queues_below_and_every_one_counts(void **state)
{
	struct world w;
	uint32_t one, two, three, four;

	(void)state;
	world_init(&w, "n0:8");
	queue_set(&w, "a", "", -1, 3, 0);
	queue_set(&w, "b", "a", -1, 2, 0);
	one = submit(&w, "ann", "b", 2);
	two = submit(&w, "ann", "b", 1);
	world_run(&w);
	three = submit(&w, "ann", "a", 1);
	world_run(&w);
	four = submit(&w, "ann", "a", 1); /* with what runs in b */
	world_run(&w);
	assert_false(world_running(&w, four));
	assert_true(world_running(&w, one));
	assert_false(world_running(&w, two));
	assert_true(world_running(&w, three));
	world_deinit(&w);
}

static void a_percentage_is_of_what_the_queue_may_hold(void **state)
{
	const struct {
		int64_t limit, part, gpus;
	} rows[] = { { 6, 50, 3 }, { -1, 50, 4 }, { 100, 50, 4 }, { 6, 1, 1 }, { -1, 100, 8 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct world w;
		uint32_t running = 0;

		world_init(&w, "n0:8");
		queue_set(&w, "a", "", rows[i].limit, 0, rows[i].part);
		for (int k = 0; k < 10; k++)
			(void)submit(&w, "ann", "a", 1);
		world_run(&w);
		for (uint32_t job = 1; job <= 10; job++)
			running += world_running(&w, job);
		assert_int_equal(running, rows[i].gpus);
		world_deinit(&w);
	}
}

/* A limit that comes while jobs wait and run: nobody is stopped, and what waits counts by user from then on. */
static void a_limit_comes_and_goes(void **state)
{
	struct world w;
	uint32_t ann[8], bob, held = 0;

	(void)state;
	world_init(&w, "n0:4");
	queue_set(&w, "a", "", -1, 0, 0);
	for (int i = 0; i < 8; i++)
		ann[i] = submit(&w, "ann", "a", 1);
	bob = submit(&w, "bob", "a", 1);
	world_run(&w);
	queue_set(&w, "a", "", -1, 2, 0);
	view_verify(w.view, &w.facts);
	world_run(&w);
	for (int i = 0; i < 8; i++)
		held += world_running(&w, ann[i]);
	assert_int_equal(held, 4);
	world_exit(&w, ann[0], 0);
	world_run(&w);
	assert_true(world_running(&w, bob)); /* behind ann's, which are over the limit */
	assert_false(world_running(&w, ann[4]));
	queue_set(&w, "a", "", -1, 0, 0);
	view_verify(w.view, &w.facts);
	world_exit(&w, ann[1], 0);
	world_run(&w);
	assert_true(world_running(&w, ann[4]));
	world_deinit(&w);
}

/* A place that is promised counts as held; a job that is over the limit of its user stops nobody. */
static void what_is_promised_counts_and_who_is_over_the_limit_stops_nobody(void **state)
{
	struct world w;
	uint32_t victims[4], high[3], running = 0;

	(void)state;
	world_init(&w, "n0:4");
	world_policy(&w, 60000, 0);
	queue_set(&w, "a", "", -1, 2, 0);
	for (int i = 0; i < 4; i++)
		victims[i] = world_submit(&w, (struct wish){ .user = i < 2 ? "cem" : "dan",
							     .queue = "a",
							     .gpus = 1,
							     .checkpoint = true });
	world_run(&w);
	for (int i = 0; i < 3; i++)
		high[i] = world_submit(
			&w, (struct wish){ .user = "ann", .queue = "a", .gpus = 1, .priority = 5 });
	world_decide(&w);
	(void)why(&w, high[2]);
	for (int i = 0; i < 4; i++)
		world_saved(&w, victims[i]);
	world_run(&w);
	for (int i = 0; i < 3; i++)
		running += world_running(&w, high[i]);
	assert_int_equal(running, 2);
	assert_int_equal(w.evictions, 2);
	world_deinit(&w);
}

static void an_elastic_job_is_as_wide_as_its_user_may_hold(void **state)
{
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	queue_set(&w, "a", "", -1, 3, 0);
	job = world_submit(
		&w, (struct wish){
			    .user = "ann", .queue = "a", .gpus = 1, .tasks = 1, .tasks_max = 6 });
	world_run(&w);
	assert_int_equal(world_running(&w, job), 3);
	world_at(&w, w.now_ms + 3600000);
	world_run(&w);
	assert_int_equal(world_running(&w, job), 3);
	queue_set(&w, "a", "", -1, 5, 0);
	world_at(&w, w.now_ms + 3600000);
	world_run(&w);
	assert_int_equal(world_running(&w, job), 5);
	world_deinit(&w);
}

static void who_submits_more_than_the_limit_is_told_so(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	queue_set(&w, "a", "", -1, 3, 0);
	e = world_event(&w, EVENT_JOB_SUBMITTED);
	e.job_submitted.name = "wide";
	e.job_submitted.user = "ann";
	e.job_submitted.queue = "a";
	e.job_submitted.kind = KIND_BATCH;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 1;
	e.job_submitted.gpus = 4;
	assert_non_null(
		strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "its limit per user is 3"));
	e.job_submitted.gpus = 3;
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "limit per user"));
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_holds_so_much_and_the_next_one_starts),
		cmocka_unit_test(jobs_alike_of_two_users_do_not_wait_for_each_other),
		cmocka_unit_test(a_limit_covers_the_queues_below_and_every_one_counts),
		cmocka_unit_test(a_percentage_is_of_what_the_queue_may_hold),
		cmocka_unit_test(a_limit_comes_and_goes),
		cmocka_unit_test(what_is_promised_counts_and_who_is_over_the_limit_stops_nobody),
		cmocka_unit_test(who_submits_more_than_the_limit_is_told_so),
		cmocka_unit_test(an_elastic_job_is_as_wide_as_its_user_may_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
