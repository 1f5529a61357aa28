/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What `--watch` shows on a terminal: one screen, drawn over the one before. While a screen is open, output_write and notice
 * add to it. Its first lines stay, among them the titles of a table; lines that do not fit are counted in the last one.
 */
#include <stdbool.h>
#include <stddef.h>

void screen_open(void); /* an empty screen; nothing of it is seen yet */
/* True: the screen has taken it. False: no screen is open. */
bool screen_take(const void *data, size_t size);
bool screen_note(const char *text, size_t size); /* below the rest; always shown */
/* Draws the screen and closes it. first: the terminal is cleared before. */
void screen_draw(bool first);
void screen_drop(void); /* closes it without drawing */
/*
 * The text of a screen of `rows` lines, without what moves the cursor: `body` cut to what fits above `notes`, both of whole
 * lines. rows 0 = not limited.
 */
struct buf;
void screen_fit(const struct buf *body, const struct buf *notes, size_t rows, struct buf *out);
