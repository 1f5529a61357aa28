/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A disk in memory that loses what no sync covered: the file layer for tests of power loss.
 *
 * It keeps two pictures: what a program sees, and what would be there after the power returns. A write,
 * truncation, creation, rename or removal changes the first at once and the second only when it is synced:
 * contents by sync of the file, names by sync_folder of their folder. What lies between waits in order.
 *
 *	program sees    [A][B'][C'][D]         B' C' D wait
 *	surely kept     [A][B ][C ]
 *	after a crash   FORGET   [A][B ][C ]    nothing that waits
 *	                TEAR     [A][B'][Cc]    the first ones in order, the last of them in part (sectors of 512)
 *	                REORDER  [A][B ][C'][D] any of them, in sectors
 *
 * io_disk_crash makes such a disk at any moment, so that one run serves for a crash at every write.
 * Copies share their blocks and cost about a microsecond for each file. Bytes beside a torn write are never
 * changed, and a sector is old or new: what SQLite and every file system assume too.
 *
 * Besides: the k-th call of a kind fails; a failed sync loses what waited (as Linux does: the pages count as
 * clean afterwards; names still wait after a failed sync of their folder); the disk is full; chosen syncs are left out, to show that a test would notice.
 */
#include <stdbool.h>
#include <stdint.h>

#include "store/io.h"

struct io_disk;

enum io_call {
	IO_OPEN,
	IO_READ,
	IO_WRITE,
	IO_SYNC,
	IO_TRUNCATE,
	IO_RENAME,
	IO_UNLINK,
	IO_MKDIR,
	IO_SYNC_FOLDER,
	IO_ALLOCATE,
	IO_CALLS
};
const char *io_call_name(enum io_call call);

/* Empty but for the folder "/d". */
struct io_disk *io_disk_create(void);
/* No file of it may be open; takes NULL. */
void io_disk_destroy(struct io_disk *disk);
struct io *io_disk_io(struct io_disk *disk);

enum io_crash { IO_FORGET, IO_TEAR, IO_REORDER, IO_CRASHES };
/* The disk as it may be when the power goes now; the seed decides what is kept. */
struct io_disk *io_disk_crash(struct io_disk *disk, enum io_crash how, uint64_t seed);
/* The disk as a new process would find it now: a kill without power loss. What waited waits in the copy no more. */
struct io_disk *io_disk_copy(struct io_disk *disk);
/* Changes of what surely is kept since the beginning: two crashes with FORGET at one count are equal. */
uint64_t io_disk_kept_version(const struct io_disk *disk);
/* Things that wait: calls that a crash may undo. */
uint64_t io_disk_waiting(const struct io_disk *disk);

/* Called before each call that changes something, from the thread that makes it. NULL: nobody. */
void io_disk_watch(struct io_disk *disk, void *context,
		   void (*before)(void *context, enum io_call call, const char *path));
/* The k-th call of this kind from now on (1: the next) fails once with -error. 0: none. */
void io_disk_fail(struct io_disk *disk, enum io_call call, uint64_t k, int error);
bool io_disk_failed(const struct io_disk *disk); /* that failure has happened */
uint64_t io_disk_calls(const struct io_disk *disk, enum io_call call);
/* Bytes it can hold (rounded up to 4 KiB per file); -1: any number. */
void io_disk_capacity(struct io_disk *disk, int64_t bytes);
int64_t io_disk_used(struct io_disk *disk);
/*
 * Leaves out syncs (they answer 0 and do nothing): IO_SYNC of files whose path matches the fnmatch pattern, of new
 * ones (the name waits still), others or both; or IO_SYNC_FOLDER calls before which the newest waiting change in that
 * folder is of a matching path, which tells the places in the code apart that sync one folder; NEW: other changes wait
 * there too, OLD: only matching ones. NULL: none.
 */
enum io_skip { IO_SKIP_ALL, IO_SKIP_NEW, IO_SKIP_OLD };
void io_disk_skip(struct io_disk *disk, enum io_call call, enum io_skip which, const char *pattern);
uint64_t io_disk_skipped(const struct io_disk *disk);

/* The bytes of a file changed or cut behind the program's back. -ENOENT when there is none. */
int io_disk_flip(struct io_disk *disk, const char *path, int64_t bit);
int io_disk_cut(struct io_disk *disk, const char *path, int64_t size);
/* Whether the bytes stand in any file of the disk. */
bool io_disk_holds(struct io_disk *disk, const void *bytes, size_t size);
