/* SPDX-License-Identifier: Apache-2.0 */
#include "core/model/taken.h"
#include "core/scheduling/testing.h"

#include <string.h>

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static int admit(struct world *w, struct event *e, uint32_t *ret_job, struct err *err)
{
	int rc;

	*err = (struct err){ .code = ERR_NONE };
	rc = core_admit(&w->facts, w->view, e, &w->step, ret_job, err);
	if (rc == 0)
		world_apply(w, e);
	return rc;
}

static void refused(struct world *w, struct event *e, enum err_code code, const char *text)
{
	uint64_t seq = w->facts.seq;
	struct err err;

	assert_int_equal(admit(w, e, NULL, &err), -(int)code);
	assert_string_equal(err.text, text);
	assert_int_equal(w->facts.seq, seq);
}

static struct event job(const struct world *w)
{
	struct event e = world_event(w, EVENT_JOB_SUBMITTED);

	e.job_submitted.name = "train";
	e.job_submitted.user = "ann";
	e.job_submitted.queue = "default";
	e.job_submitted.kind = KIND_BATCH;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.gpus = 1;
	e.job_submitted.grace_ms = -1;
	e.job_submitted.preempts = 1;
	return e;
}

static void a_submission_gets_the_next_job_number(void **state)
{
	struct world w;
	struct event e;
	struct err err;
	uint32_t id = 0;

	(void)state;
	world_init(&w, "n0:8");
	e = job(&w);
	e.job_submitted.array_count = 3;
	assert_int_equal(admit(&w, &e, &id, &err), 0);
	assert_int_equal(id, 1);
	e = job(&w);
	assert_int_equal(admit(&w, &e, &id, &err), 0);
	assert_int_equal(id, 4);
	assert_int_equal(job_get(&w.facts, (struct job_id){ 4 })->state, JOB_QUEUED);
	world_deinit(&w);
}

static void a_repeated_client_key_gives_the_same_job(void **state)
{
	struct world w;
	struct event e;
	struct err err;
	uint32_t id = 0;

	(void)state;
	world_init(&w, "n0:8");
	e = job(&w);
	e.job_submitted.client_key = KEY_A;
	e.job_submitted.body_mac = KEY_B;
	assert_int_equal(admit(&w, &e, &id, &err), 0);
	e = job(&w);
	e.job_submitted.client_key = KEY_A;
	e.job_submitted.body_mac = KEY_B;
	id = 0;
	assert_int_equal(admit(&w, &e, &id, &err), CORE_ALREADY);
	assert_int_equal(id, 1);
	e.job_submitted.body_mac = KEY_A;
	refused(&w, &e, ERR_CONFLICT,
		"this client key was used for job 1 with another content; use a new key for a new job");
	world_at(&w, w.now_ms + INT64_C(8) * 86400 * 1000);
	assert_int_equal(admit(&w, &e, &id, &err), 0);
	assert_int_equal(id, 2);
	world_deinit(&w);
}

static void critical_work_stays_inside_its_guarantee(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:16");
	world_queue(&w, "a", "", 8, -1, 1);
	e = job(&w);
	e.job_submitted.tier = TIER_CRITICAL;
	e.job_submitted.queue = "a";
	e.job_submitted.tasks_min = 12;
	refused(&w, &e, ERR_QUOTA,
		"critical job asks for 12 GPUs, but queue \"a\" guarantees 8: use tier standard, or ask an admin to raise "
		"the guarantee");
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 8;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	e = job(&w); /* the default queue owns the other eight */
	e.job_submitted.tier = TIER_CRITICAL;
	e.job_submitted.tasks_min = 8;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	world_deinit(&w);
}

static void what_a_job_names_must_exist(void **state)
{
	const int64_t nobody = 7;
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "r0: n0:8");
	world_queue(&w, "vision", "", 0, -1, 1);
	e = job(&w);
	e.job_submitted.queue = "vison";
	refused(&w, &e, ERR_NOT_FOUND, "queue \"vison\" does not exist; did you mean \"vision\"?");
	e = job(&w);
	e.job_submitted.require = "leaf";
	refused(&w, &e, ERR_INVALID,
		"topology: require: there is no level \"leaf\" in this cluster; levels are rack, node, nvlink");
	e = job(&w);
	e.job_submitted.depends = &nobody;
	e.job_submitted.depends_count = 1;
	refused(&w, &e, ERR_NOT_FOUND, "job 7, which this one depends on, does not exist");
	e = job(&w);
	e.job_submitted.team = "red";
	refused(&w, &e, ERR_NOT_FOUND, "team \"red\" does not exist");
	world_deinit(&w);
}

