/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The promise of a planned start (DESIGN 5.17), over random clusters: 2 to 6 wide jobs are blocked, each has a planned start, and narrow
 * jobs come for days afterwards. Every job runs exactly as long as its limit says. No narrow job may delay a wide one.
 *
 *	planned_start_test [FIRST-SEED WORLDS]
 *
 * Two rules are checked in each world:
 *
 *	a wide job starts no later than was planned when the last wide job had come
 *	in the same world without the narrow jobs no wide job starts earlier than its plan said either: the plan is not padded
 *
 * Jobs of one world have one queue and one priority, so a job that came later is behind. Half of the worlds have tasks of one GPU, half have
 * tasks of several GPUs on nodes of several sizes. In some worlds nodes have processors, in some the wide jobs are alike.
 */
#include <stdlib.h>

#include "base/parse.h"
#include "core/scheduling/testing.h"

enum {
	WORLDS = 200,
	WIDE_MAX = 6,
	HOLDERS_MAX = 12,
	NARROW = 60,
	JOBS_MAX = HOLDERS_MAX + WIDE_MAX + NARROW + 1,
	HOURS = 60,
	MINUTE_MS = 60000
};

static uint64_t random_state;

static uint32_t below(uint32_t limit)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = random_state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

/* A job that comes at a time. Drawn before the worlds are played, so that both see the same list. */
struct coming {
	struct wish wish;
	int64_t at_ms;
};

struct script {
	char picture[128];
	uint32_t gpus, pairs, holders, wide, narrow; /* pairs: tasks of two GPUs that fit */
	struct coming job[JOBS_MAX];
};

struct play {
	struct world w;
	uint32_t id[JOBS_MAX]; /* by place in the script; 0 = has not come */
	int64_t began_ms, planned_ms[JOBS_MAX], started_ms[JOBS_MAX];
};

static void picture_draw(struct script *s)
{
	uint32_t nodes = 2 + below(4), at = 0, even = below(2) ? 4 + below(5) : 0;

	for (uint32_t i = 0; i < nodes; i++) {
		uint32_t gpus = even ? even : 2 + below(7);

		s->gpus += gpus;
		s->pairs += gpus / 2;
		at += (uint32_t)snprintf(s->picture + at, sizeof(s->picture) - at, "%sn%u:%u",
					 i ? " " : "", i, gpus);
	}
}

static int64_t minutes(uint32_t least, uint32_t most)
{
	return (least + below(most - least + 1)) * (int64_t)MINUTE_MS;
}

static void script_draw(struct script *s, uint64_t seed)
{
	bool singles = seed % 2, alike = seed % 5 == 0;
	int64_t last_ms = 0;
	struct wish wide = { 0 };
	uint32_t count = 0;

	*s = (struct script){ 0 };
	picture_draw(s);
	s->holders = 1 + below(HOLDERS_MAX);
	for (uint32_t i = 0; i < s->holders; i++)
		s->job[count++].wish = (struct wish){ .tasks = 1 + below(s->gpus / 2),
						      .gpus = 1,
						      .polite = true,
						      .limit_ms = minutes(10, 300) };
	s->wide = 2 + below(WIDE_MAX - 1);
	for (uint32_t i = 0; i < s->wide; i++) {
		if (!i || !alike) {
			wide = (struct wish){ .gpus = singles ? 1 : 1 + below(2),
					      .polite = true,
					      .limit_ms = minutes(10, 240) };
			wide.tasks = s->gpus / 2 + below(s->gpus / 2);
			if (wide.gpus == 2)
				wide.tasks = s->pairs / 2 + below(s->pairs / 2);
			wide.tasks = wide.tasks ? wide.tasks : 1;
		}
		s->job[count++] = (struct coming){ .wish = wide, .at_ms = (int64_t)i * 1000 };
	}
	for (s->narrow = 0; s->narrow < NARROW; s->narrow++) {
		last_ms += minutes(0, 20) + below(60) * 1000;
		s->job[count++] = (struct coming){
			.wish = { .tasks = 1 + below(s->gpus / 3 + 1),
				  .gpus = 1,
				  .polite = true,
				  .limit_ms = minutes(1, below(3) ? 120 : 900) },
			.at_ms = (int64_t)s->wide * 1000 + last_ms,
		};
	}
}

static void play_begin(struct play *p, const struct script *s)
{
	struct event policy;

	*p = (struct play){ 0 };
	world_init(&p->w, s->picture);
	p->w.quiet = true;
	policy = event_policy_make(p->w.now_ms, "test");
	policy.policy_set.patience = 0; /* the earlier submission is first */
	policy.policy_set.take_turns = 0;
	policy.policy_set.collect_after_ms = 0;
	world_apply(&p->w, &policy);
	p->began_ms = p->w.now_ms;
}

static void play_submit(struct play *p, const struct script *s, uint32_t at)
{
	p->id[at] = world_submit(&p->w, s->job[at].wish);
}

