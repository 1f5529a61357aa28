/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's life and a request's way in: accepted, counted, framed (receive.h), taken apart (target.h), checked for
 * Host and Origin, shown to `head`, its body collected, given to `handle`; then suspended until somebody answers.
 */
#include "api/http/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/wait.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/parse.h"

/*
 * Memory of a connection in the library: the largest head, its fields' records and the head of an answer. All of it is cleared
 * for each request, so no more than that.
 */
enum { POOL_BYTES = FRAMING_HEAD_MAX + (8 << 10), ARENA_CAP = 256 << 20 };

/* --- connections --------------------------------------------------------------------------------------- */

static struct connection *connection_create(struct listener *listener, struct MHD_Connection *mhd,
					    int fd)
{
	struct http_server *server = listener->server;
	struct connection *c = calloc(1, sizeof *c);
	const int one = 1;

	CHECK(c);
	c->server = server;
	c->listener = listener;
	c->mhd = mhd;
	receive_open(&c->receive, fd, HTTP_BODY_MAX);
	c->peer = listener->newcomer;
	c->stranger = listener->newcomer_is_stranger;
	c->opened_ms = clock_boot_ms();
	if (!listener->local)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	atomic_store(&c->idle_ms, c->opened_ms);
	pthread_mutex_lock(&server->lock);
	c->next = server->connections;
	if (c->next)
		c->next->previous = c;
	server->connections = c;
	server->connection_count++;
	c->count = peer_count_get(server, &c->peer);
	c->count->connections++;
	server->stranger_count += c->stranger;
	pthread_mutex_unlock(&server->lock);
	return c;
}

static void connection_destroy(struct connection *c)
{
	struct http_server *server = c->server;

	pthread_mutex_lock(&server->lock);
	if (c->previous)
		c->previous->next = c->next;
	else
		server->connections = c->next;
	if (c->next)
		c->next->previous = c->previous;
	server->connection_count--;
	stranger_leaves(c);
	peer_count_drop(server, c->count);
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	receive_close(&c->receive);
	free(c);
}

static void connection_notify(void *cls, struct MHD_Connection *mhd, void **context,
			      enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info;

	switch (code) {
	case MHD_CONNECTION_NOTIFY_STARTED:
		info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
		CHECK(info);
		*context = connection_create(cls, mhd, info->connect_fd);
		return;
	case MHD_CONNECTION_NOTIFY_CLOSED:
		if (*context)
			connection_destroy(*context);
		*context = NULL;
		return;
	}
}

/* --- a request's way in ---------------------------------------------------------------------------------- */

static void *request_create(void *cls, const char *target, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_request *r = calloc(1, sizeof *r);

	(void)cls;
	CHECK(r && info);
	r->connection = info->socket_context;
	r->mhd = mhd;
	arena_init(&r->arena, ARENA_CAP);
	r->raw_target = arena_strdup(&r->arena, target);
	r->method = "";
	atomic_store(&r->connection->receiving, true);
	atomic_store(&r->connection->busy, true);
	return r;
}

static void request_destroy(void *cls, struct MHD_Connection *mhd, void **context,
			    enum MHD_RequestTerminationCode code)
{
	struct http_request *r = *context;
	struct connection *c;

	(void)cls;
	(void)mhd;
	(void)code;
	*context = NULL;
	if (!r)
		return;
	c = r->connection;
	atomic_fetch_sub(&c->server->body_bytes, r->body_reserved);
	if (r->response)
		MHD_destroy_response(r->response);
	if (r->stream)
		stream_closed(r->stream);
	buf_deinit(&r->answer);
	if (r->held)
		atomic_fetch_sub(r->held, r->held_bytes);
	buf_deinit(&r->body);
	arena_deinit(&r->arena);
	free(r);
	atomic_store(&c->answered_ms, 0);
	atomic_store(&c->receiving, false);
	atomic_store(&c->idle_ms, clock_boot_ms());
	atomic_store(&c->busy, false);
}

struct field_check {
	struct http_request *r;
	int seen[8];
	const char *twice;
};

