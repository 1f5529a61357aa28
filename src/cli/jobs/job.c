/* SPDX-License-Identifier: Apache-2.0 */
/* One job: the page of `fairlead job ID`, and sentences about a job that several commands say. */
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/array.h"
#include "cli/jobs/jobs.h"
#include "cli/output/prose.h"
#include "core/model/slices.h"

const json_t *job_newest_attempt(const json_t *job)
{
	const json_t *attempts = json_object_get(job, "attempts");
	size_t count = json_array_size(attempts);

	return count ? json_array_get(attempts, count - 1) : NULL;
}

int64_t attempt_number(const json_t *attempt)
{
	return get_int(attempt, "number");
}

int64_t attempt_id(const json_t *attempt)
{
	return get_int(attempt, "attempt");
}

void job_places(const json_t *attempt, struct buf *out)
{
	const json_t *tasks = json_object_get(attempt, "tasks"), *task;
	const char *last = "";
	size_t index, named = 0;

	json_array_foreach((json_t *)(uintptr_t)tasks, index, task)
	{
		const char *node = get_text(task, "node");

		if (strcmp(node, last) == 0)
			continue;
		if (named++ < 8) {
			buf_adds(out, named > 1 ? ", " : "");
			say_text(out, node);
		}
		last = node;
	}
	if (named > 8)
		buf_addf(out, " and %zu more", named - 8);
	if (get_bool(attempt, "simulated"))
		buf_adds(out, " (simulated GPUs)");
}

void job_end_sentence(const json_t *job, const char *reason, struct buf *out)
{
	const char *state = get_text(job, "state");
	int64_t rank = get_int(job, "failed_rank");

	buf_addf(out, "job %lld ", (long long)get_int(job, "id"));
	if (strcmp(state, "cancelled") == 0)
		buf_adds(out, "was cancelled");
	else if (strcmp(state, "timed-out") == 0)
		buf_adds(out, "ran into its time limit");
	else
		say_text(out, state);
	if (reason[0] && strcmp(reason, state) != 0) {
		buf_adds(out, ": ");
		say_text(out, reason);
	} else if (strcmp(state, "failed") == 0 && rank >= 0) {
		if (get_int(job, "signal"))
			buf_addf(out, ": rank %lld was ended by signal %lld", (long long)rank,
				 (long long)get_int(job, "signal"));
		else
			buf_addf(out, ": rank %lld exited with %lld", (long long)rank,
				 (long long)get_int(job, "exit_code"));
	}
}

/* The page */

static void line(struct buf *out, const char *title)
{
	size_t from = out->size;

	buf_adds(out, title);
	while (out->size - from < 14)
		buf_addc(out, ' ');
}

static void text_line(struct buf *out, const char *title, const char *text)
{
	if (!text[0])
		return;
	line(out, title);
	say_sentence(out, text);
	buf_addc(out, '\n');
}

static void duration_line(struct buf *out, const char *title, int64_t ms)
{
	if (!ms)
		return;
	line(out, title);
	say_duration(out, ms);
	buf_addc(out, '\n');
}

/* Facts keep the first 63 bytes of a reason; the record of the end has all of it. */
enum { REASON_KEPT_MIN = 60 };

const char *job_whole_reason(struct client *client, struct arena *arena, const json_t *job)
{
	const char *kept = get_text(job, "reason"), *whole = kept;
	json_t *answer = NULL, *event;
	struct err err;
	size_t index;

	if (strlen(kept) < REASON_KEPT_MIN || !state_is_final(get_text(job, "state")))
		return kept;
	if (client_get(client,
		       client_path(arena, "/api/v1/jobs/%u/history?limit=500",
				   (uint32_t)get_int(job, "id")),
		       &answer, &err) < 0)
		return kept;
	json_array_foreach(json_object_get(answer, "events"), index, event)
	{
		const char *text = get_text(json_object_get(event, "event"), "text"),
			   *cut = strstr(kept, ": ");

		/* The daemon's own sentence begins as what was kept; the engine's is its end. */
		if (strcmp(get_text(event, "kind"), "job-ended") == 0 &&
		    strncmp(text, kept, strlen(kept)) == 0 && strlen(text) > strlen(whole))
			whole = arena_strdup(arena, text);
		if (strcmp(get_text(event, "kind"), "task-exited") == 0 && cut &&
		    strncmp(text, cut + 2, strlen(cut + 2)) == 0)
			whole = arena_printf(arena, "%.*s%s", (int)(cut + 2 - kept), kept, text);
	}
	json_decref(answer);
	return whole;
}

