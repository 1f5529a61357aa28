/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that is to ask for something else. A waiting job passes the checks of the submission that would ask for the same, so that nobody gets by a
 * change what a submission would not give. Of a job that has started only what the words with JOB_CHANGE_RUNS say can change.
 *
 * The record names what is different in the end: also what follows from the words that were given (the default of max_slowdown, what jobs
 * like it ran), and none that says what is so already.
 */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/apply.h"
#include "core/model/job_change.h"
#include "core/scheduling/admit/queue_rights.h"
#include "core/scheduling/view/view.h"

struct change {
	const struct admission *a;
	const struct event_job_changed *e;
	const struct job *job;
	const char *what; /* job 12 "train", for messages */
	uint64_t set; /* words that were given */
	uint32_t user; /* who asked; 0 = nobody with a role */
	struct event_job_submitted was, wish;
};

static bool has_started(const struct change *c)
{
	return !job_state_waits(c->job->state);
}

static const char *words(const struct change *c, uint64_t set)
{
	char text[EVENT_TEXT_MAX + 1];

	return arena_strdup(c->a->arena, job_changes_text(set, text));
}

/* --- what can be changed at all ------------------------------------------------------------------------ */

static int state_check(const struct change *c)
{
	const uint64_t place = c->set & ~job_changes_with(JOB_CHANGE_RUNS);

	if (c->job->external)
		return err_set(
			c->a->err, ERR_CONFLICT,
			"%s is made of pods of a Kubernetes controller: change it there, and its new pods are another job",
			c->what);
	if (c->job->cancel_asked)
		return err_set(c->a->err, ERR_CONFLICT,
			       "%s is being cancelled and can't be changed any more", c->what);
	if (has_started(c) && place)
		return err_set(
			c->a->err, ERR_CONFLICT,
			"%s has started, and %s can't be changed of a job that has its place: only name, limit and deadline can; cancel it and submit it again",
			c->what, words(c, place));
	return 0;
}

/* What the jobs of an array have together, and what only makes sense of a job of another kind. */
static int scope_check(const struct change *c)
{
	const uint64_t shared = c->set & job_changes_with(JOB_CHANGE_WHOLE),
		       of_tasks = c->set & (JOB_CHANGE_BIT(TASKS) | JOB_CHANGE_BIT(GPUS) |
					    JOB_CHANGE_BIT(CPUS) | JOB_CHANGE_BIT(MEMORY));

	if (c->job->array_first && !c->e->whole && shared)
		return err_set(
			c->a->err, ERR_CONFLICT,
			"%s is one of array %u, whose jobs have %s together: change the array",
			c->what, c->job->array_first, words(c, shared));
	if (!c->job->array_first && c->set & JOB_CHANGE_BIT(ARRAY_LIMIT))
		return err_set(c->a->err, ERR_CONFLICT,
			       "%s is no array: array.limit says nothing about it", c->what);
	if (*c->was.roles && of_tasks)
		return err_set(
			c->a->err, ERR_CONFLICT,
			"%s has roles, which say the tasks, GPUs, processors and memory of each: they can't be changed; cancel it and submit it again",
			c->what);
	return 0;
}

/* --- time ----------------------------------------------------------------------------------------------- */

static int64_t ran_ms(const struct change *c)
{
	const struct attempt *attempt =
		c->job->attempt.v ? attempt_get(c->a->facts, c->job->attempt) : NULL;

	return c->job->run_ms +
	       (attempt && attempt->released_ms ? c->a->now_ms - attempt->released_ms : 0);
}

