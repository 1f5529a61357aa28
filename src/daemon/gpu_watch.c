/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at this machine's real GPUs while the daemon runs.
 *
 * Each second, as long as tasks run that have a part of a GPU with a bound of memory: what their processes have of it, as the driver tells. A
 * task over its bound is stopped, at once and alone; its neighbours are not touched, though it is they who would be refused memory next.
 * Where MPS keeps the bound this finds nothing.
 *
 * Each four seconds: who else uses a GPU (gpu_strangers.h).
 *
 * Each eight seconds: whether the driver still is the one that the facts name, and whether all GPUs answer. A driver that was exchanged under
 * a running daemon does not start until all programs have let go of the old one; until then the GPUs are set aside, for whatever starts
 * would fail. Those are taken back into use when they answer again, and the facts get the new versions, before anything is placed by them.
 *
 * Facts are read from what is published; what was found goes to the core as commands. Nothing here waits for the core.
 */
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "core/model/taken.h"
#include "daemon/gpu_strangers.h"
#include "daemon/state.h"
#include "node/discover.h"
#include "node/nvml.h"

enum { LOOK_MS = 1000, STRANGERS_MS = 4000, DRIVER_MS = 8000, PARTS_MAX = 4096 };

/* A task with a bound. */
struct part {
	uint64_t attempt;
	uint32_t rank, launch, job, gpu, limit_mib;
	uint64_t bytes; /* seen now */
};

struct gpu_watch {
	struct daemon *d;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t end;
	bool ending; /* under the lock */
	struct nvml *nvml; /* open while there are parts */
	int64_t driver_at_ms, strangers_at_ms; /* boot clock: next look at them */
	struct gpu_strangers *strangers;
	struct part *parts;
	uint32_t count;
	uint64_t parts_seq; /* the facts that they were read from */
	struct nvml_process processes[NVML_PROCESSES_MAX];
};

/* --- parts ------------------------------------------------------------------------------------------------------- */

static void part_take(struct gpu_watch *w, const struct facts *f, uint32_t attempt, uint32_t rank)
{
	const struct attempt *a = attempt_get(f, (struct attempt_id){ attempt });
	const struct task *task = task_get(f, a, rank);

	if (task->state != TASK_RUNNING || !task->gpu_part_mib || task->slice || !task->gpu_mask ||
	    node_get(f, task->node)->simulated || w->count == PARTS_MAX)
		return;
	w->parts[w->count++] = (struct part){
		.attempt = attempt,
		.rank = rank,
		.launch = task->launch,
		.job = a->job.v,
		.gpu = (uint32_t)__builtin_ctz(task->gpu_mask),
		.limit_mib = task->gpu_part_mib,
	};
}

/* Those of an attempt that is being stopped are on their way out already. */
static void parts_take(struct gpu_watch *w)
{
	struct publication *publication = publication_get(w->d);
	const struct facts *f = &publication->frozen.facts;

	for (uint32_t p = 0; p < w->count; p++)
		w->parts[p].bytes = 0;
	if (publication->seq == w->parts_seq) {
		publication_release(publication);
		return;
	}
	w->parts_seq = publication->seq;
	w->count = 0;
	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });

		if (!job_is_live(job) || !job->attempt.v)
			continue;
		const struct attempt *attempt = attempt_get(f, job->attempt);
		for (uint32_t rank = 0; attempt->state == ATTEMPT_ACTIVE && rank < attempt->tasks;
		     rank++)
			part_take(w, f, job->attempt.v, rank);
	}
	publication_release(publication);
}

static void gpu_measure(struct gpu_watch *w, uint32_t gpu)
{
	int count = nvml_processes(w->nvml, gpu, w->processes);

	for (int i = 0; i < count; i++)
		for (uint32_t p = 0; p < w->count; p++) {
			struct part *part = &w->parts[p];

			if (part->gpu != gpu ||
			    !w->d->engine_ops->owns(w->d->engine, part->attempt, part->rank,
						    part->launch, w->processes[i].pid))
				continue;
			part->bytes += w->processes[i].bytes;
			break;
		}
}

static void part_judge(struct gpu_watch *w, const struct part *part)
{
	uint64_t mib = part->bytes >> 20;
	char text[200];
	struct err err = { 0 };

	if (part->bytes <= (uint64_t)part->limit_mib << 20)
		return;
	snprintf(text, sizeof(text),
		 "it used %llu MiB of GPU %u's memory; its part is %u MiB, which is watched",
		 (unsigned long long)(mib > part->limit_mib ? mib : part->limit_mib + 1), part->gpu,
		 part->limit_mib);
	if (w->d->engine_ops->overdrawn(w->d->engine, part->attempt, part->rank, part->launch, text,
					&err) < 0)
		log_line(LOG_WARN, "job %u, rank %u: %s; it could not be stopped: %s", part->job,
			 part->rank, text, err.text);
	else
		log_line(LOG_WARN, "job %u, rank %u is stopped: %s", part->job, part->rank, text);
}

