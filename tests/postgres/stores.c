/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	stores ADDRESS FOLDER SEED OPERATIONS
 *
 * Both stores under the same operations, drawn from the seed: groups of records and bodies appended, read back from anywhere, erased,
 * refused; writers closed and opened again. After each operation both must have said the same, and at the end hold the same history, byte
 * for byte. Prints what it did; 1 and the operation when they differ.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "store/journal.h"

enum { GROUP_MAX = 24, BODIES_MAX = 3, TEXT_MAX = 3000, KEPT = 64 };

static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((state >> 33) % below);
}

static struct pair {
	struct journal_options options[2];
	struct journal *journals[2];
	uint64_t records, bodies, erased, refused, opened, read;
	struct digest kept[KEPT]; /* names of some bodies, also erased ones */
	uint32_t kept_count;
	int64_t time_ms;
	uint32_t operation;
} pair;

static _Noreturn void differ(const char *what)
{
	fprintf(stderr, "operation %u: the stores differ: %s\n", pair.operation, what);
	exit(1);
}

static void both_open(void)
{
	struct err err;

	for (int i = 0; i < 2; i++)
		if (journal_open(&pair.options[i], &pair.journals[i], &err) < 0) {
			fprintf(stderr, "can't open store %d: %s\n", i, err.text);
			exit(2);
		}
}

static void same_state(void)
{
	struct journal_state a, b;

	journal_state(pair.journals[0], &a);
	journal_state(pair.journals[1], &b);
	if (a.last_seq != b.last_seq || !digest_equal(&a.last_hash, &b.last_hash) ||
	    a.last_time_ms != b.last_time_ms || a.failed != b.failed || a.set_aside || b.set_aside)
		differ("state");
}

/* Bytes of all values, NUL too: the journal does not look into them. */
static char *text_make(size_t size)
{
	char *text = malloc(size + 1);

	CHECK(text);
	for (size_t i = 0; i < size; i++)
		text[i] = (char)draw(256);
	return text;
}

static void append(void)
{
	struct record records[GROUP_MAX];
	struct blob blobs[BODIES_MAX];
	const uint32_t count = draw(GROUP_MAX + 1), blob_count = draw(4) ? 0 : draw(BODIES_MAX + 1);
	int rc[2];

	for (uint32_t i = 0; i < count; i++) {
		const size_t size = draw(40) ? draw(300) : draw(TEXT_MAX);

		pair.time_ms += draw(2000);
		records[i] = (struct record){ .time_ms = pair.time_ms,
					      .kind = draw(100),
					      .must_understand = draw(2),
					      .text = text_make(size),
					      .size = size };
	}
	for (uint32_t i = 0; i < blob_count; i++) {
		const size_t size = draw(TEXT_MAX);
		char *data = text_make(size);

		blobs[i] = (struct blob){ .digest = digest_of(data, size),
					  .data = data,
					  .size = size };
		pair.kept[pair.kept_count++ % KEPT] = blobs[i].digest;
	}
	for (int i = 0; i < 2; i++) {
		struct err err = { 0 };

		for (uint32_t k = 0; k < count; k++)
			records[k].seq = 0;
		rc[i] = journal_append(pair.journals[i], records, count, blobs, blob_count, false,
				       &err);
		if (rc[i] != 0)
			fprintf(stderr, "store %d: %s\n", i, err.text);
	}
	if (rc[0] != 0 || rc[1] != 0)
		differ("an append was refused");
	pair.records += count;
	pair.bodies += blob_count;
	for (uint32_t i = 0; i < count; i++)
		free((void *)(uintptr_t)records[i].text);
	for (uint32_t i = 0; i < blob_count; i++)
		free((void *)(uintptr_t)blobs[i].data);
}

/* Too long, or out of order: both say the same and go on. */
static void refuse(void)
{
	static char large[RECORD_TEXT_MAX + 1];
	struct journal_state now;
	struct record record = { .time_ms = pair.time_ms, .kind = 1, .text = large, .size = 3 };
	struct err err[2];

	journal_state(pair.journals[0], &now);
	if (draw(2))
		record.size = sizeof large;
	else
		record.seq = now.last_seq + 2 + draw(5);
	for (int i = 0; i < 2; i++)
		if (journal_append(pair.journals[i], &record, 1, NULL, 0, false, &err[i]) >= 0)
			differ("what must be refused was taken");
	if (err[0].code != err[1].code || strcmp(err[0].text, err[1].text) != 0)
		differ("the refusal");
	pair.refused++;
}

struct history {
	struct digest sum; /* of all that was handed over */
	uint64_t count;
	const struct journal_reader *reader;
};

