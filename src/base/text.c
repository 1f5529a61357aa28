/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for people: the hint for a misspelt word, and bytes from outside on a terminal. */
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"
#include "base/utf8.h"

enum { WORD_MAX = 64 };

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/*
 * Edits between a and b: a letter changed, left out, added, or two neighbours swapped (the optimal
 * string alignment distance). Three rows of the usual table are kept.
 */
static size_t edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *above2 = rows[0], *above = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= b_length; j++)
		above[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t best = above[j - 1] + (lower(a[i - 1]) != lower(b[j - 1]));

			if (above[j] + 1 < best)
				best = above[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
			    lower(a[i - 2]) == lower(b[j - 1]) && above2[j - 2] + 1 < best)
				best = above2[j - 2] + 1;
			row[j] = best;
		}
		spare = above2;
		above2 = above;
		above = row;
		row = spare;
	}
	return above[b_length];
}

/* Is brief what somebody writes for word in a hurry: its letters in order, the first one and at least half of them? */
static bool abbreviates(const char *brief, size_t brief_length, const char *word, size_t length)
{
	size_t found = 1;

	if (brief_length < 3 || brief_length * 2 < length || lower(brief[0]) != lower(word[0]))
		return false;
	for (size_t i = 1; i < length && found < brief_length; i++)
		found += lower(brief[found]) == lower(word[i]);
	return found == brief_length;
}

const char *spelling_hint(const char *word, const char *const *candidates, size_t count)
{
	size_t length = strlen(word), best = SIZE_MAX;
	const char *hint = NULL;

	if (!length || length > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t other = strlen(candidates[i]), distance;

		if (!other || other > WORD_MAX)
			continue;
		distance = edits(word, length, candidates[i], other);
		if ((distance * 3 > (length > other ? length : other) &&
		     !abbreviates(word, length, candidates[i], other)) ||
		    distance >= best)
			continue;
		best = distance;
		hint = candidates[i];
	}
	return hint;
}

/* Characters that a terminal obeys: controls, and marks that turn the direction of text around. */
static bool is_obeyed(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

static void add_escaped(struct buf *out, uint32_t code)
{
	static const char letters[] = "tn..r";

	if (code == '\t' || code == '\n' || code == '\r')
		buf_addf(out, "\\%c", letters[code - '\t']);
	else if (code < 0x80)
		buf_addf(out, "\\x%02x", code);
	else
		buf_addf(out, "\\u%04x", code);
}

void text_for_terminal(struct buf *out, const char *text, size_t size)
{
	size_t length;

	for (size_t at = 0; at < size; at += length) {
		length = utf8_size(text + at, size - at);
		if (!length) {
			buf_addf(out, "\\x%02x", (unsigned char)text[at]);
			length = 1;
		} else if (is_obeyed(utf8_code(text + at, length))) {
			add_escaped(out, utf8_code(text + at, length));
		} else {
			buf_add(out, text + at, length);
		}
	}
}
