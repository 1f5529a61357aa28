/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls and what he may grant, over the real server and the real core; every answer is checked against its schema. */
#include <stdlib.h>
#include <string.h>
#include "api/identity.h"
#include "api/testing_form.h"
#include "base/check.h"
#include "base/clock.h"

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
	form_refused("lena", "POST", "/api/v1/tokens", "{\"user\":\"rita\"}", 403,
		     "ask rita or an admin to run: fairlead token create");
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
	form_refused("ada", "PUT", "/api/v1/users/rita", "{\"uid\":70004}", 409, "belongs to");
	form_refused("ada", "PUT", "/api/v1/users/rita", "{\"team\":\"nowhere\"}", 404, "no team");
	form_refused("ada", "PUT", "/api/v1/users/rita", "{\"role\":\"leed\"}", 400,
		     "did you mean");
	form_refused("ada", "DELETE", "/api/v1/teams/red", NULL, 409, "members");
}

/* --- a name that is used again ------------------------------------------------------------------------------------------------- */

static void a_removed_users_token_never_lives_again(void **state)
{
	struct answer a;

	(void)state;
	form_change("ada", "DELETE", "/api/v1/users/rob", NULL);
	form_change("lena", "PUT", "/api/v1/users/rob", "{\"role\":\"researcher\"}");
	a = form_sent("rob", "GET", "/api/v1/whoami", NULL, 401);
	answer_free(&a);
	a = form_get("ada", "/api/v1/tokens", "TokenList");
	assert_non_null(strstr(
		a.text,
		"{\"id\":\"t-rob\",\"user\":\"rob\",\"note\":\"\",\"expires_ms\":0,\"state\":\"revoked\"}"));
	answer_free(&a);
	/* The lead of the new rob does not see the tokens of the old one. */
	a = form_get("lena", "/api/v1/tokens", "TokenList");
	assert_null(strstr(a.text, "t-rob"));
	answer_free(&a);
}

static bool token_is_revoked(const char *id)
{
	const struct facts *f = testing_facts();

	return ((const struct token *)table_get(&f->tokens, facts_token_find(f, id)))->revoked;
}

/* The clock of the facts stands for a clock that was ahead: it never goes back. */
static void an_expired_token_stays_so_when_the_clock_goes_back(void **state)
{
	struct event e = event_make(EVENT_TOKEN_CREATED, 0, "test");
	struct caller caller;
	struct http_peer peer = { 0 };
	char text[128], header[160], hash[DIGEST_HEX_MAX];
	struct digest digest;
	struct answer a;
	struct err err;

	(void)state;
	snprintf(text, sizeof text, "fl_%064d", 8);
	digest = digest_of(text, strlen(text));
	digest_format(&digest, hash);
	e.token_created.id = "t-short";
	e.token_created.user = "rob";
	e.token_created.hash = hash;
	e.token_created.expires_ms = testing_facts()->now_ms + 2;
	testing_apply(&e);
	snprintf(header, sizeof header, "Bearer %s", text);
	e = event_make(EVENT_TEAM_SET, 0, "test");
	e.team_set.name = "later";
	testing_apply(&e);
	testing_apply(&e);
	/* By the wall it would be valid for long. */
	assert_true(identity_find(testing_facts(), &peer, header, 1000, &caller, &err) < 0);
	assert_string_equal(caller.expired, "t-short");
	snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", text);
	a = testing_call("", "GET", "/api/v1/whoami", header, NULL);
	assert_int_equal(a.status, 401);
	answer_free(&a);
	assert_true(token_is_revoked("t-short"));
	a = form_get("ada", "/api/v1/tokens", "TokenList");
	assert_non_null(strstr(a.text, "\"state\":\"expired\""));
	answer_free(&a);
}

/* A token of the user, made by an admin; a header for testing_call. */
static void token_for(const char *user, char *header, size_t room)
{
	char body[64];
	struct answer a;

	snprintf(body, sizeof body, "{\"user\":\"%s\"}", user);
	a = form_sent("ada", "POST", "/api/v1/tokens", body, 201);
	snprintf(header, room, "Authorization: Bearer %s\r\n", answer_text(&a, "token"));
	answer_free(&a);
}

static int status_of(const char *header, const char *method, const char *path, const char *body)
{
	struct answer a = testing_call("", method, path, header, body);
	const int status = a.status;

	answer_free(&a);
	return status;
}

