/* SPDX-License-Identifier: Apache-2.0 */
#include "api/own_masks.h"

#include <string.h>

#include "api/jobfile/jobfile.h"
#include "core/model/facts.h"

_Static_assert((int)ROLES_MAX == (int)ENGINE_GANG_ROLES, "one limit");

static struct engine_own_mask *mask_add(struct engine_own_mask *masks, uint32_t *count,
					const char *name)
{
	for (uint32_t i = 0; i < *count; i++)
		if (strcmp(masks[i].name, name) == 0)
			return NULL;
	masks[*count] = (struct engine_own_mask){ .name = name };
	return &masks[(*count)++];
}

static struct engine_own_pods pods_of(const struct job_body *body, const struct own_wish *wish,
				      uint32_t role)
{
	return (struct engine_own_pods){ .overlays = { body->overlays[0],
						       body->roles[role].overlay },
					 .tasks = wish->roles[role].tasks,
					 .gpus = wish->roles[role].gpus };
}

uint32_t job_body_masks(const struct job_body *body, const struct own_wish *wish,
			struct engine_own_mask *ret)
{
	struct engine_own_mask together = { .name = wish->together };
	uint32_t count = 0;

	if (*wish->mask && body->overlays[0]) {
		struct engine_own_mask *mask = mask_add(ret, &count, wish->mask);

		mask->pods[mask->pod_count++] = (struct engine_own_pods){
			.overlays = { body->overlays[0] }, .tasks = wish->tasks, .gpus = wish->gpus
		};
	}
	for (uint32_t i = 0; i < wish->role_count && i < body->role_count; i++) {
		struct engine_own_mask *mask;

		if (!*wish->roles[i].mask || !body->roles[i].overlay)
			continue;
		together.pods[together.pod_count++] = pods_of(body, wish, i);
		mask = mask_add(ret, &count, wish->roles[i].mask);
		if (mask)
			mask->pods[mask->pod_count++] = pods_of(body, wish, i);
	}
	if (*together.name && together.pod_count) {
		struct engine_own_mask *mask = mask_add(ret, &count, together.name);

		if (mask)
			*mask = together;
	}
	return count;
}
