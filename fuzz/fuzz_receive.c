/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate before the HTTP library, over a real pair of sockets. Whatever a client sends, and however the kernel cuts it,
 * the library sees: a beginning of what was sent, made of well-formed requests only, and then at most the stand-in for the
 * one that was refused.
 *
 * The first byte of the input chooses the cuts, the rest is what the client sends.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http/receive.h"
#include "base/check.h"

enum { BODY_MAX = 96 };

static const char stand_in[] = "GET " RECEIVE_REFUSED_TARGET " HTTP/1.1\r\nHost: localhost\r\n\r\n";

static uint32_t next(uint32_t *dice)
{
	*dice = *dice * 1664525u + 1013904223u;
	return *dice >> 8;
}

/* As the library does it: reads until there is nothing more now. Answers false at the end of the connection. */
static bool drain(struct receive *receive, uint32_t *dice, bool cut, struct buf *out)
{
	char room[512];

	for (;;) {
		const size_t ask = cut ? 1 + next(dice) % sizeof(room) : sizeof(room);
		const ssize_t got = receive_take(receive, room, ask);

		if (got == 0)
			return false;
		if (got < 0) {
			CHECK(errno == EAGAIN || errno == EWOULDBLOCK);
			return true;
		}
		CHECK((size_t)got <= ask);
		buf_add(out, room, (size_t)got);
	}
}

/* Sends text in pieces (cut) or whole, and collects what the library is given. */
static void pass(const char *text, size_t size, uint32_t dice, bool cut, struct buf *out,
		 struct receive *receive)
{
	int pair[2];
	size_t at = 0;
	bool open = true;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	receive_open(receive, pair[0], BODY_MAX);
	while (at < size && open) {
		size_t piece = cut ? 1 + next(&dice) % 97 : size;
		ssize_t sent;

		if (piece > size - at)
			piece = size - at;
		sent = send(pair[1], text + at, piece, MSG_NOSIGNAL);
		if (sent < 0)
			break; /* the gate shut the connection */
		at += (size_t)sent;
		open = drain(receive, &dice, cut, out);
	}
	close(pair[1]);
	if (open)
		drain(receive, &dice, cut, out);
	receive_close(receive);
	close(pair[0]);
}

/* Only whole and well-formed heads reach the library. */
static void check_given(const struct buf *out, const char *text, size_t size,
			const struct receive *receive)
{
	const size_t tail = sizeof(stand_in) - 1;
	size_t given = out->size, at = 0;
	uint32_t heads = 0;
	struct framing f;

	if (receive->refused_head) {
		CHECK(given >= tail && memcmp(out->data + given - tail, stand_in, tail) == 0);
		given -= tail;
		heads++;
	}
	CHECK(given <= size && (given == 0 || memcmp(out->data, text, given) == 0));
	framing_init(&f, BODY_MAX);
	while (at < given) {
		size_t used;
		const enum framing_event event =
			framing_feed(&f, out->data + at, given - at, &used);

		CHECK(event != FRAMING_BAD);
		heads += event == FRAMING_HEAD;
		at += used;
	}
	CHECK(!framing_in_head(&f)); /* no half of a head */
	CHECK(heads == receive->heads_passed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;
	struct receive whole, cut;
	AUTO_BUF one = BUF_INIT;
	AUTO_BUF two = BUF_INIT;

	if (size < 2 || size > 40000)
		return 0;
	size--;
	pass(text, size, data[0], false, &one, &whole);
	pass(text, size, data[0], true, &two, &cut);
	check_given(&one, text, size, &whole);
	check_given(&two, text, size, &cut);
	CHECK(whole.refused_head == cut.refused_head && whole.heads_passed == cut.heads_passed &&
	      whole.cut == cut.cut);
	/* In a body that breaks, the bytes before the break may or may not have gone on; all else is the same. */
	CHECK(whole.cut ||
	      (one.size == two.size && memcmp(buf_text(&one), buf_text(&two), one.size) == 0));
	fuzz_accepted = !whole.refused_head && !whole.cut && whole.heads_passed > 0;
	return 0;
}
