/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The local engine from inside. README.md tells the story; engine.h is the contract.
 *
 * Threads: the caller's (commands), one watcher (inotify, deaths of shepherds, the slow re-scan)
 * and WORKERS workers for what may block (fsync, removing, killing what a dead shepherd left). One
 * mutex guards everything in struct engine; facts are reported with it held, so the facts of a rank
 * come in order (report does not block, engine.h says). Workers let go of it around file work and
 * mark what they work on: `working` ranks and `jobs` of an attempt.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>
#include "base/arena.h"
#include "base/err.h"
#include "engine/engine.h"
#include "engine/local/cgroup.h"
#include "engine/local/proctree.h"
#include "engine/local/spec.h"
#include "engine/local/task_env.h"

enum { WORKERS = 4, RESCAN_MS = 2000, RUN_PATH_MAX = 128, LOCK_LOOKS = 20, LOCK_LOOK_MS = 10 };

enum rank_state {
	RANK_PREPARING, /* no shepherd yet */
	RANK_LIVE, /* a shepherd has it */
	RANK_BURYING, /* its shepherd is dead without a record: a worker kills what is left */
	RANK_ENDED /* EXITED or GONE was reported */
};

struct attempt;

struct rank {
	struct attempt *attempt;
	uint32_t number;
	uint32_t launch; /* how often it was started anew */
	enum rank_state state;
	bool ready_said, started_said;
	bool released; /* `go` is there */
	bool waits; /* for its attempt's JOB_PREPARE */
	bool gone; /* ENDED by GONE: start may make it again */
	bool left; /* the others go on without it: the gate does not wait for it */
	bool gpu_limited; /* it was given a bound of GPU memory that MPS keeps */
	bool unseen; /* adopted, but its place could not be looked at yet: the next scan tries again, and nothing is said of it before */
	bool unborn; /* adopted without `go`, and no shepherd of it was seen: start may make it again */
	struct order *again; /* start came while it is unborn, or unseen */
	int folder; /* its place, -1 = not open */
	int watch; /* inotify's number, -1 = none; key of the hash below */
	int lock_looks; /* how often the lock will be looked at again soon */
	uint64_t report_number; /* newest one reported */
	ino_t reports_inode;
	off_t reports_at;
	int64_t bury_again_ms; /* boot clock; 0 = not waiting */
	UT_hash_handle hh;
};

/* A shepherd that is a child of this process; outlives its attempt by the moment it takes to end. */
struct child {
	int fd; /* pidfd, key */
	pid_t pid;
	uint64_t attempt;
	uint32_t rank;
	UT_hash_handle hh;
};

struct attempt {
	uint64_t number, job;
	uint32_t count;
	struct rank **ranks; /* the list may be moved while the mutex is free, the ranks stay */
	bool open; /* some rank was released: the gate is passed */
	bool wanted; /* release came before all were ready: the gate opens when they are */
	bool resized; /* ranks come to it while it is there */
	bool ending; /* it is to be stopped: no rank of it is begun any more */
	uint32_t generation; /* of the newest "world" that its tasks were given */
	uint16_t port;
	bool stale; /* of no interest to the core: stopped and cleared, no facts */
	bool adopted; /* its folder may be there already */
	bool stopping, forgotten;
	int64_t forget_again_ms; /* boot clock; its folders could not be removed whole; 0 = not waiting */
	_Atomic bool elsewhere_said; /* that it runs under the folder of which this is a copy */
	int64_t stop_grace_ms;
	uint64_t warn_number, stop_number;
	uint32_t jobs; /* in the workers' queue or hands */
	UT_hash_handle hh;
};

/* A copy of what start was given, shared by the jobs of its ranks. */
struct order {
	struct arena arena;
	struct engine_start start;
	struct task_env_nodes nodes;
	uint32_t users;
};

enum job_kind { JOB_PREPARE, JOB_PREPARE_RANK, JOB_BURY, JOB_FORGET, JOB_TRY };

struct job {
	enum job_kind kind;
	struct attempt *attempt; /* NULL = of none (JOB_TRY) */
	struct rank *rank;
	struct order *order;
	bool undone; /* of JOB_FORGET: it is to be done again */
	struct job *next;
};

