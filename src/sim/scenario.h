/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A scenario: a small cluster, some queues, some jobs, what happens, and what must be true. Read
 * from one YAML document (the format is described in README.md), with every default filled in and
 * every range of names expanded, so that whoever runs it needs no policy of its own.
 *
 * A scenario and all its texts live in the arena it was read into. Times are ms since the
 * scenario's start.
 *
 * Keys of the format that this release does not act on are refused by name (later.c), with
 * ERR_UNSUPPORTED; every other complaint is ERR_INVALID. Both carry file, line and column.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/conf.h"
#include "base/err.h"
#include "core/model/roles.h"

struct arena;

enum {
	SCENARIO_NODES_MAX = 10000,
	SCENARIO_QUEUES_MAX = 1000,
	SCENARIO_JOBS_MAX = 100000,
	SCENARIO_EVENTS_MAX = 10000,
	SCENARIO_RANGE_MAX = 10000 /* names one range expands to */
};

#define SCENARIO_FOREVER                                                                           \
	INT64_MAX /* a run time that never ends; the time of an expectation at the end */

struct scenario_node {
	const char *name, *model; /* model "" = none said */
	const char *domains; /* name at each level, comma separated, widest first */
	const int64_t *islands; /* masks of GPU indices, none = all in one */
	uint32_t island_count;
	uint32_t gpus;
	int64_t gpu_memory_mib, cpu_milli, ram_mib;
	const char *driver, *cuda, *labels, *taints, *data; /* as in the events */
	int64_t capability; /* tenths, 0 = by the model */
	uint32_t numa_count; /* NUMA nodes: GPUs, processors, network cards */
	int64_t numa_gpus[NUMA_MAX], numa_cpu_milli[NUMA_MAX], numa_nics[NUMA_MAX];
	uint8_t class;
	uint8_t partitioning; /* enum partitioning */
	uint8_t capacity; /* enum capacity */
	bool slices_only;
	const int64_t *layouts; /* of the first so many GPUs */
	uint32_t layout_count;
	uint32_t make; /* of the fabric's draft, 0 = no fabric is described */
	int line;
};

struct scenario_queue {
	const char *name, *parent; /* parent "" = the root */
	int64_t guarantee_share, limit_share; /* 1/63000 GPU; limit -1 = none */
	int64_t weight;
	int64_t used_gpu_hours;
	const char *calendar; /* "" = always open */
	const char *limit_models; /* comma separated */
	int64_t *limit_model_shares;
	uint32_t limit_model_count;
	int64_t limit_cpus, limit_ram_mib; /* 0 = none */
	const char *guarantee_models; /* likewise */
	int64_t *guarantee_model_shares;
	uint32_t guarantee_model_count;
	int64_t user_limit_share, user_part; /* of each user: 1/63000 GPU, percent; 0 = none */
	int64_t budget_micro; /* left */
	bool budget_said;
	bool reserved;
	int line;
};

struct scenario_policy {
	int64_t min_runtime_ms, grace_ms, rejoin_ms, collect_after_ms, half_life_ms; /* 0 = off */
	int64_t order_deadline, order_efficiency, order_age, order_user, order_budget; /* weights */
	bool budget_warns;
	const char *const *price_models;
	const int64_t *prices_micro;
	uint32_t price_count;
	int64_t default_limit_ms, backfill_depth, blackhole_failures, blackhole_window_ms,
		defragment; /* -1 = the core's own default */
	bool packing, allow_critical_burst;
	int64_t max_slowdown; /* percent; -1 = the core's own default */
	int64_t share_gpus; /* -1 = the core's own default */
	int64_t defragment_moves, defragment_work_ms; /* likewise */
	int64_t patience, take_turns, reserve_unsure_ms, spot_notice_ms;
};

/* A place of a task that runs already when the scenario starts. */
struct scenario_place {
	const char *node;
	int32_t gpu; /* its GPU, -1 = the first free ones */
	int32_t slice; /* which slice of it, from 0 in the order of memory slices; -1 = any that is free */
};

/* Groups of unlike tasks; by role. */
struct scenario_roles {
	uint32_t count;
	const char *names; /* comma separated */
	const char *masks, *together; /* as in job-submitted */
	const char *name[ROLES_MAX];
	int64_t numbers[ROLES_MAX][ROLE_NUMBERS]; /* enum role_number */
	int64_t runtime_ms[ROLES_MAX]; /* its tasks end after so long; 0 = with the job */
	struct shape shape; /* the same, but for names */
};

