/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/failpoint.h"

/* A fork bomb ends here; enough for any honest rank with its threads, and never more than a quarter
 * of the machine's. */
enum { TASK_PIDS_MAX = 32768, TASK_PIDS_MIN = 1024, NESTED_MAX = 16 };

/* --- finding parents --- */

/* Whether the comma separated list has the word. */
static bool list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += length) {
		bool starts = at == list || at[-1] == ',' || at[-1] == ' ';
		bool ends = at[length] == '\0' || at[length] == ',' || at[length] == ' ' ||
			    at[length] == '\n';

		if (starts && ends)
			return true;
	}
	return false;
}

/* Line "7:memory,hugetlb:/a/b" -> "/a/b" for "memory"; "0::/a" for "" (version 2). */
static bool own_path(const char *text, const char *controller, char out[CGROUP_PATH_MAX])
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		if (*line == '\n')
			line++;
		const char *end = strchrnul(line, '\n');
		const char *names = memchr(line, ':', (size_t)(end - line));
		const char *path = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
		if (!path)
			continue;
		char list[128];
		snprintf(list, sizeof(list), "%.*s", (int)(path - names - 1), names + 1);
		if (*controller ? list_has(list, controller) : list[0] == '\0')
			return snprintf(out, CGROUP_PATH_MAX, "%.*s", (int)(end - path - 1),
					path + 1) < CGROUP_PATH_MAX;
	}
	return false;
}

struct mount {
	char root[CGROUP_PATH_MAX], point[CGROUP_PATH_MAX];
};

/* "36 35 98:0 /root /point rw,noatime shared:1 - cgroup cgroup rw,memory" */
static bool mount_line(const char *line, const char *controller, struct mount *ret)
{
	char type[32], options[256];
	const char *rest = strstr(line, " - ");

	if (!rest || sscanf(line, "%*s %*s %*s %511s %511s", ret->root, ret->point) != 2)
		return false;
	if (sscanf(rest, " - %31s %*s %255s", type, options) != 2)
		return false;
	if (*controller == '\0')
		return strcmp(type, "cgroup2") == 0;
	return strcmp(type, "cgroup") == 0 && list_has(options, controller);
}

static bool find_mount(const char *text, const char *controller, struct mount *ret)
{
	for (const char *line = text; *line;) {
		char copy[2048];
		const char *end = strchrnul(line, '\n');

		snprintf(copy, sizeof(copy), "%.*s", (int)(end - line), line);
		if (mount_line(copy, controller, ret))
			return true;
		line = *end ? end + 1 : end;
	}
	return false;
}

/* The own group's folder in a hierarchy. Under a bind mount (a container) the path begins with the
 * mount's root. */
static bool own_folder(const char *cgroups, const char *mounts, const char *controller,
		       char out[CGROUP_PATH_MAX])
{
	char path[CGROUP_PATH_MAX];
	struct mount mount;

	if (!own_path(cgroups, controller, path) || !find_mount(mounts, controller, &mount))
		return false;
	const char *below = path;
	if (strcmp(mount.root, "/") != 0) {
		size_t length = strlen(mount.root);

		if (strncmp(path, mount.root, length) == 0 &&
		    (path[length] == '/' || path[length] == '\0'))
			below = path + length;
		else if (strcmp(path, "/") != 0)
			return false;
	}
	if (strcmp(below, "/") == 0)
		below = "";
	return snprintf(out, CGROUP_PATH_MAX, "%s%s", mount.point, below) < CGROUP_PATH_MAX;
}

void cgroup_parents_read(const char *cgroup_text, const char *mountinfo_text,
			 struct cgroup_set *ret_parents)
{
	struct cgroup_set set = { 0 };

	if (own_folder(cgroup_text, mountinfo_text, "", set.tree))
		set.tree_v2 = true;
	else if (!own_folder(cgroup_text, mountinfo_text, "freezer", set.tree) &&
		 !own_folder(cgroup_text, mountinfo_text, "pids", set.tree))
		set.tree[0] = '\0';
	if (!own_folder(cgroup_text, mountinfo_text, "memory", set.memory))
		set.memory[0] = '\0';
	if (!own_folder(cgroup_text, mountinfo_text, "pids", set.pids))
		set.pids[0] = '\0';
	*ret_parents = set;
}

