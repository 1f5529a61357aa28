/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must be true of the facts, in two parts. References: every id stands for a row that exists; nothing may be
 * followed before that is known. The rest: look-ups find what they should, each row of the tables for tasks,
 * promises, checkpoints and dependencies has exactly one owner, counts are right, and each job is in the state that
 * the other facts say.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/likes.h"
#include "core/model/roles.h"

#define WRONG(...) err_set(err, ERR_CORRUPT, __VA_ARGS__)

static bool name_ok(const struct facts *f, struct name_id id)
{
	return id.v <= f->names.count;
}

static bool row_ok(const struct table *table, uint32_t id)
{
	return id <= table->count;
}

/* A row of what is lost or forgotten holds nothing. */
static bool row_is_empty(const struct table *table, uint32_t id)
{
	return memcmp(table_get(table, id), table_zeroes, table->record_bytes) == 0;
}

/* --- references --------------------------------------------------------------------------------------- */

static int check_cluster_references(const struct facts *f, struct err *err)
{
	if (f->level_count > LEVELS_MAX)
		return WRONG("%u topology levels are more than %d", f->level_count, LEVELS_MAX);
	if (f->search_stale && !f->searched)
		return WRONG("a round of searches that has not begun is stale");
	if (f->moves.looked_ms < 0 || f->moves.again_ms < 0 || f->moves.jobs < 0 ||
	    f->moves.in_hour > f->moves.jobs)
		return WRONG("the moves of an hour are more than all moves");
	if (f->gpus.count != (uint64_t)f->nodes.count * NODE_GPUS_MAX)
		return WRONG("%u GPU records do not belong to %u nodes", f->gpus.count,
			     f->nodes.count);
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if ((!node->name.v && (node->state != NODE_GONE || node->gpu_count)) ||
		    !name_ok(f, node->name) || !name_ok(f, node->model) ||
		    node->gpu_count > NODE_GPUS_MAX || node->state > NODE_MAINTENANCE ||
		    node->class > NODE_CLASS_INFERENCE || !row_ok(&f->texts, node->reason.v) ||
		    !row_ok(&f->texts, node->numa_cpus.v))
			return WRONG("node %u: its name, GPU count or state is out of range", id);
		if (node->window_from_ms < 0 || node->window_to_ms < 0 ||
		    (node_has_window(node) ? node->window_to_ms <= node->window_from_ms
					   : node->window_from_ms || node->window_reason.v) ||
		    !row_ok(&f->texts, node->window_reason.v))
			return WRONG("node %u: its maintenance ends before it begins", id);
		if (node->make > f->fabric.make_count)
			return WRONG("node %u: its make %u does not exist", id, node->make);
	}
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *queue = queue_get(f, (struct queue_id){ id });

		if (!queue->name.v || !name_ok(f, queue->name) ||
		    !row_ok(&f->queues, queue->parent.v) || !row_ok(&f->texts, queue->calendar.v))
			return WRONG("queue %u: its name, parent or calendar does not exist", id);
		if (!name_ok(f, queue->currency))
			return WRONG("queue %u: its currency does not exist", id);
		for (uint32_t i = 0; i < QUEUE_MODELS_MAX; i++)
			if (!name_ok(f, queue->limit_model[i]) ||
			    !name_ok(f, queue->guarantee_model[i]))
				return WRONG(
					"queue %u: a model with a limit or guarantee does not exist",
					id);
		if (queue->past_gpu_ms < 0 || queue->past_rate_share < 0)
			return WRONG("queue %u: its past use is below zero", id);
		if (queue->tiers & ~TIERS_ALL || queue->max_priority < -1 ||
		    queue->user_limit_share < 0 || queue->user_part > 100)
			return WRONG("queue %u: what it admits is out of range", id);
	}
	return 0;
}

static int check_fabric(const struct facts *f, struct err *err)
{
	if (f->fabric.make_count > MAKES_MAX)
		return WRONG("%u makes of hosts are more than %d", f->fabric.make_count, MAKES_MAX);
	for (uint32_t i = 0; i < f->fabric.make_count; i++) {
		const struct make *make = &f->fabric.make[i];

		if (!name_ok(f, make->model) || make->gpus < 1 || make->gpus > NODE_GPUS_MAX)
			return WRONG("make %u: its GPU model or number of GPUs is out of range",
				     i + 1);
	}
	return 0;
}

