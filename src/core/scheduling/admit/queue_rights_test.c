/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask for which tier and priority, and change which queue. The people and queues of all tests:
 *
 *	root (admin)	lou (lead of vision)	ann (researcher of vision)	bob (lead of speech)
 *	default		vision (team vision)	vision-night below it, of the team too		speech (team speech)
 */
#include "core/scheduling/admit/queue_rights.h"

#include <string.h>

#include "core/scheduling/testing.h"

enum { ROOT = 1, LOU, ANN, BOB, GUS };

static const struct {
	const char *name, *team;
	enum role role;
} people[] = {
	{ "root", "", ROLE_ADMIN },           { "lou", "vision", ROLE_LEAD },
	{ "ann", "vision", ROLE_RESEARCHER }, { "bob", "speech", ROLE_LEAD },
	{ "gus", "vision", ROLE_SERVICE },
};

static int admit(struct world *w, struct event *e, struct err *err)
{
	int rc;

	*err = (struct err){ .code = ERR_NONE };
	rc = core_admit(&w->facts, w->view, e, &w->step, NULL, err);
	if (rc == 0)
		world_apply(w, e);
	return rc;
}

static struct event queue(const struct world *w, const char *name, const char *parent,
			  const char *team)
{
	struct event e = world_event(w, EVENT_QUEUE_SET);

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.team = team;
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 1;
	return e;
}

static void put(struct world *w, struct event e)
{
	struct err err;

	assert_int_equal(admit(w, &e, &err), 0);
}

static void site_init(struct world *w)
{
	struct event e;

	world_init(w, "n0:8");
	for (int i = 0; i < 2; i++) {
		e = world_event(w, EVENT_TEAM_SET);
		e.team_set.name = i ? "speech" : "vision";
		put(w, e);
	}
	for (size_t i = 0; i < ARRAY_SIZE(people); i++) {
		e = world_event(w, EVENT_USER_SET);
		e.user_set.name = people[i].name;
		e.user_set.team = people[i].team;
		e.user_set.role = people[i].role;
		e.user_set.uid = (int64_t)i;
		put(w, e);
	}
	put(w, queue(w, "vision", "", "vision"));
	put(w, queue(w, "vision-night", "vision", "vision"));
	put(w, queue(w, "speech", "", "speech"));
}

static struct event job(const struct world *w, uint32_t user, const char *where)
{
	struct event e = world_event(w, EVENT_JOB_SUBMITTED);

	e.job_submitted.name = "train";
	e.job_submitted.user = user ? people[user - 1].name : "sam";
	e.job_submitted.owner = user;
	e.job_submitted.queue = where;
	e.job_submitted.kind = KIND_BATCH;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.grace_ms = -1;
	return e;
}

static int submit(struct world *w, uint32_t user, const char *where, int64_t tier, int64_t priority,
		  struct err *err)
{
	struct event e = job(w, user, where);

	e.job_submitted.tier = tier;
	e.job_submitted.priority = priority;
	return admit(w, &e, err);
}

static int prioritize(struct world *w, uint32_t user, int64_t id, int64_t priority, struct err *err)
{
	struct event e = world_event(w, EVENT_JOB_PRIORITY_SET);

	e.job_priority_set.job = id;
	e.job_priority_set.priority = priority;
	e.job_priority_set.by = user;
	return admit(w, &e, err);
}

static void states(struct world *w, const char *name, const char *parent, int64_t tiers,
		   int64_t max_priority)
{
	const struct queue *q = queue_get(&w->facts, facts_queue_find(&w->facts, name));
	struct event e = queue(w, name, parent, facts_name(&w->facts, q->team));

	e.queue_set.tiers = tiers;
	e.queue_set.max_priority = max_priority;
	put(w, e);
}

