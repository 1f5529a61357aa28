/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How slices of a GPU are written down (MIG: GPU instances). Which of them a model of GPU can be cut into, and where, knows
 * core/partitioning.
 *
 * A kind is a number of compute and memory slices; it is the same on all models. Its name says the memory too, so it differs:
 * the kind of one compute and one memory slice is 1g.5gb on an A100 of 40 GB and 1g.18gb on an H200.
 *
 * A layout is the instances that exist on one GPU: four bits for each memory slice, the kind that begins there, lowest first;
 * 0 = not cut, in whole use.
 *
 *	3g.40gb, 2g.20gb, 1g.10gb	on memory slices 0-3, 4-5, 6: SLICE_3G | SLICE_2G << 16 | SLICE_1G << 24
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

/* Part of the journal's format: only ever added to. */
enum slice_kind {
	SLICE_NONE,
	SLICE_1G,
	SLICE_1G_MEDIA, /* with the media engines: one on a GPU */
	SLICE_1G_WIDE, /* with the memory of two */
	SLICE_2G,
	SLICE_2G_MEDIA,
	SLICE_3G,
	SLICE_4G,
	SLICE_7G,
	SLICE_KINDS
};
enum { LAYOUT_SLOTS = 8 }; /* memory slices at most */

uint32_t slice_compute(uint32_t kind); /* compute slices; 0 for no kind */
uint32_t slice_memory(uint32_t kind); /* memory slices */

static inline uint32_t layout_kind(uint32_t layout, uint32_t start)
{
	return start < LAYOUT_SLOTS ? layout >> start * 4 & 15 : SLICE_NONE;
}
/* The layout, with an instance of the kind at this memory slice. */
static inline uint32_t layout_with(uint32_t layout, uint32_t start, uint32_t kind)
{
	return layout | kind << start * 4;
}
/* Memory slices in use, a bit each. */
uint32_t layout_mask(uint32_t layout);
/* Known kinds that do not overlap, within eight memory slices. Says nothing of what a model allows. */
bool layout_is_sound(uint32_t layout);

/* One instance, as a task holds it: kind and where it begins; 0 = none. */
static inline uint32_t slice_at(uint32_t kind, uint32_t start)
{
	return kind << 4 | start;
}
static inline uint32_t slice_at_kind(uint32_t slice)
{
	return slice >> 4;
}
static inline uint32_t slice_at_start(uint32_t slice)
{
	return slice & 15;
}

/* What a job asks for, by the name of a profile: "1g.10gb", "1g.10gb+me". As one number; 0 = none. */
struct slice_wish {
	uint32_t compute, gigabytes;
	bool media;
};
static inline uint32_t slice_wish_number(struct slice_wish wish)
{
	return wish.compute << 16 | wish.gigabytes << 1 | wish.media;
}
static inline struct slice_wish slice_wish_of(uint32_t number)
{
	return (struct slice_wish){ number >> 16, number >> 1 & 0x7fff, number & 1 };
}
enum { SLICE_TEXT_MAX = 24 };
/* False: it is no name of a profile. */
bool slice_wish_parse(const char *text, uint32_t *ret);
const char *slice_wish_text(uint32_t number, char ret[SLICE_TEXT_MAX]);
