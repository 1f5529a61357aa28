/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceSlices and DeviceClasses. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/devices/reading.h"
#include "engine/kubernetes/predicates/block.h"
#include "engine/kubernetes/reading.h"

/* Room for what such an object says many times over: expressions become trees. */
enum { ARENA_MOST = 1 << 30, TAINTS_MAX = 32 };

/* --- devices --------------------------------------------------------------------------------------------------------- */

struct walk {
	struct json_reader *r;
	struct arena *arena;
	const char *driver;
};

static void read_attribute(struct walk *w, struct dra_device *device, struct cel_attribute *a)
{
	struct json_slice key;
	bool known = false, strange = false;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		known = true;
		if (pull_key_is(&key, "bool")) {
			a->kind = CEL_BOOL;
			a->truth = read_flag(w->r);
		} else if (pull_key_is(&key, "int")) {
			a->kind = CEL_INT;
			a->number = read_int64(w->r, 0);
		} else if (pull_key_is(&key, "string") || pull_key_is(&key, "version")) {
			a->kind = pull_key_is(&key, "string") ? CEL_STRING : CEL_VERSION;
			a->text = dra_text(w->r, w->arena);
		} else {
			strange = true;
			pull_skip(w->r);
		}
	}
	if (!known || strange)
		device->odd =
			arena_printf(w->arena, "attribute %.80s is of a kind not read here", a->id);
}

static void read_attributes(struct walk *w, struct dra_device *device)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		struct cel_attribute *a = grow(w->r, w->arena, &list, sizeof(*a), DRA_FIELDS_MAX);

		if (!a)
			return;
		*a = (struct cel_attribute){ .kind = CEL_STRING, .text = "" };
		dra_split(w->arena, dra_key(w->r, w->arena, &key), &a->domain, &a->id);
		read_attribute(w, device, a);
	}
	device->cel.attributes = list.items;
	device->cel.attribute_count = list.count;
}

static const char *read_value(struct walk *w)
{
	const char *value = "";
	struct json_slice key;

	if (!enter_object(w->r))
		return value;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "value"))
			value = pull_peek(w->r) == PULL_NUMBER ? dra_raw(w->r, w->arena)
							       : dra_text(w->r, w->arena);
		else
			pull_skip(w->r);
	}
	return value;
}

static void read_capacities(struct walk *w, struct dra_device *device)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		struct cel_capacity *c = grow(w->r, w->arena, &list, sizeof(*c), DRA_FIELDS_MAX);

		if (!c)
			return;
		dra_split(w->arena, dra_key(w->r, w->arena, &key), &c->domain, &c->id);
		c->quantity = read_value(w);
	}
	device->cel.capacities = list.items;
	device->cel.capacity_count = list.count;
}

/* False: an amount that can't be read exactly. */
static bool read_counters(struct walk *w, struct dra_counter_set *set)
{
	struct grown list = { 0 };
	struct json_slice key;
	bool exact = true;

	if (!enter_object(w->r))
		return true;
	while (pull_member(w->r, &key)) {
		struct dra_counter *c = grow(w->r, w->arena, &list, sizeof(*c), DRA_COUNTERS_MAX);
		enum wholeness whole;
		const char *text;

		if (!c)
			return false;
		c->name = dra_key(w->r, w->arena, &key);
		text = read_value(w);
		exact &= quantity_read(&(struct string){ text, strlen(text) }, &c->value, &whole) ==
			 0;
	}
	set->counters = list.items;
	set->count = list.count;
	return exact;
}

static bool read_counter_sets(struct walk *w, const char *name_key,
			      const struct dra_counter_set **ret, uint32_t *count)
{
	struct grown list = { 0 };
	struct json_slice key;
	bool exact = true;

	if (!enter_array(w->r))
		return true;
	while (pull_element(w->r)) {
		struct dra_counter_set *set =
			grow(w->r, w->arena, &list, sizeof(*set), DRA_COUNTERS_MAX);

		if (!set || !enter_object(w->r))
			return false;
		set->name = "";
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, name_key))
				set->name = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "counters"))
				exact &= read_counters(w, set);
			else
				pull_skip(w->r);
		}
	}
	*ret = list.items;
	*count = list.count;
	return exact;
}

static void read_taints(struct walk *w, struct dra_device *device)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_taint *taint = grow(w->r, w->arena, &list, sizeof(*taint), TAINTS_MAX);

		if (!taint || !enter_object(w->r))
			return;
		*taint = (struct dra_taint){ "", "", "" };
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "key"))
				taint->key = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "value"))
				taint->value = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "effect"))
				taint->effect = dra_text(w->r, w->arena);
			else
				pull_skip(w->r);
		}
	}
	device->taints = list.items;
	device->taint_count = list.count;
}

/* As it stands there; NULL = there is none, or nothing in it. */
static const char *read_list(struct walk *w)
{
	const char *at = (pull_peek(w->r), w->r->at);
	uint32_t count = 0;

	if (!enter_array(w->r))
		return NULL;
	for (; pull_element(w->r); count++)
		pull_skip(w->r);
	return count && !w->r->problem ? arena_strndup(w->arena, at, (size_t)(w->r->at - at))
				       : NULL;
}

