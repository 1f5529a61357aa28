/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Past use that fades: after one half-life it counts half. Integers only, the same on every machine.
 *
 *	kept(x)		what is left of a past amount after x:			amount * 2^(-x/h)
 *	accrued(r, x)	what a use of r has come to when it went on for x:	r * h * (1 - 2^(-x/h)) / ln 2
 *
 * The second is the first, summed up over x; so it does not matter how often a use is brought up to date on the way. For a
 * short x it is r * x, and however long x is, it never passes 1.4427 half-lives of the use.
 *
 * By hand: 10 GPUs for one half-life of 100 s come to 10 * 100 / 0.6931 * (1 - 1/2) = 721 GPU-seconds; 100 s later, unused, 360.
 */
#include <stdint.h>

/* Durations below 0 count as 0. half_life_ms 0: nothing fades. */
int64_t decay_kept(int64_t amount, int64_t for_ms, int64_t half_life_ms);
/* `share` in 1/63000 GPU, result in GPU-ms. */
int64_t decay_accrued(int64_t share, int64_t for_ms, int64_t half_life_ms);
