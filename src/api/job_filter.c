/* SPDX-License-Identifier: Apache-2.0 */
#include "api/job_filter.h"

#include <string.h>
#include "api/tally.h"
#include "base/check.h"
#include "base/parse.h"

static int states_read(const char *text, struct arena *arena, uint32_t *ret, struct err *err)
{
	const char *words[JOB_STATES - JOB_QUEUED];

	for (int i = JOB_QUEUED; i < JOB_STATES; i++)
		words[i - JOB_QUEUED] = job_state_name((uint8_t)i);
	*ret = 0;
	while (*text) {
		const size_t size = strcspn(text, ",");
		const char *word = arena_strndup(arena, text, size), *hint;
		uint8_t state;

		if (!job_state_find(word, &state)) {
			hint = spelling_hint(word, words, ARRAY_SIZE(words));
			return err_set(err, ERR_INVALID, "there is no job state \"%.40s\"%s%s%s",
				       word, hint ? "; did you mean \"" : "", hint ? hint : "",
				       hint ? "\"" : "");
		}
		*ret |= 1u << state;
		text += size + (text[size] == ',');
	}
	return 0;
}

static struct name_id name_asked(const struct call *call, const char *query, bool *ret_nothing)
{
	const char *text = call_query(call, query);
	struct name_id id = { 0 };

	if (!text)
		return id;
	id = facts_name_find(call->facts, text);
	if (!id.v)
		*ret_nothing = true;
	return id;
}

/* Whose, and of which array. */
static int filter_read_more(struct call *call, struct job_filter *ret, struct err *err)
{
	const int64_t array = call_query_int(call, "array", 0);

	if (array < 0 || array > UINT32_MAX)
		return err_set(err, ERR_INVALID, "?array=%lld: expected the number of a job",
			       (long long)array);
	ret->array = (uint32_t)array;
	if (!call_query_int(call, "mine", 0))
		return 0;
	if (ret->user.v || call_query_given(call, "user"))
		return err_set(err, ERR_INVALID,
			       "?mine=1 and ?user= contradict each other; leave one of them out");
	ret->user = facts_name_find(call->facts, call->caller.user);
	ret->nothing = ret->nothing || !ret->user.v;
	return 0;
}

int job_filter_read(struct call *call, struct job_filter *ret, struct err *err)
{
	const char *states = call_query(call, "state"), *queue = call_query(call, "queue");

	memset(ret, 0, sizeof *ret);
	ret->states = UINT32_MAX;
	if (states && states_read(states, call->arena, &ret->states, err) < 0)
		return -(int)ERR_INVALID;
	ret->user = name_asked(call, "user", &ret->nothing);
	ret->team = name_asked(call, "team", &ret->nothing);
	ret->name = name_asked(call, "name", &ret->nothing);
	if (queue) {
		ret->queue = facts_queue_find(call->facts, queue);
		ret->nothing = ret->nothing || !ret->queue.v;
	}
	return filter_read_more(call, ret, err);
}

bool job_filter_takes(const struct job_filter *filter, const struct job *job)
{
	return job->submitted_ms && (filter->states >> job->state & 1) &&
	       (!filter->user.v || filter->user.v == job->user.v) &&
	       (!filter->team.v || filter->team.v == job->team.v) &&
	       (!filter->name.v || filter->name.v == job->name.v) &&
	       (!filter->queue.v || filter->queue.v == job->queue.v) &&
	       (!filter->array || filter->array == job->array_first) &&
	       (!job_state_is_final(job->state) ||
		(!filter->open && job->state_ms > filter->ended_after_ms));
}
