/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that others made and that ask for Fairlead as their scheduler: what an engine with a cluster and the daemon tell each other of them.
 *
 * Those that belong together are one gang, and become one job. The engine offers a gang when all of its pods are there; the daemon submits
 * it and answers. From then on it is a job like any other, but that its attempts find their pods instead of making them: `pods` in struct
 * engine_start. When pods of a gang that did not start are gone, the engine takes the offer back; what is left is offered anew, as
 * another gang.
 *
 * The key of an offer is made of the uids of its pods: the same pods are never two jobs, over restarts either.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct engine;
struct arena;

/* A task of a gang. Strings stay the caller's. */
struct engine_pod {
	const char *namespace, *name, *uid;
	/* Of an attempt that lives, when it is adopted: */
	const char *node; /* that was chosen for it */
	uint64_t gpu_mask; /* and these GPUs of it */
	bool started, over; /* that it began, that it ended was told before */
};

/* How it is with output that is followed. */
enum engine_output_next {
	OUTPUT_GOES_ON,
	OUTPUT_ENDS, /* nothing further is printed: what is there is told, and then it is over */
	OUTPUT_UNHEARD /* nobody listens any more */
};

/* What a pod has printed, standard output and error as one. Strings stay the caller's. */
struct engine_output {
	const char *namespace, *name;
	bool own; /* Fairlead made it */
	int64_t limit_bytes; /* no more of it */
	int64_t tail_bytes; /* the last so many, and perhaps some in front of them; 0 = from the first */
	/* Once, from any thread. 200: its output; else the number of the answer, 0 = none came, and why not. */
	void (*done)(void *context, int status, const char *text, size_t size);
	/* Before it, where there is more than came: in front of that, or behind it. NULL = nobody asks. */
	void (*cut)(void *context, bool in_front);
	void *context;
	bool comes; /* its rank is not over: where there is no pod or no container yet, there will be */
	bool follow; /* behind a `done` with 200, from any thread: */
	bool (*more)(void *context, const char *text,
		     size_t size); /* false: no room for it now, it comes again */
	enum engine_output_next (*next)(void *context); /* asked when no more came for a while */
	void (*ended)(void *context, const char *problem); /* the last; "" = no problem */
};

enum { ENGINE_GANG_ROLES = 8, ENGINE_KEY_MAX = 65, ENGINE_POD_TEXT_MAX = 400 };

struct engine_gang {
	const char *key; /* 64 hexadecimal digits */
	const char *namespace;
	const char *name; /* what people know it by */
	const char *queue; /* asked for; "" = as the namespace says */
	const char *tier; /* asked for; "" = standard */
	int64_t priority;
	bool preempts;
	const char *labels, *tolerates; /* as in struct engine_node */
	const char *require, *prefer; /* levels of topology; "" = none */
	const char *apart; /* no two of its pods in one place of this level; "" = anyhow */
	const char *mask; /* it runs on these nodes alone (struct engine_mask); "" = on any */
	uint32_t pod_count;
	const struct engine_pod
		*pods; /* by rank: those of the first role, then those of the next */
	uint32_t role_count; /* at least 1 */
	struct engine_gang_role {
		uint32_t size;
		int64_t gpus, cpu_milli, memory_mib; /* of each */
	} roles[ENGINE_GANG_ROLES];
};

/* Nodes that are left for gangs that name it: made by the first word of it. Strings stay the caller's; nodes that the daemon does not know are passed over. */
struct engine_mask {
	const char *name;
	const char *why; /* it is these, in words */
	bool whole; /* `in` is all of it */
	bool ended; /* and the rest says nothing */
	const char *const *in, *const *out; /* names of nodes that came and went */
	uint32_t in_count, out_count;
};

/* The daemon's; from any thread of the engine, without blocking. */
struct engine_gangs {
	void (*offer)(void *context, const struct engine_gang *gang);
	/* Its pods are not all there any more, and it did not start. */
	void (*withdraw)(void *context, uint64_t job, const char *why);
	/* Before the offer that names it, and whenever it changed. */
	void (*mask)(void *context, const struct engine_mask *mask);
	/* The names of all there are, once after a start: others are of earlier days, and end. */
	void (*masks)(void *context, const char *const *names, uint32_t count);
};

