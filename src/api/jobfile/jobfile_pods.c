/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pods of a job get on a cluster, said in a job file's own words: volumes, resources that only Kubernetes counts, the size of shared
 * memory, a service account, secrets for images. It becomes one overlay of the pod, written before the one of `kubernetes:`.
 */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"

#define KUBE_MIG "nvidia.com/mig-" /* and the name of a slice */

enum { OBJECT_NAME_MAX = 253, LABEL_MAX = 63, MOUNT_MAX = 1000, HOST_MAX = 255 };

/* --- names ------------------------------------------------------------------------------------------------------ */

static bool is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* As Kubernetes names objects: small letters, digits, hyphens, dots. */
static bool is_object_name(const char *text, size_t most, bool dots)
{
	const size_t length = strlen(text);

	if (!length || length > most || !is_lower(text[0]) || !is_lower(text[length - 1]))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!is_lower(text[i]) && text[i] != '-' && !(dots && text[i] == '.'))
			return false;
	return true;
}

const char *jobfile_volume_name(const char *name)
{
	if (!is_object_name(name, LABEL_MAX, false))
		return "is no name of a volume; it has up to 63 small letters, digits and hyphens";
	if (strcmp(name, "shm") == 0 || strcmp(name, "script") == 0 ||
	    strncmp(name, "fairlead", 8) == 0)
		return "is the name of a volume of Fairlead's own; take another one";
	return NULL;
}

static bool is_within(const char *path, const char *folder)
{
	const size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/');
}

/* No part of it is empty, . or .. */
static bool is_straight(const char *path)
{
	for (const char *p = path; *p; p += strcspn(p, "/")) {
		size_t length;

		if (*p++ != '/')
			return false;
		length = strcspn(p, "/");
		if (!length || (length == 1 && *p == '.') ||
		    (length == 2 && strncmp(p, "..", 2) == 0))
			return false;
	}
	return *path != '\0';
}

bool jobfile_is_ours(const char *object)
{
	return strcmp(object, "fairlead") == 0 || strncmp(object, "fairlead-", 9) == 0;
}

const char *jobfile_mount_path(const char *path)
{
	static const char *const kept[] = { "/dev",          "/proc",         "/sys",
					    "/etc/fairlead", "/run/fairlead", "/var/run/fairlead",
					    "/fairlead" };

	if (!is_straight(path) || strchr(path, ':') || strlen(path) > MOUNT_MAX)
		return "is no place for a volume; it must be an absolute path other than /, without // and .., without a colon";
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (is_within(path, kept[i]) || strcmp(path, "/run") == 0 ||
		    strcmp(path, "/var/run") == 0) /* a link to it in most images */
			return "is no place for a volume: it is the machine's or Fairlead's own";
	return NULL;
}

static int object_name(struct reading *r, const struct conf *c, const char *what, const char **ret)
{
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, ret);

	if (rc < 0)
		return rc;
	if (!is_object_name(*ret, OBJECT_NAME_MAX, true))
		return conf_error(
			r->err, r->file, c,
			"%s: \"%.60s\" is no name of an object in Kubernetes; it has small letters, digits, hyphens and dots",
			what, *ret);
	if (jobfile_is_ours(*ret))
		return conf_error(
			r->err, r->file, c,
			"%s: fairlead and names that begin with fairlead- are Fairlead's own",
			what);
	return 0;
}

static void is_for_pods(struct reading *r, const char *what)
{
	r->body.pod_field = r->body.pod_field ? r->body.pod_field : what;
}

static void write_text(struct buf *out, const char *key, const char *text)
{
	if (out->data[out->size - 1] != '{')
		buf_addc(out, ',');
	buf_add_json(out, key, strlen(key));
	buf_addc(out, ':');
	buf_add_json(out, text, strlen(text));
}

/* --- volumes -------------------------------------------------------------------------------------------------------- */

static const char *const sources[] = { "claim", "config", "empty", "host", "nfs", "secret" };

static int source_claim(struct reading *r, const struct conf *c, struct buf *out)
{
	const char *name;
	int rc = object_name(r, c, "claim", &name);

	if (rc < 0)
		return rc;
	buf_adds(out, "\"persistentVolumeClaim\":{");
	write_text(out, "claimName", name);
	r->body.has_claims = true;
	return 0;
}

