/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Announced maintenance of nodes. Before it nothing is placed there that would reach into it (blocks.h); what runs there is
 * warned so that its grace ends when the window opens (attempt_drain_ms), saves, and waits again. Here the node itself is
 * closed and comes back:
 *
 *	the window opens		ready -> maintenance
 *	the window is over		maintenance -> ready; the announcement is forgotten
 *	it was called off, or moved	maintenance -> ready
 *
 * A reservation in advance is forgotten when it is over.
 *
 * A node that is cordoned, drained, down or set aside keeps that state: its way back is a person's word, or an engine's.
 */
#include "core/scheduling/pass.h"
#include "core/scheduling/admit/admit.h"

static void node_due(struct pass *pass, uint32_t id, const struct node *node)
{
	int64_t now_ms = pass->facts->now_ms;
	bool open = now_ms >= node->window_from_ms && now_ms < node->window_to_ms;
	struct event_node_state *e;

	if (node->state == NODE_MAINTENANCE && !open) {
		e = &pass_emit(pass, EVENT_NODE_STATE)->node_state;
		e->node = id;
		e->state = NODE_READY;
	} else if (node_has_window(node) && now_ms >= node->window_to_ms) {
		pass_emit(pass, EVENT_NODE_WINDOW)->node_window.node = id;
	} else if (node->state == NODE_READY && open) {
		e = &pass_emit(pass, EVENT_NODE_STATE)->node_state;
		e->node = id;
		e->state = NODE_MAINTENANCE;
		e->reason = facts_text(pass->facts, node->window_reason);
	}
	if (!node_has_window(node))
		return;
	pass_wake(pass, node->window_from_ms);
	pass_wake(pass, node->window_to_ms);
}

/* GPUs of a reservation in advance that failed are replaced: of one in a pass, the first by name, as the next must know of it. */
static void bookings_mend(struct pass *pass)
{
	const struct facts *facts = pass->facts;
	struct err err;
	const struct admission a = {
		.facts = facts, .now_ms = facts->now_ms, .arena = pass->arena, .err = &err
	};
	struct event_booking_set first = { .name = "" }, mended;

	for (uint32_t row = 1; row <= facts->bookings.count; row++) {
		const struct booking *b = booking_get(facts, row);

		if (!b->name.v || b->to_ms <= facts->now_ms || !booking_has_lost(facts, row) ||
		    (*first.name && strcmp(facts_name(facts, b->name), first.name) > 0))
			continue;
		if (booking_mend(&a, pass->view, row, &mended))
			first = mended;
	}
	if (!*first.name)
		return;
	pass_emit(pass, EVENT_BOOKING_SET)->booking_set = first;
	pass->more = true;
}

static void bookings_due(struct pass *pass)
{
	for (uint32_t row = 1; row <= pass->facts->bookings.count; row++) {
		const struct booking *b = booking_get(pass->facts, row);

		if (!b->name.v)
			continue;
		if (b->to_ms <= pass->facts->now_ms)
			pass_emit(pass, EVENT_BOOKING_ENDED)->booking_ended.name =
				facts_name(pass->facts, b->name);
		pass_wake(pass, b->from_ms);
		pass_wake(pass, b->to_ms);
	}
}

void maintenance_due(struct pass *pass)
{
	for (uint32_t rank = 0; pass->view->draining && rank < pass->view->space.node_count;
	     rank++) {
		uint32_t id = space_at(&pass->view->space, rank)->node;
		const struct node *node = node_get(pass->facts, (struct node_id){ id });

		if (node_has_window(node) || node->state == NODE_MAINTENANCE)
			node_due(pass, id, node);
	}
	bookings_due(pass);
	bookings_mend(pass);
}

enum stop_why attempt_leave_why(const struct pass *pass, const struct attempt *attempt)
{
	const struct job *job = job_get(pass->facts, attempt->job);
	int64_t tell_ms = attempt_window_ms(pass->facts, job, attempt);

	return tell_ms && tell_ms <= pass->facts->now_ms ? STOP_WINDOW : STOP_NODE;
}

const char *attempt_leave_text(struct pass *pass, const struct attempt *attempt)
{
	const char *drained = "";

	if (attempt_leave_why(pass, attempt) == STOP_WINDOW)
		return "its window closes";
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&pass->facts->tasks, attempt->first_task + i);
		const struct node *node = node_get(pass->facts, task->node);

		if (task_holds(task) && node->state == NODE_DRAINING && !*drained)
			drained = facts_text(pass->facts, node->reason);
		if (!task_holds(task) || node->state == NODE_DRAINING)
			continue;
		if (node_has_window(node))
			return arena_printf(pass->arena, "node %s has maintenance",
					    facts_name(pass->facts, node->name));
		for (uint32_t row = 1; row <= pass->facts->bookings.count; row++) {
			const struct booking *b = booking_get(pass->facts, row);

			if (booking_moves(pass->facts, b, job_get(pass->facts, attempt->job)) &&
			    booking_holds(b, task))
				return arena_printf(pass->arena, "its GPUs are reserved: %s",
						    facts_name(pass->facts, b->name));
		}
	}
	return *drained ? arena_printf(pass->arena, "its node is being drained: %.150s", drained)
			: "its node is being drained";
}
