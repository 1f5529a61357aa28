/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pointer walks over the text. `wants` says whether the grammar allows a value here: true at
 * the start, after a key, and after pull_element; so a caller who reads twice is refused like a
 * text that lacks a comma. Strings are the bulk of real texts: they are scanned eight bytes at a
 * time for the four kinds of byte that need a look (quote, backslash, control, not ASCII).
 */
#include "base/json.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/utf8.h"

void pull_init(struct json_reader *r, const char *text, size_t size)
{
	static const char nothing[1];

	r->start = r->at = size ? text : nothing;
	r->end = r->start + size;
	r->problem = NULL;
	r->depth = 0;
	r->wants = true;
}

/* The first problem stays; the place stays with it. */
void pull_fail(struct json_reader *r, const char *problem)
{
	if (!r->problem)
		r->problem = problem;
}

static void fail_at(struct json_reader *r, const char *at, const char *problem)
{
	if (!r->problem)
		r->at = at;
	pull_fail(r, problem);
}

static inline void skip_space(struct json_reader *r)
{
	const char *p = r->at;

	if (p < r->end && (unsigned char)*p > ' ')
		return; /* what most texts have most often */
	while (p < r->end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	r->at = p;
}

/* The next byte that is not white space; NUL at the end (which no grammar rule expects). */
static inline char next_byte(struct json_reader *r)
{
	skip_space(r);
	return r->at < r->end ? *r->at : '\0';
}

/* What a value that starts with this byte is; PULL_BAD (0) where none does. */
static const uint8_t types[256] = {
	['{'] = PULL_OBJECT, ['['] = PULL_ARRAY,  ['"'] = PULL_STRING, ['t'] = PULL_BOOL,
	['f'] = PULL_BOOL,   ['n'] = PULL_NULL,   ['-'] = PULL_NUMBER, ['0'] = PULL_NUMBER,
	['1'] = PULL_NUMBER, ['2'] = PULL_NUMBER, ['3'] = PULL_NUMBER, ['4'] = PULL_NUMBER,
	['5'] = PULL_NUMBER, ['6'] = PULL_NUMBER, ['7'] = PULL_NUMBER, ['8'] = PULL_NUMBER,
	['9'] = PULL_NUMBER,
};

static inline enum pull_type peek(struct json_reader *r)
{
	enum pull_type type;

	if (r->problem)
		return PULL_BAD;
	type = (enum pull_type)types[(unsigned char)next_byte(r)];
	if (!r->wants || (!r->depth && r->at == r->end))
		return PULL_END;
	if (type == PULL_BAD)
		pull_fail(r, r->at == r->end ? "the text ends where a value is expected"
					     : "a value is expected here");
	return type;
}

enum pull_type pull_peek(struct json_reader *r)
{
	return peek(r);
}

/* Whether a value of this type comes next; it is then as good as read. */
static inline bool value_starts(struct json_reader *r, enum pull_type type, const char *otherwise)
{
	enum pull_type next = peek(r);

	if (next == type) {
		r->wants = false;
		return true;
	}
	if (next == PULL_END && r->wants)
		otherwise = "the text ends where a value is expected";
	else if (next == PULL_END)
		otherwise = "a comma or the end is expected here, not a value";
	pull_fail(r, otherwise);
	return false;
}

static void enter(struct json_reader *r, uint8_t kind)
{
	if (r->depth == PULL_DEPTH_MAX) {
		pull_fail(r, "objects and arrays are nested too deep");
		return;
	}
	r->at++;
	r->kind[r->depth] = kind;
	r->fresh[r->depth] = 1;
	r->depth++;
}

void pull_object(struct json_reader *r)
{
	if (value_starts(r, PULL_OBJECT, "an object is expected here"))
		enter(r, PULL_KIND_OBJECT);
}

void pull_array(struct json_reader *r)
{
	if (value_starts(r, PULL_ARRAY, "an array is expected here"))
		enter(r, PULL_KIND_ARRAY);
}

/* At a comma or the closing byte: true when another member or element follows. */
static inline bool goes_on(struct json_reader *r, uint8_t kind, char close)
{
	bool fresh;
	char c;

	if (r->problem)
		return false;
	if (!r->depth || r->kind[r->depth - 1] != kind || r->wants) {
		pull_fail(r, "the value before was not read");
		return false;
	}
	fresh = r->fresh[r->depth - 1];
	c = next_byte(r);
	if (c == close) {
		r->at++;
		r->depth--;
		return false;
	}
	r->fresh[r->depth - 1] = 0;
	if (fresh)
		return true;
	if (c == ',') {
		r->at++;
		return true;
	}
	pull_fail(r, r->at == r->end ? "the text ends inside an object or array"
				     : "a comma or the closing bracket is expected here");
	return false;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static uint32_t hex_value(const char *p)
{
	uint32_t value = 0;

	for (int i = 0; i < 4; i++) {
		uint32_t digit =
			p[i] <= '9' ? (uint32_t)(p[i] - '0') : (uint32_t)((p[i] | 0x20) - 'a' + 10);

		value = value << 4 | digit;
	}
	return value;
}

static bool is_unicode_escape(const char *p, const char *end)
{
	return end - p >= 6 && p[0] == '\\' && p[1] == 'u' && is_hex(p[2]) && is_hex(p[3]) &&
	       is_hex(p[4]) && is_hex(p[5]);
}

/* Bytes of the valid escape at p (2, 6, or 12 for a surrogate pair), 0 when it is none. */
static size_t escape_size(const char *p, const char *end)
{
	uint32_t code;

	if (end - p < 2)
		return 0;
	switch (p[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't': return 2;
	case 'u': break;
	default: return 0;
	}
	if (!is_unicode_escape(p, end))
		return 0;
	code = hex_value(p + 2);
	if (code < 0xd800 || code > 0xdfff)
		return 6;
	if (code > 0xdbff || !is_unicode_escape(p + 6, end))
		return 0;
	code = hex_value(p + 8);
	return code >= 0xdc00 && code <= 0xdfff ? 12 : 0;
}

/*
 * Which of eight bytes need a look. Adding or subtracting in all bytes at once borrows across them,
 * but only upwards from a byte that is itself marked, and the caller looks at the lowest first.
 */
static inline uint64_t special_bytes(const char *p)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
	uint64_t word, quote, slash;

	memcpy(&word, p, sizeof(word));
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		word = __builtin_bswap64(word);
	quote = word ^ ones * '"';
	slash = word ^ ones * '\\';
	return ((quote - ones) | (slash - ones) | (word - ones * 0x20) | word) & tops;
}

/* From behind the opening quote to behind the closing one. */
static inline bool scan_string(struct json_reader *r, struct json_slice *ret)
{
	const char *p = r->at, *end = r->end;
	bool escaped = false;
	uint64_t found;
	size_t size;

	for (;;) {
		while (end - p >= 8) {
			found = special_bytes(p);
			if (found) {
				p += __builtin_ctzll(found) / 8;
				break;
			}
			p += 8;
		}
		if (p == end) {
			fail_at(r, p, "the text ends inside a string");
			return false;
		}
		if (*p == '"') {
			*ret = (struct json_slice){ r->at, (size_t)(p - r->at), escaped };
			r->at = p + 1;
			return true;
		}
		if (*p == '\\') {
			size = escape_size(p, end);
			if (!size) {
				fail_at(r, p, "this escape in a string is not valid");
				return false;
			}
			escaped = true;
		} else if ((unsigned char)*p < 0x20) {
			fail_at(r, p, "a control character in a string must be escaped");
			return false;
		} else {
			size = utf8_size(p, (size_t)(end - p));
			if (!size) {
				fail_at(r, p, "this is not valid UTF-8");
				return false;
			}
		}
		p += size;
	}
}

bool pull_member(struct json_reader *r, struct json_slice *ret_key)
{
	*ret_key = (struct json_slice){ "", 0, false };
	if (!goes_on(r, PULL_KIND_OBJECT, '}'))
		return false;
	if (next_byte(r) != '"') {
		pull_fail(r, r->at == r->end ? "the text ends inside an object"
					     : "a key in quotes is expected here");
		return false;
	}
	r->at++;
	if (!scan_string(r, ret_key))
		return false;
	if (next_byte(r) != ':') {
		pull_fail(r, "a colon is expected behind the key");
		return false;
	}
	r->at++;
	r->wants = true;
	return true;
}

bool pull_element(struct json_reader *r)
{
	if (!goes_on(r, PULL_KIND_ARRAY, ']'))
		return false;
	r->wants = true;
	return true;
}

void pull_string(struct json_reader *r, struct json_slice *ret)
{
	*ret = (struct json_slice){ "", 0, false };
	if (!value_starts(r, PULL_STRING, "a string is expected here"))
		return;
	r->at++;
	scan_string(r, ret);
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* Behind the number that starts at r->at, with its parts checked. */
static bool scan_number(struct json_reader *r, bool *ret_whole)
{
	const char *p = r->at, *end = r->end, *digits;

	*ret_whole = true;
	p += *p == '-';
	digits = p;
	p = skip_digits(p, end);
	if (p == digits || (*digits == '0' && p - digits > 1)) {
		fail_at(r, digits,
			p == digits ? "a digit is expected here" : "a number can't start with 0");
		return false;
	}
	if (p < end && *p == '.') {
		*ret_whole = false;
		digits = ++p;
		p = skip_digits(p, end);
		if (p == digits) {
			fail_at(r, p, "a digit is expected behind the point");
			return false;
		}
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		*ret_whole = false;
		p++;
		p += p < end && (*p == '+' || *p == '-');
		digits = p;
		p = skip_digits(p, end);
		if (p == digits) {
			fail_at(r, p, "a digit is expected in the exponent");
			return false;
		}
	}
	r->at = p;
	return true;
}

/* The number as sign and size; false with a problem when it is not a whole number of 64 bits. */
static bool read_number(struct json_reader *r, bool *ret_minus, uint64_t *ret)
{
	const char *first;
	uint64_t number = 0;
	bool whole;

	if (!value_starts(r, PULL_NUMBER, "a number is expected here"))
		return false;
	first = r->at;
	if (!scan_number(r, &whole))
		return false;
	*ret_minus = *first == '-';
	if (!whole) {
		fail_at(r, first, "a whole number is expected here");
		return false;
	}
	for (const char *p = first + *ret_minus; p < r->at; p++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number)) {
			fail_at(r, first, "this number is too large");
			return false;
		}
	}
	*ret = number;
	return true;
}

void pull_int(struct json_reader *r, int64_t *ret)
{
	const uint64_t most = INT64_MAX;
	uint64_t number;
	bool minus;

	*ret = 0;
	if (!read_number(r, &minus, &number))
		return;
	if (number > most + minus)
		pull_fail(r, "this number is too large");
	else
		*ret = minus ? (int64_t)(0 - number) : (int64_t)number;
}

void pull_uint(struct json_reader *r, uint64_t *ret)
{
	uint64_t number;
	bool minus;

	*ret = 0;
	if (!read_number(r, &minus, &number))
		return;
	if (minus && number)
		pull_fail(r, "this number can't be negative");
	else
		*ret = number;
}

static bool scan_word(struct json_reader *r, const char *word, size_t size)
{
	if ((size_t)(r->end - r->at) >= size && memcmp(r->at, word, size) == 0) {
		r->at += size;
		return true;
	}
	pull_fail(r, "a value is expected here");
	return false;
}

void pull_bool(struct json_reader *r, bool *ret)
{
	*ret = false;
	if (!value_starts(r, PULL_BOOL, "true or false is expected here"))
		return;
	if (*r->at == 't')
		*ret = scan_word(r, "true", 4);
	else
		scan_word(r, "false", 5);
}

void pull_null(struct json_reader *r)
{
	if (value_starts(r, PULL_NULL, "null is expected here"))
		scan_word(r, "null", 4);
}

/* One scalar, or the start of an object or array. */
static void skip_one(struct json_reader *r)
{
	struct json_slice slice;
	bool flag;

	switch (pull_peek(r)) {
	case PULL_OBJECT: pull_object(r); break;
	case PULL_ARRAY: pull_array(r); break;
	case PULL_STRING: pull_string(r, &slice); break;
	case PULL_NUMBER:
		r->wants = false;
		scan_number(r, &flag);
		break;
	case PULL_BOOL: pull_bool(r, &flag); break;
	case PULL_NULL: pull_null(r); break;
	case PULL_END: value_starts(r, PULL_NULL, ""); break;
	case PULL_BAD: break;
	}
}

void pull_skip(struct json_reader *r)
{
	uint8_t outside = r->depth;
	struct json_slice key;

	skip_one(r);
	while (!r->problem && r->depth > outside)
		if (r->kind[r->depth - 1] == PULL_KIND_OBJECT ? pull_member(r, &key)
							      : pull_element(r))
			skip_one(r);
}

/* Writes what the checked escape at p means; moves p behind it. */
static size_t unescape(const char **p, char out[4])
{
	static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	const char *at = *p;
	uint32_t code;

	if (at[1] != 'u') {
		*p = at + 2;
		out[0] = meant[strchr(plain, at[1]) - plain];
		return 1;
	}
	code = hex_value(at + 2);
	*p = at + 6;
	if (code >= 0xd800 && code <= 0xdfff) {
		code = 0x10000 + ((code - 0xd800) << 10) + (hex_value(at + 8) - 0xdc00);
		*p = at + 12;
	}
	return utf8_write(code, out);
}

bool pull_key_is(const struct json_slice *key, const char *name)
{
	const char *p = key->data, *end = key->data + key->size;
	size_t left = strlen(name), size;
	char out[4];

	if (!key->escaped)
		return left == key->size && memcmp(p, name, left) == 0;
	while (p < end) {
		if (*p == '\\') {
			size = unescape(&p, out);
		} else {
			out[0] = *p++;
			size = 1;
		}
		if (size > left || memcmp(out, name, size) != 0)
			return false;
		name += size;
		left -= size;
	}
	return left == 0;
}

void pull_copy(struct json_reader *r, const struct json_slice *slice, char *out, size_t room)
{
	const char *p = slice->data, *end = slice->data + slice->size;
	size_t size, at = 0;
	char bytes[4];

	CHECK(room > 0);
	out[0] = '\0';
	while (p < end && !r->problem) {
		if (*p == '\\') {
			size = unescape(&p, bytes);
			if (!bytes[0])
				pull_fail(r, "a NUL character is not allowed in this text");
		} else {
			const char *slash =
				slice->escaped ? memchr(p, '\\', (size_t)(end - p)) : NULL;

			size = (size_t)((slash ? slash : end) - p);
			if (size >= room - at) {
				pull_fail(r, "this text is too long");
				break;
			}
			memcpy(out + at, p, size);
			p += size;
			at += size;
			continue;
		}
		if (size >= room - at) {
			pull_fail(r, "this text is too long");
			break;
		}
		memcpy(out + at, bytes, size);
		at += size;
	}
	out[r->problem ? 0 : at] = '\0';
}

char *pull_text(struct json_reader *r, const struct json_slice *slice, struct arena *arena)
{
	/* What an escape means is never longer than the escape. */
	char *text = arena_alloc(arena, slice->size + 1);

	pull_copy(r, slice, text, slice->size + 1);
	return text;
}

int pull_finish(struct json_reader *r, struct err *err)
{
	if (!r->problem) {
		skip_space(r);
		if (r->depth || r->wants)
			pull_fail(r, r->at < r->end ? "not all of the value was read"
						    : "the text is empty or ends too early");
		else if (r->at < r->end)
			pull_fail(r, "something follows the value");
		else
			return 0;
	}
	err_set(err, ERR_INVALID, "not the JSON that was expected, at byte %zu: %s",
		(size_t)(r->at - r->start), r->problem);
	return -1;
}
