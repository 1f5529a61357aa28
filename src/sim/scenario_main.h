/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fairlead sim scenario`, its words read (src/cli/simulation/sim_scenario.c): runs the scenarios of the files on the
 * production core. `command` is the command's name for messages. Answers the exit status: 0 all
 * hold, 1 one does not, 2 bad input.
 */
#include <stdbool.h>
#include <stdint.h>
#include "sim/report.h"

enum { SCENARIO_FILES_MAX = 4096 };

struct scenario_words {
	const char *const *paths;
	uint32_t count; /* 1 to SCENARIO_FILES_MAX */
	enum report_form form;
	bool trace; /* each decision with its reasons */
};

int sim_scenario_main(const char *command, const struct scenario_words *words);

/* On standard error, with the place where there is one; -1. For all commands of the simulator. */
int sim_complain(const char *command, const struct err *err);
