/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/fault.h"

#include <errno.h>

#include "base/check.h"
#include "base/err.h"

static const struct {
	const char *word, *reason, *remedy;
} faults[ENGINE_FAULTS] = {
	[ENGINE_FAULT_NONE] = { "", "", "" },
#define FAULT(name, word, reason, remedy) [ENGINE_FAULT_##name] = { word, reason, remedy },
#include "engine/fault.def"
#undef FAULT
};

enum { NO_WATCHES = EUSERS };

static enum engine_fault fault_of_errno(int errnum)
{
	switch (errnum) {
	case ENOSPC:
	case EDQUOT: return ENGINE_FAULT_SPACE;
	case EAGAIN: return ENGINE_FAULT_PROCESSES;
	case EMFILE:
	case ENFILE: return ENGINE_FAULT_FILES;
	case NO_WATCHES: return ENGINE_FAULT_WATCHES;
	case ENOMEM: return ENGINE_FAULT_MEMORY;
	case ENOLCK: return ENGINE_FAULT_LOCKS;
	case EIO:
	case ESTALE:
	case ENXIO:
	case EUCLEAN: return ENGINE_FAULT_DISK;
	case EROFS: return ENGINE_FAULT_READ_ONLY;
	default: return ENGINE_FAULT_NONE;
	}
}

enum engine_fault fault_of(const struct err *err)
{
	return err ? fault_of_errno(err->errnum) : ENGINE_FAULT_NONE;
}

bool fault_blinds_errno(int errnum)
{
	const enum engine_fault fault = fault_of_errno(errnum);

	return fault == ENGINE_FAULT_FILES || fault == ENGINE_FAULT_MEMORY ||
	       fault == ENGINE_FAULT_PROCESSES;
}

bool fault_blinds(const struct err *err)
{
	return err && fault_blinds_errno(err->errnum);
}

int fault_watches(struct err *err, const char *path)
{
	int rc = err_set(
		err, ERR_UNAVAILABLE,
		"could not watch %s: all file watches of the account are used, raise fs.inotify.max_user_watches",
		path);

	if (err)
		err->errnum = NO_WATCHES;
	return rc;
}

const char *fault_word(enum engine_fault fault)
{
	CHECK(fault < ENGINE_FAULTS);
	return faults[fault].word;
}

const char *fault_reason(enum engine_fault fault)
{
	CHECK(fault < ENGINE_FAULTS);
	return faults[fault].reason;
}

const char *fault_remedy(enum engine_fault fault)
{
	CHECK(fault < ENGINE_FAULTS);
	return faults[fault].remedy;
}
