/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/jobs.h"
#include "cli/submission/follow.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/moment.h"
#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/selection.h"
#include "cli/output/moment.h"
#include "cli/output/nouns.h"
#include "cli/output/problem.h"
#include "cli/output/prose.h"
#include "cli/output/said_today.h"
#include "cli/output/screen.h"

enum { WATCH_MS = 2000, PAGE = 500 };

/* Lists, watching */

void notice_simulated(const struct output *output, bool simulated)
{
	static int said = -1; /* in each picture of --watch, or in none */

	if (!simulated || !output_is_table(output))
		return;
	if (said < 0)
		said = said_today("simulated");
	if (!said)
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

/* One picture. On a terminal it is drawn over the one before, and fits. */
static int watch_once(struct invocation *in, struct client *client, watch_show *show, bool first,
		      struct err *err)
{
	struct output output;
	int rc;

	output_init(&output, in); /* again each time: the window may have another size */
	if (!output.terminal || !output.cursor || !(output_is_table(&output)))
		return show(in, client, &output, err);
	output.lines = terminal_height(STDOUT_FILENO);
	screen_open();
	rc = show(in, client, &output, err);
	if (rc < 0)
		screen_drop();
	else
		screen_draw(first);
	return rc;
}

int watch(struct invocation *in, watch_show *show, struct err *err)
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
	rc = watch_once(in, client, show, true, err);
	while (rc >= 0 && interruptible_sleep(WATCH_MS))
		rc = watch_once(in, client, show, false, err);
	if (output.terminal && output.cursor && output_is_table(&output))
		output_write("\n", 1);
	return rc;
}

enum { ESTIMATE_WAIT_MS = 2000, ESTIMATE_POLL_FIRST_MS = 25 };

static bool estimate_is_made(const json_t *answer)
{
	return get_bool(answer, "estimate_making") || get_bool(answer, "estimates_making");
}

int get_estimated(struct client *client, const char *path, json_t **ret, struct err *err)
{
	const int64_t end_ms = clock_boot_ms() + ESTIMATE_WAIT_MS;
	int pause_ms = ESTIMATE_POLL_FIRST_MS;
	int rc = client_get(client, path, ret, err);

	while (rc >= 0 && estimate_is_made(*ret) && clock_boot_ms() + pause_ms < end_ms &&
	       interruptible_sleep(pause_ms)) {
		json_decref(*ret);
		*ret = NULL;
		pause_ms *= 2;
		rc = client_get(client, path, ret, err);
	}
	return rc;
}

void say_estimate_missing(const json_t *answer, struct buf *out)
{
	if (estimate_is_made(answer) && !json_object_get(answer, "estimate"))
		buf_adds(
			out,
			"The start can't be estimated yet: playing the queue forward takes longer than 2s.\n");
}

int fetch_jobs(struct client *client, struct arena *arena, const char *path, int64_t limit,
	       json_t **ret, int64_t *ret_total, struct err *err)
{
	json_t *all = json_array(), *answer = NULL;
	int64_t after = 0, total = 0;
	int rc;

	do {
		int64_t left = limit - (int64_t)json_array_size(all),
			page = left < PAGE ? left : PAGE;

		rc = get_estimated(client,
				   arena_printf(arena, "%s%climit=%lld&after=%lld", path,
						strchr(path, '?') ? '&' : '?', (long long)page,
						(long long)after),
				   &answer, err);
		if (rc < 0)
			break;
		json_array_extend(all, json_object_get(answer, "jobs"));
		after = get_int(answer, "next");
		total = get_int(answer, "total");
		json_decref(answer);
	} while (after && (int64_t)json_array_size(all) < limit);
	if (rc < 0) {
		json_decref(all);
		return rc;
	}
	*ret = all;
	if (ret_total)
		*ret_total = total;
	return 0;
}

/* Fairlead jobs */

