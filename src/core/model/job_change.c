/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/job_change.h"

#include <stddef.h>
#include <string.h>

#include "base/check.h"
#include "core/model/apply.h"

/* --- words ------------------------------------------------------------------------------------------- */

#define RUNS JOB_CHANGE_RUNS
#define WHOLE JOB_CHANGE_WHOLE
#define PLAIN JOB_CHANGE_PLAIN
static const struct {
	const char *word;
	uint8_t flags;
} changes[] = {
#define CHANGE(ID, word, flags) { word, flags },
#define INT(ID, field)
#define TEXT(ID, field)
#define INTS(ID, field)
#include "core/model/job_changes.def"
#undef CHANGE
#undef INT
#undef TEXT
#undef INTS
};

uint64_t job_changes_with(unsigned flags)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < JOB_CHANGES; i++)
		if (changes[i].flags & flags)
			set |= UINT64_C(1) << i;
	return set;
}

const char *job_change_word(enum job_change change)
{
	return changes[change].word;
}

bool job_change_find(const char *word, enum job_change *ret)
{
	for (unsigned i = 0; i < JOB_CHANGES; i++)
		if (strcmp(changes[i].word, word) == 0) {
			*ret = (enum job_change)i;
			return true;
		}
	return false;
}

/* One more part of a list; returns its new size. */
static size_t list_add(char *list, size_t size, bool comma, const char *part)
{
	const size_t length = strlen(part);

	if (comma)
		list[size++] = ',';
	memcpy(list + size, part, length + 1);
	return size + length;
}

bool job_changes_parse(const char *words, uint64_t *ret)
{
	char word[NAME_MAX_BYTES + 1];
	enum job_change change;
	bool known = true;

	*ret = 0;
	while (list_next(&words, word)) {
		if (job_change_find(word, &change))
			*ret |= UINT64_C(1) << change;
		else
			known = false;
	}
	return known;
}

const char *job_changes_text(uint64_t set, char ret[EVENT_TEXT_MAX + 1])
{
	size_t size = 0;

	ret[0] = '\0';
	for (unsigned i = 0; i < JOB_CHANGES; i++)
		if (set >> i & 1)
			size = list_add(ret, size, size != 0, changes[i].word);
	return ret; /* a test has all of them: there is room */
}

/* --- fields ------------------------------------------------------------------------------------------ */

enum field_type { FIELD_INT, FIELD_TEXT, FIELD_INTS };
struct change_field {
	uint8_t change, type;
	uint16_t submitted, submitted_count, changed, changed_count; /* offsets */
};

#define AT(field)                                                                                  \
	offsetof(struct event_job_submitted, field), 0, offsetof(struct event_job_changed, field), 0
