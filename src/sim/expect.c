/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what is with what is expected. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/moment.h"
#include "base/parse.h"
#include "core/model/roles.h"
#include "sim/runner.h"

static const char *duration(struct run *run, int64_t ms)
{
	char text[DURATION_TEXT_MAX];

	return arena_strdup(&run->memory, format_duration(ms, text));
}

void run_mismatch(struct run *run, struct mismatch mismatch)
{
	if (run->mismatch_count == run->mismatch_room) {
		uint32_t room = run->mismatch_room ? run->mismatch_room * 2 : 16;
		struct mismatch *grown = arena_new_array(&run->memory, struct mismatch, room);

		if (run->mismatch_count)
			memcpy(grown, run->mismatches, run->mismatch_count * sizeof(*grown));
		run->mismatches = grown;
		run->mismatch_room = room;
	}
	if (!mismatch.why)
		mismatch.why = "";
	run->mismatches[run->mismatch_count++] = mismatch;
}

/* Questions about jobs. */

static const struct job *record(const struct run *run, const struct run_job *job, uint32_t index)
{
	return job_get(&run->world.facts, (struct job_id){ job->id + index });
}

static bool is_waiting(const struct run *run, const struct run_job *job)
{
	if (job->refused)
		return true;
	for (uint32_t i = 0; i < job->count; i++)
		if (job_state_is_final(record(run, job, i)->state) ||
		    job_is_live(record(run, job, i)))
			return false;
	return job->count > 0;
}

static bool is_finished(const struct run *run, const struct run_job *job)
{
	for (uint32_t i = 0; i < job->count; i++)
		if (record(run, job, i)->state != JOB_SUCCEEDED)
			return false;
	return job->count > 0;
}

static uint32_t tasks_running(const struct run *run, const struct run_job *job)
{
	uint32_t running = 0;

	for (uint32_t i = 0; i < job->count; i++)
		running += run_tasks_running(run, job->id + i);
	return running;
}

/* Is the item about this rank of the job? Of all, or of those of a role. */
static bool item_has(const struct run *run, const struct expect_item *item,
		     const struct attempt *attempt, uint32_t rank)
{
	const struct facts *f = &run->world.facts;
	const struct shape *shape = shape_get(f, job_get(f, attempt->job)->shape);

	return !item->role ||
	       strcmp(facts_name(f, shape->role[shape_role(shape, rank)]), item->role) == 0;
}

static uint32_t role_running(const struct run *run, const struct expect_item *item,
			     const struct run_job *job)
{
	const struct facts *f = &run->world.facts;
	uint32_t running = 0;

	for (uint32_t i = 0; i < job->count; i++) {
		struct attempt_id id = record(run, job, i)->attempt;
		const struct attempt *attempt = id.v ? attempt_get(f, id) : NULL;

		for (uint32_t rank = 0; attempt && rank < attempt->tasks; rank++)
			running += task_get(f, attempt, rank)->state == TASK_RUNNING &&
				   item_has(run, item, attempt, rank);
	}
	return running;
}

static bool was_moved(const struct run *run, const struct run_job *job)
{
	return job->evicted && tasks_running(run, job) > 0;
}

static bool is_untouched(const struct run *run, const struct run_job *job)
{
	(void)run;
	return !job->touched;
}

static bool was_evicted(const struct run *run, const struct run_job *job)
{
	(void)run;
	return job->evicted;
}

/* The first job of an array that waits; 0 = none. */
static uint32_t first_waiting(const struct run *run, const struct run_job *job)
{
	for (uint32_t i = 0; i < job->count; i++)
		if (!job_state_is_final(record(run, job, i)->state) &&
		    !job_is_live(record(run, job, i)))
			return job->id + i;
	return 0;
}

static void line_add(struct buf *out, const char *sentence, int64_t now_ms)
{
	buf_adds(out, " | ");
	moment_count_down(out, sentence, now_ms);
}