/* How the first rank that failed came to its end; behind "rank 3 ". */
static const char *cause_words(const char *cause)
{
	static const char *const words[][2] = {
		{ "exit", "ended" },
		{ "signal", "was killed by a signal" },
		{ "stopped", "was stopped" },
		{ "memory", "was killed because it used more memory than it may" },
		{ "start", "could not be started" },
		{ "lost", "was lost with its machine" },
		{ "log-limit", "printed more than it may" },
		{ "no-space", "could not be started: the disk is full" },
		{ "machine", "could not be started: the machine lacked something" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i][0], cause) == 0)
			return words[i][1];
	return cause;
}

static void add_head(const struct output *output, const json_t *job, const char *whole_reason,
		     struct buf *out)
{
	buf_addf(out, "job %lld", (long long)get_int(job, "id"));
	if (get_int(job, "array_count") > 1)
		buf_addf(out, ", %lld[%lld]", (long long)get_int(job, "array_first"),
			 (long long)(get_int(job, "id") - get_int(job, "array_first")));
	buf_adds(out, "  ");
	say_text(out, get_text(job, "name"));
	buf_adds(out, "\n");
	line(out, "state");
	output_state(output, get_text(job, "state"), out);
	if (get_int(job, "state_ms")) {
		buf_adds(out, " since ");
		say_time(out, get_int(job, "state_ms"));
	}
	if (job_hold_is_late(job))
		buf_adds(out,
			 "; held: it runs on, and does not start again when it has been stopped");
	if (get_bool(job, "cancel_asked") && !state_is_final(get_text(job, "state")))
		buf_adds(out, ", is being cancelled");
	buf_addc(out, '\n');
	if (strcmp(whole_reason, get_text(job, "state")) != 0)
		text_line(out, "reason", whole_reason);
	if (get_text(job, "cause")[0] && strcmp(get_text(job, "state"), "failed") == 0) {
		line(out, "end");
		if (get_int(job, "failed_rank") >= 0)
			buf_addf(out, "rank %lld ", (long long)get_int(job, "failed_rank"));
		say_text(out, cause_words(get_text(job, "cause")));
		if (get_int(job, "signal"))
			buf_addf(out, ", signal %lld", (long long)get_int(job, "signal"));
		else if (strcmp(get_text(job, "cause"), "exit") == 0)
			buf_addf(out, " with exit code %lld", (long long)get_int(job, "exit_code"));
		buf_addc(out, '\n');
	}
}

static void add_owner(const json_t *job, struct buf *out)
{
	line(out, "user");
	say_text(out, get_text(job, "user"));
	if (get_text(job, "team")[0]) {
		buf_adds(out, ", team ");
		say_text(out, get_text(job, "team"));
	}
	if (get_text(job, "project")[0]) {
		buf_adds(out, ", project ");
		say_text(out, get_text(job, "project"));
	}
	buf_addc(out, '\n');
	line(out, "queue");
	say_text(out, get_text(job, "queue"));
	buf_addf(out, ", %s, %s, priority %lld\n", get_text(job, "tier"), get_text(job, "kind"),
		 (long long)get_int(job, "priority"));
}

