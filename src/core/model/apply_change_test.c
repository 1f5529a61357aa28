/* SPDX-License-Identifier: Apache-2.0 */
/* Changed jobs: the event, what it does to waiting and running ones, and that a changed job is the one that was submitted so. */
#include "core/model/edit.h" /* before the global `f` */
#include "core/model/apply_testing.h"

#include <string.h>

#include "core/model/apply.h"
#include "core/model/job_change.h"
#include "core/model/random_events.h"

static const struct job *job_at(uint32_t id)
{
	return job_get(&f, (struct job_id){ id });
}

static const struct body *body_of(uint32_t id)
{
	return table_get(&f.bodies, job_at(id)->body);
}

static struct event submitted(int64_t time_ms, const struct event_job_submitted *job)
{
	struct event e = event_of(EVENT_JOB_SUBMITTED, time_ms,
				  &(const struct event){ .job_submitted = *job });

	return e;
}

static void every_word_is_known_once_and_all_fit_into_a_record(void **state)
{
	char text[EVENT_TEXT_MAX + 1];
	uint64_t all = JOB_CHANGES == 64 ? UINT64_MAX : (UINT64_C(1) << JOB_CHANGES) - 1, set;

	(void)state;
	for (unsigned i = 0; i < JOB_CHANGES; i++) {
		enum job_change found;

		assert_true(job_change_find(job_change_word((enum job_change)i), &found));
		assert_int_equal(found, i);
	}
	job_changes_text(all, text);
	assert_true(strlen(text) <= EVENT_TEXT_MAX);
	assert_true(job_changes_parse(text, &set));
	assert_true(set == all);
	assert_false(job_changes_parse("limit,hat", &set));
	assert_true(set == JOB_CHANGE_BIT(LIMIT));
}

static void only_the_words_of_the_record_count(void **state)
{
	const struct shape *shape;

	(void)state;
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 20, .job = 1, .name = "train", .user = "ada",
		      .queue = "default", .tasks_min = 2, .tasks_max = 4, .gpus = 1,
		      .models = "H100-80GB", .limit_ms = 3600000, .retries = 2, .grace_ms = -1));
	fits(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "gpus,limit", .gpus = 2,
		      .limit_ms = 60000, .priority = 9, .queue = "nowhere"));
	shape = shape_get(&f, job_at(1)->shape);
	assert_int_equal(shape->gpus, 2);
	assert_int_equal(shape->tasks_min, 2);
	assert_int_equal(shape->tasks_max, 4);
	assert_string_equal(facts_name(&f, shape->models[0]), "H100-80GB");
	assert_int_equal(job_at(1)->limit_ms, 60000);
	assert_int_equal(job_at(1)->priority, 0);
	assert_int_equal(job_at(1)->retries_left, 2);
	assert_int_equal(job_at(1)->submitted_ms, 20);
	assert_true(job_at(1)->grace_ms == UINT32_MAX);
}

static void what_does_not_fit_changes_nothing(void **state)
{
	(void)state;
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 20, .job = 1, .name = "a", .queue = "default",
		      .array_count = 3, .tasks_min = 1, .gpus = 1));
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 4, .what = "limit",
			      .limit_ms = 1000));
	does_not_fit(
		EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "", .limit_ms = 1000));
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "hat"));
	does_not_fit(
		EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "queue", .queue = "hat"));
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "gpus", .gpus = 99));
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "topology.require",
			      .require = "moon"));
	/* The deadline is the array's. */
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 2, .what = "deadline",
			      .deadline_ms = 99000));
	fits(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 2, .what = "deadline,array.limit",
		      .deadline_ms = 99000, .array_limit = 2, .whole = 1));
	assert_int_equal(body_of(1)->deadline_ms, 99000);
	assert_int_equal(body_of(3)->array_limit, 2);
	fits(EVENT_OF(JOB_ENDED, job_ended, 40, .job = 1, .state = JOB_CANCELLED, .rank = -1));
	does_not_fit(
		EVENT_OF(JOB_CHANGED, job_changed, 50, .job = 1, .what = "limit", .limit_ms = 9));
}

