/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/submission/follow.h"
#include "cli/jobs/jobs.h"
#include "cli/output/prose.h"
#include "cli/output/screen.h"

static const struct column columns[] = { { "A", "a", CELL_TEXT },
					 { "WIDE", "b", CELL_TEXT, true },
					 { "STATE", "b", CELL_TEXT },
					 { 0 } };

static void rendered(const struct output *output, const char *rows, const char *expected)
{
	json_t *list = json_loads(rows, 0, NULL);
	AUTO_BUF out = BUF_INIT;

	assert_non_null(list);
	output_table(output, columns, list, &out);
	assert_string_equal(buf_text(&out), expected);
	json_decref(list);
}

static void columns_are_as_wide_as_their_cells(void **state)
{
	struct output output = { .headers = true };

	(void)state;
	rendered(&output, "[{\"a\":\"long-name\",\"b\":\"x\"},{\"a\":\"s\",\"b\":\"yy\"}]",
		 "A          STATE\nlong-name  x\ns          yy\n");
	rendered(&output, "[]", "A  STATE\n");
}

static void headers_can_be_left_out(void **state)
{
	struct output output = { .headers = false };

	(void)state;
	rendered(&output, "[{\"a\":\"n\",\"b\":\"x\"}]", "n  x\n");
}

static void the_wide_form_has_more_columns(void **state)
{
	struct output output = { .headers = true, .form = OUTPUT_WIDE };

	(void)state;
	rendered(&output, "[{\"a\":\"n\",\"b\":\"x\"}]", "A  WIDE  STATE\nn  x     x\n");
}

static const struct column narrowing[] = { { "ID", "a", CELL_TEXT },
					   { "FIRST", "b", CELL_TEXT, .narrow = 1 },
					   { "SECOND", "b", CELL_TEXT, .narrow = 2 },
					   { "REASON", "c", CELL_TEXT, .cut = true },
					   { 0 } };

static void at_width(size_t width, enum output_form form, const char *reason, const char *expected)
{
	struct output output = { .headers = true, .terminal = true, .width = width, .form = form };
	json_t *rows = json_pack("[{s:s, s:s, s:s}]", "a", "7", "b", "x", "c", reason);
	AUTO_BUF out = BUF_INIT;

	output_table(&output, narrowing, rows, &out);
	assert_string_equal(buf_text(&out), expected);
	json_decref(rows);
}

static void a_narrow_terminal_loses_columns_in_their_order_and_the_end_of_the_last(void **state)
{
	static const char reason[] = "much_more_than_fits";

	(void)state;
	at_width(200, OUTPUT_TABLE, reason,
		 "ID  FIRST  SECOND  REASON\n7   x      x       much_more_than_fits\n");
	at_width(38, OUTPUT_TABLE, reason,
		 "ID  FIRST  SECOND  REASON\n7   x      x       much_more_than_fits\n");
	at_width(37, OUTPUT_TABLE, reason,
		 "ID  FIRST  SECOND  REASON\n7   x      x       much_more_than_f..\n");
	at_width(30, OUTPUT_TABLE, reason, "ID  SECOND  REASON\n7   x       much_more_than_f..\n");
	at_width(20, OUTPUT_TABLE, reason, "ID  REASON\n7   much_more_than..\n");
	at_width(3, OUTPUT_TABLE, reason, "ID  REASON\n7   much_more_..\n");
	at_width(3, OUTPUT_TABLE, "short", "ID  REASON\n7   short\n");
	at_width(
		16, OUTPUT_TABLE,
		"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc",
		"ID  REASON\n7   \xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc..\n");
	at_width(20, OUTPUT_WIDE, reason,
		 "ID  FIRST  SECOND  REASON\n7   x      x       much_more_than_fits\n");
	at_width(0, OUTPUT_TABLE, reason,
		 "ID  FIRST  SECOND  REASON\n7   x      x       much_more_than_fits\n");
}

static void a_table_shows_the_columns_asked_for(void **state)
{
	struct output output = { .headers = true, .columns = "wide,A" };
	struct err err = { 0 };
	json_t *rows = json_array();

	(void)state;
	rendered(&output, "[{\"a\":\"n\",\"b\":\"x\"}]", "WIDE  A\nx     n\n");
	output.columns = "a,nothing";
	assert_int_equal(output_list(&output, columns, rows, "a", &err), -(int)ERR_INVALID);
	assert_non_null(strstr(err.text, "no column \"nothing\"; there are a,wide,state"));
	output.columns = "a,stat";
	assert_int_equal(output_list(&output, columns, rows, "a", &err), -(int)ERR_INVALID);
	assert_non_null(strstr(err.text, "did you mean STATE?"));
	json_decref(rows);
}

