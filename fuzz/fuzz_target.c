/* SPDX-License-Identifier: Apache-2.0 */
/* A request's target as framing lets it through: visible ASCII from '/'. Decoded once, with nothing left that could be read twice. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "api/http/target.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"

static void check_text(const char *text)
{
	CHECK(text_is_utf8(text, strlen(text)));
	for (const char *p = text; *p; p++)
		CHECK((unsigned char)*p >= 0x20 && *p != 0x7f);
}

static void check_path(const char *path)
{
	CHECK(path[0] == '/');
	check_text(path);
	for (const char *at = path + 1; path[1];) {
		const size_t size = strcspn(at, "/");

		CHECK(size > 0 && !(size == 1 && at[0] == '.') &&
		      !(size == 2 && at[0] == '.' && at[1] == '.'));
		if (!at[size])
			break;
		at += size + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[8193];
	struct target target;
	struct err err = { 0 };
	struct arena arena;
	size_t length = 0;
	int rc;

	/* Bytes that framing refuses never come here. */
	for (size_t i = 0; i < size && length < sizeof(text) - 1; i++)
		if (data[i] > 0x20 && data[i] < 0x7f && data[i] != '#' && data[i] != '\\')
			text[length++] = (char)data[i];
	text[length] = '\0';
	arena_init(&arena, 1 << 20);
	rc = target_parse(text, &arena, &target, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
	} else {
		check_path(target.path);
		CHECK(strchr(target.path, '\\') == NULL);
		CHECK(target.query_count <= TARGET_QUERIES_MAX);
		for (size_t i = 0; i < target.query_count; i++) {
			check_text(target.query[i].name);
			check_text(target.query[i].value);
			CHECK(target_query(&target, target.query[i].name) == target.query[i].value);
		}
	}
	arena_deinit(&arena);
	return 0;
}
