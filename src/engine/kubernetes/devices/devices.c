/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has which device, and the GPUs of nodes.
 *
 * A claim that this process changed is known by the answer. The watch may tell older words of it afterwards: those have a smaller resourceVersion,
 * which Kubernetes lets clients compare.
 */
#include "engine/kubernetes/devices/devices.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/predicates/placed.h"

enum { LABELS_OF_NODE = 16, LABELS_OF_JOB = 8 };
#define GPUS_LABEL KUBE_DOMAIN "gpus"

/* --- devices and who has them ------------------------------------------------------------------------------------------ */

void device_key(const char *driver, const char *pool, const char *device, char out[DEVICE_KEY_MAX])
{
	snprintf(out, DEVICE_KEY_MAX, "%s/%s/%s", driver, pool, device);
}

/* Of "driver/pool/device", where a pool may be named with slashes: masks that look at its devices, and who counts its GPUs. */
static void key_matters(struct engine *engine, const char *key)
{
	const char *from = strchr(key, '/'), *end = strrchr(key, '/');
	char pool[DEVICE_KEY_MAX] = "";
	const struct gpu_table *table;
	struct node_entry *node = NULL;
	bool counted = false;

	if (from && end > from)
		snprintf(pool, sizeof(pool), "%.*s", (int)(end - from - 1), from + 1);
	HASH_FIND_STR(engine->nodes, pool, node);
	masks_devices(engine, node ? node->name : NULL);
	if (!node)
		return;
	table = devices_gpus(engine, node->name);
	for (uint32_t i = 0; table && i < table->count; i++)
		counted |= strcmp(table->keys[i], key) == 0;
	if (!counted)
		node_changed(engine, node); /* it may be a part of a GPU */
}

static struct held *held_find(const struct engine *engine, const char *key)
{
	struct held *held = NULL;

	HASH_FIND_STR(engine->devices->held, key, held);
	return held;
}

const struct held *device_held_by_key(const struct engine *engine, const char *key)
{
	return held_find(engine, key);
}

const struct held *device_held(const struct engine *engine, const struct dra_slice *slice,
			       const struct dra_device *device)
{
	char key[DEVICE_KEY_MAX];

	device_key(slice->driver, slice->pool, device->name, key);
	return held_find(engine, key);
}

static void hold(struct engine *engine, struct claim_entry *entry, const char *key)
{
	struct held *first = held_find(engine, key), *held = calloc(1, sizeof(*held));

	CHECK(held);
	key_matters(engine, key);
	held->by = entry;
	held->key = strdup(key);
	CHECK(held->key);
	if (first) {
		held->also = first->also;
		first->also = held;
	} else {
		HASH_ADD_KEYPTR(hh, engine->devices->held, held->key, strlen(held->key), held);
	}
}

static void held_free(struct held *held)
{
	free(held->key);
	free(held);
}

static void release(struct engine *engine, const struct claim_entry *entry, const char *key)
{
	struct held *first = held_find(engine, key), *held;

	if (!first)
		return;
	key_matters(engine, key);
	if (first->by != entry) {
		for (; first->also && first->also->by != entry;)
			first = first->also;
		held = first->also;
		if (!held)
			return;
		first->also = held->also;
		held_free(held);
		return;
	}
	held = first->also;
	HASH_DEL(engine->devices->held, first);
	held_free(first);
	if (held)
		HASH_ADD_KEYPTR(hh, engine->devices->held, held->key, strlen(held->key), held);
}

/* The node whose devices the pool has, where it is one. */
static void node_of_pool_changed(struct engine *engine, const char *driver, const char *pool)
{
	struct gpu_table *table, *next;
	struct node_entry *node = NULL;

	/* Most drivers name a pool as its node. */
	HASH_FIND_STR(engine->nodes, pool, node);
	if (node) {
		node_changed(engine, node);
		return;
	}
	(void)driver;
	HASH_ITER(hh, engine->devices->tables, table, next)
	{
		HASH_FIND_STR(engine->nodes, table->node, node);
		if (node)
			node_changed(engine, node);
	}
}

