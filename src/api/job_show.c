/* SPDX-License-Identifier: Apache-2.0 */
/* One job in full; why it waits; what it runs; what happened to it. */
#include "api/job_show.h"

#include <string.h>
#include "api/history_page.h"
#include "api/jobfile/jobfile.h"
#include "api/jobfile/jobfile_table.h"
#include "api/money.h"
#include "api/planner.h"
#include "api/tally.h"
#include "base/check.h"
#include "core/model/roles.h"
#include "core/model/taken.h"

enum { ATTEMPTS_SHOWN = 100 };

static const char *attempt_state_name(uint8_t state)
{
	static const char *const names[] = { [ATTEMPT_FREE] = "",
					     [ATTEMPT_PREPARING] = "preparing",
					     [ATTEMPT_ACTIVE] = "active",
					     [ATTEMPT_STOPPING] = "stopping",
					     [ATTEMPT_OVER] = "over" };

	return state < ARRAY_SIZE(names) ? names[state] : "";
}

static const char *task_state_name(uint8_t state)
{
	static const char *const names[] = { [TASK_PREPARING] = "preparing",
					     [TASK_READY] = "ready",
					     [TASK_RUNNING] = "running",
					     [TASK_EXITED] = "exited",
					     [TASK_LEFT] = "left" };

	return state < ARRAY_SIZE(names) ? names[state] : "";
}

void gpu_list_add(struct buf *out, const char *key, uint32_t mask)
{
	out_list(out, key);
	for (; mask; mask &= mask - 1)
		out_int(out, NULL, __builtin_ctz(mask));
	out_end(out, ']');
}

/* A slice has memory of its own; of a part the driver keeps the bound where MPS runs, else it is watched where the driver tells who uses
 * how much, or nobody does. */
static void part_add(struct buf *out, const struct facts *f, const struct task *task)
{
	const struct node *node = node_get(f, task->node);
	bool watched = !node->simulated && task->gpu_part_mib && !task->slice &&
		       node->found.given & FOUND_PROCESSES;

	out_share(out, "gpu_share", task->gpu_part);
	out_int(out, "gpu_memory_mib", task->gpu_part_mib);
	out_bool(out, "gpu_memory_enforced", task->slice != 0 || task->gpu_limited);
	out_bool(out, "gpu_memory_watched", watched);
	if (task->slice)
		out_int(out, "gpu_slice_start", slice_at_start(task->slice));
}

/* Of the GPUs that it holds, the first that something else uses too. */
static const char *task_taken_by(const struct facts *f, const struct task *task)
{
	const char *by = NULL;

	for (uint32_t gpu = 0; task->node.v && !by && gpu < NODE_GPUS_MAX; gpu++)
		if (task->gpu_mask >> gpu & 1)
			by = gpu_taken_by(f, task->node, gpu);
	return by ? by : "";
}

static void task_add(struct buf *out, const struct facts *f, bool over, uint32_t rank,
		     const struct task *task)
{
	out_object(out, NULL);
	out_int(out, "rank", rank);
	out_text(out, "node", task->node.v ? facts_name(f, node_get(f, task->node)->name) : "");
	gpu_list_add(out, "gpus", task->gpu_mask);
	if (task->gpu_part && task->node.v)
		part_add(out, f, task);
	out_text(out, "gpu_taken_by", over || !task_holds(task) ? "" : task_taken_by(f, task));
	out_int(out, "from_ms", task_holds(task) ? task->from_ms : 0);
	out_text(out, "state", task->leaving ? "leaving" : task_state_name(task->state));
	out_int(out, "step", task->step);
	out_int(out, "code", task->code);
	out_int(out, "signal", task->signal);
	out_text(out, "cause", task->state >= TASK_EXITED ? task_cause_name(task->cause) : "");
	out_int(out, "peak_memory_mib", task->peak_memory_mib);
	out_bool(out, "memory_enforced", task->memory_enforced);
	out_bool(out, "simulated", task->node.v && node_get(f, task->node)->simulated);
	out_end(out, '}');
}

