/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What queues use beside GPUs: processors and memory, by which work without GPUs is taken back.
 *
 * A queue uses its larger part of the two, expressed in GPU shares of the whole cluster as in dominant.h, so a guarantee of half of the
 * GPUs is one of half of the processors and of the memory. All standard and critical work counts, with GPUs or without, as it
 * runs and is promised, without what leaves. What is not guaranteed goes by weight, as far as it is wanted, like GPUs (standing.h).
 *
 *	8 GPUs, 64 processors, no guarantees. b runs without GPUs on 60 processors: its part is 7.5.
 *	a asks for 20 without GPUs: both want 80 of 64, so a's share is 2.5 (20 processors) and b's 5.5 (44). b is above its share.
 *
 * Nodes that do not say how many processors or how much memory they have count nothing.
 */
#include <stdint.h>
#include "core/scheduling/queues/standing.h"

struct promise_view;

/* After the sums over the tree and dominant_make; `takers`: room for one more than there are queues. */
void beside_make(struct standings *s, struct taker *takers);
/* Of work of that tier so much comes (1) into what the queue uses, or goes (-1). */
void beside_move(struct standings *s, uint32_t queue, uint8_t tier, struct beside amount, int sign);
/* One task of rank `at` in its job on that node of the space: what counts of it. */
struct beside beside_of_task(const struct view *view, uint32_t rank, const struct shape *shape,
			     uint32_t at);
/* Its least width. */
struct beside shape_beside(const struct shape *shape);
/* What is promised to a job that does not run yet. */
struct beside beside_of_promise(const struct view *view, const struct promise_view *p);
/* The larger part of it, as a GPU share of the whole cluster. */
int64_t beside_part(const struct standings *s, struct beside amount);

/* The questions of standing_within, standing_above, of processors and memory; see there for `top`. */
bool beside_within(const struct standings *s, uint32_t queue, uint32_t top, struct beside more);
bool beside_above(const struct standings *s, uint32_t queue, uint32_t top);
/* With so much more, is the queue and all above it, up to below `top`, within what its guarantee is of them? Never of `top` itself. */
bool beside_claims(const struct standings *s, uint32_t queue, uint32_t top, struct beside more);
/* Does the queue, and do all above it up to below `top`, use more of them than that? Never of `top` itself. */
bool beside_borrows(const struct standings *s, uint32_t queue, uint32_t top);
