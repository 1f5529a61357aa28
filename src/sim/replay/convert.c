/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/convert.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "sim/replay/rows.h"
#include "sim/replay/workload.h"

enum { GPUS_OF_A_NODE = 8, GANG_MAX = 100000, OVERHEADS_MAX = 64, RESTART_STANDARD_S = 10 };
enum { SPEEDS_MAX = 512, GAVEL_MODELS = 3 };

struct overhead {
	char model[64];
	int64_t seconds[6]; /* of 1, 2, 4 ... 32 GPUs */
};

/* Of a kind of job on so many GPUs, by model; 0 = it does not run there. */
struct throughput {
	char type[64];
	int64_t gpus;
	double steps_per_s[GAVEL_MODELS];
};

struct conversion {
	struct rows rows;
	const struct convert_options *options;
	FILE *out;
	struct overhead overheads[OVERHEADS_MAX];
	uint32_t overhead_count;
	struct throughput throughputs[SPEEDS_MAX];
	uint32_t throughput_count;
};

/* --- fields --------------------------------------------------------------------------------------------------- */

static int whole(const struct conversion *c, const char *column, int64_t most, int64_t *ret)
{
	struct err why = { 0 };

	if (parse_int(rows_field(&c->rows, column), 0, most, ret, &why) < 0)
		return rows_complain(&c->rows, "%s: %s", column, why.text);
	return 0;
}

/* Seconds with decimals, in ms. */
static int seconds(const struct conversion *c, const char *column, int64_t *ret_ms)
{
	const char *text = rows_field(&c->rows, column);

	return rows_thousandths(text, INT64_C(1) << 60, ret_ms)
		       ? 0
		       : rows_complain(&c->rows, "%s is \"%.40s\": wanted are seconds", column,
				       text);
}

/* A name that stands in a workload's field whatever it holds. */
static int word(const struct conversion *c, const char *column, const char **ret)
{
	*ret = rows_field(&c->rows, column);
	return strlen(*ret) <= 63 ? 0
				  : rows_complain(&c->rows, "%s has more than 63 bytes", column);
}

/* Whole nodes, and one task with the rest. */
struct gang {
	int64_t tasks, gpus, rest;
};

static struct gang gang_of(int64_t gpus)
{
	if (gpus <= GPUS_OF_A_NODE)
		return (struct gang){ 1, gpus, 0 };
	return (struct gang){ gpus / GPUS_OF_A_NODE, GPUS_OF_A_NODE, gpus % GPUS_OF_A_NODE };
}

static void time_put(FILE *out, int64_t ms)
{
	if (ms % 1000)
		fprintf(out, "%lld.%03lld", (long long)(ms / 1000), (long long)(ms % 1000));
	else
		fprintf(out, "%lld", (long long)(ms / 1000));
}

static void times_put(const struct conversion *c, const char *job, int64_t submit_ms,
		      int64_t run_ms)
{
	fprintf(c->out, "%s,", job);
	time_put(c->out, submit_ms);
	fputc(',', c->out);
	time_put(c->out, run_ms > 0 ? run_ms : 1000);
}

/* The six columns that lists of gangs have. */
static void job_put(const struct conversion *c, const char *job, int64_t submit_ms, int64_t run_ms,
		    int64_t gpus)
{
	const struct gang gang = gang_of(gpus);

	times_put(c, job, submit_ms, run_ms);
	fprintf(c->out, ",%lld,%lld,", (long long)gang.tasks, (long long)gang.gpus);
	if (gang.rest)
		fprintf(c->out, "%lld", (long long)gang.rest);
}

/* --- lists of jobs -------------------------------------------------------------------------------------------- */

static int list_row(struct conversion *c, const char *duration)
{
	int64_t submit_ms, run_ms, gpus;
	const char *job;

	if (word(c, "job_id", &job) < 0 || seconds(c, "submit_s", &submit_ms) < 0 ||
	    seconds(c, duration, &run_ms) < 0 || whole(c, "num_gpu", GANG_MAX, &gpus) < 0)
		return -1;
	job_put(c, job, submit_ms, run_ms, gpus);
	return 0;
}

static int philly_row(struct conversion *c)
{
	const char *vc;

	if (word(c, "vc", &vc) < 0 || list_row(c, "duration_s") < 0)
		return -1;
	fprintf(c->out, ",%s\n", vc);
	return 0;
}

static int capped_row(struct conversion *c)
{
	if (list_row(c, "duration_s_capped48h") < 0)
		return -1;
	fputc('\n', c->out);
	return 0;
}

