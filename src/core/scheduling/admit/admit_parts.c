/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of checks of commands: numbers, names, texts, lists. */
#include "core/scheduling/admit/admit.h"

#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "core/model/apply.h"

int admit_range(const struct admission *a, const char *what, int64_t value, int64_t min,
		int64_t max)
{
	if (value >= min && value <= max)
		return 0;
	return err_set(a->err, ERR_INVALID, "%s is %lld; it must be between %lld and %lld", what,
		       (long long)value, (long long)min, (long long)max);
}

int admit_name(const struct admission *a, const char *what, const char *text)
{
	return parse_name(text, what, a->err);
}

int admit_text(const struct admission *a, const char *what, const char *text)
{
	size_t size = strlen(text);

	if (size > EVENT_TEXT_MAX)
		return err_set(a->err, ERR_TOO_LARGE, "%s has %llu bytes; the limit is %d", what,
			       (unsigned long long)size, EVENT_TEXT_MAX);
	if (!text_is_utf8(text, size))
		return err_set(a->err, ERR_INVALID, "%s is not valid UTF-8", what);
	return 0;
}

int admit_names(const struct admission *a, const char *what, const char *list, int max,
		bool empty_allowed)
{
	int count = 0;

	if (strlen(list) > EVENT_TEXT_MAX)
		return err_set(a->err, ERR_TOO_LARGE, "the list of %s names has more than %d bytes",
			       what, EVENT_TEXT_MAX);
	while (*list) {
		const char *end = memchr(list, ',', strlen(list));
		size_t size = end ? (size_t)(end - list) : strlen(list);
		int rc = size == 0 && empty_allowed
				 ? 0
				 : admit_name(a, what, arena_strndup(a->arena, list, size));

		if (rc < 0)
			return rc;
		if (++count > max)
			return err_set(a->err, ERR_INVALID,
				       "%d %s names are given; the limit is %d", count, what, max);
		list += size + (end ? 1 : 0);
	}
	return count;
}

static bool label_is_good(const char *text, size_t size, bool valued)
{
	static const char marks[] = { '.', '_', '-', '/', '=' };
	const char *equals = memchr(text, '=', size);

	for (size_t i = 0; i < size; i++)
		if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
		      (text[i] >= '0' && text[i] <= '9') || memchr(marks, text[i], sizeof(marks))))
			return false;
	if (!equals)
		return !valued && size > 0;
	return equals > text && equals + 1 < text + size &&
	       !memchr(equals + 1, '=', (size_t)(text + size - equals - 1));
}

int admit_labels(const struct admission *a, const char *what, const char *list, int max,
		 bool valued)
{
	int count = 0, rc = admit_text(a, arena_printf(a->arena, "the list of %ss", what), list);

	for (const char *end; rc == 0 && *list; list = *end ? end + 1 : end) {
		const char *comma = memchr(list, ',', strlen(list));
		size_t size = comma ? (size_t)(comma - list) : strlen(list);

		end = list + size;
		if (size > NAME_MAX_BYTES)
			return err_set(a->err, ERR_INVALID,
				       "%s \"%.20s...\" has %llu bytes; the limit is %d", what,
				       list, (unsigned long long)size, NAME_MAX_BYTES);
		if (!label_is_good(list, size, valued))
			return err_set(
				a->err, ERR_INVALID,
				"%s \"%.*s\" must be %s, of letters, digits, dots, hyphens, underscores and slashes",
				what, (int)size, list, valued ? "KEY=VALUE" : "KEY or KEY=VALUE");
		if (++count > max)
			return err_set(a->err, ERR_INVALID, "more than %d %ss are given", max,
				       what);
	}
	return rc;
}

int admit_version(const struct admission *a, const char *what, const char *text)
{
	bool good = !*text || version_parse(text);

	for (const char *c = text; *c; c++)
		good = good && ((*c >= '0' && *c <= '9') || *c == '.');
	if (good)
		return 0;
	return err_set(a->err, ERR_INVALID,
		       "%s \"%.40s\" is not a version: numbers with dots between, such as %s", what,
		       text, strcmp(what, "min_cuda") == 0 ? "12.4" : "550.54.14");
}

struct queue_id admit_queue_find(const struct admission *a, const char *name)
{
	struct queue_id id = facts_queue_find(a->facts, name);
	const char **names, *hint;
	size_t count = 0;

	if (id.v)
		return id;
	names = arena_array(a->arena, (size_t)a->facts->queues.count + 1, sizeof(*names));
	for (uint32_t q = 1; q <= a->facts->queues.count; q++)
		if (!queue_get(a->facts, (struct queue_id){ q })->removed)
			names[count++] = facts_name(
				a->facts, queue_get(a->facts, (struct queue_id){ q })->name);
	hint = spelling_hint(name, names, count);
	if (hint)
		err_set(a->err, ERR_NOT_FOUND, "queue \"%s\" does not exist; did you mean \"%s\"?",
			name, hint);
	else
		err_set(a->err, ERR_NOT_FOUND,
			"queue \"%s\" does not exist; `fairlead queues` lists those that do", name);
	return id;
}

const char *share_text(struct arena *arena, int64_t share)
{
	int64_t milli = (share % GPU_SHARE * 1000 + GPU_SHARE / 2) / GPU_SHARE;
	int64_t whole = share / GPU_SHARE + milli / 1000;
	char *text;

	if (milli == 0 || milli == 1000)
		return arena_printf(arena, "%lld", (long long)whole);
	text = arena_printf(arena, "%lld.%03lld", (long long)whole, (long long)milli);
	for (size_t end = strlen(text); text[end - 1] == '0'; end--)
		text[end - 1] = '\0';
	return text;
}
