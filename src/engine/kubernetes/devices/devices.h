/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * DRA in the engine: what is known of devices and claims, and how a rank gets the claims that its pod names. docs/decisions/0019 says why.
 *
 * All of it is under the engine's lock. A cluster without resource.k8s.io/v1, or that does not let this account read it, has no devices.
 *
 *	slices, classes, claims ── watched ──▶ inventory, claims ──▶ GPUs of nodes, told to the core
 *	pod with claims ──▶ kind: how many GPUs, on which nodes ──▶ job ──▶ placed ──▶ claims_want: allocated, reserved ──▶ READY, bound
 */
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/devices/allocate.h"

enum {
	NODE_GPUS_MOST = 32, /* as many as the core knows in one node */
	DEVICE_KEY_MAX = 400, /* "driver/pool/device" */
	CLAIM_KEY_MAX = KUBE_WORD_MAX + KUBE_NAME_MAX, /* "namespace/name" */
};

struct claim_entry {
	UT_hash_handle hh;
	char key[CLAIM_KEY_MAX];
	struct dra_claim *claim;
	bool seen; /* in the list that is being taken */
	/* Chosen for it, and not yet said by the API server: held all the same. */
	char *planned; /* JSON of the allocation; NULL = nothing */
	char **planned_keys;
	uint32_t planned_count;
	bool double_told;
	bool no_finalizer; /* the API server refuses it */
	char user
		[KUBE_WORD_MAX]; /* uid of the one pod that waits for it, of a claim that no pod owns */
};

/* A claim that has a device. One device has several only when something went wrong. */
struct held {
	UT_hash_handle hh;
	char *key; /* of the device */
	struct claim_entry *by;
	struct held *also; /* of the same device */
};

/* The GPUs of a node by the core's indices. Those that went keep theirs, and are taken. */
struct gpu_table {
	UT_hash_handle hh;
	char node[KUBE_NAME_MAX];
	uint32_t count;
	char *keys[NODE_GPUS_MOST];
	bool there[NODE_GPUS_MOST];
	bool seen;
	char driver[KUBE_NAME_MAX];
	char product[KUBE_TEXT_MAX];
	char driver_version[KUBE_WORD_MAX], cuda[KUBE_WORD_MAX], compute[KUBE_WORD_MAX];
	int64_t memory_mib;
	uint64_t promised; /* placed there, and no claim says so yet: devices_promises */
};

/* Pods whose claims ask for the same. */
struct device_kind {
	UT_hash_handle hh;
	uint64_t likeness; /* of all claims of a pod */
	uint64_t revision; /* kinds_revision that it was found out with */
	uint32_t gpus; /* of a pod; 0 with `problem` or none */
	bool exact; /* which GPUs matters, or they are not only GPUs: counts don't say whether it fits */
	bool some; /* not all nodes with enough GPUs can have it */
	bool fits; /* some node can have it when nothing is taken */
	uint32_t
		most_without; /* GPUs of the largest node that can't, of those whose driver publishes them */
	char problem[ENGINE_POD_TEXT_MAX];
};

enum { DEVICE_LISTS = 3 };
struct devices {
	struct dra_inventory inventory;
	struct claim_entry *claims;
	struct held *held;
	struct gpu_table *tables;
	struct device_kind *kinds;
	struct watch *watches[DEVICE_LISTS];
	bool listed[DEVICE_LISTS];
	bool absent_told;
	uint64_t revision; /* counts changes of slices and classes */
	uint64_t kinds_revision; /* counts those, and nodes that came */
	uint64_t tables_revision;
	bool node_came; /* since the tables were made: some are not looked at */
	bool claims_changed; /* since gangs were looked at */
	bool ticking;
	struct arena arena; /* of one question */
	struct engine_taken taken[NODE_GPUS_MOST]; /* of the node that was looked at last */
};

struct gang;
/* --- follow.c */
void devices_start(struct engine *engine); /* begins to watch */
bool devices_listed(const struct engine *engine);
void devices_deinit(struct engine *engine);

/* --- devices.c: what is there */
/* Before nodes are told: their GPUs by what is published now. */
void devices_refresh(struct engine *engine);
void devices_node_came(struct engine *engine,
		       struct node_entry *node); /* its devices may have been published before */
