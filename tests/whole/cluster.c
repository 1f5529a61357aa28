/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster: nodes, the tasks on them, and the engine that tells the daemon of them. What is so and what was told are kept
 * apart. A word on its way can be lost, late, or come twice; a daemon that dies loses all that are under way. As every
 * engine does, this one compares now and then, and tells the state of all that it was given again.
 *
 * How a job behaves follows from its name and the seed, so it is the same in each run in which it is submitted at all.
 */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { DEAD_NODE_MS = 30000 };

/* --- records ---------------------------------------------------------------------------------------------------- */

void cluster_plan(struct cluster *c, int64_t at_ms, enum thing_kind kind, const struct run *run,
		  uint32_t rank)
{
	if (at_ms < NEVER)
		thing_add(c, (struct thing){ .at_ms = at_ms,
					     .kind = kind,
					     .run = run->id,
					     .rank = rank,
					     .launch = run->ranks[rank].launch });
}

struct run *cluster_run_find(const struct cluster *c, uint64_t id)
{
	return id < c->run_room ? c->runs[id] : NULL;
}

void cluster_run_keep(struct cluster *c, struct run *run)
{
	if (run->id >= c->run_room) {
		size_t room = c->run_room ? c->run_room : 64;

		while (room <= run->id)
			room *= 2;
		c->runs = reallocarray(c->runs, room, sizeof(*c->runs));
		CHECK(c->runs);
		memset(c->runs + c->run_room, 0, (room - c->run_room) * sizeof(*c->runs));
		c->run_room = room;
	}
	c->runs[run->id] = run;
}

bool cluster_rank_ready(const struct cluster *c, uint64_t attempt, uint32_t rank)
{
	const struct run *run = cluster_run_find(c, attempt);

	return run && rank < run->rank_count && run->ranks[rank].state != RANK_PREPARING;
}

const char *cluster_job_name(const struct cluster *c, uint64_t attempt)
{
	const struct run *run = cluster_run_find(c, attempt);

	return run ? run->name : "?";
}

/* How the job behaves. */
struct work cluster_work_of(const struct whole *w, const char *name)
{
	struct sim_random random = { whole_hash(w, name, 0) };
	struct work work = { .runtime_ms = 60000 + (int64_t)below(&random, 40) * 60000,
			     .ready_ms = below(&random, 4000),
			     .start_ms = below(&random, 2000),
			     .stop_ms = below(&random, 8000),
			     .takes_ms = 1000 + below(&random, 30000),
			     .fails_after_ms = NEVER };

	if (one_in(&random, 10))
		work.fails_after_ms = below(&random, 900000);
	if (one_in(&random, 8))
		work.stop_ms = NEVER; /* does not hear SIGTERM */
	if (one_in(&random, 6))
		work.takes_ms *= 20; /* a slow file server */
	work.straggles = one_in(&random, 10);
	work.runs_dry = one_in(&random, 4);
	return work;
}

/* --- what happens to ranks --------------------------------------------------------------------------------------------------- */

static void places_free(struct cluster *c, const struct run *run, const struct rank *r)
{
	for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
		if (r->mask >> g & 1 && c->nodes[r->node].holder[g] == run->id)
			c->nodes[r->node].holder[g] = 0;
}

/* It is gone; whoever watches it notices after_ms later. */
void cluster_rank_ends(struct cluster *c, struct run *run, uint32_t rank, enum engine_cause cause,
		       int code, int64_t after_ms)
{
	struct rank *r = &run->ranks[rank];

	if (r->state == RANK_GONE)
		return;
	r->never_ran = r->state != RANK_RUNNING;
	r->ran = r->state == RANK_RUNNING;
	r->state = RANK_GONE;
	r->cause = cause;
	r->code = code;
	r->at_wall_ms = clock_wall_ms();
	r->told_from_ms = c->w->now_ms + after_ms;
	run->live--;
	places_free(c, run, r);
	if (!r->leaving)
		run->saving = NULL;
	cluster_plan(c, r->told_from_ms, THING_TELL, run, rank);
}

/* Some rank is gone that the others do not go on without. */
static bool is_short(const struct run *run)
{
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		if (run->ranks[rank].state == RANK_GONE && !run->ranks[rank].left &&
		    !run->ranks[rank].leaving)
			return true;
	return false;
}

bool cluster_run_finished(const struct run *run)
{
	uint32_t done = 0;

	for (uint32_t rank = 0; rank < run->rank_count; rank++) {
		const struct rank *r = &run->ranks[rank];
		bool well = r->state == RANK_GONE && r->cause == ENGINE_CAUSE_EXIT && r->code == 0;

		if (!well && !r->serves && !r->left && !(r->leaving && r->state == RANK_GONE))
			return false;
		done += well;
	}
	return done > 0;
}

