/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/job_change.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

static const struct job *job_of(const struct arrivals *a, uint32_t index)
{
	return job_get(a->facts, (struct job_id){ a->jobs[index] });
}

static bool comes_again(const struct job *job)
{
	return job->state != JOB_NONE && !job->held &&
	       !(job_state_is_final(job->state) && !job->attempts);
}

/* Newest first into the end of the list, then moved to its beginning. */
static void jobs_collect(struct arrivals *a)
{
	uint32_t at = ARRIVALS_MAX;
	int64_t oldest_ms = a->now_ms;

	for (uint32_t id = a->facts->jobs.count; id && at; id--) {
		const struct job *job = job_get(a->facts, (struct job_id){ id });

		if (job->state == JOB_NONE)
			continue;
		oldest_ms = job->submitted_ms;
		if (oldest_ms < a->now_ms - ARRIVALS_DAYS * DAY_MS)
			break;
		if (comes_again(job))
			a->jobs[--at] = id;
	}
	a->count = ARRIVALS_MAX - at;
	memmove(a->jobs, a->jobs + at, a->count * sizeof(*a->jobs));
	a->days = (uint32_t)((a->now_ms - oldest_ms) / DAY_MS);
	if (a->days > ARRIVALS_DAYS)
		a->days = ARRIVALS_DAYS;
}

void arrivals_init(struct arrivals *a, const struct facts *facts, int64_t now_ms)
{
	uint32_t at;

	*a = (struct arrivals){ .facts = facts, .now_ms = now_ms };
	a->jobs = calloc(ARRIVALS_MAX, sizeof(*a->jobs));
	CHECK(a->jobs);
	jobs_collect(a);
	at = a->first[0] = a->count;
	for (uint32_t day = 1; day <= a->days; day++) {
		while (at && job_of(a, at - 1)->submitted_ms >= now_ms - day * DAY_MS)
			at--;
		a->first[day] = at;
	}
}

void arrivals_deinit(struct arrivals *a)
{
	free(a->jobs);
	*a = (struct arrivals){ 0 };
}

/* Which day before the day to come is like. */
static uint32_t day_before(const struct arrivals *a)
{
	return 1 + (a->run + a->day) % a->days;
}

void arrivals_begin(struct arrivals *a, uint32_t run)
{
	a->run = run;
	a->day = 0;
	a->at = a->days ? a->first[day_before(a)] : 0;
}

/* To the next day that has any; a round of days without one has none at all. */
static bool day_find(struct arrivals *a)
{
	for (uint32_t tried = 0; a->days && tried <= a->days; tried++) {
		if (a->at < a->first[day_before(a) - 1])
			return true;
		a->day++;
		a->at = a->first[day_before(a)];
	}
	return false;
}

int64_t arrivals_next_ms(struct arrivals *a)
{
	if (!day_find(a))
		return PLAY_NEVER;
	return job_of(a, a->at)->submitted_ms + (int64_t)(day_before(a) + a->day) * DAY_MS;
}

static bool mask_is_there(const struct facts *there, const char *name)
{
	return facts_mask_find(there, facts_name_find(there, name)) != 0;
}

/* Masks that the other cluster has, too: there any other job or role runs on any node that does otherwise. */
static void masks_keep(const struct facts *there, struct event_job_submitted *e, struct buf *room)
{
	const char *list = e->role_masks;
	char name[NAME_MAX_BYTES + 1];
	bool any = false;

	if (!mask_is_there(there, e->mask))
		e->mask = "";
	for (uint32_t i = 0; list_next(&list, name); i++) {
		const bool known = mask_is_there(there, name);

		any = any || known;
		buf_addf(room, "%s%s", i ? "," : "", known ? name : "");
	}
	e->role_masks = any ? buf_text(room) : "";
	if (!any || !mask_is_there(there, e->together))
		e->together = "";
}

/* It comes as a new one: what it has left, its deadline and what its array has together are of the one that came before. */
void arrivals_take(struct arrivals *a, struct play *play)
{
	const struct job *job = job_of(a, a->at++);
	struct event e = event_make(EVENT_JOB_SUBMITTED, play->now_ms, "plan");
	struct event_job_submitted *wish = &e.job_submitted;
	AUTO_BUF masks = BUF_INIT;
	struct job_wish_room room;

	job_wish(a->facts, job, &room, wish);
	masks_keep(&play->facts, wish, &masks);
	wish->capacity = shape_get(a->facts, job->shape)->capacity;
	wish->retries = wish->checkpoint_every_ms = wish->deadline_ms = wish->efficiency = 0;
	wish->array_count = wish->array_limit = wish->held = wish->body_bytes = 0;
	wish->uid = wish->gid = 0;
	wish->job = (int64_t)play->facts.jobs.count + 1;
	play_offer(play, &e);
}
