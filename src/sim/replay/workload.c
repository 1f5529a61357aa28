/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/workload.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "core/model/gpu_wish.h"
#include "core/partitioning/geometry.h"
#include "core/scheduling/admit/admit.h"
#include "sim/replay/rows.h"

enum { WORD_MAX = 128, WISH_MAX = 8192 };

static const char mark[] = "#fairlead-workload 1";

/* --- values ---------------------------------------------------------------------------------------------- */

/* most: in thousandths. */
static int milli_read(const struct rows *in, const char *what, const char *text, int64_t most,
		      int64_t *ret)
{
	struct err why = { 0 };

	if (parse_milli(text, 0, most, ret, &why) < 0)
		return rows_complain(in, "%s: %s", what, why.text);
	return 0;
}

static int time_read(const struct rows *in, const char *what, const char *text, int64_t *ret)
{
	return milli_read(in, what, text, WORKLOAD_TIME_MAX_MS, ret);
}

static int count_read(const struct rows *in, const char *what, const char *text, int64_t least,
		      int64_t most, int64_t *ret)
{
	struct err why = { 0 };

	if (parse_int(text, least, most, ret, &why) < 0)
		return rows_complain(in, "%s: %s", what, why.text);
	return 0;
}

static int gpus_read(const struct rows *in, const char *text, struct workload_job *job)
{
	struct err why = { 0 };
	struct gpu_wish wish;

	if (gpu_wish_parse(text, &wish, &why) < 0)
		return rows_complain(in, "gpus: %s", why.text);
	job->gpus = wish.gpus;
	job->gpu_part = wish.part;
	return 0;
}

static int text_read(const struct rows *in, const char *what, char *text, size_t most,
		     const char **ret)
{
	if (strlen(text) > most)
		return rows_complain(in, "%s has more than %zu bytes", what, most);
	if (!text_is_utf8(text, strlen(text)))
		return rows_complain(in, "%s is not UTF-8", what);
	*ret = text;
	return 0;
}

static int word_read(const struct rows *in, const char *what, char *text, const char **ret)
{
	return text_read(in, what, text, WORD_MAX, ret);
}

static int models_read(const struct rows *in, char *text, struct workload_job *job)
{
	for (char *c = text; *c; c++)
		if (*c == '|')
			*c = ',';
	return word_read(in, "models", text, &job->models);
}

/* How fast each model is, in the order of `models`. */
static int speeds_read(const struct rows *in, char *text, struct workload_job *job)
{
	uint32_t at = 0;
	char *word;

	while ((word = strsep(&text, "|"))) {
		int64_t speed;

		if (at == WORKLOAD_MODELS_MAX)
			return rows_complain(in, "speeds: there are more than %d",
					     WORKLOAD_MODELS_MAX);
		if (milli_read(in, "speeds", word, SPEED_MOST, &speed) < 0)
			return -1;
		if (!speed)
			return rows_complain(
				in, "speeds: 0; leave out a model that does not run the job");
		job->speeds[at++] = (uint16_t)speed;
	}
	return 0;
}

static int speeds_check(const struct rows *in, const struct workload_job *job)
{
	uint32_t models = *job->models != 0, speeds = 0;

	for (const char *c = job->models; *c; c++)
		models += *c == ',';
	while (speeds < WORKLOAD_MODELS_MAX && job->speeds[speeds])
		speeds++;
	return !speeds || speeds == models
		       ? 0
		       : rows_complain(in, "there are %u speeds for %u models", speeds, models);
}

static int choice_read(const struct rows *in, const char *what, const char *text,
		       bool (*find)(const char *, uint8_t *), const char *choices, uint8_t *ret)
{
	return find(text, ret)
		       ? 0
		       : rows_complain(in, "%s is \"%.40s\": wanted is %s", what, text, choices);
}

static int yes_read(const struct rows *in, const char *what, const char *text, uint8_t *ret)
{
	*ret = strcmp(text, "yes") == 0;
	return *ret || strcmp(text, "no") == 0
		       ? 0
		       : rows_complain(in, "%s is \"%.40s\": wanted is yes or no", what, text);
}

/* --- columns --------------------------------------------------------------------------------------------- */

