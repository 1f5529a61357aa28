/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A folder as a snapshot (engine/tree.h): what is in it, without what ignore files name, and without .git.
 *
 * Rules are those of .gitignore, in files of that name and in .fairleadignore, which comes behind it: the last rule that fits decides, rules of
 * deeper folders come last. `!` takes back; `/` at the end is for folders alone; one in front or between binds the rule to its folder; * ? [a-z]
 * are within a name, ** is any number of folders. What is in a folder that is left out can't be taken back.
 */
#include "engine/tree.h"
#include "cli/client.h"

struct folder {
	const char *path;
	struct tree tree;
	const char *list; /* of it, as text */
	size_t list_size;
	char id[TREE_ID_MAX];
};

/* Reads all of its files. Texts live in the arena. */
int folder_read(const char *path, struct arena *arena, struct folder *ret, struct err *err)
	MUST_CHECK;
/* Tells the daemon what it lacks of it. */
int folder_send(const struct folder *folder, struct client *client, struct arena *arena,
		struct err *err) MUST_CHECK;
/* Whether a rule fits the path, which is below the rule's folder. */
bool ignore_fits(const char *rule, const char *path, bool is_folder);
