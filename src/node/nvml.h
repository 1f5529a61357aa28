/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The few NVML calls we use, resolved from libnvidia-ml.so.1 at run time. A machine without a driver is no
 * error: nvml_open then answers NVML_ABSENT. Tests point FAIRLEAD_NVML at a library of their own.
 *
 * Calls that an older driver does not have, and those that a GPU does not answer, are no errors either: what they would
 * have told is not known.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"

enum {
	NVML_ABSENT = 1,
	NVML_NAME_MAX = 96,
	NVML_LINKS_MAX = 36, /* NVLinks of one GPU */
	NVML_PROCESSES_MAX = 1024 /* of one GPU */
};

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

/* The newest CUDA that the driver serves, "12.4"; "" = it does not tell. */
void nvml_cuda(struct nvml *nvml, char out[NVML_NAME_MAX]);
/* Compute capability in tenths, 90 for 9.0; 0 = not told. */
uint32_t nvml_capability(struct nvml *nvml, uint32_t index);

/* How near two GPUs are over PCIe; the numbers are NVML's. */
enum nvml_near {
	NVML_NEAR_UNKNOWN = -1,
	NVML_NEAR_BOARD = 0,
	NVML_NEAR_SWITCH = 10, /* one PCIe switch */
	NVML_NEAR_SWITCHES = 20, /* several, but no host bridge */
	NVML_NEAR_BRIDGE = 30, /* one host bridge */
	NVML_NEAR_NUMA = 40, /* one NUMA node */
	NVML_NEAR_SYSTEM = 50
};
int nvml_near(struct nvml *nvml, uint32_t a, uint32_t b);
/* 1: the driver lets the two reach each other over NVLink; 0: it does not; -1: it does not tell. */
int nvml_joined(struct nvml *nvml, uint32_t a, uint32_t b);

enum nvml_peer { NVML_PEER_GPU, NVML_PEER_OTHER, NVML_PEER_SWITCH };
struct nvml_link {
	enum nvml_peer peer;
	char bus[NVML_NAME_MAX]; /* of the peer, "" = not told */
};
/* The GPU's NVLinks that are up; -1: the GPU has none, or does not tell. */
int nvml_links(struct nvml *nvml, uint32_t index, struct nvml_link ret[NVML_LINKS_MAX]);
/* Greatest PCIe generation and width of the GPU in this slot; 0 = not told. */
void nvml_pcie(struct nvml *nvml, uint32_t index, uint32_t *ret_generation, uint32_t *ret_width);

struct nvml_process {
	pid_t pid;
	uint64_t bytes; /* of GPU memory; 0 = not told */
};
/* Processes that compute on the GPU, each once, at most NVML_PROCESSES_MAX; -1: the driver does not tell. ret NULL: only whether it does. */
int nvml_processes(struct nvml *nvml, uint32_t index, struct nvml_process ret[NVML_PROCESSES_MAX]);
/* The same of those that draw on it, as display servers do. One that does both is in both lists. */
int nvml_graphics(struct nvml *nvml, uint32_t index, struct nvml_process ret[NVML_PROCESSES_MAX]);
/* Memory in use, without what the driver keeps for itself; -1: it does not tell. */
int64_t nvml_used(struct nvml *nvml, uint32_t index);
