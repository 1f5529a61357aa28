/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks kept and told. A node's verdict for each mask is kept with the node (known_node.verdict), so what is told is what changed:
 *
 *	0	not looked at, or the daemon does not know the node
 *	1	it is in the mask
 *	1 + r	it is not, for reason r (enum predicate)
 *
 * What concerns one node (its labels and taints, ports and resources that its pods take) is looked at for that node when it was touched.
 * A pod that a rule about pods names may change the verdict of any node: then the mask is stale.
 */
#include "engine/kubernetes/masks/masks.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"

/* A stale mask is made anew after PAUSE_TIMES what making it took last. */
enum { PAUSE_TIMES = 10, TIMER_MS = 50, UNUSED_MS = 5000 };

static const char *const counted[] = { KUBE_GPU, "cpu", "memory", NULL };

/* --- one mask ------------------------------------------------------------------------------------------------------ */

struct change {
	const char **in, **out;
	uint32_t in_count, out_count;
};

static struct change change_new(struct engine *engine)
{
	uint32_t room = engine->known.count + 1;
	struct change change = { calloc(room, sizeof(char *)), calloc(room, sizeof(char *)), 0, 0 };

	CHECK(change.in && change.out);
	return change;
}

static void change_free(struct change *change)
{
	free((void *)change->in);
	free((void *)change->out);
}

static bool is_told(struct engine *engine, const char *name)
{
	struct node_entry *entry = NULL;

	HASH_FIND_STR(engine->nodes, name, entry);
	return entry && entry->told;
}

static void verdict_set(struct mask *mask, struct known_node *node, uint8_t verdict,
			struct change *change)
{
	uint8_t before = node->verdict[mask->slot];

	if (before == verdict)
		return;
	if (before)
		mask->failed[before]--;
	if (verdict)
		mask->failed[verdict]++;
	node->verdict[mask->slot] = verdict;
	if (verdict == 1 + PREDICATE_FITS)
		change->in[change->in_count++] = node->name;
	else if (before == 1 + PREDICATE_FITS)
		change->out[change->out_count++] = node->name;
}

static bool is_used(const struct mask *mask)
{
	return mask->gangs || mask->own_jobs;
}

static uint32_t reps_of(struct engine *engine, const struct mask *mask,
			const struct placed_pod *ret[MASK_KINDS_MAX])
{
	for (uint32_t i = 0; i < mask->own_count; i++)
		ret[i] = mask->own[i].pod;
	if (mask->own_count)
		return mask->own_count;
	/* What those have that are placed is theirs: of them it would be free. */
	for (int placed = 0; placed < 2; placed++)
		for (const struct gang *gang = mask->gangs; gang; gang = gang->next_of_mask) {
			uint32_t count = (gang->attempt != 0) == (placed == 1)
						 ? gang_kinds(engine, gang, ret)
						 : 0;

			if (count && count <= MASK_KINDS_MAX)
				return count;
		}
	return 0;
}

/* So many pods of the gang, or of this kind of own jobs, may come to lie on the node, by the GPUs that it has. */
static uint32_t times_of(struct engine *engine, const struct mask *mask, uint32_t kind,
			 const char *name)
{
	const struct gang *gang = mask->gangs;
	const struct pod_wish *wish = gang && gang->members[0] ? gang->members[0]->wish : NULL;
	struct node_entry *entry = NULL;
	int64_t times;

	if (mask->own_count)
		return own_times(engine, mask, kind, name);
	if (!wish || gang->count == 1 || gang->apart[0] ||
	    !(wish->wants & (WANTS_RESOURCES | WANTS_DEVICES)))
		return 1;
	HASH_FIND_STR(engine->nodes, name, entry);
	times = gang->count;
	if (wish->use.gpus && entry && entry->node) {
		const struct gpu_table *table = devices_gpus(engine, name);
		int64_t gpus =
			entry->node->room.gpus || !table ? entry->node->room.gpus : table->count;

		times = gpus / wish->use.gpus;
	}
	times = times > gang->count ? gang->count : times;
	return times < 1 ? 1 : (uint32_t)times;
}

