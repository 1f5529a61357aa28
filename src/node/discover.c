/* SPDX-License-Identifier: Apache-2.0 */
#include "node/discover.h"

#include <ctype.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "node/links.h"
#include "node/numa.h"
#include "node/nvml.h"

enum { SIM_NODES_MAX = 4096, GPUS_MAX = 32, MODEL_MAX = 63 };

/* "NVIDIA H100 80GB HBM3" -> "H100-80GB": the words that carry the model, and the memory in whole GB. */
const char *node_model_name(const char *name, uint64_t memory_bytes, struct arena *arena)
{
	char copy[NVML_NAME_MAX];
	snprintf(copy, sizeof(copy), "%s", name);
	const char *model = "GPU";
	char *save = NULL;
	for (char *word = strtok_r(copy, " -", &save); word; word = strtok_r(NULL, " -", &save)) {
		bool letter = isalpha((unsigned char)word[0]) != 0;
		bool digit = word[strcspn(word, "0123456789")] != '\0';
		if (letter && digit && strncmp(word, "HBM", 3) != 0 &&
		    strncmp(word, "SXM", 3) != 0) {
			model = word;
			break;
		}
	}
	if (!memory_bytes)
		return arena_strdup(arena, model);
	uint64_t gb = (memory_bytes + 500000000ULL) / 1000000000ULL;
	uint64_t gib = (memory_bytes + ((uint64_t)1 << 29)) >> 30;
	/* Makers name 80 GB what NVML reports as 79.6 GiB or 85 GB: the even number nearest to either. */
	uint64_t shown = gib % 8 == 0 ? gib : (gib + 4) / 8 * 8;
	if (shown < 8)
		shown = gb;
	return arena_printf(arena, "%s-%luGB", model, (unsigned long)shown);
}

static int find_cores(struct node_found *node, struct err *err)
{
	hwloc_topology_t topology;
	if (hwloc_topology_init(&topology) != 0)
		return err_set(err, ERR_INTERNAL, "the machine's topology can't be read");
	if (hwloc_topology_load(topology) != 0) {
		hwloc_topology_destroy(topology);
		return err_set(err, ERR_UNAVAILABLE,
			       "the machine's topology can't be read: is /sys mounted?");
	}
	int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	hwloc_obj_t root = hwloc_get_root_obj(topology);
	node->cpu_milli = (cores > 0 ? cores : 1) * (int64_t)1000;
	node->ram_mib = (int64_t)(root->total_memory >> 20);
	hwloc_topology_destroy(topology);
	return 0;
}

/* GPUs must be of one kind. What several of them tell is the least of it: memory, compute capability. */
static int gpus_read(struct nvml *nvml, uint32_t count, struct node_found *node,
		     struct arena *arena, struct err *err)
{
	struct nvml_gpu first = { 0 }, gpu;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t capability = nvml_capability(nvml, i);

		if (nvml_gpu(nvml, i, &gpu, err) < 0)
			return -1;
		if (i == 0) {
			first = gpu;
			node->capability = capability;
		}
		if (strcmp(gpu.name, first.name) != 0)
			return err_set(
				err, ERR_UNSUPPORTED,
				"GPU 0 is \"%s\" and GPU %u is \"%s\": unlike GPUs in one machine are not supported yet",
				first.name, i, gpu.name);
		if (gpu.memory_bytes < first.memory_bytes)
			first.memory_bytes = gpu.memory_bytes;
		if (capability < node->capability)
			node->capability = capability;
	}
	if (count > 0) {
		node->model = node_model_name(first.name, first.memory_bytes, arena);
		node->gpu_memory_mib = (int64_t)(first.memory_bytes >> 20);
	}
	return 0;
}

static int driver_read(struct nvml *nvml, struct node_found *node, struct arena *arena,
		       struct err *err)
{
	char driver[NVML_NAME_MAX] = "", cuda[NVML_NAME_MAX], address[NVML_NAME_MAX];
	const char *bus[GPUS_MAX] = { "" };
	uint32_t count = 0;

