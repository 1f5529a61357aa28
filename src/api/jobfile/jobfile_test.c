/* SPDX-License-Identifier: Apache-2.0 */
#include "api/jobfile/jobfile_testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/model/facts.h"

static char *read_golden(const char *name, size_t *ret_size)
{
	char path[512];
	FILE *file;
	char *text;
	long size;

	snprintf(path, sizeof(path), "%s/%s", GOLDEN_FOLDER, name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is missing", path);
	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	assert_true(size >= 0 && size < 1 << 20);
	rewind(file);
	text = arena_alloc(&jobfile_arena, (size_t)size + 1);
	assert_int_equal(fread(text, 1, (size_t)size, file), (size_t)size);
	fclose(file);
	*ret_size = (size_t)size;
	return text;
}

/* The event and the body, one line each. */
static void golden(const char *name)
{
	char file[128];
	struct job_request request;
	struct err err = { 0 };
	AUTO_BUF out = BUF_INIT;
	size_t size, expected_size;
	const char *text, *expected;

	snprintf(file, sizeof(file), "%s.yaml", name);
	text = read_golden(file, &size);
	if (jobfile_parse(file, text, size, &jobfile_arena, &request, &err) < 0)
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.text);
	event_encode(&request.event, &out);
	buf_addc(&out, '\n');
	buf_add(&out, request.body, request.body_size);
	buf_addc(&out, '\n');
	if (getenv("FAIRLEAD_SHOW_GOLDEN")) {
		fprintf(stderr, "=== %s\n%s", name, buf_text(&out));
		return;
	}
	snprintf(file, sizeof(file), "%s.expected", name);
	expected = read_golden(file, &expected_size);
	assert_string_equal(buf_text(&out), expected);
}

static void files_of_old_are_read_as_ever(void **state)
{
	(void)state;
	golden("smallest");
	golden("every-field");
	golden("script");
	golden("request.json");
	golden("roles");
	golden("role-resources");
	golden("image");
	golden("pods");
	golden("snapshot");
	golden("git");
	golden("shell-env");
}

