/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkers. They believe only what has left the gate: each record that the stream gave is applied to facts of their own, and what
 * it says is held against what the cluster knows to be so and against books kept from the records alone. When a daemon comes
 * back, what it has read must be these facts, and more.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "cluster.h"
#include "core/core.h"
#include "sim/rebuild.h"

enum { ARENA_BYTES = 256 << 20, LOOK_EVERY = 60, SWAPS_MOST = 2, SLEW = 200 };

/* What was seen of an attempt. */
struct attempt_book {
	int64_t placed_ms; /* event time */
	int64_t released_boot_ms; /* 0 = not yet */
	uint32_t boots, ranks;
	int64_t parts; /* of GPUs, all ranks together; 0 = whole ones */
	struct rank_book {
		int64_t from_ms, gpus; /* 0: it left, and was charged */
	} *rank;
};

struct eviction {
	uint32_t victim, for_job;
	uint64_t change; /* what had changed by then */
};

struct promises {
	struct facts facts; /* what was shown */
	struct checks checks;
	struct engine_sim
		nothing; /* the checkers of sim ask it who holds a GPU: the cluster says so itself */
	struct arena arena, step;
	struct attempt_book *attempts;
	size_t attempt_room;
	struct eviction *evictions;
	size_t eviction_count, eviction_room;
	uint64_t changes; /* of anything that may turn who is entitled to what */
	int64_t charged_gpu_ms;
	uint32_t looks;
	bool catching_up; /* with what was written before a daemon died, and not shown */
};

struct promises *promises_create(struct whole *w)
{
	struct promises *p = calloc(1, sizeof(*p));

	CHECK(p);
	facts_init(&p->facts);
	checks_init(&p->checks, w->now_ms);
	engine_sim_init(&p->nothing, w->now_ms);
	arena_init(&p->arena, ARENA_BYTES);
	arena_init(&p->step, ARENA_BYTES);
	return p;
}

void promises_destroy(struct promises *p)
{
	facts_deinit(&p->facts);
	checks_deinit(&p->checks);
	engine_sim_deinit(&p->nothing);
	arena_deinit(&p->arena);
	arena_deinit(&p->step);
	for (size_t id = 0; id < p->attempt_room; id++)
		free(p->attempts[id].rank);
	free(p->attempts);
	free(p->evictions);
	free(p);
}

const struct facts *promises_facts(const struct whole *w)
{
	return &w->promises->facts;
}

static void checks_tell(struct whole *w)
{
	struct promises *p = w->promises;

	if (p->checks.problem_count)
		whole_problem(w, "%s", p->checks.problems[0]);
}

/* --- books ----------------------------------------------------------------------------------------------------------------- */

static struct attempt_book *book_of(struct promises *p, int64_t attempt)
{
	if ((size_t)attempt >= p->attempt_room) {
		size_t room = p->attempt_room ? p->attempt_room : 64;

		while (room <= (size_t)attempt)
			room *= 2;
		p->attempts = reallocarray(p->attempts, room, sizeof(*p->attempts));
		CHECK(p->attempts);
		memset(p->attempts + p->attempt_room, 0,
		       (room - p->attempt_room) * sizeof(*p->attempts));
		p->attempt_room = room;
	}
	return &p->attempts[attempt];
}

static void rank_placed(struct attempt_book *book, uint32_t rank, int64_t mask, int64_t now_ms)
{
	if (rank >= book->ranks) {
		book->rank = reallocarray(book->rank, rank + 1, sizeof(*book->rank));
		CHECK(book->rank);
		memset(book->rank + book->ranks, 0, (rank + 1 - book->ranks) * sizeof(*book->rank));
		book->ranks = rank + 1;
	}
	book->rank[rank] =
		(struct rank_book){ now_ms, __builtin_popcountll((unsigned long long)mask) };
}

static void book_placed(struct promises *p, const struct event *e)
{
	const struct event_attempt_placed *placed = &e->attempt_placed;
	struct attempt_book *book = book_of(p, placed->attempt);

	free(book->rank);
	*book = (struct attempt_book){ .placed_ms = e->time_ms };
	for (uint32_t i = 0; i < placed->nodes_count; i++) {
		rank_placed(book, i, placed->masks[i], e->time_ms);
		if (placed->parts_count)
			book->parts += placed->parts[i];
	}
}

static void book_grown(struct promises *p, const struct event *e)
{
	const struct event_attempt_grown *grown = &e->attempt_grown;

	for (uint32_t i = 0; i < grown->ranks_count; i++)
		rank_placed(book_of(p, grown->attempt), (uint32_t)grown->ranks[i], grown->masks[i],
			    e->time_ms);
}

