/* SPDX-License-Identifier: Apache-2.0 */
#include "store/guard.h"

#include <string.h>
#include <xxhash.h>

void put_be64(uint8_t *out, uint64_t value)
{
	for (int i = 7; i >= 0; i--) {
		out[i] = (uint8_t)value;
		value >>= 8;
	}
}

uint64_t get_be64(const uint8_t *in)
{
	uint64_t value = 0;
	for (int i = 0; i < 8; i++)
		value = value << 8 | in[i];
	return value;
}

static void put_head(uint8_t *out, const struct record *record)
{
	put_be64(out, record->seq);
	put_be64(out + 8, (uint64_t)record->time_ms);
	put_be64(out + 16, record->kind);
	put_be64(out + 24, record->must_understand);
}

struct digest record_hash(const struct digest *prev, const struct record *record)
{
	uint8_t head[DIGEST_BYTES + 32];
	memcpy(head, prev->bytes, DIGEST_BYTES);
	put_head(head + DIGEST_BYTES, record);
	return digest_of_two(head, sizeof(head), record->text, record->size);
}

int64_t record_guard(const struct record *record, const struct digest *hash)
{
	uint8_t all[32 + 16 + DIGEST_BYTES];
	put_head(all, record);
	put_be64(all + 32, record->size);
	put_be64(all + 40, XXH3_64bits(record->size ? record->text : "", record->size));
	memcpy(all + 48, hash->bytes, DIGEST_BYTES);
	return (int64_t)XXH3_64bits(all, sizeof(all));
}

static const char check_word[] = "check ";
enum { CHECK_WORD = sizeof(check_word) - 1, CHECK_LINE = CHECK_WORD + DIGEST_HEX_MAX };

void check_line_add(struct buf *text)
{
	const struct digest check = digest_of(text->data, text->size);
	char hex[DIGEST_HEX_MAX];

	buf_addf(text, "%s%s\n", check_word, digest_format(&check, hex));
}

bool check_line_take(char *text, size_t size)
{
	if (size < CHECK_LINE || strlen(text) != size)
		return false;
	char *line = text + size - CHECK_LINE;
	struct digest said, is = digest_of(text, size - CHECK_LINE);
	if (strncmp(line, check_word, CHECK_WORD) != 0 || line[CHECK_LINE - 1] != '\n')
		return false;
	line[CHECK_LINE - 1] = '\0';
	const bool holds = digest_parse(line + CHECK_WORD, &said) && digest_equal(&said, &is);
	*line = '\0';
	return holds;
}
