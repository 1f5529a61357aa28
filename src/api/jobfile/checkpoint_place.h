/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether what a job saves outlives its pods. */
#include "base/arena.h"
#include "base/conf.h"

/* What has to be said of the checkpoint folder of a job that was read; "" = it lies on a volume that stays, or is not known to go. */
const char *checkpoint_place_text(const struct conf *document, struct arena *arena);
