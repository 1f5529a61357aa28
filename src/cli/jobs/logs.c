/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/array.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/pods.h"
#include "cli/output/problem.h"
#include "core/model/limits.h"

/* Which output is asked for: "12" or "12/3", "40[3]" or "40[3]/1", and of all jobs of array 40 "40" or "40/1". */
struct target {
	uint32_t job, attempt; /* attempt 0 = the newest, or the one of --attempt */
	int64_t rank; /* -1 = none is named */
	bool is_number; /* a number alone: one job, or an array */
};

/* As kubectl shows it. */
static int parse_pod(const struct invocation *in, struct client *client, struct target *ret,
		     struct err *err)
{
	json_t *pod = NULL;
	int rc = pod_find(in, client, in->args[0], &pod, err);

	if (rc >= 0 && !get_int(pod, "job"))
		rc = err_set(err, ERR_NOT_FOUND, "pod %.150s is not placed: %.300s", in->args[0],
			     get_text(pod, "reason"));
	*ret = (struct target){ .job = (uint32_t)get_int(pod, "job"),
				.attempt = (uint32_t)get_int(pod, "attempt"),
				.rank = get_int(pod, "rank") };
	json_decref(pod);
	return rc;
}

static int parse_target(struct invocation *in, struct client *client, struct target *ret,
			struct err *err)
{
	static const char digits[] = "0123456789";
	const char *text = in->args[0], *slash = strchr(text, '/');

	*ret = (struct target){ .rank = -1 };
	if (slash && strspn(text, digits) < (size_t)(slash - text) &&
	    strspn(slash + 1, digits) != strlen(slash + 1))
		return parse_pod(in, client, ret, err);
	if (slash && parse_int(slash + 1, 0, TASKS_MAX - 1, &ret->rank, NULL) < 0)
		return err_set(
			err, ERR_INVALID,
			"\"%.60s\": behind the slash stands a rank, from 0, or in front of it a namespace and behind it a pod",
			text);
	if (slash)
		text = arena_strndup(in->arena, text, (size_t)(slash - text));
	ret->is_number = !array_numbers_find(text);
	return named_job(in, client, text, &ret->job, err);
}

enum streams { STREAMS_BOTH, STREAMS_STDOUT, STREAMS_STDERR };

/* What is asked for of one rank. */
struct source {
	uint32_t job, attempt; /* attempt as in struct target */
	int64_t rank;
	enum streams streams;
	struct stream stream;
	struct both_writer writer;
	bool begun;
};

static const char *source_path(const struct invocation *in, const struct source *of)
{
	AUTO_BUF path = BUF_INIT;

	buf_addf(&path, "/api/v1/jobs/%u/logs/%lld", of->job, (long long)of->rank);
	query_add(&path, "stream",
		  of->streams == STREAMS_STDERR ? "stderr"
		  : of->writer.plain            ? "stdout"
						: "both");
	if (!of->writer.plain)
		query_add(&path, "frames", "1");
	if (arg_has(in, "attempt"))
		query_add(&path, "number", arg_flag(in, "attempt"));
	else if (of->attempt)
		query_add(&path, "attempt", arena_printf(in->arena, "%u", of->attempt));
	if (arg_has(in, "tail"))
		query_add(&path, "lines", arg_flag(in, "tail"));
	if (arg_has(in, "tail-bytes"))
		query_add(&path, "offset",
			  arena_printf(in->arena, "-%s", arg_flag(in, "tail-bytes")));
	if (arg_has(in, "follow"))
		query_add(&path, "follow", "1");
	return arena_strdup(in->arena, path.data);
}

static bool take(void *context, const char *data, size_t size)
{
	both_write(context, data, size);
	return true;
}

/* Both streams, unless one is asked for. */
static enum streams streams_asked(const struct invocation *in)
{
	if (arg_has(in, "stdout") == arg_has(in, "stderr"))
		return STREAMS_BOTH;
	return arg_has(in, "stderr") ? STREAMS_STDERR : STREAMS_STDOUT;
}

/* In pods both streams are one. Asked once. */
static bool in_pods(struct client *client)
{
	static int known = -1;

	if (known < 0)
		known = pods_run_jobs(client);
	return known;
}

/*
 * What a job wrote to stderr goes there, unless nothing else is asked for. On a terminal, where both arrive at one place, lines of stderr are
 * marked.
 */
