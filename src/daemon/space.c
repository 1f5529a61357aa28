/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A start that fails because the disk is full is no fault of its job: the job waits again, and keeps its retries. So
 * that it is not started once more in the same moment, and so that people see why nothing starts, the machine's nodes
 * are cordoned with the reason until there is room.
 *
 * Whether there is room again is asked of the file system. That can be wrong (a share used up, no inodes left), which
 * only the next start shows: each time that fails soon after, the pause is doubled.
 */
#include <string.h>

#include "base/log.h"
#include "daemon/state.h"
#include "store/io.h"

#define REASON "its disk is full: nothing is started until there is room"
#define ROOM_BYTES ((int64_t)16 << 20)
enum { LOOK_MS = 1000, PAUSE_MAX_MS = 60000, FORGET_MS = 5 * 60000 };

static void node_done(void *context, const struct command_reply *reply)
{
	(void)context;
	if (reply->err.code != ERR_NONE)
		log_line(LOG_WARN, "the state of a node could not be set: %s", reply->err.text);
}

static bool is_ours(const struct facts *facts, const struct node *node)
{
	return node->state == NODE_CORDONED && strcmp(facts_text(facts, node->reason), REASON) == 0;
}

/* All nodes are this machine's: the local engine is the only one. */
static void set_nodes(struct daemon *d, bool stop)
{
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	for (uint32_t id = 1; id <= facts->nodes.count; id++) {
		const struct node *node = node_get(facts, (struct node_id){ id });
		if (stop ? node->state != NODE_READY : !is_ours(facts, node))
			continue;
		struct event event = event_make(EVENT_NODE_STATE, 0, "engine");
		event.node_state.node = id;
		event.node_state.state = stop ? NODE_CORDONED : NODE_READY;
		event.node_state.reason = stop ? REASON : "";
		struct command *command = command_create(&event, NULL, 0);
		command->done = node_done;
		d->backend.send(d, command);
	}
	publication_release(publication);
}

void space_lacks(struct daemon *d)
{
	if (!atomic_exchange(&d->space.lacks, true))
		log_line(
			LOG_ERROR,
			"the disk of %s is too full to start anything: jobs wait until there is room",
			d->folder);
	set_nodes(d, true);
	mailbox_poke(&d->engine_box);
}

void space_recall(struct daemon *d, const struct facts *facts)
{
	for (uint32_t id = 1; id <= facts->nodes.count; id++)
		if (is_ours(facts, node_get(facts, (struct node_id){ id })))
			atomic_store(&d->space.lacks, true);
}

int64_t space_look(struct daemon *d)
{
	struct space *space = &d->space;
	int64_t now = clock_boot_ms();
	struct io *io = daemon_io(d);
	if (!atomic_load(&space->lacks))
		return -1;
	if (!space->look_ms) {
		bool again = space->back_ms && now - space->back_ms < FORGET_MS;
		space->pause_ms = again ? space->pause_ms * 2 : LOOK_MS;
		if (space->pause_ms > PAUSE_MAX_MS)
			space->pause_ms = PAUSE_MAX_MS;
		space->look_ms = now + space->pause_ms;
	}
	if (now >= space->look_ms) {
		if (!atomic_load(&d->full) && io->free_bytes(io, d->folder) >= ROOM_BYTES) {
			log_line(LOG_INFO, "the disk of %s has room: waiting jobs are started",
				 d->folder);
			space->look_ms = 0;
			space->back_ms = now;
			atomic_store(&space->lacks, false);
			set_nodes(d, false);
			return -1;
		}
		space->look_ms = now + LOOK_MS;
	}
	return space->look_ms - now;
}

void space_status(struct daemon *d, struct api_status *ret)
{
	if (atomic_load(&d->space.lacks))
		snprintf(
			ret->starts_problem, sizeof(ret->starts_problem),
			"the disk of the data folder is full: no work is started until there is room");
}
