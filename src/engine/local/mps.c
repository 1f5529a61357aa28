/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/mps.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* The control daemon leaves its pid beside its pipes; the file may outlive it. */
bool mps_runs(char ret_pipes[PATH_MAX])
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");
	char path[PATH_MAX];
	int pid = 0;

	if (!folder || !*folder)
		folder = "/tmp/nvidia-mps";
	if (snprintf(ret_pipes, PATH_MAX, "%s", folder) >= PATH_MAX ||
	    snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", folder) >= PATH_MAX)
		return false;
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	bool told = fscanf(file, "%d", &pid) == 1 && pid > 1;
	fclose(file);
	return told && (kill(pid, 0) == 0 || errno == EPERM);
}
