/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "api/forecast.h"
#include "base/clock.h"

static char path[] = "/dev/shm/fairlead-forecast-test-XXXXXX";

static void file_write(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct forecast_errors errors_of(struct forecasts *f)
{
	struct forecast_errors errors;
	struct facts facts;

	facts_init(&facts);
	forecast_errors(f, &facts, &errors);
	facts_deinit(&facts);
	return errors;
}

static void what_was_foretold_outlives_the_daemon(void **state)
{
	struct forecast_errors errors;
	char text[256] = "";
	FILE *file;

	(void)state;
	file_write("forecasts-1 10 8 7 5000 900\n3 100 200\n7 300 400\n");
	for (int start = 0; start < 2; start++) {
		struct forecasts *f = forecasts_create();

		forecasts_keep(f, io_real(), path);
		if (start == 1) {
			errors = errors_of(f);
			assert_true(errors.scored == 10 && errors.safe_known == 8 &&
				    errors.in_time == 7 && errors.loss_likely_ms == 5000 &&
				    errors.loss_safe_ms == 900);
			assert_int_equal(errors.waiting, 0); /* there are no such jobs */
		}
		forecasts_destroy(f);
		file = fopen(path, "r");
		assert_non_null(file);
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
		assert_string_equal(text,
				    start ? "forecasts-1 10 8 7 5000 900\n"
					  : "forecasts-1 10 8 7 5000 900\n3 100 200\n7 300 400\n");
	}
}

static void a_file_that_is_none_of_ours_counts_nothing(void **state)
{
	static const char *const bad[] = { "", "something else\n", "forecasts-1 1 2\n",
					   "forecasts-1 1 2 3 4 -5\n", "forecasts-2 1 2 3 4 5\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct forecasts *f = forecasts_create();

		file_write(bad[i]);
		forecasts_keep(f, io_real(), path);
		assert_int_equal(errors_of(f).scored, 0);
		forecasts_destroy(f);
	}
}

static void jobs_that_do_not_rise_end_the_list(void **state)
{
	struct forecasts *f = forecasts_create();
	char text[256];
	FILE *file;

	(void)state;
	file_write("forecasts-1 1 1 1 1 1\n5 1 2\n5 1 2\n9 1 2\n");
	forecasts_keep(f, io_real(), path);
	forecasts_destroy(f);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(text, "forecasts-1 1 1 1 1 1\n5 1 2\n");
}

/* Facts of one node with one GPU, which job 1 holds and job 2 waits for. */
static void facts_make(struct facts *f)
{
	struct event e = event_make(EVENT_QUEUE_SET, 1000, "test");

	facts_init(f);
	e.queue_set.name = "default";
	e.queue_set.parent = e.queue_set.team = "";
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 1;
	apply(f, &e);
	e = event_make(EVENT_NODE_SET, 1000, "test");
	e.node_set.name = "n0";
	e.node_set.gpus = 1;
	e.node_set.model = "H100-80GB";
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 262144;
	apply(f, &e);
	for (int64_t job = 1; job <= 2; job++) {
		e = event_make(EVENT_JOB_SUBMITTED, clock_wall_ms(), "test");
		e.job_submitted.job = job;
		e.job_submitted.name = "job";
		e.job_submitted.user = "ann";
		e.job_submitted.queue = "default";
		e.job_submitted.tasks_min = e.job_submitted.tasks_max = e.job_submitted.gpus = 1;
		e.job_submitted.limit_ms = 3600000;
		e.job_submitted.grace_ms = -1;
		apply(f, &e);
	}
}

static _Atomic int64_t clock_ms;

static int64_t clock_read(void)
{
	return clock_ms;
}

enum { LONG_MS = 120000 }; /* until plans are there: nobody waits that long */

static void an_estimate_is_renewed_though_nothing_happens(void **state)
{
	struct forecasts *f = forecasts_create();
	struct estimate first, second;
	struct facts facts;

	(void)state;
	facts_make(&facts);
	forecasts_clock(f, clock_read);
	assert_int_equal(forecast_ask(f, &facts, 2, LONG_MS, &first), 0);
	assert_true(first.answer.start_ms != PLAY_NEVER);
	clock_ms += 3600000; /* what is kept is of no use any more */
	assert_int_equal(forecast_ask(f, &facts, 2, 0, &second), FORECAST_MAKING);
	assert_int_equal(forecast_ask(f, &facts, 2, LONG_MS, &second), 0);
	assert_true(second.at_ms >= first.at_ms);
	/* A plan that is no longer fresh still answers at once, while the next one is made. */
	clock_ms += 6000;
	assert_int_equal(forecast_ask(f, &facts, 2, 0, &second), 0);
	forecasts_destroy(f);
	facts_deinit(&facts);
}

static void a_job_that_was_changed_has_an_estimate_of_its_own(void **state)
{
	struct event e = event_make(EVENT_JOB_PRIORITY_SET, clock_wall_ms(), "test");
	struct forecasts *f = forecasts_create();
	struct estimate before, after;
	struct facts facts;

	(void)state;
	facts_make(&facts);
	forecasts_clock(f, clock_read);
	assert_int_equal(forecast_ask(f, &facts, 2, LONG_MS, &before), 0);
	e.job_priority_set.job = 2;
	e.job_priority_set.priority = 5;
	apply(&facts, &e);
	clock_ms += 1; /* the plan is fresh, but not of this job */
	assert_int_equal(forecast_ask(f, &facts, 1, 0, &after), 0);
	assert_int_equal(forecast_ask(f, &facts, 2, 0, &after), FORECAST_MAKING);
	assert_int_equal(forecast_ask(f, &facts, 2, LONG_MS, &after), 0);
	assert_true(after.answer.start_ms < before.answer.start_ms);
	forecasts_destroy(f);
	facts_deinit(&facts);
}

static void an_estimate_lies_between_the_request_and_what_is_certain(void **state)
{
	static const struct {
		int64_t start, by, end, latest;
		int64_t bound_start, bound_by, bound_end;
	} cases[] = {
		{ 200, 300, 400, 0, 200, 300, 400 },
		{ 50, 90, 95, 0, 100, 100, 100 }, /* the plan is older than the request */
		{ 200, 300, 400, 150, 150, 150, 400 },
		{ 200, PLAY_NEVER, PLAY_NEVER, 250, 200, 250, PLAY_NEVER },
		{ 200, 300, 400, 50, 100, 100, 400 }, /* what was certain is over */
		{ PLAY_NEVER, PLAY_NEVER, PLAY_NEVER, 150, PLAY_NEVER, PLAY_NEVER, PLAY_NEVER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct estimate e = { .answer = { .start_ms = cases[i].start,
						  .start_by_ms = cases[i].by,
						  .end_ms = cases[i].end,
						  .end_by_ms = PLAY_NEVER } };

		estimate_bound(&e, 100, cases[i].latest);
		assert_true(e.answer.start_ms == cases[i].bound_start);
		assert_true(e.answer.start_by_ms == cases[i].bound_by);
		assert_true(e.answer.end_ms == cases[i].bound_end);
	}
}

static int file_make(void **state)
{
	int file = mkstemp(path);

	(void)state;
	return file < 0 ? -1 : close(file);
}

static int file_remove(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_foretold_outlives_the_daemon),
		cmocka_unit_test(a_file_that_is_none_of_ours_counts_nothing),
		cmocka_unit_test(jobs_that_do_not_rise_end_the_list),
		cmocka_unit_test(an_estimate_is_renewed_though_nothing_happens),
		cmocka_unit_test(a_job_that_was_changed_has_an_estimate_of_its_own),
		cmocka_unit_test(an_estimate_lies_between_the_request_and_what_is_certain),
	};

	return cmocka_run_group_tests(tests, file_make, file_remove);
}
