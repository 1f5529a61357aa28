/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/submission/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"

enum { RULES_MAX = 2000, RULE_FILE_MAX = 256 << 10, WIDTH_MAX = 255 };

/* --- rules ---------------------------------------------------------------------------------------------------------- */

/* Part by part; ** stands for any number of them. */
static bool parts_fit(const char *rule, const char *path)
{
	char mask[WIDTH_MAX + 1], name[WIDTH_MAX + 1];

	for (;;) {
		const size_t wide = strcspn(rule, "/"), long_ = strcspn(path, "/");
		const char *rest = rule[wide] ? rule + wide + 1 : "";

		if (wide == 2 && strncmp(rule, "**", 2) == 0) {
			if (!*rest)
				return true;
			for (const char *at = path;; at += strcspn(at, "/") + 1) {
				if (parts_fit(rest, at))
					return true;
				if (!strchr(at, '/'))
					return false;
			}
		}
		if (wide > WIDTH_MAX || long_ > WIDTH_MAX)
			return false;
		snprintf(mask, sizeof(mask), "%.*s", (int)wide, rule);
		snprintf(name, sizeof(name), "%.*s", (int)long_, path);
		if (fnmatch(mask, name, 0) != 0)
			return false;
		if (!rule[wide] || !path[long_])
			return !rule[wide] && !path[long_];
		rule = rest;
		path += long_ + 1;
	}
}

bool ignore_fits(const char *rule, const char *path, bool is_folder)
{
	char plain[TREE_PATH_MAX + 1];
	size_t length = strlen(rule);
	const char *slash = strrchr(path, '/');
	bool bound;

	if (length && rule[length - 1] == '/') {
		if (!is_folder)
			return false;
		length--;
	}
	if (!length || length > TREE_PATH_MAX)
		return false;
	snprintf(plain, sizeof(plain), "%.*s", (int)length, rule);
	bound = strchr(plain, '/') != NULL;
	if (!bound)
		return parts_fit(plain, slash ? slash + 1 : path);
	return parts_fit(plain[0] == '/' ? plain + 1 : plain, path);
}

struct rule {
	const char *text;
	size_t base; /* bytes of the path before what the rule sees */
	bool keeps;
};

struct walk {
	const char *path;
	struct arena *arena;
	struct err *err;
	struct rule rules[RULES_MAX];
	size_t rule_count;
	struct tree tree;
};

static bool is_ignored(const struct walk *w, const char *path, bool is_folder)
{
	for (size_t i = w->rule_count; i-- > 0;)
		if (ignore_fits(w->rules[i].text, path + w->rules[i].base, is_folder))
			return !w->rules[i].keeps;
	return false;
}

static int rule_add(struct walk *w, const char *line, size_t length, size_t base)
{
	struct rule rule = { .base = base };

	while (length &&
	       (line[length - 1] == ' ' || line[length - 1] == '\r' || line[length - 1] == '\t'))
		length--;
	if (!length || line[0] == '#')
		return 0;
	rule.keeps = line[0] == '!';
	line += rule.keeps || (line[0] == '\\' && length > 1 && strchr("!#", line[1]));
	length -= rule.keeps || (line[-1] == '\\');
	if (w->rule_count == RULES_MAX)
		return err_set(w->err, ERR_TOO_LARGE,
			       "\"%.300s\" has more than %d rules of what is left out", w->path,
			       RULES_MAX);
	rule.text = arena_strndup(w->arena, line, length);
	w->rules[w->rule_count++] = rule;
	return 0;
}

static int rules_read(struct walk *w, int folder, const char *name, size_t base)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	char *text = NULL;
	ssize_t size;

	if (fd < 0)
		return 0;
	text = malloc(RULE_FILE_MAX + 1);
	CHECK(text);
	size = read(fd, text, RULE_FILE_MAX + 1);
	close(fd);
	if (size > RULE_FILE_MAX)
		rc = err_set(w->err, ERR_TOO_LARGE, "a file %s has more than %d bytes", name,
			     RULE_FILE_MAX);
	for (ssize_t at = 0; rc >= 0 && at < size;) {
		const char *end = memchr(text + at, '\n', (size_t)(size - at));
		const size_t length = end ? (size_t)(end - text - at) : (size_t)(size - at);

		rc = rule_add(w, text + at, length, base);
		at += (ssize_t)length + 1;
	}
	free(text);
	return rc;
}

/* --- the walk --------------------------------------------------------------------------------------------------------- */

