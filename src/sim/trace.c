/* SPDX-License-Identifier: Apache-2.0 */
/* --trace: every decision, and why each job that waits does so, whenever that changes. */
#include <stdio.h>
#include <string.h>

#include "base/moment.h"
#include "base/parse.h"
#include "core/model/gpu_wish.h"
#include "sim/runner.h"

enum { TIME_TEXT_MAX = DURATION_TEXT_MAX + 1 };

/* Since the start; with a minus before it. */
static const char *time_text(int64_t at_ms, char out[TIME_TEXT_MAX])
{
	char text[DURATION_TEXT_MAX];

	format_duration(at_ms < WORLD_EPOCH_MS ? WORLD_EPOCH_MS - at_ms : at_ms - WORLD_EPOCH_MS,
			text);
	snprintf(out, TIME_TEXT_MAX, "%s%s", at_ms < WORLD_EPOCH_MS ? "-" : "", text);
	return out;
}

static const char *job_text(const struct run *run, int64_t id)
{
	const struct facts *f = &run->world.facts;

	return id > 0 && id <= f->jobs.count
		       ? facts_name(f, job_get(f, (struct job_id){ (uint32_t)id })->name)
		       : "?";
}

static const char *attempt_text(const struct run *run, int64_t id)
{
	const struct facts *f = &run->world.facts;

	if (id <= 0 || id > f->attempts.count)
		return "?";
	return job_text(run, attempt_get(f, (struct attempt_id){ (uint32_t)id })->job.v);
}

static void add_part(struct buf *line, uint32_t share)
{
	const struct gpu_wish wish = { 1, share < GPU_SHARE ? share : 0 };
	char text[GPU_WISH_TEXT_MAX];

	buf_addf(line, ": %s", gpu_wish_text(&wish, text));
}

/* "n0[0,1]", "n0[0: 0.5]". */
static void add_places(const struct run *run, struct buf *line, const int64_t *nodes,
		       const int64_t *masks, const int64_t *parts, uint32_t count)
{
	const struct facts *f = &run->world.facts;

	for (uint32_t i = 0; i < count; i++) {
		bool first = true;

		buf_addf(line, " %s[",
			 facts_name(f, node_get(f, (struct node_id){ (uint32_t)nodes[i] })->name));
		for (int g = 0; g < NODE_GPUS_MAX; g++)
			if (masks[i] >> g & 1) {
				buf_addf(line, first ? "%d" : ",%d", g);
				first = false;
			}
		if (parts)
			add_part(line, (uint32_t)parts[i]);
		buf_addc(line, ']');
	}
}

/* ": words", nothing when there are none. */
static void add_words(struct buf *line, const char *words)
{
	if (*words)
		buf_addf(line, ": %s", words);
}

static void describe_places(const struct run *run, const struct event *e, struct buf *line)
{
	if (e->kind == EVENT_ATTEMPT_PLACED) {
		buf_addf(line, "%s on", job_text(run, e->attempt_placed.job));
		add_places(run, line, e->attempt_placed.nodes, e->attempt_placed.masks,
			   e->attempt_placed.parts_count ? e->attempt_placed.parts : NULL,
			   e->attempt_placed.nodes_count);
		if (e->attempt_placed.resume_number)
			buf_addf(line, ", from checkpoint %lld",
				 (long long)e->attempt_placed.resume_number);
	}
	if (e->kind == EVENT_PROMISE_MADE) {
		buf_addf(line, "to %s:", job_text(run, e->promise_made.job));
		add_places(run, line, e->promise_made.nodes, e->promise_made.masks,
			   e->promise_made.parts_count ? e->promise_made.parts : NULL,
			   e->promise_made.nodes_count);
		for (uint32_t i = 0; i < e->promise_made.victims_count; i++)
			buf_addf(line, "%s%s", i ? ", " : ", once gone: ",
				 attempt_text(run, e->promise_made.victims[i]));
	}
	if (e->kind == EVENT_PROMISE_DROPPED)
		buf_addf(line, "to %s", job_text(run, e->promise_dropped.job));
	if (e->kind == EVENT_RESERVATION_SET) {
		char text[TIME_TEXT_MAX];

		buf_addf(line, "for %s, from %s on:", job_text(run, e->reservation_set.job),
			 time_text(e->reservation_set.start_ms, text));
		add_places(run, line, e->reservation_set.nodes, e->reservation_set.masks, NULL,
			   e->reservation_set.nodes_count);
	}
	if (e->kind == EVENT_RESERVATION_DROPPED)
		buf_addf(line, "of %s", job_text(run, e->reservation_dropped.job));
}

