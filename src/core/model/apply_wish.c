/* SPDX-License-Identifier: Apache-2.0 */
/* What a submission asks for: the shape that placement works on, and the fields of the job itself. */
#include <string.h>

#include "core/model/apply.h"
#include "core/model/edit.h"
#include "core/model/roles.h"

/* Level + 1 of a level's name; false when there is no such level. */
static bool level_find(const struct facts *f, const char *text, uint8_t *ret)
{
	struct name_id name;

	*ret = 0;
	if (!*text)
		return true;
	name = facts_name_find(f, text);
	if (strcmp(text, "node") == 0)
		*ret = LEVEL_NODE;
	else if (strcmp(text, "nvlink") == 0)
		*ret = LEVEL_ISLAND;
	for (uint32_t i = 0; !*ret && name.v && i < f->level_count; i++)
		if (name_same(f->level[i], name))
			*ret = (uint8_t)(i + 1);
	return *ret != 0 || f->lost; /* the level's record is lost: the job does without */
}

/* Whose parts may lie together is a matter of the place, so it is a part of the wish. */
static bool part_of(struct facts *f, const struct event_job_submitted *e, struct shape *ret)
{
	if (!e->gpu_part && !e->gpu_part_mib)
		return true;
	if (e->gpus != 1 || e->gpu_part < 0 || e->gpu_part > GPU_SHARE - !*e->slice ||
	    e->gpu_part_mib < 0 || (e->gpu_part && e->gpu_part_mib))
		return false;
	ret->gpu_part = (uint32_t)e->gpu_part;
	ret->gpu_part_mib = clamp_u32(e->gpu_part_mib);
	if (*e->slice) /* its neighbours cannot disturb it: whose they are is no matter */
		return ret->gpu_part && slice_wish_parse(e->slice, &ret->slice);
	if (*e->team)
		ret->team = facts_intern(f, e->team);
	else
		ret->user = facts_intern(f, e->user);
	return true;
}

/* How fast the models are, in the order of the names' list, is kept beside the models. */
static void speeds_of(const struct facts *f, const struct event_job_submitted *e, struct shape *ret)
{
	const char *list = e->models;
	char part[NAME_MAX_BYTES + 1];

	for (uint32_t i = 0; i < e->throughput_count && list_next(&list, part); i++) {
		struct name_id name = facts_name_find(f, part);

		for (uint32_t k = 0; k < SHAPE_MODELS_MAX && ret->models[k].v; k++)
			if (name_same(ret->models[k], name))
				ret->throughput[k] = clamp_u16(e->throughput[i]);
	}
}

static int64_t role_number(const struct event_job_submitted *e, uint32_t role,
			   enum role_number number)
{
	uint32_t at = role * ROLE_NUMBERS + number;

	return at < e->role_numbers_count ? e->role_numbers[at] : 0;
}

/* One more role of the wish; `at` in the lists of the event. */
static bool role_of(struct facts *f, const struct event_job_submitted *e, const char *name,
		    struct shape *ret)
{
	uint32_t at = ret->role_count;
	int64_t least = role_number(e, at, ROLE_TASKS_MIN),
		most = role_number(e, at, ROLE_TASKS_MAX), gpus = role_number(e, at, ROLE_GPUS);

	least = least ? least : 1;
	most = most ? most : least;
	if (at == ROLES_MAX || !*name || least < 1 || most < least || most > TASKS_MAX ||
	    gpus < 0 || gpus > NODE_GPUS_MAX)
		return false;
	ret->role[at] = facts_intern(f, name);
	ret->role_min[at] = (uint32_t)least;
	ret->role_max[at] = (uint32_t)most;
	ret->role_gpus[at] = (uint32_t)gpus;
	ret->role_cpu_milli[at] = clamp_u32(role_number(e, at, ROLE_CPU_MILLI));
	ret->role_memory_mib[at] = clamp_u32(role_number(e, at, ROLE_MEMORY_MIB));
	if (role_number(e, at, ROLE_ENDS))
		ret->role_ends |= UINT32_C(1) << at;
	ret->role_count++;
	return true;
}

/* Some may be empty; those beyond the last role are passed over. */
static void role_masks_of(struct facts *f, const struct event_job_submitted *e, struct shape *ret)
{
	const char *list = e->role_masks;
	char name[NAME_MAX_BYTES + 1];
	uint32_t masked = 0;

	for (uint32_t role = 0; role < ret->role_count && list_next(&list, name); role++) {
		ret->role_mask[role] = facts_intern(f, name);
		masked += ret->role_mask[role].v != 0;
	}
	if (masked > 1)
		ret->together = facts_intern(f, e->together);
}

/* What the fields for all tasks say is put aside: they follow from the roles. */
static bool roles_of(struct facts *f, const struct event_job_submitted *e, struct shape *ret)
{
	const char *names = e->roles;
	char name[NAME_MAX_BYTES + 1];

	while (list_next(&names, name))
		if (shape_is_part(ret) || !role_of(f, e, name, ret))
			return false;
	if (!ret->role_count)
		return true;
	shape_roles_sum(ret);
	role_masks_of(f, e, ret);
	ret->fragments =
		e->kind == KIND_BATCH || e->array_count > 1 || shape_gpus(ret, ret->tasks_max) <= 1;
	return ret->tasks_max <= TASKS_MAX && shape_roles_are_right(ret);
}

