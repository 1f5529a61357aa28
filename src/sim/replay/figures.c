/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/figures.h"

#include <stdlib.h>

#include "base/check.h"

static const double slowdown_floor_ms = 10000;

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, uint32_t count, uint32_t percent)
{
	const uint32_t at = (uint32_t)((uint64_t)count * percent / 100);

	return sorted[at < count ? at : count - 1];
}

struct spread spread_of(double *values, uint32_t count)
{
	struct spread s = { 0 };

	if (!count)
		return s;
	for (uint32_t i = 0; i < count; i++)
		s.mean += values[i] / count;
	qsort(values, count, sizeof *values, by_value);
	s.p50 = quantile(values, count, 50);
	s.p90 = quantile(values, count, 90);
	s.p99 = quantile(values, count, 99);
	s.most = values[count - 1];
	return s;
}

/* --- over time ------------------------------------------------------------------------------------------------ */

/* Sums of share times time up to each moment. */
struct sums {
	const struct outcome *outcome;
	double *used, *wanted;
};

static void sums_init(struct sums *s, const struct outcome *o)
{
	s->outcome = o;
	s->used = calloc((size_t)o->moment_count + 1, sizeof *s->used);
	s->wanted = calloc((size_t)o->moment_count + 1, sizeof *s->wanted);
	CHECK(s->used && s->wanted);
	for (uint32_t i = 1; i < o->moment_count; i++) {
		const struct moment *m = &o->moments[i - 1];
		const double ms = (double)(o->moments[i].at_ms - m->at_ms);
		const int64_t wanted = m->wanted > o->capacity ? m->wanted : o->capacity;

		s->used[i] = s->used[i - 1] + (double)m->used * ms;
		s->wanted[i] = s->wanted[i - 1] + (double)wanted * ms;
	}
}

/* The last moment not after the time. */
static uint32_t moment_at(const struct outcome *o, int64_t at_ms)
{
	uint32_t low = 0, high = o->moment_count;

	while (high - low > 1) {
		const uint32_t middle = (low + high) / 2;

		if (o->moments[middle].at_ms <= at_ms)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static double used_until(const struct sums *s, int64_t at_ms)
{
	const uint32_t i = moment_at(s->outcome, at_ms);
	const struct moment *m = &s->outcome->moments[i];

	return s->used[i] + (double)m->used * (double)(at_ms - m->at_ms);
}

/* How many clusters' worth were wanted, in mean, while the job was there. */
static double crowd(const struct sums *s, int64_t from_ms, int64_t to_ms)
{
	const uint32_t a = moment_at(s->outcome, from_ms), b = moment_at(s->outcome, to_ms);

	if (to_ms <= from_ms || !s->outcome->capacity)
		return 1;
	return (s->wanted[b] - s->wanted[a]) / (double)(to_ms - from_ms) /
	       (double)s->outcome->capacity;
}

static void over_time(const struct outcome *o, const struct sums *s, struct figures *f)
{
	const struct workload *w = o->workload;
	const int64_t first_ms = w->jobs[0].submit_ms, last_ms = w->jobs[w->count - 1].submit_ms;
	int64_t end_ms = first_ms;
	double share = 0;

	for (uint32_t i = 0; i < w->count; i++)
		if (o->jobs[i].end_ms > end_ms)
			end_ms = o->jobs[i].end_ms;
	f->makespan_s = (double)(end_ms - first_ms) / 1000;
	if (last_ms > first_ms)
		f->utilisation = (used_until(s, last_ms) - used_until(s, first_ms)) /
				 (double)(last_ms - first_ms) / (double)o->capacity;
	if (end_ms > first_ms)
		f->utilisation_whole = (used_until(s, end_ms) - used_until(s, first_ms)) /
				       (double)(end_ms - first_ms) / (double)o->capacity;
	f->unallocated_full = -1;
	for (uint32_t i = 0; i < w->count; i++) {
		share += (double)workload_share(&w->jobs[i]);
		if (share < (double)o->capacity)
			continue;
		f->unallocated_full =
			1 - (double)o->moments[moment_at(o, w->jobs[i].submit_ms)].used /
				    (double)o->capacity;
		break;
	}
}

/* --- over jobs ------------------------------------------------------------------------------------------------- */

struct columns {
	double *completion, *wait, *delay, *slowdown, *fairness;
};

static void job_add(const struct outcome *o, const struct sums *s, uint32_t i,
		    const struct columns *c, uint32_t at)
{
	const struct workload_job *from = &o->workload->jobs[i];
	const struct outcome_job *out = &o->jobs[i];
	const double took = (double)(out->end_ms - from->submit_ms), alone = (double)from->run_ms;

	c->completion[at] = took / 1000;
	c->wait[at] = (double)(out->start_ms - from->submit_ms) / 1000;
	c->delay[at] = (took - alone) / 1000;
	c->slowdown[at] = (took > slowdown_floor_ms ? took : slowdown_floor_ms) /
			  (alone > slowdown_floor_ms ? alone : slowdown_floor_ms);
	c->fairness[at] = took / (alone * crowd(s, from->submit_ms, out->end_ms));
}

static void count_job(const struct workload_job *from, const struct outcome_job *out,
		      struct figures *f)
{
	f->deadlines += from->deadline_ms > 0;
	f->deadlines_missed +=
		from->deadline_ms > 0 &&
		(out->end_ms < 0 || out->end_ms > from->submit_ms + from->deadline_ms);
	f->refused += out->refused;
	f->unfinished += !out->refused && out->end_ms < 0;
	f->evictions += out->evictions;
	f->used_gpu_h += (double)out->used_ms / 3600000;
	f->lost_gpu_h += (double)out->lost_ms / 3600000;
	f->cost += out->cost;
	f->network_gpu_h += (double)out->network_ms / 3600000;
}

void figures_make(const struct outcome *o, struct figures *f)
{
	const uint32_t count = o->workload->count;
	double *values = calloc((size_t)count * 5, sizeof *values);
	struct columns c = { values, values + count, values + (size_t)2 * count,
			     values + (size_t)3 * count, values + (size_t)4 * count };
	struct sums s;

	CHECK(values && o->moment_count);
	*f = (struct figures){ .jobs = count };
	sums_init(&s, o);
	for (uint32_t i = 0; i < count; i++) {
		count_job(&o->workload->jobs[i], &o->jobs[i], f);
		if (o->jobs[i].end_ms >= 0)
			job_add(o, &s, i, &c, f->ended++);
	}
	if (!o->networked)
		f->network_gpu_h = -1;
	f->completion_s = spread_of(c.completion, f->ended);
	f->wait_s = spread_of(c.wait, f->ended);
	f->delay_s = spread_of(c.delay, f->ended);
	f->slowdown = spread_of(c.slowdown, f->ended);
	f->fairness = spread_of(c.fairness, f->ended);
	over_time(o, &s, f);
	free(values);
	free(s.used);
	free(s.wanted);
}

uint32_t figures_sorted(const struct outcome *o, enum figure which, double *ret)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < o->workload->count; i++) {
		const struct outcome_job *out = &o->jobs[i];
		const int64_t to_ms = which == FIGURE_WAIT ? out->start_ms : out->end_ms;

		if (out->end_ms >= 0)
			ret[count++] = (double)(to_ms - o->workload->jobs[i].submit_ms) / 1000;
	}
	qsort(ret, count, sizeof *ret, by_value);
	return count;
}
