/* SPDX-License-Identifier: Apache-2.0 */
/* What each event of nodes, queues and people does, told as small stories. */
#include "core/model/apply_testing.h"

/* --- nodes, queues, people ------------------------------------------------------------------------------------------------ */

static void fail_here(uint32_t id, int64_t time_ms)
{
	static const int64_t node[] = { 1 }, mask[] = { 5 };

	submit(time_ms, id);
	fits(placed(time_ms, id, id, 0));
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, time_ms, .attempt = id, .why = STOP_FAILED,
		      .blamed_nodes = node, .blamed_nodes_count = 1, .blamed_masks = mask,
		      .blamed_masks_count = 1));
}

static void early_failures_are_remembered_by_node_and_gpu(void **state)
{
	const struct gpu_record *gpu;

	(void)state;
	for (uint32_t id = 1; id <= 5; id++)
		fail_here(id, 100 * id);
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->failed_job[0], 5);
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->failed_job[3], 2);
	assert_true(node_get(&f, (struct node_id){ 1 })->failed_ms[1] == 400);
	gpu = table_get(&f.gpus, 3);
	assert_int_equal(gpu->failed_job[0], 5);
	gpu = table_get(&f.gpus, 2);
	assert_int_equal(gpu->failed_job[0], 0);
	fits(EVENT_OF(GPU_STATE, gpu_state, 600, .node = 1, .mask = 4, .set_aside = 1,
		      .reason = "black hole"));
	fits(EVENT_OF(NODE_STATE, node_state, 600, .node = 1, .state = NODE_QUARANTINED,
		      .reason = "black hole"));
	fits(EVENT_OF(NODE_STATE, node_state, 700, .node = 1, .state = NODE_READY));
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->failed_job[0], 0);
	gpu = table_get(&f.gpus, 1);
	assert_int_equal(gpu->failed_job[0], 0);
	gpu = table_get(&f.gpus, 3);
	assert_int_equal(gpu->failed_job[0], 5);
	fits(EVENT_OF(GPU_STATE, gpu_state, 800, .node = 1, .mask = 4));
	gpu = table_get(&f.gpus, 3);
	assert_int_equal(gpu->failed_job[0], 0);
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->set_aside_mask, 0);
}

static void a_job_that_fails_again_counts_once_and_is_the_newest(void **state)
{
	static const int64_t node[] = { 1 };

	(void)state;
	fail_here(1, 100);
	fail_here(2, 200);
	fits(EVENT_OF(JOB_REQUEUED, job_requeued, 300, .job = 1, .why = REQUEUE_FAILED));
	fits(placed(310, 1, 3, 0));
	fits(EVENT_OF(ATTEMPT_ENDED, attempt_ended, 320, .attempt = 3, .why = STOP_FAILED,
		      .blamed_nodes = node, .blamed_nodes_count = 1));
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->failed_job[0], 1);
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->failed_job[1], 2);
	assert_int_equal(node_get(&f, (struct node_id){ 1 })->failed_job[2], 0);
	assert_true(node_get(&f, (struct node_id){ 1 })->failed_ms[0] == 320);
}

static void a_mask_is_a_bit_of_its_nodes_until_it_ends(void **state)
{
	const int64_t nodes[] = { 1, 2 }, unknown[] = { 9 };
	uint32_t row;

	(void)state;
	fits(EVENT_OF(NODE_MASK, node_mask, 50, .name = "pods-1", .in = nodes, .in_count = 2,
		      .why = "node affinity"));
	row = facts_mask_find(&f, facts_name_find(&f, "pods-1"));
	assert_int_equal(mask_nodes(&f, row), 2);
	assert_string_equal(facts_text(&f, mask_get(&f, row)->why), "node affinity");
	fits(EVENT_OF(NODE_MASK, node_mask, 60, .name = "pods-1", .out = nodes, .out_count = 1,
		      .why = "taints"));
	assert_false(node_is_in(node_get(&f, (struct node_id){ 1 }), row));
	assert_true(node_is_in(node_get(&f, (struct node_id){ 2 }), row));
	assert_string_equal(facts_text(&f, mask_get(&f, row)->why), "taints");
	does_not_fit(
		EVENT_OF(NODE_MASK, node_mask, 70, .name = "pods-1", .in = unknown, .in_count = 1));
	does_not_fit(EVENT_OF(NODE_MASK, node_mask, 70, .name = ""));
	fits(EVENT_OF(NODE_MASK, node_mask, 80, .name = "pods-1", .ended = 1));
	assert_int_equal(facts_mask_find(&f, facts_name_find(&f, "pods-1")), 0);
	assert_false(node_is_in(node_get(&f, (struct node_id){ 2 }), row));
	/* Its row is used again, and what was in it is not in the next one. */
	fits(EVENT_OF(NODE_MASK, node_mask, 90, .name = "pods-2"));
	assert_int_equal(facts_mask_find(&f, facts_name_find(&f, "pods-2")), row);
	assert_int_equal(mask_nodes(&f, row), 0);
	for (uint32_t i = 1; i < MASKS_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "more-%u", i);
		fits(EVENT_OF(NODE_MASK, node_mask, 100, .name = name));
	}
	does_not_fit(EVENT_OF(NODE_MASK, node_mask, 110, .name = "one-too-many"));
}

