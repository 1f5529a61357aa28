/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Locks of one database between the connections of this process, and the index of its log, which they share.
 * vfs_locks.h is about other processes. Semantics are those of sqlite3_io_methods; every
 * function may be called from any thread. Used by vfs.c alone.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { VFS_SHM_LOCKS = 8 };

struct vfs_memory {
	pthread_mutex_t mutex;
	unsigned sharers; /* connections at SHARED or above */
	bool reserved, pending, exclusive;
	void **regions;
	int region_count;
	unsigned mappers; /* connections with shared memory; the last one drops it */
	unsigned shm_sharers[VFS_SHM_LOCKS];
	bool shm_exclusive[VFS_SHM_LOCKS];
};

/* What one connection holds. */
struct vfs_memory_user {
	int level; /* SQLITE_LOCK_* */
	bool mapped;
	uint16_t shared_mask, exclusive_mask;
};

void vfs_memory_init(struct vfs_memory *memory);
void vfs_memory_deinit(struct vfs_memory *memory);
int vfs_memory_lock(struct vfs_memory *memory, struct vfs_memory_user *user, int level);
void vfs_memory_unlock(struct vfs_memory *memory, struct vfs_memory_user *user, int level);
/* EXCLUSIVE was had here and not from other processes: PENDING is left. */
void vfs_memory_lock_wait(struct vfs_memory *memory, struct vfs_memory_user *user);
int vfs_memory_level(struct vfs_memory *memory); /* the highest that a connection has */
int vfs_memory_map(struct vfs_memory *memory, struct vfs_memory_user *user, int region, int size,
		   int extend, void volatile **ret);
int vfs_memory_shm_lock(struct vfs_memory *memory, struct vfs_memory_user *user, int first,
			int count, int flags);
/* All writes of this thread to shared memory before it are seen by others after it. */
void vfs_memory_barrier(struct vfs_memory *memory);
void vfs_memory_unmap(struct vfs_memory *memory, struct vfs_memory_user *user);
