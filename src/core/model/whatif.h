/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes that no event makes, on a frozen copy of the facts: "what if this job had asked for less". Never on the facts
 * themselves: those change by events alone. The caller lets the view follow (EVENT_JOB_PRIORITY_SET of the job brings its
 * part of the index in line), and lets it follow the facts themselves again afterwards.
 */
#include "core/model/facts.h"

/* The job asks for this instead. */
void whatif_shape(struct facts *copy, struct job_id job, const struct shape *shape);
void whatif_tier(struct facts *copy, struct job_id job, uint8_t tier);
/* It declares this run-time limit; 0 = none. */
void whatif_limit(struct facts *copy, struct job_id job, int64_t limit_ms);
