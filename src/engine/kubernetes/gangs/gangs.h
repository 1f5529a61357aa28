/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that others made and that ask for Fairlead as their scheduler. All of it is under the engine's lock.
 *
 *	member	a pod, from when it is seen until it is gone or over
 *	group	members that belong together by the word of whoever made them
 *	gang	members that are one job. A group has one that waits at most; once that has begun, each further member is a gang by itself
 *
 *	seen -> (group has as many as it needs) -> offered -> job -> attempt -> bound -> over
 */
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/gangs/pod_wish.h"
#include "engine/pods.h"

struct member {
	UT_hash_handle hh;
	char uid[KUBE_WORD_MAX], namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX];
	struct pod_wish
		*wish; /* of one that is not bound; NULL = it was not seen yet, or is bound */
	struct group *group; /* NULL = not seen yet */
	struct member *next; /* of the group */
	struct gang *gang; /* NULL = of none yet */
	char mask[MASK_NAME_MAX]; /* that it waits to be the next of */
	char *nominated; /* node that its status names, as far as is known; NULL = none */
	bool nominate_again; /* the API server did not take that */
	uint32_t rank;
	bool seen; /* in the list that is being taken */
	bool gated, deleting, bound, over;
	bool cancelled; /* its job ended before it ran: it is placed no more */
	bool lacks_devices; /* its claims are still to come, or to be known */
	bool told; /* what was told of it last: */
	uint8_t told_kind, told_kinds; /* kinds: 1 << kind of all that it ever heard */
	uint32_t told_hash, told_count; /* of the words; how often of this kind */
	int64_t told_ms;
};

/* What is known of how many a group needs. */
enum need {
	NEED_ASK,
	NEED_ASKED,
	NEED_KNOWN,
	NEED_UNKNOWN, /* nobody says: each pod is a gang by itself */
	NEED_MISSING /* who is to say is not there yet */
};

/* Who says how many a group needs, as its pods name it. */
struct group_maker {
	char namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX];
	char part[KUBE_WORD_MAX]; /* of that, which has `times` Jobs; "" = all */
	int64_t times;
	char api[KUBE_NAME_MAX], kind[KUBE_WORD_MAX];
};

struct group {
	UT_hash_handle hh;
	char *key; /* namespace, kind, name */
	enum gang_kind kind;
	struct group_maker *maker; /* NULL = each pod is by itself */
	int64_t said; /* so many, as a pod of it said when it came; 0 = none did */
	struct member *members;
	uint32_t count;
	enum need need;
	int64_t size; /* where it is known */
	int64_t stay; /* so many have to go on where nodes are taken away; known with it */
	int64_t asked_ms, since_ms; /* boot clock; since: it came */
	char together
		[KUBE_WORD_MAX]; /* label of nodes of which all must have one value; "" = any */
	char problem[ENGINE_POD_TEXT_MAX]; /* why it is not known */
	bool may_shrink; /* a gang of it could, or can, do without some of its pods */
	bool dirty; /* is to be looked at: in the list of those */
	struct group *next_dirty;
};

struct gang {
	UT_hash_handle hh, hh_job;
	char key[ENGINE_KEY_MAX];
	struct member **members; /* by rank; NULL = it is gone */
	uint32_t count;
	uint64_t job, attempt; /* 0 = none yet */
	bool offered; /* and not answered */
	bool broken; /* a member is gone: it is taken back, or ends */
	bool withdrawn;
	bool promised; /* places, once others have left them */
	bool settled; /* its devices are chosen, so the next of its kind may be placed */
	struct mask *mask; /* NULL = it may run on any node */
	struct gang *next_of_mask;
	char require[KUBE_WORD_MAX], apart[KUBE_WORD_MAX]; /* levels, as its pods' affinity says */
	uint32_t bounces; /* so often in a row it did not fit where it was placed */
	int64_t again_ms; /* when it is offered again, or taken back again; 0 = not */
	char text[ENGINE_POD_TEXT_MAX]; /* why it waits, or was refused */
	uint8_t told_kind; /* of what was told of it last */
	bool untold; /* some of its pods have not heard that: too many words are under way */
};

enum { GANG_AGAIN_MS = 10000 }; /* what may have got lost is said again */

