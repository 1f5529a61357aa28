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
	golden("image");
	golden("pods");
	golden("snapshot");
	golden("git");
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

/* What is wrong, where, and words of the message. */
static const struct {
	const char *text;
	int line, column;
	const char *message;
} wrong[] = {
	{ "", 1, 1, "empty" },
	{ "- a\n", 1, 1, "a job file is a map" },
	{ "command: x\n---\ncommand: y\n", 3, 1, "a second job" },
	{ "command: x\nnmae: y\n", 2, 1, "a job has no field \"nmae\"; did you mean \"name\"?" },
	{ "command: x\ngpu: 2\n", 2, 1, "did you mean \"gpus\"?" },
	{ "command: x\nroles: []\n", 2, 8, "must be a list such as" },
	{ "command: x\nroles: [{tasks: 2}]\n", 2, 9, "a role needs a name" },
	{ "command: x\nroles: [{name: a}, {name: a}]\n", 2, 20, "two roles are named \"a\"" },
	{ "command: x\nroles: [{name: a, taks: 2}]\n", 2, 19,
	  "roles has no field \"taks\"; did you mean \"tasks\"?" },
	{ "command: x\nroles: [{name: a, gpus: 0.5}]\n", 2, 9, "a role takes whole GPUs" },
	{ "command: x\nroles: [{name: a, tasks: 2, min: 3}]\n", 2, 9,
	  "min 3 is more than tasks 2" },
	{ "roles: [{name: a, command: x}, {name: b}]\n", 1, 32, "this role has no command" },
	{ "command: x\ntasks: 2\nroles: [{name: a}]\n", 2, 8,
	  "tasks are said by each role of the job" },
	{ "command: x\nsecrets: {A: {value: b}}\nroles: [{name: a, env: {A: c}}]\n", 3, 25,
	  "A stands in secrets of the job" },
	{ "command: x\ncontainer: pytorch\n", 2, 1, "\"container\" is not a field: write image" },
	{ "command: x\nimage: a b\n", 2, 8, "must be the name of a container image" },
	{ "command: x\nimage: :a\n", 2, 8, "must be the name of a container image" },
	{ "command: x\nimage: \"\"\n", 2, 8, "must be the name of a container image" },
	{ "command: x\nsnapshot: .\n", 2, 11,
	  "64 hexadecimal digits; folders are read by `fairlead submit`" },
	{ "command: x\nsnapshot: [a]\n", 2, 11, "snapshot" },
	{ "command: x\ngit: main\n", 2, 6, "{} notes nothing" },
	{ "command: x\ngit: {commit: 5f0c0a3}\n", 2, 15, "40 or 64" },
	{ "command: x\ngit: {branch: \"a\\tb\"}\n", 2, 15, "control characters" },
	{ "command: x\ngit: {branch: ''}\n", 2, 15, "control characters" },
	{ "command: x\ngit: {changed: -1}\n", 2, 16, "changed" },
	{ "command: x\ngit: {comit: a}\n", 2, 7, "did you mean \"commit\"" },
	{ "command: x\ngit: {remote: \"https://u:geheim@h/p\"}\n", 2, 15,
	  "without user, password" },
	{ "command: x\nroles: [{name: a, git: {}}]\n", 2, 19, "git" },
	{ "command: x\nvolumes: []\n", 2, 10, "must be a map of 1 to 32 volumes" },
	{ "command: x\nvolumes: {A: /data}\n", 2, 11, "small letters" },
	{ "command: x\nvolumes: {shm: /data}\n", 2, 11, "a volume of Fairlead's own" },
	{ "command: x\nvolumes: {fairlead-x: /data}\n", 2, 11, "a volume of Fairlead's own" },
	{ "command: x\nvolumes: {a: data}\n", 2, 14, "no place for a volume" },
	{ "command: x\nvolumes: {a: /}\n", 2, 14, "no place for a volume" },
	{ "command: x\nvolumes: {a: /d/../x}\n", 2, 14, "no place for a volume" },
	{ "command: x\nvolumes: {a: /dev/shm}\n", 2, 14, "the machine's or Fairlead's own" },
	{ "command: x\nvolumes: {a: /etc/fairlead/x}\n", 2, 14, "the machine's or Fairlead's own" },
	{ "command: x\nvolumes: {a: /run/fairlead}\n", 2, 14, "the machine's or Fairlead's own" },
	{ "command: x\nvolumes: {a: /fairlead/code}\n", 2, 14, "the machine's or Fairlead's own" },
	{ "command: x\nvolumes: {fairlead-code: /data}\n", 2, 11, "a volume of Fairlead's own" },
	{ "command: x\nvolumes: {a: /var/run}\n", 2, 14, "the machine's or Fairlead's own" },
	{ "command: x\nvolumes: {a: /d, b: /d}\n", 2, 18, "a and b have the same path" },
	{ "command: x\nvolumes: {a: {claim: b}}\n", 2, 11, "needs a path" },
	{ "command: x\nvolumes: {a: {path: /d, clam: b}}\n", 2, 25, "did you mean \"claim\"?" },
	{ "command: x\nvolumes: {a: {path: /d, claim: B}}\n", 2, 32, "no name of an object" },
	{ "command: x\nvolumes: {a: {path: /d, claim: b, empty: true}}\n", 2, 42,
	  "a is claim already" },
	{ "command: x\nvolumes: {a: {path: /d, secret: fairlead-0-1-2}}\n", 2, 33,
	  "Fairlead's own" },
	{ "command: x\nvolumes: {a: {path: /d, claim: fairlead}}\n", 2, 32, "Fairlead's own" },
	{ "command: x\nvolumes: {a: {path: /d, nfs: files}}\n", 2, 30, "HOST:/PATH" },
	{ "command: x\nvolumes: {a: {path: /d, nfs: \"f:/a/../b\"}}\n", 2, 30, "HOST:/PATH" },
	{ "command: x\nvolumes: {a: {path: /d, host: /a/../b}}\n", 2, 31, "must not be / nor" },
	{ "command: x\nvolumes: {a: {path: /d, empty: much}}\n", 2, 32, "empty" },
	{ "command: x\nvolumes: {a: {path: /d, empty: 0MiB}}\n", 2, 32, "1MiB at least" },
	{ "command: x\nresources: {cpu: 1}\n", 2, 13, "for cpu write cpus" },
	{ "command: x\nresources: {nvidia.com/gpu: 1}\n", 2, 13, "write gpus" },
	{ "command: x\nresources: {hca: 1}\n", 2, 13, "no resource of a cluster's nodes" },
	{ "command: x\nresources: {kubernetes.io/x: 1}\n", 2, 13,
	  "no resource of a cluster's nodes" },
	{ "command: x\nresources: {rdma/hca: 0}\n", 2, 23, "rdma/hca" },
	{ "command: x\nresources: {rdma/hca: 1000001}\n", 2, 23, "rdma/hca" },
	{ "command: x\nresources: {rdma/hca: 1}\nroles: [{name: a}]\n", 3, 8,
	  "roles don't go with resources" },
	{ "command: x\nshm: 0MiB\n", 2, 6, "1MiB" },
	{ "command: x\nmemory: 1GiB\nshm: 2GiB\n", 3, 6, "shm is more than memory" },
	{ "command: x\nservice_account: A b\n", 2, 18, "no name of an object" },
	{ "command: x\nservice_account: fairlead\n", 2, 18, "Fairlead's own" },
	{ "command: x\npull_secrets: []\n", 2, 15, "1 to 8 names" },
	{ "command: x\nkubernetes: 3\n", 2, 13, "must be a map" },
	{ "command: x\nkubernetes: {metadata: {name: x}}\n", 2, 25,
	  "metadata.name can't be set: Fairlead knows its pods by their names" },
	{ "command: x\nkubernetes: {metadata: {finalizers: [x]}}\n", 2, 25,
	  "metadata.finalizers can't" },
	{ "command: x\nkubernetes: {metadata: {labels: {fairlead.dev/job: 1}}}\n", 2, 34,
	  "fairlead.dev/job is Fairlead's own" },
	{ "command: x\nkubernetes: {metadata: {annotations: {a.fairlead.dev/x: 1}}}\n", 2, 39,
	  "Fairlead's own" },
	{ "command: x\nkubernetes: {metadata: {annotations: {a.kubernetes.io/x: 1}}}\n", 2, 39,
	  "those who run it" },
	{ "command: x\nkubernetes: {spec: {schedulerName: x}}\n", 2, 21,
	  "spec.schedulerName can't" },
	{ "command: x\nkubernetes: {spec: {hostNetwork: true}}\n", 2, 21,
	  "apart from their nodes" },
	{ "command: x\nkubernetes: {spec: {affinity: {}}}\n", 2, 21, "write selector, topology" },
	{ "command: x\nkubernetes: {spec: {newField: 1}}\n", 2, 21,
	  "none of the fields that a job may set" },
	{ "command: x\nkubernetes: {spec: 3}\n", 2, 20, "must be a map" },
	{ "command: x\nkubernetes: {spec: {dnsPolicy: }}\n", 2, 32, "left empty" },
	{ "command: x\nkubernetes: {spec: {volumes: {a: b}}}\n", 2, 31, "can't be set" },
	{ "command: x\nkubernetes: {spec: {dnsConfig: [a]}}\n", 2, 32, "must not be a list" },
	{ "command: x\nkubernetes: {spec: {volumes: [{name: x, hostPath: {path: /}}]}}\n", 2, 41,
	  "write volumes: {NAME: {host" },
	{ "command: x\nkubernetes: {spec: {volumes: [{name: shm, emptyDir: {}}]}}\n", 2, 38,
	  "a volume of Fairlead's own" },
	{ "command: x\nkubernetes: {spec: {volumes: [{name: x, secret: {secretName: fairlead-0-1-2}}]}}\n",
	  2, 62, "Fairlead's own" },
	{ "command: x\nkubernetes: {spec: {containers: [{image: x}]}}\n", 2, 34, "needs a name" },
	{ "command: x\nkubernetes: {spec: {containers: {name: main}}}\n", 2, 21,
	  "must be a list of maps" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, image: x}]}}\n", 2, 47,
	  "write image" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, resources: {}}]}}\n", 2, 47,
	  "write gpus, cpus, memory or resources" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: b, resources: {}}]}}\n", 2, 44,
	  "Fairlead counts" },
	{ "command: x\nkubernetes: {spec: {initContainers: [{name: main}]}}\n", 2, 45,
	  "main is the name" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, securityContext: {privileged: true}}]}}\n",
	  2, 65, "apart from their nodes" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}}\n",
	  2, 86, "SYS_ADMIN is not for jobs" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, volumeMounts: [{name: x, mountPath: /dev/shm}]}]}}\n",
	  2, 83, "the machine's or Fairlead's own" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: b, env: [{name: A, valueFrom: {secretKeyRef: {name: fairlead-a}}}]}]}}\n",
	  2, 93, "Fairlead's own" },
	{ "command: x\nkubernetes: {spec: {initContainers: [{name: fairlead, image: x}]}}\n", 2, 45,
	  "Fairlead's own" },
	{ "command: x\nkubernetes: {spec: {initContainers: [{name: b, volumeMounts: [{name: fairlead, mountPath: /f}]}]}}\n",
	  2, 70, "Fairlead's own" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, terminationMessagePath: /x}]}}\n",
	  2, 47, "says there why" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: main, livenessProbe: {httpGet: {host: h, port: 1}}}]}}\n",
	  2, 79, "its own pod" },
	{ "command: x\nkubernetes: {spec: {containers: [{name: b, lifecycle: {preStop: {tcpSocket: {host: h, port: 1}}}}]}}\n",
	  2, 84, "its own pod" },
	{ "command: x\nkubernetes: {spec: {securityContext: {seccompProfile: {type: Unconfined}}}}\n",
	  2, 62, "apart from their nodes" },
	{ "command: x\nkubernetes: {metadata: {annotations: {cdi.k8s.io/a: nvidia.com/gpu=all}}}\n",
	  2, 39, "those who run it" },
	{ "command: x\nkubernetes: {metadata: {annotations: {io.kubernetes.cri-o.Devices: /dev/nvidia0}}}\n",
	  2, 39, "those who run it" },
	{ "command: x\nkubernetes: {spec: {securityContext: {runAsUser: 0755}}}\n", 2, 50,
	  "plain decimal number" },
	{ "command: x\nkubernetes: {spec: {securityContext: {runAsUser: 1e3}}}\n", 2, 50,
	  "plain decimal number" },
	{ "command: x\nkind: inference\n", 2, 7, "needs a later release" },
	{ "command: x\ngpus: {cnt: 2}\n", 2, 8,
	  "gpus has no field \"cnt\"; did you mean \"count\"?" },
	{ "command: x\nresize: free\n", 2, 9, "resize is for a job whose tasks are a range" },
	{ "command: x\ntasks: 2..4\nresize: no\n", 3, 9, "resize must be free or restart" },
	{ "command: x\nkind: interactive\n", 2, 7, "needs a later release" },
	{ "command: x\nkind: trainin\n", 2, 7, "did you mean \"training\"?" },
	{ "command: x\ntier: best\n", 2, 7, "tier must be best-effort, standard or critical" },
	{ "command: x\ngpus: 1.5\n", 2, 7, "neither a number of GPUs up to 32 nor a part of one" },
	{ "command: x\ngpus: 0.1234\n", 2, 7, "three decimals at most" },
	{ "command: x\ngpus: 7/7\n", 2, 7, "nor a part of one: write 2, 0.5 or 1/7" },
	{ "command: x\ngpus: 5e-1\n", 2, 7, "nor a part of one" },
	{ "command: x\ngpus: 0.0\n", 2, 7, "nor a part of one" },
	{ "command: x\ngpus: 2000MiB\n", 2, 7, "write: gpus: {memory: 2000MiB}" },
	{ "command: x\ngpus: {memory: 0MiB}\n", 2, 16, "a part of a GPU has 1MiB or more" },
	{ "command: x\ngpus: {slice: small}\n", 2, 15, "the name of a slice such as 1g.10gb" },
	{ "command: x\ngpus: -1\n", 2, 7, "gpus" },
	{ "command: x\ngpus: \"2\"\n", 2, 7, "quotes" },
	{ "command: x\ngpus: 33\n", 2, 7, "gpus" },
	{ "command: x\ngpus: 99999999999999999999\n", 2, 7, "gpus" },
	{ "command: x\ngpus: {count: 2/1}\n", 2, 15, "\"2/1\" is neither a number of GPUs" },
	{ "command: x\ngpus: {modle: X}\n", 2, 8,
	  "gpus has no field \"modle\"; did you mean \"model\"?" },
	{ "command: x\ngpus: {model: []}\n", 2, 15, "1 to 8 models" },
	{ "command: x\ngpus: {model: [a, b, a]}\n", 2, 22, "twice" },
	{ "command: x\ngpus: {memory: much}\n", 2, 16, "gpus.memory" },
	{ "command: x\ntasks: 0\n", 2, 8, "tasks" },
	{ "command: x\ntasks: 16385\n", 2, 8, "tasks" },
	{ "command: x\ntasks: 4..2\n", 2, 8, "smaller number comes first" },
	{ "command: x\ntasks: 2..\n", 2, 8, "a range is written 2..4" },
	{ "command: x\ntasks: 2..16385\n", 2, 8, "tasks" },
	{ "command: x\ntasks: {min: 2}\n", 2, 8, "max is missing" },
	{ "command: x\ntasks: {min: 2, maxi: 4}\n", 2, 17, "did you mean \"max\"?" },
	{ "command: x\ntasks: [1]\n", 2, 8, "whole number" },
	{ "command: x\npriority: 1001\n", 2, 11, "priority" },
	{ "command: x\npriority: -1001\n", 2, 11, "priority" },
	{ "command: x\ncpus: 0\n", 2, 7, "more than 0" },
	{ "command: x\ncpus: 4096.001\n", 2, 7, "at most 4096" },
	{ "command: x\ncpus: 99999999999999999999\n", 2, 7, "at most 4096" },
	{ "command: x\ncpus: 0.0001\n", 2, 7, "three digits" },
	{ "command: x\ncpus: .5\n", 2, 7, "must be a number" },
	{ "command: x\ncpus: 1.\n", 2, 7, "must be a number" },
	{ "command: x\ncpus: -1\n", 2, 7, "must be a number" },
	{ "command: x\ncpus: \"1\"\n", 2, 7, "must be a number" },
	{ "command: x\nmemory: 0MiB\n", 2, 9, "1MiB" },
	{ "command: x\nmemory: 4\n", 2, 9, "unit" },
	{ "name: x\n", 1, 1, "no command" },
	{ "command: x\nscript: y\n", 2, 1, "not both" },
	{ "command: ''\n", 1, 10, "empty" },
	{ "command: '  '\n", 1, 10, "empty" },
	{ "command:\n", 1, 1, "left empty" },
	{ "command: []\n", 1, 10, "empty list" },
	{ "command: ['']\n", 1, 11, "empty text" },
	{ "command: [a, [b]]\n", 1, 14, "argument" },
	{ "command: {a: b}\n", 1, 10, "not a map" },
	{ "script: ''\n", 1, 9, "empty" },
	{ "command: x\nenv: [a]\n", 2, 6, "must be a map" },
	{ "command: x\nenv: {1A: b}\n", 2, 7, "no name of a variable" },
	{ "command: x\nenv: {\"a=b\": c}\n", 2, 7, "no name of a variable" },
	{ "command: x\nenv: {\"\": c}\n", 2, 7, "no name of a variable" },
	{ "command: x\nenv: {A: [b]}\n", 2, 10, "must be a text" },
	{ "command: x\nenv: {A: }\n", 2, 7, "left empty" },
	{ "command: x\nenv: {FAIRLEAD_X: b}\n", 2, 7, "set by Fairlead" },
	{ "command: x\nenv: {RANK: 1}\n", 2, 7, "set by Fairlead" },
	{ "command: x\nsecrets: {A: open-text}\n", 2, 11, "does not stand in the job file" },
	{ "command: x\nsecrets: {A: {file: /x}}\n", 2, 11, "fairlead submit" },
	{ "command: x\nsecrets: {A: {vlaue: x}}\n", 2, 15, "did you mean \"value\"?" },
	{ "command: x\nenv: {A: 1}\nsecrets: {A: {value: x}}\n", 3, 11, "in env and in secrets" },
	{ "command: x\nworkdir: here\n", 2, 10, "absolute path" },
	{ "command: x\nworkdir: \"/a\\u001bb\"\n", 2, 10, "control character" },
	{ "command: x\ncheckpoint: often\n", 2, 13, "checkpoint must be none, report or signal" },
	{ "command: x\ncheckpoint: [a]\n", 2, 13, "checkpoint must be" },
	{ "command: x\ncheckpoint: {evry: 1m}\n", 2, 14, "did you mean \"every\"?" },
	{ "command: x\ncheckpoint: {how: none, every: 1m}\n", 2, 19, "nothing acts on" },
	{ "command: x\ncheckpoint: {how: report, signal: USR1}\n", 2, 35, "nothing acts on" },
	{ "command: x\ncheckpoint: {signal: USR1, how: report}\n", 2, 33, "nothing acts on" },
	{ "command: x\ncheckpoint: {signal: KILL}\n", 2, 22, "checkpoint.signal must be USR1" },
	{ "command: x\ncheckpoint: {signal: SIGUSR1}\n", 2, 22, "without SIG" },
	{ "command: x\ncheckpoint: {grace: 24h1s}\n", 2, 21, "at most 24h" },
	{ "command: x\ncheckpoint: {every: 999ms}\n", 2, 21, "at least 1s" },
	{ "command: x\ncheckpoint: {path: rel}\n", 2, 20, "absolute path" },
	{ "command: x\nlimit: 999ms\n", 2, 8, "at least 1s" },
	{ "command: x\nlimit: 3\n", 2, 8, "unit" },
	{ "command: x\ndeadline: tomorrow\n", 2, 11, "2030-01-31T08:00Z" },
	{ "command: x\ndeadline: 2030-02-29T08:00Z\n", 2, 11, "2030-01-31T08:00Z" },
	{ "command: x\ndeadline: 30s\n", 2, 11, "at least 1m" },
	{ "command: x\nefficiency: 101\n", 2, 13, "efficiency" },
	{ "command: x\nlimit: 1h\nestimate: 2h\n", 3, 11, "estimate is more than limit" },
	{ "command: x\ncheckpoint: {every: 5m, cost: 2m}\n", 2, 31,
	  "is for checkpoint: {every: auto}" },
	{ "command: x\nretries: 101\n", 2, 10, "retries" },
	{ "command: x\ndepends_on: [3, 4, 3]\n", 2, 20, "job 3 twice" },
	{ "command: x\ndepends_on: [0]\n", 2, 14, "depends_on" },
	{ "command: x\ndepends_on: 4294967296\n", 2, 13, "depends_on" },
	{ "command: x\narray: 10001\n", 2, 8, "array" },
	{ "command: x\narray: 0\n", 2, 8, "array" },
	{ "command: x\narray: 20%\n", 2, 8, "20%4" },
	{ "command: x\narray: 20%0\n", 2, 8, "20%4" },
	{ "command: x\narray: \"%4\"\n", 2, 8, "20%4" },
	{ "command: x\narray: [1, 2]\n", 2, 8, "{count: 20, limit: 4}" },
	{ "command: x\narray: {limit: 4}\n", 2, 8, "count is missing" },
	{ "command: x\narray: {}\n", 2, 8, "empty" },
	{ "command: x\nsweep: {}\n", 2, 8, "1 to 16 names" },
	{ "command: x\nsweep: {LR: 0.1}\n", 2, 13, "must be a list" },
	{ "command: x\nsweep: {LR: [[1]]}\n", 2, 14, "a value of LR" },
	{ "command: x\nsweep: {FAIRLEAD_LR: [1]}\n", 2, 9, "FAIRLEAD_" },
	{ "command: x\nsweep: {A: [1, 2], B: [1, 2, 3]}\narray: 5\n", 3, 8, "makes 6 jobs" },
	{ "command: x\nsweep: {A: [1, 2]}\nenv: {A: 3}\n", 2, 9, "in sweep and in env" },
	{ "command: x\narray: {count: 4, limits: 4}\n", 2, 19, "did you mean \"limit\"?" },
	{ "command: x\narray: {count: 4, limit: 0}\n", 2, 26, "array.limit" },
	{ "command: x\ndepends_on: 17_x\n", 2, 13, "17_3" },
	{ "command: x\ndepends_on: [_3]\n", 2, 14, "17_3" },
	{ "command: x\ndepends_on: [17_3, 20]\n", 2, 20, "job 20 twice" },
	{ "command: x\nhold: yes\n", 2, 7, "true or false" },
	{ "command: x\ntopology: node\n", 2, 11, "must be a map" },
	{ "command: x\nmin_driver: newest\n", 2, 13, "must be a version such as \"550.54\"" },
	{ "command: x\nmin_capability: \"9.01\"\n", 2, 17, "must be a compute capability" },
	{ "command: x\nregion: []\n", 2, 9, "takes 1 to 8 names" },
	{ "command: x\nregion: \"e u\"\n", 2, 9, "region" },
	{ "command: x\nselector: pool\n", 2, 11, "must be a map of 1 to 8 labels" },
	{ "command: x\nselector: {pool: \"a,b\"}\n", 2, 18, "label and value" },
	{ "command: x\ntolerates: [\"a,b\"]\n", 2, 13, "is not a name" },
	{ "command: x\nalign: cpu\n", 2, 8, "must be numa or nic" },
	{ "command: x\nlabels: web\n", 2, 9, "must be a map of 1 to 4 labels" },
	{ "command: x\napart_from: {}\n", 2, 13, "must be a map of 1 to 4 labels" },
	{ "command: x\napart_level: \"a b\"\n", 2, 14, "apart_level" },
	{ "command: x\nwindow: always\n", 2, 9, "\"always\" is not understood" },
	{ "command: x\nwindow: \"\"\n", 2, 9, "leave it out" },
	{ "command: x\nwindow_end: go on\n", 2, 13, "must be stop or finish" },
	{ "command: x\ndata: []\n", 2, 7, "takes 1 to 8 names" },
	{ "command: x\ndata: [\"a,b\"]\n", 2, 8, "is not a name" },
	{ "command: x\nthroughput: 2\n", 2, 13, "must be a map of 1 to 8 models" },
	{ "command: x\nthroughput: {A: fast}\n", 2, 17, "from 0.001 to 60" },
	{ "command: x\nthroughput: {A: 1}\ngpus: {model: [A, B]}\n", 2, 13,
	  "\"B\" is accepted, but" },
	{ "command: x\nthroughput: {A: 1, B: 2}\ngpus: {model: A}\n", 2, 13, "does not accept" },
	{ "command: x\nthroughput: {\"a b\": 1}\n", 2, 14, "throughput" },
	{ "command: x\nmin_throughput: 61\n", 2, 17, "from 0.001 to 60" },
	{ "command: x\nmix_models: some\n", 2, 13, "true or false" },
	{ "command: x\nspread: [rack]\n", 2, 9, "spread" },
	{ "command: x\nspread: \"\"\n", 2, 9, "spread" },
	{ "command: x\ntopology: {max_slowdown: 20}\n", 2, 26, "such as 20%" },
	{ "command: x\ntopology: {max_slowdown: 0%}\n", 2, 26, "such as 20%" },
	{ "command: x\ntopology: {requires: node}\n", 2, 12, "did you mean \"require\"?" },
	{ "command: x\nname: \"a\\u001b[31m\"\n", 2, 7, "name" },
	{ "command: x\nname: a b\n", 2, 7, "name" },
	{ "command: x\nqueue: ../x\n", 2, 8, "queue" },
	{ "command: x\ncommand: y\n", 2, 1, "second time" },
	{ "a: &x [1]\ncommand: *x\n", 1, 4, "anchors" },
	{ "command: \xff\n", 1, 10, "UTF-8" },
	{ "{\"command\": \"x\", \"gpuz\": 1}", 1, 18, "did you mean \"gpus\"?" },
	{ "{\"command\": \"x\"", 1, 1, "" },
};

