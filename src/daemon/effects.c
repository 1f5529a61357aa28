/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine thread: durable decisions become commands of the engine. Every command may be given again, so after a
 * restart each live attempt simply gets the commands of its state once more.
 *
 * A start needs what is too large or too secret for the facts: the job's body is read back from its sealed blob, and the
 * checkpoint to resume from is looked at first (resume.c).
 *
 * A command that could not be carried out for want of space or the like is given again each second until it could, or its attempt
 * is over: nobody else would. So is a start whose body can't be read because the store does not answer: the job is not to blame.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "base/log.h"
#include "base/thread.h"
#include "core/model/roles.h"
#include "daemon/state.h"
#include "engine/kubernetes/lease.h"
#include "engine/failpoint.h"

#define LOG_CAP_BYTES ((int64_t)256 << 20)
#define NOT_STARTED "it was stopped before it was started"
enum { AGAIN_MS = 1000, GRACE_OF_JOB = -1 };

static void effect_send(struct daemon *d, enum effect_kind kind, uint64_t attempt, int64_t grace_ms)
{
	struct effect *effect = calloc(1, sizeof(*effect));
	CHECK(effect);
	effect->message.kind = (int)kind;
	effect->attempt = attempt;
	effect->grace_ms = grace_ms;
	mailbox_send(&d->engine_box, &effect->message);
}

bool effects_follow(uint32_t kind)
{
	return kind == EVENT_ATTEMPT_PLACED || kind == EVENT_ATTEMPT_RELEASED ||
	       kind == EVENT_ATTEMPT_WARNED || kind == EVENT_ATTEMPT_STOPPED ||
	       kind == EVENT_ATTEMPT_ENDED || kind == EVENT_JOB_ENDED ||
	       kind == EVENT_ATTEMPT_SHRUNK || kind == EVENT_ATTEMPT_GROWN ||
	       kind == EVENT_RANKS_LEFT || kind == EVENT_PROMISE_MADE ||
	       kind == EVENT_PROMISE_DROPPED;
}

static void promise_send(struct daemon *d, int64_t job)
{
	if (d->engine_ops->pods)
		effect_send(d, EFFECT_PODS_PROMISE, (uint64_t)job, 0);
}

/* Events of the kinds that effects_follow names, submissions that own_follow names, and no others, come here. */
void effects_of_event(struct daemon *d, const struct event *event)
{
	if (event->kind == EVENT_ATTEMPT_WARNED || event->kind == EVENT_ATTEMPT_STOPPED ||
	    event->kind == EVENT_ATTEMPT_ENDED || event->kind == EVENT_ATTEMPT_SHRUNK ||
	    event->kind == EVENT_ATTEMPT_GROWN || event->kind == EVENT_RANKS_LEFT)
		shepherd_calls_wake(d);
	if (event->kind == EVENT_ATTEMPT_PLACED)
		effect_send(d, EFFECT_START, (uint64_t)event->attempt_placed.attempt, 0);
	else if (event->kind == EVENT_ATTEMPT_RELEASED)
		effect_send(d, EFFECT_RELEASE, (uint64_t)event->attempt_released.attempt, 0);
	else if (event->kind == EVENT_ATTEMPT_WARNED)
		effect_send(d, EFFECT_WARN, (uint64_t)event->attempt_warned.attempt,
			    event->attempt_warned.deadline_ms - event->time_ms);
	else if (event->kind == EVENT_ATTEMPT_STOPPED)
		effect_send(d, EFFECT_STOP, (uint64_t)event->attempt_stopped.attempt,
			    event->attempt_stopped.grace_ms);
	else if (event->kind == EVENT_ATTEMPT_SHRUNK)
		effect_send(d, EFFECT_RESIZE, (uint64_t)event->attempt_shrunk.attempt,
			    event->attempt_shrunk.grace_ms);
	else if (event->kind == EVENT_ATTEMPT_GROWN)
		effect_send(d, EFFECT_RESIZE, (uint64_t)event->attempt_grown.attempt, GRACE_OF_JOB);
	else if (event->kind == EVENT_RANKS_LEFT)
		effect_send(d, EFFECT_RESIZE, (uint64_t)event->ranks_left.attempt, GRACE_OF_JOB);
	else if (event->kind == EVENT_ATTEMPT_ENDED)
		effect_send(d, EFFECT_FORGET, (uint64_t)event->attempt_ended.attempt, 0);
	else if (event->kind == EVENT_PROMISE_MADE)
		promise_send(d, event->promise_made.job);
	else if (event->kind == EVENT_PROMISE_DROPPED)
		promise_send(d, event->promise_dropped.job);
	else if (event->kind == EVENT_JOB_SUBMITTED)
		effect_send(d, EFFECT_OWN_CAME, (uint64_t)event->job_submitted.job,
			    event->job_submitted.array_count);
	else if (event->kind == EVENT_JOB_ENDED)
		effect_send(d, EFFECT_JOB_OVER, (uint64_t)event->job_ended.job, 0);
}