static void attempt_add(struct buf *out, const struct facts *f, uint32_t id, uint32_t number,
			const struct attempt *attempt)
{
	out_object(out, NULL);
	out_int(out, "attempt", id);
	out_int(out, "number", number);
	out_text(out, "state", attempt_state_name(attempt->state));
	out_text(out, "why", stop_why_name(attempt->why));
	out_text(out, "reason", facts_text(f, attempt->reason));
	out_int(out, "placed_ms", attempt->placed_ms);
	out_int(out, "released_ms", attempt->released_ms);
	out_int(out, "ended_ms", attempt->ended_ms);
	out_int(out, "warned_ms", attempt->warned_ms);
	out_int(out, "deadline_ms", attempt_until_ms(f, attempt));
	out_int(out, "for_job", attempt->for_job);
	out_int(out, "resumed_from", attempt->resume_number);
	out_int(out, "first_failed_rank", attempt->first_failed_rank);
	out_bool(out, "unreachable", attempt->unreachable);
	out_bool(out, "simulated", attempt_simulated(f, attempt));
	out_list(out, "tasks");
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (task)
			task_add(out, f, attempt->state == ATTEMPT_OVER, rank, task);
	}
	out_end(out, ']');
	out_int(out, "bandwidth_mbps", attempt->bandwidth_mbps);
	out_int(out, "slowdown_permille", attempt->slowdown_permille);
	transfer_add(out, f, job_get(f, attempt->job)->queue, attempt->transfer_ms,
		     attempt->transfer_micro);
	out_end(out, '}');
}

/* The newest ones, newest last. Older ones are found by walking back; a job rarely has more than one. */
static void attempts_add(struct buf *out, const struct facts *f, uint32_t job_id,
			 const struct job *job)
{
	uint32_t found[ATTEMPTS_SHOWN], count = 0;
	struct attempt_id newest;

	(void)job_newest(f, job, &newest);
	for (uint32_t id = newest.v; id && count < ATTEMPTS_SHOWN && count < job->attempts; id--)
		if (attempt_get(f, (struct attempt_id){ id })->job.v == job_id)
			found[count++] = id;
	/* Until now for one that still waits for its first. */
	out_int(out, "waited_ms",
		(count && count == job->attempts
			 ? attempt_get(f, (struct attempt_id){ found[count - 1] })->placed_ms
		 : job->attempts || job_state_is_final(job->state) ? job->state_ms
								   : request_ms(f)) -
			job->submitted_ms);
	out_list(out, "attempts");
	while (count--)
		attempt_add(out, f, found[count], job->attempts - count,
			    attempt_get(f, (struct attempt_id){ found[count] }));
	out_end(out, ']');
}

static void checkpoints_add(struct buf *out, const struct facts *f, const struct job *job,
			    bool with_path)
{
	out_list(out, "checkpoints");
	for (uint32_t i = 0, number = job->checkpoints_made; i < CHECKPOINTS_KEPT && number;
	     i++, number--) {
		const struct checkpoint *c = job_checkpoint_kept(f, job, number);

		if (!c) /* lost with its record */
			continue;
		out_object(out, NULL);
		out_int(out, "number", c->number);
		out_int(out, "attempt", c->attempt);
		out_int(out, "attempt_number", job_attempt_number(f, job, c->attempt));
		out_int(out, "step", c->step);
		out_int(out, "at_ms", c->at_ms);
		out_bool(out, "void", c->is_void);
		if (c->is_void)
			out_text(out, "why", facts_text(f, c->why));
		if (with_path)
			out_text(out, "path", c->path);
		out_end(out, '}');
	}
	out_end(out, ']');
}

/* As it is named in a job file; "" = none. */
static const char *level_name(const struct facts *f, uint32_t level)
{
	if (level == LEVEL_NODE)
		return "node";
	return level && level <= f->level_count ? facts_name(f, f->level[level - 1]) : "";
}

