/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power goes before every call that changes the disk, in three ways each, through a run of 2,000 operations: no
 * acknowledged record is lost, nothing is half visible, the chain holds. Then the same with one kind of sync left out:
 * the loss must show, for each kind. A sync whose removal nobody notices would be one that is not needed, or a test that
 * does not look.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/testing/io_disk.h"
#include "workload.h"

struct crashes {
	struct workload *w;
	uint64_t points, checks;
	uint64_t forgotten_kept, forgotten_promise; /* version of the last check with FORGET */
	bool stop_at_first;
	uint64_t violations;
	char problem[VIOLATION_MAX];
};

/* A seventh of the points looks at the snapshot as well, and each that touches one; a 61st at everything. */
static enum promise_part part_of(const struct crashes *c, const char *path)
{
	if (c->points % 61 == 0)
		return PROMISE_ALL;
	return c->points % 7 == 0 || strstr(path, "/snapshots") ? PROMISE_END_AND_SNAPSHOT
								: PROMISE_END;
}

static void crash_once(struct crashes *c, enum io_crash how, const char *path)
{
	const struct promise *promise = &c->w->promise;
	uint64_t seed = c->points * IO_CRASHES + how, last;
	struct io_disk *disk = io_disk_crash(c->w->disk, how, seed);
	char problem[VIOLATION_MAX] = "";
	int result;
	c->checks++;
	if (c->points % 97 == 0)
		result = promise_check_on(promise, disk, seed, problem);
	else
		result = promise_check(promise, disk, part_of(c, path), &last, problem);
	io_disk_destroy(disk);
	if (result == 0)
		return;
	if (c->violations++ == 0)
		snprintf(c->problem, sizeof(c->problem), "crash %d before change %llu: %s",
			 (int)how, (unsigned long long)c->points, problem);
}

static void before_change(void *context, enum io_call call, const char *path)
{
	struct crashes *c = context;
	(void)call;
	if (c->stop_at_first && c->violations)
		return;
	c->points++;
	uint64_t kept = io_disk_kept_version(c->w->disk), promised = c->w->promise.version;
	if (kept != c->forgotten_kept || promised != c->forgotten_promise) {
		c->forgotten_kept = kept;
		c->forgotten_promise = promised;
		crash_once(c, IO_FORGET, path);
	}
	if (io_disk_waiting(c->w->disk) == 0)
		return;
	crash_once(c, IO_TEAR, path);
	crash_once(c, IO_REORDER, path);
}

static void run(struct crashes *c, struct io_disk *disk, uint64_t seed, unsigned operations)
{
	struct workload w;
	workload_init(&w, disk, seed);
	c->w = &w;
	io_disk_watch(disk, c, before_change);
	int result = workload_open(&w);
	for (unsigned i = 0; i < operations && result == 0 && !(c->stop_at_first && c->violations);
	     i++)
		result = workload_step(&w);
	if (result < 0)
		fail_msg("the run itself failed: %s", w.problem);
	io_disk_watch(disk, NULL, NULL);
	workload_deinit(&w);
}

static void power_lost_at_every_change_loses_nothing_acknowledged(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= campaign_factor(); seed++) {
		struct crashes c = { 0 };
		run(&c, io_disk_create(), seed, 2000);
		print_message("seed %llu: %llu changes, %llu crashes, %llu violations\n",
			      (unsigned long long)seed, (unsigned long long)c.points,
			      (unsigned long long)c.checks, (unsigned long long)c.violations);
		if (c.violations)
			fail_msg("%s", c.problem);
		assert_true(c.points > 10000);
	}
}

static const struct removal {
	const char *name;
	enum io_call call;
	enum io_skip which;
	const char *pattern;
} removals[] = {
	{ "write-ahead log", IO_SYNC, IO_SKIP_ALL, "*.sqlite-wal" },
	{ "segment at a checkpoint", IO_SYNC, IO_SKIP_OLD, "*.sqlite" },
	{ "new segment", IO_SYNC, IO_SKIP_NEW, "*.sqlite" },
	{ "folder of a new segment", IO_SYNC_FOLDER, IO_SKIP_NEW, "*.sqlite-wal" },
	{ "folder of a log", IO_SYNC_FOLDER, IO_SKIP_OLD, "*.sqlite-wal" },
	{ "manifest", IO_SYNC, IO_SKIP_ALL, "*/manifest.tmp" },
	{ "folder of the manifest", IO_SYNC_FOLDER, IO_SKIP_ALL, "*/manifest" },
	{ "folder above the data folder", IO_SYNC_FOLDER, IO_SKIP_ALL, WORKLOAD_FOLDER },
	{ "folder of the journal", IO_SYNC_FOLDER, IO_SKIP_ALL, WORKLOAD_FOLDER "/journal" },
	{ "snapshot", IO_SYNC, IO_SKIP_ALL, "*/snapshots/*" },
	{ "folder of a snapshot", IO_SYNC_FOLDER, IO_SKIP_ALL, "*/snapshots/*" },
	{ "folder of the snapshots", IO_SYNC_FOLDER, IO_SKIP_ALL, WORKLOAD_FOLDER "/snapshots" },
	{ "key", IO_SYNC, IO_SKIP_ALL, "*/body.key.tmp" },
	{ "folder of the key", IO_SYNC_FOLDER, IO_SKIP_ALL, "*/body.key" },
	{ "folder of the keys", IO_SYNC_FOLDER, IO_SKIP_ALL, WORKLOAD_FOLDER "/keys" },
};

static void without_any_one_sync_the_loss_shows(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(removals) / sizeof(removals[0]); i++) {
		const struct removal *removal = &removals[i];
		struct io_disk *disk = io_disk_create();
		struct crashes c = { .stop_at_first = true };
		io_disk_skip(disk, removal->call, removal->which, removal->pattern);
		run(&c, disk, 7, 2000);
		print_message("without the sync of %-24s %6llu crashes, then: %s\n", removal->name,
			      (unsigned long long)c.checks, c.violations ? c.problem : "nothing");
		if (!c.violations)
			fail_msg("nothing shows that the sync of the %s is missing", removal->name);
	}
}

/* A name, or a pattern with *, runs some of the tests: a campaign gives each its own length. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_any_one_sync_the_loss_shows),
		cmocka_unit_test(power_lost_at_every_change_loses_nothing_acknowledged),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
