/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/whatif.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/conf.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "core/partitioning/geometry.h"
#include "sim/replay/core_run.h"
#include "sim/replay/plain_fragment.h"
#include "sim/scenario_file.h"

#define MEMORY_CAP ((size_t)1 << 30)

/* --- nodes ------------------------------------------------------------------------------------------------------ */

static const struct scenario_node *node_like(const struct scenario *site, const char *model)
{
	for (uint32_t i = 0; i < site->node_count; i++)
		if (strcmp(site->nodes[i].model, model) == 0)
			return &site->nodes[i];
	return NULL;
}

static int nodes_add(struct scenario *site, const struct scenario_node *like, uint32_t count,
		     struct arena *arena, struct err *err)
{
	struct scenario_node *nodes;

	if (site->node_count + count > SCENARIO_NODES_MAX)
		return err_set(err, ERR_INVALID, "that makes more than %d nodes",
			       SCENARIO_NODES_MAX);
	nodes = arena_new_array(arena, struct scenario_node, site->node_count + count);
	memcpy(nodes, site->nodes, site->node_count * sizeof *nodes);
	for (uint32_t i = 0; i < count; i++) {
		nodes[site->node_count + i] = *like;
		nodes[site->node_count + i].name =
			arena_printf(arena, "what-if-%u", site->node_count + i + 1);
	}
	site->nodes = nodes;
	site->node_count += count;
	return 0;
}

static int nodes_remove(struct scenario *site, const char *model, uint32_t count,
			struct arena *arena, struct err *err)
{
	struct scenario_node *nodes =
		arena_new_array(arena, struct scenario_node, site->node_count + 1);
	uint32_t kept = site->node_count;

	for (uint32_t i = site->node_count; i-- > 0;)
		if (count && strcmp(site->nodes[i].model, model) == 0)
			count--;
		else
			nodes[--kept] = site->nodes[i];
	if (count)
		return err_set(err, ERR_INVALID,
			       "there are %u nodes fewer with \"%.40s\" than that", count, model);
	if (kept == site->node_count)
		return err_set(err, ERR_INVALID, "without these there is no node left");
	site->nodes = nodes + kept;
	site->node_count -= kept;
	return 0;
}

int whatif_nodes_change(struct scenario *site, const char *text, struct arena *arena,
			struct err *err)
{
	const char *x = strchr(text, 'x');
	const struct scenario_node *like;
	struct err why = { 0 };
	char number[16];
	int64_t count;

	if ((*text != '+' && *text != '-') || !x || !x[1] || (size_t)(x - text) >= sizeof number)
		return err_set(err, ERR_INVALID,
			       "--nodes \"%.60s\": wanted is +4xMODEL or -2xMODEL", text);
	snprintf(number, sizeof number, "%.*s", (int)(x - text - 1), text + 1);
	if (parse_int(number, 1, SCENARIO_NODES_MAX, &count, &why) < 0)
		return err_set(err, ERR_INVALID, "--nodes \"%.60s\": %s", text, why.text);
	like = node_like(site, x + 1);
	if (!like)
		return err_set(
			err, ERR_INVALID,
			"--nodes \"%.60s\": no node has GPUs of the model \"%.40s\", so it is not known how such nodes are built; `fairlead nodes` "
			"lists the models",
			text, x + 1);
	return *text == '+' ? nodes_add(site, like, (uint32_t)count, arena, err)
			    : nodes_remove(site, x + 1, (uint32_t)count, arena, err);
}

/* From the last on: a node becomes spot as long as its model has too few. */
void whatif_spot_change(struct scenario *site, int64_t percent, struct arena *arena)
{
	struct scenario_node *nodes =
		arena_new_array(arena, struct scenario_node, site->node_count);

	memcpy(nodes, site->nodes, site->node_count * sizeof *nodes);
	for (uint32_t i = site->node_count; i-- > 0;) {
		int64_t all = 0, after = 0;

		for (uint32_t k = 0; k < site->node_count; k++)
			if (strcmp(nodes[k].model, nodes[i].model) == 0) {
				all++;
				after += k > i;
			}
		nodes[i].capacity = after < all * percent / 100 ? CAPACITY_SPOT : CAPACITY_NOT_SAID;
	}
	site->nodes = nodes;
}

