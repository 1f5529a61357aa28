/* SPDX-License-Identifier: Apache-2.0 */
/* The `events` of a scenario: a person's commands go to the core, accidents to the simulated
 * engine. */
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "sim/runner.h"

static int offer(struct run *run, struct event *e, const struct scenario_event *happens,
		 struct err *err)
{
	int rc = world_offer(&run->world, e, NULL, err);

	return rc < 0 ? run_error(run, happens->line, err) : 0;
}

static int set_node_state(struct run *run, const struct scenario_event *happens, const char *name,
			  enum node_state state, const char *reason, struct err *err)
{
	struct event e = event_make(EVENT_NODE_STATE, 0, "scenario");

	e.node_state.node = facts_node_find(&run->world.facts, name).v;
	e.node_state.state = state;
	e.node_state.reason = reason;
	e.node_state.within_ms = state == NODE_DRAINING ? happens->within_ms : 0;
	return offer(run, &e, happens, err);
}

static int happen_node(struct run *run, const struct scenario_event *happens, const char *name,
		       struct err *err)
{
	struct node_id id = facts_node_find(&run->world.facts, name);

	if (!id.v) {
		err_set(err, ERR_INVALID, "node \"%s\" is not there yet", name);
		return run_error(run, happens->line, err);
	}
	if (happens->kind == HAPPENS_NODE_UP)
		return set_node_state(run, happens, name, NODE_READY, "", err);
	if (happens->kind == HAPPENS_DRAIN)
		return set_node_state(run, happens, name, NODE_DRAINING, "drained by hand", err);
	if (happens->kind == HAPPENS_MAINTENANCE) {
		struct event e = event_make(EVENT_NODE_WINDOW, 0, "scenario");

		e.node_window.node = id.v;
		if (happens->to_ms) {
			e.node_window.from_ms = WORLD_EPOCH_MS + happens->from_ms;
			e.node_window.to_ms = WORLD_EPOCH_MS + happens->to_ms;
			e.node_window.reason = "announced";
		}
		return offer(run, &e, happens, err);
	}
	engine_sim_node_down(&run->world.engine, id.v);
	return set_node_state(run, happens, name, NODE_DOWN, "switched off", err);
}

static int happen_gpu(struct run *run, const struct scenario_event *happens, struct err *err)
{
	struct event e = event_make(EVENT_GPU_STATE, 0, "scenario");

	e.gpu_state.node = facts_node_find(&run->world.facts, happens->name).v;
	e.gpu_state.mask = INT64_C(1) << happens->number;
	e.gpu_state.set_aside = happens->kind == HAPPENS_GPU_DOWN;
	e.gpu_state.reason = happens->kind == HAPPENS_GPU_DOWN ? "set aside by hand" : "";
	return offer(run, &e, happens, err);
}

static int happen_queue(struct run *run, const struct scenario_event *happens, struct err *err)
{
	for (uint32_t i = 0; i < run->scenario->queue_count; i++) {
		struct scenario_queue *queue = &run->queues[i];
		int rc;

		if (strcmp(queue->name, happens->name) != 0)
			continue;
		rc = scenario_queue_change(run->scenario->file, happens->queue, &run->memory, queue,
					   err);
		queue->line = happens->line;
		return rc < 0 ? rc : run_set_queue(run, queue, err);
	}
	err_set(err, ERR_INVALID, "there is no queue \"%s\" to change", happens->name);
	return run_error(run, happens->line, err);
}

/* Users and teams need not be listed in a scenario: whom a reservation names is there. */
static int people_make(struct run *run, const struct scenario_event *happens, struct err *err)
{
	const struct scenario_booking *b = happens->booking;
	struct event user = event_make(EVENT_USER_SET, 0, "scenario");
	int rc = run_team(run, b->team, happens->line, err);

	user.user_set.name = b->user;
	user.user_set.role = ROLE_RESEARCHER;
	user.user_set.uid = user.user_set.gid = -1;
	if (rc == 0 && *b->user && !facts_user_find(&run->world.facts, b->user))
		rc = offer(run, &user, happens, err);
	return rc;
}

