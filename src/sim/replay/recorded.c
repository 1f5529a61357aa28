/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/recorded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/model/gpu_wish.h"
#include "core/model/job_change.h"
#include "sim/world.h"

#define WEEK_MS (INT64_C(7) * 24 * 3600 * 1000)

/* --- jobs, as they come --------------------------------------------------------------------------------------- */

static struct recorded_job *job_at(struct recorded *r, uint32_t id)
{
	if (id >= r->job_room) {
		const uint32_t room = (id + 1) * 2;

		r->jobs = reallocarray(r->jobs, room, sizeof *r->jobs);
		CHECK(r->jobs);
		memset(r->jobs + r->job_room, 0, (room - r->job_room) * sizeof *r->jobs);
		r->job_room = room;
	}
	if (id > r->job_count)
		r->job_count = id;
	return &r->jobs[id];
}

/* A name for a field of the workload: neither comma nor quote. */
static const char *field_copy(const char *text)
{
	char *copy = strdup(text);

	CHECK(copy);
	for (char *c = copy; *c; c++)
		if (*c == ',' || *c == '"' || (unsigned char)*c < ' ')
			*c = '_';
	return copy;
}

static const char *models_copy(const char *text)
{
	char *copy = strdup(text);

	CHECK(copy);
	for (char *c = copy; *c; c++)
		if (*c == ',')
			*c = '|';
		else if (*c == '"')
			*c = '_';
	return copy;
}

/* Such that a workload has no column for. */
static bool has_wishes(const struct event_job_submitted *e)
{
	return e->min_capability || *e->data || e->min_throughput || e->max_slowdown || e->align ||
	       *e->mask || *e->apart_from;
}

static void wish_take(const char **to, const char *text)
{
	if (*text)
		*to = models_copy(text);
}

/* Each with a place for it among the columns. */
static void wishes_take(struct workload_job *as, const struct event_job_submitted *e)
{
	struct workload_wishes *w = workload_wishes_of(as);

	wish_take(&w->slice, e->slice);
	wish_take(&w->require, e->require);
	wish_take(&w->prefer, e->prefer);
	wish_take(&w->spread, e->spread);
	wish_take(&w->regions, e->regions);
	wish_take(&w->labels, e->labels);
	wish_take(&w->tolerates, e->tolerates);
	wish_take(&w->min_driver, e->min_driver);
	wish_take(&w->min_cuda, e->min_cuda);
	wish_take(&w->window, e->window);
}

static void speeds_take(struct workload_job *as, const struct event_job_submitted *e)
{
	for (uint32_t i = 0; i < WORKLOAD_MODELS_MAX && i < e->throughput_count; i++)
		as->speeds[i] = (uint16_t)e->throughput[i];
}

static void wish_free(const char *text)
{
	if (text && *text)
		free((void *)(uintptr_t)text);
}

static void wishes_free(struct workload_wishes *w)
{
	if (!w)
		return;
	wish_free(w->slice);
	wish_free(w->require);
	wish_free(w->prefer);
	wish_free(w->spread);
	wish_free(w->regions);
	wish_free(w->labels);
	wish_free(w->tolerates);
	wish_free(w->min_driver);
	wish_free(w->min_cuda);
	wish_free(w->window);
	free(w);
}

static void wish_forget(struct workload_job *as)
{
	free((void *)(uintptr_t)as->name);
	free((void *)(uintptr_t)as->queue);
	free((void *)(uintptr_t)as->user);
	free((void *)(uintptr_t)as->models);
	wishes_free(as->wishes);
}

/* What the job asks for; of a changed one in place of what it asked for before. */
static void wish_write(struct recorded_job *job, const struct event_job_submitted *e,
		       int64_t submit_ms)
{
	struct workload_job *as = &job->as;

	as->name = field_copy(e->name);
	as->queue = field_copy(e->queue);
	as->user = field_copy(e->user);
	as->models = models_copy(e->models);
	as->submit_ms = submit_ms;
	as->limit_ms = e->limit_ms;
	as->estimate_ms = e->estimate_ms;
	as->deadline_ms = e->deadline_ms > submit_ms ? e->deadline_ms - submit_ms : 0;
	as->gpu_memory_mib = e->gpu_memory_mib;
	as->cpu_milli = e->cpu_milli;
	as->memory_mib = e->memory_mib;
	as->tasks = (uint32_t)e->tasks_min;
	as->gpus = (uint32_t)e->gpus;
	as->gpu_part = (uint32_t)e->gpu_part;
	as->restart_ms = (uint32_t)e->restart_cost_ms;
	as->priority = (int32_t)e->priority;
	as->kind = (uint8_t)e->kind;
	as->tier = (uint8_t)e->tier;
	as->checkpoints = e->checkpoint != 0;
	as->checkpoint_every_ms = e->checkpoint_every_ms;
	as->capacity = (uint8_t)e->capacity;
	as->gpu_part_mib = e->gpu_part_mib;
	wishes_take(as, e);
	speeds_take(as, e);
	job->elastic = e->tasks_max > e->tasks_min;
	job->wishes = has_wishes(e);
}

