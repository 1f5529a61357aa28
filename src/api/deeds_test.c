/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one user may do to another: who may raise, preempt, cancel, hold, release whose job, over the real server. What a route permits comes
 * from its table, how far a priority goes from the roles; a route that changes jobs and has no row here fails the test.
 *
 * Jobs of red lie in queue red, that of blue in queue blue; rita is of red.
 */
#include "api/route.h"

#include <string.h>
#include "api/testing.h"
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

enum { PRIORITIES = 4 };
static const int64_t priorities[PRIORITIES] = { -5, 50, 101, 1000 };

/* Of one who may touch the job at all: the highest priority that the role may give it in that queue. */
static int64_t priority_most(uint8_t role, bool own_queue)
{
	return role == ROLE_ADMIN ? 1000 : role == ROLE_LEAD && own_queue ? 100 : 0;
}

static const struct {
	const char *user, *team;
	uint8_t role;
} callers[] = {
	{ "vera", "red", ROLE_VIEWER }, { "rita", "red", ROLE_RESEARCHER },
	{ "sam", "red", ROLE_SERVICE }, { "lena", "red", ROLE_LEAD },
	{ "lars", "blue", ROLE_LEAD },  { "bob", "blue", ROLE_RESEARCHER },
	{ "ada", "", ROLE_ADMIN },
};

/* Whose: the caller's own, one of the team's, one of others. */
static const struct {
	const char *user, *team;
} owners[] = { { NULL, NULL }, { "rob", "red" }, { "bob", "blue" } };

static enum relation relation_to(size_t caller, const char *user, const char *team)
{
	if (strcmp(user, callers[caller].user) == 0)
		return RELATION_OWN;
	return strcmp(team, callers[caller].team) == 0 ? RELATION_TEAM : RELATION_OTHER;
}

static const char *queue_of(const char *team)
{
	return *team ? team : "default";
}

/* The jobs of one walk: all run but those that were held. */
static uint32_t job_made(size_t caller, size_t owner, const char **ret_user, const char **ret_team)
{
	*ret_user = owner ? owners[owner].user : callers[caller].user;
	*ret_team = owner ? owners[owner].team : callers[caller].team;
	return testing_job(*ret_user, *ret_team, queue_of(*ret_team), 1);
}

static void asked(size_t caller, const struct route *route, uint32_t job, const char *body,
		  bool may, const char *what)
{
	struct answer answer;
	char path[64];

	snprintf(path, sizeof path, "/api/v1/jobs/%u%s", job, strchr(route->path, '}') + 1);
	answer = testing_call(callers[caller].user, route->method, path, NULL, body);
	if ((answer.status == 403) == may || answer.status >= 500 || answer.status == 401)
		fail_msg("%s as %s of a job of %s: %d %s", route->name, callers[caller].user, what,
			 answer.status, answer.text);
	/* In a refusal stands who has the right: by name, or as the owner or lead. */
	if (!may && !strstr(answer.text, "ask "))
		fail_msg("%s as %s: who may? %s", route->name, callers[caller].user, answer.text);
	answer_free(&answer);
}

static void raised(size_t caller, size_t owner)
{
	const struct route *route = route_get(ROUTE_job_priority);

	for (int i = 0; i < PRIORITIES; i++) {
		const char *user, *team;
		const uint32_t job = job_made(caller, owner, &user, &team);
		const bool own_queue = *team && strcmp(team, callers[caller].team) == 0;
		char body[64];

		snprintf(body, sizeof body, "{\"priority\":%lld}", (long long)priorities[i]);
		asked(caller, route, job, body,
		      route_permits(route, callers[caller].role, relation_to(caller, user, team)) &&
			      (priorities[i] <= 0 ||
			       priorities[i] <= priority_most(callers[caller].role, own_queue)),
		      user);
	}
}

/* The limit of a running job: a user with permission for the job shortens it, and extends it to the queue's limit (24 hours). A lead of the
 * queue or an admin extends it further. A lead touches any job of a queue that the lead leads. */
