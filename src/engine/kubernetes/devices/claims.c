/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank and the claims of its pod, before the pod is bound:
 *
 *	own job: POST claim          (owned by the pod, which is there by now)
 *	choose devices on the node   all claims of the pod together; held from now on
 *	PATCH finalizers             where Kubernetes' own is not there yet
 *	PATCH status                 allocation and reservation in one, for each claim
 *	its binding conditions       awaited, where the devices have any
 *	READY, and when the attempt is released: bound
 *
 * Each PATCH names the resourceVersion that was read: whoever changed the claim meanwhile wins, and it is looked at again. So a request that is
 * carried out twice, or without an answer, does no harm: the claim says itself what it has. After a restart the same way is gone: what is
 * allocated for the node and reserved for the pod is done already.
 *
 * The devices that the core chose come first. While a claim of work that has just ended still has one, it is waited for; after a while other
 * GPUs of the node do as well.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/devices/writing.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/predicates/placed.h"
#include "engine/kubernetes/refusal.h"
#include "engine/kubernetes/rights.h"

enum { AGAIN_MS = 250, PATIENT_MS = 5000, GIVE_UP_MS = 60000, SWEEP_MS = 5000, RIGHT_MS = 10000 };
enum { CONDITIONS_MS = 600000 }; /* as kube-scheduler waits by itself */
#define API "/apis/resource.k8s.io/v1/"
#define MERGE "application/merge-patch+json"

static void step(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);

/* --- what a claim is to the rank --------------------------------------------------------------------------------------- */

static bool is_reserved(const struct dra_claim *claim, const struct rank_state *state)
{
	for (uint32_t i = 0; i < claim->consumer_count; i++)
		if (strcmp(claim->consumers[i].uid, state->uid) == 0)
			return true;
	return false;
}

static bool others_use(const struct dra_claim *claim, const struct rank_state *state)
{
	return claim->consumer_count > is_reserved(claim, state);
}

bool claim_is_for_node(const struct engine *engine, const struct dra_claim *claim, const char *node)
{
	const struct known_node *known = predicates_node(&engine->known, node);
	char json[KUBE_NAME_MAX + 32];
	struct placed_node *placed;
	bool fits;

	if (known && known->node)
		return dra_where_has(&claim->where, node, known->node);
	snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"%s\"}}", node);
	if (placed_node_read(json, strlen(json), &placed, NULL) < 0)
		return false;
	fits = dra_where_has(&claim->where, node, placed);
	free(placed);
	return fits;
}

bool claims_are_done(struct engine *engine, const struct rank_state *state)
{
	const char *at = state->claims ? state->claims : "", *device, *text;
	char name[KUBE_NAME_MAX];

	while ((at = claims_next(at, name))) {
		const struct claim_entry *entry = claim_find(engine, state->namespace, name);

		if (!entry || !entry->claim->allocated || !is_reserved(entry->claim, state) ||
		    !claim_is_for_node(engine, entry->claim, state->node) ||
		    dra_claim_binding(entry->claim, &device, &text) != DRA_BIND_NOW)
			return false;
	}
	return true;
}

void claims_of_rank(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	const struct member *member = attempt->gang ? member_find(engine, state->uid) : NULL;
	const struct claim_entry *entry;

	if (state->claims)
		return;
	if (member && member->wish && member->wish->claims[0]) {
		state->claims = strdup(member->wish->claims);
		CHECK(state->claims);
	} else if (!attempt->gang && state->name[0] && state->uid[0]) {
		entry = claim_find(engine, state->namespace, state->name);
		if (!entry || !entry->claim->owner_pod ||
		    strcmp(entry->claim->owner_pod, state->uid) != 0)
			return;
		state->own_claim = true;
		state->claims = strdup(state->name);
		CHECK(state->claims);
	}
}

/* --- ends ------------------------------------------------------------------------------------------------------------------ */

