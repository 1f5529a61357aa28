/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/proctree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CLIMB_MAX = 256, PATH_ROOM = 64, STATUS_ROOM = 4096 };
enum { BLOCKED_NEARLY_ALL = 48, BLOCKED_LOOKS = 20, BLOCKED_ASLEEP = 4, BLOCKED_PAUSE_MS = 5 };

/* 2^60: far above any real-time limit in use, far below "unlimited". */
#define BRAND_BASE ((uint64_t)1 << 60)

uint64_t proctree_brand(uint64_t tag, uint64_t attempt, uint32_t rank, uint32_t launch)
{
	uint64_t mixed = (tag * UINT64_C(0x9e3779b97f4a7c15)) ^ (attempt << 20) ^ rank ^
			 ((uint64_t)launch << 44);

	mixed ^= mixed >> 31;
	mixed *= UINT64_C(0xbf58476d1ce4e5b9);
	mixed ^= mixed >> 29;
	return BRAND_BASE | (mixed & (BRAND_BASE - 1));
}

bool proctree_put_brand(uint64_t brand)
{
	struct rlimit limit = { .rlim_cur = brand, .rlim_max = brand };

	return setrlimit(RLIMIT_RTTIME, &limit) == 0;
}

/* --- what /proc says of one process --- */

static ssize_t read_proc(pid_t pid, const char *file, char *out, size_t room)
{
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	return small_file_read(path, out, room);
}

/* Parent of a process, 0 when it is gone; ret_zombie: it is over and only waits to be collected.
 * The name in /proc/PID/stat may hold anything, so fields count from the last bracket. */
static pid_t parent_of(pid_t pid, bool *ret_zombie)
{
	char text[1024], state;
	int parent;

	if (read_proc(pid, "stat", text, sizeof(text)) <= 0)
		return 0;
	const char *end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2)
		return 0;
	if (ret_zombie)
		*ret_zombie = state == 'Z' || state == 'X';
	return parent;
}

static bool has_brand(pid_t pid, uint64_t brand)
{
	char text[4096];
	uint64_t soft, hard;

	if (!brand || read_proc(pid, "limits", text, sizeof(text)) <= 0)
		return false;
	const char *line = strstr(text, "Max realtime timeout");
	if (!line || sscanf(line + strlen("Max realtime timeout"), "%" SCNu64 " %" SCNu64, &soft,
			    &hard) != 2)
		return false;
	return hard == brand;
}

static bool has_marker(pid_t pid, const char *marker)
{
	char path[PATH_ROOM];
	size_t length = strlen(marker);
	bool found = false;

	if (!length)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	FILE *file = fdopen(fd, "r");
	char *word = NULL;
	size_t room = 0;
	ssize_t n;
	while (!found && file && (n = getdelim(&word, &room, '\0', file)) > 0)
		found = strcmp(word, marker) == 0;
	free(word);
	if (file)
		fclose(file);
	else
		close(fd);
	return found;
}

static bool descends(pid_t pid, pid_t root)
{
	for (int i = 0; i < CLIMB_MAX && pid > 1; i++) {
		pid = parent_of(pid, NULL);
		if (pid == root)
			return true;
	}
	return false;
}

bool proctree_owns(const struct proctree *tree, pid_t pid)
{
	if (pid <= 1 || pid == getpid() || pid == tree->root)
		return false;
	if (tree->cgroups && cgroup_owns(tree->cgroups, pid))
		return true;
	if (tree->root && descends(pid, tree->root))
		return true;
	return has_brand(pid, tree->brand) || has_marker(pid, tree->marker);
}

/* --- finding all --- */

/* Whether this kernel lists children (CONFIG_PROC_CHILDREN); without it all processes are looked
 * through. */
static bool lists_children(void)
{
	return access("/proc/thread-self/children", F_OK) == 0;
}

/* Each thread of a process lists the children that it forked. */
static void add_children(pid_t pid, struct pid_list *list)
{
	char path[PATH_ROOM * 2 + 256];
	struct dirent *entry;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *threads = opendir(path);
	while (threads && (entry = readdir(threads))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, entry->d_name);
		char *text = proc_file_read(path);
		if (text)
			pid_list_add_text(list, text);
		free(text);
	}
	if (threads)
		closedir(threads);
}

/* Calls take for every process of the machine. */
static void each_process(void *context, void (*take)(void *context, pid_t pid))
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			take(context, (pid_t)strtol(entry->d_name, NULL, 10));
	if (dir)
		closedir(dir);
}

struct search {
	const struct proctree *tree;
	struct pid_list *list;
};

static void take_descendant(void *context, pid_t pid)
{
	struct search *search = context;

	if (pid != search->tree->root && descends(pid, search->tree->root))
		pid_list_add(search->list, pid);
}

