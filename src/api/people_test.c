/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls and what he may grant, over the real server and the real core; every answer is checked against its schema. */
#include <stdlib.h>
#include <string.h>
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

/* --- who ---------------------------------------------------------------------------------------------------------------------- */

static void the_caller_is_known_by_socket_or_token(void **state)
{
	struct answer a = form_get(NULL, "/api/v1/whoami", "Caller");

	(void)state;
	assert_string_equal(answer_text(&a, "user"), "root");
	assert_string_equal(answer_text(&a, "by"), "socket");
	answer_free(&a);
	a = form_get("rita", "/api/v1/whoami", "Caller");
	assert_string_equal(answer_text(&a, "user"), "rita");
	assert_string_equal(answer_text(&a, "role"), "researcher");
	assert_string_equal(answer_text(&a, "token"), "t-rita");
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
	a = form_sent(NULL, "GET", "/api/v1/whoami", NULL, 401);
	assert_non_null(strstr(a.text, "ask an admin to run: fairlead users add"));
	answer_free(&a);
}

static void tokens_end_by_revocation_expiry_and_with_their_user(void **state)
{
	struct event e = event_make(EVENT_TOKEN_CREATED, 0, "test");
	struct answer a;

	(void)state;
	form_change("rita", "DELETE", "/api/v1/tokens/t-rita", NULL);
	a = form_sent("rita", "GET", "/api/v1/whoami", NULL, 401);
	assert_non_null(strstr(a.text, "token"));
	answer_free(&a);
	form_change("ada", "DELETE", "/api/v1/users/bob", NULL);
	a = form_sent("bob", "GET", "/api/v1/whoami", NULL, 401);
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
	static const char *const bad[] = {
		"Basic cm9vdDpyb290", "Bearer",       "Bearer ",      "Bearer fl_",
		"Bearer x",           "bearer fl_00", "Bearer fl_zz", "Bearer ' OR 1=1 --"
	};

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
	struct answer a = form_sent("rita", "POST", "/api/v1/tokens",
				    "{\"note\":\"laptop\",\"expires\":\"30d\"}", 201),
		      list, events;
	const char *token;
	char header[128];

	(void)state;
	form_check("TokenMade", a.json);
	token = answer_text(&a, "token");
	assert_int_equal(strlen(token), 67);
	snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", token);
	list = testing_call("", "GET", "/api/v1/whoami", header, NULL);
	assert_int_equal(list.status, 200);
	answer_free(&list);
	list = form_get("rita", "/api/v1/tokens", "TokenList");
	assert_null(strstr(list.text, token + 3));
	assert_non_null(strstr(list.text, "laptop"));
	assert_null(strstr(list.text, "t-lena"));
	answer_free(&list);
	/* Neither the secret nor its hash is in any event, for anybody. */
	events = form_get("ada", "/api/v1/events?limit=500", "EventPage");
	assert_non_null(strstr(events.text, "token-created"));
	assert_null(strstr(events.text, token + 3));
	assert_null(strstr(events.text, "\"hash\""));
	answer_free(&events);
	events = form_get("lena", "/api/v1/events?limit=500", "EventPage");
	assert_null(strstr(events.text, "token-created"));
	answer_free(&events);
	answer_free(&a);
}

/* --- people: nobody grants more than he holds --------------------------------------------------------------------------------- */