static void fail(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 enum engine_cause cause, const char *text)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->claims_busy = false;
	if (attempt->gang) {
		rank_over(engine, attempt, rank, cause, 0, true, text);
		return;
	}
	state->failed = state->failed_never_ran = true;
	state->failed_cause = cause;
	snprintf(state->failed_text, sizeof(state->failed_text), "%.220s", text);
	rank_stop(engine, attempt, rank);
}

static void done(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->claims_busy = false;
	if (attempt->released && attempt->gang)
		gang_release(engine, attempt); /* where it was to go may have changed meanwhile */
	else if (attempt->released)
		pod_bind(engine, attempt, rank);
	else if (attempt->gang)
		rank_report(engine, attempt, rank, ENGINE_READY);
	else
		parts_make(engine, attempt); /* READY, when all else is there */
}

static void step_again(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;

	pthread_mutex_lock(&engine->lock);
	if (about_find(about, &attempt))
		step(engine, attempt, about->rank);
	pthread_mutex_unlock(&engine->lock);
}

/* What it lacks may come: devices of work that ended, a claim that is being made. */
static void wait_for(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		     const char *text)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (clock_boot_ms() - state->claims_since_ms > GIVE_UP_MS)
		fail(engine, attempt, rank, ENGINE_CAUSE_LOST, text);
	else
		kube_later_free(engine->client, AGAIN_MS, step_again,
				about_create(engine, attempt->id, rank, state->uid));
}

/* --- requests ---------------------------------------------------------------------------------------------------------------- */

/* What is written for a rank: to which claim. */
struct write {
	struct about about;
	char namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX];
	bool looking, finalizer; /* what it asks for */
};

static struct write *write_create(struct engine *engine, const struct attempt_entry *attempt,
				  uint32_t rank, const char *name)
{
	const struct rank_state *state = &attempt->ranks[rank];
	struct write *write = calloc(1, sizeof(*write));

	CHECK(write);
	write->about = (struct about){
		.engine = engine, .attempt = attempt->id, .rank = rank, .launch = state->launch
	};
	memcpy(write->about.uid, state->uid, sizeof(state->uid));
	memcpy(write->namespace, state->namespace, sizeof(state->namespace));
	snprintf(write->name, sizeof(write->name), "%s", name);
	return write;
}

static void claim_path(const char *namespace, const char *name, const char *behind, struct buf *out)
{
	buf_addf(out, API "namespaces/%s/resourceclaims/%s%s", namespace, name, behind);
}

static void take_answer(struct engine *engine, const struct kube_answer *answer)
{
	struct dra_claim *claim;

	if (status_is_done(answer->status) &&
	    dra_claim_read(answer->body, answer->size, &claim, NULL) == 0)
		claim_set(engine, claim);
}

static void look(struct engine *engine, struct write *write);

/* A claim of ours is made under a name that is the pod's: what is there already may be ours, or somebody else's. */
static void written(void *context, const struct kube_answer *answer)
{
	struct write *write = context;
	struct engine *engine = write->about.engine;
	struct attempt_entry *attempt;
	struct claim_entry *entry;
	char text[256], words[300];

	pthread_mutex_lock(&engine->lock);
	take_answer(engine, answer);
	entry = claim_find(engine, write->namespace, write->name);
	if (answer->status == 422 && write->finalizer && entry) {
		entry->no_finalizer = true;
		log_line(
			LOG_WARN,
			"Kubernetes: ResourceClaim %s is not kept from being deleted while it is in use: the finalizer is refused, for its configurations were written with blanks",
			entry->key);
	}
	if (answer->status == 409 && !write->looking) {
		look(engine, write);
		write = NULL;
	} else if (answer->status && about_find(&write->about, &attempt)) {
		bool gone = answer->status == 404 && entry;

		if (gone)
			claim_remove(engine, entry);
		if (status_is_done(answer->status) || gone ||
		    (write->finalizer && entry && entry->no_finalizer)) {
			step(engine, attempt, write->about.rank);
		} else if (right_is_lacking(answer)) {
			attempt->ranks[write->about.rank].claims_since_ms = clock_boot_ms();
			kube_later_free(engine->client, RIGHT_MS, step_again,
					about_create(engine, attempt->id, write->about.rank,
						     write->about.uid));
		} else {
			kube_problem(answer, text);
			snprintf(words, sizeof(words), "ResourceClaim: %.250s", text);
			fail(engine, attempt, write->about.rank, ENGINE_CAUSE_START, words);
		}
	}
	pthread_mutex_unlock(&engine->lock);
	free(write);
}

