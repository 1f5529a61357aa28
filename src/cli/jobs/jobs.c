/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/jobs.h"

#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/output/nouns.h"
#include "cli/output/problem.h"
#include "cli/output/prose.h"

enum { WATCH_MS = 2000, PAGE = 500 };

/* Lists, watching */

void notice_simulated(const struct output *output, bool simulated)
{
	if (simulated && output->form <= OUTPUT_WIDE)
		notice("GPUs are simulated: processes are real, GPUs are not");
}

int fetch_list(struct client *client, const char *path, const char *name, json_t **ret,
	       struct err *err)
{
	json_t *answer = NULL, *list;
	int rc = client_get(client, path, &answer, err);

	if (rc < 0)
		return rc;
	list = json_object_get(answer, name);
	*ret = json_is_array(list) ? json_incref(list) : json_array();
	json_decref(answer);
	return 0;
}

int watch(struct invocation *in,
	  int (*show)(struct invocation *in, struct client *client, const struct output *output,
		      struct err *err),
	  struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct output output;
	int rc = client_open(in, &client, err);

	if (rc < 0)
		return rc;
	output_init(&output, in);
	if (!arg_has(in, "watch"))
		return show(in, client, &output, err);
	interrupt_watch();
	do {
		if (output.terminal)
			output_write("\033[H\033[2J\033[3J", 11);
		rc = show(in, client, &output, err);
	} while (rc >= 0 && interruptible_sleep(WATCH_MS));
	return rc;
}

int fetch_jobs(struct client *client, struct arena *arena, const char *path, int64_t limit,
	       json_t **ret, struct err *err)
{
	json_t *all = json_array(), *answer = NULL;
	int64_t after = 0;
	int rc;

	do {
		int64_t left = limit - (int64_t)json_array_size(all),
			page = left < PAGE ? left : PAGE;

		rc = client_get(client,
				arena_printf(arena, "%s%climit=%lld&after=%lld", path,
					     strchr(path, '?') ? '&' : '?', (long long)page,
					     (long long)after),
				&answer, err);
		if (rc < 0)
			break;
		json_array_extend(all, json_object_get(answer, "jobs"));
		after = get_int(answer, "next");
		json_decref(answer);
	} while (after && (int64_t)json_array_size(all) < limit);
	if (rc < 0) {
		json_decref(all);
		return rc;
	}
	*ret = all;
	return 0;
}

/* Fairlead jobs */

static void cell_reason(const json_t *row, struct buf *out)
{
	const char *code = get_text(row, "reason_code");

	cell_text(out, *code ? code : get_text(row, "reason"));
}

/* "4" or "2..4" */
static void cell_tasks(const json_t *row, struct buf *out)
{
	buf_addi(out, get_int(row, "tasks_min"));
	if (get_int(row, "tasks_min") != get_int(row, "tasks_max"))
		buf_addf(out, "..%lld", (long long)get_int(row, "tasks_max"));
}

int64_t job_row_tasks(const json_t *row)
{
	int64_t tasks = get_int(row, "tasks");

	return tasks ? tasks : get_int(row, "tasks_min");
}

void job_row_gpus_say(const json_t *row, int64_t tasks, struct buf *out)
{
	const char *part = get_text(row, "gpu_part");

	if (!*part) {
		buf_addi(out, tasks * get_int(row, "gpus_per_task"));
		return;
	}
	if (tasks != 1)
		buf_addf(out, "%lldx", (long long)tasks);
	cell_text(out, part);
}

static void cell_gpus(const json_t *row, struct buf *out)
{
	job_row_gpus_say(
		row, json_object_get(row, "label") ? get_int(row, "all_tasks") : job_row_tasks(row),
		out);
}

/* "12", or "40_[0-7]" for the jobs of an array. */
static void cell_job(const json_t *row, struct buf *out)
{
	if (json_object_get(row, "label"))
		cell_text(out, get_text(row, "label"));
	else
		buf_addi(out, get_int(row, "id"));
}

