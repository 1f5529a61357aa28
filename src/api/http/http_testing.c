/* SPDX-License-Identifier: Apache-2.0 */
#include "api/http/http_testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <microhttpd.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"

struct http_server *server;
_Atomic int smuggled, handled;
char socket_path[64];

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

struct late late;

int pthread_join(pthread_t thread, void **ret)
{
	int (*real)(pthread_t, void **);

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_join");
	assert_non_null(real);
	atomic_fetch_add(&late.joins, 1);
	return real(thread, ret);
}

void pass(void *context, bool begins)
{
	(void)context;
	assert_true(passing != begins);
	passing = begins;
	if (!begins && atomic_exchange(&late.lingers, false))
		while (atomic_load(&late.joins) < LATE_JOINS)
			sched_yield();
}

/* Holds the network thread until `late.request` was answered, and then, in pass, until it is waited for. */
static void last(struct http_request *r)
{
	atomic_store(&late.busy, true);
	while (!atomic_load(&late.answered))
		sched_yield();
	atomic_store(&late.lingers, true);
	echo(r);
}

struct live live = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, 0 };

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

void handle(void *context, struct http_request *r)
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
	} else if (!strcmp(http_path(r), "/held")) {
		atomic_store(&late.request, r);
	} else if (!strcmp(http_path(r), "/last")) {
		last(r);
	} else if (!strcmp(http_path(r), "/stall")) { /* holds the network thread */
		atomic_store(&late.busy, true);
		while (!atomic_load(&late.answered))
			sched_yield();
		echo(r);
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

int setup(void **state)
{
	(void)state;
	start((struct http_options){ 0 });
	return 0;
}

int setup_hasty(void **state)
{
	(void)state;
	start((struct http_options){ .request_ms = 400, .idle_ms = 400, .send_ms = 400 });
	return 0;
}

int setup_small(void **state)
{
	(void)state;
	start((struct http_options){ .connections_max = 4, .peer_connections_max = 3 });
	return 0;
}

int teardown(void **state)
{
	(void)state;
	http_stop(server);
	server = NULL;
	return 0;
}

int dial(bool local)
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

void say(int fd, const char *text, size_t size)
{
	size_t at = 0;

	while (at < size) {
		const ssize_t sent = send(fd, text + at, size - at, MSG_NOSIGNAL);

		if (sent < 0)
			return; /* the server closed: the answer tells */
		at += (size_t)sent;
	}
}

bool answer(int fd, char *out, size_t room)
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

bool at_end(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) <= 0;
}

bool closes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char out[4096];

	while (poll(&p, 1, 30000) > 0)
		if (recv(fd, out, sizeof out, 0) <= 0)
			return true;
	return false;
}
