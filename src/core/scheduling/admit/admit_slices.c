/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of slices: which one a job gets, what may not run on one, into what a GPU may be cut and when. */
#include "core/scheduling/admit/admit.h"

#include <string.h>

#include "base/arena.h"
#include "core/model/apply.h"
#include "core/partitioning/geometry.h"

/* --- what a job asks for ---------------------------------------------------------------------------------- */

static const struct geometry *node_geometry(const struct facts *f, const struct node *node)
{
	return geometry_of(facts_name(f, node->model), node->gpu_memory_mib);
}

static bool model_is_accepted(const struct event_job_submitted *e, const char *model)
{
	const char *list = e->models;
	char part[NAME_MAX_BYTES + 1];

	while (list_next(&list, part))
		if (strcmp(part, model) == 0)
			return true;
	return !*e->models;
}

/* The profile that is enough for what the job needs, on the models that it accepts. */
static int need_settle(const struct admission *a, struct event_job_submitted *e)
{
	const struct facts *f = a->facts;
	uint32_t found = 0;
	const char *first = "";
	char text[SLICE_TEXT_MAX], other[SLICE_TEXT_MAX];

	for (uint32_t id = 1; id <= f->nodes.count; id++) {
		const struct node *node = node_get(f, (struct node_id){ id });
		const char *model = facts_name(f, node->model);
		const struct slice_profile *profile;

		if (node->state == NODE_GONE || !model_is_accepted(e, model))
			continue;
		profile = geometry_need(node_geometry(f, node), (uint32_t)e->gpu_part,
					(uint32_t)e->gpu_memory_mib);
		if (profile && found && profile_wish(profile) != found)
			return err_set(
				a->err, ERR_INVALID,
				"gpus: what the job needs is a slice %s on %s and %s on %s: name the slice, or one model",
				slice_wish_text(found, text), first,
				slice_wish_text(profile_wish(profile), other), model);
		if (profile && !found) {
			found = profile_wish(profile);
			first = model;
		}
	}
	if (!found)
		return err_set(
			a->err, ERR_INVALID,
			"gpus: no GPU model that the job accepts has a slice with %lld MiB and that much compute; take a whole GPU",
			(long long)e->gpu_memory_mib);
	e->slice = arena_printf(a->arena, "%s", slice_wish_text(found, text));
	return 0;
}

/* The most memory that a slice of this name has on any model. */
static uint32_t slice_memory_most(uint32_t wish)
{
	uint32_t most = 0;

	for (uint32_t n = 1; n <= geometry_count(); n++) {
		const struct slice_profile *p = geometry_wished(geometry_get(n), wish);

		if (p && p->memory_mib > most)
			most = p->memory_mib;
	}
	return most;
}

static int kind_check(const struct admission *a, const struct event_job_submitted *e)
{
	if (e->kind == KIND_TRAINING)
		return err_set(
			a->err, ERR_INVALID,
			"gpus: training does not run on a slice (%s): it takes whole GPUs, or a part of one such as 0.5. "
			"A small run that needs no more is kind: batch",
			e->slice);
	if (e->tasks_max > 1 && e->kind != KIND_INFERENCE)
		return err_set(
			a->err, ERR_INVALID,
			"gpus: a slice (%s) has no link to another GPU, so %lld tasks that work together can't use "
			"slices; submit an array of single tasks, or take whole GPUs",
			e->slice, (long long)e->tasks_max);
	if (e->gpus != 1 || e->gpu_part_mib)
		return err_set(a->err, ERR_INVALID,
			       "gpus: a task takes one slice (%s), not %lld GPUs or their memory",
			       e->slice, (long long)e->gpus);
	if (*e->roles)
		return err_set(
			a->err, ERR_INVALID,
			"roles: each role says how many whole GPUs a task takes; a slice is for jobs without roles");
	return 0;
}

bool submission_exceeds_part(const struct event_job_submitted *e)
{
	uint32_t wish;

	return (e->gpu_part_mib && e->gpu_memory_mib > e->gpu_part_mib) ||
	       (*e->slice && slice_wish_parse(e->slice, &wish) && slice_share(wish) &&
		e->gpu_memory_mib > slice_memory_most(wish));
}

