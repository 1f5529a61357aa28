/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Waiting on conditions for a time, by a clock that nobody sets. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include "base/check.h"

static inline void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	CHECK(pthread_condattr_init(&attributes) == 0);
	CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
	CHECK(pthread_cond_init(cond, &attributes) == 0);
	pthread_condattr_destroy(&attributes);
}

static inline struct timespec wait_until(int64_t ms)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return until;
}