/* The engine stays the same meanwhile; after a failed commit another one takes its place. */
static void parts_look(struct gpu_watch *w)
{
	uint32_t seen = 0;

	pthread_mutex_lock(&w->d->engine_swap);
	if (!w->d->engine)
		w->count = 0;
	for (uint32_t p = 0; p < w->count; p++) {
		if (seen >> w->parts[p].gpu & 1)
			continue;
		seen |= UINT32_C(1) << w->parts[p].gpu;
		gpu_measure(w, w->parts[p].gpu);
	}
	for (uint32_t p = 0; p < w->count; p++)
		part_judge(w, &w->parts[p]);
	if (!w->d->engine)
		w->parts_seq = 0;
	pthread_mutex_unlock(&w->d->engine_swap);
}

/* --- the driver -------------------------------------------------------------------------------------------------- */

static void answered(void *context, const struct command_reply *reply)
{
	(void)context;
	if (reply->err.code != ERR_NONE)
		log_line(LOG_WARN, "what the NVIDIA driver tells was refused: %s", reply->err.text);
}

static void send(struct gpu_watch *w, struct event *event)
{
	struct command *command = command_create(event, NULL, 0);

	command->done = answered;
	w->d->backend.send(w->d, command);
}

static void gpus_mark(void *context, uint32_t node, uint32_t mask, bool aside, const char *reason)
{
	struct gpu_watch *w = context;
	struct event event = event_make(EVENT_GPU_STATE, 0, "fairlead");

	if (!mask)
		return;
	log_line(aside ? LOG_WARN : LOG_INFO, "GPUs %#x %s%s%s", mask,
		 aside ? "are set aside" : "are back in use", aside ? ": " : "",
		 aside ? reason : "");
	event.gpu_state.node = node;
	event.gpu_state.mask = mask;
	event.gpu_state.set_aside = aside;
	event.gpu_state.reason = reason;
	send(w, &event);
}

/* GPUs that this file set aside, as the facts have it. */
static uint32_t gpus_aside(const struct facts *f, uint32_t id)
{
	const struct node *node = node_get(f, (struct node_id){ id });
	uint32_t mask = 0;

	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		const struct gpu_record *record =
			table_get(&f->gpus, (id - 1) * NODE_GPUS_MAX + gpu + 1);

		if (node->set_aside_mask >> gpu & 1 &&
		    strncmp(facts_text(f, record->reason), GPU_SILENT, strlen(GPU_SILENT)) == 0)
			mask |= UINT32_C(1) << gpu;
	}
	return mask;
}

/* The node as the facts have it, with other versions. */
static void versions_send(struct gpu_watch *w, const struct facts *f, uint32_t id,
			  const char *driver, const char *cuda)
{
	const struct node *node = node_get(f, (struct node_id){ id });
	struct event event = event_make(EVENT_NODE_SET, 0, "fairlead");
	struct event_node_set *e = &event.node_set;
	char domains[EVENT_TEXT_MAX + 1] = "";
	int64_t islands[ISLANDS_MAX];
	size_t size = 0;

	for (uint32_t l = 0; l < f->level_count; l++)
		size += (size_t)snprintf(domains + size, sizeof(domains) - size, "%s%s",
					 l ? "," : "", facts_name(f, node->domain[l]));
	for (uint32_t i = 0; i < ISLANDS_MAX && node->island_mask[i]; i++)
		islands[e->nvlink_islands_count++] = node->island_mask[i];
	e->name = facts_name(f, node->name);
	e->gpus = node->gpu_count;
	e->model = facts_name(f, node->model);
	e->driver = driver;
	e->cuda = cuda;
	e->capability = node->capability;
	e->gpu_memory_mib = node->gpu_memory_mib;
	e->cpu_milli = node->cpu_milli;
	e->ram_mib = node->ram_mib;
	e->simulated = node->simulated;
	e->domains = domains;
	e->nvlink_islands = islands;
	log_line(LOG_INFO, "the NVIDIA driver is %s with CUDA %s now", driver, cuda);
	send(w, &event);
}

/* Which GPUs of so many do not answer, and why. */
static uint32_t gpus_silent(struct nvml *nvml, uint32_t count, struct err *ret_why)
{
	uint32_t told = 0, mask = 0;
	struct nvml_gpu gpu;

	if (nvml_count(nvml, &told, ret_why) < 0)
		told = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct err why = { 0 };

		if (i < told && nvml_gpu(nvml, i, &gpu, &why) == 0)
			continue;
		if (i >= told)
			(void)err_set(&why, ERR_UNAVAILABLE,
				      "NVIDIA driver: it has %u GPUs now, not %u", told, count);
		*ret_why = why;
		mask |= UINT32_C(1) << i;
	}
	return mask;
}

