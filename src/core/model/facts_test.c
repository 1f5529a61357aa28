/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing, look-ups, saving and loading, the hash, and what facts_check finds. */
#include "base/testing.h"

#include "base/arena.h"
#include "base/buf.h"
#include "core/model/edit.h"
#include "core/model/random_events.h"

/* --- tools ------------------------------------------------------------------------------------------ */

struct source {
	struct random random;
	struct arena arena;
};

static struct source source_make(uint64_t seed)
{
	struct source source = { .random = { seed } };

	arena_init(&source.arena, 1 << 20);
	return source;
}

/* Applies `count` random events to f, and to `also` (NULL: to none). */
static void step(struct source *source, struct facts *f, struct facts *also, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct event event;

		arena_reset(&source->arena);
		event = random_event(&source->random, f, &source->arena);
		apply(f, &event);
		if (also)
			apply(also, &event);
	}
}

struct saved {
	uint32_t kind[60000];
	struct buf text[60000];
	uint32_t count;
};

static int keep_record(void *context, uint32_t kind, const char *text, size_t size)
{
	struct saved *saved = context;

	assert_true(saved->count < 60000);
	saved->kind[saved->count] = kind;
	buf_add(&saved->text[saved->count++], text, size);
	return 0;
}

static struct saved *save(const struct facts *f)
{
	struct saved *saved = calloc(1, sizeof(*saved));

	assert_non_null(saved);
	assert_int_equal(facts_save(f, saved, keep_record), 0);
	return saved;
}

static void saved_free(struct saved *saved)
{
	for (uint32_t i = 0; i < saved->count; i++)
		buf_deinit(&saved->text[i]);
	free(saved);
}

static int load(const struct saved *saved, struct facts *ret, struct err *err)
{
	int result = 0;

	facts_init(ret);
	for (uint32_t i = 0; !result && i < saved->count; i++)
		result = facts_load_record(ret, saved->kind[i], saved->text[i].data,
					   saved->text[i].size, err);
	return result ? result : facts_load_finish(ret, err);
}

/* --- freezing ------------------------------------------------------------------------------------------ */

