/* SPDX-License-Identifier: Apache-2.0 */
#include "node/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As in NVIDIA's nvml.h: results are ints (0 = success), devices opaque pointers. */
typedef void *nvml_device;
struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_more { /* nvmlMemory_v2_t */
	unsigned version;
	unsigned long long total, reserved, free, used;
};

struct nvml_pci { /* nvmlPciInfo_t of the third version */
	char old_bus[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};

struct nvml_process_row { /* nvmlProcessInfo_t of the third version */
	unsigned pid;
	unsigned long long bytes;
	unsigned gpu_instance, compute_instance;
};

/* What these calls answer beside 0. */
enum { NVML_TOO_SMALL = 7, NVML_P2P_NVLINK = 2, NVML_P2P_FINE = 0 };

struct nvml {
	void *library;
	int (*init)(void);
	int (*shutdown)(void);
	int (*driver_version)(char *out, unsigned size);
	int (*device_count)(unsigned *ret);
	int (*device_by_index)(unsigned index, nvml_device *ret);
	int (*device_name)(nvml_device device, char *out, unsigned size);
	int (*device_memory)(nvml_device device, struct nvml_memory *ret);
	const char *(*error_text)(int result);
	/* From here on: NULL = an old driver. */
	int (*device_pci)(nvml_device device, struct nvml_pci *ret);
	int (*cuda_version)(int *ret);
	int (*capability)(nvml_device device, int *ret_major, int *ret_minor);
	int (*common_ancestor)(nvml_device a, nvml_device b, unsigned *ret);
	int (*p2p_status)(nvml_device a, nvml_device b, int index, int *ret);
	int (*link_state)(nvml_device device, unsigned link, int *ret);
	int (*link_peer)(nvml_device device, unsigned link, struct nvml_pci *ret);
	int (*link_peer_type)(nvml_device device, unsigned link, int *ret);
	int (*pcie_generation)(nvml_device device, unsigned *ret);
	int (*pcie_width)(nvml_device device, unsigned *ret);
	int (*processes)(nvml_device device, unsigned *count, struct nvml_process_row *ret);
	int (*mps_processes)(nvml_device device, unsigned *count, struct nvml_process_row *ret);
	int (*graphics)(nvml_device device, unsigned *count, struct nvml_process_row *ret);
	int (*memory_more)(nvml_device device, struct nvml_memory_more *ret);
};

static void resolve_more(struct nvml *nvml)
{
	const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{ "nvmlDeviceGetPciInfo_v3", &nvml->device_pci },
		{ "nvmlSystemGetCudaDriverVersion_v2", &nvml->cuda_version },
		{ "nvmlDeviceGetCudaComputeCapability", &nvml->capability },
		{ "nvmlDeviceGetTopologyCommonAncestor", &nvml->common_ancestor },
		{ "nvmlDeviceGetP2PStatus", &nvml->p2p_status },
		{ "nvmlDeviceGetNvLinkState", &nvml->link_state },
		{ "nvmlDeviceGetNvLinkRemotePciInfo_v2", &nvml->link_peer },
		{ "nvmlDeviceGetNvLinkRemoteDeviceType", &nvml->link_peer_type },
		{ "nvmlDeviceGetMaxPcieLinkGeneration", &nvml->pcie_generation },
		{ "nvmlDeviceGetMaxPcieLinkWidth", &nvml->pcie_width },
		{ "nvmlDeviceGetComputeRunningProcesses_v3", &nvml->processes },
		{ "nvmlDeviceGetMPSComputeRunningProcesses_v3", &nvml->mps_processes },
		{ "nvmlDeviceGetGraphicsRunningProcesses_v3", &nvml->graphics },
		{ "nvmlDeviceGetMemoryInfo_v2", &nvml->memory_more },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *found = dlsym(nvml->library, wanted[i].name);

		memcpy(wanted[i].slot, &found, sizeof(found));
	}
}

static int resolve(struct nvml *nvml, struct err *err)
{
	const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{ "nvmlInit_v2", &nvml->init },
		{ "nvmlShutdown", &nvml->shutdown },
		{ "nvmlSystemGetDriverVersion", &nvml->driver_version },
		{ "nvmlDeviceGetCount_v2", &nvml->device_count },
		{ "nvmlDeviceGetHandleByIndex_v2", &nvml->device_by_index },
		{ "nvmlDeviceGetName", &nvml->device_name },
		{ "nvmlDeviceGetMemoryInfo", &nvml->device_memory },
		{ "nvmlErrorString", &nvml->error_text },
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *found = dlsym(nvml->library, wanted[i].name);
		if (!found)
			return err_set(
				err, ERR_UNSUPPORTED,
				"the NVIDIA driver's library has no %s: install a newer driver",
				wanted[i].name);
		memcpy(wanted[i].slot, &found,
		       sizeof(found)); /* POSIX: a function pointer fits in void * */
	}
	resolve_more(nvml);
	return 0;
}

