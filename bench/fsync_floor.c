/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this disk and processor give: fdatasync of a 4 KiB append (median, P99), and a fixed calibration loop. Every figure with
 * a commit in it is shown beside these.	fsync_floor FOLDER
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

int main(int argc, char **argv)
{
	char path[4096], block[4096];
	static int64_t took[ROUNDS];
	snprintf(path, sizeof(path), "%s/fsync-floor", argc > 1 ? argv[1] : ".");
	memset(block, 'x', sizeof(block));
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t began = now_ns();
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block) || fdatasync(fd) != 0)
			return 1;
		took[i] = now_ns() - began;
	}
	close(fd);
	unlink(path);
	qsort(took, ROUNDS, sizeof(took[0]), by_size);
	uint64_t value = 88172645463325252ULL;
	int64_t began = now_ns();
	for (long i = 0; i < 200000000; i++) {
		value ^= value << 13;
		value ^= value >> 7;
		value ^= value << 17;
	}
	double loop_ms = (double)(now_ns() - began) / 1e6;
	printf("{\"fdatasync_median_us\":%.0f,\"fdatasync_p99_us\":%.0f,\"loop_ms\":%.0f,\"check\":%u}\n",
	       (double)took[ROUNDS / 2] / 1e3, (double)took[ROUNDS * 99 / 100] / 1e3, loop_ms,
	       (unsigned)(value & 1));
	return 0;
}
