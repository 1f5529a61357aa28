/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts from demand. Waiting tasks that ask for slices, and that their queues would let start, less the slices that are free, are what
 * has to be cut. GPUs are taken one by one: first those that are cut and idle, then whole ones on the node with the fewest free. Each
 * gets the layout that serves most of what is left.
 *
 *	waiting: four times 1g.10gb, twice 3g.40gb; two idle H100s
 *	first GPU	3g + 3g serves 6 compute slices, 1g x 4 + 3g serves 7: that
 *	second		one 3g is left: 3g + 3g and 3g + 1g x 4 are of what is asked for; the latter has more of it
 *
 * One GPU after the other is not always the best for all of them together: on random demands for two GPUs it serves 98 of 100 compute
 * slices that the best of all choices serves (layouts_test.c).
 */
#include "core/rearranging/layouts.h"

#include <string.h>

#include "base/check.h"

enum { WISHES_MAX = 64 };

/* --- one GPU ---------------------------------------------------------------------------------------------------- */

static uint32_t count_of(uint32_t layout, uint32_t kind)
{
	uint32_t count = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++)
		count += layout_kind(layout, start) == kind;
	return count;
}

uint64_t layout_serves(const struct geometry *geometry, uint32_t layout,
		       const struct slice_demand *demand)
{
	const struct slice_profile *profile = geometry_wished(geometry, demand->wish);
	uint64_t count = profile ? count_of(layout, profile->kind) : 0;

	return count < demand->tasks ? count : demand->tasks;
}

static uint64_t compute_asked(const struct geometry *geometry, uint32_t layout,
			      const struct slice_demand *demand)
{
	const struct slice_profile *profile = geometry_wished(geometry, demand->wish);

	return profile && demand->asked
		       ? (uint64_t)count_of(layout, profile->kind) * slice_compute(profile->kind)
		       : 0;
}

/* Compute slices for demand of this rank; tasks in all. */
static uint64_t served(const struct geometry *geometry, uint32_t layout,
		       const struct slice_demand *demand, uint32_t count, const uint64_t *rank)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t tasks = layout_serves(geometry, layout, &demand[i]);

		if (!rank)
			sum += tasks;
		else if (demand[i].rank == *rank)
			sum += tasks * slice_wish_of(demand[i].wish).compute;
	}
	return sum;
}

static uint32_t instances(uint32_t layout)
{
	uint32_t count = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++)
		count += layout_kind(layout, start) != SLICE_NONE;
	return count;
}

static bool layout_is_better(const struct geometry *geometry, uint32_t a, uint32_t b,
			     const struct slice_demand *demand, uint32_t count)
{
	uint64_t more, less, asked_a = 0, asked_b = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (i && demand[i].rank == demand[i - 1].rank)
			continue;
		more = served(geometry, a, demand, count, &demand[i].rank);
		less = served(geometry, b, demand, count, &demand[i].rank);
		if (more != less)
			return more > less;
	}
	more = served(geometry, a, demand, count, NULL);
	less = served(geometry, b, demand, count, NULL);
	if (more != less)
		return more > less;
	for (uint32_t i = 0; i < count; i++) {
		asked_a += compute_asked(geometry, a, &demand[i]);
		asked_b += compute_asked(geometry, b, &demand[i]);
	}
	if (asked_a != asked_b)
		return asked_a > asked_b;
	if (layout_compute(a) != layout_compute(b))
		return layout_compute(a) > layout_compute(b);
	if (instances(a) != instances(b))
		return instances(a) < instances(b);
	return a < b;
}

/* One slice with media engines, where somebody asks for it: it takes the place of one without. */
static uint32_t with_media(const struct geometry *geometry, uint32_t layout,
			   const struct slice_demand *demand, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct slice_profile *p = geometry_wished(geometry, demand[i].wish);
		uint32_t plain = p && p->kind == SLICE_1G_MEDIA   ? SLICE_1G
				 : p && p->kind == SLICE_2G_MEDIA ? SLICE_2G
								  : SLICE_NONE;

		for (uint32_t start = 0; plain && demand[i].tasks && start < LAYOUT_SLOTS;
		     start++) {
			uint32_t other = (layout & ~(UINT32_C(15) << start * 4)) |
					 (uint32_t)p->kind << start * 4;

			if (layout_kind(layout, start) == plain &&
			    layout_is_legal(geometry, other) &&
			    layout_is_better(geometry, other, layout, demand, count))
				return other;
		}
	}
	return layout;
}