/* Nobody means to stop a job by this: there is a command for that. */
static int limit_check(const struct change *c)
{
	const int64_t ran = ran_ms(c);
	char limit[DURATION_TEXT_MAX], other[DURATION_TEXT_MAX];

	if (admit_range(c->a, "the run-time limit in ms", c->wish.limit_ms, 0,
			ADMIT_DURATION_MAX_MS) < 0)
		return -(int)ERR_INVALID;
	if (c->wish.limit_ms && c->wish.limit_ms <= ran)
		return err_set(
			c->a->err, ERR_CONFLICT,
			"%s has run for %s, and a limit of %s would stop it at once: give a longer one, or cancel it",
			c->what, format_duration_short(ran, other),
			format_duration(c->wish.limit_ms, limit));
	if (c->wish.limit_ms && c->wish.estimate_ms > c->wish.limit_ms)
		return err_set(
			c->a->err, ERR_INVALID,
			"%s: its estimate of %s is more than the limit of %s; then it would be stopped before its end",
			c->what, format_duration(c->wish.estimate_ms, other),
			format_duration(c->wish.limit_ms, limit));
	return has_started(c) ? rights_extend(c->a, c->what, c->user, c->job->queue,
					      c->was.limit_ms, c->wish.limit_ms)
			      : 0;
}

/* --- a job that has started ------------------------------------------------------------------------------ */

static int running_admit(struct change *c)
{
	int rc = admit_name(c->a, "job", c->wish.name);

	if (rc == 0 && c->set & JOB_CHANGE_BIT(LIMIT))
		rc = limit_check(c);
	if (rc == 0 && c->set & JOB_CHANGE_BIT(DEADLINE))
		rc = admit_deadline(c->a, &c->wish);
	return rc;
}

/* --- a job that waits ------------------------------------------------------------------------------------ */

/* Of a range that resizes freely, as a job file has it that does not say. */
static bool rejoins_usually(const struct event_job_submitted *e)
{
	return e->tasks_min < e->tasks_max && e->resize == RESIZE_FREE;
}

/* What was a default of the old wish is the default of the new one. */
static void defaults_follow(struct change *c)
{
	const int64_t slowdown = policy_slowdown(&c->a->facts->policy) * 10;

	if (!(c->set & JOB_CHANGE_BIT(CAPACITY)) && c->was.capacity == CAPACITY_ANY &&
	    c->was.kind == KIND_TRAINING)
		c->wish.capacity = CAPACITY_NOT_SAID;
	if (!(c->set & JOB_CHANGE_BIT(MAX_SLOWDOWN)) && c->was.max_slowdown == slowdown)
		c->wish.max_slowdown = 0;
	if (!(c->set & JOB_CHANGE_BIT(REJOIN)) && c->was.rejoins == rejoins_usually(&c->was))
		c->wish.rejoins = rejoins_usually(&c->wish);
}

/* Only what is new needs a right: a lead may have given it more than its user may ask for. */
static int rights_check(const struct change *c, struct queue_id queue)
{
	const bool moves = queue.v != c->job->queue.v;
	int rc = 0;

	if (moves || c->wish.tier != c->was.tier)
		rc = rights_tier(c->a, c->what, c->user, queue, c->wish.tier);
	if (rc == 0)
		rc = rights_priority(c->a, c->what, c->user, queue,
				     moves ? INT64_MIN : c->was.priority, c->wish.priority);
	return rc == 0 && moves ? admit_waiting_move(c->a, c->what, c->job, queue) : rc;
}

/* Seconds, as a job keeps it. */
static int64_t likely_whole_ms(int64_t ms)
{
	return ms > 0 ? ((ms - 1) / 1000 + 1) * 1000 : 0;
}

static void estimates_follow(struct change *c)
{
	const uint64_t by = JOB_CHANGE_BIT(NAME) | JOB_CHANGE_BIT(QUEUE) | JOB_CHANGE_BIT(TASKS) |
			    JOB_CHANGE_BIT(GPUS) | JOB_CHANGE_BIT(LIMIT) | JOB_CHANGE_BIT(ESTIMATE);

	if (job_changes_between(&c->was, &c->wish) & by)
		c->wish.likely_ms = likely_whole_ms(admit_likely_ms(c->a->facts, &c->wish));
	if (c->set & JOB_CHANGE_BIT(CHECKPOINT_EVERY))
		admit_interval(c->a, &c->wish);
}