static void what_people_say_of_a_node_stays_when_it_is_declared_again(void **state)
{
	const struct node *node;
	char text[EVENT_TEXT_MAX + 1], version[VERSION_TEXT_MAX];

	(void)state;
	fits(EVENT_OF(NODE_MARKED, node_marked, 50, .node = 2, .labels = "zone=b,region=eu,zone=b",
		      .taints = "team=x", .class = NODE_CLASS_INFERENCE, .data = "b,a"));
	fits(EVENT_OF(NODE_SET, node_set, 60, .name = "n1", .gpus = 8, .cuda = "12.4"));
	node = node_get(&f, (struct node_id){ 2 });
	assert_string_equal(names_text(&f, node->label, LABELS_MAX, text), "region=eu,zone=b");
	assert_string_equal(names_text(&f, node->taint, TAINTS_MAX, text), "team=x");
	assert_string_equal(names_text(&f, node->data, NODE_DATA_MAX, text), "a,b");
	assert_int_equal(node->class, NODE_CLASS_INFERENCE);
	assert_string_equal(facts_name(&f, node->cuda), "12.4");
	does_not_fit(EVENT_OF(NODE_MARKED, node_marked, 70, .node = 9, .labels = "a=b"));
	does_not_fit(EVENT_OF(NODE_MARKED, node_marked, 70, .node = 2, .class = 3));
	assert_true(version_parse("550.54.14") > version_parse("550.9"));
	assert_true(version_parse("550.54.14") < version_parse("550.100"));
	assert_true(version_parse("99999.1") == version_parse("4095.1"));
	assert_int_equal(version_parse("none"), 0);
	assert_string_equal(version_text(version_parse("550.54.14"), version), "550.54.14");
	assert_string_equal(version_text(version_parse("4095.1023.1023"), version),
			    "4095.1023.1023");
}

static const struct pool *pool_at(uint32_t row)
{
	return table_get(&f.pools, row);
}

/* Node 2 is there from 50 to 1050 and away until 1350. */
static void a_pool_learns_how_long_spot_nodes_are_there_and_away(void **state)
{
	(void)state;
	fits(EVENT_OF(NODE_MARKED, node_marked, 50, .node = 2, .capacity = CAPACITY_SPOT));
	assert_int_equal(f.pools.count, 1);
	assert_true(name_same(pool_at(1)->model, node_get(&f, (struct node_id){ 2 })->model));
	assert_int_equal(pool_at(1)->nodes_there, 1);
	assert_int_equal(pool_at(1)->turned_ms, 50);
	fits(EVENT_OF(NODE_STATE, node_state, 500, .node = 2, .state = NODE_CORDONED));
	assert_int_equal(pool_at(1)->nodes_there, 1); /* it is there, and nobody may start on it */
	fits(EVENT_OF(NODE_STATE, node_state, 1050, .node = 2, .state = NODE_DOWN));
	assert_int_equal(pool_at(1)->there, 1);
	assert_true(pool_at(1)->there_ms == 1000 && pool_at(1)->away_ms == 0);
	assert_int_equal(pool_at(1)->nodes_there, 0);
	fits(EVENT_OF(NODE_STATE, node_state, 1200, .node = 2, .state = NODE_GONE));
	fits(EVENT_OF(NODE_SET, node_set, 1350, .name = "n1", .gpus = 4,
		      .model = facts_name(&f, node_get(&f, (struct node_id){ 2 })->model),
		      .domains = facts_name(&f, node_get(&f, (struct node_id){ 2 })->domain[0])));
	assert_true(pool_at(1)->away == 1 && pool_at(1)->away_ms == 300);
	assert_int_equal(pool_at(1)->nodes_there, 1);
	assert_int_equal(pool_at(1)->turned_ms, 1350);
	/* Another model is another pool, and nobody took the node away. */
	fits(EVENT_OF(NODE_SET, node_set, 2000, .name = "n1", .gpus = 4, .model = "H200"));
	assert_int_equal(f.pools.count, 2);
	assert_int_equal(pool_at(1)->there, 1);
	assert_int_equal(pool_at(1)->nodes_there, 0);
	assert_int_equal(pool_at(2)->nodes_there, 1);
	fits(EVENT_OF(NODE_MARKED, node_marked, 2100, .node = 2, .capacity = CAPACITY_ON_DEMAND));
	assert_int_equal(pool_at(2)->nodes_there, 0);
	does_not_fit(EVENT_OF(NODE_MARKED, node_marked, 2200, .node = 2, .capacity = CAPACITY_ANY));
}