static bool claims_are_met(struct engine *engine, const struct mask *mask,
			   const struct placed_pod *const *reps, uint32_t count, const char *name)
{
	for (uint32_t i = 0; mask->devices && i < count; i++) {
		const struct member *member =
			member_find(engine, placed_text(reps[i], reps[i]->uid));

		if (member && !devices_fit(engine, member, name, times_of(engine, mask, i, name)))
			return false;
	}
	return true;
}

/* The text goes with the arena. */
static void problem_set(struct mask *mask, const char *problem)
{
	snprintf(mask->problem, sizeof(mask->problem), "%s", problem ? problem : "");
}

static enum predicate look_at_one(struct engine *engine, struct mask *mask,
				  const struct placed_pod *const *reps, uint32_t count,
				  const char *name)
{
	enum predicate found = count ? PREDICATE_FITS : PREDICATE_NODE_NAME;
	const char *problem = NULL;

	for (uint32_t i = 0; i < count && found == PREDICATE_FITS; i++) {
		found = predicates_check_one(&engine->known, reps[i], name, counted,
					     times_of(engine, mask, i, name), &engine->masks.arena,
					     &problem);
		problem_set(mask, problem);
		arena_reset(&engine->masks.arena);
	}
	if (found == PREDICATE_FITS && !claims_are_met(engine, mask, reps, count, name))
		found = PREDICATE_DEVICES;
	if (found == PREDICATE_FITS && mask->own_count > 1 &&
	    !own_fit_together(engine, mask, name, counted))
		found = PREDICATE_RESOURCE;
	return found;
}

static void look_at_touched(struct engine *engine, struct mask *mask, struct change *change)
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	uint32_t count = reps_of(engine, mask, reps);

	for (uint32_t i = 0; i < engine->known.count; i++) {
		struct known_node *node = engine->known.nodes[i];

		if (!node->touched)
			continue;
		verdict_set(
			mask, node,
			node->node && is_told(engine, node->name)
				? (uint8_t)(1 + look_at_one(engine, mask, reps, count, node->name))
				: 0,
			change);
	}
}

static bool is_of_several(struct engine *engine, const struct mask *mask, const char *name)
{
	return mask->own_count > 1 || times_of(engine, mask, 0, name) > 1;
}

static void look_at_all(struct engine *engine, struct mask *mask, struct change *change)
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	uint32_t count = reps_of(engine, mask, reps);
	uint8_t *worst = calloc(engine->known.count + 1, 1);
	int64_t began_ns = clock_mono_ns();

	CHECK(worst);
	problem_set(mask, NULL);
	for (uint32_t r = 0; r < count; r++) {
		struct feasible feasible;

		predicates_check(&engine->known, reps[r], counted, &engine->masks.arena, &feasible);
		if (feasible.problem)
			problem_set(mask, feasible.problem);
		for (uint32_t i = 0; i < engine->known.count; i++)
			if (worst[i] == PREDICATE_FITS)
				worst[i] = feasible.reason[i];
		arena_reset(&engine->masks.arena);
	}
	for (uint32_t i = 0; i < engine->known.count; i++) {
		struct known_node *node = engine->known.nodes[i];

		if (worst[i] == PREDICATE_FITS && is_of_several(engine, mask, node->name))
			worst[i] = (uint8_t)look_at_one(engine, mask, reps, count, node->name);
		else if (worst[i] == PREDICATE_FITS && node->node &&
			 !claims_are_met(engine, mask, reps, count, node->name))
			worst[i] = PREDICATE_DEVICES;
		verdict_set(mask, node,
			    node->node && is_told(engine, node->name) ? (uint8_t)(1 + worst[i]) : 0,
			    change);
	}
	free(worst);
	mask->stale = false;
	mask->next_ms = clock_boot_ms() + PAUSE_TIMES * ((clock_mono_ns() - began_ns) / 1000000);
}

/* What none of them has, where none is left. */
static bool lack_say(struct engine *engine, const struct mask *mask, char why[MASK_WHY_MAX])
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	uint32_t count = mask->failed[1 + PREDICATE_FITS] ? 0 : reps_of(engine, mask, reps);

	for (uint32_t i = 0; i < count; i++)
		if (predicates_lack(&engine->known, reps[i], counted, why, MASK_WHY_MAX))
			return true;
	return false;
}

