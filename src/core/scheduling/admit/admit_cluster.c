/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of commands about the policy, the levels and the nodes. */
#include "core/scheduling/admit/admit.h"

#include <string.h>

#include "base/check.h"
#include "core/model/apply.h"
#include "core/model/taken.h"

enum { DEFRAGMENT_MOVES_MAX = 100000 };

int admit_policy_set(const struct admission *a, const struct event_policy_set *e)
{
	const struct {
		const char *what;
		int64_t value, max;
	} fields[] = {
		{ "min_runtime", e->min_runtime_ms, ADMIT_DURATION_MAX_MS },
		{ "grace", e->grace_ms, ADMIT_DURATION_MAX_MS },
		{ "rejoin", e->rejoin_ms, ADMIT_DURATION_MAX_MS },
		{ "default_limit", e->default_limit_ms, ADMIT_DURATION_MAX_MS },
		{ "packing", e->packing, 1 },
		{ "blackhole_failures", e->blackhole_failures, FAILED_JOBS_KEPT },
		{ "blackhole_window", e->blackhole_window_ms, ADMIT_DURATION_MAX_MS },
		{ "allow_critical_burst", e->allow_critical_burst, 1 },
		{ "backfill depth", e->backfill_depth, 1024 },
		{ "collect_after", e->collect_after_ms, ADMIT_DURATION_MAX_MS },
		{ "half_life", e->half_life_ms, ADMIT_DURATION_MAX_MS },
		{ "defragment", e->defragment, DEFRAGMENT_OFF },
		{ "defragment_moves", e->defragment_moves, DEFRAGMENT_MOVES_MAX },
		{ "defragment_work", e->defragment_work_ms, ADMIT_DURATION_MAX_MS },
		{ "the weight of deadlines", e->order_deadline, 1000 },
		{ "the weight of efficiency", e->order_efficiency, 1000 },
		{ "the weight of age", e->order_age, 1000 },
		{ "the weight of users", e->order_user, 1000 },
		{ "the weight of budgets", e->order_budget, 1000 },
		{ "budget_warns", e->budget_warns, 1 },
		{ "keep_ended", e->keep_ended_ms, ADMIT_DURATION_MAX_MS },
		{ "patience", e->patience, 1000 },
		{ "take_turns", e->take_turns, 1 },
		{ "reserve_unsure", e->reserve_unsure_ms, ADMIT_DURATION_MAX_MS },
		{ "spot_notice", e->spot_notice_ms, ADMIT_DURATION_MAX_MS },
		{ "max_slowdown", e->max_slowdown, POLICY_SLOWDOWN_MAX },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].value != -1 &&
		    admit_range(a, fields[i].what, fields[i].value, 0, fields[i].max) < 0)
			return -(int)ERR_INVALID;
	/* 0 would be "as before" to those who read the record. */
	if (e->defragment_moves == 0 &&
	    admit_range(a, "defragment_moves", 0, 1, DEFRAGMENT_MOVES_MAX) < 0)
		return -(int)ERR_INVALID;
	if (e->defragment_work_ms == 0 &&
	    admit_range(a, "defragment_work (ms)", 0, 1, ADMIT_DURATION_MAX_MS) < 0)
		return -(int)ERR_INVALID;
	if (e->max_slowdown == 0 &&
	    admit_range(a, "max_slowdown (percent)", 0, 1, POLICY_SLOWDOWN_MAX) < 0)
		return -(int)ERR_INVALID;
	return e->spot_notice_ms ? 0
				 : admit_range(a, "spot_notice (ms)", 0, 1, ADMIT_DURATION_MAX_MS);
}

static bool levels_are(const struct facts *f, const char *levels)
{
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	while (list_next(&levels, part)) {
		if (count >= f->level_count || strcmp(facts_name(f, f->level[count]), part) != 0)
			return false;
		count++;
	}
	return count == f->level_count;
}

