/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/page.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "core/model/facts.h"
#include "sim/replay/by_queue.h"
#include "sim/replay/chart.h"
#include "sim/replay/course.h"

static const char style[] =
	":root{color-scheme:light dark;--ink:#1c2330;--soft:#5b6472;--paper:#fff;--line:#dfe3ea;--best:#eaf3ec;"
	"--s0:#0b63b5;--s1:#c4501b;--s2:#1b8a5a;--s3:#9b3fa0;--s4:#a06a00;--s5:#3a3f9e;--s6:#b3264a;--s7:#4d5763}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa4b2;--paper:#14181f;--line:#2c3440;--best:#1b2c22;"
	"--s0:#6cb2f5;--s1:#f2935f;--s2:#61cf9c;--s3:#d793dc;--s4:#e0b04c;--s5:#9aa0f5;--s6:#f58aa5;--s7:#aeb8c5}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1480px;margin:2rem auto;padding:0 1.2rem}"
	"h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{color:var(--soft);margin:.2rem 0 1rem}"
	"table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
	"th,td{padding:.35rem .45rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}"
	"th:first-child,.name{text-align:left}thead th{font-weight:600;color:var(--soft);font-size:.85rem;vertical-align:bottom}"
	"td.best{font-weight:700;background:var(--best)}td.best::before{content:\"\\2605\\00a0\"}"
	".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr));gap:1.6rem}"
	"figure{margin:0}figcaption{color:var(--soft);font-size:.9rem}figcaption b{color:var(--ink);font-size:1rem;display:block}"
	"svg text{font:11px system-ui,sans-serif;fill:var(--soft)}svg .name{font-size:12px}"
	".grid{stroke:var(--line);fill:none}.line{fill:none;stroke-width:2}.band{stroke:none;opacity:.85}"
	".legend{list-style:none;margin:.2rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.9rem}"
	".legend svg{vertical-align:middle}.scroll{overflow-x:auto}\n"
	".series-0{stroke:var(--s0)}.series-1{stroke:var(--s1);stroke-dasharray:7 3}.series-2{stroke:var(--s2);stroke-dasharray:2 3}"
	".series-3{stroke:var(--s3);stroke-dasharray:10 3 2 3}.series-4{stroke:var(--s4);stroke-dasharray:4 2}"
	".series-5{stroke:var(--s5);stroke-dasharray:1 2}.series-6{stroke:var(--s6);stroke-dasharray:14 4}"
	".series-7{stroke:var(--s7);stroke-dasharray:6 2 1 2 1 2}\n"
	".band-0{fill:var(--s0)}.band-1{fill:var(--s4)}.band-2{fill:var(--s2)}.band-3{fill:var(--s6)}\n"
	"@media print{body{margin:0;max-width:none}figure{break-inside:avoid}}\n";

/* --- the table ------------------------------------------------------------------------------------------------ */

enum cell_form { CELL_TIME, CELL_RATIO, CELL_PERCENT, CELL_COUNT, CELL_WHOLE };
enum better { BETTER_LESS, BETTER_MORE, BETTER_UNSAID };