static void a_re_made_user_owns_nothing_of_the_earlier_one(void **state)
{
	const uint32_t old = testing_job("rob", "red", "red", 1);
	char header[128], logs[64], cancel[64], mine[64];
	uint32_t job;

	(void)state;
	snprintf(logs, sizeof logs, "/api/v1/jobs/%u/spec", old);
	snprintf(cancel, sizeof cancel, "/api/v1/jobs/%u/cancel", old);
	form_change("ada", "DELETE", "/api/v1/users/rob", NULL);
	form_change("ada", "PUT", "/api/v1/users/rob",
		    "{\"role\":\"researcher\",\"team\":\"blue\"}");
	token_for("rob", header, sizeof header);
	assert_int_equal(status_of(header, "GET", "/api/v1/whoami", NULL), 200);
	assert_int_equal(status_of(header, "GET", logs, NULL), 403);
	assert_int_equal(status_of(header, "POST", cancel, "{}"), 403);
	job = testing_job("rob", "blue", "blue", 1);
	snprintf(mine, sizeof mine, "/api/v1/jobs/%u/cancel", job);
	assert_int_equal(status_of(header, "POST", mine, "{}"), 200);
}

static void a_re_made_teams_lead_has_no_rights_over_earlier_jobs(void **state)
{
	char header[128], cancel[64];

	(void)state;
	form_change("ada", "PUT", "/api/v1/teams/green", "{}");
	snprintf(cancel, sizeof cancel, "/api/v1/jobs/%u/cancel",
		 testing_job("bob", "green", "default", 1));
	form_change("ada", "PUT", "/api/v1/users/greta", "{\"role\":\"lead\",\"team\":\"green\"}");
	form_change("ada", "DELETE", "/api/v1/users/greta", NULL);
	form_change("ada", "DELETE", "/api/v1/teams/green", NULL);
	form_change("ada", "PUT", "/api/v1/teams/green", "{}");
	form_change("ada", "PUT", "/api/v1/users/greta", "{\"role\":\"lead\",\"team\":\"green\"}");
	token_for("greta", header, sizeof header);
	assert_int_equal(status_of(header, "POST", cancel, "{}"), 403);
	snprintf(cancel, sizeof cancel, "/api/v1/jobs/%u/cancel",
		 testing_job("bob", "green", "default", 1));
	assert_int_equal(status_of(header, "POST", cancel, "{}"), 200);
}

static const struct job *job_at(uint32_t id)
{
	return job_get(testing_facts(), (struct job_id){ id });
}

static void a_removed_users_waiting_and_held_jobs_are_cancelled(void **state)
{
	const uint32_t runs = testing_job("rob", "red", "default", 4),
		       full = testing_job("rita", "red", "default", 4),
		       waits = testing_job("rob", "red", "default", 4),
		       other = testing_job("rita", "red", "default", 4);
	struct event e = event_make(EVENT_JOB_HELD, 0, "test");
	uint32_t held;

	(void)state;
	held = testing_job("rob", "red", "default", 4);
	e.job_held.job = held;
	testing_apply(&e);
	testing_engine(runs);
	testing_engine(full);
	form_change("ada", "DELETE", "/api/v1/users/rob", NULL);
	assert_int_equal(job_at(waits)->state, JOB_CANCELLED);
	assert_int_equal(job_at(held)->state, JOB_CANCELLED);
	assert_string_equal(facts_text(testing_facts(), job_at(held)->reason),
			    "cancelled: its user was removed");
	assert_int_equal(job_at(other)->state, JOB_QUEUED);
	assert_int_equal(job_at(runs)->state, JOB_RUNNING);
}

/* --- random histories of people against a naive model: 1,000 sequences ------------------------------------------------------------ */

enum { NAMES = 3, TEAMS = 2, PERSONS = 64, TOKENS = 64, JOBS = 24, UIDS = 4 };

/* Persons and teams are counted as they come: a name that is used again is the next number. 0 = nobody. */
static struct {
	int person[NAMES], team[TEAMS]; /* who has the name now */
	int persons, teams, tokens, jobs;
	struct {
		int team, uid;
		bool lead;
	} of[PERSONS];
	struct {
		char header[128];
		int person;
	} token[TOKENS];
	struct {
		uint32_t id;
		int person, team;
	} job[JOBS];
} naive;

static int sent(const char *method, const char *path, const char *body)
{
	struct answer a = testing_call("ada", method, path, NULL, body);
	const int status = a.status;

	answer_free(&a);
	return status;
}

static bool uid_is_used(int uid)
{
	for (int i = 0; i < NAMES; i++)
		if (naive.person[i] && naive.of[naive.person[i]].uid == uid)
			return true;
	return false;
}

