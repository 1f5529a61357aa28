/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/utf8.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The digits at *text as a number; false when there is none or it passes 64 bits. Moves *text. */
static bool read_number(const char **text, uint64_t *ret)
{
	const char *p = *text;
	uint64_t number = 0;

	if (!is_digit(*p))
		return false;
	for (; is_digit(*p); p++)
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
			return false;
	*ret = number;
	*text = p;
	return true;
}

/* Durations */

static const struct {
	const char *name;
	int64_t ms;
} units[] = {
	{ "w", INT64_C(604800000) },
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

static const int64_t duration_max_ms = INT64_C(3650) * 86400000;

/* The unit whose name stands at text, behind which a number or the end must follow; -1 if none. */
static int find_unit(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t length = strlen(units[i].name);

		if (strncmp(text, units[i].name, length) == 0 &&
		    (!text[length] || is_digit(text[length])))
			return (int)i;
	}
	return -1;
}

static int duration_error(const char *text, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID,
		       "duration \"%.60s\" %s; write for example 90s, 1h30m or 7d", text, why);
}

/* Two digits below 60 behind a colon; moves *text behind them. */
static bool read_sixtieth(const char **text, int64_t *ret)
{
	const char *p = *text;

	if (p[0] != ':' || !is_digit(p[1]) || !is_digit(p[2]) || p[1] > '5')
		return false;
	*ret = (p[1] - '0') * 10 + p[2] - '0';
	*text = p + 3;
	return true;
}

/* "01:30:00", "2-01:30:00" */
static int parse_clock(const char *text, int64_t *ret_ms, struct err *err)
{
	const char *p = text;
	uint64_t days = 0, hours;
	int64_t minutes, seconds;

	if (strchr(p, '-')) {
		if (!read_number(&p, &days) || *p != '-')
			return duration_error(text, "has days that are no number", err);
		p++;
	}
	if (!read_number(&p, &hours) || !read_sixtieth(&p, &minutes))
		return duration_error(text, "is no hours:minutes:seconds", err);
	if (!*p)
		return duration_error(text, "may be hours or minutes: seconds are missing", err);
	if (!read_sixtieth(&p, &seconds) || *p)
		return duration_error(text, "is no hours:minutes:seconds", err);
	if (days > 3650 || hours > 3650 * 24)
		return duration_error(text, "is longer than 10 years", err);
	minutes += (int64_t)(days * 24 + hours) * 60;
	if (minutes * 60000 + seconds * 1000 > duration_max_ms)
		return duration_error(text, "is longer than 10 years", err);
	*ret_ms = minutes * 60000 + seconds * 1000;
	return 0;
}

int parse_duration(const char *text, int64_t *ret_ms, struct err *err)
{
	const char *p = text;
	int64_t total = 0, part;
	int last = -1, unit;
	uint64_t number;

	if (!*text)
		return duration_error(text, "is empty", err);
	if (strchr(text, ':'))
		return parse_clock(text, ret_ms, err);
	while (*p) {
		if (*p == '-' || *p == '+')
			return duration_error(text, "has a sign", err);
		if (!is_digit(*p))
			return duration_error(text, "is not a number followed by a unit", err);
		if (!read_number(&p, &number) || number > (uint64_t)duration_max_ms)
			return duration_error(text, "is longer than 10 years", err);
		if (!*p)
			return duration_error(text, "lacks a unit (ms, s, m, h, d, w)", err);
		if (*p == '.' || *p == ',')
			return duration_error(text, "is not whole; use a smaller unit", err);
		unit = find_unit(p);
		if (unit < 0)
			return duration_error(text, "has a unit that is none of ms, s, m, h, d, w",
					      err);
		if (unit <= last)
			return duration_error(text, "must name each unit once, the largest first",
					      err);
		last = unit;
		p += strlen(units[unit].name);
		if (__builtin_mul_overflow((int64_t)number, units[unit].ms, &part) ||
		    __builtin_add_overflow(total, part, &total) || total > duration_max_ms)
			return duration_error(text, "is longer than 10 years", err);
	}
	*ret_ms = total;
	return 0;
}

/* Weeks only where nothing else is needed: 10 days are "10d", not "1w3d". */
static size_t first_unit(uint64_t ms)
{
	return ms % (uint64_t)units[0].ms == 0 ? 0 : 1;
}

