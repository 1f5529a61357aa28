/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A process that is stopped (SIGSTOP) and goes on later does so where it was: perhaps behind its last look at whether it may still write, and
 * before the bytes have left. So what it had open is closed first when it wakes: the handler of SIGCONT runs on the client's thread before
 * anything else of it does, and the bytes find no connection. All of one thread: only there is SIGCONT not blocked (daemon/daemon.c), and the
 * sockets are that thread's own. What had been answered meanwhile is asked for again.
 */
#include <curl/curl.h>

/* From now on waking closes the sockets of handles that wake_add() knows. Of one thread of the process, which goes on till its end. */
void wake_watch(void);
/* The handle's sockets are noted while they are open. */
void wake_add(CURL *curl);
