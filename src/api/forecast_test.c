/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "api/forecast.h"

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
	};

	return cmocka_run_group_tests(tests, file_make, file_remove);
}
