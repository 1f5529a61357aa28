/* SPDX-License-Identifier: Apache-2.0 */
/* The worked examples of README.md, and what holds of every replay. */
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/conf.h"
#include "base/testing.h"
#include "core/model/facts.h"
#include "sim/replay/core_run.h"
#include "sim/replay/foretold.h"
#include "sim/replay/figures.h"
#include "sim/replay/plain.h"
#include "sim/replay/replay_report.h"

struct example {
	struct arena arena;
	struct scenario site;
	struct workload workload;
	struct outcome outcome;
};

static void site_read(struct example *x, const char *cluster)
{
	struct conf **documents;
	struct err err = { 0 };
	size_t count;

	*x = (struct example){ 0 };
	arena_init(&x->arena, 64 << 20);
	assert_int_equal(
		conf_parse("c.yaml", cluster, strlen(cluster), &x->arena, &documents, &count, &err),
		0);
	if (scenario_read_site("c.yaml", documents[0], &x->arena, &x->site, &err) < 0)
		fail_msg("%s", err.text);
}

static void jobs_read(struct example *x, const char *jobs)
{
	struct err err = { 0 };
	char *text = arena_printf(&x->arena, "#fairlead-workload 1\n%s", jobs);

	if (workload_parse("w.csv", text, &x->workload, &err) < 0)
		fail_msg("%s", err.text);
}

static void plain(struct example *x, const char *policy)
{
	struct err err = { 0 };

	outcome_deinit(&x->outcome);
	if (plain_run(plain_find(policy), &x->site, &x->workload, NULL, 1, &x->outcome, &err) < 0)
		fail_msg("%s", err.text);
}

static void core(struct example *x)
{
	struct err err = { 0 };

	outcome_deinit(&x->outcome);
	if (core_run("fairlead", &x->site, &x->workload, NULL, &x->outcome, &err) < 0)
		fail_msg("%s", err.text);
}

static void done(struct example *x)
{
	outcome_deinit(&x->outcome);
	workload_deinit(&x->workload);
	arena_deinit(&x->arena);
}

static void ran(const struct example *x, uint32_t job, int64_t start_s, int64_t end_s)
{
	const struct outcome_job *out = &x->outcome.jobs[job];

	if (out->start_ms != start_s * 1000 || out->end_ms != end_s * 1000)
		fail_msg("%s: %s ran from %lld to %lld ms, not from %lld to %lld s",
			 x->outcome.policy, x->workload.jobs[job].name, (long long)out->start_ms,
			 (long long)out->end_ms, (long long)start_s, (long long)end_s);
}

#define ONE_NODE "cluster: {nodes: [{name: n, gpus: 4}]}\n"
/* Four GPUs: a holds two of them, b wants all four, c fits beside a, d is short. */
#define FOUR "job,submit_s,run_s,gpus\na,0,100,2\nb,1,50,4\nc,2,200,2\nd,3,10,1\n"

static void plain_orders_differ_as_their_names_say(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, ONE_NODE);
	jobs_read(&x, FOUR);
	plain(&x, "fifo-strict");
	ran(&x, 0, 0, 100);
	ran(&x, 1, 100, 150);
	ran(&x, 2, 150, 350);
	ran(&x, 3, 150, 160);
	plain(&x, "fifo-skip");
	ran(&x, 2, 2, 202);
	ran(&x, 3, 100, 110);
	ran(&x, 1, 202, 252);
	plain(&x, "sjf-strict"); /* c goes behind b, and d before both */
	ran(&x, 3, 3, 13);
	ran(&x, 1, 100, 150);
	ran(&x, 2, 150, 350);
	plain(&x, "ssf-skip"); /* b is 200 GPU-seconds, c 400 */
	ran(&x, 2, 2, 202);
	ran(&x, 1, 202, 252);
	done(&x);
}

static void preempting_orders_charge_a_new_beginning(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: n, gpus: 1}]}\n");
	jobs_read(&x, "job,submit_s,run_s,gpus,restart_s\nlong,0,100,1,4\nshort,10,20,1,0\n");
	plain(&x,
	      "srtf"); /* long has done 10 - 4 when short comes, and goes on at 30 with 94 left */
	ran(&x, 1, 10, 30);
	ran(&x, 0, 0, 124);
	assert_int_equal(x.outcome.jobs[0].evictions, 1);
	assert_int_equal(x.outcome.jobs[0].lost_ms, 4000);
	plain(&x, "las"); /* short has had nothing yet */
	ran(&x, 1, 10, 30);
	done(&x);
}

