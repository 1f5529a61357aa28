/* SPDX-License-Identifier: Apache-2.0 */
#include "base/testing.h"

#include <errno.h>
#include <fcntl.h>

#include "base/log.h"

static char lines[16384];
static int saved_stderr, file;

/* stderr goes to a file without a name. */
static void capture_start(void)
{
	FILE *temporary = tmpfile();

	assert_non_null(temporary);
	file = fileno(temporary);
	saved_stderr = dup(STDERR_FILENO);
	dup2(file, STDERR_FILENO);
}

static const char *capture_end(void)
{
	ssize_t size;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	size = pread(file, lines, sizeof(lines) - 1, 0);
	close(file);
	lines[size > 0 ? size : 0] = '\0';
	return lines;
}

static void a_line_has_time_program_level_and_text(void **state)
{
	int year, month, day, hour, minute, second, end = 0;
	const char *text;

	(void)state;
	capture_start();
	log_open("prog", LOG_DEBUG);
	log_line(LOG_WARN, "disk %d%% full", 93);
	text = capture_end();
	assert_int_equal(sscanf(text, "%d-%d-%d %d:%d:%d %n", &year, &month, &day, &hour, &minute,
				&second, &end),
			 6);
	assert_string_equal(text + end, "prog warning: disk 93% full\n");
}

static void levels_below_the_least_are_left_out(void **state)
{
	const char *text;

	(void)state;
	capture_start();
	log_open("prog", LOG_WARN);
	log_line(LOG_DEBUG, "one");
	log_line(LOG_INFO, "two");
	log_line(LOG_WARN, "three");
	log_line(LOG_ERROR, "four");
	text = capture_end();
	assert_null(strstr(text, "one"));
	assert_null(strstr(text, "two"));
	assert_non_null(strstr(text, "prog warning: three\n"));
	assert_non_null(strstr(text, "prog error: four\n"));
}

static void one_event_is_one_harmless_line(void **state)
{
	const char *text;

	(void)state;
	capture_start();
	log_open("prog", LOG_DEBUG);
	log_line(LOG_INFO, "name %s", "a\nb\x1b[31m\xff");
	text = capture_end();
	assert_non_null(strstr(text, "name a\\nb\\x1b[31m\\xff\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void long_lines_are_cut_and_say_so(void **state)
{
	static char text[5000];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	capture_start();
	log_open("prog", LOG_DEBUG);
	log_line(LOG_INFO, "%s", text);
	assert_non_null(strstr(capture_end(), "aaa [cut]\n"));
	assert_true(strlen(lines) < 2200);
}

static void errno_survives_a_line(void **state)
{
	int closed_to_writing = open("/dev/null", O_RDONLY);

	(void)state;
	capture_start();
	log_open("prog", LOG_DEBUG);
	dup2(closed_to_writing, STDERR_FILENO);
	errno = ENOTDIR;
	log_line(LOG_INFO, "x");
	assert_int_equal(errno, ENOTDIR);
	capture_end();
	close(closed_to_writing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_has_time_program_level_and_text),
		cmocka_unit_test(levels_below_the_least_are_left_out),
		cmocka_unit_test(one_event_is_one_harmless_line),
		cmocka_unit_test(long_lines_are_cut_and_say_so),
		cmocka_unit_test(errno_survives_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
