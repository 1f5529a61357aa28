/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/generate.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/testing.h"
#include "core/model/facts.h"
#include "sim/replay/workload.h"

static const struct scenario_node nodes[] = {
	{ .name = "a", .gpus = 8 },
	{ .name = "b", .gpus = 8 },
	{ .name = "c", .gpus = 8 },
	{ .name = "d", .gpus = 8 },
};
static const struct scenario_queue queues[] = {
	{ .name = "research", .parent = "" },
	{ .name = "vision", .parent = "research" },
	{ .name = "speech", .parent = "research" },
};
static const struct scenario site = {
	.nodes = nodes, .node_count = 4, .queues = queues, .queue_count = 3
};
static const struct generate_options month = { .days = 28, .users = 40, .load = 90, .seed = 7 };

static char *text_of(const struct scenario *cluster, struct generate_options options)
{
	struct err err = { 0 };
	size_t size = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	if (generate(cluster, &options, out, &err) < 0)
		fail_msg("%s", err.text);
	fclose(out);
	return text;
}

static struct workload made(const struct scenario *cluster, struct generate_options options)
{
	struct workload w;
	struct err err = { 0 };
	char *text = text_of(cluster, options);

	if (workload_parse("made", text, &w, &err) < 0)
		fail_msg("line %d: %s", err.line, err.text);
	w.text = text;
	return w;
}

static void the_same_words_give_the_same_bytes_and_another_seed_others(void **state)
{
	struct generate_options other = month;
	char *a = text_of(&site, month), *b = text_of(&site, month), *c;
	char hex[DIGEST_HEX_MAX];
	struct digest digest = digest_of(a, strlen(a));

	(void)state;
	other.seed++;
	c = text_of(&site, other);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
	/* On any machine, with any compiler: a change here makes other loads of everybody's seeds. */
	digest_format(&digest, hex);
	assert_string_equal(hex,
			    "af5535e7cf6d6c021ec5528c8654976b1f4d7ecb4dd109afb1270db21bef7e3d");
	free(a);
	free(b);
	free(c);
}

static int64_t gpu_ms(const struct workload_job *job)
{
	return job->run_ms * workload_share(job) / GPU_SHARE;
}

static void the_jobs_hold_the_wanted_part_of_the_cluster(void **state)
{
	static const uint32_t loads[] = { 10, 90, 200 };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct generate_options o = month;
		int64_t sum = 0, longest = 0, wanted;
		struct workload w;

		o.load = loads[i];
		w = made(&site, o);
		wanted = INT64_C(32) * 28 * 86400000 / 100 * o.load;
		for (uint32_t j = 0; j < w.count; j++) {
			sum += gpu_ms(&w.jobs[j]);
			if (gpu_ms(&w.jobs[j]) > longest)
				longest = gpu_ms(&w.jobs[j]);
		}
		assert_true(sum >= wanted && sum < wanted + longest);
		workload_deinit(&w);
	}
}

static void few_people_submit_most_and_only_to_queues_that_have_no_children(void **state)
{
	struct workload w = made(&site, month);
	uint32_t of_user[41] = { 0 }, most = 0, first = 0;

	(void)state;
	for (uint32_t j = 0; j < w.count; j++) {
		assert_true(strcmp(w.jobs[j].queue, "vision") == 0 ||
			    strcmp(w.jobs[j].queue, "speech") == 0);
		of_user[strtoul(w.jobs[j].user + 1, NULL, 10)]++;
	}
	for (uint32_t u = 1; u <= 40; u++)
		most = of_user[u] > most ? of_user[u] : most;
	for (uint32_t u = 1; u <= 8; u++)
		first += of_user[u];
	assert_true(first > w.count / 2 && most < w.count / 2);
	workload_deinit(&w);
}

static void days_are_busier_than_nights_and_weekends(void **state)
{
	struct generate_options o = month;
	struct workload w;
	uint32_t day = 0, night = 0, weekend = 0;

	(void)state;
	o.load = 900;
	w = made(&site, o);
	for (uint32_t j = 0; j < w.count; j++) {
		const int64_t hour = w.jobs[j].submit_ms / 3600000;

		assert_true(hour < 28 * 24 + 2);
		day += hour % 24 >= 12 && hour % 24 < 18;
		night += hour % 24 < 6;
		weekend += hour / 24 % 7 >= 5;
	}
	assert_true(day > night * 2);
	assert_true(weekend < w.count * 28 / 100 && weekend > w.count / 7);
	workload_deinit(&w);
}

static void run_times_have_a_heavy_tail_and_limits_hold_them(void **state)
{
	struct generate_options o = month;
	struct workload w;
	uint32_t minutes = 0, days = 0, declared = 0, wide = 0;

	(void)state;
	o.load = 900;
	w = made(&site, o);
	for (uint32_t j = 0; j < w.count; j++) {
		const struct workload_job *job = &w.jobs[j];

		minutes += job->run_ms < 600000;
		days += job->run_ms > 86400000;
		declared += job->limit_ms > 0;
		wide += job->tasks * job->gpus > 8;
		assert_true(job->tasks * job->gpus <= 16 && job->gpus <= 8);
		assert_true(!job->limit_ms || job->limit_ms >= job->run_ms);
		assert_true(job->checkpoints || !job->restart_ms);
	}
	assert_true(minutes > w.count / 4 && minutes < w.count * 4 / 5);
	assert_true(days > w.count / 200 && days < w.count / 10);
	assert_true(declared > w.count / 5 && declared < w.count * 4 / 5);
	assert_true(wide > 0);
	workload_deinit(&w);
}

static void a_day_may_be_all_and_a_cluster_without_gpus_is_refused(void **state)
{
	struct generate_options o = month;
	struct scenario empty = { .nodes = nodes };
	struct err err = { 0 };
	struct workload w;

	(void)state;
	o.days = 1;
	w = made(&site, o);
	for (uint32_t j = 0; j < w.count; j++)
		assert_true(w.jobs[j].submit_ms < 86400000 + 3600000);
	workload_deinit(&w);
	assert_true(generate(&empty, &o, stdout, &err) < 0);
	assert_non_null(strstr(err.text, "no GPUs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_words_give_the_same_bytes_and_another_seed_others),
		cmocka_unit_test(the_jobs_hold_the_wanted_part_of_the_cluster),
		cmocka_unit_test(few_people_submit_most_and_only_to_queues_that_have_no_children),
		cmocka_unit_test(days_are_busier_than_nights_and_weekends),
		cmocka_unit_test(run_times_have_a_heavy_tail_and_limits_hold_them),
		cmocka_unit_test(a_day_may_be_all_and_a_cluster_without_gpus_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
