/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where ranks that come to a running attempt may lie (resize.c): the places that they had, or others beside the ranks that run. These are on
 * their node, else in the narrowest domain that holds all of them, and so on outwards, as far as the job's topology allows; of their model
 * where the job mixes none; apart from them where it says so.
 */
#include "core/scheduling/pass.h"

static inline const struct task *task_at(const struct pass *pass, const struct attempt *attempt,
					 uint32_t rank)
{
	return table_get(&pass->facts->tasks, attempt->first_task + rank);
}

/* Of its ranks, when all must be of one; 0 = none runs, or any will do. */
struct name_id ranks_model(const struct pass *pass, const struct shape *shape,
			   const struct attempt *attempt);
/* For the most of these ranks that fit, up to `tasks`, at least `least`: how many; 0 = there is no place. NULL ranks = whichever. */
uint32_t place_beside(struct pass *pass, const struct job *job, const struct attempt *attempt,
		      const int64_t *ranks, uint32_t tasks, uint32_t least, struct placement *ret);
/* The places that these ranks had, when all are free. */
bool place_again(struct pass *pass, const struct shape *shape, const struct attempt *attempt,
		 const int64_t *ranks, uint32_t count, struct placement *ret);
