/* SPDX-License-Identifier: Apache-2.0 */
#include "api/past.h"

#include <stdlib.h>

#include "base/check.h"

enum { PAGE = 500, PAGES_MAX = 200 };

struct revival {
	struct facts *facts;
	struct arena *arena;
	uint64_t seq; /* newest applied */
	uint32_t rows;
};

bool job_is_past(const struct call *call, struct job_id id)
{
	return id.v && id.v <= call->facts->jobs.count && !job_is_there(call->facts, id.v) &&
	       (call->route->id == ROUTE_job_show || call->route->id == ROUTE_job_history ||
		call->route->id == ROUTE_job_spec || call->route->id == ROUTE_job_explain ||
		call->route->id == ROUTE_job_logs);
}

static int take_row(void *context, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
		    size_t size)
{
	struct revival *revival = context;
	struct event event;
	struct err err;

	revival->rows++;
	if (seq <= revival->seq)
		return 0;
	revival->facts->seq = seq - 1;
	revival->seq = seq;
	/* A row that does not read is a record of a later release: shown as far as we know. */
	if (event_decode(kind, seq, time_ms, text, size, revival->arena, &event, &err) == 0)
		apply(revival->facts, &event);
	return 0;
}

int call_revive(struct call *call, struct job_id id, struct err *err)
{
	const struct api_backend *backend = call->api->backend;
	struct revival revival = { .arena = call->arena };
	int result = 0;

	if (!backend->submission)
		return 0;
	revival.facts = malloc(sizeof *revival.facts);
	CHECK(revival.facts);
	facts_revive(call->facts, revival.facts);
	result = backend->submission(backend->context, id.v, &revival, take_row, err);
	for (uint32_t page = 0; result == 0 && revival.rows && page < PAGES_MAX; page++) {
		revival.rows = 0;
		result = backend->history(backend->context, id.v, revival.seq, PAGE, &revival,
					  take_row, err);
	}
	revival.facts->now_ms = call->facts->now_ms;
	revival.facts->seq = call->facts->seq;
	call->past = revival.facts;
	call->facts = call->past;
	return result;
}
