/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- folders ----------------------------------------------------------------------------------------------------- */

static int open_errno(struct err *err, const char *name)
{
	if (errno == ELOOP || errno == ENOTDIR)
		return err_set(err, ERR_CONFLICT,
			       "\"%.300s\" in the data folder is not a folder; move it away", name);
	return err_errno(err, ERR_IO, errno, "could not open the folder \"%.300s\"", name);
}

/* The descriptor again; closes it where the folder is not own. */
static int own_check(int fd, const char *name, struct err *err)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		rc = err_errno(err, ERR_IO, errno, "could not examine the folder \"%.300s\"", name);
	else if (st.st_uid != geteuid())
		rc = err_set(
			err, ERR_CONFLICT,
			"the folder \"%.300s\" belongs to uid %u and not to the daemon (uid %u); move it away",
			name, (unsigned)st.st_uid, (unsigned)geteuid());
	else if (st.st_mode & 0022)
		rc = err_set(
			err, ERR_CONFLICT,
			"other accounts can write to the folder \"%.300s\" (mode %03o); as the daemon's account: chmod go-w it",
			name, (unsigned)(st.st_mode & 0777));
	else
		return fd;
	close(fd);
	return rc;
}

int own_folder_open(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? open_errno(err, path) : own_check(fd, path, err);
}

int own_folder_at(int parent, const char *name, mode_t mode, enum own_folder_old old,
		  struct err *err)
{
	bool made = mkdirat(parent, name, mode) == 0;
	int fd;

	if (!made && errno == EEXIST && old == OWN_FOLDER_REFUSE)
		return err_set(
			err, ERR_CONFLICT,
			"the folder \"%.300s\" is there already, though nobody has used its name yet; move it away",
			name);
	if (!made && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "could not make the folder \"%.300s\"", name);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return open_errno(err, name);
	fd = own_check(fd, name, err);
	if (fd >= 0 && made && fchmod(fd, mode) < 0) {
		int rc = err_errno(err, ERR_IO, errno,
				   "could not set the mode of the folder \"%.300s\"", name);

		close(fd);
		return rc;
	}
	return fd;
}

/* --- paths ------------------------------------------------------------------------------------------------------- */

/* Takes empty steps, `.` and `..` out of an absolute path. False: it is too long. */
static bool path_plain(const char *path, char out[PATH_MAX])
{
	size_t size = 0;

	while (*path) {
		size_t length;

		path += strspn(path, "/");
		length = strcspn(path, "/");
		if (length == 2 && strncmp(path, "..", 2) == 0) {
			while (size && out[--size] != '/')
				;
		} else if (length && !(length == 1 && *path == '.')) {
			if (size + length + 2 > PATH_MAX)
				return false;
			out[size++] = '/';
			memcpy(out + size, path, length);
			size += length;
		}
		path += length;
	}
	if (!size)
		out[size++] = '/';
	out[size] = '\0';
	return true;
}

static bool plain_is_within(const char *folder, const char *path)
{
	size_t length = strlen(folder);

	return length == 1 || (strncmp(path, folder, length) == 0 &&
			       (path[length] == '/' || path[length] == '\0'));
}

/* Where the kernel says that the path leads; false: it does not exist, or the kernel does not know without waiting. */
static bool path_known(const char *path, char out[PATH_MAX])
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	char link[64];
	ssize_t size;
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, out, PATH_MAX - 1);
	close(fd);
	if (size <= 0 || out[0] != '/')
		return false;
	out[size] = '\0';
	return true;
}

/* The longest part that the kernel knows, and the rest behind it as it is written. */
static bool path_resolve(const char *path, char out[PATH_MAX])
{
	char part[PATH_MAX], joined[2 * PATH_MAX];
	size_t size = strnlen(path, PATH_MAX);

	if (size == PATH_MAX)
		return false;
	memcpy(part, path, size + 1);
	for (;;) {
		if (path_known(size ? part : "/", out))
			break;
		while (size && part[size - 1] == '/')
			size--;
		while (size && part[size - 1] != '/')
			size--;
		if (!size)
			return false;
		part[size] = '\0';
	}
	if (snprintf(joined, sizeof(joined), "%s/%s", out, path + size) >= (int)sizeof(joined))
		return false;
	return path_plain(joined, out);
}

bool path_leads_into(const char *folder, const char *path)
{
	char own[PATH_MAX], plain[PATH_MAX], real[PATH_MAX];

	if (!path_plain(folder, own))
		return false;
	if (!path_plain(path, plain) || plain_is_within(own, plain))
		return true;
	if (!path_resolve(path, real))
		return false;
	if (plain_is_within(own, real))
		return true;
	return path_resolve(folder, own) &&
	       (plain_is_within(own, plain) || plain_is_within(own, real));
}