/* --- muri ------------------------------------------------------------------------------------------------------- */

static int64_t restart_s(const struct conversion *c, const char *model, int64_t gpus)
{
	uint32_t step = 0;

	while (step < 5 && (INT64_C(1) << step) < gpus)
		step++;
	for (uint32_t i = 0; i < c->overhead_count; i++)
		if (strcmp(c->overheads[i].model, model) == 0)
			return c->overheads[i].seconds[step];
	return RESTART_STANDARD_S;
}

/* Run time alone = iterations x time of one x 1.015, as the published simulator has it. */
static int muri_row(struct conversion *c)
{
	int64_t gpus, submit_ms, iterations, each_ms;
	const char *job, *model;

	if (word(c, "job_id", &job) < 0 || word(c, "model_name", &model) < 0 ||
	    whole(c, "num_gpu", GANG_MAX, &gpus) < 0 ||
	    whole(c, "submit_time", INT64_C(1) << 50, &submit_ms) < 0 ||
	    whole(c, "iterations", INT64_C(1) << 32, &iterations) < 0 ||
	    whole(c, "iteration_time", 1 << 20, &each_ms) < 0)
		return -1;
	job_put(c, job, submit_ms, iterations * each_ms * 203 / 200, gpus);
	fprintf(c->out, ",%s,yes,%lld\n", model, (long long)restart_s(c, model, gpus));
	return 0;
}

static int overheads_take(struct conversion *c, struct rows *rows)
{
	static const char *const columns[] = { "gpus_1", "gpus_2",  "gpus_4",
					       "gpus_8", "gpus_16", "gpus_32" };
	struct overhead *o = &c->overheads[c->overhead_count];
	struct err why = { 0 };

	if (c->overhead_count == OVERHEADS_MAX)
		return rows_complain(rows, "there are more than %d models", OVERHEADS_MAX);
	snprintf(o->model, sizeof o->model, "%s", rows_field(rows, "model_name"));
	for (int i = 0; i < 6; i++)
		if (parse_int(rows_field(rows, columns[i]), 0, 86400, &o->seconds[i], &why) < 0)
			return rows_complain(rows, "%s: %s", columns[i], why.text);
	c->overhead_count++;
	return 0;
}

/* A table that is given beside the trace. */
static int table_read(struct conversion *c, const char *path, const char *const *needed,
		      uint32_t needed_count, int (*take)(struct conversion *, struct rows *),
		      struct err *err)
{
	struct rows rows;
	char *text;
	int rc = rows_text(path, &text, err);

	if (rc < 0)
		return rc;
	rows_init(&rows, path, text, err);
	rc = rows_head(&rows, needed, needed_count);
	while (rc >= 0 && (rc = rows_next(&rows)) == 1)
		rc = take(c, &rows);
	free(text);
	return rc;
}

static int overheads_read(struct conversion *c, struct err *err)
{
	static const char *const needed[] = { "model_name", "gpus_1",  "gpus_2", "gpus_4",
					      "gpus_8",     "gpus_16", "gpus_32" };

	return table_read(c, c->options->overheads, needed, 7, overheads_take, err);
}

/* --- gavel ------------------------------------------------------------------------------------------------------ */

/* Run times are those on the last one. */
static const char *const gavel_models[GAVEL_MODELS] = { "k80", "p100", "v100" };

static int throughputs_take(struct conversion *c, struct rows *rows)
{
	struct throughput *t = &c->throughputs[c->throughput_count];
	struct err why = { 0 };
	char *end;

	if (c->throughput_count == SPEEDS_MAX)
		return rows_complain(rows, "there are more than %d kinds of jobs", SPEEDS_MAX);
	snprintf(t->type, sizeof t->type, "%s", rows_field(rows, "job_type"));
	if (parse_int(rows_field(rows, "num_gpu"), 1, GANG_MAX, &t->gpus, &why) < 0)
		return rows_complain(rows, "num_gpu: %s", why.text);
	for (int i = 0; i < GAVEL_MODELS; i++) {
		const char *text = rows_field(rows, gavel_models[i]);

		t->steps_per_s[i] = strtod(text, &end);
		if (*end || end == text || !(t->steps_per_s[i] >= 0) || t->steps_per_s[i] > 1e9)
			return rows_complain(rows, "%s is \"%.40s\": wanted are steps per second",
					     gavel_models[i], text);
	}
	c->throughput_count++;
	return 0;
}

