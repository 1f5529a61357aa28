/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events on nodes of pools with two placement authorities, for who looks with `kubectl describe node`: a warning on each node that is named, and a
 * word when it is over. What stays so is told again each TELL_AGAIN_MS (Events are kept for an hour), other words of it after TELL_PAUSE_MS. A
 * look follows changes after LOOK_MS: who labels the nodes of a pool one by one is not told of each step.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/authority.h"
#include "engine/kubernetes/events.h"
#include "engine/kubernetes/rights.h"

enum {
	LOOK_MS = 5000,
	TELL_PAUSE_MS = 60000,
	TELL_AGAIN_MS = 600000,
	TOLD_MOST = 256, /* pools; of others nothing is told while there are so many */
	WRITES_MOST = 32 /* Events of one look */
};

struct told_conflict {
	UT_hash_handle hh;
	char pool[KUBE_NAME_MAX + 2];
	char text[CONFLICT_TEXT_MAX];
	char nodes[CONFLICT_NODES][KUBE_NAME_MAX];
	int64_t told_ms; /* boot clock */
	uint32_t count;
	bool seen;
};

struct look {
	struct engine *engine;
	int64_t now_ms;
	uint32_t writes;
	bool again; /* there was more to tell */
};

static void noted(void *engine, const struct kube_answer *answer)
{
	char text[256];

	(void)engine;
	/* A right that lacks is said in the log; then it is told when its time comes again. */
	if (right_is_lacking(answer) || !answer->status || answer->status < 300 ||
	    answer->status == 404 || answer->status == 409)
		return;
	kube_problem(answer, text);
	log_line(LOG_WARN, "Kubernetes: an Event of a node is not taken: %s", text);
}

static void tell(struct look *look, const struct told_conflict *told, bool warning,
		 const char *text)
{
	for (uint32_t i = 0; i < CONFLICT_NODES; i++) {
		struct node_entry *node = NULL;

		HASH_FIND_STR(look->engine->nodes, told->nodes[i], node);
		if (!node || !node->node)
			continue;
		look->writes++;
		event_write(look->engine,
			    &(struct kube_event){ .kind = "Node",
						  .namespace = "",
						  .name = node->name,
						  .uid = node->name,
						  .reason = warning ? "AuthorityConflict"
								    : "AuthorityConflictOver",
						  .text = text,
						  .warning = warning,
						  .count = told->count },
			    noted);
	}
}

static struct told_conflict *told_get(struct look *look, const struct conflict *conflict)
{
	struct told_conflict *told = NULL;
	char key[sizeof(told->pool)];

	snprintf(key, sizeof(key), "%c/%.253s", conflict->own ? 'n' : 'p', conflict->pool);
	HASH_FIND_STR(look->engine->told_conflicts, key, told);
	if (told || HASH_COUNT(look->engine->told_conflicts) >= TOLD_MOST)
		return told;
	told = calloc(1, sizeof(*told));
	CHECK(told);
	memcpy(told->pool, key, sizeof(key));
	HASH_ADD_STR(look->engine->told_conflicts, pool, told);
	return told;
}

static void conflict_see(void *context, const struct conflict *conflict)
{
	struct look *look = context;
	struct told_conflict *told = told_get(look, conflict);
	int64_t since_ms = told ? look->now_ms - told->told_ms : 0;

	if (!told)
		return;
	told->seen = true;
	if (told->count &&
	    since_ms < (strcmp(told->text, conflict->text) == 0 ? TELL_AGAIN_MS : TELL_PAUSE_MS))
		return;
	if (look->writes >= WRITES_MOST) {
		look->again = true;
		return;
	}
	memcpy(told->text, conflict->text, sizeof(told->text));
	for (uint32_t i = 0; i < CONFLICT_NODES; i++)
		snprintf(told->nodes[i], sizeof(told->nodes[i]), "%s",
			 conflict->nodes[i] ? conflict->nodes[i]->name : "");
	told->count++;
	told->told_ms = look->now_ms;
	tell(look, told, true, told->text);
}

static void over_say(struct look *look, struct told_conflict *told)
{
	char text[KUBE_NAME_MAX + 64];

	snprintf(text, sizeof(text), "%s %s has one placement authority again",
		 told->pool[0] == 'n' ? "node" : "pool", told->pool + 2);
	if (told->count) {
		told->count = 1;
		tell(look, told, false, text);
	}
	HASH_DEL(look->engine->told_conflicts, told);
	free(told);
}

static void look_now(void *context)
{
	struct engine *engine = context;
	struct look look = { .engine = engine, .now_ms = clock_boot_ms() };
	struct told_conflict *told, *next;

	pthread_mutex_lock(&engine->lock);
	if (!engine->authority_look_ms || look.now_ms < engine->authority_look_ms) {
		pthread_mutex_unlock(&engine->lock);
		return;
	}
	engine->authority_look_ms = 0;
	HASH_ITER(hh, engine->told_conflicts, told, next)
	{
		told->seen = false;
	}
	conflicts_each(engine, conflict_see, &look);
	HASH_ITER(hh, engine->told_conflicts, told, next)
	{
		if (!told->seen && look.writes < WRITES_MOST)
			over_say(&look, told);
		else if (!told->seen)
			look.again = true;
	}
	if (engine->told_conflicts)
		authority_look(engine, look.again ? LOOK_MS : TELL_PAUSE_MS);
	pthread_mutex_unlock(&engine->lock);
}

void authority_look(struct engine *engine, int64_t in_ms)
{
	int64_t at_ms = clock_boot_ms() + in_ms;

	if (engine->authority_look_ms && engine->authority_look_ms <= at_ms)
		return;
	engine->authority_look_ms = at_ms;
	kube_later(engine->client, in_ms, look_now, engine);
}

void authority_changed(struct engine *engine)
{
	authority_look(engine, LOOK_MS);
}

void authority_deinit(struct engine *engine)
{
	struct told_conflict *told, *next;

	HASH_ITER(hh, engine->told_conflicts, told, next)
	{
		HASH_DEL(engine->told_conflicts, told);
		free(told);
	}
}
