/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "api/policy_table.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/conf.h"
#include "base/parse.h"
#include "core/model/event.h"
#include "core/model/facts.h"
#include "core/scheduling/admit/admit.h"
#include "sim/scenario.h"

static void must_be_in_the_table(void *context, const char *name, char type)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);

	(*(size_t *)context)++;
	assert_int_equal(type, 'i');
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, values[i].shown) == 0)
			return;
	fail_msg("%s of the record policy-set is not in policy.def", name);
}

static void every_value_of_the_record_is_in_the_table(void **state)
{
	size_t count, seen = 0;

	(void)state;
	policy_values(&count);
	event_fields(EVENT_POLICY_SET, &seen, must_be_in_the_table);
	assert_int_equal(seen, count);
}

static int64_t standard_of(const struct policy_value *value)
{
	struct err err = { 0 };
	int64_t number;

	if (value->form == POLICY_SWITCH)
		return strcmp(value->standard, "yes") == 0;
	if (value->form == POLICY_WORDS)
		return policy_word_find(value, value->standard);
	if (value->form == POLICY_DURATION)
		assert_int_equal(parse_duration(value->standard, &number, &err), 0);
	else
		assert_int_equal(sscanf(value->standard, "%" SCNd64, &number), 1);
	return number;
}

static void the_defaults_are_those_of_the_core(void **state)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);
	struct facts facts;

	(void)state;
	facts_init(&facts);
	for (size_t i = 0; i < count; i++)
		if (policy_value_get(&values[i], &facts.policy) != standard_of(&values[i]))
			fail_msg("%s is %" PRId64, values[i].name,
				 policy_value_get(&values[i], &facts.policy));
	facts_deinit(&facts);
}

static void words_have_the_numbers_of_the_core(void **state)
{
	size_t count, words = 0;
	const struct policy_value *values = policy_values(&count);
	char word[POLICY_WORD_MAX];
	static const struct {
		const char *name;
		const char *(*word)(int64_t);
		int64_t last;
	} known[] = {
		{ "share_gpus", share_gpus_name, SHARE_GPUS_OFF },
		{ "defragment", defragment_name, DEFRAGMENT_OFF },
	};

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (values[i].form != POLICY_WORDS)
			continue;
		assert_true(words < ARRAY_SIZE(known));
		assert_string_equal(values[i].name, known[words].name);
		for (int64_t n = 1; n <= known[words].last; n++) {
			assert_string_equal(policy_word(&values[i], n, word), known[words].word(n));
			assert_int_equal(policy_word_find(&values[i], known[words].word(n)), n);
		}
		assert_string_equal(policy_word(&values[i], 0, word), "");
		assert_string_equal(policy_word(&values[i], known[words].last + 1, word), "");
		assert_int_equal(policy_word_find(&values[i], "all"), 0);
		words++;
	}
	assert_int_equal(words, ARRAY_SIZE(known));
}

static void each_value_is_set_at_its_own_place(void **state)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct event event = event_policy_make(0, "ada");
		char wanted[64];
		struct buf text = BUF_INIT;

		policy_value_set(&values[i], &event.policy_set, 7);
		event_encode(&event, &text);
		snprintf(wanted, sizeof(wanted), "\"%s\":7", values[i].shown);
		if (!strstr(buf_text(&text), wanted))
			fail_msg("%s is not in %s", wanted, buf_text(&text));
		buf_deinit(&text);
	}
}

static bool is_admitted(struct facts *facts, const struct policy_value *value, int64_t to)
{
	struct event event = event_policy_make(0, "ada");
	struct arena arena;
	struct err err = { 0 };
	int rc;

	arena_init(&arena, 1 << 16);
	policy_value_set(value, &event.policy_set, to);
	rc = admit_policy_set(&(struct admission){ .facts = facts, .arena = &arena, .err = &err },
			      &event.policy_set);
	arena_deinit(&arena);
	return rc >= 0;
}

/* What a page says is the range is it, at both ends. In the record -1 is "as before"; for keep_ended 0 is that too, so there the API alone refuses it. */
static void the_core_takes_the_range_that_is_said_and_no_more(void **state)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);
	struct facts facts;

	(void)state;
	facts_init(&facts);
	for (size_t i = 0; i < count; i++) {
		const struct policy_value *v = &values[i];

		if (v->form == POLICY_WORDS)
			continue;
		const bool zero = !v->min || strcmp(v->name, "keep_ended") == 0;

		if (is_admitted(&facts, v, 0) != zero || !is_admitted(&facts, v, v->min) ||
		    !is_admitted(&facts, v, v->max) || is_admitted(&facts, v, v->max + 1))
			fail_msg("%s is not %s to the core", v->name, v->range);
	}
	facts_deinit(&facts);
}

static void flags_are_names_with_hyphens_and_nothing_is_left_unsaid(void **state)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		const char *name = values[i].name, *flag = values[i].flag;

		assert_int_equal(strlen(name), strlen(flag));
		for (size_t at = 0; name[at]; at++)
			assert_int_equal(flag[at], name[at] == '_' ? '-' : name[at]);
		assert_true(strlen(values[i].brief) > 20 && strlen(values[i].more) > 20);
		assert_non_null(strchr(values[i].more, '.'));
	}
}

static struct scenario_policy policy_of(struct arena *arena, const char *policy)
{
	struct scenario scenario;
	struct conf **documents;
	struct err err = { 0 };
	size_t n;
	const char *text = arena_printf(
		arena,
		"name: x\ncluster: {nodes: [{name: n0, gpus: 1}]}\n%s\nexpect:\n  - total_running_gpus: 0\n",
		policy);

	if (conf_parse("t.yaml", text, strlen(text), arena, &documents, &n, &err) < 0 ||
	    scenario_read("t.yaml", documents[0], false, arena, &scenario, &err) < 0)
		fail_msg("%s: %s", policy, err.text);
	return scenario.policy;
}

/* The example is another value than the scenario's default, so that it can be seen to arrive. */
static void each_key_of_a_scenario_file_is_one_that_it_has(void **state)
{
	size_t count, keys = 0;
	const struct policy_value *values = policy_values(&count);
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < count; i++) {
		struct scenario_policy plain = policy_of(&arena, ""), said;

		if (!values[i].scenario[0])
			continue;
		said = policy_of(&arena, arena_printf(&arena, "policy: {%s}", values[i].scenario));
		if (memcmp(&plain, &said, sizeof(plain)) == 0)
			fail_msg("%s changes nothing", values[i].scenario);
		keys++;
	}
	assert_int_equal(keys, count - 1);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_value_of_the_record_is_in_the_table),
		cmocka_unit_test(the_defaults_are_those_of_the_core),
		cmocka_unit_test(words_have_the_numbers_of_the_core),
		cmocka_unit_test(each_value_is_set_at_its_own_place),
		cmocka_unit_test(the_core_takes_the_range_that_is_said_and_no_more),
		cmocka_unit_test(flags_are_names_with_hyphens_and_nothing_is_left_unsaid),
		cmocka_unit_test(each_key_of_a_scenario_file_is_one_that_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
