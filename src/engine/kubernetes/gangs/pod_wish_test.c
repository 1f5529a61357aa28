/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/gangs/pod_wish.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "engine/kubernetes/manifest.h"

static struct pod_wish wish;

static void read_text(const char *json)
{
	struct kube_pod pod;
	struct err err = { 0 };

	assert_int_equal(pod_read(json, strlen(json), &pod, &err), 0);
	assert_int_equal(pod_wish_read(json, strlen(json), &pod, &wish, &err), 0);
}

static void golden_read(const char *name, char *text, size_t room)
{
	char path[256];
	FILE *file;
	size_t size;

	snprintf(path, sizeof(path), GOLDEN_FOLDER "/%s.json", name);
	file = fopen(path, "r");
	assert_non_null(file);
	size = fread(text, 1, room - 1, file);
	fclose(file);
	text[size] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* What people have written on their pods means what it meant. */
static void a_pod_means_what_it_ever_meant(void **state)
{
	char text[8192];

	(void)state;
	golden_read("gang-pod", text, sizeof(text));
	read_text(text);
	assert_string_equal(wish.problem, "");
	assert_string_equal(wish.queue, "night");
	assert_string_equal(wish.tier, "best-effort");
	assert_int_equal(wish.priority, -7);
	assert_false(wish.preempts);
	assert_int_equal(wish.kind, GANG_OWN);
	assert_string_equal(wish.gang, "train");
	assert_int_equal(wish.size, 4);
	assert_string_equal(wish.require, "rack");
	assert_string_equal(wish.prefer, "nvlink");
	assert_string_equal(wish.labels, "topology.kubernetes.io/zone=z1");
	assert_string_equal(wish.tolerates, "team=vision,spot");
	assert_string_equal(wish.created, "2026-03-01T14:02:11Z");
	assert_int_equal(wish.use.gpus, 8);
	assert_int_equal(wish.use.cpu_milli, 8000);
	assert_int_equal(wish.use.memory_mib, 65 * 1024);
}

static void a_binding_is_written_as_ever(void **state)
{
	AUTO_BUF out = BUF_INIT;
	char text[1024];

	(void)state;
	golden_read("gang-binding", text, sizeof(text));
	manifest_gang_binding("vision", "train-0-x7k2p", "0f1e2d3c-0000-4000-8000-000000000001",
			      "n1", 12, 34, 1, &out);
	assert_string_equal(buf_text(&out), text);
}

#define POD(metadata, spec)                                                                        \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"" metadata                 \
	"},\"spec\":{\"schedulerName\":\"fairlead\"" spec "},\"status\":{}}"
#define OWNER(api, kind)                                                                           \
	",\"ownerReferences\":[{\"apiVersion\":\"" api "\",\"kind\":\"" kind                       \
	"\",\"name\":\"o\",\"controller\":true}]"

#define JOBSET(replicas)                                                                                         \
	",\"labels\":{\"jobset.sigs.k8s.io/jobset-name\":\"s\",\"jobset.sigs.k8s.io/replicatedjob-name\":\"w\"," \
	"\"jobset.sigs.k8s.io/replicatedjob-replicas\":\"" replicas "\"}"
#define LWS                                                                                        \
	",\"labels\":{\"leaderworkerset.sigs.k8s.io/name\":\"l\",\"leaderworkerset.sigs.k8s.io/group-index\":\"2\"}"

static void each_convention_says_who_belongs_together(void **state)
{
	static const struct {
		const char *json;
		enum gang_kind kind;
		const char *gang;
		int64_t size;
	} cases[] = {
		{ POD("", ""), GANG_ALONE, "", 0 },
		{ POD(OWNER("apps/v1", "ReplicaSet"), ""), GANG_ALONE, "", 0 },
		{ POD(OWNER("batch/v1", "Job"), ""), GANG_JOB, "o", 0 },
		{ POD(OWNER("batch.example.com/v1", "Job"), ""), GANG_OTHER, "o", 0 },
		{ POD(OWNER("kubeflow.org/v1", "PyTorchJob"), ""), GANG_KUBEFLOW, "o", 0 },
		{ POD(OWNER("ray.io/v1", "RayCluster"), ""), GANG_RAY, "o", 0 },
		{ POD(OWNER("ray.io.example.com/v1", "RayCluster"), ""), GANG_OTHER, "o", 0 },
		{ POD(OWNER("argoproj.io/v1alpha1", "Workflow"), ""), GANG_ALONE, "", 0 },
		{ POD(OWNER("batch/v1", "Job"), ",\"schedulingGroup\":{\"podGroupName\":\"g\"}"),
		  GANG_NATIVE, "g", 0 },
		{ POD(OWNER("ray.io/v1",
			    "RayCluster") ",\"annotations\":{\"fairlead.dev/gang-size\":\"3\"}",
		      ""),
		  GANG_RAY, "o", 3 },
		{ POD(OWNER("example.com/v1",
			    "Fleet") ",\"annotations\":{\"fairlead.dev/gang-size\":\"3\"}",
		      ""),
		  GANG_OWN, "o", 3 },
		{ POD(OWNER("batch/v1", "Job") ",\"labels\":{\"fairlead.dev/gang-size\":\"1\"}",
		      ""),
		  GANG_ALONE, "", 1 },
		{ POD(",\"labels\":{\"scheduling.x-k8s.io/pod-group\":\"g\"}", ""), GANG_SIGS, "g",
		  0 },
		{ POD(",\"annotations\":{\"scheduling.k8s.io/group-name\":\"g\"}", ""),
		  GANG_VOLCANO, "g", 0 },
		{ POD(",\"labels\":{\"kueue.x-k8s.io/pod-group-name\":\"g\"},\"annotations\":{\"kueue.x-k8s.io/pod-group-total-count\":\"5\"}",
		      ""),
		  GANG_KUEUE, "g", 5 },
		{ POD(OWNER("batch/v1", "Job") JOBSET("4"), ""), GANG_JOBSET, "s-w", 0 },
		{ POD(OWNER("batch/v1", "Job") JOBSET("1"), ""), GANG_JOB, "o", 0 },
		{ POD(OWNER("apps/v1", "StatefulSet") LWS, ""), GANG_LWS, "l-2", 0 },
		{ POD(OWNER("apps/v1", "StatefulSet") LWS
		      ",\"annotations\":{\"fairlead.dev/gang-size\":\"1\"}",
		      ""),
		  GANG_ALONE, "", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].json);
		assert_string_equal(wish.problem, "");
		assert_int_equal(wish.kind, cases[i].kind);
		assert_string_equal(wish.gang, cases[i].gang);
		assert_int_equal(wish.size, cases[i].size);
	}
}

