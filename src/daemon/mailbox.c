/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mailbox.h"

#include <time.h>

#include "base/check.h"

void mailbox_init(struct mailbox *box)
{
	*box = (struct mailbox){ 0 };
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&box->lock, NULL);
	pthread_cond_init(&box->filled, &attributes);
	pthread_condattr_destroy(&attributes);
	box->end = &box->first;
}

void mailbox_deinit(struct mailbox *box)
{
	CHECK(!box->first);
	pthread_cond_destroy(&box->filled);
	pthread_mutex_destroy(&box->lock);
}

void mailbox_add(struct mailbox *box, struct message *message)
{
	message->next = NULL;
	pthread_mutex_lock(&box->lock);
	*box->end = message;
	box->end = &message->next;
	box->size++;
	pthread_mutex_unlock(&box->lock);
}

/* Signalled outside of the lock, which the receiver would else meet first thing. */
void mailbox_wake(struct mailbox *box)
{
	pthread_cond_signal(&box->filled);
}

void mailbox_send(struct mailbox *box, struct message *message)
{
	mailbox_add(box, message);
	mailbox_wake(box);
}

void mailbox_poke(struct mailbox *box)
{
	pthread_mutex_lock(&box->lock);
	box->poked = true;
	pthread_cond_signal(&box->filled);
	pthread_mutex_unlock(&box->lock);
}

size_t mailbox_size(struct mailbox *box)
{
	pthread_mutex_lock(&box->lock);
	size_t size = box->size;
	pthread_mutex_unlock(&box->lock);
	return size;
}

static struct timespec moment_after(int64_t wait_ms)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += (time_t)(wait_ms / 1000);
	at.tv_nsec += (long)(wait_ms % 1000) * 1000000L;
	if (at.tv_nsec >= 1000000000L) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000L;
	}
	return at;
}

struct message *mailbox_take(struct mailbox *box, size_t most, int64_t wait_ms)
{
	struct timespec until = { 0 };
	if (wait_ms > 0)
		until = moment_after(wait_ms);

	pthread_mutex_lock(&box->lock);
	while (!box->first && !box->poked && wait_ms != 0) {
		if (wait_ms < 0)
			pthread_cond_wait(&box->filled, &box->lock);
		else if (pthread_cond_timedwait(&box->filled, &box->lock, &until) != 0)
			break;
	}
	box->poked = false;
	struct message *taken = box->first;
	struct message **link = &box->first;
	size_t count = 0;
	while (*link && count < most) {
		link = &(*link)->next;
		count++;
	}
	struct message *rest = *link;
	*link = NULL;
	if (!rest)
		box->end = &box->first;
	box->first = rest;
	box->size -= count;
	if (count == 0)
		taken = NULL;
	pthread_mutex_unlock(&box->lock);
	return taken;
}
