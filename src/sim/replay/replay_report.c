/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/replay_report.h"

#include <stdlib.h>
#include <string.h>

#include "core/model/facts.h"
#include "sim/replay/by_queue.h"
#include "sim/replay/course.h"
#include "sim/replay/foretold.h"

/* --- for people ------------------------------------------------------------------------------------------------ */

const char *replay_seconds_text(double s, char ret[32])
{
	if (s < 600)
		snprintf(ret, 32, "%.3g s", s);
	else if (s < 7200)
		snprintf(ret, 32, "%.1f min", s / 60);
	else if (s < 259200)
		snprintf(ret, 32, "%.1f h", s / 3600);
	else
		snprintf(ret, 32, "%.1f d", s / 86400);
	return ret;
}

static void times_row(FILE *out, const char *what, const struct spread *s)
{
	char a[32], b[32], c[32], d[32];

	fprintf(out, "  %-12s %12s %12s %12s %12s\n", what, replay_seconds_text(s->mean, a),
		replay_seconds_text(s->p50, b), replay_seconds_text(s->p90, c),
		replay_seconds_text(s->p99, d));
}

static void ratio_row(FILE *out, const char *what, const struct spread *s)
{
	fprintf(out, "  %-12s %12.2f %12.2f %12.2f %12.2f\n", what, s->mean, s->p50, s->p90,
		s->p99);
}

static void foretold_table(FILE *out, const struct outcome *o)
{
	struct foretold_figures f;

	if (!o->foretold_count)
		return;
	foretold_figures_make(o, &f);
	fprintf(out,
		"  starts foretold: %u jobs, %.1f %% began before P90, %.1f %% before P50; (P90 - P50) / wait %.2f; pinball loss %.0f s, "
		"by position over service rate %.0f s\n",
		f.started, f.by_safe * 100, f.by_even * 100, f.width, f.loss_s, f.plain_loss_s);
}

static void result_table(FILE *out, const struct replay_result *result)
{
	const struct figures *f = &result->figures;
	char text[32];

	fprintf(out, "%s: %u jobs, %u ended", result->outcome.policy, f->jobs, f->ended);
	if (f->refused)
		fprintf(out, ", %u refused", f->refused);
	if (f->unfinished)
		fprintf(out, ", %u never ended", f->unfinished);
	fprintf(out, "\n  %-12s %12s %12s %12s %12s\n", "", "mean", "half", "90 %", "99 %");
	times_row(out, "completion", &f->completion_s);
	times_row(out, "wait", &f->wait_s);
	times_row(out, "delay", &f->delay_s);
	ratio_row(out, "slowdown", &f->slowdown);
	ratio_row(out, "fairness", &f->fairness);
	fprintf(out,
		"  GPUs in use %.1f %% while jobs came, %.1f %% until all had ended after %s\n"
		"  %u evictions, %.1f of %.1f GPU-hours done twice\n",
		f->utilisation * 100, f->utilisation_whole * 100,
		replay_seconds_text(f->makespan_s, text), f->evictions, f->lost_gpu_h,
		f->used_gpu_h);
	if (f->network_gpu_h >= 0)
		fprintf(out,
			"  %.1f of %.1f GPU-hours by which places were slower than the best ones\n",
			f->network_gpu_h, f->used_gpu_h);
	if (f->cost > 0)
		fprintf(out, "  %.2f paid for the GPUs held\n", f->cost);
	if (f->deadlines)
		fprintf(out, "  %u of %u deadlines missed\n", f->deadlines_missed, f->deadlines);
	foretold_table(out, &result->outcome);
	if (f->unallocated_full >= 0)
		fprintf(out,
			"  %.2f %% of the GPUs open when as many had been wanted as there are\n",
			f->unallocated_full * 100);
}

enum { QUEUES_SHOWN = 20 };