/* Every way up ends at the root: who walks it trusts that. */
static int check_queue_tree(const struct facts *f, struct err *err)
{
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		uint32_t up = id;

		for (uint32_t steps = 0; up; steps++) {
			if (steps == f->queues.count)
				return WRONG("queue %u is above itself", id);
			up = queue_get(f, (struct queue_id){ up })->parent.v;
		}
	}
	return 0;
}

static int check_people_references(const struct facts *f, struct err *err)
{
	for (uint32_t id = 1; id <= f->teams.count; id++) {
		const struct team *team = table_get(&f->teams, id);

		if (!team->name.v || !name_ok(f, team->name))
			return WRONG("team %u: its name does not exist", id);
	}
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);

		if (!user->name.v || !name_ok(f, user->name) || !name_ok(f, user->team) ||
		    !name_ok(f, user->queue) || user->role > ROLE_ADMIN)
			return WRONG("user %u: its name, team, queue or role does not exist", id);
	}
	for (uint32_t id = 1; id <= f->tokens.count; id++) {
		const struct token *token = table_get(&f->tokens, id);

		if (!token->id.v || !name_ok(f, token->id) || !name_ok(f, token->user) ||
		    !row_ok(&f->users, token->owner))
			return WRONG("token %u: its name or user does not exist", id);
	}
	return 0;
}

static int check_job_references(const struct facts *f, struct err *err)
{
	for (uint32_t id = 1; id <= f->bodies.count; id++)
		if (!id_exists(&f->jobs, ((const struct body *)table_get(&f->bodies, id))->job) &&
		    !row_is_empty(&f->bodies, id))
			return WRONG("submission %u: its job does not exist", id);
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		if (row_is_empty(&f->jobs, id))
			continue;
		if (!id_exists(&f->queues, job->queue.v) || !id_exists(&f->shapes, job->shape.v) ||
		    !id_exists(&f->bodies, job->body))
			return WRONG("job %u: its queue, shape or submission does not exist", id);
		if (!row_ok(&f->texts, job->reason.v) || !row_ok(&f->attempts, job->attempt.v) ||
		    !row_ok(&f->attempts, job->last_attempt.v) ||
		    !row_ok(&f->depends, job->depends) || !row_ok(&f->promises, job->promise) ||
		    (job->checkpoint &&
		     job->checkpoint + CHECKPOINTS_KEPT - 1 > f->checkpoints.count))
			return WRONG(
				"job %u: its attempt, dependency, promise or checkpoint does not exist",
				id);
		if (job->state == JOB_NONE || job->state > JOB_TIMED_OUT ||
		    job->kind > KIND_INTERACTIVE || job->tier > TIER_CRITICAL)
			return WRONG("job %u: its state, kind or tier is out of range", id);
	}
	for (uint32_t row = 1; row <= f->depends.count; row++) {
		const struct depend *depend = table_get(&f->depends, row);

		if (!depend->owner && !depend->job && row_ok(&f->depends, depend->next))
			continue; /* free */
		if (!id_exists(&f->jobs, depend->job) || depend->job >= depend->owner ||
		    !id_exists(&f->jobs, depend->owner) || !row_ok(&f->depends, depend->next))
			return WRONG("job %u: it depends on job %u, which does not come before it",
				     depend->owner, depend->job);
	}
	return 0;
}

