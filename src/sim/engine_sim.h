/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The simulated engine: it makes decisions true in virtual time. Nothing runs; each job says how
 * it would behave (struct sim_work), and what would then happen comes back as events for the
 * core, each at its time.
 *
 * It keeps two things apart that faults pull apart: what is so (a rank is ready, runs, is gone; a
 * GPU is held) and what was reported of it. The checkers ask for what is so.
 *
 *	engine_sim_take		a decision of the core that concerns engines
 *	engine_sim_next_ms	when something happens next
 *	engine_sim_pop		the next report that is due
 *
 * Work is counted as time since the commands run. A checkpoint keeps what was done when it began;
 * it is complete `takes_ms` later. An attempt that resumes from it goes on there.
 *
 * All memory is the engine's and grows until deinit. Order of equal times: the order in which
 * they were planned.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "core/model/facts.h"

#define SIM_FOREVER INT64_MAX

struct sim_work {
	int64_t runtime_ms; /* work to be done; SIM_FOREVER */
	/* in each attempt, rank 0 exits after so long, with exit_code (0 counts as 1); SIM_FOREVER = never */
	int64_t fails_after_ms;
	int32_t exit_code;
	int64_t every_ms, takes_ms; /* checkpoints; every 0 = only when asked */
	int64_t restart_ms; /* added to each attempt but the first */
	int64_t ready_ms, start_ms, stop_ms; /* how long preparing, starting and stopping take */
	bool checkpoints;
	/* By role of the job: its ranks exit with 0 after so long; 0 = with the job. NULL = all do. */
	const int64_t *role_runtime_ms;
};

/* How many regular checkpoints are complete `age_ms` after the work began. */
int64_t sim_work_saved(const struct sim_work *work, int64_t age_ms);

enum sim_task_state { SIM_TASK_PREPARING, SIM_TASK_READY, SIM_TASK_RUNNING, SIM_TASK_GONE };

struct sim_task {
	uint32_t node, gpu_mask;
	enum sim_task_state state;
	enum task_cause cause; /* when gone */
	int32_t code;
	uint32_t launch; /* how often the rank was started anew */
	bool never_ran;
	bool part; /* of the GPU: others may hold parts of it too */
	uint8_t role; /* of its job */
};

struct sim_attempt {
	uint32_t id, job, task_count, live; /* live: ranks not gone */
	uint32_t left; /* ranks without which it goes on */
	struct sim_task *tasks; /* NULL: no such attempt */
	int64_t base_ms; /* work done when it started */
	int64_t started_ms; /* all ranks run since; -1 = not yet */
	int64_t saved_ms; /* its newest checkpoint was complete then; -1 = none */
	bool released, warned, stopping, saving, resumed;
};

struct sim_saved {
	uint32_t number;
	int64_t work_ms;
};

struct sim_job {
	struct sim_work work;
	uint32_t attempts;
	struct sim_saved *saved; /* by rising number */
	uint32_t saved_count, saved_room;
};

struct sim_item;
struct sim_random {
	uint64_t state;
};
uint64_t sim_random_next(struct sim_random *random);
/* 0..limit-1; limit 0 gives 0 */
uint32_t sim_random_below(struct sim_random *random, uint32_t limit);

/* Faults of the way back: chances in 1/1000 per report. A lost report comes again when the engine
 * is asked to repeat. */
struct sim_faults {
	uint32_t lose, repeat, delay;
	int64_t delay_max_ms;
	struct sim_random random;
};

struct engine_sim {
	struct arena memory;
	int64_t now_ms;
	uint64_t order; /* of the next planned item */
	struct sim_item *items; /* heap, earliest first */
	size_t item_count, item_room;
	struct sim_attempt *attempts; /* by id */
	uint32_t attempt_room;
	struct sim_job *jobs; /* by id */
	uint32_t job_room;
	uint32_t *holders; /* attempt by (node - 1) * NODE_GPUS_MAX + GPU */
	uint32_t holder_room;
	size_t pressing; /* items that are not regular checkpoints */
	struct sim_faults faults;
};

void engine_sim_init(struct engine_sim *engine, int64_t now_ms);
void engine_sim_deinit(struct engine_sim *engine);
/* How a job behaves; before it is placed. */
void engine_sim_job(struct engine_sim *engine, uint32_t job, const struct sim_work *work);

/* A decision, already applied to the facts. */
void engine_sim_take(struct engine_sim *engine, const struct facts *facts,
		     const struct event *decision);
/* An attempt that ran before the scenario began: placed in the facts, all ranks started at
 * started_ms, and the newest of its sim_work_saved checkpoints (CHECKPOINTS_KEPT at most) saved. */
void engine_sim_adopt(struct engine_sim *engine, const struct facts *facts, uint32_t attempt,
		      int64_t started_ms);

/* When the next thing happens; SIM_FOREVER when nothing will. */
int64_t engine_sim_next_ms(const struct engine_sim *engine);
/* Something but regular checkpoints of running work is still to happen. */
bool engine_sim_is_busy(const struct engine_sim *engine);
/* The next report that is due at now_ms; false when there is none. Its texts live as long as the
 * engine. */
bool engine_sim_pop(struct engine_sim *engine, const struct facts *facts, int64_t now_ms,
		    struct event *ret);

/* What happens to an attempt from outside; ranks that are gone stay gone. */
void engine_sim_finish(struct engine_sim *engine, uint32_t attempt); /* all ranks exit with 0 */
void engine_sim_end_rank(struct engine_sim *engine, uint32_t attempt, uint32_t rank,
			 enum task_cause cause, int32_t code);
void engine_sim_node_down(struct engine_sim *engine, uint32_t node); /* every rank on it is lost */
void engine_sim_repeat(struct engine_sim *engine); /* reports all ranks of live attempts again */

/* Attempt that holds this GPU, 0 = none; ranks of attempts that are not gone. */
uint32_t engine_sim_holder(const struct engine_sim *engine, uint32_t node, uint32_t gpu);
const struct sim_attempt *engine_sim_attempt(const struct engine_sim *engine,
					     uint32_t attempt); /* NULL if unknown */
