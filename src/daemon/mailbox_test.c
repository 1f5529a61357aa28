/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/clock.h"
#include "daemon/mailbox.h"

enum { SENDERS = 4, EACH = 20000 };

static struct mailbox box;
static struct message sent[SENDERS][EACH];

static void *send_all(void *argument)
{
	int sender = (int)(intptr_t)argument;
	for (int i = 0; i < EACH; i++) {
		sent[sender][i].kind = i;
		mailbox_send(&box, &sent[sender][i]);
	}
	return NULL;
}

static void every_message_arrives_once_and_in_its_senders_order(void **state)
{
	(void)state;
	mailbox_init(&box);
	pthread_t threads[SENDERS];
	for (int i = 0; i < SENDERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, send_all, (void *)(intptr_t)i),
				 0);
	int next[SENDERS] = { 0 };
	int got = 0;
	while (got < SENDERS * EACH) {
		for (struct message *m = mailbox_take(&box, 100, -1); m; m = m->next) {
			int sender = (int)((m - &sent[0][0]) / EACH);
			assert_int_equal(m->kind, next[sender]);
			next[sender]++;
			got++;
		}
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(mailbox_size(&box), 0);
	assert_null(mailbox_take(&box, 1, 0));
	mailbox_deinit(&box);
}

static void no_more_than_asked_for_is_taken(void **state)
{
	(void)state;
	mailbox_init(&box);
	struct message m[3] = { { .kind = 0 }, { .kind = 1 }, { .kind = 2 } };
	for (int i = 0; i < 3; i++)
		mailbox_send(&box, &m[i]);
	struct message *two = mailbox_take(&box, 2, 0);
	assert_ptr_equal(two, &m[0]);
	assert_ptr_equal(two->next, &m[1]);
	assert_null(two->next->next);
	assert_ptr_equal(mailbox_take(&box, 2, 0), &m[2]);
	mailbox_deinit(&box);
}

static void *take_one(void *argument)
{
	struct message **ret = argument;
	while (!*ret)
		*ret = mailbox_take(&box, 8, -1);
	return NULL;
}

static void what_was_added_arrives_with_the_wake_or_before(void **state)
{
	(void)state;
	mailbox_init(&box);
	struct message m[2] = { { .kind = 0 }, { .kind = 1 } };
	struct message *got = NULL;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, take_one, &got), 0);
	mailbox_add(&box, &m[0]);
	mailbox_add(&box, &m[1]);
	mailbox_wake(&box);
	pthread_join(thread, NULL);
	assert_ptr_equal(got, &m[0]);
	if (!got->next)
		got->next = mailbox_take(&box, 8, 0);
	assert_ptr_equal(got->next, &m[1]);
	assert_int_equal(mailbox_size(&box), 0);
	mailbox_deinit(&box);
}

static void a_poke_wakes_without_a_message(void **state)
{
	(void)state;
	mailbox_init(&box);
	mailbox_poke(&box);
	assert_null(mailbox_take(&box, 1, -1));
	mailbox_deinit(&box);
}

static void what_can_wait_comes_after_its_time_and_with_what_can_not(void **state)
{
	(void)state;
	mailbox_init(&box);
	struct message m[3] = { { .kind = 0 }, { .kind = 1 }, { .kind = 2 } };
	const int64_t until_ns = clock_mono_ns() + 20 * INT64_C(1000000);

	mailbox_send_soon(&box, &m[0]);
	mailbox_send_soon(&box, &m[1]);
	assert_ptr_equal(mailbox_gather(&box, 1, -1, until_ns), &m[0]);
	assert_true(clock_mono_ns() >= until_ns);
	/* What was left behind waits no longer. */
	assert_ptr_equal(mailbox_gather(&box, 8, -1, INT64_MAX), &m[1]);
	mailbox_send_soon(&box, &m[0]);
	mailbox_send(&box, &m[2]);
	assert_ptr_equal(mailbox_gather(&box, 8, -1, INT64_MAX), &m[0]);
	assert_ptr_equal(m[0].next, &m[2]);
	/* Who does not gather takes all, and so does who has something to do himself. */
	mailbox_send_soon(&box, &m[1]);
	assert_ptr_equal(mailbox_take(&box, 8, -1), &m[1]);
	mailbox_send_soon(&box, &m[0]);
	assert_ptr_equal(mailbox_gather(&box, 8, 1, INT64_MAX), &m[0]);
	mailbox_deinit(&box);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_arrives_once_and_in_its_senders_order),
		cmocka_unit_test(no_more_than_asked_for_is_taken),
		cmocka_unit_test(what_was_added_arrives_with_the_wake_or_before),
		cmocka_unit_test(what_can_wait_comes_after_its_time_and_with_what_can_not),
		cmocka_unit_test(a_poke_wakes_without_a_message),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