static void queues_table(FILE *out, const struct outcome *o)
{
	struct queue_figures *queues;
	const uint32_t count = by_queue_make(o, &queues);
	char a[32], b[32], c[32];

	if (count > 1)
		fprintf(out, "  %-22s %7s %12s %12s %12s %9s\n", "by queue", "jobs", "completion",
			"wait", "wait, 99 %", "evicted");
	for (uint32_t i = 0; count > 1 && i < count && i < QUEUES_SHOWN; i++)
		fprintf(out, "    %-20s %7u %12s %12s %12s %9u\n", queues[i].queue, queues[i].jobs,
			replay_seconds_text(queues[i].completion_s.mean, a),
			replay_seconds_text(queues[i].wait_s.mean, b),
			replay_seconds_text(queues[i].wait_s.p99, c), queues[i].evictions);
	if (count > QUEUES_SHOWN)
		fprintf(out, "    %u more queues: --report, or -o json\n", count - QUEUES_SHOWN);
	free(queues);
}

/* What one compares first, a line each. */
static void compared_table(FILE *out, const struct replay_result *results, uint32_t count)
{
	char a[32], b[32], c[32];

	fprintf(out, "\n%-24s %12s %12s %12s %9s %9s %9s\n", "", "completion", "wait", "wait, 99 %",
		"slowdown", "in use", "evicted");
	for (uint32_t i = 0; i < count; i++) {
		const struct figures *f = &results[i].figures;

		fprintf(out, "%-24s %12s %12s %12s %9.2f %7.1f %% %9u\n", results[i].outcome.policy,
			replay_seconds_text(f->completion_s.mean, a),
			replay_seconds_text(f->wait_s.mean, b),
			replay_seconds_text(f->wait_s.p99, c), f->slowdown.mean,
			f->utilisation * 100, f->evictions);
	}
}

void replay_table(FILE *out, const struct replay_result *results, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			fputc('\n', out);
		result_table(out, &results[i]);
		queues_table(out, &results[i].outcome);
	}
	if (count > 1)
		compared_table(out, results, count);
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static void spread_json(struct buf *out, const char *name, const struct spread *s)
{
	buf_addf(
		out,
		",\"%s\":{\"mean\":%.10g,\"p50\":%.10g,\"p90\":%.10g,\"p99\":%.10g,\"most\":%.10g}",
		name, s->mean, s->p50, s->p90, s->p99, s->most);
}

static void figures_json(struct buf *out, const struct figures *f)
{
	buf_addf(
		out,
		"{\"jobs\":%u,\"ended\":%u,\"refused\":%u,\"unfinished\":%u,\"evictions\":%u,\"makespan_s\":%.10g,"
		"\"utilisation\":%.10g,\"utilisation_whole\":%.10g,\"used_gpu_h\":%.10g,\"lost_gpu_h\":%.10g",
		f->jobs, f->ended, f->refused, f->unfinished, f->evictions, f->makespan_s,
		f->utilisation, f->utilisation_whole, f->used_gpu_h, f->lost_gpu_h);
	if (f->network_gpu_h >= 0)
		buf_addf(out, ",\"network_gpu_h\":%.10g", f->network_gpu_h);
	if (f->cost > 0)
		buf_addf(out, ",\"cost\":%.10g", f->cost);
	if (f->deadlines)
		buf_addf(out, ",\"deadlines\":%u,\"deadlines_missed\":%u", f->deadlines,
			 f->deadlines_missed);
	if (f->unallocated_full >= 0)
		buf_addf(out, ",\"unallocated_full\":%.10g", f->unallocated_full);
	spread_json(out, "completion_s", &f->completion_s);
	spread_json(out, "wait_s", &f->wait_s);
	spread_json(out, "delay_s", &f->delay_s);
	spread_json(out, "slowdown", &f->slowdown);
	spread_json(out, "fairness", &f->fairness);
	buf_addc(out, '}');
}

static void queues_json(struct buf *out, const struct outcome *o)
{
	struct queue_figures *queues;
	const uint32_t count = by_queue_make(o, &queues);

	for (uint32_t i = 0; i < count; i++) {
		buf_adds(out, i ? ",{\"queue\":" : "{\"queue\":");
		buf_add_json(out, queues[i].queue, strlen(queues[i].queue));
		buf_addf(out, ",\"jobs\":%u,\"ended\":%u,\"evictions\":%u,\"used_gpu_h\":%.10g",
			 queues[i].jobs, queues[i].ended, queues[i].evictions,
			 queues[i].used_gpu_h);
		spread_json(out, "completion_s", &queues[i].completion_s);
		spread_json(out, "wait_s", &queues[i].wait_s);
		spread_json(out, "delay_s", &queues[i].delay_s);
		buf_addc(out, '}');
	}
	free(queues);
}