void effects_adopt(struct daemon *d)
{
	d->adopting++; /* the core's; this is its thread, or there is none yet */
	effect_send(d, EFFECT_ADOPT, 0, 0);
}

void effects_adopt_anew(struct daemon *d)
{
	d->adopting++; /* the core's; this is its thread, or there is none yet */
	effect_send(d, EFFECT_ADOPT_ANEW, 0, 0);
}

void effects_start_from(struct daemon *d, uint64_t attempt, const struct resume_from *from)
{
	struct effect *effect = calloc(1, sizeof(*effect));
	CHECK(effect);
	effect->message.kind = EFFECT_START_FROM;
	effect->attempt = attempt;
	effect->from = *from;
	if (from->path) {
		effect->path = strdup(from->path);
		CHECK(effect->path);
		effect->from.path = effect->path;
	}
	mailbox_send(&d->engine_box, &effect->message);
}

void effects_report(void *daemon, const struct engine_fact *fact)
{
	struct daemon *d = daemon;
	struct fact_message *message = calloc(1, sizeof(*message));
	CHECK(message);
	message->message.kind = CORE_FACT;
	message->fact = *fact;
	/* Before the end is told: its job must find no node ready for the next try. */
	if (fact->kind == ENGINE_EXITED && fact->fault)
		machine_faults_note(d, fact->fault);
	if (d->engine_ops->elsewhere)
		mailbox_send_soon(&d->core_box, &message->message);
	else
		mailbox_send(&d->core_box, &message->message);
}

/* --- start --------------------------------------------------------------------------------------------------- */

static void never_started_by(struct daemon *d, uint64_t attempt, uint32_t tasks,
			     enum engine_cause cause, enum engine_fault fault, const char *text)
{
	for (uint32_t rank = 0; rank < tasks; rank++) {
		struct engine_fact fact = {
			.kind = ENGINE_EXITED,
			.attempt = attempt,
			.rank = rank,
			.time_ms = clock_wall_ms(),
			.cause = cause,
			.fault = fault,
			.never_ran = true,
		};
		snprintf(fact.text, sizeof(fact.text), "%.255s", text);
		effects_report(d, &fact);
	}
}

static void never_started(struct daemon *d, uint64_t attempt, uint32_t tasks,
			  enum engine_cause cause, const char *text)
{
	never_started_by(d, attempt, tasks, cause, ENGINE_FAULT_NONE, text);
}

/* Elsewhere an error of this machine says nothing of the nodes. */
static void start_failed(struct daemon *d, uint64_t attempt, uint32_t tasks, const struct err *err)
{
	const enum engine_fault fault = fault_of(err);
	never_started_by(d, attempt, tasks, fault_cause(fault),
			 d->engine_ops->try_start ? fault : ENGINE_FAULT_NONE, err->text);
}

/* It waits for another place without loss, and its checkpoint is kept: perhaps its file server is back by then. */
static void away_tell(struct daemon *d, const struct facts *facts, uint64_t id, uint32_t number)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "checkpoint %u can't be read, and nor can the folder in which it lies", number);
	never_started(d, id, attempt_get(facts, (struct attempt_id){ (uint32_t)id })->tasks,
		      ENGINE_CAUSE_LOST, text);
}

/* It belongs to the attempt from now on: neither gone nor told to leave. */
static bool is_member(const struct task *task)
{
	return task->state < TASK_EXITED && !task->leaving;
}

