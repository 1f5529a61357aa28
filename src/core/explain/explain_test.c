/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/life/interval.h"
#include "core/scheduling/testing.h"

#include <string.h>

/* What submission says of every job, at the end of its own words. */
#define ANYWAY "; its node's drain, maintenance or reservation in advance stops it too"

static struct explanation why(struct world *w, uint32_t job)
{
	struct explanation e;

	explain_job(&w->facts, w->view, (struct job_id){ job }, &w->step, &e);
	view_verify(w->view, &w->facts);
	return e;
}

static void waits_for(struct world *w, uint32_t job, enum reason reason, const char *words)
{
	struct explanation e = why(w, job);

	assert_string_equal(reason_name(e.reason), reason_name(reason));
	if (!strstr(world_reads(w, e.summary), words))
		fail_msg("\"%s\" does not say \"%s\"", e.summary, words);
}

static void the_first_true_reason_is_named(void **state)
{
	struct world w;
	uint32_t held, before, after, limit, gang, wide;

	(void)state;
	world_init(&w, "r0: n0:2 n1:2 | r1: n2:2");
	world_queue(&w, "q", "", 0, 1, 1);
	held = world_submit(&w, (struct wish){ .held = true });
	before = world_submit(&w, (struct wish){ .name = "prepare", .gpus = 2 });
	after = world_submit(&w, (struct wish){ .depends = before });
	limit = world_submit(&w, (struct wish){ .queue = "q", .gpus = 2 });
	gang = world_submit(&w, (struct wish){ .tasks = 6, .require = "rack" });
	wide = world_submit(&w, (struct wish){ .tasks = 7 });
	world_run(&w);
	waits_for(&w, held, REASON_HOLD, "held");
	waits_for(&w, after, REASON_DEPENDENCY, "job 2 \"prepare\"");
	waits_for(&w, limit, REASON_QUOTA_LIMIT, "needs 2 GPUs, and the limit of queue \"q\" is 1");
	waits_for(&w, gang, REASON_TOPOLOGY, "4 of 6");
	waits_for(&w, wide, REASON_IMPOSSIBLE, "place for 6 of 7");
	assert_int_equal(why(&w, before).reason, REASON_NONE);
	world_deinit(&w);
}

static void who_holds_and_who_is_ahead_is_told(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t last;

	(void)state;
	world_init(&w, "n0:8");
	(void)world_submit(&w, (struct wish){ .name = "holder", .gpus = 8, .limit_ms = 3600000 });
	world_run(&w);
	(void)world_submit(&w, (struct wish){ .name = "first" });
	(void)world_submit(&w, (struct wish){ .name = "better", .priority = 0, .gpus = 2 });
	last = world_submit(&w, (struct wish){ .name = "last" });
	world_decide(&w);
	e = why(&w, last);
	assert_int_equal(e.reason, REASON_CAPACITY);
	assert_int_equal(e.position, 3);
	assert_int_equal(e.ahead_count, 2);
	assert_int_equal(e.ahead[0].v, 2);
	assert_int_equal(e.ahead[1].v, 3);
	assert_non_null(
		strstr(e.lines[3].text, "the time of one GPU for 1h (nothing else is known)"));
	assert_non_null(
		strstr(world_reads(&w, e.remedy), "job 1 \"holder\" is expected to end in 1h"));
	assert_string_equal(
		e.lines[4].text,
		"a place on \"n0\" is reserved for it, and no job behind it may delay that");
	assert_non_null(
		strstr(e.lines[5].text, "job 1 \"holder\" of queue \"default\" holds 8 GPUs"));
	world_deinit(&w);
}

static void no_end_is_foretold_that_nobody_declared(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t last;

	(void)state;
	world_init(&w, "n0:1");
	(void)world_submit(&w, (struct wish){ .name = "holder" });
	world_run(&w);
	last = world_submit(&w, (struct wish){ .name = "last" });
	world_decide(&w);
	e = why(&w, last);
	assert_non_null(strstr(e.remedy,
			       "1 more free GPU; job 1 \"holder\" declares no limit or estimate"));
	assert_null(strstr(e.remedy, "expected"));
	world_deinit(&w);
}

/* The time of a start is the estimate's alone: a sentence with another one would contradict it. Times in sentences are absolute. */
static void a_reserved_place_names_no_time_of_its_own(void **state)
{
	struct explanation e;
	const char *told = NULL;
	struct world w;
	uint32_t last;

	(void)state;
	world_init(&w, "n0:1");
	(void)world_submit(&w, (struct wish){ .name = "holder", .limit_ms = 3600000 });
	world_run(&w);
	last = world_submit(&w, (struct wish){ .name = "last", .limit_ms = 36000000 });
	world_decide(&w);
	e = why(&w, last);
	for (uint32_t i = 0; i < e.line_count; i++)
		told = strstr(e.lines[i].text, "is reserved for it") ? e.lines[i].text : told;
	assert_non_null(told);
	assert_null(strstr(told, "at 1970-"));
	assert_non_null(strstr(e.remedy, "is expected to end at 1970-01-01T"));
	world_deinit(&w);
}

