/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The forms of bodies and answers (schemas.def), and what is made from them. */
#include <stdbool.h>
#include <stddef.h>
#include "base/buf.h"

enum { SCHEMA_FIELDS_MAX = 96 };

struct schema_field {
	const char *name, *type, *doc;
};
struct schema {
	const char *name, *doc;
	size_t count;
	struct schema_field fields[SCHEMA_FIELDS_MAX];
};

const struct schema *schema_table(size_t *ret_count);
const struct schema *schema_find(const char *name); /* NULL if there is none */
bool schema_field_optional(const struct schema_field *field);
/* The OpenAPI 3.1 document, made from the route table and the schemas. */
void openapi_document(struct buf *out);
