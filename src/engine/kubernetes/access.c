/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/access.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/conf.h"

#define ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"
enum { FILE_MAX = 1 << 20, TEXT_MAX = 4096, NAMES_SHOWN = 10 };

/* --- files --------------------------------------------------------------------------------------------- */

static int read_file(const char *path, struct arena *arena, struct access_bytes *ret,
		     struct err *err)
{
	char *data = arena_alloc(arena, FILE_MAX + 1);
	size_t size = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
				 "\"%.200s\" can't be opened", path);
	for (;;) {
		ssize_t got = read(fd, data + size, FILE_MAX + 1 - size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			close(fd);
			return err_errno(err, ERR_IO, errno, "\"%.200s\" can't be read", path);
		}
		if (got == 0)
			break;
		size += (size_t)got;
		if (size > FILE_MAX) {
			close(fd);
			return err_set(err, ERR_TOO_LARGE, "\"%.200s\" is larger than %d bytes",
				       path, FILE_MAX);
		}
	}
	close(fd);
	data[size] = '\0';
	*ret = (struct access_bytes){ data, size };
	return 0;
}

int access_token(const char *path, struct arena *arena, const char **ret, struct err *err)
{
	struct access_bytes bytes;
	int rc = read_file(path, arena, &bytes, err);
	size_t first = 0, end = bytes.size;

	if (rc < 0)
		return rc;
	while (first < end && (unsigned char)bytes.data[first] <= ' ')
		first++;
	while (end > first && (unsigned char)bytes.data[end - 1] <= ' ')
		end--;
	for (size_t i = first; i < end; i++)
		if ((unsigned char)bytes.data[i] <= ' ' || bytes.data[i] == 127)
			return err_set(err, ERR_INVALID, "\"%.200s\" does not hold a token", path);
	if (first == end)
		return err_set(err, ERR_INVALID, "the token in \"%.200s\" is empty", path);
	*ret = arena_strndup(arena, bytes.data + first, end - first);
	return 0;
}

/* --- kubeconfig ------------------------------------------------------------------------------------------ */

struct config {
	const char *file, *folder;
	struct arena *arena;
	struct err *err;
};

static int text_of(struct config *c, const struct conf *map, const char *key, const char **ret)
{
	const struct conf *value = conf_find(map, key);

	if (!value || value->type == CONF_NULL)
		return 0;
	return conf_text(c->err, c->file, value, key, FILE_MAX, ret);
}

static int path_of(struct config *c, const struct conf *map, const char *key, const char **ret)
{
	const char *path = NULL;
	int rc = text_of(c, map, key, &path);

	if (rc < 0 || !path || !*path)
		return rc;
	*ret = path[0] == '/' ? path : arena_printf(c->arena, "%s/%s", c->folder, path);
	return 0;
}

static int decode(struct config *c, const struct conf *at, const char *text,
		  struct access_bytes *ret)
{
	size_t size = strlen(text), padding = 0;
	unsigned char *data = arena_alloc(c->arena, size / 4 * 3 + 1);
	int got;

	while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
		padding++;
	got = size && size % 4 == 0 ? EVP_DecodeBlock(data, (const unsigned char *)text, (int)size)
				    : -1;
	if (got < (int)padding)
		return conf_error(c->err, c->file, at, "%s is not base64", at->key);
	*ret = (struct access_bytes){ (const char *)data, (size_t)got - padding };
	return 0;
}

/* NAME-data, or the file NAME. */
static int bytes_of(struct config *c, const struct conf *map, const char *name,
		    struct access_bytes *ret)
{
	const char *key = arena_printf(c->arena, "%s-data", name), *text = NULL, *path = NULL;
	int rc = text_of(c, map, key, &text);

	if (rc < 0)
		return rc;
	if (text && *text)
		return decode(c, conf_find(map, key), text, ret);
	rc = path_of(c, map, name, &path);
	return rc < 0 || !path ? rc : read_file(path, c->arena, ret, c->err);
}

/* Those that list `of` has, of which the reader may have meant one. */
static const char *names_of(struct config *c, const struct conf *document, const char *of)
{
	const struct conf *list = conf_find(document, of);
	const char *names = "";
	size_t count = list && list->type == CONF_LIST ? list->count : 0;

	for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
		const struct conf *name =
			list->items[i]->type == CONF_MAP ? conf_find(list->items[i], "name") : NULL;

		if (name && name->type == CONF_SCALAR)
			names = arena_printf(c->arena, "%s%s%.100s", names,
					     *names ? ", " : "; it has ", name->text);
	}
	return count > NAMES_SHOWN ? arena_printf(c->arena, "%s and others", names) : names;
}