static const struct cell {
	const char *name, *about;
	size_t offset;
	enum cell_form form;
	enum better better;
} cells[] = {
	{ "completion<br>mean", "completion_s.mean", offsetof(struct figures, completion_s.mean),
	  CELL_TIME, BETTER_LESS },
	{ "completion<br>99 %", "completion_s.p99", offsetof(struct figures, completion_s.p99),
	  CELL_TIME, BETTER_LESS },
	{ "wait<br>half", "wait_s.p50", offsetof(struct figures, wait_s.p50), CELL_TIME,
	  BETTER_LESS },
	{ "wait<br>99 %", "wait_s.p99", offsetof(struct figures, wait_s.p99), CELL_TIME,
	  BETTER_LESS },
	{ "delay<br>mean", "delay_s.mean", offsetof(struct figures, delay_s.mean), CELL_TIME,
	  BETTER_LESS },
	{ "slowdown<br>half", "slowdown.p50", offsetof(struct figures, slowdown.p50), CELL_RATIO,
	  BETTER_LESS },
	{ "fairness<br>99 %", "fairness.p99", offsetof(struct figures, fairness.p99), CELL_RATIO,
	  BETTER_LESS },
	{ "GPUs<br>in use", "utilisation", offsetof(struct figures, utilisation), CELL_PERCENT,
	  BETTER_UNSAID },
	{ "all ended<br>after", "makespan_s", offsetof(struct figures, makespan_s), CELL_TIME,
	  BETTER_LESS },
	{ "GPU-hours<br>done twice", "lost_gpu_h", offsetof(struct figures, lost_gpu_h), CELL_COUNT,
	  BETTER_LESS },
	{ "GPU-hours<br>network", "network_gpu_h", offsetof(struct figures, network_gpu_h),
	  CELL_COUNT, BETTER_LESS },
	{ "paid", "cost", offsetof(struct figures, cost), CELL_COUNT, BETTER_LESS },
	{ "deadlines<br>missed", "deadlines_missed", offsetof(struct figures, deadlines_missed),
	  CELL_WHOLE, BETTER_LESS },
};

static double value_of(const struct figures *f, const struct cell *cell)
{
	uint32_t whole;
	double value;

	if (cell->form == CELL_WHOLE) {
		memcpy(&whole, (const char *)f + cell->offset, sizeof whole);
		return whole;
	}
	memcpy(&value, (const char *)f + cell->offset, sizeof value);
	return value;
}

/* What is paid stands there when it is known of all, the network when it is described, deadlines when there are any. */
static bool is_shown(const struct replay_result *results, uint32_t count, const struct cell *cell)
{
	if (cell->form == CELL_WHOLE)
		return results[0].figures.deadlines > 0;
	if (cell->offset == offsetof(struct figures, network_gpu_h))
		return results[0].figures.network_gpu_h >= 0;
	for (uint32_t i = 0; i < count; i++)
		if (cell->offset == offsetof(struct figures, cost) &&
		    !(results[i].figures.cost > 0))
			return false;
	return true;
}

static void value_text(struct buf *out, double value, enum cell_form form)
{
	char text[32];

	switch (form) {
	case CELL_TIME: buf_adds(out, replay_seconds_text(value, text)); return;
	case CELL_RATIO: buf_addf(out, "%.2f", value); return;
	case CELL_PERCENT: buf_addf(out, "%.1f %%", value * 100); return;
	case CELL_COUNT: buf_addf(out, "%.1f", value); return;
	case CELL_WHOLE: buf_addf(out, "%.0f", value); return;
	}
	UNREACHABLE();
}

static bool is_better(const struct cell *cell, double a, double b)
{
	return cell->better == BETTER_LESS ? a < b : a > b;
}

/* Nobody is where more than half are as good. */
static bool is_best(const struct replay_result *results, uint32_t count, uint32_t i,
		    const struct cell *cell)
{
	const double value = value_of(&results[i].figures, cell);
	uint32_t as_good = 0;

	if (cell->better == BETTER_UNSAID)
		return false;
	for (uint32_t k = 0; k < count; k++) {
		const double other = value_of(&results[k].figures, cell);

		if (is_better(cell, other, value))
			return false;
		as_good += !is_better(cell, value, other);
	}
	return count > 1 && as_good * 2 <= count;
}

static void row_add(struct buf *out, const struct replay_result *results, uint32_t count,
		    uint32_t i)
{
	const struct figures *f = &results[i].figures;

	buf_adds(out, "<tr><th>");
	html_add(out, results[i].outcome.policy);
	buf_addf(out, "</th><td>%u</td><td>%u</td>", f->ended, f->refused + f->unfinished);
	for (size_t c = 0; c < sizeof cells / sizeof *cells; c++) {
		if (!is_shown(results, count, &cells[c]))
			continue;
		buf_addf(out, "<td%s data-figure=\"%s\" data-value=\"%.10g\">",
			 is_best(results, count, i, &cells[c]) ? " class=\"best\"" : "",
			 cells[c].about, value_of(f, &cells[c]));
		value_text(out, value_of(f, &cells[c]), cells[c].form);
		buf_adds(out, "</td>");
	}
	buf_addf(out, "<td>%u</td></tr>\n", f->evictions);
}

