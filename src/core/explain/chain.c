/* SPDX-License-Identifier: Apache-2.0 */
/* Around the verdict: who is ahead, and the chain of what else a reader wants to know (queue, order, holders, nodes). */
#include <string.h>

#include "core/explain/inner.h"
#include "core/model/taken.h"
#include "core/scheduling/admit/admit.h"
#include "core/scheduling/life/capacity.h"
#include "core/scheduling/order/due.h"
#include "core/scheduling/order/terms.h"
#include "core/scheduling/queues/dominant.h"

enum { LINES_MAX = 20, HOLDERS_MAX = 3 };

/* --- who is ahead ------------------------------------------------------------------------------------------------- */

/* The list as it grows, with the sums of terms of those that are listed (0 where the policy has no weights), and when they are due. */
struct ahead {
	struct explanation *ret;
	int64_t score[ARRAY_SIZE(((struct explanation *)0)->ahead)];
	int64_t due_ms[ARRAY_SIZE(((struct explanation *)0)->ahead)];
	uint32_t from; /* those before it have a higher rank */
};

static bool ahead_is_behind(const struct ahead *a, uint32_t at, uint32_t job, int64_t score,
			    int64_t due_ms)
{
	if (a->score[at] != score)
		return a->score[at] < score;
	return a->due_ms[at] != due_ms ? a->due_ms[at] > due_ms : a->ret->ahead[at].v > job;
}

/* Keeps the list in the order of turns and at most as long as there is room. */
static void ahead_insert(struct ahead *a, uint32_t job, int64_t score, int64_t due_ms)
{
	struct explanation *ret = a->ret;
	uint32_t at = ret->ahead_listed, moved;

	while (at > a->from && ahead_is_behind(a, at - 1, job, score, due_ms))
		at--;
	if (at == ARRAY_SIZE(ret->ahead))
		return;
	if (ret->ahead_listed < ARRAY_SIZE(ret->ahead))
		ret->ahead_listed++;
	moved = ret->ahead_listed - at - 1;
	memmove(&ret->ahead[at + 1], &ret->ahead[at], moved * sizeof(ret->ahead[0]));
	memmove(&a->score[at + 1], &a->score[at], moved * sizeof(a->score[0]));
	memmove(&a->due_ms[at + 1], &a->due_ms[at], moved * sizeof(a->due_ms[0]));
	ret->ahead[at].v = job;
	a->score[at] = score;
	a->due_ms[at] = due_ms;
}

/* When each of a bucket is due, and the job that must be later. */
struct due_before {
	const struct facts *facts;
	uint32_t class, job;
	int64_t due_ms; /* of the job */
	bool all; /* of a higher rank: all are before it */
};

static int64_t due_of(const struct due_before *d, uint32_t job)
{
	return work_due_ms(d->facts, job_get(d->facts, (struct job_id){ job })->submitted_ms,
			   d->class);
}

static bool is_before(const void *context, uint32_t id)
{
	const struct due_before *d = context;
	int64_t due_ms = due_of(d, id);

	return d->all || (due_ms != d->due_ms ? due_ms < d->due_ms : id < d->job);
}

/* Of the job's own rank those who are due before it; of a higher rank all. */
static void bucket_ahead(const struct words *w, const struct bucket *b, bool same_rank,
			 int64_t due_ms, struct ahead *a)
{
	struct due_before d = { .facts = w->facts,
				.class = b->work_class,
				.job = w->job,
				.due_ms = due_ms,
				.all = !same_rank };
	struct sorted_walk walk;
	uint32_t taken = 0;

	for (bool any = sorted_begin(&w->view->pool, b->jobs, &walk);
	     any && is_before(&d, walk.id) && taken < ARRAY_SIZE(a->ret->ahead);
	     any = sorted_next(&w->view->pool, &walk), taken++)
		ahead_insert(a, walk.id, 0, due_of(&d, walk.id));
	a->ret->ahead_count += sorted_count(&w->view->pool, b->jobs, is_before, &d);
}

/* Of the job's own rank those whose terms come to more; of a higher rank all. */
static void bucket_ahead_by_terms(const struct words *w, const struct bucket *b, bool same_rank,
				  int64_t own_due_ms, const struct user_holds *holds,
				  struct ahead *a)
{
	struct due_before d = {
		.facts = w->facts, .class = b->work_class, .job = w->job, .due_ms = own_due_ms
	};
	struct sorted_walk walk;
	struct terms own, terms;
	uint32_t taken = 0;