static void extended(size_t caller, size_t owner)
{
	static const int hours[] = { 1, 24, 25 };
	const struct route *route = route_get(ROUTE_job_change);

	for (size_t i = 0; i < ARRAY_SIZE(hours); i++) {
		const char *user, *team;
		const uint8_t role = callers[caller].role;
		char body[64];
		uint32_t job;
		bool leads;

		testing_reset(); /* there is room, so that it starts */
		job = job_made(caller, owner, &user, &team);
		leads = role == ROLE_ADMIN ||
			(role == ROLE_LEAD && *team && strcmp(team, callers[caller].team) == 0);
		testing_decide();
		snprintf(body, sizeof body, "{\"limit\":\"2h\"}");
		asked(caller, route, job, body,
		      route_permits(route, role, relation_to(caller, user, team)), user);
		snprintf(body, sizeof body, "{\"limit\":\"%dh\"}", hours[i]);
		asked(caller, route, job, body,
		      route_permits(route, role, relation_to(caller, user, team)) &&
			      (hours[i] <= 24 || leads),
		      user);
	}
}

static void touched(size_t caller, size_t owner, const struct route *route)
{
	const char *user, *team;
	const uint32_t job = job_made(caller, owner, &user, &team);

	if (route->id == ROUTE_job_priority)
		raised(caller, owner);
	else if (route->id == ROUTE_job_change)
		extended(caller, owner);
	else
		asked(caller, route, job, "{}",
		      route_permits(route, callers[caller].role, relation_to(caller, user, team)),
		      user);
}

static void who_may_raise_cancel_hold_and_release_whose_job(void **state)
{
	static const enum route_id known[] = { ROUTE_job_cancel, ROUTE_job_hold, ROUTE_job_release,
					       ROUTE_job_priority, ROUTE_job_change };
	size_t count, walked = 0;
	const struct route *routes = route_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		bool is_known = false;

		if (strcmp(routes[i].method, "GET") == 0 || !strstr(routes[i].path, "/jobs/{id}"))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(known); k++)
			is_known = is_known || known[k] == routes[i].id;
		if (!is_known)
			fail_msg("%s changes jobs: say here who may", routes[i].name);
		testing_reset();
		for (size_t c = 0; c < ARRAY_SIZE(callers); c++)
			for (size_t o = 0; o < ARRAY_SIZE(owners); o++)
				touched(c, o, &routes[i]);
		walked++;
	}
	assert_int_equal(walked, ARRAY_SIZE(known));
}

/* One request for many jobs does to each what its own route would. */
static void what_one_may_not_do_to_a_job_is_not_done_among_others(void **state)
{
	static const struct {
		const char *action;
		enum route_id route;
	} actions[] = { { "cancel", ROUTE_job_cancel },
			{ "hold", ROUTE_job_hold },
			{ "release", ROUTE_job_release } };

	(void)state;
	testing_reset();
	for (size_t c = 0; c < ARRAY_SIZE(callers); c++)
		for (size_t o = 0; o < ARRAY_SIZE(owners); o++)
			for (size_t a = 0; a < ARRAY_SIZE(actions); a++) {
				const char *user, *team;
				const uint32_t job = job_made(c, o, &user, &team);
				const bool may =
					route_permits(route_get(actions[a].route), callers[c].role,
						      relation_to(c, user, team));
				struct answer answer;
				char body[96];

				snprintf(body, sizeof body, "{\"action\":\"%s\",\"jobs\":\"%u\"}",
					 actions[a].action, job);
				answer = testing_call(callers[c].user, "POST",
						      "/api/v1/job-actions", NULL, body);
				if ((answer.status == 403) == may || answer.status >= 500)
					fail_msg("%s as %s of %s: %d %s", body, callers[c].user,
						 user, answer.status, answer.text);
				answer_free(&answer);
			}
}

/* Preemption is asked for by the priority or the tier of what is submitted. */
static void who_may_submit_what_stops_jobs_of_others(void **state)
{
	const struct route *route = route_get(ROUTE_job_submit);

	(void)state;
	testing_reset();
	for (size_t c = 0; c < ARRAY_SIZE(callers); c++) {
		const char *queue = queue_of(callers[c].team);
		const bool may_at_all = route_permits(route, callers[c].role, RELATION_TEAM),
			   own = *callers[c].team;

		for (int i = 0; i <= PRIORITIES; i++) {
			const bool critical = i == PRIORITIES;
			const bool may =
				may_at_all &&
				(critical ? callers[c].role >= ROLE_LEAD
					  : priorities[i] <= 0 ||
						    priorities[i] <=
							    priority_most(callers[c].role, own));
			struct answer answer;
			char body[160];

			snprintf(
				body, sizeof body,
				"{\"command\":[\"true\"],\"queue\":\"%s\",\"tier\":\"%s\",\"priority\":%lld}",
				queue, critical ? "critical" : "standard",
				critical ? 0 : (long long)priorities[i]);
			answer = testing_call(callers[c].user, "POST", "/api/v1/jobs", NULL, body);
			if ((answer.status == 201) != may || (!may && answer.status != 403))
				fail_msg("%s as %s: %d %s", body, callers[c].user, answer.status,
					 answer.text);
			answer_free(&answer);
			/* A plan and a dry run refuse what a submission does. */
			answer = testing_call(callers[c].user, "POST", "/api/v1/plan", NULL, body);
			if ((answer.status == 200) != may)
				fail_msg("plan %s as %s: %d %s", body, callers[c].user,
					 answer.status, answer.text);
			answer_free(&answer);
		}
	}
}

