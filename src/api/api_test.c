/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers answer, over the real server and the real core; every answer is checked against its schema. */
#include <stdlib.h>
#include <string.h>
#include "api/route.h"
#include "api/testing_form.h"
#include "base/check.h"

static int setup(void **state)
{
	(void)state;
	testing_start();
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	testing_stop();
	return 0;
}
static int fresh(void **state)
{
	(void)state;
	testing_reset();
	return 0;
}

/* --- jobs ---------------------------------------------------------------------------------------------------------------------- */

static void a_job_is_submitted_listed_shown_and_cancelled(void **state)
{
	struct answer
		a = form_sent(
			"rita", "POST", "/api/v1/jobs?prospect=1",
			"name: first\ncommand: [sleep, \"100\"]\nqueue: red\ngpus: 2\ntasks: 2\n",
			201),
		list;
	char path[64];
	int64_t id;

	(void)state;
	form_check("Submitted", a.json);
	id = answer_number(&a, "id");
	assert_true(id > 0);
	assert_true(strlen(answer_text(&a, "prospect")) > 10);
	snprintf(path, sizeof path, "Location: /api/v1/jobs/%lld", (long long)id);
	assert_non_null(strstr(a.head, path));
	answer_free(&a);
	testing_engine((uint32_t)id);

	list = form_get("vera", "/api/v1/jobs?queue=red", "JobList");
	assert_int_equal(json_array_size(json_object_get(list.json, "jobs")), 1);
	assert_non_null(strstr(list.text, "\"simulated\":true"));
	answer_free(&list);
	snprintf(path, sizeof path, "/api/v1/jobs/%lld", (long long)id);
	a = form_get("vera", path, "Job");
	assert_string_equal(answer_text(&a, "state"), "running");
	assert_int_equal(answer_number(&a, "gpus"), 4);
	assert_true(json_is_false(json_object_get(a.json, "may_read_logs")));
	assert_int_equal(json_array_size(json_object_get(
				 json_array_get(json_object_get(a.json, "attempts"), 0), "tasks")),
			 2);
	answer_free(&a);
	a = form_get("rita", path, "Job");
	assert_true(json_is_true(json_object_get(a.json, "may_read_logs")));
	answer_free(&a);

	snprintf(path, sizeof path, "/api/v1/jobs/%lld/priority", (long long)id);
	form_change("rita", "POST", path, "{\"priority\":-7}");
	form_refused("rita", "POST", path, "{\"priority\":1001}", 400, "priority");
	form_refused("rita", "POST", path, "{}", 400, "priority");
	form_refused("rob", "POST", path, "{\"priority\":7}", 403, "researcher");
	snprintf(path, sizeof path, "/api/v1/jobs/%lld/cancel", (long long)id);
	form_change("lena", "POST", path, "{\"reason\":\"not now\"}");
	snprintf(path, sizeof path, "/api/v1/jobs/%lld/history", (long long)id);
	a = form_get("vera", path, "EventPage");
	assert_non_null(strstr(a.text, "job-submitted"));
	assert_non_null(strstr(a.text, "job-cancel-asked"));
	assert_non_null(strstr(a.text, "lena"));
	answer_free(&a);
}

static void a_waiting_job_is_explained(void **state)
{
	char path[64];
	struct answer a;
	uint32_t id;

	(void)state;
	for (int i = 0; i < 2; i++)
		testing_engine(testing_job("rob", "red", "default", 4));
	id = testing_job("rita", "red", "default", 4);
	snprintf(path, sizeof path, "/api/v1/jobs/%u", id);
	a = form_get("rita", path, "Job");
	assert_string_equal(answer_text(&a, "state"), "queued");
	assert_true(strlen(answer_text(&a, "reason")) > 10);
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/explain", id);
	a = form_get("vera", path, "Explanation");
	assert_string_not_equal(answer_text(&a, "reason"), "none");
	assert_true(strlen(answer_text(&a, "summary")) > 10);
	assert_int_equal(answer_number(&a, "position"), 1);
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/hold", id);
	form_change("rita", "POST", path, NULL);
	a = testing_call("rita", "POST", path, NULL, NULL);
	assert_int_equal(a.status, 200);
	assert_true(json_is_true(json_object_get(a.json, "already")));
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/release", id);
	form_change("rita", "POST", path, NULL);
}