static bool file_has(const char *folder, const char *file, const char *word)
{
	char path[CGROUP_PATH_MAX + 64], text[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return small_file_read(path, text, sizeof(text)) > 0 && list_has(text, word);
}

static int put(const char *folder, const char *file, const char *text)
{
	char path[CGROUP_PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return small_file_write(path, text);
}

/* Version 2 lets a group hand controllers to children only when no process lives in it. A group
 * that systemd delegated to us holds just us: we move into a child. Somebody else's processes are
 * left alone. */
static void leave_for_child(const char *parent)
{
	char path[CGROUP_PATH_MAX], text[64], own[32];

	snprintf(own, sizeof(own), "%d\n", getpid());
	if (snprintf(path, sizeof(path), "%s/cgroup.procs", parent) >= CGROUP_PATH_MAX ||
	    small_file_read(path, text, sizeof(text)) <= 0 || strcmp(text, own) != 0)
		return;
	if (snprintf(path, sizeof(path), "%s/fairlead-daemon", parent) >= CGROUP_PATH_MAX ||
	    (mkdir(path, 0755) < 0 && errno != EEXIST))
		return;
	(void)put(path, "cgroup.procs", "0");
}

/* Root on a machine with version 2 alone: the tasks' groups lie in one of our own at the top, not in the daemon's. In a
 * login's group somebody else's processes are in the way of handing memory down; and a service's group that has handed it
 * down while tasks live there takes no process in any more, so the service could not be started again before they end. */
static void choose_top(struct cgroup_set *set, const char *mounts)
{
	struct mount mount;
	char path[CGROUP_PATH_MAX];

	if (geteuid() != 0 || !set->tree_v2 || set->memory[0] || !find_mount(mounts, "", &mount) ||
	    !file_has(mount.point, "cgroup.controllers", "memory") ||
	    snprintf(path, sizeof(path), "%s/fairlead", mount.point) >= CGROUP_PATH_MAX ||
	    (mkdir(path, 0755) < 0 && errno != EEXIST))
		return;
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "pids" : "memory";

		if (!file_has(mount.point, "cgroup.subtree_control", name))
			(void)put(mount.point, "cgroup.subtree_control", i ? "+pids" : "+memory");
	}
	if (file_has(path, "cgroup.controllers", "memory"))
		snprintf(set->tree, sizeof(set->tree), "%s", path);
	else
		rmdir(path); /* a container's view: the top is not the machine's */
}

/* On version 2: memory and pids live in the tree's own folder when the parent hands them down. Memory decides: where
 * other processes live in the group the kernel refuses that, but takes pids, which makes the group one of threads, whose
 * children no process may enter any more. */
static void enable_v2(struct cgroup_set *set)
{
	if (!set->tree_v2)
		return;
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "pids" : "memory";
		char *folder = i ? set->pids : set->memory;

		if (folder[0] || !file_has(set->tree, "cgroup.controllers", name) ||
		    (i && !file_has(set->tree, "cgroup.subtree_control", "memory")))
			continue;
		if (!file_has(set->tree, "cgroup.subtree_control", name)) {
			leave_for_child(set->tree);
			(void)put(set->tree, "cgroup.subtree_control", i ? "+pids" : "+memory");
		}
		if (file_has(set->tree, "cgroup.subtree_control", name))
			snprintf(folder, CGROUP_PATH_MAX, "%s", set->tree);
	}
	set->memory_v2 = set->memory[0] && strcmp(set->memory, set->tree) == 0;
}

static void probe(char parent[CGROUP_PATH_MAX])
{
	char path[CGROUP_PATH_MAX + 64];

	if (!parent[0])
		return;
	snprintf(path, sizeof(path), "%s/fairlead-probe-%d", parent, getpid());
	if (mkdir(path, 0755) < 0 || access(path, W_OK) < 0 ||
	    file_has(path, "cgroup.type", "invalid"))
		parent[0] = '\0'; /* invalid: below a group of threads, no process may enter */
	rmdir(path);
}