/* A field of which only one can be meant, and of which different readers would take different ones. */
static enum MHD_Result field_check(void *context, enum MHD_ValueKind kind, const char *name,
				   const char *value)
{
	static const char *const single[] = { "authorization",   "content-type",  "origin",
					      "idempotency-key", "accept",        "last-event-id",
					      "x-fairlead-file", "sec-fetch-site" };
	struct field_check *check = context;

	(void)kind;
	(void)value;
	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		if (!strcasecmp(name, single[i]) && check->seen[i]++)
			check->twice = single[i];
	return MHD_YES;
}

static void refuse(struct http_request *r, const struct err *err)
{
	r->close = true;
	http_reply_error(r, err);
}

static void refuse_stopping(struct http_request *r)
{
	struct err err = { 0 };

	err_set(&err, ERR_UNAVAILABLE, "the daemon is stopping");
	refuse(r, &err);
}

/* What must hold before anybody reads on. Answers when it does not. */
static void request_begin(struct http_request *r, const char *method)
{
	struct http_server *server = r->connection->server;
	struct field_check fields = { .r = r };
	enum framing_problem problem;
	struct err err = { 0 };

	r->begun = true;
	r->method = arena_strdup(&r->arena, method);
	if (!receive_head_seen(&r->connection->receive, &problem)) {
		err_set(&err, ERR_INTERNAL, "the request did not pass the check of its framing");
		refuse(r, &err);
		return;
	}
	if (problem) {
		reply_problem(r, problem);
		return;
	}
	if (atomic_load(&server->stopping)) {
		refuse_stopping(r);
		return;
	}
	if (target_parse(r->raw_target, &r->arena, &r->target, &err) < 0 ||
	    request_check_host(r, &err) < 0) {
		refuse(r, &err);
		return;
	}
	MHD_get_connection_values(r->mhd, MHD_HEADER_KIND, field_check, &fields);
	if (fields.twice) {
		err_set(&err, ERR_INVALID, "the request has more than one %s header field",
			fields.twice);
		refuse(r, &err);
		return;
	}
	if (server->options.head)
		(void)server->options.head(server->options.context, r);
}

/* Keeps the bytes of a body that somebody will read. */
static void body_add(struct http_request *r, const char *data, size_t size)
{
	struct http_server *server = r->connection->server;
	struct err err = { 0 };
	int64_t all;

	if (atomic_load(&r->state) == REQUEST_ANSWERED)
		return;
	r->body_reserved += (int64_t)size;
	all = atomic_fetch_add(&server->body_bytes, (int64_t)size) + (int64_t)size;
	if (all > (int64_t)HTTP_BODIES_MAX_MIB << 20) {
		err_set(&err, ERR_UNAVAILABLE,
			"the daemon is reading as many request bodies as it takes at a time; try again");
		buf_deinit(&r->body);
		refuse(r, &err);
		return;
	}
	buf_add(&r->body, data, size);
}

static enum MHD_Result answer_queue(struct http_request *r)
{
	enum MHD_Result result;

	if (r->queued)
		return MHD_YES;
	r->queued = true;
	if (!r->stream)
		atomic_store(&r->connection->answered_ms, clock_boot_ms());
	answer_make(r);
	if (r->close)
		MHD_add_response_header(r->response, "Connection", "close");
	result = MHD_queue_response(r->mhd, (unsigned int)r->status, r->response);
	MHD_destroy_response(r->response); /* the library has a reference of its own */
	r->response = NULL;
	return result;
}

static void request_handle(struct http_request *r)
{
	struct http_server *server = r->connection->server;

	atomic_store(&r->connection->receiving, false);
	/* Under the lock: the end waits for those that are counted, and none is counted behind its back. */
	pthread_mutex_lock(&server->lock);
	r->counted = !atomic_load(&server->stopping);
	server->handling += r->counted;
	pthread_mutex_unlock(&server->lock);
	if (!r->counted) {
		refuse_stopping(r);
		return;
	}
	atomic_store(&r->state, REQUEST_HANDLING);
	server->options.handle(server->options.context, r);
}

