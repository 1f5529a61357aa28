/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of strings. A place in one is counted in characters, not in bytes. */
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "engine/kubernetes/cel/function.h"
#include "engine/kubernetes/cel/pattern.h"

enum { STRING_BYTES_MAX = 65536, PARTS_MAX = 4096 };

static const char too_long[] = "strings of more than 64 KiB are not built here";

static size_t characters(const struct string *s)
{
	size_t count = 0;

	for (size_t at = 0; at < s->size; count++)
		at += utf8_size(s->data + at, s->size - at);
	return count;
}

/* The byte where a character begins; of the place behind the last one the size. */
static size_t byte_of(const struct string *s, int64_t place)
{
	size_t at = 0;

	for (int64_t i = 0; i < place && at < s->size; i++)
		at += utf8_size(s->data + at, s->size - at);
	return at;
}

static bool stands_at(const struct string *s, size_t at, const struct string *what)
{
	return s->size - at >= what->size &&
	       (!what->size || memcmp(s->data + at, what->data, what->size) == 0);
}

/* The first byte from `at` on where it stands; SIZE_MAX = nowhere. */
static size_t find(const struct string *s, size_t at, const struct string *what)
{
	for (; at + what->size <= s->size; at++)
		if (stands_at(s, at, what))
			return at;
	return SIZE_MAX;
}

struct value string_add(struct arena *arena, const struct value *a)
{
	size_t size = a[0].string.size + a[1].string.size;
	char *out;

	if (size > STRING_BYTES_MAX)
		return value_refused(too_long);
	out = arena_alloc(arena, size + 1);
	memcpy(out, a[0].string.data, a[0].string.size);
	memcpy(out + a[0].string.size, a[1].string.data, a[1].string.size);
	return value_string(out, size);
}

struct value string_contains(struct arena *arena, const struct value *a)
{
	(void)arena;
	return value_bool(find(&a[0].string, 0, &a[1].string) != SIZE_MAX);
}

struct value string_starts(struct arena *arena, const struct value *a)
{
	(void)arena;
	return value_bool(stands_at(&a[0].string, 0, &a[1].string));
}

struct value string_ends(struct arena *arena, const struct value *a)
{
	size_t size = a[0].string.size, tail = a[1].string.size;

	(void)arena;
	return value_bool(tail <= size && stands_at(&a[0].string, size - tail, &a[1].string));
}

struct value string_matches(struct arena *arena, const struct value *a)
{
	return pattern_ask(arena, &a[1].string, &a[0].string);
}

struct value string_size(struct arena *arena, const struct value *a)
{
	(void)arena;
	return value_int((int64_t)characters(&a[0].string));
}

static struct value change_case(struct arena *arena, const struct string *s, char first, char last)
{
	char *out = arena_alloc(arena, s->size + 1);

	for (size_t i = 0; i < s->size; i++)
		out[i] = (char)(s->data[i] >= first && s->data[i] <= last ? s->data[i] ^ 0x20
									  : s->data[i]);
	return value_string(out, s->size);
}

struct value string_lower(struct arena *arena, const struct value *a)
{
	return change_case(arena, &a[0].string, 'A', 'Z');
}

struct value string_upper(struct arena *arena, const struct value *a)
{
	return change_case(arena, &a[0].string, 'a', 'z');
}

