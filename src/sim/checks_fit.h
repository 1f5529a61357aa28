/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What checks.c asks of a placing beyond the nodes themselves: whether its tasks lie apart as they must, have one model, and lie beside their processors. */
#include "core/model/facts.h"
#include "sim/checks.h"

/* New tasks at `e`, beside those that the attempt holds (NULL = none yet). */
/* Beside no job from which it keeps away, or that keeps away from it. */
void checks_away(struct checks *checks, const struct facts *f, const char *name,
		 const struct shape *shape, uint32_t job, const struct event_attempt_placed *e);
void checks_apart(struct checks *checks, const struct facts *f, const char *name,
		  const struct shape *shape, const struct attempt *attempt,
		  const struct event_attempt_placed *e);
/* Where two roles share a node, both have masks of their own, and one mask says which nodes are enough for both, it is such a node. */
void checks_together(struct checks *checks, const struct facts *f, const char *name,
		     const struct shape *shape, const struct event_attempt_placed *e);
void checks_models(struct checks *checks, const struct facts *f, const char *name,
		   const struct shape *shape, const struct attempt *attempt,
		   const struct event_attempt_placed *e);
void checks_capacity(struct checks *checks, const struct facts *f, const char *name,
		     const struct shape *shape, const struct event_attempt_placed *e);
void checks_aligned(struct checks *checks, const struct facts *f, const char *name,
		    const struct shape *shape, const struct event_attempt_placed *e);
