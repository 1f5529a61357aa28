/* SPDX-License-Identifier: Apache-2.0 */
/* Small bodies: read as YAML or JSON alike, checked against the route's schema, with line and column in every complaint. */
#include <string.h>
#include "api/call.h"
#include "api/schema.h"
#include "base/check.h"
#include "base/moment.h"
#include "base/parse.h"

enum { BODY_SMALL_MAX = 64 << 10 };

static const struct conf empty_map = { .type = CONF_MAP };

int call_body(struct call *call, const struct conf **ret, struct err *err)
{
	const struct schema *schema = schema_find(call->route->body);
	const char *known[SCHEMA_FIELDS_MAX];
	struct conf **documents;
	size_t size, count;
	const char *text = http_body(call->request, &size);

	CHECK(schema);
	if (size > BODY_SMALL_MAX)
		return err_set(err, ERR_TOO_LARGE, "the request body is larger than %d bytes",
			       BODY_SMALL_MAX);
	if (conf_parse(body_file, text, size, call->arena, &documents, &count, err) < 0)
		return -(int)ERR_INVALID;
	if (!count || (count == 1 && documents[0]->type == CONF_NULL)) {
		*ret = &empty_map;
		return 0;
	}
	if (count > 1 || documents[0]->type != CONF_MAP)
		return err_set(err, ERR_INVALID,
			       "the request body is not one object with named fields");
	for (size_t i = 0; i < schema->count; i++)
		known[i] = schema->fields[i].name;
	if (conf_only(err, body_file, documents[0], schema->name, known, schema->count) < 0)
		return -(int)ERR_INVALID;
	*ret = documents[0];
	return 0;
}

int body_text(const struct conf *body, const char *name, size_t max, const char **ret,
	      bool *ret_given, struct err *err)
{
	const struct conf *c = conf_find(body, name);

	*ret_given = c != NULL;
	return c ? conf_text(err, body_file, c, name, max, ret) : 0;
}

int body_int(const struct conf *body, const char *name, int64_t min, int64_t max, int64_t *ret,
	     bool *ret_given, struct err *err)
{
	const struct conf *c = conf_find(body, name);

	*ret_given = c != NULL;
	return c ? conf_int(err, body_file, c, name, min, max, ret) : 0;
}

int body_bool(const struct conf *body, const char *name, bool *ret, bool *ret_given,
	      struct err *err)
{
	const struct conf *c = conf_find(body, name);

	*ret_given = c != NULL;
	return c ? conf_bool(err, body_file, c, name, ret) : 0;
}

int body_moment(const struct conf *body, const char *name, int64_t now_ms, int64_t *ret,
		bool *ret_given, struct err *err)
{
	const struct conf *c = conf_find(body, name);
	int64_t ms;

	*ret_given = c != NULL;
	if (!c)
		return 0;
	if (c->type == CONF_SCALAR && moment_parse(c->text, ret) == 0)
		return 0;
	if (c->type != CONF_SCALAR || parse_duration(c->text, &ms, NULL) < 0)
		return conf_error(
			err, body_file, c,
			"%s: expected a time with its zone, such as 2030-01-31T08:00Z, or so long from now, such as 2h",
			name);
	*ret = now_ms + ms;
	return 0;
}
