/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /api/v1/jobs: which jobs, in which order, and as how many rows.
 *
 * Rows are collected by one walk over the jobs (about 25 ns a job), ordered, and only those of the page are written: the
 * reason for which a job waits costs more than all the rest. In the order of ids the walk ends behind the page.
 *
 * An array is one row when that is asked for (`fold`). Its jobs have consecutive ids, so the jobs of a row are those from its
 * first to its last id that pass the filter.
 */
#include <stdlib.h>
#include <string.h>
#include "api/job_filter.h"
#include "api/job_show.h"
#include "api/planner.h"
#include "api/tally.h"
#include "base/check.h"
#include "base/parse.h"

enum { DAY_MS = 86400000 };

/* --- rows --------------------------------------------------------------------------------------------------------------- */

struct row {
	uint32_t first, last; /* ids; the same where it is one job */
	uint32_t count; /* jobs of it that pass the filter; 0 = it is not an array's */
	uint32_t waits; /* the first of them that waits, 0 = none */
	int64_t key; /* by which rows are ordered, where that is a number */
};

struct rows {
	struct row *list;
	size_t count, room;
};

static const struct job *row_job(const struct facts *f, uint32_t id)
{
	return job_get(f, (struct job_id){ id });
}

static void rows_add(struct rows *rows, uint32_t id, const struct job *job, bool fold)
{
	if (rows->count == rows->room) {
		rows->room = rows->room ? rows->room * 2 : 512;
		rows->list = realloc(rows->list, rows->room * sizeof *rows->list);
		CHECK(rows->list);
	}
	rows->list[rows->count++] = (struct row){
		.first = id,
		.last = id,
		.count = fold && job->array_count > 1,
		.waits = job_wants_reason(job) ? id : 0,
	};
}

/* Whether the job belongs to the last row. */
static bool row_takes(const struct rows *rows, const struct facts *f, const struct job *job)
{
	const struct row *row = rows->count ? &rows->list[rows->count - 1] : NULL;

	return row && row->count && job->array_first &&
	       row_job(f, row->first)->array_first == job->array_first;
}

/* Those from id `after` + 1 on, `most` rows at most. */
static void rows_collect(struct rows *rows, const struct facts *f, const struct job_filter *filter,
			 int64_t after, size_t most, bool fold)
{
	for (int64_t id = after + 1; id <= f->jobs.count && !filter->nothing; id++) {
		const struct job *job = row_job(f, (uint32_t)id);
		struct row *row;

		if (!job_filter_takes(filter, job))
			continue;
		if (!row_takes(rows, f, job)) {
			if (rows->count == most)
				return;
			rows_add(rows, (uint32_t)id, job, fold);
			continue;
		}
		row = &rows->list[rows->count - 1];
		row->last = (uint32_t)id;
		row->count++;
		if (!row->waits && job_wants_reason(job))
			row->waits = (uint32_t)id;
	}
}

/* --- order -------------------------------------------------------------------------------------------------------------- */

/* By a number: the greatest, over the jobs of a row. */
static int64_t key_recent(const struct facts *f, const struct job *job, uint32_t id)
{
	static const int64_t active = (int64_t)1 << 62;

	(void)f;
	return job_state_is_final(job->state) ? job->state_ms : active + id;
}

static int64_t key_gpus(const struct facts *f, const struct job *job, uint32_t id)
{
	const struct shape *shape = shape_get(f, job->shape);

	(void)id;
	return (int64_t)shape->tasks_min * shape->gpus;
}

static int64_t key_priority(const struct facts *f, const struct job *job, uint32_t id)
{
	(void)f, (void)id;
	return job->priority;
}

static int64_t key_submitted(const struct facts *f, const struct job *job, uint32_t id)
{
	(void)f, (void)id;
	return job->submitted_ms;
}

static int64_t key_changed(const struct facts *f, const struct job *job, uint32_t id)
{
	(void)f, (void)id;
	return job->state_ms;
}

static int64_t key_state(const struct facts *f, const struct job *job, uint32_t id)
{
	(void)f, (void)id;
	return -(int64_t)job->state; /* in the order of a life */
}

/* By a text: that of the first job of a row. */
static const char *text_name(const struct facts *f, const struct job *job)
{
	return facts_name(f, job->name);
}

static const char *text_user(const struct facts *f, const struct job *job)
{
	return facts_name(f, job->user);
}

static const char *text_team(const struct facts *f, const struct job *job)
{
	return facts_name(f, job->team);
}

static const char *text_queue(const struct facts *f, const struct job *job)
{
	return job->queue.v ? facts_name(f, queue_get(f, job->queue)->name) : "";
}

struct job_order {
	const char *name;
	int64_t (*key)(const struct facts *f, const struct job *job, uint32_t id);
	const char *(*text)(const struct facts *f, const struct job *job);
};

