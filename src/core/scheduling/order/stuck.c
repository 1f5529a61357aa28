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

static bool shape_may_be_stuck(const struct facts *f, const struct shape *shape)
{
	return shape->gpus && !shape->role_count && !shape->slice &&
	       (f->policy.defragment != DEFRAGMENT_OFF || f->moves.asked);
}

static int64_t shape_lacks(const struct pass *pass, const struct shape *shape, uint64_t suits)
{
	return (shape->gpu_part_mib ? shape->tasks_min
				    : shape_share(&pass->view->space, shape, shape->tasks_min)) -
	       space_free_share(&pass->view->space, 0, suits & ~pass->closed);
}

bool stuck_awaits_look(const struct pass *pass, const struct job *job, uint64_t suits)
{
	const struct facts *f = pass->facts;
	const struct shape *shape = shape_get(f, job->shape);

	return shape_may_be_stuck(f, shape) && shape_lacks(pass, shape, suits) <= 0 &&
	       (f->moves.looked_ms < job->submitted_ms || moves_are_due(f));
}

void stuck_note(struct pass *pass, uint32_t id)
{
	const struct job *job = job_get(pass->facts, (struct job_id){ id });
	const struct shape *shape = pass_shape(pass, job->shape);
	int64_t lacks;

	if (pass->stuck_count == STUCK_MAX || !job->preempts ||
	    !shape_may_be_stuck(pass->facts, shape))
		return;
	lacks = shape_lacks(pass, shape, pass->suits);
	if (lacks > 0) {
		pass->stuck_unsure = pass->stuck_unsure || reserve_keeps(pass, lacks);
		return;
	}
	pass->stuck[pass->stuck_count++] = (struct stuck){ .job = id,
							   .turn = pass->reservation_count,
							   .closed = pass->closed };
}