static void each_role_raises_a_priority_as_far_as_it_may(void **state)
{
	const struct {
		const char *queue;
		uint32_t user;
		int64_t most;
	} rows[] = {
		{ "vision", ROOT, PRIORITY_MOST },
		{ "vision", LOU, 100 },
		{ "vision", ANN, 0 },
		{ "vision", GUS, 0 },
		{ "vision", BOB, 0 },
		{ "vision", RIGHTS_STRANGER, 0 },
		{ "vision", 0, PRIORITY_MOST },
		{ "vision-night", LOU, 100 },
		{ "vision-night", ANN, 0 },
		{ "speech", BOB, 100 },
		{ "speech", LOU, 0 },
		{ "default", LOU, 0 },
		{ "default", ANN, 0 },
		{ "default", ROOT, PRIORITY_MOST },
	};
	struct world w;

	(void)state;
	site_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct err err;

		if (rights_priority_most(&w.facts, rows[i].user,
					 facts_queue_find(&w.facts, rows[i].queue)) != rows[i].most)
			fail_msg("user %u in queue %s: not %lld", rows[i].user, rows[i].queue,
				 (long long)rows[i].most);
		if (rows[i].user == RIGHTS_STRANGER)
			continue;
		assert_int_equal(
			submit(&w, rows[i].user, rows[i].queue, TIER_STANDARD, rows[i].most, &err),
			0);
		assert_int_equal(submit(&w, rows[i].user, rows[i].queue, TIER_STANDARD, -5, &err),
				 0);
		if (rows[i].most < PRIORITY_MOST)
			assert_int_equal(submit(&w, rows[i].user, rows[i].queue, TIER_STANDARD,
						rows[i].most + 1, &err),
					 -ERR_FORBIDDEN);
	}
	world_deinit(&w);
}

static void a_refused_priority_says_who_may_raise_it(void **state)
{
	struct world w;
	struct err err;

	(void)state;
	site_init(&w);
	assert_int_equal(submit(&w, ANN, "vision", TIER_STANDARD, 1000, &err), -ERR_FORBIDDEN);
	assert_string_equal(
		err.text,
		"job \"train\": priority 1000 is more than the 0 that researcher \"ann\" may use in queue \"vision\": use a lower one, or ask admin \"root\" to raise it (fairlead priority)");
	assert_int_equal(submit(&w, ANN, "vision", TIER_STANDARD, 7, &err), -ERR_FORBIDDEN);
	assert_non_null(strstr(err.text, "ask lead \"lou\" or admin \"root\" to raise it"));
	assert_int_equal(submit(&w, LOU, "default", TIER_STANDARD, 7, &err), -ERR_FORBIDDEN);
	assert_non_null(strstr(err.text, "ask admin \"root\" to raise it"));
	world_deinit(&w);
}

static void a_priority_is_lowered_by_anybody_and_raised_by_who_may(void **state)
{
	struct world w;
	struct err err;

	(void)state;
	site_init(&w);
	assert_int_equal(submit(&w, ANN, "vision", TIER_STANDARD, 0, &err), 0);
	assert_int_equal(prioritize(&w, ANN, 1, 1, &err), -ERR_FORBIDDEN);
	assert_int_equal(prioritize(&w, ANN, 1, -5, &err), 0);
	assert_int_equal(prioritize(&w, ANN, 1, 0, &err), 0);
	assert_int_equal(prioritize(&w, LOU, 1, 101, &err), -ERR_FORBIDDEN);
	assert_int_equal(prioritize(&w, LOU, 1, 100, &err), 0);
	/* What a lead gave may be given up in steps, and is not had again. */
	assert_int_equal(prioritize(&w, ANN, 1, 50, &err), 0);
	assert_int_equal(prioritize(&w, ANN, 1, 51, &err), -ERR_FORBIDDEN);
	assert_int_equal(prioritize(&w, BOB, 1, 51, &err), -ERR_FORBIDDEN);
	assert_int_equal(prioritize(&w, ROOT, 1, 1000, &err), 0);
	assert_int_equal(prioritize(&w, 0, 1, 2000, &err), 0);
	assert_int_equal(prioritize(&w, 77, 1, 1, &err), -ERR_FORBIDDEN);
	assert_string_equal(err.text,
			    "the user who asked for this was removed; ask admin \"root\"");
	world_deinit(&w);
}

static void a_queue_states_the_highest_priority(void **state)
{
	struct world w;
	struct err err;

	(void)state;
	site_init(&w);
	states(&w, "vision", "", 0, 20);
	assert_int_equal(submit(&w, ANN, "vision", TIER_STANDARD, 20, &err), 0);
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_STANDARD, 21, &err), -ERR_FORBIDDEN);
	assert_int_equal(submit(&w, LOU, "vision", TIER_STANDARD, 21, &err), -ERR_FORBIDDEN);
	assert_int_equal(submit(&w, 0, "vision", TIER_STANDARD, 21, &err), -ERR_FORBIDDEN);
	assert_int_equal(submit(&w, ROOT, "vision", TIER_STANDARD, 21, &err), 0);
	states(&w, "vision-night", "vision", 0, 50); /* the one above is narrower */
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_STANDARD, 21, &err), -ERR_FORBIDDEN);
	states(&w, "vision-night", "vision", 0, -1);
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_STANDARD, 1, &err), -ERR_FORBIDDEN);
	assert_int_equal(submit(&w, LOU, "vision-night", TIER_STANDARD, 1, &err), -ERR_FORBIDDEN);
	states(&w, "speech", "", 0, 1000);
	assert_int_equal(submit(&w, BOB, "speech", TIER_STANDARD, 101, &err), -ERR_FORBIDDEN);
	world_deinit(&w);
}