/* The whole explanation as one text; "" when the job does not wait. Of an array: the first of its jobs that waits, or the first. */
static const char *explanation(struct run *run, const struct run_job *job, enum reason *ret)
{
	const int64_t now_ms = run->world.facts.now_ms;
	AUTO_BUF text = BUF_INIT;
	struct explanation why;
	uint32_t id;

	*ret = REASON_NONE;
	if (job->refused) {
		*ret = job->refusal;
		return job->refusal_text;
	}
	id = first_waiting(run, job);
	if (!id && job->count && job_is_live(record(run, job, 0)))
		id = job->id; /* then why it runs where it does */
	if (!id)
		return "";
	arena_reset(&run->world.request);
	explain_job(&run->world.facts, run->world.view, (struct job_id){ id }, &run->world.request,
		    &why);
	*ret = why.reason;
	moment_count_down(&text, why.summary, now_ms);
	for (uint32_t i = 0; i < why.line_count; i++)
		line_add(&text, why.lines[i].text, now_ms);
	if (*why.remedy)
		line_add(&text, why.remedy, now_ms);
	return arena_strdup(&run->memory, buf_text(&text));
}

static const char *state_text(const struct run *run, const struct run_job *job)
{
	return job->refused ? "refused"
	       : job->count ? job_state_name(record(run, job, 0)->state)
			    : "not submitted";
}

/* Lists of jobs: waiting, evicted, moved, untouched, finished. */

typedef bool question(const struct run *run, const struct run_job *job);

static bool is_named(const struct expect_item *item, const char *name)
{
	for (uint32_t i = 0; i < item->name_count; i++)
		if (strcmp(item->names[i], name) == 0)
			return true;
	return false;
}

static const char *list_text(struct run *run, const struct expect_item *item)
{
	AUTO_BUF text = BUF_INIT;

	for (uint32_t i = 0; i < item->name_count; i++)
		buf_addf(&text, "%s%s", i ? ", " : "", item->names[i]);
	return item->name_count ? arena_strdup(&run->memory, buf_text(&text)) : "nobody";
}

static const char *true_text(struct run *run, question *ask)
{
	AUTO_BUF text = BUF_INIT;

	for (uint32_t i = 0; i < run->scenario->job_count; i++)
		if (ask(run, &run->jobs[i]))
			buf_addf(&text, "%s%s", text.size ? ", " : "", run->jobs[i].from->name);
	return text.size ? arena_strdup(&run->memory, buf_text(&text)) : "nobody";
}

/* Exactly these, or so many. */
static void check_exactly(struct run *run, const char *when, const struct expect_item *item,
			  question *ask)
{
	int64_t count = 0;
	bool same = true;

	for (uint32_t i = 0; i < run->scenario->job_count; i++) {
		bool is = ask(run, &run->jobs[i]);

		count += is;
		same = same && is == is_named(item, run->jobs[i].from->name);
	}
	if (item->counted ? count == item->number : same)
		return;
	run_mismatch(run,
		     (struct mismatch){
			     .when = when,
			     .what = item->label,
			     .line = item->line,
			     .expected = item->counted ? arena_printf(&run->memory, "%lld jobs",
								      (long long)item->number)
						       : list_text(run, item),
			     .actual = true_text(run, ask) });
}

/* Each of these; an empty list: nobody at all. */
static void check_each(struct run *run, const char *when, const struct expect_item *item,
		       question *ask)
{
	if (item->name_count == 0 && item->key != EXPECT_UNTOUCHED) {
		check_exactly(run, when, item, ask);
		return;
	}
	for (uint32_t i = 0; i < item->name_count; i++) {
		const struct run_job *job = run_job_find(run, item->names[i]);
		enum reason reason;

		if (ask(run, job))
			continue;
		run_mismatch(run, (struct mismatch){
					  .when = when,
					  .what = item->label,
					  .line = item->line,
					  .expected = item->names[i],
					  .actual = item->key == EXPECT_UNTOUCHED
							    ? (job->evicted ? "evicted"
									    : "lost its place")
							    : state_text(run, job),
					  .why = explanation(run, job, &reason) });
	}
}

