/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k-th call of each kind fails, for every k of a short run: what was acknowledged stays, the journal refuses what comes
 * after a failed commit, and a new start finds everything, also when the power goes right after. A failed sync
 * loses its pages while reads still see them, as Linux does. And the disk that is full.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/journal.h"
#include "store/testing/io_disk.h"
#include "workload.h"

enum { STEPS = 40 };

/* Opens, runs STEPS operations; negative at the first failure. */
static int run_steps(struct workload *w)
{
	int result = workload_open(w);
	for (int i = 0; i < STEPS && result == 0; i++)
		result = workload_step(w);
	return result;
}

/* A failed journal says so and takes nothing more. */
static void expect_refusal(struct workload *w)
{
	struct journal_state state;
	if (!w->journal)
		return;
	journal_state(w->journal, &state);
	if (!state.failed)
		return;
	struct record record = { .kind = 1, .text = "{}", .size = 2 };
	struct err err;
	assert_true(journal_append(w->journal, &record, 1, NULL, 0, true, &err) < 0);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "failed"));
}

/* After the failure: a kill, a power loss in each way, and a start on the same disk that goes on and then loses power. */
static void expect_kept(struct workload *w, enum io_call call, uint64_t k)
{
	char problem[VIOLATION_MAX] = "";
	uint64_t last;
	for (int how = 0; how < IO_CRASHES; how++) {
		struct io_disk *crashed = io_disk_crash(w->disk, (enum io_crash)how, k);
		if (promise_check(&w->promise, crashed, PROMISE_ALL, &last, problem) != 0)
			fail_msg("%s %llu failed, crash %d: %s", io_call_name(call),
				 (unsigned long long)k, how, problem);
		io_disk_destroy(crashed);
	}
	struct io_disk *killed = io_disk_copy(w->disk);
	if (promise_check(&w->promise, killed, PROMISE_ALL, &last, problem) != 0)
		fail_msg("%s %llu failed, killed: %s", io_call_name(call), (unsigned long long)k,
			 problem);
	io_disk_destroy(killed);
	workload_close(w);
	if (promise_check_on(&w->promise, w->disk, k, problem) != 0)
		fail_msg("%s %llu failed, opened again: %s", io_call_name(call),
			 (unsigned long long)k, problem);
}

/* Every k until the run has fewer such calls. `allowed`: the run may go on after the failure. */
static void fail_each(enum io_call call, int error, bool allowed)
{
	uint64_t k = 1, stopped = 0;
	for (;; k++) {
		struct workload w;
		workload_init(&w, io_disk_create(), 3);
		io_disk_fail(w.disk, call, k, error);
		int result = run_steps(&w);
		bool failed = io_disk_failed(w.disk);
		if (failed && result == 0 && !allowed)
			fail_msg("%s %llu failed and nobody said so", io_call_name(call),
				 (unsigned long long)k);
		if (!failed && result < 0)
			fail_msg("without any failure: %s", w.problem);
		if (failed)
			expect_refusal(&w);
		stopped += failed && result < 0;
		if (failed)
			expect_kept(&w, call, k);
		workload_deinit(&w);
		if (!failed)
			break;
	}
	print_message("%-11s failed with %s in %llu places, %llu of them stopped the run\n",
		      io_call_name(call), error == ENOSPC ? "no space" : "an error",
		      (unsigned long long)k - 1, (unsigned long long)stopped);
	assert_true(k > 1);
}

static void a_failed_write_is_never_acknowledged(void **state)
{
	(void)state;
	fail_each(IO_WRITE, EIO, true);
}

static void a_write_without_space_is_never_acknowledged(void **state)
{
	(void)state;
	fail_each(IO_WRITE, ENOSPC, true);
}

static void a_failed_sync_is_never_acknowledged(void **state)
{
	(void)state;
	fail_each(IO_SYNC, EIO, false);
}

static void a_sync_without_space_is_never_acknowledged(void **state)
{
	(void)state;
	fail_each(IO_SYNC, ENOSPC, true);
}

static void a_failed_rename_is_never_acknowledged(void **state)
{
	(void)state;
	fail_each(IO_RENAME, EIO, false);
}

static void a_failed_folder_sync_is_never_acknowledged(void **state)
{
	(void)state;
	fail_each(IO_SYNC_FOLDER, EIO, false);
}

static void other_failed_calls_lose_nothing(void **state)
{
	(void)state;
	fail_each(IO_OPEN, EIO, true);
	fail_each(IO_OPEN, ENOSPC, true);
	fail_each(IO_TRUNCATE, EIO, true);
	fail_each(IO_UNLINK, EIO, true);
	fail_each(IO_MKDIR, EIO, true);
	fail_each(IO_ALLOCATE, ENOSPC, true);
	fail_each(IO_READ, EIO, true);
}

/* ---- a start after a failed sync, and the power lost during that start ---- */

struct reopening {
	struct io_disk *disk;
	const struct promise *promise;
	uint64_t points, violations;
	char problem[VIOLATION_MAX];
};

static void crash_while_reopening(void *context, enum io_call call, const char *path)
{
	struct reopening *r = context;
	(void)call;
	(void)path;
	r->points++;
	for (int how = 0; how < IO_CRASHES; how++) {
		char problem[VIOLATION_MAX];
		uint64_t last;
		struct io_disk *crashed = io_disk_crash(r->disk, (enum io_crash)how, r->points);
		if (promise_check(r->promise, crashed, PROMISE_ALL, &last, problem) != 0 &&
		    r->violations++ == 0)
			snprintf(r->problem, sizeof(r->problem), "%s", problem);
		io_disk_destroy(crashed);
	}
}