static void critical_work_is_admitted_where_the_queue_states_it_or_its_lead_submits(void **state)
{
	struct world w;
	struct err err;

	(void)state;
	site_init(&w);
	assert_int_equal(submit(&w, ANN, "vision", TIER_CRITICAL, 0, &err), -ERR_FORBIDDEN);
	assert_string_equal(
		err.text,
		"job \"train\": queue \"vision\" does not admit critical jobs unless it states that: use tier standard, or ask lead \"lou\" or admin \"root\" to run `fairlead queues change vision --tiers critical,standard,best-effort`");
	assert_int_equal(submit(&w, GUS, "vision", TIER_CRITICAL, 0, &err), -ERR_FORBIDDEN);
	assert_int_equal(submit(&w, LOU, "vision-night", TIER_CRITICAL, 0, &err), 0);
	assert_int_equal(submit(&w, LOU, "default", TIER_CRITICAL, 0, &err), -ERR_FORBIDDEN);
	assert_int_equal(submit(&w, ROOT, "default", TIER_CRITICAL, 0, &err), 0);
	assert_int_equal(submit(&w, 0, "default", TIER_CRITICAL, 0, &err), 0);
	states(&w, "vision", "", 1 << TIER_CRITICAL | 1 << TIER_STANDARD, 0);
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_CRITICAL, 0, &err), 0);
	/* What is stated holds for everybody. */
	assert_int_equal(submit(&w, ROOT, "vision-night", TIER_BEST_EFFORT, 0, &err),
			 -ERR_FORBIDDEN);
	assert_string_equal(
		err.text,
		"job \"train\": queue \"vision\" does not admit tier best-effort: use another tier or queue; lead \"lou\" or admin \"root\" can change what it admits (fairlead queues change vision --tiers)");
	assert_int_equal(submit(&w, 0, "vision", TIER_BEST_EFFORT, 0, &err), -ERR_FORBIDDEN);
	world_deinit(&w);
}

static void pods_count_as_far_as_the_queue_admits(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	site_init(&w);
	for (int i = 0; i < 2; i++) {
		e = job(&w, 0, "default");
		e.job_submitted.external = 1;
		e.job_submitted.priority = 1000;
		assert_int_equal(admit(&w, &e, &err), 0);
		assert_int_equal(e.job_submitted.priority, i ? 300 : 0);
		if (!i)
			states(&w, "default", "", 0, 300);
	}
	e = job(&w, 0, "default");
	e.job_submitted.external = 1;
	e.job_submitted.tier = TIER_CRITICAL;
	assert_int_equal(admit(&w, &e, &err), -ERR_FORBIDDEN);
	world_deinit(&w);
}

/* What a field of queue-set says once it was changed by `user`. */
static void change(struct world *w, uint32_t user, struct event e, const char *refusal)
{
	struct err err;
	int rc;

	e.queue_set.by = user;
	rc = admit(w, &e, &err);
	if (!refusal && rc != 0)
		fail_msg("%s", err.text);
	if (!refusal)
		return;
	assert_int_equal(rc, -ERR_FORBIDDEN);
	if (!strstr(err.text, refusal))
		fail_msg("%s\nlacks: %s", err.text, refusal);
}