/* Numbers. */

static const char *label(struct run *run, const struct expect_item *item)
{
	return arena_printf(&run->memory, "%s.%s", expect_key_name(item->key), item->label);
}

static void check_number(struct run *run, const char *when, const struct expect_item *item,
			 int64_t actual, const char *why)
{
	if (actual == item->number)
		return;
	run_mismatch(
		run,
		(struct mismatch){
			.when = when,
			.line = item->line,
			.why = why,
			.what = item->key == EXPECT_TOTAL_RUNNING_GPUS ? item->label
								       : label(run, item),
			.expected = arena_printf(&run->memory, "%lld", (long long)item->number),
			.actual = arena_printf(&run->memory, "%lld", (long long)actual) });
}

static void check_running(struct run *run, const char *when, const struct expect_item *item)
{
	const char *why = "";
	int64_t running = 0;
	enum reason reason;

	for (uint32_t i = 0; i < item->name_count; i++) {
		const struct run_job *job = run_job_find(run, item->names[i]);

		running += item->role ? role_running(run, item, job) : tasks_running(run, job);
		if (!*why)
			why = explanation(run, job, &reason);
	}
	check_number(run, when, item, running, running < item->number ? why : "");
}

static void check_sum(struct run *run, const char *when, const struct expect_item *item)
{
	int64_t attempts = 0, lost_ms = 0;

	for (uint32_t i = 0; i < item->name_count; i++) {
		const struct run_job *job = run_job_find(run, item->names[i]);

		for (uint32_t k = 0; k < job->count; k++) {
			attempts += record(run, job, k)->attempts;
			lost_ms += record(run, job, k)->lost_gpu_ms;
		}
	}
	if (item->key == EXPECT_ATTEMPTS)
		check_number(run, when, item, attempts, "");
	else if (lost_ms != item->number)
		run_mismatch(run, (struct mismatch){ .when = when,
						     .line = item->line,
						     .what = label(run, item),
						     .expected = duration(run, item->number),
						     .actual = duration(run, lost_ms) });
}

/* Unlike tasks hold unlike shares: of those that run. */
static int64_t roles_running_share(const struct facts *f, const struct job *job,
				   const struct attempt *attempt)
{
	int64_t gpus = 0;

	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		if (task_get(f, attempt, rank)->state == TASK_RUNNING)
			gpus += shape_wish(shape_get(f, job->shape), rank).gpus;
	return gpus * GPU_SHARE;
}

/* Of so many of the job's tasks; those of one attempt hold equal parts but for what lies on unlike GPUs. */
static int64_t tasks_share(const struct facts *f, uint32_t id, uint32_t tasks)
{
	const struct job *job = job_get(f, (struct job_id){ id });
	const struct attempt *attempt;

	if (!job->attempt.v || !tasks)
		return 0;
	attempt = attempt_get(f, job->attempt);
	if (shape_get(f, job->shape)->role_count)
		return roles_running_share(f, job, attempt);
	return attempt_share(f, attempt) * tasks / attempt->tasks;
}

/* Parts of GPUs add up; what is left below a whole one does not count. */
static void check_total(struct run *run, const char *when, const struct expect_item *item)
{
	const struct facts *f = &run->world.facts;
	int64_t total = 0;

	for (uint32_t id = 1; id <= f->jobs.count; id++)
		total += tasks_share(f, id, run_tasks_running(run, id));
	check_number(run, when, item, total / GPU_SHARE, "");
}

/* Words. */

static bool is_among(const struct expect_item *item, const char *word)
{
	for (uint32_t i = 0; i < item->text_count; i++)
		if (strcmp(item->texts[i], word) == 0)
			return true;
	return false;
}

