/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of one GPU: which instances can exist beside each other. */
#include <string.h>

#include "base/check.h"
#include "core/partitioning/geometry.h"

static uint32_t count_of(uint32_t layout, uint32_t kind)
{
	uint32_t count = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++)
		count += layout_kind(layout, start) == kind;
	return count;
}

uint32_t layout_compute(uint32_t layout)
{
	uint32_t compute = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++)
		compute += slice_compute(layout_kind(layout, start));
	return compute;
}

uint32_t layout_room(const struct geometry *geometry, uint32_t layout, uint32_t kind)
{
	const struct slice_profile *profile = geometry_profile(geometry, kind);
	uint32_t used = layout_mask(layout), room = 0;

	if (!profile || count_of(layout, kind) >= profile->most ||
	    layout_compute(layout) + slice_compute(kind) > geometry->compute)
		return 0;
	for (uint32_t start = 0; start < geometry->memory; start++) {
		uint32_t mask = ((UINT32_C(1) << slice_memory(kind)) - 1) << start;

		if (profile->starts >> start & 1 && !(used & mask))
			room |= UINT32_C(1) << start;
	}
	return room;
}

bool layout_is_legal(const struct geometry *geometry, uint32_t layout)
{
	uint32_t built = 0;

	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++) {
		uint32_t kind = layout_kind(layout, start);

		if (kind == SLICE_NONE)
			continue;
		if (!(layout_room(geometry, built, kind) >> start & 1))
			return false;
		built = layout_with(built, start, kind);
	}
	return true;
}

bool layout_is_full(const struct geometry *geometry, uint32_t layout)
{
	for (uint32_t i = 0; i < PROFILES_MAX && geometry->profiles[i].kind; i++)
		if (layout_room(geometry, layout, geometry->profiles[i].kind))
			return false;
	return true;
}

/* --- all of them ------------------------------------------------------------------------------------------- */

struct listing {
	const struct geometry *geometry;
	bool full;
	uint32_t *ret;
	uint32_t count;
};

/* Instances are added from the highest memory slice down, so that the numbers rise. */
static void list_from(struct listing *listing, uint32_t layout, uint32_t start)
{
	if (start == 0) {
		if (layout && (!listing->full || layout_is_full(listing->geometry, layout))) {
			CHECK(listing->count < LAYOUTS_MAX);
			listing->ret[listing->count++] = layout;
		}
		return;
	}
	list_from(listing, layout, start - 1);
	for (uint32_t kind = SLICE_NONE + 1; kind < SLICE_KINDS; kind++)
		if (kind != SLICE_1G_MEDIA && kind != SLICE_2G_MEDIA &&
		    layout_room(listing->geometry, layout, kind) >> (start - 1) & 1)
			list_from(listing, layout_with(layout, start - 1, kind), start - 1);
}

uint32_t layouts_all(const struct geometry *geometry, bool full, uint32_t ret[LAYOUTS_MAX])
{
	struct listing listing = { geometry, full, ret, 0 };

	list_from(&listing, 0, geometry->memory);
	return listing.count;
}

static uint32_t place_kinds(const struct geometry *geometry, uint32_t layout, const uint8_t *kinds,
			    uint32_t count)
{
	uint32_t room = count ? layout_room(geometry, layout, kinds[0]) : 0, found = 0;

	if (!count)
		return layout;
	for (; room && !found; room &= room - 1)
		found = place_kinds(geometry,
				    layout_with(layout, (uint32_t)__builtin_ctz(room), kinds[0]),
				    kinds + 1, count - 1);
	return found;
}

uint32_t layout_of_kinds(const struct geometry *geometry, const uint8_t *kinds, uint32_t count)
{
	return count <= LAYOUT_SLOTS ? place_kinds(geometry, 0, kinds, count) : 0;
}

/* --- words ----------------------------------------------------------------------------------------------------- */

const char *layout_text(const struct geometry *geometry, uint32_t layout, char ret[LAYOUT_TEXT_MAX])
{
	size_t size = 0;

	ret[0] = '\0';
	for (uint32_t start = 0; start < LAYOUT_SLOTS; start++) {
		uint32_t kind = layout_kind(layout, start);
		const struct slice_profile *profile = geometry_profile(geometry, kind);

		if (!kind)
			continue;
		if (size)
			ret[size++] = ',';
		if (profile)
			(void)slice_wish_text(profile_wish(profile), ret + size);
		else
			(void)slice_wish_text(0, ret + size);
		size += strlen(ret + size);
	}
	return ret;
}

static const char *profiles_text(const struct geometry *geometry, char ret[LAYOUT_TEXT_MAX])
{
	size_t size = 0;

	for (uint32_t i = 0; i < PROFILES_MAX && geometry->profiles[i].kind; i++) {
		if (size) {
			ret[size++] = ',';
			ret[size++] = ' ';
		}
		(void)slice_wish_text(profile_wish(&geometry->profiles[i]), ret + size);
		size += strlen(ret + size);
	}
	return ret;
}

static int name_read(const struct geometry *geometry, const char *text, size_t size, uint8_t *ret,
		     struct err *err)
{
	char name[SLICE_TEXT_MAX] = "", all[LAYOUT_TEXT_MAX];
	const struct slice_profile *profile = NULL;
	uint32_t wish;

	if (size < sizeof name) {
		for (size_t i = 0; i < size; i++)
			name[i] = text[i];
		if (slice_wish_parse(name, &wish))
			profile = geometry_wished(geometry, wish);
	}
	if (!profile)
		return err_set(
			err, ERR_INVALID,
			"\"%.*s\" is not a slice of GPUs of this model (%s of %u GB); it can be cut into %s",
			(int)(size < 40 ? size : 40), text, geometry->family,
			(unsigned)geometry->profiles[geometry->memory == 4 ? 4 : 6].gigabytes,
			profiles_text(geometry, all));
	*ret = profile->kind;
	return 0;
}

int layout_parse(const struct geometry *geometry, const char *text, uint32_t *ret, struct err *err)
{
	uint8_t kinds[LAYOUT_SLOTS] = { 0 };
	uint32_t count = 0;

	for (const char *at = text; *at;) {
		const char *comma = memchr(at, ',', strlen(at));
		size_t size = comma ? (size_t)(comma - at) : strlen(at);
		int rc;

		if (count == LAYOUT_SLOTS)
			return err_set(
				err, ERR_INVALID,
				"more than %d slices are named for one GPU, which has %u memory slices",
				LAYOUT_SLOTS, (unsigned)geometry->memory);
		rc = name_read(geometry, at, size, &kinds[count++], err);
		if (rc < 0)
			return rc;
		at += size + (comma ? 1 : 0);
	}
	*ret = layout_of_kinds(geometry, kinds, count);
	if (count && !*ret)
		return err_set(
			err, ERR_INVALID,
			"%.100s cannot exist together on one GPU of this model: %u compute and %u memory slices are all it has, and not every slice may begin anywhere",
			text, (unsigned)geometry->compute, (unsigned)geometry->memory);
	return 0;
}
