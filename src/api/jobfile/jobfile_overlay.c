/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kubernetes:` of a job file: what its pods get besides, as JSON for the body. Only what stands in overlay_fields.def may be said: on the rest
 * rests which pod is whose, where it runs, what it takes and what it may do to its node. A field that Kubernetes adds later is refused until
 * somebody has looked at it.
 *
 * The path of a value: keys with dots between them, [] for what is in a list: spec.volumes[].secret.secretName.
 */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"

static const char *const allowed[] = {
#define MAY(path) path,
#include "api/jobfile/overlay_fields.def"
};

static const struct {
	const char *path, *why;
} refused[] = {
#define MAY_NOT(path, why) { path, why },
#include "api/jobfile/overlay_fields.def"
};

/* Of a container: no power over its node. */
static const char *const capabilities[] = { "AUDIT_WRITE", "CHOWN",    "DAC_OVERRIDE",
					    "FOWNER",      "FSETID",   "IPC_LOCK",
					    "KILL",        "SETFCAP",  "SETGID",
					    "SETPCAP",     "SETUID",   "NET_BIND_SERVICE",
					    "SYS_CHROOT",  "SYS_NICE", "SYS_PTRACE" };

enum { PATH_MAX_BYTES = 512 };

struct walk {
	struct reading *r;
	struct buf *out;
	size_t values;
};

enum permission { PERMITTED, PARTLY, NOT_PERMITTED };

/* PARTLY: something in it may be. */
static enum permission permission_of(const char *path)
{
	const size_t length = strlen(path);
	enum permission found = NOT_PERMITTED;

	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		const size_t size = strlen(allowed[i]);
		const bool whole = size > 3 && strcmp(allowed[i] + size - 3, ".**") == 0;

		if (strcmp(allowed[i], path) == 0 ||
		    (whole && strncmp(allowed[i], path, size - 2) == 0))
			return PERMITTED;
		if (length < size && strncmp(allowed[i], path, length) == 0 &&
		    (allowed[i][length] == '.' || allowed[i][length] == '['))
			found = PARTLY;
	}
	return found;
}

static const char *why_not(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (strcmp(refused[i].path, path) == 0)
			return refused[i].why;
	return "it is none of the fields that a job may set (docs/kubernetes.md)";
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* --- scalars -------------------------------------------------------------------------------------------------- */

static bool is_number(const char *text)
{
	const char *p = text + (*text == '-');
	const size_t whole = strspn(p, "0123456789");

	if (!whole || (whole > 1 && *p == '0'))
		return false;
	p += whole;
	if (*p == '.')
		p += 1 + strspn(p + 1, "0123456789");
	return !*p && p[-1] != '.';
}

/* Plain texts that YAML has had as numbers at one time: what is meant is not guessed. */
static bool is_doubtful(const char *text)
{
	const char *p = text + (*text == '-' || *text == '+');
	const size_t digits = strspn(p, "0123456789abcdefABCDEFxo._");

	if (*p < '0' || *p > '9' || p[digits])
		return false;
	return *text == '+' || *p == '0' ||
	       (strcspn(p, "eE") < digits && strspn(p, "0123456789.eE") == digits);
}

static int scalar_write(struct walk *w, const struct conf *c, const char *path)
{
	if (begins(path, "metadata.")) { /* labels are texts, "1" and "true" too */
		buf_add_json(w->out, c->text, strlen(c->text));
		return 0;
	}
	if (!c->quoted &&
	    (is_number(c->text) || strcmp(c->text, "true") == 0 || strcmp(c->text, "false") == 0)) {
		buf_adds(w->out, c->text);
		return 0;
	}
	if (!c->quoted && is_doubtful(c->text))
		return conf_error(
			w->r->err, w->r->file, c,
			"kubernetes: %s: write %.40s as a plain decimal number, or in quotes when it is a text",
			path, c->text);
	buf_add_json(w->out, c->text, strlen(c->text));
	return 0;
}

/* --- what may stand in some places ------------------------------------------------------------------------------- */

static int check_capability(struct walk *w, const struct conf *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		if (strcmp(capabilities[i], c->text) == 0)
			return 0;
	return conf_error(
		w->r->err, w->r->file, c,
		"kubernetes: the capability %.40s is not for jobs: pods of jobs are kept apart from their nodes",
		c->text);
}

/* Of what Fairlead itself made: an attempt's Secret is for its own pods, and what is in them of Fairlead's stays as it is. */
static bool names_ours(const struct conf *c, const char *path)
{
	return c->key && (strcmp(c->key, "secretName") == 0 || strcmp(c->key, "name") == 0) &&
	       jobfile_is_ours(c->text) && !begins(path, "metadata.");
}

static bool ends(const char *text, const char *with)
{
	const size_t length = strlen(text), size = strlen(with);

	return length >= size && strcmp(text + length - size, with) == 0;
}

/* The kubelet asks, from the node: whom it can reach is more than what a pod can. */
static bool asks_others(const char *path)
{
	return ends(path, ".httpGet.host") || ends(path, ".tcpSocket.host");
}

static int check_scalar(struct walk *w, const struct conf *c, const char *path)
{
	if (ends(path, ".capabilities.add[]"))
		return check_capability(w, c);
	if (ends(path, ".seccompProfile.type") && strcmp(c->text, "Unconfined") == 0)
		return conf_error(
			w->r->err, w->r->file, c,
			"kubernetes: %s can't be Unconfined: pods of jobs are kept apart from their nodes",
			path);
	if (asks_others(path))
		return conf_error(w->r->err, w->r->file, c,
				  "kubernetes: %s can't be set: a node asks its own pod alone",
				  path);
	if (names_ours(c, path))
		return conf_error(
			w->r->err, w->r->file, c,
			"kubernetes: %s: fairlead and names that begin with fairlead- are Fairlead's own",
			path);
	if (begins(path, "spec.") && c->key && strcmp(c->key, "mountPath") == 0 &&
	    jobfile_mount_path(c->text))
		return conf_error(w->r->err, w->r->file, c, "kubernetes: %s: %.60s %s", path,
				  c->text, jobfile_mount_path(c->text));
	if (strcmp(path, "spec.volumes[].name") == 0 && jobfile_volume_name(c->text))
		return conf_error(w->r->err, w->r->file, c, "kubernetes: %s: \"%.60s\" %s", path,
				  c->text, jobfile_volume_name(c->text));
	return 0;
}

static int check_key(struct walk *w, const struct conf *c, const char *path)
{
	const bool labels = strcmp(path, "metadata.labels") == 0;
	const char *domain = strchr(c->key, '/');
	const size_t length = domain ? (size_t)(domain - c->key) : 0;

	if (!labels && strcmp(path, "metadata.annotations") != 0)
		return 0;
	if ((length >= 12 && strncmp(domain - 12, "fairlead.dev", 12) == 0) ||
	    strcmp(c->key, "app.kubernetes.io/managed-by") == 0)
		return jobfile_key_error(
			w->r, c,
			"kubernetes: %s: %.100s is Fairlead's own: it knows its pods by it", path,
			c->key);
	if (!labels && (begins(c->key, "io.kubernetes.") ||
			(length >= 13 && strncmp(domain - 13, "kubernetes.io", 13) == 0) ||
			(length >= 6 && strncmp(domain - 6, "k8s.io", 6) == 0)))
		return jobfile_key_error(
			w->r, c,
			"kubernetes: %s: %.100s is for Kubernetes and those who run it to say",
			path, c->key);
	return 0;
}

/* --- the walk ------------------------------------------------------------------------------------------------------ */

static int value_write(struct walk *w, const struct conf *c, const char *path);

/* Where one of a list of containers is looked up. */
static int container_path(struct walk *w, const struct conf *c, const char *list, const char **ret)
{
	const struct conf *name = c->type == CONF_MAP ? conf_find(c, "name") : NULL;

	if (!name || name->type != CONF_SCALAR || !name->text[0])
		return conf_error(w->r->err, w->r->file, c,
				  "kubernetes: each of %s needs a name; the job's own is main",
				  list);
	*ret = strcmp(name->text, "main") == 0 ? "spec.main" : "spec.other";
	if (strcmp(list, "spec.initContainers") == 0 && (*ret)[5] == 'm')
		return conf_error(w->r->err, w->r->file, name,
				  "kubernetes: %s: main is the name of the job's own container",
				  list);
	return 0;
}

static int list_write(struct walk *w, const struct conf *c, const char *path)
{
	const bool containers =
		strcmp(path, "spec.containers") == 0 || strcmp(path, "spec.initContainers") == 0;
	const char *below = arena_printf(w->r->arena, "%s[]", path);
	int rc = 0;

	buf_addc(w->out, '[');
	for (size_t i = 0; i < c->count && rc >= 0; i++) {
		if (i)
			buf_addc(w->out, ',');
		if (containers)
			rc = container_path(w, c->items[i], path, &below);
		if (rc >= 0)
			rc = value_write(w, c->items[i], below);
	}
	buf_addc(w->out, ']');
	return rc;
}

static int member_write(struct walk *w, const struct conf *c, const char *path)
{
	const char *below = *path ? arena_printf(w->r->arena, "%s.%.250s", path, c->key) : c->key;
	const bool containers =
		strcmp(below, "spec.containers") == 0 || strcmp(below, "spec.initContainers") == 0;
	int rc = check_key(w, c, path);

	if (rc < 0)
		return rc;
	if (strlen(below) > PATH_MAX_BYTES)
		return jobfile_key_error(w->r, c, "kubernetes: it is nested too deep here");
	if (!containers && permission_of(below) == NOT_PERMITTED &&
	    permission_of(arena_printf(w->r->arena, "%s[]", below)) == NOT_PERMITTED)
		return jobfile_key_error(w->r, c, "kubernetes: %s can't be set: %s", below,
					 why_not(below));
	if (containers && c->type != CONF_LIST)
		return jobfile_key_error(w->r, c, "kubernetes: %s must be a list of maps", below);
	buf_add_json(w->out, c->key, strlen(c->key));
	buf_addc(w->out, ':');
	return value_write(w, c, below);
}

static int map_write(struct walk *w, const struct conf *c, const char *path)
{
	int rc = 0;

	buf_addc(w->out, '{');
	for (size_t i = 0; i < c->count && rc >= 0; i++) {
		if (i)
			buf_addc(w->out, ',');
		rc = member_write(w, c->items[i], path);
	}
	buf_addc(w->out, '}');
	return rc;
}

/* A list where it is one, all else where it is a map or a text: which it must be is for the API server to say where all of it may be set. */
static int value_write(struct walk *w, const struct conf *c, const char *path)
{
	const enum permission found = permission_of(path);
	const char *as_list = arena_printf(w->r->arena, "%s[]", path);
	const bool containers =
		begins(path, "spec.containers") || begins(path, "spec.initContainers");
	int rc = 0;

	if (++w->values > JOBFILE_OVERLAY_VALUES_MAX)
		return conf_error(w->r->err, w->r->file, c,
				  "kubernetes has more than %d values, the limit",
				  JOBFILE_OVERLAY_VALUES_MAX);
	switch (c->type) {
	case CONF_NULL:
		return conf_error(w->r->err, w->r->file, c,
				  "kubernetes: %s is left empty; give it a value or leave it out",
				  path);
	case CONF_LIST:
		if (!containers && found != PERMITTED && permission_of(as_list) == NOT_PERMITTED)
			return conf_error(w->r->err, w->r->file, c,
					  "kubernetes: %s must not be a list", path);
		return list_write(w, c, path);
	case CONF_MAP:
		if (*path && found == NOT_PERMITTED)
			return conf_error(w->r->err, w->r->file, c, "kubernetes: %s must be a list",
					  path);
		return map_write(w, c, path);
	case CONF_SCALAR:
		if (found != PERMITTED)
			return conf_error(w->r->err, w->r->file, c,
					  "kubernetes: %s must be a %s, not \"%.60s\"", path,
					  found == PARTLY ? "map or a list" : "list", c->text);
		rc = check_scalar(w, c, path);
		return rc < 0 ? rc : scalar_write(w, c, path);
	}
	return rc;
}

int read_kubernetes(struct reading *r, const struct conf *c, const char *what)
{
	AUTO_BUF out = BUF_INIT;
	struct walk walk = { .r = r, .out = &out };
	int rc;

	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c,
				  "%s must be a map such as {metadata: {labels: {app: train}}}",
				  what);
	rc = map_write(&walk, c, "");
	if (rc < 0)
		return rc;
	if (out.size > JOBFILE_OVERLAY_MAX)
		return conf_error(r->err, r->file, c, "%s has %zu bytes; the limit is %d", what,
				  out.size, JOBFILE_OVERLAY_MAX);
	r->body.overlay = arena_strndup(r->arena, out.data, out.size);
	r->body.pod_field = r->body.pod_field ? r->body.pod_field : what;
	return 0;
}