int admit_levels_set(const struct admission *a, const struct event_levels_set *e)
{
	const char *list = e->levels, *rest;
	char part[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	int count = admit_names(a, "level", e->levels, LEVELS_MAX, false);

	if (count < 0)
		return count;
	if (levels_are(a->facts, e->levels))
		return CORE_ALREADY;
	while (list_next(&list, part)) {
		if (strcmp(part, "node") == 0 || strcmp(part, "nvlink") == 0)
			return err_set(
				a->err, ERR_INVALID,
				"level \"%s\" exists below every other one and can't be declared",
				part);
		for (rest = list; rest && list_next(&rest, other);)
			if (strcmp(part, other) == 0)
				return err_set(a->err, ERR_INVALID, "level \"%s\" is named twice",
					       part);
	}
	for (uint32_t id = 1; id <= a->facts->jobs.count; id++) {
		const struct job *job = job_get(a->facts, (struct job_id){ id });
		const struct shape *shape;

		if (job_state_is_final(job->state))
			continue;
		shape = shape_get(a->facts, job->shape);
		if (((shape->require && shape->require <= LEVELS_MAX) ||
		     (shape->prefer && shape->prefer <= LEVELS_MAX)))
			return err_set(
				a->err, ERR_CONFLICT,
				"job %u names a topology level; levels can change when no such job waits or runs",
				id);
	}
	return 0;
}

static int islands_check(const struct admission *a, const struct event_node_set *e)
{
	int64_t all = (INT64_C(1) << e->gpus) - 1, seen = 0;

	if (e->nvlink_islands_count > ISLANDS_MAX)
		return err_set(a->err, ERR_INVALID,
			       "node \"%s\" has %u NVLink islands; the limit is %d", e->name,
			       e->nvlink_islands_count, ISLANDS_MAX);
	for (uint32_t i = 0; i < e->nvlink_islands_count; i++) {
		if (e->nvlink_islands[i] <= 0 || (e->nvlink_islands[i] & ~all))
			return err_set(
				a->err, ERR_INVALID,
				"node \"%s\": NVLink island %u names GPUs that the node does not have",
				e->name, i);
		if (e->nvlink_islands[i] & seen)
			return err_set(a->err, ERR_INVALID,
				       "node \"%s\": a GPU is in two NVLink islands", e->name);
		seen |= e->nvlink_islands[i];
	}
	return 0;
}

static bool node_is(const struct facts *f, const struct node *n, const struct event_node_set *e)
{
	const char *list = e->domains;
	char part[NAME_MAX_BYTES + 1];
	struct name_id domain[LEVELS_MAX] = { { 0 } };

	for (int i = 0; i < LEVELS_MAX && list_next(&list, part); i++) {
		domain[i] = facts_name_find(f, part);
		if (*part && !domain[i].v)
			return false; /* a domain nobody has heard of */
	}
	for (uint32_t i = 0; i < ISLANDS_MAX; i++)
		if (n->island_mask[i] !=
		    (i < e->nvlink_islands_count ? (uint32_t)e->nvlink_islands[i] : 0))
			return false;
	return n->state != NODE_GONE && n->gpu_count == e->gpus &&
	       n->gpu_memory_mib == e->gpu_memory_mib && n->cpu_milli == e->cpu_milli &&
	       n->ram_mib == e->ram_mib && n->simulated == (e->simulated != 0) &&
	       strcmp(facts_name(f, n->model), e->model) == 0 &&
	       strcmp(facts_name(f, n->driver), e->driver) == 0 &&
	       strcmp(facts_name(f, n->cuda), e->cuda) == 0 && n->capability == e->capability &&
	       memcmp(domain, n->domain, sizeof(domain)) == 0;
}

int admit_node_set(const struct admission *a, struct event_node_set *e)
{
	struct node_id id;
	int rc = admit_name(a, "node", e->name);

	if (rc == 0)
		rc = admit_range(a, "the number of GPUs of a node", e->gpus, 0, NODE_GPUS_MAX);
	if (rc == 0)
		rc = admit_range(a, "the memory of a GPU in MiB", e->gpu_memory_mib, 0, INT32_MAX);
	if (rc == 0)
		rc = admit_range(a, "the processors of a node in thousandths", e->cpu_milli, 0,
				 INT32_MAX);
	if (rc == 0)
		rc = admit_range(a, "the memory of a node in MiB", e->ram_mib, 0, INT32_MAX);
	if (rc == 0)
		rc = admit_range(a, "the compute capability in tenths", e->capability, 0, 1000);
	if (rc == 0)
		rc = admit_text(a, "the GPU model", e->model);
	if (rc == 0)
		rc = islands_check(a, e);
	if (rc == 0)
		rc = admit_names(a, "domain", e->domains, (int)a->facts->level_count, true);
	if (rc < 0)
		return rc;
	id = facts_node_find(a->facts, e->name);
	e->node = facts_node_next(a->facts, e->name).v;
	return id.v && node_is(a->facts, node_get(a->facts, id), e) ? CORE_ALREADY : 0;
}

static const struct node *node_known(const struct admission *a, int64_t node)
{
	if (node >= 1 && node <= (int64_t)a->facts->nodes.count)
		return node_get(a->facts, (struct node_id){ (uint32_t)node });
	err_set(a->err, ERR_NOT_FOUND, "there is no node with number %lld", (long long)node);
	return NULL;
}

int admit_node_state(const struct admission *a, const struct event_node_state *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_text(a, "the reason", e->reason) : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = admit_range(a, "the state of a node", e->state, NODE_READY, NODE_GONE);
	if (rc == 0)
		rc = admit_range(a, "the time to drain a node in ms", e->within_ms, 0,
				 ADMIT_DURATION_MAX_MS);
	if (rc == 0 && e->within_ms && e->state != NODE_DRAINING)
		return err_set(a->err, ERR_INVALID, "a deadline is for a node that is drained");
	if (rc < 0)
		return rc;
	if (node->state == NODE_GONE && e->state != NODE_GONE)
		return err_set(a->err, ERR_CONFLICT,
			       "node \"%s\" is gone; it comes back when it is declared again",
			       facts_name(a->facts, node->name));
	/* Ready once more is a person's word that the failures seen there are dealt with. */
	if (node->state == NODE_DRAINING && (node->drain_ms || e->within_ms))
		return 0; /* another deadline */
	if (node->state == NODE_CORDONED && e->state == NODE_CORDONED && *e->reason &&
	    strcmp(facts_text(a->facts, node->reason), e->reason) != 0)
		return 0; /* another reason: who had the first lets go without touching this one */
	return node->state == e->state && e->state != NODE_READY ? CORE_ALREADY : 0;
}

int admit_node_window(const struct admission *a, const struct event_node_window *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_text(a, "the reason", e->reason) : -(int)ERR_NOT_FOUND;
	const char *name;

	if (rc < 0)
		return rc;
	name = facts_name(a->facts, node->name);
	if (!e->from_ms && !e->to_ms)
		return node_has_window(node) ? 0 : CORE_ALREADY;
	if (node->state == NODE_GONE)
		return err_set(a->err, ERR_CONFLICT, "node \"%s\" is gone", name);
	if (e->to_ms <= e->from_ms || e->from_ms < 0)
		return err_set(a->err, ERR_INVALID,
			       "maintenance of node \"%s\": it must end after it begins", name);
	if (e->to_ms <= a->facts->now_ms)
		return err_set(a->err, ERR_INVALID,
			       "maintenance of node \"%s\": its end is in the past", name);
	if (e->to_ms - a->facts->now_ms > ADMIT_DURATION_MAX_MS)
		return err_set(a->err, ERR_INVALID,
			       "maintenance of node \"%s\": its end is too far in the future",
			       name);
	return node->window_from_ms == e->from_ms && node->window_to_ms == e->to_ms &&
			       strcmp(facts_text(a->facts, node->window_reason), e->reason) == 0
		       ? CORE_ALREADY
		       : 0;
}

static bool node_is_marked(const struct facts *f, const struct node *n,
			   const struct event_node_marked *e)
{
	char list[EVENT_TEXT_MAX + 1];

	return n->class == e->class && n->partitioning == e->partitioning &&
	       n->slices_only == (e->slices_only != 0) && n->capacity == e->capacity &&
	       strcmp(names_text(f, n->label, LABELS_MAX, list), e->labels) == 0 &&
	       strcmp(names_text(f, n->taint, TAINTS_MAX, list), e->taints) == 0 &&
	       strcmp(names_text(f, n->data, NODE_DATA_MAX, list), e->data) == 0;
}

int admit_node_marked(const struct admission *a, const struct event_node_marked *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_labels(a, "label", e->labels, LABELS_MAX, true) : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = admit_labels(a, "taint", e->taints, TAINTS_MAX, false);
	if (rc == 0)
		rc = admit_labels(a, "data set", e->data, NODE_DATA_MAX, false);
	if (rc == 0)
		rc = admit_range(a, "the class of a node", e->class, NODE_CLASS_ANY,
				 NODE_CLASS_INFERENCE);
	if (rc == 0)
		rc = admit_range(a, "the partitioning of a node", e->partitioning,
				 PARTITIONING_FIXED, PARTITIONING_OFF);
	if (rc == 0)
		rc = admit_range(a, "the capacity type of a node", e->capacity, CAPACITY_NOT_SAID,
				 CAPACITY_SPOT);
	if (rc == 0 && e->slices_only && e->partitioning == PARTITIONING_OFF)
		rc = err_set(a->err, ERR_INVALID,
			     "a node can't be there for slices alone and have partitioning: off");
	if (rc == 0 && e->partitioning == PARTITIONING_OFF && node_is_cut(node))
		rc = err_set(
			a->err, ERR_CONFLICT,
			"GPUs of node \"%s\" are cut into slices; make them whole before partitioning: off",
			facts_name(a->facts, node->name));
	if (rc < 0)
		return rc;
	return node_is_marked(a->facts, node, e) ? CORE_ALREADY : 0;
}

static uint32_t masks_there(const struct facts *f)
{
	uint32_t count = 0;

	for (uint32_t row = 1; row <= f->masks.count; row++)
		count += mask_get(f, row)->name.v != 0;
	return count;
}

/* Nothing of it would change. */
static bool mask_is(const struct facts *f, uint32_t row, const struct event_node_mask *e)
{
	if (!row || strcmp(facts_text(f, mask_get(f, row)->why), e->why) != 0)
		return false;
	for (uint32_t i = 0; i < e->in_count; i++)
		if (!node_is_in(node_get(f, (struct node_id){ (uint32_t)e->in[i] }), row))
			return false;
	for (uint32_t i = 0; i < e->out_count; i++)
		if (node_is_in(node_get(f, (struct node_id){ (uint32_t)e->out[i] }), row))
			return false;
	return true;
}

int admit_node_mask(const struct admission *a, const struct event_node_mask *e)
{
	uint32_t row = facts_mask_find(a->facts, facts_name_find(a->facts, e->name));
	int rc = admit_name(a, "mask", e->name);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < e->in_count; i++)
		if (!node_known(a, e->in[i]))
			return -(int)ERR_NOT_FOUND;
	for (uint32_t i = 0; i < e->out_count; i++)
		if (!node_known(a, e->out[i]))
			return -(int)ERR_NOT_FOUND;
	if (e->ended)
		return row ? 0 : CORE_ALREADY;
	if (!row && masks_there(a->facts) == MASKS_MAX)
		return err_set(a->err, ERR_UNAVAILABLE, "there are %d masks of nodes already",
			       MASKS_MAX);
	return mask_is(a->facts, row, e) ? CORE_ALREADY : 0;
}

