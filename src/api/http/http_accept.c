/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets in. The library could accept by itself; but then it stops for good when the process has no descriptor left
 * (0.9.75: until one of its own connections ends), and a connection over a limit costs it as much as any other.
 *
 *	a connection comes		it is
 *	over a limit			told 503 and closed
 *	without a free descriptor	accepted on the one kept in reserve, told 503 and closed
 *	of a stranger, their room full	let in for one that has been a stranger for a second: that one is cut. Otherwise told
 *					503 (Unix socket), or left in the kernel's queue (TCP, where each one begins as a stranger)
 *	else				the library's
 *
 * A stranger is a connection of which nobody knows yet that a user is behind it: http_known says so later.
 */
#include "api/http/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/check.h"
#include "base/clock.h"

enum {
	ACCEPT_ROW = 64, /* connections of one pass */
	PAUSE_MS = 100, /* before it is tried again, where nothing could be accepted */
	STRANGER_MS = 1000, /* for so long a stranger's place is his */
	KEEPER_ROOM = 16, /* beyond all limits, for root and the daemon's own account */
	FILES_MOST = RECEIVE_FILES, /* no more are of use */
	FILES_KEPT = 64, /* journal, history, engine, log files being read */
	CONNECTIONS_LEAST = 16
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* --- how many ------------------------------------------------------------------------------------------------ */

int http_connections_fit(void)
{
	struct rlimit limit;
	rlim_t most;
	int files, fit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return CONNECTIONS_LEAST;
	most = limit.rlim_max < FILES_MOST ? limit.rlim_max : FILES_MOST;
	if (limit.rlim_cur < most) {
		limit.rlim_cur = most;
		if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) < 0)
			return CONNECTIONS_LEAST;
	}
	files = limit.rlim_cur < FILES_MOST ? (int)limit.rlim_cur : FILES_MOST;
	/* A quarter is for what runs: its shepherds' reports, and the processes that are watched. */
	fit = files - FILES_KEPT - files / 4 - KEEPER_ROOM;
	if (fit < CONNECTIONS_LEAST)
		fit = CONNECTIONS_LEAST;
	return fit < HTTP_CONNECTIONS_MAX ? fit : HTTP_CONNECTIONS_MAX;
}

/* --- who ------------------------------------------------------------------------------------------------------ */

static void peer_fill(struct http_peer *peer, int fd, bool local)
{
	struct ucred who;
	socklen_t size = sizeof who;
	union address address;

	memset(peer, 0, sizeof *peer);
	peer->uid = (uid_t)-1;
	peer->gid = (gid_t)-1;
	if (local) {
		peer->local = true;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
			peer->uid = who.uid;
			peer->gid = who.gid;
			peer->pid = who.pid;
		}
		return;
	}
	size = sizeof address;
	if (getpeername(fd, &address.any, &size) < 0)
		return;
	if (address.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &address.v4.sin_addr, peer->address, sizeof peer->address);
	else if (address.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &address.v6.sin6_addr, peer->address, sizeof peer->address);
}

/* Under server->lock. NULL = it has no connection. */
static struct peer_count *peer_count_find(struct http_server *server, const struct http_peer *peer)
{
	struct peer_count *p;

	for (p = server->peers; p; p = p->next)
		if (p->local == peer->local && p->uid == peer->uid &&
		    !strcmp(p->address, peer->address))
			return p;
	return NULL;
}

struct peer_count *peer_count_get(struct http_server *server, const struct http_peer *peer)
{
	struct peer_count *p = peer_count_find(server, peer);

	if (p)
		return p;
	p = calloc(1, sizeof *p);
	CHECK(p);
	p->local = peer->local;
	p->uid = peer->uid;
	snprintf(p->address, sizeof p->address, "%s", peer->address);
	p->next = server->peers;
	server->peers = p;
	return p;
}

void peer_count_drop(struct http_server *server, struct peer_count *count)
{
	struct peer_count **at = &server->peers;

	if (--count->connections)
		return;
	while (*at != count)
		at = &(*at)->next;
	*at = count->next;
	free(count);
}

/* Whoever keeps the machine must still get in when users have taken all there is. */
static bool peer_is_keeper(const struct http_peer *peer)
{
	return peer->local && (peer->uid == 0 || peer->uid == geteuid());
}

static bool peer_is_stranger(const struct http_server *server, const struct http_peer *peer)
{
	const struct http_options *o = &server->options;

	if (!o->strangers_max || peer_is_keeper(peer))
		return false;
	return !peer->local || !o->known || !o->known(o->context, peer);
}

/* --- strangers ------------------------------------------------------------------------------------------------- */

/* Under server->lock. */
void stranger_leaves(struct connection *c)
{
	if (c->stranger)
		c->server->stranger_count--;
	c->stranger = false;
}

void http_known(struct http_request *r)
{
	struct connection *c = r->connection;

	if (!c->server->options.strangers_max)
		return;
	pthread_mutex_lock(&c->server->lock);
	stranger_leaves(c);
	pthread_mutex_unlock(&c->server->lock);
}

