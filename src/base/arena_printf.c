/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from arena.c because the core links that one and may not call printf. */
#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/check.h"

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;
	char *text;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	CHECK(length >= 0);
	text = arena_alloc(arena, (size_t)length + 1);
	vsnprintf(text, (size_t)length + 1, format, again);
	va_end(again);
	return text;
}
