/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* For tests of job files: each test has an arena of its own, and a text is read or refused whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/jobfile/jobfile.h"
#include "base/arena.h"
#include "base/conf.h"

/* What a test reads lives here until it ends. */
extern struct arena jobfile_arena;

int jobfile_begin(void **state);
int jobfile_end(void **state);

/* Fails the test when the text is refused. */
struct job_request good(const char *text);
/* Fails the test when the text is accepted. */
struct err bad(const char *text);
