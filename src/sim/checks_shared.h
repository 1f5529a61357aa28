/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checkers of shared GPUs, called by checks.c: parts of GPUs, slices, and layouts that are set. */
#include "sim/checks.h"

/* No GPU is given away twice, in parts, slices or whole, and only those share one who may. */
void checks_shared(struct checks *checks, const struct facts *f, const char *name,
		   const struct event_attempt_placed *e, const struct job *job);
/* Only idle GPUs are cut, only as their model allows, only where somebody may. Before it is applied. */
void checks_layout(struct checks *checks, const struct facts *f, const struct event_layout_set *e);
