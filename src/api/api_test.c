/* SPDX-License-Identifier: Apache-2.0 */
/* What the handlers answer, over the real server and the real core; every answer is checked against its schema. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "api/hub.h"
#include "api/route.h"
#include "api/schema.h"
#include "api/testing.h"
#include "base/check.h"
#include "engine/task_log.h"

static int setup(void **state) { (void)state; testing_start(); return 0; }
static int teardown(void **state) { (void)state; testing_stop(); return 0; }
static int fresh(void **state) { (void)state; testing_reset(); return 0; }

/* --- answers against schemas ---------------------------------------------------------------------------------------------- */

static void form_check(const char *name, const json_t *value);

static void type_check(const char *where, const char *field, const char *type, const json_t *value)
{
	char plain[64];
	size_t index;
	const json_t *element;

	snprintf(plain, sizeof plain, "%.*s", (int)strcspn(type, "?"), type);
	if (plain[0] == '[') {
		if (!json_is_array(value))
			fail_msg("%s.%s: not a list", where, field);
		plain[strlen(plain) - 1] = '\0';
		json_array_foreach(value, index, element)
			type_check(where, field, plain + 1, element);
	} else if (plain[0] >= 'A' && plain[0] <= 'Z') {
		form_check(plain, value);
	} else if ((!strcmp(plain, "string") && !json_is_string(value)) || (!strcmp(plain, "integer") && !json_is_integer(value)) ||
		   (!strcmp(plain, "number") && !json_is_number(value)) || (!strcmp(plain, "boolean") && !json_is_boolean(value)) ||
		   (!strcmp(plain, "object") && !json_is_object(value))) {
		fail_msg("%s.%s: not a %s", where, field, plain);
	}
}

static void form_check(const char *name, const json_t *value)
{
	const struct schema *schema = schema_find(name);
	const char *key;
	json_t *member;

	assert_non_null(schema);
	if (!json_is_object(value))
		fail_msg("%s: not an object", name);
	json_object_foreach((json_t *)(uintptr_t)value, key, member) {
		size_t i = 0;

		while (i < schema->count && strcmp(schema->fields[i].name, key) != 0)
			i++;
		if (i == schema->count)
			fail_msg("%s.%s is not in the schema", name, key);
		type_check(name, key, schema->fields[i].type, member);
	}
	for (size_t i = 0; i < schema->count; i++)
		if (!schema_field_optional(&schema->fields[i]) && !json_object_get(value, schema->fields[i].name))
			fail_msg("%s.%s is missing", name, schema->fields[i].name);
}

static struct answer get(const char *user, const char *path, const char *schema)
{
	struct answer answer = testing_get(user, path, 200);

	form_check(schema, answer.json);
	return answer;
}

static struct answer sent(const char *user, const char *method, const char *path, const char *body, int status)
{
	struct answer answer = testing_call(user, method, path, NULL, body);

	if (answer.status != status)
		fail_msg("%s %s %.200s as %s: %d %s", method, path, body ? body : "", user ? user : "socket", answer.status, answer.text);
	if (status >= 400)
		form_check("ErrorReply", answer.json);
	return answer;
}

static void change(const char *user, const char *method, const char *path, const char *body)
{
	struct answer answer = sent(user, method, path, body, 200);

	form_check("Done", answer.json);
	answer_free(&answer);
}

static void refused(const char *user, const char *method, const char *path, const char *body, int status, const char *part)
{
	struct answer answer = sent(user, method, path, body, status);

	if (!strstr(answer.text, part))
		fail_msg("%s %s: \"%s\" is not in %s", method, path, part, answer.text);
	answer_free(&answer);
}

static int64_t number(const struct answer *answer, const char *name)
{
	return json_integer_value(json_object_get(answer->json, name));
}

static const char *text(const struct answer *answer, const char *name)
{
	const char *value = json_string_value(json_object_get(answer->json, name));

	return value ? value : "(none)";
}

/* --- who ---------------------------------------------------------------------------------------------------------------------- */

static void the_caller_is_known_by_socket_or_token(void **state)
{
	struct answer a = get(NULL, "/api/v1/whoami", "Caller");

	(void)state;
	assert_string_equal(text(&a, "user"), "root");
	assert_string_equal(text(&a, "by"), "socket");
	answer_free(&a);
	a = get("rita", "/api/v1/whoami", "Caller");
	assert_string_equal(text(&a, "user"), "rita");
	assert_string_equal(text(&a, "role"), "researcher");
	assert_string_equal(text(&a, "token"), "t-rita");
	answer_free(&a);
}

static void an_unknown_account_is_told_whom_to_ask(void **state)
{
	struct event e = event_make(EVENT_USER_SET, 0, "test");
	struct answer a;

	(void)state;
	e.user_set.name = "root";
	e.user_set.role = ROLE_ADMIN;
	e.user_set.uid = e.user_set.gid = 12345;
	testing_apply(&e);
	a = sent(NULL, "GET", "/api/v1/whoami", NULL, 401);
	assert_non_null(strstr(a.text, "ask an admin to run: fairlead users add"));
	answer_free(&a);
}

