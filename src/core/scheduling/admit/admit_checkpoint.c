/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkpoint was found torn, so work that counted as saved is lost after all. How much is part of the event: what was done
 * between the checkpoint before it and it. An example, 4 GPUs, times in minutes:
 *
 *	attempt 1  released 0, checkpoint 1 at 10, checkpoint 2 at 20, stopped at 25    lost then: 5
 *	2 is void  lost besides: 20 - 10                                                lost now: 15, that is 60 GPU-minutes
 *	1 is void  nothing is left to go on from: all that attempts have run            lost now: 25, that is 100 GPU-minutes
 *
 * Work before the first checkpoint of an attempt was begun from the last one of an attempt before, whose own rest was counted
 * when that attempt ended. So the parts never overlap, as the newest checkpoint is always the first to be found void.
 */
#include "core/model/apply.h"
#include "core/scheduling/admit/admit.h"

/* Nothing is left: all that ended attempts have run and that was not lost before. */
static void lose_all(const struct facts *f, const struct job *job, struct event_checkpoint_void *e)
{
	int64_t run_gpu_ms = 0;

	for (uint32_t id = job->last_attempt.v; id;) {
		const struct attempt *attempt = attempt_get(f, (struct attempt_id){ id });

		if (attempt->released_ms && attempt->ended_ms > attempt->released_ms)
			run_gpu_ms += share_gpu_ms(attempt_share(f, attempt),
						   attempt->ended_ms - attempt->released_ms);
		id = attempt->previous;
	}
	e->lost_ms = job->run_ms;
	e->lost_gpu_ms = run_gpu_ms > job->lost_gpu_ms ? run_gpu_ms - job->lost_gpu_ms : 0;
}

static void lose_part(const struct facts *f, const struct checkpoint *checkpoint,
		      const struct checkpoint *before, struct event_checkpoint_void *e)
{
	const struct attempt *attempt = attempt_get(f, (struct attempt_id){ checkpoint->attempt });
	int64_t since_ms = attempt->released_ms;

	if (before->number == e->number - 1 && before->attempt == checkpoint->attempt &&
	    before->at_ms > since_ms)
		since_ms = before->at_ms;
	if (!attempt->ended_ms || checkpoint->at_ms <= since_ms)
		return;
	e->lost_ms = checkpoint->at_ms - since_ms;
	e->lost_gpu_ms = share_gpu_ms(attempt_share(f, attempt), e->lost_ms);
}

static const struct checkpoint *checkpoint_row(const struct facts *f, const struct job *job,
					       int64_t number)
{
	return table_get(&f->checkpoints,
			 job->checkpoint + (uint32_t)(number - 1) % CHECKPOINTS_KEPT);
}

int admit_checkpoint_void(const struct admission *a, struct event_checkpoint_void *e)
{
	const struct facts *f = a->facts;
	const struct checkpoint *checkpoint, *left;
	const struct job *job;

	e->lost_ms = e->lost_gpu_ms = 0;
	if (!job_is_there(f, e->job))
		return err_set(a->err, ERR_NOT_FOUND, "job %lld does not exist", (long long)e->job);
	job = job_get(f, (struct job_id){ (uint32_t)e->job });
	if (!job->checkpoint || e->number < 1 || e->number > job->checkpoints_made)
		return 0;
	checkpoint = checkpoint_row(f, job, e->number);
	if (checkpoint->number != e->number || checkpoint->is_void ||
	    job_state_is_final(job->state))
		return 0;
	/* One that runs has taken up what it goes on from: that it is torn later costs nothing yet. */
	if (job->attempt.v && attempt_get(f, job->attempt)->released_ms)
		return 0;
	left = e->number > 1 ? job_checkpoint(f, job, (uint32_t)e->number - 1) : NULL;
	if (left)
		lose_part(f, checkpoint, checkpoint_row(f, job, e->number - 1), e);
	else
		lose_all(f, job, e);
	return 0;
}
