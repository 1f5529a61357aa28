/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/testing.h"
#include "engine/kubernetes/objects.h"

#include <string.h>

#include "base/buf.h"

static struct kube_pod pod_of(const char *json)
{
	struct kube_pod pod;
	struct err err = { 0 };

	if (pod_read(json, strlen(json), &pod, &err) < 0)
		fail_msg("%s", err.text);
	return pod;
}

static const struct engine_level_labels *own_places; /* NULL = none */

static struct kube_node node_of(const char *json)
{
	struct kube_node node;
	struct err err = { 0 };

	if (node_read(json, strlen(json), own_places, &node, &err) < 0)
		fail_msg("%s", err.text);
	return node;
}

#define POD(spec, status)                                                                          \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u1\"},\"spec\":{" spec        \
	"},\"status\":{" status "}}"

static void what_a_pod_takes_is_what_the_api_server_counts(void **state)
{
	struct kube_pod pod;

	(void)state;
	/* Two containers of 1 and 2 CPUs; a sidecar of 1; one that begins with 5, behind the sidecar; 100m overhead. */
	pod = pod_of(POD(
		"\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"1\",\"memory\":\"1Gi\",\"nvidia.com/gpu\":\"2\"}}},"
		"{\"resources\":{\"requests\":{\"cpu\":2,\"memory\":\"1048577\"}}}],"
		"\"initContainers\":[{\"restartPolicy\":\"Always\",\"resources\":{\"requests\":{\"cpu\":\"1\"}}},"
		"{\"resources\":{\"requests\":{\"cpu\":\"5\"}}}],\"overhead\":{\"cpu\":\"100m\"}",
		""));
	assert_int_equal(pod.use.cpu_milli, 6100);
	assert_int_equal(pod.use.memory_mib, 1026);
	assert_int_equal(pod.use.gpus, 2);
}

static void the_end_of_a_pod_is_that_of_its_main_container(void **state)
{
	struct kube_pod pod;

	(void)state;
	pod = pod_of(POD(
		"\"nodeName\":\"n\"",
		"\"phase\":\"Failed\",\"containerStatuses\":["
		"{\"name\":\"helper\",\"state\":{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}}},"
		"{\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":\"OOMKilled\"}},\"name\":\"main\"}],"
		"\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":\"DeletionByTaintManager\"}]"));
	assert_int_equal(pod.phase, POD_FAILED);
	assert_true(pod.ended);
	assert_int_equal(pod.code, 137);
	assert_string_equal(pod.ended_reason, "OOMKilled");
	assert_string_equal(pod.disruption, "DeletionByTaintManager");
	assert_string_equal(pod.node, "n");
}

static void a_pod_of_ours_says_which_rank_it_is(void **state)
{
	struct kube_pod pod;

	(void)state;
	pod = pod_of(
		"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"deletionTimestamp\":\"2030-01-01T00:00:00Z\","
		"\"finalizers\":[\"x\",\"fairlead.dev/end-recorded\"],\"annotations\":{\"fairlead.dev/node\":\"n7\"},"
		"\"labels\":{\"fairlead.dev/instance\":\"00ff\",\"fairlead.dev/job\":\"12\",\"fairlead.dev/attempt\":\"34\",\"fairlead.dev/rank\":\"5\"}}}");
	assert_string_equal(pod.instance, "00ff");
	assert_int_equal(pod.job, 12);
	assert_int_equal(pod.attempt, 34);
	assert_int_equal(pod.rank, 5);
	assert_string_equal(pod.meant_for, "n7");
	assert_true(pod.deleting && pod.finalizer);
	pod = pod_of(
		"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{\"fairlead.dev/attempt\":\"3x\"}}}");
	assert_true(pod.attempt > UINT32_MAX); /* no number: nobody's */
}

