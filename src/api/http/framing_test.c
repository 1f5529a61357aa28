/* SPDX-License-Identifier: Apache-2.0 */
/* What is a request and what is refused, byte by byte and in every cut. */
#include "api/http/framing.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include "api/http/hostile.h"
#include "base/check.h"

/* Feeds in pieces of `step` bytes; counts heads and ends, stops at the first refusal. */
static enum framing_problem feed(const char *text, size_t size, size_t step, int *ret_heads,
				 int *ret_ends, size_t *ret_end)
{
	struct framing f;
	size_t at = 0;

	*ret_heads = *ret_ends = 0;
	*ret_end = 0;
	framing_init(&f, 1 << 20);
	while (at < size) {
		size_t piece = size - at < step ? size - at : step, used;

		switch (framing_feed(&f, text + at, piece, &used)) {
		case FRAMING_BAD: *ret_end = at + used; return (enum framing_problem)f.problem;
		case FRAMING_HEAD:
			++*ret_heads;
			if (f.body == FRAMING_BODY_NONE)
				++*ret_ends;
			break;
		case FRAMING_END: ++*ret_ends; break;
		case FRAMING_MORE: assert_int_equal(used, piece); break;
		}
		at += used;
		*ret_end = at;
	}
	return FRAMING_OK;
}

static void well_formed_requests_are_found_whole_in_every_cut(void **state)
{
	static const char text[] =
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
		"POST /a?b=c%20d HTTP/1.1\r\nhost:localhost\r\nContent-Length: 5\r\nX-Empty:\r\n\r\nhello"
		"PUT /x HTTP/1.1\r\nHost: \tlocalhost \t\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n00a\r\n0123456789\r\n0\r\n\r\n"
		"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";

	(void)state;
	for (size_t step = 1; step <= sizeof text - 1; step++) {
		int heads, ends;
		size_t end;

		assert_int_equal(feed(text, sizeof text - 1, step, &heads, &ends, &end),
				 FRAMING_OK);
		assert_int_equal(heads, 4);
		assert_int_equal(ends, 4);
	}
}

static void every_hostile_request_is_refused_for_its_reason_in_every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		for (size_t step = 1; step <= hostile[i].size; step++) {
			int heads, ends;
			size_t end;
			const enum framing_problem problem =
				feed(hostile[i].text, hostile[i].size, step, &heads, &ends, &end);

			if (problem != hostile[i].problem)
				fail_msg("\"%s\" in pieces of %zu: %s, expected: %s",
					 hostile[i].name, step, framing_problem_text(problem),
					 framing_problem_text(hostile[i].problem));
			assert_int_equal(heads, hostile[i].in_body ? 1 : 0);
			assert_int_equal(ends, 0);
		}
}

/* Each limit, and one more. */
static void limits_hold_to_the_byte(void **state)
{
	static char text[FRAMING_HEAD_MAX + 1024];
	int heads, ends, size;
	size_t end;

	(void)state;
	size = snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\nHost: a\r\n\r\n",
			FRAMING_TARGET_MAX - 1, 0);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_OK);
	assert_int_equal(heads, 1);
	size = snprintf(text, sizeof text, "GET /%0*d HTTP/1.1\r\nHost: a\r\n\r\n",
			FRAMING_TARGET_MAX, 0);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_TARGET_LONG);

	size = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX: %0*d\r\n\r\n",
			FRAMING_HEAD_MAX - 32, 0);
	assert_int_equal(size, FRAMING_HEAD_MAX);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_OK);
	size = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX: %0*d\r\n\r\n",
			FRAMING_HEAD_MAX - 31, 0);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_HEAD_LARGE);

	for (int fields = FRAMING_FIELDS_MAX; fields <= FRAMING_FIELDS_MAX + 1; fields++) {
		size = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n");
		for (int i = 1; i < fields; i++)
			size += snprintf(text + size, sizeof text - (size_t)size, "X-%d: 1\r\n", i);
		size += snprintf(text + size, sizeof text - (size_t)size, "\r\n");
		assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end),
				 fields == FRAMING_FIELDS_MAX ? FRAMING_OK : FRAMING_FIELDS_MANY);
	}
	size = snprintf(text, sizeof text,
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", 1 << 20);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_OK);
	size = snprintf(text, sizeof text,
			"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", (1 << 20) + 1);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_BODY_LARGE);
	size = snprintf(
		text, sizeof text,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n");
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_BODY_LARGE);
	size = snprintf(
		text, sizeof text,
		"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n");
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_BODY_LARGE);
	size = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%0*d: 1\r\n\r\n",
			FRAMING_NAME_MAX + 1, 0);
	assert_int_equal(feed(text, (size_t)size, 4096, &heads, &ends, &end), FRAMING_NAME_LONG);
}

static void no_byte_is_let_through_where_a_head_takes_none(void **state)
{
	(void)state;
	/* Every byte value in a field's value and in the target: only what the grammar names passes. */
	for (int c = 0; c < 256; c++) {
		char text[] = "GET /a HTTP/1.1\r\nHost: x\r\nX: a.b\r\n\r\n";
		int heads, ends;
		size_t end;
		const bool value_fine = c == '\t' || (c >= 0x20 && c != 0x7f);

		*strstr(text, ".b") = (char)c;
		if (c != '\r')
			assert_int_equal(feed(text, sizeof text - 1, 4096, &heads, &ends, &end) ==
						 FRAMING_OK,
					 value_fine);
		else
			assert_int_equal(feed(text, sizeof text - 1, 4096, &heads, &ends, &end),
					 FRAMING_LINE_END);
	}
	for (int c = 1; c < 256; c++) {
		char text[] = "GET /a.b HTTP/1.1\r\nHost: x\r\n\r\n";
		int heads, ends;
		size_t end;

		*strstr(text, ".b") = (char)c;
		if (c == ' ' || c >= 0x80 || c < 0x20 || strchr("\"#<>\\^`{|}\x7f", c))
			assert_int_not_equal(feed(text, sizeof text - 1, 4096, &heads, &ends, &end),
					     FRAMING_OK);
		else
			assert_int_equal(feed(text, sizeof text - 1, 4096, &heads, &ends, &end),
					 FRAMING_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(well_formed_requests_are_found_whole_in_every_cut),
		cmocka_unit_test(every_hostile_request_is_refused_for_its_reason_in_every_cut),
		cmocka_unit_test(limits_hold_to_the_byte),
		cmocka_unit_test(no_byte_is_let_through_where_a_head_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