/* How much longer a step takes there than on the best place, as far as is known. */
static void cell_slower(const json_t *row, struct buf *out)
{
	int64_t more = get_int(row, "slowdown_permille") - 1000;

	if (more >= 0)
		buf_addf(out, "%lld.%lld%%", (long long)(more / 10), (long long)(more % 10));
}

static const struct column job_columns[] = {
	{ "JOB", .cell = cell_job },
	{ "NAME", "name", CELL_TEXT },
	{ "USER", "user", CELL_TEXT },
	{ "QUEUE", "queue", CELL_TEXT, .narrow = 3 },
	{ "TIER", "tier", CELL_TEXT, .narrow = 2 },
	{ "STATE", "state", CELL_TEXT },
	{ "TASKS", .cell = cell_tasks, .narrow = 1 },
	{ "GPUS", .cell = cell_gpus },
	{ "AGE", "submitted_ms", CELL_AGE },
	{ "IN-STATE", "state_ms", CELL_AGE, true },
	{ "TEAM", "team", CELL_TEXT, true },
	{ "PROJECT", "project", CELL_TEXT, true },
	{ "KIND", "kind", CELL_TEXT, true },
	{ "PRIORITY", "priority", CELL_INT, true },
	{ "ATTEMPTS", "attempt_count", CELL_INT, true },
	{ "SUBMITTED", "submitted_ms", CELL_TIME, true },
	{ "START", "start_ms", CELL_TIME, true },
	{ "SIMULATED", "simulated", CELL_YES, true },
	{ "SLOWER", .cell = cell_slower, .wide = true },
	{ "REASON", .cell = cell_reason, .cut = true },
	{ 0 },
};

static const char *jobs_path(const struct invocation *in)
{
	static const char *const filters[] = { "state", "user", "team", "queue", "name" };
	AUTO_BUF path = BUF_INIT;

	buf_adds(&path, "/api/v1/jobs");
	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (arg_has(in, filters[i]))
			query_add(&path, filters[i], arg_flag(in, filters[i]));
	if (arg_has(in, "all") || arg_has(in, "state"))
		query_add(&path, "active", "0");
	return arena_strdup(in->arena, path.data);
}

static bool any_simulated(const json_t *rows)
{
	const json_t *row;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)rows, index,
			   row) if (get_bool(row, "simulated")) return true;
	return false;
}

static int show_jobs(struct invocation *in, struct client *client, const struct output *output,
		     struct err *err)
{
	json_t *rows = NULL;
	int64_t limit;
	int rc = arg_number(in, "limit", 1, INT32_MAX, INT32_MAX, &limit, err);

	const char *path = jobs_path(in);

	if (output->form != OUTPUT_TABLE) /* the table has no room for them */
		path = arena_printf(in->arena, "%s%cestimates=1", path,
				    strchr(path, '?') ? '&' : '?');
	if (rc >= 0)
		rc = fetch_jobs(client, in->arena, path, limit, &rows, err);
	if (rc < 0)
		return rc;
	if (output->form <= OUTPUT_WIDE && !arg_has(in, "expand")) {
		json_t *lines = jobs_fold(rows);

		json_decref(rows);
		rows = lines;
	}
	output_list(output, job_columns, rows, "id");
	notice_simulated(output, any_simulated(rows));
	json_decref(rows);
	return 0;
}

static int run_jobs(struct invocation *in, struct err *err)
{
	return watch(in, show_jobs, err);
}

static const struct flag jobs_flags[] = {
	{ "all", 'a', NULL, "also those that ended more than a day ago", false },
	{ "state", 's', "STATES", "only these, separated by commas: queued,running", false },
	{ "user", 'u', "NAME", "only this user's", false },
	{ "team", 0, "NAME", "only this team's", false },
	{ "queue", 'q', "NAME", "only of this queue", false },
	{ "name", 'n', "NAME", "only with this name", false },
	{ "limit", 0, "N", "the first N by number", false },
	{ "expand", 0, NULL, "a line for each job of an array", false },
	{ 0 },
};

