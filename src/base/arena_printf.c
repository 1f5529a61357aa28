/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from arena.c because the core links that one and may not call printf. */
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"

char *arena_printf(struct arena *arena, const char *format, ...)
{
	char small[256], *text;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(small, sizeof(small), format, args);
	va_end(args);
	CHECK(length >= 0);
	if ((size_t)length < sizeof(small))
		return arena_strndup(arena, small, (size_t)length);
	text = arena_alloc(arena, (size_t)length + 1);
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}
