/* SPDX-License-Identifier: Apache-2.0 */
/* The list of a snapshot. What is taken keeps inside its limits, leads nowhere but below its folder, and is written again byte for byte. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "engine/tree.h"

static void check_path(const char *path)
{
	CHECK(*path && strlen(path) <= TREE_PATH_MAX && path[0] != '/');
	for (const char *part = path; *part;) {
		const size_t length = strcspn(part, "/");

		CHECK(length && strncmp(part, "..", length > 2 ? length : 2) != 0);
		CHECK(length != 1 || *part != '.');
		part += length + (part[length] == '/');
	}
}

/* Nothing lies in what is no folder: looked for the slow way. */
static void check_folders(const struct tree *tree)
{
	for (uint32_t i = 0; i < tree->count && tree->count < 200; i++)
		for (uint32_t k = 0; k < tree->count; k++) {
			const size_t length = strlen(tree->entries[i].path);

			CHECK(strncmp(tree->entries[k].path, tree->entries[i].path, length) != 0 ||
			      tree->entries[k].path[length] != '/');
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_BUF again = BUF_INIT;
	struct arena arena;
	struct tree tree;
	struct err err = { 0 };
	int64_t bytes = 0;
	int rc;

	arena_init(&arena, 64 << 20);
	rc = tree_parse((const char *)data, size, &arena, &tree, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		arena_deinit(&arena);
		return 0;
	}
	CHECK(tree.count >= 1 && tree.count <= TREE_FILES_MAX && tree.bytes <= TREE_BYTES_MAX);
	for (uint32_t i = 0; i < tree.count; i++) {
		const struct tree_entry *e = &tree.entries[i];

		check_path(e->path);
		CHECK(!i || strcmp(e[-1].path, e->path) < 0);
		CHECK(!e->link != !e->digest);
		CHECK(e->link || tree_is_id(e->digest));
		bytes += e->size;
	}
	CHECK(bytes == tree.bytes);
	check_folders(&tree);
	tree_format(&tree, &again);
	CHECK(again.size == size && memcmp(again.data, data, size) == 0);
	arena_deinit(&arena);
	return 0;
}
