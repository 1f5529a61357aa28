/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A YAML or JSON text as a tree that remembers line and column of every value. Job files, scenarios,
 * configuration: everything a person writes is read through this, so that every complaint can say
 * where. (JSON is read as YAML's flow style.)
 *
 * Refused here, with the place: invalid UTF-8, control characters, aliases and anchors (so alias
 * bombs cannot exist), tags, duplicate keys, nesting deeper than CONF_DEPTH_MAX, more than
 * CONF_NODES_MAX values, texts over CONF_BYTES_MAX.
 *
 * A scalar is kept as text with `quoted`; what it means is decided by who reads it. Plain `null`, `~`
 * and empty are CONF_NULL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct arena;

enum { CONF_DEPTH_MAX = 32, CONF_NODES_MAX = 200000, CONF_BYTES_MAX = 4 << 20 };

enum conf_type { CONF_NULL, CONF_SCALAR, CONF_LIST, CONF_MAP };

struct conf {
	enum conf_type type;
	bool quoted;		/* scalar in quotes or block style: text, never number or bool */
	int line, column;	/* of the value, from 1 */
	int key_line, key_column; /* of the key, for members of maps */
	const char *key;	/* members of maps, else NULL */
	const char *text;	/* scalar, NUL-terminated (inner NUL is refused) */
	size_t count;		/* children */
	struct conf **items;	/* children in the order written */
};

/* All documents of the text. file is the name used in messages (kept by pointer). */
int conf_parse(const char *file, const char *text, size_t size, struct arena *arena,
	       struct conf ***ret_documents, size_t *ret_count, struct err *err) MUST_CHECK;
const struct conf *conf_find(const struct conf *map, const char *key);	/* NULL if none */
/* err_at for the place of a value. */
int conf_error(struct err *err, const char *file, const struct conf *at, const char *format, ...) PRINTF_LIKE(4, 5);
/* Complains about the first key of map that is not in `known`, with a spelling hint; 0 if all are. `what`: "job". */
int conf_only(struct err *err, const char *file, const struct conf *map, const char *what,
	      const char *const *known, size_t count) MUST_CHECK;
/* Values; `what` names the field in messages ("tasks"). Negative with the place and what was expected. */
int conf_int(struct err *err, const char *file, const struct conf *c, const char *what, int64_t min, int64_t max, int64_t *ret) MUST_CHECK;
int conf_bool(struct err *err, const char *file, const struct conf *c, const char *what, bool *ret) MUST_CHECK;
int conf_text(struct err *err, const char *file, const struct conf *c, const char *what, size_t max_bytes, const char **ret) MUST_CHECK;
int conf_duration(struct err *err, const char *file, const struct conf *c, const char *what, int64_t *ret_ms) MUST_CHECK;
int conf_size_mib(struct err *err, const char *file, const struct conf *c, const char *what, int64_t *ret_mib) MUST_CHECK;
