/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A growable run of bytes, always followed by a NUL that is not counted. Owned by the caller.
 * Growth past BUF_MAX aborts: outside sizes are checked before they get here.
 */
#include <stddef.h>
#include <stdint.h>

#define BUF_MAX ((size_t)1 << 31)

struct buf {
	char *data; /* NULL until something was added */
	size_t size; /* bytes in use, without the NUL */
	size_t room;
};

#define BUF_INIT ((struct buf){ 0 })

void buf_deinit(struct buf *buf); /* also a zeroed one; leaves it zeroed */
void buf_clear(struct buf *buf); /* size 0, memory kept */
void buf_reserve(struct buf *buf, size_t extra);
void buf_add(struct buf *buf, const void *data, size_t size);
void buf_adds(struct buf *buf, const char *text);
void buf_addc(struct buf *buf, char c);
void buf_addf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_addu(struct buf *buf, uint64_t number); /* decimal, fast */
void buf_addi(struct buf *buf, int64_t number);
/*
 * Appends text as a JSON string in quotes: escapes quote, backslash and all controls, also those
 * that JSON would take plain (utf8_is_control); bad UTF-8 becomes U+FFFD.
 */
void buf_add_json(struct buf *buf, const char *text, size_t size);
/* "key":"text", the key as it stands */
void buf_add_json_member(struct buf *buf, const char *key, const char *text);
/* Takes the bytes out (caller frees with free()); the buf is empty afterwards. Never NULL. */
char *buf_take(struct buf *buf);
/* The text, "" when nothing was added. */
const char *buf_text(const struct buf *buf);

#define AUTO_BUF __attribute__((cleanup(buf_deinit))) struct buf
