/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the cluster is made of: cluster.c's own, which says what happens to it. */
#include "node/discover.h"
#include "whole.h"

enum { CLUSTER_COMPARE_MS = 120000 };

enum thing_kind {
	THING_READY,
	THING_STARTED,
	THING_FINISH,
	THING_FAIL,
	THING_CRASH,
	THING_SAVE, /* a checkpoint begins */
	THING_SAVED,
	THING_EXIT, /* of a rank that was told to stop */
	THING_TELL, /* whoever watches it notices */
	THING_WORD, /* arrives at the daemon */
	THING_NODE_GOES, /* as it was announced */
	THING_NODE_BACK
};

struct thing {
	int64_t at_ms;
	uint64_t order;
	enum thing_kind kind;
	uint64_t run;
	uint32_t rank, launch;
	uint32_t link; /* WORD: the connection it is under way on */
	struct engine_fact *word;
};

enum rank_state { RANK_PREPARING, RANK_READY, RANK_RUNNING, RANK_GONE };

struct rank {
	enum rank_state state;
	uint32_t node, mask; /* mask 0 where it holds a part of a GPU */
	uint32_t launch;
	uint64_t reports;
	enum engine_cause cause;
	int code;
	bool never_ran, ran;
	bool unborn; /* no start of it was ever heard of */
	bool leaving, left; /* told to leave; the others go on without it */
	bool serves; /* of a role that runs until it is stopped */
	const struct save *saved; /* the newest that it told of */
	int64_t at_wall_ms; /* of its state */
	int64_t told_from_ms; /* nobody knows before that it is gone */
	int64_t exit_ms; /* was told to stop, and will have by then */
};

/* How a job behaves. */
struct work {
	int64_t runtime_ms, fails_after_ms, ready_ms, start_ms, stop_ms, takes_ms;
	bool straggles;
	bool runs_dry; /* elastic: there is nothing more to do when a rank is told to leave, which sees to its own end */
};

/* A checkpoint's files. */
struct save {
	struct save *next;
	char path[300], job[64];
	int64_t work_ms, bytes, done_ms;
	bool complete, looked;
	int torn; /* 1: it is not there any more; 2: it is shorter than it was */
};

/* An attempt. */
struct run {
	uint64_t id, job;
	char name[64], folder[256];
	uint32_t rank_count, live;
	struct rank *ranks;
	struct work work;
	int64_t every_ms, base_ms, running_ms;
	struct save *saving;
	bool checkpoints, released, begun, warned, stopping, forgotten;
	bool worked; /* all that it had to do is done */
};

struct host {
	uint64_t holder[NODE_GPUS_MAX]; /* of whole GPUs */
	uint32_t broken; /* GPUs on which tasks crash */
	bool dead;
	bool removed; /* and there is no such node any more: a spot node */
	int64_t away_ms; /* not heard from until then */
};

struct cluster {
	struct whole *w;
	struct sim_random random;
	struct host nodes[NODES];
	struct run **runs; /* by id */
	size_t run_room;
	struct save *saves; /* newest first */
	uint64_t saves_made, starts, resizes;
	struct thing *things; /* heap */
	size_t thing_count, thing_room;
	uint64_t order;
	uint32_t link;
	int64_t bad_link_ms, compare_ms;
	bool engine_open, adopting;
	void (*report)(void *context, const struct engine_fact *fact);
	void (*node)(void *context, const struct engine_node *node);
	void *context;
};

struct run *cluster_run_find(const struct cluster *cluster, uint64_t id);
/* All of its ranks that do the work have ended well, or the others went on without them. */
bool cluster_run_finished(const struct run *run);
/* What happens to a rank's present start, if that is still the present one then. */
void cluster_plan(struct cluster *cluster, int64_t at_ms, enum thing_kind kind,
		  const struct run *run, uint32_t rank);
bool cluster_all_ready(const struct run *run);
/* A rank has started, or the job goes on without one: when all that are left run, work is done from here on. */
void cluster_work_begins(struct cluster *c, struct run *run);
void cluster_rank_ends(struct cluster *cluster, struct run *run, uint32_t rank,
		       enum engine_cause cause, int code, int64_t after_ms);
void cluster_save_begin(struct cluster *cluster, struct run *run);
void cluster_run_keep(struct cluster *cluster, struct run *run);
struct work cluster_work_of(const struct whole *w, const char *name);

/* words.c */
void thing_add(struct cluster *cluster, struct thing thing);
struct thing thing_take(struct cluster *cluster); /* the earliest */
struct host *cluster_host(struct cluster *cluster, const struct rank *rank);
void cluster_word_send(struct cluster *cluster, const struct engine_fact *fact, int64_t at_ms);
/* As the faults of the way have it: a rank's state, the run's newest checkpoint, all of a run. */
void cluster_tell(struct cluster *cluster, const struct run *run, uint32_t rank);
void cluster_tell_checkpoint(struct cluster *cluster, const struct run *run, uint32_t rank);
void cluster_tell_all(struct cluster *cluster, const struct run *run);

/* spot.c: whether its spot nodes are there */
void cluster_tell_nodes(struct cluster *cluster);
