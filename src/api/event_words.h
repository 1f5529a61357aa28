/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Events for people: a sentence with names in place of numbers, and what an event does to its job. The texts are in event_words.def. */
#include <stddef.h>
#include "base/arena.h"
#include "base/buf.h"
#include "core/model/facts.h"

struct event_text {
	uint32_t kind;
	const char *text; /* its fields, JSON */
	size_t size;
};

/* Appends the sentence; the name of the kind where there is none. What the facts don't know any more has its number. */
void event_sentence(const struct facts *facts, const struct event_text *event, struct arena *arena,
		    struct buf *out);
/* The job that the event is of; 0 = of none, or not known any more. */
uint32_t event_job(const struct facts *facts, const struct event_text *event);
/* The state that the job has from this event on; NULL = as before. */
const char *event_job_state(const struct event_text *event);
/* The scheduler's own notes, of no use to people. */
bool event_is_bookkeeping(uint32_t kind);
