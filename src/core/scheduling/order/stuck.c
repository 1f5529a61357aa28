/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs that find no place although enough for them is free: it does not lie together. Moves of running jobs may bring it together
 * (core/rearranging). They are looked for at the end of a pass, before best-effort work starts on what is free: else it would be
 * started only to be in the way.
 */
#include "core/scheduling/pass.h"

bool moves_are_due(const struct facts *f)
{
	const struct moves *m = &f->moves;

	if (f->policy.defragment == DEFRAGMENT_OFF && !m->asked)
		return false;
	if (m->asked || !m->looked_ms)
		return true;
	return f->now_ms - m->looked_ms >= MOVES_LOOK_MS &&
	       (m->stale || (m->again_ms && f->now_ms >= m->again_ms));
}

bool pass_looks_first(const struct pass *pass)
{
	bool looks = pass->stuck_count || pass->facts->policy.defragment == DEFRAGMENT_ALWAYS ||
		     pass->facts->moves.asked;

	return looks && !pass->watch && moves_are_due(pass->facts);
}

void stuck_note(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = pass_shape(pass, job->shape);
	int64_t lacks;

	if (pass->stuck_count == STUCK_MAX || !job->preempts || !shape->gpus || shape->role_count ||
	    shape->slice ||
	    (pass->facts->policy.defragment == DEFRAGMENT_OFF && !pass->facts->moves.asked))
		return;
	lacks = (shape->gpu_part_mib ? shape->tasks_min
				     : shape_share(&pass->view->space, shape, shape->tasks_min)) -
		space_free_share(&pass->view->space, 0, pass->suits & ~pass->closed);
	if (lacks > 0) {
		pass->stuck_unsure = pass->stuck_unsure || reserve_keeps(pass, lacks);
		return;
	}
	pass->stuck[pass->stuck_count++] = (struct stuck){ .job = id,
							   .turn = pass->reservation_count,
							   .closed = pass->closed };
}