static int check_attempt_references(const struct facts *f, struct err *err)
{
	for (uint32_t id = 1; id <= f->attempts.count; id++) {
		const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });

		if (row_is_empty(&f->attempts, id))
			continue;
		if (attempt->previous >= id || !row_ok(&f->texts, attempt->reason.v) ||
		    !id_exists(&f->jobs, attempt->job.v) || !row_ok(&f->jobs, attempt->for_job))
			return WRONG(
				"attempt %u: its job or the job it makes room for does not exist",
				id);
		if (!attempt->tasks || attempt->tasks > TASKS_MAX ||
		    attempt->state == ATTEMPT_FREE || attempt->state > ATTEMPT_OVER)
			return WRONG("attempt %u: its tasks or state are out of range", id);
		if (!attempt->first_task)
			continue;
		if (attempt->first_task + attempt->tasks - 1 > f->tasks.count)
			return WRONG("attempt %u: its tasks do not exist", id);
		for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
			const struct task *task = task_get(f, attempt, rank);

			if (!id_exists(&f->nodes, task->node.v) || task->state > TASK_LEFT)
				return WRONG(
					"attempt %u, rank %u: its node does not exist or its state is out of range",
					id, rank);
		}
	}
	for (uint32_t row = 1; row <= f->promises.count; row++) {
		const struct promise *promise = table_get(&f->promises, row);

		if (!row_ok(&f->nodes, promise->node) || !row_ok(&f->attempts, promise->victim) ||
		    !row_ok(&f->promises, promise->next))
			return WRONG("promise %u: its node or victim does not exist", row);
	}
	return 0;
}

static int check_zones(const struct facts *f, struct err *err)
{
	if (f->zones.count > ZONES_MAX)
		return WRONG("more time zones than rows for them");
	for (uint32_t row = 1; row <= f->zones.count; row++) {
		const struct zone *z = table_get(&f->zones, row);

		if (!z->name.v || !name_ok(f, z->name) || z->count > ZONE_CHANGES_MAX)
			return WRONG("time zone %u: its name or number of changes is wrong", row);
		for (uint32_t i = 1; i < z->count; i++)
			if (z->at_ms[i] - z->at_ms[i - 1] <= ZONE_APART_MS)
				return WRONG("time zone %u: its changes are not in order", row);
	}
	return 0;
}

static int check_pasts(const struct facts *f, struct err *err)
{
	for (uint32_t row = 1; row <= f->pasts.count; row++) {
		const struct past *p = table_get(&f->pasts, row);

		if (!p->queue.v || !row_ok(&f->queues, p->queue.v) || !p->user.v ||
		    !name_ok(f, p->user) || p->past_gpu_ms < 0 || p->past_rate_share < 0)
			return WRONG("past use %u: its queue, user or amount is wrong", row);
	}
	return 0;
}

static int check_data(const struct facts *f, struct err *err)
{
	if (f->data_sets.count > DATA_SETS_MAX || f->transfers.count > TRANSFERS_MAX)
		return WRONG("more data sets or transfers than rows for them");
	for (uint32_t row = 1; row <= f->data_sets.count; row++) {
		const struct data_set *d = table_get(&f->data_sets, row);

		if (!d->name.v || !name_ok(f, d->name))
			return WRONG("data set %u: its name does not exist", row);
		for (uint32_t i = 0; i < DATA_PLACES_MAX; i++)
			if (!name_ok(f, d->place[i]))
				return WRONG("data set %u: a place does not exist", row);
	}
	for (uint32_t row = 1; row <= f->transfers.count; row++) {
		const struct transfer *t = table_get(&f->transfers, row);

		if (!t->from.v || !name_ok(f, t->from) || !t->to.v || !name_ok(f, t->to) ||
		    t->micro_per_gb < -1 || t->micro_per_gb > TRANSFER_PRICE_MAX ||
		    t->mbps > RATE_MAX_MBPS)
			return WRONG("transfer %u: its places or figures are wrong", row);
	}
	return 0;
}

static uint32_t pool_nodes_there(const struct facts *f, const struct pool *pool)
{
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		count += node->capacity == CAPACITY_SPOT && name_same(node->model, pool->model) &&
			 name_same(node->domain[0], pool->place) && node->state != NODE_DOWN &&
			 node->state != NODE_GONE;
	}
	return count;
}

static int check_pools(const struct facts *f, struct err *err)
{
	if (f->pools.count > POOLS_MAX)
		return WRONG("more pools of spot nodes than rows for them");
	for (uint32_t row = 1; row <= f->pools.count; row++) {
		const struct pool *p = table_get(&f->pools, row);

		if (!name_ok(f, p->model) || !name_ok(f, p->place) || p->there_ms < 0 ||
		    p->away_ms < 0)
			return WRONG("pool %u of spot nodes: its names or times are wrong", row);
		if (p->nodes_there != pool_nodes_there(f, p))
			return WRONG("pool %u of spot nodes: it counts %u nodes that are there",
				     row, p->nodes_there);
	}
	return 0;
}