static void a_dry_run_tells_and_changes_nothing(void **state)
{
	static const char job[] = "{\"command\":[\"true\"],\"gpus\":4,\"queue\":\"default\"}";
	const uint64_t before = testing_last_seq();
	struct answer a = form_sent("rita", "POST", "/api/v1/jobs?dry_run=1", job, 200);

	(void)state;
	form_check("Submitted", a.json);
	assert_true(json_is_true(json_object_get(a.json, "starts_now")));
	assert_int_equal(json_array_size(json_object_get(a.json, "places")), 1);
	assert_true(strlen(answer_text(&a, "prospect")) > 10);
	answer_free(&a);
	assert_int_equal(testing_last_seq(), before);
	for (int i = 0; i < 2; i++)
		testing_engine(testing_job("rob", "red", "default", 4));
	a = form_sent("rita", "POST", "/api/v1/jobs?dry_run=1", job, 200);
	form_check("Submitted", a.json);
	assert_true(json_is_false(json_object_get(a.json, "starts_now")));
	assert_non_null(json_object_get(a.json, "why"));
	answer_free(&a);
	/* What would be refused is refused. */
	form_refused("rita", "POST", "/api/v1/jobs?dry_run=1",
		     "{\"command\":[\"true\"],\"queue\":\"nowhere\"}", 404, "nowhere");
	form_refused("rita", "POST", "/api/v1/jobs?dry_run=1",
		     "{\"command\":[\"true\"],\"queue\":\"blue\"}", 403, "blue");
}

static void several_jobs_are_planned_one_after_the_other_and_none_is_submitted(void **state)
{
	static const char two[] =
		"{\"jobs\":[{\"command\":[\"true\"],\"name\":\"first\",\"gpus\":4,\"limit\":\"1h\"},"
		"{\"command\":[\"true\"],\"name\":\"second\",\"gpus\":4,\"limit\":\"1h\"}]}";
	uint64_t before;
	const json_t *jobs, *second;
	struct answer a;

	(void)state;
	testing_engine(testing_job("rob", "red", "default", 4));
	before = testing_last_seq();
	a = form_sent("rita", "POST", "/api/v1/plan", two, 200);
	form_check("Plan", a.json);
	jobs = json_object_get(a.json, "jobs");
	assert_int_equal(json_array_size(jobs), 2);
	assert_true(json_is_true(json_object_get(json_array_get(jobs, 0), "starts_now")));
	second = json_array_get(jobs, 1); /* the first one would take the last place */
	assert_true(json_is_false(json_object_get(second, "starts_now")));
	assert_non_null(json_object_get(second, "why"));
	assert_true(json_integer_value(
			    json_object_get(json_object_get(second, "estimate"), "start_ms")) > 0);
	answer_free(&a);
	a = form_sent("rita", "POST", "/api/v1/plan", "command: \"true\"\ngpus: 4\n", 200);
	form_check("Plan", a.json);
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 1);
	answer_free(&a);
	assert_int_equal(testing_last_seq(), before);
	form_refused("rita", "POST", "/api/v1/plan", "{\"jobs\":[]}", 400, "1 to 20");
	form_refused("rita", "POST", "/api/v1/plan",
		     "{\"jobs\":[{\"command\":[\"true\"],\"queue\":\"blue\"}]}", 403, "blue");
}

/* The plan is made by another thread: one who asks meanwhile is told so, and asks again. */
static void a_job_that_waits_is_told_when_it_will_start(void **state)
{
	char path[64];
	uint32_t id = 0;
	bool known = false;

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct answer a =
			form_sent("rob", "POST", "/api/v1/jobs",
				  "{\"command\":[\"true\"],\"gpus\":4,\"limit\":\"1h\"}", 201);

		id = (uint32_t)answer_number(&a, "id");
		answer_free(&a);
		if (i < 2)
			testing_engine(id);
	}
	snprintf(path, sizeof path, "/api/v1/jobs/%u/explain", id);
	while (!known) {
		struct answer a = form_get("rob", path, "Explanation");

		known = json_object_get(a.json, "estimate");
		if (!known && !json_is_true(json_object_get(a.json, "estimate_making")))
			fail_msg("%s", a.text);
		answer_free(&a);
	}
	for (int i = 0; i < 2; i++) {
		struct answer a;

		snprintf(path, sizeof path, i ? "/api/v1/jobs?estimates=1" : "/api/v1/jobs/%u", id);
		a = form_get("rob", path, i ? "JobList" : "Job");
		assert_non_null(strstr(a.text, "\"start_ms\":"));
		answer_free(&a);
	}
	{
		struct answer a = form_get("vera", "/api/v1/status", "Status");

		assert_non_null(strstr(a.text, "\"forecasts\":{\"waiting\":1,\"scored\":0"));
		answer_free(&a);
	}
}

