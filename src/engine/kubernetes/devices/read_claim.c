/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceClaims: what they ask for, what was allocated, and who may use it. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/devices/reading.h"
#include "engine/kubernetes/predicates/block.h"
#include "engine/kubernetes/reading.h"

enum { ARENA_MOST = 1 << 30, TOLERATIONS_MAX = 64, FINALIZERS_MAX = 64, OWNERS_MAX = 64 };

struct walk {
	struct json_reader *r;
	struct arena *arena;
	struct dra_claim *claim;
};

/* --- what it asks for ---------------------------------------------------------------------------------------------------- */

static void read_tolerations(struct walk *w, struct dra_choice *choice)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_toleration *t = grow(w->r, w->arena, &list, sizeof(*t), TOLERATIONS_MAX);

		if (!t || !enter_object(w->r))
			return;
		*t = (struct dra_toleration){ "", "", "", "" };
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "key"))
				t->key = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "operator"))
				t->op = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "value"))
				t->value = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "effect"))
				t->effect = dra_text(w->r, w->arena);
			else
				pull_skip(w->r);
		}
	}
	choice->tolerations = list.items;
	choice->toleration_count = list.count;
}

/* A member of a request or a choice of it. What says which devices and is not known is a problem. */
static void read_choice_key(struct walk *w, const struct json_slice *key, struct dra_choice *choice)
{
	if (pull_key_is(key, "deviceClassName")) {
		choice->class = dra_text(w->r, w->arena);
	} else if (pull_key_is(key, "selectors")) {
		dra_selectors(w->r, w->arena, &choice->selectors, &choice->selector_count);
	} else if (pull_key_is(key, "allocationMode")) {
		const char *mode = dra_text(w->r, w->arena);

		choice->all = strcmp(mode, "All") == 0;
		if (!choice->all && strcmp(mode, "ExactCount") != 0 && *mode)
			choice->problem = arena_printf(w->arena, "allocationMode %.40s", mode);
	} else if (pull_key_is(key, "count")) {
		choice->count = read_int64(w->r, 0);
	} else if (pull_key_is(key, "adminAccess")) {
		if (read_flag(w->r))
			choice->problem = "adminAccess";
	} else if (pull_key_is(key, "tolerations")) {
		const char *at;

		(void)pull_peek(w->r);
		at = w->r->at;
		read_tolerations(w, choice);
		if (!w->r->problem && choice->toleration_count)
			choice->tolerations_json =
				arena_strndup(w->arena, at, (size_t)(w->r->at - at));
	} else if (pull_key_is(key, "capacity")) {
		if (pull_peek(w->r) == PULL_OBJECT)
			choice->problem = "a part of a device's capacity";
		pull_skip(w->r);
	} else {
		pull_skip(w->r);
	}
}

static void choice_init(struct dra_choice *choice)
{
	choice->name = choice->class = "";
	choice->count = 1;
}

static void choice_check(struct walk *w, struct dra_choice *choice)
{
	if (choice->problem)
		return;
	if (!*choice->class)
		choice->problem = "a request without a device class";
	else if (!choice->all && (choice->count < 1 || choice->count > DRA_RESULTS_MAX))
		choice->problem = arena_printf(w->arena, "%lld devices; the most is %d",
					       (long long)choice->count, DRA_RESULTS_MAX);
}

static void read_choices(struct walk *w, struct dra_request *request)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_choice *choice =
			grow(w->r, w->arena, &list, sizeof(*choice), DRA_CHOICES_MAX);

		if (!choice || !enter_object(w->r))
			return;
		choice_init(choice);
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "name"))
				choice->name = dra_text(w->r, w->arena);
			else
				read_choice_key(w, &key, choice);
		}
		choice_check(w, choice);
	}
	request->choices = list.items;
	request->choice_count = list.count;
}

static void read_request(struct walk *w, struct dra_request *request)
{
	struct dra_choice *exactly = arena_new(w->arena, struct dra_choice);
	struct json_slice key;
	bool listed = false;

	request->name = "";
	request->choices = exactly;
	request->choice_count = 1;
	choice_init(exactly);
	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "name")) {
			request->name = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "firstAvailable") && pull_peek(w->r) == PULL_ARRAY) {
			read_choices(w, request);
			listed = request->choice_count > 0;
		} else if (pull_key_is(&key, "exactly") && pull_peek(w->r) == PULL_OBJECT) {
			pull_object(w->r);
			while (pull_member(w->r, &key))
				read_choice_key(w, &key, exactly);
		} else {
			pull_skip(w->r);
		}
	}
	exactly->name = request->name;
	choice_check(w, exactly);
	for (uint32_t i = 0; listed && i < request->choice_count; i++) {
		struct dra_choice *choice = (struct dra_choice *)(uintptr_t)&request->choices[i];

		choice->name = arena_printf(w->arena, "%s/%s", request->name, choice->name);
	}
	if (!request->choice_count) {
		request->choices = exactly;
		request->choice_count = 1;
	}
}

