/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The file layer under everything that must survive power loss: the snapshot writer, manifest, attempt
 * folders, and, through a SQLite VFS named "fairlead" that calls it, the journal. Production uses the real files
 * (io_real). Tests use a disk in memory (io_disk, in tests) that forgets, tears or reorders what no fsync covered, fails
 * the k-th call, or is full.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct io_file;

struct io {
	void *context;
	/* flags: open(2)'s O_RDONLY/O_RDWR/O_CREAT/O_EXCL/O_TRUNC. 0 or -errno, in all functions here. */
	int (*open)(struct io *io, const char *path, int flags, unsigned mode,
		    struct io_file **ret);
	void (*close)(struct io *io, struct io_file *file);
	int64_t (*read)(struct io *io, struct io_file *file, void *data, size_t size,
			int64_t offset); /* bytes, 0 at the end */
	int (*write)(struct io *io, struct io_file *file, const void *data, size_t size,
		     int64_t offset); /* all or -errno */
	int (*sync)(struct io *io, struct io_file *file); /* fdatasync with size */
	/* Asks the system to begin writing what was written: a hint for a sync to come, that promises nothing. May be NULL. */
	void (*begin_write)(struct io *io, struct io_file *file);
	int (*truncate)(struct io *io, struct io_file *file, int64_t size);
	int64_t (*size)(struct io *io, struct io_file *file);
	int (*rename)(struct io *io, const char *from, const char *to);
	int (*unlink)(struct io *io, const char *path);
	int (*mkdir)(struct io *io, const char *path, unsigned mode);
	int (*sync_folder)(struct io *io, const char *path);
	/* Names in a folder, in order of name; `take` nonzero stops. */
	int (*list)(struct io *io, const char *path, void *context,
		    int (*take)(void *context, const char *name));
	int64_t (*free_bytes)(struct io *io, const char *path);
	/* Makes the file `size` bytes long with its space taken from the disk (the reserve against a full one). */
	int (*allocate)(struct io *io, struct io_file *file, int64_t size);
	/* Names are those of the system: SQLite's locks and shared memory between processes, lock files
	 * and owners apply. False: all of that stays inside this process (a disk in memory). */
	bool real_paths;
};

struct io *io_real(void);
/* Registers (once) and names the SQLite VFS over io, for sqlite3_open_v2's last argument. Connections of one process share the index
 * of the log, in its memory; other processes can read beside it through this VFS only (store/vfs_locks.h). */
const char *io_sqlite_vfs(struct io *io);
/* The same for databases that are synced at checkpoints only (synchronous=NORMAL); none may be open through both. */
const char *io_sqlite_vfs_lazy(struct io *io);
/* Forgets the VFS of an io that is about to go; no file of it may be open. */
void io_sqlite_vfs_drop(struct io *io);

/* Small whole files, by the steps above. 0 or -errno. */
/* At most `limit` bytes, -EFBIG beyond; *ret_data is malloc'd and ends in a NUL that is not counted. */
int io_read_file(struct io *io, const char *path, size_t limit, char **ret_data, size_t *ret_size);
/* Under a temporary name `path`.tmp, synced, renamed, folder synced: old or new, never a part. */
int io_replace_file(struct io *io, const char *path, const void *data, size_t size, unsigned mode);
/* The folder of a path ("." when it has none), in at most PATH_MAX bytes. */
void io_folder_of(const char *path, char *out, size_t room);
