/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An outcome queue by queue: what sharing gave to each, and what each paid for it. */
#include "sim/replay/figures.h"

struct queue_figures {
	const char *queue; /* the workload's */
	uint32_t jobs, ended, evictions;
	struct spread completion_s, wait_s, delay_s; /* as in struct figures */
	double used_gpu_h;
};

/* In the order of the queues' names. *ret is the caller's to free. How many; there is one at least. */
uint32_t by_queue_make(const struct outcome *outcome, struct queue_figures **ret);
