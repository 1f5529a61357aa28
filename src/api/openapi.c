/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenAPI 3.1 document, from the two tables. */
#include <string.h>
#include "api/jobfile/jobfile.h"
#include "api/route.h"
#include "api/schema.h"
#include "base/err.h"

static void text_add(struct buf *out, const char *text)
{
	buf_add_json(out, text, strlen(text));
}

/* "string", "integer?", "[Rank]", "Attempt?" ... */
static void type_add(struct buf *out, const char *type)
{
	size_t size = strlen(type);

	if (size && type[size - 1] == '?')
		size--;
	if (size && type[0] == '[') {
		char inner[64];

		snprintf(inner, sizeof inner, "%.*s", (int)size - 2, type + 1);
		buf_adds(out, "\"type\":\"array\",\"items\":{");
		type_add(out, inner);
		buf_addc(out, '}');
	} else if (type[0] >= 'A' && type[0] <= 'Z') {
		buf_addf(out, "\"$ref\":\"#/components/schemas/%.*s\"", (int)size, type);
	} else {
		buf_addf(out, "\"type\":\"%.*s\"", (int)size, type);
	}
}

static void schema_add(struct buf *out, const struct schema *schema)
{
	const char *comma = "";

	text_add(out, schema->name);
	buf_adds(out, ":{\"type\":\"object\",\"description\":");
	text_add(out, schema->doc);
	buf_adds(out, ",\"additionalProperties\":false,\"properties\":{");
	for (size_t i = 0; i < schema->count; i++) {
		if (i)
			buf_addc(out, ',');
		text_add(out, schema->fields[i].name);
		buf_adds(out, ":{");
		type_add(out, schema->fields[i].type);
		buf_adds(out, ",\"description\":");
		text_add(out, schema->fields[i].doc);
		buf_addc(out, '}');
	}
	buf_adds(out, "},\"required\":[");
	for (size_t i = 0; i < schema->count; i++)
		if (!schema_field_optional(&schema->fields[i])) {
			buf_adds(out, comma);
			text_add(out, schema->fields[i].name);
			comma = ",";
		}
	buf_adds(out, "]}");
}

