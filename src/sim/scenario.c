/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's top: the document, its cluster, queues and policy. Jobs, events and expectations
 * have files of their own (scenario_jobs.c, scenario_events.c, scenario_expect.c).
 */
#include "sim/scenario.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/fabric/describe.h"
#include "core/model/facts.h"
#include "sim/fabric_file.h"
#include "sim/reader.h"

static const struct scenario_policy policy_default = {
	.default_limit_ms = -1,
	.backfill_depth = -1,
	.blackhole_failures = -1,
	.blackhole_window_ms = -1,
	.defragment = -1,
	.defragment_moves = -1,
	.defragment_work_ms = -1,
	.spot_notice_ms = -1,
	.share_gpus = -1,
	.max_slowdown = -1,
	.packing = true,
};
/* As in a daemon: what is not said is the core's own default. */
static struct scenario_policy policy_of_core(void)
{
	struct scenario_policy policy = policy_default;

	policy.min_runtime_ms = policy.grace_ms = policy.rejoin_ms = -1;
	policy.collect_after_ms = policy.half_life_ms = -1;
	policy.patience = policy.take_turns = policy.reserve_unsure_ms = -1;
	return policy;
}

/* GPUs whose name does not say their memory, in MiB. */
static const struct {
	const char *model;
	int64_t memory_mib;
} known_models[] = {
	{ "A10", 24576 },     { "A30", 24576 },     { "A40", 49152 },  { "B200", 184320 },
	{ "H200", 144384 },   { "L4", 24576 },      { "L40", 49152 },  { "L40S", 49152 },
	{ "T4", 16384 },      { "MI250X", 131072 }, { "P100", 16384 }, { "MI300X", 196608 },
	{ "RTX4090", 24576 },
};

enum { GPU_MEMORY_DEFAULT_MIB = 81920, CPU_DEFAULT_MILLI = 256000, RAM_DEFAULT_MIB = 4194304 };

/* "H100-80GB" says it; else a known model; else 80 GiB. */
static int64_t model_memory_mib(const char *model)
{
	const char *unit = strstr(model, "GB"), *from = unit;
	int64_t gigabytes;
	char digits[8] = "";

	while (from && from > model && from[-1] >= '0' && from[-1] <= '9')
		from--;
	if (unit && unit > from && unit - from < (long)sizeof(digits)) {
		memcpy(digits, from, (size_t)(unit - from));
		if (parse_int(digits, 1, 4096, &gigabytes, NULL) == 0)
			return gigabytes * 1024;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known_models); i++)
		if (strcmp(known_models[i].model, model) == 0)
			return known_models[i].memory_mib;
	return GPU_MEMORY_DEFAULT_MIB;
}

/* nvlink: lists of GPU indices per island. */
static int read_islands(struct reader *r, const struct conf *c, struct scenario_node *node)
{
	int64_t *masks, index, seen = 0;
	int rc;

	if (!c)
		return 0;
	rc = reader_list(r, c, "nvlink", 8);
	if (rc < 0)
		return rc;
	masks = arena_new_array(r->arena, int64_t, c->count + 1);
	for (size_t i = 0; i < c->count; i++) {
		rc = reader_list(r, c->items[i], "an island of nvlink", NODE_GPUS_MAX);
		if (rc < 0)
			return rc;
		for (size_t k = 0; k < c->items[i]->count; k++) {
			rc = conf_int(r->err, r->file, c->items[i]->items[k], "GPU index", 0,
				      (int64_t)node->gpus - 1, &index);
			if (rc < 0)
				return rc;
			if (seen & INT64_C(1) << index)
				return conf_error(r->err, r->file, c->items[i]->items[k],
						  "GPU %d is in two islands", (int)index);
			seen |= INT64_C(1) << index;
			masks[i] |= INT64_C(1) << index;
		}
	}
	node->islands = masks;
	node->island_count = (uint32_t)c->count;
	return 0;
}

/* The values of one key, side by side with `count` nodes: one for all, or as many as there are
 * nodes. */
static int read_beside(struct reader *r, const struct conf *c, const char *key, size_t count,
		       struct names *ret)
{
	int rc = reader_range(r, c, key, ret);

