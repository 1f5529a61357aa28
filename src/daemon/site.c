/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/site.h"

#include "base/arena.h"
#include "sim/scenario_file.h"

static void node_fill(const struct scenario_node *from, struct node_found *ret)
{
	*ret = (struct node_found){
		.name = from->name,
		.model = from->gpus ? from->model : "",
		.driver = from->driver,
		.cuda = from->cuda,
		.capability = (uint32_t)from->capability,
		.gpu_count = from->gpus,
		.gpu_memory_mib = from->gpu_memory_mib,
		.cpu_milli = from->cpu_milli,
		.ram_mib = from->ram_mib,
		.simulated = true,
		.domains = from->domains,
		.found = { .given = from->island_count ? FOUND_ISLANDS : 0, .source = SOURCE_FILE },
		.numa_count = from->numa_count,
	};
	for (uint32_t i = 0; i < from->island_count; i++)
		ret->found.island[i] = (uint32_t)from->islands[i];
	for (uint32_t i = 0; i < from->numa_count; i++)
		ret->numa[i] = (struct numa_found){ .gpus = (uint32_t)from->numa_gpus[i],
						    .cpu_milli = from->numa_cpu_milli[i],
						    .nics = (uint32_t)from->numa_nics[i],
						    .cpus = "" };
}

int site_find(const char *path, struct arena *arena, struct nodes_found *ret,
	      const struct scenario **ret_site, struct err *err)
{
	struct scenario *site = arena_new(arena, struct scenario);
	int rc = scenario_site_file_read(path, arena, site, err);

	if (rc < 0)
		return rc;
	*ret = (struct nodes_found){
		.nodes = arena_new_array(arena, struct node_found, site->node_count),
		.count = site->node_count,
		.levels = site->levels,
		.levels_hold = true,
		.remark =
			site->queue_count
				? "The nodes are simulated, as the cluster file has them: processes are real and run on this machine, the GPUs are not there. Its queues and policy were not taken: `fairlead queues set`, `fairlead policy set`."
				: "The nodes are simulated, as the cluster file has them: processes are real and run on this machine, the GPUs are not there.",
	};
	for (uint32_t i = 0; i < site->node_count; i++)
		node_fill(&site->nodes[i], &ret->nodes[i]);
	*ret_site = site;
	return 0;
}
