/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files cut anywhere and bits flipped anywhere: each record comes back unchanged or is reported with its number, start-up
 * goes on, and so does appending. Bodies come back unchanged or with an error. Snapshots that are hit are passed over.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/check.h"
#include "store/journal.h"
#include "store/snapshot.h"
#include "store/testing/io_disk.h"
#include "store/testing/store_test.h"
#include "workload.h"

enum { STEPS = 220, TRUNCATIONS = 4000, FLIPS = 4000, SAY_EVERY = 20000 };

/* A disk as a kill leaves it: sealed segments, an open one with a log that was not copied in. */
struct base {
	struct workload w;
	char open_segment[64], open_wal[64], sealed[64];
};

/* `left_out`: syncs of these files are not done; NULL: all are. */
static void base_make(struct base *base, const char *left_out)
{
	struct journal_state state;
	workload_init(&base->w, io_disk_create(), 11);
	io_disk_skip(base->w.disk, IO_SYNC, IO_SKIP_ALL, left_out);
	if (workload_open(&base->w) < 0)
		fail_msg("%s", base->w.problem);
	for (int i = 0; i < STEPS; i++) {
		int result = i == STEPS / 3 || i == STEPS / 2
				     ? workload_seal(&base->w)
				     : workload_append(&base->w, 1 + (unsigned)i % 3);
		if (result < 0 || (i % 70 == 69 && workload_snapshot(&base->w) < 0))
			fail_msg("%s", base->w.problem);
	}
	journal_state(base->w.journal, &state);
	snprintf(base->open_segment, sizeof(base->open_segment),
		 WORKLOAD_FOLDER "/journal/%06u.sqlite", state.segments);
	snprintf(base->open_wal, sizeof(base->open_wal), WORKLOAD_FOLDER "/journal/%06u.sqlite-wal",
		 state.segments);
	snprintf(base->sealed, sizeof(base->sealed), WORKLOAD_FOLDER "/journal/%06u.sqlite",
		 state.segments - 1);
}

static int64_t file_size(struct io_disk *disk, const char *path)
{
	struct io *io = io_disk_io(disk);
	struct io_file *file;
	if (io->open(io, path, 0, 0, &file) < 0)
		return -1;
	int64_t size = io->size(io, file);
	io->close(io, file);
	return size;
}

struct seen {
	uint8_t *records; /* per sequence: 1 = read, 2 = reported */
	uint64_t last, outside, wrong;
};

static int see_record(void *context, const struct record *record, const struct digest *hash)
{
	struct seen *seen = context;
	char text[STORE_TEST_TEXT_MAX];
	struct record expected;
	(void)hash;
	store_test_record_sized(record->seq, 20 + (size_t)(record->seq % 30), text, &expected);
	if (record->seq > seen->last) {
		seen->outside++;
		return 0;
	}
	if (record->time_ms != expected.time_ms || record->kind != expected.kind ||
	    record->size != expected.size || record->must_understand != expected.must_understand ||
	    memcmp(record->text, text, expected.size) != 0 || (seen->records[record->seq] & 1))
		seen->wrong++;
	seen->records[record->seq] |= 1;
	return 0;
}

static void see_damage(void *context, uint64_t seq, const char *what)
{
	struct seen *seen = context;
	(void)what;
	if (seq >= 1 && seq <= seen->last)
		seen->records[seq] |= 2;
}

struct tally {
	uint64_t rounds, unchanged, reported, records_lost;
};

/* Opens, reads everything, appends, closes; and once more, where the same must hold for the old ones. */
static void expect_honest(const struct base *base, struct io_disk *disk, struct tally *tally,
			  const char *what)
{
	uint64_t last = base->w.promise.last_seq, lost = 0;
	struct err err;
	struct seen seen = { .last = last };
	for (int again = 0; again < 2; again++) {
		struct journal *journal;
		struct journal_options options = { .folder = WORKLOAD_FOLDER,
						   .io = io_disk_io(disk),
						   .inline_checkpoint = true,
						   .reserve_bytes = -1,
						   .wal_bytes = 48 << 10,
						   .segment_bytes = 64 << 10 };
		struct journal_reader reader = { &seen, see_record, see_damage };
		struct journal_state now;
		seen.records = calloc(last + 1, 1);
		CHECK(seen.records);
		seen.outside = 0;
		if (journal_open(&options, &journal, &err) < 0)
			fail_msg("%s: start-up stopped: %s", what, err.text);
		if (journal_read(journal, 1, 0, true, &reader, &err) != 0)
			fail_msg("%s: reading stopped: %s", what, err.text);
		for (uint64_t seq = 1; seq <= last; seq++) {
			if (seen.records[seq] == 0)
				fail_msg("%s: record %" PRIu64 " is silently gone", what, seq);
			lost += !again && seen.records[seq] == 2;
		}
		/* The last record is looked at when opening. */
		journal_state(journal, &now);
		if (!again && seen.records[last] == 2 && (!now.damaged || now.set_aside == 0))
			fail_msg("%s: opening does not say that the last record is lost", what);
		if (seen.wrong)
			fail_msg("%s: a record came back changed", what);
		if (seen.outside != (uint64_t)again)
			fail_msg("%s: %" PRIu64 " records behind the last one instead of %d", what,
				 seen.outside, again);
		struct record record = { .time_ms = 1, .kind = 1, .text = "{}", .size = 2 };
		if (!again && journal_append(journal, &record, 1, NULL, 0, false, &err) != 0)
			fail_msg("%s: cannot go on: %s", what, err.text);
		if (!again && record.seq != last + 1)
			fail_msg("%s: sequence %" PRIu64 " is used again", what, record.seq);
		journal_close(journal);
		free(seen.records);
	}
	tally->rounds++;
	tally->unchanged += lost == 0;
	tally->reported += lost > 0;
	tally->records_lost += lost;
}

