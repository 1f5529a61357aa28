/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The gate between the socket and the HTTP library: no byte of a client reaches the library before framing.h has
 * found it to be part of a well-formed request.
 *
 * libmicrohttpd normalises what it should refuse (folds, bare LF, NUL, doubled fields) before a program can see it, and
 * has no hook in front of its parser. It reads sockets with recv(2) and with nothing else, so this module defines that
 * symbol for the program: calls for sockets registered here go through the gate, all others straight to the kernel.
 * The server does not trust that this took effect: it counts (receive_head_seen) and answers no request that
 * the gate did not pass.
 *
 * A head is held back until it is complete and verified, then handed over unchanged. In place of a refused head the
 * library gets a small well-formed request of ours (RECEIVE_REFUSED_TARGET), so that the refusal is answered in
 * order, through the ordinary way, as the last answer of the connection. Requests behind a refused one do not exist. A
 * body that breaks its framing ends the connection with a bare answer.
 *
 * The gate also knows when a request began, so it keeps the deadlines that a client cannot stretch by sending slowly.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "api/http/framing.h"
#include "base/buf.h"

#define RECEIVE_REFUSED_TARGET "/.refused"

/* A socket's number must be below. */
enum { RECEIVE_FILES = 65536 };

struct receive {
	int fd;
	struct framing framing;
	/* [0, given) went to the library, [given, good) may go, behind it a head not yet complete */
	struct buf held;
	size_t given, good;
	/* bytes of a refused body to be read and forgotten before the refusal is handed over */
	uint64_t swallow;
	/* requests handed to the library, the stand-in for a refused one counted */
	uint32_t heads_passed;
	uint32_t heads_seen; /* requests that the library told us of */
	uint32_t refused_head; /* number of the stand-in; 0 = none */
	bool over; /* nothing more is handed over */
	bool cut; /* the body's framing broke: end of file for the library */
	bool told; /* ... and the client was told so */
	/* Read by the sweeper in another thread: */
	/* first byte of the request being read, boot clock; 0 = none */
	_Atomic int64_t began_ms;
	_Atomic bool partial_head; /* ... and its head is not complete */
};

/* Puts the gate before fd, which nobody may have read from. The struct stays the caller's, and stays until receive_close. */
void receive_open(struct receive *receive, int fd, uint64_t body_max);
void receive_close(struct receive *receive); /* before fd is closed */
/* The library shows its next request: false = the gate never passed it. *ret_problem: FRAMING_OK, or it stands for a
 * refused one. */
bool receive_head_seen(struct receive *receive, enum framing_problem *ret_problem);
/* An error answer without the library, for a connection on which it has nothing to send. What can't be sent at once is
 * not sent. message: no quotes or backslashes in it. */
void receive_answer_bare(int fd, int status, const char *code, const char *message);
/* recv(2) through the gate; what the library's calls come to. */
ssize_t receive_take(struct receive *receive, void *data, size_t size);
