/* SPDX-License-Identifier: Apache-2.0 */
#include "node/numa.h"

#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "node/pci.h"

enum { LIST_BYTES = 1024 };

/* --- this machine --------------------------------------------------------------------------------------------- */

static const char *processors_text(hwloc_obj_t node, struct arena *arena)
{
	char list[LIST_BYTES];

	if (hwloc_bitmap_list_snprintf(list, sizeof(list), node->cpuset) >= (int)sizeof(list))
		return "";
	return arena_strdup(arena, list);
}

static bool gpus_find(hwloc_topology_t topology, const char *const *bus, uint32_t gpus, int count,
		      struct numa_found *ret)
{
	for (uint32_t i = 0; i < gpus; i++) {
		hwloc_obj_t device =
			*bus[i] ? hwloc_get_pcidev_by_busidstring(topology, bus[i]) : NULL;
		int numa = count == 1 ? 0 : pci_numa_of(topology, device);

		if (numa < 0)
			return false;
		ret[numa].gpus |= UINT32_C(1) << i;
	}
	return true;
}

/* Those without GPUs are of no use to a task that wants both; they leave the list. */
static uint32_t with_gpus(struct numa_found *list, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (list[i].gpus)
			list[kept++] = list[i];
	return kept;
}

static void topology_read(hwloc_topology_t topology, const char *const *bus, uint32_t gpus,
			  struct arena *arena, struct numa_found *ret, uint32_t *ret_count)
{
	int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);

	if (count < 1 || count > NODE_NUMA_MAX || !gpus_find(topology, bus, gpus, count, ret))
		return;
	for (int i = 0; i < count; i++) {
		hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);

		if (!node)
			continue;
		ret[i].nics = pci_cards(topology, count == 1 ? -1 : i);
		ret[i].cpu_milli = (int64_t)hwloc_bitmap_weight(node->cpuset) * 1000;
		ret[i].cpus = processors_text(node, arena);
	}
	*ret_count = with_gpus(ret, (uint32_t)count);
}

int numa_find(const char *const *bus, uint32_t gpus, struct arena *arena,
	      struct numa_found ret[NODE_NUMA_MAX], uint32_t *ret_count, struct found *found,
	      struct err *err)
{
	hwloc_topology_t topology;
	int rc = 0;

	*ret_count = 0;
	for (uint32_t i = 0; i < NODE_NUMA_MAX; i++)
		ret[i] = (struct numa_found){ .cpus = "" };
	if (hwloc_topology_init(&topology) != 0)
		return err_set(err, ERR_INTERNAL, "the machine's topology can't be read");
	if (hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
	    hwloc_topology_load(topology) != 0)
		rc = err_set(err, ERR_UNAVAILABLE,
			     "the machine's devices can't be read: is /sys mounted?");
	else {
		topology_read(topology, bus, gpus, arena, ret, ret_count);
		pci_find(topology, bus, gpus, found);
	}
	hwloc_topology_destroy(topology);
	return rc;
}

/* --- declared --------------------------------------------------------------------------------------------------- */

/* Of the processors on which this program may run, number i of count equal parts; of few, one that others have too. */
static const char *own_processors(uint32_t i, uint32_t count, struct arena *arena)
{
	AUTO_BUF list = BUF_INIT;
	uint32_t room, seen = 0, first, end;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return "";
	room = (uint32_t)CPU_COUNT(&set);
	first = room < count ? i % room : i * room / count;
	end = room < count ? first + 1 : (i + 1) * room / count;
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		if (seen >= first && seen < end)
			buf_addf(&list, "%s%zu", seen > first ? "," : "", cpu);
		seen++;
	}
	return list.size < LIST_BYTES / 8 ? arena_strdup(arena, buf_text(&list)) : "";
}

void numa_simulate(uint32_t gpus, uint32_t count, int64_t cpu_milli, struct arena *arena,
		   struct numa_found ret[NODE_NUMA_MAX])
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first = i * gpus / count, end = (i + 1) * gpus / count;

		ret[i] = (struct numa_found){ .nics = 1,
					      .cpu_milli = cpu_milli / count,
					      .cpus = own_processors(i, count, arena) };
		for (uint32_t gpu = first; gpu < end; gpu++)
			ret[i].gpus |= UINT32_C(1) << gpu;
	}
}