static int take(void *context, const struct record *record, const struct digest *hash)
{
	struct history *h = context;
	const int64_t numbers[] = { (int64_t)record->seq, record->time_ms, record->kind,
				    record->must_understand, (int64_t)record->size };

	h->sum = digest_of_two(h->sum.bytes, DIGEST_BYTES, numbers, sizeof numbers);
	h->sum = digest_of_two(h->sum.bytes, DIGEST_BYTES, record->text, record->size);
	h->sum = digest_of_two(h->sum.bytes, DIGEST_BYTES, hash->bytes, DIGEST_BYTES);
	h->count++;
	return 0;
}

static void damaged(void *context, uint64_t seq, const char *what)
{
	(void)context;
	fprintf(stderr, "record %llu: %s\n", (unsigned long long)seq, what);
	differ("a record is damaged");
}

/* By the writers themselves, or by readers of their own. */
static void read_back(uint64_t from, uint64_t limit, bool verify, bool by_readers)
{
	struct history h[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		const struct journal_reader reader = { .context = &h[i],
						       .take = take,
						       .damaged = damaged };
		struct journal_options options = pair.options[i];
		struct journal *journal = pair.journals[i];
		struct err err;

		options.read_only = true;
		options.address = NULL;
		if ((by_readers && journal_open(&options, &journal, &err) < 0) ||
		    journal_read(journal, from, limit, verify, &reader, &err) != 0) {
			fprintf(stderr, "store %d: %s\n", i, err.text);
			differ("reading failed");
		}
		if (by_readers)
			journal_close(journal);
	}
	if (h[0].count != h[1].count || !digest_equal(&h[0].sum, &h[1].sum))
		differ("what was read");
	pair.read += h[0].count;
}

static void body(bool erase)
{
	const struct digest *name;
	void *data[2] = { NULL };
	size_t size[2] = { 0 };
	struct err err[2] = { 0 };
	int rc[2];

	if (!pair.kept_count)
		return;
	name = &pair.kept[draw(pair.kept_count < KEPT ? pair.kept_count : KEPT)];
	for (int i = 0; i < 2; i++)
		rc[i] = erase ? journal_blob_erase(pair.journals[i], name, &err[i])
			      : journal_blob(pair.journals[i], name, &data[i], &size[i], &err[i]);
	/* In files the name of an erased body stays, so that erasing it again is not refused. */
	if (!erase && (rc[0] != rc[1] || err[0].code != err[1].code || size[0] != size[1] ||
		       (rc[0] == 0 && memcmp(data[0], data[1], size[0]) != 0)))
		differ("a body");
	pair.erased += erase && rc[0] == 0;
	free(data[0]);
	free(data[1]);
}

static void operation(void)
{
	const uint32_t what = draw(1000);
	struct journal_state now;

	if (what < 600) {
		append();
	} else if (what < 700) {
		refuse();
	} else if (what < 850) {
		body(false);
	} else if (what < 880) {
		body(true);
	} else if (what < 995) {
		journal_state(pair.journals[0], &now);
		read_back(now.last_seq ? 1 + draw((uint32_t)now.last_seq) : 1, 1 + draw(50),
			  draw(2), draw(20) == 0);
	} else if (what < 998) {
		struct err err;

		if (journal_seal(pair.journals[0], &err) != 0 ||
		    journal_seal(pair.journals[1], &err) != 0)
			differ("sealing");
	} else {
		for (int i = 0; i < 2; i++)
			journal_close(pair.journals[i]);
		both_open();
		pair.opened++;
	}
	same_state();
}

int main(int argc, char **argv)
{
	char folders[2][4096];
	int64_t seed, count;
	struct err err;

	if (argc != 5 || parse_int(argv[3], 0, INT64_MAX, &seed, &err) < 0 ||
	    parse_int(argv[4], 1, UINT32_MAX, &count, &err) < 0) {
		fprintf(stderr, "usage: stores ADDRESS FOLDER SEED OPERATIONS\n");
		return 2;
	}
	state = (uint64_t)seed;
	pair.time_ms = 1700000000000;
	for (int i = 0; i < 2; i++) {
		snprintf(folders[i], sizeof folders[i], "%s/%s", argv[2], i ? "database" : "files");
		pair.options[i] = (struct journal_options){ .folder = folders[i],
							    .create = true,
							    .address = i ? argv[1] : NULL,
							    .segment_bytes = 4 << 20 };
	}
	both_open();
	for (pair.operation = 1; pair.operation <= (uint32_t)count; pair.operation++)
		operation();
	read_back(1, 0, true, false);
	read_back(1, 0, true, true);
	printf("%u operations: %llu records, %llu bodies, %llu erased, %llu refused, %llu read, %llu times opened again\n",
	       pair.operation - 1, (unsigned long long)pair.records,
	       (unsigned long long)pair.bodies, (unsigned long long)pair.erased,
	       (unsigned long long)pair.refused, (unsigned long long)pair.read,
	       (unsigned long long)pair.opened);
	for (int i = 0; i < 2; i++)
		journal_close(pair.journals[i]);
	return 0;
}
