/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/recorded.h"

#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/testing.h"
#include "sim/replay/whatif.h"

#define START_MS INT64_C(1767225600000)

static struct recorded r;
static uint64_t seq;

static struct event *begin(struct event *e, enum event_kind kind, int64_t at_s)
{
	*e = event_make(kind, START_MS + at_s * 1000, "test");
	return e;
}

static void take(struct event *e)
{
	e->seq = ++seq;
	recorded_take(&r, e);
}

static void node(const char *name, const char *model, int64_t gpus)
{
	struct event e;

	begin(&e, EVENT_NODE_SET, 0)->node_set.name = name;
	e.node_set.model = model;
	e.node_set.gpus = gpus;
	e.node_set.gpu_memory_mib = 81920;
	e.node_set.cpu_milli = 64000;
	e.node_set.ram_mib = 4096;
	take(&e);
}

static void queue(const char *name, const char *parent, int64_t guarantee)
{
	struct event e;

	begin(&e, EVENT_QUEUE_SET, 0)->queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.guarantee_share = guarantee;
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 2;
	take(&e);
}

static struct event_job_submitted *submission(struct event *e, int64_t at_s, int64_t job)
{
	struct event_job_submitted *j = &begin(e, EVENT_JOB_SUBMITTED, at_s)->job_submitted;

	j->job = job;
	j->name = "a,b";
	j->user = "ann";
	j->queue = "vision";
	j->kind = KIND_TRAINING;
	j->tier = TIER_STANDARD;
	j->tasks_min = j->tasks_max = 1;
	j->gpus = 2;
	j->grace_ms = -1;
	return j;
}

static void starts(int64_t at_s, int64_t job, int64_t attempt)
{
	const int64_t nodes[] = { 1 }, masks[] = { 3 };
	struct event e;

	begin(&e, EVENT_ATTEMPT_PLACED, at_s)->attempt_placed.job = job;
	e.attempt_placed.attempt = attempt;
	e.attempt_placed.nodes = nodes;
	e.attempt_placed.masks = masks;
	e.attempt_placed.nodes_count = e.attempt_placed.masks_count = 1;
	take(&e);
	begin(&e, EVENT_TASK_READY, at_s)->task_ready.attempt = attempt;
	take(&e);
	begin(&e, EVENT_ATTEMPT_RELEASED, at_s)->attempt_released.attempt = attempt;
	take(&e);
	begin(&e, EVENT_TASK_STARTED, at_s)->task_started.attempt = attempt;
	e.task_started.at_ms = e.time_ms;
	take(&e);
}

static void stops(int64_t at_s, int64_t attempt, int64_t run_s, int64_t lost_s)
{
	struct event e;

	begin(&e, EVENT_TASK_EXITED, at_s)->task_exited.attempt = attempt;
	e.task_exited.cause = CAUSE_EXIT;
	e.task_exited.at_ms = e.time_ms;
	take(&e);
	begin(&e, EVENT_ATTEMPT_ENDED, at_s)->attempt_ended.attempt = attempt;
	e.attempt_ended.run_ms = run_s * 1000;
	e.attempt_ended.lost_ms = lost_s * 1000;
	e.attempt_ended.used_gpu_ms = run_s * 2000;
	e.attempt_ended.lost_gpu_ms = lost_s * 2000;
	take(&e);
}

static void ends(int64_t at_s, int64_t job)
{
	struct event e;

	begin(&e, EVENT_JOB_ENDED, at_s)->job_ended.job = job;
	e.job_ended.state = JOB_SUCCEEDED;
	take(&e);
}

static char *text_of(void (*put)(const struct recorded *, FILE *))
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	put(&r, out);
	fclose(out);
	return text;
}

