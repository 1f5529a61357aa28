/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "engine/failpoint.h"
#include "engine/local/place.h"

enum { FORGET_AGAIN_MS = 1000 };

/* --- tables --- */

struct attempt *attempt_find(struct engine *e, uint64_t number)
{
	struct attempt *attempt;

	HASH_FIND(hh, e->table, &number, sizeof(number), attempt);
	return attempt;
}

void attempt_widen(struct attempt *attempt, uint32_t count)
{
	attempt->ranks = reallocarray(attempt->ranks, count ? count : 1, sizeof(*attempt->ranks));
	CHECK(attempt->ranks);
	for (; attempt->count < count; attempt->count++) {
		struct rank *rank = calloc(1, sizeof(*rank));

		CHECK(rank);
		*rank = (struct rank){
			.attempt = attempt, .number = attempt->count, .folder = -1, .watch = -1
		};
		attempt->ranks[attempt->count] = rank;
	}
}

struct attempt *attempt_add(struct engine *e, uint64_t number, uint32_t count)
{
	struct attempt *attempt = calloc(1, sizeof(*attempt));

	CHECK(attempt);
	attempt->number = number;
	attempt_widen(attempt, count);
	HASH_ADD(hh, e->table, number, sizeof(attempt->number), attempt);
	return attempt;
}

void attempt_drop(struct engine *e, struct attempt *attempt)
{
	HASH_DEL(e->table, attempt);
	for (uint32_t i = 0; i < attempt->count; i++) {
		rank_unwatch(e, attempt->ranks[i]);
		rank_born(attempt->ranks[i]);
		if (attempt->ranks[i]->folder >= 0)
			close(attempt->ranks[i]->folder);
		free(attempt->ranks[i]);
	}
	free(attempt->ranks);
	free(attempt);
}

void rank_say(struct engine *e, struct rank *rank, const struct engine_fact *fact)
{
	struct engine_fact own = *fact;

	own.launch = rank->launch;
	own.gpu_limited = own.kind == ENGINE_STARTED && rank->gpu_limited;
	if (!rank->attempt->stale)
		e->options.report(e->options.context, &own);
}

static void maybe_forget(struct engine *e, struct attempt *attempt)
{
	if (!(attempt->forgotten || attempt->stale) || attempt->jobs || attempt->forget_again_ms)
		return;
	for (uint32_t i = 0; i < attempt->count; i++)
		if (attempt->ranks[i]->state != RANK_ENDED)
			return;
	engine_queue(e, JOB_FORGET, attempt, NULL, NULL);
}

void rank_end(struct engine *e, struct rank *rank)
{
	rank->state = RANK_ENDED;
	rank_unwatch(e, rank);
	rank_born(rank);
	if (rank->folder >= 0)
		close(rank->folder);
	rank->folder = -1;
	maybe_forget(e, rank->attempt);
}

static void gone_say(struct engine *e, struct rank *rank, const char *why)
{
	struct engine_fact fact = {
		.kind = ENGINE_GONE,
		.attempt = rank->attempt->number,
		.rank = rank->number,
		.time_ms = clock_wall_ms(),
	};

	snprintf(fact.text, sizeof(fact.text), "%s", why);
	rank_say(e, rank, &fact);
}

void rank_gone(struct engine *e, struct rank *rank, const char *why)
{
	rank->gone = true;
	gone_say(e, rank, why);
	rank_end(e, rank);
}

/* --- workers --- */

void engine_queue(struct engine *e, enum job_kind kind, struct attempt *attempt, struct rank *rank,
		  struct order *order)
{
	struct job *job = calloc(1, sizeof(*job));

	CHECK(job);
	*job = (struct job){ .kind = kind, .attempt = attempt, .rank = rank, .order = order };
	if (attempt)
		attempt->jobs++;
	*e->last_job = job;
	e->last_job = &job->next;
	pthread_cond_signal(&e->work_there);
}

static void job_run(struct engine *e, struct job *job)
{
	switch (job->kind) {
	case JOB_PREPARE: prepare_attempt(e, job->attempt, job->order); break;
	case JOB_PREPARE_RANK: prepare_rank(e, job->rank, job->order); break;
	case JOB_BURY: bury_rank(e, job->rank); break;
	case JOB_FORGET: job->undone = !forget_attempt(e, job->attempt); break;
	case JOB_TRY: try_start(e); break;
	}
	if (job->order)
		order_unref(e, job->order);
}