static int check_booking_references(const struct facts *f, struct err *err)
{
	if (f->bookings.count > BOOKINGS_MAX)
		return WRONG("more reservations in advance than rows for them");
	for (uint32_t row = 1; row <= f->bookings.count; row++) {
		const struct booking *b = booking_get(f, row);

		if (!b->name.v)
			continue;
		if (!name_ok(f, b->name) || !name_ok(f, b->model) || !name_ok(f, b->user) ||
		    !name_ok(f, b->team) || !row_ok(&f->queues, b->queue.v) ||
		    (!b->queue.v && !b->user.v && !b->team.v) || b->from_ms < 0 ||
		    b->to_ms <= b->from_ms || !row_ok(&f->texts, b->reason.v))
			return WRONG("reservation %u in advance: its name, queue or time is wrong",
				     row);
		for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++)
			if (!id_exists(&f->nodes, b->node[i]))
				return WRONG("reservation %u in advance: a node does not exist",
					     row);
	}
	return 0;
}

/* Bits of rows that are free would name another mask one day. */
static bool mask_bits_ok(const struct facts *f, const struct node *node)
{
	for (uint32_t row = 1; row <= MASKS_MAX; row++)
		if (node_is_in(node, row) && (row > f->masks.count || !mask_get(f, row)->name.v))
			return false;
	return true;
}

static int check_mask_references(const struct facts *f, struct err *err)
{
	if (f->masks.count > MASKS_MAX)
		return WRONG("more masks of nodes than rows for them");
	for (uint32_t row = 1; row <= f->masks.count; row++) {
		const struct node_mask *mask = mask_get(f, row);

		if (!name_ok(f, mask->name) || !row_ok(&f->texts, mask->why.v) ||
		    (!mask->name.v && mask->why.v) ||
		    (mask->name.v && facts_mask_find(f, mask->name) != row))
			return WRONG("mask %u of nodes: its name or reason is wrong", row);
	}
	for (uint32_t id = 1; id <= f->nodes.count; id++)
		if (!mask_bits_ok(f, node_get(f, (struct node_id){ id })))
			return WRONG("node %u is in a mask that does not exist", id);
	return 0;
}

static int check_reservation_references(const struct facts *f, struct err *err)
{
	if (f->reservation_count > f->reservations.count)
		return WRONG("more reservations than rows");
	for (uint32_t row = 1; row <= f->reservation_count; row++) {
		const struct reservation_fact *r = reservation_get(f, row);

		if (!id_exists(&f->jobs, r->job) || !row_ok(&f->jobs, r->waits_for) || !r->first ||
		    !row_ok(&f->promises, r->first))
			return WRONG("reservation %u: its job or place does not exist", row);
		if (row > 1 && reservation_get(f, row - 1)->job >= r->job)
			return WRONG("reservations %u and %u are not in the order of their jobs",
				     row - 1, row);
	}
	return 0;
}

int facts_check_references(const struct facts *f, struct err *err)
{
	int result = check_cluster_references(f, err);

	if (!result && (f->job_ids != f->jobs.count || f->attempt_ids != f->attempts.count ||
			f->body_ids != f->bodies.count))
		result = WRONG("numbers of jobs, attempts or submissions were given without a row");

	if (!result)
		result = check_fabric(f, err);
	if (!result)
		result = check_queue_tree(f, err);
	if (!result)
		result = check_people_references(f, err);
	if (!result)
		result = check_job_references(f, err);
	if (!result)
		result = check_attempt_references(f, err);
	if (!result)
		result = check_reservation_references(f, err);
	if (!result)
		result = check_booking_references(f, err);
	if (!result)
		result = check_mask_references(f, err);
	if (!result)
		result = check_zones(f, err);
	if (!result)
		result = check_pasts(f, err);
	if (!result)
		result = check_data(f, err);
	if (!result)
		result = check_pools(f, err);
	return result;
}

/* --- look-ups -------------------------------------------------------------------------------------------- */

