/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/screen.h"

#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/output/output.h"
#include "cli/output/prose.h"

static struct {
	bool is_open;
	struct buf body, notes;
} screen;

void screen_open(void)
{
	screen_drop();
	screen.is_open = true;
}

bool screen_take(const void *data, size_t size)
{
	if (screen.is_open)
		buf_add(&screen.body, data, size);
	return screen.is_open;
}

bool screen_note(const char *text, size_t size)
{
	if (screen.is_open)
		buf_add(&screen.notes, text, size);
	return screen.is_open;
}

void screen_drop(void)
{
	screen.is_open = false;
	buf_clear(&screen.body);
	buf_clear(&screen.notes);
}

static size_t lines_of(const struct buf *text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text->size; i++)
		lines += text->data[i] == '\n';
	return lines;
}

static void add_lines(struct buf *out, const struct buf *text, size_t count)
{
	size_t at = 0;

	for (; count && at < text->size; at++)
		count -= text->data[at] == '\n';
	buf_add(out, buf_text((struct buf *)(uintptr_t)text), at);
}

void screen_fit(const struct buf *body, const struct buf *notes, size_t rows, struct buf *out)
{
	const size_t has = lines_of(body), below = lines_of(notes);
	size_t room = rows > below + 2 ? rows - below : 2;

	if (!rows || has <= room) {
		buf_add(out, buf_text((struct buf *)(uintptr_t)body), body->size);
	} else {
		room--;
		add_lines(out, body, room);
		buf_addf(out, "and %zu more line%s; a taller window shows them\n", has - room,
			 has - room == 1 ? "" : "s");
	}
	buf_add(out, buf_text((struct buf *)(uintptr_t)notes), notes->size);
}

/* Each line ends what was there before; the last one has no line end, for that would scroll. Long lines are cut by the terminal. */
void screen_draw(bool first)
{
	AUTO_BUF text = BUF_INIT, out = BUF_INIT;

	screen_fit(&screen.body, &screen.notes, terminal_height(STDOUT_FILENO), &text);
	screen_drop();
	buf_adds(&out, first ? "\033[H\033[2J\033[3J\033[?7l" : "\033[H\033[?7l");
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] != '\n')
			buf_addc(&out, text.data[i]);
		else
			buf_adds(&out, i + 1 < text.size ? "\033[K\n" : "\033[K");
	}
	buf_adds(&out, "\033[J\033[?7h");
	output_buf(&out);
}