static void a_lead_runs_his_team_and_nothing_above_it(void **state)
{
	(void)state;
	form_change("lena", "PUT", "/api/v1/users/nina", "{\"role\":\"researcher\"}");
	form_change("lena", "PUT", "/api/v1/users/nina", "{\"role\":\"lead\"}");
	form_change("lena", "DELETE", "/api/v1/users/nina", NULL);
	form_change("lena", "PUT", "/api/v1/teams/red", "{\"title\":\"The Reds\"}");
	form_change("lena", "PUT", "/api/v1/queues/red-fast",
		    "{\"parent\":\"red\",\"team\":\"red\",\"weight\":3}");
	form_refused("lena", "PUT", "/api/v1/users/rob", "{\"role\":\"admin\"}", 403,
		     "can't give or change the role admin");
	form_refused("lena", "PUT", "/api/v1/users/rob", "{\"uid\":0}", 403, "only an admin");
	form_refused("lena", "PUT", "/api/v1/users/newcomer", "{\"uid\":0}", 403, "only an admin");
	form_refused("lena", "PUT", "/api/v1/users/rob", "{\"team\":\"blue\"}", 403,
		     "only an admin");
	form_refused("lena", "PUT", "/api/v1/users/bob", "{}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/users/bob", "{\"team\":\"red\"}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/users/stranger", "{\"team\":\"blue\"}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/users/stranger", "{\"team\":\"\"}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/queues/red", "{\"guarantee_gpus\":8}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/queues/top", "{\"team\":\"red\",\"guarantee_gpus\":4}",
		     403, "admin");
	form_refused("lena", "PUT", "/api/v1/queues/red-low", "{\"parent\":\"\"}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/queues/red-low", "{\"team\":\"blue\"}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/queues/blue", "{\"team\":\"red\",\"parent\":\"red\"}",
		     403, "admin");
	form_refused("lena", "DELETE", "/api/v1/queues/default", NULL, 403, "admin");
	form_refused("lena", "POST", "/api/v1/tokens", "{\"user\":\"ada\"}", 403, "admin");
	form_refused("lena", "PUT", "/api/v1/teams/green", "{}", 403, "admin");
	/* An admin who belongs to the team is still above its lead. */
	form_change("ada", "PUT", "/api/v1/users/rob", "{\"role\":\"admin\"}");
	form_refused("lena", "PUT", "/api/v1/users/rob", "{\"role\":\"viewer\"}", 403, "admin");
	form_refused("lena", "DELETE", "/api/v1/users/rob", NULL, 403, "admin");
	form_refused("lena", "POST", "/api/v1/tokens", "{\"user\":\"rob\"}", 403, "admin");
	form_refused("lena", "DELETE", "/api/v1/tokens/t-rob", NULL, 403, "admin");
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
	static const char *const names[] = { "vera", "rita", "sam",  "lena", "rob", "bob",
					     "lars", "ada",  "root", "new1", "new2" };
	static const char *const roles[] = { "viewer", "researcher", "service", "lead", "admin" };
	static const char *const teams[] = { "red", "blue", "" };
	const struct facts *f;
	struct answer a;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		char path[64], body[128];
		const char *actor = actors[dice(ARRAY_SIZE(actors))],
			   *name = names[dice(ARRAY_SIZE(names))];

		snprintf(path, sizeof path, "/api/v1/users/%s", name);
		switch (dice(4)) {
		case 0: snprintf(body, sizeof body, "{\"role\":\"%s\"}", roles[dice(5)]); break;
		case 1:
			snprintf(body, sizeof body, "{\"role\":\"%s\",\"team\":\"%s\"}",
				 roles[dice(5)], teams[dice(3)]);
			break;
		case 2: snprintf(body, sizeof body, "{\"uid\":%u}", dice(3)); break;
		default: snprintf(body, sizeof body, "{\"team\":\"%s\"}", teams[dice(3)]);
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
	form_change("ada", "PUT", "/api/v1/teams/red2", "{}");
	form_change("ada", "PUT", "/api/v1/users/rita2", "{\"team\":\"red2\"}");
	form_change("ada", "PUT", "/api/v1/queues/red2", "{\"team\":\"red2\"}");
	form_refused("lena", "PUT", "/api/v1/users/rita2", "{}", 403, "admin");
	form_refused("rita", "POST", "/api/v1/jobs", "{\"command\":[\"true\"],\"queue\":\"red2\"}",
		     403, "team \\\"red2\\\"");
	form_refused("lena", "PUT", "/api/v1/queues/red2", "{\"weight\":2}", 403, "admin");
	form_refused("ada", "GET", "/api/v1/jobs/1x", NULL, 400, "expected its number");
}

static void the_last_admin_stays(void **state)
{
	(void)state;
	form_change("ada", "DELETE", "/api/v1/users/root", NULL);
	form_refused("ada", "DELETE", "/api/v1/users/ada", NULL, 409, "no admin who can come in");
	form_refused("ada", "PUT", "/api/v1/users/ada", "{\"role\":\"lead\"}", 409,
		     "no admin who can come in");
	form_refused("ada", "PUT", "/api/v1/users/ada", "{\"role\":\"admin\",\"uid\":5}", 409,
		     "another admin must change it");
	form_refused("ada", "PUT", "/api/v1/users/ada", "{\"uid\":-1}", 409, "you come in");
	form_refused("ada", "PUT", "/api/v1/users/rita", "{\"uid\":70004}", 409, "already");
	form_refused("ada", "PUT", "/api/v1/users/rita", "{\"team\":\"nowhere\"}", 404, "no team");
	form_refused("ada", "PUT", "/api/v1/users/rita", "{\"role\":\"leed\"}", 400,
		     "did you mean");
	form_refused("ada", "DELETE", "/api/v1/teams/red", NULL, 409, "members");
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
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
