/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/report.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

enum { SEEN_STEP = 1, SEEN_CHECKPOINT = 2, SEEN_WATCH = 4 };

bool report_path_is_fit(const char *path)
{
	if (path[0] == '\0')
		return false;
	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return false;
	/* No step of the path may be `..`: the path is shown to people and given to the next
	 * attempt. */
	for (const char *p = path; p; p = strchr(p, '/')) {
		if (*p == '/')
			p++;
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || p[2] == '\0'))
			return false;
	}
	return true;
}

static void member_read(struct json_reader *r, const struct json_slice *key, struct report *report,
			unsigned *seen)
{
	unsigned member = 0;
	struct json_slice text;

	if (pull_key_is(key, "step")) {
		member = SEEN_STEP;
		pull_int(r, &report->step);
		if (!r->problem && (report->step < 0 || report->step > REPORT_STEP_MAX))
			pull_fail(r, "step must be between 0 and 2^53");
	} else if (pull_key_is(key, "checkpoint")) {
		member = SEEN_CHECKPOINT;
		pull_string(r, &text);
		pull_copy(r, &text, report->checkpoint, sizeof(report->checkpoint));
		report->has_checkpoint = true;
		if (!r->problem && !report_path_is_fit(report->checkpoint))
			pull_fail(
				r,
				"checkpoint must be a path without \"..\" and control characters");
	} else if (pull_key_is(key, "watch")) {
		member = SEEN_WATCH;
		pull_bool(r, &report->watch);
	} else {
		pull_fail(r, "known members are step, checkpoint and watch");
	}
	if (*seen & member)
		pull_fail(r, "a member is given twice");
	*seen |= member;
}

int report_parse(const char *line, size_t size, struct report *ret, struct err *err)
{
	struct report report = { .step = -1 };
	struct json_reader r;
	struct json_slice key;
	unsigned seen = 0;

	if (size > REPORT_LINE_MAX)
		return err_set(err, ERR_TOO_LARGE, "a report is one line of at most %d bytes",
			       REPORT_LINE_MAX);
	pull_init(&r, line, size);
	pull_object(&r);
	while (pull_member(&r, &key))
		member_read(&r, &key, &report, &seen);
	if (pull_finish(&r, err) < 0)
		return -1;
	if (!report.watch && !report.has_checkpoint && report.step < 0)
		return err_set(err, ERR_INVALID, "a report says step, checkpoint or watch");
	*ret = report;
	return 0;
}

int report_path(const struct report *report, const char *folder, char out[REPORT_PATH_MAX],
		struct err *err)
{
	int n;

	if (report->checkpoint[0] == '/')
		n = snprintf(out, REPORT_PATH_MAX, "%s", report->checkpoint);
	else if (!folder)
		return err_set(err, ERR_INVALID,
			       "this job declares no checkpoint folder: give an absolute path");
	else
		n = snprintf(out, REPORT_PATH_MAX, "%s/%s", folder, report->checkpoint);
	if (n < 0 || n >= REPORT_PATH_MAX)
		return err_set(err, ERR_TOO_LARGE, "the checkpoint's path is longer than %d bytes",
			       REPORT_PATH_MAX - 1);
	return 0;
}
