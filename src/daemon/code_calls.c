/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots for pods (docs/decisions/0027): init containers ask for them at the address of shepherds (shepherd_calls.c), which has looked at the
 * attempt's token before.
 *
 *	GET /pods/v1/attempts/ATTEMPT/ranks/RANK/code	the list, as it was told
 *	GET /pods/v1/attempts/ATTEMPT/ranks/RANK/code/N	what is in the files of its lines from N on (the first is 0), one behind the other, each
 *							whole, without a word between; as many as go into ANSWER_USUAL, and one at least
 *
 * The list says how long each is. So nobody names a digest here, and nothing can be had but what is in the list of the attempt's own job.
 *
 * A gang asks all at once: answers that are being sent take ANSWERS_MOST together, and who comes beyond that asks again.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "api/jobfile/jobfile.h"
#include "api/snapshots.h"
#include "base/arena.h"
#include "base/check.h"
#include "daemon/state.h"
#include "engine/tree.h"
#include "store/code.h"

enum { ANSWER_USUAL = 2 << 20, ANSWERS_MOST = 256 << 20, MEMORY = 64 << 20 };

static _Atomic int64_t being_sent;

struct code_call {
	struct daemon *daemon;
	struct http_request *request;
	uint64_t attempt;
	int64_t from;
};

/* The id of the snapshot of the attempt's job, and whose it is. */
static int find(const struct code_call *call, struct arena *arena, const char **ret_id,
		char ret_account[SNAPSHOT_ACCOUNT_MAX], struct err *err)
{
	struct daemon *d = call->daemon;
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	const struct attempt *attempt =
		attempt_get(facts, (struct attempt_id){ (uint32_t)call->attempt });
	struct job_body body = { 0 };
	struct buf text = BUF_INIT;
	int rc;

	/* It may have ended, and been forgotten, since the question was looked at. */
	if (attempt->state == ATTEMPT_FREE || attempt->state == ATTEMPT_OVER) {
		publication_release(publication);
		return err_set(err, ERR_CONFLICT, "attempt %" PRIu64 " is over", call->attempt);
	}
	snapshot_account(true, -1, facts_name(facts, job_get(facts, attempt->job)->user),
			 ret_account);
	rc = d->backend.body(d, facts, attempt->job, &text, err);
	publication_release(publication);
	if (rc >= 0)
		rc = job_body_parse(text.data, text.size, arena, &body, err);
	buf_deinit(&text);
	if (rc >= 0 && !body.snapshot)
		rc = err_set(err, ERR_NOT_FOUND, "the job of attempt %" PRIu64 " has no snapshot",
			     call->attempt);
	*ret_id = body.snapshot;
	return rc < 0 ? rc : 0;
}

static int files_add(const struct code_call *call, const char *account, const struct tree *tree,
		     struct buf *out, struct err *err)
{
	struct code_store *code = call->daemon->backend.code;

	if (call->from >= tree->count)
		return err_set(err, ERR_NOT_FOUND, "the snapshot's list has no line %" PRId64,
			       call->from);
	for (uint32_t i = (uint32_t)call->from; i < tree->count; i++) {
		const struct tree_entry *e = &tree->entries[i];
		const size_t before = out->size;

		if (e->link)
			continue;
		if (before && before + (size_t)e->size > ANSWER_USUAL)
			break;
		if (code_get(code, account, CODE_FILES, e->digest, out, err) < 0)
			return -1;
		if (out->size - before != (size_t)e->size)
			return err_set(err, ERR_CORRUPT,
				       "%s of the snapshot is not as long as it was", e->digest);
	}
	return 0;
}

static int answer_fill(const struct code_call *call, struct arena *arena, struct buf *out,
		       struct err *err)
{
	char account[SNAPSHOT_ACCOUNT_MAX];
	AUTO_BUF list = BUF_INIT;
	struct tree tree;
	const char *id = NULL;
	int rc = find(call, arena, &id, account, err);

	if (rc == 0)
		rc = code_get(call->daemon->backend.code, account, CODE_TREES, id, &list, err);
	if (rc < 0)
		return rc;
	if (call->from == CODE_LIST) {
		*out = list;
		list = BUF_INIT;
		return 0;
	}
	rc = tree_parse(buf_text(&list), list.size, arena, &tree, err);
	return rc < 0 ? rc : files_add(call, account, &tree, out, err);
}

static void answer(void *argument)
{
	struct code_call *call = argument;
	struct buf out = BUF_INIT;
	struct arena arena;
	struct err err;

	arena_init(&arena, MEMORY);
	if (answer_fill(call, &arena, &out, &err) < 0) {
		buf_deinit(&out);
		http_reply_error(call->request, &err);
	} else {
		http_reply(call->request, 200, "application/octet-stream", &out);
	}
	arena_deinit(&arena);
	free(call);
}

void code_answer(struct daemon *d, struct http_request *request, uint64_t attempt, int64_t from)
{
	struct code_call *call;
	struct err err;

	if (atomic_fetch_add(&being_sent, TREE_FILE_MAX) > ANSWERS_MOST - TREE_FILE_MAX) {
		atomic_fetch_sub(&being_sent, TREE_FILE_MAX);
		err_set(&err, ERR_UNAVAILABLE,
			"so many ask for their folders that this one has to wait");
		http_reply_error(request, &err);
		return;
	}
	http_hold(request, &being_sent, TREE_FILE_MAX);
	call = malloc(sizeof(*call));
	CHECK(call);
	*call = (struct code_call){ d, request, attempt, from };
	d->backend.work(d, WORK_SLOW, answer, call);
}
