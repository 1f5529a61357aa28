/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/output.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/moment.h"
#include "base/parse.h"
#include "base/utf8.h"
#include "cli/output/prose.h"
#include "cli/output/screen.h"

static bool wants_colour(void)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");

	if (no_colour && no_colour[0])
		return false;
	return term && strcmp(term, "dumb") != 0;
}

void output_init(struct output *output, const struct invocation *in)
{
	static const struct {
		const char *name;
		enum output_form form;
	} forms[] = {
		{ "table", OUTPUT_TABLE }, { "wide", OUTPUT_WIDE }, { "json", OUTPUT_JSON },
		{ "yaml", OUTPUT_YAML },   { "name", OUTPUT_NAME }, { "csv", OUTPUT_CSV },
	};
	const char *form = arg_flag(in, "output");

	*output = (struct output){ .headers = !arg_has(in, "no-headers"),
				   .terminal = isatty(STDOUT_FILENO) == 1 };
	output->columns = arg_flag(in, "columns");
	output->colour = output->terminal && wants_colour();
	output->cursor = getenv("TERM") && strcmp(getenv("TERM"), "dumb") != 0;
	output->width = terminal_width(STDOUT_FILENO);
	for (size_t i = 0; form && i < ARRAY_SIZE(forms); i++)
		if (strcmp(form, forms[i].name) == 0)
			output->form = forms[i].form;
}

void output_write(const void *data, size_t size)
{
	const char *p = data;

	if (screen_take(data, size))
		return;
	while (size) {
		ssize_t written = write(STDOUT_FILENO, p, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0) {
			fprintf(stderr, "fairlead: the output can't be written: %s\n",
				err_errno_text(errno));
			exit(err_code_exit(ERR_IO));
		}
		p += written;
		size -= (size_t)written;
	}
}

void output_buf(struct buf *buf)
{
	output_write(buf_text(buf), buf->size);
	buf_clear(buf);
}

/* members of answers */

const char *get_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