static void driver_compare(struct gpu_watch *w, const struct facts *f, uint32_t id,
			   struct nvml *nvml, const struct err *failed)
{
	const struct node *node = node_get(f, (struct node_id){ id });
	uint32_t all = node->gpu_count >= 32 ? UINT32_MAX : (UINT32_C(1) << node->gpu_count) - 1,
		 aside = gpus_aside(f, id), silent = all;
	char driver[NVML_NAME_MAX] = "", cuda[NVML_NAME_MAX] = "";
	struct err why = *failed;

	if (nvml && nvml_driver(nvml, driver, &why) == 0) {
		nvml_cuda(nvml, cuda);
		silent = gpus_silent(nvml, node->gpu_count, &why);
		if (strcmp(driver, facts_name(f, node->driver)) != 0 ||
		    strcmp(cuda, facts_name(f, node->cuda)) != 0)
			versions_send(w, f, id, driver, cuda);
	}
	gpus_mark(w, id, silent & ~node->set_aside_mask, true, why.text);
	gpus_back_tell(f, (struct node_id){ id }, aside & ~silent, gpus_mark, w);
}

/* nvml NULL: it could not be opened, for the reason in `err`. */
static void driver_look(struct gpu_watch *w, struct nvml *nvml, const struct err *err)
{
	const struct node_found *found = &w->d->found->nodes[0];
	struct publication *publication = publication_get(w->d);
	const struct facts *f = &publication->frozen.facts;
	struct node_id id = facts_node_find(f, found->name);

	if (id.v && node_get(f, id)->state != NODE_GONE)
		driver_compare(w, f, id.v, nvml, err);
	publication_release(publication);
}

/* Opened for this alone where nothing else keeps it open: a driver can be exchanged only while nobody has it. */
static void looks_due(struct gpu_watch *w)
{
	const int64_t now_ms = clock_boot_ms();
	struct nvml *nvml = w->nvml;
	struct err err = { 0 };

	if (now_ms < w->driver_at_ms && now_ms < w->strangers_at_ms)
		return;
	if (!nvml && nvml_open(&nvml, &err) == NVML_ABSENT)
		(void)err_set(&err, ERR_UNAVAILABLE, "NVIDIA driver: its library is gone");
	if (nvml && now_ms >= w->strangers_at_ms)
		gpu_strangers_look(w->strangers, w->d, nvml, gpus_mark, w);
	if (now_ms >= w->driver_at_ms) {
		driver_look(w, nvml, &err);
		w->driver_at_ms = clock_boot_ms() + DRIVER_MS;
	}
	if (now_ms >= w->strangers_at_ms)
		w->strangers_at_ms = clock_boot_ms() + STRANGERS_MS;
	if (nvml != w->nvml)
		nvml_close(nvml);
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

static void look(struct gpu_watch *w)
{
	struct err err = { 0 };

	parts_take(w);
	if (!w->count && w->nvml) {
		nvml_close(w->nvml);
		w->nvml = NULL;
	}
	if (w->count && !w->nvml && nvml_open(&w->nvml, &err) != 0)
		w->nvml = NULL; /* the look at the driver says why */
	if (w->nvml)
		parts_look(w);
	looks_due(w);
}

static void *watch_main(void *argument)
{
	struct gpu_watch *w = argument;

	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		const struct timespec until = wait_until(LOOK_MS);

		pthread_mutex_unlock(&w->lock);
		look(w);
		pthread_mutex_lock(&w->lock);
		while (!w->ending && pthread_cond_timedwait(&w->end, &w->lock, &until) == 0)
			continue;
	}
	pthread_mutex_unlock(&w->lock);
	nvml_close(w->nvml);
	return NULL;
}

void gpu_watch_start(struct daemon *d)
{
	struct gpu_watch *w;

	if (d->kubernetes || d->simulated || !d->found->nodes[0].gpu_count || !d->engine_ops->owns)
		return;
	w = calloc(1, sizeof(*w));
	CHECK(w);
	w->d = d;
	w->parts = calloc(PARTS_MAX, sizeof(*w->parts));
	CHECK(w->parts);
	w->strangers = gpu_strangers_create();
	w->driver_at_ms = clock_boot_ms() + DRIVER_MS;
	pthread_mutex_init(&w->lock, NULL);
	cond_init(&w->end);
	d->gpu_watch = w;
	thread_start(&w->thread, watch_main, w);
}

void gpu_watch_join(struct daemon *d)
{
	struct gpu_watch *w = d->gpu_watch;

	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_signal(&w->end);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	gpu_strangers_destroy(w->strangers);
	free(w->parts);
	free(w);
	d->gpu_watch = NULL;
}