/* What pods of it ask for, each once: which of them lacks is another thing for each node. */
static void wishes_say(const struct placed_pod *const *reps, uint32_t count,
		       char names[MASK_WHY_MAX])
{
	char own[MASK_WHY_MAX], other[MASK_WHY_MAX];
	size_t used = 0;

	names[0] = '\0';
	for (uint32_t i = 0; i < count && used < MASK_WHY_MAX; i++) {
		bool said = false;

		predicates_wished(reps[i], counted, own, sizeof(own));
		for (uint32_t j = 0; j < i && !said; j++) {
			predicates_wished(reps[j], counted, other, sizeof(other));
			said = strcmp(own, other) == 0;
		}
		if (own[0] && !said)
			used += (size_t)snprintf(names + used, MASK_WHY_MAX - used, "%s%s",
						 used ? " or " : "", own);
	}
}

/* What keeps pods from nodes by that predicate. */
static void keeper_say(struct engine *engine, const struct mask *mask, enum predicate predicate,
		       char what[MASK_WHY_MAX])
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	char names[MASK_WHY_MAX] = "";

	if (predicate == PREDICATE_RESOURCE)
		wishes_say(reps, reps_of(engine, mask, reps), names);
	if (names[0])
		snprintf(what, MASK_WHY_MAX, "a lack of %.*s", MASK_WHY_MAX / 2, names);
	else
		snprintf(what, MASK_WHY_MAX, "%s", predicate_name(predicate));
}

/* "node affinity keeps them from 8 of 12 nodes, a lack of rdma/hca from 2" */
static void why_say(struct engine *engine, const struct mask *mask, char why[MASK_WHY_MAX])
{
	uint32_t all = 0;
	size_t used = 0;

	why[0] = '\0';
	for (uint32_t v = 1; v <= PREDICATE_END; v++)
		all += mask->failed[v];
	if (mask->problem[0]) {
		snprintf(why, MASK_WHY_MAX, "%s", mask->problem);
		return;
	}
	if (all && lack_say(engine, mask, why))
		return;
	for (uint32_t v = 2; v <= PREDICATE_END; v++) {
		char what[MASK_WHY_MAX];

		if (!mask->failed[v] || used >= MASK_WHY_MAX)
			continue;
		keeper_say(engine, mask, (enum predicate)(v - 1), what);
		used += (size_t)snprintf(why + used, MASK_WHY_MAX - used,
					 used ? ", %s from %u"
					      : "%s keeps them from %u of %u nodes",
					 what, mask->failed[v], all);
	}
}

static void mask_tell(struct engine *engine, struct mask *mask, struct change *change)
{
	char why[MASK_WHY_MAX];
	struct engine_mask told = { .name = mask->name,
				    .why = why,
				    .whole = !mask->told,
				    .in = change->in,
				    .in_count = change->in_count,
				    .out = change->out,
				    .out_count = change->out_count };

	if (mask->told && !change->in_count && !change->out_count)
		return;
	why_say(engine, mask, why);
	mask->told = true;
	engine->options.gangs.mask(engine->options.context, &told);
}

static uint32_t consider_node(struct engine *engine, struct mask *mask,
			      const struct known_node *node, const struct feasible *feasible)
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	const uint32_t count = reps_of(engine, mask, reps);

	for (uint32_t i = 0; i < count; i++)
		if (feasible[i].reason[node->index] != PREDICATE_FITS)
			return feasible[i].reason[node->index];
	return is_of_several(engine, mask, node->name)
		       ? look_at_one(engine, mask, reps, count, node->name)
		       : PREDICATE_FITS;
}

void mask_consider(struct engine *engine, struct mask *mask, struct arena *arena,
		   struct engine_mask *ret)
{
	const char **in = arena_new_array(arena, const char *, engine->known.count + 1);
	struct feasible *feasible = arena_new_array(arena, struct feasible, MASK_KINDS_MAX);
	char *why = arena_alloc(arena, MASK_WHY_MAX);

