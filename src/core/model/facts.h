/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The facts: all state of Fairlead's core. Changed only by apply; hashed, snapshotted, frozen for readers.
 *
 * Everything lies in copy-on-write tables (base/table.h) under 32-bit ids. No pointers, no padding that counts, no order
 * of slots that anyone may see: rows freed and used again never show in the hash or in a decision, ties are decided
 * by names or (submission order, client key).
 *
 * What is derived (free counts, orders) is the index, core/placement/view.h and core/scheduling/index.h; it can be thrown away
 * at any time. The small look-ups here (`name_slots`, the fields marked "derived") are derived as well and rebuilt on load.
 *
 * Reading: src/core/model/README.md tells what each event does to them.
 *
 * A GPU share is counted in 1/63000 (GPU_SHARE): divides by 2 to 10 and by 1000.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/table.h"
#include "base/err.h"
#include "base/zone.h"
#include "core/model/event.h"
#include "core/model/ids.h"
#include "core/model/limits.h"
#include "core/model/machines.h"
#include "core/model/slices.h"

/* A client key names the same submission for so long: no job is forgotten sooner. */
#define CLIENT_KEY_MS (INT64_C(7) * 86400 * 1000)

enum role { ROLE_NONE, ROLE_VIEWER, ROLE_RESEARCHER, ROLE_SERVICE, ROLE_LEAD, ROLE_ADMIN };
enum job_kind { KIND_TRAINING, KIND_BATCH, KIND_INFERENCE, KIND_INTERACTIVE };
enum tier { TIER_BEST_EFFORT, TIER_STANDARD, TIER_CRITICAL }; /* rising */
enum { TIERS_ALL = 1 << TIER_BEST_EFFORT | 1 << TIER_STANDARD | 1 << TIER_CRITICAL };
enum node_state {
	NODE_READY,
	NODE_CORDONED,
	NODE_DRAINING,
	NODE_QUARANTINED,
	NODE_DOWN,
	NODE_GONE,
	NODE_MAINTENANCE /* its announced window is open; ready again by itself at the end */
};
/* What a node takes in: everything; or all but inference; or inference alone. */
enum node_class { NODE_CLASS_ANY, NODE_CLASS_TRAINING, NODE_CLASS_INFERENCE };
/* What a task wants on one NUMA node: nothing; its GPUs and processors; and a network card too. */
enum align { ALIGN_NONE, ALIGN_NUMA, ALIGN_NIC };
/* What becomes of a job when its window closes: it is stopped; likewise, but it saves its work, so it also starts when it won't be ready
 * by then; it goes on. */
enum window_end { WINDOW_STOPS, WINDOW_SAVES, WINDOW_FINISHES };
/* How a node is paid for; what of that a job may use. Of nodes: not said is not spot. Of jobs: not said and on demand are one; spot alone; both. */
enum capacity { CAPACITY_NOT_SAID, CAPACITY_ON_DEMAND, CAPACITY_SPOT, CAPACITY_ANY };
/* Who may cut the GPUs of a node into slices: people; Fairlead too, from what jobs ask for; nobody. */
enum partitioning { PARTITIONING_FIXED, PARTITIONING_AUTO, PARTITIONING_OFF };
enum resize { RESIZE_FREE, RESIZE_RESTART };
/* What is said of each role of a submission, in this order: least and greatest number of tasks (0 = 1, as the least); per task GPUs,
 * milli-CPUs, MiB; 1 = when all of its tasks have ended, the others are stopped. */
enum role_number {
	ROLE_TASKS_MIN,
	ROLE_TASKS_MAX,
	ROLE_GPUS,
	ROLE_CPU_MILLI,
	ROLE_MEMORY_MIB,
	ROLE_ENDS,
	ROLE_NUMBERS
};
/* Whose parts may lie on one GPU: of one team, anybody's, or each job's alone. */
/* When running jobs are moved so that free GPUs come to lie together: when a waiting job needs it, whenever it is of use, never. */
enum defragment { DEFRAGMENT_ON_DEMAND = 1, DEFRAGMENT_ALWAYS, DEFRAGMENT_OFF };
enum { POLICY_SLOWDOWN_MAX = 99900 }; /* percent: anywhere */
enum share_gpus { SHARE_GPUS_TEAM = 1, SHARE_GPUS_ANY, SHARE_GPUS_OFF };

enum job_state {
	JOB_NONE, /* there is no such job: forgotten, or its record could not be read. Its row is all zero */
	JOB_QUEUED, /* waits, may be placed */
	JOB_HELD, /* waits, by a person's word */
	JOB_BLOCKED, /* waits for a job it depends on */
	JOB_STARTING, /* placed, ranks being prepared, or released and not all started; first time or from nothing */
	JOB_RUNNING,
	JOB_CHECKPOINTING, /* warned; winds down unless it is spared */
	JOB_PREEMPTED, /* was evicted, waits at its old place */
	JOB_RESUMING, /* starting again from a checkpoint */
	JOB_UNREACHABLE,
	JOB_SUCCEEDED, /* final from here on */
	JOB_FAILED,
	JOB_CANCELLED,
	JOB_TIMED_OUT
};

enum stop_why {
	STOP_NONE, /* ended by itself */
	STOP_EVICTED, /* made room for another job */
	STOP_CANCELLED,
	STOP_FAILED, /* a rank failed: the attempt ends whole */
	STOP_LIMIT, /* run-time limit */
	STOP_NODE, /* its node went down or is drained */
	STOP_LOST, /* lost with the machine or its shepherd */
	STOP_START, /* a rank's place could not be prepared */
	STOP_DONE, /* a role that ends the job has ended: the others are stopped, and it has succeeded */
	STOP_WINDOW, /* its window closed */
	STOP_MOVED /* goes on at another place, promised to it, so that others fit */
};

