/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with NVML's entry points, for tests. Without a word it has four GPUs of one kind, two on each of two host bridges as
 * testing/two_numa.xml has them, without NVLink. FAKE_NVML_STATE names a file that says otherwise; it is read anew at each start of the
 * library and at each list of processes:
 *
 *	driver 550.54.14
 *	cuda 12040
 *	gpus 8
 *	name NVIDIA H100 80GB HBM3
 *	odd 3 NVIDIA A100-SXM4-40GB	GPU 3 has another name
 *	memory 85520809984
 *	capability 9 0
 *	bus 0 00000000:10:00.0
 *	switched 18			each GPU has 18 NVLinks to switches
 *	link 0 1 4			four NVLinks between GPUs 0 and 1
 *	blind				no link tells what it ends at
 *	apart 0 1			the two do not reach each other over NVLink
 *	silent				the driver does not tell how near GPUs are
 *	near 0 1 10			common ancestor of two GPUs; of others 40
 *	pcie 5 16
 *	process 0 1234 1073741824	on GPU 0, with so many bytes
 *	graphics 0 1234 1073741824	one that draws on it
 *	turns 0				each list of the processes that compute on GPU 0 names one of them, the next time another
 *	used 0 1073741824		memory of GPU 0 in use
 *	broken 18			the library does not start, with this code
 *	lost 2				GPU 2 does not answer
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	GPUS = 32,
	LINKS = 18,
	PROCESSES = 64,
	INVALID = 2,
	UNSUPPORTED = 3,
	TOO_SMALL = 7,
	LOST = 15
};

struct process {
	unsigned gpu, pid;
	unsigned long long bytes;
	int draws;
};

static struct {
	char driver[96], name[96], odd_name[96];
	int cuda, broken, odd, lost, major, minor, blind, silent;
	unsigned gpus, switched, generation, width;
	unsigned long long memory, used[GPUS];
	char bus[GPUS][32];
	unsigned link[GPUS][GPUS], apart[GPUS][GPUS], near[GPUS][GPUS];
	struct process process[PROCESSES];
	unsigned processes;
	int turns[GPUS];
} s;

static char devices[GPUS];

static void defaults(void)
{
	static const char *const buses[] = { "10", "11", "90", "91" };

	memset(&s, 0, sizeof(s));
	snprintf(s.driver, sizeof(s.driver), "550.54.14");
	snprintf(s.name, sizeof(s.name), "NVIDIA H100 80GB HBM3");
	s.cuda = 12040;
	s.gpus = 4;
	s.memory = 85520809984ULL;
	s.major = 9;
	s.odd = s.lost = -1;
	for (int i = 0; i < GPUS; i++)
		snprintf(s.bus[i], sizeof(s.bus[i]), "00000000:%s:%02X.0", i < 4 ? buses[i] : "A0",
			 i < 4 ? 0 : i);
}

