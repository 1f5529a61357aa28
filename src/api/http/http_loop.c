/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network thread's loop. The library could run a thread of its own; then each answer from another thread would wake it, and
 * each request that it parses would wake the core: on a busy core one request at a time would walk through all threads. Here a
 * pass takes everything that came, and what it found goes on together:
 *
 *	wait      for sockets, or for answers
 *	resume    the connections of all answers that came meanwhile
 *	accept    who waits at the door (http_accept.c)
 *	run       the library: reads requests, sends answers        (between options.pass(true) and options.pass(false))
 *
 * Run this way the library has no means of its own to be woken, so whoever resumes a connection wakes the loop.
 *
 * Answers made by another thread in a row (http_answers_hold) wake the network thread once, at the end of the row or
 * after each ANSWERS_HELD_MAX of them, so that two cores still share the work.
 */
#include "api/http/http_internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "base/check.h"
#include "base/thread.h"

enum { ANSWERS_HELD_MAX = 32 };

/* What this thread has answered and not yet told the network threads of. */
static _Thread_local struct {
	bool holding;
	int count;
	struct listener *listeners[ARRAY_SIZE(((struct http_server *)NULL)->listeners)];
} held;

static void wake(struct listener *l)
{
	const uint64_t one = 1;

	/* It can't fail but by an overflow of 2^64: then the thread is awake anyway. */
	(void)!write(l->wake_fd, &one, sizeof one);
}

static void held_wake(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(held.listeners); i++) {
		if (held.listeners[i]) {
			struct http_server *server = held.listeners[i]->server;

			wake(held.listeners[i]);
			atomic_fetch_sub(&server->telling, 1); /* now it may be stopped */
		}
		held.listeners[i] = NULL;
	}
	held.count = 0;
}

void http_answers_hold(void)
{
	held.holding = true;
}

void http_answers_release(void)
{
	held_wake();
	held.holding = false;
}

static void held_note(struct listener *l)
{
	size_t i = 0;

	while (held.listeners[i] && held.listeners[i] != l)
		i++;
	CHECK(i < ARRAY_SIZE(held.listeners));
	if (!held.listeners[i])
		atomic_fetch_add(&l->server->telling, 1);
	held.listeners[i] = l;
}

void listener_resume(struct listener *l, struct http_request *r)
{
	struct http_request *first = atomic_load(&l->answered);

	do
		r->next_answered = first;
	while (!atomic_compare_exchange_weak(&l->answered, &first, r));
	/* r may be gone. Who makes the list non-empty wakes, or sees to it. */
	if (held.holding) {
		if (!first)
			held_note(l);
		if (++held.count >= ANSWERS_HELD_MAX)
			held_wake();
	} else if (!first) {
		wake(l);
	}
}

/* In the order in which they were answered. */
static void resume_answered(struct listener *l)
{
	struct http_request *r = atomic_exchange(&l->answered, NULL), *next, *ordered = NULL;

	for (; r; r = next) {
		next = r->next_answered;
		r->next_answered = ordered;
		ordered = r;
	}
	for (r = ordered; r; r = next) {
		next = r->next_answered;
		MHD_resume_connection(r->mhd);
	}
}

/* Until something comes; the library's own timer says when it has work left over. */
static void wait_for_work(struct listener *l, int epoll_fd)
{
	const int pause = accept_pause_ms(l);
	struct pollfd fds[] = {
		{ .fd = epoll_fd, .events = POLLIN },
		{ .fd = l->wake_fd, .events = POLLIN },
		{ .fd = l->quiet || pause > 0 ? -1 : l->fd, .events = POLLIN },
	};
	MHD_UNSIGNED_LONG_LONG left = 0;
	int timeout = -1;
	uint64_t count;

	if (atomic_load(&l->answered))
		timeout = 0;
	else if (MHD_get_timeout(l->mhd, &left) == MHD_YES)
		timeout = left > 1000 ? 1000 : (int)left;
	if (pause > 0 && (timeout < 0 || timeout > pause))
		timeout = pause;
	if (timeout != 0)
		/* A kernel short of memory is asked again: what came waits. */
		CHECK(poll(fds, ARRAY_SIZE(fds), timeout) >= 0 || errno == EINTR ||
		      errno == ENOMEM);
	if (fds[1].revents)
		(void)!read(l->wake_fd, &count, sizeof count);
}

static void run_pass(struct listener *l)
{
	const struct http_options *o = &l->server->options;

	if (o->pass)
		o->pass(o->context, true);
	resume_answered(l);
	accept_pass(l);
	(void)MHD_run(l->mhd);
	if (o->pass)
		o->pass(o->context, false);
}

static void *listener_main(void *context)
{
	struct listener *l = context;
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);

	CHECK(info);
	while (!atomic_load(&l->over)) {
		if (atomic_load(&l->server->stopping))
			l->quiet = true;
		wait_for_work(l, info->epoll_fd);
		run_pass(l);
	}
	/* The end may come during a pass: what was answered since is suspended still, and the library ends with nothing suspended. */
	run_pass(l);
	return NULL;
}

int loop_start(struct listener *l, struct err *err)
{
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd < 0)
		return err_errno(err, ERR_INTERNAL, errno, "no event descriptor can be made");
	accept_reserve(l);
	thread_start(&l->thread, listener_main, l);
	l->running = true;
	return 0;
}

void loop_wake(struct listener *l)
{
	if (l->wake_fd >= 0)
		wake(l);
}

void loop_stop(struct listener *l)
{
	if (l->running) {
		atomic_store(&l->over, true);
		wake(l);
		pthread_join(l->thread, NULL);
	}
	l->running = false;
}
