/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/runner.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"

enum { RUN_MEMORY_CAP = 1 << 30, STEPS_MAX = 1000000, JOBS_WATCHED = 300 };

/* What is to come from outside, by time; of equal times events come before submissions. */
struct agenda {
	const struct run *run;
	bool *submitted, *happened;
	int64_t next_ms;
};

static void agenda_look(struct agenda *agenda)
{
	const struct scenario *s = agenda->run->scenario;

	agenda->next_ms = SIM_FOREVER;
	for (uint32_t i = 0; i < s->event_count; i++)
		if (!agenda->happened[i] && s->events[i].at_ms < agenda->next_ms)
			agenda->next_ms = s->events[i].at_ms;
	for (uint32_t i = 0; i < s->job_count; i++)
		if (!agenda->submitted[i] && s->jobs[i].at_ms < agenda->next_ms)
			agenda->next_ms = s->jobs[i].at_ms;
}

/* Jobs of the same time in the order of setup: as written, or permuted queue after queue. */
static int agenda_submit(struct run *run, struct agenda *agenda, int64_t at_ms, struct err *err)
{
	const struct scenario *s = run->scenario;
	int rc = 0;

	for (uint32_t n = 0; n < s->job_count && rc == 0; n++) {
		uint32_t lead = run->permuted ? s->job_count - 1 - n : n;

		for (uint32_t i = run->permuted ? 0 : lead; i <= lead && rc == 0; i++)
			if (!agenda->submitted[i] && s->jobs[i].at_ms == at_ms &&
			    (i == lead || strcmp(s->jobs[i].queue, s->jobs[lead].queue) == 0)) {
				agenda->submitted[i] = true;
				rc = run_submit(run, i, err);
			}
	}
	return rc;
}

static int agenda_take(struct run *run, struct agenda *agenda, int64_t at_ms, struct err *err)
{
	const struct scenario *s = run->scenario;
	int rc = 0;

	for (uint32_t i = 0; i < s->event_count && rc == 0; i++)
		if (!agenda->happened[i] && s->events[i].at_ms == at_ms) {
			agenda->happened[i] = true;
			rc = run_happen(run, &s->events[i], err);
		}
	if (rc == 0)
		rc = agenda_submit(run, agenda, at_ms, err);
	agenda_look(agenda);
	return rc;
}

static int64_t absolute(int64_t at_ms)
{
	return at_ms == SIM_FOREVER ? SIM_FOREVER : WORLD_EPOCH_MS + at_ms;
}

/* Everything up to the end, with the expectations on the way. */
static int run_through(struct run *run, struct agenda *agenda, struct err *err)
{
	const struct scenario *s = run->scenario;
	struct world *w = &run->world;
	uint32_t expected = 0;
	int rc = 0;

	for (uint32_t step = 0; rc == 0; step++) {
		int64_t next_ms;

		if (step == (s->steps_max ? s->steps_max : STEPS_MAX)) {
			checks_problem(&w->checks, &w->facts,
				       "the scenario does not end within %u steps", step);
			break;
		}
		world_settle(w);
		if (run->trace)
			run_trace_waits(run);
		if (agenda->next_ms == SIM_FOREVER && world_is_quiet(w))
			break;
		next_ms = world_next_ms(w);
		if (absolute(agenda->next_ms) < next_ms)
			next_ms = absolute(agenda->next_ms);
		for (; expected < s->expect_count && absolute(s->expects[expected].at_ms) < next_ms;
		     expected++)
			run_expect(run, &s->expects[expected]);
		world_advance(w, next_ms);
		if (absolute(agenda->next_ms) == next_ms)
			rc = agenda_take(run, agenda, agenda->next_ms, err);
	}
	for (; expected < s->expect_count && rc == 0; expected++)
		run_expect(run, &s->expects[expected]);
	return rc;
}

static int run_once(struct run *run, struct err *err)
{
	const struct scenario *s = run->scenario;
	struct agenda agenda = { .run = run };
	int rc = run_setup(run, err);

	/* Large ones are looked at now and then: a look costs as much as all facts. */
	run->world.look_every = s->job_count < JOBS_WATCHED ? 1 : s->job_count / 10;
	agenda.submitted = arena_new_array(&run->memory, bool, s->job_count + 1);
	agenda.happened = arena_new_array(&run->memory, bool, s->event_count + 1);
	for (uint32_t i = 0; i < s->job_count; i++)
		agenda.submitted[i] = s->jobs[i].at_ms == 0;
	agenda_look(&agenda);
	if (rc == 0 && agenda.next_ms == 0)
		rc = agenda_take(run, &agenda, 0, err);
	if (rc == 0)
		rc = run_through(run, &agenda, err);
	if (rc < 0)
		return rc;
	checks_end(&run->world.checks, &run->world.facts);
	run_outcome(run);
	world_check_still(&run->world);
	return 0;
}

