/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that go on: logs and events. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "api/testing_form.h"
#include "base/check.h"

static int setup(void **state)
{
	(void)state;
	testing_start();
	return 0;
}
static int teardown(void **state)
{
	(void)state;
	testing_stop();
	return 0;
}
static int fresh(void **state)
{
	(void)state;
	testing_reset();
	return 0;
}

static uint32_t seed = 777;

static uint32_t dice(uint32_t sides)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % sides;
}

/* --- logs -------------------------------------------------------------------------------------------------------------------------- */

static void log_write(uint32_t job, uint32_t attempt, const char *stream, const char *what)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%u", testing_logs(), job);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u", testing_logs(), job, attempt);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u/0.%s", testing_logs(), job, attempt, stream);
	file = fopen(path, "a");
	assert_non_null(file);
	fputs(what, file);
	fclose(file);
}

/* What an earlier test wrote under the same numbers. */
static void logs_clear(uint32_t job, uint32_t attempt)
{
	static const char *const names[] = { "out", "err", "order" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof path, "%s/%u/%u/0.%s", testing_logs(), job, attempt,
			 names[i]);
		(void)unlink(path);
	}
}

static void order_write(uint32_t job, uint32_t attempt, const uint64_t *records, size_t count)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof path, "%s/%u/%u/0.order", testing_logs(), job, attempt);
	file = fopen(path, "a");
	assert_non_null(file);
	assert_int_equal(fwrite(records, sizeof *records, count, file), count);
	fclose(file);
}

static uint64_t record(bool is_err, uint64_t offset)
{
	return offset << 1 | is_err;
}

static void shows(const char *who, uint32_t job, const char *query, const char *wanted)
{
	char path[128];
	struct answer a;

	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?%s", job, query);
	a = testing_get(who, path, 200);
	assert_string_equal(a.text, wanted);
	answer_free(&a);
}

static void both_streams_come_in_the_order_in_which_they_were_written(void **state)
{
	const uint32_t id = testing_job("rita", "red", "default", 1);
	const uint64_t order[] = { record(false, 0), record(true, 0), record(false, 3),
				   record(true, 3), record(false, 6) };
	uint32_t attempt;
	char path[128];
	struct answer a;

	(void)state;
	testing_engine(id);
	attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	logs_clear(id, attempt);
	log_write(id, attempt, "out", "o1\no2\n");
	log_write(id, attempt, "err", "e1\ne2\n");
	shows("rita", id, "stream=both",
	      "o1\no2\ne1\ne2\n"); /* of an earlier release: the order is not known */
	order_write(id, attempt, order, 5);
	shows("rita", id, "stream=both", "o1\ne1\no2\ne2\n");
	log_write(id, attempt, "out", "open");
	shows("rita", id, "stream=both", "o1\ne1\no2\ne2\nopen");
	shows("rita", id, "stream=both&lines=1", "open");
	shows("rita", id, "stream=both&lines=3", "o2\ne2\nopen");
	shows("rita", id, "stream=both&lines=5", "o1\ne1\no2\ne2\nopen");
	shows("rita", id, "stream=both&lines=6", "o1\ne1\no2\ne2\nopen");
	shows("rita", id, "stream=both&offset=3&stderr_offset=4", "o2\n2\nopen");
	shows("rita", id, "stream=both&offset=-4", "\ne2\nopen");
	shows("rita", id, "stream=both&frames=1&lines=3",
	      "stdout 3 3\no2\nstderr 3 3\ne2\nstdout 6 4\nopen");
	shows("rita", id, "stream=both&number=1", "o1\ne1\no2\ne2\nopen");
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?number=2", id);
	a = testing_get("rita", path, 404);
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?frames=1", id);
	a = testing_get("rita", path, 400);
	answer_free(&a);
}