static void numbers_have_bounds(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	e = job(&w);
	e.job_submitted.gpus = -1;
	refused(&w, &e, ERR_INVALID,
		"the number of GPUs per task is -1; it must be between 0 and 32");
	e = job(&w);
	e.job_submitted.tasks_min = TASKS_MAX + 1;
	refused(&w, &e, ERR_INVALID,
		"the number of tasks is 16385; it must be between 1 and 16384");
	e = job(&w);
	e.job_submitted.tasks_min = 4;
	e.job_submitted.tasks_max = 2;
	refused(&w, &e, ERR_INVALID, "tasks: the greatest number 2 is less than the least 4");
	e = job(&w);
	e.job_submitted.array_count = ARRAY_MAX + 1;
	refused(&w, &e, ERR_INVALID,
		"the size of an array is 10001; it must be between 0 and 10000");
	world_deinit(&w);
}

static void roles_have_names_that_their_tasks_can_tell_apart(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = job(&w);
	e.job_submitted.roles = "worker,worker";
	refused(&w, &e, ERR_INVALID, "roles: two of them have the name \"worker\"");
	e = job(&w);
	e.job_submitted.roles = "p-server,worker,p_server";
	refused(&w, &e, ERR_INVALID,
		"roles: the hosts of \"p-server\" and of \"p_server\" would both be FAIRLEAD_HOSTS_P_SERVER; "
		"call one of them otherwise");
	e = job(&w);
	e.job_submitted.roles = "p-server,pserver";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	world_deinit(&w);
}

static void masks_of_roles_are_there_and_no_more_than_roles(void **state)
{
	struct event made, e;
	struct world w;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	made = world_event(&w, EVENT_NODE_MASK);
	made.node_mask.name = "m1";
	world_apply(&w, &made);
	e = job(&w);
	e.job_submitted.role_masks = "m1";
	refused(&w, &e, ERR_INVALID, "masks of roles are given, and no roles");
	e.job_submitted.roles = "a,b";
	e.job_submitted.role_masks = "m1,m2";
	refused(&w, &e, ERR_INVALID, "there is no mask \"m2\" of nodes");
	e.job_submitted.role_masks = "m1,m1,";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	e.job_submitted.role_masks = "m1,,m1";
	refused(&w, &e, ERR_INVALID, "3 mask names are given; the limit is 2");
	e.job_submitted.role_masks = ",m1";
	e.job_submitted.together = "m3";
	refused(&w, &e, ERR_INVALID, "there is no mask \"m3\" of nodes");
	e.job_submitted.together = "m1";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	world_deinit(&w);
}

static void what_a_machine_tells_names_its_own_gpus(void **state)
{
	static const int64_t beyond[] = { 255, 256 }, fine[] = { 15, 240 };
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_NODE_FOUND);
	e.node_found.node = 1;
	e.node_found.given = FOUND_ISLANDS | FOUND_NVLINK;
	e.node_found.islands = beyond;
	e.node_found.islands_count = 2;
	refused(&w, &e, ERR_INVALID,
		"node \"n0\": at most 8 NVLink islands are possible, each with GPUs from 0 to 7 that no other one has");
	e.node_found.islands = fine;
	e.node_found.nvlink_mbps = -1;
	refused(&w, &e, ERR_INVALID,
		"the rate of NVLink in MB/s is -1; it must be between 0 and 1000000000");
	e.node_found.nvlink_mbps = 100;
	e.node_found.given = 64;
	refused(&w, &e, ERR_INVALID, "what was found on a node is 64; it must be between 0 and 63");
	e.node_found.given = FOUND_ALL;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	world_deinit(&w);
}