static const char *texts_text(struct run *run, const struct expect_item *item)
{
	AUTO_BUF text = BUF_INIT;

	for (uint32_t i = 0; i < item->text_count; i++)
		buf_addf(&text, "%s%s", i ? " or " : "", item->texts[i]);
	return arena_strdup(&run->memory, buf_text(&text));
}

static void word_mismatch(struct run *run, const char *when, const struct expect_item *item,
			  const char *name, const char *actual, const char *why)
{
	run_mismatch(run, (struct mismatch){ .when = when,
					     .line = item->line,
					     .why = why,
					     .what = arena_printf(&run->memory, "%s.%s",
								  expect_key_name(item->key), name),
					     .expected = texts_text(run, item),
					     .actual = actual });
}

static void check_reason(struct run *run, const char *when, const struct expect_item *item,
			 const char *name)
{
	const struct run_job *job = run_job_find(run, name);
	enum reason reason;
	const char *why = explanation(run, job, &reason);

	if (item->key == EXPECT_REASON) {
		if (!is_among(item, reason_name(reason)))
			word_mismatch(run, when, item, name,
				      reason ? reason_name(reason) : state_text(run, job), why);
		return;
	}
	for (uint32_t i = 0; i < item->text_count; i++)
		if (!strstr(why, item->texts[i]))
			run_mismatch(run, (struct mismatch){
						  .when = when,
						  .line = item->line,
						  .expected = item->texts[i],
						  .what = arena_printf(&run->memory,
								       "reason_has.%s", name),
						  .actual = *why ? why : state_text(run, job) });
}

static void check_state(struct run *run, const char *when, const struct expect_item *item,
			const char *name)
{
	const struct run_job *job = run_job_find(run, name);

	if (!job->count && !is_among(item, state_text(run, job)))
		word_mismatch(run, when, item, name, state_text(run, job), "");
	for (uint32_t i = 0; i < job->count; i++)
		if (!is_among(item, job_state_name(record(run, job, i)->state)))
			word_mismatch(run, when, item, name,
				      job_state_name(record(run, job, i)->state), "");
}

static void check_node_state(struct run *run, const char *when, const struct expect_item *item,
			     const char *name)
{
	const struct facts *f = &run->world.facts;
	struct node_id id = facts_node_find(f, name);
	const char *state = id.v ? node_state_name(node_get(f, id)->state) : "not there";

	if (!is_among(item, state))
		word_mismatch(run, when, item, name, state,
			      id.v ? facts_text(f, node_get(f, id)->reason) : "");
}

static void check_started(struct run *run, const char *when, const struct expect_item *item,
			  const char *name)
{
	const struct run_job *job = run_job_find(run, name);
	const char *expected;

	if (job->started_ms >= item->not_before_ms && job->started_ms <= item->by_ms)
		return;
	if (item->by_ms == SCENARIO_FOREVER)
		expected = arena_printf(&run->memory, "not before %s",
					duration(run, item->not_before_ms));
	else if (item->not_before_ms == 0)
		expected = arena_printf(&run->memory, "by %s", duration(run, item->by_ms));
	else
		expected =
			arena_printf(&run->memory, "%s to %s", duration(run, item->not_before_ms),
				     duration(run, item->by_ms));
	run_mismatch(run, (struct mismatch){ .when = when,
					     .line = item->line,
					     .expected = expected,
					     .what = arena_printf(&run->memory, "started.%s", name),
					     .actual = job->started_ms < 0
							       ? "never"
							       : duration(run, job->started_ms) });
}

/* Places. */

static const struct attempt *live_attempt(const struct run *run, const struct run_job *job)
{
	const struct attempt *attempt = NULL;

	if (job->count && record(run, job, 0)->attempt.v)
		attempt = attempt_get(&run->world.facts, record(run, job, 0)->attempt);
	return attempt;
}

