/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster of a recorded history, as it is at the end, as a cluster file. */
#include <inttypes.h>
#include <string.h>

#include "core/model/gpu_wish.h"
#include "core/partitioning/geometry.h"
#include "sim/replay/recorded.h"

/* --- nodes ------------------------------------------------------------------------------------------------------ */

static void quoted_put(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* "key=value", as a map. */
static void labels_put(const struct facts *f, const struct node *node, FILE *out)
{
	for (uint32_t i = 0; i < LABELS_MAX && node->label[i].v; i++) {
		const char *text = facts_name(f, node->label[i]);
		const size_t key = strcspn(text, "=");

		fprintf(out, "%s\"%.*s\": ", i ? ", " : ", labels: {", (int)key, text);
		quoted_put(out, text + key + (text[key] == '='));
	}
	fputs(node->label[0].v ? "}" : "", out);
}

static void taints_put(const struct facts *f, const struct node *node, FILE *out)
{
	for (uint32_t i = 0; i < TAINTS_MAX && node->taint[i].v; i++) {
		fputs(i ? ", " : ", taints: [", out);
		quoted_put(out, facts_name(f, node->taint[i]));
	}
	fputs(node->taint[0].v ? "]" : "", out);
}

static void islands_put(const struct node *node, FILE *out)
{
	for (uint32_t i = 0; i < ISLANDS_MAX && node->island_mask[i]; i++) {
		bool any = false;

		fputs(i ? ", [" : ", nvlink: [[", out);
		for (uint32_t g = 0; g < node->gpu_count; g++)
			if (node->island_mask[i] >> g & 1) {
				fprintf(out, "%s%u", any ? ", " : "", g);
				any = true;
			}
		fputc(']', out);
	}
	fputs(node->island_mask[0] ? "]" : "", out);
}

static void slices_put(const struct facts *f, const struct node *node, FILE *out)
{
	const struct geometry *geometry =
		geometry_of(facts_name(f, node->model), node->gpu_memory_mib);
	char text[LAYOUT_TEXT_MAX];

	if (node->partitioning == PARTITIONING_AUTO)
		fputs(", mig_allowed: true", out);
	if (node->slices_only)
		fputs(", slices_only: true", out);
	if (!geometry || !node_is_cut(node))
		return;
	for (uint32_t g = 0; g < node->gpu_count; g++)
		fprintf(out, "%s[%s]", g ? ", " : ", mig: [",
			layout_text(geometry, node->layout[g], text));
	fputc(']', out);
}

static void versions_put(const struct facts *f, const struct node *node, FILE *out)
{
	if (node->driver.v)
		fprintf(out, ", driver: \"%s\"", facts_name(f, node->driver));
	if (node->cuda.v)
		fprintf(out, ", cuda: \"%s\"", facts_name(f, node->cuda));
	if (node->capability)
		fprintf(out, ", capability: \"%u.%u\"", node->capability / 10,
			node->capability % 10);
}

static void node_put(const struct facts *f, const struct node *node, FILE *out)
{
	fprintf(out, "    - {name: \"%s\", gpus: %u", facts_name(f, node->name), node->gpu_count);
	if (node->model.v)
		fprintf(out, ", model: \"%s\"", facts_name(f, node->model));
	if (node->gpu_memory_mib)
		fprintf(out, ", memory: %uMiB", node->gpu_memory_mib);
	fprintf(out, ", cpus: %u, ram: %uMiB", node->cpu_milli / 1000, node->ram_mib);
	if (node->class != NODE_CLASS_ANY)
		fprintf(out, ", class: %s", node_class_name(node->class));
	if (node->capacity == CAPACITY_SPOT)
		fputs(", capacity: spot", out);
	versions_put(f, node, out);
	labels_put(f, node, out);
	taints_put(f, node, out);
	islands_put(node, out);
	slices_put(f, node, out);
	for (uint32_t l = 0; l < f->level_count; l++)
		if (node->domain[l].v)
			fprintf(out, ", %s: \"%s\"", facts_name(f, f->level[l]),
				facts_name(f, node->domain[l]));
	fputs("}\n", out);
}

static void cluster_put(const struct facts *f, FILE *out)
{
	fputs("cluster:\n", out);
	if (f->level_count)
		fputs("  levels: [", out);
	for (uint32_t l = 0; l < f->level_count; l++)
		fprintf(out, "%s\"%s\"", l ? ", " : "", facts_name(f, f->level[l]));
	fputs(f->level_count ? "]\n  nodes:\n" : "  nodes:\n", out);
	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (node->name.v && node->state != NODE_GONE)
			node_put(f, node, out);
	}
}