static void everything_wrong_is_said_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct err err = bad(wrong[i].text);

		if (!strstr(err.text, wrong[i].message))
			fail_msg("%s\nsays: %s\nnot:  %s", wrong[i].text, err.text,
				 wrong[i].message);
		if (wrong[i].message[0] &&
		    (err.line != wrong[i].line || err.column != wrong[i].column))
			fail_msg("%s\nsays: %s\nat %d:%d, not %d:%d", wrong[i].text, err.text,
				 err.line, err.column, wrong[i].line, wrong[i].column);
	}
}

static void a_secret_is_never_in_a_message(void **state)
{
	static const char *const texts[] = {
		"command: x\nsecrets: {A: canary-5f2e}\n",
		"command: x\nsecrets: {A: {value: [canary-5f2e]}}\n",
		"command: x\nsecrets: {A: {value: canary-5f2e, fiel: b}}\n",
		"command: x\nenv: {A: canary-5f2e}\nsecrets: {A: {value: canary-5f2e}}\n",
		"command: x\nenv: {A: canary-5f2e}\ngpus: 99\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_null(strstr(bad(texts[i]).text, "canary"));
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
	const char *mask = good(claim).pod_rules;

	(void)state;
	assert_int_equal(strncmp(mask, JOBFILE_OWN_MASK, strlen(JOBFILE_OWN_MASK)), 0);
	assert_string_equal(
		good("name: other\ncommand: y\nvolumes: {data: {path: /data}}\n").pod_rules, mask);
	assert_string_not_equal(good("command: x\nvolumes: {other: /data}\n").pod_rules, mask);
	assert_string_not_equal(good("command: x\ntasks: 2\nvolumes: {data: /data}\n").pod_rules,
				mask);
	assert_non_null(good("command: x\nresources: {rdma/hca: 1}\n").pod_rules);
	assert_null(
		good("command: x\nshm: 1GiB\nvolumes: {a: {empty: true, path: /a}}\n").pod_rules);
	assert_string_equal(good("command: x\nshm: 1GiB\nkubernetes: {}\n").pod_field, "shm");
	assert_null(good("command: x\n").pod_field);
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
		{ "{slice: fit, memory: 9GiB}", NULL, "such as 1g.10gb" },
		{ "{slice: 1g.10gb, model: A100-80GB}", NULL, "by its name alone" },
		{ "1g.10gb\nresources: {nvidia.com/mig-1g.10gb: 1}", NULL, "write gpus" },
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
		assert_non_null(request.pod_rules);
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
		"{\"script\":\"a\",\"git\":[]}",
		"{\"script\":\"a\",\"git\":{\"commit\":\"0a\"}}",
		"{\"script\":\"a\",\"git\":{\"changed\":1000001}}",
		"{\"script\":\"a\",\"git\":{\"branch\":\"a\\n\"}}",
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

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test_setup_teardown(everything_wrong_is_said_with_its_place,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(a_secret_is_never_in_a_message, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(the_body_comes_back_as_given, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_sweep_gives_each_job_of_the_array_its_combination,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(what_some_nodes_lack_makes_a_mask, jobfile_begin,
						jobfile_end),
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
