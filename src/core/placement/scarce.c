/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which classes of nodes are scarce for a task: GPUs of these classes are expected to be needed by tasks that do not accept all classes
 * that this one accepts.
 *
 *	need of a set of classes	its part of all demand (demand.h), of the GPUs that are free in the cluster now: the mix of
 *					tasks that arrive until the cluster is full is expected to be the mix of today
 *	load of a class			for each set that has it, and that does not accept all the task accepts: need / free GPUs of that set
 *	scarce				load of at least two thirds
 *
 *	100 GPUs are free, of these 80 of model A and 20 of model B. 15 % of the demand accepts B alone, the rest accepts both.
 *	need of B: 15; load of B: 15 / 20 = 0.75, so tasks that accept both go to A. With 30 of B free it is 0.5: they go to either.
 *
 * The mix is a sample, and tasks with a narrow wish may arrive late, so a class is kept before its load reaches 1. On the lists of openb
 * with wishes for models 0.6 and 0.85 are about as good; 0.4 fills the other nodes too badly, and 1 keeps too little
 * (README.md). A scarce class is never closed: without room elsewhere the task starts there.
 */
#include "core/placement/search.h"

enum { LOAD_ONE = 1 << 16, LOAD_SCARCE = 2 * LOAD_ONE / 3 };

/* LOAD_ONE = the wishes of the set are expected to need all that is free for them. */
static int64_t set_load(const struct demand *demand, const struct demand_group *set,
			int64_t free_all, const int64_t free_of[CLASSES_MAX])
{
	int64_t part = set->amount * LOAD_ONE / demand->amount, free = 0;

	for (uint64_t classes = set->classes; classes; classes &= classes - 1)
		free += free_of[__builtin_ctzll(classes)];
	return free ? part * free_all / free : 0;
}

uint64_t scarce_classes(const struct search *search)
{
	const struct demand *demand = &search->space->demand;
	int64_t free_of[CLASSES_MAX] = { 0 }, load_of[CLASSES_MAX] = { 0 }, free_all = 0;
	uint64_t scarce = 0;

	if (!demand->many || !demand->amount || demand->group_count < 2 ||
	    !(search->classes & (search->classes - 1)))
		return 0;
	for (uint32_t class = 0; class < search->space->class_count; class ++) {
		free_of[class] = search->space->free_gpus[class];
		free_all += free_of[class];
	}
	for (uint32_t i = 0; i < demand->group_count; i++) {
		const struct demand_group *set = &demand->groups[i];
		int64_t load;

		if (!(search->classes & ~set->classes) || !(search->classes & set->classes))
			continue;
		load = set_load(demand, set, free_all, free_of);
		for (uint64_t in = set->classes & search->classes; in; in &= in - 1)
			load_of[__builtin_ctzll(in)] += load;
	}
	for (uint64_t in = search->classes; in; in &= in - 1)
		if (load_of[__builtin_ctzll(in)] >= LOAD_SCARCE)
			scarce |= in & -in;
	return scarce;
}
