/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fairlead sim replay`, `sim convert`, `sim generate`, their words read: the table of flags of each stands in src/cli, and nowhere else. Exit status 0,
 * or 2 on bad input, of which `command` complains on standard error. What is written to a file is not there after a failure.
 */
#include <stdbool.h>
#include <stdint.h>
#include "sim/replay/convert.h"
#include "sim/replay/generate.h"

enum { REPLAY_POLICIES_MAX = 64 };

struct replay_words {
	const char *cluster, *workload; /* files */
	const char *availability; /* a file of nodes that come and go; NULL = all stay */
	const char *report; /* a folder; NULL = none */
	const char *policies[REPLAY_POLICIES_MAX]; /* "fairlead", "plain:NAME", or a file */
	uint32_t policy_count; /* 1 at least */
	uint64_t seed; /* for plain policies that throw dice */
	uint32_t foretell; /* each so many-th job that waits is asked about; 0 = none */
	bool json;
};

struct convert_words {
	struct convert_options options;
	const char *from, *path; /* a format of convert_names(); "-" = standard input */
	const char *out; /* NULL = standard output */
};

struct generate_words {
	struct generate_options options;
	const char *cluster; /* a file */
	const char *out; /* NULL = standard output */
};

int sim_replay_main(const char *command, const struct replay_words *words);
int sim_convert_main(const char *command, const struct convert_words *words);
int sim_generate_main(const char *command, const struct generate_words *words);
