/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/queues/calendar.h"

#include <string.h>

#include "base/check.h"
#include "core/model/facts.h"

#define MINUTE_MS INT64_C(60000)
#define DAY_MS (INT64_C(1440) * MINUTE_MS)
#define WEEK_MS (INT64_C(7) * DAY_MS)

enum {
	PART_MAX = 40,
	WEEKS_AHEAD = 2
}; /* in the next week clocks may change, and a window be shorter */

/* --- reading ------------------------------------------------------------------------------------------ */

static int part_error(struct err *err, const char *part)
{
	return err_set(
		err, ERR_INVALID,
		"calendar: \"%.40s\" is not understood; a part is like \"mon-fri 20:00-08:00\", \"sat-sun\", "
		"\"12:00-13:00\", \"Europe/Berlin\", \"utc+1\" or \"overrun\"",
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

static int two_clocks(struct err *err, const char *one, const char *other)
{
	return err_set(err, ERR_INVALID,
		       "calendar: \"%s\" and \"%s\" are two clocks; it is read by one", one, other);
}

/* The text of every calendar that was ever accepted stays readable: a second "utc" counts, as it always did. */
static int zone_take(struct calendar *c, const char *part, struct err *err)
{
	if (!zone_name_is_sound(part))
		return part_error(err, part);
	if (c->zone_name[0] || c->ahead_ms)
		return two_clocks(err, c->zone_name[0] ? c->zone_name : "utc", part);
	memcpy(c->zone_name, part, strlen(part) + 1);
	return 0;
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
	if (part[0] >= 'A' && part[0] <= 'Z')
		return zone_take(c, part, err);
	if (strncmp(part, "utc", 3) != 0)
		return window_parse(c, part, err);
	if (c->zone_name[0])
		return two_clocks(err, c->zone_name, part);
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

int calendar_read(const struct facts *facts, const char *text, struct calendar *ret,
		  struct err *err)
{
	int rc = calendar_parse(text, ret, err);

	if (rc < 0 || !ret->zone_name[0])
		return rc;
	ret->zone = facts_zone_find(facts, ret->zone_name);
	if (ret->zone)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "calendar: the clock of \"%s\" is not known",
		       ret->zone_name);
}

/* --- clocks --------------------------------------------------------------------------------------------- */

/* How many of its changes came until then. */
static uint32_t changes_until(const struct zone *z, int64_t at_ms)
{
	uint32_t first = 0, end = z->count;

	while (first < end) {
		uint32_t middle = (first + end) / 2;

		if (z->at_ms[middle] <= at_ms)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static int64_t zone_ahead_ms(const struct zone *z, uint32_t changes)
{
	return changes ? z->then_ms[changes - 1] : z->before_ms;
}

/* What the clock shows. */
static int64_t clock_ms(const struct calendar *c, int64_t at_ms)
{
	return at_ms +
	       (c->zone ? zone_ahead_ms(c->zone, changes_until(c->zone, at_ms)) : c->ahead_ms);
}

/* The first moment at which it shows that, or more. Changes are days apart, so it lies between those around a guess by UTC. */
static int64_t moment_ms(const struct calendar *c, int64_t shown_ms)
{
	const struct zone *z = c->zone;
	uint32_t changes;
	int64_t at_ms;

	if (!z)
		return shown_ms - c->ahead_ms;
	changes = changes_until(z, shown_ms - ZONE_AHEAD_MAX_MS);
	at_ms = shown_ms - zone_ahead_ms(z, changes);
	for (; changes < z->count && at_ms >= z->at_ms[changes]; changes++) {
		at_ms = shown_ms - z->then_ms[changes];
		if (at_ms < z->at_ms[changes])
			at_ms = z->at_ms[changes]; /* it jumped over that time */
	}
	return at_ms;
}

/* --- questions ------------------------------------------------------------------------------------------ */

/* When the week began by its clock, Monday 00:00, as the clock shows it; 1970-01-01 was a Thursday. */
static int64_t week_ms(const struct calendar *c, int64_t at_ms)
{
	int64_t shown_ms = clock_ms(c, at_ms), in_week = (shown_ms + 3 * DAY_MS) % WEEK_MS;

	return shown_ms - (in_week < 0 ? in_week + WEEK_MS : in_week);
}

/* Where the window lies in the week that began then. */
static struct calendar_window window_in(const struct calendar *c, uint32_t window, int64_t week)
{
	return (struct calendar_window){ moment_ms(c, week + c->window[window].start_ms),
					 moment_ms(c, week + c->window[window].end_ms) };
}

int64_t calendar_start_ms(const struct calendar *c, int64_t from_ms, int64_t length_ms)
{
	int64_t best = -1, first;

	if (c->always)
		return from_ms;
	first = week_ms(c, from_ms);
	for (uint32_t i = 0; i < c->count; i++)
		for (int64_t week = -1; week <= WEEKS_AHEAD; week++) {
			struct calendar_window w = window_in(c, i, first + week * WEEK_MS);
			int64_t start = w.start_ms > from_ms ? w.start_ms : from_ms;

			if (start >= w.end_ms || (!c->overrun && length_ms > w.end_ms - start))
				continue;
			if (best < 0 || start < best)
				best = start;
		}
	return best;
}

bool calendar_is_open(const struct calendar *c, int64_t at_ms)
{
	return calendar_start_ms(c, at_ms, 0) == at_ms;
}

int64_t calendar_closes_ms(const struct calendar *c, int64_t at_ms)
{
	int64_t first;

	if (c->always)
		return INT64_MAX;
	first = week_ms(c, at_ms);
	for (uint32_t i = 0; i < c->count; i++)
		for (int64_t week = -1; week <= 1; week++) {
			struct calendar_window w = window_in(c, i, first + week * WEEK_MS);

			if (w.start_ms <= at_ms && w.end_ms > at_ms)
				return w.end_ms;
		}
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