static void check_charged(struct whole *w, int64_t attempt, int64_t charged, int64_t held)
{
	if (charged != held)
		whole_problem(w, "attempt %ld of job %s is charged %ld GPU-ms, it held %ld",
			      (long)attempt, cluster_job_name(w->cluster, (uint64_t)attempt),
			      (long)charged, (long)held);
	w->promises->charged_gpu_ms += charged;
}

/* What these ranks used; from now on they use nothing. */
static int64_t ranks_used(struct attempt_book *book, const int64_t *ranks, uint32_t count,
			  int64_t now_ms)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t rank = ranks ? (uint32_t)ranks[i] : i;

		if (rank >= book->ranks)
			continue;
		sum += book->rank[rank].gpus * (now_ms - book->rank[rank].from_ms);
		book->rank[rank].gpus = 0;
	}
	return sum;
}

/* Every GPU-second is charged once: as long as each rank held its GPUs, to the millisecond. */
static void check_charge(struct whole *w, const struct event *e)
{
	const struct event_attempt_ended *ended = &e->attempt_ended;
	struct attempt_book *book = book_of(w->promises, ended->attempt);
	int64_t held = book->parts ? share_gpu_ms(book->parts, e->time_ms - book->placed_ms)
				   : ranks_used(book, NULL, book->ranks, e->time_ms);

	check_charged(w, ended->attempt, ended->used_gpu_ms, held);
}

static void check_left(struct whole *w, const struct event *e)
{
	const struct event_ranks_left *left = &e->ranks_left;
	const struct facts *f = &w->promises->facts;
	const struct attempt *a = attempt_get(f, (struct attempt_id){ (uint32_t)left->attempt });
	const struct job *job = job_get(f, a->job);
	const struct shape *shape = shape_get(f, job->shape);

	if (!job->rejoins && !(job->resize == RESIZE_FREE && shape->tasks_max > shape->tasks_min))
		whole_problem(w, "job %s goes on without a rank, and did not say that it can",
			      facts_name(f, job->name));
	w->left += left->ranks_count;
	check_charged(w, left->attempt, left->used_gpu_ms,
		      ranks_used(book_of(w->promises, left->attempt), left->ranks,
				 left->ranks_count, e->time_ms));
}

/* --- who makes room for whom ---------------------------------------------------------------------------------------------- */

static bool changes_rights(const struct event *e)
{
	enum event_kind kind = e->kind;

	if (kind == EVENT_TASK_EXITED && e->task_exited.cause == CAUSE_STOPPED)
		return false; /* it made room */
	return kind == EVENT_JOB_SUBMITTED || kind == EVENT_JOB_ENDED || kind == EVENT_JOB_HELD ||
	       kind == EVENT_JOB_RELEASED || kind == EVENT_JOB_PRIORITY_SET ||
	       kind == EVENT_JOB_CHANGED || kind == EVENT_QUEUE_SET || kind == EVENT_NODE_STATE ||
	       kind == EVENT_GPU_STATE || kind == EVENT_NODE_SET || kind == EVENT_POLICY_SET ||
	       kind == EVENT_JOB_CANCEL_ASKED || kind == EVENT_TASK_EXITED ||
	       kind == EVENT_CHECKPOINT_VOID;
}

/* Two jobs of different queues that take each other's place with nothing else happening would do so for ever. */
static void note_eviction(struct whole *w, uint32_t victim, uint32_t for_job)
{
	struct promises *p = w->promises;

	uint32_t swaps = 0;
	bool apart = victim && for_job &&
		     job_get(&p->facts, (struct job_id){ victim })->queue.v !=
			     job_get(&p->facts, (struct job_id){ for_job })->queue.v;

	w->evictions++;
	for (size_t i = 0; i < p->eviction_count; i++) {
		const struct eviction *e = &p->evictions[i];

		swaps += e->change == p->changes &&
			 ((e->victim == for_job && e->for_job == victim) ||
			  (e->victim == victim && e->for_job == for_job));
	}
	if (apart && swaps >= SWAPS_MOST)
		whole_problem(
			w, "jobs %u and %u take each other's place, and nothing else has changed",
			victim, for_job);
	if (p->eviction_count == p->eviction_room) {
		p->eviction_room = p->eviction_room ? p->eviction_room * 2 : 64;
		p->evictions = reallocarray(p->evictions, p->eviction_room, sizeof(*p->evictions));
		CHECK(p->evictions);
	}
	p->evictions[p->eviction_count++] = (struct eviction){ victim, for_job, p->changes };
}