static int numa_check(const struct admission *a, const struct node *node,
		      const struct event_node_numa *e)
{
	const char *name = facts_name(a->facts, node->name);
	int64_t seen = 0;

	if (e->gpus_count > NUMA_MAX || e->cpu_milli_count > e->gpus_count ||
	    e->nics_count > e->gpus_count)
		return err_set(
			a->err, ERR_INVALID,
			"node \"%s\": %u NUMA nodes are given; the limit is %d, and each needs its GPUs",
			name, e->gpus_count, NUMA_MAX);
	for (uint32_t i = 0; i < e->gpus_count; i++) {
		if (e->gpus[i] <= 0 || e->gpus[i] >> node->gpu_count || e->gpus[i] & seen)
			return err_set(
				a->err, ERR_INVALID,
				"node \"%s\": NUMA node %u must have GPUs from 0 to %d that no other one has",
				name, i, (int)node->gpu_count - 1);
		seen |= e->gpus[i];
	}
	for (uint32_t i = 0; i < e->cpu_milli_count; i++)
		if (admit_range(a, "the milli-CPUs of a NUMA node", e->cpu_milli[i], 0, INT32_MAX) <
		    0)
			return -(int)a->err->code;
	for (uint32_t i = 0; i < e->nics_count; i++)
		if (admit_range(a, "the network cards of a NUMA node", e->nics[i], 0, 64) < 0)
			return -(int)a->err->code;
	return admit_text(a, "the processors of NUMA nodes", e->cpus);
}

