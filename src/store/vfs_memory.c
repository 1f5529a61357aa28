/* SPDX-License-Identifier: Apache-2.0 */
#include "store/vfs_memory.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "base/check.h"

void vfs_memory_init(struct vfs_memory *memory)
{
	*memory = (struct vfs_memory){ 0 };
	pthread_mutex_init(&memory->mutex, NULL);
}

static void drop_regions(struct vfs_memory *memory)
{
	for (int i = 0; i < memory->region_count; i++)
		free(memory->regions[i]);
	free(memory->regions);
	memory->regions = NULL;
	memory->region_count = 0;
}

void vfs_memory_deinit(struct vfs_memory *memory)
{
	drop_regions(memory);
	pthread_mutex_destroy(&memory->mutex);
}

/* SHARED, RESERVED and EXCLUSIVE are asked for; PENDING is held on the way to EXCLUSIVE and keeps new readers out. */
int vfs_memory_lock(struct vfs_memory *memory, struct vfs_memory_user *user, int level)
{
	int rc = SQLITE_OK;
	pthread_mutex_lock(&memory->mutex);
	if (user->level >= level)
		goto out;
	rc = SQLITE_BUSY;
	if (user->level == SQLITE_LOCK_NONE) {
		if (memory->pending || memory->exclusive)
			goto out;
		memory->sharers++;
		user->level = SQLITE_LOCK_SHARED;
	}
	if (level >= SQLITE_LOCK_RESERVED && user->level < SQLITE_LOCK_RESERVED) {
		if (memory->reserved)
			goto out;
		memory->reserved = true;
		user->level = SQLITE_LOCK_RESERVED;
	}
	if (level >= SQLITE_LOCK_EXCLUSIVE) {
		memory->pending = true;
		user->level = SQLITE_LOCK_PENDING;
		if (memory->sharers > 1)
			goto out;
		memory->exclusive = true;
		user->level = SQLITE_LOCK_EXCLUSIVE;
	}
	rc = SQLITE_OK;
out:
	pthread_mutex_unlock(&memory->mutex);
	return rc;
}

void vfs_memory_unlock(struct vfs_memory *memory, struct vfs_memory_user *user, int level)
{
	pthread_mutex_lock(&memory->mutex);
	if (user->level > level) {
		if (user->level >= SQLITE_LOCK_RESERVED)
			memory->reserved = memory->pending = memory->exclusive = false;
		if (level == SQLITE_LOCK_NONE)
			memory->sharers--;
		user->level = level;
	}
	pthread_mutex_unlock(&memory->mutex);
}

void vfs_memory_lock_wait(struct vfs_memory *memory, struct vfs_memory_user *user)
{
	pthread_mutex_lock(&memory->mutex);
	memory->exclusive = false;
	user->level = SQLITE_LOCK_PENDING;
	pthread_mutex_unlock(&memory->mutex);
}

int vfs_memory_level(struct vfs_memory *memory)
{
	pthread_mutex_lock(&memory->mutex);
	int level = memory->exclusive  ? SQLITE_LOCK_EXCLUSIVE
		    : memory->pending  ? SQLITE_LOCK_PENDING
		    : memory->reserved ? SQLITE_LOCK_RESERVED
		    : memory->sharers  ? SQLITE_LOCK_SHARED
				       : SQLITE_LOCK_NONE;
	pthread_mutex_unlock(&memory->mutex);
	return level;
}

int vfs_memory_map(struct vfs_memory *memory, struct vfs_memory_user *user, int region, int size,
		   int extend, void volatile **ret)
{
	pthread_mutex_lock(&memory->mutex);
	if (!user->mapped) {
		user->mapped = true;
		memory->mappers++;
	}
	*ret = NULL;
	if (region >= memory->region_count && extend) {
		memory->regions =
			reallocarray(memory->regions, (size_t)region + 1, sizeof(*memory->regions));
		CHECK(memory->regions);
		while (memory->region_count <= region) {
			memory->regions[memory->region_count] = calloc(1, (size_t)size);
			CHECK(memory->regions[memory->region_count]);
			memory->region_count++;
		}
	}
	if (region < memory->region_count)
		*ret = memory->regions[region];
	pthread_mutex_unlock(&memory->mutex);
	return SQLITE_OK;
}

static void shm_release(struct vfs_memory *memory, struct vfs_memory_user *user, int slot)
{
	uint16_t bit = (uint16_t)(1u << slot);
	if (user->exclusive_mask & bit)
		memory->shm_exclusive[slot] = false;
	if (user->shared_mask & bit)
		memory->shm_sharers[slot]--;
	user->exclusive_mask = (uint16_t)(user->exclusive_mask & ~bit);
	user->shared_mask = (uint16_t)(user->shared_mask & ~bit);
}

/* Whether the user can take the slot in the way that flags ask for. */
static bool shm_free(const struct vfs_memory *memory, const struct vfs_memory_user *user, int slot,
		     int flags)
{
	unsigned own = user->shared_mask >> slot & 1u;
	if (memory->shm_exclusive[slot] && !(user->exclusive_mask >> slot & 1u))
		return false;
	return (flags & SQLITE_SHM_SHARED) || memory->shm_sharers[slot] == own;
}

int vfs_memory_shm_lock(struct vfs_memory *memory, struct vfs_memory_user *user, int first,
			int count, int flags)
{
	int rc = SQLITE_OK;
	pthread_mutex_lock(&memory->mutex);
	for (int slot = first; slot < first + count && !(flags & SQLITE_SHM_UNLOCK); slot++)
		if (!shm_free(memory, user, slot, flags))
			rc = SQLITE_BUSY;
	for (int slot = first; slot < first + count && rc == SQLITE_OK; slot++) {
		uint16_t bit = (uint16_t)(1u << slot);
		if (flags & SQLITE_SHM_UNLOCK) {
			shm_release(memory, user, slot);
		} else if (flags & SQLITE_SHM_EXCLUSIVE) {
			memory->shm_exclusive[slot] = true;
			user->exclusive_mask |= bit;
		} else if (!(user->shared_mask & bit)) {
			memory->shm_sharers[slot]++;
			user->shared_mask |= bit;
		}
	}
	pthread_mutex_unlock(&memory->mutex);
	return rc;
}

void vfs_memory_unmap(struct vfs_memory *memory, struct vfs_memory_user *user)
{
	pthread_mutex_lock(&memory->mutex);
	for (int slot = 0; slot < VFS_SHM_LOCKS; slot++)
		shm_release(memory, user, slot);
	if (user->mapped) {
		user->mapped = false;
		if (--memory->mappers == 0)
			drop_regions(memory);
	}
	pthread_mutex_unlock(&memory->mutex);
}

void vfs_memory_barrier(struct vfs_memory *memory)
{
	pthread_mutex_lock(&memory->mutex);
	pthread_mutex_unlock(&memory->mutex);
}