static void claim_holds(struct engine *engine, struct claim_entry *entry, bool holds)
{
	const struct dra_claim *claim = entry->claim;

	if (entry->planned) {
		for (uint32_t i = 0; i < entry->planned_count; i++) {
			if (holds)
				hold(engine, entry, entry->planned_keys[i]);
			else
				release(engine, entry, entry->planned_keys[i]);
		}
		return;
	}
	for (uint32_t i = 0; claim && claim->allocated && i < claim->result_count; i++) {
		const struct dra_result *result = &claim->results[i];
		char key[DEVICE_KEY_MAX];

		if (result->admin)
			continue;
		device_key(result->driver, result->pool, result->device, key);
		if (holds)
			hold(engine, entry, key);
		else
			release(engine, entry, key);
		node_of_pool_changed(engine, result->driver, result->pool);
	}
}

static void plan_free(struct claim_entry *entry)
{
	for (uint32_t i = 0; i < entry->planned_count; i++)
		free(entry->planned_keys[i]);
	free(entry->planned_keys);
	free(entry->planned);
	entry->planned = NULL;
	entry->planned_keys = NULL;
	entry->planned_count = 0;
}

void claim_plan(struct engine *engine, struct claim_entry *entry,
		const struct dra_allocation *allocation, const char *json)
{
	claim_holds(engine, entry, false);
	plan_free(entry);
	entry->planned = strdup(json);
	entry->planned_keys = calloc(allocation->count + 1, sizeof(*entry->planned_keys));
	CHECK(entry->planned && entry->planned_keys);
	for (uint32_t i = 0; i < allocation->count; i++) {
		const struct dra_choice_made *made = &allocation->made[i];
		char key[DEVICE_KEY_MAX];

		device_key(made->slice->driver, made->slice->pool, made->device->name, key);
		entry->planned_keys[entry->planned_count] = strdup(key);
		CHECK(entry->planned_keys[entry->planned_count]);
		entry->planned_count++;
	}
	claim_holds(engine, entry, true);
}

void claim_plan_drop(struct engine *engine, struct claim_entry *entry)
{
	if (!entry->planned)
		return;
	claim_holds(engine, entry, false);
	plan_free(entry);
	claim_holds(engine, entry, true);
}

const struct claim_entry *claim_clash(const struct engine *engine, const struct claim_entry *entry,
				      const char **ret_device)
{
	for (uint32_t i = 0; entry->claim->allocated && i < entry->claim->result_count; i++) {
		const struct dra_result *result = &entry->claim->results[i];
		char key[DEVICE_KEY_MAX];

		device_key(result->driver, result->pool, result->device, key);
		for (const struct held *held = held_find(engine, key); held; held = held->also)
			if (held->by != entry && !result->admin) {
				*ret_device = result->device;
				return held->by;
			}
	}
	return NULL;
}

/* --- claims -------------------------------------------------------------------------------------------------------------- */

struct claim_entry *claim_find(const struct engine *engine, const char *namespace, const char *name)
{
	char key[CLAIM_KEY_MAX];
	struct claim_entry *entry = NULL;

	snprintf(key, sizeof(key), "%.63s/%.253s", namespace, name);
	HASH_FIND_STR(engine->devices->claims, key, entry);
	return entry;
}

static void tell_double(struct engine *engine, struct claim_entry *entry)
{
	const char *device = "";
	const struct claim_entry *other = claim_clash(engine, entry, &device);

	if (other && !entry->double_told)
		log_line(
			LOG_ERROR,
			"Kubernetes: device %s is allocated twice: to the ResourceClaims %s and %s; somebody else allocates devices too",
			device, entry->key, other->key);
	entry->double_told = other != NULL;
}