static int check_bearers(const struct facts *f, struct err *err)
{
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		struct name_id name = node_get(f, (struct node_id){ id })->name;

		if (name.v && facts_node_find(f, facts_name(f, name)).v != id)
			return WRONG("node %u is not found by its name", id);
	}
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *queue = queue_get(f, (struct queue_id){ id });

		if (facts_queue_find(f, facts_name(f, queue->name)).v != (queue->removed ? 0 : id))
			return WRONG("queue %u is not found by its name", id);
	}
	for (uint32_t id = 1; id <= f->teams.count; id++) {
		const struct team *team = table_get(&f->teams, id);

		if (facts_team_find(f, facts_name(f, team->name)) != (team->removed ? 0 : id))
			return WRONG("team %u is not found by its name", id);
	}
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);
		const uint32_t found = facts_user_find(f, facts_name(f, user->name));

		if (user->removed ? found && found <= id : found != id)
			return WRONG("user %u is not found by its name", id);
	}
	for (uint32_t id = 1; id <= f->tokens.count; id++)
		if (facts_token_find(
			    f,
			    facts_name(f, ((const struct token *)table_get(&f->tokens, id))->id)) !=
		    id)
			return WRONG("token %u is not found by its name", id);
	return 0;
}

/* What waits, by user, adds up to all that waits. */
static int check_waiting(const struct facts *f, struct err *err)
{
	uint64_t by_user = 0, jobs = 0;

	for (uint32_t id = 1; id <= f->names.count; id++) {
		const struct name *name = table_get(&f->names, id);
		uint32_t in_queues = 0;

		for (uint32_t row = name->waiting; row;) {
			const struct waiting *w = table_get(&f->waitings, row);

			in_queues += w->jobs;
			row = w->next;
		}
		if (in_queues != name->waiting_jobs)
			return WRONG("jobs of %s that wait are not counted by queue", name->text);
		by_user += name->waiting_jobs;
	}
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		jobs += job->user.v && job_state_waits(job->state);
	}
	return jobs == by_user ? 0 : WRONG("jobs that wait are not counted by user");
}

static int check_shapes(const struct facts *f, struct err *err)
{
	for (uint32_t id = 1; id <= f->shapes.count; id++) {
		const struct shape *shape = shape_get(f, (struct shape_id){ id });

		if (shape_is_part(shape) &&
		    (shape->gpus != 1 || shape->gpu_part > GPU_SHARE - !shape->slice ||
		     (shape->gpu_part && shape->gpu_part_mib)))
			return WRONG("shape %u: its part of a GPU makes no sense", id);
		if (shape->slice && !shape->gpu_part)
			return WRONG("shape %u: its slice is no part of a GPU", id);
		if (!shape_roles_are_right(shape))
			return WRONG("shape %u: its roles make no sense", id);
	}
	return 0;
}

static int check_lookups(const struct facts *f, struct err *err)
{
	uint32_t keyed = 0;

	if (!facts_lookups_are_right(f))
		return WRONG("a look-up holds a row in the wrong chain, twice or not at all");
	for (uint32_t id = 1; id <= f->names.count; id++)
		if (facts_name_find(f, facts_name(f, (struct name_id){ id })).v != id)
			return WRONG("name %u is not found by its text", id);
	for (uint32_t id = 1; id <= f->shapes.count; id++)
		if (facts_shape_find(f, shape_get(f, (struct shape_id){ id })).v != id)
			return WRONG("shape %u is not found by its content", id);
	for (uint32_t id = 1; id <= f->bodies.count; id++) {
		const struct body *body = table_get(&f->bodies, id);

		keyed += body->keyed;
		if (body->keyed && facts_key_find(f, body->client_key).v < body->job)
			return WRONG("submission %u is not found by its client key", id);
	}
	if (f->name_slots.count != f->names.count || f->shape_slots.count != f->shapes.count ||
	    f->keyed != keyed)
		return WRONG("a look-up has not one slot per row");
	return check_bearers(f, err);
}

