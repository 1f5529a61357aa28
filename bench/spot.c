/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spot machines under a deadline, after Wu et al., "Can't Be Late" (NSDI 2024), on the traces that its authors publish
 * (github.com/skypilot-org/spot-traces; they are not part of this tree).
 *
 *	spot FOLDER [STARTS]		default: 100 random starts for each file
 *	spot FOLDER STARTS constants	what other constants of the rule would do, and what comes of choosing them on the other files
 *
 *	spot FOLDER STARTS rules	what each part of the rule earns, left out
 *
 * FOLDER holds files as availability__1-node__aws-02-15-2023__us-east-1a_v100_1.json: {"metadata": {"gap_seconds": 195}, "data": [0, 1, ...]};
 * a value above 0 is read as "there is one", as their source documents it (a program of the same authors reads it the other way round).
 *
 * One task of 48 h of work; deadline, restart and prices as in the rows and below. It is decided at each sample. Cost in dollars, mean of all
 * starts of all files of a date:
 *
 *	greedy		spot whenever there is any, else it waits; on demand to the end when the time left is no more than the work and two restarts
 *	uniform		Uniform Progress: a straight line from start to deadline; behind it and without spot on demand, until the line is two restarts behind
 *			("the same in `sim replay`": plain:uniform-progress, which is asked when its mind would change, not at each sample, saves
 *			every minute and pays no restart at its first start)
 *	fairlead	core/scheduling/life/spot.h, which has seen the file up to the start
 *	untaught	the same, which has not, and does not learn
 *	core		decided by the whole core (event 38, docs/decisions/0018): the trace goes through `sim convert --from spot`, one spot node and one on
 *			demand stand in a cluster, and the task is a job with that deadline, an estimate, and checkpoints every minute
 *	on demand	48 h of it
 *	floor		all spot time up to the deadline at no switching cost, one restart, the rest on demand: nobody can pass it
 *
 * "closed": part of the distance between uniform and the floor. A missed deadline is counted and said. Nothing is asserted.
 */
#include <glob.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/scheduling/life/spot.h"
#include "sim/replay/convert.h"
#include "sim/replay/core_run.h"
#include "sim/replay/plain.h"
#include "sim/replay/workload.h"
#include "base/arena.h"
#include "base/conf.h"

static const double demand_dollars = 3.06, spot_dollars = 0.97;
enum { DEMAND_CENTS = 306, SPOT_CENTS = 97, WORK_H = 48, SEED = 42, FILES_MAX = 64 };
__extension__ typedef __int128 wide;

#define HOUR_MS INT64_C(3600000)

enum rule { GREEDY, UNIFORM, FAIRLEAD, UNTAUGHT, VARIED, RULES };

/* The rule's constants: what stands in spot.c is { 4, 4 }. */
struct constants {
	int64_t reserve; /* restarts for each coming and going */
	int64_t pick; /* who is short of time waits until (mean / pick) has gone by */
	/* A part of the rule that is left out: */
	bool never_back; /* on demand it stays there to the end */
	bool any_spot; /* leaves a node on demand for any spot node, however it pays or short of time it is */
	bool never_waits; /* on demand whenever there is no spot */
	bool no_memory; /* of what the pool did before the task came */
};

static struct constants varied;

struct trace {
	char date[32];
	int64_t gap_ms;
	uint8_t *there;
	uint32_t count;
	struct availability availability; /* the same, converted */
};

struct setting {
	int64_t deadline_ms, restart_ms;
};

struct run {
	struct spot_task task;
	struct spot_pool pool;
	enum rule rule;
	const struct setting *set;
};

static struct trace traces[FILES_MAX];
static uint32_t trace_count;

/* --- files ------------------------------------------------------------------------------------------------------ */

/* As `fairlead sim convert --from spot --node s` does. */
static void trace_convert(struct trace *t, const char *path)
{
	const struct convert_options options = { .node = "s" };
	struct err err = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	if (convert("spot", path, &options, out, &err) < 0 || fclose(out) != 0 ||
	    availability_parse(path, text, &t->availability, &err) < 0) {
		fprintf(stderr, "spot: %s: %s\n", path, err.text);
		exit(2);
	}
}

