/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/departure.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

/* Seconds; UNSAID = each job has its grace. */
enum { UNSAID = 0, TWO_MINUTES_S = 110, HALF_A_MINUTE_S = 25, AUTOSCALER_S = 590 };

static const struct departure {
	const char *key, *value; /* NULL = any value */
	int64_t spot_s, other_s; /* on a spot node, on any other */
	const char *why;
} departures[] = {
	{ "aws-node-termination-handler/spot-itn", NULL, TWO_MINUTES_S, TWO_MINUTES_S,
	  "its provider takes it back" },
	{ "aws-node-termination-handler/asg-lifecycle-termination", NULL, UNSAID, UNSAID,
	  "its group takes it away" },
	{ "aws-node-termination-handler/scheduled-maintenance", NULL, UNSAID, UNSAID,
	  "its provider has maintenance" },
	{ "cloud.google.com/impending-node-termination", NULL, HALF_A_MINUTE_S, UNSAID,
	  "its provider takes it away" },
	{ "remediator.kubernetes.azure.com/unschedulable", NULL, HALF_A_MINUTE_S, UNSAID,
	  "its provider takes it away" },
	{ "karpenter.sh/disrupted", NULL, TWO_MINUTES_S, UNSAID, "Karpenter takes it away" },
	{ "karpenter.sh/disruption", "disrupting", TWO_MINUTES_S, UNSAID,
	  "Karpenter takes it away" },
	{ "ToBeDeletedByClusterAutoscaler", NULL, AUTOSCALER_S, AUTOSCALER_S,
	  "the cluster autoscaler takes it away" },
};

static bool is_sooner(const struct kube_node *node, int64_t in_s)
{
	return !node->goes || (in_s && (!node->goes_in_s || in_s < node->goes_in_s));
}

bool departure_read(struct kube_node *node, const char *key, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(departures); i++) {
		const struct departure *d = &departures[i];
		int64_t in_s = node->spot ? d->spot_s : d->other_s;

		if (strcmp(d->key, key) != 0 || (d->value && strcmp(d->value, value) != 0))
			continue;
		if (is_sooner(node, in_s)) {
			node->goes_in_s = in_s;
			snprintf(node->goes_why, sizeof(node->goes_why), "%s (taint %s)", d->why,
				 d->key);
		}
		node->goes = true;
		return true;
	}
	return false;
}
