/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "engine/task_log.h"

enum { CAP = TASK_LOG_CAP_MIN };

struct place {
	char logs[64];
	int folder;
};

static int set_up(void **state)
{
	static struct place place;

	snprintf(place.logs, sizeof(place.logs), "/tmp/fairlead-log-XXXXXX");
	assert_non_null(mkdtemp(place.logs));
	place.folder = task_log_folder(place.logs, 7, 3, NULL);
	assert_true(place.folder >= 0);
	*state = &place;
	return 0;
}

static int tear_down(void **state)
{
	struct place *place = *state;
	char path[128];
	struct dirent *entry;
	DIR *dir = fdopendir(place->folder);

	while ((entry = readdir(dir)))
		unlinkat(place->folder, entry->d_name, 0);
	closedir(dir);
	snprintf(path, sizeof(path), "%s/7/3", place->logs);
	rmdir(path);
	snprintf(path, sizeof(path), "%s/7", place->logs);
	rmdir(path);
	return rmdir(place->logs);
}

/* Each byte of the stream follows from its offset, so what is read back can be judged at any place. */
static char byte_at(uint64_t offset)
{
	return (char)('!' + (offset * 31 + offset / 251) % 90);
}

static void write_stream(struct task_log *log, uint64_t size, size_t piece)
{
	char data[8192];

	for (uint64_t done = 0; done < size;) {
		size_t part = size - done < piece ? (size_t)(size - done) : piece;

		for (size_t i = 0; i < part; i++)
			data[i] = byte_at(log->offset + i);
		task_log_write(log, data, part);
		done += part;
	}
}

/* Reads all from an offset; returns bytes read, checks each. */
static uint64_t read_stream(struct place *place, uint64_t offset, uint64_t *ret_end,
			    unsigned *ret_gaps)
{
	char data[5000];
	uint64_t total = 0;
	struct task_log_piece piece;

	*ret_gaps = 0;
	for (;;) {
		assert_int_equal(task_log_read(place->logs, 7, 3, 0, TASK_STDOUT, offset, data,
					       sizeof(data), &piece, NULL),
				 0);
		*ret_end = piece.end;
		if (piece.size == 0)
			return total;
		*ret_gaps += piece.offset != offset;
		for (size_t i = 0; i < piece.size; i++)
			assert_int_equal(data[i], byte_at(piece.offset + i));
		total += piece.size;
		offset = piece.offset + piece.size;
	}
}