	if (rc == 0 && ret->count != 1 && ret->count != count)
		return conf_error(r->err, r->file, c, "%s \"%.63s\" gives %zu names for %zu nodes",
				  key, c->text, ret->count, count);
	return rc;
}

/* Fills the domains of each node: "z1,r0", a level that is not said is empty between the commas. */
static int read_domains(struct reader *r, const struct conf *item, struct scenario_node *nodes,
			size_t count)
{
	struct names domain[LEVELS_MAX] = { 0 };
	int rc;

	for (uint32_t l = 0; l < r->s->level_count; l++) {
		const struct conf *c = conf_find(item, r->s->level[l]);

		if (!c)
			continue;
		rc = read_beside(r, c, r->s->level[l], count, &domain[l]);
		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < count; i++) {
		const char *text = "";

		for (uint32_t l = 0; l < r->s->level_count; l++) {
			const char *name =
				domain[l].count ? domain[l].at[domain[l].count == 1 ? 0 : i] : "";

			text = arena_printf(r->arena, "%s%s%s", text, l ? "," : "", name);
		}
		nodes[i].domains = text;
	}
	return 0;
}

/* Its make, once anybody says something of the fabric. Islands of it are those of the node. */
static int read_node_fabric(struct reader *r, const struct conf *item, struct scenario_node *node)
{
	const struct conf *own = conf_find(item, "fabric");
	struct fabric_host host;
	int64_t *masks;
	int rc;

	if (!own && !r->s->fabric)
		return 0;
	if (!r->s->draft) {
		r->s->draft = arena_new(r->arena, struct fabric_draft);
		r->s->draft->fabric.level_count = r->s->level_count;
	}
	if (fabric_host_default(&host, node->model) == FABRIC_UNKNOWN)
		host.nics = 0; /* figures too low rather than too high; cards as described */
	host.gpus = (uint8_t)(node->gpus ? node->gpus : 1);
	rc = fabric_file_host(r->file, r->s->fabric, own, r->arena, &host, NULL, r->err);
	if (rc < 0)
		return rc;
	masks = arena_new_array(r->arena, int64_t, FABRIC_GROUPS_MAX);
	for (uint32_t i = 0; i < FABRIC_GROUPS_MAX && host.island[i] && !node->islands; i++)
		masks[i] = host.island[i];
	if (masks[0] && !node->islands) {
		node->islands = masks;
		while (node->island_count < FABRIC_GROUPS_MAX && masks[node->island_count])
			node->island_count++;
	}
	return fabric_draft_make(r->s->draft, &host, node->model, &node->make, r->err);
}

static int read_node_values(struct reader *r, const struct conf *item, struct scenario_node *node)
{
	int64_t cpus = -1;
	int rc;

	rc = reader_u32(r, item, "gpus", 0, NODE_GPUS_MAX, &node->gpus);
	if (rc == 0)
		rc = reader_text(r, item, "model", &node->model);
	node->gpu_memory_mib = model_memory_mib(node->model);
	if (rc == 0)
		rc = reader_size(r, item, "memory", &node->gpu_memory_mib);
	if (rc == 0)
		rc = reader_int(r, item, "cpus", 0, 100000, &cpus);
	if (rc == 0 && cpus >= 0)
		node->cpu_milli = cpus * 1000;
	if (rc == 0)
		rc = reader_size(r, item, "ram", &node->ram_mib);
	if (rc == 0)
		rc = read_islands(r, conf_find(item, "nvlink"), node);
	if (rc == 0)
		rc = scenario_read_node_names(r, item, node);
	if (rc == 0)
		rc = scenario_read_slices(r, item, node);
	return rc == 0 ? read_node_fabric(r, item, node) : rc;
}