/* The last lines of long streams, against a plain list of all of them. */
static void the_last_lines_of_both_streams_are_the_last_that_were_written(void **state)
{
	enum { LINES = 40000, LINE = 11 };
	const uint32_t id = testing_job("rita", "red", "default", 1);
	static const uint32_t wanted[] = { 1, 7, 500, 9000, 30000, LINES };
	static char all[LINES][LINE + 1];
	static char text[LINES * LINE + 1];
	uint64_t offset[2] = { 0 };
	uint32_t attempt;
	int last = -1;
	char query[64];
	FILE *files[3];

	(void)state;
	testing_engine(id);
	attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	logs_clear(id, attempt);
	log_write(id, attempt, "out", "");
	for (int i = 0; i < 3; i++) {
		static const char *const names[] = { "out", "err", "order" };

		snprintf(query, sizeof query, "%s/%u/%u/0.%s", testing_logs(), id, attempt,
			 names[i]);
		files[i] = fopen(query, "w");
		assert_non_null(files[i]);
	}
	for (uint32_t i = 0; i < LINES; i++) {
		/* Long runs of stdout, then some of stderr: the two reach back differently far. */
		const int stream = i % 5000 > 4900 ? (int)dice(2) : 0;
		const uint64_t mark = record(stream, offset[stream]);

		snprintf(all[i], sizeof all[i], "%c%09u\n", stream ? 'e' : 'o', i);
		if (stream != last)
			assert_int_equal(fwrite(&mark, sizeof mark, 1, files[2]), 1);
		last = stream;
		fputs(all[i], files[stream]);
		offset[stream] += LINE;
	}
	for (int i = 0; i < 3; i++)
		fclose(files[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		size_t size = 0;

		for (uint32_t k = LINES - wanted[i]; k < LINES; k++, size += LINE)
			memcpy(text + size, all[k], LINE);
		text[size] = '\0';
		snprintf(query, sizeof query, "stream=both&lines=%u", wanted[i]);
		shows("rita", id, query, text);
	}
}

static void logs_are_read_and_followed(void **state)
{
	const uint32_t id = testing_job("rita", "red", "default", 1);
	uint32_t attempt;
	char path[128], out[4096] = "";
	struct answer a;
	struct event e;
	size_t have = 0;
	int fd;

	(void)state;
	testing_engine(id);
	attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	logs_clear(id, attempt);
	log_write(id, attempt, "out", "hello\nworld\n");
	log_write(id, attempt, "err", "oops\n");
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "hello\nworld\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?stream=stderr", id);
	a = testing_get("lena", path, 200);
	assert_string_equal(a.text, "oops\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?offset=6", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "world\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?offset=-6", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "world\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?lines=1", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "world\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?lines=2", id);
	a = testing_get("rita", path, 200);
	assert_string_equal(a.text, "hello\nworld\n");
	answer_free(&a);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0?lines=1000001", id);
	a = testing_get("rita", path, 400);
	answer_free(&a);

	/* Followed: what comes later comes too, and the end of the rank is the end. */
	fd = testing_dial(false);
	have = (size_t)snprintf(
		out, sizeof out,
		"GET /api/v1/jobs/%u/logs/0?follow=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n",
		id, testing_token("rita"));
	assert_int_equal(send(fd, out, have, MSG_NOSIGNAL), have);
	have = 0;
	out[0] = '\0';
	while (!strstr(out, "world")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
		out[have] = '\0';
	}
	log_write(id, attempt, "out", "later\n");
	while (!strstr(out, "later")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
		out[have] = '\0';
	}
	e = event_make(EVENT_TASK_EXITED, 0, "engine");
	e.task_exited.attempt = attempt;
	testing_apply(&e);
	while (!strstr(out, "0\r\n\r\n")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
		out[have] = '\0';
	}
	close(fd);
}

static void logs_never_lead_out_of_their_folder(void **state)
{
	static const char *const pieces[] = {
		"..",    "%2e%2e",     "%2e.", "..%2f",    "%2f",          "%5c",
		"..%5c", "%252e%252e", "%00",  "0%00.out", "%c0%ae%c0%ae", "%e0%80%ae",
		"etc",   "passwd",     "0",    "0.out",    "..;",          "....",
		"~",     "file:",      "%0a",  "-1",       "1e0",          "0x0"
	};
	const uint32_t id = testing_job("rita", "red", "default", 1);
	uint32_t attempt;
	char path[512], target[256], out[512];

	(void)state;
	testing_engine(id);
	attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	/* A file outside, and links to it where logs would be. */
	snprintf(out, sizeof out, "%s/../secret", testing_logs());
	{
		FILE *file = fopen(out, "w");

		assert_non_null(file);
		fputs("canary-9000\n", file);
		fclose(file);
	}
	snprintf(path, sizeof path, "%s/%u", testing_logs(), id);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u", testing_logs(), id, attempt);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/%u/%u/0.out", testing_logs(), id, attempt);
	snprintf(target, sizeof target, "../../../secret");
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
	snprintf(path, sizeof path, "/api/v1/jobs/%u/logs/0", id);
	{
		struct answer a = testing_call("rita", "GET", path, NULL, NULL);

		assert_null(strstr(a.text, "canary"));
		answer_free(&a);
	}
	/* Paths made of pieces that other servers fell for; nothing of them is served. */
	for (int i = 0; i < 1000; i++) {
		size_t n = (size_t)snprintf(path, sizeof path, "/api/v1/jobs/%s/logs/",
					    dice(2) ? pieces[dice(ARRAY_SIZE(pieces))] : "1");
		const uint32_t parts = 1 + dice(5);
		struct answer a;

		for (uint32_t k = 0; k < parts; k++)
			n += (size_t)snprintf(path + n, sizeof path - n, "%s%s",
					      k ? (dice(2) ? "/" : "%2f") : "",
					      pieces[dice(ARRAY_SIZE(pieces))]);
		if (dice(3) == 0)
			snprintf(path + n, sizeof path - n, "?stream=%s",
				 pieces[dice(ARRAY_SIZE(pieces))]);
		a = testing_call("rita", "GET", path, NULL, NULL);
		assert_null(strstr(a.text, "canary"));
		assert_null(strstr(a.text, "root:"));
		if (strstr(path, "..") || strstr(path, "%"))
			assert_true(a.status >= 400 && a.status < 500);
		answer_free(&a);
	}
}

