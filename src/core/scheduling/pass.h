/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A pass: one call of decide while it works. What it decides it also does in the view, so that the next
 * question sees it; at its end the view is rolled back, and the caller applies the decisions.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "core/core.h"
#include "core/placement/find.h"
#include "core/placement/parts.h"
#include "core/scheduling/reserve/apart.h"
#include "core/scheduling/reserve/blocks.h"
#include "core/scheduling/reserve/time_slots.h"
#include "core/scheduling/queues/beside.h"
#include "core/scheduling/queues/bounds.h"
#include "core/scheduling/queues/pledge.h"
#include "core/scheduling/queues/spend.h"
#include "core/scheduling/queues/standing.h"
#include "core/scheduling/view/view.h"

enum {
	DECISIONS_MAX = 16384, /* of one pass; then it says "more" */
	EVICT_SEARCHES_MAX =
		64, /* of one pass that find nothing; the next pass goes on behind them (facts.searched) */
	EVICT_STEPS_MAX =
		100000, /* of one pass in searches: candidates read, given back and asked for a place; at least one search is made */
	RESERVE_ENDS_MAX = 8192, /* expected ends looked at for reservations */
	RESERVE_MOVES_MAX = 65536, /* of jobs, out and back in, in one pass for reservations */
	CLAIMS_FAIL_MAX =
		2, /* claims of one pass that find no place: each has walked through all ends */
	RESERVE_SPARES_MAX = 8192, /* best-effort jobs that are taken to be gone */
	RESERVE_REVIEW_MS =
		10000, /* reservations are looked for anew that long after the last time */
	MOVES_LOOK_MS = 10000, /* from one look for moves to the next */
	MOVES_READ_MAX =
		2048, /* running jobs that a look reads when some wait: those on the nodes with most free GPUs */
	STUCK_MAX = DEFRAG_STUCK_MAX, /* jobs for which moves are looked for */
	RESERVE_SEEK_MS =
		1000 /* and for a job that has none, and may have been kept from its turn, after so long */
};

/* Of a reservation, on one node: all of it. */
struct kept {
	uint32_t rank;
	struct hold hold;
	struct hold
		promised; /* `alone`: what is promised in the space, for others may have had some of it */
	bool alone; /* promised for itself; else together with what else is reserved on the node (time_slots.h) */
	const struct time_slot *slot; /* of its reservation */
	struct kept *next; /* of another reservation on this node, or another part of this one */
};

/* A place that a blocked job will have at start_ms. Others may use it until then. */
struct reservation {
	uint32_t job;
	int64_t start_ms;
	uint32_t waits_for; /* the job whose end it waits for last; 0 = none */
	struct placement place;
	struct kept *kept; /* what of it is promised in the space, while it is; by node */
	uint32_t kept_count;
	int64_t end_ms; /* when its job is expected to have ended; INT64_MAX = its place is taken for never free again */
	bool unsure; /* nobody declared that end */
	bool late; /* it starts later than was planned: who is there still runs, or the job before is late itself */
	bool follows; /* another reservation ends on its GPUs before it starts */
	struct time_slot *slot; /* NULL = not yet in the pass's list */
	bool is_kept;
	bool collects; /* its job waits so long that its place is lent only to what can be stopped at once */
	int64_t lend_ms; /* what it is lent to is to end by then: start_ms, or the time at which the last borrower of the place may be warned */
	int64_t sure_ms; /* of a claim: the start when all borrowers of the place stay as long as they can; INT64_MAX = others hold it too */
	bool evicts; /* a claim that waits for borrowers who will be evicted for it */
	bool firm; /* a claim within its queue's guarantee: nobody makes room for others there */
	bool claim; /* its job fits in its queue's share: lent only to work whose declared limit ends before */
	bool lent; /* its job takes turns and is not due: to its equals that can save whatever their end, they make room in theirs */
	uint32_t queue;
	uint64_t rank;
	const struct shape *shape;
	uint32_t turn; /* how many were found before it in this pass */
};

/* A job that finds no place though enough GPUs for it are free: they do not lie together. */
struct stuck {
	uint32_t job;
	uint32_t turn; /* reservations found before its turn */
	uint64_t closed; /* classes of nodes closed to it */
};