/* Masks of GPUs that the node has, none in two of them. */
static int groups_check(const struct admission *a, const struct node *node, const char *what,
			const int64_t *groups, uint32_t count)
{
	int64_t seen = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (groups[i] <= 0 || groups[i] >> node->gpu_count || groups[i] & seen ||
		    count > ISLANDS_MAX)
			return err_set(
				a->err, ERR_INVALID,
				"node \"%s\": at most %d %s are possible, each with GPUs from 0 to %d that no other one has",
				facts_name(a->facts, node->name), ISLANDS_MAX, what,
				(int)node->gpu_count - 1);
		seen |= groups[i];
	}
	return 0;
}

static bool found_is(const struct found *found, const struct event_node_found *e)
{
	for (uint32_t i = 0; i < ISLANDS_MAX; i++)
		if (found->island[i] != (i < e->islands_count ? (uint64_t)e->islands[i] : 0) ||
		    found->pcie_switch[i] != (i < e->switches_count ? (uint64_t)e->switches[i] : 0))
			return false;
	return found->given == e->given && found->nics == e->nics &&
	       found->nic_mbps == e->nic_mbps && found->nvlink_mbps == e->nvlink_mbps &&
	       found->pcie_mbps == e->pcie_mbps && found->reduces == (e->reduces != 0) &&
	       found->source == e->source;
}

