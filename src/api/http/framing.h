/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where an HTTP/1.1 request begins and ends, decided strictly, byte by byte, before anything else reads it.
 *
 * Two programs that disagree on the end of a request can be made to see different requests (smuggling). So there is one
 * reading here, that of RFC 9112 without its tolerances, and everything else is refused:
 *
 *	request line	METHOD SP /target SP HTTP/1.1 CRLF, one space each, nothing before it
 *	fields		name ":" [SP HTAB] value CRLF; no fold, no space in or behind a name, no control characters
 *	Host		exactly once, not empty
 *	length		one Content-Length of digits only, or one Transfer-Encoding of exactly "chunked", never both
 *	chunks		hexadecimal size CRLF data CRLF; no extensions, no trailers
 *	limits		FRAMING_HEAD_MAX bytes, FRAMING_FIELDS_MAX fields, the target and the body as below
 *
 * A framing belongs to one connection and one thread, allocates nothing, and costs about a nanosecond per byte.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FRAMING_HEAD_MAX = 16 << 10,
	FRAMING_TARGET_MAX = 8 << 10,
	FRAMING_FIELDS_MAX = 64,
	FRAMING_NAME_MAX = 63
};

/* Why a request is refused. FRAMING_OK is 0. */
enum framing_problem {
	FRAMING_OK,
#define P(NAME, http, text) FRAMING_##NAME,
#include "api/http/framing.def"
#undef P
	FRAMING_PROBLEM_COUNT
};
/* one sentence without a full stop */
const char *framing_problem_text(enum framing_problem problem);
int framing_problem_http(enum framing_problem problem); /* HTTP status */

enum framing_event {
	FRAMING_MORE, /* all was read, the request goes on */
	/* the head ends at *ret_used; a body follows unless `body` says FRAMING_BODY_NONE */
	FRAMING_HEAD,
	/* the request ends at *ret_used (never without a FRAMING_HEAD before) */
	FRAMING_END,
	FRAMING_BAD /* `problem` says why; no further byte of this connection means anything */
};

enum framing_body { FRAMING_BODY_NONE, FRAMING_BODY_LENGTH, FRAMING_BODY_CHUNKED };

struct framing {
	uint64_t body_max; /* larger ones are refused; set by framing_init */
	uint64_t length; /* Content-Length; for chunks what came so far */
	uint64_t left; /* of the body or of the chunk */
	uint32_t head_bytes, target_bytes, fields;
	uint8_t state; /* see framing.c */
	uint8_t body; /* enum framing_body */
	uint8_t problem; /* enum framing_problem */
	uint8_t method_bytes, digits, field;
	bool host, has_length, has_coding, expects, seen;
	uint8_t name_bytes, value_bytes, pending_space;
	char name[FRAMING_NAME_MAX + 1]; /* lower case */
	char value[24]; /* start of the values that matter here */
};

void framing_init(struct framing *f, uint64_t body_max);
/* Reads on until something is to be said. Call again with what lies behind *ret_used. */
enum framing_event framing_feed(struct framing *f, const char *data, size_t size, size_t *ret_used);
/* between two requests: no byte of the next one came */
bool framing_idle(const struct framing *f);
bool framing_in_head(const struct framing *f);
