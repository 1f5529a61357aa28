/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/running/holder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"

static const char *lock_of(const char *folder, struct arena *arena)
{
	return arena_printf(arena, "%s/journal/lock", folder);
}

long holder_find(const char *folder, struct arena *arena)
{
	char text[32] = "";
	int fd = open(lock_of(folder, arena), O_RDONLY | O_CLOEXEC);
	long holder = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		holder = read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : -1;
	close(fd);
	return holder;
}

static bool has_open(long pid, const struct stat *lock, struct arena *arena)
{
	DIR *files = opendir(arena_printf(arena, "/proc/%ld/fd", pid));
	const struct dirent *entry;
	bool found = false;
	struct stat one;

	while (files && !found && (entry = readdir(files)))
		found = fstatat(dirfd(files), entry->d_name, &one, 0) == 0 &&
			one.st_dev == lock->st_dev && one.st_ino == lock->st_ino;
	if (files)
		closedir(files);
	return found;
}

/* `fairlead up` or `fairlead serve`: other commands hold the lock for a while, too. */
static bool began_as_daemon(long pid, struct arena *arena)
{
	int fd = open(arena_printf(arena, "/proc/%ld/cmdline", pid), O_RDONLY | O_CLOEXEC);
	char words[4096];
	ssize_t size = fd < 0 ? 0 : read(fd, words, sizeof(words) - 1);
	bool is_daemon = false;

	if (fd >= 0)
		close(fd);
	words[size > 0 ? size : 0] = '\0';
	for (ssize_t at = 0; at < size && !is_daemon; at += (ssize_t)strlen(words + at) + 1)
		is_daemon = at && (!strcmp(words + at, "up") || !strcmp(words + at, "serve"));
	return is_daemon;
}

bool holder_is_daemon(long pid, const char *folder, struct arena *arena)
{
	struct stat lock;

	return pid > 0 && stat(lock_of(folder, arena), &lock) == 0 && has_open(pid, &lock, arena) &&
	       began_as_daemon(pid, arena);
}
