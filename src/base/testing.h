/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What every unit test includes instead of cmocka.h: that header with those it needs, random
 * numbers that repeat, and a way to see a CHECK fail. Only tests include this.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Random numbers (splitmix64): the same row from the same seed on every machine. */
struct dice {
	uint64_t state;
};

static inline uint64_t dice_roll(struct dice *dice)
{
	uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* 0 .. below-1 */
static inline uint32_t dice_below(struct dice *dice, uint32_t below)
{
	return (uint32_t)(dice_roll(dice) % below);
}

/* Whether act(data) ends in abort(), in a child whose complaint is not shown. */
static inline bool aborts(void (*act)(void *), void *data)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		if (!freopen("/dev/null", "w", stderr))
			_exit(2);
		act(data);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