/* --- queue by queue ------------------------------------------------------------------------------------------- */

static void time_cell(struct buf *out, uint32_t queue, const char *name, double s)
{
	buf_addf(out, "<td data-figure=\"queues.%u.%s\" data-value=\"%.10g\">", queue, name, s);
	value_text(out, s, CELL_TIME);
	buf_adds(out, "</td>");
}

static void queue_row(struct buf *out, const char *policy, const struct queue_figures *q,
		      uint32_t i)
{
	buf_adds(out, "<tr><th>");
	html_add(out, q->queue);
	buf_adds(out, "</th><td class=\"name\">");
	html_add(out, policy);
	buf_addf(out, "</td><td>%u</td>", q->ended);
	time_cell(out, i, "completion_s.mean", q->completion_s.mean);
	time_cell(out, i, "completion_s.p99", q->completion_s.p99);
	time_cell(out, i, "wait_s.mean", q->wait_s.mean);
	time_cell(out, i, "wait_s.p99", q->wait_s.p99);
	time_cell(out, i, "delay_s.mean", q->delay_s.mean);
	buf_addf(out, "<td>%u</td></tr>\n", q->evictions);
}

/* The policies beside each other, queue after queue; nothing when there is one queue. */
static void queues_table(struct buf *out, const struct replay_result *results, uint32_t count)
{
	struct queue_figures **of = calloc(count, sizeof *of);
	uint32_t queues = 0;

	CHECK(of);
	for (uint32_t i = 0; i < count; i++)
		queues = by_queue_make(&results[i].outcome, &of[i]);
	if (queues > 1)
		buf_adds(
			out,
			"<h2>Queue by queue</h2>\n<div class=\"scroll\"><table><thead><tr><th>queue</th><th class=\"name\">policy</th><th>jobs<br>ended</th>"
			"<th>completion<br>mean</th><th>completion<br>99 %</th><th>wait<br>mean</th><th>wait<br>99 %</th><th>delay<br>mean</th>"
			"<th>evictions</th></tr></thead>\n<tbody>");
	for (uint32_t q = 0; queues > 1 && q < queues; q++)
		for (uint32_t i = 0; i < count; i++)
			queue_row(out, results[i].outcome.policy, &of[i][q], q);
	if (queues > 1)
		buf_adds(out, "</tbody></table></div>\n");
	for (uint32_t i = 0; i < count; i++)
		free(of[i]);
	free(of);
}

static void figures_table(struct buf *out, const struct replay_result *results, uint32_t count)
{
	buf_adds(
		out,
		"<div class=\"scroll\"><table><thead><tr><th>policy</th><th>jobs<br>ended</th><th>never<br>ran</th>");
	for (size_t c = 0; c < sizeof cells / sizeof *cells; c++)
		if (is_shown(results, count, &cells[c]))
			buf_addf(out, "<th>%s</th>", cells[c].name);
	buf_adds(out, "<th>evictions</th></tr></thead>\n<tbody>");
	for (uint32_t i = 0; i < count; i++)
		row_add(out, results, count, i);
	buf_adds(out, "</tbody></table></div>\n");
	buf_adds(
		out,
		"<p>&#9733; the best of its column. Completion: from submission to end; wait: to the first command; delay: completion less "
		"the time that the job takes alone; slowdown: completion over that time; fairness: completion over what an even part of the cluster would "
		"have given, over 1 is worse than that. GPUs in use, while jobs came, count what was done twice too. Paid: by the policy's prices.</p>\n");
}

/* --- charts --------------------------------------------------------------------------------------------------- */

