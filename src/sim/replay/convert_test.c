/* SPDX-License-Identifier: Apache-2.0 */
/* Small samples of our own in the columns of the public traces. */
#include "sim/replay/convert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/testing.h"
#include "sim/replay/availability.h"
#include "sim/replay/workload.h"

static void file_write(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static char folder[] = "/tmp/fairlead-convert-XXXXXX";

static const char *path_of(const char *name, char ret[64])
{
	snprintf(ret, 64, "%s/%s", folder, name);
	return ret;
}

static int tried(const char *from, const char *text, const struct convert_options *options,
		 char **ret, struct err *err)
{
	char room[64];
	const char *path = path_of("trace.csv", room);
	size_t size = 0;
	FILE *out = open_memstream(ret, &size);
	int rc;

	assert_non_null(out);
	file_write(path, text);
	rc = convert(from, path, options, out, err);
	fclose(out);
	unlink(path);
	return rc;
}

static void becomes(const char *from, const char *text, const struct convert_options *options,
		    const char *wanted)
{
	struct err err = { 0 };
	char *is = NULL;

	if (tried(from, text, options, &is, &err) < 0)
		fail_msg("%s: line %d: %s", from, err.line, err.text);
	assert_string_equal(is, wanted);
	if (strncmp(wanted, "#fairlead-availability", 22) == 0) {
		struct availability a;

		if (availability_parse(from, is, &a, &err) < 0)
			fail_msg("%s: what was made can't be read: %s", from, err.text);
		availability_deinit(&a);
	} else if (wanted[0] == '#') {
		struct workload w;

		if (workload_parse(from, is, &w, &err) < 0)
			fail_msg("%s: what was made can't be read: %s", from, err.text);
		workload_deinit(&w);
	}
	free(is);
}

static const struct convert_options none;

static void refused(const char *from, const char *text, const struct convert_options *options,
		    const char *words)
{
	struct err err = { 0 };
	char *is = NULL;

	assert_true(tried(from, text, options, &is, &err) < 0);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	free(is);
}

#define HEAD "#fairlead-workload 1\njob,submit_s,run_s,tasks,gpus"

static void lists_of_jobs(void **state)
{
	(void)state;
	becomes("philly",
		"job_id,submit_s,duration_s,num_gpu,vc\n0,0,2240194,8,7f04ca\n1,10,0,12,6214e9\n",
		&none, HEAD ",rest_gpus,user\n0,0,2240194,1,8,,7f04ca\n1,10,1,1,8,4,6214e9\n");
	becomes("helios", "job_id,submit_s,duration_s_capped48h,num_gpu\n9,0,172800,32\n", &none,
		HEAD ",rest_gpus\n9,0,172800,4,8,\n");
	becomes("pai", "job_id,submit_s,duration_s_capped48h,num_gpu\n9,5,60,11\n", &none,
		HEAD ",rest_gpus\n9,5,60,1,8,3\n");
}

static void muri_jobs_lose_time_by_model_and_width(void **state)
{
	const char *trace =
		"job_id,num_gpu,submit_time,iterations,model_name,batch_size,iteration_time\n"
		"0,1,0,1000,dqn,128,490\n1,16,1500,10,bert,8,200\n2,2,2000,10,other,8,200\n";
	char room[64];
	const struct convert_options options = { .overheads = path_of("overheads.csv", room) };

	(void)state;
	becomes("muri", trace, &none,
		HEAD
		",rest_gpus,user,checkpoints,restart_s\n0,0,497.350,1,1,,dqn,yes,10\n1,1.500,2.030,2,8,,bert,yes,10\n"
		"2,2,2.030,1,2,,other,yes,10\n");
	file_write(options.overheads, "model_name,gpus_1,gpus_2,gpus_4,gpus_8,gpus_16,gpus_32\n"
				      "dqn,5,5,6,6,8,8\nbert,10,10,10,10,12,13\n");
	becomes("muri", trace, &options,
		HEAD
		",rest_gpus,user,checkpoints,restart_s\n0,0,497.350,1,1,,dqn,yes,5\n1,1.500,2.030,2,8,,bert,yes,12\n"
		"2,2,2.030,1,2,,other,yes,10\n");
	unlink(options.overheads);
}

static void gavel_arrivals_are_scaled(void **state)
{
	const struct convert_options options = { .rate = 4 };

	(void)state;
	becomes("gavel",
		"job_index,job_type,num_gpu,v100_duration_s,total_steps,unit_rate_arrival\n"
		"0,ResNet-18 (batch size 64),8,68344.35,17484476.261,0.0\n1,LM,1,60,7,0.5\n",
		&options,
		HEAD
		",user,checkpoints,models,speeds\n0,0,68344.350,8,1,ResNet-18 (batch size 64),yes,,\n"
		"1,450,60,1,1,LM,yes,,\n");
}

static void gavel_jobs_run_as_fast_as_the_model_lets_them(void **state)
{
	const char *trace = "job_index,job_type,num_gpu,v100_duration_s,unit_rate_arrival\n"
			    "0,LM,2,60,0\n1,A3C,1,30,1\n";
	char room[64];
	const struct convert_options options = { .rate = 1,
						 .throughputs = path_of("speeds.csv", room) };

	(void)state;
	file_write(options.throughputs,
		   "job_type,num_gpu,k80,k80_unconsolidated,p100,p100_unconsolidated,v100\n"
		   "LM,1,1,1,1,1,1\nLM,2,0.0,0.0,10.5,7,42\nA3C,1,0.01,0.01,14,14,7\n");
	becomes("gavel", trace, &options,
		HEAD ",user,checkpoints,models,speeds\n0,0,60,2,1,LM,yes,p100|v100,0.250|1.000\n"
		     "1,3600,30,1,1,A3C,yes,k80|p100|v100,0.001|2.000|1.000\n");
	file_write(options.throughputs, "job_type,num_gpu,k80,p100,v100\nLM,2,0,0,0\n");
	refused("gavel", trace, &options, "no throughput on v100 of \"LM\" on 2 GPUs");
	file_write(options.throughputs, "job_type,num_gpu,k80,p100,v100\nLM,2,0,many,0\n");
	refused("gavel", trace, &options, "p100 is \"many\": wanted are steps per second");
	unlink(options.throughputs);
}

static void openb_tasks_and_nodes(void **state)
{
	(void)state;
	becomes("openb",
		"name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
		"p0,12000,16384,1,1000,,LS,Running,0,100,0\np1,6500,12288,1,460,V100M16|V100M32,LS,Running,7,7,7\n"
		"p2,1000,1,0,0,,BE,Running,8,9,8\n",
		&none,
		HEAD
		",cpus,memory_mib,models\np0,0,100,1,1,12.000,16384,\np1,7,1,1,0.460,6.500,12288,V100M16|V100M32\n"
		"p2,8,1,1,0,1.000,1,\n");
	becomes("openb-nodes", "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,2,P100\n",
		&none,
		"cluster:\n  nodes:\n    - {name: \"n-0\", gpus: 2, model: \"P100\", cpus: 64, ram: 262144MiB}\n");
}

static void spot_nodes_come_and_go(void **state)
{
	const struct convert_options named = { .node = "east" };

	(void)state;
	becomes("spot", "{\"metadata\": {\"gap_seconds\": 1.5}, \"data\": [1, 1, 0, 2,\n0]}",
		&named,
		"#fairlead-availability 1\nat_s,node,there\n0,east-2,0\n3,east-1,0\n4.500,east-1,1\n4.500,east-2,1\n6,east-1,0\n"
		"6,east-2,0\n");
	becomes("spot", "{\"data\": [1], \"metadata\": {\"gap_seconds\": 195}}", &none,
		"#fairlead-availability 1\nat_s,node,there\n");
	becomes("spot-fleet", "0,add,a\n60000,add,b\n61500,remove,a\n", &none,
		"#fairlead-availability 1\nat_s,node,there\n0,b,0\n0,a,1\n60,b,1\n61.500,a,0\n");
	refused("spot", "[]", &none, "\"gap_seconds\": N");
	refused("spot", "{\"gap_seconds\": 0, \"data\": [1]}", &none, "above 0");
	refused("spot", "{\"gap_seconds\": 5, \"data\": [1, -1]}", &none, "0 to 1,000");
	refused("spot", "{\"gap_seconds\": 5, \"data\": [1001]}", &none, "0 to 1,000");
	refused("spot", "{\"gap_seconds\": 5, \"data\": [1, 2", &none, "has no end");
	refused("spot", "{\"gap_seconds\": 5, \"data\": [1, x]}", &none, "0 to 1,000");
	refused("spot-fleet", "0,add,a\n1,lost,a\n", &none, "add or remove");
	refused("spot-fleet", "-1,add,a\n", &none, "milliseconds");
	refused("philly", "", &named, "--node belongs to spot");
}

static void what_is_wrong_is_named(void **state)
{
	const struct convert_options rate = { .rate = 1 }, file = { .overheads = "x" },
				     speeds = { .throughputs = "x" };

	(void)state;
	refused("slurm", "", &none, "\"slurm\" is not known; there are philly");
	refused("gavel", "", &none, "say --rate");
	refused("philly", "", &rate, "--rate belongs to gavel");
	refused("philly", "", &file, "--overheads belongs to muri");
	refused("philly", "", &speeds, "--throughputs belongs to gavel");
	refused("philly", "", &none, "column \"job_id\" is missing");
	refused("helios", "job_id,submit_s,duration_s_capped48h,num_gpu\n1,2,3\n", &none,
		"3 fields for 4 columns");
	refused("helios", "job_id,submit_s,duration_s_capped48h,num_gpu\n1,2,x,4\n", &none,
		"wanted are seconds");
	refused("helios", "job_id,submit_s,duration_s_capped48h,num_gpu\n1,2,3,-4\n", &none,
		"num_gpu: ");
	refused("helios", "job_id,submit_s,duration_s_capped48h,num_gpu\n\"1\",2,3,4\n", &none,
		"quotes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_of_jobs),
		cmocka_unit_test(muri_jobs_lose_time_by_model_and_width),
		cmocka_unit_test(gavel_arrivals_are_scaled),
		cmocka_unit_test(gavel_jobs_run_as_fast_as_the_model_lets_them),
		cmocka_unit_test(openb_tasks_and_nodes),
		cmocka_unit_test(spot_nodes_come_and_go),
		cmocka_unit_test(what_is_wrong_is_named),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(folder);
	return failed;
}
