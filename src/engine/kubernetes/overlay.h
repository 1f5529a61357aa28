/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a job adds to its pods, merged into them (docs/decisions/0021). Both are JSON; which fields may be said was looked at when the job was
 * submitted (api/jobfile/jobfile_overlay.c).
 *
 *	maps	member by member
 *	lists	of maps: those with the same name (mountPath, containerPort, ip) are merged, others come behind; of texts: what is not there yet comes behind
 *	else	what is added replaces what was there
 *
 * Limits: those of base/conf.h, for each of them.
 */
#include <stddef.h>
#include "base/err.h"

struct arena;
struct buf;

/* Replaces pod by what comes of it. Negative: one of them can't be read, and pod is as it was. */
int overlay_merge(struct buf *pod, const char *overlay, struct arena *arena, struct err *err)
	MUST_CHECK;
