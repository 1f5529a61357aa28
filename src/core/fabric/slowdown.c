/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bandwidth to time: how long an all-reduce takes, and how much slower a job's steps are for it.
 *
 *	time      = latency + bytes x 2(n-1)/n / bus bandwidth          the better of ring and tree
 *	slowdown  = (compute + time here) / (compute + time on the best place)
 *
 * With only a share c of the step known, time here / time best is taken as best bandwidth / bandwidth here.
 */
#include "base/check.h"
#include "core/fabric/fabric.h"

static uint64_t way_ns(uint64_t latency_ns, uint64_t mbps, uint64_t gpus, uint64_t bytes)
{
	__uint128_t ns;

	if (mbps == 0)
		return UINT64_MAX;
	/* bytes per MB/s are microseconds; 2^64 bytes x 2000 x 2^24 GPUs stay below 2^128 */
	ns = (__uint128_t)bytes * 2000 * (gpus - 1);
	ns = (ns + (__uint128_t)gpus * mbps - 1) / ((__uint128_t)gpus * mbps) + latency_ns;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t fabric_time_ns(const struct fabric_estimate *estimate, uint64_t bytes)
{
	uint64_t ring, tree;

	if (estimate->gpus <= 1)
		return 0;
	ring = way_ns(estimate->ring_ns, estimate->ring_mbps, estimate->gpus, bytes);
	tree = way_ns(estimate->tree_ns, estimate->tree_mbps, estimate->gpus, bytes);
	return ring < tree ? ring : tree;
}

/*
 * Chosen, not measured: a training step whose all-reduce is not hidden by computing spends some quarter of its time in it
 * on a good network; the others talk little. Whoever knows better says so with the job.
 */
uint16_t fabric_share_default(uint8_t kind)
{
	switch ((enum job_kind)kind) {
	case KIND_TRAINING: return 250;
	case KIND_BATCH: return 50;
	case KIND_INFERENCE: return 150;
	case KIND_INTERACTIVE: return 100;
	}
	UNREACHABLE();
}

static uint32_t bounded(__uint128_t milli)
{
	if (milli < 1000)
		return 1000;
	return milli > FABRIC_SLOWDOWN_MAX ? FABRIC_SLOWDOWN_MAX : (uint32_t)milli;
}

uint32_t fabric_slowdown_milli(const struct fabric_estimate *best,
			       const struct fabric_estimate *here, const struct fabric_load *load,
			       uint8_t kind)
{
	uint64_t share = load->share_milli ? load->share_milli : fabric_share_default(kind);

	if (here->gpus <= 1 || best->gpus <= 1 || best->mbps == 0)
		return 1000;
	if (here->mbps == 0)
		return FABRIC_SLOWDOWN_MAX;
	if (share > 1000)
		share = 1000;
	if (load->bytes && load->step_ns) {
		uint64_t talk_best = fabric_time_ns(best, load->bytes);
		uint64_t talk_here = fabric_time_ns(here, load->bytes);
		uint64_t step = load->step_ns > talk_best ? load->step_ns : talk_best;
		__uint128_t there = (__uint128_t)(step - talk_best) + talk_here;

		return bounded((there * 1000 + step - 1) / step);
	}
	return bounded(1000 - share +
		       ((__uint128_t)share * best->mbps + here->mbps - 1) / here->mbps);
}