/* The library's callback: once with the head, once per piece of body, once at the end, once more when resumed. */
static enum MHD_Result access_handler(void *cls, struct MHD_Connection *mhd, const char *url,
				      const char *method, const char *version, const char *data,
				      size_t *size, void **context)
{
	struct http_request *r = *context;
	int handling = REQUEST_HANDLING;

	(void)cls;
	(void)url;
	(void)version;
	if (!r)
		return MHD_NO;
	if (!r->begun) {
		request_begin(r, method);
		return MHD_YES;
	}
	if (*size) {
		body_add(r, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (atomic_load(&r->state) == REQUEST_NEW) {
		request_handle(r);
		/* Suspended first: an answer that comes now from another thread finds something to resume. */
		if (atomic_load(&r->state) == REQUEST_ANSWERED)
			return answer_queue(r);
		MHD_suspend_connection(mhd);
		if (!atomic_compare_exchange_strong(&r->state, &handling, REQUEST_SUSPENDED)) {
			/* Answered in between. The library looks for resumed connections at the start of a run, and its timer knows
			 * nothing of them: without a wake the loop would sleep on this one. */
			MHD_resume_connection(mhd);
			loop_wake(r->connection->listener);
		}
		return MHD_YES;
	}
	if (atomic_load(&r->state) != REQUEST_ANSWERED)
		return MHD_YES;
	return answer_queue(r);
}

/* --- start and stop ---------------------------------------------------------------------------------------- */

/* The target stays as it came: target.h decodes it, once. */
static size_t unescape_nothing(void *cls, struct MHD_Connection *mhd, char *text)
{
	(void)cls;
	(void)mhd;
	return strlen(text);
}

static void log_nothing(void *cls, const char *format, va_list args)
{
	(void)cls;
	(void)format;
	(void)args;
}

/* Negative when somebody answers there. */
static int unix_probe(const struct sockaddr_un *address, struct err *err)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int result;

	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "no socket can be made");
	result = connect(fd, (const struct sockaddr *)address, sizeof *address);
	close(fd);
	if (!result)
		return err_set(err, ERR_CONFLICT, "another daemon listens on \"%s\"",
			       address->sun_path);
	return 0;
}

/* A socket file that nobody listens on any more is in the way; one with a listener is another daemon's. */
static int unix_clear_stale(const struct sockaddr_un *address, bool owned, struct err *err)
{
	struct stat what;

	if (lstat(address->sun_path, &what) < 0)
		return 0;
	if (!S_ISSOCK(what.st_mode))
		return err_set(err, ERR_CONFLICT,
			       "\"%s\" is in the way of the socket and is not a socket",
			       address->sun_path);
	if (!owned && unix_probe(address, err) < 0)
		return -1;
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return err_errno(err, ERR_IO, errno, "the old socket \"%s\" can't be removed",
				 address->sun_path);
	return 0;
}

static int unix_listen(struct http_server *server, const char *path, bool owned, int *ret,
		       struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof address.sun_path)
		return err_set(
			err, ERR_INVALID,
			"the socket's path \"%s\" is longer than %zu bytes; choose a data folder with a shorter path",
			path, sizeof address.sun_path - 1);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (unix_clear_stale(&address, owned, err) < 0)
		return -(int)ERR_IO;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "no socket can be made");
	/* Everybody may connect: who is calling is the kernel's word, and what he may do is decided per request. */
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || chmod(path, 0666) < 0 ||
	    listen(fd, 1024) < 0) {
		err_errno(err, ERR_IO, errno, "the daemon can't listen on \"%s\"", path);
		close(fd);
		return -(int)ERR_IO;
	}
	snprintf(server->unix_path, sizeof server->unix_path, "%s", path);
	*ret = fd;
	return 0;
}

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* "127.0.0.1:7070", "localhost:0" or "[::1]:7070". */
static int listen_parse(const char *text, bool anywhere, union address *ret, socklen_t *ret_size,
			struct err *err)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	int64_t port;
	size_t size;

	memset(ret, 0, sizeof *ret);
	if (!colon || parse_int(colon + 1, 0, 65535, &port, NULL) < 0)
		return err_set(err, ERR_INVALID,
			       "listen address \"%s\": expected HOST:PORT, as in 127.0.0.1:7070",
			       text);
	size = (size_t)(colon - text);
	if (size >= 2 && text[0] == '[' && text[size - 1] == ']') {
		text++;
		size -= 2;
	}
	if (size >= sizeof host)
		return err_set(err, ERR_INVALID, "listen address \"%.80s\": the host is too long",
			       text);
	memcpy(host, text, size);
	host[size] = '\0';
	if (!strcmp(host, "localhost") || inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
		if (!strcmp(host, "localhost"))
			ret->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons((uint16_t)port);
		*ret_size = sizeof ret->v4;
		if (anywhere || (ntohl(ret->v4.sin_addr.s_addr) >> 24) == 127)
			return 0;
	} else if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
		ret->v6.sin6_family = AF_INET6;
		ret->v6.sin6_port = htons((uint16_t)port);
		*ret_size = sizeof ret->v6;
		if (anywhere || IN6_IS_ADDR_LOOPBACK(&ret->v6.sin6_addr))
			return 0;
	} else {
		return err_set(err, ERR_INVALID, "listen address \"%s\": the host must be %s", host,
			       anywhere ? "a numeric address, such as 0.0.0.0"
					: "127.0.0.1, [::1] or localhost");
	}
	return err_set(
		err, ERR_UNSUPPORTED,
		"listen address \"%s\" is not on this machine's loopback, and there is no TLS yet; "
		"listen on 127.0.0.1 and reach it through ssh -L",
		host);
}