uint32_t layout_choose(const struct geometry *geometry, const struct slice_demand *demand,
		       uint32_t count)
{
	uint32_t all[LAYOUTS_MAX], layouts = layouts_all(geometry, true, all), best = 0;

	for (uint32_t i = 0; i < layouts; i++) {
		uint32_t layout = with_media(geometry, all[i], demand, count);

		if (!best || layout_is_better(geometry, layout, best, demand, count))
			best = layout;
	}
	return served(geometry, best, demand, count, NULL) ? best : 0;
}

/* --- what is asked for ------------------------------------------------------------------------------------------- */

struct plan {
	struct pass *pass;
	struct slice_demand demand[WISHES_MAX];
	uint32_t count;
	uint64_t open[WISHES_MAX]; /* slices that are free, by index in demand */
	uint64_t waiting; /* tasks in all */
	bool others_wait; /* for whole GPUs, or parts */
	int64_t *taken; /* by queue: shares of those who are counted as waiting */
};

static struct slice_demand *demand_find(struct plan *plan, uint32_t wish)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->demand[i].wish == wish)
			return &plan->demand[i];
	if (plan->count == WISHES_MAX)
		return NULL;
	plan->demand[plan->count] = (struct slice_demand){ .wish = wish };
	return &plan->demand[plan->count++];
}

/* So many shares more fit into the limits of the queue and all above it. */
static bool limits_allow(const struct plan *plan, uint32_t queue, int64_t share)
{
	const struct pass *pass = plan->pass;

	for (uint32_t id = queue; id; id = pass->view->queues.at[id].parent) {
		const struct standing *at = &pass->standings.at[id];

		if (at->limit != INT64_MAX && at->hold + plan->taken[id] + share > at->limit)
			return false;
	}
	return true;
}

/* Tasks of the jobs that wait in the bucket and may start; they count in their queues from then on. */
static uint64_t bucket_tasks(struct plan *plan, const struct bucket *bucket,
			     const struct shape *shape)
{
	const struct pass *pass = plan->pass;
	int64_t share = (int64_t)shape->gpu_part * shape->tasks_min;
	uint64_t tasks = 0;
	struct sorted_walk walk;

	for (bool any = sorted_begin(&pass->view->pool, bucket->jobs, &walk); any;
	     any = sorted_next(&pass->view->pool, &walk)) {
		const struct job *job = job_get(pass->facts, (struct job_id){ walk.id });

		if (job->promise || !standing_is_open(&pass->standings, job) ||
		    !limits_allow(plan, bucket->queue, share))
			continue;
		for (uint32_t id = bucket->queue; id; id = pass->view->queues.at[id].parent)
			plan->taken[id] += share;
		tasks += shape->tasks_min;
	}
	return tasks;
}

static void demand_sort(struct plan *plan)
{
	for (uint32_t i = 1; i < plan->count; i++)
		for (uint32_t k = i; k > 0 && (plan->demand[k].rank > plan->demand[k - 1].rank ||
					       (plan->demand[k].rank == plan->demand[k - 1].rank &&
						plan->demand[k].wish > plan->demand[k - 1].wish));
		     k--) {
			struct slice_demand other = plan->demand[k];

			plan->demand[k] = plan->demand[k - 1];
			plan->demand[k - 1] = other;
		}
}

static void demand_read(struct plan *plan)
{
	const struct pass *pass = plan->pass;
	const struct view *view = pass->view;

	plan->taken = arena_new_array(pass->arena, int64_t, pass->standings.count + 1);
	for (uint32_t i = 1; i <= view->bucket_count; i++) {
		const struct bucket *bucket = &view->buckets.at[i];
		const struct shape *shape;
		struct slice_demand *demand;
		uint64_t tasks;

		if (!bucket->jobs)
			continue;
		shape = shape_get(pass->facts, (struct shape_id){ bucket->shape });
		plan->others_wait |= shape->gpus && !shape->slice;
		demand = shape->slice ? demand_find(plan, shape->slice) : NULL;
		tasks = demand ? bucket_tasks(plan, bucket, shape) : 0;
		if (!tasks)
			continue;
		if (!demand->tasks || bucket->rank > demand->rank)
			demand->rank = bucket->rank;
		demand->tasks += tasks;
		plan->waiting += tasks;
	}
	for (uint32_t id = 1; id < view->shape_jobs.buf.size / sizeof(uint32_t); id++) {
		const struct shape *shape = shape_get(pass->facts, (struct shape_id){ id });
		struct slice_demand *demand;

		if (!shape->slice || !view->shape_jobs.at[id])
			continue;
		demand = demand_find(plan, shape->slice);
		if (demand)
			demand->asked = true;
	}
	demand_sort(plan);
}

