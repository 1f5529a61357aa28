/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinball loss of quantile q, by hand: q = 0.9, foretold 100 s. Started after 150 s: 0.9 * 50 = 45 s. Started after 60 s: 0.1 * 40 = 4 s.
 * The mean is least when 9 of 10 starts come before what is foretold.
 */
#include "api/forecast.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "core/model/edit.h"

enum {
	FRESH_MS = 5000,
	FRESH_COSTS = 10, /* fresh at least as long as so many times its cost */
	USABLE_MS = 60000, /* told at all, with its time */
	USABLE_COSTS = 30,
	PLAN_COST_MS = 2000,
	NICENESS = 5,
	WRITTEN_MS = 60000, /* the file: at most so often */
	FILE_MOST = 4 << 20 /* bytes */
};

/* What was foretold of a job that had not started. */
struct foretold {
	uint32_t job;
	int64_t start_ms, start_by_ms;
};

struct forecasts {
	pthread_mutex_t lock;
	pthread_cond_t wanted, made;
	pthread_t thread;
	bool has_thread, stop, want, busy;
	struct facts facts; /* to be planned, when `want` */
	struct plan plan; /* rows NULL = none yet */
	uint32_t *wishes; /* by job id, as many as rows: job_wish_hash when the plan was made */
	int64_t made_ms, cost_ms;
	uint64_t rounds;
	struct foretold *book; /* by job */
	uint32_t count;
	struct forecast_errors errors;
	struct io *io; /* NULL = kept nowhere */
	char *path;
	int64_t written_ms;
	int64_t (*clock_ms)(void); /* by which plans age */
};

/* --- the book ------------------------------------------------------------------------------------------------------ */

static int64_t pinball_ms(int64_t foretold_ms, int64_t started_ms, int64_t tenths)
{
	return started_ms >= foretold_ms ? (started_ms - foretold_ms) * tenths / 10
					 : (foretold_ms - started_ms) * (10 - tenths) / 10;
}

static void score(struct forecast_errors *errors, const struct foretold *f, int64_t started_ms)
{
	errors->scored++;
	errors->loss_likely_ms += pinball_ms(f->start_ms, started_ms, 5);
	if (f->start_by_ms == PLAY_NEVER)
		return;
	errors->safe_known++;
	errors->in_time += started_ms <= f->start_by_ms;
	errors->loss_safe_ms += pinball_ms(f->start_by_ms, started_ms, 9);
}

/* Compares those that started meanwhile, and forgets them. A job that started more than once since, or ended without, says nothing. */
static void book_score(struct forecasts *f, const struct facts *now)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->count; i++) {
		const struct foretold *at = &f->book[i];
		const struct job *job;

		if (at->job > now->jobs.count)
			continue;
		job = job_get(now, (struct job_id){ at->job });
		if (!job->attempts && !job_state_is_final(job->state) && job->submitted_ms)
			f->book[kept++] = *at;
		else if (job->attempts == 1 && job->last_attempt.v)
			score(&f->errors, at, attempt_get(now, job->last_attempt)->placed_ms);
	}
	f->count = kept;
}

/* Both lists rise by job. What was foretold first stays. */
static void book_add(struct forecasts *f, const struct facts *facts, const struct plan *plan)
{
	struct foretold *merged = reallocarray(NULL, FORECASTS_KEPT, sizeof(*merged));
	uint32_t count = 0, old = 0;

	CHECK(merged);
	for (uint32_t job = 1; job < plan->row_count && count < FORECASTS_KEPT; job++) {
		struct plan_answer answer;

		if (old < f->count && f->book[old].job == job) {
			merged[count++] = f->book[old++];
			continue;
		}
		if (job_get(facts, (struct job_id){ job })->attempts ||
		    !plan_ask(plan, job, &answer) || answer.start_ms == PLAY_NEVER)
			continue;
		merged[count++] = (struct foretold){ job, answer.start_ms, answer.start_by_ms };
	}
	free(f->book);
	f->book = merged;
	f->count = count;
}

/* --- the file ------------------------------------------------------------------------------------------------------ */

