/* SPDX-License-Identifier: Apache-2.0 */
/* Semantic versions (semver.org, 2.0.0) as Kubernetes reads them, and with `lenient` as its semver(text, true): v1.2 is 1.2.0. */
#include <string.h>

#include "base/arena.h"
#include "engine/kubernetes/cel/value.h"

enum { VERSION_TEXT_MAX = 256 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_plain(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool is_number(const char *at, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!is_digit(at[i]))
			return false;
	return size > 0;
}

static size_t until(const struct string *s, size_t at, const char *stops)
{
	while (at < s->size && !strchr(stops, s->data[at]))
		at++;
	return at;
}

static int read_number(const char *at, size_t size, uint64_t *ret)
{
	uint64_t value = 0;

	if (!is_number(at, size) || (size > 1 && at[0] == '0'))
		return 1;
	for (size_t i = 0; i < size; i++)
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(at[i] - '0'), &value))
			return 1;
	*ret = value;
	return 0;
}

/* Words between points, none empty; numbers without zeroes in front when they order. */
static int check_words(const struct string *s, bool orders)
{
	size_t at = 0;

	for (;;) {
		size_t end = until(s, at, ".");

		if (end == at)
			return 1;
		for (size_t i = at; i < end; i++)
			if (!is_plain(s->data[i]))
				return 1;
		if (orders && is_number(s->data + at, end - at) && end - at > 1 &&
		    s->data[at] == '0')
			return 1;
		if (end == s->size)
			return 0;
		at = end + 1;
	}
}

static int read_strict(const struct string *text, struct version *ret)
{
	size_t a = until(text, 0, "."), b = a < text->size ? until(text, a + 1, ".") : text->size;
	struct string rest, build;
	size_t plus, minus;

	if (b >= text->size || read_number(text->data, a, &ret->major) != 0 ||
	    read_number(text->data + a + 1, b - a - 1, &ret->minor) != 0)
		return 1;
	rest = (struct string){ text->data + b + 1, text->size - b - 1 };
	plus = until(&rest, 0, "+");
	build = (struct string){ rest.data + plus + 1,
				 rest.size > plus ? rest.size - plus - 1 : 0 };
	if (plus < rest.size && check_words(&build, false) != 0)
		return 1;
	rest.size = plus;
	minus = until(&rest, 0, "-");
	ret->before = (struct string){ NULL, 0 };
	if (minus < rest.size) {
		ret->before = (struct string){ rest.data + minus + 1, rest.size - minus - 1 };
		if (check_words(&ret->before, true) != 0)
			return 1;
	}
	return read_number(rest.data, minus, &ret->patch);
}

/* A part without the zeroes in front of it. */
static size_t write_part(char *out, const char *at, size_t size)
{
	size_t skip = 0, zero = 0;

	if (size > 1) {
		while (skip < size && at[skip] == '0')
			skip++;
		zero = skip == size || !is_digit(at[skip]);
	}
	if (zero)
		*out = '0';
	memcpy(out + zero, at + skip, size - skip);
	return zero + size - skip;
}

static struct string make_strict(struct arena *arena, const struct string *text)
{
	char *out = arena_alloc(arena, text->size + 8);
	size_t at = text->size && text->data[0] == 'v', size = 0;
	uint32_t parts = 0;

	for (;;) {
		size_t end = parts < 2 ? until(text, at, ".") : text->size;

		size += write_part(out + size, text->data + at, end - at);
		parts++;
		if (end == text->size)
			break;
		out[size++] = '.';
		at = end + 1;
	}
	/* what is short has no word behind it: "1.2-rc" stays wrong */
	if (parts < 3 && !strpbrk(arena_strndup(arena, text->data + at, text->size - at), "+-"))
		for (; parts < 3; parts++) {
			out[size++] = '.';
			out[size++] = '0';
		}
	return (struct string){ out, size };
}

int version_read(struct arena *arena, const struct string *text, bool lenient, struct version *ret)
{
	struct string strict = *text;

	if (text->size > VERSION_TEXT_MAX)
		return 2;
	if (memchr(text->data, '\0', text->size))
		return 1;
	if (lenient)
		strict = make_strict(arena, text);
	return read_strict(&strict, ret);
}

/* -- order -- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Numbers by value, before all words; words by their letters. Long numbers without zeroes in front: by length first. */
static int compare_words(const char *a, size_t a_size, const char *b, size_t b_size)
{
	bool a_number = is_number(a, a_size), b_number = is_number(b, b_size);
	int order;

	if (a_number != b_number)
		return a_number ? -1 : 1;
	if (a_number && a_size != b_size)
		return compare_numbers(a_size, b_size);
	order = memcmp(a, b, a_size < b_size ? a_size : b_size);
	return order ? (order > 0) - (order < 0) : compare_numbers(a_size, b_size);
}

static int compare_before(const struct string *a, const struct string *b)
{
	size_t i = 0, j = 0;

	if (!a->size || !b->size)
		return (a->size == 0) - (b->size == 0);
	for (;;) {
		size_t a_end = until(a, i, "."), b_end = until(b, j, ".");
		int order = compare_words(a->data + i, a_end - i, b->data + j, b_end - j);

		if (order)
			return order;
		if (a_end == a->size || b_end == b->size)
			return (b_end == b->size) - (a_end == a->size);
		i = a_end + 1;
		j = b_end + 1;
	}
}

int version_compare(const struct version *a, const struct version *b)
{
	int order = compare_numbers(a->major, b->major);

	if (!order)
		order = compare_numbers(a->minor, b->minor);
	if (!order)
		order = compare_numbers(a->patch, b->patch);
	return order ? order : compare_before(&a->before, &b->before);
}