static void what_no_node_has_is_not_promised_for_later(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t wide;

	(void)state;
	world_init(&w, "n0:4 n1:4");
	(void)world_submit(&w, (struct wish){ .name = "holder" });
	world_run(&w);
	wide = world_submit(&w, (struct wish){ .gpus = 8 });
	world_decide(&w);
	e = why(&w, wide);
	assert_int_equal(e.reason, REASON_IMPOSSIBLE);
	assert_non_null(strstr(e.summary, "needs 8 GPUs on one node"));
	for (uint32_t i = 0; i < e.line_count; i++)
		assert_null(strstr(e.lines[i].text, "holder"));
	world_deinit(&w);
}

static bool says(const struct explanation *e, const char *words)
{
	for (uint32_t i = 0; i < e->line_count; i++)
		if (strstr(e->lines[i].text, words))
			return true;
	return false;
}

/* A node may have none of what is asked for, because it can't be used: it says why. */
static void what_no_node_has_is_told_with_the_nodes_that_can_not_be_used_and_once(void **state)
{
	struct explain_change change;
	struct explanation told;
	struct world w;
	struct event e;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:0");
	e = world_event(&w, EVENT_NODE_STATE);
	e.node_state.node = 1;
	e.node_state.state = NODE_CORDONED;
	e.node_state.reason = "its GPUs are parts";
	world_apply(&w, &e);
	job = world_submit(&w, (struct wish){ .gpus = 1 });
	world_decide(&w);
	waits_for(&w, job, REASON_IMPOSSIBLE, "needs 1 GPU on one node");
	told = why(&w, job);
	assert_true(says(
		&told, "1 node can't be used now: \"n0\", which is cordoned: its GPUs are parts"));
	explain_change(&w.facts, w.view, (struct job_id){ job }, &w.step, &change);
	assert_int_equal(change.cause_count, 1);
	world_deinit(&w);
}

static void what_a_queue_uses_is_told_in_figures_that_make_sense(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t limit, plain, spare, poor;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "q", "", 1, 1, 1);
	world_queue(&w, "r", "", 0, -1, 1);
	world_queue(&w, "s", "", 0, -1, 1);
	(void)world_submit(&w, (struct wish){ .queue = "r", .gpus = 7 });
	(void)world_submit(&w, (struct wish){ .queue = "q" });
	world_run(&w);
	limit = world_submit(&w, (struct wish){ .queue = "q" });
	plain = world_submit(&w, (struct wish){ .queue = "r" });
	spare = world_submit(&w, (struct wish){ .queue = "default", .best_effort = true });
	poor = world_submit(&w, (struct wish){ .queue = "s", .best_effort = true });
	world_run(&w);
	e = why(&w, limit);
	assert_string_equal(e.summary,
			    "needs 1 GPU, but queue \"q\" may use 0 more (its limit is 1)");
	assert_non_null(strstr(e.remedy, "give back 1 GPU, or"));
	e = why(&w, spare);
	assert_true(says(&e, "queue \"default\" uses 0 of its guarantee of 7 GPUs (no limit)"));
	e = why(&w, plain);
	assert_true(says(&e, "uses 7 of its share of 7 GPUs (guarantee 0, no limit)"));
	e = why(&w, poor);
	assert_true(says(&e, "queue \"s\" uses 0 GPUs (no guarantee, no limit)"));
	world_deinit(&w);
}

static void a_place_that_has_come_free_is_told_as_such(void **state)
{
	struct decisions d;
	struct world w;
	uint32_t low, high;

	(void)state;
	world_init(&w, "n0:1");
	world_policy(&w, 60000, 0);
	low = world_submit(&w, (struct wish){ .checkpoint = true });
	world_run(&w);
	high = world_submit(&w, (struct wish){ .priority = 1 });
	world_run(&w);
	world_exit(&w, low, 0);
	decide(&w.facts, w.view, 1000000, &w.step, &d);
	for (uint32_t i = 0; i < d.count; i++)
		world_apply(&w, &d.events[i]);
	waits_for(&w, high, REASON_CAPACITY,
		  "kept for it and is free: it starts with the next decision");
	world_deinit(&w);
}

