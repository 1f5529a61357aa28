/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the engine share.
 *
 * One lock guards all of it. Commands come from the daemon's engine thread, everything else on the client's thread. Nothing waits with
 * the lock held.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/arena.h"
#include "engine/engine.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/manifest.h"
#include "engine/kubernetes/masks/masks.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/predicates/predicates.h"
#include "engine/kubernetes/watch.h"

enum { INSTANCE_MAX = 17, GRACE_USUAL_S = 30 };

struct node_entry {
	UT_hash_handle hh;
	char name[KUBE_NAME_MAX];
	struct kube_node
		*node; /* as it was told last; NULL = there is no such node, but pods name it */
	struct kube_use others; /* of pods on it that are not Fairlead's work */
	struct holder *holders; /* all pods on it that hold GPUs (authority.h) */
	struct holder *claimants; /* and those of others that have some by claims */
	bool claims_work; /* work of Fairlead's has some by claims */
	bool seen; /* in the list that is being taken */
	bool devices_seen; /* it was looked for what is published of it */
	bool marked; /* of the gang that is looked at (gangs/least.c) */
	bool changed; /* not told yet: in the list of those */
	struct node_entry *next_changed;
	bool told; /* the daemon knows of it */
	bool told_now; /* and did not before */
	bool unfit, unclear_said; /* it was said why it can't be used */
	uint32_t unclear; /* pods on it of which is not known what they take */
	int64_t removal_s; /* kube_node, as it was last */
};

/* Small: a cluster has many. What is needed of ours is kept with their attempts. */
struct pod_entry {
	UT_hash_handle hh;
	char uid[KUBE_WORD_MAX];
	struct node_entry *node; /* it counts there; NULL = it does not */
	struct kube_use use;
	struct holder *holder; /* of GPUs (authority.h); NULL = it has none */
	char *scheduler; /* that it asks for; NULL = Fairlead */
	bool ours; /* of a live attempt */
	bool seen;
	bool unclear;
	uint64_t attempt;
	uint32_t rank;
};

struct rank_state {
	uint32_t
		launch; /* how often it was started anew: what follows is of that start (resize.c) */
	bool let_go; /* it has left: nothing of it is looked at any more */
	struct engine_fact *kept; /* its end, not told yet (resize.c); NULL = none */
	char uid[KUBE_WORD_MAX]; /* "" = no pod of it was seen yet */
	char namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX]; /* of its pod */
	char node[KUBE_NAME_MAX]; /* it is meant for, or runs on */
	bool asked; /* its pod is being made; of a gang: was adopted, and not seen since */
	bool bound, binding, started, over; /* over: its end was told */
	bool ready; /* told */
	bool volumes_asked, volumes_chosen; /* its claims were told its node; and bear it */
	bool deleting; /* we asked for its deletion */
	bool disrupting; /* its condition says so first */
	bool leaves; /* it was told to: with its node, or because others need its place; the others go on */
	bool evicted; /* its node was taken away, and it leaves as its budgets allow */
	bool nowhere; /* its node is no longer there: nobody but us takes its pod away */
	bool unclear; /* its pod can't be read, or may be one that can't */
	bool main_ended; /* and containers beside it are being stopped. With: */
	int main_code;
	bool main_oom;
	uint32_t refused; /* deletions, bindings in a row */
	/* Of its shepherd (shepherds.c): */
	int64_t lease_ms; /* its task runs by leases of so long; 0 = it has none */
	int64_t heard_ms; /* boot clock: no lease was given later */
	bool lease_watched; /* it is looked at when its lease ends */
	bool end_told; /* its shepherd says that nothing is left of it. With: */
	int end_code;
	int64_t reports_ms; /* since when they are counted */
	uint32_t reports;
	/* devices/: */
	char *claims; /* names of its pod's claims, one a line; NULL = not known, or none */
	bool own_claim; /* it is Fairlead's own, named as the pod */
	bool claims_busy; /* they are being seen to, since: */
	int64_t claims_since_ms;
	int64_t conditions_ms; /* devices of them are being made ready since; 0 = they are not */
	uint64_t gpu_mask; /* the core chose these of its node */
	/* Why it was given up by us, where it was: told when nothing of it is left. */
	bool failed, failed_never_ran;
	enum engine_cause failed_cause;
	int failed_code;
	char failed_text[KUBE_TEXT_MAX + KUBE_WORD_MAX];
};