static int throughputs_read(struct conversion *c, struct err *err)
{
	static const char *const needed[] = { "job_type", "num_gpu", "k80", "p100", "v100" };

	return table_read(c, c->options->throughputs, needed, 5, throughputs_take, err);
}

/* Models that run it, and how fast against the one that its run time is said of. */
static int speeds_put(const struct conversion *c, const char *type, int64_t gpus)
{
	const struct throughput *t = c->throughputs;
	const char *between = "";

	while (t < c->throughputs + c->throughput_count &&
	       (t->gpus != gpus || strcmp(t->type, type) != 0))
		t++;
	if (t == c->throughputs + c->throughput_count || !(t->steps_per_s[GAVEL_MODELS - 1] > 0))
		return rows_complain(&c->rows, "no throughput on v100 of \"%s\" on %lld GPUs", type,
				     (long long)gpus);
	for (int i = 0; i < GAVEL_MODELS; i++)
		if (t->steps_per_s[i] > 0) {
			fprintf(c->out, "%s%s", between, gavel_models[i]);
			between = "|";
		}
	between = ",";
	for (int i = 0; i < GAVEL_MODELS; i++) {
		double speed = t->steps_per_s[i] / t->steps_per_s[GAVEL_MODELS - 1];

		if (!(t->steps_per_s[i] > 0))
			continue;
		speed = speed < 0.001 ? 0.001 : speed > 60 ? 60 : speed;
		fprintf(c->out, "%s%.3f", between, speed);
		between = "|";
	}
	fputc('\n', c->out);
	return 0;
}

/* Its servers have one GPU each: a gang is so many tasks. */
static int gavel_row(struct conversion *c)
{
	int64_t unit_ms, run_ms, gpus;
	const char *job, *type;

	if (word(c, "job_index", &job) < 0 || word(c, "job_type", &type) < 0 ||
	    seconds(c, "unit_rate_arrival", &unit_ms) < 0 ||
	    seconds(c, "v100_duration_s", &run_ms) < 0 || whole(c, "num_gpu", GANG_MAX, &gpus) < 0)
		return -1;
	times_put(c, job, (int64_t)((double)unit_ms * 3600 / c->options->rate), run_ms);
	fprintf(c->out, ",%lld,1,%s,yes,", (long long)gpus, type);
	if (c->throughput_count)
		return speeds_put(c, type, gpus);
	fputs(",\n", c->out);
	return 0;
}

/* --- openb ------------------------------------------------------------------------------------------------------ */

static int openb_row(struct conversion *c)
{
	int64_t cpu, memory, gpus, milli, created_ms, deleted_ms;
	const char *job, *spec = rows_field(&c->rows, "gpu_spec");

	if (word(c, "name", &job) < 0 || whole(c, "cpu_milli", INT32_MAX, &cpu) < 0 ||
	    whole(c, "memory_mib", INT32_MAX, &memory) < 0 || whole(c, "num_gpu", 8, &gpus) < 0 ||
	    whole(c, "gpu_milli", 1000, &milli) < 0 ||
	    seconds(c, "creation_time", &created_ms) < 0 ||
	    seconds(c, "deletion_time", &deleted_ms) < 0)
		return -1;
	fprintf(c->out, "%s,", job);
	time_put(c->out, created_ms);
	fputc(',', c->out);
	time_put(c->out, deleted_ms > created_ms ? deleted_ms - created_ms : 1000);
	if (gpus == 1 && milli < 1000)
		fprintf(c->out, ",1,0.%03lld", (long long)milli);
	else
		fprintf(c->out, ",1,%lld", (long long)gpus);
	fprintf(c->out, ",%lld.%03lld,%lld,%s\n", (long long)(cpu / 1000), (long long)(cpu % 1000),
		(long long)memory, spec ? spec : "");
	return 0;
}

static int openb_node_row(struct conversion *c)
{
	int64_t cpu, memory, gpus;
	const char *name, *model;

	if (word(c, "sn", &name) < 0 || word(c, "model", &model) < 0 ||
	    whole(c, "cpu_milli", INT32_MAX, &cpu) < 0 ||
	    whole(c, "memory_mib", INT32_MAX, &memory) < 0 || whole(c, "gpu", 32, &gpus) < 0)
		return -1;
	fprintf(c->out,
		"    - {name: \"%s\", gpus: %lld, model: \"%s\", cpus: %lld, ram: %lldMiB}\n", name,
		(long long)gpus, model, (long long)(cpu / 1000), (long long)memory);
	return 0;
}

/* --- spot nodes --------------------------------------------------------------------------------------------------- */

