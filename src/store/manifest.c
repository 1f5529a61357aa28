/* SPDX-License-Identifier: Apache-2.0 */
#include "store/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/guard.h"
#include "store/io.h"

static const char *const state_names[] = { "sealed", "damaged", "open" };

void manifest_init(struct manifest *manifest)
{
	*manifest = (struct manifest){ 0 };
}

void manifest_deinit(struct manifest *manifest)
{
	free(manifest->segments);
	*manifest = (struct manifest){ 0 };
}

struct manifest_segment *manifest_add(struct manifest *manifest, uint32_t number, uint64_t first)
{
	manifest->segments = reallocarray(manifest->segments, (size_t)manifest->count + 1,
					  sizeof(*manifest->segments));
	CHECK(manifest->segments);
	struct manifest_segment *segment = &manifest->segments[manifest->count++];
	*segment = (struct manifest_segment){ .number = number,
					      .first = first,
					      .state = SEGMENT_OPEN };
	return segment;
}

struct manifest_segment *manifest_last(struct manifest *manifest)
{
	return manifest->count ? &manifest->segments[manifest->count - 1] : NULL;
}

static void format_id(const uint8_t *id, char out[2 * JOURNAL_ID_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";
	for (size_t i = 0; i < JOURNAL_ID_BYTES; i++) {
		out[2 * i] = digits[id[i] >> 4];
		out[2 * i + 1] = digits[id[i] & 15];
	}
	out[2 * (size_t)JOURNAL_ID_BYTES] = '\0';
}

static bool parse_id(const char *text, uint8_t *ret)
{
	for (size_t i = 0; i < JOURNAL_ID_BYTES; i++) {
		unsigned byte = 0;
		for (size_t k = 0; k < 2; k++) {
			char c = text[2 * i + k];
			if (c >= '0' && c <= '9')
				byte = byte * 16 + (unsigned)(c - '0');
			else if (c >= 'a' && c <= 'f')
				byte = byte * 16 + (unsigned)(c - 'a' + 10);
			else
				return false;
		}
		ret[i] = (uint8_t)byte;
	}
	return true;
}

int manifest_save(struct io *io, const char *path, const struct manifest *manifest)
{
	AUTO_BUF text = BUF_INIT;
	char id[2 * JOURNAL_ID_BYTES + 1], hex[DIGEST_HEX_MAX];
	format_id(manifest->id, id);
	buf_addf(&text, "fairlead-journal %d\nid %s\n", JOURNAL_FORMAT, id);
	for (uint32_t i = 0; i < manifest->count; i++) {
		const struct manifest_segment *s = &manifest->segments[i];
		buf_addf(&text, "segment %" PRIu32 " %" PRIu64 " %" PRIu64 " %s %s\n", s->number,
			 s->first, s->last, digest_format(&s->hash, hex), state_names[s->state]);
	}
	check_line_add(&text);
	return io_replace_file(io, path, text.data, text.size, 0600);
}

/* The next word of a line, ended by one space or the line's end; NULL when there is none. */
static char *next_word(char **at)
{
	char *word = *at;
	if (!word || *word == '\0')
		return NULL;
	char *space = strchr(word, ' ');
	if (space)
		*space++ = '\0';
	*at = space;
	return word;
}

static bool next_number(char **at, uint64_t *ret)
{
	char *word = next_word(at), *end;
	if (!word || *word < '0' || *word > '9')
		return false;
	errno = 0;
	*ret = strtoull(word, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool parse_segment(char *line, struct manifest *manifest)
{
	uint64_t number, first, last;
	if (!next_number(&line, &number) || !next_number(&line, &first) ||
	    !next_number(&line, &last))
		return false;
	char *hex = next_word(&line), *name = next_word(&line);
	struct digest hash;
	if (!hex || !name || line || !digest_parse(hex, &hash) ||
	    number != (uint64_t)manifest->count + 1)
		return false;
	if (manifest->count && manifest_last(manifest)->state == SEGMENT_OPEN)
		return false;
	for (unsigned state = 0; state < ARRAY_SIZE(state_names); state++) {
		if (strcmp(name, state_names[state]) != 0)
			continue;
		struct manifest_segment *s = manifest_add(manifest, (uint32_t)number, first);
		s->last = last;
		s->hash = hash;
		s->state = (enum segment_state)state;
		return true;
	}
	return false;
}

/* The checked part of the text, line by line. */
static bool parse_lines(char *text, struct manifest *ret)
{
	unsigned number = 0;
	while (*text) {
		char *end = strchr(text, '\n'), *line = text;
		if (!end)
			return false;
		*end = '\0';
		text = end + 1;
		number++;
		if (number == 1)
			continue; /* the format, looked at before */
		if (number == 2) {
			if (strncmp(line, "id ", 3) != 0 ||
			    strlen(line) != 3 + 2 * JOURNAL_ID_BYTES ||
			    !parse_id(line + 3, ret->id))
				return false;
		} else if (strncmp(line, "segment ", 8) != 0 || !parse_segment(line + 8, ret)) {
			return false;
		}
	}
	return ret->count > 0 && manifest_last(ret)->state == SEGMENT_OPEN;
}

int manifest_load(struct io *io, const char *path, struct manifest *ret, struct err *err)
{
	char *text;
	size_t size;
	int result = io_read_file(io, path, MANIFEST_BYTES_MAX, &text, &size);
	if (result == -ENOENT)
		return MANIFEST_NONE;
	if (result < 0)
		return err_errno(err, ERR_IO, -result, "cannot read %s", path);
	char *end;
	if (strncmp(text, "fairlead-journal ", 17) == 0) {
		unsigned long long format = strtoull(text + 17, &end, 10);
		if (*end == '\n' && format > JOURNAL_FORMAT && format < 1000) {
			free(text);
			return err_set(
				err, ERR_UNSUPPORTED,
				"%s is of journal format %llu, and this fairlead reads format %d: start the fairlead version "
				"that wrote this data folder, or choose another folder with --data",
				path, format, JOURNAL_FORMAT);
		}
	}
	if (!check_line_take(text, size) || !parse_lines(text, ret)) {
		free(text);
		err_set(err, ERR_CORRUPT, "%s is damaged: its check does not hold", path);
		return MANIFEST_BAD;
	}
	free(text);
	return 0;
}