int admit_node_found(const struct admission *a, const struct event_node_found *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? 0 : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = admit_range(a, "what was found on a node", e->given, 0, FOUND_ALL);
	if (rc == 0)
		rc = admit_range(a, "who tells of a node", e->source, 0, SOURCE_FILE);
	if (rc == 0)
		rc = groups_check(a, node, "NVLink islands", e->islands, e->islands_count);
	if (rc == 0)
		rc = groups_check(a, node, "PCIe switches", e->switches, e->switches_count);
	if (rc == 0)
		rc = admit_range(a, "the network cards of a node", e->nics, 0, 32);
	if (rc == 0)
		rc = admit_range(a, "the rate of a network card in MB/s", e->nic_mbps, 0,
				 RATE_MAX_MBPS);
	if (rc == 0)
		rc = admit_range(a, "the rate of NVLink in MB/s", e->nvlink_mbps, 0, RATE_MAX_MBPS);
	if (rc == 0)
		rc = admit_range(a, "the rate of PCIe in MB/s", e->pcie_mbps, 0, RATE_MAX_MBPS);
	if (rc < 0)
		return rc;
	return found_is(&node->found, e) ? CORE_ALREADY : 0;
}

static bool numa_is(const struct facts *f, const struct node *n, const struct event_node_numa *e)
{
	for (uint32_t i = 0; i < NUMA_MAX; i++)
		if (n->numa_gpus[i] != (i < e->gpus_count ? (uint64_t)e->gpus[i] : 0) ||
		    n->numa_cpu_milli[i] !=
			    (i < e->cpu_milli_count ? (uint64_t)e->cpu_milli[i] : 0) ||
		    n->numa_nics[i] != (i < e->nics_count ? (uint64_t)e->nics[i] : 0))
			return false;
	return strcmp(facts_text(f, n->numa_cpus), e->cpus) == 0;
}