/* Where it listens indeed: port 0 is any. */
static void address_note(struct http_server *server, int fd)
{
	union address address;
	socklen_t size = sizeof address;
	char host[INET6_ADDRSTRLEN] = "";
	bool v4;

	if (getsockname(fd, &address.any, &size) < 0)
		return;
	v4 = address.any.sa_family == AF_INET;
	server->port = ntohs(v4 ? address.v4.sin_port : address.v6.sin6_port);
	(void)inet_ntop(address.any.sa_family,
			v4 ? (const void *)&address.v4.sin_addr : &address.v6.sin6_addr, host,
			sizeof host);
	snprintf(server->address, sizeof server->address, v4 ? "%s:%d" : "[%s]:%d", host,
		 server->port);
}

static int tcp_listen(struct http_server *server, const char *text, int *ret, struct err *err)
{
	union address address;
	socklen_t size = 0;
	const int one = 1;
	int fd;

	if (listen_parse(text, server->options.listen_anywhere, &address, &size, err) < 0)
		return -(int)ERR_INVALID;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "no socket can be made");
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, &address.any, size) < 0 || listen(fd, 1024) < 0) {
		if (errno == EADDRINUSE)
			err_set(err, ERR_CONFLICT,
				"listen address \"%s\" is in use by another program; choose another port",
				text);
		else
			err_errno(err, ERR_IO, errno, "the daemon can't listen on \"%s\"", text);
		close(fd);
		return -(int)ERR_IO;
	}
	address_note(server, fd);
	*ret = fd;
	return 0;
}

static int listener_start(struct http_server *server, struct listener *listener, struct err *err)
{
	listener->server = server;
	listener->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
			MHD_USE_NO_LISTEN_SOCKET,
		0, NULL, NULL, access_handler, server, MHD_OPTION_EXTERNAL_LOGGER, log_nothing,
		NULL, MHD_OPTION_NOTIFY_CONNECTION, connection_notify, listener,
		MHD_OPTION_NOTIFY_COMPLETED, request_destroy, server, MHD_OPTION_URI_LOG_CALLBACK,
		request_create, server, MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, NULL,
		MHD_OPTION_STRICT_FOR_CLIENT, 1,
		/* More than we let in: whoever is over the limit is told so (http_accept.c). */
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)server->options.connections_max + 64,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)POOL_BYTES,
		MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)16384, MHD_OPTION_END);
	if (!listener->mhd)
		return err_set(err, ERR_INTERNAL, "the HTTP server can't start");
	return loop_start(listener, err);
}

static void listeners_close(struct http_server *server)
{
	for (size_t i = 0; i < ARRAY_SIZE(server->listeners); i++)
		if (server->listeners[i].fd >= 0) {
			close(server->listeners[i].fd);
			server->listeners[i].fd = -1;
		}
	if (server->unix_path[0])
		unlink(server->unix_path);
	server->unix_path[0] = '\0';
}

static void options_fill(struct http_options *o)
{
	if (!o->request_ms)
		o->request_ms = HTTP_REQUEST_MS;
	if (!o->idle_ms)
		o->idle_ms = HTTP_IDLE_MS;
	if (!o->send_ms)
		o->send_ms = HTTP_SEND_MS;
	if (!o->connections_max)
		o->connections_max = http_connections_fit();
	if (!o->peer_connections_max)
		o->peer_connections_max = (int)((int64_t)o->connections_max *
						HTTP_PEER_CONNECTIONS_MAX / HTTP_CONNECTIONS_MAX);
}

