/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What came of scenarios, for people (TAP, https://testanything.org) or programs (JSON).
 *
 *	report_begin, then for each scenario report_result or report_refused, then report_end
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "base/err.h"
#include "sim/runner.h"

enum report_form { REPORT_TAP, REPORT_JSON };

struct report {
	FILE *out;
	enum report_form form;
	uint32_t count, passed, failed, refused;
};

void report_begin(struct report *report, enum report_form form, FILE *out, size_t planned);
void report_result(struct report *report, const struct scenario *scenario,
		   const struct scenario_result *result);
/* One that could not be read or run. */
void report_refused(struct report *report, const char *name, const struct err *err);
void report_end(struct report *report);