/* What is expected of the job's place: MB/s; per mille above the best place. Of a job that does not run: 0. */
static void check_speed(struct run *run, const char *when, const struct expect_item *item)
{
	for (uint32_t i = 0; i < item->name_count; i++) {
		const struct attempt *attempt =
			live_attempt(run, run_job_find(run, item->names[i]));
		int64_t slower = attempt && attempt->slowdown_permille
					 ? (int64_t)attempt->slowdown_permille - 1000
					 : 0;

		check_number(run, when, item,
			     item->key == EXPECT_SLOWDOWN ? slower
			     : attempt                    ? attempt->bandwidth_mbps
							  : 0,
			     "");
	}
}

static const char *node_text(const struct run *run, struct node_id id)
{
	return facts_name(&run->world.facts, node_get(&run->world.facts, id)->name);
}

/* A rank that the item is about, and that holds a place. */
static bool is_meant(const struct run *run, const struct expect_item *item,
		     const struct attempt *attempt, uint32_t rank)
{
	return task_holds(task_get(&run->world.facts, attempt, rank)) &&
	       item_has(run, item, attempt, rank);
}

/* "n0 n1": the nodes that an attempt is on, each once. */
static const char *nodes_text(struct run *run, const struct expect_item *item,
			      const struct attempt *attempt, uint32_t *ret_count)
{
	AUTO_BUF text = BUF_INIT;

	*ret_count = 0;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(&run->world.facts, attempt, rank);
		bool seen = !is_meant(run, item, attempt, rank);

		for (uint32_t k = 0; k < rank && !seen; k++)
			seen = is_meant(run, item, attempt, k) &&
			       task_get(&run->world.facts, attempt, k)->node.v == task->node.v;
		if (!seen)
			buf_addf(&text, "%s%s", (*ret_count)++ ? ", " : "",
				 node_text(run, task->node));
	}
	return arena_strdup(&run->memory, buf_text(&text));
}

static bool is_within(const struct run *run, const struct expect_item *item,
		      const struct attempt *attempt, const char *level)
{
	const struct facts *f = &run->world.facts;
	const struct task *first = NULL;
	uint32_t at = 0;

	while (at < f->level_count && strcmp(facts_name(f, f->level[at]), level) != 0)
		at++;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(f, attempt, rank);

		if (!is_meant(run, item, attempt, rank))
			continue;
		first = first ? first : task;
		if (at == f->level_count ? task->node.v != first->node.v
					 : !name_same(node_get(f, task->node)->domain[at],
						      node_get(f, first->node)->domain[at]))
			return false;
	}
	return true;
}

static bool shares_gpu(const struct run *run, const struct attempt *a, const struct attempt *b)
{
	const struct facts *f = &run->world.facts;

	for (uint32_t i = 0; a && i < a->tasks; i++)
		for (uint32_t k = 0; b && k < b->tasks; k++)
			if (task_holds(task_get(f, a, i)) && task_holds(task_get(f, b, k)) &&
			    task_get(f, a, i)->node.v == task_get(f, b, k)->node.v &&
			    task_get(f, a, i)->gpu_mask & task_get(f, b, k)->gpu_mask)
				return true;
	return false;
}

static bool place_holds(struct run *run, const struct expect_item *item,
			const struct attempt *attempt, uint32_t node_count)
{
	uint32_t hits = 0;

	switch (item->form) {
	case PLACE_COUNT: return node_count == (uint32_t)item->number;
	case PLACE_WITHIN: return is_within(run, item, attempt, item->texts[0]);
	case PLACE_NODES:
	case PLACE_AVOID:
		for (uint32_t i = 0; i < item->text_count; i++) {
			bool on = false;

			for (uint32_t rank = 0; rank < attempt->tasks && !on; rank++)
				on = is_meant(run, item, attempt, rank) &&
				     strcmp(node_text(run,
						      task_get(&run->world.facts, attempt, rank)
							      ->node),
					    item->texts[i]) == 0;
			hits += on;
		}
		return item->form == PLACE_AVOID ? hits == 0
						 : hits == item->text_count && hits == node_count;
	case PLACE_SAME_GPU:
	case PLACE_OTHER_GPU:
		for (uint32_t i = 0; i < item->text_count; i++)
			hits += shares_gpu(run, attempt,
					   live_attempt(run, run_job_find(run, item->texts[i])));
		return item->form == PLACE_SAME_GPU ? hits == item->text_count : hits == 0;
	}
	UNREACHABLE();
}

