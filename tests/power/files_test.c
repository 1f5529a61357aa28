/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files beside the journal, on the disk in memory: a backup that was said to be done, bytes that were set aside, a
 * task's spec and exit record. Each is written, the power goes, and each must be there as it was written. Then the same
 * with one sync left out: it must show.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/check.h"
#include "engine/local/place.h"
#include "store/journal.h"
#include "store/testing/io_disk.h"
#include "workload.h"

#define BACKUP "/d/backup.tar"
#define PLACE "/d/place"
enum { FILE_MAX = 64 << 20, APPENDS = 60 };

/* A sync that is left out; pattern NULL: none. */
struct removal {
	const char *name;
	enum io_call call;
	const char *pattern;
};

struct bytes {
	char *data;
	size_t size;
};

static struct bytes read_bytes(struct io_disk *disk, const char *path)
{
	struct bytes bytes = { 0 };
	if (io_read_file(io_disk_io(disk), path, FILE_MAX, &bytes.data, &bytes.size) < 0)
		bytes = (struct bytes){ 0 };
	return bytes;
}

static bool bytes_equal(const struct bytes *a, const struct bytes *b)
{
	return a->data && b->data && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

/* Whether the file is after a power loss what it was before. */
static bool survives(struct io_disk *disk, const char *path)
{
	struct io_disk *crashed = io_disk_crash(disk, IO_FORGET, 1);
	struct bytes before = read_bytes(disk, path), after = read_bytes(crashed, path);
	bool equal = bytes_equal(&before, &after);
	assert_non_null(before.data);
	free(before.data);
	free(after.data);
	io_disk_destroy(crashed);
	return equal;
}

static void expect_only_whole(const struct removal *removals, size_t count,
			      bool (*survived)(const struct removal *removal))
{
	static const struct removal none;
	assert_true(survived(&none));
	for (size_t i = 0; i < count; i++) {
		bool seen = !survived(&removals[i]);
		print_message("without the sync of %s: %s\n", removals[i].name,
			      seen ? "the file is lost or not whole" : "nothing");
		assert_true(seen);
	}
}

static void leave_out(struct io_disk *disk, const struct removal *removal)
{
	if (removal->pattern)
		io_disk_skip(disk, removal->call, IO_SKIP_ALL, removal->pattern);
}

/* A data folder with some records and a snapshot, closed. */
static void make_data(struct workload *w)
{
	workload_init(w, io_disk_create(), 5);
	if (workload_open(w) < 0)
		fail_msg("%s", w->problem);
	for (int i = 0; i < APPENDS; i++)
		if (workload_append(w, 1) < 0 || (i == APPENDS / 2 && workload_snapshot(w) < 0))
			fail_msg("%s", w->problem);
	workload_close(w);
}

/* --- backup --- */

static void back_up(struct workload *w)
{
	struct err err;
	if (journal_backup_io(io_disk_io(w->disk), WORKLOAD_FOLDER, BACKUP, &err) != 0)
		fail_msg("%s", err.text);
}

static bool backup_survives(const struct removal *removal)
{
	struct workload w;
	make_data(&w);
	leave_out(w.disk, removal);
	back_up(&w);
	bool result = survives(w.disk, BACKUP);
	workload_deinit(&w);
	return result;
}

static void a_backup_that_is_done_outlives_a_power_loss(void **state)
{
	(void)state;
	static const struct removal removals[] = {
		{ "a backup", IO_SYNC, BACKUP ".tmp" },
		{ "the folder of a backup", IO_SYNC_FOLDER, BACKUP },
	};
	expect_only_whole(removals, ARRAY_SIZE(removals), backup_survives);
}

struct replacing {
	struct io_disk *disk;
	struct bytes old;
	uint64_t checks, news, wrong;
};

/* Under the name stands the old backup, or a whole new one. */
static void before_change(void *context, enum io_call call, const char *path)
{
	struct replacing *r = context;
	(void)call;
	(void)path;
	for (enum io_crash how = 0; how < IO_CRASHES; how++) {
		struct io_disk *crashed = io_disk_crash(r->disk, how, ++r->checks);
		struct bytes seen = read_bytes(r->disk, BACKUP),
			     after = read_bytes(crashed, BACKUP);
		bool is_new = !bytes_equal(&after, &r->old);
		r->news += is_new;
		r->wrong += is_new && !bytes_equal(&after, &seen);
		free(seen.data);
		free(after.data);
		io_disk_destroy(crashed);
	}
}

static void replace_backup(struct replacing *r, bool synced)
{
	struct workload w;
	make_data(&w);
	back_up(&w);
	*r = (struct replacing){ .disk = w.disk, .old = read_bytes(w.disk, BACKUP) };
	if (workload_open(&w) < 0 || workload_append(&w, 3) < 0)
		fail_msg("%s", w.problem);
	workload_close(&w);
	if (!synced)
		io_disk_skip(w.disk, IO_SYNC, IO_SKIP_ALL, BACKUP ".tmp");
	io_disk_watch(w.disk, r, before_change);
	back_up(&w);
	before_change(r, IO_OPEN, BACKUP);
	io_disk_watch(w.disk, NULL, NULL);
	free(r->old.data);
	workload_deinit(&w);
}

static void a_backup_is_replaced_by_a_whole_one_or_not_at_all(void **state)
{
	(void)state;
	struct replacing r;
	replace_backup(&r, true);
	assert_int_equal(r.wrong, 0);
	assert_true(r.news > 0 && r.checks > 100);
	replace_backup(&r, false);
	assert_true(r.wrong > 0);
}

/* --- what was set aside --- */

static bool quarantine_survives(const struct removal *removal)
{
	struct workload w;
	make_data(&w);
	leave_out(w.disk, removal);
	assert_int_equal(io_disk_cut(w.disk, WORKLOAD_FOLDER "/journal/manifest", 20), 0);
	if (workload_open(&w) < 0)
		fail_msg("%s", w.problem);
	bool result = survives(w.disk, WORKLOAD_FOLDER "/quarantine/manifest");
	workload_deinit(&w);
	return result;
}

static void bytes_that_were_set_aside_outlive_a_power_loss(void **state)
{
	(void)state;
	static const struct removal removals[] = {
		{ "what is set aside", IO_SYNC, "*/quarantine/*" },
		{ "the folder of what is set aside", IO_SYNC_FOLDER, "*/quarantine/*" },
		{ "the folder above that", IO_SYNC_FOLDER, "*/quarantine" },
	};
	expect_only_whole(removals, ARRAY_SIZE(removals), quarantine_survives);
}

/* --- a task's place --- */

static bool place_file_survives(const struct removal *removal, const char *name)
{
	struct io_disk *disk = io_disk_create();
	struct io *io = io_disk_io(disk);
	struct err err;
	char path[64];
	assert_int_equal(io->mkdir(io, PLACE, 0700), 0);
	assert_int_equal(io->sync_folder(io, "/d"), 0);
	leave_out(disk, removal);
	snprintf(path, sizeof(path), PLACE "/%s", name);
	if (place_put_durable(io, PLACE, name, "{\"a\":1}\n", 8, &err) != 0)
		fail_msg("%s", err.text);
	bool result = survives(disk, path);
	io_disk_destroy(disk);
	return result;
}

static bool exit_survives(const struct removal *removal)
{
	return place_file_survives(removal, "exit");
}

static bool spec_survives(const struct removal *removal)
{
	return place_file_survives(removal, "spec");
}

static void spec_and_exit_record_outlive_a_power_loss(void **state)
{
	(void)state;
	static const struct removal exits[] = {
		{ "an exit record", IO_SYNC, "*/exit.tmp" },
		{ "the folder of an exit record", IO_SYNC_FOLDER, "*/exit" },
	};
	static const struct removal specs[] = {
		{ "a spec", IO_SYNC, "*/spec.tmp" },
		{ "the folder of a spec", IO_SYNC_FOLDER, "*/spec" },
	};
	expect_only_whole(exits, ARRAY_SIZE(exits), exit_survives);
	expect_only_whole(specs, ARRAY_SIZE(specs), spec_survives);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_backup_that_is_done_outlives_a_power_loss),
		cmocka_unit_test(a_backup_is_replaced_by_a_whole_one_or_not_at_all),
		cmocka_unit_test(bytes_that_were_set_aside_outlive_a_power_loss),
		cmocka_unit_test(spec_and_exit_record_outlive_a_power_loss),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
