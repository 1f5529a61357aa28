/* SPDX-License-Identifier: Apache-2.0 */
/* The server over real sockets: framing in every position, deadlines, limits, answers from other threads, streams. */
#include "api/http.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "api/hostile.h"
#include "base/check.h"

static struct http_server *server;
static _Atomic int smuggled, handled;
static char socket_path[64];

struct later {
	pthread_t thread;
	struct http_request *request;
};

static void echo(struct http_request *r)
{
	struct buf out = BUF_INIT;
	size_t size;
	const char *body = http_body(r, &size);

	buf_addf(&out, "%s %s %zu ", http_method(r), http_path(r), size);
	buf_add(&out, body, size < 100 ? size : 100);
	http_reply(r, 200, "text/plain", &out);
}

static void *echo_later(void *argument)
{
	echo(argument);
	return NULL;
}

/* Requests for /row wait for each other; then one thread answers them all: so few that only the end of the row tells. */
enum { ROW = 20 };
static struct http_request *row[ROW];
static _Atomic int row_count;
static _Thread_local bool passing;

static void *row_answer(void *argument)
{
	(void)argument;
	http_answers_hold();
	for (int i = 0; i < ROW; i++)
		echo(row[i]);
	http_answers_release();
	return NULL;
}

static void row_add(struct http_request *r)
{
	pthread_t thread;
	const int at = atomic_fetch_add(&row_count, 1);

	row[at] = r;
	if (at < ROW - 1)
		return;
	assert_int_equal(pthread_create(&thread, NULL, row_answer, NULL), 0);
	pthread_detach(thread);
}

/*
 * A request for /between is answered by another thread after the server has looked whether it is, and before its connection
 * is suspended. Where the server calls the library for that, this stands between: it waits for the answer.
 */
static struct {
	_Atomic bool wanted, suspending, answered;
} between;

static void *between_answer(void *argument)
{
	while (!atomic_load(&between.suspending))
		sched_yield();
	echo(argument);
	atomic_store(&between.answered, true);
	return NULL;
}

static void between_add(struct http_request *r)
{
	pthread_t thread;

	atomic_store(&between.suspending, false);
	atomic_store(&between.answered, false);
	atomic_store(&between.wanted, true);
	assert_int_equal(pthread_create(&thread, NULL, between_answer, r), 0);
	pthread_detach(thread);
}

void MHD_suspend_connection(struct MHD_Connection *connection)
{
	void (*real)(struct MHD_Connection *);

	*(void **)&real = dlsym(RTLD_NEXT, "MHD_suspend_connection");
	assert_non_null(real);
	if (atomic_exchange(&between.wanted, false)) {
		atomic_store(&between.suspending, true);
		while (!atomic_load(&between.answered))
			sched_yield();
	}
	real(connection);
}

static void pass(void *context, bool begins)
{
	(void)context;
	assert_true(passing != begins);
	passing = begins;
}