/* What its nodes must be: one line, when it asks for anything. */
static void add_constraints(const json_t *job, struct buf *out)
{
	static const struct {
		const char *name, *before;
	} texts[] = {
		{ "min_driver", "driver " },
		{ "min_cuda", "CUDA " },
		{ "regions", "" },
		{ "selector", "" },
		{ "tolerates", "tolerates " },
		{ "spread", "tasks apart by " },
		{ "data", "data " },
		{ "align", "aligned by " },
		{ "window", "only " },
		{ "labels", "labels " },
		{ "apart_from", "apart from " },
	};
	const long long tenths = (long long)get_int(job, "min_capability_tenths");
	const char *between = "";

	if (tenths) {
		line(out, "nodes");
		buf_addf(out, "compute capability %lld.%lld", tenths / 10, tenths % 10);
		between = ", ";
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!get_text(job, texts[i].name)[0])
			continue;
		if (!*between)
			line(out, "nodes");
		buf_adds(out, between);
		buf_adds(out, texts[i].before);
		say_text(out, get_text(job, texts[i].name));
		between = ", ";
	}
	if (*between)
		buf_addc(out, '\n');
}

/* Unlike tasks: a line for each role. */
static void add_roles(const json_t *job, struct buf *out)
{
	const json_t *roles = json_object_get(job, "roles"), *role;
	char text[DURATION_TEXT_MAX];
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)roles, index, role)
	{
		int64_t least = get_int(role, "tasks_min"), most = get_int(role, "tasks_max"),
			gpus = get_int(role, "gpus_per_task");

		line(out, "role");
		say_text(out, get_text(role, "name"));
		buf_addf(out, ": %lld", (long long)least);
		if (least != most)
			buf_addf(out, "..%lld", (long long)most);
		buf_addf(out, " task%s of %lld GPU%s", most == 1 ? "" : "s", (long long)gpus,
			 gpus == 1 ? "" : "s");
		if (get_int(role, "cpu_milli"))
			buf_addf(out, ", %.6g CPUs", (double)get_int(role, "cpu_milli") / 1000);
		if (get_int(role, "memory_mib"))
			buf_addf(out, ", %s memory",
				 format_size_mib(get_int(role, "memory_mib"), text));
		if (get_int(role, "tasks"))
			buf_addf(out, "; %lld now", (long long)get_int(role, "tasks"));
		if (json_is_true(json_object_get(role, "ends_job")))
			buf_adds(out, "; its end is that of the job");
		buf_addc(out, '\n');
	}
}

/* Who keeps a task within its part: of the newest attempt, for it depends on the machine. A slice is a device of its own. */
static const char *part_says(const json_t *job)
{
	const char *part = get_text(job, "gpu_part");
	const json_t *attempts = json_object_get(job, "attempts");
	size_t count = json_array_size(attempts);
	const json_t *tasks =
		count ? json_object_get(json_array_get(attempts, count - 1), "tasks") : NULL;
	const json_t *task = json_array_get(tasks, 0);
	uint32_t slice;

	if (!*part)
		return "";
	if (!task || slice_wish_parse(part, &slice))
		return " of a";
	return get_bool(task, "gpu_memory_enforced")  ? " (memory enforced) of a"
	       : get_bool(task, "gpu_memory_watched") ? " (memory watched) of a"
						      : " (not enforced) of a";
}

