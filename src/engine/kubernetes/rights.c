/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/rights.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/refusal.h"

/* --- what a request asks for ------------------------------------------------------------------------------------- */

/* The next part of a path; "" at its end. False: it is too long. */
static bool part_next(const char **at, char out[RIGHT_NAME_MAX])
{
	size_t size;

	*at += **at == '/';
	size = strcspn(*at, "/?");
	if (size >= RIGHT_NAME_MAX)
		return false;
	memcpy(out, *at, size);
	out[size] = '\0';
	*at += size;
	return true;
}

static const char *verb_of(const char *method, const char *query, bool named)
{
	static const char *const verbs[][2] = { { "POST", "create" },
						{ "PUT", "update" },
						{ "PATCH", "patch" },
						{ "DELETE", "delete" } };

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(method, verbs[i][0]) == 0)
			return verbs[i][1];
	return named ? "get" : strstr(query, "watch=1") ? "watch" : "list";
}

/* Behind /api/v1 or /apis/GROUP/VERSION: [namespaces/NAMESPACE/]RESOURCE[/NAME[/SUBRESOURCE]] */
static bool read_object(const char *method, const char *at, struct right *ret)
{
	char name[RIGHT_NAME_MAX] = "", behind[RIGHT_NAME_MAX] = "";

	if (!part_next(&at, ret->resource) || !part_next(&at, name) || !part_next(&at, behind))
		return false;
	if (strcmp(ret->resource, "namespaces") == 0 && behind[0]) {
		memcpy(ret->namespace, name, sizeof(name));
		memcpy(ret->resource, behind, sizeof(behind));
		if (!part_next(&at, name) || !part_next(&at, behind))
			return false;
	}
	snprintf(ret->verb, sizeof(ret->verb), "%s", verb_of(method, at, name[0] != '\0'));
	if (behind[0]) {
		size_t size = strlen(ret->resource), more = strlen(behind);

		if (size + 1 + more >= sizeof(ret->resource))
			return false;
		ret->resource[size] = '/';
		memcpy(ret->resource + size + 1, behind, more + 1);
	}
	return ret->resource[0] != '\0';
}

bool right_of(const char *method, const char *path, struct right *ret)
{
	char version[RIGHT_NAME_MAX] = "";

	memset(ret, 0, sizeof(*ret));
	if (strncmp(path, "/apis/", 6) == 0) {
		path += 5;
		if (!part_next(&path, ret->group))
			return false;
	} else if (strncmp(path, "/api/", 5) == 0) {
		path += 4;
	} else {
		return false;
	}
	return part_next(&path, version) && read_object(method, path, ret);
}

/* --- what is lacking ---------------------------------------------------------------------------------------------------- */

static bool has(const struct kube_answer *answer, const char *text)
{
	return memmem(answer->body, answer->size, text, strlen(text)) != NULL;
}

/* The API server's own words for it: 'User "..." cannot delete resource "pods" in API group ""'. */
bool right_is_lacking(const struct kube_answer *answer)
{
	return answer->status == 403 && answer->size && has(answer, " cannot ") &&
	       has(answer, " resource \\\"") && has(answer, " in API group \\\"");
}

static bool is_same(const struct right *a, const struct right *b)
{
	return strcmp(a->verb, b->verb) == 0 && strcmp(a->resource, b->resource) == 0 &&
	       strcmp(a->namespace, b->namespace) == 0 && strcmp(a->group, b->group) == 0;
}

static struct right *find(struct rights *rights, const struct right *right)
{
	for (uint32_t i = 0; i < rights->count; i++)
		if (is_same(&rights->lacking[i], right))
			return &rights->lacking[i];
	return NULL;
}

static void say(const struct right *right, const struct kube_answer *answer)
{
	char where[RIGHT_NAME_MAX + 32] = "in the whole cluster";
	const char *dot = right->group[0] ? "." : "";
	struct kube_refusal refusal;

	if (right->namespace[0])
		snprintf(where, sizeof(where), "in namespace \"%s\"", right->namespace);
	if (!answer) {
		log_line(LOG_INFO, "Kubernetes: the right to %s %s%s%s %s is there now",
			 right->verb, right->resource, dot, right->group, where);
		return;
	}
	refusal_read(answer, &refusal);
	log_line(
		LOG_WARN,
		"Kubernetes: Fairlead's account has no right to %s %s%s%s %s: what needs it waits, and is asked again. The roles in deploy/ have it: install the chart (helm upgrade) or deploy/kubernetes (kubectl apply) anew, or see docs/kubernetes.md, Rights. The API server says: %s",
		right->verb, right->resource, dot, right->group, where, refusal.text);
}

enum rights_change rights_note(struct rights *rights, const char *method, const char *path,
			       const struct kube_answer *answer)
{
	const bool lacks = right_is_lacking(answer);
	struct right right, *found;

	if ((!lacks && (!rights->count || !status_is_done(answer->status))) ||
	    !right_of(method, path, &right))
		return RIGHTS_SAME;
	found = find(rights, &right);
	if (lacks == (found != NULL))
		return RIGHTS_SAME;
	if (lacks && rights->count == RIGHTS_MAX)
		return RIGHTS_SAME;
	if (lacks)
		rights->lacking[rights->count++] = right;
	else
		*found = rights->lacking[--rights->count];
	say(&right, lacks ? answer : NULL);
	return lacks ? RIGHTS_LACKS : RIGHTS_GRANTED;
}
