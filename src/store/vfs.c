/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A SQLite VFS whose every read, write, sync, create and delete goes through a struct io.
 *
 * A database file has two halves here:
 *
 *	data            io->read, write, sync, truncate   (one io_file per database and process)
 *	locks, memory   tables of this process (vfs_memory.c), and on real files locks that other processes see (vfs_locks.h)
 *
 * No page of a file is mapped: the index of the log is memory of the process. So a full disk is an error of a call, and never
 * a signal. All connections of a process share it, as they share the data half; one process at a time writes.
 *
 * Files other than databases (WAL, rollback journal) have no locks and one io_file each. SQLite
 * asks for no folder sync: its unix VFS does that silently after the first sync of a new WAL or journal,
 * and so does this one, through io. Nameless temporary files go to the system's VFS whole.
 *
 * SQLite writes a log in pieces of 24 and 4,096 bytes, forty for a commit of thirty records. Here pieces that lie behind one
 * another are gathered and written as one, at the latest when the file is synced, read or asked for its size: so an error of
 * theirs is told by that call. Others read of a log what a commit has published, and with synchronous=FULL SQLite syncs
 * before it publishes. Connections that do not (NORMAL) must use the VFS that does not gather, io_sqlite_vfs_lazy.
 *
 * A checkpoint copies some thousand pages in one go and syncs them. With all of them left to that sync, the commit beside it
 * would wait for the disk as long as they take, and on a busy core threads with answers for as long as the copying.
 * So after each BEHIND_BYTES the kernel is told to begin writing, and other threads go first.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/io.h"
#include "store/vfs_locks.h"
#include "store/vfs_memory.h"

enum { GATHER_BYTES = 256 << 10, BEHIND_BYTES = 256 << 10 };

/* The data half of a database, for all its connections. */
struct vfs_shared {
	struct vfs_shared *next;
	char *path;
	unsigned users;
	struct io_file *data;
	pthread_mutex_t lock_mutex; /* of the two below: what they say is changed together */
	struct vfs_memory memory; /* locks between connections, and the index of the log */
	struct vfs_locks locks; /* between processes; none on a test disk */
};

/* Of the locks in the index: the first and the last of SQLite's marks of readers. */
enum { SHM_BACKFILL = 3, SHM_MARKS = 4, SHM_RESTART = 7 };

struct vfs {
	sqlite3_vfs base; /* first: SQLite's pointer is ours */
	struct vfs *next;
	struct io *io;
	sqlite3_vfs *system;
	bool gathers; /* writes to logs; false: they are synced at checkpoints only */
	pthread_mutex_t mutex; /* guards shared */
	struct vfs_shared *shared;
	atomic_int last_error; /* errno of the last failure, for messages */
	char name[32];
};

struct vfs_file {
	sqlite3_file base; /* first */
	struct vfs *vfs;
	struct vfs_shared *shared; /* databases */
	struct io_file *data;
	struct vfs_memory_user user; /* databases: what this connection holds */
	bool read_only;
	bool detached; /* another process may own the index: SQLite makes one for this connection */
	struct vfs_shared *database; /* of a log, whose connection keeps it open */
	bool gathers;
	char *gathered; /* GATHER_BYTES of room, from the first write on */
	size_t gathered_bytes;
	int64_t gathered_at;
	size_t behind_bytes; /* written since the kernel was told to begin writing */
	bool sync_folder; /* its name may not be on disk yet */
	bool persist_wal;
	char *path;
};

static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vfs *registry;

static struct vfs_file *file_of(sqlite3_file *file)
{
	return (struct vfs_file *)file;
}

/* The SQLite code of a failed io call; a full disk is told apart. */
static int vfs_error(struct vfs *vfs, int result, int code)
{
	atomic_store(&vfs->last_error, -result);
	if (result == -ENOSPC || result == -EDQUOT)
		return SQLITE_FULL;
	return code;
}

