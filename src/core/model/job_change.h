/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Changes of a job after its submission: which words of the job file they have (job_changes.def), and what a job asks for as the
 * submission that would ask for the same. A changed waiting job is the job that this submission would have made at the same number:
 *
 *	wish(job) + change = another submission; its shape and fields are the job's from then on
 *
 * so nothing but a submission has to be understood by whoever decides. Sets of words are bits, 1 << enum job_change.
 */
#include "core/model/facts.h"
#include "core/model/slices.h"

enum job_change {
#define CHANGE(ID, word, flags) JOB_CHANGE_##ID,
#define INT(ID, field)
#define TEXT(ID, field)
#define INTS(ID, field)
#include "core/model/job_changes.def"
#undef CHANGE
#undef INT
#undef TEXT
#undef INTS
	JOB_CHANGES
};
_Static_assert(JOB_CHANGES <= 64, "sets of them are bits of a word");

#define JOB_CHANGE_BIT(ID) (UINT64_C(1) << JOB_CHANGE_##ID)

enum { JOB_CHANGE_RUNS = 1, JOB_CHANGE_WHOLE = 2, JOB_CHANGE_PLAIN = 4 };
/* The words with one of these flags. */
uint64_t job_changes_with(unsigned flags);
const char *job_change_word(enum job_change change); /* "limit" */
bool job_change_find(const char *word, enum job_change *ret);
/* "limit,gpus" as a set; words that are not known are left out, and false is answered. */
bool job_changes_parse(const char *words, uint64_t *ret);
/* The other way: in the order of the table. */
const char *job_changes_text(uint64_t set, char ret[EVENT_TEXT_MAX + 1]);
/* Copies the fields of these words; texts and lists stay where they are. */
void job_changes_put(uint64_t set, const struct event_job_changed *from,
		     struct event_job_submitted *to);
void job_changes_take(uint64_t set, const struct event_job_submitted *from,
		      struct event_job_changed *to);
/* The words in which two submissions differ. */
uint64_t job_changes_between(const struct event_job_submitted *a,
			     const struct event_job_submitted *b);

/* Room for the texts and lists of a wish. */
struct job_wish_room {
	char models[EVENT_TEXT_MAX + 1], regions[EVENT_TEXT_MAX + 1], labels[EVENT_TEXT_MAX + 1],
		tolerates[EVENT_TEXT_MAX + 1], data[EVENT_TEXT_MAX + 1],
		own_labels[EVENT_TEXT_MAX + 1], apart_from[EVENT_TEXT_MAX + 1],
		roles[EVENT_TEXT_MAX + 1], role_masks[ROLES_MAX * (NAME_MAX_BYTES + 1) + 1];
	char name[NAME_MAX_BYTES + 1], user[NAME_MAX_BYTES + 1], team[NAME_MAX_BYTES + 1],
		queue[NAME_MAX_BYTES + 1], project[NAME_MAX_BYTES + 1], window[NAME_MAX_BYTES + 1],
		mask[NAME_MAX_BYTES + 1], together[NAME_MAX_BYTES + 1],
		levels[4][NAME_MAX_BYTES + 1];
	char min_driver[VERSION_TEXT_MAX], min_cuda[VERSION_TEXT_MAX], slice[SLICE_TEXT_MAX];
	int64_t throughput[SHAPE_MODELS_MAX], role_numbers[ROLES_MAX * ROLE_NUMBERS];
};
/*
 * The submission that asks for what the job asks for now; the job must be there. Without what it depends on and its client key: these
 * don't change. Retries are those that are left, the capacity is the one that was asked for. Texts lie in room.
 */
void job_wish(const struct facts *f, const struct job *job, struct job_wish_room *room,
	      struct event_job_submitted *ret);
