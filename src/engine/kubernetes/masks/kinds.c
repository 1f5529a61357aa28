/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pods are alike to the predicates, and how the pods of one gang lie to each other.
 *
 * Labels of a pod count where a rule looks at them: its own about pods, or those of pods that keep others away. A Job's pods differ in their
 * number alone, and are one kind.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/digest.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/gangs/gangs.h"

#define KEY_HOST "kubernetes.io/hostname"

/* --- one pod ----------------------------------------------------------------------------------------------------- */

static bool selector_looks_at(const void *block, const struct placed_selector *selector,
			      const char *key)
{
	PLACED_EACH(block, placed_requirement, wish, selector->requirements)
	{
		if (strcmp(placed_text(block, wish->key), key) == 0)
			return true;
	}
	return false;
}

static bool terms_look_at(const void *block, at_t terms, const char *key)
{
	PLACED_EACH(block, placed_pod_term, term, terms)
	{
		if (selector_looks_at(block, &term->pods, key))
			return true;
	}
	return false;
}

static bool spreads_look_at(const struct placed_pod *pod, const char *key)
{
	PLACED_EACH(pod, placed_spread, wish, pod->spreads)
	{
		if (selector_looks_at(pod, &wish->pods, key))
			return true;
		PLACED_EACH(pod, placed_word, word, wish->label_keys)
		{
			if (strcmp(placed_text(pod, word->text), key) == 0)
				return true;
		}
	}
	return false;
}

static bool label_counts(const struct predicates *p, const struct placed_pod *pod, const char *key)
{
	if (terms_look_at(pod, pod->near, key) || terms_look_at(pod, pod->apart, key) ||
	    spreads_look_at(pod, key))
		return true;
	for (const struct known_pod *known = p->keepers; known; known = known->next_keeper)
		if (terms_look_at(known->pod, known->pod->apart, key))
			return true;
	return false;
}

static bool core_counts(const char *resource)
{
	return strcmp(resource, KUBE_GPU) == 0 || strcmp(resource, "cpu") == 0 ||
	       strcmp(resource, "memory") == 0;
}

static void kind_text(const struct predicates *p, const struct member *member,
		      const struct placed_pod *pod, struct buf *out)
{
	buf_addf(out, "%s %s\n", member->namespace, member->wish->rules);
	PLACED_EACH(pod, placed_label, label, pod->labels)
	{
		if (label_counts(p, pod, placed_text(pod, label->key)))
			buf_addf(out, "label %s=%s\n", placed_text(pod, label->key),
				 placed_text(pod, label->value));
	}
	PLACED_EACH(pod, placed_amount, amount, pod->requests)
	{
		if (!core_counts(placed_text(pod, amount->name)))
			buf_addf(out, "amount %s=%lld\n", placed_text(pod, amount->name),
				 (long long)amount->milli);
	}
	PLACED_EACH(pod, placed_port, port, pod->ports)
	{
		buf_addf(out, "port %d %s %s\n", port->port, placed_text(pod, port->protocol),
			 placed_text(pod, port->ip));
	}
	if (member->wish->wants & WANTS_DEVICES)
		buf_addf(out, "devices %llx\n", (unsigned long long)member->wish->claims_likeness);
	PLACED_EACH(pod, placed_word, claim, pod->claims)
	{
		buf_addf(out, "claim %s\n", placed_text(pod, claim->text));
	}
}

/* --- a gang ------------------------------------------------------------------------------------------------------- */

/* kinds, and pods of them; the number of kinds, MASK_KINDS_MAX + 1 = more. */
static uint32_t find_kinds(struct engine *engine, const struct gang *gang,
			   char kinds[MASK_KINDS_MAX][DIGEST_HEX_MAX],
			   const struct placed_pod *pods[MASK_KINDS_MAX])
{
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < gang->count; rank++) {
		const struct member *member = gang->members[rank];
		const struct placed_pod *pod =
			member ? predicates_pod(&engine->known, member->uid) : NULL;
		AUTO_BUF text = BUF_INIT;
		char hex[DIGEST_HEX_MAX];
		struct digest digest;
		uint32_t i = 0;

		if (!pod || !member->wish)
			continue;
		kind_text(&engine->known, member, pod, &text);
		digest = digest_of(text.data, text.size);
		digest_format(&digest, hex);
		while (i < count && strcmp(kinds[i], hex) != 0)
			i++;
		if (i < count)
			continue;
		if (count == MASK_KINDS_MAX)
			return MASK_KINDS_MAX + 1;
		memcpy(kinds[count], hex, DIGEST_HEX_MAX);
		pods[count++] = pod;
	}
	return count;
}

uint32_t gang_kinds(struct engine *engine, const struct gang *gang,
		    const struct placed_pod *ret[MASK_KINDS_MAX])
{
	char kinds[MASK_KINDS_MAX][DIGEST_HEX_MAX];

	return find_kinds(engine, gang, kinds, ret);
}

