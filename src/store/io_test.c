/* SPDX-License-Identifier: Apache-2.0 */
/* The same cases on the real files and on the disk in memory: what a test of power loss says of one holds for the other. */
#include "store/io.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "store/testing/io_disk.h"
#include "store/testing/store_test.h"

struct place {
	struct store_test_folder *folder;
	struct io_disk *disk;
	struct io *io;
	char path[64];
};

static int real_setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	store_test_setup((void **)&place->folder);
	place->io = io_real();
	snprintf(place->path, sizeof(place->path), "%s", place->folder->path);
	*state = place;
	return 0;
}

static int disk_setup(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	place->disk = io_disk_create();
	place->io = io_disk_io(place->disk);
	snprintf(place->path, sizeof(place->path), "/d");
	*state = place;
	return 0;
}

static int teardown(void **state)
{
	struct place *place = *state;
	if (place->folder)
		store_test_teardown((void **)&place->folder);
	io_disk_destroy(place->disk);
	free(place);
	return 0;
}

static const char *name_in(const struct place *place, const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];
	snprintf(path, 128, "%s/%s", place->path, name);
	return path;
}

static void files_are_written_read_cut_and_grown(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	struct io_file *file;
	char data[16];
	assert_int_equal(io->open(io, name_in(place, "f"), O_RDWR, 0, &file), -ENOENT);
	assert_int_equal(io->open(io, name_in(place, "no/f"), O_RDWR | O_CREAT, 0600, &file),
			 -ENOENT);
	assert_int_equal(io->open(io, name_in(place, "f"), O_RDWR | O_CREAT | O_EXCL, 0600, &file),
			 0);
	assert_int_equal(io->write(io, file, "hello", 5, 3), 0);
	assert_int_equal(io->size(io, file), 8);
	assert_int_equal(io->read(io, file, data, 16, 0), 8);
	assert_memory_equal(data, "\0\0\0hello", 8);
	assert_int_equal(io->read(io, file, data, 16, 8), 0);
	assert_int_equal(io->truncate(io, file, 5), 0);
	assert_int_equal(io->truncate(io, file, 7), 0);
	assert_int_equal(io->read(io, file, data, 16, 3), 4);
	assert_memory_equal(data, "he\0\0", 4);
	assert_int_equal(io->write(io, file, "x", 1, 4095), 0);
	assert_int_equal(io->write(io, file, "yz", 2, 4096), 0);
	assert_int_equal(io->read(io, file, data, 3, 4095), 3);
	assert_memory_equal(data, "xyz", 3);
	assert_int_equal(io->sync(io, file), 0);
	assert_int_equal(io->allocate(io, file, 10000), 0);
	assert_int_equal(io->size(io, file), 10000);
	io->close(io, file);
	assert_int_equal(io->open(io, name_in(place, "f"), O_RDWR | O_CREAT | O_EXCL, 0600, &file),
			 -EEXIST);
	assert_int_equal(io->open(io, name_in(place, "f"), O_RDWR | O_TRUNC, 0600, &file), 0);
	assert_int_equal(io->size(io, file), 0);
	io->close(io, file);
	assert_int_equal(io->open(io, name_in(place, "f"), O_RDONLY, 0600, &file), 0);
	assert_int_equal(io->write(io, file, "x", 1, 0), -EBADF);
	io->close(io, file);
	io->close(io, NULL);
	assert_true(io->free_bytes(io, place->path) > 0);
}

static int add_name(void *context, const char *name)
{
	char *names = context;
	size_t length = strlen(names);
	snprintf(names + length, 64 - length, "%s ", name);
	return 0;
}