/* Under server->lock. Whether one more stranger may come; cuts the one that is here longest if it was here for long enough. */
static bool strangers_have_room(struct http_server *server, int64_t now_ms)
{
	struct connection *oldest = NULL;

	if (server->stranger_count < server->options.strangers_max)
		return true;
	for (struct connection *c = server->connections; c; c = c->next)
		if (c->stranger && (!oldest || c->opened_ms < oldest->opened_ms))
			oldest = c;
	if (!oldest || now_ms - oldest->opened_ms < STRANGER_MS)
		return false;
	connection_cut(oldest);
	return true;
}

/* --- accepting --------------------------------------------------------------------------------------------------- */

static void turn_away(int fd, const char *why)
{
	char rest[4096];

	receive_answer_bare(fd, 503, "unavailable", why);
	(void)shutdown(fd, SHUT_WR);
	/* What came already would turn the end into a reset, which takes the answer along. */
	(void)!recvfrom(fd, rest, sizeof rest, MSG_DONTWAIT, NULL, NULL);
	close(fd);
}

void accept_reserve(struct listener *l)
{
	if (l->reserve_fd < 0)
		l->reserve_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void pause_accepting(struct listener *l)
{
	l->paused_until_ms = clock_boot_ms() + PAUSE_MS;
}

static int accept_one(const struct listener *l, union address *address, socklen_t *size)
{
	int fd;

	do {
		*size = sizeof *address;
		memset(address, 0, sizeof *address);
		fd = accept4(l->fd, &address->any, size, SOCK_CLOEXEC | SOCK_NONBLOCK);
	} while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	return fd;
}

/* The process has no descriptor left: whoever waits is told so on the one in reserve. */
static void accept_in_reserve(struct listener *l)
{
	union address address;
	socklen_t size;
	int fd;

	for (int i = 0; i < ACCEPT_ROW && l->reserve_fd >= 0; i++) {
		close(l->reserve_fd);
		l->reserve_fd = -1;
		fd = accept_one(l, &address, &size);
		if (fd >= 0)
			turn_away(fd,
				  "the daemon has no file descriptors left: try again in a moment");
		accept_reserve(l);
		if (fd < 0)
			break;
	}
	pause_accepting(l);
}

/* NULL: it may come in. */
static const char *refusal(struct listener *l, const struct http_peer *peer, bool stranger)
{
	struct http_server *server = l->server;
	const struct http_options *o = &server->options;
	const char *why = NULL;

	pthread_mutex_lock(&server->lock);
	const struct peer_count *count = peer_count_find(server, peer);
	const bool keeper = peer_is_keeper(peer);

	if (server->connection_count >= o->connections_max + (keeper ? KEEPER_ROOM : 0))
		why = "the daemon has as many connections as it takes: close some, or try again in a moment";
	else if (!keeper && count && count->connections >= o->peer_connections_max)
		why = "this account or address has as many connections as it may have: close some, or try again in a moment";
	else if (stranger && !strangers_have_room(server, clock_boot_ms()))
		why = server->strangers_text;
	pthread_mutex_unlock(&server->lock);
	return why;
}

/* Whether another may be tried. */
static bool accept_next(struct listener *l)
{
	struct http_server *server = l->server;
	union address address;
	socklen_t size;
	const char *why;
	bool room = true;
	int fd;

	if (!l->local && server->options.strangers_max) {
		pthread_mutex_lock(&server->lock);
		room = strangers_have_room(server, clock_boot_ms());
		pthread_mutex_unlock(&server->lock);
	}
	if (!room) {
		pause_accepting(l);
		return false;
	}
	fd = accept_one(l, &address, &size);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			accept_in_reserve(l);
		else if (errno != EAGAIN && errno != EWOULDBLOCK)
			pause_accepting(l);
		return false;
	}
	peer_fill(&l->newcomer, fd, l->local);
	l->newcomer_is_stranger = peer_is_stranger(server, &l->newcomer);
	why = fd >= RECEIVE_FILES ? "the daemon has too many files open: try again in a moment"
				  : refusal(l, &l->newcomer, l->newcomer_is_stranger);
	if (why)
		turn_away(fd, why);
	else
		(void)MHD_add_connection(l->mhd, fd, &address.any,
					 size); /* closes it if it can't */
	return true;
}

void accept_pass(struct listener *l)
{
	if (l->quiet || accept_pause_ms(l) > 0)
		return;
	accept_reserve(l);
	for (int i = 0; i < ACCEPT_ROW && accept_next(l); i++)
		;
}

int accept_pause_ms(const struct listener *l)
{
	const int64_t left = l->paused_until_ms ? l->paused_until_ms - clock_boot_ms() : 0;

	return left > 0 ? (int)left : 0;
}

void accept_close(struct listener *l)
{
	if (l->reserve_fd >= 0)
		close(l->reserve_fd);
	l->reserve_fd = -1;
}
