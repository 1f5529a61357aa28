/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this disk and processor give: fdatasync of 4 KiB written over what was written before (median, P99:
 * what a commit costs in a log whose space is there already) and appended (the file system writes its own records too), and a
 * fixed calibration loop. Every figure with a commit in it is shown beside these.	fsync_floor FOLDER
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 1000 };

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Writes and syncs 4 KiB each time, from the start of the file on. */
static int write_all(int fd, int64_t took[ROUNDS])
{
	char block[4096];
	memset(block, 'x', sizeof(block));
	for (int i = 0; i < ROUNDS; i++) {
		int64_t began = now_ns();
		if (pwrite(fd, block, sizeof(block), (off_t)i * (off_t)sizeof(block)) !=
			    (ssize_t)sizeof(block) ||
		    fdatasync(fd) != 0)
			return -1;
		took[i] = now_ns() - began;
	}
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	return 0;
}

static double loop_ms(uint64_t *ret)
{
	uint64_t value = 88172645463325252ULL;
	int64_t began = now_ns();
	for (long i = 0; i < 200000000; i++) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	*ret = value;
	return (double)(now_ns() - began) / 1e6;
}

int main(int argc, char **argv)
{
	char path[4096];
	static int64_t appended[ROUNDS], over[ROUNDS];
	snprintf(path, sizeof(path), "%s/fsync-floor", argc > 1 ? argv[1] : ".");
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return 1;
	int failed = write_all(fd, appended);
	if (!failed)
		failed = write_all(fd, over);
	close(fd);
	unlink(path);
	if (failed)
		return 1;
	uint64_t value;
	double loop = loop_ms(&value);
	printf("{\"fdatasync_median_us\":%.0f,\"fdatasync_p99_us\":%.0f,\"append_median_us\":%.0f,\"append_p99_us\":%.0f,\"loop_ms\":%.0f,\"check\":%u}\n",
	       (double)over[ROUNDS / 2] / 1e3, (double)over[ROUNDS * 99 / 100] / 1e3,
	       (double)appended[ROUNDS / 2] / 1e3, (double)appended[ROUNDS * 99 / 100] / 1e3, loop,
	       (unsigned)(value & 1));
	return 0;
}
