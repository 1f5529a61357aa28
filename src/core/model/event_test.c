/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "core/model/event.h"
#include "core/model/random_events.h"

enum { ARENA_CAP = 16 << 20 };

static const enum event_kind all_kinds[] = {
#define EVENT(number, NAME, name, text, must) EVENT_##NAME,
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
};

enum { KINDS = sizeof(all_kinds) / sizeof(all_kinds[0]) };

static int decode(enum event_kind kind, const char *text, struct arena *arena, struct event *ret,
		  struct err *err)
{
	return event_decode(kind, 9, 1000, text, strlen(text), arena, ret, err);
}

/* --- equality, written anew for each field: the codec's own tables are what is tested -------------- */

static void same_list(const int64_t *a, uint32_t a_count, const int64_t *b, uint32_t b_count)
{
	assert_int_equal(a_count, b_count);
	for (uint32_t i = 0; i < a_count; i++)
		assert_true(a[i] == b[i]);
}

static void same_event(const struct event *a, const struct event *b)
{
	assert_true(a->seq == b->seq);
	assert_true(a->time_ms == b->time_ms);
	assert_int_equal(a->kind, b->kind);
	assert_string_equal(a->actor, b->actor);
	switch (a->kind) {
	case EVENT_NONE:
	case EVENT_KIND_LIMIT: fail(); break;
#define EVENT(number, NAME, name, text, must)                                                      \
	case EVENT_##NAME: {                                                                       \
		const struct event_##name *x = &a->name, *y = &b->name;                            \
		(void)x;                                                                           \
		(void)y;
#define INT(f) assert_true(x->f == y->f);
#define TEXT(f) assert_string_equal(x->f, y->f);
#define INTS(f) same_list(x->f, x->f##_count, y->f, y->f##_count);
#define END                                                                                        \
	break;                                                                                     \
	}
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END
	}
}

static void every_kind_comes_back_as_it_was(void **state)
{
	struct random random = { 20240501 };
	struct arena arena;
	AUTO_BUF text = BUF_INIT;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	for (uint32_t i = 0; i < 10000; i++) {
		struct event event, back;
		struct err err = { 0 };

		arena_reset(&arena);
		buf_clear(&text);
		event = random_fields(&random, all_kinds[i % KINDS], &arena);
		event_encode(&event, &text);
		if (event_decode(event.kind, event.seq, event.time_ms, text.data, text.size, &arena,
				 &back, &err) < 0)
			fail_msg("%s: %s", text.data, err.text);
		same_event(&event, &back);
	}
	arena_deinit(&arena);
}

static void an_event_reads_like_this(void **state)
{
	int64_t nodes[] = { 3, 4 }, masks[] = { 1, 255 };
	struct event event = event_make(EVENT_ATTEMPT_PLACED, 1000, "fairlead");
	AUTO_BUF text = BUF_INIT;

	(void)state;
	event.attempt_placed.job = 12;
	event.attempt_placed.attempt = 7;
	event.attempt_placed.nodes = nodes;
	event.attempt_placed.masks = masks;
	event.attempt_placed.nodes_count = event.attempt_placed.masks_count = 2;
	event_encode(&event, &text);
	assert_string_equal(
		buf_text(&text),
		"{\"actor\":\"fairlead\",\"job\":12,\"attempt\":7,\"nodes\":[3,4],\"masks\":[1,255]}");
}

static void what_is_empty_is_left_out(void **state)
{
	struct event event = event_make(EVENT_JOB_SUBMITTED, 0, "");
	AUTO_BUF text = BUF_INIT;

	(void)state;
	event_encode(&event, &text);
	assert_string_equal(buf_text(&text), "{}");
}

static void what_is_missing_reads_as_empty(void **state)
{
	struct arena arena;
	struct event event;
	struct err err;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	assert_int_equal(decode(EVENT_JOB_SUBMITTED, "{}", &arena, &event, &err), 0);
	assert_string_equal(event.actor, "");
	assert_string_equal(event.job_submitted.name, "");
	assert_int_equal(event.job_submitted.depends_count, 0);
	assert_true(event.job_submitted.job == 0);
	assert_true(event.seq == 9 && event.time_ms == 1000);
	arena_deinit(&arena);
}

static void fields_of_a_later_release_are_passed_over(void **state)
{
	static const char text[] =
		"{\"later\":{\"a\":[1,{\"b\":null}]},\"job\":5,\"also\":[1.5,\"x\"],\"reason\":\"why\",\"flag\":true}";
	struct arena arena;
	struct event event;
	struct err err;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	assert_int_equal(decode(EVENT_JOB_HELD, text, &arena, &event, &err), 0);
	assert_true(event.job_held.job == 5);
	assert_string_equal(event.job_held.reason, "why");
	arena_deinit(&arena);
}

