/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/later.h"

#include <stdbool.h>
#include <string.h>

#include "base/check.h"

enum form {
	ANY, /* the key itself */
	IS, /* the value is `value` */
	IS_NOT /* the value is anything but `value` */
};

struct later {
	const char *what, *key;
	enum form form;
	const char *value;
	const char *brings; /* the capability that brings it */
};

static const struct later later_table[] = {
	{ "job", "kind", IS, "interactive", "interactive sessions" },
};

static bool later_applies(const struct later *later, const struct conf *value)
{
	bool scalar = value->type == CONF_SCALAR;

	switch (later->form) {
	case ANY: return true;
	case IS: return scalar && strcmp(value->text, later->value) == 0;
	case IS_NOT: return !scalar || strcmp(value->text, later->value) != 0;
	}
	UNREACHABLE();
}

int later_check(const char *file, const struct conf *map, const char *what, struct err *err)
{
	for (size_t i = 0; map->type == CONF_MAP && i < map->count; i++) {
		const struct conf *value = map->items[i];

		for (size_t k = 0; k < ARRAY_SIZE(later_table); k++) {
			const struct later *later = &later_table[k];

			if (strcmp(later->what, what) != 0 || strcmp(later->key, value->key) != 0 ||
			    !later_applies(later, value))
				continue;
			if (later->form == ANY)
				return err_at(err, ERR_UNSUPPORTED, file, value->key_line,
					      value->key_column,
					      "needs a later release: key `%s` of a %s (%s)",
					      later->key, what, later->brings);
			return err_at(err, ERR_UNSUPPORTED, file, value->line, value->column,
				      "needs a later release: this value of key `%s` of a %s (%s)",
				      later->key, what, later->brings);
		}
	}
	return 0;
}