/* Ranks that an elastic job can do without, and whether this pass told them to leave; by rank. Shared by its victims, in all lists. */
enum { SURPLUS_SLOTS = 4096 };
struct surplus {
	uint32_t job;
	bool *is, *told;
	struct surplus *next; /* of the same slot */
};

/* A running job as one who may have to go. One that has surplus is several: each rank of it alone, and the rest. */
struct victim {
	uint32_t job, queue;
	const struct attempt *attempt;
	const struct shape *shape;
	uint64_t rank;
	int64_t share; /* GPU shares it holds, but for what was told to leave before */
	int64_t told; /* that, which comes free with it */
	int64_t cost; /* GPU-ms that its eviction loses; 0 for one that leaves anyhow */
	int64_t bare_cost; /* of one without GPUs: the same of its part of processors and memory (beside.h) */
	uint32_t
		turn; /* an equal whose turn is over: class of the work that it needs still; 1 = it does not need it; else 0 */
	uint32_t
		holds; /* of one that comes: promises that count on it, and 1 when it can't be spared; at 0 it will be */
	int64_t due_ms; /* of such an equal: when it is due, were it to wait */
	uint8_t tier;
	bool coming; /* leaves already, for another job or for good */
	uint32_t leaver; /* 1 + the rank of the surplus that this is; 0 = the rest, or all */
	const struct promise_view
		*promise; /* not a running job, but a place promised to `job`; else NULL */
	struct surplus *surplus; /* NULL = it is one whole */
	int64_t submitted_ms; /* of its job */
};

/* Its ranks lie among these: of surplus there is one. */
static inline uint32_t victim_first(const struct victim *v)
{
	return v->leaver ? v->leaver - 1 : 0;
}
static inline uint32_t victim_end(const struct victim *v)
{
	return v->leaver ? v->leaver : v->attempt->tasks;
}
/* Does this rank go with the victim? */
static inline bool victim_has(const struct victim *v, uint32_t rank, const struct task *task)
{
	if (!task_holds(task))
		return false;
	return v->leaver ? rank + 1 == v->leaver : !v->surplus || !v->surplus->is[rank];
}

/* What a pass knows of a shape. Space only shrinks during a pass, so "does not fit" stays true. */
struct shape_memo {
	/* 1 + least expected end for which it did not fit; 0 = not known. [1]: of jobs that declare a limit */
	int64_t no_end_ms[2];
	bool never; /* it does not fit on what is reserved either */
	uint32_t fits_at; /* 1 + pass->changes at which it fitted but for reservations; 0 = never */
	bool no_reservation; /* none was found until declared ends; */
	bool no_guess; /* nor until others, for who has waited for long */
	uint32_t ahead, moment; /* of ahead.c: not before that moment of that copy */
	bool no_growth; /* no place for one rank more, by counts alone */
	int64_t need, least; /* shares of its least width, at most and at least; 0 = not known */
};

/* Candidates for the jobs of one queue and rank, kept while nothing starts. */
struct candidates {
	struct victim *list;
	uint32_t *scratch, scratch_room; /* for lists of indices */
	uint32_t first, count; /* first: those before it have left */
	uint32_t queue, starts;
	uint64_t rank;
	uint32_t work; /* class, for turns among equals; 0 = none go */
	int64_t due_ms; /* with turns: of the job for which they were listed; who is due later finds no more */
	int64_t need, shares;
	bool pledged; /* for a job that is promised the model */
	bool claims; /* for one that gets its guarantee together */
	bool turns; /* some are equals whose turn is over */
};

/* Kinds of searches: by share; of jobs without GPUs; for a guarantee in one piece (evict.h, `claims`). */
enum barren_row { BARREN_ALL, BARREN_BARE, BARREN_CLAIMS, BARREN_ROWS };

/* What evictions could bring together for a queue's jobs, when it was last looked at. */
struct barren {
	uint64_t rank;
	uint32_t work; /* class of that job's work, as in candidates; */
	int64_t due_ms; /* when it is due */
	int64_t need, shares;
	uint32_t changes;
	bool known;
};

struct watch {
	uint32_t job;
	bool seen, started; /* blocked; placed or promised a place */
	uint64_t work_most; /* tries that the pass may make before its turn; 0 = any number */
	int64_t latest_ms; /* a claim within its queue's guarantee: it starts by then, whatever is submitted; 0 = that can't be said */
	struct verdict verdict;
};