static void a_frozen_copy_does_not_change(void **state)
{
	struct source source = source_make(11);
	struct facts f, frozen[10];
	uint64_t hash[10];

	(void)state;
	facts_init(&f);
	for (int i = 0; i < 10; i++) {
		step(&source, &f, NULL, 300);
		facts_freeze(&f, &frozen[i]);
		hash[i] = facts_hash(&f);
		assert_true(!i || hash[i] != hash[i - 1]);
	}
	step(&source, &f, NULL, 300);
	for (int i = 0; i < 10; i++) {
		assert_true(facts_hash(&frozen[i]) == hash[i]);
		facts_verify(&frozen[i]);
		facts_deinit(&frozen[i]);
	}
	facts_verify(&f);
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

static void a_frozen_copy_can_go_its_own_way(void **state)
{
	struct source source = source_make(12), other = source_make(13);
	struct facts f, branch;
	uint64_t hash;

	(void)state;
	facts_init(&f);
	step(&source, &f, NULL, 2000);
	hash = facts_hash(&f);
	facts_freeze(&f, &branch);
	step(&other, &branch, NULL, 2000);
	facts_verify(&branch);
	assert_true(facts_hash(&f) == hash);
	facts_verify(&f);
	facts_deinit(&branch);
	assert_true(facts_hash(&f) == hash);
	facts_deinit(&f);
	arena_deinit(&source.arena);
	arena_deinit(&other.arena);
}

/* --- look-ups -------------------------------------------------------------------------------------------- */

static void every_name_is_found_while_the_table_grows(void **state)
{
	struct facts f;
	char text[32];

	(void)state;
	facts_init(&f);
	assert_int_equal(facts_name_find(&f, "nobody").v, 0);
	for (uint32_t i = 1; i <= 5000; i++) {
		snprintf(text, sizeof(text), "name-%u", i);
		assert_int_equal(facts_name_find(&f, text).v, 0);
		assert_int_equal(facts_intern(&f, text).v, i);
		assert_int_equal(facts_intern(&f, text).v, i);
		assert_int_equal(f.name_slots.count, i);
	}
	for (uint32_t i = 1; i <= 5000; i++) {
		snprintf(text, sizeof(text), "name-%u", i);
		assert_int_equal(facts_name_find(&f, text).v, i);
		assert_string_equal(facts_name(&f, (struct name_id){ i }), text);
	}
	assert_int_equal(facts_intern(&f, "").v, 0);
	assert_string_equal(facts_name(&f, (struct name_id){ 0 }), "");
	facts_deinit(&f);
}

static void a_long_name_is_cut_at_a_character(void **state)
{
	char text[128];
	struct facts f;
	struct name_id id;

	(void)state;
	facts_init(&f);
	memset(text, 'x', sizeof(text));
	memcpy(text + 61, "\xe2\x82\xac", 3); /* bytes 61 to 63: the third is one too many */
	text[100] = '\0';
	id = facts_intern(&f, text);
	assert_int_equal(strlen(facts_name(&f, id)), 61);
	assert_int_equal(facts_name_find(&f, text).v, id.v);
	memcpy(text + 60,
	       "\xe2\x82\xac"
	       "x",
	       4); /* bytes 60 to 62: just fits */
	id = facts_intern(&f, text);
	assert_int_equal(strlen(facts_name(&f, id)), NAME_MAX_BYTES);
	facts_deinit(&f);
}

static void words_go_both_ways(void **state)
{
	uint8_t value = 77;

	(void)state;
	for (uint8_t i = JOB_QUEUED; i <= JOB_TIMED_OUT; i++) {
		assert_true(job_state_find(job_state_name(i), &value));
		assert_int_equal(value, i);
	}
	assert_string_equal(job_state_name(JOB_TIMED_OUT), "timed-out");
	assert_string_equal(job_state_name(JOB_TIMED_OUT + 1), "unknown");
	assert_true(tier_find("best-effort", &value) && value == TIER_BEST_EFFORT);
	assert_true(kind_find("interactive", &value) && value == KIND_INTERACTIVE);
	assert_true(role_find("admin", &value) && value == ROLE_ADMIN);
	value = 77;
	assert_false(tier_find("unknown", &value) || job_state_find("unknown", &value) ||
		     role_find("", &value) || kind_find("Batch", &value));
	assert_int_equal(value, 77);
	assert_string_equal(node_state_name(NODE_GONE), "gone");
	assert_string_equal(stop_why_name(STOP_START), "start");
}

/* --- the hash ---------------------------------------------------------------------------------------------- */

static void each_event_that_changes_something_changes_the_hash(void **state)
{
	struct source source = source_make(14);
	struct facts f, before;
	uint32_t silent = 0;

	(void)state;
	facts_init(&f);
	for (int i = 0; i < 3000; i++) {
		facts_freeze(&f, &before);
		step(&source, &f, NULL, 1);
		before.seq = f.seq;
		before.now_ms = f.now_ms;
		silent += facts_hash(&f) == facts_hash(&before);
		facts_deinit(&before);
	}
	/* Random events that do not fit are not few, but far from all. */
	assert_true(silent > 100 && silent < 2500);
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

/*
 * Loading packs the rows; the original has holes and lists of free rows. From then on both use different rows for
 * the same tasks and promises, and neither the hash nor anything that follows may show it.
 */
static void neither_hash_nor_future_depend_on_rows(void **state)
{
	struct source source = source_make(15);
	struct saved *saved;
	struct facts f, packed;
	struct err err;
	bool other_rows = false;

	(void)state;
	facts_init(&f);
	step(&source, &f, NULL, 3000);
	saved = save(&f);
	assert_int_equal(load(saved, &packed, &err), 0);
	assert_true(packed.tasks.count <= f.tasks.count);
	for (int i = 0; i < 1500; i++) {
		step(&source, &f, &packed, 1);
		assert_true(facts_hash(&f) == facts_hash(&packed));
	}
	for (uint32_t id = 1; id <= f.attempts.count; id++)
		other_rows |= attempt_get(&f, (struct attempt_id){ id })->first_task !=
			      attempt_get(&packed, (struct attempt_id){ id })->first_task;
	assert_true(other_rows);
	facts_verify(&packed);
	saved_free(saved);
	facts_deinit(&f);
	facts_deinit(&packed);
	arena_deinit(&source.arena);
}

/* --- saving and loading ---------------------------------------------------------------------------------------- */

static void what_was_saved_loads_with_the_same_hash_at_any_point(void **state)
{
	struct source source = source_make(16);
	struct facts f, back;

	(void)state;
	facts_init(&f);
	for (int i = 0; i < 60; i++) {
		struct saved *saved = save(&f), *again;
		struct err err = { 0 };

		if (load(saved, &back, &err) < 0)
			fail_msg("at event %d: %s", i * 50, err.text);
		assert_true(facts_hash(&back) == facts_hash(&f));
		facts_verify(&back);
		again = save(&back);
		assert_int_equal(saved->count, again->count);
		for (uint32_t j = 0; j < saved->count; j++)
			assert_string_equal(saved->text[j].data, again->text[j].data);
		saved_free(saved);
		saved_free(again);
		facts_deinit(&back);
		step(&source, &f, NULL, 50);
	}
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

static int stop_at_third(void *context, uint32_t kind, const char *text, size_t size)
{
	int *count = context;

	(void)kind;
	(void)text;
	(void)size;
	return ++*count == 3 ? 42 : 0;
}

static void a_writer_can_stop_the_saving(void **state)
{
	struct source source = source_make(17);
	struct facts f;
	int count = 0;

	(void)state;
	facts_init(&f);
	step(&source, &f, NULL, 100);
	assert_int_equal(facts_save(&f, &count, stop_at_third), 42);
	assert_int_equal(count, 3);
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

static void a_field_of_a_later_release_is_passed_over_and_a_kind_is_not(void **state)
{
	static const char later[] = "{\"row\":1,\"text\":\"ann\",\"later\":[1,{\"a\":\"b\"}]}";
	struct facts f;
	struct err err;

	(void)state;
	facts_init(&f);
	assert_int_equal(facts_load_record(&f, 1002, later, strlen(later), &err), 0);
	assert_string_equal(facts_name(&f, (struct name_id){ 1 }), "ann");
	assert_int_equal(facts_load_record(&f, 1999, "{}", 2, &err), -(int)ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "1999"));
	assert_int_equal(facts_load_record(&f, 30, "{}", 2, &err), -(int)ERR_UNSUPPORTED);
	facts_deinit(&f);
}

/* A snapshot is sealed by its digest; so this is about never crashing, and never taking what does not hold together. */
static void a_damaged_snapshot_is_refused_or_harmless(void **state)
{
	struct source source = source_make(18);
	struct saved *saved;
	struct facts f, back;
	uint32_t refused = 0;

	(void)state;
	facts_init(&f);
	step(&source, &f, NULL, 1500);
	saved = save(&f);
	for (int i = 0; i < 600; i++) {
		uint32_t at = random_below(&source.random, saved->count);
		struct buf *text = &saved->text[at];
		uint32_t byte = random_below(&source.random, (uint32_t)text->size);
		char was = text->data[byte];
		struct err err = { 0 };

		if (i % 3 == 0)
			text->data[byte] = (char)('0' + random_below(&source.random, 10));
		else
			text->data[byte] ^= (char)(1 << random_below(&source.random, 7));
		if (load(saved, &back, &err) < 0) {
			refused++;
			assert_true(err.text[0] != '\0');
		} else {
			facts_verify(&back);
		}
		text->data[byte] = was;
		facts_deinit(&back);
	}
	assert_true(refused > 200);
	saved_free(saved);
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

static void a_snapshot_with_a_record_lost_is_refused_or_harmless(void **state)
{
	struct source source = source_make(19);
	struct saved *saved;
	struct facts f, back;
	uint32_t refused = 0;

	(void)state;
	facts_init(&f);
	step(&source, &f, NULL, 400);
	saved = save(&f);
	for (uint32_t lost = 0; lost < saved->count; lost++) {
		struct err err = { 0 };
		int result = 0;

		facts_init(&back);
		for (uint32_t i = 0; !result && i < saved->count; i++)
			if (i != lost)
				result = facts_load_record(&back, saved->kind[i],
							   saved->text[i].data, saved->text[i].size,
							   &err);
		if (!result)
			result = facts_load_finish(&back, &err);
		refused += result < 0;
		/* names are not hashed; the policy may still be the one that facts begin with */
		if (!result)
			assert_true(facts_hash(&back) != facts_hash(&f) ||
				    saved->kind[lost] == 1002 || saved->kind[lost] == 1001);
		facts_deinit(&back);
	}
	assert_true(refused > saved->count / 3);
	saved_free(saved);
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

/* --- what is wrong is found ---------------------------------------------------------------------------------------- */

static void verify(void *context)
{
	facts_verify(context);
}

static uint32_t taken_slot(const struct facts *f)
{
	uint32_t slot = 1;

	while (!*(const uint32_t *)table_get(&f->name_slots, slot))
		slot++;
	return slot;
}

/* Breaks one thing at a time on a frozen copy. */
static void facts_verify_sees_what_is_wrong(void **state)
{
	struct source source = source_make(20);
	struct facts f, broken;
	struct err err;

	(void)state;
	facts_init(&f);
	step(&source, &f, NULL, 3000);
	for (int what = 0; what < 12; what++) {
		struct job *job;
		struct attempt *attempt;

		facts_freeze(&f, &broken);
		job = job_edit(&broken, (struct job_id){ 1 });
		attempt = attempt_edit(&broken, (struct attempt_id){ broken.attempts.count });
		switch (what) {
		case 0: job->queue.v = 99; break;
		case 1:
			job->state = job->state == JOB_RUNNING ? JOB_STARTING : JOB_RUNNING;
			job->last_attempt.v = 0;
			break;
		case 2: job->depends = broken.depends.count + 1; break;
		case 3: attempt->tasks++; break;
		case 4: attempt->exited++; break;
		case 5: attempt->job.v = broken.jobs.count + 1; break;
		case 6: table_add(&broken.tasks); break;
		case 7: table_add(&broken.promises); break;
		case 8: *(uint32_t *)table_edit(&broken.name_slots, taken_slot(&broken)) = 0; break;
		case 9:
			name_edit(&broken, node_get(&broken, (struct node_id){ 1 })->name)->node =
				2;
			break;
		case 10: broken.free_promises = broken.free_promises ? 0 : 1; break;
		default:
			job_edit(&broken,
				 (struct job_id){
					 ((struct depend *)table_edit(&broken.depends, 1))->job })
				->dependents = 0;
			break;
		}
		if (facts_check(&broken, &err) == 0)
			fail_msg("damage %d is not seen", what);
		assert_true(aborts(verify, &broken));
		facts_deinit(&broken);
	}
	assert_false(aborts(verify, &f));
	facts_deinit(&f);
	arena_deinit(&source.arena);
}

static void a_dump_shows_names(void **state)
{
	struct event event = event_make(EVENT_QUEUE_SET, 5, "ann");
	char *text = NULL;
	size_t size = 0;
	struct facts f;
	FILE *out;

	(void)state;
	facts_init(&f);
	event.queue_set.name = "vision";
	event.queue_set.limit_share = -1;
	apply(&f, &event);
	out = open_memstream(&text, &size);
	assert_non_null(out);
	facts_dump(&f, out);
	fclose(out);
	assert_non_null(strstr(text, "queue {\"row\":1,\"name\":\"vision\",\"limit_share\":-1}\n"));
	free(text);
	facts_deinit(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frozen_copy_does_not_change),
		cmocka_unit_test(a_frozen_copy_can_go_its_own_way),
		cmocka_unit_test(every_name_is_found_while_the_table_grows),
		cmocka_unit_test(a_long_name_is_cut_at_a_character),
		cmocka_unit_test(words_go_both_ways),
		cmocka_unit_test(each_event_that_changes_something_changes_the_hash),
		cmocka_unit_test(neither_hash_nor_future_depend_on_rows),
		cmocka_unit_test(what_was_saved_loads_with_the_same_hash_at_any_point),
		cmocka_unit_test(a_writer_can_stop_the_saving),
		cmocka_unit_test(a_field_of_a_later_release_is_passed_over_and_a_kind_is_not),
		cmocka_unit_test(a_damaged_snapshot_is_refused_or_harmless),
		cmocka_unit_test(a_snapshot_with_a_record_lost_is_refused_or_harmless),
		cmocka_unit_test(facts_verify_sees_what_is_wrong),
		cmocka_unit_test(a_dump_shows_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
