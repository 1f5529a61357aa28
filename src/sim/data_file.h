/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Data sets as they stand in a file: what a cluster file, a scenario and a body of the API say in the same words.
 *
 *	data: {imagenet: {size: 150GB, at: [eu]}}				how large, and the domains that keep a copy
 *	transfers: [{from: eu, to: us, price: 0.09, bandwidth: 10Gb/s}]		price of 10^9 bytes; into one host
 *
 * Each key replaces all that was said before. Complaints name file, line and column.
 */
#include "base/conf.h"
#include "core/core.h"

struct arena;

/* The events, of kind data-set and transfer-set, with nothing but their own fields; what the facts know and the file does not name any
 * more is said to be gone. `data` and `transfers` may be NULL: then that stays as it is. */
int data_file_read(const char *file, const struct conf *data, const struct conf *transfers,
		   const struct facts *facts, struct arena *arena, struct event **ret,
		   uint32_t *ret_count, struct err *err) MUST_CHECK;