static void line_read(const char *line)
{
	unsigned a = 0, b = 0, c = 0;
	unsigned long long bytes = 0;
	char text[96] = "";

	if (sscanf(line, "name %95[^\n]", text) == 1)
		snprintf(s.name, sizeof(s.name), "%s", text);
	else if (sscanf(line, "odd %u %95[^\n]", &a, text) == 2) {
		s.odd = (int)a;
		snprintf(s.odd_name, sizeof(s.odd_name), "%s", text);
	} else if (sscanf(line, "bus %u %31s", &a, text) == 2 && a < GPUS)
		snprintf(s.bus[a], sizeof(s.bus[a]), "%.31s", text);
	else if (sscanf(line, "link %u %u %u", &a, &b, &c) == 3 && a < GPUS && b < GPUS)
		s.link[a][b] = s.link[b][a] = c;
	else if (sscanf(line, "apart %u %u", &a, &b) == 2 && a < GPUS && b < GPUS)
		s.apart[a][b] = s.apart[b][a] = 1;
	else if (sscanf(line, "near %u %u %u", &a, &b, &c) == 3 && a < GPUS && b < GPUS)
		s.near[a][b] = s.near[b][a] = c;
	else if (sscanf(line, "process %u %u %llu", &a, &b, &bytes) == 3 && s.processes < PROCESSES)
		s.process[s.processes++] = (struct process){ a, b, bytes, 0 };
	else if (sscanf(line, "graphics %u %u %llu", &a, &b, &bytes) == 3 &&
		 s.processes < PROCESSES)
		s.process[s.processes++] = (struct process){ a, b, bytes, 1 };
	else if (sscanf(line, "turns %u", &a) == 1 && a < GPUS)
		s.turns[a] = 1;
	else if (sscanf(line, "used %u %llu", &a, &bytes) == 2 && a < GPUS)
		s.used[a] = bytes;
	else if (strncmp(line, "blind", 5) == 0)
		s.blind = 1;
	else if (strncmp(line, "silent", 6) == 0)
		s.silent = 1;
	else if (sscanf(line, "driver %95s", s.driver) == 1 ||
		 sscanf(line, "cuda %d", &s.cuda) == 1 || sscanf(line, "gpus %u", &s.gpus) == 1 ||
		 sscanf(line, "memory %llu", &s.memory) == 1 ||
		 sscanf(line, "capability %d %d", &s.major, &s.minor) == 2 ||
		 sscanf(line, "switched %u", &s.switched) == 1 ||
		 sscanf(line, "pcie %u %u", &s.generation, &s.width) == 2 ||
		 sscanf(line, "broken %d", &s.broken) == 1 || sscanf(line, "lost %d", &s.lost) == 1)
		return;
}

static void state_read(void)
{
	const char *path = getenv("FAKE_NVML_STATE");
	FILE *file = path && *path ? fopen(path, "re") : NULL;
	char line[256];

	defaults();
	while (file && fgets(line, sizeof(line), file))
		line_read(line);
	if (file)
		fclose(file);
}

static unsigned index_of(const void *device)
{
	return (unsigned)((const char *)device - devices);
}

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlSystemGetDriverVersion(char *out, unsigned size);
int nvmlSystemGetCudaDriverVersion_v2(int *ret);
int nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
int nvmlDeviceGetName(void *device, char *out, unsigned size);
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *ret);
int nvmlDeviceGetPciInfo_v3(void *device, void *ret);
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *ret);
int nvmlDeviceGetP2PStatus(void *a, void *b, int what, int *ret);
int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *ret);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, void *ret);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *ret);
int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *ret);
int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *ret);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *ret);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, void *ret);
int nvmlDeviceGetMemoryInfo_v2(void *device, void *ret);
const char *nvmlErrorString(int result);

int nvmlInit_v2(void)
{
	state_read();
	return s.broken;
}

int nvmlShutdown(void)
{
	return 0;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size)
{
	snprintf(out, size, "%s", s.driver);
	return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
	*ret = s.cuda;
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
	*ret = s.gpus;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
	if (index >= s.gpus || index >= GPUS)
		return INVALID;
	if ((int)index == s.lost)
		return LOST;
	*ret = &devices[index];
	return 0;
}

int nvmlDeviceGetName(void *device, char *out, unsigned size)
{
	snprintf(out, size, "%s", (int)index_of(device) == s.odd ? s.odd_name : s.name);
	return 0;
}

int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *ret)
{
	(void)device;
	ret[0] = s.memory;
	ret[1] = ret[2] = 0;
	return 0;
}

struct pci {
	char old_bus[16];
	unsigned numbers[5];
	char text[32];
};

int nvmlDeviceGetPciInfo_v3(void *device, void *ret)
{
	snprintf(((struct pci *)ret)->text, 32, "%s", s.bus[index_of(device)]);
	return 0;
}

