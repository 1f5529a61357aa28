/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations against a model that knows no shortcuts: every expected end is given back in its order, and after each the
 * job is tried. Random clusters, running work and blocked jobs; time and place must be the same.
 */
#include "core/scheduling/testing.h"

#include "core/placement/find.h"
#include "core/scheduling/pass.h"

enum { WORLDS = 150, RUNNING = 40, BLOCKED = 8 };

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = random_state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

static void attempt_give(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(pass->facts, job->attempt);
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct space *space = &pass->view->space;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = task_get(pass->facts, attempt, i);
		const struct hold hold = task_hold(task, shape, i);

		space_give(space, (uint32_t)space_rank(space, task->node.v), &hold);
	}
}

/* What is reserved already is kept in the space; the space comes back as it was. */
static bool model_find(struct pass *pass, const struct place_request *request, bool preempts,
		       int64_t *ret_ms, struct placement *ret)
{
	struct space *space = &pass->view->space;
	uint32_t mark = space_mark(space);
	struct sorted_walk walk;
	bool found, any;

	for (uint32_t id = 1; preempts && id <= pass->facts->jobs.count; id++)
		if (job_view_get(pass->view, id)->attempt &&
		    job_view_get(pass->view, id)->tier == TIER_BEST_EFFORT)
			attempt_give(pass, id);
	*ret_ms = pass->facts->now_ms;
	found = place_find(space, request, pass->arena, ret, NULL) == 0;
	any = sorted_begin(&pass->view->pool, pass->view->ends, &walk);
	for (; any && !found; any = sorted_next(&pass->view->pool, &walk)) {
		if (preempts && job_view_get(pass->view, walk.id)->tier == TIER_BEST_EFFORT)
			continue;
		attempt_give(pass, walk.id);
		found = place_find(space, request, pass->arena, ret, NULL) == 0;
		*ret_ms = (int64_t)walk.key;
	}
	/* What ends at the same time is free as well. */
	for (; any && found && (int64_t)walk.key == *ret_ms;
	     any = sorted_next(&pass->view->pool, &walk))
		if (!preempts || job_view_get(pass->view, walk.id)->tier != TIER_BEST_EFFORT)
			attempt_give(pass, walk.id);
	if (found)
		assert_int_equal(place_find(space, request, pass->arena, ret, NULL), 0);
	space_rollback(space, mark);
	return found;
}

static const struct reservation *reservation_of(const struct pass *pass, uint32_t job)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++)
		if (pass->reservations[i].job == job)
			return &pass->reservations[i];
	return NULL;
}

static void job_compare(struct pass *pass, uint32_t id, uint32_t *ret_found)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	struct place_request request = pass_request(pass, shape, shape->tasks_min);
	const struct reservation *r;
	struct placement place;
	int64_t start_ms;
	bool found;

	reserve_layer(pass, INT64_MAX, true);
	found = model_find(pass, &request, job->preempts, &start_ms, &place);
	reserve_layer(pass, below(2) ? 0 : pass->facts->now_ms + below(100000), below(2));
	assert_int_equal(reserve_for(pass, id), found);
	if (!found)
		return;
	r = reservation_of(pass, id);
	CHECK(r != NULL);
	assert_int_equal(r->start_ms, start_ms);
	assert_int_equal(r->place.count, place.count);
	for (uint32_t i = 0; i < place.count; i++) {
		assert_int_equal(r->place.ranks[i], place.ranks[i]);
		assert_int_equal(r->place.masks[i], place.masks[i]);
	}
	(*ret_found)++;
}

static void world_fill(struct world *w)
{
	for (int i = 0; i < RUNNING; i++)
		(void)world_submit(w, (struct wish){ .tasks = 1 + below(3),
						     .gpus = 1 + below(3),
						     .cpu_milli = below(3) ? 0 : 1000,
						     .best_effort = below(5) == 0,
						     .limit_ms = 1000 + below(100) * 1000 });
	world_run(w);
}

static uint32_t blocked_add(struct world *w)
{
	return world_submit(w, (struct wish){ .tasks = 1 + below(8),
					      .gpus = 1 + below(8),
					      .require = below(4) ? "" : "rack",
					      .polite = below(4) == 0,
					      .held = true });
}

