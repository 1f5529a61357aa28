/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An outcome over time, in equal pieces: for each the mean of what was so in it.
 *
 * By hand: 4 GPUs held from 0 to 60 s, 2 from there to 80 s, pieces of 40 s: 4, then (4 * 20 + 2 * 20) / 40 = 3.
 */
#include "sim/replay/outcome.h"

enum { COURSE_PIECES = 1000, COURSE_WIDTHS = 4 };

struct course_piece {
	double used; /* part of all GPUs */
	double running, waiting; /* jobs */
	double by_width
		[COURSE_WIDTHS]; /* of `used`: by jobs of up to 1, up to 4, up to 8, more GPUs */
};

struct course {
	int64_t from_ms, piece_ms;
	uint32_t count;
	struct course_piece *pieces;
};

/* Of an outcome that has a moment at least. */
void course_make(const struct outcome *outcome, struct course *ret);
void course_deinit(struct course *course); /* takes a zeroed one too */
const char *course_width_name(uint32_t width); /* "up to 4 GPUs" */