bool gang_mask_name(struct engine *engine, const struct gang *gang, char ret[MASK_NAME_MAX],
		    bool *ret_serial)
{
	const struct predicates *p = &engine->known;
	const struct pod_wish *wish = gang->members[0]->wish;
	const struct placed_pod *pods[MASK_KINDS_MAX];
	char kinds[MASK_KINDS_MAX][DIGEST_HEX_MAX], hex[DIGEST_HEX_MAX];
	uint32_t count = find_kinds(engine, gang, kinds, pods);
	AUTO_BUF text = BUF_INIT;
	struct digest digest;
	bool needs = false;

	*ret_serial = false;
	for (uint32_t rank = 0; rank < gang->count && !needs; rank++)
		needs = gang->members[rank]->wish->wants != 0;
	for (uint32_t i = 0; i < count && i < MASK_KINDS_MAX && !needs; i++)
		needs = predicates_kept_away(p, pods[i]) ||
			predicates_gpu_taint_keeps(p, pods[i]); /* the core has no such taint */
	if (!needs || count > MASK_KINDS_MAX)
		return false;
	if (gang->count == 1 && count == 1)
		*ret_serial = wish->claims_exact || predicates_relation(p, pods[0], pods[0]) != 0;
	for (uint32_t i = 0; i < count; i++)
		buf_addf(&text, "%s\n", kinds[i]);
	if (*ret_serial)
		buf_addf(&text, "%s %s %lld %d\n", wish->queue, wish->tier,
			 (long long)wish->priority, wish->preempts);
	if (gang->count > 1)
		buf_addf(&text, "%u at once, %lld GPUs\n", gang->count, (long long)wish->use.gpus);
	digest = digest_of(text.data, text.size);
	snprintf(ret, MASK_NAME_MAX, "pods-%.12s", digest_format(&digest, hex));
	return true;
}

/* --- its pods to each other ----------------------------------------------------------------------------------------- */

/* The level of the core's that a topology key is; NULL = none. */
static const char *level_of(const struct engine *engine, const char *key)
{
	int level = places_level_of(&engine->options.cluster->level_labels, key);

	if (strcmp(key, KEY_HOST) == 0)
		return "node";
	return level >= 0 && engine->levels >> level & 1 ? engine_level_names[level] : NULL;
}

/* One key for each thing that the core is told. */
static bool level_set(const struct engine *engine, const char *what, const char *key,
		      char level[64], char problem[400])
{
	const char *found = level_of(engine, key);

	if (!found)
		snprintf(
			problem, 400,
			"%s between pods of one gang by \"%.80s\", which is no level of the cluster; write " KEY_HOST
			" or a level's label, or the annotation " WISH_GANG_SIZE ": \"1\"",
			what, key);
	else if (level[0] && strcmp(level, found) != 0)
		snprintf(problem, 400,
			 "%s between pods of one gang by two levels (%.40s, %.40s); write one",
			 what, level, found);
	else
		snprintf(level, 64, "%s", found);
	return !problem[0];
}

static bool names_itself(const struct predicates *p, const struct placed_pod *pod)
{
	return predicates_relation(p, pod, pod) & POD_NEAR;
}

static bool pair_shape(struct engine *engine, const struct placed_pod *pod,
		       const struct placed_pod *other, char require[64], char apart[64],
		       char problem[400])
{
	const struct predicates *p = &engine->known;
	uint32_t found = predicates_relation(p, pod, other);

	if (found & POD_SPREAD)
		snprintf(
			problem, 400,
			"topologySpreadConstraints between pods of one gang; write podAntiAffinity, or the annotation " WISH_GANG_SIZE
			": \"1\" to have them placed one by one");
	else if (found & POD_CLAIM)
		snprintf(
			problem, 400,
			"pods of one gang share a volume that is for one pod alone (ReadWriteOncePod)");
	else if (found & POD_NEAR && !names_itself(p, pod))
		snprintf(problem, 400,
			 "podAffinity to other pods of its gang; write " WISH_REQUIRE " instead");
	if (problem[0])
		return false;
	if (found & POD_PORTS && !level_set(engine, "host ports", KEY_HOST, apart, problem))
		return false;
	if (found & POD_APART)
		PLACED_EACH(pod, placed_pod_term, term, pod->apart)
		{
			if (!level_set(engine, "podAntiAffinity",
				       placed_text(pod, term->topology_key), apart, problem))
				return false;
		}
	if (found & POD_NEAR)
		PLACED_EACH(pod, placed_pod_term, term, pod->near)
		{
			if (!level_set(engine, "podAffinity", placed_text(pod, term->topology_key),
				       require, problem))
				return false;
		}
	return true;
}

bool gang_shape(struct engine *engine, const struct gang *gang, char require[64], char apart[64],
		char problem[400])
{
	const struct placed_pod *pods[MASK_KINDS_MAX];
	uint32_t count = gang_kinds(engine, gang, pods);

	require[0] = apart[0] = problem[0] = '\0';
	snprintf(require, 64, "%s", gang->members[0]->wish->require);
	if (gang->count == 1)
		return true;
	if (gang->members[0]->group && gang->members[0]->group->together[0] &&
	    !level_set(engine, "the PodGroup's topology", gang->members[0]->group->together,
		       require, problem))
		return false;
	if (count > MASK_KINDS_MAX) {
		snprintf(
			problem, 400,
			"the pods of its gang have rules of more than %d kinds about where they run",
			MASK_KINDS_MAX);
		return false;
	}
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < count; k++)
			if (!pair_shape(engine, pods[i], pods[k], require, apart, problem))
				return false;
	for (uint32_t rank = 0; rank < gang->count; rank++)
		if (gang->members[rank]->wish->claims_together)
			snprintf(require, 64, "node"); /* where its devices are */
	if (apart[0] && strcmp(require, "node") == 0)
		snprintf(problem, 400,
			 "pods of one gang are to be together on a node and apart from each other");
	return !problem[0];
}
