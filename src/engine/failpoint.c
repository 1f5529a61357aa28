/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/failpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#ifdef FAIRLEAD_FAILPOINTS
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"

enum { POINTS_MAX = 16, POINT_NAME_MAX = 64 };

struct point {
	char name[POINT_NAME_MAX];
	char action[8];
	int64_t rank;
	long count; /* acts at this hit */
	atomic_long hits;
};

static struct point points[POINTS_MAX];
static size_t point_count;
static pthread_once_t points_once = PTHREAD_ONCE_INIT;

static void point_add(char *text)
{
	struct point *point = &points[point_count];
	char *action = strchr(text, ':');

	CHECK(point_count < POINTS_MAX && action);
	*action++ = '\0';
	char *count = strchr(action, ':');
	if (count)
		*count++ = '\0';
	char *rank = strchr(text, '@');
	if (rank)
		*rank++ = '\0';
	snprintf(point->name, sizeof(point->name), "%.63s", text);
	snprintf(point->action, sizeof(point->action), "%s", action);
	point->rank = rank ? strtol(rank, NULL, 10) : FAILPOINT_NO_RANK;
	point->count = count ? strtol(count, NULL, 10) : 1;
	point_count++;
}

static void points_read(void)
{
	const char *text = getenv("FAIRLEAD_FAILPOINT");
	char copy[POINTS_MAX * POINT_NAME_MAX];

	snprintf(copy, sizeof(copy), "%s", text ? text : "");
	for (char *at = copy, *next; at && *at; at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = '\0';
		point_add(at);
	}
}

static void close_opened(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Opening a FIFO for reading waits for a writer. A file beside it says that somebody waits, or did. */
static void wait_at_gate(void)
{
	const char *gate = getenv("FAIRLEAD_FAILPOINT_GATE");
	char held[PATH_MAX];

	if (!gate)
		return;
	snprintf(held, sizeof(held), "%s.held", gate);
	close_opened(open(held, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	close_opened(open(gate, O_RDONLY | O_CLOEXEC));
}

bool failpoint_hit(const char *name, int64_t rank)
{
	bool error = false;

	pthread_once(&points_once, points_read);
	for (size_t i = 0; i < point_count; i++) {
		struct point *point = &points[i];

		if (strcmp(point->name, name) != 0)
			continue;
		if (point->rank != FAILPOINT_NO_RANK && point->rank != rank)
			continue;
		if (atomic_fetch_add(&point->hits, 1) + 1 != point->count)
			continue;
		if (strcmp(point->action, "kill") == 0)
			kill(getpid(), SIGKILL);
		else if (strcmp(point->action, "pause") == 0)
			(void)tgkill(
				getpid(), gettid(),
				SIGSTOP); /* this thread goes no further, which kill() leaves open */
		else if (strcmp(point->action, "hold") == 0)
			wait_at_gate();
		else
			error = true;
	}
	return error;
}
#endif

void failpoint_boot_id(char out[40])
{
#ifdef FAIRLEAD_FAILPOINTS
	const char *forced = getenv("FAIRLEAD_TEST_BOOT_ID");

	if (forced) {
		snprintf(out, 40, "%s", forced);
		return;
	}
#endif
	clock_boot_id(out);
}
