/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/calendar.h"

#include <string.h>

#include "base/check.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS (INT64_C(1440) * MINUTE_MS)
#define WEEK_MS (INT64_C(7) * DAY_MS)

enum { PART_MAX = 40 };

/* --- reading ------------------------------------------------------------------------------------------ */

static int part_error(struct err *err, const char *part)
{
	return err_set(
		err, ERR_INVALID,
		"calendar: \"%.40s\" is not understood; a part is like \"mon-fri 20:00-08:00\", \"sat-sun\", "
		"\"12:00-13:00\", \"utc+1\" or \"overrun\"",
		part);
}

/* The number at *p, at most `most`; false when there is none. */
static bool take_number(const char **p, int64_t most, int64_t *ret)
{
	int64_t value = 0;
	const char *from = *p;

	while (**p >= '0' && **p <= '9' && *p - from < 2)
		value = value * 10 + (*(*p)++ - '0');
	*ret = value;
	return *p > from && value <= most;
}

/* "8:30" as minutes; the minutes may be missing only where `short_form`. */
static bool take_clock(const char **p, int64_t most_hours, bool short_form, int64_t *ret)
{
	int64_t hours, minutes = 0;

	if (!take_number(p, most_hours, &hours))
		return false;
	if (**p == ':') {
		(*p)++;
		if (!take_number(p, 59, &minutes))
			return false;
	} else if (!short_form) {
		return false;
	}
	*ret = hours * 60 + minutes;
	return *ret <= most_hours * 60;
}

static bool take_day(const char **p, int *ret)
{
	static const char *const days[] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" };

	for (int i = 0; i < (int)ARRAY_SIZE(days); i++)
		if (strncmp(*p, days[i], 3) == 0) {
			*p += 3;
			*ret = i;
			return true;
		}
	return false;
}

