/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a shepherd that was killed: its task must not live on, and the core may think the rank gone
 * only when it is. By group, brand and marker everything that belonged to it is found and killed,
 * until two looks at all processes of the machine find nothing and the groups could be removed
 * (which the kernel allows for empty ones alone).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/failpoint.h"
#include "engine/local/fact_file.h"
#include "engine/local/local.h"
#include "engine/local/place.h"
#include "store/io.h"

enum {
	PASSES_MAX = 200,
	PASS_PAUSE_MS = 10,
	CLEAN_LOOKS = 2,
	BURY_AGAIN_MS = 1000,
	SPEC_MEMORY = 256 << 20,
	FOLDER_DEPTH_MAX = 64 /* tasks make folders in their copy of a snapshot */
};

static void pause_ms(long ms)
{
	struct timespec pause = { .tv_nsec = ms * 1000000 };

	nanosleep(&pause, NULL);
}

/* False: something is still there (it may sit in the kernel, where no signal reaches it). */
static bool kill_leftovers(const struct task_spec *spec)
{
	struct proctree tree = { .brand = spec->brand, .cgroups = &spec->cgroups };
	int clean = 0;

	snprintf(tree.marker, sizeof(tree.marker), "FAIRLEAD_REPORT_SOCKET=%.120s/report",
		 spec->run);
	for (int pass = 0; pass < PASSES_MAX; pass++) {
		clean = proctree_signal(&tree, true, SIGKILL) == 0 ? clean + 1 : 0;
		if (clean >= CLEAN_LOOKS && cgroup_remove(&spec->cgroups) == 0)
			return true;
		if (!clean || pass > CLEAN_LOOKS)
			pause_ms(PASS_PAUSE_MS);
	}
	return false;
}

/* The shepherd may have been killed between writing its record and renaming it: then the true end
 * is known after all. */
static bool salvage(const struct rank *rank, struct engine_fact *ret, struct err *err)
{
	return place_read_fact(rank->folder, "exit.tmp", ret, err) == 0 &&
	       ret->kind == ENGINE_EXITED && ret->attempt == rank->attempt->number &&
	       ret->rank == rank->number;
}

static void set_lost(const struct rank *rank, struct engine_fact *ret)
{
	*ret = (struct engine_fact){
		.kind = ENGINE_EXITED,
		.attempt = rank->attempt->number,
		.rank = rank->number,
		.time_ms = clock_wall_ms(),
		.cause = ENGINE_CAUSE_LOST,
		.never_ran = !place_has(rank->folder, "go"),
		.text = "its shepherd was killed; nothing of it is left",
	};
}

/* Whether the task's shepherd lives in the place that its specification names: then this data folder is a copy of
 * another one, whose work it must neither kill nor run a second time. */
static bool lives_elsewhere(const struct rank *rank, const struct task_spec *spec)
{
	char attempts[PATH_MAX], path[PATH_MAX];
	size_t length = strlen(spec->logs);
	struct stat here, there;

	if (length < strlen("/logs") || strcmp(spec->logs + length - strlen("/logs"), "/logs") != 0)
		return false;
	snprintf(attempts, sizeof(attempts), "%.*s/attempts", (int)(length - strlen("/logs")),
		 spec->logs);
	int folder = place_path(path, attempts, rank->attempt->number, rank->number, rank->launch)
			     ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
			     : -1;
	if (folder < 0)
		return false;
	bool other = fstat(folder, &there) == 0 && fstat(rank->folder, &here) == 0 &&
		     (here.st_ino != there.st_ino || here.st_dev != there.st_dev);
	bool lives = other && place_is_locked(folder);
	close(folder);
	if (lives && !atomic_exchange(&rank->attempt->elsewhere_said, true))
		log_line(
			LOG_ERROR,
			"attempt %" PRIu64
			" runs under the data folder %.*s, of which this one is a copy: it is left alone, and counts as running here until it ends there",
			rank->attempt->number, (int)(length - strlen("/logs")), spec->logs);
	return lives;
}

static bool clear_away(const struct rank *rank)
{
	AUTO_BUF text = BUF_INIT;
	struct arena arena;
	struct task_spec spec;
	struct err err;
	bool cleared = true;
	const int rc = place_read(rank->folder, "spec", &text, &err);

	if (rc < 0 && fault_blinds(&err))
		return false; /* what was started there is not known now */
	arena_init(&arena, SPEC_MEMORY);
	if (rc == 0) {
		/* An unreadable spec leaves the groups and the brand unknown: nothing may be
		 * claimed then. */
		if (spec_parse(buf_text(&text), text.size, &arena, &spec, &err) < 0) {
			log_line(LOG_ERROR,
				 "attempt %" PRIu64 " rank %u: %s; its processes can't be found",
				 rank->attempt->number, rank->number, err.text);
			cleared = false;
		} else {
			cleared = !lives_elsewhere(rank, &spec) && kill_leftovers(&spec);
		}
		explicit_bzero(text.data, text.size);
	}
	arena_deinit(&arena);
	return cleared;
}

