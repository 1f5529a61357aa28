/* SPDX-License-Identifier: Apache-2.0 */
#include "store/vfs_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/check.h"

/* SQLite's bytes stand at 1 GiB, in a page that it never uses; ours follow them. */
enum {
	PENDING = 0x40000000,
	RESERVED = PENDING + 1,
	SHARED = PENDING + 2,
	SHARED_BYTES = 510,
	OURS = PENDING + 512
};

/*
 * SQLite's own locks in DATABASE-shm: to write, to copy the log, to make an index; and the one of whoever uses it. A program that finds
 * a page there without an index, and cannot have the locks to make one, reports "database is locked" at once.
 */
enum { GUARD = 120, GUARD_BYTES = 3, IN_USE = 128, INDEX_PAGE = 32768 };

static int lock_bytes(struct vfs_locks *locks, int fd, short type, off_t first, off_t count)
{
	struct flock lock = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = count
	};
	int result;

	do
		result = fcntl(fd, F_OFD_SETLK, &lock);
	while (result < 0 && errno == EINTR);
	if (result == 0)
		return SQLITE_OK;
	if (errno == EAGAIN || errno == EACCES)
		return SQLITE_BUSY;
	locks->last_error = errno;
	return SQLITE_IOERR_LOCK;
}

static int open_as(const char *path, int how)
{
	int fd;

	do
		fd = open(path, how | O_CLOEXEC | O_NOFOLLOW);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int vfs_locks_open(struct vfs_locks *locks, const char *path, bool read_only)
{
	*locks = (struct vfs_locks){ .fd = open_as(path, O_RDWR), .guard_fd = -1 };
	/* Also a reader's, since this process may write later, but not if it cannot. */
	if (locks->fd < 0 && read_only && (errno == EACCES || errno == EROFS || errno == EPERM))
		locks->fd = open_as(path, O_RDONLY);
	return locks->fd < 0 ? -errno : 0;
}

void vfs_locks_close(struct vfs_locks *locks)
{
	if (locks->guard_fd >= 0)
		close(locks->guard_fd);
	if (locks->fd >= 0)
		close(locks->fd);
	*locks = (struct vfs_locks){ .fd = -1, .guard_fd = -1 };
}

/* --- the database's level ---------------------------------------------------------------------------------------- */

static int raise_to_shared(struct vfs_locks *locks)
{
	/* PENDING for the moment: whoever waits for EXCLUSIVE is not starved by new readers. */
	int rc = lock_bytes(locks, locks->fd, F_RDLCK, PENDING, 1);

	if (rc != SQLITE_OK)
		return rc;
	rc = lock_bytes(locks, locks->fd, F_RDLCK, SHARED, SHARED_BYTES);
	(void)lock_bytes(locks, locks->fd, F_UNLCK, PENDING, 1);
	return rc;
}

static int raise_once(struct vfs_locks *locks)
{
	switch (locks->level) {
	case SQLITE_LOCK_NONE: return raise_to_shared(locks);
	case SQLITE_LOCK_SHARED: return lock_bytes(locks, locks->fd, F_WRLCK, RESERVED, 1);
	case SQLITE_LOCK_RESERVED: return lock_bytes(locks, locks->fd, F_WRLCK, PENDING, 1);
	default: return lock_bytes(locks, locks->fd, F_WRLCK, SHARED, SHARED_BYTES);
	}
}

int vfs_locks_raise(struct vfs_locks *locks, int level)
{
	while (locks->fd >= 0 && locks->level < level) {
		const int rc = raise_once(locks);

		if (rc != SQLITE_OK)
			return rc;
		locks->level++;
	}
	return SQLITE_OK;
}

void vfs_locks_settle(struct vfs_locks *locks, int level)
{
	if (locks->fd < 0 || locks->level <= level)
		return;
	/* An error leaves bytes locked that this process has no use for; the last close drops them. */
	if (level == SQLITE_LOCK_NONE) {
		(void)lock_bytes(locks, locks->fd, F_UNLCK, PENDING, 2 + SHARED_BYTES);
	} else {
		if (locks->level > SQLITE_LOCK_PENDING)
			(void)lock_bytes(locks, locks->fd, F_RDLCK, SHARED, SHARED_BYTES);
		(void)lock_bytes(locks, locks->fd, F_UNLCK, PENDING, 2);
	}
	locks->level = level;
}

bool vfs_locks_reserved(const struct vfs_locks *locks)
{
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = RESERVED, .l_len = 1
	};

	return locks->fd >= 0 && fcntl(locks->fd, F_OFD_GETLK, &lock) == 0 &&
	       lock.l_type != F_UNLCK;
}