static void submitted(struct recorded *r, const struct event *event)
{
	const struct event_job_submitted *e = &event->job_submitted;
	const int64_t count = e->array_count > 1 ? e->array_count : 1;

	for (int64_t i = 0; i < count; i++) {
		struct recorded_job *job = job_at(r, (uint32_t)(e->job + i));

		wish_write(job, e, event->time_ms);
		job->went.start_ms = job->went.end_ms = -1;
		job->leave_out = *e->roles != 0;
		job->depends = e->depends_count > 0;
		r->waiting++;
		r->wanted += workload_share(&job->as);
	}
}

/* It comes as what it asked for in the end. */
static void changed(struct recorded *r, uint32_t id)
{
	struct recorded_job *job = job_at(r, id);
	const int64_t submit_ms = job->as.submit_ms;
	struct event_job_submitted wish;
	struct job_wish_room room;

	if (job->ended)
		return;
	job_wish(&r->facts, job_get(&r->facts, (struct job_id){ id }), &room, &wish);
	r->wanted -= workload_share(&job->as);
	wish_forget(&job->as);
	job->as = (struct workload_job){ 0 };
	wish_write(job, &wish, submit_ms);
	r->wanted += workload_share(&job->as);
}

static void released(struct recorded *r, uint32_t attempt, int64_t at_ms)
{
	const struct attempt *a = attempt_get(&r->facts, (struct attempt_id){ attempt });
	struct recorded_job *job = job_at(r, a->job.v);

	if (job->share || a->state != ATTEMPT_ACTIVE)
		return;
	job->share = attempt_share(&r->facts, a);
	job->released_ms = at_ms;
	if (job->went.start_ms < 0)
		job->went.start_ms = at_ms;
	r->used += job->share;
	r->running++;
	r->waiting--;
}

static void attempt_over(struct recorded *r, struct recorded_job *job)
{
	if (!job->released_ms)
		return;
	r->used -= job->share;
	r->running--;
	r->waiting++;
	job->share = job->released_ms = 0;
}

static void ended(struct recorded *r, uint32_t id, int64_t at_ms)
{
	const struct job *now = job_get(&r->facts, (struct job_id){ id });
	struct recorded_job *job = job_at(r, id);

	if (!job->as.name || job->ended)
		return;
	attempt_over(r, job);
	job->ended = 1;
	job->as.run_ms = now->run_ms;
	job->went.end_ms = at_ms;
	job->went.used_ms = now->used_gpu_ms;
	job->went.lost_ms = now->lost_gpu_ms;
	r->waiting--;
	r->wanted -= workload_share(&job->as);
}

static bool attempt_is(const struct recorded *r, int64_t id)
{
	return id > 0 && id <= r->facts.attempts.count &&
	       attempt_get(&r->facts, (struct attempt_id){ (uint32_t)id })->state != ATTEMPT_FREE;
}

static bool job_is(const struct recorded *r, int64_t id)
{
	return id > 0 && id <= r->job_count && r->jobs[id].as.name;
}

void recorded_take(struct recorded *r, const struct event *e)
{
	apply(&r->facts, e);
	r->end_ms = e->time_ms;
	if (e->kind == EVENT_JOB_SUBMITTED && e->job_submitted.job > 0)
		submitted(r, e);
	else if (e->kind == EVENT_JOB_CHANGED && job_is(r, e->job_changed.job))
		changed(r, (uint32_t)e->job_changed.job);
	else if (e->kind == EVENT_ATTEMPT_RELEASED && attempt_is(r, e->attempt_released.attempt))
		released(r, (uint32_t)e->attempt_released.attempt, e->time_ms);
	else if (e->kind == EVENT_ATTEMPT_ENDED && attempt_is(r, e->attempt_ended.attempt))
		attempt_over(r, job_at(r, attempt_get(&r->facts,
						      (struct attempt_id){
							      (uint32_t)e->attempt_ended.attempt })
						  ->job.v));
	else if (e->kind == EVENT_JOB_REQUEUED && job_is(r, e->job_requeued.job))
		r->jobs[e->job_requeued.job].went.evictions +=
			e->job_requeued.why == REQUEUE_EVICTED;
	else if (e->kind == EVENT_JOB_ENDED && job_is(r, e->job_ended.job))
		ended(r, (uint32_t)e->job_ended.job, e->time_ms);
	else
		return;
	outcome_note(&r->outcome, &(struct moment){ .at_ms = e->time_ms,
						    .used = r->used,
						    .wanted = r->wanted,
						    .running = r->running,
						    .waiting = r->waiting });
}

