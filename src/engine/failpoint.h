/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Failpoints: named places where a test can make a program fail or stop.
 *
 * They exist only in builds with `-Dfailpoints=true`; elsewhere FAILPOINT(...) is the constant
 * false. The environment says what happens:
 *
 *	FAIRLEAD_FAILPOINT="engine-spawn:error,shepherd-go-seen@2:kill:3"
 *
 * is a list of NAME[@RANK]:ACTION[:N]. A point acts once, when it is reached for the N-th time in
 * this process (1 when not given). @RANK limits it to one rank of a gang. Actions:
 *
 *	kill	SIGKILL to the own process
 *	error	FAILPOINT answers true: the code there behaves as if its next call had failed
 *	pause	SIGSTOP to the own process; SIGCONT lets it go on
 *	hold	only this thread waits, until somebody opens the FIFO that
 *		FAIRLEAD_FAILPOINT_GATE names for writing
 *
 * The engine hands FAIRLEAD_FAILPOINT on to its shepherds; FAIRLEAD_SHEPHERD_FAILPOINT, where set,
 * is theirs instead.
 *
 * failpoints.txt lists all names with their meaning; a test holds the list and the sources against
 * each other.
 */
#include <stdbool.h>
#include <stdint.h>

enum { FAILPOINT_NO_RANK = -1 };

#ifdef FAIRLEAD_FAILPOINTS
bool failpoint_hit(const char *name, int64_t rank);
#define FAILPOINT(name) failpoint_hit("" name "", FAILPOINT_NO_RANK)
#define FAILPOINT_RANK(name, rank) failpoint_hit("" name "", (int64_t)(rank))
#else
#define FAILPOINT(name) false
#define FAILPOINT_RANK(name, rank) ((void)(rank), false)
#endif

/* The boot id that attempts are compared with; in a failpoint build FAIRLEAD_TEST_BOOT_ID replaces
 * the machine's. */
void failpoint_boot_id(char out[40]);