int http_start(const struct http_options *options, struct http_server **ret, struct err *err)
{
	struct http_server *server = calloc(1, sizeof *server);

	CHECK(server && options->handle);
	server->options = *options;
	options_fill(&server->options);
	snprintf(
		server->strangers_text, sizeof server->strangers_text,
		"callers that Fairlead does not know share %d connections, and all of them are taken: ask an admin to add this account (fairlead users add), or try again in a moment",
		server->options.strangers_max);
	pthread_mutex_init(&server->lock, NULL);
	cond_init(&server->changed);
	server->listeners[0].fd = server->listeners[1].fd = -1;
	server->listeners[0].wake_fd = server->listeners[1].wake_fd = -1;
	server->listeners[0].reserve_fd = server->listeners[1].reserve_fd = -1;
	server->listeners[0].local = true;
	if (options->unix_path && unix_listen(server, options->unix_path, options->unix_owned,
					      &server->listeners[0].fd, err) < 0)
		goto failed;
	if (options->listen &&
	    tcp_listen(server, options->listen, &server->listeners[1].fd, err) < 0)
		goto failed;
	for (size_t i = 0; i < ARRAY_SIZE(server->listeners); i++)
		if (server->listeners[i].fd >= 0 &&
		    listener_start(server, &server->listeners[i], err) < 0)
			goto failed;
	sweeper_start(server);
	*ret = server;
	return 0;
failed:
	http_stop(server);
	return -(int)ERR_IO;
}

int http_port(const struct http_server *server)
{
	return server->port;
}

const char *http_address(const struct http_server *server)
{
	return server->address;
}

/* No new connections; every handler has answered; every stream has ended. */
static void server_drain(struct http_server *server)
{
	struct timespec until;

	pthread_mutex_lock(&server->lock);
	while (server->handling)
		pthread_cond_wait(&server->changed, &server->lock);
	for (struct connection *c = server->connections; c; c = c->next)
		if (c->stream)
			stream_finish(c->stream, false);
	until = wait_until(2000);
	while (server->stream_count)
		if (pthread_cond_timedwait(&server->changed, &server->lock, &until))
			break;
	/* Clients that do not take the end of their stream. */
	for (struct connection *c = server->connections; c; c = c->next)
		if (c->stream)
			stream_finish(c->stream, true);
	pthread_mutex_unlock(&server->lock);
}

static void listener_stop(struct listener *listener)
{
	if (!listener->mhd)
		return;
	loop_stop(listener);
	MHD_stop_daemon(listener->mhd);
	accept_close(listener);
	if (listener->wake_fd >= 0)
		close(listener->wake_fd);
}

void http_stop(struct http_server *server)
{
	if (!server)
		return;
	atomic_store(&server->stopping, true);
	for (size_t i = 0; i < ARRAY_SIZE(server->listeners); i++)
		loop_wake(&server->listeners[i]); /* takes no more connections */
	server_drain(server);
	while (atomic_load(&server->telling))
		sched_yield(); /* between an answer and its wake lies the rest of a row */
	sweeper_stop(server);
	for (size_t i = 0; i < ARRAY_SIZE(server->listeners); i++)
		listener_stop(&server->listeners[i]);
	listeners_close(server);
	CHECK(!server->connections && !server->peers);
	pthread_cond_destroy(&server->changed);
	pthread_mutex_destroy(&server->lock);
	free(server);
}

/* --- questions ---------------------------------------------------------------------------------------------- */

const char *http_method(const struct http_request *r)
{
	return r->method;
}

const char *http_path(const struct http_request *r)
{
	return r->target.path;
}

const char *http_query(const struct http_request *r, const char *name)
{
	return target_query(&r->target, name);
}

const char *http_query_name(const struct http_request *r, size_t index)
{
	return index < r->target.query_count ? r->target.query[index].name : NULL;
}

const char *http_header(const struct http_request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

const void *http_body(const struct http_request *r, size_t *ret_size)
{
	*ret_size = r->body.size;
	return buf_text(&r->body);
}

const struct http_peer *http_peer(const struct http_request *r)
{
	return &r->connection->peer;
}

struct arena *http_arena(struct http_request *r)
{
	return &r->arena;
}

void http_set_user(struct http_request *r, void *user)
{
	r->user = user;
}

void *http_user(const struct http_request *r)
{
	return r->user;
}
