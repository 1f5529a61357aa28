/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs reserved in advance for jobs of a queue, a user, a team. */
#include <string.h>
#include "api/call.h"
#include "api/order.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/scheduling/view/view.h"

/* Jobs that run there and have to make room when it begins, as far as is known now. */
static void moves_add(struct buf *out, const struct facts *f, const struct booking *b)
{
	out_list(out, "moves");
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });
		const struct attempt *attempt;
		int64_t limit_ms;
		bool there = false;

		if (!job->attempt.v || !booking_moves(f, b, job))
			continue;
		attempt = attempt_get(f, job->attempt);
		limit_ms = job_limit_end_ms(f, job);
		if (limit_ms && limit_ms <= b->from_ms)
			continue;
		for (uint32_t i = 0; i < attempt->tasks && !there; i++) {
			const struct task *task = table_get(&f->tasks, attempt->first_task + i);

			there = task_holds(task) && booking_holds(b, task);
		}
		if (there)
			out_int(out, NULL, id);
	}
	out_end(out, ']');
}

static uint32_t mask_count(uint32_t mask)
{
	return (uint32_t)__builtin_popcount(mask);
}

static void places_add(struct buf *out, const struct facts *f, const struct booking *b)
{
	out_list(out, "places");
	for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++) {
		const struct node *node = node_get(f, (struct node_id){ b->node[i] });

		out_object(out, NULL);
		out_text(out, "node", facts_name(f, node->name));
		out_text(out, "state", node_state_name(node->state));
		out_list(out, "gpus");
		for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++)
			if (b->mask[i] >> gpu & 1)
				out_int(out, NULL, gpu);
		out_end(out, ']');
		out_end(out, '}');
	}
	out_end(out, ']');
}

static void booking_add(struct buf *out, const struct facts *f, const struct booking *b)
{
	uint32_t gpus = 0;

	for (uint32_t i = 0; i < BOOKING_NODES_MAX && b->node[i]; i++)
		gpus += mask_count(b->mask[i]);
	out_object(out, NULL);
	out_text(out, "name", facts_name(f, b->name));
	out_text(out, "queue", b->queue.v ? facts_name(f, queue_get(f, b->queue)->name) : "");
	out_text(out, "user", facts_name(f, b->user));
	out_text(out, "team", facts_name(f, b->team));
	out_int(out, "from_ms", b->from_ms);
	out_int(out, "to_ms", b->to_ms);
	out_int(out, "gpus", gpus);
	out_bool(out, "whole_nodes", !b->gpus);
	out_text(out, "model", facts_name(f, b->model));
	out_text(out, "idle", b->keep ? "keep" : "lend");
	out_text(out, "reason", facts_text(f, b->reason));
	places_add(out, f, b);
	moves_add(out, f, b);
	out_end(out, '}');
}

void handle_reservation_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct named order[BOOKINGS_MAX];
	struct buf out = BUF_INIT;
	uint32_t count = 0;

	for (uint32_t row = 1; row <= f->bookings.count; row++)
		if (booking_get(f, row)->name.v)
			order[count++] =
				(struct named){ facts_name(f, booking_get(f, row)->name), row };
	named_sort(order, count);
	out_object(&out, NULL);
	out_list(&out, "reservations");
	for (uint32_t i = 0; i < count; i++)
		booking_add(&out, f, booking_get(f, order[i].id));
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

/* --- changes -------------------------------------------------------------------------------------------- */

/* As it is now; a new one begins now. */
static void booking_begin(const struct facts *f, const char *name, int64_t now_ms,
			  struct arena *arena, struct event_booking_set *e)
{
	uint32_t row = facts_booking_find(f, name);
	const struct booking *b;
	int64_t *nodes;

	e->name = name;
	e->from_ms = now_ms;
	if (!row)
		return;
	b = booking_get(f, row);
	nodes = arena_new_array(arena, int64_t, BOOKING_NODES_MAX);
	e->queue = b->queue.v ? facts_name(f, queue_get(f, b->queue)->name) : "";
	e->user = facts_name(f, b->user);
	e->team = facts_name(f, b->team);
	e->model = facts_name(f, b->model);
	e->reason = facts_text(f, b->reason);
	e->from_ms = b->from_ms;
	e->to_ms = b->to_ms;
	e->keep = b->keep;
	e->gpus = b->gpus;
	e->nodes = nodes;
	for (uint32_t i = 0; !b->gpus && i < BOOKING_NODES_MAX && b->node[i]; i++)
		nodes[e->nodes_count++] = b->node[i];
}

