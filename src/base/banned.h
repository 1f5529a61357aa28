/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Calls that must not compile. The build includes this file before every source.
 *
 * Each banned name is a macro that expands to a name that does not exist and says what to use
 * instead, so the compiler's message is the advice. The system's headers that declare the names
 * come first: a declaration seen after the macro would not compile.
 */
#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define BANNED(name, instead) name##_is_banned_##instead

/* No idea of the room behind the pointer. */
#undef strcpy
#define strcpy(...) BANNED(strcpy, use_snprintf_or_buf_adds)
#undef stpcpy
#define stpcpy(...) BANNED(stpcpy, use_snprintf_or_buf_adds)
#undef strcat
#define strcat(...) BANNED(strcat, use_snprintf_or_buf_adds)
#undef sprintf
#define sprintf(...) BANNED(sprintf, use_snprintf_or_buf_addf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf, use_vsnprintf)
#undef gets
#define gets(...) BANNED(gets, use_getline)

/* May leave the text without its NUL, or fill what nobody reads. */
#undef strncpy
#define strncpy(...) BANNED(strncpy, use_snprintf_or_memcpy)
#undef stpncpy
#define stpncpy(...) BANNED(stpncpy, use_snprintf_or_memcpy)
#undef strncat
#define strncat(...) BANNED(strncat, use_snprintf_or_buf_add)

/* Answer 0 for what is no number. */
#undef atoi
#define atoi(...) BANNED(atoi, use_parse_int)
#undef atol
#define atol(...) BANNED(atol, use_parse_int)
#undef atoll
#define atoll(...) BANNED(atoll, use_parse_int)
#undef atof
#define atof(...) BANNED(atof, use_parse_int)

/* Keep their state in a global: another thread changes the answer. */
#undef strtok
#define strtok(...) BANNED(strtok, use_strchr)
#undef localtime
#define localtime(...) BANNED(localtime, use_clock_format_local)
#undef gmtime
#define gmtime(...) BANNED(gmtime, use_gmtime_r)
#undef ctime
#define ctime(...) BANNED(ctime, use_clock_format_local)
#undef asctime
#define asctime(...) BANNED(asctime, use_clock_format_local)
#undef rand
#define rand(...) BANNED(rand, use_a_seeded_generator)
#undef srand
#define srand(...) BANNED(srand, use_a_seeded_generator)
#undef random
#define random(...) BANNED(random, use_a_seeded_generator)

/* Give the text to a shell. */
#undef system
#define system(...) BANNED(system, use_posix_spawn)
#undef popen
#define popen(...) BANNED(popen, use_posix_spawn)

/* A name that somebody else can take before it is opened. */
#undef mktemp
#define mktemp(...) BANNED(mktemp, use_mkstemp)
#undef tmpnam
#define tmpnam(...) BANNED(tmpnam, use_mkstemp)
#undef tempnam
#define tempnam(...) BANNED(tempnam, use_mkstemp)

/* The stack's size then comes from outside. */
#undef alloca
#define alloca(...) BANNED(alloca, use_an_arena)
