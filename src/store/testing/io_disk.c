/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/testing/io_disk_internal.h"

struct io_file {
	struct disk_inode *inode;
	char *path;
	bool writable;
};

const char *io_call_name(enum io_call call)
{
	static const char *const names[IO_CALLS] = { "open",        "read",    "write",  "sync",
						     "truncate",    "rename",  "unlink", "mkdir",
						     "sync_folder", "allocate" };
	return names[call];
}

static struct io_disk *disk_of(struct io *io)
{
	return io->context;
}

/* ---- inodes and names ---- */

struct disk_inode *disk_inode_create(void)
{
	struct disk_inode *inode = calloc(1, sizeof(*inode));
	CHECK(inode);
	inode->changes_end = &inode->changes;
	return inode;
}

static struct disk_inode *inode_ref(struct disk_inode *inode)
{
	if (inode)
		inode->users++;
	return inode;
}

static void changes_drop(struct io_disk *disk, struct disk_inode *inode)
{
	while (inode->changes) {
		struct disk_change *change = inode->changes;
		inode->changes = change->next;
		free(change);
		if (disk)
			disk->waiting--;
	}
	inode->changes_end = &inode->changes;
}

static void inode_unref(struct io_disk *disk, struct disk_inode *inode)
{
	if (!inode || --inode->users > 0)
		return;
	changes_drop(disk, inode);
	content_deinit(&inode->seen);
	content_deinit(&inode->kept);
	free(inode);
}

/* Where the path is or would be. */
static size_t names_at(const struct disk_names *names, const char *path, bool *ret_found)
{
	size_t low = 0, high = names->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(names->items[middle].path, path);
		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = false;
	return low;
}

struct disk_name *disk_names_find(const struct disk_names *names, const char *path)
{
	bool found;
	size_t at = names_at(names, path, &found);
	return found ? &names->items[at] : NULL;
}

void disk_names_remove(struct io_disk *disk, struct disk_names *names, const char *path)
{
	bool found;
	size_t at = names_at(names, path, &found);
	if (!found)
		return;
	inode_unref(disk, names->items[at].inode);
	free(names->items[at].path);
	names->count--;
	memmove(&names->items[at], &names->items[at + 1],
		(names->count - at) * sizeof(*names->items));
}

void disk_names_put(struct io_disk *disk, struct disk_names *names, const char *path,
		    struct disk_inode *inode)
{
	bool found;
	size_t at = names_at(names, path, &found);
	inode_ref(inode);
	if (found) {
		inode_unref(disk, names->items[at].inode);
		names->items[at].inode = inode;
		return;
	}
	names->items = reallocarray(names->items, names->count + 1, sizeof(*names->items));
	CHECK(names->items);
	memmove(&names->items[at + 1], &names->items[at],
		(names->count - at) * sizeof(*names->items));
	names->items[at] = (struct disk_name){ .path = strdup(path), .inode = inode };
	CHECK(names->items[at].path);
	names->count++;
}

void disk_names_deinit(struct io_disk *disk, struct disk_names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		inode_unref(disk, names->items[i].inode);
		free(names->items[i].path);
	}
	free(names->items);
	*names = (struct disk_names){ 0 };
}

void disk_move_apply(struct io_disk *disk, struct disk_names *names, const struct disk_move *move)
{
	if (move->to)
		disk_names_put(disk, names, move->to, move->inode);
	if (move->from)
		disk_names_remove(disk, names, move->from);
}

static void move_free(struct io_disk *disk, struct disk_move *move)
{
	inode_unref(disk, move->inode);
	free(move->from);
	free(move->to);
	free(move);
	disk->waiting--;
}

static void move_add(struct io_disk *disk, const char *from, const char *to,
		     struct disk_inode *inode)
{
	struct disk_move *move = calloc(1, sizeof(*move));
	CHECK(move);
	move->number = disk->number++;
	move->from = from ? strdup(from) : NULL;
	move->to = to ? strdup(to) : NULL;
	move->inode = inode_ref(inode);
	*disk->moves_end = move;
	disk->moves_end = &move->next;
	disk->waiting++;
	disk_move_apply(disk, &disk->seen, move);
}

static bool in_folder(const char *path, const char *folder)
{
	size_t length = strlen(folder);
	return path && strncmp(path, folder, length) == 0 && path[length] == '/' &&
	       !strchr(path + length + 1, '/');
}

