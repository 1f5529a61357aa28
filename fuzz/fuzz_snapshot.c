/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot from a stranger: records of the facts (kinds from RECORD_HEAD) and then, when it could be loaded, events on
 * top of it. What loads holds together, can be saved and loaded again, and carries whatever happens next.
 */
#include "fuzz/fuzz_facts.h"

#include "base/check.h"
#include "core/model/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *line;
	size_t left = size, length;
	struct err err = { 0 };
	struct arena arena;
	struct facts f;
	bool loaded = false;
	int rc = 0;

	facts_init(&f);
	arena_init(&arena, 64 << 20);
	for (int i = 0;
	     i < 4 * FUZZ_RECORDS_MAX && rc == 0 && fuzz_line(&text, &left, &line, &length); i++) {
		uint32_t kind, ms;

		if (!fuzz_number(&line, &length, &kind) || !fuzz_number(&line, &length, &ms))
			continue;
		if (kind >= RECORD_HEAD && !loaded) {
			rc = facts_load_record(&f, kind, line, length, &err);
			continue;
		}
		if (!loaded) {
			rc = facts_load_finish(&f, &err);
			loaded = rc == 0;
		}
		if (loaded)
			(void)!fuzz_event(&f, kind, ms, line, length, &arena);
		arena_reset(&arena);
	}
	if (rc == 0 && !loaded) {
		rc = facts_load_finish(&f, &err);
		loaded = rc == 0;
	}
	if (rc < 0)
		fuzz_check_refusal(rc, &err);
	if (loaded)
		fuzz_check_facts(&f);
	fuzz_accepted = loaded;
	facts_deinit(&f);
	arena_deinit(&arena);
	return 0;
}
