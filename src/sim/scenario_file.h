/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A file of scenarios: its documents, each read by itself, so that one that can't be read does
 * not hide the others. */
#include <stddef.h>
#include "base/arena.h"
#include "base/err.h"
#include "sim/scenario.h"

struct scenario_document {
	const char *name;
	int rc; /* 0, or negative with the reason in err */
	struct err err;
	struct scenario scenario; /* when rc is 0 */
};

struct scenario_file {
	const char *path;
	struct scenario_document *documents;
	size_t count;
};

/* All in the arena. Fails when the file can't be read as YAML at all, or is empty; a name that
 * stands twice is the second document's error. `daemon`: as for scenario_read. */
int scenario_file_read(const char *path, bool daemon, struct arena *arena,
		       struct scenario_file *ret, struct err *err) MUST_CHECK;

/* A file of one document without jobs: a cluster (scenario_read_site), or rules for one that was read before. */
int scenario_site_file_read(const char *path, struct arena *arena, struct scenario *ret,
			    struct err *err) MUST_CHECK;
int scenario_rules_file_read(const char *path, struct arena *arena, struct scenario *site,
			     struct err *err) MUST_CHECK;