static void add_wish(const json_t *job, struct buf *out)
{
	const json_t *models = json_object_get(job, "models"), *model;
	char text[DURATION_TEXT_MAX];
	size_t index;

	if (json_array_size(json_object_get(job, "roles"))) {
		add_roles(job, out);
		add_constraints(job, out);
		return;
	}
	line(out, "wants");
	buf_addi(out, get_int(job, "tasks_min"));
	if (get_int(job, "tasks_min") != get_int(job, "tasks_max"))
		buf_addf(out, "..%lld", (long long)get_int(job, "tasks_max"));
	buf_addf(out, " task%s of ", get_int(job, "tasks_max") == 1 ? "" : "s");
	job_row_gpus_say(job, 1, out);
	buf_addf(out, "%s GPU%s", part_says(job), get_int(job, "gpus_per_task") == 1 ? "" : "s");
	json_array_foreach((json_t *)(uintptr_t)models, index, model)
	{
		buf_adds(out, index ? " or " : " ");
		say_text(out, json_string_value(model));
	}
	if (get_int(job, "gpu_memory_mib"))
		buf_addf(out, " with %s", format_size_mib(get_int(job, "gpu_memory_mib"), text));
	if (get_int(job, "cpu_milli"))
		buf_addf(out, ", %.6g CPU%s", (double)get_int(job, "cpu_milli") / 1000,
			 get_int(job, "cpu_milli") == 1000 ? "" : "s");
	if (get_int(job, "memory_mib"))
		buf_addf(out, ", %s memory", format_size_mib(get_int(job, "memory_mib"), text));
	buf_addc(out, '\n');
	add_constraints(job, out);
}

/* What is expected of the place it has; and what it accepts. */
static void add_speed(const json_t *job, struct buf *out)
{
	int64_t mbps = get_int(job, "bandwidth_mbps"),
		more = get_int(job, "slowdown_permille") - 1000,
		most = get_int(job, "max_slowdown_permille");

	if (more < 0 && !most)
		return;
	line(out, "network");
	if (more >= 0)
		buf_addf(
			out,
			"%lld.%lld GB/s expected; a step takes %lld.%lld %% longer than on the best place",
			(long long)(mbps / 1000), (long long)(mbps % 1000 / 100),
			(long long)(more / 10), (long long)(more % 10));
	if (most)
		buf_addf(out, "%saccepts %lld.%lld %%", more >= 0 ? "; " : "",
			 (long long)(most / 10), (long long)(most % 10));
	buf_addc(out, '\n');
}

/* How wide it is now, where that may be another number than it was started with. */
static void add_width(const json_t *job, struct buf *out)
{
	const json_t *tasks = json_object_get(job_newest_attempt(job), "tasks"), *task;
	int64_t now = get_int(job, "tasks"), leaving = 0;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)tasks, index, task) leaving +=
		strcmp(get_text(task, "state"), "leaving") == 0;
	if (!now || (now == (int64_t)json_array_size(tasks) && !leaving &&
		     get_int(job, "tasks_min") == get_int(job, "tasks_max")))
		return;
	line(out, "has");
	buf_addf(out, "%lld task%s now", (long long)now, now == 1 ? "" : "s");
	if (leaving)
		buf_addf(out, ", of which %lld leave%s to make room", (long long)leaving,
			 leaving == 1 ? "s" : "");
	buf_addc(out, '\n');
}

static bool list_has(const json_t *list, const json_t *number)
{
	const json_t *item;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)list, index,
			   item) if (json_equal((json_t *)(uintptr_t)item,
						(json_t *)(uintptr_t)number)) return true;
	return false;
}

/* With the values of a sweep, which only its owner may see. */
static void add_array(struct invocation *in, const json_t *job, const json_t *spec, struct buf *out)
{
	const json_t *depends = json_object_get(job, "depends_on"), *other;
	const int64_t number = get_int(job, "id") - get_int(job, "array_first");
	const char *const *values = array_values(spec, (uint32_t)number, in->arena);
	size_t index;

	for (size_t i = 0; values[i]; i++)
		text_line(out, i ? "" : "sweep", values[i]);
	if (get_int(job, "array_count") > 1) {
		line(out, "array");
		buf_addf(
			out, "element %lld of %lld, jobs %lld to %lld", (long long)number,
			(long long)get_int(job, "array_count"),
			(long long)get_int(job, "array_first"),
			(long long)(get_int(job, "array_first") + get_int(job, "array_count") - 1));
		if (get_int(job, "array_limit"))
			buf_addf(out, ", at most %lld at once",
				 (long long)get_int(job, "array_limit"));
		buf_addc(out, '\n');
	}
	if (json_array_size(depends)) {
		line(out, "after");
		json_array_foreach((json_t *)(uintptr_t)depends, index, other) buf_addf(
			out, "%s%s %lld", index ? ", " : "",
			list_has(json_object_get(job, "depends_on_arrays"), other) ? "all of array"
										   : "job",
			(long long)json_integer_value(other));
		buf_addc(out, '\n');
	}
}

