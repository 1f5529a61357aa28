/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reported checkpoint is looked at before it counts: by a thread, as the job's user (engine/checkpoint.h). While it looks no
 * request is read, from nobody, so what is reported keeps its order. A file server that does not answer holds that
 * thread, not the task: after LOOK_GIVE_UP_MS the report is refused, and the thread ends with its call or with us.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "engine/checkpoint.h"
#include "engine/failpoint.h"
#include "shepherd/shepherd.h"

enum {
	LOOK_PATIENCE_MS = 4000, /* then it counts without its size */
	LOOK_GIVE_UP_MS = 8000,
	LOOKS_MAX = 4 /* that do not come back, before no more are begun */
};

struct report_look {
	struct checkpoint_ask ask;
	char path[REPORT_PATH_MAX];
	int done; /* eventfd */
	atomic_int users; /* the thread and the loop: the last one frees it */
	unsigned rank;
	int result;
	int64_t bytes;
	struct err err;
};

static atomic_int looks; /* threads there are */

static void look_unref(struct report_look *look)
{
	if (atomic_fetch_sub(&look->users, 1) > 1)
		return;
	close(look->done);
	free(look);
}

static void *look_run(void *argument)
{
	const uint64_t one = 1;
	struct report_look *look = argument;

	(void)FAILPOINT_RANK("report-look", look->rank);
	look->result = checkpoint_look(&look->ask, &look->bytes, &look->err);
	atomic_fetch_sub(&looks, 1);
	if (write(look->done, &one, sizeof(one)) < 0) {
		/* the loop gives up after a while */
	}
	look_unref(look);
	return NULL;
}

int report_look_begin(struct shepherd *s, struct err *err)
{
	struct report_look *look;
	pthread_attr_t attributes;
	pthread_t thread;

	if (atomic_load(&looks) >= LOOKS_MAX)
		return err_set(
			err, ERR_UNAVAILABLE,
			"earlier checkpoints are still being looked at: does their file server answer?");
	look = calloc(1, sizeof(*look));
	CHECK(look);
	*look = (struct report_look){ .users = 2, .rank = s->spec.rank };
	snprintf(look->path, sizeof(look->path), "%s", s->reports.looked.path);
	look->ask = (struct checkpoint_ask){ .path = look->path,
					     .uid = s->spec.uid,
					     .gid = s->spec.gid,
					     .patience_ms = LOOK_PATIENCE_MS };
	look->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(pthread_attr_init(&attributes) == 0);
	CHECK(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
	atomic_fetch_add(&looks, 1);
	int errnum = look->done < 0 ? errno : pthread_create(&thread, &attributes, look_run, look);
	pthread_attr_destroy(&attributes);
	if (errnum) {
		atomic_fetch_sub(&looks, 1);
		if (look->done >= 0)
			close(look->done);
		free(look);
		return err_errno(err, ERR_UNAVAILABLE, errnum,
				 "the checkpoint could not be looked at");
	}
	s->reports.look = look;
	s->reports.look_until_ms = clock_boot_ms() + LOOK_GIVE_UP_MS;
	return 0;
}

int report_look_fd(const struct report_look *look)
{
	return look->done;
}

bool report_look_is_over(const struct shepherd *s, int *ret_result, struct err *err)
{
	struct report_look *look = s->reports.look;
	uint64_t count;

	if (read(look->done, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
		*ret_result = look->result;
		*err = look->err;
		return true;
	}
	if (clock_boot_ms() < s->reports.look_until_ms)
		return false;
	*ret_result = err_set(
		err, ERR_TIMEOUT,
		"the checkpoint \"%.400s\" could not be looked at within %d s: does its file server answer?",
		s->reports.looked.path, LOOK_GIVE_UP_MS / 1000);
	return true;
}

int64_t report_look_end(struct shepherd *s, int result)
{
	struct report_look *look = s->reports.look;
	int64_t bytes = result == 0 ? look->bytes : 0;

	s->reports.look = NULL;
	look_unref(look);
	return bytes;
}
