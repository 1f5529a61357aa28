/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Required affinity and anti-affinity between pods, both ways.
 *
 * A term names pods (by labels, in some namespaces) and a topology key. The nodes with one value of the key are a domain:
 *
 *	affinity	the node's domain must have a pod that every term of the pod names; or no such pod is anywhere, and the pod
 *			is one itself: the first of its kind
 *	anti-affinity	the node's domain must have none that a term names
 *	and of those that run, no term of theirs may name the pod in the domain where they are
 */
#include <string.h>

#include "engine/kubernetes/predicates/check.h"
#include "engine/kubernetes/predicates/match.h"

struct mark {
	struct mark *next;
	const struct topology *topology;
	bool *domain; /* by number */
};
struct meeting {
	struct mark *near, *apart; /* of each of the pod's terms, in their order */
	struct mark *refused; /* by terms of pods that run; one of each key */
	bool any_near; /* some pod that every term names runs where one of the keys is */
	bool self; /* the pod is one that every of its terms names */
};

static const void *namespace_find(const struct predicates *p, const char *name)
{
	struct known_thing *known;

	HASH_FIND_STR(p->namespaces, name, known);
	return known ? known->block : NULL;
}

/* Neither namespaces nor a selector of them: the namespace of the pod whose term it is. */
static bool term_reaches(const struct check *check, const struct placed_pod *owner,
			 const struct placed_pod_term *term, const char *namespace)
{
	const struct placed_namespace *known;

	if (!term->namespaces && !term->where.given)
		return strcmp(placed_text(owner, owner->namespace), namespace) == 0;
	PLACED_EACH(owner, placed_word, word, term->namespaces)
	{
		if (strcmp(placed_text(owner, word->text), namespace) == 0)
			return true;
	}
	if (!term->where.given)
		return false;
	if (!term->where.requirements)
		return true;
	known = namespace_find(check->p, namespace);
	return known && selector_matches(owner, &term->where, known, known->labels);
}

static bool term_names(const struct check *check, const struct placed_pod *owner,
		       const struct placed_pod_term *term, const struct placed_pod *other)
{
	return selector_matches(owner, &term->pods, other, other->labels) &&
	       term_reaches(check, owner, term, placed_text(other, other->namespace));
}

static bool all_name(const struct check *check, const struct placed_pod *other)
{
	PLACED_EACH(check->pod, placed_pod_term, term, check->pod->near)
	{
		if (!term_names(check, check->pod, term, other))
			return false;
	}
	return check->pod->near != 0;
}

static struct mark *mark_add(struct check *check, struct mark **list, const char *key)
{
	struct mark *mark = arena_new(check->arena, struct mark);

	mark->topology = check_topology(check, key);
	mark->domain = arena_new_array(check->arena, bool, mark->topology->count + 1);
	while (*list)
		list = &(*list)->next;
	*list = mark;
	return mark;
}

static bool mark_set(struct mark *mark, const struct known_node *node)
{
	uint32_t domain = mark->topology->domain[node->index];

	mark->domain[domain] = domain != 0;
	return domain != 0;
}

static void refuse(struct check *check, const char *key, const struct known_node *node)
{
	struct mark *mark = check->meeting->refused;

	while (mark && strcmp(mark->topology->key, key) != 0)
		mark = mark->next;
	(void)mark_set(mark ? mark : mark_add(check, &check->meeting->refused, key), node);
}

static void meet(struct check *check, const struct placed_pod *other, const struct known_node *node)
{
	struct meeting *meeting = check->meeting;
	struct mark *mark = meeting->apart;

	PLACED_EACH(other, placed_pod_term, term, other->apart)
	{
		if (term_names(check, other, term, check->pod))
			refuse(check, placed_text(other, term->topology_key), node);
	}
	PLACED_EACH(check->pod, placed_pod_term, term, check->pod->apart)
	{
		if (term_names(check, check->pod, term, other))
			(void)mark_set(mark, node);
		mark = mark->next;
	}
	if (!all_name(check, other))
		return;
	for (mark = meeting->near; mark; mark = mark->next)
		meeting->any_near |= mark_set(mark, node);
}

