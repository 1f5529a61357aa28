/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bound of a guarantee (DESIGN 5.16), over random streams. Borrowers submit without end: single jobs and gangs, with limits,
 * estimates or nothing, best-effort work among them, runs of a minute to an hour. Owners of guarantees submit one job at a time that
 * fits in what is left of their guarantee; while it waits no other owner submits. Each of these has its place at the latest min_runtime + the longest grace after it came; the
 * engine here takes no time. Two of three streams run under the daemon's own defaults.
 *
 *	guarantee_test [FIRST-SEED STEPS]
 *
 * Three forms, so that a place always exists beside what other owners hold: tasks of one GPU on nodes of 1 to 8 (standard and
 * critical); whole nodes (critical); one node that is guaranteed whole.
 */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "core/model/roles.h"
#include "core/scheduling/testing.h"
#include "core/scheduling/view/view.h"

enum {
	STREAM_STEPS = 250, /* of one world */
#ifdef __SANITIZE_ADDRESS__
	STEPS = 50000, /* a step costs ten times as much there */
#else
	STEPS = 1000000,
#endif
	JOBS_MAX = 4 * STREAM_STEPS + 64,
	GUESTS_WAIT = 5, /* at least so many of them wait */
	OWNERS = 2,
	MINUTE_MS = 60000
};

enum form { FORM_SINGLES, FORM_NODES, FORM_WHOLE };

struct owner {
	const char *queue;
	int64_t guarantee; /* 0 = there is none such */
	uint32_t waits; /* the job that waits; 0 = none */
	int64_t next_ms; /* when the next one comes */
};

struct stream {
	struct world w;
	enum form form;
	int64_t node_gpus, min_runtime_ms, grace_ms; /* the longest */
	struct owner owners[OWNERS];
	int64_t end_ms[JOBS_MAX]; /* of the run at hand, by job; 0 = it does not run */
	int64_t run_ms[JOBS_MAX];
	uint64_t random;
	uint64_t seed;
	uint32_t step;
	int64_t latest_ms; /* the longest wait of an owner's job */
};

