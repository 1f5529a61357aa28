/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/demand.h"

#include <string.h>

#include "base/arena.h"
#include "core/placement/space.h"

/* A wish as the shapes that are alike in it, and the tasks that have it. */
struct entry {
	const struct shape *shape; /* the first of them */
	uint32_t id; /* of that */
	uint64_t tasks;
	uint32_t next; /* of the same slot, plus 1 */
};

struct tally {
	struct entry *entries;
	uint32_t *slots;
	uint32_t count, mask;
};

/* Equal in all that says on which node one task may run. */
static bool shapes_alike(const struct shape *a, const struct shape *b)
{
	return a->gpus == b->gpus && a->gpu_part == b->gpu_part &&
	       a->gpu_part_mib == b->gpu_part_mib && a->cpu_milli == b->cpu_milli &&
	       a->memory_mib == b->memory_mib && a->gpu_memory_mib == b->gpu_memory_mib &&
	       a->min_driver == b->min_driver && a->min_cuda == b->min_cuda &&
	       a->min_capability == b->min_capability && a->serves == b->serves &&
	       a->min_throughput == b->min_throughput &&
	       memcmp(a->models, b->models, sizeof(a->models)) == 0 &&
	       memcmp(a->throughput, b->throughput, sizeof(a->throughput)) == 0 &&
	       memcmp(a->regions, b->regions, sizeof(a->regions)) == 0 &&
	       memcmp(a->labels, b->labels, sizeof(a->labels)) == 0 &&
	       memcmp(a->tolerates, b->tolerates, sizeof(a->tolerates)) == 0;
}

static uint32_t shape_hash(const struct shape *s)
{
	uint64_t x = (uint64_t)s->gpus << 32 | s->gpu_part;

	x = (x ^ s->gpu_part_mib) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ s->cpu_milli) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ s->memory_mib) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ s->models[0].v) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(x >> 32);
}

static void tally_add(struct tally *tally, uint32_t id, const struct shape *shape, uint64_t tasks)
{
	uint32_t *slot = &tally->slots[shape_hash(shape) & tally->mask], at = *slot;

	while (at && !shapes_alike(tally->entries[at - 1].shape, shape))
		at = tally->entries[at - 1].next;
	if (!at) {
		tally->entries[tally->count++] =
			(struct entry){ .shape = shape, .id = id, .next = *slot };
		at = *slot = tally->count;
	}
	tally->entries[at - 1].tasks += tasks;
}

/* Does it ask for anything that two nodes with as many free GPUs may differ in? */
static bool shape_is_choosy(const struct shape *s)
{
	return (shape_is_part(s) && !s->slice) || s->cpu_milli || s->memory_mib || s->models[0].v ||
	       s->gpu_memory_mib;
}

static void wishes_tally(struct tally *tally, const struct facts *facts, const uint32_t *jobs,
			 uint32_t count, struct arena *arena)
{
	uint32_t room = 1;

	while (room < count)
		room *= 2;
	tally->entries = arena_new_array(arena, struct entry, count);
	tally->slots = arena_new_array(arena, uint32_t, room);
	tally->mask = room - 1;
	for (uint32_t id = 1; id < count; id++) {
		const struct shape *shape;

		if (!jobs[id])
			continue;
		shape = shape_get(facts, (struct shape_id){ id });
		if (shape->gpus && !shape->role_count && !shape->slice)
			tally_add(tally, id, shape, (uint64_t)jobs[id] * shape->tasks_min);
	}
}

/* The frequent ones, falling; those as frequent as the first that has no room are left out with it. */
static uint32_t frequent_pick(const struct tally *tally, const struct entry **ret)
{
	uint32_t count = 0;
	uint64_t bar = 0;

	for (uint32_t i = 0; i < tally->count; i++) {
		const struct entry *entry = &tally->entries[i];
		uint32_t at = count < DEMAND_WISHES ? count++ : DEMAND_WISHES;

		while (at > 0 && ret[at - 1]->tasks < entry->tasks) {
			if (at < DEMAND_WISHES)
				ret[at] = ret[at - 1];
			else
				bar = ret[at - 1]->tasks > bar ? ret[at - 1]->tasks : bar;
			at--;
		}
		if (at < DEMAND_WISHES)
			ret[at] = entry;
		else
			bar = entry->tasks > bar ? entry->tasks : bar;
	}
	while (count && ret[count - 1]->tasks <= bar)
		count--;
	return count;
}

