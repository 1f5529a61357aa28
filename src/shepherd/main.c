/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairlead-shepherd PLACE: of a task on this machine.
 *
 * It is started by the local engine with: descriptor 3 = the lock of its place, taken already (so
 * there is no moment in which it lives without it), stderr = shepherd.log of the place, an
 * environment of two fixed variables.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/local/place.h"
#include "shepherd/shepherd.h"

static struct shepherd the_shepherd; /* one per process; large buffers, so not on the stack */

static int open_place(struct shepherd *s, const char *path, struct err *err)
{
	AUTO_BUF text = BUF_INIT;

	if (snprintf(s->path, sizeof(s->path), "%s", path) >= (int)sizeof(s->path))
		return err_set(err, ERR_TOO_LARGE, "the path of the task's place is too long");
	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->folder < 0)
		return err_errno(err, ERR_IO, errno, "could not open the task's place %s", path);
	int result = place_read(s->folder, "spec", &text, err);
	if (result != 0)
		return result < 0 ? result
				  : err_set(err, ERR_NOT_FOUND, "there is no spec in %s", path);
	if (spec_parse(buf_text(&text), text.size, &s->arena, &s->spec, err) < 0)
		return -1;
	explicit_bzero(text.data, text.size);
	if (mkfifoat(s->folder, "wake", 0600) < 0 && errno != EEXIST)
		return err_errno(err, ERR_IO, errno, "could not make the wake pipe");
	/* Opened for both: without a writer it would be at its end all the time. */
	s->wake = openat(s->folder, "wake", O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (s->wake < 0)
		return err_errno(err, ERR_IO, errno, "could not open the wake pipe");
	return 0;
}

int main(int argc, char **argv)
{
	struct shepherd *s = &the_shepherd;
	struct err err;

	log_open("fairlead-shepherd", LOG_INFO);
	if (argc != 2) {
		log_line(LOG_ERROR,
			 "this program is started by the daemon: fairlead-shepherd PLACE");
		return 2;
	}
	if (syscall(SYS_close_range, PLACE_LOCK_FD + 1, ~0U, 0) < 0)
		log_line(LOG_WARN, "inherited files could not be closed: %s",
			 err_errno_text(errno));
	(void)fcntl(PLACE_LOCK_FD, F_SETFD, FD_CLOEXEC);
	shepherd_init(s);
	if (shepherd_signals(s, &err) < 0 || open_place(s, argv[1], &err) < 0) {
		log_line(LOG_ERROR, "%s", err.text);
		return 1; /* no exit record: the engine sees the lock free and buries the task as lost, never run */
	}
	shepherd_become(s);
	if (shepherd_prepare(s, &err) < 0)
		ending_fail(s, &err);
	while (s->phase != OVER)
		shepherd_turn(s);
	ending_record(s);
	return 0;
}