static int set_up(void **state)
{
	(void)state;
	seq = 0;
	recorded_init(&r);
	node("n0", "H100-80GB", 4);
	node("n1", "L4", 2);
	queue("vision", "research", 0); /* its parent does not exist yet: it is not made */
	queue("research", "", 3 * GPU_SHARE / 2);
	queue("vision", "research", GPU_SHARE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	recorded_deinit(&r);
	return 0;
}

#define HEAD                                                                                                                    \
	"#fairlead-workload 1\n"                                                                                                \
	"job,submit_s,run_s,tasks,gpus,models,gpu_memory_mib,cpus,memory_mib,queue,user,kind,tier,priority,limit_s,estimate_s," \
	"deadline_s,checkpoints,restart_s,checkpoint_every_s,capacity,speeds,gpu_part_mib,slice,require,prefer,spread,regions," \
	"labels,tolerates,min_driver,min_cuda,window\n"

static void a_job_that_was_evicted_and_one_that_still_runs(void)
{
	struct event e;

	submission(&e, 100, 1)->limit_ms = 7200000;
	take(&e);
	starts(110, 1, 1);
	stops(170, 1, 60, 20);
	begin(&e, EVENT_JOB_REQUEUED, 170)->job_requeued.job = 1;
	e.job_requeued.attempt = 1;
	e.job_requeued.why = REQUEUE_EVICTED;
	take(&e);
	submission(&e, 180, 2)->depends_count = 0;
	take(&e);
	starts(200, 1, 2);
	stops(230, 2, 30, 0);
	ends(230, 1);
	starts(240, 2, 3);
	submission(&e, 250, 3);
	take(&e);
	submission(&e, 255, 4)->slice = "1g.10gb";
	take(&e);
	begin(&e, EVENT_CLOCK_TICKED, 300);
	take(&e);
}

static void what_ran_is_the_workload_and_what_did_not_is_counted(void **state)
{
	struct err err = { 0 };
	char *text;

	(void)state;
	a_job_that_was_evicted_and_one_that_still_runs();
	assert_int_equal(recorded_close(&r, &err), 0);
	text = text_of(recorded_workload);
	assert_string_equal(
		text,
		HEAD "# jobs that never ran: 2, left out\n"
		     "# jobs that still run: 1, taken as if they had ended now\n"
		     "a_b,0,70,1,2,,0,0,0,vision,ann,training,standard,0,7200,,,,0,,,,,,,,,,,,,,\n"
		     "a_b,80,60,1,2,,0,0,0,vision,ann,training,standard,0,,,,,0,,,,,,,,,,,,,,\n");
	free(text);
}

/* It is in the workload as what it asked for when it ran, at the time at which it came. */
static void a_changed_job_is_what_it_asked_for_in_the_end(void **state)
{
	struct event e;
	struct err err = { 0 };
	char *text;

	(void)state;
	submission(&e, 100, 1)->limit_ms = 7200000;
	take(&e);
	begin(&e, EVENT_JOB_CHANGED, 105)->job_changed.job = 1;
	e.job_changed.what = "limit,cpus,window";
	e.job_changed.limit_ms = 600000;
	e.job_changed.cpu_milli = 2000;
	e.job_changed.window = "sat-sun";
	take(&e);
	starts(110, 1, 1);
	stops(170, 1, 60, 0);
	ends(170, 1);
	assert_int_equal(recorded_close(&r, &err), 0);
	text = text_of(recorded_workload);
	assert_string_equal(
		text, HEAD
		"a_b,100,60,1,2,,0,2,0,vision,ann,training,standard,0,600,,,,0,,,,,,,,,,,,,,sat-sun\n");
	free(text);
}

static void site_of(struct arena *arena, struct scenario *ret)
{
	struct err err = { 0 };
	char *made = text_of(recorded_cluster);
	const char *text = arena_strdup(arena, made);
	struct conf **documents;
	size_t count;

	free(made);
	assert_int_equal(conf_parse("c", text, strlen(text), arena, &documents, &count, &err), 0);
	if (scenario_read_site("c", documents[0], arena, ret, &err) < 0)
		fail_msg("line %d: %s", err.line, err.text);
}

static void marked(const char *labels, const char *taints)
{
	struct event e;

	begin(&e, EVENT_NODE_MARKED, 0)->node_marked.node = 1;
	e.node_marked.labels = labels;
	e.node_marked.taints = taints;
	e.node_marked.data = "";
	e.node_marked.partitioning = PARTITIONING_AUTO;
	take(&e);
}

/* What a job wishes stands in its line, and what nodes and queues are in the cluster file. */
static void what_places_are_like_and_who_wishes_for_them_is_kept(void **state)
{
	const int64_t gpus[] = { 1 }, layouts[] = { SLICE_3G | SLICE_3G << 16 },
		      speeds[] = { 1000, 450 };
	struct scenario site;
	struct arena arena;
	struct err err = { 0 };
	struct workload w;
	struct event e;
	char *text;

	(void)state;
	marked("disk=fast,zone=a b", "kept=\"vision\"");
	begin(&e, EVENT_LAYOUT_SET, 0)->layout_set.node = 1;
	e.layout_set.gpus = gpus;
	e.layout_set.layouts = layouts;
	e.layout_set.gpus_count = e.layout_set.layouts_count = 1;
	e.layout_set.reason = "";
	take(&e);
	begin(&e, EVENT_BUDGET_SET, 1)->budget_set.queue = "vision";
	e.budget_set.left_micro = 12500000;
	e.budget_set.currency = "EUR";
	take(&e);
	begin(&e, EVENT_PRICE_SET, 1)->price_set.model = "L4";
	e.price_set.micro_per_hour = 800000;
	take(&e);
	submission(&e, 9 * 86400, 1)->kind = KIND_BATCH;
	e.job_submitted.gpus = 1;
	e.job_submitted.slice = "3g.40gb";
	e.job_submitted.gpu_part = GPU_SHARE / 7 * 3;
	e.job_submitted.labels = "disk=fast,zone=a b";
	e.job_submitted.tolerates = "kept";
	e.job_submitted.window = "mon-fri 20:00-08:00, sat-sun";
	take(&e);
	starts(9 * 86400 + 10, 1, 1);
	stops(9 * 86400 + 70, 1, 60, 0);
	ends(9 * 86400 + 70, 1);
	submission(&e, 9 * 86400 + 80, 2)->gpu_part_mib = 20480;
	e.job_submitted.gpus = 1;
	e.job_submitted.models = "H100-80GB,L4";
	e.job_submitted.throughput = speeds;
	e.job_submitted.throughput_count = 2;
	take(&e);
	starts(9 * 86400 + 90, 2, 2);
	stops(9 * 86400 + 150, 2, 60, 0);
	ends(9 * 86400 + 150, 2);
	assert_int_equal(recorded_close(&r, &err), 0);
	assert_int_equal(r.start_ms,
			 START_MS + INT64_C(7) * 86400 * 1000); /* the hour of the week is kept */
	text = text_of(recorded_workload);
	if (workload_parse("w", text, &w, &err) < 0)
		fail_msg("line %d: %s", err.line, err.text);
	assert_int_equal(w.jobs[0].submit_ms, 2 * 86400 * 1000);
	assert_string_equal(w.jobs[0].wishes->slice, "3g.40gb");
	assert_string_equal(w.jobs[0].wishes->labels, "disk=fast,zone=a b");
	assert_string_equal(w.jobs[0].wishes->tolerates, "kept");
	assert_string_equal(w.jobs[0].wishes->window, "mon-fri 20:00-08:00, sat-sun");
	assert_int_equal(w.jobs[0].gpu_part, GPU_SHARE / 7 * 3);
	assert_int_equal(w.jobs[1].gpu_part_mib, 20480);
	assert_int_equal(w.jobs[1].speeds[1], 450);
	assert_null(w.jobs[1].wishes);
	workload_deinit(&w);
	free(text);
	arena_init(&arena, 16 << 20);
	site_of(&arena, &site);
	assert_string_equal(site.nodes[0].labels, "disk=fast,zone=a b");
	assert_string_equal(site.nodes[0].taints, "kept=\"vision\"");
	assert_int_equal(site.nodes[0].partitioning, PARTITIONING_AUTO);
	assert_int_equal(site.nodes[0].layout_count, 4);
	assert_int_equal(site.nodes[0].layouts[0], 0);
	assert_int_equal(site.nodes[0].layouts[1], layouts[0]);
	assert_int_equal(site.queues[1].budget_micro, 12500000);
	assert_int_equal(site.policy.prices_micro[0], 800000);
	assert_int_equal(site.policy.patience, r.facts.policy.patience);
	assert_int_equal(site.policy.defragment, r.facts.policy.defragment);
	arena_deinit(&arena);
}

static char *remarks_of(void)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	recorded_remarks(&r, "", out);
	fclose(out);
	return text;
}

