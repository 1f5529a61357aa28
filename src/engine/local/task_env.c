/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/task_env.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"

/* All tasks of the local engine run on this machine, whatever their nodes are called. */
#define LOCAL_HOST "127.0.0.1"

static const char *host_of(const struct engine_start *start, uint32_t rank)
{
	return start->own_hosts ? start->places[rank].node : LOCAL_HOST;
}

/* Where those who belong to it meet: at the first of them. */
static uint32_t first_member(const struct engine_start *start)
{
	uint32_t rank = 0;

	while (start->generation && rank + 1 < start->place_count &&
	       start->places[rank].member != 0)
		rank++;
	return rank;
}

enum { OWN_VARIABLES_MAX = 72, NAME_ROOM = 64 };

struct env {
	struct arena *arena;
	const char **words;
	size_t count, room;
};

static bool is_name(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, name, length) == 0 && word[length] == '=';
}

const char *task_env_find(const char *const *env, const char *name)
{
	for (size_t i = 0; env && env[i]; i++)
		if (is_name(env[i], name))
			return env[i] + strlen(name) + 1;
	return NULL;
}

/* Replaces what is there under this name. */
static void set(struct env *env, const char *name, const char *value)
{
	size_t i = 0;

	if (!value)
		return;
	while (i < env->count && !is_name(env->words[i], name))
		i++;
	CHECK(i < env->room);
	env->words[i] = arena_printf(env->arena, "%s=%s", name, value);
	if (i == env->count)
		env->count++;
}

static void set_number(struct env *env, const char *name, uint64_t number)
{
	set(env, name, arena_printf(env->arena, "%" PRIu64, number));
}

/* A name of ours that the job must not set even when we don't: a stale one would mislead the
 * program. */
static void unset(struct env *env, const char *name)
{
	for (size_t i = 0; i < env->count; i++)
		if (is_name(env->words[i], name))
			env->words[i--] = env->words[--env->count];
	env->words[env->count] = NULL;
}

static size_t word_count(const char *const *words)
{
	size_t count = 0;

	while (words && words[count])
		count++;
	return count;
}

static struct env env_from(const char *const *words, struct arena *arena, size_t extra)
{
	const size_t count = word_count(words);
	struct env env = { .arena = arena, .room = count + extra };
	env.words = arena_new_array(arena, const char *, env.room + 1);
	for (size_t i = 0; i < count; i++)
		env.words[env.count++] = arena_strdup(arena, words[i]);
	return env;
}