static void trace_read(const char *path)
{
	struct trace *t = &traces[trace_count++];
	const char *name = strrchr(path, '/'), *date = strstr(name ? name : path, "aws-");
	json_error_t why;
	json_t *file = json_load_file(path, 0, &why), *data;

	if (!file || !date || trace_count > FILES_MAX - 1) {
		fprintf(stderr, "spot: %s: %s\n", path, file ? "no date in its name" : why.text);
		exit(2);
	}
	snprintf(t->date, sizeof t->date, "%.*s", (int)strcspn(date + 4, "_"), date + 4);
	data = json_object_get(file, "data");
	t->gap_ms = (int64_t)(json_number_value(json_object_get(json_object_get(file, "metadata"),
								"gap_seconds")) *
			      1000);
	t->count = (uint32_t)json_array_size(data);
	t->there = calloc(t->count + 1, 1);
	CHECK(t->there && t->gap_ms > 0);
	for (uint32_t i = 0; i < t->count; i++)
		t->there[i] = json_number_value(json_array_get(data, i)) > 0;
	json_decref(file);
	trace_convert(t, path);
}

/* --- rules ------------------------------------------------------------------------------------------------------ */

static bool must_hurry(const struct spot_task *t)
{
	return t->left_ms - t->look_ms < t->work_ms + t->pending_ms + 2 * t->restart_ms;
}

static enum spot_place greedy(const struct run *r)
{
	if (must_hurry(&r->task))
		return SPOT_ON_DEMAND;
	return r->task.there ? SPOT_ON_SPOT : SPOT_WAITS;
}

static enum spot_place uniform(const struct run *r)
{
	const struct spot_task *t = &r->task;
	const int64_t work_ms = WORK_H * HOUR_MS, done_ms = work_ms - t->work_ms;
	const int64_t line_ms =
		(int64_t)((wide)(r->set->deadline_ms - t->left_ms) * work_ms / r->set->deadline_ms);

	if (must_hurry(t))
		return SPOT_ON_DEMAND;
	if (t->at == SPOT_ON_SPOT)
		return SPOT_ON_SPOT;
	if (t->at == SPOT_ON_DEMAND && done_ms < line_ms + 2 * t->restart_ms)
		return SPOT_ON_DEMAND;
	if (t->there)
		return SPOT_ON_SPOT;
	return t->at == SPOT_WAITS && done_ms < line_ms ? SPOT_ON_DEMAND : SPOT_WAITS;
}

/* spot_choose with other constants. */
static enum spot_place varied_choose(const struct run *r)
{
	const struct spot_task *t = &r->task;
	const int64_t there_ms = spot_pool_mean(&r->pool, true),
		      turn_ms = there_ms + spot_pool_mean(&r->pool, false);
	const int64_t spare_ms = spot_spare(t),
		      reserve_ms = t->left_ms <= 0
					   ? 0
					   : (int64_t)((wide)varied.reserve * t->restart_ms *
						       t->left_ms / turn_ms);
	const bool can_go =
		t->left_ms - t->look_ms - t->work_ms - t->lose_ms - 2 * t->restart_ms > 0;
	const bool pays =
		(wide)(t->demand_micro - t->spot_micro) * ((there_ms + t->since_ms) / 2) >=
		(wide)(t->demand_micro + t->spot_micro) * t->restart_ms;
	const bool lasted = spare_ms >= reserve_ms ||
			    (wide)t->since_ms * spare_ms >=
				    (wide)(there_ms / varied.pick) * (reserve_ms - spare_ms);

	if (t->there && t->at == SPOT_ON_SPOT && spare_ms >= 0)
		return SPOT_ON_SPOT;
	if (spare_ms <= 0)
		return SPOT_ON_DEMAND;
	if (t->at == SPOT_ON_DEMAND && varied.never_back)
		return SPOT_ON_DEMAND;
	if (t->there && t->at == SPOT_ON_DEMAND)
		return can_go && (varied.any_spot || (pays && lasted)) ? SPOT_ON_SPOT
								       : SPOT_ON_DEMAND;
	if (t->there)
		return can_go ? SPOT_ON_SPOT : SPOT_ON_DEMAND;
	if (varied.never_waits)
		return SPOT_ON_DEMAND;
	if (t->at == SPOT_ON_DEMAND)
		return spare_ms > reserve_ms + turn_ms ? SPOT_WAITS : SPOT_ON_DEMAND;
	return spare_ms > reserve_ms ? SPOT_WAITS : SPOT_ON_DEMAND;
}

static enum spot_place choose(const struct run *r)
{
	switch (r->rule) {
	case GREEDY: return greedy(r);
	case UNIFORM: return uniform(r);
	case FAIRLEAD:
	case UNTAUGHT: return spot_choose(&r->task, &r->pool);
	case VARIED: return varied_choose(r);
	case RULES: break;
	}
	UNREACHABLE();
}

/* --- a task ----------------------------------------------------------------------------------------------------- */