static void fitted(const char *body, const char *notes, size_t rows, const char *expected)
{
	AUTO_BUF above = BUF_INIT, below = BUF_INIT, out = BUF_INIT;

	buf_adds(&above, body);
	buf_adds(&below, notes);
	screen_fit(&above, &below, rows, &out);
	assert_string_equal(buf_text(&out), expected);
}

static void a_screen_keeps_its_first_lines_and_its_notes(void **state)
{
	(void)state;
	fitted("T\n1\n2\n3\n", "", 4, "T\n1\n2\n3\n");
	fitted("T\n1\n2\n3\n", "", 3, "T\n1\nand 2 more lines; a taller window shows them\n");
	fitted("T\n1\n2\n3\n", "n\n", 4, "T\n1\nand 2 more lines; a taller window shows them\nn\n");
	fitted("T\n1\n2\n3\n", "n\n", 5, "T\n1\n2\n3\nn\n");
	fitted("T\n1\n2\n3\n", "n\n", 0, "T\n1\n2\n3\nn\n");
	fitted("T\n1\n2\n3\n", "n\n", 1, "T\nand 3 more lines; a taller window shows them\nn\n");
	fitted("", "n\n", 9, "n\n");
}

static void wrapped(size_t width, size_t hang, const char *text, const char *expected)
{
	AUTO_BUF buf = BUF_INIT;

	buf_adds(&buf, text);
	prose_wrap(&buf, width, hang);
	assert_string_equal(buf_text(&buf), expected);
}

static void sentences_break_between_words_on_a_terminal_only(void **state)
{
	(void)state;
	wrapped(0, 2, "one two three\n", "one two three\n");
	wrapped(9, 2, "one two three\n", "one two\n  three\n");
	wrapped(13, 2, "one two three\n", "one two three\n");
	wrapped(9, 2, "a\n\none two three", "a\n\none two\n  three");
	wrapped(12, 2, "  - one two three\n",
		"  - one two\n    three\n"); /* an item: below its text */
	wrapped(12, 2, "    one two three\n", "    one two\n    three\n");
	wrapped(5, 2, "a-word-too-long b\n", "a-word-too-long\n  b\n");
	wrapped(9, 0, "one  two three\n", "one  two\nthree\n");
	wrapped(8, 0, "\033[32mone\033[0m two x\n", "\033[32mone\033[0m two\nx\n");
	wrapped(7, 0, "\xc3\xbc\xc3\xbc\xc3\xbc two x\n", "\xc3\xbc\xc3\xbc\xc3\xbc two\nx\n");
	wrapped(7, 2, "", "");
}

static void awk_can_split_every_line(void **state)
{
	struct output output = { .headers = false };

	(void)state;
	rendered(&output, "[{\"a\":\"two words\\tand\\nmore\",\"b\":\"\"}]",
		 "two_words\\tand\\nmore  -\n");
}

static void a_name_cannot_move_the_cursor(void **state)
{
	struct output output = { .headers = false };
	json_t *row = json_pack("[{s:s, s:s}]", "a", "x\033[2Jy", "b", "\xe2\x80\xaer");
	AUTO_BUF out = BUF_INIT;

	(void)state;
	output_table(&output, columns, row, &out);
	assert_null(strchr(out.data, '\033'));
	assert_null(strstr(out.data, "\xe2\x80\xae")); /* right-to-left override */
	json_decref(row);
}

static void wide_characters_line_up(void **state)
{
	struct output output = { .headers = false };

	(void)state;
	rendered(&output, "[{\"a\":\"\xc3\xbc\xc3\xbc\",\"b\":\"x\"},{\"a\":\"ab\",\"b\":\"y\"}]",
		 "\xc3\xbc\xc3\xbc  x\nab  y\n");
}

static void colour_is_only_for_states_and_never_moves_a_column(void **state)
{
	struct output output = { .headers = true, .colour = true };

	(void)state;
	rendered(&output, "[{\"a\":\"running\",\"b\":\"running\"}]",
		 "A        STATE\nrunning  \033[32mrunning\033[0m\n");
	rendered(&output, "[{\"a\":\"n\",\"b\":\"unheard-of\"}]", "A  STATE\nn  unheard-of\n");
}