static int nvml_failed(struct nvml *nvml, int result, const char *what, struct err *err)
{
	return err_set(err, ERR_UNAVAILABLE, "NVIDIA driver: %s: %s", what,
		       nvml->error_text(result));
}

int nvml_open(struct nvml **ret, struct err *err)
{
	const char *path = getenv("FAIRLEAD_NVML");
	void *library = dlopen(path && *path ? path : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return NVML_ABSENT;
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	if (!nvml)
		abort();
	nvml->library = library;
	int result = resolve(nvml, err);
	if (result == 0) {
		int answer = nvml->init();
		if (answer != 0)
			result = nvml_failed(nvml, answer, "it does not start", err);
	}
	if (result < 0) {
		dlclose(library);
		free(nvml);
		return result;
	}
	*ret = nvml;
	return 0;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml)
		return;
	nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

int nvml_driver(struct nvml *nvml, char out[NVML_NAME_MAX], struct err *err)
{
	int answer = nvml->driver_version(out, NVML_NAME_MAX);
	return answer ? nvml_failed(nvml, answer, "no driver version", err) : 0;
}

int nvml_count(struct nvml *nvml, uint32_t *ret, struct err *err)
{
	unsigned count = 0;
	int answer = nvml->device_count(&count);
	if (answer)
		return nvml_failed(nvml, answer, "GPUs can't be counted", err);
	*ret = count;
	return 0;
}

void nvml_bus(struct nvml *nvml, uint32_t index, char out[NVML_NAME_MAX])
{
	struct nvml_pci pci = { .text = "" };
	nvml_device device;

	out[0] = '\0';
	if (!nvml->device_pci || nvml->device_by_index(index, &device) != 0 ||
	    nvml->device_pci(device, &pci) != 0)
		return;
	snprintf(out, NVML_NAME_MAX, "%.31s", pci.text);
}

int nvml_gpu(struct nvml *nvml, uint32_t index, struct nvml_gpu *ret, struct err *err)
{
	nvml_device device;
	int answer = nvml->device_by_index(index, &device);
	if (answer)
		return nvml_failed(nvml, answer, "a GPU can't be opened", err);
	struct nvml_gpu gpu = { 0 };
	answer = nvml->device_name(device, gpu.name, sizeof(gpu.name));
	if (answer)
		return nvml_failed(nvml, answer, "a GPU does not tell its name", err);
	struct nvml_memory memory = { 0 };
	answer = nvml->device_memory(device, &memory);
	if (answer)
		return nvml_failed(nvml, answer, "a GPU does not tell its memory", err);
	gpu.memory_bytes = memory.total;
	*ret = gpu;
	return 0;
}

/* --- how GPUs are joined -------------------------------------------------------------------------------------------- */

void nvml_cuda(struct nvml *nvml, char out[NVML_NAME_MAX])
{
	int version = 0;

	out[0] = '\0';
	if (nvml->cuda_version && nvml->cuda_version(&version) == 0 && version > 0)
		snprintf(out, NVML_NAME_MAX, "%d.%d", version / 1000, version % 1000 / 10);
}

uint32_t nvml_capability(struct nvml *nvml, uint32_t index)
{
	nvml_device device;
	int major = 0, minor = 0;

	if (!nvml->capability || nvml->device_by_index(index, &device) != 0 ||
	    nvml->capability(device, &major, &minor) != 0 || major < 1 || major > 99 || minor < 0 ||
	    minor > 9)
		return 0;
	return (uint32_t)(major * 10 + minor);
}

int nvml_near(struct nvml *nvml, uint32_t a, uint32_t b)
{
	nvml_device first, second;
	unsigned level = 0;

	if (!nvml->common_ancestor || nvml->device_by_index(a, &first) != 0 ||
	    nvml->device_by_index(b, &second) != 0 ||
	    nvml->common_ancestor(first, second, &level) != 0 || level > NVML_NEAR_SYSTEM)
		return NVML_NEAR_UNKNOWN;
	return (int)level;
}

int nvml_joined(struct nvml *nvml, uint32_t a, uint32_t b)
{
	nvml_device first, second;
	int status = 0;

	if (!nvml->p2p_status || nvml->device_by_index(a, &first) != 0 ||
	    nvml->device_by_index(b, &second) != 0 ||
	    nvml->p2p_status(first, second, NVML_P2P_NVLINK, &status) != 0)
		return -1;
	return status == NVML_P2P_FINE;
}

int nvml_links(struct nvml *nvml, uint32_t index, struct nvml_link ret[NVML_LINKS_MAX])
{
	nvml_device device;
	int count = 0;
	bool answered = false;

	if (!nvml->link_state || !nvml->link_peer || nvml->device_by_index(index, &device) != 0)
		return -1;
	for (unsigned link = 0; link < NVML_LINKS_MAX; link++) {
		struct nvml_pci pci = { .text = "" };
		int up = 0, type = NVML_PEER_GPU;

		if (nvml->link_state(device, link, &up) != 0)
			continue;
		answered = true;
		if (!up)
			continue;
		if (nvml->link_peer(device, link, &pci) != 0)
			pci.text[0] = '\0';
		if (nvml->link_peer_type && nvml->link_peer_type(device, link, &type) != 0)
			type = NVML_PEER_GPU;
		ret[count].peer = type == NVML_PEER_SWITCH ? NVML_PEER_SWITCH
				  : type == NVML_PEER_GPU  ? NVML_PEER_GPU
							   : NVML_PEER_OTHER;
		snprintf(ret[count].bus, NVML_NAME_MAX, "%.31s", pci.text);
		count++;
	}
	return answered ? count : -1;
}

void nvml_pcie(struct nvml *nvml, uint32_t index, uint32_t *ret_generation, uint32_t *ret_width)
{
	nvml_device device;
	unsigned generation = 0, width = 0;

	*ret_generation = *ret_width = 0;
	if (!nvml->pcie_generation || !nvml->pcie_width ||
	    nvml->device_by_index(index, &device) != 0 ||
	    nvml->pcie_generation(device, &generation) != 0 ||
	    nvml->pcie_width(device, &width) != 0)
		return;
	*ret_generation = generation;
	*ret_width = width;
}

/* --- who uses them --------------------------------------------------------------------------------------------------- */

typedef int processes_ask(nvml_device device, unsigned *count, struct nvml_process_row *ret);

static int processes_add(processes_ask *ask, nvml_device device, struct nvml_process *ret,
			 int count)
{
	struct nvml_process_row rows[NVML_PROCESSES_MAX];
	unsigned room = NVML_PROCESSES_MAX;
	int answer = ask(device, &room, rows);

	if (answer != 0 && answer != NVML_TOO_SMALL)
		return -1;
	for (unsigned i = 0; answer == 0 && i < room && count < NVML_PROCESSES_MAX; i++) {
		int at = 0;

		while (at < count && ret[at].pid != (pid_t)rows[i].pid)
			at++;
		if (at < count)
			continue; /* told as one of MPS and by itself */
		ret[count++] =
			(struct nvml_process){ .pid = (pid_t)rows[i].pid,
					       .bytes =
						       rows[i].bytes == ~0ULL ? 0 : rows[i].bytes };
	}
	return count;
}

static int processes_told(struct nvml *nvml, nvml_device device)
{
	unsigned room = 0;
	int answer = nvml->processes(device, &room, NULL);

	return answer == 0 || answer == NVML_TOO_SMALL ? 0 : -1;
}

int nvml_processes(struct nvml *nvml, uint32_t index, struct nvml_process ret[NVML_PROCESSES_MAX])
{
	nvml_device device;
	int count, more;

	if (!nvml->processes || nvml->device_by_index(index, &device) != 0)
		return -1;
	if (!ret)
		return processes_told(nvml, device);
	count = processes_add(nvml->processes, device, ret, 0);
	if (count < 0 || !nvml->mps_processes)
		return count;
	more = processes_add(nvml->mps_processes, device, ret, count);
	return more < 0 ? count : more;
}

int nvml_graphics(struct nvml *nvml, uint32_t index, struct nvml_process ret[NVML_PROCESSES_MAX])
{
	nvml_device device;

	if (!nvml->graphics || nvml->device_by_index(index, &device) != 0)
		return -1;
	return processes_add(nvml->graphics, device, ret, 0);
}

int64_t nvml_used(struct nvml *nvml, uint32_t index)
{
	struct nvml_memory_more memory = { .version = (unsigned)sizeof(memory) | 2U << 24 };
	nvml_device device;

	if (!nvml->memory_more || nvml->device_by_index(index, &device) != 0 ||
	    nvml->memory_more(device, &memory) != 0 || memory.used > (uint64_t)INT64_MAX)
		return -1;
	return (int64_t)memory.used;
}