/* --- queues ----------------------------------------------------------------------------------------------------- */

/* In millionths, as people write it. */
static void money_put(FILE *out, int64_t micro)
{
	if (micro % 1000000)
		fprintf(out, "%" PRId64 ".%06" PRId64, micro / 1000000, micro % 1000000);
	else
		fprintf(out, "%" PRId64, micro / 1000000);
}

static void share_put(FILE *out, int64_t share)
{
	const struct gpu_wish wish = { 1, (uint32_t)(share % GPU_SHARE) };
	char part[GPU_WISH_TEXT_MAX];

	if (share % GPU_SHARE == 0)
		fprintf(out, "%" PRId64, share / GPU_SHARE);
	else if (share < GPU_SHARE)
		fputs(gpu_wish_text(&wish, part), out);
	else
		fprintf(out, "%" PRId64 ".%03" PRId64, share / GPU_SHARE,
			share % GPU_SHARE * 1000 / GPU_SHARE);
}

static void models_put(const struct facts *f, const char *what, const struct name_id *models,
		       const int64_t *shares, FILE *out)
{
	fprintf(out, ", %s: {", what);
	for (uint32_t i = 0; i < QUEUE_MODELS_MAX && models[i].v; i++) {
		fprintf(out, "%s\"%s\": ", i ? ", " : "", facts_name(f, models[i]));
		share_put(out, shares[i]);
	}
	fputc('}', out);
}

static void queue_put(const struct facts *f, const struct queue *q, FILE *out)
{
	fprintf(out, "  - {name: \"%s\"", facts_name(f, q->name));
	if (q->parent.v)
		fprintf(out, ", parent: \"%s\"", facts_name(f, queue_get(f, q->parent)->name));
	if (q->guarantee_model[0].v) {
		models_put(f, "guarantee", q->guarantee_model, q->guarantee_model_share, out);
	} else if (q->guarantee_share) {
		fputs(", guarantee: ", out);
		share_put(out, q->guarantee_share);
	}
	if (q->limit_model[0].v) {
		models_put(f, "limit", q->limit_model, q->limit_model_share, out);
	} else if (q->limit_share >= 0) {
		fputs(", limit: ", out);
		share_put(out, q->limit_share);
	}
	fprintf(out, ", weight: %" PRId64, q->weight);
	if (q->reserved)
		fputs(", reserved: true", out);
	if (q->calendar.v) {
		fputs(", calendar: ", out);
		quoted_put(out, facts_text(f, q->calendar));
	}
	if (q->budget_ms) {
		fputs(", budget: ", out);
		money_put(out, q->budget_micro);
	}
	if (q->limit_cpu_milli)
		fprintf(out, ", limit_cpus: %" PRId64, q->limit_cpu_milli / 1000);
	if (q->limit_ram_mib)
		fprintf(out, ", limit_ram: %" PRId64 "MiB", q->limit_ram_mib);
	if (q->user_limit_share) {
		fputs(", user_limit: ", out);
		share_put(out, q->user_limit_share);
	}
	if (q->user_part)
		fprintf(out, ", user_percent: %u", q->user_part);
	fputs("}\n", out);
}

/* --- policy ----------------------------------------------------------------------------------------------------- */

static void duration_put(FILE *out, const char *what, int64_t ms)
{
	fprintf(out, "  %s: %" PRId64 "ms\n", what, ms);
}

static void prices_put(const struct facts *f, FILE *out)
{
	bool any = false;

	for (uint32_t i = 1; i <= f->prices.count; i++) {
		const struct price *p = table_get(&f->prices, i);

		if (p->micro_per_hour < 0)
			continue;
		fprintf(out, "%s\"%s\": ", any ? ", " : "  prices: {", facts_name(f, p->model));
		money_put(out, p->micro_per_hour);
		any = true;
	}
	fputs(any ? "}\n" : "", out);
}

