/* SPDX-License-Identifier: Apache-2.0 */
/* The route table, and that the daemon keeps to it: every route, method, role and relation, over the real server. */
#include "api/route.h"

#include <stdlib.h>
#include <string.h>
#include "api/schema.h"
#include "api/testing.h"
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

static const char *const role_user[] = { [ROLE_VIEWER] = "vera",
					 [ROLE_RESEARCHER] = "rita",
					 [ROLE_SERVICE] = "sam",
					 [ROLE_LEAD] = "lena",
					 [ROLE_ADMIN] = "ada" };

/* --- the table ---------------------------------------------------------------------------------------------------------- */

/* What may be done is a promise to the site: a change of the table must be seen in the golden file. */
static void the_permission_matrix_is_the_golden_one(void **state)
{
	struct buf out = BUF_INIT;
	size_t count;
	const struct route *routes = route_table(&count);
	static char golden[65536];
	FILE *file;

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (int relation = 0; relation < RELATION_COUNT; relation++) {
			if (routes[i].least[relation] == ROLE_NONE &&
			    !(routes[i].flags & ROUTE_PUBLIC))
				continue;
			buf_addf(&out, "%s %s %s:", routes[i].method, routes[i].path,
				 relation_name((enum relation)relation));
			for (uint8_t role = ROLE_VIEWER; role <= ROLE_ADMIN; role++)
				if (route_permits(&routes[i], role, (enum relation)relation))
					buf_addf(&out, " %s", role_name(role));
			if (routes[i].flags & ROUTE_PUBLIC)
				buf_adds(&out, " nobody-in-particular");
			buf_addc(&out, '\n');
		}
	file = fopen(GOLDEN_FOLDER "/permissions.txt", "r");
	if (file) {
		golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
		fclose(file);
	}
	if (strcmp(golden, out.data) != 0) {
		file = fopen("permissions.txt", "w");
		if (file) {
			fputs(out.data, file);
			fclose(file);
		}
		fail_msg("the permission matrix differs from " GOLDEN_FOLDER
			 "/permissions.txt; the new one is in ./permissions.txt");
	}
	buf_deinit(&out);
}

static void no_role_may_less_than_the_one_below_it_and_nobody_may_nothing(void **state)
{
	size_t count;
	const struct route *routes = route_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (int relation = 0; relation < RELATION_COUNT; relation++) {
			bool below = false;

			if (routes[i].flags & ROUTE_PUBLIC)
				continue;
			assert_false(route_permits(&routes[i], ROLE_NONE, (enum relation)relation));
			for (uint8_t role = ROLE_VIEWER; role <= ROLE_ADMIN; role++) {
				const bool may =
					route_permits(&routes[i], role, (enum relation)relation);

				assert_true(may || !below);
				below = may;
			}
			assert_false(
				route_permits(&routes[i], ROLE_ADMIN + 1, (enum relation)relation));
			assert_false(route_permits(&routes[i], ROLE_ADMIN, RELATION_COUNT));
			/* Nearer is never less. */
			if (relation > RELATION_OWN && routes[i].least[relation - 1] != ROLE_NONE &&
			    relation - 1 != RELATION_GLOBAL)
				assert_true(routes[i].least[relation - 1] <=
						    routes[i].least[relation] ||
					    routes[i].least[relation] == ROLE_NONE);
		}
}

static void every_schema_that_is_named_is_there(void **state)
{
	size_t route_count, schema_count;
	const struct route *routes = route_table(&route_count);
	const struct schema *schemas = schema_table(&schema_count);

	(void)state;
	for (size_t i = 0; i < route_count; i++) {
		if (*routes[i].body && !strchr(routes[i].body, '/') &&
		    strcmp(routes[i].body, "JobFile") != 0 &&
		    strcmp(routes[i].body, "JobChange") != 0)
			assert_non_null(schema_find(routes[i].body));
		if (routes[i].response[0] >= 'A' && routes[i].response[0] <= 'Z')
			assert_non_null(schema_find(routes[i].response));
	}
	for (size_t i = 0; i < schema_count; i++)
		for (size_t k = 0; k < schemas[i].count; k++) {
			char name[64];
			const char *type = schemas[i].fields[k].type;

			snprintf(name, sizeof name, "%.*s",
				 (int)strcspn(type + (*type == '['), "]?"), type + (*type == '['));
			if (name[0] >= 'A' && name[0] <= 'Z')
				assert_non_null(schema_find(name));
			else
				assert_true(!strcmp(name, "string") || !strcmp(name, "integer") ||
					    !strcmp(name, "number") || !strcmp(name, "boolean") ||
					    !strcmp(name, "object"));
		}
}