/* A stream's life, as a user of one has to keep it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct http_stream *stream;
	int closed;
} live = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0 };

static void live_closed(void *context, struct http_stream *stream)
{
	(void)context;
	pthread_mutex_lock(&live.lock);
	assert_ptr_equal(stream, live.stream);
	live.stream = NULL;
	live.closed++;
	pthread_cond_broadcast(&live.changed);
	pthread_mutex_unlock(&live.lock);
}

static void handle(void *context, struct http_request *r)
{
	pthread_t thread;

	(void)context;
	assert_true(passing);
	atomic_fetch_add(&handled, 1);
	if (!strcmp(http_path(r), "/smuggled"))
		atomic_fetch_add(&smuggled, 1);
	if (!strcmp(http_path(r), "/later")) {
		assert_int_equal(pthread_create(&thread, NULL, echo_later, r), 0);
		pthread_detach(thread);
	} else if (!strcmp(http_path(r), "/row")) {
		row_add(r);
	} else if (!strcmp(http_path(r), "/between")) {
		between_add(r);
	} else if (!strcmp(http_path(r), "/stream")) {
		pthread_mutex_lock(&live.lock);
		live.stream = http_stream_begin(r, "text/event-stream", 100000, NULL, live_closed);
		pthread_cond_broadcast(&live.changed);
		pthread_mutex_unlock(&live.lock);
	} else if (!strcmp(http_path(r), "/large")) {
		struct buf out = BUF_INIT;

		buf_reserve(&out, 64 << 20);
		memset(out.data, 'x', 64 << 20);
		out.size = 64 << 20;
		http_reply(r, 200, "text/plain", &out);
	} else {
		echo(r);
	}
}

static int head(void *context, struct http_request *r)
{
	struct err err = { 0 };

	(void)context;
	if (strcmp(http_path(r), "/closed-door") != 0)
		return 0;
	err_set(&err, ERR_UNAUTHENTICATED, "no token");
	http_reply_error(r, &err);
	return 1;
}

static void start(struct http_options options)
{
	struct err err = { 0 };

	snprintf(socket_path, sizeof socket_path, "/tmp/fl-http-test-%d", (int)getpid());
	options.unix_path = socket_path;
	options.listen = "127.0.0.1:0";
	options.handle = handle;
	options.head = head;
	options.pass = pass;
	atomic_store(&row_count, 0);
	atomic_store(&smuggled, 0);
	atomic_store(&handled, 0);
	live.closed = 0;
	if (http_start(&options, &server, &err) < 0)
		fail_msg("%s", err.text);
}

static int setup(void **state)
{
	(void)state;
	start((struct http_options){ 0 });
	return 0;
}

static int setup_hasty(void **state)
{
	(void)state;
	start((struct http_options){ .request_ms = 400, .idle_ms = 400, .send_ms = 400 });
	return 0;
}

static int setup_small(void **state)
{
	(void)state;
	start((struct http_options){ .connections_max = 4, .peer_connections_max = 3 });
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	http_stop(server);
	server = NULL;
	return 0;
}

static int dial(bool local)
{
	struct sockaddr_un u = { .sun_family = AF_UNIX };
	struct sockaddr_in t = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)http_port(server)) };
	const int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

	t.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	snprintf(u.sun_path, sizeof u.sun_path, "%s", socket_path);
	assert_int_equal(local ? connect(fd, (struct sockaddr *)&u, sizeof u)
			       : connect(fd, (struct sockaddr *)&t, sizeof t),
			 0);
	return fd;
}

static void say(int fd, const char *text, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const ssize_t sent = send(fd, text + at, size - at, MSG_NOSIGNAL);

		if (sent < 0)
			return; /* the server closed: the answer tells */
		at += (size_t)sent;
	}
}

/* Reads one answer (by its Content-Length); false at the connection's end. Static text, valid until the next call. */
static bool answer(int fd, char *out, size_t room)
{
	size_t have = 0, want = 0;

	while (have < room - 1) {
		char *end, *length;
		const ssize_t got = recv(fd, out + have, want ? want - have : 1, 0);

		if (got <= 0)
			return false;
		have += (size_t)got;
		out[have] = '\0';
		if (want && have == want)
			return true;
		end = want ? NULL : strstr(out, "\r\n\r\n");
		if (end) {
			length = strstr(out, "Content-Length: ");
			want = (size_t)(end + 4 - out) +
			       (length ? strtoul(length + 16, NULL, 10) : 0);
			assert_true(want < room);
			if (have == want)
				return true;
		}
	}
	return false;
}

static bool at_end(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) <= 0;
}

/* Waits for the server's word without a fixed time: poll with the test's own limit. */
static bool closes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char out[4096];

	while (poll(&p, 1, 30000) > 0)
		if (recv(fd, out, sizeof out, 0) <= 0)
			return true;
	return false;
}

#define SAY(fd, text) say(fd, text, sizeof(text) - 1)

static const char get[] = "GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char post[] =
	"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello";

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
							 "X-%d: %0300d\r\n", i, i);
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

