/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API's rule for what a pod takes: its containers together with those that start first and stay; or, where that is more, one
 * container of its beginning with those that stay and began before it. What the pod states as a whole comes in the place of that; its
 * overhead is added.
 *
 *	begin a 3, stay b 1, begin c 4, main 2	->  max(3, 1 + 4, 1 + 2) = 5
 *
 * Of a pod that is being resized in place the node may still hold the old amounts: the larger counts, of what is wished, granted and
 * in force; when the node has said that it never will, of the latter two.
 */
#include "engine/kubernetes/predicates/amounts.h"

#include <string.h>

static struct placed_amount *find(struct block *block, at_t list, const char *name)
{
	PLACED_EACH(block->data, placed_amount, amount, list)
	{
		if (strcmp(placed_text(block->data, amount->name), name) == 0)
			return (struct placed_amount *)(void *)(block->data +
								((const char *)amount -
								 block->data));
	}
	return NULL;
}

static struct placed_amount *find_or_add(struct block *block, struct chain *to, at_t name)
{
	struct placed_amount *amount = find(block, to->first, placed_text(block->data, name));

	if (!amount) {
		amount = chain_add(block, to, sizeof(*amount));
		amount->name = name;
	}
	return amount;
}

static int64_t sum(int64_t a, int64_t b)
{
	return b > 0 && a > INT64_MAX - b ? INT64_MAX : a + b;
}

void amounts_add(struct block *block, struct chain *to, at_t from)
{
	PLACED_EACH(block->data, placed_amount, amount, from)
	{
		struct placed_amount *mine = find_or_add(block, to, amount->name);

		mine->milli = sum(mine->milli, amount->milli);
	}
}

void amounts_most(struct block *block, struct chain *to, at_t from)
{
	PLACED_EACH(block->data, placed_amount, amount, from)
	{
		struct placed_amount *mine = find_or_add(block, to, amount->name);

		mine->milli = amount->milli > mine->milli ? amount->milli : mine->milli;
	}
}

/* What a pod may state as a whole. */
static bool is_of_pods(const char *name)
{
	return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
	       strncmp(name, "hugepages-", strlen("hugepages-")) == 0;
}

at_t amounts_copy(struct block *to, const struct block *from, at_t list)
{
	struct chain chain = { 0 };

	PLACED_EACH(from->data, placed_amount, amount, list)
	{
		const char *name = placed_text(from->data, amount->name);
		at_t copy = block_text(to, name, strlen(name));
		struct placed_amount *mine = chain_add(to, &chain, sizeof(*mine));

		mine->name = copy;
		mine->milli = amount->milli;
	}
	return chain.first;
}

static const struct container *status_of(const struct wishes *wishes, at_t name)
{
	PLACED_EACH(wishes->block.data, container, status, wishes->statuses.first)
	{
		if (text_is(&wishes->block, status->name, placed_text(wishes->block.data, name)))
			return status->has_status ? status : NULL;
	}
	return NULL;
}

/* What counts while a resize may be under way. */
static at_t in_force(struct wishes *wishes, at_t wished, at_t actuated, at_t allocated)
{
	struct chain most = { 0 };

	if (!wishes->infeasible)
		amounts_most(&wishes->block, &most, wished);
	amounts_most(&wishes->block, &most, actuated);
	amounts_most(&wishes->block, &most, allocated);
	return most.first;
}

static at_t container_takes(struct wishes *wishes, const struct container *container)
{
	const struct container *status = NULL;

	if (wishes->runs && (!container->begins || container->stays))
		status = status_of(wishes, container->name);
	return status ? in_force(wishes, container->requests, status->actuated, status->allocated)
		      : container->requests;
}

static void add_containers(struct wishes *wishes, struct chain *all)
{
	struct chain stay = { 0 }, begin = { 0 };

	PLACED_EACH(wishes->block.data, container, container, wishes->containers.first)
	{
		at_t takes = container_takes(wishes, container);
		struct chain now = { 0 };

		if (!container->begins) {
			amounts_add(&wishes->block, all, takes);
			continue;
		}
		if (container->stays) {
			amounts_add(&wishes->block, all, takes);
			amounts_add(&wishes->block, &stay, takes);
			amounts_most(&wishes->block, &begin, stay.first);
			continue;
		}
		amounts_add(&wishes->block, &now, takes);
		amounts_add(&wishes->block, &now, stay.first);
		amounts_most(&wishes->block, &begin, now.first);
	}
	amounts_most(&wishes->block, all, begin.first);
}

/* What the pod states as a whole comes in the place of what its containers come to. */
static void replace(struct wishes *wishes, struct chain *all)
{
	struct block *block = &wishes->block;
	at_t stated = wishes->pod_requests;

	if (wishes->runs && wishes->has_pod_status)
		stated = in_force(wishes, stated, wishes->pod_actuated, wishes->pod_allocated);
	PLACED_EACH(block->data, placed_amount, amount, wishes->pod_requests)
	{
		const char *name = placed_text(block->data, amount->name);
		const struct placed_amount *now = find(block, stated, name);

		if (is_of_pods(name))
			find_or_add(block, all, amount->name)->milli = now ? now->milli : 0;
	}
}

at_t wishes_sum(struct wishes *wishes)
{
	struct chain all = { 0 };

	add_containers(wishes, &all);
	replace(wishes, &all);
	amounts_add(&wishes->block, &all, wishes->overhead);
	return all.first;
}