const struct command command_jobs = {
	.name = "jobs",
	.arguments = "",
	.summary = "list jobs",
	.about =
		"Lists what waits, runs, or ended within a day. Columns never have blanks in them, so that awk can split the lines; \"-\" is "
		"an empty one. The jobs of an array have one line, such as 40_[0-7] with running:3,queued:5; --expand shows each. On a terminal too narrow for them TASKS, TIER and QUEUE are left out, in this order, and REASON is cut; -o "
		"wide, pipes and files get everything.",
	.flags = jobs_flags,
	.examples = "fairlead jobs --watch\tuntil Ctrl-C\n"
		    "fairlead jobs -s queued,preempted -o wide\twhat waits, with all columns\n"
		    "fairlead jobs -u alice -o name | xargs fairlead cancel --yes\tfor scripts",
	.route = "GET /api/v1/jobs",
	.shares = SHARES_OUTPUT | SHARES_WATCH | SHARES_DAEMON,
	.run = run_jobs,
};

/* Submissions */

uint32_t submitted_job(const json_t *answer)
{
	return (uint32_t)get_int(answer, "id");
}

static void submitted_sentence(const json_t *answer, struct buf *out)
{
	int64_t count = get_int(answer, "array_count"), id = get_int(answer, "id");

	if (count > 1)
		buf_addf(out, "jobs %lld to %lld (", (long long)id, (long long)(id + count - 1));
	else
		buf_addf(out, "job %lld (", (long long)id);
	say_text(out, get_text(answer, "name"));
	if (get_bool(answer, "already"))
		buf_addf(out, ") %s submitted before with this key, to queue ",
			 count > 1 ? "were" : "was");
	else
		buf_addf(out, ") %s in queue ", count > 1 ? "are" : "is");
	say_text(out, get_text(answer, "queue"));
	if (get_text(answer, "prospect")[0]) {
		buf_adds(out, ". ");
		say_text(out, get_text(answer, "prospect"));
	}
}

void say_submitted(const json_t *answer)
{
	AUTO_BUF out = BUF_INIT;

	submitted_sentence(answer, &out);
	notice("%s", out.data);
}

void show_submitted(const struct output *output, const json_t *answer)
{
	AUTO_BUF out = BUF_INIT;

	if (output_value(output, answer, "id"))
		return;
	submitted_sentence(answer, &out);
	buf_adds(&out, "\n");
	prose_wrap(&out, output->width, 2);
	output_buf(&out);
}

/* "n0 0,1" for each rank, ranks on one node together */
static void add_dry_places(const json_t *places, struct buf *out)
{
	const json_t *place, *gpu;
	size_t index, at;

	json_array_foreach((json_t *)(uintptr_t)places, index, place)
	{
		buf_addf(out, "  rank %lld on ", (long long)get_int(place, "rank"));
		say_text(out, get_text(place, "node"));
		if (json_array_size(json_object_get(place, "gpus")))
			buf_adds(out, ", GPU ");
		json_array_foreach(json_object_get(place, "gpus"), at, gpu)
			buf_addf(out, "%s%lld", at ? "," : "", (long long)json_integer_value(gpu));
		buf_addc(out, '\n');
	}
}

/* The daemon's sentence on a job that fits nowhere repeats what the lines above it said. */
static void add_dry_prospect(const char *prospect, const char *repeats, struct buf *out)
{
	size_t length = repeats ? (size_t)(repeats - prospect) : strlen(prospect);

	if (!length)
		return;
	text_for_terminal(out, prospect, length);
	buf_addc(out, '\n');
}

/* "14:20", with its date when that is not the day of at_ms. */
static const char *minute_text(int64_t ms, int64_t at_ms, char ret[LOCAL_TIME_MAX])
{
	char at[LOCAL_TIME_MAX];
	size_t size;

	clock_format_local(at_ms, at);
	clock_format_local(ms, ret);
	size = strlen(ret);
	if (size > 3 && ret[size - 3] == ':')
		ret[size - 3] = '\0'; /* without seconds */
	return strncmp(ret, at, 10) == 0 && size > 11 ? ret + 11 : ret;
}