struct pass {
	const struct facts *facts;
	struct view *view;
	struct arena *arena;
	struct standings standings;
	struct event *events;
	uint32_t count, room;
	uint64_t budget, work;
	uint64_t steps; /* of searches for victims, see EVICT_STEPS_MAX */
	uint32_t looked; /* running jobs that a look for moves read */
	uint32_t attempts; /* ids given out to this point */
	int64_t wake_ms; /* 0 = need not */
	bool more;
	struct shape_memo *memos; /* by shape */
	const struct shape
		*suits_of; /* the shape (of the facts) that was last asked for a place, */
	uint64_t suits; /* ... and the classes of nodes that suit it */
	bool *plain; /* by queue: neither it nor one above it has a calendar or bounds */
	uint32_t starts, changes; /* attempts started; these and promises made */
	/* eviction */
	struct victim **
		victims; /* [0] best-effort of all queues, else standard of the queue, or of that what can do without some ranks; sorted by cost */
	uint32_t *victim_counts, *victim_rooms;
	bool *victims_made;
	int64_t *
		victims_mature_ms; /* earliest time at which a job that is too young now may be evicted; 0 = none */
	struct victim *coming;
	uint32_t *coming_jobs; /* their jobs, close together; */
	uint32_t *coming_open; /* and which of them may leave over what is promised to nobody */
	uint32_t coming_count, coming_room, coming_open_count;
	uint32_t coming_sorted; /* so many of them were there at first, by job */
	struct victim *fresh; /* of the search at hand, see evict.h */
	uint32_t fresh_room;
	uint64_t *leaving; /* jobs that this pass told to leave, one bit each; NULL = none yet */
	struct surplus *
		*surpluses; /* of elastic jobs, by job modulo SURPLUS_SLOTS; NULL = none yet */
	struct candidates kept[2]; /* [1]: for jobs without GPUs */
	struct barren *barren; /* by enum barren_row, then by queue; NULL = not yet made */
	uint32_t *ranks_on; /* by node: scratch, zeroes between uses; NULL = not yet made */
	bool *promises_gone; /* by index in the view: kept or taken over in this pass */
	uint32_t searches, asked; /* that found nothing; jobs that had their turn in this round */
	uint32_t
		urgent; /* critical jobs that asked for victims: the first EVICT_SEARCHES_MAX of them count in neither */
	uint32_t late_from; /* jobs from this id on came within reserve_unsure; 0 = not known */
	bool out_of_turn; /* the pass is over for all but critical jobs: no place is reserved */
	uint32_t claims_failed; /* claims for which no place was found */
	bool looked_again; /* a claim's place that holds was looked for again without a review */
	bool takes_promises; /* of borrowers, for a claim: who lost his place looks for another one first */
	bool claims_planned; /* a place was looked for for a claim: what it may take depends on what else is reserved */
	bool look_awaited; /* a job may evict for its guarantee once moves have been looked for */
	bool passed_over; /* some had their search in an earlier pass of this round */
	bool cut; /* one search more was wanted: the pass ends before the job that wanted it */
	bool blocked; /* standard work that could not start, or lost its promise */
	struct tally *tally; /* by node or domain, see evict_solve.c */
	uint32_t stamp;
	/* reservations, by start_ms */
	struct reservation *reservations;
	uint32_t reservation_count, applied; /* applied: those that are kept in the space */
	uint32_t reserved_for; /* the job for which the last one was made; 0 = none */
	int64_t layer_end_ms; /* for whom they are: see reserve_layer. -1 = look again */
	bool layer_declared, layer_evicts;
	uint32_t
		layer_queue; /* of a job that can save, and makes room for its equals; 0 = it does not */
	uint64_t layer_rank;
	int64_t wanted_end_ms; /* for whom they are to be, when the space is looked at next */
	bool wanted_declared;
	uint32_t wanted_queue;
	uint64_t wanted_rank;
	uint32_t *bare, *bare_masks; /* reserve_may_fit; NULL = not yet made */
	uint32_t bare_changes; /* 1 + changes when it was made, */
	uint32_t bare_set; /* ... and the set of blocks */
	uint32_t copy_changes,
		copy_set; /* the same of the view's copy of the space without reservations */
	uint32_t copy_since; /* of it, for space_copy_next */
	uint64_t *copy_seen;
	uint32_t moves,
		moves_at; /* of reservations into the space and out, since the pass had so many changes */
	struct ahead *ahead; /* reserve.c; NULL = no reservation was looked for yet */
	struct kept_node **
		reserved; /* by rank: what is reserved there; NULL = none yet, or none there (time_slots.h) */
	struct kept_node *unsettled; /* nodes of which a reservation has turned (time_slots.h) */
	bool *reserved_seen; /* by row of the facts: still holds, or was set anew */
	bool review; /* those in the facts are looked for anew */
	bool unreviewed; /* one was not looked for, or kept as it was: there may be a better one */
	bool seek,
		sought; /* jobs that may have been kept from their turn are looked for; one was */
	bool unsought; /* one of them was not */
	bool waits; /* for the next review: it came to its end without one */
	uint8_t *queues_keep; /* by queue, see reserve_kept.c; NULL = not yet asked */
	/* bounds of the queue of the job at hand, see bounds.h */
	struct bound_use *bounds; /* by queue; NULL = not yet made */
	struct user_sums *user_sums; /* by queue, see user_limit.h; NULL = none is made */
	uint64_t closed; /* classes of nodes */
	uint32_t widest; /* tasks */
	struct name_id others_than; /* GPUs of all models but this one: */
	int64_t others_share;
	int64_t *
		freed; /* of what budgets are committed to, by those who begin to leave in this pass; by queue, NULL = not asked for */
	int64_t unpaid_micro; /* cost of the job tried last, when a budget keeps it back; else 0 */
	struct kept_use *kept_models; /* see kept.h; NULL = not yet made */
	bool keeps, keeps_known; /* some queue keeps GPUs of a model; that was asked */
	struct pledge_use *pledges; /* by queue, see pledge.h; NULL = none has any */
	uint64_t *home; /* ranks where the job `home_of` ran before, see pass_home */
	uint32_t home_of;
	struct aparts
		aparts; /* nodes kept from the job at hand because of other jobs, see apart.h */
	struct blocks blocks; /* what is kept from jobs for a time, see blocks.h */
	struct starts *anew; /* those that may be placed anew, see anew.h; NULL = none */
	struct stuck stuck[STUCK_MAX]; /* the first ones, in their order */
	uint32_t stuck_count;
	bool stuck_unsure; /* one is none because of what is kept for others */
	bool spares_wait; /* best-effort work waits for its turn until moves have been looked for */
	struct watch *watch; /* what explain wants to know of one job; NULL = nothing */
};