int scenario_read_nodes(struct reader *r, const struct conf *item, struct scenario_node **ret,
			uint32_t *ret_count)
{
	static const char *const fixed[] = { "name",        "gpus",   "model",       "memory",
					     "cpus",        "ram",    "nvlink",      "class",
					     "mig_allowed", "driver", "cuda",        "capability",
					     "labels",      "taints", "data",        "fabric",
					     "numa",        "mig",    "slices_only", "capacity" };
	const char *known[ARRAY_SIZE(fixed) + LEVELS_MAX];
	struct scenario_node first = { .model = "",
				       .gpus = 1,
				       .cpu_milli = CPU_DEFAULT_MILLI,
				       .ram_mib = RAM_DEFAULT_MIB,
				       .driver = "",
				       .cuda = "",
				       .labels = "",
				       .taints = "",
				       .data = "" };
	struct names names;
	int rc;

	memcpy(known, fixed, sizeof(fixed));
	for (uint32_t l = 0; l < r->s->level_count; l++)
		known[ARRAY_SIZE(fixed) + l] = r->s->level[l];
	rc = reader_map(r, item, "node", known, ARRAY_SIZE(fixed) + r->s->level_count);
	if (rc < 0)
		return rc;
	if (!conf_find(item, "name"))
		return conf_error(r->err, r->file, item, "a node needs a name");
	rc = reader_range(r, conf_find(item, "name"), "name of a node", &names);
	if (rc == 0)
		rc = read_node_values(r, item, &first);
	if (rc < 0)
		return rc;
	first.line = item->line;
	*ret = arena_new_array(r->arena, struct scenario_node, names.count);
	*ret_count = (uint32_t)names.count;
	for (size_t i = 0; i < names.count; i++) {
		(*ret)[i] = first;
		(*ret)[i].name = names.at[i];
	}
	return read_domains(r, item, *ret, names.count);
}

static int read_levels(struct reader *r, const struct conf *levels)
{
	struct scenario *s = r->s;
	struct names names;
	int rc;

	s->levels = "";
	if (!levels)
		return 0;
	rc = reader_ranges(r, levels, "levels", &names);
	if (rc < 0)
		return rc;
	if (names.count > LEVELS_MAX)
		return conf_error(r->err, r->file, levels,
				  "there are %zu topology levels; the limit is %d", names.count,
				  LEVELS_MAX);
	s->level = names.at;
	s->level_count = (uint32_t)names.count;
	for (size_t i = 0; i < names.count; i++)
		s->levels = arena_printf(r->arena, "%s%s%s", s->levels, i ? "," : "", names.at[i]);
	return 0;
}

static int check_node_names(struct reader *r, const struct conf *list)
{
	const char **names = arena_new_array(r->arena, const char *, r->s->node_count + 1), *twice;

	for (uint32_t i = 0; i < r->s->node_count; i++)
		names[i] = r->s->nodes[i].name;
	twice = reader_twice(r, names, r->s->node_count);
	return twice ? conf_error(r->err, r->file, list, "two nodes are named \"%s\"", twice) : 0;
}