/* A log has a new header, or nothing: readers of other processes see that it begins again. */
static void log_begun(struct vfs_file *file)
{
	struct vfs_shared *database = file->database;
	if (!database)
		return;
	pthread_mutex_lock(&database->lock_mutex);
	database->locks.emptied = true;
	if (database->locks.restarting) {
		database->locks.restarting = false;
		vfs_locks_drop(&database->locks, VFS_LOCK_RESTART);
	}
	pthread_mutex_unlock(&database->lock_mutex);
}

/* Writes what was gathered. After an error it is dropped: SQLite rolls back, and writes the same place anew. */
static int gathered_write(struct vfs_file *file)
{
	struct io *io = file->vfs->io;
	size_t size = file->gathered_bytes;
	if (size == 0)
		return SQLITE_OK;
	file->gathered_bytes = 0;
	int result = io->write(io, file->data, file->gathered, size, file->gathered_at);
	if (result < 0)
		return vfs_error(file->vfs, result, SQLITE_IOERR_WRITE);
	if (file->gathered_at == 0)
		log_begun(file);
	return SQLITE_OK;
}

static int gather(struct vfs_file *file, const void *data, size_t size, int64_t offset)
{
	if (file->gathered_bytes && (file->gathered_at + (int64_t)file->gathered_bytes != offset ||
				     file->gathered_bytes + size > GATHER_BYTES)) {
		int rc = gathered_write(file);
		if (rc != SQLITE_OK)
			return rc;
	}
	if (!file->gathered) {
		file->gathered = malloc(GATHER_BYTES);
		CHECK(file->gathered);
	}
	if (file->gathered_bytes == 0)
		file->gathered_at = offset;
	memcpy(file->gathered + file->gathered_bytes, data, size);
	file->gathered_bytes += size;
	return SQLITE_OK;
}

/* Of files that are written at length and synced at the end. */
static void write_behind(struct vfs_file *file, size_t size)
{
	struct io *io = file->vfs->io;
	file->behind_bytes += size;
	if (!io->begin_write || file->behind_bytes < BEHIND_BYTES)
		return;
	file->behind_bytes = 0;
	io->begin_write(io, file->data);
	sched_yield();
}

static int file_unlock(sqlite3_file *base, int level);

static int file_close(sqlite3_file *base)
{
	struct vfs_file *file = file_of(base);
	struct vfs *vfs = file->vfs;
	struct io *io = vfs->io;
	/* What no sync followed may be lost: its error too. */
	(void)gathered_write(file);
	free(file->gathered);
	file->gathered = NULL;
	if (file->shared) {
		(void)file_unlock(base, SQLITE_LOCK_NONE);
		pthread_mutex_lock(&vfs->mutex);
		if (--file->shared->users == 0) {
			struct vfs_shared **at = &vfs->shared;
			while (*at != file->shared)
				at = &(*at)->next;
			*at = file->shared->next;
			io->close(io, file->shared->data);
			vfs_locks_close(&file->shared->locks);
			vfs_memory_deinit(&file->shared->memory);
			pthread_mutex_destroy(&file->shared->lock_mutex);
			free(file->shared->path);
			free(file->shared);
		}
		pthread_mutex_unlock(&vfs->mutex);
	} else if (file->data) {
		io->close(io, file->data);
	}
	free(file->path);
	file->path = NULL;
	return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *data, int size, sqlite3_int64 offset)
{
	struct vfs_file *file = file_of(base);
	struct io *io = file->vfs->io;
	int rc = gathered_write(file);
	if (rc != SQLITE_OK)
		return rc;
	int64_t got = io->read(io, file->data, data, (size_t)size, offset);
	if (got < 0)
		return vfs_error(file->vfs, (int)got, SQLITE_IOERR_READ);
	if (got == size)
		return SQLITE_OK;
	memset((char *)data + got, 0, (size_t)(size - got));
	return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
	struct vfs_file *file = file_of(base);
	struct io *io = file->vfs->io;
	if (file->gathers && size <= GATHER_BYTES)
		return gather(file, data, (size_t)size, offset);
	int rc = gathered_write(file);
	if (rc != SQLITE_OK)
		return rc;
	int result = io->write(io, file->data, data, (size_t)size, offset);
	if (result < 0)
		return vfs_error(file->vfs, result, SQLITE_IOERR_WRITE);
	if (offset == 0)
		log_begun(file);
	write_behind(file, (size_t)size);
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct vfs_file *file = file_of(base);
	struct io *io = file->vfs->io;
	int rc = gathered_write(file);
	if (rc != SQLITE_OK)
		return rc;
	int result = io->truncate(io, file->data, size);
	if (result < 0)
		return vfs_error(file->vfs, result, SQLITE_IOERR_TRUNCATE);
	if (size == 0)
		log_begun(file);
	return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
	(void)flags;
	struct vfs_file *file = file_of(base);
	struct io *io = file->vfs->io;
	int rc = gathered_write(file);
	if (rc != SQLITE_OK)
		return rc;
	file->behind_bytes = 0;
	int result = io->sync(io, file->data);
	if (result < 0) {
		/* A sync that says "full" has lost pages: never a clean outcome. */
		atomic_store(&file->vfs->last_error, -result);
		return SQLITE_IOERR_FSYNC;
	}
	if (!file->sync_folder)
		return SQLITE_OK;
	char folder[PATH_MAX];
	io_folder_of(file->path, folder, sizeof(folder));
	result = io->sync_folder(io, folder);
	if (result < 0) {
		atomic_store(&file->vfs->last_error, -result);
		return SQLITE_IOERR_DIR_FSYNC;
	}
	file->sync_folder = false;
	return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
	struct vfs_file *file = file_of(base);
	struct io *io = file->vfs->io;
	int rc = gathered_write(file);
	if (rc != SQLITE_OK)
		return rc;
	int64_t size = io->size(io, file->data);
	if (size < 0)
		return vfs_error(file->vfs, (int)size, SQLITE_IOERR_FSTAT);
	*ret = size;
	return SQLITE_OK;
}

