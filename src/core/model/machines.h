/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Nodes as the facts know them: what they have, how their GPUs are joined, what people and machines said of that. Part of facts.h. */
#include <stdbool.h>
#include <stdint.h>
#include "core/model/ids.h"
#include "core/model/limits.h"

/* How the GPUs of a node are joined, as it was found out on the machine (event node-found). What of it holds is decided
 * where the fabric is described (core/fabric/known.h): a file comes first. */
enum {
	FOUND_ISLANDS = 1,
	FOUND_SWITCHES = 2,
	FOUND_NICS = 4, /* how many, and how fast */
	FOUND_NVLINK = 8,
	FOUND_PCIE = 16,
	FOUND_PROCESSES =
		32, /* the driver tells which process has how much of a GPU's memory: parts are watched */
	FOUND_ALL = 63
};
struct found {
	uint32_t given; /* FOUND_ */
	uint32_t island[ISLANDS_MAX], pcie_switch[ISLANDS_MAX]; /* GPUs of each */
	uint32_t nics, nic_mbps, nvlink_mbps, pcie_mbps;
	bool reduces; /* NVLink goes through switches, which may add up */
	uint8_t source; /* enum found_source */
};
/* Who tells what a node has: its driver and operating system; the word with which simulated nodes are declared; a cluster file. */
enum found_source { SOURCE_DISCOVERY, SOURCE_DECLARED, SOURCE_FILE };
/* What people said of a node, by file or label: the bit of a key of its fabric, of a level's file entry, of a level's label. */
enum { SAID_KEY = 0, SAID_FILE = 16, SAID_LABEL = 24 };

struct node {
	struct name_id
		name; /* 0 = its record could not be read: gone until a node takes the row up */
	struct name_id model;
	struct name_id domain[LEVELS_MAX]; /* name at each level, widest first; 0 = none */
	struct name_id driver;
	struct text_id reason; /* why it is not ready */
	uint32_t gpu_count;
	uint32_t gpu_memory_mib;
	uint32_t cpu_milli, ram_mib;
	uint32_t set_aside_mask; /* GPUs not to be used */
	uint32_t island_mask[ISLANDS_MAX]; /* NVLink islands; all zero = one island */
	/* the last different jobs that failed early here, newest first, and when */
	uint32_t failed_job[FAILED_JOBS_KEPT];
	int64_t failed_ms[FAILED_JOBS_KEPT];
	uint8_t state; /* enum node_state */
	bool simulated;
	struct name_id cuda; /* newest its driver knows, 0 = not said */
	struct name_id label[LABELS_MAX]; /* "key=value", sorted by text; none behind the last */
	struct name_id taint[TAINTS_MAX]; /* "key=value" or "key", likewise */
	uint32_t capability; /* compute capability in tenths, 0 = not said */
	uint8_t class; /* enum node_class */
	int64_t drain_ms; /* draining: when it is to be empty; 0 = at once */
	struct name_id data[NODE_DATA_MAX]; /* data sets it keeps, sorted by text */
	/* Announced maintenance: nothing runs there from..to; 0 0 = none. Forgotten once it is over. */
	int64_t window_from_ms, window_to_ms;
	struct text_id window_reason;
	uint32_t make; /* how it is built: row of fabric.make, from 1; 0 = not known */
	/* Its NUMA nodes: GPUs (none after the first 0), processors (0 = not said), network cards; processors by number. */
	uint32_t numa_gpus[NUMA_MAX], numa_cpu_milli[NUMA_MAX], numa_nics[NUMA_MAX];
	struct text_id numa_cpus; /* "0-15;16-31"; 0 = nobody says */
	uint32_t layout[NODE_GPUS_MAX]; /* of each GPU: its instances (slices.h); 0 = whole */
	uint8_t partitioning; /* enum partitioning */
	bool slices_only; /* nothing but slices runs on its GPUs */
	struct found found; /* how its GPUs are joined, as far as the machine itself tells */
	uint8_t capacity; /* enum capacity */
	int64_t turned_ms; /* of a spot node: since when it is there, or away (down or gone) */
	uint32_t said; /* what a file or a label said of it: SAID_; comes before what was found */
	uint32_t mask_bits[MASK_WORDS]; /* masks that it is in: bit row - 1 */
};
/* Nodes that jobs may name as the only ones they run on. Rows are used again; which nodes, the nodes say. */
struct node_mask {
	struct name_id name; /* 0 = the row is free */
	struct text_id why; /* it is these */
};
static inline bool node_is_in(const struct node *node, uint32_t row)
{
	return node->mask_bits[(row - 1) / 32] >> (row - 1) % 32 & 1;
}

/* How a host is built, as far as the speed between its GPUs goes (core/fabric): rates in MB/s, 0 = there is none. */
struct make {
	struct name_id model; /* of its GPUs; 0 = any */
	uint32_t gpus, nics;
	uint32_t nic_mbps, memory_mbps, nvlink_mbps, reduce_mbps, tree_mbps, pcie_mbps, numa_mbps,
		socket_mbps;
	uint32_t pcie_switch[ISLANDS_MAX], numa[ISLANDS_MAX]; /* GPUs of each */
};
/* In fabric-set a make is these numbers, in the order of the struct. */
enum { MAKE_RATES = 8, MAKE_FIELDS = 2 + MAKE_RATES + 2 * ISLANDS_MAX };

/* What is between the parts of a level. */
struct level_speed {
	uint32_t flags; /* FABRIC_FLAG_ */
	uint32_t over_milli; /* oversubscription, 0 = none */
	uint32_t latency_ns;
	uint32_t host_mbps; /* at most so much for one host, 0 = no limit */
};
enum { FABRIC_LEVEL_FIELDS = 4, FABRIC_FLAG_NVLINK = 1, FABRIC_FLAG_REDUCES = 2 };
struct fabric_facts {
	uint32_t make_count; /* 0 = nothing is known */
	struct level_speed level[LEVELS_MAX + 1]; /* [0] is the cluster */
	struct make make[MAKES_MAX];
};
static inline bool node_is_cut(const struct node *node)
{
	for (uint32_t gpu = 0; gpu < node->gpu_count && gpu < NODE_GPUS_MAX; gpu++)
		if (node->layout[gpu])
			return true;
	return false;
}
static inline bool node_has_window(const struct node *node)
{
	return node->window_to_ms != 0;
}

struct gpu_record { /* row (node - 1) * NODE_GPUS_MAX + index + 1 of `gpus` */
	uint32_t failed_job[FAILED_JOBS_KEPT];
	int64_t failed_ms[FAILED_JOBS_KEPT];
	struct text_id reason; /* why it is set aside */
};