static size_t add_unit(char out[DURATION_TEXT_MAX], size_t at, uint64_t number, size_t unit)
{
	return at + (size_t)snprintf(out + at, DURATION_TEXT_MAX - at, "%llu%s",
				     (unsigned long long)number, units[unit].name);
}

const char *format_duration(int64_t ms, char out[DURATION_TEXT_MAX])
{
	uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
	size_t at = 0;

	if (!ms)
		return memcpy(out, "0s", 3);
	if (ms < 0)
		out[at++] = '-';
	for (size_t i = first_unit(left); left; i++) {
		if (left >= (uint64_t)units[i].ms)
			at = add_unit(out, at, left / (uint64_t)units[i].ms, i);
		left %= (uint64_t)units[i].ms;
	}
	return out;
}

const char *format_duration_short(int64_t ms, char out[DURATION_TEXT_MAX])
{
	uint64_t left = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms, next;
	size_t at = 0, i = 1;

	if (!ms)
		return memcpy(out, "0s", 3);
	if (ms < 0)
		out[at++] = '-';
	while (left < (uint64_t)units[i].ms)
		i++;
	at = add_unit(out, at, left / (uint64_t)units[i].ms, i);
	left %= (uint64_t)units[i].ms;
	if (units[i].ms <= 1000) /* a second and some milliseconds: nobody asked */
		return out;
	next = left / (uint64_t)units[i + 1].ms;
	if (next) {
		out[at++] = ' ';
		add_unit(out, at, next, i + 1);
	}
	return out;
}

/* Sizes */

static const uint64_t mib = 1 << 20, size_max_mib = UINT64_C(1) << 40;

static int size_error(const char *text, const char *why, struct err *err)
{
	return err_set(err, ERR_INVALID, "size \"%.60s\" %s; write for example 512MiB or 80GiB",
		       text, why);
}

int parse_size_mib(const char *text, int64_t *ret_mib, struct err *err)
{
	static const struct {
		const char *name;
		uint64_t bytes;
		bool decimal;
	} sizes[] = {
		{ "B", 1, false },
		{ "KiB", 1 << 10, false },
		{ "MiB", 1 << 20, false },
		{ "GiB", 1 << 30, false },
		{ "TiB", UINT64_C(1) << 40, false },
		{ "Ki", 1 << 10, false },
		{ "Mi", 1 << 20, false },
		{ "Gi", 1 << 30, false },
		{ "Ti", UINT64_C(1) << 40, false },
		{ "K", 1 << 10, false },
		{ "M", 1 << 20, false },
		{ "G", 1 << 30, false },
		{ "T", UINT64_C(1) << 40, false },
		{ "MB", 1000000, true },
		{ "GB", 1000000000, true },
	};
	const char *p = text;
	uint64_t number;
	__extension__ unsigned __int128 bytes;

	if (!*text)
		return size_error(text, "is empty", err);
	if (!is_digit(*p))
		return size_error(text, "is not a number followed by a unit", err);
	if (!read_number(&p, &number))
		return size_error(text, "is too large", err);
	if (!*p)
		return size_error(text, "lacks a unit (B, KiB, MiB, GiB, TiB, MB, GB)", err);
	if (*p == '.' || *p == ',')
		return size_error(text, "is not whole; use a smaller unit", err);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (strcmp(p, sizes[i].name) != 0)
			continue;
		bytes = (__extension__(unsigned __int128) number) * sizes[i].bytes;
		if (bytes / mib > size_max_mib)
			return size_error(text, "is too large", err);
		if (bytes && bytes < mib)
			return size_error(text, "is less than 1MiB", err);
		if (!sizes[i].decimal && bytes % mib)
			return size_error(text, "is not a whole number of MiB", err);
		*ret_mib = (int64_t)(bytes / mib);
		return 0;
	}
	return size_error(text, "has a unit that is none of B, KiB, MiB, GiB, TiB, MB, GB", err);
}

const char *format_size_mib(int64_t size_mib, char out[DURATION_TEXT_MAX])
{
	static const char *const names[] = { "MiB", "GiB", "TiB" };
	size_t unit = 0;

	while (size_mib && size_mib % 1024 == 0 && unit + 1 < ARRAY_SIZE(names)) {
		size_mib /= 1024;
		unit++;
	}
	snprintf(out, DURATION_TEXT_MAX, "%lld%s", (long long)size_mib, names[unit]);
	return out;
}