	*ret = (struct engine_mask){ .name = mask->name, .why = why, .whole = true, .in = in };
	for (uint32_t i = 0; i < mask->own_count; i++) {
		predicates_check(&engine->known, mask->own[i].pod, counted, arena, &feasible[i]);
		if (feasible[i].problem)
			problem_set(mask, feasible[i].problem);
	}
	for (uint32_t i = 0; i < engine->known.count; i++) {
		const struct known_node *node = engine->known.nodes[i];
		uint32_t reason;

		if (!node->node || !is_told(engine, node->name))
			continue;
		reason = consider_node(engine, mask, node, feasible);
		mask->failed[1 + reason]++;
		if (reason == PREDICATE_FITS)
			in[ret->in_count++] = arena_strdup(arena, node->name);
	}
	why_say(engine, mask, why);
}

static void mask_refresh(struct engine *engine, struct mask *mask, bool all)
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	struct change change;

	if (!reps_of(engine, mask, reps)) {
		mask->stale = false; /* its pods are not known yet, or are bound */
		return;
	}
	change = change_new(engine);
	if (mask->devices)
		devices_promises(engine, NULL);
	if (mask->stale && (all || !mask->told || clock_boot_ms() >= mask->next_ms))
		look_at_all(engine, mask, &change);
	else if (!mask->stale && !mask->related)
		look_at_touched(engine, mask, &change);
	if (mask->told || !mask->stale)
		mask_tell(engine, mask, &change);
	change_free(&change);
}

void mask_stale(struct mask *mask)
{
	mask->stale = true;
}

/* --- all of them ---------------------------------------------------------------------------------------------------- */

static void later(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	engine->masks.waiting = false;
	masks_flush(engine, false);
	pthread_mutex_unlock(&engine->lock);
}

void masks_flush(struct engine *engine, bool all)
{
	struct mask *mask, *next;
	bool touched = false, waits = false;

	if (!engine->masks.by_name || !engine->pods_listed || !engine->nodes_listed ||
	    !sources_ready(engine))
		return;
	for (uint32_t i = 0; i < engine->known.count && !touched; i++)
		touched = engine->known.nodes[i]->touched;
	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		if (is_used(mask) && (touched || mask->stale))
			mask_refresh(engine, mask, all);
		waits |= is_used(mask) && mask->stale;
	}
	for (uint32_t i = 0; touched && i < engine->known.count; i++)
		engine->known.nodes[i]->touched = false;
	if (waits && !engine->masks.waiting) {
		engine->masks.waiting = true;
		kube_later(engine->client, TIMER_MS, later, engine);
	}
}

static bool concerns(struct engine *engine, const struct mask *mask, const struct placed_pod *pod)
{
	const struct placed_pod *reps[MASK_KINDS_MAX];
	uint32_t count = reps_of(engine, mask, reps);
	const struct predicates *p = &engine->known;

	for (uint32_t i = 0; i < count; i++)
		if (predicates_relation(p, reps[i], pod) ||
		    (pod->apart && predicates_relation(p, pod, reps[i]) & POD_APART))
			return true;
	return false;
}

static void pod_matters(struct engine *engine, const struct placed_pod *pod)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		if (!mask->stale && (mask->related || pod->apart) && concerns(engine, mask, pod))
			mask->stale = true;
	}
}

/* A mask with rules about pods is not looked at node by node: what a pod takes makes it stale where that matters. */
static void node_matters(struct engine *engine)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		mask->stale |= mask->related && mask->counts;
	}
}

static bool counts_somewhere(const struct placed_pod *pod)
{
	return pod && pod->node && !pod->over;
}

void masks_pod(struct engine *engine, const char *uid, struct placed_pod *pod)
{
	const struct placed_pod *before = predicates_pod(&engine->known, uid);
	bool counted_before = counts_somewhere(before);

	if (before && pod && before->size == pod->size && memcmp(before, pod, pod->size) == 0) {
		free(pod);
		return;
	}
	if (counted_before || counts_somewhere(pod))
		node_matters(engine);
	if (counted_before)
		pod_matters(engine, before);
	if (!pod) {
		predicates_pod_remove(&engine->known, uid);
		return;
	}
	(void)predicates_pod_set(&engine->known, pod);
	if (counts_somewhere(pod))
		pod_matters(engine, pod);
}