static void parts_go_to_the_gpu_where_they_break_least(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: a, gpus: 2}, {name: b, gpus: 2}]}\n");
	jobs_read(
		&x,
		"job,submit_s,run_s,gpus\nhalf,0,100,0.5\nhalf,1,100,0.5\npair,2,100,2\none,3,100,1\n");
	for (int i = 0; i < 2; i++) {
		plain(&x, i ? "fgd" : "best-fit");
		ran(&x, 1, 1, 101);
		ran(&x, 2, 2, 102);
		ran(&x, 3, 3, 103);
	}
	done(&x);
}

static void the_core_backfills_where_limits_are_known(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, ONE_NODE);
	jobs_read(
		&x,
		"job,submit_s,run_s,gpus,limit_s\na,0,100,2,100\nb,1,50,4,50\nc,2,200,2,200\nd,3,10,1,10\n");
	core(&x); /* d ends before b's reserved start, c does not */
	ran(&x, 0, 0, 100);
	ran(&x, 3, 3, 13);
	ran(&x, 1, 100, 150);
	ran(&x, 2, 150, 350);
	done(&x);
}

static void the_core_preempts_and_nothing_is_done_twice_with_checkpoints(void **state)
{
	struct example x;
	struct figures f;

	(void)state;
	site_read(
		&x,
		"cluster: {nodes: [{name: n, gpus: 1}]}\npolicy: {grace: 20s, min_runtime: 0s}\n");
	jobs_read(
		&x,
		"job,submit_s,run_s,tier,checkpoints,restart_s\nlow,0,1000,standard,yes,5\nhigh,100,50,critical,no,0\n");
	core(&x);
	figures_make(&x.outcome, &f);
	assert_int_equal(f.ended, 2);
	assert_int_equal(f.evictions, 1);
	assert_true(x.outcome.jobs[1].start_ms >= 100000 && x.outcome.jobs[1].start_ms <= 120000);
	/* What it had done is kept: its run time, once more from a checkpoint, and the time away. */
	assert_true(x.outcome.jobs[0].end_ms >= 1055000 && x.outcome.jobs[0].end_ms <= 1080000);
	done(&x);
}

static void a_gang_takes_whole_nodes_and_one_with_the_rest(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: a, gpus: 4}, {name: b, gpus: 4}]}\n");
	jobs_read(
		&x,
		"job,submit_s,run_s,gpus,rest_gpus\ngang,0,100,4,2\npair,1,100,2,\nquad,2,50,4,\n");
	assert_int_equal(workload_share(&x.workload.jobs[0]), 6 * GPU_SHARE);
	for (int i = 0; i < 2; i++) {
		if (i)
			core(&x);
		else
			plain(&x, "fifo-skip");
		ran(&x, 0, 0, 100);
		ran(&x, 1, 1, 101); /* beside the rest */
		ran(&x, 2, 100, 150);
	}
	done(&x);
}

static void a_slower_model_takes_longer(void **state)
{
	struct example x;

	(void)state;
	site_read(
		&x,
		"cluster: {nodes: [{name: a, gpus: 1, model: SLOW}, {name: b, gpus: 1, model: FAST}]}\n");
	jobs_read(&x, "job,submit_s,run_s,models,speeds\none,0,100,FAST|SLOW,1|0.25\n"
		      "two,1,50,FAST|SLOW,1|0.25\n");
	core(&x);
	ran(&x, 0, 0, 100);
	ran(&x, 1, 1, 201);
	plain(&x, "fifo-fastest"); /* at 100 `two` has done 24.75 s, and goes on where it is fast */
	ran(&x, 0, 0, 100);
	assert_int_equal(x.outcome.jobs[1].end_ms, 125250);
	done(&x);
}

static void what_saves_regularly_loses_what_came_after(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: n, gpus: 1}]}\n");
	jobs_read(&x, "job,submit_s,run_s,tier,checkpoints,checkpoint_every_s,restart_s\n"
		      "low,0,1000,best-effort,yes,100,5\nhigh,250,50,standard,,,\n");
	core(&x);
	ran(&x, 1, 250, 300);
	ran(&x, 0, 0, 1105); /* 200 s were saved, 50 s are done again */
	assert_int_equal(x.outcome.jobs[0].lost_ms, 50000);
	done(&x);
}

