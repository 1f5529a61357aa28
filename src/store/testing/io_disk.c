/* SPDX-License-Identifier: Apache-2.0 */
#include "store/testing/io_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/testing/io_disk_content.h"

/* A file, whatever its names are. */
struct disk_inode {
	unsigned users; /* names in either picture, waiting changes, open files */
	struct disk_content seen, kept;
	struct disk_change *changes; /* of the content, waiting, in order */
	struct disk_change **changes_end;
};

struct disk_change {
	struct disk_change *next;
	uint64_t number; /* order over all changes of the disk */
	bool truncate; /* to `offset` bytes */
	int64_t offset;
	size_t size;
	uint8_t data[];
};

/* path to inode; a folder has none. */
struct disk_name {
	char *path;
	struct disk_inode *inode;
};

struct disk_names {
	struct disk_name *items; /* by path */
	size_t count;
};

/* A waiting change of names: `from` goes when it is set, `to` comes when it is set. */
struct disk_move {
	struct disk_move *next;
	uint64_t number;
	char *from, *to;
	struct disk_inode *inode; /* of `to`; NULL for a folder */
};

struct io_disk {
	struct io io; /* first; context is the disk */
	pthread_mutex_t mutex;
	struct disk_names seen, kept;
	struct disk_move *moves, **moves_end;
	uint64_t number, kept_version, waiting;
	int64_t capacity;
	uint64_t calls[IO_CALLS];
	void *watch_context;
	void (*watch)(void *context, enum io_call call, const char *path);
	enum io_call fail_call;
	uint64_t fail_at;
	int fail_error;
	bool failed;
	enum io_call skip_call;
	enum io_skip skip_which;
	const char *skip_pattern;
	uint64_t skipped;
	unsigned open_files;
};

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

static struct disk_inode *inode_create(void)
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

static struct disk_name *names_find(const struct disk_names *names, const char *path)
{
	bool found;
	size_t at = names_at(names, path, &found);
	return found ? &names->items[at] : NULL;
}

static void names_remove(struct io_disk *disk, struct disk_names *names, const char *path)
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

