/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply against a model that is written to be obvious (obvious_model.h). 10,000 random events per seed; after each the
 * two must say the same. The seed is printed when they do not; FACTS_SEED repeats one.
 */
#include "base/testing.h"

#include "base/arena.h"
#include "core/model/facts.h"
#include "core/model/obvious_model.h"
#include "core/model/random_events.h"

enum { STEPS = 10000 };

static uint64_t seed;
static uint64_t step;

#define SAME(a, b)                                                                                 \
	do {                                                                                       \
		if ((int64_t)(a) != (int64_t)(b))                                                  \
			fail_msg("FACTS_SEED=%llu, event %llu, %s %u: " #a " is %lld, but " #b     \
				 " is %lld",                                                       \
				 (unsigned long long)seed, (unsigned long long)step, what, id,     \
				 (long long)(a), (long long)(b));                                  \
	} while (0)

static void same_promise(const struct facts *f, uint32_t id)
{
	const char *what = "promise of job";
	uint32_t row = job_get(f, (struct job_id){ id })->promise;
	const struct model_job *job = &model.job[id];

	for (uint32_t i = 0; i < job->promised + job->victims; i++) {
		const struct promise *promise;

		SAME(row != 0, 1);
		promise = table_get(&f->promises, row);
		SAME(promise->node, i < job->promised ? job->promise_node[i] : 0);
		SAME(promise->gpu_mask, i < job->promised ? job->promise_mask[i] : 0);
		SAME(promise->victim, i < job->promised ? 0 : job->victim[i - job->promised]);
		row = promise->next;
	}
	SAME(row, 0);
}

static void same_reservation(const struct facts *f, uint32_t id)
{
	const char *what = "reservation of job";
	const struct reservation_fact *r = facts_reservation(f, (struct job_id){ id });
	const struct model_job *job = &model.job[id];
	uint32_t row = r ? r->first : 0;

	SAME(r ? r->tasks : 0, job->reserved);
	if (!r)
		return;
	SAME(r->start_ms, job->reserved_ms);
	SAME(r->waits_for, job->waits_for);
	for (uint32_t i = 0; i < job->reserved; i++) {
		const struct promise *promise = table_get(&f->promises, row);

		SAME(promise->node, job->reserved_node[i]);
		SAME(promise->gpu_mask, job->reserved_mask[i]);
		row = promise->next;
	}
	SAME(row, 0);
}

static void same_job(const struct facts *f, uint32_t id)
{
	const char *what = "job";
	const struct job *job = job_get(f, (struct job_id){ id });
	const struct model_job *want = &model.job[id];
	const struct checkpoint *checkpoint = job_checkpoint(f, job, 0);
	uint32_t newest = want->made;

	SAME(job->state, want->state);
	SAME(job->state_ms, want->since);
	SAME(job->submitted_ms, want->submitted);
	SAME(job->attempt.v, want->attempt);
	SAME(job->last_attempt.v, want->last);
	SAME(job->attempts, want->attempts);
	SAME(job->held, want->held);
	SAME(job->cancel_asked, want->cancel);
	SAME(job->priority, want->priority);
	SAME(job->retries_left, want->retries);
	SAME(job->run_ms, want->run);
	SAME(job->used_gpu_ms, want->used);
	SAME(job->lost_gpu_ms, want->lost);
	while (newest && newest + CHECKPOINTS_KEPT > want->made && want->checkpoint[newest].is_void)
		newest--;
	if (newest + CHECKPOINTS_KEPT <= want->made)
		newest = 0;
	SAME(checkpoint ? checkpoint->number : 0, newest);
	SAME(checkpoint ? checkpoint->step : 0, want->checkpoint[newest].step);
	for (uint32_t number = want->made; number && number + CHECKPOINTS_KEPT > want->made;
	     number--) {
		const struct model_checkpoint *kept = &want->checkpoint[number];

		checkpoint = job_checkpoint_kept(f, job, number);
		assert_non_null(checkpoint);
		SAME(checkpoint->is_void, kept->is_void);
		assert_string_equal(facts_text(f, checkpoint->why), kept->why ? kept->why : "");
	}
	same_promise(f, id);
	same_reservation(f, id);
}