static bool move_in(const struct disk_move *move, const char *folder)
{
	return in_folder(move->to ? move->to : move->from, folder);
}

/* ---- what each call does first ---- */

static bool call_skipped(struct io_disk *disk, enum io_call call, const char *path)
{
	if (!disk->skip_pattern || call != disk->skip_call)
		return false;
	const char *about = path;
	if (call == IO_SYNC_FOLDER) {
		bool others = false;
		about = NULL;
		for (const struct disk_move *move = disk->moves; move; move = move->next) {
			if (!move_in(move, path))
				continue;
			about = move->to ? move->to : move->from;
			others = others || fnmatch(disk->skip_pattern, about, 0) != 0;
		}
		if (disk->skip_which != IO_SKIP_ALL && others != (disk->skip_which == IO_SKIP_NEW))
			return false;
	} else if (disk->skip_which != IO_SKIP_ALL) {
		bool old = disk_names_find(&disk->kept, path) != NULL;
		if (old != (disk->skip_which == IO_SKIP_OLD))
			return false;
	}
	if (!about || fnmatch(disk->skip_pattern, about, 0) != 0)
		return false;
	disk->skipped++;
	return true;
}

/* Watches, counts, fails. 0 with the mutex held, or -errno without it. */
static int call_begin(struct io_disk *disk, enum io_call call, const char *path)
{
	if (disk->watch && call != IO_READ && call != IO_OPEN)
		disk->watch(disk->watch_context, call, path);
	pthread_mutex_lock(&disk->mutex);
	disk->calls[call]++;
	if (disk->fail_at && call == disk->fail_call && --disk->fail_at == 0) {
		disk->failed = true;
		pthread_mutex_unlock(&disk->mutex);
		return -disk->fail_error;
	}
	return 0;
}

static int call_end(struct io_disk *disk, int result)
{
	pthread_mutex_unlock(&disk->mutex);
	return result;
}

static int64_t round_up(int64_t size)
{
	return (size + 4095) / 4096 * 4096;
}

int64_t disk_bytes_used(const struct io_disk *disk)
{
	int64_t used = 0;
	for (size_t i = 0; i < disk->seen.count; i++)
		if (disk->seen.items[i].inode)
			used += round_up(disk->seen.items[i].inode->seen.size);
	return used;
}

static bool disk_fits(const struct io_disk *disk, const struct disk_inode *inode, int64_t size)
{
	if (disk->capacity < 0 || size <= inode->seen.size)
		return true;
	return disk_bytes_used(disk) + round_up(size) - round_up(inode->seen.size) <=
	       disk->capacity;
}

/* ---- struct io ---- */

static int disk_open(struct io *io, const char *path, int flags, unsigned mode,
		     struct io_file **ret)
{
	(void)mode;
	struct io_disk *disk = disk_of(io);
	char folder[PATH_MAX];
	int result = call_begin(disk, IO_OPEN, path);
	if (result < 0)
		return result;
	struct disk_name *name = disk_names_find(&disk->seen, path);
	io_folder_of(path, folder, sizeof(folder));
	if (name && !name->inode)
		return call_end(disk, -EISDIR);
	if (name && (flags & O_CREAT) && (flags & O_EXCL))
		return call_end(disk, -EEXIST);
	if (!name && (!(flags & O_CREAT) || !disk_names_find(&disk->seen, folder)))
		return call_end(disk, -ENOENT);
	if (!name && disk->capacity >= 0 && disk_bytes_used(disk) >= disk->capacity)
		return call_end(disk, -ENOSPC);
	if (!name) {
		move_add(disk, NULL, path, disk_inode_create());
		name = disk_names_find(&disk->seen, path);
	}
	struct disk_inode *inode = name->inode;
	if ((flags & O_TRUNC) && inode->seen.size > 0) {
		struct disk_change *change = calloc(1, sizeof(*change));
		CHECK(change);
		change->number = disk->number++;
		change->truncate = true;
		*inode->changes_end = change;
		inode->changes_end = &change->next;
		disk->waiting++;
		content_resize(&inode->seen, 0);
	}
	struct io_file *file = calloc(1, sizeof(*file));
	CHECK(file);
	file->inode = inode_ref(inode);
	file->path = strdup(path);
	file->writable = (flags & O_ACCMODE) != O_RDONLY;
	disk->open_files++;
	*ret = file;
	return call_end(disk, 0);
}

