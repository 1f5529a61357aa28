/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Amounts of money as they are given and shown: "12.50", exact to a millionth. */
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/conf.h"
#include "core/core.h"

const char *money_text(struct arena *arena, int64_t micro);
/* As "price", where models have prices; in the currency of the queue's budget, or of the first one above that has one. */
void price_add(struct buf *out, const struct facts *f, struct queue_id queue,
	       const struct price_range *price);
/* What it takes to bring a job's data sets to its place, as "transfer"; nothing when it takes nothing. ms -1: nobody knows. */
void transfer_add(struct buf *out, const struct facts *f, struct queue_id queue, int64_t ms,
		  int64_t micro);
/* The body's member: an amount, or "none" as -1. It must be there. */
int money_read(const struct conf *body, const char *key, int64_t *ret_micro, struct err *err)
	MUST_CHECK;
