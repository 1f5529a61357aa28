/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Clusters and sets for the tests of this folder, written in one line.
 *
 *	"8 hdr H100-80GB"		a make: NICs, their name, GPU model; 8 GPUs
 *	"s/a:8 s/a:8 s/b:3"		a set: per host its domains, widest first, one letter each (- = none), and its
 *					GPUs 0 .. n-1; "*4" repeats; "@1" is of the second make
 */
#include "base/testing.h"
#include "base/check.h"
#include "core/fabric/describe.h"

enum { PARTS_MAX = 16384 };

static inline struct fabric_host make_of(const char *picture)
{
	struct fabric_host h;
	char nic[16], model[32];
	unsigned nics;

	assert_int_equal(sscanf(picture, "%u %15s %31s", &nics, nic, model), 3);
	assert_int_equal(fabric_host_default(&h, model), 0);
	h.nics = (uint8_t)nics;
	if (nics)
		assert_int_equal(fabric_host_put(&h, "nic", nic, NULL), 0);
	return h;
}

static inline uint32_t mask_of(uint32_t gpus)
{
	return gpus >= 32 ? UINT32_MAX : (UINT32_C(1) << gpus) - 1;
}

static inline uint32_t parts_of(const char *picture, uint32_t levels, struct fabric_part *parts)
{
	uint32_t count = 0;

	while (*picture) {
		struct fabric_part p = { 0 };
		unsigned long times = 1;
		char *end;

		for (uint32_t l = 1; l <= levels; l++, picture++) {
			p.domain[l] = *picture == '-' ? 0 : (uint32_t)(unsigned char)*picture;
			picture++;
		}
		if (levels == 0)
			picture += 2; /* "-:" */
		p.gpu_mask = mask_of((uint32_t)strtoul(picture, &end, 10));
		if (*end == '@')
			p.host = (uint16_t)strtoul(end + 1, &end, 10);
		if (*end == '*')
			times = strtoul(end + 1, &end, 10);
		for (; times; times--)
			parts[count++] = p;
		picture = end;
		while (*picture == ' ')
			picture++;
	}
	return count;
}

static inline struct fabric_estimate estimate_of(const struct fabric *f, const char *picture)
{
	static struct fabric_part parts[PARTS_MAX];
	struct fabric_estimate e;

	fabric_set(f, parts, parts_of(picture, f->level_count, parts), &e);
	return e;
}

static inline struct shape shape_of(uint32_t tasks, uint32_t gpus)
{
	return (struct shape){ .tasks_min = tasks, .tasks_max = tasks, .gpus = gpus };
}
