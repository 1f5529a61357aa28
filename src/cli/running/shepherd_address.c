/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/shepherd_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/parse.h"

/* "[fd00::7]:7071" in its parts. */
static int split(const char *text, char host[256], const char **ret_port, struct err *err)
{
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;
	int64_t port;

	if (size > 1 && text[0] == '[' && text[size - 1] == ']') {
		text++;
		size -= 2;
	}
	if (size == 0 || size > 255 || parse_int(colon + 1, 1, 65535, &port, NULL) < 0)
		return err_set(
			err, ERR_INVALID,
			"address for pods \"%.80s\": expected HOST:PORT, as in fairlead-pods.fairlead.svc:7071",
			text);
	memcpy(host, text, size);
	host[size] = '\0';
	*ret_port = colon + 1;
	return 0;
}

int shepherd_address(const char *text, char out[SHEPHERD_ADDRESS_MAX], struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	char host[256], number[SHEPHERD_ADDRESS_MAX - 16];
	struct addrinfo *found = NULL;
	const char *port = "";
	int problem;

	if (split(text, host, &port, err) < 0)
		return -1;
	problem = getaddrinfo(host, NULL, &hints, &found);
	if (problem == 0)
		problem = getnameinfo(found->ai_addr, found->ai_addrlen, number, sizeof(number),
				      NULL, 0, NI_NUMERICHOST);
	if (problem == 0)
		snprintf(out, SHEPHERD_ADDRESS_MAX,
			 found->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s", number, port);
	if (found)
		freeaddrinfo(found);
	if (problem)
		return err_set(err, ERR_NOT_FOUND, "address for pods \"%.80s\": %s", text,
			       gai_strerror(problem));
	if (strncmp(out, "0.0.0.0:", 8) == 0 || strncmp(out, "[::]:", 5) == 0)
		return err_set(
			err, ERR_INVALID,
			"pods can't reach the daemon at %s: say with --pod-address at which address they do",
			out);
	return 0;
}
