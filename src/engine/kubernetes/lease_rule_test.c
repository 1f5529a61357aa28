/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of the Lease, with several holders whose clocks have nothing to do with each other. */
#include "engine/kubernetes/lease_rule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/testing.h"
#include "engine/kubernetes/lease_read.h"

static struct lease_seen held_by(const char *holder, const char *version)
{
	struct lease_seen seen = { .exists = true, .lasts_ms = LEASE_LASTS_MS };

	snprintf(seen.holder, sizeof(seen.holder), "%s", holder);
	snprintf(seen.version, sizeof(seen.version), "%s", version);
	return seen;
}

static void a_lease_that_is_not_there_is_taken_at_once(void **state)
{
	struct lease_rule r;
	struct lease_seen seen = { 0 };

	(void)state;
	lease_rule_init(&r, "a");
	assert_int_equal(lease_rule_step(&r, true, 0), LEASE_LOOK);
	lease_rule_asked(&r, 0);
	lease_rule_saw(&r, &seen, 10);
	assert_int_equal(lease_rule_step(&r, true, 10), LEASE_WAIT);
	assert_int_equal(lease_rule_step(&r, true, 500), LEASE_WRITE);
	assert_int_equal(lease_rule_step(&r, false, 500), LEASE_LOOK);
	assert_false(lease_rule_may_write(&r, 500));
	lease_rule_asked(&r, 500);
	seen = held_by("a", "1");
	lease_rule_wrote(&r, &seen, 500, 900);
	assert_true(lease_rule_may_write(&r, 500 + LEASE_MAY_WRITE_MS - 1));
	assert_false(lease_rule_may_write(
		&r, 500 + LEASE_MAY_WRITE_MS)); /* from sending on, not from the answer */
}

static void one_that_is_renewed_is_left_alone_and_one_that_is_not_is_taken_after_8_s(void **state)
{
	struct lease_rule r;
	struct lease_seen seen = held_by("b", "1");
	char version[16];
	int64_t now = 0;

	(void)state;
	lease_rule_init(&r, "a");
	for (int i = 0; i < 50; i++, now += 2000) {
		snprintf(version, sizeof(version), "%d", i);
		seen = held_by("b", version);
		lease_rule_asked(&r, now);
		lease_rule_saw(&r, &seen, now);
		assert_int_not_equal(lease_rule_step(&r, true, now + 1999), LEASE_WRITE);
	}
	now -= 2000; /* seen to change last */
	lease_rule_asked(&r, now + 7900);
	lease_rule_saw(&r, &seen, now + 7900); /* the same: no change */
	assert_int_equal(lease_rule_next_ms(&r, true, now + 7900), now + 8000);
	assert_int_equal(lease_rule_step(&r, true, now + 7999), LEASE_WAIT);
	assert_int_equal(lease_rule_step(&r, true, now + 8000), LEASE_WRITE);
	seen.lasts_ms = 20000; /* its holder asks for more */
	r.seen = seen;
	assert_int_not_equal(lease_rule_step(&r, true, now + 8000), LEASE_WRITE);
}

static void one_that_was_given_back_is_taken_and_one_that_was_removed_is_not_at_once(void **state)
{
	struct lease_rule r;
	struct lease_seen seen = held_by("b", "1"), none = { 0 };

	(void)state;
	lease_rule_init(&r, "a");
	lease_rule_saw(&r, &seen, 0);
	assert_int_equal(lease_rule_step(&r, true, 1000), LEASE_LOOK);
	lease_rule_saw(&r, &none, 1000);
	assert_int_equal(lease_rule_step(&r, true, 2000), LEASE_LOOK);
	assert_int_equal(lease_rule_step(&r, true, 9000), LEASE_WRITE);
	seen = held_by("", "2");
	lease_rule_saw(&r, &seen, 2000);
	assert_int_equal(lease_rule_step(&r, true, 2000), LEASE_WRITE);
}

