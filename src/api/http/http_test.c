/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over real sockets: framing in every position, answers from other threads, where a request comes from. */
#include "api/http/http_testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/http/hostile.h"
#include "base/check.h"

static void requests_are_answered_over_both_sockets_on_one_connection(void **state)
{
	char out[4096];

	(void)state;
	for (int local = 0; local < 2; local++) {
		const int fd = dial(local);

		for (int i = 0; i < 3; i++) {
			SAY(fd, post);
			assert_true(answer(fd, out, sizeof out));
			assert_non_null(strstr(out, "POST /echo 5 hello"));
			assert_non_null(strstr(out, "X-Content-Type-Options: nosniff"));
			assert_non_null(strstr(out, "Cache-Control: no-store"));
		}
		SAY(fd,
		    "POST /later HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n");
		assert_true(answer(fd, out, sizeof out));
		assert_non_null(strstr(out, "POST /later 5 hello"));
		close(fd);
	}
}

/* The library's memory is sized for it; every field at its limit at once. */
static void a_head_of_the_largest_size_is_served(void **state)
{
	static char text[FRAMING_HEAD_MAX + 1], out[16384];

	(void)state;
	for (int local = 0; local < 2; local++) {
		const int fd = dial(local);

		for (int turn = 0; turn < 2; turn++) {
			size_t size = (size_t)snprintf(text, sizeof text,
						       "GET /%0*d HTTP/1.1\r\nHost: localhost\r\n",
						       FRAMING_TARGET_MAX - 1, 0);

			for (int i = 1; i < FRAMING_FIELDS_MAX - 1; i++)
				size += (size_t)snprintf(text + size, sizeof text - size,
							 "X-%d: %0112d\r\n", i, i);
			size += (size_t)snprintf(text + size, sizeof text - size, "Y: %0*d\r\n\r\n",
						 (int)(FRAMING_HEAD_MAX - size - 7), 0);
			assert_int_equal(size, FRAMING_HEAD_MAX);
			say(fd, text, size);
			assert_true(answer(fd, out, sizeof out));
			if (!strstr(out, " 200 "))
				fail_msg("%s", out);
		}
		close(fd);
	}
}

static void an_answer_just_before_the_suspension_is_sent(void **state)
{
	const struct timeval patience = { .tv_sec = 10 };
	char out[4096];
	const int fd = dial(true);

	(void)state;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
	for (int i = 0; i < 20; i++) {
		SAY(fd, "GET /between HTTP/1.1\r\nHost: localhost\r\n\r\n");
		assert_true(answer(fd, out, sizeof out));
		assert_non_null(strstr(out, "GET /between 0"));
	}
	close(fd);
}

