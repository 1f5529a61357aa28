/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The view: everything derived from the facts that decisions need quickly. It can be thrown away at any time;
 * one built anew from the facts gives the same decisions (view_verify).
 *
 *	space		free GPUs by node and domain (core/placement/space.h)
 *	buckets		waiting jobs, in groups that are decided alike: queue, rank, shape, class of run time
 *	queues		who holds how much: by tier, leaving, promised; running jobs by rank
 *	promises	places kept for jobs whose victims are leaving
 *	due, deadlines	jobs about which something must be decided, now or at a time
 *	ends		when running jobs are expected to end
 *	turners		running jobs that may make room for their equals, by the work that they need still
 *
 * A job's rank is (tier, priority) as one number; within a rank the lower job id (the earlier submission) goes first.
 * A million waiting jobs of two hundred shapes are some thousands of buckets: a pass walks buckets, not jobs.
 *
 * One function brings a job's part of the index in line with the facts, and it serves following and building
 * alike. Each event costs a few microseconds; changes of nodes, levels and queues only mark a part as stale,
 * and view_refresh builds that part again.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/core.h"
#include "core/placement/space.h"
#include "core/scheduling/view/line.h"
#include "core/scheduling/view/rest.h"
#include "core/scheduling/view/sorted.h"
#include "core/scheduling/view/turners.h"

enum { TIERS = TIER_CRITICAL + 1 };

/* In the masks of early failures: no GPU of the node, but the node. It stands beyond the last GPU; a node of
 * NODE_GPUS_MAX GPUs has no room for it, and there such failures count against nobody. */
#define NODE_ITSELF (INT64_C(1) << (NODE_GPUS_MAX - 1))

/* Without gaps, so that an empty row is one of zeroes. */
struct job_view {
	uint64_t rank; /* under which it runs, or waits in a limited array */
	int64_t share; /* GPU shares its attempt holds */
	int64_t leave_share; /* of these, what it will give up soon */
	int64_t again_share; /* of these, what it wants again when it has left: its least width, if it will wait */
	int64_t grow_ms; /* in `narrow`; 0 = not there */
	int64_t since_ms; /* released, or else placed */
	int64_t deadline_ms; /* in `deadlines`; 0 = none */
	int64_t end_ms; /* in `ends`; 0 = none */
	int64_t declared_ms; /* in `declared`; 0 = not there */
	uint64_t turner_key; /* in its group of `turner_groups` */
	uint32_t turner_group; /* 0 = none */
	uint32_t bucket; /* it waits in, 0 = none */
	uint32_t attempt; /* live one whose tasks are in the space, 0 = none */
	uint32_t queue;
	uint32_t width; /* ranks that hold a place */
	uint8_t tier;
	bool due, leaving, warned, promised, lacking;
	uint8_t array; /* enum array_place: where it stands in a limited array, arrays.h */
	bool array_holds; /* it counts against the array's limit */
	bool aging, elastic; /* in these sets of its queue */
	bool chooses; /* life/capacity.c decides which nodes it may use */
	bool shrinking; /* in that set */
};

/* What work needs beside GPUs. */
struct beside {
	int64_t cpu_milli, ram_mib;
};

struct bucket {
	uint64_t rank;
	int64_t share; /* of one job's least width; -1 = depends on the GPUs that it gets */
	uint32_t queue, shape;
	uint32_t jobs; /* sorted by job id */
	uint32_t next; /* chain of its look-up slot, or of the free ones */
	uint32_t first; /* of the jobs; by it the bucket stands in its queue's line: */
	int64_t due_ms; /* when that one is due */
	struct beside beside; /* what one job's least width needs beside GPUs */
	uint16_t work_class; /* of what its jobs need still, due.h; 0 = the policy asks for none */
	uint8_t run_class;
	bool declared; /* its jobs have a run-time limit: a claim is lent to such */
	bool timed; /* its jobs have a window of their own, or a pause */
	int64_t pause_until_ms; /* its jobs were lost again and again: no attempt before, life/pause.h; 0 = at any time */
	uint64_t
		booked; /* reservations in advance for people, by row, that are for its jobs' users and teams */
	uint32_t user; /* name of its jobs' user where the queue has a limit per user; 0 = of any */
};

/* Models of GPUs that count each for itself in what a queue uses (dominant.h): the first ones by name. */
enum { VIEW_MODELS = 16 };

