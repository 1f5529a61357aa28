/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/problem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "cli/output/prose.h"
#include "cli/output/screen.h"

enum { SHOWN_MAX = 160, HANG = 2 };

static const char *source_file, *source_text;
static size_t source_size;

void problem_source(const char *file, const char *text, size_t size)
{
	source_file = file;
	source_text = text;
	source_size = size;
}

static const char *find_line(int line, size_t *ret_size)
{
	const char *at = source_text, *end = source_text + source_size, *next;

	for (; line > 1; line--) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (!next)
			return NULL;
		at = next + 1;
	}
	next = memchr(at, '\n', (size_t)(end - at));
	*ret_size = (size_t)((next ? next : end) - at);
	return at;
}

/* Lines with a secret in them are not repeated: they end up in logs of scripts. */
static bool may_hold_secret(const char *text, size_t size)
{
	return memmem(text, size, "value", 5) || memmem(text, size, "secret", 6);
}

static void show_line(const struct err *err, struct buf *out)
{
	size_t size, from, column;
	char copy[SHOWN_MAX];
	const char *line;

	if (!source_file || strcmp(source_file, err->file) != 0 || err->line < 1)
		return;
	line = find_line(err->line, &size);
	if (!line || size > SHOWN_MAX || may_hold_secret(line, size) || !text_is_utf8(line, size))
		return;
	memcpy(copy, line, size);
	for (size_t i = 0; i < size; i++)
		if (copy[i] == '\t') /* one column here as in the count */
			copy[i] = ' ';
	buf_addf(out, "%5d | ", err->line);
	from = out->size;
	text_for_terminal(out, copy, size);
	buf_addc(out, '\n');
	if (out->size - from != size + 1) /* something was escaped: the caret would lie */
		return;
	buf_adds(out, "      | ");
	for (column = 1; column < (size_t)err->column; column++)
		buf_addc(out, ' ');
	buf_adds(out, "^\n");
}

void problem_show(const struct err *err)
{
	AUTO_BUF out = BUF_INIT;

	buf_adds(&out, "fairlead: ");
	if (err->file[0] && err->line > 0) {
		text_for_terminal(&out, err->file, strlen(err->file));
		buf_addf(&out, ":%d:%d: ", err->line, err->column);
	} else if (err->file[0]) {
		text_for_terminal(&out, err->file, strlen(err->file));
		buf_adds(&out, ": ");
	}
	text_for_terminal(&out, err->text, strlen(err->text));
	buf_addc(&out, '\n');
	prose_wrap(&out, terminal_width(STDERR_FILENO), HANG);
	show_line(err, &out);
	fputs(buf_text(&out), stderr);
}

void notice(const char *format, ...)
{
	AUTO_BUF out = BUF_INIT;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buf_adds(&out, "fairlead: ");
	text_for_terminal(&out, text, strlen(text));
	buf_addc(&out, '\n');
	prose_wrap(&out, terminal_width(STDERR_FILENO), HANG);
	if (!screen_note(buf_text(&out), out.size))
		fputs(buf_text(&out), stderr);
}