static void some_user_is_made(uint32_t name, uint32_t team)
{
	const int uid = 100 + (int)dice(UIDS);
	const bool lead = dice(3) == 0;
	char path[64], body[128];

	if (naive.person[name] || !naive.team[team] || naive.persons + 1 == PERSONS)
		return;
	snprintf(path, sizeof path, "/api/v1/users/p%u", name);
	snprintf(body, sizeof body, "{\"team\":\"g%u\",\"role\":\"%s\",\"uid\":%d,\"gid\":%d}",
		 team, lead ? "lead" : "researcher", uid, uid);
	if (uid_is_used(uid)) {
		assert_int_equal(sent("PUT", path, body), 409);
		return;
	}
	assert_int_equal(sent("PUT", path, body), 200);
	naive.person[name] = ++naive.persons;
	naive.of[naive.persons].team = naive.team[team];
	naive.of[naive.persons].uid = uid;
	naive.of[naive.persons].lead = lead;
}

static void some_team_changes(uint32_t team)
{
	char path[64];
	bool empty = true;

	snprintf(path, sizeof path, "/api/v1/teams/g%u", team);
	for (int i = 0; i < NAMES; i++)
		empty &= !naive.person[i] || naive.of[naive.person[i]].team != naive.team[team];
	if (!naive.team[team]) {
		assert_int_equal(sent("PUT", path, "{}"), 200);
		naive.team[team] = ++naive.teams;
	} else if (empty) {
		assert_int_equal(sent("DELETE", path, NULL), 200);
		naive.team[team] = 0;
	}
}

static void some_step(uint32_t name)
{
	const int person = naive.person[name];
	char path[64], user[8], team[8];

	snprintf(user, sizeof user, "p%u", name);
	snprintf(path, sizeof path, "/api/v1/users/p%u", name);
	switch (dice(6)) {
	case 0: some_team_changes(dice(TEAMS)); return;
	case 1: some_user_is_made(name, dice(TEAMS)); return;
	case 2:
		if (person && dice(2)) {
			assert_int_equal(sent("DELETE", path, NULL), 200);
			naive.person[name] = 0;
		}
		return;
	case 3:
		if (!person || naive.jobs == JOBS)
			return;
		for (uint32_t i = 0; i < TEAMS; i++)
			if (naive.of[person].team == naive.team[i])
				snprintf(team, sizeof team, "g%u", i);
		naive.job[naive.jobs].id = testing_job(user, team, "default", 1);
		naive.job[naive.jobs].person = person;
		naive.job[naive.jobs++].team = naive.of[person].team;
		return;
	default:
		if (!person || naive.tokens == TOKENS)
			return;
		token_for(user, naive.token[naive.tokens].header,
			  sizeof naive.token[naive.tokens].header);
		naive.token[naive.tokens++].person = person;
	}
}

static bool is_there(int person)
{
	for (int i = 0; i < NAMES; i++)
		if (naive.person[i] == person)
			return true;
	return false;
}

static void every_token_is_tried(int sequence)
{
	for (int t = 0; t < naive.tokens; t++) {
		const int who = naive.token[t].person;
		const int known = status_of(naive.token[t].header, "GET", "/api/v1/whoami", NULL);

		if (known != (is_there(who) ? 200 : 401))
			fail_msg("sequence %d: token %d of person %d: %d", sequence, t, who, known);
		if (known != 200 || !naive.jobs)
			continue;
		for (int j = (int)dice((uint32_t)naive.jobs), i = 0; i < 2;
		     i++, j = (j + 1) % naive.jobs) {
			const bool may =
				naive.job[j].person == who ||
				(naive.of[who].lead && naive.of[who].team == naive.job[j].team);
			char path[64];
			int status;

			snprintf(path, sizeof path, "/api/v1/jobs/%u/spec", naive.job[j].id);
			status = status_of(naive.token[t].header, "GET", path, NULL);
			if (status != (may ? 200 : 403))
				fail_msg("sequence %d: person %d, job of person %d: %d", sequence,
					 who, naive.job[j].person, status);
		}
	}
}

static void nothing_of_a_person_reaches_another_one(void **state)
{
	(void)state;
	for (int sequence = 0; sequence < 1000; sequence++) {
		testing_reset();
		memset(&naive, 0, sizeof naive);
		for (int step = 0; step < 40; step++)
			some_step(dice(NAMES));
		every_token_is_tried(sequence);
	}
}

static int64_t token_valid_ms(const char *body)
{
	struct answer a = form_sent("rita", "POST", "/api/v1/tokens", body, 201);
	const int64_t expires_ms = answer_number(&a, "expires_ms");

	answer_free(&a);
	return expires_ms ? expires_ms - clock_wall_ms() : 0;
}