static const struct engine_gpu_place *places_of(const struct facts *facts,
						const struct attempt *attempt, struct arena *arena)
{
	const struct shape *shape = shape_get(facts, job_get(facts, attempt->job)->shape);
	struct engine_gpu_place *places =
		arena_new_array(arena, struct engine_gpu_place, attempt->tasks);
	uint32_t *on_node = arena_new_array(arena, uint32_t, facts->nodes.count + 1), members = 0;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);
		const struct node *node = node_get(facts, task->node);
		struct engine_gpu_place *place = &places[rank];
		place->rank = rank;
		snprintf(place->node, sizeof(place->node), "%s",
			 facts_name(facts, node_get(facts, task->node)->name));
		place->gpu_mask = task->gpu_mask;
		place->gpu_share_micro = (uint32_t)((uint64_t)task->gpu_part * 1000000 / GPU_SHARE);
		place->gpu_memory_mib = task->gpu_part_mib;
		if (shape->slice)
			(void)slice_wish_text(shape->slice, place->gpu_slice);
		place->gpu_slice_start = slice_at_start(task->slice);
		place->launch = task->launch;
		place->member = is_member(task) ? members++ : MEMBER_NONE;
		place->leaves = task->leaving;
		place->comes = task->state == TASK_PREPARING;
		place->left = task->state == TASK_LEFT;
		place->local_rank = is_member(task) ? on_node[task->node.v]++ : 0;
		place->cpu_milli = shape_wish(shape, rank).cpu_milli;
		if (shape->align && task->gpu_mask)
			node_numa_cpus(facts, node, node_numa_of(node, task->gpu_mask),
				       place->cpus);
		place->memory_mib = shape_wish(shape, rank).memory_mib;
		place->role = shape_role(shape, rank);
		place->role_rank = shape->role_count ? shape_role_rank(shape, rank) : 0;
	}
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		places[rank].local_size = on_node[task_get(facts, attempt, rank)->node.v];
	return places;
}

static void copy_name(char out[64], const char *name)
{
	snprintf(out, 64, "%s", name);
}

/* What each role runs, and how many of its ranks belong to the attempt. */
static void roles_describe(const struct facts *facts, const struct attempt *attempt,
			   const struct job_body *body, struct arena *arena,
			   struct engine_start *ret)
{
	const struct shape *shape = shape_get(facts, job_get(facts, attempt->job)->shape);
	struct engine_role *roles = arena_new_array(arena, struct engine_role, ROLES_MAX);

	for (uint32_t i = 0; i < shape->role_count; i++) {
		struct engine_role *role = &roles[i];
		const struct job_role *own = i < body->role_count ? &body->roles[i] : NULL;

		copy_name(role->name, facts_name(facts, shape->role[i]));
		role->argv = own ? own->argv : NULL;
		role->script = own ? own->script : NULL;
		role->overlay = own ? own->overlay : NULL;
		role->env = own ? job_body_role_env(ret->env, own, arena) : ret->env;
		for (uint32_t rank = 0; rank < attempt->tasks; rank++)
			role->size += shape_role(shape, rank) == i &&
				      is_member(task_get(facts, attempt, rank));
	}
	ret->roles = shape->role_count ? roles : NULL;
	ret->role_count = shape->role_count;
}

static const char *const *tolerates_of(const struct facts *facts, const struct job *job,
				       struct arena *arena)
{
	const struct shape *shape = shape_get(facts, job->shape);
	const char **texts = arena_new_array(arena, const char *, SHAPE_LABELS_MAX + 1);

	for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->tolerates[i].v; i++)
		texts[i] = facts_name(facts, shape->tolerates[i]);
	return texts;
}

static const struct engine_pod *pods_describe(const struct job_body *body, struct arena *arena)
{
	struct engine_pod *pods = arena_new_array(arena, struct engine_pod, body->pod_count);

	for (uint32_t i = 0; i < body->pod_count; i++)
		pods[i] = (struct engine_pod){ .namespace = body->pods[i].namespace,
					       .name = body->pods[i].name,
					       .uid = body->pods[i].uid };
	return pods;
}

bool ranks_change(const struct facts *facts, const struct job *job)
{
	const struct shape *shape = shape_get(facts, job->shape);

	return !job->external && (job->rejoins || (job->resize == RESIZE_FREE &&
						   shape->tasks_max > shape->tasks_min));
}