static void tokens_end_by_revocation_expiry_and_with_their_user(void **state)
{
	struct event e = event_make(EVENT_TOKEN_CREATED, 0, "test");
	struct answer a;

	(void)state;
	change("rita", "DELETE", "/api/v1/tokens/t-rita", NULL);
	a = sent("rita", "GET", "/api/v1/whoami", NULL, 401);
	assert_non_null(strstr(a.text, "token"));
	answer_free(&a);
	change("ada", "DELETE", "/api/v1/users/bob", NULL);
	a = sent("bob", "GET", "/api/v1/whoami", NULL, 401);
	answer_free(&a);
	/* An expired one: of a second that is long over. */
	{
		char header[128], hash[65], token[128];
		struct digest digest;

		snprintf(token, sizeof token, "fl_%064d", 7);
		digest = digest_of(token, strlen(token));
		digest_format(&digest, hash);
		e.token_created.id = "t-old";
		e.token_created.user = "rob";
		e.token_created.hash = hash;
		e.token_created.expires_ms = 1000;
		testing_apply(&e);
		snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
		a = testing_call("", "GET", "/api/v1/whoami", header, NULL);
		assert_int_equal(a.status, 401);
		answer_free(&a);
		e.token_created.id = "t-new";
		e.token_created.expires_ms = 4000000000000;
		testing_apply(&e);
		a = testing_call("", "GET", "/api/v1/whoami", header, NULL);
		assert_int_equal(a.status, 200);
		answer_free(&a);
	}
}

static void malformed_tokens_are_refused(void **state)
{
	static const char *const bad[] = { "Basic cm9vdDpyb290", "Bearer", "Bearer ", "Bearer fl_", "Bearer x", "bearer fl_00", "Bearer fl_zz",
					   "Bearer ' OR 1=1 --" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char header[128];
		struct answer a;

		snprintf(header, sizeof header, "Authorization: %s\r\n", bad[i]);
		a = testing_call("", "GET", "/api/v1/whoami", header, NULL);
		assert_int_equal(a.status, 401);
		answer_free(&a);
	}
}

static void a_new_token_is_shown_once_and_kept_as_a_hash(void **state)
{
	struct answer a = sent("rita", "POST", "/api/v1/tokens", "{\"note\":\"laptop\",\"expires\":\"30d\"}", 201), list, events;
	const char *token;
	char header[128];

	(void)state;
	form_check("TokenMade", a.json);
	token = text(&a, "token");
	assert_int_equal(strlen(token), 67);
	snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
	list = testing_call("", "GET", "/api/v1/whoami", header, NULL);
	assert_int_equal(list.status, 200);
	answer_free(&list);
	list = get("rita", "/api/v1/tokens", "TokenList");
	assert_null(strstr(list.text, token + 3));
	assert_non_null(strstr(list.text, "laptop"));
	assert_null(strstr(list.text, "t-lena"));
	answer_free(&list);
	/* Neither the secret nor its hash is in any event, for anybody. */
	events = get("ada", "/api/v1/events?limit=500", "EventPage");
	assert_non_null(strstr(events.text, "token-created"));
	assert_null(strstr(events.text, token + 3));
	assert_null(strstr(events.text, "\"hash\""));
	answer_free(&events);
	events = get("lena", "/api/v1/events?limit=500", "EventPage");
	assert_null(strstr(events.text, "token-created"));
	answer_free(&events);
	answer_free(&a);
}

/* --- people: nobody grants more than he holds --------------------------------------------------------------------------------- */

static void a_lead_runs_his_team_and_nothing_above_it(void **state)
{
	(void)state;
	change("lena", "PUT", "/api/v1/users/nina", "{\"role\":\"researcher\"}");
	change("lena", "PUT", "/api/v1/users/nina", "{\"role\":\"lead\"}");
	change("lena", "DELETE", "/api/v1/users/nina", NULL);
	change("lena", "PUT", "/api/v1/teams/red", "{\"title\":\"The Reds\"}");
	change("lena", "PUT", "/api/v1/queues/red-fast", "{\"parent\":\"red\",\"team\":\"red\",\"weight\":3}");
	refused("lena", "PUT", "/api/v1/users/rob", "{\"role\":\"admin\"}", 403, "can't give or change the role admin");
	refused("lena", "PUT", "/api/v1/users/rob", "{\"uid\":0}", 403, "only an admin");
	refused("lena", "PUT", "/api/v1/users/newcomer", "{\"uid\":0}", 403, "only an admin");
	refused("lena", "PUT", "/api/v1/users/rob", "{\"team\":\"blue\"}", 403, "only an admin");
	refused("lena", "PUT", "/api/v1/users/bob", "{}", 403, "admin");
	refused("lena", "PUT", "/api/v1/users/bob", "{\"team\":\"red\"}", 403, "admin");
	refused("lena", "PUT", "/api/v1/users/stranger", "{\"team\":\"blue\"}", 403, "admin");
	refused("lena", "PUT", "/api/v1/users/stranger", "{\"team\":\"\"}", 403, "admin");
	refused("lena", "PUT", "/api/v1/queues/red", "{\"guarantee_gpus\":8}", 403, "admin");
	refused("lena", "PUT", "/api/v1/queues/top", "{\"team\":\"red\",\"guarantee_gpus\":4}", 403, "admin");
	refused("lena", "PUT", "/api/v1/queues/red-low", "{\"parent\":\"\"}", 403, "admin");
	refused("lena", "PUT", "/api/v1/queues/red-low", "{\"team\":\"blue\"}", 403, "admin");
	refused("lena", "PUT", "/api/v1/queues/blue", "{\"team\":\"red\",\"parent\":\"red\"}", 403, "admin");
	refused("lena", "DELETE", "/api/v1/queues/default", NULL, 403, "admin");
	refused("lena", "POST", "/api/v1/tokens", "{\"user\":\"ada\"}", 403, "admin");
	refused("lena", "PUT", "/api/v1/teams/green", "{}", 403, "admin");
	/* An admin who belongs to the team is still above its lead. */
	change("ada", "PUT", "/api/v1/users/rob", "{\"role\":\"admin\"}");
	refused("lena", "PUT", "/api/v1/users/rob", "{\"role\":\"viewer\"}", 403, "admin");
	refused("lena", "DELETE", "/api/v1/users/rob", NULL, 403, "admin");
	refused("lena", "POST", "/api/v1/tokens", "{\"user\":\"rob\"}", 403, "admin");
	refused("lena", "DELETE", "/api/v1/tokens/t-rob", NULL, 403, "admin");
}