static void a_node_is_read_with_what_matters_of_it(void **state)
{
	struct kube_node node;

	(void)state;
	node = node_of(
		"{\"metadata\":{\"name\":\"n0\",\"labels\":{\"topology.kubernetes.io/zone\":\"a\",\"beta.kubernetes.io/os\":\"linux\","
		"\"nvidia.com/gpu.product\":\"NVIDIA-H100-80GB-HBM3\",\"nvidia.com/gpu.memory\":\"81559\","
		"\"nvidia.com/cuda.driver.major\":\"550\",\"nvidia.com/cuda.driver.minor\":\"54\","
		"\"nvidia.com/cuda.runtime-version.minor\":\"4\",\"nvidia.com/cuda.runtime-version.major\":\"12\","
		"\"nvidia.com/gpu.compute.major\":\"9\"}},"
		"\"spec\":{\"unschedulable\":true,\"taints\":[{\"key\":\"team\",\"value\":\"vision\",\"effect\":\"NoSchedule\"},"
		"{\"key\":\"node.kubernetes.io/unschedulable\",\"effect\":\"NoSchedule\"},{\"key\":\"soft\",\"effect\":\"PreferNoSchedule\"}]},"
		"\"status\":{\"allocatable\":{\"cpu\":\"63500m\",\"memory\":\"1048577Ki\",\"nvidia.com/gpu\":\"8\",\"pods\":\"110\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
	assert_int_equal(node.room.gpus, 8);
	assert_int_equal(node.room.cpu_milli, 63500);
	assert_int_equal(node.room.memory_mib, 1024); /* rounded down */
	assert_int_equal(node.pods, 110);
	assert_string_equal(node.product, "NVIDIA-H100-80GB-HBM3");
	assert_int_equal(node.gpu_memory_mib, 81559);
	assert_string_equal(node.driver, "550.54");
	assert_string_equal(node.cuda, "12.4");
	assert_string_equal(node.compute, "9");
	assert_string_equal(node.taints, "team=vision");
	assert_non_null(strstr(node.labels, "topology.kubernetes.io/zone=a"));
	assert_null(strstr(node.labels, "beta"));
	assert_true(node.ready && node.cordoned);
	assert_string_equal(node.problem, "");
}

static void parts_of_gpus_are_no_gpus(void **state)
{
	static const struct {
		const char *label, *value;
		bool parts;
	} cases[] = {
		{ "nvidia.com/gpu.product", "A100-SXM4-40GB", false },
		{ "nvidia.com/gpu.product", "A100-SXM4-40GB-SHARED", true },
		{ "nvidia.com/gpu.product", "A100-SXM4-40GB-MIG-1g.5gb", true },
		{ "nvidia.com/gpu.product", "A100-SXM4-40GB-MIG-1g.5gb-SHARED", true },
		{ "nvidia.com/gpu.product", "A100-SHARED-40GB", false },
		{ "nvidia.com/gpu.product", "-SHARED", false },
		{ "nvidia.com/gpu.sharing-strategy", "mps", false }, /* under another name */
		{ "nvidia.com/gpu.replicas", "4", false },
		{ "cloud.google.com/gke-gpu-sharing-strategy", "time-sharing", true },
		{ "cloud.google.com/gke-gpu-sharing-strategy", "", false },
		{ "cloud.google.com/gke-gpu-partition-size", "1g.5gb", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char json[512];
		struct kube_node node;

		snprintf(json, sizeof(json),
			 "{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"40\"}},"
			 "\"metadata\":{\"name\":\"n0\",\"labels\":{\"%s\":\"%s\"}}}",
			 cases[i].label, cases[i].value);
		node = node_of(json);
		assert_int_equal(node.room.gpus, cases[i].parts ? 0 : 40);
		assert_int_equal(node.problem[0] != '\0', cases[i].parts);
		if (cases[i].parts)
			assert_non_null(strstr(node.problem, cases[i].value));
	}
}

static void a_taint_that_can_not_be_kept_closes_the_node(void **state)
{
	struct kube_node node;

	(void)state;
	node = node_of(
		"{\"metadata\":{\"name\":\"n0\"},\"spec\":{\"taints\":[{\"key\":"
		"\"example.org/a-key-that-is-much-longer-than-what-fits\",\"value\":\"and-a-value\",\"effect\":\"NoExecute\"}]}}");
	assert_string_equal(node.taints, "");
	assert_non_null(strstr(node.problem, "example.org"));
}

static void what_is_damaged_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"[]",
		"{}",
		"{\"metadata\":{\"name\":\"p\"}}",
		"{\"metadata\":{\"name\":1,\"uid\":\"u\"}}",
		"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}",
	};
	struct kube_pod pod;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (pod_read(cases[i], strlen(cases[i]), &pod, NULL) >= 0)
			fail_msg("\"%s\" was taken", cases[i]);
}