static const struct job_order orders[] = {
#define JOB_ORDER(name, by, doc) { #name, by },
#include "api/job_orders.def"
#undef JOB_ORDER
};

static const char order_names[] =
#define JOB_ORDER(name, by, doc) " " #name
#include "api/job_orders.def"
#undef JOB_ORDER
	;

struct sorting {
	const struct facts *facts;
	const struct job_order *order; /* NULL = by id */
	bool reverse;
};

static int order_read(struct call *call, struct sorting *ret, struct err *err)
{
	const char *text = call_query(call, "sort"), *names[ARRAY_SIZE(orders)], *hint;

	*ret = (struct sorting){ .facts = call->facts };
	if (!text)
		return 0;
	ret->reverse = *text == '-';
	text += ret->reverse;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		names[i] = orders[i].name;
		if (strcmp(text, orders[i].name) == 0)
			ret->order = &orders[i];
	}
	if (ret->order)
		return 0;
	hint = spelling_hint(text, names, ARRAY_SIZE(names));
	return err_set(
		err, ERR_INVALID, "jobs can't be sorted by \"%.40s\"%s%s%s; the orders are%s", text,
		hint ? "; did you mean \"" : "", hint ? hint : "", hint ? "\"" : "", order_names);
}

/* The greater number first, the lesser text first; of equals the newer one. */
static int row_compare(const void *a, const void *b, void *context)
{
	const struct sorting *sorting = context;
	const struct row *x = a, *y = b;
	int order = 0;

	if (sorting->order->text)
		order = strcmp(
			sorting->order->text(sorting->facts, row_job(sorting->facts, x->first)),
			sorting->order->text(sorting->facts, row_job(sorting->facts, y->first)));
	else if (x->key != y->key)
		order = x->key > y->key ? -1 : 1;
	if (!order)
		return x->first > y->first ? -1 : 1;
	return sorting->reverse ? -order : order;
}

static void row_key(struct row *row, const struct sorting *sorting, const struct job_filter *filter)
{
	bool first = true;

	for (uint32_t id = row->first; id <= row->last; id++) {
		const struct job *job = row_job(sorting->facts, id);
		int64_t key;

		if (id > row->first && !job_filter_takes(filter, job))
			continue;
		key = sorting->order->key(sorting->facts, job, id);
		if (first || key > row->key)
			row->key = key;
		first = false;
	}
}

static void rows_sort(struct rows *rows, struct sorting *sorting, const struct job_filter *filter)
{
	for (size_t i = 0; sorting->order->key && i < rows->count; i++)
		row_key(&rows->list[i], sorting, filter);
	if (rows->count)
		qsort_r(rows->list, rows->count, sizeof *rows->list, row_compare, sorting);
}

/* --- a row as JSON ------------------------------------------------------------------------------------------------------- */

enum { RANGES_MAX = 8 };

/* "0-2,5": which of its array's numbers; what has no room is "..". */
static void numbers_add(struct buf *out, const struct facts *f, const struct row *row,
			const struct job_filter *filter)
{
	const uint32_t array = row_job(f, row->first)->array_first;
	struct buf text = BUF_INIT;
	uint32_t ranges = 0, end;

	for (uint32_t id = row->first; id <= row->last; id = end) {
		for (end = id; end <= row->last && job_filter_takes(filter, row_job(f, end));)
			end++;
		if (end == id) {
			end++;
			continue;
		}
		if (ranges++ == RANGES_MAX) {
			buf_adds(&text, ",..");
			break;
		}
		buf_addf(&text, ranges > 1 ? ",%u" : "%u", id - array);
		if (end - id > 1)
			buf_addf(&text, "-%u", end - 1 - array);
	}
	out_text(out, "array_numbers", buf_text(&text));
	buf_deinit(&text);
}

/* How many of its jobs are in which state, and what all of them have or want. */
static void array_add(struct buf *out, const struct facts *f, const struct row *row,
		      const struct job_filter *filter)
{
	uint32_t states[JOB_STATES] = { 0 };
	int64_t tasks = 0;

	for (uint32_t id = row->first; id <= row->last; id++) {
		const struct job *job = row_job(f, id);

		if (!job_filter_takes(filter, job))
			continue;
		states[job->state]++;
		tasks += job_is_live(job) ? attempt_width(attempt_get(f, job->attempt))
					  : shape_get(f, job->shape)->tasks_min;
	}
	numbers_add(out, f, row, filter);
	out_int(out, "array_tasks", tasks);
	out_object(out, "array_states");
	for (int state = 0; state < JOB_STATES; state++)
		if (states[state])
			out_int(out, job_state_name((uint8_t)state), states[state]);
	out_end(out, '}');
}

/* The view for a list's reasons, entered with the first job that waits. */
struct reasons {
	struct view *view;
	const struct facts *facts;
	bool estimates; /* and when each is likely to start, where a plan is at hand */
	bool making; /* an estimate of some of them is being made */
};

