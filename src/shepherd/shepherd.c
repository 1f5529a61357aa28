/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that owns one task: see shepherd.h for the phases and README.md for the whole story. */
#include "shepherd/shepherd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/failpoint.h"
#include "engine/local/place.h"
#include "shepherd/pod.h"
#include "store/io.h"

enum { POLLS_MAX = CLIENTS_MAX + 8 };

/* --- set-up --- */

int shepherd_signals(struct shepherd *s, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0)
		return err_errno(err, ERR_IO, errno, "could not listen to signals");
	return 0;
}

void shepherd_become(struct shepherd *s)
{
	s->tree.root = getpid();
	s->tree.brand = s->spec.brand;
	s->tree.cgroups = &s->spec.cgroups;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_DUMPABLE, 0); /* the environment of the task is in our memory */
	/* Of all processes this should be the last that the kernel kills for memory; needs root. In a pod the kubelet says who is. */
	if (!s->pod)
		(void)small_file_write("/proc/self/oom_score_adj", "-900");
}

int shepherd_prepare(struct shepherd *s, struct err *err)
{
	(void)FAILPOINT_RANK("shepherd-begin", s->spec.rank);
	if (report_server_open(s, err) < 0)
		return -1;
	(void)FAILPOINT_RANK("shepherd-place-made", s->spec.rank);
	if (launch_task(s, err) < 0)
		return -1;
	(void)fcntl(s->status_fd, F_SETFL, O_NONBLOCK);
	(void)FAILPOINT_RANK("shepherd-launched", s->spec.rank);
	return 0;
}

/* --- the launcher's progress --- */

static int say_fact(struct shepherd *s, const char *name, enum engine_fact_kind kind,
		    struct err *err)
{
	struct engine_fact fact = {
		.kind = kind,
		.attempt = s->spec.attempt,
		.rank = s->spec.rank,
		.time_ms = clock_wall_ms(),
		.pid = s->task,
	};

	return place_put_fact(s->folder, name, &fact, err);
}

static void launcher_ready(struct shepherd *s)
{
	struct err err;

	(void)FAILPOINT_RANK("shepherd-before-ready", s->spec.rank);
	if (say_fact(s, "ready", ENGINE_READY, &err) < 0) {
		ending_fail(s, &err);
		return;
	}
	s->phase = WAITING;
	(void)FAILPOINT_RANK("shepherd-ready", s->spec.rank);
	control_look(s); /* a stop may have come meanwhile */
}

/* The status pipe closed at exec: the user's command runs. */
static void task_runs(struct shepherd *s)
{
	struct err err;

	s->ran = true;
	if (s->phase == STARTING)
		s->phase = RUNNING;
	asking_begin(s);
	(void)FAILPOINT_RANK("shepherd-before-started", s->spec.rank);
	if (say_fact(s, "started", ENGINE_STARTED, &err) < 0)
		log_line(LOG_WARN, "%s", err.text); /* it runs all the same; `exit` will say so */
	(void)FAILPOINT_RANK("shepherd-started", s->spec.rank);
	control_look(s);
}

static void close_status(struct shepherd *s)
{
	close(s->status_fd);
	s->status_fd = -1;
}

/* The launcher ended without a word: by somebody's hand, or by ours when a stop came just then. */
static void launcher_lost(struct shepherd *s)
{
	struct err err;

	if (s->stopping || s->phase >= ENDING) {
		ending_begin(s);
		return;
	}
	err_set(&err, ERR_INTERNAL, "the prepared process of the task was killed before it ran");
	ending_fail(s, &err);
}

/* A limit of the user's own, a full disk of the user's: the job waits at no cost, and others start. An error on a path of the user's is the job's. */
static void launcher_failed(struct shepherd *s, const struct err *err, bool as_user)
{
	const bool was_failed = s->failed;

	ending_fail(s, err);
	if (was_failed || !as_user)
		return;
	if (s->fault != ENGINE_FAULT_SPACE && s->fault != ENGINE_FAULT_PROCESSES)
		s->fail_cause = ENGINE_CAUSE_START;
	s->fault = ENGINE_FAULT_NONE;
}

static void read_status(struct shepherd *s)
{
	struct launch_note note;
	struct err err;
	ssize_t n = read(s->status_fd, &note, sizeof(note));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(note)) {
		close_status(s);
		if (s->exec_begun && s->phase != PREPARING)
			task_runs(s);
		else
			launcher_lost(s);
		return;
	}
	switch ((enum launch_step)note.step) {
	case LAUNCH_READY:
		if (s->phase == PREPARING)
			launcher_ready(s);
		break;
	case LAUNCH_EXEC: s->exec_begun = true; break;
	case LAUNCH_FAILED:
		s->exec_begun = false;
		note.text[sizeof(note.text) - 1] = '\0';
		err_set(&err, ERR_INVALID, "%s", note.text);
		err.errnum = note.errnum;
		s->refused_code = note.code;
		close_status(s);
		launcher_failed(s, &err, note.as_user);
		break;
	}
}

/* --- children --- */

/* What the launcher said before it ended comes first: its last words are in the pipe. */
static void finish_status(struct shepherd *s)
{
	while (s->status_fd >= 0) {
		struct pollfd poll_status = { .fd = s->status_fd, .events = POLLIN };

		if (poll(&poll_status, 1, 0) <= 0)
			return;
		read_status(s);
	}
}

