/* SPDX-License-Identifier: Apache-2.0 */
#include "store/losses.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/guard.h"
#include "store/io.h"

enum { ACCEPTED_FILE_MAX = 1 << 20 };
static const char first_line[] = "fairlead-accepted 1\n";

void losses_deinit(struct losses *losses)
{
	free(losses->items);
	*losses = (struct losses){ 0 };
}

static struct loss *find_file(const struct losses *losses, const char *what)
{
	for (size_t i = 0; i < losses->count; i++)
		if (!losses->items[i].first && strcmp(losses->items[i].what, what) == 0)
			return &losses->items[i];
	return NULL;
}

void losses_add(struct losses *losses, uint64_t first, uint64_t last, const char *what)
{
	char text[LOSS_TEXT_MAX];
	struct loss *before = losses->count ? &losses->items[losses->count - 1] : NULL;
	snprintf(text, sizeof(text), "%s", what);
	for (char *c = text; (c = strchr(c, '\n')); c++)
		*c = ' ';
	if (!first && find_file(losses, text))
		return;
	const bool follows = first && before && before->first && first >= before->first &&
			     first <= before->last + 1;
	if (follows && (strcmp(before->what, text) == 0 || losses->count >= LOSSES_MAX)) {
		before->last = last > before->last ? last : before->last;
		return;
	}
	if (losses->count >= LOSSES_MAX && before && before->first && first) {
		before->first = first < before->first ? first : before->first;
		before->last = last > before->last ? last : before->last;
		return;
	}
	losses->items = reallocarray(losses->items, losses->count + 1, sizeof(*losses->items));
	CHECK(losses->items);
	struct loss *loss = &losses->items[losses->count++];
	*loss = (struct loss){ .first = first, .last = last };
	memcpy(loss->what, text, sizeof(text));
}

void losses_add_snapshot(struct losses *losses, const char *name, const char *why)
{
	char what[LOSS_TEXT_MAX];

	snprintf(what, sizeof(what), "snapshot %s is not used: %.250s", name, why);
	losses_add(losses, 0, 0, what);
}

/* The end of the longest accepted range that holds `seq`; 0: none does. */
static uint64_t accepted_end(const struct losses *accepted, uint64_t seq)
{
	uint64_t end = 0;
	for (size_t i = 0; accepted && i < accepted->count; i++) {
		const struct loss *range = &accepted->items[i];
		if (range->first && range->first <= seq && range->last >= seq && range->last > end)
			end = range->last;
	}
	return end;
}

/* The first sequence after `seq` at which an accepted range begins. */
static uint64_t accepted_next(const struct losses *accepted, uint64_t seq)
{
	uint64_t next = UINT64_MAX;
	for (size_t i = 0; accepted && i < accepted->count; i++) {
		const struct loss *range = &accepted->items[i];
		if (range->first > seq && range->first < next)
			next = range->first;
	}
	return next;
}

static int compare_first(const void *a, const void *b)
{
	const struct loss *left = a, *right = b;
	return left->first < right->first ? -1 : left->first > right->first;
}

/* Records of one range from `from` on that are not accepted. */
static uint64_t count_range(uint64_t from, uint64_t last, const struct losses *accepted)
{
	uint64_t count = 0;
	while (from <= last) {
		uint64_t end = accepted_end(accepted, from);
		if (end) {
			if (end >= last)
				break;
			from = end + 1;
			continue;
		}
		uint64_t next = accepted_next(accepted, from);
		uint64_t to = next <= last ? next - 1 : last;
		count += to - from + 1;
		from = to + 1;
	}
	return count;
}

uint64_t losses_records(const struct losses *losses, const struct losses *accepted)
{
	uint64_t count = 0, counted = 0;
	if (!losses->count)
		return 0;
	struct loss *sorted = calloc(losses->count, sizeof(*sorted));
	CHECK(sorted);
	memcpy(sorted, losses->items, losses->count * sizeof(*sorted));
	qsort(sorted, losses->count, sizeof(*sorted), compare_first);
	for (size_t i = 0; i < losses->count; i++) {
		const struct loss *range = &sorted[i];
		if (!range->first || range->last <= counted)
			continue;
		count += count_range(range->first > counted ? range->first : counted + 1,
				     range->last, accepted);
		counted = range->last;
	}
	free(sorted);
	return count;
}