/* Records that are neither read nor reported. */
static uint64_t count_silent(const struct base *base, struct io_disk *disk)
{
	struct journal *journal;
	struct err err;
	struct seen seen = { .last = base->w.promise.last_seq };
	struct journal_reader reader = { &seen, see_record, see_damage };
	struct journal_options options = { .folder = WORKLOAD_FOLDER,
					   .io = io_disk_io(disk),
					   .inline_checkpoint = true,
					   .reserve_bytes = -1 };
	uint64_t silent = 0;
	if (journal_open(&options, &journal, &err) < 0)
		fail_msg("start-up stopped: %s", err.text);
	seen.records = calloc(seen.last + 1, 1);
	CHECK(seen.records);
	if (journal_read(journal, 1, 0, true, &reader, &err) != 0)
		fail_msg("reading stopped: %s", err.text);
	for (uint64_t seq = 1; seq <= seen.last; seq++)
		silent += seen.records[seq] == 0;
	journal_close(journal);
	free(seen.records);
	return silent;
}

static const char *target(const struct base *base, uint64_t i)
{
	const char *const targets[] = { base->open_wal, base->open_segment, base->open_wal,
					base->sealed };
	return targets[i % 4];
}

static void say_tally(const char *what, const struct tally *tally)
{
	print_message("%s: %" PRIu64 ", nothing lost in %" PRIu64 ", reported in %" PRIu64
		      " (%" PRIu64 " records)\n",
		      what, tally->rounds, tally->unchanged, tally->reported, tally->records_lost);
	fflush(NULL);
}

/* A campaign that is ended early has said how far it came. */
static void say_now_and_then(const char *what, const struct tally *tally)
{
	if (tally->rounds % SAY_EVERY == 0)
		say_tally(what, tally);
}

static void print_tally(const char *what, const struct tally *tally)
{
	say_tally(what, tally);
	assert_true(tally->reported > 0);
	assert_true(tally->unchanged > 0);
}