static bool take_char(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static int windows_add(struct calendar *c, int first, int last, int64_t start, int64_t end,
		       struct err *err)
{
	int days = (last - first + 7) % 7 + 1;

	if (c->count + (uint32_t)days > CALENDAR_WINDOWS_MAX)
		return err_set(
			err, ERR_INVALID,
			"calendar: more than %d windows in a week; days can be joined: mon-fri",
			CALENDAR_WINDOWS_MAX);
	for (int i = 0; i < days; i++) {
		int64_t day_ms = (first + i) % 7 * DAY_MS;

		c->window[c->count++] = (struct calendar_window){ day_ms + start * MINUTE_MS,
								  day_ms + end * MINUTE_MS };
	}
	return 0;
}

/* "mon-fri 20:00-08:00", "sat", "12:00-13:00". */
static int window_parse(struct calendar *c, const char *part, struct err *err)
{
	int first = 0, last = 6;
	int64_t start = 0, end = 1440;
	const char *p = part;

	if (take_day(&p, &first)) {
		last = first;
		if (take_char(&p, '-') && !take_day(&p, &last))
			return part_error(err, part);
		if (*p && *p != ' ')
			return part_error(err, part);
		while (take_char(&p, ' '))
			;
	} else if (!*p) {
		return part_error(err, part);
	}
	if (*p && (!take_clock(&p, 24, false, &start) || !take_char(&p, '-') ||
		   !take_clock(&p, 24, false, &end) || start == 1440))
		return part_error(err, part);
	if (*p)
		return part_error(err, part);
	return windows_add(c, first, last, start, end > start ? end : end + 1440, err);
}

static int part_parse(struct calendar *c, const char *part, struct err *err)
{
	const char *p = part + 3;
	int64_t minutes;
	bool west;

	if (strcmp(part, "overrun") == 0) {
		c->overrun = true;
		return 0;
	}
	if (strncmp(part, "utc", 3) != 0)
		return window_parse(c, part, err);
	west = *p == '-';
	if (!*p)
		return 0;
	if ((!take_char(&p, '+') && !take_char(&p, '-')) || !take_clock(&p, 14, true, &minutes) ||
	    *p)
		return part_error(err, part);
	c->ahead_ms = (west ? -minutes : minutes) * MINUTE_MS;
	return 0;
}

static void windows_sort(struct calendar *c)
{
	for (uint32_t i = 1; i < c->count; i++) {
		struct calendar_window moved = c->window[i];
		uint32_t at = i;

		for (; at > 0 && c->window[at - 1].start_ms > moved.start_ms; at--)
			c->window[at] = c->window[at - 1];
		c->window[at] = moved;
	}
}

/* Joins those that touch; the last one may reach into the first ones of the week after. */
static void windows_join(struct calendar *c)
{
	uint32_t count = 0, first = 0;

	windows_sort(c);
	for (uint32_t i = 0; i < c->count; i++) {
		struct calendar_window *before = count ? &c->window[count - 1] : NULL;

		if (!before || c->window[i].start_ms > before->end_ms)
			c->window[count++] = c->window[i];
		else if (c->window[i].end_ms > before->end_ms)
			before->end_ms = c->window[i].end_ms;
	}
	while (first + 1 < count &&
	       c->window[first].start_ms + WEEK_MS <= c->window[count - 1].end_ms) {
		int64_t end_ms = c->window[first++].end_ms + WEEK_MS;

		if (end_ms > c->window[count - 1].end_ms)
			c->window[count - 1].end_ms = end_ms;
	}
	c->count = count - first;
	memmove(c->window, c->window + first, c->count * sizeof(c->window[0]));
	c->always = !c->count ||
		    c->window[c->count - 1].end_ms >= c->window[c->count - 1].start_ms + WEEK_MS;
}

/* Bytes up to the next comma, and without the blanks around them. */
static const char *part_next(const char **text, size_t *ret_size)
{
	const char *first = *text, *end;

	while (*first == ' ')
		first++;
	for (end = first; *end && *end != ',';)
		end++;
	*text = *end ? end + 1 : end;
	while (end > first && end[-1] == ' ')
		end--;
	*ret_size = (size_t)(end - first);
	return first;
}

int calendar_parse(const char *text, struct calendar *ret, struct err *err)
{
	char part[PART_MAX + 1];

	*ret = (struct calendar){ .count = 0 };
	if (strlen(text) > CALENDAR_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE, "calendar: more than %d bytes",
			       CALENDAR_TEXT_MAX);
	while (*text) {
		size_t size;
		const char *from = part_next(&text, &size);

		if (size > PART_MAX)
			return part_error(err, from);
		memcpy(part, from, size);
		part[size] = '\0';
		if (part_parse(ret, part, err) < 0)
			return -(int)ERR_INVALID;
	}
	windows_join(ret);
	return 0;
}

/* --- questions ------------------------------------------------------------------------------------------ */

/* Since Monday 00:00 on its clock; 1970-01-01 was a Thursday. */
static int64_t week_ms(const struct calendar *c, int64_t at_ms)
{
	int64_t in_week = (at_ms + c->ahead_ms + 3 * DAY_MS) % WEEK_MS;

	return in_week < 0 ? in_week + WEEK_MS : in_week;
}

int64_t calendar_start_ms(const struct calendar *c, int64_t from_ms, int64_t length_ms)
{
	int64_t now = week_ms(c, from_ms), best = -1;

	if (c->always)
		return from_ms;
	for (uint32_t i = 0; i < c->count; i++)
		for (int64_t week = -1; week <= 1; week++) {
			int64_t start = c->window[i].start_ms + week * WEEK_MS,
				end = c->window[i].end_ms + week * WEEK_MS;

			start = start > now ? start : now;
			if (start >= end || (!c->overrun && length_ms > end - start))
				continue;
			if (best < 0 || start - now < best)
				best = start - now;
		}
	return best < 0 ? -1 : from_ms + best;
}

bool calendar_is_open(const struct calendar *c, int64_t at_ms)
{
	return calendar_start_ms(c, at_ms, 0) == at_ms;
}

int64_t calendar_closes_ms(const struct calendar *c, int64_t at_ms)
{
	int64_t now = week_ms(c, at_ms);

	if (c->always)
		return INT64_MAX;
	for (uint32_t i = 0; i < c->count; i++)
		for (int64_t week = -1; week <= 1; week++)
			if (c->window[i].start_ms + week * WEEK_MS <= now &&
			    c->window[i].end_ms + week * WEEK_MS > now)
				return at_ms + c->window[i].end_ms + week * WEEK_MS - now;
	return at_ms;
}

int64_t calendar_longest_ms(const struct calendar *c)
{
	int64_t longest = 0;

	if (c->always || c->overrun)
		return INT64_MAX;
	for (uint32_t i = 0; i < c->count; i++) {
		int64_t length = c->window[i].end_ms - c->window[i].start_ms;

		longest = length > longest ? length : longest;
	}
	return longest;
}
