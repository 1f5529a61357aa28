/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/plain_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "sim/replay/plain_fragment.h"

enum { MODEL_TEXT = 256 };

/* --- what fits --------------------------------------------------------------------------------------------- */

bool plain_model_is_accepted(const char *models, const char *model)
{
	const size_t size = strlen(model);

	if (!*models)
		return true;
	for (const char *at = models; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (strncmp(at, model, size) == 0 && (at[size] == ',' || !at[size]))
			return true;
	}
	return false;
}

/* The GPU with the least open that is enough for a part; -1 = none. */
static int part_tightest(const struct plain_node *n, uint32_t part)
{
	int best = -1;

	for (uint32_t g = 0; g < n->gpus; g++)
		if (n->open[g] >= part && (best < 0 || n->open[g] < n->open[best]))
			best = (int)g;
	return best;
}

bool plain_may_spot(const struct workload_job *job)
{
	if (job->capacity)
		return job->capacity != CAPACITY_ON_DEMAND;
	return job->checkpoints && job->kind == KIND_TRAINING && job->tier != TIER_CRITICAL;
}

bool plain_fits(const struct plain_node *n, const struct workload_job *job)
{
	if (!n->there || (n->spot ? !plain_may_spot(job) : job->capacity == CAPACITY_SPOT))
		return false;
	if (n->cpu_milli < job->cpu_milli || n->ram_mib < job->memory_mib)
		return false;
	if (job->gpus == 0)
		return true;
	if (n->open_sum < (job->gpu_part ? job->gpu_part : job->gpus * GPU_SHARE) ||
	    n->gpu_memory_mib < job->gpu_memory_mib ||
	    !plain_model_is_accepted(job->models, n->model))
		return false;
	return job->gpu_part ? part_tightest(n, job->gpu_part) >= 0 : n->free >= job->gpus;
}

/* --- taking and giving ----------------------------------------------------------------------------------- */

static uint32_t gpus_choose(struct plain_cluster *c, const struct plain_node *n,
			    const struct workload_job *job)
{
	uint32_t mask = 0, left = job->gpus;

	if (!job->gpus)
		return 0;
	if (job->gpu_part && c->choice == CHOOSE_FGD)
		return UINT32_C(1) << plain_fragment_gpu(c, n, job);
	if (job->gpu_part && c->choice == CHOOSE_RANDOM) {
		uint32_t g;

		do
			g = plain_dice(c, n->gpus);
		while (n->open[g] < job->gpu_part);
		return UINT32_C(1) << g;
	}
	if (job->gpu_part)
		return UINT32_C(1) << part_tightest(n, job->gpu_part);
	for (uint32_t g = 0; g < n->gpus && left; g++)
		if (n->open[g] == GPU_SHARE) {
			mask |= UINT32_C(1) << g;
			left--;
		}
	return mask;
}

/* sign 1: gives back; -1: takes. */
static void move(struct plain_cluster *c, const struct workload_job *job,
		 const struct plain_place *place, int sign)
{
	struct plain_node *n = &c->nodes[place->node];
	const int share = sign * (int)(job->gpu_part ? job->gpu_part : GPU_SHARE);

	n->cpu_milli += sign * job->cpu_milli;
	n->ram_mib += sign * job->memory_mib;
	for (uint32_t mask = place->gpu_mask; mask; mask &= mask - 1) {
		const int g = __builtin_ctz(mask);

		n->free -= n->open[g] == GPU_SHARE;
		n->open[g] = (uint16_t)(n->open[g] + share);
		n->free += n->open[g] == GPU_SHARE;
		n->open_sum += (uint32_t)share;
		c->used -= share;
	}
}

uint32_t plain_dice(struct plain_cluster *c, uint32_t sides)
{
	c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((c->random >> 33) % sides);
}

/* --- which node ------------------------------------------------------------------------------------------- */

/* Less is better; of equal ones the first. */
static double cost(const struct plain_cluster *c, const struct plain_node *n,
		   const struct workload_job *job)
{
	int best;

	switch (c->choice) {
	case CHOOSE_TIGHT:
		best = job->gpu_part ? part_tightest(n, job->gpu_part) : -1;
		return best < 0 ? n->free + 1.0 : n->open[best] / ((double)GPU_SHARE + 1);
	case CHOOSE_BEST_FIT:
		return (double)(n->cpu_milli - job->cpu_milli) / 128000 +
		       (n->open_sum - (double)workload_share(job) / job->tasks) /
			       (double)GPU_SHARE / 8;
	case CHOOSE_FGD: return plain_fragment_cost(c, n, job);
	case CHOOSE_FIRST:
	case CHOOSE_FASTEST:
	case CHOOSE_RANDOM: break;
	}
	return 0;
}

