/* SPDX-License-Identifier: Apache-2.0 */
/* What a node has room for: host ports, pods, resources. */
#include <string.h>

#include "engine/kubernetes/predicates/check.h"

/* --- host ports ------------------------------------------------------------------------------------------------ */

static const char *port_protocol(const struct placed_pod *pod, const struct placed_port *port)
{
	return port->protocol ? placed_text(pod, port->protocol) : "TCP";
}

static const char *port_ip(const struct placed_pod *pod, const struct placed_port *port)
{
	return port->ip ? placed_text(pod, port->ip) : "0.0.0.0";
}

/* 0.0.0.0 stands for all addresses. */
static bool ports_meet(const struct placed_pod *a, const struct placed_port *mine,
		       const struct placed_pod *b, const struct placed_port *theirs)
{
	const char *ip = port_ip(a, mine), *other = port_ip(b, theirs);

	return mine->port == theirs->port &&
	       strcmp(port_protocol(a, mine), port_protocol(b, theirs)) == 0 &&
	       (strcmp(ip, other) == 0 || strcmp(ip, "0.0.0.0") == 0 ||
		strcmp(other, "0.0.0.0") == 0);
}

static bool pod_holds(const struct placed_pod *holder, const struct placed_pod *pod,
		      const struct placed_port *port)
{
	PLACED_EACH(holder, placed_port, held, holder->ports)
	{
		if (ports_meet(pod, port, holder, held))
			return true;
	}
	return false;
}

bool pods_share_port(const struct placed_pod *a, const struct placed_pod *b)
{
	PLACED_EACH(a, placed_port, port, a->ports)
	{
		if (pod_holds(b, a, port))
			return true;
	}
	return false;
}

bool ports_free(const struct check *check, const struct known_node *node)
{
	const struct placed_pod *pod = check->pod;

	PLACED_EACH(pod, placed_port, port, pod->ports)
	{
		CHECK_PODS(check, other, node)
		if (pod_holds(other->pod, pod, port))
			return false;
	}
	return true;
}

/* --- resources -------------------------------------------------------------------------------------------------- */

/* Whole ones, as the API counts them; processors in thousandths. */
static int64_t units(const char *name, int64_t milli)
{
	return strcmp(name, "cpu") == 0 || milli <= 0 ? milli : (milli - 1) / 1000 + 1;
}

static int64_t amount_of(const void *block, at_t list, const char *name)
{
	PLACED_EACH(block, placed_amount, amount, list)
	{
		if (strcmp(placed_text(block, amount->name), name) == 0)
			return units(name, amount->milli);
	}
	return 0;
}

/* Names without a domain that say nothing to a scheduler are passed over. */
bool resource_is_looked_at(const char *const *counted, const char *name)
{
	for (const char *const *other = counted; other && *other; other++)
		if (strcmp(*other, name) == 0)
			return false;
	return strcmp(name, "cpu") == 0 || strcmp(name, "memory") == 0 ||
	       strcmp(name, "ephemeral-storage") == 0 || strchr(name, '/') ||
	       strncmp(name, "hugepages-", strlen("hugepages-")) == 0 ||
	       strncmp(name, "attachable-volumes-", strlen("attachable-volumes-")) == 0;
}

static bool resource_free(const struct check *check, const struct known_node *node,
			  const struct placed_amount *wish)
{
	const char *name = placed_text(check->pod, wish->name);
	int64_t left = amount_of(node->node, node->node->allocatable, name);
	int64_t need = units(name, wish->milli);

	if (need <= 0 || !resource_is_looked_at(check->counted, name))
		return true;
	CHECK_PODS(check, other, node)
	left -= amount_of(other->pod, other->pod->requests, name);
	return need <= left / check->times;
}

enum predicate resources_free(const struct check *check, const struct known_node *node)
{
	int64_t pods = amount_of(node->node, node->node->allocatable, "pods");

	CHECK_PODS(check, other, node)
	pods -= other->pod != NULL;
	if (pods < (int64_t)check->times)
		return PREDICATE_PODS;
	PLACED_EACH(check->pod, placed_amount, wish, check->pod->requests)
	{
		if (!resource_free(check, node, wish))
			return PREDICATE_RESOURCE;
	}
	return PREDICATE_FITS;
}

int64_t predicates_need(const struct placed_pod *pod, const char *name)
{
	return strcmp(name, "pods") == 0 ? 1 : amount_of(pod, pod->requests, name);
}

int64_t predicates_left(const struct predicates *p, const char *node, const char *name,
			const char *const *counted)
{
	const struct known_node *known = predicates_node(p, node);
	const bool pods = strcmp(name, "pods") == 0;
	int64_t left;

	if (!pods && !resource_is_looked_at(counted, name))
		return INT64_MAX;
	if (!known || !known->node)
		return 0;
	left = amount_of(known->node, known->node->allocatable, name);
	for (const struct known_pod *other = known->pods; other; other = other->next)
		left -= pods ? 1 : amount_of(other->pod, other->pod->requests, name);
	return left;
}

enum amount_lack amount_lacks(const struct check *check, const struct placed_amount *wish)
{
	const char *name = placed_text(check->pod, wish->name);
	int64_t need = units(name, wish->milli), most = 0;

	if (need <= 0 || !resource_is_looked_at(check->counted, name))
		return AMOUNT_THERE;
	for (uint32_t i = 0; i < check->p->count; i++) {
		const struct placed_node *node = check->p->nodes[i]->node;
		int64_t has = node ? amount_of(node, node->allocatable, name) : 0;

		most = has > most ? has : most;
	}
	return most >= need ? AMOUNT_THERE : most ? AMOUNT_LESS : AMOUNT_NONE;
}
