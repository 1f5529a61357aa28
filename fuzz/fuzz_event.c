/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal from a stranger, one record per line. Each record that decodes must come back from its own encoding, apply must
 * take it whatever it says, and in the end the facts hold together and survive saving and loading.
 */
#include "fuzz/fuzz_facts.h"

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *line;
	size_t left = size, length;
	struct arena arena;
	struct facts f;
	bool good = size > 0;

	facts_init(&f);
	arena_init(&arena, 64 << 20);
	for (int i = 0; i < FUZZ_RECORDS_MAX && fuzz_line(&text, &left, &line, &length); i++) {
		uint32_t kind, ms;

		if (!fuzz_number(&line, &length, &kind) || !fuzz_number(&line, &length, &ms) ||
		    fuzz_event(&f, kind, ms, line, length, &arena) < 0)
			good = false;
		arena_reset(&arena); /* apply copies what it keeps */
	}
	fuzz_check_facts(&f);
	fuzz_accepted = good;
	facts_deinit(&f);
	arena_deinit(&arena);
	return 0;
}