	if (nvml_driver(nvml, driver, err) < 0 || nvml_count(nvml, &count, err) < 0)
		return -1;
	if (count > GPUS_MAX)
		return err_set(err, ERR_UNSUPPORTED, "this machine has %u GPUs, more than %d",
			       count, GPUS_MAX);
	if (gpus_read(nvml, count, node, arena, err) < 0)
		return -1;
	nvml_cuda(nvml, cuda);
	node->gpu_count = count;
	node->driver = arena_strdup(arena, driver);
	node->cuda = arena_strdup(arena, cuda);
	if (!count)
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		nvml_bus(nvml, i, address);
		bus[i] = arena_strdup(arena, address);
	}
	links_find(nvml, count, bus, &node->found);
	if (nvml_processes(nvml, 0, NULL) >= 0)
		node->found.given |= FOUND_PROCESSES;
	return numa_find(bus, count, arena, node->numa, &node->numa_count, &node->found, err);
}

static int find_gpus(struct node_found *node, struct arena *arena, const char **ret_remark,
		     struct err *err)
{
	struct nvml *nvml = NULL;
	int result = nvml_open(&nvml, err);

	if (result == NVML_ABSENT) {
		*ret_remark =
			"No NVIDIA driver was found, so this node has no GPUs and takes jobs with `gpus: 0` only. "
			"To try Fairlead out with simulated ones: --nodes sim:4x8xH100-80GB";
		return 0;
	}
	if (result < 0)
		return result;
	result = driver_read(nvml, node, arena, err);
	nvml_close(nvml);
	return result;
}

static int find_this_machine(struct arena *arena, struct nodes_found *ret, struct err *err)
{
	struct node_found *node = arena_new(arena, struct node_found);
	char host[256] = "";
	if (gethostname(host, sizeof(host) - 1) != 0 || !host[0])
		snprintf(host, sizeof(host), "localhost");
	host[MODEL_MAX] = '\0';
	node->name = arena_strdup(arena, host);
	node->model = node->driver = node->cuda = node->domains = "";
	const char *remark = "";
	if (find_cores(node, err) < 0 || find_gpus(node, arena, &remark, err) < 0)
		return -1;
	*ret = (struct nodes_found){ .nodes = node, .count = 1, .levels = "", .remark = remark };
	return 0;
}

/* --- simulated ---------------------------------------------------------------------------------- */

struct sim_part {
	int64_t nodes, gpus;
	const char *model;
	int64_t memory_mib;
	int64_t numa, islands,
		rack; /* NUMA nodes, NVLink islands, nodes of one rack; 0 = not said */
};

static int sim_bad(const char *spec, struct err *err)
{
	return err_set(
		err, ERR_INVALID,
		"nodes \"%s\" are not understood: write sim:NODESxGPUSxMODEL, for example sim:4x8xH100-80GB or sim:2x8xH100-80GB,1x4xA100-40GB, or with two NUMA nodes and two NVLink islands each and four nodes in a rack sim:8x8xH100-80GB/numa=2/islands=2/rack=4",
		spec);
}

static int64_t memory_from_model(const char *model)
{
	const char *dash = strrchr(model, '-');
	int64_t gb = 0;
	if (dash && sscanf(dash, "-%ldGB", &gb) == 1 && gb > 0 && gb <= 4096)
		return gb * 1024;
	return 80 * 1024;
}

/* What stands behind a model: "2", "numa=2", "islands=2", "rack=4". */
static int sim_word(const char *spec, const char *word, struct sim_part *part, struct err *err)
{
	const struct {
		const char *key, *what;
		int64_t most, *value;
	} words[] = {
		{ "numa=", "NUMA nodes, each with a GPU",
		  NODE_NUMA_MAX < part->gpus ? NODE_NUMA_MAX : part->gpus, &part->numa },
		{ "islands=", "NVLink islands, each with a GPU",
		  ISLANDS_MAX < part->gpus ? ISLANDS_MAX : part->gpus, &part->islands },
		{ "rack=", "nodes in a rack", SIM_NODES_MAX, &part->rack },
	};
	size_t at = 0;

	while (at < ARRAY_SIZE(words) && strncmp(word, words[at].key, strlen(words[at].key)) != 0)
		at++;
	const char *number = at < ARRAY_SIZE(words) ? word + strlen(words[at].key) : word;
	if (at == ARRAY_SIZE(words))
		at = 0;
	if (*words[at].value || parse_int(number, 1, words[at].most, words[at].value, NULL) < 0)
		return err_set(err, ERR_INVALID, "nodes \"%s\": \"/%s\": 1 to %d %s, said once",
			       spec, word, (int)words[at].most, words[at].what);
	return 0;
}