static void paths_are_matched_whole_and_by_segment(void **state)
{
	struct route_match m;

	(void)state;
	route_find("GET", "/api/v1/jobs/12/logs/3", &m);
	assert_int_equal(m.route->id, ROUTE_job_logs);
	assert_string_equal(m.param[0], "12");
	assert_string_equal(m.param[1], "3");
	route_find("HEAD", "/api/v1/jobs", &m);
	assert_int_equal(m.route->id, ROUTE_job_list);
	route_find("DELETE", "/api/v1/jobs", &m);
	assert_null(m.route);
	assert_string_equal(m.allow, "GET, POST");
	for (size_t i = 0; i < 6; i++) {
		static const char *const none[] = { "/",
						    "/api",
						    "/api/v1/job",
						    "/api/v1/jobs/1/cancel/x",
						    "/api/v1/jobsx",
						    "/api/v2/jobs" };

		route_find("GET", none[i], &m);
		assert_null(m.route);
		assert_string_equal(m.allow, "");
	}
}

/* --- the daemon keeps to it ------------------------------------------------------------------------------------------------ */

struct world_ids {
	uint32_t own, team, other;
};

/* Path and body of a request of that route about an object of that relation; false: there is no such object. */
static bool request_make(const struct route *route, enum relation relation, uint8_t role,
			 const struct world_ids *ids, char *path, size_t room, const char **body)
{
	static char text[256];
	const char *me = role_user[role];
	const uint32_t job = relation == RELATION_OWN    ? ids->own
			     : relation == RELATION_TEAM ? ids->team
							 : ids->other;
	const char *person = relation == RELATION_OWN    ? me
			     : relation == RELATION_TEAM ? "rob"
							 : "bob";
	const char *rest = strchr(route->path, '}');

	*body = NULL;
	snprintf(path, room, "%s", route->path);
	if (relation == RELATION_GLOBAL)
		return !strchr(route->path, '{') ||
		       !strcmp(route->path + strlen("/api/v1/"), "nodes/{name}/state") ||
		       strstr(route->path, "/nodes/");
	if (relation == RELATION_TEAM && role == ROLE_ADMIN)
		return false; /* the admin of this world has no team */
	if (strstr(route->path, "/jobs/{id}")) {
		snprintf(path, room, "/api/v1/jobs/%u%s", job, rest ? rest + 1 : "");
		if (route->id == ROUTE_job_logs)
			snprintf(path, room, "/api/v1/jobs/%u/logs/0", job);
		*body = route->id == ROUTE_job_priority ? "{\"priority\":-5}" : NULL;
		return true;
	}
	switch ((int)route->id) {
	case ROUTE_job_submit:
		snprintf(text, sizeof text, "command: [\"true\"]\nqueue: %s\n",
			 relation == RELATION_TEAM ? "red" : "blue");
		*body = text;
		return relation != RELATION_OWN;
	case ROUTE_queue_set:
		snprintf(path, room, "/api/v1/queues/%s",
			 relation == RELATION_TEAM ? "red-low" : "blue");
		*body = "{\"weight\":2}";
		return relation != RELATION_OWN;
	case ROUTE_queue_remove:
		snprintf(path, room, "/api/v1/queues/%s",
			 relation == RELATION_TEAM ? "red-low" : "blue");
		return relation != RELATION_OWN;
	case ROUTE_budget_set:
		snprintf(path, room, "/api/v1/queues/%s/budget",
			 relation == RELATION_TEAM ? "red-low" : "blue");
		*body = "{\"left\":\"12.50\"}";
		return relation != RELATION_OWN;
	case ROUTE_user_set:
		snprintf(path, room, "/api/v1/users/%s", person);
		*body = "{}";
		return true;
	case ROUTE_user_remove: snprintf(path, room, "/api/v1/users/%s", person); return true;
	case ROUTE_team_set:
		snprintf(path, room, "/api/v1/teams/%s",
			 relation == RELATION_TEAM ? "red" : "blue");
		*body = "{\"title\":\"New\"}";
		return relation != RELATION_OWN;
	case ROUTE_team_remove:
		snprintf(path, room, "/api/v1/teams/%s",
			 relation == RELATION_TEAM ? "red" : "blue");
		return relation != RELATION_OWN;
	case ROUTE_token_create:
		snprintf(text, sizeof text, "{\"user\":\"%s\"}", person);
		*body = text;
		return true;
	case ROUTE_token_revoke: snprintf(path, room, "/api/v1/tokens/t-%s", person); return true;
	default: return false;
	}
}

static struct world_ids world_make(const char *me)
{
	struct world_ids ids;

	testing_reset();
	ids.own = testing_job(me, strcmp(me, "ada") != 0 ? "red" : "", "default", 1);
	ids.team = testing_job("rob", "red", "default", 1);
	ids.other = testing_job("bob", "blue", "default", 1);
	return ids;
}