static void of_a_running_job_name_limit_and_deadline_change(void **state)
{
	static const int64_t nodes[] = { 1 }, masks[] = { 1 };

	(void)state;
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 20, .job = 1, .name = "a", .queue = "default",
		      .tasks_min = 1, .gpus = 1));
	fits(EVENT_OF(ATTEMPT_PLACED, attempt_placed, 30, .job = 1, .attempt = 1, .nodes = nodes,
		      .nodes_count = 1, .masks = masks, .masks_count = 1));
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 40, .job = 1, .what = "gpus", .gpus = 2));
	does_not_fit(EVENT_OF(JOB_CHANGED, job_changed, 40, .job = 1, .what = "limit,gpus",
			      .limit_ms = 5000, .gpus = 2));
	fits(EVENT_OF(JOB_CHANGED, job_changed, 40, .job = 1, .what = "name,limit,deadline",
		      .name = "b", .limit_ms = 5000, .deadline_ms = 77000));
	assert_string_equal(facts_name(&f, job_at(1)->name), "b");
	assert_int_equal(job_at(1)->limit_ms, 5000);
	assert_int_equal(body_of(1)->deadline_ms, 77000);
	assert_int_equal(job_at(1)->state, JOB_STARTING);
}

static void a_place_that_was_kept_is_given_up_with_the_wish_it_was_for(void **state)
{
	static const int64_t nodes[] = { 1 }, masks[] = { 1 };

	(void)state;
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 20, .job = 1, .name = "a", .queue = "default",
		      .tasks_min = 1, .gpus = 1));
	fits(EVENT_OF(PROMISE_MADE, promise_made, 30, .job = 1, .nodes = nodes, .nodes_count = 1,
		      .masks = masks, .masks_count = 1));
	fits(EVENT_OF(RESERVATION_SET, reservation_set, 30, .job = 1, .start_ms = 900,
		      .nodes = nodes, .nodes_count = 1, .masks = masks, .masks_count = 1));
	fits(EVENT_OF(JOB_CHANGED, job_changed, 40, .job = 1, .what = "name,retries,project",
		      .name = "b", .retries = 3, .project = "p"));
	assert_true(job_at(1)->promise);
	assert_non_null(facts_reservation(&f, (struct job_id){ 1 }));
	fits(EVENT_OF(JOB_CHANGED, job_changed, 50, .job = 1, .what = "gpus", .gpus = 2));
	assert_false(job_at(1)->promise);
	assert_null(facts_reservation(&f, (struct job_id){ 1 }));
}

static void a_job_that_moves_to_another_queue_is_counted_there(void **state)
{
	const struct name *ada;

	(void)state;
	fits(EVENT_OF(QUEUE_SET, queue_set, 15, .name = "other", .limit_share = -1, .weight = 1));
	fits(EVENT_OF(JOB_SUBMITTED, job_submitted, 20, .job = 1, .name = "a", .user = "ada",
		      .queue = "default", .tasks_min = 1, .gpus = 1, .body_bytes = 70));
	fits(EVENT_OF(JOB_CHANGED, job_changed, 30, .job = 1, .what = "queue", .queue = "other"));
	ada = table_get(&f.names, facts_name_find(&f, "ada").v);
	assert_int_equal(ada->waiting_jobs, 1);
	assert_int_equal(ada->waiting_bytes, 70);
	for (uint32_t row = ada->waiting; row;) {
		const struct waiting *w = table_get(&f.waitings, row);

		assert_int_equal(w->jobs, w->queue == facts_queue_find(&f, "other").v);
		row = w->next;
	}
}

/* --- submit A, then change to B, is submit B ------------------------------------------------------------------ */

static void shape_known(struct facts *facts, const struct event_job_submitted *job)
{
	struct shape shape;

	assert_true(submission_shape(facts, job, &shape));
	(void)facts_intern_shape(facts, &shape);
}

