/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who belongs to an attempt whose ranks leave and come, for shepherds in pods. It comes with the answer to a lease (shepherd_calls.c), to who says
 * which generation it knows, and knows an older one:
 *
 *	"world": {"generation": 2, "size": 3, "ranks": [0, 2, 3], "hosts": ["rank-0.fairlead-...", ...]}, "rank": 1
 *	"world": {...}, "rank": -1, "leave_ms": 30000		it is to leave
 *
 * What stands in `world` the shepherd hands on as it is. hosts: where each of them is reached, in the order of ranks.
 */
#include <inttypes.h>

#include "daemon/state.h"
#include "engine/kubernetes/manifest.h"

static bool is_member(const struct task *task)
{
	return task->state < TASK_EXITED && !task->leaving;
}

bool world_is_news(const struct facts *facts, uint64_t id, int64_t known)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });

	if (known == WORLD_UNASKED || (int64_t)attempt->generation <= known)
		return false;
	return attempt->generation || ranks_change(facts, job_get(facts, attempt->job));
}

static void ranks_add(const struct facts *facts, const struct attempt *attempt, struct buf *out)
{
	const char *comma = "";

	buf_adds(out, ", \"ranks\": [");
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		if (!is_member(task_get(facts, attempt, rank)))
			continue;
		buf_addf(out, "%s%u", comma, rank);
		comma = ", ";
	}
	buf_adds(out, "]");
}

static void hosts_add(struct daemon *d, const struct facts *facts, const struct attempt *attempt,
		      uint64_t id, struct buf *out)
{
	const struct manifest_site site = { .instance = d->instance };
	char host[MANIFEST_HOST_MAX];
	const char *comma = "";

	buf_adds(out, ", \"hosts\": [");
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct task *task = task_get(facts, attempt, rank);

		if (!is_member(task))
			continue;
		manifest_host(&site, attempt->job.v, id, rank, task->launch, host);
		buf_addf(out, "%s\"%s\"", comma, host);
		comma = ", ";
	}
	buf_adds(out, "]");
}

/* Until when it may take; who hears of it late has its time all the same. */
static int64_t leave_ms(const struct publication *publication, const struct attempt *attempt)
{
	const struct facts *facts = &publication->frozen.facts;
	const struct job *job = job_get(facts, attempt->job);
	int64_t now = publication->clock.event_ms + clock_boot_ms() - publication->clock.boot_ms,
		grace = job->grace_ms == UINT32_MAX ? facts->policy.grace_ms
						    : (int64_t)job->grace_ms,
		left = attempt->resized_ms + grace - now;

	return left < 0 ? 0 : left > grace ? grace : left;
}

void world_add(struct daemon *d, const struct publication *publication, uint64_t id, uint32_t rank,
	       struct buf *out)
{
	const struct facts *facts = &publication->frozen.facts;
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	uint32_t size = 0, before = 0;

	for (uint32_t i = 0; i < attempt->tasks; i++) {
		bool member = is_member(task_get(facts, attempt, i));

		size += member;
		before += member && i < rank;
	}
	buf_addf(out, ",\"world\":{\"generation\": %u, \"size\": %u", attempt->generation, size);
	ranks_add(facts, attempt, out);
	hosts_add(d, facts, attempt, id, out);
	if (is_member(task_get(facts, attempt, rank)))
		buf_addf(out, "},\"rank\":%u", before);
	else
		buf_addf(out, "},\"rank\":-1,\"leave_ms\":%" PRId64,
			 leave_ms(publication, attempt));
}
