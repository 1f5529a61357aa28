/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The core's entrances. Everything that runs Fairlead (the daemon, the simulator, a dry run, a replay) does this:
 *
 *	admit	a command from outside is an event not yet admitted; checked against the facts
 *	apply	makes it so in the facts (core/model/facts.h)
 *	follow	the index (view) catches up with what was applied
 *	decide	once per turn: all policy; its decisions are events, applied and followed in their order
 *
 * No clock, no file, no thread, no randomness, no floating point in here: time comes with events.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "core/model/facts.h"

struct arena;
struct view; /* the index: everything derived; core/scheduling/view/view.h puts it together */

/* Reason codes of SCENARIOS.md; the text form is the name in lower case. */
enum reason {
	REASON_NONE,
	REASON_QUOTA_LIMIT,
	REASON_GUARANTEE_ONLY,
	REASON_BUDGET,
	REASON_PRIORITY,
	REASON_RESERVATION,
	REASON_CAPACITY,
	REASON_TOPOLOGY,
	REASON_FRAGMENTATION,
	REASON_MODEL,
	REASON_MEMORY,
	REASON_CPU,
	REASON_RAM,
	REASON_DRIVER,
	REASON_PARTITION,
	REASON_SHARING,
	REASON_NODE_CLASS,
	REASON_RESIDENCY,
	REASON_DEPENDENCY,
	REASON_WINDOW,
	REASON_HOLD,
	REASON_IMPOSSIBLE,
	REASON_ARRAY_LIMIT, /* as many jobs of its array run as may */
	REASON_SPREAD, /* enough tasks fit, but not each in a place of its own */
	REASON_MAINTENANCE, /* it might still run when maintenance of nodes begins, or that lasts */
	REASON_SLOWDOWN, /* there is a place, but the way between its GPUs is slower than the job accepts */
	REASON_ALIGNMENT, /* enough fits on hosts, but not on one NUMA node for each task */
	REASON_RESERVED, /* the same of a reservation in advance that is not for it */
	REASON_APART, /* it would fit, but for jobs that it keeps away from, or that keep away from it */
	REASON_SPOT, /* it runs on spot nodes alone, or on none, and no other kind would do */
	REASON_PAUSE, /* it was lost again and again as soon as it had started */
	REASON_END
};
const char *reason_name(enum reason reason);

/* Why not, in figures: the decision's own record, which explain only puts into words. */
/* Why a reservation is in the way of a job that would end before it, as `level` of a REASON_RESERVATION. */
enum {
	RESERVED_COLLECTS =
		1, /* who has it waits so long that only work that can be stopped at once may use it */
	RESERVED_CLAIM /* only work that declares a limit may use it until then */
};

struct verdict {
	uint16_t code; /* enum reason */
	uint8_t level; /* topology level concerned: level + 1, LEVEL_NODE ..., 0 = none */
	uint8_t role; /* of a job with roles: 1 + the one concerned, beside what the others take; 0 = all */
	uint32_t at; /* best domain of that level (name_id), or node, or queue; 0 = none */
	int64_t have, need; /* in tasks, GPUs, MiB, milli-CPUs or shares, as the code says */
	struct job_id holder; /* a job that holds what is missing, or that is ahead */
};

/* Checks a proposed event (a command) and completes it: ids are given here (job of JOB_SUBMITTED, node of a NODE_STATE given
 * by name stays the caller's matter). 0: apply it. CORE_ALREADY: it is so already, nothing to apply (*ret_job is the job for a
 * repeated client key). Negative: refused, with code and text in err: unknown queue, critical above the guarantee (ERR_QUOTA with the
 * remedy), final job, same client key with another body (ERR_CONFLICT), names in use, a parent that would make a circle,
 * guarantee above the parent's, removal of what is in use, a priority, tier or queue that the user has no right to ... (ERR_FORBIDDEN). Whose jobs, users
 * and teams a caller may touch at all is checked before, by api/.
 * Texts that admit makes live in arena. */
enum { CORE_ALREADY = 1 };
int core_admit(const struct facts *facts, const struct view *view, struct event *event,
	       struct arena *arena, uint32_t *ret_job, struct err *err) MUST_CHECK;

struct view *view_create(const struct facts *facts); /* built from the facts alone */
void view_destroy(struct view *view);
void view_follow(struct view *view, const struct facts *facts,
		 const struct event *event); /* after apply of event */
void view_verify(const struct view *view,
		 const struct facts *facts); /* equals a rebuilt one, else aborts */

struct decisions {
	struct event *events; /* in the arena; time and actor filled, seq 0 */
	uint32_t count;
	bool more; /* stopped early: apply these, if any, and call again */
	int64_t wake_ms; /* call again (CLOCK_TICKED) at this event time even if nothing happens; 0 = need not */
};

/* What to do now. The view comes back as it was given. budget: units of work (about one placement attempt each). */
void decide(const struct facts *facts, struct view *view, uint64_t budget, struct arena *step,
	    struct decisions *ret);