/* A line of the sums, then one for each job that still waits; the first word says what it is. */
static void book_format(const struct forecasts *f, struct buf *out)
{
	const struct forecast_errors *e = &f->errors;

	buf_addf(out, "forecasts-1 %lld %lld %lld %lld %lld\n", (long long)e->scored,
		 (long long)e->safe_known, (long long)e->in_time, (long long)e->loss_likely_ms,
		 (long long)e->loss_safe_ms);
	for (uint32_t i = 0; i < f->count; i++)
		buf_addf(out, "%u %lld %lld\n", f->book[i].job, (long long)f->book[i].start_ms,
			 (long long)f->book[i].start_by_ms);
}

/* What is lost when the disk does not take it is told by nobody: it is about estimates. */
static void book_write(struct forecasts *f)
{
	AUTO_BUF out = BUF_INIT;

	if (!f->io)
		return;
	book_format(f, &out);
	(void)io_replace_file(f->io, f->path, buf_text(&out), out.size, 0600);
	f->written_ms = clock_boot_ms();
}

/* So many numbers, then the end of the line. */
static bool line_read(const char **text, int64_t *ret, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		char *end;

		ret[i] = strtoll(*text, &end, 10);
		if (end == *text || ret[i] < 0)
			return false;
		*text = end;
	}
	return *(*text)++ == '\n';
}

static void book_read(struct forecasts *f, const char *text)
{
	static const char head[] = "forecasts-1 ";
	int64_t n[5];

	if (strncmp(text, head, strlen(head)) != 0)
		return;
	text += strlen(head);
	if (!line_read(&text, n, 5))
		return;
	f->errors = (struct forecast_errors){ .scored = n[0],
					      .safe_known = n[1],
					      .in_time = n[2],
					      .loss_likely_ms = n[3],
					      .loss_safe_ms = n[4] };
	f->book = reallocarray(NULL, FORECASTS_KEPT, sizeof(*f->book));
	CHECK(f->book);
	while (*text && f->count < FORECASTS_KEPT && line_read(&text, n, 3)) {
		if (n[0] < 1 || n[0] > UINT32_MAX ||
		    (f->count && n[0] <= f->book[f->count - 1].job))
			return; /* they rise by job */
		f->book[f->count++] = (struct foretold){ (uint32_t)n[0], n[1], n[2] };
	}
}

void forecasts_keep(struct forecasts *f, struct io *io, const char *path)
{
	char *text = NULL;
	size_t size;

	f->io = io;
	f->path = strdup(path);
	CHECK(f->path);
	f->written_ms = clock_boot_ms();
	if (io_read_file(io, path, FILE_MOST, &text, &size) == 0)
		book_read(f, text);
	free(text);
}

void forecast_errors(struct forecasts *f, const struct facts *now, struct forecast_errors *ret)
{
	pthread_mutex_lock(&f->lock);
	book_score(f, now);
	*ret = f->errors;
	ret->waiting = f->count;
	pthread_mutex_unlock(&f->lock);
}

/* --- plans ----------------------------------------------------------------------------------------------------------- */

struct deadline {
	int64_t end_ms;
	const bool *stop; /* NULL = nobody */
};

static bool time_is_over(void *context)
{
	const struct deadline *d = context;

	return clock_boot_ms() >= d->end_ms ||
	       (d->stop && __atomic_load_n(d->stop, __ATOMIC_RELAXED));
}

static void plan_now(const struct facts *facts, uint32_t target, const bool *stop, struct plan *ret)
{
	struct deadline deadline = { .end_ms = clock_boot_ms() + PLAN_COST_MS, .stop = stop };
	const struct plan_limits limits = { .target = target,
					    .context = &deadline,
					    .stop = time_is_over };

	plan_make(facts, clock_wall_ms(), &limits, ret);
}

/* Hash of what a plan makes of a job that waits: a job that was changed since has no estimate in that plan. */
static uint32_t job_wish_hash(const struct facts *facts, uint32_t id)
{
	static const struct body none;
	const struct job *job = job_get(facts, (struct job_id){ id });
	const struct body *body = job->body ? table_get(&facts->bodies, job->body) : &none;
	const int64_t wish[] = {
		job->queue.v,  job->shape.v,      job->priority,  job->tier,
		job->limit_ms, job->estimate_ms,  job->kind,      job->checkpoints,
		job->preempts, body->deadline_ms, body->capacity, body->array_limit
	};

	return (uint32_t)bytes_hash(wish, sizeof(wish));
}

static uint32_t *wishes_make(const struct facts *facts, uint32_t count)
{
	uint32_t *wishes = calloc(count ? count : 1, sizeof(*wishes));

	CHECK(wishes);
	for (uint32_t id = 1; id < count; id++)
		wishes[id] = job_wish_hash(facts, id);
	return wishes;
}

