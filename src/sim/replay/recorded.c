/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/recorded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/model/gpu_wish.h"

#define HOUR_MICRO INT64_C(1000000)

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
	return copy;
}

static bool has_wishes(const struct event_job_submitted *e)
{
	return *e->require || *e->prefer || *e->spread || *e->min_driver || *e->min_cuda ||
	       e->min_capability || *e->regions || *e->labels || *e->tolerates || *e->data ||
	       *e->window || e->throughput_count || e->min_throughput || e->max_slowdown ||
	       e->align;
}

static void submitted(struct recorded *r, const struct event *event)
{
	const struct event_job_submitted *e = &event->job_submitted;
	const int64_t count = e->array_count > 1 ? e->array_count : 1;

	for (int64_t i = 0; i < count; i++) {
		struct recorded_job *job = job_at(r, (uint32_t)(e->job + i));
		struct workload_job *as = &job->as;

		as->name = field_copy(e->name);
		as->queue = field_copy(e->queue);
		as->user = field_copy(e->user);
		as->models = models_copy(e->models);
		as->submit_ms = event->time_ms;
		as->limit_ms = e->limit_ms;
		as->estimate_ms = e->estimate_ms;
		as->deadline_ms =
			e->deadline_ms > event->time_ms ? e->deadline_ms - event->time_ms : 0;
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
		job->went.start_ms = job->went.end_ms = -1;
		job->leave_out = *e->roles ? 1 : (e->gpu_part_mib || *e->slice) ? 2 : 0;
		job->depends = e->depends_count > 0;
		job->elastic = e->tasks_max > e->tasks_min;
		job->wishes = has_wishes(e);
		r->waiting++;
		r->wanted += workload_share(as);
	}
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
	for (uint32_t id = 0; id < r->job_room; id++) {
		free((void *)(uintptr_t)r->jobs[id].as.name);
		free((void *)(uintptr_t)r->jobs[id].as.queue);
		free((void *)(uintptr_t)r->jobs[id].as.user);
		free((void *)(uintptr_t)r->jobs[id].as.models);
	}
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
	r->unlike += job->leave_out == 1;
	r->parts += job->leave_out == 2;
	r->never_ran += !job->leave_out && job->as.run_ms <= 0;
	if (job->leave_out || job->as.run_ms <= 0)
		return false;
	r->elastic += job->elastic;
	r->depends += job->depends;
	r->wishes += job->wishes;
	return true;
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

static void job_put(const struct recorded *r, const struct workload_job *as, FILE *out)
{
	const struct gpu_wish wish = { as->gpus, as->gpu_part };
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
	fprintf(out, ",%s\n", capacity_name(as->capacity));
}

void recorded_workload(const struct recorded *r, FILE *out)
{
	fputs("#fairlead-workload 1\n"
	      "job,submit_s,run_s,tasks,gpus,models,gpu_memory_mib,cpus,memory_mib,queue,user,kind,tier,priority,limit_s,estimate_s,"
	      "deadline_s,checkpoints,restart_s,checkpoint_every_s,capacity\n",
	      out);
	recorded_remarks(r, "# ", out);
	for (uint32_t i = 0; i < r->kept_count; i++)
		job_put(r, &r->jobs[r->kept[i]].as, out);
}

static void remark(FILE *out, const char *before, uint32_t count, const char *what)
{
	if (count)
		fprintf(out, "%s%u %s\n", before, count, what);
}

void recorded_remarks(const struct recorded *r, const char *before, FILE *out)
{
	remark(out, before, r->never_ran, "jobs never ran: left out");
	remark(out, before, r->unlike, "jobs of unlike tasks (roles): left out");
	remark(out, before, r->parts,
	       "jobs with a slice, or a part of a GPU by its memory: left out");
	remark(out, before, r->still, "jobs still run: taken as if they had ended now");
	remark(out, before, r->elastic, "elastic jobs: taken at their least width");
	remark(out, before, r->depends, "jobs waited for others: taken as if they had not");
	remark(out, before, r->wishes,
	       "jobs with wishes for places, versions, hours or speed: taken without them");
	remark(out, before, r->nodes_gone,
	       "nodes were there once and are gone: the cluster is that of the end");
}

/* --- the cluster as text ---------------------------------------------------------------------------------------------- */

static void node_put(const struct facts *f, const struct node *node, FILE *out)
{
	fprintf(out, "    - {name: \"%s\", gpus: %u", facts_name(f, node->name), node->gpu_count);
	if (node->model.v)
		fprintf(out, ", model: \"%s\"", facts_name(f, node->model));
	if (node->gpu_memory_mib)
		fprintf(out, ", memory: %uMiB", node->gpu_memory_mib);
	fprintf(out, ", cpus: %u, ram: %uMiB", node->cpu_milli / 1000, node->ram_mib);
	if (node->class != NODE_CLASS_ANY)
		fprintf(out, ", class: %s", node_class_name(node->class));
	if (node->capacity == CAPACITY_SPOT)
		fputs(", capacity: spot", out);
	for (uint32_t l = 0; l < f->level_count; l++)
		if (node->domain[l].v)
			fprintf(out, ", %s: \"%s\"", facts_name(f, f->level[l]),
				facts_name(f, node->domain[l]));
	fputs("}\n", out);
}

static void cluster_put(const struct facts *f, FILE *out)
{
	fputs("cluster:\n", out);
	if (f->level_count)
		fputs("  levels: [", out);
	for (uint32_t l = 0; l < f->level_count; l++)
		fprintf(out, "%s\"%s\"", l ? ", " : "", facts_name(f, f->level[l]));
	fputs(f->level_count ? "]\n  nodes:\n" : "  nodes:\n", out);
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (node->name.v && node->state != NODE_GONE)
			node_put(f, node, out);
	}
}

