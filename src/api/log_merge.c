/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon reads while the shepherd writes, and a record stands on disk before the bytes it speaks of. So bytes are read first and the
 * records behind them: what was read of a stream can only be beyond a change that the records show by then.
 */
#include "api/log_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { WINDOW_FIRST = 64 << 10, WINDOW_GROWS = 8 };

void log_merge_init(struct log_merge *m, const char *folder, const struct log_wish *wish,
		    const uint64_t from[2])
{
	m->folder = folder;
	m->job = wish->job;
	m->attempt = wish->attempt;
	m->rank = wish->rank;
	m->record_count = 0;
	m->order_at = 0;
	for (int i = 0; i < 2; i++) {
		m->next[i] = m->cache[i].start = from[i];
		m->cache[i].size = 0;
	}
}

/* --- records --------------------------------------------------------------------------------------------------------- */

static int records_read(struct log_merge *m, struct err *err)
{
	enum { SIZE = TASK_ORDER_RECORD };
	struct task_log_piece piece;
	char *into = (char *)&m->records[m->record_count];
	const size_t room = (MERGE_RECORDS - m->record_count) * SIZE;
	size_t skip;

	if (task_log_read(m->folder, m->job, m->attempt, m->rank, TASK_ORDER, m->order_at, into,
			  room, &piece, err) < 0)
		return -(int)err->code;
	/* Behind a gap a part may begin in the middle of a record, and one may end so in front of it. */
	skip = (SIZE - piece.offset % SIZE) % SIZE;
	if (piece.size < skip + SIZE) {
		if (piece.end >= piece.offset + skip + SIZE)
			m->order_at = piece.offset + skip + (piece.size > skip ? SIZE : 0);
		return 0;
	}
	memmove(into, into + skip, piece.size - skip);
	m->record_count += (piece.size - skip) / SIZE;
	m->order_at = (piece.offset + piece.size) / SIZE * SIZE;
	return 0;
}

/* The record so many behind the current one. 0: there is none yet. */
static int record_find(struct log_merge *m, size_t ahead, uint64_t *ret, struct err *err)
{
	if (ahead >= m->record_count && m->record_count < MERGE_RECORDS && records_read(m, err) < 0)
		return -(int)err->code;
	if (ahead >= m->record_count)
		return 0;
	*ret = m->records[ahead];
	return 1;
}

static void record_drop(struct log_merge *m)
{
	m->record_count--;
	memmove(m->records, m->records + 1, m->record_count * sizeof(m->records[0]));
}

/* Where the current run ends: at the next record of its stream. UINT64_MAX: there is none yet. */
static int run_end(struct log_merge *m, enum task_stream stream, uint64_t *ret, struct err *err)
{
	enum { AHEAD = 3 };
	uint64_t record;
	int rc = 1;

	*ret = UINT64_MAX;
	for (size_t i = 1; i < AHEAD && rc > 0; i++) {
		rc = record_find(m, i, &record, err);
		if (rc > 0 && task_order_stream(record) == stream) {
			*ret = task_order_offset(record);
			return 0;
		}
	}
	return rc < 0 ? rc : 0;
}

/* --- bytes ----------------------------------------------------------------------------------------------------------- */

/* The next bytes of a stream into its cache, unless it has some. */
static int cache_fill(struct log_merge *m, enum task_stream stream, struct err *err)
{
	struct log_cache *cache = &m->cache[stream];
	struct task_log_piece piece;

	if (cache->start + cache->size > m->next[stream])
		return 0;
	if (task_log_read(m->folder, m->job, m->attempt, m->rank, stream, m->next[stream],
			  cache->data, sizeof(cache->data), &piece, err) < 0)
		return -(int)err->code;
	cache->start = piece.offset;
	cache->size = piece.size;
	return 0;
}

/* What the cache has in front of `end`. */
static bool cache_take(struct log_merge *m, enum task_stream stream, uint64_t end,
		       struct log_piece *ret)
{
	struct log_cache *cache = &m->cache[stream];
	uint64_t *next = &m->next[stream], until = cache->start + cache->size;

	if (*next >= end || until <= *next)
		return false;
	if (cache->start > *next) {
		until = cache->start < end ? cache->start : end;
		*ret = (struct log_piece){ .stream = stream,
					   .offset = until,
					   .dropped = until - *next };
	} else {
		until = until < end ? until : end;
		*ret = (struct log_piece){ .stream = stream,
					   .offset = *next,
					   .data = cache->data + (*next - cache->start),
					   .size = (size_t)(until - *next) };
	}
	*next = until;
	return true;
}

/* There is no record: it is not known which stream is next. */
static int next_without_order(struct log_merge *m, struct log_piece *ret, struct err *err)
{
	uint64_t record;
	int rc = 0;

	for (int i = 0; i < 2 && rc >= 0; i++)
		rc = cache_fill(m, (enum task_stream)i, err);
	if (rc >= 0)
		rc = record_find(m, 0, &record, err);
	if (rc != 0)
		return rc < 0 ? rc : log_merge_next(m, ret, err);
	return cache_take(m, TASK_STDOUT, UINT64_MAX, ret) ||
	       cache_take(m, TASK_STDERR, UINT64_MAX, ret);
}

