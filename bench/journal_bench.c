/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a durable append costs, beside what the disk itself needs for the same bytes.
 *
 *	journal_bench [FOLDER] [SECONDS]
 *
 * Each line is one kind of work for SECONDS (3): median, P99 and P99.9 of one call and calls per second. The disk's own
 * lines write the bytes of one record or of a group into a file that is there already and call fdatasync.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "store/journal.h"

enum { RECORD_BYTES = 600, GROUP = 64, BODY_BYTES = 700, CALLS_MAX = 1 << 20 };

static int64_t samples[CALLS_MAX];

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

static void print_line(const char *what, size_t calls, int64_t total_ns, size_t records)
{
	qsort(samples, calls, sizeof(*samples), compare);
	printf("%-40s %8" PRId64 " %8" PRId64 " %8" PRId64 " us  %8.0f calls/s  %9.0f records/s\n",
	       what, samples[calls / 2] / 1000, samples[calls * 99 / 100] / 1000,
	       samples[calls * 999 / 1000] / 1000, (double)calls * 1e9 / (double)total_ns,
	       (double)calls * (double)records * 1e9 / (double)total_ns);
}

static void bench_disk(const char *folder, const char *what, size_t bytes, bool filled,
		       int64_t seconds)
{
	char path[512];
	static char data[GROUP * RECORD_BYTES];
	memset(data, 'x', sizeof(data));
	snprintf(path, sizeof(path), "%s/disk", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	int64_t room = 8 << 20;
	for (int64_t at = 0; filled && at < room; at += (int64_t)sizeof(data))
		CHECK(pwrite(fd, data, sizeof(data), at) == (ssize_t)sizeof(data));
	CHECK(fsync(fd) == 0);
	size_t calls = 0;
	int64_t start = clock_mono_ns(), now = start, at = 0;
	while (calls < CALLS_MAX && now - start < seconds * 1000000000) {
		int64_t before = now;
		CHECK(pwrite(fd, data, bytes, at) == (ssize_t)bytes);
		CHECK(fdatasync(fd) == 0);
		at += (int64_t)bytes;
		if (filled && at + (int64_t)bytes > room)
			at = 0;
		now = clock_mono_ns();
		samples[calls++] = now - before;
	}
	print_line(what, calls, now - start, 1);
	close(fd);
	unlink(path);
}

static void bench_journal(const char *folder, const char *what, size_t group, bool bodies,
			  int64_t seconds)
{
	char path[512];
	static char text[RECORD_BYTES], body[BODY_BYTES];
	struct journal *journal;
	struct err err;
	struct record records[GROUP];
	struct blob blobs[GROUP];
	snprintf(path, sizeof(path), "%s/%s", folder, what);
	for (char *c = path + strlen(folder) + 1; *c; c++)
		if (*c == ' ' || *c == ',')
			*c = '-';
	struct journal_options options = { .folder = path, .create = true };
	if (journal_open(&options, &journal, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	memset(text, 'x', sizeof(text));
	uint64_t mix = 1;
	for (size_t i = 0; i < sizeof(body); i++) {
		mix = mix * 6364136223846793005u + 1442695040888963407u;
		body[i] = (char)(mix >> 56);
	}
	size_t calls = 0;
	int64_t start = clock_mono_ns(), now = start;
	while (calls < CALLS_MAX && now - start < seconds * 1000000000) {
		for (size_t i = 0; i < group; i++) {
			records[i] = (struct record){ .time_ms = 1700000000000,
						      .kind = 1,
						      .text = text,
						      .size = sizeof(text) };
			/* A name of its own for each; what is in it does not matter here. */
			uint64_t number = calls * GROUP + i;
			blobs[i] = (struct blob){ .digest = digest_of(&number, sizeof(number)),
						  .data = body,
						  .size = sizeof(body) };
		}
		int64_t before = clock_mono_ns();
		if (journal_append(journal, records, group, blobs, bodies ? group : 0, false,
				   &err) != 0) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		now = clock_mono_ns();
		samples[calls++] = now - before;
	}
	print_line(what, calls, now - start, group);
	struct journal_state state;
	journal_state(journal, &state);
	journal_close(journal);
	int64_t before = clock_mono_ns();
	options.create = false;
	if (journal_open(&options, &journal, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	printf("%-40s %8" PRId64 " us\n", "  opening it again", (clock_mono_ns() - before) / 1000);
	journal_close(journal);
}

static int nothing(void *context, const struct record *record, const struct digest *hash)
{
	(void)context;
	(void)record;
	(void)hash;
	return 0;
}

static void bench_read(const char *folder, const char *what)
{
	char path[512];
	struct journal *journal;
	struct err err;
	struct journal_state state;
	snprintf(path, sizeof(path), "%s/%s", folder, what);
	struct journal_options options = { .folder = path, .read_only = true };
	if (journal_open(&options, &journal, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	journal_state(journal, &state);
	struct journal_reader reader = { NULL, nothing, NULL };
	int64_t before = clock_mono_ns();
	if (journal_read(journal, 1, 0, true, &reader, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	double ns = (double)(clock_mono_ns() - before);
	printf("%-40s %8.2f us per record, %" PRIu64 " records\n", "reading and verifying",
	       ns / 1000 / (double)state.last_seq, state.last_seq);
	journal_close(journal);
}

int main(int argc, char **argv)
{
	char folder[] = "./journal-bench-XXXXXX";
	char path[300];
	int64_t seconds = argc > 2 ? strtoll(argv[2], NULL, 10) : 3;
	CHECK(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s", argc > 1 ? argv[1] : folder);
	printf("%-40s %8s %8s %8s\n", "", "median", "P99", "P99.9");
	bench_disk(path, "disk, 600 bytes behind the end", RECORD_BYTES, false, seconds);
	bench_disk(path, "disk, 600 bytes over written ones", RECORD_BYTES, true, seconds);
	bench_disk(path, "disk, 64 x 600 bytes over written ones", GROUP * RECORD_BYTES, true,
		   seconds);
	bench_journal(path, "journal 1", 1, false, seconds);
	bench_journal(path, "journal 64", GROUP, false, seconds);
	bench_journal(path, "journal 64 with bodies of 700", GROUP, true, seconds);
	bench_read(path, "journal-64");
	return 0;
}
