/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's commands: what the daemon wants of the cluster, and what must not be wanted. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cluster.h"

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
	c->node = options->node;
	c->context = options->context;
	c->engine_open = true;
	c->compare_ms = c->w->now_ms + CLUSTER_COMPARE_MS;
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
		if (cluster_run_finished(other))
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

/* Its place is begun to be made. */
static void rank_place(struct cluster *c, struct run *run, const struct engine_start *start,
		       uint32_t rank)
{
	const struct engine_gpu_place *place = &start->places[rank];
	const struct engine_role *role = engine_role(start, rank);
	struct rank *r = &run->ranks[rank];
	struct host *node;

	*r = (struct rank){ .node = node_index(place->node),
			    .mask = place->gpu_share_micro ? 0 : (uint32_t)place->gpu_mask,
			    .launch = place->launch,
			    .serves = role && strcmp(role->name, "server") == 0,
			    .exit_ms = NEVER };
	run->live++;
	cluster_plan(c, c->w->now_ms + run->work.ready_ms + below(&c->random, 1500), THING_READY,
		     run, rank);
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
			     .work = cluster_work_of(c->w, start->job_name),
			     .every_ms = start->checkpoint_every_ms,
			     .checkpoints = !start->checkpoint_offered };
	snprintf(run->name, sizeof(run->name), "%s", start->job_name);
	snprintf(run->folder, sizeof(run->folder), "%.200s", start->checkpoint_dir);
	run->ranks = calloc(run->rank_count, sizeof(*run->ranks));
	CHECK(run->ranks);
	cluster_run_keep(c, run);
	if (start->resume_path)
		resume_from(c, run, start->resume_path);
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		rank_place(c, run, start, rank);
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
	if (!cluster_all_ready(run))
		whole_problem(c->w, "job %s is released before all its ranks are ready", run->name);
	run->released = true;
	for (uint32_t rank = 0; rank < run->rank_count; rank++)
		cluster_plan(c, c->w->now_ms + run->work.start_ms, THING_STARTED, run, rank);
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
		cluster_save_begin(c, run);
	run->warned = true;
	/* Of those that save nothing every other one has nobody who listens. */
	if (!run->checkpoints && run->id % 2)
		cluster_word_send(c,
				  &(struct engine_fact){ .kind = ENGINE_DEAF,
							 .attempt = attempt,
							 .time_ms = clock_wall_ms() },
				  c->w->now_ms);
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
		cluster_save_begin(c, run);
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
			cluster_plan(c, at, THING_EXIT, run, rank);
		}
	}
	return 0;
}

/* One that was to come, and never will: its attempt is being stopped. */
static void rank_never(struct cluster *c, struct run *run, const struct engine_start *start,
		       uint32_t rank)
{
	const struct engine_gpu_place *place = &start->places[rank];

	run->ranks[rank] = (struct rank){ .state = RANK_GONE,
					  .node = node_index(place->node),
					  .launch = place->launch,
					  .cause = ENGINE_CAUSE_STOPPED,
					  .never_ran = true,
					  .at_wall_ms = clock_wall_ms(),
					  .exit_ms = NEVER };
	cluster_tell(c, run, rank);
}

static void rank_resize(struct cluster *c, struct run *run, const struct engine_start *start,
			uint32_t rank, int64_t grace_ms)
{
	const struct engine_gpu_place *place = &start->places[rank];
	struct rank *r = &run->ranks[rank];

	if (place->launch < r->launch)
		return; /* said before, and overtaken */
	if (place->launch > r->launch && r->state != RANK_GONE)
		whole_problem(c->w, "rank %u of job %s is started anew while it lives", rank,
			      run->name);
	if (place->comes && (place->launch > r->launch || r->unborn)) {
		if (run->stopping || start->stopping)
			rank_never(c, run, start, rank);
		else
			rank_place(c, run, start, rank);
		return;
	}
	if (place->left && r->state != RANK_GONE)
		whole_problem(c->w, "job %s goes on without rank %u, which lives", run->name, rank);
	r->left = place->left && !start->lacks;
	if (!place->leaves || r->leaving || r->state == RANK_GONE || run->stopping)
		return;
	r->leaving = true;
	r->exit_ms = exit_time(c, run, r, grace_ms);
	cluster_plan(c, r->exit_ms, THING_EXIT, run, rank);
	if (run->work.runs_dry && run->running_ms)
		cluster_plan(c, c->w->now_ms + (r->exit_ms - c->w->now_ms) / 2, THING_FINISH, run,
			     rank);
}

static void run_widen(struct run *run, uint32_t count)
{
	run->ranks = reallocarray(run->ranks, count, sizeof(*run->ranks));
	CHECK(run->ranks);
	for (uint32_t rank = run->rank_count; rank < count; rank++)
		run->ranks[rank] = (struct rank){ .state = RANK_GONE,
						  .cause = ENGINE_CAUSE_STOPPED,
						  .never_ran = true,
						  .unborn = true,
						  .left = true,
						  .told_from_ms = NEVER,
						  .exit_ms = NEVER };
	run->rank_count = count;
}

static int engine_resize(struct engine *engine, const struct engine_start *start, int64_t grace_ms,
			 struct err *err)
{
	struct cluster *c = cluster_of(engine);
	struct run *run = cluster_run_find(c, start->attempt);

	if (c->w->dead)
		return 0;
	if (!run)
		return not_found(err, start->attempt);
	if (start->place_count > run->rank_count)
		run_widen(run, start->place_count);
	for (uint32_t rank = 0; rank < run->rank_count && rank < start->place_count; rank++)
		rank_resize(c, run, start, rank, grace_ms);
	cluster_work_begins(c, run);
	c->resizes++;
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

/* There is no trace of these starts of its ranks. */
static void tell_gone(struct cluster *c, uint64_t attempt, const struct run *run, uint32_t tasks,
		      const uint32_t *launches)
{
	for (uint32_t rank = 0; rank < tasks; rank++) {
		const struct rank *r = run && rank < run->rank_count ? &run->ranks[rank] : NULL;
		uint32_t launch = launches ? launches[rank] : 0;

		if (r && !r->unborn && r->launch > launch)
			whole_problem(
				c->w,
				"rank %u of job %s was started anew, and the daemon does not know it",
				rank, run->name);
		if (r && !r->unborn && r->launch == launch)
			continue;
		struct engine_fact fact = { .kind = ENGINE_GONE,
					    .attempt = attempt,
					    .rank = rank,
					    .time_ms = clock_wall_ms(),
					    .launch = launch };

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
		tell_gone(c, attempts[i], run, task_counts[i], launches[i]);
	}
	c->adopting = false;
	cluster_tell_nodes(c);
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
