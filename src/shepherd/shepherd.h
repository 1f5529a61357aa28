/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * fairlead-shepherd: the small program that owns one running task (README.md tells its life).
 *
 * One thread, one loop over poll(); all state is in struct shepherd. Phases only move forward:
 *
 *	PREPARING -> WAITING -> STARTING -> RUNNING -> ENDING -> OVER
 *	             ready      go          started    main process over,   nothing left,
 *	                                               or stop              exit written
 *
 * From each of the first four it may go to ENDING at once (a failure, or a stop before the
 * release).
 */
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/local/proctree.h"
#include "engine/local/spec.h"
#include "engine/report.h"
#include "engine/task_order.h"

enum {
	RECHECK_MS = 2000, /* the folder is looked at this often even if nobody woke us */
	LEFTOVER_GRACE_MS = 1000, /* for what the task left behind when its main process ended */
	SHUTDOWN_GRACE_MS = 20000, /* when the machine goes down (SIGTERM to the shepherd) */
	GO_MS = 10000, /* in a pod that is evicted: to save, before SIGTERM reaches the task. Of 30 s as usual, 15 of a machine that goes down */
	KILL_FIRST_MS = 10, /* the kill loop: from this ... */
	KILL_SLOWEST_MS = 500, /* ... to this pause between passes */
	MEMORY_LOOK_MS = 500,
	SHEPHERD_MEMORY = 64 << 20 /* cap of its arena */
};

enum shepherd_phase { PREPARING, WAITING, STARTING, RUNNING, ENDING, OVER };

/* What the launcher (the forked child that becomes the task) says through its status pipe. */
enum launch_step { LAUNCH_READY = 1, LAUNCH_EXEC, LAUNCH_FAILED };
struct launch_note {
	int32_t step;
	int32_t code; /* FAILED by what the user asked for: 126 or 127; 0 = by the machine */
	int32_t errnum; /* FAILED by the machine: the system's reason, 0 = none */
	int32_t as_user; /* it was refused to the user, on paths of the user's: others may be able to start */
	char text[256];
};

struct output {
	int fd; /* read end, -1 = closed */
	int number; /* that it had */
	bool ended; /* the signal of its end was counted */
	struct task_log log;
};

enum {
	CLIENTS_MAX = 32,
	PENDING_MAX = 4096,
	CHECKPOINTS_PER_WINDOW = 100,
	CHECKPOINT_WINDOW_MS = 10000,
	PROGRESS_EVERY_MS = 1000
};

struct report_client {
	int fd; /* -1 = free */
	bool watches;
	bool skipping; /* dropping the rest of a line that was too long */
	size_t in_size;
	char in[REPORT_LINE_MAX + 1];
	size_t out_size;
	char out[PENDING_MAX];
};

struct report_server {
	int fd; /* listening, -1 = none */
	int file; /* `reports`, -1 until the first */
	uint64_t number; /* of the newest report */
	int64_t file_bytes;
	struct engine_fact progress; /* newest progress; pending when it is not in the file yet */
	bool progress_pending;
	int64_t progress_at_ms; /* when one was last written */
	int64_t window_at_ms; /* of counting checkpoints */
	int window_count;
	struct report_look *look; /* of the checkpoint `looked`; NULL = none is being looked at */
	int64_t look_until_ms; /* boot clock */
	int look_client; /* who waits for its answer */
	struct engine_fact looked;
	struct report_client clients[CLIENTS_MAX];
};

struct shepherd {
	char path[PATH_MAX]; /* the task's place */
	int folder; /* the same, opened */
	int wake; /* FIFO */
	int signals; /* signalfd */
	struct arena arena;
	struct task_spec spec;
	enum shepherd_phase phase;

	pid_t task; /* launcher, then the task's main process; 0 = none */
	int go_fd, status_fd; /* pipes to and from the launcher, -1 = closed */
	bool exec_begun, ran; /* it is about to exec; the user's command did run */
	bool task_over;
	int task_status; /* of wait */
	int64_t task_peak_kib;
	struct proctree tree;
	struct output outputs[2]; /* by enum task_stream */
	struct task_order order;
	int writes; /* signalfd: a signal for each write of the task to them; -1 = none come */
	struct report_server reports;

	bool go_seen;
	uint64_t warn_seen, stop_seen, world_seen; /* newest numbers acted on */
	int64_t leave_at_ms; /* boot clock; told to leave, and stopped then if it has not; 0 = not told */
	bool signal_due; /* the checkpoint signal found nobody who waits for it yet */
	bool stopping; /* a stop came */
	bool shutdown; /* the machine goes down */
	int64_t go_at_ms; /* boot clock; in a pod that somebody takes away: until then, or its next checkpoint, it may save. 0 = nobody does */
	bool failed; /* it could not be started; end.text says why */
	enum engine_cause fail_cause; /* what that comes to */
	enum engine_fault fault; /* and of the machine, where nobody can start anything for it */
	int refused_code; /* what the user asked to run is of no use: 126, 127; else 0 */
	bool memory_killed; /* we killed it for its sampled memory */
	bool overdrawn; /* it is stopped because it took more than its part of a GPU */
	bool memory_enforced;
	int64_t memory_look_ms, memory_peak_mib;
	int64_t kill_at_ms; /* boot clock; when SIGKILL is due in ENDING, or while stopping; INT64_MAX = not */
	int64_t kill_pause_ms;
	int64_t recheck_ms;
	int64_t ask_at_ms; /* boot clock; when a checkpoint is asked for, if the job says how often */
	struct pod *pod; /* its task runs in a pod of a cluster (pod.h); NULL = on this machine */
	struct engine_fact end;
};