static uint32_t below(struct stream *s, uint32_t limit)
{
	uint64_t x = s->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

static int64_t minutes(struct stream *s, uint32_t least, uint32_t most)
{
	return (least + below(s, most - least + 1)) * (int64_t)MINUTE_MS + below(s, 60) * 1000;
}

static const struct job *job_of(const struct stream *s, uint32_t id)
{
	return job_get(&s->w.facts, (struct job_id){ id });
}

/* --- a world ------------------------------------------------------------------------------------------- */

static const char *picture(struct stream *s, char text[static 128], int64_t *ret_gpus)
{
	uint32_t nodes = s->form == FORM_WHOLE ? 1 : 2 + below(s, 4);
	size_t at = 0;

	*ret_gpus = 0;
	s->node_gpus = s->form == FORM_WHOLE ? 4 + below(s, 5) : 1 + below(s, 8);
	for (uint32_t i = 0; i < nodes; i++) {
		int64_t gpus = s->form == FORM_SINGLES ? 1 + below(s, 8) : s->node_gpus;

		*ret_gpus += gpus;
		at += (size_t)snprintf(text + at, 128 - at, "%sn%u:%lld", i ? " " : "", i,
				       (long long)gpus);
	}
	return text;
}

static void policy_draw(struct stream *s)
{
	struct facts fresh;

	facts_init(&fresh); /* a world begins without min_runtime and grace; all else is as here */
	s->min_runtime_ms = fresh.policy.min_runtime_ms;
	s->grace_ms = fresh.policy.grace_ms;
	facts_deinit(&fresh);
	world_policy(&s->w, s->grace_ms, s->min_runtime_ms);
	if (s->seed % 3 == 0) {
		struct event e = event_policy_make(s->w.now_ms, "test");

		e.policy_set.min_runtime_ms = s->min_runtime_ms = minutes(s, 0, 20);
		e.policy_set.grace_ms = s->grace_ms = minutes(s, 0, 5);
		e.policy_set.take_turns = below(s, 2);
		e.policy_set.patience = below(s, 20);
		e.policy_set.collect_after_ms = below(s, 2) ? 0 : 1800000;
		world_apply(&s->w, &e);
	}
	if (s->grace_ms < 4 * MINUTE_MS)
		s->grace_ms = 4 * MINUTE_MS; /* guests say up to that themselves */
}

static void stream_init(struct stream *s, uint64_t seed)
{
	char text[128];
	int64_t gpus;

	*s = (struct stream){ .random = seed, .seed = seed };
	s->form = (enum form)(seed % 5 < 3 ? FORM_SINGLES : seed % 5 - 2);
	world_init(&s->w, picture(s, text, &gpus));
	s->w.quiet = true;
	policy_draw(s);
	s->owners[0] = (struct owner){ .queue = "owner", .guarantee = gpus };
	s->owners[1].queue = "other";
	if (s->form == FORM_NODES)
		s->owners[0].guarantee =
			s->node_gpus * (1 + below(s, (uint32_t)(gpus / s->node_gpus)));
	if (s->form == FORM_SINGLES) {
		s->owners[0].guarantee = 1 + below(s, (uint32_t)gpus);
		s->owners[1].guarantee = below(s, (uint32_t)(gpus - s->owners[0].guarantee) + 1);
	}
	for (int i = 0; i < OWNERS; i++)
		world_queue(&s->w, s->owners[i].queue, "", s->owners[i].guarantee, -1,
			    1 + below(s, 3));
	world_queue(&s->w, "guest", "", 0, -1, 1);
	world_queue(&s->w, "lodger", "", 0, -1, 1 + below(s, 3));
}

/* --- who comes ------------------------------------------------------------------------------------------- */

static void submit(struct stream *s, struct wish wish, struct owner *owner)
{
	uint32_t id = world_submit(&s->w, wish);

	CHECK(id < JOBS_MAX);
	s->run_ms[id] = minutes(s, 0, below(s, 3) ? 25 : 70) + 1000;
	if (wish.limit_ms && s->run_ms[id] > wish.limit_ms)
		s->run_ms[id] = wish.limit_ms;
	if (owner)
		owner->waits = id;
}

static void guest_comes(struct stream *s)
{
	struct wish wish = { .queue = below(s, 3) ? "guest" : "lodger",
			     .tasks = below(s, 4) ? 1 : 1 + below(s, 4),
			     .best_effort = below(s, 8) == 0,
			     .polite = below(s, 4) == 0,
			     .checkpoint = below(s, 3) == 0,
			     .grace_ms = below(s, 3) ? 0 : minutes(s, 0, 3) + 1000,
			     .priority = below(s, 3) };

	if (s->form != FORM_NODES && below(s, 8) == 0)
		wish.tasks_max = wish.tasks + below(s, 3);
	if (below(s, 3) == 0)
		wish.limit_ms = minutes(s, 1, 30);
	else if (below(s, 3) == 0)
		wish.estimate_ms = minutes(s, 1, 30);
	submit(s, wish, NULL);
}

/* What the owner holds, or has a place promised for. */
static int64_t owner_uses(const struct stream *s, const struct owner *owner)
{
	int64_t gpus = 0;

	for (uint32_t id = 1; id <= s->w.facts.jobs.count; id++) {
		const struct job *job = job_of(s, id);
		const char *queue =
			facts_name(&s->w.facts, queue_get(&s->w.facts, job->queue)->name);
		const struct shape *shape = shape_get(&s->w.facts, job->shape);

		if (strcmp(queue, owner->queue) == 0 && (job_is_waiting(job) || job->attempt.v))
			gpus += shape_gpus(shape, shape->tasks_min);
	}
	return gpus;
}

static void owner_comes(struct stream *s, struct owner *owner)
{
	int64_t left = owner->guarantee - owner_uses(s, owner), unit = 1;
	struct wish wish = { .queue = owner->queue,
			     .tier = below(s, 3) ? TIER_STANDARD : TIER_CRITICAL,
			     .checkpoint = below(s, 2) };

	owner->next_ms = s->w.now_ms + minutes(s, 0, 20);
	if (s->form == FORM_NODES) {
		unit = s->node_gpus;
		wish.tier = TIER_CRITICAL;
	}
	if (left < unit)
		return;
	wish.tasks = 1 + below(s, (uint32_t)(left / unit));
	wish.gpus = unit;
	if (s->form == FORM_WHOLE) {
		wish.gpus = wish.tasks;
		wish.tasks = 1;
	}
	if (below(s, 2))
		wish.limit_ms = minutes(s, 5, 60);
	submit(s, wish, owner);
}

static bool any_waits(const struct stream *s)
{
	return s->owners[0].waits || s->owners[1].waits;
}

static uint32_t guests_wait(const struct stream *s)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= s->w.facts.jobs.count; id++)
		count += job_is_waiting(job_of(s, id));
	return count;
}

/* --- what happens ------------------------------------------------------------------------------------------ */

static const struct attempt *attempt_of(const struct stream *s, uint32_t id)
{
	struct attempt_id attempt = job_of(s, id)->attempt;

	return attempt.v ? attempt_get(&s->w.facts, attempt) : NULL;
}