static void numa_nodes_have_gpus_of_their_own(void **state)
{
	static const int64_t twice[] = { 15, 24 }, good[] = { 15, 240 };
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_NODE_NUMA);
	e.node_numa.node = 1;
	e.node_numa.cpus = "";
	e.node_numa.gpus = twice;
	e.node_numa.gpus_count = 2;
	refused(&w, &e, ERR_INVALID,
		"node \"n0\": NUMA node 1 must have GPUs from 0 to 7 that no other one has");
	e.node_numa.gpus = good;
	e.node_numa.nics = good;
	e.node_numa.nics_count = 2;
	refused(&w, &e, ERR_INVALID,
		"the network cards of a NUMA node is 240; it must be between 0 and 64");
	e = job(&w);
	e.job_submitted.align = ALIGN_NUMA;
	e.job_submitted.gpus = 0;
	refused(&w, &e, ERR_INVALID,
		"align: it is for tasks with whole GPUs, all alike, beside which their processors are to be");
	e = job(&w);
	e.job_submitted.capacity = CAPACITY_SPOT; /* and makes no checkpoints */
	refused(&w, &e, ERR_INVALID,
		"capacity: \"spot\" may put it on spot nodes, which are taken away at any time: that is for "
		"training and batch jobs that make checkpoints and are not critical; say what it saves "
		"(checkpoint), or capacity: on-demand");
	e.job_submitted.capacity = 0;
	e.job_submitted.window = "mon 8-9";
	refused(&w, &e, ERR_INVALID,
		"window: calendar: \"mon 8-9\" is not understood; a part is like \"mon-fri 20:00-08:00\", \"sat-sun\", "
		"\"12:00-13:00\", \"Europe/Berlin\", \"utc+1\" or \"overrun\"");
	e.job_submitted.window = "";
	e.job_submitted.apart_wish = 1;
	refused(&w, &e, ERR_INVALID,
		"apart_from: name the labels of the jobs that it keeps away from");
	e.job_submitted.apart_wish = 0;
	e.job_submitted.apart_from = "app=web";
	e.job_submitted.apart_level = "nvlink";
	refused(&w, &e, ERR_INVALID,
		"apart_level: jobs keep apart by node or a wider level of the cluster, not by \"nvlink\"");
	e.job_submitted.apart_from = e.job_submitted.apart_level = "";
	e.job_submitted.window_end = 1;
	refused(&w, &e, ERR_INVALID,
		"window_end: it says what happens when a `window` closes; give one");
	world_deinit(&w);
}

static void throughput_is_said_of_each_model(void **state)
{
	static const int64_t good[] = { 1000, 450 }, bad[] = { 1000, 0 };
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	e = job(&w);
	e.job_submitted.min_throughput = 400;
	refused(&w, &e, ERR_INVALID,
		"min_throughput: say with throughput how fast each accepted model is");
	e.job_submitted.models = "A,B";
	e.job_submitted.throughput = bad;
	e.job_submitted.throughput_count = 2;
	refused(&w, &e, ERR_INVALID, "throughput: 0 thousandths; it must be between 1 and 60000");
	e.job_submitted.throughput = good;
	e.job_submitted.throughput_count = 1;
	refused(&w, &e, ERR_INVALID, "throughput: 1 figures are given for 2 accepted models");
	world_deinit(&w);
}

static void tasks_are_not_asked_both_apart_and_together(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "r0: n0:8 | r1: n1:8");
	e = job(&w);
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 2;
	e.job_submitted.spread = "rack";
	e.job_submitted.require = "node";
	refused(&w, &e, ERR_INVALID,
		"spread: \"rack\" keeps the tasks apart, and topology: require: \"node\" keeps them "
		"together; leave one of them out, or require a wider level");
	e.job_submitted.require = "";
	e.job_submitted.spread = "nvlink";
	refused(&w, &e, ERR_INVALID,
		"spread: tasks lie apart by node or a wider level of the cluster, not by \"nvlink\"");
	e.job_submitted.spread = "moon";
	refused(&w, &e, ERR_INVALID,
		"topology: spread: there is no level \"moon\" in this cluster; levels are rack, node, nvlink");
	world_deinit(&w);
}

static struct event queue(const struct world *w, const char *name, const char *parent,
			  int64_t guarantee, int64_t limit)
{
	struct event e = world_event(w, EVENT_QUEUE_SET);

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.guarantee_share = guarantee * GPU_SHARE;
	e.queue_set.limit_share = limit < 0 ? -1 : limit * GPU_SHARE;
	return e;
}

