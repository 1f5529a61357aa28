/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: hub->lock, then the server's. `closed` of a stream takes hub->lock, so whoever holds it may use every stream of
 * the list. History is read without it.
 *
 *	CATCHING  a worker leads it through the history
 *	WAITING   it reads slowly: the next worker comes when there is room
 *	LIVE      gets every batch
 */
#include "api/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "api/history_page.h"
#include "base/thread.h"
#include "base/wait.h"
#include "base/check.h"
#include "base/clock.h"

enum { PAGE_ROWS = 500, STREAM_LIMIT = 8 << 20 };
enum sub_state { CATCHING, WAITING, LIVE };

struct subscriber {
	struct subscriber *next, *previous;
	struct event_hub *hub;
	struct http_stream *stream; /* NULL: closed */
	uint64_t cursor; /* the newest event it has */
	uint64_t head; /* the newest event there was when it came, also of an earlier daemon */
	enum event_view view;
	enum sub_state state;
	bool lost;
};

struct pending {
	uint64_t seq;
	size_t at[2];
}; /* where an event begins in both renditions */

struct event_hub {
	const struct api_backend *backend;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool stopping;
	struct subscriber *subscribers;
	uint32_t clients, catching;
	uint64_t last_seq, flushed_seq;
	struct buf batch[2]; /* by enum event_view */
	struct pending *events;
	size_t event_count, event_room;
	int64_t batch_ms; /* when the first event of the batch came */
	int64_t beat_ms; /* of the last heartbeat */
};

static void frame_add(struct buf *out, uint64_t seq, int64_t time_ms, uint32_t kind,
		      const char *text, size_t size, enum event_view view)
{
	const struct event_info *info = event_info(kind);
	const size_t before = out->size;

	buf_addf(out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)seq,
		 info ? info->name : "unknown");
	if (!event_add(out, seq, time_ms, kind, text, size, view)) {
		out->size = before;
		return;
	}
	buf_adds(out, "\n\n");
}

/* --- from the daemon -------------------------------------------------------------------------------------------------- */

static struct pending *pending_add(struct event_hub *hub)
{
	if (hub->event_count == hub->event_room) {
		hub->event_room = hub->event_room ? hub->event_room * 2 : 256;
		hub->events = realloc(hub->events, hub->event_room * sizeof *hub->events);
		CHECK(hub->events);
	}
	return &hub->events[hub->event_count++];
}

void event_hub_publish(struct event_hub *hub, const struct event *event, const char *text,
		       size_t size)
{
	struct pending *p;

	pthread_mutex_lock(&hub->lock);
	hub->last_seq = event->seq;
	if (!hub->subscribers) {
		hub->flushed_seq = event->seq;
	} else {
		p = pending_add(hub);
		p->seq = event->seq;
		for (int view = 0; view < 2; view++) {
			p->at[view] = hub->batch[view].size;
			frame_add(&hub->batch[view], event->seq, event->time_ms, event->kind, text,
				  size, (enum event_view)view);
		}
		if (hub->event_count == 1) {
			hub->batch_ms = clock_boot_ms();
			pthread_cond_signal(&hub->changed);
		}
	}
	pthread_mutex_unlock(&hub->lock);
}

/* --- sending -------------------------------------------------------------------------------------------------------------- */

/* Under the lock. What of the batch is new to this client, which may have been led past its beginning. */
static void batch_send(struct event_hub *hub, struct subscriber *sub,
		       struct http_piece *const piece[2])
{
	const struct buf *batch = &hub->batch[sub->view];
	size_t first = 0;

	while (first < hub->event_count && hub->events[first].seq <= sub->cursor)
		first++;
	if (first == hub->event_count)
		return;
	if (!first)
		sub->lost = !http_stream_share(sub->stream, piece[sub->view]);
	else
		sub->lost = !http_stream_send(sub->stream,
					      batch->data + hub->events[first].at[sub->view],
					      batch->size - hub->events[first].at[sub->view]);
	sub->cursor = hub->last_seq;
}

static void resync_send(struct event_hub *hub, struct subscriber *sub)
{
	const uint64_t seq = hub->last_seq > sub->head ? hub->last_seq : sub->head;
	char text[128];
	const int size =
		snprintf(text, sizeof text, "id: %llu\nevent: resync\ndata: {\"seq\":%llu}\n\n",
			 (unsigned long long)seq, (unsigned long long)seq);

	if (http_stream_send(sub->stream, text, (size_t)size)) {
		sub->lost = false;
		sub->cursor = seq;
	}
}

