/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shepherds in pods (docs/decisions/0022), as the engine sees them. A shepherd asks for its lease; each answer is good for lease_ms from when it
 * asked, on its own clock, and it stops its task so that nothing of it is left by then. So a time after the last question was heard here
 * nothing of the rank runs, whatever became of its node:
 *
 *	asked   heard                            lease ends    + margin
 *	  |-------|---------------------------------|-----|-------|
 *	  shepherd's clock: lease_ms ---------------^     ^       ^ lost
 *	          this machine's: lease_ms ---------------+
 *
 * Only lengths of time are compared, each on one clock. A daemon that has just started takes it that the one before it heard the shepherd
 * at that moment. A shepherd that was not heard before the rank was given up asks in vain: the task that waits for it never starts.
 *
 * While word comes from the node its kubelet says how the rank ends, and the lease proves nothing that is needed. The shepherd says it, too, when
 * nothing is left of its task: that counts where the kubelet is not heard.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/kubernetes/cluster.h"

enum {
	MARGIN_MS = 2000, /* beside a twentieth of the lease: clocks run unlike fast */
	REPORTS_MOST = 200, /* of a rank, in a period: each is a record of the journal */
	REPORTS_PERIOD_MS = 10000,
	LEASE_LEAST_MS = 1000,
	LEASE_MOST_MS = 24 * 3600 * 1000
};

void lease_of_pod(struct rank_state *state, const struct kube_pod *pod)
{
	if (state->lease_ms || pod->lease_ms < LEASE_LEAST_MS || pod->lease_ms > LEASE_MOST_MS)
		return;
	state->lease_ms = pod->lease_ms;
	state->heard_ms = clock_boot_ms();
}

/* When it has certainly stopped, on the boot clock. */
static int64_t lease_end_ms(const struct rank_state *state)
{
	return state->heard_ms + state->lease_ms + state->lease_ms / 20 + MARGIN_MS;
}

static void lease_look(void *context);

static void look_later(struct engine *engine, const struct attempt_entry *attempt, uint32_t rank)
{
	const struct rank_state *state = &attempt->ranks[rank];
	int64_t left_ms = state->end_told ? 0 : lease_end_ms(state) - clock_boot_ms();

	kube_later_free(engine->client, left_ms > 0 ? left_ms : 0, lease_look,
			about_create(engine, attempt->id, rank, state->uid));
}

/* By its shepherd's word. */
static void end_as_told(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	if ((attempt->stopping || state->leaves) && state->end_code)
		rank_over(engine, attempt, rank, ENGINE_CAUSE_STOPPED, state->end_code, false, "");
	else
		rank_over(engine, attempt, rank, ENGINE_CAUSE_EXIT, state->end_code, false,
			  "its shepherd said so, and no word comes from its node");
	pod_delete(engine, state->namespace, state->name, state->uid, GRACE_USUAL_S);
}

static void lease_look(void *context)
{
	const struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;
	char text[KUBE_NAME_MAX + 128];

	pthread_mutex_lock(&engine->lock);
	state = about_find(about, &attempt);
	if (!state || state->over) {
		;
	} else if (!rank_is_silent(engine, state)) {
		state->lease_watched = false;
	} else if (state->end_told) {
		end_as_told(engine, attempt, about->rank);
	} else if (clock_boot_ms() < lease_end_ms(state)) {
		look_later(engine, attempt, about->rank);
	} else {
		snprintf(
			text, sizeof(text),
			"no word from node %.100s nor from the task's shepherd there, whose lease has ended: it has stopped the task",
			state->node);
		rank_lost_pod(engine, attempt, about->rank, text);
		pod_delete(engine, state->namespace, state->name, state->uid, GRACE_USUAL_S);
	}
	pthread_mutex_unlock(&engine->lock);
}

void lease_watch(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];

	if (!state->lease_ms || state->lease_watched || state->over)
		return;
	state->lease_watched = true;
	look_later(engine, attempt, rank);
}

bool shepherd_tells_end(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			const struct kube_pod *pod)
{
	static const char lost[] = "fairlead: lost: ", start[] = "fairlead: start: ";
	const char *text = pod->ended_text;

	if (!attempt->ranks[rank].lease_ms)
		return false;
	if (strncmp(text, lost, sizeof(lost) - 1) == 0)
		rank_over(engine, attempt, rank, ENGINE_CAUSE_LOST, 0, false,
			  text + sizeof(lost) - 1);
	else if (strncmp(text, start, sizeof(start) - 1) == 0)
		rank_over(engine, attempt, rank,
			  pod->code == 126 || pod->code == 127 ? ENGINE_CAUSE_EXIT
							       : ENGINE_CAUSE_START,
			  (int)pod->code, true, text + sizeof(start) - 1);
	else
		return false;
	return true;
}

/* --- its words ------------------------------------------------------------------------------------------------------ */

static int reports_are_too_many(struct rank_state *state, uint32_t reports, struct err *err)
{
	int64_t now = clock_boot_ms();

	if (now - state->reports_ms >= REPORTS_PERIOD_MS) {
		state->reports_ms = now;
		state->reports = 0;
	}
	state->reports += reports;
	if (state->reports <= REPORTS_MOST)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "more than %d reports of a rank in %d seconds",
		       REPORTS_MOST, REPORTS_PERIOD_MS / 1000);
}

static void end_take(struct engine *engine, struct attempt_entry *attempt, uint32_t rank, int code)
{
	struct rank_state *state = &attempt->ranks[rank];

	state->end_told = true;
	state->end_code = code;
	if (rank_is_silent(engine, state))
		look_later(engine, attempt, rank);
}

int kubernetes_word(struct engine *engine, uint64_t id, uint32_t rank,
		    const struct engine_word *word, int64_t *ret_lease_ms, struct err *err)
{
	struct attempt_entry *attempt;
	struct rank_state *state;
	int result = 0;

	pthread_mutex_lock(&engine->lock);
	attempt = live_find(engine, id);
	state = attempt && rank < attempt->tasks ? &attempt->ranks[rank] : NULL;
	if (!state || !state->lease_ms)
		result = err_set(err, ERR_UNAVAILABLE,
				 "the pod of rank %u of attempt %llu was not seen yet", rank,
				 (unsigned long long)id);
	/* Before all that is final: one that slept takes ranks for over whose leases the next leader has renewed. */
	else if (engine->options.may_write &&
		 !engine->options.may_write(engine->options.may_write_context))
		result = err_set(err, ERR_UNAVAILABLE, "another daemon may lead by now");
	else if (word->launch > state->launch)
		result = err_set(err, ERR_UNAVAILABLE,
				 "start %u of rank %u of attempt %llu is not known here yet",
				 word->launch, rank, (unsigned long long)id);
	else if (word->launch < state->launch)
		result = err_set(
			err, ERR_CONFLICT,
			"rank %u of attempt %llu was started anew: what still runs of it is stale",
			rank, (unsigned long long)id);
	else if (state->over || attempt->ended)
		result = err_set(err, ERR_CONFLICT, "rank %u of attempt %llu is over", rank,
				 (unsigned long long)id);
	else if (word->kind == WORD_REPORTS)
		result = reports_are_too_many(state, word->reports, err);
	else if (word->kind == WORD_LEASE)
		state->heard_ms = clock_boot_ms();
	else
		end_take(engine, attempt, rank, word->code);
	if (result == 0 && state)
		*ret_lease_ms = state->lease_ms;
	pthread_mutex_unlock(&engine->lock);
	return result;
}