static void job_done(struct engine *e, struct job *job)
{
	if (job->attempt)
		job->attempt->jobs--;
	if (job->undone)
		job->attempt->forget_again_ms = clock_boot_ms() + FORGET_AGAIN_MS;
	else if (job->kind == JOB_FORGET)
		attempt_drop(e, job->attempt);
	else if (job->attempt)
		maybe_forget(e, job->attempt);
	free(job);
}

static void *worker_run(void *engine)
{
	struct engine *e = engine;

	pthread_mutex_lock(&e->lock);
	while (!e->closing) {
		struct job *job = e->first_job;

		if (!job) {
			pthread_cond_wait(&e->work_there, &e->lock);
			continue;
		}
		e->first_job = job->next;
		if (!e->first_job)
			e->last_job = &e->first_job;
		pthread_mutex_unlock(&e->lock);
		job_run(e, job);
		pthread_mutex_lock(&e->lock);
		job_done(e, job);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

/* --- open and close --- */

static uint64_t tag_of(const char *text)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

/* A folder of ours with exactly this mode; what somebody else put under the name is refused. */
static int own_folder(const char *path, mode_t mode, struct err *err)
{
	struct stat st;

	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "could not make the folder %s", path);
	if (lstat(path, &st) < 0)
		return err_errno(err, ERR_IO, errno, "could not look at the folder %s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, ERR_CONFLICT,
			       "%s is not a folder of the daemon's user (uid %u); move it away",
			       path, (unsigned)geteuid());
	if ((st.st_mode & 07777) != mode && chmod(path, mode) < 0)
		return err_errno(err, ERR_IO, errno, "could not set the mode of the folder %s",
				 path);
	return 0;
}

/* Whether any user may pass through all folders of a path. */
static bool all_may_pass(const char *path)
{
	char copy[PATH_MAX];
	struct stat st;

	snprintf(copy, sizeof(copy), "%s", path);
	for (char *at = copy + strlen(copy); at > copy; at = strrchr(copy, '/')) {
		*at = '\0';
		if (copy[0] && (stat(copy, &st) < 0 || !(st.st_mode & S_IXOTH)))
			return false;
	}
	return true;
}

/* Where tasks find their report socket, script and host file. Inside the data folder if every user
 * can get there and the path leaves room for a socket's (107 bytes); else a short one of our own. */
static int choose_run(struct engine *e, struct err *err)
{
	enum { ROOM_BELOW = 36 }; /* "/ATTEMPT/RANK/report" */
	bool fits = snprintf(e->run, sizeof(e->run), "%.100s/run", e->folder) < 107 - ROOM_BELOW &&
		    strlen(e->folder) <= 100;

	e->open_to_all = geteuid() != 0 || all_may_pass(e->folder);
	if (!fits || !e->open_to_all) {
		if (geteuid() == 0)
			snprintf(e->run, sizeof(e->run), "/run/fairlead-%08" PRIx32,
				 (uint32_t)e->tag);
		else
			snprintf(e->run, sizeof(e->run), "/tmp/fairlead-%u-%08" PRIx32,
				 (unsigned)geteuid(), (uint32_t)e->tag);
	}
	return own_folder(e->run, 0711, err);
}

static int open_folders(struct engine *e, struct err *err)
{
	if (!realpath(e->options.folder, e->folder))
		return err_errno(err, ERR_IO, errno, "could not open the data folder %s",
				 e->options.folder);
	e->tag = tag_of(e->folder);
	if (snprintf(e->attempts, PATH_MAX, "%.3900s/attempts", e->folder) >= PATH_MAX ||
	    snprintf(e->logs, PATH_MAX, "%.3900s/logs", e->folder) >= PATH_MAX ||
	    strlen(e->folder) > 3900)
		return err_set(err, ERR_TOO_LARGE, "the path of the data folder is too long");
	if (access(e->shepherd, X_OK) < 0)
		return err_errno(err, ERR_IO, errno,
				 "could not find the program fairlead-shepherd at %s", e->shepherd);
	if (own_folder(e->attempts, 0700, err) < 0 || own_folder(e->logs, 0750, err) < 0)
		return -1;
	return choose_run(e, err);
}

static int open_watch(struct engine *e, struct err *err)
{
	struct epoll_event inotify = { .events = EPOLLIN, .data.u64 = 1 },
			   wake = { .events = EPOLLIN, .data.u64 = 2 };

	e->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (e->inotify < 0 || e->wake < 0 || e->epoll < 0 ||
	    epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->inotify, &inotify) < 0 ||
	    epoll_ctl(e->epoll, EPOLL_CTL_ADD, e->wake, &wake) < 0)
		return err_errno(err, ERR_IO, errno, "could not watch the attempts' folders");
	return 0;
}