/* --- words of the engine ---------------------------------------------------------------------------------------------------- */

static void check_word(struct whole *w, const struct event *e, int64_t attempt, int64_t rank,
		       int64_t launch)
{
	struct promises *p = w->promises;
	const struct attempt *a;

	if (!attempt_is_there(&p->facts, attempt)) {
		whole_problem(w, "%s of attempt %ld, which there is not", event_info(e->kind)->name,
			      (long)attempt);
		return;
	}
	a = attempt_get(&p->facts, (struct attempt_id){ (uint32_t)attempt });
	if (a->state == ATTEMPT_OVER || job_get(&p->facts, a->job)->attempt.v != (uint32_t)attempt)
		whole_problem(w, "%s of attempt %ld is taken, which is over",
			      event_info(e->kind)->name, (long)attempt);
	else if (rank >= a->tasks)
		whole_problem(w, "%s of rank %ld of attempt %ld, which has %u",
			      event_info(e->kind)->name, (long)rank, (long)attempt, a->tasks);
	else if (task_get(&p->facts, a, (uint32_t)rank)->launch != launch)
		whole_problem(w, "%s of an earlier start of rank %ld of attempt %ld is taken",
			      event_info(e->kind)->name, (long)rank, (long)attempt);
}

/* A rank is given up only when it is gone. */
static void check_exit(struct whole *w, const struct event_task_exited *e)
{
	const struct run *run = cluster_run_find(w->cluster, (uint64_t)e->attempt);

	if (run && (uint64_t)e->rank < run->rank_count && run->ranks[e->rank].launch == e->launch &&
	    run->ranks[e->rank].state != RANK_GONE)
		whole_problem(w, "rank %ld of job %s is said to be over, and it lives",
			      (long)e->rank, run->name);
}

static void check_release(struct whole *w, int64_t attempt)
{
	struct promises *p = w->promises;
	const struct attempt *a = attempt_get(&p->facts, (struct attempt_id){ (uint32_t)attempt });
	struct attempt_book *book = book_of(p, attempt);

	for (uint32_t rank = 0; rank < a->tasks; rank++)
		if (!cluster_rank_ready(w->cluster, (uint64_t)attempt, rank))
			whole_problem(w, "job %s is released before rank %u is ready",
				      cluster_job_name(w->cluster, (uint64_t)attempt), rank);
	book->released_boot_ms = p->catching_up ? w->died_ms : w->now_ms;
	book->boots = w->boots;
}

/* No time limit ends early, whatever somebody does to the clock. */
static void check_limit(struct whole *w, const struct event_attempt_stopped *e)
{
	struct promises *p = w->promises;
	const struct attempt_book *book = book_of(p, e->attempt);
	const struct attempt *a =
		attempt_get(&p->facts, (struct attempt_id){ (uint32_t)e->attempt });
	const struct job *job = job_get(&p->facts, a->job);
	int64_t ran = w->now_ms - book->released_boot_ms + job->run_ms;

	if (e->why == STOP_LIMIT && book->boots == w->boots &&
	    ran + ran / SLEW + 60000 < job->limit_ms)
		whole_problem(w, "job %s is stopped at its limit of %ld ms after %ld ms",
			      facts_name(&p->facts, job->name), (long)job->limit_ms, (long)ran);
}

/* All ranks that the attempt has at its end have ended well, but for those that serve the others. */
static bool has_succeeded(const struct promises *p, const struct attempt *a, const struct run *run)
{
	uint32_t done = 0;

	for (uint32_t rank = 0; run && rank < a->tasks; rank++) {
		const struct rank *r = rank < run->rank_count ? &run->ranks[rank] : NULL;
		bool well =
			r && r->state == RANK_GONE && r->cause == ENGINE_CAUSE_EXIT && r->code == 0;

		if (task_get(&p->facts, a, rank)->state == TASK_LEFT ||
		    (task_get(&p->facts, a, rank)->leaving && r && r->state == RANK_GONE))
			continue;
		if (!well && !(r && r->serves))
			return false;
		done += well;
	}
	return done > 0;
}