static void batch_flush(struct event_hub *hub)
{
	struct http_piece *piece[2];

	for (int view = 0; view < 2; view++)
		piece[view] = http_piece_create(buf_text(&hub->batch[view]), hub->batch[view].size);
	for (struct subscriber *sub = hub->subscribers; sub; sub = sub->next) {
		if (!sub->stream || sub->state != LIVE)
			continue;
		if (http_stream_waiting(sub->stream) > HUB_WAITING_MAX)
			sub->lost = true;
		else if (!sub->lost)
			batch_send(hub, sub, piece);
	}
	for (int view = 0; view < 2; view++) {
		http_piece_unref(piece[view]);
		buf_clear(&hub->batch[view]);
	}
	hub->event_count = 0;
	hub->flushed_seq = hub->last_seq;
}

/* Under the lock. Who fell behind hears of it as soon as it has read what waited, also when nothing happens any more. */
static void lost_tell(struct event_hub *hub)
{
	for (struct subscriber *sub = hub->subscribers; sub; sub = sub->next)
		if (sub->lost && sub->stream && sub->state == LIVE &&
		    http_stream_waiting(sub->stream) <= HUB_WAITING_MAX / 2)
			resync_send(hub, sub);
}

/* A comment: keeps proxies from closing a quiet stream, and shows a client that left. */
static void heartbeat(struct event_hub *hub)
{
	for (struct subscriber *sub = hub->subscribers; sub; sub = sub->next)
		if (sub->stream && !http_stream_waiting(sub->stream))
			(void)http_stream_send(sub->stream, ": alive\n\n", 9);
}

/* --- catching up ------------------------------------------------------------------------------------------------------------ */

/* Under the lock. */
static void unlink_free(struct subscriber *sub)
{
	if (sub->previous)
		sub->previous->next = sub->next;
	else
		sub->hub->subscribers = sub->next;
	if (sub->next)
		sub->next->previous = sub->previous;
	free(sub);
}

static void closed(void *context, struct http_stream *stream)
{
	struct subscriber *sub = context;
	struct event_hub *hub = sub->hub;

	(void)stream;
	pthread_mutex_lock(&hub->lock);
	sub->stream = NULL;
	hub->clients--;
	if (sub->state != CATCHING) /* else its worker clears up */
		unlink_free(sub);
	pthread_cond_broadcast(&hub->changed);
	pthread_mutex_unlock(&hub->lock);
}

struct catch_page {
	struct buf out;
	enum event_view view;
	uint64_t last;
	uint32_t rows;
};

static int catch_take(void *context, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
		      size_t size)
{
	struct catch_page *page = context;

	frame_add(&page->out, seq, time_ms, kind, text, size, page->view);
	page->last = seq;
	page->rows++;
	return 0;
}

/* One page; under the lock before and after. False: this worker is done with it. */
static bool catch_step(struct event_hub *hub, struct subscriber *sub)
{
	struct catch_page page = { .view = sub->view, .last = sub->cursor };
	const uint64_t target = hub->flushed_seq;
	struct err err = { 0 };
	int rc;

	if (http_stream_waiting(sub->stream) > HUB_WAITING_MAX / 2) {
		sub->state = WAITING;
		return false;
	}
	pthread_mutex_unlock(&hub->lock);
	rc = hub->backend->history(hub->backend->context, 0, page.last, PAGE_ROWS, &page,
				   catch_take, &err);
	pthread_mutex_lock(&hub->lock);
	if (sub->stream && rc >= 0 && page.out.size &&
	    !http_stream_send(sub->stream, page.out.data, page.out.size))
		rc = -1;
	buf_deinit(&page.out);
	sub->cursor = page.last;
	if (!sub->stream)
		return false;
	if (rc < 0) {
		/* The history does not answer: the client reads again by itself. */
		sub->lost = true;
		sub->state = LIVE;
		return false;
	}
	if (page.rows == PAGE_ROWS)
		return true;
	if (sub->cursor < target)
		sub->cursor = target; /* not every record is in the history */
	if (sub->cursor < hub->flushed_seq)
		return true;
	sub->state = LIVE;
	return false;
}

static void catch_up(void *argument)
{
	struct subscriber *sub = argument;
	struct event_hub *hub = sub->hub;

	pthread_mutex_lock(&hub->lock);
	while (sub->stream && !hub->stopping && catch_step(hub, sub))
		;
	if (!sub->stream)
		unlink_free(sub);
	else if (sub->state == CATCHING)
		sub->state = WAITING;
	hub->catching--;
	pthread_cond_broadcast(&hub->changed);
	pthread_mutex_unlock(&hub->lock);
}

/* Under the lock, which is let go meanwhile. Workers for those that wait and have room again. */
static void waiting_wake(struct event_hub *hub)
{
	struct subscriber *chosen;

	do {
		chosen = NULL;
		for (struct subscriber *sub = hub->subscribers; sub && !chosen; sub = sub->next)
			if (sub->state == WAITING && sub->stream &&
			    http_stream_waiting(sub->stream) <= HUB_WAITING_MAX / 2)
				chosen = sub;
		if (!chosen)
			return;
		chosen->state = CATCHING;
		hub->catching++;
		pthread_mutex_unlock(&hub->lock);
		hub->backend->work(hub->backend->context, WORK_SLOW, catch_up, chosen);
		pthread_mutex_lock(&hub->lock);
	} while (!hub->stopping);
}

