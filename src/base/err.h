/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Errors with text, owned by the caller.
 *
 * A function's result says what happened: 0 done; a positive number is an outcome that this one
 * function documents and its caller must handle; a negative number is a failure, passed on unread.
 * The failure's story (which object, which value, what the reader can do) stands in the
 * `struct err` that the caller gave. Nothing is allocated; err may be NULL everywhere.
 *
 *	if (queue_parse(text, &queue, err) < 0)
 *		return -1;		// the story is in err already
 *	return err_set(err, ERR_NOT_FOUND, "queue \"%s\" does not exist", name);
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum err_code {
	ERR_NONE,
#define E(name, code, text, http, exit) ERR_##name,
#include "base/errors.def"
#undef E
	ERR_CODE_COUNT
};

enum { ERR_TEXT_MAX = 640, ERR_FILE_MAX = 256 };

struct err {
	enum err_code code;
	int line; /* of the input, from 1; 0 = not about a place in a text */
	int column; /* from 1, in characters */
	int errnum; /* what err_errno was told; 0 = not of the system */
	char file[ERR_FILE_MAX]; /* name of the input; empty = none */
	char text[ERR_TEXT_MAX]; /* one sentence, without a full stop at its end */
};

/*
 * Fills err (when not NULL) and returns -(int)code, so that `return err_set(...)` is one
 * statement.
 */
int err_set(struct err *err, enum err_code code, const char *format, ...) PRINTF_LIKE(3, 4);
int err_setv(struct err *err, enum err_code code, const char *format, va_list args)
	PRINTF_LIKE(3, 0);
/* As err_set, about a place in an input text. */
int err_at(struct err *err, enum err_code code, const char *file, int line, int column,
	   const char *format, ...) PRINTF_LIKE(6, 7);
/*
 * As err_set, with the operating system's reason in plain words behind the text (": no space
 * left ...").
 */
int err_errno(struct err *err, enum err_code code, int errnum, const char *format, ...)
	PRINTF_LIKE(4, 5);
/* Puts "prefix: " before the text; for adding what was being done. Returns -(int)err->code. */
int err_prefix(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Whether it was for want of space on a disk, or in somebody's share of it. err may be NULL. */
bool err_is_full(const struct err *err);

const char *err_code_name(enum err_code code); /* "not_found" */
const char *err_code_text(enum err_code code); /* plain words */
int err_code_http(enum err_code code);
int err_code_exit(enum err_code code);
/* The code with that JSON name, ERR_INTERNAL if there is none. */
enum err_code err_code_find(const char *name);
/* An errno in plain words ("permission denied"), never a number. Static text. */
const char *err_errno_text(int errnum);