/* The result of a lock between processes, remembered for messages. */
static int lock_result(struct vfs_file *file, int rc, int code)
{
	if (rc == SQLITE_OK || rc == SQLITE_BUSY)
		return rc;
	atomic_store(&file->vfs->last_error, file->shared->locks.last_error);
	return code;
}

static int file_lock(sqlite3_file *base, int level)
{
	struct vfs_file *file = file_of(base);
	struct vfs_shared *shared = file->shared;
	if (!shared)
		return SQLITE_OK;
	pthread_mutex_lock(&shared->lock_mutex);
	const int before = file->user.level;
	int rc = vfs_memory_lock(&shared->memory, &file->user, level);
	const int between = vfs_locks_raise(&shared->locks, file->user.level);
	if (between != SQLITE_OK) {
		rc = lock_result(file, between, SQLITE_IOERR_LOCK);
		if (file->user.level > SQLITE_LOCK_RESERVED)
			vfs_memory_lock_wait(&shared->memory, &file->user);
		else
			vfs_memory_unlock(&shared->memory, &file->user, before);
	}
	pthread_mutex_unlock(&shared->lock_mutex);
	return rc;
}

static int file_unlock(sqlite3_file *base, int level)
{
	struct vfs_file *file = file_of(base);
	struct vfs_shared *shared = file->shared;
	if (!shared)
		return SQLITE_OK;
	pthread_mutex_lock(&shared->lock_mutex);
	vfs_memory_unlock(&shared->memory, &file->user, level);
	vfs_locks_settle(&shared->locks, vfs_memory_level(&shared->memory));
	pthread_mutex_unlock(&shared->lock_mutex);
	return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *base, int *ret)
{
	struct vfs_file *file = file_of(base);
	*ret = 0;
	if (file->shared) {
		pthread_mutex_lock(&file->shared->lock_mutex);
		*ret = vfs_memory_level(&file->shared->memory) >= SQLITE_LOCK_RESERVED ||
		       vfs_locks_reserved(&file->shared->locks);
		pthread_mutex_unlock(&file->shared->lock_mutex);
	}
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *argument)
{
	struct vfs_file *file = file_of(base);
	int *value = argument;
	switch (op) {
	case SQLITE_FCNTL_PERSIST_WAL:
		if (*value >= 0)
			file->persist_wal = *value != 0;
		else
			*value = file->persist_wal;
		return SQLITE_OK;
	case SQLITE_FCNTL_LAST_ERRNO:
		*value = atomic_load(&file->vfs->last_error);
		return SQLITE_OK;
	default: return SQLITE_NOTFOUND;
	}
}

