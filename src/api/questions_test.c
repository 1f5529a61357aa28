/* SPDX-License-Identifier: Apache-2.0 */
#include "api/questions.h"

#include <stdio.h>
#include <string.h>

#include "base/testing.h"

static void a_user_may_ask_so_often_and_no_more(void **state)
{
	static struct questions q;
	struct err err = { 0 };
	int64_t now_ms = 1000;

	(void)state;
	questions_init(&q);
	for (int i = 0; i < QUESTIONS_OF_USER; i++)
		assert_int_equal(questions_take(&q, "ann", now_ms, &err), 0);
	assert_int_equal(questions_take(&q, "ann", now_ms, &err), -ERR_QUOTA);
	assert_non_null(strstr(err.text, "user \"ann\" asks too often"));
	assert_non_null(strstr(err.text, "try again in 500 ms"));
	assert_int_equal(questions_take(&q, "bob", now_ms, &err), 0);
	/* Whoever is refused has taken nothing. */
	now_ms += QUESTIONS_USER_MS - 1;
	assert_int_equal(questions_take(&q, "ann", now_ms, &err), -ERR_QUOTA);
	assert_non_null(strstr(err.text, "try again in 1 ms"));
	now_ms++;
	assert_int_equal(questions_take(&q, "ann", now_ms, &err), 0);
	assert_int_equal(questions_take(&q, "ann", now_ms, &err), -ERR_QUOTA);
	/* After a pause as many as at first, however long it was. */
	now_ms += 1000 * (int64_t)QUESTIONS_OF_USER * QUESTIONS_USER_MS;
	for (int i = 0; i < QUESTIONS_OF_USER; i++)
		assert_int_equal(questions_take(&q, "ann", now_ms, &err), 0);
	assert_int_equal(questions_take(&q, "ann", now_ms, &err), -ERR_QUOTA);
	questions_deinit(&q);
}

static void all_together_may_ask_so_often_and_no_more(void **state)
{
	static struct questions q;
	struct err err = { 0 };
	char user[32];
	int64_t now_ms = 1000;
	uint32_t asked = 0;

	(void)state;
	questions_init(&q);
	for (int i = 0; i < QUESTIONS_OF_ALL; i++) {
		snprintf(user, sizeof(user), "u%d", i);
		assert_int_equal(questions_take(&q, user, now_ms, &err), 0);
	}
	assert_int_equal(questions_take(&q, "late", now_ms, &err), -ERR_QUOTA);
	assert_non_null(strstr(err.text, "all users together ask too often"));
	/* As many users as there can be: each has a row. */
	for (uint32_t i = 0; i < 5000; i++, now_ms += 10) {
		snprintf(user, sizeof(user), "v%u", i);
		asked += questions_take(&q, user, now_ms, &err) == 0;
	}
	assert_int_equal(asked, 5000 * 10 / QUESTIONS_ALL_MS - 1);
	questions_deinit(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_may_ask_so_often_and_no_more),
		cmocka_unit_test(all_together_may_ask_so_often_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