static void answers_given_in_a_row_reach_every_client(void **state)
{
	char out[4096];
	int fd[ROW];

	(void)state;
	for (int i = 0; i < ROW; i++) {
		fd[i] = dial(true);
		SAY(fd[i], "GET /row HTTP/1.1\r\nHost: localhost\r\n\r\n");
	}
	for (int i = 0; i < ROW; i++) {
		assert_true(answer(fd[i], out, sizeof out));
		assert_non_null(strstr(out, "GET /row 0"));
	}
	for (int i = 0; i < ROW; i++) {
		SAY(fd[i], get); /* the connection goes on */
		assert_true(answer(fd[i], out, sizeof out));
		close(fd[i]);
	}
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	char out[4096];
	const int fd = dial(true);

	(void)state;
	SAY(fd,
	    "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(answer(fd, out, sizeof out));
	assert_non_null(strstr(out, "GET /later 0"));
	assert_true(answer(fd, out, sizeof out));
	assert_non_null(strstr(out, "GET /b 0"));
	close(fd);
}

static void hostile_case(const struct hostile *h, bool local, const char *before, bool in_pieces)
{
	char out[8192], status[16];
	const int fd = dial(local);
	bool answered;

	if (before) {
		/* The hostile one right behind, so that the library would have both at once. */
		char both[4096];
		const size_t size = strlen(before);

		memcpy(both, before, size);
		memcpy(both + size, h->text, h->size);
		if (in_pieces) {
			for (size_t i = 0; i < size + h->size; i++)
				say(fd, both + i, 1);
		} else {
			say(fd, both, size + h->size);
		}
		assert_true(answer(fd, out, sizeof out));
		if (!strstr(out, "200 OK"))
			fail_msg("\"%s\": the good request before it got: %s", h->name, out);
	} else if (in_pieces) {
		for (size_t i = 0; i < h->size; i++)
			say(fd, h->text + i, 1);
	} else {
		say(fd, h->text, h->size);
	}
	answered = answer(fd, out, sizeof out);
	if (!answered)
		fail_msg("\"%s\": no answer", h->name);
	snprintf(status, sizeof status, " %d ", framing_problem_http(h->problem));
	if (!strstr(out, status) || !strstr(out, framing_problem_text(h->problem)) ||
	    !strstr(out, "Connection: close"))
		fail_msg("\"%s\": answered with %s", h->name, out);
	if (!at_end(fd))
		fail_msg("\"%s\": the connection stays open", h->name);
	close(fd);
	assert_int_equal(atomic_load(&smuggled), 0);
}

static void every_hostile_request_is_refused_and_closes_its_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		for (int way = 0; way < 4; way++)
			hostile_case(&hostile[i], way & 1, NULL, way & 2);
}

static void every_hostile_request_is_refused_as_the_second_of_a_connection(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		for (int way = 0; way < 4; way++) {
			hostile_case(&hostile[i], way & 1, get, way & 2);
			hostile_case(&hostile[i], way & 1, post, way & 2);
		}
}

/* Nothing behind a refused request is looked at: not even a well-formed one. */
static void nothing_is_smuggled_behind_a_refused_request(void **state)
{
	static const char behind[] = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		char text[4096];
		const int fd = dial(i & 1);

		memcpy(text, hostile[i].text, hostile[i].size);
		memcpy(text + hostile[i].size, behind, sizeof behind - 1);
		say(fd, text, hostile[i].size + sizeof behind - 1);
		if (!closes(fd))
			fail_msg("\"%s\": the connection stays open", hostile[i].name);
		close(fd);
	}
	assert_int_equal(atomic_load(&smuggled), 0);
}

static void a_body_over_the_limit_is_told_so_even_to_who_sends_it_all_first(void **state)
{
	static char block[1 << 16];
	char out[4096];

	(void)state;
	for (int local = 0; local < 2; local++) {
		const int fd = dial(local);

		SAY(fd,
		    "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10485760\r\n\r\n");
		for (int i = 0; i < 160; i++)
			say(fd, block, sizeof block);
		assert_true(answer(fd, out, sizeof out));
		assert_non_null(strstr(out, " 413 "));
		assert_true(at_end(fd));
		close(fd);
	}
	assert_int_equal(atomic_load(&handled), 0);
}

static void a_refusal_at_the_head_reads_past_the_body(void **state)
{
	char out[4096];
	const int fd = dial(true);

	(void)state;
	SAY(fd, "POST /closed-door HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello");
	assert_true(answer(fd, out, sizeof out));
	assert_non_null(strstr(out, " 401 "));
	assert_non_null(strstr(out, "WWW-Authenticate: Bearer"));
	assert_int_equal(atomic_load(&handled), 0);
	SAY(fd, get);
	assert_true(answer(fd, out, sizeof out));
	assert_non_null(strstr(out, "GET /echo"));
	close(fd);
}

