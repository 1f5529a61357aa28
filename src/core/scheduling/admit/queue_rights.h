/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a user may ask for in a queue: the tier and priority of a job, and changes of the queue itself. This is the one place that decides
 * it; commands from the API, the CLI and pods all pass here. `api/` decides only whose jobs, users and teams a caller may touch.
 *
 * A queue is *led* by the leads of each team to which it, or a queue above it, belongs. An admin leads all.
 *
 *	what a queue states	nothing stated			stated, by it or a queue above it
 *	tiers			best-effort, standard;		these, for everybody
 *				critical by those who lead it
 *	max_priority		0; 100 by those who lead it	at most this, for all but admins; 100 at most by leads
 *
 * An admin may use any priority. Nobody's rights are needed for a priority that is not above 0, or not above the one that the job has. Of queues above
 * each other the narrowest statement holds. Walks are as long as the tree is deep.
 *
 * A user is the number of a row. 0 is a command that no user made: engines, scenarios and records of earlier releases. What it asks for
 * is bound by what queues state, and by nothing else. RIGHTS_STRANGER is somebody of whom no role is known, who made pods: as a researcher.
 */
#include "core/scheduling/admit/admit.h"

enum { PRIORITY_MOST = 1000000, PRIORITY_LEAD_MOST = 100 };
#define RIGHTS_STRANGER UINT32_MAX

/* Whether the user leads the queue; 0 leads none. A queue that does not exist (0) is led by admins. */
bool rights_lead(const struct facts *f, uint32_t user, struct queue_id queue);
/* "lead \"bob\" or admin \"root\"": who leads the queue, the first of each; in the arena. */
const char *rights_who(const struct facts *f, struct queue_id queue, struct arena *arena);
/* The same of a team; 0: of none, so only an admin. */
const char *rights_who_of_team(const struct facts *f, struct name_id team, struct arena *arena);
/* The team of the nearest queue upwards that has one; 0 = none has. */
struct name_id rights_team(const struct facts *f, struct queue_id queue);

/* Who a command says asked for it. 0: nobody, or the user is still there. ERR_FORBIDDEN: the user was removed meanwhile. */
int rights_asker(const struct admission *a, int64_t by, uint32_t *ret_user) MUST_CHECK;

/* 0, or ERR_FORBIDDEN: the queue does not admit the tier. `what`: `job "train"`. */
int rights_tier(const struct admission *a, const char *what, uint32_t user, struct queue_id queue,
		int64_t tier) MUST_CHECK;
/* 0, or ERR_FORBIDDEN: it is above what the user may use there. has: the priority that the job has already, INT64_MIN = it is new. */
int rights_priority(const struct admission *a, const char *what, uint32_t user,
		    struct queue_id queue, int64_t has, int64_t priority) MUST_CHECK;
/* The highest priority that the user may use in the queue. */
int64_t rights_priority_most(const struct facts *f, uint32_t user, struct queue_id queue);

/* 0, or ERR_FORBIDDEN: a job that has started gets a longer limit than jobs of its queue have that declare none, and the user does not lead the
 * queue. Limits in ms, 0 = none. A job that waits needs no right: a submission may declare any limit. */
int rights_extend(const struct admission *a, const char *what, uint32_t user, struct queue_id queue,
		  int64_t has_ms, int64_t limit_ms) MUST_CHECK;

/* 0, or ERR_FORBIDDEN. The queue may be a new one; `parent` is what e->parent names. */
int rights_queue_set(const struct admission *a, uint32_t user, const struct event_queue_set *e,
		     struct queue_id parent) MUST_CHECK;
/* The queue and its budget as a whole: removal, money. `what`: "remove it". */
int rights_queue(const struct admission *a, uint32_t user, struct queue_id queue, const char *what)
	MUST_CHECK;