/* --- owner and readers -------------------------------------------------------------------------------------------- */

static void guard_open(struct vfs_locks *locks, const char *path)
{
	char guard[PATH_MAX];

	if (snprintf(guard, sizeof(guard), "%s-shm", path) >= (int)sizeof(guard))
		return;
	const int fd = open(guard, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	/* A page without space on the disk: it is never written. */
	if (fd >= 0 && lock_bytes(locks, fd, F_RDLCK, IN_USE, 1) == SQLITE_OK &&
	    lock_bytes(locks, fd, F_WRLCK, GUARD, GUARD_BYTES) == SQLITE_OK &&
	    ftruncate(fd, 0) == 0 && ftruncate(fd, INDEX_PAGE) == 0)
		locks->guard_fd = fd;
	else if (fd >= 0)
		close(fd);
}

int vfs_locks_own(struct vfs_locks *locks, const char *path)
{
	int rc = SQLITE_OK;

	if (locks->fd < 0 || locks->owner)
		return SQLITE_OK;
	rc = lock_bytes(locks, locks->fd, F_WRLCK, OURS + VFS_LOCK_OWNER, 1);
	if (rc != SQLITE_OK)
		return rc;
	locks->owner = true;
	guard_open(locks, path);
	return SQLITE_OK;
}

void vfs_locks_disown(struct vfs_locks *locks, struct io *io, const char *path)
{
	char guard[PATH_MAX];

	if (locks->fd < 0 || !locks->owner)
		return;
	if (locks->guard_fd >= 0 &&
	    snprintf(guard, sizeof(guard), "%s-shm", path) < (int)sizeof(guard)) {
		(void)io->unlink(io, guard); /* the next owner makes it again */
		close(locks->guard_fd);
		locks->guard_fd = -1;
	}
	(void)lock_bytes(locks, locks->fd, F_UNLCK, OURS, VFS_LOCK_RESTART + 1);
	locks->owner = locks->restarting = false;
}

int vfs_locks_take(struct vfs_locks *locks, int which)
{
	if (locks->fd < 0 || (which == VFS_LOCK_RESTART && locks->restarting))
		return SQLITE_OK;
	return lock_bytes(locks, locks->fd, F_WRLCK, OURS + which, 1);
}

void vfs_locks_drop(struct vfs_locks *locks, int which)
{
	if (locks->fd >= 0 && !(which == VFS_LOCK_RESTART && locks->restarting))
		(void)lock_bytes(locks, locks->fd, F_UNLCK, OURS + which, 1);
}

int vfs_locks_read(struct vfs_locks *locks)
{
	int rc = SQLITE_OK;

	if (locks->fd >= 0 && locks->restarting)
		return SQLITE_BUSY;
	if (locks->fd >= 0 && locks->readers == 0)
		rc = lock_bytes(locks, locks->fd, F_RDLCK, OURS + VFS_LOCK_BACKFILL, 2);
	if (rc == SQLITE_OK)
		locks->readers++;
	return rc;
}

void vfs_locks_read_end(struct vfs_locks *locks)
{
	CHECK(locks->readers);
	if (--locks->readers == 0 && locks->fd >= 0)
		(void)lock_bytes(locks, locks->fd, F_UNLCK, OURS + VFS_LOCK_BACKFILL, 2);
}
