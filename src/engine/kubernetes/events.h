/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Events, which people see with `kubectl describe`. There is one at most of each reason for an object: told again it is counted up, and not made
 * anew. How often, the caller says.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "engine/kubernetes/client.h"

struct engine;
struct kube_event {
	/* What it is about. Of objects without a namespace the Event stands in `default`; nodes are known by their name in place of a uid, as kubelets say it. */
	const char *kind, *namespace, *name, *uid;
	const char *reason, *text;
	bool warning;
	uint32_t count; /* how often it has been told with this one */
};
/* `done` is told of the end, with the engine as its context. */
void event_write(struct engine *engine, const struct kube_event *event,
		 void (*done)(void *engine, const struct kube_answer *answer));

/* Now, as the API server writes it. */
enum { KUBE_TIME_MAX = 32 };
void kube_time_now(char out[KUBE_TIME_MAX]);
