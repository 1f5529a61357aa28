/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PATCH /api/v1/jobs/{id}: what a job asks for from now on. The body is a job file with some of its keys (jobfile_change.c). What the core
 * can't know is checked here: whether the caller may use the queue, and whether what the job runs agrees with it.
 *
 * A dry run changes a copy, and compares two plans of the whole queue (forecast.h): who would start later, and when the job would.
 */
#include <string.h>

#include "api/forecast.h"
#include "api/job_show.h"
#include "api/jobfile/jobfile.h"
#include "api/many.h"
#include "api/model_names.h"
#include "api/submit.h"
#include "api/zones.h"
#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/job_change.h"

enum { DELAYS_SHOWN = 100 };

struct change {
	struct call *call;
	struct job_id job; /* of the path */
	struct job_change_request request;
	struct event zone; /* as in a submission */
	bool whole; /* the array that the job is the first of */
	uint64_t shared; /* words that go into one record of an array */
};

/* --- reading ------------------------------------------------------------------------------------------------ */

static int document_read(struct change *c, struct err *err)
{
	struct call *call = c->call;
	struct conf *document;
	size_t size;
	const char *text = http_body(call->request, &size);

	if (jobfile_read_text(body_file, text, size, call->arena, &document, err) < 0 ||
	    jobfile_read_change(body_file, document, call->arena, &c->request, err) < 0)
		return -(int)err->code;
	return models_in_full(call->facts, c->request.job.models, call->arena,
			      &c->request.job.models, err);
}

/* An amount of memory alone is a part of a GPU where the job takes one by its memory, as in a job file; else what its GPUs must have. */
static void memory_place(struct change *c, const struct shape *shape)
{
	struct event_job_submitted *job = &c->request.job;

	if (!c->request.memory_alone || !shape->gpu_part_mib)
		return;
	job->gpu_part_mib = job->gpu_memory_mib;
	job->gpu_memory_mib = 0;
	c->request.set |= JOB_CHANGE_BIT(GPUS);
	c->request.set &= ~JOB_CHANGE_BIT(GPUS_MEMORY);
}

static bool is_own_mask(const struct facts *f, struct name_id mask)
{
	return mask.v &&
	       strncmp(facts_name(f, mask), JOBFILE_OWN_MASK, strlen(JOBFILE_OWN_MASK)) == 0;
}

/* The nodes that can give its pods what they ask for were found for so many tasks and GPUs. */
static int masks_permit(const struct change *c, const struct shape *shape, struct err *err)
{
	const uint64_t found_for =
		JOB_CHANGE_BIT(TASKS) | JOB_CHANGE_BIT(GPUS) | JOB_CHANGE_BIT(SPREAD);

	if (!is_own_mask(c->call->facts, shape->mask) || !(c->request.set & found_for))
		return 0;
	return err_set(
		err, ERR_CONFLICT,
		"job %u: its pods ask for claims or resources, and its nodes were found for its tasks, GPUs and spread, which can't be changed; cancel it and submit it again",
		c->job.v);
}

/* How a task hears that its work is to be saved is part of what it runs. */
static int how_permit(const struct change *c, struct err *err)
{
	const struct api_backend *backend = c->call->api->backend;
	AUTO_BUF text = BUF_INIT;
	struct job_body body;

	if (!c->request.says_how || !c->request.job.checkpoint)
		return 0;
	if (backend->body(backend->context, c->call->facts, c->job, &text, err) < 0 ||
	    job_body_parse(text.data, text.size, c->call->arena, &body, err) < 0)
		return -(int)err->code;
	if ((body.checkpoint_signal != 0) == c->request.wants_signal)
		return 0;
	return err_set(
		err, ERR_CONFLICT,
		"job %u: checkpoint.how can't be %s: it was submitted %s a signal for that, and what a job runs stays",
		c->job.v, c->request.wants_signal ? "signal" : "report",
		c->request.wants_signal ? "without" : "with");
}

/* Whether whoever carries jobs out can do what it would ask for, as of a submission. */
static int engine_permits(const struct change *c, const struct job *job, struct err *err)
{
	const struct api_backend *backend = c->call->api->backend;
	struct job_wish_room *room = arena_new(c->call->arena, struct job_wish_room);
	struct event wish = event_make(EVENT_JOB_SUBMITTED, 0, c->call->caller.user);
	struct event_job_changed words = event_make(EVENT_JOB_CHANGED, 0, "").job_changed;

	if (!backend->permit)
		return 0;
	job_wish(c->call->facts, job, room, &wish.job_submitted);
	job_changes_take(c->request.set, &c->request.job, &words);
	job_changes_put(c->request.set, &words, &wish.job_submitted);
	return backend->permit(backend->context, &wish, err);
}

static int change_permit(struct change *c, const struct job *job, struct err *err)
{
	const struct facts *f = c->call->facts;
	const struct shape *shape = shape_get(f, job->shape);
	const bool moves = c->request.set & JOB_CHANGE_BIT(QUEUE);
	int rc = moves ? queue_open_to(c->call, c->request.job.queue, err) : 0;

	if (rc >= 0)
		rc = masks_permit(c, shape, err);
	if (rc >= 0)
		rc = how_permit(c, err);
	if (rc >= 0 && c->request.set & JOB_CHANGE_BIT(WINDOW))
		rc = zone_wanted(c->call, c->request.job.window, &c->zone, err);
	c->zone.seq = f->seq; /* for copies, as of a submission */
	return rc < 0 ? rc : engine_permits(c, job, err);
}

