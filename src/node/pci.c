/* SPDX-License-Identifier: Apache-2.0 */
#include "node/pci.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/links.h"

enum { PATH_BYTES = 512, LINE_BYTES = 128, CARDS_MAX = 32 };

int pci_numa_of(hwloc_topology_t topology, hwloc_obj_t device)
{
	hwloc_obj_t at = device ? hwloc_get_non_io_ancestor_obj(topology, device) : NULL;
	int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE), found = -1;

	for (int i = 0; at && i < count; i++) {
		hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);

		if (!node || !hwloc_bitmap_intersects(node->nodeset, at->nodeset))
			continue;
		if (found >= 0)
			return -1; /* of several at once: it hangs on the machine as a whole */
		found = i;
	}
	return found;
}

static bool is_card(hwloc_obj_t device, hwloc_obj_osdev_type_t type)
{
	return device->attr->osdev.type == type && device->parent &&
	       device->parent->type == HWLOC_OBJ_PCI_DEVICE;
}

static uint32_t cards_count(hwloc_topology_t topology, int numa, hwloc_obj_osdev_type_t type)
{
	uint32_t count = 0;

	for (hwloc_obj_t device = hwloc_get_next_osdev(topology, NULL); device;
	     device = hwloc_get_next_osdev(topology, device))
		count += is_card(device, type) &&
			 (numa < 0 || pci_numa_of(topology, device) == numa);
	return count;
}

static hwloc_obj_osdev_type_t cards_type(hwloc_topology_t topology)
{
	return cards_count(topology, -1, HWLOC_OBJ_OSDEV_OPENFABRICS) ? HWLOC_OBJ_OSDEV_OPENFABRICS
								      : HWLOC_OBJ_OSDEV_NETWORK;
}

uint32_t pci_cards(hwloc_topology_t topology, int numa)
{
	return cards_count(topology, numa, cards_type(topology));
}

/* --- rates ---------------------------------------------------------------------------------------------------------- */

static bool line_read(char line[LINE_BYTES], const char *folder, const char *name, const char *file)
{
	const char *root = getenv("FAIRLEAD_SYS");
	char path[PATH_BYTES];
	FILE *stream;
	bool fine;

	snprintf(path, sizeof(path), "%s/class/%s/%s/%s", root && *root ? root : "/sys", folder,
		 name, file);
	stream = fopen(path, "re");
	fine = stream && fgets(line, LINE_BYTES, stream) != NULL;
	if (stream)
		fclose(stream);
	if (fine)
		line[strcspn(line, "\n")] = '\0';
	return fine;
}

/* What arrives of a card's rate: 24/25 over InfiniBand, 19/20 over RoCE, 22/25 over TCP, as in core/fabric/defaults.c. */
static uint32_t arrives(uint64_t mbit, uint32_t of_hundred)
{
	uint64_t mbps = mbit * of_hundred / 800;

	return mbps > RATE_MAX_MBPS ? RATE_MAX_MBPS : (uint32_t)mbps;
}

/* "400 Gb/sec (4X NDR)" of the first port; 0 = down, or not told. */
static uint32_t fabric_card_mbps(const char *name)
{
	char line[LINE_BYTES];
	unsigned long long gbit = 0;
	bool ethernet;

	if (!line_read(line, "infiniband", name, "ports/1/state") || !strstr(line, "ACTIVE"))
		return 0;
	ethernet = line_read(line, "infiniband", name, "ports/1/link_layer") &&
		   strcmp(line, "Ethernet") == 0;
	if (!line_read(line, "infiniband", name, "ports/1/rate") ||
	    sscanf(line, "%llu", &gbit) != 1 || gbit > 1000000)
		return 0;
	return arrives(gbit * 1000, ethernet ? 95 : 96);
}

static uint32_t interface_mbps(const char *name)
{
	char line[LINE_BYTES];
	long long mbit = 0;

	if (!line_read(line, "net", name, "operstate") || strcmp(line, "up") != 0)
		return 0;
	if (!line_read(line, "net", name, "speed") || sscanf(line, "%lld", &mbit) != 1 ||
	    mbit <= 0 || mbit > 1000000000)
		return 0;
	return arrives((uint64_t)mbit, 88);
}

static void cards_find(hwloc_topology_t topology, struct found *ret)
{
	hwloc_obj_osdev_type_t type = cards_type(topology);
	uint32_t count = 0, best = 0;

	for (hwloc_obj_t device = hwloc_get_next_osdev(topology, NULL); device;
	     device = hwloc_get_next_osdev(topology, device)) {
		uint32_t mbps;

		if (!is_card(device, type) || !device->name)
			continue;
		mbps = type == HWLOC_OBJ_OSDEV_OPENFABRICS ? fabric_card_mbps(device->name)
							   : interface_mbps(device->name);
		if (mbps > best) {
			best = mbps;
			count = 0;
		}
		count += mbps && mbps == best && count < CARDS_MAX;
	}
	if (!count)
		return;
	ret->nics = count;
	ret->nic_mbps = best;
	ret->given |= FOUND_NICS;
}

/* --- switches ------------------------------------------------------------------------------------------------------- */

/* The bridge nearest to the processor on the way to a device: a root port, below which all is one switch, or several in a row. NULL: it
 * hangs on the host bridge itself. */
static hwloc_obj_t root_port(hwloc_obj_t device)
{
	hwloc_obj_t found = NULL;

	for (hwloc_obj_t at = device->parent; at && at->type == HWLOC_OBJ_BRIDGE; at = at->parent)
		if (at->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI)
			found = at;
	return found;
}

static bool one_root_port(void *context, uint32_t a, uint32_t b)
{
	const hwloc_obj_t *ports = context;

	return ports[a] && ports[a] == ports[b];
}

static void switches_find(hwloc_topology_t topology, const char *const *bus, uint32_t gpus,
			  struct found *ret)
{
	hwloc_obj_t ports[NODE_GPUS_MAX];

	for (uint32_t i = 0; i < gpus; i++) {
		hwloc_obj_t device =
			*bus[i] ? hwloc_get_pcidev_by_busidstring(topology, bus[i]) : NULL;

		if (!device)
			return;
		ports[i] = root_port(device);
	}
	links_groups(gpus, one_root_port, ports, ret->pcie_switch);
	ret->given |= FOUND_SWITCHES;
}

void pci_find(hwloc_topology_t topology, const char *const *bus, uint32_t gpus, struct found *ret)
{
	cards_find(topology, ret);
	if (!(ret->given & FOUND_SWITCHES) && gpus > 1 && gpus <= NODE_GPUS_MAX)
		switches_find(topology, bus, gpus, ret);
}