/* Where decide would answer from what the pass before has shown (view/rest.h): a whole pass decides nothing, and asks for the same
 * wake_ms; else aborts. What is made in the arena is the caller's to throw away. */
void decide_verify(const struct facts *facts, struct view *view, struct arena *step);
/* Until when one that was warned may save: its grace since then, or until a node under it goes. That may have been said, put off or withdrawn since it
 * was told, so its deadline alone does not say. Of one that was stopped: its deadline. */
int64_t attempt_until_ms(const struct facts *facts, const struct attempt *attempt);

/* Name of the policy as it stands in Decided records: "default/1". */
extern const char *const core_policy_name;

/*
 * Moves of running jobs that would bring free GPUs together now, as a person may ask for (DEFRAG_ASKED), whatever the policy says of
 * when: the real thing on a frozen copy. For workers: it builds a view.
 */
enum { DEFRAG_PLANS_MAX = 64, DEFRAG_STUCK_MAX = 8 };
struct defrag_move {
	uint32_t job, tasks;
	const uint32_t *from, *to; /* nodes, by rank */
};
struct defrag_plan {
	uint32_t for_job; /* that fits then; 0: so that nodes, or GPUs, are whole */
	int64_t lost_gpu_ms, gained_share;
	const struct defrag_move *moves;
	uint32_t count;
};
struct defrag_report {
	uint32_t stuck
		[DEFRAG_STUCK_MAX]; /* jobs that find no place although enough is free: the first ones */
	uint32_t stuck_count;
	struct defrag_plan plans[DEFRAG_PLANS_MAX]; /* each with those before it under way */
	uint32_t plan_count;
};
void core_defrag(const struct facts *facts, struct arena *arena, struct defrag_report *ret);

/* --- explain ----------------------------------------------------------------------------------------- */

/* What a line that is no reason is about. */
enum explain_about {
	ABOUT_REASON,
	ABOUT_QUEUE, /* what its queue uses and may use */
	ABOUT_ORDER, /* who comes before it, and why */
	ABOUT_DEADLINE,
	ABOUT_PLACE, /* what is reserved for it */
	ABOUT_HOLDER, /* who holds GPUs that suit it */
	ABOUT_NODES /* nodes and GPUs out of use */
};
struct explain_line {
	uint16_t code; /* enum reason, REASON_NONE for context */
	uint8_t about; /* enum explain_about, of context */
	const char *
		text; /* one sentence, names and figures in it; times are absolute ("at 2026-11-27T18:20:05Z"), see moment_count_down */
};

struct explanation {
	enum reason reason; /* the true first reason; REASON_NONE when it does not wait */
	const char *summary; /* one sentence */
	const char *remedy; /* what would let it start; "" when nothing in the reader's power */
	uint32_t position; /* among those waiting in its queue, from 1; 0 = does not wait */
	uint32_t line_count;
	const struct explain_line *lines; /* the chain: queue, quota, order, constraints, holders */
	uint32_t
		ahead_count; /* jobs before it in its queue (the first EXPLAIN_AHEAD_MAX in `ahead`) */
	uint32_t ahead_listed;
	struct job_id ahead[16];
	struct verdict verdict;
	bool holder_protected; /* the remedy names the job that has its place, and until when that one may not be stopped */
	int64_t latest_ms; /* within its queue's guarantee it starts by then, whatever is submitted; 0 = that can't be said */
};
/* The code of a line for programs: of the reason, or "queue", "order", "deadline", "place", "holder", "nodes". */
const char *explain_line_code(const struct explain_line *line);
/* Of a job that has ended or runs the view is not looked at: it may be NULL. */
void explain_job(const struct facts *facts, struct view *view, struct job_id job,
		 struct arena *arena, struct explanation *ret);

/*
 * Everything that keeps a job from starting, and the smallest change that would let it start. The core is asked again with
 * each cause taken away until the job has its place (or a place promised); then every part that can be missed is left
 * out. So the change was decided, on a changed view: with all its parts the job starts, with fewer it does not.
 */