static int file_sector_size(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

/* Bytes beside a torn write stay as they were: the assumption of all file systems that SQLite's own
 * VFS makes too. The test disk tears inside what was written, never beside it. */
static int file_characteristics(sqlite3_file *base)
{
	(void)base;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* Whose index a connection uses: found out when it is asked for first. */
static int index_find(struct vfs_file *file)
{
	struct vfs_locks *locks = &file->shared->locks;
	if (file->user.mapped)
		return SQLITE_OK;
	if (file->read_only && locks->fd >= 0 && !locks->owner)
		file->detached = true;
	if (file->detached)
		return SQLITE_READONLY_CANTINIT;
	return lock_result(file, vfs_locks_own(locks, file->shared->path), SQLITE_IOERR_SHMLOCK);
}

static int file_shm_map(sqlite3_file *base, int region, int size, int extend, void volatile **ret)
{
	struct vfs_file *file = file_of(base);
	struct vfs_shared *shared = file->shared;
	*ret = NULL;
	pthread_mutex_lock(&shared->lock_mutex);
	int rc = index_find(file);
	if (rc == SQLITE_OK)
		rc = vfs_memory_map(&shared->memory, &file->user, region, size, extend, ret);
	pthread_mutex_unlock(&shared->lock_mutex);
	return rc;
}

/* A reader with an index of its own asks for the lock that keeps the database as it is; it gets the log kept, too. */
static int detached_lock(struct vfs_file *file, int first, int flags)
{
	struct vfs_memory *memory = &file->shared->memory;
	const bool held = file->user.shared_mask >> SHM_BACKFILL & 1u;
	if (flags & SQLITE_SHM_UNLOCK) {
		if (held && first == SHM_BACKFILL) {
			(void)vfs_memory_shm_lock(memory, &file->user, SHM_BACKFILL, 1, flags);
			(void)vfs_memory_shm_lock(memory, &file->user, SHM_RESTART, 1, flags);
			vfs_locks_read_end(&file->shared->locks);
		}
		return SQLITE_OK;
	}
	if (held || first != SHM_BACKFILL || !(flags & SQLITE_SHM_SHARED))
		return held && first == SHM_BACKFILL ? SQLITE_OK : SQLITE_BUSY;
	int rc = vfs_memory_shm_lock(memory, &file->user, SHM_BACKFILL, 1, flags);
	if (rc == SQLITE_OK)
		rc = vfs_memory_shm_lock(memory, &file->user, SHM_RESTART, 1, flags);
	if (rc == SQLITE_OK)
		rc = lock_result(file, vfs_locks_read(&file->shared->locks), SQLITE_IOERR_SHMLOCK);
	if (rc != SQLITE_OK) {
		const int unlock = SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED;
		(void)vfs_memory_shm_lock(memory, &file->user, SHM_BACKFILL, 1, unlock);
		(void)vfs_memory_shm_lock(memory, &file->user, SHM_RESTART, 1, unlock);
	}
	return rc;
}

static bool covers(int first, int count, int slot)
{
	return first <= slot && slot < first + count;
}

/* What readers of other processes must be kept from, or let go on with. */
static int owner_take(struct vfs_locks *locks, int first, int count)
{
	int rc = SQLITE_OK;
	if (covers(first, count, SHM_BACKFILL))
		rc = vfs_locks_take(locks, VFS_LOCK_BACKFILL);
	if (rc != SQLITE_OK || !covers(first, count, SHM_RESTART))
		return rc;
	rc = vfs_locks_take(locks, VFS_LOCK_RESTART);
	if (rc == SQLITE_OK && first == SHM_MARKS)
		locks->emptied = false; /* of all marks at once: the log begins again */
	if (rc != SQLITE_OK && covers(first, count, SHM_BACKFILL))
		vfs_locks_drop(locks, VFS_LOCK_BACKFILL);
	return rc;
}

static void owner_drop(struct vfs_locks *locks, int first, int count)
{
	if (covers(first, count, SHM_BACKFILL))
		vfs_locks_drop(locks, VFS_LOCK_BACKFILL);
	if (!covers(first, count, SHM_RESTART))
		return;
	if (first == SHM_MARKS && !locks->emptied)
		locks->restarting = true;
	vfs_locks_drop(locks, VFS_LOCK_RESTART);
}

static int attached_lock(struct vfs_file *file, int first, int count, int flags)
{
	struct vfs_memory *memory = &file->shared->memory;
	struct vfs_locks *locks = &file->shared->locks;
	if ((flags & SQLITE_SHM_EXCLUSIVE) && (flags & SQLITE_SHM_UNLOCK))
		owner_drop(locks, first, count);
	int rc = vfs_memory_shm_lock(memory, &file->user, first, count, flags);
	if (rc != SQLITE_OK || !(flags & SQLITE_SHM_EXCLUSIVE) || (flags & SQLITE_SHM_UNLOCK))
		return rc;
	rc = lock_result(file, owner_take(locks, first, count), SQLITE_IOERR_SHMLOCK);
	if (rc != SQLITE_OK)
		(void)vfs_memory_shm_lock(memory, &file->user, first, count,
					  SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
	return rc;
}

static int file_shm_lock(sqlite3_file *base, int first, int count, int flags)
{
	struct vfs_file *file = file_of(base);
	pthread_mutex_lock(&file->shared->lock_mutex);
	int rc = file->detached ? detached_lock(file, first, flags)
				: attached_lock(file, first, count, flags);
	pthread_mutex_unlock(&file->shared->lock_mutex);
	return rc;
}

static void file_shm_barrier(sqlite3_file *base)
{
	vfs_memory_barrier(&file_of(base)->shared->memory);
}

static int file_shm_unmap(sqlite3_file *base, int delete_flag)
{
	struct vfs_file *file = file_of(base);
	struct vfs_shared *shared = file->shared;
	(void)delete_flag;
	pthread_mutex_lock(&shared->lock_mutex);
	if (file->detached)
		(void)detached_lock(file, SHM_BACKFILL, SQLITE_SHM_UNLOCK);
	vfs_memory_unmap(&shared->memory, &file->user);
	file->detached = false;
	if (shared->memory.mappers == 0)
		vfs_locks_disown(&shared->locks, file->vfs->io, shared->path);
	pthread_mutex_unlock(&shared->lock_mutex);
	return SQLITE_OK;
}

static const sqlite3_io_methods file_methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_check_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector_size,
	.xDeviceCharacteristics = file_characteristics,
	.xShmMap = file_shm_map,
	.xShmLock = file_shm_lock,
	.xShmBarrier = file_shm_barrier,
	.xShmUnmap = file_shm_unmap,
};

static int open_flags(int flags)
{
	int result = flags & SQLITE_OPEN_READONLY ? O_RDONLY : O_RDWR;
	if (flags & SQLITE_OPEN_CREATE)
		result |= O_CREAT;
	if (flags & SQLITE_OPEN_EXCLUSIVE)
		result |= O_EXCL;
	return result;
}

/* The shared data half of a database, opened on first use. The mutex is held. */
static int shared_get(struct vfs *vfs, const char *path, int flags, struct vfs_shared **ret)
{
	for (struct vfs_shared *shared = vfs->shared; shared; shared = shared->next) {
		if (strcmp(shared->path, path) == 0) {
			shared->users++;
			*ret = shared;
			return 0;
		}
	}
	/* Also for a reader's connection: the process may open another one for writing. */
	struct io_file *data = NULL;
	int result = vfs->io->open(vfs->io, path, (open_flags(flags) & ~O_ACCMODE) | O_RDWR, 0600,
				   &data);
	if ((result == -EACCES || result == -EROFS || result == -EPERM) &&
	    (flags & SQLITE_OPEN_READONLY))
		result = vfs->io->open(vfs->io, path, O_RDONLY, 0600, &data);
	struct vfs_locks locks = { .fd = -1, .guard_fd = -1 };
	if (result == 0 && vfs->io->real_paths)
		result = vfs_locks_open(&locks, path, (flags & SQLITE_OPEN_READONLY) != 0);
	if (result < 0 && data)
		vfs->io->close(vfs->io, data);
	if (result < 0)
		return result;
	struct vfs_shared *shared = calloc(1, sizeof(*shared));
	CHECK(shared);
	shared->path = strdup(path);
	CHECK(shared->path);
	shared->data = data;
	shared->users = 1;
	pthread_mutex_init(&shared->lock_mutex, NULL);
	vfs_memory_init(&shared->memory);
	shared->locks = locks;
	shared->next = vfs->shared;
	vfs->shared = shared;
	*ret = shared;
	return 0;
}

/* The one that a log belongs to: its connection has opened it before. */
static struct vfs_shared *database_of(struct vfs *vfs, const char *path)
{
	static const char end[] = "-wal";
	const size_t size = strlen(path), less = size > strlen(end) ? size - strlen(end) : 0;
	pthread_mutex_lock(&vfs->mutex);
	struct vfs_shared *shared = vfs->shared;
	while (shared && (strncmp(shared->path, path, less) != 0 || shared->path[less] ||
			  strcmp(path + less, end) != 0))
		shared = shared->next;
	pthread_mutex_unlock(&vfs->mutex);
	return shared;
}

/* A file of its own. Its name may not be on disk even if it is there already: a reader makes an empty log and never
 * syncs it, while an older log of that name was removed. With the first sync the folder is synced too. */
static int open_own(struct vfs *vfs, struct vfs_file *file, const char *path, int flags)
{
	struct io *io = vfs->io;
	file->sync_folder = (flags & SQLITE_OPEN_CREATE) != 0;
	file->gathers = vfs->gathers && (flags & SQLITE_OPEN_WAL);
	file->database = flags & SQLITE_OPEN_WAL ? database_of(vfs, path) : NULL;
	return io->open(io, path, open_flags(flags), 0600, &file->data);
}

static int vfs_open(sqlite3_vfs *base, const char *path, sqlite3_file *opened, int flags,
		    int *ret_flags)
{
	struct vfs *vfs = (struct vfs *)base;
	if (!path)
		return vfs->system->xOpen(vfs->system, path, opened, flags, ret_flags);
	struct vfs_file *file = file_of(opened);
	memset(file, 0, sizeof(*file));
	file->vfs = vfs;
	file->read_only = (flags & SQLITE_OPEN_READONLY) != 0;
	int result;
	if (flags & SQLITE_OPEN_MAIN_DB) {
		pthread_mutex_lock(&vfs->mutex);
		result = shared_get(vfs, path, flags, &file->shared);
		pthread_mutex_unlock(&vfs->mutex);
		if (result == 0)
			file->data = file->shared->data;
	} else {
		result = open_own(vfs, file, path, flags);
	}
	if (result < 0) {
		atomic_store(&vfs->last_error, -result);
		return SQLITE_CANTOPEN;
	}
	file->path = strdup(path);
	CHECK(file->path);
	file->base.pMethods = &file_methods;
	if (ret_flags)
		*ret_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *base, const char *path, int sync_folder)
{
	struct vfs *vfs = (struct vfs *)base;
	int result = vfs->io->unlink(vfs->io, path);
	if (result == -ENOENT)
		return SQLITE_IOERR_DELETE_NOENT;
	if (result < 0)
		return vfs_error(vfs, result, SQLITE_IOERR_DELETE);
	if (!sync_folder)
		return SQLITE_OK;
	char folder[PATH_MAX];
	io_folder_of(path, folder, sizeof(folder));
	result = vfs->io->sync_folder(vfs->io, folder);
	return result < 0 ? vfs_error(vfs, result, SQLITE_IOERR_DIR_FSYNC) : SQLITE_OK;
}

/* As SQLite's own: an empty file does not count as there. */
static int vfs_access(sqlite3_vfs *base, const char *path, int flags, int *ret)
{
	struct vfs *vfs = (struct vfs *)base;
	struct io_file *file;
	int how = flags == SQLITE_ACCESS_READWRITE ? O_RDWR : O_RDONLY;
	if (vfs->io->real_paths)
		return vfs->system->xAccess(vfs->system, path, flags, ret);
	*ret = 0;
	if (vfs->io->open(vfs->io, path, how, 0, &file) == 0) {
		*ret = flags != SQLITE_ACCESS_EXISTS || vfs->io->size(vfs->io, file) > 0;
		vfs->io->close(vfs->io, file);
	}
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *base, const char *path, int room, char *out)
{
	struct vfs *vfs = (struct vfs *)base;
	if (vfs->io->real_paths)
		return vfs->system->xFullPathname(vfs->system, path, room, out);
	return snprintf(out, (size_t)room, "%s", path) < room ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_last_error(sqlite3_vfs *base, int size, char *text)
{
	struct vfs *vfs = (struct vfs *)base;
	if (size > 0)
		text[0] = '\0';
	return atomic_load(&vfs->last_error);
}

static struct vfs *vfs_create(struct io *io, bool gathers)
{
	static unsigned number;
	struct vfs *vfs = calloc(1, sizeof(*vfs));
	CHECK(vfs);
	vfs->system = sqlite3_vfs_find("unix");
	CHECK(vfs->system);
	if (io == io_real())
		snprintf(vfs->name, sizeof(vfs->name), "fairlead%s", gathers ? "" : "-lazy");
	else
		snprintf(vfs->name, sizeof(vfs->name), "fairlead-%u", ++number);
	vfs->io = io;
	vfs->gathers = gathers;
	pthread_mutex_init(&vfs->mutex, NULL);
	vfs->base = *vfs->system; /* clock, randomness, sleep stay the system's */
	vfs->base.pNext = NULL;
	vfs->base.iVersion = 2;
	vfs->base.zName = vfs->name;
	vfs->base.szOsFile = (int)sizeof(struct vfs_file);
	if (vfs->base.szOsFile < vfs->system->szOsFile)
		vfs->base.szOsFile = vfs->system->szOsFile; /* nameless files are its own */
	vfs->base.xOpen = vfs_open;
	vfs->base.xDelete = vfs_delete;
	vfs->base.xAccess = vfs_access;
	vfs->base.xFullPathname = vfs_full_path;
	vfs->base.xGetLastError = vfs_last_error;
	int rc = sqlite3_vfs_register(&vfs->base, 0);
	CHECK(rc == SQLITE_OK);
	return vfs;
}

static const char *vfs_name(struct io *io, bool gathers)
{
	pthread_mutex_lock(&registry_mutex);
	struct vfs *vfs = registry;
	while (vfs && (vfs->io != io || vfs->gathers != gathers))
		vfs = vfs->next;
	if (!vfs) {
		vfs = vfs_create(io, gathers);
		vfs->next = registry;
		registry = vfs;
	}
	pthread_mutex_unlock(&registry_mutex);
	return vfs->name;
}

const char *io_sqlite_vfs(struct io *io)
{
	return vfs_name(io, true);
}

const char *io_sqlite_vfs_lazy(struct io *io)
{
	return vfs_name(io, false);
}

static void vfs_drop(struct io *io, bool gathers)
{
	struct vfs **at = &registry;
	while (*at && ((*at)->io != io || (*at)->gathers != gathers))
		at = &(*at)->next;
	struct vfs *vfs = *at;
	if (!vfs)
		return;
	CHECK(!vfs->shared);
	*at = vfs->next;
	sqlite3_vfs_unregister(&vfs->base);
	pthread_mutex_destroy(&vfs->mutex);
	free(vfs);
}

void io_sqlite_vfs_drop(struct io *io)
{
	pthread_mutex_lock(&registry_mutex);
	vfs_drop(io, true);
	vfs_drop(io, false);
	pthread_mutex_unlock(&registry_mutex);
}
