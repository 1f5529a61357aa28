/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The history thread: copies what is durable from the journal into the read models, behind the journal and with a
 * handle of its own. It keeps no queue: its cursor is in the read models, so a crash costs nothing but the way back to it.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/state.h"

enum {
	FEED_ROWS = 1000,
	YIELD_RECORDS = 64,
	GATHER_MS = 50,
	FORGET_JOBS = 256, /* of one record */
	FORGET_EVERY_MS = 10 * 60 * 1000 /* of event time */
};

struct feed {
	struct arena arena;
	struct history_row rows[FEED_ROWS];
	uint32_t count;
	uint64_t upto;
	int subjects
		[EVENT_KIND_LIMIT]; /* by kind: how many of its fields name a job or an attempt */
	uint64_t *job_of; /* by attempt */
	size_t job_room;
	int64_t looked_ms; /* when all ended jobs were looked at last */
	uint32_t forget_from; /* the next to look at; 0 = not under way */
};

static uint64_t attempt_job(const struct feed *feed, uint64_t attempt)
{
	return attempt < feed->job_room ? feed->job_of[attempt] : 0;
}

static void attempt_learn(struct feed *feed, uint64_t attempt, uint64_t job)
{
	if (attempt >= feed->job_room) {
		size_t room = feed->job_room ? feed->job_room * 2 : 1024;
		while (room <= attempt)
			room *= 2;
		feed->job_of = reallocarray(feed->job_of, room, sizeof(*feed->job_of));
		CHECK(feed->job_of);
		memset(feed->job_of + feed->job_room, 0,
		       (room - feed->job_room) * sizeof(*feed->job_of));
		feed->job_room = room;
	}
	feed->job_of[attempt] = job;
}

/* Which job and attempt a record is about: every kind names them so. */
struct subject {
	uint64_t job, attempt;
};

static void note_field(void *context, const char *name, char type)
{
	int *count = context;
	(void)type;
	*count += strcmp(name, "job") == 0 || strcmp(name, "attempt") == 0;
}

/* They stand in front: a record is read only as far as they go. */
static struct subject subject_of(const struct feed *feed, const struct record *record)
{
	struct subject subject = { 0 };
	struct json_reader reader;
	struct json_slice key;
	int left = record->kind < EVENT_KIND_LIMIT ? feed->subjects[record->kind] : 2;
	pull_init(&reader, record->text, record->size);
	pull_object(&reader);
	for (; left > 0 && pull_member(&reader, &key); left--) {
		if (pull_key_is(&key, "job")) {
			pull_uint(&reader, &subject.job);
		} else if (pull_key_is(&key, "attempt")) {
			pull_uint(&reader, &subject.attempt);
		} else {
			pull_skip(&reader);
			left++;
		}
	}
	return subject;
}

/* The many small facts of every step stay in the journal; progress reports would swamp the lists. */
static bool kept(uint32_t kind)
{
	return kind != EVENT_DECIDED && kind != EVENT_SEARCHED && kind != EVENT_CLOCK_TICKED &&
	       kind != EVENT_PROGRESS;
}

static int take_record(void *context, const struct record *record, const struct digest *hash)
{
	struct feed *feed = context;
	(void)hash;
	feed->upto = record->seq;
	if (record->seq % YIELD_RECORDS == 0)
		sched_yield(); /* who waits for an answer goes first */
	if (!kept(record->kind))
		return 0;
	struct subject subject = subject_of(feed, record);
	if (subject.attempt && subject.job)
		attempt_learn(feed, subject.attempt, subject.job);
	else if (subject.attempt)
		subject.job = attempt_job(feed, subject.attempt);
	feed->rows[feed->count++] = (struct history_row){
		.seq = record->seq,
		.time_ms = record->time_ms,
		.kind = record->kind,
		.job = subject.job,
		.attempt = subject.attempt,
		.text = arena_strndup(&feed->arena, record->text, record->size),
		.size = record->size,
	};
	return 0;
}

/* Attempts that were placed before the cursor: their jobs are in the facts. */
static void learn_from_facts(struct daemon *d, struct feed *feed)
{
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	for (uint32_t id = 1; id <= facts->attempts.count; id++)
		attempt_learn(feed, id, attempt_get(facts, (struct attempt_id){ id })->job.v);
	publication_release(publication);
}

