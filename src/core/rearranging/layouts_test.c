/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts from demand: the choice for one GPU, against all choices for several, and in 10,000 random streams of demand. */
#include "core/scheduling/testing.h"

#include "core/model/random_events.h"
#include "core/rearranging/layouts.h"

static const struct geometry *h100(void)
{
	return geometry_of("H100-80GB", 81920);
}

static uint32_t wish_of(const char *name)
{
	uint32_t wish;

	CHECK(slice_wish_parse(name, &wish));
	return wish;
}

static void a_layout_serves_most_of_what_is_asked_for(void **state)
{
	static const struct {
		struct {
			const char *name;
			uint64_t rank, tasks;
		} demand[3];
		const char *layout;
	} cases[] = {
		{ { { "1g.10gb", 1, 7 } },
		  "1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb" },
		{ { { "1g.10gb", 1, 1 } },
		  "1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb" },
		{ { { "3g.40gb", 1, 5 } }, "3g.40gb,3g.40gb" },
		{ { { "3g.40gb", 1, 2 }, { "1g.10gb", 1, 4 } },
		  "1g.10gb,1g.10gb,1g.10gb,1g.10gb,3g.40gb" },
		{ { { "3g.40gb", 2, 2 }, { "1g.10gb", 1, 4 } }, "3g.40gb,3g.40gb" },
		{ { { "1g.20gb", 1, 4 } }, "1g.20gb,1g.20gb,1g.20gb,1g.20gb" },
		{ { { "1g.10gb+me", 1, 1 } }, "4g.40gb,2g.20gb,1g.10gb+me" },
		{ { { "1g.10gb", 1, 1 }, { "3g.40gb", 1, 0 } },
		  "1g.10gb,1g.10gb,1g.10gb,1g.10gb,3g.40gb" },
		{ { { "7g.80gb", 1, 1 }, { "1g.10gb", 1, 6 } }, "7g.80gb" },
		{ { { "2g.20gb", 1, 3 } }, "2g.20gb,2g.20gb,2g.20gb,1g.10gb" },
		{ { { "1g.5gb", 1, 3 } }, "" }, /* of another model */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct slice_demand demand[3] = { { 0 } };
		char text[LAYOUT_TEXT_MAX];
		uint32_t count = 0;

		for (; count < 3 && cases[i].demand[count].name; count++)
			demand[count] = (struct slice_demand){ wish_of(cases[i].demand[count].name),
							       cases[i].demand[count].rank,
							       cases[i].demand[count].tasks, true };
		assert_string_equal(layout_text(h100(), layout_choose(h100(), demand, count), text),
				    cases[i].layout);
	}
}

/* Compute slices that the layouts serve, one GPU after the other. */
static uint64_t serve(const struct geometry *g, const uint32_t *layouts, uint32_t gpus,
		      struct slice_demand *demand, uint32_t count)
{
	uint64_t compute = 0;

	for (uint32_t i = 0; i < gpus; i++)
		for (uint32_t k = 0; k < count; k++) {
			uint64_t tasks = layout_serves(g, layouts[i], &demand[k]);

			demand[k].tasks -= tasks;
			compute += tasks * slice_wish_of(demand[k].wish).compute;
		}
	return compute;
}

/* The wish of one of the model's profiles. */
static uint32_t wish_random(const struct geometry *g, struct random *r)
{
	uint32_t profiles = 0;

	while (profiles < PROFILES_MAX && g->profiles[profiles].kind)
		profiles++;
	return profile_wish(&g->profiles[random_below(r, profiles)]);
}

/* Up to three different wishes for up to four tasks each; those for media engines aside, which layouts_all does not tell apart. */
static uint32_t demand_random(const struct geometry *g, struct random *r,
			      struct slice_demand ret[3])
{
	uint32_t count = 0;

	for (int i = 0; i < 3; i++) {
		const uint32_t wish = wish_random(g, r);
		bool twice = slice_wish_of(wish).media;

		for (uint32_t k = 0; k < count; k++)
			twice |= ret[k].wish == wish;
		if (!twice)
			ret[count++] = (struct slice_demand){ wish, 1, random_below(r, 5), true };
	}
	return count;
}

/* The most compute slices that two GPUs cut in any way can serve. */
static uint64_t best_of_all(const struct geometry *g, const struct slice_demand *demand,
			    uint32_t count)
{
	static uint32_t all[LAYOUTS_MAX];
	const uint32_t layouts = layouts_all(g, true, all);
	struct slice_demand left[3];
	uint64_t best = 0;

	for (uint32_t a = 0; a < layouts; a++)
		for (uint32_t b = a; b < layouts; b++) {
			const uint32_t two[] = { all[a], all[b] };
			uint64_t compute;

			memcpy(left, demand, sizeof(left));
			compute = serve(g, two, 2, left, count);
			best = compute > best ? compute : best;
		}
	return best;
}

