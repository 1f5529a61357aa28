/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/spec.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"

static void add_text(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return;
	buf_addf(out, ",\"%s\":", key);
	buf_add_json(out, text, strlen(text));
}

static void add_words(struct buf *out, const char *key, const char *const *words)
{
	buf_addf(out, ",\"%s\":[", key);
	for (size_t i = 0; words && words[i]; i++) {
		if (i)
			buf_addc(out, ',');
		buf_add_json(out, words[i], strlen(words[i]));
	}
	buf_addc(out, ']');
}

static void add_number(struct buf *out, const char *key, int64_t number)
{
	buf_addf(out, ",\"%s\":%lld", key, (long long)number);
}

static void add_cgroups(struct buf *out, const struct cgroup_set *set)
{
	add_text(out, "cgroup_name", set->name);
	add_text(out, "cgroup_tree", set->tree);
	add_number(out, "cgroup_tree_v2", set->tree_v2);
	add_text(out, "cgroup_memory", set->memory);
	add_number(out, "cgroup_memory_v2", set->memory_v2);
	add_text(out, "cgroup_pids", set->pids);
}

void spec_format(struct buf *out, const struct task_spec *spec)
{
	buf_addf(out, "{\"version\":%lld,\"job\":%llu,\"attempt\":%llu,\"rank\":%u,\"count\":%u",
		 (long long)spec->version, (unsigned long long)spec->job,
		 (unsigned long long)spec->attempt, spec->rank, spec->count);
	if (spec->launch)
		add_number(out, "launch", spec->launch);
	add_text(out, "boot", spec->boot);
	add_text(out, "user", spec->user);
	add_number(out, "uid", spec->uid);
	add_number(out, "gid", spec->gid);
	add_words(out, "argv", spec->argv);
	add_text(out, "script", spec->script);
	add_words(out, "env", spec->env);
	add_text(out, "workdir", spec->workdir);
	add_text(out, "checkpoint_dir", spec->checkpoint_dir);
	add_number(out, "checkpoint_signal", spec->checkpoint_signal);
	add_number(out, "checkpoint_every_ms", spec->checkpoint_every_ms);
	add_number(out, "memory_mib", spec->memory_mib);
	add_number(out, "log_cap_bytes", spec->log_cap_bytes);
	add_text(out, "cpus", spec->cpus);
	add_text(out, "logs", spec->logs);
	add_text(out, "run", spec->run);
	add_number(out, "port", spec->port);
	buf_addf(out, ",\"brand\":%llu", (unsigned long long)spec->brand);
	add_cgroups(out, &spec->cgroups);
	buf_adds(out, "}\n");
}

static const char *read_text(struct json_reader *r, struct arena *arena)
{
	struct json_slice text = { 0 };

	pull_string(r, &text);
	return r->problem ? "" : pull_text(r, &text, arena);
}

static void read_path(struct json_reader *r, char out[CGROUP_PATH_MAX])
{
	struct json_slice text = { 0 };

	pull_string(r, &text);
	pull_copy(r, &text, out, CGROUP_PATH_MAX);
}

static const char **read_words(struct json_reader *r, struct arena *arena)
{
	const char **words = arena_new_array(arena, const char *, SPEC_WORDS_MAX + 1);
	size_t count = 0;

	pull_array(r);
	while (pull_element(r)) {
		const char *word = read_text(r, arena);

		if (count == SPEC_WORDS_MAX) {
			pull_fail(r, "too many arguments or variables");
			break;
		}
		words[count++] = word;
	}
	words[count] = NULL;
	return words;
}

static int64_t read_number(struct json_reader *r, int64_t max)
{
	int64_t number = 0;

	pull_int(r, &number);
	if (number < 0 || number > max)
		pull_fail(r, "a number out of range");
	return r->problem ? 0 : number;
}

static bool cgroup_member(struct json_reader *r, const struct json_slice *key,
			  struct cgroup_set *set)
{
	if (pull_key_is(key, "cgroup_name"))
		read_path(r, set->name);
	else if (pull_key_is(key, "cgroup_tree"))
		read_path(r, set->tree);
	else if (pull_key_is(key, "cgroup_tree_v2"))
		set->tree_v2 = read_number(r, 1) != 0;
	else if (pull_key_is(key, "cgroup_memory"))
		read_path(r, set->memory);
	else if (pull_key_is(key, "cgroup_memory_v2"))
		set->memory_v2 = read_number(r, 1) != 0;
	else if (pull_key_is(key, "cgroup_pids"))
		read_path(r, set->pids);
	else
		return false;
	return true;
}