static void describe_attempt(const struct run *run, const struct event *e, struct buf *line)
{
	char text[TIME_TEXT_MAX];

	if (e->kind == EVENT_ATTEMPT_RELEASED)
		buf_adds(line, attempt_text(run, e->attempt_released.attempt));
	if (e->kind == EVENT_ATTEMPT_WARNED)
		buf_addf(line, "%s, to make room for %s, until %s",
			 attempt_text(run, e->attempt_warned.attempt),
			 e->attempt_warned.for_job ? job_text(run, e->attempt_warned.for_job)
						   : "nobody",
			 time_text(e->attempt_warned.deadline_ms, text));
	if (e->kind == EVENT_ATTEMPT_SPARED)
		buf_addf(line, "%s, no longer in anybody's way",
			 attempt_text(run, e->attempt_spared.attempt));
	if (e->kind == EVENT_ATTEMPT_STOPPED) {
		buf_addf(line, "%s, %s, grace %s", attempt_text(run, e->attempt_stopped.attempt),
			 stop_why_name((uint8_t)e->attempt_stopped.why),
			 format_duration(e->attempt_stopped.grace_ms, text));
		add_words(line, e->attempt_stopped.text);
	}
	if (e->kind == EVENT_ATTEMPT_ENDED)
		buf_addf(line, "%s, %s, lost %s of GPU time",
			 attempt_text(run, e->attempt_ended.attempt),
			 stop_why_name((uint8_t)e->attempt_ended.why),
			 format_duration(e->attempt_ended.lost_gpu_ms, text));
	if (e->kind == EVENT_TASK_EXITED)
		buf_addf(line, "%s/%lld", attempt_text(run, e->task_exited.attempt),
			 (long long)e->task_exited.rank);
}

static void describe_job(const struct run *run, const struct event *e, struct buf *line)
{
	const struct facts *f = &run->world.facts;

	if (e->kind == EVENT_JOB_SUBMITTED)
		buf_addf(line, "%s to queue %s", e->job_submitted.name, e->job_submitted.queue);
	if (e->kind == EVENT_JOB_CANCEL_ASKED)
		buf_adds(line, job_text(run, e->job_cancel_asked.job));
	if (e->kind == EVENT_JOB_CHANGED)
		buf_addf(line, "%s: %s", job_text(run, e->job_changed.job), e->job_changed.what);
	if (e->kind == EVENT_JOB_REQUEUED) {
		buf_adds(line, job_text(run, e->job_requeued.job));
		add_words(line, e->job_requeued.text);
	}
	if (e->kind == EVENT_CAPACITY_CHOSEN)
		buf_addf(line, "%s uses %s nodes; %llds to spare",
			 job_text(run, e->capacity_chosen.job),
			 capacity_name((uint8_t)e->capacity_chosen.capacity),
			 (long long)e->capacity_chosen.spare_ms / 1000);
	if (e->kind == EVENT_JOB_ENDED) {
		buf_addf(line, "%s, %s", job_text(run, e->job_ended.job),
			 job_state_name((uint8_t)e->job_ended.state));
		add_words(line, e->job_ended.text);
	}
	if (e->kind == EVENT_CHECKPOINT_SAVED)
		buf_addf(line, "%s, number %lld", job_text(run, e->checkpoint_saved.job),
			 (long long)e->checkpoint_saved.number);
	if (e->kind == EVENT_NODE_WINDOW) {
		const struct event_node_window *window = &e->node_window;
		const struct node *node = node_get(f, (struct node_id){ (uint32_t)window->node });

		buf_adds(line, facts_name(f, node->name));
		if (window->to_ms)
			buf_addf(line, " from %llds to %llds",
				 (long long)(window->from_ms - WORLD_EPOCH_MS) / 1000,
				 (long long)(window->to_ms - WORLD_EPOCH_MS) / 1000);
		else
			buf_adds(line, " none");
	}
	if (e->kind == EVENT_NODE_STATE) {
		buf_addf(line, "%s %s",
			 facts_name(f, node_get(f, (struct node_id){ (uint32_t)e->node_state.node })
					       ->name),
			 node_state_name((uint8_t)e->node_state.state));
		add_words(line, e->node_state.reason);
	}
}

void run_trace_event(struct run *run, const struct event *e, bool decision)
{
	char text[TIME_TEXT_MAX];
	AUTO_BUF line = BUF_INIT;

	describe_places(run, e, &line);
	describe_attempt(run, e, &line);
	describe_job(run, e, &line);
	if (!decision && line.size == 0)
		return;
	fprintf(run->trace, "# %8s  %c %-17s %s\n", time_text(e->time_ms, text),
		decision ? '>' : ' ', event_info(e->kind)->name, buf_text(&line));
}

/* The waiting jobs with their reasons, told when they are not as told before. */
void run_trace_waits(struct run *run)
{
	const struct facts *f = &run->world.facts;
	char text[TIME_TEXT_MAX];
	AUTO_BUF now = BUF_INIT;

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });
		struct explanation why;

		if (job_state_is_final(job->state) || job_is_live(job))
			continue;
		arena_reset(&run->world.request);
		explain_job(f, run->world.view, (struct job_id){ id }, &run->world.request, &why);
		buf_addf(&now, "#             %-17s %s: ", "  waits", facts_name(f, job->name));
		moment_count_down(&now, why.summary, f->now_ms);
		buf_addc(&now, '\n');
	}
	if (strcmp(buf_text(&now), buf_text(&run->waits)) == 0)
		return;
	fprintf(run->trace, "# %8s\n%s", time_text(f->now_ms, text), buf_text(&now));
	buf_clear(&run->waits);
	buf_adds(&run->waits, buf_text(&now));
}