static uint32_t seed = 12345;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % sides;
}

/* Random grants by everybody: whatever is granted, no user of a team reaches a role above its lead's by its own people's doing. */
static void random_grants_never_make_an_admin_or_an_account(void **state)
{
	static const char *const actors[] = { "vera", "rita", "sam", "lena", "rob", "bob", "lars" };
	static const char *const names[] = { "vera", "rita", "sam", "lena", "rob", "bob", "lars", "ada", "root", "new1", "new2" };
	static const char *const roles[] = { "viewer", "researcher", "service", "lead", "admin" };
	static const char *const teams[] = { "red", "blue", "" };
	const struct facts *f;
	struct answer a;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char path[64], body[128];
		const char *actor = actors[dice(ARRAY_SIZE(actors))], *name = names[dice(ARRAY_SIZE(names))];

		snprintf(path, sizeof path, "/api/v1/users/%s", name);
		switch (dice(4)) {
		case 0:
			snprintf(body, sizeof body, "{\"role\":\"%s\"}", roles[dice(5)]);
			break;
		case 1:
			snprintf(body, sizeof body, "{\"role\":\"%s\",\"team\":\"%s\"}", roles[dice(5)], teams[dice(3)]);
			break;
		case 2:
			snprintf(body, sizeof body, "{\"uid\":%u}", dice(3));
			break;
		default:
			snprintf(body, sizeof body, "{\"team\":\"%s\"}", teams[dice(3)]);
		}
		a = testing_call(actor, "PUT", path, NULL, body);
		assert_true(a.status == 200 || a.status == 403);
		answer_free(&a);
	}
	f = testing_facts();
	for (uint32_t id = 1; id <= f->users.count; id++) {
		const struct user *user = table_get(&f->users, id);
		const char *name = facts_name(f, user->name), *team = facts_name(f, user->team);

		if (user->role == ROLE_ADMIN)
			assert_true(!strcmp(name, "ada") || !strcmp(name, "root"));
		if (!strncmp(name, "new", 3))
			assert_int_equal(user->uid, -1);
		if (!strcmp(name, "bob") || !strcmp(name, "lars"))
			assert_string_equal(team, "blue");
		if (!strcmp(name, "rita") || !strcmp(name, "lena"))
			assert_string_equal(team, "red");
	}
}

static void names_match_whole_and_never_by_prefix(void **state)
{
	(void)state;
	change("ada", "PUT", "/api/v1/teams/red2", "{}");
	change("ada", "PUT", "/api/v1/users/rita2", "{\"team\":\"red2\"}");
	change("ada", "PUT", "/api/v1/queues/red2", "{\"team\":\"red2\"}");
	refused("lena", "PUT", "/api/v1/users/rita2", "{}", 403, "admin");
	refused("rita", "POST", "/api/v1/jobs", "{\"command\":[\"true\"],\"queue\":\"red2\"}", 403, "team \\\"red2\\\"");
	refused("lena", "PUT", "/api/v1/queues/red2", "{\"weight\":2}", 403, "admin");
	refused("ada", "GET", "/api/v1/jobs/1x", NULL, 400, "expected its number");
}

static void the_last_admin_stays(void **state)
{
	(void)state;
	change("ada", "DELETE", "/api/v1/users/root", NULL);
	refused("ada", "DELETE", "/api/v1/users/ada", NULL, 409, "last admin");
	refused("ada", "PUT", "/api/v1/users/ada", "{\"role\":\"lead\"}", 409, "last admin");
	refused("ada", "PUT", "/api/v1/users/rita", "{\"uid\":70004}", 409, "already");
	refused("ada", "PUT", "/api/v1/users/rita", "{\"team\":\"nowhere\"}", 404, "no team");
	refused("ada", "PUT", "/api/v1/users/rita", "{\"role\":\"leed\"}", 400, "did you mean");
	refused("ada", "DELETE", "/api/v1/teams/red", NULL, 409, "members");
}

/* --- jobs ---------------------------------------------------------------------------------------------------------------------- */

