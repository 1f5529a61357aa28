/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mailbox.h"

#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/wait.h"

void mailbox_init(struct mailbox *box)
{
	*box = (struct mailbox){ 0 };
	pthread_mutex_init(&box->lock, NULL);
	cond_init(&box->filled);
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
	box->urgent = true;
	pthread_mutex_unlock(&box->lock);
}

void mailbox_send_soon(struct mailbox *box, struct message *message)
{
	message->next = NULL;
	pthread_mutex_lock(&box->lock);
	bool first = !box->first;
	*box->end = message;
	box->end = &message->next;
	box->size++;
	pthread_mutex_unlock(&box->lock);
	/* Whoever waits knows of the first, and until when to wait for others. */
	if (first)
		mailbox_wake(box);
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

static struct timespec moment_of(int64_t mono_ns)
{
	return (struct timespec){ .tv_sec = (time_t)(mono_ns / 1000000000),
				  .tv_nsec = (long)(mono_ns % 1000000000) };
}

/* Whether there is something to take; else when to look again at the latest, 0 = when told. */
static bool is_due(const struct mailbox *box, int64_t quiet_until_ns, int64_t *ret_look_ns)
{
	*ret_look_ns = 0;
	if (box->poked || (box->first && (box->urgent || clock_mono_ns() >= quiet_until_ns)))
		return true;
	if (box->first)
		*ret_look_ns = quiet_until_ns;
	return false;
}

struct message *mailbox_take(struct mailbox *box, size_t most, int64_t wait_ms)
{
	return mailbox_gather(box, most, wait_ms, 0);
}

struct message *mailbox_gather(struct mailbox *box, size_t most, int64_t wait_ms,
			       int64_t quiet_until_ns)
{
	int64_t until_ns = wait_ms > 0 ? clock_mono_ns() + wait_ms * 1000000 : 0, look_ns;

	pthread_mutex_lock(&box->lock);
	while (wait_ms != 0 && !is_due(box, quiet_until_ns, &look_ns)) {
		if (until_ns && clock_mono_ns() >= until_ns)
			break;
		if (!look_ns || (until_ns && until_ns < look_ns))
			look_ns = until_ns;
		if (look_ns) {
			const struct timespec at = moment_of(look_ns);

			(void)pthread_cond_timedwait(&box->filled, &box->lock, &at);
		} else {
			pthread_cond_wait(&box->filled, &box->lock);
		}
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
	box->urgent = rest != NULL; /* what was left waits no longer */
	box->size -= count;
	if (count == 0)
		taken = NULL;
	pthread_mutex_unlock(&box->lock);
	return taken;
}
