/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The route table: what the daemon answers, and who may ask (routes.def). Refused by default: what is not in the table
 * does not exist, and a rule that is not written allows nobody.
 *
 * Whether a caller may depends on his role and on the relation of the object to him. A route without an object (lists,
 * status) has the relation RELATION_GLOBAL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/model/facts.h"

enum relation { RELATION_GLOBAL, RELATION_OWN, RELATION_TEAM, RELATION_OTHER, RELATION_COUNT };

enum route_id {
#define ROUTE(id, method, path, summary, deed, least, flags, body, response) ROUTE_##id,
#define QUERY(name, type, doc)
#define END
#include "api/routes.def"
#undef ROUTE
#undef QUERY
#undef END
	ROUTE_COUNT
};

enum { ROUTE_PUBLIC = 1, ROUTE_WORKER = 2, ROUTE_STREAM = 4, ROUTE_EXPENSIVE = 8 };
enum { ROUTE_QUERIES_MAX = 20, ROUTE_PARAMS_MAX = 2 };

/* dear: a flag; 1 makes the request one of the expensive ones */
enum query_type { QUERY_text, QUERY_integer, QUERY_flag, QUERY_dear };
struct route_query {
	const char *name;
	enum query_type type;
	const char *doc;
};

struct route {
	enum route_id id;
	const char *name; /* "job_list": also its operationId */
	const char *method;
	const char *path; /* "/api/v1/jobs/{id}" */
	const char *summary;
	const char *deed; /* "cancel jobs": what who is refused may not do */
	uint8_t least[RELATION_COUNT]; /* enum role; ROLE_NONE = nobody */
	uint8_t flags;
	const char *body; /* name of its schema, or a media type; "" = takes none */
	const char *response; /* name of a schema, "object" or a media type */
	struct route_query query[ROUTE_QUERIES_MAX];
	size_t query_count;
};

const struct route *route_table(size_t *ret_count);
const struct route *route_get(enum route_id id);
/* Finds the route; NULL if there is none. params: values of {..} in order, pointing into copies in `room`. A path that is
 * there with other methods leaves them in *ret_allow ("GET, PUT"), else it is "". HEAD finds what GET finds. */
struct route_match {
	const struct route *route;
	char allow[64];
	size_t param_count;
	char param[ROUTE_PARAMS_MAX][256]; /* names of pods have 253 characters */
};
void route_find(const char *method, const char *path, struct route_match *ret);
bool route_permits(const struct route *route, uint8_t role, enum relation relation);
const char *relation_name(enum relation relation); /* "own" */