int admit_node_numa(const struct admission *a, const struct event_node_numa *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? numa_check(a, node, e) : -(int)ERR_NOT_FOUND;

	if (rc < 0)
		return rc;
	return numa_is(a->facts, node, e) ? CORE_ALREADY : 0;
}

/* All are set aside, and not for another reason than this one. */
static bool aside_is_known(const struct admission *a, const struct node *node,
			   const struct event_gpu_state *e)
{
	const uint32_t row = ((uint32_t)e->node - 1) * NODE_GPUS_MAX + 1;

	if ((node->set_aside_mask & e->mask) != e->mask)
		return false;
	for (uint32_t gpu = 0; e->reason[0] && gpu < node->gpu_count; gpu++) {
		const struct gpu_record *record =
			e->mask >> gpu & 1 ? table_get(&a->facts->gpus, row + gpu) : NULL;

		if (record &&
		    strncmp(facts_text(a->facts, record->reason), e->reason, REASON_MAX_BYTES) != 0)
			return false;
	}
	return true;
}

static bool begins_with(const char *text, const char *words)
{
	return strncmp(text, words, strlen(words)) == 0;
}

/* A watch that sets GPUs aside for this reason may do so in place of that one. */
static bool watch_replaces(const char *reason, const char *there)
{
	return begins_with(reason, GPU_SILENT) ? begins_with(there, GPU_SILENT)
					       : taken_by(there) != NULL;
}

/*
 * Watches of GPUs set aside and give back what they saw a moment before: by now a person may have set a GPU aside for a reason of his own. So what
 * is set aside for another reason than a watch's stays as it is, and a watch's "back" names the reason that it ends. A person's word counts as it is.
 */
static void watched_leave_out(const struct admission *a, const struct node *node,
			      struct event_gpu_state *e)
{
	const uint32_t row = ((uint32_t)e->node - 1) * NODE_GPUS_MAX + 1;

	if (!begins_with(e->reason, GPU_SILENT) && !taken_by(e->reason))
		return;
	for (uint32_t gpu = 0; gpu < node->gpu_count; gpu++) {
		const struct gpu_record *record;
		const char *there;

		if (!(e->mask >> gpu & 1) || !(node->set_aside_mask >> gpu & 1))
			continue;
		record = table_get(&a->facts->gpus, row + gpu);
		there = facts_text(a->facts, record->reason);
		if (e->set_aside ? !watch_replaces(e->reason, there)
				 : strncmp(there, e->reason, REASON_MAX_BYTES) != 0)
			e->mask &= ~(INT64_C(1) << gpu);
	}
}

int admit_gpu_state(const struct admission *a, struct event_gpu_state *e)
{
	const struct node *node = node_known(a, e->node);
	int rc = node ? admit_text(a, "the reason", e->reason) : -(int)ERR_NOT_FOUND;

	if (rc < 0)
		return rc;
	if (e->mask <= 0 || e->mask >> node->gpu_count)
		return err_set(a->err, ERR_INVALID,
			       "node \"%s\" has GPUs 0 to %d; another one is named",
			       facts_name(a->facts, node->name), (int)node->gpu_count - 1);
	watched_leave_out(a, node, e);
	if (e->set_aside ? aside_is_known(a, node, e) : (node->set_aside_mask & e->mask) == 0)
		return CORE_ALREADY;
	return 0;
}