/* Of processors, memory, GPUs by model; on nodes that state their processors and memory. */
struct amounts {
	int64_t cpu_milli, ram_mib;
	int64_t gpus[VIEW_MODELS];
};

/* One node of the queue tree; [0] is the root above all queues. */
struct queue_view {
	struct line line; /* its buckets, in the order of their turns */
	uint32_t running; /* key: rising rank; id: job */
	uint32_t aging; /* of these the standard work that does not leave; key: since_ms */
	uint32_t elastic; /* and that which can do without some ranks; key: rank */
	uint32_t
		savers; /* of what runs that which makes checkpoints, but for critical work; key: rank */
	int64_t wait
		[TIERS]; /* shares of the least widths of the jobs in its line; those of which share is -1 count nothing */
	uint32_t waits[TIERS], waits_odd,
		waits_timed; /* these jobs; of them those with share -1, with a window of their own or a pause */
	int64_t widest; /* no job in its line has a larger share */
	int64_t hold[TIERS]; /* shares held by attempts */
	int64_t leave[TIERS]; /* of these, by attempts that were warned or stopped */
	int64_t again[TIERS]; /* of these, what they will wait for when they have left */
	int64_t promised[TIERS];
	struct beside wait_beside; /* least widths of its waiting jobs, but for best-effort ones */
	uint32_t bare; /* running standard jobs that ask for no GPU */
	struct amounts holds; /* its standard and critical work; true while the space is */
	uint32_t parent; /* of the tree; children are linked by name */
	uint32_t first_child, next_sibling;
};

struct promise_view {
	uint32_t job, queue;
	uint8_t tier;
	int64_t share;
	uint32_t sharer; /* of parts of GPUs */
	uint32_t aligned; /* as in struct hold */
	uint32_t tasks, victims; /* counts */
	ARRAY(uint32_t)
	numbers; /* nodes, masks, parts, their memory, milli-CPUs, MiB, by task; then victims (attempts) */
};
enum { PROMISE_COLUMNS = 7 };
static inline uint32_t promise_node(const struct promise_view *p, uint32_t task)
{
	return p->numbers.at[task];
}
static inline uint32_t promise_victim(const struct promise_view *p, uint32_t i)
{
	return p->numbers.at[PROMISE_COLUMNS * p->tasks + i];
}
/* What the task will hold. */
static inline struct hold promise_task(const struct promise_view *p, uint32_t task)
{
	return (struct hold){ p->numbers.at[p->tasks + task],
			      p->numbers.at[2 * p->tasks + task],
			      p->numbers.at[3 * p->tasks + task],
			      p->sharer,
			      p->aligned,
			      p->numbers.at[4 * p->tasks + task],
			      p->numbers.at[5 * p->tasks + task],
			      p->numbers.at[6 * p->tasks + task] };
}

/* An array of which only so many jobs may run at once. */
struct array_view {
	uint32_t body; /* its submission */
	uint32_t held; /* jobs that run or have a place promised */
	uint32_t open,
		back; /* those that wait: let into the buckets, kept back; key: falling rank */
};

