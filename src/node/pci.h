/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * PCIe switches and network cards of this machine: where they hang is hwloc's word, how fast a card's ports are the kernel's
 * (/sys/class/infiniband, /sys/class/net; FAIRLEAD_SYS names another folder than /sys, for tests).
 *
 * Internal to src/node: only those who have a topology loaded can ask.
 */
#include <hwloc.h>
#include "core/model/facts.h"

/* Cards that GPUs use: InfiniBand and RoCE devices where there are any, else network interfaces; on one NUMA node, -1 = on all. */
uint32_t pci_cards(hwloc_topology_t topology, int numa);
/* The NUMA node of something inside or beside a package: the first whose processors it is near; -1 = none is known. */
int pci_numa_of(hwloc_topology_t topology, hwloc_obj_t device);

/* Fills what the driver did not tell: PCIe switches of the GPUs with these addresses ("" = not known). And cards, with the rate of the
 * fastest; slower ones, and those that are down, are not counted. */
void pci_find(hwloc_topology_t topology, const char *const *bus, uint32_t gpus, struct found *ret);
