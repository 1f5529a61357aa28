/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects from the API server, one a line, each read as a ResourceSlice, a DeviceClass and a ResourceClaim. The last claim is asked for on a node:
 * what it is given is free, and given once.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/devices/allocate.h"

static enum dra_state every_second(void *context, const struct dra_slice *slice,
				   const struct dra_device *device)
{
	(void)context;
	(void)slice;
	return strlen(device->name) % 2 ? DRA_TAKEN : DRA_FREE;
}

static void ask(struct dra_inventory *inventory, const struct dra_claim *claim)
{
	struct dra_answer answer;
	struct arena arena;
	enum dra_verdict verdict;

	arena_init(&arena, (size_t)512 << 20);
	verdict = dra_allocate(
		inventory,
		&(struct dra_question){ .node = "n",
					.claims = (const struct dra_claim *const[]){ claim },
					.claim_count = 1,
					.state = every_second },
		&arena, &answer);
	CHECK(answer.steps <= DRA_STEPS_MAX + 1);
	for (uint32_t i = 0; verdict == DRA_FITS && i < answer.allocations[0].count; i++) {
		const struct dra_choice_made *made = &answer.allocations[0].made[i];

		CHECK(every_second(NULL, made->slice, made->device) == DRA_FREE);
		CHECK(!made->device->odd && made->request < claim->request_count);
		for (uint32_t j = 0; j < i; j++)
			CHECK(answer.allocations[0].made[j].device != made->device);
	}
	arena_deinit(&arena);
}

struct world {
	struct dra_inventory inventory;
	struct dra_claim *claim;
	bool all_read;
};

static void take_line(struct world *world, const char *text, size_t size)
{
	struct dra_class *class = NULL;
	struct dra_slice *slice = NULL;
	struct dra_claim *claim = NULL;
	struct err err = { 0 };
	int rc = dra_slice_read(text, size, &slice, &err);

	if (rc < 0)
		fuzz_check_refusal(rc, &err);
	else
		dra_slice_set(&world->inventory, slice);
	if (dra_class_read(text, size, &class, &err) == 0)
		dra_class_set(&world->inventory, class);
	if (dra_claim_read(text, size, &claim, &err) == 0) {
		const char *device, *said;

		CHECK(dra_claim_binding(claim, &device, &said) == DRA_BIND_NOW || claim->allocated);
		dra_claim_free(world->claim);
		world->claim = claim;
	}
	world->all_read &= slice || claim;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world world = { .all_read = size > 0 };
	const char *at = (const char *)data, *end = at + size;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		take_line(&world, at, (size_t)(stop - at));
		at = newline ? newline + 1 : end;
	}
	if (world.claim)
		ask(&world.inventory, world.claim);
	fuzz_accepted = world.all_read;
	dra_claim_free(world.claim);
	dra_inventory_deinit(&world.inventory);
	return 0;
}
