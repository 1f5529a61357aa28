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

enum { COMPARE_MS = 120000, DEAD_NODE_MS = 30000 };

/* --- records ---------------------------------------------------------------------------------------------------- */

static void plan(struct cluster *c, int64_t at_ms, enum thing_kind kind, const struct run *run,
		 uint32_t rank)
{
	if (at_ms < NEVER)
		thing_add(c, (struct thing){
				     .at_ms = at_ms, .kind = kind, .run = run->id, .rank = rank });
}

struct run *cluster_run_find(const struct cluster *c, uint64_t id)
{
	return id < c->run_room ? c->runs[id] : NULL;
}

static void run_keep(struct cluster *c, struct run *run)
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
static struct work work_of(const struct whole *w, const char *name)
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
static void rank_ends(struct cluster *c, struct run *run, uint32_t rank, enum engine_cause cause,
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
	run->saving = NULL;
	if (cause == ENGINE_CAUSE_EXIT && code == 0)
		run->done++;
	plan(c, r->told_from_ms, THING_TELL, run, rank);
}

static int64_t work_done(const struct run *run, int64_t now_ms)
{
	return run->base_ms + (run->running_ms ? now_ms - run->running_ms : 0);
}

static void save_begin(struct cluster *c, struct run *run)
{
	struct save *save;

	if (run->saving || !run->running_ms || run->live < run->rank_count || !run->checkpoints)
		return;
	save = calloc(1, sizeof(*save));
	CHECK(save);
	snprintf(save->path, sizeof(save->path), "%s/step-%lu", run->folder,
		 (unsigned long)++c->saves_made);
	save->work_ms = work_done(run, c->w->now_ms);
	save->bytes = 1000000 + below(&c->random, 1000000);
	snprintf(save->job, sizeof(save->job), "%s", run->name);
	save->next = c->saves;
	c->saves = save;
	run->saving = save;
	plan(c, c->w->now_ms + run->work.takes_ms, THING_SAVED, run, 0);
}

static void saved(struct cluster *c, struct run *run)
{
	struct save *save = run->saving;
	uint32_t rank = 0;

	if (!save)
		return;
	run->saving = NULL;
	save->complete = true;
	run->last_save = save;
	run->ranks[rank].reports++;
	cluster_tell_checkpoint(c, run, rank);
	if (run->every_ms && !run->stopping)
		plan(c, c->w->now_ms + run->every_ms, THING_SAVE, run, 0);
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
	plan(c, c->w->now_ms + (left > 1000 ? left : 1000), THING_FINISH, run, 0);
	if (run->work.fails_after_ms < NEVER)
		plan(c, c->w->now_ms + run->work.fails_after_ms, THING_FAIL, run, 0);
	if (run->checkpoints && run->every_ms)
		plan(c, c->w->now_ms + run->every_ms, THING_SAVE, run, 0);
	if (run->warned)
		save_begin(c, run);
}

static bool all_ready(const struct run *run)
{
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		if (run->ranks[rank].state == RANK_PREPARING)
			return false;
	return true;
}

static void rank_starts(struct cluster *c, struct run *run, uint32_t rank)
{
	struct rank *r = &run->ranks[rank];
	uint32_t running = 0;

	if (r->state != RANK_READY || run->stopping)
		return;
	if (!all_ready(run))
		whole_problem(c->w, "rank %u of job %s runs before all ranks are ready", rank,
			      run->name);
	r->state = RANK_RUNNING;
	r->at_wall_ms = clock_wall_ms();
	cluster_tell(c, run, rank);
	for (uint32_t i = 0; i < run->rank_count; i++)
		running += run->ranks[i].state == RANK_RUNNING;
	if (running == run->rank_count && !run->running_ms)
		runs_now(c, run);
	for (uint32_t g = 0; g < NODE_GPUS_MAX; g++)
		if (r->mask >> g & 1 && cluster_host(c, r)->broken >> g & 1)
			plan(c, c->w->now_ms + 5000, THING_CRASH, run, rank);
}

static void rank_is_ready(struct cluster *c, struct run *run, uint32_t rank)
{
	struct rank *r = &run->ranks[rank];

	if (r->state != RANK_PREPARING || run->stopping)
		return;
	if (cluster_host(c, r)->dead) {
		rank_ends(c, run, rank, ENGINE_CAUSE_START, 0, DEAD_NODE_MS);
		return;
	}
	r->state = RANK_READY;
	r->at_wall_ms = clock_wall_ms();
	cluster_tell(c, run, rank);
	if (run->released)
		plan(c, c->w->now_ms + run->work.start_ms, THING_STARTED, run, rank);
}

