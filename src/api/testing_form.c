/* SPDX-License-Identifier: Apache-2.0 */
#include "api/testing_form.h"

#include <string.h>
#include "api/schema.h"

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
	} else if ((!strcmp(plain, "string") && !json_is_string(value)) ||
		   (!strcmp(plain, "integer") && !json_is_integer(value)) ||
		   (!strcmp(plain, "number") && !json_is_number(value)) ||
		   (!strcmp(plain, "boolean") && !json_is_boolean(value)) ||
		   (!strcmp(plain, "object") && !json_is_object(value))) {
		fail_msg("%s.%s: not a %s", where, field, plain);
	}
}

void form_check(const char *name, const json_t *value)
{
	const struct schema *schema = schema_find(name);
	const char *key;
	json_t *member;

	assert_non_null(schema);
	if (!json_is_object(value))
		fail_msg("%s: not an object", name);
	json_object_foreach((json_t *)(uintptr_t)value, key, member)
	{
		size_t i = 0;

		while (i < schema->count && strcmp(schema->fields[i].name, key) != 0)
			i++;
		if (i == schema->count)
			fail_msg("%s.%s is not in the schema", name, key);
		type_check(name, key, schema->fields[i].type, member);
	}
	for (size_t i = 0; i < schema->count; i++)
		if (!schema_field_optional(&schema->fields[i]) &&
		    !json_object_get(value, schema->fields[i].name))
			fail_msg("%s.%s is missing", name, schema->fields[i].name);
}

struct answer form_get(const char *user, const char *path, const char *schema)
{
	struct answer answer = testing_get(user, path, 200);

	form_check(schema, answer.json);
	return answer;
}

struct answer form_sent(const char *user, const char *method, const char *path, const char *body,
			int status)
{
	struct answer answer = testing_call(user, method, path, NULL, body);

	if (answer.status != status)
		fail_msg("%s %s %.200s as %s: %d %s", method, path, body ? body : "",
			 user ? user : "socket", answer.status, answer.text);
	if (status >= 400)
		form_check("ErrorReply", answer.json);
	return answer;
}

void form_change(const char *user, const char *method, const char *path, const char *body)
{
	struct answer answer = form_sent(user, method, path, body, 200);

	form_check("Done", answer.json);
	answer_free(&answer);
}

void form_refused(const char *user, const char *method, const char *path, const char *body,
		  int status, const char *part)
{
	struct answer answer = form_sent(user, method, path, body, status);

	if (!strstr(answer.text, part))
		fail_msg("%s %s: \"%s\" is not in %s", method, path, part, answer.text);
	answer_free(&answer);
}

int64_t answer_number(const struct answer *answer, const char *name)
{
	return json_integer_value(json_object_get(answer->json, name));
}

const char *answer_text(const struct answer *answer, const char *name)
{
	const char *value = json_string_value(json_object_get(answer->json, name));

	return value ? value : "(none)";
}