/* Two slices and a part by memory side by side on cut and whole GPUs; labels, taints and a deadline of the queue's hours beside them. */
static void wishes_reach_the_core(void **state)
{
	struct example x;

	(void)state;
	site_read(
		&x,
		"cluster:\n  levels: [rack]\n  nodes:\n"
		"    - {name: a, gpus: 1, model: A100-80GB, rack: r0, mig: [[3g.40gb, 3g.40gb]]}\n"
		"    - {name: b, gpus: 1, model: H100-80GB, rack: r1, labels: {disk: fast}, taints: [kept]}\n");
	jobs_read(
		&x,
		"job,submit_s,run_s,gpus,slice,gpu_part_mib,labels,tolerates,require\n"
		"s1,0,100,1,3g.40gb,,,,\ns2,0,100,1,3g.40gb,,,,\ns3,1,100,1,3g.40gb,,,,\n"
		"p1,0,100,0.5,,40960,,kept,\np2,0,100,0.5,,40960,disk=fast,kept,\np3,0,100,0.5,,40960,,kept,rack\n"
		"no,0,100,1,,,,,\nrefused,0,100,1,,,,,shelf\n");
	core(&x);
	ran(&x, 0, 0, 100);
	ran(&x, 1, 0, 100);
	for (uint32_t i = 2; i < 5; i++) /* those of 0 s stand before that of 1 s */
		ran(&x, i, i < 4 ? 0 : 100, i < 4 ? 100 : 200);
	assert_int_equal(x.outcome.jobs[5].end_ms, -1); /* the one is cut, the other kept */
	assert_true(x.outcome.jobs[6].refused); /* there is no such level */
	ran(&x, 7, 100, 200);
	plain(&x, "fifo-skip"); /* it takes each for the part that it is */
	assert_int_equal(x.outcome.jobs[0].start_ms, 0);
	done(&x);
}

static void what_never_runs_is_counted_apart(void **state)
{
	struct example x;
	struct figures f;

	(void)state;
	site_read(&x, ONE_NODE);
	jobs_read(
		&x,
		"job,submit_s,run_s,gpus,queue\nwide,0,10,8,\nfits,0,10,4,\nlost,0,10,4,nowhere\n");
	core(&x);
	figures_make(&x.outcome, &f);
	assert_int_equal(f.refused, 1);
	assert_int_equal(f.unfinished, 1);
	assert_int_equal(f.ended, 1);
	done(&x);
}

static void near(double is, double wanted)
{
	if (is < wanted - 1e-6 || is > wanted + 1e-6)
		fail_msg("%.9g is not %.9g", is, wanted);
}