static bool text_member(struct json_reader *r, const struct json_slice *key, struct arena *arena,
			struct task_spec *spec)
{
	if (pull_key_is(key, "user"))
		spec->user = read_text(r, arena);
	else if (pull_key_is(key, "argv"))
		spec->argv = read_words(r, arena);
	else if (pull_key_is(key, "script"))
		spec->script = read_text(r, arena);
	else if (pull_key_is(key, "env"))
		spec->env = read_words(r, arena);
	else if (pull_key_is(key, "workdir"))
		spec->workdir = read_text(r, arena);
	else if (pull_key_is(key, "checkpoint_dir"))
		spec->checkpoint_dir = read_text(r, arena);
	else if (pull_key_is(key, "cpus"))
		spec->cpus = read_text(r, arena);
	else if (pull_key_is(key, "logs"))
		spec->logs = read_text(r, arena);
	else if (pull_key_is(key, "run"))
		spec->run = read_text(r, arena);
	else
		return false;
	return true;
}

static void number_member(struct json_reader *r, const struct json_slice *key,
			  struct task_spec *spec)
{
	if (pull_key_is(key, "version"))
		spec->version = read_number(r, 1000);
	else if (pull_key_is(key, "job"))
		pull_uint(r, &spec->job);
	else if (pull_key_is(key, "attempt"))
		pull_uint(r, &spec->attempt);
	else if (pull_key_is(key, "rank"))
		spec->rank = (uint32_t)read_number(r, UINT32_MAX);
	else if (pull_key_is(key, "count"))
		spec->count = (uint32_t)read_number(r, UINT32_MAX);
	else if (pull_key_is(key, "uid"))
		spec->uid = (uid_t)read_number(r, UINT32_MAX - 1);
	else if (pull_key_is(key, "gid"))
		spec->gid = (gid_t)read_number(r, UINT32_MAX - 1);
	else if (pull_key_is(key, "checkpoint_signal"))
		spec->checkpoint_signal = (int)read_number(r, 64);
	else if (pull_key_is(key, "checkpoint_every_ms"))
		spec->checkpoint_every_ms = read_number(r, INT64_MAX >> 20);
	else if (pull_key_is(key, "memory_mib"))
		spec->memory_mib = read_number(r, INT64_MAX >> 20);
	else if (pull_key_is(key, "log_cap_bytes"))
		spec->log_cap_bytes = read_number(r, INT64_MAX);
	else if (pull_key_is(key, "launch"))
		spec->launch = (uint32_t)read_number(r, UINT32_MAX);
	else if (pull_key_is(key, "port"))
		spec->port = (uint16_t)read_number(r, UINT16_MAX);
	else if (pull_key_is(key, "brand"))
		pull_uint(r, &spec->brand);
	else
		pull_skip(r);
}

int spec_parse(const char *text, size_t size, struct arena *arena, struct task_spec *ret,
	       struct err *err)
{
	struct task_spec spec = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
	struct json_reader r;
	struct json_slice key, boot = { 0 };

	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "boot")) {
			pull_string(&r, &boot);
			pull_copy(&r, &boot, spec.boot, sizeof(spec.boot));
		} else if (!cgroup_member(&r, &key, &spec.cgroups) &&
			   !text_member(&r, &key, arena, &spec)) {
			number_member(&r, &key, &spec);
		}
	}
	if (pull_finish(&r, err) < 0)
		return err_prefix(err, "specification of a task");
	if (spec.version < 1 || spec.version > SPEC_VERSION)
		return err_set(
			err, ERR_UNSUPPORTED,
			"the specification of a task has version %lld; this program understands 1 to %d",
			(long long)spec.version, SPEC_VERSION);
	if (!spec.user || !spec.argv || !spec.env || !spec.logs || !spec.run ||
	    spec.uid == (uid_t)-1 || spec.gid == (gid_t)-1)
		return err_set(err, ERR_CORRUPT, "the specification of a task is incomplete");
	*ret = spec;
	return 0;
}