static void course_json(struct buf *out, const struct outcome *o)
{
	struct course c;

	course_make(o, &c);
	buf_addf(out, "{\"from_s\":%.3f,\"piece_s\":%.3f,\"points\":[", (double)c.from_ms / 1000,
		 (double)c.piece_ms / 1000);
	for (uint32_t i = 0; i < c.count; i++)
		buf_addf(out, "%s[%.5g,%.5g,%.5g]", i ? "," : "", c.pieces[i].used,
			 c.pieces[i].running, c.pieces[i].waiting);
	buf_adds(out, "]}");
	course_deinit(&c);
}

/* [name, submitted, said at even odds, said for 9 of 10, waited]: ms; waited -1 where it never started. */
static void question_json(struct buf *out, const struct outcome *o, const struct foretold *said)
{
	const struct workload_job *from = &o->workload->jobs[said->job];
	const int64_t start_ms = o->jobs[said->job].start_ms;

	buf_addc(out, '[');
	buf_add_json(out, from->name, strlen(from->name));
	buf_addf(out, ",%lld,%lld,%lld,%lld]", (long long)from->submit_ms, (long long)said->even_ms,
		 (long long)said->safe_ms,
		 (long long)(start_ms < 0 ? -1 : start_ms - from->submit_ms));
}

static void foretold_json(struct buf *out, const struct outcome *o)
{
	struct foretold_figures f;

	if (!o->foretold_count)
		return;
	foretold_figures_make(o, &f);
	buf_addf(
		out,
		",\"foretold\":{\"asked\":%u,\"started\":%u,\"before_p50\":%.10g,\"before_p90\":%.10g,"
		"\"width\":%.10g,\"pinball_s\":%.10g,\"pinball_plain_s\":%.10g,\"questions\":[",
		f.asked, f.started, f.by_even, f.by_safe, f.width, f.loss_s, f.plain_loss_s);
	for (uint32_t i = 0; i < o->foretold_count; i++) {
		if (i)
			buf_addc(out, ',');
		question_json(out, o, &o->foretold[i]);
	}
	buf_adds(out, "]}");
}

static void job_json(struct buf *out, const struct workload_job *from,
		     const struct outcome_job *job)
{
	buf_adds(out, "[");
	buf_add_json(out, from->name, strlen(from->name));
	buf_addf(out, ",%lld,%lld,%lld,%lld,%u]", (long long)from->submit_ms,
		 (long long)job->start_ms, (long long)job->end_ms, (long long)workload_share(from),
		 job->evictions);
}

void replay_json(struct buf *out, const char *cluster, const struct replay_result *results,
		 uint32_t count)
{
	buf_adds(out, "{\"format\":\"fairlead-replay 1\",\"cluster\":");
	buf_add_json(out, cluster, strlen(cluster));
	buf_adds(out, ",\"workload\":");
	buf_add_json(out, results[0].outcome.workload->path,
		     strlen(results[0].outcome.workload->path));
	buf_addf(out, ",\"gpus\":%.10g,\"policies\":[",
		 (double)results[0].outcome.capacity / (double)GPU_SHARE);
	for (uint32_t i = 0; i < count; i++) {
		const struct outcome *o = &results[i].outcome;

		buf_adds(out, i ? ",{\"policy\":" : "{\"policy\":");
		buf_add_json(out, o->policy, strlen(o->policy));
		buf_adds(out, ",\"figures\":");
		figures_json(out, &results[i].figures);
		foretold_json(out, o);
		buf_adds(out, ",\"queues\":[");
		queues_json(out, o);
		buf_adds(out, "],\"course\":");
		course_json(out, o);
		buf_adds(out, ",\"jobs\":[");
		for (uint32_t k = 0; k < o->workload->count; k++) {
			if (k)
				buf_addc(out, ',');
			job_json(out, &o->workload->jobs[k], &o->jobs[k]);
		}
		buf_adds(out, "]}");
	}
	buf_adds(out, "]}\n");
}