/* --- gangs.c: what is there. */
bool pod_is_for_us(const struct engine *engine, const struct kube_pod *pod);
void gangs_begin(struct engine *engine); /* of a list */
void gangs_saw(struct engine *engine, const char *json, size_t size, const struct kube_pod *pod);
void gangs_lost(struct engine *engine, const char *uid);
void gangs_listed(struct engine *engine);
void gangs_deinit(struct engine *engine);
struct member *member_find(struct engine *engine, const char *uid);
struct member *member_get(struct engine *engine, const char *uid); /* made, where there is none */
void member_leaves_gang(struct engine *engine, struct member *member, const char *what);
void group_touch(struct engine *engine, struct group *group); /* it is looked at soon */
void group_remove(struct engine *engine, struct group *group);
struct gang *gang_create(struct engine *engine, const char *key, uint32_t count);
void gang_remove(struct engine *engine, struct gang *gang); /* its members are free again */
void gang_set_job(struct engine *engine, struct gang *gang, uint64_t job);
/* A member of it is gone or bound by somebody else. One that has an attempt hears of it by its rank. */
void gang_break(struct engine *engine, struct gang *gang, const char *text);
void gang_withdraw(struct engine *engine, struct gang *gang);
/* Where all its members are bound, its mask is of no more use, and the next of its kind may come. */
void gang_has_places(struct engine *engine, struct gang *gang);
void gangs_next_of(struct engine *engine, const struct mask *mask);
/* Whether a gang of it is still to be placed, or to get its devices. */
bool mask_is_taken(const struct mask *mask);
void gang_settles(struct engine *engine, struct gang *gang);
struct gang *gang_of_job(struct engine *engine, uint64_t job);
/* The attempt that the pod belongs to; NULL = to none. */
struct attempt_entry *gangs_attempt(struct engine *engine, const char *uid, uint32_t *ret_rank);
/* The attempt is forgotten; its job may wait again. */
void gangs_forget(struct engine *engine, const struct attempt_entry *attempt);

/* --- form.c: what becomes one job. */
void group_look(struct engine *engine, struct group *group);
void gang_offer(struct engine *engine, struct gang *gang);
void gang_key(struct member *const *members, uint32_t count, char out[ENGINE_KEY_MAX]);

/* --- look.c: when groups are looked at. */
void gangs_look(struct engine *engine); /* what came together was told */

/* --- need.c: how many pods a group needs before it can start. */
void need_find(struct engine *engine,
	       struct group *group); /* sets `need`, now or when the API server has answered */

/* --- least.c: how many of a gang have to go on where nodes are taken away. */
void least_look(struct engine *engine, struct group *group);
void least_of_nodes(struct engine *engine);
void least_began(struct engine *engine, const struct rank_state *state);

/* --- run.c: attempts of gangs. */
void gang_start(struct engine *engine, const struct engine_start *start);
void gang_resize(struct engine *engine, const struct engine_start *start); /* ranks that leave */
void gang_bind(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
void gang_rank_stop(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);

/* --- budgets.c: PodDisruptionBudgets. */
void budgets_start(struct engine *engine);
void budgets_deinit(struct engine *engine);
void budgets_want(struct engine *engine); /* all are looked at soon */
void budgets_touch(
	struct engine *
		engine); /* the same where there are budgets: pods that run came, went or are being deleted */

/* --- tell.c: Events and conditions. */
enum tell_kind {
	TELL_WAITS, /* in the line, for a rule or for others */
	TELL_NO_ROOM, /* no nodes have room for it */
	TELL_GATHERS, /* pods of its gang are still to come */
	TELL_REFUSED, /* it asks for what can't be honoured */
	TELL_ALONE, /* how many it belongs with is not known: it is placed by itself */
	TELL_PREEMPTED /* it is deleted to make room */
};
void member_tell(struct engine *engine, struct member *member, enum tell_kind kind,
		 const char *text);
/* Its place once others have left it, as others of the cluster look for it; "" = none. */
void member_nominate(struct engine *engine, struct member *member, const char *node);
/* Says in its conditions that it is disrupted, then deletes it. */
void member_disrupt(struct engine *engine, struct attempt_entry *attempt, uint32_t rank);
/* What could not be told for want of a right or was refused, when some time has passed. */
void gangs_tell_again(struct engine *engine);
void gang_tell(struct engine *engine, struct gang *gang, enum tell_kind kind, const char *text);

/* --- answers.c: what the daemon says of gangs. */
extern const struct engine_pod_ops kubernetes_pod_ops;
