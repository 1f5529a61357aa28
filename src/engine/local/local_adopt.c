/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a restart: the attempts' folders against the list of what is live in the journal.
 *
 *	in both		each rank is told as found: READY, STARTED, REPORTs and EXITED from its
 *			files; a free lock without `exit` means a killed shepherd (buried, then told
 *			LOST), or, without `go`, a place half made (GONE, or made again by start); a
 *			spec of an earlier boot means GONE
 *	only listed	GONE for each rank
 *	only a folder	stale: stopped at once and cleared away, without facts
 *
 * A lock that is held says that the rank's shepherd lives, or that a child of the dead daemon has not come to
 * its exec yet: it has a copy of every descriptor that was open at its fork, and outlives the daemon. It may be the
 * rank's own child, which becomes its shepherd, or one of another rank's, which lets go of the lock then. So a rank
 * whose shepherd was not seen (by `ready`) is still taken for half made when its lock comes free.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/failpoint.h"
#include "engine/local/local.h"
#include "engine/local/place.h"

enum { SPEC_MEMORY = 256 << 20 };

enum spec_look { SPEC_NONE, SPEC_EARLIER_BOOT, SPEC_HERE, SPEC_UNSEEN };

/* What has to be known of a spec here; an unreadable one counts as of this boot: the careful
 * reading. One that could not be looked at now is looked at later. */
static enum spec_look look_at_spec(const struct engine *e, struct rank *rank)
{
	AUTO_BUF text = BUF_INIT;
	struct arena arena;
	struct task_spec spec;
	enum spec_look look = SPEC_HERE;
	struct err err = { 0 };
	const int rc = place_read(rank->folder, "spec", &text, &err);

	if (rc == 1)
		return SPEC_NONE;
	if (rc < 0 && fault_blinds(&err))
		return SPEC_UNSEEN;
	arena_init(&arena, SPEC_MEMORY);
	if (text.size && spec_parse(buf_text(&text), text.size, &arena, &spec, NULL) == 0) {
		rank->attempt->job = spec.job;
		rank->attempt->port = spec.port;
		if (strcmp(spec.boot, e->boot) != 0)
			look = SPEC_EARLIER_BOOT;
		explicit_bzero(text.data, text.size);
	}
	arena_deinit(&arena);
	return look;
}

/* Of an earlier boot: nothing of it can live. What it reported and how it ended, if it did, stays
 * true. */
static void adopt_old(struct engine *e, struct rank *rank)
{
	if (place_has(rank->folder, "exit")) {
		rank->state = RANK_LIVE;
		rank_scan(e, rank);
		return;
	}
	rank->unseen = !rank_tell(e, rank, true);
	if (!rank->unseen)
		rank_gone(e, rank, "the machine was restarted");
}

static enum spec_look open_place(const struct engine *e, struct rank *rank)
{
	char path[PATH_MAX];

	if (rank->folder >= 0)
		close(rank->folder);
	rank->folder = -1;
	if (!place_path(path, e->attempts, rank->attempt->number, rank->number, rank->launch))
		return SPEC_NONE;
	rank->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (rank->folder >= 0)
		return look_at_spec(e, rank);
	return fault_blinds_errno(errno) ? SPEC_UNSEEN : SPEC_NONE;
}

/* Start has come for it, or will not come again: what nobody ever began is begun. */
static void adopt_nothing(struct engine *e, struct rank *rank)
{
	if (rank->again)
		rank_again(e, rank);
	else
		rank_gone(e, rank, "it was never prepared");
}

void adopt_rank(struct engine *e, struct rank *rank)
{
	struct attempt *attempt = rank->attempt;
	enum spec_look look = open_place(e, rank);

	rank->unseen = look == SPEC_UNSEEN;
	if (rank->unseen)
		return;
	if (look == SPEC_NONE && !(rank->folder >= 0 && place_has(rank->folder, "exit"))) {
		adopt_nothing(e, rank);
		return;
	}
	rank->released = place_has(rank->folder, "go");
	attempt->open |= rank->released;
	uint64_t warn = place_newest_command(rank->folder, "warn"),
		 stop = place_newest_command(rank->folder, "stop");
	if (warn > attempt->warn_number)
		attempt->warn_number = warn;
	if (stop > attempt->stop_number)
		attempt->stop_number = stop;
	attempt->stopping |= stop > 0;
	if (look == SPEC_EARLIER_BOOT) {
		adopt_old(e, rank);
		return;
	}
	rank->state = RANK_LIVE;
	rank->unborn = !rank->released && !place_has(rank->folder, "exit");
	if (!rank->unborn)
		rank_born(rank);
	if (rank_watch(e, rank, NULL) < 0) {
		/* no more watches: the re-scan serves this one */
	}
	rank_scan(e, rank);
}

static void adopt_gone(struct engine *e, uint64_t number, uint32_t count, const uint32_t *launches)
{
	struct attempt *attempt = attempt_add(e, number, count);

	attempt->adopted = true;
	for (uint32_t i = 0; i < count; i++) {
		attempt->ranks[i]->launch = launches ? launches[i] : 0;
		rank_gone(e, attempt->ranks[i], "it was never prepared");
	}
}