void masks_assume(struct engine *engine, const char *uid, const char *node)
{
	const struct placed_pod *pod = predicates_pod(&engine->known, uid);

	if (!pod || pod->node)
		return;
	predicates_pod_assume(&engine->known, uid, node);
	node_matters(engine);
	pod_matters(engine, pod);
}

static void all_related_are_stale(struct engine *engine)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		mask->stale |= mask->related;
	}
}

/* Its bits in the daemon's masks go with what is told of each: before the node itself is forgotten. */
static void node_leaves(struct engine *engine, struct known_node *node)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		struct change change = change_new(engine);

		verdict_set(mask, node, 0, &change);
		if (mask->told)
			mask_tell(engine, mask, &change);
		change_free(&change);
	}
}

void masks_node(struct engine *engine, const char *name, struct placed_node *node)
{
	if (!node) {
		struct known_node *known = predicates_node(&engine->known, name);

		if (known)
			node_leaves(engine, known);
		predicates_node_remove(&engine->known, name);
		all_related_are_stale(engine);
	} else if (predicates_node_set(&engine->known, node)) {
		all_related_are_stale(engine);
	}
}

void masks_node_told(struct engine *engine, const char *name)
{
	struct known_node *node = predicates_node(&engine->known, name);

	if (!node)
		return;
	node->touched = true;
	all_related_are_stale(engine);
}

void masks_things(struct engine *engine)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		mask->stale = true;
	}
}

void masks_devices(struct engine *engine, const char *node)
{
	struct known_node *known = node ? predicates_node(&engine->known, node) : NULL;
	struct mask *mask, *next;

	if (known)
		known->touched = true;
	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		mask->stale |= mask->devices && (!known || mask->related);
	}
}

/* Those that the daemon knows from before and that nobody names any more. */
void masks_listed(struct engine *engine)
{
	const char **names;
	struct mask *mask, *next;
	uint32_t count = 0;

	if (engine->masks.names_told)
		return;
	engine->masks.names_told = true;
	names = calloc(HASH_COUNT(engine->masks.by_name) + 1, sizeof(*names));
	CHECK(names);
	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		names[count++] = mask->name;
	}
	engine->options.gangs.masks(engine->options.context, names, count);
	free((void *)names);
}

/* --- who uses one ------------------------------------------------------------------------------------------------------ */

static void mask_end(struct engine *engine, struct mask *mask)
{
	for (uint32_t i = 0; i < engine->known.count; i++)
		engine->known.nodes[i]->verdict[mask->slot] = 0;
	engine->masks.slots[mask->slot] = NULL;
	HASH_DEL(engine->masks.by_name, mask);
	if (mask->told || mask->adopted)
		engine->options.gangs.mask(
			engine->options.context,
			&(struct engine_mask){ .name = mask->name, .why = "", .ended = true });
	own_pods_free(mask->own, mask->own_count);
	free(mask);
}

static struct mask *mask_named(struct engine *engine, const char *name)
{
	struct mask *mask = NULL;
	uint32_t slot = 0;

	HASH_FIND_STR(engine->masks.by_name, name, mask);
	if (mask)
		return mask;
	while (slot < PREDICATE_MARKS && engine->masks.slots[slot] &&
	       is_used(engine->masks.slots[slot]))
		slot++;
	if (slot == PREDICATE_MARKS)
		return NULL;
	if (engine->masks.slots[slot])
		mask_end(engine, engine->masks.slots[slot]);
	mask = calloc(1, sizeof(*mask));
	CHECK(mask);
	snprintf(mask->name, sizeof(mask->name), "%s", name);
	mask->slot = slot;
	mask->stale = true;
	engine->masks.slots[slot] = mask;
	HASH_ADD_STR(engine->masks.by_name, name, mask);
	return mask;
}