/* How a task ended; the same numbers as enum engine_cause (the core knows no engine). */
enum task_cause {
	CAUSE_EXIT, /* with an exit code; 126, 127 and never_ran: what it was to run is of no use */
	CAUSE_SIGNAL, /* killed by a signal, not by us */
	CAUSE_STOPPED, /* because we stopped it */
	CAUSE_MEMORY, /* killed for memory */
	CAUSE_START, /* the machine could not start it */
	CAUSE_LOST, /* with its machine or shepherd */
	CAUSE_LOG_LIMIT,
	CAUSE_NO_SPACE, /* the disk was too full to start it: no fault of the job's */
	CAUSE_MACHINE /* nor is this: the machine lacked something else to start it */
};

enum requeue_why {
	REQUEUE_EVICTED,
	REQUEUE_FAILED,
	REQUEUE_NODE,
	REQUEUE_LOST,
	REQUEUE_WINDOW,
	REQUEUE_MOVED
};

enum attempt_state {
	ATTEMPT_FREE, /* there is no such attempt: its job is forgotten, or its record could not be read */
	ATTEMPT_PREPARING, /* placed; ranks are being made ready */
	ATTEMPT_ACTIVE, /* released */
	ATTEMPT_STOPPING, /* the engine was told to stop it */
	ATTEMPT_OVER /* ended; kept while its job is remembered */
};

enum task_state {
	TASK_PREPARING,
	TASK_READY,
	TASK_RUNNING,
	TASK_EXITED,
	TASK_LEFT /* exited, and the attempt goes on without it: it holds nothing. May be started anew */
};

/* A text interned once. Longer ones are cut to NAME_MAX_BYTES at a character's border. Never removed. */
struct name {
	char text[NAME_MAX_BYTES + 1];
	uint32_t node, queue, team, user, token; /* derived: who bears this name, 0 = none */
	uint32_t past; /* derived: the newest row of `pasts` of the user of this name */
	uint32_t waiting_jobs; /* derived: jobs of the user of this name that wait */
	uint32_t waiting; /* derived: the newest row of `waitings` of that user */
	int64_t waiting_bytes; /* derived: of the bodies of those jobs; an array has one */
};

/* A sentence of one owner, cut to REASON_MAX_BYTES at a character's border. Rows are used again. */
struct text {
	uint32_t next; /* of the free list */
	char text[REASON_MAX_BYTES + 1];
};

struct queue {
	struct name_id name;
	struct queue_id parent; /* 0 = directly below the root */
	struct name_id team; /* whose members may submit; 0 = everybody */
	int64_t guarantee_share, limit_share; /* limit -1 = none */
	int64_t weight;
	int64_t default_limit_ms; /* 0 = the policy's */
	int64_t used_gpu_ms; /* of all ended attempts */
	bool reserved, removed;
	/* Past use that fades (decay.h), best-effort work aside: what it came to at past_at_ms, and what is in use since then. */
	int64_t past_gpu_ms, past_at_ms, past_rate_share;
	struct text_id
		calendar; /* when its jobs may start, core/scheduling/queues/calendar.h; 0 = always */
	/* Limits beside limit_share: of models, `any` for those not named; none after the first 0. Of processors and memory: 0 = none. */
	struct name_id limit_model[QUEUE_MODELS_MAX];
	int64_t limit_model_share[QUEUE_MODELS_MAX];
	int64_t limit_cpu_milli, limit_ram_mib;
	/* Its guarantee by model, in the same way; none: GPUs of any model. */
	struct name_id guarantee_model[QUEUE_MODELS_MAX];
	int64_t guarantee_model_share[QUEUE_MODELS_MAX];
	int64_t budget_micro,
		budget_ms; /* left, in millionths, and when that was said; 0 = it has none */
	struct name_id currency;
	int64_t spent_micro; /* of it since then, by what has ended */
	/* What it admits, as far as it states that; 0 = not stated (scheduling/admit/queue_rights.h says what holds then). */
	uint8_t tiers; /* bits 1 << enum tier */
	int32_t max_priority; /* -1 = none above 0 */
	/* Limits of each user's jobs in it and below; 0 = not stated. */
	int64_t user_limit_share; /* GPUs that they hold at once */
	uint8_t user_part; /* the same, in percent of the GPUs that the queue may hold */
	uint32_t user_waiting; /* jobs that wait */
};

struct price {
	struct name_id model; /* "any": of models without one */
	int64_t micro_per_hour; /* of one GPU; -1 = it has none any more */
};

/* What a user used in one queue, as of a queue itself: past use that fades, best-effort work aside. */
struct past {
	struct queue_id queue;
	struct name_id user;
	int64_t past_gpu_ms, past_at_ms, past_rate_share;
	uint32_t next; /* derived: the next row of this user */
};

/* Derived: jobs of a user that wait in one queue. A row stays when none waits any more. */
struct waiting {
	uint32_t queue, jobs;
	uint32_t next; /* row of this user */
};

/* A data set that jobs name: how large it is, and which domains keep a copy beside the nodes that say so themselves. */
struct data_set {
	struct name_id name;
	uint32_t size_mib; /* 0 = nobody says any more */
	struct name_id place[DATA_PLACES_MAX]; /* sorted by text; none behind the last */
};

