/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/submission/follow.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/moment.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"

enum { POLL_FIRST_MS = 20, POLL_MOST_MS = 1000, SAY_WAITING_MS = 1500 };

bool state_is_final(const char *state)
{
	static const char *const final[] = { "succeeded", "failed", "cancelled", "timed-out" };

	for (size_t i = 0; i < ARRAY_SIZE(final); i++)
		if (strcmp(state, final[i]) == 0)
			return true;
	return false;
}

int follow_exit_status(const json_t *job, bool own)
{
	int code = (int)get_int(job, "exit_code"), signal = (int)get_int(job, "signal");

	if (strcmp(get_text(job, "state"), "succeeded") == 0)
		return 0;
	if (own && strcmp(get_text(job, "state"), "failed") == 0) {
		if (signal > 0 && signal < 128)
			return 128 + signal;
		if (code > 0 && code < 256)
			return code;
	}
	return 1;
}

/* One rank of one attempt. */
struct log {
	struct stream stream;
	struct both_writer writer;
	size_t rank;
	int64_t attempt;
	bool open;
	bool cut; /* the daemon went away in the middle: it goes on when there is one again */
};

struct following {
	struct client *client;
	struct arena *arena;
	const struct follow_options *options;
	struct log logs[FOLLOW_RANKS_MAX];
	int pods; /* jobs run as pods; -1 = not asked yet */
	size_t log_count;
	int64_t shown_attempt; /* whose output is or was shown */
	char state[32], reason[1024]; /* as last said */
	int64_t since_ms; /* this state was first seen, monotonic */
	int wait_ms;
};

static bool take_log(void *context, const char *data, size_t size)
{
	struct log *log = context;

	both_write(&log->writer, data, size);
	return true;
}

/* From where it was left, at first from the beginning. */
static int begin_log(struct following *f, struct log *log, struct err *err)
{
	const char *path =
		arena_printf(f->arena, "/api/v1/jobs/%u/logs/%zu?attempt=%lld&offset=%lld&follow=1",
			     f->options->job, log->rank, (long long)log->attempt,
			     (long long)log->writer.next[0]);

	if (!log->writer.plain)
		path = arena_printf(f->arena, "%s&stream=both&frames=1&stderr_offset=%lld", path,
				    (long long)log->writer.next[1]);
	log->writer.head_size = 0;
	log->writer.left = 0;
	log->stream = (struct stream){ .path = path, .context = log, .take = take_log };
	if (client_stream_begin(f->client, &log->stream, err) < 0)
		return -(int)err->code;
	log->open = true;
	log->cut = false;
	return 0;
}

static int open_log(struct following *f, size_t rank, int64_t attempt, bool prefix, struct err *err)
{
	struct log *log = &f->logs[f->log_count];

	if (f->pods < 0)
		f->pods = pods_run_jobs(f->client);
	*log = (struct log){ .rank = rank, .attempt = attempt, .writer = { .plain = f->pods } };
	for (int i = 0; i < 2; i++) {
		struct log_writer *writer = &log->writer.writers[i];

		writer->fd = i ? STDERR_FILENO : STDOUT_FILENO;
		writer->raw = isatty(writer->fd) != 1;
		if (prefix)
			snprintf(writer->prefix, sizeof(writer->prefix), "[%zu] ", rank);
	}
	int rc = begin_log(f, log, err);
	f->log_count += rc == 0;
	return rc;
}

/* The daemon is gone: what was being read is read on when it is back. */
static void cut_logs(struct following *f)
{
	for (size_t i = 0; i < f->log_count; i++) {
		struct log *log = &f->logs[i];

		if (!log->open)
			continue;
		client_stream_end(f->client, &log->stream);
		log->open = false;
		log->cut = true;
	}
}

static int mend_logs(struct following *f, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < f->log_count && rc == 0; i++) {
		struct log *log = &f->logs[i];

		if (!log->cut)
			continue;
		client_stream_end(f->client, &log->stream);
		rc = begin_log(f, log, err);
	}
	return rc;
}

static void close_logs(struct following *f)
{
	for (size_t i = 0; i < f->log_count; i++) {
		client_stream_end(f->client, &f->logs[i].stream);
		both_writer_end(&f->logs[i].writer);
	}
	f->log_count = 0;
}

static int open_logs(struct following *f, const json_t *job, const json_t *attempt, struct err *err)
{
	size_t tasks = json_array_size(json_object_get(attempt, "tasks")), shown;
	AUTO_BUF places = BUF_INIT;
	int rc = 0;

	job_places(attempt, &places);
	if (places.size)
		notice("job %u starts on %s", f->options->job, places.data);

	if (!tasks)
		tasks = (size_t)get_int(job, "tasks_max");
	shown = tasks > FOLLOW_RANKS_MAX ? FOLLOW_RANKS_MAX : tasks;
	if (shown < tasks)
		notice("the output of ranks 0 to %zu of %zu follows; `fairlead logs -f %u/RANK` shows others",
		       shown - 1, tasks, f->options->job);
	for (size_t rank = 0; rank < shown && rc >= 0; rank++)
		rc = open_log(f, rank, attempt_id(attempt), tasks > 1, err);
	return rc;
}

