/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Slices of GPUs in answers; and what handlers of nodes share. */
#include "api/call.h"
#include "api/tally.h"

/* `slices`: the instances that exist on the GPU, with the job that holds each. */
void slices_add(struct buf *out, const struct facts *f, const struct tally *tally, uint32_t node_id,
		uint32_t index);
/* Slices of the node that nobody holds, in GPU shares; of these, such as no job that waits or runs asks for. `wishes` from
 * slices_wishes. */
struct slices_idle {
	int64_t idle, unasked;
};
struct slices_idle slices_idle(const struct facts *f, const struct tally *tally, uint32_t node_id,
			       const bool *wishes);
/* All slices of nodes that are not gone, by model and profile: those that are held, those that are free, and those on GPUs or nodes that
 * take no work. At most SLICE_COUNTS_MAX rows, in order of model and name. */
enum { SLICE_COUNTS_MAX = 128 };
struct slice_count {
	const char *model;
	char slice[SLICE_TEXT_MAX];
	uint32_t held, free, unusable;
};
uint32_t slices_count(const struct facts *f, const struct tally *tally,
		      struct slice_count ret[SLICE_COUNTS_MAX]);
/* By shape: some job that waits or runs asks for its slice. In the arena. */
const bool *slices_wishes(const struct facts *f, struct arena *arena);
/* nodes.c: the node of the path; GPUs of it, by "index" or "mask" of the body. */
int node_find(struct call *call, struct node_id *ret, struct err *err) MUST_CHECK;
int gpu_mask_read(struct call *call, const struct conf *body, struct node_id id, int64_t *ret,
		  struct err *err) MUST_CHECK;
