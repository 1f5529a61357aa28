/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, queues and people: what exists, under which name, and what it is now. */
#include <string.h>

#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/decay.h"
#include "core/model/edit.h"

/* --- nodes ----------------------------------------------------------------------------------------- */

void apply_levels_set(struct facts *f, const struct event_levels_set *e)
{
	const char *text = e->levels;
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	memset(f->level, 0, sizeof(f->level));
	memset(f->fabric.level, 0, sizeof(f->fabric.level)); /* what was said of other levels */
	while (count < LEVELS_MAX && list_next(&text, part))
		f->level[count++] = facts_intern(f, part);
	f->level_count = count;
}

bool nodes_reach(struct facts *f, int64_t rows)
{
	uint32_t before = f->nodes.count;

	if (rows < 1 || !rows_reach(&f->nodes, rows, f->lost, 1))
		return false;
	for (uint32_t id = before + 1; id <= f->nodes.count; id++) {
		for (int i = 0; i < NODE_GPUS_MAX; i++)
			table_add(&f->gpus);
		node_edit(f, (struct node_id){ id })->state = NODE_GONE;
	}
	return true;
}

/* The row for a node of a new name: the one that was given to it, which is the next one or one whose record was lost. */
static struct node_id node_add(struct facts *f, const char *text, int64_t number)
{
	struct node_id id = { 0 };
	struct name_id name;

	if (!number)
		number = facts_node_next(f, text).v;
	if (number < 1 || number >= UINT32_MAX)
		return id;
	nodes_reach(f, number - 1);
	if (number == (int64_t)f->nodes.count + 1) {
		table_add(&f->nodes);
		for (int i = 0; i < NODE_GPUS_MAX; i++)
			table_add(&f->gpus);
	}
	if (!id_exists(&f->nodes, number) ||
	    node_get(f, (struct node_id){ (uint32_t)number })->name.v)
		return id;
	id.v = (uint32_t)number;
	name = facts_intern(f, text);
	node_edit(f, id)->name = name;
	name_edit(f, name)->node = id.v;
	return id;
}

static void node_set_domains(struct facts *f, struct node_id id, const char *text)
{
	struct name_id domain[LEVELS_MAX] = { { 0 } };
	char part[NAME_MAX_BYTES + 1];

	for (int i = 0; i < LEVELS_MAX && list_next(&text, part); i++)
		domain[i] = facts_intern(f, part);
	memcpy(node_edit(f, id)->domain, domain, sizeof(domain));
}

void apply_node_set(struct facts *f, const struct event_node_set *e)
{
	struct node_id id = facts_node_find(f, e->name);
	struct spot_was was;
	struct name_id model;
	struct node *node;

	if (!*e->name || e->gpus < 0 || e->gpus > NODE_GPUS_MAX ||
	    e->nvlink_islands_count > ISLANDS_MAX)
		return;
	if (!id.v)
		id = node_add(f, e->name, e->node);
	if (!id.v)
		return;
	was = spot_node_was(f, id);
	node_set_domains(f, id, e->domains);
	model = facts_intern(f, e->model);
	node = node_edit(f, id);
	if (!name_same(node->model, model) || node->gpu_count != (uint32_t)e->gpus)
		node->make = facts_make_of(f, model, (uint32_t)e->gpus);
	node->model = model;
	node->driver = facts_intern(f, e->driver);
	node->gpu_count = (uint32_t)e->gpus;
	node->gpu_memory_mib = clamp_u32(e->gpu_memory_mib);
	node->cpu_milli = clamp_u32(e->cpu_milli);
	node->ram_mib = clamp_u32(e->ram_mib);
	node->simulated = e->simulated != 0;
	node->cuda = facts_intern(f, e->cuda);
	node->capability = clamp_u32(e->capability);
	memset(node->island_mask, 0, sizeof(node->island_mask));
	for (uint32_t i = 0; i < e->nvlink_islands_count; i++)
		node->island_mask[i] = clamp_u32(e->nvlink_islands[i]);
	if (node->state == NODE_GONE) {
		node->state = NODE_READY;
		node->reason = facts_put_text(f, node->reason, "");
	}
	spot_node_is(f, id, was);
}

