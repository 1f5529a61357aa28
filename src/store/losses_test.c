/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/buf.h"
#include "store/io.h"
#include "store/losses.h"
#include "store/testing/io_disk.h"

static void neighbours_with_the_same_words_are_one_range(void **state)
{
	(void)state;
	struct losses losses = { 0 };
	AUTO_BUF text = BUF_INIT;
	losses_add(&losses, 5, 5, "gone");
	losses_add(&losses, 6, 9, "gone");
	losses_add(&losses, 10, 10, "flipped");
	losses_add(&losses, 0, 0, "head is damaged");
	losses_add(&losses, 0, 0, "head is damaged");
	assert_int_equal(losses.count, 3);
	assert_int_equal(losses_records(&losses, NULL), 6);
	loss_text(&losses.items[0], &text);
	assert_string_equal(buf_text(&text), "records 5 to 9: gone");
	losses_deinit(&losses);
}

static void ranges_that_overlap_count_once_and_accepted_ones_not(void **state)
{
	(void)state;
	struct losses losses = { 0 }, accepted = { 0 };
	losses_add(&losses, 20, 30, "a");
	losses_add(&losses, 1, 10, "b");
	losses_add(&losses, 25, 35, "c");
	losses_add(&losses, 5, 6, "d");
	assert_int_equal(losses_records(&losses, NULL), 26);
	losses_add(&accepted, 4, 22, "accepted");
	losses_add(&accepted, 34, 40, "accepted");
	assert_int_equal(losses_records(&losses, &accepted), 3 + 11);
	assert_true(losses_accepted(&losses.items[3], &accepted));
	assert_false(losses_accepted(&losses.items[0], &accepted));
	losses_deinit(&losses);
	losses_deinit(&accepted);
}

static void no_record_is_left_out_when_there_are_very_many_ranges(void **state)
{
	(void)state;
	struct losses losses = { 0 };
	for (uint64_t i = 1; i <= 2 * LOSSES_MAX; i++)
		losses_add(&losses, 3 * i, 3 * i, "gone");
	assert_int_equal(losses.count, LOSSES_MAX);
	assert_true(losses_records(&losses, NULL) >= 2 * LOSSES_MAX);
	losses_deinit(&losses);
}

static void what_was_accepted_is_read_back_and_a_changed_file_counts_for_nothing(void **state)
{
	(void)state;
	struct io_disk *disk = io_disk_create();
	struct io *io = io_disk_io(disk);
	struct losses losses = { 0 }, accepted = { 0 }, again = { 0 };
	struct err err;
	assert_int_equal(io->mkdir(io, "/d/data", 0700), 0);
	assert_int_equal(io->mkdir(io, "/d/data/journal", 0700), 0);
	assert_int_equal(accepted_load(io, "/d/data", &again, &err), 0);
	assert_int_equal(again.count, 0);
	losses_add(&losses, 5, 9, "gone");
	losses_add(&losses, 0, 0, "a file");
	losses_add(&losses, 12, 12, "gone");
	assert_int_equal(accepted_save(io, "/d/data", &accepted, &losses, &err), 0);
	assert_int_equal(accepted_load(io, "/d/data", &again, &err), 0);
	assert_int_equal(losses_records(&losses, &again), 0);
	losses_deinit(&again);
	for (int64_t bit = 0; bit < 8 * 30; bit++) {
		struct io_disk *hit = io_disk_copy(disk);
		assert_int_equal(io_disk_flip(hit, "/d/data/journal/accepted", bit), 0);
		assert_int_equal(accepted_load(io_disk_io(hit), "/d/data", &again, &err),
				 ACCEPTED_BAD);
		assert_int_equal(again.count, 0);
		io_disk_destroy(hit);
	}
	losses_deinit(&losses);
	losses_deinit(&accepted);
	io_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(neighbours_with_the_same_words_are_one_range),
		cmocka_unit_test(ranges_that_overlap_count_once_and_accepted_ones_not),
		cmocka_unit_test(no_record_is_left_out_when_there_are_very_many_ranges),
		cmocka_unit_test(
			what_was_accepted_is_read_back_and_a_changed_file_counts_for_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
