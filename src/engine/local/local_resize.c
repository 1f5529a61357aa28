/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attempts whose ranks leave and come while they run. Who belongs to one is told in three places:
 *
 *	RUN/ATTEMPT/world	for the tasks to read: {"generation": 2, "size": 3, "ranks": [0, 2, 3]}
 *	world.N in each place	for the shepherd: the notice for who listens on the report socket, and whether this rank leaves
 *	the environment		of a rank that comes: RANK and WORLD_SIZE as they are then
 *
 * A rank that is started anew gets a place of its own, attempts/ATTEMPT/RANK.LAUNCH, so that nothing which an earlier start
 * still says can be taken for its word.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "engine/local/local.h"
#include "engine/local/place.h"

enum { NOTICE_RANKS_MAX = 256 }; /* more are read from the file */

static bool is_member(const struct engine_start *start, uint32_t rank)
{
	return !start->generation || start->places[rank].member != MEMBER_NONE;
}

static uint32_t member_count(const struct engine_start *start)
{
	return start->generation ? start->member_count : start->place_count;
}

static void add_world(struct buf *out, const struct engine_start *start, bool ranks)
{
	const char *comma = "";

	buf_addf(out, "\"generation\": %u, \"size\": %u", start->generation, member_count(start));
	if (!ranks)
		return;
	buf_adds(out, ", \"ranks\": [");
	for (uint32_t rank = 0; rank < start->place_count; rank++) {
		if (!is_member(start, rank))
			continue;
		buf_addf(out, "%s%u", comma, rank);
		comma = ", ";
	}
	buf_adds(out, "]");
}

int put_world(struct attempt *attempt, int folder, const struct engine_start *start,
	      struct err *err)
{
	AUTO_BUF text = BUF_INIT;

	attempt->generation = start->generation;
	buf_adds(&text, "{");
	add_world(&text, start, true);
	buf_adds(&text, "}\n");
	int result = place_put(folder, "world", text.data, text.size, err);
	if (result == 0 && fchmodat(folder, "world", 0644, 0) < 0)
		result = err_errno(err, ERR_IO, errno, "could not make the world file readable");
	return result;
}

/* The same for the tasks of a running attempt. */
static int tell_tasks(struct engine *e, struct attempt *attempt, const struct engine_start *start,
		      struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%" PRIu64, e->run, start->attempt);
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return err_errno(err, ERR_IO, errno, "could not open the folder %s", path);
	int result = put_world(attempt, folder, start, err);
	close(folder);
	return result;
}

static int tell_shepherd(const struct rank *rank, const struct engine_start *start,
			 int64_t grace_ms, struct err *err)
{
	const struct engine_gpu_place *place = &start->places[rank->number];
	AUTO_BUF text = BUF_INIT;
	char name[40];

	snprintf(name, sizeof(name), "world.%u", start->generation);
	buf_addf(&text, "%" PRId64 " %d\n{\"notice\": \"resize\", ", grace_ms, place->leaves);
	add_world(&text, start, member_count(start) <= NOTICE_RANKS_MAX);
	if (place->member == MEMBER_NONE)
		buf_addf(&text, ", \"rank\": -1, \"grace_ms\": %" PRId64 "}\n", grace_ms);
	else
		buf_addf(&text, ", \"rank\": %u}\n", place->member);
	int result = place_put(rank->folder, name, text.data, text.size, err);
	place_wake(rank->folder);
	return result;
}

/* Whether this launch of the rank is still to be begun. */
static bool is_to_begin(const struct rank *rank, const struct engine_gpu_place *place)
{
	if (!place->comes || rank->state != RANK_ENDED)
		return false;
	return place->launch > rank->launch || (place->launch == rank->launch && rank->gone);
}

static void rank_begin(struct engine *e, struct rank *rank, uint32_t launch)
{
	rank_unwatch(e, rank);
	if (rank->folder >= 0)
		close(rank->folder);
	*rank = (struct rank){ .attempt = rank->attempt,
			       .number = rank->number,
			       .launch = launch,
			       .folder = -1,
			       .watch = -1,
			       .waits = true };
}

/* It was to come, and its attempt is being stopped: it never had a shepherd. The mutex is held. */
void rank_never(struct engine *e, struct rank *rank)
{
	const struct engine_fact fact = { .kind = ENGINE_EXITED,
					  .attempt = rank->attempt->number,
					  .rank = rank->number,
					  .time_ms = clock_wall_ms(),
					  .cause = ENGINE_CAUSE_STOPPED,
					  .never_ran = true };

	rank->gone = rank->waits = false;
	rank_say(e, rank, &fact);
	rank_end(e, rank);
}

/* One whose place was found half made is made when that is cleared away. Answers whether it is such a one. */
static bool begin_later(struct rank *rank, const struct engine_gpu_place *place,
			struct order *order)
{
	if (!place->comes || place->launch != rank->launch || !rank->unborn || rank->again)
		return false;
	rank->again = order;
	order->users++;
	return true;
}

/* Ranks that come: behind the last, or such as had ended. */
static void begin_all(struct engine *e, struct attempt *attempt, const struct engine_start *start)
{
	bool ending = attempt->stopping || attempt->ending, any = false;
	struct order *order = order_copy(e, start);
	uint32_t before = attempt->count;

	if (start->place_count > attempt->count)
		attempt_widen(attempt, start->place_count);
	for (uint32_t i = 0; i < start->place_count; i++) {
		struct rank *rank = attempt->ranks[i];

		if (i >= before)
			rank->state = RANK_ENDED, rank->gone = true;
		rank->left = start->places[i].left && !start->lacks;
		if (!ending && begin_later(rank, &start->places[i], order))
			any = true;
		if (!is_to_begin(rank, &start->places[i]))
			continue;
		rank_begin(e, rank, start->places[i].launch);
		if (ending)
			rank_never(e, rank);
		else
			any = true;
	}
	if (any)
		engine_queue(e, JOB_PREPARE, attempt, NULL, order);
	else
		order_drop(order);
}

int local_resize(struct engine *e, const struct engine_start *start, int64_t grace_ms,
		 struct err *err)
{
	int result = check_start(start, err);

	if (result < 0)
		return result;
	pthread_mutex_lock(&e->lock);
	struct attempt *attempt = find_or_say(e, start->attempt, err);
	if (!attempt || attempt->stale || attempt->forgotten) {
		pthread_mutex_unlock(&e->lock);
		return attempt ? 0 : -1;
	}
	attempt->resized = true;
	attempt->ending |= start->stopping;
	if (attempt->stopping || attempt->ending) {
		begin_all(e, attempt, start);
		pthread_mutex_unlock(&e->lock);
		return 0;
	}
	result = tell_tasks(e, attempt, start, err);
	for (uint32_t i = 0; i < attempt->count && i < start->place_count; i++) {
		struct rank *rank = attempt->ranks[i];

		if (rank->state != RANK_LIVE || rank->launch != start->places[i].launch)
			continue;
		int told = tell_shepherd(rank, start, grace_ms, err);
		if (told < 0)
			result = told;
	}
	begin_all(e, attempt, start);
	gate_look(e, attempt);
	pthread_mutex_unlock(&e->lock);
	return result;
}