void job_cell_reason(const json_t *row, struct buf *out)
{
	const char *code = get_text(row, "reason_code");

	AUTO_BUF reason = BUF_INIT;

	moment_count_down(&reason, get_text(row, "reason"), clock_wall_ms());
	cell_text(out, *code ? code : buf_text(&reason));
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
	job_row_gpus_say(row,
			 json_object_get(row, "array_tasks") ? get_int(row, "array_tasks")
							     : job_row_tasks(row),
			 out);
}

/* "12"; of an array "40[3]", or "40[0-7]" where the row stands for several. */
void job_cell_id(const json_t *row, struct buf *out)
{
	const char *numbers = get_text(row, "array_numbers");
	const int64_t array = get_int(row, "array_first");

	if (!array)
		buf_addi(out, get_int(row, "id"));
	else if (*numbers)
		buf_addf(out, "%lld[%s]", (long long)array, numbers);
	else
		buf_addf(out, "%lld[%lld]", (long long)array,
			 (long long)(get_int(row, "id") - array));
}

/* "running", or "running:3,queued:5" of a row that stands for several. */
static void cell_state(const json_t *row, struct buf *out)
{
	json_t *states = json_object_get(row, "array_states"), *jobs;
	const char *state, *between = "";

	if (get_int(row, "array_count") < 2 || !states || json_object_size(states) == 0) {
		cell_text(out, get_text(row, "state"));
		return;
	}
	json_object_foreach(states, state, jobs)
	{
		buf_adds(out, between);
		cell_text(out, state);
		buf_addf(out, ":%lld", (long long)json_integer_value(jobs));
		between = ",";
	}
}

/* How much longer a step takes there than on the best place, as far as is known. */
static void cell_slower(const json_t *row, struct buf *out)
{
	int64_t more = get_int(row, "slowdown_permille") - 1000;

	if (more >= 0)
		buf_addf(out, "%lld.%lld%%", (long long)(more / 10), (long long)(more % 10));
}

static const struct column job_columns[] = {
	{ "JOB", .cell = job_cell_id },
	{ "NAME", "name", CELL_TEXT },
	{ "USER", "user", CELL_TEXT },
	{ "QUEUE", "queue", CELL_TEXT, .narrow = 3 },
	{ "TIER", "tier", CELL_TEXT, .narrow = 2 },
	{ "STATE", .cell = cell_state },
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
	{ "REASON", .cell = job_cell_reason, .cut = true },
	{ 0 },
};

/* How many rows a table has where nobody said. */
enum { ROWS_USUAL = 50, ROWS_BESIDE = 3 };

static int jobs_check(const struct invocation *in, struct err *err)
{
	if (arg_has(in, "active") && arg_has(in, "since"))
		return err_set(err, ERR_INVALID,
			       "--active and --since contradict each other; leave one of them out");
	return selection_check(in, err);
}

/* table: one row for each array, in an order for people. */
static int jobs_path(const struct invocation *in, bool table, const char **ret, struct err *err)
{
	const char *sort = arg_flag(in, "sort");
	AUTO_BUF path = BUF_INIT;
	int64_t since_ms;
	int rc = jobs_check(in, err);

	if (rc >= 0)
		rc = moment_since(in, "since", &since_ms, err);
	if (rc < 0)
		return rc;
	buf_adds(&path, "/api/v1/jobs");
	selection_add(in, arg_has(in, "all"), &path);
	if (arg_has(in, "active"))
		query_add(&path, "ended", "0");
	else if (since_ms)
		query_add(&path, "since_ms", arena_printf(in->arena, "%lld", (long long)since_ms));
	else if (arg_has(in, "all") || arg_has(in, "state"))
		query_add(&path, "active", "0");
	if (sort || table)
		query_add(&path, "sort", sort ? sort : "recent");
	if (table)
		query_add(&path, "total", "1");
	else /* the table has no room for them */
		query_add(&path, "estimates", "1");
	if (table && !arg_has(in, "expand"))
		query_add(&path, "fold", "1");
	*ret = arena_strdup(in->arena, path.data);
	return 0;
}

static int jobs_limit(const struct invocation *in, const struct output *output, int64_t *ret,
		      struct err *err)
{
	const char *text = arg_flag(in, "limit");
	int64_t usual = output_is_table(output) ? ROWS_USUAL : INT32_MAX;