/* Each likeness in its set, once. */
static int check_likes(const struct facts *f, struct err *err)
{
	for (uint32_t row = 1; row <= f->likes.count; row++) {
		const struct like *like = table_get(&f->likes, row);
		uint32_t first = (row - 1) / LIKE_WAYS * LIKE_WAYS + 1;

		if (like->key < 0 || (like->key && like->key % LIKE_SETS != first / LIKE_WAYS))
			return WRONG("run times of like jobs: row %u is in another's set", row);
		for (uint32_t other = first; like->key && other < row; other++)
			if (((const struct like *)table_get(&f->likes, other))->key == like->key)
				return WRONG("run times of like jobs: rows %u and %u are the same",
					     other, row);
	}
	return 0;
}

/* --- rows and their owners --------------------------------------------------------------------------------- */

/* Lengths of lists are bounded by their table: a circle shows as a list that is too long. */
static uint64_t promises_count(const struct facts *f, uint32_t first)
{
	uint64_t count = 0;

	for (uint32_t row = first; row && count <= f->promises.count; count++)
		row = ((const struct promise *)table_get(&f->promises, row))->next;
	return count;
}

static uint64_t run_rows(uint32_t tasks)
{
	uint64_t rows = 1;

	while (rows < tasks)
		rows *= 2;
	return rows;
}

static int check_tasks_owned(const struct facts *f, struct err *err)
{
	uint64_t rows = 0;

	for (uint32_t id = 1; id <= f->attempts.count; id++) {
		const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });

		rows += attempt->first_task ? run_rows(attempt->tasks) : 0;
	}
	for (uint32_t i = 0; i < 16; i++) {
		uint32_t row = f->free_tasks[i];

		for (; row && rows <= f->tasks.count; rows += UINT64_C(1) << i)
			row = ((const struct task *)table_get(&f->tasks, row))->reports;
	}
	return rows == f->tasks.count ? 0
				      : WRONG("task rows: %u exist, %llu have an owner",
					      f->tasks.count, (unsigned long long)rows);
}

/* Free rows of dependencies, and of checkpoints; a circle shows as too many. */
static uint64_t depends_free(const struct facts *f)
{
	uint64_t count = 0;

	for (uint32_t row = f->free_depends; row && count <= f->depends.count; count++)
		row = ((const struct depend *)table_get(&f->depends, row))->next;
	return count;
}

static uint64_t checkpoints_free(const struct facts *f)
{
	uint64_t count = 0;

	for (uint32_t row = f->free_checkpoints; row && count <= f->checkpoints.count;
	     count += CHECKPOINTS_KEPT)
		row = ((const struct checkpoint *)table_get(&f->checkpoints, row))->attempt;
	return count;
}

static int check_rows_owned(const struct facts *f, struct err *err)
{
	uint64_t promises = promises_count(f, f->free_promises), checkpoints = checkpoints_free(f),
		 depends = depends_free(f);

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		promises += promises_count(f, job->promise);
		checkpoints += job->checkpoint ? CHECKPOINTS_KEPT : 0;
		for (uint32_t row = job->depends; row && depends <= f->depends.count; depends++) {
			const struct depend *depend = table_get(&f->depends, row);

			if (depend->owner != id)
				return WRONG("job %u: a dependency of its list is job %u's", id,
					     depend->owner);
			row = depend->next;
		}
	}
	for (uint32_t row = 1; row <= f->reservation_count; row++) {
		const struct reservation_fact *r = reservation_get(f, row);

		if (promises_count(f, r->first) != r->tasks)
			return WRONG("job %u: its reservation has a wrong count of tasks", r->job);
		if (!job_state_waits(job_get(f, (struct job_id){ r->job })->state))
			return WRONG("job %u has a reservation and does not wait", r->job);
		promises += r->tasks;
	}
	if (promises != f->promises.count || checkpoints != f->checkpoints.count ||
	    depends != f->depends.count)
		return WRONG("promise, checkpoint or dependency rows without an owner");
	return check_tasks_owned(f, err);
}

static uint64_t texts_free(const struct facts *f)
{
	uint64_t count = 0;

	for (uint32_t row = f->free_texts; row && count <= f->texts.count; count++)
		row = ((const struct text *)table_get(&f->texts, row))->next;
	return count;
}