static void see(struct run *r, const struct trace *t, uint32_t at)
{
	const bool there = t->there[at];

	if (at && there != t->there[at - 1]) {
		if (r->rule != UNTAUGHT && !(r->rule == VARIED && varied.no_memory))
			spot_pool_note(&r->pool, !there, r->task.since_ms);
		r->task.since_ms = 0;
	} else if (at) {
		r->task.since_ms += t->gap_ms;
	}
	r->task.there = there;
}

/* What it is charged until the next sample. */
static double go_on(struct run *r)
{
	struct spot_task *t = &r->task;
	const int64_t whole_ms = t->pending_ms + t->work_ms;
	const int64_t used_ms = t->at == SPOT_WAITS     ? 0
				: whole_ms < t->look_ms ? whole_ms
							: t->look_ms;
	const int64_t again_ms = used_ms < t->pending_ms ? used_ms : t->pending_ms;

	t->pending_ms -= again_ms;
	t->work_ms -= used_ms - again_ms;
	t->left_ms -= t->work_ms ? t->look_ms : used_ms;
	return (double)used_ms / (double)HOUR_MS *
	       (t->at == SPOT_ON_SPOT ? SPOT_CENTS : DEMAND_CENTS) / 100;
}

static double task_run(const struct trace *trace, uint32_t start, const struct setting *set,
		       enum rule rule, uint32_t *missed)
{
	struct run r = { .rule = rule, .set = set };
	double cost = 0;

	for (uint32_t i = 0; i < start; i++)
		see(&r, trace, i);
	r.task.work_ms = WORK_H * HOUR_MS;
	r.task.left_ms = set->deadline_ms;
	r.task.restart_ms = set->restart_ms;
	r.task.look_ms = trace->gap_ms;
	r.task.spot_micro = SPOT_CENTS * 10000;
	r.task.demand_micro = DEMAND_CENTS * 10000;
	for (uint32_t i = start; r.task.work_ms > 0; i++) {
		enum spot_place chosen;

		see(&r, trace, i % trace->count);
		if (r.task.at == SPOT_ON_SPOT && !r.task.there) {
			r.task.at = SPOT_WAITS;
			r.task.pending_ms = 0;
		}
		chosen = choose(&r);
		if (chosen != r.task.at)
			r.task.pending_ms = chosen == SPOT_WAITS ? 0 : set->restart_ms;
		r.task.at = chosen;
		cost += go_on(&r);
	}
	*missed += r.task.left_ms < 0;
	return cost;
}

static double floor_of(const struct trace *t, uint32_t start, const struct setting *set)
{
	const double need_h = (double)(WORK_H * HOUR_MS + set->restart_ms) / (double)HOUR_MS;
	double there_h = 0;

	for (uint32_t i = 0; i < set->deadline_ms / t->gap_ms; i++)
		there_h += t->there[(start + i) % t->count] * (double)t->gap_ms / (double)HOUR_MS;
	if (there_h > need_h)
		there_h = need_h;
	return there_h * spot_dollars + (need_h - there_h) * demand_dollars;
}

/* --- the whole core --------------------------------------------------------------------------------------------- */

static const char cluster_text[] =
	"cluster: {nodes: [{name: d, gpus: 1, model: V100-16GB}, {name: s-1, gpus: 1, model: V100-16GB, capacity: spot}]}\n"
	"policy: {prices: {V100-16GB: 306, \"spot:V100-16GB\": 97}}\n";

static void cluster_read(struct arena *arena, struct scenario *ret)
{
	struct conf **documents;
	struct err err = { 0 };
	size_t count = 0;

	arena_init(arena, 64 << 20);
	CHECK(conf_parse("cluster", cluster_text, sizeof cluster_text - 1, arena, &documents,
			 &count, &err) == 0);
	CHECK(scenario_read_site("cluster", documents[0], arena, ret, &err) == 0);
}