/* shepherd.c, in this order */
void shepherd_init(struct shepherd *s);
int shepherd_signals(struct shepherd *s, struct err *err) MUST_CHECK;
void shepherd_become(struct shepherd *s);
int shepherd_prepare(struct shepherd *s, struct err *err) MUST_CHECK;
void shepherd_turn(struct shepherd *s);

/* launch.c: makes the launcher process; it prepares itself as the user and waits for go. */
int launch_task(struct shepherd *s, struct err *err) MUST_CHECK;
/* launcher.c: the child's side; never returns. */
struct launch_fds {
	int go, status, out, err;
	int cgroups[CGROUP_FOLDERS_MAX];
	int cgroup_count;
};
struct account {
	const char *home, *shell;
	gid_t *groups;
	int group_count;
};
_Noreturn void launcher_run(const struct task_spec *spec, const struct account *account,
			    const char *const *env, const struct launch_fds *fds, pid_t parent);
/* account.c, and pod_account.c in a pod: never fails; a user without account gets `/` as home and its one group. */
void account_find(const struct task_spec *spec, struct arena *arena, struct account *ret);

/* output.c */
int output_open(struct shepherd *s, int ret_child_ends[2], struct err *err) MUST_CHECK;
void output_read(
	struct shepherd
		*s); /* what is in the pipes; of a task that prints all the time, some of it */
void output_restore_limit(
	void); /* in the task's process: what output_open has changed for the shepherd alone */
void output_drain(struct shepherd *s); /* what is in the pipes, then closes them */

/* report_server.c */
int report_server_open(struct shepherd *s, struct err *err) MUST_CHECK;
void report_server_close(struct shepherd *s);
size_t report_server_polls(struct shepherd *s, struct pollfd *polls, size_t room);
void report_server_handle(struct shepherd *s, const struct pollfd *poll);
void report_server_look(struct shepherd *s); /* each turn: a look that takes too long is given up */
/* grace_ms: how long it may take; -1 = nobody waits for it. */
void report_server_notice(struct shepherd *s, int64_t grace_ms);
/* The line to all who listen; how many do. */
int report_server_tell(struct shepherd *s, const char *line, size_t size);
/* Writes pending progress when due; ms until it is due again, INT64_MAX = nothing pending. */
int64_t report_server_flush(struct shepherd *s, bool now);

/* Waits for the checkpoint that is being looked at, if there is one; bounded. */
void report_server_settle(struct shepherd *s);

/* report_look.c: looks at the checkpoint `reports.looked`. Over when it was looked at or took too long; what it answers then
 * is that of checkpoint_look. */
int report_look_begin(struct shepherd *s, struct err *err) MUST_CHECK;
int report_look_fd(const struct report_look *look); /* can be read when it is over */
bool report_look_is_over(const struct shepherd *s, int *ret_result, struct err *err);
int64_t report_look_end(struct shepherd *s, int result); /* bytes, 0 = not known */

/* control.c: what the engine wants; reads the folder and acts. */
void control_look(struct shepherd *s);
/* As a stop that the engine wants. */
void control_warn(struct shepherd *s, int64_t grace_ms); /* a checkpoint is wanted */
void control_stop(struct shepherd *s, int64_t grace_ms);
/* Stops a rank that was told to leave and is still there when its time is over. */
void control_leave(struct shepherd *s, int64_t now);
/* Sends the checkpoint signal that is still due, if somebody waits for it now. */
void control_signal(struct shepherd *s);

/* asking.c: checkpoints that the job wants to be asked for, by the clock. */
void asking_begin(struct shepherd *s); /* from now: it runs, or was asked in another way */
void asking_reported(struct shepherd *s); /* a checkpoint is complete */
int64_t asking_left_ms(const struct shepherd *s, int64_t now); /* INT64_MAX = it is not asked */
void asking_look(struct shepherd *s, int64_t now); /* asks when it is due */

/* ending.c */
void ending_begin(struct shepherd *s); /* idempotent; from any phase */
void ending_fail(struct shepherd *s, const struct err *err); /* the task could not be started */
void ending_step(
	struct shepherd *s); /* one pass of the kill loop; moves to OVER when nothing is left */
void ending_record(struct shepherd *s); /* writes `exit`, until it is written */
void memory_look(struct shepherd *s); /* sampled limit and peak */