static void look(struct engine *engine, struct write *write)
{
	AUTO_BUF path = BUF_INIT;

	write->looking = true;
	claim_path(write->namespace, write->name, "", &path);
	kube_call(engine->client, &(struct kube_request){ .method = "GET",
							  .path = buf_text(&path),
							  .done = written,
							  .context = write });
}

/* Gives the body away. */
static void patch(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		  const struct dra_claim *claim, const char *behind, struct buf *body)
{
	AUTO_BUF path = BUF_INIT;

	claim_path(claim->namespace, claim->name, behind, &path);
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "PATCH",
			  .path = buf_text(&path),
			  .type = MERGE,
			  .body = body,
			  .done = written,
			  .context = write_create(engine, attempt, rank, claim->name) });
}

/*
 * As JSON Patch, which leaves the rest of the object as it stands. Even so the API server writes configurations without blanks, and takes that for
 * a change of the spec where they had some: then it refuses, and the claim is used without the finalizer.
 */
static void finalizer_add(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			  const struct dra_claim *claim)
{
	struct write *write = write_create(engine, attempt, rank, claim->name);
	struct buf body = BUF_INIT;
	AUTO_BUF path = BUF_INIT;
	size_t size = strlen(claim->finalizers_json);

	write->finalizer = true;
	buf_adds(&body, "[{\"op\":\"replace\",\"path\":\"/metadata/resourceVersion\",\"value\":");
	claim_add_text(&body, claim->version);
	/* "[...]" without its end. */
	buf_adds(&body, "},{\"op\":\"add\",\"path\":\"/metadata/finalizers\",\"value\":");
	buf_add(&body, claim->finalizers_json, size - 1);
	buf_addf(&body, "%s\"" DRA_FINALIZER "\"]}]", size > 2 ? "," : "");
	claim_path(claim->namespace, claim->name, "", &path);
	kube_call(engine->client, &(struct kube_request){ .method = "PATCH",
							  .path = buf_text(&path),
							  .type = "application/json-patch+json",
							  .body = &body,
							  .done = written,
							  .context = write });
}

static void reserve(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		    const struct claim_entry *entry)
{
	struct buf body = BUF_INIT;

	claim_add_head(&body, entry->claim);
	buf_adds(&body, "},\"status\":{");
	if (!entry->claim->allocated)
		buf_addf(&body, "\"allocation\":%s,", entry->planned);
	claim_add_reserved(&body, entry->claim, &attempt->ranks[rank], true);
	buf_adds(&body, "}}");
	patch(engine, attempt, rank, entry->claim, "/status", &body);
}

static void claim_make(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	const struct rank_state *state = &attempt->ranks[rank];
	const struct gpu_table *table = devices_gpus(engine, state->node);
	struct buf body = BUF_INIT;
	AUTO_BUF path = BUF_INIT;

	if (!table) {
		wait_for(engine, attempt, rank, "no driver publishes GPUs of its node any more");
		return;
	}
	if (!dra_class_find(&engine->devices->inventory, table->driver)) {
		char text[KUBE_NAME_MAX + 64];

		snprintf(text, sizeof(text),
			 "there is no DeviceClass %.200s, named as the driver of the GPUs",
			 table->driver);
		fail(engine, attempt, rank, ENGINE_CAUSE_START, text);
		return;
	}
	manifest_claim(&engine->site, attempt->job, attempt->id, rank, state->launch, state->uid,
		       table->driver, (uint32_t)__builtin_popcountll(state->gpu_mask), &body);
	buf_addf(&path, API "namespaces/%s/resourceclaims", state->namespace);
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "POST",
			  .path = buf_text(&path),
			  .body = &body,
			  .done = written,
			  .context = write_create(engine, attempt, rank, state->name) });
}