static void check_place(struct run *run, const char *when, const struct expect_item *item,
			const char *name)
{
	static const char *const forms[] = {
		[PLACE_NODES] = "exactly on",       [PLACE_WITHIN] = "within one",
		[PLACE_COUNT] = "nodes:",           [PLACE_AVOID] = "not on",
		[PLACE_SAME_GPU] = "on a GPU with", [PLACE_OTHER_GPU] = "on no GPU of",
	};
	const struct run_job *job = run_job_find(run, name);
	const struct attempt *attempt = live_attempt(run, job);
	const char *nodes = "";
	uint32_t count = 0;
	enum reason reason;

	if (attempt)
		nodes = nodes_text(run, item, attempt, &count);
	if (attempt && place_holds(run, item, attempt, count))
		return;
	run_mismatch(run, (struct mismatch){
				  .when = when,
				  .line = item->line,
				  .what = arena_printf(&run->memory, "place.%s", name),
				  .expected = item->form == PLACE_COUNT
						      ? arena_printf(&run->memory, "%lld nodes",
								     (long long)item->number)
						      : arena_printf(&run->memory, "%s %s",
								     forms[item->form],
								     texts_text(run, item)),
				  .actual = attempt ? nodes : state_text(run, job),
				  .why = attempt ? "" : explanation(run, job, &reason) });
}

/* All. */

typedef void check_one(struct run *run, const char *when, const struct expect_item *item,
		       const char *name);

static void check_names(struct run *run, const char *when, const struct expect_item *item,
			check_one *check)
{
	for (uint32_t i = 0; i < item->name_count; i++)
		check(run, when, item, item->names[i]);
}

static void check_item(struct run *run, const char *when, const struct expect_item *item)
{
	switch (item->key) {
	case EXPECT_RUNNING: check_running(run, when, item); return;
	case EXPECT_WAITING: check_each(run, when, item, is_waiting); return;
	case EXPECT_EVICTED: check_exactly(run, when, item, was_evicted); return;
	case EXPECT_MOVED: check_exactly(run, when, item, was_moved); return;
	case EXPECT_UNTOUCHED: check_each(run, when, item, is_untouched); return;
	case EXPECT_FINISHED: check_each(run, when, item, is_finished); return;
	case EXPECT_PLACE: check_names(run, when, item, check_place); return;
	case EXPECT_STARTED: check_names(run, when, item, check_started); return;
	case EXPECT_REASON:
	case EXPECT_REASON_HAS: check_names(run, when, item, check_reason); return;
	case EXPECT_TOTAL_RUNNING_GPUS: check_total(run, when, item); return;
	case EXPECT_STATE: check_names(run, when, item, check_state); return;
	case EXPECT_ATTEMPTS:
	case EXPECT_WORK_LOST: check_sum(run, when, item); return;
	case EXPECT_NODE_STATE: check_names(run, when, item, check_node_state); return;
	case EXPECT_BANDWIDTH:
	case EXPECT_SLOWDOWN: check_speed(run, when, item); return;
	}
	UNREACHABLE();
}

void run_expect(struct run *run, const struct expectation *expectation)
{
	const char *when =
		expectation->at_ms == SCENARIO_FOREVER ? "end" : duration(run, expectation->at_ms);

	for (uint32_t i = 0; i < expectation->item_count; i++)
		check_item(run, when, &expectation->items[i]);
}