/* Whether it saves its work decides when it may start, so jobs that do and that don't are unlike. */
static void window_of(struct facts *f, const struct event_job_submitted *e, struct shape *ret)
{
	if (!*e->window)
		return;
	ret->window = facts_intern(f, e->window);
	ret->window_end = e->window_end   ? WINDOW_FINISHES
			  : e->checkpoint ? WINDOW_SAVES
					  : WINDOW_STOPS;
}

bool submission_shape(struct facts *f, const struct event_job_submitted *e, struct shape *ret)
{
	int64_t least = e->tasks_min ? e->tasks_min : 1, most = e->tasks_max ? e->tasks_max : least;
	uint8_t apart;

	memset(ret, 0, sizeof(*ret));
	if (least < 1 || most < least || most > TASKS_MAX || e->gpus < 0 || e->gpus > NODE_GPUS_MAX)
		return false;
	if (!level_find(f, e->require, &ret->require) || !level_find(f, e->prefer, &ret->prefer) ||
	    !level_find(f, e->spread, &apart))
		return false;
	ret->apart = apart;
	ret->tasks_min = (uint32_t)least;
	ret->tasks_max = (uint32_t)most;
	ret->gpus = (uint32_t)e->gpus;
	ret->gpu_memory_mib = clamp_u32(e->gpu_memory_mib);
	ret->cpu_milli = clamp_u32(e->cpu_milli);
	ret->memory_mib = clamp_u32(e->memory_mib);
	ret->spread = e->kind == KIND_INFERENCE;
	ret->fragments = e->kind == KIND_BATCH || e->array_count > 1 || most * e->gpus <= 1;
	ret->min_driver = version_parse(e->min_driver);
	ret->min_cuda = version_parse(e->min_cuda);
	ret->min_capability = clamp_u32(e->min_capability);
	ret->serves = e->kind == KIND_INFERENCE;
	ret->max_slowdown = clamp_u32(e->max_slowdown);
	ret->talks = ret->max_slowdown ? 1 + (uint32_t)clamp_u8(e->kind, KIND_INTERACTIVE) : 0;
	if (!part_of(f, e, ret) || !roles_of(f, e, ret))
		return false;
	ret->mixes = e->mixes != 0 || e->kind == KIND_INFERENCE;
	ret->align = clamp_u8(e->align, ALIGN_NIC);
	window_of(f, e, ret);
	ret->min_throughput = clamp_u32(e->min_throughput);
	if (!names_sorted(f, e->models, "", ret->models, SHAPE_MODELS_MAX))
		return false;
	speeds_of(f, e, ret);
	if (!level_find(f, e->apart_level, &apart) ||
	    !names_sorted(f, e->own_labels, "", ret->own_label, JOB_LABELS_MAX) ||
	    !names_sorted(f, e->apart_from, "", ret->apart_from, JOB_LABELS_MAX))
		return false;
	ret->apart_level = ret->apart_from[0].v ? apart : 0;
	ret->apart_wish = ret->apart_from[0].v && e->apart_wish;
	ret->mask = facts_intern(f, e->mask);
	ret->capacity = e->capacity == CAPACITY_SPOT || e->capacity == CAPACITY_ANY
				? (uint32_t)e->capacity
				: 0;
	return names_sorted(f, e->data, "", ret->data, SHAPE_DATA_MAX) &&
	       names_sorted(f, e->regions, "region=", ret->regions, SHAPE_REGIONS_MAX) &&
	       names_sorted(f, e->labels, "", ret->labels, SHAPE_LABELS_MAX) &&
	       names_sorted(f, e->tolerates, "", ret->tolerates, SHAPE_LABELS_MAX);
}

/* Rounded up, so that what is known is not 0. */
static uint32_t likely_seconds(int64_t ms)
{
	return clamp_u32(ms > 0 ? (ms - 1) / 1000 + 1 : 0);
}

void submission_fill(const struct event_job_submitted *e, struct job *job)
{
	job->kind = clamp_u8(e->kind, KIND_INTERACTIVE);
	job->tier = clamp_u8(e->tier, TIER_CRITICAL);
	job->priority = clamp_i32(e->priority);
	job->limit_ms = clamp_positive(e->limit_ms);
	job->estimate_ms = clamp_positive(e->estimate_ms);
	job->likely_s = likely_seconds(e->likely_ms);
	job->retries_left = clamp_u16(e->retries);
	job->preempts = e->preempts != 0;
	job->checkpoints = e->checkpoint != 0;
	job->checkpoint_every_ms = clamp_positive(e->checkpoint_every_ms);
	job->grace_ms = e->grace_ms < 0 ? UINT32_MAX : clamp_u32(e->grace_ms);
	job->restart_cost_ms = clamp_u32(e->restart_cost_ms);
	job->held = e->held != 0;
	job->resize = clamp_u8(e->resize, RESIZE_RESTART);
	job->rejoins = e->rejoins != 0;
	job->external = e->external != 0;
	job->uid = clamp_i32(e->uid);
	job->gid = clamp_i32(e->gid);
	job->failed_rank = -1;
}