static void fields_come_in_any_order(void **state)
{
	struct arena arena;
	struct event event;
	struct err err;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	assert_int_equal(
		decode(EVENT_TASK_STARTED,
		       "{\"at_ms\":4,\"pid\":3,\"rank\":2,\"actor\":\"engine\",\"attempt\":1}",
		       &arena, &event, &err),
		0);
	assert_true(event.task_started.attempt == 1 && event.task_started.rank == 2 &&
		    event.task_started.pid == 3);
	assert_true(event.task_started.at_ms == 4);
	assert_string_equal(event.actor, "engine");
	arena_deinit(&arena);
}

static void a_kind_of_a_later_release_is_named_in_the_error(void **state)
{
	static const uint32_t unknown[] = {
		0, 9, 29, EVENT_KIND_LIMIT, EVENT_KIND_LIMIT + 1, UINT32_MAX
	};
	struct arena arena;
	struct event event;
	struct err err;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		char number[32];

		snprintf(number, sizeof(number), "kind %u,", unknown[i]);
		assert_null(event_info(unknown[i]));
		assert_int_equal(event_decode(unknown[i], 77, 0, "{}", 2, &arena, &event, &err),
				 -(int)ERR_UNSUPPORTED);
		assert_non_null(strstr(err.text, number));
		assert_non_null(strstr(err.text, "record 77"));
	}
	arena_deinit(&arena);
}

static void wrong_types_are_refused(void **state)
{
	static const char *const bad[] = {
		"{\"job\":\"5\"}",
		"{\"job\":1.5}",
		"{\"job\":1e3}",
		"{\"job\":[1]}",
		"{\"job\":null}",
		"{\"job\":true}",
		"{\"job\":9223372036854775808}",
		"{\"job\":-9223372036854775809}",
		"{\"name\":5}",
		"{\"name\":null}",
		"{\"depends\":5}",
		"{\"depends\":{}}",
		"{\"depends\":[\"1\"]}",
		"{\"depends\":[1,[2]]}",
		"{\"depends\":[1,null]}",
		"{\"actor\":5}",
		"{\"job\":5",
		"{\"job\":5,}",
		"[]",
		"",
		"5",
		"{\"job\":5}{}",
		"{\"name\":\"a\\u0000b\"}",
		"{\"name\":\"\xff\"}",
		"{\"depends\":[1,2",
		"{\"depends\":[1 2]}",
	};
	struct arena arena;
	struct event event;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };

		if (decode(EVENT_JOB_SUBMITTED, bad[i], &arena, &event, &err) >= 0)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(strstr(err.text, "record 9 (job-submitted)"));
		assert_true(decode(EVENT_JOB_SUBMITTED, bad[i], &arena, &event, NULL) < 0);
	}
	arena_deinit(&arena);
}

static int decode_text_of(size_t size, const char *unit, struct arena *arena, struct event *ret,
			  struct err *err)
{
	AUTO_BUF text = BUF_INIT;

	buf_adds(&text, "{\"reason\":\"");
	for (size_t i = 0; i < size; i++)
		buf_adds(&text, unit);
	buf_adds(&text, "\"}");
	return event_decode(EVENT_JOB_HELD, 9, 0, text.data, text.size, arena, ret, err);
}

static void a_text_has_a_limit(void **state)
{
	struct arena arena;
	struct event event;
	struct err err;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	assert_int_equal(decode_text_of(EVENT_TEXT_MAX, "x", &arena, &event, &err), 0);
	assert_int_equal(strlen(event.job_held.reason), EVENT_TEXT_MAX);
	assert_int_equal(decode_text_of(EVENT_TEXT_MAX, "\\u0041", &arena, &event, &err), 0);
	assert_int_equal(strlen(event.job_held.reason), EVENT_TEXT_MAX);
	assert_true(decode_text_of(EVENT_TEXT_MAX + 1, "x", &arena, &event, &err) < 0);
	assert_non_null(strstr(err.text, "512"));
	assert_true(decode_text_of(EVENT_TEXT_MAX + 1, "\\u0041", &arena, &event, &err) < 0);
	assert_true(decode_text_of(EVENT_TEXT_MAX, "\\u00e4", &arena, &event, &err) < 0);
	arena_deinit(&arena);
}

static int decode_list_of(uint32_t count, struct arena *arena, struct event *ret, struct err *err)
{
	AUTO_BUF text = BUF_INIT;

	buf_adds(&text, "{\"depends\":[");
	for (uint32_t i = 0; i < count; i++)
		buf_adds(&text, i ? ",7" : "7");
	buf_adds(&text, "]}");
	return event_decode(EVENT_JOB_SUBMITTED, 9, 0, text.data, text.size, arena, ret, err);
}

