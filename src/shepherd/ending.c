/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a task. It is over when nothing of it is left, and only then is `exit` written:
 *
 *	main process over -> SIGTERM to what it left behind -> after a moment SIGKILL, again and again, slower and
 *	slower, until waitpid says that there is no child and the groups are empty -> output drained -> exit written
 *
 * The shepherd is a subreaper, so "no child" means "no descendant".
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/failpoint.h"
#include "engine/local/place.h"
#include "shepherd/shepherd.h"
#include "store/io.h"

enum { WRITE_AGAIN_MS = 1000 };

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void ending_begin(struct shepherd *s)
{
	int64_t now = clock_boot_ms();

	if (s->phase >= ENDING)
		return;
	/* Never released: the launcher holds nothing of the user's, it may go at once. */
	bool at_once = s->phase < STARTING || s->failed;
	s->phase = ENDING;
	close_fd(&s->go_fd);
	if (at_once)
		s->kill_at_ms = now;
	else if (!s->stopping || s->kill_at_ms == INT64_MAX)
		s->kill_at_ms = now + LEFTOVER_GRACE_MS;
	s->kill_pause_ms = KILL_FIRST_MS;
	if (!at_once && s->kill_at_ms > now)
		(void)proctree_signal(&s->tree, false, SIGTERM),
			(void)proctree_signal(&s->tree, false, SIGCONT);
}

void ending_fail(struct shepherd *s, const struct err *err)
{
	if (!s->failed) {
		snprintf(s->end.text, sizeof(s->end.text), "%.255s", err->text);
		s->fault = fault_of(err);
		s->fail_cause = fault_cause(s->fault);
	}
	s->failed = true;
	ending_begin(s);
}

/* Nothing to wait for, and nobody in the groups (a process that somebody else put there counts
 * too). */
static bool nothing_left(struct shepherd *s)
{
	AUTO_PIDS members = { 0 };

	if (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD)
		return false;
	cgroup_members(&s->spec.cgroups, &members);
	return members.count == 0;
}

void ending_step(struct shepherd *s)
{
	int64_t now = clock_boot_ms();

	if ((s->task == 0 || s->task_over) && nothing_left(s)) {
		s->phase = OVER;
		return;
	}
	if (now < s->kill_at_ms)
		return;
	(void)FAILPOINT_RANK("shepherd-kill", s->spec.rank);
	(void)proctree_signal(&s->tree, false, SIGKILL);
	s->kill_at_ms = now + s->kill_pause_ms;
	s->kill_pause_ms =
		s->kill_pause_ms * 2 < KILL_SLOWEST_MS ? s->kill_pause_ms * 2 : KILL_SLOWEST_MS;
}

void memory_look(struct shepherd *s)
{
	int64_t now = clock_boot_ms();

	if (s->spec.cgroups.memory[0] || s->phase != RUNNING || now < s->memory_look_ms)
		return;
	s->memory_look_ms = now + MEMORY_LOOK_MS;
	int64_t mib = proctree_memory_mib(&s->tree, false);
	/* The quick sum counts shared pages once per process; before a kill they are counted right. */
	if (s->spec.memory_mib && mib > s->spec.memory_mib)
		mib = proctree_memory_mib(&s->tree, true);
	if (mib > s->memory_peak_mib)
		s->memory_peak_mib = mib;
	if (s->spec.memory_mib && mib > s->spec.memory_mib && !s->stopping) {
		s->memory_killed = true;
		snprintf(s->end.text, sizeof(s->end.text),
			 "it used %" PRId64 " MiB, its limit is %" PRId64 " MiB", mib,
			 s->spec.memory_mib);
		(void)proctree_signal(&s->tree, false, SIGKILL);
	}
}

/* --- the record --- */

static void read_memory(struct shepherd *s, int64_t *ret_oom_kills)
{
	int64_t peak;

	cgroup_memory(&s->spec.cgroups, ret_oom_kills, &peak);
	if (peak > s->memory_peak_mib)
		s->memory_peak_mib = peak;
	if (s->task_peak_kib >> 10 > s->memory_peak_mib)
		s->memory_peak_mib = s->task_peak_kib >> 10;
}

static enum engine_cause find_cause(struct shepherd *s, int64_t oom_kills)
{
	struct engine_fact *end = &s->end;
	bool well = s->task_over && WIFEXITED(s->task_status) && WEXITSTATUS(s->task_status) == 0;

	if (s->failed && s->refused_code)
		return ENGINE_CAUSE_EXIT;
	if (s->failed)
		return s->fail_cause;
	if (s->shutdown) {
		snprintf(end->text, sizeof(end->text), "the machine is going down");
		return ENGINE_CAUSE_LOST;
	}
	if (s->overdrawn)
		return ENGINE_CAUSE_MEMORY;
	if (s->stopping)
		return ENGINE_CAUSE_STOPPED;
	if (s->memory_killed)
		return ENGINE_CAUSE_MEMORY;
	if (oom_kills > 0 && !well) {
		if (s->memory_enforced)
			snprintf(end->text, sizeof(end->text),
				 "the kernel killed a process of it at its memory limit of %" PRId64
				 " MiB",
				 s->spec.memory_mib);
		else
			snprintf(
				end->text, sizeof(end->text),
				"the kernel killed a process of it because the machine ran out of memory");
		return ENGINE_CAUSE_MEMORY;
	}
	return s->task_over && WIFSIGNALED(s->task_status) ? ENGINE_CAUSE_SIGNAL
							   : ENGINE_CAUSE_EXIT;
}

static void fill_record(struct shepherd *s)
{
	struct engine_fact *end = &s->end;
	int64_t oom_kills;

	read_memory(s, &oom_kills);
	end->kind = ENGINE_EXITED;
	end->attempt = s->spec.attempt;
	end->rank = s->spec.rank;
	end->time_ms = clock_wall_ms();
	end->never_ran = !s->ran;
	end->cause = find_cause(s, oom_kills);
	end->fault = s->fault;
	end->memory_enforced = s->memory_enforced;
	end->code = end->cause == ENGINE_CAUSE_EXIT ? s->refused_code : 0;
	if (s->ran && s->task_over) {
		end->code = WIFEXITED(s->task_status) ? WEXITSTATUS(s->task_status) : 0;
		end->signal = WIFSIGNALED(s->task_status) ? WTERMSIG(s->task_status) : 0;
		end->peak_memory_mib = s->memory_peak_mib;
	}
}

void ending_record(struct shepherd *s)
{
	struct timespec pause = { .tv_sec = WRITE_AGAIN_MS / 1000 };
	struct err err;

	(void)FAILPOINT_RANK("shepherd-nothing-left", s->spec.rank);
	report_server_settle(s);
	(void)report_server_flush(s, true);
	output_drain(s);
	fill_record(s);
	report_server_close(s);
	/* How it ended is known here alone: on a full or failing disk this process stays until it
	 * can be written. */
	while (place_put_exit(io_real(), s->path, &s->end, &err) < 0 &&
	       !place_is_deleted(s->folder)) {
		log_line(LOG_ERROR, "%s; trying again", err.text);
		nanosleep(&pause, NULL);
	}
	(void)FAILPOINT_RANK("shepherd-exit-written", s->spec.rank);
	if (cgroup_remove(&s->spec.cgroups) != 0)
		log_line(LOG_WARN, "a control group of the task could not be removed: %s",
			 s->spec.cgroups.tree);
}
