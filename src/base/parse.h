/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Small notations that people write: durations, sizes, ranges of names, numbers. All are exact
 * (integers only), total, and say in err what was wrong with which text and what is expected.
 * And the hint for a misspelt word.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct arena;
struct buf;

/*
 * "90s", "1h30m", "2d", "500ms", "7d"; units ms s m h d w, each once, largest first; or as a clock shows it, with hours, minutes and
 * seconds: "01:30:00", "2-01:30:00" with days. 0..10 years. In ms.
 */
int parse_duration(const char *text, int64_t *ret_ms, struct err *err) MUST_CHECK;
/* Shortest exact form: 5400000 -> "1h30m"; 0 -> "0s". Writes at most 48 bytes with NUL. */
enum { DURATION_TEXT_MAX = 48 };
const char *format_duration(int64_t ms, char out[DURATION_TEXT_MAX]);
/* For people: two units at most, "3d 4h", "12s". */
const char *format_duration_short(int64_t ms, char out[DURATION_TEXT_MAX]);
/*
 * "80GiB", "512MiB", "2TiB"; B, KiB, MiB, GiB, TiB, for which Ki, Mi, Gi, Ti and K, M, G, T are read too; also GB, MB (decimal,
 * rounded down to MiB); in MiB, up to 2^40.
 */
int parse_size_mib(const char *text, int64_t *ret_mib, struct err *err) MUST_CHECK;
/* 81920 -> "80GiB". */
const char *format_size_mib(int64_t mib, char out[DURATION_TEXT_MAX]);
int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *err) MUST_CHECK;
/* "0.45", "1": thousandths, exactly, from `least` (0 or 1) to `most` of them. */
int parse_milli(const char *text, int64_t least, int64_t most, int64_t *ret, struct err *err)
	MUST_CHECK;
/*
 * Names of a range, in order. Each must be a name as parse_name takes it.
 * "n[0-3]" -> n0 n1 n2 n3; "n[01-03]" keeps zeroes; "a" -> a; "r[0-1]x[0-1]" multiplies, left
 * slowest. At most `limit`.
 */
int parse_name_range(const char *text, struct arena *arena, size_t limit, const char ***ret_names,
		     size_t *ret_count, struct err *err) MUST_CHECK;
/*
 * A name: 1..63 of a-z A-Z 0-9 . _ - and starts with a letter or digit. `what` goes into the
 * message.
 */
int parse_name(const char *text, const char *what, struct err *err) MUST_CHECK;
bool text_is_utf8(const char *text, size_t size);
/*
 * The candidate closest to word, NULL if none is close (more than a third of its letters
 * differ).
 */
const char *spelling_hint(const char *word, const char *const *candidates, size_t count);
/* Escapes control characters and bad UTF-8 so that a terminal shows them and does not obey them. */
void text_for_terminal(struct buf *out, const char *text, size_t size);
/* "12.50", at most six decimals and 12 digits before them: in millionths. */
bool parse_money(const char *text, int64_t *ret_micro);
enum { MONEY_TEXT_MAX = 32 };
/* For people: "1,680.00" of 1680000000 millionths, rounded to hundredths; of less than a hundredth all six decimals. Answers ret. */
const char *format_money(int64_t micro, char ret[MONEY_TEXT_MAX]);
