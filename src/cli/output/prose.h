/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Sentences on a terminal: broken between words, so that none is cut at the edge of the window. What
 * goes to a pipe or a file stays as it is: one line is one line.
 */
#include <stddef.h>
#include "base/buf.h"

/* Columns of the terminal behind a descriptor, 40 at least; 0 = it is none, or doesn't say. */
size_t terminal_width(int fd);
/* Its lines; 0 = it is none. */
size_t terminal_height(int fd);
/*
 * Breaks lines that are wider. What goes on stands behind `hang` blanks, or below the text of an item
 * ("  - text"). Words that are wider than a line stay whole; colours have no width. width 0: nothing
 * is done.
 */
void prose_wrap(struct buf *text, size_t width, size_t hang);
