/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The linear program has a row for each size that is asked for and one for the GPUs. It is solved by the revised simplex method with the
 * inverse of the basis written out, from the basis in which nothing is given.
 *
 *	most	sum over ways of x * what the way gives
 *	row s	sum of x * (tasks of the size in the way) <= tasks asked for
 *	last	sum of x <= GPUs
 *
 * Prices of the rows say what a task of a size and a GPU are worth. The way that pays most at these prices is a knapsack of 1,000 thousandths.
 */
#include "openb_bound.h"

#include <stdbool.h>
#include <string.h>

#include "base/check.h"

enum { ROWS_MAX = 128, STEPS_MAX = 20000 };
static const double TINY = 1e-7;

struct program {
	uint32_t rows; /* sizes, and one for the GPUs */
	uint32_t sizes[ROWS_MAX];
	double inverse[ROWS_MAX][ROWS_MAX], has[ROWS_MAX], gives[ROWS_MAX], prices[ROWS_MAX];
};

static void program_begin(struct program *p, const uint64_t *asked, uint32_t gpus)
{
	memset(p, 0, sizeof(*p));
	for (uint32_t size = 1; size <= SIZES_MAX; size++) {
		if (!asked[size])
			continue;
		CHECK(p->rows < ROWS_MAX - 1);
		p->has[p->rows] = (double)asked[size] / size;
		p->sizes[p->rows++] = size;
	}
	p->has[p->rows++] = gpus;
	for (uint32_t i = 0; i < p->rows; i++)
		p->inverse[i][i] = 1;
}

static void prices_make(struct program *p)
{
	for (uint32_t k = 0; k < p->rows; k++) {
		p->prices[k] = 0;
		for (uint32_t i = 0; i < p->rows; i++)
			p->prices[k] += p->gives[i] * p->inverse[i][k];
	}
}

/* The way to fill a GPU that pays most beyond what it costs; what it gives. */
static double way_find(const struct program *p, double column[ROWS_MAX], double *ret_gives)
{
	static double best[SIZES_MAX + 1];
	static uint32_t last[SIZES_MAX + 1];
	uint32_t sizes = p->rows - 1;

	for (uint32_t room = 0; room <= SIZES_MAX; room++) {
		best[room] = room ? best[room - 1] : 0;
		last[room] = UINT32_MAX; /* one thousandth stays open */
		for (uint32_t i = 0; i < sizes && p->sizes[i] <= room; i++) {
			double sum = best[room - p->sizes[i]] + p->sizes[i] - p->prices[i];

			if (sum <= best[room] + TINY)
				continue;
			best[room] = sum;
			last[room] = i;
		}
	}
	memset(column, 0, ROWS_MAX * sizeof(*column));
	column[sizes] = 1;
	*ret_gives = 0;
	for (uint32_t room = SIZES_MAX; room > 0;) {
		if (last[room] == UINT32_MAX) {
			room--;
			continue;
		}
		column[last[room]]++;
		*ret_gives += p->sizes[last[room]];
		room -= p->sizes[last[room]];
	}
	return best[SIZES_MAX] - p->prices[sizes];
}

/* A row whose price fell below 0 does not bind: what is not given of it comes in; false = there is none. */
static bool slack_find(const struct program *p, double column[ROWS_MAX])
{
	uint32_t worst = 0;

	for (uint32_t i = 1; i < p->rows; i++)
		worst = p->prices[i] < p->prices[worst] ? i : worst;
	if (p->prices[worst] >= -TINY)
		return false;
	memset(column, 0, ROWS_MAX * sizeof(*column));
	column[worst] = 1;
	return true;
}

/* Brings the column into the basis, in the place of the one that is used up first. */
static void column_enter(struct program *p, const double column[ROWS_MAX], double gives)
{
	double moved[ROWS_MAX], least = 0;
	uint32_t out = ROWS_MAX;

	for (uint32_t i = 0; i < p->rows; i++) {
		moved[i] = 0;
		for (uint32_t k = 0; k < p->rows; k++)
			moved[i] += p->inverse[i][k] * column[k];
		if (moved[i] > TINY && (out == ROWS_MAX || p->has[i] / moved[i] < least)) {
			out = i;
			least = p->has[i] / moved[i];
		}
	}
	CHECK(out < ROWS_MAX);
	for (uint32_t i = 0; i < p->rows; i++) {
		double part = moved[i] / moved[out];

		if (i == out)
			continue;
		p->has[i] -= moved[i] * least;
		for (uint32_t k = 0; k < p->rows; k++)
			p->inverse[i][k] -= part * p->inverse[out][k];
	}
	p->has[out] = least;
	for (uint32_t k = 0; k < p->rows; k++)
		p->inverse[out][k] /= moved[out];
	p->gives[out] = gives;
}

double bound_by_packing(const uint64_t asked[SIZES_MAX + 1], uint32_t gpus)
{
	static struct program p;
	double column[ROWS_MAX], gives, bound = 0;

	program_begin(&p, asked, gpus);
	for (uint32_t step = 0;; step++) {
		CHECK(step < STEPS_MAX);
		prices_make(&p);
		gives = 0;
		if (!slack_find(&p, column) && way_find(&p, column, &gives) <= TINY)
			break;
		column_enter(&p, column, gives);
	}
	for (uint32_t i = 0; i < p.rows; i++)
		bound += p.gives[i] * p.has[i];
	return bound;
}

uint64_t bound_by_models(const uint32_t *gpus, uint32_t models, const uint64_t *asked)
{
	uint64_t least = UINT64_MAX;

	CHECK(models <= MODELS_MAX);
	for (uint32_t cut = 0; cut < 1U << models; cut++) {
		uint64_t sum = 0;

		for (uint32_t m = 0; m < models; m++)
			sum += cut >> m & 1 ? (uint64_t)gpus[m] * 1000 : 0;
		for (uint32_t set = 1; set < 1U << models; set++)
			sum += set & ~cut ? asked[set] : 0;
		least = sum < least ? sum : least;
	}
	return least;
}
