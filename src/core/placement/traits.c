/* SPDX-License-Identifier: Apache-2.0 */
#include "core/placement/traits.h"

#include <string.h>

#include "base/check.h"
#include "core/partitioning/geometry.h"

/* --- reading a node ------------------------------------------------------------------------------------ */

/* From NVIDIA's table "CUDA GPU compute capability"; only ever added to. */
static const struct {
	const char *model; /* what stands before the first hyphen */
	uint32_t capability;
} capabilities[] = {
	{ "A10", 86 },      { "A100", 80 },   { "A16", 86 },   { "A2", 86 },      { "A30", 80 },
	{ "A40", 86 },      { "A800", 80 },   { "B100", 100 }, { "B200", 100 },   { "B300", 103 },
	{ "GB200", 100 },   { "GB300", 103 }, { "GH200", 90 }, { "H100", 90 },    { "H20", 90 },
	{ "H200", 90 },     { "H800", 90 },   { "L4", 89 },    { "L40", 89 },     { "L40S", 89 },
	{ "P100", 60 },     { "P4", 61 },     { "P40", 61 },   { "RTX3090", 86 }, { "RTX4090", 89 },
	{ "RTX5090", 120 }, { "T4", 75 },     { "V100", 70 },  { "V100S", 70 },
};

uint32_t model_capability(const char *model)
{
	const char *end = memchr(model, '-', strlen(model));
	size_t size = end ? (size_t)(end - model) : strlen(model);

	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		if (strlen(capabilities[i].model) == size &&
		    memcmp(capabilities[i].model, model, size) == 0)
			return capabilities[i].capability;
	return 0;
}

int64_t model_price(const struct facts *facts, struct name_id model)
{
	int64_t any = 0;

	for (uint32_t row = 1; row <= facts->prices.count; row++) {
		const struct price *price = table_get(&facts->prices, row);

		if (price->micro_per_hour < 0)
			continue;
		if (name_same(price->model, model))
			return price->micro_per_hour;
		if (strcmp(facts_name(facts, price->model), "any") == 0)
			any = price->micro_per_hour;
	}
	return any;
}

int64_t spot_price(const struct facts *facts, struct name_id model)
{
	static const char before[] = "spot:";
	const char *text = facts_name(facts, model);

	for (uint32_t row = 1; row <= facts->prices.count; row++) {
		const struct price *price = table_get(&facts->prices, row);
		const char *name = facts_name(facts, price->model);

		if (price->micro_per_hour >= 0 && strncmp(name, before, sizeof(before) - 1) == 0 &&
		    strcmp(name + sizeof(before) - 1, text) == 0)
			return price->micro_per_hour;
	}
	return 0;
}

int64_t node_price(const struct facts *facts, const struct node *node)
{
	int64_t spot = node->capacity == CAPACITY_SPOT ? spot_price(facts, node->model) : 0;

	return spot ? spot : model_price(facts, node->model);
}

uint32_t shape_speed(const struct shape *shape, struct name_id model)
{
	bool said = false;

	for (uint32_t i = 0; i < SHAPE_MODELS_MAX && shape->models[i].v; i++) {
		if (name_same(shape->models[i], model))
			return shape->throughput[i] ? shape->throughput[i] : SPEED_WHOLE;
		said = said || shape->throughput[i];
	}
	return said ? 0 : SPEED_WHOLE;
}

bool traits_named_has(const struct traits_named *named, struct name_id name)
{
	uint32_t first = 0, end = named->count;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (named->names[middle] < name.v)
			first = middle + 1;
		else
			end = middle;
	}
	return first < named->count && named->names[first] == name.v;
}

static struct name_id taint_key(const struct facts *facts, struct name_id taint,
				const struct traits_named *named)
{
	char key[NAME_MAX_BYTES + 1];
	const char *text = facts_name(facts, taint);
	const char *end = memchr(text, '=', strlen(text));
	size_t size = end ? (size_t)(end - text) : strlen(text);
	struct name_id name;

	memcpy(key, text, size);
	key[size] = '\0';
	name = facts_name_find(facts, key);
	return name.v && traits_named_has(named, name) ? name : (struct name_id){ 0 };
}

static void masks_read(struct traits *ret, const struct facts *facts, const struct node *node,
		       const struct traits_named *named)
{
	uint32_t count = 0;

	for (uint32_t row = 1; row <= facts->masks.count; row++) {
		struct name_id name = mask_get(facts, row)->name;

		if (node_is_in(node, row) && traits_named_has(named, name))
			ret->masks[count++] = name;
	}
}

