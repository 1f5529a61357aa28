/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zone.h"

#include <string.h>

#include "base/check.h"
#include "base/moment.h"

/*
 * A zone file holds its contents twice: first with times of 4 bytes, for programs of old, then with times of 8 bytes, and behind these
 * the rule by which the clocks go on after the last time: "CET-1CEST,M3.5.0,M10.5.0/3". All numbers are big-endian.
 */

#define SECOND_MS INT64_C(1000)
#define DAY_S INT64_C(86400)

enum { HEAD_BYTES = 44, TYPE_BYTES = 6, YEAR_FIRST = 2000, YEAR_END = 2100 };

bool zone_name_is_sound(const char *name)
{
	size_t size = strlen(name);

	if (!size || size > ZONE_NAME_MAX || name[0] < 'A' || name[0] > 'Z')
		return false;
	for (size_t i = 0; i < size; i++) {
		const char c = name[i];
		const bool letter =
			(c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!letter && c != '_' && c != '-' && c != '+' &&
		    (c != '/' || i + 1 == size || name[i + 1] == '/'))
			return false;
	}
	return true;
}

static bool ahead_is_sound(int64_t ahead_ms)
{
	return ahead_ms >= -ZONE_AHEAD_MAX_MS && ahead_ms <= ZONE_AHEAD_MAX_MS;
}

bool zone_is_sound(int64_t before_ms, const int64_t *at_ms, const int64_t *ahead_ms, uint32_t count)
{
	if (count > ZONE_CHANGES_MAX || !ahead_is_sound(before_ms))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!ahead_is_sound(ahead_ms[i]) || at_ms[i] < 0 || at_ms[i] > INT64_MAX / 4 ||
		    (i && at_ms[i] - at_ms[i - 1] <= ZONE_APART_MS))
			return false;
	return true;
}

/* --- changes, in the order in which they come --------------------------------------------------------------- */

static int64_t year_s(int64_t year)
{
	return moment_days(year, 1, 1) * DAY_S;
}

static int64_t ahead_last_ms(const struct zone_rules *z)
{
	return z->count ? z->ahead_ms[z->count - 1] : z->before_ms;
}

/* One that changes nothing is left out; two at the same moment are one. */
static int change_add(struct zone_rules *z, int64_t at_s, int64_t ahead_s, struct err *err)
{
	if (at_s < year_s(YEAR_FIRST)) {
		z->before_ms = ahead_s * SECOND_MS;
		return 0;
	}
	if (at_s >= year_s(YEAR_END))
		return 0;
	if (z->count && z->at_ms[z->count - 1] == at_s * SECOND_MS)
		z->count--;
	if (ahead_last_ms(z) == ahead_s * SECOND_MS)
		return 0;
	if (z->count == ZONE_CHANGES_MAX)
		return err_set(err, ERR_INVALID,
			       "the clocks change more than %d times in a century",
			       ZONE_CHANGES_MAX);
	z->at_ms[z->count] = at_s * SECOND_MS;
	z->ahead_ms[z->count++] = ahead_s * SECOND_MS;
	return 0;
}

/* --- the rule for the years to come -------------------------------------------------------------------------- */

struct day_rule {
	char kind; /* M: month, week, day of the week; J: day 1..365, the leap day never counts; 0: day 0..365 */
	int64_t month, week, day;
	int64_t time_s; /* since the beginning of that day, by the clock before the change */
};

struct year_rule {
	int64_t usual_s, summer_s; /* ahead of UTC */
	bool changes;
	struct day_rule begins, ends; /* of summer time */
};

static bool take_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static bool take_number(const char **p, int64_t least, int64_t most, int64_t *ret)
{
	const char *from = *p;
	int64_t value = 0;

	while (**p >= '0' && **p <= '9' && *p - from < 4)
		value = value * 10 + (*(*p)++ - '0');
	*ret = value;
	return *p > from && value >= least && value <= most;
}

/* "-1", "+5:30", "02:00:00"; in seconds. */
static bool take_time(const char **p, int64_t most_hours, int64_t *ret_s)
{
	int64_t hours, minutes = 0, seconds = 0;
	const bool minus = **p == '-';

	if (!take_char(p, '-'))
		(void)take_char(p, '+');
	if (!take_number(p, 0, most_hours, &hours))
		return false;
	if (take_char(p, ':') && !take_number(p, 0, 59, &minutes))
		return false;
	if (take_char(p, ':') && !take_number(p, 0, 59, &seconds))
		return false;
	*ret_s = hours * 3600 + minutes * 60 + seconds;
	if (minus)
		*ret_s = -*ret_s;
	return true;
}

