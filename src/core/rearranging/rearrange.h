/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Running jobs that move so that free GPUs come to lie together. Looked for at the end of a pass, when it decided nothing else that
 * changes who holds what; README.md has worked examples.
 *
 *	plan	the jobs that move, where each goes, and for which waiting job
 *	cost	the work that is lost: GPU time since the last checkpoint, and the restart, of each job that moves
 *	gain	GPUs of the waiting job
 *
 * A plan is carried out as one step: the waiting job's place is promised to it, to each that moves its new one, and those that move
 * are told to save and leave, like victims. Their new places are free when the plan is made, so each goes on at once.
 */
#include "core/scheduling/pass.h"

enum {
	MOVED_REST_MS = 3600000, /* a job that was moved stays where it is for so long */
	MOVES_HOUR_MS = 3600000 /* in which policy.defragment_moves jobs may move */
};

/* Looks for moves when the policy says so, or a person asked; puts the first plan that is worth it into the decisions. */
void rearrange_run(struct pass *pass);
