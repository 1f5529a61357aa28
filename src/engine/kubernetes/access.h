/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the API server is and who we are to it: from a kubeconfig file, or from what a pod finds in its container.
 *
 * Read: server, its certificate (file or data), `insecure-skip-tls-verify`; token, token file (read again while it is in use), client
 * certificate and key (file or data), or the program that gives them (`exec`, credential.h); the namespace of the context. Refused by name,
 * since leaving them out would be another identity or another server: auth-provider, username, impersonation, proxy-url, tls-server-name.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

struct arena;
struct conf;

struct access_bytes {
	const char *data; /* NULL = none */
	size_t size;
};

/* A program that gives token or certificate. */
struct access_exec {
	char *const *
		argv; /* NULL behind the last; the first is a path, or a name to be looked for in PATH */
	char *const *env; /* NAME=VALUE, likewise */
	const char *version, *hint; /* hint: how one gets the program; NULL = not said */
	const char *info; /* KUBERNETES_EXEC_INFO=... */
};

struct kube_access {
	const char *server; /* "https://host:port", without a slash at its end */
	const char *namespace; /* never NULL */
	const char *token, *token_file; /* NULL = none */
	struct access_bytes authority; /* PEM; none = the system's */
	struct access_bytes certificate, key; /* PEM */
	const struct access_exec *exec; /* in place of token and certificate; NULL = none */
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
/* `exec` of a user, for access.c; `cluster`: the cluster's map. */
int access_exec_read(const char *file, const struct conf *map, const struct conf *cluster,
		     const char *folder, struct arena *arena, struct kube_access *access,
		     struct err *err) MUST_CHECK;
const char *access_base64(struct access_bytes bytes, struct arena *arena);