/* Answers by when it starts for certain, 0 = nobody knows. */
static int64_t reason_add(struct call *call, struct buf *out, uint32_t id, const struct job *job,
			  struct reasons *reasons)
{
	struct explanation e = { 0 };

	if (!job_wants_reason(job)) {
		out_text(out, "reason", job_last_reason(call->facts, job));
		out_text(out, "reason_code", "");
		return 0;
	}
	if (!reasons->view)
		reasons->view = planner_enter(call->api->planner, call->frozen, 0, &reasons->facts);
	explain_job(reasons->facts, reasons->view, (struct job_id){ id }, call->arena, &e);
	out_text(out, "reason", e.summary);
	out_text(out, "reason_code", reason_name(e.reason));
	return e.latest_ms;
}

/* When it is likely to start, where that is asked for and known. */
static void start_add(struct call *call, struct buf *out, uint32_t id, const struct job *job,
		      int64_t latest_ms, struct reasons *reasons)
{
	struct estimate estimate;
	int forecast;

	if (!reasons->estimates || !job_is_waiting(job))
		return;
	forecast = forecast_ask(call->api->forecasts, call->facts, id, 0, &estimate);
	reasons->making |= forecast == FORECAST_MAKING;
	if (forecast != 0 || estimate.answer.start_ms == PLAY_NEVER)
		return;
	estimate_bound(&estimate, request_ms(call->facts), latest_ms);
	out_int(out, "start_ms", estimate.answer.start_ms);
}

static void summary_add(struct call *call, struct buf *out, const struct row *row,
			const struct job_filter *filter, struct reasons *reasons)
{
	const struct facts *f = call->facts;
	const struct job *job = row_job(f, row->first);
	const uint32_t id = row->waits ? row->waits : row->first;

	out_object(out, NULL);
	job_head_add(out, f, row->first, job);
	if (row->count && job->array_count > 1)
		array_add(out, f, row, filter);
	job = row_job(f, id);
	start_add(call, out, id, job, reason_add(call, out, id, job, reasons), reasons);
	out_bool(out, "simulated", job_simulated(f, job));
	out_end(out, '}');
}

/* Where the page begins in rows that are all there: behind so many of them, or behind the id. */
static size_t page_find(const struct rows *rows, const struct sorting *sorting, int64_t after)
{
	size_t at = 0;

	if (sorting->order)
		return (uint64_t)after < rows->count ? (size_t)after : rows->count;
	while (at < rows->count && rows->list[at].first <= after)
		at++;
	return at;
}

static void list_reply(struct call *call, const struct rows *rows, const struct job_filter *filter,
		       const struct sorting *sorting, int64_t after, uint32_t limit)
{
	struct reasons reasons = { .estimates = call_query_int(call, "estimates", 0) != 0 };
	const size_t first = page_find(rows, sorting, after),
		     end = rows->count - first > limit ? first + limit : rows->count;
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_list(&out, "jobs");
	for (size_t i = first; i < end; i++)
		summary_add(call, &out, &rows->list[i], filter, &reasons);
	if (reasons.view)
		planner_leave(call->api->planner);
	out_end(&out, ']');
	if (end < rows->count)
		out_int(&out, "next",
			sorting->order ? (int64_t)end : (int64_t)rows->list[end - 1].last);
	if (call_query_int(call, "total", 0))
		out_int(&out, "total", (int64_t)rows->count);
	if (reasons.making)
		out_bool(&out, "estimates_making", true);
	out_int(&out, "seq", (int64_t)call->facts->seq);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

/* Which of those that have ended. Whoever asks for a state wants all that are in it. */
static void ended_read(const struct call *call, struct job_filter *filter)
{
	if (call_query_int(call, "active", call_query(call, "state") ? 0 : 1))
		filter->ended_after_ms = call->facts->now_ms - DAY_MS;
	if (call_query_given(call, "since_ms"))
		filter->ended_after_ms = call_query_int(call, "since_ms", 0);
	filter->open = !call_query_int(call, "ended", 1);
}

void handle_job_list(struct call *call)
{
	struct job_filter filter;
	struct sorting sorting;
	struct rows rows = { 0 };
	struct err err = { 0 };
	uint32_t limit;
	int64_t after;

	if (call_page(call, &after, &limit, &err) < 0 || job_filter_read(call, &filter, &err) < 0 ||
	    order_read(call, &sorting, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	ended_read(call, &filter);
	const bool all = sorting.order || call_query_int(call, "total", 0);

	rows_collect(&rows, call->facts, &filter, all ? 0 : after, all ? SIZE_MAX : limit + 1,
		     call_query_int(call, "fold", 0) != 0);
	if (sorting.order)
		rows_sort(&rows, &sorting, &filter);
	list_reply(call, &rows, &filter, &sorting, all ? after : 0, limit);
	free(rows.list);
}