static void a_pool_forgets_half_of_what_is_long_past(void **state)
{
	(void)state;
	fits(EVENT_OF(NODE_MARKED, node_marked, 50, .node = 2, .capacity = CAPACITY_SPOT));
	for (int64_t i = 0; i < 65; i++) {
		fits(EVENT_OF(NODE_STATE, node_state, 1050 + 2000 * i, .node = 2,
			      .state = NODE_DOWN));
		fits(EVENT_OF(NODE_STATE, node_state, 2050 + 2000 * i, .node = 2,
			      .state = NODE_READY));
	}
	assert_int_equal(pool_at(1)->there, 33);
	assert_int_equal(pool_at(1)->there_ms, 33000);
}

static void a_node_keeps_its_number_when_it_changes_or_returns(void **state)
{
	(void)state;
	fits(EVENT_OF(NODE_STATE, node_state, 50, .node = 2, .state = NODE_GONE,
		      .reason = "removed"));
	fits(EVENT_OF(NODE_SET, node_set, 60, .name = "n1", .gpus = 8, .model = "A100-40GB"));
	assert_int_equal(facts_node_find(&f, "n1").v, 2);
	assert_int_equal(node_get(&f, (struct node_id){ 2 })->state, NODE_READY);
	assert_int_equal(node_get(&f, (struct node_id){ 2 })->reason.v, 0);
	assert_int_equal(node_get(&f, (struct node_id){ 2 })->gpu_count, 8);
	assert_int_equal(node_get(&f, (struct node_id){ 2 })->domain[0].v, 0);
	does_not_fit(EVENT_OF(NODE_SET, node_set, 70, .name = "n2", .gpus = NODE_GPUS_MAX + 1));
	does_not_fit(EVENT_OF(NODE_SET, node_set, 70, .gpus = 1));
	does_not_fit(EVENT_OF(NODE_STATE, node_state, 70, .node = 3, .state = NODE_DOWN));
	does_not_fit(
		EVENT_OF(NODE_STATE, node_state, 70, .node = 1, .state = NODE_MAINTENANCE + 1));
	does_not_fit(EVENT_OF(GPU_STATE, gpu_state, 70, .node = 1, .mask = (int64_t)1 << 32,
			      .set_aside = 1));
}

