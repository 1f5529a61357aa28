/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Threads without which a program can do nothing: those of the daemon, made as it starts. */
#include <pthread.h>

/* Starts one; *ret is the caller's to join. Where none can be made (the limit of processes is reached) the program says so and exits as
 * "unavailable": nothing was begun, and a later start may succeed. */
void thread_start(pthread_t *ret, void *(*main)(void *context), void *context);