static void reservations_are_where_and_when_the_model_has_them(void **state)
{
	uint32_t found = 0;

	(void)state;
	for (random_state = 1; random_state <= WORLDS; random_state++) {
		uint64_t seed = random_state;
		uint32_t jobs[BLOCKED], mark;
		struct pass pass;
		struct world w;

		world_init(&w, "r0: n0:8 n1:8 n2:4 | r1: n3:8 n4:8 | r2: n5:4 n6:2");
		world_fill(&w);
		for (int i = 0; i < BLOCKED; i++)
			jobs[i] = blocked_add(&w);
		arena_reset(&w.step);
		pass_begin(&pass, &w.facts, w.view, UINT64_MAX, &w.step);
		standings_make(&pass.standings, &w.facts, w.view, &w.step);
		mark = space_mark(&w.view->space);
		for (int i = 0; i < BLOCKED; i++)
			job_compare(&pass, jobs[i], &found);
		space_rollback(&w.view->space, mark);
		view_verify(w.view, &w.facts);
		world_deinit(&w);
		random_state = seed;
	}
	assert_true(found > WORLDS);
}

enum { NODES = 40, WAITING = 16 };

/* Jobs of so many GPUs on all nodes, and who waits for the end of all. */
static void world_fill_evenly(struct world *w, uint32_t gpus, uint32_t waiting[WAITING])
{
	char picture[NODES * 8];
	uint32_t length = 0;

	for (int i = 0; i < NODES; i++)
		length += (uint32_t)snprintf(picture + length, sizeof(picture) - length,
					     "%sn%02d:8", i ? " " : "", i);
	world_init(w, picture);
	for (uint32_t i = 0; i < NODES * (8 / gpus); i++)
		(void)world_submit(w, (struct wish){ .gpus = gpus, .limit_ms = 60000 });
	world_run(w);
	for (uint32_t i = 0; i < WAITING; i++)
		waiting[i] = world_submit(
			w, (struct wish){ .tasks = 1 + i % 4, .gpus = 4 + i / 4, .held = true });
}

/* All end at one time, as the jobs of an array do. Who waits for them goes through these ends once, not once for each reservation:
 * counted in ends that come or are taken back. With jobs of 5 GPUs 120 are free now, but no more than 3 on a node. */
static void ends_of_one_time_are_gone_through_once_for_all_reservations(void **state)
{
	(void)state;
	for (uint32_t gpus = 1; gpus <= 5; gpus += 4) {
		uint32_t jobs[WAITING], mark, ends = NODES * (8 / gpus);
		struct pass pass;
		struct world w;

		world_fill_evenly(&w, gpus, jobs);
		arena_reset(&w.step);
		pass_begin(&pass, &w.facts, w.view, UINT64_MAX, &w.step);
		standings_make(&pass.standings, &w.facts, w.view, &w.step);
		mark = space_mark(&w.view->space);
		for (int i = 0; i < WAITING; i++) {
			const struct reservation *r;

			assert_true(reserve_for(&pass, jobs[i]));
			r = reservation_of(&pass, jobs[i]);
			CHECK(r != NULL);
			assert_int_equal(r->waits_for, 1);
		}
		assert_in_range(ahead_moves(&pass), ends, 2 * ends);
		space_rollback(&w.view->space, mark);
		world_deinit(&w);
	}
}

/* 2 GPUs, one taken for half an hour; `wide` waits for both. The queue says how long work of it runs that says nothing. */
static void the_queues_default_is_the_run_time_of_who_declares_none(void **state)
{
	for (int64_t minutes = 20; minutes <= 40; minutes += 20) {
		struct event queue;
		struct world w;
		uint32_t late;

		world_init(&w, "n0:2");
		queue = world_event(&w, EVENT_QUEUE_SET);
		queue.queue_set.name = "q";
		queue.queue_set.parent = "";
		queue.queue_set.limit_share = -1;
		queue.queue_set.weight = 1;
		queue.queue_set.default_limit_ms = minutes * 60000;
		world_apply(&w, &queue);
		(void)world_submit(&w, (struct wish){ .limit_ms = 30 * 60000, .priority = 9 });
		world_run(&w);
		(void)world_submit(&w, (struct wish){ .gpus = 2, .polite = true });
		world_run(&w);
		late = world_submit(&w, (struct wish){ .queue = "q", .polite = true });
		world_run(&w);
		assert_int_equal(world_running(&w, late), minutes < 30);
		world_deinit(&w);
	}
	(void)state;
}

/* --- behind a reservation ------------------------------------------------------------------------------ */

static int64_t planned_after_ms(const struct world *w, uint32_t job)
{
	const struct reservation_fact *r = facts_reservation(&w->facts, (struct job_id){ job });

	return r ? r->start_ms - w->now_ms : -1;
}

