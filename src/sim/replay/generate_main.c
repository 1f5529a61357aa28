/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "sim/replay/replay_main.h"
#include "sim/replay/written.h"
#include "sim/scenario_file.h"
#include "sim/scenario_main.h"

enum { EXIT_BAD_INPUT = 2 };
#define MEMORY_CAP ((size_t)1 << 30)

struct made {
	const struct generate_words *words;
	struct scenario cluster;
};

static int put(const void *context, FILE *out, struct err *err)
{
	const struct made *made = context;

	return generate(&made->cluster, &made->words->options, out, err);
}

int sim_generate_main(const char *command, const struct generate_words *words)
{
	struct made made = { .words = words };
	struct err err = { 0 };
	struct arena arena;
	int rc;

	arena_init(&arena, MEMORY_CAP);
	rc = scenario_site_file_read(words->cluster, &arena, &made.cluster, &err);
	if (rc == 0)
		rc = written(words->out, put, &made, &err);
	arena_deinit(&arena);
	return rc < 0 ? (sim_complain(command, &err), EXIT_BAD_INPUT) : 0;
}