static int change_read(struct change *c, struct err *err)
{
	const struct job *job;

	if (call_job(c->call, &c->job, &job, err) < 0 || document_read(c, err) < 0)
		return -(int)err->code;
	c->whole = call_query_int(c->call, "array", 0) != 0;
	if (c->whole && job->array_first != c->job.v)
		return err_set(err, ERR_NOT_FOUND, "job %u is not the first of an array", c->job.v);
	if (c->whole)
		c->shared = c->request.set & job_changes_with(JOB_CHANGE_WHOLE);
	memory_place(c, shape_get(c->call->facts, job->shape));
	return change_permit(c, job, err);
}

/* --- records -------------------------------------------------------------------------------------------------- */

/* What an array has together changes with the first of its records. */
static void event_make_for(const struct many *many, uint32_t index, struct event *ret)
{
	const struct change *c = many->context;
	const uint64_t set = index ? c->request.set & ~c->shared : c->request.set;
	char words[EVENT_TEXT_MAX + 1];

	*ret = call_event(c->call, EVENT_JOB_CHANGED);
	job_changes_take(set, &c->request.job, &ret->job_changed);
	ret->job_changed.job = many->jobs[index];
	ret->job_changed.by = c->call->caller.id;
	ret->job_changed.whole = !index && c->shared;
	ret->job_changed.what = arena_strdup(c->call->arena, job_changes_text(set, words));
}

/* The job, or those of the array that have not ended; one record where all that changes is the array's. */
static struct many *jobs_meant(const struct change *c)
{
	const struct facts *f = c->call->facts;
	const struct job *first = job_get(f, c->job);
	const uint32_t end = c->whole ? c->job.v + first->array_count : c->job.v + 1;
	uint32_t *jobs = arena_new_array(c->call->arena, uint32_t, end - c->job.v);
	struct many *many = many_create(c->call, jobs, 0);

	for (uint32_t id = c->job.v; id < end; id++) {
		if (c->whole && (!job_is_there(f, id) ||
				 job_state_is_final(job_get(f, (struct job_id){ id })->state)))
			continue;
		if (many->count && c->request.set == c->shared)
			break;
		jobs[many->count++] = id;
	}
	many->matched = many->count;
	many->make = event_make_for;
	many->context = (void *)(uintptr_t)c;
	many->before = c->zone;
	many->before.seq = 0;
	return many;
}

/* --- what would come of it ------------------------------------------------------------------------------------ */

/* Puts the changes into the copy; the number of jobs that are different then. */
static uint32_t copy_change(struct facts *copy, const struct many *many, const char **ret_what,
			    struct err *err)
{
	uint32_t changed = 0, failed = 0;
	struct err why;

	*ret_what = "";
	for (uint32_t i = 0; i < many->count; i++) {
		struct event event;
		int rc;

		many->make(many, i, &event);
		event.time_ms = copy->now_ms;
		event.seq = copy->seq; /* it counts as no step */
		rc = core_admit(copy, NULL, &event, many->call->arena, NULL, &why);
		if (rc < 0 && !failed++)
			*err = why;
		if (rc)
			continue;
		apply(copy, &event);
		if (!changed++)
			*ret_what = event.job_changed.what;
	}
	return changed;
}

static void delays_add(struct buf *out, const struct facts *f, const struct forecast_change *change)
{
	out_int(out, "delayed", change->delayed);
	out_list(out, "delays");
	for (uint32_t i = 0; i < change->count; i++) {
		const struct forecast_delay *delay = &change->delays[i];
		const struct job *job = job_get(f, (struct job_id){ delay->job });

		out_object(out, NULL);
		out_int(out, "id", delay->job);
		out_text(out, "name", facts_name(f, job->name));
		out_text(out, "user", facts_name(f, job->user));
		out_text(out, "queue", facts_name(f, queue_get(f, job->queue)->name));
		out_int(out, "start_ms", delay->start_ms);
		out_int(out, "later_ms", delay->later_ms);
		out_end(out, '}');
	}
	out_end(out, ']');
	out_bool(out, "cut", change->cut);
}

static int dry_run(struct change *c, struct buf *out, struct err *err)
{
	const struct facts *f = c->call->facts;
	const struct many *many = jobs_meant(c);
	struct forecast_delay delays[DELAYS_SHOWN];
	struct forecast_change change = { .delays = delays, .room = DELAYS_SHOWN };
	const char *what;
	struct facts copy;
	uint32_t changed;

	facts_freeze(f, &copy);
	if (c->zone.kind)
		apply(&copy, &c->zone);
	changed = copy_change(&copy, many, &what, err);
	if (!changed && err->code != ERR_NONE) {
		facts_deinit(&copy);
		return -(int)err->code;
	}
	forecast_change(f, &copy, c->job.v, &change);
	out_object(out, NULL);
	out_int(out, "matched", many->matched);
	out_int(out, "done", changed);
	out_int(out, "already", 0);
	out_int(out, "failed", err->code == ERR_NONE ? 0 : many->count - changed);
	if (err->code != ERR_NONE) {
		out_text(out, "problem", err->text);
		out_text(out, "problem_code", err_code_name(err->code));
	}
	out_bool(out, "dry_run", true);
	out_text(out, "changes", what);
	if (change.starts)
		estimate_add(out, &copy, &change.estimate);
	delays_add(out, f, &change);
	out_int(out, "seq", (int64_t)f->seq);
	out_end(out, '}');
	facts_deinit(&copy);
	return 0;
}

void handle_job_change(struct call *call)
{
	struct change *c = arena_new(call->arena, struct change);
	struct err err = { 0 };
	struct buf out = BUF_INIT;

	c->call = call;
	if (change_read(c, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!call_query_int(call, "dry_run", 0)) {
		many_send(jobs_meant(c));
		return;
	}
	if (dry_run(c, &out, &err) < 0) {
		buf_deinit(&out);
		call_fail(call, &err);
		return;
	}
	call_reply(call, 200, &out);
}