enum column {
	COLUMN_JOB,
	COLUMN_SUBMIT,
	COLUMN_RUN,
	COLUMN_TASKS,
	COLUMN_GPUS,
	COLUMN_MODELS,
	COLUMN_GPU_MEMORY,
	COLUMN_CPUS,
	COLUMN_MEMORY,
	COLUMN_QUEUE,
	COLUMN_USER,
	COLUMN_KIND,
	COLUMN_TIER,
	COLUMN_PRIORITY,
	COLUMN_LIMIT,
	COLUMN_ESTIMATE,
	COLUMN_DEADLINE,
	COLUMN_CHECKPOINTS,
	COLUMN_RESTART,
	COLUMN_REST_GPUS,
	COLUMN_CHECKPOINT_EVERY,
	COLUMN_SPEEDS,
	COLUMN_CAPACITY,
	COLUMN_GPU_PART,
	/* Wishes: as in the struct. */
	COLUMN_SLICE,
	COLUMN_REQUIRE,
	COLUMN_PREFER,
	COLUMN_SPREAD,
	COLUMN_REGIONS,
	COLUMN_LABELS,
	COLUMN_TOLERATES,
	COLUMN_MIN_DRIVER,
	COLUMN_MIN_CUDA,
	COLUMN_WINDOW,
	COLUMN_COUNT
};

static const char *const columns[COLUMN_COUNT] = {
	"job",
	"submit_s",
	"run_s",
	"tasks",
	"gpus",
	"models",
	"gpu_memory_mib",
	"cpus",
	"memory_mib",
	"queue",
	"user",
	"kind",
	"tier",
	"priority",
	"limit_s",
	"estimate_s",
	"deadline_s",
	"checkpoints",
	"restart_s",
	"rest_gpus",
	"checkpoint_every_s",
	"speeds",
	"capacity",
	"gpu_part_mib",
	"slice",
	"require",
	"prefer",
	"spread",
	"regions",
	"labels",
	"tolerates",
	"min_driver",
	"min_cuda",
	"window",
};

/* Room for them is made with the first. */
static int wish_read(const struct rows *in, enum column column, char *text,
		     struct workload_job *job)
{
	static const size_t at[] = {
		offsetof(struct workload_wishes, slice),
		offsetof(struct workload_wishes, require),
		offsetof(struct workload_wishes, prefer),
		offsetof(struct workload_wishes, spread),
		offsetof(struct workload_wishes, regions),
		offsetof(struct workload_wishes, labels),
		offsetof(struct workload_wishes, tolerates),
		offsetof(struct workload_wishes, min_driver),
		offsetof(struct workload_wishes, min_cuda),
		offsetof(struct workload_wishes, window),
	};
	const char *wish = "", **field;

	for (char *c = text; *c; c++)
		if (*c == '|')
			*c = ',';
	if (text_read(in, columns[column], text, WISH_MAX, &wish) < 0)
		return -1;
	field = (void *)((char *)workload_wishes_of(job) + at[column - COLUMN_SLICE]);
	*field = wish;
	return 0;
}

static int field_read(const struct rows *in, enum column column, char *text,
		      struct workload_job *job)
{
	const char *what = columns[column];
	int64_t number = 0;
	int rc = 0;

