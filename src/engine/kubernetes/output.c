/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod has printed, asked of the API server, which asks the node's kubelet. One answer of at most `limit_bytes`, and nothing is kept
 * here. OUTPUT_MOST are asked for at a time: each is held in memory whole.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/cluster.h"
#include "engine/kubernetes/refusal.h"

enum { OUTPUT_MOST = 8 };

struct wanted {
	struct engine *engine;
	void (*done)(void *context, int status, const char *text, size_t size);
	void *context;
};

static void came(void *context, const struct kube_answer *answer)
{
	struct wanted *wanted = context;
	struct kube_refusal refusal;

	pthread_mutex_lock(&wanted->engine->lock);
	wanted->engine->outputs--;
	pthread_mutex_unlock(&wanted->engine->lock);
	if (answer->status == 200) {
		wanted->done(wanted->context, 200, answer->body, answer->size);
	} else if (!answer->status) {
		wanted->done(wanted->context, 0, answer->problem ? answer->problem : "it ends",
			     answer->problem ? strlen(answer->problem) : 7);
	} else {
		refusal_read(answer, &refusal);
		wanted->done(wanted->context, answer->status, refusal.text, strlen(refusal.text));
	}
	free(wanted);
}

bool kubernetes_pod_output(struct engine *engine, const struct engine_output *wish)
{
	struct wanted *wanted;
	AUTO_BUF path = BUF_INIT;
	bool full;

	pthread_mutex_lock(&engine->lock);
	full = engine->outputs >= OUTPUT_MOST;
	engine->outputs += !full;
	pthread_mutex_unlock(&engine->lock);
	if (full)
		return false;
	wanted = calloc(1, sizeof(*wanted));
	CHECK(wanted);
	*wanted = (struct wanted){ engine, wish->done, wish->context };
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s/log?limitBytes=%" PRId64, wish->namespace,
		 wish->name, wish->limit_bytes);
	if (wish->own)
		buf_adds(&path, "&container=" KUBE_CONTAINER);
	if (wish->tail_lines)
		buf_addf(&path, "&tailLines=%" PRId64, wish->tail_lines);
	kube_call(engine->client, &(struct kube_request){ .method = "GET",
							  .path = buf_text(&path),
							  .once = true,
							  .done = came,
							  .context = wanted });
	return true;
}