void recorded_init(struct recorded *r)
{
	*r = (struct recorded){ 0 };
	facts_init(&r->facts);
}

void recorded_deinit(struct recorded *r)
{
	for (uint32_t id = 0; id < r->job_room; id++)
		wish_forget(&r->jobs[id].as);
	free(r->jobs);
	free(r->kept);
	outcome_deinit(&r->outcome);
	facts_deinit(&r->facts);
}

/* --- which are in it --------------------------------------------------------------------------------------------- */

/* What still runs has run so far. */
static void run_until_now(struct recorded *r, uint32_t id)
{
	struct recorded_job *job = &r->jobs[id];

	if (job->ended || job->went.start_ms < 0)
		return;
	job->as.run_ms = job_get(&r->facts, (struct job_id){ id })->run_ms;
	if (job->released_ms)
		job->as.run_ms += r->end_ms - job->released_ms;
	r->still += job->as.run_ms > 0 && !job->leave_out;
}

static bool keep(struct recorded *r, uint32_t id)
{
	struct recorded_job *job = &r->jobs[id];

	run_until_now(r, id);
	r->unlike += job->leave_out;
	r->never_ran += !job->leave_out && job->as.run_ms <= 0;
	if (job->leave_out || job->as.run_ms <= 0)
		return false;
	r->elastic += job->elastic;
	r->depends += job->depends;
	r->wishes += job->wishes;
	return true;
}

/* Whether the hour of the week decides anything: then a play, which begins at an hour of its own, must begin at that of the history. */
static bool has_hours(const struct recorded *r)
{
	for (uint32_t i = 0; i < r->kept_count; i++)
		if (*r->jobs[r->kept[i]].as.wishes->window)
			return true;
	for (uint32_t id = 1; id <= r->facts.queues.count; id++)
		if (queue_get(&r->facts, (struct queue_id){ id })->calendar.v)
			return true;
	return false;
}

int recorded_close(struct recorded *r, struct err *err)
{
	uint32_t nodes = 0;

	r->kept = calloc((size_t)r->job_count + 1, sizeof *r->kept);
	CHECK(r->kept);
	for (uint32_t id = 1; id <= r->job_count; id++)
		if (r->jobs[id].as.name && keep(r, id))
			r->kept[r->kept_count++] = id;
	for (uint32_t id = 1; id <= r->facts.nodes.count; id++) {
		const struct node *node = node_get(&r->facts, (struct node_id){ id });

		nodes += node->name.v && node->state != NODE_GONE;
		r->nodes_gone += node->name.v && node->state == NODE_GONE;
	}
	if (!r->kept_count)
		return err_set(err, ERR_NOT_FOUND, "no job of this journal ever ran");
	if (!nodes)
		return err_set(err, ERR_NOT_FOUND,
			       "the journal ends without a node: there is no cluster to play on");
	r->start_ms = r->jobs[r->kept[0]].as.submit_ms;
	if (has_hours(r))
		r->start_ms -= (r->start_ms - WORLD_EPOCH_MS) % WEEK_MS;
	return 0;
}

void recorded_outcome(const struct recorded *r, const struct workload *w, struct outcome *ret)
{
	CHECK(w->count == r->kept_count);
	outcome_init(ret, "as it happened", w);
	for (uint32_t i = 0; i < r->kept_count; i++) {
		const struct recorded_job *job = &r->jobs[r->kept[i]];

		ret->jobs[i] = job->went;
		ret->jobs[i].start_ms = job->went.start_ms - r->start_ms;
		ret->jobs[i].end_ms = job->ended ? job->went.end_ms - r->start_ms : -1;
	}
	for (uint32_t i = 0; i < r->outcome.moment_count; i++) {
		struct moment m = r->outcome.moments[i];

		m.at_ms -= r->start_ms;
		if (m.at_ms >= 0)
			outcome_note(ret, &m);
	}
	for (uint32_t id = 1; id <= r->facts.nodes.count; id++) {
		const struct node *node = node_get(&r->facts, (struct node_id){ id });

		if (node->name.v && node->state != NODE_GONE)
			ret->capacity += (int64_t)node->gpu_count * GPU_SHARE;
	}
}

