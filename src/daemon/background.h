/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fairlead up -d`: a child goes on without the terminal; the caller waits until it answers, passes its words on, and
 * fails with its message when it can't start. Done before any thread exists.
 */
#include <stdbool.h>
#include "base/err.h"

enum { BACKGROUND_PARENT = 1 }; /* outcome: this is the caller's process, and the daemon is ready */

struct background {
	int pipe_fd;
}; /* -1 in the foreground */

/* 0: go on (as the child, or in the foreground). The child's stdout goes to the caller until it is ready, its stderr to
 * daemon.log in the folder. */
int background_begin(struct background *background, bool wanted, const char *folder,
		     struct err *err) MUST_CHECK;
void background_ready(struct background *background);
void background_failed(struct background *background, const struct err *err);
