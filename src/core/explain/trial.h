/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A trial: facts and view with a change made to them, and taken back. trial.c makes changes, answer.c knows what takes a cause away,
 * change.c searches the smallest, change_words.c says it. change.c has the design.
 */
#include "core/explain/words.h"

/* Facts and view with a change made. */
struct trial {
	const struct facts *facts;
	struct view *view;
	struct arena *arena; /* of the answer */
	struct arena *work_memory; /* until it is found */
	struct arena scratch; /* of one try */
	uint32_t job;
	struct facts copy;
	struct event followed[2 * CHANGE_PARTS_MAX + 8];
	uint32_t followed_count;
	struct words words; /* about the copy */
	struct standings before; /* without any change */
	uint32_t tries;
	uint64_t work; /* tries of single jobs, and their like in nodes and queues */
	bool undecided; /* in some trial too many came before it to tell whether it starts */
};

struct parts {
	struct change_part at[CHANGE_PARTS_MAX];
	uint32_t count;
};

/* With the parts whose bit is set in `which` (those beyond 64 always). Ended by trial_end. */
void trial_begin(struct trial *t, const struct parts *parts, uint64_t which);
void trial_end(struct trial *t);
/* Why it waits in the trial; false: nothing keeps it. */
bool trial_reason(struct trial *t, struct verdict *ret);
bool trial_is_spent(const struct trial *t); /* no further try may be made */
/* Does the job start with these parts? */
bool starts_with(struct trial *t, const struct parts *parts, uint64_t which);
/* Would it, if nobody came before it? */
bool starts_alone_with(struct trial *t, const struct parts *parts);

/* Adds what takes the cause away; the trial is over then. False: nothing is known that would. */
bool cause_answer(struct trial *t, const struct verdict *v, struct parts *parts);

/* The parts in words, in the arena of the answer. */
void change_tell(struct trial *t, const struct parts *parts, struct explain_change *ret);
