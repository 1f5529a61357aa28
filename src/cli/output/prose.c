/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/prose.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_LEAST = 40 };

size_t terminal_width(int fd)
{
	struct winsize size;

	if (isatty(fd) != 1 || ioctl(fd, TIOCGWINSZ, &size) != 0 || !size.ws_col)
		return 0;
	return size.ws_col < WIDTH_LEAST ? WIDTH_LEAST : size.ws_col;
}

size_t terminal_height(int fd)
{
	struct winsize size;

	return isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

/* Columns that a piece of text takes: a colour takes none, a character one. */
static size_t columns_of(const char *text, size_t size)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\033') {
			while (i < size && text[i] != 'm')
				i++;
			continue;
		}
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	}
	return columns;
}

static void add_blanks(struct buf *out, size_t count)
{
	while (count--)
		buf_addc(out, ' ');
}

static void wrap_line(struct buf *out, const char *line, size_t size, size_t width, size_t hang)
{
	size_t lead = 0, column = 0;

	while (lead < size && line[lead] == ' ')
		lead++;
	if (size - lead > 2 && line[lead] == '-' && line[lead + 1] == ' ')
		hang = lead + 2;
	else if (hang < lead)
		hang = lead;
	for (size_t at = 0; at < size;) {
		size_t blanks = 0, word = 0, columns;

		while (at + blanks < size && line[at + blanks] == ' ')
			blanks++;
		while (at + blanks + word < size && line[at + blanks + word] != ' ')
			word++;
		columns = columns_of(line + at + blanks, word);
		if (column > hang && word && column + blanks + columns > width) {
			buf_addc(out, '\n');
			add_blanks(out, hang);
			column = hang;
		} else {
			add_blanks(out, blanks);
			column += blanks;
		}
		buf_add(out, line + at + blanks, word);
		column += columns;
		at += blanks + word;
	}
}

void prose_wrap(struct buf *text, size_t width, size_t hang)
{
	AUTO_BUF out = BUF_INIT;

	if (!width || !text->size)
		return;
	for (size_t at = 0; at < text->size;) {
		const char *end = memchr(text->data + at, '\n', text->size - at);
		size_t size = end ? (size_t)(end - text->data) - at : text->size - at;

		wrap_line(&out, text->data + at, size, width, hang);
		if (end)
			buf_addc(&out, '\n');
		at += size + 1;
	}
	buf_clear(text);
	buf_add(text, out.data, out.size);
}
