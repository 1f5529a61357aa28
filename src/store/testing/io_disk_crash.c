/* SPDX-License-Identifier: Apache-2.0 */
/* What a crash leaves, and the faults that a test asks for. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/testing/io_disk_internal.h"

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
			disk_change_apply(content, change);
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
		if (strcmp(folder, "/") != 0 && !disk_names_find(names, folder)) {
			disk_names_remove(disk, names, names->items[i].path);
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
		struct disk_inode *inode = old ? disk_inode_create() : NULL;
		if (old && crash) {
			content_copy(&inode->kept, &old->kept);
			crash_content(&inode->kept, old, crash);
		} else if (old) {
			content_copy(&inode->kept, &old->seen);
		}
		if (inode)
			content_copy(&inode->seen, &inode->kept);
		disk_names_put(disk, &disk->seen, names->items[i].path, inode);
		disk_names_put(disk, &disk->kept, names->items[i].path, inode);
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
		disk_names_put(disk, &names, disk->kept.items[i].path, disk->kept.items[i].inode);
	for (const struct disk_move *move = disk->moves; move; move = move->next)
		if (crash_keeps_move(move, &crash))
			disk_move_apply(disk, &names, move);
	drop_orphans(disk, &names);
	struct io_disk *result = disk_from(&names, &crash);
	disk_names_deinit(disk, &names);
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
	int64_t used = disk_bytes_used(disk);
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
	const struct disk_name *name = disk_names_find(&disk->seen, path);
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
	const struct disk_name *name = disk_names_find(&disk->seen, path);
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
