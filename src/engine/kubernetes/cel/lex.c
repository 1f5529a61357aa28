/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/cel/lex.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"

struct node *source_fail(struct source *source, enum err_code code, uint32_t at, const char *format,
			 ...)
{
	va_list args;

	if (source->failed)
		return NULL;
	source->failed = true;
	va_start(args, format);
	err_setv(source->err, code, format, args);
	va_end(args);
	if (source->err)
		source->err->column = (int)at + 1;
	return NULL;
}

static int peek(const struct source *source, uint32_t at)
{
	return at < source->size ? (unsigned char)source->text[at] : -1;
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static int hex_value(int c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void skip_blanks(const struct source *source, uint32_t *at)
{
	for (;;) {
		int c = peek(source, *at);

		if (c == '/' && peek(source, *at + 1) == '/')
			while (*at < source->size && source->text[*at] != '\n')
				(*at)++;
		else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f')
			(*at)++;
		else
			return;
	}
}

/* Digits of `base`, so many exactly (0 = as many as there are); UINT64_MAX at most. */
static uint64_t read_digits(const struct source *source, uint32_t *at, int base, uint32_t exactly,
			    uint32_t *ret_count)
{
	uint64_t value = 0;
	uint32_t count = 0;

	for (; !exactly || count < exactly; count++, (*at)++) {
		int digit = hex_value(peek(source, *at));

		if (digit < 0 || digit >= base)
			break;
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			value = UINT64_MAX;
	}
	*ret_count = count;
	return value;
}

static struct word read_number(struct source *source, uint32_t *at)
{
	struct word word = { .kind = WORD_INT, .at = *at };
	bool hex = peek(source, *at) == '0' && (peek(source, *at + 1) | 0x20) == 'x';
	uint32_t count;
	uint64_t value;
	int c;

	*at += hex ? 2 : 0;
	value = read_digits(source, at, hex ? 16 : 10, 0, &count);
	c = peek(source, *at);
	if (!count)
		source_fail(source, ERR_INVALID, word.at, "a number lacks its digits");
	else if ((c == '.' && is_digit(peek(source, *at + 1))) || (!hex && (c | 0x20) == 'e'))
		source_fail(source, ERR_UNSUPPORTED, word.at, "numbers with a point are not read");
	else if ((c | 0x20) == 'u')
		source_fail(source, ERR_UNSUPPORTED, word.at, "unsigned numbers are not read");
	else if (is_letter(c) || value > (uint64_t)INT64_MAX + 1)
		source_fail(source, ERR_INVALID, word.at, "this is no number of 64 bits");
	word.too_large = value == (uint64_t)INT64_MAX + 1;
	word.number = word.too_large ? INT64_MIN : (int64_t)value;
	return word;
}

/* The character that an escape stands for, at the letter behind the backslash; -1 = there is no such escape. */
static int64_t read_escape(const struct source *source, uint32_t *at)
{
	static const char letters[] = "abfnrtv\\\"'`?", means[] = "\a\b\f\n\r\t\v\\\"'`?";
	int c = peek(source, *at);
	const char *letter = c > 0 ? strchr(letters, c) : NULL;
	uint32_t count, digits = 0;
	uint64_t code;
	int base = 16;

	if (letter) {
		(*at)++;
		return (unsigned char)means[letter - letters];
	}
	if (c >= '0' && c <= '3')
		digits = 3, base = 8;
	else if (c == 'x' || c == 'X')
		digits = 2;
	else if (c == 'u')
		digits = 4;
	else if (c == 'U')
		digits = 8;
	if (!digits)
		return -1;
	*at += base == 16;
	code = read_digits(source, at, base, digits, &count);
	if (count != digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return -1;
	return (int64_t)code;
}

static bool ends_here(const struct source *source, uint32_t at, int quote, uint32_t quotes)
{
	for (uint32_t i = 0; i < quotes; i++)
		if (peek(source, at + i) != quote)
			return false;
	return true;
}

/* One character of a string, written to *out. */
static bool read_character(struct source *source, uint32_t *at, bool raw, bool many_lines,
			   char **out)
{
	int c = peek(source, *at);
	size_t size;
	int64_t code;

	if (c < 0 || (!many_lines && (c == '\n' || c == '\r'))) {
		source_fail(source, ERR_INVALID, *at, "a string is not closed");
		return false;
	}
	if (c == '\\' && !raw) {
		uint32_t began = (*at)++;

		code = read_escape(source, at);
		if (code < 0) {
			source_fail(source, ERR_INVALID, began, "there is no such escape");
			return false;
		}
		*out += utf8_write((uint32_t)code, *out);
		return true;
	}
	size = utf8_size(source->text + *at, source->size - *at);
	if (!size) {
		source_fail(source, ERR_INVALID, *at, "this is not UTF-8");
		return false;
	}
	memcpy(*out, source->text + *at, size);
	*out += size;
	*at += (uint32_t)size;
	return true;
}

static struct word read_string(struct source *source, uint32_t *at, bool raw)
{
	struct word word = { .kind = WORD_STRING, .at = *at };
	char *text = arena_alloc(source->arena, source->size - *at + 4), *out = text;
	int quote = peek(source, *at);
	uint32_t quotes = ends_here(source, *at, quote, 3) ? 3 : 1;

	*at += quotes;
	while (!ends_here(source, *at, quote, quotes))
		if (!read_character(source, at, raw, quotes == 3, &out))
			return word;
	*at += quotes;
	word.text = (struct string){ text, (size_t)(out - text) };
	return word;
}

static struct word read_name(struct source *source, uint32_t *at)
{
	struct word word = { .kind = WORD_NAME, .at = *at };

	while (is_letter(peek(source, *at)) || is_digit(peek(source, *at)))
		(*at)++;
	word.text = (struct string){
		arena_strndup(source->arena, source->text + word.at, *at - word.at), *at - word.at
	};
	return word;
}

static struct word read_sign(struct source *source, uint32_t *at)
{
	static const uint16_t twos[] = { SIGN2('=', '='), SIGN2('!', '='), SIGN2('<', '='),
					 SIGN2('>', '='), SIGN2('&', '&'), SIGN2('|', '|') };
	struct word word = { .kind = WORD_SIGN, .at = *at };
	int a = peek(source, *at), b = peek(source, *at + 1);

	for (size_t i = 0; b > 0 && i < sizeof(twos) / sizeof(twos[0]); i++)
		if (twos[i] == SIGN2(a, b)) {
			word.sign = twos[i];
			*at += 2;
			return word;
		}
	if (a == '`')
		source_fail(source, ERR_UNSUPPORTED, word.at, "quoted names are not read");
	else if (a <= 0 || !strchr("()[]{}.,?:!<>+-*/%", a))
		source_fail(source, ERR_INVALID, word.at, "this character has no meaning here");
	word.sign = (uint16_t)a;
	(*at)++;
	return word;
}

struct word word_next(struct source *source, uint32_t *at)
{
	struct word word = { .kind = WORD_END };
	int c, d, e;

	skip_blanks(source, at);
	word.at = *at;
	c = peek(source, *at);
	d = c < 0 ? -1 : peek(source, *at + 1);
	e = d < 0 ? -1 : peek(source, *at + 2);
	if (c < 0 || source->failed)
		return word;
	if (c == '"' || c == '\'') {
		word = read_string(source, at, false);
	} else if ((c | 0x20) == 'r' && (d == '"' || d == '\'')) {
		(*at)++;
		word = read_string(source, at, true);
	} else if ((c | 0x20) == 'b' &&
		   (d == '"' || d == '\'' || ((d | 0x20) == 'r' && (e == '"' || e == '\'')))) {
		source_fail(source, ERR_UNSUPPORTED, *at, "strings of bytes are not read");
	} else if (is_digit(c)) {
		word = read_number(source, at);
	} else if (c == '.' && is_digit(d)) {
		source_fail(source, ERR_UNSUPPORTED, *at, "numbers with a point are not read");
	} else if (is_letter(c)) {
		word = read_name(source, at);
	} else {
		word = read_sign(source, at);
	}
	if (source->failed)
		word.kind = WORD_END;
	return word;
}
