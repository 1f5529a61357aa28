/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/authority.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { NAMED_MAX = 64 };

struct holder {
	struct holder *next, *before;
	struct node_entry *node;
	bool ours; /* of a live attempt */
	int64_t gpus;
	char scheduler[KUBE_WORD_MAX], name[KUBE_WORD_MAX + KUBE_NAME_MAX];
};

/* --- schedulers ---------------------------------------------------------------------------------------------------- */

/* Of most pods; not copied for each. */
static char usual_scheduler[] = "default-scheduler";

void scheduler_keep(struct pod_entry *entry, const char *name)
{
	if (entry->scheduler || strcmp(name, KUBE_SCHEDULER) == 0)
		return;
	entry->scheduler = strcmp(name, usual_scheduler) == 0 ? usual_scheduler : strdup(name);
	CHECK(entry->scheduler);
}

void scheduler_drop(struct pod_entry *entry)
{
	if (entry->scheduler != usual_scheduler)
		free(entry->scheduler);
	entry->scheduler = NULL;
}

/* --- who holds GPUs ------------------------------------------------------------------------------------------------ */

void holder_leave(struct pod_entry *entry)
{
	struct holder *holder = entry->holder;

	if (!holder)
		return;
	if (holder->before)
		holder->before->next = holder->next;
	else
		holder->node->holders = holder->next;
	if (holder->next)
		holder->next->before = holder->before;
	free(holder);
	entry->holder = NULL;
}

void holder_follow(struct engine *engine, struct pod_entry *entry, const struct kube_pod *pod)
{
	struct node_entry *node =
		pod->use.gpus > 0 && !pod_is_over(pod) ? node_entry_find(engine, pod->node) : NULL;
	struct holder *holder = entry->holder;

	if (holder && holder->node == node && holder->ours == entry->ours)
		return;
	if (holder)
		node_changed(engine, holder->node);
	holder_leave(entry);
	if (!node)
		return;
	holder = calloc(1, sizeof(*holder));
	CHECK(holder);
	holder->node = node;
	holder->ours = entry->ours;
	holder->gpus = pod->use.gpus;
	snprintf(holder->scheduler, sizeof(holder->scheduler), "%s", pod->scheduler);
	snprintf(holder->name, sizeof(holder->name), "%s/%s", pod->namespace, pod->name);
	holder->next = node->holders;
	if (holder->next)
		holder->next->before = holder;
	node->holders = holder;
	entry->holder = holder;
	node_changed(engine, node);
}

int64_t holders_gpus(const struct node_entry *node)
{
	int64_t gpus = 0;

	for (const struct holder *holder = node->holders; holder; holder = holder->next)
		gpus += holder->gpus;
	return gpus;
}

void claimants_clear(struct node_entry *node)
{
	struct holder *holder = node->claimants, *next;

	for (; holder; holder = next) {
		next = holder->next;
		free(holder);
	}
	node->claimants = NULL;
	node->claims_work = false;
}

void claimant_add(struct node_entry *node, const char *scheduler, const char *name)
{
	uint32_t count = 0;
	struct holder *holder;

	for (holder = node->claimants; holder; holder = holder->next)
		if (strcmp(holder->name, name) == 0 || ++count == NAMED_MAX)
			return;
	holder = calloc(1, sizeof(*holder));
	CHECK(holder);
	holder->node = node;
	snprintf(holder->scheduler, sizeof(holder->scheduler), "%s", scheduler);
	snprintf(holder->name, sizeof(holder->name), "%s", name);
	holder->next = node->claimants;
	node->claimants = holder;
}

static int by_name(const void *a, const void *b)
{
	const struct holder *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* How many there are; the list has NAMED_MAX of them at most, by name. */
static uint32_t others_of(const struct node_entry *node, const struct holder *ret[NAMED_MAX],
			  uint32_t *ret_listed)
{
	uint32_t count = 0, listed = 0;

	for (const struct holder *h = node->holders; h; h = h->next) {
		if (!h->ours && listed < NAMED_MAX)
			ret[listed++] = h;
		count += !h->ours;
	}
	qsort(ret, listed, sizeof(const struct holder *), by_name);
	*ret_listed = listed;
	return count;
}

/* A node has few pods with GPUs. Those that would make it too long are counted. */
void holders_say(const struct node_entry *node, char out[HOLDERS_TEXT_MAX])
{
	const struct holder *others[NAMED_MAX] = { NULL };
	uint32_t listed, count = others_of(node, others, &listed);
	size_t size = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < listed; i++) {
		char one[160];

		snprintf(one, sizeof(one), "%s%.100s (%.40s)",
			 i           ? ", "
			 : count > 1 ? "pods "
				     : "pod ",
			 others[i]->name, others[i]->scheduler);
		if (size + strlen(one) + 16 > HOLDERS_TEXT_MAX) {
			snprintf(out + size, HOLDERS_TEXT_MAX - size, " and %u more", count - i);
			return;
		}
		size += (size_t)snprintf(out + size, HOLDERS_TEXT_MAX - size, "%s", one);
	}
}

/* --- pools --------------------------------------------------------------------------------------------------------- */

/* What is seen of a pool. */
struct pool {
	UT_hash_handle hh;
	const char *name;
	bool own; /* a node by itself, that names none */
	const struct node_entry *first, *other; /* nodes that declare different authorities */
	const struct node_entry *work; /* has work of Fairlead's */
	bool declared; /* some node says fairlead */
	const struct holder *strange; /* of another scheduler, the first by name */
	const struct node_entry *wrong; /* has work of Fairlead's, and declares another authority */
};