/* --- the workload as text ------------------------------------------------------------------------------------------- */

static void time_put(FILE *out, int64_t ms)
{
	if (ms % 1000)
		fprintf(out, "%" PRId64 ".%03" PRId64, ms / 1000, ms % 1000);
	else
		fprintf(out, "%" PRId64, ms / 1000);
}

static void time_if(FILE *out, int64_t ms)
{
	fputc(',', out);
	if (ms)
		time_put(out, ms);
}

static void speeds_put(const struct workload_job *as, FILE *out)
{
	for (uint32_t i = 0; i < WORKLOAD_MODELS_MAX && as->speeds[i]; i++)
		fprintf(out, "%s%u.%03u", i ? "|" : "", as->speeds[i] / 1000u,
			as->speeds[i] % 1000u);
}

static void job_put(const struct recorded *r, const struct workload_job *as, FILE *out)
{
	const struct gpu_wish wish = { as->gpus, as->gpu_part };
	const struct workload_wishes *w = as->wishes;
	char gpus[GPU_WISH_TEXT_MAX];

	fprintf(out, "%s,", as->name);
	time_put(out, as->submit_ms - r->start_ms);
	fputc(',', out);
	time_put(out, as->run_ms);
	fprintf(out, ",%u,%s,%s,%" PRId64 ",", as->tasks, gpu_wish_text(&wish, gpus), as->models,
		as->gpu_memory_mib);
	time_put(out, as->cpu_milli);
	fprintf(out, ",%" PRId64 ",%s,%s,%s,%s,%d", as->memory_mib, as->queue, as->user,
		kind_name(as->kind), tier_name(as->tier), as->priority);
	time_if(out, as->limit_ms);
	time_if(out, as->estimate_ms);
	time_if(out, as->deadline_ms);
	fprintf(out, ",%s,", as->checkpoints ? "yes" : "");
	time_put(out, as->restart_ms);
	time_if(out, as->checkpoint_every_ms);
	fprintf(out, ",%s,", capacity_name(as->capacity));
	speeds_put(as, out);
	fputc(',', out);
	if (as->gpu_part_mib)
		fprintf(out, "%" PRId64, as->gpu_part_mib);
	fprintf(out, ",%s,%s,%s,%s,%s,%s,%s,%s,%s,%s\n", w->slice, w->require, w->prefer, w->spread,
		w->regions, w->labels, w->tolerates, w->min_driver, w->min_cuda, w->window);
}

void recorded_workload(const struct recorded *r, FILE *out)
{
	fputs("#fairlead-workload 1\n"
	      "job,submit_s,run_s,tasks,gpus,models,gpu_memory_mib,cpus,memory_mib,queue,user,kind,tier,priority,limit_s,estimate_s,"
	      "deadline_s,checkpoints,restart_s,checkpoint_every_s,capacity,speeds,gpu_part_mib,slice,require,prefer,spread,regions,labels,"
	      "tolerates,min_driver,min_cuda,window\n",
	      out);
	recorded_remarks(r, "# ", out);
	for (uint32_t i = 0; i < r->kept_count; i++)
		job_put(r, &r->jobs[r->kept[i]].as, out);
}

void recorded_remark(FILE *out, const char *before, uint32_t count, const char *what,
		     const char *taken)
{
	if (count)
		fprintf(out, "%s%s: %u, %s\n", before, what, count, taken);
}

void recorded_remarks(const struct recorded *r, const char *before, FILE *out)
{
	recorded_remark(out, before, r->never_ran, "jobs that never ran", "left out");
	recorded_remark(out, before, r->unlike, "jobs of unlike tasks (roles)", "left out");
	recorded_remark(out, before, r->still, "jobs that still run",
			"taken as if they had ended now");
	recorded_remark(out, before, r->elastic, "elastic jobs", "taken at their least width");
	recorded_remark(out, before, r->depends, "jobs that waited for others",
			"taken as if they had not");
	recorded_remark(
		out, before, r->wishes,
		"jobs with a least compute capability, speed or bandwidth, data sets, NUMA wishes, certain nodes or others to keep away from",
		"taken without them");
	recorded_remark(out, before, r->nodes_gone, "nodes that were there once and are gone",
			"the cluster is that of the end");
	recorded_cluster_remarks(r, before, out);
}
