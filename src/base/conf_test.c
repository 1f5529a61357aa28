/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/conf.h"

/* A tree in one line: scalars as text (quoted ones in quotes), ~ for null, and places behind @. */
static void write_tree(struct buf *out, const struct conf *c, bool places)
{
	if (c->key)
		buf_addf(out, "%s", c->key);
	if (c->key && places)
		buf_addf(out, "@%d:%d", c->key_line, c->key_column);
	if (c->key)
		buf_addc(out, '=');
	switch (c->type) {
	case CONF_NULL: buf_addc(out, '~'); break;
	case CONF_SCALAR: buf_addf(out, c->quoted ? "'%s'" : "%s", c->text); break;
	case CONF_LIST:
	case CONF_MAP:
		buf_addc(out, c->type == CONF_MAP ? '{' : '[');
		for (size_t i = 0; i < c->count; i++) {
			if (i)
				buf_addc(out, ' ');
			write_tree(out, c->items[i], places);
		}
		buf_addc(out, c->type == CONF_MAP ? '}' : ']');
		break;
	}
	if (places)
		buf_addf(out, "@%d:%d", c->line, c->column);
}

static char *parse_sized(const char *text, size_t size, bool places)
{
	AUTO_BUF out = BUF_INIT;
	struct conf **documents;
	struct arena arena;
	struct err err;
	size_t count;

	arena_init(&arena, CONF_ARENA_MAX);
	if (conf_parse("f", text, size, &arena, &documents, &count, &err) < 0) {
		buf_addf(&out, "%s:%d:%d: %s", err.file, err.line, err.column, err.text);
	} else {
		for (size_t i = 0; i < count; i++) {
			if (i)
				buf_adds(&out, " --- ");
			write_tree(&out, documents[i], places);
		}
	}
	arena_deinit(&arena);
	return buf_take(&out);
}

static void assert_tree(const char *text, const char *expected, bool places)
{
	char *read = parse_sized(text, strlen(text), places);

	if (strcmp(read, expected) != 0)
		fail_msg("%s\nis       %s\nexpected %s", text, read, expected);
	free(read);
}

