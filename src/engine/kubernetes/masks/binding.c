/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checked again before binding: the very nodes, the very pods, with all that is bound by then or on its way. A mask is as old as the last word
 * of the API server, and says nothing of two gangs that are placed in one turn.
 *
 *	start		each pod of the gang fits its node, beside those before it: they count there from now on. Else see below
 *	release		the same once more; claims whose volumes are made for a node are told theirs; when all are bound, so are the pods
 *
 * Requests to bind may be carried out in any order. So a pod that may go where it goes because of another that is on its way waits for that
 * one's binding.
 *
 * A gang that does not fit goes back as one that was not started, after its mask was made anew and told: the core places it elsewhere. When
 * that happens again, it holds its place for a while first, longer each time: what the core does not see may pass, and nothing spins.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/devices/devices.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/rights.h"

enum { HOLD_MS = 1000, HOLD_MOST_MS = 60000, VOLUMES_WAIT_MS = 600000, RIGHT_MS = 10000 };

#define NOTE_SELECTED "volume.kubernetes.io/selected-node"

void gang_unassume(struct engine *engine, const struct attempt_entry *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		if (!attempt->ranks[rank].bound)
			masks_assume(engine, attempt->ranks[rank].uid, NULL);
}

/* The first rank that does not fit, and why; -1 = all do, and count where they are. */
static int64_t fit(struct engine *engine, struct attempt_entry *attempt, char text[256])
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];
		const struct placed_pod *pod = predicates_pod(&engine->known, state->uid);
		const char *problem = NULL;
		enum predicate found;

		if (!pod || pod->node || state->over || state->bound || state->binding)
			continue;
		found = predicates_check_one(&engine->known, pod, state->node, NULL, 1,
					     &engine->masks.arena, &problem);
		if (found == PREDICATE_FITS) {
			arena_reset(&engine->masks.arena);
			masks_assume(engine, state->uid, state->node);
			continue;
		}
		snprintf(text, 256, "pod %.60s/%.80s does not fit there any more: %.80s",
			 state->namespace, state->name,
			 problem                  ? problem
			 : found == PREDICATE_END ? "the node was removed from Kubernetes"
						  : predicate_name(found));
		arena_reset(&engine->masks.arena);
		gang_unassume(engine, attempt);
		return rank;
	}
	return -1;
}

/* --- what is decided later --------------------------------------------------------------------------------------------- */

static bool is_undecided(const struct attempt_entry *attempt)
{
	return attempt->decide_ms || attempt->volumes_ms || attempt->leans;
}

/* It is looked at whenever something has changed, the oldest first: of those that wait for nothing there may be thousands. */
void gangs_decide_later(struct engine *engine, struct attempt_entry *attempt)
{
	struct gangs *gangs = &engine->gangs;

	if (attempt->undecided)
		return;
	attempt->undecided = true;
	attempt->before_undecided = gangs->last_undecided;
	attempt->next_undecided = NULL;
	*(gangs->undecided ? &gangs->last_undecided->next_undecided : &gangs->undecided) = attempt;
	gangs->last_undecided = attempt;
}

void gangs_decide_not(struct engine *engine, struct attempt_entry *attempt)
{
	struct attempt_entry *before = attempt->before_undecided, *next = attempt->next_undecided;

	if (!attempt->undecided)
		return;
	attempt->undecided = false;
	*(before ? &before->next_undecided : &engine->gangs.undecided) = next;
	*(next ? &next->before_undecided : &engine->gangs.last_undecided) = before;
}

/* --- what does not fit ------------------------------------------------------------------------------------------------ */

static void give_back(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		      const char *text)
{
	struct gang *gang = gang_of_job(engine, attempt->job);
	const struct own_job *own = own_find(engine, attempt->job);

	attempt->decide_ms = 0;
	attempt->volumes_ms = 0;
	gang_unassume(engine, attempt);
	/* First, or the core would place it there again. */
	if (gang && gang->mask)
		mask_stale(gang->mask);
	if (own)
		own_stale(own);
	masks_flush(engine, true);
	if (!attempt->gang) {
		own_give_back(engine, attempt, rank, text);
		return;
	}
	rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, true, text);
}

static int64_t hold_ms(uint32_t bounces)
{
	int64_t hold = HOLD_MS;

	if (bounces < 2)
		return 0;
	for (uint32_t i = 2; i < bounces && hold < HOLD_MOST_MS; i++)
		hold *= 2;
	return hold > HOLD_MOST_MS ? HOLD_MOST_MS : hold;
}