static void the_same_key_gives_the_same_job(void **state)
{
	static const char job[] = "{\"command\":[\"true\"],\"name\":\"once\"}";
	static const char other[] = "{\"command\":[\"false\"],\"name\":\"once\"}";
	struct answer a =
		testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", job);
	const int64_t id = answer_number(&a, "id");

	(void)state;
	assert_int_equal(a.status, 201);
	answer_free(&a);
	a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", job);
	assert_int_equal(a.status, 200);
	assert_int_equal(answer_number(&a, "id"), id);
	assert_true(json_is_true(json_object_get(a.json, "already")));
	answer_free(&a);
	a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", other);
	assert_int_equal(a.status, 409);
	answer_free(&a);
	/* Somebody else's key of the same name is another key. */
	a = testing_call("rob", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", other);
	assert_int_equal(a.status, 201);
	assert_int_not_equal(answer_number(&a, "id"), id);
	answer_free(&a);
	a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key:\r\n", job);
	assert_int_equal(a.status, 400);
	answer_free(&a);
}

static void what_a_job_runs_is_for_few_and_values_are_for_nobody(void **state)
{
	static const char job[] =
		"{\"command\":[\"python3\",\"train.py\"],\"env\":{\"API_KEY\":\"canary-4711\",\"B\":\"two\"},\"workdir\":\"/home/rita\"}";
	struct answer a = form_sent("rita", "POST", "/api/v1/jobs", job, 201);
	const int64_t id = answer_number(&a, "id");
	static const char *const parts[] = { "", "/spec", "/history", "/explain" };
	static const char *const people[] = { "rita", "lena", "ada", "vera" };

	(void)state;
	answer_free(&a);
	for (size_t p = 0; p < ARRAY_SIZE(people); p++)
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			char path[64];

			snprintf(path, sizeof path, "/api/v1/jobs/%lld%s", (long long)id, parts[i]);
			a = testing_call(people[p], "GET", path, NULL, NULL);
			assert_int_equal(a.status, i == 1 && p == 3 ? 403 : 200);
			assert_null(strstr(a.text, "canary"));
			if (i != 1)
				assert_null(strstr(a.text, "train.py"));
			else if (p != 3) {
				form_check("JobSpec", a.json);
				assert_non_null(strstr(a.text, "\"API_KEY\""));
				assert_non_null(strstr(a.text, "train.py"));
			}
			answer_free(&a);
		}
	a = form_get("vera", "/api/v1/events?limit=500", "EventPage");
	assert_null(strstr(a.text, "canary"));
	assert_null(strstr(a.text, "body_mac"));
	answer_free(&a);
	form_refused("rob", "GET", "/api/v1/jobs/1/spec", NULL, 403, "lead");
}

static void bad_submissions_say_what_and_where(void **state)
{
	static const struct {
		const char *body;
		int status;
		const char *part;
	} cases[] = {
		{ "", 400, "" },
		{ "{\"command\":[\"true\"],\"gpu\":1}", 400, "gpus" },
		{ "{\"command\":[\"true\"],\"gpus\":-1}", 400, "\"line\":1" },
		{ "{\"command\":[\"true\"],\"gpus\":99999999999999999999}", 400, "gpus" },
		{ "{\"name\":\"x\"}", 400, "command" },
		{ "{\"command\":[\"true\"],\"queue\":\"nowhere\"}", 404, "nowhere" },
		{ "{\"command\":[\"true\"],\"name\":\"a\\u001b[31m\"}", 400, "name" },
		{ "{\"command\":[\"true\"],\"name\":\"\xff\xfe\"}", 400, "" },
		{ "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", 400, "" },
		{ "{\"command\":[\"true\"],\"tier\":\"critical\",\"gpus\":4,\"tasks\":2}", 403,
		  "does not admit critical jobs" },
		{ "{\"command\":[\"true\"],\"team\":\"blue\"}", 403, "team" },
		{ "[1,2,3]", 400, "" },
		{ "{\"command\":[\"true\"]}{\"command\":[\"true\"]}", 400, "" },
	};
	static char deep[200001];

	(void)state;
	form_change("ada", "PUT", "/api/v1/users/rob", "{\"uid\":-1}");
	form_refused("rob", "POST", "/api/v1/jobs", "{\"command\":[\"true\"]}", 403,
		     "no account on this machine");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		form_refused("rita", "POST", "/api/v1/jobs", cases[i].body, cases[i].status,
			     cases[i].part);
	memset(deep, '[', 200000);
	form_refused("rita", "POST", "/api/v1/jobs", deep, 413, "nested");
	assert_int_equal(testing_facts()->jobs.count, 0);
	{
		struct answer a = testing_call("rita", "POST", "/api/v1/jobs",
					       "X-Fairlead-File: train.yaml\r\n",
					       "command: [true]\ngpuz: 1\n");

		assert_int_equal(a.status, 400);
		assert_string_equal(json_string_value(json_object_get(
					    json_object_get(a.json, "error"), "file")),
				    "train.yaml");
		assert_int_equal(json_integer_value(
					 json_object_get(json_object_get(a.json, "error"), "line")),
				 2);
		answer_free(&a);
	}
}

