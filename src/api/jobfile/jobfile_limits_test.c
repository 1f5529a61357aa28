/* SPDX-License-Identifier: Apache-2.0 */
/* Limits, and the reference of fields: what it says is what is read. */
#include "api/jobfile/jobfile_testing.h"

#include <stdio.h>
#include <string.h>
#include <jansson.h>

#include "base/check.h"
#include "core/model/facts.h"

/* A text of `size` times c, between before and after. */
static char *filled(const char *before, char c, size_t size, const char *after)
{
	char *text = arena_alloc(&jobfile_arena, strlen(before) + size + strlen(after) + 1);

	memcpy(text, before, strlen(before));
	memset(text + strlen(before), c, size);
	memcpy(text + strlen(before) + size, after, strlen(after) + 1);
	return text;
}

/* "before item0, item1 ... after" */
static char *listed(const char *before, const char *format, size_t count, const char *after)
{
	AUTO_BUF out = BUF_INIT;

	buf_adds(&out, before);
	for (size_t i = 0; i < count; i++) {
		char item[64];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(item, sizeof(item), format, i + 1);
#pragma GCC diagnostic pop
		buf_adds(&out, item);
	}
	buf_adds(&out, after);
	return arena_strdup(&jobfile_arena, out.data);
}

static void each_limit_is_kept_and_one_more_refused(void **state)
{
	(void)state;
	good(filled("command: ", 'x', JOBFILE_COMMAND_MAX, "\n"));
	bad(filled("command: ", 'x', JOBFILE_COMMAND_MAX + 1, "\n"));
	good(filled("command: [", 'x', JOBFILE_COMMAND_MAX, "]\n"));
	bad(filled("command: [", 'x', JOBFILE_COMMAND_MAX + 1, "]\n"));
	good(filled("script: ", 'x', JOBFILE_SCRIPT_MAX, "\n"));
	bad(filled("script: ", 'x', JOBFILE_SCRIPT_MAX + 1, "\n"));
	good(filled("command: x\nworkdir: /", 'x', JOBFILE_WORKDIR_MAX - 1, "\n"));
	bad(filled("command: x\nworkdir: /", 'x', JOBFILE_WORKDIR_MAX, "\n"));
	good(filled("command: x\ncheckpoint: {path: /", 'x', JOBFILE_CHECKPOINT_PATH_MAX - 1,
		    "}\n"));
	bad(filled("command: x\ncheckpoint: {path: /", 'x', JOBFILE_CHECKPOINT_PATH_MAX, "}\n"));
	good(filled("command: x\ngit: {branch: ", 'x', JOBFILE_BRANCH_MAX, "}\n"));
	bad(filled("command: x\ngit: {branch: ", 'x', JOBFILE_BRANCH_MAX + 1, "}\n"));
	good(filled("command: x\ngit: {remote: /", 'x', JOBFILE_REMOTE_MAX - 1, "}\n"));
	bad(filled("command: x\ngit: {remote: /", 'x', JOBFILE_REMOTE_MAX, "}\n"));
	good("command: x\ngit: {changed: 1000000, untracked: 1000000}\n");
	bad("command: x\ngit: {untracked: 1000001}\n");
	good(filled("command: x\nname: ", 'x', NAME_MAX_BYTES, "\n"));
	bad(filled("command: x\nname: ", 'x', NAME_MAX_BYTES + 1, "\n"));
	good(filled("command: x\nenv: {A: ", 'x', JOBFILE_COMMAND_MAX - 2, "}\n"));
	bad(filled("command: x\nenv: {A: ", 'x', JOBFILE_COMMAND_MAX - 1, "}\n"));
	good(filled("command: x\nenv: {", 'A', 255, ": x}\n"));
	bad(filled("command: x\nenv: {", 'A', 256, ": x}\n"));
	good(listed("command: [", "a%zu, ", JOBFILE_ARGUMENTS_MAX, "]\n"));
	bad(listed("command: [", "a%zu, ", JOBFILE_ARGUMENTS_MAX + 1, "]\n"));
	good(listed("command: x\nenv: {", "A%zu: b, ", JOBFILE_ENV_MAX, "}\n"));
	bad(listed("command: x\nenv: {", "A%zu: b, ", JOBFILE_ENV_MAX + 1, "}\n"));
	good(listed("command: x\ndepends_on: [", "%zu, ", DEPENDS_MAX, "]\n"));
	bad(listed("command: x\ndepends_on: [", "%zu, ", DEPENDS_MAX + 1, "]\n"));
	good(listed("command: x\ngpus: {model: [", "m%zu, ", SHAPE_MODELS_MAX, "]}\n"));
	bad(listed("command: x\ngpus: {model: [", "m%zu, ", SHAPE_MODELS_MAX + 1, "]}\n"));
	assert_int_equal(good("command: x\ntasks: 16384\n").event.job_submitted.tasks_max,
			 TASKS_MAX);
	assert_int_equal(good("command: x\ngpus: 32\n").event.job_submitted.gpus, NODE_GPUS_MAX);
	assert_int_equal(good("command: x\narray: 10000\n").event.job_submitted.array_count,
			 ARRAY_MAX);
	assert_int_equal(good("command: x\nretries: 100\n").event.job_submitted.retries,
			 JOBFILE_RETRIES_MAX);
	assert_int_equal(good("command: x\ncpus: 4096\n").event.job_submitted.cpu_milli,
			 JOBFILE_CPUS_MAX * 1000);
	assert_int_equal(
		good("command: x\ncheckpoint: {grace: 24h}\n").event.job_submitted.grace_ms,
		86400000);
}

