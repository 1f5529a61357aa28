/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz_facts.h"

#include <string.h>

#include "base/check.h"

/* Arrays of ten thousand jobs are legal, and many of them only slow. */
static bool is_slow(const struct facts *f, const struct event *event)
{
	return event->kind == EVENT_JOB_SUBMITTED && event->job_submitted.array_count > 64 && f->jobs.count > 2000;
}

int fuzz_event(struct facts *f, uint32_t kind, uint32_t ms, const char *json, size_t size, struct arena *arena)
{
	struct event event, back;
	struct err err = { 0 };
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF again = BUF_INIT;
	int rc = event_decode(kind, f->seq + 1, f->now_ms + (int64_t)ms - 1000, json, size, arena, &event, &err);

	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		return rc;
	}
	event_encode(&event, &text);
	CHECK(event_decode(kind, event.seq, event.time_ms, text.data, text.size, arena, &back, &err) == 0);
	event_encode(&back, &again);
	CHECK(text.size == again.size && memcmp(text.data, again.data, text.size) == 0);
	if (!is_slow(f, &event)) {
		const int64_t before = f->now_ms;

		apply(f, &event);
		CHECK(f->seq == event.seq && f->now_ms >= before);
	}
	return 0;
}

static int load_row(void *context, uint32_t kind, const char *text, size_t size)
{
	struct err err;

	CHECK(facts_load_record(context, kind, text, size, &err) == 0);
	return 0;
}

void fuzz_check_facts(const struct facts *f)
{
	struct facts back;
	struct err err;

	facts_verify(f);
	facts_init(&back);
	CHECK(facts_save(f, &back, load_row) == 0);
	CHECK(facts_load_finish(&back, &err) == 0);
	CHECK(facts_hash(&back) == facts_hash(f));
	facts_deinit(&back);
}
