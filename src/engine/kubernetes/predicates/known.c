/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of nodes, pods, namespaces, claims and volumes, kept by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/predicates/predicates.h"

enum { PATH_ROOM = 512 };

/* --- nodes ----------------------------------------------------------------------------------------------------- */

static struct known_node *node_find(const struct predicates *p, const char *name)
{
	struct known_node *known;

	HASH_FIND_STR(p->by_name, name, known);
	return known;
}

static struct known_node *node_add(struct predicates *p, const char *name)
{
	struct known_node *known = node_find(p, name);

	if (known)
		return known;
	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->nodes = realloc(p->nodes, p->room * sizeof(struct known_node *));
		CHECK(p->nodes);
	}
	known = calloc(1, sizeof(*known));
	CHECK(known);
	known->name = strdup(name);
	CHECK(known->name);
	known->index = p->count;
	p->nodes[p->count++] = known;
	HASH_ADD_KEYPTR(hh, p->by_name, known->name, strlen(known->name), known);
	return known;
}

/* Gone when neither the API server nor a pod names it. The last takes its index. */
static void node_drop(struct predicates *p, struct known_node *known)
{
	if (known->node || known->pods)
		return;
	p->nodes[known->index] = p->nodes[--p->count];
	p->nodes[known->index]->index = known->index;
	HASH_DELETE(hh, p->by_name, known);
	free(known->name);
	free(known);
}

struct known_node *predicates_node(const struct predicates *p, const char *name)
{
	return node_find(p, name);
}

static bool gpu_tainted(const struct placed_node *node)
{
	for (const struct placed_taint *taint = node ? PLACED(node, placed_taint, node->taints)
						     : NULL;
	     taint; taint = PLACED(node, placed_taint, taint->next))
		if (strcmp(placed_text(node, taint->key), KUBE_GPU) == 0)
			return true;
	return false;
}

/* In place of what was known; NULL = of none any more. */
static void node_put(struct predicates *p, struct known_node *known, struct placed_node *node)
{
	p->gpu_tainted -= gpu_tainted(known->node);
	p->gpu_tainted += gpu_tainted(node);
	free(known->node);
	known->node = node;
}

bool predicates_node_set(struct predicates *p, struct placed_node *node)
{
	struct known_node *known = node_add(p, placed_text(node, node->name));

	if (known->node && known->node->size == node->size &&
	    memcmp(known->node, node, node->size) == 0) {
		free(node);
		return false;
	}
	node_put(p, known, node);
	known->touched = true;
	return true;
}

void predicates_node_remove(struct predicates *p, const char *name)
{
	struct known_node *known = node_find(p, name);

	if (!known)
		return;
	node_put(p, known, NULL);
	node_drop(p, known);
}

/* --- pods ------------------------------------------------------------------------------------------------------- */

static void keeper_link(struct predicates *p, struct known_pod *known)
{
	if (!known->pod->apart)
		return;
	known->previous_keeper = NULL;
	known->next_keeper = p->keepers;
	if (known->next_keeper)
		known->next_keeper->previous_keeper = known;
	p->keepers = known;
}

static void keeper_unlink(struct predicates *p, struct known_pod *known)
{
	if (!known->pod->apart)
		return;
	if (known->next_keeper)
		known->next_keeper->previous_keeper = known->previous_keeper;
	if (known->previous_keeper)
		known->previous_keeper->next_keeper = known->next_keeper;
	else
		p->keepers = known->next_keeper;
}

static void pod_link(struct predicates *p, struct known_pod *known)
{
	const struct placed_pod *pod = known->pod;
	const char *node = pod->node ? placed_text(pod, pod->node) : known->assumed;

	if (!node || pod->over)
		return;
	known->node = node_add(p, node);
	known->node->touched = true;
	keeper_link(p, known);
	known->previous = NULL;
	known->next = known->node->pods;
	if (known->next)
		known->next->previous = known;
	known->node->pods = known;
}

static void pod_unlink(struct predicates *p, struct known_pod *known)
{
	struct known_node *node = known->node;

	if (!node)
		return;
	node->touched = true;
	keeper_unlink(p, known);
	if (known->next)
		known->next->previous = known->previous;
	if (known->previous)
		known->previous->next = known->next;
	else
		node->pods = known->next;
	known->node = NULL;
	node_drop(p, node);
}

void predicates_pod_remove(struct predicates *p, const char *uid)
{
	struct known_pod *known;

	HASH_FIND_STR(p->pods, uid, known);
	if (!known)
		return;
	HASH_DELETE(hh, p->pods, known);
	pod_unlink(p, known);
	free(known->assumed);
	free(known->pod);
	free(known);
}

