/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints by the clock: a job that says how often it wants to save its work is asked so long
 * after its newest checkpoint (or its start, or the last time it was asked), in the way in which it
 * is warned before it must make room. It lies here, not in the daemon, so that it goes on while the
 * daemon is down.
 *
 * All ranks of a gang are asked, and often only one of them reports. So the one that does leaves a
 * mark that the shepherds of the others see: the file `checkpointed` beside their folders, whose
 * time is the newest checkpoint's.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "shepherd/shepherd.h"

static bool mark_path(const struct shepherd *s, char out[PATH_MAX])
{
	return snprintf(out, PATH_MAX, "%s/../checkpointed", s->spec.run) < PATH_MAX;
}

void asking_begin(struct shepherd *s)
{
	s->ask_at_ms = clock_boot_ms() + s->spec.checkpoint_every_ms;
}

void asking_reported(struct shepherd *s)
{
	char path[PATH_MAX];
	int fd;

	s->go_at_ms = s->go_at_ms ? clock_boot_ms() : 0; /* it has saved: it may go */
	if (!s->spec.checkpoint_every_ms || !mark_path(s, path))
		return;
	asking_begin(s);
	/* Not kept through a crash: without it one is asked for too early. */
	fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (futimens(fd, NULL) < 0) {
		/* the others ask all the same */
	}
	close(fd);
}

/* Ms since any rank reported one; a great number when none did, or the clock was set back. */
static int64_t newest_age_ms(const struct shepherd *s)
{
	char path[PATH_MAX];
	struct stat st;
	int64_t age;

	if (!mark_path(s, path) || stat(path, &st) < 0)
		return INT64_MAX;
	age = clock_wall_ms() - st.st_mtim.tv_sec * 1000 - st.st_mtim.tv_nsec / 1000000;
	return age < 0 ? INT64_MAX : age;
}

static bool asks(const struct shepherd *s)
{
	/* Not while one is being looked at: it may count in a moment. */
	return s->spec.checkpoint_every_ms && s->phase == RUNNING && !s->stopping &&
	       !s->reports.look;
}

int64_t asking_left_ms(const struct shepherd *s, int64_t now)
{
	return asks(s) ? s->ask_at_ms - now : INT64_MAX;
}

void asking_look(struct shepherd *s, int64_t now)
{
	int64_t age;

	if (!asks(s) || now < s->ask_at_ms)
		return;
	age = newest_age_ms(s);
	if (age < s->spec.checkpoint_every_ms) {
		s->ask_at_ms = now + s->spec.checkpoint_every_ms - age;
		return;
	}
	asking_begin(s);
	report_server_notice(s, -1);
	s->signal_due = s->spec.checkpoint_signal != 0;
	control_signal(s);
}
