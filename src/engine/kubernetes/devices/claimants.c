/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has the GPUs of a node whose driver publishes them, where that is not work of Fairlead's:
 *
 *	claim has gpu-3               GPU 3   pod team/x (default-scheduler): gpu-3
 *	claims have parts of gpu-0    GPU 0   pod team/y (volcano): gpu-0-mig-1, pod team/z (fairlead): gpu-0-mig-2
 *	no claim has it               GPU 5   its driver, by the taint example.com/ecc
 *
 * Parts count for the GPU whose counters they use.
 */
#include <stdio.h>
#include <string.h>

#include "engine/kubernetes/authority.h"
#include "engine/kubernetes/devices/devices.h"

struct look {
	struct engine *engine;
	struct node_entry *node;
	const struct gpu_table *table;
	uint64_t taken;
	struct engine_taken *said; /* by the GPU's index */
	const struct dra_device
		*gpus[NODE_GPUS_MOST]; /* of the pool that is looked at; NULL = of another one */
};

/* --- words ----------------------------------------------------------------------------------------------------------- */

/* Those that would make it too long are not named. */
static void say(struct engine_taken *said, const char *text)
{
	const char *more = " and more";
	const size_t size = strlen(said->by), most = sizeof(said->by) - strlen(more) - 1;

	if (size + strlen(text) + 2 <= most)
		snprintf(said->by + size, sizeof(said->by) - size, "%s%s", size ? ", " : "", text);
	else if (size <= most)
		snprintf(said->by + size, sizeof(said->by) - size, "%s", more);
}

static void say_of(struct look *look, uint64_t gpus, const char *text)
{
	for (uint32_t i = 0; i < look->table->count; i++)
		if (gpus >> i & 1)
			say(&look->said[i], text);
}

/* The pod holds its place, for the authority of its pool. */
static void pod_counts(struct look *look, const struct pod_entry *pod, const char *namespace,
		       const char *name)
{
	char full[KUBE_WORD_MAX + KUBE_NAME_MAX];

	if (!pod || !pod->scheduler || pod->node != look->node)
		return;
	snprintf(full, sizeof(full), "%.63s/%.253s", namespace, name);
	claimant_add(look->node, pod->scheduler, full);
}

static void consumer_say(struct look *look, uint64_t gpus, const struct dra_claim *claim,
			 const struct dra_consumer *consumer, const char *device)
{
	struct pod_entry *pod = NULL;
	char text[180];

	if (consumer->group[0] || strcmp(consumer->resource, "pods") != 0) {
		snprintf(text, sizeof(text), "%.40s %.40s/%.50s: %.40s", consumer->resource,
			 claim->namespace, consumer->name, device);
		say_of(look, gpus, text);
		return;
	}
	HASH_FIND_STR(look->engine->pods, consumer->uid, pod);
	pod_counts(look, pod, claim->namespace, consumer->name);
	snprintf(text, sizeof(text), "pod %.40s/%.50s (%.36s): %.40s", claim->namespace,
		 consumer->name,
		 !pod             ? "there no more"
		 : pod->scheduler ? pod->scheduler
				  : KUBE_SCHEDULER,
		 device);
	say_of(look, gpus, text);
}

static void claim_say(struct look *look, uint64_t gpus, const struct claim_entry *entry,
		      const char *device)
{
	const struct dra_claim *claim = entry->claim;
	char text[180];

	for (uint32_t i = 0; i < claim->consumer_count; i++)
		consumer_say(look, gpus, claim, &claim->consumers[i], device);
	if (claim->consumer_count)
		return;
	snprintf(text, sizeof(text), "claim %.40s/%.70s of no pod: %.40s", claim->namespace,
		 claim->name, device);
	say_of(look, gpus, text);
}

/* --- devices ----------------------------------------------------------------------------------------------------------- */

static bool share_counters(const struct dra_device *a, const struct dra_device *b)
{
	for (uint32_t i = 0; i < a->use_count; i++)
		for (uint32_t j = 0; j < b->use_count; j++)
			if (strcmp(a->uses[i].name, b->uses[j].name) == 0)
				return true;
	return false;
}

