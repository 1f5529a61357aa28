/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the claims of a pod mean for the core. Pods from one template ask for the same, and are one kind; what a kind needs is found out by
 * allocating it on each node as if nothing were taken: so many of what it gets are whole GPUs.
 *
 *	kind "2 GPUs of class gpu.nvidia.com"     n0: 2 GPUs, n1: 2 GPUs, n2 (no GPUs): none     -> 2 GPUs, on n0 and n1
 *
 * Where four such pods fit on a node with eight GPUs, any GPUs will do, and counts say whether there is room. Where only some nodes can have them, a
 * mask leaves the others out. Else (a part of the GPUs, two with the same attribute, network cards beside, MIG) counts don't say it: then the mask
 * says where such a pod fits now, with all that is given away, and pods of the kind are placed one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"

enum { KINDS_MAX = 1024 }; /* then they are found out anew */

const char *claims_next(const char *names, char out[KUBE_NAME_MAX])
{
	size_t size = strcspn(names, "\n");

	if (!*names)
		return NULL;
	snprintf(out, KUBE_NAME_MAX, "%.*s", (int)size, names);
	return names[size] ? names + size + 1 : names + size;
}

/* The claims that the member names; the number that is not there, and which. */
static uint32_t claims_gather(struct engine *engine, const struct member *member,
			      struct claim_entry *ret[WISH_CLAIMS_MAX], char lacks[KUBE_NAME_MAX])
{
	char name[KUBE_NAME_MAX];
	uint32_t count = 0;

	lacks[0] = '\0';
	for (const char *at = member->wish->claims;
	     count < WISH_CLAIMS_MAX && (at = claims_next(at, name));) {
		ret[count] = claim_find(engine, member->namespace, name);
		if (!ret[count])
			memcpy(lacks, name, sizeof(name));
		count++;
	}
	return count;
}

void devices_kinds_clear(struct engine *engine)
{
	struct device_kind *kind, *next;

	HASH_ITER(hh, engine->devices->kinds, kind, next)
	{
		HASH_DEL(engine->devices->kinds, kind);
		free(kind);
	}
}

static enum dra_state all_free(void *context, const struct dra_slice *slice,
			       const struct dra_device *device)
{
	(void)context;
	(void)slice;
	(void)device;
	return DRA_FREE;
}

struct trial {
	struct engine *engine;
	const struct dra_claim *claims[DRA_CLAIMS_MAX];
	uint32_t claim_count; /* of one pod */
	const char *node; /* that is asked about */
	/* Others that the pod names: */
	const struct claim_entry *fixed[WISH_CLAIMS_MAX]; /* other pods use them: where they are */
	uint32_t fixed_count;
	bool together; /* pods of its gang share one that is counted for another of them */
	const struct claim_entry *busy; /* can't be had now: */
	const char *why;
};

static enum dra_verdict try_on(struct trial *trial, const char *node, uint32_t pods,
			       enum dra_state (*state)(void *, const struct dra_slice *,
						       const struct dra_device *),
			       struct dra_answer *ret)
{
	struct devices *devices = trial->engine->devices;
	const struct known_node *known = predicates_node(&trial->engine->known, node);
	uint32_t count = trial->claim_count * pods;

	*ret = (struct dra_answer){ .why = "" };
	if (!trial->claim_count || count > DRA_CLAIMS_MAX)
		return DRA_NO_ROOM;
	for (uint32_t i = trial->claim_count; i < count; i++)
		trial->claims[i] = trial->claims[i % trial->claim_count];
	arena_reset(&devices->arena);
	return dra_allocate(&devices->inventory,
			    &(struct dra_question){ .node = node,
						    .placed = known ? known->node : NULL,
						    .claims = trial->claims,
						    .claim_count = count,
						    .state = state,
						    .context = trial },
			    &devices->arena, ret);
}

static void count_given(const struct trial *trial, const struct dra_answer *answer, uint32_t *gpus,
			uint32_t *others)
{
	*gpus = *others = 0;
	for (uint32_t i = 0; i < trial->claim_count; i++)
		for (uint32_t j = 0; j < answer->allocations[i].count; j++) {
			const struct dra_choice_made *made = &answer->allocations[i].made[j];
			bool gpu = dra_is_gpu(made->slice, made->device) && made->slice->where.node;

			*gpus += gpu;
			*others += !gpu;
		}
}