/* Every k-th call fails; the start after it loses power before each of its changes. `left_out`: syncs that
 * this start does not do. */
static void reopen_each(enum io_call call, enum io_call left_out_call, const char *left_out,
			struct reopening *ret)
{
	*ret = (struct reopening){ 0 };
	for (uint64_t k = 1;; k++) {
		struct workload w, again;
		workload_init(&w, io_disk_create(), 3);
		io_disk_fail(w.disk, call, k, EIO);
		(void)run_steps(&w);
		bool failed = io_disk_failed(w.disk), opened = w.promise.opened;
		workload_close(&w);
		if (failed && opened) {
			ret->disk = w.disk;
			ret->promise = &w.promise;
			workload_init(&again, w.disk, 1);
			again.promise = w.promise;
			io_disk_watch(w.disk, ret, crash_while_reopening);
			io_disk_skip(w.disk, left_out_call, IO_SKIP_ALL, left_out);
			if (workload_open(&again) < 0)
				fail_msg("%s %llu: %s", io_call_name(call), (unsigned long long)k,
					 again.problem);
			io_disk_watch(w.disk, NULL, NULL);
			io_disk_skip(w.disk, left_out_call, IO_SKIP_ALL, NULL);
			/* And right after it, with one more record acknowledged behind what was found. */
			struct journal_state found;
			journal_state(again.journal, &found);
			again.promise.last_seq = again.promise.trying_seq = found.last_seq;
			if (workload_append(&again, 1) < 0)
				fail_msg("%s", again.problem);
			ret->promise = &again.promise;
			crash_while_reopening(ret, IO_WRITE, "");
			workload_close(&again);
		}
		io_disk_destroy(w.disk);
		if (!failed)
			return;
	}
}

static void a_start_after_a_failed_sync_believes_only_what_is_on_disk(void **state)
{
	(void)state;
	struct reopening r;
	static const enum io_call calls[] = { IO_SYNC, IO_SYNC_FOLDER };
	for (size_t i = 0; i < 2; i++) {
		reopen_each(calls[i], IO_SYNC, NULL, &r);
		print_message("%s failed, then %llu crashes while starting: %llu violations\n",
			      io_call_name(calls[i]), (unsigned long long)r.points * IO_CRASHES,
			      (unsigned long long)r.violations);
		if (r.violations)
			fail_msg("%s", r.problem);
		assert_true(r.points > 50);
	}
	/* Without writing the log over itself something is lost. */
	reopen_each(IO_SYNC, IO_SYNC, "*.sqlite-wal", &r);
	print_message("without the sync of the log when starting: %s\n", r.problem);
	assert_true(r.violations > 0);
}

static void on_a_full_disk_only_essential_facts_are_taken(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20 * campaign_factor(); seed++) {
		struct workload w;
		uint64_t last;
		char problem[VIOLATION_MAX];
		struct journal_state now;
		workload_init(&w, io_disk_create(), seed);
		assert_int_equal(workload_open(&w), 0);
		for (int i = 0; i < 20; i++)
			assert_int_equal(workload_step(&w), 0);
		/* Full from here on, but for a few KiB that differ. */
		io_disk_capacity(w.disk, io_disk_used(w.disk) + (int64_t)(seed % 5) * 4096);
		uint64_t before = w.full;
		for (int i = 0; i < 400 && w.full == before; i++)
			if (workload_append(&w, 4) < 0)
				fail_msg("%s", w.problem);
		assert_true(w.full > before);
		uint64_t acknowledged = w.promise.last_seq;
		w.essential = true;
		for (int i = 0; i < 20; i++)
			if (workload_append(&w, 2) < 0)
				fail_msg("%s", w.problem);
		assert_int_equal(w.promise.last_seq, acknowledged + 40);
		w.essential = false;
		before = w.full;
		assert_int_equal(workload_append(&w, 1), 0);
		assert_int_equal(w.full, before + 1);
		journal_state(w.journal, &now);
		assert_true(now.full);
		assert_false(now.failed);
		/* A start on the full disk works too. */
		struct io_disk *copy = io_disk_copy(w.disk);
		if (promise_check(&w.promise, copy, PROMISE_ALL, &last, problem) != 0)
			fail_msg("%s", problem);
		io_disk_destroy(copy);
		/* Space again, and no restart is needed. */
		io_disk_capacity(w.disk, -1);
		assert_int_equal(workload_append(&w, 1), 0);
		assert_int_equal(w.full, before + 1);
		journal_state(w.journal, &now);
		assert_false(now.full);
		workload_deinit(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_write_is_never_acknowledged),
		cmocka_unit_test(a_write_without_space_is_never_acknowledged),
		cmocka_unit_test(a_failed_sync_is_never_acknowledged),
		cmocka_unit_test(a_sync_without_space_is_never_acknowledged),
		cmocka_unit_test(a_failed_rename_is_never_acknowledged),
		cmocka_unit_test(a_failed_folder_sync_is_never_acknowledged),
		cmocka_unit_test(other_failed_calls_lose_nothing),
		cmocka_unit_test(a_start_after_a_failed_sync_believes_only_what_is_on_disk),
		cmocka_unit_test(on_a_full_disk_only_essential_facts_are_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
