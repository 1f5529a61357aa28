/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One character of UTF-8 at a time, strictly (RFC 3629): no overlong forms, no surrogates, nothing
 * above U+10FFFF.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline size_t utf8_tail(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* Bytes of the character at text (1..4), 0 when it is not valid; left > 0 bytes may be read. */
static inline size_t utf8_size(const char *text, size_t left)
{
	const unsigned char *p = (const unsigned char *)text;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < 2 || !utf8_tail(p[1]))
		return 0;
	if (p[0] < 0xe0)
		return 2;
	if (left < 3 || !utf8_tail(p[2]))
		return 0;
	if (p[0] < 0xf0) {
		if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
			return 0;
		return 3;
	}
	if (left < 4 || !utf8_tail(p[3]))
		return 0;
	if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return 4;
}

/* The code point of a valid character of size bytes, as utf8_size answered. */
static inline uint32_t utf8_code(const char *text, size_t size)
{
	const unsigned char *p = (const unsigned char *)text;

	switch (size) {
	case 1: return p[0];
	case 2: return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3fu);
	case 3:
		return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 |
		       (p[2] & 0x3fu);
	default:
		return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
		       (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3fu);
	}
}

/* Controls, those above ASCII too (U+0080 to U+009F): a terminal obeys both. */
static inline bool utf8_is_c0_c1(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/*
 * Characters that stand in a text as an escape only: controls but tab and line feed, separators of
 * lines, marks of byte order. What reads files refuses them plain, so what writes texts that are
 * read again escapes them.
 */
static inline bool utf8_is_control(uint32_t code)
{
	return (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7f && code < 0xa0) ||
	       code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe ||
	       code == 0xffff;
}

/*
 * Bytes of printable ASCII from the start on, counted in eights: the quick way through most of any text. With `json`, " and \
 * are not among them. Bytes are looked at as one number: subtracting marks those below a limit by their highest bit, and what
 * a borrow marks wrongly stands behind a byte that was marked rightly.
 */
static inline size_t utf8_plain(const char *text, size_t size, bool json)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
	size_t at = 0;

	for (; size - at >= 8; at += 8) {
		uint64_t x, odd;

		memcpy(&x, text + at, sizeof(x));
		odd = x | ((x - ones * 0x20) & ~x);
		odd |= ((x ^ (ones * 0x7f)) - ones) & ~(x ^ (ones * 0x7f));
		if (json) {
			odd |= ((x ^ (ones * '"')) - ones) & ~(x ^ (ones * '"'));
			odd |= ((x ^ (ones * '\\')) - ones) & ~(x ^ (ones * '\\'));
		}
		if (odd & high)
			break;
	}
	return at;
}

/* Writes a code point that is a valid character; returns its bytes. */
static inline size_t utf8_write(uint32_t code, char out[4])
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}
