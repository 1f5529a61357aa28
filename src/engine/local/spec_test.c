/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <string.h>

#include "base/arena.h"
#include "engine/local/spec.h"

static const char *const words[] = { "python", "-c", "print('\"\n\x01')", "", NULL };
static const char *const variables[] = { "A=b=c", "EMPTY=", NULL };

static struct task_spec sample(void)
{
	return (struct task_spec){
		.version = SPEC_VERSION,
		.job = 7,
		.attempt = UINT64_MAX,
		.rank = 3,
		.count = 4,
		.boot = "boot-id",
		.user = "alice",
		.uid = 4294967294U - 1,
		.gid = 12,
		.argv = (const char **)(uintptr_t)words,
		.env = (const char **)(uintptr_t)variables,
		.workdir = "/home/alice",
		.checkpoint_dir = "/ck",
		.checkpoint_signal = 10,
		.checkpoint_every_ms = 600000,
		.memory_mib = 4096,
		.cpus = "0-3,8",
		.log_cap_bytes = 1 << 20,
		.logs = "/d/logs",
		.run = "/d/run/1/3",
		.port = 65535,
		.brand = UINT64_C(1) << 60 | 5,
		.cgroups = { .name = "n",
			     .tree = "/t/n",
			     .memory = "/m/n",
			     .pids = "/p/n",
			     .tree_v2 = true },
	};
}

static int parse(const struct buf *text, struct arena *arena, struct task_spec *spec,
		 struct err *err)
{
	arena_init(arena, 64 << 20);
	return spec_parse(buf_text(text), text->size, arena, spec, err);
}

static void a_specification_is_read_back_as_written(void **state)
{
	AUTO_BUF text = BUF_INIT, again = BUF_INIT;
	struct task_spec spec = sample(), read;
	struct arena arena;
	struct err err;

	(void)state;
	spec_format(&text, &spec);
	assert_int_equal(parse(&text, &arena, &read, &err), 0);
	spec_format(&again, &read);
	assert_string_equal(text.data, again.data);
	for (size_t i = 0; words[i]; i++)
		assert_string_equal(read.argv[i], words[i]);
	assert_null(read.argv[4]);
	assert_null(read.script);
	assert_int_equal(read.checkpoint_every_ms, 600000);
	assert_true(read.cgroups.tree_v2 && !read.cgroups.memory_v2);
	arena_deinit(&arena);
}

static void another_version_is_refused_by_number(void **state)
{
	AUTO_BUF text = BUF_INIT;
	struct task_spec spec = sample(), read;
	struct arena arena;
	struct err err;

	(void)state;
	spec.version = SPEC_VERSION + 1;
	spec_format(&text, &spec);
	assert_int_equal(parse(&text, &arena, &read, &err), -(int)ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "version 2"));
	arena_deinit(&arena);
}

/* Every prefix of a specification is refused: a torn file can't pass for a whole one. */
static void a_torn_specification_is_refused_at_every_byte(void **state)
{
	AUTO_BUF text = BUF_INIT;
	struct task_spec spec = sample(), read;
	struct err err;

	(void)state;
	spec_format(&text, &spec);
	for (size_t size = 0; size < text.size - 1; size++) {
		struct arena arena;

		arena_init(&arena, 64 << 20);
		assert_true(spec_parse(text.data, size, &arena, &read, &err) < 0);
		arena_deinit(&arena);
	}
}

static void without_a_user_nothing_runs(void **state)
{
	static const char none[] =
		"{\"version\":1,\"job\":1,\"attempt\":1,\"rank\":0,\"user\":\"a\",\"argv\":[],\"env\":[],\"logs\":\"/\",\"run\":\"/\"}";
	struct task_spec read;
	struct arena arena;
	struct err err;

	(void)state;
	arena_init(&arena, 64 << 20);
	/* No uid must not read as uid 0. */
	assert_int_equal(spec_parse(none, sizeof(none) - 1, &arena, &read, &err),
			 -(int)ERR_CORRUPT);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_specification_is_read_back_as_written),
		cmocka_unit_test(another_version_is_refused_by_number),
		cmocka_unit_test(a_torn_specification_is_refused_at_every_byte),
		cmocka_unit_test(without_a_user_nothing_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