bool gang_bounce(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 int64_t since_ms, const char *text)
{
	struct gang *gang = gang_of_job(engine, attempt->job);

	if (!gang || clock_boot_ms() - since_ms < hold_ms(gang->bounces + 1))
		return false;
	gang->bounces++;
	give_back(engine, attempt, rank, text);
	return true;
}

static void does_not_fit(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			 const char *text)
{
	struct gang *gang = gang_of_job(engine, attempt->job);
	struct own_job *own = own_find(engine, attempt->job);
	uint32_t *bounces = gang ? &gang->bounces : own ? &own->bounces : NULL;
	int64_t hold = 0;

	if (bounces && !attempt->decide_ms)
		hold = hold_ms(++*bounces);
	if (attempt->decide_ms && clock_boot_ms() < attempt->decide_ms)
		return;
	if (!hold) {
		give_back(engine, attempt, rank, text);
		return;
	}
	attempt->decide_ms = clock_boot_ms() + hold;
	gangs_decide_later(engine, attempt);
}

static void ready_all(struct engine *engine, struct attempt_entry *attempt)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		struct rank_state *state = &attempt->ranks[rank];

		if (state->over || state->ready)
			continue;
		state->ready = true;
		if (state->claims)
			claims_want(engine, attempt,
				    rank); /* it is ready when it has its devices */
		else
			rank_report(engine, attempt, rank, ENGINE_READY);
	}
}

/* False: one does not, and the attempt was given back or holds its place for a while. */
static bool all_fit(struct engine *engine, struct attempt_entry *attempt)
{
	char text[256];
	int64_t rank = fit(engine, attempt, text);

	if (rank >= 0) {
		does_not_fit(engine, attempt, (uint32_t)rank, text);
		return false;
	}
	attempt->decide_ms = 0;
	return true;
}

void gang_check(struct engine *engine, struct attempt_entry *attempt)
{
	if (all_fit(engine, attempt))
		ready_all(engine, attempt);
}

/* --- volumes that are made for a node ------------------------------------------------------------------------------------ */

static void ask_again(void *context)
{
	const struct about *about = context;
	struct attempt_entry *attempt;
	struct rank_state *state;

	pthread_mutex_lock(&about->engine->lock);
	state = about_find(about, &attempt);
	if (state)
		state->volumes_asked = false; /* at the next look */
	pthread_mutex_unlock(&about->engine->lock);
}

static void told(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt = NULL;
	char text[256], words[300];

	pthread_mutex_lock(&engine->lock);
	/* 404: the claim is gone; the next look finds that out. */
	if (right_is_lacking(answer)) {
		kube_later_free(engine->client, RIGHT_MS, ask_again, about);
		about = NULL;
	} else if (about_find(about, &attempt) && answer->status >= 300 && answer->status != 404 &&
		   attempt->volumes_ms) {
		kube_problem(answer, text);
		snprintf(words, sizeof(words), "its claim can't be told its node: %.200s", text);
		give_back(engine, attempt, about->rank, words);
	}
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

static void claim_tell(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		       const struct placed_claim *claim)
{
	const struct rank_state *state = &attempt->ranks[rank];
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	buf_addf(&path, "/api/v1/namespaces/%s/persistentvolumeclaims/%s",
		 placed_text(claim, claim->namespace), placed_text(claim, claim->name));
	buf_adds(&body, "{\"metadata\":{\"annotations\":{\"" NOTE_SELECTED "\":");
	buf_add_json(&body, state->node, strlen(state->node));
	buf_adds(&body, "}}}");
	kube_call(engine->client,
		  &(struct kube_request){
			  .method = "PATCH",
			  .path = buf_text(&path),
			  .type = "application/merge-patch+json",
			  .body = &body,
			  .done = told,
			  .context = about_create(engine, attempt->id, rank, state->uid) });
}

enum volumes { VOLUMES_THERE, VOLUMES_COME, VOLUMES_FAILED };

static enum volumes volumes_of_rank(struct engine *engine, struct attempt_entry *attempt,
				    uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	const struct placed_pod *pod = predicates_pod(&engine->known, state->uid);
	bool asked = state->volumes_asked;
	enum volumes found = VOLUMES_THERE;

	if (!pod || state->bound || state->over)
		return VOLUMES_THERE;
	PLACED_EACH(pod, placed_word, word, pod->claims)
	{
		const struct placed_claim *claim = predicates_claim(
			&engine->known, state->namespace, placed_text(pod, word->text));
		bool chosen;

		if (!claim || claim->bound)
			continue;
		found = found == VOLUMES_FAILED ? found : VOLUMES_COME;
		chosen = strcmp(placed_text(claim, claim->selected), state->node) == 0;
		if (!asked && !chosen && !claim->volume)
			claim_tell(engine, attempt, rank, claim);
		else if (asked && state->volumes_chosen && !claim->volume && !chosen)
			found = VOLUMES_FAILED; /* whoever makes it has said that it can't be made there */
		state->volumes_asked = true;
		state->volumes_chosen |= chosen;
	}
	return found;
}

/* False: they are still to come, or will not. */
static bool volumes_are_there(struct engine *engine, struct attempt_entry *attempt)
{
	bool all = true;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		enum volumes found = volumes_of_rank(engine, attempt, rank);
		bool late = found == VOLUMES_COME && attempt->volumes_ms &&
			    clock_boot_ms() - attempt->volumes_ms > VOLUMES_WAIT_MS;

		if (found == VOLUMES_FAILED || late) {
			give_back(engine, attempt, rank,
				  late ? "its volume was not made in ten minutes"
				       : "its volume could not be made for that node");
			return false;
		}
		all &= found == VOLUMES_THERE;
	}
	if (!all && !attempt->volumes_ms) {
		attempt->volumes_ms = clock_boot_ms();
		gangs_decide_later(engine, attempt);
	}
	return all;
}