static void engine_free(struct engine *e)
{
	struct attempt *attempt, *next;
	struct child *child, *next_child;

	HASH_ITER(hh, e->table, attempt, next)
	attempt_drop(e, attempt);
	HASH_ITER(hh, e->children, child, next_child)
	{
		HASH_DEL(e->children, child);
		close(child->fd);
		free(child);
	}
	if (e->inotify >= 0)
		close(e->inotify);
	if (e->wake >= 0)
		close(e->wake);
	if (e->epoll >= 0)
		close(e->epoll);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->work_there);
	free(e);
}

static int local_open(const struct engine_options *options, struct engine **ret, struct err *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	CHECK(e);
	e->options = *options;
	e->inotify = e->wake = e->epoll = -1;
	e->last_job = &e->first_job;
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->work_there, NULL);
	snprintf(e->shepherd, sizeof(e->shepherd), "%s", options->shepherd_path);
	failpoint_boot_id(e->boot);
	if (open_folders(e, err) < 0 || open_watch(e, err) < 0) {
		engine_free(e);
		return -1;
	}
	cgroup_find(&e->cgroups);
	thread_start(&e->watcher, watcher_run, e);
	for (int i = 0; i < WORKERS; i++)
		thread_start(&e->workers[i], worker_run, e);
	*ret = e;
	return 0;
}

static void local_close(struct engine *e)
{
	uint64_t one = 1;

	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->closing = true;
	pthread_cond_broadcast(&e->work_there);
	pthread_mutex_unlock(&e->lock);
	if (write(e->wake, &one, sizeof(one)) < 0) {
		/* full: it wakes all the same */
	}
	pthread_join(e->watcher, NULL);
	for (int i = 0; i < WORKERS; i++)
		pthread_join(e->workers[i], NULL);
	while (e->first_job) {
		struct job *job = e->first_job;

		e->first_job = job->next;
		if (job->order)
			order_unref(e, job->order);
		free(job);
	}
	engine_free(e);
}

/* --- commands --- */

static int local_adopt(struct engine *e, const uint64_t *attempts, const uint32_t *task_counts,
		       const uint32_t *const *launches, size_t count, struct err *err)
{
	pthread_mutex_lock(&e->lock);
	int result = adopt_all(e, attempts, task_counts, launches, count, err);
	pthread_mutex_unlock(&e->lock);
	return result;
}

static void local_try_start(struct engine *e)
{
	pthread_mutex_lock(&e->lock);
	engine_queue(e, JOB_TRY, NULL, NULL, NULL);
	pthread_mutex_unlock(&e->lock);
}

int check_start(const struct engine_start *start, struct err *err)
{
	if (start->place_count == 0 || start->place_count > ENGINE_TASKS_MAX)
		return err_set(err, ERR_INVALID,
			       "attempt %" PRIu64 ": %u tasks; the local engine starts 1 to %d",
			       start->attempt, start->place_count, ENGINE_TASKS_MAX);
	if ((start->workdir && start->workdir[0] != '/') ||
	    (start->checkpoint_dir && start->checkpoint_dir[0] != '/'))
		return err_set(err, ERR_INVALID,
			       "attempt %" PRIu64
			       ": working directory and checkpoint folder must be absolute paths",
			       start->attempt);
	for (uint32_t i = 0; i < start->place_count; i++)
		if (start->places[i].rank != i ||
		    (start->role_count && start->places[i].role >= start->role_count))
			return err_set(err, ERR_INVALID,
				       "attempt %" PRIu64 ": places are not in order of rank",
				       start->attempt);
	for (uint32_t i = 0; i < start->place_count; i++)
		if (!engine_script(start, i) &&
		    (!engine_argv(start, i) || !engine_argv(start, i)[0]))
			return err_set(err, ERR_INVALID, "attempt %" PRIu64 " has no command",
				       start->attempt);
	return 0;
}

/* An attempt that was adopted half made (the daemon before this one died while it prepared it): the
 * ranks that never had a shepherd are made now; those whose lock is held by a process that may become
 * one, when that ends without having been it. */