void apply_node_marked(struct facts *f, const struct event_node_marked *e)
{
	struct name_id label[LABELS_MAX] = { { 0 } }, taint[TAINTS_MAX] = { { 0 } },
		       data[NODE_DATA_MAX] = { { 0 } };
	struct spot_was was;
	struct node *node;

	if (!id_exists(&f->nodes, e->node) || e->class < 0 || e->class > NODE_CLASS_INFERENCE ||
	    !names_sorted(f, e->labels, "", label, LABELS_MAX) ||
	    !names_sorted(f, e->taints, "", taint, TAINTS_MAX) ||
	    !names_sorted(f, e->data, "", data, NODE_DATA_MAX) || e->partitioning < 0 ||
	    e->partitioning > PARTITIONING_OFF || e->capacity < 0 || e->capacity > CAPACITY_SPOT)
		return;
	was = spot_node_was(f, (struct node_id){ (uint32_t)e->node });
	node = node_edit(f, (struct node_id){ (uint32_t)e->node });
	memcpy(node->label, label, sizeof(label));
	memcpy(node->taint, taint, sizeof(taint));
	memcpy(node->data, data, sizeof(data));
	node->class = (uint8_t)e->class;
	node->partitioning = (uint8_t)e->partitioning;
	node->slices_only = e->slices_only != 0;
	node->capacity = (uint8_t)e->capacity;
	spot_node_is(f, (struct node_id){ (uint32_t)e->node }, was);
}

/* Whether the GPUs are idle and the model allows it is looked at before: what is recorded was carried out. */
void apply_layout_set(struct facts *f, const struct event_layout_set *e)
{
	struct node *node;

	if (!id_exists(&f->nodes, e->node) || e->gpus_count != e->layouts_count)
		return;
	for (uint32_t i = 0; i < e->gpus_count; i++)
		if (e->gpus[i] < 0 || e->gpus[i] >= NODE_GPUS_MAX || e->layouts[i] < 0 ||
		    e->layouts[i] > UINT32_MAX || !layout_is_sound((uint32_t)e->layouts[i]))
			return;
	node = node_edit(f, (struct node_id){ (uint32_t)e->node });
	for (uint32_t i = 0; i < e->gpus_count; i++)
		node->layout[e->gpus[i]] = (uint32_t)e->layouts[i];
}

/* Masks that share a GPU, or hold none, are not NUMA nodes. */
static bool numa_fits(const struct event_node_numa *e)
{
	int64_t seen = 0;

	if (e->gpus_count > NUMA_MAX || e->cpu_milli_count > e->gpus_count ||
	    e->nics_count > e->gpus_count)
		return false;
	for (uint32_t i = 0; i < e->gpus_count; i++) {
		if (e->gpus[i] <= 0 || e->gpus[i] > UINT32_MAX || e->gpus[i] & seen)
			return false;
		seen |= e->gpus[i];
	}
	return true;
}

void apply_node_numa(struct facts *f, const struct event_node_numa *e)
{
	struct node *node;
	struct text_id cpus;

	if (!id_exists(&f->nodes, e->node) || !numa_fits(e))
		return;
	cpus = facts_put_text(f, node_get(f, (struct node_id){ (uint32_t)e->node })->numa_cpus,
			      e->cpus);
	node = node_edit(f, (struct node_id){ (uint32_t)e->node });
	node->numa_cpus = cpus;
	for (uint32_t i = 0; i < NUMA_MAX; i++) {
		node->numa_gpus[i] = i < e->gpus_count ? (uint32_t)e->gpus[i] : 0;
		node->numa_cpu_milli[i] = i < e->cpu_milli_count ? clamp_u32(e->cpu_milli[i]) : 0;
		node->numa_nics[i] = i < e->nics_count ? clamp_u32(e->nics[i]) : 0;
	}
}