static void the_daemon_permits_what_the_table_permits_and_refuses_the_rest(void **state)
{
	size_t count, asked = 0, refused = 0;
	const struct route *routes = route_table(&count);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (int relation = 0; relation < RELATION_COUNT; relation++)
			for (uint8_t role = ROLE_VIEWER; role <= ROLE_ADMIN; role++) {
				const struct world_ids ids = world_make(role_user[role]);
				char path[256], *at;
				const char *body;
				struct answer answer;
				bool may;

				if (!request_make(&routes[i], (enum relation)relation, role, &ids,
						  path, sizeof path, &body))
					continue;
				/* A route without an object has one relation only. */
				if (relation == RELATION_GLOBAL &&
				    routes[i].least[RELATION_GLOBAL] == ROLE_NONE &&
				    !(routes[i].flags & ROUTE_PUBLIC))
					continue;
				at = strstr(path, "{name}");
				if (at) { /* nodes */
					memmove(at + 2, at + 6, strlen(at + 6) + 1);
					memcpy(at, "n0", 2);
					body = strstr(path, "/state")
						       ? "{\"state\":\"cordoned\"}"
						       : "{\"index\":0,\"set_aside\":true}";
				}
				if (routes[i].id == ROUTE_policy_set)
					body = "{\"grace\":\"1m\"}";
				answer = testing_call(role_user[role], routes[i].method, path, NULL,
						      body);
				may = route_permits(&routes[i], role, (enum relation)relation);
				asked++;
				refused += !may;
				if (may ? answer.status == 401 || answer.status == 403 ||
						    answer.status >= 500
					: answer.status != 403)
					fail_msg("%s %s as %s (%s): %s, but %d %s",
						 routes[i].method, path, role_name(role),
						 relation_name((enum relation)relation),
						 may ? "permitted" : "forbidden", answer.status,
						 answer.text);
				answer_free(&answer);
			}
	/* The walk walked. */
	assert_true(asked > 250);
	assert_true(refused > 60);
}

static void nobody_in_particular_gets_only_the_health(void **state)
{
	static const char *const methods[] = { "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD" };
	size_t count;
	const struct route *routes = route_table(&count);

	(void)state;
	testing_reset();
	for (size_t i = 0; i <= count; i++)
		for (size_t m = 0; m < ARRAY_SIZE(methods); m++) {
			const char *path = i < count ? routes[i].path : "/no/such/thing";
			char real[256];
			struct answer answer;
			size_t n = 0;

			/* {id} and {name} as such are no URL: any segment does. */
			for (const char *p = path; *p; p++)
				if (*p == '{') {
					real[n++] = '1';
					p = strchr(p, '}');
				} else {
					real[n++] = *p;
				}
			real[n] = '\0';
			answer = testing_call("", methods[m], real, NULL, NULL);
			if (!strcmp(path, "/healthz") && (m == 0 || m == 5))
				assert_int_equal(answer.status, 200);
			else if (answer.status != 401)
				fail_msg("%s %s without a token: %d %s", methods[m], real,
					 answer.status, answer.text);
			else if (m != 5)
				assert_non_null(strstr(answer.text, "fairlead token create"));
			answer_free(&answer);
		}
}

static void the_openapi_document_is_whole(void **state)
{
	struct answer answer = testing_get("vera", "/api/v1/openapi.json", 200);
	size_t count;
	const struct route *routes = route_table(&count);
	const json_t *paths = json_object_get(answer.json, "paths");
	const json_t *schemas =
		json_object_get(json_object_get(answer.json, "components"), "schemas");
	const char *at = answer.text;

	(void)state;
	assert_string_equal(json_string_value(json_object_get(answer.json, "openapi")), "3.1.0");
	for (size_t i = 0; i < count; i++) {
		char method[16];
		size_t n = 0;
		const json_t *operation;

		for (; routes[i].method[n]; n++)
			method[n] = (char)(routes[i].method[n] | 0x20);
		method[n] = '\0';
		operation = json_object_get(json_object_get(paths, routes[i].path), method);
		assert_string_equal(json_string_value(json_object_get(operation, "operationId")),
				    routes[i].name);
		assert_non_null(
			json_object_get(json_object_get(operation, "responses"), "default"));
	}
	/* Every reference leads somewhere. */
	while ((at = strstr(at, "#/components/schemas/"))) {
		char name[64];

		at += strlen("#/components/schemas/");
		snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\""), at);
		if (!json_object_get(schemas, name))
			fail_msg("no schema %s", name);
	}
	answer_free(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_permission_matrix_is_the_golden_one),
		cmocka_unit_test(no_role_may_less_than_the_one_below_it_and_nobody_may_nothing),
		cmocka_unit_test(every_schema_that_is_named_is_there),
		cmocka_unit_test(paths_are_matched_whole_and_by_segment),
		cmocka_unit_test(the_daemon_permits_what_the_table_permits_and_refuses_the_rest),
		cmocka_unit_test(nobody_in_particular_gets_only_the_health),
		cmocka_unit_test(the_openapi_document_is_whole),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