/* --- events -------------------------------------------------------------------------------------------------------------------------- */

struct listener {
	int fd;
	char *text;
	size_t size, room;
};

static struct listener listen_begin(const char *user, const char *query, const char *headers)
{
	struct listener l = { .fd = testing_dial(false), .room = 16 << 20 };
	char out[512];
	const int size = snprintf(
		out, sizeof out,
		"GET /api/v1/events%s HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n%s\r\n",
		query, testing_token(user), headers);

	l.text = calloc(1, l.room);
	assert_int_equal(send(l.fd, out, (size_t)size, MSG_NOSIGNAL), size);
	return l;
}

static void listen_until(struct listener *l, const char *part)
{
	while (!strstr(l->text, part)) {
		const ssize_t got = recv(l->fd, l->text + l->size, l->room - 1 - l->size, 0);

		if (got <= 0)
			fail_msg("the stream ended before \"%s\": %s", part, l->text);
		l->size += (size_t)got;
	}
}

static void listen_end(struct listener *l)
{
	close(l->fd);
	free(l->text);
}

/* Ids of a stream's frames rise by one and none is missing from `first` on (tokens' events are not for everybody). */
static void ids_check(const struct listener *l, uint64_t first, uint64_t last, bool gaps)
{
	uint64_t next = first;

	for (const char *at = strstr(l->text, "id: "); at; at = strstr(at + 1, "\nid: ")) {
		const uint64_t id = strtoull(at + (at[0] == '\n' ? 5 : 4), NULL, 10);

		if (gaps ? id < next : id != next)
			fail_msg("event %llu came where %llu was due", (unsigned long long)id,
				 (unsigned long long)next);
		next = id + 1;
		if (id == last)
			return;
	}
	fail_msg("event %llu did not come", (unsigned long long)last);
}

static void a_stream_begins_where_it_is_asked_and_misses_nothing(void **state)
{
	struct listener l = listen_begin("ada", "?after=0", ""), later;
	char mark[64];
	uint64_t middle;

	(void)state;
	listen_until(&l, "event: queue-set");
	/* More, while it may still be catching up. */
	for (int i = 0; i < 50; i++)
		testing_job("rita", "red", "default", 1);
	middle = testing_last_seq();
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)middle);
	listen_until(&l, mark);
	ids_check(&l, 1, middle, false);
	snprintf(mark, sizeof mark, "Last-Event-ID: %llu\r\n", (unsigned long long)middle - 10);
	later = listen_begin("ada", "", mark);
	for (int i = 0; i < 10; i++)
		testing_job("rita", "red", "default", 1);
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq());
	listen_until(&later, mark);
	ids_check(&later, middle - 9, testing_last_seq(), false);
	listen_until(&l, mark);
	ids_check(&l, 1, testing_last_seq(), false);
	assert_non_null(strstr(l.text, "Content-Type: text/event-stream"));
	assert_null(strstr(l.text, "\"hash\""));
	listen_end(&l);
	listen_end(&later);
}

