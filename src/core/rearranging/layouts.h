/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Into which slices idle GPUs are cut, from what waiting jobs ask for: only on nodes that say `partitioning: auto`, only GPUs of which
 * nothing is held, promised or reserved, and only when the pass decided nothing else. README.md has worked examples.
 */
#include "core/partitioning/geometry.h"
#include "core/scheduling/pass.h"

/* Slices of one name that jobs wait for. */
struct slice_demand {
	uint32_t wish; /* slice_wish_number */
	uint64_t rank; /* of the first of the jobs: tier and priority */
	uint64_t tasks; /* that wait and have no slice yet */
	bool asked; /* jobs that run count here too */
};

/*
 * The layout of a GPU that serves most: first the jobs of the highest rank, by compute slices; then, among equals, the most tasks in
 * all, the most compute in slices that anybody asks for, the most compute at all, the fewest and so the largest slices, the lowest
 * number. 0 = it would serve nobody. `demand`: in falling rank; what is served is not taken off.
 */
uint32_t layout_choose(const struct geometry *geometry, const struct slice_demand *demand,
		       uint32_t count);
/* So many of the demand's tasks have a slice in the layout. */
uint64_t layout_serves(const struct geometry *geometry, uint32_t layout,
		       const struct slice_demand *demand);

/* Cuts GPUs, or makes them whole again. */
void layouts_run(struct pass *pass);