static void a_job_is_submitted_listed_shown_and_cancelled(void **state)
{
	struct answer a = sent("rita", "POST", "/api/v1/jobs?prospect=1", "name: first\ncommand: [sleep, \"100\"]\nqueue: red\ngpus: 2\ntasks: 2\n", 201), list;
	char path[64];
	int64_t id;

	(void)state;
	form_check("Submitted", a.json);
	id = number(&a, "id");
	assert_true(id > 0);
	assert_true(strlen(text(&a, "prospect")) > 10);
	snprintf(path, sizeof path, "Location: /api/v1/jobs/%lld", (long long)id);
	assert_non_null(strstr(a.head, path));
	answer_free(&a);
	testing_engine((uint32_t)id);

	list = get("vera", "/api/v1/jobs?queue=red", "JobList");
	assert_int_equal(json_array_size(json_object_get(list.json, "jobs")), 1);
	assert_non_null(strstr(list.text, "\"simulated\":true"));
	answer_free(&list);
	snprintf(path, sizeof path, "/api/v1/jobs/%lld", (long long)id);
	a = get("vera", path, "Job");
	assert_string_equal(text(&a, "state"), "running");
	assert_int_equal(number(&a, "gpus"), 4);
	assert_true(json_is_false(json_object_get(a.json, "may_read_logs")));
	assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(a.json, "attempts"), 0), "tasks")), 2);
	answer_free(&a);
	a = get("rita", path, "Job");
	assert_true(json_is_true(json_object_get(a.json, "may_read_logs")));
	answer_free(&a);

	snprintf(path, sizeof path, "/api/v1/jobs/%lld/priority", (long long)id);
	change("rita", "POST", path, "{\"priority\":7}");
	refused("rita", "POST", path, "{\"priority\":1001}", 400, "priority");
	refused("rita", "POST", path, "{}", 400, "priority");
	refused("rob", "POST", path, "{\"priority\":7}", 403, "researcher");
	snprintf(path, sizeof path, "/api/v1/jobs/%lld/cancel", (long long)id);
	change("lena", "POST", path, "{\"reason\":\"not now\"}");
	snprintf(path, sizeof path, "/api/v1/jobs/%lld/history", (long long)id);
	a = get("vera", path, "EventPage");
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
	a = get("rita", path, "Job");
	assert_string_equal(text(&a, "state"), "queued");
	assert_true(strlen(text(&a, "reason")) > 10);
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/explain", id);
	a = get("vera", path, "Explanation");
	assert_string_not_equal(text(&a, "reason"), "none");
	assert_true(strlen(text(&a, "summary")) > 10);
	assert_int_equal(number(&a, "position"), 1);
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/hold", id);
	change("rita", "POST", path, NULL);
	a = testing_call("rita", "POST", path, NULL, NULL);
	assert_int_equal(a.status, 200);
	assert_true(json_is_true(json_object_get(a.json, "already")));
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/release", id);
	change("rita", "POST", path, NULL);
}

static void a_dry_run_tells_and_changes_nothing(void **state)
{
	static const char job[] = "{\"command\":[\"true\"],\"gpus\":4,\"queue\":\"default\"}";
	const uint64_t before = testing_last_seq();
	struct answer a = sent("rita", "POST", "/api/v1/jobs?dry_run=1", job, 200);

	(void)state;
	form_check("Submitted", a.json);
	assert_true(json_is_true(json_object_get(a.json, "starts_now")));
	assert_int_equal(json_array_size(json_object_get(a.json, "places")), 1);
	assert_true(strlen(text(&a, "prospect")) > 10);
	answer_free(&a);
	assert_int_equal(testing_last_seq(), before);
	for (int i = 0; i < 2; i++)
		testing_engine(testing_job("rob", "red", "default", 4));
	a = sent("rita", "POST", "/api/v1/jobs?dry_run=1", job, 200);
	form_check("Submitted", a.json);
	assert_true(json_is_false(json_object_get(a.json, "starts_now")));
	assert_non_null(json_object_get(a.json, "why"));
	answer_free(&a);
	/* What would be refused is refused. */
	refused("rita", "POST", "/api/v1/jobs?dry_run=1", "{\"command\":[\"true\"],\"queue\":\"nowhere\"}", 404, "nowhere");
	refused("rita", "POST", "/api/v1/jobs?dry_run=1", "{\"command\":[\"true\"],\"queue\":\"blue\"}", 403, "blue");
}

static void the_same_key_gives_the_same_job(void **state)
{
	static const char job[] = "{\"command\":[\"true\"],\"name\":\"once\"}";
	static const char other[] = "{\"command\":[\"false\"],\"name\":\"once\"}";
	struct answer a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", job);
	const int64_t id = number(&a, "id");

	(void)state;
	assert_int_equal(a.status, 201);
	answer_free(&a);
	a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", job);
	assert_int_equal(a.status, 200);
	assert_int_equal(number(&a, "id"), id);
	assert_true(json_is_true(json_object_get(a.json, "already")));
	answer_free(&a);
	a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", other);
	assert_int_equal(a.status, 409);
	answer_free(&a);
	/* Somebody else's key of the same name is another key. */
	a = testing_call("rob", "POST", "/api/v1/jobs", "Idempotency-Key: k1\r\n", other);
	assert_int_equal(a.status, 201);
	assert_int_not_equal(number(&a, "id"), id);
	answer_free(&a);
	a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key:\r\n", job);
	assert_int_equal(a.status, 400);
	answer_free(&a);
}

static void what_a_job_runs_is_for_few_and_values_are_for_nobody(void **state)
{
	static const char job[] = "{\"command\":[\"python3\",\"train.py\"],\"env\":{\"API_KEY\":\"canary-4711\",\"B\":\"two\"},\"workdir\":\"/home/rita\"}";
	struct answer a = sent("rita", "POST", "/api/v1/jobs", job, 201);
	const int64_t id = number(&a, "id");
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
	a = get("vera", "/api/v1/events?limit=500", "EventPage");
	assert_null(strstr(a.text, "canary"));
	assert_null(strstr(a.text, "body_mac"));
	answer_free(&a);
	refused("rob", "GET", "/api/v1/jobs/1/spec", NULL, 403, "lead");
}

