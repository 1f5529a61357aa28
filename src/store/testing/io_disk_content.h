/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bytes of a file of the test disk, in blocks of 4 KiB that copies share until one of them changes. A block
 * that was never written reads as zeroes and takes no memory. One thread at a time.
 */
#include <stddef.h>
#include <stdint.h>

struct disk_block;

struct disk_content {
	int64_t size;
	struct disk_block **blocks; /* NULL entries are zeroes */
	size_t count;
};

void content_deinit(struct disk_content *content);
/* `to` must be empty. */
void content_copy(struct disk_content *to, const struct disk_content *from);
int64_t content_read(const struct disk_content *content, void *data, size_t size, int64_t offset);
void content_write(struct disk_content *content, const void *data, size_t size, int64_t offset);
void content_resize(struct disk_content *content, int64_t size);