	/* the titles, how many more, and the remark on simulated GPUs */
	if (output->lines > ROWS_BESIDE && output->lines - ROWS_BESIDE < ROWS_USUAL)
		usual = (int64_t)output->lines - ROWS_BESIDE;

	*ret = INT32_MAX;
	if (text && strcmp(text, "all") == 0)
		return 0;
	return arg_number(in, "limit", 1, INT32_MAX, usual, ret, err);
}

static bool any_simulated(const json_t *rows)
{
	const json_t *row;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)rows, index,
			   row) if (get_bool(row, "simulated")) return true;
	return false;
}

/* An empty list may be empty because only the caller's own are in it. */
static void remark_no_jobs(const struct invocation *in)
{
	if (arg_has(in, "all") || arg_has(in, "user") || arg_has(in, "team") ||
	    arg_has(in, "queue"))
		notice("no such job");
	else if (selection_is_given(in) && !arg_has(in, "me"))
		notice("no such job of yours; --all looks among everybody's");
	else
		notice("no job of yours waits, runs or has ended %s; `fairlead jobs --all` shows everybody's",
		       arg_has(in, "active")  ? "(--active leaves those out)"
		       : arg_has(in, "since") ? "since then"
					      : "within a day");
}

static void remark_rows(const struct invocation *in, const json_t *rows, int64_t total)
{
	const int64_t more = total - (int64_t)json_array_size(rows);

	if (!total)
		remark_no_jobs(in);
	if (more > 0)
		notice("and %lld more; `--limit all` shows them", (long long)more);
}

void job_names_print(const json_t *rows)
{
	AUTO_BUF out = BUF_INIT;
	const json_t *row;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)rows, index, row)
	{
		job_cell_id(row, &out);
		buf_addc(&out, '\n');
	}
	output_buf(&out);
}

static int show_jobs(struct invocation *in, struct client *client, const struct output *output,
		     struct err *err)
{
	const bool table = output_is_table(output);
	json_t *rows = NULL;
	const char *path;
	int64_t limit, total;
	int rc = jobs_limit(in, output, &limit, err);

	if (rc >= 0)
		rc = jobs_path(in, table, &path, err);
	if (rc >= 0)
		rc = fetch_jobs(client, in->arena, path, limit, &rows, &total, err);
	if (rc < 0)
		return rc;
	if (output->form == OUTPUT_NAME)
		job_names_print(rows);
	else
		rc = output_list(output, job_columns, rows, "id", err);
	if (rc >= 0 && table)
		remark_rows(in, rows, total);
	notice_simulated(output, any_simulated(rows));
	json_decref(rows);
	return rc;
}

static int run_jobs(struct invocation *in, struct err *err)
{
	return watch(in, show_jobs, err);
}

static const struct flag jobs_flags[] = {
	{ "all", 'a', NULL, "everybody's, and those that ended long ago", false },
	{ "active", 0, NULL, "without those that have ended", false },
	{ "since", 0, "DURATION|TIME",
	  "of those that have ended, the ones that did since then: 7d, \"2026-12-01 20:00\"; default 1d",
	  false },
	{ "sort", 0, "ORDER",
	  "the order of the rows, with - in front the other way round:"
#define JOB_ORDER(name, by, doc) " " #name
#include "api/job_orders.def"
#undef JOB_ORDER
	  "; default recent in a table, else by number",
	  false },
	{ "limit", 0, "N|all", "at most N rows; default 50 in a table, else all", false },
	{ "expand", 0, NULL, "a row for each job of an array", false },
	{ 0 },
};

