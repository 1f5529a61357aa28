/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The few NVML calls we use, resolved from libnvidia-ml.so.1 at run time. A machine without a driver is no
 * error: nvml_open then answers NVML_ABSENT. Tests point FAIRLEAD_NVML at a library of their own.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

enum { NVML_ABSENT = 1, NVML_NAME_MAX = 96 };

struct nvml;

struct nvml_gpu {
	char name[NVML_NAME_MAX]; /* "NVIDIA H100 80GB HBM3" */
	uint64_t memory_bytes;
};

int nvml_open(struct nvml **ret, struct err *err) MUST_CHECK;
void nvml_close(struct nvml *nvml); /* NULL is fine */
int nvml_driver(struct nvml *nvml, char out[NVML_NAME_MAX], struct err *err) MUST_CHECK;
int nvml_count(struct nvml *nvml, uint32_t *ret, struct err *err) MUST_CHECK;
/* Its PCI address, "00000000:3B:00.0"; "" when the driver does not tell. */
void nvml_bus(struct nvml *nvml, uint32_t index, char out[NVML_NAME_MAX]);
int nvml_gpu(struct nvml *nvml, uint32_t index, struct nvml_gpu *ret, struct err *err) MUST_CHECK;