static uint64_t mix(uint64_t i)
{
	i = (i + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	return (i ^ i >> 31) * 0x94d049bb133111ebu >> 1;
}

static void files_cut_anywhere_lose_no_record_silently(void **state)
{
	(void)state;
	struct base base;
	struct tally tally = { 0 };
	base_make(&base, NULL);
	uint64_t rounds = TRUNCATIONS * campaign_factor();
	for (uint64_t i = 0; i < rounds; i++) {
		char what[128];
		const char *path = target(&base, i);
		struct io_disk *disk = io_disk_copy(base.w.disk);
		int64_t size = file_size(disk, path);
		/* Each byte of the last 64 KiB in turn when there are rounds enough, else some of all. */
		int64_t to = rounds >= 65536 * 4 && size > 65536
				     ? size - 1 - (int64_t)(i / 4 % 65536)
				     : (int64_t)(mix(i) % (uint64_t)size);
		snprintf(what, sizeof(what), "%s cut to %" PRId64 " of %" PRId64 " bytes", path, to,
			 size);
		assert_int_equal(io_disk_cut(disk, path, to), 0);
		expect_honest(&base, disk, &tally, what);
		io_disk_destroy(disk);
		say_now_and_then("cuts", &tally);
	}
	print_tally("cuts", &tally);
	workload_deinit(&base.w);
}

static void flipped_bits_lose_no_record_silently(void **state)
{
	(void)state;
	struct base base;
	struct tally tally = { 0 };
	base_make(&base, NULL);
	for (uint64_t i = 0; i < FLIPS * campaign_factor(); i++) {
		char what[128];
		const char *path = target(&base, i);
		struct io_disk *disk = io_disk_copy(base.w.disk);
		int64_t size = file_size(disk, path),
			bit = (int64_t)(mix(i + 77) % (uint64_t)(size * 8));
		snprintf(what, sizeof(what), "%s with bit %" PRId64 " flipped", path, bit);
		assert_int_equal(io_disk_flip(disk, path, bit), 0);
		expect_honest(&base, disk, &tally, what);
		io_disk_destroy(disk);
		say_now_and_then("flips", &tally);
	}
	print_tally("flips", &tally);
	workload_deinit(&base.w);
}

/* Appends until the log has just been copied in: that append syncs more than the log. */
static void append_to_checkpoint(struct workload *w)
{
	for (;;) {
		uint64_t before = io_disk_calls(w->disk, IO_SYNC);
		if (workload_append(w, 1) < 0)
			fail_msg("%s", w->problem);
		if (io_disk_calls(w->disk, IO_SYNC) - before >= 3)
			return;
	}
}

/* A power loss when the log has just been copied in, and then flips in the segment. */
static uint64_t flips_after_power_loss(const char *left_out, struct tally *tally)
{
	struct base base;
	uint64_t silent = 0;
	base_make(&base, left_out);
	append_to_checkpoint(&base.w);
	for (uint64_t i = 0; i < FLIPS / 4 * campaign_factor(); i++) {
		char what[128];
		struct io_disk *disk = io_disk_crash(base.w.disk, IO_FORGET, i);
		int64_t size = file_size(disk, base.open_segment);
		int64_t bit = (int64_t)(mix(i + 5) % (uint64_t)(size * 8));
		snprintf(what, sizeof(what), "%s after a power loss, bit %" PRId64 " flipped",
			 base.open_segment, bit);
		/* The log as the next commit leaves it: begun anew. */
		io_disk_cut(disk, base.open_wal, 0);
		assert_int_equal(io_disk_flip(disk, base.open_segment, bit), 0);
		if (left_out)
			silent += count_silent(&base, disk);
		else
			expect_honest(&base, disk, tally, what);
		io_disk_destroy(disk);
	}
	workload_deinit(&base.w);
	return silent;
}

static void after_a_power_loss_flips_in_the_segment_still_show(void **state)
{
	(void)state;
	struct tally tally = { 0 };
	flips_after_power_loss(NULL, &tally);
	print_tally("flips after a power loss", &tally);
	/* Without the sync of the head some would not. */
	uint64_t silent = flips_after_power_loss("*/head", &tally);
	print_message("without the sync of the head: %" PRIu64 " records silently gone\n", silent);
	assert_true(silent > 0);
}

static void the_small_files_may_be_hit_too(void **state)
{
	(void)state;
	static const char *const paths[] = { WORKLOAD_FOLDER "/journal/manifest",
					     WORKLOAD_FOLDER "/journal/head" };
	struct base base;
	struct tally tally = { 0 };
	base_make(&base, NULL);
	for (uint64_t i = 0; i < 600; i++) {
		char what[128];
		const char *path = paths[i % 2];
		struct io_disk *disk = io_disk_copy(base.w.disk);
		int64_t size = file_size(disk, path);
		snprintf(what, sizeof(what), "%s hit %" PRIu64, path, i);
		if (i % 5 == 0)
			io_disk_cut(disk, path, (int64_t)(mix(i) % (uint64_t)size));
		else
			io_disk_flip(disk, path, (int64_t)(mix(i) % (uint64_t)(size * 8)));
		expect_honest(&base, disk, &tally, what);
		io_disk_destroy(disk);
	}
	assert_int_equal(tally.records_lost, 0);
	workload_deinit(&base.w);
}

static int count_record(void *context, uint32_t kind, const char *text, size_t size)
{
	uint64_t *count = context;
	(void)kind;
	(void)text;
	(void)size;
	++*count;
	return 0;
}

static void count_passed_over(void *context, const char *name, const char *why)
{
	(void)context;
	assert_non_null(name);
	assert_non_null(why);
}

static void a_snapshot_that_was_hit_is_passed_over_for_the_one_before(void **state)
{
	(void)state;
	struct base base;
	base_make(&base, NULL);
	uint64_t newest = base.w.promise.snapshot_seq;
	char path[64];
	snprintf(path, sizeof(path), WORKLOAD_FOLDER "/snapshots/%020" PRIu64 ".snap", newest);
	for (uint64_t i = 0; i < 1000; i++) {
		struct io_disk *disk = io_disk_copy(base.w.disk);
		int64_t size = file_size(disk, path);
		struct snapshot_head head;
		struct err err;
		uint64_t count = 0;
		if (i % 4 == 0)
			io_disk_cut(disk, path, (int64_t)(mix(i) % (uint64_t)size));
		else
			io_disk_flip(disk, path, (int64_t)(mix(i) % (uint64_t)(size * 8)));
		int result = snapshot_load(WORKLOAD_FOLDER, io_disk_io(disk), UINT64_MAX, &head,
					   &count, count_record, count_passed_over, &err);
		assert_int_equal(result, 0);
		assert_true(head.seq < newest && head.seq > 0);
		assert_int_equal(count, 5);
		io_disk_destroy(disk);
	}
	workload_deinit(&base.w);
}

/* A name, or a pattern with *, runs some of the tests: a campaign gives each its own length. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_cut_anywhere_lose_no_record_silently),
		cmocka_unit_test(flipped_bits_lose_no_record_silently),
		cmocka_unit_test(after_a_power_loss_flips_in_the_segment_still_show),
		cmocka_unit_test(the_small_files_may_be_hit_too),
		cmocka_unit_test(a_snapshot_that_was_hit_is_passed_over_for_the_one_before),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
