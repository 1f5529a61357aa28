/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Lists that people read stand in the order of their names. */
#include <stddef.h>
#include <stdint.h>

struct named {
	const char *name;
	uint32_t id;
};

void named_sort(struct named *list, size_t count);
