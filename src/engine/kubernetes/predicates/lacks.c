/* SPDX-License-Identifier: Apache-2.0 */
/* What a pod asks for and no node has, whatever else runs there: a slip of the pen, or nodes that are yet to come. */
#include <stdio.h>
#include <string.h>

#include "engine/kubernetes/predicates/check.h"

/* A label of its nodeSelector. */
static const struct placed_label *label_lacks(const struct predicates *p,
					      const struct placed_pod *pod)
{
	PLACED_EACH(pod, placed_label, label, pod->node_selector)
	{
		bool found = false;

		for (uint32_t i = 0; i < p->count && !found; i++) {
			const struct placed_node *node = p->nodes[i]->node;
			const char *value = node ? placed_label_find(node, node->labels,
								     placed_text(pod, label->key))
						 : NULL;

			found = value && strcmp(value, placed_text(pod, label->value)) == 0;
		}
		if (!found)
			return label;
	}
	return NULL;
}

void predicates_wished(const struct placed_pod *pod, const char *const *counted, char *text,
		       size_t room)
{
	size_t used = 0;

	text[0] = '\0';
	PLACED_EACH(pod, placed_amount, wish, pod->requests)
	{
		const char *name = placed_text(pod, wish->name);

		if (used >= room || wish->milli <= 0 || !resource_is_looked_at(counted, name))
			continue;
		used += (size_t)snprintf(text + used, room - used, "%s%.120s", used ? " or " : "",
					 name);
	}
}

bool predicates_lack(const struct predicates *p, const struct placed_pod *pod,
		     const char *const *counted, char *text, size_t room)
{
	const struct check check = { .p = p, .pod = pod, .counted = counted, .times = 1 };
	const struct placed_label *label = label_lacks(p, pod);

	if (label) {
		snprintf(text, room, "no node has the label %.148s=%.63s",
			 placed_text(pod, label->key), placed_text(pod, label->value));
		return true;
	}
	PLACED_EACH(pod, placed_amount, wish, pod->requests)
	{
		enum amount_lack lack = amount_lacks(&check, wish);

		if (lack == AMOUNT_THERE)
			continue;
		snprintf(text, room,
			 lack == AMOUNT_NONE
				 ? "no node has the resource \"%.120s\""
				 : "no node has as much of the resource \"%.120s\" as is asked for",
			 placed_text(pod, wish->name));
		return true;
	}
	return false;
}
