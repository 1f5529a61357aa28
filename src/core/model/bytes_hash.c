/* SPDX-License-Identifier: Apache-2.0 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/model/edit.h"

uint64_t bytes_hash(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}