/* --- choosing ---------------------------------------------------------------------------------------------------------------- */

struct chooser {
	struct engine *engine;
	const struct rank_state *state;
	const struct gpu_table *table;
	bool patient;
	bool exact; /* of the node, and not of these GPUs alone */
	bool later; /* what work has that is over comes free */
};

static bool is_held(const struct chooser *c, const struct dra_slice *slice,
		    const struct dra_device *device)
{
	const struct held *held = device_held(c->engine, slice, device);

	while (held && c->later && !claim_is_live(c->engine, held->by))
		held = held->also;
	return held != NULL;
}

static enum dra_state state_for(void *context, const struct dra_slice *slice,
				const struct dra_device *device)
{
	const struct chooser *c = context;
	char key[DEVICE_KEY_MAX];

	if (is_held(c, slice, device) ||
	    (c->exact && device_is_promised(c->engine, c->state->node, slice, device)))
		return DRA_TAKEN;
	if (!c->table || !c->state->gpu_mask || !dra_is_gpu(slice, device))
		return DRA_FREE;
	device_key(slice->driver, slice->pool, device->name, key);
	for (uint32_t i = 0; i < c->table->count; i++)
		if (strcmp(c->table->keys[i], key) == 0)
			return c->state->gpu_mask >> i & 1 ? DRA_FIRST
			       : c->patient                ? DRA_CLOSED
							   : DRA_FREE;
	return DRA_FREE;
}

/* One that the core chose is still of work that has ended: it comes free soon. What another live rank has is that one's for long. */
static bool is_patient(struct engine *engine, const struct rank_state *state,
		       const struct gpu_table *table)
{
	const struct held *held;

	if (clock_boot_ms() - state->claims_since_ms >= PATIENT_MS)
		return false;
	for (uint32_t i = 0; table && i < table->count; i++) {
		HASH_FIND_STR(engine->devices->held, table->keys[i], held);
		for (; state->gpu_mask >> i & 1 && held; held = held->also)
			if (!claim_is_live(engine, held->by))
				return true;
	}
	return false;
}

static enum dra_verdict allocate(struct chooser *chooser, const struct dra_claim *const *claims,
				 uint32_t count, struct dra_answer *ret)
{
	struct devices *devices = chooser->engine->devices;
	const char *node = chooser->state->node;
	const struct known_node *known = predicates_node(&chooser->engine->known, node);

	arena_reset(&devices->arena);
	return dra_allocate(&devices->inventory,
			    &(struct dra_question){ .node = node,
						    .placed = known ? known->node : NULL,
						    .claims = claims,
						    .claim_count = count,
						    .state = state_for,
						    .context = chooser },
			    &devices->arena, ret);
}

/* Work that has ended gives back soon what it has; where that is of no help, the rank goes elsewhere. */
static void no_room(struct chooser *chooser, struct attempt_entry *attempt, uint32_t rank,
		    const struct dra_claim *const *claims, uint32_t count)
{
	struct rank_state *state = &attempt->ranks[rank];
	struct dra_answer answer;
	char text[KUBE_NAME_MAX + 160];

	snprintf(text, sizeof(text),
		 "node %.100s has no devices left that its ResourceClaims could have", state->node);
	chooser->later = true;
	if ((chooser->exact || allocate(chooser, claims, count, &answer) == DRA_NO_ROOM) &&
	    gang_bounce(chooser->engine, attempt, rank, state->claims_since_ms, text))
		state->claims_busy = false;
	else
		wait_for(chooser->engine, attempt, rank, text);
}

