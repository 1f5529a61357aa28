/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Assertions that stay on in release builds. CHECK(x) states what must be true; when it is not, the
 * program prints the place and aborts: the journal is the recovery, a wrong state is not.
 */
#include <stdint.h>

_Noreturn void check_failed(const char *file, int line, const char *condition);

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			check_failed(__FILE__, __LINE__, #condition);                              \
	} while (0)
#define UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
