/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a journal long: jobs like the one in it, some of them running, as the daemon would have written them.
 *
 *	journal_fill DATA JOBS RUNNING NODES GPUS
 *
 * DATA is a data folder whose daemon has ended, with one held job (the pattern: same user, queue, body), no attempt and
 * NODES nodes of GPUS GPUs. Jobs 2 to JOBS are submitted; then the jobs from 2 on get one GPU each until RUNNING are placed,
 * ready, released and started. No snapshot is written, so the next start goes through all of it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "store/journal.h"

enum { SUBMITTED = 30, PLACED = 40, RELEASED = 41, READY = 47, STARTED = 48, GROUP = 500 };

struct fill {
	struct journal *journal;
	char *pattern; /* text of the submission of job 1 */
	struct buf texts;
	struct record records[GROUP];
	size_t starts[GROUP + 1], count;
};

static int take_pattern(void *context, const struct record *record, const struct digest *hash)
{
	struct fill *fill = context;
	(void)hash;
	if (record->kind == SUBMITTED && !fill->pattern) {
		fill->pattern = strndup(record->text, record->size);
		CHECK(fill->pattern);
	}
	return 0;
}

static void take_damage(void *context, uint64_t seq, const char *what)
{
	(void)context;
	fprintf(stderr, "journal_fill: record %" PRIu64 ": %s\n", seq, what);
	exit(1);
}

static void flush(struct fill *fill)
{
	struct err err;
	for (size_t i = 0; i < fill->count; i++) {
		fill->records[i].text = fill->texts.data + fill->starts[i];
		fill->records[i].size = fill->starts[i + 1] - fill->starts[i];
	}
	if (fill->count &&
	    journal_append(fill->journal, fill->records, fill->count, NULL, 0, false, &err) != 0) {
		fprintf(stderr, "journal_fill: %s\n", err.text);
		exit(1);
	}
	fill->count = 0;
	buf_clear(&fill->texts);
}

/* The text was added to fill->texts. */
static void add(struct fill *fill, uint32_t kind, bool must_understand)
{
	fill->records[fill->count++] = (struct record){ .time_ms = clock_wall_ms(),
							.kind = kind,
							.must_understand = must_understand };
	fill->starts[fill->count] = fill->texts.size;
	if (fill->count == GROUP)
		flush(fill);
	fill->starts[0] = 0;
}

/* Takes a member out of the pattern. */
static void pattern_drop(char *pattern, const char *member)
{
	char *at = strstr(pattern, member), *value = at ? at + strlen(member) : NULL;
	if (!at)
		return;
	char *end = *value == '"' ? strchr(value + 1, '"') + 1 : value + strcspn(value, ",}");
	memmove(at, end, strlen(end) + 1);
}

/* The pattern with another number. */
static void submit(struct fill *fill, uint64_t job)
{
	const char *number = strstr(fill->pattern, "\"job\":1,");
	CHECK(number);
	buf_add(&fill->texts, fill->pattern, (size_t)(number - fill->pattern));
	buf_addf(&fill->texts, "\"job\":%" PRIu64 ",", job);
	buf_adds(&fill->texts, number + 8);
	add(fill, SUBMITTED, true);
}

static void run(struct fill *fill, uint64_t attempt, uint64_t gpus)
{
	uint64_t place = attempt - 1;
	buf_addf(&fill->texts,
		 "{\"job\":%" PRIu64 ",\"attempt\":%" PRIu64 ",\"nodes\":[%" PRIu64
		 "],\"masks\":[%" PRIu64 "]}",
		 attempt + 1, attempt, 1 + place / gpus, UINT64_C(1) << (place % gpus));
	add(fill, PLACED, true);
	buf_addf(&fill->texts, "{\"attempt\":%" PRIu64 "}", attempt);
	add(fill, READY, true);
	buf_addf(&fill->texts, "{\"attempt\":%" PRIu64 "}", attempt);
	add(fill, RELEASED, true);
	buf_addf(&fill->texts, "{\"attempt\":%" PRIu64 ",\"at_ms\":%" PRId64 "}", attempt,
		 clock_wall_ms());
	add(fill, STARTED, true);
}

int main(int argc, char **argv)
{
	struct fill fill = { 0 };
	struct err err;
	if (argc != 6) {
		fprintf(stderr, "usage: journal_fill DATA JOBS RUNNING NODES GPUS\n");
		return 2;
	}
	uint64_t jobs = strtoull(argv[2], NULL, 10), running = strtoull(argv[3], NULL, 10),
		 nodes = strtoull(argv[4], NULL, 10), gpus = strtoull(argv[5], NULL, 10);
	CHECK(gpus >= 1 && gpus <= 64 && running <= nodes * gpus && running < jobs);
	struct journal_options options = { .folder = argv[1] };
	struct journal_reader reader = { &fill, take_pattern, take_damage };
	if (journal_open(&options, &fill.journal, &err) < 0 ||
	    journal_read(fill.journal, 1, 0, true, &reader, &err) < 0) {
		fprintf(stderr, "journal_fill: %s\n", err.text);
		return 1;
	}
	CHECK(fill.pattern);
	pattern_drop(fill.pattern, ",\"client_key\":"); /* must be unlike any other */
	pattern_drop(fill.pattern, ",\"held\":");
	for (uint64_t job = 2; job <= jobs; job++)
		submit(&fill, job);
	for (uint64_t attempt = 1; attempt <= running; attempt++)
		run(&fill, attempt, gpus);
	flush(&fill);
	journal_close(fill.journal);
	free(fill.pattern);
	buf_deinit(&fill.texts);
	return 0;
}
