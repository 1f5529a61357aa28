/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The place of one task: its folder DATA/attempts/ATTEMPT/RANK, where truth lives in files.
 *
 *	spec		 what to run (spec.h); there before the shepherd is
 *	lock		 held by the shepherd as long as it lives: an open file description lock,
 *			 which the kernel lets go of
 *	ready		 the place is prepared: a fact (fact_file.h)
 *	go		 made by the engine: the command may run
 *	world.N		 who belongs to the attempt has changed, N times: grace_ms, whether this rank is to leave, and the
 *			 notice for those who listen, a line each
 *	warn.N, stop.N	 commands of the engine, N from 1; {"grace_ms": 30000}. Each number is acted
 *			 on once
 *	overdrawn	 why the rank is stopped: it took more than its part of a GPU; there before the stop
 *	started		 the command runs: a fact
 *	reports		 a fact per line
 *	exit		 the end: a fact. Nothing of the task is left when it is there
 *	wake		 a FIFO; a byte in it makes the shepherd look at its folder now. A hint: it
 *			 looks by itself as well
 *	shepherd.log	 what the shepherd had to complain about
 *
 * Files appear by rename, so none is ever seen half written. `spec` and `exit` survive power loss
 * (place_put_durable), and so do reports of checkpoints; the others matter only as long as the
 * machine is up.
 */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

struct engine_fact;
struct io;

enum { PLACE_FILE_MAX = 16 << 20, PLACE_LOCK_FD = 3, PLACE_EXIT_BYTES = 1024 };

/* Paths; false when they get too long. */
bool place_path(char out[PATH_MAX], const char *attempts, uint64_t attempt, uint32_t rank,
		uint32_t launch);
/* The folder's name: "3"; "3.1" when the rank was started anew. */
enum { PLACE_NAME_MAX = 24 };
void place_name(char out[PLACE_NAME_MAX], uint32_t rank, uint32_t launch);

/* Whole file into out (cleared first): 0; 1 = there is none; negative. */
int place_read(int folder, const char *name, struct buf *out, struct err *err) MUST_CHECK;
bool place_has(int folder, const char *name);
/* Whether the folder itself was removed. */
bool place_is_deleted(int folder);
/* By temporary file and rename; no fsync. */
int place_put(int folder, const char *name, const void *data, size_t size, struct err *err)
	MUST_CHECK;
/* As place_put, but what was there or the new content survives power loss, whole. path: of the
 * folder. A file NAME.tmp that is there already is written over in place, so that the space it has
 * taken serves on a full disk. */
int place_put_durable(struct io *io, const char *path, const char *name, const void *data,
		      size_t size, struct err *err) MUST_CHECK;
/* Takes the space for `exit` beforehand: by the engine, before there is a shepherd. */
int place_reserve_exit(struct io *io, const char *path, struct err *err) MUST_CHECK;

/* A fact from a file: 0; 1 = there is none; negative (unreadable). */
int place_read_fact(int folder, const char *name, struct engine_fact *ret, struct err *err)
	MUST_CHECK;
int place_put_fact(int folder, const char *name, const struct engine_fact *fact, struct err *err)
	MUST_CHECK;
/* `exit`, durably, in the space taken for it. */
int place_put_exit(struct io *io, const char *path, const struct engine_fact *fact, struct err *err)
	MUST_CHECK;

/* Commands: "warn" or "stop". */
int place_put_command(int folder, const char *command, uint64_t number, int64_t grace_ms,
		      struct err *err) MUST_CHECK;
/* The number in a name like "stop.7"; 0 when it is none of that command. */
uint64_t place_command_number(const char *name, const char *command);
int64_t place_read_grace(int folder, const char *name); /* ms; 0 when unreadable */
uint64_t place_newest_command(int folder, const char *command); /* 0 = none */
/* Wakes the shepherd, if there is one. */
void place_wake(int folder);

/* Makes `lock` and takes it; the descriptor (close-on-exec) to be handed to the shepherd, or
 * negative. */
int place_lock(int folder, struct err *err) MUST_CHECK;
/* Whether somebody holds the lock, or may: it could not be looked at. */
bool place_is_locked(int folder);