static void names_come_go_and_are_listed_in_order(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	char names[64] = "", *data;
	size_t size;
	assert_int_equal(io->mkdir(io, name_in(place, "sub"), 0700), 0);
	assert_int_equal(io->mkdir(io, name_in(place, "sub"), 0700), -EEXIST);
	assert_int_equal(io->mkdir(io, name_in(place, "no/sub"), 0700), -ENOENT);
	assert_int_equal(io_replace_file(io, name_in(place, "b"), "1", 1, 0600), 0);
	assert_int_equal(io_replace_file(io, name_in(place, "a"), "22", 2, 0600), 0);
	assert_int_equal(io_replace_file(io, name_in(place, "sub/c"), "333", 3, 0600), 0);
	assert_int_equal(io->list(io, place->path, names, add_name), 0);
	assert_string_equal(names, "a b sub ");
	assert_int_equal(io->list(io, name_in(place, "no"), names, add_name), -ENOENT);
	assert_int_equal(io->rename(io, name_in(place, "b"), name_in(place, "a")), 0);
	assert_int_equal(io->rename(io, name_in(place, "b"), name_in(place, "a")), -ENOENT);
	assert_int_equal(io_read_file(io, name_in(place, "a"), 10, &data, &size), 0);
	assert_int_equal(size, 1);
	assert_string_equal(data, "1");
	free(data);
	assert_int_equal(io_read_file(io, name_in(place, "sub/c"), 2, &data, &size), -EFBIG);
	assert_int_equal(io->sync_folder(io, place->path), 0);
	assert_int_equal(io->unlink(io, name_in(place, "a")), 0);
	assert_int_equal(io->unlink(io, name_in(place, "a")), -ENOENT);
}

static void a_file_stays_readable_after_its_name_is_gone(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	struct io_file *file;
	char data[4];
	assert_int_equal(io->open(io, name_in(place, "f"), O_RDWR | O_CREAT, 0600, &file), 0);
	assert_int_equal(io->write(io, file, "abc", 3, 0), 0);
	assert_int_equal(io->unlink(io, name_in(place, "f")), 0);
	assert_int_equal(io->read(io, file, data, 4, 0), 3);
	io->close(io, file);
}

/* ---- what only the disk in memory does ---- */

static struct io_file *make(struct io *io, const char *path, const char *text)
{
	struct io_file *file;
	assert_int_equal(io->open(io, path, O_RDWR | O_CREAT, 0600, &file), 0);
	assert_int_equal(io->write(io, file, text, strlen(text), 0), 0);
	return file;
}

static void expect_text(struct io_disk *disk, const char *path, const char *text)
{
	char *data;
	size_t size;
	int result = io_read_file(io_disk_io(disk), path, 1 << 20, &data, &size);
	if (!text) {
		assert_int_equal(result, -ENOENT);
		return;
	}
	assert_int_equal(result, 0);
	assert_string_equal(data, text);
	free(data);
}

static void a_crash_forgets_contents_and_names_that_were_not_synced(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	struct io_file *file = make(io, "/d/f", "old");
	struct io_disk *crashed = io_disk_crash(place->disk, IO_FORGET, 1);
	expect_text(crashed, "/d/f", NULL);
	io_disk_destroy(crashed);
	assert_int_equal(io->sync_folder(io, "/d"), 0);
	crashed = io_disk_crash(place->disk, IO_FORGET, 1);
	expect_text(crashed, "/d/f", "");
	io_disk_destroy(crashed);
	assert_int_equal(io->sync(io, file), 0);
	assert_int_equal(io->write(io, file, "new", 3, 0), 0);
	assert_int_equal(io->rename(io, "/d/f", "/d/g"), 0);
	crashed = io_disk_crash(place->disk, IO_FORGET, 1);
	expect_text(crashed, "/d/f", "old");
	expect_text(crashed, "/d/g", NULL);
	io_disk_destroy(crashed);
	crashed = io_disk_copy(place->disk);
	expect_text(crashed, "/d/f", NULL);
	expect_text(crashed, "/d/g", "new");
	io_disk_destroy(crashed);
	io->close(io, file);
}

static void a_crash_may_keep_any_part_in_any_order(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	struct io_file *file;
	assert_int_equal(io->open(io, "/d/f", O_RDWR | O_CREAT, 0600, &file), 0);
	assert_int_equal(io->truncate(io, file, 2048), 0);
	assert_int_equal(io->sync(io, file), 0);
	assert_int_equal(io->sync_folder(io, "/d"), 0);
	char wave[1024];
	memset(wave, '1', sizeof(wave));
	assert_int_equal(io->write(io, file, wave, sizeof(wave), 0), 0);
	memset(wave, '2', sizeof(wave));
	assert_int_equal(io->write(io, file, wave, sizeof(wave), 1024), 0);
	unsigned torn[2] = { 0 }, second_alone[2] = { 0 };
	for (uint64_t seed = 0; seed < 200; seed++) {
		for (int how = IO_TEAR; how <= IO_REORDER; how++) {
			struct io_disk *crashed =
				io_disk_crash(place->disk, (enum io_crash)how, seed);
			char *data;
			size_t size;
			assert_int_equal(
				io_read_file(io_disk_io(crashed), "/d/f", 4096, &data, &size), 0);
			assert_int_equal(size, 2048);
			for (size_t at = 0; at < 2048; at++) /* sectors are whole */
				assert_int_equal(data[at], data[at / 512 * 512]);
			torn[how - IO_TEAR] += data[0] != data[512] || data[1024] != data[1536];
			second_alone[how - IO_TEAR] += !data[0] && !data[512] && data[1024];
			free(data);
			io_disk_destroy(crashed);
		}
	}
	assert_true(torn[0] > 0 && torn[1] > 0);
	assert_int_equal(second_alone[0], 0); /* a tear keeps the order */
	assert_true(second_alone[1] > 0);
	io->close(io, file);
}