/* How a job ended is how it ended. */
static void check_ended(struct whole *w, const struct event_job_ended *e)
{
	struct promises *p = w->promises;
	const struct job *job = job_get(&p->facts, (struct job_id){ (uint32_t)e->job });
	const struct run *run = cluster_run_find(w->cluster, job->last_attempt.v);
	const struct attempt *a =
		job->last_attempt.v ? attempt_get(&p->facts, job->last_attempt) : NULL;
	const char *name = facts_name(&p->facts, job->name);

	if (e->state == JOB_SUCCEEDED && !(a && has_succeeded(p, a, run)))
		whole_problem(w, "job %s is said to have succeeded, and it has not", name);
	if (e->state != JOB_SUCCEEDED && run && cluster_run_finished(run) && a && !a->stopped_ms)
		whole_problem(w, "job %s has succeeded, and is said to be %s", name,
			      job_state_name((uint8_t)e->state));
}

static void check_event(struct whole *w, const struct event *e)
{
	switch ((int)e->kind) {
	case EVENT_TASK_READY:
		check_word(w, e, e->task_ready.attempt, e->task_ready.rank, e->task_ready.launch);
		break;
	case EVENT_TASK_STARTED:
		check_word(w, e, e->task_started.attempt, e->task_started.rank,
			   e->task_started.launch);
		break;
	case EVENT_TASK_EXITED:
		check_word(w, e, e->task_exited.attempt, e->task_exited.rank,
			   e->task_exited.launch);
		check_exit(w, &e->task_exited);
		break;
	case EVENT_CHECKPOINT_SAVED:
		check_word(w, e, e->checkpoint_saved.attempt, e->checkpoint_saved.rank,
			   e->checkpoint_saved.launch);
		break;
	case EVENT_ATTEMPT_PLACED: book_placed(w->promises, e); break;
	case EVENT_ATTEMPT_GROWN: book_grown(w->promises, e); break;
	case EVENT_RANKS_LEFT: check_left(w, e); break;
	case EVENT_ATTEMPT_RELEASED: check_release(w, e->attempt_released.attempt); break;
	case EVENT_ATTEMPT_STOPPED: check_limit(w, &e->attempt_stopped); break;
	case EVENT_ATTEMPT_ENDED: check_charge(w, e); break;
	case EVENT_JOB_ENDED: check_ended(w, &e->job_ended); break;
	case EVENT_CAPACITY_CHOSEN: w->chosen++; break;
	}
}

/* Behind the checks of sim, which find out for whom it was. */
static void check_evicted(struct whole *w, const struct event *e)
{
	struct promises *p = w->promises;
	const struct checks_eviction *last;

	if (e->kind != EVENT_ATTEMPT_STOPPED || e->attempt_stopped.why != STOP_EVICTED ||
	    !p->checks.eviction_count)
		return;
	last = &p->checks.evictions[p->checks.eviction_count - 1];
	note_eviction(w, attempt_get(&p->facts, (struct attempt_id){ last->attempt })->job.v,
		      last->for_job);
}

/* --- records that leave --------------------------------------------------------------------------------------------------- */

void promises_record(struct whole *w, uint64_t seq, int64_t time_ms, uint32_t kind,
		     const char *text, size_t size)
{
	struct promises *p = w->promises;
	struct event e = { .seq = seq, .time_ms = time_ms };
	struct err err = { 0 };

	if (w->problem[0])
		return;
	if (seq != p->facts.seq + 1) {
		whole_problem(w, "record %lu leaves behind record %lu", (unsigned long)seq,
			      (unsigned long)p->facts.seq);
		return;
	}
	arena_reset(&p->arena);
	if (event_decode(kind, seq, time_ms, text, size, &p->arena, &e, &err) < 0) {
		whole_problem(w, "record %lu can't be read: %s", (unsigned long)seq, err.text);
		return;
	}
	whole_trace(w, "%lu %s %.*s", (unsigned long)seq, event_info(kind)->name, (int)size, text);
	w->events++;
	check_event(w, &e);
	checks_event(&p->checks, &p->facts, &p->nothing, &e);
	check_evicted(w, &e);
	p->changes += changes_rights(&e);
	apply(&p->facts, &e);
	listeners_record(w, seq, time_ms, kind, text, size);
	checks_tell(w);
}

/* --- a daemon that has read its state back -------------------------------------------------------------------------------- */

static int take_record(void *context, const struct record *record, const struct digest *hash)
{
	struct whole *w = context;

	(void)hash;
	promises_record(w, record->seq, record->time_ms, record->kind, record->text, record->size);
	return w->problem[0] != '\0';
}

static void note_damaged(void *context, uint64_t seq, const char *what)
{
	whole_problem(context, "record %lu is damaged: %s", (unsigned long)seq, what);
}

