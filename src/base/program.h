/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Other people's programs, such as git and those that give credentials.
 */
#include <sys/types.h>

/*
 * Starts argv[0], or `path` where that is given, in a process group of its own, so that it can be killed with all that it started: no
 * signal blocked or ignored, nothing to read, its output and its complaints into these two. Without a slash it is looked for in PATH.
 * Answers 0 or an errno; *ret is the caller's to wait for.
 */
int program_start(const char *path, char *const *argv, char *const *env, int out, int complaints,
		  pid_t *ret);