static bool is_older(const struct dra_claim *known, const struct dra_claim *told)
{
	return strcmp(known->uid, told->uid) == 0 &&
	       strtoull(told->version, NULL, 10) < strtoull(known->version, NULL, 10);
}

void claim_set(struct engine *engine, struct dra_claim *claim)
{
	struct claim_entry *entry = claim_find(engine, claim->namespace, claim->name);

	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		CHECK(entry);
		snprintf(entry->key, sizeof(entry->key), "%.63s/%.253s", claim->namespace,
			 claim->name);
		HASH_ADD_STR(engine->devices->claims, key, entry);
	}
	entry->seen = true;
	if (entry->claim && is_older(entry->claim, claim)) {
		dra_claim_free(claim);
		return;
	}
	claim_holds(engine, entry, false);
	/* What was planned is so now, or somebody else allocated it, or it is another claim. */
	if (claim->allocated || (entry->claim && strcmp(entry->claim->uid, claim->uid) != 0))
		plan_free(entry);
	dra_claim_free(entry->claim);
	entry->claim = claim;
	claim_holds(engine, entry, true);
	tell_double(engine, entry);
	engine->devices->claims_changed = true;
}

void claim_remove(struct engine *engine, struct claim_entry *entry)
{
	claim_holds(engine, entry, false);
	plan_free(entry);
	dra_claim_free(entry->claim);
	HASH_DEL(engine->devices->claims, entry);
	free(entry);
	engine->devices->claims_changed = true;
}

/* --- the GPUs of nodes ------------------------------------------------------------------------------------------------------- */

struct found_gpus {
	const struct dra_slice *slices[NODE_GPUS_MOST];
	const struct dra_device *devices[NODE_GPUS_MOST];
	uint32_t count;
	bool too_many;
};

/* gpu-2 before gpu-10. */
static int compare_devices(const char *a, const char *b)
{
	size_t x = strlen(a), y = strlen(b);

	return x != y ? (x < y ? -1 : 1) : strcmp(a, b);
}

static void gpu_found(struct found_gpus *found, const struct dra_slice *slice,
		      const struct dra_device *device)
{
	uint32_t at = found->count;

	if (found->count == NODE_GPUS_MOST) {
		found->too_many = true;
		return;
	}
	for (; at > 0 && compare_devices(found->devices[at - 1]->name, device->name) > 0; at--) {
		found->devices[at] = found->devices[at - 1];
		found->slices[at] = found->slices[at - 1];
	}
	found->devices[at] = device;
	found->slices[at] = slice;
	found->count++;
}

/* Whole GPUs of the one node alone: by pools that name it. */
static void gpus_find(struct engine *engine, const char *node, struct found_gpus *found)
{
	const struct dra_pool *const *pools;
	uint32_t count;

	*found = (struct found_gpus){ 0 };
	arena_reset(&engine->devices->arena);
	dra_pools_of(&engine->devices->inventory, node, &engine->devices->arena, &pools, &count);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0;
		     !pools[i]->incomplete && !pools[i]->invalid && j < pools[i]->slice_count;
		     j++) {
			const struct dra_slice *slice = pools[i]->slices[j];

			if (!slice->where.node || strcmp(slice->where.node, node) != 0)
				continue;
			for (uint32_t k = 0; k < slice->device_count; k++)
				if (dra_is_gpu(slice, &slice->devices[k]))
					gpu_found(found, slice, &slice->devices[k]);
		}
}

static int64_t memory_of(const struct dra_device *device)
{
	for (uint32_t i = 0; i < device->cel.capacity_count; i++) {
		const struct cel_capacity *c = &device->cel.capacities[i];
		enum wholeness whole;
		nano128 value;

		if (strcmp(c->id, "memory") == 0 &&
		    quantity_read(&(struct string){ c->quantity, strlen(c->quantity) }, &value,
				  &whole) == 0)
			return (int64_t)(value / 1000000000 >> 20);
	}
	return 0;
}