	switch (column) {
	case COLUMN_JOB: return word_read(in, what, text, &job->name);
	case COLUMN_SUBMIT: return time_read(in, what, text, &job->submit_ms);
	case COLUMN_RUN: return time_read(in, what, text, &job->run_ms);
	case COLUMN_TASKS:
		rc = count_read(in, what, text, 1, WORKLOAD_TASKS_MAX, &number);
		job->tasks = (uint32_t)number;
		return rc;
	case COLUMN_GPUS: return gpus_read(in, text, job);
	case COLUMN_MODELS: return models_read(in, text, job);
	case COLUMN_GPU_MEMORY:
		return count_read(in, what, text, 0, UINT32_MAX, &job->gpu_memory_mib);
	case COLUMN_CPUS: return milli_read(in, what, text, UINT32_MAX, &job->cpu_milli);
	case COLUMN_MEMORY: return count_read(in, what, text, 0, UINT32_MAX, &job->memory_mib);
	case COLUMN_QUEUE: return word_read(in, what, text, &job->queue);
	case COLUMN_USER: return word_read(in, what, text, &job->user);
	case COLUMN_KIND:
		return choice_read(in, what, text, kind_find,
				   "training, batch, inference or interactive", &job->kind);
	case COLUMN_TIER:
		return choice_read(in, what, text, tier_find, "best-effort, standard or critical",
				   &job->tier);
	case COLUMN_PRIORITY:
		rc = count_read(in, what, text, -1000, 1000, &number);
		job->priority = (int32_t)number;
		return rc;
	case COLUMN_LIMIT: return time_read(in, what, text, &job->limit_ms);
	case COLUMN_ESTIMATE: return time_read(in, what, text, &job->estimate_ms);
	case COLUMN_DEADLINE: return time_read(in, what, text, &job->deadline_ms);
	case COLUMN_CHECKPOINTS: return yes_read(in, what, text, &job->checkpoints);
	case COLUMN_RESTART:
		rc = time_read(in, what, text, &number);
		job->restart_ms = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
		return rc;
	case COLUMN_REST_GPUS:
		rc = count_read(in, what, text, 0, NODE_GPUS_MAX, &number);
		job->rest_gpus = (uint32_t)number;
		return rc;
	case COLUMN_CHECKPOINT_EVERY: return time_read(in, what, text, &job->checkpoint_every_ms);
	case COLUMN_SPEEDS: return speeds_read(in, text, job);
	case COLUMN_CAPACITY:
		return choice_read(in, what, text, capacity_find, "on-demand, spot or any",
				   &job->capacity);
	case COLUMN_GPU_PART: return count_read(in, what, text, 1, INT32_MAX, &job->gpu_part_mib);
	case COLUMN_SLICE:
	case COLUMN_REQUIRE:
	case COLUMN_PREFER:
	case COLUMN_SPREAD:
	case COLUMN_REGIONS:
	case COLUMN_LABELS:
	case COLUMN_TOLERATES:
	case COLUMN_MIN_DRIVER:
	case COLUMN_MIN_CUDA:
	case COLUMN_WINDOW: return wish_read(in, column, text, job);
	case COLUMN_COUNT: break;
	}
	UNREACHABLE();
}

struct head {
	enum column column[ROWS_COLUMNS_MAX];
	uint32_t count;
};

static int head_add(const struct rows *in, struct head *head, const char *word)
{
	uint32_t found = 0;
	const char *hint;

	while (found < COLUMN_COUNT && strcmp(columns[found], word) != 0)
		found++;
	if (found == COLUMN_COUNT) {
		hint = spelling_hint(word, columns, COLUMN_COUNT);
		return hint ? rows_complain(in,
					    "column \"%.40s\" is not known; did you mean \"%s\"?",
					    word, hint)
			    : rows_complain(in, "column \"%.40s\" is not known", word);
	}
	for (uint32_t i = 0; i < head->count; i++)
		if (head->column[i] == (enum column)found)
			return rows_complain(in, "column \"%s\" stands twice", word);
	head->column[head->count++] = (enum column)found;
	return 0;
}

static int head_read(struct rows *in, struct head *head)
{
	static const enum column needed[] = { COLUMN_SUBMIT, COLUMN_RUN };
	char *line = rows_line(in), *word;

	head->count = 0;
	if (!line || strcmp(line, mark) != 0)
		return rows_complain(in, "the first line is not \"%s\"", mark);
	line = rows_line(in);
	if (!line)
		return rows_complain(in, "the line with the names of the columns is missing");
	while ((word = strsep(&line, ",")))
		if (head_add(in, head, word) < 0)
			return -1;
	for (size_t n = 0; n < sizeof needed / sizeof *needed; n++) {
		uint32_t i = 0;

		while (i < head->count && head->column[i] != needed[n])
			i++;
		if (i == head->count)
			return rows_complain(in, "column \"%s\" is missing", columns[needed[n]]);
	}
	return 0;
}

/* --- jobs ------------------------------------------------------------------------------------------------ */

/* A slice, or a part by memory, is of one GPU; which part of it is taken for the figures and for plain policies. */
static int slice_check(const struct rows *in, struct workload_job *job)
{
	const char *slice = job->wishes ? job->wishes->slice : "";
	uint32_t wish;

	if (!*slice && !job->gpu_part_mib)
		return 0;
	if (job->gpus != 1 || job->rest_gpus)
		return rows_complain(in, "%s: say gpus 1, or a part of one",
				     *slice ? "slice" : "gpu_part_mib");
	if (*slice && job->gpu_part_mib)
		return rows_complain(in, "slice or gpu_part_mib, not both");
	if (!*slice || strcmp(slice, SLICE_FIT) == 0)
		return 0;
	if (!slice_wish_parse(slice, &wish) || !slice_share(wish))
		return rows_complain(
			in, "slice is \"%.40s\": wanted is one such as 1g.10gb, or fit", slice);
	job->gpu_part = slice_share(wish);
	return 0;
}

