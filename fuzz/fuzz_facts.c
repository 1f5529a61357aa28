/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz_facts.h"

#include <string.h>

#include "base/check.h"

/* Arrays of ten thousand jobs are legal, and many of them only slow. */
static bool is_slow(const struct facts *f, const struct event *event)
{
	return event->kind == EVENT_JOB_SUBMITTED && event->job_submitted.array_count > 64 &&
	       f->jobs.count > 2000;
}

/* Every field of the table, one by one: the codec must lose nothing. */
static void check_same(const struct event *a, const struct event *b)
{
	CHECK(a->kind == b->kind && a->seq == b->seq && a->time_ms == b->time_ms &&
	      strcmp(a->actor, b->actor) == 0);
	switch ((uint32_t)a->kind) {
#define EVENT(number, NAME, name, text, must)                                                      \
	case number: {                                                                             \
		const struct event_##name *x = &a->name, *y = &b->name;                            \
		(void)x, (void)y;
#define INT(f) CHECK(x->f == y->f);
#define TEXT(f) CHECK(strcmp(x->f, y->f) == 0);
#define INTS(f)                                                                                    \
	CHECK(x->f##_count == y->f##_count &&                                                      \
	      (!x->f##_count || memcmp(x->f, y->f, x->f##_count * sizeof(*x->f)) == 0));
#define END                                                                                        \
	break;                                                                                     \
	}
#include "core/model/events.def"
#undef EVENT
#undef INT
#undef TEXT
#undef INTS
#undef END
	default: UNREACHABLE();
	}
}

int fuzz_event(struct facts *f, uint32_t kind, uint32_t ms, const char *json, size_t size,
	       struct arena *arena)
{
	struct event event, back;
	struct err err = { 0 };
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF again = BUF_INIT;
	int rc = event_decode(kind, f->seq + 1, f->now_ms + (int64_t)ms - 1000, json, size, arena,
			      &event, &err);

	if (rc < 0) {
		fuzz_check_refusal(rc, &err);
		return rc;
	}
	event_encode(&event, &text);
	CHECK(event_decode(kind, event.seq, event.time_ms, text.data, text.size, arena, &back,
			   &err) == 0);
	check_same(&event, &back);
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