/*
 * A store in PostgreSQL that is silent holds this thread up for as long as one try takes, ten seconds and more, and each start and each job with claims tries. So for as
 * long again nobody does, and what needs no body is carried out meanwhile: stops, releases, and what the engine is told.
 */
int effects_body(struct daemon *d, const struct facts *facts, struct job_id job, struct buf *ret,
		 struct err *err)
{
	int64_t began_ms = clock_boot_ms(), ended_ms;
	int rc;

	if (began_ms < d->store_pause_until_ms)
		return err_set(err, ERR_UNAVAILABLE,
			       "the store has not answered, and is asked again in a moment");
	rc = d->backend.body(d, facts, job, ret, err);
	ended_ms = clock_boot_ms();
	if (rc == -(int)ERR_UNAVAILABLE)
		d->store_pause_until_ms = ended_ms + (ended_ms - began_ms);
	return rc;
}

/* What the job said cannot be read: the key or the file is damaged, and the job is not to blame. */
enum { BODY_LOST = 1 };

/* 0, BODY_LOST with the reason, or negative. */
static int start_describe(struct daemon *d, const struct facts *facts, uint64_t id,
			  const struct resume_from *from, struct arena *arena,
			  struct engine_start *ret, struct err *err)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	const struct job *job = job_get(facts, attempt->job);
	struct buf text = BUF_INIT;
	struct job_body body;
	int result = effects_body(d, facts, attempt->job, &text, err);
	const bool lost = result == -(int)ERR_CORRUPT || result == -(int)ERR_NOT_FOUND;
	if (result == 0)
		result = job_body_parse(text.data, text.size, arena, &body, err);
	buf_deinit(&text);
	if (lost)
		return BODY_LOST;
	if (result < 0)
		return result;
	if (!d->engine_ops->elsewhere && (job->uid < 0 || job->gid < 0))
		return err_set(
			err, ERR_FORBIDDEN,
			"user \"%s\" had no account or group on this machine when the job was submitted",
			facts_name(facts, job->user));

	*ret = (struct engine_start){
		.job = attempt->job.v,
		.attempt = id,
		.uid = (uid_t)job->uid,
		.gid = (gid_t)job->gid,
		.argv = body.argv,
		.script = body.script,
		.env = job_body_env(&body, job->array_count ? attempt->job.v - job->array_first : 0,
				    arena),
		.shell_env = body.shell_env,
		.made_from = job_git_env(&body.git, arena),
		.workdir = body.workdir,
		.snapshot = body.snapshot,
		.image = body.image,
		.masked = shape_is_masked(shape_get(facts, job->shape)),
		.overlays = { body.overlays[0], body.overlays[1] },
		.checkpoint_signal = body.checkpoint_signal,
		.checkpoint_every_ms = job->checkpoints ? job->checkpoint_every_ms : 0,
		.simulated_gpus = node_get(facts, task_get(facts, attempt, 0)->node)->simulated,
		.array_size = job->array_count,
		.array_index = job->array_count ? attempt->job.v - job->array_first : 0,
		.place_count = attempt->tasks,
		.places = places_of(facts, attempt, arena),
		.generation = attempt->generation,
		.lacks = attempt->lacks_ms != 0,
		.stopping = attempt->state == ATTEMPT_STOPPING,
		.changes = ranks_change(facts, job),
		.log_cap_bytes = LOG_CAP_BYTES,
	};
	if (job->external && body.pod_count < attempt->tasks)
		return err_set(err, ERR_CORRUPT, "the body of job %u names %u pods for %u tasks",
			       attempt->job.v, body.pod_count, attempt->tasks);
	if (job->external)
		ret->pods = pods_describe(&body, arena);
	else
		roles_describe(facts, attempt, &body, arena, ret);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		ret->member_count += ret->places[rank].member != MEMBER_NONE;
	copy_name(ret->job_name, facts_name(facts, job->name));
	copy_name(ret->user, facts_name(facts, job->user));
	copy_name(ret->team, facts_name(facts, job->team));
	copy_name(ret->queue, facts_name(facts, queue_get(facts, job->queue)->name));
	if (body.checkpoint_path || d->engine_ops->elsewhere)
		ret->checkpoint_dir = body.checkpoint_path;
	else
		ret->checkpoint_dir =
			arena_printf(arena, "%s/checkpoints/%u", d->folder, attempt->job.v);
	ret->tolerates = tolerates_of(facts, job, arena);
	ret->checkpoint_offered = !job->checkpoints;
	if (d->shepherd_calls && (job->checkpoints || body.snapshot)) {
		char *token = arena_alloc(arena, SHEPHERD_TOKEN_MAX);
		shepherd_token(d, id, token);
		ret->pod_token = token;
	}
	ret->resume_path = from->path;
	ret->resume_number = from->number;
	ret->resume_bytes = from->bytes;
	return 0;
}

