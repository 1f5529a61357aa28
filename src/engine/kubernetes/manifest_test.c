/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"
#include "engine/kubernetes/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"

static struct arena arena;
static const struct manifest_site site = { .instance = "0123456789abcdef",
					   .namespace = "jobs",
					   .image = "standard" };

/* The forms live on in clusters: what is written is what was written. */
static void golden(const char *name, const struct buf *out)
{
	char path[256], expected[16384];
	size_t size;
	FILE *file;

	if (getenv("FAIRLEAD_SHOW_GOLDEN")) {
		fprintf(stderr, "=== %s\n%s\n", name, buf_text(out));
		return;
	}
	snprintf(path, sizeof(path), GOLDEN_FOLDER "/%s.json", name);
	file = fopen(path, "r");
	assert_non_null(file);
	size = fread(expected, 1, sizeof(expected) - 1, file);
	fclose(file);
	expected[size] = '\0';
	expected[strcspn(expected, "\n")] = '\0';
	assert_string_equal(buf_text(out), expected);
}

static void a_pod_is_written_as_ever(void **state)
{
	static const char *const argv[] = { "python3", "train.py", "$(HOME) \"x\"", NULL };
	static const char *const env[] = { "KEY=geheim", "PLAIN=$x", NULL };
	static const char *const tolerates[] = { "team=vision", "spot", NULL };
	const struct engine_gpu_place places[] = {
		{ .rank = 0,
		  .node = "n0",
		  .gpu_mask = 0xff,
		  .cpu_milli = 8000,
		  .memory_mib = 65536 },
		{ .rank = 1,
		  .node = "n1",
		  .gpu_mask = 0xff,
		  .cpu_milli = 8000,
		  .memory_mib = 65536 },
	};
	const struct engine_start start = { .job = 12,
					    .attempt = 34,
					    .job_name = "resnet",
					    .user = "alice",
					    .team = "research",
					    .queue = "vision",
					    .argv = argv,
					    .env = env,
					    .workdir = "/work",
					    .image = "hub/train:1",
					    .tolerates = tolerates,
					    .place_count = 2,
					    .places = places };
	AUTO_BUF pod = BUF_INIT;
	AUTO_BUF secret = BUF_INIT;
	AUTO_BUF owned = BUF_INIT;
	AUTO_BUF service = BUF_INIT;

	(void)state;
	assert_true(manifest_needs_secret(&site, &start));
	manifest_pod(&site, &start, 1, false, &arena, &pod);
	golden("pod", &pod);
	assert_null(strstr(buf_text(&pod), "geheim"));
	manifest_secret(&site, &start, &secret);
	manifest_owned(buf_text(&secret), "fairlead-01234567-12-34-0", "uid-0", &owned);
	golden("secret", &owned);
	manifest_service(&site, &start, &service);
	buf_clear(&owned);
	manifest_owned(buf_text(&service), "fairlead-01234567-12-34-0", "uid-0", &owned);
	golden("service", &owned);
}

static void a_script_of_a_single_task_lies_in_the_secret(void **state)
{
	static const char *const env[] = { NULL };
	const struct engine_gpu_place place = { .node = "n0" };
	const struct engine_start start = { .job = 1,
					    .attempt = 2,
					    .job_name = "s",
					    .script = "echo $HOME\n",
					    .env = env,
					    .place_count = 1,
					    .places = &place };
	AUTO_BUF pod = BUF_INIT;
	AUTO_BUF secret = BUF_INIT;

	(void)state;
	assert_true(manifest_needs_secret(&site, &start));
	manifest_pod(&site, &start, 0, false, &arena, &pod);
	golden("pod-script", &pod);
	manifest_secret(&site, &start, &secret);
	assert_non_null(strstr(buf_text(&secret), "\"script.0\":\"echo $HOME\\n\""));
}

static void what_a_job_was_made_from_is_plain_and_needs_no_secret(void **state)
{
	static const char *const argv[] = { "true", NULL }, *const env[] = { NULL },
				 *const made_from[] = { "FAIRLEAD_GIT_BRANCH=$(HOME) \"x\"", NULL };
	const struct engine_gpu_place place = { .node = "n0" };
	const struct engine_start start = { .job = 1,
					    .attempt = 2,
					    .job_name = "s",
					    .argv = argv,
					    .env = env,
					    .made_from = made_from,
					    .place_count = 1,
					    .places = &place };
	AUTO_BUF pod = BUF_INIT;

	(void)state;
	assert_false(manifest_needs_secret(&site, &start));
	manifest_pod(&site, &start, 0, false, &arena, &pod);
	assert_non_null(
		strstr(buf_text(&pod),
		       "{\"name\":\"FAIRLEAD_GIT_BRANCH\",\"value\":\"$$(HOME) \\\"x\\\"\"}"));
}