static bool is_plain(const struct string *s)
{
	for (size_t i = 0; i < s->size; i++)
		if ((unsigned char)s->data[i] >= 0x80)
			return false;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct value string_trim(struct arena *arena, const struct value *a)
{
	struct string s = a[0].string;

	(void)arena;
	if (!is_plain(&s))
		return value_refused("blanks beyond ASCII are not known here");
	for (; s.size && is_blank(s.data[0]); s.data++)
		s.size--;
	while (s.size && is_blank(s.data[s.size - 1]))
		s.size--;
	return value_string(s.data, s.size);
}

struct value string_char_at(struct arena *arena, const struct value *a)
{
	const struct string *s = &a[0].string;
	int64_t place = a[1].number;
	size_t at;

	(void)arena;
	if (place < 0 || place > (int64_t)characters(s))
		return value_failed("a place outside the string");
	at = byte_of(s, place);
	return value_string(s->data + at, at < s->size ? utf8_size(s->data + at, s->size - at) : 0);
}

static struct value place_of(const struct string *s, size_t at)
{
	struct string before = { s->data, at };

	return value_int(at == SIZE_MAX ? -1 : (int64_t)characters(&before));
}

struct value string_index_of(struct arena *arena, const struct value *a)
{
	(void)arena;
	return place_of(&a[0].string, find(&a[0].string, 0, &a[1].string));
}

struct value string_last_index_of(struct arena *arena, const struct value *a)
{
	size_t last = SIZE_MAX;

	(void)arena;
	for (size_t at = 0; (at = find(&a[0].string, at, &a[1].string)) != SIZE_MAX; at++)
		last = at;
	return place_of(&a[0].string, last);
}

static struct value part_of(const struct string *s, int64_t first, int64_t end)
{
	size_t from;

	if (first < 0 || end > (int64_t)characters(s) || first > end)
		return value_failed("a place outside the string");
	from = byte_of(s, first);
	return value_string(s->data + from, byte_of(s, end) - from);
}

struct value string_substring(struct arena *arena, const struct value *a)
{
	(void)arena;
	return part_of(&a[0].string, a[1].number, (int64_t)characters(&a[0].string));
}

struct value string_substring_to(struct arena *arena, const struct value *a)
{
	(void)arena;
	return part_of(&a[0].string, a[1].number, a[2].number);
}

struct value string_replace(struct arena *arena, const struct value *a)
{
	const struct string *s = &a[0].string, *old = &a[1].string, *new = &a[2].string;
	size_t count = 0, size = 0, at = 0, next;
	char *out;

	if (!old->size)
		return value_refused("replacing nothing is not built here");
	for (next = find(s, 0, old); next != SIZE_MAX; next = find(s, next + old->size, old))
		count++;
	if (s->size + count * new->size > STRING_BYTES_MAX)
		return value_refused(too_long);
	out = arena_alloc(arena, s->size + count * new->size + 1);
	while ((next = find(s, at, old)) != SIZE_MAX) {
		memcpy(out + size, s->data + at, next - at);
		size += next - at;
		memcpy(out + size, new->data, new->size);
		size += new->size;
		at = next + old->size;
	}
	memcpy(out + size, s->data + at, s->size - at);
	return value_string(out, size + s->size - at);
}

struct value string_split(struct arena *arena, const struct value *a)
{
	const struct string *s = &a[0].string, *by = &a[1].string;
	struct list *list = arena_new(arena, struct list);
	struct value *items;
	size_t at = 0, count = 1, next;

	if (!by->size)
		return value_refused("splitting by nothing is not built here");
	for (next = find(s, 0, by); next != SIZE_MAX; next = find(s, next + by->size, by))
		count++;
	if (count > PARTS_MAX)
		return value_refused("more parts than are kept here");
	items = arena_new_array(arena, struct value, count);
	while ((next = find(s, at, by)) != SIZE_MAX) {
		items[list->count++] = value_string(s->data + at, next - at);
		at = next + by->size;
	}
	items[list->count++] = value_string(s->data + at, s->size - at);
	list->items = items;
	return (struct value){ .kind = VALUE_LIST, .list = list };
}

static struct value join(struct arena *arena, const struct list *list, const struct string *by)
{
	size_t size = 0;
	char *out;

	for (uint32_t i = 0; i < list->count; i++) {
		if (list->items[i].kind != VALUE_STRING)
			return value_failed("values of types that do not go together");
		size += list->items[i].string.size + by->size;
		if (size > STRING_BYTES_MAX)
			return value_refused(too_long);
	}
	out = arena_alloc(arena, size + 1);
	size = 0;
	for (uint32_t i = 0; i < list->count; i++) {
		const struct string *s = &list->items[i].string;

		if (i && by->size)
			memcpy(out + size, by->data, by->size);
		size += i ? by->size : 0;
		memcpy(out + size, s->data, s->size);
		size += s->size;
	}
	return value_string(out, size);
}

struct value string_join(struct arena *arena, const struct value *a)
{
	static const struct string nothing = { "", 0 };

	return join(arena, a[0].list, &nothing);
}

struct value string_join_with(struct arena *arena, const struct value *a)
{
	return join(arena, a[0].list, &a[1].string);
}
