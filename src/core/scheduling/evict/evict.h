/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A hunt: the search for those who make room for one blocked job. Shared by the files of eviction and by nobody else:
 *
 *	evict_candidates.c	who may have to go for this job
 *	evict_sort.c		in which order
 *	evict_turns.c		when running work makes room for its equals
 *	evict_equals.c		which of them may come into question
 *	evict_solve.c		which of them, and where
 *	evict.c			the entrance; carries the result out
 *
 * All memory is the pass's arena.
 */
#include "core/scheduling/pass.h"

enum { TURN_PART = 8 }; /* who ran before stays for a part of that at least */

struct solution {
	uint32_t *chosen; /* indices of candidates */
	uint32_t count;
	uint32_t
		jobs; /* of them: evicted; surplus ranks, promises and work that leaves anyhow are not */
	int64_t cost; /* of standard work */
	int64_t spare_cost; /* of best-effort work */
	int64_t gpus; /* for a job without GPUs: shares that they hold */
	int64_t share; /* of the work that is evicted, best-effort work included */
	int64_t bare_cost; /* of those without GPUs */
	struct placement place;
};

struct hunt {
	struct pass *pass;
	uint32_t job;
	const struct job *j;
	const struct shape *shape;
	uint64_t rank;
	uint32_t work; /* class of its work, for turns among equals; 0 = it takes none */
	int64_t due_ms; /* when it is due by that; 0 without */
	int64_t need; /* share of its least width, at most */
	int64_t least; /* the same, at least: of a wish for memory it depends on the GPU */
	struct beside beside; /* processors and memory of its least width */
	bool room_short;
	int64_t cost; /* where money is what lacks; else -1 */
	bool urgent; /* critical: searches at once, and is not counted */
	bool pledged; /* takes back what its queue is promised of a model */
	bool claims; /* standard work within its queue's guarantee, which gets its GPUs together from who borrows */
	int64_t patient_ms; /* then: when it has waited for min_runtime, and all who ran before are old enough to go */
	struct victim *fresh; /* promises and those that come; then follow the kept ones */
	uint32_t fresh_count, count;
	uint32_t *scratch; /* indices of candidates while a unit is solved */
	int64_t shares; /* that all candidates hold */
	int64_t own; /* of those that are given back at the moment: what its own queue held or was promised */
	struct beside own_beside; /* the same of processors and memory */
};

/* Equals of the job that may go for it. */
struct turns {
	struct hunt *hunt;
	struct victim *list;
	uint32_t count, room;
};

/* It asks for no GPU. */
static inline bool hunt_is_bare(const struct hunt *hunt)
{
	return !hunt->need;
}
/* Where it is known which searches of a queue are in vain: by kind of search, one row of all queues each. */
static inline uint32_t hunt_barren_at(const struct hunt *hunt)
{
	uint32_t row = hunt_is_bare(hunt) ? BARREN_BARE : hunt->claims ? BARREN_CLAIMS : BARREN_ALL;

	return row * hunt->pass->standings.count + hunt->j->queue.v;
}
/* The candidates that are kept for jobs of its kind. */
static inline struct candidates *hunt_kept(const struct hunt *hunt)
{
	return &hunt->pass->kept[hunt_is_bare(hunt)];
}

static inline const struct victim *candidate(const struct hunt *hunt, uint32_t i)
{
	const struct candidates *kept = hunt_kept(hunt);

	return i < hunt->fresh_count ? &hunt->fresh[i]
				     : &kept->list[kept->first + i - hunt->fresh_count];
}

