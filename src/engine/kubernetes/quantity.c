/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/quantity.h"

#include <stdbool.h>
#include <string.h>

#include "base/check.h"

/* The units as powers: thousandths of one in 10^tens * 2^twos. */
static const struct {
	const char *name;
	int tens, twos;
} units[] = {
	{ "", 3, 0 },    { "n", -6, 0 },  { "u", -3, 0 },  { "m", 0, 0 },
	{ "k", 6, 0 },   { "M", 9, 0 },   { "G", 12, 0 },  { "T", 15, 0 },
	{ "P", 18, 0 },  { "E", 21, 0 },  { "Ki", 3, 10 }, { "Mi", 3, 20 },
	{ "Gi", 3, 30 }, { "Ti", 3, 40 }, { "Pi", 3, 50 }, { "Ei", 3, 60 },
};

enum { DIGITS_MAX = 18, EXPONENT_MAX = 30 };

struct number {
	uint64_t digits;
	int tens; /* of its last digit */
};

/* At most DIGITS_MAX of them are kept, the rest counts as if it were a bit more. */
static bool read_digits(const char **at, struct number *ret)
{
	bool any = false, point = false, lost = false;
	int kept = 0;

	for (; **at; (*at)++) {
		char c = **at;

		if (c == '.' && !point) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		any = true;
		if (kept == DIGITS_MAX) {
			lost |= c != '0';
			ret->tens += !point;
			continue;
		}
		ret->digits = ret->digits * 10 + (uint64_t)(c - '0');
		kept += ret->digits != 0;
		ret->tens -= point;
	}
	ret->digits += lost;
	return any;
}

static bool read_exponent(const char **at, int *tens)
{
	const char *p = *at + 1;
	bool minus = *p == '-';
	int exponent = 0;

	if (*p == '-' || *p == '+')
		p++;
	if (*p < '0' || *p > '9')
		return false;
	for (; *p >= '0' && *p <= '9'; p++)
		exponent = exponent > EXPONENT_MAX ? exponent : exponent * 10 + (*p - '0');
	*tens += minus ? -exponent : exponent;
	*at = p;
	return true;
}

static int64_t scale(uint64_t value, int tens, int twos)
{
	bool part = false;

	for (; tens < 0 && value; tens++) {
		/* twos first, so that no part of one is lost that they would make whole */
		while (twos > 0 && value <= UINT64_MAX / 2) {
			value *= 2;
			twos--;
		}
		part |= value % 10 != 0;
		value /= 10;
	}
	value += part;
	for (; twos > 0 && value <= INT64_MAX; twos--)
		value = value <= INT64_MAX / 2 ? value * 2 : UINT64_MAX;
	for (; tens > 0 && value && value <= INT64_MAX; tens--)
		value = value <= INT64_MAX / 10 ? value * 10 : UINT64_MAX;
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

int quantity_parse(const char *text, int64_t *ret_milli)
{
	struct number number = { 0 };
	bool minus = *text == '-', whole;

	if (*text == '-' || *text == '+')
		text++;
	if (!read_digits(&text, &number))
		return -(int)ERR_INVALID;
	whole = (*text == 'e' || *text == 'E') && read_exponent(&text, &number.tens);
	for (size_t i = 0; i < (whole ? 1 : ARRAY_SIZE(units)); i++) {
		int64_t milli;

		if (strcmp(text, units[i].name) != 0)
			continue;
		milli = scale(number.digits, number.tens + units[i].tens, units[i].twos);
		*ret_milli = minus ? -milli : milli;
		return 0;
	}
	return -(int)ERR_INVALID;
}
