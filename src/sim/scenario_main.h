/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fairlead sim scenario [-o tap|json] [--trace] FILE...`: runs the scenarios of the files on the
 * production core. argv[0] is the command's name for messages. Answers the exit status: 0 all
 * hold, 1 one does not, 2 bad input.
 */
int sim_scenario_main(int argc, char **argv);

struct err;
/* On standard error, with the place where there is one; -1. For all commands of the simulator. */
int sim_complain(const char *command, const struct err *err);