	terms_of(w->facts, w->view, holds, w->j, &own);
	for (bool any = sorted_begin(&w->view->pool, b->jobs, &walk); any && taken < TERMS_JOBS_MAX;
	     any = sorted_next(&w->view->pool, &walk), taken++) {
		terms_of(w->facts, w->view, holds, job_get(w->facts, (struct job_id){ walk.id }),
			 &terms);
		if (same_rank &&
		    (terms.sum < own.sum || (terms.sum == own.sum && !is_before(&d, walk.id))))
			continue;
		ahead_insert(a, walk.id, terms.sum, due_of(&d, walk.id));
		a->ret->ahead_count++;
	}
}

/* As the order has it, also where it stands in no bucket. */
static int64_t own_due_ms(const struct words *w)
{
	return work_due_ms(w->facts, w->j->submitted_ms, job_work_class(w->facts, w->j, 0));
}

/* Tasks of the shape that the idle node has GPUs for; of tasks that are unlike, or want no whole GPUs, all of them. */
static uint32_t tasks_on_idle(const struct words *w, const struct shape *shape, uint32_t rank)
{
	const uint32_t node = space_at(&w->view->space, rank)->node;

	if (!space_node_suits(&w->view->space, rank, shape))
		return 0;
	if (shape->role_count || !shape->gpus || shape_is_part(shape))
		return shape->tasks_min;
	return node_get(w->facts, (struct node_id){ node })->gpu_count / shape->gpus;
}

/* Even when idle the nodes that suit its jobs have too few GPUs for one: they take no place before others. */
static bool bucket_is_impossible(const struct words *w, const struct bucket *b)
{
	const struct shape *shape = shape_get(w->facts, (struct shape_id){ b->shape });
	uint32_t tasks = 0;

	if (!space_knows(&w->view->space, shape))
		return false;
	for (uint32_t rank = 0; rank < w->view->space.node_count; rank++) {
		tasks += tasks_on_idle(w, shape, rank);
		if (tasks && tasks >= shape->tasks_min)
			return false;
	}
	return true;
}

void ahead_find(const struct words *w, struct explanation *ret)
{
	uint64_t rank = job_rank(w->j), group = UINT64_MAX;
	bool weighed = terms_count(&w->facts->policy);
	int64_t due_ms = own_due_ms(w);
	struct ahead a = { .ret = ret };
	struct user_holds holds = { 0 };
	struct line_walk walk;

	if (weighed)
		user_holds_make(w->facts, w->view, w->j->queue.v, w->arena, &holds);
	for (bool any = line_begin(&w->view->queues.at[w->j->queue.v].line, &walk); any;
	     any = line_next(&walk)) {
		const struct bucket *b = &w->view->buckets.at[walk.at->bucket];

		if (b->rank < rank)
			break;
		if (b->shape != w->j->shape.v && bucket_is_impossible(w, b))
			continue;
		if (b->rank != group)
			a.from = ret->ahead_listed;
		group = b->rank;
		if (weighed)
			bucket_ahead_by_terms(w, b, b->rank == rank, due_ms, &holds, &a);
		else
			bucket_ahead(w, b, b->rank == rank, due_ms, &a);
	}
	ret->position = ret->ahead_count + 1;
}

/* --- the chain ------------------------------------------------------------------------------------------------------- */

struct chain {
	struct explain_line *lines;
	uint32_t count;
};

static void chain_add(struct chain *chain, enum reason code, const char *text)
{
	if (chain->count < LINES_MAX)
		chain->lines[chain->count++] =
			(struct explain_line){ .code = (uint16_t)code, .text = text };
}

static void chain_say(struct chain *chain, enum explain_about about, const char *text)
{
	if (chain->count < LINES_MAX)
		chain->lines[chain->count++] =
			(struct explain_line){ .about = (uint8_t)about, .text = text };
}