enum { SPOT_SAMPLES_MAX = 1000000, SPOT_NODES_MAX = 1000 };
#define AVAILABILITY "#fairlead-availability 1\nat_s,node,there\n"

static int text_complain(struct conversion *c, const char *what)
{
	return err_at(c->rows.err, ERR_INVALID, c->rows.path, 1, 1, "%s", what);
}

/* Behind "KEY": of JSON as it is published; NULL = it is not there. */
static const char *value_find(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (at)
		at += strlen(key);
	return at && *(at += strspn(at, " \t\r\n")) == ':' ? at + 1 + strspn(at + 1, " \t\r\n")
							   : NULL;
}

static void node_put(const struct conversion *c, int64_t at_ms, int64_t node, bool there)
{
	time_put(c->out, at_ms);
	fprintf(c->out, ",%s-%lld,%d\n", c->options->node ? c->options->node : "spot",
		(long long)node + 1, there);
}

/* Of so many nodes the first are those that are there. */
static int samples_put(struct conversion *c, const char *at, int64_t gap_ms, int64_t most)
{
	int64_t before = most;
	char *end;

	for (int64_t i = 0; *at != ']'; i++) {
		const int64_t is = strtoll(at, &end, 10);

		for (int64_t node = is; node < before; node++)
			node_put(c, i * gap_ms, node, false);
		for (int64_t node = before; node < is; node++)
			node_put(c, i * gap_ms, node, true);
		before = is;
		at = end + strspn(end, ", \t\r\n");
	}
	return 0;
}

/* Numbers and commas up to the bracket; the most of them. */
static int samples_check(struct conversion *c, const char *at, int64_t *ret_most)
{
	char *end;

	*ret_most = 0;
	for (uint32_t count = 0; *at != ']'; count++) {
		const int64_t is = strtoll(at, &end, 10);

		if (end == at || is < 0 || is > SPOT_NODES_MAX)
			return text_complain(c,
					     "\"data\" must be numbers of nodes from 0 to 1,000");
		if (count == SPOT_SAMPLES_MAX)
			return text_complain(c, "there are more than 1,000,000 samples");
		if (is > *ret_most)
			*ret_most = is;
		at = end + strspn(end, " \t\r\n");
		if (*at != ',' && *at != ']')
			return text_complain(c, "\"data\" has no end");
		at += *at == ',' ? 1 + strspn(at + 1, " \t\r\n") : 0;
	}
	return 0;
}

/* {"metadata": {"gap_seconds": 195}, "data": [0, 1, ...]}: so many nodes are there, a sample every so often. */
static int spot_convert(struct conversion *c, const char *text)
{
	const char *gap = value_find(text, "\"gap_seconds\""), *data = value_find(text, "\"data\"");
	int64_t gap_ms, most;
	char *end;

	if (!gap || !data || *data != '[')
		return text_complain(
			c, "wanted is {\"metadata\": {\"gap_seconds\": N}, \"data\": [N, ...]}");
	gap_ms = (int64_t)(strtod(gap, &end) * 1000);
	if (end == gap || gap_ms < 1 || gap_ms > 86400000)
		return text_complain(c, "\"gap_seconds\" must be above 0 and at most 86,400");
	data += 1 + strspn(data + 1, " \t\r\n");
	if (samples_check(c, data, &most) < 0)
		return -1;
	fputs(AVAILABILITY, c->out);
	return samples_put(c, data, gap_ms, most);
}

/* Milliseconds, add or remove, name. One that is added later is away until then. */
static int fleet_convert(struct conversion *c, char *text)
{
	char *copy = strdup(text), *line;
	struct rows *r = &c->rows;

	CHECK(copy);
	fputs(AVAILABILITY, c->out);
	for (int pass = 0; pass < 2; pass++) {
		rows_init(r, r->path, pass ? text : copy, r->err);
		while ((line = rows_line(r))) {
			char *at = strsep(&line, ","), *what = strsep(&line, ","),
			     *name = strsep(&line, ",");
			const bool adds = what && strcmp(what, "add") == 0;
			struct err why = { 0 };
			int64_t at_ms;

			if (!name || line || !*name || (!adds && strcmp(what, "remove") != 0) ||
			    parse_int(at, 0, WORKLOAD_TIME_MAX_MS, &at_ms, &why) < 0) {
				free(copy);
				return rows_complain(
					r, "wanted are milliseconds, add or remove, and a name");
			}
			if (pass) {
				time_put(c->out, at_ms);
				fprintf(c->out, ",%s,%d\n", name, adds);
			} else if (adds && at_ms > 0) {
				fprintf(c->out, "0,%s,0\n", name);
			}
		}
	}
	free(copy);
	return 0;
}