static void what_is_left_out_is_said(void **state)
{
	struct event e;
	char *text = remarks_of();

	(void)state;
	assert_string_equal(text, "");
	free(text);
	begin(&e, EVENT_NODE_STATE, 5)->node_state.node = 2;
	e.node_state.state = NODE_DOWN;
	e.node_state.reason = "";
	take(&e);
	begin(&e, EVENT_NODE_WINDOW, 5)->node_window.node = 1;
	e.node_window.from_ms = START_MS;
	e.node_window.to_ms = START_MS + 1;
	e.node_window.reason = "";
	take(&e);
	text = remarks_of();
	assert_string_equal(
		text,
		"nodes that are down, drained or set apart now: 1, taken as if they were ready\n"
		"nodes with announced maintenance: 1, it is left out\n");
	free(text);
}

static void models_whose_gpus_can_be_cut_are(void **state)
{
	struct err err = { 0 };
	struct scenario site;
	struct arena arena;
	uint32_t nodes;

	(void)state;
	arena_init(&arena, 16 << 20);
	site_of(&arena, &site);
	assert_int_equal(whatif_slices_change(&site, "H100-80GB", &arena, &nodes, &err), 0);
	assert_int_equal(nodes, 1);
	assert_int_equal(site.nodes[0].partitioning, PARTITIONING_AUTO);
	assert_true(whatif_slices_change(&site, "L4", &arena, &nodes, &err) < 0);
	assert_non_null(strstr(err.text, "can't be cut"));
	assert_true(whatif_slices_change(&site, "B200", &arena, &nodes, &err) < 0);
	assert_non_null(strstr(err.text, "no node has GPUs of that model"));
	arena_deinit(&arena);
}

