/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of Fairlead's own whose pods run on the nodes of a mask alone (docs/decisions/0021): the engine hears of each when its submission is
 * durable, and after a restart, and makes the mask.
 */
#include <string.h>

#include "api/jobfile/jobfile.h"
#include "api/own_masks.h"
#include "base/arena.h"
#include "base/log.h"
#include "core/model/roles.h"
#include "daemon/state.h"

/* Submissions are many, so they are not decoded to find that out. */
bool own_follow(const struct daemon *d, uint32_t kind, const char *text, size_t size)
{
	static const char mark[] = "\"mask\":\"" JOBFILE_OWN_MASK, roles[] = "\"role_masks\":\"";

	return kind == EVENT_JOB_SUBMITTED && d->engine_ops->pods &&
	       (memmem(text, size, mark, sizeof(mark) - 1) ||
		memmem(text, size, roles, sizeof(roles) - 1));
}

bool own_is_masked(const struct facts *facts, uint32_t job)
{
	const struct job *of = job_get(facts, (struct job_id){ job });

	return !of->external && shape_is_masked(shape_get(facts, of->shape));
}

static struct own_wish wish_of(const struct facts *facts, const struct shape *shape)
{
	struct own_wish wish = { .mask = facts_name(facts, shape->mask),
				 .together = facts_name(facts, shape->together),
				 .tasks = shape->apart ? 1 : shape->tasks_max,
				 .gpus = shape->gpus,
				 .role_count = shape->role_count };

	for (uint32_t i = 0; i < shape->role_count; i++)
		wish.roles[i] = (struct own_role){ .mask = facts_name(facts, shape->role_mask[i]),
						   .tasks = shape->role_max[i],
						   .gpus = shape->role_gpus[i] };
	return wish;
}

bool own_tell(struct daemon *d, const struct facts *facts, uint32_t id, bool said)
{
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct own_wish wish = wish_of(facts, shape_get(facts, job->shape));
	struct engine_own_mask masks[ENGINE_OWN_MASKS];
	uint32_t count = 0;
	struct buf text = BUF_INIT;
	struct job_body body = { 0 };
	struct arena arena;
	struct err err = { 0 };
	bool again;
	int rc;

	if (!d->engine || !own_is_masked(facts, id))
		return false;
	arena_init(&arena, 256 << 20);
	rc = effects_body(d, facts, (struct job_id){ id }, &text, &err);
	again = rc == -(int)ERR_UNAVAILABLE;
	if (rc == 0)
		rc = job_body_parse(text.data, text.size, &arena, &body, &err);
	buf_deinit(&text);
	if (rc >= 0)
		count = job_body_masks(&body, &wish, masks);
	if (!count && !said)
		log_line(LOG_ERROR, "what the pods of job %u ask for is not known: %s", id,
			 rc < 0 ? err.text : "its body does not say");
	else if (count)
		d->engine_ops->pods->own(d->engine,
					 &(struct engine_own){ .job = id,
							       .changes = ranks_change(facts, job),
							       .mask_count = count,
							       .masks = masks });
	arena_deinit(&arena);
	return again;
}

/* One that is over by now is told, too: with its end, which the engine hears of next, its mask ends. Not so where the store did not answer
 * before: the engine may have heard of its end, and the mask would stay. */
bool own_came(struct daemon *d, const struct facts *facts, const struct effect *effect)
{
	const uint64_t count = effect->grace_ms > 1 ? (uint64_t)effect->grace_ms : 1;

	for (uint64_t id = effect->attempt; id < effect->attempt + count; id++)
		if (job_is_there(facts, (int64_t)id) &&
		    !(effect->given_again &&
		      job_state_is_final(job_get(facts, (struct job_id){ (uint32_t)id })->state)) &&
		    own_tell(d, facts, (uint32_t)id, effect->given_again))
			return true;
	return false;
}