static void a_lead_changes_what_lies_inside_the_own_subtree(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	site_init(&w);
	change(&w, LOU, queue(&w, "vision-day", "vision", "vision"), NULL);
	change(&w, LOU, queue(&w, "deep", "vision-night", "vision"), NULL);
	e = queue(&w, "vision-day", "vision", "vision");
	e.queue_set.weight = 5;
	e.queue_set.limit_share = 2 * GPU_SHARE;
	e.queue_set.tiers = TIERS_ALL;
	change(&w, LOU, e, NULL);
	change(&w, ANN, queue(&w, "x", "vision", "vision"),
	       "queue \"x\": researcher \"ann\" may not put it below queue \"vision\"; ask lead \"lou\" or admin \"root\"");
	change(&w, BOB, queue(&w, "vision-day", "vision", "vision"),
	       "lead \"bob\" may not change it; ask lead \"lou\"");
	change(&w, LOU, queue(&w, "vision-day", "speech", "vision"),
	       "may not put it below queue \"speech\"; ask lead \"bob\" or admin \"root\"");
	change(&w, LOU, queue(&w, "vision-day", "", "vision"),
	       "may not put it below the root, which divides the cluster between teams; ask admin \"root\"");
	change(&w, LOU, queue(&w, "vision-day", "vision", "speech"),
	       "may not make it a queue of team \"speech\"; ask admin \"root\"");
	change(&w, LOU, queue(&w, "vision-day", "vision", ""),
	       "may not make it a queue without a team; ask admin \"root\"");
	change(&w, LOU, queue(&w, "speech", "vision", "vision"),
	       "may not change it; ask lead \"bob\"");
	world_deinit(&w);
}

static void a_lead_divides_what_the_own_queue_holds_between_teams_below_it(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	site_init(&w);
	put(&w, queue(&w, "accents", "vision", "speech"));
	e = queue(&w, "accents", "vision", "speech");
	e.queue_set.weight = 3;
	change(&w, BOB, e, "lead \"bob\" may not change its weight");
	change(&w, LOU, e, NULL);
	assert_int_equal(submit(&w, BOB, "accents", TIER_STANDARD, 100, &err), 0);
	assert_int_equal(submit(&w, LOU, "accents", TIER_STANDARD, 100, &err), 0);
	change(&w, LOU, queue(&w, "accents", "vision", ""),
	       "may not make it a queue without a team");
	world_deinit(&w);
}

static void a_leads_highest_queue_keeps_what_an_admin_gave_it(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	site_init(&w);
	e = queue(&w, "vision", "", "vision");
	e.queue_set.tiers = TIERS_ALL;
	e.queue_set.max_priority = 100;
	e.queue_set.user_limit_share = GPU_SHARE;
	e.queue_set.default_limit_ms = 1000;
	change(&w, LOU, e, NULL);
	e.queue_set.max_priority = 101;
	change(&w, LOU, e, "may not admit priorities above 100; ask admin \"root\"");
	e.queue_set.max_priority = 100;
	e.queue_set.weight = 2;
	change(&w, LOU, e,
	       "queue \"vision\": lead \"lou\" may not change its weight, which divides the cluster between teams");
	e.queue_set.weight = 1;
	e.queue_set.guarantee_share = 8 * GPU_SHARE;
	change(&w, LOU, e, "may not change its guarantee");
	e.queue_set.guarantee_share = 0;
	e.queue_set.limit_share = 8 * GPU_SHARE;
	change(&w, LOU, e, "may not change its limits");
	e.queue_set.limit_share = -1;
	e.queue_set.reserved = 1;
	change(&w, LOU, e, "may not change its reserved");
	change(&w, ROOT, e, NULL);
	world_deinit(&w);
}

static void budgets_and_removals_are_for_who_leads_the_queue_above(void **state)
{
	const struct {
		uint32_t user;
		const char *queue, *refusal;
	} rows[] = {
		{ ANN, "vision-night",
		  "researcher \"ann\" may not change its budget; ask lead \"lou\" or admin \"root\"" },
		{ BOB, "vision-night", "lead \"bob\" may not change its budget; ask lead \"lou\"" },
		{ LOU, "vision",
		  "it is the highest queue of the team, which an admin gave it; ask admin \"root\"" },
		{ LOU, "default", "may not change its budget; ask admin \"root\"" },
		{ LOU, "vision-night", NULL },
		{ ROOT, "vision", NULL },
	};
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	site_init(&w);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		e = world_event(&w, EVENT_BUDGET_SET);
		e.budget_set.queue = rows[i].queue;
		e.budget_set.by = rows[i].user;
		assert_int_equal(admit(&w, &e, &err), rows[i].refusal ? -ERR_FORBIDDEN : 0);
		if (rows[i].refusal && !strstr(err.text, rows[i].refusal))
			fail_msg("%s", err.text);
	}
	e = world_event(&w, EVENT_QUEUE_REMOVED);
	e.queue_removed.name = "vision";
	e.queue_removed.by = LOU;
	assert_int_equal(admit(&w, &e, &err), -ERR_FORBIDDEN);
	e.queue_removed.name = "vision-night";
	e.queue_removed.by = ANN;
	assert_int_equal(admit(&w, &e, &err), -ERR_FORBIDDEN);
	e.queue_removed.by = LOU;
	assert_int_equal(admit(&w, &e, &err), 0);
	world_deinit(&w);
}

