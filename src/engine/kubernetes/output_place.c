/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/output.h"

#include <stdio.h>
#include <string.h>

#include "base/moment.h"

/* Nanoseconds since 1970; 0 = the line begins with no time. */
static int64_t stamp_of(const char *line, size_t size, size_t *ret_size)
{
	const char *space =
		memchr(line, ' ', size < OUTPUT_STAMP_MAX ? size : OUTPUT_STAMP_MAX - 1);
	char text[OUTPUT_STAMP_MAX], whole[OUTPUT_STAMP_MAX];
	size_t dot, digits = 0;
	int64_t ms, ns = 0;

	if (!space)
		return 0;
	*ret_size = (size_t)(space - line);
	snprintf(text, sizeof(text), "%.*s", (int)*ret_size, line);
	dot = strcspn(text, ".");
	if (text[dot])
		digits = strspn(text + dot + 1, "0123456789");
	for (size_t i = 0; i < 9; i++)
		ns = ns * 10 + (i < digits ? text[dot + 1 + i] - '0' : 0);
	snprintf(whole, sizeof(whole), "%.*s%s", (int)dot, text,
		 text[dot] ? text + dot + 1 + digits : "");
	if (strlen(whole) < 20 || moment_parse(whole, &ms) != 0)
		return 0;
	return ms * 1000000 + ns;
}

void output_again(struct output_place *place)
{
	place->met = 0;
}

bool output_is_new(struct output_place *place, const char *line, size_t size, const char **ret_text)
{
	size_t stamp = 0;
	int64_t at_ns = stamp_of(line, size, &stamp);

	*ret_text = at_ns ? line + stamp + 1 : line;
	if (!at_ns || at_ns > place->newest_ns)
		return true;
	if (at_ns < place->newest_ns)
		return false;
	if (place->met == place->same)
		return true;
	place->met++;
	return false;
}

void output_told(struct output_place *place, const char *line, size_t size)
{
	size_t stamp = 0;
	int64_t at_ns = stamp_of(line, size, &stamp);

	if (!at_ns || at_ns < place->newest_ns)
		return;
	if (at_ns > place->newest_ns) {
		place->newest_ns = at_ns;
		place->same = place->met = 0;
		snprintf(place->stamp, sizeof(place->stamp), "%.*s", (int)stamp, line);
	}
	place->same++;
	place->met++;
}
