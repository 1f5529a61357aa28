/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded in front of a program (LD_PRELOAD): writes down what it does to files below FAIRLEAD_RECORD_BELOW, one line for each
 * call in FAIRLEAD_RECORD, so that test_power.py can play it again on a disk that forgets what no fsync covered.
 *
 *	mkdir PATH | create PATH | content PATH HEX | rename FROM TO | unlink PATH | sync PATH | sync-folder PATH
 *	spawn PLACE		before a shepherd is started
 *	send HEX		before an answer goes to a task
 *	end PLACE		a shepherd is about to end
 *
 * After a write the whole file is written down: they are small. A sync is written down when it is over.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The next definition of the function whose name is given, as a pointer of the type of `type`. */
#define NEXT(type, symbol) ((__typeof__(&(type)))(uintptr_t)dlsym(RTLD_NEXT, symbol))

static bool is_below(const char *path)
{
	const char *below = getenv("FAIRLEAD_RECORD_BELOW");
	size_t size = below ? strlen(below) : 0;

	return size && strncmp(path, below, size) == 0 && (path[size] == '/' || !path[size]);
}

/* One line in one write: programs write into one file. */
static void say(const char *what, const char *path, const char *more)
{
	const char *file = getenv("FAIRLEAD_RECORD");
	char *line = NULL;
	int saved = errno;
	int size = asprintf(&line, "%s\t%s\t%s\n", what, path, more);
	long fd = file ? syscall(SYS_openat, AT_FDCWD, file,
				 O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)
		       : -1;

	if (size < 0 || (fd >= 0 && syscall(SYS_write, fd, line, (size_t)size) != size))
		abort();
	if (fd >= 0)
		(void)syscall(SYS_close, fd);
	free(line);
	errno = saved;
}

static char *hex(const char *data, size_t size)
{
	char *text = malloc(size * 2 + 1);

	if (!text)
		abort();
	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)data[i]);
	text[2 * size] = '\0';
	return text;
}

static bool path_of(int fd, char out[PATH_MAX])
{
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(link, out, PATH_MAX - 1);
	out[size > 0 ? size : 0] = '\0';
	return size > 0 && is_below(out);
}

static bool path_at(int folder, const char *name, char out[PATH_MAX])
{
	char above[PATH_MAX];

	if (name[0] == '/' || folder == AT_FDCWD) {
		snprintf(out, PATH_MAX, "%s", name);
		return is_below(out);
	}
	return path_of(folder, above) && snprintf(out, PATH_MAX, "%s/%s", above, name) < PATH_MAX;
}

/* The whole file as it is now. */
static void say_content(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	int saved = errno;
	if (!path_of(fd, path) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		errno = saved;
		return;
	}
	char *data = malloc((size_t)st.st_size + 1);
	long reader = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t size = reader < 0 || !data ? -1 : pread((int)reader, data, (size_t)st.st_size, 0);
	if (size >= 0) {
		char *text = hex(data, (size_t)size);
		say("content", path, text);
		free(text);
	}
	if (reader >= 0)
		(void)syscall(SYS_close, reader);
	free(data);
	errno = saved;
}

static int open_and_say(int folder, const char *name, int flags, mode_t mode)
{
	char path[PATH_MAX];
	bool below = path_at(folder, name, path);
	bool was = !below || syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
	long fd = syscall(SYS_openat, folder, name, flags, mode);

	if (fd >= 0 && !was && flags & O_CREAT)
		say("create", path, "");
	else if (fd >= 0 && below && flags & O_TRUNC)
		say_content((int)fd);
	return (int)fd;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_and_say(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_and_say(folder, path, flags, mode);
}

ssize_t write(int fd, const void *data, size_t size)
{
	ssize_t done = NEXT(write, "write")(fd, data, size);

	if (done >= 0)
		say_content(fd);
	return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	ssize_t done = NEXT(pwrite, "pwrite64")(fd, data, size, offset);

	if (done >= 0)
		say_content(fd);
	return done;
}

int ftruncate(int fd, off_t size)
{
	int result = NEXT(ftruncate, "ftruncate64")(fd, size);

	if (result == 0)
		say_content(fd);
	return result;
}

int mkdirat(int folder, const char *name, mode_t mode)
{
	char path[PATH_MAX];
	int result = NEXT(mkdirat, "mkdirat")(folder, name, mode);

	if (result == 0 && path_at(folder, name, path))
		say("mkdir", path, "");
	return result;
}

int mkdir(const char *path, mode_t mode)
{
	return mkdirat(AT_FDCWD, path, mode);
}

int renameat(int from, const char *name, int to, const char *as)
{
	char a[PATH_MAX], b[PATH_MAX];
	int result = NEXT(renameat, "renameat")(from, name, to, as);

	if (result == 0 && path_at(from, name, a) && path_at(to, as, b))
		say("rename", a, b);
	return result;
}

int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int folder, const char *name, int flags)
{
	char path[PATH_MAX];
	int result = NEXT(unlinkat, "unlinkat")(folder, name, flags);

	if (result == 0 && path_at(folder, name, path))
		say("unlink", path, "");
	return result;
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

static void say_sync(int fd)
{
	char path[PATH_MAX];
	struct stat st;

	if (path_of(fd, path) && fstat(fd, &st) == 0)
		say(S_ISDIR(st.st_mode) ? "sync-folder" : "sync", path, "");
}

int fsync(int fd)
{
	int result = NEXT(fsync, "fsync")(fd);

	if (result == 0)
		say_sync(fd);
	return result;
}

int fdatasync(int fd)
{
	int result = NEXT(fdatasync, "fdatasync")(fd);

	if (result == 0)
		say_sync(fd);
	return result;
}

int posix_spawn(pid_t *pid, const char *program, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
	if (argv[0] && argv[1] && is_below(argv[1]))
		say("spawn", argv[1], "");
	return NEXT(posix_spawn, "posix_spawn")(pid, program, actions, attributes, argv, envp);
}

ssize_t send(int fd, const void *data, size_t size, int flags)
{
	char *text = hex(data, size);

	say("send", text, "");
	free(text);
	return NEXT(send, "send")(fd, data, size, flags);
}

/* Of a shepherd: its one argument is its place. */
__attribute__((destructor)) static void at_end(void)
{
	char words[2 * PATH_MAX] = "";
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
	ssize_t size = fd < 0 ? -1 : read((int)fd, words, sizeof(words) - 1);
	const char *argument = size > 0 ? words + strlen(words) + 1 : "";

	if (is_below(argument))
		say("end", argument, "");
	if (fd >= 0)
		(void)syscall(SYS_close, fd);
}
