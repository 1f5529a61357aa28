/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes docs/api.md from the route table and the schemas.
 *
 *	api_docs			to standard output
 *	api_docs --openapi		the OpenAPI document instead, as the daemon serves it
 *	api_docs FILE			is FILE that text? exit status 1 when not (a test asks that)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "api/route.h"
#include "api/schema.h"
#include "base/buf.h"
#include "base/check.h"

static const char head[] =
	"<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
	"<!-- Made from src/api/routes.def and src/api/schemas.def: ninja -C build src/api/api_docs && build/src/api/api_docs > docs/api.md -->\n"
	"# The HTTP API\n\n"
	"On the daemon's own machine, over its Unix socket; the kernel says who is calling:\n\n"
	"    curl --unix-socket DATA/fairlead.sock http://localhost/api/v1/jobs\n\n"
	"Over TCP (`fairlead up --listen 127.0.0.1:7070`), with a token of `fairlead token create`:\n\n"
	"    curl -H \"Authorization: Bearer $FAIRLEAD_TOKEN\" http://127.0.0.1:7070/api/v1/jobs\n\n"
	"Submit a job; with the same `Idempotency-Key` a second try gives the same job:\n\n"
	"    curl --unix-socket DATA/fairlead.sock -H 'Content-Type: application/yaml' -H 'Idempotency-Key: night-run-12' \\\n"
	"         --data-binary @train.yaml http://localhost/api/v1/jobs\n\n"
	"Listen to events; `id` of the last one seen, as `Last-Event-ID` or `?after=`, goes on from there. An event `resync` says that\n"
	"this client was too slow and some were left out: read the lists again.\n\n"
	"    curl --unix-socket DATA/fairlead.sock -N -H 'Accept: text/event-stream' 'http://localhost/api/v1/events?after=0'\n\n"
	"The same as a machine reads it is served at `/api/v1/openapi.json` (OpenAPI 3.1). `openapi-python-client` makes a Python client of it that has every\n"
	"route and every object. `python3 -m pip install openapi-python-client==0.29.1` installs the release that the tests run:\n\n"
	"    curl --unix-socket DATA/fairlead.sock http://localhost/api/v1/openapi.json > openapi.json\n"
	"    openapi-python-client generate --path openapi.json --meta none --output-path fairlead_client\n\n"
	"It warns about two media types, YAML job files and snapshot lists as text; both routes also take JSON or bytes. A submission, over TCP with a token:\n\n"
	"    from fairlead_client import AuthenticatedClient, models\n"
	"    from fairlead_client.api.jobs import job_submit\n"
	"    client = AuthenticatedClient(base_url=\"http://127.0.0.1:7070\", token=TOKEN)\n"
	"    print(job_submit.sync(client=client, body=models.JobFile(command=\"nvidia-smi\", gpus=1)).id)\n\n"
	"The functions wait for the end of an answer. For a stream, hand the request of the function to httpx: `client.get_httpx_client().stream(**job_logs._get_kwargs(\"7\", \"0\",\n"
	"follow=models.JobLogsFollow.VALUE_1))`, and for events add the header `Accept: text/event-stream`.\n\n"
	"## Logs\n\n"
	"`GET /api/v1/jobs/{id}/logs/{rank}?stream=both` returns what the rank printed to stdout and stderr in the order of the writes (lines written to both within the same moment may change places). With `frames=1`\n"
	"each piece has a line in front of it: its stream, the offset of its first byte in that stream, and the number of bytes that follow. A line with `-gap`\n"
	"has no bytes after it: that number of bytes before the offset was not kept. A client that lost its connection continues with `offset` and `stderr_offset`:\n\n"
	"    stdout 0 6\n"
	"    hello\n"
	"    stderr 0 8\n"
	"    warning\n"
	"    stdout-gap 4096 4090\n\n"
	"The order is that in which the writes reached Fairlead. Writes of several lines to both streams within the same moment may change places.\n\n"
	"## Rules\n\n"
	"- Answers are JSON, with ids as numbers and times in ms since 1970 (`_ms`). Fields are added in later releases, never renamed.\n"
	"- Bodies are JSON or YAML. A field or `?name=` that is not known is refused.\n"
	"- An answer to a change comes when the change is durable, also through power loss. `already` says that it was so before.\n"
	"- Errors are `{\"error\": {\"code\", \"message\", \"file\", \"line\", \"column\"}}`; the codes and their HTTP status are below.\n"
	"- Requests are HTTP/1.1, read strictly (src/api/README.md): a head of 16 KiB, a body of 8 MiB, 30 s for a whole request.\n"
	"- Two expensive requests of a user are worked on at a time, beside everybody else's. Others of his wait for their turn, 100 at most; beyond that one that does not\n"
	"  begin a stream is answered with 429 and `Retry-After` (seconds). What is expensive says so below; a past job is expensive on each of its paths.\n"
	"- `Host` must name this machine's loopback. A request that changes something and comes from a web page of another origin is refused.\n"
	"- Who may: the least role, by whose the object is. `viewer` < `researcher`, `service` < `lead` < `admin`. Own: the caller's;\n"
	"  team: of the caller's team; other: everybody else's. For submissions the queue counts: team = a queue of the caller's team or of nobody.\n\n";