/* What those ranks have used that still hold their places; the job's own figure grows when they give them back. */
static int64_t running_gpu_ms(const json_t *job)
{
	const json_t *attempt = job_newest_attempt(job), *task;
	int64_t now_ms = clock_wall_ms(), ms = 0;
	size_t index;

	if (get_int(attempt, "ended_ms"))
		return 0;
	json_array_foreach(json_object_get(attempt, "tasks"), index, task)
	{
		int64_t from_ms = get_int(task, "from_ms");
		const json_t *part = json_object_get(task, "gpu_share");
		size_t whole = json_array_size(json_object_get(task, "gpus"));

		/* in thousandths of GPUs, as parts of them are said */
		if (from_ms && from_ms < now_ms)
			ms += (now_ms - from_ms) *
			      (part ? (int64_t)(json_number_value(part) * 1000 + 0.5)
				    : (int64_t)whole * 1000) /
			      1000;
	}
	return ms;
}

/* When it is likely to start, where a plan of the queue is at hand. */
static void add_start(const json_t *estimate, struct buf *out)
{
	if (!get_int(estimate, "start_ms"))
		return;
	line(out, "likely start");
	say_time(out, get_int(estimate, "start_ms"));
	if (get_int(estimate, "start_by_ms")) {
		buf_adds(out, ", in 9 of 10 cases by ");
		say_time(out, get_int(estimate, "start_by_ms"));
	}
	buf_addc(out, '\n');
}

static void add_use(const json_t *job, struct buf *out)
{
	buf_addc(out, '\n');
	line(out, "submitted");
	say_time(out, get_int(job, "submitted_ms"));
	buf_addc(out, '\n');
	duration_line(out, "waited", get_int(job, "waited_ms"));
	add_start(json_object_get(job, "estimate"), out);
	if (get_int(job, "checkpoint_every_ms"))
		duration_line(out, "saves every", get_int(job, "checkpoint_every_ms"));
	duration_line(out, "ran", get_int(job, "ran_ms"));
	duration_line(out, "limit", get_int(job, "limit_ms"));
	duration_line(out, "estimate", get_int(job, "estimate_ms"));
	if (get_int(job, "deadline_ms")) {
		line(out, "deadline");
		say_time(out, get_int(job, "deadline_ms"));
		buf_addc(out, '\n');
	}
	if (*get_text(job, "capacity"))
		buf_addf(out, "%-14s%s%s%s\n", "capacity", get_text(job, "capacity"),
			 strcmp(get_text(job, "capacity"), get_text(job, "capacity_now")) != 0
				 ? ", for now "
				 : "",
			 strcmp(get_text(job, "capacity"), get_text(job, "capacity_now")) == 0 ? ""
			 : *get_text(job, "capacity_now") ? get_text(job, "capacity_now")
							  : "on-demand");
	line(out, "attempts");
	buf_addf(out, "%lld", (long long)get_int(job, "attempt_count"));
	if (get_int(job, "retries_left"))
		buf_addf(out, ", %lld retr%s left", (long long)get_int(job, "retries_left"),
			 get_int(job, "retries_left") == 1 ? "y" : "ies");
	buf_addc(out, '\n');
	line(out, "used");
	buf_addf(out, "%.1f GPU-seconds%s, %.1f of them lost\n",
		 (double)(get_int(job, "used_gpu_ms") + running_gpu_ms(job)) / 1000,
		 running_gpu_ms(job) ? " so far" : "", (double)get_int(job, "lost_gpu_ms") / 1000);
}

