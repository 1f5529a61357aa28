/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Into which slices one GPU can be cut (NVIDIA's Multi-Instance GPU). A function of the model: no state, no policy.
 *
 * A GPU has compute slices and memory slices: 7 and 8, an A30 4 and 4. A GPU instance is some of both, of a few kinds, each of
 * which may begin only at certain memory slices. All instances that exist on a GPU are its layout (core/model/slices.h).
 *
 *	H100 of 80 GB	memory slices	0 1 2 3 4 5 6 7
 *	1g.10gb		begins at	0 1 2 3 4 5 6		one memory slice
 *	1g.20gb				0   2   4   6		two
 *	2g.20gb				0   2   4		two
 *	3g.40gb				0       4		four
 *	4g.40gb				0			four
 *	7g.80gb				0			all
 *
 * A compute instance is a part of the compute slices of a GPU instance, with all of its memory. Fairlead makes one in each GPU
 * instance, with all compute slices: two of them would share memory without a bound between.
 *
 * Sources stand beside the tables (geometry.c). Costs: some comparisons; all layouts of a GPU are some hundreds.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "core/model/slices.h"

struct slice_profile {
	uint8_t kind; /* enum slice_kind */
	uint16_t gigabytes; /* in its name */
	uint32_t memory_mib; /* that a program finds there */
	uint8_t starts; /* memory slices where it may begin, a bit each */
	uint8_t most; /* of it on one GPU */
};
enum { PROFILES_MAX = 8, LAYOUTS_MAX = 1024, GEOMETRIES_MAX = 16 };

struct geometry {
	const char *family; /* what the model's name begins with */
	uint32_t from_mib; /* and GPU memory from here on; of several the last one that fits */
	uint8_t compute, memory; /* slices of the whole GPU */
	struct slice_profile profiles[PROFILES_MAX]; /* the smallest first; none after kind 0 */
};

/* Of GPUs of this model and memory; NULL = they cannot be cut. */
const struct geometry *geometry_of(const char *model, uint32_t gpu_memory_mib);
/* By number, from 1, for those who keep it; 0 and NULL stand for each other. */
uint32_t geometry_number(const struct geometry *geometry);
const struct geometry *geometry_get(uint32_t number);
uint32_t geometry_count(void); /* the highest number */

/* The profile of this kind, of this wish; NULL = the model has none. */
const struct slice_profile *geometry_profile(const struct geometry *geometry, uint32_t kind);
const struct slice_profile *geometry_wished(const struct geometry *geometry, uint32_t wish);
uint32_t profile_wish(const struct slice_profile *profile); /* its name, as a number */
/* The smallest profile with this share of a GPU's compute (in 1/63000) and so much memory: least compute, then least memory,
 * without media engines. NULL = none is large enough. */
const struct slice_profile *geometry_need(const struct geometry *geometry, uint32_t share,
					  uint32_t memory_mib);
/* Share of a GPU that a wish of this name comes to, in 1/63000: compute slices over the model's whole. 0: no model has it. */
uint32_t slice_share(uint32_t wish);

/* May these instances exist together on one GPU? Where one of the kind may be added to the layout, a bit for each start. */
bool layout_is_legal(const struct geometry *geometry, uint32_t layout);
uint32_t layout_room(const struct geometry *geometry, uint32_t layout, uint32_t kind);
/* Nothing more can be added. */
bool layout_is_full(const struct geometry *geometry, uint32_t layout);
/* All legal layouts, or only full ones, rising; media engines aside. So many are in ret. */
uint32_t layouts_all(const struct geometry *geometry, bool full, uint32_t ret[LAYOUTS_MAX]);
/* Instances of these kinds, each at the lowest start that leaves room for those behind it in the list; 0 = it cannot be. */
uint32_t layout_of_kinds(const struct geometry *geometry, const uint8_t *kinds, uint32_t count);
/* "3g.40gb,2g.20gb,1g.10gb", in the order of memory slices; "" for none. */
enum { LAYOUT_TEXT_MAX = 8 * SLICE_TEXT_MAX };
const char *layout_text(const struct geometry *geometry, uint32_t layout,
			char ret[LAYOUT_TEXT_MAX]);
/* The reverse; ERR_INVALID that says what the model does not allow. "" = whole. */
int layout_parse(const struct geometry *geometry, const char *text, uint32_t *ret, struct err *err)
	MUST_CHECK;
/* Compute slices of the instances. */
uint32_t layout_compute(uint32_t layout);

/* So many compute instances of this many compute slices can be in a GPU instance; 0 = there are none such. */
uint32_t compute_instances(const struct geometry *geometry, uint32_t kind, uint32_t compute);