/* The file up to a few days past the deadline: what comes later decides nothing. plain NULL: the core itself. */
static double replay_cost(const struct scenario *cluster, const struct trace *t, uint32_t start,
			  const struct setting *set, const char *plain, uint32_t *missed)
{
	struct workload_job job = { .name = "task",
				    .queue = "",
				    .user = "",
				    .models = "",
				    .submit_ms = start * t->gap_ms,
				    .run_ms = WORK_H * HOUR_MS,
				    .estimate_ms = WORK_H * HOUR_MS,
				    .deadline_ms = set->deadline_ms,
				    .restart_ms = (uint32_t)set->restart_ms,
				    .checkpoint_every_ms = 60000,
				    .tasks = 1,
				    .gpus = 1,
				    .kind = KIND_TRAINING,
				    .tier = TIER_STANDARD,
				    .checkpoints = 1 };
	const struct workload workload = { .path = "task", .jobs = &job, .count = 1 };
	struct outcome outcome;
	struct err err = { 0 };
	double cost;
	int rc;

	if (plain)
		rc = plain_run(plain_find(plain), cluster, &workload, &t->availability, SEED,
			       &outcome, &err);
	else
		rc = core_run("core", cluster, &workload,
			      &(struct core_run_options){ .availability = &t->availability },
			      &outcome, &err);
	if (rc < 0) {
		fprintf(stderr, "spot: %s\n", err.text);
		exit(2);
	}
	*missed += outcome.jobs[0].end_ms < 0 ||
		   outcome.jobs[0].end_ms > job.submit_ms + set->deadline_ms;
	cost = outcome.jobs[0].cost / 100;
	outcome_deinit(&outcome);
	return cost;
}

/* --- rows ------------------------------------------------------------------------------------------------------- */

static uint32_t draw(uint64_t *state, uint32_t below)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ z >> 31) % below);
}

static void row(const struct scenario *cluster, const char *date, const struct setting *set,
		uint32_t starts)
{
	double cost[RULES] = { 0 }, least = 0, core = 0, played = 0;
	uint32_t core_missed = 0;
	uint32_t count = 0, missed[RULES] = { 0 }, late = 0;

	for (uint32_t f = 0; f < trace_count; f++) {
		const struct trace *t = &traces[f];
		uint64_t random = SEED + f;
		const uint32_t span = (uint32_t)(set->deadline_ms / t->gap_ms) + 2;

		if (strcmp(t->date, date) != 0 || t->count <= span)
			continue;
		for (uint32_t s = 0; s < starts; s++, count++) {
			const uint32_t start = draw(&random, t->count - span);

			least += floor_of(t, start, set);
			core += replay_cost(cluster, t, start, set, NULL, &core_missed);
			played += replay_cost(cluster, t, start, set, "uniform-progress", &late);
			for (enum rule rule = 0; rule < VARIED; rule++)
				cost[rule] += task_run(t, start, set, rule, &missed[rule]);
		}
	}
	for (enum rule rule = 0; rule < VARIED; rule++) {
		cost[rule] /= count;
		late += missed[rule];
	}
	least /= count;
	core /= count;
	played /= count;
	printf("| %s | %" PRId64
	       " | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f %% | %.2f | %u | %.2f | %.0f %% | %u | %.2f |\n",
	       date, set->deadline_ms / HOUR_MS, (double)set->restart_ms / (double)HOUR_MS,
	       cost[GREEDY], cost[UNIFORM], played, least, cost[FAIRLEAD],
	       (cost[UNIFORM] - cost[FAIRLEAD]) / (cost[UNIFORM] - least) * 100, cost[UNTAUGHT],
	       late, core, (cost[UNIFORM] - core) / (cost[UNIFORM] - least) * 100, core_missed,
	       (double)WORK_H * demand_dollars);
}

