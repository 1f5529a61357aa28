/* SPDX-License-Identifier: Apache-2.0 */
/* Slices, classes and claims, followed from the first list to the end. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/log.h"
#include "engine/kubernetes/devices/devices.h"

enum { QUESTION_BYTES = 256 << 20 };

enum { LIST_SLICES, LIST_CLASSES, LIST_CLAIMS };

bool devices_listed(const struct engine *engine)
{
	const struct devices *devices = engine->devices;

	return devices && devices->listed[LIST_SLICES] && devices->listed[LIST_CLASSES] &&
	       devices->listed[LIST_CLAIMS];
}

static void published_anew(struct engine *engine)
{
	engine->devices->revision++;
	engine->devices->kinds_revision++;
	masks_devices(engine, NULL);
}

static void list_is_here(struct engine *engine, int list)
{
	engine->devices->listed[list] = true;
	published_anew(engine);
	engine->devices->claims_changed = true;
	cluster_list_came(engine);
}

static void cannot_be_read(const char *what, const struct err *err)
{
	log_line(LOG_WARN, "Kubernetes: a %s can't be read, and is left aside: %s", what,
		 err->text);
}

static void slices_begin(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	dra_slices_begin(&engine->devices->inventory);
	pthread_mutex_unlock(&engine->lock);
}

static void slice_came(void *context, const char *json, size_t size, bool deleted)
{
	struct engine *engine = context;
	struct dra_slice *slice;
	struct err err = { 0 };

	if (dra_slice_read(json, size, &slice, &err) < 0) {
		cannot_be_read("ResourceSlice", &err);
		return;
	}
	pthread_mutex_lock(&engine->lock);
	published_anew(engine);
	engine->devices->claims_changed = true;
	if (deleted) {
		dra_slice_remove(&engine->devices->inventory, slice->name);
		dra_slice_free(slice);
	} else {
		dra_slice_set(&engine->devices->inventory, slice);
	}
	pthread_mutex_unlock(&engine->lock);
}

static void slices_listed(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	dra_slices_end(&engine->devices->inventory);
	list_is_here(engine, LIST_SLICES);
	pthread_mutex_unlock(&engine->lock);
}

static void classes_begin(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	dra_classes_begin(&engine->devices->inventory);
	pthread_mutex_unlock(&engine->lock);
}

static void class_came(void *context, const char *json, size_t size, bool deleted)
{
	struct engine *engine = context;
	struct dra_class *class;
	struct err err = { 0 };

	if (dra_class_read(json, size, &class, &err) < 0) {
		cannot_be_read("DeviceClass", &err);
		return;
	}
	pthread_mutex_lock(&engine->lock);
	published_anew(engine);
	engine->devices->claims_changed = true;
	if (deleted) {
		dra_class_remove(&engine->devices->inventory, class->name);
		dra_class_free(class);
	} else {
		dra_class_set(&engine->devices->inventory, class);
	}
	pthread_mutex_unlock(&engine->lock);
}

static void classes_listed(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	dra_classes_end(&engine->devices->inventory);
	list_is_here(engine, LIST_CLASSES);
	pthread_mutex_unlock(&engine->lock);
}

static void claims_begin(void *context)
{
	struct engine *engine = context;
	struct claim_entry *entry, *next;

	pthread_mutex_lock(&engine->lock);
	HASH_ITER(hh, engine->devices->claims, entry, next)
	{
		entry->seen = false;
	}
	pthread_mutex_unlock(&engine->lock);
}

static void claim_came(void *context, const char *json, size_t size, bool deleted)
{
	struct engine *engine = context;
	struct dra_claim *claim;
	struct claim_entry *entry;
	struct err err = { 0 };

	if (dra_claim_read(json, size, &claim, &err) < 0) {
		cannot_be_read("ResourceClaim", &err);
		return;
	}
	pthread_mutex_lock(&engine->lock);
	if (deleted) {
		entry = claim_find(engine, claim->namespace, claim->name);
		if (entry && strcmp(entry->claim->uid, claim->uid) == 0)
			claim_remove(engine, entry);
		dra_claim_free(claim);
	} else {
		claim_set(engine, claim);
	}
	pthread_mutex_unlock(&engine->lock);
}

static void claims_listed(void *context)
{
	struct engine *engine = context;
	struct claim_entry *entry, *next;

	pthread_mutex_lock(&engine->lock);
	HASH_ITER(hh, engine->devices->claims, entry, next)
	{
		if (!entry->seen)
			claim_remove(engine, entry);
	}
	list_is_here(engine, LIST_CLAIMS);
	pthread_mutex_unlock(&engine->lock);
}

static void absent(struct engine *engine, int list)
{
	pthread_mutex_lock(&engine->lock);
	if (!engine->devices->absent_told)
		log_line(
			LOG_INFO,
			"Kubernetes: devices (resource.k8s.io/v1) are not served, or this account may not read them: claims are refused");
	engine->devices->absent_told = true;
	list_is_here(engine, list);
	pthread_mutex_unlock(&engine->lock);
}

static void slices_absent(void *context)
{
	absent(context, LIST_SLICES);
}

static void classes_absent(void *context)
{
	absent(context, LIST_CLASSES);
}

static void claims_absent(void *context)
{
	absent(context, LIST_CLAIMS);
}

static void paused(void *context)
{
	cluster_paused(context);
}

#define API "/apis/resource.k8s.io/v1/"

void devices_start(struct engine *engine)
{
	const struct watch_options options[DEVICE_LISTS] = {
		[LIST_SLICES] = { .path = API "resourceslices",
				  .begin = slices_begin,
				  .object = slice_came,
				  .listed = slices_listed,
				  .absent = slices_absent },
		[LIST_CLASSES] = { .path = API "deviceclasses",
				   .begin = classes_begin,
				   .object = class_came,
				   .listed = classes_listed,
				   .absent = classes_absent },
		[LIST_CLAIMS] = { .path = API "resourceclaims",
				  .begin = claims_begin,
				  .object = claim_came,
				  .listed = claims_listed,
				  .absent = claims_absent },
	};
	struct devices *devices = calloc(1, sizeof(*devices));

	CHECK(devices);
	arena_init(&devices->arena, QUESTION_BYTES);
	engine->devices = devices;
	for (int i = 0; i < DEVICE_LISTS; i++) {
		struct watch_options own = options[i];

		own.context = engine;
		own.pause = paused;
		devices->watches[i] = watch_create(engine->client, &own);
	}
}

void devices_deinit(struct engine *engine)
{
	struct devices *devices = engine->devices;
	struct claim_entry *claim, *next_claim;
	struct gpu_table *table, *next_table;

	if (!devices)
		return;
	HASH_ITER(hh, devices->claims, claim, next_claim)
	{
		claim_remove(engine, claim);
	}
	HASH_ITER(hh, devices->tables, table, next_table)
	{
		for (uint32_t i = 0; i < table->count; i++)
			free(table->keys[i]);
		HASH_DEL(devices->tables, table);
		free(table);
	}
	devices_kinds_clear(engine);
	for (int i = 0; i < DEVICE_LISTS; i++)
		watch_destroy(devices->watches[i]);
	dra_inventory_deinit(&devices->inventory);
	arena_deinit(&devices->arena);
	free(devices);
	engine->devices = NULL;
}