static void constraints_add(struct buf *out, const struct facts *f, const struct shape *shape)
{
	char text[VERSION_TEXT_MAX], list[EVENT_TEXT_MAX + 1];

	out_text(out, "min_driver", shape->min_driver ? version_text(shape->min_driver, text) : "");
	out_text(out, "min_cuda", shape->min_cuda ? version_text(shape->min_cuda, text) : "");
	out_int(out, "min_capability_tenths", shape->min_capability);
	out_text(out, "regions", names_text(f, shape->regions, SHAPE_REGIONS_MAX, list));
	out_text(out, "selector", names_text(f, shape->labels, SHAPE_LABELS_MAX, list));
	out_text(out, "tolerates", names_text(f, shape->tolerates, SHAPE_LABELS_MAX, list));
	out_list(out, "throughput_milli");
	for (uint32_t i = 0; i < SHAPE_MODELS_MAX && shape->throughput[i]; i++)
		out_int(out, NULL, shape->throughput[i]);
	out_end(out, ']');
	out_int(out, "min_throughput_milli", shape->min_throughput);
	out_text(out, "data", names_text(f, shape->data, SHAPE_DATA_MAX, list));
	out_bool(out, "mix_models", shape->mixes);
	out_text(out, "align",
		 shape->align == ALIGN_NIC    ? "nic"
		 : shape->align == ALIGN_NUMA ? "numa"
					      : "");
	out_text(out, "mask", facts_name(f, shape->mask));
	out_text(out, "labels", names_text(f, shape->own_label, JOB_LABELS_MAX, list));
	out_text(out, "apart_from", names_text(f, shape->apart_from, JOB_LABELS_MAX, list));
	out_text(out, "apart_level",
		 !shape->apart_from[0].v ? ""
		 : shape->apart_level    ? level_name(f, shape->apart_level)
					 : "node");
	out_bool(out, "apart_prefer", shape->apart_wish);
	out_text(out, "window", facts_name(f, shape->window));
	out_text(out, "window_end",
		 !shape->window.v                       ? ""
		 : shape->window_end == WINDOW_FINISHES ? "finish"
							: "stop");
	out_text(out, "spread", level_name(f, shape->apart));
	out_int(out, "max_slowdown_permille", shape->max_slowdown);
}

static void roles_add(struct buf *out, const struct facts *f, const struct job *job,
		      const struct shape *shape)
{
	const struct attempt *attempt = job->attempt.v ? attempt_get(f, job->attempt) : NULL;

	out_list(out, "roles");
	for (uint32_t i = 0; i < shape->role_count; i++) {
		out_object(out, NULL);
		out_text(out, "name", facts_name(f, shape->role[i]));
		out_int(out, "tasks_min", shape->role_min[i]);
		out_int(out, "tasks_max", shape->role_max[i]);
		out_int(out, "tasks", attempt ? attempt_role_width(f, attempt, shape, i) : 0);
		out_int(out, "gpus_per_task", shape->role_gpus[i]);
		out_int(out, "cpu_milli", shape->role_cpu_milli[i]);
		out_int(out, "memory_mib", shape->role_memory_mib[i]);
		out_bool(out, "ends_job", shape->role_ends >> i & 1);
		out_end(out, '}');
	}
	out_end(out, ']');
}

static void wishes_add(struct buf *out, const struct facts *f, const struct job *job)
{
	const struct body *body;
	const struct shape *shape = shape_get(f, job->shape);

	out_list(out, "models");
	for (size_t i = 0; i < SHAPE_MODELS_MAX && shape->models[i].v; i++)
		out_text(out, NULL, facts_name(f, shape->models[i]));
	out_end(out, ']');
	out_int(out, "gpu_memory_mib", shape->gpu_memory_mib);
	out_int(out, "cpu_milli", shape->cpu_milli);
	out_int(out, "memory_mib", shape->memory_mib);
	constraints_add(out, f, shape);
	roles_add(out, f, job, shape);
	out_int(out, "limit_ms", job->limit_ms);
	out_int(out, "estimate_ms", job->estimate_ms);
	body = table_get(&f->bodies, job->body);
	out_int(out, "deadline_ms", job->body ? body->deadline_ms : 0);
	out_text(out, "capacity", capacity_name(job->body ? body->capacity : 0));
	out_text(out, "capacity_now", capacity_name((uint8_t)shape->capacity));
	out_int(out, "efficiency", job->body ? body->efficiency : 0);
	out_int(out, "retries_left", job->retries_left);
	out_list(out, "depends_on");
	for (uint32_t row = job->depends; row;) {
		const struct depend *d = table_get(&f->depends, row);

		out_int(out, NULL, d->job);
		row = d->next;
	}
	out_end(out, ']');
	out_list(out, "depends_on_arrays");
	for (uint32_t row = job->depends; row;) {
		const struct depend *d = table_get(&f->depends, row);

		if (d->whole)
			out_int(out, NULL, d->job);
		row = d->next;
	}
	out_end(out, ']');
}

const char *job_last_reason(const struct facts *facts, const struct job *job)
{
	const bool stale = job_is_live(job) && job->state != JOB_UNREACHABLE;

	return stale ? "" : facts_text(facts, job->reason);
}

bool job_wants_reason(const struct job *job)
{
	return job_is_waiting(job) || job->state == JOB_BLOCKED || job->state == JOB_HELD;
}

