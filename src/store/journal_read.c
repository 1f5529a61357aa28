/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading, also of what is damaged. Segments are scanned in order; where the scan skips a sequence, stops
 * or goes back, each missing one is asked for by itself, and what does not come is reported with its number.
 * Nothing is handed over whose guard does not hold.
 *
 * The chain, when it is verified: each record's hash must follow from the one before it. Behind a damaged
 * record two candidates for "the one before" are left, the stored hash and the one computed from its text: one of
 * them is what was written, whichever part of the row was hit. Behind a missing record there is none, and the
 * chain is taken up again with the next record's own hash, which its guard covers.
 *
 * Rows are read in portions, so that no read transaction holds the writer's log for long.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "store/guard.h"
#include "store/journal_internal.h"

enum { PORTION = 4096 };

static void report(struct reading *r, uint64_t seq, const char *what)
{
	if (r->reader->damaged)
		r->reader->damaged(r->reader->context, seq, what);
}

static void expect_only(struct reading *r, const struct digest *hash)
{
	r->candidates = 1;
	r->candidate[0] = *hash;
}

static void row_damaged(struct reading *r, const struct segment_row *row)
{
	struct digest stored = row->hash;
	bool known = r->candidates > 0;
	struct digest computed = known ? record_hash(&r->candidate[0], &row->record) : stored;
	expect_only(r, &stored);
	if (known) {
		r->candidates = 2;
		r->candidate[1] = computed;
	}
	quarantine_row(r->journal, row);
	report(r, row->record.seq, row->wrong);
}

int reading_row(struct reading *r, const struct segment_row *row)
{
	r->next = row->record.seq + 1;
	if (!row->good) {
		row_damaged(r, row);
		return 0;
	}
	bool follows = r->candidates == 0 || !r->verify;
	for (unsigned i = 0; i < r->candidates && !follows; i++) {
		struct digest expected = record_hash(&r->candidate[i], &row->record);
		follows = digest_equal(&expected, &row->hash);
	}
	expect_only(r, &row->hash);
	if (!follows) {
		quarantine_row(r->journal, row);
		report(r, row->record.seq, "its hash does not follow from the record before it");
		return 0;
	}
	int result = r->reader->take(r->reader->context, &row->record, &row->hash);
	r->left--;
	return result;
}

void reading_missing(struct reading *r, const char *what)
{
	report(r, r->next, what);
	r->candidates = 0;
	r->next++;
}

/* Each sequence before `end` by itself. */
static int take_missing(struct reading *r, struct segment *segment, uint64_t end)
{
	struct segment_row row;
	struct err err;
	while (r->next < end && r->left) {
		uint64_t seq = r->next;
		int got = segment_get(segment, seq, &row, &err);
		if (got == 0 && row.record.seq == seq) {
			int result = reading_row(r, &row);
			if (result != 0)
				return result;
			continue;
		}
		reading_missing(r, got < 0 ? "it cannot be read" : "it is missing");
	}
	return 0;
}

/* Sequences next..to of one segment, at most PORTION of them. */
static int take_portion(struct reading *r, struct segment *segment, uint64_t to, struct err *err)
{
	struct segment_row row;
	struct err ignored;
	int result = 0;
	int got = segment_scan(segment, r->next, to, &ignored);
	while (got == 0 && r->left) {
		got = segment_next(segment, &row, &ignored);
		if (got != 0)
			break;
		if (row.record.seq < r->next || row.record.seq > to)
			continue; /* a damaged page out of its place */
		result = take_missing(r, segment, row.record.seq);
		if (result == 0 && r->left && r->next == row.record.seq)
			result = reading_row(r, &row);
		if (result != 0)
			break;
	}
	segment_scan_end(segment);
	if (result != 0)
		return result;
	if (got == SEGMENT_BUSY)
		return err_set(err, ERR_UNAVAILABLE, "%s is locked by another program: try again",
			       segment_path(segment));
	return take_missing(r, segment, to + 1);
}

static int take_segment(struct reading *r, const struct manifest_segment *entry, uint64_t last,
			struct err *err)
{
	struct segment *segment;
	struct err why;
	int result = journal_segment(r->journal, entry->number, &segment, &why);
	if (result < 0) {
		char what[ERR_TEXT_MAX + 64];
		snprintf(what, sizeof(what), "its segment cannot be read: %s", why.text);
		for (; r->next <= last; r->next++)
			report(r, r->next, what);
		r->candidates = 0;
		return 0;
	}
	while (r->next <= last && r->left && result == 0) {
		uint64_t to = last - r->next >= PORTION ? r->next + PORTION - 1 : last;
		/* The reader may have used the cache for another segment. */
		result = journal_segment(r->journal, entry->number, &segment, err);
		if (result == 0)
			result = take_portion(r, segment, to, err);
	}
	return result;
}