static void who_wants_it_no_more_gives_it_back_and_may_not_write_meanwhile(void **state)
{
	struct lease_rule r;
	struct lease_seen mine = held_by("a", "1"), nobody = held_by("", "2");

	(void)state;
	lease_rule_init(&r, "a");
	lease_rule_wrote(&r, &mine, 0, 5);
	assert_int_equal(lease_rule_step(&r, false, 10), LEASE_GIVE_BACK);
	lease_rule_asked(&r, 10);
	lease_rule_let_go(&r);
	assert_false(lease_rule_may_write(&r, 11));
	lease_rule_wrote(&r, &nobody, 10, 20);
	assert_false(lease_rule_may_write(&r, 21) || r.held || r.lost);
	assert_int_equal(lease_rule_step(&r, true, 600), LEASE_WRITE);
}

static void who_sees_another_holder_has_lost_it_for_good(void **state)
{
	struct lease_rule r;
	struct lease_seen mine = held_by("a", "1"), other = held_by("b", "2");

	(void)state;
	lease_rule_init(&r, "a");
	lease_rule_wrote(&r, &mine, 0, 5);
	lease_rule_refused(&r);
	assert_true(lease_rule_may_write(&r, 100)); /* by whom it was written is not known yet */
	assert_int_equal(lease_rule_step(&r, true, 100), LEASE_LOOK);
	lease_rule_saw(&r, &other, 200);
	assert_true(r.lost);
	assert_false(lease_rule_may_write(&r, 200));
	lease_rule_wrote(&r, &mine, 190, 300); /* an answer that comes late */
	assert_false(lease_rule_may_write(&r, 300));
	assert_int_equal(lease_rule_step(&r, true, 100000), LEASE_WAIT);
}

static void whose_time_ran_out_goes_on_when_nobody_took_it(void **state)
{
	struct lease_rule r;
	struct lease_seen mine = held_by("a", "1");

	(void)state;
	lease_rule_init(&r, "a");
	lease_rule_wrote(&r, &mine, 0, 5);
	assert_false(lease_rule_may_write(&r, 60000));
	assert_int_equal(lease_rule_step(&r, true, 60000), LEASE_WRITE);
	mine = held_by("a", "2");
	lease_rule_wrote(&r, &mine, 60000, 60005);
	assert_true(lease_rule_may_write(&r, 60010) && !r.lost);
}

/* --- several at once ------------------------------------------------------------------------------------------------ */

enum { DAEMONS = 3, STEPS = 400000 };

static struct server {
	struct lease_seen at;
	uint32_t version;
} server;

/* Each has its own clock, may be stopped, and its requests take their time and may get no answer. */
static struct other {
	struct lease_rule rule;
	char name[2];
	int64_t off_ms, stopped_until_ms;
	struct request {
		bool there, writes, drop;
		char version[LEASE_TEXT_MAX];
		int64_t arrives_ms, back_ms, sent_ms;
		bool arrived, taken;
		struct lease_seen answer;
	} request;
} others[DAEMONS];

static uint64_t random_state = 7;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((random_state >> 33) % below);
}

static void request_send(struct other *o, bool writes, int64_t now)
{
	if (o->request.there)
		return;
	o->request = (struct request){ .there = true,
				       .writes = writes,
				       .drop = draw(20) == 0,
				       .sent_ms = now + o->off_ms,
				       .arrives_ms = now + draw(draw(10) ? 30 : 1900) };
	o->request.back_ms = o->request.arrives_ms + draw(draw(10) ? 30 : 9000);
	memcpy(o->request.version, o->rule.seen.version, LEASE_TEXT_MAX);
	lease_rule_asked(&o->rule, now + o->off_ms);
}

static void request_arrives(struct other *o)
{
	struct request *q = &o->request;

	q->arrived = true;
	if (q->writes && strcmp(q->version, server.at.version) == 0) {
		char version[16];

		snprintf(version, sizeof(version), "%u", ++server.version);
		server.at = held_by(o->rule.me, version);
		q->taken = true;
	}
	q->answer = server.at;
}

static void request_back(struct other *o, int64_t now)
{
	const struct request q = o->request;

	o->request.there = false;
	if (q.drop)
		return;
	if (!q.writes)
		lease_rule_saw(&o->rule, &q.answer, now + o->off_ms);
	else if (q.taken)
		lease_rule_wrote(&o->rule, &q.answer, q.sent_ms, now + o->off_ms);
	else
		lease_rule_refused(&o->rule);
}