int whatif_slices_change(struct scenario *site, const char *model, struct arena *arena,
			 uint32_t *ret_nodes, struct err *err)
{
	struct scenario_node *nodes =
		arena_new_array(arena, struct scenario_node, site->node_count);

	*ret_nodes = 0;
	memcpy(nodes, site->nodes, site->node_count * sizeof *nodes);
	for (uint32_t i = 0; i < site->node_count; i++) {
		struct scenario_node *n = &nodes[i];

		if (strcmp(n->model, model) != 0)
			continue;
		if (!geometry_of(model, (uint32_t)n->gpu_memory_mib))
			return err_set(
				err, ERR_INVALID,
				"--slices \"%.60s\": GPUs of that model can't be cut into slices",
				model);
		n->partitioning = PARTITIONING_AUTO;
		++*ret_nodes;
	}
	site->nodes = nodes;
	return *ret_nodes
		       ? 0
		       : err_set(err, ERR_INVALID,
				 "--slices \"%.60s\": no node has GPUs of that model; `fairlead nodes` lists the models",
				 model);
}

/* --- jobs on slices ------------------------------------------------------------------------------------------------ */

static bool is_named(const struct whatif_changes *changes, const char *model)
{
	for (uint32_t i = 0; i < changes->slice_count; i++)
		if (strcmp(changes->slices[i], model) == 0)
			return true;
	return false;
}

/* Is one of so many bytes in the list? */
static bool list_holds(const char *list, const char *one, size_t size)
{
	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == size && strncmp(list, one, size) == 0)
			return true;
	return false;
}

static bool labels_meet(const char *has, const char *wanted)
{
	for (; *wanted; wanted += strcspn(wanted, ","), wanted += *wanted == ',')
		if (!list_holds(has, wanted, strcspn(wanted, ",")))
			return false;
	return true;
}

static bool regions_meet(const char *has, const char *regions)
{
	static const char key[] = "region=";

	for (; *has; has += strcspn(has, ","), has += *has == ',')
		if (strncmp(has, key, sizeof key - 1) == 0 &&
		    list_holds(regions, has + sizeof key - 1, strcspn(has, ",") - sizeof key + 1))
			return true;
	return !*regions;
}

/* A taint is tolerated by its whole name or by its key. */
static bool taints_meet(const char *taints, const char *tolerates)
{
	for (; *taints; taints += strcspn(taints, ","), taints += *taints == ',')
		if (!list_holds(tolerates, taints, strcspn(taints, ",")) &&
		    !list_holds(tolerates, taints, strcspn(taints, "=,")))
			return false;
	return true;
}

/* May the job run on the node, whatever its GPUs are? */
static bool node_suits(const struct scenario_node *n, const struct workload_job *job)
{
	const struct workload_wishes *w = job->wishes ? job->wishes : &workload_wishes_none;

	if (n->capacity == CAPACITY_SPOT ? !plain_may_spot(job) : job->capacity == CAPACITY_SPOT)
		return false;
	if (n->class != NODE_CLASS_ANY &&
	    (n->class == NODE_CLASS_INFERENCE) != (job->kind == KIND_INFERENCE))
		return false;
	return n->cpu_milli >= job->cpu_milli && n->ram_mib >= job->memory_mib &&
	       labels_meet(n->labels, w->labels) && regions_meet(n->labels, w->regions) &&
	       taints_meet(n->taints, w->tolerates) &&
	       version_parse(n->driver) >= version_parse(w->min_driver) &&
	       version_parse(n->cuda) >= version_parse(w->min_cuda);
}

/* The smallest slice of the models named, of those that the job accepts, that has its part of the compute and the memory that it said, as `slice: fit`
 * would find it; NULL: none has. */
