/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of working folders (engine/tree.h), in the data folder:
 *
 *	code/ACCOUNT/trees/ID		the list
 *	code/ACCOUNT/files/DIGEST	what is in files
 *
 * ACCOUNT is a uid, or where jobs run as pods the SHA-256 of the user's name: those have no uid of this machine. Of each account by itself: who knows the digest of somebody's file must not get the file by it. A list is taken when all its files are there;
 * else the answer says which are missing.
 *
 * What no job needs that is not over, and what was not named for a day, is removed: at a new snapshot, once an hour at most. Naming is telling
 * it, its files being asked for, and submitting a job with it.
 */
#include "api/snapshots.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/call.h"
#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "base/digest.h"
#include "base/log.h"
#include "engine/tree.h"

enum { KEPT_S = 86400, SWEEP_S = 3600, LIST_MEMORY = 64 << 20 };
#define USER_BYTES_MAX (INT64_C(4) << 30)

enum { ACCOUNTS = 16, COUNTED_S = 60 };

/* What accounts have, counted a while ago, with what came since then. */
static struct {
	pthread_mutex_t lock;
	int64_t swept_s;
	struct {
		char name[SNAPSHOT_ACCOUNT_MAX];
		int64_t bytes, counted_s;
	} accounts[ACCOUNTS];
} sweep = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* --- folders ------------------------------------------------------------------------------------------------------- */

static int folder_open(const char *path, bool make)
{
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

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

/* trees or files of an account; -1: there is none. */
static int kept_open(const struct api *api, const char *account, const char *what, bool make)
{
	char path[PATH_MAX];
	int folder;

	snprintf(path, sizeof(path), "%.3000s/code", api->folder);
	folder = folder_open(path, make);
	if (folder >= 0)
		close(folder);
	snprintf(path, sizeof(path), "%.3000s/code/%.64s", api->folder, account);
	folder = folder_open(path, make);
	if (folder >= 0)
		close(folder);
	snprintf(path, sizeof(path), "%.3000s/code/%.64s/%s", api->folder, account, what);
	return folder_open(path, make);
}

/* It was named now. False: it is not there. */
static bool touch(int folder, const char *name)
{
	return utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
}

static int file_put(int folder, const char *name, const void *data, size_t size, struct err *err)
{
	char fresh[128];
	int fd, saved;
	bool whole;

	snprintf(fresh, sizeof(fresh), ".%.64s-%lx", name, (unsigned long)pthread_self());
	fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "the snapshot can't be kept");
	whole = write(fd, data, size) == (ssize_t)size && fsync(fd) == 0;
	saved = errno;
	close(fd);
	if (whole && renameat(folder, fresh, folder, name) == 0)
		return 0;
	saved = whole ? errno : saved;
	(void)unlinkat(folder, fresh, 0);
	return err_errno(err, ERR_IO, saved, "the snapshot can't be kept");
}

static int caller_may(const struct call *call, struct err *err)
{
	if (call->api->backend->snapshots_lack)
		return err_set(err, ERR_UNSUPPORTED, "snapshot: %s",
			       call->api->backend->snapshots_lack);
	if (!call->api->folder[0])
		return err_set(err, ERR_UNSUPPORTED, "this daemon keeps no snapshots");
	if (!call->api->backend->pods && call->caller.uid < 0)
		return err_set(err, ERR_FORBIDDEN,
			       "%s has no account on this machine, whose snapshot it could be",
			       call->caller.user);
	return 0;
}

/* --- what is kept --------------------------------------------------------------------------------------------------- */

typedef void visit_fn(void *context, int folder, const char *name, const struct stat *st);

static void each(int folder, visit_fn *visit, void *context)
{
	int copy = dup(folder);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	struct stat st;

	if (dir)
		rewinddir(dir);
	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			visit(context, folder, entry->d_name, &st);
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
}

static void sum(void *context, int folder, const char *name, const struct stat *st)
{
	int64_t *bytes = context;

	(void)folder;
	(void)name;
	*bytes += st->st_size;
}