/* --- slots ---------------------------------------------------------------------------------------------- */

static void slot_on(const struct demand *demand, uint32_t slot, uint32_t class,
		    uint32_t gpu_memory_mib, struct demand_row *ret)
{
	const struct demand_wish *wish = &demand->wishes[slot];
	const struct shape shape = { .gpu_part = wish->part, .gpu_part_mib = wish->part_mib };
	bool part = wish->part || wish->part_mib;
	uint32_t share = !part        ? 0
			 : wish->part ? wish->part
				      : shape_part(&shape, gpu_memory_mib).share;

	ret->runs[slot] = wish->classes >> class & 1 && (!part || share) ? -1 : 0;
	ret->share[slot] = (int32_t)share;
}

void demand_row_make(const struct demand *demand, uint32_t class, uint32_t gpu_memory_mib,
		     struct demand_row *ret)
{
	for (uint32_t slot = 0; slot < DEMAND_WISHES; slot++)
		slot_on(demand, slot, class, gpu_memory_mib, ret);
}

static int32_t clipped(int64_t amount)
{
	return amount < INT32_MAX ? (int32_t)amount : INT32_MAX;
}

static void slot_fill(struct space *space, uint32_t slot, uint32_t id, const struct shape *shape)
{
	struct demand *demand = &space->demand;
	struct demand_wish *wish = &demand->wishes[slot];
	uint64_t classes;

	demand->shapes[slot] = id;
	space_classes_of(space, shape, &classes);
	*wish = (struct demand_wish){ .classes = classes,
				      .cpu_milli = shape->cpu_milli,
				      .ram_mib = shape->memory_mib,
				      .gpus = shape->gpus,
				      .part = shape->gpu_part,
				      .part_mib = shape->gpu_part_mib };
	demand->cpu_milli[slot] = clipped(wish->cpu_milli);
	demand->ram_mib[slot] = clipped(wish->ram_mib);
	demand->gpus[slot] = shape_is_part(shape) ? 0 : (int32_t)wish->gpus;
	for (uint32_t class = 0; class < space->class_count && class < CLASS_MIXED; class ++)
		slot_on(demand, slot, class, space->traits.at[class].gpu_memory_mib,
			&demand->rows[class]);
}

static void slot_weigh(struct demand *demand, uint32_t slot, uint32_t weight)
{
	const struct demand_wish *wish = &demand->wishes[slot];

	if (!weight || !wish->classes)
		return;
	demand->wishes[slot].weight = weight;
	demand->weight[slot] = (int32_t)weight;
	demand->whole[slot] = wish->part || wish->part_mib ? 0 : (int32_t)weight;
	demand->all += (int32_t)weight;
	demand->count++;
}

static uint32_t slot_of(const struct demand *demand, uint32_t id)
{
	uint32_t slot = 0;

	while (slot < DEMAND_WISHES && demand->shapes[slot] != id)
		slot++;
	return slot;
}

/* Those that had a slot keep it; the others get one that nobody has now. */
static void slots_give(struct space *space, const struct entry **frequent, uint32_t count,
		       uint64_t all)
{
	struct demand *demand = &space->demand;
	bool taken[DEMAND_WISHES] = { false };
	uint32_t slots[DEMAND_WISHES], next = 0;

	for (uint32_t i = 0; i < count; i++) {
		slots[i] = slot_of(demand, frequent[i]->id);
		if (slots[i] < DEMAND_WISHES)
			taken[slots[i]] = true;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (slots[i] == DEMAND_WISHES) {
			while (taken[next])
				next++;
			slots[i] = next++;
			slot_fill(space, slots[i], frequent[i]->id, frequent[i]->shape);
		}
		slot_weigh(demand, slots[i], (uint32_t)(frequent[i]->tasks * DEMAND_WEIGHT / all));
	}
}

