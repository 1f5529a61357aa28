/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the data folder:
 *
 *	code/ACCOUNT/trees/NAME		a list
 *	code/ACCOUNT/files/NAME		what is in a file
 *
 * When one was named last is its time of modification.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/code_inner.h"

enum { FILE_MOST = 64 << 20 }; /* one that is longer was not put here by us */

struct code_files {
	struct code_store store;
	char folder[PATH_MAX];
};

static const char *const folders[] = { [CODE_FILES] = "files", [CODE_TREES] = "trees" };

/* --- folders ------------------------------------------------------------------------------------------------------- */

static int folder_open(const char *path, bool make)
{
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* -1: there is none. */
static int kept_open(struct code_store *store, const char *account, enum code_kind kind, bool make)
{
	const struct code_files *f = (const struct code_files *)store;
	char path[PATH_MAX];
	int folder;

	snprintf(path, sizeof(path), "%.3000s/code", f->folder);
	folder = folder_open(path, make);
	if (folder >= 0)
		close(folder);
	snprintf(path, sizeof(path), "%.3000s/code/%.64s", f->folder, account);
	folder = folder_open(path, make);
	if (folder >= 0)
		close(folder);
	snprintf(path, sizeof(path), "%.3000s/code/%.64s/%s", f->folder, account, folders[kind]);
	return folder_open(path, make);
}

typedef void visit_fn(void *context, int folder, const char *name, const struct stat *st);

/* Takes the folder. */
static void each(int folder, visit_fn *visit, void *context)
{
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			visit(context, dirfd(dir), entry->d_name, &st);
	if (dir)
		closedir(dir);
	else if (folder >= 0)
		close(folder);
}

/* --- one of them ---------------------------------------------------------------------------------------------------- */

static int files_put(struct code_store *store, const char *account, enum code_kind kind,
		     const char *name, const void *data, size_t size, struct err *err)
{
	int folder = kept_open(store, account, kind, true), fd = -1, saved;
	char fresh[128];
	bool whole;

	snprintf(fresh, sizeof(fresh), ".%.64s-%lx", name, (unsigned long)pthread_self());
	if (folder >= 0)
		fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	saved = errno;
	whole = fd >= 0 && write(fd, data, size) == (ssize_t)size && fsync(fd) == 0;
	if (fd >= 0) {
		saved = errno;
		close(fd);
	}
	if (whole && renameat(folder, fresh, folder, name) < 0) {
		saved = errno;
		whole = false;
	}
	if (fd >= 0 && !whole)
		(void)unlinkat(folder, fresh, 0);
	if (folder >= 0)
		close(folder);
	return whole ? 0 : err_errno(err, ERR_IO, saved, "the snapshot can't be kept");
}

/* What can't be read now may be read later: only what is gone is none. */
static int not_read(const char *name, int number, struct err *err)
{
	return number == ENOENT ? code_none(name, err)
				: err_errno(err, ERR_IO, number,
					    "%.64s of the snapshot can't be read", name);
}

static int files_get(struct code_store *store, const char *account, enum code_kind kind,
		     const char *name, struct buf *out, struct err *err)
{
	int folder = kept_open(store, account, kind, false),
	    fd = folder < 0 ? -1 : openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC),
	    problem = fd < 0 ? errno : 0;
	struct stat st = { 0 };

	if (folder >= 0)
		close(folder);
	if (!problem && fstat(fd, &st) < 0)
		problem = errno;
	if (!problem && st.st_size > FILE_MOST)
		problem = EFBIG;
	for (off_t left = st.st_size; left > 0 && !problem;) {
		buf_reserve(out, (size_t)left);
		ssize_t got = read(fd, out->data + out->size, (size_t)left);

		if (got < 0)
			problem = errno;
		else if (!got)
			break; /* it is shorter by now, which its digest will tell */
		out->size += got > 0 ? (size_t)got : 0;
		left -= got > 0 ? got : 0;
	}
	if (fd >= 0)
		close(fd);
	return problem ? not_read(name, problem, err) : 0;
}

static int files_name(struct code_store *store, const char *account, enum code_kind kind,
		      const char *const *names, size_t count, int64_t *ret_sizes, struct err *err)
{
	int folder = kept_open(store, account, kind, false);
	struct stat st;

	(void)err;
	for (size_t i = 0; i < count; i++)
		ret_sizes[i] =
			folder >= 0 && fstatat(folder, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
					utimensat(folder, names[i], NULL, AT_SYMLINK_NOFOLLOW) == 0
				? st.st_size
				: -1;
	if (folder >= 0)
		close(folder);
	return 0;
}

/* --- all of them ---------------------------------------------------------------------------------------------------- */

static void sum(void *context, int folder, const char *name, const struct stat *st)
{
	int64_t *bytes = context;

	(void)folder;
	(void)name;
	*bytes += st->st_size;
}

static int files_bytes(struct code_store *store, const char *account, int64_t *ret, struct err *err)
{
	(void)err;
	*ret = 0;
	each(kept_open(store, account, CODE_FILES, false), sum, ret);
	return 0;
}

static void take_account(void *context, int folder, const char *name, const struct stat *st)
{
	(void)folder;
	if (S_ISDIR(st->st_mode) && strlen(name) < CODE_NAME_MAX &&
	    strspn(name, "0123456789abcdef") == strlen(name))
		code_names_add(context, name);
}

static int files_accounts(struct code_store *store, struct code_names *ret, struct err *err)
{
	char path[PATH_MAX];

	(void)err;
	snprintf(path, sizeof(path), "%.3000s/code", ((const struct code_files *)store)->folder);
	each(folder_open(path, false), take_account, ret);
	return 0;
}

static void take_name(void *context, int folder, const char *name, const struct stat *st)
{
	(void)folder;
	if (S_ISREG(st->st_mode) && name[0] != '.')
		code_names_add(context, name);
}

static int files_list(struct code_store *store, const char *account, enum code_kind kind,
		      struct code_names *ret, struct err *err)
{
	(void)err;
	each(kept_open(store, account, kind, false), take_name, ret);
	return 0;
}

struct removing {
	int64_t before_s;
	const struct code_names *keep;
};

static void remove_unused(void *context, int folder, const char *name, const struct stat *st)
{
	const struct removing *removing = context;

	if (st->st_mtime < removing->before_s && !code_names_have(removing->keep, name))
		(void)unlinkat(folder, name, 0);
}

static int files_remove(struct code_store *store, const char *account, enum code_kind kind,
			int64_t before_s, const struct code_names *keep, struct err *err)
{
	struct removing removing = { before_s, keep };

	(void)err;
	each(kept_open(store, account, kind, false), remove_unused, &removing);
	return 0;
}

static void files_destroy(struct code_store *store)
{
	free(store);
}

struct code_store *code_store_files(const char *folder)
{
	static const struct code_ops ops = { .destroy = files_destroy,
					     .put = files_put,
					     .get = files_get,
					     .name = files_name,
					     .bytes = files_bytes,
					     .accounts = files_accounts,
					     .list = files_list,
					     .remove = files_remove };
	struct code_files *f = calloc(1, sizeof(*f));

	CHECK(f);
	f->store.ops = &ops;
	snprintf(f->folder, sizeof(f->folder), "%s", folder);
	return &f->store;
}