static void starts_are_foretold_and_held_against_what_came(void **state)
{
	struct outcome_job jobs[2] = { { .start_ms = 1200000 }, { .start_ms = -1 } };
	struct workload_job from[2] = { { .submit_ms = 0 }, { .submit_ms = 5 } };
	const struct workload workload = { .jobs = from, .count = 2 };
	struct foretold said[2] = { { 0, 600000, 1800000, 1200000 }, { 1, 1, 1, 1 } };
	struct outcome o = {
		.workload = &workload, .jobs = jobs, .foretold = said, .foretold_count = 2
	};
	struct foretold_figures f;
	struct example x;
	struct err err = { 0 };

	(void)state;
	foretold_figures_make(&o, &f); /* as in foretold.h; the other one never started */
	assert_true(f.asked == 2 && f.started == 1);
	near(f.by_even, 0);
	near(f.by_safe, 1);
	near(f.width, 1);
	near(f.loss_s, 360);
	near(f.plain_loss_s, 0);
	site_read(&x, ONE_NODE);
	jobs_read(&x, "job,submit_s,run_s,gpus,limit_s\na,0,100,4,100\nb,1,50,4,50\nc,2,50,4,50\n");
	if (core_run("fairlead", &x.site, &x.workload, &(struct core_run_options){ .foretell = 2 },
		     &x.outcome, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(x.outcome.foretold_count, 1); /* b and c wait; each second one is asked */
	assert_int_equal(x.outcome.foretold[0].job, 2);
	assert_true(x.outcome.foretold[0].even_ms > 0 &&
		    x.outcome.foretold[0].even_ms <= x.outcome.foretold[0].safe_ms &&
		    x.outcome.foretold[0].safe_ms <= 148000);
	ran(&x, 2, 150, 200); /* asking changes nothing */
	done(&x);
}

/* Two kinds of jobs whose names are numbers, short on one GPU and long on two: what one waits for is told from those as wide. */
static void numbers_are_no_names(void **state)
{
	struct err err = { 0 };
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: n, gpus: 2}]}\n");
	jobs_read(
		&x,
		"job,submit_s,run_s,gpus\n1,0,10,1\n2,0,10,1\n3,0,10,1\n4,0,10,1\n5,0,10,1\n6,0,10,1\n"
		"7,100,1000,2\n8,1200,1000,2\n9,2300,1000,2\n10,3400,1000,2\n11,4500,1000,2\n"
		"12,6000,1000,2\n13,6001,10,1\n");
	if (core_run("fairlead", &x.site, &x.workload, &(struct core_run_options){ .foretell = 1 },
		     &x.outcome, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(x.outcome.foretold[x.outcome.foretold_count - 1].job, 12);
	near((double)x.outcome.foretold[x.outcome.foretold_count - 1].even_ms / 1000, 999);
	done(&x);
}

static void with_nodes(struct example *x, const char *changes)
{
	struct availability a;
	struct err err = { 0 };
	char *text =
		arena_printf(&x->arena, "#fairlead-availability 1\nat_s,node,there\n%s", changes);

	outcome_deinit(&x->outcome);
	if (availability_parse("a.csv", text, &a, &err) < 0 ||
	    core_run("fairlead", &x->site, &x->workload,
		     &(struct core_run_options){ .availability = &a }, &x->outcome, &err) < 0)
		fail_msg("%s", err.text);
	availability_deinit(&a);
}

/* Saved at 50, gone at 55, back at 80: 5 s of a restart and 50 s of work. A GPU costs 36 an hour. */
static void a_node_that_goes_takes_its_work_along(void **state)
{
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: \"s[1-2]\", gpus: 1, model: L4, capacity: spot}]}\n"
		      "policy: {prices: {\"spot:L4\": 36}}\n");
	jobs_read(&x, "job,submit_s,run_s,tasks,kind,checkpoints,checkpoint_every_s,restart_s\n"
		      "a,0,100,1,training,yes,10,5\n");
	with_nodes(&x, "0,s2,0\n55,s1,0\n80,s1,1\n");
	ran(&x, 0, 0, 135);
	assert_int_equal(x.outcome.jobs[0].evictions, 1);
	assert_int_equal(x.outcome.jobs[0].lost_ms, 5000);
	near(x.outcome.jobs[0].cost, 1.1);
	workload_deinit(&x.workload);
	jobs_read(&x, "job,submit_s,run_s,tasks,kind,checkpoints,checkpoint_every_s,restart_s\n"
		      "gang,0,100,2,training,yes,10,5\n");
	with_nodes(&x, "55,s1,0\n80,s1,1\n"); /* the other rank stops with it */
	ran(&x, 0, 0, 135);
	near(x.outcome.jobs[0].cost, 2.2);
	for (uint32_t i = 0; i < x.outcome.moment_count; i++)
		if (x.outcome.moments[i].at_ms == 55000 || x.outcome.moments[i].at_ms == 135000)
			assert_int_equal(x.outcome.moments[i].used, 0);
	with_nodes(&x, "55,s1,0\n"); /* and waits for ever */
	assert_int_equal(x.outcome.jobs[0].end_ms, -1);
	done(&x);
}

/* One that may choose its nodes as well, though it looks again and again while it can: in time, too late, and where spot costs no less. */
static void a_job_for_which_no_node_comes_does_not_keep_the_play_going(void **state)
{
	static const char *const prices[] = { "1", "3" };
	struct example x;

	(void)state;
	for (size_t i = 0; i < sizeof prices / sizeof *prices; i++) {
		char site[200];

		snprintf(
			site, sizeof site,
			"cluster: {nodes: [{name: s, gpus: 1, model: L4, capacity: spot}, {name: d, gpus: 1, model: L4}]}\n"
			"policy: {prices: {L4: 3, \"spot:L4\": %s}}\n",
			prices[i]);
		site_read(&x, site);
		jobs_read(&x, "job,submit_s,run_s,kind,checkpoints,checkpoint_every_s,deadline_s\n"
			      "a,0,100,training,yes,10,4000\nb,0,100,training,yes,10,50\n");
		with_nodes(&x, "0,s,0\n0,d,0\n");
		assert_int_equal(x.outcome.jobs[0].end_ms, -1);
		assert_int_equal(x.outcome.jobs[1].end_ms, -1);
		assert_true(x.outcome.turns < 1000);
		done(&x);
	}
}