static void a_place_kept_for_a_victim_to_leave_is_told(void **state)
{
	struct world w;
	uint32_t high, other;

	(void)state;
	world_init(&w, "n0:1");
	world_policy(&w, 60000, 0);
	(void)world_submit(&w, (struct wish){ .checkpoint = true });
	world_run(&w);
	high = world_submit(&w, (struct wish){ .priority = 1, .name = "high" });
	world_run(&w);
	other = world_submit(&w, (struct wish){ .gpus = 1 });
	waits_for(&w, high, REASON_CAPACITY,
		  "kept for it until 1 job has made room, at the latest in 1m");
	waits_for(&w, other, REASON_CAPACITY, "needs 1 GPU; 0 GPUs are free for it");
	world_deinit(&w);
}

static void a_place_promised_to_a_better_job_is_a_matter_of_priority(void **state)
{
	struct world w;
	uint32_t high, other;

	(void)state;
	world_init(&w, "n0:2");
	world_policy(&w, 60000, 0);
	(void)world_submit(&w, (struct wish){ .checkpoint = true });
	world_run(&w);
	high = world_submit(&w, (struct wish){ .priority = 1, .gpus = 2, .name = "high" });
	world_run(&w);
	other = world_submit(&w, (struct wish){ .gpus = 1 });
	world_run(&w);
	assert_int_equal(world_running(&w, other), 0);
	waits_for(&w, other, REASON_PRIORITY, "promised to job 2 \"high\"");
	assert_int_equal(why(&w, other).verdict.holder.v, high);
	world_deinit(&w);
}

static void critical_work_waits_when_other_critical_work_holds_the_guarantee(void **state)
{
	struct world w;
	uint32_t second;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "a", "", 4, -1, 1);
	(void)world_submit(&w, (struct wish){ .queue = "a", .tier = TIER_CRITICAL, .tasks = 3 });
	second = world_submit(&w, (struct wish){ .queue = "a", .tier = TIER_CRITICAL, .tasks = 2 });
	world_run(&w);
	waits_for(
		&w, second, REASON_GUARANTEE_ONLY,
		"needs 2 GPUs of the guarantee of queue \"a\", of which critical work has left 1");
	world_deinit(&w);
}

static bool has_line(struct world *w, uint32_t job, const char *words)
{
	struct explanation e = why(w, job);

	for (uint32_t i = 0; i < e.line_count; i++)
		if (strstr(e.lines[i].text, words))
			return true;
	return false;
}

static void a_reservation_is_named_with_its_holder(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t wide, late;

	(void)state;
	world_init(&w, "n0:1 n1:1 n2:1 n3:1");
	(void)world_submit(&w, (struct wish){ .tasks = 3, .limit_ms = 1860000 });
	world_run(&w);
	wide = world_submit(&w, (struct wish){ .tasks = 4, .limit_ms = 660000 });
	late = world_submit(&w, (struct wish){ .limit_ms = 3060000 });
	world_run(&w);
	e = why(&w, late);
	assert_int_equal(e.reason, REASON_RESERVATION);
	assert_int_equal(e.verdict.holder.v, wide);
	waits_for(&w, wide, REASON_CAPACITY, "needs 4 tasks of 1 GPU; 1 GPU is free for it");
	assert_true(has_line(
		&w, wide,
		"a place on \"n0\", \"n1\", \"n2\" and 1 more is reserved for it, and no job behind it may delay that"));
	world_deinit(&w);
}

static struct event submission(const struct world *w, const char *queue, int64_t tasks,
			       enum tier tier, int64_t priority)
{
	struct event e = world_event(w, EVENT_JOB_SUBMITTED);

	e.job_submitted.job = (int64_t)w->facts.jobs.count + 1;
	e.job_submitted.name = "new";
	e.job_submitted.user = "ann";
	e.job_submitted.queue = queue;
	e.job_submitted.kind = KIND_BATCH;
	e.job_submitted.tier = tier;
	e.job_submitted.priority = priority;
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = tasks;
	e.job_submitted.gpus = 1;
	e.job_submitted.preempts = 1;
	e.job_submitted.grace_ms = -1;
	return e;
}

static void a_dry_run_changes_nothing_and_says_what_would_be(void **state)
{
	struct dry_run run;
	struct event e;
	struct world w;
	uint64_t hash;

	(void)state;
	world_init(&w, "n0:4");
	(void)world_submit(&w, (struct wish){ .gpus = 3 });
	world_run(&w);
	hash = facts_hash(&w.facts);
	e = submission(&w, "default", 1, TIER_STANDARD, 0);
	core_dry_run(&w.facts, &e, &w.step, &run);
	assert_true(run.starts_now);
	assert_int_equal(run.placed->attempt_placed.masks[0], 8);
	e = submission(&w, "default", 2, TIER_STANDARD, 1);
	core_dry_run(&w.facts, &e, &w.step, &run);
	assert_false(run.starts_now);
	assert_int_equal(run.victims, 1);
	e = submission(&w, "default", 2, TIER_STANDARD, 0);
	core_dry_run(&w.facts, &e, &w.step, &run);
	assert_false(run.starts_now);
	assert_null(run.placed);
	assert_int_equal(run.why.reason, REASON_CAPACITY);
	assert_true(facts_hash(&w.facts) == hash);
	world_deinit(&w);
}

