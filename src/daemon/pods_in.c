/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gangs of pods that others made become jobs: submitted by the way of any command, with the key of the offer as client key, so that a gang
 * that is offered again is the job that it was. Whose it is follows from the namespace:
 *
 *	user	named as the namespace
 *	team	named as the namespace where there is one, else `default`
 *	queue	as the pods say, else named as the namespace where there is one, else `default`; of a queue that is a team's, only of that team
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "base/log.h"
#include "daemon/state.h"

struct offered {
	struct daemon *daemon;
	char key[ENGINE_KEY_MAX];
};

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void effect_send(struct daemon *d, enum effect_kind kind, uint64_t job, const char *key,
			bool flag, const char *text)
{
	struct effect *effect = calloc(1, sizeof(*effect));

	CHECK(effect);
	effect->message.kind = (int)kind;
	effect->attempt = job;
	effect->flag = flag;
	effect->path = strdup(text);
	CHECK(effect->path);
	snprintf(effect->key, sizeof(effect->key), "%s", key);
	mailbox_send(&d->engine_box, &effect->message);
}

void pods_effect(struct daemon *d, const struct effect *effect)
{
	const struct engine_pod_ops *ops = d->engine_ops->pods;

	if (!ops || !d->engine)
		return;
	if (effect->message.kind == EFFECT_PODS_ANSWER)
		ops->answer(d->engine, effect->key, effect->attempt, effect->flag, effect->path);
	else
		ops->why(d->engine, effect->attempt, effect->flag, effect->path);
}

static void over_text(const struct facts *facts, uint32_t id, char *out, size_t room)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	const char *reason = facts_text(facts, job->reason);

	snprintf(
		out, room,
		"job %u of these pods is over (%s%s%s), and they are not placed any more; delete them where others are to be made in their place",
		id, job_state_name(job->state), *reason ? ": " : "", reason);
}

static void submitted(void *context, const struct command_reply *reply)
{
	struct offered *offered = context;
	struct daemon *d = offered->daemon;
	char text[ENGINE_POD_TEXT_MAX] = "";
	bool over = false;

	if (reply->err.code != ERR_NONE) {
		effect_send(d, EFFECT_PODS_ANSWER, 0, offered->key, false, reply->err.text);
	} else {
		struct publication *publication = publication_get(d);
		const struct facts *facts = &publication->frozen.facts;

		over = reply->already && job_is_there(facts, reply->job) &&
		       job_state_is_final(job_get(facts, (struct job_id){ reply->job })->state);
		if (over)
			over_text(facts, reply->job, text, sizeof(text));
		publication_release(publication);
		effect_send(d, EFFECT_PODS_ANSWER, reply->job, offered->key, over, text);
	}
	free(offered);
}

/* --- offers ------------------------------------------------------------------------------------------------------- */

static bool tier_read(const char *text, int64_t *ret)
{
	static const char *const names[] = { "best-effort", "standard", "critical" };

	*ret = TIER_STANDARD;
	if (!*text)
		return true;
	for (int64_t i = TIER_BEST_EFFORT; i <= TIER_CRITICAL; i++)
		if (strcmp(text, names[i]) == 0) {
			*ret = i;
			return true;
		}
	return false;
}

static int queue_choose(const struct facts *facts, const struct engine_gang *gang,
			struct event_job_submitted *e, struct err *err)
{
	const char *name = *gang->queue                                 ? gang->queue
			   : facts_queue_find(facts, gang->namespace).v ? gang->namespace
									: "default";
	struct queue_id id = facts_queue_find(facts, name);
	const char *team;

	e->team = facts_team_find(facts, gang->namespace) ? gang->namespace : "default";
	e->queue = name;
	if (!id.v)
		return err_set(
			err, ERR_NOT_FOUND,
			"there is no queue \"%s\": `fairlead queues create %s` makes it, or let the pod's fairlead.dev/queue name another; this is looked at again every ten seconds",
			name, name);
	team = facts_name(facts, queue_get(facts, id)->team);
	if (*team && strcmp(team, e->team) != 0)
		return err_set(
			err, ERR_FORBIDDEN,
			"queue \"%s\" is for team \"%s\", and namespace \"%s\" is not of that team",
			name, team, gang->namespace);
	return 0;
}