/* Ids of a list, "3 2 1". */
static const char *listed(const char *user, const char *query, char text[256])
{
	struct answer a = form_get(user, query, "JobList");
	size_t index, size = 0;
	json_t *job;

	text[0] = '\0';
	json_array_foreach(json_object_get(a.json, "jobs"), index, job) size +=
		(size_t)snprintf(text + size, 256 - size, "%s%lld", index ? " " : "",
				 (long long)json_integer_value(json_object_get(job, "id")));
	answer_free(&a);
	return text;
}

static void lists_come_in_the_order_asked_for(void **state)
{
	char text[256];
	struct answer a;

	(void)state;
	a = form_sent("rita", "POST", "/api/v1/jobs", "command: x\nqueue: red\nhold: true\n", 201);
	answer_free(&a);
	testing_job("rob", "red", "default", 2);
	testing_job("rita", "red", "default", 4);
	form_change("rita", "POST", "/api/v1/jobs/1/cancel", "{}");
	assert_string_equal(listed("vera", "/api/v1/jobs", text), "1 2 3");
	assert_string_equal(listed("vera", "/api/v1/jobs?sort=recent", text), "3 2 1");
	assert_string_equal(listed("vera", "/api/v1/jobs?sort=-recent", text), "1 2 3");
	assert_string_equal(listed("vera", "/api/v1/jobs?sort=gpus", text), "3 2 1");
	assert_string_equal(listed("vera", "/api/v1/jobs?sort=user", text), "3 1 2");
	assert_string_equal(listed("vera", "/api/v1/jobs?sort=gpus&limit=1&after=1", text), "2");
	assert_string_equal(listed("rita", "/api/v1/jobs?mine=1", text), "1 3");
	assert_string_equal(listed("vera", "/api/v1/jobs?mine=1", text), "");
	assert_string_equal(listed("vera", "/api/v1/jobs?ended=0", text), "2 3");
	assert_string_equal(listed("vera", "/api/v1/jobs?since_ms=99999999999999", text), "2 3");
	a = form_get("vera", "/api/v1/jobs?total=1&limit=2&after=1", "JobList");
	assert_int_equal(answer_number(&a, "total"), 3);
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 2);
	assert_null(json_object_get(a.json, "next"));
	answer_free(&a);
	a = form_get("vera", "/api/v1/jobs?sort=name&limit=2", "JobList");
	assert_int_equal(answer_number(&a, "next"), 2);
	answer_free(&a);
	form_refused("vera", "GET", "/api/v1/jobs?sort=nmae", NULL, 400, "did you mean \\\"name");
	form_refused("vera", "GET", "/api/v1/jobs?mine=1&user=rita", NULL, 400, "contradict");
	form_refused("vera", "GET", "/api/v1/jobs?array=-1", NULL, 400, "number of a job");
}

/* Each order is in the description of the query too. */
static void every_order_is_described(void **state)
{
	static const char *const names[] = {
#define JOB_ORDER(name, by, doc) "`" #name "`",
#include "api/job_orders.def"
#undef JOB_ORDER
	};
	const struct route *route = route_get(ROUTE_job_list);
	const char *doc = NULL;

	(void)state;
	for (size_t i = 0; i < route->query_count; i++)
		if (!strcmp(route->query[i].name, "sort"))
			doc = route->query[i].doc;
	assert_non_null(doc);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strstr(doc, names[i]))
			fail_msg("?sort= is not said to take %s", names[i]);
}

static void an_array_is_one_row_when_that_is_asked_for(void **state)
{
	struct answer a =
		form_sent("rita", "POST", "/api/v1/jobs",
			  "command: x\nsweep: {LR: [1, 2, 3], B: [x, y]}\nhold: true\n", 201);
	const json_t *row;
	char text[256];

	(void)state;
	answer_free(&a);
	testing_job("rita", "red", "red", 1);
	form_change("rita", "POST", "/api/v1/jobs/3/cancel", "{}");
	assert_string_equal(listed("vera", "/api/v1/jobs?fold=1", text), "1 7");
	assert_string_equal(listed("vera", "/api/v1/jobs?fold=1&limit=1&after=6", text), "7");
	assert_string_equal(listed("vera", "/api/v1/jobs?array=1&ended=0", text), "1 2 4 5 6");
	a = form_get("vera", "/api/v1/jobs?fold=1&limit=1&ended=0", "JobList");
	row = json_array_get(json_object_get(a.json, "jobs"), 0);
	assert_string_equal(json_string_value(json_object_get(row, "array_numbers")), "0-1,3-5");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(row, "array_states"), "held")),
		5);
	assert_int_equal(json_integer_value(json_object_get(row, "array_tasks")), 5);
	assert_int_equal(answer_number(&a, "next"), 6);
	answer_free(&a);
	a = form_get("rita", "/api/v1/jobs/2/spec", "JobSpec");
	assert_non_null(
		strstr(a.text, "\"sweep\":{\"LR\":[\"1\",\"2\",\"3\"],\"B\":[\"x\",\"y\"]}"));
	answer_free(&a);
	form_refused("bob", "GET", "/api/v1/jobs/2/spec", NULL, 403, "");
}

