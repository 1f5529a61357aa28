/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/by_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

struct member {
	const char *queue;
	uint32_t index; /* in the workload */
};

static int by_name(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	const int order = strcmp(x->queue, y->queue);

	return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

/* The members from `from` on that are of the same queue; `times` has room for three values of each. Where the next queue begins. */
static uint32_t queue_read(const struct outcome *o, const struct member *members, uint32_t from,
			   uint32_t count, double *times, struct queue_figures *ret)
{
	double *completion = times, *wait = times + count, *delay = wait + count;
	uint32_t i = from;

	*ret = (struct queue_figures){ .queue = members[from].queue };
	for (; i < count && strcmp(members[i].queue, ret->queue) == 0; i++) {
		const struct workload_job *asked = &o->workload->jobs[members[i].index];
		const struct outcome_job *got = &o->jobs[members[i].index];

		ret->jobs++;
		ret->evictions += got->evictions;
		ret->used_gpu_h += (double)got->used_ms / 3600000;
		if (got->end_ms < 0)
			continue;
		completion[ret->ended] = (double)(got->end_ms - asked->submit_ms) / 1000;
		wait[ret->ended] = (double)(got->start_ms - asked->submit_ms) / 1000;
		delay[ret->ended] = (double)(got->end_ms - asked->submit_ms - asked->run_ms) / 1000;
		ret->ended++;
	}
	ret->completion_s = spread_of(completion, ret->ended);
	ret->wait_s = spread_of(wait, ret->ended);
	ret->delay_s = spread_of(delay, ret->ended);
	return i;
}

uint32_t by_queue_make(const struct outcome *o, struct queue_figures **ret)
{
	const uint32_t count = o->workload->count;
	struct member *members = calloc(count, sizeof *members);
	double *times = calloc((size_t)count * 3, sizeof *times);
	uint32_t queues = 1, made = 0;

	CHECK(members && times && count);
	for (uint32_t i = 0; i < count; i++) {
		const char *queue = o->workload->jobs[i].queue;

		members[i] = (struct member){ *queue ? queue : "default", i };
	}
	qsort(members, count, sizeof *members, by_name);
	for (uint32_t i = 1; i < count; i++)
		queues += strcmp(members[i].queue, members[i - 1].queue) != 0;
	*ret = calloc(queues, sizeof **ret);
	CHECK(*ret);
	for (uint32_t i = 0; i < count;)
		i = queue_read(o, members, i, count, times, &(*ret)[made++]);
	free(members);
	free(times);
	return made;
}
