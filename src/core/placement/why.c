/* SPDX-License-Identifier: Apache-2.0 */
/* Why there is no place: the first cause that holds, in figures. */
#include "base/check.h"
#include "core/placement/search.h"

void verdict_set(struct verdict *ret, enum reason code, uint8_t level, uint32_t at, int64_t have,
		 int64_t need)
{
	if (ret)
		*ret = (struct verdict){
			.code = (uint16_t)code, .level = level, .at = at, .have = have, .need = need
		};
}

static enum reason trait_reason(enum trait trait)
{
	switch (trait) {
	case TRAIT_MODEL:
	case TRAIT_SPEED:
	case TRAIT_CAPABILITY: return REASON_MODEL;
	case TRAIT_SLICES: return REASON_PARTITION;
	case TRAIT_MEMORY: return REASON_MEMORY;
	case TRAIT_REGION: return REASON_RESIDENCY;
	case TRAIT_CLASS:
	case TRAIT_LABEL:
	case TRAIT_MASK:
	case TRAIT_TAINT: return REASON_NODE_CLASS;
	case TRAIT_DRIVER:
	case TRAIT_CUDA: return REASON_DRIVER;
	case TRAIT_CAPACITY: return REASON_SPOT;
	case TRAIT_NONE:
	case TRAIT_END: break;
	}
	return REASON_NONE;
}

/* How much of the trait a node has, and the wish needs. */
static int64_t trait_amount(const struct traits *traits, const struct shape *shape,
			    enum trait trait)
{
	return trait == TRAIT_MEMORY
		       ? (shape->gpu_part ? traits_memory(traits, shape) : traits->gpu_memory_mib)
	       : trait == TRAIT_SPEED      ? shape_speed(shape, traits->model)
	       : trait == TRAIT_CAPABILITY ? traits->capability
	       : trait == TRAIT_DRIVER     ? traits->driver
	       : trait == TRAIT_CUDA       ? traits->cuda
					   : 0;
}

static int64_t trait_need(const struct shape *shape, enum trait trait)
{
	return trait == TRAIT_MEMORY
		       ? (shape->gpu_part_mib > shape->gpu_memory_mib ? shape->gpu_part_mib
								      : shape->gpu_memory_mib)
	       : trait == TRAIT_SPEED      ? shape->min_throughput
	       : trait == TRAIT_CAPABILITY ? shape->min_capability
	       : trait == TRAIT_DRIVER     ? shape->min_driver
	       : trait == TRAIT_CUDA       ? shape->min_cuda
					   : 1;
}

/* The first trait, in the order of their list, that is in the way; TRAIT_END = none. */
static enum trait trait_first(const struct traits *traits, const struct shape *shape)
{
	enum trait trait = TRAIT_MODEL;

	while (trait < TRAIT_END && traits_meet(traits, shape, trait))
		trait++;
	return trait;
}

/* The trait is in the way for these: `have` of the verdict becomes the best of them, `at` the first taint. */
static void trait_note(const struct traits *traits, const struct shape *shape, enum trait trait,
		       struct verdict *v)
{
	int64_t amount = trait_amount(traits, shape, trait);

	if (v->code == REASON_NONE)
		verdict_set(v, trait_reason(trait), (uint8_t)trait, 0, amount,
			    trait_need(shape, trait));
	v->have = amount > v->have ? amount : v->have;
	if (trait == TRAIT_TAINT && !v->at)
		v->at = traits_taint(traits, shape).v;
}

/* The trait that the last remaining nodes lack, when nodes are sorted out trait by trait. */
int class_verdict(const struct space *space, const struct shape *shape, struct verdict *ret)
{
	enum trait fails = TRAIT_MODEL;
	struct verdict v = { 0 };

	verdict_set(&v, REASON_MODEL, TRAIT_MODEL, 0, 0, 1); /* there is no node at all */
	for (uint32_t i = 0; i < space->traits_count; i++) {
		const struct traits *traits = &space->traits.at[i];
		enum trait trait = trait_first(traits, shape);

		CHECK(trait < TRAIT_END);
		if (trait < fails)
			continue;
		if (trait > fails)
			v = (struct verdict){ 0 };
		fails = trait;
		trait_note(traits, shape, trait, &v);
	}
	if (ret)
		*ret = v;
	return PLACE_NO;
}