/* The map `body` of the item that bears this name in list `of`. */
static int item_of(struct config *c, const struct conf *document, const char *of, const char *body,
		   const char *name, const struct conf **ret)
{
	const struct conf *list = conf_find(document, of);

	for (size_t i = 0; list && list->type == CONF_LIST && i < list->count; i++) {
		const struct conf *item = list->items[i];
		const char *its = NULL;

		if (item->type != CONF_MAP)
			return conf_error(c->err, c->file, item, "%s: a map is expected", of);
		if (text_of(c, item, "name", &its) < 0)
			return -(int)c->err->code;
		if (!its || strcmp(its, name) != 0)
			continue;
		*ret = conf_find(item, body);
		if (!*ret || (*ret)->type != CONF_MAP)
			return conf_error(c->err, c->file, item, "\"%.100s\" has no %s", name,
					  body);
		return 0;
	}
	return conf_error(c->err, c->file, document, "%s has no \"%.100s\"%s", of, name,
			  names_of(c, document, of));
}

static int refuse_fields(struct config *c, const struct conf *map, const char *const *names,
			 size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct conf *value = conf_find(map, names[i]);

		if (value && value->type != CONF_NULL)
			return conf_error(
				c->err, c->file, value,
				"%s is not supported; accounts by token, token file, client certificate or exec are",
				names[i]);
	}
	return 0;
}

static int cluster_read(struct config *c, const struct conf *map, struct kube_access *access)
{
	static const char *const refused[] = { "proxy-url", "tls-server-name" };
	const struct conf *insecure = conf_find(map, "insecure-skip-tls-verify");
	const char *server = NULL;
	int rc = refuse_fields(c, map, refused, ARRAY_SIZE(refused));

	if (rc == 0)
		rc = text_of(c, map, "server", &server);
	if (rc == 0)
		rc = bytes_of(c, map, "certificate-authority", &access->authority);
	if (rc == 0 && insecure && insecure->type != CONF_NULL)
		rc = conf_bool(c->err, c->file, insecure, "insecure-skip-tls-verify",
			       &access->insecure);
	if (rc < 0)
		return rc;
	if (!server || (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0))
		return conf_error(c->err, c->file, map,
				  "the cluster's server must be an address like https://HOST:PORT");
	if (strlen(server) > TEXT_MAX)
		return conf_error(c->err, c->file, map, "the server's address is too long");
	access->server = arena_strdup(c->arena, server);
	for (size_t size = strlen(server); size && server[size - 1] == '/'; size--)
		access->server = arena_strndup(c->arena, server, size - 1);
	return 0;
}

const char *access_base64(struct access_bytes bytes, struct arena *arena)
{
	unsigned char *text = arena_alloc(arena, bytes.size / 3 * 4 + 5);

	(void)EVP_EncodeBlock(text, (const unsigned char *)bytes.data, (int)bytes.size);
	return (const char *)text;
}

static int user_read(struct config *c, const struct conf *map, const struct conf *cluster,
		     struct kube_access *access)
{
	static const char *const refused[] = { "auth-provider", "username",  "password",     "as",
					       "as-uid",        "as-groups", "as-user-extra" };
	const struct conf *exec = conf_find(map, "exec");
	int rc = refuse_fields(c, map, refused, ARRAY_SIZE(refused));

	if (rc == 0)
		rc = text_of(c, map, "token", &access->token);
	if (rc == 0)
		rc = path_of(c, map, "tokenFile", &access->token_file);
	if (rc == 0)
		rc = bytes_of(c, map, "client-certificate", &access->certificate);
	if (rc == 0)
		rc = bytes_of(c, map, "client-key", &access->key);
	if (rc == 0 && !access->certificate.data != !access->key.data)
		rc = conf_error(c->err, c->file, map,
				"a client certificate and its key go together; one is missing");
	if (rc == 0 && exec && exec->type != CONF_NULL)
		rc = access_exec_read(c->file, exec, cluster, c->folder, c->arena, access, c->err);
	return rc;
}

static int context_read(struct config *c, const struct conf *document, const char *name,
			struct kube_access *access)
{
	const struct conf *context = NULL, *cluster = NULL, *user = NULL;
	const char *cluster_name = NULL, *user_name = NULL;
	int rc = item_of(c, document, "contexts", "context", name, &context);