static void kind_on(struct device_kind *kind, struct trial *trial, const char *node)
{
	const struct gpu_table *table = devices_gpus(trial->engine, node);
	struct dra_answer answer;
	uint32_t gpus, others;
	enum dra_verdict verdict = try_on(trial, node, 1, all_free, &answer);

	if (verdict == DRA_BAD && !kind->problem[0])
		snprintf(kind->problem, sizeof(kind->problem), "ResourceClaim %.100s: %.250s",
			 trial->claims[0]->name, answer.why);
	if (verdict != DRA_FITS && table && table->count > kind->most_without)
		kind->most_without = table->count;
	if (verdict != DRA_FITS)
		return;
	count_given(trial, &answer, &gpus, &others);
	if (kind->fits && kind->gpus != gpus)
		snprintf(
			kind->problem, sizeof(kind->problem),
			"its ResourceClaims mean %u GPUs on one node and %u on another; Fairlead counts with one number",
			kind->gpus, gpus);
	kind->fits = true;
	kind->gpus = gpus;
	kind->exact |= others > 0 || !gpus;
	if (gpus && table && table->count / gpus > 1 &&
	    try_on(trial, node, table->count / gpus, all_free, &answer) != DRA_FITS)
		kind->exact = true;
}

static void kind_find_out(struct engine *engine, struct device_kind *kind, struct trial *trial)
{
	struct node_entry *node, *next;

	kind->revision = engine->devices->kinds_revision;
	kind->gpus = kind->most_without = 0;
	kind->fits = kind->exact = kind->some = false;
	kind->problem[0] = '\0';
	for (uint32_t i = 0; i < trial->claim_count; i++)
		kind->exact |= trial->claims[i]->constraint_count > 0;
	HASH_ITER(hh, engine->nodes, node, next)
	{
		if (node->node)
			kind_on(kind, trial, node->name);
	}
	/* The core would place it there. */
	kind->some = kind->fits && kind->most_without >= kind->gpus;
}

static uint64_t likeness(const struct trial *trial)
{
	uint64_t all = trial->claim_count;

	for (uint32_t i = 0; i < trial->claim_count; i++)
		all = all * UINT64_C(6364136223846793005) + trial->claims[i]->likeness;
	return all;
}

static struct device_kind *kind_get(struct engine *engine, struct trial *trial)
{
	struct devices *devices = engine->devices;
	struct device_kind *kind = NULL;
	uint64_t key = likeness(trial);

	HASH_FIND(hh, devices->kinds, &key, sizeof(key), kind);
	if (!kind && HASH_COUNT(devices->kinds) == KINDS_MAX)
		devices_kinds_clear(engine);
	if (!kind) {
		kind = calloc(1, sizeof(*kind));
		CHECK(kind);
		kind->likeness = key;
		kind->revision = UINT64_MAX;
		HASH_ADD(hh, devices->kinds, likeness, sizeof(kind->likeness), kind);
	}
	if (kind->revision != devices->kinds_revision)
		kind_find_out(engine, kind, trial);
	return kind;
}

/* Whether no other pod that waits names this claim too. One at a time: the core would count its GPUs for each. */
static bool is_first_user(struct engine *engine, const struct member *member,
			  struct claim_entry *entry)
{
	const struct member *user = NULL;

	if (entry->claim->owner_pod && strcmp(entry->claim->owner_pod, member->uid) == 0)
		return true;
	if (entry->user[0] && strcmp(entry->user, member->uid) != 0)
		user = member_find(engine, entry->user);
	if (user && !user->over && !user->deleting)
		return false;
	memcpy(entry->user, member->uid, sizeof(entry->user));
	return true;
}

static bool others_use(const struct dra_claim *claim, const struct member *member)
{
	for (uint32_t i = 0; i < claim->consumer_count; i++)
		if (strcmp(claim->consumers[i].uid, member->uid) != 0)
			return true;
	return false;
}

/* The pod that it is counted for belongs to the same gang. */
static bool is_of_gang(struct engine *engine, const struct member *member,
		       const struct claim_entry *entry)
{
	const struct member *user = member_find(engine, entry->user);

	return user && user->group == member->group && member->group &&
	       member->group->kind != GANG_ALONE && user->gang == member->gang;
}

