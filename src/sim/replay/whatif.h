/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What if the cluster had been another one? A recorded history (recorded.h) three times: as it happened; played again on the same nodes, queues and
 * policy; and with changes. The first two show how far the play can be trusted, the last two what the changes do.
 */
#include <stdio.h>
#include "base/arena.h"
#include "base/buf.h"
#include "sim/replay/availability.h"
#include "sim/replay/recorded.h"
#include "sim/replay/replay_report.h"
#include "sim/scenario.h"

enum { WHATIF_HAPPENED, WHATIF_AGAIN, WHATIF_CHANGED, WHATIF_COLUMNS };

struct whatif_changes {
	const char *const *nodes; /* "+4xH100-80GB", "-2xA100-80GB" */
	uint32_t node_count;
	int64_t spot; /* percent of the nodes of each model that are spot nodes; -1 = as it is */
	const char *availability; /* a file: when nodes are there; NULL = all stay */
	const char *const *slices; /* models whose GPUs may be cut */
	uint32_t slice_count;
	const char *policy; /* a policy file; NULL = as it is */
};

struct whatif {
	struct arena arena;
	struct recorded *recorded;
	struct workload workload, changed_jobs; /* the latter shares its texts */
	uint32_t sliced_nodes, sliced_jobs,
		slices_short; /* of the changed one: such as may be cut; that take a slice; with none that is enough */
	struct scenario as_is, changed;
	struct availability availability; /* of the changed one */
	uint32_t spot_before, spot_after; /* spot nodes */
	struct replay_result results[WHATIF_COLUMNS];
	int64_t gpus_before, gpus_after;
};

/* The recording is closed, and must live as long. whatif_deinit in any case. */
int whatif_run(struct recorded *recorded, const struct whatif_changes *changes, struct whatif *ret,
	       struct err *err) MUST_CHECK;
void whatif_deinit(struct whatif *whatif);
void whatif_tell(const struct whatif *whatif, FILE *out);

/* So many percent of the nodes of each model, rounded down, are spot nodes: the last ones; the others are not. */
void whatif_spot_change(struct scenario *site, int64_t percent, struct arena *arena);

/* Fairlead may cut the GPUs of the nodes with that model. */
int whatif_slices_change(struct scenario *site, const char *model, struct arena *arena,
			 uint32_t *ret_nodes, struct err *err) MUST_CHECK;

/* "+4xH100-80GB": four nodes like the first with that model; "-2x...": without the last two of it. */
int whatif_nodes_change(struct scenario *site, const char *text, struct arena *arena,
			struct err *err) MUST_CHECK;