static int random_node(struct plain_cluster *c, const struct workload_job *job)
{
	uint32_t fits = 0, nth;

	for (uint32_t i = 0; i < c->count; i++)
		fits += plain_fits(&c->nodes[i], job);
	if (!fits)
		return -1;
	nth = plain_dice(c, fits);
	for (uint32_t i = 0;; i++)
		if (plain_fits(&c->nodes[i], job) && nth-- == 0)
			return (int)i;
}

static int node_choose(struct plain_cluster *c, const struct workload_job *job)
{
	double least = 0, now;
	int best = -1;

	if (c->choice == CHOOSE_RANDOM)
		return random_node(c, job);
	for (uint32_t i = 0; i < c->count; i++) {
		if (!plain_fits(&c->nodes[i], job))
			continue;
		if (c->choice == CHOOSE_FIRST || c->choice == CHOOSE_FASTEST)
			return (int)i;
		now = cost(c, &c->nodes[i], job);
		if (best < 0 || now < least) {
			best = (int)i;
			least = now;
		}
	}
	return best;
}

/* --- jobs ---------------------------------------------------------------------------------------------------- */

static void tasks_give(struct plain_cluster *c, const struct workload_job *job,
		       const struct plain_place *places, uint32_t tasks)
{
	for (uint32_t t = 0; t < tasks; t++)
		move(c, job, &places[t], 1);
}

static bool tasks_take(struct plain_cluster *c, const struct workload_job *job, uint32_t tasks,
		       struct plain_place *ret)
{
	for (uint32_t t = 0; t < tasks; t++) {
		const int node = node_choose(c, job);

		if (node < 0) {
			tasks_give(c, job, ret, t);
			return false;
		}
		ret[t].node = (uint32_t)node;
		ret[t].gpu_mask = gpus_choose(c, &c->nodes[node], job);
		move(c, job, &ret[t], -1);
	}
	return true;
}

/* The task with the rest, as if it were the job. */
static struct workload_job rest_of(const struct workload_job *job)
{
	struct workload_job rest = *job;

	rest.gpus = job->rest_gpus;
	return rest;
}

static bool job_take(struct plain_cluster *c, const struct workload_job *job,
		     struct plain_place *ret)
{
	const struct workload_job rest = rest_of(job);

	if (!tasks_take(c, job, job->tasks, ret))
		return false;
	if (!job->rest_gpus || tasks_take(c, &rest, 1, ret + job->tasks))
		return true;
	tasks_give(c, job, ret, job->tasks);
	return false;
}

/* One of the job's models alone, by how fast it is: the first, the second. False: there are no more. */
static bool model_by_speed(const struct workload_job *job, uint32_t nth, char *ret, size_t size)
{
	const char *at = job->models;

	for (uint32_t i = 0; i < WORKLOAD_MODELS_MAX && job->speeds[i];
	     i++, at += strcspn(at, ",") + 1) {
		uint32_t before = 0;

		for (uint32_t k = 0; k < WORKLOAD_MODELS_MAX && job->speeds[k]; k++)
			before += job->speeds[k] > job->speeds[i] ||
				  (job->speeds[k] == job->speeds[i] && k < i);
		if (before != nth)
			continue;
		snprintf(ret, size, "%.*s", (int)strcspn(at, ","), at);
		return true;
	}
	return false;
}

static bool fastest_take(struct plain_cluster *c, const struct workload_job *job,
			 struct plain_place *ret)
{
	struct workload_job there = *job;
	char model[MODEL_TEXT];

	there.models = model;
	for (uint32_t nth = 0; model_by_speed(job, nth, model, sizeof model); nth++)
		if (job_take(c, &there, ret))
			return true;
	return false;
}

bool plain_take(struct plain_cluster *c, const struct workload_job *job, struct plain_place *ret)
{
	if (workload_share(job) > c->capacity - c->used)
		return false;
	return c->choice == CHOOSE_FASTEST && job->speeds[0] ? fastest_take(c, job, ret)
							     : job_take(c, job, ret);
}