static void add_checkpoints(const json_t *job, struct buf *out)
{
	const json_t *list = json_object_get(job, "checkpoints"), *checkpoint;
	size_t index;

	if (!json_array_size(list))
		return;
	buf_addf(out, "\ncheckpoints (%lld made)\n", (long long)get_int(job, "checkpoints_made"));
	json_array_foreach((json_t *)(uintptr_t)list, index, checkpoint)
	{
		buf_addf(out, "  %lld  step %lld  ", (long long)get_int(checkpoint, "number"),
			 (long long)get_int(checkpoint, "step"));
		say_time(out, get_int(checkpoint, "at_ms"));
		if (get_bool(checkpoint, "void")) {
			buf_adds(out, "  not used: ");
			say_text(out, get_text(checkpoint, "why")[0] ? get_text(checkpoint, "why")
								     : "it is torn or missing");
		}
		if (get_text(checkpoint, "path")[0]) {
			buf_adds(out, "  ");
			say_text(out, get_text(checkpoint, "path"));
		}
		buf_addc(out, '\n');
	}
}

static void cell_rank_gpus(const json_t *row, struct buf *out)
{
	const json_t *gpu;
	size_t index;

	json_array_foreach(json_object_get(row, "gpus"), index, gpu)
		buf_addf(out, "%s%lld", index ? "," : "", (long long)json_integer_value(gpu));
	if (!json_object_get(row, "gpu_share"))
		return;
	buf_adds(out, ": ");
	cell_number(json_object_get(row, "gpu_share"), out);
}

static void cell_gpu_memory(const json_t *row, struct buf *out)
{
	char text[DURATION_TEXT_MAX];

	if (!json_object_get(row, "gpu_share"))
		return;
	if (get_int(row, "gpu_memory_mib"))
		buf_addf(out, "%s, ", format_size_mib(get_int(row, "gpu_memory_mib"), text));
	buf_adds(out, get_bool(row, "gpu_memory_enforced") ? "enforced" : "not enforced");
}

static void cell_step(const json_t *row, struct buf *out)
{
	if (json_object_get(row, "step") && get_int(row, "step") >= 0)
		buf_addi(out, get_int(row, "step"));
}

static void cell_end(const json_t *row, struct buf *out)
{
	if (!get_text(row, "cause")[0])
		return;
	buf_adds(out, get_text(row, "cause"));
	if (get_int(row, "signal"))
		buf_addf(out, ":signal-%lld", (long long)get_int(row, "signal"));
	else if (strcmp(get_text(row, "cause"), "exit") == 0)
		buf_addf(out, ":%lld", (long long)get_int(row, "code"));
}

static const struct column rank_columns[] = {
	{ "RANK", "rank", CELL_INT },
	{ "NODE", "node", CELL_TEXT },
	{ "GPUS", .cell = cell_rank_gpus },
	{ "GPU-MEMORY", .cell = cell_gpu_memory, .wide = true },
	{ "SIMULATED", "simulated", CELL_YES },
	{ "STATE", "state", CELL_TEXT },
	{ "STEP", .cell = cell_step },
	{ "PEAK-MEMORY", "peak_memory_mib", CELL_MEMORY, true },
	{ "END", .cell = cell_end },
	{ 0 },
};

/* Who else uses GPUs of it: of each task the first. */
static void add_taken(const json_t *attempt, struct buf *out)
{
	const json_t *task;
	size_t index;

	json_array_foreach(json_object_get(attempt, "tasks"), index, task)
	{
		const char *by = get_text(task, "gpu_taken_by");

		if (!*by)
			continue;
		line(out, "in use too");
		buf_addf(out, "of rank %lld: %s\n", (long long)get_int(task, "rank"), by);
	}
}