void bury_rank(struct engine *e, struct rank *rank)
{
	char path[PATH_MAX];
	struct engine_fact fact;
	struct err err = { 0 };

	(void)FAILPOINT_RANK("engine-bury", rank->number);
	const bool cleared = clear_away(rank), saved = cleared && salvage(rank, &fact, &err);
	if (!cleared || (!saved && fault_blinds(&err))) {
		pthread_mutex_lock(&e->lock);
		rank->bury_again_ms = clock_boot_ms() + BURY_AGAIN_MS;
		pthread_mutex_unlock(&e->lock);
		return;
	}
	if (rank->unborn && !saved) {
		pthread_mutex_lock(&e->lock);
		if (rank->attempt->resized && (rank->attempt->ending || rank->attempt->stopping))
			rank_never(e, rank);
		else if (rank->again)
			rank_again(e, rank);
		else
			rank_gone(e, rank, "it was not prepared to its end");
		pthread_mutex_unlock(&e->lock);
		return;
	}
	if (!saved)
		set_lost(rank, &fact);
	if (place_path(path, e->attempts, rank->attempt->number, rank->number, rank->launch) &&
	    place_put_exit(io_real(), path, &fact, NULL) < 0)
		log_line(LOG_WARN,
			 "attempt %" PRIu64
			 " rank %u: its end could not be written; it is reported all the same",
			 rank->attempt->number, rank->number);
	(void)FAILPOINT_RANK("engine-buried", rank->number);
	pthread_mutex_lock(&e->lock);
	rank_say(e, rank, &fact);
	rank_end(e, rank);
	pthread_mutex_unlock(&e->lock);
}

/* --- forgetting --- */

/*
 * A folder to be emptied; -1 = it stays as it is. A user who moves a folder into a copy of a snapshot must not have removed for him what he could not
 * remove: in a user's folder, those of other owners are not entered. Nor is what is mounted there.
 */
static int open_to_empty(int parent, const char *name, const struct stat *above, struct stat *ret,
			 bool *ret_blind)
{
	int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret_blind |= folder < 0 && fault_blinds_errno(errno);
	if (folder >= 0 && fstat(folder, ret) == 0 && ret->st_dev == above->st_dev &&
	    (above->st_uid == geteuid() || above->st_uid == ret->st_uid))
		return folder;
	if (folder >= 0)
		close(folder);
	return -1;
}

/* ret_blind is set where something could not be looked at now. */
static void remove_below(int parent, const char *name, const struct stat *above, int depth,
			 bool *ret_blind)
{
	struct dirent *entry;
	struct stat st;
	int folder =
		depth < FOLDER_DEPTH_MAX ? open_to_empty(parent, name, above, &st, ret_blind) : -1;
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);

	while (dir && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(folder, entry->d_name, 0) < 0 && (errno == EISDIR || errno == EPERM))
			remove_below(folder, entry->d_name, &st, depth + 1, ret_blind);
	}
	if (dir)
		closedir(dir);
	else if (folder >= 0)
		close(folder);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

static bool remove_folder(int parent, const char *name)
{
	struct stat above;
	bool blind = false;

	if (fstat(parent, &above) == 0)
		remove_below(parent, name, &above, 0, &blind);
	return !blind;
}

void remove_folder_at(int parent, const char *name)
{
	(void)remove_folder(parent, name);
}

/* A shepherd that wrote its record still holds its lock for a moment; its folder stays until then.
 * If it was killed in that moment, its groups are still there (they are empty: the record says so). */
static bool leave_rank(const char *path)
{
	AUTO_BUF text = BUF_INIT;
	struct arena arena;
	struct task_spec spec;
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (folder < 0)
		return !fault_blinds_errno(errno);
	for (int pass = 0; pass < PASSES_MAX && place_is_locked(folder); pass++)
		pause_ms(PASS_PAUSE_MS);
	arena_init(&arena, SPEC_MEMORY);
	if (place_read(folder, "spec", &text, NULL) == 0 &&
	    spec_parse(buf_text(&text), text.size, &arena, &spec, NULL) == 0 &&
	    cgroup_remove(&spec.cgroups) != 0)
		log_line(LOG_WARN, "a control group of %s could not be removed: %s", path,
			 spec.cgroups.tree);
	if (text.size)
		explicit_bzero(text.data, text.size);
	arena_deinit(&arena);
	close(folder);
	return true;
}

static int open_parent(const char *path, bool *done)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*done &= folder >= 0 || !fault_blinds_errno(errno);
	return folder;
}

/* By rename first: a crash in between leaves ".old-N", which the next daemon removes, never half an
 * attempt. */
bool forget_attempt(struct engine *e, struct attempt *attempt)
{
	char name[40], old[48], path[PATH_MAX];
	bool done = true;
	int attempts = open_parent(e->attempts, &done), run = open_parent(e->run, &done);

	for (uint32_t i = 0; i < attempt->count; i++)
		if (place_path(path, e->attempts, attempt->number, i, attempt->ranks[i]->launch))
			done &= leave_rank(path);
	snprintf(name, sizeof(name), "%" PRIu64, attempt->number);
	snprintf(old, sizeof(old), ".old-%s", name);
	if (done && attempts >= 0) {
		if (renameat(attempts, name, attempts, old) == 0)
			(void)FAILPOINT("engine-forget-renamed");
		done = remove_folder(attempts, old); /* the second time it has that name already */
	}
	if (done && run >= 0)
		done = remove_folder(run, name);
	if (done && run >= 0 && place_has(run, name))
		log_line(
			LOG_WARN,
			"%s/%s could not be removed whole: what other accounts own in it, or what is nested too deeply, stays; look through it and remove it",
			e->run, name);
	if (attempts >= 0)
		close(attempts);
	if (run >= 0)
		close(run);
	return done;
}
