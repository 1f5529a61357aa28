/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* `fairlead sim replay`, `sim convert`, `sim generate`; exit status 0, or 2 on bad input. */
int sim_replay_main(int argc, char **argv);
int sim_convert_main(int argc, char **argv);
int sim_generate_main(int argc, char **argv);