struct engine {
	struct engine_options options;
	char folder[PATH_MAX], attempts[PATH_MAX], logs[PATH_MAX], run[RUN_PATH_MAX],
		shepherd[PATH_MAX];
	char boot[SPEC_BOOT_MAX];
	bool open_to_all; /* every user may pass through the data folder */
	uint64_t tag; /* of the data folder */
	struct cgroup_set cgroups; /* parents */

	pthread_mutex_t lock;
	pthread_cond_t work_there;
	pthread_t watcher, workers[WORKERS];
	bool closing;
	struct job *first_job, **last_job;
	struct attempt *table; /* by number */
	struct rank *watched; /* by watch */
	struct child *children; /* by pidfd; removed by the watcher alone */
	int inotify, wake, epoll;
};

/* local.c */
struct attempt *attempt_find(struct engine *e, uint64_t number);
struct attempt *attempt_add(struct engine *e, uint64_t number, uint32_t count);
void attempt_widen(struct attempt *attempt, uint32_t count); /* to so many ranks */
int rank_go(struct rank *rank, struct err *err) MUST_CHECK; /* its command may run */
void gate_look(struct engine *e,
	       struct attempt *attempt); /* opens it when it is wanted and all are ready */
int check_start(const struct engine_start *start, struct err *err) MUST_CHECK;
struct attempt *find_or_say(struct engine *e, uint64_t number, struct err *err);
void attempt_drop(struct engine *e, struct attempt *attempt);
void engine_queue(struct engine *e, enum job_kind kind, struct attempt *attempt, struct rank *rank,
		  struct order *order);
void rank_say(struct engine *e, struct rank *rank, const struct engine_fact *fact);
/* Tells GONE and ends the rank. */
void rank_gone(struct engine *e, struct rank *rank, const char *why);
/* The rank is over: closes what it holds; the attempt may be forgotten when all are. */
void rank_end(struct engine *e, struct rank *rank);

/* local_prepare.c: on a worker, the mutex not held */
void prepare_attempt(struct engine *e, struct attempt *attempt, struct order *order);
void prepare_rank(struct engine *e, struct rank *rank, struct order *order);
struct order *order_copy(const struct engine *e, const struct engine_start *start);
void order_unref(struct engine *e, struct order *order); /* takes the mutex */
void order_drop(struct order *order); /* the same with the mutex held */
void rank_born(struct rank *rank); /* has no use for its `again`; the mutex held */
void rank_again(struct engine *e,
		struct rank *rank); /* queues it with its `again`; the mutex held */

/* local_try.c: on a worker, the mutex not held. Tells options.tried. */
void try_start(struct engine *e);

/* local_watch.c */
void *watcher_run(void *engine);
int rank_watch(struct engine *e, struct rank *rank, struct err *err) MUST_CHECK;
void rank_unwatch(struct engine *e, struct rank *rank);
void rank_scan(struct engine *e, struct rank *rank); /* the mutex held */
/* READY, STARTED and REPORTs that were not told yet; reports before STARTED only if `all`. The
 * mutex held. False: some could not be looked at, and are told by a later scan. */
bool rank_tell(struct engine *e, struct rank *rank, bool all);
void watch_shepherd(struct engine *e, const struct rank *rank, pid_t pid);

/* local_adopt.c */
int adopt_all(struct engine *e, const uint64_t *attempts, const uint32_t *task_counts,
	      const uint32_t *const *launches, size_t count, struct err *err) MUST_CHECK;

void adopt_rank(struct engine *e, struct rank *rank); /* the mutex held */

/* local_resize.c */
int local_resize(struct engine *e, const struct engine_start *start, int64_t grace_ms,
		 struct err *err) MUST_CHECK;
/* A rank that was to come to an attempt that is being stopped: told as ended. The mutex held. */
void rank_never(struct engine *e, struct rank *rank);
/* "world" in the folder that tasks can see: who belongs to the attempt. The mutex held: several workers and the core may
 * come with one at the same time. */
int put_world(struct attempt *attempt, int folder, const struct engine_start *start,
	      struct err *err) MUST_CHECK;

/* local_bury.c: on a worker, the mutex not held */
void bury_rank(struct engine *e, struct rank *rank);
bool forget_attempt(struct engine *e, struct attempt *attempt)
	MUST_CHECK; /* false: not wholly; to be done again */
/* Removes a folder below an opened one with all in it, never following a link. */
void remove_folder_at(int parent, const char *name);