static void lists_are_paged_and_filtered(void **state)
{
	int64_t after = 0, seen = 0;
	struct answer a;

	(void)state;
	for (int i = 0; i < 25; i++)
		testing_job(i % 2 ? "rita" : "rob", "red", i % 5 ? "default" : "red", 1);
	do {
		char path[64];
		size_t index;
		json_t *job;

		snprintf(path, sizeof path, "/api/v1/jobs?limit=10&after=%lld", (long long)after);
		a = form_get("vera", path, "JobList");
		json_array_foreach(json_object_get(a.json, "jobs"), index, job)
		{
			assert_int_equal(json_integer_value(json_object_get(job, "id")), ++seen);
		}
		after = answer_number(&a, "next");
		answer_free(&a);
	} while (after);
	assert_int_equal(seen, 25);
	a = form_get("vera", "/api/v1/jobs?user=rita&queue=red&limit=500", "JobList");
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 2);
	answer_free(&a);
	a = form_get("vera", "/api/v1/jobs?user=nobody", "JobList");
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 0);
	answer_free(&a);
	a = form_get("vera", "/api/v1/jobs?state=queued,running,starting&limit=500", "JobList");
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 25);
	answer_free(&a);
	form_refused("vera", "GET", "/api/v1/jobs?limit=501", NULL, 400, "1 to 500");
	form_refused("vera", "GET", "/api/v1/jobs?limit=0", NULL, 400, "1 to 500");
	form_refused("vera", "GET", "/api/v1/jobs?after=-1", NULL, 400, "0 or more");
	form_refused("vera", "GET", "/api/v1/jobs?sate=queued", NULL, 400, "did you mean ?state=");
	form_refused("vera", "GET", "/api/v1/jobs?state=qeued", NULL, 400, "did you mean");
	form_refused("vera", "GET", "/api/v1/jobs/26", NULL, 404, "no job 26");
	form_refused("vera", "GET", "/api/v1/jobs/99999999999", NULL, 400, "expected its number");
	form_refused("vera", "PUT", "/api/v1/jobs/1", NULL, 405, "GET");
	form_refused("vera", "GET", "/api/v1/nothing", NULL, 404, "openapi.json");
}

/* --- the rest -------------------------------------------------------------------------------------------------------------------- */

static void every_list_keeps_its_form(void **state)
{
	static const struct {
		const char *path, *schema;
	} lists[] = {
		{ "/api/v1/version", "Version" },      { "/api/v1/status", "Status" },
		{ "/api/v1/policy", "Policy" },        { "/api/v1/queues", "QueueList" },
		{ "/api/v1/nodes", "NodeList" },       { "/api/v1/gpus", "GpuList" },
		{ "/api/v1/gpus?node=n1", "GpuList" }, { "/api/v1/users", "UserList" },
		{ "/api/v1/teams", "TeamList" },       { "/api/v1/tokens", "TokenList" },
		{ "/api/v1/events", "EventPage" },     { "/healthz", "Health" },
	};
	struct answer a;

	(void)state;
	testing_engine(testing_job("rita", "red", "red", 3));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		a = form_get("ada", lists[i].path, lists[i].schema);
		answer_free(&a);
	}
	a = form_get("vera", "/api/v1/nodes", "NodeList");
	assert_non_null(strstr(
		a.text,
		"{\"total\":4,\"allocated\":3,\"free\":1,\"unusable\":0,\"shared\":0,\"open\":0,\"cut\":0}"));
	answer_free(&a);
	a = form_get("vera", "/api/v1/gpus?node=n1", "GpuList");
	assert_int_equal(json_array_size(json_object_get(a.json, "gpus")), 4);
	answer_free(&a);
	a = form_get("vera", "/api/v1/status", "Status");
	assert_null(strstr(a.text, "data_folder"));
	answer_free(&a);
	a = testing_get("vera", "/metrics", 200);
	assert_non_null(strstr(a.text, "fairlead_gpus{state=\"allocated\"} 3\n"));
	assert_non_null(strstr(a.text, "fairlead_queue_running_jobs{queue=\"red\"} 1\n"));
	assert_non_null(strstr(a.text, "fairlead_longest_turn_seconds 0.001500\n"));
	answer_free(&a);
}

