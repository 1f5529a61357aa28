/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/digest.h"
#include "base/parse.h"

#define HEAD "fairlead-tree 1\n"

/* --- the list ----------------------------------------------------------------------------------------------------- */

void tree_format(const struct tree *tree, struct buf *out)
{
	buf_adds(out, HEAD);
	for (uint32_t i = 0; i < tree->count; i++) {
		const struct tree_entry *e = &tree->entries[i];

		if (e->link)
			buf_addf(out, "L %zu %s %s\n", strlen(e->link), e->link, e->path);
		else
			buf_addf(out, "%c %" PRId64 " %s %s\n", e->executes ? 'X' : 'F', e->size,
				 e->digest, e->path);
	}
}

void tree_id(const char *text, size_t size, char ret[TREE_ID_MAX])
{
	const struct digest digest = digest_of(text, size);

	digest_format(&digest, ret);
}

bool tree_is_id(const char *text)
{
	return strlen(text) == TREE_ID_MAX - 1 &&
	       strspn(text, "0123456789abcdef") == TREE_ID_MAX - 1;
}

/* Below the folder: no part of it is empty, . or .. */
static bool is_path(const char *path)
{
	uint32_t depth = 0;

	if (!*path || strlen(path) > TREE_PATH_MAX)
		return false;
	for (;;) {
		const size_t length = strcspn(path, "/");

		if (!length || length > 255 || ++depth > TREE_DEPTH_MAX ||
		    (length <= 2 && strncmp(path, "..", length) == 0))
			return false;
		if (!path[length])
			return true;
		path += length + 1;
	}
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

struct reader {
	const char *at, *end;
	struct arena *arena;
};

/* "12 " */
static bool take_number(struct reader *r, int64_t most, int64_t *ret)
{
	const char *from = r->at;

	*ret = 0;
	for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && *ret <= most; r->at++)
		*ret = *ret * 10 + (*r->at - '0');
	if (r->at == from || (*from == '0' && r->at - from > 1) || *ret > most || r->at == r->end ||
	    *r->at != ' ')
		return false;
	r->at++;
	return true;
}

static const char *take(struct reader *r, size_t length, char behind)
{
	const char *text = r->at;

	if ((size_t)(r->end - r->at) <= length || r->at[length] != behind ||
	    memchr(text, '\0', length))
		return NULL;
	r->at += length + 1;
	return arena_strndup(r->arena, text, length);
}

static bool entry_read(struct reader *r, struct tree_entry *e)
{
	const char kind = *r->at;
	int64_t length;

	if (r->end - r->at < 2 || r->at[1] != ' ' || (kind != 'F' && kind != 'X' && kind != 'L'))
		return false;
	r->at += 2;
	if (!take_number(r, kind == 'L' ? TREE_PATH_MAX : TREE_FILE_MAX, &length))
		return false;
	*e = (struct tree_entry){ .executes = kind == 'X' };
	if (kind == 'L') {
		e->link = take(r, (size_t)length, ' ');
		if (!e->link || !*e->link || !is_plain(e->link))
			return false;
	} else {
		e->size = length;
		e->digest = take(r, TREE_ID_MAX - 1, ' ');
		if (!e->digest || !tree_is_id(e->digest))
			return false;
	}
	e->path = memchr(r->at, '\n', (size_t)(r->end - r->at));
	e->path = e->path ? take(r, (size_t)(e->path - r->at), '\n') : NULL;
	return e->path && is_path(e->path) && is_plain(e->path) &&
	       text_is_utf8(e->path, strlen(e->path));
}