static void a_failed_sync_loses_what_reads_still_show(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	assert_int_equal(io_replace_file(io, "/d/f", "old", 3, 0600), 0);
	struct io_file *file = make(io, "/d/f", "new");
	io_disk_fail(place->disk, IO_SYNC, 1, EIO);
	assert_int_equal(io->sync(io, file), -EIO);
	assert_true(io_disk_failed(place->disk));
	assert_int_equal(io->sync(io, file), 0); /* and this one lies */
	expect_text(place->disk, "/d/f", "new");
	struct io_disk *crashed = io_disk_crash(place->disk, IO_FORGET, 1);
	expect_text(crashed, "/d/f", "old");
	io_disk_destroy(crashed);
	/* Written again, it is kept. */
	assert_int_equal(io->write(io, file, "new", 3, 0), 0);
	assert_int_equal(io->sync(io, file), 0);
	crashed = io_disk_crash(place->disk, IO_FORGET, 1);
	expect_text(crashed, "/d/f", "new");
	io_disk_destroy(crashed);
	io->close(io, file);
}

static void a_full_disk_refuses_growth_and_takes_overwriting(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	struct io_file *file = make(io, "/d/f", "x");
	io_disk_capacity(place->disk, 8192);
	assert_int_equal(io->write(io, file, "y", 1, 5000), 0);
	assert_int_equal(io->write(io, file, "y", 1, 9000), -ENOSPC);
	assert_int_equal(io->write(io, file, "z", 1, 0), 0);
	assert_int_equal(io->free_bytes(io, "/d"), 0);
	struct io_file *other;
	assert_int_equal(io->open(io, "/d/g", O_RDWR | O_CREAT, 0600, &other), -ENOSPC);
	assert_int_equal(io->truncate(io, file, 0), 0);
	assert_int_equal(io->free_bytes(io, "/d"), 8192);
	io->close(io, file);
}

static void chosen_syncs_are_left_out(void **state)
{
	struct place *place = *state;
	struct io *io = place->io;
	io_disk_skip(place->disk, IO_SYNC, IO_SKIP_ALL, "*/f*");
	assert_int_equal(io_replace_file(io, "/d/f", "text", 4, 0600), 0);
	assert_int_equal(io_replace_file(io, "/d/g", "text", 4, 0600), 0);
	assert_int_equal(io_disk_skipped(place->disk), 1);
	struct io_disk *crashed = io_disk_crash(place->disk, IO_FORGET, 1);
	expect_text(crashed, "/d/f", "");
	expect_text(crashed, "/d/g", "text");
	io_disk_destroy(crashed);
}

int main(void)
{
#define BOTH(name)                                                                                 \
	{ #name " (real)", name, real_setup, teardown, NULL },                                     \
	{                                                                                          \
		#name " (disk)", name, disk_setup, teardown, NULL                                  \
	}
#define DISK(name) cmocka_unit_test_setup_teardown(name, disk_setup, teardown)
	const struct CMUnitTest tests[] = {
		BOTH(files_are_written_read_cut_and_grown),
		BOTH(names_come_go_and_are_listed_in_order),
		BOTH(a_file_stays_readable_after_its_name_is_gone),
		DISK(a_crash_forgets_contents_and_names_that_were_not_synced),
		DISK(a_crash_may_keep_any_part_in_any_order),
		DISK(a_failed_sync_loses_what_reads_still_show),
		DISK(a_full_disk_refuses_growth_and_takes_overwriting),
		DISK(chosen_syncs_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