/* What it takes to bring data from one domain into another; "any" = every domain. */
struct transfer {
	struct name_id from, to;
	int64_t micro_per_gb; /* for 10^9 bytes; -1 = nobody says any more */
	uint32_t mbps; /* 10^6 bytes a second, into one host; 0 = takes no time */
};
#define TRANSFER_PRICE_MAX (INT64_C(1000) * 1000000)

/* What spot nodes of one model in one place of the widest level did (core/scheduling/life/spot.h): how long each was there and away,
 * one interval after the other, over all of them. Of older intervals half is forgotten, when there are many. */
struct pool {
	struct name_id model, place; /* place 0 = nodes that name none */
	int64_t there_ms, away_ms; /* sums */
	uint32_t there, away; /* intervals that have ended */
	uint32_t nodes_there; /* now */
	int64_t turned_ms; /* since when there is one, or none */
};

/* How far ahead of UTC the clocks of a time zone are (base/zone.h). */
struct zone {
	struct name_id name;
	uint32_t count; /* of changes */
	int32_t before_ms; /* ahead before the first */
	int32_t then_ms[ZONE_CHANGES_MAX]; /* ahead from at_ms on */
	int64_t at_ms[ZONE_CHANGES_MAX]; /* rising, further apart than ZONE_APART_MS */
};

/* GPUs, or whole nodes, reserved in advance for jobs of a queue and of those below it, of a user, of a team: of all that are named. */
struct booking {
	struct name_id name; /* 0 = the row is free */
	struct queue_id queue; /* 0 = any */
	struct name_id user, team; /* 0 = any */
	int64_t from_ms, to_ms;
	struct name_id model; /* 0 = any */
	uint32_t gpus; /* 0 = its nodes as a whole */
	bool keep; /* idle ones are not lent to best-effort work */
	struct text_id reason;
	uint32_t node[BOOKING_NODES_MAX]; /* none behind the last */
	uint32_t mask[BOOKING_NODES_MAX];
};

struct team {
	struct name_id name, title;
	bool removed;
	uint32_t
		first_job; /* jobs with lower ids belong to an earlier team of this name; 0 = there was none */
};
/* A row is one person for ever: a removed user's name, when it is used again, gets a new row. */
struct user {
	struct name_id name, team;
	int32_t uid, gid;
	uint8_t role;
	bool removed;
	uint32_t
		first_job; /* jobs with lower ids belong to an earlier user of this name; 0 = there was none */
	struct name_id
		queue; /* of the user's jobs that name none; 0 = the team's. One that is removed by now is none */
};
struct token {
	struct name_id id, user, note;
	uint8_t hash[32];
	int64_t expires_ms;
	bool revoked;
	uint32_t owner; /* row of the user; 0 = the user of this name (from an old record) */
};

/* Equal wishes of unequal jobs: what placement needs to know, and nothing of time, rank or owner. */
struct shape {
	uint32_t tasks_min, tasks_max;
	uint32_t gpus; /* whole GPUs per task */
	uint32_t gpu_memory_mib, cpu_milli, memory_mib;
	struct name_id models[SHAPE_MODELS_MAX]; /* sorted by name; none = any */
	uint8_t require, prefer; /* level + 1 (1 = widest), LEVEL_NODE, LEVEL_ISLAND; 0 = none */
	uint8_t spread; /* replicas: over hosts */
	uint8_t fragments; /* batch, arrays, single GPUs: fill fragments first */
	uint32_t min_driver, min_cuda; /* version_parse; 0 = any */
	uint32_t min_capability; /* tenths */
	struct name_id regions[SHAPE_REGIONS_MAX]; /* "region=eu": one of these; sorted */
	struct name_id labels[SHAPE_LABELS_MAX]; /* all of these; sorted */
	struct name_id tolerates[SHAPE_LABELS_MAX]; /* "key" or "key=value"; sorted */
	uint32_t serves; /* inference alone runs on nodes of class inference */
	/* A part of one GPU (gpus is 1): its share, or its memory; 0 0 = whole GPUs. Then also whose work it may lie beside:
	 * of one team, or without a team of one user. */
	uint32_t gpu_part, gpu_part_mib;
	struct name_id team, user;
	uint32_t
		apart; /* level as in `require`: no two of its tasks in one place of it; 0 = anywhere */
	uint32_t mixes; /* tasks may have GPUs of several models */
	uint32_t min_throughput; /* thousandths; 0 = any */
	uint16_t throughput[SHAPE_MODELS_MAX]; /* of models[i], in thousandths; 0 = not said */
	struct name_id data[SHAPE_DATA_MAX]; /* data sets it reads; sorted */
	/* Waits rather than run so much slower than on the best place, per mille; 0 = runs anywhere. Then also how much it talks: */
	uint32_t max_slowdown;
	uint32_t talks; /* 1 + enum job_kind */
	/* Unlike tasks (roles.h): none = all are alike. Else tasks_min and tasks_max are sums, and gpus, cpu_milli and memory_mib the
	 * largest of any role. */
	uint32_t role_count;
	uint32_t
		role_ends; /* bits: when all tasks of such a role have ended, the others are stopped */
	struct name_id role[ROLES_MAX]; /* in the order of the submission */
	uint32_t role_min[ROLES_MAX], role_max[ROLES_MAX]; /* tasks */
	uint32_t role_gpus[ROLES_MAX], role_cpu_milli[ROLES_MAX],
		role_memory_mib[ROLES_MAX]; /* per task */
	uint32_t align; /* enum align */
	struct name_id
		window; /* runs only then, core/scheduling/queues/calendar.h; 0 = at any time */
	uint32_t window_end; /* enum window_end */
	uint32_t
		slice; /* slice_wish_number of the instance each task takes; then gpu_part is its share. 0 = none */
	/* Labels that the job bears; labels of jobs that it keeps away from, by what level (as in `require`; 0 = node); sorted. */
	struct name_id own_label[JOB_LABELS_MAX], apart_from[JOB_LABELS_MAX];
	uint32_t apart_level, apart_wish; /* wish: only where that is possible */
	struct name_id mask; /* only on the nodes of this mask; 0 = on any */
	uint32_t capacity; /* 0 = on no spot node; CAPACITY_SPOT, CAPACITY_ANY */
	/* Of roles: only on the nodes of this mask, 0 = as `mask` says. Tasks of two such roles are placed on one node at once only where it
	 * is in `together`; 0 = anywhere. */
	struct name_id role_mask[ROLES_MAX], together;
};
/* Other jobs may have to keep away from it, or it from them. */
static inline bool shape_is_marked(const struct shape *shape)
{
	return shape->own_label[0].v || shape->apart_from[0].v;
}
enum { LEVEL_NODE = 100, LEVEL_ISLAND = 101 };

