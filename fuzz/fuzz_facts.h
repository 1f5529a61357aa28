/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the targets of journal records and of snapshots share: lines "KIND MS JSON", MS being the time since the line before. */
#include "base/arena.h"
#include "core/model/facts.h"
#include "fuzz/fuzz.h"

enum { FUZZ_RECORDS_MAX = 64 };

/* Decodes the record; checks that it comes back from its own encoding; applies it. 0, or negative when it is refused. */
int fuzz_event(struct facts *f, uint32_t kind, uint32_t ms, const char *json, size_t size,
	       struct arena *arena);
/* The facts hold together, and what is saved of them loads as the same facts. */
void fuzz_check_facts(const struct facts *f);