/* A share covers what is wanted: with less than the guarantee wanted, the guarantee is what the queue may count on. */
static void queue_line(const struct words *w, struct chain *chain)
{
	const struct queue *queue = queue_get(w->facts, w->j->queue);
	const char *name = facts_name(w->facts, queue->name), *limit = "no limit";
	const struct standing *at = &w->before->at[w->j->queue.v];

	if (w->j->promise) { /* its share is as large as what it uses and is promised: of no interest */
		chain_say(
			chain, ABOUT_QUEUE,
			arena_printf(
				w->arena,
				"queue \"%s\" uses %s, counting what is promised to it and not what leaves (guarantee %s)",
				name, words_share(w, at->use),
				share_text(w->arena, at->guarantee)));
		return;
	}
	if (queue->limit_share >= 0)
		limit = arena_printf(w->arena, "limit %s",
				     share_text(w->arena, queue->limit_share));
	if (at->share > at->guarantee)
		chain_say(chain, ABOUT_QUEUE,
			  arena_printf(w->arena,
				       "queue \"%s\" uses %s of its share of %s (guarantee %s, %s)",
				       name, share_text(w->arena, at->use),
				       words_share(w, at->share),
				       share_text(w->arena, at->guarantee), limit));
	else if (at->guarantee)
		chain_say(chain, ABOUT_QUEUE,
			  arena_printf(w->arena, "queue \"%s\" uses %s of its guarantee of %s (%s)",
				       name, share_text(w->arena, at->use),
				       words_share(w, at->guarantee), limit));
	else
		chain_say(chain, ABOUT_QUEUE,
			  arena_printf(w->arena, "queue \"%s\" uses %s (no guarantee, %s)", name,
				       words_share(w, at->use), limit));
}

/* Where its part of processors, memory or one model is larger than its part of the GPUs, that is what counts for its turn. */
static void dominant_line(const struct words *w, struct chain *chain)
{
	const struct standing *at = &w->before->at[w->j->queue.v];

	if (at->dominant > at->use && w->before->capacity)
		chain_say(
			chain, ABOUT_QUEUE,
			arena_printf(
				w->arena,
				"in the order of queues it counts as %s: so large is its part of the processors, the "
				"memory or one model",
				words_share(w, at->dominant)));
}

/* Processors or memory lack: what of them its queue may take back. */
static void beside_line(const struct words *w, struct chain *chain, enum reason reason)
{
	const struct standing *at = &w->before->at[w->j->queue.v];
	int64_t whole, guarantee;

	if (reason != REASON_CPU && reason != REASON_RAM)
		return;
	whole = dominant_whole(w->before);
	guarantee = w->before->capacity > 0 ? at->guarantee : 0;
	chain_say(
		chain, ABOUT_QUEUE,
		arena_printf(
			w->arena,
			"of the processors or the memory queue \"%s\" uses %s, and may take "
			"back up to %s from work without GPUs%s",
			facts_name(w->facts, queue_get(w->facts, w->j->queue)->name),
			words_percent(w->arena, at->beside_part * 1000 / whole),
			words_percent(w->arena, at->beside_share * 1000 / whole),
			guarantee && !w->shape->gpus
				? arena_printf(w->arena, ", and up to %s from work that holds GPUs",
					       words_percent(w->arena, guarantee * 1000 / whole))
				: ""));
}

static void order_line(const struct words *w, struct chain *chain, const struct explanation *e)
{
	if (!e->position)
		return;
	if (!e->ahead_count) {
		chain_say(chain, ABOUT_ORDER, "it is the first that waits in its queue");
		return;
	}
	chain_add(chain, REASON_PRIORITY,
		  arena_printf(w->arena, "%u job%s ahead of it in its queue, the first is %s",
			       e->ahead_count, e->ahead_count == 1 ? " is" : "s are",
			       words_job(w, e->ahead[0].v)));
}

/* "order among equals: deadline 500 x 2 + age 200 x 1 = 1200" */
static void terms_line(const struct words *w, struct chain *chain)
{
	const char *text = "";
	struct user_holds holds;
	struct terms terms;

	if (!terms_count(&w->facts->policy))
		return;
	user_holds_make(w->facts, w->view, w->j->queue.v, w->arena, &holds);
	terms_of(w->facts, w->view, &holds, w->j, &terms);
	for (int term = 0; term < TERM_COUNT; term++) {
		int64_t weight = terms_weight(&w->facts->policy, (enum order_term)term);

		if (weight)
			text = arena_printf(w->arena, "%s%s%s %lld x %lld", text,
					    *text ? " + " : "", terms_name((enum order_term)term),
					    (long long)terms.value[term], (long long)weight);
	}
	chain_say(chain, ABOUT_ORDER,
		  arena_printf(w->arena, "order among jobs of its priority: %s = %lld", text,
			       (long long)terms.sum));
}

