/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash of all facts: XXH3 over their records (records.h), each as its kind, id, sub and its fields that are not
 * empty, with the field's number. Integers go in as 8 bytes, little end first; names as their text. So it depends
 * on nothing but the content: not on rows, paddings, compilers, or fields that a later release adds.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "core/model/edit.h"
#include "core/model/records.h"

uint64_t bytes_hash(const void *data, size_t size)
{
	return XXH3_64bits(data, size);
}

struct hasher {
	const struct facts *f;
	XXH3_state_t state;
	uint32_t used;
	unsigned char bytes[2048]; /* so that XXH3 is called with long runs */
};

static void hash_bytes(struct hasher *h, const void *data, size_t size)
{
	if (h->used + size > sizeof(h->bytes)) {
		XXH3_64bits_update(&h->state, h->bytes, h->used);
		h->used = 0;
	}
	memcpy(h->bytes + h->used, data, size);
	h->used += (uint32_t)size;
}

static void hash_int(struct hasher *h, int64_t value)
{
	uint64_t little = (uint64_t)value;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	little = __builtin_bswap64(little);
#endif
	hash_bytes(h, &little, sizeof(little));
}

static void hash_text(struct hasher *h, const char *text)
{
	size_t size = strlen(text);

	hash_int(h, (int64_t)size);
	hash_bytes(h, text, size);
}

static void hash_field(struct hasher *h, const struct field *field, const void *row)
{
	const char *at = (const char *)row + field->offset;

	if (field->type == FIELD_BYTES) {
		hash_bytes(h, at, field->count);
		return;
	}
	if (field->type == FIELD_TEXT) {
		hash_text(h, at);
		return;
	}
	for (uint32_t i = 0; i < field->count; i++) {
		int64_t value = field_int(field, row, i);

		if (field->type == FIELD_REASON)
			hash_text(h, facts_text(h->f, (struct text_id){ (uint32_t)value }));
		else if (field->type == FIELD_NAME)
			hash_text(h, facts_name(h->f, (struct name_id){ (uint32_t)value }));
		else
			hash_int(h, value);
	}
}

static int hash_row(void *context, const struct record_row *row)
{
	struct hasher *h = context;

	if (row->kind == RECORD_NAME)
		return 0;
	hash_int(h, row->kind);
	hash_int(h, row->id);
	hash_int(h, row->sub);
	for (uint32_t i = 0; row->fields[i].name; i++) {
		if (field_is_empty(&row->fields[i], row->row))
			continue;
		hash_int(h, i + 1);
		hash_field(h, &row->fields[i], row->row);
	}
	return 0;
}

uint64_t facts_hash(const struct facts *f)
{
	struct hasher h;

	h.f = f;
	h.used = 0;
	XXH3_64bits_reset(&h.state);
	facts_walk(f, &h, hash_row);
	XXH3_64bits_update(&h.state, h.bytes, h.used);
	return XXH3_64bits_digest(&h.state);
}
