/* SPDX-License-Identifier: Apache-2.0 */
/* The server over real sockets: deadlines, limits, streams, its end, and the sockets themselves. */
#include "api/http/http_testing.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/check.h"

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
	int fd[4 + 17];

	(void)state;
	/* TCP: one address, a share of three. */
	for (int i = 0; i < 3; i++)
		fd[i] = dial_let_in(false);
	fd[3] = dial(false);
	assert_true(answer(fd[3], out, sizeof out));
	assert_non_null(strstr(out, " 503 "));
	assert_true(closes(fd[3]));
	close(fd[3]);
	/* The daemon's own account has no share, and finds room for 16 beyond the whole limit of four. */
	for (size_t i = 3; i < ARRAY_SIZE(fd) - 1; i++)
		fd[i] = dial_let_in(true);
	fd[ARRAY_SIZE(fd) - 1] = dial(true);
	assert_true(answer(fd[ARRAY_SIZE(fd) - 1], out, sizeof out));
	assert_non_null(strstr(out, " 503 "));
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
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

static _Atomic int closed_twice;

/* Before the C library's own, for the HTTP library too. */
int close(int fd)
{
	const int result = (int)syscall(SYS_close, fd);

	if (result < 0 && errno == EBADF)
		atomic_fetch_add(&closed_twice, 1);
	return result;
}

/* A number closed twice may be a file of another thread the second time. The network thread is woken and ended at once. */
static void stopping_closes_each_file_once(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		http_stop(server);
		(void)setup(state);
	}
	assert_int_equal(atomic_load(&closed_twice), 0);
}

static void *stop(void *argument)
{
	(void)argument;
	http_stop(server);
	server = NULL;
	return NULL;
}

/* Both are answered while the network thread is in its last pass, one behind the place where it looks for answers. */
static void an_answer_during_the_last_pass_is_sent(void **state)
{
	const int held = dial(true), last = dial(true);
	struct buf out = BUF_INIT;
	char text[4096];
	pthread_t thread;

	(void)state;
	SAY(held, "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
	while (!atomic_load(&late.request))
		sched_yield();
	SAY(last, "GET /last HTTP/1.1\r\nHost: localhost\r\n\r\n");
	while (!atomic_load(&late.busy))
		sched_yield();
	atomic_store(&late.joins, 0);
	assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
	buf_adds(&out, "late");
	http_reply(atomic_load(&late.request), 200, "text/plain", &out);
	atomic_store(&late.answered, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(answer(held, text, sizeof text));
	assert_non_null(strstr(text, "late"));
	assert_true(answer(last, text, sizeof text));
	close(held);
	close(last);
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

/* The network thread is held until both are there: the end makes no event of its own then. */
static void a_client_that_ends_within_its_request_is_noticed(void **state)
{
	const int fd = dial_let_in(true), other = dial(true);
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)state;
	atomic_store(&late.busy, false);
	atomic_store(&late.answered, false);
	SAY(other, "GET /stall HTTP/1.1\r\nHost: localhost\r\n\r\n");
	while (!atomic_load(&late.busy))
		sched_yield();
	SAY(fd, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 500\r\n\r\nx");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	atomic_store(&late.answered, true);
	/* Well before the deadline of a whole request. */
	assert_int_equal(poll(&p, 1, HTTP_REQUEST_MS * 2 / 3), 1);
	assert_true(closes(fd));
	close(fd);
	close(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test_setup_teardown(a_client_that_ends_within_its_request_is_noticed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(stopping_ends_streams_and_closes_connections, setup,
						teardown),
		cmocka_unit_test_setup_teardown(stopping_closes_each_file_once, setup, teardown),
		cmocka_unit_test_setup_teardown(an_answer_during_the_last_pass_is_sent, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_still_answers_on_an_owned_path_is_left_from_before, setup, teardown),
		cmocka_unit_test_setup_teardown(who_calls_over_the_socket_is_the_kernels_word,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
