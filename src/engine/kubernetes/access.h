/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the API server is and who we are to it: from a kubeconfig file, or from what a pod finds in its container.
 *
 * Read: server, its certificate (file or data), `insecure-skip-tls-verify`; token, token file (read again while it is in use), client
 * certificate and key (file or data); the namespace of the context. Refused by name, since leaving them out would be another identity or
 * another server: exec, auth-provider, username, impersonation, proxy-url, tls-server-name.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

struct arena;

struct access_bytes {
	const char *data; /* NULL = none */
	size_t size;
};

struct kube_access {
	const char *server; /* "https://host:port", without a slash at its end */
	const char *namespace; /* never NULL */
	const char *token, *token_file; /* NULL = none */
	struct access_bytes authority; /* PEM; none = the system's */
	struct access_bytes certificate, key; /* PEM */
	bool insecure; /* the server's certificate is not looked at */
};

/* path NULL: the file that KUBECONFIG names; without that a pod's own account; without that ~/.kube/config. context NULL: the current one. */
int access_find(const char *path, const char *context, struct arena *arena, struct kube_access *ret,
		struct err *err) MUST_CHECK;
/* The same from a text, for tests: files that it names are relative to `folder`. */
int access_parse(const char *file, const char *text, size_t size, const char *folder,
		 const char *context, struct arena *arena, struct kube_access *ret, struct err *err)
	MUST_CHECK;
/* What the token file holds now, without white space around it; in the arena. */
int access_token(const char *path, struct arena *arena, const char **ret, struct err *err)
	MUST_CHECK;
