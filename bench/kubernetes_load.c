/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load on a Kubernetes API server, and the least that a scheduler can do; for bench/kubernetes.py.
 *
 *	kubernetes_load nodes KUBECONFIG COUNT GPUS		makes nodes n-0, n-1 ..., ready
 *	kubernetes_load pods KUBECONFIG SCHEDULER COUNT GANG	makes pods of one GPU, each GANG of them a gang, and follows them
 *	kubernetes_load make KUBECONFIG SCHEDULER COUNT GANG NAME GPUS LABELS CLASS	makes pods NAME-0 ..., and no more. LABELS: queue=low,tier=best-effort; - = none, no priority class
 *	kubernetes_load blind KUBECONFIG SCHEDULER GPUS		binds each pod to the next node that it has not given GPUS pods yet
 *
 * `pods` keeps IN_FLIGHT requests under way, and prints a line for each pod: number, when the API server had taken it, when it was seen
 * bound, in microseconds since the first was sent, and the node. It ends when all are bound, or nothing was bound for STALL_S.
 *
 * `blind` keeps the watches of Fairlead, on its client and its reader, and sends each binding at once. It never counts, never asks and
 * never looks at an answer: nothing that binds through this client can be faster. It runs until it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "engine/kubernetes/client.h"
#include "engine/kubernetes/manifest.h"
#include "engine/kubernetes/objects.h"
#include "engine/kubernetes/watch.h"

enum { IN_FLIGHT = 32, STALL_S = 60, COUNT_MAX = 200000, LOOK_US = 20000 };

#define PODS "/api/v1/namespaces/default/pods"

static struct kube_client *client;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "kubernetes_load: %s\n", what);
	exit(1);
}

static void nothing(void *context)
{
	(void)context;
}

static void connect_to(const char *config)
{
	static struct kube_access access;
	static struct arena arena;
	struct err err = { 0 };

	arena_init(&arena, 8 << 20);
	if (access_find(config, NULL, &arena, &access, &err) < 0 ||
	    kube_client_create(&access, &client, &err) < 0)
		fail(err.text);
}

/* --- making: IN_FLIGHT at a time --------------------------------------------------------------------------------- */

static struct {
	uint32_t count, given, made;
	const char *path;
	void (*write)(uint32_t number, struct buf *out);
	int64_t began_us, *made_us;
} making;

static int64_t now_us(void)
{
	return clock_mono_ns() / 1000 - making.began_us;
}

static void make_next(void);

static void was_made(void *context, const struct kube_answer *answer)
{
	uint32_t number = (uint32_t)(uintptr_t)context;

	if (kube_is_end(answer))
		return;
	if (answer->status != 201 && answer->status != 409) {
		fprintf(stderr, "%.*s\n", (int)answer->size, answer->body);
		fail("the API server does not take it");
	}
	if (making.made_us)
		making.made_us[number] = now_us();
	making.made++;
	make_next();
}

static void make_next(void)
{
	struct buf body = BUF_INIT;

	if (making.given == making.count)
		return;
	making.write(making.given, &body);
	kube_call(client, &(struct kube_request){ .method = "POST",
						  .path = making.path,
						  .body = &body,
						  .done = was_made,
						  .context = (void *)(uintptr_t)making.given++ });
}

static void begin(void *context)
{
	(void)context;
	for (uint32_t i = 0; i < IN_FLIGHT; i++)
		make_next();
}

