/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad job files by the class: what jobfile_test.c shows with one example each is tried here on every field. Each is
 * refused, at a place, with a message that commands no terminal and costs little memory.
 */
#include "base/testing.h"

#include "api/jobfile/jobfile.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"

enum { LITTLE_MEMORY = 1 << 20 };

static struct arena arena;

static int begin(void **state)
{
	(void)state;
	arena_init(&arena, 256 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_deinit(&arena);
	return 0;
}

static int parse(const char *text, size_t size, struct err *err)
{
	struct job_request request;

	*err = (struct err){ 0 };
	return jobfile_parse("job.yaml", text, size, &arena, &request, err);
}

static struct err refused_bytes(const char *text, size_t size)
{
	AUTO_BUF shown = BUF_INIT;
	struct err err;

	if (parse(text, size, &err) >= 0)
		fail_msg("accepted: %.200s", text);
	if (!err.text[0] || !err.code || strcmp(err.file, "job.yaml") != 0)
		fail_msg("no story for: %.200s", text);
	text_for_terminal(&shown, err.text, strlen(err.text));
	for (size_t i = 0; i < shown.size; i++)
		if ((unsigned char)shown.data[i] < 0x20 || shown.data[i] == 0x7f)
			fail_msg("the message on %.200s commands a terminal", text);
	return err;
}

static struct err refused(const struct buf *text)
{
	return refused_bytes(buf_text(text), text->size);
}

static void taken(const struct buf *text)
{
	struct err err;

	if (parse(text->data, text->size, &err) < 0)
		fail_msg("%.200s: %s", text->data, err.text);
}

/* --- text ---------------------------------------------------------------------------------------------- */

static void text_that_is_not_utf8_is_refused_wherever_it_stands(void **state)
{
	static const char *const bad[] = { "\xff",         "\x80",         "\xc0\xaf",
					   "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
					   "\xe2\x82",     "\xf0\x9f\x98" };
	static const struct {
		const char *before, *after;
	} places[] = {
		{ "command: a", "\n" },
		{ "command: x\nname: \"a", "\"\n" },
		{ "command: x\n# ", "\n" },
		{ "command: x\nenv: {A", ": b}\n" },
		{ "script: |\n  echo ", "\n" },
		{ "{\"command\":\"", "\"}" },
		{ "{\"command\":\"x\",\"", "\":1}" },
		{ "command: [a, '", "']\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
			AUTO_BUF text = BUF_INIT;

			buf_addf(&text, "%s%s%s", places[k].before, bad[i], places[k].after);
			assert_non_null(strstr(refused(&text).text, "UTF-8"));
		}
}

/* Where it stands plainly; in quotes an escape says it, for the fields that a terminal will show. */
static void control_characters_are_refused_wherever_they_stand(void **state)
{
	static const struct {
		const char *before, *after;
	} places[] = {
		{ "command: a", "b\n" },      { "command: x\nname: 'a", "b'\n" },
		{ "command: x\n# a", "b\n" }, { "{\"command\":\"a", "b\"}" },
		{ "script: |\n  a", "b\n" },  { "command: x\nenv: {A: 'a", "b'}\n" },
	};

	(void)state;
	for (int c = 0; c < 0x20; c++) {
		if (c == '\t' || c == '\n' || c == '\r')
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
			AUTO_BUF text = BUF_INIT;

			buf_adds(&text, places[k].before);
			buf_addc(&text, (char)c);
			buf_adds(&text, places[k].after);
			refused(&text);
		}
	}
}

/* --- names ---------------------------------------------------------------------------------------------- */

static void hostile_names_are_refused_in_every_field_that_takes_a_name(void **state)
{
	static const char *const fields[] = { "name: %",
					      "queue: %",
					      "team: %",
					      "project: %",
					      "gpus: {count: 1, model: %}",
					      "gpus: {count: 1, model: [A100, %]}",
					      "topology: {require: %}",
					      "topology: {prefer: %}" };
	static const char *const names[] = { "\"a\\e[2J\"",
					     "\"a\\u001b]0;x\\u0007\"",
					     "\"a\\nb\"",
					     "\"a\\rb\"",
					     "\"a\\tb\"",
					     "\"\\x7f\"",
					     "\"a\\u009b31m\"",
					     "\"a\\u202eb\"",
					     "\"\\ufeffa\"",
					     "''",
					     "' '",
					     "a/b",
					     "../x",
					     "'..'",
					     "a b",
					     "'a,b'",
					     "\"a\\\"b\"",
					     "\"a'b\"",
					     "'a;b'",
					     "'a$b'",
					     "'`a`'",
					     "'<a>'",
					     "'-a'",
					     "'.a'",
					     "a\\b",
					     "\xc3\xa4",
					     "'a:b'",
					     "'%41'",
					     "[[a]]",
					     "{a: b}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *mark = strchr(fields[i], '%');
		AUTO_BUF good = BUF_INIT;

		buf_addf(&good, "command: x\n%.*snode%s\n", (int)(mark - fields[i]), fields[i],
			 mark + 1);
		taken(&good);
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			AUTO_BUF text = BUF_INIT;

			buf_addf(&text, "command: x\n%.*s%s%s\n", (int)(mark - fields[i]),
				 fields[i], names[k], mark + 1);
			refused(&text);
		}
	}
}