static void a_range_of_tasks_says_how_it_resizes_and_whether_tasks_come_back(void **state)
{
	static const struct {
		const char *text;
		int64_t resize, rejoins;
	} cases[] = {
		{ "command: x\n", RESIZE_FREE, 0 },
		{ "command: x\nrejoin: true\n", RESIZE_FREE, 1 },
		{ "command: x\ntasks: 2..4\n", RESIZE_FREE, 1 },
		{ "command: x\ntasks: 2..4\nrejoin: false\n", RESIZE_FREE, 0 },
		{ "command: x\ntasks: 2..4\nresize: restart\n", RESIZE_RESTART, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct job_request request = good(cases[i].text);

		assert_int_equal(request.event.job_submitted.resize, cases[i].resize);
		assert_int_equal(request.event.job_submitted.rejoins, cases[i].rejoins);
	}
}

static void each_field_reaches_the_event(void **state)
{
	const struct event_job_submitted *job;
	struct job_request request;

	(void)state;
	request = good(
		"name: a\nqueue: q\nteam: t\nproject: p\nkind: batch\ntier: best-effort\npriority: 1000\ntasks: 3\n"
		"gpus: {count: 2, model: X, memory: 40GiB}\ncpus: 0.5\nmemory: 2GiB\ncommand: x\nlimit: 2h\nestimate: 1h\n"
		"deadline: 2028-03-01T12:30Z\nefficiency: 80\n"
		"retries: 1\ndepends_on: 9\narray: 5\nhold: true\ntopology: {require: rack, prefer: node, max_slowdown: 12.5%}\npreempts: false\n"
		"min_driver: \"550.54\"\nmin_cuda: 12.4\nmin_capability: \"9.0\"\nregion: [eu, de]\n"
		"selector: {pool: blue, disk: ssd}\ntolerates: team=vision\nspread: row\nthroughput: {X: 0.45}\nmin_throughput: 0.4\nmix_models: true\ndata: [imagenet, web/v2]\nalign: nic\n"
		"window: \"sat-sun, utc+1\"\nwindow_end: finish\n"
		"labels: {app: web, tier: a}\napart_from: {app: web}\napart_level: rack\napart_prefer: true\n"
		"checkpoint: {how: report, every: 1m, grace: 5s, restart_cost: 6s}\n");
	job = &request.event.job_submitted;
	assert_int_equal(request.event.kind, EVENT_JOB_SUBMITTED);
	assert_string_equal(job->name, "a");
	assert_string_equal(job->queue, "q");
	assert_string_equal(job->team, "t");
	assert_string_equal(job->project, "p");
	assert_int_equal(job->kind, KIND_BATCH);
	assert_int_equal(job->tier, TIER_BEST_EFFORT);
	assert_int_equal(job->priority, 1000);
	assert_int_equal(job->tasks_min, 3);
	assert_int_equal(job->tasks_max, 3);
	assert_int_equal(job->gpus, 2);
	assert_string_equal(job->models, "X");
	assert_int_equal(job->gpu_memory_mib, 40 << 10);
	assert_int_equal(job->cpu_milli, 500);
	assert_int_equal(job->memory_mib, 2048);
	assert_int_equal(job->limit_ms, 7200000);
	assert_int_equal(job->estimate_ms, 3600000);
	assert_int_equal(job->deadline_ms, 1835526600000); /* date -ud 2028-03-01T12:30 +%s */
	assert_int_equal(job->efficiency, 80);
	assert_int_equal(job->retries, 1);
	assert_int_equal(job->depends_count, 1);
	assert_int_equal(job->depends[0], 9);
	assert_int_equal(job->array_count, 5);
	assert_int_equal(job->held, 1);
	assert_string_equal(job->require, "rack");
	assert_string_equal(job->prefer, "node");
	assert_int_equal(job->preempts, 0);
	assert_int_equal(job->checkpoint, 1);
	assert_int_equal(job->checkpoint_every_ms, 60000);
	assert_int_equal(job->grace_ms, 5000);
	assert_int_equal(job->restart_cost_ms, 6000);
	assert_string_equal(job->min_driver, "550.54");
	assert_string_equal(job->min_cuda, "12.4");
	assert_int_equal(job->min_capability, 90);
	assert_string_equal(job->regions, "eu,de");
	assert_string_equal(job->labels, "pool=blue,disk=ssd");
	assert_string_equal(job->tolerates, "team=vision");
	assert_string_equal(job->spread, "row");
	assert_int_equal(job->max_slowdown, 125);
	assert_int_equal(job->throughput_count, 1);
	assert_int_equal(job->throughput[0], 450);
	assert_int_equal(job->min_throughput, 400);
	assert_int_equal(job->mixes, 1);
	assert_int_equal(job->align, ALIGN_NIC);
	assert_string_equal(job->window, "sat-sun, utc+1");
	assert_int_equal(job->window_end, 1);
	assert_string_equal(job->own_labels, "app=web,tier=a");
	assert_string_equal(job->apart_from, "app=web");
	assert_string_equal(job->apart_level, "rack");
	assert_int_equal(job->apart_wish, 1);
	assert_string_equal(job->data, "imagenet,web/v2");
}

static void defaults_are_as_documented(void **state)
{
	struct job_request request = good("command: x\n");
	const struct event_job_submitted *job = &request.event.job_submitted;

	(void)state;
	assert_string_equal(job->queue, "default");
	assert_string_equal(job->team, "");
	assert_int_equal(job->kind, KIND_TRAINING);
	assert_int_equal(job->tier, TIER_STANDARD);
	assert_int_equal(job->tasks_min, 1);
	assert_int_equal(job->tasks_max, 1);
	assert_int_equal(job->gpus, 1);
	assert_int_equal(job->grace_ms, -1);
	assert_int_equal(job->array_count, 1);
	assert_int_equal(job->preempts, 1);
	assert_int_equal(job->checkpoint, 0);
	assert_int_equal(job->limit_ms, 0);
}

static void a_job_without_name_gets_its_programs(void **state)
{
	(void)state;
	assert_string_equal(good("command: [/usr/bin/python3, x]\n").event.job_submitted.name,
			    "python3");
	assert_string_equal(good("command: ./train.sh --fast\n").event.job_submitted.name,
			    "train.sh");
	assert_string_equal(good("command: '  nvidia-smi; true'\n").event.job_submitted.name,
			    "nvidia-smi");
	assert_string_equal(good("script: |\n  x\n").event.job_submitted.name, "script");
	assert_string_equal(good("command: ['/usr/bin/-!-']\n").event.job_submitted.name, "job");
}

static void ranges_of_tasks_have_three_forms(void **state)
{
	(void)state;
	assert_int_equal(good("command: x\ntasks: 2..4\n").event.job_submitted.tasks_max, 4);
	assert_int_equal(
		good("command: x\ntasks: {min: 2, max: 4}\n").event.job_submitted.tasks_min, 2);
	assert_int_equal(good("command: x\ntasks: 4\n").event.job_submitted.tasks_min, 4);
}

static void an_array_may_have_a_limit(void **state)
{
	static const char *const forms[] = { "command: x\narray: 20%4\n",
					     "command: x\narray: {count: 20, limit: 4}\n",
					     "{\"command\": \"x\", \"array\": \"20%4\"}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct event_job_submitted job = good(forms[i]).event.job_submitted;

		assert_int_equal(job.array_count, 20);
		assert_int_equal(job.array_limit, 4);
	}
	assert_int_equal(good("command: x\narray: 20\n").event.job_submitted.array_limit, 0);
}

static void one_job_of_an_array_to_depend_on_is_named_by_both_numbers(void **state)
{
	struct job_request request = good("command: x\ndepends_on: [17, 40_3]\n");
	const struct event_job_submitted *job = &request.event.job_submitted;

	(void)state;
	assert_int_equal(job->depends_count, 2);
	assert_int_equal(job->depends[0], 17);
	assert_int_equal(request.depend_arrays[0], 0);
	assert_int_equal(job->depends[1], 43);
	assert_int_equal(request.depend_arrays[1], 40);
}

static struct job_body body_of(const char *text)
{
	struct job_request request = good(text);
	struct job_body body;
	struct err err = { 0 };

	if (job_body_parse(request.body, request.body_size, &jobfile_arena, &body, &err) < 0)
		fail_msg("%s: %s", err.text, request.body);
	return body;
}

static void the_body_comes_back_as_given(void **state)
{
	struct job_body body;

	(void)state;
	body = body_of(
		"command: [a, \"b \\\"c\\\"\", '']\nenv: {X: 1.50, Y: \"\\u00fc\\n\"}\nsecrets: {S: {value: geheim}}\n"
		"workdir: /w\nsnapshot: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n"
		"image: hub/a@sha256:00\ncheckpoint: {how: signal, signal: USR2, path: /c}\n");
	assert_string_equal(body.argv[0], "a");
	assert_string_equal(body.argv[1], "b \"c\"");
	assert_string_equal(body.argv[2], "");
	assert_null(body.argv[3]);
	assert_null(body.script);
	assert_string_equal(body.env[0], "X=1.50");
	assert_string_equal(body.env[1], "Y=\xc3\xbc\n");
	assert_string_equal(body.env[2], "S=geheim");
	assert_null(body.env[3]);
	assert_string_equal(body.secrets[0], "S");
	assert_null(body.secrets[1]);
	assert_string_equal(body.workdir, "/w");
	assert_string_equal(body.snapshot,
			    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
	assert_string_equal(body.image, "hub/a@sha256:00");
	assert_string_equal(body.checkpoint_path, "/c");
	assert_int_equal(body.checkpoint_signal, 12);
}

static void a_sweep_gives_each_job_of_the_array_its_combination(void **state)
{
	static const char text[] =
		"command: x\nenv: {E: e}\nsweep: {LR: [0.1, 0.01], B: [a, b, c]}\narray: {limit: 2}\n";
	static const char *const values[] = { "LR=0.1 B=a",  "LR=0.1 B=b",  "LR=0.1 B=c",
					      "LR=0.01 B=a", "LR=0.01 B=b", "LR=0.01 B=c" };
	struct job_body body = body_of(text);
	struct job_request request = good(text);

	(void)state;
	assert_int_equal(request.event.job_submitted.array_count, 6);
	assert_int_equal(request.event.job_submitted.array_limit, 2);
	for (uint32_t i = 0; i < ARRAY_SIZE(values); i++) {
		const char *const *env = job_body_env(&body, i, &jobfile_arena);

		assert_string_equal(env[0], "E=e");
		assert_string_equal(arena_printf(&jobfile_arena, "%s %s", env[1], env[2]),
				    values[i]);
		assert_null(env[3]);
	}
}

/* Jobs that ask for the same of their nodes share a mask; others do not. */
static void what_some_nodes_lack_makes_a_mask(void **state)
{
	static const char claim[] = "command: x\nvolumes: {data: /data}\n";
	const char *mask = good(claim).mask;

	(void)state;
	assert_int_equal(strncmp(mask, JOBFILE_OWN_MASK, strlen(JOBFILE_OWN_MASK)), 0);
	assert_string_equal(good("name: other\ncommand: y\nvolumes: {data: {path: /data}}\n").mask,
			    mask);
	assert_string_not_equal(good("command: x\nvolumes: {other: /data}\n").mask, mask);
	assert_string_not_equal(good("command: x\ntasks: 2\nvolumes: {data: /data}\n").mask, mask);
	assert_string_not_equal(good("command: x\nresources: {rdma/hca: 1}\n").mask, "");
	/* GPUs bound how many lie on one node: of roles, those that they say, and not what the job says. */
	assert_string_not_equal(
		good("command: x\nvolumes: {data: /data}\nroles: [{name: a, gpus: 0}]\n").mask,
		good("command: x\nvolumes: {data: /data}\nroles: [{name: a, gpus: 8}]\n").mask);
	assert_string_equal(
		good("command: x\nshm: 1GiB\nvolumes: {a: {empty: true, path: /a}}\n").mask, "");
	assert_string_equal(good("command: x\nshm: 1GiB\nkubernetes: {}\n").pod_field, "shm");
	assert_null(good("command: x\n").pod_field);
}

/* Of each role that has some, and of two or more one for all of them; what the job says is said for each role. */
static void resources_of_roles_make_masks_of_theirs(void **state)
{
	static const char gang[] =
		"command: x\nroles: [{name: driver, gpus: 0}, {name: worker, tasks: 4, resources: {rdma/hca: 1}}]\n";
	struct job_request one = good(gang), all, most, other;
	struct job_body body = body_of(gang);

	(void)state;
	assert_string_equal(one.mask, "");
	assert_int_equal(
		strncmp(one.role_masks, "," JOBFILE_OWN_MASK, strlen(JOBFILE_OWN_MASK) + 1), 0);
	assert_null(strchr(one.role_masks + 1, ','));
	assert_string_equal(one.together, "");
	assert_string_equal(one.pod_field, "roles.resources");
	assert_null(body.overlays[0]);
	assert_null(body.roles[0].overlay);
	assert_non_null(strstr(body.roles[1].overlay, "\"limits\":{\"rdma/hca\":\"1\"}"));
	assert_non_null(strstr(body.roles[1].overlay, "IPC_LOCK"));
	all = good(
		"command: x\nresources: {rdma/hca: 1}\nvolumes: {d: /d}\nroles: [{name: a}, {name: b, tasks: 2}]\n");
	assert_string_not_equal(all.mask, ""); /* of the claim */
	assert_null(strstr(all.role_masks, all.mask));
	assert_int_equal(strncmp(all.together, JOBFILE_OWN_MASK, strlen(JOBFILE_OWN_MASK)), 0);
	most = good(
		"command: x\nresources: {rdma/hca: 1}\nroles: [{name: a, resources: {}}, {name: b, tasks: 2}]\n");
	other = good(
		"command: x\nroles: [{name: a}, {name: b, tasks: 2, resources: {rdma/hca: 1}}]\n");
	assert_string_equal(most.role_masks, other.role_masks);
	assert_string_equal(most.together, "");
	assert_string_not_equal(most.role_masks, one.role_masks); /* fewer tasks */
}

static void a_command_text_is_given_to_the_shell(void **state)
{
	struct job_body body = body_of("command: echo $X | cat\n");

	(void)state;
	assert_string_equal(body_of("command: x\nenv: {FAIRLEAD_DATA: /d}\n").env[0],
			    "FAIRLEAD_DATA=/d");
	assert_string_equal(body.argv[0], "/bin/sh");
	assert_string_equal(body.argv[1], "-c");
	assert_string_equal(body.argv[2], "echo $X | cat");
	assert_null(body.argv[3]);
	assert_null(body.env[0]);
	assert_int_equal(body.checkpoint_signal, 0);
}

/* What the device plugin counts is a resource of the pod. */
static void a_slice_is_a_resource_of_pods(void **state)
{
	static const struct {
		const char *gpus, *resources, *why;
	} cases[] = {
		{ "1g.10gb", "{\"nvidia.com/mig-1g.10gb\":\"1\"}", NULL },
		{ "1g.10gb+me", "{\"nvidia.com/mig-1g.10gb.me\":\"1\"}", NULL },
		{ "{slice: 3g.40gb}\nresources: {rdma/hca: 2}",
		  "{\"rdma/hca\":\"2\",\"nvidia.com/mig-3g.40gb\":\"1\"}", NULL },
		{ "1g.10gb\nroles: [{name: a}]", NULL, "a slice is for jobs without roles" },
		{ "{slice: fit, memory: 9GiB}", NULL, "such as 1g.10gb" },
		{ "{slice: 1g.10gb, model: A100-80GB}", NULL, "by its name alone" },
		{ "1g.10gb\nresources: {nvidia.com/mig-1g.10gb: 1}", NULL, "write gpus" },
		{ "0\nresources: {nvidia.com/gpu.shared: 1}", "{\"nvidia.com/gpu.shared\":\"1\"}",
		  NULL },
		{ "0\nresources: {amd.com/gpu: 8}", "{\"amd.com/gpu\":\"8\"}", NULL },
		{ "0\nresources: {nvidia.com/mig-1g.10gb.shared: 1}",
		  "{\"nvidia.com/mig-1g.10gb.shared\":\"1\"}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job_request request;
		struct conf *document;
		struct job_body body;
		struct err err = { 0 };
		AUTO_BUF text = BUF_INIT;
		int rc;

		buf_addf(&text, "command: x\ngpus: %s\n", cases[i].gpus);
		assert_int_equal(jobfile_read_text("job.yaml", buf_text(&text), text.size,
						   &jobfile_arena, &document, &err),
				 0);
		rc = jobfile_read_for_pods("job.yaml", document, &jobfile_arena, &request, &err);
		if (cases[i].why) {
			assert_true(rc < 0);
			if (!strstr(err.text, cases[i].why))
				fail_msg("%s: %s", cases[i].gpus, err.text);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(request.event.job_submitted.gpus, 0);
		assert_string_equal(request.event.job_submitted.slice, "");
		assert_string_not_equal(request.mask, "");
		assert_int_equal(job_body_parse(request.body, request.body_size, &jobfile_arena,
						&body, &err),
				 0);
		assert_non_null(strstr(body.overlays[0], cases[i].resources));
	}
}

static void a_script_stays_whole(void **state)
{
	struct job_body body = body_of("script: |\n  a\n  b\ncheckpoint: signal\n");

	(void)state;
	assert_null(body.argv);
	assert_string_equal(body.script, "a\nb\n");
	assert_int_equal(body.checkpoint_signal, 10);
}

static void damaged_bodies_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"env\":{}}",
		"{\"argv\":[]}",
		"{\"argv\":[1]}",
		"{\"argv\":[\"a\"],\"script\":\"b\"}",
		"{\"script\":\"b\"",
		"{\"script\":\"a\",\"workdir\":\"b\"}",
		"{\"script\":\"a\",\"checkpoint_signal\":\"KILL\"}",
		"{\"script\":\"a\",\"snapshot\":\"../../etc\"}",
		"{\"script\":\"a\",\"env\":[]}",
		"{\"script\":\"a\",\"env\":{\"A\":1}}",
		"{\"script\":\"\\u0000\"}",
	};
	struct job_body body;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (job_body_parse(texts[i], strlen(texts[i]), &jobfile_arena, &body, &err) >= 0)
			fail_msg("accepted: %s", texts[i]);
	assert_true(job_body_parse("{\"script\":\"a\",\"later\":[{}]}", 27, &jobfile_arena, &body,
				   &err) >= 0);
}

static void written_again_it_reads_the_same(void **state)
{
	static const char text[] =
		"command: [a, 007, \"1\", true, \"true\"]\ntasks: 2..4\ngpus: {count: 1}\ncpus: 0.5\nlimit: 10m\nenv: {A: \"\\t\\\"x\", B: 3, C: ''}\n";
	struct job_request first = good(text), second;
	struct conf *document;
	struct err err;
	AUTO_BUF again = BUF_INIT;
	AUTO_BUF one = BUF_INIT;
	AUTO_BUF two = BUF_INIT;

	(void)state;
	assert_true(jobfile_read_text("job.yaml", text, strlen(text), &jobfile_arena, &document,
				      &err) >= 0);
	jobfile_write(document, &again);
	second = good(again.data);
	event_encode(&first.event, &one);
	event_encode(&second.event, &two);
	assert_string_equal(one.data, two.data);
	assert_string_equal(first.body, second.body);
}

/* Through JSON as well, where 1/7 is a text, and never through a double: 0.1 is 6300 of 63000. */
static void parts_of_gpus_are_read_by_their_digits(void **state)
{
	static const struct {
		const char *text;
		int64_t gpus, part, part_mib, memory_mib;
	} cases[] = {
		{ "command: x\ngpus: 0.5\n", 1, 31500, 0, 0 },
		{ "command: x\ngpus: 0.1\n", 1, 6300, 0, 0 },
		{ "command: x\ngpus: 0.001\n", 1, 63, 0, 0 },
		{ "command: x\ngpus: 1/7\n", 1, 9000, 0, 0 },
		{ "{\"command\": \"x\", \"gpus\": 0.7}", 1, 44100, 0, 0 },
		{ "{\"command\": \"x\", \"gpus\": \"2/3\"}", 1, 42000, 0, 0 },
		{ "command: x\ngpus: {count: 1/7, model: L4}\n", 1, 9000, 0, 0 },
		{ "command: x\ngpus: {count: 0.5, memory: 40GiB}\n", 1, 31500, 0, 40960 },
		{ "command: x\ngpus: {memory: 2000MiB}\n", 1, 0, 2000, 0 },
		{ "command: x\ngpus: {model: L4, memory: 2000MiB}\n", 1, 0, 2000, 0 },
		{ "command: x\ngpus: {count: 1, memory: 2000MiB}\n", 1, 0, 0, 2000 },
		{ "command: x\ngpus: 3\n", 3, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct job_request request = good(cases[i].text);
		const struct event_job_submitted *job = &request.event.job_submitted;

		if (job->gpus != cases[i].gpus || job->gpu_part != cases[i].part ||
		    job->gpu_part_mib != cases[i].part_mib ||
		    job->gpu_memory_mib != cases[i].memory_mib)
			fail_msg("%s: %lld, %lld, %lld, %lld", cases[i].text, (long long)job->gpus,
				 (long long)job->gpu_part, (long long)job->gpu_part_mib,
				 (long long)job->gpu_memory_mib);
	}
}

static void
variables_of_the_shell_are_kept_apart_and_are_no_part_of_what_a_key_stands_for(void **state)
{
	struct job_body body = body_of("command: x\nenv: {A: 1}\nshell_env: {PATH: /v/bin}\n");
	struct job_request request = good("command: x\nshell_env: {PATH: /v/bin}\n");
	struct job_request without = good("command: x\n");

	(void)state;
	assert_string_equal(body.env[0], "A=1");
	assert_null(body.env[1]);
	assert_string_equal(body.shell_env[0], "PATH=/v/bin");
	assert_null(body.shell_env[1]);
	assert_null(body_of("command: x\n").shell_env[0]);
	assert_string_not_equal(request.body, without.body);
	assert_string_equal(request.lasting, without.lasting);
}

static void of_a_shell_only_what_tasks_can_use_is_passed(void **state)
{
	static const struct {
		const char *name;
		bool usually, all;
	} cases[] = {
		{ "PATH", true, true },
		{ "VIRTUAL_ENV", true, true },
		{ "CONDA_PREFIX", true, true },
		{ "LD_LIBRARY_PATH", true, true },
		{ "PYTHONPATH", true, true },
		{ "HF_HOME", false, true },
		{ "PWD", false, false },
		{ "RANK", false, false },
		{ "FAIRLEAD_TOKEN", false, false },
		{ "BASH_FUNC_x%%", false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(jobfile_shell_env_passes(cases[i].name, false), cases[i].usually);
		assert_int_equal(jobfile_shell_env_passes(cases[i].name, true), cases[i].all);
	}
}

/* What makes jobs alike. */
static void a_program_is_told_from_another_by_names_and_not_by_values(void **state)
{
	static const struct {
		const char *argv[8], *script, *said;
	} cases[] = {
		{ { "python3", "/home/vera/train.py", "--lr", "0.1", "--out=/data/7" },
		  NULL,
		  "python# train.py --lr _ --out\n" },
		{ { "python3", "train.py", "--lr", "7e-3", "--out=x" },
		  NULL,
		  "python# train.py --lr _ --out\n" },
		{ { "python3", "-c", "print(17)" }, NULL, "python# -c print(#)\n" },
		{ { "python3", "-m", "train", "small", "big" }, NULL, "python# -m train _\n" },
		{ { "torchrun", "--nproc_per_node", "8", "train-2.py", "big" },
		  NULL,
		  "torchrun --nproc_per_node _ train-#.py _\n" },
		{ { "srun", "-n", "4", "python3", "eval.py" },
		  NULL,
		  "srun -n _ python# eval.py\n" },
		{ { "sleep", "300" }, NULL, "sleep _\n" },
		{ { NULL }, "cd run17\n./train", "cd run#\n./train\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job_body body = { .argv = cases[i].script ? NULL : cases[i].argv,
					 .script = cases[i].script };
		AUTO_BUF said = BUF_INIT;

		job_body_program_say(&body, &said);
		assert_string_equal(buf_text(&said), cases[i].said);
		assert_true(job_body_program(&body) > 0);
		assert_int_equal(job_body_program(&body) == job_body_program(&(struct job_body){
								    .argv = cases[0].argv }),
				 i < 2);
	}
	assert_int_equal(job_body_program(&(struct job_body){ .pod_count = 1 }), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_is_told_from_another_by_names_and_not_by_values),
		cmocka_unit_test_setup_teardown(
			variables_of_the_shell_are_kept_apart_and_are_no_part_of_what_a_key_stands_for,
			jobfile_begin, jobfile_end),
		cmocka_unit_test(of_a_shell_only_what_tasks_can_use_is_passed),
		cmocka_unit_test_setup_teardown(files_of_old_are_read_as_ever, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(
			a_range_of_tasks_says_how_it_resizes_and_whether_tasks_come_back,
			jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(each_field_reaches_the_event, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(defaults_are_as_documented, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_job_without_name_gets_its_programs, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(parts_of_gpus_are_read_by_their_digits,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(ranges_of_tasks_have_three_forms, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(an_array_may_have_a_limit, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(
			one_job_of_an_array_to_depend_on_is_named_by_both_numbers, jobfile_begin,
			jobfile_end),
		cmocka_unit_test_setup_teardown(the_body_comes_back_as_given, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_sweep_gives_each_job_of_the_array_its_combination,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(what_some_nodes_lack_makes_a_mask, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(resources_of_roles_make_masks_of_theirs,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(a_command_text_is_given_to_the_shell, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_slice_is_a_resource_of_pods, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_script_stays_whole, jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(damaged_bodies_are_refused, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(written_again_it_reads_the_same, jobfile_begin,
						jobfile_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