struct job {
	struct name_id name, user, team, project;
	struct queue_id queue;
	struct shape_id shape;
	struct attempt_id attempt; /* the live one, 0 = none */
	struct attempt_id
		last_attempt; /* the newest, live or over; 0 = none yet. Its tasks can be read */
	uint32_t depends; /* first row in `depends`, 0 = none; rows linked by next, as submitted */
	uint32_t
		dependents; /* derived: first row of jobs that wait for this one, linked by next_dependent */
	uint32_t checkpoint; /* first row of CHECKPOINTS_KEPT in `checkpoints`, 0 = none yet */
	uint32_t
		promise; /* first row in `promises` (linked), 0 = none; used up when it is placed or ends */
	uint32_t array_first,
		array_count; /* the array's first job id and size; 0 0 = not of an array */
	uint32_t attempts; /* so far */
	uint32_t body; /* row in `bodies`: names of blob, client key; shared by an array */
	struct text_id reason; /* why it is held, to be cancelled, waits again or ended */
	int32_t priority;
	uint32_t restart_cost_ms, grace_ms; /* grace UINT32_MAX = the policy's */
	int64_t submitted_ms;
	int64_t state_ms; /* since when it is in its state */
	int64_t limit_ms; /* 0 = none declared */
	int64_t estimate_ms;
	int64_t checkpoint_every_ms;
	int64_t used_gpu_ms, lost_gpu_ms; /* of ended attempts */
	int64_t run_ms; /* of ended attempts, without what was lost: counts against limit_ms */
	uint32_t checkpoints_made; /* number of the newest */
	int32_t exit_code;
	int32_t failed_rank; /* first to fail, once it has ended; -1 = none */
	int32_t uid, gid;
	uint16_t retries_left;
	uint8_t state, kind, tier, signal, cause, resize;
	bool cancel_asked, held, checkpoints, preempts;
	bool rejoins; /* a rank that is lost may be started anew while the others run */
	bool evicted; /* waits because it was evicted: PREEMPTED instead of QUEUED */
	/* Its tasks are somebody else's: they start together, and from then on each is on its own. What has run never runs again: whoever
	 * made it makes a new one, which is new work. */
	bool external;
	uint32_t
		likely_s; /* what jobs like it ran at most, 9 of 10, when it was submitted or placed; 0 = not known, or it declared its own */
};
_Static_assert(sizeof(struct job) <= 192, "a million jobs must stay small");

/* One per submission. */
struct body {
	uint8_t blob[32], mac[32], client_key[32];
	uint32_t job; /* first job of the submission */
	bool keyed; /* has a client key */
	uint16_t jobs; /* derived: of it, not forgotten yet */
	uint8_t efficiency; /* percent of its GPUs' time that is of use, declared; 0 = not said */
	int64_t deadline_ms; /* when it should have ended; 0 = none */
	uint16_t succeeded, failed; /* derived: of these, by how they ended */
	uint16_t array_limit; /* so many jobs of it run at once; 0 = no limit */
	uint32_t bytes; /* size of the body; 0 = not said */
	uint16_t waiting; /* derived: of its jobs */
	uint8_t capacity; /* enum capacity, as it was submitted; what is chosen of it for now stands in the shape */
	int64_t program; /* hash of what it runs; 0 = not said, as in records of older releases */
};

struct depend {
	uint32_t job; /* that must succeed first */
	uint32_t whole; /* 1: and all others of the array of which it is the first */
	uint32_t next; /* of the same owner */
	uint32_t owner; /* the job that waits */
	uint32_t next_dependent; /* derived: of the same `job` */
};

struct checkpoint {
	uint32_t number; /* of the job's checkpoints; 0 = empty row */
	uint32_t attempt;
	int64_t step, at_ms;
	int64_t bytes; /* size of all its files when it was reported: less of it later is torn */
	bool is_void; /* found torn or missing: not used, and shown until a newer one takes its row */
	struct text_id why; /* it is void; none = not void, or not said */
	char path[PATH_MAX_BYTES + 1];
};