int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
	(void)device;
	*major = s.major;
	*minor = s.minor;
	return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(void *a, void *b, unsigned *ret)
{
	unsigned near = s.near[index_of(a)][index_of(b)];

	*ret = near ? near : 40;
	return s.silent ? UNSUPPORTED : 0;
}

int nvmlDeviceGetP2PStatus(void *a, void *b, int what, int *ret)
{
	unsigned x = index_of(a), y = index_of(b);

	if (what != 2)
		return UNSUPPORTED;
	*ret = (s.switched || s.link[x][y]) && !s.apart[x][y] ? 0 : 3;
	return 0;
}

/* Number of the GPU at the other end of a link, GPUS = a switch, -1 = there is no such link. */
static int peer_of(unsigned gpu, unsigned link)
{
	for (unsigned other = 0; other < GPUS; other++) {
		if (link < s.link[gpu][other])
			return (int)other;
		link -= s.link[gpu][other];
	}
	return link < s.switched ? GPUS : -1;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *ret)
{
	if (link >= LINKS)
		return INVALID;
	*ret = peer_of(index_of(device), link) >= 0;
	return 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, void *ret)
{
	int peer = peer_of(index_of(device), link);

	if (peer < 0)
		return INVALID;
	snprintf(((struct pci *)ret)->text, 32, "%s",
		 s.blind || peer == GPUS ? "00000000:00:00.0" : s.bus[peer]);
	return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *ret)
{
	int peer = peer_of(index_of(device), link);

	if (peer < 0)
		return INVALID;
	*ret = s.blind ? 255 : peer == GPUS ? 2 : 0;
	return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(void *device, unsigned *ret)
{
	(void)device;
	*ret = s.generation;
	return s.generation ? 0 : UNSUPPORTED;
}

int nvmlDeviceGetMaxPcieLinkWidth(void *device, unsigned *ret)
{
	(void)device;
	*ret = s.width;
	return s.width ? 0 : UNSUPPORTED;
}

/* How many lists were told in turns before. A file has it: the library may be loaded anew for each. */
static unsigned turns_before(void)
{
	char path[4096];
	unsigned count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s.turns", getenv("FAKE_NVML_STATE"));
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%u", &count) != 1)
			count = 0;
		fclose(file);
	}
	file = fopen(path, "we");
	if (file) {
		fprintf(file, "%u\n", count + 1);
		fclose(file);
	}
	return count;
}

static int processes_tell(const void *device, unsigned *count, void *ret, int draws)
{
	struct row {
		unsigned pid;
		unsigned long long bytes;
		unsigned gpu_instance, compute_instance;
	} *rows = ret;
	unsigned room = *count, found = 0;

	state_read();
	for (unsigned i = 0; i < s.processes; i++) {
		if (s.process[i].gpu != index_of(device) || s.process[i].draws != draws)
			continue;
		if (found < room)
			rows[found] = (struct row){ s.process[i].pid, s.process[i].bytes, 0, 0 };
		found++;
	}
	*count = found;
	if (found > room)
		return TOO_SMALL;
	if (found && !draws && s.turns[index_of(device)]) {
		rows[0] = rows[turns_before() % found];
		*count = 1;
	}
	return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *ret)
{
	return processes_tell(device, count, ret, 0);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, void *ret)
{
	return processes_tell(device, count, ret, 1);
}

int nvmlDeviceGetMemoryInfo_v2(void *device, void *ret)
{
	struct {
		unsigned version;
		unsigned long long total, reserved, free, used;
	} *memory = ret;

	if (memory->version != (sizeof(*memory) | 2U << 24))
		return INVALID;
	state_read();
	memory->total = s.memory;
	memory->used = s.used[index_of(device)];
	memory->reserved = 0;
	memory->free = s.memory - memory->used;
	return 0;
}

const char *nvmlErrorString(int result)
{
	return result == 9    ? "Driver Not Loaded"
	       : result == 18 ? "Driver/library version mismatch"
	       : result == 15 ? "GPU is lost"
			      : "Unknown Error";
}