/* What is expected of it, and how much later others may come and go first all the same. */
static void due_line(const struct words *w, struct chain *chain, const struct explanation *e)
{
	int64_t late_ms = own_due_ms(w) - w->j->submitted_ms;
	const char *from = w->j->estimate_ms ? "by its estimate"
			   : w->j->limit_ms  ? "by its limit"
			   : w->j->run_ms    ? "as much again as it had"
					     : "nothing else is known";

	if (!w->facts->policy.patience || !e->ahead_count)
		return;
	chain_say(
		chain, ABOUT_ORDER,
		arena_printf(
			w->arena,
			"it is expected to need the time of one GPU for %s (%s): shorter work of its priority goes first that comes up to %s after it",
			words_duration(w, job_work_ms(w->facts, w->j, 0)), from,
			words_duration(w, late_ms)));
}

static void deadline_line(const struct words *w, struct chain *chain)
{
	int64_t slack_ms = job_slack_ms(w->facts, w->j);

	if (slack_ms == INT64_MAX)
		return;
	chain_say(
		chain, ABOUT_DEADLINE,
		slack_ms < 0
			? arena_printf(
				  w->arena,
				  "its deadline can't be met any more: started now it would be expected to end %s after it",
				  words_duration(w, -slack_ms))
			: arena_printf(
				  w->arena,
				  "it meets its deadline when it starts within %s, as long as it is expected to run",
				  words_duration(w, slack_ms)));
}

enum { NODES_NAMED_MAX = 3 };

/* "node "a", node "b" and 2 more": of the reserved place, each once. */
static const char *reserved_nodes(const struct words *w, const struct reservation_fact *r)
{
	uint32_t named[NODES_NAMED_MAX], count = 0, more = 0, last = 0;
	const char *text = "";

	for (uint32_t row = r->first; row;) {
		const struct promise *place = table_get(&w->facts->promises, row);

		/* Ranks go node by node, so one that comes again comes next. */
		if (place->node != last && count < NODES_NAMED_MAX)
			named[count++] = place->node;
		else if (place->node != last)
			more++;
		last = place->node;
		row = place->next;
	}
	for (uint32_t i = 0; i < count; i++)
		text = arena_printf(
			w->arena, "%s%s\"%s\"", text, i ? ", " : "",
			facts_name(w->facts,
				   node_get(w->facts, (struct node_id){ named[i] })->name));
	return more ? arena_printf(w->arena, "%s and %u more", text, more) : text;
}

/* What is kept for it. The time is left to the estimate of the start: an answer has one figure for it. */
static void reservation_line(const struct words *w, struct chain *chain)
{
	const struct reservation_fact *r = facts_reservation(w->facts, (struct job_id){ w->job });

	if (!r || !r->first)
		return;
	chain_say(chain, ABOUT_PLACE,
		  arena_printf(
			  w->arena,
			  "a place on %s is reserved for it, and no job behind it may delay that",
			  reserved_nodes(w, r)));
}

/* The bound of a guarantee. It counts on no end that somebody only expects. */
static void latest_line(const struct words *w, struct chain *chain)
{
	if (w->latest_ms)
		chain_say(chain, ABOUT_PLACE,
			  arena_printf(w->arena,
				       "it is within its queue's guarantee, so it starts at the "
				       "latest %s",
				       words_until(w, w->latest_ms)));
}

/* What the job holds of GPUs on nodes that suit. */
static int64_t share_that_suits(const struct words *w, uint32_t id)
{
	const struct job *job = job_get(w->facts, (struct job_id){ id });
	const struct attempt *attempt = attempt_get(w->facts, job->attempt);
	int64_t share = 0;

	for (uint32_t rank = 0; attempt->first_task && rank < attempt->tasks; rank++) {
		const struct task *task = task_get(w->facts, attempt, rank);

		if (task_holds(task) && words_node_suits(w, task->node.v))
			share += task->gpu_part ? task->gpu_part
						: (int64_t)bits_count(task->gpu_mask) * GPU_SHARE;
	}
	return share;
}