static void version_of(const struct found_gpus *found, const char *id, char ret[KUBE_WORD_MAX])
{
	const struct cel_attribute *version =
		dra_attribute(found->devices[0], found->slices[0]->driver, id);

	snprintf(ret, KUBE_WORD_MAX, "%.63s",
		 version && version->kind == CEL_VERSION ? version->text : "");
}

static void table_describe(struct gpu_table *table, const struct found_gpus *found)
{
	const struct cel_attribute *product;

	if (!found->count)
		return;
	product = dra_attribute(found->devices[0], found->slices[0]->driver, "productName");
	if (!product)
		product = dra_attribute(found->devices[0], found->slices[0]->driver, "model");
	snprintf(table->driver, sizeof(table->driver), "%.253s", found->slices[0]->driver);
	snprintf(table->product, sizeof(table->product), "%.159s",
		 product && product->kind == CEL_STRING ? product->text : "");
	version_of(found, "driverVersion", table->driver_version);
	version_of(found, "cudaDriverVersion", table->cuda);
	version_of(found, "cudaComputeCapability", table->compute);
	table->memory_mib = memory_of(found->devices[0]);
}

/* Whether the node is to be told anew. */
static bool table_update(struct gpu_table *table, const struct found_gpus *found)
{
	char key[DEVICE_KEY_MAX];
	bool changed = false, there[NODE_GPUS_MOST] = { 0 };

	for (uint32_t i = 0; i < found->count; i++) {
		uint32_t at = 0;

		device_key(found->slices[i]->driver, found->slices[i]->pool,
			   found->devices[i]->name, key);
		for (; at < table->count && strcmp(table->keys[at], key) != 0;)
			at++;
		if (at == NODE_GPUS_MOST)
			continue; /* others that went have all the indices */
		if (at == table->count) {
			table->keys[table->count++] = strdup(key);
			CHECK(table->keys[at]);
			changed = true;
		}
		there[at] = true;
	}
	changed |= memcmp(there, table->there, sizeof(there)) != 0;
	memcpy(table->there, there, sizeof(there));
	table_describe(table, found);
	return changed;
}

const struct gpu_table *devices_gpus(const struct engine *engine, const char *node)
{
	struct gpu_table *table = NULL;

	if (!engine->devices)
		return NULL;
	HASH_FIND_STR(engine->devices->tables, node, table);
	return table && table->count ? table : NULL;
}

bool devices_are_published(const struct engine *engine, const char *node)
{
	struct node_entry *entry = NULL;

	HASH_FIND_STR(engine->nodes, node, entry);
	return entry && entry->node && !entry->node->room.gpus && devices_gpus(engine, node);
}

/* In front of the others. False: there is no room for it, and nothing was done. */
static bool label_add(char labels[KUBE_LABELS_MAX + 1], const char *value, uint32_t most)
{
	char all[KUBE_LABELS_MAX + 64];
	uint32_t count = 1;

	snprintf(all, sizeof(all), GPUS_LABEL "=%s%s%s", value, labels[0] ? "," : "", labels);
	for (const char *at = all; *at; at++)
		count += *at == ',';
	if (strlen(all) > KUBE_LABELS_MAX || count > most)
		return false;
	memcpy(labels, all, strlen(all) + 1);
	return true;
}

/* Of a node that has as many labels as the core knows the last one goes. */
void devices_label(const struct engine *engine, const struct node_entry *node,
		   char labels[KUBE_LABELS_MAX + 1])
{
	const char *value;

	if (!engine->devices || !engine->devices->tables || !node->node)
		return;
	value = devices_are_published(engine, node->name) ? "claims" : "plugin";
	while (!label_add(labels, value, LABELS_OF_NODE)) {
		char *last = strrchr(labels, ',');

		*(last ? last : labels) = '\0';
	}
}