/* How it stands with the cluster. */
struct engine_cluster_state {
	bool seen; /* its nodes and pods were listed */
	char problem[256]; /* the API server does not answer, or a right is missing; "" = none */
	uint32_t refused; /* pods that ask for Fairlead and that it does not take */
	uint32_t conflicts; /* pools with two placement authorities */
	char conflict[512]; /* one of them, and who they are; "" = none */
};

/* Pods of a job of Fairlead's own that are alike: all of them, or those of a role. */
struct engine_own_pods {
	const char *overlays
		[2]; /* what they ask for: JSON, merged into them in this order; NULL = none */
	uint32_t tasks; /* at most so many on one node */
	int64_t gpus; /* of each */
};

/* They ask for something that only the engine knows where it is: claims, resources that the core does not count. The engine tells the mask of that
 * name. In one of several kinds of pods are the nodes that have enough for all of them at once. Strings stay the caller's. */
struct engine_own_mask {
	const char *name;
	uint32_t pod_count; /* at least 1 */
	struct engine_own_pods pods[ENGINE_GANG_ROLES];
};
enum { ENGINE_OWN_MASKS = ENGINE_GANG_ROLES + 2 };
struct engine_own {
	uint64_t job;
	bool changes; /* its ranks leave and come while it runs */
	uint32_t mask_count; /* at most ENGINE_OWN_MASKS */
	const struct engine_own_mask *masks;
};

/* What a shepherd has to say. */
enum engine_word_kind { WORD_LEASE, WORD_REPORTS, WORD_ENDED };
struct engine_word {
	enum engine_word_kind kind;
	uint32_t launch; /* the start of the rank that it is of */
	uint32_t reports; /* so many; they go their own way */
	int code; /* nothing is left of the task, which ended with it */
};

/* What an engine with pods can do besides. `find`, `output`, `consider`, `word` and `look` come from any thread, the others from the daemon's engine thread. */
struct engine_pod_found {
	uint64_t job; /* 0 = it has none, and `text` says why */
	uint64_t attempt, rank; /* 0 = the newest attempt */
	char text[ENGINE_POD_TEXT_MAX];
};

struct engine_pod_ops {
	/* The offer became this job (`over`: which has ended); or job is 0 and `problem` says why not: it is offered again later. */
	void (*answer)(struct engine *engine, const char *key, uint64_t job, bool over,
		       const char *problem);
	/* Before `adopt`, of each gang that is not over: its job, its mask ("" = none), and its attempt, 0 = it waits. */
	void (*adopt)(struct engine *engine, uint64_t job, uint64_t attempt, const char *mask,
		      const struct engine_pod *pods, uint32_t count);
	/* When its submission is durable, and before `adopt` of the engine where it is not over; until job_over. May come again. */
	void (*own)(struct engine *engine, const struct engine_own *own);
	void (*job_over)(struct engine *engine, uint64_t job, const char *text);
	/* Why it waits, in words; `room`: because no nodes have room for it. May come again. */
	void (*why)(struct engine *engine, uint64_t job, bool room, const char *text);
	/* Its pods get these places, by rank, once others have left them; count 0 = it has no such promise (any more). May come again. */
	void (*promised)(struct engine *engine, uint64_t job, const char *const *nodes,
			 uint32_t count);
	/* Before the attempt is stopped for other work, or because of its nodes, and not because it was to end: may come again. */
	void (*disrupted)(struct engine *engine, uint64_t attempt, bool preempted,
			  const char *text);
	/* A word from the shepherd of a pod that Fairlead made (docs/decisions/0022), from any thread. 0: it is heard of, and *ret_lease_ms is what
	 * it lives by. ERR_CONFLICT: its rank is over; ERR_UNAVAILABLE: not now. */
	int (*word)(struct engine *engine, uint64_t attempt, uint32_t rank,
		    const struct engine_word *word, int64_t *ret_lease_ms, struct err *err);
	/* Answers at once; false: as many as it does at a time are being asked for. From any thread. */
	bool (*output)(struct engine *engine, const struct engine_output *output);
	/* Where such pods of a job that was not submitted could run: their mask, with its nodes and its words in the arena. False: that is not known (yet). From any thread. */
	bool (*consider)(struct engine *engine, const struct engine_own_mask *own,
			 struct arena *arena, struct engine_mask *ret);
	/* Whose a pod is. False: there is no such pod that asks for Fairlead. One that bears the name of an own job's may be gone. */
	bool (*find)(struct engine *engine, const char *namespace, const char *name,
		     struct engine_pod_found *ret);
	void (*look)(struct engine *engine, struct engine_cluster_state *ret);
};
