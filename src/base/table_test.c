/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables are compared with a model that copies everything: each table here has an array of its
 * records beside it. Record n of a table holds the byte values its model says, or zero.
 */
#include "base/testing.h"

#include <pthread.h>

#include "base/table.h"

static const uint32_t sizes[] = { 1, 4, 7, 8, 24, 64, 100, 192, 1000, 8000, 8161, 16320 };

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static void ids_start_at_one_and_records_at_zero(void **state)
{
	(void)state;
	for (size_t s = 0; s < SIZES; s++) {
		struct table table;

		table_init(&table, sizes[s]);
		for (uint32_t id = 1; id <= 1000; id++)
			assert_int_equal(table_add(&table), id);
		assert_int_equal(table_bytes(&table), 0);
		for (uint32_t id = 1; id <= 1000; id += 99) {
			assert_memory_equal(table_get(&table, id), table_zeroes, sizes[s]);
			assert_memory_equal(table_edit(&table, id), table_zeroes, sizes[s]);
		}
		table_verify(&table);
		table_deinit(&table);
		table_deinit(&table);
	}
}

/* Every record written whole must leave all others as they were. */
static void records_do_not_overlap(void **state)
{
	(void)state;
	for (size_t s = 0; s < SIZES; s++) {
		uint32_t count = 4 * (16320 / sizes[s]) + 3;
		struct table table;

		table_init(&table, sizes[s]);
		for (uint32_t id = 1; id <= count; id++) {
			table_add(&table);
			memset(table_edit(&table, id), (int)(id % 251 + 1), sizes[s]);
		}
		for (uint32_t id = 1; id <= count; id++) {
			const unsigned char *record = table_get(&table, id);

			assert_int_equal(record[0], id % 251 + 1);
			assert_int_equal(record[sizes[s] - 1], id % 251 + 1);
		}
		table_verify(&table);
		table_deinit(&table);
	}
}

/*
 * The product that stands for a division is right for every id, not only for those that fit a
 * test.
 */
static void the_chunk_of_any_id_is_right(void **state)
{
	struct dice dice = { 3 };

	(void)state;
	for (uint32_t bytes = 1; bytes <= TABLE_CHUNK_BYTES - 64; bytes++) {
		struct table table;
		uint32_t edge;

		table_init(&table, bytes);
		assert_true(table.per_chunk >= 1 &&
			    table.per_chunk * bytes <= TABLE_CHUNK_BYTES - 64);
		for (int i = 0; i < 20; i++) {
			uint32_t index = (uint32_t)dice_roll(&dice) >> dice_below(&dice, 32);

			assert_int_equal(table_chunk_of(&table, index), index / table.per_chunk);
			edge = index - index % table.per_chunk;
			assert_int_equal(table_chunk_of(&table, edge), edge / table.per_chunk);
			assert_int_equal(table_chunk_of(&table, edge - 1),
					 (edge - 1) / table.per_chunk);
		}
		assert_int_equal(table_chunk_of(&table, UINT32_MAX), UINT32_MAX / table.per_chunk);
	}
}

struct pair {
	struct table table;
	uint32_t *model; /* value of each record */
	uint32_t count, room;
};

static void pair_add(struct pair *pair)
{
	if (pair->count == pair->room) {
		pair->room = pair->room ? pair->room * 2 : 64;
		pair->model = realloc(pair->model, pair->room * sizeof(uint32_t));
		assert_non_null(pair->model);
	}
	pair->model[pair->count++] = 0;
	assert_int_equal(table_add(&pair->table), pair->count);
}

static void pair_edit(struct pair *pair, uint32_t id, uint32_t value)
{
	uint32_t *record = table_edit(&pair->table, id);

	assert_int_equal(*record, pair->model[id - 1]);
	*record = pair->model[id - 1] = value;
}

static void pair_trim(struct pair *pair, uint32_t id)
{
	if (pair->model[id - 1])
		pair_edit(pair, id, 0);
	table_trim(&pair->table, id);
}

static void pair_freeze(const struct pair *pair, struct pair *ret)
{
	table_freeze(&pair->table, &ret->table);
	ret->count = ret->room = pair->count;
	ret->model = malloc(pair->count * sizeof(uint32_t) + 1);
	assert_non_null(ret->model);
	if (pair->count)
		memcpy(ret->model, pair->model, pair->count * sizeof(uint32_t));
}

static void pair_compare(const struct pair *pair)
{
	assert_int_equal(pair->table.count, pair->count);
	for (uint32_t id = 1; id <= pair->count; id++)
		assert_int_equal(*(const uint32_t *)table_get(&pair->table, id),
				 pair->model[id - 1]);
	table_verify(&pair->table);
}

static void pair_deinit(struct pair *pair)
{
	table_deinit(&pair->table);
	free(pair->model);
	*pair = (struct pair){ 0 };
}

