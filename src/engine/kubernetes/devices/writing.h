/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is written to a ResourceClaim, as JSON: parts of a body, added to it. */
#include "base/buf.h"
#include "engine/kubernetes/devices/devices.h"

void claim_add_text(struct buf *out, const char *text);
/* {"metadata":{"uid":...,"resourceVersion":... , so that a claim that was changed meanwhile refuses; the caller closes both. */
void claim_add_head(struct buf *out, const struct dra_claim *claim);
/* status.allocation: devices, configurations, and the node, unless all nodes have the devices. */
void claim_add_allocation(struct engine *engine, const struct dra_claim *claim,
			  const struct dra_allocation *allocation, const char *node,
			  struct buf *out);
/* "reservedFor":[...]: who it is reserved for, with the rank's pod or without. */
void claim_add_reserved(struct buf *out, const struct dra_claim *claim,
			const struct rank_state *state, bool with);
