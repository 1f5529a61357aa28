/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state of git in a folder: commit, branch, how many files differ, where it comes from (docs/decisions/0029).
 *
 * The repository may be anybody's: nothing that its settings name is run. What git is asked in the repository itself is its folders, its commit
 * and its settings, which runs no programs; files are compared with settings of ours, in which no filter, hook or monitor is.
 *
 * Whatever goes wrong is no failure: what is not known in time is left out.
 */
#include "api/jobfile/jobfile.h"

enum {
	GIT_ASK_MS = 1000, /* for commit, branch and settings */
	GIT_COUNT_MS = 2000, /* from the beginning, for the comparison of files too */
	GIT_SETTINGS_MAX = 1 << 20, /* bytes of settings that are read */
	GIT_WHY_MAX = 400
};

/*
 * 0: noted. 1: the folder is in no work tree of git, so there is nothing to note; `why` is then empty, or says why nothing is known of the one
 * it is in. Texts live in the arena.
 */
int git_state_read(const char *folder, struct arena *arena, struct job_git *ret,
		   char why[GIT_WHY_MAX]);
