/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/plain_fragment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { TYPICAL_STEP = 10 };
static const double typical_part = 0.95;

/* --- typical tasks ------------------------------------------------------------------------------------------ */

static int shape_compare(const struct workload_job *x, const struct workload_job *y)
{
	if (x->gpus != y->gpus)
		return x->gpus < y->gpus ? -1 : 1;
	if (x->gpu_part != y->gpu_part)
		return x->gpu_part < y->gpu_part ? -1 : 1;
	if (x->cpu_milli != y->cpu_milli)
		return x->cpu_milli < y->cpu_milli ? -1 : 1;
	if (x->memory_mib != y->memory_mib)
		return x->memory_mib < y->memory_mib ? -1 : 1;
	return strcmp(x->models, y->models);
}

static int by_shape(const void *a, const void *b)
{
	const struct workload_job *const *x = a, *const *y = b;

	return shape_compare(*x, *y);
}

static int by_weight(const void *a, const void *b)
{
	const struct plain_typical *x = a, *y = b;

	if (x->weight > y->weight || x->weight < y->weight)
		return x->weight > y->weight ? -1 : 1;
	return shape_compare(x->like, y->like);
}

static uint32_t shapes_count(const struct workload *w, struct plain_typical *ret)
{
	const struct workload_job **jobs = calloc(w->count, sizeof *jobs);
	uint32_t count = 0;

	CHECK(jobs);
	for (uint32_t i = 0; i < w->count; i++)
		jobs[i] = &w->jobs[i];
	qsort(jobs, w->count, sizeof *jobs, by_shape);
	for (uint32_t i = 0; i < w->count; i++) {
		if (!i || shape_compare(jobs[i], jobs[i - 1]) != 0)
			ret[count++].like = jobs[i];
		ret[count - 1].weight += 1.0 / w->count;
	}
	free(jobs);
	return count;
}

void plain_fragment_learn(struct plain_cluster *c, const struct workload *w)
{
	double covered = 0;
	uint32_t shapes;

	c->typical = calloc(w->count, sizeof *c->typical);
	CHECK(c->typical);
	shapes = shapes_count(w, c->typical);
	qsort(c->typical, shapes, sizeof *c->typical, by_weight);
	while (c->typical_count < shapes && covered < typical_part)
		for (int i = 0; i < TYPICAL_STEP && c->typical_count < shapes; i++)
			covered += c->typical[c->typical_count++].weight;
	for (uint32_t i = 0; i < c->typical_count; i++)
		c->typical[i].weight /= covered;
}

/* --- the fragment ------------------------------------------------------------------------------------------- */

/* In thousandths of a GPU. */
static double fragment(const struct plain_cluster *c, const struct plain_node *n)
{
	double sum = 0;

	for (uint32_t i = 0; i < c->typical_count; i++) {
		const struct workload_job *like = c->typical[i].like;
		const uint32_t least = like->gpu_part ? like->gpu_part : GPU_SHARE;
		uint32_t lost = 0;

		if (!like->gpus || !plain_fits(n, like)) {
			lost = n->open_sum;
		} else {
			for (uint32_t g = 0; g < n->gpus; g++)
				lost += n->open[g] < least ? n->open[g] : 0;
		}
		sum += c->typical[i].weight * lost;
	}
	return sum / (double)GPU_SHARE * 1000;
}

static struct plain_node taken(const struct plain_node *node, const struct workload_job *job,
			       int gpu)
{
	struct plain_node n = *node;
	uint32_t left = job->gpus;

	n.cpu_milli -= job->cpu_milli;
	n.ram_mib -= job->memory_mib;
	for (uint32_t g = gpu < 0 ? 0 : (uint32_t)gpu; g < n.gpus && left; g++) {
		const uint32_t share = gpu < 0 ? GPU_SHARE : job->gpu_part;

		if (n.open[g] < share)
			continue;
		n.free -= n.open[g] == GPU_SHARE;
		n.open[g] = (uint16_t)(n.open[g] - share);
		n.open_sum -= share;
		left--;
	}
	return n;
}

/* Published as a gain to be made large; here less is better. */
static int score(double growth)
{
	return -(int)(100 / (1 + exp(growth / 1000)));
}

static int gpu_score(const struct plain_cluster *c, const struct plain_node *node, double before,
		     const struct workload_job *job, int gpu)
{
	const struct plain_node after = taken(node, job, gpu);

	return score(fragment(c, &after) - before);
}

static int best_gpu(const struct plain_cluster *c, const struct plain_node *node,
		    const struct workload_job *job, int *ret_score)
{
	const double before = fragment(c, node);
	int best = -1, now;

	if (!job->gpu_part) {
		*ret_score = gpu_score(c, node, before, job, -1);
		return -1;
	}
	for (uint32_t g = 0; g < node->gpus; g++) {
		if (node->open[g] < job->gpu_part)
			continue;
		now = gpu_score(c, node, before, job, (int)g);
		if (best < 0 || now < *ret_score) {
			best = (int)g;
			*ret_score = now;
		}
	}
	return best;
}

double plain_fragment_cost(const struct plain_cluster *c, const struct plain_node *node,
			   const struct workload_job *job)
{
	int least = 0;

	(void)best_gpu(c, node, job, &least);
	return least;
}

uint32_t plain_fragment_gpu(const struct plain_cluster *c, const struct plain_node *node,
			    const struct workload_job *job)
{
	int least = 0;

	return (uint32_t)best_gpu(c, node, job, &least);
}
