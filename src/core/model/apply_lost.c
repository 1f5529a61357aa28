/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that could not be read. Numbers of jobs, attempts and nodes are given in order, so a lost record leaves a gap, and
 * whatever follows must keep its own numbers: the gap is filled with empty rows that every reader passes over. How wide a
 * gap may be follows from how many records are missing: one submission gives ARRAY_MAX numbers at most, one placing one.
 * And where the lost record told of somebody's end, others were given the GPUs since: who holds them longest is gone.
 *
 *	seq	17 submits job 5	18 (lost)	19 submits job 7	20 submits job 900000
 *		jobs 1..5		lost_jobs 1	job 6 is empty		no record is missing: refused
 */
#include <string.h>

#include "base/buf.h"
#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/slices.h"

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
	*ret = event_make(EVENT_RECORDS_LOST, f->now_ms, "fairlead");
	ret->records_lost.jobs = numbers_behind(&f->jobs, f->lost_jobs, ARRAY_MAX);
	ret->records_lost.attempts = numbers_behind(&f->attempts, f->lost_attempts, 1);
	return f->lost_jobs || f->lost_attempts;
}

/* --- held twice -------------------------------------------------------------------------------------------- */

enum { NODE_GPUS = 32 };

/* Who was found first to hold something of a GPU. */
struct holder {
	int64_t from_ms;
	uint32_t attempt, rank, share, begins;
};

static bool is_older(const struct holder *a, const struct holder *b)
{
	if (a->from_ms != b->from_ms)
		return a->from_ms < b->from_ms;
	return a->attempt != b->attempt ? a->attempt < b->attempt : a->rank < b->rank;
}

/* Adds what the task holds. False when that is too much for one of its GPUs; `ret` is then who must have left it: the older one. */
static bool gpus_hold(struct holder *gpus, const struct task *task, const struct holder *who,
		      struct holder *ret)
{
	for (uint32_t i = 0; i < NODE_GPUS; i++) {
		struct holder *gpu = &gpus[i];

		if (!(task->gpu_mask >> i & 1))
			continue;
		if (gpu->share + who->share > GPU_SHARE || (gpu->begins & who->begins)) {
			*ret = is_older(gpu, who) ? *gpu : *who;
			return false;
		}
		if (!gpu->share || is_older(gpu, who)) {
			gpu->from_ms = who->from_ms;
			gpu->attempt = who->attempt;
			gpu->rank = who->rank;
		}
		gpu->share += who->share;
		gpu->begins |= who->begins;
	}
	return true;
}

/* Of all that is held: who holds what another has got since. False: nobody does. */
static bool holder_find(const struct facts *f, struct buf *gpus, struct holder *ret)
{
	size_t size = ((size_t)f->nodes.count + 1) * NODE_GPUS * sizeof(struct holder);

	buf_clear(gpus);
	buf_reserve(gpus, size); /* no more than this is used: nothing in it moves */
	memset(gpus->data, 0, size);
	for (uint32_t id = 1; id <= f->attempts.count; id++) {
		const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });

		if (!attempt->job.v || job_get(f, attempt->job)->attempt.v != id)
			continue;
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			const struct task *task = table_get(&f->tasks, attempt->first_task + rank);
			struct holder who = {
				.from_ms = task->from_ms,
				.attempt = id,
				.rank = rank,
				.share = task->gpu_part ? task->gpu_part : GPU_SHARE,
				.begins = task->slice ? 1u << slice_at_start(task->slice) : 0,
			};

			if (task_holds(task) && task->node.v <= f->nodes.count &&
			    !gpus_hold((struct holder *)gpus->data +
					       (size_t)task->node.v * NODE_GPUS,
				       task, &who, ret))
				return true;
		}
	}
	return false;
}

bool facts_settle(struct facts *f)
{
	AUTO_BUF gpus = BUF_INIT;
	struct holder gone;
	bool any = false;

	while (f->lost && holder_find(f, &gpus, &gone)) {
		const int64_t rank = gone.rank;
		const struct event_ranks_left left = { .attempt = gone.attempt,
						       .ranks = &rank,
						       .ranks_count = 1,
						       .text = "its end was lost" };
		struct job_id job = attempt_get(f, (struct attempt_id){ gone.attempt })->job;
		const struct attempt *attempt;

		apply_ranks_left(f, &left);
		attempt = attempt_get(f, (struct attempt_id){ gone.attempt });
		if (task_holds(table_get(&f->tasks, attempt->first_task + gone.rank)))
			job_wait_unseen(f, job);
		any = true;
	}
	return any;
}

void apply_records_lost(struct facts *f, const struct event_records_lost *e)
{
	facts_settle(f);
	rows_reach(&f->jobs, e->jobs, f->lost_jobs, ARRAY_MAX);
	rows_reach(&f->attempts, e->attempts, f->lost_attempts, 1);
	f->job_ids = f->jobs.count;
	f->attempt_ids = f->attempts.count;
	f->lost_jobs = f->lost_attempts = 0;
}