struct attempt {
	struct job_id job;
	uint32_t tasks; /* count of ranks, those that left included */
	uint32_t
		first_task; /* row in `tasks`; rows are contiguous. 0 = dropped: the job has a newer attempt */
	uint32_t ready, started,
		exited; /* how many tasks ever became so: a task that ran counts in all three at last */
	uint32_t
		for_job; /* warned for this job; 0 = for none (warned_ms says whether it is warned) */
	uint32_t resume_number; /* checkpoint it started from */
	int64_t placed_ms, released_ms, ended_ms; /* 0 = not yet */
	int64_t warned_ms; /* 0 = not warned, or spared */
	int64_t deadline_ms; /* warned or stopped: until when it may wind down */
	int64_t stopped_ms;
	int64_t checkpoint_ms; /* newest complete checkpoint made by this attempt, 0 = none */
	int32_t first_failed_rank; /* not counting what stopping it did; -1 = none */
	struct text_id reason; /* the engine's words about that rank's end */
	uint8_t state, why, unreachable;
	bool shielded; /* who made it allows no disruption now: the last to be stopped for others */
	uint32_t least; /* so many have to go on where others leave with their nodes; 0 = all */
	bool deaf; /* nothing in it hears a warning */
	bool forgiven; /* a person released its job afterwards: losses up to here count no more for pauses */
	uint32_t previous; /* of the same job, 0 = none or lost */
	int64_t likely_ms,
		safe_ms; /* what was expected of its run when it was placed: half and 9 of 10 end by then; 0 = nothing */
	/* Running attempts may change their width (apply_resize.c). */
	uint32_t left; /* ranks that left; they count as ready, started and exited */
	uint32_t leaving; /* ranks that were told to leave and still hold their place */
	uint32_t generation; /* counts the changes of who belongs to it */
	int64_t resized_ms; /* of the last one, 0 = none */
	int64_t lacks_ms; /* since when it has fewer ranks than its least width; 0 = it has enough */
	int64_t parts_share; /* of all tasks together where they hold parts of GPUs; 0 = whole ones */
	/* When it was placed: tasks on nodes that keep all its data sets; on nodes where it had run before. */
	uint32_t near_data, near_home;
	/* What was expected of its place: of an all-reduce, and the time of a step against the best place, 1000 = as fast; 0 = not known. */
	uint32_t bandwidth_mbps, slowdown_permille;
	/* What was expected of bringing its data sets there: the longest of a host, -1 = not known; the money of all hosts. */
	int64_t transfer_ms, transfer_micro;
};
/* Ranks that hold a place. */
static inline uint32_t attempt_width(const struct attempt *attempt)
{
	return attempt->tasks - attempt->left;
}

struct task {
	struct node_id node;
	uint32_t gpu_mask;
	uint32_t reports; /* number of the newest report taken (free rows: link of the free list) */
	int32_t code;
	int64_t step; /* newest reported, -1 = none */
	uint32_t peak_memory_mib;
	uint8_t state, signal, cause;
	bool never_ran, memory_enforced;
	bool leaving; /* told to leave */
	bool was_ready, was_started; /* counted in its attempt's `ready` and `started` */
	uint32_t launch; /* how often this rank was started anew in the attempt */
	int64_t from_ms; /* since when it holds its place */
	uint32_t gpu_part, gpu_part_mib; /* of its GPU; 0 0 = whole ones */
	uint32_t slice; /* slice_at: the instance of its GPU; 0 = none */
	bool gpu_limited; /* the driver keeps it within its part of the GPU's memory */
};

/* It holds its place. */
static inline bool task_holds(const struct task *task)
{
	return task->state != TASK_LEFT;
}
/* The machine lacked something to start it: no fault of the job's, and it works when the machine has it again. */
static inline bool task_lacked_something(const struct task *task)
{
	return task->cause == CAUSE_NO_SPACE || task->cause == CAUSE_MACHINE;
}
/* Of one that exited: in a way that ends a gang. */
static inline bool task_has_failed(const struct task *task)
{
	return task->cause == CAUSE_EXIT ? task->code != 0 : task->cause != CAUSE_STOPPED;
}

/* A place promised to a job until its victims are gone: rows linked by next, one per task, then one per victim. */
struct promise {
	uint32_t node;
	uint32_t gpu_mask;
	uint32_t victim;
	uint32_t next;
	uint32_t gpu_part, gpu_part_mib; /* of the GPU; 0 0 = whole ones */
	uint32_t slice; /* slice_at */
};

/* A place that a blocked job will have from start_ms on, and that no job behind it may delay. */
struct reservation_fact {
	uint32_t job;
	uint32_t first; /* row in `promises`: one for each task, linked by next */
	uint32_t tasks; /* how many rows */
	uint32_t waits_for; /* the job whose expected end it waits for last; 0 = none */
	int64_t start_ms; /* as it was expected when it was set */
};

/* What is remembered of jobs that were alike (likes.h). Row: from its key. */
struct like {
	int64_t key; /* hash of what they have in common; 0 = empty */
	int64_t seq; /* when it learned last */
	uint32_t runs; /* how many it learned; number n lies in run_ms[n % LIKE_RUNS] */
	int64_t run_ms[LIKE_RUNS]; /* without what was lost */
};

/* How good the expected run times of attempts that ended by themselves were. Loss: the pinball loss, summed up. */
struct forecast {
	int64_t count, under_likely, under_safe;
	int64_t likely_loss_ms, safe_loss_ms;
};

struct policy {
	int64_t min_runtime_ms, grace_ms, rejoin_ms, default_limit_ms, blackhole_window_ms,
		collect_after_ms, half_life_ms;
	int64_t packing, blackhole_failures, allow_critical_burst, backfill_depth, defragment;
	int64_t order_deadline, order_efficiency, order_age, order_user,
		order_budget; /* weights, core/scheduling/order/terms.h */
	int64_t budget_warns; /* 1 = jobs beyond their queue's budget start all the same */
	int64_t keep_ended_ms; /* ended jobs stay in the facts for so long, and for CLIENT_KEY_MS since their submission */
	/* Percent: training of several tasks that names none waits rather than run so much slower than on the best place. 0, which states have
	 * that were saved before there was such a thing, is POLICY_SLOWDOWN_MAX (policy_slowdown). */
	int64_t max_slowdown;
	int64_t share_gpus; /* enum share_gpus */
	int64_t defragment_moves; /* jobs moved in an hour, at most */
	int64_t defragment_work_ms; /* work that may be lost for each GPU gained */
	int64_t patience; /* hours by which others may be submitted later and still go first, for each GPU-hour of work (due.h); 0 = first come */
	int64_t take_turns; /* 1 = work that was served long goes for equals that are expected to be shorter */
	int64_t reserve_unsure_ms; /* a job waits so long before a place is kept for it until ends that nobody declared */
	int64_t spot_notice_ms; /* between the notice that a spot node is taken away and its end */
};