static void disk_close(struct io *io, struct io_file *file)
{
	struct io_disk *disk = disk_of(io);
	if (!file)
		return;
	pthread_mutex_lock(&disk->mutex);
	inode_unref(disk, file->inode);
	disk->open_files--;
	pthread_mutex_unlock(&disk->mutex);
	free(file->path);
	free(file);
}

static int64_t disk_read(struct io *io, struct io_file *file, void *data, size_t size,
			 int64_t offset)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_READ, file->path);
	if (result < 0)
		return result;
	int64_t got = content_read(&file->inode->seen, data, size, offset);
	pthread_mutex_unlock(&disk->mutex);
	return got;
}

static struct disk_change *change_add(struct io_disk *disk, struct disk_inode *inode, size_t size)
{
	struct disk_change *change = calloc(1, sizeof(*change) + size);
	CHECK(change);
	change->number = disk->number++;
	change->size = size;
	*inode->changes_end = change;
	inode->changes_end = &change->next;
	disk->waiting++;
	return change;
}

static int disk_write(struct io *io, struct io_file *file, const void *data, size_t size,
		      int64_t offset)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_WRITE, file->path);
	if (result < 0)
		return result;
	if (!file->writable)
		return call_end(disk, -EBADF);
	if (!disk_fits(disk, file->inode, offset + (int64_t)size))
		return call_end(disk, -ENOSPC);
	struct disk_change *change = change_add(disk, file->inode, size);
	change->offset = offset;
	memcpy(change->data, data, size);
	content_write(&file->inode->seen, data, size, offset);
	return call_end(disk, 0);
}

void disk_change_apply(struct disk_content *content, const struct disk_change *change)
{
	if (change->truncate)
		content_resize(content, change->offset);
	else
		content_write(content, change->data, change->size, change->offset);
}

static int disk_sync(struct io *io, struct io_file *file)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_SYNC, file->path);
	struct disk_inode *inode = file->inode;
	if (result < 0) {
		/* The pages count as clean from now on, and are on no disk. */
		pthread_mutex_lock(&disk->mutex);
		changes_drop(disk, inode);
		return call_end(disk, result);
	}
	if (call_skipped(disk, IO_SYNC, file->path))
		return call_end(disk, 0);
	if (inode->changes)
		disk->kept_version++;
	for (const struct disk_change *change = inode->changes; change; change = change->next)
		disk_change_apply(&inode->kept, change);
	changes_drop(disk, inode);
	return call_end(disk, 0);
}

static int disk_truncate(struct io *io, struct io_file *file, int64_t size)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_TRUNCATE, file->path);
	if (result < 0)
		return result;
	if (!disk_fits(disk, file->inode, size))
		return call_end(disk, -ENOSPC);
	struct disk_change *change = change_add(disk, file->inode, 0);
	change->truncate = true;
	change->offset = size;
	content_resize(&file->inode->seen, size);
	return call_end(disk, 0);
}

static int64_t disk_size(struct io *io, struct io_file *file)
{
	struct io_disk *disk = disk_of(io);
	pthread_mutex_lock(&disk->mutex);
	int64_t size = file->inode->seen.size;
	pthread_mutex_unlock(&disk->mutex);
	return size;
}

static int disk_rename(struct io *io, const char *from, const char *to)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_RENAME, to);
	if (result < 0)
		return result;
	const struct disk_name *name = disk_names_find(&disk->seen, from);
	if (!name || !name->inode)
		return call_end(disk, -ENOENT);
	move_add(disk, from, to, name->inode);
	return call_end(disk, 0);
}

static int disk_unlink(struct io *io, const char *path)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_UNLINK, path);
	if (result < 0)
		return result;
	const struct disk_name *name = disk_names_find(&disk->seen, path);
	if (!name || !name->inode)
		return call_end(disk, name ? -EISDIR : -ENOENT);
	move_add(disk, path, NULL, NULL);
	return call_end(disk, 0);
}

static int disk_mkdir(struct io *io, const char *path, unsigned mode)
{
	(void)mode;
	struct io_disk *disk = disk_of(io);
	char folder[PATH_MAX];
	int result = call_begin(disk, IO_MKDIR, path);
	if (result < 0)
		return result;
	if (disk_names_find(&disk->seen, path))
		return call_end(disk, -EEXIST);
	io_folder_of(path, folder, sizeof(folder));
	if (!disk_names_find(&disk->seen, folder))
		return call_end(disk, -ENOENT);
	move_add(disk, NULL, path, NULL);
	return call_end(disk, 0);
}

