/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/placement/find.h"
#include "sim/runner.h"

enum { SETUP_CAP = 256 << 20, QUESTION_CAP = 256 << 20, AS_FAST = 1000 };

struct network {
	struct facts facts;
	struct space space;
	struct arena arena;
	uint32_t *ranks; /* in the space, by number in the cluster file */
};

int network_facts(const struct scenario *cluster, struct facts *ret, struct err *err)
{
	struct scenario bare = *cluster;
	struct run run = { .scenario = &bare };
	int rc;

	bare.job_count = bare.event_count = bare.expect_count = 0;
	arena_init(&run.memory, SETUP_CAP);
	rc = run_setup(&run, err);
	if (rc == 0)
		facts_freeze(&run.world.facts, ret);
	world_deinit(&run.world);
	arena_deinit(&run.memory);
	return rc;
}

/* Plain policies ask for GPUs alone, and every node may be somebody's best place. */
static int facts_open_to_all(const struct scenario *cluster, struct facts *ret, struct err *err)
{
	struct scenario open = *cluster;
	struct scenario_node *nodes = calloc((size_t)cluster->node_count + 1, sizeof *nodes);
	int rc;

	CHECK(nodes);
	for (uint32_t i = 0; i < cluster->node_count; i++) {
		nodes[i] = cluster->nodes[i];
		nodes[i].taints = "";
		nodes[i].capacity = CAPACITY_NOT_SAID;
		nodes[i].class = 0;
	}
	open.nodes = nodes;
	rc = network_facts(&open, ret, err);
	free(nodes);
	return rc;
}

int network_open(const struct scenario *cluster, struct network **ret, struct err *err)
{
	struct network *n;
	struct facts facts;
	int rc;

	*ret = NULL;
	if (!cluster->draft)
		return 0;
	rc = facts_open_to_all(cluster, &facts, err);
	if (rc < 0)
		return rc;
	n = calloc(1, sizeof *n);
	CHECK(n);
	n->facts = facts;
	n->ranks = calloc((size_t)cluster->node_count + 1, sizeof *n->ranks);
	CHECK(n->ranks);
	arena_init(&n->arena, QUESTION_CAP);
	space_init(&n->space);
	space_build(&n->space, &n->facts);
	for (uint32_t i = 0; i < cluster->node_count; i++) {
		const struct node_id id = facts_node_find(&n->facts, cluster->nodes[i].name);
		const int32_t rank = space_rank(&n->space, id.v);

		CHECK(rank != RANK_NONE);
		n->ranks[i] = (uint32_t)rank;
	}
	*ret = n;
	return 0;
}

void network_close(struct network *n)
{
	if (!n)
		return;
	space_deinit(&n->space);
	facts_deinit(&n->facts);
	arena_deinit(&n->arena);
	free(n->ranks);
	free(n);
}

/* Models that no node has serve nobody; without any that is known all would. */
static void models_take(const struct facts *f, const char *models, struct shape *shape)
{
	char name[EVENT_TEXT_MAX + 1];
	uint32_t count = 0;

	while (*models && count < SHAPE_MODELS_MAX) {
		const size_t size = strcspn(models, ",");

		snprintf(name, sizeof name, "%.*s", (int)size, models);
		shape->models[count] = facts_name_find(f, name);
		count += shape->models[count].v != 0;
		models += size + (models[size] == ',');
	}
}

static int by_rank(const void *a, const void *b)
{
	const struct plain_place *x = a, *y = b;

	return x->node < y->node ? -1 : x->node > y->node;
}

/* Tasks of one node stand together, and nodes in their order: ranks are given so. */
static void placement_make(const struct network *n, const struct plain_place *places,
			   uint32_t tasks, struct arena *arena, struct placement *ret)
{
	struct plain_place *sorted = arena_new_array(arena, struct plain_place, tasks);

	*ret = (struct placement){ .count = tasks,
				   .ranks = arena_new_array(arena, uint32_t, tasks),
				   .masks = arena_new_array(arena, uint32_t, tasks) };
	for (uint32_t i = 0; i < tasks; i++)
		sorted[i] = (struct plain_place){ n->ranks[places[i].node], places[i].gpu_mask };
	qsort(sorted, tasks, sizeof *sorted, by_rank);
	for (uint32_t i = 0; i < tasks; i++) {
		ret->ranks[i] = sorted[i].node;
		ret->masks[i] = sorted[i].gpu_mask;
	}
}

uint32_t network_slowdown(struct network *n, const struct workload_job *job,
			  const struct plain_place *places)
{
	struct shape shape = { .tasks_min = job->tasks,
			       .tasks_max = job->tasks,
			       .gpus = job->gpus,
			       .spread = job->kind == KIND_INFERENCE,
			       .gpu_part = job->gpu_part,
			       .gpu_part_mib = (uint32_t)job->gpu_part_mib,
			       .gpu_memory_mib = (uint32_t)job->gpu_memory_mib };
	struct placement placement;
	struct place_speed speed;

	if (!n || !job->gpus || (job->wishes && *job->wishes->slice))
		return AS_FAST;
	arena_reset(&n->arena);
	models_take(&n->facts, job->models, &shape);
	placement_make(n, places, job->tasks, &n->arena, &placement);
	if (!place_speed(&n->space, &shape, job->kind, &placement, &n->arena, &speed))
		return AS_FAST;
	return speed.slowdown_permille > AS_FAST ? speed.slowdown_permille : AS_FAST;
}