static int64_t next_ms(const struct stream *s)
{
	int64_t next = s->w.now_ms + 10 * MINUTE_MS;

	if (s->w.wake_ms > s->w.now_ms && s->w.wake_ms < next)
		next = s->w.wake_ms;
	for (int i = 0; i < OWNERS; i++)
		if (s->owners[i].guarantee && !s->owners[i].waits &&
		    s->owners[i].next_ms > s->w.now_ms && s->owners[i].next_ms < next)
			next = s->owners[i].next_ms;
	for (uint32_t id = 1; id <= s->w.facts.jobs.count; id++)
		if (s->end_ms[id] > s->w.now_ms && s->end_ms[id] < next)
			next = s->end_ms[id];
	return next;
}

/* Ranks that are told to leave a job that goes on without them do so at once. */
static void ranks_leave(struct stream *s, uint32_t id)
{
	const struct attempt *a = attempt_of(s, id);

	for (uint32_t i = 0; a && a->leaving && i < a->tasks; i++) {
		const struct task *task = task_get(&s->w.facts, a, i);

		if (task->leaving && task->state == TASK_RUNNING)
			world_exit_rank(&s->w, id, i, CAUSE_STOPPED, 0);
	}
}

/* Runs end; who was warned may save; a run that began has an end. */
static void runs_follow(struct stream *s)
{
	for (uint32_t id = 1; id <= s->w.facts.jobs.count; id++) {
		const struct attempt *a = attempt_of(s, id);
		bool runs = a && a->state == ATTEMPT_ACTIVE && a->started == a->tasks;

		if (!a) {
			s->end_ms[id] = 0;
		} else if (runs && !s->end_ms[id]) {
			s->end_ms[id] = s->w.now_ms + s->run_ms[id];
		} else if (runs && s->end_ms[id] <= s->w.now_ms) {
			world_exit(&s->w, id, 0);
		} else if (runs && attempt_is_leaving(a) && job_of(s, id)->checkpoints &&
			   below(s, 4) == 0) {
			world_saved(&s->w, id);
		}
		ranks_leave(s, id);
	}
}

static void owners_check(struct stream *s)
{
	for (int i = 0; i < OWNERS; i++) {
		struct owner *owner = &s->owners[i];
		const struct job *job = owner->waits ? job_of(s, owner->waits) : NULL;
		int64_t waited_ms = job ? s->w.now_ms - job->submitted_ms : 0;

		if (!job)
			continue;
		if (waited_ms > s->min_runtime_ms + s->grace_ms)
			fail_msg(
				"seed %llu, step %u: job %u of \"%s\" has waited for %lld s, which is more than min_runtime %lld s and grace %lld s",
				(unsigned long long)s->seed, s->step, owner->waits, owner->queue,
				(long long)waited_ms / 1000, (long long)s->min_runtime_ms / 1000,
				(long long)s->grace_ms / 1000);
		if (job->attempt.v || !job_is_waiting(job)) {
			owner->waits = 0;
			owner->next_ms = s->w.now_ms + minutes(s, 0, 30);
		}
	}
}

static void step(struct stream *s)
{
	world_at(&s->w, next_ms(s));
	runs_follow(s);
	for (uint32_t waits = guests_wait(s); waits < GUESTS_WAIT; waits++)
		guest_comes(s);
	for (int i = 0; i < OWNERS; i++)
		if (s->owners[i].guarantee && !any_waits(s) && s->owners[i].next_ms <= s->w.now_ms)
			owner_comes(s, &s->owners[i]);
	world_run(&s->w);
	runs_follow(s);
	world_run(&s->w);
	owners_check(s);
}

static uint64_t first_seed = 1, steps_wanted = STEPS;

static void a_job_within_a_guarantee_starts_in_time_whatever_borrowers_submit(void **state)
{
	static struct stream s;
	uint64_t walked = 0, seed = first_seed;

	(void)state;
	for (; walked < steps_wanted; seed++) {
		stream_init(&s, seed);
		for (s.step = 0; s.step < STREAM_STEPS &&
				 s.w.facts.jobs.count + GUESTS_WAIT + OWNERS + 1 < JOBS_MAX;
		     s.step++, walked++)
			step(&s);
		world_deinit(&s.w);
	}
	print_message("seeds %llu to %llu: %llu steps\n", (unsigned long long)first_seed,
		      (unsigned long long)seed - 1, (unsigned long long)walked);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		a_job_within_a_guarantee_starts_in_time_whatever_borrowers_submit) };
	int64_t first, steps;

	if (argc == 3) {
		if (parse_int(argv[1], 1, INT64_MAX / 2, &first, NULL) < 0 ||
		    parse_int(argv[2], 1, INT64_MAX / 2, &steps, NULL) < 0)
			return 2;
		first_seed = (uint64_t)first;
		steps_wanted = (uint64_t)steps;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
