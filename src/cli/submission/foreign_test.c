/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/submission/foreign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/jobfile/jobfile_table.h"
#include "base/check.h"

static bool is_field(const char *name)
{
	size_t count;
	const struct jobfile_field *fields = jobfile_fields(&count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(fields[i].name, name) == 0)
			return true;
	return !*name;
}

static void every_name_is_a_field_of_the_job_file(void **state)
{
	static const struct {
		const char *theirs, *field;
	} rows[] = {
#define FOREIGN(kind, name, value, field, remark) { name, field },
#include "cli/submission/foreign.def"
#undef FOREIGN
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!is_field(rows[i].field))
			fail_msg("%s: the job file has no field %s", rows[i].theirs, rows[i].field);
}

static void files_are_recognised(void **state)
{
	static const struct {
		const char *text;
		enum foreign_kind kind;
	} cases[] = {
		{ "#!/bin/bash\n#SBATCH -N 1\nhostname\n", FOREIGN_SBATCH },
		{ "#SBATCH -N 1\n", FOREIGN_SBATCH },
		{ "#!/bin/sh\nhostname\n", FOREIGN_SCRIPT },
		{ "apiVersion: batch/v1\nkind: Job\n", FOREIGN_KUBERNETES },
		{ "# x\n---\nkind: Job\napiVersion: batch/v1\n", FOREIGN_KUBERNETES },
		{ "type: task\ncommands: [x]\n", FOREIGN_DSTACK },
		{ "type: \"dev-environment\" # x\n", FOREIGN_DSTACK },
		{ "type: tasks\n", FOREIGN_NONE },
		{ "resources:\n  accelerators: H100:8\nrun: |\n  x\n", FOREIGN_SKYPILOT },
		{ "command: x\nkind: batch\nresources: {a: 1}\n", FOREIGN_NONE },
		{ "", FOREIGN_NONE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (foreign_recognise(cases[i].text) != cases[i].kind)
			fail_msg("%s: %s", cases[i].text,
				 foreign_name(foreign_recognise(cases[i].text)));
}

/* The explanation has a line of this number that has both texts. */
static void has_line(const char *shown, int number, const char *theirs, const char *ours)
{
	for (const char *line = shown; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const size_t size = strcspn(line, "\n");

		if (strtol(line, NULL, 10) == number &&
		    memmem(line, size, theirs, strlen(theirs)) &&
		    memmem(line, size, ours, strlen(ours)))
			return;
	}
	fail_msg("no line %d with \"%s\" and \"%s\" in\n%s", number, theirs, ours, shown);
}

static void explained(const char *text, struct buf *out)
{
	buf_clear(out);
	foreign_explain(foreign_recognise(text), text, out);
}

static void each_option_of_an_sbatch_script_has_its_line(void **state)
{
	AUTO_BUF out = BUF_INIT;

	(void)state;
	explained("#!/bin/bash\n"
		  "#SBATCH --job-name=train   # comment\n"
		  "#SBATCH -p vision -t 90\n"
		  "#SBATCH --time 1-12\n"
		  "#SBATCH --gres=gpu:h100:4\n"
		  "#SBATCH -n4 --mem=64000\n"
		  "#SBATCH --array=1-100%8\n"
		  "#SBATCH --mail-type=END\n"
		  "#SBATCH --frobnicate=1\n"
		  "#SBATCH --requeue\n"
		  "\n"
		  "module load cuda\n"
		  "srun python train.py --seed $SLURM_ARRAY_TASK_ID\n",
		  &out);
	has_line(buf_text(&out), 2, "--job-name=train", "name: train");
	has_line(buf_text(&out), 3, "-p vision", "queue: vision");
	has_line(buf_text(&out), 3, "-t 90", "limit: 90m");
	has_line(buf_text(&out), 4, "--time 1-12", "limit: 1-12:00:00");
	has_line(buf_text(&out), 5, "--gres=gpu:h100:4", "gpus: {model: h100, count: 4}");
	has_line(buf_text(&out), 6, "-n4", "tasks: 4");
	has_line(buf_text(&out), 6, "--mem=64000", "memory: 64000MiB");
	has_line(buf_text(&out), 7, "--array=1-100%8", "array: 100%8");
	has_line(buf_text(&out), 8, "--mail-type=END", "no mail");
	has_line(buf_text(&out), 9, "--frobnicate=1", "no field is the same");
	has_line(buf_text(&out), 10, "--requeue", "retries");
	has_line(buf_text(&out), 12, "module load", "script");
	has_line(buf_text(&out), 13, "srun", "leave srun out");
	has_line(buf_text(&out), 13, "SLURM_ARRAY_TASK_ID", "FAIRLEAD_ARRAY_INDEX");
}

static void each_line_of_a_file_in_yaml_has_its_name(void **state)
{
	AUTO_BUF out = BUF_INIT;

	(void)state;
	explained(
		"name: x\nresources:\n  accelerators: H100:8\n  use_spot: true\n  disk_size: 512\n"
		"num_nodes: 2\nenvs:\n  LR: 0.1\nrun: |\n  name: no key\n  python x\n",
		&out);
	has_line(buf_text(&out), 1, "name: x", "name: x");
	has_line(buf_text(&out), 3, "accelerators: H100:8", "gpus: {model: H100, count: 8}");
	has_line(buf_text(&out), 4, "use_spot", "capacity");
	has_line(buf_text(&out), 5, "disk_size", "no field is the same");
	has_line(buf_text(&out), 6, "num_nodes", "tasks: 2");
	has_line(buf_text(&out), 7, "envs:", "env");
	has_line(buf_text(&out), 9, "run:", "script");
	assert_null(strstr(buf_text(&out), "no key"));
	assert_null(strstr(buf_text(&out), "LR"));
	explained("name: x\nresources: {accelerators: 'H100:8', use_spot: true, disk_size: 512}\n"
		  "run: python x\n",
		  &out);
	has_line(buf_text(&out), 2, "accelerators: 'H100:8'", "gpus: {model: H100, count: 8}");
	has_line(buf_text(&out), 2, "use_spot", "capacity");
	has_line(buf_text(&out), 2, "disk_size", "no field is the same");
	has_line(buf_text(&out), 3, "run:", "script");
	explained("kind: Job\napiVersion: batch/v1\nspec: {template: {spec: {containers: [{name: a,"
		  " image: busybox, resources: {limits: {nvidia.com/gpu: 4}}}]}}}\n",
		  &out);
	has_line(buf_text(&out), 3, "image: busybox", "image: busybox");
	has_line(buf_text(&out), 3, "nvidia.com/gpu: 4", "for each task");
	explained("resources: {accelerators: \"H100:2\", {[,\nrun: x\n", &out); /* cut */
	has_line(buf_text(&out), 1, "accelerators", "gpus: {model: H100, count: 2}");

	explained(
		"type: task\nresources:\n  gpu: 24GB\ncommands:\n- pip install x\n- python x\nmax_duration: 3h\n",
		&out);
	has_line(buf_text(&out), 4, "commands:", "script");
	has_line(buf_text(&out), 7, "max_duration", "limit: 3h");
	assert_null(strstr(buf_text(&out), "pip"));

	explained(
		"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: train\nspec:\n  parallelism: 4\n  template:\n    spec:\n"
		"      containers:\n      - name: main\n        image: \"pytorch/pytorch\"\n        command: [python]\n        resources:\n"
		"          limits:\n            nvidia.com/gpu: 8\n            memory: 64Gi\n      nodeSelector:\n        a: b\n",
		&out);
	has_line(buf_text(&out), 4, "name: train", "name: train");
	has_line(buf_text(&out), 6, "parallelism: 4", "tasks: 4");
	has_line(buf_text(&out), 10, "name: main", "one container");
	has_line(buf_text(&out), 11, "image", "image: pytorch/pytorch");
	has_line(buf_text(&out), 12, "command: [python]", "command");
	has_line(buf_text(&out), 15, "nvidia.com/gpu: 8", "gpus: 8");
	has_line(buf_text(&out), 16, "memory: 64Gi", "memory: 64Gi");
	has_line(buf_text(&out), 17, "nodeSelector:", "selector");
	assert_null(strstr(buf_text(&out), "a: b"));
}

/* Whatever the text, it is read within its bounds (for the sanitizers). */
static void odd_texts_are_read(void **state)
{
	static const char *const texts[] = {
		"#SBATCH",
		"#SBATCH -",
		"#SBATCH --",
		"#SBATCH -t",
		"#SBATCH =",
		"#SBATCH --time=",
		"#SBATCH --array=%",
		"#SBATCH --gres=gpu:",
		"run:",
		"run: |",
		"type: task\n\"",
		"type: task\n\"a\"",
		"type: task\n- - - -",
		"kind:\napiVersion:\n  :\n  '': x",
		"run: x\n\t\ta: b",
		"run: x\n\x01: \xff\n",
		"run: x\n#\n---\n---",
		"num_nodes: \" # '",
	};
	AUTO_BUF out = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		explained(texts[i], &out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_is_a_field_of_the_job_file),
		cmocka_unit_test(files_are_recognised),
		cmocka_unit_test(each_option_of_an_sbatch_script_has_its_line),
		cmocka_unit_test(each_line_of_a_file_in_yaml_has_its_name),
		cmocka_unit_test(odd_texts_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