static void a_pod_of_a_job_with_checkpoints_has_a_shepherd(void **state)
{
	static const char *const argv[] = { "python3", "train.py", NULL };
	static const char *const env[] = { NULL };
	const struct engine_gpu_place place = { .node = "n0" };
	struct engine_start start = { .job = 12,
				      .attempt = 34,
				      .job_name = "resnet",
				      .user = "alice",
				      .queue = "vision",
				      .argv = argv,
				      .env = env,
				      .checkpoint_dir = "/checkpoints",
				      .resume_path = "/checkpoints/step-7",
				      .checkpoint_signal = 10,
				      .checkpoint_every_ms = 600000,
				      .pod_token = "fp_34_geheim",
				      .place_count = 1,
				      .places = &place };
	struct manifest_site with = site;
	AUTO_BUF pod = BUF_INIT;
	AUTO_BUF secret = BUF_INIT;

	(void)state;
	assert_false(manifest_has_shepherd(&with, &start));
	assert_false(manifest_needs_secret(&with, &start));
	with.shepherd_server = "10.0.0.7:7071";
	with.shepherd_image = "hub/fairlead:1";
	with.lease_ms = 300000;
	assert_true(manifest_has_shepherd(&with, &start));
	assert_true(manifest_needs_secret(&with, &start));
	manifest_pod(&with, &start, 0, false, &arena, &pod);
	golden("pod-shepherd", &pod);
	assert_null(strstr(buf_text(&pod), "geheim"));
	/* What the shepherd is to look at, where it is known. */
	start.resume_number = 7;
	start.resume_bytes = 1048576;
	buf_clear(&pod);
	manifest_pod(&with, &start, 0, false, &arena, &pod);
	golden("pod-resume", &pod);
	manifest_secret(&with, &start, &secret);
	assert_non_null(strstr(buf_text(&secret), "\"token\":\"fp_34_geheim\""));
	start.checkpoint_offered = true; /* it declares none */
	assert_false(manifest_has_shepherd(&with, &start));
}

static void a_rank_that_was_started_anew_is_a_pod_and_a_host_of_its_own(void **state)
{
	static const char *const argv[] = { "python3", "train.py", NULL };
	static const char *const env[] = { NULL };
	const struct engine_gpu_place places[] = {
		{ .rank = 0, .node = "n0", .gpu_mask = 1, .member = MEMBER_NONE, .left = true },
		{ .rank = 1, .node = "n1", .gpu_mask = 1, .launch = 2, .member = 0, .comes = true },
		{ .rank = 2, .node = "n2", .gpu_mask = 2, .member = 1 },
	};
	const struct engine_start start = { .job = 12,
					    .attempt = 34,
					    .job_name = "resnet",
					    .user = "alice",
					    .queue = "vision",
					    .argv = argv,
					    .env = env,
					    .checkpoint_dir = "/checkpoints",
					    .pod_token = "fp_34_geheim",
					    .place_count = 3,
					    .places = places,
					    .generation = 3,
					    .member_count = 2,
					    .changes = true };
	struct manifest_site with = site;
	AUTO_BUF pod = BUF_INIT;
	AUTO_BUF secret = BUF_INIT;
	AUTO_BUF owned = BUF_INIT;
	AUTO_BUF service = BUF_INIT;

	(void)state;
	with.shepherd_server = "10.0.0.7:7071";
	with.shepherd_image = "hub/fairlead:1";
	with.lease_ms = 300000;
	manifest_pod(&with, &start, 1, true, &arena, &pod);
	golden("pod-anew", &pod);
	/* Nobody's: no pod lives as long as the attempt. */
	manifest_service(&with, &start, &service);
	manifest_owned(buf_text(&service), "fairlead-01234567-12-34-0", "uid-0", &owned);
	golden("service-changing", &owned);
	manifest_secret(&with, &start, &secret);
	assert_null(strstr(buf_text(&secret), "ownerReferences"));
}

static void a_pod_of_a_job_with_a_snapshot_gets_it_before_its_task_begins(void **state)
{
	static const char *const argv[] = { "python3", "train.py", NULL };
	static const char *const env[] = { NULL };
	const struct engine_gpu_place place = { .node = "n0" };
	struct engine_start start = {
		.job = 12,
		.attempt = 34,
		.job_name = "resnet",
		.user = "alice",
		.queue = "vision",
		.argv = argv,
		.env = env,
		.workdir = "/home/alice",
		.snapshot = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		.checkpoint_offered = true,
		.pod_token = "fp_34_geheim",
		.place_count = 1,
		.places = &place
	};
	struct manifest_site with = site;
	AUTO_BUF pod = BUF_INIT;
	AUTO_BUF secret = BUF_INIT;

	(void)state;
	assert_false(manifest_has_code(&with, &start));
	with.shepherd_server = "10.0.0.7:7071";
	with.shepherd_image = "hub/fairlead:1";
	assert_true(manifest_has_code(&with, &start));
	assert_false(manifest_has_shepherd(&with, &start));
	assert_true(manifest_needs_secret(&with, &start));
	manifest_pod(&with, &start, 0, false, &arena, &pod);
	golden("pod-code", &pod);
	assert_null(strstr(buf_text(&pod), "geheim"));
	manifest_secret(&with, &start, &secret);
	assert_non_null(strstr(buf_text(&secret), "\"token\":\"fp_34_geheim\""));
	start.checkpoint_offered = false; /* with a shepherd, too */
	buf_clear(&pod);
	manifest_pod(&with, &start, 0, false, &arena, &pod);
	assert_non_null(strstr(buf_text(&pod), "\"install\""));
	assert_non_null(strstr(buf_text(&pod), "\"fetch\""));
}

