/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How much of everything the facts have room for. Rows of snapshots and fields of events follow from these: they only ever grow. */

enum {
	GPU_SHARE = 63000,
	NAME_MAX_BYTES = 63,
	NODE_GPUS_MAX = 32,
	LEVELS_MAX = 6, /* above the node */
	SHAPE_MODELS_MAX = 8,
	ROLES_MAX = 8, /* groups of unlike tasks in one job */
	QUEUE_MODELS_MAX = 8, /* with limits or guarantees of their own */
	CHECKPOINTS_KEPT = 4, /* newest complete ones remembered per job */
	ISLANDS_MAX = 8,
	MAKES_MAX = 32, /* of hosts that are told apart */
	RATE_MAX_MBPS = 1000000000,
	FAILED_JOBS_KEPT = 4, /* per node and GPU */
	LIKE_RUNS = 32, /* run times remembered of jobs that are alike */
	TASKS_MAX = 16384, /* of one job */
	DEPENDS_MAX = 64,
	ARRAY_MAX = 10000,
	PATH_MAX_BYTES = 479,
	REASON_MAX_BYTES = 251,
	LABELS_MAX = 16, /* of a node */
	TAINTS_MAX = 8,
	SHAPE_LABELS_MAX = 8, /* labels, taints that a job names */
	JOB_LABELS_MAX = 4, /* that a job bears, that it keeps away from */
	SHAPE_REGIONS_MAX = 8,
	SHAPE_DATA_MAX = 8, /* data sets that a job names, that a node keeps */
	NODE_DATA_MAX = 16,
	NUMA_MAX = 8, /* NUMA nodes of a host */
	SPEED_WHOLE = 1000, /* a throughput of 1 */
	SPEED_MOST = 60000,
	RESERVATIONS_MAX = 10000, /* policy.backfill_depth is never more */
	BOOKINGS_MAX = 64,
	ZONES_MAX = 64, /* time zones */
	MASKS_MAX = 256, /* of nodes, at one time */
	MASK_WORDS = MASKS_MAX / 32,
	BOOKING_NODES_MAX = 64, /* of one */
	DATA_SETS_MAX = 1000, /* of which the size is known */
	DATA_PLACES_MAX = 8, /* of one */
	TRANSFERS_MAX = 256,
	POOLS_MAX = 256, /* of spot nodes */
	LOST_RANGES = 8, /* of numbers of lost records, remembered one by one */
	/* Numbers passed over at once where records are missing. An id that a later record names was really given, so
	 * filling up to it costs what the lost jobs did; a hundred times ARRAY_MAX may be passed where none is named. */
	GAP_NAMED_MAX = 1 << 24,
	GAP_UNNAMED_MAX = 1 << 20
};
