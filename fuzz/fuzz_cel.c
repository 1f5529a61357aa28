/* SPDX-License-Identifier: Apache-2.0 */
/* An expression about devices: compiled and, when it is one, asked twice of a device that has a field of each kind: same answer, and a reason
 * where there is none. */
#include "fuzz/fuzz.h"

#include "base/arena.h"
#include "base/check.h"
#include "engine/kubernetes/cel/cel.h"

static const struct cel_attribute attributes[] = {
	{ .id = "s", .kind = CEL_STRING, .text = "NVIDIA H100 80GB" },
	{ .id = "i", .kind = CEL_INT, .number = 3 },
	{ .id = "b", .kind = CEL_BOOL, .truth = true },
	{ .domain = "d", .id = "v", .kind = CEL_VERSION, .text = "1.2.3-rc.1" },
};
static const struct cel_capacity capacities[] = { { .id = "m", .quantity = "80Gi" },
						  { .id = "f", .quantity = "1.5Gi" } };
static const struct cel_device device = { .driver = "d",
					  .attributes = attributes,
					  .attribute_count = ARRAY_SIZE(attributes),
					  .capacities = capacities,
					  .capacity_count = ARRAY_SIZE(capacities) };

static void ask(const struct cel_program *program, struct arena *arena)
{
	const char *why = NULL;
	enum cel_answer answer = cel_ask(program, &device, arena, &why);

	CHECK((answer == CEL_FAILED || answer == CEL_REFUSED) == (why != NULL));
	CHECK(cel_ask(program, &device, arena, NULL) == answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cel_program *program;
	struct arena arena;
	struct err err = { 0 };
	int rc;

	arena_init(&arena, (size_t)1 << 30);
	rc = cel_compile(&arena, (const char *)data, size, &program, &err);
	fuzz_accepted = rc == 0;
	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		CHECK(size > CEL_TEXT_MAX || (err.column >= 1 && err.column <= (int)size + 1));
	} else {
		CHECK(size <= CEL_TEXT_MAX);
		ask(program, &arena);
	}
	arena_deinit(&arena);
	return 0;
}