/* "n0,n1" as numbers of nodes. */
static int nodes_read(struct call *call, const char *list, struct event_booking_set *e,
		      struct err *err)
{
	int64_t *nodes = arena_new_array(call->arena, int64_t, BOOKING_NODES_MAX);
	char name[NAME_MAX_BYTES + 1];

	e->nodes = nodes;
	e->nodes_count = 0;
	e->gpus = 0;
	while (*list) {
		size_t size = strcspn(list, ",");
		struct node_id id;

		if (size > NAME_MAX_BYTES)
			return err_set(err, ERR_INVALID, "nodes: a name is longer than %d bytes",
				       NAME_MAX_BYTES);
		memcpy(name, list, size);
		name[size] = '\0';
		id = facts_node_find(call->facts, name);
		if (!id.v)
			return err_set(
				err, ERR_NOT_FOUND,
				"there is no node \"%s\"; `fairlead nodes` lists those there are",
				name);
		if (e->nodes_count == BOOKING_NODES_MAX)
			return err_set(err, ERR_TOO_LARGE, "nodes: more than %d",
				       BOOKING_NODES_MAX);
		nodes[e->nodes_count++] = id.v;
		list += size + (list[size] == ',');
	}
	return 0;
}

static int size_read(struct call *call, const struct conf *body, struct event_booking_set *e,
		     struct err *err)
{
	const char *nodes = "", *idle = "lend";
	bool by_gpus, by_nodes, given;
	int64_t gpus = 0;

	if (body_int(body, "gpus", 1, BOOKING_NODES_MAX * NODE_GPUS_MAX, &gpus, &by_gpus, err) <
		    0 ||
	    body_text(body, "nodes", EVENT_TEXT_MAX * 8, &nodes, &by_nodes, err) < 0 ||
	    body_text(body, "idle", 8, &idle, &given, err) < 0)
		return -(int)ERR_INVALID;
	if (by_gpus && by_nodes)
		return err_set(err, ERR_INVALID,
			       "either \"gpus\", so many, or \"nodes\", these as a whole");
	if (given && strcmp(idle, "lend") != 0 && strcmp(idle, "keep") != 0)
		return err_set(err, ERR_INVALID, "idle \"%s\": expected lend or keep", idle);
	if (given)
		e->keep = strcmp(idle, "keep") == 0;
	if (by_gpus) {
		e->gpus = gpus;
		e->nodes_count = 0;
	}
	return by_nodes ? nodes_read(call, nodes, e, err) : 0;
}

void handle_reservation_set(struct call *call)
{
	struct event event = call_event(call, EVENT_BOOKING_SET);
	struct event_booking_set *e = &event.booking_set;
	int64_t now_ms = clock_wall_ms(), end_ms = 0;
	const struct conf *body;
	struct err err = { 0 };
	bool given, to, lasts;

	booking_begin(call->facts, call->match.param[0], now_ms, call->arena, e);
	if (call_body(call, &body, &err) < 0 ||
	    body_text(body, "queue", NAME_MAX_BYTES, &e->queue, &given, &err) < 0 ||
	    body_text(body, "user", NAME_MAX_BYTES, &e->user, &given, &err) < 0 ||
	    body_text(body, "team", NAME_MAX_BYTES, &e->team, &given, &err) < 0 ||
	    body_text(body, "model", NAME_MAX_BYTES, &e->model, &given, &err) < 0 ||
	    body_text(body, "reason", EVENT_TEXT_MAX - 1, &e->reason, &given, &err) < 0 ||
	    body_moment(body, "from", now_ms, &e->from_ms, &given, &err) < 0 ||
	    body_moment(body, "to", now_ms, &e->to_ms, &to, &err) < 0 ||
	    body_moment(body, "for", e->from_ms, &end_ms, &lasts, &err) < 0 ||
	    size_read(call, body, e, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (to && lasts) {
		err_set(&err, ERR_INVALID,
			"either \"to\", when it ends, or \"for\", how long it lasts");
		call_fail(call, &err);
		return;
	}
	if (!*e->queue && !*e->user && !*e->team)
		e->queue = "default";
	if (lasts)
		e->to_ms = end_ms;
	if (!e->to_ms) {
		err_set(&err, ERR_INVALID,
			"a new reservation needs \"to\", when it ends, or \"for\", how long it lasts");
		call_fail(call, &err);
		return;
	}
	call_send(call, &event);
}

void handle_reservation_remove(struct call *call)
{
	struct event event = call_event(call, EVENT_BOOKING_ENDED);

	event.booking_ended.name = call->match.param[0];
	call_send(call, &event);
}
