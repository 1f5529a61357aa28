/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The event stream: every durable event, to every client that listens.
 *
 * Events are encoded once (twice: for admins, and for all others without what is private) and collected for 100 ms; then each
 * client's stream gets a reference to the same bytes. A client that begins in the past is first led through the
 * history by workers, page by page, and joins when it has caught up; nothing is lost or sent twice in between. One that
 * reads too slowly (256 KiB waiting) is skipped, and told so by an event `resync` when it reads again.
 */
#include "api/backend.h"
#include "api/call.h"

enum {
	HUB_CLIENTS_MAX = 5000,
	HUB_BATCH_MS = 100,
	HUB_WAITING_MAX = 256 << 10,
	HUB_HEARTBEAT_MS = 15000
};

/* With a thread of its own, unless the backend has one for all: then event_hub_pass is called every HUB_BATCH_MS. */
struct event_hub *event_hub_create(const struct api_backend *backend);
void event_hub_pass(struct event_hub *hub);
/* all streams must have ended (http_stop); NULL is fine */
void event_hub_destroy(struct event_hub *hub);
uint32_t event_hub_clients(struct event_hub *hub);
/* Makes the call's answer a stream. after -1: from now on. Errors are answered too. In a worker. */
void event_hub_subscribe(struct event_hub *hub, struct call *call, int64_t after);