/* Of facts with one job. Both shapes are known before: their numbers are those of the first time that somebody asked so. */
static uint64_t hash_after(const struct event_job_submitted *from,
			   const struct event_job_submitted *to, struct event first,
			   const struct event *then)
{
	uint64_t hash;
	struct facts copy;

	facts_freeze(&f, &copy);
	shape_known(&copy, from);
	shape_known(&copy, to);
	first.seq = copy.seq + 1;
	first.time_ms = 1000;
	apply(&copy, &first);
	if (then) {
		struct event changed = *then;

		changed.seq = copy.seq + 1;
		changed.time_ms = 1000;
		apply(&copy, &changed);
	} else {
		struct event ticked = event_make(EVENT_CLOCK_TICKED, 1000, "fairlead");

		ticked.seq = copy.seq + 1;
		apply(&copy, &ticked);
	}
	facts_verify(&copy);
	hash = facts_hash(&copy);
	facts_deinit(&copy);
	return hash;
}

static const int64_t speeds[] = { 1000, 450 };
static const struct event_job_submitted plain = {
	.job = 1, .name = "a", .user = "ada", .queue = "default", .tasks_min = 1, .grace_ms = -1
};
static const struct event_job_submitted full = {
	.job = 1,
	.name = "b",
	.user = "ada",
	.queue = "other",
	.project = "p",
	.kind = KIND_BATCH,
	.tier = TIER_CRITICAL,
	.priority = 7,
	.tasks_min = 2,
	.tasks_max = 5,
	.gpus = 3,
	.models = "A100-80GB,H100-80GB",
	.gpu_memory_mib = 40960,
	.cpu_milli = 8000,
	.memory_mib = 9000,
	.require = "rack",
	.prefer = "node",
	.limit_ms = 7200000,
	.estimate_ms = 3600000,
	.likely_ms = 60000,
	.retries = 4,
	.preempts = 1,
	.checkpoint = 1,
	.checkpoint_every_ms = 600000,
	.grace_ms = 30000,
	.restart_cost_ms = 2000,
	.resize = RESIZE_RESTART,
	.min_driver = "535.129.3",
	.min_cuda = "12.4",
	.min_capability = 90,
	.regions = "de,eu",
	.labels = "disk=fast",
	.tolerates = "loud",
	.rejoins = 1,
	.deadline_ms = 99000000,
	.efficiency = 80,
	.capacity = CAPACITY_ANY,
	.spread = "node",
	.throughput = speeds,
	.throughput_count = 2,
	.min_throughput = 400,
	.mixes = 1,
	.data = "imagenet",
	.max_slowdown = 200,
	.align = ALIGN_NUMA,
	.window = "sat-sun",
	.window_end = 1,
	.own_labels = "app=web",
	.apart_from = "app=db",
	.apart_level = "rack",
	.apart_wish = 1,
};

/* All texts are "" where none is given, as a record reads. */
static struct event_job_submitted whole(const struct event_job_submitted *job)
{
	return submitted(0, job).job_submitted;
}

static struct event change_to(const struct event_job_submitted *to, uint64_t set)
{
	static char words[EVENT_TEXT_MAX + 1];
	struct event e = event_of(EVENT_JOB_CHANGED, 0, &(const struct event){ .kind = 0 });

	job_changes_take(set, to, &e.job_changed);
	e.job_changed.job = 1;
	e.job_changed.whole = 1;
	e.job_changed.what = job_changes_text(set, words);
	return e;
}

static void a_changed_job_is_the_one_submitted_so(const struct event_job_submitted *a,
						  const struct event_job_submitted *b)
{
	const struct event_job_submitted from = whole(a), to = whole(b);
	const struct event change = change_to(&to, job_changes_between(&from, &to));

	if (hash_after(&from, &to, submitted(1000, &from), &change) !=
	    hash_after(&from, &to, submitted(1000, &to), NULL))
		fail_msg("changed by \"%s\", the job is not the one submitted so",
			 change.job_changed.what);
}