struct attempt_entry {
	UT_hash_handle hh;
	uint64_t id, job;
	uint32_t tasks;
	bool gang; /* of pods that others made: gangs/ */
	bool asks_masks; /* of an own job that names a mask: masks/own.c */
	bool described; /* start was called in this process: what follows is known */
	bool changes; /* its ranks leave and come */
	bool released, stopping,
		ended; /* ended: forgotten by the daemon, kept until its pods are let go */
	int64_t grace_s, warned_s;
	int64_t decide_ms; /* of a gang that does not fit where it was placed: when that is final; 0 = it fits */
	int64_t volumes_ms; /* since when it waits for volumes; 0 = it doesn't */
	bool placed; /* the API server has told that all its pods are bound, or over */
	bool leans; /* it waits until pods of older attempts are bound */
	bool undecided; /* one of these three: in the list of those */
	struct attempt_entry *next_undecided, *before_undecided;
	char *disrupted; /* why its pods are stopped, where that is a disruption; NULL = it is none */
	bool preempted; /* that is: other work takes its place */
	bool evicted; /* its pods leave a node that was taken away, as their budgets allow */
	bool shielded, shield_told; /* gangs/budgets.c; told: and the daemon knows */
	uint32_t least; /* gangs/least.c; 0 = it goes whole */
	bool least_told;
	bool unreachable, reach_told;
	char *parts[2]; /* Secret, Service that are still to be made; NULL = none */
	bool had[2]; /* it has one of them */
	uint32_t parts_pending; /* asked for and not there yet */
	struct rank_state *ranks;
};

/* Pods that others made (gangs/gangs.h). */
struct gangs {
	struct member *members; /* by uid */
	struct group *groups; /* by key */
	struct gang *gangs, *jobs; /* by key of the offer; by job */
	struct group *dirty; /* those that are to be looked at, linked */
	struct attempt_entry *undecided, *last_undecided; /* likewise, whenever something changes */
	bool ticking, waits; /* waits: groups are looked at when a little time has passed */
	bool nodes_go; /* some that were not taken away before, or otherwise: least.c has not looked */
	int64_t looked_ms; /* boot clock */
	int64_t again_ms; /* when what could not be told is told again; 0 = nothing is */
	int64_t nominate_ms; /* likewise, places that were refused */
	uint32_t writes; /* of conditions and Events that were told before, in this period */
	uint32_t words; /* conditions and Events under way */
	bool untold; /* some wait for those */
	int64_t period_ms;
	struct watch *budget_watch;
	struct budget *budgets; /* by namespace and name */
	bool budgets_wait,
		budgets_absent; /* wait: shields are looked at when a little time has passed */
};

struct engine {
	struct engine_options options;
	struct arena arena;
	struct kube_access access;
	struct manifest_site site;
	char instance[INSTANCE_MAX];
	struct kube_client *client;
	struct watch *pod_watch, *node_watch;
	pthread_mutex_t lock;
	pthread_cond_t listed;
	bool pods_listed, nodes_listed; /* once */
	uint32_t levels; /* of the topology that nodes were told with; only grows */
	/* Of one not even the name could be read: in the newest list or since then; in the list that is coming. */
	bool pods_unclear, nodes_unclear, pods_unclear_next, nodes_unclear_next;
	bool missing_told;
	struct errand *parked, *parked_last; /* requests that lack a right (carry_out.c) */
	uint32_t parked_count;
	bool probing;
	struct node_entry *nodes; /* by name */
	struct node_entry *changed; /* those of them that are to be told, linked */
	struct pod_entry *pods; /* by uid */
	struct attempt_entry *attempts; /* by id */
	struct told_conflict *told_conflicts; /* authority_tell.c */
	int64_t authority_look_ms; /* boot clock: when they are looked at next; 0 = nothing changed */
	struct gangs gangs;
	struct devices *devices; /* devices/devices.h; NULL = not followed yet */
	struct predicates known; /* all that decides where a pod may run */
	struct masks masks;
	uint32_t outputs; /* of pods, that are being asked for */
	uint32_t follow_count;
	struct wanted *follows; /* output.c: those that are followed */
};

/* A request about a rank: who asked, so that a late answer finds what it is about or nothing. */
struct about {
	struct engine *engine;
	uint64_t attempt;
	uint32_t rank, launch;
	char uid[KUBE_WORD_MAX];
};
/* launch: the newest. */
struct about *about_create(struct engine *engine, uint64_t attempt, uint32_t rank, const char *uid);
/* The rank it is about, while that is there and its pod the same; under the lock. */
struct rank_state *about_find(const struct about *about, struct attempt_entry **ret);