/* A GPU for an hour, and alike jobs that wait for it: one after the other. */
static void alike_jobs_have_their_planned_starts_one_after_the_other(void **state)
{
	enum { HOUR_MS = 3600000, ALIKE = 40 };
	uint32_t first;
	struct world w;

	(void)state;
	world_init(&w, "n0:1");
	(void)world_submit(&w, (struct wish){ .limit_ms = HOUR_MS });
	world_run(&w);
	first = world_submit(&w, (struct wish){ .limit_ms = HOUR_MS });
	for (uint32_t i = 1; i < ALIKE; i++)
		(void)world_submit(&w, (struct wish){ .limit_ms = HOUR_MS });
	world_run(&w);
	for (uint32_t i = 0; i < ALIKE; i++)
		assert_int_equal(planned_after_ms(&w, first + i),
				 i < 32 ? (int64_t)(i + 1) * HOUR_MS : -1);
	world_deinit(&w);
}

static void alike_jobs_of_a_queue_leave_reservations_to_other_queues(void **state)
{
	enum { HOUR_MS = 3600000, ALIKE = 40 };
	uint32_t wide, first;
	struct world w;

	(void)state;
	world_init(&w, "n0:4");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "", 0, -1, 1);
	(void)world_submit(&w, (struct wish){ .gpus = 4, .limit_ms = HOUR_MS });
	world_run(&w);
	first = world_submit(&w, (struct wish){ .queue = "a", .gpus = 2, .limit_ms = HOUR_MS });
	for (uint32_t i = 1; i < ALIKE; i++)
		(void)world_submit(&w,
				   (struct wish){ .queue = "a", .gpus = 2, .limit_ms = HOUR_MS });
	wide = world_submit(&w, (struct wish){ .queue = "b", .gpus = 4, .limit_ms = HOUR_MS });
	world_run(&w);
	assert_int_equal(planned_after_ms(&w, first + 15), 8 * HOUR_MS);
	assert_int_equal(planned_after_ms(&w, first + 16), -1);
	assert_int_equal(planned_after_ms(&w, wide), 9 * HOUR_MS);
	world_deinit(&w);
}

/* --- nobody waits for ever --------------------------------------------------------------------------- */

enum { LINE = 3, STREAM_SECONDS = 150, LIMIT_MAX_S = 40 };

/* Jobs that began end by themselves: each at its limit, or before. */
static void ends_come(struct world *w, const uint32_t *life_s, uint32_t most)
{
	for (uint32_t id = 1; id <= w->facts.jobs.count && id < most; id++) {
		const struct job *job = job_get(&w->facts, (struct job_id){ id });

		if (job->attempt.v &&
		    w->now_ms - attempt_get(&w->facts, job->attempt)->released_ms >=
			    (int64_t)life_s[id] * 1000)
			world_exit(w, id, 0);
	}
	world_run(w);
}

/* Wide jobs of a high priority, one behind the other, and a stream of narrow ones that would use every gap. */
static void the_kth_in_line_starts_within_k_times_the_longest_limit(void **state)
{
	enum { JOBS = 1000 };

	(void)state;
	for (random_state = 1; random_state <= 20; random_state++) {
		uint64_t seed = random_state;
		uint32_t line[LINE], life_s[JOBS] = { 0 }, began;
		int64_t began_ms;
		struct world w;

		world_init(&w, "n0:4 n1:4 n2:4");
		began_ms = w.now_ms;
		for (uint32_t second = 0; second < STREAM_SECONDS; second++) {
			for (uint32_t i = 0; second == 5 && i < LINE; i++) {
				line[i] = world_submit(&w, (struct wish){ .tasks = 2 + below(2),
									  .gpus = 4,
									  .priority = 9,
									  .polite = true,
									  .limit_ms = 20000 });
				life_s[line[i]] = 20;
			}
			for (uint32_t i = below(4); i-- > 0;) {
				uint32_t limit_s = 1 + below(LIMIT_MAX_S),
					 id = world_submit(
						 &w, (struct wish){ .gpus = 1 + below(2),
								    .polite = true,
								    .limit_ms = limit_s * 1000 });

				life_s[id] = 1 + below(limit_s);
			}
			world_at(&w, began_ms + second * 1000);
			ends_come(&w, life_s, JOBS);
			began = 0;
			for (uint32_t i = 0; second >= 5 && i < LINE; i++)
				began +=
					job_get(&w.facts, (struct job_id){ line[i] })->attempts > 0;
			for (uint32_t i = 0; second >= 5 && i < LINE; i++)
				assert_true(began > i || second < 5 + (i + 1) * LIMIT_MAX_S);
		}
		world_deinit(&w);
		random_state = seed;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reservations_are_where_and_when_the_model_has_them),
		cmocka_unit_test(the_kth_in_line_starts_within_k_times_the_longest_limit),
		cmocka_unit_test(ends_of_one_time_are_gone_through_once_for_all_reservations),
		cmocka_unit_test(the_queues_default_is_the_run_time_of_who_declares_none),
		cmocka_unit_test(alike_jobs_have_their_planned_starts_one_after_the_other),
		cmocka_unit_test(alike_jobs_of_a_queue_leave_reservations_to_other_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
