/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Masks: the nodes that are left for pods of one kind, told to the core by name (docs/decisions/0016). All of it is under the engine's lock.
 *
 *	kind	pods of which the predicates say the same: equal rules, and equal labels as far as somebody's rules look at them
 *	mask	the nodes on which each kind of a gang may run. Gangs of the same kinds share one; without a gang that waits it ends
 *
 * What the core counts itself (GPUs, processors, memory) is left out of a mask, so that it can make room; all of it counts when a gang is bound.
 *
 * Cost: a pod or node that changes is looked at once for each mask whose rules are about the node alone. Rules about other pods cost a whole
 * check (predicates.h), made anew only when a pod came or went that they name, and no more than a tenth of the time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "base/arena.h"
#include "engine/kubernetes/predicates/predicates.h"

struct engine;
struct gang;
struct member;
struct attempt_entry;
struct watch;

enum { MASK_NAME_MAX = 64, MASK_KIND_MAX = 17, MASK_KINDS_MAX = 8, MASK_WHY_MAX = 240 };
/* Of the PREDICATE_MARKS masks, so that the pods of one namespace do not take them all. */
enum { MASKS_OF_NAMESPACE = 128 };
enum mask_full { MASK_ROOM, MASK_ALL_TAKEN, MASK_NAMESPACE_FULL };

/* Pods of own jobs that are alike. */
struct own_pods {
	struct placed_pod *pod; /* stands for them */
	int64_t gpus; /* of each */
	uint32_t tasks; /* that may come to lie on one node */
};

struct mask {
	UT_hash_handle hh;
	char name[MASK_NAME_MAX];
	uint32_t slot; /* of known_node.verdict: 0 = not looked at, else 1 + enum predicate */
	struct gang *gangs; /* that use it, linked; all of one namespace */
	struct own_pods own
		[MASK_KINDS_MAX]; /* of own jobs; of several a node must have room for all at once */
	uint32_t own_count;
	uint32_t own_jobs; /* so many use it */
	bool own_changes; /* of jobs whose ranks leave and come: single ones are placed beside those that run */
	bool told; /* the daemon has heard of it in this process */
	bool adopted; /* the daemon has it from before a restart */
	bool stale; /* it is to be made anew as a whole */
	bool related; /* its rules are about other pods */
	bool counts; /* what pods take of a node matters: ports, resources */
	bool devices; /* its pods have ResourceClaims */
	bool exact; /* and what is free of their devices matters: it must be of this moment */
	bool serial; /* its pods are in each other's way: one gang at a time */
	int64_t empty_ms; /* without gangs: since when */
	int64_t next_ms; /* not made anew as a whole before */
	uint32_t failed[PREDICATE_END + 1]; /* nodes by verdict */
	char problem[160]; /* why it is empty, whatever the node; "" */
};

/* A job of Fairlead's own that names masks, until it is over. */
struct own_job {
	UT_hash_handle hh;
	uint64_t job;
	bool changes; /* its ranks leave and come while it runs */
	uint32_t bounces; /* so often in a row it did not fit where it was placed */
	uint32_t use_count;
	struct own_use {
		char name[MASK_NAME_MAX];
		struct mask *mask; /* NULL = there are too many */
		struct own_pods pods[MASK_KINDS_MAX]; /* until a mask has them */
		uint32_t count; /* 0 = what they ask for can't be read */
	} *uses;
};

/* What is followed besides pods and nodes. */
enum source_kind { SOURCE_NAMESPACES, SOURCE_CLAIMS, SOURCE_VOLUMES, SOURCE_CLASSES, SOURCE_END };
struct source {
	struct engine *engine;
	enum source_kind kind;
	struct watch *watch;
	bool listed;
	char problem[160]; /* why it can't be had; "" = none */
};

struct masks {
	struct mask *by_name, *slots[PREDICATE_MARKS];
	struct own_job *own; /* by job */
	bool own_left_out; /* one of them found all masks taken */
	struct source sources[SOURCE_END];
	struct arena arena; /* of one check */
	bool waiting; /* a timer looks at those that are stale */
	bool names_told;
};

/* --- sources.c */
void sources_start(struct engine *engine);
void sources_deinit(struct engine *engine);
/* Each was listed, or can't be had. */
bool sources_ready(const struct engine *engine);
/* Why pods that need it can't be placed; NULL = it is there. */
const char *source_problem(const struct engine *engine, enum source_kind kind);

