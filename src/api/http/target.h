/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The target of a request, "/api/v1/jobs/12?stream=stderr", taken apart once: a decoded path and named query values.
 *
 * Decoded exactly once, and refused when the result could be read in two ways: a bad escape, an escaped slash,
 * backslash, NUL or other control character, an empty segment, "." or "..", text that is not UTF-8, a query name twice.
 */
#include <stddef.h>
#include "base/err.h"

struct arena;

enum { TARGET_QUERIES_MAX = 16 };

struct target {
	const char *path;
	size_t query_count;
	struct {
		const char *name, *value;
	} query[TARGET_QUERIES_MAX];
};

/* text: visible ASCII that begins with '/', as framing.h lets through. Texts of *ret live in the arena. */
int target_parse(const char *text, struct arena *arena, struct target *ret, struct err *err)
	MUST_CHECK;
/* NULL = not given */
const char *target_query(const struct target *target, const char *name);