static void a_misspelt_field_of_any_letters_is_named_harmlessly(void **state)
{
	static const char *const keys[] = {
		"\"n\\e[31mame\"", "\"\\u202egpus\"", "\"a\\nb\"", "\"\"",
		"\" name\"",       "'na me'",         "Name",      "NAME",
		"\xc3\xbc"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		AUTO_BUF text = BUF_INIT;

		buf_addf(&text, "command: x\n%s: 1\n", keys[i]);
		assert_non_null(strstr(refused(&text).text, "field"));
	}
}

/* --- numbers ---------------------------------------------------------------------------------------------- */

static void numbers_out_of_range_are_refused_in_every_field_that_takes_one(void **state)
{
	static const char *const fields[] = { "tasks: %",
					      "tasks: {min: 1, max: %}",
					      "tasks: {min: %, max: 4096}",
					      "tasks: 1..%",
					      "gpus: %",
					      "gpus: {count: %}",
					      "gpus: {count: 1, memory: %MiB}",
					      "cpus: %",
					      "memory: %MiB",
					      "priority: %",
					      "limit: %s",
					      "estimate: %s",
					      "retries: %",
					      "depends_on: %",
					      "depends_on: [%]",
					      "array: %",
					      "checkpoint: {how: report, every: %s}",
					      "checkpoint: {how: report, grace: %s}",
					      "checkpoint: {how: report, restart_cost: %s}" };
	static const char *const numbers[] = { "-9223372036854775808",
					       "-9223372036854775809",
					       "-2147483649",
					       "9223372036854775807",
					       "9223372036854775808",
					       "18446744073709551616",
					       "18446744073709551617",
					       "99999999999999999999999999",
					       "-99999999999999999999999999",
					       "1e30",
					       "0x7fffffff",
					       "1_000",
					       "+1",
					       "--1",
					       "1.5.5",
					       "NaN",
					       ".inf",
					       "\xd9\xa1",
					       "1 1",
					       "''",
					       "true" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *mark = strchr(fields[i], '%');
		AUTO_BUF good = BUF_INIT;

		buf_addf(&good, "command: x\n%.*s2%s\n", (int)(mark - fields[i]), fields[i],
			 mark + 1);
		taken(&good);
		for (size_t k = 0; k < ARRAY_SIZE(numbers); k++) {
			AUTO_BUF text = BUF_INIT;

			buf_addf(&text, "command: x\n%.*s%s%s\n", (int)(mark - fields[i]),
				 fields[i], numbers[k], mark + 1);
			refused(&text);
		}
	}
}

/* --- types ------------------------------------------------------------------------------------------------ */

/* Maps whose keys are the job's. */
static bool takes_any_key(const char *field)
{
	static const char *const fields[] = { "env", "selector", "throughput", "labels",
					      "apart_from" };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (strcmp(field, fields[i]) == 0)
			return true;
	return false;
}

/* No other field takes a map of unknown keys, and none takes a list of maps. */
static void a_map_or_list_of_something_else_is_refused_in_every_field(void **state)
{
	const struct jobfile_field *fields;
	size_t count, tried = 0;

	(void)state;
	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF map = BUF_INIT;
		AUTO_BUF list = BUF_INIT;
		const char *other = strcmp(fields[i].name, "command") == 0 ||
						    strcmp(fields[i].name, "script") == 0
					    ? ""
					    : "command: x\n";

		if (strchr(fields[i].name, '.'))
			continue;
		buf_addf(&map, "%s%s: {no-such-key: 1}\n", other, fields[i].name);
		buf_addf(&list, "%s%s: [{no-such-key: 1}]\n", other, fields[i].name);
		if (!takes_any_key(fields[i].name))
			refused(&map);
		refused(&list);
		tried++;
	}
	assert_true(tried > 15);
}