/*
 * Eight tables that freeze, change and drop each other at random: all stay what their models
 * are.
 */
static void copies_are_independent(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		static const uint32_t record_bytes[] = { 4, 192, 1024, 16320 };
		struct pair pairs[8] = { 0 };
		struct dice dice = { seed };

		for (int i = 0; i < 8; i++)
			table_init(&pairs[i].table, record_bytes[seed % 4]);
		for (int step = 0; step < 3000; step++) {
			struct pair *one = &pairs[dice_below(&dice, 8)],
				    *other = &pairs[dice_below(&dice, 8)];
			uint32_t what = dice_below(&dice, 100);

			if (what < 30 && one->count < 400) {
				pair_add(one);
			} else if (what < 95 && one->count) {
				pair_edit(one, 1 + dice_below(&dice, one->count),
					  (uint32_t)dice_roll(&dice));
			} else if (what >= 97 && one != other) {
				pair_deinit(other);
				pair_freeze(one, other);
			} else if (what == 95 && one->count) {
				pair_trim(one, 1 + dice_below(&dice, one->count));
			} else if (what == 96) {
				pair_compare(one);
			}
		}
		for (int i = 0; i < 8; i++)
			pair_compare(&pairs[i]);
		for (int i = 0; i < 8; i++)
			pair_deinit(&pairs[(i * 3 + (int)seed) % 8]);
	}
}

/* With one record in a chunk, 200 records take four pages. */
static void a_frozen_page_is_copied_once_and_the_others_stay_shared(void **state)
{
	struct table table, frozen, again;

	(void)state;
	table_init(&table, 16320);
	for (uint32_t id = 1; id <= 200; id++) {
		table_add(&table);
		memset(table_edit(&table, id), 7, 16320);
	}
	assert_int_equal(table.page_count, 4);
	table_freeze(&table, &frozen);
	table_freeze(&frozen, &again);
	memset(table_edit(&table, 70), 8, 16320);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(table.pages[i] == frozen.pages[i], i != 1);
	for (uint32_t id = 65; id <= 128; id++)
		assert_int_equal(table_get(&table, id) == table_get(&frozen, id), id != 70);
	table_deinit(&frozen);
	assert_int_equal(*(const unsigned char *)table_get(&again, 70), 7);
	assert_int_equal(*(const unsigned char *)table_get(&table, 70), 8);
	table_verify(&table);
	table_verify(&again);
	table_deinit(&table);
	assert_int_equal(*(const unsigned char *)table_get(&again, 200), 7);
	table_verify(&again);
	table_deinit(&again);
}

static void a_trimmed_chunk_is_given_back_and_reads_as_zeroes(void **state)
{
	struct table table, frozen;

	(void)state;
	table_init(&table, 64);
	for (uint32_t id = 1; id <= 600; id++)
		table_add(&table);
	memset(table_edit(&table, 300), 9, 64);
	table_trim(&table, 300);
	assert_int_equal(table_bytes(&table), TABLE_CHUNK_BYTES);
	table_freeze(&table, &frozen);
	memset(table_edit(&table, 300), 0, 64);
	table_trim(&table, 300);
	table_trim(&table, 1); /* never edited */
	assert_int_equal(table_bytes(&table), 0);
	assert_memory_equal(table_get(&table, 300), table_zeroes, 64);
	assert_int_equal(*(const unsigned char *)table_get(&frozen, 300), 9);
	table_deinit(&frozen);
	(void)table_edit(&table, 300); /* zeroes, shared when they are trimmed */
	table_freeze(&table, &frozen);
	table_trim(&table, 300);
	assert_int_equal(table_bytes(&table), 0);
	assert_int_equal(table_bytes(&frozen), TABLE_CHUNK_BYTES);
	table_verify(&table);
	table_verify(&frozen);
	table_deinit(&table);
	table_deinit(&frozen);
}

static void a_frozen_chunk_is_copied_once(void **state)
{
	struct table table, frozen;
	void *before, *after;

	(void)state;
	table_init(&table, 64);
	for (int i = 0; i < 600; i++)
		table_add(&table);
	before = table_edit(&table, 1);
	assert_ptr_equal(table_edit(&table, 1), before);
	table_freeze(&table, &frozen);
	assert_ptr_equal(table_get(&frozen, 1), before);
	after = table_edit(&table, 1);
	assert_ptr_not_equal(after, before);
	assert_ptr_equal(table_edit(&table, 2), (char *)after + 64);
	assert_ptr_equal(table_edit(&frozen, 1), before);
	assert_int_equal(table_bytes(&table), TABLE_CHUNK_BYTES);
	table_deinit(&table);
	table_verify(&frozen);
	table_deinit(&frozen);
}

/* One copy at a time lies here, from the owner to the reader; NULL = taken. */
struct handover {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct pair *copy;
	bool over;
	int wrong;
};