static void gpu_clear(struct facts *f, struct node_id id, uint32_t index)
{
	static const struct gpu_record clean;
	uint32_t row = (id.v - 1) * NODE_GPUS_MAX + index + 1;
	const struct gpu_record *gpu = table_get(&f->gpus, row);

	if (memcmp(gpu, &clean, sizeof(clean)) == 0)
		return;
	facts_put_text(f, gpu->reason, "");
	memset(table_edit(&f->gpus, row), 0, sizeof(clean));
}

static void node_window_put(struct facts *f, struct node_id id, int64_t from_ms, int64_t to_ms,
			    const char *text)
{
	struct text_id reason = facts_put_text(f, node_get(f, id)->window_reason, text);
	struct node *node = node_edit(f, id);

	node->window_from_ms = from_ms;
	node->window_to_ms = to_ms;
	node->window_reason = reason;
}

void apply_node_window(struct facts *f, const struct event_node_window *e)
{
	bool none = !e->from_ms && !e->to_ms;

	if (!id_exists(&f->nodes, e->node) ||
	    !node_get(f, (struct node_id){ (uint32_t)e->node })->name.v ||
	    (!none && (e->from_ms < 0 || e->to_ms < 1 || e->to_ms <= e->from_ms)))
		return;
	node_window_put(f, (struct node_id){ (uint32_t)e->node }, e->from_ms, e->to_ms,
			none ? "" : e->reason);
}

void apply_node_state(struct facts *f, const struct event_node_state *e)
{
	struct node_id id = { (uint32_t)e->node };
	struct spot_was was;
	struct text_id reason;
	struct node *node;

	if (!id_exists(&f->nodes, e->node) || e->state < 0 || e->state > NODE_MAINTENANCE)
		return;
	if (e->state == NODE_GONE ||
	    (e->state == NODE_READY && node_get(f, id)->state == NODE_MAINTENANCE &&
	     node_get(f, id)->window_from_ms <= f->now_ms))
		node_window_put(f, id, 0, 0, "");
	reason =
		facts_put_text(f, node_get(f, id)->reason, e->state == NODE_READY ? "" : e->reason);
	was = spot_node_was(f, id);
	node = node_edit(f, id);
	node->state = (uint8_t)e->state;
	spot_node_is(f, id, was);
	node = node_edit(f, id);
	node->drain_ms = e->state == NODE_DRAINING && e->within_ms > 0
				 ? add_saturating(f->now_ms, e->within_ms)
				 : 0;
	node->reason = reason;
	if (e->state != NODE_READY)
		return;
	memset(node->failed_job, 0, sizeof(node->failed_job));
	memset(node->failed_ms, 0, sizeof(node->failed_ms));
	for (uint32_t i = 0; i < NODE_GPUS_MAX; i++)
		if (!(node->set_aside_mask >> i & 1))
			gpu_clear(f, id, i);
}

static void gpu_set_aside(struct facts *f, struct node_id id, uint32_t index, const char *reason)
{
	struct gpu_record *gpu = table_edit(&f->gpus, (id.v - 1) * NODE_GPUS_MAX + index + 1);

	gpu->reason = facts_put_text(f, gpu->reason, reason);
}

void apply_gpu_state(struct facts *f, const struct event_gpu_state *e)
{
	struct node_id id = { (uint32_t)e->node };
	uint32_t mask = (uint32_t)e->mask;
	struct node *node;

	if (!id_exists(&f->nodes, e->node) || e->mask < 0 || e->mask > UINT32_MAX)
		return;
	node = node_edit(f, id);
	if (e->set_aside)
		node->set_aside_mask |= mask;
	else
		node->set_aside_mask &= ~mask;
	for (uint32_t i = 0; i < NODE_GPUS_MAX; i++) {
		if (!(mask >> i & 1))
			continue;
		if (e->set_aside)
			gpu_set_aside(f, id, i, e->reason);
		else
			gpu_clear(f, id, i);
	}
}

/* --- queues ------------------------------------------------------------------------------------------ */