/* The GPUs that are not whole without the device. */
static uint64_t gpus_with(const struct look *look, const struct dra_device *device)
{
	uint64_t ret = 0;

	for (uint32_t i = 0; i < look->table->count; i++)
		if (look->gpus[i] == device ||
		    (look->gpus[i] && share_counters(look->gpus[i], device)))
			ret |= UINT64_C(1) << i;
	return ret;
}

static void device_look(struct look *look, const struct dra_slice *slice,
			const struct dra_device *device)
{
	const bool whole = dra_is_gpu(slice, device);
	const struct held *held = device_held(look->engine, slice, device);
	uint64_t gpus = held ? gpus_with(look, device) & look->taken : 0;

	for (; held; held = held->also) {
		const bool live = claim_is_live(look->engine, held->by);

		look->node->claims_work |= live && gpus;
		if (gpus && held->by->claim && !(whole && live))
			claim_say(look, gpus, held->by, device->name);
	}
}

/* Of a GPU that no claim has. */
static void cause_say(struct engine_taken *said, const struct dra_device *device)
{
	char text[160];

	if (said->by[0])
		return;
	for (uint32_t i = 0; i < device->taint_count; i++)
		if (strcmp(device->taints[i].effect, "NoSchedule") == 0 ||
		    strcmp(device->taints[i].effect, "NoExecute") == 0) {
			snprintf(text, sizeof(text), "its driver, by the taint %.100s",
				 device->taints[i].key);
			say(said, text);
			return;
		}
	if (device->odd) {
		snprintf(text, sizeof(text), "nobody, for it can't be given: %.100s", device->odd);
		say(said, text);
	}
}

static void pool_look(struct look *look, const struct dra_pool *pool)
{
	char key[DEVICE_KEY_MAX];

	memset(look->gpus, 0, sizeof(look->gpus));
	for (uint32_t i = 0; i < pool->slice_count; i++)
		for (uint32_t j = 0; j < pool->slices[i]->device_count; j++) {
			const struct dra_device *device = &pool->slices[i]->devices[j];

			if (!dra_is_gpu(pool->slices[i], device))
				continue;
			device_key(pool->driver, pool->name, device->name, key);
			for (uint32_t g = 0; g < look->table->count; g++)
				if (strcmp(look->table->keys[g], key) == 0)
					look->gpus[g] = device;
		}
	for (uint32_t i = 0; i < pool->slice_count; i++)
		for (uint32_t j = 0; j < pool->slices[i]->device_count; j++)
			device_look(look, pool->slices[i], &pool->slices[i]->devices[j]);
	for (uint32_t g = 0; g < look->table->count; g++)
		if (look->gpus[g] && look->taken >> g & 1)
			cause_say(&look->said[g], look->gpus[g]);
}

/* Work of Fairlead's has one of them whole. */
static bool works(const struct look *look)
{
	for (uint32_t i = 0; i < look->table->count; i++)
		for (const struct held *held =
			     device_held_by_key(look->engine, look->table->keys[i]);
		     held; held = held->also)
			if (claim_is_live(look->engine, held->by))
				return true;
	return false;
}

const struct engine_taken *claimants_look(struct engine *engine, struct node_entry *node,
					  const struct gpu_table *table, uint64_t taken,
					  uint32_t *ret_count)
{
	struct engine_taken *said = engine->devices->taken;
	struct look look = {
		.engine = engine, .node = node, .table = table, .taken = taken, .said = said
	};
	const struct dra_pool *const *pools;
	uint32_t count;

	*ret_count = 0;
	node->claims_work = works(&look);
	if (!taken)
		return said;
	memset(said, 0, sizeof(engine->devices->taken));
	arena_reset(&engine->devices->arena);
	dra_pools_of(&engine->devices->inventory, node->name, &engine->devices->arena, &pools,
		     &count);
	for (uint32_t i = 0; i < count; i++)
		pool_look(&look, pools[i]);
	for (uint32_t g = 0; g < table->count; g++) {
		if (taken >> g & 1 && !table->there[g])
			say(&said[g], "its driver, which publishes it no more");
		said[g].gpus = said[g].by[0] ? UINT64_C(1) << g : 0;
	}
	*ret_count = table->count;
	return said;
}
