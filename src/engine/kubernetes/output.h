/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lines that a kubelet gives with their time in front ("2026-11-23T07:00:00.123456789Z text"), so that one who asks again from a second on is told nothing
 * twice: those before the newest that was told, and as many of just its time as were told.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OUTPUT_STAMP_MAX = 64 };

struct output_place {
	int64_t newest_ns; /* since 1970; 0 = none was told yet */
	char stamp[OUTPUT_STAMP_MAX]; /* its text */
	uint32_t same; /* lines of that time that were told */
	uint32_t met; /* of those, met again in this answer */
};

/* Before the lines of another answer. */
void output_again(struct output_place *place);
/* *ret_text: the line without its time; a line that has none is passed on whole. False: it was told. */
bool output_is_new(struct output_place *place, const char *line, size_t size,
		   const char **ret_text);
/* The one that output_is_new() let through last was told. */
void output_told(struct output_place *place, const char *line, size_t size);