void say_estimate(const json_t *answer, struct buf *out)
{
	const json_t *estimate = json_object_get(answer, "estimate");
	int64_t at_ms = get_int(estimate, "at_ms"), by_ms = get_int(estimate, "start_by_ms"),
		end_ms = get_int(estimate, "end_ms");
	char text[LOCAL_TIME_MAX];

	if (!estimate)
		return;
	buf_addf(out, "Estimated start: about %s",
		 minute_text(get_int(estimate, "start_ms"), at_ms, text));
	if (by_ms)
		buf_addf(out, " (by %s in 9 of 10 cases)", minute_text(by_ms, at_ms, text));
	if (get_text(estimate, "node")[0]) {
		buf_adds(out, ", most likely on ");
		say_text(out, get_text(estimate, "node"));
	}
	if (end_ms)
		buf_addf(out, "; end about %s", minute_text(end_ms, at_ms, text));
	buf_addf(out, ". As of %s.\n", minute_text(at_ms, at_ms, text));
}

/* What it is expected to cost: "About 12.00 EUR, 18.40 EUR at most in 9 of 10 cases (3.20 EUR an hour)". */
void say_price(const json_t *answer, struct buf *out)
{
	const json_t *price = json_object_get(answer, "price");
	const char *currency = get_text(price, "currency");

	if (!price)
		return;
	buf_adds(out, "Expected cost: ");
	say_money(out, get_text(price, "likely"), currency);
	buf_adds(out, ", at most ");
	say_money(out, get_text(price, "safe"), currency);
	buf_adds(out, " in 9 of 10 cases (");
	say_money(out, get_text(price, "per_hour"), currency);
	buf_adds(out, get_bool(price, "placed")
			      ? " an hour there).\n"
			      : " an hour on the cheapest GPUs that it accepts).\n");
}

void say_transfer(const json_t *transfer, struct buf *out)
{
	char text[DURATION_TEXT_MAX];

	if (!get_bool(transfer, "known")) {
		buf_adds(out, "what it takes is not known");
		return;
	}
	buf_addf(out, "about %s", format_duration_short(get_int(transfer, "ms"), text));
	if (strcmp(get_text(transfer, "cost"), "0.000000") != 0) {
		buf_adds(out, ", ");
		say_money(out, get_text(transfer, "cost"), get_text(transfer, "currency"));
	}
}

int show_dry_run(const struct output *output, const json_t *answer)
{
	const json_t *why = json_object_get(answer, "why");
	const char *prospect = get_text(answer, "prospect"),
		   *never = strstr(prospect, ". On this cluster as it is");
	AUTO_BUF out = BUF_INIT;

	if (output_value(output, answer, "name"))
		return 0;
	buf_adds(
		&out,
		never ? "The job file is good, but the cluster as it is can't run it; nothing was submitted. In queue "
		      : "The job is good; nothing was submitted. In queue ");
	say_text(&out, get_text(answer, "queue"));
	if (get_int(answer, "array_count") > 1)
		buf_addf(&out, " the first of its %lld jobs",
			 (long long)get_int(answer, "array_count"));
	else
		buf_adds(&out, " it");
	if (get_bool(answer, "starts_now")) {
		buf_adds(&out, " would start now");
		if (get_int(answer, "evicts"))
			buf_addf(&out, ", once %lld other job%s made room",
				 (long long)get_int(answer, "evicts"),
				 get_int(answer, "evicts") == 1 ? " has" : "s have");
		buf_adds(&out, ":\n");
		add_dry_places(json_object_get(answer, "places"), &out);
		if (json_object_get(answer, "transfer")) {
			buf_adds(&out, "Bringing its data sets there: ");
			say_transfer(json_object_get(answer, "transfer"), &out);
			buf_adds(&out, ".\n");
		}
	} else {
		buf_adds(&out, " would wait: ");
		say_text(&out, get_text(why, "summary"));
		buf_addc(&out, '\n');
		if (get_text(why, "remedy")[0]) {
			buf_adds(&out, "What would let it start: ");
			say_text(&out, get_text(why, "remedy"));
			buf_addc(&out, '\n');
		}
	}
	if (!get_bool(answer, "starts_now"))
		say_estimate(answer, &out);
	say_price(answer, &out);
	add_dry_prospect(prospect, never, &out);
	prose_wrap(&out, output->width, 2);
	output_buf(&out);
	return 0;
}
