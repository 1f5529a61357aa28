/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How queues stand: what each holds, wants, is promised by configuration, and its share of what there is.
 *
 * Amounts are GPU shares (1/63000 GPU). Each figure of a queue covers its whole subtree. Best-effort work is in
 * `hold` and `plan` (it counts against limits) but in no share.
 *
 *	hold	what attempts hold now, leaving ones too: no limit may be passed even for an instant
 *	plan	what they will hold when leaving ones are gone and promised places are taken
 *	use	as plan, without best-effort: what is compared with shares
 *	share	guarantee and weighted part, as DESIGN 5.1 has it; README.md computes one by hand
 *
 * The standing is made once per decision and kept up to date as the decision goes on.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/scheduling/queues/calendar.h"
#include "core/scheduling/view/view.h"

struct standing {
	int64_t guarantee; /* of the default queue: what nobody else was promised */
	int64_t limit; /* INT64_MAX = none */
	int64_t weight;
	int64_t hold, plan, use;
	int64_t critical; /* part of use */
	int64_t claimed; /* what this pass has reserved for claims */
	int64_t demand,
		demand_critical; /* use, what waits, and what will wait when it has left; never more than the limit */
	int64_t share;
	/* The part of the jobs that sit in the queue itself; with no queues below it, all. */
	int64_t own_use, own_demand, own_demand_critical, own_share;
	struct amounts holds;
	/* Processors and memory, see beside.h. */
	struct beside beside, own_beside; /* as use: of its subtree, of the jobs that sit in it */
	struct beside wait_beside; /* what its own waiting jobs want */
	struct beside beside_demand, own_beside_demand;
	int64_t beside_part; /* the larger part of `beside`, as a share */
	int64_t beside_share, own_beside_share;
	int64_t dominant; /* its largest part of any resource but the GPUs together, as a share; dominant.h */
	int64_t turn_share; /* its share; of a queue that wants no GPUs its weighted part: for the order */
	int64_t past; /* GPU-ms used until now, as they still count */
	int64_t wait, wait_critical; /* what its own waiting jobs were counted to want */
	const struct calendar *calendar; /* its own; NULL = none */
	bool wants; /* standard or critical work waits, also without GPUs */
	int64_t booked; /* reserved in advance for it or queues below it, for now; only its own work and best-effort work run there */
	bool reserved; /* its guarantee is never lent */
};

struct standings {
	const struct facts *facts;
	const struct view *view;
	uint32_t count;
	struct standing *at; /* by queue id; [0] is the whole cluster */
	int64_t capacity; /* of GPUs that are ready */
	int64_t enough; /* demands beyond this are all alike and not counted on */
	int64_t *
		committed; /* of budgets, by queue; -1 = not yet made, NULL = none yet: see spend.h */
	uint32_t reserved_count;
	uint32_t *reserved; /* queues that lend nothing, none below another */
};

/* One taker of a parent's share: a child, or the parent's own jobs (queue 0 here). */
struct taker {
	uint32_t queue;
	int64_t demand, critical, guarantee, weight, share;
	int64_t kept; /* of its guarantee, not lent while idle */
};

/* Divides the amount: sets the share of each. */
void takers_divide(struct taker *takers, uint32_t count, int64_t amount);

void standings_make(struct standings *ret, const struct facts *facts, const struct view *view,
		    struct arena *arena);
/* The same of facts that differ little from those of `before`: where the waiting jobs of a queue wanted more than enough they still
 * do, and are not counted again. NULL = count all. */
void standings_make_like(struct standings *ret, const struct facts *facts, const struct view *view,
			 const struct standings *before, struct arena *arena);
/* As they were made: of the same facts and view, unchanged since. */
void standings_copy(struct standings *ret, const struct standings *from, struct arena *arena);

/* An attempt starts, a place is promised, an attempt begins to leave; -share takes it back. */
void standing_start(struct standings *s, uint32_t queue, uint8_t tier, int64_t share);
void standing_promise(struct standings *s, uint32_t queue, uint8_t tier, int64_t share);
void standing_leave(struct standings *s, uint32_t queue, uint8_t tier, int64_t share);

/* Share amounts that the queue may still start in this tier, now; and in plan (when those leaving are gone). When it
 * is less than `need`, ret_why says which bound it is. INT64_MAX = no bound. */
int64_t quota_room(const struct standings *s, uint32_t queue, uint8_t tier, bool in_plan,
		   int64_t need, struct verdict *ret_why);
/* The first time from `from_ms` on at which the job may start by its own window and by the calendars of its queue and of those above
 * it; -1 = never. */
int64_t standing_opens_ms(const struct standings *s, const struct job *job, int64_t from_ms);
/* It may start now, as far as these go. */
/* But for a pause of its own (life/pause.h). */
bool standing_would_be_open(const struct standings *s, const struct job *job);
bool standing_is_open(const struct standings *s, const struct job *job);
/* With `share` more, is the queue and all above it, up to below `top`, within their shares? Where the queue is `top` itself, the
 * other one is below it: then the jobs that sit in it count, against their own part. The same goes for standing_above. */
bool standing_within(const struct standings *s, uint32_t queue, uint32_t top, int64_t share);
/* Is the queue and all above it, up to below `top`, above its share? */
bool standing_above(const struct standings *s, uint32_t queue, uint32_t top);
/* Is the queue `top`, or below it? */
bool queue_is_in(const struct view *view, uint32_t queue, uint32_t top);
/* The narrowest queue that holds both; 0 = only the cluster does. */
uint32_t queue_meet(const struct view *view, uint32_t a, uint32_t b);
/* With `share` more of it, is the critical work of the queue and of all above it, up to below `top`, within their guarantees? */
bool standing_claims(const struct standings *s, uint32_t queue, uint32_t top, int64_t share);
/* The same of all its work but best-effort work; where the guarantees do not fit on what is ready, within what is left of them. */
bool standing_guaranteed(const struct standings *s, uint32_t queue, uint32_t top, int64_t share);
/* With `share` more, and with what is reserved for claims before it, is the queue and all above it within their shares? `guaranteed`:
 * and within their guarantees. (Shares are less where the guarantees of all do not fit on the GPUs that are ready.) */
bool standing_has(const struct standings *s, uint32_t queue, int64_t share, bool guaranteed);
/* A place is reserved for a claim of the queue: one behind it counts it as used. */
void standing_reserve(struct standings *s, uint32_t queue, int64_t share);
/* Does the queue, and do all above it up to below `top`, hold at least so much that is not guaranteed to them? Never of `top` itself. */
bool standing_borrows(const struct standings *s, uint32_t queue, uint32_t top, int64_t share);
/* The queue's guarantee as it counts; for the default queue what is left of all GPUs that exist. */
int64_t queue_guarantee(const struct facts *facts, struct queue_id queue);
/* What it uses as it counts in the order: its largest part of anything. */
static inline int64_t standing_counts(const struct standing *at)
{
	return at->dominant > at->use ? at->dominant : at->use;
}
/* Sign of: a's turn comes before (-1), with (0), after (1) b's: use over share, then past use over weight. */
int standing_compare(const struct standing *a, const struct standing *b);
