/* SPDX-License-Identifier: Apache-2.0 */
#include "api/dear.h"

#include <stdlib.h>
#include <string.h>
#include "base/check.h"

struct dear_task {
	struct dear_task *next;
	struct dear_user *user;
	struct call *call;
	void (*fn)(void *call);
};

/* A user of whom something is worked on. */
struct dear_user {
	struct dear_user *next;
	char name[NAME_MAX_BYTES + 1];
	int running, waiting;
	struct dear_task *first, **end;
};

struct dear {
	pthread_mutex_t lock;
	struct dear_user *users;
};

struct dear *dear_create(void)
{
	struct dear *dear = calloc(1, sizeof *dear);

	CHECK(dear && pthread_mutex_init(&dear->lock, NULL) == 0);
	return dear;
}

void dear_destroy(struct dear *dear)
{
	if (!dear)
		return;
	CHECK(!dear->users);
	pthread_mutex_destroy(&dear->lock);
	free(dear);
}

/* Under the lock, as all below until dear_run's end. */
static struct dear_user *user_get(struct dear *dear, const char *name)
{
	struct dear_user *user;

	for (user = dear->users; user; user = user->next)
		if (!strcmp(user->name, name))
			return user;
	user = calloc(1, sizeof *user);
	CHECK(user);
	snprintf(user->name, sizeof user->name, "%s", name);
	user->end = &user->first;
	user->next = dear->users;
	dear->users = user;
	return user;
}

static void user_drop(struct dear *dear, struct dear_user *user)
{
	struct dear_user **at = &dear->users;

	while (*at != user)
		at = &(*at)->next;
	*at = user->next;
	free(user);
}

static struct dear_task *next_take(struct dear_user *user)
{
	struct dear_task *task = user->first;

	if (!task || user->running >= DEAR_OF_USER)
		return NULL;
	user->first = task->next;
	if (!user->first)
		user->end = &user->first;
	user->waiting--;
	user->running++;
	return task;
}

static void task_main(void *argument)
{
	struct dear_task *task = argument, *next;
	struct dear_user *user = task->user;
	struct call *call = task->call;
	struct api *api = call->api; /* the call goes with its answer */
	struct err err = { 0 };

	if (http_in_vain(call->request)) {
		err_set(&err, ERR_UNAVAILABLE, "the daemon is stopping");
		call_fail(call, &err);
	} else {
		task->fn(call);
	}
	free(task);
	pthread_mutex_lock(&api->dear->lock);
	user->running--;
	next = next_take(user);
	if (!next && !user->running)
		user_drop(api->dear, user);
	pthread_mutex_unlock(&api->dear->lock);
	if (next)
		api->backend->work(api->backend->context, WORK_SLOW, task_main, next);
}

static void refuse(struct call *call)
{
	struct err err = { 0 };
	char seconds[12];

	err_set(&err, ERR_UNAVAILABLE,
		"%d expensive requests of user \"%s\" wait already, and %d are worked on at a time: try again in %d s",
		DEAR_WAITING, call->caller.user, DEAR_OF_USER, DEAR_RETRY_S);
	snprintf(seconds, sizeof seconds, "%d", DEAR_RETRY_S);
	http_add_header(call->request, "Retry-After", seconds);
	call_release(call);
	http_reply_error_status(call->request, 429, &err);
}

void dear_run(struct call *call, void (*fn)(void *call))
{
	struct api *api = call->api;
	struct dear_task *task = calloc(1, sizeof *task), *next = NULL;
	bool full;

	CHECK(task);
	call->dear = true;
	pthread_mutex_lock(&api->dear->lock);
	task->user = user_get(api->dear, call->caller.user);
	task->call = call;
	task->fn = fn;
	full = task->user->waiting >= DEAR_WAITING && !(call->route->flags & ROUTE_STREAM);
	if (!full) {
		*task->user->end = task;
		task->user->end = &task->next;
		task->user->waiting++;
		next = next_take(task->user);
	}
	pthread_mutex_unlock(&api->dear->lock);
	if (next)
		api->backend->work(api->backend->context, WORK_SLOW, task_main, next);
	if (full) {
		free(task);
		refuse(call);
	}
}
