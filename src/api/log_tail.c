/* SPDX-License-Identifier: Apache-2.0 */
#include "api/log_tail.h"

#include <string.h>

#include "engine/task_log.h"

enum { WINDOW_FIRST = 64 << 10, WINDOW_GROWS = 8, PIECE_BYTES = 64 << 10 };

struct count {
	uint64_t line_ends;
	bool is_open; /* text follows the last line end */
	uint64_t at; /* offset behind the line end number `stop`, once it was passed */
};

/* Counts line ends from an offset to the end, or up to number `stop`. */
static int count_from(const char *folder, const struct log_wish *wish, uint64_t offset,
		      uint64_t stop, struct count *ret, struct err *err)
{
	char data[PIECE_BYTES];
	struct task_log_piece piece;

	*ret = (struct count){ .at = offset };
	for (;;) {
		int rc = task_log_read(folder, wish->job, wish->attempt, wish->rank,
				       wish->errors ? TASK_STDERR : TASK_STDOUT, offset, data,
				       sizeof data, &piece, err);

		if (rc < 0 || !piece.size)
			return rc;
		for (size_t i = 0; i < piece.size; i++) {
			ret->is_open = data[i] != '\n';
			if (ret->is_open || ++ret->line_ends != stop)
				continue;
			ret->at = piece.offset + i + 1;
			return 0;
		}
		offset = piece.offset + piece.size;
	}
}

int log_tail_find(const char *folder, const struct log_wish *wish, uint64_t *ret, struct err *err)
{
	const uint64_t lines = (uint64_t)wish->lines;
	uint64_t window = WINDOW_FIRST, offset, has, last = UINT64_MAX;
	struct count count;

	for (;; window *= WINDOW_GROWS) {
		int rc = task_log_tail(folder, wish->job, wish->attempt, wish->rank,
				       wish->errors ? TASK_STDERR : TASK_STDOUT, window, &offset,
				       err);

		if (rc >= 0)
			rc = count_from(folder, wish, offset, UINT64_MAX, &count, err);
		if (rc < 0)
			return rc;
		has = count.line_ends + count.is_open;
		if (has > lines)
			break;
		/* The first line of the window may be a part of one. */
		if (!offset || offset == last) {
			*ret = offset;
			return 0;
		}
		last = offset;
	}
	if (count_from(folder, wish, offset, has - lines, &count, err) < 0)
		return -(int)err->code;
	*ret = count.at;
	return 0;
}