static void what_may_happen_is_said_in_one_sentence(void **state)
{
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:4");
	world_policy(&w, 120000, 600000);
	e = submission(&w, "default", 1, TIER_STANDARD, 0);
	e.job_submitted.checkpoint = 1;
	assert_string_equal(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"Standard job: once it has run for 10m, it may be stopped for more important work of its queue, for a queue that "
		"takes back its share, or in its turn for work of its own priority that is expected to need less; it then has 2m to write a checkpoint and goes on from its newest one" ANYWAY);
	{
		struct event policy = event_policy_make(w.now_ms, "test");

		policy.policy_set.take_turns = 0;
		policy.policy_set.defragment = DEFRAGMENT_ALWAYS;
		world_apply(&w, &policy);
		assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "in its turn"));
		assert_non_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step),
				       ", and so does a move that makes GPUs contiguous"));
		policy.policy_set.defragment = DEFRAGMENT_ON_DEMAND;
		policy.policy_set.grace_ms = 120000;
		policy.policy_set.min_runtime_ms = 600000;
		world_apply(&w, &policy);
	}
	e.job_submitted.window = "sat-sun";
	assert_non_null(strstr(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"; it runs only in its window (sat-sun): when that closes it is stopped, saves its work, and "
		"goes on in the next one"));
	e.job_submitted.window = "";
	e.job_submitted.limit_ms = 600000;
	assert_string_equal(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"Standard job: it is not stopped for others, as that happens only to jobs that have run for 10m; its run-time limit is 10m" ANYWAY);
	e = submission(&w, "default", 2, TIER_STANDARD, 0);
	e.job_submitted.tasks_max = 4;
	assert_non_null(strstr(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"; before that it gives up tasks above its least 2 while the others run on, and takes them again when nobody waits for the GPUs"));
	e.job_submitted.resize = RESIZE_RESTART;
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "its least 2"));
	e = submission(&w, "default", 5, TIER_CRITICAL, 0);
	assert_string_equal(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"Critical job: it is never stopped for other work, and runs only inside the guarantee of its queue" ANYWAY
		". On this cluster "
		"as it is it can't start: it needs 5 tasks of 1 GPU; the whole cluster, if it were idle, has place for 4 of 5. What "
		"would let it start: asking for less (tasks, GPUs, or wishes that no node meets all at once), or more nodes");
	world_deinit(&w);
}

static void what_a_spot_node_may_cost_is_said_where_its_notice_is_too_short(void **state)
{
	struct event e, spot;
	struct world w;

	(void)state;
	world_init(&w, "n0:8 n1:8");
	world_policy(&w, 120000, 600000);
	e = submission(&w, "default", 8, TIER_STANDARD, 0);
	e.job_submitted.checkpoint = 1;
	e.job_submitted.kind = KIND_TRAINING;
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "spot"));
	spot = world_event(&w, EVENT_NODE_MARKED);
	spot.node_marked.node = 1;
	spot.node_marked.capacity = CAPACITY_SPOT;
	world_apply(&w, &spot);
	assert_non_null(strstr(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"; on a spot node that is taken back it has 30s to save, and a checkpoint takes 1m: work since its newest checkpoint may be lost there"));
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "at most"));
	e.job_submitted.checkpoint_every_ms = 600000;
	assert_non_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step),
			       "may be lost there, at most that of 11m"));
	e.job_submitted.checkpoint_every_ms = CHECKPOINT_AUTO;
	assert_non_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step),
			       "and a machine or the loss of a spot node is expected to break"));
	assert_non_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step),
			       "may be lost there, at most that of "));
	/* Twice the notice, as EC2 gives it, is enough. */
	spot = world_event(&w, EVENT_POLICY_SET);
	spot.policy_set.grace_ms = 120000;
	spot.policy_set.spot_notice_ms = 120000;
	world_apply(&w, &spot);
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "spot"));
	world_deinit(&w);
}

/* It is stopped without a warning, so what it saves when it is warned is never saved. */
static void a_best_effort_job_is_told_to_save_as_it_runs(void **state)
{
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:8");
	e = submission(&w, "default", 1, TIER_BEST_EFFORT, 0);
	assert_non_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step),
			       "it then starts again from the beginning"));
	e.job_submitted.checkpoint = 1;
	assert_non_null(strstr(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"from the newest checkpoint that it made by itself; with `checkpoint: {every: auto}` it is asked for them"));
	e.job_submitted.checkpoint_every_ms = CHECKPOINT_AUTO;
	assert_non_null(strstr(
		explain_prospect(&w.facts, w.view, &e, &w.step),
		"from its newest checkpoint; it is asked for a checkpoint every 53m31s, as one takes 1m (assumed) and a machine or other "
		"work is expected to break it off once in"));
	e.job_submitted.checkpoint_every_ms = 0;
	e.job_submitted.external = 1;
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "auto"));
	world_deinit(&w);
}

