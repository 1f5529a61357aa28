/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The program git, asked one question at a time: its output is taken piece by piece, its time is bounded, and what it was told by variables of
 * the caller's (GIT_DIR and its like) is kept from it. It waits for nobody, asks nobody, writes nothing and fetches nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum { GIT_SAID_MAX = 300, GIT_DIED = -1 };

struct git_program {
	const char *path; /* absolute */
	char **env;
	char said[GIT_SAID_MAX]; /* first line of what the last call complained of */
	bool late; /* the last call was out of time */
};

/* A piece of output; false = enough, it is ended. */
typedef bool git_take(void *context, const char *data, size_t size);

/* False: there is none in an absolute folder of PATH. Texts live in the arena. */
bool git_find(struct arena *arena, struct git_program *ret);
/* Sets a variable for the calls to come. */
void git_set(struct git_program *git, struct arena *arena, const char *word);
/* Runs it until end_ms of clock_boot_ms. Its exit status; GIT_DIED when it could not be started, was ended, or ended by a signal. */
int git_run(struct git_program *git, const char *const *arguments, int64_t end_ms, git_take *take,
	    void *context);