static void bad_submissions_say_what_and_where(void **state)
{
	static const struct { const char *body; int status; const char *part; } cases[] = {
		{ "", 400, "" },
		{ "{\"command\":[\"true\"],\"gpu\":1}", 400, "gpus" },
		{ "{\"command\":[\"true\"],\"gpus\":-1}", 400, "\"line\":1" },
		{ "{\"command\":[\"true\"],\"gpus\":99999999999999999999}", 400, "gpus" },
		{ "{\"name\":\"x\"}", 400, "command" },
		{ "{\"command\":[\"true\"],\"queue\":\"nowhere\"}", 404, "nowhere" },
		{ "{\"command\":[\"true\"],\"name\":\"a\\u001b[31m\"}", 400, "name" },
		{ "{\"command\":[\"true\"],\"name\":\"\xff\xfe\"}", 400, "" },
		{ "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", 400, "" },
		{ "{\"command\":[\"true\"],\"tier\":\"critical\",\"gpus\":4,\"tasks\":2}", 422, "guarantee" },
		{ "{\"command\":[\"true\"],\"team\":\"blue\"}", 403, "team" },
		{ "[1,2,3]", 400, "" },
		{ "{\"command\":[\"true\"]}{\"command\":[\"true\"]}", 400, "" },
	};
	static char deep[200001];

	(void)state;
	change("ada", "PUT", "/api/v1/users/rob", "{\"uid\":-1}");
	refused("rob", "POST", "/api/v1/jobs", "{\"command\":[\"true\"]}", 403, "no account on this machine");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refused("rita", "POST", "/api/v1/jobs", cases[i].body, cases[i].status, cases[i].part);
	memset(deep, '[', 200000);
	refused("rita", "POST", "/api/v1/jobs", deep, 413, "nested");
	assert_int_equal(testing_facts()->jobs.count, 0);
	{
		struct answer a = testing_call("rita", "POST", "/api/v1/jobs", "X-Fairlead-File: train.yaml\r\n", "command: [true]\ngpuz: 1\n");

		assert_int_equal(a.status, 400);
		assert_string_equal(json_string_value(json_object_get(json_object_get(a.json, "error"), "file")), "train.yaml");
		assert_int_equal(json_integer_value(json_object_get(json_object_get(a.json, "error"), "line")), 2);
		answer_free(&a);
	}
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
		a = get("vera", path, "JobList");
		json_array_foreach(json_object_get(a.json, "jobs"), index, job) {
			assert_int_equal(json_integer_value(json_object_get(job, "id")), ++seen);
		}
		after = number(&a, "next");
		answer_free(&a);
	} while (after);
	assert_int_equal(seen, 25);
	a = get("vera", "/api/v1/jobs?user=rita&queue=red&limit=500", "JobList");
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 2);
	answer_free(&a);
	a = get("vera", "/api/v1/jobs?user=nobody", "JobList");
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 0);
	answer_free(&a);
	a = get("vera", "/api/v1/jobs?state=queued,running,starting&limit=500", "JobList");
	assert_int_equal(json_array_size(json_object_get(a.json, "jobs")), 25);
	answer_free(&a);
	refused("vera", "GET", "/api/v1/jobs?limit=501", NULL, 400, "1 to 500");
	refused("vera", "GET", "/api/v1/jobs?limit=0", NULL, 400, "1 to 500");
	refused("vera", "GET", "/api/v1/jobs?after=-1", NULL, 400, "0 or more");
	refused("vera", "GET", "/api/v1/jobs?sate=queued", NULL, 400, "did you mean ?state=");
	refused("vera", "GET", "/api/v1/jobs?state=qeued", NULL, 400, "did you mean");
	refused("vera", "GET", "/api/v1/jobs/26", NULL, 404, "no job 26");
	refused("vera", "GET", "/api/v1/jobs/99999999999", NULL, 400, "expected its number");
	refused("vera", "PATCH", "/api/v1/jobs/1", NULL, 405, "GET");
	refused("vera", "GET", "/api/v1/nothing", NULL, 404, "openapi.json");
}

/* --- the rest -------------------------------------------------------------------------------------------------------------------- */

static void every_list_keeps_its_form(void **state)
{
	static const struct { const char *path, *schema; } lists[] = {
		{ "/api/v1/version", "Version" }, { "/api/v1/status", "Status" }, { "/api/v1/policy", "Policy" }, { "/api/v1/queues", "QueueList" },
		{ "/api/v1/nodes", "NodeList" }, { "/api/v1/gpus", "GpuList" }, { "/api/v1/gpus?node=n1", "GpuList" }, { "/api/v1/users", "UserList" },
		{ "/api/v1/teams", "TeamList" }, { "/api/v1/tokens", "TokenList" }, { "/api/v1/events", "EventPage" }, { "/healthz", "Health" },
	};
	struct answer a;

	(void)state;
	testing_engine(testing_job("rita", "red", "red", 3));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		a = get("ada", lists[i].path, lists[i].schema);
		answer_free(&a);
	}
	a = get("vera", "/api/v1/nodes", "NodeList");
	assert_non_null(strstr(a.text, "{\"total\":4,\"allocated\":3,\"free\":1,\"unusable\":0}"));
	answer_free(&a);
	a = get("vera", "/api/v1/gpus?node=n1", "GpuList");
	assert_int_equal(json_array_size(json_object_get(a.json, "gpus")), 4);
	answer_free(&a);
	a = get("vera", "/api/v1/status", "Status");
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
	change("ada", "POST", "/api/v1/nodes/n0/state", "{\"state\":\"cordoned\",\"reason\":\"fan\"}");
	a = get("vera", "/api/v1/nodes", "NodeList");
	assert_non_null(strstr(a.text, "\"state\":\"cordoned\",\"reason\":\"fan\""));
	assert_non_null(strstr(a.text, "\"unusable\":4"));
	answer_free(&a);
	change("ada", "POST", "/api/v1/nodes/n0/state", "state: ready");
	change("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"index\":3,\"set_aside\":true,\"reason\":\"ecc\"}");
	a = get("vera", "/api/v1/gpus?node=n0", "GpuList");
	assert_non_null(strstr(a.text, "\"state\":\"set-aside\",\"reason\":\"ecc\""));
	answer_free(&a);
	change("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"mask\":8,\"set_aside\":false}");
	refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"index\":4,\"set_aside\":true}", 400, "index");
	refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"mask\":16,\"set_aside\":true}", 400, "mask");
	refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"mask\":1,\"index\":0,\"set_aside\":true}", 400, "mask");
	refused("ada", "POST", "/api/v1/nodes/n0/gpus", "{\"index\":1}", 400, "set_aside");
	refused("ada", "POST", "/api/v1/nodes/n9/state", "{\"state\":\"ready\"}", 404, "n9");
	refused("ada", "POST", "/api/v1/nodes/n0/state", "{\"state\":\"gone\"}", 400, "cordoned");
	refused("ada", "POST", "/api/v1/nodes/n0/state", "{\"state\":\"ready\",\"until\":5}", 400, "until");
}

