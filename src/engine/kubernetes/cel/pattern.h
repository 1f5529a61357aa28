/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Regular expressions as RE2 reads them, for matches(): does the pattern stand anywhere in the text? Time is the length of the text times
 * that of the pattern, whatever they are: no way back, all ways at once (Thompson 1968).
 */
#include "engine/kubernetes/cel/value.h"

struct arena;

enum {
	PATTERN_BYTES_MAX = 1024,
	PATTERN_STEPS_MAX = 2048, /* of the machine that it becomes; a{1000} has a thousand */
};

/* A bool; failed: it is no pattern; refused: it has what is not built here (flags, \b, names, classes of Unicode). */
struct value pattern_ask(struct arena *arena, const struct string *pattern,
			 const struct string *text);