static const struct setting settings[] = {
	{ 52 * HOUR_MS, 180000 }, { 52 * HOUR_MS, 720000 }, { 70 * HOUR_MS, 180000 },
	{ 70 * HOUR_MS, 720000 }, { 92 * HOUR_MS, 180000 }, { 92 * HOUR_MS, 720000 },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* --- other constants ---------------------------------------------------------------------------------------------- */

static const struct constants tried[] = {
	{ .reserve = 4, .pick = 4 },  { .reserve = 1, .pick = 4 }, { .reserve = 2, .pick = 4 },
	{ .reserve = 3, .pick = 4 },  { .reserve = 6, .pick = 4 }, { .reserve = 8, .pick = 4 },
	{ .reserve = 4, .pick = 1 },  { .reserve = 4, .pick = 2 }, { .reserve = 4, .pick = 8 },
	{ .reserve = 4, .pick = 16 },
};
enum { TRIED = sizeof tried / sizeof *tried };

/* In dollars over the floor, mean of all starts and settings of a file. */
static double over_floor(const struct trace *t, uint32_t f, uint32_t starts, enum rule rule,
			 uint32_t *missed)
{
	double over = 0;
	uint32_t count = 0;

	for (uint32_t s = 0; s < SETTINGS; s++) {
		const uint32_t span = (uint32_t)(settings[s].deadline_ms / t->gap_ms) + 2;
		uint64_t random = SEED + f;

		for (uint32_t i = 0; i < starts && t->count > span; i++, count++) {
			const uint32_t start = draw(&random, t->count - span);

			over += task_run(t, start, &settings[s], rule, missed) -
				floor_of(t, start, &settings[s]);
		}
	}
	return count ? over / count : 0;
}

static void constants_try(uint32_t starts)
{
	static double over[FILES_MAX][TRIED], uniform[FILES_MAX];
	double sums[TRIED] = { 0 }, even = 0, chosen = 0;
	uint32_t missed = 0, of_uniform = 0;

	for (uint32_t f = 0; f < trace_count; f++) {
		even += uniform[f] =
			over_floor(&traces[f], f, starts, UNIFORM, &of_uniform) / trace_count;
		for (uint32_t v = 0; v < TRIED; v++) {
			varied = tried[v];
			over[f][v] =
				over_floor(&traces[f], f, starts, VARIED, &missed) / trace_count;
			sums[v] += over[f][v];
		}
		varied = tried[0];
		CHECK(over_floor(&traces[f], f, starts, VARIED, &missed) ==
		      over_floor(&traces[f], f, starts, FAIRLEAD, &missed));
	}
	printf("| reserve | pick | dollars over the floor |\n|---|---|---|\n");
	for (uint32_t v = 0; v < TRIED; v++)
		printf("| %" PRId64 " | %" PRId64 " | %.2f |\n", tried[v].reserve, tried[v].pick,
		       sums[v]);
	for (uint32_t f = 0; f < trace_count; f++) {
		uint32_t best = 0;

		for (uint32_t v = 1; v < TRIED; v++)
			if (sums[v] - over[f][v] < sums[best] - over[f][best])
				best = v;
		chosen += over[f][best];
	}
	printf("each file with what is best on the others: %.2f; Uniform Progress: %.2f; %u deadlines missed\n",
	       chosen, even, missed);
}

/* --- what each part of the rule earns ------------------------------------------------------------------------------ */

static void rules_leave_out(uint32_t starts)
{
	static const struct {
		const char *name;
		struct constants without;
	} parts[] = {
		{ "nothing", { .reserve = 4, .pick = 4 } },
		{ "time in reserve for each coming and going", { .reserve = 0, .pick = 4 } },
		{ "it leaves a node on demand only when spot has lasted and pays",
		  { .reserve = 4, .pick = 4, .any_spot = true } },
		{ "it leaves a node on demand at all",
		  { .reserve = 4, .pick = 4, .never_back = true } },
		{ "it waits for spot while there is time",
		  { .reserve = 4, .pick = 4, .never_waits = true } },
		{ "it remembers how long spot was there and away",
		  { .reserve = 4, .pick = 4, .no_memory = true } },
	};
	double whole = 0;

	printf("| left out | dollars over the floor | deadlines missed |\n|---|---|---|\n");
	for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
		uint32_t missed = 0;
		double over = 0;

		varied = parts[p].without;
		for (uint32_t f = 0; f < trace_count; f++)
			over += over_floor(&traces[f], f, starts, VARIED, &missed) / trace_count;
		whole = p ? whole : over;
		printf("| %s | %.2f (%+.2f) | %u |\n", parts[p].name, over, over - whole, missed);
	}
}

int main(int argc, char **argv)
{
	uint32_t starts = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 100;
	struct scenario cluster;
	struct arena arena;
	char pattern[4096];
	glob_t found;

	if (argc < 2 || argc > 4)
		return fprintf(stderr, "usage: spot FOLDER [STARTS [constants|rules]]\n"), 2;
	snprintf(pattern, sizeof pattern, "%s/availability__1-node__*.json", argv[1]);
	if (glob(pattern, 0, NULL, &found) != 0)
		return fprintf(stderr, "spot: there is no %s\n", pattern), 2;
	for (size_t i = 0; i < found.gl_pathc; i++)
		trace_read(found.gl_pathv[i]);
	cluster_read(&arena, &cluster);
	if (argc > 3) {
		if (strcmp(argv[3], "rules") == 0)
			rules_leave_out(starts);
		else
			constants_try(starts);
		return 0;
	}
	printf("| files of | deadline h | restart h | greedy | Uniform Progress | the same in `sim replay` | floor | Fairlead | closed | untaught | missed | core | closed | missed | on demand |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (uint32_t f = 0; f < trace_count; f++)
		for (size_t s = 0; s < SETTINGS; s++)
			if (!f || strcmp(traces[f].date, traces[f - 1].date) != 0)
				row(&cluster, traces[f].date, &settings[s], starts);
	arena_deinit(&arena);
	globfree(&found);
	return 0;
}