static void nodes_and_gpus_are_taken_out_and_back(void **state)
{
	struct answer a;

	(void)state;
	form_change("ada", "POST", "/api/v1/nodes/n0/state",
		    "{\"state\":\"cordoned\",\"reason\":\"fan\"}");
	a = form_get("vera", "/api/v1/nodes", "NodeList");
	assert_non_null(strstr(a.text, "\"state\":\"cordoned\",\"reason\":\"fan\""));
	assert_non_null(strstr(a.text, "\"unusable\":4"));
	answer_free(&a);
	form_change("ada", "POST", "/api/v1/nodes/n0/state",
		    "{\"state\":\"draining\",\"within\":\"2h\"}");
	form_refused("ada", "POST", "/api/v1/nodes/n0/state",
		     "{\"state\":\"cordoned\",\"within\":\"2h\"}", 400,
		     "a deadline is for a node that is drained");
	form_refused("ada", "POST", "/api/v1/nodes/n0/state",
		     "{\"state\":\"draining\",\"within\":\"soon\"}", 400, "within");
	form_change("ada", "POST", "/api/v1/nodes/n0/state", "state: ready");
	form_change("ada", "POST", "/api/v1/nodes/n0/gpus",
		    "{\"index\":3,\"set_aside\":true,\"reason\":\"ecc\"}");
	a = form_get("vera", "/api/v1/gpus?node=n0", "GpuList");
	assert_non_null(strstr(a.text, "\"state\":\"set-aside\",\"reason\":\"ecc\""));
	answer_free(&a);
	form_change("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"mask\":8,\"set_aside\":false}");
	form_refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"index\":4,\"set_aside\":true}",
		     404, "has no GPU 4; its GPUs are 0 to 3");
	form_refused("ada", "GET", "/api/v1/gpus?node=nowhere", NULL, 404,
		     "there is no node \\\"nowhere\\\"; `fairlead nodes` lists");
	form_refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"mask\":16,\"set_aside\":true}",
		     400, "mask");
	form_refused("ada", "POST", "/api/v1/nodes/n0/gpus",
		     "{\"mask\":1,\"index\":0,\"set_aside\":true}", 400, "mask");
	form_refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"index\":1}", 400, "set_aside");
	form_change("ada", "POST", "/api/v1/nodes/n0/marks",
		    "{\"labels\":\"region=eu,pool=blue\",\"class\":\"training\"}");
	form_change("ada", "POST", "/api/v1/nodes/n0/marks",
		    "{\"taints\":\"own\",\"data\":\"web,books\",\"capacity\":\"spot\"}");
	form_refused("ada", "POST", "/api/v1/nodes/n0/marks", "{\"capacity\":\"any\"}", 400,
		     "capacity \\\"any\\\": expected on-demand or spot");
	a = form_get("vera", "/api/v1/nodes", "NodeList");
	assert_non_null(strstr(
		a.text,
		"\"class\":\"training\",\"partitioning\":\"fixed\",\"slices_only\":false,\"capacity\":\"spot\",\"labels\":\"pool=blue,region=eu\",\"taints\":\"own\","
		"\"data\":\"books,web\""));
	answer_free(&a);
	form_change(
		"ada", "POST", "/api/v1/nodes/n0/marks",
		"{\"labels\":\"\",\"taints\":\"\",\"class\":\"any\",\"capacity\":\"on-demand\"}");
	form_refused("ada", "POST", "/api/v1/nodes/n0/marks", "{\"class\":\"best\"}", 400,
		     "expected any, training or inference");
	form_refused("ada", "POST", "/api/v1/nodes/n0/marks", "{\"labels\":\"blue\"}", 400,
		     "must be KEY=VALUE");
	form_refused("ada", "POST", "/api/v1/nodes/n9/state", "{\"state\":\"ready\"}", 404, "n9");
	form_refused("ada", "POST", "/api/v1/nodes/n0/state", "{\"state\":\"gone\"}", 400,
		     "cordoned");
	form_refused("ada", "POST", "/api/v1/nodes/n0/state", "{\"state\":\"ready\",\"until\":5}",
		     400, "until");
}

/* What the default queue is promised: GPUs that no other queue is. */
static double default_promised(void)
{
	struct answer a = form_get("vera", "/api/v1/queues", "QueueList");
	double promised = -1;
	json_t *queue;
	size_t index;

	json_array_foreach(json_object_get(a.json, "queues"), index,
			   queue) if (strcmp(json_string_value(json_object_get(queue, "name")),
					     "default") == 0) promised =
		json_number_value(json_object_get(queue, "promised_gpus"));
	answer_free(&a);
	return promised;
}

