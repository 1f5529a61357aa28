/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The report as a page: one file of HTML without script, which loads nothing, for light and dark screens and for paper. Its figures
 * are those of replay.json, in the same digits in each cell's data-value.
 */
#include "base/buf.h"
#include "sim/replay/replay_report.h"

void replay_page(struct buf *out, const char *cluster, const struct replay_result *results,
		 uint32_t count);