/* One that was told to stop meanwhile is not: the engine may have it from before a restart, so the command to stop it says what becomes
 * of it. */
static bool is_to_start(const struct facts *facts, uint64_t id)
{
	return attempt_get(facts, (struct attempt_id){ (uint32_t)id })->state == ATTEMPT_PREPARING;
}

/* Answers whether it is to be given again. */
static bool start_from(struct daemon *d, const struct facts *facts, const struct effect *effect)
{
	const uint64_t id = effect->attempt;
	if (!is_to_start(facts, id))
		return false;
	struct arena arena;
	struct err err = { 0 };
	struct engine_start start;
	arena_init(&arena, 256 << 20);
	int result = start_describe(d, facts, id, &effect->from, &arena, &start, &err);
	bool again = result == -(int)ERR_UNAVAILABLE;
	if (result == 0 && effect->from.unknown) /* it can be read by now */
		resume_find(d, id);
	else if (result == 0 && effect->from.away)
		away_tell(d, facts, id, effect->from.number);
	else if (result == 0)
		result = d->engine_ops->start(d->engine, &start, &err);
	if (result == BODY_LOST) {
		const struct attempt *attempt =
			attempt_get(facts, (struct attempt_id){ (uint32_t)id });
		char reason[BODY_TEXT_MAX];
		body_key_hold(d, attempt->job, err.text, reason);
		never_started(d, id, attempt->tasks, ENGINE_CAUSE_LOST, reason);
	}
	if (again && !effect->given_again)
		log_line(LOG_ERROR,
			 "attempt %lu waits for its start, which is tried each second: %s",
			 (unsigned long)id, err.text);
	else if (result < 0 && !again)
		start_failed(d, id, attempt_get(facts, (struct attempt_id){ (uint32_t)id })->tasks,
			     &err);
	arena_deinit(&arena);
	return again;
}

static bool start(struct daemon *d, const struct facts *facts, const struct effect *effect)
{
	const uint64_t id = effect->attempt;
	if (!is_to_start(facts, id) ||
	    !attempt_get(facts, (struct attempt_id){ (uint32_t)id })->resume_number)
		return start_from(d, facts, effect);
	resume_find(d, id);
	return false;
}

/* --- running attempts that become narrower or wider ---- */

/* All of it is said anew from the facts as they are: what was said before is passed over by the engine. So who was told to leave may
 * hear of it first from a later word, and has its whole grace all the same. Where the attempt is to stop by now, the engine says
 * which of the ranks that were to come never will. */
static int resize(struct daemon *d, const struct facts *facts, uint64_t id, int64_t grace_ms,
		  struct err *err)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	if ((attempt->state != ATTEMPT_ACTIVE && attempt->state != ATTEMPT_STOPPING) ||
	    !attempt->generation)
		return 0;
	const struct job *job = job_get(facts, attempt->job);
	const struct checkpoint *checkpoint =
		job->checkpoint ? job_checkpoint(facts, job, 0) : NULL;
	struct arena arena;
	struct engine_start start;
	if (grace_ms == GRACE_OF_JOB)
		grace_ms = job->grace_ms == UINT32_MAX ? facts->policy.grace_ms
						       : (int64_t)job->grace_ms;
	arena_init(&arena, 256 << 20);
	const struct resume_from from = { .path = checkpoint ? checkpoint->path : NULL };
	int result = start_describe(d, facts, id, &from, &arena, &start, err);
	if (result == BODY_LOST)
		result = -(int)err->code;
	if (result == 0)
		result = d->engine_ops->resize(d->engine, &start, grace_ms, err);
	arena_deinit(&arena);
	return result;
}