static void plain_with_nodes(struct example *x, const char *policy, const char *changes)
{
	struct availability a;
	struct err err = { 0 };
	char *text =
		arena_printf(&x->arena, "#fairlead-availability 1\nat_s,node,there\n%s", changes);

	outcome_deinit(&x->outcome);
	if (availability_parse("a.csv", text, &a, &err) < 0 ||
	    plain_run(plain_find(policy), &x->site, &x->workload, &a, 1, &x->outcome, &err) < 0)
		fail_msg("%s", err.text);
	availability_deinit(&a);
}

/* The same numbers as under the core, above; one that places anew has lost a restart too. */
static void plain_policies_lose_their_nodes_too(void **state)
{
	static const char *const policies[] = { "fifo-strict", "fifo-skip", "best-fit", "random" };
	struct example x;

	(void)state;
	site_read(&x, "cluster: {nodes: [{name: \"s[1-2]\", gpus: 1, model: L4, capacity: spot}]}\n"
		      "policy: {prices: {\"spot:L4\": 36, L4: 72}}\n");
	jobs_read(&x, "job,submit_s,run_s,tasks,kind,checkpoints,checkpoint_every_s,restart_s\n"
		      "gang,0,100,2,training,yes,10,5\n");
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		plain_with_nodes(&x, policies[i], "55,s1,0\n80,s1,1\n");
		ran(&x, 0, 0, 135);
		assert_int_equal(x.outcome.jobs[0].evictions, 1);
		assert_int_equal(x.outcome.jobs[0].lost_ms, 10000);
		near(x.outcome.jobs[0].cost, 2.2);
	}
	plain_with_nodes(&x, "srtf", "55,s1,0\n80,s1,1\n");
	ran(&x, 0, 0, 135);
	plain_with_nodes(&x, "fifo-skip", "55,s1,0\n"); /* and waits for ever */
	assert_int_equal(x.outcome.jobs[0].end_ms, -1);
	workload_deinit(&x.workload);
	jobs_read(
		&x,
		"job,submit_s,run_s,kind,checkpoints,capacity\n"
		"trains,0,10,training,yes,\nserves,0,10,inference,,\nkept,0,10,training,yes,on-demand\n");
	plain_with_nodes(&x, "fifo-skip", "0,s1,1\n");
	ran(&x, 0, 0, 10);
	assert_int_equal(x.outcome.jobs[1].end_ms, -1); /* not on spot nodes */
	assert_int_equal(x.outcome.jobs[2].end_ms, -1);
	done(&x);
}

/* plain_spot.h, by hand. On demand an hour costs 36, on spot 9. */
static void spot_rules_keep_the_deadline(void **state)
{
	struct example x;
	struct figures f;

	(void)state;
	site_read(&x,
		  "cluster: {nodes: [{name: d, gpus: 1, model: L4}, {name: s, gpus: 1, model: L4, "
		  "capacity: spot}]}\npolicy: {prices: {L4: 36, \"spot:L4\": 9}}\n");
	jobs_read(&x,
		  "job,submit_s,run_s,kind,checkpoints,checkpoint_every_s,restart_s,deadline_s\n"
		  "j,0,1000,training,yes,10,50,2000\n");
	/* Never spot: on demand from 900 on. */
	plain_with_nodes(&x, "spot-greedy", "0,s,0\n");
	ran(&x, 0, 900, 1900);
	near(x.outcome.jobs[0].cost, 10);
	/* To 200 on demand; waits until the line is there too, at 400; on demand again, from 450 on after the restart. At 700 it has done 450
	 * where the line is at 350: on spot, from 750 on. What goes at 805 had saved at 800: 500 are done, where the line comes to at 1,000.
	 * Before that spot is there again, at 900. */
	plain_with_nodes(&x, "uniform-progress", "0,s,0\n500,s,1\n");
	ran(&x, 0, 0, 1300);
	near(x.outcome.jobs[0].cost, 5 + 1.5);
	plain_with_nodes(&x, "uniform-progress", "0,s,0\n500,s,1\n805,s,0\n900,s,1\n");
	ran(&x, 0, 0, 1450);
	near(x.outcome.jobs[0].cost, 5 + 655 * 9 / 3600.0);
	assert_int_equal(x.outcome.jobs[0].lost_ms, 5000);
	assert_int_equal(x.outcome.jobs[0].evictions, 3);
	/* They know of no other jobs: the second finds the only node on demand taken. */
	workload_deinit(&x.workload);
	jobs_read(&x,
		  "job,submit_s,run_s,kind,checkpoints,checkpoint_every_s,restart_s,deadline_s\n"
		  "j,0,1000,training,yes,10,50,2000\nk,1,1000,training,yes,10,50,2000\n");
	plain_with_nodes(&x, "spot-greedy", "0,s,0\n");
	ran(&x, 0, 900, 1900);
	ran(&x, 1, 1900, 2900);
	figures_make(&x.outcome, &f);
	assert_int_equal(f.deadlines, 2);
	assert_int_equal(f.deadlines_missed, 1);
	done(&x);
}