static void trial_add(struct trial *trial, const struct member *member, struct claim_entry *entry)
{
	const struct dra_claim *claim = entry->claim;
	bool own = claim->owner_pod && strcmp(claim->owner_pod, member->uid) == 0;

	if (claim->allocated && !own && others_use(claim, member)) {
		trial->fixed[trial->fixed_count++] = entry;
	} else if (claim->allocated) {
		trial->busy = entry;
		trial->why =
			"has devices that it was to be used with elsewhere, and that are being given back";
	} else if (is_first_user(trial->engine, member, entry)) {
		trial->claims[trial->claim_count++] = claim;
	} else if (is_of_gang(trial->engine, member, entry)) {
		trial->together = true;
	} else {
		trial->busy = entry;
		trial->why = "gets its devices for another pod first, which waits";
	}
	if (claim->consumer_count == DRA_CONSUMERS_MAX) {
		trial->busy = entry;
		trial->why = "is used by 256 pods already, which is Kubernetes' most";
	}
}

static bool trial_make(struct engine *engine, const struct member *member, struct trial *trial,
		       char lacks[KUBE_NAME_MAX])
{
	struct claim_entry *entries[WISH_CLAIMS_MAX];
	uint32_t count = claims_gather(engine, member, entries, lacks);

	*trial = (struct trial){ .engine = engine };
	for (uint32_t i = 0; !lacks[0] && i < count; i++)
		trial_add(trial, member, entries[i]);
	return !lacks[0];
}

/* Of those that the pod does not share. */
static enum devices_answer kind_resolve(struct engine *engine, struct pod_wish *wish,
					struct trial *trial, char text[ENGINE_POD_TEXT_MAX])
{
	const struct device_kind *kind = kind_get(engine, trial);

	if (kind->problem[0] || !kind->fits) {
		snprintf(text, ENGINE_POD_TEXT_MAX, "%.390s",
			 kind->problem[0] ? kind->problem
					  : "no node has the devices that its ResourceClaims "
					    "ask for, even when nothing is taken");
		return DEVICES_WAIT;
	}
	if (kind->gpus && wish->own_gpus) {
		snprintf(text, ENGINE_POD_TEXT_MAX,
			 "it asks for GPUs as " KUBE_GPU " and by ResourceClaims");
		return DEVICES_WAIT;
	}
	wish->claims_likeness = kind->likeness;
	wish->claims_exact = kind->exact;
	wish->use.gpus = wish->own_gpus + kind->gpus;
	if (kind->exact || kind->some)
		wish->wants |= WANTS_DEVICES;
	return DEVICES_KNOWN;
}

static bool has_gpus(const struct engine *engine, const struct dra_claim *claim)
{
	const struct gpu_table *table;
	char key[DEVICE_KEY_MAX];

	for (uint32_t i = 0; i < claim->result_count; i++) {
		device_key(claim->results[i].driver, claim->results[i].pool,
			   claim->results[i].device, key);
		for (table = engine->devices->tables; table; table = table->hh.next)
			for (uint32_t k = 0; k < table->count; k++)
				if (strcmp(table->keys[k], key) == 0)
					return true;
	}
	return false;
}

/* Claims that others have as well: it runs where they are, and their GPUs are counted once. */
static enum devices_answer shared_resolve(struct engine *engine, struct pod_wish *wish,
					  const struct trial *trial, char text[ENGINE_POD_TEXT_MAX])
{
	bool gpus = trial->together;

	for (uint32_t i = 0; i < trial->fixed_count; i++) {
		const char *uid = trial->fixed[i]->claim->uid;

		for (size_t k = 0; uid[k]; k++)
			wish->claims_likeness = (wish->claims_likeness ^ (unsigned char)uid[k]) *
						UINT64_C(1099511628211);
		gpus |= has_gpus(engine, trial->fixed[i]->claim);
		wish->wants |= WANTS_DEVICES;
	}
	wish->claims_together = trial->together;
	if (!gpus || !wish->use.gpus)
		return DEVICES_KNOWN;
	snprintf(
		text, ENGINE_POD_TEXT_MAX,
		"it shares GPUs of a ResourceClaim with other pods and asks for others of its own; write one claim with all of them");
	return DEVICES_WAIT;
}