static int source_config(struct reading *r, const struct conf *c, struct buf *out)
{
	const char *name;
	int rc = object_name(r, c, "config", &name);

	if (rc < 0)
		return rc;
	buf_adds(out, "\"configMap\":{");
	write_text(out, "name", name);
	return 0;
}

static int source_secret(struct reading *r, const struct conf *c, struct buf *out)
{
	const char *name;
	int rc = object_name(r, c, "secret", &name);

	if (rc < 0)
		return rc;
	buf_adds(out, "\"secret\":{");
	write_text(out, "secretName", name);
	return 0;
}

/* A folder that is there as long as the pod: true, or how large at most. */
static int source_empty(struct reading *r, const struct conf *c, struct buf *out)
{
	int64_t mib;

	buf_adds(out, "\"emptyDir\":{");
	if (c->type == CONF_SCALAR && !c->quoted && strcmp(c->text, "true") == 0)
		return 0;
	if (conf_size_mib(r->err, r->file, c, "empty", &mib) < 0)
		return -(int)r->err->code;
	if (!mib) /* Kubernetes takes 0 as no limit */
		return conf_error(r->err, r->file, c,
				  "empty must be true or a size of 1MiB at least");
	buf_addf(out, "\"sizeLimit\":\"%lldMi\"", (long long)mib);
	return 0;
}

static int source_host(struct reading *r, const struct conf *c, struct buf *out)
{
	const char *path;
	int rc = jobfile_path(r, c, "host", MOUNT_MAX, &path);

	if (rc < 0)
		return rc;
	if (!is_straight(path))
		return conf_error(r->err, r->file, c,
				  "host: \"%.60s\" must not be / nor have // or .. in it", path);
	r->body.host_paths[r->body.host_path_count++] = path;
	buf_adds(out, "\"hostPath\":{");
	write_text(out, "path", path);
	write_text(out, "type", "Directory");
	return 0;
}

static int source_nfs(struct reading *r, const struct conf *c, struct buf *out)
{
	static const char marks[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-";
	const char *text, *colon;
	int rc = conf_text(r->err, r->file, c, "nfs", MOUNT_MAX, &text);

	if (rc < 0)
		return rc;
	colon = strchr(text, ':');
	if (!colon || colon == text || strspn(text, marks) != (size_t)(colon - text) ||
	    colon - text > HOST_MAX || (strcmp(colon, ":/") != 0 && !is_straight(colon + 1)))
		return conf_error(
			r->err, r->file, c,
			"nfs must be HOST:/PATH such as files.example.org:/data, not \"%.60s\"",
			text);
	buf_adds(out, "\"nfs\":{");
	write_text(out, "server", arena_strndup(r->arena, text, (size_t)(colon - text)));
	write_text(out, "path", colon + 1);
	return 0;
}

typedef int source_fn(struct reading *r, const struct conf *c, struct buf *out);
static source_fn *const writers[] = { source_claim, source_config, source_empty,
				      source_host,  source_nfs,    source_secret };
_Static_assert(ARRAY_SIZE(writers) == ARRAY_SIZE(sources), "a writer for each source");

/* "\"persistentVolumeClaim\":{...}" of the one source that is said; by itself a path is a claim of that name. */
static int source_write(struct reading *r, const struct conf *item, struct buf *out)
{
	const struct conf *found = NULL;
	size_t which = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sources) && item->type == CONF_MAP; i++) {
		const struct conf *said = conf_find(item, sources[i]);

		if (said && found)
			return conf_error(r->err, r->file, said,
					  "volumes: %.60s is %s already, and can't be %s besides",
					  item->key, sources[which], sources[i]);
		if (said)
			which = i;
		found = said ? said : found;
	}
	if (found)
		return writers[which](r, found, out);
	buf_adds(out, "\"persistentVolumeClaim\":{");
	write_text(out, "claimName", item->key);
	r->body.has_claims = true;
	return 0;
}

