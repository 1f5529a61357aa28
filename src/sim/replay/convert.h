/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Public traces as workloads (docs/workload-format.md, "From public traces"). The traces themselves are not part of the project: the
 * page says where each is published, and what of it becomes what.
 *
 * A gang of n GPUs becomes one task up to 8, else tasks of 8 and one with the rest: 20 is 2 x 8 and 4.
 */
#include <stdio.h>
#include "base/err.h"

struct convert_options {
	double rate; /* gavel: jobs per hour; 0 = not said */
	const char *
		throughputs; /* gavel: file of steps per second by model; NULL = all models alike */
	const char *node; /* spot: its nodes are NAME-1, NAME-2, ...; NULL = spot */
	const char *overheads; /* muri: file of restart costs by model and GPUs; NULL = 10 s each */
};

/* `from`: one of convert_names(). The rows go to `out` as they are read. */
int convert(const char *from, const char *path, const struct convert_options *options, FILE *out,
	    struct err *err) MUST_CHECK;
const char *convert_names(void); /* for messages */
