/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From files to facts. inotify says that something changed in a place, a pidfd that a shepherd of
 * ours died; both only cause rank_scan, which reads what is there. A slow re-scan does the same for
 * all, so a lost event costs a delay.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "engine/failpoint.h"
#include "engine/local/fact_file.h"
#include "engine/local/local.h"
#include "engine/local/place.h"

enum { TAG_INOTIFY = 1, TAG_WAKE = 2, EVENTS_MAX = 64, REPORTS_READ = 64 << 10 };
#define TAG_CHILD (UINT64_C(1) << 32) /* | pidfd */

/* --- watching --- */

int rank_watch(struct engine *e, struct rank *rank, struct err *err)
{
	char path[PATH_MAX];

	if (!place_path(path, e->attempts, rank->attempt->number, rank->number, rank->launch))
		return err_set(err, ERR_TOO_LARGE, "the path of a task's place is too long");
	rank->watch = inotify_add_watch(e->inotify, path,
					IN_MOVED_TO | IN_MODIFY | IN_CLOSE_WRITE | IN_ONLYDIR |
						IN_DONT_FOLLOW);
	/* ENOSPC is not the disk's here. */
	if (rank->watch < 0 && errno == ENOSPC)
		return fault_watches(err, path);
	if (rank->watch < 0)
		return err_errno(err, ERR_IO, errno, "could not watch %s", path);
	HASH_ADD(hh, e->watched, watch, sizeof(rank->watch), rank);
	return 0;
}

void rank_unwatch(struct engine *e, struct rank *rank)
{
	if (rank->watch < 0)
		return;
	HASH_DELETE(hh, e->watched, rank);
	(void)inotify_rm_watch(e->inotify, rank->watch);
	rank->watch = -1;
}

/* The pidfd tells of the death of our own child at once, and lets us collect it: no zombies in the
 * daemon. */
void watch_shepherd(struct engine *e, const struct rank *rank, pid_t pid)
{
	struct child *child = calloc(1, sizeof(*child));

	CHECK(child);
	*child = (struct child){ .pid = pid,
				 .attempt = rank->attempt->number,
				 .rank = rank->number };
	child->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct epoll_event event = { .events = EPOLLIN,
				     .data.u64 = TAG_CHILD | (uint64_t)child->fd };
	if (child->fd < 0 || epoll_ctl(e->epoll, EPOLL_CTL_ADD, child->fd, &event) < 0) {
		if (child->fd >= 0)
			close(child->fd);
		free(child); /* the re-scan will see the free lock */
		return;
	}
	HASH_ADD(hh, e->children, fd, sizeof(child->fd), child);
}

/* --- reading --- */

/* A file that holds a fact of this rank. An unreadable one counts as not there: the end will be
 * told all the same. ret_blind: it could not be looked at now. */
static bool read_fact(struct rank *rank, const char *name, enum engine_fact_kind kind,
		      struct engine_fact *ret, bool *ret_blind)
{
	struct err err = { 0 };
	const int rc = place_read_fact(rank->folder, name, ret, &err);

	*ret_blind = rc < 0 && fault_blinds(&err);
	return rc == 0 && ret->kind == kind && ret->attempt == rank->attempt->number &&
	       ret->rank == rank->number;
}

/* False: it could not be looked at now. The same of the next ones. */
static bool say_once(struct engine *e, struct rank *rank, const char *name,
		     enum engine_fact_kind kind, bool *said)
{
	struct engine_fact fact;
	bool blind = false;

	if (*said || !read_fact(rank, name, kind, &fact, &blind))
		return !blind;
	*said = true;
	rank_say(e, rank, &fact);
	return true;
}

static void say_report(struct engine *e, struct rank *rank, const char *line, size_t size)
{
	struct engine_fact fact;

	if (fact_parse(line, size, &fact, NULL) < 0 || fact.kind != ENGINE_REPORT ||
	    fact.number <= rank->report_number)
		return;
	rank->report_number = fact.number;
	fact.attempt = rank->attempt->number;
	fact.rank = rank->number;
	rank_say(e, rank, &fact);
}