/* GPUs in so many equal runs. */
static void sim_islands(uint32_t gpus, uint32_t count, struct found *ret)
{
	ret->given |= count ? FOUND_ISLANDS : 0;
	for (uint32_t i = 0; count > 1 && i < count; i++)
		for (uint32_t gpu = i * gpus / count; gpu < (i + 1) * gpus / count; gpu++)
			ret->island[i] |= UINT32_C(1) << gpu;
}

static int sim_part(const char *spec, char *text, struct arena *arena, struct sim_part *ret,
		    struct err *err)
{
	char *save = NULL;
	char *nodes = strtok_r(text, "x", &save);
	char *gpus = strtok_r(NULL, "x", &save);
	char *model = save;
	if (!nodes || !gpus || !model || !*model)
		return sim_bad(spec, err);
	if (parse_int(nodes, 1, SIM_NODES_MAX, &ret->nodes, NULL) < 0 ||
	    parse_int(gpus, 0, GPUS_MAX, &ret->gpus, NULL) < 0)
		return err_set(err, ERR_INVALID, "nodes \"%s\": 1 to %d nodes of 0 to %d GPUs each",
			       spec, SIM_NODES_MAX, GPUS_MAX);
	char *word = strchr(model, '/');
	if (word)
		*word++ = '\0';
	for (char *at = word; at;) {
		char *next = strchr(at, '/');

		if (next)
			*next++ = '\0';
		if (sim_word(spec, at, ret, err) < 0)
			return -1;
		at = next;
	}
	if (parse_name(model, "GPU model", err) < 0)
		return -1;
	ret->model = arena_strdup(arena, model);
	ret->memory_mib = memory_from_model(model);
	return 0;
}

static int find_simulated(const char *spec, struct arena *arena, struct nodes_found *ret,
			  struct err *err)
{
	char *text = arena_strdup(arena, spec + strlen("sim:"));
	uint32_t racks = 0;
	bool racked = false;
	struct node_found *nodes = arena_new_array(arena, struct node_found, SIM_NODES_MAX);
	uint32_t count = 0;
	char *save = NULL;
	for (char *piece = strtok_r(text, ",", &save); piece; piece = strtok_r(NULL, ",", &save)) {
		struct sim_part part = { 0 };
		if (sim_part(spec, piece, arena, &part, err) < 0)
			return -1;
		for (int64_t i = 0; i < part.nodes; i++) {
			if (count == SIM_NODES_MAX)
				return err_set(err, ERR_INVALID, "nodes \"%s\": more than %d nodes",
					       spec, SIM_NODES_MAX);
			nodes[count] = (struct node_found){
				.name = arena_printf(arena, "node%u", count),
				.model = part.gpus ? part.model : "",
				.driver = "",
				.cuda = "",
				.found.source = SOURCE_DECLARED,
				.domains = part.rack
						   ? arena_printf(arena, "r%u",
								  racks + (uint32_t)(i / part.rack))
						   : "",
				.gpu_count = (uint32_t)part.gpus,
				.gpu_memory_mib = part.memory_mib,
				.cpu_milli = (part.gpus ? part.gpus * 8 : 16) * 1000,
				.ram_mib = (part.gpus ? part.gpus : 1) * 65536,
				.simulated = true,
				.numa_count = (uint32_t)part.numa,
			};
			numa_simulate((uint32_t)part.gpus, (uint32_t)part.numa,
				      nodes[count].cpu_milli, arena, nodes[count].numa);
			sim_islands((uint32_t)part.gpus, (uint32_t)part.islands,
				    &nodes[count].found);
			count++;
		}
		racked = racked || part.rack;
		if (part.rack)
			racks += (uint32_t)((part.nodes + part.rack - 1) / part.rack);
	}
	if (count == 0)
		return sim_bad(spec, err);
	*ret = (struct nodes_found){
		.nodes = nodes,
		.count = count,
		.levels = racked ? "rack" : "",
		.remark =
			"The nodes are simulated: processes are real and run on this machine, the GPUs are not there.",
	};
	return 0;
}

int nodes_find(const char *spec, struct arena *arena, struct nodes_found *ret, struct err *err)
{
	if (!spec || !*spec)
		return find_this_machine(arena, ret, err);
	if (strncmp(spec, "sim:", 4) == 0)
		return find_simulated(spec, arena, ret, err);
	return sim_bad(spec, err);
}
