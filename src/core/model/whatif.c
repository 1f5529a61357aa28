/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/whatif.h"

#include "core/model/edit.h"

void whatif_shape(struct facts *copy, struct job_id job, const struct shape *shape)
{
	struct shape_id id = facts_intern_shape(copy, shape);

	job_edit(copy, job)->shape = id;
}

void whatif_tier(struct facts *copy, struct job_id job, uint8_t tier)
{
	job_edit(copy, job)->tier = tier;
}

void whatif_limit(struct facts *copy, struct job_id job, int64_t limit_ms)
{
	job_edit(copy, job)->limit_ms = limit_ms;
}