static void what_cannot_be_honoured_is_named(void **state)
{
	static const struct {
		const char *json, *problem;
	} cases[] = {
		{ POD("", ",\"schedulingGroup\":{}"), "a schedulingGroup that names no PodGroup" },
		{ POD("",
		      ",\"affinity\":{\"cloudAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{}]}}"),
		  "affinity of a new kind that is required" },
		{ POD(",\"labels\":{\"fairlead.dev/gang\":\"g\"}", ""),
		  "fairlead.dev/gang without fairlead.dev/gang-size" },
		{ POD(",\"labels\":{\"fairlead.dev/gang-size\":\"16385\"}", ""),
		  "fairlead.dev/gang-size \"16385\": it must be a number from 1 to 16384" },
		{ POD(",\"labels\":{\"kueue.x-k8s.io/pod-group-name\":\"g\"}", ""),
		  "a pod group of Kueue without its total count" },
		/* What is only preferred is passed over. */
		{ POD("",
		      ",\"affinity\":{\"podAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":[{}]}},\"topologySpreadConstraints\":[{\"whenUnsatisfiable\":\"ScheduleAnyway\"}]"),
		  "" },
		{ POD("", ",\"affinity\":null,\"volumes\":[{\"name\":\"c\",\"configMap\":{}}]"),
		  "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].json);
		assert_string_equal(wish.problem, cases[i].problem);
	}
}

