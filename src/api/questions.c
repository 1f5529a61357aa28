/* SPDX-License-Identifier: Apache-2.0 */
#include "api/questions.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

_Static_assert(QUESTIONS_OF_ALL + QUESTIONS_OF_USER * QUESTIONS_USER_MS / QUESTIONS_ALL_MS <
		       QUESTIONS_USERS,
	       "whoever asks finds a free row");

void questions_init(struct questions *questions)
{
	memset(questions, 0, sizeof(*questions));
	CHECK(pthread_mutex_init(&questions->lock, NULL) == 0);
}

void questions_deinit(struct questions *questions)
{
	pthread_mutex_destroy(&questions->lock);
}

/* Milliseconds until one can be taken; 0 = now. */
static int64_t bucket_wait_ms(const struct question_bucket *bucket, int64_t size, int64_t each_ms,
			      int64_t now_ms)
{
	int64_t wait_ms = bucket->full_ms - now_ms - (size - 1) * each_ms;

	return wait_ms > 0 ? wait_ms : 0;
}

static void bucket_take(struct question_bucket *bucket, int64_t each_ms, int64_t now_ms)
{
	bucket->full_ms = (bucket->full_ms > now_ms ? bucket->full_ms : now_ms) + each_ms;
}

/* The row of the user, or one whose user is as if he had never asked. */
static struct asker *asker_find(struct questions *questions, const char *user, int64_t now_ms)
{
	struct asker *free_one = NULL;

	for (uint32_t i = 0; i < QUESTIONS_USERS; i++) {
		struct asker *asker = &questions->askers[i];

		if (strcmp(asker->user, user) == 0)
			return asker;
		if (!free_one && asker->bucket.full_ms <= now_ms)
			free_one = asker;
	}
	CHECK(free_one);
	snprintf(free_one->user, sizeof(free_one->user), "%s", user);
	return free_one;
}

int questions_take(struct questions *questions, const char *user, int64_t now_ms, struct err *err)
{
	struct asker *asker;
	int64_t own_ms, all_ms;
	int rc = 0;

	pthread_mutex_lock(&questions->lock);
	all_ms = bucket_wait_ms(&questions->all, QUESTIONS_OF_ALL, QUESTIONS_ALL_MS, now_ms);
	asker = asker_find(questions, user, now_ms);
	own_ms = bucket_wait_ms(&asker->bucket, QUESTIONS_OF_USER, QUESTIONS_USER_MS, now_ms);
	if (own_ms)
		rc = err_set(
			err, ERR_QUOTA,
			"user \"%.60s\" asks too often on which nodes claims, volumes or extended resources could be had: %d dry runs at once and then one each %d ms is the most; try again in %lld ms, or submit the job",
			user, QUESTIONS_OF_USER, QUESTIONS_USER_MS, (long long)own_ms);
	else if (all_ms)
		rc = err_set(
			err, ERR_QUOTA,
			"all users together ask too often on which nodes claims, volumes or extended resources could be had: %d dry runs at once and then one each %d ms is the most; try again in %lld ms, or submit the job",
			QUESTIONS_OF_ALL, QUESTIONS_ALL_MS, (long long)all_ms);
	if (!rc) {
		bucket_take(&asker->bucket, QUESTIONS_USER_MS, now_ms);
		bucket_take(&questions->all, QUESTIONS_ALL_MS, now_ms);
	}
	pthread_mutex_unlock(&questions->lock);
	return rc;
}
