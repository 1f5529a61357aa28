/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One line that a job sent to its report socket. It comes from the job's own code: hostile until
 * proved otherwise. The protocol is in docs/task-environment.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

enum { REPORT_LINE_MAX = 4096, REPORT_PATH_MAX = 480 };
#define REPORT_STEP_MAX ((int64_t)1 << 53) /* what a JSON number holds exactly in every language */

struct report {
	int64_t step; /* -1 = not said */
	bool watch; /* the sender wants notices on this connection */
	bool has_checkpoint;
	char checkpoint
		[REPORT_PATH_MAX]; /* as sent: absolute, or relative to the checkpoint folder */
};

/* The line without its newline. Strict: an unknown member, a member given twice, wrong types, a
 * path with `..`, control characters or more than 479 bytes are refused with a reason fit for the
 * sender. */
int report_parse(const char *line, size_t size, struct report *ret, struct err *err) MUST_CHECK;

/* Not empty, without `..` and control characters. */
bool report_path_is_fit(const char *path);
/* The checkpoint as absolute path; folder may be NULL (then it must have been absolute). */
int report_path(const struct report *report, const char *folder, char out[REPORT_PATH_MAX],
		struct err *err) MUST_CHECK;