const char *devices_gang_label(const struct engine *engine, const struct gang *gang,
			       char labels[KUBE_LABELS_MAX + 1])
{
	bool claims = false, plugin = false;

	if (!engine->devices || !engine->devices->tables)
		return NULL;
	for (uint32_t rank = 0; rank < gang->count; rank++) {
		const struct pod_wish *wish = gang->members[rank]->wish;

		claims |= wish->use.gpus > wish->own_gpus;
		plugin |= wish->own_gpus > 0;
	}
	if (claims && plugin)
		return "its pods ask for GPUs as " KUBE_GPU " and by ResourceClaims";
	if ((claims || plugin) && !label_add(labels, claims ? "claims" : "plugin", LABELS_OF_JOB))
		return "its nodeSelector names more labels than there is room for beside " GPUS_LABEL;
	return NULL;
}

static void node_look(struct engine *engine, struct node_entry *node)
{
	struct devices *devices = engine->devices;
	struct gpu_table *table = NULL;
	struct found_gpus found;

	gpus_find(engine, node->name, &found);
	HASH_FIND_STR(devices->tables, node->name, table);
	if (!found.count && !table)
		return;
	if (!table) {
		table = calloc(1, sizeof(*table));
		CHECK(table);
		snprintf(table->node, sizeof(table->node), "%s", node->name);
		HASH_ADD_STR(devices->tables, node, table);
	}
	if (found.too_many)
		log_line(LOG_WARN, "Kubernetes: of node %s the first %d GPUs are used alone",
			 node->name, NODE_GPUS_MOST);
	(void)table_update(table, &found);
	node_changed(engine, node); /* taints of devices may have changed too */
}

void devices_node_came(struct engine *engine, struct node_entry *node)
{
	node->devices_seen = false;
	if (!engine->devices)
		return;
	engine->devices->node_came = engine->devices->claims_changed = true;
	engine->devices->kinds_revision++;
}

void devices_refresh(struct engine *engine)
{
	struct devices *devices = engine->devices;
	struct node_entry *node, *next;
	bool first = !devices->tables, all = devices->tables_revision != devices->revision;

	if (!devices_listed(engine) || (!all && !devices->node_came))
		return;
	devices->tables_revision = devices->revision;
	devices->node_came = false;
	HASH_ITER(hh, engine->nodes, node, next)
	{
		if (!node->node || (!all && node->devices_seen))
			continue;
		node_look(engine, node);
		node->devices_seen = true;
	}
	if (!first || !devices->tables)
		return;
	HASH_ITER(hh, engine->nodes, node, next)
	{
		node_changed(engine, node); /* how its GPUs are had matters from now on */
	}
}

/* Whether the core counts the GPUs that this claim has, for a rank that it placed. Of pods that share one, it counts them for the first. */
bool claim_is_live(struct engine *engine, const struct claim_entry *entry)
{
	const struct dra_claim *claim = entry->claim;

	if (entry->planned)
		return true;
	for (uint32_t i = 0; claim && i < claim->consumer_count; i++) {
		const char *uid = claim->consumers[i].uid;
		struct pod_entry *pod = NULL;
		uint32_t rank = 0;
		struct attempt_entry *attempt = gangs_attempt(engine, uid, &rank);

		if (!attempt) {
			HASH_FIND_STR(engine->pods, uid, pod);
			attempt = pod && pod->ours ? live_find(engine, pod->attempt) : NULL;
			rank = pod ? pod->rank : 0;
		}
		if (attempt && rank < attempt->tasks && !attempt->ranks[rank].over &&
		    (claim->owner_pod || attempt->ranks[rank].gpu_mask))
			return true;
	}
	return false;
}

static enum dra_state taken_by_others(void *context, const struct dra_slice *slice,
				      const struct dra_device *device)
{
	struct engine *engine = context;

	for (const struct held *held = device_held(engine, slice, device); held; held = held->also)
		if (!dra_is_gpu(slice, device) || !claim_is_live(engine, held->by))
			return DRA_TAKEN;
	return DRA_FREE;
}