static const char *declared_by(const struct node_entry *node)
{
	return node->node->authority[0] ? node->node->authority : KUBE_SCHEDULER;
}

static bool is_fairleads(const struct node_entry *node)
{
	return strcmp(declared_by(node), KUBE_SCHEDULER) == 0;
}

static void pool_take_work(struct pool *pool, const struct node_entry *node, bool works)
{
	if (works && is_fairleads(node))
		pool->work = node;
	else if (works)
		pool->wrong = node;
}

static void pool_take_stranger(struct pool *pool, const struct holder *h)
{
	if (strcmp(h->scheduler, KUBE_SCHEDULER) != 0 &&
	    (!pool->strange || strcmp(h->name, pool->strange->name) < 0))
		pool->strange = h;
}

static void pool_take(struct pool *pool, const struct node_entry *node)
{
	bool fairleads = is_fairleads(node);

	if (!pool->first)
		pool->first = node;
	else if (strcmp(declared_by(pool->first), declared_by(node)) != 0 && !pool->other)
		pool->other = node;
	pool->declared |= fairleads && node->node->authority[0];
	pool_take_work(pool, node, node->claims_work);
	for (const struct holder *h = node->holders; h; h = h->next)
		if (h->ours)
			pool_take_work(pool, node, true);
		else if (fairleads)
			pool_take_stranger(pool, h);
	for (const struct holder *h = node->claimants; h && fairleads; h = h->next)
		pool_take_stranger(pool, h);
}

static void node_says(const struct node_entry *node, char out[static 160])
{
	snprintf(out, 160, "%.40s (node %.60s%s)", declared_by(node), node->name,
		 node->node->authority[0] ? "" : ", which has no label");
}

/* False: it has one authority. */
static bool pool_says(const struct pool *pool, struct conflict *ret)
{
	const char *kind = pool->own ? "node" : "pool";
	char first[160], other[160];

	ret->pool = pool->name;
	ret->own = pool->own;
	if (pool->other) {
		ret->nodes[0] = pool->first;
		ret->nodes[1] = pool->other;
		node_says(pool->first, first);
		node_says(pool->other, other);
		snprintf(
			ret->text, CONFLICT_TEXT_MAX,
			"pool %.60s has two placement authorities: %s and %s; give all of its nodes one label " KUBE_LABEL_AUTHORITY,
			pool->name, first, other);
	} else if (pool->wrong) {
		ret->nodes[0] = pool->wrong;
		snprintf(
			ret->text, CONFLICT_TEXT_MAX,
			"%s %.60s has two placement authorities: %.40s, by its label " KUBE_LABEL_AUTHORITY
			", and fairlead, whose work still runs on node %.60s; drain that",
			kind, pool->name, declared_by(pool->wrong), pool->wrong->name);
	} else if (pool->strange && (pool->declared || pool->work)) {
		ret->nodes[0] = pool->strange->node;
		snprintf(
			ret->text, CONFLICT_TEXT_MAX,
			"%s %.60s has two placement authorities: fairlead and %.40s, which placed pod %.100s on node %.60s; "
			"keep that scheduler off, or give the nodes another label " KUBE_LABEL_AUTHORITY,
			kind, pool->name, pool->strange->scheduler, pool->strange->name,
			pool->strange->node->name);
	} else {
		return false;
	}
	return true;
}

/* Those that nodes name, and nodes by themselves: these may have the same names. */
static struct pool *pool_get(struct pool *pools[2], const struct node_entry *node)
{
	const bool own = !node->node->pool[0];
	const char *name = own ? node->name : node->node->pool;
	struct pool *pool = NULL;

	HASH_FIND_STR(pools[own], name, pool);
	if (pool)
		return pool;
	pool = calloc(1, sizeof(*pool));
	CHECK(pool);
	pool->name = name;
	pool->own = own;
	HASH_ADD_KEYPTR(hh, pools[own], name, strlen(name), pool);
	return pool;
}

/* Empties them. */
static void pools_say(struct pool **pools,
		      void (*see)(void *context, const struct conflict *conflict), void *context)
{
	struct pool *pool, *next;

	HASH_ITER(hh, *pools, pool, next)
	{
		struct conflict conflict = { 0 };

		if (pool_says(pool, &conflict))
			see(context, &conflict);
		HASH_DEL(*pools, pool);
		free(pool);
	}
}

void conflicts_each(struct engine *engine,
		    void (*see)(void *context, const struct conflict *conflict), void *context)
{
	struct pool *pools[2] = { NULL, NULL };
	struct node_entry *entry, *next;

	HASH_ITER(hh, engine->nodes, entry, next)
	{
		if (entry->node)
			pool_take(pool_get(pools, entry), entry);
	}
	pools_say(&pools[0], see, context);
	pools_say(&pools[1], see, context);
}

struct first {
	uint32_t count;
	bool own;
	char pool[KUBE_NAME_MAX], *out;
};

static void first_keep(void *context, const struct conflict *conflict)
{
	struct first *first = context;

	if (first->count++ &&
	    (first->own != conflict->own ? conflict->own : strcmp(conflict->pool, first->pool) > 0))
		return;
	first->own = conflict->own;
	snprintf(first->pool, sizeof(first->pool), "%s", conflict->pool);
	memcpy(first->out, conflict->text, CONFLICT_TEXT_MAX);
}

uint32_t authority_conflicts(struct engine *engine, char out[CONFLICT_TEXT_MAX])
{
	struct first first = { .out = out };

	out[0] = '\0';
	conflicts_each(engine, first_keep, &first);
	return first.count;
}
