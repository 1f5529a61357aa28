/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much work a job is expected to need still, and when it is due for that: the order among jobs of one queue, tier and
 * priority, and who of them may go for whom.
 *
 *	declared (estimate, else limit)	what is left of it, times its GPUs; when it is over, as much again as it had
 *	nothing declared		as much again as it had: what ran long mostly runs on. At first a GPU-hour
 *
 * Work is known in classes: eighths of an octave where it was declared, octaves where it was not. A job is due when `patience`
 * hours for each GPU-hour of its class have passed since its submission; who is due earlier is next. So nobody is overtaken by
 * work that comes later than that, however short it is.
 *
 *	patience 10. 8 GPUs for 1 h, submitted at 0:00: its class begins at 7 h 34 min of one GPU, so it is due at 75:43.
 *	1 GPU for 1 h, submitted at 60:00: due at 69:27, so it is next. Another one like it at 71:00: due at 80:27, so it is not.
 *
 * Functions of the facts, and of the time for what runs.
 */
#include "core/model/facts.h"

enum {
	WORK_FIRST_MS = 3600000, /* of one GPU: expected of a job of which nothing is known */
	WORK_GAIN_DECLARED = 2, /* who goes for another has more work left by so many classes */
	WORK_GAIN = 8 /* the same of one that declared nothing: an octave */
};

/* A class of GPU time: eighths of octaves of milliseconds of one GPU. The least GPU time in it. */
int64_t work_class_floor_ms(uint32_t class);

/* GPU shares of its least width, with which its time counts; a job without GPUs counts as one. */
int64_t job_work_share(const struct facts *facts, const struct job *job);
/* The GPU time, of one GPU, that the job is expected to need still. ran_ms: how long its live attempt has run, 0 = it waits. */
int64_t job_work_ms(const struct facts *facts, const struct job *job, int64_t ran_ms);
/* Class of the work that the job still needs. */
uint32_t job_work_class(const struct facts *facts, const struct job *job, int64_t ran_ms);
/* For how long a job of so many GPU shares has to run, in all, until as much again as it had is of this class. */
int64_t work_class_run_ms(int64_t share, uint32_t class);
/* From how much of running on its work is of this class or above: as exactly, where the other says when it is so for certain. Below what
 * is expected of everybody it always is: INT64_MIN; beyond what is counted it never is: INT64_MAX. */
int64_t work_class_from_ms(int64_t share, uint32_t class);
/* Class of the work of one that declared nothing and ran so long in all. */
uint32_t work_class_of_run(int64_t share, int64_t run_ms);
/* In how many ms the running job comes to this class, when it runs on: what declares nothing, or overruns its estimate. 0 = it is
 * there, or never comes there. */
int64_t job_work_reaches_ms(const struct facts *facts, const struct job *job, int64_t ran_ms,
			    uint32_t class);
bool job_declares_work(const struct job *job);

/* When a waiting job is due, the class being its own; with patience 0 all are at once. */
int64_t work_due_ms(const struct facts *facts, int64_t submitted_ms, uint32_t class);
