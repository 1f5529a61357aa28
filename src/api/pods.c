/* SPDX-License-Identifier: Apache-2.0 */
/* Pods, where the engine knows of such: which job a pod is. */
#include "api/call.h"
#include "api/json_out.h"

void handle_pod_show(struct call *call)
{
	const struct api_backend *backend = call->api->backend;
	const char *namespace = call->match.param[0], *name = call->match.param[1];
	struct api_pod pod = { 0 };
	struct buf out = BUF_INIT;
	struct err err = { 0 };

	if (!backend->pods) {
		err_set(&err, ERR_NOT_FOUND, "this daemon does not run work on Kubernetes");
		call_fail(call, &err);
		return;
	}
	if (!backend->pod_job(backend->context, namespace, name, &pod)) {
		err_set(&err, ERR_NOT_FOUND,
			"there is no pod \"%.60s/%.80s\" that asks for Fairlead and is not over",
			namespace, name);
		call_fail(call, &err);
		return;
	}
	out_object(&out, NULL);
	out_text(&out, "namespace", namespace);
	out_text(&out, "name", name);
	out_int(&out, "job", pod.job);
	out_int(&out, "attempt", pod.attempt);
	out_int(&out, "rank", pod.rank);
	out_text(&out, "reason", pod.text);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}