static int check_texts(const struct facts *f, struct err *err)
{
	uint64_t count = texts_free(f);

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		count += node->reason.v != 0;
		count += node->numa_cpus.v != 0;
		count += node->window_reason.v != 0;
	}
	for (uint32_t row = 1; row <= f->gpus.count; row++)
		count += ((const struct gpu_record *)table_get(&f->gpus, row))->reason.v != 0;
	for (uint32_t id = 1; id <= f->jobs.count; id++)
		count += job_get(f, (struct job_id){ id })->reason.v != 0;
	for (uint32_t id = 1; id <= f->attempts.count; id++)
		count += attempt_get(f, (struct attempt_id){ id })->reason.v != 0;
	for (uint32_t id = 1; id <= f->queues.count; id++)
		count += queue_get(f, (struct queue_id){ id })->calendar.v != 0;
	for (uint32_t row = 1; row <= f->bookings.count; row++)
		count += booking_get(f, row)->reason.v != 0;
	for (uint32_t row = 1; row <= f->masks.count; row++)
		count += mask_get(f, row)->why.v != 0;
	for (uint32_t row = 1; row <= f->checkpoints.count; row++) {
		const struct checkpoint *checkpoint = table_get(&f->checkpoints, row);

		if (!row_ok(&f->texts, checkpoint->why.v) ||
		    (checkpoint->why.v && !checkpoint->is_void))
			return WRONG(
				"the reason of a checkpoint does not exist, or it is not void");
		count += checkpoint->why.v != 0;
	}
	return count == f->texts.count ? 0 : WRONG("reasons without an owner, or with two");
}

static int check_dependents(const struct facts *f, struct err *err)
{
	uint64_t count = 0;

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		for (uint32_t row = job_get(f, (struct job_id){ id })->dependents;
		     row && count <= f->depends.count; count++) {
			const struct depend *depend = table_get(&f->depends, row);

			if (depend->job != id)
				return WRONG("job %u: its list of dependents holds one of job %u",
					     id, depend->job);
			row = depend->next_dependent;
		}
	}
	return count + depends_free(f) == f->depends.count
		       ? 0
		       : WRONG("not every dependency is known to the job that it waits for");
}

/* --- jobs and attempts -------------------------------------------------------------------------------------- */

static int check_job(const struct facts *f, struct job_id id, struct err *err)
{
	const struct job *job = job_get(f, id);
	const struct attempt *attempt;

	if (job->state == JOB_NONE)
		return 0;
	if (job_is_live(job)) {
		attempt = attempt_get(f, job->attempt);
		if (attempt->job.v != id.v || attempt->state == ATTEMPT_OVER ||
		    job->last_attempt.v != job->attempt.v)
			return WRONG("job %u: attempt %u is not its live one", id.v,
				     job->attempt.v);
		if (job->state != job_live_state(attempt))
			return WRONG("job %u is %s, but its attempt says %s", id.v,
				     job_state_name(job->state),
				     job_state_name(job_live_state(attempt)));
	} else if (job_state_waits(job->state)) {
		if (job->state != job_waiting_state(f, job))
			return WRONG("job %u is %s, but waits as %s", id.v,
				     job_state_name(job->state),
				     job_state_name(job_waiting_state(f, job)));
	} else if (job_state_is_final(job->state) ? job->promise : !job->last_attempt.v) {
		return WRONG("job %u is %s without an attempt", id.v, job_state_name(job->state));
	}
	return 0;
}

