/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Building a tree of conf.h from a row of events, whichever syntax they come from (conf.c keeps
 * this to itself and its readers). Here stand the limits and the refusal of duplicate keys.
 */
#include "base/conf.h"

struct conf_place {
	int line, column; /* from 1 */
};

struct conf_level {
	struct conf *conf; /* list or map that is open */
	size_t first; /* its first child in `open` */
	const char *key; /* of the member that comes next; NULL = none read yet */
	struct conf_place key_place;
};

struct conf_build {
	const char *file;
	struct arena *arena;
	struct err *err;
	struct conf *
		*open; /* children of open lists and maps, outermost first; documents before all */
	size_t open_count, open_room;
	size_t nodes;
	size_t depth;
	struct conf_level levels[CONF_DEPTH_MAX];
};

void conf_build_init(struct conf_build *build, const char *file, struct arena *arena,
		     struct err *err);
void conf_build_deinit(struct conf_build *build);
/* Whether the next text is a key. */
bool conf_build_wants_key(const struct conf_build *build);
int conf_build_key(struct conf_build *build, struct conf_place at, const char *text, size_t size)
	MUST_CHECK;
int conf_build_scalar(struct conf_build *build, struct conf_place at, const char *text, size_t size,
		      bool quoted) MUST_CHECK;
int conf_build_begin(struct conf_build *build, struct conf_place at, enum conf_type type)
	MUST_CHECK;
int conf_build_end(struct conf_build *build) MUST_CHECK;
void conf_build_finish(struct conf_build *build, struct conf ***ret_documents, size_t *ret_count);
int conf_build_error(struct conf_build *build, struct conf_place at, enum err_code code,
		     const char *format, ...) PRINTF_LIKE(4, 5);

/*
 * conf_json.c: whether the text is an object or array of strict JSON; and its reader (only for
 * such a text).
 */
bool conf_is_json(const char *text, size_t size);
int conf_read_json(struct conf_build *build, const char *text, size_t size) MUST_CHECK;