/* Keeps the waiting moves of a folder. */
static void moves_settle(struct io_disk *disk, const char *folder)
{
	struct disk_move **at = &disk->moves;
	while (*at) {
		struct disk_move *move = *at;
		if (!move_in(move, folder)) {
			at = &move->next;
			continue;
		}
		*at = move->next;
		disk->kept_version++;
		disk_move_apply(disk, &disk->kept, move);
		move_free(disk, move);
	}
	disk->moves_end = at;
}

static int disk_sync_folder(struct io *io, const char *path)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_SYNC_FOLDER, path);
	if (result < 0)
		return result; /* the names still wait */
	if (!call_skipped(disk, IO_SYNC_FOLDER, path))
		moves_settle(disk, path);
	return call_end(disk, 0);
}

static int disk_list(struct io *io, const char *path, void *context,
		     int (*take)(void *context, const char *name))
{
	struct io_disk *disk = disk_of(io);
	char *names[4096];
	size_t count = 0, length = strlen(path);
	pthread_mutex_lock(&disk->mutex);
	bool there = disk_names_find(&disk->seen, path) != NULL;
	for (size_t i = 0; i < disk->seen.count; i++) {
		if (!in_folder(disk->seen.items[i].path, path))
			continue;
		CHECK(count < ARRAY_SIZE(names));
		names[count] = strdup(disk->seen.items[i].path + length + 1);
		CHECK(names[count]);
		count++;
	}
	pthread_mutex_unlock(&disk->mutex);
	int result = there ? 0 : -ENOENT;
	for (size_t i = 0; i < count; i++) {
		if (result == 0)
			result = take(context, names[i]);
		free(names[i]);
	}
	return result;
}

static int64_t disk_free_bytes(struct io *io, const char *path)
{
	(void)path;
	struct io_disk *disk = disk_of(io);
	pthread_mutex_lock(&disk->mutex);
	int64_t result =
		disk->capacity < 0 ? (int64_t)1 << 40 : disk->capacity - disk_bytes_used(disk);
	pthread_mutex_unlock(&disk->mutex);
	return result < 0 ? 0 : result;
}

static int disk_allocate(struct io *io, struct io_file *file, int64_t size)
{
	struct io_disk *disk = disk_of(io);
	int result = call_begin(disk, IO_ALLOCATE, file->path);
	if (result < 0)
		return result;
	if (!disk_fits(disk, file->inode, size))
		return call_end(disk, -ENOSPC);
	if (size > file->inode->seen.size) {
		struct disk_change *change = change_add(disk, file->inode, 0);
		change->truncate = true;
		change->offset = size;
		content_resize(&file->inode->seen, size);
	}
	return call_end(disk, 0);
}

/* ---- the disk ---- */

struct io_disk *disk_make(void)
{
	struct io_disk *disk = calloc(1, sizeof(*disk));
	CHECK(disk);
	disk->io = (struct io){
		.context = disk,
		.open = disk_open,
		.close = disk_close,
		.read = disk_read,
		.write = disk_write,
		.sync = disk_sync,
		.truncate = disk_truncate,
		.size = disk_size,
		.rename = disk_rename,
		.unlink = disk_unlink,
		.mkdir = disk_mkdir,
		.sync_folder = disk_sync_folder,
		.list = disk_list,
		.free_bytes = disk_free_bytes,
		.allocate = disk_allocate,
	};
	pthread_mutex_init(&disk->mutex, NULL);
	disk->moves_end = &disk->moves;
	disk->capacity = -1;
	return disk;
}

struct io_disk *io_disk_create(void)
{
	struct io_disk *disk = disk_make();
	disk_names_put(disk, &disk->seen, "/d", NULL);
	disk_names_put(disk, &disk->kept, "/d", NULL);
	return disk;
}

void io_disk_destroy(struct io_disk *disk)
{
	if (!disk)
		return;
	CHECK(disk->open_files == 0);
	io_sqlite_vfs_drop(&disk->io);
	while (disk->moves) {
		struct disk_move *move = disk->moves;
		disk->moves = move->next;
		move_free(disk, move);
	}
	disk_names_deinit(disk, &disk->seen);
	disk_names_deinit(disk, &disk->kept);
	pthread_mutex_destroy(&disk->mutex);
	free(disk);
}

struct io *io_disk_io(struct io_disk *disk)
{
	return &disk->io;
}