/* --- masks.c */
/* A pod or node as it is now, or gone (NULL); takes the block over. */
void masks_pod(struct engine *engine, const char *uid, struct placed_pod *pod);
void masks_node(struct engine *engine, const char *name, struct placed_node *node);
void masks_node_told(struct engine *engine, const char *name); /* the daemon knows it now */
void masks_assume(struct engine *engine, const char *uid, const char *node);
void masks_things(struct engine *engine); /* claims, volumes, namespaces changed */
/* Devices of the node were given away or came free; NULL = of any node, or others are published. */
void masks_devices(struct engine *engine, const char *node);
/* Tells what has changed; all: also what could wait. */
void masks_flush(struct engine *engine, bool all);
void masks_listed(struct engine *engine); /* all pods were told: masks of earlier days may end */
/* The gang's mask: made where there is none. NULL = it needs none; or there are too many. */
struct mask *mask_join(struct engine *engine, struct gang *gang, enum mask_full *ret_full);
void mask_adopt(struct engine *engine, const char *name, struct gang *gang);
struct pod_wish;
void mask_learn(struct mask *mask, const struct pod_wish *wish); /* of a pod of it */
void mask_leave(struct gang *gang);
void mask_stale(struct mask *mask);
void masks_end_unused(struct engine *engine);
void masks_deinit(struct engine *engine);
struct engine_mask;
/* What it would say, of one that is kept nowhere (`own` is set); into the arena. */
void mask_consider(struct engine *engine, struct mask *mask, struct arena *arena,
		   struct engine_mask *ret);
/* That of own jobs; NULL: there are too many. */
struct mask *mask_own(struct engine *engine, const char *name);
void mask_own_leave(struct mask *mask);

/* --- own.c: jobs of Fairlead's own */
struct engine_own;
struct own_job *own_find(struct engine *engine, uint64_t job);
void own_stale(const struct own_job *own); /* its masks */
void own_pods_free(struct own_pods *pods, uint32_t count);
void own_job_came(struct engine *engine, const struct engine_own *job); /* takes the lock */
void own_job_over(struct engine *engine, uint64_t job);
void own_jobs_again(struct engine *engine);
void own_jobs_deinit(struct engine *engine);
void own_release(struct engine *engine, struct attempt_entry *attempt);
/* Its pod is deleted, and then told as not started. */
void own_give_back(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const char *text);

/* --- together.c */
/* So many pods of this kind may come to lie on the node. */
uint32_t own_times(struct engine *engine, const struct mask *mask, uint32_t kind, const char *node);
/* Of one resource: what each pod of a kind takes of it and how many GPUs, and how many there are at most. */
struct own_part {
	int64_t need, gpus, tasks;
};
/* At least as much as any of them that find room on so many GPUs ask for together. Their order is lost. */
int64_t own_most_asked(struct own_part *parts, uint32_t count, int64_t gpus);
/* Has the node room for all pods of the mask that may come to lie there at once, of what the core does not count? */
bool own_fit_together(struct engine *engine, const struct mask *mask, const char *node,
		      const char *const *counted);

/* --- kinds.c */
/* Those members of the gang that are unlike each other to the predicates; more than MASK_KINDS_MAX: MASK_KINDS_MAX + 1. */
uint32_t gang_kinds(struct engine *engine, const struct gang *gang,
		    const struct placed_pod *ret[MASK_KINDS_MAX]);
/* False: it needs no mask. */
bool gang_mask_name(struct engine *engine, const struct gang *gang, char ret[MASK_NAME_MAX],
		    bool *ret_serial);
/* How its pods lie to each other, as the core says it: levels, "" = anyhow. False: it can't, and why. */
bool gang_shape(struct engine *engine, const struct gang *gang, char require[64], char apart[64],
		char problem[400]);

/* --- binding.c */
void gang_check(struct engine *engine, struct attempt_entry *attempt); /* at its start */
void gang_release(struct engine *engine, struct attempt_entry *attempt);
void gangs_decide(struct engine *engine); /* what waits for volumes, or to be given up */
void gangs_decide_later(struct engine *engine, struct attempt_entry *attempt);
void gangs_decide_not(struct engine *engine, struct attempt_entry *attempt); /* it goes */
/* A rank of a gang lacks devices since then, where the core was told that its node has them. False: it holds its place for a while, longer each time. */
bool gang_bounce(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 int64_t since_ms, const char *text);
void gang_unassume(struct engine *engine, const struct attempt_entry *attempt);