void promises_started(struct whole *w)
{
	struct promises *p = w->promises;
	const struct daemon *d = w->daemon;
	const struct journal_reader reader = { .context = w,
					       .take = take_record,
					       .damaged = note_damaged };
	struct err err = { 0 };

	p->catching_up = true;
	if (d->facts.seq < p->facts.seq)
		whole_problem(w, "record %lu was shown, and the daemon comes back at record %lu",
			      (unsigned long)p->facts.seq, (unsigned long)d->facts.seq);
	else if (d->facts.seq > p->facts.seq &&
		 journal_read(d->journal, p->facts.seq + 1, 0, false, &reader, &err) < 0)
		whole_problem(w, "the journal can't be read: %s", err.text);
	p->catching_up = false;
	w->died_ms = 0;
	if (!w->problem[0] && facts_hash(&p->facts) != facts_hash(&d->facts))
		whole_problem(w,
			      "the daemon comes back with other facts than it showed at record %lu",
			      (unsigned long)p->facts.seq);
	people_check(w, &d->facts);
}

/* --- after each step -------------------------------------------------------------------------------------------------------- */

/* The index is derived, and what was shown is what the core has. */
static void look_deep(struct whole *w)
{
	struct promises *p = w->promises;
	struct daemon *d = w->daemon;
	struct decisions decided = { 0 };
	struct err err = { 0 };

	facts_verify(&d->facts);
	view_verify(d->view, &d->facts);
	arena_reset(&p->step);
	decide_verify(&d->facts, d->view, &p->step);
	decide(&d->facts, d->view, UINT64_C(1) << 40, &p->step, &decided);
	if (rebuild_check(&d->facts, &decided, UINT64_C(1) << 40, &err) < 0)
		whole_problem(w, "%s", err.text);
	if (facts_hash(&p->facts) != facts_hash(&d->facts))
		whole_problem(w, "what was shown is not what the core has");
}

/* A node is left by the time that was announced for it, or when the grace of who was told too late for that is over. */
static bool is_to_be_empty(const struct node *node, int64_t now_ms)
{
	if (node_has_window(node) && node->window_from_ms <= now_ms && now_ms < node->window_to_ms)
		return true;
	return node->state == NODE_DRAINING && node->drain_ms && node->drain_ms <= now_ms;
}

static void check_left_nodes(struct whole *w)
{
	struct promises *p = w->promises;
	const struct facts *f = &p->facts;

	for (uint32_t i = 0; i < p->checks.live_count; i++) {
		const struct attempt *a = attempt_get(f, (struct attempt_id){ p->checks.live[i] });

		bool told = a->state == ATTEMPT_STOPPING ||
			    (a->warned_ms && f->now_ms < attempt_until_ms(f, a));

		for (uint32_t rank = 0; rank < a->tasks && !told; rank++) {
			const struct task *task = task_get(f, a, rank);

			if (task_holds(task) && task->state != TASK_EXITED && !task->leaving &&
			    is_to_be_empty(node_get(f, task->node), f->now_ms))
				whole_problem(
					w, "job %s runs on node %s, which it was to leave by now",
					facts_name(f, job_get(f, a->job)->name),
					facts_name(f, node_get(f, task->node)->name));
		}
	}
}

void promises_step(struct whole *w, bool at_rest)
{
	struct promises *p = w->promises;

	if (!at_rest || w->problem[0])
		return;
	if (p->facts.seq != w->daemon->facts.seq) {
		whole_problem(
			w,
			"the daemon is at rest at record %lu, and record %lu was the last to leave",
			(unsigned long)w->daemon->facts.seq, (unsigned long)p->facts.seq);
		return;
	}
	checks_settled(&p->checks, &p->facts);
	checks_tell(w);
	check_left_nodes(w);
	if (++p->looks % LOOK_EVERY == 0)
		look_deep(w);
}

static void check_queues(struct whole *w)
{
	struct promises *p = w->promises;
	int64_t used = 0;

	for (uint32_t id = 1; id <= p->facts.queues.count; id++) {
		const struct queue *queue = queue_get(&p->facts, (struct queue_id){ id });

		if (!queue->parent.v)
			used += queue->used_gpu_ms;
	}
	if (used != p->charged_gpu_ms)
		whole_problem(w, "queues are charged %ld GPU-ms, attempts used %ld", (long)used,
			      (long)p->charged_gpu_ms);
}

void promises_end(struct whole *w)
{
	struct promises *p = w->promises;

	if (w->problem[0])
		return;
	look_deep(w);
	checks_end(&p->checks, &p->facts);
	checks_tell(w);
	check_queues(w);
	w->learned = spot_learned(&p->facts);
	if (io_disk_holds(w->disk, people_secret(w), strlen(people_secret(w))))
		whole_problem(w, "a secret stands on the disk as it is");
}
