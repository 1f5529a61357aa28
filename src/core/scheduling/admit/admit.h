/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Checks of commands, one function per kind; core_admit (core/core.h) is the entrance. Results as there. */
#include "core/core.h"

struct admission {
	const struct facts *facts;
	struct arena *arena;
	uint32_t *ret_job; /* may be NULL */
	int64_t now_ms; /* of the command: the facts know only when something happened last */
	struct err *err;
};

/* Fills in the work that is lost with it. */
int admit_checkpoint_void(const struct admission *a, struct event_checkpoint_void *e) MUST_CHECK;
int admit_job_submitted(const struct admission *a, struct event_job_submitted *e) MUST_CHECK;
/* The checks of a submission one by one, for changes too. The wish itself: numbers in range, and all that it names exists. */
int admit_wish(const struct admission *a, struct event_job_submitted *e) MUST_CHECK;
/* Of it only that numbers are in range. */
int admit_numbers(const struct admission *a, const struct event_job_submitted *e) MUST_CHECK;
/* Critical work runs inside its queue's guarantee. */
int admit_critical(const struct admission *a, const struct event_job_submitted *e,
		   struct queue_id queue) MUST_CHECK;
/* Makes a deadline that is a duration (below ADMIT_DURATION_MAX_MS) a time. */
int admit_deadline(const struct admission *a, struct event_job_submitted *e) MUST_CHECK;
/* Fills in the capacity of jobs that name none. */
int admit_capacity(const struct admission *a, struct event_job_submitted *e) MUST_CHECK;
/* An interval between checkpoints that is left to Fairlead. */
void admit_interval(const struct admission *a, struct event_job_submitted *e);
/* What jobs like it ran at most, 9 of 10; 0 = not known, or it declares its own. */
int64_t admit_likely_ms(const struct facts *f, const struct event_job_submitted *e);
/* The waiting job moves to another queue: limits there of jobs that wait per user. `what`: `job 12 "train"`. */
int admit_waiting_move(const struct admission *a, const char *what, const struct job *job,
		       struct queue_id queue) MUST_CHECK;

/* admit_change.c: checks what the job asks for then; completes the record, and leaves in it only what changes. */
int admit_job_changed(const struct admission *a, struct event_job_changed *e) MUST_CHECK;
/* admit.c: the job when it is not over, else NULL and the error; `what` is what can't be done: "held". The code of that error. */
const struct job *admit_job_open(const struct admission *a, int64_t id, const char *what);
int admit_job_failure(const struct admission *a);

/* admit_roles.c: checks and completes the roles, and what follows from them. */
int admit_roles(const struct admission *a, struct event_job_submitted *e) MUST_CHECK;
/* The GPU memory that each task needs is more than the slice, or the part of a GPU's memory, that it asks for: the submission is refused. */
bool submission_exceeds_part(const struct event_job_submitted *e);
int64_t submission_gpus(const struct event_job_submitted *e); /* of its least width */

/* admit_cluster.c. Those that take no const fill in numbers and defaults. */
int admit_policy_set(const struct admission *a, const struct event_policy_set *e) MUST_CHECK;
int admit_levels_set(const struct admission *a, const struct event_levels_set *e) MUST_CHECK;
int admit_node_set(const struct admission *a, struct event_node_set *e) MUST_CHECK;
int admit_node_state(const struct admission *a, const struct event_node_state *e) MUST_CHECK;
/* Other GPUs in place of those of the reservation that failed, as the event that says so; false: none failed, or none can be had. It
 * must be of GPUs, not of nodes as a whole. */
bool booking_mend(const struct admission *a, const struct view *view, uint32_t row,
		  struct event_booking_set *ret);
/* It is of GPUs, and some of them failed. */
bool booking_has_lost(const struct facts *f, uint32_t row);
int admit_booking_set(const struct admission *a, struct event_booking_set *e) MUST_CHECK;
int admit_booking_ended(const struct admission *a, const struct event_booking_ended *e) MUST_CHECK;
int admit_node_window(const struct admission *a, const struct event_node_window *e) MUST_CHECK;
int admit_node_found(const struct admission *a, const struct event_node_found *e) MUST_CHECK;
int admit_node_numa(const struct admission *a, const struct event_node_numa *e) MUST_CHECK;
int admit_node_mask(const struct admission *a, const struct event_node_mask *e) MUST_CHECK;
int admit_node_marked(const struct admission *a, const struct event_node_marked *e) MUST_CHECK;
/* Leaves out of the mask what a watch of GPUs may not change. */
int admit_gpu_state(const struct admission *a, struct event_gpu_state *e) MUST_CHECK;