static void parameters_add(struct buf *out, const struct route *route)
{
	static const char *const types[] = { [QUERY_text] = "\"type\":\"string\"",
					     [QUERY_integer] = "\"type\":\"integer\"",
					     [QUERY_flag] =
						     "\"type\":\"string\",\"enum\":[\"0\",\"1\"]",
					     [QUERY_dear] =
						     "\"type\":\"string\",\"enum\":[\"0\",\"1\"]" };
	const char *comma = "";

	buf_adds(out, "\"parameters\":[");
	for (const char *p = strchr(route->path, '{'); p; p = strchr(p + 1, '{')) {
		const int size = (int)strcspn(p + 1, "}");

		buf_addf(
			out,
			"%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":{\"type\":\"string\"}}",
			comma, size, p + 1);
		comma = ",";
	}
	for (size_t i = 0; i < route->query_count; i++) {
		buf_addf(out, "%s{\"name\":\"%s\",\"in\":\"query\",\"description\":", comma,
			 route->query[i].name);
		text_add(out, route->query[i].doc);
		buf_addf(out, ",\"schema\":{%s}}", types[route->query[i].type]);
		comma = ",";
	}
	if (route->id == ROUTE_job_submit)
		buf_addf(
			out,
			"%s{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":\"the same key of the same user gives the same job\","
			"\"schema\":{\"type\":\"string\",\"maxLength\":255}},"
			"{\"name\":\"X-Fairlead-File\",\"in\":\"header\",\"description\":\"name of the file, for messages\","
			"\"schema\":{\"type\":\"string\"}}",
			comma);
	buf_adds(out, "],");
}

static void response_add(struct buf *out, const struct route *route)
{
	const bool made = route->id == ROUTE_job_submit || route->id == ROUTE_token_create;

	buf_addf(out, "\"responses\":{\"%s\":{\"description\":\"done\",\"content\":{",
		 made ? "201" : "200");
	if (strchr(route->response, '/'))
		buf_addf(out, "\"%s\":{\"schema\":{\"type\":\"string\"}}", route->response);
	else {
		buf_adds(out, "\"application/json\":{\"schema\":{");
		type_add(out, route->response);
		buf_adds(out, "}}");
	}
	if (route->id == ROUTE_event_list)
		buf_adds(out, ",\"text/event-stream\":{\"schema\":{\"type\":\"string\"}}");
	buf_adds(out, "}}");
	if (route->id == ROUTE_job_submit)
		buf_adds(
			out,
			",\"200\":{\"description\":\"a dry run, or a job submitted before with the same key\",\"content\":"
			"{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Submitted\"}}}}");
	if (route->id == ROUTE_healthz)
		buf_adds(
			out,
			",\"503\":{\"description\":\"it takes no work\",\"content\":"
			"{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/Health\"}}}}");
	buf_adds(out, ",\"default\":{\"$ref\":\"#/components/responses/Error\"}}");
}

/* Bytes as they are. Clients that are generated send bytes as application/octet-stream only, and the daemon takes that for text too. */
static void bytes_body_add(struct buf *out, const char *media_type)
{
	buf_adds(out, "\"requestBody\":{\"required\":true,\"content\":{");
	if (!strncmp(media_type, "text/", 5))
		buf_addf(out, "\"%s\":{\"schema\":{\"type\":\"string\"}},", media_type);
	buf_adds(
		out,
		"\"application/octet-stream\":{\"schema\":{\"type\":\"string\",\"format\":\"binary\"}}}},");
}

/* The noun of its path, "jobs": generated clients have a folder for each. */
static void tag_add(struct buf *out, const char *path)
{
	static const char base[] = "/api/v1/";

	path += !strncmp(path, base, sizeof(base) - 1) ? sizeof(base) - 1 : 1;
	buf_addf(out, "\"tags\":[\"%.*s\"],", (int)strcspn(path, "/."), path);
}

static void operation_add(struct buf *out, const struct route *route)
{
	char method[16];
	size_t size = 0;

	for (; route->method[size]; size++)
		method[size] = (char)(route->method[size] | 0x20);
	method[size] = '\0';
	buf_addf(out, "\"%s\":{\"operationId\":\"%s\",\"summary\":", method, route->name);
	text_add(out, route->summary);
	buf_addc(out, ',');
	tag_add(out, route->path);
	buf_adds(out, "\"x-least-role\":{");
	for (int relation = 0, n = 0; relation < RELATION_COUNT; relation++)
		if (route->least[relation] != ROLE_NONE)
			buf_addf(out, "%s\"%s\":\"%s\"", n++ ? "," : "",
				 relation_name((enum relation)relation),
				 role_name(route->least[relation]));
	buf_adds(out, "},");
	if (route->flags & ROUTE_PUBLIC)
		buf_adds(out, "\"security\":[],");
	parameters_add(out, route);
	if (!strcmp(route->body, "JobFile") || !strcmp(route->body, "JobChange"))
		buf_addf(
			out,
			"\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}},"
			"\"application/yaml\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}},",
			route->body, route->body);
	else if (strchr(route->body, '/'))
		bytes_body_add(out, route->body);
	else if (*route->body)
		buf_addf(
			out,
			"\"requestBody\":{\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/%s\"}}}},",
			route->body);
	response_add(out, route);
	buf_addc(out, '}');
}

/* Routes of one path stand together in the document, wherever they stand in the table. */
static bool path_seen_before(const struct route *routes, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(routes[i].path, routes[index].path))
			return true;
	return false;
}

void openapi_document(struct buf *out)
{
	size_t route_count, schema_count;
	const struct route *routes = route_table(&route_count);
	const struct schema *schemas = schema_table(&schema_count);

	buf_adds(
		out,
		"{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Fairlead\",\"version\":\"" FAIRLEAD_VERSION
		"\","
		"\"description\":\"Shares GPUs between teams.\",\"license\":{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}},"
		"\"servers\":[{\"url\":\"/\"}],\"security\":[{\"token\":[]}],\"paths\":{");
	for (size_t i = 0; i < route_count; i++) {
		bool more = false;

		if (path_seen_before(routes, i))
			continue;
		buf_addf(out, "%s\"%s\":{", i ? "," : "", routes[i].path);
		for (size_t k = i; k < route_count; k++)
			if (!strcmp(routes[k].path, routes[i].path)) {
				if (more)
					buf_addc(out, ',');
				operation_add(out, &routes[k]);
				more = true;
			}
		buf_addc(out, '}');
	}
	buf_adds(
		out,
		"},\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":"
		"\"A token over TCP; over the Unix socket the kernel says who is calling.\"}},\"responses\":{\"Error\":{\"description\":"
		"\"what went wrong\",\"content\":{\"application/json\":{\"schema\":{\"$ref\":\"#/components/schemas/ErrorReply\"}}}}},\"schemas\":{");
	for (size_t i = 0; i < schema_count; i++) {
		schema_add(out, &schemas[i]);
		buf_addc(out, ',');
	}
	buf_adds(out, "\"JobFile\":");
	jobfile_schema(out);
	buf_adds(out, ",\"JobChange\":");
	jobfile_change_schema(out);
	buf_adds(out, "}}}\n");
}
