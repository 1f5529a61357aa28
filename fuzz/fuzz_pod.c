/* SPDX-License-Identifier: Apache-2.0 */
/* A pod of the API server that others made: what is read of it, and what it asks of its scheduler. Nothing that comes
 * out goes beyond what the core takes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/check.h"
#include "engine/kubernetes/gangs/pod_wish.h"

/* "a=b,c": none of them empty or longer than a name. */
static void check_list(const char *list)
{
	uint32_t count = 0;

	CHECK(strnlen(list, KUBE_LABELS_MAX + 1) <= KUBE_LABELS_MAX);
	for (const char *p = list; *p; count++) {
		const size_t size = strcspn(p, ",");

		CHECK(size > 0 && size <= 63);
		p += size;
		CHECK(*p != ',' || p[1]);
		p += *p == ',';
	}
	CHECK(count <= 8);
}

static void check_wish(const struct pod_wish *wish)
{
	CHECK((wish->kind == GANG_ALONE) == !wish->gang[0] || wish->kind >= GANG_JOB);
	CHECK(wish->size >= 0 && wish->size <= ENGINE_TASKS_MAX);
	CHECK(wish->priority >= -1000000 && wish->priority <= 1000000);
	CHECK(wish->kind != GANG_OWN || wish->size || wish->problem[0]);
	check_list(wish->labels);
	check_list(wish->tolerates);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kube_pod pod;
	static struct pod_wish wish;
	struct err err = { 0 };
	int rc = pod_read((const char *)data, size, &pod, &err);

	if (rc == 0)
		rc = pod_wish_read((const char *)data, size, &pod, &wish, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		return 0;
	}
	CHECK(pod.use.gpus >= 0 && pod.use.cpu_milli >= 0 && pod.use.memory_mib >= 0);
	check_wish(&wish);
	return 0;
}
