/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fabric as people write it: keys and values, whatever the file around them is. The reader of a cluster file walks
 * its maps and gives every key and scalar to fabric_host_put or fabric_level_put; lists come joined by spaces. The keys,
 * their values and an example are in README.md.
 *
 * Complaints say which value, and what is expected, without a place: the reader knows line and column.
 */
#include "core/fabric/fabric.h"

/* A host with the figures of its GPU model: the longest name of the table that begins the model's, at a word's border
 * ("H100-80GB" is an H100). 1: the table does not know the model; the figures are those of an old PCIe GPU, too
 * low rather than too high. gpus 8, no NIC; the caller sets model. */
enum { FABRIC_UNKNOWN = 1 };
int fabric_host_default(struct fabric_host *host, const char *gpu_model) MUST_CHECK;

/* Sets what the key says. ERR_INVALID for a value, also for a key that is not one (with a hint). */
int fabric_host_put(struct fabric_host *host, const char *key, const char *value, struct err *err)
	MUST_CHECK;
/* Its number, by which a node remembers who said it (SAID_KEY in the facts); -1: it is no key. */
int fabric_host_key(const char *key);
enum {
	FABRIC_KEY_ISLANDS = 1,
	FABRIC_KEY_SWITCHES,
	FABRIC_KEY_NUMA,
	FABRIC_KEY_NVLINK,
	FABRIC_KEY_REDUCE,
	FABRIC_KEY_TREE,
	FABRIC_KEY_PCIE,
	FABRIC_KEY_BETWEEN_SWITCHES,
	FABRIC_KEY_BETWEEN_NUMA,
	FABRIC_KEY_NICS,
	FABRIC_KEY_NIC,
	FABRIC_KEYS
};
int fabric_level_put(struct fabric_level *level, const char *key, const char *value,
		     struct err *err) MUST_CHECK;

/*
 * A rate: "400Gb/s" (bits; what a network card is sold by, of which 24/25 arrive), "50GB/s", "12.5GB/s" or "900MB/s"
 * (bytes, taken as they are). In MB/s.
 */
int fabric_parse_rate(const char *text, uint64_t *ret_mbps, struct err *err) MUST_CHECK;
/* GPU indices per group: "0-3 4-7", "0,1 2,3"; "all" is one group, "none" is one group per GPU. */
int fabric_parse_groups(const char *text, uint32_t gpus, uint32_t ret_groups[FABRIC_GROUPS_MAX],
			struct err *err) MUST_CHECK;

/* "20%" or "12.5%": so much longer than on the best place, in per mille; 0.1% to 99900%. */
int slowdown_parse(const char *text, int64_t *ret_permille, struct err *err) MUST_CHECK;

/* The tables, for documentation and tests: rows until name is NULL. */
struct fabric_gpu_row {
	const char *name;
	uint32_t memory_mbps, nvlink_mbps, reduce_mbps, tree_mbps, pcie_mbps, numa_mbps,
		socket_mbps;
	const char *source; /* of the figures */
};
struct fabric_link_row {
	const char *name; /* "ndr" */
	uint32_t mbps;
	const char *source;
};
extern const struct fabric_gpu_row fabric_gpu_table[];
extern const struct fabric_link_row fabric_nic_table[];
extern const struct fabric_link_row fabric_nvlink_table[];
extern const struct fabric_link_row fabric_pcie_table[];