/* Highest rank that has a folder, plus one. Negative: it can't be looked at, and may hold live tasks. */
static int64_t count_ranks(const struct engine *e, uint64_t number)
{
	char path[PATH_MAX];
	uint32_t count = 0;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%.4000s/%" PRIu64, e->attempts, number);
	DIR *dir = opendir(path);
	if (!dir)
		return -1;
	while ((entry = readdir(dir))) {
		char *end;
		unsigned long rank = strtoul(entry->d_name, &end, 10);

		if (*end == '.') /* started anew */
			(void)strtoul(end + 1, &end, 10);
		if (*end == '\0' && end != entry->d_name && rank < ENGINE_TASKS_MAX &&
		    rank >= count)
			count = (uint32_t)rank + 1;
	}
	closedir(dir);
	return count;
}

/* The newest start of each rank has a folder with the greatest number behind the point. */
static void find_launches(const struct engine *e, struct attempt *attempt)
{
	char path[PATH_MAX];
	struct dirent *entry;

	snprintf(path, sizeof(path), "%.4000s/%" PRIu64, e->attempts, attempt->number);
	DIR *dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char *end;
		unsigned long rank = strtoul(entry->d_name, &end, 10), launch;

		if (*end != '.' || end == entry->d_name || rank >= attempt->count)
			continue;
		launch = strtoul(end + 1, &end, 10);
		if (*end == '\0' && launch < UINT32_MAX && launch > attempt->ranks[rank]->launch)
			attempt->ranks[rank]->launch = (uint32_t)launch;
	}
	if (dir)
		closedir(dir);
}

static void adopt_stale(struct engine *e, uint64_t number)
{
	const int64_t count = count_ranks(e, number);
	struct attempt *attempt;

	if (count < 0) {
		log_line(
			LOG_ERROR,
			"%s/%" PRIu64
			", which is not in the journal, can't be looked at: it is left as it is until the next start",
			e->attempts, number);
		return;
	}
	attempt = attempt_add(e, number, (uint32_t)count);
	attempt->stale = attempt->stopping = true;
	find_launches(e, attempt);
	for (uint32_t i = 0; i < attempt->count; i++) {
		struct rank *rank = attempt->ranks[i];

		adopt_rank(e, rank);
		if (rank->state != RANK_LIVE)
			continue;
		if (place_put_command(rank->folder, "stop", ++attempt->stop_number, 0, NULL) < 0) {
			/* a full disk: tried again after the next restart */
		}
		place_wake(rank->folder);
	}
	if (attempt->count == 0 && !attempt->jobs)
		engine_queue(e, JOB_FORGET, attempt, NULL, NULL);
}

static bool is_number(const char *name, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(name, &end, 10);
	return name[0] >= '1' && name[0] <= '9' && *end == '\0' && errno == 0;
}

static void adopt_folder(struct engine *e, int attempts_fd, const char *name,
			 const uint64_t *attempts, const uint32_t *counts,
			 const uint32_t *const *launches, size_t count)
{
	uint64_t number;

	if (strncmp(name, ".old-", 5) == 0) {
		remove_folder_at(attempts_fd, name);
		return;
	}
	if (!is_number(name, &number) || attempt_find(e, number))
		return;
	for (size_t i = 0; i < count; i++) {
		if (attempts[i] != number)
			continue;
		struct attempt *attempt = attempt_add(e, number, counts[i]);

		attempt->adopted = true;
		for (uint32_t rank = 0; rank < attempt->count; rank++) {
			if (launches)
				attempt->ranks[rank]->launch = launches[i][rank];
			adopt_rank(e, attempt->ranks[rank]);
		}
		return;
	}
	adopt_stale(e, number);
}

/* What tasks could see of attempts that are over: the daemon was killed before it removed it, or the folder was another journal's. */
static void clear_run(const struct engine *e, int attempts_fd)
{
	struct dirent *entry;
	uint64_t number;
	DIR *dir = opendir(e->run);

	while (dir && (entry = readdir(dir)))
		if (is_number(entry->d_name, &number) && !place_has(attempts_fd, entry->d_name))
			remove_folder_at(dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

int adopt_all(struct engine *e, const uint64_t *attempts, const uint32_t *task_counts,
	      const uint32_t *const *launches, size_t count, struct err *err)
{
	struct dirent *entry;
	int folder = open(e->attempts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);

	if (!dir) {
		int result = err_errno(err, ERR_IO, errno, "could not read the attempts in %s",
				       e->attempts);

		if (folder >= 0)
			close(folder);
		return result;
	}
	while ((entry = readdir(dir)))
		adopt_folder(e, folder, entry->d_name, attempts, task_counts, launches, count);
	clear_run(e, folder);
	closedir(dir);
	for (size_t i = 0; i < count; i++)
		if (!attempt_find(e, attempts[i]))
			adopt_gone(e, attempts[i], task_counts[i], launches ? launches[i] : NULL);
	return 0;
}
