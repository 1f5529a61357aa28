/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine wants: files in the task's place. The folder is read whole each time, so nothing
 * depends on the order or the number of wake-ups; numbers seen before are passed over.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/failpoint.h"
#include "engine/local/place.h"
#include "shepherd/shepherd.h"

/* For one that listened and did not go in time: between SIGTERM and SIGKILL. */
enum { LEAVE_GRACE_MS = 5000 };

struct wishes {
	bool go;
	uint64_t warn, stop, world; /* newest number, 0 = none newer than seen */
	int64_t warn_grace_ms, stop_grace_ms; /* stop: the least of the new ones */
};

static void look_at(const struct shepherd *s, const char *name, struct wishes *wishes)
{
	uint64_t warn = place_command_number(name, "warn"),
		 stop = place_command_number(name, "stop"),
		 world = place_command_number(name, "world");

	if (strcmp(name, "go") == 0)
		wishes->go = true;
	if (warn > s->warn_seen && warn > wishes->warn) {
		wishes->warn = warn;
		wishes->warn_grace_ms = place_read_grace(s->folder, name);
	}
	if (world > s->world_seen && world > wishes->world)
		wishes->world = world;
	if (stop > s->stop_seen) {
		int64_t grace = place_read_grace(s->folder, name);

		if (!wishes->stop || grace < wishes->stop_grace_ms)
			wishes->stop_grace_ms = grace;
		if (stop > wishes->stop)
			wishes->stop = stop;
	}
}

static void read_folder(const struct shepherd *s, struct wishes *wishes)
{
	int copy = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		look_at(s, entry->d_name, wishes);
	if (dir)
		closedir(dir);
	else if (copy >= 0)
		close(copy);
}

void control_stop(struct shepherd *s, int64_t grace_ms)
{
	int64_t kill_at = clock_boot_ms() + grace_ms;
	bool first = !s->stopping;

	s->stopping = true;
	if (s->phase == PREPARING || s->phase == WAITING) {
		ending_begin(s);
		return;
	}
	/* A second stop may shorten the grace, never lengthen it. */
	if (first || kill_at < s->kill_at_ms)
		s->kill_at_ms = kill_at;
	if (first && grace_ms > 0) {
		(void)proctree_signal(&s->tree, false, SIGTERM);
		(void)proctree_signal(&s->tree, false,
				      SIGCONT); /* a stopped process can't act on SIGTERM */
	}
}

static void release(struct shepherd *s)
{
	(void)FAILPOINT_RANK("shepherd-go-seen", s->spec.rank);
	s->go_seen = true;
	if (write(s->go_fd, "!", 1) != 1) {
		/* The launcher is gone: its end tells the story. */
	}
	s->phase = STARTING;
	(void)FAILPOINT_RANK("shepherd-released", s->spec.rank);
}

/* A program that is still loading does not catch the signal yet, and would die of it: it is tried
 * again later. */
void control_signal(struct shepherd *s)
{
	if (!s->signal_due || s->phase != RUNNING || s->stopping)
		return;
	s->signal_due = proctree_notify(&s->tree, s->spec.checkpoint_signal) == 0;
}

void control_warn(struct shepherd *s, int64_t grace_ms)
{
	asking_begin(s);
	report_server_notice(s, grace_ms);
	s->signal_due = s->spec.checkpoint_signal != 0;
	control_signal(s);
	if (s->signal_due)
		log_line(
			LOG_WARN,
			"checkpoint signal %d was not sent: no process of the task waits for it yet",
			s->spec.checkpoint_signal);
}

/* Told to leave: who listens has its grace to go by itself; where nobody does the signal says it. */
static void leave_begin(struct shepherd *s, int64_t grace_ms, bool listens)
{
	if (s->stopping || s->leave_at_ms)
		return;
	if (!listens || s->phase < RUNNING) {
		control_stop(s, grace_ms);
		return;
	}
	s->leave_at_ms = clock_boot_ms() + grace_ms;
}

void control_leave(struct shepherd *s, int64_t now)
{
	if (!s->leave_at_ms || now < s->leave_at_ms || s->stopping)
		return;
	control_stop(s, LEAVE_GRACE_MS);
}

static void world_changed(struct shepherd *s, uint64_t number)
{
	char name[40];
	AUTO_BUF text = BUF_INIT;
	long long grace_ms = 0;
	int leaves = 0, at = 0;

	snprintf(name, sizeof(name), "world.%llu", (unsigned long long)number);
	if (place_read(s->folder, name, &text, NULL) != 0 ||
	    sscanf(buf_text(&text), "%lld %d\n%n", &grace_ms, &leaves, &at) != 2 || !at)
		return;
	s->world_seen = number;
	int told = report_server_tell(s, buf_text(&text) + at, text.size - (size_t)at);
	if (leaves)
		leave_begin(s, grace_ms > 0 ? grace_ms : 0, told > 0);
}

/* One that ended by itself meanwhile ended as it did. */
static void overdrawn_look(struct shepherd *s)
{
	AUTO_BUF text = BUF_INIT;

	if (s->task_over || s->phase != RUNNING ||
	    place_read(s->folder, "overdrawn", &text, NULL) != 0)
		return;
	s->overdrawn = true;
	snprintf(s->end.text, sizeof(s->end.text), "%.255s", buf_text(&text));
}

void control_look(struct shepherd *s)
{
	struct wishes wishes = { 0 };

	read_folder(s, &wishes);
	if (wishes.stop) {
		s->stop_seen = wishes.stop;
		(void)FAILPOINT_RANK("shepherd-stop-seen", s->spec.rank);
		overdrawn_look(s);
		control_stop(s, wishes.stop_grace_ms);
	}
	if (wishes.go && s->phase == WAITING)
		release(s);
	if (wishes.world && s->phase < ENDING)
		world_changed(s, wishes.world);
	/* One that comes while the command is being started is kept until it runs. */
	if (wishes.warn && s->phase >= RUNNING) {
		s->warn_seen = wishes.warn;
		if (s->phase == RUNNING && !s->stopping)
			control_warn(s, wishes.warn_grace_ms);
	}
}