static void run_init(struct run *run, const struct scenario *scenario)
{
	*run = (struct run){ .scenario = scenario };
	arena_init(&run->memory, RUN_MEMORY_CAP);
}

static void run_deinit(struct run *run)
{
	world_deinit(&run->world);
	buf_deinit(&run->waits);
	buf_deinit(&run->outcome);
	arena_deinit(&run->memory);
}

static void add_problem(struct scenario_result *ret, struct arena *arena, const char *text)
{
	if (ret->problem_count < CHECKS_TEXTS_MAX)
		ret->problems[ret->problem_count++] = arena_strdup(arena, text);
}

static void take_result(const struct run *run, struct arena *arena, struct scenario_result *ret)
{
	const struct checks *checks = &run->world.checks;

	*ret = (struct scenario_result){ .mismatch_count = run->mismatch_count,
					 .events = run->world.seq,
					 .turns = run->world.turns,
					 .trail = run->world.trail,
					 .end_ms = run->world.now_ms - WORLD_EPOCH_MS };
	ret->mismatches = arena_new_array(arena, struct mismatch, run->mismatch_count + 1);
	ret->problems = arena_new_array(arena, const char *, CHECKS_TEXTS_MAX);
	for (uint32_t i = 0; i < run->mismatch_count; i++) {
		const struct mismatch *from = &run->mismatches[i];

		ret->mismatches[i] =
			(struct mismatch){ .line = from->line,
					   .when = arena_strdup(arena, from->when),
					   .what = arena_strdup(arena, from->what),
					   .expected = arena_strdup(arena, from->expected),
					   .actual = arena_strdup(arena, from->actual),
					   .why = arena_strdup(arena, from->why) };
	}
	for (uint32_t i = 0; i < checks->problem_count && i < CHECKS_TEXTS_MAX; i++)
		add_problem(ret, arena, checks->problems[i]);
}

/* The line of b that differs from a's: what became of one job. */
static const char *first_difference(const char *a, const char *b, struct arena *arena)
{
	size_t same = 0;

	while (a[same] && a[same] == b[same])
		same++;
	while (same && b[same - 1] != '\n')
		same--;
	return arena_printf(arena, "\"%.*s\" instead of \"%.*s\"", (int)strcspn(b + same, "\n"),
			    b + same, (int)strcspn(a + same, "\n"), a + same);
}

/* Runs it again and compares with the first run. */
static int run_again(const struct run *first, bool permuted, struct arena *arena,
		     struct scenario_result *ret, struct err *err)
{
	struct run run;
	int rc;

	run_init(&run, first->scenario);
	run.permuted = permuted;
	rc = run_once(&run, err);
	if (rc < 0)
		err_prefix(err, permuted ? "in another order" : "run again");
	else if (!permuted && run.world.trail != first->world.trail)
		add_problem(ret, arena,
			    "the same input gave other events or states the second time");
	else if (permuted && strcmp(buf_text(&run.outcome), buf_text(&first->outcome)) != 0)
		add_problem(
			ret, arena,
			arena_printf(arena,
				     "with nodes, queues and unrelated jobs in another order: %s",
				     first_difference(buf_text(&first->outcome),
						      buf_text(&run.outcome), arena)));
	for (uint32_t i = 0;
	     rc == 0 && permuted && i < run.world.checks.problem_count && i < CHECKS_TEXTS_MAX; i++)
		add_problem(
			ret, arena,
			arena_printf(arena, "in another order, %s", run.world.checks.problems[i]));
	run_deinit(&run);
	return rc;
}

int scenario_run(const struct scenario *scenario, FILE *trace, struct arena *arena,
		 struct scenario_result *ret, struct err *err)
{
	struct run run;
	int rc;

	run_init(&run, scenario);
	run.trace = trace;
	rc = run_once(&run, err);
	if (rc == 0) {
		take_result(&run, arena, ret);
		rc = run_again(&run, false, arena, ret, err);
	}
	if (rc == 0)
		rc = run_again(&run, true, arena, ret, err);
	run_deinit(&run);
	return rc;
}