/* Words that say nothing of the place: with them alone, what the cluster lacks by now of what the job asked for is no matter. */
static const uint64_t beside_place =
	JOB_CHANGE_BIT(NAME) | JOB_CHANGE_BIT(QUEUE) | JOB_CHANGE_BIT(PROJECT) |
	JOB_CHANGE_BIT(TIER) | JOB_CHANGE_BIT(PRIORITY) | JOB_CHANGE_BIT(LIMIT) |
	JOB_CHANGE_BIT(ESTIMATE) | JOB_CHANGE_BIT(DEADLINE) | JOB_CHANGE_BIT(EFFICIENCY) |
	JOB_CHANGE_BIT(RETRIES) | JOB_CHANGE_BIT(ARRAY_LIMIT) | JOB_CHANGE_BIT(PREEMPTS) |
	JOB_CHANGE_BIT(CHECKPOINT_GRACE) | JOB_CHANGE_BIT(CHECKPOINT_RESTART_COST);

static int wish_check(struct change *c)
{
	int rc;

	if (c->set & ~beside_place)
		return admit_wish(c->a, &c->wish);
	rc = admit_numbers(c->a, &c->wish);
	if (rc == 0)
		rc = admit_name(c->a, "job", c->wish.name);
	return rc == 0 && *c->wish.project ? admit_name(c->a, "project", c->wish.project) : rc;
}

static int waiting_admit(struct change *c)
{
	struct event_job_submitted *wish = &c->wish;
	struct queue_id queue;
	int rc;

	defaults_follow(c);
	rc = wish_check(c);
	if (rc == 0 && c->set & (JOB_CHANGE_BIT(LIMIT) | JOB_CHANGE_BIT(ESTIMATE)))
		rc = limit_check(c);
	if (rc < 0)
		return rc;
	queue = admit_queue_find(c->a, wish->queue);
	if (!queue.v)
		return -(int)ERR_NOT_FOUND;
	rc = rights_check(c, queue);
	if (rc == 0)
		rc = admit_critical(c->a, wish, queue);
	if (rc == 0 && c->set & JOB_CHANGE_BIT(DEADLINE))
		rc = admit_deadline(c->a, wish);
	if (rc == 0)
		rc = admit_capacity(c->a, wish);
	if (rc < 0)
		return rc;
	admit_slowdown_default(c->a, wish);
	estimates_follow(c);
	return 0;
}

/* --- the record ------------------------------------------------------------------------------------------- */

static int record_make(const struct change *c, struct event_job_changed *e)
{
	struct event_job_changed made = event_make(EVENT_JOB_CHANGED, 0, "").job_changed;
	const uint64_t set = job_changes_between(&c->was, &c->wish);

	if (!set)
		return CORE_ALREADY;
	job_changes_take(set, &c->wish, &made);
	made.job = e->job;
	made.by = e->by;
	made.whole = c->job->array_first && set & job_changes_with(JOB_CHANGE_WHOLE);
	made.what = words(c, set);
	*e = made;
	return 0;
}

int admit_job_changed(const struct admission *a, struct event_job_changed *e)
{
	struct job_wish_room *room = arena_new(a->arena, struct job_wish_room);
	struct change *c = arena_new(a->arena, struct change);
	int rc;

	*c = (struct change){ .a = a, .e = e, .job = admit_job_open(a, e->job, "changed") };
	if (!c->job)
		return admit_job_failure(a);
	c->what = arena_printf(a->arena, "job %lld \"%s\"", (long long)e->job,
			       facts_name(a->facts, c->job->name));
	if (!job_changes_parse(e->what, &c->set) || !c->set)
		return err_set(a->err, ERR_INVALID,
			       "%s: \"%.100s\" names nothing that can be changed", c->what,
			       e->what);
	job_wish(a->facts, c->job, room, &c->was);
	c->wish = c->was;
	job_changes_put(c->set & ~JOB_CHANGE_BIT(LIKELY), e, &c->wish);
	rc = rights_asker(a, e->by, &c->user);
	if (rc == 0)
		rc = state_check(c);
	if (rc == 0)
		rc = scope_check(c);
	if (rc == 0)
		rc = has_started(c) ? running_admit(c) : waiting_admit(c);
	return rc < 0 ? rc : record_make(c, e);
}
