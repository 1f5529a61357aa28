/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says why gangs of pods wait, to the engine, which tells it where people look: in conditions and Events. A thread of its own that looks
 * every TELL_EVERY_MS at jobs of pods that wait, TELL_MOST of them at most in one look, and goes on behind the last the next time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "api/planner.h"
#include "base/check.h"
#include "base/thread.h"
#include "daemon/state.h"

enum { TELL_EVERY_MS = 2000, TELL_MOST = 256 };

/* Other machines would help, or more of them; not so where a rule, an order or a person keeps it. */
static bool lacks_room(enum reason reason)
{
	static const enum reason of_room[] = {
		REASON_CAPACITY,  REASON_TOPOLOGY,  REASON_FRAGMENTATION, REASON_MODEL,
		REASON_MEMORY,    REASON_CPU,       REASON_RAM,           REASON_DRIVER,
		REASON_SHARING,   REASON_RESIDENCY, REASON_IMPOSSIBLE,    REASON_SPREAD,
		REASON_NODE_CLASS
	};

	for (size_t i = 0; i < sizeof(of_room) / sizeof(of_room[0]); i++)
		if (of_room[i] == reason)
			return true;
	return false;
}

static void why_send(struct daemon *d, uint32_t job, const struct explanation *why)
{
	struct effect *effect = calloc(1, sizeof(*effect));

	CHECK(effect);
	effect->message.kind = EFFECT_PODS_WHY;
	effect->attempt = job;
	effect->flag = lacks_room(why->reason);
	effect->path = strdup(why->summary);
	CHECK(effect->path);
	mailbox_send(&d->engine_box, &effect->message);
}

/* Answers the next to look at. */
static uint32_t look(struct daemon *d, struct planner *planner, uint32_t from)
{
	struct frozen *frozen = d->backend.frozen(d->backend.context);
	const struct facts *facts = &frozen->facts;
	struct view *view = NULL;
	struct arena arena;
	uint32_t told = 0, id;

	arena_init(&arena, 64 << 20);
	for (id = from; id <= facts->jobs.count && told < TELL_MOST; id++) {
		struct explanation why = { 0 };
		const struct facts *of = NULL;

		if (!job_is_there(facts, id) || !job_get(facts, (struct job_id){ id })->external ||
		    !job_is_waiting(job_get(facts, (struct job_id){ id })))
			continue;
		if (!view)
			view = planner_enter(planner, frozen, 0, &of);
		explain_job(of ? of : facts, view, (struct job_id){ id }, &arena, &why);
		if (why.summary && *why.summary)
			why_send(d, id, &why);
		arena_reset(&arena);
		told++;
	}
	if (view)
		planner_leave(planner);
	id = id > facts->jobs.count ? 1 : id;
	arena_deinit(&arena);
	d->backend.release(d->backend.context, frozen);
	return id;
}

static bool wait_for_next(struct daemon *d)
{
	const struct timespec until = wait_until(TELL_EVERY_MS);
	bool stopping;

	pthread_mutex_lock(&d->publication_lock);
	while (!atomic_load(&d->ending) &&
	       pthread_cond_timedwait(&d->durable_cond, &d->publication_lock, &until) == 0)
		continue;
	stopping = atomic_load(&d->ending);
	pthread_mutex_unlock(&d->publication_lock);
	return !stopping;
}

static void *tell_main(void *argument)
{
	struct daemon *d = argument;
	struct planner *planner = planner_create(&d->backend);
	uint32_t from = 1;

	while (wait_for_next(d))
		from = look(d, planner, from);
	planner_destroy(planner);
	return NULL;
}

void pods_tell_start(struct daemon *d)
{
	if (d->engine_ops->pods)
		thread_start(&d->pods_thread, tell_main, d);
}

void pods_tell_join(struct daemon *d)
{
	if (!d->engine_ops->pods)
		return;
	pthread_mutex_lock(&d->publication_lock);
	pthread_cond_broadcast(&d->durable_cond); /* the end has come, and it waits for that too */
	pthread_mutex_unlock(&d->publication_lock);
	pthread_join(d->pods_thread, NULL);
}