/* What the daemon adds to the core's explanation: what lies between a place and the begin. */
static const char *with_held_up(struct call *call, uint32_t id, const struct job *job,
				const char *text)
{
	const struct api_backend *backend = call->api->backend;
	const bool starts = job->state == JOB_STARTING || job->state == JOB_RESUMING;
	const char *held_up = NULL;

	if (backend->held_up && (job_is_waiting(job) || starts))
		held_up = backend->held_up(backend->context, id, starts, call->arena);
	if (!held_up)
		return text;
	return *text ? arena_printf(call->arena, "%s; %s", text, held_up) : held_up;
}

/* Why it is in its state, in one sentence: for one that waits the true first reason, asked of the core. ret_latest_ms: by when it starts for
 * certain, 0 = nobody knows. */
static const char *job_reason(struct call *call, uint32_t id, const struct job *job,
			      int64_t *ret_latest_ms)
{
	const struct facts *facts;
	struct explanation e = { 0 };
	struct view *view;

	*ret_latest_ms = 0;
	if (!job_wants_reason(job))
		return with_held_up(call, id, job, job_last_reason(call->facts, job));
	view = planner_enter(call->api->planner, call->frozen, id, &facts);
	explain_job(facts, view, (struct job_id){ id }, call->arena, &e);
	e.summary = e.summary ? arena_strdup(call->arena, e.summary) : "";
	*ret_latest_ms = e.latest_ms;
	planner_leave(call->api->planner);
	return with_held_up(call, id, job, e.summary);
}

static void time_add(struct buf *out, const char *key, int64_t ms)
{
	if (ms != PLAY_NEVER)
		out_int(out, key, ms);
}

void estimate_add(struct buf *out, const struct facts *f, const struct estimate *estimate)
{
	const struct plan_answer *answer = &estimate->answer;

	if (answer->start_ms == PLAY_NEVER)
		return;
	out_object(out, "estimate");
	out_int(out, "at_ms", estimate->at_ms);
	time_add(out, "start_ms", answer->start_ms);
	time_add(out, "start_by_ms", answer->start_by_ms);
	time_add(out, "end_ms", answer->end_ms);
	time_add(out, "end_by_ms", answer->end_by_ms);
	out_text(out, "node",
		 answer->node && answer->node <= f->nodes.count
			 ? facts_name(f, node_get(f, (struct node_id){ answer->node })->name)
			 : "");
	out_end(out, '}');
}

/* The estimate, or that one is being made. */
static void estimate_say(struct buf *out, const struct facts *f, int forecast,
			 const struct estimate *estimate)
{
	if (forecast == 0)
		estimate_add(out, f, estimate);
	if (forecast == FORECAST_MAKING)
		out_bool(out, "estimate_making", true);
}