static int job_read(const struct rows *in, const struct head *head, char *line,
		    struct workload_job *job)
{
	uint32_t at = 0;
	char *word;

	*job = (struct workload_job){ .name = "",
				      .queue = "",
				      .user = "",
				      .models = "",
				      .tasks = 1,
				      .gpus = 1,
				      .kind = KIND_BATCH,
				      .tier = TIER_STANDARD,
				      .line = in->line };
	if (strchr(line, '"'))
		return rows_complain(
			in,
			"a field with quotes can't be read; fields hold neither commas nor quotes");
	while ((word = strsep(&line, ","))) {
		if (at == head->count)
			return rows_complain(in, "there are more fields than the %u columns",
					     head->count);
		if (*word && field_read(in, head->column[at], word, job) < 0)
			return -1;
		at++;
	}
	if (at < head->count)
		return rows_complain(in, "there are %u fields for %u columns", at, head->count);
	if (job->rest_gpus && (job->gpu_part || job->rest_gpus >= job->gpus))
		return rows_complain(in, "rest_gpus: %u is not less than the whole GPUs of a task",
				     job->rest_gpus);
	if (slice_check(in, job) < 0)
		return -1;
	if (job->checkpoint_every_ms && !job->checkpoints)
		return rows_complain(in, "checkpoint_every_s: say checkpoints yes");
	if (speeds_check(in, job) < 0)
		return -1;
	if (job->run_ms < 1)
		return rows_complain(in, "run_s is %s: a job runs for 0.001 s at least",
				     job->run_ms ? "negative" : "0");
	return 0;
}

static int by_submission(const void *a, const void *b)
{
	const struct workload_job *x = a, *y = b;

	if (x->submit_ms != y->submit_ms)
		return x->submit_ms < y->submit_ms ? -1 : 1;
	return x->line < y->line ? -1 : 1;
}

int workload_parse(const char *path, char *text, struct workload *ret, struct err *err)
{
	struct rows in;
	struct head head;
	uint32_t room = 0;
	char *line;

	*ret = (struct workload){ .path = path };
	rows_init(&in, path, text, err);
	if (head_read(&in, &head) < 0)
		return -ERR_INVALID;
	while ((line = rows_line(&in))) {
		if (!*line || *line == '#')
			continue;
		if (ret->count == WORKLOAD_JOBS_MAX)
			return rows_complain(&in, "there are more than %d jobs", WORKLOAD_JOBS_MAX);
		if (ret->count == room) {
			room = room ? room * 2 : 1024;
			ret->jobs = reallocarray(ret->jobs, room, sizeof *ret->jobs);
			CHECK(ret->jobs);
		}
		if (job_read(&in, &head, line, &ret->jobs[ret->count++]) < 0)
			return -ERR_INVALID;
	}
	if (!ret->count)
		return rows_complain(&in, "there are no jobs");
	qsort(ret->jobs, ret->count, sizeof *ret->jobs, by_submission);
	return 0;
}

int workload_read(const char *path, struct workload *ret, struct err *err)
{
	char *text = NULL;
	int rc;

	*ret = (struct workload){ 0 };
	rc = rows_text(path, &text, err);
	if (rc == 0)
		rc = workload_parse(path, text, ret, err);
	ret->text = text;
	if (rc < 0)
		workload_deinit(ret);
	return rc;
}

const struct workload_wishes workload_wishes_none = { "", "", "", "", "", "", "", "", "", "" };

struct workload_wishes *workload_wishes_of(struct workload_job *job)
{
	if (job->wishes)
		return job->wishes;
	job->wishes = malloc(sizeof *job->wishes);
	CHECK(job->wishes);
	*job->wishes = workload_wishes_none;
	return job->wishes;
}

void workload_deinit(struct workload *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		free(w->jobs[i].wishes);
	free(w->jobs);
	free(w->text);
	*w = (struct workload){ 0 };
}

int64_t workload_share(const struct workload_job *job)
{
	return (int64_t)job->tasks *
		       (job->gpu_part ? job->gpu_part : (int64_t)job->gpus * GPU_SHARE) +
	       (int64_t)job->rest_gpus * GPU_SHARE;
}