static void claims_are_those_of_the_pod_and_those_made_of_templates(void **state)
{
	static const struct {
		const char *json, *claims;
		bool missing;
	} cases[] = {
		{ POD("", ",\"resourceClaims\":[{\"name\":\"c\",\"resourceClaimName\":\"mine\"}]"),
		  "mine", false },
		{ POD("",
		      ",\"resourceClaims\":[{\"name\":\"c\",\"resourceClaimTemplateName\":\"t\"}]"),
		  "", true },
		{ POD("",
		      ",\"resourceClaims\":[{\"name\":\"c\",\"resourceClaimTemplateName\":\"t\"},{\"name\":\"d\",\"resourceClaimName\":\"mine\"}]},"
		      "\"status\":{\"resourceClaimStatuses\":[{\"name\":\"c\",\"resourceClaimName\":\"p-c-x7\"}]"),
		  "p-c-x7\nmine", false },
		/* It is said that none is needed. */
		{ POD("",
		      ",\"resourceClaims\":[{\"name\":\"c\",\"resourceClaimTemplateName\":\"t\"}]},"
		      "\"status\":{\"resourceClaimStatuses\":[{\"name\":\"c\"}]"),
		  "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].json);
		assert_string_equal(wish.problem, "");
		assert_string_equal(wish.claims, cases[i].claims);
		assert_int_equal(wish.claims_missing, cases[i].missing);
	}
	read_text(POD(
		"",
		",\"resourceClaims\":[{\"name\":\"1\"},{\"name\":\"2\"},{\"name\":\"3\"},{\"name\":\"4\"},{\"name\":\"5\"},"
		"{\"name\":\"6\"},{\"name\":\"7\"},{\"name\":\"8\"},{\"name\":\"9\"}]"));
	assert_string_equal(wish.problem, "more than 8 ResourceClaims");
}

static void rules_about_nodes_and_pods_become_wants(void **state)
{
	static const struct {
		const char *json;
		uint32_t wants;
	} cases[] = {
		{ POD("",
		      ",\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{}]}}"),
		  WANTS_PODS },
		{ POD("",
		      ",\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"namespaceSelector\":{}}]}}"),
		  WANTS_PODS | WANTS_NAMESPACES },
		{ POD("",
		      ",\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{\"nodeSelectorTerms\":[]}}}"),
		  WANTS_NODES },
		{ POD("", ",\"topologySpreadConstraints\":[{\"maxSkew\":1}]"), WANTS_SPREAD },
		{ POD("", ",\"nodeSelector\":{\"disk\":\"ssd\"}"), WANTS_NODES },
		{ POD("",
		      ",\"volumes\":[{\"name\":\"d\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]"),
		  WANTS_CLAIMS },
		{ POD("", ",\"containers\":[{\"resources\":{\"requests\":{\"rdma/hca\":\"1\"}}}]"),
		  WANTS_RESOURCES },
		{ POD("", ",\"containers\":[{\"ports\":[{\"hostPort\":80}]}]"), WANTS_PORTS },
		{ POD("", ",\"resources\":{\"requests\":{\"cpu\":\"1\"}}"), 0 },
		{ POD("", ",\"tolerations\":[{\"operator\":\"Exists\"}]"), 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		read_text(cases[i].json);
		assert_int_equal(wish.wants, cases[i].wants);
		assert_string_equal(wish.problem, "");
	}
}

static void pods_of_one_template_have_equal_rules(void **state)
{
	char first[DIGEST_HEX_MAX];

	(void)state;
	read_text(POD(",\"labels\":{\"index\":\"1\"}", ",\"nodeSelector\":{\"disk\":\"ssd\"}"));
	memcpy(first, wish.rules, sizeof(first));
	read_text(POD(",\"labels\":{\"index\":\"2\"}", ",\"nodeSelector\":{\"disk\":\"ssd\"}"));
	assert_string_equal(wish.rules, first);
	read_text(POD("", ",\"nodeSelector\":{\"disk\":\"hdd\"}"));
	assert_string_not_equal(wish.rules, first);
}

static void priorities_are_cut_at_what_the_core_takes(void **state)
{
	(void)state;
	read_text(POD("", ",\"priority\":2000000000"));
	assert_int_equal(wish.priority, 1000000);
	assert_true(wish.preempts);
	read_text(POD("", ",\"priority\":-2000000000"));
	assert_int_equal(wish.priority, -1000000);
	read_text(POD(",\"annotations\":{\"fairlead.dev/priority\":\"12\"}", ",\"priority\":5"));
	assert_int_equal(wish.priority, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_means_what_it_ever_meant),
		cmocka_unit_test(a_binding_is_written_as_ever),
		cmocka_unit_test(each_convention_says_who_belongs_together),
		cmocka_unit_test(what_cannot_be_honoured_is_named),
		cmocka_unit_test(claims_are_those_of_the_pod_and_those_made_of_templates),
		cmocka_unit_test(rules_about_nodes_and_pods_become_wants),
		cmocka_unit_test(pods_of_one_template_have_equal_rules),
		cmocka_unit_test(priorities_are_cut_at_what_the_core_takes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