/*
 * Until there is something to copy. Under load, half of the cost of following is that of beginning and committing, so unless
 * somebody waits for a record it is let to collect for GATHER_MS.
 */
static uint64_t wait_durable(struct daemon *d, uint64_t seen)
{
	pthread_mutex_lock(&d->publication_lock);
	d->history_due = seen + 1;
	while (d->durable_seq <= seen && !d->stopping)
		pthread_cond_wait(&d->durable_cond, &d->publication_lock);
	d->history_due = seen + FEED_ROWS;
	const struct timespec until = wait_until(GATHER_MS);
	while (d->history_wanted <= seen && d->durable_seq - seen < FEED_ROWS && !d->stopping &&
	       pthread_cond_timedwait(&d->durable_cond, &d->publication_lock, &until) == 0)
		continue;
	d->history_due = UINT64_MAX;
	uint64_t durable = d->stopping ? 0 : d->durable_seq;
	pthread_mutex_unlock(&d->publication_lock);
	return durable;
}

/* Those who wait for the cursor. */
static void tell_waiting(struct daemon *d)
{
	pthread_mutex_lock(&d->publication_lock);
	pthread_cond_broadcast(&d->durable_cond);
	pthread_mutex_unlock(&d->publication_lock);
}

/* --- the database ----------------------------------------------------------------------------------------- */

static void note_problem(struct daemon *d, const struct err *err)
{
	pthread_mutex_lock(&d->problem_lock);
	d->history_problem[0] = '\0';
	if (err)
		snprintf(
			d->history_problem, sizeof(d->history_problem),
			"what became of jobs can't be looked up, which is tried again each second: %.160s",
			err->text);
	pthread_mutex_unlock(&d->problem_lock);
	atomic_store(&d->history_behind, err != NULL);
}

int feeder_open(struct daemon *d, uint64_t last, struct err *err)
{
	struct history *history = NULL, *reader = NULL;
	int result = history_open(d->folder, &history, err);
	/* It is of another journal that stood here: filled anew. */
	if (result == 0 && history_applied(history) > last)
		result = history_clear(history, err);
	if (result == 0)
		result = history_open(d->folder, &reader, err);
	note_problem(d, result < 0 ? err : NULL);
	if (result < 0) {
		history_close(history);
		return result;
	}
	d->history = history;
	atomic_store(&d->history_seq, history_applied(history));
	pthread_mutex_lock(&d->history_lock);
	d->history_reader = reader;
	pthread_mutex_unlock(&d->history_lock);
	return 0;
}

static int open_again(struct daemon *d, struct err *err)
{
	pthread_mutex_lock(&d->publication_lock);
	const uint64_t last = d->durable_seq;
	pthread_mutex_unlock(&d->publication_lock);
	return d->history ? 0 : feeder_open(d, last, err);
}

static int feed_some(struct daemon *d, struct feed *feed, uint64_t from, struct err *err)
{
	const struct journal_reader reader = { .context = feed, .take = take_record };
	arena_reset(&feed->arena);
	feed->count = 0;
	feed->upto = from;
	if (journal_read(d->feed_journal, from + 1, FEED_ROWS, false, &reader, err) != 0)
		return -1;
	if (feed->upto == from)
		return err_set(err, ERR_CORRUPT, "record %lu and those behind it can't be read",
			       (unsigned long)from + 1);
	if (history_add(d->history, feed->rows, feed->count, feed->upto, err) < 0)
		return -1;
	atomic_store(&d->history_seq, history_applied(d->history));
	tell_waiting(d);
	return 0;
}

/* One portion. The journal is closed after an error, and by the core when it reads the state back. */
static int feed_from_journal(struct daemon *d, struct feed *feed, struct err *err)
{
	const struct journal_options options = { .folder = d->folder, .read_only = true };
	int result = 0;
	pthread_mutex_lock(&d->feed_lock);
	if (!d->feed_journal)
		result = journal_open(&options, &d->feed_journal, err);
	if (result == 0)
		result = feed_some(d, feed, atomic_load(&d->history_seq), err);
	if (result < 0) {
		journal_close(d->feed_journal);
		d->feed_journal = NULL;
	}
	pthread_mutex_unlock(&d->feed_lock);
	return result;
}