int scenario_read_cluster(struct reader *r, const struct conf *cluster)
{
	static const char *const known[] = { "levels", "nodes", "fabric", "data", "transfers" };
	const struct conf *list = cluster ? conf_find(cluster, "nodes") : NULL;
	struct scenario_node *all, *some;
	size_t total = 0;
	uint32_t count;
	int rc;

	r->s->levels = "";
	if (!cluster)
		return 0;
	rc = reader_map(r, cluster, "cluster", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = read_levels(r, conf_find(cluster, "levels"));
	r->s->fabric = conf_find(cluster, "fabric");
	r->s->data = conf_find(cluster, "data");
	r->s->transfers = conf_find(cluster, "transfers");
	if (rc == 0 && r->s->fabric) {
		r->s->draft = arena_new(r->arena, struct fabric_draft);
		rc = fabric_file_levels(r->file, r->s->fabric, r->s->level, r->s->level_count,
					r->s->draft, r->err);
	}
	if (rc == 0 && list)
		rc = reader_count(r, list, "nodes", SCENARIO_NODES_MAX, &total);
	if (rc < 0 || !list)
		return rc;
	all = arena_new_array(r->arena, struct scenario_node, total + 1);
	for (size_t i = 0; i < list->count; i++) {
		rc = scenario_read_nodes(r, list->items[i], &some, &count);
		if (rc < 0)
			return rc;
		memcpy(all + r->s->node_count, some, count * sizeof(*some));
		r->s->node_count += count;
	}
	r->s->nodes = all;
	return check_node_names(r, list);
}

/* {H100-80GB: 8, any: 4} */
static int read_by_model(struct reader *r, const struct conf *map, const char **ret_models,
			 int64_t **ret_shares, uint32_t *ret_count)
{
	int rc = 0;

	*ret_models = "";
	*ret_count = 0;
	*ret_shares = arena_new_array(r->arena, int64_t, map->count + 1);
	for (uint32_t i = 0; i < map->count && rc == 0; i++) {
		*ret_models = arena_printf(r->arena, "%s%s%s", *ret_models, i ? "," : "",
					   map->items[i]->key);
		rc = reader_share(r, map->items[i], map->items[i]->key, &(*ret_shares)[i]);
		++*ret_count;
	}
	return rc;
}

static int read_limits(struct reader *r, const struct conf *map, struct scenario_queue *queue)
{
	queue->limit_share = -1;
	return read_by_model(r, map, &queue->limit_models, &queue->limit_model_shares,
			     &queue->limit_model_count);
}

static int read_guarantee(struct reader *r, const struct conf *guarantee,
			  struct scenario_queue *queue)
{
	if (guarantee->type == CONF_MAP)
		return read_by_model(r, guarantee, &queue->guarantee_models,
				     &queue->guarantee_model_shares, &queue->guarantee_model_count);
	queue->guarantee_models = "";
	queue->guarantee_model_count = 0;
	return reader_share(r, guarantee, "guarantee", &queue->guarantee_share);
}

static int read_limit(struct reader *r, const struct conf *limit, struct scenario_queue *queue)
{
	if (limit->type == CONF_MAP)
		return read_limits(r, limit, queue);
	queue->limit_models = "";
	queue->limit_model_count = 0;
	if (limit->type == CONF_SCALAR && strcmp(limit->text, "none") == 0) {
		queue->limit_share = -1;
		return 0;
	}
	return reader_share(r, limit, "limit", &queue->limit_share);
}

static int read_money(struct reader *r, const struct conf *c, const char *what, int64_t most,
		      int64_t *ret_micro)
{
	if (c->type == CONF_SCALAR && parse_money(c->text, ret_micro) &&
	    *ret_micro <= most * 1000000)
		return 0;
	return conf_error(r->err, r->file, c,
			  "%s: wanted is an amount such as 4 or 2.50, of %lld at most", what,
			  (long long)most);
}

/* Fills what the item says and leaves the rest of the queue as it is. */
int scenario_read_queue(struct reader *r, const struct conf *item, struct scenario_queue *queue)
{
	static const char *const known[] = { "name",        "parent",    "guarantee", "limit",
					     "weight",      "reserved",  "used",      "calendar",
					     "limit_cpus",  "limit_ram", "budget",    "user_limit",
					     "user_percent" };
	const struct conf *guarantee, *limit, *user_limit = conf_find(item, "user_limit");
	int rc = reader_map(r, item, "queue", known, ARRAY_SIZE(known));

	if (rc == 0)
		rc = reader_text(r, item, "name", &queue->name);
	if (rc == 0)
		rc = reader_text(r, item, "parent", &queue->parent);
	if (rc == 0)
		rc = reader_int(r, item, "weight", 0, 1000000, &queue->weight);
	if (rc == 0)
		rc = reader_bool(r, item, "reserved", &queue->reserved);
	if (rc == 0)
		rc = reader_int(r, item, "used", 0, 1000000000, &queue->used_gpu_hours);
	if (rc == 0)
		rc = reader_text(r, item, "calendar", &queue->calendar);
	if (rc < 0)
		return rc;
	guarantee = conf_find(item, "guarantee");
	limit = conf_find(item, "limit");
	if (guarantee)
		rc = read_guarantee(r, guarantee, queue);
	if (rc == 0 && limit)
		rc = read_limit(r, limit, queue);
	if (rc == 0)
		rc = reader_int(r, item, "limit_cpus", 0, 1000000000, &queue->limit_cpus);
	if (rc == 0)
		rc = reader_size(r, item, "limit_ram", &queue->limit_ram_mib);
	if (rc == 0 && user_limit)
		rc = reader_share(r, user_limit, "user_limit", &queue->user_limit_share);
	if (rc == 0)
		rc = reader_int(r, item, "user_percent", 0, 100, &queue->user_part);
	queue->budget_said = conf_find(item, "budget") != NULL;
	if (rc == 0 && queue->budget_said)
		rc = read_money(r, conf_find(item, "budget"), "budget", 1000000000,
				&queue->budget_micro);
	if (strcmp(queue->parent, "root") == 0)
		queue->parent = "";
	return rc;
}

int scenario_queue_change(const char *file, const struct conf *changes, struct arena *arena,
			  struct scenario_queue *queue, struct err *err)
{
	struct reader r = { .file = file, .arena = arena, .err = err };

	return scenario_read_queue(&r, changes, queue);
}

static bool queue_exists(const struct scenario *s, const char *name)
{
	for (uint32_t i = 0; i < s->queue_count; i++)
		if (strcmp(s->queues[i].name, name) == 0)
			return true;
	return false;
}

static const struct scenario_queue queue_default = { .name = "default",
						     .parent = "",
						     .limit_share = -1,
						     .weight = 1,
						     .calendar = "",
						     .limit_models = "",
						     .guarantee_models = "" };

static int read_queues(struct reader *r, const struct conf *list)
{
	struct scenario_queue *queues;
	struct scenario *s = r->s;
	int rc;

	if (!list) {
		s->queues = &queue_default;
		s->queue_count = 1;
		return 0;
	}
	rc = reader_list(r, list, "queues", SCENARIO_QUEUES_MAX);
	if (rc < 0)
		return rc;
	queues = arena_new_array(r->arena, struct scenario_queue, list->count + 1);
	s->queues = queues;
	s->queue_count = 0;
	for (size_t i = 0; i < list->count; i++) {
		struct scenario_queue queue = queue_default;

		queue.name = "";
		queue.line = list->items[i]->line;
		rc = scenario_read_queue(r, list->items[i], &queue);
		if (rc < 0)
			return rc;
		if (!*queue.name)
			return conf_error(r->err, r->file, list->items[i], "a queue needs a name");
		if (queue_exists(s, queue.name))
			return conf_error(r->err, r->file, list->items[i],
					  "two queues are named \"%.63s\"", queue.name);
		if (*queue.parent && !queue_exists(s, queue.parent))
			return conf_error(
				r->err, r->file, list->items[i],
				"parent \"%.63s\" of queue \"%.63s\" is not among the queues before it",
				queue.parent, queue.name);
		queues[s->queue_count++] = queue;
	}
	return 0;
}

/* Weights of the terms of the order. */
static int read_order(struct reader *r, const struct conf *c, struct scenario_policy *p)
{
	static const char *const known[] = { "deadline", "efficiency", "age", "user", "budget" };
	int rc = reader_map(r, c, "order", known, ARRAY_SIZE(known));

	if (rc == 0)
		rc = reader_int(r, c, "deadline", 0, 1000, &p->order_deadline);
	if (rc == 0)
		rc = reader_int(r, c, "efficiency", 0, 1000, &p->order_efficiency);
	if (rc == 0)
		rc = reader_int(r, c, "age", 0, 1000, &p->order_age);
	if (rc == 0)
		rc = reader_int(r, c, "user", 0, 1000, &p->order_user);
	if (rc == 0)
		rc = reader_int(r, c, "budget", 0, 1000, &p->order_budget);
	return rc;
}

/* {H100-80GB: 4, any: 1.25}: of a GPU, per hour. */
static int read_prices(struct reader *r, const struct conf *c, struct scenario_policy *p)
{
	const char **models = arena_new_array(r->arena, const char *, c->count + 1);
	int64_t *prices = arena_new_array(r->arena, int64_t, c->count + 1);
	int rc = 0;

	if (c->type != CONF_MAP)
		return conf_error(r->err, r->file, c, "prices must be a map of models to amounts");
	for (uint32_t i = 0; i < c->count && rc == 0; i++) {
		models[i] = c->items[i]->key;
		rc = read_money(r, c->items[i], "price", 1000000, &prices[i]);
		p->price_count++;
	}
	p->price_models = models;
	p->prices_micro = prices;
	return rc;
}

static int read_share_gpus(struct reader *r, const struct conf *c, struct scenario_policy *p)
{
	static const char *const known[] = { "team", "any", "off" };
	const char *text = NULL;
	int rc = reader_text(r, c, "share_gpus", &text);

	if (rc < 0 || !text || share_gpus_find(text, &p->share_gpus))
		return rc;
	return reader_unknown(r, conf_find(c, "share_gpus"), "way to share GPUs", text, known,
			      ARRAY_SIZE(known));
}

static int read_defragment(struct reader *r, const struct conf *c, struct scenario_policy *p)
{
	static const char *const known[] = { "on-demand", "always", "off" };
	const char *text = NULL;
	int rc = reader_text(r, c, "defragment", &text);

	if (rc == 0)
		rc = reader_int(r, c, "defragment_moves", 1, 100000, &p->defragment_moves);
	if (rc == 0)
		rc = reader_duration(r, c, "defragment_work", NULL, 0, &p->defragment_work_ms);
	if (rc < 0 || !text || defragment_find(text, &p->defragment))
		return rc;
	return reader_unknown(r, conf_find(c, "defragment"), "way to defragment", text, known,
			      ARRAY_SIZE(known));
}

/* Who is next among equals. */
static int read_turns(struct reader *r, const struct conf *c, struct scenario_policy *p)
{
	bool turns = p->take_turns > 0;
	int rc = reader_int(r, c, "patience", 0, 1000, &p->patience);

	if (rc == 0 && conf_find(c, "take_turns")) {
		rc = reader_bool(r, c, "take_turns", &turns);
		p->take_turns = turns;
	}
	if (rc == 0)
		rc = reader_duration(r, c, "reserve_unsure", NULL, 0, &p->reserve_unsure_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "spot_notice", NULL, 1, &p->spot_notice_ms);
	return rc;
}

/* Which values hold that are not named: read before all others. */
static int read_defaults(struct reader *r, const struct conf *c, struct scenario_policy *p)
{
	static const char *const known[] = { "scenario", "daemon" };
	const char *text = NULL;
	int rc = reader_text(r, c, "defaults", &text);

	if (rc < 0 || !text)
		return rc;
	if (strcmp(text, "daemon") != 0 && strcmp(text, "scenario") != 0)
		return reader_unknown(r, conf_find(c, "defaults"), "set of defaults", text, known,
				      ARRAY_SIZE(known));
	*p = *text == 'd' ? policy_of_core() : policy_default;
	return 0;
}

static int read_policy(struct reader *r, const struct conf *c)
{
	static const char *const known[] = { "min_runtime",     "grace",
					     "rejoin",          "collect_after",
					     "half_life",       "packing",
					     "backfill",        "defragment",
					     "default_limit",   "black_hole",
					     "order",           "prices",
					     "budget_warns",    "allow_critical_burst",
					     "share_gpus",      "defragment_moves",
					     "defragment_work", "patience",
					     "take_turns",      "reserve_unsure",
					     "spot_notice",     "max_slowdown",
					     "defaults" };
	static const char *const backfill_known[] = { "depth" }, *const hole_known[] = { "failures",
											 "window" };
	struct scenario_policy *p = &r->s->policy;
	const struct conf *backfill, *hole, *order;
	int rc;

	if (!c)
		return 0;
	order = conf_find(c, "order");
	backfill = conf_find(c, "backfill");
	hole = conf_find(c, "black_hole");
	rc = reader_map(r, c, "policy", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = read_defaults(r, c, p);
	if (rc == 0)
		rc = reader_duration(r, c, "min_runtime", NULL, 0, &p->min_runtime_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "grace", NULL, 0, &p->grace_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "rejoin", NULL, 0, &p->rejoin_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "collect_after", "off", 0, &p->collect_after_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "half_life", "off", 0, &p->half_life_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "default_limit", NULL, 0, &p->default_limit_ms);
	if (rc == 0)
		rc = reader_bool(r, c, "packing", &p->packing);
	if (rc == 0)
		rc = reader_bool(r, c, "allow_critical_burst", &p->allow_critical_burst);
	if (rc == 0 && backfill)
		rc = reader_map(r, backfill, "backfill", backfill_known,
				ARRAY_SIZE(backfill_known));
	if (rc == 0 && backfill)
		rc = reader_int(r, backfill, "depth", 0, 10000, &p->backfill_depth);
	if (rc == 0 && order)
		rc = read_order(r, order, p);
	if (rc == 0 && conf_find(c, "prices"))
		rc = read_prices(r, conf_find(c, "prices"), p);
	if (rc == 0)
		rc = reader_bool(r, c, "budget_warns", &p->budget_warns);
	if (rc == 0 && hole)
		rc = reader_map(r, hole, "black_hole", hole_known, ARRAY_SIZE(hole_known));
	if (rc == 0 && hole)
		rc = reader_int(r, hole, "failures", 1, 4, &p->blackhole_failures);
	if (rc == 0 && hole)
		rc = reader_duration(r, hole, "window", NULL, 0, &p->blackhole_window_ms);
	if (rc == 0)
		rc = read_defragment(r, c, p);
	if (rc == 0)
		rc = read_turns(r, c, p);
	if (rc == 0)
		rc = reader_int(r, c, "max_slowdown", 1, POLICY_SLOWDOWN_MAX, &p->max_slowdown);
	return rc == 0 ? read_share_gpus(r, c, p) : rc;
}

const char *scenario_title(const struct conf *document, struct arena *arena)
{
	const struct conf *name = conf_find(document, "name");

	if (name && name->type == CONF_SCALAR && *name->text)
		return name->text;
	return arena_printf(arena, "scenario at line %d", document->line);
}

static int read_parts(struct reader *r, const struct conf *document)
{
	const struct conf *jobs = conf_find(document, "jobs"),
			  *events = conf_find(document, "events"),
			  *expects = conf_find(document, "expect");
	int rc;

	rc = scenario_read_cluster(r, conf_find(document, "cluster"));
	if (rc == 0)
		rc = read_queues(r, conf_find(document, "queues"));
	if (rc == 0)
		rc = read_policy(r, conf_find(document, "policy"));
	if (rc == 0 && jobs)
		rc = scenario_read_jobs(r, jobs);
	if (rc == 0 && events)
		rc = scenario_read_events(r, events);
	if (rc == 0 && !expects)
		return conf_error(r->err, r->file, document,
				  "scenario \"%.100s\" expects nothing: add `expect`", r->s->name);
	if (rc == 0)
		rc = scenario_read_expects(r, expects);
	return rc;
}

int scenario_read(const char *file, const struct conf *document, bool daemon, struct arena *arena,
		  struct scenario *ret, struct err *err)
{
	static const char *const known[] = { "name",   "about", "cluster", "queues",
					     "policy", "jobs",  "events",  "expect" };
	struct reader r = { .file = file, .arena = arena, .s = ret, .err = err };
	int rc;

	*ret = (struct scenario){ .file = file,
				  .name = "",
				  .about = "",
				  .line = document->line,
				  .policy = daemon ? policy_of_core() : policy_default };
	rc = reader_map(&r, document, "scenario", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = reader_text(&r, document, "name", &ret->name);
	if (rc == 0 && !*ret->name)
		return conf_error(err, file, document, "a scenario needs a name");
	if (rc == 0)
		rc = reader_text(&r, document, "about", &ret->about);
	return rc < 0 ? rc : read_parts(&r, document);
}

int scenario_read_site(const char *file, const struct conf *document, struct arena *arena,
		       struct scenario *ret, struct err *err)
{
	static const char *const known[] = { "cluster", "queues", "policy" };
	struct reader r = { .file = file, .arena = arena, .s = ret, .err = err };
	int rc;

	*ret = (struct scenario){ .file = file,
				  .name = file,
				  .about = "",
				  .line = document->line,
				  .policy = policy_of_core() };
	rc = reader_map(&r, document, "cluster file", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = scenario_read_cluster(&r, conf_find(document, "cluster"));
	if (rc == 0 && !ret->node_count)
		return conf_error(err, file, document,
				  "there are no nodes: add `cluster: {nodes: [...]}`");
	if (rc == 0)
		rc = read_queues(&r, conf_find(document, "queues"));
	return rc == 0 ? read_policy(&r, conf_find(document, "policy")) : rc;
}

int scenario_read_rules(const char *file, const struct conf *document, struct arena *arena,
			struct scenario *site, struct err *err)
{
	static const char *const known[] = { "queues", "policy" };
	struct reader r = { .file = file, .arena = arena, .s = site, .err = err };
	int rc = reader_map(&r, document, "policy file", known, ARRAY_SIZE(known));

	site->file = file;
	site->line = document->line;
	if (rc == 0 && conf_find(document, "queues"))
		rc = read_queues(&r, conf_find(document, "queues"));
	return rc == 0 ? read_policy(&r, conf_find(document, "policy")) : rc;
}