bool losses_accepted(const struct loss *loss, const struct losses *accepted)
{
	if (!loss->first)
		return accepted && find_file(accepted, loss->what);
	return count_range(loss->first, loss->last, accepted) == 0;
}

void loss_text(const struct loss *loss, struct buf *out)
{
	if (loss->first && loss->first == loss->last)
		buf_addf(out, "record %" PRIu64 ": ", loss->first);
	else if (loss->first)
		buf_addf(out, "records %" PRIu64 " to %" PRIu64 ": ", loss->first, loss->last);
	buf_adds(out, loss->what);
}

/* ---- journal/accepted ---- */

static int accepted_path(const char *folder, char out[PATH_MAX], struct err *err)
{
	if (snprintf(out, PATH_MAX, "%s/journal/accepted", folder) >= PATH_MAX)
		return err_set(err, ERR_INVALID, "the name of the data folder is too long");
	return 0;
}

static bool parse(const char *text, struct losses *ret)
{
	while (*text) {
		uint64_t first, last;
		int length = 0;
		const char *end = strchr(text, '\n');
		if (strncmp(text, "file ", 5) == 0 && end && end - text < LOSS_TEXT_MAX + 5) {
			char what[LOSS_TEXT_MAX] = "";
			memcpy(what, text + 5, (size_t)(end - text) - 5);
			losses_add(ret, 0, 0, what);
			text = end + 1;
			continue;
		}
		if (sscanf(text, "records %" SCNu64 " %" SCNu64 "\n%n", &first, &last, &length) !=
			    2 ||
		    !length || !first || last < first)
			return false;
		losses_add(ret, first, last, "accepted");
		text += length;
	}
	return true;
}

int accepted_load(struct io *io, const char *folder, struct losses *ret, struct err *err)
{
	char path[PATH_MAX], *text;
	size_t size;
	int result = accepted_path(folder, path, err);
	if (result < 0)
		return result;
	int error = io_read_file(io, path, ACCEPTED_FILE_MAX, &text, &size);
	if (error == -ENOENT)
		return 0;
	if (error < 0)
		return err_errno(err, ERR_IO, -error, "cannot read %s", path);
	if (!check_line_take(text, size) ||
	    strncmp(text, first_line, sizeof(first_line) - 1) != 0 ||
	    !parse(text + sizeof(first_line) - 1, ret)) {
		losses_deinit(ret);
		result = ACCEPTED_BAD;
		err_set(err, ERR_CORRUPT, "%s is damaged: its check does not hold", path);
	}
	free(text);
	return result;
}

int accepted_save(struct io *io, const char *folder, struct losses *accepted,
		  const struct losses *losses, struct err *err)
{
	char path[PATH_MAX];
	AUTO_BUF text = BUF_INIT;
	int result = accepted_path(folder, path, err);
	if (result < 0)
		return result;
	for (size_t i = 0; i < losses->count; i++)
		if (!losses_accepted(&losses->items[i], accepted))
			losses_add(accepted, losses->items[i].first, losses->items[i].last,
				   losses->items[i].first ? "accepted" : losses->items[i].what);
	buf_adds(&text, first_line);
	for (size_t i = 0; i < accepted->count; i++)
		if (!accepted->items[i].first)
			buf_addf(&text, "file %s\n", accepted->items[i].what);
		else
			buf_addf(&text, "records %" PRIu64 " %" PRIu64 "\n",
				 accepted->items[i].first, accepted->items[i].last);
	check_line_add(&text);
	int error = io_replace_file(io, path, text.data, text.size, 0600);
	return error < 0 ? err_errno(err, ERR_IO, -error, "cannot write %s", path) : 0;
}