static inline int64_t policy_slowdown(const struct policy *p)
{
	return p->max_slowdown ? p->max_slowdown : POLICY_SLOWDOWN_MAX;
}

/* Jobs that were moved so that GPUs came to lie together (core/rearranging). */
struct moves {
	int64_t looked_ms; /* when moves were looked for the last time, 0 = never */
	int64_t again_ms; /* time alone may bring a plan from then on, 0 = it will not */
	bool stale; /* something has happened since */
	bool asked; /* a person wants them now */
	int64_t hour_ms; /* when the hour began in which moves are counted */
	uint32_t in_hour; /* jobs moved in it */
	int64_t jobs, lost_gpu_ms; /* moved until now, and what that was reckoned to cost */
};

/* Where work runs that does not run on this machine. Empty: on this machine, or nothing has run yet. */
enum { SITE_TEXT_MAX = 64, SITE_ENGINE_MAX = 16, SITE_INSTANCE_MAX = 17 };
struct work_site {
	char engine[SITE_ENGINE_MAX]; /* "kubernetes" */
	char cluster[SITE_TEXT_MAX]; /* uid of its namespace kube-system */
	char namespace[SITE_TEXT_MAX]; /* where pods of jobs are made */
	char instance[SITE_INSTANCE_MAX]; /* by which this Fairlead knows what is its own there */
};

struct facts {
	uint64_t seq; /* of the last event applied */
	int64_t now_ms; /* its time */
	struct policy policy;
	struct name_id level[LEVELS_MAX]; /* topology levels, widest first */
	uint32_t level_count;
	struct fabric_facts fabric;
	uint64_t identity_version; /* grows with each event about people or tokens */
	/* Records that could not be read: how many, the first ranges of their numbers, and how many since the last record that
	 * gave a number to a job, an attempt: so many numbers may be missing. */
	uint64_t lost, lost_jobs, lost_attempts;
	int64_t lost_first[LOST_RANGES], lost_last[LOST_RANGES];
	uint32_t job_ids, attempt_ids,
		body_ids; /* how many were ever given: rows of their tables */
	struct table names, nodes, gpus, queues, teams, users, tokens, shapes;
	struct table jobs, bodies, depends, checkpoints, attempts, tasks, promises, texts;
	struct table
		reservations; /* rows 1 .. reservation_count, sorted by job; gone when it is placed or ends */
	uint32_t reservation_count;
	int64_t reviewed_ms; /* when all reservations were looked for anew the last time */
	uint64_t reviewed_seq; /* record that says so */
	int64_t sought_ms; /* when jobs that had none were looked for the last time, in a review or without */
	uint64_t sought_seq;
	struct moves moves;
	struct work_site site;
	struct table prices; /* few: by model, as they were set first */
	struct table pools; /* POOLS_MAX rows at most, as their first node came */
	struct table zones; /* ZONES_MAX rows at most, by name as they were set first */
	struct table
		pasts; /* a row for each user and queue of which something ran, as they were first */
	struct table
		waitings; /* a row for each user and queue in which something waited; derived, as a memory has it */
	struct table data_sets; /* DATA_SETS_MAX rows at most, by name as they were set first */
	struct table transfers; /* TRANSFERS_MAX rows at most, by their two places likewise */
	struct table bookings; /* BOOKINGS_MAX rows at most; rows are used again */
	struct table masks; /* MASKS_MAX rows at most; rows are used again */
	struct table likes; /* LIKE_SETS * LIKE_WAYS rows as soon as a job that ran has ended */
	struct forecast forecast;
	uint32_t
		searched; /* blocked jobs, in their order, that had their search for victims in this round (scheduling/evict/evict.c) */
	bool search_stale; /* something has happened since: when all had their turn, another round begins */
	bool reviving; /* not kept: see facts_revive */
	uint32_t free_tasks
		[16]; /* heads of lists of free runs of 2^i rows; linked through `reports` */
	uint32_t free_promises, free_depends, free_texts; /* linked through next */
	uint32_t free_checkpoints; /* first rows of free runs, linked through `attempt` */
	uint32_t keyed; /* derived: rows in key_slots' chains */
	/* derived look-ups (linear hashing: a slot holds the first row of a chain, a row's link the next one), rebuilt on load; never walked */
	struct table name_slots, shape_slots, key_slots, name_links, shape_links, key_links;
};

/* Empty, with the policy's first values (README); these are part of the format and never change. */
void facts_init(struct facts *facts);
void facts_deinit(struct facts *facts);
/* An independent copy in microseconds; for readers in other threads. */
void facts_freeze(const struct facts *facts, struct facts *ret);

/* Makes the event so. Total: an event that does not fit (unknown id, an old attempt's report) changes nothing but seq and
 * time. Tiny, no policy, stable for ever. */
void apply(struct facts *facts, const struct event *event);
/* Records up to `seq` could not be read; apply finds this out by itself when their successor comes. From the first lost record
 * on, apply reads what a later one implies into the gap (README, "Lost records"). */
