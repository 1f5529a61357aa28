/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What checks.c asks of jobs with a deadline for which Fairlead chooses between spot and on-demand nodes. */
#include "core/model/facts.h"
#include "sim/checks.h"

/* Only of one that leaves the choice and waits, and not to wait when there is no time for it. */
void checks_chosen(struct checks *checks, const struct facts *facts,
		   const struct event_capacity_chosen *e);
/* After a turn: nobody waits for spot nodes alone who would miss his deadline by it. */
void checks_for_spot(struct checks *checks, const struct facts *facts);