static void announced_maintenance_is_forgotten_when_it_is_over(void **state)
{
	const struct node *node = NULL;

	(void)state;
	fits(EVENT_OF(NODE_WINDOW, node_window, 50, .node = 2, .from_ms = 1000, .to_ms = 2000,
		      .reason = "fan"));
	node = node_get(&f, (struct node_id){ 2 });
	assert_true(node->window_from_ms == 1000 && node->window_to_ms == 2000);
	assert_string_equal(facts_text(&f, node->window_reason), "fan");
	does_not_fit(EVENT_OF(NODE_WINDOW, node_window, 60, .node = 2, .from_ms = 9, .to_ms = 9));
	does_not_fit(EVENT_OF(NODE_WINDOW, node_window, 60, .node = 9, .from_ms = 1, .to_ms = 9));
	fits(EVENT_OF(NODE_STATE, node_state, 65, .node = 2, .state = NODE_CORDONED));
	fits(EVENT_OF(NODE_STATE, node_state, 70, .node = 2, .state = NODE_READY));
	assert_true(node_has_window(node_get(&f, (struct node_id){ 2 })));
	fits(EVENT_OF(NODE_STATE, node_state, 1000, .node = 2, .state = NODE_MAINTENANCE,
		      .reason = "fan"));
	fits(EVENT_OF(NODE_STATE, node_state, 2000, .node = 2, .state = NODE_READY));
	assert_false(node_has_window(node_get(&f, (struct node_id){ 2 })));
	fits(EVENT_OF(NODE_WINDOW, node_window, 2100, .node = 2, .from_ms = 3000, .to_ms = 4000));
	fits(EVENT_OF(NODE_WINDOW, node_window, 2200, .node = 2));
	assert_false(node_has_window(node_get(&f, (struct node_id){ 2 })));
}

static void a_reservation_in_advance_is_made_changed_and_over(void **state)
{
	static const int64_t nodes[] = { 2, 1 }, masks[] = { 3, 1 };
	const struct booking *b;
	struct job job = { 0 };
	uint32_t row;

	(void)state;
	fits(EVENT_OF(BOOKING_SET, booking_set, 50, .name = "course", .queue = "default",
		      .from_ms = 1000, .to_ms = 2000, .gpus = 3, .nodes = nodes, .nodes_count = 2,
		      .masks = masks, .masks_count = 2, .reason = "lesson"));
	row = facts_booking_find(&f, "course");
	assert_int_equal(row, 1);
	b = booking_get(&f, row);
	assert_true(b->node[0] == 2 && b->mask[0] == 3 && b->node[1] == 1 && !b->node[2]);
	fits(EVENT_OF(BOOKING_SET, booking_set, 60, .name = "course", .queue = "default",
		      .from_ms = 1000, .to_ms = 3000, .keep = 1, .nodes = nodes, .nodes_count = 1,
		      .masks = masks, .masks_count = 1));
	b = booking_get(&f, facts_booking_find(&f, "course"));
	assert_true(b->to_ms == 3000 && b->keep && !b->node[1] && f.bookings.count == 1);
	fits(EVENT_OF(BOOKING_SET, booking_set, 65, .name = "own", .user = "vera", .from_ms = 1000,
		      .to_ms = 3000, .nodes = nodes, .nodes_count = 1, .masks = masks,
		      .masks_count = 1));
	job.queue = facts_queue_find(&f, "default");
	assert_true(booking_is_for(&f, b, &job));
	b = booking_get(&f, facts_booking_find(&f, "own"));
	assert_false(booking_is_for(&f, b, &job));
	job.user = facts_name_find(&f, "vera");
	assert_true(booking_is_for(&f, b, &job));
	does_not_fit(EVENT_OF(BOOKING_SET, booking_set, 66, .name = "nobodys", .from_ms = 1000,
			      .to_ms = 3000, .nodes = nodes, .nodes_count = 1, .masks = masks,
			      .masks_count = 1));
	does_not_fit(EVENT_OF(BOOKING_SET, booking_set, 70, .name = "x", .queue = "nobody",
			      .from_ms = 1, .to_ms = 2, .nodes = nodes, .nodes_count = 1,
			      .masks = masks, .masks_count = 1));
	does_not_fit(EVENT_OF(BOOKING_SET, booking_set, 70, .name = "x", .queue = "default",
			      .from_ms = 2, .to_ms = 2, .nodes = nodes, .nodes_count = 1,
			      .masks = masks, .masks_count = 1));
	does_not_fit(EVENT_OF(BOOKING_SET, booking_set, 70, .name = "x", .queue = "default",
			      .from_ms = 1, .to_ms = 2));
	does_not_fit(EVENT_OF(BOOKING_ENDED, booking_ended, 80, .name = "x"));
	fits(EVENT_OF(BOOKING_ENDED, booking_ended, 80, .name = "course"));
	assert_int_equal(facts_booking_find(&f, "course"), 0);
}