uint32_t place_shut_out(const struct space *space, const struct shape *shape, enum trait trait,
			struct verdict *ret_why)
{
	uint32_t gpus = 0;

	*ret_why = (struct verdict){ 0 };
	for (uint32_t rank = 0; rank < space->node_count; rank++) {
		const struct place_node *node = space_at(space, rank);
		const struct traits *traits = &space->traits.at[node->traits];
		uint32_t free = bits_count(place_node_free(node));

		if (!free || trait_first(traits, shape) != trait)
			continue;
		gpus += free;
		trait_note(traits, shape, trait, ret_why);
	}
	return gpus;
}

uint64_t tasks_anywhere(const struct search *search, const struct shape *shape,
			const struct place_request *request)
{
	struct search other = *search;
	struct histogram histogram;

	other.shape = shape;
	other.exact = shape->gpus == 0 || other.part || shape->cpu_milli || shape->memory_mib ||
		      other.classes >> CLASS_MIXED & 1 || other.barred || shape->align;
	if (request->rank != RANK_NONE)
		return node_capacity(&other, (uint32_t)request->rank);
	histogram_make(&other, request->domain, &histogram);
	return histogram_tasks(&histogram);
}

/* The first that holds: too few GPUs; processors; memory of the node; split up; too narrow a level. */
int place_verdict(const struct search *search, const struct place_request *request, uint64_t most,
		  uint32_t most_at, uint8_t level, struct verdict *ret)
{
	struct shape bare = *search->shape, one;
	int64_t free = space_free_gpus(search->space, request->domain, search->classes);
	int64_t need = (int64_t)search->tasks * search->shape->gpus;

	if (!ret)
		return PLACE_NO;
	bare.cpu_milli = bare.memory_mib = 0;
	bare.require = 0;
	bare.align = ALIGN_NONE;
	if (search->part && part_verdict(search, request, ret)) {
		return PLACE_NO;
	} else if (!search->part && free < need) {
		verdict_set(ret, REASON_CAPACITY, 0, 0, free, need);
	} else if (!search->part && tasks_anywhere(search, &bare, request) < search->tasks) {
		verdict_set(ret, REASON_FRAGMENTATION, 0, 0,
			    (int64_t)tasks_anywhere(search, &bare, request), search->tasks);
	} else if (one = bare, one.cpu_milli = search->shape->cpu_milli,
		   tasks_anywhere(search, &one, request) < search->tasks) {
		verdict_set(ret, REASON_CPU, 0, 0, (int64_t)tasks_anywhere(search, &one, request),
			    search->tasks);
	} else if (one = *search->shape, one.require = 0, one.align = ALIGN_NONE,
		   tasks_anywhere(search, &one, request) < search->tasks) {
		verdict_set(ret, REASON_RAM, 0, 0, (int64_t)tasks_anywhere(search, &one, request),
			    search->tasks);
	} else if (one = *search->shape, one.require = 0,
		   one.align && tasks_anywhere(search, &one, request) < search->tasks) {
		verdict_set(ret, REASON_ALIGNMENT, 0, 0,
			    (int64_t)tasks_anywhere(search, &one, request), search->tasks);
	} else if (search->slowdown) {
		verdict_set(ret, REASON_SLOWDOWN, 0, 0, (int64_t)search->slowdown - 1000,
			    search->shape->max_slowdown);
	} else if (!shape_is_apart(search->shape, search->tasks) ||
		   !spread_verdict(search, request, ret)) {
		verdict_set(ret, REASON_TOPOLOGY, level, most_at, (int64_t)most, search->tasks);
	}
	return PLACE_NO;
}
