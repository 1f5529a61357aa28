/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities, to the billionth: what engine/kubernetes/quantity.h rounds has to be exact where it is compared with what somebody wrote. */
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/cel/value.h"

enum {
	DIGITS_MAX = 27
}; /* before and behind the point, zeroes in front left out: fits in 128 bits with all factors refused that don't */

static const struct {
	const char *name;
	int tens, twos; /* power of billionths */
} units[] = {
	{ "", 9, 0 },    { "n", 0, 0 },   { "u", 3, 0 },   { "m", 6, 0 },
	{ "k", 12, 0 },  { "M", 15, 0 },  { "G", 18, 0 },  { "T", 21, 0 },
	{ "P", 24, 0 },  { "E", 27, 0 },  { "Ki", 9, 10 }, { "Mi", 9, 20 },
	{ "Gi", 9, 30 }, { "Ti", 9, 40 }, { "Pi", 9, 50 }, { "Ei", 9, 60 },
};

struct digits {
	nano128 value;
	int tens; /* of its last digit */
	int before, behind; /* the point: without zeroes in front, and at the end */
	bool any, lost;
};

static size_t read_digits(const struct string *text, size_t at, struct digits *ret)
{
	bool point = false;
	int kept = 0, places = 0;

	for (; at < text->size; at++) {
		char c = text->data[at];

		if (c == '.' && !point) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		ret->any = true;
		places += point;
		if (point && c != '0')
			ret->behind = places;
		if (kept == DIGITS_MAX) {
			ret->lost = true;
			continue;
		}
		ret->value = ret->value * 10 + (c - '0');
		kept += ret->value != 0;
		ret->before += !point && ret->value != 0;
		ret->tens -= point;
	}
	return at;
}

/*
 * Kubernetes keeps a number of 64 bits with a power of ten, where it is sure that this is enough, and something larger elsewhere; only
 * the first without places behind the point is whole to it. The limits are those of its parser (resource.ParseQuantity).
 */
static enum wholeness wholeness_of(const struct digits *digits, int tens, int twos, nano128 value)
{
	int written = digits->before + digits->behind;

	if (twos && (digits->behind || 15 - digits->before - twos * 3 / 10 - 1 < 0))
		return NOT_WHOLE;
	if (!twos && (18 - written < 0 || tens - digits->behind < 9))
		return NOT_WHOLE;
	return value / 1000000000 < INT64_MAX ? WHOLE : NOT_WHOLE;
}

/* e3, E-2: behind the letter; 0, or the size of the text when it is no exponent. */
static bool read_exponent(const char *at, size_t size, int *ret)
{
	bool minus = size && *at == '-';
	int exponent = 0;

	if (size && (*at == '-' || *at == '+')) {
		at++;
		size--;
	}
	if (!size)
		return false;
	for (size_t i = 0; i < size; i++) {
		if (at[i] < '0' || at[i] > '9')
			return false;
		if (exponent < 1000)
			exponent = exponent * 10 + (at[i] - '0');
	}
	*ret = minus ? -exponent : exponent;
	return true;
}

static int find_unit(const char *at, size_t size, int *ret_tens, int *ret_twos)
{
	int exponent;

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strlen(units[i].name) == size && memcmp(units[i].name, at, size) == 0) {
			*ret_tens = units[i].tens;
			*ret_twos = units[i].twos;
			return 0;
		}
	if (!size || (*at != 'e' && *at != 'E') || !read_exponent(at + 1, size - 1, &exponent))
		return 1;
	*ret_tens = 9 + exponent;
	*ret_twos = 0;
	return 0;
}

/* value * 10^tens * 2^twos, exactly; 2 = can't be kept. */
static int scale(nano128 value, int tens, int twos, nano128 *ret)
{
	if (value == 0)
		tens = twos = 0;
	for (; twos > 0; twos--)
		if (__builtin_mul_overflow(value, 2, &value))
			return 2;
	for (; tens > 0; tens--)
		if (__builtin_mul_overflow(value, 10, &value))
			return 2;
	for (; tens < 0; tens++) {
		if (value % 10)
			return 2;
		value /= 10;
	}
	*ret = value;
	return 0;
}

int quantity_read(const struct string *text, nano128 *ret, enum wholeness *ret_whole)
{
	struct digits digits = { 0 };
	bool minus = text->size && text->data[0] == '-';
	size_t at = minus || (text->size && text->data[0] == '+');
	int tens, twos, rc;

	at = read_digits(text, at, &digits);
	if (!text->size || find_unit(text->data + at, text->size - at, &tens, &twos) != 0)
		return 1;
	/* Kubernetes keeps the largest amount where one is larger, and has an opinion on "." */
	if (!digits.any || digits.lost || tens > 60 || tens < -60)
		return 2;
	rc = scale(digits.value, digits.tens + tens, twos, ret);
	if (rc == 0 && *ret / 1000000000 >= INT64_MAX)
		return 2;
	if (rc != 0)
		return rc;
	*ret_whole = wholeness_of(&digits, tens, twos, *ret);
	if (minus)
		*ret = -*ret;
	return 0;
}
