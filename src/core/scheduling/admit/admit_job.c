/* SPDX-License-Identifier: Apache-2.0 */
/* A submission: every field in its range, everything it names exists, and critical work inside its guarantee. */
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/apply.h"
#include "core/scheduling/life/interval.h"
#include "core/scheduling/admit/queue_rights.h"
#include "core/scheduling/queues/bounds.h"
#include "core/scheduling/reserve/estimate.h"
#include "core/scheduling/queues/standing.h"

/* --- numbers ----------------------------------------------------------------------------------------- */

int admit_numbers(const struct admission *a, const struct event_job_submitted *e)
{
	const struct {
		const char *what;
		int64_t value, min, max;
	} fields[] = {
		{ "the kind of a job", e->kind, KIND_TRAINING, KIND_INTERACTIVE },
		{ "the tier of a job", e->tier, TIER_BEST_EFFORT, TIER_CRITICAL },
		{ "a priority", e->priority, -PRIORITY_MOST, PRIORITY_MOST },
		{ "the number of tasks", e->tasks_min, 1, TASKS_MAX },
		{ "the greatest number of tasks", e->tasks_max, 1, TASKS_MAX },
		{ "the number of GPUs per task", e->gpus, 0, NODE_GPUS_MAX },
		{ "the GPU memory of a task in MiB", e->gpu_memory_mib, 0, INT32_MAX },
		{ "the processors of a task in thousandths", e->cpu_milli, 0, INT32_MAX },
		{ "the memory of a task in MiB", e->memory_mib, 0, INT32_MAX },
		{ "the run-time limit in ms", e->limit_ms, 0, ADMIT_DURATION_MAX_MS },
		{ "the estimated run time in ms", e->estimate_ms, 0, ADMIT_DURATION_MAX_MS },
		{ "the number of retries", e->retries, 0, 1000 },
		{ "the checkpoint interval in ms", e->checkpoint_every_ms, CHECKPOINT_AUTO,
		  ADMIT_DURATION_MAX_MS },
		{ "the cost of a checkpoint in ms", e->checkpoint_cost_ms, 0,
		  INT64_C(86400) * 1000 },
		{ "the grace time in ms", e->grace_ms, -1, INT64_C(7) * 86400 * 1000 },
		{ "the restart cost in ms", e->restart_cost_ms, 0, INT64_C(7) * 86400 * 1000 },
		{ "the size of an array", e->array_count, 0, ARRAY_MAX },
		{ "the jobs of an array at once", e->array_limit, 0, ARRAY_MAX },
		{ "the least compute capability in tenths", e->min_capability, 0, 1000 },
		{ "resize", e->resize, RESIZE_FREE, RESIZE_RESTART },
		{ "rejoin", e->rejoins, 0, 1 },
		{ "external", e->external, 0, 1 },
		{ "the efficiency in percent", e->efficiency, 0, 100 },
		{ "the part of a GPU in 1/63000", e->gpu_part, 0, GPU_SHARE - !*e->slice },
		{ "the part of a GPU's memory in MiB", e->gpu_part_mib, 0, INT32_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (admit_range(a, fields[i].what, fields[i].value, fields[i].min, fields[i].max) <
		    0)
			return -(int)ERR_INVALID;
	if (e->tasks_max < e->tasks_min)
		return err_set(a->err, ERR_INVALID,
			       "tasks: the greatest number %lld is less than the least %lld",
			       (long long)e->tasks_max, (long long)e->tasks_min);
	return 0;
}

/* --- what it names --------------------------------------------------------------------------------------- */

static int mask_is_there(const struct admission *a, const char *name)
{
	if (!*name || facts_mask_find(a->facts, facts_name_find(a->facts, name)))
		return 0;
	return err_set(a->err, ERR_INVALID, "there is no mask \"%s\" of nodes", name);
}

static int mask_check(const struct admission *a, const struct event_job_submitted *e)
{
	const char *list = e->role_masks;
	char name[NAME_MAX_BYTES + 1];
	int rc = mask_is_there(a, e->mask);

	if (rc == 0)
		rc = mask_is_there(a, e->together);
	while (rc == 0 && list_next(&list, name))
		rc = mask_is_there(a, name);
	return rc;
}

static int level_check(const struct admission *a, const char *what, const char *level)
{
	const char *known = "node, nvlink";
	struct name_id name = facts_name_find(a->facts, level);

	if (!*level || strcmp(level, "node") == 0 || strcmp(level, "nvlink") == 0)
		return 0;
	for (uint32_t i = a->facts->level_count; i-- > 0;) {
		if (name.v && name_same(a->facts->level[i], name))
			return 0;
		known = arena_printf(a->arena, "%s, %s", facts_name(a->facts, a->facts->level[i]),
				     known);
	}
	return err_set(a->err, ERR_INVALID,
		       "topology: %s: there is no level \"%s\" in this cluster; levels are %s",
		       what, level, known);
}

/* How fast each accepted model is; the least that will do says nothing without that. */
static int speeds_check(const struct admission *a, const struct event_job_submitted *e, int models)
{
	for (uint32_t i = 0; i < e->throughput_count; i++)
		if (e->throughput[i] < 1 || e->throughput[i] > SPEED_MOST)
			return err_set(a->err, ERR_INVALID,
				       "throughput: %lld thousandths; it must be between 1 and %d",
				       (long long)e->throughput[i], SPEED_MOST);
	if (e->throughput_count && (int)e->throughput_count != models)
		return err_set(a->err, ERR_INVALID,
			       "throughput: %u figures are given for %d accepted models",
			       e->throughput_count, models);
	if (e->min_throughput && !e->throughput_count)
		return err_set(
			a->err, ERR_INVALID,
			"min_throughput: say with throughput how fast each accepted model is");
	return admit_range(a, "min_throughput in thousandths", e->min_throughput, 0, SPEED_MOST);
}

/* How wide a level is: 1 the widest of the cluster, a node, an island; 0 = none is named. */
static uint32_t level_depth(const struct facts *f, const char *level)
{
	struct name_id name = facts_name_find(f, level);

	if (strcmp(level, "nvlink") == 0)
		return LEVEL_ISLAND;
	if (strcmp(level, "node") == 0)
		return LEVEL_NODE;
	for (uint32_t i = 0; name.v && i < f->level_count; i++)
		if (name_same(f->level[i], name))
			return i + 1;
	return 0;
}

/* Tasks that lie apart in racks do not lie together in one rack, nor on one node. */
static int spread_check(const struct admission *a, const struct event_job_submitted *e)
{
	uint32_t spread = level_depth(a->facts, e->spread),
		 require = level_depth(a->facts, e->require);

	if (spread == LEVEL_ISLAND)
		return err_set(
			a->err, ERR_INVALID,
			"spread: tasks lie apart by node or a wider level of the cluster, not by \"%s\"",
			e->spread);
	if (spread && require >= spread && e->tasks_max > 1)
		return err_set(
			a->err, ERR_INVALID,
			"spread: \"%s\" keeps the tasks apart, and topology: require: \"%s\" keeps them together; "
			"leave one of them out, or require a wider level",
			e->spread, e->require);
	return 0;
}

static int align_check(const struct admission *a, const struct event_job_submitted *e)
{
	int rc = admit_range(a, "align", e->align, ALIGN_NONE, ALIGN_NIC);

	if (rc == 0 && e->align && (!e->gpus || e->gpu_part || e->gpu_part_mib || *e->roles))
		return err_set(
			a->err, ERR_INVALID,
			"align: it is for tasks with whole GPUs, all alike, beside which their processors are to be");
	return rc;
}

static int apart_check(const struct admission *a, const struct event_job_submitted *e)
{
	if ((e->apart_wish || *e->apart_level) && !*e->apart_from)
		return err_set(a->err, ERR_INVALID,
			       "apart_from: name the labels of the jobs that it keeps away from");
	if (level_depth(a->facts, e->apart_level) == LEVEL_ISLAND)
		return err_set(
			a->err, ERR_INVALID,
			"apart_level: jobs keep apart by node or a wider level of the cluster, not by \"%s\"",
			e->apart_level);
	return 0;
}

/* The core keeps a window as a name: it is cut nowhere. */
static int window_check(const struct admission *a, const struct event_job_submitted *e)
{
	struct calendar calendar;
	struct err why;
	int rc = admit_range(a, "window_end", e->window_end, 0, 1);

	if (rc < 0)
		return rc;
	if (e->window_end && !*e->window)
		return err_set(a->err, ERR_INVALID,
			       "window_end: it says what happens when a `window` closes; give one");
	if (strlen(e->window) > NAME_MAX_BYTES)
		return err_set(a->err, ERR_TOO_LARGE, "window: more than %d characters",
			       NAME_MAX_BYTES);
	if (calendar_read(a->facts, e->window, &calendar, &why) < 0)
		return err_set(a->err, why.code, "window: %s", why.text);
	return 0;
}

/* A whole array to depend on: all its jobs are known, and none has ended without success. */
static int whole_check(const struct admission *a, uint32_t first)
{
	const struct depend depend = { .job = first, .whole = 1 };
	const struct job *job = job_get(a->facts, (struct job_id){ first });
	uint32_t dead;

	if (job->array_first != first)
		return err_set(a->err, ERR_INVALID,
			       "job %u, which this one depends on as on an array, is none", first);
	if (((const struct body *)table_get(&a->facts->bodies, job->body))->jobs !=
	    job->array_count)
		return err_set(
			a->err, ERR_NOT_FOUND,
			"jobs of array %u, on which this one depends, ended long ago, so that whether they succeeded is not known here any more",
			first);
	dead = depend_dead(a->facts, &depend);
	return dead ? err_set(a->err, ERR_CONFLICT,
			      "job %u of array %u \"%s\", which this one depends on, has ended as %s",
			      dead, first, facts_name(a->facts, job->name),
			      job_state_name(job_get(a->facts, (struct job_id){ dead })->state))
		    : 0;
}

static int depends_check(const struct admission *a, const struct event_job_submitted *e)
{
	if (e->depends_count > DEPENDS_MAX)
		return err_set(a->err, ERR_INVALID,
			       "%u jobs to depend on are given; the limit is %d", e->depends_count,
			       DEPENDS_MAX);
	for (uint32_t i = 0; i < e->depends_count; i++) {
		const struct job *job;

		if (e->depends[i] < 1 || e->depends[i] > (int64_t)a->facts->jobs.count)
			return err_set(a->err, ERR_NOT_FOUND,
				       "job %lld, which this one depends on, does not exist",
				       (long long)e->depends[i]);
		if (!job_is_there(a->facts, e->depends[i]))
			return err_set(
				a->err, ERR_NOT_FOUND,
				"job %lld, which this one depends on, ended long ago or its record was lost, so that whether it succeeded is not known here any more: see `fairlead job %lld`, and submit without it",
				(long long)e->depends[i], (long long)e->depends[i]);
		job = job_get(a->facts, (struct job_id){ (uint32_t)e->depends[i] });
		if (i < e->depends_whole_count && e->depends_whole[i] &&
		    whole_check(a, (uint32_t)e->depends[i]) < 0)
			return -(int)a->err->code;
		if (job_state_is_final(job->state) && job->state != JOB_SUCCEEDED)
			return err_set(
				a->err, ERR_CONFLICT,
				"job %lld \"%s\", which this one depends on, has ended as %s",
				(long long)e->depends[i], facts_name(a->facts, job->name),
				job_state_name(job->state));
		for (uint32_t k = 0; k < i; k++)
			if (e->depends[k] == e->depends[i])
				return err_set(a->err, ERR_INVALID,
					       "job %lld to depend on is named twice",
					       (long long)e->depends[i]);
	}
	return 0;
}

static int names_check(const struct admission *a, const struct event_job_submitted *e)
{
	int rc = admit_name(a, "job", e->name);

	if (rc == 0)
		rc = admit_text(a, "the user", e->user);
	if (rc == 0 && *e->project)
		rc = admit_name(a, "project", e->project);
	if (rc == 0)
		rc = admit_names(a, "model", e->models, SHAPE_MODELS_MAX, false);
	if (rc >= 0)
		rc = speeds_check(a, e, rc);
	if (rc == 0)
		rc = admit_version(a, "min_driver", e->min_driver);
	if (rc == 0)
		rc = admit_version(a, "min_cuda", e->min_cuda);
	if (rc == 0)
		rc = admit_names(a, "region", e->regions, SHAPE_REGIONS_MAX, false);
	if (rc >= 0)
		rc = admit_labels(a, "label", e->labels, SHAPE_LABELS_MAX, true);
	if (rc == 0)
		rc = admit_labels(a, "taint to tolerate", e->tolerates, SHAPE_LABELS_MAX, false);
	if (rc == 0)
		rc = admit_labels(a, "data set", e->data, SHAPE_DATA_MAX, false);
	if (rc == 0)
		rc = mask_check(a, e);
	if (rc == 0)
		rc = level_check(a, "require", e->require);
	if (rc == 0)
		rc = level_check(a, "prefer", e->prefer);
	if (rc == 0)
		rc = level_check(a, "spread", e->spread);
	if (rc == 0)
		rc = spread_check(a, e);
	if (rc == 0)
		rc = admit_slowdown(a, e);
	if (rc == 0)
		rc = align_check(a, e);
	if (rc == 0)
		rc = window_check(a, e);
	if (rc == 0)
		rc = apart_check(a, e);
	if (rc == 0)
		rc = depends_check(a, e);
	if (rc < 0)
		return rc;
	if (*e->team && !facts_team_find(a->facts, e->team))
		return err_set(a->err, ERR_NOT_FOUND, "team \"%s\" does not exist", e->team);
	return 0;
}

/* --- guarantee -------------------------------------------------------------------------------------------- */

/* What the queue promises of the models that the job accepts, at most: a gang runs on one of them. */
static int64_t pledge_most(const struct facts *f, const struct queue *queue,
			   const struct event_job_submitted *e)
{
	char part[NAME_MAX_BYTES + 1];
	const char *list = e->models;
	int64_t most = 0;

	for (int i = 0; !*list && i < QUEUE_MODELS_MAX; i++)
		if (queue->guarantee_model_share[i] > most)
			most = queue->guarantee_model_share[i];
	while (list_next(&list, part)) {
		int index = models_index(f, queue->guarantee_model, facts_name_find(f, part));

		if (index >= 0 && queue->guarantee_model_share[index] > most)
			most = queue->guarantee_model_share[index];
	}
	return most;
}

/* A part of one GPU: by its share or by its memory. */
static int part_check(const struct admission *a, const struct event_job_submitted *e)
{
	if ((e->gpu_part || e->gpu_part_mib) && e->gpus != 1)
		return err_set(a->err, ERR_INVALID,
			       "gpus: a task takes a part of one GPU, not of %lld",
			       (long long)e->gpus);
	if (e->gpu_part && e->gpu_part_mib)
		return err_set(a->err, ERR_INVALID,
			       "gpus: a part of a GPU is a share of it or an amount of its memory, "
			       "not both");
	if (e->gpu_part_mib && submission_exceeds_part(e))
		return err_set(a->err, ERR_INVALID,
			       "vram: each task needs %lld MiB, but asks for %lld MiB of a GPU",
			       (long long)e->gpu_memory_mib, (long long)e->gpu_part_mib);
	return 0;
}

/* What a task holds at most: on the smallest GPUs of the cluster that are large enough. */
static int64_t task_share_most(const struct facts *f, const struct event_job_submitted *e)
{
	const struct shape shape = { .gpu_part_mib = (uint32_t)e->gpu_part_mib };
	int64_t most = 0;

	if (!e->gpu_part_mib)
		return e->gpu_part ? e->gpu_part : e->gpus * GPU_SHARE;
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		int64_t share = node->state == NODE_GONE
					? 0
					: shape_part(&shape, node->gpu_memory_mib).share;

		most = share > most ? share : most;
	}
	return most;
}

int admit_critical(const struct admission *a, const struct event_job_submitted *e,
		   struct queue_id queue)
{
	int64_t need, guarantee;

	if (e->tier != TIER_CRITICAL || a->facts->policy.allow_critical_burst)
		return 0;
	need = *e->roles ? submission_gpus(e) * GPU_SHARE
			 : e->tasks_min * task_share_most(a->facts, e);
	guarantee = queue_get(a->facts, queue)->guarantee_model[0].v
			    ? pledge_most(a->facts, queue_get(a->facts, queue), e)
			    : queue_guarantee(a->facts, queue);
	if (need <= guarantee)
		return 0;
	return err_set(
		a->err, ERR_QUOTA,
		"critical job asks for %s GPU%s, but queue \"%s\" guarantees %s%s: use tier standard, or ask an admin to "
		"raise the guarantee",
		share_text(a->arena, need), need == GPU_SHARE ? "" : "s", e->queue,
		share_text(a->arena, guarantee),
		queue_get(a->facts, queue)->guarantee_model[0].v ? " of the models it accepts"
								 : "");
}

/* --- the same submission again -------------------------------------------------------------------------------- */

static int key_check(const struct admission *a, const struct event_job_submitted *e)
{
	uint8_t key[32], mac[32];
	const struct body *body;
	struct job_id job;

	if (!*e->client_key)
		return 0;
	if (!hex_parse(e->client_key, key) || !hex_parse(e->body_mac, mac))
		return err_set(
			a->err, ERR_INVALID,
			"the client key or the MAC of the body is not 64 hexadecimal digits");
	job = facts_key_find(a->facts, key);
	if (!job.v || job_get(a->facts, job)->submitted_ms + CLIENT_KEY_MS < a->facts->now_ms)
		return 0;
	body = table_get(&a->facts->bodies, job_get(a->facts, job)->body);
	if (memcmp(body->mac, mac, sizeof(mac)) != 0)
		return err_set(
			a->err, ERR_CONFLICT,
			"this client key was used for job %u with another content; use a new key for a new job",
			job.v);
	if (a->ret_job)
		*a->ret_job = job.v;
	return CORE_ALREADY;
}

/* Asked only where nothing is declared: a person's word goes before that of other jobs. */
int64_t admit_likely_ms(const struct facts *f, const struct event_job_submitted *e)
{
	const struct like_wish wish = { e->user, e->name, e->queue, (uint32_t)submission_gpus(e),
					e->program };

	return e->limit_ms || e->estimate_ms ? 0 : estimate_new_ms(f, &wish);
}

/* A small one is a time from now. */
int admit_deadline(const struct admission *a, struct event_job_submitted *e)
{
	if (e->deadline_ms < 0)
		return err_set(a->err, ERR_INVALID, "the deadline lies before 1970");
	if (e->deadline_ms && e->deadline_ms < ADMIT_DURATION_MAX_MS)
		e->deadline_ms += a->now_ms;
	else if (e->deadline_ms && e->deadline_ms <= a->now_ms)
		return err_set(
			a->err, ERR_INVALID,
			"the deadline is past already; give a later one, or none to run it all the same");
	return 0;
}

/* Spot nodes are for work that goes on from where it was when one is taken away, and never for what people wait for. */
int admit_capacity(const struct admission *a, struct event_job_submitted *e)
{
	const bool may = e->checkpoint && e->tier != TIER_CRITICAL &&
			 (e->kind == KIND_TRAINING || e->kind == KIND_BATCH);

	if (admit_range(a, "capacity", e->capacity, CAPACITY_NOT_SAID, CAPACITY_ANY) < 0)
		return -(int)ERR_INVALID;
	if (!e->capacity && may && e->kind == KIND_TRAINING)
		e->capacity = CAPACITY_ANY;
	if (e->capacity <= CAPACITY_ON_DEMAND || may)
		return 0;
	return err_set(
		a->err, ERR_INVALID,
		"capacity: \"%s\" may put it on spot nodes, which are taken away at any time: that is for "
		"training and batch jobs that make checkpoints and are not critical; say what it saves "
		"(checkpoint), or capacity: on-demand",
		capacity_name((uint8_t)e->capacity));
}

/* The user may have been removed, and the name used again, since the request came in. */
static int owner_check(const struct admission *a, const struct event_job_submitted *e)
{
	if (!e->owner || e->owner == (int64_t)facts_user_find(a->facts, e->user))
		return 0;
	return err_set(a->err, ERR_FORBIDDEN,
		       "job \"%s\": user \"%s\", who submitted it, was removed; "
		       "ask an admin to make the user again",
		       e->name, e->user);
}

/* Jobs of the user of this name that wait in the queue and below it. */
static int64_t waiting_in(const struct facts *f, const struct name *name, struct queue_id queue)
{
	int64_t jobs = 0;

	for (uint32_t row = name->waiting; row;) {
		const struct waiting *w = table_get(&f->waitings, row);

		if (queue_is_below(f, (struct queue_id){ w->queue }, queue))
			jobs += w->jobs;
		row = w->next;
	}
	return jobs;
}

/* Of what the queue and those above it state. *ret_most: the largest of it, which the limit of all queues together must not undercut. */
static int waiting_stated_check(const struct admission *a, const struct event_job_submitted *e,
				const struct name *name, int64_t jobs, int64_t *ret_most)
{
	const struct facts *f = a->facts;
	struct queue_id queue = facts_queue_find(f, e->queue);

	for (*ret_most = WAITING_JOBS_MAX; queue.v; queue = queue_get(f, queue)->parent) {
		const struct queue *q = queue_get(f, queue);
		const int64_t waiting = q->user_waiting ? waiting_in(f, name, queue) : 0;

		*ret_most = q->user_waiting > *ret_most ? q->user_waiting : *ret_most;
		if (!q->user_waiting || waiting + jobs <= q->user_waiting)
			continue;
		return err_set(
			a->err, ERR_QUOTA,
			"job \"%s\": user \"%s\" has %lld jobs waiting in queue \"%s\", and %lld more would exceed its limit of %u per user; wait until some have started, cancel some, or ask %s to raise it (fairlead queues change %s --user-waiting)",
			e->name, e->user, (long long)waiting, facts_name(f, q->name),
			(long long)jobs, q->user_waiting, rights_who(f, queue, a->arena),
			facts_name(f, q->name));
	}
	return 0;
}

int admit_waiting_move(const struct admission *a, const char *what, const struct job *job,
		       struct queue_id queue)
{
	const struct facts *f = a->facts;
	const uint32_t user = facts_user_find(f, facts_name(f, job->user));
	const struct name *name = table_get(&f->names, job->user.v);

	if (!user || ((const struct user *)table_get(&f->users, user))->role == ROLE_ADMIN)
		return 0;
	for (; queue.v && !queue_is_below(f, job->queue, queue);
	     queue = queue_get(f, queue)->parent) {
		const struct queue *q = queue_get(f, queue);

		if (!q->user_waiting || waiting_in(f, name, queue) < q->user_waiting)
			continue;
		return err_set(
			a->err, ERR_QUOTA,
			"%s: user \"%s\" has as many jobs waiting in queue \"%s\" as its limit per user, %u, allows; wait until some have started, or ask %s to raise it (fairlead queues change %s --user-waiting)",
			what, facts_name(f, job->user), facts_name(f, q->name), q->user_waiting,
			rights_who(f, queue, a->arena), facts_name(f, q->name));
	}
	return 0;
}

/* Of what one user has waiting. Admins are exempt: they could lift the limit for themselves. */
static int waiting_check(const struct admission *a, const struct event_job_submitted *e)
{
	const uint32_t user = e->owner ? facts_user_find(a->facts, e->user) : 0;
	const int64_t jobs = e->array_count > 1 ? e->array_count : 1;
	const struct name *name;
	int64_t most;

	if (!user || ((const struct user *)table_get(&a->facts->users, user))->role == ROLE_ADMIN)
		return 0;
	name = table_get(&a->facts->names, facts_name_find(a->facts, e->user).v);
	if (waiting_stated_check(a, e, name, jobs, &most) < 0)
		return -(int)a->err->code;
	if (name->waiting_jobs + jobs > most)
		return err_set(
			a->err, ERR_QUOTA,
			"job \"%s\": user \"%s\" has %u jobs waiting, and %lld more would exceed %lld; "
			"wait until some have started, cancel some, or ask an admin to submit",
			e->name, e->user, name->waiting_jobs, (long long)jobs, (long long)most);
	if (name->waiting_bytes + e->body_bytes > WAITING_BYTES_MAX)
		return err_set(
			a->err, ERR_QUOTA,
			"job \"%s\": the waiting jobs of user \"%s\" have %lld KiB of commands, scripts and "
			"variables, and %lld KiB more would exceed %d MiB; keep scripts and data in files, "
			"submit an array, or wait until some have started",
			e->name, e->user, (long long)(name->waiting_bytes >> 10),
			(long long)((e->body_bytes + 1023) >> 10), WAITING_BYTES_MAX >> 20);
	return 0;
}

/*
 * The tier and priority that the user may have there. The priority of pods counts as far as the queue admits it: a class of the cluster
 * says nothing of a right here, and refused pods would run nowhere. Without users there are no rights (scenarios).
 */
static int queue_admits_check(const struct admission *a, struct event_job_submitted *e,
			      struct queue_id queue)
{
	const char *what = arena_printf(a->arena, "job \"%s\"", e->name);
	const uint32_t user =
		e->external && a->facts->users.count ? RIGHTS_STRANGER : (uint32_t)e->owner;
	const int64_t most = rights_priority_most(a->facts, user, queue);
	int rc = rights_tier(a, what, user, queue, e->tier);

	if (rc < 0)
		return rc;
	if (e->external && e->priority > most)
		e->priority = most;
	return rights_priority(a, what, user, queue, INT64_MIN, e->priority);
}

int admit_wish(const struct admission *a, struct event_job_submitted *e)
{
	int rc = admit_slice(a, e);

	if (rc == 0)
		rc = admit_roles(a, e);
	if (rc == 0)
		rc = admit_numbers(a, e);
	if (rc == 0)
		rc = part_check(a, e);
	return rc == 0 ? names_check(a, e) : rc;
}

void admit_interval(const struct admission *a, struct event_job_submitted *e)
{
	struct interval interval;

	if (e->checkpoint_every_ms != CHECKPOINT_AUTO)
		return;
	interval_choose(a->facts, e, &interval);
	e->checkpoint_every_ms = interval.every_ms;
}

int admit_job_submitted(const struct admission *a, struct event_job_submitted *e)
{
	struct queue_id queue;
	int rc = key_check(a, e);

	if (rc)
		return rc;
	e->tasks_min = e->tasks_min ? e->tasks_min : 1;
	e->tasks_max = e->tasks_max ? e->tasks_max : e->tasks_min;
	rc = admit_wish(a, e);
	if (rc == 0)
		rc = owner_check(a, e);
	if (rc == 0)
		rc = waiting_check(a, e);
	if (rc < 0)
		return rc;
	if (e->array_count <= 1)
		e->array_limit = 0;
	queue = admit_queue_find(a, e->queue);
	if (!queue.v)
		return -(int)ERR_NOT_FOUND;
	rc = queue_admits_check(a, e, queue);
	if (rc == 0)
		rc = admit_critical(a, e, queue);
	if (rc == 0)
		rc = admit_deadline(a, e);
	if (rc == 0)
		rc = admit_capacity(a, e);
	if (rc < 0)
		return rc;
	admit_slowdown_default(a, e);
	e->likely_ms = admit_likely_ms(a->facts, e);
	admit_interval(a, e);
	e->job = (int64_t)a->facts->jobs.count + 1;
	if (e->job + (e->array_count ? e->array_count : 1) >= UINT32_MAX)
		return err_set(a->err, ERR_UNAVAILABLE, "every job number has been used");
	if (a->ret_job)
		*a->ret_job = (uint32_t)e->job;
	return 0;
}
