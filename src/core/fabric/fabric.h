/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fabric: how fast GPUs talk to each other, as a function of where they are. A description of hosts (what is
 * inside one) and levels (what is between them), and the bus bandwidth of an all-reduce over a set of GPUs.
 *
 * Bus bandwidth is the figure that NCCL's tests call so: bytes reduced per second times 2(n-1)/n. On a ring it is
 * the speed of the slowest link, whatever the number of GPUs. All rates are in MB/s (a million bytes per second), one
 * direction, as an application gets them and not as a data sheet prints them.
 *
 * Levels are numbered as placement does: 0 the whole cluster, 1 the widest named level, level_count the narrowest;
 * LEVEL_NODE and LEVEL_ISLAND inside a host. A level's figures are about traffic between its parts: the figures of a
 * spine are those between its leaves, those of the narrowest level are between hosts.
 *
 * A host's make (struct fabric_host) is shared by all hosts built alike. The caller fills a zeroed struct fabric, calls
 * fabric_check when the figures come from people, then fabric_settle; after that it is only read. No pointers
 * in it: it may be copied.
 *
 * Costs: fabric_level_mbps 0.2 us per make of host, whatever the cluster's size; fabric_set 0.1 us per host and level.
 * Limits: rates up to FABRIC_MBPS_MAX, sets up to FABRIC_GPUS_MAX GPUs.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "core/model/facts.h"

enum {
	FABRIC_LEVELS = LEVELS_MAX + 1, /* the cluster and the named ones */
	FABRIC_HOSTS_MAX = 32, /* makes */
	FABRIC_GROUPS_MAX = 8, /* islands, PCIe switches or NUMA nodes of one host */
	FABRIC_NICS_MAX = 32,
	FABRIC_OVER_MAX = 1000000, /* 1000:1 */
	FABRIC_LATENCY_MAX = 1000000000, /* 1 s */
	FABRIC_SLOWDOWN_MAX = 1000000 /* a thousand times */
};
#define FABRIC_MBPS_MAX UINT64_C(1000000000) /* 1 PB/s */
#define FABRIC_GPUS_MAX UINT64_C(16777216)

/* One make of host. Masks are over GPU indices; a row of zero masks means one group that holds all, a GPU that no mask
 * names is alone. */
struct fabric_host {
	struct name_id model; /* of its GPUs; 0 = not said, serves any wish */
	uint8_t gpus; /* 1 .. NODE_GPUS_MAX */
	uint8_t nics; /* usable for traffic between GPUs; 0 = none: sets across hosts get nothing */
	uint32_t island[FABRIC_GROUPS_MAX]; /* joined by NVLink */
	uint32_t pcie_switch[FABRIC_GROUPS_MAX];
	uint32_t numa[FABRIC_GROUPS_MAX];
	uint64_t memory_mbps; /* of one GPU: the figure of a set of one, which talks to nobody */
	uint64_t nvlink_mbps; /* per GPU, inside an island; 0 = no NVLink */
	uint64_t
		reduce_mbps; /* all-reduce done by the NVLink switch, as bytes reduced per second; 0 = it can't */
	uint64_t
		tree_mbps; /* the most that a tree gets through this host's GPUs; 0 = as much as a ring */
	uint64_t pcie_mbps; /* per GPU, below one PCIe switch */
	uint64_t numa_mbps; /* between PCIe switches of one NUMA node */
	uint64_t socket_mbps; /* between NUMA nodes */
	uint64_t nic_mbps; /* of each NIC */
};

/* What is between the parts of one level. Zeroes: a network that is nowhere narrower than the hosts' NICs. */
struct fabric_level {
	bool nvlink; /* multi-host NVLink domain; the narrowest level only */
	bool reduces; /* its switches add up (SHARP) */
	uint32_t
		over_milli; /* oversubscription against the next narrower level: 2000 is 2:1; 0 = 1:1 */
	uint32_t latency_ns; /* one way; 0 = FABRIC_LATENCY_DEFAULT */
	uint64_t host_mbps; /* at most so much for one host; 0 = no such limit */
};
enum { FABRIC_LATENCY_DEFAULT = 5000 };

struct fabric {
	uint32_t level_count; /* named levels */
	uint32_t host_count; /* makes */
	struct fabric_level level[FABRIC_LEVELS]; /* [0] is the cluster */
	struct fabric_host host[FABRIC_HOSTS_MAX];
	/* Hosts of a make in the domain of that level which has most of them; 0 = not known, taken as enough. */
	uint32_t most[FABRIC_HOSTS_MAX][FABRIC_LEVELS];
	/* derived by fabric_settle */
	uint32_t cut_milli[FABRIC_LEVELS]; /* oversubscription from the hosts up to that level */
	uint64_t host_cut_mbps
		[FABRIC_LEVELS]; /* narrowest host_mbps from the hosts up to that level */
	uint32_t net_level; /* narrowest level that is a network */
	bool domains; /* the narrowest level is an NVLink domain */
};

