/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/testing.h"
#include "engine/engine.h"
#include "engine/kubernetes/gangs/owner_read.h"

#define RAY(groups) "{\"spec\":{\"headGroupSpec\":{},\"workerGroupSpecs\":" groups "}}"
#define NATIVE(spec) "{\"spec\":" spec "}"

static void owners_say_how_many_start_together(void **state)
{
	static const struct {
		enum gang_kind kind;
		const char *json;
		int64_t size, stay; /* 0 = as many */
	} cases[] = {
		{ GANG_JOB,
		  "{\"spec\":{\"parallelism\":4,\"completions\":10},\"status\":{\"succeeded\":3}}",
		  4 },
		{ GANG_JOB,
		  "{\"spec\":{\"parallelism\":4,\"completions\":10},\"status\":{\"succeeded\":8}}",
		  2 },
		{ GANG_JOB, "{\"spec\":{\"parallelism\":4}}", 4 },
		{ GANG_JOB,
		  "{\"spec\":{\"parallelism\":9,\"completions\":9},\"status\":{\"succeeded\":3,\"failedIndexes\":\"1,3-5\"}}",
		  2 },
		{ GANG_JOB,
		  "{\"spec\":{\"parallelism\":9,\"completions\":9},\"status\":{\"succeeded\":3,\"failedIndexes\":\"\"}}",
		  6 },
		{ GANG_JOB,
		  "{\"spec\":{\"parallelism\":2,\"completions\":2},\"status\":{\"failedIndexes\":\"0-99999999999999999999,7-3,-\"}}",
		  1 },
		{ GANG_KUBEFLOW,
		  "{\"spec\":{\"pytorchReplicaSpecs\":{\"Master\":{},\"Worker\":{\"replicas\":3}}}}",
		  4 },
		{ GANG_KUBEFLOW,
		  "{\"spec\":{\"elasticPolicy\":{\"minReplicas\":2,\"maxReplicas\":4},\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":3}}}}",
		  3, 2 },
		{ GANG_KUBEFLOW,
		  "{\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":3}},\"elasticPolicy\":{\"minReplicas\":9}}}",
		  3 },
		{ GANG_KUBEFLOW,
		  "{\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":3}},\"elasticPolicy\":{\"minReplicas\":0}}}",
		  3, 1 },
		{ GANG_KUBEFLOW, "{\"spec\":{}}", -1 },
		{ GANG_SIGS, "{\"spec\":{\"minMember\":5}}", 5 },
		{ GANG_VOLCANO, "{\"spec\":{\"minMember\":\"5\"}}", -1 },
		{ GANG_RAY,
		  RAY("[{\"replicas\":2,\"numOfHosts\":4,\"minReplicas\":1},{\"minReplicas\":3},{}]"),
		  12, 8 },
		{ GANG_RAY, RAY("[{\"replicas\":3,\"minReplicas\":0}]"), 4, 1 },
		{ GANG_RAY,
		  RAY("[{\"replicas\":2,\"minReplicas\":-4},{\"replicas\":1,\"minReplicas\":7}]"),
		  4, 2 },
		{ GANG_RAY, RAY("[{\"minReplicas\":-9223372036854775808,\"numOfHosts\":2}]"),
		  ENGINE_TASKS_MAX + 2, 1 },
		{ GANG_RAY, RAY("[]"), 1 },
		{ GANG_RAY, RAY("null"), 1 },
		{ GANG_NATIVE, NATIVE("{\"schedulingPolicy\":{\"gang\":{\"minCount\":3}}}"), 3 },
		{ GANG_NATIVE, NATIVE("{\"schedulingPolicy\":{\"gang\":null,\"basic\":{}}}"), 1 },
		{ GANG_NATIVE, NATIVE("{\"schedulingPolicy\":{}}"), -1 },
		{ GANG_LWS, "{\"spec\":{\"replicas\":3,\"leaderWorkerTemplate\":{\"size\":4}}}",
		  4 },
		{ GANG_LWS, "{\"spec\":{\"leaderWorkerTemplate\":{}}}", 1 },
		{ GANG_LWS,
		  "{\"spec\":{\"leaderWorkerTemplate\":{\"size\":4},\"startupPolicy\":\"LeaderReady\"}}",
		  1 },
		{ GANG_LWS,
		  "{\"spec\":{\"leaderWorkerTemplate\":{\"size\":4},\"startupPolicy\":\"LeaderCreated\"}}",
		  4 },
		{ GANG_LWS, "{\"spec\":{}}", -1 },
	};
	struct owner_numbers numbers;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(owner_read(cases[i].json, strlen(cases[i].json), &numbers));
		assert_int_equal(owner_gang_size(cases[i].kind, &numbers), cases[i].size);
		assert_int_equal(owner_gang_stay(cases[i].kind, &numbers),
				 cases[i].stay ? cases[i].stay : cases[i].size);
	}
}