/* A second, or until the end. */
static void wait_a_moment(struct daemon *d)
{
	const struct timespec until = wait_until(1000);
	pthread_mutex_lock(&d->publication_lock);
	while (!d->stopping &&
	       pthread_cond_timedwait(&d->durable_cond, &d->publication_lock, &until) == 0)
		continue;
	pthread_mutex_unlock(&d->publication_lock);
}

/* --- what is in the read models for good may leave the facts -------------------------------------------- */

static void forgotten(void *context, const struct command_reply *reply)
{
	(void)context;
	if (reply->err.code != ERR_NONE)
		log_line(LOG_WARN, "jobs that ended long ago stay in memory for now: %s",
			 reply->err.text);
}

/* Newest first: what lies behind them in lists of dependents is then at the list's head. */
static void forget_send(struct daemon *d, const int64_t *jobs, uint32_t count)
{
	int64_t newest_first[FORGET_JOBS];
	for (uint32_t i = 0; i < count; i++)
		newest_first[i] = jobs[count - 1 - i];
	struct event event = event_make(EVENT_JOBS_FORGOTTEN, 0, "fairlead");
	event.jobs_forgotten.jobs = newest_first;
	event.jobs_forgotten.jobs_count = count;
	struct command *command = command_create(&event, NULL, 0);
	command->done = forgotten;
	d->backend.send(d, command);
}

/* Some at a time: their record brings this thread here again. */
static void forget_some(struct daemon *d, struct feed *feed)
{
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	int64_t jobs[FORGET_JOBS];
	uint32_t count = 0, id = feed->forget_from;
	bool caught_up = atomic_load(&d->history_seq) >= publication->seq;
	if (caught_up && !id && facts->now_ms - feed->looked_ms >= FORGET_EVERY_MS) {
		feed->looked_ms = facts->now_ms;
		id = 1;
	}
	for (; caught_up && id && id <= facts->jobs.count && count < FORGET_JOBS; id++)
		if (job_is_there(facts, id) && job_may_be_forgotten(facts, (struct job_id){ id }))
			jobs[count++] = id;
	feed->forget_from = id <= facts->jobs.count ? id : 0;
	publication_release(publication);
	if (count)
		forget_send(d, jobs, count);
}

static void *feeder_main(void *argument)
{
	struct daemon *d = argument;
	struct feed *feed = calloc(1, sizeof(*feed));
	CHECK(feed);
	arena_init(&feed->arena, 2048UL << 20);
	for (uint32_t kind = 0; kind < EVENT_KIND_LIMIT; kind++)
		event_fields(kind, &feed->subjects[kind], note_field);
	learn_from_facts(d, feed);

	struct err err = { 0 };
	bool behind = !d->history; /* that was said */
	while (wait_durable(d, atomic_load(&d->history_seq)) != 0) {
		int result = open_again(d, &err);
		if (result == 0)
			result = feed_from_journal(d, feed, &err);
		if (result == 0 && !atomic_load(&d->stands_by))
			forget_some(d, feed);
		if (result == 0 && behind)
			log_line(LOG_INFO, "history follows the journal again");
		if (result < 0) {
			atomic_store(&d->history_behind, true);
			tell_waiting(d);
			if (!behind)
				log_line(LOG_ERROR,
					 "history falls behind, and is tried again each second: %s",
					 err.text);
			wait_a_moment(d);
		}
		behind = result < 0;
		atomic_store(&d->history_behind, behind);
	}
	journal_close(d->feed_journal);
	free(feed->job_of);
	arena_deinit(&feed->arena);
	free(feed);
	return NULL;
}

void feeder_start(struct daemon *d)
{
	thread_start(&d->history_thread, feeder_main, d);
}

void feeder_join(struct daemon *d)
{
	pthread_mutex_lock(&d->publication_lock);
	d->stopping = true;
	pthread_cond_broadcast(&d->durable_cond);
	pthread_mutex_unlock(&d->publication_lock);
	pthread_join(d->history_thread, NULL);
}
