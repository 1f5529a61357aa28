/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer for a data folder: journal/lock, held with flock for as long as the journal is open. The
 * kernel lets go when the process ends in any way; the process id inside is for messages, and for one case: a child that
 * the holder was just spawning has the lock too, until its exec some moments later. So a lock whose holder is gone, or is
 * this process itself (which has closed its journal and reads it back), is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/journal_internal.h"

enum { LOCK_TRIES = 400, LOCK_TRY_US = 5000 };

static const char *user_name(uid_t uid, char *room, size_t size, struct passwd *entry)
{
	struct passwd *found = NULL;
	if (getpwuid_r(uid, entry, room, size, &found) == 0 && found)
		return found->pw_name;
	return "unknown";
}

/* Who can write to a folder can exchange what is in it. */
static int writers_check(const char *folder, struct err *err)
{
	struct stat st;
	if (stat(folder, &st) < 0 || !(st.st_mode & 0022))
		return 0;
	return err_set(
		err, ERR_FORBIDDEN,
		"other accounts can write to \"%s\" (mode %04o), and so exchange what the daemon relies on: run "
		"`chmod go-w %s` if nobody has, or choose another folder with --data",
		folder, (unsigned)(st.st_mode & 07777), folder);
}

int journal_owner_check(const struct journal *journal, struct err *err)
{
	struct stat st;
	if (!journal->io->real_paths || journal->read_only)
		return 0;
	if (writers_check(journal->folder, err) < 0 || writers_check(journal->path, err) < 0)
		return -(int)err->code;
	if (stat(journal->path, &st) < 0 && stat(journal->folder, &st) < 0)
		return 0; /* told by what comes next */
	if (st.st_uid == geteuid())
		return 0;
	char rooms[2][1024];
	struct passwd entries[2];
	return err_set(
		err, ERR_FORBIDDEN,
		"data folder \"%s\" belongs to user %s (id %u), and this program runs as %s (id %u): start it as that user, "
		"or choose another folder with --data",
		journal->folder, user_name(st.st_uid, rooms[0], sizeof(rooms[0]), &entries[0]),
		(unsigned)st.st_uid, user_name(geteuid(), rooms[1], sizeof(rooms[1]), &entries[1]),
		(unsigned)geteuid());
}

/* The id that the holder wrote; 0 when it has not yet. */
static long lock_holder(int fd)
{
	char text[32] = "";
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
	return got > 0 ? strtol(text, NULL, 10) : 0;
}

static int lock_try(int fd)
{
	const struct timespec pause = { .tv_nsec = LOCK_TRY_US * 1000L };
	for (int i = 0; i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK)
			return -1;
		long holder = lock_holder(fd);
		if (holder != (long)getpid() &&
		    (holder <= 0 || kill((pid_t)holder, 0) == 0 || errno != ESRCH))
			break;
		nanosleep(&pause, NULL);
	}
	return flock(fd, LOCK_EX | LOCK_NB);
}

int journal_lock_take(struct journal *journal, struct err *err)
{
	char path[PATH_MAX], text[32];
	if (!journal->io->real_paths || journal->read_only)
		return 0;
	journal_file(journal, "lock", path);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "cannot open the lock of data folder \"%s\"",
				 journal->folder);
	if (lock_try(fd) < 0) {
		int error = errno;
		long holder = lock_holder(fd);
		close(fd);
		if (error != EWOULDBLOCK)
			return err_errno(err, ERR_IO, error, "cannot lock data folder \"%s\"",
					 journal->folder);
		return err_set(
			err, ERR_CONFLICT,
			"data folder \"%s\" is in use by process %ld: stop that daemon first, or choose another folder with --data",
			journal->folder, holder);
	}
	int size = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)size, 0) != size) {
		/* Only the message of a second daemon is poorer. On a full disk that must not stop a restart. */
	}
	journal->lock_fd = fd;
	return 0;
}

void journal_lock_release(struct journal *journal)
{
	if (journal->lock_fd >= 0)
		close(journal->lock_fd);
	journal->lock_fd = -1;
}
