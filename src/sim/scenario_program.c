/* SPDX-License-Identifier: Apache-2.0 */
/* The command `fairlead sim scenario` as a program of its own, for the tests. */
#include "sim/scenario_main.h"

int main(int argc, char **argv)
{
	return sim_scenario_main(argc, argv);
}
