/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/arrivals.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

#define LIST_NAMES 16
enum { LIST_BYTES = LIST_NAMES * (NAME_MAX_BYTES + 1) };
_Static_assert(SHAPE_MODELS_MAX <= LIST_NAMES && SHAPE_REGIONS_MAX <= LIST_NAMES &&
		       SHAPE_LABELS_MAX <= LIST_NAMES && ROLES_MAX <= LIST_NAMES,
	       "all lists of a shape fit");

static const struct job *job_of(const struct arrivals *a, uint32_t index)
{
	return job_get(a->facts, (struct job_id){ a->jobs[index] });
}

static bool comes_again(const struct job *job)
{
	return job->state != JOB_NONE && !job->held &&
	       !(job_state_is_final(job->state) && !job->attempts);
}

/* Newest first into the end of the list, then moved to its beginning. */
static void jobs_collect(struct arrivals *a)
{
	uint32_t at = ARRIVALS_MAX;
	int64_t oldest_ms = a->now_ms;

	for (uint32_t id = a->facts->jobs.count; id && at; id--) {
		const struct job *job = job_get(a->facts, (struct job_id){ id });

		if (job->state == JOB_NONE)
			continue;
		oldest_ms = job->submitted_ms;
		if (oldest_ms < a->now_ms - ARRIVALS_DAYS * DAY_MS)
			break;
		if (comes_again(job))
			a->jobs[--at] = id;
	}
	a->count = ARRIVALS_MAX - at;
	memmove(a->jobs, a->jobs + at, a->count * sizeof(*a->jobs));
	a->days = (uint32_t)((a->now_ms - oldest_ms) / DAY_MS);
	if (a->days > ARRIVALS_DAYS)
		a->days = ARRIVALS_DAYS;
}

void arrivals_init(struct arrivals *a, const struct facts *facts, int64_t now_ms)
{
	uint32_t at;

	*a = (struct arrivals){ .facts = facts, .now_ms = now_ms };
	a->jobs = calloc(ARRIVALS_MAX, sizeof(*a->jobs));
	CHECK(a->jobs);
	jobs_collect(a);
	at = a->first[0] = a->count;
	for (uint32_t day = 1; day <= a->days; day++) {
		while (at && job_of(a, at - 1)->submitted_ms >= now_ms - day * DAY_MS)
			at--;
		a->first[day] = at;
	}
}

void arrivals_deinit(struct arrivals *a)
{
	free(a->jobs);
	*a = (struct arrivals){ 0 };
}

/* Which day before the day to come is like. */
static uint32_t day_before(const struct arrivals *a)
{
	return 1 + (a->run + a->day) % a->days;
}

void arrivals_begin(struct arrivals *a, uint32_t run)
{
	a->run = run;
	a->day = 0;
	a->at = a->days ? a->first[day_before(a)] : 0;
}

/* To the next day that has any; a round of days without one has none at all. */
static bool day_find(struct arrivals *a)
{
	for (uint32_t tried = 0; a->days && tried <= a->days; tried++) {
		if (a->at < a->first[day_before(a) - 1])
			return true;
		a->day++;
		a->at = a->first[day_before(a)];
	}
	return false;
}

int64_t arrivals_next_ms(struct arrivals *a)
{
	if (!day_find(a))
		return PLAY_NEVER;
	return job_of(a, a->at)->submitted_ms + (int64_t)(day_before(a) + a->day) * DAY_MS;
}

static const char *level_text(const struct facts *f, uint8_t level)
{
	if (level == LEVEL_NODE)
		return "node";
	if (level == LEVEL_ISLAND)
		return "nvlink";
	return level ? facts_name(f, f->level[level - 1]) : "";
}

/* Names of a shape as the list they were submitted as; skip: bytes in front of each that were put there. */
static void list_text(const struct facts *f, const struct name_id *names, uint32_t most,
		      size_t skip, char ret[LIST_BYTES])
{
	size_t size = 0;

	for (uint32_t i = 0; i < most && names[i].v; i++) {
		const char *name = facts_name(f, names[i]) + skip;
		size_t length = strlen(name);

		if (size)
			ret[size++] = ',';
		memcpy(ret + size, name, length);
		size += length;
	}
	ret[size] = '\0';
}

/* Room for what is told of each role. */
struct roles_text {
	char names[LIST_BYTES], masks[LIST_BYTES];
	int64_t numbers[ROLES_MAX][ROLE_NUMBERS];
};

/* Those that the other cluster has, too: there any other role runs on any node that does otherwise. */
static void role_masks_copy(const struct facts *f, const struct facts *there,
			    const struct shape *shape, struct event_job_submitted *e,
			    struct roles_text *room)
{
	uint32_t masked = 0;
	size_t size = 0;

	for (uint32_t i = 0; i < shape->role_count; i++) {
		const char *name = facts_name(f, shape->role_mask[i]);
		const bool there_too = facts_mask_find(there, facts_name_find(there, name)) != 0;

		masked += there_too;
		size += (size_t)snprintf(room->masks + size, sizeof(room->masks) - size, "%s%s",
					 i ? "," : "", there_too ? name : "");
	}
	if (!masked)
		return;
	e->role_masks = room->masks;
	if (facts_mask_find(there, facts_name_find(there, facts_name(f, shape->together))))
		e->together = facts_name(f, shape->together);
}

static void roles_copy(const struct facts *f, const struct shape *shape,
		       struct event_job_submitted *e, struct roles_text *room)
{
	uint32_t count = shape->role_count;

