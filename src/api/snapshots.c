/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of working folders (engine/tree.h), kept in store/code.h: lists, and what is in files. Of each account by itself: who knows the
 * digest of somebody's file must not get the file by it. An account is a uid, or where jobs run as pods the SHA-256 of the user's name: those have
 * no uid of this machine. A list is taken when all its files are there; else the answer says which are missing.
 *
 * What no job needs that is not over, and what was not named for a day, is removed: at a new snapshot, once an hour at most. Naming is telling
 * it, its files being asked for, and submitting a job with it.
 */
#include "api/snapshots.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/call.h"
#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/log.h"
#include "engine/tree.h"
#include "store/code.h"

enum { KEPT_S = 86400, SWEEP_S = 3600, LIST_MEMORY = 64 << 20 };
#define USER_BYTES_MAX (INT64_C(4) << 30)

enum { ACCOUNTS = 16, COUNTED_S = 60, TOLD = 64, TOLD_MS = 600 * 1000 };

/* What accounts have, counted a while ago, with what came since then; and lists that were told just now. */
static struct {
	pthread_mutex_t lock;
	int64_t swept_s;
	struct {
		char name[SNAPSHOT_ACCOUNT_MAX];
		int64_t bytes, counted_s;
	} accounts[ACCOUNTS];
	struct {
		char account[SNAPSHOT_ACCOUNT_MAX], id[TREE_ID_MAX];
		int64_t until_ms; /* boot clock */
	} told[TOLD];
	uint32_t told_next;
} sweep = { .lock = PTHREAD_MUTEX_INITIALIZER };

void snapshot_account(bool pods, int64_t uid, const char *user, char ret[SNAPSHOT_ACCOUNT_MAX])
{
	if (pods)
		tree_id(user, strlen(user), ret);
	else
		snprintf(ret, SNAPSHOT_ACCOUNT_MAX, "%" PRId64, uid);
}

static void account_of(const struct call *call, char ret[SNAPSHOT_ACCOUNT_MAX])
{
	snapshot_account(call->api->backend->pods, call->caller.uid, call->caller.user, ret);
}

int snapshots_permit(const struct call *call, struct err *err)
{
	if (call->api->backend->snapshots_lack)
		return err_set(err, ERR_UNSUPPORTED, "snapshot: %s",
			       call->api->backend->snapshots_lack);
	if (!call->api->backend->code)
		return err_set(err, ERR_UNSUPPORTED, "this daemon keeps no snapshots");
	if (!call->api->backend->pods && call->caller.uid < 0)
		return err_set(err, ERR_FORBIDDEN,
			       "%s has no account on this machine, whose snapshot it could be",
			       call->caller.user);
	return 0;
}

/* --- what is kept --------------------------------------------------------------------------------------------------- */

/* What the account has with so much more. */
static int bytes_with(const struct call *call, const char *account, int64_t more, int64_t *ret,
		      struct err *err)
{
	const int64_t now_s = (int64_t)time(NULL);
	const size_t at = digest_of(account, strlen(account)).bytes[0] % ACCOUNTS;
	int64_t bytes = -1;
	int rc = 0;

	pthread_mutex_lock(&sweep.lock);
	if (strcmp(sweep.accounts[at].name, account) == 0 &&
	    now_s - sweep.accounts[at].counted_s < COUNTED_S)
		bytes = sweep.accounts[at].bytes += more;
	pthread_mutex_unlock(&sweep.lock);
	if (bytes < 0) {
		rc = code_bytes(call->api->backend->code, account, &bytes, err);
		bytes += more;
		pthread_mutex_lock(&sweep.lock);
		snprintf(sweep.accounts[at].name, SNAPSHOT_ACCOUNT_MAX, "%s", account);
		sweep.accounts[at].bytes = bytes;
		sweep.accounts[at].counted_s = rc < 0 ? 0 : now_s;
		pthread_mutex_unlock(&sweep.lock);
	}
	*ret = bytes;
	return rc;
}

/* The files of a list that stays. False: it can't be told, so that none is removed. */
static bool files_of(struct code_store *code, const char *account, const char *id,
		     struct code_names *ret)
{
	AUTO_BUF text = BUF_INIT;
	struct arena arena;
	struct tree tree;
	bool read;

