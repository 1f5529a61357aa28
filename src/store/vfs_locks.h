/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Locks of one database between processes, for all connections that this process has to it.
 *
 * SQLite's own VFS maps a file `DATABASE-shm` into every process that uses the database. A file system may refuse space for a page
 * of such a file long after the file got its size: ext4 with small blocks, btrfs at any time. The kernel then ends the
 * program with SIGBUS. Here the index of the log is memory of the process instead (vfs_memory.h), so one process at
 * a time may write:
 *
 *	owner     writes; has the index in its memory; all its connections use that
 *	readers   connections of other processes, read-only; each makes an index of its own from the log (SQLite has this for logs
 *	          that it may not write: SQLITE_READONLY_CANTINIT), and keeps the owner from changing what it reads
 *
 * All locks are open file description locks on bytes of the database file that SQLite never writes. Closing some other
 * descriptor of the file does not drop them, and a new process begins with none.
 *
 *	PENDING, RESERVED, SHARED   SQLite's own bytes and meaning, so other programs with SQLite keep the last connection from
 *	                            removing the log, and are kept from it
 *	OWNER      exclusive: of the process whose memory has the index
 *	BACKFILL   exclusive: the owner copies pages of the log into the database; shared: a reader is under way
 *	RESTART    exclusive: the owner begins the log again from its start; shared: a reader is under way
 *
 * A reader believes the log's header. The owner decides to begin again some time before it writes the new header, so it keeps RESTART
 * until then (`restarting`).
 *
 * Programs with SQLite's own VFS know nothing of BACKFILL and RESTART: they could write over what the owner wrote. The owner
 * holds those bytes of `DATABASE-shm` without which such a program can make no index; it
 * reports "database is locked". If that file cannot be made, on a full disk for example, the owner goes on without it.
 *
 * No function here waits. SQLITE_BUSY: another process has what is asked for. The caller keeps calls apart (vfs.c: one mutex a
 * database).
 */
#include <stdbool.h>

#include "store/io.h"

struct vfs_locks {
	int fd; /* of the database file; -1: locks inside this process only */
	int guard_fd; /* of DATABASE-shm; -1: none */
	int level; /* SQLITE_LOCK_*: of this process */
	bool owner;
	bool restarting; /* RESTART stays until the log has a new header */
	bool emptied; /* the log got a new header or was cut to nothing since RESTART was taken */
	unsigned readers; /* connections of this process that read as another process would */
	int last_error; /* errno of the last failure */
};

enum { VFS_LOCK_OWNER, VFS_LOCK_BACKFILL, VFS_LOCK_RESTART };

/* Opens `path` for its locks. 0 or -errno. */
int vfs_locks_open(struct vfs_locks *locks, const char *path, bool read_only);
/* Drops all. Takes one that was not opened, too. */
void vfs_locks_close(struct vfs_locks *locks);

/* The process's level becomes at least (raise) or exactly (settle) the given one. SQLITE_OK, _BUSY or _IOERR_LOCK. A raise that
 * failed may have left PENDING, as SQLite's own does. */
int vfs_locks_raise(struct vfs_locks *locks, int level);
void vfs_locks_settle(struct vfs_locks *locks, int level);
/* Does another process hold RESERVED or more? */
bool vfs_locks_reserved(const struct vfs_locks *locks);

int vfs_locks_own(struct vfs_locks *locks, const char *path);
void vfs_locks_disown(struct vfs_locks *locks, struct io *io, const char *path);
/* The owner's: which is VFS_LOCK_BACKFILL or _RESTART. */
int vfs_locks_take(struct vfs_locks *locks, int which);
void vfs_locks_drop(struct vfs_locks *locks, int which);
/* A reader's: both, shared. */
int vfs_locks_read(struct vfs_locks *locks);
void vfs_locks_read_end(struct vfs_locks *locks);