/* "CET", "<+0330>". */
static bool take_short_name(const char **p)
{
	const char *from = *p;

	if (take_char(p, '<')) {
		while (**p && **p != '>')
			(*p)++;
		return take_char(p, '>');
	}
	while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z'))
		(*p)++;
	return *p - from >= 3;
}

static bool take_day_rule(const char **p, struct day_rule *ret)
{
	*ret = (struct day_rule){ .kind = '0', .time_s = 2 * 3600 };
	if (!take_char(p, ','))
		return false;
	if (take_char(p, 'M')) {
		ret->kind = 'M';
		if (!take_number(p, 1, 12, &ret->month) || !take_char(p, '.') ||
		    !take_number(p, 1, 5, &ret->week) || !take_char(p, '.') ||
		    !take_number(p, 0, 6, &ret->day))
			return false;
	} else if (take_char(p, 'J')) {
		ret->kind = 'J';
		if (!take_number(p, 1, 365, &ret->day))
			return false;
	} else if (!take_number(p, 0, 365, &ret->day)) {
		return false;
	}
	return !take_char(p, '/') || take_time(p, 167, &ret->time_s);
}

static bool year_rule_parse(const char *p, struct year_rule *ret)
{
	int64_t west_s;

	*ret = (struct year_rule){ .changes = false };
	if (!take_short_name(&p) || !take_time(&p, 24, &west_s))
		return false;
	ret->usual_s = -west_s;
	if (!*p)
		return true;
	ret->changes = true;
	ret->summer_s = ret->usual_s + 3600;
	if (!take_short_name(&p))
		return false;
	if (*p != ',') {
		if (!take_time(&p, 24, &west_s))
			return false;
		ret->summer_s = -west_s;
	}
	return take_day_rule(&p, &ret->begins) && take_day_rule(&p, &ret->ends) && !*p;
}