static void what_happened_is_an_outcome_like_any_other(void **state)
{
	struct err err = { 0 };
	struct workload w;
	struct outcome o;
	char *text;

	(void)state;
	a_job_that_was_evicted_and_one_that_still_runs();
	assert_int_equal(recorded_close(&r, &err), 0);
	text = text_of(recorded_workload);
	assert_int_equal(workload_parse("w", text, &w, &err), 0);
	recorded_outcome(&r, &w, &o);
	assert_int_equal(o.capacity, 6 * GPU_SHARE);
	assert_int_equal(o.jobs[0].start_ms, 10000);
	assert_int_equal(o.jobs[0].end_ms, 130000);
	assert_int_equal(o.jobs[0].evictions, 1);
	assert_int_equal(o.jobs[0].lost_ms, 40000);
	assert_int_equal(o.jobs[1].start_ms, 140000);
	assert_int_equal(o.jobs[1].end_ms, -1);
	assert_int_equal(o.moments[0].at_ms, 0);
	assert_int_equal(o.moments[o.moment_count - 1].used, 2 * GPU_SHARE);
	assert_int_equal(o.moments[o.moment_count - 1].running, 1);
	assert_int_equal(o.moments[o.moment_count - 1].waiting, 2);
	outcome_deinit(&o);
	workload_deinit(&w);
	free(text);
}

static void the_cluster_of_the_end_can_be_read_back(void **state)
{
	struct scenario site;
	struct arena arena;
	struct event e;

	(void)state;
	begin(&e, EVENT_NODE_STATE, 5)->node_state.node = 2;
	e.node_state.state = NODE_GONE;
	e.node_state.reason = "";
	take(&e);
	e = event_policy_make(START_MS + 6000, "test");
	e.policy_set.grace_ms = 90500;
	e.policy_set.collect_after_ms = 0;
	e.policy_set.order_age = 7;
	take(&e);
	arena_init(&arena, 16 << 20);
	site_of(&arena, &site);
	assert_int_equal(site.node_count, 1);
	assert_string_equal(site.nodes[0].model, "H100-80GB");
	assert_int_equal(site.nodes[0].cpu_milli, 64000);
	assert_int_equal(site.queue_count, 2);
	assert_string_equal(site.queues[0].name, "research");
	assert_int_equal(site.queues[0].guarantee_share, 3 * GPU_SHARE / 2);
	assert_string_equal(site.queues[1].parent, "research");
	assert_int_equal(site.queues[1].weight, 2);
	assert_int_equal(site.policy.grace_ms, 90500);
	assert_int_equal(site.policy.collect_after_ms, 0);
	assert_int_equal(site.policy.order_age, 7);
	assert_int_equal(site.policy.min_runtime_ms, r.facts.policy.min_runtime_ms);
	arena_deinit(&arena);
}

static void a_history_without_a_job_or_a_node_is_none(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_true(recorded_close(&r, &err) < 0);
	assert_non_null(strstr(err.text, "no job"));
}

static void nodes_come_like_those_there_are_and_go_from_the_end(void **state)
{
	static const char *const wrong[] = {
		"4xL4", "+xL4", "+0xL4", "+4x", "+1xB200", "-2xL4", ""
	};
	struct err err = { 0 };
	struct scenario site;
	struct arena arena;

	(void)state;
	arena_init(&arena, 16 << 20);
	site_of(&arena, &site);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_true(whatif_nodes_change(&site, wrong[i], &arena, &err) < 0);
	assert_int_equal(whatif_nodes_change(&site, "+3xL4", &arena, &err), 0);
	assert_int_equal(site.node_count, 5);
	assert_int_equal(site.nodes[4].gpus, 2);
	assert_string_equal(site.nodes[4].name, "what-if-5");
	assert_int_equal(whatif_nodes_change(&site, "-1xH100-80GB", &arena, &err), 0);
	assert_string_equal(site.nodes[0].name, "n1");
	assert_int_equal(site.node_count, 4);
	assert_true(whatif_nodes_change(&site, "-4xL4", &arena, &err) < 0);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			what_ran_is_the_workload_and_what_did_not_is_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_changed_job_is_what_it_asked_for_in_the_end,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_happened_is_an_outcome_like_any_other, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			what_places_are_like_and_who_wishes_for_them_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_left_out_is_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(models_whose_gpus_can_be_cut_are, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(the_cluster_of_the_end_can_be_read_back, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_history_without_a_job_or_a_node_is_none, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nodes_come_like_those_there_are_and_go_from_the_end,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
