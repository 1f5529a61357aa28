/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The end that is asked for: SIGTERM or SIGINT.
 *
 * A thread of its own receives them, so that the daemon ends whatever its other threads wait for: a disk, PostgreSQL, a file server,
 * a journal that is read back. While the daemon starts it ends at once: nothing was promised to anybody. When it is up, the
 * orderly end begins (daemon.c), and what is not over after ENDING_MS is cut off. That is no worse than a kill: what was
 * acknowledged is on disk, running jobs go on, and the next start reads the journal from the last snapshot.
 */
#include <stdbool.h>
#include <stdint.h>

enum { ENDING_MS = 4000 };

/* Blocks the signals for all threads to come, and starts the thread that receives them. Once in a process. */
void ending_watch(void);
/* From here on the end is orderly. */
void ending_is_up(void);
/* Until the end is asked for, at most so long; -1: without limit. Was it? */
bool ending_wait(int64_t wait_ms);
