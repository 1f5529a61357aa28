/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/moment.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/parse.h"

enum { DAY_SECONDS = 86400 };

static struct tm tm_of_day(int64_t days, int64_t second)
{
	int64_t year, month, day;

	moment_date(days, &year, &month, &day);
	return (struct tm){ .tm_year = (int)year - 1900,
			    .tm_mon = (int)month - 1,
			    .tm_mday = (int)day,
			    .tm_hour = (int)(second / 3600),
			    .tm_min = (int)(second / 60 % 60),
			    .tm_sec = (int)(second % 60),
			    .tm_isdst = -1 };
}

/* What the clock here shows, as if it were UTC, into the moment at which it shows that. */
static int64_t own_to_utc_ms(int64_t own_ms)
{
	struct tm tm = tm_of_day(own_ms / 1000 / DAY_SECONDS, own_ms / 1000 % DAY_SECONDS);

	return (int64_t)mktime(&tm) * 1000;
}

/* "20:00": the next time that the clock shows it. */
static bool clock_read(const char *text, int64_t *ret_ms)
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm tm;
	int hour, minute, size = 0;

	if (strlen(text) > 5 || sscanf(text, "%2d:%2d%n", &hour, &minute, &size) != 2 ||
	    text[size] || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
	    !localtime_r(&now, &tm))
		return false;
	for (int days = 0; days < 2; days++) {
		struct tm at = tm;

		at.tm_mday += days;
		at.tm_hour = hour;
		at.tm_min = minute;
		at.tm_sec = 0;
		at.tm_isdst = -1;
		*ret_ms = (int64_t)mktime(&at) * 1000;
		if (*ret_ms > (int64_t)now * 1000)
			return true;
	}
	return true;
}

static const char *utc_text(struct arena *arena, int64_t ms)
{
	char text[MOMENT_TEXT_MAX];

	return arena_strdup(arena, moment_format(ms, text));
}

int moment_put(const struct invocation *in, const char *flag, json_t *body, struct err *err)
{
	const char *text = arg_flag(in, flag);
	int64_t ms;
	int rc;

	if (!text)
		return 0;
	rc = moment_parse(text, &ms);
	if (rc == MOMENT_OWN_CLOCK)
		text = utc_text(in->arena, own_to_utc_ms(ms));
	else if (rc == 0 || clock_read(text, &ms))
		text = utc_text(in->arena, ms);
	else if (parse_duration(text, &ms, NULL) < 0)
		return err_set(
			err, ERR_INVALID,
			"--%s \"%s\": expected a time such as \"2026-12-01 20:00\", 20:00 or 2026-12-01T20:00Z, or 2h from now",
			flag, text);
	json_object_set_new(body, flag, json_string(text));
	return 0;
}

int moment_since(const struct invocation *in, const char *flag, int64_t *ret_ms, struct err *err)
{
	const char *text = arg_flag(in, flag);
	const int64_t now_ms = clock_wall_ms();
	int64_t ms = 0;
	int rc;

	*ret_ms = 0;
	if (!text)
		return 0;
	rc = moment_parse(text, &ms);
	if (rc == MOMENT_OWN_CLOCK)
		ms = own_to_utc_ms(ms);
	else if (rc != 0 && clock_read(text, &ms))
		ms -= (int64_t)DAY_SECONDS * 1000; /* the next one was found */
	else if (rc != 0 && parse_duration(text, &ms, NULL) == 0)
		ms = now_ms - ms;
	else if (rc != 0)
		return err_set(
			err, ERR_INVALID,
			"--%s \"%.60s\": expected how long ago, such as 7d, or a time such as \"2026-12-01 20:00\" or 20:00",
			flag, text);
	*ret_ms = ms > 0 ? ms : 1;
	return 0;
}
