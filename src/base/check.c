/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t put(char *out, size_t at, size_t room, const char *text)
{
	while (*text && at < room)
		out[at++] = *text++;
	return at;
}

/* Neither stdio nor the heap: what failed may be either of them, and the core links this. */
void check_failed(const char *file, int line, const char *condition)
{
	char digits[12], text[1024];
	size_t at = 0, first = sizeof(digits) - 1;
	unsigned int rest = line > 0 ? (unsigned int)line : 0;

	digits[first] = '\0';
	do {
		digits[--first] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);

	at = put(text, at, sizeof(text) - 1, file);
	at = put(text, at, sizeof(text) - 1, ":");
	at = put(text, at, sizeof(text) - 1, digits + first);
	at = put(text, at, sizeof(text) - 1, ": this must be true and is not: ");
	at = put(text, at, sizeof(text) - 1, condition);
	text[at++] = '\n';
	if (write(STDERR_FILENO, text, at) < 0)
		abort();
	abort();
}