int64_t queue_past_gpu_ms(const struct facts *f, struct queue_id id, int64_t at_ms)
{
	const struct queue *queue = queue_get(f, id);
	int64_t for_ms = at_ms - queue->past_at_ms, half_life_ms = f->policy.half_life_ms;

	return add_saturating(decay_kept(queue->past_gpu_ms, for_ms, half_life_ms),
			      decay_accrued(queue->past_rate_share, for_ms, half_life_ms));
}

void queue_past_change(struct facts *f, struct queue_id id, int64_t more)
{
	int64_t past = queue_past_gpu_ms(f, id, f->now_ms);
	struct queue *queue = queue_edit(f, id);

	queue->past_gpu_ms = past;
	queue->past_rate_share = add_saturating(queue->past_rate_share, more);
	queue->past_at_ms = past || queue->past_rate_share ? f->now_ms : 0;
}

/* --- past use of a user in a queue ---------------------------------------------------------------------- */

static const struct past *past_get(const struct facts *f, uint32_t row)
{
	return table_get(&f->pasts, row);
}

static uint32_t past_row(const struct facts *f, struct queue_id queue, struct name_id user)
{
	uint32_t row = user.v ? ((const struct name *)table_get(&f->names, user.v))->past : 0;

	while (row && past_get(f, row)->queue.v != queue.v)
		row = past_get(f, row)->next;
	return row;
}

int64_t user_past_gpu_ms(const struct facts *f, struct queue_id queue, struct name_id user,
			 int64_t at_ms)
{
	uint32_t row = past_row(f, queue, user);
	const struct past *p = row ? past_get(f, row) : NULL;

	if (!p)
		return 0;
	return add_saturating(
		decay_kept(p->past_gpu_ms, at_ms - p->past_at_ms, f->policy.half_life_ms),
		decay_accrued(p->past_rate_share, at_ms - p->past_at_ms, f->policy.half_life_ms));
}

void facts_link_past(struct facts *f, uint32_t row)
{
	struct past *p = table_edit(&f->pasts, row);
	struct name *name = name_edit(f, p->user);

	p->next = name->past;
	name->past = row;
}

/* In a snapshot of a release that did not count this, what runs has no part in it: so its end may ask for more than there is. */
void user_past_change(struct facts *f, struct queue_id queue, struct name_id user, int64_t more)
{
	int64_t amount = user_past_gpu_ms(f, queue, user, f->now_ms);
	uint32_t row = past_row(f, queue, user);
	struct past *p;

	if (!user.v || (!row && more <= 0))
		return;
	if (!row) {
		row = table_add(&f->pasts);
		p = table_edit(&f->pasts, row);
		p->queue = queue;
		p->user = user;
		facts_link_past(f, row);
	}
	p = table_edit(&f->pasts, row);
	p->past_gpu_ms = amount;
	p->past_rate_share = clamp_positive(add_saturating(p->past_rate_share, more));
	p->past_at_ms = amount || p->past_rate_share ? f->now_ms : 0;
}

/* "H100-80GB,any" and a share for each; `models`, `shares` have room for QUEUE_MODELS_MAX. */
static void queue_models(struct facts *f, const char *list, const int64_t *given, uint32_t most,
			 struct name_id *models, int64_t *shares)
{
	char part[NAME_MAX_BYTES + 1];

	for (uint32_t count = 0;
	     count < QUEUE_MODELS_MAX && count < most && list_next(&list, part) && *part; count++) {
		models[count] = facts_intern(f, part);
		shares[count] = clamp_positive(given[count]);
	}
}

static void queue_limits(struct facts *f, struct queue_id id, const struct event_queue_set *e)
{
	struct name_id models[QUEUE_MODELS_MAX] = { { 0 } }, promised[QUEUE_MODELS_MAX] = { { 0 } };
	int64_t shares[QUEUE_MODELS_MAX] = { 0 }, promised_shares[QUEUE_MODELS_MAX] = { 0 };
	struct queue *queue;

	queue_models(f, e->limit_models, e->limit_model_shares, e->limit_model_shares_count, models,
		     shares);
	queue_models(f, e->guarantee_models, e->guarantee_model_shares,
		     e->guarantee_model_shares_count, promised, promised_shares);
	queue = queue_edit(f, id);
	memcpy(queue->limit_model, models, sizeof(models));
	memcpy(queue->limit_model_share, shares, sizeof(shares));
	memcpy(queue->guarantee_model, promised, sizeof(promised));
	memcpy(queue->guarantee_model_share, promised_shares, sizeof(promised_shares));
	queue->limit_cpu_milli = clamp_positive(e->limit_cpu_milli);
	queue->limit_ram_mib = clamp_positive(e->limit_ram_mib);
}