static int mount_read(struct reading *r, const struct conf *item, const char **ret_path,
		      bool *ret_read_only)
{
	static const char *const known[] = { "claim", "config", "empty",     "host",
					     "nfs",   "path",   "read_only", "secret" };
	const struct conf *path = item, *read_only;
	const char *problem;
	int rc = 0;

	*ret_read_only = false;
	if (item->type == CONF_MAP) {
		rc = conf_only(r->err, r->file, item, "a volume", known, ARRAY_SIZE(known));
		path = conf_find(item, "path");
		read_only = conf_find(item, "read_only");
		if (rc >= 0 && !path)
			return jobfile_key_error(
				r, item,
				"volumes: %.60s needs a path, where it is in the container",
				item->key);
		if (rc >= 0 && read_only)
			rc = conf_bool(r->err, r->file, read_only, "read_only", ret_read_only);
	}
	if (rc >= 0)
		rc = conf_text(r->err, r->file, path, "the path of a volume", MOUNT_MAX, ret_path);
	problem = rc < 0 ? NULL : jobfile_mount_path(*ret_path);
	if (problem)
		return conf_error(r->err, r->file, path, "volumes: %.60s: \"%.60s\" %s", item->key,
				  *ret_path, problem);
	return rc;
}

static int volume_read(struct reading *r, const struct conf *item, struct buf *volumes,
		       struct buf *mounts)
{
	const char *problem = jobfile_volume_name(item->key), *path = NULL;
	bool read_only;
	int rc;

	if (problem)
		return jobfile_key_error(r, item, "volumes: \"%.60s\" %s", item->key, problem);
	rc = mount_read(r, item, &path, &read_only);
	if (rc < 0)
		return rc;
	buf_adds(volumes, volumes->size ? ",{" : "{");
	write_text(volumes, "name", item->key);
	buf_addc(volumes, ',');
	rc = source_write(r, item, volumes);
	if (rc < 0)
		return rc;
	buf_adds(volumes, "}}");
	buf_adds(mounts, mounts->size ? ",{" : "{");
	write_text(mounts, "name", item->key);
	write_text(mounts, "mountPath", path);
	if (read_only)
		buf_adds(mounts, ",\"readOnly\":true");
	buf_addc(mounts, '}');
	return 0;
}

static const char *mount_path_of(const struct conf *item)
{
	return item->type == CONF_MAP ? conf_find(item, "path")->text : item->text;
}

int read_volumes(struct reading *r, const struct conf *c, const char *what)
{
	AUTO_BUF volumes = BUF_INIT;
	AUTO_BUF mounts = BUF_INIT;
	int rc = 0;

	if (c->type != CONF_MAP || !c->count || c->count > JOBFILE_VOLUMES_MAX)
		return conf_error(r->err, r->file, c,
				  "%s must be a map of 1 to %d volumes such as {imagenet: /data}",
				  what, JOBFILE_VOLUMES_MAX);
	for (size_t i = 0; i < c->count && rc >= 0; i++) {
		rc = volume_read(r, c->items[i], &volumes, &mounts);
		for (size_t j = 0; j < i && rc >= 0; j++)
			if (strcmp(mount_path_of(c->items[i]), mount_path_of(c->items[j])) == 0)
				rc = jobfile_key_error(
					r, c->items[i],
					"volumes: %.60s and %.60s have the same path",
					c->items[j]->key, c->items[i]->key);
	}
	if (rc < 0)
		return rc;
	r->body.volumes = arena_strndup(r->arena, volumes.data, volumes.size);
	r->body.mounts = arena_strndup(r->arena, mounts.data, mounts.size);
	is_for_pods(r, what);
	return 0;
}

/* --- resources ------------------------------------------------------------------------------------------------------ */

/* Those that Fairlead counts itself are said in their own fields. Parts of GPUs that a device plugin publishes under a name of their own
 * (nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb.shared) are resources like others. */
