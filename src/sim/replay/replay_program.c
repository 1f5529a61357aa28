/* SPDX-License-Identifier: Apache-2.0 */
/* The command `fairlead sim replay` as a program of its own, for tests and benches. */
#include "sim/replay/replay_main.h"

int main(int argc, char **argv)
{
	return sim_replay_main(argc, argv);
}
