/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An engine makes decisions true somewhere: as processes on this machine (local), as pods (kubernetes), later as Slurm jobs,
 * or as nothing at all (sim). The core decides; the daemon hands an engine commands that are already durable;
 * what happens comes back as facts.
 *
 * An attempt is one try at running a job, named by its fencing number (never reused). Its life here:
 *
 *	start    every rank's place is prepared (folder, cgroup, log files, shepherd); nothing of the user runs yet.
 *	         Each rank answers READY, or FAILED when its place can't be made.
 *	release  all ranks are ready, and that is durable: the commands run. Each answers STARTED, later EXITED.
 *	warn     a checkpoint is wanted: the job's signal, and a notice to whoever listens on the report socket. Where nothing can hear
 *	         it the engine answers DEAF, and gets a stop with the grace that is left.
 *	stop     SIGTERM to the whole process tree, after grace SIGKILL, until nothing is left. Each rank answers EXITED.
 *	         For ranks never released: the place is taken down, EXITED with `never_ran`.
 *	resize   who belongs to a released attempt has changed: ranks that come are prepared and run as soon as they are ready;
 *	         those that leave get a notice (or SIGTERM when nobody listens), and are stopped when grace_ms are over; the
 *	         others get a notice with the new world. Says all of it each time, so it may come again.
 *	forget   its end is durable: what is not log or checkpoint may be removed.
 *
 * Commands are idempotent, may come again after a restart of the daemon, and may come in any state. Facts are
 * reported at least once, possibly again after a restart; the core ignores what it knows.
 *
 * Threads: commands are called from one thread (the daemon's engine worker); `report` is called from any thread of
 * the engine, is thread-safe and does not block.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"
#include "engine/fault.h"
#include "engine/pods.h"

enum { ENGINE_TASKS_MAX = 16384 }; /* of one job */

enum engine_fact_kind {
	ENGINE_READY, /* a rank's place is prepared */
	ENGINE_STARTED, /* a rank's command runs */
	ENGINE_EXITED, /* a rank is over and none of its processes is left */
	ENGINE_REPORT, /* progress or checkpoint from inside the job */
	ENGINE_UNREACHABLE, /* of the attempt: no word comes from where a rank is, and nothing proves that it stopped */
	ENGINE_REACHABLE, /* that is over */
	ENGINE_SHIELDED, /* of the attempt: who made it allows no disruption now */
	ENGINE_UNSHIELDED, /* that is over */
	ENGINE_LEAST, /* of the attempt: where nodes of it are taken away, ranks there leave alone as long as `least` go on */
	ENGINE_DEAF, /* of the attempt: nothing in it heard the warning, nor hears one later */
	ENGINE_GONE /* the engine has no trace of this attempt's rank, or only one of an earlier boot */
};

enum engine_cause {
	ENGINE_CAUSE_EXIT, /* exited with `code`; never_ran: a program or folder of the user's is not there (127) or of no use (126) */
	ENGINE_CAUSE_SIGNAL, /* killed by `signal`, not by us */
	ENGINE_CAUSE_STOPPED, /* ended because we stopped it */
	ENGINE_CAUSE_MEMORY, /* killed for memory (OOM) */
	ENGINE_CAUSE_START, /* the machine could not start it; `text` says why */
	ENGINE_CAUSE_LOST, /* lost with the machine (reboot) or its shepherd killed; nothing of it is left */
	ENGINE_CAUSE_LOG_LIMIT, /* reserved: logs rotate, they do not kill */
	ENGINE_CAUSE_NO_SPACE, /* no space on the disk to start it; will work when there is some */
	ENGINE_CAUSE_MACHINE /* the machine lacked something else to start it (fault.def); will work when it has it */
};

/* The cause of an end that a fault of the machine brought; START for NONE. */
static inline enum engine_cause fault_cause(enum engine_fault fault)
{
	return fault == ENGINE_FAULT_NONE    ? ENGINE_CAUSE_START
	       : fault == ENGINE_FAULT_SPACE ? ENGINE_CAUSE_NO_SPACE
					     : ENGINE_CAUSE_MACHINE;
}

struct engine_fact {
	enum engine_fact_kind kind;
	uint64_t attempt;
	uint32_t rank;
	uint32_t launch; /* which start of the rank it is of */
	int64_t time_ms; /* wall time at which it happened */
	/* EXITED */
	enum engine_cause cause;
	int code, signal;
	bool never_ran; /* the user's command was never started */
	bool memory_enforced; /* the memory limit was enforced by the kernel */
	int64_t peak_memory_mib; /* 0 = not known */
	enum engine_fault
		fault; /* of the machine, which can start nothing meanwhile; NONE: others may start there */
	char text[256]; /* reason in plain words, may be empty */
	/* STARTED, READY */
	int64_t pid;
	bool gpu_limited; /* STARTED: the driver keeps it within its part of the GPU's memory */
	uint32_t least; /* LEAST: 0 = it goes whole */
	/* REPORT */
	uint64_t number; /* of the report within the rank, from 1: repeats are recognised by it */
	int64_t step; /* -1 = not said */
	bool checkpoint; /* path names a finished checkpoint */
	int64_t bytes; /* of all its files, 0 = not known: less of it later is torn */
	char path[480];
};

/* Unlike tasks: what those of one role run, where it is not what the job says. */
struct engine_role {
	char name[64];
	uint32_t size; /* its ranks */
	const char *const *argv; /* NULL-terminated, or NULL: script, or without one the job's */
	const char *script; /* NULL = none */
	const char *const *env; /* whole environment of its tasks, as in engine_start; never NULL */
	const char *
		overlay; /* of a cluster: merged into its pods behind the first of those in engine_start; NULL = none */
};

struct engine_gpu_place {
	uint32_t rank;
	uint32_t role,
		role_rank; /* index of its role, and its number there; 0 where there are no roles */
	char node[64];
	uint64_t gpu_mask; /* indices of the node's GPUs */
	uint32_t gpu_share_micro; /* of its one GPU, in millionths, rounded down; 0 = whole ones */
	uint32_t gpu_memory_mib; /* of that GPU, for a share; 0 = not known */
	char gpu_slice[24]; /* the share is a slice of its own: "1g.10gb"; "" = none */
	uint32_t gpu_slice_start; /* the memory slice where it begins */
	uint32_t local_rank; /* among this attempt's tasks on the node */
	uint32_t local_size;
	int64_t cpu_milli; /* 0 = not asked */
	char cpus
		[256]; /* it is bound to these processors: "0-15,32-47"; "" = to none in particular */
	int64_t memory_mib; /* limit of the task; 0 = none */
	/* In an attempt that changed its width: */
	uint32_t launch; /* how often the rank was started anew */
	uint32_t
		member; /* its place among those that belong to it now, from 0; MEMBER_NONE = it left, or is to leave */
	bool leaves; /* told to leave: a notice, then a stop when its time is over */
	bool comes; /* its place is to be made, if that launch was not begun yet */
	bool left; /* it is gone, and the others go on without it */
};
#define MEMBER_NONE UINT32_MAX
#define ENGINE_LEFT (UINT32_C(1) << 31)

struct engine_start {
	uint64_t job, attempt;
	char job_name[64], user[64], queue[64], team[64];
	uid_t uid; /* the submitting user */
	gid_t gid;
	const char *const *argv; /* NULL-terminated; or NULL and script */
	const char *script; /* run by /bin/sh, NULL if argv */
	const char *const *env; /* "NAME=value", NULL-terminated: the job's own, secrets resolved */
	const char *const *
		shell_env; /* "NAME=value", NULL-terminated: of the shell that it was submitted from; env wins. For tasks on this machine; NULL = none */
	const char *const *
		made_from; /* "NAME=value", NULL-terminated: what the job was made from, for its tasks; NULL = nothing is known */
	const char *workdir; /* absolute; NULL = home of the user, / when there is none */
	const char *
		snapshot; /* id: its tasks start in a copy of that, in place of workdir; NULL = none */
	const char *checkpoint_dir; /* absolute, made by the engine as the user; NULL = none */
	bool checkpoint_offered; /* nobody asked for this folder: left out where the user can't get to it */
	const char *resume_path; /* newest complete checkpoint, NULL = start from the beginning */
	uint32_t resume_number; /* of the job's checkpoints, where it is known */
	int64_t resume_bytes; /* that it had when it was reported; 0 = not known */
	int checkpoint_signal; /* sent by warn; 0 = only the notice on the report socket */
	int64_t checkpoint_every_ms; /* one is asked for so long after the newest; 0 = never by the clock */
	bool simulated_gpus; /* there is no real device behind the indices */
	const char *image; /* container image; NULL = the job names none */
	const char *overlays
		[2]; /* of a cluster: JSON that is merged into its pods, in this order; NULL = none */
	bool masked; /* of a cluster: its pods run on the nodes of a mask alone (struct engine_own) */
	const char *
		pod_token; /* by which shepherds of the attempt's pods are known; NULL = it has none */
	const char *const
		*tolerates; /* taints "key" or "key=value", NULL-terminated; NULL = none */
	bool own_hosts; /* set by an engine whose places are hosts of their own: `node` of each is a name that resolves */
	uint32_t array_index; /* and its size; 0 0 when no array */
	uint32_t array_size;
	uint32_t place_count; /* = tasks of the attempt */
	const struct engine_gpu_place *places; /* by rank */
	const struct engine_pod
		*pods; /* by rank: those that others made; NULL = the engine makes what it needs */
	const struct engine_role *roles; /* NULL = all tasks are alike */
	uint32_t role_count;
	uint32_t
		generation; /* of who belongs to it; 0 = as it was started: `member` is then the rank */
	uint32_t member_count; /* 0 = place_count */
	bool lacks; /* fewer belong to it than its least width: those that left are waited for */
	bool stopping; /* it is being stopped: ranks that come are told as ended, and not begun */
	bool changes; /* its ranks may leave and come while it runs */
	int64_t log_cap_bytes; /* per stream and rank, all rotated parts together */
};

/* The role of a rank; NULL = its tasks are alike. */
static inline const struct engine_role *engine_role(const struct engine_start *start, uint32_t rank)
{
	return start->role_count ? &start->roles[start->places[rank].role] : NULL;
}
/* What a rank runs: the one or the other. */
static inline const char *engine_script(const struct engine_start *start, uint32_t rank)
{
	const struct engine_role *role = engine_role(start, rank);

	return role && (role->script || role->argv) ? role->script : start->script;
}
static inline const char *const *engine_argv(const struct engine_start *start, uint32_t rank)
{
	const struct engine_role *role = engine_role(start, rank);

	if (engine_script(start, rank))
		return NULL;
	return role && role->argv ? role->argv : start->argv;
}
static inline const char *const *engine_env(const struct engine_start *start, uint32_t rank)
{
	const struct engine_role *role = engine_role(start, rank);

	return role ? role->env : start->env;
}

struct engine;

/* Levels of the topology that such an engine can tell of, widest first. */
enum { ENGINE_LEVELS = 6 };
extern const char *const engine_level_names[ENGINE_LEVELS];

/* GPUs of a node, and by what they are taken. */
struct engine_taken {
	uint64_t gpus; /* by index */
	char by[200];
};

/* A node as an engine with a cluster of its own finds it. */
struct engine_node {
	char name[64];
	bool gone; /* and the rest says nothing */
	uint32_t gpus;
	uint32_t gpus_taken; /* of these, by work that is not Fairlead's */
	char gpus_taken_by[200]; /* these pods, with their schedulers; "" = not known */
	bool gpus_by_index; /* which ones are taken is known: the mask says it, and gpus_taken nothing */
	uint64_t gpus_taken_mask;
	const struct engine_taken *taken; /* of the mask, as far as is known; the teller's */
	uint32_t taken_count;
	char product[160]; /* what the maker calls its GPUs; "" = not known */
	int64_t gpu_memory_mib;
	char driver[64],
		cuda[64]; /* versions; cuda: the newest that the driver knows; "" = not known */
	uint32_t capability; /* compute capability in tenths, 0 = not known */
	int64_t cpu_milli, ram_mib; /* for Fairlead's work: what others take is off */
	bool ready;
	bool cordoned;
	bool goes; /* it will be taken away */
	int64_t goes_in_ms; /* in so long from now; 0 = nobody says when */
	char reason[192]; /* why it is not ready or cordoned, or goes */
	bool spot; /* may be taken away at any time */
	char labels[513], taints[513]; /* "key=value,key=value" */
	uint32_t
		levels; /* that some node of the cluster has a place in: bits of engine_level_names */
	char places[ENGINE_LEVELS][64]; /* its own, by level; "" = it does not say */
};

/* Which cluster that is, whatever its address: a journal belongs to one, or jobs would run twice. */
struct engine_site {
	char cluster[64]; /* Kubernetes: uid of the namespace kube-system */
	char namespace[64];
};

/* Labels of nodes that say where they stand, beside those that are known and before them. Strings stay the caller's. */
enum { ENGINE_LEVEL_LABELS_MAX = 16 };
struct engine_level_labels {
	uint32_t count;
	struct {
		uint32_t level; /* of engine_level_names */
		const char *key;
	} label[ENGINE_LEVEL_LABELS_MAX];
};

/* The cluster of an engine that has one. Strings stay the caller's. */
struct engine_cluster {
	const char *config; /* file with address and account; NULL = where it usually is */
	const char *context, *namespace; /* NULL = the file's */
	const char *image; /* for jobs that name none; NULL = none */
	const char *const *
		host_paths; /* folders of nodes that jobs may mount; NULL-terminated, NULL = none */
	struct engine_level_labels level_labels;
	/* Pods of jobs with checkpoints have a shepherd (docs/decisions/0022): */
	const char *
		shepherd_server; /* numeric address at which it reaches the daemon; NULL = there are none */
	const char *shepherd_image; /* that has the program */
	int64_t lease_ms;
	bool moved; /* nothing of the journal's jobs runs any more where they ran: they are looked for here */
};

struct engine_options {
	const char *folder; /* the data folder; attempts/ and logs/ are made in it */
	const char *shepherd_path; /* program fairlead-shepherd */
	const struct engine_cluster *cluster; /* NULL = this machine */
	/* Of engines with a cluster: asked before anything is changed there; false = not now, for another daemon may lead. NULL = always. */
	bool (*may_write)(void *context);
	void *may_write_context;
	const char *
		instance; /* of engines with a cluster: by which it knows what is this journal's there */
	void *context;
	void (*report)(void *context, const struct engine_fact *fact);
	/* The answer to try_start: NULL = a task could be prepared. Of engines that have that. */
	void (*tried)(void *context, const struct err *err);
	/* Of engines with a cluster, like report: what became of a node; and the names of all there are, after what is said of each. */
	void (*node)(void *context, const struct engine_node *node);
	void (*nodes)(void *context, const char *const *names, size_t count);
	struct engine_gangs gangs;
};

struct engine_ops {
	const char *name;
	/* Its work runs elsewhere: accounts, folders and processors of this machine mean nothing to it, and its output does not lie here. */
	bool elsewhere;
	int (*open)(const struct engine_options *options, struct engine **ret, struct err *err);
	void (*close)(struct engine *engine); /* running work goes on */
	/* Of engines with a cluster: which one it is; asks it, for half a minute at most. Before anything else is asked of it. */
	int (*site)(struct engine *engine, struct engine_site *ret, struct err *err);
	/* After a restart: these attempts are live in the journal. Anything else found is stopped and cleared away as stale.
	 * All that is found is told before it returns; until then the daemon decides nothing. launches[i][rank]: its newest start, for engines
	 * that work elsewhere with ENGINE_LEFT where it has left; NULL = no rank was started anew. For each rank of these, READY/STARTED/EXITED/REPORT/GONE are reported again as found. */
	int (*adopt)(struct engine *engine, const uint64_t *attempts, const uint32_t *task_counts,
		     const uint32_t *const *launches, size_t count, struct err *err);
	/* Returns at once; a failure to prepare a rank comes as EXITED with ENGINE_CAUSE_START. */
	int (*start)(struct engine *engine, const struct engine_start *start, struct err *err);
	/* Whether a task can be prepared now: does what `start` does, with nothing in it. Returns at once; the answer goes to `tried`. NULL =
	 * the engine tells of no faults of its machine. */
	void (*try_start)(struct engine *engine);
	int (*release)(struct engine *engine, uint64_t attempt, struct err *err);
	int (*warn)(struct engine *engine, uint64_t attempt, int64_t grace_ms, struct err *err);
	int (*stop)(struct engine *engine, uint64_t attempt, int64_t grace_ms, struct err *err);
	int (*resize)(struct engine *engine, const struct engine_start *start, int64_t grace_ms,
		      struct err *err);
	void (*forget)(struct engine *engine, uint64_t attempt);
	/* For who measures what processes use of something that is shared, from any thread; NULL = the engine can't tell.
	 * owns: whether a process is the rank's. overdrawn: it took more than its part; it is killed at once, nobody else, and ends with
	 * ENGINE_CAUSE_MEMORY and this text. */
	bool (*owns)(struct engine *engine, uint64_t attempt, uint32_t rank, uint32_t launch,
		     pid_t pid);
	int (*overdrawn)(struct engine *engine, uint64_t attempt, uint32_t rank, uint32_t launch,
			 const char *text, struct err *err);
	const struct engine_pod_ops *pods; /* NULL = it knows of no pods that others made */
};

extern const struct engine_ops engine_local;
extern const struct engine_ops engine_kubernetes;