static const struct slice_profile *slice_for(const struct whatif *w,
					     const struct whatif_changes *changes,
					     const struct workload_job *job, const char **ret_model)
{
	for (uint32_t i = 0; i < w->changed.node_count; i++) {
		const struct scenario_node *n = &w->changed.nodes[i];
		const struct slice_profile *profile;
		const int64_t memory_mib = job->gpu_memory_mib > job->gpu_part_mib
						   ? job->gpu_memory_mib
						   : job->gpu_part_mib;

		if (!is_named(changes, n->model) ||
		    !plain_model_is_accepted(job->models, n->model) || !node_suits(n, job))
			continue;
		profile = geometry_need(geometry_of(n->model, (uint32_t)n->gpu_memory_mib),
					job->gpu_part, (uint32_t)memory_mib);
		*ret_model = n->model;
		if (profile)
			return profile;
	}
	return NULL;
}

/* What may run on a slice: a part of a GPU for one task, or for an endpoint's, that is not trained. */
static bool may_slice(const struct workload_job *job)
{
	return (job->gpu_part || job->gpu_part_mib) && job->kind != KIND_TRAINING &&
	       (job->tasks == 1 || job->kind == KIND_INFERENCE) &&
	       !(job->wishes && *job->wishes->slice);
}

static void job_slice(struct whatif *w, struct workload_job *job, const char *model,
		      const struct slice_profile *profile)
{
	struct workload_wishes *wishes = arena_new(&w->arena, struct workload_wishes);
	char text[SLICE_TEXT_MAX];

	*wishes = job->wishes ? *job->wishes : workload_wishes_none;
	wishes->slice = arena_strdup(&w->arena, slice_wish_text(profile_wish(profile), text));
	job->wishes = wishes;
	job->models = model;
	job->gpu_part = slice_share(profile_wish(profile));
	job->gpu_part_mib = job->gpu_memory_mib = 0;
}

/* Who asked for a part of a GPU takes the smallest slice that has as much. */
static void jobs_change(struct whatif *w, const struct whatif_changes *changes)
{
	const uint32_t count = w->workload.count;

	w->changed_jobs = w->workload;
	w->changed_jobs.jobs = arena_new_array(&w->arena, struct workload_job, count);
	memcpy(w->changed_jobs.jobs, w->workload.jobs, count * sizeof *w->workload.jobs);
	for (uint32_t i = 0; changes->slice_count && i < count; i++) {
		struct workload_job *job = &w->changed_jobs.jobs[i];
		const struct slice_profile *profile = NULL;
		const char *model = NULL;

		if (may_slice(job))
			profile = slice_for(w, changes, job, &model);
		if (profile)
			job_slice(w, job, model, profile);
		w->sliced_jobs += profile != NULL;
		w->slices_short += model && !profile;
	}
}

static uint32_t spot_nodes(const struct scenario *site)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < site->node_count; i++)
		count += site->nodes[i].capacity == CAPACITY_SPOT;
	return count;
}

/* --- the three ---------------------------------------------------------------------------------------------------- */

static char *text_of(const struct recorded *r, void (*put)(const struct recorded *, FILE *))
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	put(r, out);
	CHECK(fclose(out) == 0);
	return text;
}

/* By way of the files that `sim convert` writes: what they can't say is not in the play either. */
static int site_read(struct whatif *w, struct err *err)
{
	char *cluster = text_of(w->recorded, recorded_cluster), *jobs;
	const char *text = arena_strdup(&w->arena, cluster);
	struct conf **documents;
	size_t count = 0;
	int rc;

	free(cluster);
	rc = conf_parse("the recorded cluster", text, strlen(text), &w->arena, &documents, &count,
			err);
	if (rc < 0)
		return rc;
	CHECK(count == 1);
	rc = scenario_read_site("the recorded cluster", documents[0], &w->arena, &w->as_is, err);
	if (rc < 0)
		return rc;
	jobs = text_of(w->recorded, recorded_workload);
	rc = workload_parse("the recorded jobs", jobs, &w->workload, err);
	w->workload.text = jobs;
	return rc;
}

static int64_t gpus_of(const struct scenario *site)
{
	int64_t gpus = 0;

	for (uint32_t i = 0; i < site->node_count; i++)
		gpus += site->nodes[i].gpus;
	return gpus;
}

