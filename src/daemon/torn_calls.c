/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints that are not good any more where the pods are (docs/decisions/0022). The daemon can't see their volumes, so each shepherd looks at
 * what its task is to resume from, before it starts, and says here what it misses:
 *
 *	POST /pods/v1/attempts/ATTEMPT/ranks/RANK/torn	{"number": 7, "bytes": 100}; without bytes: it is not there, or can't be read
 *
 * Its attempt ends then. That is kept here until the next attempt of the job looks for its checkpoint (resume.c), which makes it void and takes
 * the one before. What is forgotten meanwhile, by a daemon that starts anew or because many are said, the next shepherd says again.
 *
 * A rank that begins late may say it of one that others have left behind, which a job that keeps its newest alone has removed. Nothing is kept
 * then: the next attempt goes on from the newer one, and should that be bad, the shepherds look at this one again.
 */
#include <inttypes.h>

#include "base/check.h"
#include "base/json.h"
#include "daemon/state.h"

static int torn_read(struct http_request *request, int64_t *ret_number, int64_t *ret_bytes,
		     struct err *err)
{
	struct json_reader r;
	struct json_slice key;
	size_t size;
	const char *body = http_body(request, &size);

	pull_init(&r, body, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "number"))
			pull_int(&r, ret_number);
		else if (pull_key_is(&key, "bytes"))
			pull_int(&r, ret_bytes);
		else
			pull_skip(&r);
	}
	if (!r.problem && (*ret_number < 1 || *ret_number > UINT32_MAX || *ret_bytes < -1))
		pull_fail(&r, "number is from 1, bytes from 0");
	return pull_finish(&r, err);
}

static void torn_keep(struct daemon *d, const struct torn *torn)
{
	pthread_mutex_lock(&d->torn_lock);
	for (uint32_t i = 0; i < TORN_KEPT; i++)
		if (d->torn[i].job == torn->job) /* of a job one is resumed from at a time */
			d->torn[i] = (struct torn){ 0 };
	d->torn[d->torn_next] = *torn;
	d->torn_next = (d->torn_next + 1) % TORN_KEPT;
	pthread_mutex_unlock(&d->torn_lock);
}

bool torn_take(struct daemon *d, uint32_t job, uint32_t number, bool *ret_missing)
{
	bool found = false;

	pthread_mutex_lock(&d->torn_lock);
	for (uint32_t i = 0; i < TORN_KEPT && !found; i++) {
		found = d->torn[i].job == job && d->torn[i].number == number;
		if (found) {
			*ret_missing = d->torn[i].missing;
			d->torn[i] = (struct torn){ 0 };
		}
	}
	pthread_mutex_unlock(&d->torn_lock);
	return found;
}

int torn_hear(struct daemon *d, const struct facts *facts, uint64_t id, int64_t number,
	      int64_t bytes, struct err *err)
{
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	const struct job *job = job_get(facts, attempt->job);
	const struct checkpoint *checkpoint = attempt->resume_number == number
						      ? job_checkpoint(facts, job, (uint32_t)number)
						      : NULL;

	if (!checkpoint || checkpoint->number != number)
		return err_set(err, ERR_INVALID,
			       "attempt %" PRIu64 " does not resume from checkpoint %" PRId64, id,
			       number);
	if (bytes >= checkpoint->bytes)
		return err_set(err, ERR_INVALID,
			       "checkpoint %" PRId64 " has no more bytes than that: it is whole",
			       number);
	if (job_checkpoint(facts, job, 0) == checkpoint)
		torn_keep(d, &(struct torn){ .job = attempt->job.v,
					     .number = (uint32_t)number,
					     .missing = bytes < 0 });
	return 0;
}

void torn_say(struct daemon *d, struct http_request *request, const struct facts *facts,
	      uint64_t id)
{
	int64_t number = 0, bytes = -1;
	struct buf out = BUF_INIT;
	struct err err;
	int result = torn_read(request, &number, &bytes, &err);

	if (result == 0)
		result = torn_hear(d, facts, id, number, bytes, &err);
	if (result < 0) {
		http_reply_error(request, &err);
		return;
	}
	buf_adds(&out, "{}\n");
	http_reply(request, 200, "application/json", &out);
}
