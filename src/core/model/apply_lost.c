/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that could not be read. Numbers of jobs, attempts and nodes are given in order, so a lost record leaves a gap, and
 * whatever follows must keep its own numbers: the gap is filled with empty rows that every reader passes over. How wide a
 * gap may be follows from how many records are missing: one submission gives ARRAY_MAX numbers at most, one placing one.
 *
 *	seq	17 submits job 5	18 (lost)	19 submits job 7	20 submits job 900000
 *		jobs 1..5		lost_jobs 1	job 6 is empty		no record is missing: refused
 */
#include <string.h>

#include "base/buf.h"
#include "core/model/apply.h"
#include "core/model/edit.h"

static void range_note(struct facts *f, uint64_t first, uint64_t last)
{
	uint32_t at = 0;

	while (at < LOST_RANGES && f->lost_last[at])
		at++;
	if (at && f->lost_last[at - 1] + 1 == (int64_t)first)
		f->lost_last[at - 1] = (int64_t)last;
	if (at == LOST_RANGES || (at && f->lost_last[at - 1] == (int64_t)last))
		return;
	f->lost_first[at] = (int64_t)first;
	f->lost_last[at] = (int64_t)last;
}

void facts_pass_over(struct facts *f, uint64_t seq)
{
	uint64_t count = seq - f->seq;

	if (seq <= f->seq)
		return;
	range_note(f, f->seq + 1, seq);
	f->lost += count;
	f->lost_jobs += count;
	f->lost_attempts += count;
	f->seq = seq;
}

void facts_lost_text(const struct facts *f, char ret[LOST_TEXT_MAX])
{
	AUTO_BUF text = BUF_INIT;
	uint64_t named = 0;

	ret[0] = '\0';
	if (!f->lost)
		return;
	buf_addf(&text, "%llu record%s of the journal could not be read and %s set aside:",
		 (unsigned long long)f->lost, f->lost == 1 ? "" : "s",
		 f->lost == 1 ? "was" : "were");
	for (uint32_t i = 0; i < LOST_RANGES && f->lost_last[i]; i++) {
		named += (uint64_t)(f->lost_last[i] - f->lost_first[i] + 1);
		buf_addf(&text, "%s %lld", i ? "," : "", (long long)f->lost_first[i]);
		if (f->lost_last[i] != f->lost_first[i])
			buf_addf(&text, " to %lld", (long long)f->lost_last[i]);
	}
	if (named < f->lost)
		buf_addf(&text, " and %llu more", (unsigned long long)(f->lost - named));
	if (text.size < LOST_TEXT_MAX)
		memcpy(ret, buf_text(&text), text.size + 1);
}

bool rows_reach(struct table *table, int64_t rows, uint64_t lost, uint64_t each)
{
	int64_t gap;

	if (rows <= (int64_t)table->count)
		return true;
	gap = rows - (int64_t)table->count;
	if (gap > GAP_NAMED_MAX || rows >= UINT32_MAX || ((uint64_t)gap + each - 1) / each > lost)
		return false;
	while (gap--)
		table_add(table);
	return true;
}

/* Where nothing tells which numbers the lost records gave, all that they can have given are passed over. */
static int64_t numbers_behind(const struct table *table, uint64_t lost, uint64_t each)
{
	uint64_t most = GAP_UNNAMED_MAX / each,
		 numbers = lost > most ? GAP_UNNAMED_MAX : lost * each;

	return table->count + numbers < UINT32_MAX ? (int64_t)(table->count + numbers)
						   : (int64_t)table->count;
}

bool facts_lost_numbers(const struct facts *f, struct event *ret)
{
	if (!f->lost_jobs && !f->lost_attempts)
		return false;
	*ret = event_make(EVENT_RECORDS_LOST, f->now_ms, "fairlead");
	ret->records_lost.jobs = numbers_behind(&f->jobs, f->lost_jobs, ARRAY_MAX);
	ret->records_lost.attempts = numbers_behind(&f->attempts, f->lost_attempts, 1);
	return true;
}

void apply_records_lost(struct facts *f, const struct event_records_lost *e)
{
	rows_reach(&f->jobs, e->jobs, f->lost_jobs, ARRAY_MAX);
	rows_reach(&f->attempts, e->attempts, f->lost_attempts, 1);
	f->job_ids = f->jobs.count;
	f->attempt_ids = f->attempts.count;
	f->lost_jobs = f->lost_attempts = 0;
}
