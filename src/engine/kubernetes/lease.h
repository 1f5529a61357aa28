/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The Lease by which one of several daemons leads: lease_rule.h with requests to the API server, by a client and a thread of its own.
 *
 *	coordination.k8s.io/v1 Lease NAMESPACE/NAME
 *	spec.holderIdentity                     who leads; "" = it was given back
 *	metadata.annotations fairlead.dev/address   where that one answers, for people
 */
#include <stdbool.h>
#include "base/err.h"
#include "engine/engine.h"
#include "engine/kubernetes/lease_rule.h"

struct lease;

struct lease_options {
	const struct engine_cluster *cluster;
	const char *name; /* of the Lease */
	const char *holder, *address; /* this one's */
};

struct lease_view {
	bool leads; /* this daemon has it, by what is known */
	bool may_write; /* and may write now */
	bool lost; /* had it, and another one has it: for good */
	char holder[LEASE_HOLDER_MAX], address[LEASE_ADDRESS_MAX]; /* "" = nobody, or not known */
	char problem[256]; /* why nothing is known at present; "" = it is */
};

int lease_open(const struct lease_options *options, struct lease **ret, struct err *err) MUST_CHECK;
/* Whether to take it when it is free; false at first, and of one that holds it: it is given back. */
void lease_want(struct lease *lease, bool want);
void lease_look(struct lease *lease, struct lease_view *ret);
/* Now, by this machine's clock. Any thread; waits for nothing. `lease` is a struct lease. */
bool lease_may_write(void *lease);
/* Gives it back when it is held, which is tried for a second or two: then nobody needs to wait until it runs out. */
void lease_close(struct lease *lease);
