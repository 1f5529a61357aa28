/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parts of jobs that several handlers write. */
#include "api/call.h"
#include "api/forecast.h"
#include "api/planner.h"

/* The fields that a job has in a list as well as alone. */
void job_head_add(struct buf *out, const struct facts *f, uint32_t id, const struct job *job);
void explanation_add(struct buf *out, const char *key, const struct facts *f, uint32_t job,
		     const char *state, const struct explanation *e,
		     const struct explain_change *change, /* NULL: none was looked for */
		     int forecast, /* what forecast_ask answered */
		     const struct estimate *estimate, /* when that was 0 */
		     const struct price_range *price); /* NULL: it has ended */
/* As "estimate", when its start is known. */
void estimate_add(struct buf *out, const struct facts *f, const struct estimate *estimate);
/* Why it is in its state, as it was recorded; "" while it runs: what was said of an earlier attempt is over. */
const char *job_last_reason(const struct facts *facts, const struct job *job);
/* Whether its reason is asked of the core: it waits. */
bool job_wants_reason(const struct job *job);
void gpu_list_add(struct buf *out, const char *key, uint32_t mask);
