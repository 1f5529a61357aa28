/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/pause.h"

/* A policy without early failures must not bring endless tries back. */
enum { WINDOW_LEAST_MS = 1000 };

int64_t pause_after_ms(uint32_t losses)
{
	if (losses < 2)
		return 0;
	if (losses - 2 >= PAUSE_COUNT_MAX ||
	    (int64_t)PAUSE_FIRST_MS << (losses - 2) > PAUSE_MOST_MS)
		return PAUSE_MOST_MS;
	return (int64_t)PAUSE_FIRST_MS << (losses - 2);
}

static int64_t window_ms(const struct facts *facts)
{
	return facts->policy.blackhole_window_ms > WINDOW_LEAST_MS
		       ? facts->policy.blackhole_window_ms
		       : WINDOW_LEAST_MS;
}

/* Until it was told to stop: winding down is not living. */
static int64_t lived_ms(const struct attempt *attempt)
{
	int64_t from_ms = attempt->released_ms ? attempt->released_ms : attempt->placed_ms,
		to_ms = attempt->stopped_ms ? attempt->stopped_ms : attempt->ended_ms;

	return to_ms > from_ms ? to_ms - from_ms : 0;
}

static bool was_short_loss(const struct facts *facts, const struct attempt *attempt)
{
	return attempt->state == ATTEMPT_OVER &&
	       (attempt->why == STOP_LOST || attempt->why == STOP_START) &&
	       lived_ms(attempt) < window_ms(facts);
}

struct node_id attempt_short_loss_node(const struct facts *facts, const struct attempt *attempt)
{
	const struct task *task;

	if (!was_short_loss(facts, attempt) || attempt->first_failed_rank < 0)
		return (struct node_id){ 0 };
	task = task_get(facts, attempt, (uint32_t)attempt->first_failed_rank);
	return task ? task->node : (struct node_id){ 0 };
}

struct pause job_pause(const struct facts *facts, const struct job *job)
{
	struct pause pause = { 0 };
	struct attempt_id id = job->last_attempt;
	int64_t ended_ms, pause_ms;

	if (job->attempt.v || job_state_is_final(job->state))
		return pause;
	while (id.v && pause.losses < PAUSE_COUNT_MAX) {
		const struct attempt *attempt = attempt_get(facts, id);

		if (attempt->forgiven || !was_short_loss(facts, attempt))
			break;
		pause.losses++;
		if (lived_ms(attempt) > pause.longest_ms)
			pause.longest_ms = lived_ms(attempt);
		id.v = attempt->previous;
	}
	if (pause.losses < 2)
		return pause;
	ended_ms = attempt_get(facts, job->last_attempt)->ended_ms;
	pause_ms = pause_after_ms(pause.losses);
	pause.until_ms = pause.elsewhere_ms = ended_ms + pause_ms;
	pause.node = attempt_short_loss_node(facts, attempt_get(facts, job->last_attempt));
	if (pause.node.v && pause_ms > PAUSE_ELSEWHERE_MOST_MS)
		pause.elsewhere_ms = ended_ms + PAUSE_ELSEWHERE_MOST_MS;
	return pause;
}

/*
 * What left is known by the newest start of each rank alone: one that had been started anew, and held its place shortly. It counts with
 * all its starts in this attempt.
 */
int64_t ranks_pause_until_ms(const struct facts *facts, const struct attempt *attempt)
{
	uint32_t losses = 0;
	int64_t pause_ms;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);

		if (task && !task_holds(task) && task->launch >= losses && task->launch &&
		    attempt->resized_ms - task->from_ms < window_ms(facts))
			losses = task->launch;
	}
	pause_ms = pause_after_ms(losses);
	if (pause_ms > PAUSE_RANKS_MOST_MS)
		pause_ms = PAUSE_RANKS_MOST_MS;
	return pause_ms ? attempt->resized_ms + pause_ms : 0;
}