/* cluster.c: what is there */
struct attempt_entry *live_find(struct engine *engine, uint64_t id);
struct attempt_entry *live_add(struct engine *engine, uint64_t id, uint32_t tasks);
void live_widen(struct attempt_entry *attempt, uint32_t tasks);
void live_remove(struct engine *engine, struct attempt_entry *attempt);
void follow_start(struct engine *engine);
void cluster_deinit(struct engine *engine);
void cluster_list_came(struct engine *engine); /* one of the lists of devices/; under the lock */
/* What is known of the node so far, made where it is new; NULL for "". */
struct node_entry *node_entry_find(struct engine *engine, const char *name);
/* It is told at the next pause. */
void node_changed(struct engine *engine, struct node_entry *entry);
void cluster_paused(void *engine); /* what came together was told */

/* ranks.c: facts of a rank */
void rank_report(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 enum engine_fact_kind kind);
/* Nothing says whether it runs. */
bool rank_is_silent(struct engine *engine, const struct rank_state *state);
/* It is over, once. */
void rank_over(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
	       enum engine_cause cause, int code, bool never_ran, const char *text);
void rank_saw_pod(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		  const struct kube_pod *pod);
void rank_lost_pod(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const char *text);
/* Its pod is there, and no more is known. */
void rank_saw_unclear(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		      const struct kube_pod *pod);
/* Whether the cluster has such a node, as far as is known. */
bool node_is_there(struct engine *engine, const char *name);
/* Likewise, and word comes from it. */
bool node_answers(struct engine *engine, const char *name);
/* It came, went, or its readiness changed. */
void ranks_saw_node(struct engine *engine, const char *name);
/* Tells whether word comes from all its ranks, where that is not known yet. */
void attempt_look(struct engine *engine, struct attempt_entry *attempt);

/* resize.c: ranks of a running attempt that leave and come */
int attempt_resize(struct engine *engine, const struct engine_start *start, int64_t grace_ms,
		   struct err *err);
/* Whether the end of a rank is told later. */
bool rank_end_keep(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		   const struct engine_fact *fact);
void rank_ends_tell(struct engine *engine, struct attempt_entry *attempt);

/* parting.c: the last pods of an attempt whose ranks leave and come */
void attempt_part(struct engine *engine, const struct attempt_entry *attempt);
void pod_part(struct engine *engine, const struct kube_pod *pod);

/* shepherds.c: leases of tasks */
/* What its pod says of it. */
void lease_of_pod(struct rank_state *state, const struct kube_pod *pod);
/* No word comes from where it runs: once its lease has ended it is over. */
void lease_watch(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* The shepherd's own words on an end that is not the task's. False: it left none. */
bool shepherd_tells_end(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
			const struct kube_pod *pod);
int kubernetes_word(struct engine *engine, uint64_t id, uint32_t rank,
		    const struct engine_word *word, int64_t *ret_lease_ms, struct err *err);

/* output.c: what a pod has printed */
void outputs_end(struct engine *engine); /* when the client has ended */
bool kubernetes_pod_output(struct engine *engine, const struct engine_output *wish);
/* masks/own.c */
bool kubernetes_consider(struct engine *engine, const struct engine_own_mask *own,
			 struct arena *arena, struct engine_mask *ret);

/* carry_out.c: requests */
enum { POD_OWN_GRACE = -1 }; /* of a deletion: as the pod itself says */
/* How long after so many refusals in a row it is asked again. */
int64_t again_ms(uint32_t refused);
void errands_go_on(struct engine *engine); /* a right came; under the lock */
void errands_deinit(struct engine *engine);
/* The message of a refusal, else the answer's number. */
void kube_problem(const struct kube_answer *answer, char out[256]);
void pod_make(struct engine *engine, const struct engine_start *start, uint32_t rank,
	      struct arena *arena);
/* Its pod by name, and what it needs there: kubernetes.c. */
void rank_describe(struct engine *engine, const struct engine_start *start,
		   struct attempt_entry *attempt, uint32_t rank);
void pod_bind(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* Where requests about the pod of a rank go: behind it stands "" or "/binding". */
void rank_path(const struct rank_state *state, const char *behind, struct buf *out);
void pod_delete(struct engine *engine, const char *namespace, const char *name, const char *uid,
		int64_t grace_s);
/* What is still there of the attempt beside its pods. */
void parts_remove(struct engine *engine, const struct attempt_entry *attempt);
void pod_let_go(struct engine *engine, const char *namespace, const char *name, const char *uid);
void parts_make(struct engine *engine, struct attempt_entry *attempt);
void rank_stop(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
void rank_stop_due(void *about); /* likewise, of a timer: struct about */
/* Asks what there is of its pod: nobody told. */
void rank_look(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* Asks for the eviction of its pod, until the API server grants it: its budgets may be in the way. */
void rank_evict(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* Asks for the deletion of its pod, until it is granted. */
void rank_delete(struct engine *engine, struct attempt_entry *attempt, uint32_t rank,
		 int64_t grace_s);
