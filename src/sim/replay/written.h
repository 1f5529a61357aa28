/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A file that is written whole or is not there. */
#include <stdio.h>
#include "base/err.h"

/* What `put` writes becomes the file; path NULL: standard output. Fails as `put` does, and when the file can't be written; then it is removed. */
int written(const char *path, int (*put)(const void *context, FILE *out, struct err *err),
	    const void *context, struct err *err) MUST_CHECK;
