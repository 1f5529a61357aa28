/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/course.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/model/facts.h"

static const struct {
	int64_t gpus; /* up to so many; 0 = any number */
	const char *name;
} widths[COURSE_WIDTHS] = {
	{ 1, "up to 1 GPU" },
	{ 4, "2 to 4 GPUs" },
	{ 8, "5 to 8 GPUs" },
	{ 0, "more than 8 GPUs" },
};

const char *course_width_name(uint32_t width)
{
	CHECK(width < COURSE_WIDTHS);
	return widths[width].name;
}

static uint32_t width_of(int64_t share)
{
	uint32_t width = 0;

	while (widths[width].gpus && share > widths[width].gpus * GPU_SHARE)
		width++;
	return width;
}

static void piece_make(const struct outcome *o, int64_t begin, int64_t piece_ms, uint32_t *at,
		       struct course_piece *ret)
{
	int64_t now = begin;

	while (now < begin + piece_ms) {
		const struct moment *m = &o->moments[*at];
		const bool last = *at + 1 == o->moment_count;
		const int64_t until =
			last || m[1].at_ms > begin + piece_ms ? begin + piece_ms : m[1].at_ms;
		const double part = (double)(until - now) / (double)piece_ms;

		ret->used += o->capacity ? (double)m->used * part / (double)o->capacity : 0;
		ret->running += m->running * part;
		ret->waiting += m->waiting * part;
		now = until;
		*at += !last && m[1].at_ms == until;
	}
}

/* A job that was stopped and went on counts from its first start to its end; scaled to what was really held in each piece. */
static void widths_add(const struct outcome *o, uint32_t job, struct course *c)
{
	const int64_t share = workload_share(&o->workload->jobs[job]);
	const uint32_t width = width_of(share);
	const int64_t start = o->jobs[job].start_ms, end = o->jobs[job].end_ms;

	if (start < 0 || !o->capacity)
		return;
	for (int64_t i = (start - c->from_ms) / c->piece_ms; i < c->count; i++) {
		const int64_t begin = c->from_ms + i * c->piece_ms, until = begin + c->piece_ms;
		const int64_t from = start > begin ? start : begin;
		const int64_t to = end >= 0 && end < until ? end : until;

		if (to <= from)
			break;
		c->pieces[i].by_width[width] += (double)share * (double)(to - from) /
						(double)c->piece_ms / (double)o->capacity;
	}
}

static void widths_scale(struct course_piece *p)
{
	double sum = 0;

	for (uint32_t w = 0; w < COURSE_WIDTHS; w++)
		sum += p->by_width[w];
	for (uint32_t w = 0; w < COURSE_WIDTHS && sum > 0; w++)
		p->by_width[w] *= p->used / sum;
}

void course_make(const struct outcome *o, struct course *c)
{
	const int64_t to_ms = o->moments[o->moment_count - 1].at_ms;
	uint32_t at = 0;

	c->from_ms = o->moments[0].at_ms;
	c->piece_ms = (to_ms - c->from_ms) / COURSE_PIECES + 1;
	c->count = (uint32_t)((to_ms - c->from_ms) / c->piece_ms + 1);
	c->pieces = calloc(c->count, sizeof *c->pieces);
	CHECK(c->pieces);
	for (uint32_t i = 0; i < c->count; i++)
		piece_make(o, c->from_ms + i * c->piece_ms, c->piece_ms, &at, &c->pieces[i]);
	for (uint32_t i = 0; i < o->workload->count; i++)
		widths_add(o, i, c);
	for (uint32_t i = 0; i < c->count; i++)
		widths_scale(&c->pieces[i]);
}

void course_deinit(struct course *c)
{
	free(c->pieces);
	*c = (struct course){ 0 };
}
