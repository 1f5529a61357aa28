/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* --- text --------------------------------------------------------------------------------------------------- */

/* Pipes have no size before they end: read until then. NULL: no. */
static char *stream_read(FILE *file, size_t *ret_size)
{
	size_t size = 0, room = 1 << 16, got;
	char *text = NULL, *grown;

	errno = 0;
	do {
		room *= 2;
		grown = realloc(text, room);
		CHECK(grown);
		text = grown;
		got = fread(text + size, 1, room - size - 1, file);
		size += got;
	} while (size + 1 == room && size <= ROWS_BYTES_MAX);
	text[size] = '\0';
	*ret_size = size;
	if (!ferror(file))
		return text;
	free(text);
	return NULL;
}

int rows_text(const char *path, char **ret, struct err *err)
{
	const bool piped = strcmp(path, "-") == 0;
	FILE *file = piped ? stdin : fopen(path, "re");
	size_t size = 0;
	char *text;
	int rc = 0;

	if (!file)
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno,
				 "can't open %s", path);
	text = stream_read(file, &size);
	if (!text)
		rc = err_errno(err, ERR_IO, errno, "can't read %s", path);
	if (!piped)
		fclose(file);
	if (text && size > ROWS_BYTES_MAX)
		rc = err_set(err, ERR_TOO_LARGE, "%s is larger than the limit of 2 GiB", path);
	else if (text && memchr(text, '\0', size))
		rc = err_set(err, ERR_INVALID, "%s is no text: it holds a NUL%s", path,
			     text[0] == '\x1f' ? "; unpack it first: zcat FILE | ... -" : "");
	if (rc < 0)
		free(text);
	else
		*ret = text;
	return rc;
}

void rows_init(struct rows *r, const char *path, char *text, struct err *err)
{
	*r = (struct rows){ .path = path, .at = text, .err = err };
}

char *rows_line(struct rows *r)
{
	char *line = r->at, *end;

	if (!line || !*line)
		return NULL;
	end = strchr(line, '\n');
	r->at = end ? end + 1 : NULL;
	if (!end)
		end = line + strlen(line);
	*end = '\0';
	if (end > line && end[-1] == '\r')
		end[-1] = '\0';
	r->line++;
	return line;
}

int rows_complain(const struct rows *r, const char *format, ...)
{
	char text[ERR_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return err_at(r->err, ERR_INVALID, r->path, (int)r->line, 1, "%s", text);
}

/* --- rows --------------------------------------------------------------------------------------------------- */

int rows_head(struct rows *r, const char *const *needed, uint32_t needed_count)
{
	char *line = rows_line(r), *word;

	r->count = 0;
	while (line && (word = strsep(&line, ","))) {
		if (r->count == ROWS_COLUMNS_MAX)
			return rows_complain(r, "there are more than %d columns", ROWS_COLUMNS_MAX);
		r->columns[r->count++] = word;
	}
	for (uint32_t n = 0; n < needed_count; n++) {
		uint32_t i = 0;

		while (i < r->count && strcmp(r->columns[i], needed[n]) != 0)
			i++;
		if (i == r->count)
			return rows_complain(r, "column \"%s\" is missing", needed[n]);
	}
	return 0;
}

int rows_next(struct rows *r)
{
	char *line = rows_line(r), *word;
	uint32_t at = 0;

	while (line && !*line)
		line = rows_line(r);
	if (!line)
		return 0;
	if (strchr(line, '"'))
		return rows_complain(r, "a field with quotes can't be read");
	while ((word = strsep(&line, ","))) {
		if (at == r->count)
			return rows_complain(r, "there are more fields than the %u columns",
					     r->count);
		r->fields[at++] = word;
	}
	return at == r->count
		       ? 1
		       : rows_complain(r, "there are %u fields for %u columns", at, r->count);
}

const char *rows_field(const struct rows *r, const char *column)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (strcmp(r->columns[i], column) == 0)
			return r->fields[i];
	return NULL;
}

bool rows_thousandths(const char *text, int64_t max, int64_t *ret)
{
	int64_t value = 0, unit = 1000;
	bool digits = false;

	for (; *text >= '0' && *text <= '9'; text++, digits = true) {
		value = value * 10 + (*text - '0') * INT64_C(1000);
		if (value > max)
			return false;
	}
	if (*text == '.')
		for (text++; *text >= '0' && *text <= '9'; text++, digits = true)
			value += (*text - '0') * (unit /= 10);
	*ret = value;
	return digits && !*text && value <= max;
}