	if (rc == 0)
		rc = text_of(c, context, "cluster", &cluster_name);
	if (rc == 0)
		rc = text_of(c, context, "user", &user_name);
	if (rc == 0)
		rc = text_of(c, context, "namespace", &access->namespace);
	if (rc == 0)
		rc = item_of(c, document, "clusters", "cluster", cluster_name ? cluster_name : "",
			     &cluster);
	if (rc == 0)
		rc = cluster_read(c, cluster, access);
	if (rc == 0 && user_name)
		rc = item_of(c, document, "users", "user", user_name, &user);
	return rc < 0 || !user ? rc : user_read(c, user, cluster, access);
}

int access_parse(const char *file, const char *text, size_t size, const char *folder,
		 const char *context, struct arena *arena, struct kube_access *ret, struct err *err)
{
	struct config c = { .file = file, .folder = folder, .arena = arena, .err = err };
	struct kube_access access = { 0 };
	struct conf **documents;
	size_t count;
	int rc = conf_parse(file, text, size, arena, &documents, &count, err);

	if (rc < 0)
		return rc;
	if (count != 1 || documents[0]->type != CONF_MAP)
		return err_set(err, ERR_INVALID, "\"%.200s\" is no kubeconfig: one map is expected",
			       file);
	if (!context) {
		rc = text_of(&c, documents[0], "current-context", &context);
		if (rc < 0)
			return rc;
	}
	if (!context || !*context)
		return conf_error(err, file, documents[0],
				  "no context is current: name one with --context%s",
				  names_of(&c, documents[0], "contexts"));
	rc = context_read(&c, documents[0], context, &access);
	if (rc < 0)
		return rc;
	if (!access.namespace || !*access.namespace)
		access.namespace = "default";
	*ret = access;
	return 0;
}

/* --- where it is ------------------------------------------------------------------------------------------- */

static int in_cluster(const char *host, const char *port, struct arena *arena,
		      struct kube_access *ret, struct err *err)
{
	struct kube_access access = { .token_file = ACCOUNT_FOLDER "/token" };
	struct access_bytes namespace = { 0 };
	bool six = strchr(host, ':') != NULL;
	int rc = read_file(ACCOUNT_FOLDER "/ca.crt", arena, &access.authority, err);

	if (rc == 0)
		rc = read_file(ACCOUNT_FOLDER "/namespace", arena, &namespace, err);
	if (rc < 0)
		return err_prefix(err, "the pod's own account can't be used");
	access.namespace = arena_strndup(arena, namespace.data, strcspn(namespace.data, "\r\n"));
	access.server = arena_printf(arena, six ? "https://[%s]:%s" : "https://%s:%s", host, port);
	*ret = access;
	return 0;
}

static int from_file(const char *path, const char *context, struct arena *arena,
		     struct kube_access *ret, struct err *err)
{
	struct access_bytes text;
	const char *slash = strrchr(path, '/');
	const char *folder = !slash          ? "."
			     : slash == path ? "/"
					     : arena_strndup(arena, path, (size_t)(slash - path));
	int rc = read_file(path, arena, &text, err);

	if (rc < 0 && strchr(path, ':'))
		return err_set(
			err, ERR_NOT_FOUND,
			"\"%.300s\" can't be opened; where KUBECONFIG names several files, name one with --kubeconfig, or write them into one with `kubectl config view --flatten --raw`",
			path);
	if (rc < 0)
		return err_prefix(err, "the kubeconfig");
	return access_parse(path, text.data, text.size, folder, context, arena, ret, err);
}

int access_find(const char *path, const char *context, struct arena *arena, struct kube_access *ret,
		struct err *err)
{
	const char *named = getenv("KUBECONFIG"), *home = getenv("HOME");
	const char *host = getenv("KUBERNETES_SERVICE_HOST"),
		   *port = getenv("KUBERNETES_SERVICE_PORT");

	if (!path && named && *named)
		path = named;
	if (path)
		return from_file(path, context, arena, ret, err);
	if (host && *host && port && *port && !context)
		return in_cluster(host, port, arena, ret, err);
	if (!home || !*home)
		return err_set(err, ERR_NOT_FOUND,
			       "no kubeconfig is known: name one with --kubeconfig FILE");
	return from_file(arena_printf(arena, "%s/.kube/config", home), context, arena, ret, err);
}