enum devices_answer devices_resolve(struct engine *engine, struct member *member,
				    char text[ENGINE_POD_TEXT_MAX])
{
	struct pod_wish *wish = member->wish;
	enum devices_answer answer = DEVICES_KNOWN;
	struct trial trial;
	char lacks[KUBE_NAME_MAX];

	text[0] = '\0';
	if (!wish->claims[0] && !wish->claims_missing)
		return DEVICES_KNOWN;
	if (wish->claims_missing || !trial_make(engine, member, &trial, lacks)) {
		snprintf(text, ENGINE_POD_TEXT_MAX, "its ResourceClaim%s%.200s is not there yet",
			 wish->claims_missing ? "" : " ", wish->claims_missing ? "" : lacks);
		return DEVICES_COMING;
	}
	if (trial.busy) {
		snprintf(text, ENGINE_POD_TEXT_MAX, "its ResourceClaim %.200s %s",
			 trial.busy->claim->name, trial.why);
		return DEVICES_COMING;
	}
	wish->claims_likeness = 0;
	wish->claims_exact = false;
	wish->use.gpus = wish->own_gpus;
	wish->wants &= ~(uint32_t)WANTS_DEVICES;
	if (trial.claim_count)
		answer = kind_resolve(engine, wish, &trial, text);
	return answer == DEVICES_KNOWN ? shared_resolve(engine, wish, &trial, text) : answer;
}

/* --- where it fits ------------------------------------------------------------------------------------------------------------ */

static bool is_of_trial(const struct trial *trial, const struct claim_entry *entry)
{
	for (uint32_t i = 0; i < trial->claim_count; i++)
		if (trial->claims[i] == entry->claim)
			return true;
	return false;
}

/* As things are now. What the claims themselves are about to get is theirs. */
static enum dra_state as_it_is(void *context, const struct dra_slice *slice,
			       const struct dra_device *device)
{
	const struct trial *trial = context;

	for (const struct held *held = device_held(trial->engine, slice, device); held;
	     held = held->also)
		if (!is_of_trial(trial, held->by))
			return DRA_TAKEN;
	return device_is_promised(trial->engine, trial->node, slice, device) ? DRA_TAKEN : DRA_FREE;
}

/* The core places no more of them there than it has GPUs free. */
static uint32_t times_with_gpus(struct engine *engine, const struct device_kind *kind,
				const char *node, uint32_t times)
{
	const struct gpu_table *table = devices_gpus(engine, node);
	struct held *held;
	uint32_t count = 0;

	if (!kind->gpus || !table)
		return times;
	for (uint32_t i = 0; i < table->count; i++) {
		HASH_FIND_STR(engine->devices->held, table->keys[i], held);
		count += table->there[i] && !held;
	}
	count /= kind->gpus;
	count = count < times ? count : times;
	return count ? count : 1;
}

bool devices_fit(struct engine *engine, const struct member *member, const char *node,
		 uint32_t times)
{
	const struct device_kind *kind;
	struct trial trial;
	struct dra_answer answer;
	char lacks[KUBE_NAME_MAX];

	if (!member->wish || !member->wish->claims[0] || !engine->devices ||
	    !trial_make(engine, member, &trial, lacks) || trial.busy)
		return true; /* what becomes of it is seen when the claims are written */
	for (uint32_t i = 0; i < trial.fixed_count; i++)
		if (!claim_is_for_node(engine, trial.fixed[i]->claim, node))
			return false;
	if (!trial.claim_count)
		return true;
	kind = kind_get(engine, &trial);
	if (kind->problem[0] || !kind->fits)
		return false;
	if (!kind->exact)
		return !kind->some || try_on(&trial, node, 1, all_free, &answer) == DRA_FITS;
	times = times_with_gpus(engine, kind, node, times);
	for (uint32_t i = 0; i < trial.claim_count; i++)
		if (!trial.claims[i]->owner_pod)
			times = 1; /* all who share it have the same */
	if (times > DRA_CLAIMS_MAX / trial.claim_count)
		times = DRA_CLAIMS_MAX / trial.claim_count;
	trial.node = node;
	return try_on(&trial, node, times, as_it_is, &answer) == DRA_FITS;
}

bool claims_are_exact(struct engine *engine, const struct dra_claim *const *claims, uint32_t count)
{
	struct trial trial = { .engine = engine, .claim_count = count };

	for (uint32_t i = 0; i < count; i++)
		trial.claims[i] = claims[i];
	return kind_get(engine, &trial)->exact;
}