static void what_pods_get_has_limits(void **state)
{
	(void)state;
	good(listed("command: x\nvolumes: {", "v%1$zu: /v%1$zu, ", JOBFILE_VOLUMES_MAX, "}\n"));
	bad(listed("command: x\nvolumes: {", "v%1$zu: /v%1$zu, ", JOBFILE_VOLUMES_MAX + 1, "}\n"));
	good(listed("command: x\nresources: {", "x/r%zu: 1, ", JOBFILE_RESOURCES_MAX, "}\n"));
	bad(listed("command: x\nresources: {", "x/r%zu: 1, ", JOBFILE_RESOURCES_MAX + 1, "}\n"));
	good(listed("command: x\npull_secrets: [", "s%zu, ", JOBFILE_PULL_SECRETS_MAX, "]\n"));
	bad(listed("command: x\npull_secrets: [", "s%zu, ", JOBFILE_PULL_SECRETS_MAX + 1, "]\n"));
	/* Three values are the maps around them, one is the list. */
	good(listed("command: x\nkubernetes: {spec: {dnsConfig: {searches: [", "s%zu, ",
		    JOBFILE_OVERLAY_VALUES_MAX - 3, "]}}}\n"));
	assert_non_null(strstr(bad(listed("command: x\nkubernetes: {spec: {dnsConfig: {searches: [",
					  "s%zu, ", JOBFILE_OVERLAY_VALUES_MAX - 2, "]}}}\n"))
				       .text,
			       "2000 values"));
	good(filled("command: x\nkubernetes: {metadata: {annotations: {a: ", 'x',
		    JOBFILE_OVERLAY_MAX - 38, "}}}\n"));
	assert_non_null(strstr(bad(filled("command: x\nkubernetes: {metadata: {annotations: {a: ",
					  'x', JOBFILE_OVERLAY_MAX - 32, "}}}\n"))
				       .text,
			       "the limit is 65536"));
	good(filled("command: x\nservice_account: ", 'x', 253, "\n"));
	bad(filled("command: x\nservice_account: ", 'x', 254, "\n"));
}

/* Items of 100,000 bytes each: the sum is what is refused. */
static void the_sums_have_limits_too(void **state)
{
	AUTO_BUF list = BUF_INIT;
	AUTO_BUF env = BUF_INIT;

	(void)state;
	buf_adds(&list, "command: [");
	buf_adds(&env, "command: x\nenv: {");
	for (int i = 0; i < 11; i++) {
		buf_adds(&list, filled("", 'x', 100000, ", "));
		buf_addf(&env, "V%d: ", i);
		buf_adds(&env, filled("", 'x', 100000, ", "));
	}
	buf_adds(&list, "]\n");
	buf_adds(&env, "}\n");
	assert_non_null(strstr(bad(list.data).text, "the limit is 1048576"));
	assert_non_null(strstr(bad(env.data).text, "the limit is 1048576"));
}

static void a_text_over_ten_mib_is_too_large(void **state)
{
	char *text = filled("command: ", 'x', 10 << 20, "\n");

	(void)state;
	assert_int_equal(bad(text).code, ERR_TOO_LARGE);
}

static void a_sweep_makes_no_more_jobs_than_an_array_may_have(void **state)
{
	const char *hundred = listed("[", "%zu, ", 100, "]"),
		   *more = listed("[", "%zu, ", 101, "]");

	(void)state;
	assert_int_equal(good(arena_printf(&jobfile_arena, "command: x\nsweep: {A: %s, B: %s}\n",
					   hundred, hundred))
				 .event.job_submitted.array_count,
			 ARRAY_MAX);
	bad(arena_printf(&jobfile_arena, "command: x\nsweep: {A: %s, B: %s}\n", hundred, more));
}

