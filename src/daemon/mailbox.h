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
};

void mailbox_init(struct mailbox *box);
void mailbox_deinit(struct mailbox *box); /* must be empty */
void mailbox_send(struct mailbox *box, struct message *message);
/* As send, but the receiver is not woken if it waits: mailbox_wake must follow soon. For several messages in a row. */
void mailbox_add(struct mailbox *box, struct message *message);
void mailbox_wake(struct mailbox *box);
/* Wakes the receiver without a message. */
void mailbox_poke(struct mailbox *box);
size_t mailbox_size(struct mailbox *box);
/* Up to `most` messages in the order sent, linked; NULL when none came within wait_ms (-1 = for ever) or on a poke. */
struct message *mailbox_take(struct mailbox *box, size_t most, int64_t wait_ms);
