/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine facts become events. The engine tells things at least once, and after a restart again; only what the
 * facts do not know yet is journalled. A word from an attempt that is over is refused: that is what the fencing number is for.
 */
#include <string.h>

#include "daemon/state.h"

/* The engine's causes go into events as they are. */
#define SAME(name)                                                                                 \
	_Static_assert((int)CAUSE_##name == (int)ENGINE_CAUSE_##name,                              \
		       "task_cause and engine_cause have the same numbers")
SAME(EXIT);
SAME(SIGNAL);
SAME(STOPPED);
SAME(MEMORY);
SAME(START);
SAME(LOST);
SAME(LOG_LIMIT);
SAME(NO_SPACE);
SAME(MACHINE);
#undef SAME
_Static_assert((int)TASKS_MAX == (int)ENGINE_TASKS_MAX, "what a job may have, an engine takes");

static bool exit_event(const struct facts *facts, const struct engine_fact *fact,
		       const struct attempt *attempt, const struct task *task, struct event *ret)
{
	(void)facts;
	if (task->state >= TASK_EXITED)
		return false;
	/* So is that of a rank that comes to a running attempt. */
	if (fact->kind == ENGINE_GONE && task->state == TASK_PREPARING && attempt->generation)
		return false;
	/* A place never released is only made again (effects.c): that the engine has no trace of it is no loss. */
	if (fact->kind == ENGINE_GONE && attempt->state == ATTEMPT_PREPARING)
		return false;
	*ret = event_make(EVENT_TASK_EXITED, 0, "engine");
	struct event_task_exited *e = &ret->task_exited;
	e->attempt = (int64_t)fact->attempt;
	e->rank = fact->rank;
	e->at_ms = fact->time_ms;
	e->launch = fact->launch;
	if (fact->kind == ENGINE_GONE) {
		e->cause = ENGINE_CAUSE_LOST;
		e->text = fact->text[0] ? fact->text : "nothing of it was found on this machine";
		return true;
	}
	e->cause = fact->cause;
	e->code = fact->code;
	e->signal = fact->signal;
	e->never_ran = fact->never_ran;
	e->peak_memory_mib = fact->peak_memory_mib;
	e->memory_enforced = fact->memory_enforced;
	e->text = fact->text;
	return true;
}

static bool report_event(const struct facts *facts, const struct fact_message *message,
			 const struct attempt *attempt, const struct task *task, struct event *ret)
{
	const struct engine_fact *fact = &message->fact;
	if (fact->number <= task->reports)
		return false;
	if (!fact->checkpoint) {
		*ret = event_make(EVENT_PROGRESS, 0, "engine");
		ret->progress.attempt = (int64_t)fact->attempt;
		ret->progress.rank = fact->rank;
		ret->progress.number = (int64_t)fact->number;
		ret->progress.step = fact->step;
		ret->progress.launch = fact->launch;
		return true;
	}
	*ret = event_make(EVENT_CHECKPOINT_SAVED, 0, "engine");
	struct event_checkpoint_saved *e = &ret->checkpoint_saved;
	e->job = attempt->job.v;
	e->attempt = (int64_t)fact->attempt;
	e->rank = fact->rank;
	e->report = (int64_t)fact->number;
	e->launch = fact->launch;
	e->number = job_get(facts, attempt->job)->checkpoints_made + 1;
	e->step = fact->step;
	e->at_ms = fact->time_ms;
	e->path = fact->path;
	e->bytes = fact->bytes > 0 ? fact->bytes : 0;
	return true;
}

bool fact_event(const struct facts *facts, const struct fact_message *message, struct event *ret)
{
	const struct engine_fact *fact = &message->fact;
	if (fact->attempt == 0 || fact->attempt > facts->attempts.count)
		return false;
	const struct attempt *attempt =
		attempt_get(facts, (struct attempt_id){ (uint32_t)fact->attempt });
	if (attempt->state == ATTEMPT_OVER || attempt->state == ATTEMPT_FREE ||
	    fact->rank >= attempt->tasks)
		return false;
	if (fact->kind == ENGINE_SHIELDED || fact->kind == ENGINE_UNSHIELDED) {
		if (attempt->shielded == (fact->kind == ENGINE_SHIELDED))
			return false;
		*ret = event_make(EVENT_ATTEMPT_SHIELDED, 0, "engine");
		ret->attempt_shielded.attempt = (int64_t)fact->attempt;
		ret->attempt_shielded.shielded = fact->kind == ENGINE_SHIELDED;
		ret->attempt_shielded.least = attempt->least;
		return true;
	}
	if (fact->kind == ENGINE_LEAST) {
		if (attempt->least == fact->least)
			return false;
		*ret = event_make(EVENT_ATTEMPT_SHIELDED, 0, "engine");
		ret->attempt_shielded.attempt = (int64_t)fact->attempt;
		ret->attempt_shielded.shielded = attempt->shielded;
		ret->attempt_shielded.least = fact->least;
		return true;
	}
	if (fact->kind == ENGINE_DEAF) {
		if (attempt->deaf)
			return false;
		*ret = event_make(EVENT_ATTEMPT_DEAF, 0, "engine");
		ret->attempt_deaf.attempt = (int64_t)fact->attempt;
		return true;
	}
	if (fact->kind == ENGINE_UNREACHABLE || fact->kind == ENGINE_REACHABLE) {
		if (attempt->unreachable == (fact->kind == ENGINE_UNREACHABLE))
			return false;
		*ret = event_make(EVENT_ATTEMPT_UNREACHABLE, 0, "engine");
		ret->attempt_unreachable.attempt = (int64_t)fact->attempt;
		ret->attempt_unreachable.unreachable = fact->kind == ENGINE_UNREACHABLE;
		ret->attempt_unreachable.text = fact->text;
		return true;
	}
	const struct task *task = task_get(facts, attempt, fact->rank);
	if (task->state == TASK_LEFT || fact->launch != task->launch)
		return false;

	switch (fact->kind) {
	case ENGINE_READY:
		if (task->state != TASK_PREPARING)
			return false;
		*ret = event_make(EVENT_TASK_READY, 0, "engine");
		ret->task_ready.attempt = (int64_t)fact->attempt;
		ret->task_ready.rank = fact->rank;
		ret->task_ready.launch = fact->launch;
		return true;
	case ENGINE_STARTED:
		if (task->state >= TASK_RUNNING)
			return false;
		*ret = event_make(EVENT_TASK_STARTED, 0, "engine");
		ret->task_started.attempt = (int64_t)fact->attempt;
		ret->task_started.rank = fact->rank;
		ret->task_started.launch = fact->launch;
		ret->task_started.pid = fact->pid;
		ret->task_started.at_ms = fact->time_ms;
		ret->task_started.gpu_limited = fact->gpu_limited;
		return true;
	case ENGINE_REPORT: return report_event(facts, message, attempt, task, ret);
	case ENGINE_SHIELDED:
	case ENGINE_UNSHIELDED:
	case ENGINE_LEAST:
	case ENGINE_DEAF:
	case ENGINE_UNREACHABLE:
	case ENGINE_REACHABLE: break;
	case ENGINE_EXITED:
	case ENGINE_GONE: return exit_event(facts, fact, attempt, task, ret);
	}
	return false;
}