static int64_t bytes_on_disk(struct place *place)
{
	int64_t sum = 0;
	struct dirent *entry;
	DIR *dir = fdopendir(openat(place->folder, ".", O_RDONLY | O_DIRECTORY));
	struct stat st;

	while ((entry = readdir(dir)))
		if (fstatat(place->folder, entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			sum += st.st_size;
	closedir(dir);
	return sum;
}

static void a_short_log_is_read_back_whole(void **state)
{
	struct place *place = *state;
	struct task_log log;
	uint64_t end;
	unsigned gaps;

	task_log_init(&log, place->folder, 0, TASK_STDOUT, CAP);
	write_stream(&log, 3000, 100);
	task_log_deinit(&log);
	assert_int_equal(read_stream(place, 0, &end, &gaps), 3000);
	assert_int_equal(read_stream(place, 2990, &end, &gaps), 10);
	assert_int_equal(read_stream(place, 3000, &end, &gaps), 0);
	assert_int_equal(end, 3000);
}

static void a_log_that_is_not_there_yet_is_empty(void **state)
{
	struct place *place = *state;
	struct task_log_piece piece;
	char data[10];

	assert_int_equal(
		task_log_read(place->logs, 7, 3, 9, TASK_STDERR, 5, data, 10, &piece, NULL), 0);
	assert_int_equal(piece.size, 0);
	assert_int_equal(
		task_log_read(place->logs, 8, 1, 0, TASK_STDOUT, 0, data, 10, &piece, NULL), 0);
	assert_int_equal(piece.size, 0);
}

/* At every size around each limit: beginning and end are kept, the cap holds, offsets stay true. */
static void a_long_log_keeps_head_and_tail_within_its_cap(void **state)
{
	struct place *place = *state;
	static const uint64_t sizes[] = { CAP / 4,       CAP / 4 + 1,  CAP,         CAP + 1,
					  CAP + CAP / 8, 3 * CAP + 17, 40 * CAP + 5 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct task_log log;
		uint64_t end;
		unsigned gaps;

		task_log_init(&log, place->folder, 0, TASK_STDOUT, CAP);
		write_stream(&log, sizes[i], 1777);
		task_log_deinit(&log);
		assert_true(bytes_on_disk(place) <= CAP);
		uint64_t kept = read_stream(place, 0, &end, &gaps);
		assert_int_equal(end, sizes[i]);
		assert_int_equal(gaps, sizes[i] > CAP ? 1 : 0);
		assert_int_equal(kept, bytes_on_disk(place));
		if (sizes[i] <= CAP)
			assert_int_equal(kept, sizes[i]);
		else
			assert_true(kept > CAP / 2);

		uint64_t tail;
		assert_int_equal(
			task_log_tail(place->logs, 7, 3, 0, TASK_STDOUT, 1000, &tail, NULL), 0);
		assert_int_equal(read_stream(place, tail, &end, &gaps), 1000);

		struct dirent *entry;
		DIR *dir = fdopendir(openat(place->folder, ".", O_RDONLY | O_DIRECTORY));
		while ((entry = readdir(dir)))
			unlinkat(place->folder, entry->d_name, 0);
		closedir(dir);
	}
}

static void what_cannot_be_written_leaves_a_gap_and_the_stream_goes_on(void **state)
{
	struct place *place = *state;
	struct task_log log;
	uint64_t end;
	unsigned gaps;

	task_log_init(&log, place->folder, 0, TASK_STDOUT, CAP);
	write_stream(&log, 1000, 100);
	/* The next writes fail: the file is open for reading only. */
	int real = log.fd;
	log.fd = openat(place->folder, "0.out", O_RDONLY);
	write_stream(&log, 100, 100);
	close(real);
	assert_int_equal(log.dropped, 100);
	write_stream(&log, 500, 100);
	task_log_deinit(&log);
	assert_int_equal(read_stream(place, 0, &end, &gaps), 1500);
	assert_int_equal(gaps, 1);
	assert_int_equal(end, 1600);
}

static int files_on_disk(struct place *place)
{
	int count = 0;
	struct dirent *entry;
	DIR *dir = fdopendir(openat(place->folder, ".", O_RDONLY | O_DIRECTORY));

	while ((entry = readdir(dir)))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count;
}

static void what_is_dropped_at_the_end_is_seen_as_a_gap_too(void **state)
{
	struct place *place = *state;
	struct task_log log;
	struct task_log_piece piece;
	uint64_t end, tail;
	unsigned gaps;
	char data[10];

	task_log_init(&log, place->folder, 0, TASK_STDOUT, CAP);
	log.starved = true; /* as on a disk that is full from the beginning */
	log.check_in = INT64_MAX;
	write_stream(&log, 900, 100);
	assert_int_equal(read_stream(place, 0, &end, &gaps), 0);
	assert_int_equal(end, 100); /* it moves when the space is looked at, and at the end */
	task_log_deinit(&log);
	assert_int_equal(
		task_log_read(place->logs, 7, 3, 0, TASK_STDOUT, 0, data, 10, &piece, NULL), 0);
	assert_true(piece.offset == 900 && piece.size == 0 && piece.end == 900);
	assert_int_equal(
		task_log_read(place->logs, 7, 3, 0, TASK_STDOUT, 900, data, 10, &piece, NULL), 0);
	assert_true(piece.offset == 900 && piece.size == 0);
	assert_int_equal(task_log_tail(place->logs, 7, 3, 0, TASK_STDOUT, 10, &tail, NULL), 0);
	assert_int_equal(tail, 890);
	assert_int_equal(files_on_disk(place), 1);
}

static void the_mark_of_a_gap_goes_when_the_stream_goes_on(void **state)
{
	struct place *place = *state;
	struct task_log log;
	uint64_t end;
	unsigned gaps;

	task_log_init(&log, place->folder, 0, TASK_STDOUT, CAP);
	write_stream(&log, 1000, 100);
	for (int round = 0; round < 3; round++) {
		log.starved = true;
		log.check_in = INT64_MAX;
		write_stream(&log, 300, 100);
		log.starved = false;
		write_stream(&log, 10, 10);
	}
	task_log_deinit(&log);
	assert_int_equal(read_stream(place, 0, &end, &gaps), 1030);
	assert_int_equal(gaps, 3);
	assert_int_equal(end, 1930);
	assert_int_equal(files_on_disk(place), 4);
}

static void links_are_neither_written_nor_read_through(void **state)
{
	struct place *place = *state;
	struct task_log log;
	struct task_log_piece piece;
	char data[10];

	assert_int_equal(symlinkat("/etc/passwd", place->folder, "0.out"), 0);
	assert_int_equal(
		task_log_read(place->logs, 7, 3, 0, TASK_STDOUT, 0, data, 10, &piece, NULL), 0);
	assert_int_equal(piece.size, 0);
	task_log_init(&log, place->folder, 0, TASK_STDOUT, CAP);
	task_log_write(&log, "x", 1);
	assert_int_equal(log.dropped, 1);
	task_log_deinit(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_short_log_is_read_back_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_log_that_is_not_there_yet_is_empty, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_long_log_keeps_head_and_tail_within_its_cap,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_written_leaves_a_gap_and_the_stream_goes_on, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(what_is_dropped_at_the_end_is_seen_as_a_gap_too,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_mark_of_a_gap_goes_when_the_stream_goes_on,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(links_are_neither_written_nor_read_through, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
