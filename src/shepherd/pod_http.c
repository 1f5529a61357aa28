/* SPDX-License-Identifier: Apache-2.0 */
/* A GET or POST over HTTP/1.1, as small as it can be: a connection for each, an answer of a known length. libc alone, and no look-up of names: in
 * somebody else's image there may be nothing to look them up with. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "shepherd/pod.h"

enum {
	ANSWER_USUAL = 64 << 10,
	HEAD_MAX = 16 << 10,
	CONNECT_MS =
		3000 /* behind a Service there may be a machine that is gone, and another one that answers */
};

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int address_parse(const char *text, union address *ret, socklen_t *ret_size, struct err *err)
{
	char host[INET6_ADDRSTRLEN + 2];
	const char *colon = strrchr(text, ':');
	long port = colon ? strtol(colon + 1, NULL, 10) : 0;
	size_t size = colon ? (size_t)(colon - text) : 0;

	memset(ret, 0, sizeof(*ret));
	if (size > 1 && text[0] == '[' && text[size - 1] == ']') {
		text++;
		size -= 2;
	}
	if (port > 0 && port < 65536 && size > 0 && size < sizeof(host)) {
		memcpy(host, text, size);
		host[size] = '\0';
		if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
			ret->v4.sin_family = AF_INET;
			ret->v4.sin_port = htons((uint16_t)port);
			*ret_size = sizeof(ret->v4);
			return 0;
		}
		if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
			ret->v6.sin6_family = AF_INET6;
			ret->v6.sin6_port = htons((uint16_t)port);
			*ret_size = sizeof(ret->v6);
			return 0;
		}
	}
	return err_set(err, ERR_INVALID,
		       "\"%.80s\" is no address with a port, such as 10.0.0.7:7071", text);
}

/* False: not in time. */
static bool wait_for(int fd, short events, int64_t until_ms)
{
	for (;;) {
		int64_t left = until_ms - clock_boot_ms();
		struct pollfd polled = { .fd = fd, .events = events };
		int n = left > 0 ? poll(&polled, 1, left < 60000 ? (int)left : 60000) : 0;

		if (n > 0)
			return true;
		if (left <= 0 || (n < 0 && errno != EINTR))
			return false;
	}
}

static int no_answer(const struct pod_post *post, const char *what, struct err *err)
{
	return err_set(err, ERR_UNREACHABLE, "%.80s %s", post->server, what);
}

static int open_connection(const struct pod_post *post, int64_t until_ms, struct err *err)
{
	union address address;
	socklen_t size = 0, length = sizeof(int);
	int problem = 0;

	if (address_parse(post->server, &address, &size, err) < 0)
		return -1;
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "no socket can be made");
	if (connect(fd, &address.any, size) < 0) {
		problem = errno == EINPROGRESS ? 0 : errno;
		if (!problem && !wait_for(fd, POLLOUT, until_ms))
			problem = ETIMEDOUT;
		if (!problem && getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &length) < 0)
			problem = errno;
	}
	if (!problem)
		return fd;
	close(fd);
	return err_errno(err, ERR_UNREACHABLE, problem, "%.80s does not answer", post->server);
}

static int send_all(const struct pod_post *post, int fd, int64_t until_ms, struct err *err)
{
	AUTO_BUF head = BUF_INIT;

	buf_addf(&head,
		 "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n",
		 post->body ? "POST" : "GET", post->path, post->server, post->token);
	if (post->body)
		buf_addf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			 strlen(post->body), post->body);
	else
		buf_adds(&head, "\r\n");
	for (size_t at = 0; at < head.size;) {
		ssize_t n = send(fd, head.data + at, head.size - at, MSG_NOSIGNAL);

		if (n > 0)
			at += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return err_errno(err, ERR_UNREACHABLE, errno, "%.80s takes no request",
					 post->server);
		else if (!wait_for(fd, POLLOUT, until_ms))
			return no_answer(post, "takes no request", err);
	}
	explicit_bzero(head.data, head.size); /* the token */
	return 0;
}

static int read_all(const struct pod_post *post, int fd, int64_t until_ms, struct buf *out,
		    struct err *err)
{
	char room[4096];

	for (;;) {
		ssize_t n = recv(fd, room, sizeof(room), 0);

		if (n == 0)
			return 0;
		if (n > 0)
			buf_add(out, room, (size_t)n);
		else if (errno != EAGAIN && errno != EINTR)
			return err_errno(err, ERR_UNREACHABLE, errno, "%.80s does not answer",
					 post->server);
		else if (!wait_for(fd, POLLIN, until_ms))
			return no_answer(post, "does not answer in time", err);
		if (out->size > (post->most ? post->most : ANSWER_USUAL) + HEAD_MAX)
			return no_answer(post, "answers too much", err);
	}
}

/* The status; the body alone stays in `answer`. One that is cut off is none. */
static int answer_split(const struct pod_post *post, struct buf *answer, struct err *err)
{
	const char *text = buf_text(answer), *end = strstr(text, "\r\n\r\n");
	long long length = -1;
	int status = 0;

	if (!end || sscanf(text, "HTTP/1.%*1d %3d", &status) != 1)
		return no_answer(post, "does not answer in HTTP", err);
	for (const char *line = strstr(text, "\r\n"); line && line < end;
	     line = strstr(line + 2, "\r\n"))
		if (strncasecmp(line + 2, "Content-Length:", 15) == 0)
			length = strtoll(line + 17, NULL, 10);
	size_t head = (size_t)(end - text) + 4;
	if (length < 0 || (size_t)length != answer->size - head)
		return no_answer(post, "did not answer to the end", err);
	memmove(answer->data, answer->data + head, (size_t)length);
	answer->size = (size_t)length;
	answer->data[length] = '\0';
	return status;
}

int pod_http_post(const struct pod_post *post, struct buf *ret_body, struct err *err)
{
	int64_t until_ms = clock_boot_ms() + post->timeout_ms;
	int64_t open_ms = post->timeout_ms < CONNECT_MS ? post->timeout_ms : CONNECT_MS;
	int fd = open_connection(post, until_ms - post->timeout_ms + open_ms, err), result;

	if (fd < 0)
		return fd;
	buf_clear(ret_body);
	result = send_all(post, fd, until_ms, err);
	if (result == 0)
		result = read_all(post, fd, until_ms, ret_body, err);
	close(fd);
	return result < 0 ? result : answer_split(post, ret_body, err);
}