void pass_begin(struct pass *pass, const struct facts *facts, struct view *view, uint64_t budget,
		struct arena *arena);
/* So many decisions more are likely: their list need not grow again and again. */
void pass_expect(struct pass *pass, uint32_t count);
/* A new decision with time and actor; void after the next one. */
struct event *pass_emit(struct pass *pass, enum event_kind kind);
void pass_wake(struct pass *pass,
	       int64_t at_ms); /* the earliest wins; times not after now are passed over */
bool pass_is_spent(const struct pass *pass);
/* The shape, which pass_request is asked for next: what is known of it need not be found out. */
const struct shape *pass_shape(struct pass *pass, struct shape_id id);
struct place_request pass_request(struct pass *pass, const struct shape *shape, uint32_t tasks);

/* Ranks where the job has run before, when it goes on from a checkpoint; NULL = none. */
const uint64_t *pass_home(struct pass *pass, uint32_t job);

/* Tasks of a place that are where the job has run before, and where all its data sets are. */
struct nearness {
	uint32_t home, data;
};
struct nearness pass_near(struct pass *pass, uint32_t job, const struct shape *shape,
			  const struct placement *place);

/* A placement as an event has it, in the arena. */
struct place_lists {
	int64_t *nodes, *masks, *parts, *parts_mib; /* parts NULL = whole GPUs */
	int64_t *slices; /* NULL = none */
	uint32_t count, part_count, slice_count; /* of nodes and masks; of parts; of slices */
};
struct place_lists place_lists(const struct pass *pass, const struct placement *place);
/* All that an event says of a place: one way for each kind that has these fields. */
#define PLACE_WRITE(event, lists)                                                                  \
	do {                                                                                       \
		(event)->nodes = (lists)->nodes;                                                   \
		(event)->masks = (lists)->masks;                                                   \
		(event)->parts = (lists)->parts;                                                   \
		(event)->parts_mib = (lists)->parts_mib;                                           \
		(event)->slices = (lists)->slices;                                                 \
		(event)->nodes_count = (event)->masks_count = (lists)->count;                      \
		(event)->parts_count = (event)->parts_mib_count = (lists)->part_count;             \
		(event)->slices_count = (lists)->slice_count;                                      \
	} while (0)
