/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Nodes that will go, by the taints with which providers, autoscalers and Karpenter say so. What runs there is warned, saves, stops, and goes on
 * elsewhere, as with a drain (docs/kubernetes.md, "Nodes that will go", has the table for people).
 *
 *	how long there is	the provider's notice, less what passes until the taint is there and until a stop has come through: of 2 minutes
 *				110 s are counted on, of 30 seconds 25 s. 0 = nobody says: each job has its grace
 *
 * Some taints mean two things: a spot node is taken away, or a person's change is carried out, which has time. There the node's label decides.
 */
#include "engine/kubernetes/objects.h"

/* Counts the taint into what the node says of its going; of several the one that leaves the least time. True when it is one of these. Labels are read before. */
bool departure_read(struct kube_node *node, const char *key, const char *value);
