/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/wake.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

enum { SOCKETS_MOST = 1024 }; /* more are not noted: a client has 64 requests and 256 streams */

static atomic_int sockets[SOCKETS_MOST]; /* number + 1, 0 = none */

static void woken(int signal_number)
{
	(void)signal_number;
	for (int i = 0; i < SOCKETS_MOST; i++) {
		int fd = atomic_load(&sockets[i]) - 1;

		if (fd >= 0)
			(void)shutdown(fd, SHUT_RDWR);
	}
}

void wake_watch(void)
{
	const struct sigaction action = { .sa_handler = woken, .sa_flags = SA_RESTART };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	CHECK(sigaction(SIGCONT, &action, NULL) == 0);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
}

static curl_socket_t opened(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
	int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

	(void)context;
	(void)purpose;
	for (int i = 0; fd >= 0 && i < SOCKETS_MOST; i++) {
		int none = 0;

		if (atomic_compare_exchange_strong(&sockets[i], &none, fd + 1))
			break;
	}
	return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static int closed(void *context, curl_socket_t fd)
{
	(void)context;
	for (int i = 0; i < SOCKETS_MOST; i++) {
		int its = fd + 1;

		if (atomic_compare_exchange_strong(&sockets[i], &its, 0))
			break;
	}
	return close(fd);
}

void wake_add(CURL *curl)
{
	curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, opened);
	curl_easy_setopt(curl, CURLOPT_CLOSESOCKETFUNCTION, closed);
}