/* Jobs end at their limits. */
static void play_ends(struct play *p, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct job *job =
			p->id[i] ? job_get(&p->w.facts, (struct job_id){ p->id[i] }) : NULL;

		if (job && job->attempt.v && p->started_ms[i] &&
		    p->w.now_ms >= p->started_ms[i] + job->limit_ms)
			world_exit(&p->w, p->id[i], 0);
	}
}

static void play_decide(struct play *p, uint32_t count)
{
	world_run(&p->w);
	for (uint32_t i = 0; i < count; i++)
		if (p->id[i] && !p->started_ms[i] &&
		    job_get(&p->w.facts, (struct job_id){ p->id[i] })->attempt.v)
			p->started_ms[i] = p->w.now_ms;
}

/* The next time at which a job comes or ends, or the core wants to be woken. */
static int64_t play_next_ms(const struct play *p, const struct script *s, uint32_t count)
{
	int64_t next_ms = INT64_MAX;

	if (p->w.wake_ms > p->w.now_ms)
		next_ms = p->w.wake_ms;
	for (uint32_t i = 0; i < count; i++) {
		int64_t at_ms = p->id[i] ? p->started_ms[i] + s->job[i].wish.limit_ms
					 : p->began_ms + s->job[i].at_ms;

		if ((!p->id[i] || p->started_ms[i]) && at_ms > p->w.now_ms && at_ms < next_ms)
			next_ms = at_ms;
	}
	return next_ms;
}

static void plans_read(struct play *p, const struct script *s)
{
	for (uint32_t i = s->holders; i < s->holders + s->wide; i++) {
		const struct reservation_fact *r =
			facts_reservation(&p->w.facts, (struct job_id){ p->id[i] });

		if (p->started_ms[i])
			p->planned_ms[i] = p->started_ms[i];
		else if (r)
			p->planned_ms[i] = r->start_ms;
	}
}

static void play(struct play *p, const struct script *s, bool narrow)
{
	uint32_t count = s->holders + s->wide + (narrow ? s->narrow : 0);

	play_begin(p, s);
	for (uint32_t i = 0; i < s->holders; i++)
		play_submit(p, s, i);
	play_decide(p, count);
	for (bool planned = false; p->w.now_ms < p->began_ms + HOURS * INT64_C(3600000);) {
		int64_t next_ms;

		for (uint32_t i = s->holders; i < count; i++)
			if (!p->id[i] && p->began_ms + s->job[i].at_ms <= p->w.now_ms)
				play_submit(p, s, i);
		play_ends(p, count);
		play_decide(p, count);
		if (!planned && p->id[s->holders + s->wide - 1]) {
			plans_read(p, s);
			planned = true;
		}
		next_ms = play_next_ms(p, s, count);
		if (next_ms == INT64_MAX)
			break;
		world_at(&p->w, next_ms);
	}
}

static uint64_t first_seed = 1, worlds = WORLDS;

static void no_job_behind_a_wide_one_delays_its_planned_start(void **state)
{
	static struct script s;
	static struct play with, without;
	uint64_t plans = 0, waits = 0;

	(void)state;
	for (uint64_t seed = first_seed; seed < first_seed + worlds; seed++) {
		random_state = seed * 1000003;
		script_draw(&s, seed);
		play(&with, &s, true);
		play(&without, &s, false);
		for (uint32_t i = s.holders; i < s.holders + s.wide; i++) {
			long long planned_s = with.planned_ms[i] - with.began_ms,
				  started_s = with.started_ms[i] - with.began_ms,
				  alone_s = without.started_ms[i] - without.began_ms;

			planned_s /= 1000;
			started_s /= 1000;
			alone_s /= 1000;
			if (!with.planned_ms[i])
				fail_msg("seed %llu: wide job %u has no planned start",
					 (unsigned long long)seed, with.id[i]);
			if (!with.started_ms[i] || started_s > planned_s)
				fail_msg(
					"seed %llu: wide job %u was planned for %lld s and started at %lld s",
					(unsigned long long)seed, with.id[i], planned_s, started_s);
			if (without.planned_ms[i] != with.planned_ms[i] || alone_s > planned_s)
				fail_msg(
					"seed %llu: alone, wide job %u started at %lld s in place of %lld s",
					(unsigned long long)seed, with.id[i], alone_s, planned_s);
			plans++;
			waits += planned_s > 10;
		}
		world_deinit(&with.w);
		world_deinit(&without.w);
	}
	print_message("%llu planned starts, %llu of them later than the submission\n",
		      (unsigned long long)plans, (unsigned long long)waits);
	assert_true(waits * 2 > plans);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		no_job_behind_a_wide_one_delays_its_planned_start) };
	int64_t first, count;

	if (argc == 3) {
		if (parse_int(argv[1], 1, INT32_MAX, &first, NULL) < 0 ||
		    parse_int(argv[2], 1, INT32_MAX, &count, NULL) < 0)
			return 2;
		first_seed = (uint64_t)first;
		worlds = (uint64_t)count;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