const struct placed_pod *predicates_pod(const struct predicates *p, const char *uid)
{
	struct known_pod *known;

	HASH_FIND_STR(p->pods, uid, known);
	return known ? known->pod : NULL;
}

bool predicates_pod_set(struct predicates *p, struct placed_pod *pod)
{
	struct known_pod *known, *before;
	const char *uid = placed_text(pod, pod->uid);
	char *assumed = NULL;

	HASH_FIND_STR(p->pods, uid, before);
	if (before && before->pod->size == pod->size && memcmp(before->pod, pod, pod->size) == 0) {
		free(pod);
		return false;
	}
	if (before) {
		assumed = before->assumed;
		before->assumed = NULL;
	}
	predicates_pod_remove(p, uid);
	known = calloc(1, sizeof(*known));
	CHECK(known);
	known->pod = pod;
	known->assumed = assumed;
	HASH_ADD_KEYPTR(hh, p->pods, uid, strlen(uid), known);
	pod_link(p, known);
	return true;
}

void predicates_pod_assume(struct predicates *p, const char *uid, const char *node)
{
	struct known_pod *known;

	HASH_FIND_STR(p->pods, uid, known);
	if (!known || (!node && !known->assumed) ||
	    (node && known->assumed && strcmp(node, known->assumed) == 0))
		return;
	pod_unlink(p, known);
	free(known->assumed);
	known->assumed = node ? strdup(node) : NULL;
	CHECK(!node || known->assumed);
	pod_link(p, known);
}

/* --- namespaces, claims, volumes ------------------------------------------------------------------------------------ */

static void thing_remove(struct known_thing **things, const char *name)
{
	struct known_thing *known;

	HASH_FIND_STR(*things, name, known);
	if (!known)
		return;
	HASH_DELETE(hh, *things, known);
	free(known->name);
	free(known->block);
	free(known);
}

static void thing_set(struct known_thing **things, const char *name, void *block)
{
	struct known_thing *known;

	thing_remove(things, name);
	known = calloc(1, sizeof(*known));
	CHECK(known);
	known->block = block;
	known->seen = true;
	known->name = strdup(name);
	CHECK(known->name);
	HASH_ADD_KEYPTR(hh, *things, known->name, strlen(known->name), known);
}

void predicates_things_begin(struct known_thing *things)
{
	for (struct known_thing *known = things; known; known = known->hh.next)
		known->seen = false;
}

void predicates_things_listed(struct known_thing **things)
{
	struct known_thing *known, *next;

	HASH_ITER(hh, *things, known, next)
	{
		if (!known->seen)
			thing_remove(things, known->name);
	}
}

void predicates_namespace_set(struct predicates *p, struct placed_namespace *namespace)
{
	thing_set(&p->namespaces, placed_text(namespace, namespace->name), namespace);
}

void predicates_namespace_remove(struct predicates *p, const char *name)
{
	thing_remove(&p->namespaces, name);
}

void predicates_claim_set(struct predicates *p, struct placed_claim *claim)
{
	char name[PATH_ROOM];

	snprintf(name, sizeof(name), "%s/%s", placed_text(claim, claim->namespace),
		 placed_text(claim, claim->name));
	thing_set(&p->claims, name, claim);
}

void predicates_claim_remove(struct predicates *p, const char *namespace, const char *name)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "%s/%s", namespace, name);
	thing_remove(&p->claims, path);
}

void predicates_volume_set(struct predicates *p, struct placed_volume *volume)
{
	thing_set(&p->volumes, placed_text(volume, volume->name), volume);
}

void predicates_class_set(struct predicates *p, struct placed_class *class)
{
	thing_set(&p->classes, placed_text(class, class->name), class);
}

void predicates_class_remove(struct predicates *p, const char *name)
{
	thing_remove(&p->classes, name);
}

void predicates_volume_remove(struct predicates *p, const char *name)
{
	thing_remove(&p->volumes, name);
}

void predicates_deinit(struct predicates *p)
{
	struct known_pod *pod, *more;

	HASH_ITER(hh, p->pods, pod, more)
	predicates_pod_remove(p, placed_text(pod->pod, pod->pod->uid));
	while (p->count)
		predicates_node_remove(p, p->nodes[p->count - 1]->name);
	while (p->namespaces)
		thing_remove(&p->namespaces, p->namespaces->name);
	while (p->claims)
		thing_remove(&p->claims, p->claims->name);
	while (p->volumes)
		thing_remove(&p->volumes, p->volumes->name);
	while (p->classes)
		thing_remove(&p->classes, p->classes->name);
	free((void *)p->nodes);
	*p = (struct predicates){ 0 };
}