/* Nodes on which a waiting job that wants this slice may run, as far as what they are goes; and with its processors and memory. */
static bool node_suits(const struct plan *plan, uint32_t wish, uint32_t rank)
{
	const struct pass *pass = plan->pass;
	const struct space *space = &pass->view->space;
	const struct place_node *node = space_at(space, rank);

	for (uint32_t i = 1; i <= pass->view->bucket_count; i++) {
		const struct bucket *bucket = &pass->view->buckets.at[i];
		const struct shape *shape =
			bucket->jobs ? shape_get(pass->facts, (struct shape_id){ bucket->shape })
				     : NULL;

		if (shape && shape->slice == wish && node->cpu_free >= shape->cpu_milli &&
		    node->ram_free >= shape->memory_mib && space_node_suits(space, rank, shape))
			return true;
	}
	return false;
}

/* --- which GPUs ----------------------------------------------------------------------------------------------------- */

static bool is_reserved(const struct pass *pass, uint32_t rank, uint32_t gpu)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		const struct placement *place = &pass->reservations[i].place;

		for (uint32_t k = 0; k < place->count; k++)
			if (place->ranks[k] == rank && place->masks[k] >> gpu & 1)
				return true;
	}
	return false;
}

/* Reserved in advance they are whole, also before that begins. */
static uint32_t gpus_booked(const struct facts *facts, uint32_t node)
{
	uint32_t gpus = 0;

	for (uint32_t row = 1; row <= facts->bookings.count; row++) {
		const struct booking *b = booking_get(facts, row);

		for (uint32_t i = 0; b->name.v && i < BOOKING_NODES_MAX && b->node[i]; i++)
			if (b->node[i] == node)
				gpus |= b->gpus ? b->mask[i] : UINT32_MAX;
	}
	return gpus;
}

/* GPUs of the node that may be cut now: nobody holds or is promised anything of them. */
static uint32_t gpus_idle(const struct pass *pass, uint32_t rank)
{
	const struct space *space = &pass->view->space;
	const struct place_node *n = space_at(space, rank);
	const struct node *node = node_get(pass->facts, (struct node_id){ n->node });
	uint32_t idle = place_node_free(n), cut = n->sliced & n->usable & ~n->blocked;

	if (!n->ready || node->partitioning != PARTITIONING_AUTO || !node->simulated)
		return 0;
	for (; cut; cut &= cut - 1) {
		const struct gpu_parts *parts = parts_of(space, rank, (uint32_t)__builtin_ctz(cut));

		if (!parts->held.count && !parts->promised.count)
			idle |= cut & -cut;
	}
	idle &= ~gpus_booked(pass->facts, n->node);
	for (uint32_t gpus = idle; gpus; gpus &= gpus - 1)
		if (is_reserved(pass, rank, (uint32_t)__builtin_ctz(gpus)))
			idle &= ~(gpus & -gpus);
	return idle;
}

static const struct geometry *geometry_at(const struct space *space, uint32_t rank)
{
	return geometry_get(space->traits.at[space_at(space, rank)->traits].geometry);
}

/* Adds the slices of the GPU that are free, by name. */
static void open_add(struct plan *plan, uint32_t rank, uint32_t gpu, uint64_t *open)
{
	const struct space *space = &plan->pass->view->space;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct slice_profile *p =
			geometry_wished(geometry_at(space, rank), plan->demand[i].wish);

		open[i] += p ? bits_count(slices_open(space, rank, gpu, p->kind)) : 0;
	}
}

static void open_read(struct plan *plan)
{
	const struct space *space = &plan->pass->view->space;

	for (uint32_t rank = 0; rank < space->node_count; rank++)
		for (uint32_t gpus = space_at(space, rank)->sliced; gpus; gpus &= gpus - 1)
			open_add(plan, rank, (uint32_t)__builtin_ctz(gpus), plan->open);
}

/* What is left to serve by slices for which the node will do. Those that are free already serve who waits for them, but for those of
 * this GPU, which may be cut anew. */
static uint64_t demand_here(struct plan *plan, uint32_t rank, uint32_t gpu,
			    struct slice_demand *ret)
{
	uint64_t tasks = 0, own[WISHES_MAX] = { 0 };