static void read_requests(struct walk *w)
{
	struct grown list = { 0 };

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_request *request =
			grow(w->r, w->arena, &list, sizeof(*request), DRA_REQUESTS_MAX);

		if (!request)
			return;
		read_request(w, request);
	}
	w->claim->requests = list.items;
	w->claim->request_count = list.count;
}

static void read_constraints(struct walk *w)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_constraint *c =
			grow(w->r, w->arena, &list, sizeof(*c), DRA_REQUESTS_MAX);

		if (!c || !enter_object(w->r))
			return;
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "requests")) {
				dra_texts(w->r, w->arena, &c->requests, &c->request_count,
					  DRA_REQUESTS_MAX * DRA_CHOICES_MAX);
			} else if (pull_key_is(&key, "matchAttribute") ||
				   pull_key_is(&key, "distinctAttribute")) {
				c->distinct = pull_key_is(&key, "distinctAttribute");
				dra_split(w->arena, dra_text(w->r, w->arena), &c->domain, &c->id);
			} else {
				pull_skip(w->r);
			}
		}
		if (!c->id || !*c->id)
			w->claim->problem = "a constraint that is neither matchAttribute nor "
					    "distinctAttribute";
	}
	w->claim->constraints = list.items;
	w->claim->constraint_count = list.count;
}

static uint64_t likeness_of(const char *text, size_t size)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
	return hash;
}

static void read_spec(struct walk *w)
{
	struct json_slice key;
	const char *at;

	(void)pull_peek(w->r);
	at = w->r->at;
	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (!pull_key_is(&key, "devices")) {
			w->claim->problem = "a claim for something else than devices";
			pull_skip(w->r);
			continue;
		}
		if (!enter_object(w->r))
			continue;
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "requests"))
				read_requests(w);
			else if (pull_key_is(&key, "constraints"))
				read_constraints(w);
			else if (pull_key_is(&key, "config"))
				dra_configs(w->r, w->arena, &w->claim->configs,
					    &w->claim->config_count, &w->claim->problem);
			else
				pull_skip(w->r);
		}
	}
	w->claim->likeness = likeness_of(at, (size_t)(w->r->at - at));
}

/* --- what it has --------------------------------------------------------------------------------------------------------- */

static void read_results(struct walk *w)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_result *result =
			grow(w->r, w->arena, &list, sizeof(*result), DRA_RESULTS_MAX);

		if (!result || !enter_object(w->r))
			return;
		*result = (struct dra_result){
			.request = "", .driver = "", .pool = "", .device = ""
		};
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "request"))
				result->request = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "driver"))
				result->driver = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "pool"))
				result->pool = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "device"))
				result->device = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "adminAccess"))
				result->admin = read_flag(w->r);
			else if (pull_key_is(&key, "bindingConditions"))
				dra_texts(w->r, w->arena, &result->binding, &result->binding_count,
					  DRA_CONDITIONS_MAX);
			else if (pull_key_is(&key, "bindingFailureConditions"))
				dra_texts(w->r, w->arena, &result->failures, &result->failure_count,
					  DRA_CONDITIONS_MAX);
			else
				pull_skip(w->r);
		}
	}
	w->claim->results = list.items;
	w->claim->result_count = list.count;
}

static void read_allocation(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	w->claim->allocated = true;
	w->claim->where.all = true;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "nodeSelector")) {
			dra_node_selector(w->r, w->arena, &w->claim->where);
			w->claim->where.all = !w->claim->where.selector;
		} else if (pull_key_is(&key, "devices") && enter_object(w->r)) {
			while (pull_member(w->r, &key)) {
				if (pull_key_is(&key, "results"))
					read_results(w);
				else
					pull_skip(w->r);
			}
		} else if (!pull_key_is(&key, "devices")) {
			pull_skip(w->r);
		}
	}
}

static void read_consumers(struct walk *w)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_consumer *c = grow(w->r, w->arena, &list, sizeof(*c), DRA_CONSUMERS_MAX);

		if (!c || !enter_object(w->r))
			return;
		*c = (struct dra_consumer){ "", "", "", "" };
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "apiGroup"))
				c->group = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "resource"))
				c->resource = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "name"))
				c->name = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "uid"))
				c->uid = dra_text(w->r, w->arena);
			else
				pull_skip(w->r);
		}
	}
	w->claim->consumers = list.items;
	w->claim->consumer_count = list.count;
}