/* True: each claim without an allocation has a plan. */
static bool choose(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   struct claim_entry *const *entries, uint32_t count)
{
	struct rank_state *state = &attempt->ranks[rank];
	const struct dra_claim *claims[WISH_CLAIMS_MAX];
	struct chooser chooser = { .engine = engine,
				   .state = state,
				   .table = devices_gpus(engine, state->node) };
	struct dra_answer answer;
	enum dra_verdict verdict;
	char text[KUBE_NAME_MAX + 160];

	for (uint32_t i = 0; i < count; i++) {
		claim_plan_drop(engine, entries[i]);
		claims[i] = entries[i]->claim;
	}
	chooser.exact = !state->own_claim && claims_are_exact(engine, claims, count);
	chooser.patient = !chooser.exact && is_patient(engine, state, chooser.table);
	if (chooser.exact)
		devices_promises(engine, state);
	verdict = allocate(&chooser, claims, count, &answer);
	if (verdict == DRA_BAD) {
		snprintf(text, sizeof(text), "its ResourceClaims on node %.100s: %.200s",
			 state->node, answer.why);
		fail(engine, attempt, rank, ENGINE_CAUSE_START, text);
	} else if (verdict == DRA_NO_ROOM) {
		no_room(&chooser, attempt, rank, claims, count);
	}
	if (verdict != DRA_FITS)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		AUTO_BUF json = BUF_INIT;

		claim_add_allocation(engine, claims[i], &answer.allocations[i], state->node, &json);
		claim_plan(engine, entries[i], &answer.allocations[i], buf_text(&json));
	}
	return true;
}

static void allocation_clear(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			     const struct dra_claim *claim)
{
	struct buf body = BUF_INIT;

	claim_add_head(&body, claim);
	buf_adds(&body, "},\"status\":{\"allocation\":null,\"reservedFor\":null}}");
	patch(engine, attempt, rank, claim, "/status", &body);
}

/* False: it was dealt with, or something of it is awaited. */
static bool claims_find(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			struct claim_entry *entries[WISH_CLAIMS_MAX], uint32_t *ret_count)
{
	struct rank_state *state = &attempt->ranks[rank];
	const char *at = state->claims;
	char name[KUBE_NAME_MAX], text[KUBE_NAME_MAX + 200];

	for (*ret_count = 0; *ret_count < WISH_CLAIMS_MAX && (at = claims_next(at, name));) {
		struct claim_entry *entry = claim_find(engine, state->namespace, name);
		const struct dra_claim *claim = entry ? entry->claim : NULL;

		snprintf(text, sizeof(text), "ResourceClaim %.200s is not there", name);
		if (!claim && state->own_claim)
			claim_make(engine, attempt, rank);
		else if (!claim)
			wait_for(engine, attempt, rank, text);
		if (!claim)
			return false;
		if (state->own_claim &&
		    (!claim->owner_pod || strcmp(claim->owner_pod, state->uid) != 0)) {
			fail(engine, attempt, rank, ENGINE_CAUSE_START,
			     "there is a ResourceClaim of its name already that is not Fairlead's");
			return false;
		}
		if (claim->deleting) {
			snprintf(text, sizeof(text), "ResourceClaim %.200s is being deleted", name);
			fail(engine, attempt, rank, ENGINE_CAUSE_LOST, text);
			return false;
		}
		if (claim->allocated && !claim_is_for_node(engine, claim, state->node)) {
			if (others_use(claim, state)) {
				snprintf(text, sizeof(text),
					 "ResourceClaim %.200s is in use on another node", name);
				fail(engine, attempt, rank, ENGINE_CAUSE_LOST, text);
			} else {
				allocation_clear(engine, attempt, rank, claim);
			}
			return false;
		}
		entries[(*ret_count)++] = entry;
	}
	return true;
}

/* A device that somebody else gave away as well: whoever is not bound yet gives way. */
static bool clashes(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		    const struct claim_entry *entry)
{
	const char *device = "";
	const struct claim_entry *other = claim_clash(engine, entry, &device);
	char text[2 * KUBE_NAME_MAX];

	if (!other)
		return false;
	snprintf(text, sizeof(text),
		 "device %.60s was allocated to ResourceClaim %.120s by somebody else", device,
		 other->key);
	fail(engine, attempt, rank, ENGINE_CAUSE_LOST, text);
	return true;
}

