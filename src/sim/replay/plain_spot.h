/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Spot nodes under a deadline, as published: when a job runs on spot nodes, when on others, and when it waits.
 *
 *	spot-greedy		on spot nodes whenever there are any, else it waits
 *	uniform-progress	Uniform Progress of Wu et al., "Can't Be Late" (NSDI 2024): a straight line from the submission to the deadline. Behind it
 *				and without spot the job runs on demand, until it is two restarts (a minute at least) ahead of it; on spot it stays until it is taken away
 *
 * Both have one net: when the time left is no more than the work, two restarts and what is not saved, the job runs on demand to the end. The
 * rules know how long a job takes. They know of no other jobs: where nodes on demand are all taken, or there are none, the job runs on spot
 * meanwhile, and a deadline may be missed.
 *
 * By hand: 1,000 s of work, a deadline at 2,000 s, a restart of 50 s, saved every 10 s. The line rises by one in two seconds. A job
 * that waits with nothing done is on the line and runs on demand; at 200 s it has done 200 where the line is at 100, two restarts ahead:
 * it goes on spot, or waits for it until the line has come to 200, at 400 s. A greedy one waits until 900 s: 1,100 s are left for 1,000 of
 * work and two restarts.
 */
#include <stdbool.h>
#include <stdint.h>

enum plain_spot_rule { SPOT_RULE_NONE, SPOT_RULE_GREEDY, SPOT_RULE_UNIFORM };
enum plain_at { AT_NOWHERE, AT_SPOT, AT_DEMAND };

struct plain_spot_task {
	int64_t now_ms, submit_ms, deadline_ms; /* the deadline counts from the submission */
	int64_t work_ms, rest_ms; /* all of it, what is left of it now; where it runs at speed 1 */
	int64_t restart_ms, pending_ms; /* pending: of the restart that it is in, still to come */
	int64_t every_ms; /* it saves so often; 0 = only when told to go */
	int64_t unsaved_ms; /* run since it last saved for certain */
	enum plain_at at;
};

/* Whether it stops where it runs, saving all: then plain_spot_choose says where it goes. */
bool plain_spot_leaves(enum plain_spot_rule rule, const struct plain_spot_task *task);
/* Of a job that does not run; `there`: it would fit on spot nodes now. */
enum plain_at plain_spot_choose(enum plain_spot_rule rule, const struct plain_spot_task *task,
				bool there);
/* When either would say something else though nothing comes or goes, after now; INT64_MAX = never. */
int64_t plain_spot_look_ms(enum plain_spot_rule rule, const struct plain_spot_task *task);
