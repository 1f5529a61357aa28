/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/guard.h"
#include "store/testing/store_test.h"

static struct journal *open_it(const struct journal_options *options)
{
	struct journal *journal;
	struct err err;
	if (journal_open(options, &journal, &err) < 0)
		fail_msg("%s", err.text);
	return journal;
}

/* n records in groups of `group`, each with the text that store_test_text gives for its number. */
static void append_many(struct journal *journal, uint64_t n, size_t group)
{
	struct journal_state state;
	struct record records[64];
	struct err err;
	char texts[64][STORE_TEST_TEXT_MAX];
	journal_state(journal, &state);
	for (uint64_t done = 0; done < n; done += group) {
		for (size_t i = 0; i < group; i++)
			store_test_record(state.last_seq + done + i + 1, texts[i], &records[i]);
		if (journal_append(journal, records, group, NULL, 0, false, &err) != 0)
			fail_msg("%s", err.text);
		assert_int_equal(records[group - 1].seq, state.last_seq + done + group);
	}
}

static void expect_all(struct journal *journal, uint64_t from, uint64_t last)
{
	struct store_test_reading reading = { .next = from };
	struct journal_reader reader = { &reading, store_test_take, store_test_damaged };
	struct err err;
	if (journal_read(journal, from, 0, true, &reader, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(reading.damaged, 0);
	assert_int_equal(reading.next, last + 1);
}

static void records_come_back_as_they_were_appended(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	append_many(journal, 640, 64);
	append_many(journal, 7, 1);
	expect_all(journal, 1, 647);
	expect_all(journal, 300, 647);
	journal_close(journal);
	options.create = false;
	journal = open_it(&options);
	expect_all(journal, 1, 647);
	append_many(journal, 3, 3);
	journal_close(journal);
	journal = open_it(&options);
	expect_all(journal, 1, 650);
	journal_close(journal);
}

static void the_hash_is_the_documented_one(void **state)
{
	struct store_test_folder *folder = *state;
	struct journal_options options = { .folder = folder->path, .create = true };
	struct journal *journal = open_it(&options);
	struct record record = { .time_ms = 1000, .kind = 7, .must_understand = true, .text = "{}", .size = 2 };
	struct err err;
	assert_int_equal(journal_append(journal, &record, 1, NULL, 0, false, &err), 0);
	uint8_t bytes[32 + 32 + 2] = { [39] = 1, [46] = 1000 >> 8, [47] = 1000 & 255, [55] = 7, [63] = 1, [64] = '{', [65] = '}' };
	struct digest expected = digest_of(bytes, sizeof(bytes));
	struct journal_state now;
	journal_state(journal, &now);
	assert_true(digest_equal(&expected, &now.last_hash));
	assert_int_equal(now.last_seq, 1);
	assert_int_equal(now.last_time_ms, 1000);
	journal_close(journal);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_come_back_as_they_were_appended, store_test_setup, store_test_teardown),
		cmocka_unit_test_setup_teardown(the_hash_is_the_documented_one, store_test_setup, store_test_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