const struct command command_jobs = {
	.name = "jobs",
	.arguments = "",
	.summary = "list jobs",
	.about =
		"Lists your jobs that wait, run, or ended within a day. A table has the first 50 rows: jobs that have not ended, the newest "
		"first, then the others. The jobs of an array have one row, such as 40[0-7] with running:3,queued:5; --expand shows each. "
		"The other forms have a row for each job.\n\n"
		"Columns never have blanks in them, so that awk can split the lines; \"-\" is "
		"an empty one. On a terminal too narrow for them TASKS, TIER and QUEUE are left out, in this order, and REASON is cut; -o "
		"wide, pipes and files get everything. -o csv has all columns, with blanks as they are.",
	.flags = jobs_flags,
	.examples =
		"fairlead jobs --watch\tuntil Ctrl-C\n"
		"fairlead jobs --all --active --sort gpus\tof everybody, the largest first\n"
		"fairlead jobs --since 7d --columns job,name,state,gpus\tof the last week, four columns\n"
		"fairlead jobs -s queued,preempted -o wide\twhat waits, with all columns\n"
		"fairlead jobs --all -o csv >jobs.csv\tfor a spreadsheet",
	.route = "GET /api/v1/jobs",
	.shares = SHARES_SELECTION | SHARES_LIST | SHARES_WATCH | SHARES_DAEMON,
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
		buf_addf(out, "array %lld of %lld jobs (", (long long)id, (long long)count);
	else
		buf_addf(out, "job %lld (", (long long)id);
	say_text(out, get_text(answer, "name"));
	if (get_bool(answer, "already"))
		buf_adds(out, ") was submitted before with this key, to queue ");
	else
		buf_adds(out, ") is in queue ");
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

bool job_hold_is_late(const json_t *job)
{
	static const char *const waits[] = { "held", "queued", "blocked", "preempted" };
	const char *state = get_text(job, "state");

	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (strcmp(state, waits[i]) == 0)
			return false;
	return get_bool(job, "held") && !state_is_final(state);
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

/* Whence the most that it may cost; an older daemon names another amount and no reason. */
static const char *most_words(const json_t *price)
{
	static const char *const words[][2] = {
		{ "limit", " at its limit" },
		{ "estimate", " by its estimate" },
		{ "like-jobs", " as 9 of 10 jobs like it" },
		{ "default", " by the run time that is assumed without a limit" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i][0], get_text(price, "most_by")) == 0)
			return words[i][1];
	return " in 9 of 10 cases";
}

/* What it is expected to cost: "about 1,680.00 EUR, at most 2,016.00 EUR at its limit (33.60 EUR an hour there)". */
void say_price(const json_t *answer, struct buf *out)
{
	const json_t *price = json_object_get(answer, "price");
	const char *currency = get_text(price, "currency");

	if (!price)
		return;
	buf_adds(out, "Expected cost: about ");
	say_money(out, get_text(price, "likely"), currency);
	buf_adds(out, ", at most ");
	say_money(out, get_text(price, json_object_get(price, "most") ? "most" : "safe"), currency);
	buf_addf(out, "%s (", most_words(price));
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

/* Where the daemon's sentence begins to say why the job can't start. */
static const char *impossible_part(const char *prospect)
{
	const char *nodes = strstr(prospect, ". On this cluster as it is it can't start");

	return nodes ? nodes : strstr(prospect, ". As it is it can't start");
}

int show_dry_run(const struct output *output, const json_t *answer)
{
	const json_t *why = json_object_get(answer, "why");
	const char *prospect = get_text(answer, "prospect"), *never = impossible_part(prospect);
	const bool possible = !json_is_false(json_object_get(answer, "possible"));
	AUTO_BUF out = BUF_INIT;

	if (output_value(output, answer, "name"))
		return !possible;
	buf_adds(
		&out,
		!possible
			? "The job file is good, but the cluster as it is can't run it; nothing was submitted. In queue "
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
		say_sentence(&out, get_text(why, "summary"));
		buf_addc(&out, '\n');
		if (get_text(why, "remedy")[0]) {
			buf_adds(&out, "What would let it start: ");
			say_sentence(&out, get_text(why, "remedy"));
			buf_addc(&out, '\n');
		}
	}
	if (!get_bool(answer, "starts_now"))
		say_estimate(answer, &out);
	say_price(answer, &out);
	add_dry_prospect(prospect, possible ? NULL : never, &out);
	prose_wrap(&out, output->width, 2);
	output_buf(&out);
	return !possible;
}
