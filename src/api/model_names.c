/* SPDX-License-Identifier: Apache-2.0 */
#include "api/model_names.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"

enum { CANDIDATES_MAX = 16 };

static bool ends_word(char c)
{
	return !c || c == '-' || c == '_' || c == ' ' || c == '.';
}

bool model_has_short_name(const char *model, const char *name)
{
	const size_t size = strlen(name);

	if (!isalpha((unsigned char)*name))
		return false;
	for (const char *at = model; *at; at++)
		if ((at == model || ends_word(at[-1])) && strncasecmp(at, name, size) == 0 &&
		    ends_word(at[size]))
			return true;
	return false;
}

struct candidates {
	const char *names[CANDIDATES_MAX];
	size_t count;
	bool exact; /* a node bears the name itself */
};

static void candidate_add(struct candidates *ret, const char *model)
{
	for (size_t i = 0; i < ret->count; i++)
		if (strcmp(ret->names[i], model) == 0)
			return;
	if (ret->count < CANDIDATES_MAX)
		ret->names[ret->count++] = model;
}

static void candidates_find(const struct facts *facts, const char *name, struct candidates *ret)
{
	*ret = (struct candidates){ 0 };
	for (uint32_t id = 1; id <= facts->nodes.count && !ret->exact; id++) {
		const struct node *node = node_get(facts, (struct node_id){ id });
		const char *model = facts_name(facts, node->model);

		if (node->state == NODE_GONE || !*model)
			continue;
		ret->exact = strcmp(model, name) == 0;
		if (model_has_short_name(model, name))
			candidate_add(ret, model);
	}
}

static int ambiguous(const char *name, const struct candidates *candidates, struct arena *arena,
		     struct err *err)
{
	const char *list = "";

	for (size_t i = 0; i < candidates->count; i++)
		list = arena_printf(arena, "%s%s%s", list, i ? ", " : "", candidates->names[i]);
	return err_set(
		err, ERR_INVALID,
		"GPU model \"%.63s\" is the short name of %zu models: %.300s; write one of them, or a list of those that will do",
		name, candidates->count, list);
}

/* Whether a list with commas has the name. */
static bool list_has(const char *list, const char *name)
{
	const size_t size = strlen(name);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strncmp(list, name, size) == 0 && (!list[size] || list[size] == ','))
			return true;
	return false;
}

int models_in_full(const struct facts *facts, const char *models, struct arena *arena,
		   const char **ret, struct err *err)
{
	const char *all = "";
	size_t size;

	for (const char *at = models; *at; at += size + (at[size] == ',')) {
		struct candidates candidates;
		const char *name;

		size = strcspn(at, ",");
		name = arena_strndup(arena, at, size);
		candidates_find(facts, name, &candidates);
		if (!candidates.exact && candidates.count > 1)
			return ambiguous(name, &candidates, arena, err);
		if (!candidates.exact && candidates.count)
			name = candidates.names[0];
		if (list_has(all, name))
			return err_set(
				err, ERR_INVALID,
				"GPU model \"%.63s\" is named twice; \"%.*s\" is short for it",
				name, (int)(size > 63 ? 63 : size), at);
		all = arena_printf(arena, "%s%s%s", all, *all ? "," : "", name);
	}
	*ret = all;
	return 0;
}
