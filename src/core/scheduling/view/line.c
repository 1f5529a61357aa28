/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/view/line.h"

#include "base/check.h"

static bool comes_before(const struct line_entry *a, const struct line_entry *b)
{
	if (a->rank != b->rank)
		return a->rank > b->rank;
	return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->job < b->job;
}

static uint32_t run_size(const struct line_run *run)
{
	return (uint32_t)(run->entries.buf.size / sizeof(struct line_entry));
}

void line_deinit(struct line *line)
{
	for (uint32_t i = 0; i < line->run_count; i++)
		buf_deinit(&line->runs.at[i].entries.buf);
	buf_deinit(&line->runs.buf);
	*line = (struct line){ 0 };
}

/* The run in which it stands, or would: the last one that begins with it or before. */
static uint32_t run_of(const struct line *line, const struct line_entry *entry)
{
	uint32_t first = 0, end = line->run_count;

	while (end - first > 1) {
		uint32_t middle = first + (end - first) / 2;
		if (!comes_before(entry, line->runs.at[middle].entries.at))
			first = middle;
		else
			end = middle;
	}
	return first;
}

/* How many of the run come before it. */
static uint32_t place_in(const struct line_run *run, const struct line_entry *entry)
{
	uint32_t first = 0, end = run_size(run);

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (comes_before(&run->entries.at[middle], entry))
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* A new, empty run at this place of the list. */
static struct line_run *run_insert(struct line *line, uint32_t at)
{
	struct line_run *run;

	array_ensure(&line->runs.buf, (size_t)line->run_count + 1, sizeof(*run));
	run = &line->runs.at[at];
	memmove(run + 1, run, (line->run_count - at) * sizeof(*run));
	line->run_count++;
	memset(run, 0, sizeof(*run));
	return run;
}

static void run_drop(struct line *line, uint32_t at)
{
	struct line_run *run = &line->runs.at[at];

	buf_deinit(&run->entries.buf);
	memmove(run, run + 1, (line->run_count - at - 1) * sizeof(*run));
	line->run_count--;
	memset(&line->runs.at[line->run_count], 0, sizeof(*run));
}

static void entries_append(struct line_run *run, const struct line_entry *from, uint32_t count)
{
	buf_add(&run->entries.buf, (const char *)from, count * sizeof(*from));
}

/* The run is full: its second half becomes a run of its own, or nothing of it when one is added at its end. */
static void run_split(struct line *line, uint32_t at, uint32_t place)
{
	uint32_t keep = place == LINE_RUN_MAX ? place : LINE_RUN_MAX / 2;
	struct line_run *added = run_insert(line, at + 1), *run = &line->runs.at[at];

	entries_append(added, run->entries.at + keep, LINE_RUN_MAX - keep);
	array_resize(&run->entries.buf, keep, sizeof(struct line_entry));
}

void line_add(struct line *line, const struct line_entry *entry)
{
	uint32_t at, place, size;
	struct line_run *run;

	if (!line->run_count)
		(void)run_insert(line, 0);
	at = run_of(line, entry);
	place = place_in(&line->runs.at[at], entry);
	if (run_size(&line->runs.at[at]) == LINE_RUN_MAX) {
		run_split(line, at, place);
		if (place > LINE_RUN_MAX / 2) {
			place -= run_size(&line->runs.at[at]);
			at++;
		}
	}
	run = &line->runs.at[at];
	size = run_size(run);
	array_resize(&run->entries.buf, (size_t)size + 1, sizeof(*entry));
	memmove(&run->entries.at[place + 1], &run->entries.at[place],
		(size - place) * sizeof(*entry));
	run->entries.at[place] = *entry;
	line->count++;
}

/* Small neighbours become one, so that runs stay long. */
static void run_join(struct line *line, uint32_t at)
{
	struct line_run *run = &line->runs.at[at];
	uint32_t size = run_size(run);

	if (!size) {
		run_drop(line, at);
	} else if (size < LINE_RUN_MAX / 4 && at + 1 < line->run_count &&
		   size + run_size(run + 1) <= LINE_RUN_MAX / 2) {
		entries_append(run, run[1].entries.at, run_size(run + 1));
		run_drop(line, at + 1);
	}
}

void line_remove(struct line *line, const struct line_entry *entry)
{
	uint32_t at = run_of(line, entry), place, size;
	struct line_run *run;

	CHECK(line->run_count > 0);
	run = &line->runs.at[at];
	size = run_size(run);
	place = place_in(run, entry);
	CHECK(place < size && !comes_before(entry, &run->entries.at[place]));
	memmove(&run->entries.at[place], &run->entries.at[place + 1],
		(size - place - 1) * sizeof(struct line_entry));
	array_resize(&run->entries.buf, (size_t)size - 1, sizeof(struct line_entry));
	line->count--;
	run_join(line, at);
}

bool line_same(const struct line *a, const struct line *b)
{
	struct line_walk wa, wb;
	bool any = line_begin(a, &wa), other = line_begin(b, &wb);

	for (; any && other; any = line_next(&wa), other = line_next(&wb))
		if (wa.at->rank != wb.at->rank || wa.at->due_ms != wb.at->due_ms ||
		    wa.at->job != wb.at->job || wa.at->shape != wb.at->shape)
			return false;
	return any == other && a->count == b->count;
}

static bool run_enter(struct line_walk *walk)
{
	const struct line_run *run;

	if (walk->run == walk->line->run_count)
		return false;
	run = &walk->line->runs.at[walk->run];
	walk->at = run->entries.at;
	walk->end = walk->at + run_size(run);
	return true;
}

bool line_begin(const struct line *line, struct line_walk *walk)
{
	*walk = (struct line_walk){ .line = line };
	return run_enter(walk);
}

bool line_next_run(struct line_walk *walk)
{
	walk->run++;
	return run_enter(walk);
}
