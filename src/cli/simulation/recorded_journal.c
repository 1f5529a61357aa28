/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulation/recorded_journal.h"

#include "base/arena.h"
#include "cli/output/problem.h"
#include "store/journal.h"

enum { RECORD_MEMORY = 64 << 20 };

struct reading {
	struct recorded *recorded;
	struct arena arena;
	uint64_t passed_over;
};

/* A record that can't be read, or of a kind that a newer release writes, is passed over: the rest is history all the same. */
static int record_take(void *context, const struct record *record, const struct digest *hash)
{
	struct reading *reading = context;
	struct event event;
	struct err why = { 0 };

	(void)hash;
	arena_reset(&reading->arena);
	if (!event_info(record->kind) ||
	    event_decode(record->kind, record->seq, record->time_ms, record->text, record->size,
			 &reading->arena, &event, &why) < 0) {
		facts_pass_over(&reading->recorded->facts, record->seq);
		reading->passed_over++;
		return 0;
	}
	recorded_take(reading->recorded, &event);
	return 0;
}

static void damage_count(void *context, uint64_t seq, const char *what)
{
	struct reading *reading = context;

	(void)seq;
	(void)what;
	reading->passed_over++;
}

int recorded_journal_read(const char *folder, struct recorded *ret, struct err *err)
{
	struct reading reading = { .recorded = ret };
	const struct journal_options options = { .folder = folder, .read_only = true };
	const struct journal_reader reader = { .context = &reading,
					       .take = record_take,
					       .damaged = damage_count };
	struct journal *journal = NULL;
	int rc;

	recorded_init(ret);
	rc = journal_open(&options, &journal, err);
	if (rc < 0)
		return rc;
	arena_init(&reading.arena, RECORD_MEMORY);
	rc = journal_read(journal, 1, 0, false, &reader, err);
	arena_deinit(&reading.arena);
	journal_close(journal);
	if (reading.passed_over)
		notice("%llu records of the journal can't be read and were passed over",
		       (unsigned long long)reading.passed_over);
	return rc < 0 ? rc : recorded_close(ret, err);
}
