/* SPDX-License-Identifier: Apache-2.0 */
#include "api/jobfile_table.h"

#include <string.h>

#include "base/check.h"

static const struct jobfile_field fields[] = {
#define FIELD(name, id, type, range, schema, standard, doc, example)                               \
	{ name, type, range, standard, doc, example },
#include "api/jobfile.def"
};
_Static_assert(ARRAY_SIZE(fields) <= JOBFILE_FIELDS_MAX, "raise JOBFILE_FIELDS_MAX");

static const char *const schemas[] = {
#define FIELD(name, id, type, range, schema, standard, doc, example) schema,
#include "api/jobfile.def"
};

static const struct {
	const char *name, *why;
} later[] = {
#define LATER(name, why) { name, why },
#include "api/jobfile.def"
};

const struct jobfile_field *jobfile_fields(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(fields);
	return fields;
}

const char *jobfile_later(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(later); i++)
		if (strcmp(later[i].name, name) == 0)
			return later[i].why;
	return NULL;
}

/* Nested fields are part of their parent's schema. */
void jobfile_schema(struct buf *out)
{
	bool first = true;

	buf_adds(
		out,
		"{\"type\":\"object\",\"description\":\"A job. Give command or script.\",\"additionalProperties\":false,\"properties\":{");
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct jobfile_field *field = &fields[i];

		if (strchr(field->name, '.'))
			continue;
		if (!first)
			buf_addc(out, ',');
		first = false;
		buf_add_json(out, field->name, strlen(field->name));
		buf_adds(out, ":{\"description\":");
		buf_add_json(out, field->doc, strlen(field->doc));
		buf_addc(out, ',');
		buf_adds(out, schemas[i] + 1);
	}
	buf_adds(out, "},\"oneOf\":[{\"required\":[\"command\"]},{\"required\":[\"script\"]}]}");
}
