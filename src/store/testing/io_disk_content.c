/* SPDX-License-Identifier: Apache-2.0 */
#include "store/testing/io_disk_content.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { BLOCK_BYTES = 4096 };

struct disk_block {
	atomic_uint users;
	uint8_t data[BLOCK_BYTES];
};

static void block_unref(struct disk_block *block)
{
	if (block && atomic_fetch_sub(&block->users, 1) == 1)
		free(block);
}

void content_deinit(struct disk_content *content)
{
	for (size_t i = 0; i < content->count; i++)
		block_unref(content->blocks[i]);
	free(content->blocks);
	*content = (struct disk_content){ 0 };
}

void content_copy(struct disk_content *to, const struct disk_content *from)
{
	to->size = from->size;
	to->count = from->count;
	to->blocks =
		from->count ? reallocarray(NULL, from->count, sizeof(struct disk_block *)) : NULL;
	CHECK(to->blocks || from->count == 0);
	for (size_t i = 0; i < from->count; i++) {
		to->blocks[i] = from->blocks[i];
		if (to->blocks[i])
			atomic_fetch_add(&to->blocks[i]->users, 1);
	}
}

int64_t content_read(const struct disk_content *content, void *data, size_t size, int64_t offset)
{
	if (offset >= content->size)
		return 0;
	if ((int64_t)size > content->size - offset)
		size = (size_t)(content->size - offset);
	for (size_t done = 0; done < size;) {
		size_t at = (size_t)offset + done, within = at % BLOCK_BYTES,
		       part = BLOCK_BYTES - within;
		part = part < size - done ? part : size - done;
		const struct disk_block *block = at / BLOCK_BYTES < content->count
							 ? content->blocks[at / BLOCK_BYTES]
							 : NULL;
		if (block)
			memcpy((uint8_t *)data + done, block->data + within, part);
		else
			memset((uint8_t *)data + done, 0, part);
		done += part;
	}
	return (int64_t)size;
}

/* The block for changing: made, or copied when another content has it too. */
static struct disk_block *block_edit(struct disk_content *content, size_t index)
{
	if (index >= content->count) {
		size_t count = index + 1;
		content->blocks = reallocarray(content->blocks, count, sizeof(struct disk_block *));
		CHECK(content->blocks);
		memset(content->blocks + content->count, 0,
		       (count - content->count) * sizeof(struct disk_block *));
		content->count = count;
	}
	struct disk_block *block = content->blocks[index];
	if (block && atomic_load(&block->users) == 1)
		return block;
	struct disk_block *own = malloc(sizeof(*own));
	CHECK(own);
	atomic_init(&own->users, 1);
	if (block)
		memcpy(own->data, block->data, BLOCK_BYTES);
	else
		memset(own->data, 0, BLOCK_BYTES);
	block_unref(block);
	content->blocks[index] = own;
	return own;
}

void content_write(struct disk_content *content, const void *data, size_t size, int64_t offset)
{
	for (size_t done = 0; done < size;) {
		size_t at = (size_t)offset + done, within = at % BLOCK_BYTES,
		       part = BLOCK_BYTES - within;
		part = part < size - done ? part : size - done;
		memcpy(block_edit(content, at / BLOCK_BYTES)->data + within,
		       (const uint8_t *)data + done, part);
		done += part;
	}
	if (offset + (int64_t)size > content->size)
		content->size = offset + (int64_t)size;
}

void content_resize(struct disk_content *content, int64_t size)
{
	if (size < content->size) {
		size_t keep = ((size_t)size + BLOCK_BYTES - 1) / BLOCK_BYTES;
		for (size_t i = keep; i < content->count; i++)
			block_unref(content->blocks[i]);
		if (keep < content->count)
			content->count = keep;
		size_t within = (size_t)size % BLOCK_BYTES;
		if (within && keep <= content->count && keep > 0 && content->blocks[keep - 1])
			memset(block_edit(content, keep - 1)->data + within, 0,
			       BLOCK_BYTES - within);
	}
	content->size = size;
}
