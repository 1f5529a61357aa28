/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Guarantees that are more than there is: together, or of one model of GPU. That is allowed, for machines come and go; who sets them, and who
 * looks after the machine, is told. Guarantees of queues below others are part of those above, so only queues at the top count.
 */
#include "cli/client.h"

/* Calls `tell` with a sentence for each. How many there were; negative = the daemon could not be asked. */
int promised_look(struct client *client, struct arena *arena, void *context,
		  void (*tell)(void *context, const char *text), struct err *err) MUST_CHECK;
