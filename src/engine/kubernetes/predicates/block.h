/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How the readers fill a block: it has its greatest size from the beginning, so pointers into it stay, and is cut to what was used. */
#include "base/json.h"
#include "engine/kubernetes/predicates/placed.h"

enum { LINK_MAX = 64 };

struct block {
	char *data;
	size_t size, room;
	uint64_t spill[LINK_MAX / 8]; /* where links go when there is no more room */
	bool full;
};
struct chain {
	at_t first, last;
};

/* Room for an object that is so long as JSON; its struct is at the beginning. */
void *block_init(struct block *block, size_t json_size, size_t struct_size);
void block_deinit(struct block *block);
/* Cuts it and takes it out; what the reader or the block complains of is an error. */
int block_take(struct block *block, struct json_reader *r, void **ret, struct err *err) MUST_CHECK;
at_t block_text(struct block *block, const char *text, size_t size);
/* A new link behind the last of the list, zeroed. */
void *chain_add(struct block *block, struct chain *chain, size_t size);

/* null, and what is of another type, reads as none. */
at_t read_text(struct json_reader *r, struct block *block);
bool read_flag(struct json_reader *r);
int64_t read_int64(struct json_reader *r, int64_t otherwise); /* such a one reads as `otherwise` */
int32_t read_int32(struct json_reader *r, int32_t otherwise);
at_t read_words(struct json_reader *r, struct block *block);
at_t read_labels_of(struct json_reader *r, struct block *block);
void read_selector(struct json_reader *r, struct block *block, struct placed_selector *ret);
/* A node selector: its nodeSelectorTerms. */
bool read_node_selector(struct json_reader *r, struct block *block, at_t *ret_terms);
/* A map of resources, in the order of the text. */
at_t read_amounts(struct json_reader *r, struct block *block);
bool text_is(const struct block *block, at_t text, const char *other);
