/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The dominant resource: what a queue uses counts, in the order of queues, as its largest part of anything: of all GPUs, of the GPUs
 * of one model, of processors, of memory. Expressed in GPU shares of the whole cluster, so that it compares with shares.
 *
 *	16 GPUs, 128 processors. a runs 2 GPUs with 8 processors each: 2 GPUs.
 *	b runs without GPUs on 64 processors: half of them, so it counts as half of the GPUs, 8.
 *
 * Counted is standard and critical work as it runs now, without promises. It decides whose turn it is; what is taken back goes by
 * GPUs, and by processors and memory (beside.h). Source: Ghodsi and others, Dominant Resource Fairness, NSDI 2011; here the GPUs stand for the
 * whole, and equal parts are not enforced on what runs.
 */
#include <stdint.h>
#include "core/scheduling/view/view.h"

struct standings;
struct placement;
struct attempt;

/* The space was built anew: which models there are, and how much of all. */
void dominant_models_read(struct view *view, const struct facts *facts);
/* Nodes became ready, or are no longer; GPUs work, or no longer. */
void dominant_capacity_read(struct view *view);
/* Tasks of a running attempt come (1) or go (-1) in what the queue holds. */
void dominant_hold(struct view *view, const struct facts *facts, uint32_t queue,
		   const struct attempt *attempt, const struct shape *shape, int sign);
/* The same for one task, of rank `at` in its job, on the node of this rank of the space. */
void dominant_hold_task(struct view *view, uint32_t queue, uint32_t rank, const struct shape *shape,
			uint32_t at, int sign);

/* What all of a resource counts as: all GPUs that are ready; where there are none some thousand stand for them. */
int64_t dominant_whole(const struct standings *s);
/* After the sums over the tree: the largest part of each queue. */
void dominant_make(struct standings *s);
/* An attempt starts (1), or does not start there after all (-1). */
void dominant_take(struct standings *s, uint32_t queue, uint8_t tier, const struct shape *shape,
		   const struct placement *place, int sign);