static void take_marked(void *context, pid_t pid)
{
	struct search *search = context;
	bool zombie = false;

	if (!parent_of(pid, &zombie) || zombie)
		return;
	if (proctree_owns(search->tree, pid))
		pid_list_add(search->list, pid);
}

static void add_descendants(const struct proctree *tree, struct pid_list *list)
{
	struct search search = { .tree = tree, .list = list };
	size_t next = list->count;

	if (!lists_children()) {
		each_process(&search, take_descendant);
		return;
	}
	add_children(tree->root, list);
	for (; next < list->count; next++)
		add_children(list->pids[next], list);
}

static void remove_zombies(struct pid_list *list)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		bool zombie = false;

		if (parent_of(list->pids[i], &zombie) && !zombie)
			list->pids[kept++] = list->pids[i];
	}
	list->count = kept;
}

void proctree_members(const struct proctree *tree, bool all_marks, struct pid_list *list)
{
	struct search search = { .tree = tree, .list = list };

	list->count = 0;
	if (tree->root)
		add_descendants(tree, list);
	if (tree->cgroups)
		cgroup_members(tree->cgroups, list);
	remove_zombies(list);
	if (all_marks)
		each_process(&search, take_marked);
}

/* --- signals --- */

bool proctree_signal_one(const struct proctree *tree, pid_t pid, int sig)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return false;
	bool done =
		proctree_owns(tree, pid) && syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) == 0;
	close(fd);
	return done;
}

size_t proctree_signal(const struct proctree *tree, bool all_marks, int sig)
{
	AUTO_PIDS list = { 0 };
	size_t count = 0;

	if (sig == SIGKILL && tree->cgroups)
		(void)cgroup_kill(tree->cgroups);
	proctree_members(tree, all_marks, &list);
	for (size_t i = 0; i < list.count; i++)
		count += proctree_signal_one(tree, list.pids[i], sig);
	return count;
}

/* The line "SigCgt:\t0000000180014a07" as mask. */
static uint64_t signal_mask(const char *status, const char *name)
{
	const char *line = strstr(status, name);

	return line ? strtoull(line + strlen(name), NULL, 16) : 0;
}

/* Caught, or blocked for good: so do programs with a signalfd, or with a thread in sigwait. A mask of nearly everything
 * may also be that of a process that is just making another one (fork and posix_spawn block all signals for some
 * moments), and would be killed by the signal right after: it counts when it sleeps with it, or keeps it. */
static bool wants_signal(pid_t pid, int sig)
{
	const struct timespec pause = { .tv_nsec = BLOCKED_PAUSE_MS * 1000000L };
	uint64_t bit = UINT64_C(1) << (sig - 1);
	char status[STATUS_ROOM];
	int asleep = 0; /* looks: state and mask are not read at one moment */

	for (int look = 0; look < BLOCKED_LOOKS && asleep < BLOCKED_ASLEEP; look++) {
		if (look > 0)
			nanosleep(&pause, NULL);
		if (read_proc(pid, "status", status, sizeof(status)) <= 0)
			return false;
		uint64_t blocked = signal_mask(status, "\nSigBlk:");

		if (signal_mask(status, "\nSigCgt:") & bit)
			return true;
		if (!(blocked & bit))
			return false;
		if (__builtin_popcountll(blocked) < BLOCKED_NEARLY_ALL)
			return true;
		asleep += strstr(status, "\nState:\tS") != NULL;
	}
	return true;
}

static size_t notify_below(const struct proctree *tree, pid_t pid, int sig, int depth)
{
	AUTO_PIDS children = { 0 };
	size_t count = 0;

	if (depth == 0)
		return 0;
	add_children(pid, &children);
	for (size_t i = 0; i < children.count; i++) {
		if (wants_signal(children.pids[i], sig))
			count += proctree_signal_one(tree, children.pids[i], sig);
		else
			count += notify_below(tree, children.pids[i], sig, depth - 1);
	}
	return count;
}

size_t proctree_notify(const struct proctree *tree, int sig)
{
	return notify_below(tree, tree->root, sig, 64);
}

/* --- memory --- */

static int64_t kib_of(const char *text, const char *key)
{
	const char *line = strstr(text, key);

	return line ? strtoll(line + strlen(key), NULL, 10) : 0;
}

int64_t proctree_memory_mib(const struct proctree *tree, bool exact)
{
	AUTO_PIDS list = { 0 };
	int64_t kib = 0;
	char text[STATUS_ROOM];

	proctree_members(tree, false, &list);
	for (size_t i = 0; i < list.count; i++) {
		if (exact && read_proc(list.pids[i], "smaps_rollup", text, sizeof(text)) > 0)
			kib += kib_of(text, "\nPss_Anon:") + kib_of(text, "\nPss_Shmem:");
		else if (read_proc(list.pids[i], "status", text, sizeof(text)) > 0)
			kib += kib_of(text, "\nRssAnon:") + kib_of(text, "\nRssShmem:");
	}
	return kib >> 10;
}