static void policy_put(const struct facts *f, FILE *out)
{
	const struct policy *p = &f->policy;

	fputs("policy:\n", out);
	duration_put(out, "min_runtime", p->min_runtime_ms);
	duration_put(out, "grace", p->grace_ms);
	duration_put(out, "rejoin", p->rejoin_ms);
	duration_put(out, "default_limit", p->default_limit_ms);
	if (p->collect_after_ms)
		duration_put(out, "collect_after", p->collect_after_ms);
	else
		fputs("  collect_after: off\n", out);
	if (p->half_life_ms)
		duration_put(out, "half_life", p->half_life_ms);
	else
		fputs("  half_life: off\n", out);
	fprintf(out, "  packing: %s\n  allow_critical_burst: %s\n", p->packing ? "true" : "false",
		p->allow_critical_burst ? "true" : "false");
	fprintf(out, "  backfill: {depth: %" PRId64 "}\n", p->backfill_depth);
	fprintf(out,
		"  order: {deadline: %" PRId64 ", efficiency: %" PRId64 ", age: %" PRId64
		", user: %" PRId64 ", budget: %" PRId64 "}\n",
		p->order_deadline, p->order_efficiency, p->order_age, p->order_user,
		p->order_budget);
	fprintf(out, "  black_hole: {failures: %" PRId64 ", window: %" PRId64 "ms}\n",
		p->blackhole_failures, p->blackhole_window_ms);
	fprintf(out,
		"  defragment: \"%s\"\n  defragment_moves: %" PRId64 "\n  share_gpus: \"%s\"\n",
		defragment_name(p->defragment), p->defragment_moves,
		share_gpus_name(p->share_gpus));
	duration_put(out, "defragment_work", p->defragment_work_ms);
	fprintf(out, "  patience: %" PRId64 "\n  take_turns: %s\n  budget_warns: %s\n", p->patience,
		p->take_turns ? "true" : "false", p->budget_warns ? "true" : "false");
	duration_put(out, "reserve_unsure", p->reserve_unsure_ms);
	duration_put(out, "spot_notice", p->spot_notice_ms);
	fprintf(out, "  max_slowdown: %" PRId64 "\n", policy_slowdown(p));
	prices_put(f, out);
}

/* Parents before their children, however they came to be so. */
static void queues_put(const struct facts *f, uint32_t parent, FILE *out)
{
	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (!q->name.v || q->removed || q->parent.v != parent)
			continue;
		queue_put(f, q, out);
		queues_put(f, id, out);
	}
}

void recorded_cluster(const struct recorded *r, FILE *out)
{
	cluster_put(&r->facts, out);
	fputs("queues:\n", out);
	queues_put(&r->facts, 0, out);
	policy_put(&r->facts, out);
}

/* --- what is not in it --------------------------------------------------------------------------------------------- */

struct left_out {
	uint32_t numa, windows, set_aside, away, limits;
};

static struct left_out left_out_count(const struct facts *f)
{
	struct left_out l = { 0 };

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });

		if (!node->name.v || node->state == NODE_GONE)
			continue;
		l.numa += node->numa_gpus[0] != 0;
		l.windows += node_has_window(node);
		l.set_aside += node->set_aside_mask != 0;
		l.away += node->state != NODE_READY;
	}
	for (uint32_t id = 1; id <= f->queues.count; id++)
		l.limits += queue_get(f, (struct queue_id){ id })->default_limit_ms != 0;
	return l;
}

static uint32_t bookings_count(const struct facts *f)
{
	uint32_t count = 0;

	for (uint32_t row = 1; row <= f->bookings.count; row++)
		count += booking_get(f, row)->name.v != 0;
	return count;
}

void recorded_cluster_remarks(const struct recorded *r, const char *before, FILE *out)
{
	const struct facts *f = &r->facts;
	const struct left_out l = left_out_count(f);

	recorded_remark(out, before, l.away, "nodes that are down, drained or set apart now",
			"taken as if they were ready");
	recorded_remark(out, before, l.set_aside, "nodes with GPUs that are not to be used",
			"taken as if they were");
	recorded_remark(out, before, l.windows, "nodes with announced maintenance",
			"it is left out");
	recorded_remark(out, before, l.numa, "nodes that tell their NUMA nodes",
			"these are left out");
	recorded_remark(out, before, f->fabric.make_count,
			"kinds of hosts in the description of the fabric",
			"left out: all GPUs of a node are taken as joined alike");
	recorded_remark(out, before, f->data_sets.count, "data sets and where they are kept",
			"left out");
	recorded_remark(out, before, bookings_count(f), "reservations", "left out");
	recorded_remark(out, before, l.limits, "queues with a default limit of their own",
			"taken with that of the policy");
}