static const struct change_field fields[] = {
#define CHANGE(ID, word, flags)
#define INT(ID, field) { JOB_CHANGE_##ID, FIELD_INT, AT(field) },
#define TEXT(ID, field) { JOB_CHANGE_##ID, FIELD_TEXT, AT(field) },
#define INTS(ID, field)                                                                            \
	{ JOB_CHANGE_##ID,                                                                         \
	  FIELD_INTS,                                                                              \
	  offsetof(struct event_job_submitted, field),                                             \
	  offsetof(struct event_job_submitted, field##_count),                                     \
	  offsetof(struct event_job_changed, field),                                               \
	  offsetof(struct event_job_changed, field##_count) },
#include "core/model/job_changes.def"
#undef CHANGE
#undef INT
#undef TEXT
#undef INTS
};

static void field_copy(enum field_type type, const void *from, const void *from_count, void *to,
		       void *to_count)
{
	switch (type) {
	case FIELD_INT: memcpy(to, from, sizeof(int64_t)); return;
	case FIELD_TEXT: memcpy(to, from, sizeof(const char *)); return;
	case FIELD_INTS:
		memcpy(to, from, sizeof(const int64_t *));
		memcpy(to_count, from_count, sizeof(uint32_t));
		return;
	}
}

void job_changes_put(uint64_t set, const struct event_job_changed *from,
		     struct event_job_submitted *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct change_field *f = &fields[i];

		if (set >> f->change & 1)
			field_copy(f->type, (const char *)from + f->changed,
				   (const char *)from + f->changed_count, (char *)to + f->submitted,
				   (char *)to + f->submitted_count);
	}
}

void job_changes_take(uint64_t set, const struct event_job_submitted *from,
		      struct event_job_changed *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct change_field *f = &fields[i];

		if (set >> f->change & 1)
			field_copy(f->type, (const char *)from + f->submitted,
				   (const char *)from + f->submitted_count, (char *)to + f->changed,
				   (char *)to + f->changed_count);
	}
}

static bool fields_same(const struct change_field *f, const struct event_job_submitted *a,
			const struct event_job_submitted *b)
{
	const void *at_a = (const char *)a + f->submitted, *at_b = (const char *)b + f->submitted;
	const char *text_a, *text_b;
	const int64_t *list_a, *list_b;
	uint32_t count_a, count_b;

	switch ((enum field_type)f->type) {
	case FIELD_INT: return memcmp(at_a, at_b, sizeof(int64_t)) == 0;
	case FIELD_TEXT:
		memcpy(&text_a, at_a, sizeof(text_a));
		memcpy(&text_b, at_b, sizeof(text_b));
		return strcmp(text_a, text_b) == 0;
	case FIELD_INTS:
		memcpy(&list_a, at_a, sizeof(list_a));
		memcpy(&list_b, at_b, sizeof(list_b));
		memcpy(&count_a, (const char *)a + f->submitted_count, sizeof(count_a));
		memcpy(&count_b, (const char *)b + f->submitted_count, sizeof(count_b));
		return count_a == count_b &&
		       (!count_a || memcmp(list_a, list_b, count_a * sizeof(*list_a)) == 0);
	}
	UNREACHABLE();
}

uint64_t job_changes_between(const struct event_job_submitted *a,
			     const struct event_job_submitted *b)
{
	uint64_t set = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (!fields_same(&fields[i], a, b))
			set |= UINT64_C(1) << fields[i].change;
	return set;
}

/* --- what a job asks for ------------------------------------------------------------------------------ */

static const char *text_keep(const char *text, char room[NAME_MAX_BYTES + 1])
{
	memcpy(room, text, strlen(text) + 1);
	return room;
}

static const char *name_keep(const struct facts *f, struct name_id name,
			     char room[NAME_MAX_BYTES + 1])
{
	return text_keep(facts_name(f, name), room);
}

static const char *level_keep(const struct facts *f, uint32_t level, char room[NAME_MAX_BYTES + 1])
{
	if (level == LEVEL_NODE)
		return "node";
	if (level == LEVEL_ISLAND)
		return "nvlink";
	return level ? name_keep(f, f->level[level - 1], room) : "";
}

/* Names of a shape as the list they were submitted as; skip: bytes in front of each that were put there. */
static const char *list_keep(const struct facts *f, const struct name_id *names, uint32_t most,
			     size_t skip, char room[EVENT_TEXT_MAX + 1])
{
	size_t size = 0;

	room[0] = '\0';
	for (uint32_t i = 0; i < most && names[i].v; i++) {
		const char *name = facts_name(f, names[i]) + skip;

		if (size + strlen(name) + 1 > EVENT_TEXT_MAX)
			break; /* no record has a longer list */
		size = list_add(room, size, size != 0, name);
	}
	return room;
}

static void roles_keep(const struct facts *f, const struct shape *shape, struct job_wish_room *room,
		       struct event_job_submitted *ret)
{
	bool masked = false;
	size_t size = 0;

	ret->roles = list_keep(f, shape->role, shape->role_count, 0, room->roles);
	ret->role_numbers = room->role_numbers;
	ret->role_numbers_count = shape->role_count * ROLE_NUMBERS;
	for (uint32_t i = 0; i < shape->role_count; i++) {
		int64_t *of = room->role_numbers + (size_t)i * ROLE_NUMBERS;

		of[ROLE_TASKS_MIN] = shape->role_min[i];
		of[ROLE_TASKS_MAX] = shape->role_max[i];
		of[ROLE_GPUS] = shape->role_gpus[i];
		of[ROLE_CPU_MILLI] = shape->role_cpu_milli[i];
		of[ROLE_MEMORY_MIB] = shape->role_memory_mib[i];
		of[ROLE_ENDS] = shape->role_ends >> i & 1;
		masked = masked || shape->role_mask[i].v;
		size = list_add(room->role_masks, size, i != 0, facts_name(f, shape->role_mask[i]));
	}
	ret->role_masks = masked ? room->role_masks : "";
	ret->together = name_keep(f, shape->together, room->together);
}

static void shape_keep(const struct facts *f, const struct shape *shape, struct job_wish_room *room,
		       struct event_job_submitted *ret)
{
	ret->tasks_min = shape->tasks_min;
	ret->tasks_max = shape->tasks_max;
	ret->gpus = shape->gpus;
	ret->gpu_memory_mib = shape->gpu_memory_mib;
	ret->cpu_milli = shape->cpu_milli;
	ret->memory_mib = shape->memory_mib;
	ret->min_capability = shape->min_capability;
	ret->mixes = shape->mixes;
	ret->align = shape->align;
	ret->apart_wish = shape->apart_wish;
	ret->window_end = shape->window_end == WINDOW_FINISHES;
	ret->min_throughput = shape->min_throughput;
	ret->max_slowdown = shape->max_slowdown;
	ret->gpu_part = shape->gpu_part;
	ret->gpu_part_mib = shape->gpu_part_mib;
	ret->require = level_keep(f, shape->require, room->levels[0]);
	ret->prefer = level_keep(f, shape->prefer, room->levels[1]);
	ret->apart_level = level_keep(f, shape->apart_level, room->levels[2]);
	ret->spread = level_keep(f, shape->apart, room->levels[3]);
	ret->window = name_keep(f, shape->window, room->window);
	ret->mask = name_keep(f, shape->mask, room->mask);
	ret->models = list_keep(f, shape->models, SHAPE_MODELS_MAX, 0, room->models);
	ret->regions =
		list_keep(f, shape->regions, SHAPE_REGIONS_MAX, strlen("region="), room->regions);
	ret->labels = list_keep(f, shape->labels, SHAPE_LABELS_MAX, 0, room->labels);
	ret->tolerates = list_keep(f, shape->tolerates, SHAPE_LABELS_MAX, 0, room->tolerates);
	ret->data = list_keep(f, shape->data, SHAPE_DATA_MAX, 0, room->data);
	ret->own_labels = list_keep(f, shape->own_label, JOB_LABELS_MAX, 0, room->own_labels);
	ret->apart_from = list_keep(f, shape->apart_from, JOB_LABELS_MAX, 0, room->apart_from);
	ret->min_driver =
		shape->min_driver ? version_text(shape->min_driver, room->min_driver) : "";
	ret->min_cuda = shape->min_cuda ? version_text(shape->min_cuda, room->min_cuda) : "";
	ret->slice = shape->slice ? slice_wish_text(shape->slice, room->slice) : "";
	ret->throughput = room->throughput;
	for (uint32_t i = 0; i < SHAPE_MODELS_MAX; i++) {
		room->throughput[i] = shape->throughput[i];
		if (shape->throughput[i])
			ret->throughput_count = i + 1;
	}
	roles_keep(f, shape, room, ret);
}

/* What all jobs of a submission have together. */
static void body_keep(const struct body *body, struct event_job_submitted *ret)
{
	ret->deadline_ms = body->deadline_ms;
	ret->efficiency = body->efficiency;
	ret->array_limit = body->array_limit;
	ret->capacity = body->capacity;
	ret->body_bytes = body->bytes;
	ret->program = body->program;
}

void job_wish(const struct facts *f, const struct job *job, struct job_wish_room *room,
	      struct event_job_submitted *ret)
{
	*ret = event_make(EVENT_JOB_SUBMITTED, 0, "").job_submitted;
	shape_keep(f, shape_get(f, job->shape), room, ret);
	if (job->body)
		body_keep(table_get(&f->bodies, job->body), ret);
	ret->name = name_keep(f, job->name, room->name);
	ret->user = name_keep(f, job->user, room->user);
	ret->team = name_keep(f, job->team, room->team);
	ret->queue = name_keep(f, queue_get(f, job->queue)->name, room->queue);
	ret->project = name_keep(f, job->project, room->project);
	ret->kind = job->kind;
	ret->tier = job->tier;
	ret->priority = job->priority;
	ret->limit_ms = job->limit_ms;
	ret->estimate_ms = job->estimate_ms;
	ret->likely_ms = (int64_t)job->likely_s * 1000;
	ret->retries = job->retries_left;
	ret->preempts = job->preempts;
	ret->checkpoint = job->checkpoints;
	ret->checkpoint_every_ms = job->checkpoint_every_ms;
	ret->grace_ms = job->grace_ms == UINT32_MAX ? -1 : (int64_t)job->grace_ms;
	ret->restart_cost_ms = job->restart_cost_ms;
	ret->held = job->held;
	ret->resize = job->resize;
	ret->rejoins = job->rejoins;
	ret->external = job->external;
	ret->uid = job->uid;
	ret->gid = job->gid;
	ret->array_count = job->array_count;
}
