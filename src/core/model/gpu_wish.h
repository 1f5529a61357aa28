/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How people say what a task takes of GPUs: "4" whole ones, "0.5" or "1/7" of one. An amount of memory is said apart.
 *
 * Shares are in 1/63000, three decimals at most, so that tenths and sevenths are exact; what is not is rounded down.
 */
#include <stdint.h>
#include "base/err.h"

struct gpu_wish {
	uint32_t gpus; /* 1 for a part */
	uint32_t part; /* 0 = whole ones */
};

/* ERR_INVALID with the text when it is none of these. */
int gpu_wish_parse(const char *text, struct gpu_wish *ret, struct err *err) MUST_CHECK;
/* "4", "0.5", "1/7": the shortest of the forms that says it exactly, else three decimals. */
enum { GPU_WISH_TEXT_MAX = 24 };
const char *gpu_wish_text(const struct gpu_wish *wish, char ret[GPU_WISH_TEXT_MAX]);