static const char *said_elsewhere(const char *name)
{
	static const char shared[] = ".shared";
	static const struct {
		const char *text, *instead;
		bool begins; /* all that begin with it */
	} others[] = {
		{ "cpu", "cpus", false },
		{ "memory", "memory", false },
		{ "nvidia.com/gpu", "gpus", false },
		{ KUBE_MIG, "gpus", true },
		{ "requests.", "plain names", true },
		{ "limits.", "plain names", true },
	};
	size_t size = strlen(name);

	if (size >= sizeof(shared) && strcmp(name + size - (sizeof(shared) - 1), shared) == 0 &&
	    strncmp(name, KUBE_MIG, sizeof(KUBE_MIG) - 1) == 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (others[i].begins ? strncmp(name, others[i].text, strlen(others[i].text)) == 0
				     : strcmp(name, others[i].text) == 0)
			return others[i].instead;
	return NULL;
}

/* "rdma/hca", "example.com/fpga": a domain, a slash, a name. */
static bool is_extended(const char *name)
{
	static const char marks[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const char *slash = strchr(name, '/');
	char domain[OBJECT_NAME_MAX + 1];

	if (!slash || slash - name > OBJECT_NAME_MAX || !slash[1] ||
	    strlen(slash + 1) > LABEL_MAX || strspn(slash + 1, marks) != strlen(slash + 1))
		return false;
	memcpy(domain, name, (size_t)(slash - name));
	domain[slash - name] = '\0';
	return is_object_name(domain, OBJECT_NAME_MAX, true) && !strstr(domain, "kubernetes.io");
}

static int resource_read(struct reading *r, const struct conf *item, struct buf *out)
{
	const bool sized = strcmp(item->key, "ephemeral-storage") == 0 ||
			   strncmp(item->key, "hugepages-", 10) == 0;
	const char *instead = said_elsewhere(item->key);
	int64_t amount;
	int rc;

	if (instead)
		return jobfile_key_error(r, item, "resources: for %.60s write %s", item->key,
					 instead);
	if (!sized && !is_extended(item->key))
		return jobfile_key_error(
			r, item,
			"resources: \"%.60s\" is no resource of a cluster's nodes such as rdma/hca, ephemeral-storage or hugepages-2Mi",
			item->key);
	if (sized)
		rc = conf_size_mib(r->err, r->file, item, item->key, &amount);
	else
		rc = conf_int(r->err, r->file, item, item->key, 1, JOBFILE_RESOURCE_MAX, &amount);
	if (rc < 0)
		return rc;
	if (out->size)
		buf_addc(out, ',');
	buf_add_json(out, item->key, strlen(item->key));
	buf_addf(out, ":\"%lld%s\"", (long long)amount, sized ? "Mi" : "");
	if (strstr(item->key, "rdma"))
		r->body.locks_memory = true;
	return 0;
}

int read_node_resources(struct reading *r, const struct conf *c, const char *what)
{
	AUTO_BUF out = BUF_INIT;
	int rc = 0;

	if (c->type != CONF_MAP || !c->count || c->count > JOBFILE_RESOURCES_MAX)
		return conf_error(r->err, r->file, c,
				  "%s must be a map of 1 to %d resources such as {rdma/hca: 1}",
				  what, JOBFILE_RESOURCES_MAX);
	for (size_t i = 0; i < c->count && rc >= 0; i++)
		rc = resource_read(r, c->items[i], &out);
	if (rc < 0)
		return rc;
	r->body.resources = arena_strndup(r->arena, out.data, out.size);
	is_for_pods(r, what);
	return 0;
}

/* {} = none, whatever the job says. */
int read_roles_resources(struct reading *r, const struct conf *c, const char *what)
{
	if (c->type != CONF_MAP || c->count)
		return read_node_resources(r, c, what);
	r->body.resources = "";
	is_for_pods(r, what);
	return 0;
}

/* --- the others ------------------------------------------------------------------------------------------------------- */

int read_shm(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_size_mib(r->err, r->file, c, what, &r->body.shm_mib);

	if (rc < 0)
		return rc;
	if (!r->body.shm_mib)
		return conf_error(r->err, r->file, c, "%s must be 1MiB at least", what);
	r->shm = c;
	is_for_pods(r, what);
	return 0;
}

int read_service_account(struct reading *r, const struct conf *c, const char *what)
{
	is_for_pods(r, what);
	return object_name(r, c, what, &r->body.service_account);
}

int read_pull_secrets(struct reading *r, const struct conf *c, const char *what)
{
	AUTO_BUF out = BUF_INIT;
	const size_t count = c->type == CONF_LIST ? c->count : 1;
	int rc = 0;

	if (!count || count > JOBFILE_PULL_SECRETS_MAX)
		return conf_error(r->err, r->file, c, "%s must be a name or 1 to %d names", what,
				  JOBFILE_PULL_SECRETS_MAX);
	for (size_t i = 0; i < count && rc >= 0; i++) {
		const char *name = "";

		rc = object_name(r, c->type == CONF_LIST ? c->items[i] : c, what, &name);
		buf_adds(&out, i ? ",{" : "{");
		write_text(&out, "name", name);
		buf_addc(&out, '}');
	}
	if (rc < 0)
		return rc;
	r->body.pull_secrets = arena_strndup(r->arena, out.data, out.size);
	is_for_pods(r, what);
	return 0;
}

/* --- as an overlay --------------------------------------------------------------------------------------------------------- */

/* {"name":"main",...} */
static void container_write(const struct body_source *from, struct buf *out)
{
	buf_adds(out, "\"containers\":[{\"name\":\"main\"");
	if (from->mounts)
		buf_addf(out, ",\"volumeMounts\":[%s]", from->mounts);
	if (from->resources)
		buf_addf(out, ",\"resources\":{\"requests\":{%s},\"limits\":{%s}}", from->resources,
			 from->resources);
	if (from->locks_memory)
		buf_adds(out, ",\"securityContext\":{\"capabilities\":{\"add\":[\"IPC_LOCK\"]}}");
	buf_adds(out, "}]");
}

static void spec_write(const struct body_source *from, struct buf *out)
{
	container_write(from, out);
	if (from->volumes || from->shm_mib) {
		buf_addf(out, ",\"volumes\":[%s", from->volumes ? from->volumes : "");
		if (from->shm_mib)
			buf_addf(out,
				 "%s{\"name\":\"shm\",\"emptyDir\":{\"sizeLimit\":\"%lldMi\"}}",
				 from->volumes ? "," : "", (long long)from->shm_mib);
		buf_addc(out, ']');
	}
	if (from->service_account) {
		write_text(out, "serviceAccountName", from->service_account);
		buf_adds(out, ",\"automountServiceAccountToken\":true");
	}
	if (from->pull_secrets)
		buf_addf(out, ",\"imagePullSecrets\":[%s]", from->pull_secrets);
}

/* The device plugin has the slices that exist, each profile as a resource of its own. */
static int slice_for_pods(struct reading *r)
{
	const struct conf *gpus = conf_find(r->document, "gpus");
	const char *slice = r->job->slice;

	if (r->roles)
		return conf_error(
			r->err, r->file, r->roles,
			"each role says how many whole GPUs a task takes; a slice is for jobs without roles");
	if (strcmp(slice, "fit") == 0)
		return conf_error(
			r->err, r->file, gpus ? gpus : r->document,
			"gpus: slice: fit is not known on a cluster yet; write the name of a slice that its nodes have, such as 1g.10gb");
	if (*r->job->models || r->job->gpu_memory_mib || r->job->gpu_part)
		return conf_error(
			r->err, r->file, gpus ? gpus : r->document,
			"gpus: on a cluster a slice is found by its name alone; leave count, model and memory out, and write labels for the nodes that you mean");
	/* Names of resources have no plus: 1g.10gb+me is 1g.10gb.me there. */
	r->body.resources = arena_printf(r->arena, "%s%s\"" KUBE_MIG "%.*s%s\":\"1\"",
					 r->body.resources ? r->body.resources : "",
					 r->body.resources ? "," : "", (int)strcspn(slice, "+"),
					 slice, strchr(slice, '+') ? ".me" : "");
	r->job->slice = "";
	r->job->gpus = 0;
	return 0;
}

static const char *pod_write(const struct reading *r, const struct body_source *from)
{
	AUTO_BUF out = BUF_INIT;

	buf_adds(&out, "{\"spec\":{");
	spec_write(from, &out);
	buf_adds(&out, "}}");
	return arena_strndup(r->arena, out.data, out.size);
}

/* Its pods get what the job says besides, and these. */
static void role_finish(const struct reading *r, struct body_source *role)
{
	if (!role->resources) {
		role->resources = r->body.resources;
		role->locks_memory = r->body.locks_memory;
	}
	if (role->resources && *role->resources)
		role->pod = pod_write(r, role);
}

int jobfile_pods_finish(struct reading *r)
{
	const struct body_source *from = &r->body;

	if (r->for_pods && *r->job->slice && slice_for_pods(r) < 0)
		return -(int)r->err->code;
	if (r->shm && r->job->memory_mib && from->shm_mib > r->job->memory_mib)
		return conf_error(
			r->err, r->file, r->shm,
			"shm is more than memory: what lies in it counts as the task's memory");
	for (uint32_t i = 0; i < from->role_count; i++)
		role_finish(r, &r->role_bodies[i]);
	if (r->roles) { /* they are those of its roles */
		r->body.resources = NULL;
		r->body.locks_memory = false;
	}
	if (!from->volumes && !from->resources && !from->shm_mib && !from->service_account &&
	    !from->pull_secrets)
		return 0;
	r->body.pod = pod_write(r, from);
	return 0;
}
