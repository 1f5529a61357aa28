/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masks of nodes for jobs whose pods ask for claims or for resources (docs/decisions/0021): their names. What each is made from: api/own_masks.h.
 *
 *	volumes: {data: /data}			a mask of the job
 *	roles: [{name: driver},			none
 *	  {name: worker, resources: ...},	a mask of each such role,
 *	  {name: cache, resources: ...}]	and, of two or more, one of the nodes that are enough for all of them together
 */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/digest.h"
#include "core/model/facts.h"

static const char *mask_name(const struct reading *r, const char *first, const char *second)
{
	const struct digest digest =
		digest_of_two(first, strlen(first) + 1, second, strlen(second));
	char hex[DIGEST_HEX_MAX];

	return arena_printf(r->arena, JOBFILE_OWN_MASK "%.12s", digest_format(&digest, hex));
}

int64_t jobfile_gpus_most(const struct event_job_submitted *job)
{
	int64_t most = job->role_numbers_count ? 0 : job->gpus;

	for (uint32_t i = ROLE_GPUS; i < job->role_numbers_count; i += ROLE_NUMBERS)
		most = job->role_numbers[i] > most ? job->role_numbers[i] : most;
	return most;
}

/* Of what decides it: what its pods ask for, and how many may come to lie on one node. */
static const char *job_mask(const struct reading *r)
{
	const struct event_job_submitted *job = r->job;

	return mask_name(r, r->body.pod,
			 arena_printf(r->arena, "%lld %lld %d", (long long)job->tasks_max,
				      (long long)jobfile_gpus_most(job), *job->spread != '\0'));
}

static const char *role_mask(const struct reading *r, uint32_t role)
{
	const int64_t *of = r->job->role_numbers + (size_t)role * ROLE_NUMBERS;

	return mask_name(r, r->body.pod ? r->body.pod : "",
			 arena_printf(r->arena, "%s %lld %lld", r->body.roles[role].pod,
				      (long long)of[ROLE_TASKS_MAX], (long long)of[ROLE_GPUS]));
}

void jobfile_masks_name(const struct reading *r, struct job_request *ret)
{
	uint32_t masked = 0;

	ret->mask = r->body.has_claims || r->body.resources ? job_mask(r) : "";
	ret->role_masks = ret->together = "";
	for (uint32_t i = 0; i < r->body.role_count; i++) {
		const bool has = r->body.roles[i].pod != NULL;

		masked += has;
		ret->role_masks = arena_printf(r->arena, "%s%s%s", ret->role_masks, i ? "," : "",
					       has ? role_mask(r, i) : "");
	}
	if (!masked)
		ret->role_masks = "";
	if (masked > 1)
		ret->together = mask_name(r, "together", ret->role_masks);
}
