/* SPDX-License-Identifier: Apache-2.0 */
#include "store/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "store/journal.h"
#include "store/testing/store_test.h"

static struct snapshot_head head_of(uint64_t seq)
{
	struct snapshot_head head = { .seq = seq,
				      .time_ms = (int64_t)seq * 10 - 5,
				      .state_hash = seq * 0x123456789abcdef1u,
				      .build = "0.1.0-test" };
	head.chain.bytes[0] = (uint8_t)seq;
	head.chain.bytes[31] = 0xff;
	return head;
}

static void write_snapshot(const char *folder, uint64_t seq, uint64_t count)
{
	struct snapshot_writer *w;
	struct snapshot_head head = head_of(seq);
	struct err err;
	char text[STORE_TEST_TEXT_MAX];
	struct record record;
	if (snapshot_create(folder, NULL, &head, &w, &err) < 0)
		fail_msg("%s", err.text);
	for (uint64_t i = 0; i < count; i++) {
		store_test_record(i, text, &record);
		if (snapshot_write(w, record.kind, record.text, record.size, &err) < 0)
			fail_msg("%s", err.text);
	}
	if (snapshot_commit(w, &err) < 0)
		fail_msg("%s", err.text);
}

struct loading {
	uint64_t count, stop_at, wrong;
	unsigned passed_over;
};

static int take(void *context, uint32_t kind, const char *text, size_t size)
{
	struct loading *loading = context;
	char expected[STORE_TEST_TEXT_MAX];
	struct record record;
	store_test_record(loading->count++, expected, &record);
	loading->wrong +=
		kind != record.kind || size != record.size || memcmp(text, expected, size) != 0;
	return loading->count == loading->stop_at ? 44 : 0;
}

static void passed_over(void *context, const char *name, const char *why)
{
	struct loading *loading = context;
	assert_non_null(strstr(name, ".snap"));
	assert_true(*why);
	loading->passed_over++;
}

static int load(const char *folder, uint64_t max_seq, struct loading *loading,
		struct snapshot_head *ret)
{
	struct err err;
	int result = snapshot_load(folder, NULL, max_seq, ret, loading, take, passed_over, &err);
	if (result < 0)
		fail_msg("%s", err.text);
	return result;
}

static void a_snapshot_comes_back_whole(void **state)
{
	struct store_test_folder *folder = *state;
	struct snapshot_head head, expected = head_of(42);
	struct loading loading = { 0 };
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), SNAPSHOT_NONE);
	write_snapshot(folder->path, 42, 10000); /* several frames */
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), 0);
	assert_int_equal(loading.count, 10000);
	assert_int_equal(loading.wrong, 0);
	assert_int_equal(head.seq, 42);
	assert_int_equal(head.time_ms, expected.time_ms);
	assert_true(head.state_hash == expected.state_hash);
	assert_true(digest_equal(&head.chain, &expected.chain));
	assert_string_equal(head.build, "0.1.0-test");
	loading = (struct loading){ .stop_at = 7 };
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), 44);
	assert_int_equal(loading.count, 7);
}

static void an_empty_snapshot_and_a_time_before_1970_are_possible(void **state)
{
	struct store_test_folder *folder = *state;
	struct snapshot_head head;
	struct loading loading = { 0 };
	write_snapshot(folder->path, 0, 0);
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), 0);
	assert_int_equal(loading.count, 0);
	assert_int_equal(head.time_ms, -5);
}

static void the_newest_two_are_kept_and_one_newer_than_the_journal_is_passed_over(void **state)
{
	struct store_test_folder *folder = *state;
	struct snapshot_head head;
	struct loading loading = { 0 };
	char path[128];
	for (uint64_t seq = 9; seq <= 12; seq++)
		write_snapshot(folder->path, seq, 3);
	snprintf(path, sizeof(path), "%s/snapshots/00000000000000000010.snap", folder->path);
	assert_int_not_equal(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/snapshots/00000000000000000011.snap", folder->path);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), 0);
	assert_int_equal(head.seq, 12);
	assert_int_equal(load(folder->path, 11, &loading, &head), 0);
	assert_int_equal(head.seq, 11);
	assert_int_equal(loading.passed_over, 1);
	assert_int_equal(load(folder->path, 10, &loading, &head), SNAPSHOT_NONE);
}

static void an_abandoned_one_leaves_nothing_and_bad_records_are_refused(void **state)
{
	struct store_test_folder *folder = *state;
	struct snapshot_writer *w;
	struct snapshot_head head = head_of(5);
	struct loading loading = { 0 };
	struct err err;
	static char big[RECORD_TEXT_MAX + 1];
	memset(big, 'x', sizeof(big));
	assert_int_equal(snapshot_create(folder->path, NULL, &head, &w, &err), 0);
	assert_true(snapshot_write(w, 1, "a\nb", 3, &err) < 0);
	assert_int_equal(err.code, ERR_INVALID);
	assert_true(snapshot_write(w, 1, big, sizeof(big), &err) < 0);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_int_equal(snapshot_write(w, 1, big, RECORD_TEXT_MAX, &err), 0);
	snapshot_abandon(w);
	snapshot_abandon(NULL);
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), SNAPSHOT_NONE);
	char path[128];
	snprintf(path, sizeof(path), "%s/snapshots/00000000000000000005.tmp", folder->path);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void a_snapshot_of_another_format_is_passed_over(void **state)
{
	struct store_test_folder *folder = *state;
	struct snapshot_head head;
	struct loading loading = { 0 };
	char path[128];
	write_snapshot(folder->path, 3, 2);
	snprintf(path, sizeof(path), "%s/snapshots/00000000000000000004.snap", folder->path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("fairlead-snapshot 2 something that is long enough to have a trailer, if it had one, which it has not, but it could\n",
	      file);
	fclose(file);
	assert_int_equal(load(folder->path, UINT64_MAX, &loading, &head), 0);
	assert_int_equal(head.seq, 3);
	assert_int_equal(loading.passed_over, 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, store_test_setup, store_test_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_snapshot_comes_back_whole),
		CASE(an_empty_snapshot_and_a_time_before_1970_are_possible),
		CASE(the_newest_two_are_kept_and_one_newer_than_the_journal_is_passed_over),
		CASE(an_abandoned_one_leaves_nothing_and_bad_records_are_refused),
		CASE(a_snapshot_of_another_format_is_passed_over),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