static int complain(struct walk *w, int error, const char *path)
{
	return err_errno(
		w->err, error == EACCES ? ERR_FORBIDDEN : ERR_IO, error,
		"snapshot: \"%.300s/%.300s\" can't be read; name it in .fairleadignore to leave it out",
		w->path, path);
}

static int content_read(struct walk *w, int fd, const char *path, struct buf *out)
{
	char part[65536];
	ssize_t got;

	while ((got = read(fd, part, sizeof(part))) > 0) {
		if (out->size + (size_t)got > TREE_FILE_MAX)
			return err_set(
				w->err, ERR_TOO_LARGE,
				"snapshot: \"%.300s\" has more than 8 MiB; name it in .fairleadignore to leave it out, and keep large files elsewhere",
				path);
		buf_add(out, part, (size_t)got);
	}
	return got < 0 ? complain(w, errno, path) : 0;
}

static int entry_add(struct walk *w, const struct tree_entry *entry)
{
	struct tree *tree = &w->tree;

	if (tree->count == TREE_FILES_MAX)
		return err_set(
			w->err, ERR_TOO_LARGE,
			"snapshot: \"%.300s\" has more than %d files; name folders that the job does not need in .fairleadignore",
			w->path, TREE_FILES_MAX);
	if (strlen(entry->path) > TREE_PATH_MAX)
		return err_set(
			w->err, ERR_INVALID,
			"snapshot: \"%.300s...\" has a path of more than %d bytes; shorten it, or name its folder in .fairleadignore",
			entry->path, TREE_PATH_MAX);
	if (!text_is_utf8(entry->path, strlen(entry->path)) || strpbrk(entry->path, "\n\r\t\x7f"))
		return err_set(
			w->err, ERR_INVALID,
			"snapshot: the name of \"%.300s\" is no UTF-8 or has a line break, a tab or the like, and can't be sent; rename it, or name its folder in .fairleadignore",
			entry->path);
	tree->entries[tree->count++] = *entry;
	tree->bytes += entry->size;
	if (tree->bytes > TREE_BYTES_MAX)
		return err_set(
			w->err, ERR_TOO_LARGE,
			"snapshot: \"%.300s\" has more than 256 MiB; name what the job does not need in .fairleadignore",
			w->path);
	return 0;
}

static int file_add(struct walk *w, int folder, const char *name, const char *path,
		    const struct stat *st)
{
	int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), rc;
	char *digest = arena_alloc(w->arena, TREE_ID_MAX);
	AUTO_BUF content = BUF_INIT;

	if (fd < 0)
		return complain(w, errno, path);
	rc = content_read(w, fd, path, &content);
	close(fd);
	if (rc < 0)
		return rc;
	tree_id(buf_text(&content), content.size, digest);
	return entry_add(w, &(struct tree_entry){ .path = path,
						  .digest = digest,
						  .size = (int64_t)content.size,
						  .executes = (st->st_mode & 0100) != 0 });
}

static int link_add(struct walk *w, int folder, const char *name, const char *path)
{
	char target[TREE_PATH_MAX + 2];
	ssize_t size = readlinkat(folder, name, target, sizeof(target) - 1);

	if (size < 0)
		return complain(w, errno, path);
	target[size] = '\0';
	if (size > TREE_PATH_MAX || strpbrk(target, "\n\r\t\x7f"))
		return err_set(w->err, ERR_INVALID, "snapshot: the link \"%.300s\" can't be sent",
			       path);
	return entry_add(
		w, &(struct tree_entry){ .path = path, .link = arena_strdup(w->arena, target) });
}

static int folder_add(struct walk *w, int folder, const char *below, int depth);

static int one_add(struct walk *w, int folder, const char *name, const char *path, int depth)
{
	struct stat st;
	int inner, rc;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : complain(w, errno, path);
	if (is_ignored(w, path, S_ISDIR(st.st_mode)))
		return 0;
	if (S_ISREG(st.st_mode))
		return file_add(w, folder, name, path, &st);
	if (S_ISLNK(st.st_mode))
		return link_add(w, folder, name, path);
	if (!S_ISDIR(st.st_mode))
		return 0; /* sockets and pipes are nothing to be kept */
	if (depth == TREE_DEPTH_MAX - 1)
		return err_set(w->err, ERR_TOO_LARGE, "snapshot: \"%.300s\" is nested too deep",
			       path);
	inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (inner < 0)
		return complain(w, errno, path);
	rc = folder_add(w, inner, arena_printf(w->arena, "%s/", path), depth + 1);
	close(inner);
	return rc;
}

