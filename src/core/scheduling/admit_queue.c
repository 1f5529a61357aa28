/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of commands about queues. */
#include "core/scheduling/admit.h"

#include <string.h>

#include "base/arena.h"
#include "core/model/apply.h"
#include "core/scheduling/calendar.h"

static bool queue_is_below(const struct facts *f, struct queue_id queue, struct queue_id top)
{
	for (; queue.v; queue = queue_get(f, queue)->parent)
		if (queue.v == top.v)
			return true;
	return false;
}

/* Guarantees of the queues below `parent`, `except` left out. */
static int64_t children_guarantee(const struct facts *f, struct queue_id parent,
				  struct queue_id except)
{
	int64_t sum = 0;

	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (id != except.v && !q->removed && q->parent.v == parent.v)
			sum += q->guarantee_share;
	}
	return sum;
}

static int guarantee_check(const struct admission *a, const struct event_queue_set *e,
			   struct queue_id id, struct queue_id parent)
{
	const struct facts *f = a->facts;
	int64_t taken, below;

	if (e->limit_share >= 0 && e->guarantee_share > e->limit_share)
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\": guarantee %s is more than its limit %s", e->name,
			       share_text(a->arena, e->guarantee_share),
			       share_text(a->arena, e->limit_share));
	below = id.v ? children_guarantee(f, id, (struct queue_id){ 0 }) : 0;
	if (below > e->guarantee_share)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"%s\": guarantee %s is less than the %s GPUs promised to the queues below it",
			e->name, share_text(a->arena, e->guarantee_share),
			share_text(a->arena, below));
	if (!parent.v || !e->guarantee_share)
		return 0;
	taken = children_guarantee(f, parent, id);
	if (taken + e->guarantee_share <= queue_get(f, parent)->guarantee_share)
		return 0;
	return err_set(
		a->err, ERR_INVALID,
		"queue \"%s\": guarantee %s is more than the %s GPUs left of its parent \"%s\"'s guarantee of %s",
		e->name, share_text(a->arena, e->guarantee_share),
		share_text(a->arena, queue_get(f, parent)->guarantee_share - taken),
		facts_name(f, queue_get(f, parent)->name),
		share_text(a->arena, queue_get(f, parent)->guarantee_share));
}

static bool queue_limits_are(const struct facts *f, const struct queue *q,
			     const struct event_queue_set *e)
{
	const char *list = e->limit_models;
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	for (; list_next(&list, part); count++)
		if (count == QUEUE_MODELS_MAX || count == e->limit_model_shares_count ||
		    strcmp(facts_name(f, q->limit_model[count]), part) != 0 ||
		    q->limit_model_share[count] != e->limit_model_shares[count])
			return false;
	return (count == QUEUE_MODELS_MAX || !q->limit_model[count].v) &&
	       q->limit_cpu_milli == e->limit_cpu_milli && q->limit_ram_mib == e->limit_ram_mib;
}

static int admit_limits(const struct admission *a, const struct event_queue_set *e)
{
	const char *list = e->limit_models, *rest;
	char part[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	int count = admit_names(a, "limited model", e->limit_models, QUEUE_MODELS_MAX, false);

	if (count < 0)
		return count;
	if ((uint32_t)count != e->limit_model_shares_count)
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\": %d models are named and %u limits given", e->name,
			       count, e->limit_model_shares_count);
	for (uint32_t i = 0; list_next(&list, part); i++) {
		if (admit_range(a, "a queue's limit of a model in shares", e->limit_model_shares[i],
				0, INT64_C(1000000) * GPU_SHARE) < 0)
			return -(int)ERR_INVALID;
		for (rest = list; list_next(&rest, other);)
			if (strcmp(part, other) == 0)
				return err_set(a->err, ERR_INVALID,
					       "queue \"%s\": model \"%s\" has two limits", e->name,
					       part);
	}
	if (admit_range(a, "a queue's limit of processors in thousandths", e->limit_cpu_milli, 0,
			INT64_C(1000000000000)) < 0)
		return -(int)ERR_INVALID;
	return admit_range(a, "a queue's limit of memory in MiB", e->limit_ram_mib, 0,
			   INT64_C(1000000000000));
}