static void a_client_that_sends_slowly_is_cut_however_steadily(void **state)
{
	const int fd = dial(false), idle = dial(true), body = dial(true);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char out[4096];

	(void)state;
	SAY(body, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\n");
	for (size_t i = 0;; i++) {
		/* A byte whenever nothing came for a moment: the connection is never quiet for as long as its deadline. */
		if (poll(&p, 1, 20) > 0)
			break;
		if (send(fd, i < 36 ? get + i : "x", 1, MSG_NOSIGNAL) < 0)
			break;
		(void)!send(body, "x", 1, MSG_NOSIGNAL);
		assert_true(i < 2000);
	}
	assert_true(recv(fd, out, sizeof out, 0) > 0);
	assert_non_null(strstr(out, " 408 "));
	assert_true(closes(fd));
	assert_true(closes(body));
	assert_true(closes(idle));
	assert_int_equal(atomic_load(&handled), 0);
	close(fd);
	close(idle);
	close(body);
}

static void a_client_that_does_not_take_its_answer_is_cut(void **state)
{
	const int fd = dial(true);
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	(void)state;
	SAY(fd, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_int_equal(poll(&p, 1, 30000), 1);
	close(fd);
}

/* A connection that is answered. One that was closed just before counts until the server has seen it:
 * then this one is refused, and another is tried. */
static int dial_let_in(bool local)
{
	char out[4096];

	for (;;) {
		const int fd = dial(local);

		(void)!send(fd, get, sizeof get - 1, MSG_NOSIGNAL);
		if (answer(fd, out, sizeof out) && strstr(out, " 200 "))
			return fd;
		close(fd);
	}
}

static void connections_over_a_limit_are_told_so(void **state)
{
	char out[4096];
	int fd[5];

	(void)state;
	/* TCP: one address, a share of three. */
	for (int i = 0; i < 3; i++)
		fd[i] = dial_let_in(false);
	fd[3] = dial(false);
	assert_true(answer(fd[3], out, sizeof out));
	assert_non_null(strstr(out, " 503 "));
	assert_true(closes(fd[3]));
	close(fd[3]);
	/* The daemon's own account has no share, only the whole limit of four. */
	fd[3] = dial_let_in(true);
	fd[4] = dial(true);
	assert_true(answer(fd[4], out, sizeof out));
	assert_non_null(strstr(out, " 503 "));
	for (int i = 0; i < 5; i++)
		close(fd[i]);
}

static struct http_stream *stream_wait(void)
{
	while (!live.stream)
		pthread_cond_wait(&live.changed, &live.lock);
	return live.stream;
}

static void streams_carry_what_is_sent_until_they_end(void **state)
{
	char out[4096] = "";
	const int fd = dial(false);
	size_t have = 0;

	(void)state;
	SAY(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
	pthread_mutex_lock(&live.lock);
	assert_true(http_stream_send(stream_wait(), "first\n", 6));
	pthread_mutex_unlock(&live.lock);
	while (!strstr(out, "first\n")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
	}
	pthread_mutex_lock(&live.lock);
	assert_true(http_stream_send(live.stream, "second\n", 7));
	http_stream_end(live.stream);
	pthread_mutex_unlock(&live.lock);
	while (!strstr(out, "0\r\n\r\n")) {
		const ssize_t got = recv(fd, out + have, sizeof out - 1 - have, 0);

		assert_true(got > 0);
		have += (size_t)got;
	}
	assert_non_null(strstr(out, "second\n"));
	pthread_mutex_lock(&live.lock);
	while (!live.closed)
		pthread_cond_wait(&live.changed, &live.lock);
	pthread_mutex_unlock(&live.lock);
	close(fd);
}

static void a_stream_takes_no_more_than_its_limit(void **state)
{
	static char block[10000];
	const int fd = dial(false);
	int taken = 0;

	(void)state;
	memset(block, 'x', sizeof block);
	SAY(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
	pthread_mutex_lock(&live.lock);
	(void)stream_wait();
	while (taken < 100000 && http_stream_send(live.stream, block, sizeof block))
		taken++;
	assert_true(taken < 100000);
	assert_true(http_stream_waiting(live.stream) <= 100000);
	pthread_mutex_unlock(&live.lock);
	close(fd);
	pthread_mutex_lock(&live.lock);
	while (!live.closed)
		pthread_cond_wait(&live.changed, &live.lock);
	pthread_mutex_unlock(&live.lock);
}

static void a_quiet_stream_whose_client_left_is_closed(void **state)
{
	const int fd = dial(true);

	(void)state;
	SAY(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
	pthread_mutex_lock(&live.lock);
	(void)stream_wait();
	pthread_mutex_unlock(&live.lock);
	close(fd);
	pthread_mutex_lock(&live.lock);
	while (!live.closed)
		pthread_cond_wait(&live.changed, &live.lock);
	pthread_mutex_unlock(&live.lock);
}

static void stopping_ends_streams_and_closes_connections(void **state)
{
	const int fd = dial(true), idle = dial(false);

	(void)state;
	SAY(fd, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
	pthread_mutex_lock(&live.lock);
	(void)stream_wait();
	pthread_mutex_unlock(&live.lock);
	http_stop(server);
	server = NULL;
	assert_int_equal(live.closed, 1);
	assert_true(closes(fd));
	assert_true(closes(idle));
	assert_int_equal(access(socket_path, F_OK), -1);
	close(fd);
	close(idle);
}

static void who_calls_over_the_socket_is_the_kernels_word(void **state)
{
	struct err err = { 0 };
	struct http_server *second;
	const struct http_options wide = { .listen = "0.0.0.0:0", .handle = handle };
	const struct http_options same = { .unix_path = socket_path, .handle = handle };
	char taken[32];
	struct http_options port = { .listen = taken, .handle = handle };

	(void)state;
	assert_true(http_start(&wide, &second, &err) < 0);
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "loopback"));
	assert_true(http_start(&same, &second, &err) < 0);
	assert_int_equal(err.code, ERR_CONFLICT);
	snprintf(taken, sizeof taken, "127.0.0.1:%d", http_port(server));
	assert_true(http_start(&port, &second, &err) < 0);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_non_null(strstr(err.text, "in use"));
	/* The refused second daemon took nothing away from the first. */
	close(dial(true));
}

/* As a process does that a killed daemon was just starting: it still holds the listening socket. */
static void what_still_answers_on_an_owned_path_is_left_from_before(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct http_options again = {
		.unix_path = socket_path, .unix_owned = true, .handle = handle, .pass = pass
	};
	const int held = socket(AF_UNIX, SOCK_STREAM, 0);
	struct err err = { 0 };
	char out[4096];
	int fd;

	(void)state;
	http_stop(server);
	server = NULL;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
	assert_int_equal(bind(held, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(held, 1), 0);
	if (http_start(&again, &server, &err) < 0)
		fail_msg("%s", err.text);
	fd = dial(true);
	SAY(fd, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	assert_true(answer(fd, out, sizeof out));
	close(fd);
	close(held);
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
		cmocka_unit_test_setup_teardown(a_client_that_sends_slowly_is_cut_however_steadily,
						setup_hasty, teardown),
		cmocka_unit_test_setup_teardown(a_client_that_does_not_take_its_answer_is_cut,
						setup_hasty, teardown),
		cmocka_unit_test_setup_teardown(connections_over_a_limit_are_told_so, setup_small,
						teardown),
		cmocka_unit_test_setup_teardown(streams_carry_what_is_sent_until_they_end, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_stream_takes_no_more_than_its_limit, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_quiet_stream_whose_client_left_is_closed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(stopping_ends_streams_and_closes_connections, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_still_answers_on_an_owned_path_is_left_from_before, setup, teardown),
		cmocka_unit_test_setup_teardown(who_calls_over_the_socket_is_the_kernels_word,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