/* All ways to cut two GPUs, against one after the other, on each model: the print says how near they are. */
static void one_gpu_after_the_other_is_as_good_as_all_choices(void **state)
{
	uint64_t got = 0, could = 0;
	uint32_t worse = 0, cases = 0;
	struct random r = { 11 };

	(void)state;
	for (uint32_t round = 0; round < 600; round++) {
		const struct geometry *g = geometry_get(1 + round % geometry_count());
		struct slice_demand demand[3] = { { 0 } }, left[3];
		const uint32_t count = demand_random(g, &r, demand);
		uint64_t here = 0, best;

		memcpy(left, demand, sizeof(left));
		for (int i = 0; i < 2; i++) {
			const uint32_t chosen = layout_choose(g, left, count);

			here += serve(g, &chosen, 1, left, count);
		}
		best = best_of_all(g, demand, count);
		assert_true(here <= best);
		cases++;
		worse += here < best;
		got += here;
		could += best;
	}
	print_message(
		"# %u cases on %u models: served %llu of %llu compute slices; worse in %u cases\n",
		cases, geometry_count(), (unsigned long long)got, (unsigned long long)could, worse);
	assert_true(got * 100 >= could * 99);
}

/* --- streams of demand ------------------------------------------------------------------------------------------- */

static void node_make(struct world *w, const char *name, const char *model, int64_t mib,
		      int64_t gpus, uint32_t partitioning)
{
	struct event e = world_event(w, EVENT_NODE_SET);

	e.node_set.name = name;
	e.node_set.gpus = gpus;
	e.node_set.model = model;
	e.node_set.gpu_memory_mib = mib;
	e.node_set.simulated = 1;
	world_apply(w, &e);
	e = world_event(w, EVENT_NODE_MARKED);
	e.node_marked.node = facts_node_find(&w->facts, name).v;
	e.node_marked.partitioning = partitioning;
	world_apply(w, &e);
}

/* Of such a GPU: what its largest slice is named after. */
static uint32_t whole_mib(const struct geometry *g)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < PROFILES_MAX && g->profiles[i].kind; i++)
		most = g->profiles[i].gigabytes > most ? g->profiles[i].gigabytes : most;
	return most * 1024;
}

/* A node of each of three models, any of those that can be cut. */
static void nodes_make(struct world *w, struct random *r, const struct geometry *models[3])
{
	static const char *const names[] = { "n0", "n1", "n2" };

	for (uint32_t i = 0; i < 3; i++) {
		const struct geometry *g = geometry_get(1 + random_below(r, geometry_count()));
		const uint32_t mib = whole_mib(g);

		CHECK(geometry_of(g->family, mib) == g);
		models[i] = g;
		node_make(w, names[i], g->family, mib, i ? 1 : 2,
			  i ? random_below(r, 3) : PARTITIONING_AUTO);
	}
}

static void something_happens(struct world *w, struct random *r, const struct geometry *models[3])
{
	char slice[SLICE_TEXT_MAX];
	uint32_t jobs = w->facts.jobs.count, job = 1 + random_below(r, jobs + 1);
	struct event e;

	switch (random_below(r, 8)) {
	case 0:
		(void)world_submit(w, (struct wish){ .name = "whole",
						     .kind = KIND_BATCH,
						     .gpus = 1 + random_below(r, 2) });
		break;
	case 1:
		(void)world_submit(
			w,
			(struct wish){ .name = "part", .kind = KIND_BATCH, .part = GPU_SHARE / 2 });
		break;
	case 2:
	case 3:
		if (job <= jobs && world_running(w, job))
			world_exit(w, job, 0);
		break;
	case 4:
		e = world_event(w, EVENT_GPU_STATE);
		e.gpu_state.node = 1 + random_below(r, 3);
		e.gpu_state.mask = 1;
		e.gpu_state.set_aside = random_below(r, 2);
		world_apply(w, &e);
		break;
	default:
		(void)world_submit(
			w, (struct wish){
				   .name = "slice",
				   .kind = random_below(r, 2) ? KIND_BATCH : KIND_INFERENCE,
				   .priority = (int64_t)random_below(r, 3),
				   .best_effort = random_below(r, 4) == 0,
				   .slice = slice_wish_text(
					   wish_random(models[random_below(r, 3)], r), slice) });
		break;
	}
}

/* testing.c checks each decision and what holds after it: nothing is cut that is in use, no layout is impossible, no slice held twice. */
static void no_stream_of_demand_cuts_a_busy_gpu_or_an_impossible_layout(void **state)
{
	uint32_t cut = 0, ran = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 10000; seed++) {
		const struct geometry *models[3];
		struct world w;
		struct random r = { seed * 0x9e3779b97f4a7c15u };

		world_init(&w, "");
		nodes_make(&w, &r, models);
		for (int step = 0; step < 8; step++) {
			something_happens(&w, &r, models);
			world_run(&w);
		}
		for (uint32_t id = 1; id <= 3; id++)
			cut += node_is_cut(node_get(&w.facts, (struct node_id){ id }));
		for (uint32_t job = 1; job <= w.facts.jobs.count; job++)
			ran += world_running(&w, job) &&
			       shape_get(&w.facts, job_get(&w.facts, (struct job_id){ job })->shape)
				       ->slice;
		world_deinit(&w);
	}
	print_message("# nodes cut in the end: %u; slices held: %u\n", cut, ran);
	assert_true(cut > 5000 && ran > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_layout_serves_most_of_what_is_asked_for),
		cmocka_unit_test(one_gpu_after_the_other_is_as_good_as_all_choices),
		cmocka_unit_test(no_stream_of_demand_cuts_a_busy_gpu_or_an_impossible_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