/* admit_slices.c */
int admit_layout_set(const struct admission *a, const struct event_layout_set *e) MUST_CHECK;
/* A slice by name; or by need, SLICE_FIT: what gpu_part and gpu_memory_mib say. Fills in the name and its share. */
int admit_slice(const struct admission *a, struct event_job_submitted *e) MUST_CHECK;
#define SLICE_FIT "fit"

/* admit_queue.c */
int admit_queue_set(const struct admission *a, struct event_queue_set *e) MUST_CHECK;
int admit_price_set(const struct admission *a, const struct event_price_set *e) MUST_CHECK;
int admit_data_set(const struct admission *a, const struct event_data_set *e) MUST_CHECK;
int admit_transfer_set(const struct admission *a, const struct event_transfer_set *e) MUST_CHECK;
int admit_budget_set(const struct admission *a, const struct event_budget_set *e) MUST_CHECK;
int admit_zone_set(const struct admission *a, const struct event_zone_set *e) MUST_CHECK;
int admit_queue_removed(const struct admission *a, const struct event_queue_removed *e) MUST_CHECK;
/* The queue is `top`, or lies below it. */
bool queue_is_below(const struct facts *f, struct queue_id queue, struct queue_id top);
/* The queue's limits but for that of all GPUs, its guarantee by model: as the event says. */
bool queue_limits_are(const struct facts *f, const struct queue *q,
		      const struct event_queue_set *e);
bool queue_pledges_are(const struct facts *f, const struct queue *q,
		       const struct event_queue_set *e);

/* admit_fabric.c */
int admit_fabric_set(const struct admission *a, const struct event_fabric_set *e) MUST_CHECK;
/* Of gangs of training that name none: the policy's, where there is a network and places can be compared. All else of the event is checked. */
void admit_slowdown_default(const struct admission *a, struct event_job_submitted *e);
int admit_slowdown(const struct admission *a, const struct event_job_submitted *e) MUST_CHECK;

/* admit_people.c */
/* Those that take no const fill in the number of the team or user. */
int admit_team_set(const struct admission *a, struct event_team_set *e) MUST_CHECK;
int admit_team_removed(const struct admission *a, const struct event_team_removed *e) MUST_CHECK;
int admit_user_set(const struct admission *a, struct event_user_set *e) MUST_CHECK;
int admit_user_removed(const struct admission *a, struct event_user_removed *e) MUST_CHECK;
int admit_token_created(const struct admission *a, struct event_token_created *e) MUST_CHECK;
int admit_token_revoked(const struct admission *a, const struct event_token_revoked *e) MUST_CHECK;

/* --- parts of checks, admit_parts.c --- */

/* A number between two bounds, else ERR_INVALID: `what` must be between .. and .., not ... */
int admit_range(const struct admission *a, const char *what, int64_t value, int64_t min,
		int64_t max) MUST_CHECK;
/* A name as parse_name has it; `what` goes into the message. */
int admit_name(const struct admission *a, const char *what, const char *text) MUST_CHECK;
/* Text for people: UTF-8, at most EVENT_TEXT_MAX bytes. */
int admit_text(const struct admission *a, const char *what, const char *text) MUST_CHECK;
/* Walks a list "a,b,c"; each part must be a name. Returns how many there are, or a failure. */
int admit_names(const struct admission *a, const char *what, const char *list, int max,
		bool empty_allowed) MUST_CHECK;
/* A list of labels: KEY=VALUE, without `valued` also KEY alone; at most max. */
int admit_labels(const struct admission *a, const char *what, const char *list, int max,
		 bool valued) MUST_CHECK;
/* A version as version_parse has it, or "". */
int admit_version(const struct admission *a, const char *what, const char *text) MUST_CHECK;
/* The queue of that name; 0 and the error, with a hint, when there is none. */
struct queue_id admit_queue_find(const struct admission *a, const char *name);
/* "12" or "0.5": a share in GPUs, in the arena. */
const char *share_text(struct arena *arena, int64_t share);

/* Of one user who is no admin: jobs that wait in all queues, unless a queue states more for itself; and bytes of their bodies. */
enum { WAITING_JOBS_MAX = 10000, WAITING_BYTES_MAX = 64 << 20 };
/* A queue may state so many waiting jobs of each user. */
enum { USER_WAITING_MOST = 1000000 };

#define ADMIT_DURATION_MAX_MS (INT64_C(10) * 365 * 86400 * 1000)
