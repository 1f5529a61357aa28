/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What no rule can pass on a list of openb, however often it re-packs: bounds on how much of the GPUs can be given to what was asked for.
 *
 *	by models	the most that flows from what is asked for into the GPUs of models that it accepts: by the theorem of the least
 *			cut, the least over all sets of models of (GPUs of these) + (what accepts some model besides them)
 *	by packing	parts of GPUs cannot be put together as one likes. A GPU is filled in one of the ways in which sizes fit on
 *			it; a linear program says how many GPUs are filled in which way so that most is given. Its columns are made when they
 *			pay (Gilmore and Gomory, "A linear programming approach to the cutting-stock problem", 1961).
 *
 * Processors, memory and nodes do not count, and parts of ways may be taken, so what can be reached is less. Sizes are in thousandths
 * of a GPU.
 */
#include <stdint.h>

enum { SIZES_MAX = 1000, MODELS_MAX = 16 };

/* asked[s]: GPUs, times 1000, asked for in tasks of s thousandths; asked[1000]: of whole ones. Of so many GPUs, thousandths that can be given at most. */
double bound_by_packing(const uint64_t asked[SIZES_MAX + 1], uint32_t gpus);

/* GPUs by model; asked[set]: thousandths asked for by tasks that accept the models of the set, bits. */
uint64_t bound_by_models(const uint32_t *gpus, uint32_t models, const uint64_t *asked);
