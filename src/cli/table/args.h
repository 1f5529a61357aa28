/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One call of a command: what was typed, parsed by the command's table entry.
 *
 * --name value, --name=value, -x value, -xvalue, switches -x; "--" ends the flags. A flag that does
 * not repeat and is given twice is an error, so that nobody wonders which one counted.
 */
#include <stdint.h>
#include "base/arena.h"
#include "cli/table/table.h"

enum { FLAG_VALUES_MAX = 2048 };

struct flag_value {
	const struct flag *flag;
	const char *text; /* "" for switches */
};

struct invocation {
	const struct command *command;
	struct arena *arena; /* lives as long as the call */
	const char *const *args;
	int arg_count;
	struct flag_value *values;
	size_t value_count;
	const char *global_data, *global_server; /* given before the command's name */
	const char *self; /* path or name by which the program was called */
};

/*
 * words: behind the command's name. 0; INVOCATION_HELP when help was asked for; negative with err.
 */
enum { INVOCATION_HELP = 1 };
int args_parse(struct invocation *in, const char *const *words, int count, struct err *err)
	MUST_CHECK;

const char *arg_flag(const struct invocation *in, const char *name); /* NULL = not given */
bool arg_has(const struct invocation *in, const char *name);
/* The value number `index` (from 0) of a repeated flag; NULL behind the last. */
const char *arg_flag_at(const struct invocation *in, const char *name, size_t index);
/* A job id as typed: "12". */
int arg_job(const char *text, uint32_t *ret, struct err *err) MUST_CHECK;
/* Text with a number between; "what" names it in messages. */
int arg_number(const struct invocation *in, const char *name, int64_t min, int64_t max,
	       int64_t standard, int64_t *ret, struct err *err) MUST_CHECK;