static void a_job_that_is_protected_by_its_age_is_named_with_the_end_of_that(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t urgent, equal;

	(void)state;
	world_init(&w, "n0:2");
	world_policy(&w, -1, 600000);
	(void)world_submit(&w, (struct wish){ .name = "holder", .gpus = 2 });
	world_run(&w);
	urgent = world_submit(&w,
			      (struct wish){ .name = "urgent", .gpus = 2, .tier = TIER_CRITICAL });
	equal = world_submit(&w, (struct wish){ .name = "equal", .gpus = 2 });
	world_decide(&w);
	e = why(&w, urgent);
	assert_int_equal(e.reason, REASON_CAPACITY);
	assert_true(e.holder_protected);
	assert_string_equal(
		world_reads(&w, e.remedy),
		"job 1 \"holder\" may be stopped for it in 10m; until then it is protected, as it has not yet run for 10m (the policy's "
		"min_runtime)");
	assert_null(strstr(why(&w, equal).remedy, "protected"));
	world_deinit(&w);
}

static void a_level_that_no_place_offers_is_told_without_naming_who_runs(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t wide, gpu;

	(void)state;
	world_init(&w, "r0: n0:2 n1:2 | r1: n2:2");
	(void)world_submit(&w, (struct wish){ .name = "processor", .gpus = -1, .cpu_milli = 1000 });
	(void)world_submit(&w, (struct wish){ .name = "holder", .gpus = 2, .tasks = 3 });
	world_run(&w);
	wide = world_submit(&w, (struct wish){ .tasks = 6, .require = "rack" });
	gpu = world_submit(&w, (struct wish){ .gpus = 2 });
	world_decide(&w);
	e = why(&w, wide);
	assert_non_null(strstr(e.summary, "has place for 4 of 6 even when idle"));
	assert_null(strstr(e.remedy, "job "));
	assert_null(strstr(why(&w, gpu).remedy, "processor"));
	assert_non_null(strstr(why(&w, gpu).remedy, "holder"));
	world_deinit(&w);
}

static void a_wish_above_the_limit_of_its_queue_is_told_when_it_is_submitted(void **state)
{
	struct event e;
	struct world w;
	const char *text;

	(void)state;
	world_init(&w, "n0:8 n1:8");
	world_queue(&w, "group", "", 0, 8, 1);
	world_queue(&w, "q", "group", 0, -1, 1);
	e = submission(&w, "q", 12, TIER_STANDARD, 0);
	text = explain_prospect(&w.facts, w.view, &e, &w.step);
	if (!strstr(text,
		    "As it is it can't start: it needs 12 GPUs, and the limit of queue \"group\" is 8"))
		fail_msg("%s", text);
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 8;
	assert_null(strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "can't start"));
	e.job_submitted.checkpoint = 1;
	e.job_submitted.checkpoint_every_ms = CHECKPOINT_AUTO;
	e.job_submitted.checkpoint_cost_ms = 120000;
	if (!strstr(explain_prospect(&w.facts, w.view, &e, &w.step), "as one takes 2m (declared)"))
		fail_msg("%s", explain_prospect(&w.facts, w.view, &e, &w.step));
	world_deinit(&w);
}

/* What is told as the smallest change for a job, with its holder prepared and the line behind it as the test wants. */
static const char *change_text(struct world *w, uint32_t job, struct explain_change *change)
{
	explain_change(&w->facts, w->view, (struct job_id){ job }, &w->step, change);
	return change->text;
}

static void the_end_of_the_holder_is_enough_for_the_first_in_a_line_of_equals(void **state)
{
	struct explain_change change;
	struct world w;
	uint32_t holder, first = 0;

	(void)state;
	world_init(&w, "n0:4");
	holder = world_submit(&w, (struct wish){ .name = "holder", .gpus = 4 });
	for (int i = 0; i < 9; i++) {
		uint32_t id = world_submit(&w, (struct wish){ .name = "line" });

		first = first ? first : id;
	}
	world_decide(&w); /* the holder is being prepared */
	assert_string_equal(change_text(&w, first, &change), "the end of job 1 \"holder\"");
	assert_true(change.smallest);
	world_run(&w);
	assert_string_equal(change_text(&w, first, &change), "the end of job 1 \"holder\"");
	assert_int_equal(change.parts[0].id, holder);
	world_deinit(&w);
}

