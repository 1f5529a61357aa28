/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Jobs that have left the facts, for those routes that show one job as it was: its records are read back from the history and
 * applied to a copy of the facts, so that every handler shows it as it did when it ended.
 */
#include "api/call.h"

/* Whether the job was once there and is not any more, and the call's route shows such jobs. */
bool job_is_past(const struct call *call, struct job_id id);
/* Makes the job so in facts of the call's own; reads files. 0 also when the history does not know it: then it is not there. */
int call_revive(struct call *call, struct job_id id, struct err *err) MUST_CHECK;
