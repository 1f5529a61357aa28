/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies by name. In sealed segments an index finds them; in the open one a table in memory does, which is
 * read from the names on first use and kept up by each append (16 bytes for each body).
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/guard.h"
#include "store/journal_internal.h"

static uint64_t name_key(const struct digest *digest)
{
	return get_be64(digest->bytes);
}

static struct name_slot *map_slot(const struct name_map *map, uint64_t key)
{
	size_t at = (size_t)key & (map->room - 1);
	while (map->slots[at].id && map->slots[at].key != key)
		at = (at + 1) & (map->room - 1);
	return &map->slots[at];
}

static void map_put(struct name_map *map, uint64_t key, int64_t id)
{
	if (map->count * 4 >= map->room * 3) {
		struct name_map grown = *map;
		grown.room = map->room ? map->room * 2 : 1024;
		grown.slots = calloc(grown.room, sizeof(*grown.slots));
		CHECK(grown.slots);
		for (size_t i = 0; i < map->room; i++)
			if (map->slots[i].id)
				*map_slot(&grown, map->slots[i].key) = map->slots[i];
		free(map->slots);
		*map = grown;
	}
	struct name_slot *slot = map_slot(map, key);
	if (!slot->id)
		map->count++;
	*slot = (struct name_slot){ .key = key, .id = id };
	map->last_id = id;
}

void names_deinit(struct name_map *map)
{
	free(map->slots);
	*map = (struct name_map){ 0 };
}

static void take_name(void *context, int64_t id, const struct digest *digest)
{
	map_put(context, name_key(digest), id);
}

void names_note(struct journal *journal, int64_t first_id, const struct blob *blobs, size_t count)
{
	struct name_map *map = &journal->names;
	if (map->segment != manifest_last(&journal->manifest)->number)
		return; /* not asked for yet: the first look-up reads all */
	for (size_t i = 0; i < count; i++)
		map_put(map, name_key(&blobs[i].digest), first_id + (int64_t)i);
}

/* Finds the id in one segment; SEGMENT_END: not there. */
static int find_in(struct journal *journal, const struct manifest_segment *entry,
		   struct segment *segment, const struct digest *digest, int64_t *ret_id,
		   struct err *err)
{
	if (entry->state != SEGMENT_OPEN)
		return segment_find_name(segment, digest, ret_id, err);
	struct name_map *map = &journal->names;
	if (map->segment != entry->number) {
		names_deinit(map);
		map->segment = entry->number;
	}
	/* The writer's is complete after the first time; a reader takes in what came since. */
	if (map->last_id == 0 || journal->read_only) {
		int result = segment_names(segment, map->last_id, map, take_name, err);
		if (result != 0)
			return result;
	}
	const struct name_slot *slot = map->room ? map_slot(map, name_key(digest)) : NULL;
	if (!slot || !slot->id)
		return SEGMENT_END;
	*ret_id = slot->id;
	return 0;
}

static int busy_error(const struct journal *journal, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE,
		       "the journal of \"%s\" is locked by a reader: try again", journal->folder);
}

/* Where the body is, newest segment first; SEGMENT_END when nowhere. A segment that cannot be read is passed over
 * unless nothing is found elsewhere: then its error is the answer. */
static int blob_find(struct journal *journal, const struct digest *digest, struct segment **ret,
		     int64_t *ret_id, struct err *err)
{
	struct err first_error;
	int failure = 0;
	for (uint32_t i = journal->manifest.count; i-- > 0;) {
		const struct manifest_segment *entry = &journal->manifest.segments[i];
		struct segment *segment;
		struct err one;
		int result = journal_segment(journal, entry->number, &segment, &one);
		if (result == 0)
			result = find_in(journal, entry, segment, digest, ret_id, &one);
		if (result == 0) {
			*ret = segment;
			return 0;
		}
		if (result != SEGMENT_END && failure == 0) {
			failure = result > 0 ? busy_error(journal, &first_error) : result;
			first_error = result > 0 ? first_error : one;
		}
	}
	if (failure == 0)
		return SEGMENT_END;
	if (err)
		*err = first_error;
	return failure;
}