static void small_ones_name_the_pod_by_its_uid(void **state)
{
	AUTO_BUF out = BUF_INIT;

	(void)state;
	manifest_binding("jobs", "p", "u", "n0", &out);
	golden("binding", &out);
	buf_clear(&out);
	manifest_delete("u", 30, &out);
	assert_string_equal(
		buf_text(&out),
		"{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"gracePeriodSeconds\":30,\"preconditions\":{\"uid\":\"u\"}}");
	buf_clear(&out);
	manifest_evict("team", "p", "u", &out);
	assert_string_equal(
		buf_text(&out),
		"{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"p\",\"namespace\":\"team\"},"
		"\"deleteOptions\":{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\"}}}");
	buf_clear(&out);
	manifest_let_go("u", &out);
	assert_string_equal(
		buf_text(&out),
		"{\"metadata\":{\"uid\":\"u\",\"$deleteFromPrimitiveList/finalizers\":[\"fairlead.dev/end-recorded\"]}}");
}

static bool owns(const char *name, const char *scheduler, const char *instance, uint64_t *ret)
{
	struct kube_pod pod = { .namespace = "jobs" };
	bool ours;

	snprintf(pod.name, sizeof(pod.name), "%s", name);
	snprintf(pod.scheduler, sizeof(pod.scheduler), "%s", scheduler);
	snprintf(pod.instance, sizeof(pod.instance), "%s", instance);
	ours = manifest_owns(&site, &pod);
	*ret = ours ? pod.launch * 1000000 + pod.job * 10000 + pod.attempt * 100 + pod.rank : 0;
	return ours;
}

/* Labels may be changed by whoever may label pods: a pod that was taken for gone would run twice. */
static void a_pod_is_known_by_what_nobody_can_change(void **state)
{
	static const char *const others[] = {
		"fairlead-01234567-12-34",    "fairlead-01234567-12-34-5-0",
		"fairlead-01234567-12-34-",   "fairlead-01234567-12-34-x",
		"fairlead-01234567-12-34-5-", "fairlead-01234567-12-34-5-6-7",
		"fairlead-0123456-12-34-5",   "fairlead-12-34-5",
		"fairlead-01234567-12-0-5",   "fairlead-01234567-12-4294967295-5",
		"fairlead-01234567--12-34-5", "",
	};
	uint64_t ids;

	(void)state;
	assert_true(owns("fairlead-01234567-12-34-5", "fairlead", "0123456789abcdef", &ids));
	assert_int_equal(ids, 123405);
	assert_true(owns("fairlead-01234567-12-34-5", "fairlead", "", &ids));
	assert_true(owns("fairlead-01234567-12-34-5-6", "fairlead", "0123456789abcdef", &ids));
	assert_int_equal(ids, 6123405);
	assert_true(owns("fairlead-01234567-12-34-5", "fairlead", "somebody's", &ids));
	assert_false(owns("fairlead-01234567-12-34-5", "fairlead", "0123456700000000", &ids));
	assert_false(
		owns("fairlead-01234567-12-34-5", "default-scheduler", "0123456789abcdef", &ids));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(owns(others[i], "fairlead", "0123456789abcdef", &ids));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pod_is_written_as_ever),
		cmocka_unit_test(a_script_of_a_single_task_lies_in_the_secret),
		cmocka_unit_test(a_pod_of_a_job_with_checkpoints_has_a_shepherd),
		cmocka_unit_test(a_rank_that_was_started_anew_is_a_pod_and_a_host_of_its_own),
		cmocka_unit_test(what_a_job_was_made_from_is_plain_and_needs_no_secret),
		cmocka_unit_test(a_pod_of_a_job_with_a_snapshot_gets_it_before_its_task_begins),
		cmocka_unit_test(a_pod_is_known_by_what_nobody_can_change),
		cmocka_unit_test(small_ones_name_the_pod_by_its_uid),
	};
	int failed;

	arena_init(&arena, 64 << 20);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_deinit(&arena);
	return failed;
}
