/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The values of the policy that people may set (policy.def), as data. Every one is an int64_t in struct policy (model/facts.h)
 * and in the record policy-set; the two offsets say where. Durations are in ms there, and text ("10m") where people write them.
 */
#include <stddef.h>
#include <stdint.h>

enum policy_form { POLICY_DURATION, POLICY_NUMBER, POLICY_SWITCH, POLICY_WORDS };

struct policy_value {
	enum policy_form form;
	const char *name; /* in PUT /api/v1/policy: "min_runtime" */
	const char *shown; /* in GET: "min_runtime_ms" */
	const char *flag; /* of `fairlead policy set`: "min-runtime" */
	int64_t min, max; /* of numbers; of durations in ms */
	const char *range; /* in words: "0s to 10 years", "0 to 1024", "yes or no", "one|other" */
	const char *standard; /* the default, as a person writes it */
	const char *in_scenarios; /* the default of scenario files, "" = the same */
	const char *scenario; /* "backfill: {depth: 8}", "" = no such key there */
	const char *brief, *more;
	size_t in_policy, in_event; /* offsets */
};

/* All of them, in the order in which they are shown. */
const struct policy_value *policy_values(size_t *ret_count);
/* Of struct policy and struct event_policy_set. */
int64_t policy_value_get(const struct policy_value *value, const void *policy);
void policy_value_set(const struct policy_value *value, void *event, int64_t to);
/* Of a value that is one of several words: the word's number, from 1; 0 = it is none of them. And back, "" for no number of one. */
enum { POLICY_WORD_MAX = 16 };
int64_t policy_word_find(const struct policy_value *value, const char *word);
const char *policy_word(const struct policy_value *value, int64_t number,
			char ret[POLICY_WORD_MAX]);