static void queues_form_a_tree_whose_guarantees_add_up(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = queue(&w, "research", "", 8, -1);
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	e = queue(&w, "vision", "research", 12, -1);
	refused(&w, &e, ERR_INVALID,
		"queue \"vision\": guarantee 12 is more than the 8 GPUs left of its parent \"research\"'s guarantee of 8");
	e = queue(&w, "vision", "research", 6, -1);
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	e = queue(&w, "research", "", 4, -1);
	refused(&w, &e, ERR_CONFLICT,
		"queue \"research\": guarantee 4 is less than the 6 GPUs promised to the queues below it");
	e = queue(&w, "research", "vision", 8, -1);
	refused(&w, &e, ERR_INVALID,
		"queue \"research\" can't lie below \"vision\", which lies below it");
	e = queue(&w, "text", "research", 2, 1);
	refused(&w, &e, ERR_INVALID, "queue \"text\": guarantee 2 is more than its limit 1");
	world_deinit(&w);
}

static void what_is_in_use_is_not_removed(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	world_queue(&w, "a", "", 0, -1, 1);
	world_queue(&w, "b", "a", 0, -1, 1);
	(void)world_submit(&w, (struct wish){ .queue = "b" });
	e = world_event(&w, EVENT_QUEUE_REMOVED);
	e.queue_removed.name = "a";
	refused(&w, &e, ERR_CONFLICT,
		"queue \"a\" has queue \"b\" below it; remove that one first");
	e.queue_removed.name = "b";
	refused(&w, &e, ERR_CONFLICT,
		"queue \"b\" has 1 jobs that are not over (job 1 is the first); cancel them or wait");
	e.queue_removed.name = "default";
	refused(&w, &e, ERR_CONFLICT,
		"queue \"default\" can't be removed: jobs that name no queue go there");
	world_cancel(&w, 1);
	world_decide(&w);
	e.queue_removed.name = "b";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	world_deinit(&w);
}

/* A watch of GPUs says what was so a moment before: a person's set-aside of that moment is neither overwritten nor ended. */
static void a_watch_leaves_alone_what_a_person_set_aside(void **state)
{
	static const char taken[] = GPU_TAKEN "process 7 (a) of ann",
			  silent[] = GPU_SILENT "GPU is lost";
	const struct node_id n0 = { 1 };
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_GPU_STATE);
	e.gpu_state.node = 1;
	e.gpu_state.mask = 2;
	e.gpu_state.set_aside = 1;
	e.gpu_state.reason = "smells";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	/* Looked at before that: of two GPUs the other one is taken, and of one none. */
	e.gpu_state.mask = 6;
	e.gpu_state.reason = taken;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(e.gpu_state.mask, 4);
	assert_null(gpu_taken_by(&w.facts, n0, 1));
	assert_non_null(gpu_taken_by(&w.facts, n0, 2));
	e.gpu_state.mask = 2;
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	e.gpu_state.mask = 6;
	e.gpu_state.reason = silent;
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	/* A person keeps it when its program goes: what the watch gives back is another reason's. */
	e.gpu_state.mask = 12;
	e.gpu_state.reason = "fan";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	e.gpu_state.mask = 14;
	e.gpu_state.set_aside = 0;
	e.gpu_state.reason = taken;
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	assert_int_equal(node_get(&w.facts, n0)->set_aside_mask, 14);
	/* A person's words with which he gives it back name no reason. */
	e.gpu_state.mask = 14;
	e.gpu_state.reason = "mended";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(node_get(&w.facts, n0)->set_aside_mask, 0);
	e.gpu_state.mask = 3;
	e.gpu_state.set_aside = 1;
	e.gpu_state.reason = taken;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	e.gpu_state.set_aside = 0;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(node_get(&w.facts, n0)->set_aside_mask, 0);
	world_deinit(&w);
}

/* What has a GPU may be something else by now, and a person may keep what is taken. */
/* The engine, whose fault is over, lets go of its own cordon alone. */
static void a_node_is_cordoned_anew_for_another_reason(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_NODE_STATE);
	e.node_state.node = 1;
	e.node_state.state = NODE_CORDONED;
	e.node_state.reason = "its disk is full";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	e.node_state.reason = "fan";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_string_equal(facts_text(&w.facts, node_get(&w.facts, (struct node_id){ 1 })->reason),
			    "fan");
	e.node_state.reason = "";
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	world_deinit(&w);
}

