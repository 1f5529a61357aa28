/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who uses this machine's GPUs and was not started by Fairlead: processes that compute there and belong to no task that has the GPU, and
 * memory that no process has.
 *
 * A GPU that somebody else uses is taken: set aside with a reason that names who it is (core/model/taken.h), and back when they are gone. A
 * task that is there already is let alone. What is seen counts when it is seen at two looks, since processes and memory of a task that
 * ends may be there a moment longer; the first look of a daemon counts at once. A program that is another process at each look (a script that starts
 * it again and again) counts at three in a row.
 *
 * Left out: what Fairlead's tasks run; programs that serve or watch GPUs, and those that draw too, while they have less than 1 GiB. Memory is
 * told apart only where no task has the GPU and the driver tells how much each process has. A process that this machine does not show (it runs
 * in a namespace that is not ours) counts where no task has the GPU: elsewhere it may be the task's.
 */
#include "daemon/state.h"
#include "node/nvml.h"

struct gpu_strangers;

struct gpu_strangers *gpu_strangers_create(void);
void gpu_strangers_destroy(struct gpu_strangers *s); /* NULL is fine */
/* One look; what came of it goes to `mark`. */
typedef void gpus_mark_fn(void *context, uint32_t node, uint32_t mask, bool aside,
			  const char *reason);
/* They are back, each for the reason that it was set aside for, as the facts have it: by now it may be set aside for another one, and stays so then. */
void gpus_back_tell(const struct facts *f, struct node_id id, uint32_t mask, gpus_mark_fn *mark,
		    void *context);
void gpu_strangers_look(struct gpu_strangers *s, struct daemon *d, struct nvml *nvml,
			gpus_mark_fn *mark, void *context);
