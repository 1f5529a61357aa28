/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, claims, volumes and their classes, followed for the predicates. Where the account may not list them, pods that need them are refused by name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/reading.h"

static const struct {
	const char *path, *what;
} kinds[SOURCE_END] = {
	[SOURCE_NAMESPACES] = { "/api/v1/namespaces", "namespaces" },
	[SOURCE_CLAIMS] = { "/api/v1/persistentvolumeclaims", "persistentvolumeclaims" },
	[SOURCE_VOLUMES] = { "/api/v1/persistentvolumes", "persistentvolumes" },
	[SOURCE_CLASSES] = { "/apis/storage.k8s.io/v1/storageclasses", "storageclasses" },
};

static struct known_thing **things_of(struct source *source)
{
	struct predicates *p = &source->engine->known;

	switch (source->kind) {
	case SOURCE_NAMESPACES: return &p->namespaces;
	case SOURCE_CLAIMS: return &p->claims;
	case SOURCE_VOLUMES: return &p->volumes;
	case SOURCE_CLASSES:
	case SOURCE_END: break;
	}
	return &p->classes;
}

static void begin(void *context)
{
	struct source *source = context;

	pthread_mutex_lock(&source->engine->lock);
	predicates_things_begin(*things_of(source));
	pthread_mutex_unlock(&source->engine->lock);
}

/* Each kind's reader, and what takes its block or lets it go. */
static int take(struct source *source, const char *json, size_t size, bool deleted, struct err *err)
{
	struct predicates *p = &source->engine->known;
	struct placed_namespace *namespace;
	struct placed_claim *claim;
	struct placed_volume *volume;
	struct placed_class *class;
	int rc = 0;

	switch (source->kind) {
	case SOURCE_NAMESPACES:
		rc = placed_namespace_read(json, size, &namespace, err);
		if (rc == 0)
			predicates_namespace_set(p, namespace);
		if (rc == 0 && deleted)
			predicates_namespace_remove(p, placed_text(namespace, namespace->name));
		break;
	case SOURCE_CLAIMS:
		rc = placed_claim_read(json, size, &claim, err);
		if (rc == 0)
			predicates_claim_set(p, claim);
		if (rc == 0 && deleted)
			predicates_claim_remove(p, placed_text(claim, claim->namespace),
						placed_text(claim, claim->name));
		break;
	case SOURCE_VOLUMES:
		rc = placed_volume_read(json, size, &volume, err);
		if (rc == 0)
			predicates_volume_set(p, volume);
		if (rc == 0 && deleted)
			predicates_volume_remove(p, placed_text(volume, volume->name));
		break;
	case SOURCE_CLASSES:
		rc = placed_class_read(json, size, &class, err);
		if (rc == 0)
			predicates_class_set(p, class);
		if (rc == 0 && deleted)
			predicates_class_remove(p, placed_text(class, class->name));
		break;
	case SOURCE_END: break;
	}
	return rc;
}

static void object_came(void *context, const char *json, size_t size, bool deleted)
{
	struct source *source = context;
	struct err err = { 0 };

	pthread_mutex_lock(&source->engine->lock);
	if (take(source, json, size, deleted, &err) < 0)
		log_line(LOG_WARN, "Kubernetes: one of %s can't be read: %s",
			 kinds[source->kind].what, err.text);
	if (source->listed)
		masks_things(source->engine);
	pthread_mutex_unlock(&source->engine->lock);
}

static void looks_go_on(struct engine *engine)
{
	gangs_decide(engine);
	gangs_look(engine);
	masks_flush(engine, false);
}

static void listed(void *context)
{
	struct source *source = context;
	struct engine *engine = source->engine;

	pthread_mutex_lock(&engine->lock);
	predicates_things_listed(things_of(source));
	source->listed = true;
	source->problem[0] = '\0';
	masks_things(engine);
	looks_go_on(engine);
	pthread_mutex_unlock(&engine->lock);
}

static void absent(void *context)
{
	struct source *source = context;

	pthread_mutex_lock(&source->engine->lock);
	if (!source->problem[0])
		log_line(
			LOG_WARN,
			"Kubernetes: %s can't be listed: pods of others that need them are refused (docs/kubernetes.md, Rights)",
			kinds[source->kind].what);
	snprintf(source->problem, sizeof(source->problem), "%s can't be listed",
		 kinds[source->kind].what);
	source->listed = false;
	looks_go_on(source->engine);
	pthread_mutex_unlock(&source->engine->lock);
}

static void paused(void *context)
{
	struct source *source = context;

	pthread_mutex_lock(&source->engine->lock);
	if (source->listed)
		looks_go_on(source->engine);
	pthread_mutex_unlock(&source->engine->lock);
}

void sources_start(struct engine *engine)
{
	for (uint32_t i = 0; i < SOURCE_END; i++) {
		struct source *source = &engine->masks.sources[i];

		source->engine = engine;
		source->kind = (enum source_kind)i;
		source->watch =
			watch_create(engine->client, &(struct watch_options){ .path = kinds[i].path,
									      .context = source,
									      .begin = begin,
									      .object = object_came,
									      .listed = listed,
									      .pause = paused,
									      .absent = absent });
	}
}

void sources_deinit(struct engine *engine)
{
	for (uint32_t i = 0; i < SOURCE_END; i++)
		watch_destroy(engine->masks.sources[i].watch);
}

bool sources_ready(const struct engine *engine)
{
	for (uint32_t i = 0; i < SOURCE_END; i++) {
		const struct source *source = &engine->masks.sources[i];

		if (!source->listed && !source->problem[0])
			return false;
	}
	return true;
}

const char *source_problem(const struct engine *engine, enum source_kind kind)
{
	const struct source *source = &engine->masks.sources[kind];

	return source->listed ? NULL : source->problem;
}