/* --- commands -------------------------------------------------------------------------------------------------- */

int effects_open_engine(struct daemon *d, struct err *err)
{
	const struct engine_options options = { .folder = d->folder,
						.shepherd_path = d->shepherd,
						.cluster = d->kubernetes,
						.may_write = d->lease ? lease_may_write : NULL,
						.may_write_context = d->lease,
						.instance = d->instance,
						.context = d,
						.report = effects_report,
						.tried = machine_faults_tried,
						.node = nodes_report,
						.nodes = nodes_report_all,
						.gangs = { pods_offer, pods_withdraw, masks_report,
							   masks_report_all } };
	return d->engine_ops->open(&options, &d->engine, err);
}

static bool attempt_is_over(const struct facts *facts, uint64_t id)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	return attempt->state == ATTEMPT_OVER || attempt->state == ATTEMPT_FREE;
}

/* The engine has no trace of an attempt that is to stop: then it is over, and somebody must say so. */
static void stopped_nothing(struct daemon *d, const struct facts *facts, uint64_t id)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	if (!attempt->released_ms) {
		/* Its checkpoint is still being looked at, say. */
		never_started(d, id, attempt->tasks, ENGINE_CAUSE_STOPPED, NOT_STARTED);
		return;
	}
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);
		const struct engine_fact fact = { .kind = ENGINE_GONE,
						  .attempt = id,
						  .rank = rank,
						  .launch = task ? task->launch : 0,
						  .time_ms = clock_wall_ms() };
		effects_report(d, &fact);
	}
}

static int command(struct daemon *d, const struct facts *facts, enum effect_kind kind, uint64_t id,
		   int64_t grace_ms, struct err *err)
{
	switch (kind) {
	case EFFECT_RELEASE: return d->engine_ops->release(d->engine, id, err);
	case EFFECT_WARN: return d->engine_ops->warn(d->engine, id, grace_ms, err);
	case EFFECT_RESIZE: return resize(d, facts, id, grace_ms, err);
	case EFFECT_STOP: break;
	case EFFECT_ADOPT:
	case EFFECT_ADOPT_ANEW:
	case EFFECT_START:
	case EFFECT_START_FROM:
	case EFFECT_FORGET:
	case EFFECT_JOB_OVER:
	case EFFECT_OWN_CAME:
	case EFFECT_PODS_ANSWER:
	case EFFECT_PODS_WHY:
	case EFFECT_PODS_PROMISE:
	case EFFECT_QUIT: return 0;
	}
	if (d->engine_ops->pods)
		pods_disrupted(d, facts, id);
	int result = d->engine_ops->stop(d->engine, id, grace_ms, err);
	if (result < 0 && err->code == ERR_NOT_FOUND && !attempt_is_over(facts, id)) {
		stopped_nothing(d, facts, id);
		return 0;
	}
	return result;
}

/* Refusals are answers: the engine tells by facts what it knows better. */
static bool is_worth_again(const struct err *err)
{
	return err->code != ERR_NOT_FOUND && err->code != ERR_CONFLICT;
}

/* Answers whether it is to be given again. */
static bool command_failed(struct daemon *d, const struct facts *facts, const struct effect *effect)
{
	struct err err = { 0 };
	if (effect->given_again && attempt_is_over(facts, effect->attempt))
		return false;
	int result = command(d, facts, (enum effect_kind)effect->message.kind, effect->attempt,
			     effect->grace_ms, &err);
	bool again = result < 0 && is_worth_again(&err);
	if (again && !effect->given_again)
		log_line(LOG_ERROR, "attempt %lu: %s", (unsigned long)effect->attempt, err.text);
	return again;
}

/* --- after a restart --------------------------------------------------------------------------------------- */

