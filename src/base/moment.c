/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include <stdio.h>
#include <string.h>

#include "base/parse.h"

/* Digits at *p, exactly so many, within bounds. */
static bool digits_take(const char **p, int count, int64_t least, int64_t most, int64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < count; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*ret = *ret * 10 + (**p - '0');
	}
	return *ret >= least && *ret <= most;
}

static bool char_take(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Years that begin in March: the leap day is the last one, and month lengths follow a line (153 days in 5 months). */
int64_t moment_days(int64_t year, int64_t month, int64_t day)
{
	int64_t y = month <= 2 ? year - 1 : year, era = floor_div(y, 400), of_era = y - era * 400,
		of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

void moment_date(int64_t days, int64_t *ret_year, int64_t *ret_month, int64_t *ret_day)
{
	int64_t z = days + 719468, era = floor_div(z, 146097), of_era = z - era * 146097,
		year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365,
		of_year = of_era - (365 * year + year / 4 - year / 100),
		month = (5 * of_year + 2) / 153;

	*ret_day = of_year - (153 * month + 2) / 5 + 1;
	*ret_month = month < 10 ? month + 3 : month - 9;
	*ret_year = year + era * 400 + (*ret_month <= 2);
}

/* "Z", "+02:00", nothing; in minutes. False when it is none of these. */
static bool zone_take(const char **p, int64_t *ret_minutes, bool *ret_own)
{
	int64_t hours, minutes;
	bool west = **p == '-';

	*ret_minutes = 0;
	*ret_own = !**p;
	if (*ret_own || char_take(p, 'Z'))
		return true;
	if ((!char_take(p, '+') && !char_take(p, '-')) || !digits_take(p, 2, 0, 14, &hours) ||
	    !char_take(p, ':') || !digits_take(p, 2, 0, 59, &minutes))
		return false;
	*ret_minutes = west ? -(hours * 60 + minutes) : hours * 60 + minutes;
	return true;
}

int moment_parse(const char *p, int64_t *ret_ms)
{
	int64_t year, month, day, hour, minute, second = 0, ahead, days, next;
	bool own;

	if (!digits_take(&p, 4, 1970, 2999, &year) || !char_take(&p, '-') ||
	    !digits_take(&p, 2, 1, 12, &month) || !char_take(&p, '-') ||
	    !digits_take(&p, 2, 1, 31, &day) || (!char_take(&p, 'T') && !char_take(&p, ' ')) ||
	    !digits_take(&p, 2, 0, 23, &hour) || !char_take(&p, ':') ||
	    !digits_take(&p, 2, 0, 59, &minute) ||
	    (char_take(&p, ':') && !digits_take(&p, 2, 0, 59, &second)) ||
	    !zone_take(&p, &ahead, &own) || *p)
		return -(int)ERR_INVALID;
	days = moment_days(year, month, day);
	next = month == 12 ? moment_days(year + 1, 1, 1) : moment_days(year, month + 1, 1);
	if (days >= next)
		return -(int)ERR_INVALID;
	*ret_ms = (((days * 24 + hour) * 60 + minute - ahead) * 60 + second) * 1000;
	return own ? MOMENT_OWN_CLOCK : 0;
}

const char *moment_format(int64_t ms, char ret[MOMENT_TEXT_MAX])
{
	int64_t seconds = ms / 1000 + (ms % 1000 > 0), days = seconds / 86400, year, month, day;

	moment_date(days, &year, &month, &day);
	if (year > 9999)
		return memcpy(ret, "9999-12-31T23:59:59Z", sizeof("9999-12-31T23:59:59Z"));
	seconds -= days * 86400;
	(void)snprintf(ret, MOMENT_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02dZ", (int)year,
		       (int)month, (int)day, (int)(seconds / 3600), (int)(seconds / 60 % 60),
		       (int)(seconds % 60));
	return ret;
}

/* "at 2026-11-27T18:20:05Z" at the beginning of the text; the bytes that it takes, 0 = something else. */
static size_t moment_size(const char *text, int64_t *ret_ms)
{
	static const char form[] = "at 2026-11-27T18:20:05Z";
	char moment[sizeof(form)] = "";

	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		const bool digit = form[i] >= '0' && form[i] <= '9';

		if (digit ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return 0;
		moment[i] = text[i];
	}
	/* moment_parse takes years until 2999: later ones are as far away */
	if (moment[3] > '2')
		moment[3] = '2';
	return moment_parse(moment + 3, ret_ms) == 0 ? sizeof(form) - 1 : 0;
}

void moment_count_down(struct buf *out, const char *sentence, int64_t now_ms)
{
	char duration[DURATION_TEXT_MAX];
	size_t size;
	int64_t ms;

	for (const char *at = sentence; *at; at += size ? size : 1) {
		size = at == sentence || at[-1] == ' ' ? moment_size(at, &ms) : 0;
		if (!size)
			buf_addc(out, *at);
		else if (ms <= now_ms)
			buf_adds(out, "any moment");
		else
			buf_addf(
				out, "in %s",
				format_duration_short((ms - now_ms + 999) / 1000 * 1000, duration));
	}
}