static void source_init(struct source *source, const struct invocation *in, struct client *client,
			const struct target *of, int64_t rank)
{
	*source = (struct source){
		.job = of->job, .attempt = of->attempt, .rank = rank, .streams = streams_asked(in)
	};
	source->writer.plain = source->streams != STREAMS_BOTH || in_pods(client);
	for (int i = 0; i < 2; i++) {
		struct log_writer *writer = &source->writer.writers[i];

		writer->fd = i ? STDERR_FILENO : STDOUT_FILENO;
		writer->raw = arg_has(in, "raw") || isatty(writer->fd) != 1;
	}
}

static void source_mark(struct source *source, const char *mark)
{
	for (int i = 0; i < 2; i++) {
		struct log_writer *writer = &source->writer.writers[i];

		snprintf(writer->prefix, sizeof(writer->prefix), "%s%s", mark,
			 i && isatty(writer->fd) == 1 ? "! " : "");
	}
}

static int source_begin(struct source *source, struct invocation *in, struct client *client,
			struct err *err)
{
	source->stream = (struct stream){ .path = source_path(in, source),
					  .context = &source->writer,
					  .take = take };
	source->begun = true;
	return client_stream_begin(client, &source->stream, err);
}

static int source_end(struct source *source, struct client *client, struct err *err)
{
	int rc = 0;

	if (source->begun && source->stream.over && source->stream.err.code != ERR_NONE) {
		*err = source->stream.err;
		rc = -(int)err->code;
	}
	if (source->begun)
		client_stream_end(client, &source->stream);
	source->begun = false;
	both_writer_end(&source->writer);
	return rc;
}

/* One after the other, so that ranks do not mix. */
static int source_read(struct source *source, struct invocation *in, struct client *client,
		       struct err *err)
{
	struct err unseen; /* after an error that is told */
	int rc = source_begin(source, in, client, err), end;

	while (rc >= 0 && !source->stream.over && !interrupted())
		client_streams_wait(client, 1000);
	end = source_end(source, client, rc < 0 ? &unseen : err);
	return rc < 0 ? rc : end;
}

/* Side by side until each has ended, one has failed, or Ctrl-C came. */
static int sources_follow(struct source *sources, size_t count, struct invocation *in,
			  struct client *client, struct err *err)
{
	struct err unseen; /* after an error that is told */
	size_t open = 1;
	bool failed = false;
	int rc = 0, end;

	for (size_t i = 0; i < count && rc >= 0; i++)
		rc = source_begin(&sources[i], in, client, err);
	while (rc >= 0 && open && !failed && !interrupted()) {
		open = 0;
		for (size_t i = 0; i < count; i++) {
			open += !sources[i].stream.over;
			failed |= sources[i].stream.over && sources[i].stream.err.code != ERR_NONE;
		}
		if (open && !failed)
			client_streams_wait(client, 1000);
	}
	for (size_t i = 0; i < count; i++) {
		end = source_end(&sources[i], client, rc < 0 ? &unseen : err);
		rc = rc < 0 ? rc : end;
	}
	return rc;
}

/* The sources of ranks from first to end of a job; in the arena. */
static struct source *sources_make(struct invocation *in, struct client *client,
				   const struct target *of, int64_t first, int64_t end)
{
	struct source *sources =
		arena_new_array(in->arena, struct source, (size_t)(end - first) + 1);

	for (int64_t rank = first; rank < end; rank++) {
		source_init(&sources[rank - first], in, client, of, rank);
		source_mark(&sources[rank - first], "");
	}
	return sources;
}

static void say_nothing_came(const struct invocation *in, struct client *client, uint32_t job,
			     int64_t rank)
{
	const enum streams streams = streams_asked(in);
	const bool pods = in_pods(client), err = streams == STREAMS_STDERR;

	if (pods && err)
		notice("pods print both streams as one: leave out --stderr");
	else if (pods || streams == STREAMS_BOTH)
		notice("rank %lld of job %u has printed nothing", (long long)rank, job);
	else
		notice("rank %lld of job %u has printed nothing to %s; `fairlead logs %u/%lld --%s` shows its %s",
		       (long long)rank, job, err ? "stderr" : "stdout", job, (long long)rank,
		       err ? "stdout" : "stderr", err ? "stdout" : "stderr");
}