static void weights_clear(struct demand *demand)
{
	demand->count = 0;
	demand->all = 0;
	memset(demand->weight, 0, sizeof(demand->weight));
	memset(demand->whole, 0, sizeof(demand->whole));
	for (uint32_t slot = 0; slot < DEMAND_WISHES; slot++)
		demand->wishes[slot].weight = 0;
}

static void set_add(struct demand *demand, uint64_t classes, int64_t amount)
{
	uint32_t at = 0;

	while (at < demand->group_count && demand->groups[at].classes != classes)
		at++;
	if (at == demand->group_count)
		demand->groups[demand->group_count++] = (struct demand_group){ .classes = classes };
	demand->groups[at].amount += amount;
	demand->amount += amount;
}

/* The share of a part given in memory is that of the first class that runs it. */
static void sets_make(struct demand *demand)
{
	demand->group_count = 0;
	demand->amount = 0;
	for (uint32_t slot = 0; slot < DEMAND_WISHES; slot++) {
		const struct demand_wish *wish = &demand->wishes[slot];
		uint32_t class;
		int64_t share = (int64_t)wish->gpus * GPU_SHARE;

		if (!wish->weight)
			continue;
		class = (uint32_t)__builtin_ctzll(wish->classes);
		if (wish->part || wish->part_mib)
			share = class < CLASS_MIXED ? (int64_t)demand->rows[class].share[slot]
						    : (int64_t)wish->part;
		set_add(demand, wish->classes, share * wish->weight);
	}
}

void demand_set(struct space *space, const struct facts *facts, const uint32_t *jobs,
		uint32_t count, struct arena *arena)
{
	const struct entry *frequent[DEMAND_WISHES];
	struct demand *demand = &space->demand;
	struct tally tally = { 0 };
	bool choosy = false;
	uint64_t all = 0;
	uint32_t found;

	weights_clear(demand);
	for (uint32_t id = 1; id < count && !choosy; id++)
		choosy = jobs[id] && shape_is_choosy(shape_get(facts, (struct shape_id){ id }));
	if (!choosy)
		return;
	wishes_tally(&tally, facts, jobs, count, arena);
	found = frequent_pick(&tally, frequent);
	for (uint32_t i = 0; i < found; i++)
		all += frequent[i]->tasks;
	demand->many = all >= DEMAND_MANY;
	slots_give(space, frequent, found, all);
	if (demand->count == 1)
		demand->count = 0;
	sets_make(demand);
}

static void attempt_take(struct space *space, const struct facts *facts, const struct job *job)
{
	const struct attempt *attempt = attempt_get(facts, job->attempt);
	const struct shape *shape = shape_get(facts, job->shape);

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		const struct task *task = table_get(&facts->tasks, attempt->first_task + i);
		int32_t rank = space_rank(space, task->node.v);
		struct hold hold;

		if (!task_holds(task) || rank == RANK_NONE)
			continue;
		hold = task_hold(task, shape, i);
		space_take(space, (uint32_t)rank, &hold);
	}
	space_commit(space);
}

void demand_fragments(const struct facts *facts, struct arena *arena, int64_t *ret)
{
	uint32_t shapes = facts->shapes.count + 1, *jobs = arena_new_array(arena, uint32_t, shapes);
	struct space space;

	memset(ret, 0, facts->nodes.count * sizeof(*ret));
	space_init(&space);
	space_build(&space, facts);
	for (uint32_t id = 1; id <= facts->jobs.count; id++) {
		const struct job *job = job_get(facts, (struct job_id){ id });

		if (!job_is_waiting(job) && !job_is_live(job))
			continue;
		jobs[job->shape.v]++;
		if (job->attempt.v)
			attempt_take(&space, facts, job);
	}
	demand_set(&space, facts, jobs, shapes, arena);
	for (uint32_t rank = 0; rank < space.node_count; rank++)
		ret[space_at(&space, rank)->node - 1] = demand_fragment(&space, rank);
	space_deinit(&space);
}