/* Also: a pod of ours ended or began, so who has its claims counts otherwise. */
void devices_claims_count_anew(struct engine *engine, const char *node);
/* Of a node whose GPUs are published by a driver; NULL = of no such node. */
const struct gpu_table *devices_gpus(const struct engine *engine, const char *node);
/* Whether pods on the node get GPUs by claims: it has such a table, and no device plugin counts them. */
bool devices_are_published(const struct engine *engine, const char *node);
/* How GPUs are had on the node, as a label: while some nodes have them by claims, jobs must be kept where theirs are. Without such nodes
 * nothing is added. */
void devices_label(const struct engine *engine, const struct node_entry *node,
		   char labels[KUBE_LABELS_MAX + 1]);
/* Likewise to what a gang asks of nodes. NULL, or why that can't be. */
const char *devices_gang_label(const struct engine *engine, const struct gang *gang,
			       char labels[KUBE_LABELS_MAX + 1]);
/* Those of them that nobody may be given: allocated for pods that Fairlead did not place, tainted, or gone. */
uint64_t devices_taken(struct engine *engine, const struct gpu_table *table);
struct claim_entry *claim_find(const struct engine *engine, const char *namespace,
			       const char *name);
/* Claims that have the device, from this one on by `also`; NULL = none. */
const struct held *device_held_by_key(const struct engine *engine, const char *key);
/* What the API server said of one; takes it over. An older word than the one that is known is passed over. */
void claim_set(struct engine *engine, struct dra_claim *claim);
void claim_remove(struct engine *engine, struct claim_entry *entry);
void claim_plan(struct engine *engine, struct claim_entry *entry,
		const struct dra_allocation *allocation, const char *json);
void claim_plan_drop(struct engine *engine, struct claim_entry *entry);
const struct held *device_held(const struct engine *engine, const struct dra_slice *slice,
			       const struct dra_device *device);
void device_key(const char *driver, const char *pool, const char *device, char out[DEVICE_KEY_MAX]);
/* Another claim that has a device of this one; NULL = nobody else has. */
const struct claim_entry *claim_clash(const struct engine *engine, const struct claim_entry *entry,
				      const char **ret_device);

/* --- kinds.c: what a pod's claims mean for the core */
enum devices_answer {
	DEVICES_KNOWN,
	DEVICES_WAIT,
	DEVICES_COMING /* a claim is being made: said when it takes long */
};
struct member;
/* Sets the wish's GPUs by its claims, or its problem. Else it can't be placed now, and the text says why. */
enum devices_answer devices_resolve(struct engine *engine, struct member *member,
				    char text[ENGINE_POD_TEXT_MAX]);
void devices_kinds_clear(struct engine *engine);
/* Whether the node has what the member's claims ask for, for so many such pods at once: now, where counts don't say it; else ever. */
bool devices_fit(struct engine *engine, const struct member *member, const char *node,
		 uint32_t times);
/* Whether counts don't say if a node can have these claims, which one pod names. */
bool claims_are_exact(struct engine *engine, const struct dra_claim *const *claims, uint32_t count);
/* Which GPUs are placed for ranks whose claims don't have them yet (`promised` of the tables); but for that rank. */
void devices_promises(struct engine *engine, const struct rank_state *but);
bool device_is_promised(const struct engine *engine, const char *node,
			const struct dra_slice *slice, const struct dra_device *device);
bool claim_is_for_node(const struct engine *engine, const struct dra_claim *claim,
		       const char *node);
/* A claim that has it is of a pod that Fairlead placed and that is not over. */
bool claim_is_live(struct engine *engine, const struct claim_entry *entry);

/* --- claimants.c: who has the GPUs of a node */
/* Says by what each GPU of `taken` is taken, and tells the node's authority of the pods. The list is good until the next call. */
const struct engine_taken *claimants_look(struct engine *engine, struct node_entry *node,
					  const struct gpu_table *table, uint64_t taken,
					  uint32_t *ret_count);

/* --- claims.c: a rank and its claims */
/* Sees to the claims of the rank's pod; when they are its own, READY is told, or the pod is bound where it was released. */
void claims_want(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* Whether the rank may be bound. */
bool claims_are_done(struct engine *engine, const struct rank_state *state);
/* The pod is not bound, and will not be: what it has goes back. */
void claims_undo(struct engine *engine, const struct rank_state *state);
/* Reservations of pods that no attempt is about: a daemon that was killed left them. */
void claims_sweep(struct engine *engine);
/* The names of its pod's claims; "" = none. */
void claims_of_rank(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* The next of the names, which stand one a line; NULL at the end. */
const char *claims_next(const char *names, char out[KUBE_NAME_MAX]);
