/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels and taints become text for the core, which keeps so many of them and of such a length. Labels that jobs may ask for come first;
 * what does not fit is left out. A taint that does not fit keeps the node from being used: leaving it out would let in who must not.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/departure.h"
#include "engine/kubernetes/quantity.h"
#include "engine/kubernetes/reading.h"

enum { LABELS_KEPT = 16, TAINTS_KEPT = 8, PAIR_MAX = 63, REMOVAL_MAX_S = 7 * 86400 };

/* Labels that go to the core: those of ours, and what tells nodes apart. Others are too many to be kept. */
static const char *const kept[] = {
	KUBE_DOMAIN,
	"topology.kubernetes.io/",
	"nvidia.com/gpu.product",
	"nvidia.com/gpu.family",
	"nvidia.com/gpu.clique",
	"nvidia.com/cuda.driver.major",
	"node.kubernetes.io/instance-type",
	"kubernetes.io/arch",
	"topology.k8s.aws/",
	"cloud.google.com/gce-topology-",
	"fabric.topograph.run/",
	"accelerator.topograph.run/",
	"pool",
};

/* What NVIDIA's GPU feature discovery says in parts, under the names of its releases. */
enum version_kind { VERSION_DRIVER, VERSION_CUDA, VERSION_COMPUTE, VERSIONS };
enum { VERSION_PARTS = 3 };
static const struct {
	const char *key;
	enum version_kind kind;
	uint32_t part;
} version_labels[] = {
	{ "nvidia.com/cuda.driver.major", VERSION_DRIVER, 0 },
	{ "nvidia.com/cuda.driver.minor", VERSION_DRIVER, 1 },
	{ "nvidia.com/cuda.driver.rev", VERSION_DRIVER, 2 },
	{ "nvidia.com/cuda.driver-version.major", VERSION_DRIVER, 0 },
	{ "nvidia.com/cuda.driver-version.minor", VERSION_DRIVER, 1 },
	{ "nvidia.com/cuda.driver-version.revision", VERSION_DRIVER, 2 },
	{ "nvidia.com/cuda.runtime.major", VERSION_CUDA, 0 },
	{ "nvidia.com/cuda.runtime.minor", VERSION_CUDA, 1 },
	{ "nvidia.com/cuda.runtime-version.major", VERSION_CUDA, 0 },
	{ "nvidia.com/cuda.runtime-version.minor", VERSION_CUDA, 1 },
	{ "nvidia.com/gpu.compute.major", VERSION_COMPUTE, 0 },
	{ "nvidia.com/gpu.compute.minor", VERSION_COMPUTE, 1 },
};

struct labels {
	const struct engine_level_labels *places;
	char parts[84]; /* the label by which nvidia.com/gpu are parts; "" = none */
	uint32_t count, pool; /* place of the label that said its pool */
	char version[VERSIONS][VERSION_PARTS][16];
};

/* The core's words have no comma, and no "=" but the one. */
static bool list_add(char list[KUBE_LABELS_MAX + 1], uint32_t most, uint32_t *count,
		     const char *key, const char *value)
{
	size_t used = strlen(list), size = strlen(key) + (*value ? strlen(value) + 1 : 0);

	if (*count == most || size > PAIR_MAX || used + size + 1 > KUBE_LABELS_MAX ||
	    strpbrk(key, ",=") || strpbrk(value, ",="))
		return false;
	snprintf(list + used, KUBE_LABELS_MAX + 1 - used, "%s%s%s%s", used ? "," : "", key,
		 *value ? "=" : "", value);
	(*count)++;
	return true;
}

