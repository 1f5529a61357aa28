/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the masks of a job of Fairlead's own are made from (docs/decisions/0021): of its body what its pods ask for, of its wish how many may lie
 * on one node. The engine hears it when the job was submitted, and is asked it for a dry run.
 */
#include "engine/pods.h"

struct job_body;

/* What the masks of an own job are made from. */
struct own_wish {
	const char *mask, *together; /* "" = none */
	uint32_t tasks; /* that may lie on one node, of all */
	int64_t gpus; /* of each */
	uint32_t role_count;
	struct own_role {
		const char *mask; /* "" = none */
		uint32_t tasks;
		int64_t gpus;
	} roles[ENGINE_GANG_ROLES];
};
/* Each mask once, with the pods it is for: at most ENGINE_OWN_MASKS. None where the body does not say what they ask for. */
uint32_t job_body_masks(const struct job_body *body, const struct own_wish *wish,
			struct engine_own_mask *ret);