static void yaml_and_json_become_trees(void **state)
{
	static const struct {
		const char *text, *tree;
	} cases[] = {
		{ "", "" },
		{ "# nothing\n", "" },
		{ "---\n", "~" },
		{ "a", "a" },
		{ "a: 1\nb: two\n", "{a=1 b=two}" },
		{ "a: 1\r\nb: 2\r\n", "{a=1 b=2}" },
		{ "- 1\n- [2, 3]\n-\n- {a: b}\n", "[1 [2 3] ~ {a=b}]" },
		{ "a: null\nb: ~\nc:\nd: ''\ne: 'null'\nf: Null\n",
		  "{a=~ b=~ c=~ d='' e='null' f=Null}" },
		{ "a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{a='x\ny\n' b='x y'}" },
		{ "a: \"q\\n\\u00e9\"\nb: 'it''s'\n", "{a='q\n\xc3\xa9' b='it's'}" },
		{ "a: 1\n---\nb: 2\n...\n---\n- c\n", "{a=1} --- {b=2} --- [c]" },
		{ "%YAML 1.2\n---\na: b\n", "{a=b}" },
		{ "<<: {a: 1}\n", "{<<={a=1}}" },
		{ "yes: no\n", "{yes=no}" },
		{ "\xef\xbb\xbf"
		  "a: 1\n",
		  "{a=1}" },
		{ "\xef\xbb\xbf{\"a\": 1}", "{a=1}" },
		{ "{}", "{}" },
		{ "[]", "[]" },
		{ "{\"a\":1,\"b\":[true,null,-1.5e3,\"x\"],\"c\":{}}",
		  "{a=1 b=[true ~ -1.5e3 'x'] c={}}" },
		{ "{\"a\":\t\"b\",\n\t\"c\": [1,2]}\n", "{a='b' c=[1 2]}" },
		{ "[\"\\ud83d\\ude00\\/\\u001b\"]", "['\xf0\x9f\x98\x80/\x1b']" },
		{ "{\"null\":\"null\",\"k\\u0065y\":null}", "{null='null' key=~}" },
		{ "{a: 1, b: [x, y], # comment\n c: \"d\"}", "{a=1 b=[x y] c='d'}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_tree(cases[i].text, cases[i].tree, false);
}

static void every_value_knows_its_place(void **state)
{
	static const struct {
		const char *text, *tree;
	} cases[] = {
		{ "a: 1\nbc:  [x, {d: 'e'}]\n",
		  "{a@1:1=1@1:4 bc@2:1=[x@2:7 {d@2:11='e'@2:14}@2:10]@2:6}@1:1" },
		{ "\n\n  a:\n    - x\n    -  y\n", "{a@3:3=[x@4:7 y@5:8]@4:5}@3:3" },
		{ "\xc3\xa9\xc3\xa9: \"\xf0\x9f\x98\x80\"\nb: [\xe2\x82\xac, x]\n",
		  "{\xc3\xa9\xc3\xa9@1:1='\xf0\x9f\x98\x80'@1:5 "
		  "b@2:1=[\xe2\x82\xac@2:5 x@2:8]@2:4}@1:1" },
		{ "{\"\xc3\xa9\": 1,\r\n \"b\": [\"\xf0\x9f\x98\x80\", 2]}",
		  "{\xc3\xa9@1:2=1@1:7 b@2:2=['\xf0\x9f\x98\x80'@2:8 2@2:13]@2:7}@1:1" },
		{ "\n [ {\"a\" : null } ]", "[{a@2:5=~@2:11}@2:4]@2:2" },
		{ "a: |\n  x\nb: c\n", "{a@1:1='x\n'@1:4 b@3:1=c@3:4}@1:1" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_tree(cases[i].text, cases[i].tree, true);
}

static void all_that_is_refused_names_its_place(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		/* bytes */
		{ "a: b\nc: \xff\n", "f:2:4: this is not valid UTF-8" },
		{ "\xc3\xa9: \xc0\xaf\n", "f:1:4: this is not valid UTF-8" },
		{ "{\"a\": \"\xed\xa0\x80\"}", "f:1:8: this is not valid UTF-8" },
		{ "\xff\xfe"
		  "a",
		  "f:1:1: this is not valid UTF-8" },
		{ "a: b\x1b[1m\n", "f:1:5: a control character (U+001B)" },
		{ "a: \x7f\n", "f:1:4: a control character (U+007F)" },
		{ "# \xc2\x85\n", "f:1:3: a control character (U+0085)" },
		{ "a: b\rc: d\n", "f:1:5: a control character (U+000D)" },
		{ "a: \xe2\x80\xa8\n", "f:1:4: a control character (U+2028)" },
		{ "a: \xef\xbb\xbf\n", "f:1:4: a control character (U+FEFF)" },
		{ "{\"a\":\"\x01\"}", "f:1:7: a control character (U+0001)" },
		{ "a: \"x\\0y\"\n", "f:1:4: a text can't have a NUL character" },
		{ "\"x\\0y\": 1\n", "f:1:1: a text can't have a NUL character" },
		{ "{\"a\": \"x\\u0000y\"}", "f:1:7: a text can't have a NUL character" },
		{ "{\"a\\u0000\": 1}", "f:1:2: a text can't have a NUL character" },
		/* anchors, aliases, tags */
		{ "a: &x 1\nb: *x\n", "f:1:4: anchors (&x)" },
		{ "a: 1\nb: &x [1]\n", "f:2:4: anchors (&x)" },
		{ "b: &x {c: 1}\n", "f:1:4: anchors (&x)" },
		{ "&x a: 1\n", "f:1:1: anchors (&x)" },
		{ "a: [1, *x]\n", "f:1:8: aliases (*x)" },
		{ "*x : 1\n", "f:1:1: aliases (*x)" },
		{ "a: !!str 1\n", "f:1:4: tags (!)" },
		{ "a: !foo [1]\n", "f:1:4: tags (!)" },
		{ "a:\n  - !<tag:x> {b: 1}\n", "f:2:5: tags (!)" },
		{ "a: ! x\n", "f:1:4: tags (!)" },
		{ "\xc3\xa9: ! [x]\n", "f:1:4: tags (!)" },
		{ "%TAG ! tag:x,2000:\n---\na\n", "f:1:1: tags (%TAG)" },
		{ "a: !e!x 1\n", "f:1:4: tags (!)" },
		/* keys */
		{ "a: 1\nb: 2\na: 3\n",
		  "f:3:1: the key \"a\" is here a second time; it stands at line 1" },
		{ "x:\n  b: 1\n  a: 1\n  'a': 2\n  b: 2\n",
		  "f:4:3: the key \"a\" is here a second time; it stands at line 3" },
		{ "b: 1\nb: 2\na: 1\na: 2\n", "f:2:1: the key \"b\" is here a second time" },
		{ "{b: 1, a: 1, b: 2, b: 3}", "f:1:14: the key \"b\" is here a second time" },
		{ "{\"a\": 1,\n \"\\u0061\": 2}",
		  "f:2:2: the key \"a\" is here a second time; it stands at line 1" },
		{ "? [a]\n: b\n", "f:1:3: a key must be a text" },
		{ "{{a: b}: c}", "f:1:2: a key must be a text" },
		{ "? \n: b\n", "f:1:2: a key is missing" },
		/* what YAML itself refuses, in our words */
		{ "a:\n\tb: 1\n", "f:2:1: a tab can't indent" },
		{ "a: @x\n", "f:1:4: a text that starts with this character must be in quotes" },
		{ "a: `x`\n", "f:1:4: a text that starts with this character must be in quotes" },
		{ "a: %x\n", "f:1:4: a text that starts with this character must be in quotes" },
		{ "a: b: c\n", "f:1:5: a key can't stand here" },
		{ "a: 1\n b: 2\n", "f:2:3: a key can't stand here" },
		{ "a:\n  - 1\n b: 2\n", "f:3:2: a key is expected here" },
		{ "- a\nb: c\n", "f:2:1: a list goes on here" },
		{ "a: [1, 2\n",
		  "f:2:1: a comma or the bracket that closes the one at line 1, column 4" },
		{ "a: {b: 1\nc: 2\n",
		  "f:2:2: a comma or the bracket that closes the one at line 1, column 4" },
		{ "b: 1\na: \"x\n", "f:2:4: the quotes that open here are not closed" },
		{ "a: 'x\n", "f:1:4: the quotes that open here are not closed" },
		{ "a: \"\\q\"\n", "f:1:5: this escape is not known" },
		{ "a: \"\\u12\"\n", "f:1:7: hexadecimal digits are expected" },
		{ "a: \"\\ud83d\"\n", "f:1:7: this escape is not a character" },
		{ "a: 1\nb\n", "f:3:1: a colon is expected behind this key" },
		{ "a: [}\n", "f:1:5: a value is expected here" },
		{ "a\n---\nb\nc: d\n", NULL },
		{ "a: b\n...\nc: d\n...\n%\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *read = parse_sized(cases[i].text, strlen(cases[i].text), false);

		if (!cases[i].error ? strncmp(read, "f:", 2) != 0
				    : strncmp(read, cases[i].error, strlen(cases[i].error)) != 0)
			fail_msg("%s\nis       %s\nexpected %s", cases[i].text, read,
				 cases[i].error);
		free(read);
	}
}

static void an_inner_nul_byte_is_refused(void **state)
{
	char *read = parse_sized("a: x\0y\n", 7, false);

	(void)state;
	assert_non_null(strstr(read, "f:1:5: a control character (U+0000)"));
	free(read);
}

/* A text of `count` copies of `piece` between two others. */
static char *repeat(const char *before, const char *piece, size_t count, const char *after)
{
	struct buf out = BUF_INIT;

	buf_adds(&out, before);
	for (size_t i = 0; i < count; i++)
		buf_adds(&out, piece);
	buf_adds(&out, after);
	return buf_take(&out);
}

static void assert_limit(char *text, size_t size, const char *error)
{
	char *read = parse_sized(text, size, false);

	if (!error ? strncmp(read, "f:", 2) == 0 : strncmp(read, error, strlen(error)) != 0)
		fail_msg("%.200s", read);
	free(read);
	free(text);
}

static void each_limit_is_taken_and_one_more_refused(void **state)
{
	char *text, *closing;

	(void)state;
	for (int depth = CONF_DEPTH_MAX; depth <= CONF_DEPTH_MAX + 1; depth++) {
		const char *error = depth > CONF_DEPTH_MAX
					    ? "f:1:33: lists and maps are nested more than 32 deep"
					    : NULL;

		closing = repeat("", "]", (size_t)depth, "");
		text = repeat("", "[", (size_t)depth, closing);
		assert_limit(text, strlen(text), error); /* JSON */
		free(closing);
		text = repeat("", "- ", (size_t)depth, "x"); /* YAML */
		assert_limit(text, strlen(text),
			     depth > CONF_DEPTH_MAX ? "f:1:65: lists and maps are nested" : NULL);
	}
	/* the list itself is a value too, and 1 the first in it */
	text = repeat("[1", ",1", CONF_NODES_MAX - 2, "]");
	assert_limit(text, strlen(text), NULL);
	text = repeat("[1", ",1", CONF_NODES_MAX - 1, "]");
	assert_limit(text, strlen(text), "f:1:400000: there are more than 200000 values");
	text = repeat("", "- x\n", CONF_NODES_MAX - 1, "");
	assert_limit(text, strlen(text), NULL);
	text = repeat("", "- x\n", CONF_NODES_MAX, "");
	assert_limit(text, strlen(text), "f:200000:3: there are more than 200000 values");
	text = repeat("", "---\n", CONF_NODES_MAX + 1, "");
	assert_limit(text, strlen(text), "f:200002:1: there are more than 200000 values");
	text = repeat("a: '", "x", CONF_BYTES_MAX - 5, "'");
	assert_limit(text, strlen(text), NULL);
	text = repeat("a: '", "x", CONF_BYTES_MAX - 4, "'");
	assert_limit(text, strlen(text), "f:0:0: the text has 4194305 bytes; the limit is 4194304");
}

/* The arena that conf_parse is promised is enough for what costs most: many short texts. */
static void the_arena_needed_is_bounded(void **state)
{
	struct buf text = BUF_INIT;

	(void)state;
	buf_addc(&text, '[');
	for (int i = 0; i < CONF_NODES_MAX / 2 - 1; i++)
		buf_addf(&text, "%s{k23456789abcdef: \"\\L\\L\\L\\L\\L\"}", i ? "," : "");
	buf_addc(&text, ']');
	assert_true(text.size < CONF_BYTES_MAX);
	assert_limit(text.data, text.size, NULL);
}

/* Any text ends in a tree or an error with a place; ASan and UBSan watch. */
static void damaged_texts_are_survived(void **state)
{
	static const char yaml[] =
		"name: demo\ntasks: 4\ngpus: {count: 1, model: [H100-80GB, 'A100']}\n"
		"env:\n  A: \"x\\n\\u00e9\"\n  B: |\n    echo \xc3\xa9\n    done\n# comment\n"
		"---\n? k\n: v\n";
	static const char json[] = "{\"name\":\"d\xc3\xa9mo\",\"tasks\":4,\"l\":[1,{\"a\":null}],"
				   "\"t\":\"\\ud83d\\ude00\"}";
	static const char marks[] = "{}[]\",:'|>-?&*!%#@`\\ \t\n\r\x01\xff"
				    "01ax~<";
	struct dice dice = { 4 };
	char text[sizeof(yaml) + sizeof(json)];

	(void)state;
	for (int i = 0; i < 8000; i++) {
		size_t size = i % 3 ? sizeof(yaml) - 1 : sizeof(json) - 1;
		char *exact, *read;

		memcpy(text, i % 3 ? yaml : json, size);
		for (uint32_t times = dice_below(&dice, 6); times; times--)
			text[dice_below(&dice, (uint32_t)size)] =
				marks[dice_below(&dice, sizeof(marks) - 1)];
		if (dice_below(&dice, 2))
			size = dice_below(&dice, (uint32_t)size + 1);
		exact = malloc(size ? size : 1);
		assert_non_null(exact);
		memcpy(exact, text, size);
		read = parse_sized(exact, size, true);
		if (strncmp(read, "f:", 2) == 0)
			assert_null(strstr(read, ":0:0:"));
		free(read);
		free(exact);
	}
}

/* Values */

static const struct conf *parse_one(struct arena *arena, const char *text)
{
	struct conf **documents;
	size_t count;

	assert_int_equal(conf_parse("f", text, strlen(text), arena, &documents, &count, NULL), 0);
	assert_int_equal(count, 1);
	return documents[0];
}

static void values_are_read_by_their_readers(void **state)
{
	const struct conf *map;
	const char *text;
	struct arena arena;
	int64_t number;
	bool flag;

	(void)state;
	arena_init(&arena, 1 << 20);
	map = parse_one(&arena, "int: -5\nyes: true\nno: false\ntext: no\nnumber: 12\nempty: ''\n"
				"wait: 1h30m\nquoted: '90s'\nsize: 80GiB\n");
	assert_int_equal(conf_int(NULL, "f", conf_find(map, "int"), "int", -5, 5, &number), 0);
	assert_int_equal(number, -5);
	assert_int_equal(conf_bool(NULL, "f", conf_find(map, "yes"), "yes", &flag), 0);
	assert_true(flag);
	assert_int_equal(conf_bool(NULL, "f", conf_find(map, "no"), "no", &flag), 0);
	assert_false(flag);
	assert_int_equal(conf_text(NULL, "f", conf_find(map, "text"), "text", 2, &text), 0);
	assert_string_equal(text, "no");
	assert_int_equal(conf_text(NULL, "f", conf_find(map, "number"), "number", 10, &text), 0);
	assert_string_equal(text, "12");
	assert_int_equal(conf_text(NULL, "f", conf_find(map, "empty"), "empty", 0, &text), 0);
	assert_string_equal(text, "");
	assert_int_equal(conf_duration(NULL, "f", conf_find(map, "wait"), "wait", &number), 0);
	assert_int_equal(number, 5400000);
	assert_int_equal(conf_duration(NULL, "f", conf_find(map, "quoted"), "quoted", &number), 0);
	assert_int_equal(number, 90000);
	assert_int_equal(conf_size_mib(NULL, "f", conf_find(map, "size"), "size", &number), 0);
	assert_int_equal(number, 81920);
	assert_null(conf_find(map, "other"));
	assert_null(conf_find(conf_find(map, "int"), "int"));
	assert_null(conf_find(NULL, "int"));
	arena_deinit(&arena);
}

enum want { INT, BOOL, TEXT, DURATION, SIZE };

static int read_as(struct err *err, const struct conf *c, enum want want)
{
	const char *text;
	int64_t number;
	bool flag;

	switch (want) {
	case INT: return conf_int(err, "f", c, "tasks", 1, 100, &number);
	case BOOL: return conf_bool(err, "f", c, "hold", &flag);
	case TEXT: return conf_text(err, "f", c, "name", 5, &text);
	case DURATION: return conf_duration(err, "f", c, "grace", &number);
	case SIZE: return conf_size_mib(err, "f", c, "memory", &number);
	}
	return 0;
}

static void wrong_values_are_refused_with_place_and_wish(void **state)
{
	static const struct {
		const char *text;
		enum want want;
		const char *error;
	} cases[] = {
		{ "x: four", INT, "tasks: \"four\" is not a whole number" },
		{ "x: 4.0", INT, "tasks: \"4.0\" is not a whole number" },
		{ "x: 101", INT, "tasks: 101 is not between 1 and 100" },
		{ "x: -1", INT, "tasks: -1 is not between 1 and 100" },
		{ "x: 99999999999999999999", INT, "is not between 1 and 100" },
		{ "x: '4'", INT, "\"4\" is a text because of its quotes" },
		{ "x: [4]", INT, "tasks must be a whole number, not a list" },
		{ "x: {}", INT, "tasks must be a whole number, not a map" },
		{ "x: ~", INT, "tasks must be a whole number, not left empty" },
		{ "x: yes", BOOL, "hold must be true or false (without quotes), not \"yes\"" },
		{ "x: 'true'", BOOL, "hold must be true or false (without quotes), not \"true\"" },
		{ "x: 1", BOOL, "hold must be true or false" },
		{ "x: []", TEXT, "name must be a text, not a list" },
		{ "x:", TEXT, "name must be a text, not left empty" },
		{ "x: abcdef", TEXT, "name has 6 bytes; the limit is 5" },
		{ "x: 90", DURATION, "grace: duration \"90\" lacks a unit" },
		{ "x: {}", DURATION, "grace must be a duration such as 90s or 1h30m, not a map" },
		{ "x: 80g", SIZE, "memory: size \"80g\" has a unit" },
		{ "x: []", SIZE, "memory must be a size such as 512MiB or 80GiB, not a list" },
	};
	struct arena arena;
	struct err err;

	(void)state;
	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct conf *map = parse_one(&arena, cases[i].text);

		assert_int_equal(read_as(&err, conf_find(map, "x"), cases[i].want),
				 -(int)ERR_INVALID);
		if (!strstr(err.text, cases[i].error))
			fail_msg("%s: %s", cases[i].text, err.text);
		assert_string_equal(err.file, "f");
		assert_int_equal(err.line, 1);
		assert_int_equal(err.column, strlen(cases[i].text) > 2 ? 4 : 3);
		assert_int_equal(read_as(NULL, conf_find(map, "x"), cases[i].want),
				 -(int)ERR_INVALID);
		assert_int_equal(read_as(&err, NULL, cases[i].want), -(int)ERR_INVALID);
		assert_non_null(strstr(err.text, "is missing"));
	}
	arena_deinit(&arena);
}

static void unknown_fields_are_refused_with_a_hint(void **state)
{
	static const char *const known[] = { "name", "tasks", "gpus" };
	const struct conf *map;
	struct arena arena;
	struct err err;

	(void)state;
	arena_init(&arena, 1 << 20);
	map = parse_one(&arena, "name: x\ngpus: 1\n");
	assert_int_equal(conf_only(&err, "f", map, "job", known, 3), 0);
	map = parse_one(&arena, "name: x\ntaks: 4\nfoo: 1\n");
	assert_int_equal(conf_only(&err, "f", map, "job", known, 3), -(int)ERR_INVALID);
	assert_string_equal(err.text, "job has no field \"taks\"; did you mean \"tasks\"?");
	assert_int_equal(err.line, 2);
	assert_int_equal(err.column, 1);
	map = parse_one(&arena, "{name: x, colour: blue}");
	assert_int_equal(conf_only(&err, "f", map, "job", known, 3), -(int)ERR_INVALID);
	assert_string_equal(err.text, "job has no field \"colour\"; it has name, tasks and gpus");
	assert_int_equal(err.column, 11);
	assert_int_equal(conf_error(&err, "f", map, "x %d", 5), -(int)ERR_INVALID);
	assert_string_equal(err.text, "x 5");
	assert_int_equal(err.line, 1);
	arena_deinit(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_and_json_become_trees),
		cmocka_unit_test(every_value_knows_its_place),
		cmocka_unit_test(all_that_is_refused_names_its_place),
		cmocka_unit_test(an_inner_nul_byte_is_refused),
		cmocka_unit_test(each_limit_is_taken_and_one_more_refused),
		cmocka_unit_test(the_arena_needed_is_bounded),
		cmocka_unit_test(damaged_texts_are_survived),
		cmocka_unit_test(values_are_read_by_their_readers),
		cmocka_unit_test(wrong_values_are_refused_with_place_and_wish),
		cmocka_unit_test(unknown_fields_are_refused_with_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