/* A job is passed over in this round of searches: wakes the core when the first of the running jobs is old enough to go. */
void victims_passed_over(struct pass *pass);
/* A running equal, asked whether its turn is over. */
struct turn_asked {
	uint32_t job;
	uint32_t class; /* of the work that it needs still */
	int64_t ran_ms; /* turn_ran_ms */
	const struct victim *victim; /* NULL = all of it: made when it goes */
	bool *told; /* the core is woken when the first like it has more work: the others have it later. NULL = it is asked alone */
};
/* Is its turn over? *ret becomes the victim that it is. Else the core is woken when it will be. */
bool turn_may_end(struct hunt *hunt, struct turn_asked *asked, struct victim *ret);
/* The same of any running work of the same queue and rank. */
bool turn_may_end_of(struct hunt *hunt, const struct victim *v, struct victim *ret);
/* For how long it has run since it was released. */
int64_t turn_ran_ms(const struct pass *pass, const struct attempt *attempt);
/* The running job as a victim, whole. */
struct victim victim_of(const struct pass *pass, uint32_t id);
/* The list in order: in the pass's arena, or the same where it holds no two. */
struct victim *victims_sort(struct pass *pass, struct victim *list, uint32_t count);
/* Standard work younger than min_runtime is safe; *ret_ms becomes the time when the first of it no longer is. */
bool victim_is_young(const struct pass *pass, const struct job_view *jv, int64_t *ret_ms);
/* When the first standard job of the queue that is too young no longer is; 0 = none is. */
int64_t queue_mature_ms(const struct pass *pass, uint32_t queue);
/* Lists the running work of the hunt's queue and rank whose turn is over, but for jobs that can do without some ranks. The core is
 * woken when the next one's is. */
void turns_find(struct turns *turns);
/* Would the job have its turn before this equal, were both to wait? The list of candidates is kept for jobs of one class of work. */
bool turn_is_before(const struct hunt *hunt, const struct victim *v);
/* It holds no GPU. */
static inline bool victim_is_bare(const struct victim *v)
{
	return !v->share && !v->told;
}
/* evict_bare.c: processors and memory of the victim, or of some ranks of it (`ranks`, by rank), where they count (beside.h). */
struct beside victim_beside(const struct pass *pass, const struct victim *v);
struct beside victim_ranks_beside(const struct pass *pass, const struct victim *v,
				  const bool *ranks);
/* What loses `lost_ms` of its run, and holds no GPU: the cost by its part of processors and memory. */
int64_t bare_cost(const struct pass *pass, const struct shape *shape, const struct attempt *attempt,
		  int64_t lost_ms);
/* Work of another queue than the job's, which meet in `top`, where one of the two holds no GPUs: may it go, by processors and memory? */
bool bare_may_go(const struct hunt *hunt, const struct victim *v, uint32_t top);
/* Once gone, might the victim take the place back by them? */
bool bare_comes_back(const struct hunt *hunt, const struct victim *v, uint32_t top);
/* A job without GPUs that takes the place of work of its own queue does not lift that queue above its share of them. */
bool bare_own_is_enough(const struct hunt *hunt);
/* It begins to leave (or stays after all): the plans of its queue, its budget and its pledges follow. */
void victim_counts(struct pass *pass, const struct victim *v, bool leaves);

/* Lists all candidates. False when they can't be enough, whatever is chosen. */
bool hunt_candidates(struct hunt *hunt);
/* Is the candidate one for this job as the queues stand now (some candidates may be given back already)? */
bool candidate_may_go(const struct hunt *hunt, const struct victim *v);
/* Some GPU it leaves is promised to nobody (or it holds none: then its processors may matter). */
bool coming_has_surplus(const struct pass *pass, const struct victim *v);
/* Remembers one that leaves from now on: what it leaves over serves the next job. */
void coming_add(struct pass *pass, uint32_t id);
/* A promise is none any more: any of them may leave something over now. */
void coming_reopen(struct pass *pass);
/* One job more counts on it, or one less: the queues' plans follow when it is then spared, or no longer. One that does not
 * come is left alone. */
void coming_hold(struct pass *pass, uint32_t job, bool more);
/* The same for all victims of a promise. */
void promise_hold(struct pass *pass, const struct promise_view *p, bool more);
/* Room for the indices of all candidates. */
void hunt_scratch_make(struct hunt *hunt);
/* The job's queue is known to bring too little together for this need; and that it was found so. */
bool hunt_is_barren(const struct hunt *hunt);
void hunt_barren_note(struct hunt *hunt);

/* The cheapest sufficient and minimal set; false = there is none. The space is as before. */
bool hunt_solve(struct hunt *hunt, struct solution *ret);
/* Gives a promise's place back (or takes it again) in the space. */
void hunt_promise_move(struct hunt *hunt, const struct promise_view *p, bool give);