static void names_put(struct io_disk *disk, struct disk_names *names, const char *path,
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

static void names_deinit(struct io_disk *disk, struct disk_names *names)
{
	for (size_t i = 0; i < names->count; i++) {
		inode_unref(disk, names->items[i].inode);
		free(names->items[i].path);
	}
	free(names->items);
	*names = (struct disk_names){ 0 };
}

static void move_apply(struct io_disk *disk, struct disk_names *names, const struct disk_move *move)
{
	if (move->to)
		names_put(disk, names, move->to, move->inode);
	if (move->from)
		names_remove(disk, names, move->from);
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
	move_apply(disk, &disk->seen, move);
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
		bool old = names_find(&disk->kept, path) != NULL;
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

static int64_t disk_used(const struct io_disk *disk)
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
	return disk_used(disk) + round_up(size) - round_up(inode->seen.size) <= disk->capacity;
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
	struct disk_name *name = names_find(&disk->seen, path);
	io_folder_of(path, folder, sizeof(folder));
	if (name && !name->inode)
		return call_end(disk, -EISDIR);
	if (name && (flags & O_CREAT) && (flags & O_EXCL))
		return call_end(disk, -EEXIST);
	if (!name && (!(flags & O_CREAT) || !names_find(&disk->seen, folder)))
		return call_end(disk, -ENOENT);
	if (!name && disk->capacity >= 0 && disk_used(disk) >= disk->capacity)
		return call_end(disk, -ENOSPC);
	if (!name) {
		move_add(disk, NULL, path, inode_create());
		name = names_find(&disk->seen, path);
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

static void change_apply(struct disk_content *content, const struct disk_change *change)
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
		change_apply(&inode->kept, change);
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
	const struct disk_name *name = names_find(&disk->seen, from);
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
	const struct disk_name *name = names_find(&disk->seen, path);
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
	if (names_find(&disk->seen, path))
		return call_end(disk, -EEXIST);
	io_folder_of(path, folder, sizeof(folder));
	if (!names_find(&disk->seen, folder))
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
		move_apply(disk, &disk->kept, move);
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
	bool there = names_find(&disk->seen, path) != NULL;
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
	int64_t result = disk->capacity < 0 ? (int64_t)1 << 40 : disk->capacity - disk_used(disk);
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

static struct io_disk *disk_make(void)
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
	names_put(disk, &disk->seen, "/d", NULL);
	names_put(disk, &disk->kept, "/d", NULL);
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
	names_deinit(disk, &disk->seen);
	names_deinit(disk, &disk->kept);
	pthread_mutex_destroy(&disk->mutex);
	free(disk);
}

struct io *io_disk_io(struct io_disk *disk)
{
	return &disk->io;
}

/* ---- crashes ---- */

struct crash {
	enum io_crash how;
	uint64_t random;
	uint64_t cut; /* TEAR: number of the change that is torn; those before are kept */
};

static uint64_t crash_random(struct crash *crash)
{
	crash->random = crash->random * 6364136223846793005u + 1442695040888963407u;
	return crash->random >> 33;
}

/* Each sector of the change old or new. */
static void apply_torn(struct disk_content *content, const struct disk_change *change,
		       struct crash *crash)
{
	int64_t at = change->offset, end = change->offset + (int64_t)change->size;
	while (at < end) {
		int64_t next = (at / 512 + 1) * 512;
		next = next < end ? next : end;
		if (crash_random(crash) % 2)
			content_write(content, change->data + (at - change->offset),
				      (size_t)(next - at), at);
		at = next;
	}
}

static void crash_content(struct disk_content *content, const struct disk_inode *inode,
			  struct crash *crash)
{
	for (const struct disk_change *change = inode->changes; change; change = change->next) {
		bool whole = false, torn = false;
		if (crash->how == IO_TEAR) {
			whole = change->number < crash->cut;
			torn = change->number == crash->cut;
		} else if (crash->how == IO_REORDER) {
			uint64_t dice = crash_random(crash) % 8;
			whole = dice < 4;
			torn = dice == 4;
		}
		if (whole)
			change_apply(content, change);
		else if (torn && !change->truncate)
			apply_torn(content, change, crash);
	}
}

static bool crash_keeps_move(const struct disk_move *move, struct crash *crash)
{
	if (crash->how == IO_TEAR)
		return move->number < crash->cut;
	return crash->how == IO_REORDER && crash_random(crash) % 2;
}

/* One of the numbers of waiting changes, by chance. */
static uint64_t crash_cut(struct io_disk *disk, struct crash *crash)
{
	uint64_t wanted = disk->waiting ? crash_random(crash) % disk->waiting : 0,
		 result = UINT64_MAX;
	uint64_t *numbers = calloc(disk->waiting + 1, sizeof(*numbers));
	CHECK(numbers);
	size_t count = 0;
	for (const struct disk_move *move = disk->moves; move; move = move->next)
		numbers[count++] = move->number;
	for (size_t i = 0; i < disk->seen.count; i++) {
		const struct disk_inode *inode = disk->seen.items[i].inode;
		for (const struct disk_change *change = inode ? inode->changes : NULL;
		     change && count < disk->waiting; change = change->next)
			numbers[count++] = change->number;
	}
	if (count)
		result = numbers[wanted % count];
	free(numbers);
	return result;
}

/* Names under a folder that did not survive are nowhere. */
static void drop_orphans(struct io_disk *disk, struct disk_names *names)
{
	for (size_t i = 0; i < names->count;) {
		char folder[PATH_MAX];
		io_folder_of(names->items[i].path, folder, sizeof(folder));
		if (strcmp(folder, "/") != 0 && !names_find(names, folder)) {
			names_remove(disk, names, names->items[i].path);
			i = 0;
		} else {
			i++;
		}
	}
}

/* Fills a new disk with files: contents by `fill`, names as given; both pictures equal. Two names of one inode
 * (a rename of which one side survived) become two files. */
static struct io_disk *disk_from(const struct disk_names *names, struct crash *crash)
{
	struct io_disk *disk = disk_make();
	for (size_t i = 0; i < names->count; i++) {
		const struct disk_inode *old = names->items[i].inode;
		struct disk_inode *inode = old ? inode_create() : NULL;
		if (old && crash) {
			content_copy(&inode->kept, &old->kept);
			crash_content(&inode->kept, old, crash);
		} else if (old) {
			content_copy(&inode->kept, &old->seen);
		}
		if (inode)
			content_copy(&inode->seen, &inode->kept);
		names_put(disk, &disk->seen, names->items[i].path, inode);
		names_put(disk, &disk->kept, names->items[i].path, inode);
	}
	return disk;
}

struct io_disk *io_disk_crash(struct io_disk *disk, enum io_crash how, uint64_t seed)
{
	struct crash crash = { .how = how, .random = seed * 0x9e3779b97f4a7c15u + 1 };
	pthread_mutex_lock(&disk->mutex);
	struct disk_names names = { 0 };
	crash_random(&crash);
	if (how == IO_TEAR)
		crash.cut = crash_cut(disk, &crash);
	for (size_t i = 0; i < disk->kept.count; i++)
		names_put(disk, &names, disk->kept.items[i].path, disk->kept.items[i].inode);
	for (const struct disk_move *move = disk->moves; move; move = move->next)
		if (crash_keeps_move(move, &crash))
			move_apply(disk, &names, move);
	drop_orphans(disk, &names);
	struct io_disk *result = disk_from(&names, &crash);
	names_deinit(disk, &names);
	result->capacity = disk->capacity;
	pthread_mutex_unlock(&disk->mutex);
	return result;
}

struct io_disk *io_disk_copy(struct io_disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	struct io_disk *result = disk_from(&disk->seen, NULL);
	result->capacity = disk->capacity;
	pthread_mutex_unlock(&disk->mutex);
	return result;
}

uint64_t io_disk_kept_version(const struct io_disk *disk)
{
	return disk->kept_version;
}

uint64_t io_disk_waiting(const struct io_disk *disk)
{
	return disk->waiting;
}

/* ---- faults ---- */

void io_disk_watch(struct io_disk *disk, void *context,
		   void (*before)(void *context, enum io_call call, const char *path))
{
	disk->watch = before;
	disk->watch_context = context;
}

void io_disk_fail(struct io_disk *disk, enum io_call call, uint64_t k, int error)
{
	disk->fail_call = call;
	disk->fail_at = k;
	disk->fail_error = error;
	disk->failed = false;
}

int64_t io_disk_used(struct io_disk *disk)
{
	pthread_mutex_lock(&disk->mutex);
	int64_t used = disk_used(disk);
	pthread_mutex_unlock(&disk->mutex);
	return used;
}

bool io_disk_failed(const struct io_disk *disk)
{
	return disk->failed;
}

uint64_t io_disk_calls(const struct io_disk *disk, enum io_call call)
{
	return disk->calls[call];
}

void io_disk_capacity(struct io_disk *disk, int64_t bytes)
{
	disk->capacity = bytes;
}

void io_disk_skip(struct io_disk *disk, enum io_call call, enum io_skip which, const char *pattern)
{
	disk->skip_call = call;
	disk->skip_which = which;
	disk->skip_pattern = pattern;
	disk->skipped = 0;
}

uint64_t io_disk_skipped(const struct io_disk *disk)
{
	return disk->skipped;
}

int io_disk_flip(struct io_disk *disk, const char *path, int64_t bit)
{
	const struct disk_name *name = names_find(&disk->seen, path);
	if (!name || !name->inode)
		return -ENOENT;
	uint8_t byte = 0;
	struct disk_content *contents[] = { &name->inode->seen, &name->inode->kept };
	for (size_t i = 0; i < ARRAY_SIZE(contents); i++) {
		if (content_read(contents[i], &byte, 1, bit / 8) != 1)
			continue;
		byte = (uint8_t)(byte ^ 1u << (bit % 8));
		content_write(contents[i], &byte, 1, bit / 8);
	}
	return 0;
}

int io_disk_cut(struct io_disk *disk, const char *path, int64_t size)
{
	const struct disk_name *name = names_find(&disk->seen, path);
	if (!name || !name->inode)
		return -ENOENT;
	content_resize(&name->inode->seen, size);
	content_resize(&name->inode->kept, size);
	return 0;
}

bool io_disk_holds(struct io_disk *disk, const void *bytes, size_t size)
{
	bool found = false;
	for (size_t i = 0; i < disk->seen.count && !found; i++) {
		struct disk_inode *inode = disk->seen.items[i].inode;
		if (!inode || inode->seen.size == 0)
			continue;
		size_t all = (size_t)inode->seen.size;
		uint8_t *data = malloc(all);
		CHECK(data);
		content_read(&inode->seen, data, all, 0);
		found = memmem(data, all, bytes, size) != NULL;
		free(data);
	}
	return found;
}