int parse_int(const char *text, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
	bool minus = *text == '-';
	const char *digits = text + minus, *p = digits;
	uint64_t number = 0;
	int64_t value;
	bool fits;

	if (!is_digit(*p) || p[strspn(p, "0123456789")])
		return err_set(err, ERR_INVALID, "\"%.60s\" is not a whole number", text);
	if (*digits == '0' && digits[1])
		return err_set(err, ERR_INVALID, "\"%.60s\" starts with 0; write it without", text);
	fits = read_number(&p, &number) && number <= (uint64_t)INT64_MAX + minus;
	value = minus ? (int64_t)(0 - number) : (int64_t)number;
	if (!fits || value < min || value > max)
		return err_set(err, ERR_INVALID, "%.60s is not between %lld and %lld", text,
			       (long long)min, (long long)max);
	*ret = value;
	return 0;
}

/* Names */

static bool is_alnum(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name_char(char c)
{
	return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

enum { NAME_MAX_BYTES = 63 };

int parse_milli(const char *text, int64_t least, int64_t most, int64_t *ret, struct err *err)
{
	int64_t milli = 0, unit = 100;
	const char *p = text;

	for (; *p >= '0' && *p <= '9' && milli <= most; p++)
		milli = milli * 10 + (*p - '0') * INT64_C(1000);
	if (p > text && *p == '.' && p[1])
		for (p++; *p >= '0' && *p <= '9' && unit; p++, unit /= 10)
			milli += (*p - '0') * unit;
	if (p == text || *p || milli < least || milli > most)
		return err_set(
			err, ERR_INVALID,
			"\"%.40s\" must be a number from %s to %lld, with at most three digits behind the point",
			text, least ? "0.001" : "0", (long long)most / 1000);
	*ret = milli;
	return 0;
}

int parse_name(const char *text, const char *what, struct err *err)
{
	size_t length = strlen(text);

	if (!length)
		return err_set(err, ERR_INVALID, "the %s is empty; a name has 1 to 63 characters",
			       what);
	if (length > NAME_MAX_BYTES)
		return err_set(err, ERR_INVALID,
			       "%s \"%.60s...\" has %zu characters; a name has at most 63", what,
			       text, length);
	if (!is_alnum(text[0]))
		return err_set(err, ERR_INVALID, "%s \"%s\" does not start with a letter or digit",
			       what, text);
	for (size_t i = 0; i < length; i++)
		if (!is_name_char(text[i]))
			return err_set(err, ERR_INVALID,
				       "%s \"%s\" may only have letters a-z A-Z, digits and . _ -",
				       what, text);
	return 0;
}

bool text_is_utf8(const char *text, size_t size)
{
	size_t length;

	for (size_t at = 0; at < size; at += length) {
		length = utf8_size(text + at, size - at);
		if (!length)
			return false;
	}
	return true;
}

bool parse_money(const char *text, int64_t *ret_micro)
{
	int64_t whole = 0, part = 0, scale = 1000000;
	const char *p = text;

	while (*p >= '0' && *p <= '9' && whole < INT64_C(1000000000000))
		whole = whole * 10 + (*p++ - '0');
	if (p == text || whole >= INT64_C(1000000000000))
		return false;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9' && scale > 1; p++) {
			part = part * 10 + (*p - '0');
			scale /= 10;
		}
	*ret_micro = whole * 1000000 + part * scale;
	return !*p;
}

const char *format_money(int64_t micro, char ret[MONEY_TEXT_MAX])
{
	const uint64_t size = micro < 0 ? 0 - (uint64_t)micro : (uint64_t)micro;
	const bool small = size && size < 10000;
	uint64_t cents = (size + 5000) / 10000, whole = small ? 0 : cents / 100;
	char digits[MONEY_TEXT_MAX];
	size_t count = (size_t)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)whole),
	       at = 0;

	if (micro < 0)
		ret[at++] = '-';
	for (size_t i = 0; i < count; i++) {
		ret[at++] = digits[i];
		if (count - i > 1 && (count - i) % 3 == 1)
			ret[at++] = ',';
	}
	if (small)
		(void)snprintf(ret + at, MONEY_TEXT_MAX - at, ".%06u", (unsigned int)size);
	else
		(void)snprintf(ret + at, MONEY_TEXT_MAX - at, ".%02u", (unsigned int)(cents % 100));
	return ret;
}
