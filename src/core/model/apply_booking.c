/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations in advance: GPUs, or whole nodes, that from one time to another only jobs of a queue, a user or a team may use. There are few, so
 * they lie in rows that are used again, and each says where it is.
 */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"

uint32_t facts_booking_find(const struct facts *f, const char *name)
{
	struct name_id id = facts_name_find(f, name);

	for (uint32_t row = 1; id.v && row <= f->bookings.count; row++)
		if (name_same(booking_get(f, row)->name, id))
			return row;
	return 0;
}

bool booking_is_for_person(const struct booking *booking, const struct job *job)
{
	return (!booking->user.v || name_same(booking->user, job->user)) &&
	       (!booking->team.v || name_same(booking->team, job->team));
}

bool booking_is_for(const struct facts *f, const struct booking *booking, const struct job *job)
{
	struct queue_id queue = job->queue;

	if (!booking_is_for_person(booking, job))
		return false;
	while (queue.v && queue.v != booking->queue.v)
		queue = queue_get(f, queue)->parent;
	return queue.v || !booking->queue.v;
}

/* The row of that name, or one that is free; 0 = there is none. */
static uint32_t row_for(struct facts *f, const char *name)
{
	uint32_t row = facts_booking_find(f, name);

	if (row)
		return row;
	for (row = 1; row <= f->bookings.count; row++)
		if (!booking_get(f, row)->name.v)
			return row;
	return f->bookings.count < BOOKINGS_MAX ? table_add(&f->bookings) : 0;
}

static bool booking_fits(const struct facts *f, const struct event_booking_set *e)
{
	if (!*e->name || (*e->queue ? !facts_queue_find(f, e->queue).v : !*e->user && !*e->team) ||
	    e->from_ms < 0 || e->to_ms < 1 || e->to_ms <= e->from_ms || !e->nodes_count ||
	    e->nodes_count > BOOKING_NODES_MAX || e->masks_count != e->nodes_count)
		return false;
	for (uint32_t i = 0; i < e->nodes_count; i++)
		if (!id_exists(&f->nodes, e->nodes[i]) || e->masks[i] < 0 ||
		    e->masks[i] > UINT32_MAX)
			return false;
	return true;
}

void apply_booking_set(struct facts *f, const struct event_booking_set *e)
{
	struct booking made = { .from_ms = e->from_ms, .to_ms = e->to_ms };
	uint32_t row;

	if (!booking_fits(f, e))
		return;
	row = row_for(f, e->name);
	if (!row)
		return;
	made.name = facts_intern(f, e->name);
	made.queue = facts_queue_find(f, e->queue);
	made.user = facts_intern(f, e->user);
	made.team = facts_intern(f, e->team);
	made.model = facts_intern(f, e->model);
	made.gpus = clamp_u32(e->gpus);
	made.keep = e->keep != 0;
	made.reason = facts_put_text(f, booking_get(f, row)->reason, e->reason);
	for (uint32_t i = 0; i < e->nodes_count; i++) {
		made.node[i] = (uint32_t)e->nodes[i];
		made.mask[i] = (uint32_t)e->masks[i];
	}
	*(struct booking *)table_edit(&f->bookings, row) = made;
}

void apply_booking_ended(struct facts *f, const struct event_booking_ended *e)
{
	uint32_t row = facts_booking_find(f, e->name);

	if (!row)
		return;
	facts_put_text(f, booking_get(f, row)->reason, "");
	memset(table_edit(&f->bookings, row), 0, sizeof(struct booking));
}