/* With no time left, and no node on demand for it, it runs on spot. Once such a node is open it moves there: saved at once, a restart of 50 s. */
static void where_nothing_is_left_on_demand_a_rule_uses_spot(void **state)
{
	static const char *const policies[] = { "spot-greedy", "uniform-progress" };

	(void)state;
	for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
		struct example x;

		site_read(&x,
			  "cluster: {nodes: [{name: s, gpus: 1, model: L4, capacity: spot}]}\n");
		jobs_read(
			&x,
			"job,submit_s,run_s,kind,checkpoints,checkpoint_every_s,restart_s,deadline_s\n"
			"late,0,1000,training,yes,10,50,500\n");
		plain_with_nodes(&x, policies[i], "0,s,1\n");
		ran(&x, 0, 0, 1000);
		plain_with_nodes(&x, policies[i], "0,s,0\n0,s,1\n100,s,0\n100,s,1\n");
		ran(&x, 0, 0, 1050); /* away for no time at all: its work is gone all the same */
		done(&x);
		site_read(
			&x,
			"cluster: {nodes: [{name: d, gpus: 1, model: L4}, {name: s, gpus: 1, model: L4, capacity: spot}]}\n");
		jobs_read(
			&x,
			"job,submit_s,run_s,kind,checkpoints,checkpoint_every_s,restart_s,deadline_s\n"
			"first,0,300,batch,,,,\nlate,0,1000,training,yes,10,50,500\n");
		plain_with_nodes(&x, policies[i], "0,s,1\n");
		ran(&x, 0, 0, 300);
		ran(&x, 1, 0, 1050);
		assert_int_equal(x.outcome.jobs[1].evictions, 1);
		done(&x);
	}
}

static void nodes_that_can_not_come_and_go_are_named(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "at_s,node,there\n", "the first line must be" },
		{ "#fairlead-availability 1\nat_s,node\n", "\"there\" is missing" },
		{ "#fairlead-availability 1\nat_s,node,there,why\n", "more columns" },
		{ "#fairlead-availability 1\nat_s,node,there\n5,n0,1\n4,n0,0\n", "line before" },
		{ "#fairlead-availability 1\nat_s,node,there\n5,n0,2\n", "there is \"2\"" },
		{ "#fairlead-availability 1\nat_s,node,there\nx,n0,1\n", "at_s is \"x\"" },
		{ "#fairlead-availability 1\nat_s,node,there\n1,,1\n", "no name" },
		{ "#fairlead-availability 1\nat_s,node,there\n1,n9,1\n", "no node \"n9\"" },
	};
	struct example x;

	(void)state;
	site_read(&x, ONE_NODE);
	jobs_read(&x, "job,submit_s,run_s\na,0,100\n");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct availability a = { 0 };
		struct err err = { 0 };
		int rc = availability_parse("a.csv", arena_strdup(&x.arena, cases[i].text), &a,
					    &err);

		if (rc == 0)
			rc = core_run("fairlead", &x.site, &x.workload,
				      &(struct core_run_options){ .availability = &a }, &x.outcome,
				      &err);
		assert_true(rc < 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].says);
		availability_deinit(&a);
	}
	done(&x);
}

static void figures_by_hand(void **state)
{
	struct example x;
	struct figures f;

	(void)state;
	site_read(&x, ONE_NODE);
	jobs_read(&x, "job,submit_s,run_s,gpus\na,0,100,4\nb,0,100,4\n");
	plain(&x, "fifo-strict");
	figures_make(&x.outcome, &f);
	near(f.completion_s.mean, 150);
	near(f.wait_s.p50, 100);
	near(f.delay_s.most, 100);
	near(f.slowdown.mean, 1.5);
	near(f.makespan_s, 200);
	near(f.utilisation_whole, 1);
	/* Two clusters' worth were wanted for 100 s, then one: b took 200 s where its even part would have taken 150. */
	near(f.fairness.most, 200 / 150.0);
	near(f.fairness.p50, 200 / 150.0);
	near(f.fairness.mean, (0.5 + 200 / 150.0) / 2);
	near(f.unallocated_full, 0);
	done(&x);
}