static void every_word_alone_and_all_together(void **state)
{
	const struct event_job_submitted from = whole(&plain), to = whole(&full);

	(void)state;
	fits(EVENT_OF(QUEUE_SET, queue_set, 15, .name = "other", .limit_share = -1, .weight = 1));
	a_changed_job_is_the_one_submitted_so(&plain, &full);
	a_changed_job_is_the_one_submitted_so(&full, &plain);
	/* Each word differs between the two: none is forgotten in the lists above, or in the table. */
	assert_true((job_changes_between(&from, &to) | JOB_CHANGE_BIT(ARRAY_LIMIT)) ==
		    (UINT64_C(1) << JOB_CHANGES) - 1);
	for (unsigned i = 0; i < JOB_CHANGES; i++) {
		struct event_job_submitted one = full;
		struct event change = change_to(&from, UINT64_C(1) << i);

		if (i == JOB_CHANGE_ARRAY_LIMIT || i == JOB_CHANGE_TASKS ||
		    i == JOB_CHANGE_GPUS_MODEL || i == JOB_CHANGE_APART_FROM ||
		    i == JOB_CHANGE_WINDOW)
			continue; /* others follow from them in the shape */
		one = whole(&one);
		job_changes_put(UINT64_C(1) << i, &change.job_changed, &one);
		a_changed_job_is_the_one_submitted_so(&full, &one);
		a_changed_job_is_the_one_submitted_so(&one, &full);
	}
}

static void parts_and_slices_follow_their_word(void **state)
{
	struct event_job_submitted part = plain, slice = plain, memory = plain;

	(void)state;
	part.gpus = slice.gpus = memory.gpus = 1;
	part.gpu_part = GPU_SHARE / 2;
	slice.slice = "1g.10gb";
	slice.gpu_part = 9000;
	memory.gpu_part_mib = 2000;
	a_changed_job_is_the_one_submitted_so(&plain, &part);
	a_changed_job_is_the_one_submitted_so(&part, &slice);
	a_changed_job_is_the_one_submitted_so(&slice, &memory);
	a_changed_job_is_the_one_submitted_so(&memory, &plain);
}

/* Whatever a job is, the submission that would ask for the same gives its shape. */
static void the_wish_of_any_job_gives_its_shape_again(void **state)
{
	struct random r = { 45 };
	struct arena arena;
	struct facts facts;
	uint32_t compared = 0;

	(void)state;
	arena_init(&arena, 16 << 20);
	facts_init(&facts);
	for (int step = 0; step < 4000; step++) {
		struct event e;

		arena_reset(&arena);
		e = random_event(&r, &facts, &arena);
		apply(&facts, &e);
	}
	for (uint32_t id = 1; id <= facts.jobs.count; id++) {
		const struct job *job = job_get(&facts, (struct job_id){ id });
		struct event_job_submitted wish;
		struct job_wish_room room;
		struct shape shape, was;
		struct job filled;

		if (!job_is_there(&facts, id))
			continue;
		job_wish(&facts, job, &room, &wish);
		was = *shape_get(&facts, job->shape);
		filled = *job;
		/* A GPU shape that names a level which is gone is no submission any more. */
		if (!submission_shape(&facts, &wish, &shape))
			continue;
		shape.capacity = was.capacity; /* what was chosen is no wish */
		assert_memory_equal(&shape, &was, sizeof(shape));
		submission_fill(&wish, &filled);
		filled.failed_rank = job_get(&facts, (struct job_id){ id })->failed_rank;
		assert_memory_equal(&filled, job_get(&facts, (struct job_id){ id }),
				    sizeof(filled));
		compared++;
	}
	assert_true(compared > 100);
	facts_deinit(&facts);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(every_word_is_known_once_and_all_fit_into_a_record),
		STORY(only_the_words_of_the_record_count),
		STORY(what_does_not_fit_changes_nothing),
		STORY(of_a_running_job_name_limit_and_deadline_change),
		STORY(a_place_that_was_kept_is_given_up_with_the_wish_it_was_for),
		STORY(a_job_that_moves_to_another_queue_is_counted_there),
		STORY(every_word_alone_and_all_together),
		STORY(parts_and_slices_follow_their_word),
		STORY(the_wish_of_any_job_gives_its_shape_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