/* What limits a set. */
enum fabric_bound {
	FABRIC_BOUND_MEMORY, /* one GPU: nothing does */
	FABRIC_BOUND_NVLINK,
	FABRIC_BOUND_PCIE,
	FABRIC_BOUND_NUMA,
	FABRIC_BOUND_SOCKET,
	FABRIC_BOUND_NIC, /* the NICs of the host (or NVLink domain) that brings fewest */
	FABRIC_BOUND_LEVEL, /* the network at `bound_level` */
	FABRIC_BOUND_NONE /* no path: no NIC, or nothing fits there */
};
const char *fabric_bound_name(enum fabric_bound bound); /* "NVLink" */

struct fabric_estimate {
	uint64_t
		mbps; /* bus bandwidth for large messages: the better of the next two; 0 = no path */
	uint64_t ring_mbps, tree_mbps;
	uint64_t ring_ns, tree_ns; /* what a message of no bytes takes */
	uint64_t gpus;
	uint32_t hosts;
	uint32_t units; /* hosts, or NVLink domains where there are such */
	uint8_t bound; /* enum fabric_bound */
	uint8_t bound_level; /* for FABRIC_BOUND_LEVEL */
	uint8_t level; /* the narrowest that holds all: 0 .., LEVEL_NODE, LEVEL_ISLAND */
};

/* GPUs of one host in a set. */
struct fabric_part {
	uint16_t host; /* its make */
	uint32_t gpu_mask; /* not empty */
	uint32_t domain
		[FABRIC_LEVELS]; /* by level, [0] unused; 0 = names none: no NVLink domain, else one like others */
};

/* Says which make (by row) or level (by number) has which figure that cannot be: ERR_INVALID. */
int fabric_check(const struct fabric *fabric, struct err *err) MUST_CHECK;
/* Fills the derived fields. Must be called once after the description is complete, and again after a change. */
void fabric_settle(struct fabric *fabric);
/* The row of that make, added when there is none like it. 1 = the table is full: *ret is the last row, which then stands for
 * all that came later. */
enum { FABRIC_FULL = 1 };
int fabric_host_add(struct fabric *fabric, const struct fabric_host *host, uint16_t *ret)
	MUST_CHECK;

/*
 * The expected bus bandwidth of a set. Parts of one domain stand together (ascending node ranks do); otherwise the domain
 * counts once for each run, and the answer is too low. count 0 gives a set of no GPUs, bandwidth 0.
 */
void fabric_set(const struct fabric *fabric, const struct fabric_part *parts, uint32_t count,
		struct fabric_estimate *ret);
/*
 * The most that a gang of this shape (its tasks_min tasks) can get when it spans exactly this level, packed on fewest hosts,
 * evenly; over all makes the shape accepts. 0: it can't be there (too large, or too small to span it). Never rises towards
 * wider levels between hosts. From LEVEL_NODE to these it may, where a host has no NVLink across its GPUs: two
 * hosts with good NICs then beat one without.
 */
uint64_t fabric_level_mbps(const struct fabric *fabric, uint8_t level, const struct shape *shape);
void fabric_level_estimate(const struct fabric *fabric, uint8_t level, const struct shape *shape,
			   struct fabric_estimate *ret);
/* The same for so many tasks on hosts of one make, whether the shape accepts it or not. */
void fabric_make_estimate(const struct fabric *fabric, uint8_t level, uint32_t make, uint64_t tasks,
			  uint32_t gpus, struct fabric_estimate *ret);
/* The best of all levels: what the shape would get in this cluster, were it empty. */
void fabric_best(const struct fabric *fabric, const struct shape *shape,
		 struct fabric_estimate *ret);

/* What a host sends into the network with so many of its GPUs; and what of such a rate is left to it at a level when all send. */
uint64_t fabric_host_out_mbps(const struct fabric_host *host, uint32_t gpus);
uint64_t fabric_level_share_mbps(const struct fabric *fabric, uint32_t level, uint64_t out_mbps);

/* How long an all-reduce of so many bytes takes, by the better way for that size, rounded up; 0 for one GPU; UINT64_MAX
 * when there is no path, or it would be longer. */
uint64_t fabric_time_ns(const struct fabric_estimate *estimate, uint64_t bytes);

/* What is known of a job's steps. All zero: only its kind. */
struct fabric_load {
	uint64_t bytes; /* all-reduced per step by each GPU; 0 = not known */
	uint64_t step_ns; /* of a step on the best place; 0 = not known */
	uint16_t
		share_milli; /* part of a step spent waiting for communication, on the best place; 0 = not known */
};
uint16_t fabric_share_default(uint8_t kind); /* enum job_kind; per mille */
/*
 * Time of a step on `here` against `best`, in 1/1000: 1000 = as fast, 1500 = half as long again. From bytes and step_ns when
 * both are known, else from the share, else from the kind's. Never below 1000, at most FABRIC_SLOWDOWN_MAX.
 */
uint32_t fabric_slowdown_milli(const struct fabric_estimate *best,
			       const struct fabric_estimate *here, const struct fabric_load *load,
			       uint8_t kind);
