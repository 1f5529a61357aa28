/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "base/wait.h"

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
			do
				size -= size > 0;
			while (size && out[size] != '/');
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

/* Where the kernel says that the path leads: 0; or errno. EAGAIN: it would have to read something first. */
static int path_ask(const char *path, bool patient, char out[PATH_MAX])
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = patient ? 0 : RESOLVE_CACHED };
	char link[64];
	ssize_t size;
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	/* Kernels before 5.12 lack RESOLVE_CACHED, and a container's filter may reject openat2: then the thread that may wait uses open. */
	if (fd < 0 && (errno == ENOSYS || errno == EINVAL || errno == EPERM)) {
		if (!patient)
			return EAGAIN;
		fd = open(path, O_PATH | O_CLOEXEC);
	}
	if (fd < 0)
		return errno;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	size = readlink(link, out, PATH_MAX - 1);
	close(fd);
	if (size <= 0 || out[0] != '/')
		return ENOENT;
	out[size] = '\0';
	return 0;
}

/* The longest part that exists, and the rest behind it as it is written. 0, or errno. *ret_back: the rest goes back with `..`. */
static int path_resolve_once(const char *path, bool patient, char out[PATH_MAX], bool *ret_back)
{
	char part[PATH_MAX], joined[2 * PATH_MAX];
	size_t size = strnlen(path, PATH_MAX);
	int error;

	if (size == PATH_MAX)
		return ENAMETOOLONG;
	memcpy(part, path, size + 1);
	while ((error = path_ask(size ? part : "/", patient, out))) {
		if (error == EAGAIN || !size)
			return error;
		while (size && part[size - 1] == '/')
			size--;
		while (size && part[size - 1] != '/')
			size--;
		part[size] = '\0';
	}
	if (snprintf(joined, sizeof(joined), "%s/%s", out, path + size) >= (int)sizeof(joined) ||
	    !path_plain(joined, out))
		return ENAMETOOLONG;
	*ret_back = strstr(path + size, "..") != NULL;
	return 0;
}

/* Behind a folder that is not there yet, `..` leads back to what is: links there are followed by a second look, whose path has no `..`. */
static int path_resolve(const char *path, bool patient, char out[PATH_MAX])
{
	char first[PATH_MAX];
	bool back;
	int error = path_resolve_once(path, patient, out, &back);

	if (error || !back)
		return error;
	memcpy(first, out, PATH_MAX);
	return path_resolve_once(first, patient, out, &back);
}

/* --- without waiting for a file server ------------------------------------------------------------------------------ */

enum { LOOKUP_PATIENCE_MS = 200, LOOKUPS_MAX = 4 };

/* A thread asks the kernel, and whoever needs the answer waits for it a little. The last of the two frees this. */
struct lookup {
	pthread_mutex_t lock;
	pthread_cond_t done;
	char path[PATH_MAX], real[PATH_MAX];
	int error;
	bool over, left;
};

static _Atomic int
	lookups; /* that have not come back; each waits for a file server that does not answer */

static void lookup_free(struct lookup *l)
{
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->done);
	free(l);
}

static void *lookup_run(void *context)
{
	struct lookup *l = context;
	bool left;

	l->error = path_resolve(l->path, true, l->real);
	lookups--;
	pthread_mutex_lock(&l->lock);
	l->over = true;
	left = l->left;
	pthread_cond_signal(&l->done);
	pthread_mutex_unlock(&l->lock);
	if (left)
		lookup_free(l);
	return NULL;
}

static bool lookup_wait(struct lookup *l, char out[PATH_MAX])
{
	const struct timespec until = wait_until(LOOKUP_PATIENCE_MS);
	bool found, over;

	pthread_mutex_lock(&l->lock);
	while (!l->over && pthread_cond_timedwait(&l->done, &l->lock, &until) == 0)
		;
	over = l->over;
	l->left = !over;
	pthread_mutex_unlock(&l->lock);
	if (!over)
		return false;
	found = !l->error;
	if (found)
		memcpy(out, l->real, PATH_MAX);
	lookup_free(l);
	return found;
}

/* False: it leads nowhere, or nobody knows in time. */
static bool path_lookup(const char *path, char out[PATH_MAX])
{
	pthread_attr_t detached;
	struct lookup *l;
	pthread_t thread;
	int error = path_resolve(path, false, out);

	if (error != EAGAIN)
		return !error;
	if (lookups >= LOOKUPS_MAX)
		return false;
	l = calloc(1, sizeof(*l));
	CHECK(l);
	CHECK(pthread_mutex_init(&l->lock, NULL) == 0);
	cond_init(&l->done);
	snprintf(l->path, sizeof(l->path), "%s", path);
	CHECK(pthread_attr_init(&detached) == 0);
	CHECK(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
	lookups++;
	error = pthread_create(&thread, &detached, lookup_run, l);
	pthread_attr_destroy(&detached);
	if (!error)
		return lookup_wait(l, out);
	lookups--;
	lookup_free(l);
	return false;
}

bool path_leads_into(const char *folder, const char *path)
{
	char own[PATH_MAX], plain[PATH_MAX], real[PATH_MAX];

	if (!path_plain(folder, own))
		return false;
	if (!path_plain(path, plain) || plain_is_within(own, plain))
		return true;
	if (!path_lookup(path, real))
		return false;
	if (plain_is_within(own, real))
		return true;
	return path_lookup(folder, own) &&
	       (plain_is_within(own, plain) || plain_is_within(own, real));
}