static void share_put(FILE *out, int64_t share)
{
	const struct gpu_wish wish = { 1, (uint32_t)(share % GPU_SHARE) };
	char part[GPU_WISH_TEXT_MAX];

	if (share % GPU_SHARE == 0)
		fprintf(out, "%" PRId64, share / GPU_SHARE);
	else if (share < GPU_SHARE)
		fputs(gpu_wish_text(&wish, part), out);
	else
		fprintf(out, "%" PRId64 ".%03" PRId64, share / GPU_SHARE,
			share % GPU_SHARE * 1000 / GPU_SHARE);
}

static void models_put(const struct facts *f, const char *what, const struct name_id *models,
		       const int64_t *shares, FILE *out)
{
	fprintf(out, ", %s: {", what);
	for (uint32_t i = 0; i < QUEUE_MODELS_MAX && models[i].v; i++) {
		fprintf(out, "%s\"%s\": ", i ? ", " : "", facts_name(f, models[i]));
		share_put(out, shares[i]);
	}
	fputc('}', out);
}

static void queue_put(const struct facts *f, const struct queue *q, FILE *out)
{
	fprintf(out, "  - {name: \"%s\"", facts_name(f, q->name));
	if (q->parent.v)
		fprintf(out, ", parent: \"%s\"", facts_name(f, queue_get(f, q->parent)->name));
	if (q->guarantee_model[0].v) {
		models_put(f, "guarantee", q->guarantee_model, q->guarantee_model_share, out);
	} else if (q->guarantee_share) {
		fputs(", guarantee: ", out);
		share_put(out, q->guarantee_share);
	}
	if (q->limit_model[0].v) {
		models_put(f, "limit", q->limit_model, q->limit_model_share, out);
	} else if (q->limit_share >= 0) {
		fputs(", limit: ", out);
		share_put(out, q->limit_share);
	}
	fprintf(out, ", weight: %" PRId64, q->weight);
	if (q->reserved)
		fputs(", reserved: true", out);
	if (q->limit_cpu_milli)
		fprintf(out, ", limit_cpus: %" PRId64, q->limit_cpu_milli / 1000);
	if (q->limit_ram_mib)
		fprintf(out, ", limit_ram: %" PRId64 "MiB", q->limit_ram_mib);
	fputs("}\n", out);
}

static void duration_put(FILE *out, const char *what, int64_t ms)
{
	fprintf(out, "  %s: %" PRId64 "ms\n", what, ms);
}

static void prices_put(const struct facts *f, FILE *out)
{
	bool any = false;

	for (uint32_t i = 1; i <= f->prices.count; i++) {
		const struct price *p = table_get(&f->prices, i);

		if (p->micro_per_hour < 0 || p->micro_per_hour % HOUR_MICRO)
			continue;
		fprintf(out, "%s\"%s\": %" PRId64, any ? ", " : "  prices: {",
			facts_name(f, p->model), p->micro_per_hour / HOUR_MICRO);
		any = true;
	}
	fputs(any ? "}\n" : "", out);
}

static void policy_put(const struct facts *f, FILE *out)
{
	const struct policy *p = &f->policy;

	fputs("policy:\n", out);
	duration_put(out, "min_runtime", p->min_runtime_ms);
	duration_put(out, "grace", p->grace_ms);
	duration_put(out, "rejoin", p->rejoin_ms);
	duration_put(out, "default_limit", p->default_limit_ms);
	if (p->collect_after_ms)
		duration_put(out, "collect_after", p->collect_after_ms);
	else
		fputs("  collect_after: off\n", out);
	if (p->half_life_ms)
		duration_put(out, "half_life", p->half_life_ms);
	else
		fputs("  half_life: off\n", out);
	fprintf(out, "  packing: %s\n  allow_critical_burst: %s\n", p->packing ? "true" : "false",
		p->allow_critical_burst ? "true" : "false");
	fprintf(out, "  backfill: {depth: %" PRId64 "}\n", p->backfill_depth);
	fprintf(out,
		"  order: {deadline: %" PRId64 ", efficiency: %" PRId64 ", age: %" PRId64
		", user: %" PRId64 ", budget: %" PRId64 "}\n",
		p->order_deadline, p->order_efficiency, p->order_age, p->order_user,
		p->order_budget);
	prices_put(f, out);
}

/* Parents before their children, however they came to be so. */
static void queues_put(const struct facts *f, uint32_t parent, FILE *out)
{
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (!q->name.v || q->removed || q->parent.v != parent)
			continue;
		queue_put(f, q, out);
		queues_put(f, id, out);
	}
}

void recorded_cluster(const struct recorded *r, FILE *out)
{
	cluster_put(&r->facts, out);
	fputs("queues:\n", out);
	queues_put(&r->facts, 0, out);
	policy_put(&r->facts, out);
}