static void a_node_says_where_it_stands(void **state)
{
	struct kube_node node;

	(void)state;
	node = node_of(
		"{\"metadata\":{\"name\":\"n\",\"labels\":{\"fabric.topograph.run/tier-0\":\"l7\","
		"\"network.topology.nvidia.com/leaf\":\"s1\",\"nvidia.com/gpu.clique\":\"abc.1\","
		"\"topology.k8s.aws/network-node-layer-3\":\"nn-1\",\"topology.kubernetes.io/zone\":\"z\"}}}");
	assert_string_equal(node.places.name[4], "s1"); /* of three labels the first of the table */
	assert_string_equal(node.places.name[1], "z");
	assert_string_equal(node.places.name[5], "abc.1");
	assert_int_equal(places_levels(&node.places), 1 << 1 | 1 << 4 | 1 << 5);
	node = node_of(
		"{\"metadata\":{\"name\":\"n\",\"labels\":{\"topology.kubernetes.io/zone\":\"\"}}}");
	assert_int_equal(places_levels(&node.places), 0);
}

static void labels_that_a_person_named_say_it_first(void **state)
{
	static const char json[] =
		"{\"metadata\":{\"name\":\"n\",\"labels\":{\"network.topology.nvidia.com/leaf\":\"s1\",\"c.d/second\":\"b\","
		"\"c.d/rack\":\"r\",\"topology.kubernetes.io/zone\":\"z\"}}}";
	static const struct engine_level_labels own = {
		3, { { 4, "c.d/rack" }, { 4, "c.d/second" }, { 2, "topology.kubernetes.io/zone" } }
	};
	struct kube_node node = node_of(json);

	(void)state;
	assert_string_equal(node.places.name[4], "s1");
	own_places = &own;
	node = node_of(json);
	own_places = NULL;
	assert_string_equal(node.places.name[4], "r");
	assert_string_equal(node.places.name[2], "z"); /* what it usually says it says no more */
	assert_int_equal(places_levels(&node.places), 1 << 2 | 1 << 4);
	assert_int_equal(places_level_of(&own, "topology.kubernetes.io/zone"), 2);
	assert_int_equal(places_level_of(NULL, "topology.kubernetes.io/zone"), 1);
	assert_int_equal(places_level_of(NULL, "c.d/rack"), -1);
}

/* It is there, and whose it is can be said: that is much more than nothing. */
static void what_can_not_be_read_whole_is_still_there(void **state)
{
	static const char *const specs[] = { "[]", "{\"nodeName\":\"n\",\"containers\":7}",
					     "{\"containers\":[{\"resources\":[]}]}" };
	AUTO_BUF text = BUF_INIT;
	struct kube_pod pod;
	struct kube_node node;

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		buf_clear(&text);
		buf_addf(&text, "{\"spec\":%s,\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}",
			 specs[i]);
		pod = pod_of(buf_text(&text));
		assert_true(pod.unclear);
		assert_string_equal(pod.uid, "u");
		buf_clear(&text);
		buf_addf(&text,
			 "{\"status\":{\"phase\":%s},\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}",
			 specs[i]);
		pod = pod_of(buf_text(&text));
		assert_true(pod.unclear);
	}
	assert_false(pod_of(POD("", "")).unclear);
	node = node_of("{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":\"x\"}}");
	assert_true(node.unclear);
	assert_false(node_of("{\"metadata\":{\"name\":\"n\"}}").unclear);
}

#define ENDED(code, at)                                                                            \
	"\"state\":{\"terminated\":{\"exitCode\":" code ",\"finishedAt\":\"2026-11-22T" at "Z\"}}"