struct page {
	struct buf *out;
	const struct replay_result *results;
	const char *names[CHART_SERIES];
	struct course courses[CHART_SERIES];
	uint32_t count; /* of those that are drawn */
	double span_s, waiting_most;
	double *x, *y, *low; /* room for a line */
};

static double *room(size_t count)
{
	double *ret = calloc(count, sizeof *ret);

	CHECK(ret);
	return ret;
}

static void times_fill(const struct page *p, const struct course *c)
{
	for (uint32_t i = 0; i < c->count; i++)
		p->x[i] = ((double)(c->from_ms + c->piece_ms * i) + (double)c->piece_ms / 2) / 1000;
}

enum {
	STRETCHES = 150
}; /* lines over each other are read better in fewer points than a course has */

static double stretch_mean(const struct course *c, uint32_t from, uint32_t end, bool waiting)
{
	double sum = 0;

	for (uint32_t k = from; k < end; k++)
		sum += waiting ? c->pieces[k].waiting : c->pieces[k].used;
	return sum / (end - from);
}

/* Means of as many pieces each as make at most STRETCHES; how many. */
static uint32_t stretches_fill(const struct page *p, const struct course *c, bool waiting)
{
	const uint32_t each = (c->count + STRETCHES - 1) / STRETCHES;
	uint32_t count = 0;

	for (uint32_t from = 0; from < c->count; from += each) {
		const uint32_t end = from + each < c->count ? from + each : c->count;

		p->x[count] = ((double)c->from_ms + (double)c->piece_ms * (from + end) / 2) / 1000;
		p->y[count++] = stretch_mean(c, from, end, waiting);
	}
	return count;
}

static void over_time(struct page *p, bool waiting)
{
	struct chart c = { p->out, AXIS_TIME, waiting ? AXIS_NUMBER : AXIS_PERCENT, p->span_s,
			   waiting ? p->waiting_most : 1 };

	chart_begin(&c, waiting ? "Jobs that wait" : "GPUs in use",
		    waiting ? "Less is better. Means over short stretches."
			    : "More is better while jobs wait. Means over short stretches.",
		    "since the first submission", waiting ? "jobs" : "part of all GPUs");
	for (uint32_t i = 0; i < p->count; i++) {
		const uint32_t count = stretches_fill(p, &p->courses[i], waiting);

		chart_line(&c, i, p->names[i], p->x, p->y, count);
	}
	chart_end(&c, p->names, p->count, false);
}

/* In 200 steps of equal parts of the jobs. */
static uint32_t steps_fill(const struct page *p, const double *sorted, uint32_t count)
{
	const uint32_t steps = 200;

	for (uint32_t i = 0; i <= steps; i++) {
		const uint64_t at = (uint64_t)count * i / steps;

		p->x[i] = sorted[at < count ? at : count - 1];
		p->y[i] = (double)i / steps;
	}
	return steps + 1;
}

static void distribution(struct page *p, enum figure which, const char *title)
{
	struct chart c = { p->out, AXIS_TIME_LOG, AXIS_PERCENT, 100, 1 };
	double *sorted = room((size_t)p->results[0].outcome.workload->count + 1);

	for (uint32_t i = 0; i < p->count; i++) {
		const uint32_t count = figures_sorted(&p->results[i].outcome, which, sorted);

		if (count && sorted[count - 1] > c.x_most)
			c.x_most = sorted[count - 1];
	}
	chart_begin(&c, title,
		    "Part of the jobs that were so quick or quicker; further up is better.", "",
		    "part of the jobs");
	for (uint32_t i = 0; i < p->count; i++) {
		const uint32_t count = figures_sorted(&p->results[i].outcome, which, sorted);

		if (count)
			chart_line(&c, i, p->names[i], p->x, p->y, steps_fill(p, sorted, count));
	}
	chart_end(&c, p->names, p->count, false);
	free(sorted);
}

