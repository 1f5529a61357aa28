/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Verdicts in words. All texts are made in the arena, so that they outlive the facts. */
#include "core/scheduling/pass.h"

struct words {
	const struct facts *facts;
	struct view *view;
	struct arena *arena;
	uint32_t job;
	const struct job *j;
	const struct shape *shape;
	bool never; /* the verdict is about an idle cluster: waiting does not help */
	bool outrun; /* it would have its place, did not others come before it */
	int64_t latest_ms; /* a claim within a guarantee starts by then; 0 = that can't be said */
	bool starts_only; /* only whether it starts is asked: the reason need not be the true one */
	bool undecided; /* ... so many that its turn was not reached */
	const struct standings *before; /* of facts that differ little, NULL = none */
	uint64_t work, work_most; /* tries made so far; that one pass may make */
};

const char *words_job(const struct words *w, uint32_t job); /* job 7 "train" */
/* "1 GPU", "2.5 GPUs". */
const char *words_share(const struct words *w, int64_t share);
const char *words_gpus(const struct words *w, int64_t gpus); /* 1 GPU, 3 GPUs */
const char *words_task(const struct words *w); /* what one task wants: 2 GPUs, 0.5 of a GPU */
/* Of a job that wants parts: capacity, fragmentation, sharing. */
const char *words_part_summary(const struct words *w, const struct verdict *v);
const char *words_reserved(const struct words *w, const struct verdict *v);
const char *words_apart(const struct words *w, const struct verdict *v);
const char *words_pause(const struct words *w, const struct verdict *v);
const char *words_reserved_remedy(const struct words *w, const struct verdict *v);
const char *words_maintenance(const struct words *w, const struct verdict *v);
const char *words_maintenance_remedy(const struct words *w, const struct verdict *v);
const char *words_part_remedy(const struct words *w, const struct verdict *v);
/* words_slices.c: of a job that wants a slice, "a slice 1g.10gb"; or none, where GPUs are there for slices alone. */
const char *words_slice(const struct words *w);
const char *words_slice_trait(const struct words *w, const char *others);
const char *words_slice_summary(const struct words *w, const struct verdict *v);
const char *words_slice_remedy(const struct words *w, const struct verdict *v);
/* Of a job whose tasks must lie apart. */
const char *words_fit_summary(const struct words *w, const struct verdict *v);
const char *words_fit_remedy(const struct words *w, const struct verdict *v);
/* Of a job that has its place: what is near there, "; 2 of 4 tasks ..."; "" = nothing was wished for. */
const char *words_near(const struct words *w);
/* Of a job that waits for a faster place. */
const char *words_speed_summary(const struct words *w, const struct verdict *v);
const char *words_speed_remedy(const struct words *w, const struct verdict *v);
const char *words_percent(struct arena *arena, int64_t permille); /* "20 %", "71.9 %" */
/* Has the node GPUs that the job may use, were they free? */
bool words_node_suits(const struct words *w, uint32_t node);
/* "; job 3 "x" is expected to end in 5m": the next to end, "" when there is none. */
const char *words_next_end(const struct words *w);
const char *words_level(const struct words *w, uint8_t level); /* rack, node, NVLink island */
const char *words_money(const struct words *w, uint32_t queue,
			int64_t micro); /* "116.00 EUR": of the queue's budget */
const char *words_duration(const struct words *w, int64_t ms); /* "1h30m", "0s" */
const char *words_summary(const struct words *w, const struct verdict *v);
/* Why nodes with free GPUs do not suit it, from place_shut_out: "needs driver ...". */
const char *words_shut_out(const struct words *w, const struct verdict *v);
const char *words_remedy(const struct words *w, const struct verdict *v);
/* When something expected to end at end_ms does: "at 2026-11-27T18:20:05Z", "any moment" if that time has passed. Clients count down
 * (moment_count_down): a sentence outlives the moment for which it was made. */
const char *words_until(const struct words *w, int64_t end_ms);
/* Its own words, or a stop that is under way, say when the job ends. */
bool words_end_known(const struct words *w, uint32_t job);
/* The same of a running job: "is expected to end in 2h", or that its end is an assumption of the policy's only. */
const char *words_end(const struct words *w, uint32_t job, int64_t end_ms);

/* About the job on these facts; the view is in line with them. */
struct words words_make(const struct facts *facts, struct view *view, struct job_id id,
			struct arena *arena);
/* The first reason for which it waits; sets `never`. False: nothing keeps it from its place. */
bool words_reason(struct words *w, struct verdict *ret);
/* words_roles.c: what masks speak of is not enough on one node for two roles. */
const char *words_share_summary(const struct words *w, const struct verdict *v);
const char *words_share_remedy(const struct words *w);
/* The same about one role alone (from 0), whose wish is put into `room`. */
struct words words_of_role(const struct words *w, uint32_t role, struct shape *room);
const char *words_role(const struct words *w, uint32_t role); /* role "worker" */
const char *
words_roles(const struct words *w); /* 3 tasks (server: 1 without GPUs, worker: 2 of 1 GPU) */
/* What is left of a wish when only its sizes count; and then also its processors, its memory. */
struct shape shape_sizes(const struct shape *shape);
void shape_cpus_copy(struct shape *to, const struct shape *from);
void shape_memory_copy(struct shape *to, const struct shape *from);
/* A number of the wish that a change is about (tasks, GPUs, processors, memory): of a role, from 1 on, or 0 for all tasks. */
uint32_t *shape_number(struct shape *shape, enum change_kind kind, uint32_t role);
void shape_number_set(struct shape *shape, enum change_kind kind, uint32_t role, uint32_t value);
/* Would so many tasks of the shape fit if all nodes were there and idle? */
bool words_fits_idle(const struct words *w, const struct shape *shape, uint32_t tasks);
