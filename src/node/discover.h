/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this machine has: its GPUs through NVML (loaded when there is a driver; never linked), its cores and memory
 * through hwloc. Or nodes that are only declared: `sim:4x8xH100-80GB` makes four simulated nodes of eight GPUs on
 * this machine. Processes on them are real, their GPUs are not, and whoever shows them says so.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

#include "core/model/facts.h"

struct arena;

enum { NODE_NUMA_MAX = 8 };

struct numa_found {
	uint32_t gpus; /* mask of indices */
	uint32_t nics; /* network cards */
	int64_t cpu_milli;
	const char *cpus; /* "0-15,32-47"; "" = not known */
};

struct node_found {
	const char *name;
	const char *model; /* "H100-80GB"; "" when it has no GPU */
	const char *driver; /* "550.54.14"; "" when unknown */
	uint32_t gpu_count; /* 0..32 */
	int64_t gpu_memory_mib; /* of one GPU; of the smallest where they differ */
	int64_t cpu_milli, ram_mib;
	const char *cuda; /* newest that the driver serves, "12.4"; "" when unknown */
	uint32_t capability; /* compute capability in tenths; 0 when unknown */
	bool simulated;
	const char *
		domains; /* where it is declared to stand, by level, widest first: "s0,r1"; "" = not said */
	struct found found; /* how its GPUs are joined */
	struct numa_found numa[NODE_NUMA_MAX]; /* those with GPUs */
	uint32_t numa_count;
};

struct nodes_found {
	struct node_found *nodes;
	uint32_t count;
	const char *levels; /* of which `domains` are, comma separated; "" = nobody says */
	bool levels_hold; /* they come before what the cluster has; else they are for one that has none */
	const char *
		remark; /* one sentence for the person who starts the daemon; "" = nothing to say */
};

/* "NVIDIA H100 80GB HBM3", or with hyphens, and its memory: "H100-80GB". Without memory "H100". In the arena. */
const char *node_model_name(const char *name, uint64_t memory_bytes, struct arena *arena);

/* spec NULL: this machine. Else "sim:" and parts NODESxGPUSxMODEL, comma separated; a model may end in its memory ("-80GB"), else 80 GiB are
 * assumed. Behind a model, each with a slash: "numa=2" or "2", NUMA nodes (GPUs and processors in equal runs); "islands=2", NVLink islands
 * likewise; "rack=4", so many nodes stand in one rack, racks r0, r1, ... counted through. At most 4096 nodes. Simulated nodes are named
 * node0, node1, ...; each declares 8 CPUs and 64 GiB per GPU (16 CPUs and 64 GiB when it has none). */
int nodes_find(const char *spec, struct arena *arena, struct nodes_found *ret, struct err *err)
	MUST_CHECK;
