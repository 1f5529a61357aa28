/* SPDX-License-Identifier: Apache-2.0 */
#include "api/route.h"

#include <string.h>
#include "base/check.h"

#define PUBLIC ROUTE_PUBLIC
#define WORKER ROUTE_WORKER
#define STREAM ROUTE_STREAM
#define EXPENSIVE (ROUTE_WORKER | ROUTE_EXPENSIVE)
/* LEAST expands to four arguments, so that a second expansion sees them one by one. */
#define LEAST(global, own, team, other) ROLE_##global, ROLE_##own, ROLE_##team, ROLE_##other
#define ROUTE(...) ROUTE_FILL(__VA_ARGS__)
#define ROUTE_FILL(id_, method_, path_, summary_, deed_, global_, own_, team_, other_, flags_,     \
		   body_, response_)                                                               \
	{                                                                                          \
		.id = ROUTE_##id_, .name = #id_, .method = #method_, .path = path_,                \
		.summary = summary_, .deed = deed_, .least = { global_, own_, team_, other_ },     \
		.flags = flags_, .body = body_, .response = response_, .query = {
#define QUERY(name_, type_, doc_) { name_, QUERY_##type_, doc_ },
/* clang-format off */
#define END { NULL, 0, NULL } } },
/* clang-format on */

static struct route table[ROUTE_COUNT] = {
#include "api/routes.def"
};
#undef ROUTE
#undef QUERY
#undef END

__attribute__((constructor)) static void table_finish(void)
{
	for (size_t i = 0; i < ROUTE_COUNT; i++)
		while (table[i].query_count < ROUTE_QUERIES_MAX &&
		       table[i].query[table[i].query_count].name)
			table[i].query_count++;
}

const struct route *route_table(size_t *ret_count)
{
	*ret_count = ROUTE_COUNT;
	return table;
}

const struct route *route_get(enum route_id id)
{
	CHECK((unsigned int)id < ROUTE_COUNT);
	return &table[id];
}

/* Segment by segment; a {..} takes any one segment that fits. */
static bool path_matches(const char *pattern, const char *path, struct route_match *match)
{
	match->param_count = 0;
	while (*pattern || *path) {
		size_t pattern_size, path_size;

		if (*pattern++ != '/' || *path++ != '/')
			return false;
		pattern_size = strcspn(pattern, "/");
		path_size = strcspn(path, "/");
		if (pattern_size && pattern[0] == '{') {
			if (!path_size || path_size >= sizeof match->param[0])
				return false;
			CHECK(match->param_count < ROUTE_PARAMS_MAX);
			memcpy(match->param[match->param_count], path, path_size);
			match->param[match->param_count++][path_size] = '\0';
		} else if (pattern_size != path_size || memcmp(pattern, path, path_size) != 0) {
			return false;
		}
		pattern += pattern_size;
		path += path_size;
	}
	return true;
}

void route_find(const char *method, const char *path, struct route_match *ret)
{
	size_t used = 0;

	memset(ret, 0, sizeof *ret);
	if (!strcmp(method, "HEAD"))
		method = "GET";
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		if (!path_matches(table[i].path, path, ret))
			continue;
		if (!strcmp(table[i].method, method)) {
			ret->route = &table[i];
			return;
		}
		used += (size_t)snprintf(ret->allow + used, sizeof ret->allow - used, "%s%s",
					 used ? ", " : "", table[i].method);
		CHECK(used < sizeof ret->allow);
	}
}

bool route_permits(const struct route *route, uint8_t role, enum relation relation)
{
	if (route->flags & ROUTE_PUBLIC)
		return true;
	if ((unsigned int)relation >= RELATION_COUNT || route->least[relation] == ROLE_NONE)
		return false;
	return role >= route->least[relation] && role <= ROLE_ADMIN;
}

const char *relation_name(enum relation relation)
{
	static const char *const names[RELATION_COUNT] = { "global", "own", "team", "other" };

	CHECK((unsigned int)relation < RELATION_COUNT);
	return names[relation];
}