static void yaml_reads_as_the_same(void **state)
{
	json_t *value = json_loads(
		"{\"id\":12,\"name\":\"a b\",\"yes\":\"no\",\"n\":\"7\",\"list\":[1,\"x\",{\"k\":null,\"l\":[]}],\"deep\":{\"a\":{\"b\":true}},"
		"\"empty\":{},\"text\":\"two\\nlines: x\"}",
		0, NULL);
	AUTO_BUF out = BUF_INIT;

	(void)state;
	assert_non_null(value);
	output_yaml(value, &out);
	assert_string_equal(
		out.data,
		"id: 12\nname: \"a b\"\n\"yes\": \"no\"\n\"n\": \"7\"\nlist:\n  - 1\n  - x\n  - k: null\n    l: []\ndeep:\n  a:\n    b: true\n"
		"empty: {}\ntext: \"two\\nlines: x\"\n");
	json_decref(value);
}

static void json_holds_nothing_that_a_terminal_obeys(void **state)
{
	json_t *value = json_loads("{\"a\":\"\\u009b31m\\u007f \\u00a0\\u00e4\",\"\\u0085\":[1]}",
				   0, NULL),
	       *again;
	AUTO_BUF out = BUF_INIT;

	(void)state;
	assert_non_null(value);
	output_json(value, JSON_COMPACT, &out);
	assert_string_equal(out.data,
			    "{\"a\":\"\\u009b31m\\u007f \xc2\xa0\xc3\xa4\",\"\\u0085\":[1]}");
	again = json_loads(out.data, 0, NULL);
	assert_true(json_equal(value, again));
	json_decref(again);
	json_decref(value);
}

static void missing_members_are_empty(void **state)
{
	json_t *value = json_loads("{\"a\":1,\"b\":\"x\",\"c\":null}", 0, NULL);

	(void)state;
	assert_string_equal(get_text(value, "a"), "");
	assert_string_equal(get_text(value, "z"), "");
	assert_int_equal(get_int(value, "b"), 0);
	assert_false(get_bool(value, "c"));
	assert_string_equal(get_text(NULL, "c"), "");
	json_decref(value);
}

static void cells_for_times_have_no_blanks(void **state)
{
	AUTO_BUF out = BUF_INIT;

	(void)state;
	cell_duration(&out, 3 * 86400000LL + 4 * 3600000LL);
	assert_string_equal(out.data, "3d4h");
	buf_clear(&out);
	cell_time(&out, 1700000000000);
	assert_int_equal(out.size, 19);
	assert_int_equal(out.data[10], 'T');
	buf_clear(&out);
	buf_adds(&out, "some_text ");
	cell_time(&out, 0);
	assert_string_equal(out.data, "some_text ");
}

/* Exit status of a job */

static int exit_of(const char *job, bool own)
{
	json_t *value = json_loads(job, 0, NULL);
	int status = follow_exit_status(value, own);

	json_decref(value);
	return status;
}

static void the_jobs_own_exit_code_is_passed_on(void **state)
{
	(void)state;
	assert_int_equal(exit_of("{\"state\":\"succeeded\",\"exit_code\":0}", true), 0);
	assert_int_equal(exit_of("{\"state\":\"failed\",\"exit_code\":3}", true), 3);
	assert_int_equal(exit_of("{\"state\":\"failed\",\"exit_code\":3}", false), 1);
	assert_int_equal(exit_of("{\"state\":\"failed\",\"signal\":9}", true), 137);
	assert_int_equal(exit_of("{\"state\":\"failed\",\"exit_code\":0}", true), 1);
	assert_int_equal(exit_of("{\"state\":\"cancelled\",\"exit_code\":3}", true), 1);
	assert_int_equal(exit_of("{\"state\":\"timed-out\",\"signal\":15}", true), 1);
}