/* GPU shares that it holds. */
int64_t placement_share(const struct placement *place, const struct shape *shape);

/* lifecycle.c: what must follow from what happened. */
void lifecycle_due(
	struct pass *pass); /* ready, failed, cancelled, ended, drained, run-time limit */
void lifecycle_warned(struct pass *pass); /* those that wind down: saved, or out of time */
void lifecycle_nodes(struct pass *pass); /* black holes */
/* When a job that is told to make room now has left, at the latest; of one that leaves already, when it will have. */
int64_t lifecycle_leaves_ms(const struct pass *pass, uint32_t job);
/* Tells a running job to make room for another: stopped at once, or warned. */
void lifecycle_evict(struct pass *pass, uint32_t job, uint32_t for_job);
/* Tells a running job to go on at the place that is promised to it, so that `for_job` fits (itself: so that free GPUs lie
 * together): it may save first. */
void lifecycle_move(struct pass *pass, uint32_t job, uint32_t for_job);
/* Tells ranks (rising) of a running job to leave; the others go on. */
/* Of tasks that somebody else made, those on nodes that are taken away leave, where enough others go on without them. */
bool ranks_leave_alone(struct pass *pass, const struct job *job, const struct attempt *attempt);
void lifecycle_shrink(struct pass *pass, uint32_t job, const int64_t *ranks, uint32_t count,
		      uint32_t for_job);

/* Between the request to end and the kill, for those whose work is safe or lost anyhow. */
int64_t short_grace_ms(const struct facts *facts, const struct job *job,
		       const struct attempt *attempt);
void attempt_stop(struct pass *pass, const struct job *job, enum stop_why why, int64_t grace_ms,
		  const char *text);
const char *failure_text(struct pass *pass, const struct attempt *attempt);

/* maintenance.c: nodes whose announced window opens or is over. */
void maintenance_due(struct pass *pass);
/* Why the attempt has to leave, when it is for no other job. */
const char *attempt_leave_text(struct pass *pass, const struct attempt *attempt);
enum stop_why attempt_leave_why(const struct pass *pass, const struct attempt *attempt);

/* resize.c: ranks that leave a running attempt, and those that come. */
bool resize_left(struct pass *pass, const struct job *job,
		 const struct attempt *attempt); /* it goes on without some: decided */
void resize_lacking(struct pass *pass); /* gangs below their least width: first claim on a place */
void resize_grow(struct pass *pass); /* into GPUs that nobody waits for */

/* promise.c: places promised to jobs whose victims are leaving. */
void promises_review(struct pass *pass); /* drops, spares, makes smaller */
void promises_place(struct pass *pass); /* starts those whose place is free */
/* As the plans stand now: has every promise but `except` still room in its queues' limits? */
bool promises_have_room(struct pass *pass, const struct promise_view *except);

/* evict.c: 0 = done: promised, victims told to leave; EVICT_NO, or the pass is cut. */
enum { EVICT_NO = 1 };
/* A critical job asks for victims, or it is known that it asks in vain: does it do so at once, uncounted? */
bool evict_is_urgent(struct pass *pass, bool critical);
enum evict_lack {
	LACKS_PLACE,
	LACKS_ROOM,
	LACKS_MONEY
}; /* a place, room in its queue's limit, money of its queue's budget */
int evict_for(struct pass *pass, uint32_t job, enum evict_lack lack);
/* evict_takes.c: running work that a claim may take, with the GPUs that it holds: it may be warned from `warn_ms` on (when it is as old as
 * min_runtime), and has left by `gone_ms`. */