static void permission_add(struct buf *out, const struct route *route)
{
	static const char *const words[RELATION_COUNT] = { "", "own: ", "team: ", "other: " };
	int count = 0;

	if (route->flags & ROUTE_PUBLIC)
		buf_adds(out, "everybody, without authentication");
	for (int relation = 0; relation < RELATION_COUNT && !(route->flags & ROUTE_PUBLIC);
	     relation++)
		if (route->least[relation] != ROLE_NONE)
			buf_addf(out, "%s%s%s", count++ ? ", " : "", words[relation],
				 role_name(route->least[relation]));
}

static void route_add(struct buf *out, const struct route *route)
{
	buf_addf(out, "### %s %s\n\n%s.\n\nWho may: ", route->method, route->path, route->summary);
	permission_add(out, route);
	buf_adds(out, route->flags & ROUTE_EXPENSIVE ? ". [Expensive](#rules).\n" : ".\n");
	if (*route->body && schema_find(route->body))
		buf_addf(out, "Body: [%s](#%s).\n", route->body, route->body);
	else if (*route->body)
		buf_addf(out, "Body: a [job file](job-file.md).\n");
	if (schema_find(route->response))
		buf_addf(out, "Answer: [%s](#%s).\n", route->response, route->response);
	else
		buf_addf(out, "Answer: %s.\n", route->response);
	if (route->query_count) {
		buf_adds(out, "\n| query | type | |\n|---|---|---|\n");
		for (size_t i = 0; i < route->query_count; i++) {
			static const char *const types[] = { [QUERY_text] = "text",
							     [QUERY_integer] = "integer",
							     [QUERY_flag] = "0 or 1",
							     [QUERY_dear] =
								     "0 or 1; 1: expensive" };

			buf_addf(out, "| `%s` | %s | %s |\n", route->query[i].name,
				 types[route->query[i].type], route->query[i].doc);
		}
	}
	buf_addc(out, '\n');
}

static void schema_add(struct buf *out, const struct schema *schema)
{
	buf_addf(out, "### <a id=\"%s\"></a>%s\n\n%s.\n\n", schema->name, schema->name,
		 schema->doc);
	if (!schema->count)
		return;
	buf_adds(out, "| field | type | |\n|---|---|---|\n");
	for (size_t i = 0; i < schema->count; i++) {
		const struct schema_field *f = &schema->fields[i];
		const bool list = f->type[0] == '[';

		buf_addf(out, "| `%s` | %s%.*s%s | %s |\n", f->name, list ? "list of " : "",
			 (int)strcspn(f->type + list, "]?"), f->type + list,
			 schema_field_optional(f) ? ", may be missing" : "", f->doc);
	}
	buf_addc(out, '\n');
}

static void page_make(struct buf *out)
{
	size_t route_count, schema_count;
	const struct route *routes = route_table(&route_count);
	const struct schema *schemas = schema_table(&schema_count);

	buf_adds(out, head);
	buf_adds(out, "## Routes\n\n");
	for (size_t i = 0; i < route_count; i++)
		route_add(out, &routes[i]);
	buf_adds(out, "## Forms\n\n");
	for (size_t i = 0; i < schema_count; i++)
		schema_add(out, &schemas[i]);
	buf_adds(out, "## Errors\n\n| code | status | |\n|---|---|---|\n");
	for (int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++)
		buf_addf(out, "| `%s` | %d | %s |\n", err_code_name((enum err_code)code),
			 err_code_http((enum err_code)code), err_code_text((enum err_code)code));
	buf_adds(
		out,
		"\nA method that a path does not have is answered with 405, a request that is not HTTP/1.1 with 505, "
		"one that came in too slowly with 408, and one too many that is expensive with 429.\n");
}

int main(int argc, char **argv)
{
	struct buf page = BUF_INIT;
	FILE *file;
	char *have;
	size_t size;
	int result;

	if (argc == 2 && !strcmp(argv[1], "--openapi")) {
		openapi_document(&page);
		argc = 1;
	} else {
		page_make(&page);
	}
	if (argc < 2) {
		fwrite(page.data, 1, page.size, stdout);
		buf_deinit(&page);
		return 0;
	}
	file = fopen(argv[1], "r");
	have = calloc(1, page.size + 2);
	CHECK(have);
	size = file ? fread(have, 1, page.size + 1, file) : 0;
	result = size == page.size && !memcmp(have, page.data, size) ? 0 : 1;
	if (result)
		fprintf(stderr, "%s is not what the route table says: api_docs > %s\n", argv[1],
			argv[1]);
	if (file)
		fclose(file);
	free(have);
	buf_deinit(&page);
	return result;
}
