/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the machine could start a task now: the steps of a start (local_prepare.c), with an empty place and a shepherd that has
 * none. Nothing of it stays.
 */
#include <fcntl.h>
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "engine/failpoint.h"
#include "engine/local/local.h"
#include "engine/local/place.h"
#include "engine/own_folder.h"
#include "store/io.h"

/* No attempt has this name: it is no number. */
#define TRY_NAME "try"
enum { TRY_BYTES = 4096 };

static int try_files(const char *path, struct err *err)
{
	static const char nothing[TRY_BYTES];
	int rc = place_put_durable(io_real(), path, "spec", nothing, sizeof(nothing), err);

	return rc < 0 ? rc : place_reserve_exit(io_real(), path, err);
}

static int try_watch(struct engine *e, const char *path, struct err *err)
{
	/* The watcher knows no rank by this number, and lets what it tells go. */
	const int watch = inotify_add_watch(e->inotify, path, IN_CLOSE_WRITE | IN_ONLYDIR);

	if (watch < 0)
		return errno == ENOSPC ? fault_watches(err, path)
				       : err_errno(err, ERR_IO, errno, "could not watch %s", path);
	(void)inotify_rm_watch(e->inotify, watch);
	return 0;
}

/* The launcher needs a process, two pipes for its words and two for its output, beside the shepherd's own. */
static int try_descriptors(struct err *err)
{
	enum { PAIRS = 4 };
	int pairs[PAIRS][2], made = 0, rc = 0;

	for (; made < PAIRS && rc == 0; made++)
		if (pipe2(pairs[made], O_CLOEXEC) < 0) {
			rc = err_errno(err, ERR_IO, errno, "could not make a pipe");
			break;
		}
	while (made-- > 0) {
		close(pairs[made][0]);
		close(pairs[made][1]);
	}
	return rc;
}

/* Without a place the program ends at once. */
static int try_process(const struct engine *e, struct err *err)
{
	char *argv[] = { (char *)(uintptr_t)e->shepherd, NULL }, *none[] = { NULL };
	posix_spawn_file_actions_t actions;
	int error, status;
	pid_t pid;

	CHECK(posix_spawn_file_actions_init(&actions) == 0);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		CHECK(posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0) == 0);
	error = posix_spawn(&pid, e->shepherd, &actions, NULL, argv, none);
	posix_spawn_file_actions_destroy(&actions);
	if (error)
		return err_errno(err, ERR_IO, error, "could not start %s", e->shepherd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return 0;
}

static int try_place(struct engine *e, int attempts, const char *path, struct err *err)
{
	int place = own_folder_at(attempts, TRY_NAME, 0700, OWN_FOLDER_KEEP, err), lock, rc;

	if (place < 0)
		return place;
	rc = try_files(path, err);
	lock = rc < 0 ? rc : place_lock(place, err);
	rc = lock < 0 ? lock : try_watch(e, path, err);
	if (rc == 0)
		rc = try_descriptors(err);
	if (rc == 0)
		rc = try_process(e, err);
	if (lock >= 0)
		close(lock);
	close(place);
	return rc;
}

static int try_run(const struct engine *e, struct err *err)
{
	int run = own_folder_open(e->run, err), place, rc;

	if (run < 0)
		return run;
	place = own_folder_at(run, TRY_NAME, 0700, OWN_FOLDER_KEEP, err);
	rc = place < 0 ? place : place_put(place, "world", "", 0, err);
	if (place >= 0)
		close(place);
	remove_folder_at(run, TRY_NAME);
	close(run);
	return rc;
}

void try_start(struct engine *e)
{
	char path[PATH_MAX];
	struct err err = { 0 };
	int attempts = own_folder_open(e->attempts, &err), rc = attempts;

	snprintf(path, sizeof(path), "%.4000s/" TRY_NAME, e->attempts);
	if (attempts >= 0) {
		remove_folder_at(attempts, TRY_NAME);
		rc = try_place(e, attempts, path, &err);
		remove_folder_at(attempts, TRY_NAME);
		close(attempts);
	}
	if (rc >= 0)
		rc = try_run(e, &err);
	if (FAILPOINT("engine-try"))
		rc = err_errno(&err, ERR_IO, EIO, "a start was made to fail by a test");
	e->options.tried(e->options.context, rc < 0 ? &err : NULL);
}
