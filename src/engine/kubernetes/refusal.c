/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/refusal.h"

#include <stdio.h>
#include <string.h>

#include "engine/kubernetes/client.h"
#include "engine/kubernetes/reading.h"

enum { PLAIN_MAX = 160 };

/* The first line of what is no object of Kubernetes: of a server or proxy on the way. Pages for people are left out. */
static void plain_read(const struct kube_answer *answer, struct kube_refusal *ret)
{
	const size_t size = answer->size < PLAIN_MAX ? answer->size : PLAIN_MAX;
	const char *end = memchr(answer->body, '\n', size);

	if (answer->body[0] != '<')
		snprintf(ret->text, sizeof(ret->text), "status %d: %.*s", answer->status,
			 (int)(end ? (size_t)(end - answer->body) : size), answer->body);
}

void refusal_read(const struct kube_answer *answer, struct kube_refusal *ret)
{
	struct kube_refusal read = { .reason = "" };
	struct json_slice key;
	struct json_reader r;

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->text, sizeof(ret->text), "status %d", answer->status);
	if (!answer->status || !answer->size)
		return;
	if (answer->body[0] != '{') {
		plain_read(answer, ret);
		return;
	}
	pull_init(&r, answer->body, answer->size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "message"))
			read_cut(&r, read.text, sizeof(read.text));
		else if (pull_key_is(&key, "reason"))
			read_cut(&r, read.reason, sizeof(read.reason));
		else
			pull_skip(&r);
	}
	if (pull_finish(&r, NULL) < 0)
		return;
	memcpy(ret->reason, read.reason, sizeof(ret->reason));
	if (read.text[0])
		memcpy(ret->text, read.text, sizeof(ret->text));
}

bool refusal_is(const struct kube_refusal *refusal, const char *reason)
{
	return strcmp(refusal->reason, reason) == 0;
}