/* --- binding --------------------------------------------------------------------------------------------------------------- */

/*
 * Whether the pod may go where it goes because of a pod of an older attempt that is only on its way: then that one is bound first. So is one
 * whose request is under way and whose spread this pod would change.
 */
static bool leans_on(struct engine *engine, const struct placed_pod *pod,
		     struct attempt_entry *other, bool older)
{
	bool placed = true;

	for (uint32_t rank = 0; rank < other->tasks; rank++) {
		const struct rank_state *state = &other->ranks[rank];
		const struct placed_pod *beside = predicates_pod(&engine->known, state->uid);

		if (!beside || beside->node || state->over)
			continue;
		placed = false;
		if (older && (pod->near || pod->spreads) &&
		    predicates_relation(&engine->known, pod, beside) & (POD_NEAR | POD_SPREAD))
			return true;
		if (beside->spreads && state->binding && !state->bound &&
		    predicates_relation(&engine->known, beside, pod) & POD_SPREAD)
			return true;
	}
	other->placed = placed;
	return false;
}

static bool leans_on_others(struct engine *engine, const struct attempt_entry *attempt)
{
	struct attempt_entry *other;

	if (!engine->masks.by_name)
		return false; /* nobody has such rules */
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct placed_pod *pod =
			predicates_pod(&engine->known, attempt->ranks[rank].uid);

		for (other = pod ? engine->attempts : NULL; other; other = other->hh.next)
			if (other->gang && other != attempt && !other->ended && !other->placed &&
			    leans_on(engine, pod, other, other->id < attempt->id))
				return true;
	}
	return false;
}

void gang_release(struct engine *engine, struct attempt_entry *attempt)
{
	struct gang *gang = gang_of_job(engine, attempt->job);
	struct own_job *own = own_find(engine, attempt->job);

	if (!all_fit(engine, attempt))
		return;
	attempt->leans = leans_on_others(engine, attempt);
	if (attempt->leans) {
		gangs_decide_later(engine, attempt);
		return;
	}
	if (!volumes_are_there(engine, attempt))
		return;
	attempt->volumes_ms = 0;
	if (gang)
		gang->bounces = 0;
	if (own)
		own->bounces = 0;
	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct rank_state *state = &attempt->ranks[i];

		if (!state->bound && !state->binding && !state->over && state->uid[0] &&
		    !state->unclear)
			pod_bind(engine, attempt, i);
	}
}

void gangs_decide(struct engine *engine)
{
	struct attempt_entry *attempt, *next;

	for (attempt = engine->gangs.undecided; attempt; attempt = next) {
		if (!attempt->stopping && attempt->asks_masks)
			own_release(engine, attempt);
		else if (!attempt->stopping && attempt->released)
			gang_release(engine, attempt);
		else if (!attempt->stopping)
			gang_check(engine, attempt);
		next = attempt->next_undecided;
		if (attempt->stopping || !is_undecided(attempt))
			gangs_decide_not(engine, attempt);
	}
}
