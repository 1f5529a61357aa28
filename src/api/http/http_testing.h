/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A server of api/http/http.h on a Unix and a TCP socket for the tests of it, and clients that speak to it byte by byte. It answers by path:
 *
 *	/later		from another thread
 *	/row		when ROW of them have come: one thread answers all in a row
 *	/between	by another thread, between the last look for an answer and the suspension of the connection
 *	/held		never: `late.request` is for the test to answer
 *	/last		when late.answered says so; the pass that it is in ends when a stop waits for its thread
 *	/stall		when late.answered says so; the network thread is held until then (late.busy)
 *	/stream		begins the stream `live`
 *	/large		64 MiB
 *	/closed-door	401 at the head
 *	others		an echo: method, path, bytes of the body and the first 100 of these
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include "api/http/http.h"

/* So few that only the end of the row tells the network thread. */
enum { ROW = 20 };

extern struct http_server *server; /* a test that stops it sets it to NULL */
extern _Atomic int smuggled,
	handled; /* requests for /smuggled, and all, that reached the handler */
extern char socket_path[64];

/* A stream's life, as a user of one has to keep it. */
struct live {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct http_stream *stream;
	int closed;
};
extern struct live live;

/* Calls of pthread_join until a stop waits for the network thread: the test's for the stop, the stop's for the sweeper, and that. */
enum { LATE_JOINS = 3 };
struct late {
	struct http_request *_Atomic request;
	_Atomic bool busy, answered, lingers; /* busy: a network thread holds on in /last */
	_Atomic int joins;
};
extern struct late late;

/* http_options of the server. */
void pass(void *context, bool begins);
void handle(void *context, struct http_request *r);

/* Fixtures: with the standard limits; with deadlines of 400 ms; with 4 connections, 3 of one peer. */
int setup(void **state);
int setup_hasty(void **state);
int setup_small(void **state);
int teardown(void **state);

int dial(bool local); /* a connection over the Unix socket, or TCP */
void say(int fd, const char *text, size_t size); /* all of it, or as far as the server listens */
/* Reads one answer (by its Content-Length); false at the connection's end. */
bool answer(int fd, char *out, size_t room);
bool at_end(int fd);
/* Waits for the server's word without a fixed time: poll with the test's own limit. */
bool closes(int fd);

#define SAY(fd, text) say(fd, text, sizeof(text) - 1)

static const char get[] = "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n";
__attribute__((unused)) static const char post[] =
	"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";
