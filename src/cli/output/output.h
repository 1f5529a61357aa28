/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a command shows: tables, JSON, YAML, names.
 *
 * A table has one row per line and no spaces inside cells, so that awk can split it; an empty cell
 * is "-". The columns are as wide as what is in them. Every text from outside passes
 * text_for_terminal, so a job's name can't move the cursor. Colour is only for states, only on a
 * terminal, never the only sign, and off with NO_COLOR or TERM=dumb.
 *
 * JSON is the daemon's own answer, unchanged but for its layout: its names and types are the API's
 * promise.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "cli/table/args.h"

enum output_form { OUTPUT_TABLE, OUTPUT_WIDE, OUTPUT_JSON, OUTPUT_YAML, OUTPUT_NAME, OUTPUT_CSV };

struct output {
	enum output_form form;
	bool headers;
	bool colour;
	bool terminal; /* stdout is one */
	bool cursor; /* and moves its cursor when told */
	size_t width; /* of it, in characters; 0 = not limited */
	size_t lines; /* of the screen that --watch fills; 0 = not limited */
	/* --columns: their titles, "job,state"; NULL = as the form has them. */
	const char *columns;
};

void output_init(struct output *output, const struct invocation *in);

/* What is in a member, and how it is shown; the words are those of the cell_ functions below. */
enum cell { CELL_TEXT, CELL_INT, CELL_YES, CELL_TIME, CELL_AGE, CELL_DURATION, CELL_MEMORY };

struct column {
	const char *title; /* upper case; NULL ends the list */
	const char *member; /* of the row; NULL when `cell` makes the text */
	enum cell kind;
	bool wide; /* only in the wide form */
	/* Appends the cell's text; nothing = "-". */
	void (*cell)(const json_t *row, struct buf *out);
	/* On a terminal too narrow for all: 1 is left out first, then 2, ...; 0 = it stays. */
	unsigned int narrow;
	bool cut; /* the last column: its text is cut at the terminal's edge */
	bool wraps; /* the last column: its text goes on below itself where the terminal ends */
};

/*
 * A list in the form asked for. name: the member that identifies a row. ERR_INVALID, with the columns that there are, when
 * --columns names another one; nothing is printed then.
 */
int output_list(const struct output *output, const struct column *columns, const json_t *rows,
		const char *name, struct err *err) MUST_CHECK;
/* Whether the form is a table, and not for programs: notices may go with it. */
bool output_is_table(const struct output *output);
/* One thing as JSON or YAML; false when the form is for people and the caller has to show it. */
bool output_value(const struct output *output, const json_t *value, const char *name);
/* Columns that output->columns names and the table has not are left out. */
void output_table(const struct output *output, const struct column *columns, const json_t *rows,
		  struct buf *out);
void output_yaml(const json_t *value, struct buf *out);
/* flags: JSON_COMPACT and the like. Nothing in it is obeyed by a terminal: in texts of others U+009B begins an order. */
void output_json(const json_t *value, size_t flags, struct buf *out);
/* Writes to stdout, all of it or exits: a broken pipe ends the command. */
void output_write(const void *data, size_t size);
void output_buf(struct buf *buf); /* writes and clears */

/* A word for a state with its colour. */
void output_state(const struct output *output, const char *state, struct buf *out);

/* Members of answers; missing or of another type: "", 0, false, NULL. */
const char *get_text(const json_t *object, const char *name);
int64_t get_int(const json_t *object, const char *name);
bool get_bool(const json_t *object, const char *name);

/* A sentence of the daemon's; the moments in it are told as the time from now until then. */
void say_sentence(struct buf *out, const char *sentence);
/* Cells: text without spaces, from members. */
void cell_text(struct buf *out, const char *text);
/* A number as it was said, whole or not: 8, 0.5; a text as it is; nothing for NULL. */
void cell_number(const json_t *value, struct buf *out);
void cell_time(struct buf *out, int64_t ms); /* local, "2026-03-01T14:02:11"; 0 = nothing */
void cell_duration(struct buf *out, int64_t ms); /* "3d4h" */
void cell_memory(struct buf *out, int64_t mib);
/* For people, in sentences: "2026-03-01 14:02:11". */
void say_time(struct buf *out, int64_t ms);
void say_duration(struct buf *out, int64_t ms);
/* Text from outside into a line for people. */
void say_text(struct buf *out, const char *text);