static uint32_t gpu_count(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

/* It belongs to the attempt now. */
static bool is_member(const struct engine_start *start, uint32_t rank)
{
	return !start->generation || start->places[rank].member != MEMBER_NONE;
}

void task_env_nodes(const struct engine_start *start, struct arena *arena,
		    struct task_env_nodes *ret)
{
	struct task_env_nodes nodes = {
		.index = arena_new_array(arena, uint32_t, start->place_count),
		.slots = arena_new_array(arena, uint32_t, start->place_count),
		.names = arena_new_array(arena, const char *, start->place_count),
	};
	AUTO_BUF hosts = BUF_INIT;

	for (uint32_t rank = 0; rank < start->place_count; rank++) {
		uint32_t node = 0;

		if (!is_member(start, rank))
			continue;
		while (node < nodes.count &&
		       strcmp(nodes.names[node], start->places[rank].node) != 0)
			node++;
		if (node == nodes.count) {
			nodes.names[nodes.count++] = start->places[rank].node;
			buf_addf(&hosts, "%s%s", hosts.size ? "," : "", host_of(start, rank));
		}
		nodes.index[rank] = node;
		uint32_t gpus = gpu_count(start->places[rank].gpu_mask);
		nodes.slots[node] += gpus ? gpus : 1;
	}
	nodes.hosts = arena_strdup(arena, buf_text(&hosts));
	*ret = nodes;
}

/* Both Open MPI and DeepSpeed refuse a file that names a host twice. */
void task_env_hostfile(struct buf *out, const struct task_env_nodes *nodes)
{
	uint32_t slots = 0;

	for (uint32_t i = 0; i < nodes->count; i++)
		slots += nodes->slots[i];
	buf_addf(out, "%s slots=%u\n", LOCAL_HOST, slots);
}

static const char *gpu_list(uint64_t mask, struct arena *arena)
{
	AUTO_BUF list = BUF_INIT;

	for (unsigned i = 0; i < 64; i++)
		if (mask >> i & 1)
			buf_addf(&list, "%s%u", list.size ? "," : "", i);
	return arena_strdup(arena, buf_text(&list));
}

static void add_job(struct env *env, const struct engine_start *start,
		    const struct engine_gpu_place *at)
{
	set_number(env, "FAIRLEAD_JOB_ID", start->job);
	set(env, "FAIRLEAD_JOB_NAME", start->job_name);
	set_number(env, "FAIRLEAD_ATTEMPT", start->attempt);
	set(env, "FAIRLEAD_USER", start->user);
	set(env, "FAIRLEAD_TEAM", start->team);
	set(env, "FAIRLEAD_QUEUE", start->queue);
	set(env, "FAIRLEAD_NODE", at->node);
	unset(env, "FAIRLEAD_SIMULATED_GPUS");
	if (start->simulated_gpus)
		set(env, "FAIRLEAD_SIMULATED_GPUS", "1");
	unset(env, "FAIRLEAD_ARRAY_INDEX");
	unset(env, "FAIRLEAD_ARRAY_SIZE");
	if (start->array_size) {
		set_number(env, "FAIRLEAD_ARRAY_INDEX", start->array_index);
		set_number(env, "FAIRLEAD_ARRAY_SIZE", start->array_size);
	}
	for (const char *const *word = start->made_from; word && *word; word++) {
		const size_t name = strcspn(*word, "=");

		CHECK((*word)[name]);
		set(env, arena_strndup(env->arena, *word, name), *word + name + 1);
	}
	unset(env, "FAIRLEAD_CHECKPOINT_DIR");
	unset(env, "FAIRLEAD_RESUME_FROM");
	set(env, "FAIRLEAD_CHECKPOINT_DIR", start->checkpoint_dir);
	set(env, "FAIRLEAD_RESUME_FROM", start->resume_path);
	unset(env, "FAIRLEAD_CHECKPOINT_EVERY_SECONDS");
	if (start->checkpoint_every_ms)
		set_number(env, "FAIRLEAD_CHECKPOINT_EVERY_SECONDS",
			   (uint64_t)start->checkpoint_every_ms / 1000);
}

/* "parameter-server" as PARAMETER_SERVER: what a variable may be called. */
static const char *role_variable(const char *role, struct arena *arena)
{
	char name[NAME_ROOM];
	size_t i = 0;

	for (; role[i] && i + 1 < sizeof(name); i++) {
		char c = role[i];

		if (c >= 'a' && c <= 'z')
			c = (char)(c - 'a' + 'A');
		name[i] = (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
	}
	name[i] = '\0';
	return arena_printf(arena, "FAIRLEAD_HOSTS_%s", name);
}

/* Which of the unlike tasks it is, and where the others are: of each role a host for every task. */
static void add_role(struct env *env, const struct engine_start *start,
		     const struct engine_gpu_place *at)
{
	AUTO_BUF roles = BUF_INIT;

	unset(env, "FAIRLEAD_ROLE");
	unset(env, "FAIRLEAD_ROLE_RANK");
	unset(env, "FAIRLEAD_ROLE_SIZE");
	unset(env, "FAIRLEAD_ROLES");
	if (!start->role_count)
		return;
	set(env, "FAIRLEAD_ROLE", start->roles[at->role].name);
	set_number(env, "FAIRLEAD_ROLE_RANK", at->role_rank);
	set_number(env, "FAIRLEAD_ROLE_SIZE", start->roles[at->role].size);
	for (uint32_t i = 0; i < start->role_count; i++) {
		AUTO_BUF hosts = BUF_INIT;

		for (uint32_t rank = 0; rank < start->place_count; rank++)
			if (start->places[rank].role == i && is_member(start, rank))
				buf_addf(&hosts, "%s%s", hosts.size ? "," : "",
					 host_of(start, rank));
		set(env, role_variable(start->roles[i].name, env->arena), buf_text(&hosts));
		buf_addf(&roles, "%s%s:%u", i ? "," : "", start->roles[i].name,
			 start->roles[i].size);
	}
	set(env, "FAIRLEAD_ROLES", buf_text(&roles));
}

static void add_launchers(struct env *env, const struct engine_start *start,
			  const struct engine_gpu_place *at, uint32_t node)
{
	uint32_t rank = start->generation ? at->member : at->rank,
		 size = start->generation ? start->member_count : start->place_count;

	set_number(env, "RANK", rank);
	set_number(env, "WORLD_SIZE", size);
	set_number(env, "LOCAL_RANK", at->local_rank);
	set_number(env, "LOCAL_WORLD_SIZE", at->local_size);
	set_number(env, "NODE_RANK", node);
	set_number(env, "GROUP_RANK", node);
	set_number(env, "OMPI_COMM_WORLD_RANK", rank);
	set_number(env, "OMPI_COMM_WORLD_SIZE", size);
	set_number(env, "OMPI_COMM_WORLD_LOCAL_RANK", at->local_rank);
	set_number(env, "PMI_RANK", rank);
	set_number(env, "PMI_SIZE", size);
}

/* As a number that programs read: 0.5, 0.142857. */
static const char *share_text(uint32_t micro, struct arena *arena)
{
	char text[16];
	size_t size = (size_t)snprintf(text, sizeof text, "0.%06u", micro);

	while (text[size - 1] == '0' && text[size - 2] != '.')
		size--;
	return arena_strndup(arena, text, size);
}

/* Only for a task that shares its GPU. */
static void add_share(struct env *env, const struct engine_gpu_place *at, struct arena *arena)
{
	unset(env, "FAIRLEAD_GPU_SHARE");
	unset(env, "FAIRLEAD_GPU_MEMORY_MIB");
	unset(env, "FAIRLEAD_GPU_SLICE");
	if (!at->gpu_share_micro)
		return;
	set(env, "FAIRLEAD_GPU_SHARE", share_text(at->gpu_share_micro, arena));
	if (at->gpu_memory_mib)
		set_number(env, "FAIRLEAD_GPU_MEMORY_MIB", at->gpu_memory_mib);
	if (!at->gpu_slice[0])
		return;
	set(env, "FAIRLEAD_GPU_SLICE", at->gpu_slice);
	set(env, "CUDA_VISIBLE_DEVICES",
	    arena_printf(arena, "MIG-simulated-%s-%s-%u", at->node, gpu_list(at->gpu_mask, arena),
			 at->gpu_slice_start));
}

/* The bound that MPS keeps; the one GPU that the task sees is its number 0. What the job itself says of MPS would undo it. */
static void add_mps(struct env *env, const struct engine_gpu_place *at, const char *pipes)
{
	uint32_t percent = at->gpu_share_micro / 10000;

	if (!pipes)
		return;
	set(env, "CUDA_MPS_PIPE_DIRECTORY", pipes);
	set(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
	    arena_printf(env->arena, "0=%uM", at->gpu_memory_mib));
	set_number(env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent ? percent : 1);
}

/* Where the running program lies: `fairlead` itself, or a test's driver. */
static const char *program_folder(struct arena *arena)
{
	char path[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (size <= 0)
		return "";
	path[size] = '\0';
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	return arena_strdup(arena, path);
}

/* PATH of the shell, and behind it the folder of `fairlead` unless it has that. */
static const char *path_with_bin(const char *path, struct arena *arena)
{
	const char *bin = program_folder(arena);
	const size_t size = strlen(bin);

	if (!*path)
		return NULL; /* the account's is of more use */
	if (!size)
		return path;
	for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL)
		if (strcspn(at, ":") == size && strncmp(at, bin, size) == 0)
			return path;
	return arena_printf(arena, "%s:%s", path, bin);
}

/* What the submitter's shell had, unless the job says something of that name. */
static void add_shell(struct env *env, const char *const *words)
{
	for (; words && *words; words++) {
		const size_t size = strcspn(*words, "=");
		const char *name = arena_strndup(env->arena, *words, size), *value;

		if (!(*words)[size] || task_env_find(env->words, name))
			continue;
		value = *words + size + 1;
		set(env, name,
		    strcmp(name, "PATH") == 0 ? path_with_bin(value, env->arena) : value);
	}
}

const char **task_env_build(const struct engine_start *start, uint32_t rank,
			    const struct task_env_place *place, struct arena *arena)
{
	struct env env = env_from(engine_env(start, rank), arena,
				  OWN_VARIABLES_MAX + word_count(start->shell_env));
	const struct engine_gpu_place *at = &start->places[rank];

	CHECK(rank < start->place_count);
	add_shell(&env, start->shell_env);
	add_job(&env, start, at);
	add_launchers(&env, start, at, place->nodes->index[rank]);
	set(&env, "CUDA_VISIBLE_DEVICES", gpu_list(at->gpu_mask, arena));
	set_number(&env, "FAIRLEAD_GPUS", gpu_count(at->gpu_mask));
	/* GPUs are counted as the driver counts them; CUDA by itself would begin with the fastest. */
	if (!start->simulated_gpus && at->gpu_mask &&
	    !task_env_find(env.words, "CUDA_DEVICE_ORDER"))
		set(&env, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
	add_share(&env, at, arena);
	add_mps(&env, at, place->mps);
	set(&env, "FAIRLEAD_REPORT_SOCKET", place->report_socket);
	set(&env, "FAIRLEAD_HOSTFILE", place->hostfile);
	unset(&env, "FAIRLEAD_WORLD_FILE");
	set(&env, "FAIRLEAD_WORLD_FILE", place->world_file);
	set_number(&env, "FAIRLEAD_RANK", at->rank);
	add_role(&env, start, at);
	set_number(&env, "FAIRLEAD_GENERATION", start->generation);
	set(&env, "FAIRLEAD_HOSTS", place->nodes->hosts);
	set(&env, "MASTER_ADDR", host_of(start, first_member(start)));
	set_number(&env, "MASTER_PORT", place->port);
	set(&env, "FAIRLEAD_BIN", program_folder(arena));
	if (at->cpu_milli > 0 && !task_env_find(env.words, "OMP_NUM_THREADS"))
		set_number(&env, "OMP_NUM_THREADS", (uint64_t)(at->cpu_milli + 999) / 1000);
	return env.words;
}

/* The account's usual path, and behind it the folder of `fairlead`, so that `fairlead report` is
 * found inside a job. */
static const char *default_path(const char *const *words, bool is_root, struct arena *arena)
{
	const char *usual = is_root ? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
				    : "/usr/local/bin:/usr/bin:/bin";
	const char *bin = task_env_find(words, "FAIRLEAD_BIN");

	return bin && *bin ? arena_printf(arena, "%s:%s", usual, bin) : usual;
}

const char **task_env_add_account(const char *const *words, const char *user, const char *home,
				  const char *shell, bool is_root, struct arena *arena)
{
	const char *const defaults[][2] = {
		{ "HOME", home },
		{ "USER", user },
		{ "LOGNAME", user },
		{ "SHELL", shell },
		{ "PATH", default_path(words, is_root, arena) },
		{ "LANG", "C.UTF-8" },
	};
	struct env env = env_from(words, arena, ARRAY_SIZE(defaults));

	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		if (!task_env_find(env.words, defaults[i][0]))
			set(&env, defaults[i][0], defaults[i][1]);
	return env.words;
}