static void queues_keep_what_is_not_given(void **state)
{
	struct answer a;

	(void)state;
	change("ada", "PUT", "/api/v1/queues/new", "{\"guarantee_gpus\":1.5,\"limit_gpus\":4,\"weight\":3,\"reserved\":true,\"default_limit\":\"2h\"}");
	change("ada", "PUT", "/api/v1/queues/new", "{\"weight\":5}");
	a = get("vera", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"name\":\"new\",\"parent\":\"\",\"team\":\"\",\"guarantee_gpus\":1.5,\"limit_gpus\":4,\"weight\":5,"
				       "\"reserved\":true,\"default_limit_ms\":7200000"));
	answer_free(&a);
	change("ada", "PUT", "/api/v1/queues/new", "{\"limit_gpus\":-1}");
	a = get("vera", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"guarantee_gpus\":1.5,\"weight\":5"));
	answer_free(&a);
	change("ada", "DELETE", "/api/v1/queues/new", NULL);
	refused("ada", "PUT", "/api/v1/queues/new", "{\"guarantee_gpus\":\"many\"}", 400, "number of GPUs");
	refused("ada", "PUT", "/api/v1/queues/new", "{\"guarantee_gpus\":-2}", 400, "number of GPUs");
	refused("ada", "PUT", "/api/v1/queues/new", "{\"weight\":0}", 400, "weight");
	refused("ada", "PUT", "/api/v1/queues/-x", "{}", 400, "queue");
	refused("ada", "DELETE", "/api/v1/queues/new", NULL, 404, "new");
	change("ada", "PUT", "/api/v1/policy", "{\"grace\":\"45s\"}");
	a = get("vera", "/api/v1/policy", "Policy");
	assert_int_equal(number(&a, "grace_ms"), 45000);
	answer_free(&a);
	refused("ada", "PUT", "/api/v1/policy", "{\"grace_ms\":1}", 400, "grace");
}

static void nothing_is_acknowledged_that_is_not_durable(void **state)
{
	struct answer a;

	(void)state;
	testing_refuse(true);
	refused("rita", "POST", "/api/v1/jobs", "{\"command\":[\"true\"]}", 503, "disk is full");
	a = testing_call("", "GET", "/healthz", NULL, NULL);
	assert_int_equal(a.status, 503);
	form_check("Health", a.json);
	answer_free(&a);
	testing_refuse(false);
}

/* --- logs -------------------------------------------------------------------------------------------------------------------------- */

static void log_write(uint32_t job, uint32_t attempt, const char *stream, const char *what)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%u", testing_logs(), job);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u", testing_logs(), job, attempt);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u/0.%s", testing_logs(), job, attempt, stream);
	file = fopen(path, "a");
	assert_non_null(file);
	fputs(what, file);
	fclose(file);
}

static void logs_are_read_and_followed(void **state)
{
	const uint32_t id = testing_job("rita", "red", "default", 1);
	uint32_t attempt;
	char path[128], out[4096] = "";
	struct answer a;
	struct event e;
	size_t have = 0;
	int fd;

	(void)state;
	testing_engine(id);
	attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	log_write(id, attempt, "out", "hello\nworld\n");
	log_write(id, attempt, "err", "oops\n");
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "hello\nworld\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?stream=stderr", id);
	a = testing_get("lena", path, 200);
	assert_string_equal(a.text, "oops\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?offset=6", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "world\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?offset=-6", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "world\n");
	answer_free(&a);

	/* Followed: what comes later comes too, and the end of the rank is the end. */
	fd = testing_dial(false);
	have = (size_t)snprintf(out, sizeof out, "GET /api/v1/jobs/%u/logs/0?follow=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
				id, testing_token("rita"));
	assert_int_equal(send(fd, out, have, MSG_NOSIGNAL), have);
	have = 0;
	out[0] = '\0';
	while (!strstr(out, "world")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
		out[have] = '\0';
	}
	log_write(id, attempt, "out", "later\n");
	while (!strstr(out, "later")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
		out[have] = '\0';
	}
	e = event_make(EVENT_TASK_EXITED, 0, "engine");
	e.task_exited.attempt = attempt;
	testing_apply(&e);
	while (!strstr(out, "0\r\n\r\n")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
		out[have] = '\0';
	}
	close(fd);
}