void facts_pass_over(struct facts *facts, uint64_t seq);
/* "3 records of the journal could not be read and were set aside: 17, 40 to 41"; "" when there are none. */
enum { LOST_TEXT_MAX = 600 };
void facts_lost_text(const struct facts *facts, char ret[LOST_TEXT_MAX]);
/* Numbers that lost records may have given, as the event that passes them over and settles (below); false when there are none. */
bool facts_lost_numbers(const struct facts *facts, struct event *ret);
/* A GPU that two hold, for the record of the end of one was lost, is the newer one's: the older rank has left, where its attempt
 * goes on without it, or its attempt has ended. Whether there was one. Goes through all attempts: once, when a journal was read. */
bool facts_settle(struct facts *facts);
/* A copy in which a forgotten job can be seen again: apply its own events to it, from its submission on, and nothing else. */
void facts_revive(const struct facts *from, struct facts *ret);
/* Whether the facts can do without the job: it ended long enough ago (policy.keep_ended_ms), its client key is void, and no job
 * waits for it to have succeeded. */
bool job_may_be_forgotten(const struct facts *facts, struct job_id id);

/* Hash of all facts, by content: independent of rows, compilers and history of memory. */
uint64_t facts_hash(const struct facts *facts);
/* Walks all of it; ERR_CORRUPT with what is wrong, by name. facts_verify aborts then. */
int facts_check(const struct facts *facts, struct err *err) MUST_CHECK;
void facts_verify(const struct facts *facts);
/* Human-readable: one record per line, names as texts. */
void facts_dump(const struct facts *facts, FILE *out);

/* Snapshot: the facts as typed records, and back. `write` nonzero stops. */
int facts_save(const struct facts *facts, void *context,
	       int (*write)(void *context, uint32_t kind, const char *text, size_t size));
int facts_load_record(struct facts *facts, uint32_t kind, const char *text, size_t size,
		      struct err *err) MUST_CHECK;
int facts_load_finish(struct facts *facts, struct err *err)
	MUST_CHECK; /* after the last: rebuilds look-ups, verifies */

/* The make of hosts with this GPU model and so many GPUs; 0 = not known. */
uint32_t facts_make_of(const struct facts *f, struct name_id model, uint32_t gpus);
/* Reads the event; the models of its makes are left out. False: its lists do not belong together. */
bool fabric_read(const struct event_fabric_set *e, struct fabric_facts *ret);
/* Look-ups. `get` must exist; `find` gives 0 when there is none. Removed queues, teams and users are not found;
 * nodes that are gone and tokens that are revoked are. Texts and pointers are void after the next change of the facts. */
const char *facts_name(const struct facts *f, struct name_id id); /* "" for 0 */
const char *facts_text(const struct facts *f, struct text_id id); /* "" for 0 */
/* The names up to the first empty one, with commas between; those that have no room in a text of an event are left out. */
const char *names_text(const struct facts *f, const struct name_id *names, uint32_t room,
		       char ret[EVENT_TEXT_MAX + 1]);
struct name_id facts_name_find(const struct facts *f, const char *text);
struct node_id facts_node_find(const struct facts *f, const char *name);
struct queue_id facts_queue_find(const struct facts *f, const char *name);
/* Where jobs go that name no queue: the team's queue if it has exactly one, otherwise the user's own, otherwise "default". Walks all queues. */
const char *facts_default_queue(const struct facts *f, uint32_t user, const char *team);
uint32_t facts_user_find(const struct facts *f, const char *name);
/* The row of the user for whom the token acts; 0 = that user was removed. */
uint32_t facts_token_user(const struct facts *f, const struct token *token);
/* Whether the job is one of this user, and not of an earlier one with the same name. */
bool user_owns_job(const struct user *user, struct job_id id, const struct job *job);
/* Whether the user who submitted the job was removed. Jobs made from pods have no such user. */
bool job_owner_is_removed(const struct facts *f, struct job_id id, const struct job *job);
uint32_t facts_team_find(const struct facts *f, const char *name);
uint32_t facts_token_find(const struct facts *f, const char *id);
struct job_id
facts_key_find(const struct facts *f,
	       const uint8_t client_key[32]); /* newest submission with it: its first job */
/* The row's number for a node of this name: its own, one whose record was lost, or the next. */
struct node_id facts_node_next(const struct facts *f, const char *name);
/* The queue's past use as it counts at `at_ms`, without that of the queues below it; in GPU-ms. */
int64_t queue_past_gpu_ms(const struct facts *f, struct queue_id id, int64_t at_ms);
/* The same of one user there. */
int64_t user_past_gpu_ms(const struct facts *f, struct queue_id queue, struct name_id user,
			 int64_t at_ms);
const struct data_set *facts_data_find(const struct facts *f,
				       struct name_id name); /* NULL: not known */