static void a_queue_limits_the_waiting_jobs_of_each_user(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	site_init(&w);
	e = queue(&w, "vision", "", "vision");
	e.queue_set.user_waiting = 3;
	put(&w, e);
	assert_int_equal(submit(&w, ANN, "vision", TIER_STANDARD, 0, &err), 0);
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_STANDARD, 0, &err), 0);
	assert_int_equal(submit(&w, GUS, "vision", TIER_STANDARD, 0, &err), 0);
	e = job(&w, ANN, "vision");
	e.job_submitted.array_count = 2;
	assert_int_equal(admit(&w, &e, &err), -ERR_QUOTA);
	assert_string_equal(
		err.text,
		"job \"train\": user \"ann\" has 2 jobs waiting in queue \"vision\", and 2 more would exceed its limit of 3 per user; wait until some have started, cancel some, or ask lead \"lou\" or admin \"root\" to raise it (fairlead queues change vision --user-waiting)");
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_STANDARD, 0, &err), 0);
	assert_int_equal(submit(&w, ANN, "vision-night", TIER_STANDARD, 0, &err), -ERR_QUOTA);
	assert_int_equal(submit(&w, ANN, "default", TIER_STANDARD, 0, &err), 0);
	assert_int_equal(submit(&w, ROOT, "vision", TIER_STANDARD, 0, &err), 0);
	/* What was cancelled waits no more. */
	world_cancel(&w, 1);
	world_decide(&w);
	assert_int_equal(submit(&w, ANN, "vision", TIER_STANDARD, 0, &err), 0);
	/* More than in all other queues together. */
	e = queue(&w, "speech", "", "speech");
	e.queue_set.user_waiting = 20000;
	put(&w, e);
	e = job(&w, BOB, "speech");
	e.job_submitted.array_count = 10000;
	put(&w, e);
	e = job(&w, BOB, "speech");
	e.job_submitted.array_count = 10000;
	put(&w, e);
	assert_int_equal(submit(&w, BOB, "speech", TIER_STANDARD, 0, &err), -ERR_QUOTA);
	assert_int_equal(submit(&w, BOB, "default", TIER_STANDARD, 0, &err), -ERR_QUOTA);
	facts_verify(&w.facts);
	world_deinit(&w);
}

static void a_tier_that_is_closed_above_is_not_stated_below(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	site_init(&w);
	states(&w, "vision", "", 1 << TIER_STANDARD, 0);
	e = queue(&w, "vision-night", "vision", "vision");
	e.queue_set.tiers = 1 << TIER_STANDARD | 1 << TIER_CRITICAL;
	assert_int_equal(admit(&w, &e, &err), -ERR_INVALID);
	assert_string_equal(
		err.text,
		"queue \"vision-night\": tier critical is not admitted by queue \"vision\" above it; state it there first, which lead \"lou\" or admin \"root\" may do");
	world_deinit(&w);
}

/* Whoever may touch the job may shorten a limit, and extend it as far as jobs of the queue run that declare none. */
static void who_leads_the_queue_extends_limits_of_what_runs(void **state)
{
	const struct {
		uint32_t user;
		int64_t hours;
		bool may;
	} rows[] = {
		{ ANN, 3, true },   { ANN, 10, true },  { ANN, 11, false }, { ANN, 0, false },
		{ BOB, 11, false }, { GUS, 11, false }, { LOU, 11, true },  { LOU, 0, true },
		{ ROOT, 99, true }, { 0, 99, true },
	};
	struct event e;
	struct err err;
	struct world w;

	(void)state;
	site_init(&w);
	e = queue(&w, "vision", "", "vision");
	e.queue_set.default_limit_ms = 10 * 3600000;
	put(&w, e);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const uint32_t id = w.facts.jobs.count + 1;

		e = job(&w, ANN, "vision");
		e.job_submitted.limit_ms = 2 * 3600000;
		put(&w, e);
		e = world_event(&w, EVENT_JOB_CHANGED);
		e.job_changed.job = id;
		e.job_changed.by = rows[i].user;
		e.job_changed.what = "limit";
		e.job_changed.limit_ms = 99 * 3600000;
		put(&w, e); /* it waits: a submission may declare any limit */
		e.job_changed.what = "limit";
		e.job_changed.by = rows[i].user;
		e.job_changed.limit_ms = 2 * 3600000;
		put(&w, e);
		world_run(&w);
		e.job_changed.what = "limit";
		e.job_changed.by = rows[i].user;
		e.job_changed.limit_ms = rows[i].hours * 3600000;
		if (admit(&w, &e, &err) != (rows[i].may ? 0 : -(int)ERR_FORBIDDEN))
			fail_msg("user %u, %lld hours: %s", rows[i].user, (long long)rows[i].hours,
				 err.text);
		if (!rows[i].may)
			assert_non_null(strstr(err.text,
					       "may extend its limit to 10h, the limit of "
					       "queue \"vision\", and not further; ask "
					       "lead \"lou\" or admin \"root\""));
		world_cancel(&w, id);
		world_run(&w);
	}
	world_deinit(&w);
}