bool node_label_is_kept(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (strncmp(key, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

/* How providers and Karpenter say that a node may be taken away at any time. */
static const struct {
	const char *key, *value;
} spot_labels[] = {
	{ "karpenter.sh/capacity-type", "spot" },
	{ "eks.amazonaws.com/capacityType", "SPOT" },
	{ "cloud.google.com/gke-spot", "true" },
	{ "cloud.google.com/gke-preemptible", "true" },
	{ "kubernetes.azure.com/scalesetpriority", "spot" },
	{ "fairlead.dev/capacity", "spot" },
};

/* By which label a node says its pool: ours, those of providers and Karpenter. The first that it has counts. */
static const char *const pool_labels[] = { "fairlead.dev/pool",
					   "karpenter.sh/nodepool",
					   "cloud.google.com/gke-nodepool",
					   "eks.amazonaws.com/nodegroup",
					   "kubernetes.azure.com/agentpool",
					   "pool" };

/* Who places work there, and in which pool that is. */
static void read_authority(const char *key, const char *value, struct kube_node *node,
			   struct labels *labels)
{
	if (strcmp(key, KUBE_LABEL_AUTHORITY) == 0) {
		snprintf(node->authority, sizeof(node->authority), "%.63s", value);
		if (*value && strcmp(value, KUBE_SCHEDULER) != 0)
			snprintf(node->problem, sizeof(node->problem),
				 "its label " KUBE_LABEL_AUTHORITY
				 " says that %.63s places work there",
				 value);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(pool_labels); i++)
		if (strcmp(key, pool_labels[i]) == 0 && (!node->pool[0] || i < labels->pool)) {
			snprintf(node->pool, sizeof(node->pool), "%.63s", value);
			labels->pool = i;
		}
}

/* Time-slices, MPS and MIG devices can be published under the name of whole GPUs. NVIDIA's GPU feature discovery then adds to the product's name,
 * and GKE has labels of its own. */
static bool gpus_are_parts(const char *key, const char *value)
{
	static const char shared[] = "-SHARED";
	size_t size = strlen(value);

	if (strcmp(key, "nvidia.com/gpu.product") == 0)
		return strstr(value, "-MIG-") ||
		       (size >= sizeof(shared) &&
			strcmp(value + size - (sizeof(shared) - 1), shared) == 0);
	return (strcmp(key, "cloud.google.com/gke-gpu-sharing-strategy") == 0 ||
		strcmp(key, "cloud.google.com/gke-gpu-partition-size") == 0) &&
	       size;
}

/* "300" or "wait"; what is neither is as if it were not said. 0 is a second: the word of whoever removes nodes there is trusted. */
static int64_t removal_of(const char *text)
{
	int64_t milli;

	if (strcmp(text, "wait") == 0)
		return -1;
	if (quantity_parse(text, &milli) < 0 || milli < 0 || milli > REMOVAL_MAX_S * INT64_C(1000))
		return 0;
	return milli < 1000 ? 1 : milli / 1000;
}

static void read_label(struct json_reader *r, const char *key, struct kube_node *node,
		       struct labels *labels)
{
	char value[KUBE_TEXT_MAX];

	read_cut(r, value, sizeof(value));
	places_read(&node->places, labels->places, key, value);
	read_authority(key, value, node, labels);
	if (gpus_are_parts(key, value))
		snprintf(labels->parts, sizeof(labels->parts), "%.42s=%.40s", key, value);
	if (strcmp(key, KUBE_LABEL_REMOVAL) == 0)
		node->removal_s = removal_of(value);
	if (strcmp(key, "nvidia.com/gpu.product") == 0)
		memcpy(node->product, value, sizeof(value));
	for (size_t i = 0; i < ARRAY_SIZE(version_labels); i++)
		if (strcmp(key, version_labels[i].key) == 0)
			snprintf(labels->version[version_labels[i].kind][version_labels[i].part],
				 sizeof(labels->version[0][0]), "%.15s", value);
	if (strcmp(key, "nvidia.com/gpu.memory") == 0) {
		int64_t milli;

		if (quantity_parse(value, &milli) == 0 && milli > 0)
			node->gpu_memory_mib = milli / 1000;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(spot_labels); i++)
		if (strcmp(key, spot_labels[i].key) == 0 &&
		    strcmp(value, spot_labels[i].value) == 0)
			node->spot = true;
	if (*value && node_label_is_kept(key))
		(void)list_add(node->labels, LABELS_KEPT, &labels->count, key, value);
}

/* "550.54.15" */
static void version_put(char parts[VERSION_PARTS][16], char ret[KUBE_WORD_MAX])
{
	size_t used = 0;

	for (uint32_t i = 0; i < VERSION_PARTS && parts[i][0]; i++)
		used += (size_t)snprintf(ret + used, KUBE_WORD_MAX - used, "%s%s", i ? "." : "",
					 parts[i]);
}

static void read_labels(struct json_reader *r, const struct engine_level_labels *places,
			struct kube_node *node)
{
	struct labels labels = { .places = places };
	struct json_slice key;
	char name[KUBE_NAME_MAX];

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (key.size >= sizeof(name) || key.escaped) {
			pull_skip(r);
			continue;
		}
		memcpy(name, key.data, key.size);
		name[key.size] = '\0';
		read_label(r, name, node, &labels);
	}
	version_put(labels.version[VERSION_DRIVER], node->driver);
	version_put(labels.version[VERSION_CUDA], node->cuda);
	version_put(labels.version[VERSION_COMPUTE], node->compute);
	if (labels.parts[0]) {
		node->parts = true;
		snprintf(node->problem, sizeof(node->problem),
			 "its nvidia.com/gpu are parts of GPUs, says label %s (docs/kubernetes.md)",
			 labels.parts);
	}
}

static void read_metadata(struct json_reader *r, const struct engine_level_labels *places,
			  struct kube_node *node)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "name")) {
			read_cut(r, node->name, sizeof(node->name));
		} else if (pull_key_is(&key, "labels")) {
			read_labels(r, places, node);
		} else if (pull_key_is(&key, "deletionTimestamp")) {
			node->deleting = pull_peek(r) == PULL_STRING;
			pull_skip(r);
		} else {
			pull_skip(r);
		}
	}
}

