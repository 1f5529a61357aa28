/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Outcomes of one workload under several policies, beside each other. */
#include <stdio.h>
#include "base/buf.h"
#include "sim/replay/figures.h"

struct replay_result {
	struct outcome outcome;
	struct figures figures;
};

/* "12 s", "3.4 h". */
const char *replay_seconds_text(double s, char ret[32]);
/* A table for people. */
void replay_table(FILE *out, const struct replay_result *results, uint32_t count);
/* All figures, the course over time and each job: docs/workload-format.md. */
void replay_json(struct buf *out, const char *cluster, const struct replay_result *results,
		 uint32_t count);
