/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command's end of the HTTP API: libcurl over the daemon's Unix socket, where the kernel says
 * who is calling, or over TCP with a token. libcurl is started by the first call, so that `fairlead
 * help` does not pay for it.
 *
 * Which daemon: --server or --data before FAIRLEAD_SERVER or FAIRLEAD_DATA; else the user's own
 * data folder; and when no daemon of the user's is there but the machine has one, that one.
 *
 * An answer of 300 and above is an error with the daemon's own message. The token is in no message.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "cli/table/args.h"

struct client;

int client_open(const struct invocation *in, struct client **ret, struct err *err) MUST_CHECK;
void client_close(struct client *client); /* NULL is fine */
#define AUTO_CLIENT __attribute__((cleanup(client_cleanup))) struct client *
void client_cleanup(struct client **client);

/*
 * Data folder that --data, FAIRLEAD_DATA or the defaults name; in the arena. For commands that work
 * on it directly too.
 */
const char *client_data_folder(const struct invocation *in);
/* For what reads that folder itself: forbidden when this account may not look into it. */
int client_may_read_folder(const struct invocation *in, struct err *err) MUST_CHECK;
/* The daemon is on this machine for sure: it is spoken to through its socket. */
bool client_is_here(const struct client *client);
/* "DATA/fairlead.sock" or the URL, for messages. */
const char *client_where(const struct client *client);

struct call {
	const char *method; /* "GET" */
	const char *path; /* "/api/v1/jobs/12?x=y", already encoded; see client_path */
	const char *content_type; /* of body; NULL = JSON */
	const void *body; /* NULL = none */
	size_t body_size;
	const char *const *headers; /* "Name: value", NULL-terminated; NULL = none */
};

/* *ret is the answer's JSON (json_decref it), NULL when the answer has no body. ret may be NULL. */
int client_call(struct client *client, const struct call *call, json_t **ret, struct err *err)
	MUST_CHECK;
int client_get(struct client *client, const char *path, json_t **ret, struct err *err) MUST_CHECK;
/* Sends a JSON object; NULL = no body. */
int client_send(struct client *client, const char *method, const char *path, const json_t *body,
		json_t **ret, struct err *err) MUST_CHECK;
/* The answer as it comes (healthz, openapi). */
int client_text(struct client *client, const char *path, struct buf *ret, struct err *err)
	MUST_CHECK;

/* Streams: several answers that go on, read side by side. take returns false to stop its stream. */
struct stream {
	const char *path;
	const char *accept; /* NULL = anything */
	void *context;
	bool (*take)(void *context, const char *data, size_t size);
	/* set by the client: */
	bool over; /* ended, well or not */
	struct err err; /* code ERR_NONE = well */
	void *handle, *headers;
	struct buf answer; /* of an error */
};
int client_stream_begin(struct client *client, struct stream *stream, struct err *err) MUST_CHECK;
void client_stream_end(struct client *client, struct stream *stream);
/* Moves data of all streams; waits up to wait_ms for some. Returns at once when something came, a stream ended or Ctrl-C was
 * pressed (see interrupted). */
void client_streams_wait(struct client *client, int wait_ms);

/* Ctrl-C: from interrupt_watch on it does not end the program but makes interrupted() true. */
void interrupt_watch(void);
bool interrupted(void);
/* Waits; false when Ctrl-C came. */
bool interruptible_sleep(int ms);

/* Fills a path: %s parts are percent-encoded; only %s and %u are known. In the arena. */
const char *client_path(struct arena *arena, const char *format, ...);
/* Appends "?name=value" or "&name=value", encoded. */
void query_add(struct buf *path, const char *name, const char *value);