	if (!count)
		return;
	list_text(f, shape->role, ROLES_MAX, 0, room->names);
	for (uint32_t i = 0; i < count; i++) {
		int64_t *of = room->numbers[i];

		of[ROLE_TASKS_MIN] = shape->role_min[i];
		of[ROLE_TASKS_MAX] = shape->role_max[i];
		of[ROLE_GPUS] = shape->role_gpus[i];
		of[ROLE_CPU_MILLI] = shape->role_cpu_milli[i];
		of[ROLE_MEMORY_MIB] = shape->role_memory_mib[i];
		of[ROLE_ENDS] = shape->role_ends >> i & 1;
	}
	e->roles = room->names;
	e->role_numbers = room->numbers[0];
	e->role_numbers_count = count * ROLE_NUMBERS;
}

static void wish_copy(const struct facts *f, const struct job *job, struct event_job_submitted *e)
{
	const struct shape *shape = shape_get(f, job->shape);

	e->name = facts_name(f, job->name);
	e->user = facts_name(f, job->user);
	e->team = facts_name(f, job->team);
	e->queue = facts_name(f, queue_get(f, job->queue)->name);
	e->project = facts_name(f, job->project);
	e->kind = job->kind;
	e->tier = job->tier;
	e->priority = job->priority;
	e->tasks_min = shape->tasks_min;
	e->tasks_max = shape->tasks_max;
	e->gpus = shape->gpus;
	e->gpu_memory_mib = shape->gpu_memory_mib;
	e->cpu_milli = shape->cpu_milli;
	e->memory_mib = shape->memory_mib;
	e->min_capability = shape->min_capability;
	e->require = level_text(f, shape->require);
	e->prefer = level_text(f, shape->prefer);
	e->mixes = shape->mixes;
	e->align = shape->align;
	e->apart_level = level_text(f, (uint8_t)shape->apart_level);
	e->apart_wish = shape->apart_wish;
	e->window = facts_name(f, shape->window);
	e->window_end = shape->window_end == WINDOW_FINISHES;
	e->min_throughput = shape->min_throughput;
	e->spread = level_text(f, (uint8_t)shape->apart);
	e->max_slowdown = shape->max_slowdown;
	e->capacity = shape->capacity;
	e->gpu_part = shape->gpu_part;
	e->gpu_part_mib = shape->gpu_part_mib;
	e->limit_ms = job->limit_ms;
	e->estimate_ms = job->estimate_ms;
	e->likely_ms = (int64_t)job->likely_s * 1000;
	e->preempts = job->preempts;
	e->checkpoint = job->checkpoints;
	e->grace_ms = job->grace_ms == UINT32_MAX ? -1 : (int64_t)job->grace_ms;
	e->restart_cost_ms = job->restart_cost_ms;
	e->resize = job->resize;
	e->rejoins = job->rejoins;
	e->external = job->external;
}

/* In the order of the models; how many, 0 when nothing is said. */
static uint32_t speeds_copy(const struct shape *shape, int64_t ret[SHAPE_MODELS_MAX])
{
	uint32_t count = 0;

	while (count < SHAPE_MODELS_MAX && shape->throughput[count]) {
		ret[count] = shape->throughput[count];
		count++;
	}
	return count;
}

void arrivals_take(struct arrivals *a, struct play *play)
{
	const struct job *job = job_of(a, a->at++);
	struct event e = event_make(EVENT_JOB_SUBMITTED, play->now_ms, "plan");
	const struct shape *shape = shape_get(a->facts, job->shape);
	char models[LIST_BYTES], regions[LIST_BYTES], labels[LIST_BYTES], tolerates[LIST_BYTES],
		data[LIST_BYTES], own[LIST_BYTES], apart[LIST_BYTES];
	char driver[VERSION_TEXT_MAX], cuda[VERSION_TEXT_MAX], slice[SLICE_TEXT_MAX];
	int64_t speeds[SHAPE_MODELS_MAX];
	struct roles_text roles;

	wish_copy(a->facts, job, &e.job_submitted);
	list_text(a->facts, shape->models, SHAPE_MODELS_MAX, 0, models);
	list_text(a->facts, shape->regions, SHAPE_REGIONS_MAX, strlen("region="), regions);
	list_text(a->facts, shape->labels, SHAPE_LABELS_MAX, 0, labels);
	list_text(a->facts, shape->tolerates, SHAPE_LABELS_MAX, 0, tolerates);
	list_text(a->facts, shape->data, SHAPE_DATA_MAX, 0, data);
	list_text(a->facts, shape->own_label, JOB_LABELS_MAX, 0, own);
	list_text(a->facts, shape->apart_from, JOB_LABELS_MAX, 0, apart);
	e.job_submitted.own_labels = own;
	/* Another cluster has no masks: there it runs on any node that does otherwise. */
	if (facts_mask_find(&play->facts,
			    facts_name_find(&play->facts, facts_name(a->facts, shape->mask))))
		e.job_submitted.mask = facts_name(a->facts, shape->mask);
	e.job_submitted.apart_from = apart;
	e.job_submitted.min_driver = version_text(shape->min_driver, driver);
	e.job_submitted.min_cuda = version_text(shape->min_cuda, cuda);
	e.job_submitted.models = models;
	e.job_submitted.throughput = speeds;
	e.job_submitted.throughput_count = speeds_copy(shape, speeds);
	e.job_submitted.regions = regions;
	e.job_submitted.labels = labels;
	e.job_submitted.tolerates = tolerates;
	e.job_submitted.data = data;
	e.job_submitted.slice = shape->slice ? slice_wish_text(shape->slice, slice) : "";
	roles_copy(a->facts, shape, &e.job_submitted, &roles);
	role_masks_copy(a->facts, &play->facts, shape, &e.job_submitted, &roles);
	e.job_submitted.job = (int64_t)play->facts.jobs.count + 1;
	play_offer(play, &e);
}