static void read_conditions(struct walk *w, struct dra_device_status *status)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_condition *c =
			grow(w->r, w->arena, &list, sizeof(*c), DRA_CONDITIONS_MAX);

		if (!c || !enter_object(w->r))
			return;
		*c = (struct dra_condition){ "", "", false };
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "type"))
				c->type = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "status"))
				c->is = strcmp(dra_text(w->r, w->arena), "True") == 0;
			else if (pull_key_is(&key, "message"))
				c->text = dra_text(w->r, w->arena);
			else
				pull_skip(w->r);
		}
	}
	status->conditions = list.items;
	status->condition_count = list.count;
}

static void read_device_statuses(struct walk *w)
{
	struct grown list = { 0 };
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		struct dra_device_status *status =
			grow(w->r, w->arena, &list, sizeof(*status), DRA_RESULTS_MAX);

		if (!status || !enter_object(w->r))
			return;
		*status = (struct dra_device_status){ .driver = "", .pool = "", .device = "" };
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "driver"))
				status->driver = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "pool"))
				status->pool = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "device"))
				status->device = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "conditions"))
				read_conditions(w, status);
			else
				pull_skip(w->r);
		}
	}
	w->claim->statuses = list.items;
	w->claim->status_count = list.count;
}

static void read_status(struct walk *w)
{
	struct json_slice key;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "allocation"))
			read_allocation(w);
		else if (pull_key_is(&key, "reservedFor"))
			read_consumers(w);
		else if (pull_key_is(&key, "devices"))
			read_device_statuses(w);
		else
			pull_skip(w->r);
	}
}

/* --- who it is --------------------------------------------------------------------------------------------------------------- */

static void read_owners(struct walk *w)
{
	struct json_slice key;

	if (!enter_array(w->r))
		return;
	while (pull_element(w->r)) {
		const char *kind = "", *uid = "";

		if (!enter_object(w->r))
			return;
		while (pull_member(w->r, &key)) {
			if (pull_key_is(&key, "kind"))
				kind = dra_text(w->r, w->arena);
			else if (pull_key_is(&key, "uid"))
				uid = dra_text(w->r, w->arena);
			else
				pull_skip(w->r);
		}
		if (strcmp(kind, "Pod") == 0 && *uid)
			w->claim->owner_pod = uid;
	}
}

static void read_metadata(struct walk *w)
{
	struct dra_claim *claim = w->claim;
	struct json_slice key;
	const char *const *finalizers = NULL;
	uint32_t count = 0;

	if (!enter_object(w->r))
		return;
	while (pull_member(w->r, &key)) {
		if (pull_key_is(&key, "name")) {
			claim->name = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "namespace")) {
			claim->namespace = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "uid")) {
			claim->uid = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "resourceVersion")) {
			claim->version = dra_text(w->r, w->arena);
		} else if (pull_key_is(&key, "deletionTimestamp")) {
			claim->deleting = pull_peek(w->r) == PULL_STRING;
			pull_skip(w->r);
		} else if (pull_key_is(&key, "finalizers") && pull_peek(w->r) == PULL_ARRAY) {
			const char *at = w->r->at;

			dra_texts(w->r, w->arena, &finalizers, &count, FINALIZERS_MAX);
			if (!w->r->problem)
				claim->finalizers_json =
					arena_strndup(w->arena, at, (size_t)(w->r->at - at));
		} else if (pull_key_is(&key, "ownerReferences")) {
			read_owners(w);
		} else {
			pull_skip(w->r);
		}
	}
	for (uint32_t i = 0; i < count; i++)
		claim->finalizer |= strcmp(finalizers[i], DRA_FINALIZER) == 0;
}

int dra_claim_read(const char *json, size_t size, struct dra_claim **ret, struct err *err)
{
	struct dra_claim *claim = calloc(1, sizeof(*claim));
	struct json_slice key;
	struct json_reader r;
	struct walk w = { .r = &r, .claim = claim };
	int rc;

	CHECK(claim);
	arena_init(&claim->arena, ARENA_MOST);
	w.arena = &claim->arena;
	claim->namespace = claim->name = claim->uid = claim->version = "";
	claim->finalizers_json = "[]";
	pull_init(&r, json, size > DRA_OBJECT_MAX ? 0 : size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "metadata"))
			read_metadata(&w);
		else if (pull_key_is(&key, "spec"))
			read_spec(&w);
		else if (pull_key_is(&key, "status"))
			read_status(&w);
		else
			pull_skip(&r);
	}
	rc = dra_finish(&r, size, "ResourceClaim", claim->name, err);
	if (rc < 0)
		dra_claim_free(claim);
	else
		*ret = claim;
	return rc;
}

void dra_claim_free(struct dra_claim *claim)
{
	if (!claim)
		return;
	arena_deinit(&claim->arena);
	free(claim);
}
