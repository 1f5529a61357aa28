/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations: the places that the first blocked jobs will have, and from when on. Rows are kept close together and
 * sorted by job, for there are few of them and each pass reads all:
 *
 *	row 1: job 4, from 31 min  ── first ─▶ promises [12][13]
 *	row 2: job 9, from 55 min  ── first ─▶ promises [7]
 *	row 3: empty
 */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"

static struct reservation_fact *row_edit(struct facts *f, uint32_t row)
{
	return table_edit(&f->reservations, row);
}

/* The row of the job, or the one before which it belongs. */
static uint32_t row_find(const struct facts *f, uint32_t job)
{
	uint32_t first = 1, end = f->reservation_count + 1;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (reservation_get(f, middle)->job < job)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

uint32_t facts_reservation_row(const struct facts *f, struct job_id job)
{
	uint32_t row = row_find(f, job.v);

	return row <= f->reservation_count && reservation_get(f, row)->job == job.v ? row : 0;
}

const struct reservation_fact *facts_reservation(const struct facts *f, struct job_id job)
{
	uint32_t row = facts_reservation_row(f, job);

	return row ? reservation_get(f, row) : NULL;
}

void reservation_drop(struct facts *f, struct job_id job)
{
	uint32_t row;

	if (!f->reservation_count || !facts_reservation(f, job))
		return;
	row = row_find(f, job.v);
	facts_give_promises(f, reservation_get(f, row)->first);
	for (; row < f->reservation_count; row++)
		*row_edit(f, row) = *reservation_get(f, row + 1);
	memset(row_edit(f, f->reservation_count--), 0, sizeof(struct reservation_fact));
}

static bool reservation_fits(const struct facts *f, const struct event_reservation_set *e)
{
	if (!e->nodes_count || e->nodes_count > TASKS_MAX || e->masks_count != e->nodes_count)
		return false;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (!id_exists(&f->nodes, e->nodes[i]) || e->masks[i] < 0 ||
		    e->masks[i] > UINT32_MAX)
			return false;
	return true;
}

static struct reservation_fact *row_make(struct facts *f, uint32_t job)
{
	uint32_t row = row_find(f, job);

	if (f->reservation_count == f->reservations.count)
		table_add(&f->reservations);
	for (uint32_t at = ++f->reservation_count; at > row; at--)
		*row_edit(f, at) = *reservation_get(f, at - 1);
	return row_edit(f, row);
}

void apply_reservation_set(struct facts *f, const struct event_reservation_set *e)
{
	struct job_id id = { job_is_there(f, e->job) ? (uint32_t)e->job : 0 };
	uint32_t first = 0, row;

	if (!id.v || !job_state_waits(job_get(f, id)->state) || !reservation_fits(f, e))
		return;
	reservation_drop(f, id);
	if (f->reservation_count == RESERVATIONS_MAX)
		return;
	for (uint32_t i = e->nodes_count; i-- > 0; first = row) {
		row = facts_take_promise(f);
		*(struct promise *)table_edit(&f->promises, row) =
			(struct promise){ .node = (uint32_t)e->nodes[i],
					  .gpu_mask = (uint32_t)e->masks[i],
					  .next = first };
	}
	*row_make(f, id.v) = (struct reservation_fact){
		.job = id.v,
		.first = first,
		.tasks = e->nodes_count,
		.waits_for = job_is_there(f, e->waits_for) ? (uint32_t)e->waits_for : 0,
		.start_ms = clamp_positive(e->start_ms)
	};
}

void apply_reservation_dropped(struct facts *f, const struct event_reservation_dropped *e)
{
	if (id_exists(&f->jobs, e->job))
		reservation_drop(f, (struct job_id){ (uint32_t)e->job });
}

void apply_reservations_reviewed(struct facts *f, const struct event_reservations_reviewed *e)
{
	f->sought_ms = f->now_ms;
	f->sought_seq = f->seq;
	if (e->kept)
		return;
	f->reviewed_ms = f->now_ms;
	f->reviewed_seq = f->seq;
}
