/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's own thread. It copies the write-ahead log into the segment, so that no append waits for
 * that, and finishes sealed segments.
 *
 * The log can start anew only when all of it is copied and nobody reads it. A copy beside running
 * appends never catches up, so there are two steps: the bulk without any lock, then, with appends held
 * back, the few pages that came meanwhile. That holds an append for about two syncs, instead of
 * for the copy of 4 MiB. Appends wait for the whole of it only when the log has grown to four times its size.
 *
 * A full disk is no failure here: the log keeps everything and the next turn tries again. Any other
 * error is, for a failed sync must never be asked again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/thread.h"
#include "store/journal_internal.h"

enum { WAL_FRAME_BYTES = 4096 + 24, STEPS_MAX = 4 };

/* Finishes a sealed segment as far as readers and the disk let it; the next start does the rest. */
static void finish_sealed(struct journal *journal, struct segment *sealed, bool locked)
{
	struct err err;
	int result = segment_finish(sealed, &err);
	if (result < 0) {
		if (!locked)
			pthread_mutex_lock(&journal->mutex);
		(void)journal_fail(journal, &err);
		if (!locked)
			pthread_mutex_unlock(&journal->mutex);
		segment_drop(sealed);
		return;
	}
	segment_close(sealed, false);
}

/* One checkpoint of a connection; negative = the journal is failed now. */
static int checkpoint_step(struct journal *journal, struct segment *segment, bool locked,
			   int *ret_left)
{
	struct err err;
	int result = segment_checkpoint(segment, ret_left, &err);
	if (result >= 0)
		return result;
	if (!locked)
		pthread_mutex_lock(&journal->mutex);
	(void)journal_fail(journal, &err);
	if (!locked)
		pthread_mutex_unlock(&journal->mutex);
	return result;
}

/* The worker's connection to the open segment. The mutex is held. */
static struct segment *worker_segment(struct journal *journal)
{
	struct journal_worker *worker = &journal->worker;
	uint32_t number = manifest_last(&journal->manifest)->number;
	if (worker->checker && worker->checker_number == number)
		return worker->checker;
	segment_close(worker->checker, true);
	worker->checker = NULL;
	char path[PATH_MAX];
	struct err err;
	journal_segment_file(journal, number, "", path);
	if (segment_open(journal->io, path, SEGMENT_READ_WRITE, &worker->checker, &err) < 0) {
		(void)journal_fail(journal, &err);
		return NULL;
	}
	worker->checker_number = number;
	return worker->checker;
}

/* The end of a checkpoint, with appends held back: what came meanwhile, and the head on disk before
 * the log is used again. */
static void checkpoint_end(struct journal *journal, struct segment *segment, int left)
{
	if (journal->state.failed || (left && checkpoint_step(journal, segment, true, &left) != 0))
		return;
	int error = head_sync(journal);
	if (error < 0) {
		struct err err;
		err_errno(&err, ERR_IO, -error, "cannot sync the head of the journal of \"%s\"",
			  journal->folder);
		(void)journal_fail(journal, &err);
	}
}

static void worker_checkpoint(struct journal *journal)
{
	pthread_mutex_lock(&journal->mutex);
	struct segment *segment = journal->state.failed ? NULL : worker_segment(journal);
	pthread_mutex_unlock(&journal->mutex);
	int left = 0;
	if (!segment || checkpoint_step(journal, segment, false, &left) != 0)
		return;
	pthread_mutex_lock(&journal->mutex);
	checkpoint_end(journal, segment, left);
	pthread_mutex_unlock(&journal->mutex);
}

static void *worker_main(void *context)
{
	struct journal *journal = context;
	struct journal_worker *worker = &journal->worker;
	pthread_mutex_lock(&journal->mutex);
	while (!worker->stop || worker->sealed_count) {
		if (worker->sealed_count) {
			struct segment *sealed = worker->sealed[0], *checker = worker->checker;
			worker->checker = NULL;
			memmove(worker->sealed, worker->sealed + 1,
				--worker->sealed_count * sizeof(struct segment *));
			pthread_mutex_unlock(&journal->mutex);
			segment_close(checker, true); /* the last connection removes the log */
			finish_sealed(journal, sealed, false);
			pthread_mutex_lock(&journal->mutex);
		} else if (worker->due) {
			worker->due = false;
			worker->busy = true;
			pthread_mutex_unlock(&journal->mutex);
			worker_checkpoint(journal);
			pthread_mutex_lock(&journal->mutex);
			worker->busy = false;
			pthread_cond_signal(&worker->done);
		} else {
			pthread_cond_wait(&worker->wake, &journal->mutex);
		}
	}
	pthread_mutex_unlock(&journal->mutex);
	return NULL;
}

void worker_start(struct journal *journal)
{
	struct journal_worker *worker = &journal->worker;
	pthread_cond_init(&worker->wake, NULL);
	pthread_cond_init(&worker->done, NULL);
	if (journal->inline_checkpoint)
		return;
	thread_start(&worker->thread, worker_main, journal);
	worker->running = true;
}

void worker_stop(struct journal *journal)
{
	struct journal_worker *worker = &journal->worker;
	if (worker->running) {
		pthread_mutex_lock(&journal->mutex);
		worker->stop = true;
		pthread_cond_signal(&worker->wake);
		pthread_mutex_unlock(&journal->mutex);
		pthread_join(worker->thread, NULL);
		worker->running = false;
	}
	if (journal->state.failed)
		segment_drop(worker->checker);
	else
		segment_close(worker->checker, true);
	worker->checker = NULL;
	free(worker->sealed);
	worker->sealed = NULL;
	pthread_cond_destroy(&worker->wake);
	pthread_cond_destroy(&worker->done);
}

void worker_wake(struct journal *journal, int wal_frames)
{
	struct journal_worker *worker = &journal->worker;
	int step = (int)(journal->wal_bytes / WAL_FRAME_BYTES) + 1;
	if (wal_frames < worker->last_frames || worker->due_frames == 0)
		worker->due_frames = step; /* it started anew */
	worker->last_frames = wal_frames;
	if (wal_frames < worker->due_frames)
		return;
	/* While a reader keeps the log from starting anew, one try for each further step, not for each commit. */
	worker->due_frames = wal_frames + step;
	if (journal->inline_checkpoint) {
		checkpoint_end(journal, journal->open, 1);
		return;
	}
	worker->due = true;
	pthread_cond_signal(&worker->wake);
	/* A thread that does not keep up holds the appends: the log must not grow without end. */
	while (wal_frames >= STEPS_MAX * step && (worker->due || worker->busy) &&
	       !journal->state.failed)
		pthread_cond_wait(&worker->done, &journal->mutex);
}

void worker_hand_over(struct journal *journal, struct segment *sealed)
{
	struct journal_worker *worker = &journal->worker;
	if (journal->inline_checkpoint) {
		finish_sealed(journal, sealed, true);
		return;
	}
	worker->sealed =
		reallocarray(worker->sealed, worker->sealed_count + 1, sizeof(struct segment *));
	CHECK(worker->sealed);
	worker->sealed[worker->sealed_count++] = sealed;
	pthread_cond_signal(&worker->wake);
}