static void a_stream_from_beyond_the_end_is_told_to_look_anew(void **state)
{
	char mark[64];
	struct listener l = listen_begin("ada", "?after=4000000000", "");
	uint64_t next;

	(void)state;
	listen_until(&l, "event: resync");
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq() + 1);
	testing_job("rita", "red", "default", 1);
	next = testing_last_seq();
	listen_until(&l, mark);
	assert_true(next > 0 && strstr(l.text, "event: resync") < strstr(l.text, mark));
	listen_end(&l);
}

static void a_stream_without_a_place_begins_now_and_hides_what_is_private(void **state)
{
	struct listener l = listen_begin("vera", "", "");
	struct event e = event_make(EVENT_CHECKPOINT_SAVED, 0, "engine");
	char mark[64];
	uint32_t id;

	(void)state;
	listen_until(&l, "retry: 1000");
	id = testing_job("rita", "red", "default", 1);
	testing_engine(id);
	e.checkpoint_saved.job = id;
	e.checkpoint_saved.attempt = job_get(testing_facts(), (struct job_id){ id })->attempt.v;
	e.checkpoint_saved.number = 1;
	e.checkpoint_saved.report = 1;
	e.checkpoint_saved.path = "/home/rita/canary-path";
	testing_apply(&e);
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq());
	listen_until(&l, mark);
	listen_until(&l, "checkpoint-saved");
	testing_job("rita", "red", "default", 1);
	snprintf(mark, sizeof mark, "\nid: %llu\n", (unsigned long long)testing_last_seq());
	listen_until(&l, mark);
	assert_null(strstr(l.text, "canary-path"));
	assert_null(strstr(l.text, "user-set"));
	listen_end(&l);
}

static void a_client_that_does_not_read_is_told_to_read_again(void **state)
{
	struct listener l = listen_begin("ada", "", "");
	const uint32_t id = testing_job("rita", "red", "default", 1);
	struct event e = event_make(EVENT_JOB_HELD, 0, "rita");
	static char reason[500];
	struct answer a;

	(void)state;
	listen_until(&l, "retry: 1000");
	memset(reason, 'x', sizeof reason - 1);
	e.job_held.job = id;
	e.job_held.reason = reason;
	/* Until the hub has met a full client: then the reader is behind for good, whatever socket buffers take. */
	for (int batch = 0; batch < 40; batch++) {
		for (int i = 0; i < 500; i++)
			testing_apply(&e);
		for (uint64_t seen = 0; seen < 2;
		     seen++) { /* two passes of the hub: a batch each */
			a = form_get("ada", "/api/v1/status", "Status");
			answer_free(&a);
		}
		usleep(20000); /* lets batches form; nothing depends on how many */
	}
	/* Reads on, while nothing happens any more: the hub finds room and says so. */
	listen_until(&l, "event: resync");
	testing_job("rita", "red", "default", 1);
	listen_until(&l, "\"name\":\"work\"");
	ids_check(&l, 1,
		  0 + strtoull(strstr(l.text, "event: resync") ? strstr(l.text, "id: ") + 4 : "0",
			       NULL, 10),
		  true);
	listen_end(&l);
}

static void a_page_of_events_goes_on_at_next(void **state)
{
	uint64_t after = 0, seen = 0;
	struct answer a;

	(void)state;
	for (int i = 0; i < 30; i++)
		testing_job("rita", "red", "default", 1);
	do {
		char path[64];

		snprintf(path, sizeof path, "/api/v1/events?limit=7&after=%llu",
			 (unsigned long long)after);
		a = form_get("ada", path, "EventPage");
		seen += json_array_size(json_object_get(a.json, "events"));
		after = (uint64_t)answer_number(&a, "next");
		answer_free(&a);
	} while (after);
	assert_int_equal(seen, testing_last_seq());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(both_streams_come_in_the_order_in_which_they_were_written,
				       fresh),
		cmocka_unit_test_setup(
			the_last_lines_of_both_streams_are_the_last_that_were_written, fresh),
		cmocka_unit_test_setup(logs_are_read_and_followed, fresh),
		cmocka_unit_test_setup(logs_never_lead_out_of_their_folder, fresh),
		cmocka_unit_test_setup(a_stream_begins_where_it_is_asked_and_misses_nothing, fresh),
		cmocka_unit_test_setup(
			a_stream_without_a_place_begins_now_and_hides_what_is_private, fresh),
		cmocka_unit_test_setup(a_client_that_does_not_read_is_told_to_read_again, fresh),
		cmocka_unit_test_setup(a_page_of_events_goes_on_at_next, fresh),
		cmocka_unit_test_setup(a_stream_from_beyond_the_end_is_told_to_look_anew, fresh),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