static void finishes(struct cluster *c, struct run *run)
{
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		if (run->ranks[rank].state == RANK_RUNNING)
			rank_ends(c, run, rank, ENGINE_CAUSE_EXIT, 0, 0);
	if (run->done == run->rank_count)
		run->finished = true;
}

static void compare(struct cluster *c)
{
	for (size_t id = 1; id < c->run_room; id++)
		if (c->runs[id] && !c->runs[id]->forgotten && c->engine_open)
			cluster_tell_all(c, c->runs[id]);
	c->compare_ms = c->w->now_ms + COMPARE_MS;
}

static void word_arrives(struct cluster *c, const struct thing *thing)
{
	if (thing->link == c->link && c->engine_open && !c->w->dead)
		c->report(c->context, thing->word);
	free(thing->word);
}

static void happen(struct cluster *c, const struct thing *thing)
{
	struct run *run = cluster_run_find(c, thing->run);
	struct rank *r = run && thing->rank < run->rank_count ? &run->ranks[thing->rank] : NULL;

	switch (thing->kind) {
	case THING_WORD: word_arrives(c, thing); return;
	case THING_NODE_BACK: c->nodes[thing->rank].dead = false; return;
	case THING_READY: rank_is_ready(c, run, thing->rank); return;
	case THING_STARTED: rank_starts(c, run, thing->rank); return;
	case THING_FINISH: finishes(c, run); return;
	case THING_FAIL: rank_ends(c, run, thing->rank, ENGINE_CAUSE_EXIT, 3, 0); return;
	case THING_CRASH: rank_ends(c, run, thing->rank, ENGINE_CAUSE_SIGNAL, 0, 0); return;
	case THING_SAVE:
		if (!run->stopping)
			save_begin(c, run);
		return;
	case THING_SAVED: saved(c, run); return;
	case THING_TELL:
		if (!run->forgotten)
			cluster_tell(c, run, thing->rank);
		return;
	case THING_EXIT:
		if (r->exit_ms == thing->at_ms)
			rank_ends(c, run, thing->rank, ENGINE_CAUSE_STOPPED, 0, 0);
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

/* --- the engine's commands ---------------------------------------------------------------------------------------------- */

/* A process that has died says nothing more; the tests' own engine is not asked either. */
static struct cluster *cluster_of(struct engine *engine)
{
	return (struct cluster *)engine;
}

static int engine_open(const struct engine_options *options, struct engine **ret, struct err *err)
{
	struct cluster *c = whole->cluster;

	(void)err;
	c->report = options->report;
	c->context = options->context;
	c->engine_open = true;
	c->compare_ms = c->w->now_ms + COMPARE_MS;
	*ret = (struct engine *)c;
	return 0;
}

static void engine_close(struct engine *engine)
{
	cluster_of(engine)->engine_open = false;
	cluster_cut(cluster_of(engine));
}

static void check_other_runs(struct cluster *c, const struct engine_start *start)
{
	for (size_t id = 1; id < c->run_room; id++) {
		const struct run *other = c->runs[id];

		if (!other || other->job != start->job || other->id == start->attempt)
			continue;
		if (other->live)
			whole_problem(c->w,
				      "attempt %lu of job %s is started while attempt %lu is live",
				      (unsigned long)start->attempt, start->job_name,
				      (unsigned long)other->id);
		if (other->finished)
			whole_problem(c->w, "job %s is started again after it has succeeded",
				      start->job_name);
		if (other->id > start->attempt)
			whole_problem(c->w, "an old attempt of job %s is started", start->job_name);
	}
}

static uint32_t node_index(const char *name)
{
	const struct nodes_found *found = cluster_nodes();
	uint32_t i = 0;

	while (i < found->count && strcmp(found->nodes[i].name, name) != 0)
		i++;
	CHECK(i < found->count);
	return i;
}

static void rank_place(struct cluster *c, struct run *run, const struct engine_gpu_place *place,
		       struct rank *r)
{
	struct host *node;

	*r = (struct rank){ .node = node_index(place->node),
			    .mask = place->gpu_share_micro ? 0 : (uint32_t)place->gpu_mask,
			    .launch = place->launch,
			    .exit_ms = NEVER };
	node = &c->nodes[r->node];
	for (uint32_t g = 0; g < NODE_GPUS_MAX; g++) {
		if (!(r->mask >> g & 1))
			continue;
		if (node->holder[g])
			whole_problem(c->w, "GPU %s/%u is given to job %s while job %s holds it",
				      place->node, g, run->name,
				      cluster_job_name(c, node->holder[g]));
		node->holder[g] = run->id;
	}
}

/* Where it goes on: a good checkpoint of its own. */
static void resume_from(struct cluster *c, struct run *run, const char *path)
{
	for (const struct save *save = c->saves; save; save = save->next)
		if (strcmp(save->path, path) == 0) {
			if (strcmp(save->job, run->name) != 0)
				whole_problem(c->w, "job %s resumes from a checkpoint of job %s",
					      run->name, save->job);
			if (!save->complete)
				whole_problem(
					c->w,
					"job %s resumes from a checkpoint that was never complete",
					run->name);
			run->base_ms = save->work_ms;
			return;
		}
	whole_problem(c->w, "job %s resumes from %s, which nobody made", run->name, path);
}

static int engine_start_run(struct engine *engine, const struct engine_start *start,
			    struct err *err)
{
	struct cluster *c = cluster_of(engine);
	struct run *run;

	(void)err;
	if (c->w->dead || cluster_run_find(c, start->attempt))
		return 0;
	check_other_runs(c, start);
	run = calloc(1, sizeof(*run));
	CHECK(run);
	*run = (struct run){ .id = start->attempt,
			     .job = start->job,
			     .rank_count = start->place_count,
			     .live = start->place_count,
			     .work = work_of(c->w, start->job_name),
			     .every_ms = start->checkpoint_every_ms,
			     .checkpoints = !start->checkpoint_offered };
	snprintf(run->name, sizeof(run->name), "%s", start->job_name);
	snprintf(run->folder, sizeof(run->folder), "%.200s", start->checkpoint_dir);
	run->ranks = calloc(run->rank_count, sizeof(*run->ranks));
	CHECK(run->ranks);
	run_keep(c, run);
	if (start->resume_path)
		resume_from(c, run, start->resume_path);
	for (uint32_t rank = 0; rank < run->rank_count; rank++) {
		rank_place(c, run, &start->places[rank], &run->ranks[rank]);
		plan(c, c->w->now_ms + run->work.ready_ms + below(&c->random, 1500), THING_READY,
		     run, rank);
	}
	c->starts++;
	return 0;
}

static int not_found(struct err *err, uint64_t attempt)
{
	return err_set(err, ERR_NOT_FOUND, "there is no attempt %lu", (unsigned long)attempt);
}

static int engine_release(struct engine *engine, uint64_t attempt, struct err *err)
{
	struct cluster *c = cluster_of(engine);
	struct run *run = cluster_run_find(c, attempt);

	if (c->w->dead)
		return 0;
	if (!run)
		return not_found(err, attempt);
	if (run->released || run->stopping)
		return 0;
	if (!all_ready(run))
		whole_problem(c->w, "job %s is released before all its ranks are ready", run->name);
	run->released = true;
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		plan(c, c->w->now_ms + run->work.start_ms, THING_STARTED, run, rank);
	return 0;
}

static int engine_warn(struct engine *engine, uint64_t attempt, int64_t grace_ms, struct err *err)
{
	struct cluster *c = cluster_of(engine);
	struct run *run = cluster_run_find(c, attempt);

	(void)grace_ms;
	if (c->w->dead)
		return 0;
	if (!run)
		return not_found(err, attempt);
	if (!run->warned)
		save_begin(c, run);
	run->warned = true;
	return 0;
}

/* Its own time, or the grace when it does not hear; one on a node that is away hears of it later. */
static int64_t exit_time(const struct cluster *c, const struct run *run, const struct rank *r,
			 int64_t grace_ms)
{
	int64_t takes = run->work.stop_ms < grace_ms ? run->work.stop_ms : grace_ms,
		from = c->nodes[r->node].away_ms > c->w->now_ms ? c->nodes[r->node].away_ms
								: c->w->now_ms;

	return from + (takes > 0 ? takes : 0);
}

static int engine_stop(struct engine *engine, uint64_t attempt, int64_t grace_ms, struct err *err)
{
	struct cluster *c = cluster_of(engine);
	struct run *run = cluster_run_find(c, attempt);

	if (c->w->dead)
		return 0;
	if (!run)
		return not_found(err, attempt);
	if (!run->stopping && !run->warned && run->work.takes_ms < grace_ms)
		save_begin(c, run);
	run->stopping = true;
	for (uint32_t rank = 0; rank < run->rank_count; rank++) {
		struct rank *r = &run->ranks[rank];
		int64_t at = exit_time(c, run, r, grace_ms);

		if (run->saving && at < c->w->now_ms + run->work.takes_ms &&
		    run->work.takes_ms < grace_ms)
			at = c->w->now_ms + run->work.takes_ms;
		if (r->state == RANK_GONE) {
			cluster_tell(c, run, rank);
		} else if (at < r->exit_ms) {
			r->exit_ms = at;
			plan(c, at, THING_EXIT, run, rank);
		}
	}
	return 0;
}

static int engine_resize(struct engine *engine, const struct engine_start *start, int64_t grace_ms,
			 struct err *err)
{
	(void)engine;
	(void)start;
	(void)grace_ms;
	(void)err;
	return 0;
}

static void engine_forget(struct engine *engine, uint64_t attempt)
{
	struct cluster *c = cluster_of(engine);
	struct run *run = cluster_run_find(c, attempt);

	if (!run || c->w->dead)
		return;
	if (run->live)
		whole_problem(
			c->w,
			"attempt %lu of job %s is over for the daemon, and %u of its ranks live",
			(unsigned long)attempt, run->name, run->live);
	run->forgotten = true;
}

static void tell_gone(struct cluster *c, uint64_t attempt, uint32_t tasks, const uint32_t *launches)
{
	for (uint32_t rank = 0; rank < tasks; rank++) {
		struct engine_fact fact = { .kind = ENGINE_GONE,
					    .attempt = attempt,
					    .rank = rank,
					    .time_ms = clock_wall_ms(),
					    .launch = launches ? launches[rank] : 0 };

		c->report(c->context, &fact);
	}
}

/* All that lives was known to somebody, or it should never have been started. */
static int engine_adopt(struct engine *engine, const uint64_t *attempts,
			const uint32_t *task_counts, const uint32_t *const *launches, size_t count,
			struct err *err)
{
	struct cluster *c = cluster_of(engine);

	(void)err;
	if (c->w->dead)
		return 0;
	for (size_t id = 1; id < c->run_room; id++) {
		struct run *run = c->runs[id];
		bool named = false;

		for (size_t i = 0; i < count; i++)
			named = named || attempts[i] == id;
		if (!run || named)
			continue;
		if (run->live)
			whole_problem(c->w,
				      "attempt %lu of job %s runs, and the daemon does not know it",
				      (unsigned long)id, run->name);
		run->forgotten = true;
	}
	c->adopting = true; /* all that is found is told before it returns */
	for (size_t i = 0; i < count; i++) {
		const struct run *run = cluster_run_find(c, attempts[i]);

		if (run)
			cluster_tell_all(c, run);
		else
			tell_gone(c, attempts[i], task_counts[i], launches[i]);
	}
	c->adopting = false;
	return 0;
}

const struct engine_ops cluster_engine = {
	.name = "cluster",
	.open = engine_open,
	.close = engine_close,
	.adopt = engine_adopt,
	.start = engine_start_run,
	.release = engine_release,
	.warn = engine_warn,
	.stop = engine_stop,
	.resize = engine_resize,
	.forget = engine_forget,
};

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
		snprintf(names[i], sizeof(names[i]), "n%u", i);
		nodes[i] = (struct node_found){ .name = names[i],
						.model = i % 3 == 2 ? "A100-80GB" : "H100-80GB",
						.driver = "550.54.14",
						.cuda = "12.4",
						.gpu_count = i % 2 ? 4 : 8,
						.gpu_memory_mib = 81920,
						.cpu_milli = 64000,
						.ram_mib = 524288,
						.simulated = true,
						.domains = "" };
	}
	return &found;
}

