/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether what one object says fits what another is: selectors, node affinity, tolerations. Blocks of placed.h. */
#include "engine/kubernetes/predicates/placed.h"

/* The selector stands in one block, the labels in another. */
bool selector_matches(const void *block, const struct placed_selector *selector, const void *other,
		      at_t labels);
/* A node selector's terms, of a pod or a volume; `fields`: its matchFields count too. */
bool node_terms_match(const void *block, at_t terms, const struct placed_node *node, bool fields);
/* nodeSelector and required node affinity. */
bool pod_wants_node(const struct placed_pod *pod, const struct placed_node *node);
/* The first taint that keeps the pod away; NULL = none. */
const struct placed_taint *untolerated(const struct placed_pod *pod,
				       const struct placed_node *node);
bool tolerates(const struct placed_pod *pod, const char *key, const char *value,
	       const char *effect);
