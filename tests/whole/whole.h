/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The whole system in one process, in one thread and in virtual time: the daemon's own passes (src/daemon/state.h), its journal and
 * snapshots on a disk in memory, its API without sockets, and a cluster that does what engines do, badly. README.md here says
 * what is real, what stands in for something, and what is checked.
 *
 * A run is a pure function of a seed and of a plan: what people do and what breaks, each item with a time and a seed of its own.
 * So an item can be left out and the others stay as they were, which is how a failing run is made small.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/http/http.h"
#include "daemon/state.h"
#include "sim/checks.h"
#include "sim/engine_sim.h"
#include "store/testing/io_disk.h"

enum { NODES = 7, SPOT_NODE = 1, PLAN_MAX = 2000, PROBLEM_MAX = 512 };
#define FOLDER "/d"
#define HOUR_MS ((int64_t)3600000)
#define NEVER INT64_MAX

/* --- the plan --------------------------------------------------------------------------------------------------- */

enum item_kind {
	/* people */
	ITEM_SUBMIT,
	ITEM_JOB, /* cancel, hold, release, priority */
	ITEM_QUEUE, /* other limits */
	ITEM_TOKEN, /* made, used, ended */
	ITEM_READ,
	ITEM_NODE, /* drained, cordoned, back */
	/* what breaks */
	FAULT_KILL, /* the daemon */
	FAULT_POWER, /* of the machine that the daemon and its disk are in */
	FAULT_CALL, /* a call of the file layer fails */
	FAULT_FULL, /* the disk is full for a while */
	FAULT_NODE, /* a node dies, and comes back */
	FAULT_NOTICE, /* a node goes at a time that is announced, and comes back */
	FAULT_AWAY, /* nobody hears from a node, which goes on */
	FAULT_GPU, /* tasks on it fail until it is set aside */
	FAULT_RANK, /* one is lost or fails */
	FAULT_LINK, /* words of the engine are lost, late, repeated */
	FAULT_TORN, /* a checkpoint loses its end */
	FAULT_CLOCK, /* somebody sets it */
	FAULT_STALL, /* a thread of the daemon stands still */
	ITEM_KINDS
};
#define FIRST_FAULT FAULT_KILL
extern const char *const item_names[ITEM_KINDS];

struct item {
	int64_t at_ms; /* from the beginning */
	enum item_kind kind;
	uint64_t seed;
};

/* --- threads of the daemon ------------------------------------------------------------------------------------------ */

enum actor { ACTOR_CORE, ACTOR_GATE, ACTOR_ENGINE, ACTOR_RESUME, ACTOR_WORK, ACTORS };

struct whole {
	uint64_t seed;
	bool trace;
	bool damage; /* copies of its disk are damaged and read */
	int64_t start_ms, now_ms,
		end_ms; /* boot clock of the machine, which counts on while it is off */
	int64_t wall_off_ms; /* what somebody did to its clock */
	int64_t mono_ns;
	uint32_t boots, boots_up; /* of the machine; when the daemon was started last */
	bool calm; /* the end: everything works */
	struct sim_random random; /* which thread comes next */

	struct item plan[PLAN_MAX];
	bool left_out[PLAN_MAX];
	uint32_t plan_count, plan_next;

	/* the machine and the program on it */
	struct io_disk *disk;
	struct daemon *daemon; /* NULL: it does not run */
	struct core_hand core;
	struct effects_hand effects;
	int64_t up_ms; /* when it is started again */
	int64_t died_ms; /* the first time since it was up; 0 = it did not */
	int64_t stalled_ms[ACTORS]; /* a thread stands still until then */
	int64_t full_until_ms; /* the disk */
	bool dead; /* died in the middle of a pass: nothing of it leaves any more */
	struct io_disk *image; /* what its disk had then */
	uint32_t die_passes; /* it dies after so many passes; 0 = does not */
	uint64_t die_at; /* changes of the disk until it does; 0 = does not */
	bool die_of_power;
	enum io_crash die_how;

	struct cluster *cluster;
	struct people *people;
	struct promises *promises;
	struct listeners *listeners;

	char problem[PROBLEM_MAX]; /* the first; "" = none */
	uint64_t damages; /* of copies of its disk */
	uint64_t steps, events, restarts, rebuilds, evictions, left, requests, refused, told,
		resyncs, chosen, learned; /* nodes for jobs with a deadline; what spot nodes did */
	uint32_t items[ITEM_KINDS];
	uint64_t turns_at_once; /* rounds since time went on */
};

/* The one of this process: clocks and the log have no argument for it. */
extern struct whole *whole;
void stand_ins_begin(uint64_t seed); /* stand_ins.c */

