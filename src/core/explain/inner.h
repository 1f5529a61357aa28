/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of this folder share. explain.c: the verdict; chain.c: what stands around it; prospect.c: before submission. */
#include "core/explain/words.h"

/* On an idle cluster of all nodes that exist: NONE, or what forbids it for ever. */
struct verdict ever_verdict(const struct words *w);
/* Is it room that lacks, rather than a rule or a wish? */
bool reason_is_of_place(enum reason reason);
/* Jobs before it in its queue, and its position. */
void ahead_find(const struct words *w, struct explanation *ret);
/* The lines: the reason, queue, order, holders, nodes. `ret` has all else. */
void chain_make(const struct words *w, struct explanation *ret);