/* Whether there is such a job, attempt: neither beyond the last, nor lost, nor forgotten. */
bool job_is_there(const struct facts *f, int64_t id);
bool attempt_is_there(const struct facts *f, int64_t id);
static inline const struct job *job_get(const struct facts *f, struct job_id id)
{
	return table_get(&f->jobs, id.v);
}
static inline const struct node *node_get(const struct facts *f, struct node_id id)
{
	return table_get(&f->nodes, id.v);
}
static inline const struct queue *queue_get(const struct facts *f, struct queue_id id)
{
	return table_get(&f->queues, id.v);
}
static inline const struct attempt *attempt_get(const struct facts *f, struct attempt_id id)
{
	return table_get(&f->attempts, id.v);
}
static inline const struct shape *shape_get(const struct facts *f, struct shape_id id)
{
	return table_get(&f->shapes, id.v);
}
static inline const struct reservation_fact *reservation_get(const struct facts *f, uint32_t row)
{
	return table_get(&f->reservations, row);
}
const struct zone *facts_zone_find(const struct facts *f, const char *name); /* NULL: not known */
static inline const struct booking *booking_get(const struct facts *f, uint32_t row)
{
	return table_get(&f->bookings, row);
}
static inline const struct node_mask *mask_get(const struct facts *f, uint32_t row)
{
	return table_get(&f->masks, row);
}
uint32_t facts_mask_find(const struct facts *f, struct name_id name); /* row; 0 = none */
uint32_t mask_nodes(const struct facts *f,
		    uint32_t row); /* how many are in it, without those that are gone */
static inline bool booking_is_personal(const struct booking *booking)
{
	return booking->user.v || booking->team.v;
}
uint32_t facts_booking_find(const struct facts *f, const char *name); /* row; 0 = none */
/* The job may use it. */
bool booking_is_for(const struct facts *f, const struct booking *booking, const struct job *job);
/* As far as its user and team go: true of one that names neither. */
bool booking_is_for_person(const struct booking *booking, const struct job *job);
/* The job's reservation, NULL if it has none; and its row, 0 if it has none. */
uint32_t facts_reservation_row(const struct facts *f, struct job_id job);
const struct reservation_fact *facts_reservation(const struct facts *f, struct job_id job);
/* Does a task with this wish take a part of one GPU. */
static inline bool shape_is_part(const struct shape *shape)
{
	return shape->gpu_part || shape->gpu_part_mib;
}
/*
 * What a task takes of one GPU with so much memory: of the share it asks for the memory follows, of the memory the share.
 * Rounded down, so that equal parts that fit by one fit by the other: 23 times 2,000 MiB lie on a GPU of 46,068 MiB. A
 * share of 0 means that the GPU is too small.
 */
struct gpu_part {
	uint32_t share, mib;
};
struct gpu_part shape_part(const struct shape *shape, uint32_t gpu_memory_mib);
/* GPU shares that the attempt holds. */
int64_t attempt_share(const struct facts *f, const struct attempt *attempt);
/* So many shares for so long, in GPU-ms, rounded down. */
int64_t share_gpu_ms(int64_t share, int64_t ms);
/* Rank of an attempt that is its job's newest (live or over); NULL for an older one, whose tasks are dropped. */
const struct task *task_get(const struct facts *f, const struct attempt *attempt, uint32_t rank);
/* Checkpoint `number` of the job, void or not; NULL = it is not remembered any more, or there was none. */
const struct checkpoint *job_checkpoint_kept(const struct facts *f, const struct job *job,
					     uint32_t number);
/* The job's newest complete checkpoint with number <= upto (0 = newest of all) that is not void, NULL if none. */
const struct checkpoint *job_checkpoint(const struct facts *f, const struct job *job,
					uint32_t upto);

/* A job that must still succeed for this dependency, or that never will: the first by number; 0 = all is well. */
uint32_t depend_open(const struct facts *f, const struct depend *depend);
/* A job that ended without success, so that this dependency is never met; 0 = none. */
uint32_t depend_dead(const struct facts *f, const struct depend *depend);

bool job_state_is_final(uint8_t state); /* nothing more happens to it; JOB_NONE too */
bool job_is_waiting(const struct job *job); /* queued, preempted: may be placed */
bool job_is_live(const struct job *job); /* has an attempt */
const char *job_state_name(uint8_t state); /* "timed-out" */
const char *tier_name(uint8_t tier);
const char *kind_name(uint8_t kind);
const char *role_name(uint8_t role);
const char *node_state_name(uint8_t state);
/* Which processors number `index` of its NUMA nodes has: "0-15,32-47"; "" = nobody said. */
const char *node_numa_cpus(const struct facts *f, const struct node *node, uint32_t index,
			   char ret[REASON_MAX_BYTES + 1]);
/* The NUMA node of the first of these GPUs; NUMA_MAX = the node names none. */
uint32_t node_numa_of(const struct node *node, uint32_t gpus);
const char *node_class_name(uint8_t class);
bool node_class_find(const char *name, uint8_t *ret);
const char *capacity_name(uint8_t capacity); /* "on-demand", "spot", "any"; "" = not said */
bool capacity_find(const char *name, uint8_t *ret);
const char *partitioning_name(uint8_t partitioning); /* "fixed", "auto", "off" */
bool partitioning_find(const char *name, uint8_t *ret);
const char *stop_why_name(uint8_t why);
const char *task_cause_name(uint8_t cause); /* "no-space" */
/*
 * "550.54.14" as one number, so that versions compare part by part: 12 bits, then 10, then 10; a fourth part does not count.
 * 0 = no version: it does not begin with a number. A part too large for its bits counts as the largest.
 */
uint32_t version_parse(const char *text);
enum { VERSION_TEXT_MAX = 16 };
const char *version_text(uint32_t version, char ret[VERSION_TEXT_MAX]); /* "550.54.14", "12.4" */
bool job_state_find(const char *name, uint8_t *ret);
bool tier_find(const char *name, uint8_t *ret);
bool kind_find(const char *name, uint8_t *ret);
const char *share_gpus_name(int64_t share_gpus); /* "team", "any", "off" */
bool share_gpus_find(const char *name, int64_t *ret);
const char *defragment_name(int64_t defragment); /* "on-demand", "always", "off" */
bool defragment_find(const char *name, int64_t *ret);
bool role_find(const char *name, uint8_t *ret);