static void command_again(struct daemon *d, const struct facts *facts, uint64_t id)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	int64_t until = attempt_until_ms(facts, attempt),
		left = until > facts->now_ms ? until - facts->now_ms : 0;
	switch ((enum attempt_state)attempt->state) {
	case ATTEMPT_FREE:
	case ATTEMPT_OVER: break;
	case ATTEMPT_PREPARING: effect_send(d, EFFECT_START, id, 0); break;
	case ATTEMPT_ACTIVE:
		effect_send(d, EFFECT_RELEASE, id, 0);
		if (attempt->warned_ms)
			effect_send(d, EFFECT_WARN, id, left);
		if (attempt->generation)
			effect_send(d, EFFECT_RESIZE, id, GRACE_OF_JOB);
		break;
	case ATTEMPT_STOPPING:
		if (attempt->generation)
			effect_send(d, EFFECT_RESIZE, id, 0);
		effect_send(d, EFFECT_STOP, id, left);
		break;
	}
}

static const uint32_t *launches_of(struct daemon *d, const struct facts *facts,
				   const struct attempt *attempt, struct arena *arena)
{
	uint32_t *launches = arena_new_array(arena, uint32_t, attempt->tasks);
	const bool says_left = d->engine_ops->elsewhere && !job_get(facts, attempt->job)->external;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);
		launches[rank] = task ? task->launch : 0;
		if (says_left && task && task->state == TASK_LEFT)
			launches[rank] |= ENGINE_LEFT;
	}
	return launches;
}

/* Behind the facts that the engine has told meanwhile. */
static void adopted_send(struct daemon *d)
{
	struct message *message = calloc(1, sizeof(*message));
	CHECK(message);
	message->kind = CORE_ADOPTED;
	mailbox_send(&d->core_box, message);
}

static void adopt(struct daemon *d, const struct facts *facts)
{
	uint64_t *attempts = calloc(facts->attempts.count + 1, sizeof(*attempts));
	uint32_t *tasks = calloc(facts->attempts.count + 1, sizeof(*tasks));
	const uint32_t **launches = calloc(facts->attempts.count + 1, sizeof(*launches));
	struct arena arena;
	arena_init(&arena, 256 << 20);
	CHECK(attempts && tasks && launches);
	size_t count = 0;
	for (uint32_t id = 1; id <= facts->attempts.count; id++) {
		const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ id });
		if (attempt_is_over(facts, id))
			continue;
		attempts[count] = id;
		launches[count] = launches_of(d, facts, attempt, &arena);
		tasks[count++] = attempt->tasks;
	}
	struct err err = { 0 };
	if (d->engine_ops->pods)
		pods_adopt(d, facts);
	if (d->engine_ops->adopt(d->engine, attempts, tasks, launches, count, &err) < 0)
		log_line(LOG_ERROR, "running work could not be looked through: %s", err.text);
	adopted_send(d);
	for (size_t i = 0; i < count; i++)
		command_again(d, facts, attempts[i]);
	free(attempts);
	free(tasks);
	free(launches);
	arena_deinit(&arena);
	machine_faults_recall(d, facts);
}

static int same_site(struct daemon *d, struct err *err)
{
	struct engine_site site;

	if (!d->kubernetes)
		return 0;
	if (d->engine_ops->site(d->engine, &site, err) < 0)
		return -1;
	if (strcmp(site.cluster, d->engine_site.cluster) == 0 &&
	    strcmp(site.namespace, d->engine_site.namespace) == 0)
		return 0;
	return err_set(err, ERR_CONFLICT,
		       "the kubeconfig leads to another Kubernetes cluster or namespace by now");
}

/* Facts that came while the journal could not be written are lost, and an engine tells each only once: a new one
 * tells all of them, as after a restart of the daemon. Running work does not notice. */
static int engine_open_again(struct daemon *d, struct err *err)
{
	pthread_mutex_lock(&d->engine_swap);
	int result = effects_open_engine(d, err);
	if (result == 0 && same_site(d, err) < 0) {
		d->engine_ops->close(d->engine);
		d->engine = NULL;
		result = -1;
	}
	pthread_mutex_unlock(&d->engine_swap);
	return result;
}

static void engine_anew(struct daemon *d)
{
	struct err err = { 0 };
	pthread_mutex_lock(&d->engine_swap);
	d->engine_ops->close(d->engine);
	d->engine = NULL;
	pthread_mutex_unlock(&d->engine_swap);
	for (bool said = false; engine_open_again(d, &err) < 0; said = true) {
		if (!said)
			log_line(
				LOG_ERROR,
				"the engine could not be opened again, which is tried each second: %s",
				err.text);
		if (atomic_load(&d->ending))
			return;
		sleep(1);
	}
}