static void a_gpu_is_set_aside_anew_for_another_reason(void **state)
{
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_GPU_STATE);
	e.gpu_state.node = 1;
	e.gpu_state.mask = 6;
	e.gpu_state.set_aside = 1;
	e.gpu_state.reason = GPU_TAKEN "process 7 (a) of ann";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	assert_string_equal(gpu_taken_by(&w.facts, (struct node_id){ 1 }, 2),
			    "process 7 (a) of ann");
	assert_null(gpu_taken_by(&w.facts, (struct node_id){ 1 }, 0));
	e.gpu_state.mask = 4;
	e.gpu_state.reason = "";
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	e.gpu_state.reason = "fan";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_null(gpu_taken_by(&w.facts, (struct node_id){ 1 }, 2));
	assert_non_null(gpu_taken_by(&w.facts, (struct node_id){ 1 }, 1));
	e.gpu_state.mask = 6;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	e.gpu_state.set_aside = 0;
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	assert_int_equal(admit(&w, &e, NULL, &err), CORE_ALREADY);
	world_deinit(&w);
}

static void a_final_job_is_not_changed(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	(void)world_submit(&w, (struct wish){ .name = "train" });
	world_cancel(&w, 1);
	world_decide(&w);
	e = world_event(&w, EVENT_JOB_CANCEL_ASKED);
	e.job_cancel_asked.job = 1;
	refused(&w, &e, ERR_CONFLICT,
		"job 1 \"train\" has ended as cancelled and can't be cancelled any more");
	e.job_cancel_asked.job = 2;
	refused(&w, &e, ERR_NOT_FOUND, "job 2 does not exist");
	world_deinit(&w);
}

static void decisions_do_not_come_from_outside(void **state)
{
	struct world w;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_JOB_ENDED);
	refused(&w, &e, ERR_INVALID, "\"job-ended\" is decided by the core and can't be asked for");
	world_deinit(&w);
}

static int user_set(struct world *w, const char *name, enum role role, int64_t uid, struct err *err)
{
	struct event e = world_event(w, EVENT_USER_SET);

	e.user_set.name = name;
	e.user_set.role = role;
	e.user_set.uid = uid;
	return admit(w, &e, NULL, err);
}

static int user_remove(struct world *w, const char *name, struct err *err)
{
	struct event e = world_event(w, EVENT_USER_REMOVED);

	e.user_removed.name = name;
	return admit(w, &e, NULL, err);
}

static void token_add(struct world *w, const char *id, const char *user, int64_t expires_ms)
{
	struct event e = world_event(w, EVENT_TOKEN_CREATED);
	struct err err;

	e.token_created.id = id;
	e.token_created.user = user;
	e.token_created.hash = KEY_A;
	e.token_created.expires_ms = expires_ms;
	assert_int_equal(admit(w, &e, NULL, &err), 0);
}

static int token_revoke(struct world *w, const char *id, struct err *err)
{
	struct event e = world_event(w, EVENT_TOKEN_REVOKED);

	e.token_revoked.id = id;
	return admit(w, &e, NULL, err);
}

static void the_last_admin_stays(void **state)
{
	struct world w;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(user_set(&w, "ann", ROLE_ADMIN, 5, &err), 0);
	assert_int_equal(user_set(&w, "ann", ROLE_VIEWER, 5, &err), -ERR_CONFLICT);
	assert_string_equal(err.text,
			    "user \"ann\": no admin who can come in would be left; "
			    "make another one first, with a uid or a token that does not expire");
	assert_int_equal(user_remove(&w, "ann", &err), -ERR_CONFLICT);
	assert_int_equal(user_set(&w, "ann", ROLE_ADMIN, -1, &err), -ERR_CONFLICT);
	assert_int_equal(user_set(&w, "ann", ROLE_ADMIN, 6, &err), 0);
	assert_int_equal(user_set(&w, "bob", ROLE_ADMIN, 5, &err), 0);
	assert_int_equal(user_remove(&w, "ann", &err), 0);
	assert_int_equal(user_remove(&w, "bob", &err), -ERR_CONFLICT);
	world_deinit(&w);
}

static int submit_as(struct world *w, const char *user, int64_t array, int64_t bytes,
		     struct err *err)
{
	struct event e = job(w);

	e.job_submitted.user = user;
	e.job_submitted.owner = facts_user_find(&w->facts, user);
	e.job_submitted.array_count = array;
	e.job_submitted.body_bytes = bytes;
	return admit(w, &e, NULL, err);
}