enum change_kind {
	CHANGE_RELEASE, /* somebody releases it */
	CHANGE_JOB_ENDS, /* job `id` ends; well, if this one depends on it */
	CHANGE_LIMIT, /* queue `id` gets the limit `value`, in shares */
	CHANGE_LEND, /* queue `id` lends its reserved guarantee */
	CHANGE_STANDARD, /* it has tier standard */
	CHANGE_NODE_READY, /* node `id` is ready */
	CHANGE_GPUS_BACK, /* the GPUs `value` of node `id` are no longer set aside */
	CHANGE_MODELS, /* it accepts any model */
	CHANGE_GPU_MEMORY, /* it asks for `value` MiB of GPU memory, at most */
	CHANGE_CPU, /* ... milli-CPUs per task; this and the next ones: of role `id` (from 1 on), 0 = of all tasks */
	CHANGE_RAM, /* ... MiB of memory per task */
	CHANGE_LEVEL, /* it requires the level `value` (as in struct shape) */
	CHANGE_TASKS, /* it asks for `value` tasks, */
	CHANGE_GPUS, /* ... GPUs per task */
	CHANGE_RUN_LIMIT, /* it declares a run-time limit of `value` ms */
	CHANGE_PRIORITY, /* it has the priority `value` */
	CHANGE_UNBOUND, /* queue `id` has no limits of models, processors and memory */
	CHANGE_CALENDAR, /* queue `id` has no calendar */
	CHANGE_TRAIT, /* it asks for `value` of trait `id` (core/placement/traits.h), 0 = for none in particular */
	CHANGE_TOLERATE, /* it tolerates the taint `id` (a name) */
	CHANGE_SPREAD, /* its tasks may lie together */
	CHANGE_ALIGN, /* it asks for no alignment */
	CHANGE_BUDGET, /* queue `id` has `value` left in its budget, in millionths */
	CHANGE_MAINTENANCE, /* maintenance of node `id` is called off */
	CHANGE_SLOWDOWN, /* it accepts steps that take `value` per mille longer than on the best place */
	CHANGE_BOOKING, /* reservation `id` (a row of facts->bookings) is given up */
	CHANGE_WINDOW, /* it may run at any time */
	CHANGE_APART, /* it keeps away from no other job, and none from it */
	CHANGE_SLICES, /* the GPU `id` (node and number in one, cut_at) is cut into the layout `value` */
	CHANGE_USERS /* queue `id` has no limit per user */
};
/* An idle GPU that a change cuts into slices. */
static inline uint32_t cut_at(uint32_t node, uint32_t gpu)
{
	return node << 5 | gpu;
}
static inline uint32_t cut_node(uint32_t at)
{
	return at >> 5;
}
static inline uint32_t cut_gpu(uint32_t at)
{
	return at & 31;
}
struct change_part {
	enum change_kind kind;
	uint32_t id;
	int64_t value;
	const char *text; /* `a limit of 12 GPUs for queue "vision"` */
};
enum { CAUSES_MAX = 12, CHANGE_PARTS_MAX = 256 };
struct explain_change {
	uint32_t cause_count; /* 0: it waits for nothing */
	struct explain_line causes[CAUSES_MAX];
	uint32_t
		part_count; /* 0: none is known, or it would have cost too many tries to find one */
	const struct change_part *parts;
	const char *text; /* the parts in one sentence; "" without */
	bool smallest; /* no part of it is enough; false: that would have cost too many tries to know */
};
/* The view comes back as it was given. Costs some tens of passes at most; for workers, not for the core's own thread. */
void explain_change(const struct facts *facts, struct view *view, struct job_id job,
		    struct arena *arena, struct explain_change *ret);
/* What may happen to the job, in one sentence, for the moment of submission: "Standard job: it may be stopped for ... after a checkpoint". */
const char *explain_prospect(const struct facts *facts, struct view *view,
			     const struct event *job_submitted, struct arena *arena);
/* Whether the job could not start on the nodes and within the limits of queues as they are, whatever else ended. */
bool explain_is_impossible(const struct facts *facts, struct view *view,
			   const struct event *job_submitted, struct arena *arena);
/* The unit of the budget of the queue, or of the first one above it that has one; otherwise of the first queue that has one, as all amounts are
 * in one unit. "" = not said. */
const char *facts_currency(const struct facts *facts, struct queue_id queue);
/* What a job is expected to cost, by the prices of models as they are now and the spread of its run time (scheduling/reserve/estimate.h). */
struct price_range {
	bool known; /* some model has a price */
	bool placed; /* at the place it has, or would get; else at its least width on the cheapest model that it accepts */
	int64_t per_hour_micro;
	int64_t likely_micro,
		safe_micro; /* no more than that in half, in 9 of 10 cases; of one that runs: from now on */
	int64_t most_micro; /* as budgets count it, by the safe run time */
	enum price_by {
		PRICE_BY_LIMIT, /* it costs no more, for it is stopped then */
		PRICE_BY_ESTIMATE,
		PRICE_BY_LIKES, /* what 9 of 10 jobs like it did not exceed */
		PRICE_BY_DEFAULT /* of its queue, the policy or Fairlead */
	} by; /* whence the safe run time */
};
enum price_by price_by(const struct job *job);
/* placed: ATTEMPT_PLACED or PROMISE_MADE that was decided for it, or NULL. */
void core_price(const struct facts *facts, struct view *view, struct job_id job,
		const struct event *placed, struct price_range *ret);
/* As if this JOB_SUBMITTED (admitted form) were decided now on a copy: would it start, where, else why not. Changes nothing. */
struct dry_run {
	bool starts_now;
	uint32_t victims;
	const struct event *placed; /* ATTEMPT_PLACED or PROMISE_MADE, NULL */
	struct explanation why;
	struct price_range price;
};
void core_dry_run(const struct facts *facts, const struct event *job_submitted, struct arena *arena,
		  struct dry_run *ret);