static void add_attempt(const struct output *output, const json_t *job, struct buf *out)
{
	const json_t *attempt = job_newest_attempt(job);
	const int64_t count = get_int(job, "attempt_count");

	if (!attempt || !attempt_number(attempt))
		return;
	buf_addf(out, "\nattempt %lld", (long long)attempt_number(attempt));
	if (count > 1)
		buf_addf(out, " of %lld", (long long)count);
	buf_addf(out, " is %s", get_text(attempt, "state"));
	if (strcmp(get_text(attempt, "why"), "none") != 0 && get_text(attempt, "why")[0])
		buf_addf(out, " (%s)", get_text(attempt, "why"));
	if (get_int(attempt, "resumed_from"))
		buf_addf(out, ", resumed from checkpoint %lld",
			 (long long)get_int(attempt, "resumed_from"));
	if (get_int(attempt, "for_job"))
		buf_addf(out, ", makes room for job %lld", (long long)get_int(attempt, "for_job"));
	if (get_bool(attempt, "unreachable"))
		buf_adds(out, ", unreachable");
	buf_addc(out, '\n');
	if (get_int(attempt, "released_ms")) {
		line(out, "started");
		say_time(out, get_int(attempt, "released_ms"));
		buf_addc(out, '\n');
	}
	if (strcmp(get_text(attempt, "state"), "active") == 0 && get_int(attempt, "warned_ms")) {
		line(out, "saves until");
		say_time(out, get_int(attempt, "deadline_ms"));
		buf_addc(out, '\n');
	}
	if (get_int(attempt, "ended_ms")) {
		line(out, "ended");
		say_time(out, get_int(attempt, "ended_ms"));
		buf_addc(out, '\n');
	}
	add_taken(attempt, out);
	if (json_array_size(json_object_get(attempt, "tasks")))
		output_table(output, rank_columns, json_object_get(attempt, "tasks"), out);
}

/* Only its owner may see what it was made from, and not every daemon tells. */
static void add_git(const json_t *spec, struct buf *out)
{
	const json_t *git = json_object_get(spec, "git");

	if (!git)
		return;
	line(out, "git");
	job_git_say(git, out);
	buf_addc(out, '\n');
}

void job_asks_say(const json_t *job, struct buf *out)
{
	add_owner(job, out);
	add_wish(job, out);
}

static int show_job(struct invocation *in, struct client *client, const struct output *output,
		    struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	json_t *job = NULL, *spec = NULL;
	struct err unseen;
	uint32_t id;
	int rc = named_job(in, client, in->args[0], &id, err);

	if (rc >= 0)
		rc = get_estimated(client, client_path(in->arena, "/api/v1/jobs/%u", id), &job,
				   err);
	if (rc < 0)
		return rc;
	if (!array_numbers_find(in->args[0]) && job_is_array(job)) {
		rc = show_array(in, client, output, job, err);
	} else if (!output_value(output, job, "id")) {
		if (client_get(client, client_path(in->arena, "/api/v1/jobs/%u/spec", id), &spec,
			       &unseen) < 0)
			spec = NULL;
		add_head(output, job, job_whole_reason(client, in->arena, job), &out);
		prose_wrap(&out, output->width, 14);
		add_owner(job, &out);
		add_git(spec, &out);
		add_wish(job, &out);
		add_speed(job, &out);
		if (json_object_get(job, "transfer")) {
			line(&out, "data");
			say_transfer(json_object_get(job, "transfer"), &out);
			buf_adds(&out, " to bring its data sets to its place\n");
		}
		add_width(job, &out);
		add_array(in, job, spec, &out);
		add_use(job, &out);
		add_checkpoints(job, &out);
		add_attempt(output, job, &out);
		output_buf(&out);
		show_last_lines(client, in->arena, job);
		notice_simulated(output, get_bool(job, "simulated"));
	}
	json_decref(spec);
	json_decref(job);
	return rc < 0 ? rc : 0;
}

/* --history: all that happened */

