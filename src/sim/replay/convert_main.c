/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/replay_main.h"
#include "sim/replay/written.h"
#include "sim/scenario_main.h"

enum { EXIT_BAD_INPUT = 2 };

static int put(const void *context, FILE *out, struct err *err)
{
	const struct convert_words *words = context;

	return convert(words->from, words->path, &words->options, out, err);
}

int sim_convert_main(const char *command, const struct convert_words *words)
{
	struct err err = { 0 };

	if (written(words->out, put, words, &err) < 0)
		return sim_complain(command, &err), EXIT_BAD_INPUT;
	return 0;
}