struct scenario_job {
	const char *name, *queue, *user, *team;
	const char *models; /* accepted ones, comma separated; "" = any */
	const char *require, *prefer, *spread; /* topology levels, "" = none */
	int64_t max_slowdown; /* per mille, 0 = any */
	const char *const *depends; /* names of jobs, ranges expanded */
	uint32_t depend_count;
	uint32_t tasks_min, tasks_max, gpus, array_count,
		array_limit; /* array_count 0 = no array; array_limit 0 = all at once */
	uint8_t kind, tier, resize, capacity; /* enums of core/model/facts.h */
	bool preempts, checkpoints, held;
	bool rejoins; /* a rank that is lost may be started anew while the others run */
	bool external; /* its tasks are somebody else's: each is on its own once they run */
	int32_t priority;
	uint32_t retries;
	int64_t vram_mib, cpu_milli, ram_mib;
	int64_t deadline_ms, efficiency; /* since its submission; percent; 0 = not said */
	int64_t at_ms, runtime_ms, limit_ms, estimate_ms,
		restart_cost_ms; /* limit, estimate 0 = none */
	int64_t checkpoint_every_ms, checkpoint_takes_ms,
		grace_ms; /* every 0 = only when warned; grace -1 = the policy's */
	/* each attempt fails after running so long, with exit_code; SCENARIO_FOREVER = never */
	int64_t fails_after_ms;
	uint32_t exit_code;
	int64_t ready_ms, stop_ms; /* how long the engine takes to prepare and to stop it */
	const char *min_driver, *min_cuda, *regions, *labels, *tolerates; /* as in the event */
	int64_t min_capability; /* tenths */
	int64_t align; /* enum align */
	const char *window; /* "" = any time */
	const char *own_labels, *apart_from, *apart_level;
	const char *mask; /* only on the nodes of this mask; "" = on any */
	bool apart_wish;
	int64_t window_end;
	const char *data; /* data sets it reads, comma separated */
	const int64_t *throughput; /* of the models in `models`, thousandths */
	uint32_t throughput_count;
	int64_t min_throughput;
	bool mixes;
	uint32_t gpu_part; /* of one GPU in 1/63000; 0 = whole ones */
	int64_t gpu_part_mib; /* or of its memory */
	const char
		*slice; /* or a slice: "1g.10gb", "fit" = the smallest that is enough; "" = none */
	const struct scenario_roles *roles; /* NULL = its tasks are alike */
	const struct scenario_place *running; /* by task */
	uint32_t running_count; /* 0 = does not run at the start */
	int64_t age_ms;
	int line;
};

struct scenario_booking {
	const char *name, *queue, *user, *team, *model; /* "" = any */
	int64_t from_ms, to_ms, gpus; /* gpus 0 = the nodes as a whole */
	const char *const *nodes;
	uint32_t node_count;
	bool keep;
};

/* From then on these nodes and no others; ended: there is no such mask any more. */
struct scenario_mask {
	const char *name, *why;
	const char *const *nodes;
	uint32_t node_count;
	bool ended;
};

enum scenario_event_kind {
	HAPPENS_NODE_DOWN,
	HAPPENS_NODE_UP,
	HAPPENS_DRAIN,
	HAPPENS_MAINTENANCE,
	HAPPENS_ADD_NODE,
	HAPPENS_GPU_DOWN,
	HAPPENS_GPU_UP,
	HAPPENS_SET_QUEUE,
	HAPPENS_RESERVE,
	HAPPENS_UNRESERVE,
	HAPPENS_MASK,
	HAPPENS_FINISH,
	HAPPENS_FAIL,
	HAPPENS_CANCEL,
	HAPPENS_HOLD,
	HAPPENS_RELEASE,
	HAPPENS_LOSE_TASK,
	HAPPENS_END_TASK,
	HAPPENS_TORN_CHECKPOINT
};

struct scenario_event {
	int64_t at_ms;
	enum scenario_event_kind kind;
	const char *name; /* of the job, node or queue; a job's may be a range */
	uint32_t number; /* rank, or GPU index */
	int64_t within_ms; /* DRAIN: until when */
	int64_t from_ms, to_ms; /* MAINTENANCE; 0 0 = called off */
	const struct scenario_node *node; /* ADD_NODE: one after the other */
	uint32_t node_count;
	const struct conf *queue; /* SET_QUEUE: the keys that change */
	const struct scenario_booking *booking; /* RESERVE */
	const struct scenario_mask *mask; /* MASK */
	int line;
};