/* The events of an array's jobs would be mixed. */
static int refuse_array(struct invocation *in, struct client *client, uint32_t id, struct err *err)
{
	json_t *job = NULL;
	int rc;

	if (array_numbers_find(in->args[0]))
		return 0;
	rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u", id), &job, err);
	if (rc >= 0 && job_is_array(job))
		rc = err_set(
			err, ERR_INVALID,
			"%u is an array of %lld jobs, and --history is of one job; name it: %u[0]",
			id, (long long)get_int(job, "array_count"), id);
	json_decref(job);
	return rc;
}

static int show_history(struct invocation *in, struct client *client, const struct output *output,
			struct err *err)
{
	json_t *all = json_array(), *answer = NULL, *event;
	AUTO_BUF out = BUF_INIT;
	int64_t after = 0;
	size_t index;
	uint32_t id;
	int rc = named_job(in, client, in->args[0], &id, err);

	if (rc >= 0)
		rc = refuse_array(in, client, id, err);
	while (rc >= 0) {
		rc = client_get(client,
				arena_printf(in->arena,
					     "/api/v1/jobs/%u/history?limit=500&after=%lld", id,
					     (long long)after),
				&answer, err);
		if (rc < 0)
			break;
		events_take(all, json_object_get(answer, "events"), arg_has(in, "all"),
			    output->form == OUTPUT_JSON || output->form == OUTPUT_YAML);
		after = get_int(answer, "next");
		json_decref(answer);
		if (!after)
			break;
	}
	if (rc >= 0 && !output_value(output, all, "seq")) {
		json_array_foreach(all, index, event) event_line(event, &out);
		prose_wrap(&out, output->width, 9);
		output_buf(&out);
	}
	json_decref(all);
	return rc < 0 ? rc : 0;
}

static int show_spec(struct invocation *in, struct client *client, const struct output *output,
		     struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	json_t *spec = NULL;
	uint32_t id;
	int rc = named_job(in, client, in->args[0], &id, err);

	if (rc >= 0)
		rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u/spec", id), &spec,
				err);
	if (rc < 0)
		return rc;
	if (!output_value(output, spec, "workdir")) {
		AUTO_BUF yaml = BUF_INIT;

		output_yaml(spec, &yaml);
		for (const char *at = yaml.data; *at;) { /* line by line, so that line ends stay */
			size_t length = strcspn(at, "\n");

			text_for_terminal(&out, at, length);
			buf_addc(&out, '\n');
			at += length + (at[length] == '\n');
		}
		output_buf(&out);
	}
	json_decref(spec);
	return 0;
}

static int run_job(struct invocation *in, struct err *err)
{
	if (arg_has(in, "history"))
		return watch(in, show_history, err);
	return watch(in, arg_has(in, "spec") ? show_spec : show_job, err);
}

static const struct flag flags[] = {
	{ "history", 0, NULL, "all that happened to it, with times", false },
	{ "all", 0, NULL,
	  "with --history: also ranks that are ready, progress, and places planned for later",
	  false },
	{ "spec", 0, NULL, "what it runs: command, folder, names of its variables; for its owner",
	  false },
	{ 0 },
};

const struct command command_job = {
	.name = "job",
	.arguments = "ID",
	.summary = "show one job, live or past",
	.about =
		"The number of an array shows all of its jobs, with the values of a sweep for those who may see what it runs; one of them is "
		"written 40[3], in quotes where the shell would take the brackets.",
	.flags = flags,
	.examples = "fairlead job 12\n"
		    "fairlead job 40\tall of array 40\n"
		    "fairlead job '40[3]'\tone of them\n"
		    "fairlead job 12 --history\tevery change, with time, actor and reason\n"
		    "fairlead job 12 -o json | jq .checkpoints",
	.route = "GET /api/v1/jobs/{id}",
	.shares = SHARES_OUTPUT | SHARES_WATCH | SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_JOB,
	.run = run_job,
};
