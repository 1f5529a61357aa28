/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files of other schedulers, given where a job file is expected: recognised by their text, and answered line by line with the
 * names that a job file has for the same (foreign.def). Nothing is converted: what has no counterpart would be lost unseen.
 */
#include <stddef.h>
#include "base/buf.h"

enum foreign_kind {
	FOREIGN_NONE,
	FOREIGN_SBATCH, /* a script with #SBATCH lines */
	FOREIGN_SCRIPT, /* a script without them */
	FOREIGN_SKYPILOT,
	FOREIGN_DSTACK,
	FOREIGN_KUBERNETES
};

/* text: NUL behind it. A job file of Fairlead may be taken for another's: ask only of a file that was refused as one. */
enum foreign_kind foreign_recognise(const char *text);
/* "an sbatch script" */
const char *foreign_name(enum foreign_kind kind);
/* A line for each of the file's that says something: its number, its text, what it is called in a job file. */
void foreign_explain(enum foreign_kind kind, const char *text, struct buf *out);
