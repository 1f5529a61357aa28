/* SPDX-License-Identifier: Apache-2.0 */
#include "api/policy_table.h"

#include <string.h>
#include "base/check.h"
#include "core/model/event.h"
#include "core/model/facts.h"
#include "core/scheduling/admit/admit.h"

#define OFFSETS(field)                                                                             \
	.in_policy = offsetof(struct policy, field),                                               \
	.in_event = offsetof(struct event_policy_set, field)
#define TEXTS(flag_, standard_, in_scenarios_, scenario_, brief_, more_)                           \
	.flag = flag_, .standard = standard_, .in_scenarios = in_scenarios_,                       \
	.scenario = scenario_, .brief = brief_, .more = more_

#define DURATION(name_, min_, ...)                                                                 \
	{ .form = POLICY_DURATION,                                                                 \
	  .name = #name_,                                                                          \
	  .shown = #name_ "_ms",                                                                   \
	  .min = min_,                                                                             \
	  .max = ADMIT_DURATION_MAX_MS,                                                            \
	  .range = min_ ? "1ms to 10 years" : "0s to 10 years",                                    \
	  OFFSETS(name_##_ms),                                                                     \
	  TEXTS(__VA_ARGS__) },
#define NUMBER(name_, min_, max_, ...)                                                             \
	{ .form = POLICY_NUMBER,                                                                   \
	  .name = #name_,                                                                          \
	  .shown = #name_,                                                                         \
	  .min = min_,                                                                             \
	  .max = max_,                                                                             \
	  .range = #min_ " to " #max_,                                                             \
	  OFFSETS(name_),                                                                          \
	  TEXTS(__VA_ARGS__) },
#define SWITCH(name_, ...)                                                                         \
	{ .form = POLICY_SWITCH,                                                                   \
	  .name = #name_,                                                                          \
	  .shown = #name_,                                                                         \
	  .max = 1,                                                                                \
	  .range = "yes or no",                                                                    \
	  OFFSETS(name_),                                                                          \
	  TEXTS(__VA_ARGS__) },
#define WORDS(name_, words_, ...)                                                                  \
	{ .form = POLICY_WORDS,                                                                    \
	  .name = #name_,                                                                          \
	  .shown = #name_,                                                                         \
	  .max = 0,                                                                                \
	  .range = words_,                                                                         \
	  OFFSETS(name_),                                                                          \
	  TEXTS(__VA_ARGS__) },
static const struct policy_value values[] = {
#include "api/policy.def"
};

const struct policy_value *policy_values(size_t *ret_count)
{
	*ret_count = ARRAY_SIZE(values);
	return values;
}

const char *policy_word(const struct policy_value *value, int64_t number, char ret[POLICY_WORD_MAX])
{
	const char *at = value->range;

	for (int64_t n = 1; n < number && *at; n++) {
		at += strcspn(at, "|");
		at += *at == '|';
	}
	CHECK(strcspn(at, "|") < POLICY_WORD_MAX);
	memcpy(ret, at, strcspn(at, "|"));
	ret[number < 1 ? 0 : strcspn(at, "|")] = '\0';
	return ret;
}

int64_t policy_word_find(const struct policy_value *value, const char *word)
{
	char known[POLICY_WORD_MAX];

	for (int64_t n = 1; policy_word(value, n, known)[0]; n++)
		if (strcmp(known, word) == 0)
			return n;
	return 0;
}

int64_t policy_value_get(const struct policy_value *value, const void *policy)
{
	int64_t got;

	if (value->in_policy == offsetof(struct policy, max_slowdown))
		return policy_slowdown(policy);
	memcpy(&got, (const char *)policy + value->in_policy, sizeof(got));
	return got;
}

void policy_value_set(const struct policy_value *value, void *event, int64_t to)
{
	memcpy((char *)event + value->in_event, &to, sizeof(to));
}
