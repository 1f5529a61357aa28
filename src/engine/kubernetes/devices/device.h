/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects of resource.k8s.io/v1 as the API server has them: ResourceSlices with the devices that drivers publish, DeviceClasses, and
 * ResourceClaims. Each is one arena with its struct, and does not change after it was read.
 *
 * Something in an object that is not built here makes what it concerns of no use, with a name: a device has `odd`, a request, claim or class
 * has `problem`. Nothing is passed over in silence, but for what says nothing of which devices are chosen.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "engine/kubernetes/cel/cel.h"
#include "engine/kubernetes/cel/value.h"

struct placed_node;

/* What is more than that is refused; the first four are Kubernetes' own limits. */
enum {
	DRA_DEVICES_MAX = 128, /* of a slice */
	DRA_REQUESTS_MAX = 32, /* of a claim; constraints and selectors too */
	DRA_CHOICES_MAX = 8, /* of firstAvailable */
	DRA_RESULTS_MAX = 32, /* devices of a claim */
	DRA_FIELDS_MAX =
		64, /* attributes and capacities of a device, each; Kubernetes has 32 of both */
	DRA_COUNTERS_MAX = 64, /* of a set; sets of a slice, sets that a device uses */
	DRA_CONSUMERS_MAX = 256, /* of a claim */
	DRA_OBJECT_MAX = 2 << 20, /* bytes of JSON */
	DRA_CONFIGS_MAX = 64,
	DRA_CONDITIONS_MAX =
		16, /* of a device; Kubernetes has 4 to wait for, and 8 that are said */
};

/* Which nodes have it. Kubernetes lets one of these be said. */
struct dra_where {
	const char *node; /* of this name; NULL = not said */
	bool all;
	const void *selector; /* block of a node selector, with its terms; NULL = not said */
	uint32_t terms;
};
/* Whether the node is one of them. `placed` is asked for selectors alone; NULL = its labels are not known, and no selector fits. */
bool dra_where_has(const struct dra_where *where, const char *node,
		   const struct placed_node *placed);

struct dra_counter {
	const char *name;
	nano128 value;
};
struct dra_counter_set {
	const char *name;
	const struct dra_counter *counters;
	uint32_t count;
};
struct dra_taint {
	const char *key, *value, *effect;
};
/* Of a request. `op`: "" and "Equal" ask for the value, "Exists" does not. */
struct dra_toleration {
	const char *key, *op, *value, *effect;
};

struct dra_device {
	const char *name;
	struct cel_device cel; /* what expressions are asked of */
	const struct dra_counter_set *uses;
	uint32_t use_count;
	const struct dra_taint *taints;
	uint32_t taint_count;
	struct dra_where where; /* where its slice says so by device */
	const char *binding_json,
		*failures_json; /* conditions to wait for, or that it failed: lists as they stand there; NULL = none */
	bool binds_to_node; /* an allocation of it is for the chosen node alone */
	const char *odd; /* why it is never chosen; NULL = it may be */
};

struct dra_slice {
	struct arena arena;
	const char *name, *driver, *pool;
	int64_t generation, slice_count; /* of the pool */
	struct dra_where where;
	bool by_device; /* each device says where it is */
	const struct dra_device *devices;
	uint32_t device_count;
	const struct dra_counter_set *sets;
	uint32_t set_count;
};

/* An expression, compiled; or why it is not. */
struct dra_selector {
	const struct cel_program *program;
	const char *problem;
};
/* opaque: the JSON that stands behind "opaque". */
struct dra_config {
	const char *opaque;
	const char *const *requests; /* of a claim's; none = of all */
	uint32_t request_count;
};

struct dra_class {
	struct arena arena;
	const char *name;
	const struct dra_selector *selectors;
	uint32_t selector_count;
	const struct dra_config *configs;
	uint32_t config_count;
	const char *problem;
};

/* A way to meet a request: `exactly`, or one of firstAvailable. */
struct dra_choice {
	const char *name; /* of the request, or "request/choice" */
	const char *class;
	const struct dra_selector *selectors;
	uint32_t selector_count;
	bool all; /* allocationMode All */
	int64_t count;
	const struct dra_toleration *tolerations;
	uint32_t toleration_count;
	const char *tolerations_json; /* as they stand there; NULL = none */
	const char *problem;
};
struct dra_request {
	const char *name;
	const struct dra_choice *choices; /* one, unless listed */
	uint32_t choice_count;
};
/* All devices of these requests have the same value, or each another one. */
struct dra_constraint {
	const char *const *requests; /* none = of all requests */
	uint32_t request_count;
	const char *domain, *id; /* of the attribute */
	bool distinct;
};

struct dra_result {
	const char *request, *driver, *pool, *device;
	bool admin; /* seen beside others, and takes nothing from them */
	const char *const *binding, *const *failures; /* names of conditions */
	uint32_t binding_count, failure_count;
};
struct dra_condition {
	const char *type, *text;
	bool is; /* "True" */
};
/* What is said of a device that the claim has. */
struct dra_device_status {
	const char *driver, *pool, *device;
	const struct dra_condition *conditions;
	uint32_t condition_count;
};
struct dra_consumer {
	const char *group, *resource, *name, *uid; /* group "" and resource "pods" for pods */
};

struct dra_claim {
	struct arena arena;
	const char *namespace, *name, *uid, *version;
	bool deleting, finalizer; /* Kubernetes' own, which keeps allocated claims */
	const char *owner_pod; /* uid; NULL = no pod owns it */
	const char *finalizers_json; /* others' and it; "[]" where there are none */
	const struct dra_request *requests;
	uint32_t request_count;
	const struct dra_constraint *constraints;
	uint32_t constraint_count;
	const struct dra_config *configs;
	uint32_t config_count;
	uint64_t likeness; /* digest of its spec: claims from one template have the same */
	const char *problem;
	/* status */
	bool allocated;
	const struct dra_result *results;
	uint32_t result_count;
	struct dra_where where; /* the nodes that the allocation can be used on */
	const struct dra_consumer *consumers; /* reservedFor */
	uint32_t consumer_count;
	const struct dra_device_status *statuses;
	uint32_t status_count;
};

enum dra_binding { DRA_BIND_NOW, DRA_BIND_WAIT, DRA_BIND_FAILED };
/* Whether pods with this claim may be bound: else the device that is waited for, or failed, and the condition or what is said of it. */
enum dra_binding dra_claim_binding(const struct dra_claim *claim, const char **ret_device,
				   const char **ret_text);

/* The caller frees what is returned with dra_..._free. */
int dra_slice_read(const char *json, size_t size, struct dra_slice **ret, struct err *err)
	MUST_CHECK;
int dra_class_read(const char *json, size_t size, struct dra_class **ret, struct err *err)
	MUST_CHECK;
int dra_claim_read(const char *json, size_t size, struct dra_claim **ret, struct err *err)
	MUST_CHECK;
void dra_slice_free(struct dra_slice *slice);
void dra_class_free(struct dra_class *class);
void dra_claim_free(struct dra_claim *claim);

#define DRA_FINALIZER "resource.kubernetes.io/delete-protection"