static int check_attempt(const struct facts *f, struct attempt_id id, struct err *err)
{
	const struct attempt *attempt = attempt_get(f, id);
	uint32_t ready = 0, started = 0, exited = 0, left = 0, leaving = 0;
	int64_t parts = 0;
	bool newest;

	if (attempt->state == ATTEMPT_FREE)
		return 0;
	if (attempt->previous &&
	    attempt_get(f, (struct attempt_id){ attempt->previous })->job.v != attempt->job.v)
		return WRONG("attempt %u: the one before it is another job's", id.v);
	newest = job_get(f, attempt->job)->last_attempt.v == id.v;

	if (attempt->state != ATTEMPT_OVER && job_get(f, attempt->job)->attempt.v != id.v)
		return WRONG("attempt %u is not over, but job %u has another one", id.v,
			     attempt->job.v);
	if (newest != (attempt->first_task != 0))
		return WRONG(
			"attempt %u: it has tasks though it is not the newest, or the other way",
			id.v);
	for (uint32_t rank = 0; newest && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		ready += task->was_ready;
		started += task->was_started;
		if ((task->state == TASK_RUNNING && !task->was_started) ||
		    (task->state == TASK_READY && !task->was_ready))
			return WRONG("attempt %u, rank %u: it is not counted as what it is", id.v,
				     rank);
		exited += task->state == TASK_EXITED || task->state == TASK_LEFT;
		left += task->state == TASK_LEFT;
		leaving += task->leaving && task->state != TASK_LEFT;
		parts += task->gpu_part;
	}
	if (newest && parts != attempt->parts_share)
		return WRONG("attempt %u: its tasks hold other parts of GPUs than it says", id.v);
	if (newest &&
	    (exited != attempt->exited || ready != attempt->ready || started != attempt->started ||
	     attempt->left != left || attempt->leaving != leaving || left >= attempt->tasks))
		return WRONG("attempt %u: its counts of tasks are wrong", id.v);
	return 0;
}

static int check_bodies(const struct facts *f, struct err *err)
{
	uint64_t jobs = 0, there = 0, ended = 0, over = 0, succeeded = 0, well = 0;

	for (uint32_t id = 1; id <= f->bodies.count; id++) {
		const struct body *body = table_get(&f->bodies, id);

		jobs += body->jobs;
		ended += body->succeeded + body->failed;
		succeeded += body->succeeded;
	}
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		uint8_t state = job_get(f, (struct job_id){ id })->state;

		there += state != JOB_NONE;
		over += state != JOB_NONE && job_state_is_final(state);
		well += state == JOB_SUCCEEDED;
	}
	return jobs == there && ended == over && succeeded == well
		       ? 0
		       : WRONG("the submissions do not have as many jobs, or ended ones, as there are");
}

/* What a queue has in use for its past is what its attempts hold, best-effort ones aside. */
static int check_past(const struct facts *f, struct err *err)
{
	struct arena memory;
	int64_t *held;
	int result = 0;

	arena_init(&memory, ((size_t)f->queues.count + 1) * sizeof(*held) + 4096);
	held = arena_new_array(&memory, int64_t, (size_t)f->queues.count + 1);
	for (uint32_t id = 1; id <= f->attempts.count; id++) {
		const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });
		const struct job *job;

		if (!attempt->job.v)
			continue;
		job = job_get(f, attempt->job);
		if (job->attempt.v == id && job->tier != TIER_BEST_EFFORT)
			held[job->queue.v] += attempt_share(f, attempt);
	}
	for (uint32_t id = 1; !result && id <= f->queues.count; id++)
		if (queue_get(f, (struct queue_id){ id })->past_rate_share != held[id])
			result = WRONG("queue %u: its past use does not follow its attempts", id);
	arena_deinit(&memory);
	return result;
}

int facts_check(const struct facts *f, struct err *err)
{
	int result = facts_check_references(f, err);

	if (!result)
		result = check_shapes(f, err);
	if (!result)
		result = check_waiting(f, err);
	if (!result)
		result = check_lookups(f, err);
	if (!result)
		result = check_rows_owned(f, err);
	if (!result)
		result = check_dependents(f, err);
	if (!result)
		result = check_bodies(f, err);
	if (!result)
		result = check_texts(f, err);
	if (!result)
		result = check_likes(f, err);
	if (!result)
		result = check_past(f, err);
	for (uint32_t id = 1; !result && id <= f->jobs.count; id++)
		result = check_job(f, (struct job_id){ id }, err);
	for (uint32_t id = 1; !result && id <= f->attempts.count; id++)
		result = check_attempt(f, (struct attempt_id){ id }, err);
	return result;
}

void facts_verify(const struct facts *f)
{
	struct err err;

#define T(member, type) table_verify(&f->member);
	FACTS_TABLES(T)
#undef T
	if (facts_check(f, &err) < 0)
		check_failed(__FILE__, __LINE__, err.text);
}