static void queue_admits(struct queue *queue, const struct event_queue_set *e)
{
	queue->tiers = (uint8_t)(e->tiers & TIERS_ALL);
	queue->max_priority = e->max_priority < 0 ? -1 : clamp_i32(e->max_priority);
	queue->user_limit_share = clamp_positive(e->user_limit_share);
	queue->user_part = clamp_u8(e->user_part, 100);
	queue->user_waiting = clamp_u32(e->user_waiting);
}

/* The row of a name that once was a queue is used again: the same name is the same queue. */
void apply_queue_set(struct facts *f, const struct event_queue_set *e)
{
	struct queue_id parent = facts_queue_find(f, e->parent), id;
	struct name_id name, team;
	struct text_id calendar;
	struct queue *queue;

	if (!*e->name || (*e->parent && !parent.v && strcmp(e->parent, "root") != 0))
		return;
	name = facts_intern(f, e->name);
	team = facts_intern(f, e->team);
	id.v = ((const struct name *)table_get(&f->names, name.v))->queue;
	for (struct queue_id up = parent; up.v; up = queue_get(f, up)->parent)
		if (up.v == id.v)
			return;
	if (!id.v) {
		id.v = table_add(&f->queues);
		name_edit(f, name)->queue = id.v;
		queue = queue_edit(f, id);
		queue->name = name;
		queue->used_gpu_ms = clamp_positive(e->used_gpu_ms);
		queue->past_gpu_ms = queue->used_gpu_ms;
		queue->past_at_ms = queue->past_gpu_ms ? f->now_ms : 0;
	}
	calendar = facts_put_text(f, queue_get(f, id)->calendar, e->calendar);
	queue = queue_edit(f, id);
	queue->calendar = calendar;
	queue->parent = parent;
	queue->team = team;
	queue->guarantee_share = clamp_positive(e->guarantee_share);
	queue->limit_share = e->limit_share < 0 ? -1 : e->limit_share;
	queue->weight = clamp_positive(e->weight);
	queue->default_limit_ms = clamp_positive(e->default_limit_ms);
	queue->reserved = e->reserved != 0;
	queue->removed = false;
	queue_admits(queue, e);
	queue_limits(f, id, e);
}

/* Rows are not used again: there are as many as models ever had a price. */
void apply_price_set(struct facts *f, const struct event_price_set *e)
{
	struct name_id model;
	struct price *price;
	uint32_t row = 1;

	if (!*e->model)
		return;
	model = facts_intern(f, e->model);
	while (row <= f->prices.count &&
	       !name_same(((const struct price *)table_get(&f->prices, row))->model, model))
		row++;
	if (row > f->prices.count)
		row = table_add(&f->prices);
	price = table_edit(&f->prices, row);
	price->model = model;
	price->micro_per_hour = e->micro_per_hour < 0 ? -1 : e->micro_per_hour;
}

void apply_budget_set(struct facts *f, const struct event_budget_set *e)
{
	struct queue_id id = facts_queue_find(f, e->queue);
	struct name_id currency;
	struct queue *queue;

	if (!id.v)
		return;
	currency = facts_intern(f, e->left_micro < 0 ? "" : e->currency);
	queue = queue_edit(f, id);
	queue->budget_micro = clamp_positive(e->left_micro);
	queue->budget_ms = e->left_micro < 0 ? 0 : f->now_ms > 0 ? f->now_ms : 1;
	queue->currency = currency;
	queue->spent_micro = 0;
}

