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

struct nvml_pci { /* nvmlPciInfo_t of the third version */
	char old_bus[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};

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
	int (*device_pci)(nvml_device device, struct nvml_pci *ret); /* NULL = an old driver */
};

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
	void *pci = dlsym(nvml->library, "nvmlDeviceGetPciInfo_v3");
	memcpy(&nvml->device_pci, &pci, sizeof(pci));
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