/* Pods of unlike requests are roles, in the order of their ranks. */
static void tasks_fill(const struct engine_gang *gang, struct event_job_submitted *e,
		       int64_t numbers[ENGINE_GANG_ROLES * ROLE_NUMBERS])
{
	static const char *const names[] = {
		"a",         "a,b",         "a,b,c",         "a,b,c,d",
		"a,b,c,d,e", "a,b,c,d,e,f", "a,b,c,d,e,f,g", "a,b,c,d,e,f,g,h"
	};

	e->tasks_min = e->tasks_max = gang->pod_count;
	if (gang->role_count == 1) {
		e->gpus = gang->roles[0].gpus;
		e->cpu_milli = gang->roles[0].cpu_milli;
		e->memory_mib = gang->roles[0].memory_mib;
		return;
	}
	memset(numbers, 0, sizeof(*numbers) * ENGINE_GANG_ROLES * ROLE_NUMBERS);
	for (uint32_t i = 0; i < gang->role_count; i++) {
		int64_t *of = &numbers[(size_t)i * ROLE_NUMBERS];

		of[ROLE_TASKS_MIN] = of[ROLE_TASKS_MAX] = gang->roles[i].size;
		of[ROLE_GPUS] = gang->roles[i].gpus;
		of[ROLE_CPU_MILLI] = gang->roles[i].cpu_milli;
		of[ROLE_MEMORY_MIB] = gang->roles[i].memory_mib;
	}
	e->roles = names[gang->role_count - 1];
	e->role_numbers = numbers;
	e->role_numbers_count = gang->role_count * ROLE_NUMBERS;
}

static int gang_check(const struct engine_gang *gang, int64_t *ret_tier, struct err *err)
{
	if (!tier_read(gang->tier, ret_tier))
		return err_set(err, ERR_INVALID,
			       "tier \"%s\" is none of best-effort, standard, critical",
			       gang->tier);
	if (gang->pod_count > TASKS_MAX)
		return err_set(err, ERR_INVALID, "a gang of %u pods; the most is %d",
			       gang->pod_count, TASKS_MAX);
	for (uint32_t i = 0; i < gang->role_count; i++)
		if (gang->roles[i].gpus > NODE_GPUS_MAX)
			return err_set(err, ERR_INVALID, "%lld GPUs for one pod; the most is %d",
				       (long long)gang->roles[i].gpus, NODE_GPUS_MAX);
	return 0;
}

static void gang_submit(struct daemon *d, const struct engine_gang *gang,
			struct event_job_submitted *e, struct event *event)
{
	struct offered *offered = calloc(1, sizeof(*offered));
	struct job_pod *pods = calloc(gang->pod_count, sizeof(*pods));
	AUTO_BUF body = BUF_INIT;
	struct command *command;

	CHECK(offered && pods);
	for (uint32_t i = 0; i < gang->pod_count; i++)
		pods[i] = (struct job_pod){ gang->pods[i].namespace, gang->pods[i].name,
					    gang->pods[i].uid };
	offered->daemon = d;
	snprintf(offered->key, sizeof(offered->key), "%s", gang->key);
	job_body_pods(pods, gang->pod_count, &body);
	free(pods);
	e->client_key = e->body_mac = gang->key; /* the same pods are the same job */
	command = command_create(event, body.data, body.size);
	command->context = offered;
	command->done = submitted;
	command->patient = true;
	d->backend.send(d->backend.context, command);
}