/* Kubernetes' own say what is known already: not ready, cordoned. Pods that ask for GPUs tolerate that of the GPUs. */
static bool taint_matters(const char *key, const char *effect)
{
	return strcmp(effect, "PreferNoSchedule") != 0 &&
	       strcmp(key, "node.kubernetes.io/not-ready") != 0 &&
	       strcmp(key, "node.kubernetes.io/unreachable") != 0 &&
	       strcmp(key, "node.kubernetes.io/unschedulable") != 0 && strcmp(key, KUBE_GPU) != 0;
}

static void read_taint(struct json_reader *r, struct kube_node *node, uint32_t *count)
{
	char name[KUBE_NAME_MAX] = "", value[KUBE_TEXT_MAX] = "", effect[KUBE_WORD_MAX] = "";
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "key"))
			read_cut(r, name, sizeof(name));
		else if (pull_key_is(&key, "value"))
			read_cut(r, value, sizeof(value));
		else if (pull_key_is(&key, "effect"))
			read_cut(r, effect, sizeof(effect));
		else
			pull_skip(r);
	}
	node->off |= strcmp(name, KUBE_TAINT_OFF) == 0;
	if (taint_matters(name, effect) && !departure_read(node, name, value) &&
	    !list_add(node->taints, TAINTS_KEPT, count, name, value))
		snprintf(node->problem, sizeof(node->problem),
			 "its taint %.60s is longer than Fairlead keeps, or one of too many", name);
}

static void read_spec(struct json_reader *r, struct kube_node *node)
{
	struct json_slice key;
	uint32_t taints = 0;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "unschedulable")) {
			pull_bool(r, &node->cordoned);
		} else if (pull_key_is(&key, "taints")) {
			if (enter_array(r))
				while (pull_element(r))
					read_taint(r, node, &taints);
		} else {
			pull_skip(r);
		}
	}
}

static void read_condition(struct json_reader *r, struct kube_node *node)
{
	char type[KUBE_WORD_MAX] = "", status[KUBE_WORD_MAX] = "";
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "type"))
			read_cut(r, type, sizeof(type));
		else if (pull_key_is(&key, "status"))
			read_cut(r, status, sizeof(status));
		else
			pull_skip(r);
	}
	if (strcmp(type, "Ready") == 0)
		node->ready = strcmp(status, "True") == 0;
}

static void read_status(struct json_reader *r, struct kube_node *node)
{
	struct json_slice key;

	if (!enter_object(r))
		return;
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "allocatable")) {
			read_resources(r, &node->room, &node->pods);
		} else if (pull_key_is(&key, "conditions")) {
			if (enter_array(r))
				while (pull_element(r))
					read_condition(r, node);
		} else {
			pull_skip(r);
		}
	}
}

int node_read(const char *json, size_t size, const struct engine_level_labels *places,
	      struct kube_node *ret, struct err *err)
{
	struct object_parts parts;
	int rc;

	memset(ret, 0, sizeof(*ret));
	rc = object_parts_read(json, size, &parts, err);
	if (rc < 0)
		return rc;
	read_metadata(&parts.metadata, places, ret);
	if (pull_finish(&parts.metadata, err) < 0)
		return -(int)ERR_INVALID;
	if (!ret->name[0])
		return err_set(err, ERR_INVALID, "a node has no name");
	read_spec(&parts.spec, ret);
	ret->unclear = pull_finish(&parts.spec, NULL) < 0;
	read_status(&parts.status, ret);
	ret->unclear |= pull_finish(&parts.status, NULL) < 0;
	if (ret->parts)
		ret->room.gpus = 0;
	return 0;
}
