/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology spread that must be kept (DoNotSchedule): of the domains that count, none may come to have more of the pods than the one with
 * the fewest has, plus maxSkew.
 *
 *	zones a: 3 pods, b: 1, c: 1; maxSkew 1		the pod may go to b and c
 *	minDomains 4					there are only three: the fewest counts as 0, and it may go nowhere
 *
 * Which nodes count: those that have the keys of all constraints; those only that the pod's node affinity takes, unless the constraint
 * says otherwise; those also whose taints it does not tolerate, likewise.
 */
#include <string.h>

#include "engine/kubernetes/predicates/check.h"
#include "engine/kubernetes/predicates/match.h"

struct spreading {
	struct spreading *next;
	const struct placed_spread *wish;
	const struct topology *topology;
	int64_t *pods; /* by number of the domain */
	bool *counts; /* some node of it counts */
	int64_t fewest;
	bool self; /* the pod is one of those that are spread */
};

static bool label_keys_match(const struct placed_pod *pod, const struct placed_spread *wish,
			     const struct placed_pod *other)
{
	PLACED_EACH(pod, placed_word, key, wish->label_keys)
	{
		const char *name = placed_text(pod, key->text);
		const char *mine = placed_label_find(pod, pod->labels, name);
		const char *theirs = placed_label_find(other, other->labels, name);

		if (mine && (!theirs || strcmp(mine, theirs) != 0))
			return false;
	}
	return true;
}

static bool is_spread(const struct placed_pod *pod, const struct placed_spread *wish,
		      const struct placed_pod *other)
{
	return selector_matches(pod, &wish->pods, other, other->labels) &&
	       label_keys_match(pod, wish, other);
}

bool spread_counts(const struct placed_pod *pod, const struct placed_pod *other)
{
	if (strcmp(placed_text(other, other->namespace), placed_text(pod, pod->namespace)) != 0)
		return false;
	PLACED_EACH(pod, placed_spread, wish, pod->spreads)
	{
		if (is_spread(pod, wish, other))
			return true;
	}
	return false;
}

/* A selector without requirements takes part as if it found none: so kube-scheduler has it, and pods are written for that. */
static bool selects_all(const struct placed_pod *pod, const struct placed_spread *wish)
{
	PLACED_EACH(pod, placed_word, key, wish->label_keys)
	{
		if (placed_label_find(pod, pod->labels, placed_text(pod, key->text)))
			return false;
	}
	return wish->pods.given && !wish->pods.requirements;
}

static bool has_all_keys(const struct check *check, uint32_t index)
{
	for (const struct spreading *s = check->spreading; s; s = s->next)
		if (!s->topology->domain[index])
			return false;
	return true;
}

static void count_node(const struct check *check, struct spreading *s,
		       const struct known_node *node)
{
	const struct placed_pod *pod = check->pod;
	uint32_t domain = s->topology->domain[node->index];

	if (!s->wish->any_affinity && !pod_wants_node(pod, node->node))
		return;
	if (s->wish->honours_taints && untolerated(pod, node->node))
		return;
	s->counts[domain] = true;
	if (selects_all(pod, s->wish))
		return;
	CHECK_PODS(check, other, node)
	if (!other->pod->deleting &&
	    strcmp(placed_text(other->pod, other->pod->namespace),
		   placed_text(pod, pod->namespace)) == 0 &&
	    is_spread(pod, s->wish, other->pod))
		s->pods[domain]++;
}

static void find_fewest(struct spreading *s)
{
	int32_t domains = 0;

	s->fewest = INT32_MAX;
	for (uint32_t i = 1; i <= s->topology->count; i++) {
		if (!s->counts[i])
			continue;
		domains++;
		s->fewest = s->pods[i] < s->fewest ? s->pods[i] : s->fewest;
	}
	if (domains < s->wish->min_domains)
		s->fewest = 0;
}

void spread_begin(struct check *check)
{
	const struct placed_pod *pod = check->pod;

	PLACED_EACH(pod, placed_spread, wish, pod->spreads)
	{
		struct spreading *s = arena_new(check->arena, struct spreading);

		s->wish = wish;
		s->topology = check_topology(check, placed_text(pod, wish->topology_key));
		s->pods = arena_new_array(check->arena, int64_t, s->topology->count + 1);
		s->counts = arena_new_array(check->arena, bool, s->topology->count + 1);
		s->self = is_spread(pod, wish, pod);
		s->next = check->spreading;
		check->spreading = s;
	}
	for (uint32_t i = 0; check->spreading && i < check->p->count; i++) {
		const struct known_node *node = check->p->nodes[i];

		if (!node->node || !has_all_keys(check, i))
			continue;
		for (struct spreading *s = check->spreading; s; s = s->next)
			count_node(check, s, node);
	}
	for (struct spreading *s = check->spreading; s; s = s->next)
		find_fewest(s);
}

bool spread_meets(const struct check *check, const struct known_node *node)
{
	for (const struct spreading *s = check->spreading; s; s = s->next) {
		uint32_t domain = s->topology->domain[node->index];

		if (!domain || s->pods[domain] + s->self - s->fewest > s->wish->max_skew)
			return false;
	}
	return true;
}