	arena_init(&arena, LIST_MEMORY);
	read = code_get(code, account, CODE_TREES, id, &text, NULL) >= 0 &&
	       tree_parse(buf_text(&text), text.size, &arena, &tree, NULL) >= 0;
	for (uint32_t i = 0; read && i < tree.count; i++)
		if (tree.entries[i].digest)
			code_names_add(ret, tree.entries[i].digest);
	arena_deinit(&arena);
	return read;
}

static void sweep_account(struct code_store *code, const char *account, int64_t before_s,
			  const struct code_names *live)
{
	struct code_names trees = { 0 }, files = { 0 };
	struct err err = { 0 };
	bool all = true;
	int rc = code_remove(code, account, CODE_TREES, before_s, live, &err);

	if (rc >= 0)
		rc = code_list(code, account, CODE_TREES, &trees, &err);
	for (size_t i = 0; i < trees.count && rc >= 0 && all; i++)
		all = files_of(code, account, trees.list[i], &files);
	code_names_sort(&files);
	if (rc >= 0 && all)
		rc = code_remove(code, account, CODE_FILES, before_s, &files, &err);
	if (rc < 0)
		log_line(LOG_WARN, "old snapshots can't be removed: %s", err.text);
	code_names_deinit(&trees);
	code_names_deinit(&files);
}

/* The snapshots of all jobs that are not over. False: one of them can't be told, so nothing is removed. */
static bool live_trees(const struct call *call, struct code_names *ret)
{
	const struct api_backend *backend = call->api->backend;
	const struct facts *facts = call->facts;
	bool all = true;

	for (uint32_t id = 1; id <= facts->jobs.count && all; id++) {
		struct buf text = BUF_INIT;
		struct job_body body = { 0 };
		struct arena arena;

		if (!job_is_there(facts, id) ||
		    job_state_is_final(job_get(facts, (struct job_id){ id })->state))
			continue;
		arena_init(&arena, LIST_MEMORY);
		all = backend->body(backend->context, facts, (struct job_id){ id }, &text, NULL) ==
			      0 &&
		      job_body_parse(text.data, text.size, &arena, &body, NULL) >= 0;
		if (all && body.snapshot)
			code_names_add(ret, body.snapshot);
		buf_deinit(&text);
		arena_deinit(&arena);
	}
	return all;
}

static bool sweep_is_due(void)
{
	const int64_t now_s = (int64_t)time(NULL);
	bool due;

	pthread_mutex_lock(&sweep.lock);
	due = now_s - sweep.swept_s >= SWEEP_S;
	if (due)
		sweep.swept_s = now_s;
	pthread_mutex_unlock(&sweep.lock);
	return due;
}

static void snapshots_sweep(const struct call *call)
{
	const int64_t before_s = (int64_t)time(NULL) - KEPT_S;
	struct code_store *code = call->api->backend->code;
	struct code_names live = { 0 }, accounts = { 0 };

	if (!sweep_is_due())
		return;
	if (live_trees(call, &live) && code_accounts(code, &accounts, NULL) >= 0) {
		code_names_sort(&live);
		for (size_t i = 0; i < accounts.count; i++)
			sweep_account(code, accounts.list[i], before_s, &live);
	}
	code_names_deinit(&live);
	code_names_deinit(&accounts);
}

/* --- lists that were told just now ------------------------------------------------------------------------------------ */

static void told_note(const char *account, const char *id)
{
	pthread_mutex_lock(&sweep.lock);
	const uint32_t at = sweep.told_next++ % TOLD;

	snprintf(sweep.told[at].account, SNAPSHOT_ACCOUNT_MAX, "%s", account);
	snprintf(sweep.told[at].id, TREE_ID_MAX, "%s", id);
	sweep.told[at].until_ms = clock_boot_ms() + TOLD_MS;
	pthread_mutex_unlock(&sweep.lock);
}

static bool was_told(const char *account, const char *id)
{
	const int64_t now = clock_boot_ms();
	bool found = false;

	pthread_mutex_lock(&sweep.lock);
	for (size_t i = 0; i < TOLD && !found; i++)
		found = sweep.told[i].until_ms > now && strcmp(sweep.told[i].id, id) == 0 &&
			strcmp(sweep.told[i].account, account) == 0;
	pthread_mutex_unlock(&sweep.lock);
	return found;
}

/* --- requests ---------------------------------------------------------------------------------------------------------- */

