/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Charts as SVG, drawn here: no script, nothing loaded from anywhere. Series differ by colour and by dashes, and are named in a
 * legend, so that colour is never alone. Colours come from the page's style (series-0 ... series-7), for light and dark.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

enum { CHART_SERIES = 8 };

enum chart_axis {
	AXIS_NUMBER, /* from 0 */
	AXIS_PERCENT, /* 0 to 1 as 0 to 100 % */
	AXIS_TIME, /* seconds from 0: hours or days */
	AXIS_TIME_LOG /* seconds from 1: 1 s, 10 s, 1 min ... */
};

struct chart {
	struct buf *out;
	enum chart_axis x_axis, y_axis;
	double x_most, y_most; /* at least a little above 0 */
};

/* Title and a line on how to read it; texts are escaped. */
void chart_begin(struct chart *chart, const char *title, const char *about, const char *x_name,
		 const char *y_name);
/* Points of a line; x rising. `name` goes into the legend and stands when the pointer is on it. */
void chart_line(struct chart *chart, uint32_t series, const char *name, const double *x,
		const double *y, uint32_t count);
/* Between two lines over the same x. */
void chart_band(struct chart *chart, uint32_t series, const char *name, const double *x,
		const double *low, const double *high, uint32_t count);
void chart_end(struct chart *chart, const char *const *names, uint32_t count, bool bands);

void html_add(struct buf *out, const char *text); /* escaped */