static void a_role_that_is_too_low_is_refused_in_the_words_of_the_act(void **state)
{
	(void)state;
	form_refused("vera", "PUT", "/api/v1/policy", "{\"grace\":\"45s\"}", 403,
		     "viewer \\\"vera\\\" may not change the policy; ask admin \\\"root\\\"");
	form_refused(
		"vera", "POST", "/api/v1/jobs/1/cancel", "{}", 403,
		"viewer \\\"vera\\\" may not cancel jobs; ask admin \\\"root\\\" for the role researcher: "
		"fairlead users change vera --role researcher");
}

static void queues_keep_what_is_not_given(void **state)
{
	const double before = default_promised();
	struct answer a;

	(void)state;
	form_change(
		"ada", "PUT", "/api/v1/queues/new",
		"{\"guarantee_gpus\":1.5,\"limit_gpus\":4,\"weight\":3,\"reserved\":true,\"default_limit\":\"2h\"}");
	assert_true(before > 1.5 && default_promised() == before - 1.5);
	form_change("ada", "PUT", "/api/v1/queues/new", "{\"weight\":5}");
	a = form_get("vera", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(
		a.text,
		"\"name\":\"new\",\"parent\":\"\",\"team\":\"\",\"guarantee_gpus\":1.5,\"limit_gpus\":4,\"weight\":5,"
		"\"reserved\":true,\"default_limit_ms\":7200000"));
	answer_free(&a);
	form_change("ada", "PUT", "/api/v1/queues/new", "{\"limit_gpus\":-1}");
	a = form_get("vera", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"guarantee_gpus\":1.5,\"weight\":5"));
	answer_free(&a);
	form_change(
		"ada", "PUT", "/api/v1/queues/new",
		"{\"limit_models\":\"H100-80GB=8,any=0.5\",\"limit_cpus\":64,\"limit_memory\":\"512GiB\","
		"\"reserved\":false,\"guarantee_models\":\"H100-80GB=1,any=0.5\",\"calendar\":\"mon-fri 20:00-08:00, utc+1\"}");
	form_change("ada", "PUT", "/api/v1/queues/new", "{\"weight\":6}");
	a = form_get("vera", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"calendar\":\"mon-fri 20:00-08:00, utc+1\","));
	assert_non_null(strstr(a.text, "\"limit_models\":\"H100-80GB=8,any=0.5\","));
	assert_non_null(strstr(a.text, "\"guarantee_models\":\"H100-80GB=1,any=0.5\","));
	assert_non_null(strstr(a.text, "\"guarantee_gpus\":1.5,"));
	assert_non_null(strstr(a.text, "\"limit_cpu_milli\":64000,\"limit_memory_mib\":524288"));
	answer_free(&a);
	form_change(
		"ada", "PUT", "/api/v1/queues/new",
		"{\"limit_models\":\"none\",\"guarantee_models\":\"none\",\"limit_cpus\":0,\"limit_memory\":\"0\",\"calendar\":\"\"}");
	a = form_get("vera", "/api/v1/queues", "QueueList");
	assert_null(strstr(a.text, "H100-80GB=8"));
	assert_null(strstr(a.text, "mon-fri"));
	answer_free(&a);
	form_refused("ada", "PUT", "/api/v1/queues/new", "{\"limit_models\":\"H100-80GB\"}", 400,
		     "MODEL=GPUS");
	form_refused("ada", "PUT", "/api/v1/queues/new", "{\"limit_models\":\"A=1,A=2\"}", 400,
		     "two limits");
	form_change("ada", "PUT", "/api/v1/queues/new",
		    "{\"guarantee_models\":\"A=1\",\"reserved\":true}");
	form_change("ada", "PUT", "/api/v1/queues/new",
		    "{\"guarantee_models\":\"none\",\"reserved\":false}");
	form_refused("ada", "PUT", "/api/v1/queues/new", "{\"calendar\":\"weekends\"}", 400,
		     "weekends");
	form_change("ada", "PUT", "/api/v1/prices/H100-80GB", "{\"per_hour\":\"2.10\"}");
	a = form_get("vera", "/api/v1/prices", "PriceList");
	assert_non_null(strstr(a.text, "{\"model\":\"H100-80GB\",\"per_hour\":\"2.100000\"}"));
	answer_free(&a);
	form_refused("ada", "PUT", "/api/v1/prices/L4", "{\"per_hour\":\"1.2345678\"}", 400,
		     "six decimals");
	form_change("ada", "PUT", "/api/v1/queues/new/budget",
		    "{\"left\":\"1250.50\",\"currency\":\"EUR\"}");
	a = form_get("vera", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"budget_left\":\"1250.500000\","));
	assert_non_null(strstr(a.text, "\"currency\":\"EUR\""));
	answer_free(&a);
	form_refused("ada", "PUT", "/api/v1/queues/new/budget", "{}", 400, "left is missing");
	form_refused("ada", "PUT", "/api/v1/queues/nope/budget", "{\"left\":\"1\"}", 404, "nope");
	form_change("ada", "PUT", "/api/v1/queues/new/budget", "{\"left\":\"none\"}");
	a = form_get("vera", "/api/v1/queues", "QueueList");
	assert_null(strstr(a.text, "budget_left"));
	answer_free(&a);
	form_change("ada", "DELETE", "/api/v1/queues/new", NULL);
	form_refused("ada", "PUT", "/api/v1/queues/new", "{\"guarantee_gpus\":\"many\"}", 400,
		     "number of GPUs");
	form_refused("ada", "PUT", "/api/v1/queues/new", "{\"guarantee_gpus\":-2}", 400,
		     "number of GPUs");
	form_refused("ada", "PUT", "/api/v1/queues/new", "{\"weight\":0}", 400, "weight");
	form_refused("ada", "PUT", "/api/v1/queues/-x", "{}", 400, "queue");
	form_refused("ada", "DELETE", "/api/v1/queues/new", NULL, 404, "new");
	form_change("ada", "PUT", "/api/v1/policy",
		    "{\"grace\":\"45s\",\"half_life\":\"2d\",\"keep_ended\":\"30d\"}");
	a = form_get("vera", "/api/v1/policy", "Policy");
	assert_int_equal(answer_number(&a, "grace_ms"), 45000);
	assert_int_equal(answer_number(&a, "half_life_ms"), 172800000);
	assert_int_equal(answer_number(&a, "keep_ended_ms"), 2592000000);
	answer_free(&a);
	form_change(
		"ada", "PUT", "/api/v1/policy",
		"{\"order_deadline\":3,\"order_efficiency\":4,\"order_age\":5,\"order_user\":6}");
	a = form_get("vera", "/api/v1/policy", "Policy");
	assert_int_equal(answer_number(&a, "order_deadline"), 3);
	assert_int_equal(answer_number(&a, "order_efficiency"), 4);
	assert_int_equal(answer_number(&a, "order_age"), 5);
	assert_int_equal(answer_number(&a, "order_user"), 6);
	answer_free(&a);
	form_change(
		"ada", "PUT", "/api/v1/policy",
		"{\"order_deadline\":0,\"order_efficiency\":0,\"order_age\":0,\"order_user\":0}");
	form_refused("ada", "PUT", "/api/v1/policy", "{\"order_age\":1001}", 400, "order_age");
	form_refused("ada", "PUT", "/api/v1/policy", "{\"grace_ms\":1}", 400, "grace");
	form_refused("ada", "PUT", "/api/v1/policy", "{\"keep_ended\":\"0s\"}", 400,
		     "1ms to 10 years");
	form_refused("ada", "PUT", "/api/v1/policy", "{\"max_slowdown\":0}", 400,
		     "between 1 and 99900");
}

