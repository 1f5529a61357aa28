/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Faults of a machine that keep it from starting a task, and that pass: too many processes, no file watches left, a disk that can
 * only be read. They are no fault of the job's: it waits again at no cost, and nothing is started on the machine until a start is
 * possible (daemon/machine_faults.c). fault.def lists them.
 */
#include <stdbool.h>

struct err;

enum engine_fault {
	ENGINE_FAULT_NONE,
#define FAULT(name, word, reason, remedy) ENGINE_FAULT_##name,
#include "engine/fault.def"
#undef FAULT
	ENGINE_FAULTS
};

/* The one that an error of the system speaks of (err->errnum); NONE: it speaks of none. err may be NULL. */
enum engine_fault fault_of(const struct err *err);
/* Whether this process could not look at all, for want of descriptors or memory: nothing is known of what it was to look at, and a later look
 * may tell. err may be NULL. */
bool fault_blinds(const struct err *err);
bool fault_blinds_errno(int errnum); /* the same of what a system call answered */
/* Says that the file watches are used up, about that path: the kernel's own answer, ENOSPC, is the disk's everywhere else. Returns as err_set. */
int fault_watches(struct err *err, const char *path);

/* "processes"; "" for NONE. Static text, as the next two. */
const char *fault_word(enum engine_fault fault);
/* "no process can be made on it: nothing is started until one can" */
const char *fault_reason(enum engine_fault fault);
/* "end some processes, or raise ..." */
const char *fault_remedy(enum engine_fault fault);
