/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn is over, found in groups, beside the same found one by one: whoever may go, and when the core has to be woken. */
#include "core/scheduling/view/turners.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/scheduling/order/due.h"
#include "core/scheduling/evict/evict.h"
#include "core/scheduling/testing.h"

enum { MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS, JOBS = 96, ROUNDS = 200 };

static uint64_t seed;

static uint32_t below(uint32_t end)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % end;
}

/* --- one by one ---------------------------------------------------------------------------------------------------- */

static void wake(const struct world *w, int64_t at_ms, int64_t *wake_ms)
{
	if (at_ms > w->facts.now_ms && (!*wake_ms || at_ms < *wake_ms))
		*wake_ms = at_ms;
}

/* May this job make room for one of the rank with so much work? *wake_ms: earlier, when that is to be asked again before. */
static bool goes(const struct world *w, const struct hunt *hunt, uint32_t id, int64_t *wake_ms)
{
	const struct facts *f = &w->facts;
	const struct job *job = job_get(f, (struct job_id){ id });
	const struct attempt *attempt;
	uint32_t work = hunt->work, wanted = work + (job->limit_ms || job->estimate_ms ? 2 : 8);
	int64_t ran, wait_ms, cost;
	uint32_t class;

	if (!job->attempt.v || job->tier != TIER_STANDARD)
		return false;
	attempt = attempt_get(f, job->attempt);
	if (attempt->warned_ms)
		return false;
	if (job_view_get(w->view, id)->since_ms + f->policy.min_runtime_ms > f->now_ms) {
		wake(w, job_view_get(w->view, id)->since_ms + f->policy.min_runtime_ms, wake_ms);
		return false;
	}
	if (job_rank(job) != hunt->rank || !job->checkpoints || attempt->state != ATTEMPT_ACTIVE)
		return false;
	ran = f->now_ms - attempt->released_ms;
	class = job_work_class(f, job, ran);
	wait_ms = job_work_reaches_ms(f, job, ran, wanted);
	if (!wait_ms && class < wanted)
		return false; /* it never has enough */
	if (wait_ms < job->run_ms / TURN_PART - ran)
		wait_ms = job->run_ms / TURN_PART - ran;
	if (wait_ms <= 0 && class >= wanted) {
		cost = share_gpu_ms(attempt_share(f, attempt),
				    job_grace_ms(f, job) + (int64_t)job->restart_cost_ms) +
		       job->lost_gpu_ms;
		if (work_class_floor_ms(class) - work_class_floor_ms(work) > cost &&
		    hunt->due_ms < work_due_ms(f, job->submitted_ms, class))
			return true;
		wait_ms = job_work_reaches_ms(f, job, ran, class + 1);
	}
	if (wait_ms > 0)
		wake(w, f->now_ms + wait_ms, wake_ms);
	return false;
}

/* --- both ------------------------------------------------------------------------------------------------------------ */

static uint32_t compared, offered, woken, resumed;

/* In a pass of its own, as if the job's work were of that class. */
static void ask(struct world *w, uint32_t waiting, uint32_t work, int64_t due_ms, struct pass *pass,
		struct hunt *hunt, struct turns *ret)
{
	const struct job *job = job_get(&w->facts, (struct job_id){ waiting });

	arena_reset(&w->step);
	view_refresh(w->view, &w->facts);
	pass_begin(pass, &w->facts, w->view, UINT64_MAX, &w->step);
	pass->wake_ms = 0;
	*hunt = (struct hunt){ .pass = pass,
			       .job = waiting,
			       .j = job,
			       .shape = shape_get(&w->facts, job->shape),
			       .rank = job_rank(job),
			       .work = work,
			       .due_ms = due_ms };
	*ret = (struct turns){ .hunt = hunt };
	turns_find(ret);
}

static int64_t wake_of(struct world *w, uint32_t waiting, uint32_t work)
{
	struct pass pass;
	struct hunt hunt;
	struct turns turns;

	ask(w, waiting, work, 0, &pass, &hunt, &turns);
	return pass.wake_ms;
}

static void compare(struct world *w, uint32_t waiting, uint32_t work)
{
	struct pass pass;
	struct hunt hunt;
	struct turns turns;
	int64_t wake_ms = 0;
	uint32_t count = 0;

	/* due as if it had come within the last days */
	ask(w, waiting, work, w->now_ms + (int64_t)below(200) * HOUR_MS, &pass, &hunt, &turns);
	for (uint32_t id = 1; id <= w->facts.jobs.count; id++) {
		bool found = false;

		if (!goes(w, &hunt, id, &wake_ms))
			continue;
		count++;
		resumed += job_get(&w->facts, (struct job_id){ id })->run_ms > 0;
		for (uint32_t i = 0; i < turns.count; i++)
			found = found || turns.list[i].job == id;
		assert_true(found);
	}
	assert_int_equal(turns.count, count);
	assert_int_equal(pass.wake_ms, wake_ms);
	compared++;
	offered += count;
	woken += wake_ms != 0;
}