static bool queue_is(const struct facts *f, const struct queue *q, const struct event_queue_set *e,
		     struct queue_id parent)
{
	return !q->removed && q->parent.v == parent.v && q->guarantee_share == e->guarantee_share &&
	       q->limit_share == e->limit_share && q->weight == e->weight &&
	       q->reserved == (e->reserved != 0) && q->default_limit_ms == e->default_limit_ms &&
	       strcmp(facts_name(f, q->team), e->team) == 0 &&
	       strcmp(facts_text(f, q->calendar), e->calendar) == 0 && queue_limits_are(f, q, e);
}

static int admit_calendar(const struct admission *a, const struct event_queue_set *e)
{
	struct calendar calendar;
	struct err why;

	if (calendar_parse(e->calendar, &calendar, &why) == 0)
		return 0;
	return err_set(a->err, why.code, "queue \"%s\": %s", e->name, why.text);
}

int admit_queue_set(const struct admission *a, struct event_queue_set *e)
{
	const struct facts *f = a->facts;
	struct queue_id id = facts_queue_find(f, e->name), parent = { 0 };
	int rc = admit_name(a, "queue", e->name);

	if (rc < 0)
		return rc;
	if (strcmp(e->name, "root") == 0)
		return err_set(
			a->err, ERR_INVALID,
			"queue \"root\" stands above all others and can't be made or changed");
	if (*e->parent && strcmp(e->parent, "root") != 0) {
		parent = admit_queue_find(a, e->parent);
		if (!parent.v)
			return -(int)ERR_NOT_FOUND;
	}
	if (id.v && queue_is_below(f, parent, id))
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\" can't lie below \"%s\", which lies below it", e->name,
			       e->parent);
	if (*e->team && !facts_team_find(f, e->team))
		return err_set(a->err, ERR_NOT_FOUND, "queue \"%s\": team \"%s\" does not exist",
			       e->name, e->team);
	if (e->weight == 0)
		e->weight = 1;
	rc = admit_range(a, "a queue's weight", e->weight, 1, 1000000);
	if (rc == 0)
		rc = admit_range(a, "a queue's guarantee in shares", e->guarantee_share, 0,
				 INT64_C(1000000) * GPU_SHARE);
	if (rc == 0)
		rc = admit_range(a, "a queue's limit in shares", e->limit_share, -1,
				 INT64_C(1000000) * GPU_SHARE);
	if (rc == 0)
		rc = admit_range(a, "a queue's default run-time limit in ms", e->default_limit_ms,
				 0, ADMIT_DURATION_MAX_MS);
	if (rc == 0)
		rc = admit_calendar(a, e);
	if (rc == 0)
		rc = admit_limits(a, e);
	if (rc == 0)
		rc = guarantee_check(a, e, id, parent);
	if (rc < 0)
		return rc;
	return id.v && queue_is(f, queue_get(f, id), e, parent) ? CORE_ALREADY : 0;
}

int admit_queue_removed(const struct admission *a, const struct event_queue_removed *e)
{
	const struct facts *f = a->facts;
	struct queue_id id = admit_queue_find(a, e->name);
	uint32_t jobs = 0, first = 0;

	if (!id.v)
		return -(int)ERR_NOT_FOUND;
	if (strcmp(e->name, "default") == 0)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"default\" can't be removed: jobs that name no queue go there");
	for (uint32_t q = 1; q <= f->queues.count; q++)
		if (queue_get(f, (struct queue_id){ q })->parent.v == id.v &&
		    !queue_get(f, (struct queue_id){ q })->removed)
			return err_set(
				a->err, ERR_CONFLICT,
				"queue \"%s\" has queue \"%s\" below it; remove that one first",
				e->name, facts_name(f, queue_get(f, (struct queue_id){ q })->name));
	for (uint32_t job = 1; job <= f->jobs.count; job++) {
		if (job_get(f, (struct job_id){ job })->queue.v != id.v ||
		    job_state_is_final(job_get(f, (struct job_id){ job })->state))
			continue;
		first = first ? first : job;
		jobs++;
	}
	if (jobs)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"%s\" has %u jobs that are not over (job %u is the first); cancel them or wait",
			e->name, jobs, first);
	return 0;
}
