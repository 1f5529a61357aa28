/* SPDX-License-Identifier: Apache-2.0 */
#include "store/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/testing/store_test.h"

static struct history *open_it(const char *folder)
{
	struct history *history;
	struct err err;
	if (history_open(folder, &history, &err) < 0)
		fail_msg("%s", err.text);
	return history;
}

/* Rows first..last; row n is about job n % 5 (0: none) and attempt n % 2. */
static void add(struct history *history, uint64_t first, uint64_t last, uint64_t upto)
{
	struct history_row rows[100];
	char texts[100][40];
	size_t count = 0;
	struct err err;
	for (uint64_t n = first; n <= last; n++, count++) {
		snprintf(texts[count], sizeof(texts[count]), "{\"n\":%llu}", (unsigned long long)n);
		rows[count] = (struct history_row){ .seq = n,
						    .time_ms = (int64_t)n * 7,
						    .kind = (uint32_t)(n % 9),
						    .job = n % 5,
						    .attempt = n % 2,
						    .text = texts[count],
						    .size = strlen(texts[count]) };
	}
	if (history_add(history, rows, count, upto, &err) < 0)
		fail_msg("%s", err.text);
}

struct listing {
	uint64_t job, last, count, stop_at;
};

static int take(void *context, const struct history_row *row)
{
	struct listing *listing = context;
	char text[40];
	snprintf(text, sizeof(text), "{\"n\":%llu}", (unsigned long long)row->seq);
	assert_true(row->seq > listing->last);
	assert_int_equal(row->time_ms, (int64_t)row->seq * 7);
	assert_int_equal(row->kind, row->seq % 9);
	assert_int_equal(row->job, row->seq % 5);
	assert_int_equal(row->attempt, row->seq % 2);
	assert_int_equal(row->size, strlen(text));
	assert_memory_equal(row->text, text, row->size);
	if (listing->job)
		assert_int_equal(row->job, listing->job);
	listing->last = row->seq;
	return ++listing->count == listing->stop_at ? 9 : 0;
}

static uint64_t count_rows(struct history *history, uint64_t job, uint64_t after, size_t limit)
{
	struct listing listing = { .job = job, .last = after };
	struct err err;
	if (history_list(history, job, after, limit, &listing, take, &err) != 0)
		fail_msg("%s", err.text);
	return listing.count;
}

static void rows_are_listed_by_job_and_place(void **state)
{
	struct store_test_folder *folder = *state;
	struct history *history = open_it(folder->path);
	assert_int_equal(history_applied(history), 0);
	add(history, 1, 50, 0);
	assert_int_equal(history_applied(history), 50);
	assert_int_equal(count_rows(history, 0, 0, 1000), 50);
	assert_int_equal(count_rows(history, 0, 20, 1000), 30);
	assert_int_equal(count_rows(history, 0, 20, 7), 7);
	assert_int_equal(count_rows(history, 3, 0, 1000), 10);
	assert_int_equal(count_rows(history, 3, 8, 1000), 8);
	assert_int_equal(count_rows(history, 99, 0, 1000), 0);
	struct listing listing = { .stop_at = 4 };
	struct err err;
	assert_int_equal(history_list(history, 0, 0, 100, &listing, take, &err), 9);
	history_close(history);
	history_close(NULL);
}

static void the_cursor_moves_on_and_never_back_and_rows_twice_are_one(void **state)
{
	struct store_test_folder *folder = *state;
	struct history *history = open_it(folder->path);
	add(history, 1, 10, 25);
	assert_int_equal(history_applied(history), 25);
	add(history, 1, 10, 0);
	assert_int_equal(history_applied(history), 25);
	assert_int_equal(count_rows(history, 0, 0, 100), 10);
	add(history, 1, 0, 30);
	history_close(history);
	history = open_it(folder->path);
	assert_int_equal(history_applied(history), 30);
	/* A second handle lists while the first one writes. */
	struct history *other = open_it(folder->path);
	add(history, 31, 40, 0);
	assert_int_equal(count_rows(other, 0, 0, 100), 20);
	history_close(other);
	struct err err;
	assert_int_equal(history_clear(history, &err), 0);
	assert_int_equal(history_applied(history), 0);
	assert_int_equal(count_rows(history, 0, 0, 100), 0);
	add(history, 1, 10, 0);
	assert_int_equal(count_rows(history, 0, 0, 100), 10);
	history_close(history);
}

static void a_damaged_file_is_set_aside_and_made_anew(void **state)
{
	struct store_test_folder *folder = *state;
	char path[128];
	struct history *history = open_it(folder->path);
	add(history, 1, 50, 0);
	history_close(history);
	snprintf(path, sizeof(path), "%s/history.sqlite", folder->path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("this is no database, and it is long enough to look like one that was hit at its beginning ..........................",
	      file);
	fclose(file);
	history = open_it(folder->path);
	assert_int_equal(history_applied(history), 0);
	add(history, 1, 5, 0);
	assert_int_equal(count_rows(history, 0, 0, 100), 5);
	history_close(history);
	snprintf(path, sizeof(path), "%s/history.sqlite.damaged", folder->path);
	assert_int_equal(access(path, F_OK), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, store_test_setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(rows_are_listed_by_job_and_place),
		CASE(the_cursor_moves_on_and_never_back_and_rows_twice_are_one),
		CASE(a_damaged_file_is_set_aside_and_made_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
