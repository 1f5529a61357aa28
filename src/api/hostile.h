/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The hostile list: requests that must be refused, with the reason. For framing_test.c, http_test.c and the fuzzer's seeds. */
#include <stdbool.h>
#include <stddef.h>
#include "api/framing.h"

struct hostile {
	const char *name;
	enum framing_problem problem;
	bool in_body;		/* the head is well formed, the body is not */
	size_t size;
	const char *text;
};

#define H(problem, in_body, name, text) { name, FRAMING_##problem, in_body, sizeof(text) - 1, text }
#define HEAD "POST /echo HTTP/1.1\r\nHost: localhost\r\n"

static const struct hostile hostile[] = {
	H(LENGTH_CODING, false, "both lengths", HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(LENGTH_CODING, false, "both lengths, the other way round", HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello"),
	H(LENGTH_TWICE, false, "two equal lengths", HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
	H(LENGTH_TWICE, false, "two different lengths", HEAD "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
	H(LENGTH, false, "a list of lengths", HEAD "Content-Length: 5, 5\r\n\r\nhello"),
	H(LENGTH, false, "a signed length", HEAD "Content-Length: +5\r\n\r\nhello"),
	H(LENGTH, false, "a negative length", HEAD "Content-Length: -5\r\n\r\nhello"),
	H(LENGTH, false, "a hexadecimal length", HEAD "Content-Length: 0x5\r\n\r\nhello"),
	H(LENGTH, false, "a length with a space inside", HEAD "Content-Length: 5 5\r\n\r\nhello"),
	H(LENGTH, false, "an empty length", HEAD "Content-Length: \r\n\r\nhello"),
	H(LENGTH, false, "a length beyond 64 bits", HEAD "Content-Length: 18446744073709551621\r\n\r\nhello"),
	H(BODY_LARGE, false, "a length of 10 GiB", HEAD "Expect: 100-continue\r\nContent-Length: 10737418240\r\n\r\n"),
	H(CODING, false, "gzip, chunked", HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	H(CODING, false, "chunked, twice", HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	H(CODING, false, "identity", HEAD "Transfer-Encoding: identity\r\n\r\n"),
	H(CODING, false, "chunked with a tail", HEAD "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"),
	H(CODING, false, "an unknown coding that begins with chunked", HEAD "Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n"),
	H(CONTROL, false, "a vertical tab before chunked", HEAD "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n"),
	H(HOST, false, "no Host", "GET /echo HTTP/1.1\r\n\r\n"),
	H(HOST, false, "an empty Host", "GET /echo HTTP/1.1\r\nHost:\r\n\r\n"),
	H(HOST_TWICE, false, "two Hosts", "GET /echo HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
	H(CONTROL, false, "NUL in a value", "GET /echo HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n"),
	H(NAME, false, "NUL in a name", "GET /echo HTTP/1.1\r\nHost: localhost\r\nX\0Y: a\r\n\r\n"),
	H(TARGET, false, "NUL in the target", "GET /ec\0ho HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(FOLD, false, "a folded field", "GET /echo HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n"),
	H(LENGTH, false, "a folded Content-Length", HEAD "Content-Length:\r\n 5\r\n\r\nhello"),
	H(FOLD, false, "a fold in front of the first field", "GET /echo HTTP/1.1\r\n Host: localhost\r\n\r\n"),
	H(LINE_END, false, "bare LF behind a field", "GET /echo HTTP/1.1\r\nHost: localhost\nX: a\r\n\r\n"),
	H(LINE_END, false, "bare LF behind the request line", "GET /echo HTTP/1.1\nHost: localhost\r\n\r\n"),
	H(LINE_END, false, "bare LF as the empty line", "GET /echo HTTP/1.1\r\nHost: localhost\r\n\n"),
	H(LINE_END, false, "bare CR in a value", "GET /echo HTTP/1.1\r\nHost: localhost\r\nX: a\rb\r\n\r\n"),
	H(NAME, false, "a space before the colon", HEAD "Content-Length : 5\r\n\r\nhello"),
	H(NAME, false, "a tab before the colon", HEAD "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"),
	H(NAME, false, "a field without a name", "GET /echo HTTP/1.1\r\nHost: localhost\r\n: a\r\n\r\n"),
	H(NAME, false, "a field without a colon", "GET /echo HTTP/1.1\r\nHost: localhost\r\nX\r\n\r\n"),
	H(NAME, false, "a name outside ASCII", "GET /echo HTTP/1.1\r\nHost: localhost\r\nX\xc3\xa4: a\r\n\r\n"),
	H(TARGET, false, "no version", "GET /echo\r\n\r\n"),
	H(VERSION, false, "HTTP/1.0", "GET /echo HTTP/1.0\r\nHost: localhost\r\n\r\n"),
	H(VERSION, false, "HTTP/2.0", "PRI /x HTTP/2.0\r\n\r\nSM\r\n\r\n"),
	H(VERSION, false, "HTTP/1.10", "GET /echo HTTP/1.10\r\nHost: localhost\r\n\r\n"),
	H(VERSION, false, "two spaces behind the target", "GET /echo  HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(TARGET, false, "two spaces before the target", "GET  /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(TARGET, false, "an absolute target", "GET http://localhost/echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(TARGET, false, "a target of a star", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(TARGET, false, "a fragment", "GET /echo#x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(TARGET, false, "a backslash in the target", "GET /echo\\x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(TARGET, false, "a byte outside ASCII in the target", "GET /ech\xf6 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(METHOD, false, "an empty line first", "\r\nGET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(METHOD, false, "a method in small letters", "get /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(METHOD, false, "no method", " /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(METHOD, false, "a method of 17 letters", "ABCDEFGHIJKLMNOPQ /echo HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	H(METHOD, false, "TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
	H(CHUNK, true, "a chunk size with 0x", HEAD "Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n"),
	H(CHUNK, true, "a signed chunk size", HEAD "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n"),
	H(CHUNK, true, "a chunk extension", HEAD "Transfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n"),
	H(CHUNK, true, "a chunk size of nothing", HEAD "Transfer-Encoding: chunked\r\n\r\n\r\nhello\r\n0\r\n\r\n"),
	H(CHUNK, true, "a space behind a chunk size", HEAD "Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n"),
	H(CHUNK, true, "bare LF behind a chunk size", HEAD "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"),
	H(CHUNK, true, "a chunk longer than its size", HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n0\r\n\r\n"),
	H(CHUNK, true, "a chunk size of nine digits", HEAD "Transfer-Encoding: chunked\r\n\r\n000000005\r\nhello\r\n0\r\n\r\n"),
	H(BODY_LARGE, true, "a chunk of 4 GiB", HEAD "Transfer-Encoding: chunked\r\n\r\nffffffff\r\nhello"),
	H(TRAILER, true, "a trailer", HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: a\r\n\r\n"),
	H(CHUNK, true, "bare LF at the end", HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\r"),
};