static void read_device(struct walk *w, struct dra_device *device)
{
	struct json_slice key;

	device->name = "";
	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "name")) {
			device->name = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "attributes")) {
			read_attributes(w, device);
		} else if (pull_key_is(&key, "capacity")) {
			read_capacities(w, device);
		} else if (pull_key_is(&key, "consumesCounters")) {
			if (!read_counter_sets(w, "counterSet", &device->uses, &device->use_count))
				device->odd = "a counter that can't be read";
		} else if (pull_key_is(&key, "taints")) {
			read_taints(w, device);
		} else if (pull_key_is(&key, "allowMultipleAllocations")) {
			device->cel.many_allocations = read_flag(w->r);
			if (device->cel.many_allocations)
				device->odd = "it may be allocated many times over";
		} else if (pull_key_is(&key, "bindingConditions")) {
			device->binding_json = read_list(w);
		} else if (pull_key_is(&key, "bindingFailureConditions")) {
			device->failures_json = read_list(w);
		} else if (pull_key_is(&key, "bindsToNode")) {
			device->binds_to_node = read_flag(w->r);
		} else if (!dra_where_key(w->r, w->arena, &key, &device->where)) {
			pull_skip(w->r);
		}
	}
	if (!*device->name)
		device->odd = "it has no name";
}

/* --- slices ------------------------------------------------------------------------------------------------------------ */

static void read_devices(struct walk *w, struct dra_slice *slice)
{
	struct grown list = { 0 };

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_device *device =
			grow(w->r, w->arena, &list, sizeof(*device), DRA_DEVICES_MAX);

		if (!device)
			return;
		read_device(w, device);
	}
	slice->devices = list.items;
	slice->device_count = list.count;
}

static void read_pool(struct walk *w, struct dra_slice *slice)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "name"))
			slice->pool = dra_text(w->r, w->arena);
		else if (pull_key_is(&key, "generation"))
			slice->generation = read_int64(w->r, 0);
		else if (pull_key_is(&key, "resourceSliceCount"))
			slice->slice_count = read_int64(w->r, 0);
		else
			pull_skip(w->r);
	}
}

static void read_slice_spec(struct walk *w, struct dra_slice *slice)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "driver")) {
			slice->driver = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "pool")) {
			read_pool(w, slice);
		} else if (pull_key_is(&key, "devices")) {
			read_devices(w, slice);
		} else if (pull_key_is(&key, "sharedCounters")) {
			if (!read_counter_sets(w, "name", &slice->sets, &slice->set_count))
				pull_fail(w->r, "a counter that can't be read");
		} else if (pull_key_is(&key, "perDeviceNodeSelection")) {
			slice->by_device = read_flag(w->r);
		} else if (!dra_where_key(w->r, w->arena, &key, &slice->where)) {
			pull_skip(w->r);
		}
	}
	/* The driver may stand behind the devices. */
	for (uint32_t i = 0; i < slice->device_count; i++) {
		struct dra_device *device = (struct dra_device *)(uintptr_t)&slice->devices[i];

		device->cel.driver = slice->driver;
	}
}

static const char *read_name(struct walk *w)
{
	const char *name = "";
	struct json_slice key;

	if (!enter_object(w->r))
		return name;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "name"))
			name = dra_text(w->r, w->arena);
		else
			pull_skip(w->r);
	}
	return name;
}

int dra_slice_read(const char *json, size_t size, struct dra_slice **ret, struct err *err)
{
	struct dra_slice *slice = calloc(1, sizeof(*slice));
	struct json_slice key;
	struct json_reader r;
	struct walk w = { .r = &r };
	int rc;

	CHECK(slice);
	arena_init(&slice->arena, ARENA_MOST);
	w.arena = &slice->arena;
	slice->name = slice->driver = slice->pool = "";
	pull_init(&r, json, size > DRA_OBJECT_MAX ? 0 : size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			slice->name = read_name(&w);
		else if (pull_key_is(&key, "spec"))
			read_slice_spec(&w, slice);
		else
			pull_skip(&r);
	}
	rc = dra_finish(&r, size, "ResourceSlice", slice->name, err);
	if (rc < 0)
		dra_slice_free(slice);
	else
		*ret = slice;
	return rc;
}

void dra_slice_free(struct dra_slice *slice)
{
	if (!slice)
		return;
	arena_deinit(&slice->arena);
	free(slice);
}

/* --- classes ------------------------------------------------------------------------------------------------------------- */

int dra_class_read(const char *json, size_t size, struct dra_class **ret, struct err *err)
{
	struct dra_class *class = calloc(1, sizeof(*class));
	struct json_slice key;
	struct json_reader r;
	struct walk w = { .r = &r };
	int rc;

	CHECK(class);
	arena_init(&class->arena, ARENA_MOST);
	w.arena = &class->arena;
	class->name = "";
	pull_init(&r, json, size > DRA_OBJECT_MAX ? 0 : size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata")) {
			class->name = read_name(&w);
		} else if (pull_key_is(&key, "spec") && enter_object(&r)) {
			while (pull_member(&r, &key)) {
				if (pull_key_is(&key, "selectors"))
					dra_selectors(&r, w.arena, &class->selectors,
						      &class->selector_count);
				else if (pull_key_is(&key, "config"))
					dra_configs(&r, w.arena, &class->configs,
						    &class->config_count, &class->problem);
				else
					pull_skip(&r);
			}
		} else if (!pull_key_is(&key, "spec")) {
			pull_skip(&r);
		}
	}
	rc = dra_finish(&r, size, "DeviceClass", class->name, err);
	if (rc < 0)
		dra_class_free(class);
	else
		*ret = class;
	return rc;
}

void dra_class_free(struct dra_class *class)
{
	if (!class)
		return;
	arena_deinit(&class->arena);
	free(class);
}