#define DELETED(spec, grace, status)                                                                  \
	"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"deletionTimestamp\":\"2026-11-22T19:00:30Z\"," \
	"\"deletionGracePeriodSeconds\":" grace "},\"spec\":{" spec "},\"status\":{" status "}}"

static void what_ended_before_its_deletion_ended_by_itself(void **state)
{
	(void)state;
	assert_true(pod_of(POD("", "\"containerStatuses\":[{" ENDED("3", "18:00:00") "}]"))
			    .ended_first);
	assert_true(
		pod_of(DELETED("", "30", "\"containerStatuses\":[{" ENDED("3", "18:59:59.7") "}]"))
			.ended_first);
	assert_false(
		pod_of(DELETED("", "30", "\"containerStatuses\":[{" ENDED("3", "19:00:00") "}]"))
			.ended_first);
	assert_false(
		pod_of(DELETED("", "30", "\"containerStatuses\":[{\"state\":{\"running\":{}}}]"))
			.ended_first);
	assert_false(pod_of(DELETED("", "30", "")).forced);
	assert_true(pod_of(DELETED("", "0", "")).forced);
}

static void containers_of_others_beside_ours_are_told_apart(void **state)
{
	struct kube_pod pod;

	(void)state;
	pod = pod_of(POD("",
			 "\"containerStatuses\":[{\"name\":\"proxy\",\"state\":{\"running\":{}}},"
			 "{\"name\":\"main\"," ENDED("0", "18:00:00") "}]"));
	assert_true(pod.ended && !pod.running && pod.others_run);
	pod = pod_of(POD("",
			 "\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}},"
			 "{\"name\":\"proxy\"," ENDED("0", "18:00:00") "}]"));
	assert_true(!pod.ended && pod.running && !pod.others_run);
	pod = pod_of(
		POD("", "\"containerStatuses\":[{\"name\":\"only\",\"state\":{\"running\":{}}}]"));
	assert_true(pod.running && !pod.others_run);
}

static void a_pool_says_what_the_removal_of_its_nodes_means(void **state)
{
	static const struct {
		const char *value;
		int64_t removal_s;
	} cases[] = { { "wait", -1 }, { "300", 300 }, { "0", 1 },
		      { "soon", 0 },  { "-5", 0 },    { "", 0 } };
	AUTO_BUF text = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&text);
		buf_addf(
			&text,
			"{\"metadata\":{\"name\":\"n\",\"labels\":{\"fairlead.dev/removed-node\":\"%s\"}}}",
			cases[i].value);
		assert_int_equal(node_of(buf_text(&text)).removal_s, cases[i].removal_s);
	}
	assert_true(node_of("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[{\"key\":"
			    "\"node.kubernetes.io/out-of-service\",\"effect\":\"NoExecute\"}]}}")
			    .off);
}