/* The example of README.md. */
static void a_hold_and_one_end_are_enough_under_a_limit_that_the_end_makes_room_in(void **state)
{
	struct explain_change change;
	struct event held;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "q", "", 0, 4, 1);
	world_queue(&w, "r", "", 0, -1, 1);
	(void)world_submit(&w, (struct wish){ .name = "own", .queue = "q", .gpus = 4 });
	(void)world_submit(&w, (struct wish){ .name = "other", .queue = "r", .gpus = 4 });
	job = world_submit(&w, (struct wish){ .name = "it", .queue = "q", .gpus = 4 });
	held = world_event(&w, EVENT_JOB_HELD);
	held.job_held.job = job;
	world_apply(&w, &held);
	world_run(&w);
	assert_string_equal(change_text(&w, job, &change),
			    "its release (`fairlead release 3`) and the end of job 1 \"own\"");
	assert_true(change.smallest);
	assert_int_equal(change.cause_count, 3);
	assert_int_equal(change.causes[0].code, REASON_HOLD);
	assert_int_equal(change.causes[1].code, REASON_QUOTA_LIMIT);
	assert_int_equal(change.causes[2].code, REASON_CAPACITY);
	world_deinit(&w);
}

static void who_has_many_equals_before_it_is_told_the_priority_that_puts_it_first(void **state)
{
	struct explain_change change;
	struct world w;
	uint32_t last = 0;

	(void)state;
	world_init(&w, "n0:4");
	(void)world_submit(&w, (struct wish){ .name = "holder", .gpus = 4 });
	for (int i = 0; i < 9; i++)
		last = world_submit(&w, (struct wish){ .name = "line", .polite = true });
	world_decide(&w);
	world_run(&w);
	assert_string_equal(
		change_text(&w, last, &change),
		"the end of job 1 \"holder\" and priority 1 (`fairlead priority 10 --to 1`)");
	world_deinit(&w);
}

static void what_no_node_offers_is_told_as_the_wish_to_give_up(void **state)
{
	struct explain_change change;
	struct event e;
	struct world w;

	(void)state;
	world_init(&w, "n0:4");
	e = world_event(&w, EVENT_NODE_MARKED);
	e.node_marked.node = 1;
	e.node_marked.labels = "";
	e.node_marked.taints = "kept=late";
	world_apply(&w, &e);
	assert_string_equal(change_text(&w, world_submit(&w, (struct wish){ .gpus = 1 }), &change),
			    "tolerating the taint kept=late");
	assert_int_equal(change.parts[0].kind, CHANGE_TOLERATE);
	world_deinit(&w);
}

static void budget_set(struct world *w, const char *queue, int64_t left)
{
	struct event e = world_event(w, EVENT_BUDGET_SET);

	e.budget_set.queue = queue;
	e.budget_set.left_micro = left * 1000000;
	e.budget_set.currency = "EUR";
	world_apply(w, &e);
}

/* 4 GPUs for 10 h at 2 each are 80. The group has 100, of which 40 are spoken for; the queue 10 of its own. */
static void a_budget_that_is_too_small_is_told_with_what_it_should_be(void **state)
{
	struct explain_change change;
	struct event price;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "group", "", 0, -1, 1);
	world_queue(&w, "q", "group", 0, -1, 1);
	budget_set(&w, "group", 100);
	budget_set(&w, "q", 10);
	price = world_event(&w, EVENT_PRICE_SET);
	price.price_set.model = "H100-80GB";
	price.price_set.micro_per_hour = 2000000;
	world_apply(&w, &price);
	(void)world_submit(&w, (struct wish){ .queue = "group", .gpus = 2, .limit_ms = 36000000 });
	job = world_submit(&w, (struct wish){ .queue = "q", .gpus = 4, .limit_ms = 36000000 });
	world_run(&w);
	assert_int_equal(world_running(&w, job), 0);
	assert_string_equal(change_text(&w, job, &change),
			    "80.00 EUR left in the budget of queue \"q\" and 120.00 EUR left in "
			    "the budget of queue \"group\"");
	assert_int_equal(change.cause_count, 2);
	assert_true(change.smallest);
	budget_set(&w, "q", 80);
	world_run(&w);
	assert_string_equal(change_text(&w, job, &change),
			    "120.00 EUR left in the budget of queue \"group\"");
	budget_set(&w, "group", 120);
	world_run(&w);
	assert_int_equal(world_running(&w, job), 1);
	world_deinit(&w);
}

static void node_partitioning(struct world *w, uint32_t partitioning)
{
	struct event e = world_event(w, EVENT_NODE_MARKED);

	e.node_marked.node = 1;
	e.node_marked.labels = e.node_marked.taints = "";
	e.node_marked.partitioning = partitioning;
	world_apply(w, &e);
}