static int64_t work_done(const struct run *run, int64_t now_ms)
{
	return run->base_ms + (run->running_ms ? now_ms - run->running_ms : 0);
}

void cluster_save_begin(struct cluster *c, struct run *run)
{
	struct save *save;

	if (run->saving || !run->running_ms || is_short(run) || run->worked || !run->checkpoints)
		return;
	save = calloc(1, sizeof(*save));
	CHECK(save);
	snprintf(save->path, sizeof(save->path), "%s/step-%lu", run->folder,
		 (unsigned long)++c->saves_made);
	save->work_ms = work_done(run, c->w->now_ms);
	save->done_ms = c->w->now_ms + run->work.takes_ms;
	save->bytes = 1000000 + below(&c->random, 1000000);
	snprintf(save->job, sizeof(save->job), "%s", run->name);
	save->next = c->saves;
	c->saves = save;
	run->saving = save;
	cluster_plan(c, save->done_ms, THING_SAVED, run, 0);
}

static void saved(struct cluster *c, struct run *run)
{
	struct save *save = run->saving;
	uint32_t rank = 0;

	if (!save || save->done_ms != c->w->now_ms)
		return; /* one that was begun later, after a rank was lost */
	run->saving = NULL;
	while (rank < run->rank_count && run->ranks[rank].state != RANK_RUNNING)
		rank++;
	if (rank == run->rank_count)
		return;
	save->complete = true;
	run->ranks[rank].saved = save;
	run->ranks[rank].reports++;
	cluster_tell_checkpoint(c, run, rank);
	if (run->every_ms && !run->stopping)
		cluster_plan(c, c->w->now_ms + run->every_ms, THING_SAVE, run, 0);
}

int64_t cluster_look(struct cluster *c, const char *path)
{
	for (struct save *save = c->saves; save; save = save->next)
		if (strcmp(save->path, path) == 0) {
			save->looked = true;
			return save->torn ? (save->torn == 1 ? -1 : save->bytes / 2) : save->bytes;
		}
	return -1;
}

/* All ranks run: from here on work is done. */
static void runs_now(struct cluster *c, struct run *run)
{
	int64_t left = run->work.runtime_ms - run->base_ms;

	run->running_ms = c->w->now_ms;
	if (run->work.straggles)
		left *= 2; /* one of them is slow, so all are */
	cluster_plan(c, c->w->now_ms + (left > 1000 ? left : 1000), THING_FINISH, run, 0);
	if (run->work.fails_after_ms < NEVER)
		cluster_plan(c, c->w->now_ms + run->work.fails_after_ms, THING_FAIL, run, 0);
	if (run->checkpoints && run->every_ms)
		cluster_plan(c, c->w->now_ms + run->every_ms, THING_SAVE, run, 0);
	if (run->warned)
		cluster_save_begin(c, run);
}

bool cluster_all_ready(const struct run *run)
{
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		if (run->ranks[rank].state == RANK_PREPARING)
			return false;
	return true;
}

void cluster_work_begins(struct cluster *c, struct run *run)
{
	bool all = run->begun && !run->stopping && !run->running_ms, any = false;

	for (uint32_t i = 0; i < run->rank_count; i++) {
		any = any || run->ranks[i].state == RANK_RUNNING;
		all = all && (run->ranks[i].state == RANK_RUNNING || run->ranks[i].left);
	}
	if (all && any)
		runs_now(c, run);
}

static void rank_starts(struct cluster *c, struct run *run, uint32_t rank)
{
	struct rank *r = &run->ranks[rank];

	if (r->state != RANK_READY || run->stopping)
		return;
	if (!run->begun && !cluster_all_ready(run))
		whole_problem(c->w, "rank %u of job %s runs before all ranks are ready", rank,
			      run->name);
	run->begun = true;
	r->state = RANK_RUNNING;
	r->at_wall_ms = clock_wall_ms();
	cluster_tell(c, run, rank);
	if (run->worked && !r->serves) /* it comes when there is nothing left to do */
		cluster_rank_ends(c, run, rank, ENGINE_CAUSE_EXIT, 0, 0);
	cluster_work_begins(c, run);
	for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
		if (r->mask >> g & 1 && cluster_host(c, r)->broken >> g & 1)
			cluster_plan(c, c->w->now_ms + 5000, THING_CRASH, run, rank);
}

static void rank_is_ready(struct cluster *c, struct run *run, uint32_t rank)
{
	struct rank *r = &run->ranks[rank];

	if (r->state != RANK_PREPARING || run->stopping)
		return;
	if (cluster_host(c, r)->dead) {
		cluster_rank_ends(c, run, rank, ENGINE_CAUSE_START, 0, DEAD_NODE_MS);
		return;
	}
	r->state = RANK_READY;
	r->at_wall_ms = clock_wall_ms();
	cluster_tell(c, run, rank);
	if (run->released)
		cluster_plan(c, c->w->now_ms + run->work.start_ms, THING_STARTED, run, rank);
}