void queues_charge(struct facts *f, const int64_t *queues, uint32_t count, const int64_t *micro,
		   uint32_t micro_count)
{
	for (uint32_t i = 0; i < count && i < micro_count; i++) {
		struct queue *queue;

		if (!id_exists(&f->queues, queues[i]))
			continue;
		queue = queue_edit(f, (struct queue_id){ (uint32_t)queues[i] });
		if (queue->budget_ms)
			queue->spent_micro =
				add_saturating(queue->spent_micro, clamp_positive(micro[i]));
	}
}

/* --- clocks ------------------------------------------------------------------------------------------ */

const struct zone *facts_zone_find(const struct facts *f, const char *name)
{
	struct name_id id = facts_name_find(f, name);

	for (uint32_t row = 1; id.v && row <= f->zones.count; row++) {
		const struct zone *zone = table_get(&f->zones, row);

		if (name_same(zone->name, id))
			return zone;
	}
	return NULL;
}

/* A row for a name that has none yet; 0 = there are as many as may be. */
static uint32_t zone_row(struct facts *f, struct name_id name)
{
	for (uint32_t row = 1; row <= f->zones.count; row++)
		if (name_same(((const struct zone *)table_get(&f->zones, row))->name, name))
			return row;
	return f->zones.count < ZONES_MAX ? table_add(&f->zones) : 0;
}

void apply_zone_set(struct facts *f, const struct event_zone_set *e)
{
	struct zone *zone;
	struct name_id name;
	uint32_t row;

	if (!zone_name_is_sound(e->name) || e->at_ms_count != e->then_ms_count ||
	    !zone_is_sound(e->ahead_ms, e->at_ms, e->then_ms, e->at_ms_count))
		return;
	name = facts_intern(f, e->name);
	row = zone_row(f, name);
	if (!row)
		return;
	zone = table_edit(&f->zones, row);
	*zone = (struct zone){ .name = name,
			       .count = e->at_ms_count,
			       .before_ms = (int32_t)e->ahead_ms };
	for (uint32_t i = 0; i < e->at_ms_count; i++) {
		zone->at_ms[i] = e->at_ms[i];
		zone->then_ms[i] = (int32_t)e->then_ms[i];
	}
}

/* One that does not fit is no place where anything could run. */
void apply_engine_claimed(struct facts *f, const struct event_engine_claimed *e)
{
	if (strlen(e->engine) >= SITE_ENGINE_MAX || strlen(e->cluster) >= SITE_TEXT_MAX ||
	    strlen(e->namespace) >= SITE_TEXT_MAX || strlen(e->instance) >= SITE_INSTANCE_MAX)
		return;
	f->site = (struct work_site){ .engine = "" };
	memcpy(f->site.engine, e->engine, strlen(e->engine));
	memcpy(f->site.cluster, e->cluster, strlen(e->cluster));
	memcpy(f->site.namespace, e->namespace, strlen(e->namespace));
	memcpy(f->site.instance, e->instance, strlen(e->instance));
}

void apply_queue_removed(struct facts *f, const struct event_queue_removed *e)
{
	struct queue_id id = facts_queue_find(f, e->name);

	if (id.v)
		queue_edit(f, id)->removed = true;
}

/* --- people ------------------------------------------------------------------------------------------ */

void apply_team_set(struct facts *f, const struct event_team_set *e)
{
	struct name_id name, title;
	uint32_t id, first_job = 0;
	struct team *team;

	if (!*e->name)
		return;
	name = facts_intern(f, e->name);
	title = facts_intern(f, e->title);
	id = ((const struct name *)table_get(&f->names, name.v))->team;
	if (!id) {
		id = table_add(&f->teams);
		name_edit(f, name)->team = id;
	}
	team = table_edit(&f->teams, id);
	first_job = team->removed && e->team ? f->jobs.count + 1 : team->first_job;
	*team = (struct team){ .name = name, .title = title, .first_job = first_job };
	f->identity_version++;
}

void apply_team_removed(struct facts *f, const struct event_team_removed *e)
{
	uint32_t id = facts_team_find(f, e->name);

	if (!id)
		return;
	((struct team *)table_edit(&f->teams, id))->removed = true;
	f->identity_version++;
}

