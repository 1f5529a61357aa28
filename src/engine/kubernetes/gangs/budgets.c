/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PodDisruptionBudgets: which gangs that run are shielded, because a budget allows no more of its pods to be disrupted (docs/decisions/0020).
 *
 * A budget says how many it allows now. So many of its pods stay open, those of the newest attempts first; the attempts of all others are
 * shielded, and the core takes them only where nothing else serves. A gang is open as a whole or not at all. Pods that are being deleted count
 * as disrupted, for the controller that counts may not have seen them yet.
 *
 *	budget allows 1, three pods of one job each:	the newest is open, two are shielded
 *	that one is stopped:				all that are left are shielded, until the controller counts anew
 *
 * All of them are looked at together, SHIELD_MS after something changed. Where there is no budget nothing is looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/predicates/match.h"

enum { SHIELD_MS = 200, BUDGET_NAME_MAX = KUBE_WORD_MAX + KUBE_NAME_MAX + 2 };

struct budget {
	UT_hash_handle hh;
	char name[BUDGET_NAME_MAX]; /* namespace/name */
	struct placed_budget *block;
	struct budget *next; /* of the same namespace, while all are looked at */
	int64_t left; /* it may still lose so many pods */
	uint32_t met; /* pods of the gang that is looked at */
	bool seen; /* in the list that is being taken */
};

/* The budgets of a namespace, while all are looked at. */
struct of_namespace {
	UT_hash_handle hh;
	const char *name;
	struct budget *first;
};

/* --- looking -------------------------------------------------------------------------------------------------------- */

static void namespaces_free(struct of_namespace *namespaces)
{
	struct of_namespace *one, *next;

	HASH_ITER(hh, namespaces, one, next)
	{
		HASH_DEL(namespaces, one);
		free(one);
	}
}

static struct of_namespace *namespaces_make(struct engine *engine)
{
	struct of_namespace *namespaces = NULL, *one;
	struct budget *budget, *next;

	HASH_ITER(hh, engine->gangs.budgets, budget, next)
	{
		const char *name = placed_text(budget->block, budget->block->namespace);

		HASH_FIND_STR(namespaces, name, one);
		if (!one) {
			one = calloc(1, sizeof(*one));
			CHECK(one);
			one->name = name;
			HASH_ADD_KEYPTR(hh, namespaces, one->name, strlen(one->name), one);
		}
		budget->left = budget->block->allowed;
		budget->met = 0;
		budget->next = one->first;
		one->first = budget;
	}
	return namespaces;
}

static struct budget *budgets_of(struct of_namespace *namespaces, const char *namespace)
{
	struct of_namespace *one;

	HASH_FIND_STR(namespaces, namespace, one);
	return one ? one->first : NULL;
}

/* Counts its pods by the budgets that name them. */
static void attempt_meet(struct engine *engine, const struct attempt_entry *attempt,
			 struct of_namespace *namespaces)
{
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct rank_state *state = &attempt->ranks[rank];
		struct budget *budget = budgets_of(namespaces, state->namespace);
		const struct placed_pod *pod = budget && state->bound && !state->over
						       ? predicates_pod(&engine->known, state->uid)
						       : NULL;

		for (; pod && budget; budget = budget->next)
			budget->met += selector_matches(budget->block, &budget->block->pods, pod,
							pod->labels);
	}
}

static void shield_tell(struct engine *engine, struct attempt_entry *attempt, bool shielded)
{
	const struct engine_fact fact = { .kind = shielded ? ENGINE_SHIELDED : ENGINE_UNSHIELDED,
					  .attempt = attempt->id,
					  .time_ms = clock_wall_ms() };

	if (attempt->shield_told && attempt->shielded == shielded)
		return;
	attempt->shielded = shielded;
	attempt->shield_told = true;
	engine->options.report(engine->options.context, &fact);
}

/* What is disrupted already takes from its budgets; of what is left an attempt takes what it would cost, or is shielded. */
static bool attempt_takes(struct engine *engine, const struct attempt_entry *attempt,
			  struct of_namespace *namespaces, bool disrupted)
{
	bool enough = true;

	attempt_meet(engine, attempt, namespaces);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		for (struct budget *b = budgets_of(namespaces, attempt->ranks[rank].namespace); b;
		     b = b->next)
			enough &= b->met <= (b->left > 0 ? (uint64_t)b->left : 0);
	for (uint32_t rank = 0; rank < attempt->tasks; rank++)
		for (struct budget *b = budgets_of(namespaces, attempt->ranks[rank].namespace); b;
		     b = b->next) {
			if (enough || disrupted)
				b->left -= b->met;
			b->met = 0;
		}
	return enough;
}

static bool is_disrupted(struct engine *engine, const struct attempt_entry *attempt)
{
	if (attempt->stopping)
		return true;
	for (uint32_t rank = 0; rank < attempt->tasks; rank++) {
		const struct member *member = member_find(engine, attempt->ranks[rank].uid);

		if (member && member->deleting && !attempt->ranks[rank].over)
			return true;
	}
	return false;
}

static int newest_first(const void *a, const void *b)
{
	const struct attempt_entry *x = *(struct attempt_entry *const *)a,
				   *y = *(struct attempt_entry *const *)b;

	return x->id > y->id ? -1 : x->id < y->id;
}

