/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/view/rest.h"

#include "core/model/event.h"
#include "core/model/facts.h"

uint64_t rest_mark(const struct event *event)
{
	uint64_t of = 0;

	if (event->kind == EVENT_RESERVATION_SET)
		of = (uint64_t)event->reservation_set.job;
	else if (event->kind == EVENT_RESERVATION_DROPPED)
		of = (uint64_t)event->reservation_dropped.job;
	else if (event->kind == EVENT_RESERVATIONS_REVIEWED)
		of = (uint64_t)event->reservations_reviewed.kept;
	else if (event->kind != EVENT_MOVES_PLANNED || event->moves_planned.jobs_count)
		return 0;
	return of << 8 | event->kind;
}

uint64_t rest_fold(uint64_t fold, uint64_t mark)
{
	return (fold ^ mark) * UINT64_C(0x9E3779B97F4A7C15);
}

void rest_follow(struct rest *rest, const struct event *event)
{
	uint64_t mark;

	if (!rest->known)
		return;
	if (event->kind == EVENT_DECIDED && rest->left && !rest->followed)
		return; /* the record before them */
	mark = rest->left ? rest_mark(event) : 0;
	rest->followed = rest_fold(rest->followed, mark);
	rest->known = mark && (--rest->left || rest->followed == rest->awaited);
}

bool rest_holds(const struct rest *rest, const struct facts *facts)
{
	return rest->known && !rest->left && rest->now_ms == facts->now_ms;
}
