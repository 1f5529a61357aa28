/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine tells, on its way to the core. A reported checkpoint is measured first: the sum of its files is what
 * tells a torn one later. That can take long (many files, a file server that does not answer), and the engine reports with
 * its lock held; so a thread of its own measures, one after the other.
 *
 * Order is kept within an attempt: while one of its checkpoints is being measured, all that is told of this attempt waits
 * behind it. Nobody else's facts do.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/wait.h"
#include "base/check.h"
#include "base/log.h"
#include "daemon/state.h"

enum { CHECKPOINT_FILES_MAX = 100000, CHECKPOINT_DEPTH_MAX = 8 };

/* Bytes of all regular files below fd (which it closes); links are not followed. -1 when it can't be read. */
static int64_t folder_bytes(int fd, int depth, int *files)
{
	DIR *folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return -1;
	}
	int64_t sum = 0;
	const struct dirent *entry;
	while (sum >= 0 && (entry = readdir(folder)) && ++*files < CHECKPOINT_FILES_MAX) {
		struct stat st;
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    fstatat(dirfd(folder), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		if (S_ISREG(st.st_mode)) {
			sum += st.st_size;
		} else if (S_ISDIR(st.st_mode) && depth < CHECKPOINT_DEPTH_MAX) {
			int inner = openat(dirfd(folder), entry->d_name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			int64_t bytes = inner < 0 ? -1 : folder_bytes(inner, depth + 1, files);
			sum = bytes < 0 ? -1 : sum + bytes;
		}
	}
	closedir(folder);
	return sum;
}

/* -1 when there is nothing that can be read. */
int64_t checkpoint_bytes(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return st.st_size;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int files = 0;
	return fd < 0 ? -1 : folder_bytes(fd, 0, &files);
}

/* Relative paths count from the job's checkpoint folder, which is in the sealed body: looked up only for the size. */
static int64_t reported_bytes(struct daemon *d, const struct engine_fact *fact)
{
	if (fact->path[0] == '/')
		return checkpoint_bytes(fact->path);
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	int64_t bytes = 0;
	if (fact->attempt && fact->attempt <= facts->attempts.count) {
		const struct attempt *attempt =
			attempt_get(facts, (struct attempt_id){ (uint32_t)fact->attempt });
		struct arena arena;
		arena_init(&arena, 64 << 20);
		if (attempt->job.v)
			bytes = checkpoint_bytes(arena_printf(
				&arena, "%s/%s",
				job_checkpoint_folder(d, facts, attempt->job, &arena), fact->path));
		arena_deinit(&arena);
	}
	publication_release(publication);
	return bytes;
}

/* --- the way to the core -------------------------------------------------------------------------------------- */

enum { PATIENCE_MS = 5000 };
enum { REPORT_FACT, REPORT_QUIT }; /* what travels to the measuring thread */

/* An attempt that has facts in the measuring thread's mailbox. */
struct measured {
	struct measured *next;
	uint64_t attempt;
	uint32_t facts;
};

static struct measured **measured_find(struct daemon *d, uint64_t attempt)
{
	struct measured **link = &d->measured;
	while (*link && (*link)->attempt != attempt)
		link = &(*link)->next;
	return link;
}

static void measured_add(struct measured **link, uint64_t attempt)
{
	if (!*link) {
		*link = calloc(1, sizeof(**link));
		CHECK(*link);
		(*link)->attempt = attempt;
	}
	(*link)->facts++;
}

void effects_report(void *daemon, const struct engine_fact *fact)
{
	struct daemon *d = daemon;
	struct fact_message *message = calloc(1, sizeof(*message));
	CHECK(message);
	message->fact = *fact;
	/* Before the end is told: its job must find no node ready for the next try. */
	if (fact->kind == ENGINE_EXITED && fact->cause == ENGINE_CAUSE_NO_SPACE)
		space_lacks(d);
	pthread_mutex_lock(&d->measured_lock);
	struct measured **link = measured_find(d, fact->attempt);
	if (*link || (fact->kind == ENGINE_REPORT && fact->checkpoint)) {
		measured_add(link, fact->attempt);
		message->message.kind = REPORT_FACT;
		mailbox_send(&d->report_box, &message->message);
	} else {
		message->message.kind = CORE_FACT;
		mailbox_send(&d->core_box, &message->message);
	}
	pthread_mutex_unlock(&d->measured_lock);
}

static void pass_on(struct daemon *d, struct fact_message *message)
{
	pthread_mutex_lock(&d->measured_lock);
	struct measured **link = measured_find(d, message->fact.attempt), *measured = *link;
	CHECK(measured);
	if (--measured->facts == 0) {
		*link = measured->next;
		free(measured);
	}
	message->message.kind = CORE_FACT;
	mailbox_send(&d->core_box, &message->message);
	pthread_mutex_unlock(&d->measured_lock);
}

static void *reports_main(void *argument)
{
	struct daemon *d = argument;
	for (;;) {
		struct message *taken = mailbox_take(&d->report_box, 1, -1);
		if (!taken)
			continue;
		struct fact_message *message = (struct fact_message *)taken;
		if (taken->kind == REPORT_QUIT) {
			free(message);
			return NULL;
		}
		if (message->fact.kind == ENGINE_REPORT && message->fact.checkpoint &&
		    !atomic_load(&d->ending)) {
			int64_t bytes = reported_bytes(d, &message->fact);
			message->checkpoint_bytes = bytes < 0 ? 0 : bytes;
		}
		pass_on(d, message);
	}
}

void reports_start(struct daemon *d)
{
	CHECK(pthread_create(&d->reports_thread, NULL, reports_main, d) == 0);
	resume_start(d);
}

/* What is not measured by then is told again by the next start's engine. */
bool reports_join(struct daemon *d)
{
	const struct timespec until = wait_until(PATIENCE_MS);
	struct fact_message *quit = calloc(1, sizeof(*quit));
	CHECK(quit);
	quit->message.kind = REPORT_QUIT;
	mailbox_send(&d->report_box, &quit->message);
	bool resumed = resume_join(d);
	return pthread_clockjoin_np(d->reports_thread, NULL, CLOCK_MONOTONIC, &until) == 0 &&
	       resumed;
}