/* What happened, once, on stderr. */
static void say_state(struct following *f, const json_t *job)
{
	const char *state = get_text(job, "state"), *reason = get_text(job, "reason");
	bool changed = strcmp(state, f->state) != 0,
	     waits = strcmp(state, "queued") == 0 || strcmp(state, "preempted") == 0 ||
		     strcmp(state, "held") == 0 || strcmp(state, "blocked") == 0;
	int64_t now = clock_mono_ns() / 1000000;

	if (changed) {
		snprintf(f->state, sizeof(f->state), "%s", state);
		f->since_ms = now;
		f->reason[0] = '\0';
		f->wait_ms = POLL_FIRST_MS;
	}
	if (changed && strcmp(state, "preempted") == 0)
		notice("job %u was stopped for others and waits at its old place", f->options->job);
	if (changed && strcmp(state, "checkpointing") == 0)
		notice("job %u has to make room and saves its work", f->options->job);
	if (changed && strcmp(state, "unreachable") == 0)
		notice("job %u is unreachable; it goes on where it is, if that machine still runs",
		       f->options->job);
	if (waits && reason[0] && now - f->since_ms > SAY_WAITING_MS &&
	    strncmp(reason, f->reason, sizeof(f->reason) - 1) != 0) {
		AUTO_BUF sentence = BUF_INIT;

		snprintf(f->reason, sizeof(f->reason), "%s", reason);
		moment_count_down(&sentence, reason, clock_wall_ms());
		notice("job %u waits: %s", f->options->job, buf_text(&sentence));
	}
}

static bool any_log_open(struct following *f)
{
	bool open = false;

	for (size_t i = 0; i < f->log_count; i++) {
		struct log *log = &f->logs[i];

		if (log->open && log->stream.over) {
			enum err_code code = log->stream.err.code;

			log->open = false;
			f->wait_ms = POLL_FIRST_MS;
			log->cut = code == ERR_UNREACHABLE || code == ERR_UNAVAILABLE;
			if (!log->cut && code != ERR_NONE && code != ERR_NOT_FOUND)
				notice("the output can't be followed: %s", log->stream.err.text);
		}
		open = open || log->open;
	}
	return open;
}

/* Shows output for up to the time of one poll. */
static void wait_for_more(struct following *f)
{
	int64_t until = clock_mono_ns() / 1000000 + f->wait_ms;
	int64_t left;

	while (!interrupted() && (left = until - clock_mono_ns() / 1000000) > 0) {
		bool open = any_log_open(f);

		if (f->log_count && open)
			client_streams_wait(f->client, (int)left);
		else
			interruptible_sleep((int)left);
		if (open && !any_log_open(f))
			break; /* the last one ended: there is news */
	}
	f->wait_ms = f->wait_ms * 3 / 2 < POLL_MOST_MS ? f->wait_ms * 3 / 2 : POLL_MOST_MS;
}

static bool any_log_left(struct following *f)
{
	bool left = any_log_open(f);

	for (size_t i = 0; i < f->log_count; i++)
		left = left || f->logs[i].cut;
	return left;
}

/* The oldest that is not shown yet: several may have come and gone between two looks. */
static const json_t *next_attempt(const struct following *f, const json_t *job)
{
	const json_t *attempts = json_object_get(job, "attempts"), *attempt;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)attempts, index, attempt)
	{
		if (attempt_id(attempt) > f->shown_attempt)
			return attempt;
	}
	return NULL;
}

/* One look at the job. 1: it is over and all is shown. */
static int look(struct following *f, json_t **ret_job, struct err *err)
{
	const json_t *attempt;
	bool final;
	int rc = client_get(f->client, client_path(f->arena, "/api/v1/jobs/%u", f->options->job),
			    ret_job, err);

	if (rc < 0)
		return rc;
	say_state(f, *ret_job);
	final = state_is_final(get_text(*ret_job, "state"));
	if (f->options->quiet)
		return final;
	if (any_log_left(f))
		return mend_logs(f, err);
	attempt = next_attempt(f, *ret_job);
	if (!attempt)
		return final;
	close_logs(f);
	f->shown_attempt = attempt_id(attempt);
	return open_logs(f, *ret_job, attempt, err);
}

int follow_job(struct client *client, struct arena *arena, const struct follow_options *options,
	       json_t **ret_job, struct err *err)
{
	struct following f = { .client = client,
			       .arena = arena,
			       .options = options,
			       .pods = -1,
			       .wait_ms = POLL_FIRST_MS };
	json_t *job = NULL;
	int rc = 0, lost = 0;

	interrupt_watch();
	while (!interrupted()) {
		json_decref(job);
		job = NULL;
		rc = look(&f, &job, err);
		if (rc == -(int)ERR_UNREACHABLE ||
		    rc == -(int)ERR_UNAVAILABLE) { /* it may be restarting: the job does not mind */
			if (!lost++)
				notice("%s; job %u goes on, waiting for the daemon", err->text,
				       options->job);
			if (lost > 120)
				break;
			cut_logs(&f);
			f.wait_ms = POLL_MOST_MS;
		} else if (rc != 0) {
			break;
		} else {
			lost = 0;
		}
		wait_for_more(&f);
	}
	close_logs(&f);
	if (rc > 0 && job) {
		*ret_job = job;
		return 0;
	}
	json_decref(job);
	return rc < 0 && !interrupted() ? rc : FOLLOW_DETACHED;
}
