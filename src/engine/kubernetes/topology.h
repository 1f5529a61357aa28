/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a node stands, by the labels that clouds, topograph and the GPU operator put on it. Levels have fixed names, widest first; a level is
 * there when some node has a label for it. The table, and which label comes first: docs/kubernetes.md.
 */
#include <stdbool.h>
#include "engine/engine.h"

enum { PLACE_MAX = 63 };

/* Where one node stands. All zero: nowhere. */
struct places {
	char name[ENGINE_LEVELS][PLACE_MAX + 1]; /* "" = it does not say */
	unsigned char by[ENGINE_LEVELS]; /* which label said so, from 1: the least counts */
};

/* A label of the node. One that says nothing of its place, or has a longer value, is passed over. `own`: besides the table's; NULL = none. */
void places_read(struct places *places, const struct engine_level_labels *own, const char *key,
		 const char *value);
/* The level that a label says; -1 = none. */
int places_level_of(const struct engine_level_labels *own, const char *key);
unsigned places_levels(const struct places *places); /* a bit for each level that it says */
