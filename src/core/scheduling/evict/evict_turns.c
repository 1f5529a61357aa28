/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns among equals. A job that waits may take the place of running work of its own queue, tier and priority, when that is
 * expected to need much more than it needs itself: whoever needs an hour does not wait behind a month. What goes has saved its
 * work, and goes on when its own turn comes.
 *
 *	nothing declared: `month` has run on 8 GPUs for 2 h, 16 GPU-hours, so as much again is expected. `new` comes, of which a GPU-hour
 *	is expected, in class less by four octaves: `month` goes.
 *	`week` has run for 6 h on one GPU. `new` again: `week` goes. Were it 2 `new`s of 8 h each, they would come back in turn.
 *
 * Nobody goes and comes without end: what goes has run for min_runtime and for a part of all it ran before (TURN_PART), so each
 * time it stays longer; and it takes back its place only from work that is expected to need much more than it does.
 *
 * Nobody goes either for one who would have his turn after him, were both to wait (due.h): what was submitted long ago is not overtaken
 * while it runs by what would not overtake it while it waits. Ranks that an elastic job can do without (resize: free) go for any
 * equal, at once: they lose nothing, and the job goes on.
 *
 * The rule is that of least attained service, by octaves, where nothing is declared, and of least remaining work where it is.
 */
#include "core/scheduling/order/due.h"
#include "core/scheduling/evict/evict.h"

int64_t turn_ran_ms(const struct pass *pass, const struct attempt *attempt)
{
	return attempt->released_ms ? pass->facts->now_ms - attempt->released_ms : 0;
}

uint32_t turn_class(const struct pass *pass, const struct job *job)
{
	if (!pass->facts->policy.take_turns || job->tier != TIER_STANDARD)
		return 0;
	return job_work_class(pass->facts, job, 0);
}

int64_t turn_due_ms(const struct pass *pass, const struct job *job, uint32_t class)
{
	return class ? work_due_ms(pass->facts, job->submitted_ms, class) : 0;
}

/* It can save its work when it is told to go, and goes as a whole. */
static bool turn_can_end(const struct victim *v, const struct job *job)
{
	return job->checkpoints && v->attempt->state == ATTEMPT_ACTIVE && !v->attempt->exited;
}

/*
 * What its going costs: what it can't save in time, and the restart. Told in time it saves within its grace; but who lost work before is
 * taken to lose as much again. So what turns destroy stays below what they win, also where two can't save at all.
 */
static int64_t turn_cost(const struct pass *pass, const struct victim *v, const struct job *job)
{
	int64_t grace_ms = job_grace_ms(pass->facts, job), cost = v->cost;

	if (grace_ms)
		cost = share_gpu_ms(v->share, grace_ms + (int64_t)job->restart_cost_ms);
	return cost < INT64_MAX - job->lost_gpu_ms ? cost + job->lost_gpu_ms : INT64_MAX;
}

static bool is_before(const struct hunt *hunt, int64_t due_ms)
{
	return !hunt->pass->facts->policy.patience || hunt->due_ms < due_ms;
}

bool turn_is_before(const struct hunt *hunt, const struct victim *v)
{
	return v->leaver || is_before(hunt, v->due_ms);
}

/* Not yet: what runs on is expected to need more. */
static void turn_waits(const struct hunt *hunt, const struct job *job, struct turn_asked *asked)
{
	int64_t wait_ms;

	if (asked->told && *asked->told)
		return;
	if (asked->told)
		*asked->told = true;
	wait_ms = job_work_reaches_ms(hunt->pass->facts, job, asked->ran_ms, asked->class + 1);
	if (wait_ms)
		pass_wake(hunt->pass, hunt->pass->facts->now_ms + wait_ms);
}

/* It has run for long enough, and has enough work left; else the core is woken when it will. */
static bool turn_is_long_enough(const struct hunt *hunt, const struct job *job,
				const struct turn_asked *asked)
{
	struct pass *pass = hunt->pass;
	uint32_t wanted = hunt->work + (job_declares_work(job) ? WORK_GAIN_DECLARED : WORK_GAIN);
	int64_t ran = asked->ran_ms, wait_ms = 0;

	if (asked->class < wanted)
		wait_ms = job_work_reaches_ms(pass->facts, job, ran, wanted);
	if (wait_ms < job->run_ms / TURN_PART - ran)
		wait_ms = job->run_ms / TURN_PART - ran;
	if (wait_ms > 0)
		pass_wake(pass, pass->facts->now_ms + wait_ms);
	return wait_ms <= 0 && asked->class >= wanted;
}

bool turn_may_end(struct hunt *hunt, struct turn_asked *asked, struct victim *ret)
{
	struct pass *pass = hunt->pass;
	const struct job *job = job_get(pass->facts, (struct job_id){ asked->job });
	int64_t due_ms;

	if (!turn_is_long_enough(hunt, job, asked))
		return false;
	due_ms = work_due_ms(pass->facts, job->submitted_ms, asked->class);
	if (!is_before(hunt, due_ms)) {
		turn_waits(hunt, job, asked);
		return false;
	}
	*ret = asked->victim ? *asked->victim : victim_of(pass, asked->job);
	ret->cost = turn_cost(pass, ret, job);
	ret->due_ms = due_ms;
	ret->turn = asked->class;
	if (work_class_floor_ms(asked->class) - work_class_floor_ms(hunt->work) > ret->cost)
		return true;
	turn_waits(hunt, job, asked);
	return false;
}

bool turn_may_end_of(struct hunt *hunt, const struct victim *v, struct victim *ret)
{
	const struct job *job = job_get(hunt->pass->facts, (struct job_id){ v->job });
	struct turn_asked asked = { .job = v->job,
				    .ran_ms = turn_ran_ms(hunt->pass, v->attempt),
				    .victim = v };

	if (!hunt->work)
		return false;
	if (v->leaver) {
		*ret = *v;
		ret->turn = 1;
		return true;
	}
	asked.class = job_work_class(hunt->pass->facts, job, asked.ran_ms);
	return turn_can_end(v, job) && turn_may_end(hunt, &asked, ret);
}
