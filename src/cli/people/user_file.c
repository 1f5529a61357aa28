/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/people/user_file.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"

enum { VALUE_MAX = 500 };

static const char *const names[USER_COLUMNS] = { "name", "team", "role",
						 "uid",  "gid",  "default_queue" };

struct reader {
	const char *file, *at, *end;
	uint32_t line, column; /* of what comes next, from 1 */
	struct arena *arena;
	struct err *err;
	int order[USER_COLUMNS]; /* column of the file: which value */
	uint32_t columns;
	struct user_row *rows;
	uint32_t count, room;
};

const char *user_column_name(enum user_column column)
{
	return names[column];
}

static int wrong(const struct reader *r, uint32_t line, uint32_t column, const char *text)
{
	return err_set(r->err, ERR_INVALID, "%s:%u:%u: %s", r->file, line, column, text);
}

static bool at_line_end(const struct reader *r)
{
	return r->at == r->end || *r->at == '\n' ||
	       (*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
}

static void line_skip_end(struct reader *r)
{
	while (r->at < r->end && *r->at != '\n')
		r->at++;
	if (r->at < r->end)
		r->at++;
	r->line++;
	r->column = 1;
}

/* One value up to a comma or the end of its line; "" is NULL. */
static int value_read(struct reader *r, const char **ret)
{
	const bool quoted = r->at < r->end && *r->at == '"';
	const uint32_t line = r->line, column = r->column;
	char out[VALUE_MAX];
	size_t size = 0;

	for (r->at += quoted, r->column += quoted;; r->at++, r->column++) {
		if (quoted && r->at < r->end && *r->at == '"') {
			if (r->at + 1 == r->end || r->at[1] != '"')
				break;
			r->at++;
			r->column++;
		} else if (!quoted && (at_line_end(r) || *r->at == ',')) {
			break;
		}
		if (r->at == r->end || *r->at == '\n')
			return wrong(r, line, column,
				     "the quotation mark is not closed in its line");
		if (!quoted && *r->at == '"')
			return wrong(
				r, line, r->column,
				"a quotation mark inside a value; put the whole value into quotation marks and write it twice");
		if (size == sizeof(out))
			return wrong(r, line, column, "the value is longer than 500 bytes");
		out[size++] = *r->at;
	}
	r->at += quoted;
	r->column += quoted;
	*ret = size ? arena_strndup(r->arena, out, size) : NULL;
	if (at_line_end(r) || *r->at == ',')
		return 0;
	return wrong(r, line, r->column,
		     "expected a comma or the end of the line behind the quotation mark");
}

/* To the next value of the line; false behind the last one. */
static bool value_next(struct reader *r)
{
	if (at_line_end(r))
		return false;
	r->at++;
	r->column++;
	return true;
}

static int column_find(struct reader *r, const char *name, uint32_t column)
{
	const char *hint;

	for (int i = 0; name && i < USER_COLUMNS; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	hint = name ? spelling_hint(name, names, USER_COLUMNS) : NULL;
	return wrong(r, r->line, column,
		     arena_printf(r->arena, "there is no column \"%.40s\"%s%s%s", name ? name : "",
				  hint ? "; did you mean \""
				       : ": name, team, role, uid, gid, default_queue",
				  hint ? hint : "", hint ? "\"?" : ""));
}

static int head_read(struct reader *r)
{
	bool given[USER_COLUMNS] = { false };

	do {
		const uint32_t column = r->column;
		const char *name;
		int which = value_read(r, &name);

		if (which >= 0)
			which = column_find(r, name, column);
		if (which < 0)
			return which;
		if (given[which])
			return wrong(r, r->line, column,
				     arena_printf(r->arena, "column \"%s\" is there twice",
						  names[which]));
		given[which] = true;
		r->order[r->columns++] = which;
	} while (value_next(r));
	if (!given[USER_NAME])
		return wrong(
			r, r->line, 1,
			"the first line must name the columns, one of them `name`: name,team,role");
	return 0;
}

static int row_add(struct reader *r, const struct user_row *row)
{
	struct user_row *old = r->rows;

	for (uint32_t i = 0; i < r->count; i++)
		if (strcmp(old[i].value[USER_NAME], row->value[USER_NAME]) == 0)
			return wrong(r, row->line, 1,
				     arena_printf(r->arena, "user \"%s\" stands in line %u already",
						  row->value[USER_NAME], old[i].line));
	if (r->count == USER_FILE_ROWS)
		return wrong(r, row->line, 1,
			     arena_printf(r->arena, "more than %d users; split the file",
					  USER_FILE_ROWS));
	if (r->count == r->room) {
		r->room = r->room ? r->room * 2 : 64;
		r->rows = arena_new_array(r->arena, struct user_row, r->room);
		if (old)
			memcpy(r->rows, old, r->count * sizeof(*old));
	}
	r->rows[r->count++] = *row;
	return 0;
}

static int row_read(struct reader *r)
{
	struct user_row row = { .line = r->line };
	struct err why;
	uint32_t i = 0;

	do {
		int rc;

		if (i == r->columns)
			return wrong(r, r->line, r->column,
				     arena_printf(r->arena, "more values than the %u columns",
						  r->columns));
		rc = value_read(r, &row.value[r->order[i++]]);
		if (rc < 0)
			return rc;
	} while (value_next(r));
	if (!row.value[USER_NAME])
		return wrong(r, row.line, 1, "the user has no name");
	if (parse_name(row.value[USER_NAME], "user", &why) < 0)
		return wrong(r, row.line, 1, why.text);
	return row_add(r, &row);
}

int user_file_read(const char *file, const char *text, size_t size, struct arena *arena,
		   struct user_row **ret, uint32_t *ret_count, struct err *err)
{
	static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, as some spreadsheets write it */
	struct reader r = { .file = file,
			    .at = text,
			    .end = text + size,
			    .line = 1,
			    .column = 1,
			    .arena = arena,
			    .err = err };

	if (size > USER_FILE_BYTES)
		return err_set(err, ERR_TOO_LARGE, "%s: larger than %d MiB", file,
			       USER_FILE_BYTES >> 20);
	if (!text_is_utf8(text, size) || memchr(text, '\0', size))
		return err_set(err, ERR_INVALID, "%s: it is no text in UTF-8", file);
	if (size >= 3 && memcmp(text, mark, 3) == 0)
		r.at += 3;
	for (; r.at < r.end; line_skip_end(&r)) {
		int rc = 0;

		if (!at_line_end(&r))
			rc = r.columns ? row_read(&r) : head_read(&r);
		if (rc < 0)
			return rc;
	}
	if (!r.count)
		return err_set(
			err, ERR_INVALID,
			"%s: there is no user in it; the first line names the columns, such as name,team,role",
			file);
	*ret = r.rows;
	*ret_count = r.count;
	return 0;
}