void handle_job_show(struct call *call)
{
	struct err err = { 0 };
	struct job_id id;
	const struct job *job;
	struct buf out = BUF_INIT;
	struct estimate estimate;
	int64_t latest_ms;
	int forecast;
	bool private;

	if (call_job(call, &id, &job, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	private = call_may(call, ROUTE_job_logs, relation_of_job(call, id, job));
	out_object(&out, NULL);
	job_head_add(&out, call->facts, id.v, job);
	out_time(&out, "state_since", job->state_ms);
	out_time(&out, "submitted", job->submitted_ms);
	wishes_add(&out, call->facts, job);
	attempts_add(&out, call->facts, id.v, job);
	checkpoints_add(&out, call->facts, job, private);
	out_int(&out, "checkpoints_made", job->checkpoints_made);
	out_int(&out, "checkpoint_every_ms", job->checkpoint_every_ms);
	out_int(&out, "used_gpu_ms", job->used_gpu_ms);
	out_int(&out, "lost_gpu_ms", job->lost_gpu_ms);
	out_int(&out, "ran_ms", job->run_ms);
	out_int(&out, "signal", job->signal);
	out_int(&out, "failed_rank", job->failed_rank);
	out_text(&out, "cause", job_state_is_final(job->state) ? task_cause_name(job->cause) : "");
	out_text(&out, "reason", job_reason(call, id.v, job, &latest_ms));
	if (!call->past && job_is_waiting(job)) {
		forecast = forecast_ask(call->api->forecasts, call->facts, id.v, 0, &estimate);
		if (forecast == 0)
			estimate_bound(&estimate, request_ms(call->facts), latest_ms);
		estimate_say(&out, call->facts, forecast, &estimate);
	}
	out_bool(&out, "cancel_asked", job->cancel_asked);
	out_bool(&out, "held", job->held);
	out_bool(&out, "simulated", job_simulated(call->facts, job));
	out_bool(&out, "may_read_logs", private);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

/* --- explain ---------------------------------------------------------------------------------------------------------- */

/* What pods wait for that have their place, Kubernetes says: an image, a Secret, a volume that can't be mounted. */
static void summary_add(struct buf *out, const struct facts *f, uint32_t id,
			const struct explanation *e)
{
	const struct job *job = id ? job_get(f, (struct job_id){ id }) : NULL;
	AUTO_BUF text = BUF_INIT;

	buf_adds(&text, e->summary);
	if (job && job->state == JOB_STARTING && f->site.namespace[0] && !job->external)
		buf_addf(
			&text,
			"; what its pods still wait for: kubectl describe pods -n %s -l fairlead.dev/job=%u",
			f->site.namespace, id);
	if (job && job->state == JOB_UNREACHABLE && f->site.namespace[0])
		buf_addf(
			&text,
			"; it goes on elsewhere when it is proved that they stopped: %sby the node when it is back, by its removal when it is gone for good (kubectl delete node), or by a person's word of each that did (kubectl annotate pod POD%s%s fairlead.dev/stopped=WHY)",
			job->checkpoints ? "by the end of their lease, " : "",
			job->external ? "" : " -n ", job->external ? "" : f->site.namespace);
	out_text(out, "summary", buf_text(&text));
}

void explanation_add(struct buf *out, const char *key, const struct facts *f, uint32_t job,
		     const char *state, const struct explanation *e,
		     const struct explain_change *change, int forecast,
		     const struct estimate *estimate, const struct price_range *price)
{
	out_object(out, key);
	out_int(out, "job", job);
	out_text(out, "state", state);
	out_text(out, "reason", reason_name(e->reason));
	summary_add(out, f, job, e);
	out_text(out, "remedy", e->remedy);
	out_bool(out, "holder_protected", e->holder_protected);
	out_int(out, "position", e->position);
	out_list(out, "lines");
	for (uint32_t i = 0; i < e->line_count; i++) {
		out_object(out, NULL);
		out_text(out, "code", explain_line_code(&e->lines[i]));
		out_text(out, "text", e->lines[i].text);
		out_end(out, '}');
	}
	out_end(out, ']');
	out_list(out, "ahead");
	for (uint32_t i = 0; i < e->ahead_listed && i < ARRAY_SIZE(e->ahead); i++)
		out_int(out, NULL, e->ahead[i].v);
	out_end(out, ']');
	out_int(out, "ahead_count", e->ahead_count);
	if (change) {
		out_list(out, "causes");
		for (uint32_t i = 0; i < change->cause_count; i++) {
			out_object(out, NULL);
			out_text(out, "code", reason_name((enum reason)change->causes[i].code));
			out_text(out, "text", change->causes[i].text);
			out_end(out, '}');
		}
		out_end(out, ']');
		out_text(out, "change", change->text);
		if (change->part_count)
			out_bool(out, "change_is_smallest", change->smallest);
	}
	estimate_say(out, f, forecast, estimate);
	out_int(out, "at_ms", f->now_ms);
	if (price)
		price_add(out, f, job_get(f, (struct job_id){ job })->queue, price);
	out_bool(out, "simulated", cluster_simulated(f));
	out_int(out, "seq", (int64_t)f->seq);
	out_end(out, '}');
}

/* A plan of a short queue is made in less; for one that takes longer the answer does not wait. */
enum { ESTIMATE_WAIT_MS = 25 };

void handle_job_explain(struct call *call)
{
	const struct facts *facts;
	struct err err = { 0 };
	struct explanation e = { 0 };
	struct explain_change change;
	struct buf out = BUF_INIT;
	struct job_id id;
	const struct job *job;
	struct estimate estimate;
	struct price_range price = { 0 };
	struct view *view;
	int forecast;

	if (call_job(call, &id, &job, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (call->past) { /* it has ended: nobody need be asked */
		change = (struct explain_change){ .text = "" };
		explain_job(call->facts, NULL, id, call->arena, &e);
		explanation_add(&out, NULL, call->facts, id.v, job_state_name(job->state), &e,
				&change, FORECAST_NONE, NULL, NULL);
		call_reply(call, 200, &out);
		return;
	}
	forecast = job_is_waiting(job) ? forecast_ask(call->api->forecasts, call->facts, id.v,
						      ESTIMATE_WAIT_MS, &estimate)
				       : FORECAST_NONE;
	view = planner_enter(call->api->planner, call->frozen, id.v, &facts);
	explain_job(facts, view, id, call->arena, &e);
	e.summary = with_held_up(call, id.v, job, e.summary);
	explain_change(facts, view, id, call->arena, &change);
	if (forecast == 0)
		estimate_bound(&estimate, facts->now_ms, e.latest_ms);
	if (!job_state_is_final(job->state))
		core_price(facts, view, id, NULL, &price);
	explanation_add(&out, NULL, facts, id.v, job_state_name(job->state), &e, &change, forecast,
			&estimate, &price);
	planner_leave(call->api->planner);
	call_reply(call, 200, &out);
}

/* --- spec --------------------------------------------------------------------------------------------------------------- */

/* The name part of "NAME=value" or "NAME=secret". */
static void names_add(struct buf *out, const char *key, const char *const *list,
		      struct arena *arena)
{
	out_list(out, key);
	for (size_t i = 0; list && list[i]; i++)
		out_text(out, NULL, arena_strndup(arena, list[i], strcspn(list[i], "=")));
	out_end(out, ']');
}

static void git_add(struct buf *out, const struct job_git *git)
{
	if (!job_git_is_known(git) && !git->is_broken)
		return;
	out_object(out, "git");
	if (git->is_broken)
		out_text(out, "problem", "what was noted is longer than it can be, or no text");
	if (git->commit)
		out_text(out, "commit", git->commit);
	if (git->branch)
		out_text(out, "branch", git->branch);
	if (git->changed >= 0)
		out_int(out, "changed", git->changed);
	if (git->untracked >= 0)
		out_int(out, "untracked", git->untracked);
	if (git->remote)
		out_text(out, "remote", git->remote);
	out_end(out, '}');
}

static void sweep_add(struct buf *out, const struct job_body *body)
{
	if (!body->sweep_count)
		return;
	out_object(out, "sweep");
	for (uint32_t i = 0; i < body->sweep_count; i++) {
		out_list(out, body->sweep[i].name);
		for (uint32_t k = 0; k < body->sweep[i].count; k++)
			out_text(out, NULL, body->sweep[i].values[k]);
		out_end(out, ']');
	}
	out_end(out, '}');
}

static void spec_reply(struct call *call, const struct job_body *body)
{
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	if (body->argv) {
		out_list(&out, "command");
		for (size_t i = 0; body->argv[i]; i++)
			out_text(&out, NULL, body->argv[i]);
		out_end(&out, ']');
	}
	if (body->script)
		out_text(&out, "script", body->script);
	if (body->workdir)
		out_text(&out, "workdir", body->workdir);
	if (body->image)
		out_text(&out, "image", body->image);
	git_add(&out, &body->git);
	if (body->checkpoint_path)
		out_text(&out, "checkpoint_path", body->checkpoint_path);
	out_text(&out, "checkpoint_signal", jobfile_signal_name(body->checkpoint_signal));
	names_add(&out, "env", body->env, call->arena);
	names_add(&out, "secrets", body->secrets, call->arena);
	names_add(&out, "shell_env", body->shell_env, call->arena);
	sweep_add(&out, body);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_job_spec(struct call *call)
{
	const struct api_backend *backend = call->api->backend;
	struct buf plain = BUF_INIT;
	struct job_body body;
	struct err err = { 0 };
	struct job_id id;
	const struct job *job;

	if (call_job(call, &id, &job, &err) < 0 ||
	    backend->body(backend->context, call->facts, id, &plain, &err) < 0 ||
	    job_body_parse(buf_text(&plain), plain.size, call->arena, &body, &err) < 0)
		call_fail(call, &err);
	else
		spec_reply(call, &body);
	if (plain.data)
		explicit_bzero(plain.data, plain.size);
	buf_deinit(&plain);
}

void handle_job_history(struct call *call)
{
	struct err err = { 0 };
	struct job_id id;
	const struct job *job;

	if (call_job(call, &id, &job, &err) < 0)
		call_fail(call, &err);
	else
		history_reply(call, id.v,
			      call_may(call, ROUTE_job_logs, relation_of_job(call, id, job)));
}
