/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A mailbox: messages from many threads to one. Bounded by its owner's count (mailbox_size); messages are links
 * embedded in what is sent, so sending allocates nothing and cannot fail.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct message {
	struct message *next;
	int kind; /* of the receiver's own list */
};

struct mailbox {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct message *first, **end;
	size_t size;
	bool poked;
	bool urgent; /* a message came that need not wait for others */
};

void mailbox_init(struct mailbox *box);
void mailbox_deinit(struct mailbox *box); /* must be empty */
void mailbox_send(struct mailbox *box, struct message *message);
/* As send, but the receiver is not woken if it waits: mailbox_wake must follow soon. For several messages in a row. */
void mailbox_add(struct mailbox *box, struct message *message);
void mailbox_wake(struct mailbox *box);
/* As send, but a receiver that gathers need not take it before its time (mailbox_gather). */
void mailbox_send_soon(struct mailbox *box, struct message *message);
/* Wakes the receiver without a message. */
void mailbox_poke(struct mailbox *box);
size_t mailbox_size(struct mailbox *box);
/* Up to `most` messages in the order sent, linked; NULL when none came within wait_ms (-1 = for ever) or on a poke. */
struct message *mailbox_take(struct mailbox *box, size_t most, int64_t wait_ms);
/* The same; where all were sent by mailbox_send_soon, the wait lasts until quiet_until_ns (clock_mono_ns) or wait_ms is over. */
struct message *mailbox_gather(struct mailbox *box, size_t most, int64_t wait_ms,
			       int64_t quiet_until_ns);
