/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a kubeconfig that gives credentials: what `exec` of a user says. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/conf.h"
#include "engine/kubernetes/access.h"

#define GROUP "client.authentication.k8s.io/"
enum { WORDS_MAX = 64, WORD_MAX = 4096, HINT_MAX = 1000, BASE64_MAX = 2 << 20 };

struct reader {
	const char *file, *folder;
	struct arena *arena;
	struct err *err;
};

static int text_of(struct reader *r, const struct conf *map, const char *key, size_t most,
		   const char **ret)
{
	const struct conf *value = conf_find(map, key);

	if (!value || value->type == CONF_NULL)
		return 0;
	return conf_text(r->err, r->file, value, key, most, ret);
}

static int list_of(struct reader *r, const struct conf *map, const char *key,
		   const struct conf **ret)
{
	*ret = conf_find(map, key);
	if (!*ret || (*ret)->type == CONF_NULL) {
		*ret = NULL;
		return 0;
	}
	if ((*ret)->type != CONF_LIST)
		return conf_error(r->err, r->file, *ret, "%s: a list is expected", key);
	if ((*ret)->count > WORDS_MAX)
		return conf_error(r->err, r->file, *ret, "%s has more than %d items", key,
				  WORDS_MAX);
	return 0;
}

/* A path is that of a file beside the kubeconfig; a name alone is looked for in PATH. */
static int command_read(struct reader *r, const struct conf *map, struct access_exec *exec)
{
	const struct conf *args, *env;
	const char *command = NULL;
	char **words;
	int rc = text_of(r, map, "command", WORD_MAX, &command);

	if (rc == 0 && (!command || !*command))
		return conf_error(r->err, r->file, map, "exec has no command");
	if (rc == 0)
		rc = list_of(r, map, "args", &args);
	if (rc == 0)
		rc = list_of(r, map, "env", &env);
	if (rc < 0)
		return rc;
	if (command[0] != '/' && strchr(command, '/'))
		command = arena_printf(r->arena, "%s/%s", r->folder, command);
	words = arena_new_array(r->arena, char *, WORDS_MAX + 2);
	words[0] = arena_strdup(r->arena, command);
	for (size_t i = 0; args && i < args->count; i++) {
		const char *word = NULL;

		rc = conf_text(r->err, r->file, args->items[i], "args", WORD_MAX, &word);
		if (rc < 0)
			return rc;
		words[i + 1] = arena_strdup(r->arena, word);
	}
	exec->argv = words;
	words = arena_new_array(r->arena, char *, WORDS_MAX + 1);
	for (size_t i = 0; env && i < env->count; i++) {
		const struct conf *item = env->items[i];
		const char *name = NULL, *value = "";

		if (item->type != CONF_MAP)
			return conf_error(r->err, r->file, item,
					  "env: a map with name and value is expected");
		if (text_of(r, item, "name", WORD_MAX, &name) < 0 ||
		    text_of(r, item, "value", WORD_MAX, &value) < 0)
			return -(int)r->err->code;
		if (!name || !*name || strchr(name, '='))
			return conf_error(r->err, r->file, item, "env: an item has no name");
		words[i] = arena_printf(r->arena, "%s=%s", name, value);
	}
	exec->env = words;
	return 0;
}

static int version_read(struct reader *r, const struct conf *map, struct access_exec *exec)
{
	const char *version = NULL, *mode = NULL;
	int rc = text_of(r, map, "apiVersion", WORD_MAX, &version);

	if (rc == 0)
		rc = text_of(r, map, "interactiveMode", WORD_MAX, &mode);
	if (rc == 0)
		rc = text_of(r, map, "installHint", HINT_MAX, &exec->hint);
	if (rc < 0)
		return rc;
	if (!version || (strcmp(version, GROUP "v1") != 0 && strcmp(version, GROUP "v1beta1") != 0))
		return conf_error(
			r->err, r->file,
			conf_find(map, "apiVersion") ? conf_find(map, "apiVersion") : map,
			"the apiVersion of exec must be " GROUP "v1 or " GROUP
			"v1beta1; `kubectl` or the program's own set-up writes a newer one");
	if (mode && strcmp(mode, "Always") == 0)
		return conf_error(
			r->err, r->file, conf_find(map, "interactiveMode"),
			"interactiveMode Always: a daemon has nobody who could type; take an account whose program asks nobody");
	if (mode && strcmp(mode, "Never") != 0 && strcmp(mode, "IfAvailable") != 0)
		return conf_error(r->err, r->file, conf_find(map, "interactiveMode"),
				  "interactiveMode is Never or IfAvailable");
	exec->version = arena_strdup(r->arena, version);
	return 0;
}

/* What the program is told: KUBERNETES_EXEC_INFO. */
static int info_make(struct reader *r, const struct conf *map, const struct conf *cluster,
		     const struct kube_access *access, struct access_exec *exec)
{
	static const char *const more = "extensions";
	const struct conf *wants = conf_find(map, "provideClusterInfo");
	AUTO_BUF out = BUF_INIT;
	bool tells = false;

	if (wants && wants->type != CONF_NULL &&
	    conf_bool(r->err, r->file, wants, "provideClusterInfo", &tells) < 0)
		return -(int)r->err->code;
	if (tells && conf_find(cluster, more) && conf_find(cluster, more)->type != CONF_NULL)
		return conf_error(
			r->err, r->file, conf_find(cluster, more),
			"extensions of a cluster are not passed on to the program of exec in this release: take provideClusterInfo or them away");
	buf_adds(&out, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",");
	buf_add_json_member(&out, "apiVersion", exec->version);
	buf_adds(&out, ",\"spec\":{\"interactive\":false");
	if (tells) {
		const char *authority = NULL;

		buf_adds(&out, ",\"cluster\":{");
		buf_add_json_member(&out, "server", access->server);
		if (access->insecure)
			buf_adds(&out, ",\"insecure-skip-tls-verify\":true");
		if (text_of(r, cluster, "certificate-authority-data", BASE64_MAX, &authority) < 0)
			return -(int)r->err->code;
		if (!authority && access->authority.size)
			authority = access_base64(access->authority, r->arena);
		if (authority) {
			buf_addc(&out, ',');
			buf_add_json_member(&out, "certificate-authority-data", authority);
		}
		buf_addc(&out, '}');
	}
	buf_adds(&out, "}}");
	exec->info = arena_strdup(r->arena, buf_text(&out));
	return 0;
}

int access_exec_read(const char *file, const struct conf *map, const struct conf *cluster,
		     const char *folder, struct arena *arena, struct kube_access *access,
		     struct err *err)
{
	struct reader r = { file, folder, arena, err };
	struct access_exec *exec = arena_new(arena, struct access_exec);
	int rc;

	if (map->type != CONF_MAP)
		return conf_error(err, file, map, "exec: a map is expected");
	if (access->token || access->token_file || access->certificate.data)
		return conf_error(
			err, file, map,
			"the account has exec and a token or client certificate besides; which one counts can't be known");
	rc = command_read(&r, map, exec);
	if (rc == 0)
		rc = version_read(&r, map, exec);
	if (rc == 0)
		rc = info_make(&r, map, cluster, access, exec);
	if (rc == 0)
		access->exec = exec;
	return rc;
}
