/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * GPUs that something uses which Fairlead did not place are set aside, and the reason says so in words that begin like this
 * (docs/decisions/0028-taken-gpus.md). Nobody but who looks after that sets such a reason.
 */
#include <string.h>

#include "core/model/facts.h"

#define GPU_TAKEN "taken: "
#define GPU_TAKEN_PODS "taken by pods that Fairlead did not place" /* in journals written before */
#define GPU_SILENT "NVIDIA driver: " /* likewise, of GPUs whose driver does not answer */

/* Who has it, from the reason; NULL = the reason is another one. */
static inline const char *taken_by(const char *reason)
{
	if (strncmp(reason, GPU_TAKEN, sizeof(GPU_TAKEN) - 1) == 0)
		return reason + sizeof(GPU_TAKEN) - 1;
	return strcmp(reason, GPU_TAKEN_PODS) == 0 ? "pods that Fairlead did not place" : NULL;
}

/* The same of a GPU; NULL = it is not taken. */
static inline const char *gpu_taken_by(const struct facts *f, struct node_id id, uint32_t gpu)
{
	const uint32_t row = (id.v - 1) * NODE_GPUS_MAX + gpu + 1;
	const struct gpu_record *record;

	if (!(node_get(f, id)->set_aside_mask >> gpu & 1) || row > f->gpus.count)
		return NULL;
	record = table_get(&f->gpus, row);
	return taken_by(facts_text(f, record->reason));
}
