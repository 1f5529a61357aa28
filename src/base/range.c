/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of names. A text is cut into parts, each a literal followed by at most one range:
 *
 *	r[0-1]x[08-11]y    ->    {"r", 0..1}  {"x", 08..11}  {"y", none}
 *
 * The names are then counted like an odometer, the last range turning fastest.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"

enum { PARTS_MAX = 8, DIGITS_MAX = 9, TEXT_MAX = 255 };

struct part {
	const char *literal;
	int literal_bytes;
	bool ranged;
	int width; /* zeroes in front up to this width; 0 = none */
	uint32_t first, end;
};

static int range_error(const char *text, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "names \"%.80s\": %s; write for example n[0-3]", text,
		       why);
}

/* Digits at *p; how many there were (0: none, or too many). */
static int read_digits(const char **p, uint32_t *ret)
{
	int digits = (int)strspn(*p, "0123456789");

	*ret = 0;
	if (digits > DIGITS_MAX)
		return 0;
	for (int i = 0; i < digits; i++)
		*ret = *ret * 10 + (uint32_t)((*p)[i] - '0');
	*p += digits;
	return digits;
}

/* *p stands behind the opening bracket. NULL when all is well, else what is wrong. */
static const char *read_range(const char **p, struct part *part)
{
	const char *from = *p;
	int low_digits, high_digits;
	uint32_t last;

	low_digits = read_digits(p, &part->first);
	if (!low_digits || **p != '-')
		return "a range is two numbers with - between, of at most 9 digits";
	(*p)++;
	high_digits = read_digits(p, &last);
	if (!high_digits || **p != ']')
		return "a range is two numbers with - between, of at most 9 digits, closed with ]";
	(*p)++;
	if (last < part->first)
		return "the range runs backwards";
	if (*from == '0' && low_digits > 1)
		part->width = low_digits;
	if (part->width && high_digits != low_digits)
		return "with zeroes in front both numbers need the same number of digits";
	part->ranged = true;
	part->end = last + 1;
	return NULL;
}

static const char *read_parts(const char *text, struct part parts[PARTS_MAX], size_t *ret_count)
{
	const char *p = text, *problem;
	size_t count = 0, length;

	while (*p) {
		if (count == PARTS_MAX)
			return "there are more than 7 ranges";
		length = strcspn(p, "[]");
		parts[count] =
			(struct part){ .literal = p, .literal_bytes = (int)length, .end = 1 };
		p += length;
		if (*p == ']')
			return "a ] has no [ before it";
		if (*p == '[') {
			p++;
			problem = read_range(&p, &parts[count]);
			if (problem)
				return problem;
		}
		count++;
	}
	*ret_count = count;
	return NULL;
}

static const char *make_name(const struct part *parts, const uint32_t *at, size_t count,
			     struct arena *arena)
{
	char name[TEXT_MAX + PARTS_MAX * (DIGITS_MAX + 1) + 1];
	size_t length = 0;

	name[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		length += (size_t)snprintf(name + length, sizeof(name) - length, "%.*s",
					   parts[i].literal_bytes, parts[i].literal);
		if (parts[i].ranged)
			length += (size_t)snprintf(name + length, sizeof(name) - length, "%0*u",
						   parts[i].width, at[i]);
	}
	return arena_strndup(arena, name, length);
}

int parse_name_range(const char *text, struct arena *arena, size_t limit, const char ***ret_names,
		     size_t *ret_count, struct err *err)
{
	struct part parts[PARTS_MAX];
	uint32_t at[PARTS_MAX];
	size_t count = 0, total = 1;
	const char *problem, **names;
	int rc;

	if (!*text)
		return range_error(text, "the text is empty", err);
	if (strlen(text) > TEXT_MAX)
		return range_error(text, "the text has more than 255 characters", err);
	problem = read_parts(text, parts, &count);
	if (problem)
		return range_error(text, problem, err);
	for (size_t i = 0; i < count; i++) {
		if (__builtin_mul_overflow(total, parts[i].end - parts[i].first, &total) ||
		    total > limit)
			return err_set(err, ERR_TOO_LARGE,
				       "names \"%.80s\" are more than the limit of %zu", text,
				       limit);
		at[i] = parts[i].first;
	}
	names = arena_new_array(arena, const char *, total);
	for (size_t n = 0; n < total; n++) {
		names[n] = make_name(parts, at, count, arena);
		rc = parse_name(names[n], "name", err);
		if (rc < 0)
			return rc;
		for (size_t i = count; i-- > 0;) {
			if (++at[i] < parts[i].end)
				break;
			at[i] = parts[i].first;
		}
	}
	*ret_names = names;
	*ret_count = total;
	return 0;
}