	memcpy(ret, plan->demand, plan->count * sizeof(*ret));
	open_add(plan, rank, gpu, own);
	for (uint32_t i = 0; i < plan->count; i++) {
		uint64_t others = plan->open[i] - own[i];

		ret[i].tasks -= others < ret[i].tasks ? others : ret[i].tasks;
		if (ret[i].tasks && !node_suits(plan, ret[i].wish, rank))
			ret[i].tasks = 0;
		tasks += ret[i].tasks;
	}
	return tasks;
}

static void layout_emit(struct plan *plan, uint32_t rank, uint32_t gpu, uint32_t layout,
			const char *reason)
{
	struct pass *pass = plan->pass;
	struct event_layout_set *e = &pass_emit(pass, EVENT_LAYOUT_SET)->layout_set;
	int64_t *numbers = arena_new_array(pass->arena, int64_t, 2);

	numbers[0] = gpu;
	numbers[1] = layout;
	e->node = space_at(&pass->view->space, rank)->node;
	e->gpus = numbers;
	e->layouts = numbers + 1;
	e->gpus_count = e->layouts_count = 1;
	e->reason = reason;
	pass->more = true;
}

struct choice {
	uint32_t rank, gpu, layout,
		free; /* free: whole GPUs of the node; of one that is cut already 0 */
};

/* The GPU to cut next: one that is cut already, else on the node with the fewest whole ones free; the first of them. */
static bool gpu_choose(struct plan *plan, struct choice *ret)
{
	const struct space *space = &plan->pass->view->space;
	struct slice_demand demand[WISHES_MAX];
	bool found = false;

	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct geometry *geometry = geometry_at(space, rank);
		const struct place_node *n = space_at(space, rank);

		for (uint32_t gpus = geometry ? gpus_idle(plan->pass, rank) : 0; gpus;
		     gpus &= gpus - 1) {
			uint32_t gpu = (uint32_t)__builtin_ctz(gpus), layout,
				 free = n->sliced >> gpu & 1 ? 0 : bits_count(place_node_free(n)),
				 now = parts_of(space, rank, gpu)->layout;

			if ((found && free >= ret->free) || !demand_here(plan, rank, gpu, demand))
				continue;
			layout = layout_choose(geometry, demand, plan->count);
			if (!layout ||
			    (now &&
			     !layout_is_better(geometry, layout, now, demand, plan->count)) ||
			    (now && served(geometry, layout, demand, plan->count, NULL) <=
					    served(geometry, now, demand, plan->count, NULL)))
				continue;
			*ret = (struct choice){ rank, gpu, layout, free };
			found = true;
		}
	}
	return found;
}

/* --- whole again ------------------------------------------------------------------------------------------------- */

/* Does anybody ask for a slice of the layout; does anybody who waits? */
static bool layout_is_asked(const struct plan *plan, const struct geometry *geometry,
			    uint32_t layout, bool waiting)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct slice_demand *d = &plan->demand[i];
		const struct slice_profile *p = geometry_wished(geometry, d->wish);

		if (p && (waiting ? d->tasks > 0 : d->asked) && count_of(layout, p->kind))
			return true;
	}
	return false;
}

static void merge_idle(struct plan *plan)
{
	const struct space *space = &plan->pass->view->space;

	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *n = space_at(space, rank);
		uint32_t gpus = n->sliced ? gpus_idle(plan->pass, rank) & n->sliced : 0;

		if (gpus && space->traits.at[n->traits].slices_only)
			continue;
		for (; gpus; gpus &= gpus - 1) {
			uint32_t gpu = (uint32_t)__builtin_ctz(gpus),
				 layout = parts_of(space, rank, gpu)->layout;

			if (layout_is_asked(plan, geometry_at(space, rank), layout,
					    plan->others_wait))
				continue;
			layout_emit(plan, rank, gpu, 0,
				    plan->others_wait ? "other work waits for the whole GPU"
						      : "nobody asks for its slices");
		}
	}
}

void layouts_run(struct pass *pass)
{
	struct plan plan = { .pass = pass };
	struct choice choice;

	if (pass->changes || pass->more || !pass->view->space.slices)
		return;
	demand_read(&plan);
	open_read(&plan);
	if (plan.waiting && gpu_choose(&plan, &choice))
		layout_emit(&plan, choice.rank, choice.gpu, choice.layout,
			    "waiting jobs ask for it");
	else
		merge_idle(&plan);
}