int64_t get_int(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

bool get_bool(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

/* cells */

void say_text(struct buf *out, const char *text)
{
	text_for_terminal(out, text, strlen(text));
}

void say_sentence(struct buf *out, const char *sentence)
{
	AUTO_BUF text = BUF_INIT;

	moment_count_down(&text, sentence, clock_wall_ms());
	say_text(out, buf_text(&text));
}

/* In CSV a blank ends no cell. */
static bool blanks_stay;

/* Blanks, which would make two cells of one, become underscores. */
void cell_text(struct buf *out, const char *text)
{
	size_t from = out->size;

	say_text(out, text);
	if (blanks_stay)
		return;
	for (size_t i = from; i < out->size; i++)
		if (out->data[i] == ' ' || out->data[i] == '\t' || out->data[i] == '\n')
			out->data[i] = '_';
}

void cell_number(const json_t *value, struct buf *out)
{
	if (json_is_integer(value))
		buf_addi(out, json_integer_value(value));
	else if (json_is_real(value))
		buf_addf(out, "%.6g", json_real_value(value));
	else if (json_is_string(value))
		cell_text(out, json_string_value(value));
}

void cell_time(struct buf *out, int64_t ms)
{
	char text[LOCAL_TIME_MAX];

	if (ms)
		cell_text(out, clock_format_local(ms, text));
	for (size_t i = out->size; ms && i > 0 && out->size - i < LOCAL_TIME_MAX; i--)
		if (out->data[i - 1] == '_' || out->data[i - 1] == ' ') {
			out->data[i - 1] = 'T';
			break;
		}
}

void cell_duration(struct buf *out, int64_t ms)
{
	char text[DURATION_TEXT_MAX];

	format_duration_short(ms, text);
	for (const char *p = text; *p; p++)
		if (*p != ' ')
			buf_addc(out, *p);
}

/* How long ago: nobody cares for milliseconds. */
static void cell_age(struct buf *out, int64_t ms)
{
	if (ms < 1000)
		buf_adds(out, "0s");
	else
		cell_duration(out, ms - ms % 1000);
}

void cell_memory(struct buf *out, int64_t mib)
{
	char text[DURATION_TEXT_MAX];

	if (mib)
		buf_adds(out, format_size_mib(mib, text));
}

void say_time(struct buf *out, int64_t ms)
{
	char text[LOCAL_TIME_MAX];

	buf_adds(out, clock_format_local(ms, text));
}

void say_duration(struct buf *out, int64_t ms)
{
	char text[DURATION_TEXT_MAX];

	buf_adds(out, format_duration_short(ms, text));
}

/* states */

static const char *state_colour(const char *state)
{
	static const struct {
		const char *state, *colour;
	} colours[] = {
		{ "running", "32" },     { "starting", "32" },    { "resuming", "32" },
		{ "ready", "32" },       { "succeeded", "32" },   { "checkpointing", "33" },
		{ "preempted", "33" },   { "held", "33" },        { "blocked", "33" },
		{ "draining", "33" },    { "cordoned", "33" },    { "failed", "31" },
		{ "timed-out", "31" },   { "unreachable", "31" }, { "down", "31" },
		{ "quarantined", "31" }, { "set-aside", "31" },   { "cancelled", "90" },
		{ "gone", "90" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(colours); i++)
		if (strcmp(colours[i].state, state) == 0)
			return colours[i].colour;
	return NULL;
}

void output_state(const struct output *output, const char *state, struct buf *out)
{
	const char *colour = output->colour ? state_colour(state) : NULL;

	if (colour)
		buf_addf(out, "\033[%sm", colour);
	cell_text(out, state);
	if (colour)
		buf_adds(out, "\033[0m");
}

/* tables */

/*
 * Characters as wide as one column each; good enough for names, which are ASCII, and close for the
 * rest.
 */
static size_t width_of(const char *text, size_t size)
{
	size_t width = 0;

	for (size_t i = 0; i < size; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

static void add_cell(const struct column *column, const json_t *row, struct buf *out)
{
	int64_t number = column->member ? get_int(row, column->member) : 0;

	if (column->cell) {
		column->cell(row, out);
		return;
	}
	switch (column->kind) {
	case CELL_TEXT: cell_text(out, get_text(row, column->member)); break;
	case CELL_INT: buf_addi(out, number); break;
	case CELL_YES: buf_adds(out, get_bool(row, column->member) ? "yes" : "no"); break;
	case CELL_TIME: cell_time(out, number); break;
	case CELL_AGE:
		if (number)
			cell_age(out, clock_wall_ms() - number);
		break;
	case CELL_DURATION:
		if (number)
			cell_duration(out, number);
		break;
	case CELL_MEMORY: cell_memory(out, number); break;
	}
}

enum { COLUMNS_MAX = 32 };

struct grid {
	const struct column *columns[COLUMNS_MAX];
	size_t column_count;
	struct buf text; /* all cells, one behind the other */
	size_t *ends; /* of each cell in text */
	size_t cells, room;
	size_t widths[COLUMNS_MAX];
	bool hidden[COLUMNS_MAX]; /* no room for it */
	size_t last; /* the last column that is shown */
};

static void grid_cell(struct grid *grid, size_t column, size_t from)
{
	size_t width;

	if (grid->text.size == from)
		buf_addc(&grid->text, '-');
	if (grid->cells == grid->room) {
		grid->room = grid->room ? grid->room * 2 : 256;
		grid->ends = realloc(grid->ends, grid->room * sizeof(*grid->ends));
		CHECK(grid->ends != NULL);
	}
	grid->ends[grid->cells++] = grid->text.size;
	width = width_of(grid->text.data + from, grid->text.size - from);
	if (width > grid->widths[column])
		grid->widths[column] = width;
}

static void grid_fill(struct grid *grid, const struct output *output, const json_t *rows)
{
	size_t index, from;
	const json_t *row;

	for (size_t c = 0; output->headers && c < grid->column_count; c++) {
		from = grid->text.size;
		buf_adds(&grid->text, grid->columns[c]->title);
		grid_cell(grid, c, from);
	}
	json_array_foreach((json_t *)(uintptr_t)rows, index, row)
	{
		for (size_t c = 0; c < grid->column_count; c++) {
			from = grid->text.size;
			add_cell(grid->columns[c], row, &grid->text);
			grid_cell(grid, c, from);
		}
	}
}

static bool is_state(const struct column *column)
{
	return strcmp(column->title, "STATE") == 0;
}

/* What is left of a cut column's text is at least this wide, or a column is left out for it. */
enum { CUT_MIN = 12 };

/* Width of all columns that are shown; one that can be cut counts with its least. */
static size_t grid_width(const struct grid *grid)
{
	size_t width = 0;

	for (size_t c = 0; c < grid->column_count; c++) {
		size_t own = grid->widths[c];

		if (grid->columns[c]->cut && own > CUT_MIN)
			own = CUT_MIN;
		if (!grid->hidden[c])
			width += own + (c == grid->last ? 0 : 2);
	}
	return width;
}

/* Leaves columns out until a line fits, or none is left that may go; then cuts the last one. */
static void grid_narrow(struct grid *grid, size_t width)
{
	grid->last = grid->column_count - 1;
	for (unsigned int turn = 1; turn < 9 && grid_width(grid) > width; turn++)
		for (size_t c = 0; c < grid->column_count; c++)
			if (grid->columns[c]->narrow == turn)
				grid->hidden[c] = true;
	while (grid->last && grid->hidden[grid->last])
		grid->last--;
	if (grid->columns[grid->last]->cut && grid->widths[grid->last] > CUT_MIN) {
		size_t used = grid_width(grid) - CUT_MIN,
		       left = width > used + CUT_MIN ? width - used : CUT_MIN;

		if (grid->widths[grid->last] > left)
			grid->widths[grid->last] = left;
	}
}

/* A text of more than `width` characters ends in "..". */
static void add_cut(const char *text, size_t size, size_t width, struct buf *out)
{
	size_t kept = 0, shown = 0;

	if (width_of(text, size) <= width) {
		buf_add(out, text, size);
		return;
	}
	while (kept < size && (shown < width - 2 || ((unsigned char)text[kept] & 0xc0) == 0x80)) {
		kept++;
		shown += kept == size || ((unsigned char)text[kept] & 0xc0) != 0x80;
	}
	buf_add(out, text, kept);
	buf_adds(out, "..");
}

static void grid_write(const struct grid *grid, const struct output *output, struct buf *out)
{
	size_t from = 0;

	for (size_t i = 0; i < grid->cells; from = grid->ends[i++]) {
		size_t column = i % grid->column_count, size = grid->ends[i] - from;
		const char *text = grid->text.data + from;
		bool title = output->headers && i < grid->column_count;
		char state[64];

		if (grid->hidden[column])
			continue;
		if (output->colour && is_state(grid->columns[column]) && !title) {
			snprintf(state, sizeof(state), "%.*s", (int)size, text);
			output_state(output, state, out);
		} else {
			add_cut(text, size, grid->widths[column], out);
		}
		if (column == grid->last)
			buf_addc(out, '\n');
		else
			for (size_t pad = width_of(text, size); pad < grid->widths[column] + 2;
			     pad++)
				buf_addc(out, ' ');
	}
}

/* The column of this title, in letters of any size; NULL = there is none. */
static const struct column *column_find(const struct column *columns, const char *name, size_t size)
{
	for (; columns->title; columns++)
		if (strlen(columns->title) == size && strncasecmp(columns->title, name, size) == 0)
			return columns;
	return NULL;
}

/* What the form shows: without --columns all, those of the wide form in it and in CSV alone. */
static size_t columns_choose(const struct output *output, const struct column *columns,
			     const struct column *ret[COLUMNS_MAX])
{
	size_t count = 0, size;

	for (const char *at = output->columns; at && *at; at += size + (at[size] == ',')) {
		size = strcspn(at, ",");
		if (column_find(columns, at, size) && count < COLUMNS_MAX)
			ret[count++] = column_find(columns, at, size);
	}
	for (; !output->columns && columns->title; columns++) {
		if (columns->wide && output->form != OUTPUT_WIDE && output->form != OUTPUT_CSV)
			continue;
		CHECK(count < COLUMNS_MAX);
		ret[count++] = columns;
	}
	return count;
}

static int columns_check(const struct output *output, const struct column *columns, struct err *err)
{
	const char *names[COLUMNS_MAX], *hint;
	AUTO_BUF all = BUF_INIT;
	size_t count = 0, size;
	char word[64];

	for (; columns[count].title; count++) {
		names[count] = columns[count].title;
		buf_addf(&all, "%s%s", count ? "," : "", columns[count].title);
	}
	for (size_t i = 0; i < all.size; i++)
		all.data[i] = (char)tolower((unsigned char)all.data[i]);
	for (const char *at = output->columns; at && (at == output->columns || *at);
	     at += size + (at[size] == ',')) {
		size = strcspn(at, ",");
		if (column_find(columns, at, size))
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)size, at);
		for (size_t i = 0; word[i]; i++)
			word[i] = (char)toupper((unsigned char)word[i]);
		hint = spelling_hint(word, names, count);
		return err_set(err, ERR_INVALID,
			       "--columns: there is no column \"%.*s\"%s%s%s; there are %s",
			       (int)(size > 60 ? 60 : size), at, hint ? "; did you mean " : "",
			       hint ? hint : "", hint ? "?" : "", buf_text(&all));
	}
	return 0;
}

/* Where the last column begins. */
static size_t grid_hang(const struct grid *grid)
{
	size_t hang = 0;

	for (size_t c = 0; c < grid->last; c++)
		hang += grid->hidden[c] ? 0 : grid->widths[c] + 2;
	return hang;
}

void output_table(const struct output *output, const struct column *columns, const json_t *rows,
		  struct buf *out)
{
	struct grid grid = { 0 };
	AUTO_BUF text = BUF_INIT;

	grid.column_count = columns_choose(output, columns, grid.columns);
	grid_fill(&grid, output, rows);
	grid_narrow(&grid,
		    output->width && output->form == OUTPUT_TABLE ? output->width : SIZE_MAX);
	grid_write(&grid, output, &text);
	if (output->form == OUTPUT_TABLE && grid.columns[grid.last]->wraps)
		prose_wrap(&text, output->width, grid_hang(&grid));
	buf_add(out, text.data, text.size);
	free(grid.ends);
	buf_deinit(&grid.text);
}

/* YAML */

/*
 * Whether a text needs no quotes: letters first, nothing that YAML might take for something else.
 */
static bool yaml_plain(const char *text)
{
	static const char *const words[] = { "true", "false", "null", "yes", "no",
					     "on",   "off",   "y",    "n" };

	if (!((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') ||
	      text[0] == '/'))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return false;
	return text[strspn(text,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./")] ==
	       '\0';
}

static void yaml_text(const char *text, struct buf *out)
{
	if (yaml_plain(text))
		buf_adds(out, text);
	else
		buf_add_json(out, text, strlen(text));
}

static void yaml_scalar(const json_t *value, struct buf *out)
{
	char *text;

	if (json_is_string(value)) {
		yaml_text(json_string_value(value), out);
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY);
	CHECK(text != NULL);
	buf_adds(out, text);
	free(text);
}

static bool yaml_is_block(const json_t *value)
{
	return (json_is_object(value) && json_object_size(value)) ||
	       (json_is_array(value) && json_array_size(value));
}

static void yaml_value(const json_t *value, int depth, bool inline_first, struct buf *out);

static void yaml_indent(struct buf *out, int depth)
{
	for (int i = 0; i < depth; i++)
		buf_adds(out, "  ");
}

/* Behind "key:" or "-": a scalar on the line, or a block below. */
static void yaml_behind(const json_t *value, int depth, bool in_list, struct buf *out)
{
	if (!yaml_is_block(value)) {
		buf_addc(out, ' ');
		yaml_scalar(value, out);
		buf_addc(out, '\n');
	} else if (in_list && json_is_object(value)) {
		buf_addc(out, ' ');
		yaml_value(value, depth, true, out);
	} else {
		buf_addc(out, '\n');
		yaml_value(value, depth, false, out);
	}
}

static void yaml_value(const json_t *value, int depth, bool inline_first, struct buf *out)
{
	const char *key;
	json_t *item;
	size_t index;

	if (json_is_object(value)) {
		json_object_foreach((json_t *)(uintptr_t)value, key, item)
		{
			if (!inline_first)
				yaml_indent(out, depth);
			inline_first = false;
			yaml_text(key, out);
			buf_addc(out, ':');
			yaml_behind(item, depth + 1, false, out);
		}
		return;
	}
	json_array_foreach(value, index, item)
	{
		yaml_indent(out, depth);
		buf_addc(out, '-');
		yaml_behind(item, depth + 1, true, out);
	}
}

void output_yaml(const json_t *value, struct buf *out)
{
	if (yaml_is_block(value)) {
		yaml_value(value, 0, false, out);
		return;
	}
	yaml_scalar(value, out);
	buf_addc(out, '\n');
}

/* the forms */

static void add_name(const json_t *row, const char *name, struct buf *out)
{
	const json_t *value = json_object_get(row, name);

	if (json_is_integer(value))
		buf_addi(out, json_integer_value(value));
	else
		cell_text(out, get_text(row, name));
	buf_addc(out, '\n');
}

/* The library leaves controls above ASCII as they are; they stand in texts alone, where an escape says the same. */
void output_json(const json_t *value, size_t flags, struct buf *out)
{
	char *text = json_dumps(value, flags | JSON_ENCODE_ANY);
	size_t size, length;

	CHECK(text != NULL);
	size = strlen(text);
	for (size_t at = 0; at < size; at += length) {
		uint32_t code;

		length = utf8_size(text + at, size - at);
		CHECK(length > 0);
		code = utf8_code(text + at, length);
		if (code >= 0x7f && utf8_is_control(code))
			buf_addf(out, "\\u%04x", code);
		else
			buf_add(out, text + at, length);
	}
	free(text);
}

bool output_value(const struct output *output, const json_t *value, const char *name)
{
	AUTO_BUF out = BUF_INIT;

	switch (output->form) {
	case OUTPUT_TABLE:
	case OUTPUT_WIDE: return false;
	case OUTPUT_JSON:
		output_json(value, JSON_INDENT(2), &out);
		buf_addc(&out, '\n');
		break;
	case OUTPUT_YAML: output_yaml(value, &out); break;
	case OUTPUT_NAME:
	case OUTPUT_CSV: add_name(value, name, &out); break;
	}
	output_buf(&out);
	return true;
}

/* RFC 4180, but for line ends, which are those of this system: quotes where a cell needs them. */
static void csv_cell(const char *text, size_t size, struct buf *out)
{
	bool quoted = memchr(text, ',', size) || memchr(text, '"', size);

	if (!quoted) {
		buf_add(out, text, size);
		return;
	}
	buf_addc(out, '"');
	for (size_t i = 0; i < size; i++)
		buf_adds(out, text[i] == '"' ? "\"\"" : (char[]){ text[i], '\0' });
	buf_addc(out, '"');
}

static void csv_titles(const struct column *const *columns, size_t count, struct buf *out)
{
	for (size_t c = 0; c < count; c++) {
		if (c)
			buf_addc(out, ',');
		for (const char *p = columns[c]->title; *p; p++)
			buf_addc(out, (char)tolower((unsigned char)*p));
	}
	buf_addc(out, '\n');
}

/* An empty cell is empty; blanks stay. */
static void output_csv(const struct output *output, const struct column *columns,
		       const json_t *rows, struct buf *out)
{
	const struct column *chosen[COLUMNS_MAX];
	const size_t count = columns_choose(output, columns, chosen);
	AUTO_BUF cell = BUF_INIT;
	const json_t *row;
	size_t index;

	if (output->headers)
		csv_titles(chosen, count, out);
	blanks_stay = true;
	json_array_foreach((json_t *)(uintptr_t)rows, index, row)
	{
		for (size_t c = 0; c < count; c++) {
			buf_clear(&cell);
			add_cell(chosen[c], row, &cell);
			if (c)
				buf_addc(out, ',');
			csv_cell(buf_text(&cell), cell.size, out);
		}
		buf_addc(out, '\n');
	}
	blanks_stay = false;
}

bool output_is_table(const struct output *output)
{
	return output->form == OUTPUT_TABLE || output->form == OUTPUT_WIDE;
}

int output_list(const struct output *output, const struct column *columns, const json_t *rows,
		const char *name, struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	const json_t *row;
	size_t index;
	int rc = columns ? columns_check(output, columns, err) : 0;

	if (rc < 0)
		return rc;
	if (output->form == OUTPUT_NAME)
		json_array_foreach((json_t *)(uintptr_t)rows, index, row) add_name(row, name, &out);
	else if (output->form == OUTPUT_CSV)
		output_csv(output, columns, rows, &out);
	else if (!output_value(output, rows, name))
		output_table(output, columns, rows, &out);
	output_buf(&out);
	return 0;
}
