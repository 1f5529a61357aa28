/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * NVIDIA's Multi-Process Service: where its control daemon runs, the driver keeps a program within a bound of GPU memory and a part of
 * the GPU's threads, both named in the program's environment. Fairlead does not start it: whether it runs is the administrator's choice.
 */
#include <stdbool.h>
#include <limits.h>

/* The folder of its pipes, when a control daemon lives there: CUDA_MPS_PIPE_DIRECTORY of this process, else /tmp/nvidia-mps. */
bool mps_runs(char ret_pipes[PATH_MAX]);