static void a_user_has_so_many_jobs_and_bytes_waiting_and_admins_have_no_limit(void **state)
{
	const int64_t mib = 1 << 20;
	struct world w;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(user_set(&w, "root", ROLE_ADMIN, 0, &err), 0);
	assert_int_equal(user_set(&w, "ann", ROLE_RESEARCHER, 5, &err), 0);
	assert_int_equal(user_set(&w, "bob", ROLE_RESEARCHER, 6, &err), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(submit_as(&w, "ann", i ? 1000 : 999, 10, &err), 0);
	assert_int_equal(submit_as(&w, "ann", 2, 10, &err), -ERR_QUOTA);
	assert_string_equal(err.text,
			    "job \"train\": user \"ann\" has 9999 jobs waiting, and 2 more would "
			    "exceed 10000; wait until some have started, cancel some, or ask an "
			    "admin to submit");
	assert_int_equal(submit_as(&w, "ann", 0, 10, &err), 0);
	assert_int_equal(submit_as(&w, "ann", 0, 10, &err), -ERR_QUOTA);
	assert_int_equal(submit_as(&w, "bob", 1000, 63 * mib, &err), 0);
	assert_int_equal(submit_as(&w, "bob", 0, mib + 1, &err), -ERR_QUOTA);
	assert_non_null(strstr(err.text, "1025 KiB more would exceed 64 MiB"));
	assert_int_equal(submit_as(&w, "bob", 0, mib, &err), 0);
	assert_int_equal(submit_as(&w, "root", 1000, 65 * mib, &err), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(submit_as(&w, "root", 1000, mib, &err), 0);
	/* What starts or ends no longer counts. */
	world_decide(&w);
	assert_int_equal(submit_as(&w, "ann", 0, 10, &err), 0);
	facts_verify(&w.facts);
	world_deinit(&w);
}

static void a_uid_belongs_to_one_user_and_a_name_used_again_is_another(void **state)
{
	struct world w;
	struct err err;
	struct event e;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(user_set(&w, "ann", ROLE_RESEARCHER, 5, &err), 0);
	assert_int_equal(user_set(&w, "bob", ROLE_RESEARCHER, 5, &err), -ERR_CONFLICT);
	assert_string_equal(
		err.text,
		"user \"bob\": uid 5 belongs to user \"ann\"; give each person an account "
		"of their own, or remove user \"ann\" first");
	assert_int_equal(user_set(&w, "ann", ROLE_LEAD, 5, &err), 0);
	/* A request that was checked for the earlier ann. */
	e = job(&w);
	e.job_submitted.owner = facts_user_find(&w.facts, "ann");
	assert_int_equal(user_remove(&w, "ann", &err), 0);
	assert_int_equal(user_set(&w, "bob", ROLE_RESEARCHER, 5, &err), 0);
	assert_int_equal(user_set(&w, "ann", ROLE_RESEARCHER, 6, &err), 0);
	assert_int_not_equal(facts_user_find(&w.facts, "ann"), e.job_submitted.owner);
	assert_int_equal(admit(&w, &e, NULL, &err), -ERR_FORBIDDEN);
	assert_non_null(strstr(err.text, "who submitted it, was removed"));
	facts_verify(&w.facts);
	world_deinit(&w);
}

/* Also a name that the facts know from elsewhere has no price yet. */
static void prices_are_set_for_so_many_models_and_no_more(void **state)
{
	char name[32], text[128];
	struct world w;
	struct event e;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "model-%d", i);
		e = world_event(&w, EVENT_PRICE_SET);
		e.price_set.model = name;
		assert_int_equal(admit(&w, &e, NULL, &err), 0);
	}
	e = world_event(&w, EVENT_PRICE_SET);
	e.price_set.model = "default";
	snprintf(text, sizeof(text),
		 "prices were set for 1000 models; there is no room for one of \"default\"");
	refused(&w, &e, ERR_INVALID, text);
	e.price_set.model = "model-7";
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	world_deinit(&w);
}

