/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The simulator's commands parse their words themselves, as the test programs do: these are they, made again from what was parsed. */
#include "cli/args.h"

/* The command's full name, its flags, "--", its arguments; in the call's arena. */
char **sim_words(struct invocation *in, const char *name, int *ret_count);
