/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/chart.h"

#include <math.h>
#include <stdio.h>

/* In units of the drawing. */
static const double left = 62, top = 10, width = 640, height = 230, bottom = 46;
static const double day_s = 86400;

void html_add(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '<')
			buf_adds(out, "&lt;");
		else if (*text == '&')
			buf_adds(out, "&amp;");
		else if (*text == '"')
			buf_adds(out, "&quot;");
		else
			buf_addc(out, *text);
}

/* --- axes ----------------------------------------------------------------------------------------------------- */

static double x_at(const struct chart *c, double x)
{
	const double part = c->x_axis == AXIS_TIME_LOG ? log10(x < 1 ? 1 : x) / log10(c->x_most)
						       : x / c->x_most;

	return left + width * (part > 1 ? 1 : part);
}

static double y_at(const struct chart *c, double y)
{
	return top + height * (1 - (y > c->y_most ? 1 : y / c->y_most));
}

/* 1, 2 or 5 times a power of ten: some five of them to `most`. */
static double step_of(double most)
{
	const double raw = most / 5, power = pow(10, floor(log10(raw)));

	return raw / power > 5   ? 10 * power
	       : raw / power > 2 ? 5 * power
	       : raw / power > 1 ? 2 * power
				 : power;
}

static void x_tick(struct chart *c, double x, const char *text)
{
	buf_addf(
		c->out,
		"<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
		x_at(c, x), top, top + height, x_at(c, x), top + height + 16, text);
}

static void x_ticks_log(struct chart *c)
{
	static const struct {
		double s;
		const char *text;
	} ticks[] = { { 1, "1 s" },         { 10, "10 s" },         { 60, "1 min" },
		      { 600, "10 min" },    { 3600, "1 h" },        { 36000, "10 h" },
		      { 86400 * 4, "4 d" }, { 86400 * 40, "40 d" }, { 86400 * 365, "1 a" } };

	for (size_t i = 0; i < sizeof ticks / sizeof *ticks && ticks[i].s <= c->x_most; i++)
		x_tick(c, ticks[i].s, ticks[i].text);
}

static void x_ticks(struct chart *c)
{
	const double unit = c->x_axis != AXIS_TIME ? 1 : c->x_most > 3 * day_s ? day_s : 3600;
	const char *name = c->x_axis != AXIS_TIME ? "" : unit > 3600 ? " d" : " h";
	const double step = step_of(c->x_most / unit);
	char text[32];

	if (c->x_axis == AXIS_TIME_LOG) {
		x_ticks_log(c);
		return;
	}
	for (int i = 0; i * step * unit <= c->x_most; i++) {
		snprintf(text, sizeof text, "%g%s", i * step, name);
		x_tick(c, i * step * unit, text);
	}
}

static void y_ticks(struct chart *c)
{
	const double step = c->y_axis == AXIS_PERCENT ? 0.25 : step_of(c->y_most);

	for (int i = 0; i * step <= c->y_most * 1.0001; i++) {
		const double y = y_at(c, i * step);

		buf_addf(
			c->out,
			"<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g%s</text>",
			left, y, left + width, left - 6, y + 4,
			c->y_axis == AXIS_PERCENT ? i * step * 100 : i * step,
			c->y_axis == AXIS_PERCENT ? " %" : "");
	}
}

/* --- drawing -------------------------------------------------------------------------------------------------- */

void chart_begin(struct chart *c, const char *title, const char *about, const char *x_name,
		 const char *y_name)
{
	buf_adds(c->out, "<figure><figcaption><b>");
	html_add(c->out, title);
	buf_adds(c->out, "</b> ");
	html_add(c->out, about);
	buf_addf(c->out, "</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
		 left + width + 20, top + height + bottom);
	html_add(c->out, title);
	buf_adds(c->out, "\">");
	x_ticks(c);
	y_ticks(c);
	buf_addf(c->out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
		 left + width / 2, top + height + 36);
	html_add(c->out, x_name);
	buf_addf(
		c->out,
		"</text><text class=\"name\" transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">",
		top + height / 2);
	html_add(c->out, y_name);
	buf_adds(c->out, "</text>\n");
}

static void points(struct chart *c, const double *x, const double *y, uint32_t count, bool backward)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t at = backward ? count - 1 - i : i;

		buf_addf(c->out, "%c%.1f %.1f", i || backward ? 'L' : 'M', x_at(c, x[at]),
			 y_at(c, y[at]));
	}
}

static void titled(struct chart *c, const char *name)
{
	buf_adds(c->out, "\"><title>");
	html_add(c->out, name);
	buf_adds(c->out, "</title></path>\n");
}

void chart_line(struct chart *c, uint32_t series, const char *name, const double *x,
		const double *y, uint32_t count)
{
	buf_addf(c->out, "<path class=\"line series-%u\" d=\"", series % CHART_SERIES);
	points(c, x, y, count, false);
	titled(c, name);
}

void chart_band(struct chart *c, uint32_t series, const char *name, const double *x,
		const double *low, const double *high, uint32_t count)
{
	buf_addf(c->out, "<path class=\"band band-%u\" d=\"", series % CHART_SERIES);
	points(c, x, high, count, false);
	points(c, x, low, count, true);
	buf_addc(c->out, 'Z');
	titled(c, name);
}

void chart_end(struct chart *c, const char *const *names, uint32_t count, bool bands)
{
	buf_adds(c->out, "</svg>\n<ul class=\"legend\">");
	for (uint32_t i = 0; i < count; i++) {
		buf_adds(c->out, "<li><svg viewBox=\"0 0 34 12\" width=\"34\" height=\"12\">");
		buf_addf(c->out,
			 bands ? "<rect class=\"band band-%u\" width=\"34\" height=\"12\"/>"
			       : "<path class=\"line series-%u\" d=\"M0 6H34\"/>",
			 i % CHART_SERIES);
		buf_adds(c->out, "</svg> ");
		html_add(c->out, names[i]);
		buf_adds(c->out, "</li>");
	}
	buf_adds(c->out, "</ul></figure>\n");
}