enum expect_key {
	EXPECT_RUNNING,
	EXPECT_WAITING,
	EXPECT_EVICTED,
	EXPECT_MOVED,
	EXPECT_UNTOUCHED,
	EXPECT_FINISHED,
	EXPECT_PLACE,
	EXPECT_STARTED,
	EXPECT_REASON,
	EXPECT_REASON_HAS,
	EXPECT_TOTAL_RUNNING_GPUS,
	EXPECT_STATE,
	EXPECT_ATTEMPTS,
	EXPECT_WORK_LOST,
	EXPECT_NODE_STATE,
	EXPECT_BANDWIDTH,
	EXPECT_SLOWDOWN
};

enum place_form {
	PLACE_NODES,
	PLACE_WITHIN,
	PLACE_COUNT,
	PLACE_AVOID,
	PLACE_SAME_GPU,
	PLACE_OTHER_GPU
};

/* One thing to check. Which fields count depends on the key. */
struct expect_item {
	enum expect_key key;
	const char *label; /* as written: "u[0-7]" */
	const char *role; /* RUNNING, PLACE: only its tasks; NULL = all */
	const char *const *names; /* the jobs (or nodes) it is about, ranges expanded */
	uint32_t name_count;
	bool counted; /* EVICTED, MOVED: `number` of them, whoever they are */
	int64_t number;
	const char *const *texts; /* reasons, text to find, nodes, state, level, other jobs */
	uint32_t text_count;
	enum place_form form;
	int64_t not_before_ms, by_ms;
	int line;
};

struct expectation {
	int64_t at_ms; /* SCENARIO_FOREVER = the end */
	const struct expect_item *items;
	uint32_t item_count;
	int line;
};

struct scenario {
	const char *file, *name, *about;
	int line;
	const char *levels; /* comma separated, widest first */
	const char *const *level;
	uint32_t level_count;
	const struct conf *data, *transfers; /* of the cluster, as written; NULL = none */
	const struct conf *fabric; /* as written; NULL = none */
	struct fabric_draft *draft; /* of it and of what nodes say; NULL = nobody says anything */
	struct scenario_policy policy;
	const struct scenario_node *nodes;
	const struct scenario_queue *queues;
	const struct scenario_job *jobs;
	const struct scenario_event *events; /* as written */
	const struct expectation *expects; /* by rising time */
	uint32_t node_count, queue_count, job_count, event_count, expect_count;
	uint32_t steps_max; /* of its run; 0 = as many as any scenario may take */
};

/* Reads one document. The document must live as long as the scenario. `daemon`: values of the policy that it does not name are the
 * daemon's defaults, as if it said `policy: {defaults: daemon}`. */
int scenario_read(const char *file, const struct conf *document, bool daemon, struct arena *arena,
		  struct scenario *ret, struct err *err) MUST_CHECK;
/* Only `cluster`, `queues` and `policy`, as in a scenario; but what the policy does not say is as in a daemon. */
int scenario_read_site(const char *file, const struct conf *document, struct arena *arena,
		       struct scenario *ret, struct err *err) MUST_CHECK;
/* `queues` and `policy` in place of those of the site; what the policy does not say stays. */
int scenario_read_rules(const char *file, const struct conf *document, struct arena *arena,
			struct scenario *site, struct err *err) MUST_CHECK;
/* The document's name, for messages about one that can't be read; "scenario at line N" when it
 * has none. */
const char *scenario_title(const struct conf *document, struct arena *arena);
/* Changes of a SET_QUEUE event, on top of what the queue is. */
int scenario_queue_change(const char *file, const struct conf *changes, struct arena *arena,
			  struct scenario_queue *queue, struct err *err) MUST_CHECK;
const struct scenario_job *scenario_job_find(const struct scenario *scenario, const char *name);
uint32_t scenario_task_gpus(const struct scenario_job *job, uint32_t task);
/* Index of the role; ROLES_MAX = the job has no such. */
uint32_t scenario_role_find(const struct scenario_job *job, const char *role);
const char *expect_key_name(enum expect_key key);