static bool is_tainted(const struct dra_device *device)
{
	for (uint32_t i = 0; i < device->taint_count; i++)
		if (strcmp(device->taints[i].effect, "NoSchedule") == 0 ||
		    strcmp(device->taints[i].effect, "NoExecute") == 0)
			return true;
	return false;
}

uint64_t devices_taken(struct engine *engine, const struct gpu_table *table)
{
	const struct dra_pool *const *pools;
	struct devices *devices = engine->devices;
	uint64_t taken = 0;
	uint32_t count;

	for (uint32_t i = 0; i < table->count; i++)
		if (!table->there[i])
			taken |= UINT64_C(1) << i;
	arena_reset(&devices->arena);
	dra_pools_of(&devices->inventory, table->node, &devices->arena, &pools, &count);
	for (uint32_t i = 0; i < count; i++) {
		bool *free_ones = dra_pool_free(pools[i], taken_by_others, engine, &devices->arena);
		uint32_t at = 0;

		for (uint32_t j = 0; j < pools[i]->slice_count; j++)
			for (uint32_t k = 0; k < pools[i]->slices[j]->device_count; k++, at++) {
				const struct dra_device *device = &pools[i]->slices[j]->devices[k];
				char key[DEVICE_KEY_MAX];

				if (free_ones[at] && !device->odd && !is_tainted(device))
					continue;
				device_key(pools[i]->driver, pools[i]->name, device->name, key);
				for (uint32_t g = 0; g < table->count; g++)
					if (strcmp(table->keys[g], key) == 0)
						taken |= UINT64_C(1) << g;
			}
	}
	return taken;
}

void devices_claims_count_anew(struct engine *engine, const char *node)
{
	struct node_entry *entry = NULL;

	if (!engine->devices || !devices_gpus(engine, node))
		return;
	HASH_FIND_STR(engine->nodes, node, entry);
	if (entry)
		node_changed(engine, entry);
}

/* --- placed, and not said in a claim yet ----------------------------------------------------------------------------------- */

static bool claims_have_devices(const struct engine *engine, const struct rank_state *state)
{
	char name[KUBE_NAME_MAX];

	for (const char *at = state->claims; (at = claims_next(at, name));) {
		const struct claim_entry *entry = claim_find(engine, state->namespace, name);

		if (!entry || (!entry->planned && !entry->claim->allocated))
			return false;
	}
	return true;
}

/* Jobs of Fairlead's own alone: gangs choose their devices in the moment that they are placed. */
void devices_promises(struct engine *engine, const struct rank_state *but)
{
	struct gpu_table *table, *next;
	const struct attempt_entry *attempt;

	HASH_ITER(hh, engine->devices->tables, table, next)
	{
		table->promised = 0;
	}
	for (attempt = engine->attempts; attempt; attempt = attempt->hh.next)
		for (uint32_t rank = 0; !attempt->gang && !attempt->ended && rank < attempt->tasks;
		     rank++) {
			const struct rank_state *state = &attempt->ranks[rank];

			if (state == but || state->over || !state->claims || !state->gpu_mask ||
			    claims_have_devices(engine, state))
				continue;
			HASH_FIND_STR(engine->devices->tables, state->node, table);
			if (table)
				table->promised |= state->gpu_mask;
		}
}

bool device_is_promised(const struct engine *engine, const char *node,
			const struct dra_slice *slice, const struct dra_device *device)
{
	const struct gpu_table *table = devices_gpus(engine, node);
	char key[DEVICE_KEY_MAX];

	if (!table || !table->promised || !dra_is_gpu(slice, device))
		return false;
	device_key(slice->driver, slice->pool, device->name, key);
	for (uint32_t i = 0; i < table->count; i++)
		if (table->promised >> i & 1 && strcmp(table->keys[i], key) == 0)
			return true;
	return false;
}