/* --- faults ---------------------------------------------------------------------------------------------------------------------- */

static void node_dies(struct cluster *c, uint32_t node, int64_t notice_ms)
{
	for (size_t id = 1; id < c->run_room; id++)
		for (uint32_t rank = 0; c->runs[id] && rank < c->runs[id]->rank_count; rank++)
			if (c->runs[id]->ranks[rank].node == node)
				rank_ends(c, c->runs[id], rank, ENGINE_CAUSE_LOST, 0, notice_ms);
}

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

void cluster_fault(struct cluster *c, const struct item *item)
{
	struct sim_random random = { item->seed };
	uint32_t node = below(&random, NODES);
	struct run *run = run_choose(c, &random);

	if (item->kind == FAULT_NODE && !c->nodes[node].dead) {
		c->nodes[node].dead = true;
		node_dies(c, node, 5000 + below(&random, 120000));
		thing_add(c,
			  (struct thing){ .at_ms = c->w->now_ms + 60000 + below(&random, 1800000),
					  .kind = THING_NODE_BACK,
					  .rank = node });
	} else if (item->kind == FAULT_AWAY) {
		c->nodes[node].away_ms = c->w->now_ms + 1000 + below(&random, 600000);
	} else if (item->kind == FAULT_GPU) {
		c->nodes[node].broken ^= 1u << below(&random, 4);
	} else if (item->kind == FAULT_RANK && run) {
		rank_ends(c, run, below(&random, run->rank_count),
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