static int show_ranks(struct invocation *in, struct client *client, const struct target *of,
		      int64_t first, int64_t end, struct err *err)
{
	const size_t count = (size_t)(end - first);
	struct source *sources = sources_make(in, client, of, first, end);
	bool any = false;
	int rc = 0;

	for (size_t i = 0; count > 1 && i < count; i++)
		source_mark(&sources[i],
			    arena_printf(in->arena, "[%lld] ", (long long)sources[i].rank));
	if (arg_has(in, "follow"))
		rc = sources_follow(sources, count, in, client, err);
	for (size_t i = 0; i < count && rc >= 0 && !interrupted(); i++) {
		if (!arg_has(in, "follow"))
			rc = source_read(&sources[i], in, client, err);
		any = any || sources[i].writer.any;
	}
	if (rc >= 0 && count == 1 && !any && !interrupted())
		say_nothing_came(in, client, of->job, first);
	return rc;
}

/* --- of an array -------------------------------------------------------------------------------------------------------- */

enum { FOLLOWED_MAX = 64 };

/* "[3] " in front of each line, or "[3/1] " where ranks are named. */
static void sources_mark(struct invocation *in, struct source *sources, size_t count,
			 uint32_t number, bool ranks)
{
	for (size_t i = 0; i < count; i++)
		source_mark(&sources[i], ranks ? arena_printf(in->arena, "[%u/%lld] ", number,
							      (long long)sources[i].rank)
					       : arena_printf(in->arena, "[%u] ", number));
}

/* What the jobs have printed until now, one after the other; those that have not started have nothing. */
static int array_read(struct invocation *in, struct client *client, const struct target *of,
		      const json_t *job, int64_t first, int64_t end, struct err *err)
{
	const uint32_t jobs = (uint32_t)get_int(job, "array_count");
	uint32_t started = 0;
	int rc = 0;

	for (uint32_t number = 0; number < jobs && !interrupted(); number++) {
		struct target one = { .job = of->job + number, .attempt = of->attempt };
		const size_t count = (size_t)(end - first);
		struct source *sources = sources_make(in, client, &one, first, end);

		sources_mark(in, sources, count, number, end - first > 1 || of->rank >= 0);
		for (size_t i = 0; i < count && rc >= 0; i++)
			rc = source_read(&sources[i], in, client, err);
		if (rc < 0 && rc != -(int)ERR_NOT_FOUND)
			return rc;
		started += rc >= 0;
		rc = 0;
	}
	if (!started && !interrupted())
		return err_set(err, ERR_NOT_FOUND,
			       "none of the %u jobs of array %u has started yet%s", jobs, of->job,
			       arg_has(in, "attempt") ? ", or has that attempt" : "");
	return 0;
}

/* Those that run now. */
static int array_follow(struct invocation *in, struct client *client, const struct target *of,
			int64_t first, int64_t end, struct err *err)
{
	const size_t count = (size_t)(end - first);
	struct source *all = arena_new_array(in->arena, struct source, FOLLOWED_MAX);
	json_t *rows = NULL, *row;
	size_t index, total = 0, left = 0;
	int rc = array_fetch(client, in->arena, of->job, true, &rows, err);

	if (rc < 0)
		return rc;
	json_array_foreach(rows, index, row)
	{
		struct target one = { .job = (uint32_t)get_int(row, "id") };
		struct source *sources;

		if (!get_int(row, "tasks"))
			continue;
		sources = sources_make(in, client, &one, first, end);
		if (total + count > FOLLOWED_MAX) {
			left++;
			continue;
		}
		sources_mark(in, sources, count, one.job - of->job,
			     end - first > 1 || of->rank >= 0);
		memcpy(all + total, sources, count * sizeof(*all));
		total += count;
	}
	json_decref(rows);
	if (!total)
		return err_set(
			err, ERR_NOT_FOUND,
			"no job of array %u runs now; without --follow `fairlead logs %u` shows what they printed",
			of->job, of->job);
	if (left)
		notice("%zu more jobs run; name one to follow it: '%u[0]'", left, of->job);
	return sources_follow(all, total, in, client, err);
}

/* --- the command -------------------------------------------------------------------------------------------------------- */