/* False: a device is still being made ready, or failed. */
static bool conditions_hold(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			    const struct dra_claim *claim)
{
	struct rank_state *state = &attempt->ranks[rank];
	const char *device, *said;
	enum dra_binding found = dra_claim_binding(claim, &device, &said);
	int64_t now_ms = clock_boot_ms();
	char text[2 * KUBE_NAME_MAX];

	if (found == DRA_BIND_NOW)
		return true;
	if (!state->conditions_ms)
		state->conditions_ms = now_ms;
	if (found == DRA_BIND_WAIT && now_ms - state->conditions_ms < CONDITIONS_MS) {
		kube_later_free(engine->client, AGAIN_MS, step_again,
				about_create(engine, attempt->id, rank, state->uid));
		return false;
	}
	snprintf(text, sizeof(text),
		 found == DRA_BIND_WAIT
			 ? "device %.60s was not made ready in ten minutes: it waits for %.120s"
			 : "device %.60s could not be made ready: %.120s",
		 device, said);
	if (gang_bounce(engine, attempt, rank, state->conditions_ms, text))
		state->claims_busy = false;
	else
		wait_for(engine, attempt, rank, text);
	return false;
}

/* Whatever is next for the rank's claims; again after each answer. */
static void step(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	struct claim_entry *entries[WISH_CLAIMS_MAX] = { NULL }, *open[WISH_CLAIMS_MAX];
	uint32_t count, open_count = 0;
	bool planned = true;

	if (state->over || state->failed || attempt->stopping || state->bound) {
		state->claims_busy = false;
		return;
	}
	if (!state->conditions_ms && clock_boot_ms() - state->claims_since_ms > 2 * GIVE_UP_MS) {
		fail(engine, attempt, rank, ENGINE_CAUSE_LOST,
		     "its ResourceClaims are changed by somebody else all the time");
		return;
	}
	if (!claims_find(engine, attempt, rank, entries, &count))
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (entries[i]->claim->allocated)
			continue;
		if (entries[i]->planned && !entries[i]->claim->owner_pod)
			continue; /* for all who share it */
		open[open_count++] = entries[i];
		planned &= entries[i]->planned != NULL;
	}
	if (open_count && !planned && !choose(engine, attempt, rank, open, open_count))
		return;
	if (attempt->gang)
		gang_settles(engine, gang_of_job(engine, attempt->job));
	for (uint32_t i = 0; i < count; i++) {
		const struct dra_claim *claim = entries[i]->claim;

		if (!claim->finalizer && !entries[i]->no_finalizer) {
			finalizer_add(engine, attempt, rank, claim);
			return;
		}
		if (!claim->allocated || !is_reserved(claim, state)) {
			reserve(engine, attempt, rank, entries[i]);
			return;
		}
	}
	for (uint32_t i = 0; i < count; i++)
		if (clashes(engine, attempt, rank, entries[i]) ||
		    !conditions_hold(engine, attempt, rank, entries[i]->claim))
			return;
	done(engine, attempt, rank);
}

void claims_want(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (state->claims_busy || state->over || !state->uid[0])
		return;
	state->claims_busy = true;
	state->conditions_ms = 0;
	state->claims_since_ms = clock_boot_ms();
	step(engine, attempt, rank);
}

/* --- giving back ------------------------------------------------------------------------------------------------------------- */

struct giving {
	struct engine *engine;
	struct rank_state pod; /* its namespace, name and uid */
	char name[KUBE_NAME_MAX]; /* of the claim */
};

static void give_back(struct giving *giving);

static void given_back(void *context, const struct kube_answer *answer)
{
	struct giving *giving = context;
	struct engine *engine = giving->engine;
	struct kube_refusal refusal;
	AUTO_BUF path = BUF_INIT;

	pthread_mutex_lock(&engine->lock);
	take_answer(engine, answer);
	if (answer->status == 409) {
		claim_path(giving->pod.namespace, giving->name, "", &path);
		kube_call(engine->client, &(struct kube_request){ .method = "GET",
								  .path = buf_text(&path),
								  .done = given_back,
								  .context = giving });
		giving = NULL;
	} else if (status_is_done(answer->status)) {
		give_back(giving); /* until it is so */
		giving = NULL;
	} else if (answer->status && answer->status != 404) {
		refusal_read(answer, &refusal);
		log_line(LOG_WARN, "Kubernetes: ResourceClaim %s/%s is not given back: %s",
			 giving->pod.namespace, giving->name, refusal.text);
	}
	pthread_mutex_unlock(&engine->lock);
	free(giving);
}