#define ITEM(parallelism, status)                                                                  \
	"{\"metadata\":{\"name\":\"j\"},\"spec\":{\"parallelism\":" parallelism                    \
	",\"completions\":" parallelism "},\"status\":{" status "}}"
#define ITEMS(items) "{\"kind\":\"JobList\",\"items\":[" items "]}"

/* One that comes again when the others have ended waits for nobody. */
static void of_several_jobs_it_counts_what_is_left_of_each(void **state)
{
	static const struct {
		int64_t times, size;
		const char *json;
	} cases[] = {
		{ 2, 8, ITEMS(ITEM("4", "") "," ITEM("4", "\"failed\":1")) },
		{ 2, 1, ITEMS(ITEM("1", "\"succeeded\":1") "," ITEM("1", "\"failed\":1")) },
		{ 2, 1,
		  ITEMS(ITEM("4", "\"succeeded\":2,\"failedIndexes\":\"0,3\"") "," ITEM(
			  "4", "\"succeeded\":3")) },
		{ 2, 5, ITEMS(ITEM("4", "\"succeeded\":3") "," ITEM("4", "")) },
		{ 2, 1, ITEMS(ITEM("1", "\"succeeded\":1") "," ITEM("1", "\"succeeded\":1")) },
		{ 3, 12, ITEMS(ITEM("4", "")) }, /* the others are not made yet */
		{ 3, 9, ITEMS(ITEM("4", "\"succeeded\":3")) },
		{ 2, 2,
		  ITEMS("{\"metadata\":{\"deletionTimestamp\":\"2026-11-23T21:00:00Z\"},\"spec\":{\"parallelism\":1,\"completions\":1},\"status\":{\"succeeded\":1}}," ITEM(
			  "1", "")) },
		{ 2, 3,
		  ITEMS("{\"spec\":{\"parallelism\":3},\"status\":{\"succeeded\":1}},{\"spec\":{\"parallelism\":3}}") },
		{ 2, -1, ITEMS("") },
		{ 2, -1, "{\"items\":null}" },
		{ ENGINE_TASKS_MAX, (ENGINE_TASKS_MAX + INT64_C(1)) * ENGINE_TASKS_MAX,
		  ITEMS(ITEM("9223372036854775807", "")) },
	};
	static const char torn[] = "{\"items\":[{\"spec\":{\"parallelism\":1}}";
	struct owner_numbers numbers;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(owner_read_jobs(cases[i].json, strlen(cases[i].json), cases[i].times,
					    &numbers));
		assert_int_equal(owner_gang_size(GANG_JOBSET, &numbers), cases[i].size);
	}
	assert_false(owner_read_jobs(torn, strlen(torn), 2, &numbers));
}

/* Whatever numbers an object has, nothing overflows and what is too many stays too many. */
static void what_is_too_many_stays_so(void **state)
{
	static const char *const groups[] = {
		RAY("[{\"replicas\":9223372036854775807,\"numOfHosts\":2}]"),
		RAY("[{\"replicas\":2,\"numOfHosts\":9223372036854775807}]"),
		RAY("[{\"replicas\":2,\"numOfHosts\":-9223372036854775807}]"),
		"{\"spec\":{\"mpiReplicaSpecs\":{\"A\":{\"replicas\":9223372036854775807},\"B\":{\"replicas\":-5}}}}",
	};
	struct owner_numbers numbers;

	(void)state;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		assert_true(owner_read(groups[i], strlen(groups[i]), &numbers));
		assert_true(numbers.replicas > ENGINE_TASKS_MAX);
	}
}

static void a_topology_is_one_label(void **state)
{
	static const char one
		[] = NATIVE("{\"schedulingConstraints\":{\"topology\":[{\"key\":\"rack\"}]}}"),
	     two[] = NATIVE(
		     "{\"schedulingConstraints\":{\"topology\":[{\"key\":\"rack\"},{\"key\":\"zone\"}]}}"),
	     none[] = NATIVE("{\"schedulingConstraints\":{\"topology\":null}}"),
	     torn[] = "{\"spec\":{\"x\":";
	struct owner_numbers numbers;

	(void)state;
	assert_true(owner_read(one, strlen(one), &numbers));
	assert_string_equal(numbers.together, "rack");
	assert_false(numbers.more);
	assert_true(owner_read(two, strlen(two), &numbers));
	assert_true(numbers.more);
	assert_true(owner_read(none, strlen(none), &numbers));
	assert_string_equal(numbers.together, "");
	assert_false(owner_read(torn, strlen(torn), &numbers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_say_how_many_start_together),
		cmocka_unit_test(of_several_jobs_it_counts_what_is_left_of_each),
		cmocka_unit_test(what_is_too_many_stays_so),
		cmocka_unit_test(a_topology_is_one_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