void cgroup_find(struct cgroup_set *ret_parents)
{
	struct cgroup_set set = { 0 };
	char *cgroups = proc_file_read("/proc/self/cgroup");
	char *mounts = proc_file_read("/proc/self/mountinfo");

	if (cgroups && mounts)
		cgroup_parents_read(cgroups, mounts, &set);
	if (mounts)
		choose_top(&set, mounts);
	free(cgroups);
	free(mounts);
	/* A task is moved into its groups before it gives up root, so groups are of use to root
	 * alone, or in a group that was delegated to this user; the probe tells. */
	probe(set.tree);
	enable_v2(&set);
	if (!set.memory_v2)
		probe(set.memory);
	if (strcmp(set.pids, set.tree) != 0)
		probe(set.pids);
	*ret_parents = set;
}

static void join(const char *parent, const char *name, char out[CGROUP_PATH_MAX])
{
	if (!parent[0] || snprintf(out, CGROUP_PATH_MAX, "%s/%s", parent, name) >= CGROUP_PATH_MAX)
		out[0] = '\0';
}

void cgroup_set_name(const struct cgroup_set *parents, const char *name, struct cgroup_set *ret)
{
	struct cgroup_set set = { .tree_v2 = parents->tree_v2, .memory_v2 = parents->memory_v2 };

	snprintf(set.name, sizeof(set.name), "%s", name);
	join(parents->tree, name, set.tree);
	join(parents->memory, name, set.memory);
	join(parents->pids, name, set.pids);
	*ret = set;
}

bool cgroup_set_is_empty(const struct cgroup_set *set)
{
	return !set->tree[0] && !set->memory[0] && !set->pids[0];
}

/* --- one task's groups --- */

/* The distinct folders of a set. */
static size_t folders_of(const struct cgroup_set *set, const char *out[CGROUP_FOLDERS_MAX])
{
	const char *all[] = { set->tree, set->memory, set->pids };
	size_t count = 0;

	for (size_t i = 0; i < CGROUP_FOLDERS_MAX; i++) {
		bool again = !all[i][0];

		for (size_t j = 0; j < count; j++)
			again |= strcmp(out[j], all[i]) == 0;
		if (!again)
			out[count++] = all[i];
	}
	return count;
}

static int limit_memory(const struct cgroup_set *set, int64_t mib, bool *ret_enforced)
{
	char text[32];
	int result;

	snprintf(text, sizeof(text), "%" PRId64, mib << 20);
	if (set->memory_v2) {
		result = put(set->memory, "memory.max", text);
		(void)put(set->memory, "memory.swap.max", "0");
	} else {
		result = put(set->memory, "memory.limit_in_bytes", text);
		(void)put(set->memory, "memory.memsw.limit_in_bytes",
			  text); /* only where swap is counted */
	}
	*ret_enforced = result == 0;
	return result;
}

static void limit_pids(const struct cgroup_set *set)
{
	char text[32];
	long max = TASK_PIDS_MAX;

	if (small_file_read("/proc/sys/kernel/pid_max", text, sizeof(text)) > 0) {
		long quarter = strtol(text, NULL, 10) / 4;

		if (quarter < max)
			max = quarter;
		if (max < TASK_PIDS_MIN)
			max = TASK_PIDS_MIN;
	}
	snprintf(text, sizeof(text), "%ld", max);
	(void)put(set->pids, "pids.max", text);
}

int cgroup_make(const struct cgroup_set *set, int64_t memory_mib, bool *ret_enforced,
		struct err *err)
{
	const char *folders[CGROUP_FOLDERS_MAX];
	size_t count = folders_of(set, folders);

	*ret_enforced = false;
	for (size_t i = 0; i < count; i++)
		if (mkdir(folders[i], 0755) < 0 && errno != EEXIST)
			return err_errno(err, ERR_IO, errno, "could not make the control group %s",
					 folders[i]);
	if (set->memory[0] && memory_mib > 0) {
		int result = limit_memory(set, memory_mib, ret_enforced);

		if (result < 0)
			return err_errno(err, ERR_IO, -result,
					 "could not set the memory limit of %" PRId64 " MiB in %s",
					 memory_mib, set->memory);
	}
	if (set->pids[0])
		limit_pids(set);
	return 0;
}