/* The pod is placed again: what its claim has by now is that attempt's. */
static bool is_placed_again(struct engine *engine, const char *uid)
{
	uint32_t rank;
	const struct attempt_entry *attempt = gangs_attempt(engine, uid, &rank);

	return attempt && rank < attempt->tasks && !attempt->ranks[rank].over;
}

static void give_back(struct giving *giving)
{
	struct engine *engine = giving->engine;
	struct claim_entry *entry = claim_find(engine, giving->pod.namespace, giving->name);
	const struct dra_claim *claim = entry ? entry->claim : NULL;
	struct buf body = BUF_INIT;
	AUTO_BUF path = BUF_INIT;

	if (!claim || !is_reserved(claim, &giving->pod) ||
	    is_placed_again(engine, giving->pod.uid)) {
		free(giving);
		return;
	}
	claim_add_head(&body, claim);
	buf_adds(&body, "},\"status\":{");
	if (others_use(claim, &giving->pod))
		claim_add_reserved(&body, claim, &giving->pod, false);
	else
		buf_adds(&body, "\"allocation\":null,\"reservedFor\":null");
	buf_adds(&body, "}}");
	claim_path(giving->pod.namespace, giving->name, "/status", &path);
	kube_call(engine->client, &(struct kube_request){ .method = "PATCH",
							  .path = buf_text(&path),
							  .type = MERGE,
							  .body = &body,
							  .done = given_back,
							  .context = giving });
}

static void undo(struct engine *engine, const char *namespace, const char *pod, const char *uid,
		 const char *name)
{
	struct giving *giving = calloc(1, sizeof(*giving));

	CHECK(giving);
	giving->engine = engine;
	snprintf(giving->pod.namespace, sizeof(giving->pod.namespace), "%s", namespace);
	snprintf(giving->pod.name, sizeof(giving->pod.name), "%s", pod);
	snprintf(giving->pod.uid, sizeof(giving->pod.uid), "%s", uid);
	snprintf(giving->name, sizeof(giving->name), "%s", name);
	give_back(giving);
}

void claims_undo(struct engine *engine, const struct rank_state *state)
{
	const char *at = state->claims ? state->claims : "";
	char name[KUBE_NAME_MAX];

	while ((at = claims_next(at, name))) {
		struct claim_entry *entry = claim_find(engine, state->namespace, name);

		if (entry)
			claim_plan_drop(engine, entry);
		undo(engine, state->namespace, state->name, state->uid, name);
	}
}

/* All who use it are pods that wait for Fairlead, and no attempt is about them. */
static const struct member *left_behind(struct engine *engine, const struct dra_claim *claim)
{
	const struct member *member = NULL;

	for (uint32_t i = 0; i < claim->consumer_count; i++) {
		member = member_find(engine, claim->consumers[i].uid);
		if (!member || !member->seen || member->bound || member->over ||
		    (member->gang && member->gang->attempt))
			return NULL;
	}
	return claim->allocated ? member : NULL;
}

static void sweep_again(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	engine->devices->ticking = false;
	claims_sweep(engine);
	pthread_mutex_unlock(&engine->lock);
}

void claims_sweep(struct engine *engine)
{
	struct claim_entry *entry, *next;
	const struct member *member;

	if (!engine->devices || !engine->pods_listed || engine->pods_unclear ||
	    engine->devices->ticking)
		return;
	engine->devices->ticking = true;
	kube_later(engine->client, SWEEP_MS, sweep_again, engine);
	HASH_ITER(hh, engine->devices->claims, entry, next)
	{
		member = left_behind(engine, entry->claim);
		if (member)
			undo(engine, member->namespace, member->name, member->uid,
			     entry->claim->name);
	}
}