/* The tokens of the user are revoked and stay those of this row, whoever has the name later. */
static void user_tokens_end(struct facts *f, uint32_t user)
{
	struct name_id name = ((const struct user *)table_get(&f->users, user))->name;

	for (uint32_t id = 1; id <= f->tokens.count; id++) {
		const struct token *token = table_get(&f->tokens, id);
		struct token *edit;

		if (token->owner ? token->owner != user : !name_same(token->user, name))
			continue;
		edit = table_edit(&f->tokens, id);
		edit->owner = user;
		edit->revoked = true;
	}
}

void apply_user_set(struct facts *f, const struct event_user_set *e)
{
	uint32_t id, first_job = 0;
	struct name_id name, team, queue;
	struct user *user;

	if (!*e->name)
		return;
	name = facts_intern(f, e->name);
	team = facts_intern(f, e->team);
	queue = facts_intern(f, e->queue);
	id = ((const struct name *)table_get(&f->names, name.v))->user;
	if (id)
		first_job = ((const struct user *)table_get(&f->users, id))->first_job;
	if (id && e->user && ((const struct user *)table_get(&f->users, id))->removed) {
		user_tokens_end(f, id);
		first_job = f->jobs.count + 1;
		id = 0;
	}
	if (!id) {
		id = table_add(&f->users);
		name_edit(f, name)->user = id;
	}
	user = table_edit(&f->users, id);
	memset(user, 0, sizeof(*user));
	user->name = name;
	user->team = team;
	user->uid = clamp_i32(e->uid);
	user->gid = clamp_i32(e->gid);
	user->role = clamp_u8(e->role, ROLE_ADMIN);
	user->first_job = first_job;
	user->queue = queue;
	f->identity_version++;
}

/* Jobs of the user that wait are to be cancelled; those that run go on, and wait no more afterwards. */
static void user_jobs_end(struct facts *f, uint32_t id)
{
	const struct user *user = table_get(&f->users, id);

	for (uint32_t row = 1; row <= f->jobs.count; row++) {
		struct job_id at = { row };
		const struct job *job = job_get(f, at);
		struct text_id reason;
		struct job *edit;

		if (!user_owns_job(user, at, job) || !job_state_waits(job->state) ||
		    job->cancel_asked)
			continue;
		reason = facts_put_text(f, job->reason, "its user was removed");
		edit = job_edit(f, at);
		edit->cancel_asked = true;
		edit->reason = reason;
	}
}

void apply_user_removed(struct facts *f, const struct event_user_removed *e)
{
	uint32_t id = facts_user_find(f, e->name);

	if (!id)
		return;
	((struct user *)table_edit(&f->users, id))->removed = true;
	if (e->user) {
		user_tokens_end(f, id);
		user_jobs_end(f, id);
	}
	f->identity_version++;
}

void apply_token_created(struct facts *f, const struct event_token_created *e)
{
	struct name_id name, user, note;
	struct token *token;
	uint8_t hash[32];
	uint32_t id;

	if (!*e->id || facts_token_find(f, e->id) || !hex_parse(e->hash, hash))
		return;
	name = facts_intern(f, e->id);
	user = facts_intern(f, e->user);
	note = facts_intern(f, e->note);
	id = table_add(&f->tokens);
	name_edit(f, name)->token = id;
	token = table_edit(&f->tokens, id);
	token->id = name;
	token->user = user;
	token->note = note;
	memcpy(token->hash, hash, sizeof(hash));
	token->expires_ms = clamp_positive(e->expires_ms);
	token->owner = e->owner ? facts_user_find(f, e->user) : 0;
	token->revoked = e->owner && !token->owner; /* the record of its user is lost */
	f->identity_version++;
}

void apply_token_revoked(struct facts *f, const struct event_token_revoked *e)
{
	uint32_t id = facts_token_find(f, e->id);

	if (!id || ((const struct token *)table_get(&f->tokens, id))->revoked)
		return;
	((struct token *)table_edit(&f->tokens, id))->revoked = true;
	f->identity_version++;
}