static void a_lead_sets_what_the_own_queue_admits(void **state)
{
	struct answer a;

	(void)state;
	testing_reset();
	form_change("lena", "PUT", "/api/v1/queues/red",
		    "{\"tiers\":\"critical,standard\",\"max_priority\":20,\"user_limit_gpus\":2,"
		    "\"user_limit_percent\":50,\"user_waiting\":7}");
	a = form_get("rita", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"tiers\":\"critical,standard\",\"max_priority\":20,"
				       "\"user_limit_gpus\":2,\"user_limit_percent\":50,"
				       "\"user_waiting\":7"));
	answer_free(&a);
	/* What is not given stays; what is stated can be taken back. */
	form_change("lena", "PUT", "/api/v1/queues/red", "{\"max_priority\":0}");
	a = form_get("rita", "/api/v1/queues", "QueueList");
	assert_non_null(strstr(a.text, "\"tiers\":\"critical,standard\",\"max_priority\":0,"));
	answer_free(&a);
	form_change("lena", "PUT", "/api/v1/queues/red",
		    "{\"tiers\":\"default\",\"max_priority\":\"none\",\"user_limit_gpus\":\"none\","
		    "\"user_limit_percent\":\"none\",\"user_waiting\":\"none\"}");
	a = form_get("rita", "/api/v1/queues", "QueueList");
	assert_null(strstr(a.text, "tiers"));
	assert_null(strstr(a.text, "max_priority"));
	assert_null(strstr(a.text, "user_"));
	answer_free(&a);
	form_refused("lena", "PUT", "/api/v1/queues/red", "{\"tiers\":\"critcal\"}", 400,
		     "tiers: there is no tier \\\"critcal\\\"; did you mean \\\"critical\\\"?");
	form_refused("lena", "PUT", "/api/v1/queues/red", "{\"tiers\":\"\"}", 400,
		     "name some of critical, standard, best-effort, or default");
	form_refused("lena", "PUT", "/api/v1/queues/red", "{\"user_limit_gpus\":0}", 400,
		     "0 would keep every user from running jobs");
	form_refused("lena", "PUT", "/api/v1/queues/red", "{\"user_limit_percent\":101}", 400,
		     "user_limit_percent");
	form_refused(
		"lena", "PUT", "/api/v1/queues/red", "{\"max_priority\":500}", 403,
		"queue \\\"red\\\": lead \\\"lena\\\" may not admit priorities above 100; ask admin");
	form_refused("lena", "PUT", "/api/v1/queues/red", "{\"weight\":9}", 403,
		     "lead \\\"lena\\\" may not change its weight");
	form_refused("rita", "PUT", "/api/v1/queues/red", "{\"tiers\":\"critical\"}", 403,
		     "researcher \\\"rita\\\" may not make or change queues");
	form_refused(
		"lars", "PUT", "/api/v1/queues/red", "{\"tiers\":\"critical\"}", 403,
		"queue \\\"red\\\": lead \\\"lars\\\" may not make or change queues of others; "
		"ask a lead of its team or admin \\\"root\\\"");
}

static void each_route_that_refuses_a_role_says_what_was_refused(void **state)
{
	size_t count;
	const struct route *routes = route_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (int relation = 0; relation < RELATION_COUNT; relation++)
			if (routes[i].least[relation] > ROLE_VIEWER && !*routes[i].deed)
				fail_msg("%s has no deed", routes[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_raise_cancel_hold_and_release_whose_job),
		cmocka_unit_test(what_one_may_not_do_to_a_job_is_not_done_among_others),
		cmocka_unit_test(who_may_submit_what_stops_jobs_of_others),
		cmocka_unit_test(a_lead_sets_what_the_own_queue_admits),
		cmocka_unit_test(each_route_that_refuses_a_role_says_what_was_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