static void nobody_says_in_a_job_file_who_he_is(void **state)
{
	static const char *const keys[] = { "user",       "uid",        "gid",  "root",
					    "privileged", "id",         "job",  "state",
					    "body",       "client_key", "token" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		AUTO_BUF text = BUF_INIT;

		buf_addf(&text, "{\"command\":\"x\",\"%s\":0}", keys[i]);
		assert_int_equal(refused(&text).code, ERR_INVALID);
	}
}

/* --- size ------------------------------------------------------------------------------------------------- */

static void an_alias_bomb_is_refused_in_little_memory(void **state)
{
	AUTO_BUF text = BUF_INIT;

	(void)state;
	buf_adds(&text, "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
	for (int i = 1; i < 40; i++) {
		buf_addf(&text, "a%d: &a%d [", i, i);
		for (int k = 0; k < 10; k++)
			buf_addf(&text, "%s*a%d", k ? ", " : "", i - 1);
		buf_adds(&text, "]\n");
	}
	buf_adds(&text, "command: *a39\n");
	assert_non_null(strstr(refused(&text).text, "anchors"));
	assert_true(arena.used_bytes < LITTLE_MEMORY);
}

/* "{"k": repeated, the tail fills up to size. */
static void repeated(struct buf *out, const char *before, const char *item, size_t size)
{
	buf_adds(out, before);
	while (out->size < size)
		buf_adds(out, item);
}

static void ten_mib_of_anything_are_too_large_and_not_looked_at(void **state)
{
	static const struct {
		const char *before, *item;
	} shapes[] = {
		{ "command: x\n", "# comment\n" },
		{ "", "[" },
		{ "", "{" },
		{ "{\"command\":\"", "x" },
		{ "command: |\n", "  line\n" },
		{ "", "a: &a\n" },
		{ "", "- - - " },
		{ "\"", "k" },
		{ "", " " },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		AUTO_BUF text = BUF_INIT;

		repeated(&text, shapes[i].before, shapes[i].item, 10 << 20);
		assert_int_equal(refused(&text).code, ERR_TOO_LARGE);
	}
	assert_true(arena.used_bytes < LITTLE_MEMORY);
}

static void a_million_levels_are_refused_in_little_memory(void **state)
{
	static const char *const items[] = { "[", "{\"a\":", "{a: ", "- ", "? " };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(items); i++) {
		AUTO_BUF text = BUF_INIT;

		repeated(&text, "", items[i], 1 << 20);
		refused(&text);
		assert_true(arena.used_bytes < 8 * LITTLE_MEMORY);
		arena_reset(&arena);
	}
}

static void a_name_of_a_megabyte_is_refused_and_not_repeated(void **state)
{
	static const struct {
		const char *before, *after;
	} places[] = { { "command: x\n", ": 1\n" },     { "command: x\nname: ", "\n" },
		       { "command: x\nqueue: ", "\n" }, { "command: x\nenv: {", ": 1}\n" },
		       { "command: x\ntier: ", "\n" },  { "command: x\nlimit: ", "\n" },
		       { "command: x\ngpus: ", "\n" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		AUTO_BUF text = BUF_INIT;
		struct err err;

		repeated(&text, places[i].before, "kkkkkkkk", 1 << 20);
		buf_adds(&text, places[i].after);
		err = refused(&text);
		assert_true(strlen(err.text) < ERR_TEXT_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(text_that_is_not_utf8_is_refused_wherever_it_stands,
						begin, end),
		cmocka_unit_test_setup_teardown(control_characters_are_refused_wherever_they_stand,
						begin, end),
		cmocka_unit_test_setup_teardown(
			hostile_names_are_refused_in_every_field_that_takes_a_name, begin, end),
		cmocka_unit_test_setup_teardown(a_misspelt_field_of_any_letters_is_named_harmlessly,
						begin, end),
		cmocka_unit_test_setup_teardown(
			numbers_out_of_range_are_refused_in_every_field_that_takes_one, begin, end),
		cmocka_unit_test_setup_teardown(
			a_map_or_list_of_something_else_is_refused_in_every_field, begin, end),
		cmocka_unit_test_setup_teardown(nobody_says_in_a_job_file_who_he_is, begin, end),
		cmocka_unit_test_setup_teardown(an_alias_bomb_is_refused_in_little_memory, begin,
						end),
		cmocka_unit_test_setup_teardown(ten_mib_of_anything_are_too_large_and_not_looked_at,
						begin, end),
		cmocka_unit_test_setup_teardown(a_million_levels_are_refused_in_little_memory,
						begin, end),
		cmocka_unit_test_setup_teardown(a_name_of_a_megabyte_is_refused_and_not_repeated,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