/* The jobs that hold most GPUs of suitable nodes, largest first, then by id. */
static void holder_lines(const struct words *w, struct chain *chain)
{
	uint32_t top[HOLDERS_MAX] = { 0 };
	int64_t held[HOLDERS_MAX] = { 0 };
	struct sorted_walk walk;

	for (uint32_t q = 1; q <= w->facts->queues.count; q++) {
		for (bool any = sorted_begin(&w->view->pool, w->view->queues.at[q].running, &walk);
		     any; any = sorted_next(&w->view->pool, &walk)) {
			int64_t share = job_view_get(w->view, walk.id)->share;
			uint32_t at = HOLDERS_MAX, job = walk.id;

			if (share > held[HOLDERS_MAX - 1]) /* it may be among them */
				share = share_that_suits(w, job);
			while (at > 0 && (share > held[at - 1] ||
					  (share == held[at - 1] && share && job < top[at - 1])))
				at--;
			for (uint32_t i = HOLDERS_MAX; i-- > at + 1;) {
				top[i] = top[i - 1];
				held[i] = held[i - 1];
			}
			if (at < HOLDERS_MAX) {
				top[at] = job;
				held[at] = share;
			}
		}
	}
	for (uint32_t i = 0; i < HOLDERS_MAX && held[i]; i++) {
		const struct job *job = job_get(w->facts, (struct job_id){ top[i] });

		chain_say(
			chain, ABOUT_HOLDER,
			arena_printf(w->arena, "%s of queue \"%s\" holds %s, and %s",
				     words_job(w, top[i]),
				     facts_name(w->facts, queue_get(w->facts, job->queue)->name),
				     words_share(w, held[i]),
				     words_end(w, top[i], job_view_get(w->view, top[i])->end_ms)));
	}
}

/* Nodes that can't be used now, when there are any. */
static void nodes_line(const struct words *w, struct chain *chain)
{
	uint32_t count = 0, first = 0;
	const struct node *node;
	const char *reason;

	for (uint32_t rank = 0; rank < w->view->space.node_count; rank++) {
		if (space_at(&w->view->space, rank)->ready)
			continue;
		first = count++ ? first : space_at(&w->view->space, rank)->node;
	}
	if (!count)
		return;
	node = node_get(w->facts, (struct node_id){ first });
	reason = facts_text(w->facts, node->reason);
	chain_say(chain, ABOUT_NODES,
		  arena_printf(w->arena, "%u node%s can't be used now%s \"%s\", which is %s%s%s",
			       count, count == 1 ? "" : "s", count == 1 ? ":" : ", such as",
			       facts_name(w->facts, node->name), node_state_name(node->state),
			       *reason ? ": " : "", reason));
}

struct taken {
	const char *by;
	uint32_t count, node, gpu; /* all of them; the first */
};

/* Of the node's GPUs those that something uses which Fairlead did not place; the first of all is kept. */
static uint32_t taken_mask(const struct words *w, uint32_t node, struct taken *ret)
{
	uint32_t mask = 0, count = node_get(w->facts, (struct node_id){ node })->gpu_count;

	for (uint32_t gpu = 0; gpu < count; gpu++) {
		const char *by = gpu_taken_by(w->facts, (struct node_id){ node }, gpu);

		if (!by)
			continue;
		mask |= UINT32_C(1) << gpu;
		if (!ret->count++)
			*ret = (struct taken){ .by = by, .count = 1, .node = node, .gpu = gpu };
	}
	return mask;
}

static void taken_line(const struct words *w, struct chain *chain, const struct taken *taken)
{
	if (taken->count)
		chain_say(
			chain, ABOUT_NODES,
			arena_printf(
				w->arena,
				"%s %s taken by what Fairlead did not place, and %s back when it is gone; "
				"%s GPU %u of node \"%s\": %s",
				words_gpus(w, taken->count), taken->count == 1 ? "is" : "are",
				taken->count == 1 ? "comes" : "come",
				taken->count == 1 ? "it is" : "the first is", taken->gpu,
				facts_name(
					w->facts,
					node_get(w->facts, (struct node_id){ taken->node })->name),
				taken->by));
}

/* GPUs of usable nodes that are set aside: they look idle, and no job gets them. */
static void aside_line(const struct words *w, struct chain *chain)
{
	struct taken taken = { 0 };
	uint32_t count = 0, first = 0;

	for (uint32_t rank = 0; rank < w->view->space.node_count; rank++) {
		const struct place_node *at = space_at(&w->view->space, rank);
		uint32_t mask = node_get(w->facts, (struct node_id){ at->node })->set_aside_mask;

		if (!at->ready || !mask)
			continue;
		mask &= ~taken_mask(w, at->node, &taken);
		if (!mask)
			continue;
		first = count ? first : at->node;
		count += (uint32_t)__builtin_popcount(mask);
	}
	taken_line(w, chain, &taken);
	if (count)
		chain_say(
			chain, ABOUT_NODES,
			arena_printf(
				w->arena,
				"%s %s set aside, the first on node \"%s\"; `fairlead gpus` says why, and "
				"`fairlead gpus back NODE/INDEX` takes one back into use",
				words_gpus(w, count), count == 1 ? "is" : "are",
				facts_name(w->facts,
					   node_get(w->facts, (struct node_id){ first })->name)));
}