static void sliceable_node(struct world *w, int64_t gpus)
{
	struct event e = world_event(w, EVENT_NODE_SET);

	e.node_set.name = "m";
	e.node_set.gpus = gpus;
	e.node_set.model = "H100-80GB";
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 1 << 20;
	e.node_set.simulated = 1;
	world_apply(w, &e);
}

static void who_lacks_a_slice_is_told_which_gpu_to_cut_and_each_cause_once(void **state)
{
	static const uint32_t kinds[] = { PARTITIONING_FIXED, PARTITIONING_OFF };
	static const char *const texts[] = {
		"GPU m/0 cut into 4g.40gb,3g.40gb (an admin: `fairlead gpus cut m/0 --slices 4g.40gb,3g.40gb`, or for this and later "
		"ones `fairlead nodes set m --partitioning auto`)",
		"GPU m/0 cut into 4g.40gb,3g.40gb (an admin: `fairlead nodes set m --partitioning auto`)"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct explain_change change;
		struct world w;
		uint32_t job;

		world_init(&w, "");
		sliceable_node(&w, 1);
		node_partitioning(&w, kinds[i]);
		job = world_submit(&w, (struct wish){ .kind = KIND_BATCH, .slice = "3g.40gb" });
		world_run(&w);
		assert_string_equal(change_text(&w, job, &change), texts[i]);
		assert_int_equal(change.cause_count, 1);
		assert_true(change.smallest);
		node_partitioning(&w, PARTITIONING_AUTO); /* as it says */
		world_run(&w);
		assert_int_equal(world_running(&w, job), 1);
		world_deinit(&w);
	}
}

static void where_no_gpu_is_idle_the_end_of_a_job_gives_the_slice(void **state)
{
	struct explain_change change;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "");
	sliceable_node(&w, 1);
	node_partitioning(&w, PARTITIONING_AUTO);
	(void)world_submit(&w,
			   (struct wish){ .name = "a", .kind = KIND_BATCH, .slice = "7g.80gb" });
	world_run(&w);
	node_partitioning(&w, PARTITIONING_FIXED);
	job = world_submit(&w, (struct wish){ .kind = KIND_BATCH, .slice = "7g.80gb" });
	world_run(&w);
	assert_string_equal(change_text(&w, job, &change), "the end of job 1 \"a\"");
	assert_int_equal(change.cause_count, 1);
	world_deinit(&w);
}

static void price_set(struct world *w, const char *model, int64_t per_hour)
{
	struct event price = world_event(w, EVENT_PRICE_SET);

	price.price_set.model = model;
	price.price_set.micro_per_hour = per_hour * 1000000;
	world_apply(w, &price);
}

/* 2 GPUs at 2 an hour for a limit of 10 h, which says no more than that it runs for 0 to 10 h: 5 h and 9 h. */
static void what_a_job_is_expected_to_cost_is_told(void **state)
{
	struct price_range price;
	struct dry_run run;
	struct event e;
	struct world w;
	uint32_t job;

	(void)state;
	world_init(&w, "n0:4");
	job = world_submit(&w, (struct wish){ .gpus = 4, .limit_ms = 36000000 });
	core_price(&w.facts, w.view, (struct job_id){ job }, NULL, &price);
	assert_false(price.known);
	price_set(&w, "any", 2);
	core_price(&w.facts, w.view, (struct job_id){ job }, NULL, &price);
	assert_true(price.known && !price.placed && price.per_hour_micro == 8000000);
	assert_true(price.likely_micro == 40000000 && price.safe_micro == 72000000);
	assert_true(price.most_micro == 80000000 && price.by == PRICE_BY_LIMIT);
	world_run(&w);
	e = submission(&w, "default", 2, TIER_STANDARD, 0);
	e.job_submitted.limit_ms = 36000000;
	core_dry_run(&w.facts, &e, &w.step, &run);
	assert_false(run.starts_now);
	assert_true(run.price.known && !run.price.placed && run.price.safe_micro == 36000000);
	price_set(&w, "H100-80GB", 3); /* the model of n0 */
	core_price(&w.facts, w.view, (struct job_id){ job }, NULL, &price);
	assert_true(price.placed && price.per_hour_micro == 12000000);
	world_deinit(&w);
}

