/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Packing anew: the starts of this pass get other places, so that a job that found none has one too. anew.c has the rule, README.md a
 * worked example.
 */
#include <stdbool.h>
#include <stdint.h>

struct pass;
struct placement;
struct shape;

/* The job was started by the decision made last, at its turn; a later one may move it. */
void anew_note(struct pass *pass, uint32_t job, const struct placement *place);
/* Were there any, and are there searches left? */
bool anew_may_help(const struct pass *pass);
/*
 * A place for the least width of the job, at least `need` GPU shares, when one comes about by placing the starts of this pass anew: then they
 * are placed so, in the space and in the decisions. The space is the job's before and after (reserve_layer, blocks_for, pass->closed).
 */
bool anew_place(struct pass *pass, uint32_t job, const struct shape *shape, int64_t need,
		struct placement *ret);