static void start_rest(struct engine *e, struct attempt *attempt, const struct engine_start *start)
{
	struct order *order = order_copy(e, start);

	for (uint32_t i = 0; i < attempt->count && i < start->place_count; i++) {
		struct rank *rank = attempt->ranks[i];

		if (rank->state == RANK_ENDED && rank->gone) {
			rank->state = RANK_PREPARING;
			rank->gone = false;
			rank->waits = true;
		} else if ((rank->unborn || rank->unseen) && !rank->again) {
			rank->again = order;
			order->users++;
		}
	}
	engine_queue(e, JOB_PREPARE, attempt, NULL, order);
}

static int local_start(struct engine *e, const struct engine_start *start, struct err *err)
{
	if (check_start(start, err) < 0)
		return -1;
	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = attempt_find(e, start->attempt);
	if (!attempt) {
		attempt = attempt_add(e, start->attempt, start->place_count);
		attempt->job = start->job;
		for (uint32_t i = 0; i < attempt->count; i++)
			attempt->ranks[i]->waits = true;
		engine_queue(e, JOB_PREPARE, attempt, NULL, order_copy(e, start));
	} else if (attempt->adopted && !attempt->stale && !attempt->forgotten) {
		start_rest(e, attempt, start);
	}
	pthread_mutex_unlock(&e->lock);
	return 0;
}

struct attempt *find_or_say(struct engine *e, uint64_t number, struct err *err)
{
	struct attempt *attempt = attempt_find(e, number);

	if (!attempt)
		(void)err_set(err, ERR_NOT_FOUND, "the local engine has no attempt %" PRIu64,
			      number);
	return attempt;
}

/* A job runs once: where the record of its placing was lost, its earlier run is stale, and ends before another one begins. */
static int check_alone(const struct engine *e, const struct attempt *attempt, struct err *err)
{
	for (const struct attempt *other = e->table; other; other = other->hh.next)
		for (uint32_t i = 0; other->stale && other->job == attempt->job && i < other->count;
		     i++)
			if (other->ranks[i]->state != RANK_ENDED)
				return err_set(
					err, ERR_UNAVAILABLE,
					"attempt %" PRIu64 " waits until attempt %" PRIu64
					" of the same job, which is not in the journal, has ended",
					attempt->number, other->number);
	return 0;
}

/* The gate of a gang: all ranks are ready (or were released before, or the gang goes on without them), or none gets `go`. It is
 * passed once: those that come later run as soon as they are ready. */
static int check_ready(const struct attempt *attempt, struct err *err)
{
	for (uint32_t i = 0; i < attempt->count && !attempt->open; i++) {
		const struct rank *rank = attempt->ranks[i];

		if (!rank->left && !rank->released &&
		    (rank->state != RANK_LIVE || !rank->ready_said))
			return err_set(err, ERR_CONFLICT,
				       "attempt %" PRIu64
				       " can't be released: rank %u is not ready",
				       attempt->number, i);
	}
	if (attempt->stopping)
		return err_set(err, ERR_CONFLICT,
			       "attempt %" PRIu64 " can't be released: it is being stopped",
			       attempt->number);
	return 0;
}

int rank_go(struct rank *rank, struct err *err)
{
	(void)FAILPOINT_RANK("engine-go", rank->number);
	int put = place_put(rank->folder, "go", "", 0, err);
	if (put < 0)
		return put;
	rank->released = true;
	place_wake(rank->folder);
	return 0;
}

static int release_ranks(struct attempt *attempt, struct err *err)
{
	int result = 0;

	for (uint32_t i = 0; i < attempt->count; i++) {
		struct rank *rank = attempt->ranks[i];

		if (rank->released || rank->state != RANK_LIVE || !rank->ready_said)
			continue;
		int put = rank_go(rank, err);
		if (put < 0)
			result = put;
	}
	attempt->open = true;
	return result;
}

/* A rank that was lost between the decision to release and this is started anew, and release is not given again for it. */
void gate_look(struct engine *e, struct attempt *attempt)
{
	struct err err;

	if (!attempt->wanted || attempt->open || attempt->ending ||
	    check_alone(e, attempt, &err) < 0 || check_ready(attempt, &err) < 0)
		return;
	if (release_ranks(attempt, &err) < 0) {
		/* a full disk, say: the next scan tries again */
	}
}

static int local_release(struct engine *e, uint64_t number, struct err *err)
{
	int result = -1;

	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = find_or_say(e, number, err);
	if (attempt)
		result = check_alone(e, attempt, err);
	if (attempt)
		attempt->wanted = true;
	if (attempt && result == 0)
		result = check_ready(attempt, err);
	if (attempt && result == 0)
		result = release_ranks(attempt, err);
	pthread_mutex_unlock(&e->lock);
	return result;
}

