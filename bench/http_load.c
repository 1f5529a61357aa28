/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load on the HTTP API: CLIENTS keep-alive connections to the daemon's socket, each with one request under way; every request
 * submits another job of about 1 KB with a client key of its own. Prints one JSON line: requests, seconds, per second,
 * and latencies in microseconds. Jobs are submitted held, so that what is measured is acknowledgement, not placement.
 *
 *	http_load SOCKET CLIENTS REQUESTS [PREFIX]
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1024, REQUEST_MAX = 4096, ANSWER_MAX = 65536 };

struct client {
	int fd;
	int64_t sent_ns;
	size_t have;
	char answer[ANSWER_MAX];
};

static const char *prefix = "load";

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what)
{
	fprintf(stderr, "http_load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int dial(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		fail(path);
	return fd;
}

static void send_request(struct client *c, long number)
{
	char body[2048], request[REQUEST_MAX];
	/* 700 bytes of environment that differ from job to job bring the body to about 1 KB */
	char filler[701];
	for (size_t i = 0; i < sizeof(filler) - 1; i++)
		filler[i] = (char)('a' + (number * 31 + (long)i * 7) % 26);
	filler[sizeof(filler) - 1] = '\0';
	int size = snprintf(
		body, sizeof(body),
		"{\"name\":\"%s-%ld\",\"queue\":\"default\",\"kind\":\"training\",\"tier\":\"standard\",\"tasks\":4,"
		"\"gpus\":{\"count\":1,\"memory\":\"40GiB\"},\"cpus\":4,\"memory\":\"16GiB\",\"hold\":true,\"retries\":2,\"limit\":\"4h\","
		"\"command\":[\"python3\",\"train.py\",\"--run\",\"%ld\"],\"env\":{\"NUMBER\":\"%ld\",\"FILLER\":\"%s\"}}",
		prefix, number, number, number, filler);
	int total = snprintf(
		request, sizeof(request),
		"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
		"Idempotency-Key: %s-%ld\r\nContent-Length: %d\r\n\r\n%s",
		prefix, number, size, body);
	c->have = 0;
	c->sent_ns = now_ns();
	for (int sent = 0; sent < total;) {
		ssize_t n = send(c->fd, request + sent, (size_t)(total - sent), MSG_NOSIGNAL);
		if (n < 0)
			fail("send");
		sent += (int)n;
	}
}

/* True when a whole answer has arrived; leaves the program when it is not 2xx. */
static bool take_answer(struct client *c)
{
	ssize_t n = recv(c->fd, c->answer + c->have, sizeof(c->answer) - 1 - c->have, 0);
	if (n <= 0)
		fail("the daemon closed the connection");
	c->have += (size_t)n;
	c->answer[c->have] = '\0';
	char *end = strstr(c->answer, "\r\n\r\n");
	if (!end)
		return false;
	const char *length = strcasestr(c->answer, "content-length:");
	size_t wanted =
		(size_t)(end - c->answer) + 4 + (length ? strtoul(length + 15, NULL, 10) : 0);
	if (c->have < wanted)
		return false;
	if (strncmp(c->answer, "HTTP/1.1 2", 10) != 0) {
		fprintf(stderr, "http_load: refused: %s\n", c->answer);
		exit(1);
	}
	return true;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: http_load SOCKET CLIENTS REQUESTS [PREFIX]\n");
		return 2;
	}
	long clients = strtol(argv[2], NULL, 10), requests = strtol(argv[3], NULL, 10);
	if (argc > 4)
		prefix = argv[4];
	if (clients < 1 || clients > CLIENTS_MAX || requests < clients)
		return 2;
	struct client *all = calloc((size_t)clients, sizeof(*all));
	int64_t *took = calloc((size_t)requests, sizeof(*took));
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	if (!all || !took || epoll < 0)
		fail("start");
	for (long i = 0; i < clients; i++) {
		all[i].fd = dial(argv[1]);
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &all[i] };
		epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].fd, &event);
	}
	long sent = 0, done = 0;
	int64_t began = now_ns();
	while (sent < clients)
		send_request(&all[sent], sent), sent++;
	while (done < requests) {
		struct epoll_event ready[64];
		int count = epoll_wait(epoll, ready, 64, 30000);
		if (count <= 0)
			fail("no answer within 30 s");
		for (int i = 0; i < count; i++) {
			struct client *c = ready[i].data.ptr;
			if (!take_answer(c))
				continue;
			took[done++] = now_ns() - c->sent_ns;
			if (sent < requests)
				send_request(c, sent++);
		}
	}
	double seconds = (double)(now_ns() - began) / 1e9;
	qsort(took, (size_t)requests, sizeof(*took), by_size);
	printf("{\"clients\":%ld,\"requests\":%ld,\"seconds\":%.3f,\"per_second\":%.0f,\"median_us\":%.0f,\"p99_us\":%.0f,\"p999_us\":%.0f,\"max_us\":%.0f}\n",
	       clients, requests, seconds, (double)requests / seconds,
	       (double)took[requests / 2] / 1e3, (double)took[requests * 99 / 100] / 1e3,
	       (double)took[requests * 999 / 1000] / 1e3, (double)took[requests - 1] / 1e3);
	return 0;
}
