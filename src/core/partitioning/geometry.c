/* SPDX-License-Identifier: Apache-2.0 */
#include "core/partitioning/geometry.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"

/*
 * Kinds, names, numbers of instances: NVIDIA's Multi-Instance GPU User Guide, "Supported MIG Profiles". Where they may begin:
 * the same, "MIG placements" (nvidia-smi mig -lgipp). Memory: of A30, A100 and H100 of 80 GB as nvidia-smi mig -lgip prints it;
 * of the others no listing was at hand, so it is taken from the name, in units of 10^9 bytes, which promises too little rather
 * than too much.
 */
#define GB(n) ((uint32_t)((uint64_t)(n) * 1000000000 / 1048576))
#define SEVEN(g1, m1, gw, mw, g2, m2, g3, m3, g7, m7)                                              \
	{                                                                                          \
		{ SLICE_1G, g1, m1, 0x7f, 7 },      { SLICE_1G_MEDIA, g1, m1, 0x7f, 1 },           \
		{ SLICE_1G_WIDE, gw, mw, 0x55, 4 }, { SLICE_2G, g2, m2, 0x15, 3 },                 \
		{ SLICE_3G, g3, m3, 0x11, 2 },      { SLICE_4G, g3, m3, 0x01, 1 },                 \
		{ SLICE_7G, g7, m7, 0x01, 1 },                                                     \
	}
#define BY_NAME(g1, g2, g3, g7) SEVEN(g1, GB(g1), g2, GB(g2), g2, GB(g2), g3, GB(g3), g7, GB(g7))

static const struct geometry geometries[] = {
	{ "A30",
	  0,
	  4,
	  4,
	  { { SLICE_1G, 6, 5836, 0x0f, 4 },
	    { SLICE_1G_MEDIA, 6, 5836, 0x0f, 1 },
	    { SLICE_2G, 12, 11672, 0x05, 2 },
	    { SLICE_2G_MEDIA, 12, 11672, 0x05, 1 },
	    { SLICE_4G, 24, 23344, 0x01, 1 } } },
	{ "A100", 0, 7, 8, SEVEN(5, 4864, 10, 9856, 10, 9856, 20, 19968, 40, 40192) },
	{ "A100", 60000, 7, 8, SEVEN(10, 9856, 20, 19968, 20, 19968, 40, 40192, 80, 80384) },
	{ "H100", 0, 7, 8, SEVEN(10, 9984, 20, 20096, 20, 20096, 40, 40448, 80, 81152) },
	{ "H100", 90000, 7, 8, BY_NAME(12, 24, 47, 94) },
	{ "H100", 97000, 7, 8, BY_NAME(12, 24, 48, 96) },
	{ "GH200", 0, 7, 8, BY_NAME(12, 24, 48, 96) },
	{ "H200", 0, 7, 8, BY_NAME(18, 35, 71, 141) },
	{ "B200", 0, 7, 8, BY_NAME(23, 45, 90, 180) },
};
_Static_assert(ARRAY_SIZE(geometries) <= GEOMETRIES_MAX, "numbers of geometries are few");

const struct geometry *geometry_of(const char *model, uint32_t gpu_memory_mib)
{
	const char *end = memchr(model, '-', strlen(model));
	size_t size = end ? (size_t)(end - model) : strlen(model);
	const struct geometry *found = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(geometries); i++)
		if (strlen(geometries[i].family) == size &&
		    memcmp(geometries[i].family, model, size) == 0 &&
		    gpu_memory_mib >= geometries[i].from_mib)
			found = &geometries[i];
	return found;
}

uint32_t geometry_number(const struct geometry *geometry)
{
	return geometry ? (uint32_t)(geometry - geometries) + 1 : 0;
}

const struct geometry *geometry_get(uint32_t number)
{
	CHECK(number <= ARRAY_SIZE(geometries));
	return number ? &geometries[number - 1] : NULL;
}

uint32_t geometry_count(void)
{
	return ARRAY_SIZE(geometries);
}

/* --- profiles --------------------------------------------------------------------------------------------- */

const struct slice_profile *geometry_profile(const struct geometry *geometry, uint32_t kind)
{
	for (uint32_t i = 0; geometry && i < PROFILES_MAX && geometry->profiles[i].kind; i++)
		if (geometry->profiles[i].kind == kind)
			return &geometry->profiles[i];
	return NULL;
}

uint32_t profile_wish(const struct slice_profile *profile)
{
	struct slice_wish wish = { .compute = slice_compute(profile->kind),
				   .gigabytes = profile->gigabytes,
				   .media = profile->kind == SLICE_1G_MEDIA ||
					    profile->kind == SLICE_2G_MEDIA };

	return slice_wish_number(wish);
}

const struct slice_profile *geometry_wished(const struct geometry *geometry, uint32_t wish)
{
	for (uint32_t i = 0; geometry && i < PROFILES_MAX && geometry->profiles[i].kind; i++)
		if (profile_wish(&geometry->profiles[i]) == wish)
			return &geometry->profiles[i];
	return NULL;
}

const struct slice_profile *geometry_need(const struct geometry *geometry, uint32_t share,
					  uint32_t memory_mib)
{
	const struct slice_profile *best = NULL;

	for (uint32_t i = 0; geometry && i < PROFILES_MAX && geometry->profiles[i].kind; i++) {
		const struct slice_profile *p = &geometry->profiles[i];
		uint32_t compute = slice_compute(p->kind);

		if (slice_wish_of(profile_wish(p)).media || p->memory_mib < memory_mib ||
		    (uint64_t)compute * GPU_SHARE < (uint64_t)share * geometry->compute)
			continue;
		if (!best || compute < slice_compute(best->kind) ||
		    (compute == slice_compute(best->kind) && p->memory_mib < best->memory_mib))
			best = p;
	}
	return best;
}

uint32_t slice_share(uint32_t wish)
{
	for (size_t i = 0; i < ARRAY_SIZE(geometries); i++)
		if (geometry_wished(&geometries[i], wish))
			return slice_wish_of(wish).compute * (GPU_SHARE / geometries[i].compute);
	return 0;
}

uint32_t compute_instances(const struct geometry *geometry, uint32_t kind, uint32_t compute)
{
	uint32_t whole = slice_compute(kind);
	bool cut = compute == 1 || compute == 2 || (compute == 3 && whole == 7) ||
		   (compute == 4 && whole == 7 && strcmp(geometry->family, "A100") == 0);

	if (!geometry_profile(geometry, kind) || !compute || compute > whole)
		return 0;
	return compute == whole ? 1 : cut ? whole / compute : 0;
}