static int change(struct whatif *w, const struct whatif_changes *changes, struct err *err)
{
	int rc = 0;

	w->changed = w->as_is;
	for (uint32_t i = 0; i < changes->node_count && rc == 0; i++)
		rc = whatif_nodes_change(&w->changed, changes->nodes[i], &w->arena, err);
	if (rc == 0 && changes->spot >= 0)
		whatif_spot_change(&w->changed, changes->spot, &w->arena);
	if (rc == 0 && changes->availability)
		rc = availability_read(changes->availability, &w->availability, err);
	if (rc == 0 && changes->policy)
		rc = scenario_rules_file_read(changes->policy, &w->arena, &w->changed, err);
	for (uint32_t i = 0, nodes = 0; i < changes->slice_count && rc == 0; i++) {
		rc = whatif_slices_change(&w->changed, changes->slices[i], &w->arena, &nodes, err);
		w->sliced_nodes += nodes;
	}
	if (rc == 0)
		jobs_change(w, changes);
	w->gpus_before = gpus_of(&w->as_is);
	w->gpus_after = gpus_of(&w->changed);
	w->spot_before = spot_nodes(&w->as_is);
	w->spot_after = spot_nodes(&w->changed);
	return rc;
}

int whatif_run(struct recorded *recorded, const struct whatif_changes *changes, struct whatif *ret,
	       struct err *err)
{
	int rc;

	*ret = (struct whatif){ .recorded = recorded };
	arena_init(&ret->arena, MEMORY_CAP);
	rc = site_read(ret, err);
	if (rc == 0)
		rc = change(ret, changes, err);
	if (rc < 0)
		return rc;
	recorded_outcome(recorded, &ret->workload, &ret->results[WHATIF_HAPPENED].outcome);
	rc = core_run("played again", &ret->as_is, &ret->workload, NULL,
		      &ret->results[WHATIF_AGAIN].outcome, err);
	if (rc == 0)
		rc = core_run(
			"what if", &ret->changed, &ret->changed_jobs,
			&(struct core_run_options){
				.availability = changes->availability ? &ret->availability : NULL },
			&ret->results[WHATIF_CHANGED].outcome, err);
	for (uint32_t i = 0; i < WHATIF_COLUMNS && rc == 0; i++)
		figures_make(&ret->results[i].outcome, &ret->results[i].figures);
	return rc;
}

void whatif_deinit(struct whatif *w)
{
	for (uint32_t i = 0; i < WHATIF_COLUMNS; i++)
		outcome_deinit(&w->results[i].outcome);
	workload_deinit(&w->workload);
	availability_deinit(&w->availability);
	arena_deinit(&w->arena);
}

/* --- in words ------------------------------------------------------------------------------------------------------ */

static void times_tell(const struct whatif *w, const char *what, size_t spread, size_t value,
		       FILE *out)
{
	fprintf(out, "%-28s", what);
	for (uint32_t i = 0; i < WHATIF_COLUMNS; i++) {
		const char *figures = (const char *)&w->results[i].figures;
		char text[32];
		double seconds;

		memcpy(&seconds, figures + spread + value, sizeof seconds);
		fprintf(out, " %16s", replay_seconds_text(seconds, text));
	}
	fputc('\n', out);
}

static void counts_tell(const struct whatif *w, FILE *out)
{
	fprintf(out, "%-28s", "GPUs in use");
	for (uint32_t i = 0; i < WHATIF_COLUMNS; i++)
		fprintf(out, " %14.1f %%", w->results[i].figures.utilisation * 100);
	fprintf(out, "\n%-28s", "stopped to make room");
	for (uint32_t i = 0; i < WHATIF_COLUMNS; i++)
		fprintf(out, " %16u", w->results[i].figures.evictions);
	fprintf(out, "\n%-28s", "GPU-hours done twice");
	for (uint32_t i = 0; i < WHATIF_COLUMNS; i++)
		fprintf(out, " %16.1f", w->results[i].figures.lost_gpu_h);
	fprintf(out, "\n%-28s", "jobs that ended");
	for (uint32_t i = 0; i < WHATIF_COLUMNS; i++)
		fprintf(out, " %16u", w->results[i].figures.ended);
	fputc('\n', out);
	if (w->results[WHATIF_AGAIN].figures.deadlines) {
		fprintf(out, "%-28s", "deadlines missed");
		for (uint32_t i = 0; i < WHATIF_COLUMNS; i++)
			fprintf(out, " %16u", w->results[i].figures.deadlines_missed);
		fputc('\n', out);
	}
	if (w->results[WHATIF_AGAIN].figures.cost > 0 ||
	    w->results[WHATIF_CHANGED].figures.cost > 0)
		fprintf(out, "%-28s %16s %16.2f %16.2f\n", "cost, by the prices", "not reckoned",
			w->results[WHATIF_AGAIN].figures.cost,
			w->results[WHATIF_CHANGED].figures.cost);
}