/* The newest run has no more bytes. What the other stream has all the same had no record. */
static int next_unrecorded(struct log_merge *m, enum task_stream other, struct log_piece *ret,
			   struct err *err)
{
	uint64_t record;
	int rc = cache_fill(m, other, err);

	if (rc >= 0)
		rc = record_find(m, 1, &record, err);
	if (rc != 0)
		return rc < 0 ? rc : log_merge_next(m, ret, err);
	return cache_take(m, other, UINT64_MAX, ret);
}

int log_merge_next(struct log_merge *m, struct log_piece *ret, struct err *err)
{
	for (;;) {
		uint64_t record, unused, end;
		enum task_stream stream;
		int rc = record_find(m, 0, &record, err), over;

		if (rc <= 0)
			return rc < 0 ? rc : next_without_order(m, ret, err);
		stream = task_order_stream(record);
		over = record_find(m, 1, &unused, err); /* nothing is added to this run */
		rc = over < 0 ? over : cache_fill(m, stream, err);
		if (rc >= 0)
			rc = run_end(m, stream, &end, err);
		if (rc < 0)
			return rc;
		if (cache_take(m, stream, end, ret))
			return 1;
		if (over || m->next[stream] >= end)
			record_drop(m);
		else
			return next_unrecorded(m, stream == TASK_STDOUT ? TASK_STDERR : TASK_STDOUT,
					       ret, err);
	}
}

/* --- the last lines -------------------------------------------------------------------------------------------------- */

struct count {
	bool whole[2]; /* a line of this stream has begun where it is known */
	bool is_open[2]; /* text follows its last line end */
	uint64_t at[2]; /* where the line of each stream begins */
	uint64_t from[2]; /* the same where the counting began */
	uint64_t lines;
};

/* True when `stop` lines are passed. */
static bool count_piece(struct count *c, const struct log_piece *piece, uint64_t stop)
{
	const enum task_stream s = piece->stream;

	for (size_t i = 0; i < piece->size; i++) {
		c->is_open[s] = piece->data[i] != '\n';
		if (c->is_open[s])
			continue;
		c->at[s] = piece->offset + i + 1;
		if (c->whole[s]) {
			c->lines++;
		} else { /* lines of the other stream in front of this had others between them that are not seen */
			c->whole[s] = true;
			memcpy(c->from, c->at, sizeof(c->from));
			c->lines = 0;
		}
		if (c->lines == stop && c->whole[0] && c->whole[1])
			return true;
	}
	return false;
}

/* Lines from an offset of each stream on, up to number `stop`; the first of a stream only where it is sure to be whole. */
static int count_from(struct log_merge *m, const struct log_wish *wish, const uint64_t from[2],
		      uint64_t stop, struct count *ret, struct err *err)
{
	struct log_piece piece;
	int rc;

	*ret = (struct count){ .whole = { !from[0], !from[1] },
			       .at = { from[0], from[1] },
			       .from = { from[0], from[1] } };
	log_merge_init(m, m->folder, wish, from);
	while ((rc = log_merge_next(m, &piece, err)) > 0)
		if (count_piece(ret, &piece, stop))
			return 0;
	for (int i = 0; i < 2; i++)
		ret->lines += ret->whole[i] && ret->is_open[i];
	return rc;
}

static int tail_find(struct log_merge *m, const struct log_wish *wish, uint64_t ret[2],
		     struct err *err)
{
	uint64_t window = WINDOW_FIRST, from[2], lines = (uint64_t)wish->lines;
	struct count count;

	for (;; window *= WINDOW_GROWS) {
		int rc = 0;

		for (int i = 0; i < 2 && rc >= 0; i++)
			rc = task_log_tail(m->folder, wish->job, wish->attempt, wish->rank,
					   (enum task_stream)i, window, &from[i], err);
		if (rc >= 0)
			rc = count_from(m, wish, from, UINT64_MAX, &count, err);
		if (rc < 0)
			return rc;
		if ((!from[0] && !from[1]) ||
		    (count.whole[0] && count.whole[1] && count.lines >= lines))
			break;
	}
	memcpy(ret, count.from, sizeof(count.from));
	if (count.lines <= lines)
		return 0;
	if (count_from(m, wish, from, count.lines - lines, &count, err) < 0)
		return -(int)err->code;
	memcpy(ret, count.at, sizeof(count.at));
	return 0;
}

int log_merge_tail(const char *folder, const struct log_wish *wish, uint64_t ret[2],
		   struct err *err)
{
	struct log_merge *m = calloc(1, sizeof(*m));
	int rc;

	CHECK(m);
	m->folder = folder;
	rc = tail_find(m, wish, ret, err);
	free(m);
	return rc;
}