static void queues_form_a_tree_without_circles(void **state)
{
	(void)state;
	fits(EVENT_OF(QUEUE_SET, queue_set, 50, .name = "a", .parent = "root", .used_gpu_ms = 70));
	fits(EVENT_OF(QUEUE_SET, queue_set, 50, .name = "b", .parent = "a"));
	does_not_fit(EVENT_OF(QUEUE_SET, queue_set, 60, .name = "a", .parent = "b"));
	does_not_fit(EVENT_OF(QUEUE_SET, queue_set, 60, .name = "a", .parent = "a"));
	does_not_fit(EVENT_OF(QUEUE_SET, queue_set, 60, .name = "c", .parent = "nowhere"));
	fits(EVENT_OF(QUEUE_SET, queue_set, 60, .name = "a", .weight = 5));
	assert_true(queue_get(&f, facts_queue_find(&f, "a"))->used_gpu_ms == 70);
	fits(EVENT_OF(QUEUE_REMOVED, queue_removed, 70, .name = "b"));
	assert_int_equal(facts_queue_find(&f, "b").v, 0);
	does_not_fit(EVENT_OF(QUEUE_REMOVED, queue_removed, 70, .name = "b"));
	fits(EVENT_OF(QUEUE_SET, queue_set, 80, .name = "b"));
	assert_int_equal(facts_queue_find(&f, "b").v, 3);
}

static void clocks_of_a_zone_are_replaced_whole_and_closely_checked(void **state)
{
	static const int64_t at_ms[] = { 1000000000, 20000000000, 20000000001 };
	static const int64_t then_ms[] = { 7200000, 3600000, 7200000 };
	const struct zone *z;

	(void)state;
	fits(EVENT_OF(ZONE_SET, zone_set, 50, .name = "Europe/Berlin", .ahead_ms = 3600000,
		      .at_ms = at_ms, .at_ms_count = 2, .then_ms = then_ms, .then_ms_count = 2));
	z = facts_zone_find(&f, "Europe/Berlin");
	assert_true(z->before_ms == 3600000 && z->count == 2 && z->at_ms[1] == 20000000000 &&
		    z->then_ms[1] == 3600000);
	assert_null(facts_zone_find(&f, "Europe/Paris"));
	does_not_fit(EVENT_OF(ZONE_SET, zone_set, 60, .name = "Europe/Berlin", .at_ms = at_ms,
			      .at_ms_count = 3, .then_ms = then_ms, .then_ms_count = 3));
	does_not_fit(EVENT_OF(ZONE_SET, zone_set, 60, .name = "Europe/Berlin", .at_ms = at_ms,
			      .at_ms_count = 2, .then_ms = then_ms, .then_ms_count = 1));
	does_not_fit(EVENT_OF(ZONE_SET, zone_set, 60, .name = "berlin"));
	does_not_fit(EVENT_OF(ZONE_SET, zone_set, 60, .name = "Europe/Berlin",
			      .ahead_ms = ZONE_AHEAD_MAX_MS + 1));
	fits(EVENT_OF(ZONE_SET, zone_set, 70, .name = "Europe/Berlin", .ahead_ms = 7200000));
	z = facts_zone_find(&f, "Europe/Berlin");
	assert_true(z->before_ms == 7200000 && z->count == 0 && z->at_ms[0] == 0 &&
		    f.zones.count == 1);
	for (int i = 1; i < ZONES_MAX; i++) {
		char name[16];

		snprintf(name, sizeof(name), "Zone%d", i);
		fits(EVENT_OF(ZONE_SET, zone_set, 80, .name = name));
	}
	does_not_fit(EVENT_OF(ZONE_SET, zone_set, 90, .name = "Another"));
}

static void where_work_runs_is_replaced_whole(void **state)
{
	(void)state;
	fits(EVENT_OF(ENGINE_CLAIMED, engine_claimed, 50, .engine = "kubernetes", .cluster = "u1",
		      .namespace = "jobs", .instance = "0123456789abcdef"));
	assert_string_equal(f.site.engine, "kubernetes");
	assert_string_equal(f.site.instance, "0123456789abcdef");
	does_not_fit(EVENT_OF(ENGINE_CLAIMED, engine_claimed, 60, .engine = "kubernetes",
			      .instance = "0123456789abcdef0"));
	fits(EVENT_OF(ENGINE_CLAIMED, engine_claimed, 70, .engine = "kubernetes", .cluster = "u2"));
	assert_string_equal(f.site.cluster, "u2");
	assert_string_equal(f.site.namespace, "");
}