static void a_list_has_a_limit(void **state)
{
	struct arena arena;
	struct event event;
	struct err err;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	assert_int_equal(decode_list_of(EVENT_LIST_MAX, &arena, &event, &err), 0);
	assert_int_equal(event.job_submitted.depends_count, EVENT_LIST_MAX);
	assert_true(event.job_submitted.depends[EVENT_LIST_MAX - 1] == 7);
	assert_true(decode_list_of(EVENT_LIST_MAX + 1, &arena, &event, &err) < 0);
	assert_non_null(strstr(err.text, "65536"));
	arena_deinit(&arena);
}

static void cut_and_changed_records_never_crash(void **state)
{
	struct random random = { 5 };
	struct arena arena;
	AUTO_BUF text = BUF_INIT;
	uint32_t refused = 0;

	(void)state;
	arena_init(&arena, ARENA_CAP);
	for (uint32_t i = 0; i < 20000; i++) {
		struct event event, back;

		arena_reset(&arena);
		buf_clear(&text);
		event = random_fields(&random, all_kinds[i % KINDS], &arena);
		event_encode(&event, &text);
		if (i & 1)
			text.size = random_below(&random, (uint32_t)text.size);
		else
			text.data[random_below(&random, (uint32_t)text.size)] ^=
				(char)(1 << random_below(&random, 8));
		refused += event_decode(event.kind, 1, 0, text.data, text.size, &arena, &back,
					NULL) < 0;
	}
	assert_true(refused > 10000); /* each cut, and most flips */
	arena_deinit(&arena);
}

struct seen {
	char text[512];
};

static void note_field(void *context, const char *name, char type)
{
	struct seen *seen = context;
	size_t size = strlen(seen->text);

	snprintf(seen->text + size, sizeof(seen->text) - size, "%s:%c ", name, type);
}

static void an_event_is_of_its_first_number(void **state)
{
	struct event placed = event_make(EVENT_ATTEMPT_PLACED, 0, "fairlead"),
		     started = event_make(EVENT_DAEMON_STARTED, 0, "fairlead");

	(void)state;
	placed.attempt_placed.job = 7;
	placed.attempt_placed.attempt = 9;
	assert_int_equal(event_subject(&placed), 7);
	started.kind = EVENT_NONE;
	assert_int_equal(event_subject(&started), 0);
}

static void the_table_tells_names_numbers_and_fields(void **state)
{
	struct seen seen = { "" };

	(void)state;
	event_fields(EVENT_ATTEMPT_PLACED, &seen, note_field);
	assert_string_equal(
		seen.text,
		"job:i attempt:i nodes:l masks:l resume_number:i likely_ms:i safe_ms:i parts:l parts_mib:l near_data:i near_home:i bandwidth_mbps:i slowdown_permille:i slices:l transfer_ms:i transfer_micro:i ");
	assert_string_equal(event_info(EVENT_ATTEMPT_PLACED)->name, "attempt-placed");
	assert_int_equal(event_info(40)->kind, EVENT_ATTEMPT_PLACED);
	assert_true(event_info(EVENT_JOB_SUBMITTED)->must_understand);
	assert_false(event_info(EVENT_PROGRESS)->must_understand);
	seen.text[0] = '\0';
	event_fields(9, &seen, note_field);
	assert_string_equal(seen.text, "");
	for (int i = 0; i < KINDS; i++) {
		assert_true(all_kinds[i] < EVENT_KIND_LIMIT);
		assert_int_equal(event_info(all_kinds[i])->kind, all_kinds[i]);
	}
}

static void a_policy_made_is_as_before_in_each_number(void **state)
{
	struct event event = event_policy_make(50, "ada");
	struct seen seen = { "" };
	struct buf text = { 0 };
	int numbers = 0, kept = 0;

	(void)state;
	event_fields(EVENT_POLICY_SET, &seen, note_field);
	for (const char *at = seen.text; (at = strstr(at, ":i ")); at++)
		numbers++;
	event_encode(&event, &text);
	for (const char *at = buf_text(&text); (at = strstr(at, ":-1")); at++)
		kept++;
	assert_true(numbers >= 13);
	assert_int_equal(kept, numbers);
	assert_int_equal(event.time_ms, 50);
	assert_string_equal(event.actor, "ada");
	buf_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_made_is_as_before_in_each_number),
		cmocka_unit_test(every_kind_comes_back_as_it_was),
		cmocka_unit_test(an_event_reads_like_this),
		cmocka_unit_test(what_is_empty_is_left_out),
		cmocka_unit_test(what_is_missing_reads_as_empty),
		cmocka_unit_test(fields_of_a_later_release_are_passed_over),
		cmocka_unit_test(fields_come_in_any_order),
		cmocka_unit_test(a_kind_of_a_later_release_is_named_in_the_error),
		cmocka_unit_test(wrong_types_are_refused),
		cmocka_unit_test(a_text_has_a_limit),
		cmocka_unit_test(a_list_has_a_limit),
		cmocka_unit_test(cut_and_changed_records_never_crash),
		cmocka_unit_test(the_table_tells_names_numbers_and_fields),
		cmocka_unit_test(an_event_is_of_its_first_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
