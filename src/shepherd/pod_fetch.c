/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an init container does for a job with a snapshot (docs/decisions/0027): the list and the files come from the daemon with the attempt's
 * token, each is held against its SHA-256 before anything is made of it, and then `code` is made in a volume that the task's container has, too.
 *
 *	INTO/files/DIGEST	what came, until all is there
 *	INTO/code		the task's working folder, there when it is whole
 *
 * Answers that don't come, or say "not now", are asked for again, for as long as the attempt lives: who is over hears that, with its next
 * question or by its kubelet. One that is wrong, or that the daemon says is damaged, is asked for again a few times, and no more.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "engine/local/place.h"
#include "engine/tree.h"
#include "shepherd/pod.h"

enum {
	ANSWER_WITHIN_MS = 60000,
	PAUSE_FIRST_MS = 500,
	PAUSE_MOST_MS = 10000,
	WRONG_MOST = 5,
	LIST_MEMORY = 64 << 20
};

struct fetching {
	const struct pod_fetch *fetch;
	struct arena arena;
	struct tree tree;
	int top, files;
	struct buf answer;
	uint32_t tries, wrong;
};

static void rest(struct fetching *f)
{
	const int64_t first = f->fetch->pause_ms ? f->fetch->pause_ms : PAUSE_FIRST_MS;
	const uint32_t doubled = f->tries < 5 ? f->tries : 5;
	int64_t ms = first << doubled < PAUSE_MOST_MS ? first << doubled : PAUSE_MOST_MS;

	f->tries++;
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* A sentence of the daemon's: {"error":{"code":"...","message":"..."}}; where it is something else, that. */
static int refused(struct fetching *f, int status, struct err *err)
{
	const char *at = strstr(buf_text(&f->answer), "\"message\":\"");
	char text[ERR_TEXT_MAX];
	size_t size = 0;

	at = at ? at + 11 : buf_text(&f->answer);
	for (; *at && *at != '"' && *at != '\n' && size + 1 < sizeof(text); at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		text[size++] = *at;
	}
	text[size] = '\0';
	return err_set(err, ERR_FORBIDDEN, "Fairlead does not give the snapshot (%d): %s", status,
		       text);
}

/* What is kept of it there is not what was told: that may be a disk which reads wrongly, and asking for ever would hold the job's GPUs. */
static bool is_damaged(const struct fetching *f)
{
	return strstr(buf_text(&f->answer), "\"code\":\"corrupt\"") != NULL;
}

/* Until an answer with content comes, or one that will not change. */
static int ask(struct fetching *f, const char *what, struct err *err)
{
	char path[160], rank[PLACE_NAME_MAX];

	place_name(rank, f->fetch->rank, f->fetch->launch);
	snprintf(path, sizeof(path), "/pods/v1/attempts/%" PRIu64 "/ranks/%s/code%s",
		 f->fetch->attempt, rank, what);
	for (f->tries = 0;;) {
		const int status = pod_http_post(&(struct pod_post){ .server = f->fetch->server,
								     .path = path,
								     .token = f->fetch->token,
								     .timeout_ms = ANSWER_WITHIN_MS,
								     .most = TREE_FILE_MAX },
						 &f->answer, err);

		if (status == 200)
			return 0;
		if (status >= 400 && status < 500 && status != 408 && status != 429)
			return refused(f, status, err);
		if (status > 0)
			(void)refused(f, status, err);
		if (status == 500 && is_damaged(f) && ++f->wrong >= WRONG_MOST)
			return -1;
		if (!f->tries)
			log_line(LOG_WARN, "%s; asks again", err->text);
		rest(f);
	}
}

static int wrong(struct fetching *f, const char *what, struct err *err)
{
	if (++f->wrong >= WRONG_MOST)
		return err_set(
			err, ERR_CORRUPT,
			"%.200s of the snapshot came %d times with other content than its SHA-256 says",
			what, WRONG_MOST);
	log_line(LOG_WARN, "%.200s of the snapshot came with other content than its SHA-256 says",
		 what);
	rest(f);
	return 0;
}

static int list_get(struct fetching *f, struct err *err)
{
	char id[TREE_ID_MAX];

	for (;;) {
		if (ask(f, "", err) < 0)
			return -1;
		tree_id(buf_text(&f->answer), f->answer.size, id);
		if (strcmp(id, f->fetch->snapshot) == 0)
			return tree_parse(buf_text(&f->answer), f->answer.size, &f->arena, &f->tree,
					  err);
		if (wrong(f, "the list", err) < 0)
			return -1;
	}
}

static int file_put(struct fetching *f, const struct tree_entry *e, const char *data,
		    struct err *err)
{
	int fd = openat(f->files, e->digest, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			0600);
	int64_t at = 0;

	while (fd >= 0 && at < e->size) {
		const ssize_t n = write(fd, data + at, (size_t)(e->size - at));

		if (n <= 0)
			break;
		at += n;
	}
	if (fd < 0 || at < e->size)
		err_errno(err, ERR_IO, errno, "\"%.200s\" of the snapshot can't be written",
			  e->path);
	if (fd >= 0)
		close(fd);
	return fd < 0 || at < e->size ? -1 : 0;
}

/* What came: the content of files from `from` on, one behind the other. How many entries that does; 0 = something is wrong. */
static int64_t files_take(struct fetching *f, uint32_t from, struct err *err)
{
	const char *at = buf_text(&f->answer);
	int64_t left = (int64_t)f->answer.size;
	char digest[TREE_ID_MAX];
	uint32_t i = from;

	for (; i < f->tree.count; i++) {
		const struct tree_entry *e = &f->tree.entries[i];

		if (e->link)
			continue;
		if (!left && e->size && i > from)
			break;
		if (e->size <= left)
			tree_id(at, (size_t)e->size, digest);
		if (e->size > left || strcmp(digest, e->digest) != 0)
			return wrong(f, e->path, err);
		if (file_put(f, e, at, err) < 0)
			return -1;
		at += e->size;
		left -= e->size;
	}
	return left ? wrong(f, "a file", err) : (int64_t)i - from;
}

static int files_get(struct fetching *f, struct err *err)
{
	for (uint32_t from = 0; from < f->tree.count;) {
		char what[32];
		int64_t taken;

		snprintf(what, sizeof(what), "/%u", from);
		if (ask(f, what, err) < 0)
			return -1;
		taken = files_take(f, from, err);
		if (taken < 0)
			return -1;
		from += (uint32_t)taken;
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

/* Something that an earlier try left, or nothing. */
static void clear(const struct pod_fetch *fetch, const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%.4000s/%s", fetch->into, name);
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int places_open(struct fetching *f, struct err *err)
{
	clear(f->fetch, "code.new");
	f->top = open(f->fetch->into, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (f->top >= 0 && (mkdirat(f->top, "files", 0700) == 0 || errno == EEXIST))
		f->files = openat(f->top, "files", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return f->files < 0 ? err_errno(err, ERR_IO, errno, "the folder %.200s can't be used",
					f->fetch->into)
			    : 0;
}

int pod_fetch(const struct pod_fetch *fetch, struct err *err)
{
	struct fetching f = { .fetch = fetch, .top = -1, .files = -1, .answer = BUF_INIT };
	int rc;

	arena_init(&f.arena, LIST_MEMORY);
	rc = places_open(&f, err);
	if (rc == 0)
		rc = list_get(&f, err);
	if (rc == 0)
		rc = files_get(&f, err);
	if (rc == 0)
		rc = tree_unpack_for_all(&f.tree, f.files, f.top, "code", err);
	if (f.files >= 0)
		close(f.files);
	if (f.top >= 0)
		close(f.top);
	clear(fetch, "files");
	buf_deinit(&f.answer);
	arena_deinit(&f.arena);
	return rc < 0 ? -1 : 0;
}