static void make_all(const char *path, uint32_t count,
		     void (*write)(uint32_t number, struct buf *out))
{
	making.path = path;
	making.count = count;
	making.write = write;
	making.began_us = clock_mono_ns() / 1000;
	kube_later(client, 0, begin, NULL); /* `making` is the client's thread's from here */
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static uint32_t node_gpus;

static void write_node(uint32_t number, struct buf *out)
{
	static const char room[] =
		"{\"cpu\":\"128\",\"memory\":\"1Ti\",\"pods\":\"256\",\"nvidia.com/gpu\":\"%u\"}";

	buf_addf(
		out,
		"{\"metadata\":{\"name\":\"n-%u\",\"labels\":{\"kubernetes.io/hostname\":\"n-%u\"},\"annotations\":{\"kwok.x-k8s.io/node\":\"fake\"}},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"capacity\":",
		number, number);
	buf_addf(out, room, node_gpus);
	buf_adds(out, ",\"allocatable\":");
	buf_addf(out, room, node_gpus);
	buf_adds(out, "}}");
}

static uint32_t untainted;

static void was_untainted(void *context, const struct kube_answer *answer)
{
	(void)context;
	if (kube_is_end(answer))
		return;
	if (answer->status != 200)
		fail("a node's taints can't be taken away");
	__atomic_add_fetch(&untainted, 1, __ATOMIC_RELEASE);
}

/* The API server gives a new node the taint not-ready, which the controller manager takes away: none runs here. */
static void untaint(uint32_t number)
{
	struct buf body = BUF_INIT;
	char path[64];

	snprintf(path, sizeof(path), "/api/v1/nodes/n-%u", number);
	buf_adds(&body, "{\"spec\":{\"taints\":null}}");
	kube_call(client, &(struct kube_request){ .method = "PATCH",
						  .path = path,
						  .type = "application/merge-patch+json",
						  .body = &body,
						  .done = was_untainted });
}

static int nodes_main(uint32_t count, uint32_t gpus)
{
	node_gpus = gpus;
	make_all("/api/v1/nodes", count, write_node);
	while (__atomic_load_n(&making.made, __ATOMIC_ACQUIRE) < count)
		usleep(LOOK_US);
	for (uint32_t i = 0; i < count; i++)
		untaint(i);
	while (__atomic_load_n(&untainted, __ATOMIC_ACQUIRE) < count)
		usleep(LOOK_US);
	kube_client_destroy(client);
	return 0;
}

/* --- pods --------------------------------------------------------------------------------------------------------- */

static const char *scheduler, *named = "p", *labels, *class;
static uint32_t gang, pod_gpus = 1;

static struct {
	int64_t *bound_us;
	char (*node)[KUBE_NODE_NAME_MAX];
	uint32_t bound, twice;
} seen;

static void add_labels(struct buf *out)
{
	for (const char *at = labels, *end; at && *at; at = *end ? end + 1 : end) {
		const char *is = strchr(at, '=');

		end = at + strcspn(at, ",");
		if (!is || is > end)
			fail("labels are KEY=VALUE,...");
		buf_addf(out, "%s\"fairlead.dev/%.*s\":\"%.*s\"", at == labels ? "" : ",",
			 (int)(is - at), at, (int)(end - is - 1), is + 1);
	}
}

static void write_pod(uint32_t number, struct buf *out)
{
	buf_addf(out, "{\"metadata\":{\"name\":\"%s-%u\",\"labels\":{", named, number);
	add_labels(out);
	if (gang > 1)
		buf_addf(out, "%s\"fairlead.dev/gang\":\"%s-g-%u\"", labels ? "," : "", named,
			 number / gang);
	buf_adds(out, "}");
	if (gang > 1)
		buf_addf(out, ",\"annotations\":{\"fairlead.dev/gang-size\":\"%u\"}", gang);
	buf_addf(out, "},\"spec\":{\"schedulerName\":\"%s\"", scheduler);
	if (class)
		buf_addf(out, ",\"priorityClassName\":\"%s\"", class);
	buf_addf(
		out,
		",\"restartPolicy\":\"Never\",\"automountServiceAccountToken\":false,\"containers\":[{\"name\":\"main\",\"image\":\"none\",\"command\":[\"sleep\"],\"resources\":{\"limits\":{\"nvidia.com/gpu\":%u,\"cpu\":\"4\",\"memory\":\"16Gi\"}}}]}}",
		pod_gpus);
}

static void saw(void *context, const char *json, size_t size, bool deleted)
{
	struct kube_pod pod;
	unsigned long number;

	(void)context;
	if (deleted || pod_read(json, size, &pod, NULL) < 0 || strncmp(pod.name, "p-", 2) != 0 ||
	    !pod.node[0])
		return;
	number = strtoul(pod.name + 2, NULL, 10);
	if (number >= making.count)
		return;
	if (seen.bound_us[number]) {
		seen.twice += strncmp(seen.node[number], pod.node, KUBE_NODE_NAME_MAX - 1) != 0;
		return;
	}
	seen.bound_us[number] = now_us();
	snprintf(seen.node[number], sizeof(seen.node[number]), "%.63s", pod.node);
	__atomic_add_fetch(&seen.bound, 1, __ATOMIC_RELEASE);
}

static int pods_main(uint32_t count)
{
	uint32_t before = 0;
	int64_t moved_ms = clock_boot_ms();

	making.made_us = calloc(count, sizeof(*making.made_us));
	seen.bound_us = calloc(count, sizeof(*seen.bound_us));
	seen.node = calloc(count, sizeof(*seen.node));
	CHECK(making.made_us && seen.bound_us && seen.node);
	making.count = count;
	watch_create(client,
		     &(struct watch_options){
			     .path = PODS, .begin = nothing, .object = saw, .listed = nothing });
	usleep(500000);
	make_all(PODS, count, write_pod);
	while (before < count && clock_boot_ms() - moved_ms < STALL_S * 1000) {
		uint32_t now = __atomic_load_n(&seen.bound, __ATOMIC_ACQUIRE);

		if (now != before)
			moved_ms = clock_boot_ms();
		before = now;
		usleep(LOOK_US);
	}
	kube_client_destroy(client);
	for (uint32_t i = 0; i < count; i++)
		printf("%u %lld %lld %s\n", i, (long long)making.made_us[i],
		       (long long)seen.bound_us[i], seen.node[i][0] ? seen.node[i] : "-");
	if (seen.twice)
		fail("pods were seen on two nodes");
	return 0;
}

static const char *unless_none(const char *text)
{
	return strcmp(text, "-") == 0 ? NULL : text;
}

static int make_main(uint32_t count)
{
	make_all(PODS, count, write_pod);
	while (__atomic_load_n(&making.made, __ATOMIC_ACQUIRE) < count)
		usleep(LOOK_US);
	kube_client_destroy(client);
	return 0;
}

/* --- binding without thinking ------------------------------------------------------------------------------------- */

static struct {
	char (*node)[KUBE_NAME_MAX];
	uint32_t *given, count, next, gpus;
	bool ready;
} blind;

static void node_seen(void *context, const char *json, size_t size, bool deleted)
{
	struct kube_node *node = malloc(sizeof(*node));

	(void)context;
	CHECK(node);
	if (!deleted && !blind.ready && node_read(json, size, NULL, node, NULL) == 0 &&
	    blind.count < COUNT_MAX) {
		snprintf(blind.node[blind.count], KUBE_NAME_MAX, "%s", node->name);
		blind.count++;
	}
	free(node);
}

static void nodes_are_there(void *context)
{
	(void)context;
	blind.ready = true;
	printf("ready\n");
	(void)fflush(stdout);
}

static void pod_seen(void *context, const char *json, size_t size, bool deleted)
{
	struct kube_pod pod;
	struct buf body = BUF_INIT;
	AUTO_BUF path = BUF_INIT;

	(void)context;
	if (deleted || pod_read(json, size, &pod, NULL) < 0 || pod.node[0] || !blind.count ||
	    strcmp(pod.scheduler, scheduler) != 0)
		return;
	if (blind.given[blind.next] == blind.gpus)
		blind.next = (blind.next + 1) % blind.count;
	if (blind.given[blind.next] == blind.gpus)
		return; /* all are full */
	blind.given[blind.next]++;
	manifest_binding(pod.namespace, pod.name, pod.uid, blind.node[blind.next], &body);
	buf_addf(&path, "/api/v1/namespaces/%s/pods/%s/binding", pod.namespace, pod.name);
	kube_call(client, &(struct kube_request){
				  .method = "POST", .path = buf_text(&path), .body = &body });
}

static int blind_main(uint32_t gpus)
{
	blind.gpus = gpus;
	blind.node = calloc(COUNT_MAX, sizeof(*blind.node));
	blind.given = calloc(COUNT_MAX, sizeof(*blind.given));
	CHECK(blind.node && blind.given);
	watch_create(client, &(struct watch_options){ .path = "/api/v1/nodes",
						      .begin = nothing,
						      .object = node_seen,
						      .listed = nodes_are_there });
	watch_create(client, &(struct watch_options){ .path = "/api/v1/pods",
						      .begin = nothing,
						      .object = pod_seen,
						      .listed = nothing });
	for (;;)
		pause();
}

static uint32_t number_of(const char *text, uint32_t most)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (*end || end == text || number < 1 || number > most)
		fail("a number is out of range");
	return (uint32_t)number;
}

static int words_of(const char *mode)
{
	return strcmp(mode, "make") == 0 ? 10 : strcmp(mode, "pods") == 0 ? 6 : 5;
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc != words_of(argv[1]))
		fail("nodes KUBECONFIG COUNT GPUS | pods KUBECONFIG SCHEDULER COUNT GANG | make KUBECONFIG SCHEDULER COUNT GANG NAME GPUS LABELS CLASS | blind KUBECONFIG SCHEDULER GPUS");
	connect_to(argv[2]);
	scheduler = argv[3];
	if (strcmp(argv[1], "nodes") == 0)
		return nodes_main(number_of(argv[3], COUNT_MAX), number_of(argv[4], 32));
	if (strcmp(argv[1], "blind") == 0)
		return blind_main(number_of(argv[4], 32));
	gang = number_of(argv[5], COUNT_MAX);
	if (strcmp(argv[1], "pods") == 0)
		return pods_main(number_of(argv[4], COUNT_MAX));
	named = argv[6];
	pod_gpus = number_of(argv[7], 32);
	labels = unless_none(argv[8]);
	class = unless_none(argv[9]);
	return make_main(number_of(argv[4], COUNT_MAX));
}