void pods_offer(void *daemon, const struct engine_gang *gang)
{
	struct daemon *d = daemon;
	struct publication *publication = publication_get(d);
	struct event event = event_make(EVENT_JOB_SUBMITTED, 0, "engine");
	struct event_job_submitted *e = &event.job_submitted;
	int64_t numbers[ENGINE_GANG_ROLES * ROLE_NUMBERS];
	char name[NAME_MAX_BYTES + 1];
	struct err err = { 0 };
	int rc = gang_check(gang, &e->tier, &err);

	if (rc == 0)
		rc = queue_choose(&publication->frozen.facts, gang, e, &err);
	snprintf(name, sizeof(name), "%s", gang->name);
	e->name = name;
	e->user = gang->namespace;
	e->kind = KIND_TRAINING;
	e->priority = gang->priority;
	e->preempts = gang->preempts;
	e->labels = gang->labels;
	e->tolerates = gang->tolerates;
	e->require = gang->require;
	e->prefer = gang->prefer;
	e->spread = gang->apart;
	e->mask = gang->mask;
	e->external = 1;
	e->uid = e->gid = -1;
	e->grace_ms = 0; /* what a pod is given to end well is its own matter */
	tasks_fill(gang, e, numbers);
	if (rc == 0)
		gang_submit(d, gang, e, &event);
	else
		effect_send(d, EFFECT_PODS_ANSWER, 0, gang->key, false, err.text);
	publication_release(publication);
}

/* --- withdrawals ---------------------------------------------------------------------------------------------------- */

static void withdrawn(void *context, const struct command_reply *reply)
{
	(void)context; /* what was not taken comes again */
	(void)reply;
}

void pods_withdraw(void *daemon, uint64_t job, const char *why)
{
	struct daemon *d = daemon;
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	struct event event = event_make(EVENT_JOB_CANCEL_ASKED, 0, "engine");
	struct command *command;

	if (job_is_there(facts, (int64_t)job) &&
	    !job_state_is_final(job_get(facts, (struct job_id){ (uint32_t)job })->state)) {
		event.job_cancel_asked.job = (int64_t)job;
		event.job_cancel_asked.reason = why;
		command = command_create(&event, NULL, 0);
		command->done = withdrawn;
		d->backend.send(d->backend.context, command);
	} else {
		effect_send(d, EFFECT_JOB_OVER, job, "", false, "");
	}
	publication_release(publication);
}

/* --- places and ends --------------------------------------------------------------------------------------------------- */

void pods_promise(struct daemon *d, const struct facts *facts, uint64_t job)
{
	const struct engine_pod_ops *ops = d->engine_ops->pods;
	const struct job *of;
	const char **nodes;
	uint32_t count = 0;

	if (!ops || !d->engine || !job_is_there(facts, (int64_t)job) ||
	    !job_get(facts, (struct job_id){ (uint32_t)job })->external)
		return;
	of = job_get(facts, (struct job_id){ (uint32_t)job });
	if (!of->promise) {
		ops->promised(d->engine, job, NULL, 0);
		return;
	}
	nodes = calloc(TASKS_MAX, sizeof(*nodes));
	CHECK(nodes);
	for (uint32_t row = of->promise; row && count < TASKS_MAX;) {
		const struct promise *promise = table_get(&facts->promises, row);

		if (!promise->victim)
			nodes[count++] = facts_name(
				facts, node_get(facts, (struct node_id){ promise->node })->name);
		row = promise->next;
	}
	ops->promised(d->engine, job, nodes, count);
	free(nodes);
}

/* A person's word, a limit, or an end of its own are no disruption. */
void pods_disrupted(struct daemon *d, const struct facts *facts, uint64_t id)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	enum stop_why why = (enum stop_why)attempt->why;
	char text[ENGINE_POD_TEXT_MAX];

	if (!d->engine || attempt->state == ATTEMPT_FREE ||
	    !job_get(facts, attempt->job)->external ||
	    (why != STOP_EVICTED && why != STOP_MOVED && why != STOP_NODE))
		return;
	if (why == STOP_NODE)
		snprintf(text, sizeof(text),
			 "Fairlead stops it, for its node is drained or failed");
	else if (attempt->for_job)
		snprintf(text, sizeof(text), "Fairlead stops it to make room for job %u (%s)",
			 attempt->for_job,
			 facts_name(facts,
				    job_get(facts, (struct job_id){ attempt->for_job })->name));
	else
		snprintf(text, sizeof(text), "Fairlead stops it to make room for other work");
	d->engine_ops->pods->disrupted(d->engine, id, why != STOP_NODE, text);
}