void whole_problem(struct whole *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void whole_trace(struct whole *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint32_t below(struct sim_random *random, uint32_t limit);
bool one_in(struct sim_random *random, uint32_t n);
/* A number that follows from the seed and a text. */
uint64_t whole_hash(const struct whole *w, const char *text, uint64_t number);

/* script.c */
void script_make(struct whole *w, int64_t length_ms);

/* life.c: the daemon begins, lives and dies */
void life_begin(struct whole *w);
void life_end(struct whole *w);
void life_start(struct whole *w); /* when it is time */
void life_kill(struct whole *w, bool power, uint32_t how, uint64_t seed);
void life_stop(struct whole *w, uint64_t seed);
/* It dies when the disk is about to be changed for the k-th time. */
void life_kill_at(struct whole *w, uint64_t k, bool power, enum io_crash how);
bool life_settle(struct whole *w); /* all that is due; true: it is at rest */
int64_t life_next_ms(struct whole *w); /* when something is due by itself */

/* damage.c: copies of its disk with a record that can't be read, and with a bit turned over, are read as the next daemon would */
void damage_try(struct whole *w);

/* transport.c: requests without sockets */
struct http_request *transport_send(struct whole *w, const char *method, const char *path,
				    const char *token, const char *key, const char *body,
				    void (*answered)(struct whole *w, void *context, int status,
						     const char *text),
				    void *context);
void transport_run(struct whole *w); /* hands out the answers */
void transport_drop(struct whole *w); /* the daemon is gone: nobody is answered */
/* Asks for the event stream, from behind that event, or from now on (-1). answered: only when it is refused, or lost. */
void transport_listen(struct whole *w, const char *token, int64_t after,
		      void (*answered)(struct whole *w, void *context, int status,
				       const char *text),
		      void *context);
bool transport_listens(const void *context); /* its stream has begun, and has not ended */
char *transport_read(const void *context); /* all that waits, to be freed; NULL = nothing */
void transport_leave(const void *context); /* its client goes away */
void transport_close(void); /* of all streams: their daemon goes */

/* listeners.c: clients of the event stream */
struct listeners *listeners_create(struct whole *w);
void listeners_destroy(struct listeners *listeners);
void listeners_record(struct whole *w, uint64_t seq, int64_t time_ms, uint32_t kind,
		      const char *text, size_t size); /* it may be told from now on */
void listeners_published(struct whole *w);
void listeners_run(struct whole *w);
int64_t listeners_next_ms(const struct whole *w);
void listeners_end(struct whole *w); /* all has been told */
int listeners_history(void *context, uint32_t job, uint64_t after, uint32_t limit,
		      void *take_context,
		      int (*take)(void *take_context, uint64_t seq, int64_t time_ms, uint32_t kind,
				  const char *text, size_t size),
		      struct err *err);

/* cluster.c: nodes, tasks and the engine between them and the daemon */
extern const struct engine_ops cluster_engine;
struct cluster *cluster_create(struct whole *w);
void cluster_destroy(struct cluster *cluster);
int64_t cluster_next_ms(const struct cluster *cluster);
void cluster_run(struct cluster *cluster); /* all that is due */
void cluster_cut(struct cluster *cluster); /* words on their way are lost: the daemon has died */
void cluster_power(struct cluster *cluster); /* all machines go off */
void cluster_fault(struct cluster *cluster, const struct item *item);
void cluster_calm(struct cluster *cluster);
const struct nodes_found *cluster_nodes(void);
/* Bytes of a checkpoint's files; -1 = there is none. */
int64_t cluster_look(struct cluster *cluster, const char *path);
/* The rank's place is ready, or it ran already. */
bool cluster_rank_ready(const struct cluster *cluster, uint64_t attempt, uint32_t rank);
const char *cluster_job_name(const struct cluster *cluster, uint64_t attempt);

/* spot.c: in half of the seeds some nodes are spot nodes, and some jobs may use them */
bool spot_is(const struct whole *w, uint32_t node);
/* The node that goes: mostly a spot node, where there are some. */
uint32_t spot_goes(const struct whole *w, uint32_t node, uint64_t seed);
void spot_wish(const struct whole *w, struct sim_random *random, bool batch, bool small,
	       struct buf *body); /* of a job that makes checkpoints */
uint64_t spot_learned(const struct facts *facts); /* times of nodes that ended */

/* people.c: who asks for what, and remembers what was answered */
struct people *people_create(struct whole *w);
void people_destroy(struct people *people);
void people_begin(struct whole *w); /* queues, accounts */
void people_do(struct whole *w, const struct item *item);
/* A node goes that long from now, and is away for so long: as maintenance, or as a drain with a deadline. */
void people_notice(struct whole *w, uint32_t node, int64_t in_ms, int64_t for_ms, bool drain);
void people_run(struct whole *w); /* those who got no answer ask again */
int64_t people_next_ms(const struct whole *w);
void people_calm(struct whole *w);
void people_ask_why(struct whole *w, uint32_t job); /* into the trace */
void people_check(struct whole *w, const struct facts *facts); /* what was acknowledged is there */
bool people_end(struct whole *w, const struct facts *facts); /* all jobs are over */
const char *people_secret(const struct whole *w);
const char *people_token(const struct whole *w); /* one that holds; NULL = there is none */

/* promises.c: the checkers */
struct promises *promises_create(struct whole *w);
void promises_destroy(struct promises *promises);
/* A record has left the gate. */
void promises_record(struct whole *w, uint64_t seq, int64_t time_ms, uint32_t kind,
		     const char *text, size_t size);
void promises_started(struct whole *w); /* the daemon has read its state back */
void promises_step(struct whole *w, bool at_rest);
void promises_end(struct whole *w);
const struct facts *promises_facts(const struct whole *w); /* what was shown to the world */
