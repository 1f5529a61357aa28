/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What went wrong, on stderr: "fairlead: MESSAGE", with file, line and column in front and the line itself with a caret below,
 * when it is about a place in a text. */
#include <stddef.h>
#include "base/err.h"

/* The text that places in `file` point into; kept by pointer. */
void problem_source(const char *file, const char *text, size_t size);
void problem_show(const struct err *err);
/* A line on stderr for people, "fairlead: " in front; text from outside is escaped. */
void notice(const char *format, ...) PRINTF_LIKE(1, 2);