static void collect_children(struct shepherd *s)
{
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
		if (pid != s->task || s->task_over)
			continue;
		finish_status(s);
		s->task_over = true;
		s->task_status = status;
		s->task_peak_kib = usage.ru_maxrss;
		(void)FAILPOINT_RANK("shepherd-task-over", s->spec.rank);
		if (!s->ran)
			launcher_lost(s);
		ending_begin(s);
	}
}

/* Not by the engine's wish: the machine goes down, or the place was removed under us. With all that
 * is ours. In a pod: it is being deleted, and its kubelet kills what is left when its grace is over. */
static void shut_down(struct shepherd *s)
{
	int64_t kill_at = s->pod ? INT64_MAX : clock_boot_ms() + SHUTDOWN_GRACE_MS;

	if (s->shutdown)
		return;
	s->shutdown = s->stopping = true;
	if (s->phase < STARTING) {
		ending_begin(s);
		return;
	}
	if (kill_at < s->kill_at_ms)
		s->kill_at_ms = kill_at;
	(void)proctree_signal(&s->tree, false, SIGTERM);
	(void)proctree_signal(&s->tree, false, SIGCONT);
}

/* SIGTERM is all that a kubelet says when a pod is evicted or deleted, or its machine goes down; how long there is it does not say. A task of which Fairlead
 * knows nothing of that yet is asked for a checkpoint first. */
static void go(struct shepherd *s)
{
	if (!s->pod || s->phase != RUNNING || s->stopping || s->go_at_ms) {
		shut_down(s);
		return;
	}
	s->go_at_ms = clock_boot_ms() + GO_MS;
	control_warn(s, GO_MS);
}

static void go_look(struct shepherd *s, int64_t now)
{
	if (s->stopping || s->phase != RUNNING)
		s->go_at_ms = 0;
	else if (s->go_at_ms && now >= s->go_at_ms)
		shut_down(s);
}

static void read_signals(struct shepherd *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			go(s);
	collect_children(s);
}

/* --- the loop --- */

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int timeout_ms(struct shepherd *s)
{
	int64_t now = clock_boot_ms(), wait = s->recheck_ms - now;

	wait = least(wait, report_server_flush(s, false));
	wait = least(wait, asking_left_ms(s, now));
	if (s->pod)
		wait = least(wait, pod_left_ms(s, now));
	if (s->leave_at_ms && !s->stopping)
		wait = least(wait, s->leave_at_ms - now);
	if (s->go_at_ms)
		wait = least(wait, s->go_at_ms - now);
	if (s->kill_at_ms != INT64_MAX)
		wait = least(wait, s->kill_at_ms - now);
	if (s->phase == RUNNING && !s->spec.cgroups.memory[0])
		wait = least(wait, s->memory_look_ms - now);
	return wait < 0 ? 0 : (int)wait;
}

static void check_times(struct shepherd *s)
{
	int64_t now = clock_boot_ms();

	if (now >= s->recheck_ms) {
		s->recheck_ms = now + RECHECK_MS;
		control_look(s);
		control_signal(s);
		/* Without its place nobody knows of this task any more: it holds what is thought
		 * free. */
		if (place_is_deleted(s->folder))
			shut_down(s);
	}
	report_server_look(s);
	asking_look(s, now);
	control_leave(s, now);
	go_look(s, now);
	if (s->pod)
		pod_look(s, now);
	memory_look(s);
	if (s->phase < ENDING && s->stopping && now >= s->kill_at_ms) {
		s->kill_at_ms = now;
		ending_begin(s);
	}
	if (s->phase == ENDING)
		ending_step(s);
}

void shepherd_turn(struct shepherd *s)
{
	struct pollfd polls[POLLS_MAX] = {
		{ .fd = s->wake, .events = POLLIN },
		{ .fd = s->signals, .events = POLLIN },
		{ .fd = s->status_fd, .events = POLLIN },
		{ .fd = s->outputs[0].fd, .events = POLLIN },
		{ .fd = s->outputs[1].fd, .events = POLLIN },
	};
	size_t fixed = 5, count = fixed + report_server_polls(s, polls + fixed, POLLS_MAX - fixed);

	if (poll(polls, (nfds_t)count, timeout_ms(s)) < 0)
		return;
	if (polls[2].revents && s->status_fd >= 0)
		read_status(s);
	if (polls[0].revents) {
		char bytes[256];

		while (read(s->wake, bytes, sizeof(bytes)) > 0)
			;
		control_look(s);
	}
	if (polls[3].revents || polls[4].revents)
		output_read(s);
	for (size_t i = fixed; i < count; i++)
		report_server_handle(s, &polls[i]);
	if (polls[1].revents)
		read_signals(s);
	check_times(s);
}

void shepherd_init(struct shepherd *s)
{
	*s = (struct shepherd){
		.folder = -1, .wake = -1, .signals = -1, .go_fd = -1, .status_fd = -1
	};
	s->outputs[0].fd = s->outputs[1].fd = -1;
	s->outputs[0].log.fd = s->outputs[1].log.fd = s->order.log.fd = -1;
	s->writes = -1;
	s->reports.fd = s->reports.file = -1;
	for (int i = 0; i < CLIENTS_MAX; i++)
		s->reports.clients[i].fd = -1;
	s->kill_at_ms = INT64_MAX;
	s->recheck_ms = clock_boot_ms() + RECHECK_MS;
	arena_init(&s->arena, SHEPHERD_MEMORY);
}