int admit_slice(const struct admission *a, struct event_job_submitted *e)
{
	int64_t wanted = e->gpu_part;
	uint32_t wish, share;
	int rc;

	if (!*e->slice)
		return 0;
	rc = kind_check(a, e);
	if (rc == 0 && strcmp(e->slice, SLICE_FIT) == 0) {
		rc = need_settle(a, e);
		wanted = 0;
	}
	if (rc < 0)
		return rc;
	share = slice_wish_parse(e->slice, &wish) ? slice_share(wish) : 0;
	if (!share)
		return err_set(
			a->err, ERR_INVALID,
			"gpus: no model of GPU has slices \"%.30s\"; names are such as 1g.10gb or 3g.40gb, and "
			"`fairlead gpus -o wide` shows those that exist",
			e->slice);
	if (wanted && wanted != share)
		return err_set(
			a->err, ERR_INVALID,
			"gpus: a slice (%s) is a share of its own; leave the part of a GPU out",
			e->slice);
	if (submission_exceeds_part(e))
		return err_set(
			a->err, ERR_INVALID,
			"vram: each task needs %lld MiB, but a slice %s has %u MiB; take a larger one",
			(long long)e->gpu_memory_mib, e->slice, slice_memory_most(wish));
	e->gpu_part = share;
	return 0;
}

/* --- into what a GPU is cut ------------------------------------------------------------------------------------- */

/* GPUs of the node that some attempt holds, whole or a part, or that are promised. */
static uint32_t gpus_held(const struct facts *f, uint32_t node)
{
	uint32_t mask = 0;

	for (uint32_t id = 1; id <= f->jobs.count; id++) {
		const struct job *job = job_get(f, (struct job_id){ id });
		const struct attempt *attempt =
			job->attempt.v ? attempt_get(f, job->attempt) : NULL;

		for (uint32_t i = 0; attempt && i < attempt->tasks; i++) {
			const struct task *task = task_get(f, attempt, i);

			if (task->node.v == node && task_holds(task))
				mask |= task->gpu_mask;
		}
		for (uint32_t row = job->promise; row;) {
			const struct promise *promise = table_get(&f->promises, row);

			mask |= promise->node == node ? promise->gpu_mask : 0;
			row = promise->next;
		}
	}
	return mask;
}

static int gpu_layout_check(const struct admission *a, const struct node *node, int64_t gpu,
			    int64_t layout, uint32_t held)
{
	const char *name = facts_name(a->facts, node->name);
	const struct geometry *geometry = node_geometry(a->facts, node);

	if (gpu < 0 || gpu >= node->gpu_count)
		return err_set(a->err, ERR_INVALID, "node \"%s\" has no GPU %lld: it has %u", name,
			       (long long)gpu, node->gpu_count);
	if (layout && !geometry)
		return err_set(a->err, ERR_INVALID,
			       "node \"%s\": GPUs of model %s can't be cut into slices", name,
			       facts_name(a->facts, node->model));
	if (layout < 0 || layout > UINT32_MAX || !layout_is_sound((uint32_t)layout) ||
	    (layout && !layout_is_legal(geometry, (uint32_t)layout)))
		return err_set(a->err, ERR_INVALID,
			       "node \"%s\", GPU %lld: these slices can't exist together", name,
			       (long long)gpu);
	if (node->layout[gpu] != (uint32_t)layout && held >> gpu & 1)
		return err_set(
			a->err, ERR_CONFLICT,
			"node \"%s\", GPU %lld is in use or promised to a job; only idle GPUs are cut: cordon the node "
			"and try again when its jobs have ended",
			name, (long long)gpu);
	return 0;
}

int admit_layout_set(const struct admission *a, const struct event_layout_set *e)
{
	const struct node *node;
	uint32_t held;
	bool changes = false;
	int rc = admit_text(a, "the reason", e->reason);

	if (e->node < 1 || e->node > (int64_t)a->facts->nodes.count)
		return err_set(a->err, ERR_NOT_FOUND, "there is no such node");
	node = node_get(a->facts, (struct node_id){ (uint32_t)e->node });
	if (rc == 0 && (!e->gpus_count || e->gpus_count != e->layouts_count))
		rc = err_set(a->err, ERR_INVALID, "each GPU needs a layout");
	if (rc == 0 && node->partitioning == PARTITIONING_OFF)
		rc = err_set(
			a->err, ERR_CONFLICT,
			"node \"%s\" says partitioning: off, so its GPUs stay whole; `fairlead nodes set %s --partitioning fixed` "
			"allows it",
			facts_name(a->facts, node->name), facts_name(a->facts, node->name));
	if (rc == 0 && !node->simulated)
		rc = err_set(a->err, ERR_UNSUPPORTED,
			     "node \"%s\" has real GPUs: this release cuts simulated ones only",
			     facts_name(a->facts, node->name));
	held = rc == 0 ? gpus_held(a->facts, (uint32_t)e->node) : 0;
	for (uint32_t i = 0; rc == 0 && i < e->gpus_count; i++) {
		rc = gpu_layout_check(a, node, e->gpus[i], e->layouts[i], held);
		changes =
			changes || (rc == 0 && node->layout[e->gpus[i]] != (uint32_t)e->layouts[i]);
	}
	return rc < 0 ? rc : changes ? 0 : CORE_ALREADY;
}
