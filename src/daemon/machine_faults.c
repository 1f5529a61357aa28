/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of this machine: a full disk, processes that can't be made, file watches that are used up (engine/fault.def). A start
 * that fails for one is no fault of its job: the job waits again, and keeps its retries. So that it is not started once more in
 * the same moment, and so that people see why nothing starts, the machine's nodes are cordoned with the reason until a task can
 * be prepared again.
 *
 * Whether one can be is tried each second, by the steps of a start (`try_start` of the engine). That can be wrong (a limit that only the task
 * itself reaches), which the next start shows: each time that fails soon after, the pause before the next try is doubled.
 */
#include <string.h>

#include "base/log.h"
#include "daemon/state.h"
#include "store/io.h"

#define ROOM_BYTES ((int64_t)16 << 20)
enum { LOOK_MS = 1000, PAUSE_MAX_MS = 60000, FORGET_MS = 5 * 60000, ANSWER_MS = 60000 };

/* --- the nodes --- */

static void node_done(void *context, const struct command_reply *reply)
{
	(void)context;
	if (reply->err.code != ERR_NONE)
		log_line(LOG_WARN, "the state of a node could not be set: %s", reply->err.text);
}

/* The fault for which the daemon has cordoned it; NONE: it has not. */
static enum engine_fault fault_of_node(const struct facts *facts, const struct node *node)
{
	const char *reason = facts_text(facts, node->reason);
	if (node->state == NODE_CORDONED)
		for (int i = ENGINE_FAULT_NONE + 1; i < ENGINE_FAULTS; i++)
			if (strcmp(reason, fault_reason((enum engine_fault)i)) == 0)
				return (enum engine_fault)i;
	return ENGINE_FAULT_NONE;
}

/* A person may have cordoned it meanwhile, or set it ready. */
static bool still_applies(const struct command *command, const struct facts *facts)
{
	const struct event_node_state *e = &command->event.node_state;
	const struct node *node = node_get(facts, (struct node_id){ (uint32_t)e->node });
	return e->state == NODE_READY ? fault_of_node(facts, node) != ENGINE_FAULT_NONE
				      : node->state == NODE_READY;
}

/* All nodes are this machine's: no other engine tells of faults. NONE: those that were cordoned for one are ready. */
static void set_nodes(struct daemon *d, enum engine_fault fault)
{
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	for (uint32_t id = 1; id <= facts->nodes.count; id++) {
		const struct node *node = node_get(facts, (struct node_id){ id });
		if (fault ? node->state != NODE_READY : !fault_of_node(facts, node))
			continue;
		struct event event = event_make(EVENT_NODE_STATE, 0, "engine");
		event.node_state.node = id;
		event.node_state.state = fault ? NODE_CORDONED : NODE_READY;
		event.node_state.reason = fault_reason(fault);
		struct command *command = command_create(&event, NULL, 0);
		command->applies = still_applies;
		command->done = node_done;
		d->backend.send(d, command);
	}
	publication_release(publication);
}

/* --- the fault --- */

void machine_faults_note(struct daemon *d, enum engine_fault fault)
{
	if (!atomic_exchange(&d->faults.fault, (int)fault))
		log_line(LOG_ERROR, "this machine: %s; remedy: %s", fault_reason(fault),
			 fault_remedy(fault));
	set_nodes(d, fault);
	mailbox_poke(&d->engine_box);
}

void machine_faults_recall(struct daemon *d, const struct facts *facts)
{
	for (uint32_t id = 1; d->engine_ops->try_start && id <= facts->nodes.count; id++) {
		const enum engine_fault fault =
			fault_of_node(facts, node_get(facts, (struct node_id){ id }));
		if (fault)
			atomic_store(&d->faults.fault, (int)fault);
	}
	d->faults.tried_ms = 0; /* the engine that was asked is gone */
}

void machine_faults_tried(void *daemon, const struct err *err)
{
	struct daemon *d = daemon;
	const enum engine_fault fault = fault_of(err);
	atomic_store(&d->faults.answer, err ? ANSWER_BAD : ANSWER_GOOD);
	if (fault && atomic_load(&d->faults.fault)) /* it may be another one by now */
		atomic_store(&d->faults.fault, (int)fault);
	mailbox_poke(&d->engine_box);
}

static bool has_room(struct daemon *d)
{
	struct io *io = daemon_io(d);
	return !atomic_load(&d->full) && io->free_bytes(io, d->folder) >= ROOM_BYTES;
}

static void over(struct daemon *d, int64_t now)
{
	struct machine_faults *f = &d->faults;
	log_line(LOG_INFO, "tasks can be started on this machine again: waiting jobs are");
	f->look_ms = 0;
	f->back_ms = now;
	atomic_store(&f->fault, ENGINE_FAULT_NONE);
	set_nodes(d, ENGINE_FAULT_NONE);
}

/* When the next try is due after a fault: later, where the last one ended a short time ago. */
static void first_look(struct machine_faults *f, int64_t now)
{
	const bool again = f->back_ms && now - f->back_ms < FORGET_MS;
	f->pause_ms = again ? f->pause_ms * 2 : LOOK_MS;
	if (f->pause_ms > PAUSE_MAX_MS)
		f->pause_ms = PAUSE_MAX_MS;
	f->look_ms = now + f->pause_ms;
}

int64_t machine_faults_look(struct daemon *d)
{
	struct machine_faults *f = &d->faults;
	const int64_t now = clock_boot_ms();
	if (!atomic_load(&f->fault))
		return -1;
	if (!f->look_ms)
		first_look(f, now);
	if (f->tried_ms && atomic_load(&f->answer) == ANSWER_GOOD) {
		f->tried_ms = 0;
		over(d, now);
		return -1;
	}
	if (atomic_load(&f->answer) != ANSWER_NONE || now - f->tried_ms >= ANSWER_MS)
		f->tried_ms = 0;
	if (now >= f->look_ms) {
		f->look_ms = now + LOOK_MS;
		if (!f->tried_ms && has_room(d)) {
			f->tried_ms = now;
			atomic_store(&f->answer, ANSWER_NONE);
			d->engine_ops->try_start(d->engine);
		}
	}
	return f->look_ms - now;
}

void machine_faults_status(struct daemon *d, struct api_status *ret)
{
	const enum engine_fault fault = (enum engine_fault)atomic_load(&d->faults.fault);
	if (fault)
		snprintf(ret->starts_problem, sizeof(ret->starts_problem),
			 "this machine: %s; remedy: %s", fault_reason(fault), fault_remedy(fault));
}