static void slices_tell(const struct whatif *w, FILE *out)
{
	if (!w->sliced_nodes)
		return;
	fprintf(out,
		"The GPUs of %u nodes may be cut into slices. %u jobs that asked for a part of a GPU take the smallest slice there with as much compute and the memory that they said.\n",
		w->sliced_nodes, w->sliced_jobs);
	if (w->slices_short)
		fprintf(out, "%u jobs ask for a part that no slice has; they stay as they are.\n",
			w->slices_short);
	if (!w->sliced_jobs)
		fputs("So nobody uses any: training, several tasks that work together and whole GPUs do not run on slices.\n",
		      out);
}

static void waits_tell(const struct figures *again, const struct figures *changed, bool fewer,
		       FILE *out)
{
	const double before = again->wait_s.mean, after = changed->wait_s.mean;
	const char *who = fewer ? "Those that run" : "Jobs";
	char a[32], b[32];

	if (fabs(after - before) <= 0.01 * before)
		fprintf(out, "%s would wait as long as they do: %s in the mean.\n", who,
			replay_seconds_text(before, a));
	else
		fprintf(out, "%s would wait %s in the mean in place of %s: %.0f %% %s.\n", who,
			replay_seconds_text(after, b), replay_seconds_text(before, a),
			before > 0 ? fabs(after - before) / before * 100 : 100,
			after < before ? "less" : "more");
}

static void verdict_tell(const struct whatif *w, FILE *out)
{
	const struct figures *again = &w->results[WHATIF_AGAIN].figures,
			     *changed = &w->results[WHATIF_CHANGED].figures;

	fputc('\n', out);
	if (changed->ended < again->ended)
		fprintf(out, "%u jobs that ran could never run.\n", again->ended - changed->ended);
	if (changed->ended)
		waits_tell(again, changed, changed->ended < again->ended, out);
	if (w->gpus_after != w->gpus_before)
		fprintf(out, "The cluster would have %lld GPUs in place of %lld.\n",
			(long long)w->gpus_after, (long long)w->gpus_before);
	slices_tell(w, out);
	if (w->spot_after != w->spot_before)
		fprintf(out, "%u nodes would be spot nodes in place of %u.%s\n", w->spot_after,
			w->spot_before,
			w->availability.path
				? ""
				: " None of them goes in this play: --availability says when.");
}

void whatif_tell(const struct whatif *w, FILE *out)
{
	const size_t wait = offsetof(struct figures, wait_s),
		     completion = offsetof(struct figures, completion_s);
	char text[32];

	fprintf(out, "%u jobs of %s, on %lld GPUs\n", w->workload.count,
		replay_seconds_text((double)(w->recorded->end_ms - w->recorded->start_ms) / 1000,
				    text),
		(long long)w->gpus_before);
	recorded_remarks(w->recorded, "  ", out);
	fprintf(out, "\n%-28s %16s %16s %16s\n", "", "as it happened", "played again", "what if");
	times_tell(w, "wait, mean", wait, offsetof(struct spread, mean), out);
	times_tell(w, "wait, 9 of 10 at most", wait, offsetof(struct spread, p90), out);
	times_tell(w, "to the end, mean", completion, offsetof(struct spread, mean), out);
	times_tell(w, "to the end, 9 of 10 at most", completion, offsetof(struct spread, p90), out);
	counts_tell(w, out);
	verdict_tell(w, out);
	fputs("The first two columns differ by what the play leaves out: outages, places that take time to be made ready, jobs and wishes named above.\n",
	      out);
}