/* --- the hub's thread --------------------------------------------------------------------------------------------------------- */

static void wait_ms(struct event_hub *hub, int64_t ms)
{
	const struct timespec until = wait_until(ms);

	(void)pthread_cond_timedwait(&hub->changed, &hub->lock, &until);
}

/* Under the lock. All that is due. */
static void turn(struct event_hub *hub)
{
	const int64_t now = clock_boot_ms();

	if (hub->event_count && now - hub->batch_ms >= HUB_BATCH_MS)
		batch_flush(hub);
	lost_tell(hub);
	if (now - hub->beat_ms >= HUB_HEARTBEAT_MS) {
		heartbeat(hub);
		hub->beat_ms = now;
	}
	waiting_wake(hub);
}

void event_hub_pass(struct event_hub *hub)
{
	pthread_mutex_lock(&hub->lock);
	turn(hub);
	pthread_mutex_unlock(&hub->lock);
}

static void *run(void *context)
{
	struct event_hub *hub = context;

	pthread_mutex_lock(&hub->lock);
	while (!hub->stopping) {
		turn(hub);
		if (hub->stopping)
			break;
		wait_ms(hub, hub->subscribers ? HUB_BATCH_MS : 1000);
	}
	pthread_mutex_unlock(&hub->lock);
	return NULL;
}

struct event_hub *event_hub_create(const struct api_backend *backend)
{
	struct event_hub *hub = calloc(1, sizeof *hub);

	CHECK(hub);
	hub->backend = backend;
	pthread_mutex_init(&hub->lock, NULL);
	cond_init(&hub->changed);
	hub->beat_ms = clock_boot_ms();
	if (!backend->one_thread)
		thread_start(&hub->thread, run, hub);
	return hub;
}

void event_hub_destroy(struct event_hub *hub)
{
	if (!hub)
		return;
	pthread_mutex_lock(&hub->lock);
	hub->stopping = true;
	pthread_cond_broadcast(&hub->changed);
	while (hub->catching)
		pthread_cond_wait(&hub->changed, &hub->lock);
	pthread_mutex_unlock(&hub->lock);
	if (!hub->backend->one_thread)
		pthread_join(hub->thread, NULL);
	CHECK(!hub->subscribers);
	for (int view = 0; view < 2; view++)
		buf_deinit(&hub->batch[view]);
	free(hub->events);
	pthread_mutex_destroy(&hub->lock);
	pthread_cond_destroy(&hub->changed);
	free(hub);
}

uint32_t event_hub_clients(struct event_hub *hub)
{
	uint32_t clients;

	pthread_mutex_lock(&hub->lock);
	clients = hub->clients;
	pthread_mutex_unlock(&hub->lock);
	return clients;
}

void event_hub_subscribe(struct event_hub *hub, struct call *call, int64_t after)
{
	struct subscriber *sub = calloc(1, sizeof *sub);
	struct err err = { 0 };
	const uint64_t head = call->facts->seq;
	bool full, beyond = false;

	CHECK(sub && call->permitted);
	sub->hub = hub;
	sub->head = head;
	sub->view = call->caller.role == ROLE_ADMIN ? EVENT_VIEW_FULL : EVENT_VIEW_PUBLIC;
	sub->state = after < 0 ? LIVE : CATCHING;
	call_release(call);
	pthread_mutex_lock(&hub->lock);
	full = hub->clients >= HUB_CLIENTS_MAX;
	if (!full) {
		/* From another journal, or from one that lost its end: what the client has is not what is. */
		beyond = after >= 0 && (uint64_t)after > head && (uint64_t)after > hub->last_seq;
		if (beyond)
			sub->state = LIVE;
		sub->cursor = after < 0 ? hub->last_seq : (uint64_t)after;
		sub->next = hub->subscribers;
		if (sub->next)
			sub->next->previous = sub;
		hub->subscribers = sub;
		hub->clients++;
		hub->catching += sub->state == CATCHING;
		sub->stream = http_stream_begin(call->request, "text/event-stream", STREAM_LIMIT,
						sub, closed);
		(void)http_stream_send(sub->stream, "retry: 1000\n\n", 13);
		if (beyond)
			resync_send(hub, sub);
		pthread_cond_broadcast(&hub->changed);
	}
	pthread_mutex_unlock(&hub->lock);
	if (full) {
		free(sub);
		err_set(&err, ERR_UNAVAILABLE,
			"the daemon has as many event streams as it takes (%d)", HUB_CLIENTS_MAX);
		http_reply_error(call->request, &err);
	} else if (after >= 0 && !beyond) {
		catch_up(sub);
	}
}