static int command_ranks(struct attempt *attempt, const char *command, uint64_t number,
			 int64_t grace_ms, struct err *err)
{
	int result = 0;

	for (uint32_t i = 0; i < attempt->count; i++) {
		struct rank *rank = attempt->ranks[i];

		if (rank->unseen)
			result = err_set(err, ERR_UNAVAILABLE,
					 "the place of rank %u can't be looked at yet", i);
		if (rank->state != RANK_LIVE)
			continue;
		(void)FAILPOINT_RANK("engine-command", i);
		int put = place_put_command(rank->folder, command, number, grace_ms, err);
		if (put < 0)
			result = put;
		place_wake(rank->folder);
	}
	return result;
}

static int local_warn(struct engine *e, uint64_t number, int64_t grace_ms, struct err *err)
{
	int result = -1;

	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = find_or_say(e, number, err);
	if (attempt)
		result = command_ranks(attempt, "warn", ++attempt->warn_number, grace_ms, err);
	pthread_mutex_unlock(&e->lock);
	return result;
}

/* What an adoption found nothing of is told then, and passed over while it may be made again; now it never will be. */
static void ranks_missing_say(struct engine *e, struct attempt *attempt)
{
	for (uint32_t i = 0; attempt->adopted && i < attempt->count; i++) {
		struct rank *rank = attempt->ranks[i];

		if (rank->state == RANK_ENDED && rank->gone)
			gone_say(e, rank, "it was never prepared");
	}
}

static int local_stop(struct engine *e, uint64_t number, int64_t grace_ms, struct err *err)
{
	int result = -1;

	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = find_or_say(e, number, err);
	if (attempt) {
		if (!attempt->stopping || grace_ms < attempt->stop_grace_ms)
			attempt->stop_grace_ms = grace_ms;
		attempt->stopping = true;
		result = command_ranks(attempt, "stop", ++attempt->stop_number, grace_ms, err);
		ranks_missing_say(e, attempt);
	}
	pthread_mutex_unlock(&e->lock);
	return result;
}

static void local_forget(struct engine *e, uint64_t number)
{
	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = attempt_find(e, number);
	if (attempt && !attempt->forgotten) {
		attempt->forgotten = true;
		maybe_forget(e, attempt);
	}
	pthread_mutex_unlock(&e->lock);
}

/* --- what ranks use of a GPU that they share --- */

/* By brand: it stays with a process whatever that does. Where a lower limit was there already, by the name of its report socket. */
static bool local_owns(struct engine *e, uint64_t attempt, uint32_t rank, uint32_t launch,
		       pid_t pid)
{
	struct proctree tree = { .brand = proctree_brand(e->tag, attempt, rank, launch) };
	char own[PLACE_NAME_MAX];

	place_name(own, rank, launch);
	snprintf(tree.marker, sizeof(tree.marker),
		 "FAIRLEAD_REPORT_SOCKET=%.80s/%" PRIu64 "/%s/report", e->run, attempt, own);
	return proctree_owns(&tree, pid);
}

/* The reason first: who sees the stop finds it. A shepherd of an older release stops without it. */
static int local_overdrawn(struct engine *e, uint64_t number, uint32_t index, uint32_t launch,
			   const char *text, struct err *err)
{
	int result = -1;

	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = find_or_say(e, number, err);
	struct rank *rank = attempt && index < attempt->count ? attempt->ranks[index] : NULL;
	if (rank && rank->state == RANK_LIVE && rank->launch == launch) {
		result = place_put(rank->folder, "overdrawn", text, strlen(text), err);
		if (result == 0)
			result = place_put_command(rank->folder, "stop", ++attempt->stop_number, 0,
						   err);
		place_wake(rank->folder);
	} else if (attempt) {
		(void)err_set(err, ERR_NOT_FOUND, "rank %u of attempt %" PRIu64 " is over", index,
			      number);
	}
	pthread_mutex_unlock(&e->lock);
	return result;
}

const struct engine_ops engine_local = {
	.name = "local",
	.open = local_open,
	.close = local_close,
	.adopt = local_adopt,
	.start = local_start,
	.try_start = local_try_start,
	.release = local_release,
	.warn = local_warn,
	.stop = local_stop,
	.resize = local_resize,
	.forget = local_forget,
	.owns = local_owns,
	.overdrawn = local_overdrawn,
};