/* New whole lines. A compacted file is a new one (its inode differs) and is read from its start. */
static bool say_reports(struct engine *e, struct rank *rank)
{
	static char room[REPORTS_READ]; /* the mutex is held */
	struct stat st;
	ssize_t n;
	int fd = openat(rank->folder, "reports", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return !fault_blinds_errno(errno);
	if (fstat(fd, &st) == 0 &&
	    (st.st_ino != rank->reports_inode || st.st_size < rank->reports_at)) {
		rank->reports_inode = st.st_ino;
		rank->reports_at = 0;
	}
	while ((n = pread(fd, room, sizeof(room), rank->reports_at)) > 0) {
		const char *at = room, *end;

		while ((end = memchr(at, '\n', (size_t)(room + n - at)))) {
			say_report(e, rank, at, (size_t)(end - at));
			at = end + 1;
		}
		if (at == room)
			break; /* an unfinished line: the rest comes */
		rank->reports_at += at - room;
	}
	close(fd);
	return true;
}

static void say_exit(struct engine *e, struct rank *rank)
{
	struct engine_fact fact;
	bool blind;

	if (!read_fact(rank, "exit", ENGINE_EXITED, &fact, &blind)) {
		if (blind)
			return; /* how it ended is there to be read: work that is done must not run again */
		fact = (struct engine_fact){
			.kind = ENGINE_EXITED,
			.attempt = rank->attempt->number,
			.rank = rank->number,
			.time_ms = clock_wall_ms(),
			.cause = ENGINE_CAUSE_LOST,
			.text = "its exit record can't be read",
		};
	}
	(void)FAILPOINT_RANK("engine-exit-seen", rank->number);
	rank_say(e, rank, &fact);
	rank_end(e, rank);
}

bool rank_tell(struct engine *e, struct rank *rank, bool all)
{
	bool seen = say_once(e, rank, "ready", ENGINE_READY, &rank->ready_said);

	seen &= say_once(e, rank, "started", ENGINE_STARTED, &rank->started_said);
	if (rank->started_said || all)
		seen &= say_reports(e, rank);
	return seen;
}

/* What is looked at first may only grow while the rest is read: the lock before `exit`, `exit`
 * before the others, so an end is told after everything that came before it. */
void rank_scan(struct engine *e, struct rank *rank)
{
	if (rank->state != RANK_LIVE)
		return;
	bool locked = place_is_locked(rank->folder);
	bool over = place_has(rank->folder, "exit");

	if (!rank_tell(e, rank, over || !locked))
		return; /* an end is told after what came before it: the next scan tells all */
	if (locked && rank->ready_said)
		rank_born(rank);
	if (!over && locked)
		gate_look(e, rank->attempt);
	if (!over && locked && rank->ready_said && rank->attempt->open && !rank->released &&
	    !rank->attempt->stopping && rank_go(rank, NULL) < 0) {
		/* a full disk, say: the next scan tries again */
	}
	if (over) {
		say_exit(e, rank);
	} else if (!locked) {
		rank->state = RANK_BURYING;
		engine_queue(e, JOB_BURY, rank->attempt, rank, NULL);
	}
}

/* --- the thread --- */

static bool is_of_interest(const char *name)
{
	return strcmp(name, "ready") == 0 || strcmp(name, "started") == 0 ||
	       strcmp(name, "exit") == 0 || strcmp(name, "reports") == 0 ||
	       strcmp(name, "lock") == 0;
}

static void rank_scan_again(struct engine *e, struct rank *rank)
{
	if (rank->unseen)
		adopt_rank(e, rank);
	if (rank->state == RANK_BURYING && rank->bury_again_ms &&
	    clock_boot_ms() >= rank->bury_again_ms) {
		rank->bury_again_ms = 0;
		engine_queue(e, JOB_BURY, rank->attempt, rank, NULL);
	}
	rank_scan(e, rank);
}

static void scan_all(struct engine *e)
{
	struct attempt *attempt, *next;

	HASH_ITER(hh, e->table, attempt, next)
	{
		if (attempt->forget_again_ms && clock_boot_ms() >= attempt->forget_again_ms) {
			attempt->forget_again_ms = 0;
			engine_queue(e, JOB_FORGET, attempt, NULL, NULL);
		}
		for (uint32_t i = 0; i < attempt->count; i++)
			rank_scan_again(e, attempt->ranks[i]);
	}
}

static void take_event(struct engine *e, const struct inotify_event *event)
{
	struct rank *rank;

	if (event->mask & IN_Q_OVERFLOW) {
		scan_all(e);
		return;
	}
	if (!event->len || !is_of_interest(event->name))
		return;
	HASH_FIND(hh, e->watched, &event->wd, sizeof(event->wd), rank);
	if (!rank)
		return;
	/* The kernel tells of the closing just before it lets go of the lock. */
	if (strcmp(event->name, "lock") == 0)
		rank->lock_looks = LOCK_LOOKS;
	rank_scan(e, rank);
}

static void read_inotify(struct engine *e)
{
	char room[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n;

	while ((n = read(e->inotify, room, sizeof(room))) > 0) {
		for (const char *at = room; at < room + n;) {
			const struct inotify_event *event =
				(const struct inotify_event *)(const void *)at;

			take_event(e, event);
			at += sizeof(*event) + event->len;
		}
	}
}

static void shepherd_died(struct engine *e, int fd)
{
	struct child *child;
	int status;

	HASH_FIND(hh, e->children, &fd, sizeof(fd), child);
	if (!child || waitpid(child->pid, &status, WNOHANG) == 0)
		return;
	struct attempt *attempt = attempt_find(e, child->attempt);
	uint32_t rank = child->rank;
	HASH_DEL(e->children, child);
	close(child->fd);
	free(child);
	if (attempt && rank < attempt->count)
		rank_scan(e, attempt->ranks[rank]);
}

/* Ranks whose lock was closed; true while some have to be looked at again. */
static bool look_at_locks(struct engine *e)
{
	struct rank *rank, *next;
	bool again = false;

	HASH_ITER(hh, e->watched, rank, next)
	{
		if (!rank->lock_looks)
			continue;
		rank->lock_looks--;
		again |= rank->lock_looks > 0;
		rank_scan(e, rank);
	}
	return again;
}

void *watcher_run(void *engine)
{
	struct engine *e = engine;
	struct epoll_event events[EVENTS_MAX];
	int64_t rescan_at = clock_boot_ms() + RESCAN_MS;
	bool looks = false;

	for (;;) {
		int64_t wait = rescan_at - clock_boot_ms();
		if (looks && wait > LOCK_LOOK_MS)
			wait = LOCK_LOOK_MS;
		int count = epoll_wait(e->epoll, events, EVENTS_MAX, wait > 0 ? (int)wait : 0);

		pthread_mutex_lock(&e->lock);
		for (int i = 0; i < count && !e->closing; i++) {
			if (events[i].data.u64 == TAG_INOTIFY)
				read_inotify(e);
			else if (events[i].data.u64 != TAG_WAKE)
				shepherd_died(e, (int)(events[i].data.u64 & UINT32_MAX));
		}
		if (e->closing) {
			pthread_mutex_unlock(&e->lock);
			return NULL;
		}
		looks = look_at_locks(e);
		if (clock_boot_ms() >= rescan_at) {
			scan_all(e);
			rescan_at = clock_boot_ms() + RESCAN_MS;
		}
		pthread_mutex_unlock(&e->lock);
	}
}
