/* SPDX-License-Identifier: Apache-2.0 */
#include "api/jobfile/jobfile_table.h"

#include <string.h>

#include "base/check.h"

static const struct jobfile_field fields[] = {
#define FIELD(name, id, type, range, schema, standard, doc, example)                               \
	{ name, type, range, standard, doc, example },
#include "api/jobfile/jobfile.def"
};
_Static_assert(ARRAY_SIZE(fields) <= JOBFILE_FIELDS_MAX, "raise JOBFILE_FIELDS_MAX");

static const char *const schemas[] = {
#define FIELD(name, id, type, range, schema, standard, doc, example) schema,
#include "api/jobfile/jobfile.def"
};

static const struct {
	const char *name, *why;
} later[] = {
#define LATER(name, why) { name, why },
#include "api/jobfile/jobfile.def"
};

/* Where a field stands in the table, plus 1, by the hash of its name; 0 = free. Made before main. */
enum { INDEX_ROOM = 4 * JOBFILE_FIELDS_MAX };
static uint16_t field_index[INDEX_ROOM];

/* FNV-1a, so that a prefix and a key hash as the name they make. */
static uint32_t name_hash(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619;
	return hash;
}

static uint32_t field_hash(const char *prefix, const char *key)
{
	return name_hash(name_hash(2166136261, prefix), key);
}

__attribute__((constructor)) static void index_fill(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		uint32_t at = field_hash("", fields[i].name) % INDEX_ROOM;

		while (field_index[at])
			at = (at + 1) % INDEX_ROOM;
		field_index[at] = (uint16_t)(i + 1);
	}
}

bool jobfile_field_find(const char *prefix, const char *key, size_t *ret)
{
	const size_t length = strlen(prefix);
	uint32_t at = field_hash(prefix, key) % INDEX_ROOM;

	for (; field_index[at]; at = (at + 1) % INDEX_ROOM) {
		const char *name = fields[field_index[at] - 1].name;

		if (strncmp(name, prefix, length) != 0 || strcmp(name + length, key) != 0)
			continue;
		*ret = field_index[at] - 1;
		return true;
	}
	return false;
}

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
/* The anyOf stands in an allOf because generators of clients make a union of nothing of it beside properties. */
void jobfile_schema(struct buf *out)
{
	bool first = true;

	buf_adds(
		out,
		"{\"type\":\"object\",\"description\":\"A job. Give command, script or roles.\",\"additionalProperties\":false,\"properties\":{");
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
	buf_adds(
		out,
		"},\"allOf\":[{\"anyOf\":[{\"required\":[\"command\"]},{\"required\":[\"script\"]},{\"required\":[\"roles\"]}]}]}");
}
