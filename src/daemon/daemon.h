/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The daemon: `fairlead up` and `fairlead serve`. It wires the parts together and holds no policy of its own.
 *
 *	network thread	HTTP (api/): requests become commands; reads are answered from frozen facts
 *	core thread	owns the facts: admit, apply, decide, freeze; one turn per batch of input
 *	journal thread	one commit for all that came; then, and only then, the outputs leave (the gate)
 *	engine thread	durable decisions become engine commands; engine facts come back to the core's mailbox
 *	history thread	fills the read models behind the journal
 *	worker threads	explanations, dry runs, log reading, snapshots
 *
 * Threads exchange messages only. README.md here draws the way of a submission.
 */
#include <stdbool.h>
#include "base/err.h"

struct engine_cluster;

struct daemon_options {
	const char *data; /* data folder; made when missing */
	const char *listen; /* HOST:PORT on loopback, NULL = only the Unix socket */
	const char *
		pod_listen; /* HOST:PORT for shepherds in pods (shepherd_calls.c); NULL = none. With `kubernetes` only */
	const char *nodes; /* NULL = this machine as found; "sim:4x8xH100-80GB" = simulated nodes */
	const char *
		cluster; /* a cluster file with the nodes, all simulated; NULL = none. Not with `nodes` */
	const char *
		store; /* PostgreSQL for the journal, "postgresql://..."; NULL = where the folder has it, else in files */
	/* NULL: work runs on this machine. Else on this cluster, and `nodes` and `cluster` are NULL. */
	const struct engine_cluster *kubernetes;
	bool stand_by; /* one of several daemons on the journal in `store`: one leads, the others follow. With `kubernetes` only */
	const char *
		remember; /* what later starts of the folder are to find in the file "start" (up.c), written once it answers; NULL = nothing */
	bool accept_loss; /* starts also when much of the journal is lost, and goes on without it */
	bool background; /* answer when it is ready, then go on without the terminal */
};

/* Runs until SIGTERM or SIGINT (jobs go on); 0 at a clean end. In the background form the caller's process returns 0
 * as soon as the daemon answers. Messages about what was found and where it listens go to stdout. */
int daemon_run(const struct daemon_options *options, struct err *err) MUST_CHECK;
