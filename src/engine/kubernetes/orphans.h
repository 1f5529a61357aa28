/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods that a Fairlead made whose journal is lost: nobody takes its finalizer away from them, so they can't be deleted. For a person at a
 * terminal; nothing here is done by a daemon. Each call waits for the API server.
 */
#include <stddef.h>
#include "base/err.h"
#include "engine/engine.h"
#include "engine/kubernetes/objects.h"

enum { ORPHANS_LIVE_S = 30, ORPHANS_LEADER_MAX = 128 };

struct orphan {
	char uid[KUBE_WORD_MAX], namespace[KUBE_WORD_MAX], name[KUBE_NAME_MAX];
	char instance[KUBE_WORD_MAX]; /* whose it is */
	char node[KUBE_NAME_MAX]; /* "" = bound to none */
	uint64_t job;
	bool deleting;
	bool over; /* nothing of it runs: it ended, or can't be bound any more */
	/* Who renewed the instance's Lease within the last ORPHANS_LIVE_S, by this machine's clock: a daemon that lives, whose pod is no orphan;
	 * "" = nobody; "?" = the account may not look. */
	char leader[ORPHANS_LEADER_MAX];
};

/* All pods with the finalizer, of the namespace and of whichever Fairlead, also of those that live. *ret is the caller's to free. */
int orphans_list(const struct engine_cluster *cluster, struct orphan **ret, size_t *ret_count,
		 struct err *err) MUST_CHECK;
/* Who leads that Fairlead, by its Lease; "" = nobody does, or it has none. Looks twice, 12 s apart, where the Lease names somebody: one that is
 * not renewed meanwhile is nobody's. */
int orphans_leader(const struct engine_cluster *cluster, const char *instance, char ret[256],
		   struct err *err) MUST_CHECK;
/* Takes the finalizer away. One that is gone already is no error. */
int orphan_let_go(const struct engine_cluster *cluster, const struct orphan *orphan,
		  struct err *err) MUST_CHECK;
