/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a waiting job: its place, and what the decisions and the pass note of it. order.c says whose turn it is. */
#include "core/scheduling/life/pause.h"
#include "core/scheduling/order/anew.h"
#include "core/scheduling/queues/dominant.h"
#include "core/scheduling/reserve/estimate.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/user_limit.h"

/* --- the place ----------------------------------------------------------------------------------------- */

/* As wide as the queue and the place allow; 0 when not even the least width fits. */
static uint32_t place_widest(struct pass *pass, uint32_t job, const struct shape *shape,
			     int64_t room, struct placement *ret)
{
	uint32_t most = share_tasks(&pass->view->space, shape, room, shape->tasks_max);
	struct place_request request;

	if (most > pass->widest)
		most = pass->widest;
	request = pass_request(pass, shape, most);
	request.home = pass_home(pass, job);
	request.kind = job_get(pass->facts, (struct job_id){ job })->kind;
	request.work_ms =
		job_expected_ms(pass->facts, job_get(pass->facts, (struct job_id){ job }));
	if (most > shape->tasks_min)
		request.tasks = place_width(&pass->view->space, &request);
	while (request.tasks >= shape->tasks_min) {
		if (place_find(&pass->view->space, &request, pass->arena, ret, NULL) == 0)
			return request.tasks;
		request.tasks--;
	}
	return 0;
}

/* Where the job's last attempt failed, or was lost soon after its start: a place there is the last that it is given. RANK_NONE = nowhere. */
static int32_t rank_to_avoid(const struct pass *pass, const struct job *job)
{
	const struct attempt *attempt;
	const struct task *task;
	struct node_id lost;

	if (!job->last_attempt.v)
		return RANK_NONE;
	attempt = attempt_get(pass->facts, job->last_attempt);
	lost = attempt_short_loss_node(pass->facts, attempt);
	if (lost.v)
		return space_rank(&pass->view->space, lost.v);
	if ((attempt->why != STOP_FAILED && attempt->why != STOP_START) ||
	    attempt->first_failed_rank < 0)
		return RANK_NONE;
	task = task_get(pass->facts, attempt, (uint32_t)attempt->first_failed_rank);
	return task ? space_rank(&pass->view->space, task->node.v) : RANK_NONE;
}

bool pass_avoids(const struct pass *pass, const struct job *job)
{
	return rank_to_avoid(pass, job) != RANK_NONE;
}

uint32_t pass_place(struct pass *pass, uint32_t id, const struct shape *shape, int64_t room,
		    struct placement *ret)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	int32_t avoid = rank_to_avoid(pass, job);
	uint32_t mark = space_mark(&pass->view->space), tasks = 0;

	if (avoid != RANK_NONE) {
		space_close(&pass->view->space, (uint32_t)avoid);
		tasks = place_widest(pass, id, shape, room, ret);
		space_rollback(&pass->view->space, mark);
	}
	if (!tasks && shape->apart_wish) {
		aparts_for(pass, job, true);
		tasks = pass->aparts.any ? place_widest(pass, id, shape, room, ret) : 0;
		aparts_for(pass, job, false);
	}
	return tasks ? tasks : place_widest(pass, id, shape, room, ret);
}

uint32_t pass_place_beside(struct pass *pass, uint32_t id, const struct shape *shape, int64_t room,
			   struct node_id node, struct placement *ret)
{
	int32_t rank = space_rank(&pass->view->space, node.v);
	uint32_t mark = space_mark(&pass->view->space), tasks;

	if (rank != RANK_NONE)
		space_close(&pass->view->space, (uint32_t)rank);
	tasks = place_widest(pass, id, shape, room, ret);
	space_rollback(&pass->view->space, mark);
	return tasks;
}

/* --- the start ----------------------------------------------------------------------------------------- */

/* What of the place is near its data, for whoever asks why it lies there. */
struct nearness pass_near(struct pass *pass, uint32_t job, const struct shape *shape,
			  const struct placement *place)
{
	const uint64_t *home = pass_home(pass, job);
	struct nearness near = { 0 };
	uint32_t wanted = 0;

	while (wanted < SHAPE_DATA_MAX && shape->data[wanted].v)
		wanted++;
	for (uint32_t i = 0; (home || wanted) && i < place->count; i++) {
		uint32_t rank = place->ranks[i];

		near.home += home && home[rank / 64] >> rank % 64 & 1;
		near.data += wanted && space_data_at(&pass->view->space, shape, rank) == wanted;
	}
	return near;
}

/* Where it goes, into its decision. */
static void start_write(struct pass *pass, struct event_attempt_placed *e,
			const struct shape *shape, const struct placement *place)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ (uint32_t)e->job });
	struct place_lists lists = place_lists(pass, place);
	struct nearness near = pass_near(pass, (uint32_t)e->job, shape, place);
	struct place_speed speed;
	struct data_move move;

	PLACE_WRITE(e, &lists);
	e->near_home = near.home;
	e->near_data = near.data;
	e->bandwidth_mbps = e->slowdown_permille = 0;
	(void)place_moves(&pass->view->space, shape, place, &move);
	e->transfer_ms = move.ms;
	e->transfer_micro = move.micro;
	if (space_fabric(&pass->view->space) &&
	    place_speed(&pass->view->space, shape, job->kind, place, pass->arena, &speed)) {
		e->bandwidth_mbps = (int64_t)speed.bandwidth_mbps;
		e->slowdown_permille = speed.slowdown_permille;
	}
}

void pass_start(struct pass *pass, uint32_t id, const struct placement *place, bool promised)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = shape_get(pass->facts, job->shape);
	const struct checkpoint *checkpoint =
		job->checkpoint ? job_checkpoint(pass->facts, job, 0) : NULL;
	int64_t share = placement_share(place, shape), likely_ms, safe_ms;
	struct event_attempt_placed *e = &pass_emit(pass, EVENT_ATTEMPT_PLACED)->attempt_placed;

	e->job = id;
	e->attempt = (int64_t)pass->facts->attempts.count + ++pass->attempts;
	e->resume_number = checkpoint ? checkpoint->number : 0;
	start_write(pass, e, shape, place);
	if (estimate_by_likes(pass->facts, job, &likely_ms, &safe_ms)) {
		e->likely_ms = likely_ms;
		e->safe_ms = safe_ms;
	}
	pass->starts++;
	pass->changes++;
	placement_take(&pass->view->space, place, shape);
	if (!promised) {
		bounds_take(pass, job->queue.v, job->tier, shape, place);
		pledge_take(pass, job->queue.v, job->tier, shape, place);
		spend_take(pass, job, place->count);
		user_take(pass, job, share);
		anew_note(pass, id, place);
	}
	if (promised)
		standing_promise(&pass->standings, job->queue.v, job->tier, -share);
	standing_start(&pass->standings, job->queue.v, job->tier, share);
	dominant_take(&pass->standings, job->queue.v, job->tier, shape, place, 1);
	if (pass->watch && pass->watch->job == id)
		pass->watch->started = true;
}

void pass_start_move(struct pass *pass, uint32_t event, const struct placement *from,
		     const struct placement *to)
{
	struct event_attempt_placed *e = &pass->events[event].attempt_placed;
	const struct job *job = job_get(pass->facts, (struct job_id){ (uint32_t)e->job });
	const struct shape *shape = shape_get(pass->facts, job->shape);

	start_write(pass, e, shape, to);
	dominant_take(&pass->standings, job->queue.v, job->tier, shape, from, -1);
	dominant_take(&pass->standings, job->queue.v, job->tier, shape, to, 1);
}
