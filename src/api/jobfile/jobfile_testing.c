/* SPDX-License-Identifier: Apache-2.0 */
#include "api/jobfile/jobfile_testing.h"

#include <string.h>

struct arena jobfile_arena;

int jobfile_begin(void **state)
{
	(void)state;
	arena_init(&jobfile_arena, 256 << 20);
	return 0;
}

int jobfile_end(void **state)
{
	(void)state;
	arena_deinit(&jobfile_arena);
	return 0;
}

struct job_request good(const char *text)
{
	struct job_request request;
	struct err err = { 0 };

	if (jobfile_parse("job.yaml", text, strlen(text), &jobfile_arena, &request, &err) < 0)
		fail_msg("%s:%d:%d: %s", err.file, err.line, err.column, err.text);
	return request;
}

static struct err bad_bytes(const char *text, size_t size)
{
	struct job_request request;
	struct err err = { 0 };
	int rc = jobfile_parse("job.yaml", text, size, &jobfile_arena, &request, &err);

	if (rc >= 0)
		fail_msg("accepted: %.200s", text);
	assert_int_equal(rc, -(int)err.code);
	assert_string_equal(err.file, "job.yaml");
	return err;
}

struct err bad(const char *text)
{
	return bad_bytes(text, strlen(text));
}