/* Days since 1970 of the rule's day in this year. */
static int64_t rule_day(const struct day_rule *rule, int64_t year)
{
	int64_t first, days, at;

	if (rule->kind != 'M') {
		const bool leap = moment_days(year, 3, 1) - moment_days(year, 2, 1) == 29;

		first = moment_days(year, 1, 1);
		if (rule->kind == '0')
			return first + rule->day;
		return first + rule->day - 1 + (leap && rule->day >= 60);
	}
	first = moment_days(year, rule->month, 1);
	days = (rule->month == 12 ? moment_days(year + 1, 1, 1)
				  : moment_days(year, rule->month + 1, 1)) -
	       first;
	at = (rule->day - (first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
	at += 7 * (rule->week - 1);
	while (at >= days)
		at -= 7;
	return first + at;
}

/* The changes of the rule after `from_s`, which is the last one that the file lists. */
static int years_add(struct zone_rules *z, const struct year_rule *rule, int64_t from_s,
		     struct err *err)
{
	int64_t year, unused;
	int rc = 0;

	if (!rule->changes)
		return change_add(z, from_s < year_s(YEAR_FIRST) ? from_s : from_s + 1,
				  rule->usual_s, err);
	moment_date((from_s < year_s(YEAR_FIRST) ? year_s(YEAR_FIRST) : from_s) / DAY_S, &year,
		    &unused, &unused);
	for (year--; rc >= 0 && year <= YEAR_END; year++) {
		const int64_t begins_s =
			rule_day(&rule->begins, year) * DAY_S + rule->begins.time_s - rule->usual_s;
		const int64_t ends_s =
			rule_day(&rule->ends, year) * DAY_S + rule->ends.time_s - rule->summer_s;
		const bool north = begins_s < ends_s;
		const int64_t first_s = north ? begins_s : ends_s,
			      second_s = north ? ends_s : begins_s;

		if (first_s > from_s)
			rc = change_add(z, first_s, north ? rule->summer_s : rule->usual_s, err);
		if (rc >= 0 && second_s > from_s)
			rc = change_add(z, second_s, north ? rule->usual_s : rule->summer_s, err);
	}
	return rc;
}

/* --- the file ---------------------------------------------------------------------------------------------------- */

struct block {
	const unsigned char *times, *which, *types;
	uint32_t count, type_count;
	size_t bytes; /* with its head */
};

static int64_t number_at(const unsigned char *p, size_t bytes)
{
	uint64_t value = p[0] & 0x80 ? UINT64_MAX : 0;

	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | p[i];
	return (int64_t)value;
}

/* One of the two blocks; false: it is none, or is cut off. */
static bool block_read(const unsigned char *data, size_t size, size_t time_bytes, struct block *ret)
{
	uint64_t counts[6], bytes = HEAD_BYTES;

	if (size < HEAD_BYTES || memcmp(data, "TZif", 4) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		counts[i] = (uint64_t)number_at(data + 20 + 4 * i, 4);
		if (counts[i] > size)
			return false;
	}
	ret->count = (uint32_t)counts[3];
	ret->type_count = (uint32_t)counts[4];
	bytes += counts[3] * (time_bytes + 1) + counts[4] * TYPE_BYTES + counts[5] +
		 counts[2] * (time_bytes + 4) + counts[1] + counts[0];
	if (bytes > size || !ret->type_count)
		return false;
	ret->times = data + HEAD_BYTES;
	ret->which = ret->times + ret->count * time_bytes;
	ret->types = ret->which + ret->count;
	ret->bytes = (size_t)bytes;
	return true;
}

static int block_add(struct zone_rules *z, const struct block *block, size_t time_bytes,
		     int64_t *ret_last_s, struct err *err)
{
	int64_t before_s = INT64_MIN;
	int rc = 0;

	z->before_ms = number_at(block->types, 4) * SECOND_MS;
	for (uint32_t i = 0; rc >= 0 && i < block->count; i++) {
		const int64_t at_s = number_at(block->times + i * time_bytes, time_bytes);
		const uint32_t type = block->which[i];

		if (type >= block->type_count || (i && at_s <= before_s))
			return err_set(err, ERR_INVALID, "its changes are not in order");
		before_s = at_s;
		rc = change_add(z, at_s, number_at(block->types + type * (size_t)TYPE_BYTES, 4),
				err);
	}
	*ret_last_s = block->count ? before_s : INT64_MIN / 2;
	return rc;
}

/* Behind the second block, between two ends of lines; "" where the file says none. */
static int footer_add(struct zone_rules *z, const unsigned char *data, size_t size, int64_t last_s,
		      struct err *err)
{
	struct year_rule rule;
	char text[128];
	size_t length = 0;

	if (size < 2 || data[0] != '\n')
		return err_set(err, ERR_INVALID, "its end is missing");
	while (1 + length < size && data[1 + length] != '\n')
		length++;
	if (1 + length == size || length >= sizeof(text))
		return err_set(err, ERR_INVALID, "its end is missing");
	if (!length)
		return 0;
	memcpy(text, data + 1, length);
	text[length] = '\0';
	if (strlen(text) != length || !year_rule_parse(text, &rule))
		return err_set(err, ERR_INVALID,
			       "its rule for the years to come is not understood");
	return years_add(z, &rule, last_s, err);
}

int zone_parse(const void *data, size_t size, struct zone_rules *ret, struct err *err)
{
	const unsigned char *p = data;
	struct block block;
	int64_t last_s;
	int rc;

	*ret = (struct zone_rules){ .count = 0 };
	if (!block_read(p, size, 4, &block))
		return err_set(err, ERR_INVALID, "it is no zone file, or is cut off");
	if (p[4] >= '2') {
		const size_t first = block.bytes;

		if (!block_read(p + first, size - first, 8, &block))
			return err_set(err, ERR_INVALID, "it is cut off");
		rc = block_add(ret, &block, 8, &last_s, err);
		if (rc >= 0)
			rc = footer_add(ret, p + first + block.bytes, size - first - block.bytes,
					last_s, err);
	} else {
		rc = block_add(ret, &block, 4, &last_s, err);
	}
	if (rc < 0)
		return rc;
	if (!zone_is_sound(ret->before_ms, ret->at_ms, ret->ahead_ms, ret->count))
		return err_set(err, ERR_INVALID, "its changes follow each other too closely");
	return 0;
}