static void a_node_that_will_go_says_how_soon(void **state)
{
	static const struct {
		const char *spot, *taints;
		int64_t in_s; /* -1 = it stays */
	} cases[] = {
		{ "", "aws-node-termination-handler/spot-itn", 110 },
		{ "", "aws-node-termination-handler/rebalance-recommendation", -1 },
		{ "", "aws-node-termination-handler/scheduled-maintenance", 0 },
		{ "", "aws-node-termination-handler/asg-lifecycle-termination", 0 },
		{ "\"cloud.google.com/gke-spot\":\"true\"",
		  "cloud.google.com/impending-node-termination", 25 },
		{ "", "cloud.google.com/impending-node-termination", 0 },
		{ "\"kubernetes.azure.com/scalesetpriority\":\"spot\"",
		  "remediator.kubernetes.azure.com/unschedulable", 25 },
		{ "", "remediator.kubernetes.azure.com/unschedulable", 0 },
		{ "\"karpenter.sh/capacity-type\":\"spot\"", "karpenter.sh/disrupted", 110 },
		{ "", "karpenter.sh/disrupted", 0 },
		{ "", "karpenter.sh/disruption\",\"value\":\"disrupting", 0 },
		{ "", "karpenter.sh/disruption\",\"value\":\"candidate", -1 },
		{ "", "ToBeDeletedByClusterAutoscaler\",\"value\":\"1763881200", 590 },
		{ "", "DeletionCandidateOfClusterAutoscaler", -1 },
		{ "", "node.kubernetes.io/unschedulable", -1 },
		/* Of several the one that leaves the least time, in whatever order. */
		{ "",
		  "ToBeDeletedByClusterAutoscaler\",\"effect\":\"NoSchedule\"},{\"key\":\"aws-node-termination-handler/spot-itn",
		  110 },
		{ "",
		  "aws-node-termination-handler/spot-itn\",\"effect\":\"NoSchedule\"},{\"key\":\"karpenter.sh/disrupted",
		  110 },
	};
	AUTO_BUF text = BUF_INIT;
	struct kube_node node;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_clear(&text);
		buf_addf(
			&text,
			"{\"metadata\":{\"name\":\"n\",\"labels\":{%s}},\"spec\":{\"taints\":[{\"key\":\"%s\",\"effect\":\"NoSchedule\"}]}}",
			cases[i].spot, cases[i].taints);
		node = node_of(buf_text(&text));
		assert_int_equal(node.goes ? node.goes_in_s : -1, cases[i].in_s);
		assert_true(node.goes == (node.goes_why[0] != '\0'));
		assert_string_equal(node.problem, "");
	}
	/* One that only asks to be avoided says nothing; one with a long value is read all the same. */
	assert_false(node_of("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[{\"key\":"
			     "\"karpenter.sh/disrupted\",\"effect\":\"PreferNoSchedule\"}]}}")
			     .goes);
	node = node_of(
		"{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[{\"key\":\"aws-node-termination-handler/spot-itn\","
		"\"value\":\"spot-itn-47ddfb5e39791606bec3e91ea4cdfa64\",\"effect\":\"NoSchedule\"}]}}");
	assert_true(node.goes && !node.problem[0]);
}

static void a_node_says_its_pool_and_who_places_work_there(void **state)
{
	struct kube_node node =
		node_of("{\"metadata\":{\"name\":\"n\",\"labels\":{\"pool\":\"p\","
			"\"karpenter.sh/nodepool\":\"k\",\"fairlead.dev/pool\":\"f\","
			"\"eks.amazonaws.com/nodegroup\":\"e\"}}}");

	(void)state;
	assert_string_equal(node.pool, "f");
	assert_string_equal(node.authority, "");
	node = node_of(
		"{\"metadata\":{\"name\":\"n\",\"labels\":{\"pool\":\"p\","
		"\"karpenter.sh/nodepool\":\"k\",\"fairlead.dev/authority\":\"fairlead\"}}}");
	assert_string_equal(node.pool, "k");
	assert_string_equal(node.authority, "fairlead");
	assert_string_equal(node.problem, "");
	node = node_of(
		"{\"metadata\":{\"name\":\"n\",\"labels\":{\"fairlead.dev/authority\":\"volcano\"}}}");
	assert_string_equal(node.pool, "");
	assert_string_equal(node.problem,
			    "its label fairlead.dev/authority says that volcano places work there");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_says_where_it_stands),
		cmocka_unit_test(labels_that_a_person_named_say_it_first),
		cmocka_unit_test(what_a_pod_takes_is_what_the_api_server_counts),
		cmocka_unit_test(the_end_of_a_pod_is_that_of_its_main_container),
		cmocka_unit_test(a_pod_of_ours_says_which_rank_it_is),
		cmocka_unit_test(a_node_is_read_with_what_matters_of_it),
		cmocka_unit_test(a_node_that_will_go_says_how_soon),
		cmocka_unit_test(a_node_says_its_pool_and_who_places_work_there),
		cmocka_unit_test(parts_of_gpus_are_no_gpus),
		cmocka_unit_test(a_taint_that_can_not_be_kept_closes_the_node),
		cmocka_unit_test(what_is_damaged_is_refused),
		cmocka_unit_test(what_can_not_be_read_whole_is_still_there),
		cmocka_unit_test(what_ended_before_its_deletion_ended_by_itself),
		cmocka_unit_test(containers_of_others_beside_ours_are_told_apart),
		cmocka_unit_test(a_pool_says_what_the_removal_of_its_nodes_means),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
