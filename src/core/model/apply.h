/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One function per kind of event, found by its name. Each checks that the event fits and then changes the
 * facts; one that does not fit changes nothing. `apply` has set seq and time before.
 */
#include "core/model/facts.h"

#define EVENT(number, NAME, name, text, must)                                                      \
	void apply_##name(struct facts *f, const struct event_##name *e);
#define INT(f)
#define TEXT(f)
#define INTS(f)
#define END
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END

/* What a job is while it waits, and while it has an attempt; both follow from the other facts alone. */
uint8_t job_waiting_state(const struct facts *f, const struct job *job);
uint8_t job_live_state(const struct attempt *attempt);
/* Whether it waits for its turn, a person or another job: it may come back to this after each requeue. */
bool job_state_waits(uint8_t state);
/* The shape that a submission asks for; false when it can't be: unknown levels, more models, labels or tasks than there may be. */
bool submission_shape(struct facts *f, const struct event_job_submitted *e, struct shape *ret);
/* The fields of a job that are its submission's as they stand there, brought into range. */
void submission_fill(const struct event_job_submitted *e, struct job *job);
/* One more (1) or less (-1) of the jobs of its user that wait. */
void facts_count_waiting(struct facts *f, const struct job *job, int step);
/* The promise of a job's place and the rows of its tasks, dropped. */
void promise_drop(struct facts *f, struct job_id id);
/* Around each change of a node: what it was to the pool of spot nodes that it belongs to, and what it is now. */
struct spot_was {
	uint32_t row; /* of the pool; 0 = none */
	bool there;
};
struct spot_was spot_node_was(const struct facts *f, struct node_id id);
void spot_node_is(struct facts *f, struct node_id id, struct spot_was was);
/* Something happened: does it make a new look for moves worth while? */
void moves_follow(struct facts *f, enum event_kind kind);
void reservation_drop(struct facts *f, struct job_id job);
void tasks_drop(struct facts *f, struct attempt_id id);
/* The attempt when it is its job's live one, else 0. */
struct attempt_id attempt_live(struct facts *f, int64_t id);
/* So many GPU shares more (or fewer) of the attempt count as its queue's past use. */
void attempt_counts(struct facts *f, struct attempt_id id, int64_t share);
/* Where records are missing, a later one tells what they must have said: its attempt has ended; it waits again. */
void job_end_unseen(struct facts *f, struct job_id id);
void job_wait_unseen(struct facts *f, struct job_id id);
void job_set_state(struct facts *f, struct job_id id, uint8_t state);

/* What has ended comes off the budgets of these queues. */
void queues_charge(struct facts *f, const int64_t *queues, uint32_t count, const int64_t *micro,
		   uint32_t micro_count);

/* Numbers from outside, brought into range: apply is total. */
/* Parts of GPUs by rank make sense: none, or one of each for every task. */
bool parts_fit(const int64_t *parts, uint32_t count, const int64_t *mib, uint32_t mib_count,
	       uint32_t tasks);
/* The instance of a task (slice_at) where the list has a known one for it; else 0. */
uint32_t slice_given(const int64_t *slices, uint32_t count, uint32_t task);
uint32_t clamp_u32(int64_t value);
int32_t clamp_i32(int64_t value);
uint16_t clamp_u16(int64_t value);
uint8_t clamp_u8(int64_t value, uint8_t most);
int64_t clamp_positive(int64_t value);
int64_t add_saturating(int64_t a, int64_t b);

/* Copies the next part of a comma-separated list, cut like a name; false behind the last one. "" has no parts. */
bool list_next(const char **text, char ret[NAME_MAX_BYTES + 1]);
/* The names of a list, each with the prefix before it: interned, sorted by text, each once, in `ret` (all zero before). False: more
 * than room. */
bool names_sorted(struct facts *f, const char *list, const char *prefix, struct name_id *ret,
		  uint32_t room);
/* 64 hex digits; false (and zeroes) when it is anything else. */
bool hex_parse(const char *text, uint8_t ret[32]);