/* --- after a restart, and at the end ---------------------------------------------------------------------------------- */

/* Answers whether it is to be done again: the store did not answer. */
static bool adopt_one(struct daemon *d, const struct facts *facts, struct job_id id, bool said,
		      struct arena *arena)
{
	const struct job *job = job_get(facts, id);
	const struct attempt *attempt = job->attempt.v ? attempt_get(facts, job->attempt) : NULL;
	struct buf text = BUF_INIT;
	struct job_body body = { 0 };
	struct engine_pod *pods;
	struct err err = { 0 };
	int rc = d->backend.body(d, facts, id, &text, &err);
	bool again = rc == -(int)ERR_UNAVAILABLE;

	if (rc == 0)
		rc = job_body_parse(text.data, text.size, arena, &body, &err);
	buf_deinit(&text);
	if (rc < 0 || (attempt && attempt->tasks > body.pod_count)) {
		if (!said)
			log_line(LOG_ERROR, "the pods of job %u are not known: %s", id.v, err.text);
		return again;
	}
	pods = arena_new_array(arena, struct engine_pod, body.pod_count);
	for (uint32_t rank = 0; rank < body.pod_count; rank++) {
		const struct task *task =
			attempt && rank < attempt->tasks ? task_get(facts, attempt, rank) : NULL;

		pods[rank] = (struct engine_pod){ .namespace = body.pods[rank].namespace,
						  .name = body.pods[rank].name,
						  .uid = body.pods[rank].uid };
		pods[rank].node = task ? facts_name(facts, node_get(facts, task->node)->name) : "";
		pods[rank].over = task && task->state >= TASK_EXITED;
		pods[rank].started = task && task->was_started;
		pods[rank].gpu_mask = task ? task->gpu_mask : 0;
	}
	d->engine_ops->pods->adopt(d->engine, id.v, job->attempt.v,
				   facts_name(facts, shape_get(facts, job->shape)->mask), pods,
				   body.pod_count);
	return false;
}

/*
 * Waits for a store that does not answer: a pod that the engine does not know yet would be offered as a new job.
 */
void pods_adopt(struct daemon *d, const struct facts *facts)
{
	struct arena arena;
	bool said = false;

	arena_init(&arena, 256 << 20);
	for (uint32_t id = 1; id <= facts->jobs.count && !atomic_load(&d->ending); id++) {
		const struct job *job;

		if (!job_is_there(facts, id))
			continue;
		job = job_get(facts, (struct job_id){ id });
		if (job_state_is_final(job->state))
			continue;
		while ((job->external ? adopt_one(d, facts, (struct job_id){ id }, said, &arena)
				      : own_tell(d, facts, id, said)) &&
		       !atomic_load(&d->ending)) {
			said = true;
			sleep(1);
		}
		if (job->external && !job->attempt.v)
			pods_promise(d, facts, id);
		arena_reset(&arena);
	}
	arena_deinit(&arena);
}

void pods_over(struct daemon *d, const struct facts *facts, uint64_t job)
{
	char text[ENGINE_POD_TEXT_MAX] = "";

	if (!d->engine || !job_is_there(facts, (int64_t)job) ||
	    (!job_get(facts, (struct job_id){ (uint32_t)job })->external &&
	     !own_is_masked(facts, (uint32_t)job)))
		return;
	over_text(facts, (uint32_t)job, text, sizeof(text));
	d->engine_ops->pods->job_over(d->engine, job, text);
}