static void each_change_of_people_raises_the_identity_version(void **state)
{
	static const char hash[] =
		"00000000000000000000000000000000000000000000000000000000000000ff";
	const struct token *token;

	(void)state;
	fits(EVENT_OF(TEAM_SET, team_set, 50, .name = "vision"));
	fits(EVENT_OF(USER_SET, user_set, 50, .name = "ann", .team = "vision", .role = ROLE_LEAD,
		      .uid = -1));
	fits(EVENT_OF(TOKEN_CREATED, token_created, 50, .id = "t1", .user = "ann", .hash = hash));
	assert_true(f.identity_version == 3);
	token = table_get(&f.tokens, facts_token_find(&f, "t1"));
	assert_int_equal(token->hash[31], 0xff);
	does_not_fit(EVENT_OF(TOKEN_CREATED, token_created, 60, .id = "t1", .user = "ann",
			      .hash = hash));
	does_not_fit(EVENT_OF(TOKEN_CREATED, token_created, 60, .id = "t2", .user = "ann",
			      .hash = "00"));
	fits(EVENT_OF(TOKEN_REVOKED, token_revoked, 60, .id = "t1"));
	does_not_fit(EVENT_OF(TOKEN_REVOKED, token_revoked, 60, .id = "t1"));
	fits(EVENT_OF(USER_REMOVED, user_removed, 60, .name = "ann"));
	fits(EVENT_OF(TEAM_REMOVED, team_removed, 60, .name = "vision"));
	assert_true(f.identity_version == 6);
	assert_int_equal(facts_user_find(&f, "ann"), 0);
	assert_int_equal(facts_team_find(&f, "vision"), 0);
	assert_int_not_equal(facts_token_find(&f, "t1"), 0);
}

static void a_policy_of_minus_one_stays(void **state)
{
	struct event event = event_policy_make(50, "test");
	int64_t grace_ms = f.policy.grace_ms;

	(void)state;
	event.seq = ++seq;
	does_not_fit(event);
	event.policy_set.backfill_depth = 7;
	event.policy_set.rejoin_ms = 0;
	fits(event);
	assert_true(f.policy.backfill_depth == 7 && f.policy.rejoin_ms == 0 &&
		    f.policy.grace_ms == grace_ms);
}

static void a_look_for_those_without_reservations_puts_no_review_off(void **state)
{
	(void)state;
	fits(EVENT_OF(RESERVATIONS_REVIEWED, reservations_reviewed, 50, .kept = 0));
	assert_true(f.reviewed_ms == 50 && f.reviewed_seq == seq && f.sought_ms == 50);
	fits(EVENT_OF(RESERVATIONS_REVIEWED, reservations_reviewed, 60, .kept = 1));
	assert_true(f.reviewed_ms == 50 && f.reviewed_seq == seq - 1 && f.sought_ms == 60 &&
		    f.sought_seq == seq);
}

static void time_never_runs_backwards(void **state)
{
	(void)state;
	submit(1000, 1);
	submit(500, 2);
	assert_true(f.now_ms == 1000 && job(2)->submitted_ms == 1000 && f.seq == seq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(early_failures_are_remembered_by_node_and_gpu),
		STORY(a_job_that_fails_again_counts_once_and_is_the_newest),
		STORY(a_pool_learns_how_long_spot_nodes_are_there_and_away),
		STORY(a_pool_forgets_half_of_what_is_long_past),
		STORY(a_node_keeps_its_number_when_it_changes_or_returns),
		STORY(a_mask_is_a_bit_of_its_nodes_until_it_ends),
		STORY(what_people_say_of_a_node_stays_when_it_is_declared_again),
		STORY(announced_maintenance_is_forgotten_when_it_is_over),
		STORY(a_reservation_in_advance_is_made_changed_and_over),
		STORY(queues_form_a_tree_without_circles),
		STORY(clocks_of_a_zone_are_replaced_whole_and_closely_checked),
		STORY(where_work_runs_is_replaced_whole),
		STORY(each_change_of_people_raises_the_identity_version),
		STORY(a_policy_of_minus_one_stays),
		STORY(a_look_for_those_without_reservations_puts_no_review_off),
		STORY(time_never_runs_backwards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