void mask_learn(struct mask *mask, const struct pod_wish *wish)
{
	mask->related |= (wish->wants & (WANTS_PODS | WANTS_SPREAD | WANTS_CLAIMS)) != 0;
	mask->counts |= (wish->wants & (WANTS_PORTS | WANTS_RESOURCES)) != 0;
	mask->devices |= wish->claims[0] != '\0';
	mask->exact |= wish->claims_exact;
	mask->stale = true;
}

static void mask_take(struct mask *mask, struct gang *gang)
{
	if (gang->mask)
		return;
	gang->mask = mask;
	gang->next_of_mask = mask->gangs;
	mask->gangs = gang;
	for (uint32_t rank = 0; rank < gang->count; rank++) {
		const struct pod_wish *wish =
			gang->members[rank] ? gang->members[rank]->wish : NULL;

		if (wish)
			mask_learn(mask, wish);
	}
}

void mask_adopt(struct engine *engine, const char *name, struct gang *gang)
{
	struct mask *mask = mask_named(engine, name);

	if (!mask)
		return;
	mask->adopted = true;
	mask_take(mask, gang);
}

/* In which its gangs are; NULL = it has none. */
static const char *namespace_of(const struct mask *mask)
{
	for (const struct gang *gang = mask->gangs; gang; gang = gang->next_of_mask)
		for (uint32_t rank = 0; rank < gang->count; rank++)
			if (gang->members[rank])
				return gang->members[rank]->namespace;
	return NULL;
}

static bool namespace_is_full(const struct engine *engine, const char *namespace)
{
	uint32_t count = 0;

	for (uint32_t slot = 0; slot < PREDICATE_MARKS; slot++) {
		const struct mask *mask = engine->masks.slots[slot];
		const char *of = mask ? namespace_of(mask) : NULL;

		count += of && strcmp(of, namespace) == 0;
	}
	return count >= MASKS_OF_NAMESPACE;
}

struct mask *mask_join(struct engine *engine, struct gang *gang, enum mask_full *ret_full)
{
	char name[MASK_NAME_MAX];
	struct mask *mask = NULL;
	bool serial;

	*ret_full = MASK_ROOM;
	if (gang->mask)
		return gang->mask;
	if (!gang_mask_name(engine, gang, name, &serial))
		return NULL;
	HASH_FIND_STR(engine->masks.by_name, name, mask);
	if (!mask && namespace_is_full(engine, gang->members[0]->namespace)) {
		*ret_full = MASK_NAMESPACE_FULL;
		return NULL;
	}
	mask = mask_named(engine, name);
	*ret_full = mask ? MASK_ROOM : MASK_ALL_TAKEN;
	if (!mask)
		return NULL;
	mask->serial |= serial;
	mask_take(mask, gang);
	if (!mask->told || mask->exact)
		mask_refresh(engine, mask, true);
	return mask;
}

void mask_leave(struct gang *gang)
{
	struct mask *mask = gang->mask;

	if (!mask)
		return;
	for (struct gang **at = &mask->gangs; *at; at = &(*at)->next_of_mask)
		if (*at == gang) {
			*at = gang->next_of_mask;
			break;
		}
	gang->mask = NULL;
	/* The next of its kind may be there already. */
	if (!mask->gangs) {
		mask->stale = true;
		mask->empty_ms = clock_boot_ms();
	}
}

void masks_end_unused(struct engine *engine)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		if (!is_used(mask) && clock_boot_ms() - mask->empty_ms >= UNUSED_MS)
			mask_end(engine, mask);
	}
	own_jobs_again(engine);
}

struct mask *mask_own(struct engine *engine, const char *name)
{
	return mask_named(engine, name);
}

void mask_own_leave(struct mask *mask)
{
	mask->own_jobs--;
	if (mask->own_jobs)
		return;
	/* What changes until there is a next one is not looked at. */
	mask->stale = true;
	mask->empty_ms = clock_boot_ms();
}

void masks_deinit(struct engine *engine)
{
	struct mask *mask, *next;

	HASH_ITER(hh, engine->masks.by_name, mask, next)
	{
		HASH_DEL(engine->masks.by_name, mask);
		own_pods_free(mask->own, mask->own_count);
		free(mask);
	}
	own_jobs_deinit(engine);
	predicates_deinit(&engine->known);
	arena_deinit(&engine->masks.arena);
}
