/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/pods.h"
#include "cli/output/problem.h"
#include "core/model/limits.h"

/* "12" or "12/3", "40_3" or "40_3/1" */
/* Which output is asked for. */
struct target {
	uint32_t job, attempt; /* attempt 0 = the newest, or the one of --attempt */
	int64_t rank; /* -1 = none is named */
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
	return named_job(in, client, text, &ret->job, err);
}

static const char *log_path(const struct invocation *in, const struct target *of, int64_t rank)
{
	AUTO_BUF path = BUF_INIT;

	buf_addf(&path, "/api/v1/jobs/%u/logs/%lld", of->job, (long long)rank);
	query_add(&path, "stream", arg_has(in, "stderr") ? "stderr" : "stdout");
	if (arg_has(in, "attempt"))
		query_add(&path, "attempt", arg_flag(in, "attempt"));
	else if (of->attempt)
		query_add(&path, "attempt", arena_printf(in->arena, "%u", of->attempt));
	if (arg_has(in, "tail"))
		query_add(&path, "offset", arena_printf(in->arena, "-%s", arg_flag(in, "tail")));
	if (arg_has(in, "follow"))
		query_add(&path, "follow", "1");
	return arena_strdup(in->arena, path.data);
}

static bool take(void *context, const char *data, size_t size)
{
	struct log_writer *writer = context;

	writer->any |= size > 0;
	log_write(writer, data, size);
	return true;
}

/* A traceback is on stderr, and who looks at an empty stdout may not think of it. In pods both are one. */
static void say_nothing_came(const struct invocation *in, struct client *client, uint32_t job,
			     int64_t rank)
{
	bool other = arg_has(in, "stderr"), pods;
	json_t *status = NULL;
	struct err err = { 0 };

	pods = client_get(client, "/api/v1/status", &status, &err) >= 0 &&
	       json_object_get(status, "cluster");
	json_decref(status);
	if (pods && other)
		notice("pods print both streams as one: leave out --stderr");
	else if (pods)
		notice("rank %lld of job %u has printed nothing", (long long)rank, job);
	if (pods)
		return;
	notice("rank %lld of job %u has printed nothing to %s; `fairlead logs %u/%lld%s` shows its %s",
	       (long long)rank, job, other ? "stderr" : "stdout", job, (long long)rank,
	       other ? "" : " --stderr", other ? "stdout" : "stderr");
}

/* All logs side by side until each has ended or Ctrl-C came. */
static int show_ranks(struct invocation *in, struct client *client, const struct target *of,
		      int64_t first, int64_t end, struct err *err)
{
	size_t count = (size_t)(end - first), open = 0;
	struct stream *streams = arena_new_array(in->arena, struct stream, count);
	struct log_writer *writers = arena_new_array(in->arena, struct log_writer, count);
	int rc = 0;

	for (size_t i = 0; i < count && rc >= 0; i++) {
		writers[i] = (struct log_writer){
			.fd = STDOUT_FILENO, .raw = arg_has(in, "raw") || isatty(STDOUT_FILENO) != 1
		};
		if (count > 1)
			snprintf(writers[i].prefix, sizeof(writers[i].prefix), "[%lld] ",
				 (long long)first + (long long)i);
		streams[i] = (struct stream){ .path = log_path(in, of, first + (int64_t)i),
					      .context = &writers[i],
					      .take = take };
		rc = client_stream_begin(client, &streams[i], err);
		for (open = 0;
		     rc >= 0 && !arg_has(in, "follow") && !streams[i].over && !interrupted();)
			client_streams_wait(
				client, 1000); /* one after the other, so that ranks do not mix */
	}
	while (rc >= 0 && !interrupted()) {
		open = 0;
		for (size_t i = 0; i < count; i++)
			open += !streams[i].over;
		if (!open)
			break;
		client_streams_wait(client, 1000);
	}
	for (size_t i = 0; i < count; i++) {
		if (rc >= 0 && streams[i].over && streams[i].err.code != ERR_NONE) {
			*err = streams[i].err;
			rc = -(int)err->code;
		}
		client_stream_end(client, &streams[i]);
		if (rc >= 0 && count == 1 && !writers[i].any && !interrupted())
			say_nothing_came(in, client, of->job, first);
		log_writer_end(&writers[i]);
	}
	return rc;
}

static int run_logs(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *job = NULL;
	int64_t tasks, unused;
	struct target of;
	int rc = arg_number(in, "attempt", 1, UINT32_MAX, 0, &unused, err);

	if (rc >= 0)
		rc = arg_number(in, "tail", 1, INT64_MAX, 0, &unused, err);
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = parse_target(in, client, &of, err);
	if (rc < 0)
		return rc;
	interrupt_watch();
	if (of.rank >= 0)
		return show_ranks(in, client, &of, of.rank, of.rank + 1, err);
	rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u", of.job), &job, err);
	if (rc < 0)
		return rc;
	tasks = (int64_t)json_array_size(json_object_get(job_newest_attempt(job), "tasks"));
	if (!tasks)
		tasks = get_int(job, "tasks_max");
	json_decref(job);
	if (tasks > 1 && !arg_has(in, "all-ranks"))
		notice("this is rank 0 of %lld; `fairlead logs %u/RANK` shows another, --all-ranks all",
		       (long long)tasks, of.job);
	return show_ranks(in, client, &of, 0, arg_has(in, "all-ranks") && tasks > 0 ? tasks : 1,
			  err);
}

static const struct flag flags[] = {
	{ "follow", 'f', NULL, "go on until the rank has ended; Ctrl-C ends only the looking",
	  false },
	{ "stderr", 0, NULL, "what it wrote to stderr; default stdout", false },
	{ "all-ranks", 0, NULL, "every rank's, with its number in front of each line", false },
	{ "attempt", 0, "N", "of this attempt; default the newest", false },
	{ "tail", 0, "BYTES", "only the last so many bytes", false },
	{ "raw", 0, NULL,
	  "on a terminal too, pass everything the job wrote, escape sequences included", false },
	{ 0 },
};

const struct command command_logs = {
	.name = "logs",
	.arguments = "ID[/RANK]|NAMESPACE/POD",
	.summary = "show what a job printed, live or afterwards",
	.about =
		"Without a rank it is rank 0. On a terminal colours pass, and other control sequences are shown instead of obeyed. The logs of "
		"other people's jobs are for their team's lead and for administrators. On Kubernetes the pod's node is asked: both streams as one, and without "
		"--follow at most 16 MiB, with --tail of the end; a pod may be named as NAMESPACE/POD there.",
	.flags = flags,
	.examples = "fairlead logs -f 12\tfollow rank 0\n"
		    "fairlead logs 12/3 --stderr\twhat rank 3 complained of\n"
		    "fairlead logs 12 --tail 2000\tthe end\n"
		    "fairlead logs team-a/train-0-x7k2p\ta pod, on Kubernetes",
	.route = "GET /api/v1/jobs/{id}/logs/{rank}",
	.shares = SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_JOB,
	.run = run_logs,
};
