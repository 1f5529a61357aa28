/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often people may ask the engine on which nodes pods could run (backend.h, consider), for a dry run or a plan. Each answer looks at all nodes while the
 * engine's lock is held, so a loop of dry runs would keep the cluster's changes and bindings waiting, and it counts in no limit of what waits.
 *
 * A bucket of QUESTIONS_OF_USER for each user, and one of QUESTIONS_OF_ALL: a question takes one from both, and each gets one back every so many milliseconds.
 *
 *	64 dry runs in a loop		answered at once
 *	the 65th			refused: again in 500 ms
 *	two in each second		answered for ever
 *
 * A user is remembered while his bucket is not full. No more than QUESTIONS_USERS can be so at once, by what all together may ask meanwhile.
 *
 * Safe for any thread. Times are those of a clock that never goes back.
 */
#include <pthread.h>
#include <stdint.h>

#include "base/err.h"
#include "core/model/facts.h"

enum {
	QUESTIONS_OF_USER = 64,
	QUESTIONS_USER_MS = 500, /* one more */
	QUESTIONS_OF_ALL = 256,
	QUESTIONS_ALL_MS = 50,
	QUESTIONS_USERS = 1024
};

struct question_bucket {
	int64_t full_ms; /* from when on it is full again */
};

struct questions {
	pthread_mutex_t lock;
	struct question_bucket all;
	struct asker {
		char user[NAME_MAX_BYTES + 1];
		struct question_bucket bucket;
	} askers[QUESTIONS_USERS];
};

void questions_init(struct questions *questions);
void questions_deinit(struct questions *questions);
/* 0 = ask; ERR_QUOTA says when to ask again. */
int questions_take(struct questions *questions, const char *user, int64_t now_ms, struct err *err)
	MUST_CHECK;