static void the_end_of_a_job_is_one_sentence(void **state)
{
	static const struct {
		const char *job, *sentence;
	} cases[] = {
		{ "{\"id\":3,\"state\":\"failed\",\"failed_rank\":1,\"exit_code\":7}",
		  "job 3 failed: rank 1 exited with 7" },
		{ "{\"id\":3,\"state\":\"failed\",\"failed_rank\":0,\"signal\":11}",
		  "job 3 failed: rank 0 was ended by signal 11" },
		{ "{\"id\":3,\"state\":\"cancelled\",\"failed_rank\":-1}", "job 3 was cancelled" },
		{ "{\"id\":3,\"state\":\"cancelled\",\"reason\":\"cancelled\"}",
		  "job 3 was cancelled" },
		{ "{\"id\":3,\"state\":\"timed-out\",\"reason\":\"after 1h\"}",
		  "job 3 ran into its time limit: after 1h" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *job = json_loads(cases[i].job, 0, NULL);
		AUTO_BUF out = BUF_INIT;

		const char *reason = json_string_value(json_object_get(job, "reason"));

		job_end_sentence(job, reason ? reason : "", &out);
		assert_string_equal(out.data, cases[i].sentence);
		json_decref(job);
	}
}

/* Output of jobs on a terminal */

static void written(bool raw, const char *prefix, const char *const *pieces, const char *expected)
{
	struct log_writer writer = { .raw = raw };
	char got[512];
	int ends[2];
	ssize_t size;

	assert_int_equal(pipe(ends), 0);
	writer.fd = ends[1];
	snprintf(writer.prefix, sizeof(writer.prefix), "%s", prefix);
	for (; *pieces; pieces++)
		log_write(&writer, *pieces, strlen(*pieces));
	log_writer_end(&writer);
	close(ends[1]);
	size = read(ends[0], got, sizeof(got) - 1);
	close(ends[0]);
	got[size > 0 ? size : 0] = '\0';
	assert_string_equal(got, expected);
}

#define PIECES(...)                                                                                \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void colours_pass_and_commands_to_the_terminal_do_not(void **state)
{
	(void)state;
	written(false, "", PIECES("a\033[31mred\033[0m\033[K\r\tb\n"),
		"a\033[31mred\033[0m\033[K\r\tb\n");
	written(false, "", PIECES("\033]0;title\007x\n"), "\\x1b]0;title\\x07x\n");
	written(false, "", PIECES("\033[2J\n"), "\\x1b[2J\n");
	written(true, "", PIECES("\033[2J\xff\n"), "\033[2J\xff\n");
}

static void sequences_and_characters_may_come_in_pieces(void **state)
{
	(void)state;
	written(false, "", PIECES("a\033", "[3", "1mb\xc3", "\xbc\n"), "a\033[31mb\xc3\xbc\n");
	written(false, "", PIECES("a\033"), "a\\x1b");
	written(false, "", PIECES("a\xc3"), "a\\xc3");
}

static void each_line_has_its_rank_in_front(void **state)
{
	(void)state;
	written(true, "[1] ", PIECES("a\nb", "c\n", "d"), "[1] a\n[1] bc\n[1] d\n");
	written(true, "", PIECES("a\nb"), "a\nb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_as_wide_as_their_cells),
		cmocka_unit_test(headers_can_be_left_out),
		cmocka_unit_test(the_wide_form_has_more_columns),
		cmocka_unit_test(a_table_shows_the_columns_asked_for),
		cmocka_unit_test(a_screen_keeps_its_first_lines_and_its_notes),
		cmocka_unit_test(
			a_narrow_terminal_loses_columns_in_their_order_and_the_end_of_the_last),
		cmocka_unit_test(sentences_break_between_words_on_a_terminal_only),
		cmocka_unit_test(awk_can_split_every_line),
		cmocka_unit_test(a_name_cannot_move_the_cursor),
		cmocka_unit_test(wide_characters_line_up),
		cmocka_unit_test(colour_is_only_for_states_and_never_moves_a_column),
		cmocka_unit_test(yaml_reads_as_the_same),
		cmocka_unit_test(json_holds_nothing_that_a_terminal_obeys),
		cmocka_unit_test(missing_members_are_empty),
		cmocka_unit_test(cells_for_times_have_no_blanks),
		cmocka_unit_test(the_jobs_own_exit_code_is_passed_on),
		cmocka_unit_test(the_end_of_a_job_is_one_sentence),
		cmocka_unit_test(colours_pass_and_commands_to_the_terminal_do_not),
		cmocka_unit_test(sequences_and_characters_may_come_in_pieces),
		cmocka_unit_test(each_line_has_its_rank_in_front),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