/* What the account has with so much more. */
static int64_t bytes_with(const char *account, int folder, int64_t more)
{
	const int64_t now_s = (int64_t)time(NULL);
	const size_t at = digest_of(account, strlen(account)).bytes[0] % ACCOUNTS;
	int64_t bytes = 0;

	pthread_mutex_lock(&sweep.lock);
	if (strcmp(sweep.accounts[at].name, account) != 0 ||
	    now_s - sweep.accounts[at].counted_s >= COUNTED_S) {
		each(folder, sum, &bytes);
		snprintf(sweep.accounts[at].name, SNAPSHOT_ACCOUNT_MAX, "%s", account);
		sweep.accounts[at].bytes = bytes;
		sweep.accounts[at].counted_s = now_s;
	}
	bytes = sweep.accounts[at].bytes += more;
	pthread_mutex_unlock(&sweep.lock);
	return bytes;
}

/* Names that are in use, sorted. */
struct names {
	char (*list)[TREE_ID_MAX];
	size_t count, room;
	int64_t before_s; /* what was named since then stays */
};

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void names_add(struct names *names, const char *name)
{
	if (names->count == names->room) {
		names->room = names->room ? names->room * 2 : 64;
		names->list = reallocarray(names->list, names->room, sizeof(*names->list));
		CHECK(names->list);
	}
	snprintf(names->list[names->count++], TREE_ID_MAX, "%.64s", name);
}

static void names_sort(struct names *names)
{
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), by_text);
}

static void remove_unused(void *context, int folder, const char *name, const struct stat *st)
{
	const struct names *names = context;
	char key[TREE_ID_MAX];

	snprintf(key, sizeof(key), "%.64s", name);
	if (st->st_mtime >= names->before_s ||
	    (names->count &&
	     bsearch(key, names->list, names->count, sizeof(*names->list), by_text)))
		return;
	(void)unlinkat(folder, name, 0);
}

/* The files of a list that stays. */
static void files_of(void *context, int folder, const char *name, const struct stat *st)
{
	struct names *names = context;
	struct buf text = BUF_INIT;
	struct arena arena;
	struct tree tree;
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || st->st_size > TREE_TEXT_MAX) {
		if (fd >= 0)
			close(fd);
		return;
	}
	arena_init(&arena, LIST_MEMORY);
	buf_reserve(&text, (size_t)st->st_size + 1);
	text.size = 0;
	for (ssize_t got; text.size < (size_t)st->st_size; text.size += (size_t)got) {
		got = read(fd, text.data + text.size, (size_t)st->st_size - text.size);
		if (got <= 0)
			break;
	}
	close(fd);
	if (tree_parse(text.data, text.size, &arena, &tree, NULL) >= 0)
		for (uint32_t i = 0; i < tree.count; i++)
			if (tree.entries[i].digest)
				names_add(names, tree.entries[i].digest);
	buf_deinit(&text);
	arena_deinit(&arena);
}

static void sweep_account(void *context, int folder, const char *name, const struct stat *st)
{
	const struct names *trees = context;
	struct names used = *trees, files = { .before_s = trees->before_s };
	char path[SNAPSHOT_ACCOUNT_MAX + 8];
	int lists, kept;

	if (!S_ISDIR(st->st_mode) || strlen(name) >= SNAPSHOT_ACCOUNT_MAX ||
	    strspn(name, "0123456789abcdef") != strlen(name))
		return;
	snprintf(path, sizeof(path), "%.64s/trees", name);
	lists = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	snprintf(path, sizeof(path), "%.64s/files", name);
	kept = openat(folder, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lists >= 0) {
		each(lists, remove_unused, &used);
		each(lists, files_of, &files);
	}
	names_sort(&files);
	if (kept >= 0 && lists >= 0)
		each(kept, remove_unused, &files);
	if (lists >= 0)
		close(lists);
	if (kept >= 0)
		close(kept);
	free(files.list);
}

/* The snapshots of all jobs that are not over. False: one of them can't be told, so nothing is removed. */
static bool live_trees(const struct call *call, struct names *ret)
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
			names_add(ret, body.snapshot);
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
	struct names trees = { .before_s = (int64_t)time(NULL) - KEPT_S };
	char path[PATH_MAX];
	int folder;

	if (!sweep_is_due())
		return;
	snprintf(path, sizeof(path), "%.3000s/code", call->api->folder);
	folder = folder_open(path, false);
	if (folder >= 0 && live_trees(call, &trees)) {
		names_sort(&trees);
		each(folder, sweep_account, &trees);
	}
	if (folder >= 0)
		close(folder);
	free(trees.list);
}

/* --- requests ---------------------------------------------------------------------------------------------------------- */