/* Who holds the cluster: bands by the width of jobs, one over the other. */
static void timeline(struct page *p, uint32_t at)
{
	struct chart c = { p->out, AXIS_TIME, AXIS_PERCENT, p->span_s, 1 };
	const struct course *course = &p->courses[at];
	const char *names[COURSE_WIDTHS];

	chart_begin(&c, p->names[at],
		    "Who holds the GPUs, by the width of jobs: from below as in the legend.",
		    "since the first submission", "part of all GPUs");
	times_fill(p, course);
	memset(p->low, 0, course->count * sizeof *p->low);
	for (uint32_t w = 0; w < COURSE_WIDTHS; w++) {
		names[w] = course_width_name(w);
		for (uint32_t k = 0; k < course->count; k++)
			p->y[k] = p->low[k] + course->pieces[k].by_width[w];
		chart_band(&c, w, names[w], p->x, p->low, p->y, course->count);
		memcpy(p->low, p->y, course->count * sizeof *p->low);
	}
	chart_end(&c, names, COURSE_WIDTHS, true);
}

static void page_init(struct page *p, struct buf *out, const struct replay_result *results,
		      uint32_t count)
{
	*p = (struct page){ .out = out, .results = results };
	p->count = count < CHART_SERIES ? count : CHART_SERIES;
	p->span_s = p->waiting_most = 1;
	for (uint32_t i = 0; i < p->count; i++) {
		struct course *c = &p->courses[i];

		p->names[i] = results[i].outcome.policy;
		course_make(&results[i].outcome, c);
		for (uint32_t k = 0; k < c->count; k++)
			if (c->pieces[k].waiting > p->waiting_most)
				p->waiting_most = c->pieces[k].waiting;
		if ((double)(c->from_ms + c->piece_ms * c->count) / 1000 > p->span_s)
			p->span_s = (double)(c->from_ms + c->piece_ms * c->count) / 1000;
	}
	p->x = room(COURSE_PIECES + 2);
	p->y = room(COURSE_PIECES + 2);
	p->low = room(COURSE_PIECES + 2);
}

static void page_deinit(struct page *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		course_deinit(&p->courses[i]);
	free(p->x);
	free(p->y);
	free(p->low);
}

static void charts_add(struct buf *out, const struct replay_result *results, uint32_t count)
{
	struct page p;

	page_init(&p, out, results, count);
	buf_adds(out, "<h2>Over time</h2>\n");
	if (count > p.count)
		buf_addf(out, "<p>The first %u of %u policies are drawn.</p>\n", p.count, count);
	buf_adds(out, "<div class=\"charts\">\n");
	over_time(&p, false);
	over_time(&p, true);
	buf_adds(out, "</div>\n<h2>Distributions</h2>\n<div class=\"charts\">\n");
	distribution(&p, FIGURE_WAIT, "Wait, from submission to the first command");
	distribution(&p, FIGURE_COMPLETION, "Completion, from submission to the end");
	buf_adds(out, "</div>\n<h2>The cluster under each policy</h2>\n<div class=\"charts\">\n");
	for (uint32_t i = 0; i < p.count; i++)
		timeline(&p, i);
	buf_adds(out, "</div>\n");
	page_deinit(&p);
}

void replay_page(struct buf *out, const char *cluster, const struct replay_result *results,
		 uint32_t count)
{
	const struct workload *w = results[0].outcome.workload;

	buf_adds(
		out,
		"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
		"content=\"width=device-width\"><title>Replay: ");
	html_add(out, w->path);
	buf_adds(out, "</title><style>\n");
	buf_adds(out, style);
	buf_adds(out, "</style></head><body>\n<h1>");
	html_add(out, w->path);
	buf_adds(out, " on ");
	html_add(out, cluster);
	buf_addf(out, "</h1>\n<p>%u jobs, %.10g GPUs, in virtual time.</p>\n", w->count,
		 (double)results[0].outcome.capacity / (double)GPU_SHARE);
	figures_table(out, results, count);
	queues_table(out, results, count);
	charts_add(out, results, count);
	buf_adds(out, "</body></html>\n");
}