static void a_token_ends_after_90_days_unless_something_else_is_said(void **state)
{
	const int64_t day_ms = INT64_C(86400000);
	int64_t valid_ms;

	(void)state;
	testing_reset();
	valid_ms = token_valid_ms("{}");
	assert_true(valid_ms > 89 * day_ms && valid_ms <= 91 * day_ms);
	valid_ms = token_valid_ms("{\"expires\":\"2d\"}");
	assert_true(valid_ms > day_ms && valid_ms <= 3 * day_ms);
	assert_int_equal(token_valid_ms("{\"expires\":\"never\"}"), 0);
	form_refused("rita", "POST", "/api/v1/tokens", "{\"expires\":\"nver\"}", 400, "expires");
}

/* The queue of a job that names none. */
static void queue_is(const char *user, const char *queue)
{
	struct answer a = form_sent(user, "POST", "/api/v1/jobs", "{\"command\":[\"true\"]}", 201);

	assert_string_equal(answer_text(&a, "queue"), queue);
	answer_free(&a);
}

static void a_job_without_a_queue_goes_to_the_teams_only_one_or_to_the_users_own(void **state)
{
	struct answer a;

	(void)state;
	testing_reset();
	queue_is("bob", "blue"); /* the one queue of the team */
	queue_is("rita", "default"); /* red has two */
	form_change("lena", "PUT", "/api/v1/users/rita", "{\"default_queue\":\"red-low\"}");
	queue_is("rita", "red-low");
	form_change("lena", "PUT", "/api/v1/users/rita", "{}");
	/* A retry is the same request, although the user's queue is another one by then. */
	for (int i = 0; i < 2; i++) {
		a = testing_call("rita", "POST", "/api/v1/jobs", "Idempotency-Key: night\r\n",
				 "{\"command\":[\"true\"]}");
		assert_int_equal(a.status, i ? 200 : 201);
		answer_free(&a);
		form_change("lena", "PUT", "/api/v1/users/rita",
			    i ? "{\"default_queue\":\"red-low\"}" : "{\"default_queue\":\"red\"}");
	}
	a = form_get("vera", "/api/v1/users", "UserList");
	assert_non_null(strstr(a.text, "\"default_queue\":\"red-low\""));
	answer_free(&a);
	form_change("ada", "PUT", "/api/v1/queues/red-low", "{\"team\":\"\"}");
	queue_is("rita", "red"); /* the only one now */
	form_refused("ada", "PUT", "/api/v1/users/bob", "{\"default_queue\":\"bleu\"}", 404,
		     "user \\\"bob\\\": default queue");
	form_refused("rita", "PUT", "/api/v1/users/rita", "{\"default_queue\":\"red\"}", 403,
		     "researcher \\\"rita\\\" may not add or change users; ask");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_ends_after_90_days_unless_something_else_is_said),
		cmocka_unit_test(
			a_job_without_a_queue_goes_to_the_teams_only_one_or_to_the_users_own),
		cmocka_unit_test_setup(the_caller_is_known_by_socket_or_token, fresh),
		cmocka_unit_test_setup(an_unknown_account_is_told_whom_to_ask, fresh),
		cmocka_unit_test_setup(tokens_end_by_revocation_expiry_and_with_their_user, fresh),
		cmocka_unit_test_setup(malformed_tokens_are_refused, fresh),
		cmocka_unit_test_setup(a_new_token_is_shown_once_and_kept_as_a_hash, fresh),
		cmocka_unit_test_setup(a_lead_runs_his_team_and_nothing_above_it, fresh),
		cmocka_unit_test_setup(random_grants_never_make_an_admin_or_an_account, fresh),
		cmocka_unit_test_setup(names_match_whole_and_never_by_prefix, fresh),
		cmocka_unit_test_setup(the_last_admin_stays, fresh),
		cmocka_unit_test_setup(a_removed_users_token_never_lives_again, fresh),
		cmocka_unit_test_setup(an_expired_token_stays_so_when_the_clock_goes_back, fresh),
		cmocka_unit_test_setup(a_re_made_user_owns_nothing_of_the_earlier_one, fresh),
		cmocka_unit_test_setup(a_re_made_teams_lead_has_no_rights_over_earlier_jobs, fresh),
		cmocka_unit_test_setup(nothing_of_a_person_reaches_another_one, fresh),
		cmocka_unit_test_setup(a_removed_users_waiting_and_held_jobs_are_cancelled, fresh),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