static void a_replay_is_the_same_to_the_bit(void **state)
{
	AUTO_BUF first = BUF_INIT;
	AUTO_BUF again = BUF_INIT;
	struct replay_result result = { 0 };
	struct example x;

	(void)state;
	for (int i = 0; i < 2; i++) {
		site_read(&x, ONE_NODE);
		jobs_read(&x, FOUR);
		core(&x);
		result.outcome = x.outcome;
		figures_make(&result.outcome, &result.figures);
		replay_json(i ? &again : &first, "c.yaml", &result, 1);
		done(&x);
	}
	assert_string_equal(buf_text(&first), buf_text(&again));
	assert_non_null(strstr(buf_text(&first), "\"format\":\"fairlead-replay 1\""));
}

/* The gang has three hosts of one leaf and one of another, as above, whatever it asks for. */
static int64_t slowed_s(const char *nodes, const char *columns, const char *gang,
			const char *policy)
{
	struct example x;
	int64_t ran_ms;
	AUTO_BUF text = BUF_INIT;

	buf_addf(&text,
		 "cluster:\n"
		 "  levels: [spine, leaf]\n"
		 "  fabric: {hosts: {nics: 8, nic: ndr}, levels: {spine: {oversubscription: 4}}}\n"
		 "  nodes:\n"
		 "    - {name: \"a[0-2]\", gpus: 8, model: H100-80GB, spine: s0, leaf: l0%s}\n"
		 "    - {name: b0, gpus: 8, model: H100-80GB, spine: s0, leaf: l1%s}\n"
		 "    - {name: \"c[0-3]\", gpus: 8, model: H100-80GB, spine: s0, leaf: l2%s}\n",
		 nodes, nodes, nodes);
	site_read(&x, buf_text(&text));
	buf_clear(&text);
	buf_addf(&text, "job,submit_s,run_s,tasks,gpus%s\ngang,0,1000,4,8%s\n", columns, gang);
	jobs_read(&x, buf_text(&text));
	if (policy)
		plain(&x, policy);
	else
		core(&x);
	ran_ms = x.outcome.jobs[0].end_ms - x.outcome.jobs[0].start_ms;
	done(&x);
	return ran_ms / 1000;
}

static void plain_policies_pay_what_the_core_would(void **state)
{
	(void)state;
	assert_int_equal(slowed_s("", ",kind", ",training", "fifo-strict"), 1719);
	assert_int_equal(slowed_s("", ",kind,spread", ",training,node", "fifo-strict"), 1719);
	assert_int_equal(slowed_s("", ",kind", ",inference", "fifo-strict"), 1000);
	assert_int_equal(
		slowed_s(", taints: pool=x", ",kind,tolerates", ",training,pool=x", "fifo-strict"),
		1719);
	assert_int_equal(
		slowed_s(", capacity: spot", ",kind,capacity", ",training,any", "fifo-strict"),
		1719);
	assert_int_equal(slowed_s("", ",kind", ",training", NULL), 1000);
	assert_int_equal(slowed_s(", taints: pool=x", ",kind,tolerates", ",training,pool=x", NULL),
			 1000);
}

/* One host of the leaf is held, so that the gang has three there and one elsewhere: it takes 1,719 s, and its owner knows of 1,000. */
static void a_limit_cuts_nobody_off_for_a_slow_place(void **state)
{
	struct example x;

	(void)state;
	site_read(&x,
		  "cluster:\n"
		  "  levels: [spine, leaf]\n"
		  "  fabric: {hosts: {nics: 8, nic: ndr}, levels: {spine: {oversubscription: 4}}}\n"
		  "  nodes:\n"
		  "    - {name: \"a[0-3]\", gpus: 8, model: H100-80GB, spine: s0, leaf: l0}\n"
		  "    - {name: b0, gpus: 8, model: H100-80GB, spine: s0, leaf: l1}\n");
	jobs_read(&x, "job,submit_s,run_s,limit_s,tasks,gpus,kind\n"
		      "host,0,9000,9000,1,8,training\n"
		      "gang,10,1000,1000,4,8,training\n");
	core(&x);
	ran(&x, 0, 0, 9000);
	ran(&x, 1, 10, 1729);
	done(&x);
}