static void finishes(struct cluster *c, struct run *run)
{
	run->worked = true;
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		if (run->ranks[rank].state == RANK_RUNNING && !run->ranks[rank].serves &&
		    !(run->ranks[rank].leaving && run->work.runs_dry))
			cluster_rank_ends(c, run, rank, ENGINE_CAUSE_EXIT, 0, 0);
}

static void compare(struct cluster *c)
{
	for (size_t id = 1; id < c->run_room; id++)
		if (c->runs[id] && !c->runs[id]->forgotten && c->engine_open)
			cluster_tell_all(c, c->runs[id]);
	cluster_tell_nodes(c);
	c->compare_ms = c->w->now_ms + CLUSTER_COMPARE_MS;
}

static void word_arrives(struct cluster *c, const struct thing *thing)
{
	if (thing->link == c->link && c->engine_open && !c->w->dead)
		c->report(c->context, thing->word);
	free(thing->word);
}

static bool is_of_run(enum thing_kind kind)
{
	return kind == THING_FINISH || kind == THING_SAVE || kind == THING_SAVED;
}

static void node_dies(struct cluster *c, uint32_t node, int64_t notice_ms)
{
	for (size_t id = 1; id < c->run_room; id++)
		for (uint32_t rank = 0; c->runs[id] && rank < c->runs[id]->rank_count; rank++)
			if (c->runs[id]->ranks[rank].node == node)
				cluster_rank_ends(c, c->runs[id], rank, ENGINE_CAUSE_LOST, 0,
						  notice_ms);
}

static void node_goes(struct cluster *c, uint32_t node, int64_t notice_ms)
{
	c->nodes[node].dead = true;
	c->nodes[node].removed = spot_is(c->w, node) && one_in(&c->random, 2);
	node_dies(c, node, notice_ms);
}

static void happen(struct cluster *c, const struct thing *thing)
{
	struct run *run = cluster_run_find(c, thing->run);
	struct rank *r = run && thing->rank < run->rank_count ? &run->ranks[thing->rank] : NULL;

	if (r && !is_of_run(thing->kind) && r->launch != thing->launch)
		return; /* of an earlier start of it */
	switch (thing->kind) {
	case THING_WORD: word_arrives(c, thing); return;
	case THING_NODE_BACK:
		c->nodes[thing->rank].dead = false;
		cluster_tell_nodes(c);
		return;
	case THING_NODE_GOES:
		if (!c->w->calm)
			node_goes(c, thing->rank, 5000);
		cluster_tell_nodes(c);
		return;
	case THING_READY: rank_is_ready(c, run, thing->rank); return;
	case THING_STARTED: rank_starts(c, run, thing->rank); return;
	case THING_FINISH: finishes(c, run); return;
	case THING_FAIL: cluster_rank_ends(c, run, thing->rank, ENGINE_CAUSE_EXIT, 3, 0); return;
	case THING_CRASH: cluster_rank_ends(c, run, thing->rank, ENGINE_CAUSE_SIGNAL, 0, 0); return;
	case THING_SAVE:
		if (!run->stopping)
			cluster_save_begin(c, run);
		return;
	case THING_SAVED: saved(c, run); return;
	case THING_TELL:
		if (!run->forgotten)
			cluster_tell(c, run, thing->rank);
		return;
	case THING_EXIT:
		if (r->exit_ms == thing->at_ms)
			cluster_rank_ends(c, run, thing->rank, ENGINE_CAUSE_STOPPED, 0, 0);
		return;
	}
	UNREACHABLE();
}

int64_t cluster_next_ms(const struct cluster *c)
{
	int64_t next = c->thing_count ? c->things[0].at_ms : NEVER;

	return c->engine_open && c->compare_ms < next ? c->compare_ms : next;
}

void cluster_run(struct cluster *c)
{
	while (c->thing_count && c->things[0].at_ms <= c->w->now_ms) {
		struct thing thing = thing_take(c);

		happen(c, &thing);
	}
	if (c->engine_open && c->compare_ms <= c->w->now_ms)
		compare(c);
}

void cluster_cut(struct cluster *c)
{
	c->link++;
}

/* --- begin and end ---------------------------------------------------------------------------------------------------------- */

struct cluster *cluster_create(struct whole *w)
{
	struct cluster *c = calloc(1, sizeof(*c));

	CHECK(c);
	c->w = w;
	c->random.state = w->seed ^ 0xc105;
	return c;
}

void cluster_destroy(struct cluster *c)
{
	while (c->thing_count)
		free(thing_take(c).word);
	for (size_t id = 1; id < c->run_room; id++) {
		if (c->runs[id])
			free(c->runs[id]->ranks);
		free(c->runs[id]);
	}
	while (c->saves) {
		struct save *save = c->saves;

		c->saves = save->next;
		free(save);
	}
	free(c->runs);
	free(c->things);
	free(c);
}

