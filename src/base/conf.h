/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A YAML or JSON text as a tree that remembers line and column of every value. Job files,
 * scenarios, configuration: everything a person writes is read through this, so that every
 * complaint can say where. A text that is an object or array of strict JSON is read as that, all
 * else as YAML.
 *
 * Refused here, with the place: invalid UTF-8, control characters (written out; an escape in double
 * quotes may mean any but NUL), line ends other than LF and CR LF, aliases and anchors (so alias
 * bombs cannot exist), tags, keys that are no text, duplicate keys, nesting deeper than
 * CONF_DEPTH_MAX, more than CONF_NODES_MAX values, texts over CONF_BYTES_MAX. Whatever the text,
 * its tree needs at most CONF_ARENA_MAX bytes of the arena.
 *
 * A scalar is kept as text with `quoted`; what it means is decided by who reads it. Plain `null`,
 * `~` and empty are CONF_NULL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct arena;

enum {
	CONF_DEPTH_MAX = 32,
	CONF_NODES_MAX = 200000,
	CONF_BYTES_MAX = 4 << 20,
	CONF_ARENA_MAX = 48 << 20
};

enum conf_type { CONF_NULL, CONF_SCALAR, CONF_LIST, CONF_MAP };

struct conf {
	enum conf_type type;
	bool quoted; /* scalar in quotes or block style: text, never number or bool */
	int line, column; /* of the value, from 1 */
	int key_line, key_column; /* of the key, for members of maps */
	const char *key; /* members of maps, else NULL */
	const char *text; /* scalar, NUL-terminated (inner NUL is refused) */
	size_t count; /* children */
	struct conf **items; /* children in the order written */
};

/*
 * All documents of the text; an empty text has none. file is the name used in messages (kept by
 * pointer).
 */
int conf_parse(const char *file, const char *text, size_t size, struct arena *arena,
	       struct conf ***ret_documents, size_t *ret_count, struct err *err) MUST_CHECK;
const struct conf *conf_find(const struct conf *map, const char *key); /* NULL if none */
/* err_at for the place of a value. */
int conf_error(struct err *err, const char *file, const struct conf *at, const char *format, ...)
	PRINTF_LIKE(4, 5);
/*
 * Complains about the first key of map that is not in `known`, with a spelling hint; 0 if all
 * are. `what`: "job".
 */
int conf_only(struct err *err, const char *file, const struct conf *map, const char *what,
	      const char *const *known, size_t count) MUST_CHECK;
/*
 * Values; `what` names the field in messages ("tasks"). Negative with the place and what was
 * expected; a NULL value is reported as missing. A number or bool in quotes is a text and refused;
 * a text may be written without quotes (name: 12).
 */
int conf_int(struct err *err, const char *file, const struct conf *c, const char *what, int64_t min,
	     int64_t max, int64_t *ret) MUST_CHECK;
int conf_bool(struct err *err, const char *file, const struct conf *c, const char *what, bool *ret)
	MUST_CHECK;
int conf_text(struct err *err, const char *file, const struct conf *c, const char *what,
	      size_t max_bytes, const char **ret) MUST_CHECK;
int conf_duration(struct err *err, const char *file, const struct conf *c, const char *what,
		  int64_t *ret_ms) MUST_CHECK;
int conf_size_mib(struct err *err, const char *file, const struct conf *c, const char *what,
		  int64_t *ret_mib) MUST_CHECK;