/* What is known of the hash before the first record to be read. */
static int find_start(struct reading *r, uint32_t index, struct err *err)
{
	const struct manifest_segment *entry = &r->journal->manifest.segments[index];
	struct segment *segment;
	struct segment_row row;
	struct err ignored;
	r->candidates = 0;
	if (r->next <= entry->first) {
		struct digest prev = journal_prev_of(r->journal, index);
		expect_only(r, &prev);
		return 0;
	}
	if (journal_segment(r->journal, entry->number, &segment, &ignored) == 0) {
		int got = segment_get(segment, r->next - 1, &row, &ignored);
		if (got == SEGMENT_BUSY)
			return err_set(err, ERR_UNAVAILABLE,
				       "%s is locked by another program: try again",
				       segment_path(segment));
		if (got == 0 && row.good)
			expect_only(r, &row.hash);
	}
	return 0;
}

/* The last sequence to be expected now. */
static int find_last(struct reading *r, const struct journal_head *head, bool has_head,
		     uint64_t *ret)
{
	struct journal *journal = r->journal;
	const struct manifest_segment *entry = manifest_last(&journal->manifest);
	*ret = journal->state.last_seq;
	if (!journal->read_only)
		return 0;
	struct segment *segment;
	struct err ignored;
	uint64_t last = entry->first - 1, good, end;
	if (journal_segment(journal, entry->number, &segment, &ignored) == 0 &&
	    segment_end(segment, &good, &end, &ignored) == 0 && end > last)
		last = has_head && head->seq >= good ? good : end;
	*ret = has_head && head->seq > last ? head->seq : last;
	return 0;
}

int journal_read(struct journal *journal, uint64_t from, uint64_t limit, bool verify,
		 const struct journal_reader *reader, struct err *err)
{
	struct reading r = { .journal = journal,
			     .reader = reader,
			     .next = from ? from : 1,
			     .left = limit ? limit : UINT64_MAX,
			     .verify = verify };
	struct journal_head head;
	bool has_head = false, started = false;
	uint64_t last;
	if (journal->postgres)
		return remote_read(&r, err);
	int result = journal->read_only ? journal_refresh(journal, &head, &has_head, err) : 0;
	if (result == 0)
		result = find_last(&r, &head, has_head, &last);
	for (uint32_t i = 0; i < journal->manifest.count && result == 0 && r.left; i++) {
		const struct manifest_segment entry = journal->manifest.segments[i];
		uint64_t end = entry.state == SEGMENT_OPEN ? last : entry.last;
		if (end < r.next)
			continue;
		if (!started)
			result = find_start(&r, i, err);
		started = true;
		if (result == 0)
			result = take_segment(&r, &entry, end, err);
		/* At a seam the manifest says what the last hash was. */
		if (entry.state != SEGMENT_OPEN && r.next == end + 1) {
			if (verify && r.candidates == 1 &&
			    !digest_equal(&r.candidate[0], &entry.hash))
				report(&r, end,
				       "its hash is not the one that the manifest has for it");
			expect_only(&r, &entry.hash);
		}
	}
	return result;
}

int journal_segment(struct journal *journal, uint32_t number, struct segment **ret, struct err *err)
{
	const struct manifest_segment *entry = &journal->manifest.segments[number - 1];
	if (entry->state == SEGMENT_OPEN && journal->open) {
		*ret = journal->open;
		return 0;
	}
	struct cached_segment *oldest = &journal->cache[0];
	for (size_t i = 0; i < SEALED_CACHE; i++) {
		struct cached_segment *at = &journal->cache[i];
		if (at->segment && at->number == number) {
			at->used = ++journal->cache_clock;
			*ret = at->segment;
			return 0;
		}
		if (at->used < oldest->used)
			oldest = at;
	}
	char path[PATH_MAX];
	journal_segment_file(journal, number, "", path);
	struct segment *segment;
	int result = segment_open(journal->io, path, SEGMENT_READ_ONLY, &segment, err);
	if (result < 0 && journal->read_only && entry->state != SEGMENT_OPEN)
		result = segment_open(journal->io, path, SEGMENT_IMMUTABLE, &segment, err);
	if (result < 0)
		return result;
	segment_drop(oldest->segment);
	*oldest = (struct cached_segment){ .number = number,
					   .segment = segment,
					   .used = ++journal->cache_clock };
	*ret = segment;
	return 0;
}

void journal_cache_drop(struct journal *journal, uint32_t number)
{
	for (size_t i = 0; i < SEALED_CACHE; i++) {
		struct cached_segment *at = &journal->cache[i];
		if (!at->segment || (number && at->number != number))
			continue;
		segment_drop(at->segment);
		*at = (struct cached_segment){ 0 };
	}
}

int journal_refresh(struct journal *journal, struct journal_head *ret_head, bool *ret_has_head,
		    struct err *err)
{
	/* In this order: what the head says is in a segment that a manifest read later knows. */
	*ret_has_head = head_read(journal, ret_head) == 0;
	struct manifest now;
	char path[PATH_MAX];
	manifest_init(&now);
	journal_file(journal, "manifest", path);
	int result = manifest_load(journal->io, path, &now, err);
	if (result != 0) {
		manifest_deinit(&now);
		return result < 0 ? result : 0; /* the one known from opening serves */
	}
	if (memcmp(now.id, journal->manifest.id, JOURNAL_ID_BYTES) != 0) {
		manifest_deinit(&now);
		return err_set(err, ERR_CONFLICT,
			       "the journal of \"%s\" was replaced by another one: open it again",
			       journal->folder);
	}
	manifest_deinit(&journal->manifest);
	journal->manifest = now;
	return 0;
}