struct view {
	struct space space;
	struct space ahead,
		bare; /* memory for copies of it, see ahead.c and reserve.c; nothing that outlives a pass */
	ARRAY(uint64_t) suits; /* by shape: the classes of nodes that suit it; 0 = not known */
	struct sorted_pool pool;
	struct table
		jobs; /* struct job_view by job id; those of jobs that are over read as zeroes */
	ARRAY(struct bucket) buckets; /* [0] unused */
	ARRAY(uint32_t) bucket_slots; /* power of two */
	ARRAY(struct turner_group) turner_groups; /* [0] unused; see turners.h */
	ARRAY(uint32_t) turner_slots; /* power of two */
	uint32_t turner_group_count, turner_group_free, turner_groups_used;
	ARRAY(struct queue_view) queues; /* by queue id */
	ARRAY(uint32_t) queue_order; /* every queue that exists, parents first, by name */
	ARRAY(struct promise_view) promises; /* by job id */
	struct amounts capacity; /* of the nodes that are ready */
	int64_t usable_gpus; /* of all nodes, ready or not */
	ARRAY(uint8_t)
	models; /* by traits of the space: index of its model in amounts, VIEW_MODELS = none */
	uint32_t model_count;
	ARRAY(struct array_view)
	arrays; /* limited ones with jobs that wait or run, by submission */
	uint32_t array_count;
	uint32_t promise_count;
	ARRAY(uint32_t) holders; /* job that holds a GPU, by rank * gpus_max + index; 0 = none */
	ARRAY(uint32_t) shape_jobs; /* jobs that wait in a bucket or run, by shape */
	uint32_t bucket_count, bucket_free, buckets_used;
	uint32_t waits; /* jobs in buckets */
	uint32_t due; /* by job id */
	uint32_t deadlines; /* key: time; id: job */
	uint32_t ends; /* key: time; id: job */
	uint32_t
		declared; /* of `ends` those that are more than a guess: of jobs with a limit or an estimate, or that leave */
	uint32_t warned; /* jobs that wind down and are not stopped yet */
	uint32_t leaving; /* jobs whose attempt was warned or stopped */
	uint32_t shrinking; /* jobs that go on without some ranks, which are about to leave */
	uint32_t lacking; /* jobs whose gang lost ranks and runs with fewer than its least width */
	uint32_t
		narrow; /* key: time from which it may grow; id: job that runs and could be wider */
	uint32_t marked; /* jobs that run and bear labels, or keep away from some (apart.h) */
	uint32_t chooses; /* jobs with a deadline that may use spot nodes and others; by job id */
	uint32_t nodes_due; /* nodes on which too many jobs failed */
	uint32_t job_count; /* jobs 1..job_count have been indexed */
	uint32_t draining; /* nodes that are being drained, or have maintenance (announced); and
			   * reservations in advance */
	uint64_t booked; /* reservations in advance for people, by row */
	uint32_t user_limits; /* queues with limits per user */
	bool space_stale, queues_stale;
	struct rest rest;
};

/* The row of any id; zeroes where nothing of the job is in the index, and of none. */
static inline const struct job_view *job_view_get(const struct view *view, uint32_t job)
{
	return job - 1 < view->jobs.count ? table_get(&view->jobs, job)
					  : (const void *)table_zeroes;
}
static inline struct job_view *job_view_edit(struct view *view, uint32_t job)
{
	return table_edit(&view->jobs, job);
}

void view_refresh(struct view *view, const struct facts *facts); /* builds what is stale */

/* --- questions, each a function of the facts alone ---------------------------------------------------- */

static inline uint64_t rank_of(uint8_t tier, int32_t priority)
{
	return (uint64_t)tier << 32 | ((uint32_t)priority ^ UINT32_C(0x80000000));
}
static inline uint64_t job_rank(const struct job *job)
{
	return rank_of(job->tier, job->priority);
}
/* The run time of jobs of the queue that say nothing of it: the queue's default limit, the policy's, or a day. */
int64_t queue_default_limit_ms(const struct facts *facts, struct queue_id queue);
/* Run time still to be expected of the job from a start now: limit, estimate, what jobs like it ran, or its queue's default. */
int64_t job_expected_ms(const struct facts *facts, const struct job *job);
/* How long it may wind down: its own grace, or the policy's. */
int64_t job_grace_ms(const struct facts *facts, const struct job *job);
/* When its run-time limit is over; 0 = none or not running. */
int64_t job_limit_end_ms(const struct facts *facts, const struct job *job);
/* Something must be decided about it now, whatever the time. */
bool job_is_due(const struct facts *facts, const struct job *job);
/* It has a deadline, saves its work, and may use spot nodes as well as others: which of them is decided (life/capacity.c). */
bool job_chooses_capacity(const struct facts *facts, const struct job *job);
/* A job it depends on ended without success, so it never can start: that one, else 0. */
uint32_t job_dead_dependency(const struct facts *facts, const struct job *job);
/* When it is to be warned because a node under it is drained or has maintenance announced, so that its grace ends with the
 * drain's deadline, or when the maintenance, or a reservation of its GPUs for others, begins, or its own window closes; not before it is expected to have ended by itself, if that is before. DRAIN_NOW,
 * or a time; 0 = neither. */
enum { DRAIN_NOW = 1 };
int64_t attempt_drain_ms(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt);
/* The same for the node and the GPUs of one of its ranks; of tasks that somebody else made and that were told to leave, 0. */
int64_t task_drain_ms(const struct facts *facts, const struct job *job,
		      const struct attempt *attempt, const struct task *task);