struct takeable {
	uint32_t job;
	int64_t warn_ms, gone_ms;
};
/* The job waits, and fits in its queue's share with the claims before it. */
bool job_claims(const struct pass *pass, const struct job *job);
/* The same, and within its queue's guarantee. */
bool job_claims_guarantee(const struct pass *pass, const struct job *job);
/* By gone_ms, which is its expected end where that comes first. No more of a queue's work than what it holds above its share is in it. */
const struct takeable *claim_takes(struct pass *pass, const struct job *job, uint32_t *ret_count);
/* One after the other: may the claim take this holder's GPUs, with those that it was told it may take since claim_begin? */
struct claim_asked {
	struct pass *pass;
	const struct job *job;
	uint32_t *jobs; /* those that it may take */
	uint32_t count, room;
};
void claim_begin(struct claim_asked *asked, struct pass *pass, const struct job *job);
bool claim_may_take(struct claim_asked *asked, uint32_t holder, struct takeable *ret);
/* The queues stand as before. */
void claim_end(struct claim_asked *asked);
/* Places promised to borrowers whose GPUs the claim may take: given back in the space, or dropped by the pass. How many there are. */
uint32_t claim_promises(struct pass *pass, const struct job *job, bool drop);
/* Best-effort work that may be evicted now, of all queues, cheapest first. Made once per pass. */
const struct victim *evict_spares(struct pass *pass, uint32_t *ret_count);
/* Nobody who could make room for so many shares is left, for a job of the queue and rank: known from a search before. */
struct turn_wish {
	uint32_t work; /* class, and when it is due by that; 0 = no turns */
	int64_t due_ms;
};
bool evict_is_barren(const struct pass *pass, uint32_t queue, uint64_t rank, struct turn_wish turn,
		     int64_t need, int64_t least);
/* evict_turns.c: class of the work of a job that may take the place of equals; 0 = it may not. And when it is due by that class. */
uint32_t turn_class(const struct pass *pass, const struct job *job);
int64_t turn_due_ms(const struct pass *pass, const struct job *job, uint32_t class);
/* Among jobs of which no rule says who is first: by submission, then by their queues' names; in one queue by number. */
bool job_is_earlier(const struct facts *facts, uint32_t a, uint32_t b);
bool pass_job_leaves(const struct pass *pass, uint32_t job);
int64_t victim_cost(const struct facts *facts, const struct job *job,
		    const struct attempt *attempt);

/* A blocked claim within its guarantee, for which no place is reserved yet: places that are promised to borrowers are dropped, where it
 * fits with them in what it may take, and its place is reserved. */
bool reserve_takes_promises(struct pass *pass, uint32_t job);
/* reserve.c: reservations of the first blocked jobs. False: there is none for it, nor for another job of its shape. */
bool reserve_for(struct pass *pass, uint32_t job);
/* May more jobs have one? */
bool reserve_has_room(const struct pass *pass);
/* Keeps in the space what a job that may run until end_ms may not use, and nothing else; 0 = it can be stopped at once.
 * `declared`: end_ms is its limit, not what is expected. */
void reserve_layer(struct pass *pass, int64_t end_ms, bool declared);
/* The same for a job, in two steps: most jobs never come to the second. Whoever looks at the space for the job at hand calls it before. */
void reserve_want(struct pass *pass, const struct job *job, int64_t end_ms);
void reserve_keep(struct pass *pass);
/* The same, and what is reserved for claims within guarantees, whenever it ends: who is lent such a place takes it when it is free. */
void reserve_keep_from_eviction(struct pass *pass);
/* Of a claim: the place that is reserved for it serves from then on; INT64_MAX = it has none, or not that one any more. */
int64_t reserve_stays_ms(struct pass *pass, uint32_t job);
/* Is any reservation kept from such a job? */
bool reserve_is_in_way(const struct pass *pass);
/* As many shares are kept in the space now. */
bool reserve_keeps(const struct pass *pass, int64_t share);
/* Keeps in the space what was reserved before that turn, however long a job would run. */
void reserve_layer_before(struct pass *pass, uint32_t turn);
/* False: it does not fit though nothing reserved were kept in the space; by counts, whatever is kept now. */
bool reserve_may_fit(struct pass *pass, const struct place_request *request);
/* The counts that it needs are made: it costs a few steps. */
bool reserve_bare_is_known(const struct pass *pass);
/* The same, exactly. Without a copy of the space reservations are taken out of it, so it may be otherwise than it was. */
bool reserve_fits_bare(struct pass *pass, const struct place_request *request);
bool reserve_copy_is_known(const struct pass *pass);
/* The first such reservation stands in the way of a job that may run until end_ms: `have` when it starts, `need` end_ms. */
struct verdict reserve_why(const struct pass *pass);

