/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ids are one-member structs, so that one cannot be passed for another. 0 = none; given once, never again. */
#include <stdbool.h>
#include <stdint.h>

struct job_id {
	uint32_t v;
};
struct attempt_id {
	uint32_t v;
}; /* = the fencing number */
struct node_id {
	uint32_t v;
};
struct queue_id {
	uint32_t v;
};
struct name_id {
	uint32_t v;
}; /* interned name */
struct text_id {
	uint32_t v;
}; /* a text of one owner, not interned */
struct shape_id {
	uint32_t v;
}; /* interned wish */
struct domain_id {
	uint32_t v;
}; /* place of the topology tree, see view */

static inline bool name_same(struct name_id a, struct name_id b)
{
	return a.v == b.v;
}
