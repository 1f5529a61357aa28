/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/said_today.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

enum { MARK_MAX = 64 };

/* The folder of the file, made where it is missing. */
static bool folder_find(char ret[PATH_MAX])
{
	const char *runtime = getenv("XDG_RUNTIME_DIR"), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");
	int size;

	if (runtime && *runtime == '/')
		size = snprintf(ret, PATH_MAX, "%s", runtime);
	else if (cache && *cache == '/')
		size = snprintf(ret, PATH_MAX, "%s", cache);
	else if (home && *home == '/')
		size = snprintf(ret, PATH_MAX, "%s/.cache", home);
	else
		return false;
	if (size < 0 || size > PATH_MAX - 128)
		return false;
	(void)mkdir(ret, 0700);
	memcpy(ret + size, "/fairlead", sizeof("/fairlead"));
	(void)mkdir(ret, 0700);
	return true;
}

/* One file for each terminal: "/dev/pts/3" is "pts-3". */
static bool file_find(const char *name, char ret[PATH_MAX])
{
	char terminal[64];
	size_t size;

	if (ttyname_r(STDERR_FILENO, terminal, sizeof(terminal)) != 0 ||
	    strncmp(terminal, "/dev/", 5) != 0 || !folder_find(ret))
		return false;
	for (char *p = terminal + 5; *p; p++)
		if (*p == '/')
			*p = '-';
	size = strlen(ret);
	(void)snprintf(ret + size, PATH_MAX - size, "/said-%s-%s", name, terminal + 5);
	return true;
}

/* The day, and the session, for a terminal's name is used again. */
static void mark_make(char ret[MARK_MAX])
{
	char now[LOCAL_TIME_MAX];

	clock_format_local(clock_wall_ms(), now);
	(void)snprintf(ret, MARK_MAX, "%.10s %ld\n", now, (long)getsid(0));
}

static bool mark_is_there(const char *path, const char *mark)
{
	char kept[MARK_MAX] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t got = fd < 0 ? -1 : read(fd, kept, sizeof(kept) - 1);

	if (fd >= 0)
		close(fd);
	return got > 0 && strcmp(kept, mark) == 0;
}

static void mark_leave(const char *path, const char *mark)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	if (write(fd, mark, strlen(mark)) < 0)
		(void)unlink(path);
	close(fd);
}

bool said_today(const char *name)
{
	char path[PATH_MAX], mark[MARK_MAX];
	bool said;

	if (isatty(STDERR_FILENO) != 1 || !file_find(name, path))
		return false;
	mark_make(mark);
	said = mark_is_there(path, mark);
	if (!said)
		mark_leave(path, mark);
	return said;
}