static void every_field_is_documented_and_its_example_is_accepted(void **state)
{
	const struct jobfile_field *fields;
	size_t count;

	(void)state;
	fields = jobfile_fields(&count);
	assert_true(count > 30);
	for (size_t i = 0; i < count; i++) {
		AUTO_BUF text = BUF_INIT;

		assert_true(fields[i].doc[0] && fields[i].type[0] && fields[i].standard[0]);
		buf_addf(&text, "%s\n", fields[i].example);
		if (strncmp(fields[i].name, "command", 7) != 0 &&
		    strncmp(fields[i].name, "script", 6) != 0)
			buf_adds(&text, "command: x\n");
		if (strcmp(fields[i].name, "secrets") == 0) /* over HTTP */
			assert_non_null(strstr(bad(text.data).text, "fairlead submit"));
		else
			good(text.data);
	}
}

/* "N" as the field's value: "gpus: {count: N}" for gpus.count. */
static const char *with_value(struct buf *out, const char *field, const char *value)
{
	const char *dot = strchr(field, '.');

	buf_clear(out);
	if (strncmp(field, "roles.", 6) == 0) /* in a role with as many tasks as there may be */
		buf_addf(out, "roles: [{name: w, %s%s: %s}]\n",
			 strcmp(field, "roles.min") == 0 ? "tasks: 16384, " : "", dot + 1, value);
	else if (dot)
		buf_addf(out, "%.*s: {%s: %s}\n", (int)(dot - field), field, dot + 1, value);
	else
		buf_addf(out, "%s: %s\n", field, value);
	buf_adds(out, "command: x\n");
	return out->data;
}

/* What the reference says of ranges is what is read: both ends are taken, what lies just outside is not. */
static void the_ranges_of_the_reference_are_those_that_are_read(void **state)
{
	const struct jobfile_field *fields;
	size_t count, integers = 0, others = 0;
	AUTO_BUF text = BUF_INIT;

	(void)state;
	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++) {
		char low[32] = "", high[32] = "", rest[8] = "", outside[32];
		long long from, to;
		int end = 0;

		assert_true(fields[i].range[0] != '\0');
		if (sscanf(fields[i].range, "%31s to %31s%7s", low, high, rest) != 2)
			continue;
		if (strspn(low, "-.0123456789smhMiB") != strlen(low))
			continue;
		good(with_value(&text, fields[i].name, low));
		good(with_value(&text, fields[i].name, high));
		if (sscanf(fields[i].range, "%lld to %lld%n", &from, &to, &end) != 2 ||
		    fields[i].range[end]) {
			others++;
			snprintf(outside, sizeof(outside), "%s1ms", high);
			if (strchr(high, 'h'))
				assert_non_null(
					strstr(bad(with_value(&text, fields[i].name, outside)).text,
					       "at most 24h"));
			continue;
		}
		integers++;
		snprintf(outside, sizeof(outside), "%lld", from - 1);
		assert_non_null(
			strstr(bad(with_value(&text, fields[i].name, outside)).text, "between"));
		snprintf(outside, sizeof(outside), "%lld", to + 1);
		assert_non_null(
			strstr(bad(with_value(&text, fields[i].name, outside)).text, "between"));
	}
	assert_true(integers >= 6 && others >= 4);
}

static void the_schema_is_json_and_has_every_field(void **state)
{
	AUTO_BUF out = BUF_INIT;
	const struct jobfile_field *fields;
	json_error_t why;
	json_t *schema;
	size_t count;

	(void)state;
	jobfile_schema(&out);
	schema = json_loads(out.data, JSON_REJECT_DUPLICATES, &why);
	if (!schema)
		fail_msg("%s: %s", why.text, out.data);
	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++)
		if (!strchr(fields[i].name, '.'))
			assert_non_null(json_object_get(json_object_get(schema, "properties"),
							fields[i].name));
	json_decref(schema);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_limit_is_kept_and_one_more_refused,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(what_pods_get_has_limits, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(the_sums_have_limits_too, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_text_over_ten_mib_is_too_large, jobfile_begin,
						jobfile_end),
		cmocka_unit_test_setup_teardown(a_sweep_makes_no_more_jobs_than_an_array_may_have,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(
			every_field_is_documented_and_its_example_is_accepted, jobfile_begin,
			jobfile_end),
		cmocka_unit_test_setup_teardown(the_ranges_of_the_reference_are_those_that_are_read,
						jobfile_begin, jobfile_end),
		cmocka_unit_test_setup_teardown(the_schema_is_json_and_has_every_field,
						jobfile_begin, jobfile_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