static bool has_path(const struct tree *tree, const char *path, size_t length)
{
	uint32_t low = 0, high = tree->count;

	while (low < high) {
		const uint32_t mid = (low + high) / 2;
		const char *at = tree->entries[mid].path;
		int order = strncmp(at, path, length);

		order = order ? order : at[length] != '\0';
		if (!order)
			return true;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* What is a file or a link is no folder besides. */
static bool lies_in_file(const struct tree *tree, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
		if (has_path(tree, path, (size_t)(slash - path)))
			return true;
	return false;
}

int tree_parse(const char *text, size_t size, struct arena *arena, struct tree *ret,
	       struct err *err)
{
	struct reader r = { .at = text + strlen(HEAD), .end = text + size, .arena = arena };
	struct tree tree = { 0 };
	uint32_t lines = 0;

	if (size > TREE_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the list of the snapshot has %zu bytes; the limit is %d", size,
			       TREE_TEXT_MAX);
	if (size < strlen(HEAD) || memcmp(text, HEAD, strlen(HEAD)) != 0)
		return err_set(err, ERR_INVALID, "this is no list of a snapshot");
	for (const char *p = r.at; p < r.end; p++)
		lines += *p == '\n';
	if (!lines || lines > TREE_FILES_MAX)
		return err_set(err, lines ? ERR_TOO_LARGE : ERR_INVALID,
			       "the snapshot has %u files; it must have 1 to %d", lines,
			       TREE_FILES_MAX);
	tree.entries = arena_new_array(arena, struct tree_entry, lines);
	while (r.at < r.end) {
		struct tree_entry *e = &tree.entries[tree.count];

		if (tree.count == lines || !entry_read(&r, e) ||
		    (tree.count && strcmp(e[-1].path, e->path) >= 0))
			return err_set(err, ERR_INVALID,
				       "line %u of the snapshot's list is not as it must be",
				       tree.count + 2);
		tree.bytes += e->size;
		tree.count++;
	}
	if (tree.bytes > TREE_BYTES_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "the files of the snapshot have %" PRId64
			       " bytes; the limit is %" PRId64,
			       tree.bytes, TREE_BYTES_MAX);
	for (uint32_t i = 0; i < tree.count; i++)
		if (lies_in_file(&tree, tree.entries[i].path))
			return err_set(err, ERR_INVALID, "\"%.200s\" lies in what is no folder",
				       tree.entries[i].path);
	*ret = tree;
	return 0;
}

/* --- unpacking ---------------------------------------------------------------------------------------------------------- */

struct unpacking {
	int files, top;
	uid_t uid;
	gid_t gid;
	bool gives; /* files are given to the user */
	bool for_all; /* everybody may write */
};

static int folder_give(const struct unpacking *u, int folder)
{
	if (u->gives && fchown(folder, u->uid, u->gid) < 0)
		return -1;
	return u->for_all ? fchmod(folder, 0777) : 0;
}

/* The folder that the path lies in, made where it is missing; -1 with errno. *ret_name: what stands behind its last slash. */
static int folder_of(const struct unpacking *u, const char *path, const char **ret_name)
{
	int folder = dup(u->top);
	const char *slash;

	while (folder >= 0 && (slash = strchr(path, '/'))) {
		char name[256];
		int next;
		bool made;

		snprintf(name, sizeof(name), "%.*s", (int)(slash - path), path);
		made = mkdirat(folder, name, 0755) == 0;
		next = made || errno == EEXIST
			       ? openat(folder, name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			       : -1;
		if (next >= 0 && made && folder_give(u, next) < 0) {
			close(next);
			next = -1;
		}
		close(folder);
		folder = next;
		path = slash + 1;
	}
	*ret_name = path;
	return folder;
}

/* 0, or -1 with errno; EBADMSG: it is not as long as it should be. */
static int copy(int from, int to, int64_t size)
{
	char part[65536];
	int64_t done = 0;
	ssize_t got;

	while ((got = read(from, part, sizeof(part))) > 0) {
		for (ssize_t at = 0, n; at < got; at += n) {
			n = write(to, part + at, (size_t)(got - at));
			if (n < 0)
				return -1;
		}
		done += got;
	}
	if (got == 0 && done != size)
		errno = EBADMSG;
	return got < 0 || done != size ? -1 : 0;
}

static int file_make(const struct unpacking *u, const struct tree_entry *e, int folder,
		     const char *name)
{
	int from = openat(u->files, e->digest, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), rc = -1, to = -1;

	if (from >= 0)
		to = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (to >= 0)
		rc = copy(from, to, e->size);
	if (rc == 0 && u->gives)
		rc = fchown(to, u->uid, u->gid);
	if (rc == 0)
		rc = fchmod(to, (e->executes ? 0755 : 0644) | (u->for_all ? 0022 : 0));
	if (to >= 0)
		close(to);
	if (from >= 0)
		close(from);
	return rc;
}

static int entry_make(const struct unpacking *u, const struct tree_entry *e)
{
	const char *name;
	int folder = folder_of(u, e->path, &name), rc, saved;

	if (folder < 0)
		return -1;
	if (!e->link)
		rc = file_make(u, e, folder, name);
	else
		rc = symlinkat(e->link, folder, name);
	if (rc == 0 && e->link && u->gives)
		rc = fchownat(folder, name, u->uid, u->gid, AT_SYMLINK_NOFOLLOW);
	saved = errno;
	close(folder);
	errno = saved;
	return rc;
}

static int unpack(struct unpacking u, const struct tree *tree, int parent, const char *name,
		  struct err *err)
{
	char fresh[300];
	struct stat st;
	int rc = 0;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	snprintf(fresh, sizeof(fresh), "%.250s.new", name);
	if (mkdirat(parent, fresh, 0700) < 0)
		return err_errno(err, ERR_IO, errno, "the folder for the snapshot can't be made");
	u.top = openat(parent, fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (u.top < 0)
		return err_errno(err, ERR_IO, errno, "the folder for the snapshot can't be opened");
	for (uint32_t i = 0; i < tree->count && rc == 0; i++)
		if (entry_make(&u, &tree->entries[i]) < 0)
			rc = err_errno(err, ERR_IO, errno,
				       "\"%.200s\" of the snapshot can't be made",
				       tree->entries[i].path);
	if (rc == 0 && folder_give(&u, u.top) < 0)
		rc = err_errno(err, ERR_IO, errno, "the snapshot can't be given to its user");
	close(u.top);
	if (rc == 0 && renameat(parent, fresh, parent, name) < 0)
		rc = err_errno(err, ERR_IO, errno, "the snapshot can't be put in its place");
	return rc;
}

int tree_unpack(const struct tree *tree, int files, int parent, const char *name, uid_t uid,
		gid_t gid, struct err *err)
{
	return unpack(
		(struct unpacking){
			.files = files, .uid = uid, .gid = gid, .gives = geteuid() == 0 },
		tree, parent, name, err);
}

int tree_unpack_for_all(const struct tree *tree, int files, int parent, const char *name,
			struct err *err)
{
	return unpack((struct unpacking){ .files = files, .for_all = true }, tree, parent, name,
		      err);
}