static void calendars_name_clocks_that_are_known(void **state)
{
	static const int64_t at_ms[] = { 1000, 500 }, then_ms[] = { 0, 3600000 };
	struct world w;
	struct event e, zone;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	e = world_event(&w, EVENT_QUEUE_SET);
	e.queue_set.name = "night";
	e.queue_set.weight = 1;
	e.queue_set.limit_share = -1;
	e.queue_set.calendar = "mon 08:00-09:00, Europe/Berlin";
	refused(&w, &e, ERR_NOT_FOUND,
		"queue \"night\": calendar: the clock of \"Europe/Berlin\" is not known");
	zone = world_event(&w, EVENT_ZONE_SET);
	zone.zone_set.name = "Europe/Berlin";
	zone.zone_set.at_ms = at_ms;
	zone.zone_set.then_ms = then_ms;
	zone.zone_set.at_ms_count = zone.zone_set.then_ms_count = 2;
	assert_int_equal(admit(&w, &zone, NULL, &err), -(int)ERR_INVALID);
	assert_non_null(strstr(err.text, "not in order"));
	zone.zone_set.at_ms_count = zone.zone_set.then_ms_count = 1;
	assert_int_equal(admit(&w, &zone, NULL, &err), 0);
	assert_int_equal(admit(&w, &zone, NULL, &err), CORE_ALREADY);
	zone.zone_set.ahead_ms = 3600000;
	assert_int_equal(admit(&w, &zone, NULL, &err), 0);
	assert_int_equal(admit(&w, &e, NULL, &err), 0);
	zone.zone_set.name = "europe/berlin";
	assert_int_equal(admit(&w, &zone, NULL, &err), -(int)ERR_INVALID);
	assert_non_null(strstr(err.text, "no name of a time zone"));
	world_deinit(&w);
}

static void an_admin_who_can_not_come_in_is_no_other_admin(void **state)
{
	struct world w;
	struct err err;

	(void)state;
	world_init(&w, "n0:8");
	assert_int_equal(user_set(&w, "ann", ROLE_ADMIN, 5, &err), 0);
	assert_int_equal(user_set(&w, "ghost", ROLE_ADMIN, -1, &err), 0);
	assert_int_equal(user_remove(&w, "ann", &err), -ERR_CONFLICT);
	token_add(&w, "soon", "ghost", 1000000000);
	assert_int_equal(user_remove(&w, "ann", &err), -ERR_CONFLICT);
	token_add(&w, "ever", "ghost", 0);
	assert_int_equal(user_remove(&w, "ann", &err), 0);

	/* Now the token is the only way in. */
	assert_int_equal(token_revoke(&w, "soon", &err), 0);
	assert_int_equal(token_revoke(&w, "ever", &err), -ERR_CONFLICT);
	assert_string_equal(err.text,
			    "token \"ever\": no admin who can come in would be left; "
			    "make another one first, with a uid or a token that does not expire");
	assert_int_equal(user_set(&w, "ghost", ROLE_LEAD, -1, &err), -ERR_CONFLICT);
	token_add(&w, "new", "ghost", 0);
	assert_int_equal(token_revoke(&w, "ever", &err), 0);
	assert_int_equal(token_revoke(&w, "new", &err), -ERR_CONFLICT);
	assert_int_equal(user_set(&w, "ghost", ROLE_ADMIN, 7, &err), 0);
	assert_int_equal(token_revoke(&w, "new", &err), 0);
	world_deinit(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_submission_gets_the_next_job_number),
		cmocka_unit_test(a_repeated_client_key_gives_the_same_job),
		cmocka_unit_test(critical_work_stays_inside_its_guarantee),
		cmocka_unit_test(what_a_job_names_must_exist),
		cmocka_unit_test(roles_have_names_that_their_tasks_can_tell_apart),
		cmocka_unit_test(masks_of_roles_are_there_and_no_more_than_roles),
		cmocka_unit_test(what_a_machine_tells_names_its_own_gpus),
		cmocka_unit_test(numa_nodes_have_gpus_of_their_own),
		cmocka_unit_test(throughput_is_said_of_each_model),
		cmocka_unit_test(tasks_are_not_asked_both_apart_and_together),
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(queues_form_a_tree_whose_guarantees_add_up),
		cmocka_unit_test(what_is_in_use_is_not_removed),
		cmocka_unit_test(a_node_is_cordoned_anew_for_another_reason),
		cmocka_unit_test(a_gpu_is_set_aside_anew_for_another_reason),
		cmocka_unit_test(a_watch_leaves_alone_what_a_person_set_aside),
		cmocka_unit_test(a_final_job_is_not_changed),
		cmocka_unit_test(decisions_do_not_come_from_outside),
		cmocka_unit_test(the_last_admin_stays),
		cmocka_unit_test(
			a_user_has_so_many_jobs_and_bytes_waiting_and_admins_have_no_limit),
		cmocka_unit_test(a_uid_belongs_to_one_user_and_a_name_used_again_is_another),
		cmocka_unit_test(prices_are_set_for_so_many_models_and_no_more),
		cmocka_unit_test(calendars_name_clocks_that_are_known),
		cmocka_unit_test(an_admin_who_can_not_come_in_is_no_other_admin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
