/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/events.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"
#include "engine/kubernetes/cluster.h"

enum { NAME_CUT = 200 };
#define NODES_NAMESPACE "default"

void kube_time_now(char out[KUBE_TIME_MAX])
{
	time_t now = (time_t)(clock_wall_ms() / 1000);
	struct tm parts;

	gmtime_r(&now, &parts);
	strftime(out, KUBE_TIME_MAX, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* The Event of a reason for an object is there already: counted up. */
struct repeat {
	struct engine *engine;
	void (*done)(void *engine, const struct kube_answer *answer);
	char *path, *body;
};

static void event_came(void *context, const struct kube_answer *answer)
{
	struct repeat *repeat = context;
	struct buf body = BUF_INIT;

	if (answer->status == 409) {
		buf_adds(&body, repeat->body);
		kube_call(repeat->engine->client,
			  &(struct kube_request){ .method = "PATCH",
						  .path = repeat->path,
						  .type = "application/merge-patch+json",
						  .body = &body,
						  .late = true,
						  .done = repeat->done,
						  .context = repeat->engine });
	} else {
		repeat->done(repeat->engine, answer);
	}
	free(repeat->path);
	free(repeat->body);
	free(repeat);
}

static void event_name(const struct kube_event *event, struct buf *out)
{
	char hex[DIGEST_HEX_MAX];
	struct digest digest = digest_of_two(event->uid, strlen(event->uid) + 1, event->reason,
					     strlen(event->reason));

	buf_addf(out, "%.*s.%.16s", NAME_CUT, event->name, digest_format(&digest, hex));
}

static const char *namespace_of(const struct kube_event *event)
{
	return *event->namespace ? event->namespace : NODES_NAMESPACE;
}

static void event_body(const struct engine *engine, const struct kube_event *event,
		       const char *name, struct buf *out)
{
	char now[KUBE_TIME_MAX];

	kube_time_now(now);
	buf_adds(out, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{");
	buf_add_json_member(out, "name", name);
	buf_addc(out, ',');
	buf_add_json_member(out, "namespace", namespace_of(event));
	buf_addf(out, "},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"%s\",", event->kind);
	buf_add_json_member(out, "name", event->name);
	buf_addc(out, ',');
	if (*event->namespace) {
		buf_add_json_member(out, "namespace", event->namespace);
		buf_addc(out, ',');
	}
	buf_add_json_member(out, "uid", event->uid);
	buf_adds(out, "},");
	buf_add_json_member(out, "reason", event->reason);
	buf_addc(out, ',');
	buf_add_json_member(out, "message", event->text);
	buf_addf(
		out,
		",\"type\":\"%s\",\"count\":1,\"source\":{\"component\":\"" KUBE_SCHEDULER
		"\"},\"reportingComponent\":\"" KUBE_DOMAIN
		"scheduler\",\"reportingInstance\":\"%s\",\"firstTimestamp\":\"%s\",\"lastTimestamp\":\"%s\"}",
		event->warning ? "Warning" : "Normal", engine->instance, now, now);
}

void event_write(struct engine *engine, const struct kube_event *event,
		 void (*done)(void *engine, const struct kube_answer *answer))
{
	struct repeat *repeat = calloc(1, sizeof(*repeat));
	AUTO_BUF path = BUF_INIT, name = BUF_INIT;
	struct buf body = BUF_INIT, again = BUF_INIT;
	char now[KUBE_TIME_MAX];

	CHECK(repeat);
	kube_time_now(now);
	event_name(event, &name);
	buf_addf(&path, "/api/v1/namespaces/%s/events", namespace_of(event));
	event_body(engine, event, buf_text(&name), &body);
	repeat->engine = engine;
	repeat->done = done;
	buf_addc(&again, '{');
	buf_add_json_member(&again, "message", event->text);
	buf_addf(&again, ",\"count\":%u,\"lastTimestamp\":\"%s\"}", event->count, now);
	repeat->body = buf_take(&again);
	buf_addf(&again, "%s/%s", buf_text(&path), buf_text(&name));
	repeat->path = buf_take(&again);
	kube_call(engine->client, &(struct kube_request){ .method = "POST",
							  .path = buf_text(&path),
							  .body = &body,
							  .late = true,
							  .done = event_came,
							  .context = repeat });
}