static void logs_never_lead_out_of_their_folder(void **state)
{
	static const char *const pieces[] = { "..", "%2e%2e", "%2e.", "..%2f", "%2f", "%5c", "..%5c", "%252e%252e", "%00", "0%00.out", "%c0%ae%c0%ae",
					      "%e0%80%ae", "etc", "passwd", "0", "0.out", "..;", "....", "~", "file:", "%0a", "-1", "1e0", "0x0" };
	const uint32_t id = testing_job("rita", "red", "default", 1);
	uint32_t attempt;
	char path[512], target[256], out[512];

	(void)state;
	testing_engine(id);
	attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	/* A file outside, and links to it where logs would be. */
	snprintf(out, sizeof out, "%s/../secret", testing_logs());
	{
		FILE *file = fopen(out, "w");

		assert_non_null(file);
		fputs("canary-9000\n", file);
		fclose(file);
	}
	snprintf(path, sizeof path, "%s/%u", testing_logs(), id);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u", testing_logs(), id, attempt);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u/0.out", testing_logs(), id, attempt);
	snprintf(target, sizeof target, "../../../secret");
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0", id);
	{
		struct answer a = testing_call("rita", "GET", path, NULL, NULL);

		assert_null(strstr(a.text, "canary"));
		answer_free(&a);
	}
	/* Paths made of pieces that other servers fell for; nothing of them is served. */
	for (int i = 0; i < 1000; i++) {
		size_t n = (size_t)snprintf(path, sizeof path, "/api/v1/jobs/%s/logs/", dice(2) ? pieces[dice(ARRAY_SIZE(pieces))] : "1");
		const uint32_t parts = 1 + dice(5);
		struct answer a;

		for (uint32_t k = 0; k < parts; k++)
			n += (size_t)snprintf(path + n, sizeof path - n, "%s%s", k ? (dice(2) ? "/" : "%2f") : "", pieces[dice(ARRAY_SIZE(pieces))]);
		if (dice(3) == 0)
			snprintf(path + n, sizeof path - n, "?stream=%s", pieces[dice(ARRAY_SIZE(pieces))]);
		a = testing_call("rita", "GET", path, NULL, NULL);
		assert_null(strstr(a.text, "canary"));
		assert_null(strstr(a.text, "root:"));
		if (strstr(path, "..") || strstr(path, "%"))
			assert_true(a.status >= 400 && a.status < 500);
		answer_free(&a);
	}
}

/* --- events -------------------------------------------------------------------------------------------------------------------------- */

struct listener { int fd; char *text; size_t size, room; };

static struct listener listen_begin(const char *user, const char *query, const char *headers)
{
	struct listener l = { .fd = testing_dial(false), .room = 16 << 20 };
	char out[512];
	const int size = snprintf(out, sizeof out,
				  "GET /api/v1/events%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n%s\r\n",
				  query, testing_token(user), headers);

	l.text = calloc(1, l.room);
	assert_int_equal(send(l.fd, out, (size_t)size, MSG_NOSIGNAL), size);
	return l;
}

static void listen_until(struct listener *l, const char *part)
{
	while (!strstr(l->text, part)) {
		const ssize_t got = recv(l->fd, l->text + l->size, l->room - 1 - l->size, 0);

		if (got <= 0)
			fail_msg("the stream ended before \"%s\": %s", part, l->text);
		l->size += (size_t)got;
	}
}

static void listen_end(struct listener *l)
{
	close(l->fd);
	free(l->text);
}

/* Ids of a stream's frames rise by one and none is missing from `first` on (tokens' events are not for everybody). */
static void ids_check(const struct listener *l, uint64_t first, uint64_t last, bool gaps)
{
	uint64_t next = first;

	for (const char *at = strstr(l->text, "id: "); at; at = strstr(at + 1, "\nid: ")) {
		const uint64_t id = strtoull(at + (at[0] == '\n' ? 5 : 4), NULL, 10);

		if (gaps ? id < next : id != next)
			fail_msg("event %llu came where %llu was due", (unsigned long long)id, (unsigned long long)next);
		next = id + 1;
		if (id == last)
			return;
	}
	fail_msg("event %llu did not come", (unsigned long long)last);
}

static void a_stream_begins_where_it_is_asked_and_misses_nothing(void **state)
{
	struct listener l = listen_begin("ada", "?after=0", ""), later;
	char mark[64];
	uint64_t middle;

	(void)state;
	listen_until(&l, "event: queue-set");
	/* More, while it may still be catching up. */
	for (int i = 0; i < 50; i++)
		testing_job("rita", "red", "default", 1);
	middle = testing_last_seq();
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)middle);
	listen_until(&l, mark);
	ids_check(&l, 1, middle, false);
	snprintf(mark, sizeof mark, "Last-Event-ID: %llu\r\n", (unsigned long long)middle - 10);
	later = listen_begin("ada", "", mark);
	for (int i = 0; i < 10; i++)
		testing_job("rita", "red", "default", 1);
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq());
	listen_until(&later, mark);
	ids_check(&later, middle - 9, testing_last_seq(), false);
	listen_until(&l, mark);
	ids_check(&l, 1, testing_last_seq(), false);
	assert_non_null(strstr(l.text, "Content-Type: text/event-stream"));
	assert_null(strstr(l.text, "\"hash\""));
	listen_end(&l);
	listen_end(&later);
}