/* `run` and `submit` tell it right before: else the network thread would ask a database, that may be away, for each job. */
int snapshot_find(const struct call *call, const char *id, struct err *err)
{
	char account[SNAPSHOT_ACCOUNT_MAX];
	int64_t bytes = -1;

	if (snapshots_permit(call, err) < 0)
		return -(int)err->code;
	account_of(call, account);
	if (was_told(account, id))
		return 0;
	if (code_name(call->api->backend->code, account, CODE_TREES, &id, 1, &bytes, err) < 0)
		return -(int)err->code;
	return bytes >= 0
		       ? 0
		       : err_set(err, ERR_NOT_FOUND,
				 "snapshot: there is no snapshot %s of yours: it must be told first",
				 id);
}

/* Those of its files that are not there; how many, or negative. */
static int missing_add(const struct call *call, const char *account, const struct tree *tree,
		       struct buf *out, struct err *err)
{
	const char **names = arena_new_array(call->arena, const char *, tree->count);
	int64_t *sizes = arena_new_array(call->arena, int64_t, tree->count);
	size_t count = 0;
	int missing = 0;

	for (uint32_t i = 0; i < tree->count; i++)
		if (!tree->entries[i].link)
			names[count++] = tree->entries[i].digest;
	if (code_name(call->api->backend->code, account, CODE_FILES, names, count, sizes, err) < 0)
		return -(int)err->code;
	for (uint32_t i = 0, at = 0; i < tree->count; i++) {
		if (tree->entries[i].link || sizes[at++] == tree->entries[i].size)
			continue;
		out_text(out, NULL, tree->entries[i].digest);
		missing++;
	}
	return missing;
}

static int tree_keep(struct call *call, const char *text, size_t size, struct buf *out,
		     struct err *err)
{
	char id[TREE_ID_MAX], account[SNAPSHOT_ACCOUNT_MAX];
	struct tree tree;
	int missing, rc = tree_parse(text, size, call->arena, &tree, err);

	if (rc < 0)
		return rc;
	account_of(call, account);
	tree_id(text, size, id);
	out_object(out, NULL);
	out_text(out, "id", id);
	out_list(out, "missing");
	missing = missing_add(call, account, &tree, out, err);
	if (missing == 0)
		missing = code_put(call->api->backend->code, account, CODE_TREES, id, text, size,
				   err);
	if (missing == 0)
		told_note(account, id);
	out_end(out, ']');
	out_end(out, '}');
	return missing < 0 ? missing : 0;
}

void handle_snapshot_put(struct call *call)
{
	struct err err = { 0 };
	struct buf out = BUF_INIT;
	size_t size;
	const char *text = http_body(call->request, &size);

	if (snapshots_permit(call, &err) < 0 || tree_keep(call, text, size, &out, &err) < 0) {
		buf_deinit(&out);
		call_fail(call, &err);
		return;
	}
	snapshots_sweep(call);
	call_reply(call, 200, &out);
}

static int file_keep(struct call *call, const char *digest, struct err *err)
{
	size_t size;
	const char *text = http_body(call->request, &size);
	char found[TREE_ID_MAX], account[SNAPSHOT_ACCOUNT_MAX];
	int64_t bytes;

	account_of(call, account);
	tree_id(text, size, found);
	if (!tree_is_id(digest) || strcmp(found, digest) != 0)
		return err_set(err, ERR_INVALID,
			       "the content's SHA-256 is %s, not that of the path", found);
	if (size > TREE_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file has %zu bytes; the limit is %d", size,
			       TREE_FILE_MAX);
	if (bytes_with(call, account, (int64_t)size, &bytes, err) < 0)
		return -(int)err->code;
	if (bytes > USER_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the snapshots of %s have %" PRId64 " bytes; the limit is %" PRId64
			       ". They go a day after their last job",
			       call->caller.user, bytes, USER_BYTES_MAX);
	return code_put(call->api->backend->code, account, CODE_FILES, digest, text, size, err);
}

void handle_snapshot_file(struct call *call)
{
	struct err err = { 0 };
	struct buf out = BUF_INIT;

	if (snapshots_permit(call, &err) < 0 || file_keep(call, call->match.param[0], &err) < 0) {
		call_fail(call, &err);
		return;
	}
	out_object(&out, NULL);
	out_text(&out, "digest", call->match.param[0]);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}
