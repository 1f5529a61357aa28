/* SPDX-License-Identifier: Apache-2.0 */
#include "api/schema.h"

#include <string.h>
#include "base/check.h"

#define SCHEMA(name_, doc_)                                                                        \
	{                                                                                          \
		.name = #name_, .doc = doc_, .fields = {
#define FIELD(name_, type_, doc_) { name_, type_, doc_ },
/* clang-format off */
#define END { NULL, NULL, NULL } } },
/* clang-format on */
static struct schema table[] = {
#include "api/schemas.def"
};

__attribute__((constructor)) static void table_finish(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		while (table[i].count < SCHEMA_FIELDS_MAX && table[i].fields[table[i].count].name)
			table[i].count++;
}

const struct schema *schema_table(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(table);
	return table;
}

const struct schema *schema_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(table[i].name, name))
			return &table[i];
	return NULL;
}

bool schema_field_optional(const struct schema_field *field)
{
	return field->type[strlen(field->type) - 1] == '?';
}