/* What is new needs the right that a submission needs; what a lead gave a job it keeps. */
static void a_change_needs_the_rights_of_a_submission(void **state)
{
	struct event e;
	struct err err;
	struct world w;

	(void)state;
	site_init(&w);
	put(&w, job(&w, ANN, "vision"));
	e = world_event(&w, EVENT_JOB_CHANGED);
	e.job_changed.job = 1;
	e.job_changed.by = ANN;
	e.job_changed.what = "priority,queue";
	e.job_changed.priority = 50;
	e.job_changed.queue = "vision";
	assert_int_equal(admit(&w, &e, &err), -(int)ERR_FORBIDDEN);
	e.job_changed.by = LOU;
	e.job_changed.what = "priority";
	put(&w, e);
	e.job_changed.by = ANN;
	e.job_changed.what = "limit";
	e.job_changed.limit_ms = 5000;
	put(&w, e);
	e.job_changed.by = ANN;
	e.job_changed.what = "queue"; /* there nobody gave it */
	e.job_changed.queue = "default";
	assert_int_equal(admit(&w, &e, &err), -(int)ERR_FORBIDDEN);
	e.job_changed.by = ANN;
	e.job_changed.what = "tier";
	e.job_changed.tier = TIER_CRITICAL;
	assert_int_equal(admit(&w, &e, &err), -(int)ERR_FORBIDDEN);
	world_deinit(&w);
}

static void a_limit_of_waiting_jobs_holds_for_those_that_move_there(void **state)
{
	struct event e;
	struct err err;
	struct world w;

	(void)state;
	site_init(&w);
	e = queue(&w, "vision-night", "vision", "vision");
	e.queue_set.user_waiting = 1;
	put(&w, e);
	for (int i = 0; i < 2; i++) {
		e = job(&w, ANN, i ? "vision" : "vision-night");
		e.job_submitted.held = 1;
		put(&w, e);
	}
	e = world_event(&w, EVENT_JOB_CHANGED);
	e.job_changed.job = 2;
	e.job_changed.by = ANN;
	e.job_changed.what = "queue";
	e.job_changed.queue = "vision-night";
	assert_int_equal(admit(&w, &e, &err), -(int)ERR_QUOTA);
	world_cancel(&w, 1);
	world_run(&w);
	put(&w, e);
	assert_string_equal(
		facts_name(
			&w.facts,
			queue_get(&w.facts, job_get(&w.facts, (struct job_id){ 2 })->queue)->name),
		"vision-night");
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_leads_the_queue_extends_limits_of_what_runs),
		cmocka_unit_test(a_change_needs_the_rights_of_a_submission),
		cmocka_unit_test(a_limit_of_waiting_jobs_holds_for_those_that_move_there),
		cmocka_unit_test(each_role_raises_a_priority_as_far_as_it_may),
		cmocka_unit_test(a_refused_priority_says_who_may_raise_it),
		cmocka_unit_test(a_priority_is_lowered_by_anybody_and_raised_by_who_may),
		cmocka_unit_test(a_queue_states_the_highest_priority),
		cmocka_unit_test(
			critical_work_is_admitted_where_the_queue_states_it_or_its_lead_submits),
		cmocka_unit_test(pods_count_as_far_as_the_queue_admits),
		cmocka_unit_test(a_lead_changes_what_lies_inside_the_own_subtree),
		cmocka_unit_test(a_lead_divides_what_the_own_queue_holds_between_teams_below_it),
		cmocka_unit_test(a_leads_highest_queue_keeps_what_an_admin_gave_it),
		cmocka_unit_test(budgets_and_removals_are_for_who_leads_the_queue_above),
		cmocka_unit_test(a_queue_limits_the_waiting_jobs_of_each_user),
		cmocka_unit_test(a_tier_that_is_closed_above_is_not_stated_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