/* One plan of f->facts; the lock is held before and after, not meanwhile. */
static void plan_renew(struct forecasts *f)
{
	struct facts facts = f->facts;
	struct plan plan, old;
	uint32_t *wishes;
	int64_t began_ms = f->clock_ms();

	f->want = false;
	f->busy = true;
	pthread_mutex_unlock(&f->lock);
	plan_now(&facts, 0, &f->stop, &plan);
	wishes = wishes_make(&facts, plan.row_count);
	pthread_mutex_lock(&f->lock);
	free(f->wishes);
	f->wishes = wishes;
	old = f->plan;
	f->plan = plan;
	f->made_ms = f->clock_ms();
	f->cost_ms = f->made_ms - began_ms;
	f->busy = false;
	f->rounds++;
	book_score(f, &facts);
	book_add(f, &facts, &f->plan);
	pthread_cond_broadcast(&f->made);
	if (clock_boot_ms() - f->written_ms >= WRITTEN_MS)
		book_write(f);
	plan_deinit(&old);
	facts_deinit(&facts);
}

static void *planner_thread(void *argument)
{
	struct forecasts *f = argument;

	/* Only this thread steps back behind the others, as Linux has it. */
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		if (f->want)
			plan_renew(f);
		else
			pthread_cond_wait(&f->wanted, &f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

/* --- asking ---------------------------------------------------------------------------------------------------------- */

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The plan has the job, as it is now. */
static bool plan_knows(const struct forecasts *f, const struct facts *now, uint32_t job)
{
	return f->plan.rows && job < f->plan.row_count && f->wishes[job] == job_wish_hash(now, job);
}

static bool plan_is_usable(const struct forecasts *f, const struct facts *now, uint32_t job)
{
	return plan_knows(f, now, job) &&
	       f->clock_ms() - f->made_ms <= larger(USABLE_MS, USABLE_COSTS * f->cost_ms);
}

/* A new plan is due, by its age alone: on a quiet cluster the one of the newest facts grows old too. A plan that lacks this job is made
 * again sooner, but never all the time. */
static bool plan_is_due(const struct forecasts *f, const struct facts *now, uint32_t job)
{
	int64_t age_ms = f->clock_ms() - f->made_ms;

	if (f->want || f->busy)
		return false;
	if (!f->plan.rows)
		return true;
	if (!plan_knows(f, now, job))
		return age_ms >= f->cost_ms;
	return age_ms > larger(FRESH_MS, FRESH_COSTS * f->cost_ms);
}

static void plan_want(struct forecasts *f, const struct facts *now)
{
	if (!f->has_thread) {
		f->has_thread = pthread_create(&f->thread, NULL, planner_thread, f) == 0;
		if (!f->has_thread)
			return; /* no estimates; all else works */
	}
	facts_freeze(now, &f->facts);
	f->want = true;
	pthread_cond_signal(&f->wanted);
}

static void plan_wait(struct forecasts *f, const struct facts *now, uint32_t job, int64_t wait_ms)
{
	int64_t end_ns = clock_mono_ns() + wait_ms * 1000000;
	const struct timespec end = { .tv_sec = end_ns / 1000000000,
				      .tv_nsec = end_ns % 1000000000 };

	while (!plan_is_usable(f, now, job) && (f->want || f->busy))
		if (pthread_cond_clockwait(&f->made, &f->lock, CLOCK_MONOTONIC, &end) != 0)
			return;
}

/* latest 0 = no bound. */
static void time_bound(int64_t *ms, int64_t least_ms, int64_t most_ms)
{
	if (*ms == PLAY_NEVER)
		*ms = most_ms ? most_ms : PLAY_NEVER;
	else if (*ms < least_ms)
		*ms = least_ms;
	else if (most_ms && *ms > most_ms)
		*ms = most_ms;
}

void estimate_bound(struct estimate *estimate, int64_t now_ms, int64_t latest_ms)
{
	struct plan_answer *answer = &estimate->answer;

	if (latest_ms && latest_ms < now_ms)
		latest_ms = now_ms;
	if (answer->start_ms == PLAY_NEVER)
		return;
	time_bound(&answer->start_ms, now_ms, latest_ms);
	time_bound(&answer->start_by_ms, answer->start_ms, latest_ms);
	time_bound(&answer->end_ms, answer->start_ms, 0);
	time_bound(&answer->end_by_ms, answer->end_ms == PLAY_NEVER ? 0 : answer->end_ms, 0);
}

int forecast_ask(struct forecasts *f, const struct facts *now, uint32_t job, int64_t wait_ms,
		 struct estimate *ret)
{
	int rc = FORECAST_MAKING;

	pthread_mutex_lock(&f->lock);
	if (plan_is_due(f, now, job))
		plan_want(f, now);
	if (wait_ms)
		plan_wait(f, now, job, wait_ms);
	if (plan_is_usable(f, now, job)) {
		rc = plan_ask(&f->plan, job, &ret->answer) ? 0 : FORECAST_NONE;
		ret->at_ms = f->plan.now_ms;
	}
	pthread_mutex_unlock(&f->lock);
	return rc;
}

bool forecast_new(const struct facts *facts, const struct event *submitted, uint32_t count,
		  struct estimate *ret)
{
	bool any = false;
	struct facts copy;
	struct plan plan;

	facts_freeze(facts, &copy);
	for (uint32_t i = 0; i < count; i++)
		apply(&copy, &submitted[i]);
	plan_now(&copy, count == 1 ? (uint32_t)submitted->job_submitted.job : 0, NULL, &plan);
	for (uint32_t i = 0; i < count; i++) {
		bool known =
			plan_ask(&plan, (uint32_t)submitted[i].job_submitted.job, &ret[i].answer);

		ret[i].at_ms = known ? plan.now_ms : 0;
		any = any || known;
	}
	plan_deinit(&plan);
	facts_deinit(&copy);
	return any;
}

/* Runs of both plans take the same cells (sim/plan.h), so what differs comes of the change; a second is no delay. */
enum { DELAY_LEAST_MS = 1000 };

static void delays_find(const struct plan *now, const struct plan *other, uint32_t job,
			struct forecast_change *ret)
{
	struct plan_answer was, is;

	for (uint32_t id = 1; id < now->row_count; id++) {
		bool starts;
		int64_t later_ms;

		if (id == job || !plan_ask(now, id, &was) || was.start_ms == PLAY_NEVER)
			continue;
		starts = plan_ask(other, id, &is) && is.start_ms != PLAY_NEVER;
		later_ms = starts ? is.start_ms - was.start_ms : -1;
		if (starts && later_ms < DELAY_LEAST_MS)
			continue;
		if (ret->count < ret->room)
			ret->delays[ret->count++] =
				(struct forecast_delay){ id, was.start_ms, later_ms };
		ret->delayed++;
	}
}

void forecast_change(const struct facts *now, const struct facts *other, uint32_t job,
		     struct forecast_change *ret)
{
	struct plan plan, changed;

	plan_now(now, 0, NULL, &plan);
	plan_now(other, 0, NULL, &changed);
	/* Where one of them was cut sooner, fewer runs say fewer starts. */
	ret->cut = plan.runs < PLAN_RUNS || changed.runs < PLAN_RUNS ||
		   plan.until_ms != PLAY_NEVER || changed.until_ms != PLAY_NEVER;
	if (plan.runs == changed.runs)
		delays_find(&plan, &changed, job, ret);
	ret->starts = plan_ask(&changed, job, &ret->estimate.answer);
	ret->estimate.at_ms = changed.now_ms;
	plan_deinit(&plan);
	plan_deinit(&changed);
}

/* --- life ------------------------------------------------------------------------------------------------------------ */

struct forecasts *forecasts_create(void)
{
	struct forecasts *f = calloc(1, sizeof *f);

	CHECK(f);
	f->clock_ms = clock_boot_ms;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->wanted, NULL);
	pthread_cond_init(&f->made, NULL);
	return f;
}

void forecasts_clock(struct forecasts *f, int64_t (*clock_ms)(void))
{
	f->clock_ms = clock_ms;
}

void forecasts_destroy(struct forecasts *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	__atomic_store_n(&f->stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&f->wanted);
	pthread_mutex_unlock(&f->lock);
	if (f->has_thread)
		(void)pthread_join(f->thread, NULL);
	book_write(f);
	free(f->path);
	if (f->want)
		facts_deinit(&f->facts);
	plan_deinit(&f->plan);
	free(f->wishes);
	free(f->book);
	pthread_cond_destroy(&f->made);
	pthread_cond_destroy(&f->wanted);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