/* below: "" or what the folder is called, with a slash. Its rules end with it. */
static int folder_add(struct walk *w, int folder, const char *below, int depth)
{
	const size_t rules = w->rule_count;
	int copy = dup(folder), rc = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!dir) {
		if (copy >= 0)
			close(copy);
		return complain(w, errno, below);
	}
	rc = rules_read(w, folder, ".gitignore", strlen(below));
	if (rc >= 0)
		rc = rules_read(w, folder, ".fairleadignore", strlen(below));
	while (rc >= 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    strcmp(entry->d_name, ".git") != 0)
			rc = one_add(w, folder, entry->d_name,
				     arena_printf(w->arena, "%s%s", below, entry->d_name), depth);
	closedir(dir);
	w->rule_count = rules;
	return rc;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

int folder_read(const char *path, struct arena *arena, struct folder *ret, struct err *err)
{
	struct walk *w = arena_new(arena, struct walk);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	AUTO_BUF list = BUF_INIT;

	w->path = path;
	w->arena = arena;
	w->err = err;
	w->tree.entries = arena_new_array(arena, struct tree_entry, TREE_FILES_MAX);
	if (folder < 0)
		return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_FORBIDDEN, errno,
				 "snapshot: the folder \"%.300s\" can't be read", path);
	rc = folder_add(w, folder, "", 0);
	close(folder);
	if (rc < 0)
		return rc;
	if (!w->tree.count)
		return err_set(err, ERR_INVALID,
			       "snapshot: the folder \"%.300s\" has no files, or all are left out",
			       path);
	qsort(w->tree.entries, w->tree.count, sizeof(*w->tree.entries), by_path);
	tree_format(&w->tree, &list);
	if (list.size > TREE_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "snapshot: the paths in \"%.300s\" take more than 4 MiB", path);
	*ret = (struct folder){ .path = path,
				.tree = w->tree,
				.list = arena_strndup(arena, list.data, list.size),
				.list_size = list.size };
	tree_id(ret->list, ret->list_size, ret->id);
	return 0;
}

/* --- sending ------------------------------------------------------------------------------------------------------------- */

static int file_send(const struct folder *folder, const struct tree_entry *e, struct client *client,
		     struct arena *arena, struct err *err)
{
	const char *path = arena_printf(arena, "%s/%s", folder->path, e->path);
	struct walk w = { .path = folder->path, .arena = arena, .err = err };
	AUTO_BUF content = BUF_INIT;
	char digest[TREE_ID_MAX];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), rc;

	if (fd < 0)
		return complain(&w, errno, e->path);
	rc = content_read(&w, fd, e->path, &content);
	close(fd);
	if (rc < 0)
		return rc;
	tree_id(buf_text(&content), content.size, digest);
	if (strcmp(digest, e->digest) != 0)
		return err_set(err, ERR_CONFLICT,
			       "snapshot: \"%.300s\" has changed while it was sent; submit again",
			       path);
	return client_call(
		client,
		&(struct call){ .method = "PUT",
				.path = client_path(arena, "/api/v1/snapshots/files/%s", digest),
				.content_type = "application/octet-stream",
				.body = buf_text(&content),
				.body_size = content.size },
		NULL, err);
}

static int list_send(const struct folder *folder, struct client *client, json_t **ret,
		     struct err *err)
{
	return client_call(client,
			   &(struct call){ .method = "POST",
					   .path = "/api/v1/snapshots",
					   .content_type = "text/plain",
					   .body = folder->list,
					   .body_size = folder->list_size },
			   ret, err);
}

int folder_send(const struct folder *folder, struct client *client, struct arena *arena,
		struct err *err)
{
	json_t *answer = NULL;
	size_t lacks, next = 0;
	int rc = list_send(folder, client, &answer, err);

	if (rc < 0)
		return rc;
	lacks = json_array_size(json_object_get(answer, "missing"));
	/* They are told in the order of the list. */
	for (uint32_t i = 0; next < lacks && i < folder->tree.count && rc >= 0; i++) {
		const char *digest = folder->tree.entries[i].digest,
			   *wanted = json_string_value(
				   json_array_get(json_object_get(answer, "missing"), next));

		if (!digest || !wanted || strcmp(digest, wanted) != 0)
			continue;
		rc = file_send(folder, &folder->tree.entries[i], client, arena, err);
		next++;
	}
	json_decref(answer);
	answer = NULL;
	if (rc < 0 || !lacks)
		return rc;
	rc = list_send(folder, client, &answer, err);
	if (rc >= 0 && json_array_size(json_object_get(answer, "missing")))
		rc = err_set(err, ERR_CONFLICT,
			     "snapshot: the daemon lacks files that were sent; submit again");
	json_decref(answer);
	return rc;
}