/* --- all -------------------------------------------------------------------------------------------------------- */

#define WORKLOAD "#fairlead-workload 1\njob,submit_s,run_s,tasks,gpus"
#define GANGS WORKLOAD ",rest_gpus"

static const struct format {
	const char *name, *head;
	int (*row)(struct conversion *c);
	const char *needed[8];
} formats[] = {
	{ "philly",
	  GANGS ",user\n",
	  philly_row,
	  { "job_id", "submit_s", "duration_s", "num_gpu", "vc" } },
	{ "helios",
	  GANGS "\n",
	  capped_row,
	  { "job_id", "submit_s", "duration_s_capped48h", "num_gpu" } },
	{ "pai",
	  GANGS "\n",
	  capped_row,
	  { "job_id", "submit_s", "duration_s_capped48h", "num_gpu" } },
	{ "muri",
	  GANGS ",user,checkpoints,restart_s\n",
	  muri_row,
	  { "job_id", "num_gpu", "submit_time", "iterations", "model_name", "iteration_time" } },
	{ "gavel",
	  WORKLOAD ",user,checkpoints,models,speeds\n",
	  gavel_row,
	  { "job_index", "job_type", "num_gpu", "v100_duration_s", "unit_rate_arrival" } },
	{ "openb",
	  WORKLOAD ",cpus,memory_mib,models\n",
	  openb_row,
	  { "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time",
	    "deletion_time" } },
	{ "openb-nodes",
	  "cluster:\n  nodes:\n",
	  openb_node_row,
	  { "sn", "cpu_milli", "memory_mib", "gpu", "model" } },
};

/* Those that are no tables with a head. */
static bool is_spot(const char *from)
{
	return strcmp(from, "spot") == 0 || strcmp(from, "spot-fleet") == 0;
}

const char *convert_names(void)
{
	static char names[256];
	size_t size = 0;

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		size += (size_t)snprintf(names + size, sizeof names - size, "%s%s", i ? ", " : "",
					 formats[i].name);
	size += (size_t)snprintf(names + size, sizeof names - size, ", spot, spot-fleet");
	CHECK(size < sizeof names);
	return names;
}

static int rows_convert(struct conversion *c, const struct format *format)
{
	uint32_t needed = 0;
	int rc;

	while (needed < 8 && format->needed[needed])
		needed++;
	rc = rows_head(&c->rows, format->needed, needed);
	if (rc == 0)
		fputs(format->head, c->out);
	while (rc >= 0 && (rc = rows_next(&c->rows)) == 1)
		rc = format->row(c);
	return rc;
}

int convert(const char *from, const char *path, const struct convert_options *options, FILE *out,
	    struct err *err)
{
	struct conversion c = { .options = options, .out = out };
	const struct format *format = NULL;
	char *text;
	int rc = 0;

	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (strcmp(formats[i].name, from) == 0)
			format = &formats[i];
	if (!format && !is_spot(from))
		return err_set(err, ERR_INVALID,
			       "trace format \"%.40s\" is not known; there are %s", from,
			       convert_names());
	if (format && format->row == gavel_row && !(options->rate > 0))
		return err_set(
			err, ERR_INVALID,
			"a gavel trace has arrivals of rate 1: say --rate JOBS, in jobs per hour");
	if (options->rate > 0 && (!format || format->row != gavel_row))
		return err_set(err, ERR_INVALID, "--rate belongs to gavel traces alone");
	if (options->overheads && (!format || format->row != muri_row))
		return err_set(err, ERR_INVALID, "--overheads belongs to muri traces alone");
	if (options->throughputs && (!format || format->row != gavel_row))
		return err_set(err, ERR_INVALID, "--throughputs belongs to gavel traces alone");
	if (options->node && strcmp(from, "spot") != 0)
		return err_set(err, ERR_INVALID, "--node belongs to spot traces alone");
	if (options->overheads)
		rc = overheads_read(&c, err);
	if (options->throughputs)
		rc = throughputs_read(&c, err);
	if (rc < 0)
		return rc;
	rc = rows_text(path, &text, err);
	if (rc < 0)
		return rc;
	rows_init(&c.rows, path, text, err);
	rc = format                      ? rows_convert(&c, format)
	     : strcmp(from, "spot") == 0 ? spot_convert(&c, text)
					 : fleet_convert(&c, text);
	free(text);
	return rc;
}
