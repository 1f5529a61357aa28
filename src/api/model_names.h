/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Short names of GPU models: "H100" for "H100-80GB" while only one model of the nodes that there are bears it. What is kept of a job
 * is the whole name, so a model that comes later changes nothing.
 */
#include "core/model/facts.h"

struct arena;

/*
 * models: names with commas between. *ret, in the arena: the same with short names in full. A name that a node bears stays as it
 * is, and so does one that no node bears: such nodes may come. ERR_INVALID for a short name of several models, with their names, and
 * for one that another name of the list means too.
 */
int models_in_full(const struct facts *facts, const char *models, struct arena *arena,
		   const char **ret, struct err *err) MUST_CHECK;
/*
 * Whether `name` is a short name of `model`: letters of any size, whole words of it from the first letter of one on. "H100" and
 * "a100-80gb" are ones of "NVIDIA-H100-80GB" and "A100-80GB-PCIe"; "80GB" and "H10" are none.
 */
bool model_has_short_name(const char *model, const char *name);