/* Every job is offered a checkpoint folder; most put nothing there. What has something in it stays. */
static void remove_empty_folder(struct daemon *d, uint64_t job)
{
	char path[4200];
	snprintf(path, sizeof(path), "%s/checkpoints/%lu", d->folder, (unsigned long)job);
	(void)rmdir(path);
}

/* --- the thread ---------------------------------------------------------------------------------------------- */

/* Answers whether it is to be given again. */
static bool carry_out(struct daemon *d, const struct effect *effect)
{
	bool again = false;
	if (effect->message.kind == EFFECT_START)
		(void)FAILPOINT("effects-before-start");
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	switch ((enum effect_kind)effect->message.kind) {
	case EFFECT_ADOPT_ANEW:
		engine_anew(d);
		if (d->engine)
			adopt(d, facts);
		break;
	case EFFECT_ADOPT: adopt(d, facts); break;
	case EFFECT_START:
		again = start(d, facts, effect);
		(void)FAILPOINT("effects-after-start");
		break;
	case EFFECT_START_FROM: again = start_from(d, facts, effect); break;
	case EFFECT_RELEASE:
		(void)FAILPOINT("effects-before-release");
		again = command_failed(d, facts, effect);
		(void)FAILPOINT("effects-after-release");
		break;
	case EFFECT_WARN:
	case EFFECT_RESIZE:
	case EFFECT_STOP: again = command_failed(d, facts, effect); break;
	case EFFECT_FORGET: d->engine_ops->forget(d->engine, effect->attempt); break;
	case EFFECT_JOB_OVER:
		if (d->engine_ops->pods)
			pods_over(d, facts, effect->attempt);
		else
			remove_empty_folder(d, effect->attempt);
		break;
	case EFFECT_OWN_CAME: again = own_came(d, facts, effect); break;
	case EFFECT_PODS_ANSWER:
		pods_effect(d, effect);
		pods_promise(d, facts, effect->attempt); /* it may have come before the answer */
		break;
	case EFFECT_PODS_WHY: pods_effect(d, effect); break;
	case EFFECT_PODS_PROMISE: pods_promise(d, facts, effect->attempt); break;
	case EFFECT_QUIT: break;
	}
	publication_release(publication);
	return again;
}

/* Answers whether it was the last. */
static bool handle_effect(struct daemon *d, struct effect *effect, struct effects_hand *again)
{
	bool quit = effect->message.kind == EFFECT_QUIT;
	if (atomic_load(&d->ending) || !carry_out(d, effect)) {
		free(effect->path);
		free(effect);
		return quit;
	}
	if (!again->first)
		again->at_ms = clock_boot_ms() + AGAIN_MS;
	effect->given_again = true;
	effect->message.next = again->first;
	again->first = &effect->message;
	return quit;
}

static void give_again(struct daemon *d, struct effects_hand *again)
{
	struct message *message = again->first;
	again->first = NULL;
	while (message) {
		struct effect *effect = (struct effect *)message;
		message = message->next;
		(void)handle_effect(d, effect, again);
	}
}

bool effects_pass(struct daemon *d, struct effects_hand *again, bool wait)
{
	int64_t left_ms = again->first ? again->at_ms - clock_boot_ms() : -1;
	if (again->first && left_ms <= 0) {
		give_again(d, again);
		return true;
	}
	int64_t look_ms = machine_faults_look(d);
	if (look_ms >= 0 && (left_ms < 0 || look_ms < left_ms))
		left_ms = look_ms;
	struct message *message = mailbox_take(&d->engine_box, 1, wait ? left_ms : 0);
	return !message || !handle_effect(d, (struct effect *)message, again);
}

static void *effects_main(void *argument)
{
	struct daemon *d = argument;
	struct effects_hand again = { 0 };
	while (effects_pass(d, &again, true))
		continue;
	give_again(d, &again); /* frees them: the end has come */
	return NULL;
}

void effects_start(struct daemon *d)
{
	thread_start(&d->engine_thread, effects_main, d);
}

void effects_join(struct daemon *d)
{
	effect_send(d, EFFECT_QUIT, 0, 0);
	pthread_join(d->engine_thread, NULL);
}
