/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `fairlead sim replay` and `fairlead sim convert`; exit status 0, or 2 on bad input. */
struct err;

int sim_replay_main(int argc, char **argv);
int sim_convert_main(int argc, char **argv);
/* On standard error, with the place where there is one; -1. */
int replay_complain(const char *command, const struct err *err);
