/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two jobs swap places. By hand, two nodes of 4 GPUs, and a job that waits for two on one node:
 *
 *	n0 www.	n1 ssf.		`w` (3) fits nowhere else, nor does `f` move, and `s` (2) alone gains nothing
 *	n0 ss..	n1 wwwf		each in the place of the other: two GPUs of n0 are free
 *
 * Each is promised a place that the other leaves, so both are stopped before either starts again. Only a smaller job on one node is asked, as a
 * larger one would leave less free than there was.
 */
#include "core/rearranging/plan.h"

static bool place_is_on(const struct placement *place, uint32_t rank)
{
	for (uint32_t i = 0; i < place->count; i++)
		if (place->ranks[i] == rank)
			return true;
	return false;
}

bool swap_find(struct pass *pass, const uint64_t *barred, const struct mover *m,
	       const struct mover *other, struct swap *ret)
{
	bool found;

	mover_give(pass, other);
	found = mover_find_on(pass, other->first, m, &ret->to);
	mover_take(pass, other);
	if (!found)
		return false;
	place_keep(pass, &ret->to, m->shape);
	mover_give(pass, m);
	found = mover_find(pass, barred, other, &ret->other_to);
	mover_take(pass, m);
	if (!found || place_is_on(&ret->other_to, other->first)) {
		place_free(pass, &ret->to, m->shape);
		return false;
	}
	place_keep(pass, &ret->other_to, other->shape);
	ret->other_waits = place_is_on(&ret->other_to, m->first);
	return true;
}