int cgroup_open(const struct cgroup_set *set, int fds[CGROUP_FOLDERS_MAX], struct err *err)
{
	const char *folders[CGROUP_FOLDERS_MAX];
	size_t count = folders_of(set, folders);

	for (size_t i = 0; i < count; i++) {
		char path[CGROUP_PATH_MAX + 16];

		snprintf(path, sizeof(path), "%s/cgroup.procs", folders[i]);
		fds[i] = open(path, O_WRONLY | O_CLOEXEC);
		if (fds[i] < 0) {
			int saved = errno;

			while (i-- > 0)
				close(fds[i]);
			return err_errno(err, ERR_IO, saved, "could not open the control group %s",
					 path);
		}
	}
	return (int)count;
}

static void members_of(const char *folder, struct pid_list *list, int depth)
{
	char path[CGROUP_PATH_MAX + 300];
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	char *text = proc_file_read(path);
	if (text)
		pid_list_add_text(list, text);
	free(text);
	DIR *dir = depth < NESTED_MAX ? opendir(folder) : NULL;
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		members_of(path, list, depth + 1);
	}
	closedir(dir);
}

void cgroup_members(const struct cgroup_set *set, struct pid_list *list)
{
	const char *folders[CGROUP_FOLDERS_MAX];
	size_t count = folders_of(set, folders);

	for (size_t i = 0; i < count; i++)
		members_of(folders[i], list, 0);
}

bool cgroup_kill(const struct cgroup_set *set)
{
	return set->tree_v2 && set->tree[0] && put(set->tree, "cgroup.kill", "1") == 0;
}

/* The number in a file, or behind a key at the start of a line. */
static int64_t number_in(const char *folder, const char *file, const char *key)
{
	char path[CGROUP_PATH_MAX + 64], text[4096];
	size_t length = strlen(key);

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	if (small_file_read(path, text, sizeof(text)) <= 0)
		return 0;
	for (const char *line = text; *line;) {
		if (strncmp(line, key, length) == 0 && (length == 0 || line[length] == ' '))
			return strtoll(line + length, NULL, 10);
		const char *end = strchrnul(line, '\n');
		line = *end ? end + 1 : end;
	}
	return 0;
}

void cgroup_memory(const struct cgroup_set *set, int64_t *ret_oom_kills, int64_t *ret_peak_mib)
{
	*ret_oom_kills = *ret_peak_mib = 0;
	if (!set->memory[0])
		return;
	if (set->memory_v2) {
		*ret_oom_kills = number_in(set->memory, "memory.events", "oom_kill");
		*ret_peak_mib = number_in(set->memory, "memory.peak", "") >> 20;
	} else {
		*ret_oom_kills = number_in(set->memory, "memory.oom_control", "oom_kill");
		*ret_peak_mib = number_in(set->memory, "memory.max_usage_in_bytes", "") >> 20;
	}
}

static int remove_folder(const char *folder, int depth)
{
	char path[CGROUP_PATH_MAX + 300];
	struct dirent *entry;

	if (rmdir(folder) == 0 || errno == ENOENT)
		return 0;
	DIR *dir = depth < NESTED_MAX ? opendir(folder) : NULL;
	while (dir && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		(void)remove_folder(path, depth + 1);
	}
	if (dir)
		closedir(dir);
	return rmdir(folder) == 0 || errno == ENOENT ? 0 : 1;
}

int cgroup_remove(const struct cgroup_set *set)
{
	const char *folders[CGROUP_FOLDERS_MAX];
	size_t count = folders_of(set, folders);
	int result = 0;

	for (size_t i = 0; i < count; i++)
		result |= remove_folder(folders[i], 0);
	return result;
}

bool cgroup_owns(const struct cgroup_set *set, pid_t pid)
{
	char path[64], step[CGROUP_PATH_MAX + 1];

	if (cgroup_set_is_empty(set))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	char *text = proc_file_read(path);
	snprintf(step, sizeof(step), "/%.500s", set->name);
	const char *at = text ? strstr(text, step) : NULL;
	char after = at ? at[strlen(step)] : 'x';
	free(text);
	return after == '\n' || after == '/' || after == '\0';
}