static void job_random(struct world *w)
{
	struct wish wish = { .gpus = 1 + below(2),
			     .retries = 9,
			     .priority = below(8) == 0,
			     .checkpoint = below(8) != 0,
			     .restart_cost_ms = below(4) * 5 * MINUTE_MS,
			     .best_effort = below(8) == 0 };

	if (below(3) == 0)
		wish.estimate_ms = (1 + (int64_t)below(40)) * 20 * MINUTE_MS;
	else if (below(2) == 0)
		wish.limit_ms = (1 + (int64_t)below(40)) * 20 * MINUTE_MS;
	(void)world_submit(w, wish);
}

/* What runs ends, fails and begins anew from its checkpoint, has another priority; time goes on. */
static void something_happens(struct world *w)
{
	uint32_t id = 2 + below(w->facts.jobs.count - 1);
	struct event e = world_event(w, EVENT_JOB_PRIORITY_SET);

	bool runs = job_get(&w->facts, (struct job_id){ id })->attempt.v != 0;

	switch (below(6)) {
	case 0: job_random(w); break;
	case 1:
		if (runs)
			world_exit(w, id, 0);
		break;
	case 3:
	case 4:
		if (runs && job_get(&w->facts, (struct job_id){ id })->checkpoints) {
			world_saved(w, id);
			world_exit(w, id, 1);
		}
		break;
	case 2:
		e.job_priority_set.job = id;
		e.job_priority_set.priority = below(8) == 0;
		world_apply(w, &e);
		break;
	default: world_at(w, w->now_ms + (int64_t)below(90) * MINUTE_MS);
	}
	world_run(w);
}

static void groups_find_what_is_found_one_by_one(void **state)
{
	(void)state;
	for (seed = 1; seed <= 8; seed++) {
		uint64_t first = seed;
		struct world w;
		uint32_t waiting;

		world_init(&w, "n0:32 n1:32 n2:32 n3:32");
		w.quiet = true;
		world_policy(&w, below(2) * 5 * MINUTE_MS + MINUTE_MS, 10 * MINUTE_MS);
		waiting = world_submit(&w, (struct wish){ .gpus = 1, .held = true });
		for (uint32_t i = 0; i < JOBS; i++)
			job_random(&w);
		world_run(&w);
		for (uint32_t i = 0; i < ROUNDS; i++) {
			something_happens(&w);
			compare(&w, waiting, 150 + below(72));
		}
		view_verify(w.view, &w.facts);
		world_deinit(&w);
		seed = first;
	}
	assert_true(compared == 8 * ROUNDS && offered > compared && resumed > compared);
	assert_true(woken > compared / 2);
}

/* 2^25 ms are 9 h 19 min. `first` has run for that at 9:19, when its estimate is over; `second`, of which it is over at 6:00, at 14:19. */
static void who_began_first_has_enough_first_though_its_estimate_ends_later(void **state)
{
	struct world w;
	int64_t began_ms;
	uint32_t first, waiting;

	(void)state;
	world_init(&w, "n0:2");
	world_policy(&w, MINUTE_MS, 10 * MINUTE_MS);
	began_ms = w.now_ms;
	first = world_submit(&w, (struct wish){ .checkpoint = true, .estimate_ms = 8 * HOUR_MS });
	world_run(&w);
	world_at(&w, began_ms + 5 * HOUR_MS);
	(void)world_submit(&w, (struct wish){ .checkpoint = true, .estimate_ms = HOUR_MS });
	world_run(&w);
	world_at(&w, began_ms + 5 * HOUR_MS + 30 * MINUTE_MS);
	waiting = world_submit(&w, (struct wish){ .held = true });
	assert_int_equal(wake_of(&w, waiting, 25 * 8 - WORK_GAIN_DECLARED),
			 attempt_get(&w.facts, job_get(&w.facts, (struct job_id){ first })->attempt)
					 ->released_ms +
				 (INT64_C(1) << 25) + 1);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_began_first_has_enough_first_though_its_estimate_ends_later),
		cmocka_unit_test(groups_find_what_is_found_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
