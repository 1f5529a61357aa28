/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who holds a data folder, as the lock in it says. */
#include <stdbool.h>

struct arena;

/* The process that holds the journal's lock; 0 = none, -1 = not to be seen. */
long holder_find(const char *folder, struct arena *arena);
/* Whether this process has the lock open and was started as a daemon: numbers of other containers mean other processes here. */
bool holder_is_daemon(long pid, const char *folder, struct arena *arena);