/* One that runs all the time, and one each hour for twenty days: in the end the core holds those of the last seven. */
static void jobs_that_ended_a_week_ago_leave_the_memory(void **state)
{
	enum { HOURS = 20 * 24, WEEK = 7 * 24 };
	AUTO_BUF jobs = BUF_INIT;
	struct example x;

	(void)state;
	site_read(&x, "cluster:\n  nodes: [{name: n0, gpus: 8}]\n");
	buf_addf(&jobs, "job,submit_s,run_s,gpus,user\nlong,0,%d,4,ann\n", HOURS * 3600);
	for (int hour = 0; hour < HOURS; hour++)
		buf_addf(&jobs, "short-%d,%d,600,4,bob\n", hour, hour * 3600 + 60);
	jobs_read(&x, buf_text(&jobs));
	core(&x);
	ran(&x, 0, 0, HOURS * 3600);
	for (int hour = 0; hour < HOURS; hour++)
		ran(&x, (uint32_t)hour + 1, hour * 3600 + 60, hour * 3600 + 660);
	assert_in_range(x.outcome.forgotten, HOURS - WEEK - 1, HOURS - WEEK);
	done(&x);
}

/* src/core/fabric/README.md has the figures: three hosts in one leaf and one in another are 1.719 times as slow as four in one. */
static void what_the_network_costs_a_place_is_run_longer(void **state)
{
	struct example x;
	struct figures f;

	(void)state;
	site_read(&x,
		  "cluster:\n"
		  "  levels: [spine, leaf]\n"
		  "  fabric: {hosts: {nics: 8, nic: ndr}, levels: {spine: {oversubscription: 4}}}\n"
		  "  nodes:\n"
		  "    - {name: \"a[0-3]\", gpus: 8, model: H100-80GB, spine: s0, leaf: l0}\n"
		  "    - {name: \"b[0-3]\", gpus: 8, model: H100-80GB, spine: s0, leaf: l1}\n");
	jobs_read(&x, "job,submit_s,run_s,tasks,gpus,user,kind\n"
		      "host,0,5000,1,8,ann,training\n"
		      "gang,60,1000,4,8,ann,training\n");
	core(&x);
	ran(&x, 0, 0, 5000);
	ran(&x, 1, 60, 1060);
	figures_make(&x.outcome, &f);
	assert_true(f.network_gpu_h == 0);
	plain(&x, "fifo-strict");
	ran(&x, 0, 0, 5000);
	assert_in_range(x.outcome.jobs[1].end_ms, 1778000, 1782000);
	figures_make(&x.outcome, &f);
	assert_true(f.network_gpu_h > 6.38 && f.network_gpu_h < 6.42);
	done(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_network_costs_a_place_is_run_longer),
		cmocka_unit_test(plain_policies_pay_what_the_core_would),
		cmocka_unit_test(a_limit_cuts_nobody_off_for_a_slow_place),
		cmocka_unit_test(jobs_that_ended_a_week_ago_leave_the_memory),
		cmocka_unit_test(plain_orders_differ_as_their_names_say),
		cmocka_unit_test(preempting_orders_charge_a_new_beginning),
		cmocka_unit_test(parts_go_to_the_gpu_where_they_break_least),
		cmocka_unit_test(the_core_backfills_where_limits_are_known),
		cmocka_unit_test(the_core_preempts_and_nothing_is_done_twice_with_checkpoints),
		cmocka_unit_test(a_gang_takes_whole_nodes_and_one_with_the_rest),
		cmocka_unit_test(a_slower_model_takes_longer),
		cmocka_unit_test(what_saves_regularly_loses_what_came_after),
		cmocka_unit_test(wishes_reach_the_core),
		cmocka_unit_test(what_never_runs_is_counted_apart),
		cmocka_unit_test(starts_are_foretold_and_held_against_what_came),
		cmocka_unit_test(numbers_are_no_names),
		cmocka_unit_test(a_node_that_goes_takes_its_work_along),
		cmocka_unit_test(a_job_for_which_no_node_comes_does_not_keep_the_play_going),
		cmocka_unit_test(plain_policies_lose_their_nodes_too),
		cmocka_unit_test(spot_rules_keep_the_deadline),
		cmocka_unit_test(where_nothing_is_left_on_demand_a_rule_uses_spot),
		cmocka_unit_test(nodes_that_can_not_come_and_go_are_named),
		cmocka_unit_test(figures_by_hand),
		cmocka_unit_test(a_replay_is_the_same_to_the_bit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
