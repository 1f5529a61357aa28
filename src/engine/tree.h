/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A snapshot of a folder: a list of what is in it, and its files by the digest of their content. The digest of the list is the snapshot's id, so
 * equal folders are one, and what was submitted can't change. The form lives for ever (docs/decisions/0026):
 *
 *	fairlead-tree 1
 *	F 12 ba78...15ad src/train.py		a file: bytes, SHA-256, path
 *	X 80 9f86...0a08 run.sh			one that may be executed
 *	L 8 train.py latest			a symbolic link: bytes of its target, target, path
 *
 * Paths are below the folder, in rising order of their bytes. Empty folders are left out, owners and times too.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/err.h"

struct arena;
struct buf;

enum {
	TREE_FILE_MAX = 8 << 20, /* bytes of one file */
	TREE_FILES_MAX = 20000,
	TREE_PATH_MAX = 1000,
	TREE_DEPTH_MAX = 32,
	TREE_TEXT_MAX = 4 << 20, /* of the list */
	TREE_ID_MAX = 65
};
#define TREE_BYTES_MAX (INT64_C(256) << 20)

struct tree_entry {
	const char *path, *link; /* link: NULL = a file */
	const char *digest; /* of a file: 64 hexadecimal digits */
	int64_t size;
	bool executes;
};
struct tree {
	struct tree_entry *entries;
	uint32_t count;
	int64_t bytes; /* of all files */
};

void tree_format(const struct tree *tree, struct buf *out);
/* Entries and texts live in the arena. */
int tree_parse(const char *text, size_t size, struct arena *arena, struct tree *ret,
	       struct err *err) MUST_CHECK;
void tree_id(const char *text, size_t size, char ret[TREE_ID_MAX]);
bool tree_is_id(const char *text);
/*
 * Makes parent/name with all that is in the tree; files come from the folder `files`, by their digests. Nobody else gets into it before it is
 * whole; then it is the user's, where this process may give files away. One that is there is left as it is.
 */
int tree_unpack(const struct tree *tree, int files, int parent, const char *name, uid_t uid,
		gid_t gid, struct err *err) MUST_CHECK;
/* The same, and whoever gets to it may write in all of it: in a volume of a pod, whose containers run as who knows whom. */
int tree_unpack_for_all(const struct tree *tree, int files, int parent, const char *name,
			struct err *err) MUST_CHECK;
