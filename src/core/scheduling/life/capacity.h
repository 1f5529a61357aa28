/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which nodes a job with a deadline uses that may run on spot nodes and on others: the rule of spot.h asked for what is so.
 *
 *	it waits		spot nodes alone, while there is time to spare for waiting; then what comes first; then on demand alone, when
 *				being taken away once more would cost the deadline
 *	it runs on spot		it stays until the node is taken away
 *	it runs on demand	it moves to spot nodes that are free when they are expected to last long enough to pay for it
 *
 * What is chosen for a job that waits is an event (capacity-chosen) and stands in its shape; the wish that it was submitted with stays in its body.
 * Pools are told apart by model and place; of those with a model that the job accepts, the one counts that was there for most of the time.
 */
#include "core/scheduling/pass.h"

/* Jobs that wait: what they use from now on. */
void capacity_due(struct pass *pass);
/* One job that runs on demand goes to spot nodes, when nothing else was decided. */
void capacity_return(struct pass *pass);
/* A job that waits for spot nodes alone: until when, as things are; 0 = it does not. */
int64_t capacity_waits_until_ms(const struct facts *facts, const struct job *job);