void plain_give(struct plain_cluster *c, const struct workload_job *job,
		const struct plain_place *places)
{
	const struct workload_job rest = rest_of(job);

	tasks_give(c, job, places, job->tasks);
	if (job->rest_gpus)
		tasks_give(c, &rest, places + job->tasks, 1);
}

/* Of a model that it accepts. */
static uint32_t speed_on(const struct workload_job *job, const char *model)
{
	const char *at = job->models;
	uint32_t i = 0;

	while (strcspn(at, ",") != strlen(model) || strncmp(at, model, strlen(model)) != 0) {
		at += strcspn(at, ",") + 1;
		i++;
	}
	return job->speeds[i];
}

uint32_t plain_speed(const struct plain_cluster *c, const struct workload_job *job,
		     const struct plain_place *places)
{
	uint32_t least = UINT32_MAX;

	if (!job->speeds[0] || !job->gpus)
		return SPEED_WHOLE;
	for (uint32_t t = 0; t < workload_tasks(job); t++) {
		const uint32_t speed = speed_on(job, c->nodes[places[t].node].model);

		least = speed < least ? speed : least;
	}
	return least;
}

int32_t plain_node_find(const struct plain_cluster *c, const char *name)
{
	for (uint32_t i = 0; i < c->count; i++)
		if (strcmp(c->nodes[i].name, name) == 0)
			return (int32_t)i;
	return -1;
}

double plain_price(const struct plain_cluster *c, const struct workload_job *job,
		   const struct plain_place *places)
{
	double price = 0;

	for (uint32_t t = 0; t < workload_tasks(job); t++) {
		const uint32_t gpus = t < job->tasks ? job->gpus : job->rest_gpus;

		price += (double)c->nodes[places[t].node].price_micro *
			 (job->gpu_part ? (double)job->gpu_part / (double)GPU_SHARE : gpus);
	}
	return price;
}

/* --- the beginning ---------------------------------------------------------------------------------------- */

static int64_t price_named(const struct scenario_policy *policy, const char *before,
			   const char *model)
{
	const size_t size = strlen(before);

	for (uint32_t i = 0; i < policy->price_count; i++)
		if (strncmp(policy->price_models[i], before, size) == 0 &&
		    strcmp(policy->price_models[i] + size, model) == 0 &&
		    policy->prices_micro[i] >= 0)
			return policy->prices_micro[i];
	return -1;
}

/* That of "spot:MODEL" for a spot node, else of its model, else of "any". */
static int64_t price_of(const struct scenario_policy *policy, const struct scenario_node *node)
{
	int64_t price =
		node->capacity == CAPACITY_SPOT ? price_named(policy, "spot:", node->model) : -1;

	if (price <= 0)
		price = price_named(policy, "", node->model);
	if (price < 0)
		price = price_named(policy, "", "any");
	return price > 0 ? price : 0;
}

void plain_cluster_init(struct plain_cluster *c, const struct scenario *from,
			enum plain_choice choice, const struct workload *workload, uint64_t seed)
{
	*c = (struct plain_cluster){ .choice = choice, .count = from->node_count, .random = seed };
	c->nodes = calloc(from->node_count + 1, sizeof *c->nodes);
	CHECK(c->nodes);
	for (uint32_t i = 0; i < c->count; i++) {
		const struct scenario_node *node = &from->nodes[i];
		struct plain_node *n = &c->nodes[i];

		*n = (struct plain_node){ .cpu_milli = node->cpu_milli,
					  .ram_mib = node->ram_mib,
					  .gpu_memory_mib = node->gpu_memory_mib,
					  .model = node->model,
					  .name = node->name,
					  .gpus = node->gpus,
					  .free = node->gpus,
					  .price_micro = price_of(&from->policy, node),
					  .spot = node->capacity == CAPACITY_SPOT,
					  .there = true,
					  .open_sum = node->gpus * GPU_SHARE };
		for (uint32_t g = 0; g < node->gpus; g++)
			n->open[g] = GPU_SHARE;
		c->capacity += n->open_sum;
	}
	if (choice == CHOOSE_FGD)
		plain_fragment_learn(c, workload);
}

void plain_cluster_deinit(struct plain_cluster *c)
{
	free(c->nodes);
	free(c->typical);
	*c = (struct plain_cluster){ 0 };
}