/* The same for its own window alone (window.h). */
int64_t attempt_window_ms(const struct facts *facts, const struct job *job,
			  const struct attempt *attempt);
/* When the first node under it goes of those that go after that time: a drain's deadline, the beginning of maintenance. 0 = none does; how long one
 * stays that should have gone before nobody knows. */
int64_t attempt_goes_ms(const struct facts *facts, const struct attempt *attempt, int64_t after_ms);
/* Must the job be gone when the reservation in advance begins? Critical work never: it is not placed there unless it declares a limit. */
bool booking_moves(const struct facts *facts, const struct booking *booking, const struct job *job);
bool booking_holds(const struct booking *booking,
		   const struct task *task); /* GPUs of it, or the node */
/* When the attempt's newest checkpoint that is still good was complete; 0 = it made none. */
int64_t attempt_saved_ms(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt);
bool attempt_is_leaving(const struct attempt *attempt);
/* Once its attempt has left, the job waits; not where it is to end, goes on at a place that is promised to it, or may not run then. */
bool job_waits_again(const struct facts *facts, const struct job *job,
		     const struct attempt *attempt);
/* GPU shares of its ranks that were told to leave, whatever becomes of the others. */
int64_t attempt_told_share(const struct facts *facts, const struct attempt *attempt,
			   const struct shape *shape);
/* Its ranks may come and go one by one while it runs. */
bool job_is_free(const struct facts *facts, const struct job *job);
/* From when on the running attempt may be given more ranks; 0 = it may not. */
int64_t attempt_grow_ms(const struct facts *facts, const struct job *job,
			const struct attempt *attempt);
/* Also when some of its ranks, or all but one, have ended well: the gang holds all its places until the last one ends, and what it
 * costs is the work of all, for they start again together. */
bool attempt_may_be_evicted(const struct attempt *attempt);
/* It runs wider than it must, and could give up the ranks beyond that one by one, at no cost. One of which a rank has ended well goes
 * whole: those that still run could be just what is above its least width, and nobody would finish their work. */
bool attempt_has_surplus(const struct facts *facts, const struct job *job,
			 const struct attempt *attempt);
/* It is drained, or has maintenance announced; how many such nodes and reservations in advance there are. */
bool node_is_left(const struct node *node);
uint32_t nodes_draining(const struct facts *facts);
/* Whose dependents may go on, or never will, now that the job has ended: the array that ends with it; 0 = none. */
uint32_t array_ended_with(const struct facts *facts, uint32_t id);
/*
 * Early failure number `failure` of the node counts against it: it is recent; of a GPU that is not set aside already, or of a program
 * that was not there (NODE_ITSELF); and work of two users or more failed in the same way. A broken GPU or a lost mount hits
 * several people, a mistake in a program one.
 */
bool failure_counts(const struct facts *facts, uint32_t node, uint32_t failure);
/* Jobs of enough different origins failed early on the node: it, or some of its GPUs, should be set aside. */
bool node_failed_often(const struct facts *facts, uint32_t node, uint32_t *ret_jobs);

/* The job whose live attempt holds the GPU, one that the node has; 0 = none that the facts know, or several that hold parts. */
static inline uint32_t view_holder(const struct view *view, uint32_t rank, uint32_t gpu)
{
	return view->holders.at[rank * view->space.gpus_max + gpu];
}
/* Brings the bucket that the job waits in in line with the facts; arrays.c calls it for those let in or kept back. */
void view_wait_sync(struct view *view, const struct facts *facts, uint32_t job);
/* view_promises.c: brings what is promised to a job in line; `again`: what it is may have changed. The place, in the space or out. */
void view_promise_sync(struct view *view, const struct facts *facts, uint32_t id, bool again);
void view_promise_move(struct view *view, const struct promise_view *p, bool make);
/* The policy's patience may have changed: every bucket goes where it belongs. */
void view_order_sync(struct view *view, const struct facts *facts);
/* A job of the shape begins to wait or run, or ceases to. */
void view_shape_count(struct view *view, uint32_t shape, bool more);
/* What people ask for, as the space's search weighs it (placement/demand.h), is brought up to date. */
void view_demand(struct view *view, const struct facts *facts, struct arena *arena);

const struct promise_view *view_promise(const struct view *view, uint32_t job); /* NULL = none */
