/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which GPUs, processors and network cards of this machine lie on which NUMA node, as hwloc has it. Network cards are InfiniBand and
 * RoCE devices, or, where there are none, all others.
 */
#include "node/discover.h"

struct found;

/* bus: PCI address of each GPU as NVML has it ("00000000:3B:00.0"), "" = not known. Where a GPU's place is not known, and there is
 * more than one NUMA node, none is named. *found: PCIe switches and cards too (pci.h). */
int numa_find(const char *const *bus, uint32_t gpus, struct arena *arena,
	      struct numa_found ret[NODE_NUMA_MAX], uint32_t *ret_count, struct found *found,
	      struct err *err) MUST_CHECK;
/* Declared: the GPUs in `count` equal runs, one network card each, and the processors on which this program may run shared out. */
void numa_simulate(uint32_t gpus, uint32_t count, int64_t cpu_milli, struct arena *arena,
		   struct numa_found ret[NODE_NUMA_MAX]);