/* Of two nodes one is of another model: who holds that is nobody to wait for, and a job that no node suits is ahead of nobody. */
static void only_what_suits_a_job_is_named(void **state)
{
	struct explanation e;
	struct event node;
	struct world w;
	uint32_t waits;

	(void)state;
	world_init(&w, "n0:2 n1:8");
	node = world_event(&w, EVENT_NODE_SET);
	node.node_set.name = "n0";
	node.node_set.gpus = 2;
	node.node_set.model = "L4";
	node.node_set.gpu_memory_mib = 24000;
	node.node_set.cpu_milli = 64000;
	node.node_set.ram_mib = 262144;
	world_apply(&w, &node);
	(void)world_submit(&w, (struct wish){ .name = "large", .gpus = 8, .limit_ms = 60000 });
	(void)world_submit(
		&w,
		(struct wish){ .name = "small", .gpus = 2, .models = "L4", .limit_ms = 3600000 });
	world_run(&w);
	(void)world_submit(&w, (struct wish){ .name = "never", .models = "B200" });
	(void)world_submit(&w, (struct wish){ .name = "wide", .models = "L4", .tasks = 3 });
	waits = world_submit(&w, (struct wish){ .name = "waits", .models = "L4" });
	world_decide(&w);
	e = why(&w, waits);
	assert_int_equal(e.reason, REASON_CAPACITY);
	assert_int_equal(e.ahead_count, 0);
	assert_true(has_line(&w, waits, "job 2 \"small\""));
	assert_false(has_line(&w, waits, "large"));
	assert_null(strstr(e.remedy, "large"));
	assert_non_null(strstr(e.remedy, "job 2 \"small\""));
	for (uint32_t i = 0; i < e.line_count; i++)
		assert_string_not_equal(explain_line_code(&e.lines[i]), "none");
	world_deinit(&w);
}

static void a_job_that_makes_room_is_told_for_whom_and_until_when(void **state)
{
	struct explanation e;
	struct world w;
	uint32_t low;

	(void)state;
	world_init(&w, "n0:1");
	world_policy(&w, 60000, 0);
	low = world_submit(&w, (struct wish){ .checkpoint = true });
	world_run(&w);
	(void)world_submit(&w, (struct wish){ .priority = 1, .name = "high" });
	world_decide(&w);
	assert_int_equal(world_state(&w, low), JOB_CHECKPOINTING);
	e = why(&w, low);
	assert_string_equal(
		world_reads(&w, e.summary),
		"it makes room for job 2 \"high\": it saves its work on n0, is stopped in 1m at the latest, and then waits for its turn");
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_suits_a_job_is_named),
		cmocka_unit_test(a_job_that_makes_room_is_told_for_whom_and_until_when),
		cmocka_unit_test(what_a_job_is_expected_to_cost_is_told),
		cmocka_unit_test(the_first_true_reason_is_named),
		cmocka_unit_test(who_holds_and_who_is_ahead_is_told),
		cmocka_unit_test(no_end_is_foretold_that_nobody_declared),
		cmocka_unit_test(a_reserved_place_names_no_time_of_its_own),
		cmocka_unit_test(what_no_node_has_is_not_promised_for_later),
		cmocka_unit_test(
			what_no_node_has_is_told_with_the_nodes_that_can_not_be_used_and_once),
		cmocka_unit_test(what_a_queue_uses_is_told_in_figures_that_make_sense),
		cmocka_unit_test(a_place_that_has_come_free_is_told_as_such),
		cmocka_unit_test(a_place_kept_for_a_victim_to_leave_is_told),
		cmocka_unit_test(a_place_promised_to_a_better_job_is_a_matter_of_priority),
		cmocka_unit_test(critical_work_waits_when_other_critical_work_holds_the_guarantee),
		cmocka_unit_test(a_reservation_is_named_with_its_holder),
		cmocka_unit_test(a_dry_run_changes_nothing_and_says_what_would_be),
		cmocka_unit_test(what_may_happen_is_said_in_one_sentence),
		cmocka_unit_test(what_a_spot_node_may_cost_is_said_where_its_notice_is_too_short),
		cmocka_unit_test(a_best_effort_job_is_told_to_save_as_it_runs),
		cmocka_unit_test(a_job_that_is_protected_by_its_age_is_named_with_the_end_of_that),
		cmocka_unit_test(a_level_that_no_place_offers_is_told_without_naming_who_runs),
		cmocka_unit_test(a_wish_above_the_limit_of_its_queue_is_told_when_it_is_submitted),
		cmocka_unit_test(the_end_of_the_holder_is_enough_for_the_first_in_a_line_of_equals),
		cmocka_unit_test(
			a_hold_and_one_end_are_enough_under_a_limit_that_the_end_makes_room_in),
		cmocka_unit_test(
			who_has_many_equals_before_it_is_told_the_priority_that_puts_it_first),
		cmocka_unit_test(what_no_node_offers_is_told_as_the_wish_to_give_up),
		cmocka_unit_test(a_budget_that_is_too_small_is_told_with_what_it_should_be),
		cmocka_unit_test(who_lacks_a_slice_is_told_which_gpu_to_cut_and_each_cause_once),
		cmocka_unit_test(where_no_gpu_is_idle_the_end_of_a_job_gives_the_slice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