/* ahead.c: when and where the job fits first, when all that runs ends as expected. False: not in the ends that were looked at. */
bool ahead_reserve(struct pass *pass, const struct job *job, const struct place_request *request,
		   struct reservation *r);
/* The same of a claim, in what it may take and what is free. */
bool ahead_takes(struct pass *pass, const struct job *job, const struct place_request *request,
		 struct reservation *r);
/* Ends which nobody declared are counted on for it: it is a claim, or has waited for long. */
bool ahead_guesses(const struct pass *pass, const struct job *job);
/* Work of other queues than this one, and those below it, runs or is promised a place. */
bool ahead_others_hold(const struct pass *pass, uint32_t queue);
/* What lies ahead is made once more when it is asked for next: the space is otherwise than it was. */
void ahead_forget(struct pass *pass);
/* Enough was looked at for one pass: jobs that came or went, and what a copy of the space costs in such steps. */
bool ahead_is_spent(const struct pass *pass);
uint32_t ahead_moves(const struct pass *pass);
/* Its place, node by node. */
void reservation_split(struct pass *pass, struct reservation *r);

/* Lists those that leave anyhow, before anything that is reserved is kept in the space. */
void evict_begin(struct pass *pass);

/* reserve_kept.c: those that are facts. */
void reserve_begin(struct pass *pass);
/* The job's reservation in the facts, when its place is still free for it in time. */
bool reserve_holds(struct pass *pass, uint32_t job, const struct place_request *request,
		   struct reservation *ret);
/* It has none, and was looked at since it waits: again at the next review; when something else than places may have kept it from its
 * turn then, after RESERVE_SEEK_MS. */
bool reserve_was_looked_for(struct pass *pass, uint32_t job);
/* That of a job which only places keep from its turn, and then nothing else need be asked of it. */
bool reserve_waits(struct pass *pass, uint32_t job);
/* It is the job's now: into the decisions, when the facts say another one. */
void reserve_note(struct pass *pass, const struct reservation *r);
/* Every job had its turn: those that nobody waits for any more are dropped. */
void reserve_end(struct pass *pass);
/* Every job had its turn: notes the review. */
void reserve_reviewed(struct pass *pass);
/* The pass is at its end: it is woken for the next review when anything happened since the last. */
void reserve_wake(struct pass *pass);

/* stuck.c: a job that nobody can make room for, standard or critical, is remembered when enough for it is free. */
void stuck_note(struct pass *pass, uint32_t job);
/* May moves of running jobs still be found for it? Then they are looked for before a job is evicted for its guarantee. `suits`: the classes
 * of nodes that do. */
bool stuck_awaits_look(const struct pass *pass, const struct job *job, uint64_t suits);
/* Is it time to look for moves? */
bool moves_are_due(const struct facts *f);
/* They are looked for in this pass, before best-effort work has its turn. */
bool pass_looks_first(const struct pass *pass);

/* order.c: who is next; starts what can start. */
void order_run(struct pass *pass);
/* One waiting job, as if nobody came before it. Who is blocked here is blocked in its turn as well: a pass only takes room.
 * False: blocked. */
bool order_try(struct pass *pass, uint32_t job);
/* start.c: its place, as wide as its queue (`room`, GPU shares) and the free GPUs allow. Tasks; 0 when not even the least width fits. */
uint32_t pass_place(struct pass *pass, uint32_t job, const struct shape *shape, int64_t room,
		    struct placement *ret);
/* The same, on other nodes than this one. */
uint32_t pass_place_beside(struct pass *pass, uint32_t job, const struct shape *shape, int64_t room,
			   struct node_id node, struct placement *ret);
/* There is a node where it failed last, which it avoids. */
bool pass_avoids(const struct pass *pass, const struct job *job);
/* Puts the start of a job into the decisions and the space. `promised`: the place is promised to it. */
void pass_start(struct pass *pass, uint32_t job, const struct placement *place, bool promised);
/* The start that is decision number `event` goes elsewhere, as wide as before. What is held in the space is the caller's. */
void pass_start_move(struct pass *pass, uint32_t event, const struct placement *from,
		     const struct placement *to);

/* All of it, but for wider jobs and moves: both come only when this decided nothing that changes who holds what. */
void pass_run(struct pass *pass);
/* rest.c: into the view, what it shows of the next one. */
void rest_note(struct pass *pass);
/* Those who could be wider. */
void pass_grow(struct pass *pass);