static int happen_booking(struct run *run, const struct scenario_event *happens, struct err *err)
{
	const struct scenario_booking *b = happens->booking;
	struct event e = event_make(b ? EVENT_BOOKING_SET : EVENT_BOOKING_ENDED, 0, "scenario");
	int64_t *nodes;

	if (!b) {
		e.booking_ended.name = happens->name;
		return offer(run, &e, happens, err);
	}
	if (people_make(run, happens, err) < 0)
		return -1;
	nodes = arena_new_array(&run->memory, int64_t, b->node_count + 1);
	for (uint32_t i = 0; i < b->node_count; i++)
		nodes[i] = facts_node_find(&run->world.facts, b->nodes[i]).v;
	e.booking_set.name = b->name;
	e.booking_set.queue = b->queue;
	e.booking_set.user = b->user;
	e.booking_set.team = b->team;
	e.booking_set.model = b->model;
	e.booking_set.gpus = b->gpus;
	e.booking_set.keep = b->keep;
	e.booking_set.from_ms = WORLD_EPOCH_MS + b->from_ms;
	e.booking_set.to_ms = WORLD_EPOCH_MS + b->to_ms;
	e.booking_set.nodes = nodes;
	e.booking_set.nodes_count = b->node_count;
	return offer(run, &e, happens, err);
}

static int command(struct run *run, const struct scenario_event *happens, uint32_t job,
		   struct err *err)
{
	static const enum event_kind kinds[] = {
		[HAPPENS_CANCEL] = EVENT_JOB_CANCEL_ASKED,
		[HAPPENS_HOLD] = EVENT_JOB_HELD,
		[HAPPENS_RELEASE] = EVENT_JOB_RELEASED,
	};
	struct event e = event_make(kinds[happens->kind], 0, "scenario");

	if (e.kind == EVENT_JOB_CANCEL_ASKED)
		e.job_cancel_asked.job = job;
	else if (e.kind == EVENT_JOB_HELD)
		e.job_held.job = job;
	else
		e.job_released.job = job;
	return offer(run, &e, happens, err);
}

static int tear_checkpoint(struct run *run, const struct scenario_event *happens, uint32_t id,
			   struct err *err)
{
	const struct job *job = job_get(&run->world.facts, (struct job_id){ id });
	const struct checkpoint *newest = job_checkpoint(&run->world.facts, job, 0);
	struct event e = event_make(EVENT_CHECKPOINT_VOID, 0, "engine");

	if (!newest) {
		err_set(err, ERR_INVALID, "job \"%s\" has no checkpoint that could be torn",
			facts_name(&run->world.facts, job->name));
		return run_error(run, happens->line, err);
	}
	e.checkpoint_void.job = id;
	e.checkpoint_void.number = newest->number;
	e.checkpoint_void.reason = "torn";
	return offer(run, &e, happens, err);
}

/* What happens to one job; *ret_running tells whether it had an attempt that it could happen to. */
static int happen_job(struct run *run, const struct scenario_event *happens, uint32_t id,
		      bool *ret_running, struct err *err)
{
	uint32_t attempt = job_get(&run->world.facts, (struct job_id){ id })->attempt.v;
	struct engine_sim *engine = &run->world.engine;

	switch (happens->kind) {
	case HAPPENS_FINISH:
		*ret_running = *ret_running || attempt;
		engine_sim_finish(engine, attempt);
		return 0;
	case HAPPENS_FAIL:
		*ret_running = *ret_running || attempt;
		engine_sim_end_rank(engine, attempt, 0, CAUSE_EXIT, 1);
		return 0;
	case HAPPENS_LOSE_TASK:
		*ret_running = *ret_running || attempt;
		engine_sim_end_rank(engine, attempt, happens->number, CAUSE_LOST, 0);
		return 0;
	case HAPPENS_END_TASK:
		*ret_running = *ret_running || attempt;
		engine_sim_end_rank(engine, attempt, happens->number, CAUSE_EXIT, 0);
		return 0;
	case HAPPENS_TORN_CHECKPOINT:
		*ret_running = true;
		return tear_checkpoint(run, happens, id, err);
	case HAPPENS_CANCEL:
	case HAPPENS_HOLD:
	case HAPPENS_RELEASE: *ret_running = true; return command(run, happens, id, err);
	case HAPPENS_NODE_DOWN:
	case HAPPENS_NODE_UP:
	case HAPPENS_DRAIN:
	case HAPPENS_MAINTENANCE:
	case HAPPENS_ADD_NODE:
	case HAPPENS_GPU_DOWN:
	case HAPPENS_GPU_UP:
	case HAPPENS_RESERVE:
	case HAPPENS_UNRESERVE:
	case HAPPENS_MASK:
	case HAPPENS_SET_QUEUE: break;
	}
	UNREACHABLE();
}