/* Masks of roles are in the way of each of them alone. */
static void role_shut_out(const struct words *w, uint32_t role, struct chain *chain)
{
	struct shape room;
	const struct words own = words_of_role(w, role, &room);
	struct verdict v;
	const uint32_t gpus = room.gpus && w->shape->role_mask[role].v
				      ? place_shut_out(&w->view->space, &room, TRAIT_MASK, &v)
				      : 0;

	if (gpus)
		chain_add(chain, (enum reason)v.code,
			  arena_printf(w->arena, "%s %s free on nodes that %s can't use: it %s",
				       words_gpus(w, gpus), gpus == 1 ? "is" : "are",
				       words_role(w, role), words_shut_out(&own, &v)));
}

/* Free GPUs on nodes that do not suit the job, by what is in the way. */
static void shut_out_lines(const struct words *w, struct chain *chain)
{
	for (uint32_t role = 0; role < w->shape->role_count; role++)
		role_shut_out(w, role, chain);
	for (enum trait trait = TRAIT_MODEL; trait < TRAIT_END; trait++) {
		struct verdict v;
		uint32_t gpus = place_shut_out(&w->view->space, w->shape, trait, &v);

		if (gpus)
			chain_add(chain, (enum reason)v.code,
				  arena_printf(w->arena, "%s %s free on nodes it can't use: it %s",
					       words_gpus(w, gpus), gpus == 1 ? "is" : "are",
					       words_shut_out(w, &v)));
	}
}

bool reason_is_of_place(enum reason reason)
{
	return reason == REASON_CAPACITY || reason == REASON_TOPOLOGY ||
	       reason == REASON_FRAGMENTATION || reason == REASON_CPU || reason == REASON_RAM ||
	       reason == REASON_SHARING || reason == REASON_RESERVATION ||
	       reason == REASON_PRIORITY || reason == REASON_MAINTENANCE ||
	       reason == REASON_RESERVED || reason == REASON_APART;
}

/* It waits for spot nodes although others may be free. */
static void capacity_line(const struct words *w, struct chain *chain)
{
	int64_t until_ms = capacity_waits_until_ms(w->facts, w->j);

	if (until_ms)
		chain_add(chain, REASON_SPOT,
			  arena_printf(
				  w->arena,
				  "it waits for spot nodes, which cost less; it goes on demand %s "
				  "at the latest, so that its deadline is met",
				  words_until(w, until_ms)));
}

const char *explain_line_code(const struct explain_line *line)
{
	static const char *const names[] = {
		[ABOUT_REASON] = "none",       [ABOUT_QUEUE] = "queue", [ABOUT_ORDER] = "order",
		[ABOUT_DEADLINE] = "deadline", [ABOUT_PLACE] = "place", [ABOUT_HOLDER] = "holder",
		[ABOUT_NODES] = "nodes",
	};

	return line->code ? reason_name((enum reason)line->code) : names[line->about];
}

void chain_make(const struct words *w, struct explanation *ret)
{
	struct chain chain = { .lines = arena_new_array(w->arena, struct explain_line, LINES_MAX) };

	chain_add(&chain, ret->reason, ret->summary);
	queue_line(w, &chain);
	dominant_line(w, &chain);
	beside_line(w, &chain, (enum reason)ret->reason);
	order_line(w, &chain, ret);
	due_line(w, &chain, ret);
	terms_line(w, &chain);
	deadline_line(w, &chain);
	capacity_line(w, &chain);
	if (reason_is_of_place(ret->reason) && !w->never) {
		reservation_line(w, &chain);
		latest_line(w, &chain);
		shut_out_lines(w, &chain);
		holder_lines(w, &chain);
		nodes_line(w, &chain);
		aside_line(w, &chain);
	} else if (ret->reason == REASON_IMPOSSIBLE) {
		nodes_line(w, &chain); /* those whose GPUs are not known or not counted are such */
	}
	ret->lines = chain.lines;
	ret->line_count = chain.count;
}
