/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the test disk share: its two pictures, and what waits between them. */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/testing/io_disk.h"
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

/* The mutex is held in all of these. */
struct io_disk *disk_make(void); /* without any name */
struct disk_inode *disk_inode_create(void);
struct disk_name *disk_names_find(const struct disk_names *names, const char *path);
void disk_names_put(struct io_disk *disk, struct disk_names *names, const char *path,
		    struct disk_inode *inode);
void disk_names_remove(struct io_disk *disk, struct disk_names *names, const char *path);
void disk_names_deinit(struct io_disk *disk, struct disk_names *names);
void disk_move_apply(struct io_disk *disk, struct disk_names *names, const struct disk_move *move);
void disk_change_apply(struct disk_content *content, const struct disk_change *change);
int64_t disk_bytes_used(const struct io_disk *disk);
