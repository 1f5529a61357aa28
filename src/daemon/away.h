/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Jobs that do not begin because the checkpoint that they are to go on from can't be read at this moment (resume.c), so that people are told of it
 * (`fairlead explain`), and so that a job whose file server has been waited for once gives its place back at once the next time.
 *
 * What is told is read by everybody who may see the job: no path, no account, no word of the system (docs/decisions/0032).
 *
 * AWAY_MOST are known, the newest; a daemon that starts anew knows none. Any thread.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { AWAY_MOST = 256, AWAY_TEXT_MAX = 256 };
enum away_why {
	AWAY_FORBIDDEN, /* the job's account may not read it */
	AWAY_FAILS, /* errors, while the folder in which it lies can be read */
	AWAY_UNREACHABLE /* that can't be read either: its file server is away */
};

struct away {
	pthread_mutex_t lock;
	struct away_row {
		uint32_t job, number; /* 0 = empty; the checkpoint's */
		enum away_why why;
		bool given_back; /* a place was given back for it */
	} rows[AWAY_MOST];
	uint32_t next; /* which is overwritten */
};

void away_init(struct away *away);
/* It can't be read now. Of a job one checkpoint is looked at at a time. */
void away_note(struct away *away, uint32_t job, uint32_t number, enum away_why why);
/* A place of the job was given back because that one is unreachable; whether one was. */
void away_give_back(struct away *away, uint32_t job, uint32_t number);
bool away_was_given_back(struct away *away, uint32_t job, uint32_t number);
void away_end(struct away *away, uint32_t job);
/* A sentence about the job, which has a place (starts) or waits for one; false: nothing is the matter. */
bool away_say(struct away *away, uint32_t job, bool starts, char text[AWAY_TEXT_MAX]);