static bool copy_is_right(const struct pair *copy)
{
	for (uint32_t id = 1; id <= copy->count; id++)
		if (*(const uint32_t *)table_get(&copy->table, id) != copy->model[id - 1])
			return false;
	return true;
}

/* Reads, then changes its copy too (an edit by either side may be the one that copies). */
static void *reader(void *data)
{
	struct handover *handover = data;

	for (;;) {
		struct pair *copy;

		pthread_mutex_lock(&handover->lock);
		while (!handover->copy && !handover->over)
			pthread_cond_wait(&handover->changed, &handover->lock);
		copy = handover->copy;
		handover->copy = NULL;
		pthread_cond_broadcast(&handover->changed);
		pthread_mutex_unlock(&handover->lock);
		if (!copy)
			return NULL;
		handover->wrong += !copy_is_right(copy);
		for (uint32_t id = 1; id <= copy->count; id += 50)
			*(uint32_t *)table_edit(&copy->table, id) = copy->model[id - 1] = id;
		handover->wrong += !copy_is_right(copy);
		pair_deinit(copy);
		free(copy);
	}
}

static void another_thread_reads_frozen_copies(void **state)
{
	struct handover handover = { .lock = PTHREAD_MUTEX_INITIALIZER,
				     .changed = PTHREAD_COND_INITIALIZER };
	struct pair pair = { 0 };
	struct dice dice = { 5 };
	pthread_t thread;

	(void)state;
	table_init(&pair.table, 192);
	assert_int_equal(pthread_create(&thread, NULL, reader, &handover), 0);
	for (int round = 0; round < 300; round++) {
		struct pair *copy = malloc(sizeof(*copy));

		assert_non_null(copy);
		for (int i = 0; i < 10; i++)
			pair_add(&pair);
		pair_freeze(&pair, copy);
		pthread_mutex_lock(&handover.lock);
		while (handover.copy)
			pthread_cond_wait(&handover.changed, &handover.lock);
		handover.copy = copy;
		pthread_cond_broadcast(&handover.changed);
		pthread_mutex_unlock(&handover.lock);
		for (int i = 0; i < 100; i++)
			pair_edit(&pair, 1 + dice_below(&dice, pair.count),
				  (uint32_t)dice_roll(&dice));
	}
	pthread_mutex_lock(&handover.lock);
	while (handover.copy)
		pthread_cond_wait(&handover.changed, &handover.lock);
	handover.over = true;
	pthread_cond_broadcast(&handover.changed);
	pthread_mutex_unlock(&handover.lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(handover.wrong, 0);
	pair_compare(&pair);
	pair_deinit(&pair);
}

static void get_id(void *data)
{
	struct table table;

	table_init(&table, 8);
	table_add(&table);
	table_get(&table, *(uint32_t *)data);
}

static void edit_id(void *data)
{
	struct table table;

	table_init(&table, 8);
	table_add(&table);
	table_edit(&table, *(uint32_t *)data);
}

static void init_size(void *data)
{
	struct table table;

	table_init(&table, *(uint32_t *)data);
}

static void write_behind(void *data)
{
	struct table table;

	table_init(&table, 8);
	table_add(&table);
	((char *)table_edit(&table, 1))[*(uint32_t *)data] = 1;
	table_verify(&table);
}

static void wrong_ids_and_sizes_abort(void **state)
{
	uint32_t none = 0, one = 1, two = 2, largest = TABLE_CHUNK_BYTES - 64, more = largest + 1;

	(void)state;
	assert_true(aborts(get_id, &none));
	assert_false(aborts(get_id, &one));
	assert_true(aborts(get_id, &two));
	assert_true(aborts(edit_id, &none));
	assert_false(aborts(edit_id, &one));
	assert_true(aborts(edit_id, &two));
	assert_true(aborts(init_size, &none));
	assert_false(aborts(init_size, &largest));
	assert_true(aborts(init_size, &more));
}

static void verify_sees_a_write_behind_the_last_record(void **state)
{
	uint32_t inside = 7, behind = 8;

	(void)state;
	assert_false(aborts(write_behind, &inside));
	assert_true(aborts(write_behind, &behind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_start_at_one_and_records_at_zero),
		cmocka_unit_test(records_do_not_overlap),
		cmocka_unit_test(the_chunk_of_any_id_is_right),
		cmocka_unit_test(copies_are_independent),
		cmocka_unit_test(a_frozen_chunk_is_copied_once),
		cmocka_unit_test(a_frozen_page_is_copied_once_and_the_others_stay_shared),
		cmocka_unit_test(a_trimmed_chunk_is_given_back_and_reads_as_zeroes),
		cmocka_unit_test(another_thread_reads_frozen_copies),
		cmocka_unit_test(wrong_ids_and_sizes_abort),
		cmocka_unit_test(verify_sees_a_write_behind_the_last_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
