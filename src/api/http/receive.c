/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library waits edge-triggered: it reads again without waiting only when it got as much as it asked for. So a
 * short answer here must mean that the kernel has nothing left, or that nothing more will be handed over.
 */
#include "api/http/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "base/check.h"
#include "base/clock.h"

enum { READ_BYTES = 16384, SWALLOW_MAX = 64 << 20 };

static _Atomic(struct receive *) gates[RECEIVE_FILES];

static const char refused_head[] =
	"GET " RECEIVE_REFUSED_TARGET " HTTP/1.1\r\nHost: localhost\r\n\r\n";

void receive_open(struct receive *receive, int fd, uint64_t body_max)
{
	CHECK(fd >= 0 && fd < RECEIVE_FILES);
	memset(receive, 0, sizeof *receive);
	receive->fd = fd;
	framing_init(&receive->framing, body_max);
	atomic_store(&gates[fd], receive);
}

void receive_close(struct receive *receive)
{
	atomic_store(&gates[receive->fd], NULL);
	buf_deinit(&receive->held);
}

bool receive_head_seen(struct receive *receive, enum framing_problem *ret_problem)
{
	*ret_problem = FRAMING_OK;
	if (receive->heads_seen == receive->heads_passed)
		return false;
	receive->heads_seen++;
	if (receive->heads_seen == receive->refused_head)
		*ret_problem = (enum framing_problem)receive->framing.problem;
	return true;
}

void receive_answer_bare(int fd, int status, const char *code, const char *message)
{
	char body[320], text[640];
	int size;

	snprintf(body, sizeof body, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\"}}\n", code,
		 message);
	size = snprintf(
		text, sizeof text,
		"HTTP/1.1 %d Refused\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		status, strlen(body), body);
	CHECK(size > 0 && (size_t)size < sizeof text);
	(void)!send(fd, text, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* From here on nothing more is handed over but what is good already. */
static void stand_in(struct receive *receive)
{
	receive->held.size = receive->good;
	buf_add(&receive->held, refused_head, sizeof refused_head - 1);
	receive->good = receive->held.size;
	receive->refused_head = ++receive->heads_passed;
	receive->over = true;
}

/* A head went wrong; `rest` bytes of what follows it came already. */
static void refuse_head(struct receive *receive, size_t rest)
{
	const struct framing *f = &receive->framing;

	/* A client that sends all of its body before it reads should find the answer, not a reset connection. */
	if (f->problem == FRAMING_BODY_LARGE && f->has_length && !f->expects &&
	    f->length <= SWALLOW_MAX && f->length > rest) {
		receive->swallow = f->length - rest;
		receive->held.size = receive->good;
		return;
	}
	stand_in(receive);
}

static void refuse_body(struct receive *receive)
{
	receive->over = true;
	receive->cut = true;
	receive->held.size = receive->good;
	/* What is good may be all that the library got, and then it waits: this is an event that makes it read again. */
	shutdown(receive->fd, SHUT_RD);
}

/* The library reads on in a body that broke. It reads only while it has nothing to send, so this answer is in order. */
static ssize_t body_cut(struct receive *receive)
{
	const enum framing_problem problem = (enum framing_problem)receive->framing.problem;

	if (!receive->told)
		receive_answer_bare(receive->fd, framing_problem_http(problem), "invalid",
				    framing_problem_text(problem));
	receive->told = true;
	return 0;
}

static void deadline_note(struct receive *receive)
{
	const struct framing *f = &receive->framing;

	if (framing_idle(f) || receive->over)
		atomic_store(&receive->began_ms, 0);
	else if (!atomic_load(&receive->began_ms))
		atomic_store(&receive->began_ms, clock_boot_ms());
	atomic_store(&receive->partial_head, framing_in_head(f));
}

/* Looks at held[from, size): what is good may go on. */
static void inspect(struct receive *receive, size_t from)
{
	struct framing *f = &receive->framing;

	while (from < receive->held.size && !receive->over && !receive->swallow) {
		const bool in_head = framing_idle(f) || framing_in_head(f);
		size_t used;

		if (framing_idle(f))
			atomic_store(&receive->began_ms, 0);
		switch (framing_feed(f, receive->held.data + from, receive->held.size - from,
				     &used)) {
		case FRAMING_HEAD:
			receive->heads_passed++;
			receive->good = from + used;
			break;
		case FRAMING_END: receive->good = from + used; break;
		case FRAMING_MORE:
			if (!in_head)
				receive->good = from + used;
			break;
		case FRAMING_BAD:
			if (in_head)
				refuse_head(receive, receive->held.size - from - used);
			else
				refuse_body(receive);
			break;
		}
		from += used;
	}
	deadline_note(receive);
}

static size_t give(struct receive *receive, char *data, size_t size)
{
	size_t have = receive->good - receive->given;

	if (have > size)
		have = size;
	if (have)
		memcpy(data, receive->held.data + receive->given, have);
	receive->given += have;
	if (receive->given == receive->held.size) {
		/* Nothing is kept for a connection that is between two requests. */
		buf_deinit(&receive->held);
		receive->given = receive->good = 0;
	}
	return have;
}

/* Drops what was given, so that a long body does not collect here. */
static void held_compact(struct receive *receive)
{
	if (!receive->given)
		return;
	memmove(receive->held.data, receive->held.data + receive->given,
		receive->held.size - receive->given);
	receive->held.size -= receive->given;
	receive->good -= receive->given;
	receive->given = 0;
}

/* Reads once from the kernel. As recv. */
static ssize_t refill(struct receive *receive, size_t want)
{
	static _Thread_local char scratch[READ_BYTES];
	ssize_t got;
	size_t from;

	if (want > sizeof scratch)
		want = sizeof scratch;
	got = recvfrom(receive->fd, scratch, want, MSG_DONTWAIT, NULL, NULL);
	if (got <= 0)
		return got;
	if (receive->swallow) {
		receive->swallow -=
			(uint64_t)got < receive->swallow ? (uint64_t)got : receive->swallow;
		if (!receive->swallow) {
			stand_in(receive);
			deadline_note(receive);
		}
		return got;
	}
	held_compact(receive);
	from = receive->held.size;
	buf_add(&receive->held, scratch, (size_t)got);
	inspect(receive, from);
	return got;
}

ssize_t receive_take(struct receive *receive, void *data, size_t size)
{
	size_t out = 0;
	bool drained = false;

	for (;;) {
		ssize_t got;

		out += give(receive, (char *)data + out, size - out);
		if (out == size || ((drained || receive->over) && out))
			return (ssize_t)out;
		if (receive->cut)
			return body_cut(receive);
		if (receive->over || drained) {
			errno = EAGAIN;
			return -1;
		}
		got = refill(receive, READ_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return out ? (ssize_t)out : got;
		drained = got < READ_BYTES;
	}
}

/*
 * The library's recv(2). Named by its symbol, so that the header's own declaration (which the hardened C library makes
 * an inline function) stays out of the way.
 */
ssize_t receive_interposed(int fd, void *data, size_t size, int flags) __asm__("recv")
	__attribute__((visibility("default")));

ssize_t receive_interposed(int fd, void *data, size_t size, int flags)
{
	struct receive *receive = fd >= 0 && fd < RECEIVE_FILES
					  ? atomic_load_explicit(&gates[fd], memory_order_acquire)
					  : NULL;

	if (!receive)
		return recvfrom(fd, data, size, flags, NULL, NULL);
	return receive_take(receive, data, size);
}
