/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Shared GPUs: of each GPU of which parts are held or promised, what is still open of it, and to whom.
 *
 * A part is a share in 1/63,000 and so much memory; both must be open. Only parts of one sharer lie on one GPU: of one team,
 * or without teams of one user, and never inference beside other work. Policy `share_gpus` may open it to anybody, or to
 * nobody. A GPU of which a part is held is not free for whole use.
 *
 *	GPU 0 of 80 GiB: 0.5 held by team a, 0.2 promised to team a: open are 0.3 and 24 GiB, for team a
 *	GPU 1: held whole: nothing is open
 *
 * Nodes with shared GPUs are kept in sets by (class, step), a step being 1/32 of a GPU: the shared GPU with the least that
 * is enough is found without a look at the others. Nothing of this exists before the first wish for a part.
 *
 * Memory: 48 bytes per GPU. A change costs some 20 ns for each shared GPU of its node.
 */
#include "core/placement/space.h"

/* For space.c alone. */
void parts_build(struct space *space, const struct facts *facts);
/* One part more, or one less; logged. Whether any is left. */
bool parts_change(struct space *space, uint32_t rank, const struct hold *hold, bool promise,
		  bool more);
/* Nothing of the node is held in parts; logged. Entries of the log. */
uint8_t parts_clear(struct space *space, uint32_t rank);
void parts_rollback(struct space *space, uint32_t entries);
/* The node has changed: what is open of its GPUs, and the sets. */
void parts_follow(struct space *space, uint32_t rank);
/* The sets of `to` as those of `from` are for the node; it itself is not yet copied. */
void parts_copy(struct space *to, const struct space *from, uint32_t rank);
void parts_verify(const struct space *space);
bool parts_same(const struct space *a, const struct space *b);

/* Instances of the GPU that nobody holds or is promised, a bit for the memory slice where each begins; of this kind, SLICE_NONE = of
 * any. None where the GPU is not to be used. */
uint32_t slices_open(const struct space *space, uint32_t rank, uint32_t gpu, uint32_t kind);
/* Compute slices of these of any kind. */
uint32_t slices_compute(const struct space *space, uint32_t rank, uint32_t gpu);
/* The layouts of the node's GPUs are as the facts say; not logged. */
void slices_read(struct space *space, uint32_t rank, const struct node *node);

/* A wish for parts, by whose rules. */
struct part_wish {
	uint32_t sharer;
	uint8_t share_gpus; /* enum share_gpus; 0 = whoever it is, as if all parts were of one sharer */
};

static inline const struct gpu_parts *parts_of(const struct space *space, uint32_t rank,
					       uint32_t gpu)
{
	return &space->gpu_parts.at[(size_t)rank * space->gpus_max + gpu];
}
static inline uint32_t node_memory_mib(const struct space *space, uint32_t rank)
{
	return space->traits.at[space_at(space, rank)->traits].gpu_memory_mib;
}
/* What is open of a GPU, shared or free; 0 when it is in whole use, promised whole or not usable. */
struct gpu_part part_open(const struct space *space, uint32_t rank, uint32_t gpu);
/* May the wish lie beside what is held and promised of the GPU? */
bool part_may_join(const struct gpu_parts *parts, const struct part_wish *wish);
/* Of a part, or of whole GPUs, what is not promised to others already. */
struct hold hold_unpromised(const struct space *space, uint32_t rank, struct hold hold);
/* Would the part fit beside what is held, whatever is promised? For a promise that is to be kept. */
bool part_fits_held(const struct space *space, uint32_t rank, const struct hold *hold,
		    uint8_t share_gpus);
/* Nodes of the class with a shared GPU of which this step is open. */
const uint64_t *parts_set(const struct space *space, uint32_t class, uint32_t step);
static inline uint32_t part_step(uint32_t share)
{
	return share * PART_STEPS / (GPU_SHARE + 1);
}