void traits_read(struct traits *ret, const struct facts *facts, const struct node *node,
		 const struct traits_named *named)
{
	uint32_t count = 0;

	ret->model = node->model;
	ret->gpu_memory_mib = node->gpu_memory_mib;
	ret->driver = version_parse(facts_name(facts, node->driver));
	ret->cuda = version_parse(facts_name(facts, node->cuda));
	ret->capability = node->capability ? node->capability
					   : model_capability(facts_name(facts, node->model));
	ret->class = node->class;
	ret->geometry =
		geometry_number(geometry_of(facts_name(facts, node->model), node->gpu_memory_mib));
	ret->slices_only = node->slices_only;
	ret->spot = node->capacity == CAPACITY_SPOT;
	ret->price_micro = node_price(facts, node);
	for (uint32_t i = 0; i < LABELS_MAX && node->label[i].v; i++)
		if (traits_named_has(named, node->label[i]))
			ret->labels[count++] = node->label[i];
	masks_read(ret, facts, node, named);
	for (uint32_t i = 0; i < TAINTS_MAX && node->taint[i].v; i++) {
		ret->taints[i] = node->taint[i];
		ret->taint_keys[i] = taint_key(facts, node->taint[i], named);
	}
}

/* --- does it do ------------------------------------------------------------------------------------------- */

static bool list_has(const struct name_id *list, uint32_t room, struct name_id name)
{
	for (uint32_t i = 0; i < room && list[i].v; i++)
		if (name_same(list[i], name))
			return true;
	return false;
}

bool traits_in(const struct traits *traits, struct name_id mask)
{
	return list_has(traits->masks, MASKS_MAX, mask);
}

/* Of unlike tasks the wish as a whole: there some of them may run. */
static bool mask_meets(const struct traits *traits, const struct shape *shape)
{
	if (!shape->mask.v || traits_in(traits, shape->mask))
		return true;
	for (uint32_t i = 0; i < shape->role_count; i++)
		if (shape->role_mask[i].v && traits_in(traits, shape->role_mask[i]))
			return true;
	return false;
}

static bool region_meets(const struct traits *traits, const struct shape *shape)
{
	for (uint32_t i = 0; i < SHAPE_REGIONS_MAX && shape->regions[i].v; i++)
		if (list_has(traits->labels, LABELS_MAX, shape->regions[i]))
			return true;
	return !shape->regions[0].v;
}

static bool labels_meet(const struct traits *traits, const struct shape *shape)
{
	for (uint32_t i = 0; i < SHAPE_LABELS_MAX && shape->labels[i].v; i++)
		if (!list_has(traits->labels, LABELS_MAX, shape->labels[i]))
			return false;
	return true;
}

struct name_id traits_taint(const struct traits *traits, const struct shape *shape)
{
	for (uint32_t i = 0; i < TAINTS_MAX && traits->taints[i].v; i++)
		if (!list_has(shape->tolerates, SHAPE_LABELS_MAX, traits->taints[i]) &&
		    !(traits->taint_keys[i].v &&
		      list_has(shape->tolerates, SHAPE_LABELS_MAX, traits->taint_keys[i])))
			return traits->taints[i];
	return (struct name_id){ 0 };
}

uint32_t traits_memory(const struct traits *traits, const struct shape *shape)
{
	if (shape->slice) {
		const struct slice_profile *profile =
			geometry_wished(geometry_get(traits->geometry), shape->slice);

		return profile ? profile->memory_mib : 0;
	}
	return shape_is_part(shape) ? shape_part(shape, traits->gpu_memory_mib).mib
				    : traits->gpu_memory_mib;
}

bool traits_meet(const struct traits *traits, const struct shape *shape, enum trait trait)
{
	switch (trait) {
	case TRAIT_MODEL:
		return !shape->models[0].v ||
		       list_has(shape->models, SHAPE_MODELS_MAX, traits->model);
	case TRAIT_SPEED: return shape_speed(shape, traits->model) >= shape->min_throughput;
	case TRAIT_SLICES:
		return shape->slice ? geometry_wished(geometry_get(traits->geometry),
						      shape->slice) != NULL
				    : !traits->slices_only || !shape->gpus;
	case TRAIT_MEMORY:
		return traits_memory(traits, shape) >= shape->gpu_memory_mib &&
		       traits->gpu_memory_mib >= shape->gpu_part_mib;
	case TRAIT_CAPABILITY: return traits->capability >= shape->min_capability;
	case TRAIT_REGION: return region_meets(traits, shape);
	case TRAIT_CLASS:
		return traits->class == NODE_CLASS_ANY ||
		       (traits->class == NODE_CLASS_INFERENCE) == (shape->serves != 0);
	case TRAIT_LABEL: return labels_meet(traits, shape);
	case TRAIT_MASK: return mask_meets(traits, shape);
	case TRAIT_TAINT: return !traits_taint(traits, shape).v;
	case TRAIT_DRIVER: return traits->driver >= shape->min_driver;
	case TRAIT_CUDA: return traits->cuda >= shape->min_cuda;
	case TRAIT_CAPACITY:
		return traits->spot ? shape->capacity != 0 : shape->capacity != CAPACITY_SPOT;
	case TRAIT_NONE:
	case TRAIT_END: break;
	}
	return true;
}

bool traits_suit(const struct traits *traits, const struct shape *shape)
{
	for (enum trait trait = TRAIT_NONE; trait < TRAIT_END; trait++)
		if (!traits_meet(traits, shape, trait))
			return false;
	return true;
}