static void foreign_hosts_and_origins_are_refused(void **state)
{
	static const struct {
		const char *text;
		int status;
	} cases[] = {
		{ "GET /a HTTP/1.1\r\nHost: localhost:7070\r\n\r\n", 200 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1:7070\r\n\r\n", 200 },
		{ "GET /a HTTP/1.1\r\nHost: [::1]:7070\r\n\r\n", 200 },
		{ "GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: 127.0.0.1.5\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: 127.1\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: 0.0.0.0\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: localhost:\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: localhost:70x\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: user@localhost\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: localhost, evil.example\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: [::1\r\n\r\n", 403 },
		{ "GET /a HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n\r\n",
		  200 },
	};
	static const char *const methods[] = { "POST", "PUT", "DELETE", "PATCH" };
	static const struct {
		const char *fields;
		int status;
	} origins[] = {
		{ "", 200 },
		{ "Origin: http://localhost:7070\r\n", 200 },
		{ "Origin: http://evil.example\r\n", 403 },
		{ "Origin: null\r\n", 403 },
		{ "Origin: https://localhost:7070\r\n", 403 },
		{ "Origin: http://localhost:7071\r\n", 403 },
		{ "Origin: http://localhost:7070.evil.example\r\n", 403 },
		{ "Sec-Fetch-Site: cross-site\r\n", 403 },
		{ "Sec-Fetch-Site: same-site\r\n", 403 },
		{ "Sec-Fetch-Site: same-origin\r\n", 200 },
		{ "Origin: http://localhost:7070\r\nOrigin: http://localhost:7070\r\n", 400 },
	};
	char out[4096], text[1024], status[16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const int fd = dial(false);

		say(fd, cases[i].text, strlen(cases[i].text));
		assert_true(answer(fd, out, sizeof out));
		snprintf(status, sizeof status, " %d ", cases[i].status);
		if (!strstr(out, status))
			fail_msg("%s got %s", cases[i].text, out);
		close(fd);
	}
	for (size_t m = 0; m < ARRAY_SIZE(methods); m++)
		for (size_t i = 0; i < ARRAY_SIZE(origins); i++) {
			const int fd = dial(false);

			snprintf(
				text, sizeof text,
				"%s /a HTTP/1.1\r\nHost: localhost:7070\r\n%sContent-Length: 0\r\n\r\n",
				methods[m], origins[i].fields);
			say(fd, text, strlen(text));
			assert_true(answer(fd, out, sizeof out));
			snprintf(status, sizeof status, " %d ", origins[i].status);
			if (!strstr(out, status))
				fail_msg("%s got %s", text, out);
			close(fd);
		}
}

static void ambiguous_targets_are_refused(void **state)
{
	static const char *const bad[] = { "/a/../b",     "/a/./b", "/a//b",    "/..",
					   "/a/%2e%2e/b", "/a%2fb", "/a%5cb",   "/a%00b",
					   "/a%0ab",      "/a%",    "/a%4",     "/a%zz",
					   "/%c0%af",     "/%ff",   "/a/",      "//a",
					   "/a?x=1&x=2",  "/a?=1",  "/a?x=%00", "/a?x=%e0%80%80" };
	char out[4096], text[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const int fd = dial(false);

		snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", bad[i]);
		say(fd, text, strlen(text));
		assert_true(answer(fd, out, sizeof out));
		if (!strstr(out, " 400 "))
			fail_msg("%s got %s", bad[i], out);
		close(fd);
	}
	assert_int_equal(atomic_load(&handled), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			requests_are_answered_over_both_sockets_on_one_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(a_head_of_the_largest_size_is_served, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_answer_just_before_the_suspension_is_sent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(answers_given_in_a_row_reach_every_client, setup,
						teardown),
		cmocka_unit_test_setup_teardown(pipelined_requests_are_answered_in_order, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			every_hostile_request_is_refused_and_closes_its_connection, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			every_hostile_request_is_refused_as_the_second_of_a_connection, setup,
			teardown),
		cmocka_unit_test_setup_teardown(nothing_is_smuggled_behind_a_refused_request, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_body_over_the_limit_is_told_so_even_to_who_sends_it_all_first, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_refusal_at_the_head_reads_past_the_body, setup,
						teardown),
		cmocka_unit_test_setup_teardown(foreign_hosts_and_origins_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(ambiguous_targets_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