static void other_step(struct other *o, int64_t now)
{
	enum lease_step step;

	if (o->request.there && !o->request.arrived && o->request.arrives_ms <= now)
		request_arrives(o);
	if (o->stopped_until_ms > now)
		return;
	if (o->request.there && o->request.arrived && o->request.back_ms <= now)
		request_back(o, now);
	step = lease_rule_step(&o->rule, true, now + o->off_ms);
	if (step != LEASE_WAIT)
		request_send(o, step == LEASE_WRITE, now);
	if (draw(3000) == 0)
		o->stopped_until_ms = now + draw(20000);
	if (o->rule.lost)
		lease_rule_init(&o->rule, o->name); /* it ends, and is started anew */
}

/* Never two that may write; and when one is gone, another one soon may. */
static void of_several_at_most_one_may_write(void **state)
{
	int64_t led_ms = 0, taken = 0;
	int leader = -1;

	(void)state;
	for (int i = 0; i < DAEMONS; i++) {
		others[i].name[0] = (char)('a' + i);
		lease_rule_init(&others[i].rule, others[i].name);
		others[i].off_ms = (int64_t)draw(1000000000) - 500000000;
	}
	for (int64_t now = 0; now < (int64_t)STEPS * 10; now += 10) {
		int may = -1;

		for (int i = 0; i < DAEMONS; i++)
			other_step(&others[i], now);
		for (int i = 0; i < DAEMONS; i++) {
			if (!lease_rule_may_write(&others[i].rule, now + others[i].off_ms))
				continue;
			assert_int_equal(may, -1);
			may = i;
		}
		led_ms += may >= 0 ? 10 : 0;
		taken += may >= 0 && may != leader;
		leader = may >= 0 ? may : leader;
	}
	print_message("led %lld of %lld ms, changed hands %lld times\n", (long long)led_ms,
		      (long long)STEPS * 10, (long long)taken);
	assert_true(taken > 30);
	assert_true(led_ms > (int64_t)STEPS * 10 / 4);
}

static void what_the_api_server_gives_is_read(void **state)
{
	static const char text[] =
		"{\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"42\",\"annotations\":{\"a\":\"b\","
		"\"fairlead.dev/address\":\"h:\\/x\"}},\"spec\":{\"holderIdentity\":\"b\",\"leaseDurationSeconds\":9,"
		"\"acquireTime\":\"2026-01-02T03:04:05.000000Z\",\"renewTime\":null,\"leaseTransitions\":3}}";
	struct lease_seen seen;
	struct err err;

	(void)state;
	assert_int_equal(lease_read(text, strlen(text), &seen, &err), 0);
	assert_true(seen.exists);
	assert_string_equal(seen.holder, "b");
	assert_string_equal(seen.version, "42");
	assert_string_equal(seen.address, "h:/x");
	assert_int_equal(seen.lasts_ms, 9000);
	assert_int_equal(seen.transitions, 3);
	assert_int_equal(lease_read("{\"spec\":{\"holderIdentity\":null}}", 32, &seen, &err), 0);
	assert_string_equal(seen.holder, "");
	assert_true(lease_read("{\"spec\":", 8, &seen, &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lease_that_is_not_there_is_taken_at_once),
		cmocka_unit_test(
			one_that_is_renewed_is_left_alone_and_one_that_is_not_is_taken_after_8_s),
		cmocka_unit_test(
			one_that_was_given_back_is_taken_and_one_that_was_removed_is_not_at_once),
		cmocka_unit_test(who_wants_it_no_more_gives_it_back_and_may_not_write_meanwhile),
		cmocka_unit_test(who_sees_another_holder_has_lost_it_for_good),
		cmocka_unit_test(whose_time_ran_out_goes_on_when_nobody_took_it),
		cmocka_unit_test(of_several_at_most_one_may_write),
		cmocka_unit_test(what_the_api_server_gives_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