static bool is_same(const struct placed_pod *a, const struct placed_pod *b)
{
	return strcmp(placed_text(a, a->uid), placed_text(b, b->uid)) == 0;
}

void relations_begin(struct check *check)
{
	const struct placed_pod *pod = check->pod;

	check->meeting = arena_new(check->arena, struct meeting);
	PLACED_EACH(pod, placed_pod_term, term, pod->near)
	{
		mark_add(check, &check->meeting->near, placed_text(pod, term->topology_key));
	}
	PLACED_EACH(pod, placed_pod_term, term, pod->apart)
	{
		mark_add(check, &check->meeting->apart, placed_text(pod, term->topology_key));
	}
	check->meeting->self = all_name(check, pod);
	if (!pod->near && !pod->apart) {
		for (const struct known_pod *known = check->p->keepers; known;
		     known = known->next_keeper)
			if (known->node->node && !is_same(known->pod, pod))
				meet(check, known->pod, known->node);
		return;
	}
	for (uint32_t i = 0; i < check->p->count; i++) {
		const struct known_node *node = check->p->nodes[i];

		if (!node->node)
			continue;
		CHECK_PODS(check, other, node)
		if (pod->near || pod->apart || other->pod->apart)
			meet(check, other->pod, node);
	}
}

static bool any_marked(const struct mark *mark, uint32_t index)
{
	for (; mark; mark = mark->next)
		if (mark->domain[mark->topology->domain[index]])
			return true;
	return false;
}

static bool near_meets(const struct meeting *meeting, uint32_t index)
{
	bool all = true;

	for (const struct mark *mark = meeting->near; mark; mark = mark->next) {
		uint32_t domain = mark->topology->domain[index];

		if (!domain)
			return false;
		all = all && mark->domain[domain];
	}
	return all || (!meeting->any_near && meeting->self);
}

enum predicate relations_meet(const struct check *check, const struct known_node *node)
{
	if (!near_meets(check->meeting, node->index))
		return PREDICATE_AFFINITY;
	if (any_marked(check->meeting->apart, node->index) ||
	    any_marked(check->meeting->refused, node->index))
		return PREDICATE_ANTI_AFFINITY;
	return PREDICATE_FITS;
}

static bool is_for_one(const struct predicates *p, const struct placed_pod *pod, at_t name)
{
	const struct placed_claim *claim =
		predicates_claim(p, placed_text(pod, pod->namespace), placed_text(pod, name));

	return claim && claim->alone;
}

static bool share_claim(const struct predicates *p, const struct placed_pod *a,
			const struct placed_pod *b)
{
	if (strcmp(placed_text(a, a->namespace), placed_text(b, b->namespace)) != 0)
		return false;
	PLACED_EACH(a, placed_word, mine, a->claims)
	{
		PLACED_EACH(b, placed_word, theirs, b->claims)
		{
			if (strcmp(placed_text(a, mine->text), placed_text(b, theirs->text)) == 0 &&
			    is_for_one(p, a, mine->text))
				return true;
		}
	}
	return false;
}

uint32_t predicates_relation(const struct predicates *p, const struct placed_pod *first,
			     const struct placed_pod *other)
{
	const struct check check = { .p = p, .pod = first };
	uint32_t found = 0;

	PLACED_EACH(first, placed_pod_term, term, first->near)
	{
		if (term_names(&check, first, term, other))
			found |= POD_NEAR;
	}
	PLACED_EACH(first, placed_pod_term, term, first->apart)
	{
		if (term_names(&check, first, term, other))
			found |= POD_APART;
	}
	if (spread_counts(first, other))
		found |= POD_SPREAD;
	if (pods_share_port(first, other))
		found |= POD_PORTS;
	if (share_claim(p, first, other))
		found |= POD_CLAIM;
	return found;
}

bool predicates_kept_away(const struct predicates *p, const struct placed_pod *pod)
{
	const struct check check = { .p = p, .pod = pod };

	for (const struct known_pod *known = p->keepers; known; known = known->next_keeper) {
		PLACED_EACH(known->pod, placed_pod_term, term, known->pod->apart)
		{
			if (!is_same(known->pod, pod) && term_names(&check, known->pod, term, pod))
				return true;
		}
	}
	return false;
}