static int blob_missing(const struct digest *digest, const char *why, struct err *err)
{
	char hex[DIGEST_HEX_MAX];
	return err_set(err, ERR_NOT_FOUND, "body %s %s", digest_format(digest, hex), why);
}

static int blob_locked(struct journal *journal, const struct digest *digest, void **ret_data,
		       size_t *ret_size, struct err *err)
{
	struct segment *segment;
	int64_t id;
	struct journal_head head;
	bool has_head;
	if (journal->postgres)
		return remote_blob(journal, digest, ret_data, ret_size, err);
	int result = journal->read_only ? journal_refresh(journal, &head, &has_head, err) : 0;
	if (result == 0)
		result = blob_find(journal, digest, &segment, &id, err);
	if (result == SEGMENT_END)
		return blob_missing(digest, "is not in the journal", err);
	if (result < 0)
		return result;
	void *data;
	size_t size;
	result = segment_blob(segment, id, &data, &size, err);
	if (result == SEGMENT_END)
		return blob_missing(digest, "was erased", err);
	if (result != 0)
		return result > 0 ? busy_error(journal, err) : result;
	struct digest is = digest_of(data, size);
	if (!digest_equal(&is, digest)) {
		char hex[DIGEST_HEX_MAX];
		free(data);
		return err_set(err, ERR_CORRUPT,
			       "body %s in %s is damaged: its bytes have another digest",
			       digest_format(digest, hex), segment_path(segment));
	}
	*ret_data = data;
	*ret_size = size;
	return 0;
}

int journal_blob(struct journal *journal, const struct digest *digest, void **ret_data,
		 size_t *ret_size, struct err *err)
{
	pthread_mutex_lock(&journal->mutex);
	int result = blob_locked(journal, digest, ret_data, ret_size, err);
	pthread_mutex_unlock(&journal->mutex);
	return result;
}

static int erase_locked(struct journal *journal, const struct digest *digest, struct err *err)
{
	struct segment *segment = NULL, *writer = NULL;
	int64_t id;
	if (journal->postgres)
		return remote_erase(journal, digest, err);
	int result = blob_find(journal, digest, &segment, &id, err);
	if (result == SEGMENT_END)
		return blob_missing(digest, "is not in the journal", err);
	if (result < 0)
		return result;
	if (segment != journal->open) {
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s", segment_path(segment));
		journal_cache_drop(journal, 0);
		result = segment_open(journal->io, path, SEGMENT_READ_WRITE, &writer, err);
		if (result < 0)
			return result;
		segment = writer;
	}
	result = segment_erase(segment, id, err);
	if (result < 0 && (!err || err->code != ERR_CORRUPT)) {
		segment_drop(writer);
		struct err failed;
		err_set(&failed, ERR_IO, "a body could not be erased: %s", err ? err->text : "");
		(void)journal_fail(journal, &failed);
		return result;
	}
	segment_close(writer, false);
	if (result == SEGMENT_FULL)
		return err_set(err, ERR_UNAVAILABLE,
			       "no space left to erase a body in the journal of \"%s\"",
			       journal->folder);
	return result > 0 ? busy_error(journal, err) : result;
}

int journal_blob_erase(struct journal *journal, const struct digest *digest, struct err *err)
{
	pthread_mutex_lock(&journal->mutex);
	int result;
	if (journal->read_only)
		result = err_set(err, ERR_UNSUPPORTED,
				 "the journal of \"%s\" was opened for reading only",
				 journal->folder);
	else if (journal->state.failed)
		result = err_set(err, ERR_UNAVAILABLE,
				 "the journal of \"%s\" failed and must be opened again: %s",
				 journal->folder, journal->failed_text);
	else
		result = erase_locked(journal, digest, err);
	pthread_mutex_unlock(&journal->mutex);
	return result;
}