static void same_attempt(const struct facts *f, uint32_t id)
{
	const char *what = "attempt";
	const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });
	const struct model_attempt *want = &model.attempt[id];
	uint32_t ready = 0, started = 0;

	SAME(attempt->state == ATTEMPT_FREE, want->gone);
	SAME(attempt->job.v, want->job);
	if (want->gone)
		return;
	SAME(attempt->tasks, want->ranks);
	SAME(attempt->state, want->over       ? ATTEMPT_OVER
			     : want->stopping ? ATTEMPT_STOPPING
			     : want->released ? ATTEMPT_ACTIVE
					      : ATTEMPT_PREPARING);
	SAME(attempt->why, want->why);
	SAME(attempt->unreachable, want->unreachable);
	SAME(attempt->shielded, want->shielded);
	SAME(attempt->least, want->least);
	SAME(attempt->deaf, want->deaf);
	SAME(attempt->forgiven, want->forgiven);
	SAME(attempt->warned_ms != 0, want->warned);
	SAME(attempt->for_job, want->for_job);
	SAME(attempt->deadline_ms, want->deadline);
	SAME(attempt->checkpoint_ms, want->checkpoint_ms);
	SAME(attempt->resume_number, want->resume);
	SAME(attempt->first_failed_rank, want->first_failed);
	SAME(task_get(f, attempt, 0) != NULL, model.job[want->job].last == id);
	for (uint32_t rank = 0; rank < want->ranks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		ready += want->was_ready[rank];
		started += want->was_started[rank];
		if (!task)
			continue;
		SAME(task->state, want->task[rank].state);
		SAME(task->node.v, want->task[rank].node);
		SAME(task->gpu_mask, want->task[rank].mask);
		SAME(task->reports, want->task[rank].reports);
		SAME(task->step, want->task[rank].step);
		SAME(task->code, want->task[rank].code);
		SAME(task->launch, want->task[rank].launch);
		SAME(task->leaving, want->task[rank].leaving);
	}
	SAME(attempt_width(attempt), model_holding(want));
	SAME(attempt->generation, want->changes);
	SAME(attempt->ready, ready);
	SAME(attempt->started, started);
}

static void same_facts(const struct facts *f)
{
	const char *what = "all";
	uint32_t id = 0;

	SAME(f->now_ms, model.now);
	SAME(f->jobs.count, model.jobs);
	SAME(f->attempts.count, model.attempts);
	for (id = 1; id <= model.jobs; id++)
		same_job(f, id);
	for (id = 1; id <= model.attempts; id++)
		same_attempt(f, id);
}

static void compare(uint64_t from_seed)
{
	struct random random = { from_seed };
	struct arena arena;
	struct facts facts;

	seed = from_seed;
	memset(&model, 0, sizeof(model));
	arena_init(&arena, 1 << 20);
	facts_init(&facts);
	for (step = 1; step <= STEPS; step++) {
		struct event event;

		arena_reset(&arena);
		event = random_event(&random, &facts, &arena);
		apply(&facts, &event);
		model_apply(&event, &facts);
		same_facts(&facts);
		if (step % 200 == 0)
			facts_verify(&facts);
	}
	assert_true(model.jobs > 200 && model.attempts > 100 && model.left > 0);
	facts_deinit(&facts);
	arena_deinit(&arena);
}

static void apply_does_what_the_obvious_model_does(void **state)
{
	const char *given = getenv("FACTS_SEED");
	uint32_t again = 0;

	(void)state;
	if (given) {
		compare(strtoull(given, NULL, 10));
		return;
	}
	for (uint64_t i = 1; i <= 4; i++) {
		compare(i);
		again += model.again;
	}
	assert_true(again > 0); /* a rank was started anew */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(apply_does_what_the_obvious_model_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