static void a_stream_without_a_place_begins_now_and_hides_what_is_private(void **state)
{
	struct listener l = listen_begin("vera", "", "");
	struct event e = event_make(EVENT_CHECKPOINT_SAVED, 0, "engine");
	char mark[64];
	uint32_t id;

	(void)state;
	listen_until(&l, "retry: 1000");
	id = testing_job("rita", "red", "default", 1);
	testing_engine(id);
	e.checkpoint_saved.job = id;
	e.checkpoint_saved.attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	e.checkpoint_saved.number = 1;
	e.checkpoint_saved.report = 1;
	e.checkpoint_saved.path = "/home/rita/canary-path";
	testing_apply(&e);
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq());
	listen_until(&l, mark);
	listen_until(&l, "checkpoint-saved");
	testing_job("rita", "red", "default", 1);
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq());
	listen_until(&l, mark);
	assert_null(strstr(l.text, "canary-path"));
	assert_null(strstr(l.text, "user-set"));
	listen_end(&l);
}

static void a_client_that_does_not_read_is_told_to_read_again(void **state)
{
	struct listener l = listen_begin("ada", "", "");
	const uint32_t id = testing_job("rita", "red", "default", 1);
	struct event e = event_make(EVENT_JOB_HELD, 0, "rita");
	static char reason[500];
	struct answer a;

	(void)state;
	listen_until(&l, "retry: 1000");
	memset(reason, 'x', sizeof reason - 1);
	e.job_held.job = id;
	e.job_held.reason = reason;
	/* Until the hub has met a full client: then the reader is behind for good, whatever socket buffers take. */
	for (int batch = 0; batch < 40; batch++) {
		for (int i = 0; i < 500; i++)
			testing_apply(&e);
		for (uint64_t seen = 0; seen < 2; seen++) {	/* two passes of the hub: a batch each */
			a = get("ada", "/api/v1/status", "Status");
			answer_free(&a);
		}
		usleep(20000);	/* lets batches form; nothing depends on how many */
	}
	/* Reads on; the hub finds room and says so with the next event. */
	for (int i = 0; !strstr(l.text, "event: resync"); i++) {
		ssize_t got;

		testing_apply(&e);
		while ((got = recv(l.fd, l.text + l.size, l.room - 1 - l.size, MSG_DONTWAIT)) > 0)
			l.size += (size_t)got;
		usleep(10000);
		assert_true(i < 3000);
	}
	testing_job("rita", "red", "default", 1);
	listen_until(&l, "\"name\":\"work\"");
	ids_check(&l, 1, 0 + strtoull(strstr(l.text, "event: resync") ? strstr(l.text, "id: ") + 4 : "0", NULL, 10), true);
	listen_end(&l);
}

static void a_page_of_events_goes_on_at_next(void **state)
{
	uint64_t after = 0, seen = 0;
	struct answer a;

	(void)state;
	for (int i = 0; i < 30; i++)
		testing_job("rita", "red", "default", 1);
	do {
		char path[64];

		snprintf(path, sizeof path, "/api/v1/events?limit=7&after=%llu", (unsigned long long)after);
		a = get("ada", path, "EventPage");
		seen += json_array_size(json_object_get(a.json, "events"));
		after = (uint64_t)number(&a, "next");
		answer_free(&a);
	} while (after);
	assert_int_equal(seen, testing_last_seq());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_caller_is_known_by_socket_or_token, fresh),
		cmocka_unit_test_setup(an_unknown_account_is_told_whom_to_ask, fresh),
		cmocka_unit_test_setup(tokens_end_by_revocation_expiry_and_with_their_user, fresh),
		cmocka_unit_test_setup(malformed_tokens_are_refused, fresh),
		cmocka_unit_test_setup(a_new_token_is_shown_once_and_kept_as_a_hash, fresh),
		cmocka_unit_test_setup(a_lead_runs_his_team_and_nothing_above_it, fresh),
		cmocka_unit_test_setup(random_grants_never_make_an_admin_or_an_account, fresh),
		cmocka_unit_test_setup(names_match_whole_and_never_by_prefix, fresh),
		cmocka_unit_test_setup(the_last_admin_stays, fresh),
		cmocka_unit_test_setup(a_job_is_submitted_listed_shown_and_cancelled, fresh),
		cmocka_unit_test_setup(a_waiting_job_is_explained, fresh),
		cmocka_unit_test_setup(a_dry_run_tells_and_changes_nothing, fresh),
		cmocka_unit_test_setup(the_same_key_gives_the_same_job, fresh),
		cmocka_unit_test_setup(what_a_job_runs_is_for_few_and_values_are_for_nobody, fresh),
		cmocka_unit_test_setup(bad_submissions_say_what_and_where, fresh),
		cmocka_unit_test_setup(lists_are_paged_and_filtered, fresh),
		cmocka_unit_test_setup(every_list_keeps_its_form, fresh),
		cmocka_unit_test_setup(nodes_and_gpus_are_taken_out_and_back, fresh),
		cmocka_unit_test_setup(queues_keep_what_is_not_given, fresh),
		cmocka_unit_test_setup(nothing_is_acknowledged_that_is_not_durable, fresh),
		cmocka_unit_test_setup(logs_are_read_and_followed, fresh),
		cmocka_unit_test_setup(logs_never_lead_out_of_their_folder, fresh),
		cmocka_unit_test_setup(a_stream_begins_where_it_is_asked_and_misses_nothing, fresh),
		cmocka_unit_test_setup(a_stream_without_a_place_begins_now_and_hides_what_is_private, fresh),
		cmocka_unit_test_setup(a_client_that_does_not_read_is_told_to_read_again, fresh),
		cmocka_unit_test_setup(a_page_of_events_goes_on_at_next, fresh),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
