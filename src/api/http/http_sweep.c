/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweeper: cuts connections that are over a deadline. The library's own time-out starts again with every byte, so a
 * client that sends one byte per second would stay for ever; and it does not look at connections that are suspended.
 *
 * To cut is to shut the socket down: the network thread then reads its end and clears up in its own time.
 */
#include "api/http/http_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include "base/wait.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"

static bool peer_is_gone(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

bool http_in_vain(const struct http_request *r)
{
	struct pollfd p = { .fd = r->connection->receive.fd, .events = 0 };

	return atomic_load(&r->connection->server->stopping) ||
	       (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)) != 0);
}

void connection_cut(struct connection *c)
{
	c->condemned = true;
	stranger_leaves(c);
	if (c->stream)
		stream_finish(c->stream, true);
	shutdown(c->receive.fd, SHUT_RDWR);
}

/* Under server->lock. */
static void connection_sweep(struct connection *c, int64_t now)
{
	const struct http_options *o = &c->server->options;
	const int64_t began = atomic_load(&c->receive.began_ms),
		      answered = atomic_load(&c->answered_ms);
	const bool busy = atomic_load(&c->busy);

	if (c->condemned)
		return;
	if (began && now - began > o->request_ms) {
		if (!busy)
			receive_answer_bare(c->receive.fd, 408, "timeout",
					    "the request came in too slowly");
		connection_cut(c);
	} else if (!busy && !began && now - atomic_load(&c->idle_ms) > o->idle_ms) {
		connection_cut(c);
	} else if (answered && now - answered > o->send_ms) {
		connection_cut(c);
	} else if (c->stream && stream_is_stuck(c->stream, now, o->send_ms)) {
		connection_cut(c);
	} else if (/* An end that came with the last bytes makes no event of its own: the library may sleep on it. */
		   (c->stream ? stream_is_parked(c->stream)
			      : !busy || atomic_load(&c->receiving)) &&
		   peer_is_gone(c->receive.fd)) {
		connection_cut(c);
	}
}

static void *sweep(void *context)
{
	struct http_server *server = context;
	int64_t step = server->options.request_ms / 8;
	struct timespec until;

	if (server->options.idle_ms / 8 < step)
		step = server->options.idle_ms / 8;
	if (server->options.send_ms / 8 < step)
		step = server->options.send_ms / 8;
	step = step > 1000 ? 1000 : step < 10 ? 10 : step;
	pthread_mutex_lock(&server->lock);
	while (!atomic_load(&server->stopping)) {
		const int64_t now = clock_boot_ms();

		for (struct connection *c = server->connections; c; c = c->next)
			connection_sweep(c, now);
		until = wait_until(step);
		/* Woken by every connection that closes as well; the walk is cheap, but not that cheap. */
		while (!atomic_load(&server->stopping) &&
		       pthread_cond_timedwait(&server->changed, &server->lock, &until) != ETIMEDOUT)
			;
	}
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

void sweeper_start(struct http_server *server)
{
	thread_start(&server->sweeper, sweep, server);
	server->sweeping = true;
}

void sweeper_stop(struct http_server *server)
{
	if (!server->sweeping)
		return;
	pthread_mutex_lock(&server->lock);
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	pthread_join(server->sweeper, NULL);
	server->sweeping = false;
}