static int show_job_logs(struct invocation *in, struct client *client, const struct target *of,
			 const json_t *job, struct err *err)
{
	const bool array = of->is_number && job_is_array(job);
	int64_t tasks = (int64_t)json_array_size(json_object_get(job_newest_attempt(job), "tasks"));
	int64_t first = of->rank >= 0 ? of->rank : 0, end = first + 1;

	if (!tasks || array)
		tasks = get_int(job, "tasks_max");
	if (of->rank < 0 && arg_has(in, "all-ranks") && tasks > 0)
		end = tasks;
	if (array && arg_has(in, "follow"))
		return array_follow(in, client, of, first, end, err);
	if (array)
		return array_read(in, client, of, job, first, end, err);
	if (tasks > 1 && of->rank < 0 && end == 1)
		notice("this is rank 0 of %lld; `fairlead logs %u/RANK` shows another, --all-ranks all",
		       (long long)tasks, of->job);
	return show_ranks(in, client, of, first, end, err);
}

static int logs_check(const struct invocation *in, struct err *err)
{
	int64_t unused;
	int rc = arg_number(in, "attempt", 1, UINT32_MAX, 0, &unused, err);

	if (rc >= 0)
		rc = arg_number(in, "tail", 1, 1000000, 0, &unused, err);
	if (rc >= 0)
		rc = arg_number(in, "tail-bytes", 1, INT64_MAX, 0, &unused, err);
	if (rc >= 0 && arg_has(in, "tail") && arg_has(in, "tail-bytes"))
		rc = err_set(
			err, ERR_INVALID,
			"--tail and --tail-bytes contradict each other; leave one of them out");
	return rc;
}

static int run_logs(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *job = NULL;
	struct target of;
	int rc = logs_check(in, err);

	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = parse_target(in, client, &of, err);
	if (rc < 0)
		return rc;
	interrupt_watch();
	if (of.attempt) /* a pod */
		return show_ranks(in, client, &of, of.rank, of.rank + 1, err);
	rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u", of.job), &job, err);
	if (rc >= 0)
		rc = show_job_logs(in, client, &of, job, err);
	json_decref(job);
	return rc;
}

static const struct flag flags[] = {
	{ "follow", 'f', NULL, "go on until the rank has ended; Ctrl-C ends only the looking",
	  false },
	{ "stdout", 0, NULL, "only what it wrote to stdout", false },
	{ "stderr", 0, NULL, "only what it wrote to stderr, on stdout", false },
	{ "all-ranks", 0, NULL, "every rank's, with its number in front of each line", false },
	{ "attempt", 0, "N", "of the job's attempt N, counted from 1; default the newest", false },
	{ "tail", 0, "N", "only the last N lines of each rank", false },
	{ "tail-bytes", 0, "N", "only the last N bytes of each stream", false },
	{ "raw", 0, NULL,
	  "on a terminal too, pass everything the job wrote, escape sequences included", false },
	{ 0 },
};

const struct command command_logs = {
	.name = "logs",
	.arguments = "ID[/RANK]|NAMESPACE/POD",
	.summary = "show what a job printed, live or afterwards",
	.about =
		"Shows what rank 0 wrote to stdout, on stdout, and what it wrote to stderr, on stderr, in the order in which it was written. On a terminal "
		"lines of stderr begin with \"! \". The "
		"number of an array shows the output of all its jobs, with the number of each in front of its lines; --follow follows those that "
		"run now, 64 at most. On a terminal colours pass, and other control sequences are shown instead of obeyed. The logs of "
		"other people's jobs are for their team's lead and for administrators. On Kubernetes the pod's node is asked: both streams as one, and without "
		"--follow at most 16 MiB, with --tail of the end; a pod may be named as NAMESPACE/POD there.",
	.flags = flags,
	.examples = "fairlead logs -f 12\tfollow rank 0\n"
		    "fairlead logs 12/3 --stderr\twhat rank 3 complained of\n"
		    "fairlead logs 12 --tail 20\tthe last 20 lines\n"
		    "fairlead logs 40 --stderr\twhat the jobs of array 40 complained of\n"
		    "fairlead logs team-a/train-0-x7k2p\ta pod, on Kubernetes",
	.route = "GET /api/v1/jobs/{id}/logs/{rank}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_JOB,
	.run = run_logs,
};
