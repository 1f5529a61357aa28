/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the GPUs of this machine are joined, as the driver tells: by NVLink into islands, below PCIe switches, and how fast
 * either is. What is told here are facts; what a program gets of a link are the constants of core/fabric/defaults.c.
 */
#include "core/model/facts.h"
#include "node/nvml.h"

/* Groups of GPUs from what holds for pairs: who can be reached over others is in the group too. At most ISLANDS_MAX groups, in order of
 * their first GPUs; what is beyond them is alone. Only one group that holds all: none is named, for that is what no groups mean. */
void links_groups(uint32_t gpus, bool (*same)(void *context, uint32_t a, uint32_t b), void *context,
		  uint32_t ret[ISLANDS_MAX]);

/* Of GPUs 0..gpus-1 with these PCI addresses. Sets the fields of *ret that NVML tells of, with their FOUND_ bits. */
void links_find(struct nvml *nvml, uint32_t gpus, const char *const *bus, struct found *ret);