static void shields_look(struct engine *engine)
{
	struct of_namespace *namespaces = namespaces_make(engine);
	struct attempt_entry **list = calloc(HASH_COUNT(engine->attempts) + 1, sizeof(*list)),
			     *attempt, *next;
	uint32_t count = 0;

	CHECK(list);
	HASH_ITER(hh, engine->attempts, attempt, next)
	{
		if (!attempt->gang || attempt->ended)
			continue;
		if (is_disrupted(engine, attempt))
			(void)attempt_takes(engine, attempt, namespaces, true);
		else
			list[count++] = attempt;
	}
	qsort(list, count, sizeof(struct attempt_entry *), newest_first);
	for (uint32_t i = 0; i < count; i++)
		shield_tell(engine, list[i], !attempt_takes(engine, list[i], namespaces, false));
	free(list);
	namespaces_free(namespaces);
}

static void look_late(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	engine->gangs.budgets_wait = false;
	if (engine->pods_listed) /* else gangs_listed asks again */
		shields_look(engine);
	pthread_mutex_unlock(&engine->lock);
}

void budgets_want(struct engine *engine)
{
	if (engine->gangs.budgets_wait)
		return;
	engine->gangs.budgets_wait = true;
	kube_later(engine->client, SHIELD_MS, look_late, engine);
}

void budgets_touch(struct engine *engine)
{
	if (engine->gangs.budgets)
		budgets_want(engine);
}

/* --- following ---------------------------------------------------------------------------------------------------------- */

static void budget_remove(struct engine *engine, struct budget *budget)
{
	HASH_DEL(engine->gangs.budgets, budget);
	free(budget->block);
	free(budget);
}

static void begin(void *context)
{
	struct engine *engine = context;
	struct budget *budget, *next;

	pthread_mutex_lock(&engine->lock);
	HASH_ITER(hh, engine->gangs.budgets, budget, next)
	{
		budget->seen = false;
	}
	pthread_mutex_unlock(&engine->lock);
}

static struct budget *budget_find(struct engine *engine, const char *name)
{
	struct budget *budget;

	HASH_FIND_STR(engine->gangs.budgets, name, budget);
	return budget;
}

static struct budget *budget_get(struct engine *engine, const char *name)
{
	struct budget *budget = budget_find(engine, name);

	if (budget)
		return budget;
	budget = calloc(1, sizeof(*budget));
	CHECK(budget);
	snprintf(budget->name, sizeof(budget->name), "%s", name);
	HASH_ADD_STR(engine->gangs.budgets, name, budget);
	return budget;
}

static void budget_take(struct engine *engine, struct placed_budget *block, bool deleted)
{
	struct budget *budget;
	char name[BUDGET_NAME_MAX];

	snprintf(name, sizeof(name), "%s/%s", placed_text(block, block->namespace),
		 placed_text(block, block->name));
	if (deleted) {
		budget = budget_find(engine, name);
		free(block);
		if (budget)
			budget_remove(engine, budget);
		return;
	}
	budget = budget_get(engine, name);
	free(budget->block);
	budget->block = block;
	budget->seen = true;
}

static void object_came(void *context, const char *json, size_t size, bool deleted)
{
	struct engine *engine = context;
	struct placed_budget *block;
	struct err err = { 0 };

	if (placed_budget_read(json, size, &block, &err) < 0) {
		log_line(LOG_WARN, "Kubernetes: a PodDisruptionBudget can't be read: %s", err.text);
		return;
	}
	pthread_mutex_lock(&engine->lock);
	budget_take(engine, block, deleted);
	budgets_want(engine);
	pthread_mutex_unlock(&engine->lock);
}

static void listed(void *context)
{
	struct engine *engine = context;
	struct budget *budget, *next;

	pthread_mutex_lock(&engine->lock);
	HASH_ITER(hh, engine->gangs.budgets, budget, next)
	{
		if (!budget->seen)
			budget_remove(engine, budget);
	}
	engine->gangs.budgets_absent = false;
	budgets_want(engine);
	pthread_mutex_unlock(&engine->lock);
}

static void absent(void *context)
{
	struct engine *engine = context;

	pthread_mutex_lock(&engine->lock);
	if (!engine->gangs.budgets_absent)
		log_line(
			LOG_WARN,
			"Kubernetes: poddisruptionbudgets can't be listed: pods are stopped for others without regard to them (docs/kubernetes.md, Rights)");
	engine->gangs.budgets_absent = true;
	budgets_want(engine);
	pthread_mutex_unlock(&engine->lock);
}

void budgets_start(struct engine *engine)
{
	engine->gangs.budget_watch = watch_create(
		engine->client,
		&(struct watch_options){ .path = "/apis/policy/v1/poddisruptionbudgets",
					 .context = engine,
					 .begin = begin,
					 .object = object_came,
					 .listed = listed,
					 .absent = absent });
}

void budgets_deinit(struct engine *engine)
{
	struct budget *budget, *next;

	watch_destroy(engine->gangs.budget_watch);
	HASH_ITER(hh, engine->gangs.budgets, budget, next)
	{
		budget_remove(engine, budget);
	}
}