static void nothing_is_acknowledged_that_is_not_durable(void **state)
{
	struct answer a;

	(void)state;
	testing_refuse(true);
	form_refused("rita", "POST", "/api/v1/jobs", "{\"command\":[\"true\"]}", 503,
		     "disk is full");
	a = testing_call("", "GET", "/healthz", NULL, NULL);
	assert_int_equal(a.status, 503);
	form_check("Health", a.json);
	answer_free(&a);
	testing_refuse(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_job_is_submitted_listed_shown_and_cancelled, fresh),
		cmocka_unit_test_setup(a_waiting_job_is_explained, fresh),
		cmocka_unit_test_setup(a_dry_run_tells_and_changes_nothing, fresh),
		cmocka_unit_test_setup(
			several_jobs_are_planned_one_after_the_other_and_none_is_submitted, fresh),
		cmocka_unit_test_setup(a_job_that_waits_is_told_when_it_will_start, fresh),
		cmocka_unit_test_setup(the_same_key_gives_the_same_job, fresh),
		cmocka_unit_test_setup(what_a_job_runs_is_for_few_and_values_are_for_nobody, fresh),
		cmocka_unit_test_setup(bad_submissions_say_what_and_where, fresh),
		cmocka_unit_test_setup(lists_come_in_the_order_asked_for, fresh),
		cmocka_unit_test_setup(every_order_is_described, fresh),
		cmocka_unit_test_setup(an_array_is_one_row_when_that_is_asked_for, fresh),
		cmocka_unit_test_setup(lists_are_paged_and_filtered, fresh),
		cmocka_unit_test_setup(every_list_keeps_its_form, fresh),
		cmocka_unit_test_setup(nodes_and_gpus_are_taken_out_and_back, fresh),
		cmocka_unit_test_setup(a_role_that_is_too_low_is_refused_in_the_words_of_the_act,
				       fresh),
		cmocka_unit_test_setup(queues_keep_what_is_not_given, fresh),
		cmocka_unit_test_setup(nothing_is_acknowledged_that_is_not_durable, fresh),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
