/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <string.h>

#include "base/check.h"
#include "engine/local/fact_file.h"

static void check_same(const struct engine_fact *fact)
{
	AUTO_BUF text = BUF_INIT;
	struct engine_fact again;
	struct err err;

	fact_format(&text, fact);
	assert_int_equal(strcspn(text.data, "\n"), text.size - 1);
	assert_int_equal(fact_parse(text.data, text.size, &again, &err), 0);
	assert_int_equal(again.kind, fact->kind);
	assert_int_equal(again.attempt, fact->attempt);
	assert_int_equal(again.rank, fact->rank);
	assert_int_equal(again.time_ms, fact->time_ms);
	assert_int_equal(again.pid, fact->pid);
	assert_int_equal(again.cause, fact->cause);
	assert_int_equal(again.code, fact->code);
	assert_int_equal(again.signal, fact->signal);
	assert_int_equal(again.never_ran, fact->never_ran);
	assert_int_equal(again.memory_enforced, fact->memory_enforced);
	assert_int_equal(again.peak_memory_mib, fact->peak_memory_mib);
	assert_string_equal(again.text, fact->text);
	assert_string_equal(again.path, fact->path);
	assert_int_equal(again.number, fact->number);
	assert_int_equal(again.step, fact->step);
	assert_int_equal(again.checkpoint, fact->checkpoint);
	assert_true(again.bytes == fact->bytes);
}

static void every_kind_is_read_back_as_written(void **state)
{
	(void)state;
	check_same(&(struct engine_fact){ .kind = ENGINE_READY,
					  .attempt = UINT64_MAX,
					  .rank = 12,
					  .time_ms = 1,
					  .pid = 99,
					  .step = -1 });
	check_same(&(struct engine_fact){
		.kind = ENGINE_STARTED, .attempt = 1, .time_ms = INT64_MAX, .pid = 1, .step = -1 });
	check_same(&(struct engine_fact){ .kind = ENGINE_GONE,
					  .attempt = 1,
					  .text = "the machine was restarted",
					  .step = -1 });
	check_same(&(struct engine_fact){ .kind = ENGINE_REPORT,
					  .attempt = 1,
					  .number = 3,
					  .step = -1,
					  .checkpoint = true,
					  .bytes = INT64_C(1) << 53,
					  .path = "/a \"b\"\t" });
	check_same(&(struct engine_fact){ .kind = ENGINE_REPORT,
					  .attempt = 1,
					  .number = UINT64_MAX,
					  .step = INT64_C(1) << 53 });
	for (int cause = ENGINE_CAUSE_EXIT; cause <= ENGINE_CAUSE_MACHINE; cause++)
		check_same(&(struct engine_fact){ .kind = ENGINE_EXITED,
						  .attempt = 5,
						  .rank = 1,
						  .cause = (enum engine_cause)cause,
						  .code = 255,
						  .signal = 64,
						  .never_ran = true,
						  .memory_enforced = true,
						  .peak_memory_mib = 123456,
						  .text = "why\n\"so\"",
						  .step = -1 });
}

/* The longest record fits into the space that is taken for `exit` beforehand: escapes can make six
 * bytes of one. */
static void the_longest_texts_fit_their_line(void **state)
{
	struct engine_fact fact = { .kind = ENGINE_EXITED,
				    .cause = ENGINE_CAUSE_MEMORY,
				    .attempt = UINT64_MAX,
				    .rank = UINT32_MAX >> 1,
				    .step = -1 };
	AUTO_BUF text = BUF_INIT;

	(void)state;
	memset(fact.text, 1, sizeof(fact.text) - 1);
	fact_format(&text, &fact);
	assert_true(text.size <= FACT_TEXT_MAX);
	check_same(&fact);
}

static void what_a_newer_version_adds_is_skipped_and_nonsense_refused(void **state)
{
	static const char newer[] =
		"{\"kind\":\"ready\",\"attempt\":4,\"rank\":0,\"new\":{\"a\":[1]},\"time_ms\":7}";
	static const char *const bad[] = { "",
					   "{",
					   "[]",
					   "{\"kind\":\"other\"}",
					   "{\"rank\":-99999999999}",
					   "{\"cause\":3}",
					   "{} {}" };
	struct engine_fact fact;
	struct err err;

	(void)state;
	assert_int_equal(fact_parse(newer, sizeof(newer) - 1, &fact, &err), 0);
	assert_int_equal(fact.attempt, 4);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(fact_parse(bad[i], strlen(bad[i]), &fact, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_read_back_as_written),
		cmocka_unit_test(the_longest_texts_fit_their_line),
		cmocka_unit_test(what_a_newer_version_adds_is_skipped_and_nonsense_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
