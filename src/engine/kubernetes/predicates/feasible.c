/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests: reads Kubernetes objects from standard input, one a line, and says for each pod of scheduler `fairlead` that has no node on
 * which nodes it may run: "NAME: node node", and behind a bar why not on the others. A line "---" begins another cluster.
 * tests/kubernetes/bed/feasible.go says the same with kube-scheduler's own plugins.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engine/kubernetes/predicates/predicates.h"

enum { CHECK_BYTES = 64 << 20 };

struct tool {
	struct predicates p;
	struct arena arena;
	struct err err;
};

static void kind_of(const char *line, size_t size, char kind[64])
{
	struct json_reader r;
	struct json_slice key, text;

	kind[0] = '\0';
	pull_init(&r, line, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (!pull_key_is(&key, "kind")) {
			pull_skip(&r);
			continue;
		}
		pull_string(&r, &text);
		if (!r.problem && text.size < 64) {
			memcpy(kind, text.data, text.size);
			kind[text.size] = '\0';
		}
		return;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct known_node *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static void answer(struct tool *tool, struct placed_pod *pod)
{
	struct predicates *p = &tool->p;
	const struct known_node **sorted;
	struct feasible feasible;

	predicates_check(p, pod, NULL, &tool->arena, &feasible);
	sorted = arena_new_array(&tool->arena, const struct known_node *, p->count + 1);
	for (uint32_t i = 0; i < p->count; i++)
		sorted[i] = p->nodes[i];
	qsort((void *)sorted, p->count, sizeof(*sorted), by_name);
	printf("%s:", placed_text(pod, pod->name));
	for (uint32_t i = 0; i < p->count; i++)
		if (feasible.reason[sorted[i]->index] == PREDICATE_FITS)
			printf(" %s", sorted[i]->name);
	printf(" |");
	for (uint32_t i = 0; i < p->count; i++)
		if (feasible.reason[sorted[i]->index] != PREDICATE_FITS)
			printf(" %s (%s)", sorted[i]->name,
			       predicate_name(feasible.reason[sorted[i]->index]));
	printf("%s%s\n", feasible.problem ? " " : "", feasible.problem ? feasible.problem : "");
	arena_reset(&tool->arena);
	free(pod);
}

static int take_pod(struct tool *tool, const char *line, size_t size)
{
	struct placed_pod *pod;
	int rc = placed_pod_read(line, size, &pod, &tool->err);

	if (rc < 0)
		return rc;
	if (strstr(line, "\"schedulerName\": \"fairlead\"") && !pod->node)
		answer(tool, pod);
	else
		predicates_pod_set(&tool->p, pod);
	return 0;
}

/* Each kind's reader, and what takes its block. */
#define TAKE(type, reader, setter)                                                                 \
	do {                                                                                       \
		struct type *block;                                                                \
		int rc = reader(line, size, &block, &tool->err);                                   \
                                                                                                   \
		if (rc == 0)                                                                       \
			setter(&tool->p, block);                                                   \
		return rc;                                                                         \
	} while (0)

static int take(struct tool *tool, const char *line, size_t size)
{
	char kind[64];

	kind_of(line, size, kind);
	if (strcmp(kind, "Pod") == 0)
		return take_pod(tool, line, size);
	if (strcmp(kind, "Node") == 0)
		TAKE(placed_node, placed_node_read, predicates_node_set);
	if (strcmp(kind, "Namespace") == 0)
		TAKE(placed_namespace, placed_namespace_read, predicates_namespace_set);
	if (strcmp(kind, "PersistentVolumeClaim") == 0)
		TAKE(placed_claim, placed_claim_read, predicates_claim_set);
	if (strcmp(kind, "PersistentVolume") == 0)
		TAKE(placed_volume, placed_volume_read, predicates_volume_set);
	return 0;
}

int main(void)
{
	struct tool tool = { 0 };
	char *line = NULL;
	size_t room = 0;
	ssize_t size;

	arena_init(&tool.arena, CHECK_BYTES);
	while ((size = getline(&line, &room, stdin)) > 0) {
		if (strncmp(line, "---", 3) == 0) {
			predicates_deinit(&tool.p);
		} else if (take(&tool, line, (size_t)size) < 0) {
			fprintf(stderr, "%s: %s\n", tool.err.text, line);
			return 1;
		}
	}
	predicates_deinit(&tool.p);
	arena_deinit(&tool.arena);
	free(line);
	return 0;
}
