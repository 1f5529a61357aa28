/* SPDX-License-Identifier: Apache-2.0 */
/* A library with NVML's entry points for tests: four GPUs, or what FAKE_NVML_MIXED and FAKE_NVML_BROKEN ask for. */
#include <stdio.h>
#include <stdlib.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
int nvmlDeviceGetName(void *device, char *out, unsigned size);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *ret);
int nvmlDeviceGetPciInfo_v3(void *device, void *ret);
const char *nvmlErrorString(int result);

int nvmlInit_v2(void)
{
	return getenv("FAKE_NVML_BROKEN") ? 9 : 0;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
	snprintf(out, size, "550.54.14");
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
	*ret = 4;
	return 0;
}

static char devices[4];

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
	*ret = &devices[index % 4];
	return 0;
}

int nvmlDeviceGetName(void *device, char *out, unsigned size)
{
	int odd = device == &devices[3] && getenv("FAKE_NVML_MIXED");
	snprintf(out, size, "%s", odd ? "NVIDIA A100-SXM4-40GB" : "NVIDIA H100 80GB HBM3");
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *ret)
{
	(void)device;
	ret[0] = 85520809984ULL;
	ret[1] = ret[2] = 0;
	return 0;
}

/* Two on each of two roots, as testing/two_numa.xml has them. */
int nvmlDeviceGetPciInfo_v3(void *device, void *ret)
{
	static const char *const buses[] = { "10", "11", "90", "91" };
	struct {
		char old_bus[16];
		unsigned numbers[5];
		char text[32];
	} *pci = ret;

	snprintf(pci->text, sizeof(pci->text), "00000000:%s:00.0", buses[(char *)device - devices]);
	return 0;
}

const char *nvmlErrorString(int result)
{
	return result == 9 ? "Driver Not Loaded" : "Unknown Error";
}