const struct nodes_found *cluster_nodes(void)
{
	static struct node_found nodes[NODES];
	static char names[NODES][8];
	static struct nodes_found found = {
		.nodes = nodes, .count = NODES, .levels = "", .remark = ""
	};

	for (uint32_t i = 0; i < NODES; i++) {
		const bool bare = i == NODES - 1, spot = spot_is(whole, i);

		snprintf(names[i], sizeof(names[i]), "n%u", i);
		nodes[i] = (struct node_found){ .name = names[i],
						.model = bare         ? ""
							 : i % 3 == 2 ? "A100-80GB"
								      : "H100-80GB",
						.driver = "550.54.14",
						.cuda = spot ? "" : "12.4",
						.gpu_count = bare    ? 0
							     : i % 2 ? 4
								     : 8,
						.gpu_memory_mib = bare ? 0 : 81920,
						.cpu_milli = 64000,
						.ram_mib = 524288,
						.simulated = !spot,
						.domains = "" };
	}
	return &found;
}

/* --- faults ---------------------------------------------------------------------------------------------------------------------- */

void cluster_power(struct cluster *c)
{
	for (uint32_t node = 0; node < NODES; node++)
		node_dies(c, node, 0);
}

/* One of the newest runs that live. */
static struct run *run_choose(struct cluster *c, struct sim_random *random)
{
	uint32_t skip = below(random, 6);
	struct run *found = NULL;

	for (size_t id = c->run_room; id-- > 1;) {
		if (!c->runs[id] || !c->runs[id]->live)
			continue;
		found = c->runs[id];
		if (!skip--)
			break;
	}
	return found;
}

static void tear(struct cluster *c, struct sim_random *random)
{
	uint32_t skip = below(random, 4);

	for (struct save *save = c->saves; save; save = save->next)
		if (save->complete && !save->torn && !skip--) {
			save->torn = 1 + (int)below(random, 2);
			return;
		}
}

/* A spot notice: it is said when the node will go, and it goes. */
static void notice(struct cluster *c, uint32_t node, struct sim_random *random)
{
	int64_t in_ms = 30000 + below(random, one_in(random, 3) ? 1200000 : 120000),
		for_ms = 300000 + below(random, 1800000);

	people_notice(c->w, node, in_ms, for_ms, one_in(random, 2));
	thing_add(c, (struct thing){ .at_ms = c->w->now_ms + in_ms + below(random, 5000),
				     .kind = THING_NODE_GOES,
				     .rank = node });
	thing_add(c, (struct thing){ .at_ms = c->w->now_ms + in_ms + for_ms,
				     .kind = THING_NODE_BACK,
				     .rank = node });
}

void cluster_fault(struct cluster *c, const struct item *item)
{
	struct sim_random random = { item->seed };
	uint32_t node = below(&random, NODES);
	struct run *run = run_choose(c, &random);

	if (item->kind == FAULT_NODE || item->kind == FAULT_NOTICE)
		node = spot_goes(c->w, node, item->seed);

	if (item->kind == FAULT_NODE && !c->nodes[node].dead) {
		node_goes(c, node, 5000 + below(&random, 120000));
		thing_add(c,
			  (struct thing){ .at_ms = c->w->now_ms + 60000 + below(&random, 1800000),
					  .kind = THING_NODE_BACK,
					  .rank = node });
	} else if (item->kind == FAULT_NOTICE && !c->nodes[node].dead) {
		notice(c, node, &random);
	} else if (item->kind == FAULT_AWAY) {
		c->nodes[node].away_ms = c->w->now_ms + 1000 + below(&random, 600000);
	} else if (item->kind == FAULT_GPU) {
		c->nodes[node].broken ^= 1u << below(&random, 4);
	} else if (item->kind == FAULT_RANK && run) {
		cluster_rank_ends(c, run, below(&random, run->rank_count),
				  one_in(&random, 2) ? ENGINE_CAUSE_LOST : ENGINE_CAUSE_SIGNAL, 0,
				  below(&random, 3000));
	} else if (item->kind == FAULT_LINK) {
		c->bad_link_ms = c->w->now_ms + 60000 + below(&random, 900000);
	} else if (item->kind == FAULT_TORN) {
		tear(c, &random);
	}
}

void cluster_calm(struct cluster *c)
{
	for (uint32_t node = 0; node < NODES; node++) {
		c->nodes[node].dead = false;
		c->nodes[node].away_ms = 0;
		c->nodes[node].broken = 0;
	}
	c->bad_link_ms = 0;
	for (size_t id = 1; id < c->run_room; id++)
		if (c->runs[id])
			c->runs[id]->work.fails_after_ms = NEVER;
	compare(c);
}