static int happen_jobs(struct run *run, const struct scenario_event *happens, const char *name,
		       struct err *err)
{
	const struct run_job *job = run_job_find(run, name);
	bool running = false;
	int rc = 0;

	for (uint32_t i = 0; i < job->count && rc == 0; i++)
		rc = happen_job(run, happens, job->id + i, &running, err);
	if (rc == 0 && !running) {
		err_set(err, ERR_INVALID, "job \"%s\" %s at that time, so this can't happen to it",
			name, job->id ? "does not run" : "is not there");
		rc = run_error(run, happens->line, err);
	}
	return rc;
}

/* The event names what changes: nodes that are in it now and were not, and the other way about. */
static int happen_mask(struct run *run, const struct scenario_event *happens, struct err *err)
{
	const struct facts *f = &run->world.facts;
	const struct scenario_mask *mask = happens->mask;
	struct event e = event_make(EVENT_NODE_MASK, 0, "scenario");
	uint32_t row = facts_mask_find(f, facts_name_find(f, mask->name));
	int64_t *in = arena_new_array(&run->memory, int64_t, (size_t)mask->node_count + 1),
		*out = arena_new_array(&run->memory, int64_t, (size_t)f->nodes.count + 1);

	e.node_mask.name = mask->name;
	e.node_mask.why = mask->why;
	e.node_mask.ended = mask->ended;
	e.node_mask.in = in;
	e.node_mask.out = out;
	for (uint32_t i = 0; i < mask->node_count; i++) {
		in[i] = facts_node_find(f, mask->nodes[i]).v;
		if (!in[i]) {
			err_set(err, ERR_INVALID, "node \"%s\" is not there yet", mask->nodes[i]);
			return run_error(run, happens->line, err);
		}
	}
	e.node_mask.in_count = mask->node_count;
	for (uint32_t id = 1; row && id <= f->nodes.count; id++) {
		bool stays = false;

		for (uint32_t i = 0; i < mask->node_count; i++)
			stays = stays || in[i] == id;
		if (!stays && node_is_in(node_get(f, (struct node_id){ id }), row))
			out[e.node_mask.out_count++] = id;
	}
	return offer(run, &e, happens, err);
}

int run_happen(struct run *run, const struct scenario_event *happens, struct err *err)
{
	bool about_node = happens->kind <= HAPPENS_MAINTENANCE;
	const char **names;
	size_t count;
	int rc = 0;

	if (happens->kind == HAPPENS_GPU_DOWN || happens->kind == HAPPENS_GPU_UP)
		return happen_gpu(run, happens, err);
	if (happens->kind == HAPPENS_RESERVE || happens->kind == HAPPENS_UNRESERVE)
		return happen_booking(run, happens, err);
	if (happens->kind == HAPPENS_MASK)
		return happen_mask(run, happens, err);
	if (happens->kind == HAPPENS_SET_QUEUE)
		return happen_queue(run, happens, err);
	for (uint32_t i = 0; i < happens->node_count && rc == 0; i++)
		rc = run_set_node(run, &happens->node[i], err);
	if (happens->kind == HAPPENS_ADD_NODE)
		return rc;
	rc = parse_name_range(happens->name, &run->memory, SCENARIO_RANGE_MAX, &names, &count, err);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = about_node ? happen_node(run, happens, names[i], err)
				: happen_jobs(run, happens, names[i], err);
	return rc;
}
