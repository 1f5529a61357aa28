/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/workload.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing.h"
#include "core/model/facts.h"

static void the_frozen_example_reads_as_ever(void **state)
{
	struct workload w;
	struct err err = { 0 };
	const struct workload_job *j;

	(void)state;
	if (workload_read(getenv("FAIRLEAD_GOLDEN_WORKLOAD"), &w, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(w.count, 3);
	j = &w.jobs[0];
	assert_string_equal(j->name, "train-7");
	assert_int_equal(j->submit_ms, 0);
	assert_int_equal(j->run_ms, 3600000);
	assert_int_equal(j->tasks, 4);
	assert_int_equal(j->gpus, 8);
	assert_string_equal(j->models, "H100-80GB,A100-80GB");
	assert_int_equal(j->gpu_memory_mib, 40000);
	assert_int_equal(j->cpu_milli, 16000);
	assert_int_equal(j->memory_mib, 131072);
	assert_string_equal(j->queue, "research");
	assert_string_equal(j->user, "ann");
	assert_int_equal(j->kind, KIND_TRAINING);
	assert_int_equal(j->tier, TIER_STANDARD);
	assert_int_equal(j->priority, 5);
	assert_int_equal(j->limit_ms, 7200000);
	assert_int_equal(j->estimate_ms, 3000000);
	assert_int_equal(j->deadline_ms, 86400000);
	assert_true(j->checkpoints);
	assert_int_equal(j->restart_ms, 30500);
	j = &w.jobs[1]; /* by submission, not as written */
	assert_string_equal(j->name, "late");
	assert_int_equal(j->run_ms, 1);
	assert_int_equal(j->gpu_part, GPU_SHARE / 7);
	assert_int_equal(j->cpu_milli, 250);
	assert_int_equal(j->tier, TIER_BEST_EFFORT);
	assert_int_equal(j->priority, -1);
	j = &w.jobs[2];
	assert_int_equal(j->submit_ms, 12500);
	assert_int_equal(j->tasks, 1);
	assert_int_equal(workload_share(j), GPU_SHARE / 2);
	assert_int_equal(j->kind, KIND_BATCH);
	assert_false(j->checkpoints);
	workload_deinit(&w);
}

/* Those that came later, in an example of their own. */
static void the_columns_that_were_added_read_as_ever(void **state)
{
	struct workload w;
	struct err err = { 0 };
	const struct workload_job *j;

	(void)state;
	if (workload_read(getenv("FAIRLEAD_GOLDEN_COLUMNS"), &w, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(w.count, 3);
	j = &w.jobs[0];
	assert_int_equal(j->checkpoint_every_ms, 600000);
	assert_int_equal(j->rest_gpus, 4);
	assert_int_equal(workload_tasks(j), 5);
	assert_int_equal(workload_share(j), 36 * GPU_SHARE);
	assert_int_equal(j->speeds[0], 1000);
	assert_int_equal(j->speeds[1], 450);
	assert_int_equal(j->speeds[2], 0);
	assert_int_equal(j->capacity, CAPACITY_ANY);
	j = &w.jobs[1];
	assert_int_equal(j->checkpoint_every_ms + j->rest_gpus + j->speeds[0], 0);
	assert_int_equal(j->capacity, CAPACITY_SPOT);
	assert_int_equal(w.jobs[2].capacity, CAPACITY_NOT_SAID);
	workload_deinit(&w);
}

static void wishes_read_as_ever(void **state)
{
	struct workload w;
	struct err err = { 0 };
	const struct workload_job *j;

	(void)state;
	if (workload_read(getenv("FAIRLEAD_GOLDEN_WISHES"), &w, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(w.count, 3);
	j = &w.jobs[0];
	assert_string_equal(j->wishes->slice, "1g.10gb");
	assert_int_equal(workload_share(j), GPU_SHARE / 7);
	assert_string_equal(j->wishes->require, "rack");
	assert_string_equal(j->wishes->prefer, "zone");
	assert_string_equal(j->wishes->spread, "node");
	assert_string_equal(j->wishes->regions, "eu,us");
	assert_string_equal(j->wishes->labels, "disk=fast,arch=x86");
	assert_string_equal(j->wishes->tolerates, "kept,old=yes");
	assert_string_equal(j->wishes->min_driver, "550.54.14");
	assert_string_equal(j->wishes->min_cuda, "12.4");
	assert_string_equal(j->wishes->window, "mon-fri 20:00-08:00,sat-sun");
	j = &w.jobs[1];
	assert_int_equal(j->gpu_part_mib, 20000);
	assert_int_equal(workload_share(j), GPU_SHARE / 4);
	assert_null(j->wishes);
	assert_string_equal(w.jobs[2].wishes->slice, "fit");
	assert_string_equal(w.jobs[2].wishes->window, "");
	workload_deinit(&w);
}

static void refused(const char *text, int line, const char *words)
{
	char *copy = strdup(text);
	struct workload w;
	struct err err = { 0 };

	assert_non_null(copy);
	assert_true(workload_parse("w.csv", copy, &w, &err) < 0);
	if (err.line != line || !strstr(err.text, words))
		fail_msg("line %d: %s; wanted was line %d: %s", err.line, err.text, line, words);
	workload_deinit(&w);
	free(copy);
}

#define HEAD "#fairlead-workload 1\nsubmit_s,run_s,gpus\n"

static void what_is_wrong_is_named_with_its_line(void **state)
{
	(void)state;
	refused("submit_s,run_s\n", 1, "the first line is not");
	refused("#fairlead-workload 1\n", 1, "names of the columns is missing");
	refused("#fairlead-workload 1\nsubmit_s,gpus\n0,1\n", 2, "column \"run_s\" is missing");
	refused("#fairlead-workload 1\nsubmit_s,run_s,gpu\n", 2, "did you mean \"gpus\"?");
	refused("#fairlead-workload 1\nsubmit_s,run_s,run_s\n", 2, "stands twice");
	refused(HEAD, 2, "there are no jobs");
	refused(HEAD "0,1\n", 3, "there are 2 fields for 3 columns");
	refused(HEAD "0,1,1,1\n", 3, "more fields than the 3 columns");
	refused(HEAD "0,1,1\n-1,1,1\n", 4, "submit_s: \"-1\" must be a number from 0 to");
	refused(HEAD "0,1e3,1\n", 3, "run_s: \"1e3\"");
	refused(HEAD "0,0,1\n", 3, "0.001 s at least");
	refused(HEAD "0,9999999999999999999,1\n", 3, "from 0 to 632448000");
	refused(HEAD "0,1.0001,1\n", 3, "three digits behind the point");
	refused(HEAD "0,1,1.5\n", 3, "gpus: \"1.5\"");
	refused(HEAD "0,1,\"1\"\n", 3, "quotes");
	refused("#fairlead-workload 1\nsubmit_s,run_s,tier\n0,1,high\n", 3,
		"best-effort, standard or critical");
	refused("#fairlead-workload 1\nsubmit_s,run_s,user\n0,1,\xff\n", 3, "not UTF-8");
	refused("#fairlead-workload 1\nsubmit_s,run_s,gpus,rest_gpus\n0,1,8,3\n0,1,8,8\n", 4,
		"rest_gpus: 8 is not less than the whole GPUs of a task");
	refused("#fairlead-workload 1\nsubmit_s,run_s,gpus,rest_gpus\n0,1,0.5,1\n", 3,
		"rest_gpus: 1");
	refused("#fairlead-workload 1\nsubmit_s,run_s,checkpoint_every_s\n0,1,60\n", 3,
		"checkpoint_every_s: say checkpoints yes");
	refused("#fairlead-workload 1\nsubmit_s,run_s,models,speeds\n0,1,A|B,1\n", 3,
		"there are 1 speeds for 2 models");
	refused("#fairlead-workload 1\nsubmit_s,run_s,models,speeds\n0,1,,1\n", 3,
		"there are 1 speeds for 0 models");
	refused("#fairlead-workload 1\nsubmit_s,run_s,models,speeds\n0,1,A,0\n", 3, "speeds: 0;");
	refused("#fairlead-workload 1\nsubmit_s,run_s,models,speeds\n0,1,A,61\n", 3, "speeds: ");
	refused("#fairlead-workload 1\nsubmit_s,run_s,gpus,slice\n0,1,2,fit\n", 3,
		"slice: say gpus 1");
	refused("#fairlead-workload 1\nsubmit_s,run_s,slice\n0,1,half\n", 3,
		"wanted is one such as");
	refused("#fairlead-workload 1\nsubmit_s,run_s,slice,gpu_part_mib\n0,1,fit,7\n", 3,
		"not both");
	refused("#fairlead-workload 1\nsubmit_s,run_s,gpu_part_mib\n0,1,0\n", 3, "gpu_part_mib");
}

static void a_wish_has_a_limit(void **state)
{
	char text[9000] = "#fairlead-workload 1\nsubmit_s,run_s,labels\n0,1,";
	const size_t size = strlen(text);

	(void)state;
	memset(text + size, 'x', 8193);
	refused(text, 3, "labels has more than 8192 bytes");
}

static void a_file_that_is_none_is_named(void **state)
{
	char path[] = "/tmp/fairlead-workload-XXXXXX";
	const int fd = mkstemp(path);
	struct workload w;
	struct err err = { 0 };

	(void)state;
	assert_true(workload_read("/nonexistent/w.csv", &w, &err) < 0);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "can't open /nonexistent/w.csv: "));
	assert_true(fd >= 0 && write(fd, "#fairlead\0", 10) == 10);
	close(fd);
	assert_true(workload_read(path, &w, &err) < 0);
	assert_non_null(strstr(err.text, "holds a NUL"));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_frozen_example_reads_as_ever),
		cmocka_unit_test(the_columns_that_were_added_read_as_ever),
		cmocka_unit_test(wishes_read_as_ever),
		cmocka_unit_test(what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(a_wish_has_a_limit),
		cmocka_unit_test(a_file_that_is_none_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
