/* SPDX-License-Identifier: Apache-2.0 */
/* What is planned in the cluster, earliest first, and what the engine tells the daemon: lost, late, in another order, twice. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "cluster.h"

enum { HEAP_FIRST = 256 };

/* --- what is planned ------------------------------------------------------------------------------------------------------ */

static bool thing_before(const struct thing *a, const struct thing *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

void thing_add(struct cluster *c, struct thing thing)
{
	size_t at = c->thing_count++;

	if (c->thing_count > c->thing_room) {
		c->thing_room = c->thing_room ? c->thing_room * 2 : HEAP_FIRST;
		c->things = reallocarray(c->things, c->thing_room, sizeof(*c->things));
		CHECK(c->things);
	}
	thing.order = c->order++;
	while (at && thing_before(&thing, &c->things[(at - 1) / 2])) {
		c->things[at] = c->things[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	c->things[at] = thing;
}

struct thing thing_take(struct cluster *c)
{
	struct thing first = c->things[0], last = c->things[--c->thing_count];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < c->thing_count) {
		if (child + 1 < c->thing_count &&
		    thing_before(&c->things[child + 1], &c->things[child]))
			child++;
		if (!thing_before(&c->things[child], &last))
			break;
		c->things[at] = c->things[child];
		at = child;
	}
	c->things[at] = last;
	return first;
}

/* --- words to the daemon -------------------------------------------------------------------------------------------------- */

struct host *cluster_host(struct cluster *c, const struct rank *rank)
{
	return &c->nodes[rank->node];
}

void cluster_word_send(struct cluster *c, const struct engine_fact *fact, int64_t at_ms)
{
	struct engine_fact *copy = malloc(sizeof(*copy));

	CHECK(copy);
	*copy = *fact;
	thing_add(c, (struct thing){
			     .at_ms = at_ms, .kind = THING_WORD, .link = c->link, .word = copy });
}

/* As the faults of the way have it. */
static void word(struct cluster *c, const struct run *run, uint32_t rank, struct engine_fact fact)
{
	int64_t now = c->w->now_ms, at = now;
	bool bad = c->bad_link_ms > now && !c->w->calm;

	fact.attempt = run->id;
	fact.rank = rank;
	fact.launch = run->ranks[rank].launch;
	if (c->adopting) {
		c->report(c->context, &fact);
		return;
	}
	if (c->w->calm) {
		cluster_word_send(c, &fact, now);
		return;
	}
	if (below(&c->random, 1000) < (bad ? 200u : 5u))
		return; /* lost; told again when it compares */
	if (below(&c->random, 1000) < (bad ? 500u : 50u))
		at += below(&c->random, 15000);
	if (cluster_host(c, &run->ranks[rank])->away_ms > at)
		at = cluster_host(c, &run->ranks[rank])->away_ms;
	cluster_word_send(c, &fact, at);
	if (below(&c->random, 1000) < (bad ? 300u : 30u))
		cluster_word_send(c, &fact, at + below(&c->random, 20000));
}

void cluster_tell_checkpoint(struct cluster *c, const struct run *run, uint32_t rank)
{
	const struct rank *r = &run->ranks[rank];
	const struct save *save = r->saved;
	struct engine_fact fact = { .kind = ENGINE_REPORT,
				    .time_ms = clock_wall_ms(),
				    .number = r->reports,
				    .checkpoint = true,
				    .step = save ? save->work_ms : 0,
				    .bytes = save ? save->bytes : 0 };

	if (!save || !r->reports)
		return;
	snprintf(fact.path, sizeof(fact.path), "%s", save->path);
	word(c, run, rank, fact);
}

/* Its state as it is. */
void cluster_tell(struct cluster *c, const struct run *run, uint32_t rank)
{
	const struct rank *r = &run->ranks[rank];
	struct engine_fact fact = { .kind = ENGINE_READY, .time_ms = r->at_wall_ms };

	if (r->state == RANK_PREPARING)
		return;
	if (r->state == RANK_RUNNING) {
		fact.kind = ENGINE_STARTED;
		fact.pid = 1000 + rank;
	} else if (r->state == RANK_GONE) {
		fact.kind = ENGINE_EXITED;
		fact.cause = r->cause;
		fact.code = r->code;
		fact.never_ran = r->never_ran;
		if (r->told_from_ms > c->w->now_ms)
			return; /* nobody knows yet */
	}
	word(c, run, rank, fact);
}

void cluster_tell_all(struct cluster *c, const struct run *run)
{
	for (uint32_t rank = 0; rank < run->rank_count; rank++) {
		if (run->ranks[rank].state == RANK_GONE && run->ranks[rank].ran) {
			struct engine_fact fact = { .kind = ENGINE_STARTED,
						    .time_ms = run->ranks[rank].at_wall_ms };
			word(c, run, rank, fact);
		}
		cluster_tell_checkpoint(c, run, rank);
		cluster_tell(c, run, rank);
	}
}
