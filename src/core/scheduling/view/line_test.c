/* SPDX-License-Identifier: Apache-2.0 */
/* The line against a plain sorted array. */
#include "core/scheduling/view/line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { STEPS = 60000, ROOM = 4096, RANKS = 5 };

static uint64_t random_state = 7;

static uint32_t below(uint32_t limit)
{
	random_state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = random_state;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((x ^ x >> 31) % limit);
}

struct plain {
	struct line_entry at[ROOM];
	uint32_t count;
};

static uint32_t plain_place(const struct plain *p, const struct line_entry *e)
{
	uint32_t at = 0;

	while (at < p->count && (p->at[at].rank > e->rank ||
				 (p->at[at].rank == e->rank &&
				  (p->at[at].due_ms < e->due_ms ||
				   (p->at[at].due_ms == e->due_ms && p->at[at].job < e->job)))))
		at++;
	return at;
}

static void plain_add(struct plain *p, const struct line_entry *e)
{
	uint32_t at = plain_place(p, e);

	memmove(&p->at[at + 1], &p->at[at], (p->count++ - at) * sizeof(*e));
	p->at[at] = *e;
}

static void plain_remove(struct plain *p, uint32_t at)
{
	memmove(&p->at[at], &p->at[at + 1], (--p->count - at) * sizeof(p->at[0]));
}

static void assert_walk(const struct line *line, const struct plain *p)
{
	struct line_walk walk;
	uint32_t seen = 0;

	for (bool any = line_begin(line, &walk); any; any = line_next(&walk), seen++) {
		assert_true(seen < p->count);
		assert_int_equal(walk.at->rank, p->at[seen].rank);
		assert_int_equal(walk.at->job, p->at[seen].job);
		assert_int_equal(walk.at->bucket, p->at[seen].bucket);
		assert_int_equal(walk.at->shape, p->at[seen].shape);
	}
	assert_int_equal(seen, p->count);
	assert_int_equal(line->count, p->count);
}

static void a_line_walks_as_a_sorted_array_does(void **state)
{
	struct plain *p = calloc(1, sizeof(*p));
	struct line line = { 0 };
	uint32_t most = ROOM - 1, longest = 0;

	(void)state;
	assert_non_null(p);
	for (uint32_t step = 0; step < STEPS; step++) {
		struct line_entry e = { .rank = below(RANKS),
					.due_ms = below(4),
					.job = step + 1,
					.bucket = step,
					.shape = step % 17 };

		if (step % 10000 == 0)
			most = most == 40 ? ROOM - 1 : most == ROOM - 1 ? 1500 : 40;
		if (step % 4 == 0)
			e.job = UINT32_MAX - step; /* some not at the end of their rank */
		if (p->count < most && below(8)) {
			line_add(&line, &e);
			plain_add(p, &e);
		} else if (p->count) {
			uint32_t at = below(p->count);

			line_remove(&line, &p->at[at]);
			plain_remove(p, at);
		}
		for (int i = 0; p->count > most && i < 3; i++) {
			line_remove(&line, &p->at[0]);
			plain_remove(p, 0);
		}
		longest = p->count > longest ? p->count : longest;
		if (step % 100 == 0)
			assert_walk(&line, p);
		assert_true(line.run_count <= 2 + line.count / 8);
	}
	assert_true(longest > 8 * LINE_RUN_MAX);
	while (p->count) {
		line_remove(&line, &p->at[p->count - 1]);
		plain_remove(p, p->count - 1);
	}
	assert_walk(&line, p);
	assert_int_equal(line.run_count, 0);
	line_deinit(&line);
	free(p);
}

static void two_lines_are_the_same_whatever_way_they_came_about(void **state)
{
	struct line a = { 0 }, b = { 0 };

	(void)state;
	for (uint32_t i = 1; i <= 500; i++)
		line_add(&a, &(struct line_entry){ .rank = i % 3, .job = i, .bucket = i });
	for (uint32_t i = 500; i >= 1; i--)
		line_add(&b, &(struct line_entry){ .rank = i % 3, .job = i, .bucket = 1000 + i });
	assert_true(line_same(&a, &b));
	line_remove(&b, &(struct line_entry){ .rank = 1, .job = 250 });
	assert_false(line_same(&a, &b));
	line_add(&b, &(struct line_entry){ .rank = 1, .job = 250, .shape = 9 });
	assert_false(line_same(&a, &b));
	line_deinit(&a);
	line_deinit(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_walks_as_a_sorted_array_does),
		cmocka_unit_test(two_lines_are_the_same_whatever_way_they_came_about),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