int snapshot_read(const struct api *api, const char *account, bool tree, const char *name,
		  struct buf *out, struct err *err)
{
	int folder = kept_open(api, account, tree ? "trees" : "files", false),
	    fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : 1;
	struct stat st;

	if (folder >= 0)
		close(folder);
	if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_size > TREE_FILE_MAX))
		got = -1;
	for (off_t left = got > 0 ? st.st_size : 0; left > 0 && got > 0; left -= got) {
		buf_reserve(out, (size_t)left);
		got = read(fd, out->data + out->size, (size_t)left);
		out->size += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	return got > 0 ? 0
		       : err_set(err, ERR_NOT_FOUND, "%.64s of the snapshot is not there any more",
				 name);
}

bool snapshot_is_there(const struct call *call, const char *id)
{
	char account[SNAPSHOT_ACCOUNT_MAX];
	int trees;

	account_of(call, account);
	trees = kept_open(call->api, account, "trees", false);
	const bool there = trees >= 0 && touch(trees, id);

	if (trees >= 0)
		close(trees);
	return there;
}

/* Those of its files that are not there. */
static uint32_t missing_add(const struct tree *tree, int files, struct buf *out)
{
	uint32_t missing = 0;
	struct stat st;

	for (uint32_t i = 0; i < tree->count; i++) {
		const struct tree_entry *e = &tree->entries[i];

		if (e->link || (fstatat(files, e->digest, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
				st.st_size == e->size && touch(files, e->digest)))
			continue;
		out_text(out, NULL, e->digest);
		missing++;
	}
	return missing;
}

static int tree_keep(struct call *call, const char *text, size_t size, struct buf *out,
		     struct err *err)
{
	char id[TREE_ID_MAX], account[SNAPSHOT_ACCOUNT_MAX];
	int files, trees, rc = 0;
	struct tree tree;

	account_of(call, account);
	files = kept_open(call->api, account, "files", true);
	trees = kept_open(call->api, account, "trees", true);
	if (files < 0 || trees < 0)
		rc = err_errno(err, ERR_IO, errno, "the snapshot can't be kept");
	if (rc >= 0)
		rc = tree_parse(text, size, call->arena, &tree, err);
	if (rc >= 0) {
		tree_id(text, size, id);
		out_object(out, NULL);
		out_text(out, "id", id);
		out_list(out, "missing");
		if (!missing_add(&tree, files, out))
			rc = file_put(trees, id, text, size, err);
		out_end(out, ']');
		out_end(out, '}');
	}
	if (files >= 0)
		close(files);
	if (trees >= 0)
		close(trees);
	return rc;
}

void handle_snapshot_put(struct call *call)
{
	struct err err = { 0 };
	struct buf out = BUF_INIT;
	size_t size;
	const char *text = http_body(call->request, &size);

	if (caller_may(call, &err) < 0 || tree_keep(call, text, size, &out, &err) < 0) {
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
	int files, rc;

	account_of(call, account);
	tree_id(text, size, found);
	if (!tree_is_id(digest) || strcmp(found, digest) != 0)
		return err_set(err, ERR_INVALID,
			       "the content's SHA-256 is %s, not that of the path", found);
	if (size > TREE_FILE_MAX)
		return err_set(err, ERR_TOO_LARGE, "the file has %zu bytes; the limit is %d", size,
			       TREE_FILE_MAX);
	files = kept_open(call->api, account, "files", true);
	if (files < 0)
		return err_errno(err, ERR_IO, errno, "the snapshot can't be kept");
	bytes = bytes_with(account, files, (int64_t)size);
	if (bytes > USER_BYTES_MAX)
		rc = err_set(err, ERR_TOO_LARGE,
			     "the snapshots of %s have %" PRId64 " bytes; the limit is %" PRId64
			     ". They go a day after their last job",
			     call->caller.user, bytes, USER_BYTES_MAX);
	else
		rc = file_put(files, digest, text, size, err);
	close(files);
	return rc;
}

void handle_snapshot_file(struct call *call)
{
	struct err err = { 0 };
	struct buf out = BUF_INIT;

	if (caller_may(call, &err) < 0 || file_keep(call, call->match.param[0], &err) < 0) {
		call_fail(call, &err);
		return;
	}
	out_object(&out, NULL);
	out_text(&out, "digest", call->match.param[0]);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}
