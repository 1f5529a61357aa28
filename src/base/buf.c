/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/utf8.h"

enum { ROOM_MIN = 64 };

void buf_deinit(struct buf *buf)
{
	free(buf->data);
	*buf = BUF_INIT;
}

void buf_clear(struct buf *buf)
{
	buf->size = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

static void buf_grow(struct buf *buf, size_t extra)
{
	size_t room = buf->room ? buf->room : ROOM_MIN;
	char *data;

	CHECK(extra < BUF_MAX - buf->size);
	while (room <= buf->size + extra)
		room *= 2;
	data = realloc(buf->data, room);
	CHECK(data != NULL);
	data[buf->size] = '\0';
	buf->data = data;
	buf->room = room;
}

void buf_reserve(struct buf *buf, size_t extra)
{
	if (extra >= buf->room - buf->size)
		buf_grow(buf, extra);
}

void buf_add(struct buf *buf, const void *data, size_t size)
{
	buf_reserve(buf, size);
	if (size)
		memcpy(buf->data + buf->size, data, size);
	buf->size += size;
	buf->data[buf->size] = '\0';
}

void buf_adds(struct buf *buf, const char *text)
{
	buf_add(buf, text, strlen(text));
}

void buf_addc(struct buf *buf, char c)
{
	buf_reserve(buf, 1);
	buf->data[buf->size++] = c;
	buf->data[buf->size] = '\0';
}

void buf_addf(struct buf *buf, const char *format, ...)
{
	va_list args;
	size_t room;
	int length;

	buf_reserve(buf, ROOM_MIN - 1);
	room = buf->room - buf->size;
	va_start(args, format);
	length = vsnprintf(buf->data + buf->size, room, format, args);
	va_end(args);
	CHECK(length >= 0);
	if ((size_t)length >= room) {
		buf_reserve(buf, (size_t)length);
		va_start(args, format);
		vsnprintf(buf->data + buf->size, (size_t)length + 1, format, args);
		va_end(args);
	}
	buf->size += (size_t)length;
}

void buf_addu(struct buf *buf, uint64_t number)
{
	char digits[20];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	buf_add(buf, digits + first, sizeof(digits) - first);
}

void buf_addi(struct buf *buf, int64_t number)
{
	uint64_t size = (uint64_t)number;

	if (number < 0) {
		buf_addc(buf, '-');
		size = 0 - size; /* defined for the smallest number too */
	}
	buf_addu(buf, size);
}

/* A character of at most four hexadecimal digits that JSON texts hold as an escape. */
static void add_json_special(struct buf *buf, uint32_t c)
{
	static const char hex[] = "0123456789abcdef";
	static const char letters[] = "btn.fr"; /* from \b, 8; there is no escape for 11 */
	char out[6] = { '\\',       (char)c, hex[c >> 12 & 15], hex[c >> 8 & 15], hex[c >> 4 & 15],
			hex[c & 15] };

	if (c == '"' || c == '\\') {
		buf_add(buf, out, 2);
	} else if (c >= '\b' && c <= '\r' && c != '\v') {
		out[1] = letters[c - '\b'];
		buf_add(buf, out, 2);
	} else {
		out[1] = 'u';
		buf_add(buf, out, 6);
	}
}

void buf_add_json(struct buf *buf, const char *text, size_t size)
{
	size_t done = 0, at = 0, length;
	uint32_t code;

	buf_reserve(buf, size + 2);
	buf_addc(buf, '"');
	while (at < size) {
		unsigned char c;

		at += utf8_plain(text + at, size - at, true);
		if (at == size)
			break;
		c = (unsigned char)text[at];
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
			at++;
			continue;
		}
		length = utf8_size(text + at, size - at);
		code = length ? utf8_code(text + at, length) : 0xfffd;
		if (length > 1 && !utf8_is_control(code)) {
			at += length;
			continue;
		}
		buf_add(buf, text + done, at - done);
		if (length)
			add_json_special(buf, code);
		else
			buf_add(buf, "\xef\xbf\xbd", 3);
		at += length ? length : 1;
		done = at;
	}
	buf_add(buf, text + done, at - done);
	buf_addc(buf, '"');
}

char *buf_take(struct buf *buf)
{
	char *data;

	buf_reserve(buf, 0);
	data = buf->data;
	*buf = BUF_INIT;
	return data;
}

const char *buf_text(const struct buf *buf)
{
	return buf->data ? buf->data : "";
}

void buf_add_json_member(struct buf *buf, const char *key, const char *text)
{
	buf_addf(buf, "\"%s\":", key);
	buf_add_json(buf, text, strlen(text));
}
