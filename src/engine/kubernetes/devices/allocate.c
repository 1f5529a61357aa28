/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that have to be waited for are looked at last, with all of their pool.
 *
 * A search in depth: claim by claim, request by request, device by device. What a device needs is marked when it is chosen and taken back when
 * what comes behind it fails:
 *
 *	claim a: gpu x 2, same pcieRoot     g0 (root 1)  g1 (root 2)  g2 (root 1)
 *	g0 chosen -> g1 has another root -> g2 chosen -> all are met
 *
 * Devices of one request are tried in rising order only, so no set of them is tried twice.
 */
#include "engine/kubernetes/devices/allocate.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { SCRATCH_BYTES = 16 << 20 };

struct candidate {
	const struct dra_slice *slice;
	const struct dra_device *device;
	uint32_t pool; /* among the search's */
	bool here; /* the node has it */
	bool taken, first;
};

struct pool_state {
	const struct dra_pool *pool;
	nano128 *left; /* by counter */
	bool over; /* some counter is used beyond its value already */
};

/* A choice of a request, of one claim of the question. */
struct choice_state {
	const struct dra_choice *choice;
	const struct dra_class *class;
	uint8_t *match; /* by candidate: 0 = not asked yet, else 1 + no, yes */
	uint32_t *all; /* candidates, where it takes all */
	uint32_t need;
};
struct request_state {
	struct choice_state *choices;
};
struct constraint_state {
	const struct cel_attribute **values; /* of the devices chosen */
	uint32_t count;
};
struct claim_state {
	struct request_state *requests;
	struct constraint_state *constraints;
};

struct search {
	const struct dra_question *question;
	struct arena *arena, scratch;
	struct candidate *candidates;
	uint32_t candidate_count;
	struct pool_state *pools;
	uint32_t pool_count;
	struct claim_state *claims;
	struct dra_allocation *allocations;
	const char *why;
	uint32_t steps;
};

enum found { NOT, YES, WRONG, TOO_MANY };

/* Where the search stands. */
struct spot {
	uint32_t claim, request, choice, device;
};

/* --- what there is -------------------------------------------------------------------------------------------------- */

static void counters_begin(struct search *s, struct pool_state *state)
{
	const struct dra_pool *pool = state->pool;

	state->left = arena_new_array(s->arena, nano128, pool->counter_count + 1);
	for (uint32_t i = 0; i < pool->set_count; i++)
		for (uint32_t j = 0; j < pool->sets[i]->count; j++)
			state->left[pool->first[i] + j] = pool->sets[i]->counters[j].value;
}

static void counters_move(struct pool_state *state, const struct dra_device *device, int sign)
{
	for (uint32_t i = 0; i < device->use_count; i++)
		for (uint32_t j = 0; j < device->uses[i].count; j++) {
			const struct dra_counter *use = &device->uses[i].counters[j];
			uint32_t at = dra_counter_at(state->pool, device->uses[i].name, use->name);

			if (at != UINT32_MAX)
				state->left[at] += sign * use->value;
		}
}

static bool counters_meet(const struct pool_state *state, const struct dra_device *device)
{
	if (device->use_count && state->over)
		return false;
	for (uint32_t i = 0; i < device->use_count; i++)
		for (uint32_t j = 0; j < device->uses[i].count; j++) {
			const struct dra_counter *use = &device->uses[i].counters[j];
			uint32_t at = dra_counter_at(state->pool, device->uses[i].name, use->name);

			if (at == UINT32_MAX || state->left[at] < use->value)
				return false;
		}
	return true;
}

static void pool_begin(struct search *s, struct pool_state *state)
{
	const struct dra_pool *pool = state->pool;
	const struct dra_question *q = s->question;

	counters_begin(s, state);
	for (uint32_t i = 0; i < pool->slice_count; i++)
		for (uint32_t j = 0; j < pool->slices[i]->device_count; j++)
			if (pool->slices[i]->devices[j].use_count &&
			    q->state(q->context, pool->slices[i], &pool->slices[i]->devices[j]) ==
				    DRA_TAKEN)
				counters_move(state, &pool->slices[i]->devices[j], -1);
	for (uint32_t i = 0; i < pool->counter_count; i++)
		state->over |= state->left[i] < 0;
}

static bool pool_is_for(const struct search *s, const struct dra_pool *pool)
{
	for (uint32_t i = 0; i < pool->slice_count; i++)
		if (dra_slice_is_for(pool->slices[i], s->question->node, s->question->placed))
			return true;
	return false;
}

/* Names of what the node has must tell devices apart. */
static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool names_are_unlike(struct search *s, uint32_t from)
{
	uint32_t count = s->candidate_count - from;
	const char **names = arena_new_array(s->arena, const char *, count + 1);

	for (uint32_t i = 0; i < count; i++)
		names[i] = s->candidates[from + i].device->name;
	qsort((void *)names, count, sizeof(*names), compare_names);
	for (uint32_t i = 1; i < count; i++)
		if (strcmp(names[i - 1], names[i]) == 0)
			return false;
	return true;
}

static void candidate_add(struct search *s, uint32_t pool, const struct dra_slice *slice,
			  const struct dra_device *device)
{
	const struct dra_question *q = s->question;
	enum dra_state state = q->state(q->context, slice, device);

	s->candidates[s->candidate_count++] =
		(struct candidate){ .slice = slice,
				    .device = device,
				    .pool = pool,
				    .here = !slice->by_device ||
					    dra_where_has(&device->where, q->node, q->placed),
				    .taken = state == DRA_TAKEN || state == DRA_CLOSED,
				    .first = state == DRA_FIRST };
}

static bool pool_waits(const struct search *s, const struct dra_pool *pool)
{
	for (uint32_t i = 0; i < pool->slice_count; i++) {
		const struct dra_slice *slice = pool->slices[i];

		if (!dra_slice_is_for(slice, s->question->node, s->question->placed))
			continue;
		for (uint32_t k = 0; k < slice->device_count; k++)
			if (slice->devices[k].binding_json)
				return true;
	}
	return false;
}

/* As they are, but those whose devices have to be waited for behind the others. */
static const struct dra_pool **pools_sorted(const struct search *s,
					    const struct dra_pool *const *pools, uint32_t count)
{
	const struct dra_pool **sorted = (const struct dra_pool **)arena_new_array(
		s->arena, const struct dra_pool *, count + 1);
	uint32_t at = 0;

	for (int waits = 0; waits < 2; waits++)
		for (uint32_t i = 0; i < count; i++)
			if (pool_waits(s, pools[i]) == (waits == 1))
				sorted[at++] = pools[i];
	return sorted;
}

/* False: a pool is incomplete or wrong, which matters to requests for all devices alone. */
static bool candidates_gather(struct search *s, struct dra_inventory *inventory)
{
	const struct dra_pool *const *pools;
	uint32_t count, room = 0;
	bool whole = true;

	dra_pools_of(inventory, s->question->node, s->arena, &pools, &count);
	pools = pools_sorted(s, pools, count);
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = 0; j < pools[i]->slice_count; j++)
			room += pools[i]->slices[j]->device_count;
	s->candidates = arena_new_array(s->arena, struct candidate, room + 1);
	s->pools = arena_new_array(s->arena, struct pool_state, count + 1);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t from = s->candidate_count;

		if (!pool_is_for(s, pools[i]))
			continue;
		if (pools[i]->incomplete || pools[i]->invalid) {
			whole = false;
			continue;
		}
		for (uint32_t j = 0; j < pools[i]->slice_count; j++) {
			const struct dra_slice *slice = pools[i]->slices[j];

			if (!dra_slice_is_for(slice, s->question->node, s->question->placed))
				continue;
			for (uint32_t k = 0; k < slice->device_count; k++)
				candidate_add(s, s->pool_count, slice, &slice->devices[k]);
		}
		if (!names_are_unlike(s, from)) {
			s->candidate_count = from;
			whole = false;
			continue;
		}
		s->pools[s->pool_count].pool = pools[i];
		pool_begin(s, &s->pools[s->pool_count++]);
	}
	return whole;
}

/* Those that are wanted first, in front; else as before. */
static void candidates_sort(struct search *s)
{
	struct candidate *sorted =
		arena_new_array(s->arena, struct candidate, s->candidate_count + 1);
	uint32_t at = 0;

	for (int first = 1; first >= 0; first--)
		for (uint32_t i = 0; i < s->candidate_count; i++)
			if (s->candidates[i].first == (bool)first)
				sorted[at++] = s->candidates[i];
	s->candidates = sorted;
}

/* --- does a device match ------------------------------------------------------------------------------------------------ */

static enum found ask_all(struct search *s, const struct dra_selector *selectors, uint32_t count,
			  const struct dra_device *device)
{
	const char *why = "";

	for (uint32_t i = 0; i < count; i++) {
		enum cel_answer answer;

		if (!selectors[i].program) {
			s->why = selectors[i].problem;
			return WRONG;
		}
		answer = cel_ask(selectors[i].program, &device->cel, &s->scratch, &why);
		if (answer == CEL_FAILED || answer == CEL_REFUSED)
			s->why = arena_printf(s->arena, "an expression about device %.60s: %.120s",
					      device->name, why ? why : "no answer");
		arena_reset(&s->scratch);
		if (answer != CEL_YES)
			return answer == CEL_NO ? NOT : WRONG;
	}
	return YES;
}

static enum found matches(struct search *s, struct choice_state *state, uint32_t at)
{
	const struct candidate *c = &s->candidates[at];
	enum found found;

	if (state->match[at])
		return state->match[at] == 2 ? YES : NOT;
	found = ask_all(s, state->class->selectors, state->class->selector_count, c->device);
	if (found == YES)
		found = ask_all(s, state->choice->selectors, state->choice->selector_count,
				c->device);
	if (found == YES && (!c->here || c->device->odd))
		found = NOT;
	if (found != WRONG)
		state->match[at] = found == YES ? 2 : 1;
	return found;
}

static bool tolerated(const struct dra_choice *choice, const struct dra_taint *taint)
{
	for (uint32_t i = 0; i < choice->toleration_count; i++) {
		const struct dra_toleration *t = &choice->tolerations[i];

		if ((*t->effect && strcmp(t->effect, taint->effect) != 0) ||
		    (*t->key && strcmp(t->key, taint->key) != 0))
			continue;
		if (strcmp(t->op, "Exists") == 0 || ((!*t->op || strcmp(t->op, "Equal") == 0) &&
						     strcmp(t->value, taint->value) == 0))
			return true;
	}
	return false;
}

static bool taints_allow(const struct dra_choice *choice, const struct dra_device *device)
{
	for (uint32_t i = 0; i < device->taint_count; i++) {
		const struct dra_taint *taint = &device->taints[i];

		if (strcmp(taint->effect, "NoSchedule") != 0 &&
		    strcmp(taint->effect, "NoExecute") != 0)
			continue;
		if (!tolerated(choice, taint))
			return false;
	}
	return true;
}

/* --- constraints ---------------------------------------------------------------------------------------------------------- */

static bool concerns(const struct dra_constraint *constraint, const char *request,
		     const char *choice)
{
	for (uint32_t i = 0; i < constraint->request_count; i++)
		if (strcmp(constraint->requests[i], request) == 0 ||
		    strcmp(constraint->requests[i], choice) == 0)
			return true;
	return !constraint->request_count;
}

static bool same_value(const struct cel_attribute *a, const struct cel_attribute *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case CEL_BOOL: return a->truth == b->truth;
	case CEL_INT: return a->number == b->number;
	case CEL_STRING:
	case CEL_VERSION: return strcmp(a->text, b->text) == 0;
	}
	return false;
}

static bool constraint_add(const struct dra_constraint *constraint, struct constraint_state *state,
			   const struct dra_device *device)
{
	const struct cel_attribute *value =
		dra_attribute(device, constraint->domain, constraint->id);

	if (!value || state->count == DRA_RESULTS_MAX)
		return false;
	for (uint32_t i = 0; i < state->count; i++)
		if (same_value(state->values[i], value) == constraint->distinct)
			return false;
	state->values[state->count++] = value;
	return true;
}

/* Takes back what the first `count` constraints have of a device of this choice. */
static void constraints_undo(struct search *s, const struct spot *at, const char *choice,
			     uint32_t count)
{
	const struct dra_claim *claim = s->question->claims[at->claim];

	for (uint32_t i = 0; i < count; i++)
		if (concerns(&claim->constraints[i], claim->requests[at->request].name, choice))
			s->claims[at->claim].constraints[i].count--;
}

static bool constraints_add(struct search *s, const struct spot *at, const char *choice,
			    const struct dra_device *device)
{
	const struct dra_claim *claim = s->question->claims[at->claim];

	for (uint32_t i = 0; i < claim->constraint_count; i++) {
		if (!concerns(&claim->constraints[i], claim->requests[at->request].name, choice))
			continue;
		if (!constraint_add(&claim->constraints[i], &s->claims[at->claim].constraints[i],
				    device)) {
			constraints_undo(s, at, choice, i);
			return false;
		}
	}
	return true;
}

/* --- the search ------------------------------------------------------------------------------------------------------------- */

static enum found place(struct search *s, struct spot at, bool chosen, uint32_t from);

/* False: it can't be had; nothing has changed then. */
static bool device_take(struct search *s, const struct spot *at, uint32_t index)
{
	struct candidate *c = &s->candidates[index];
	const struct dra_choice *choice =
		s->claims[at->claim].requests[at->request].choices[at->choice].choice;
	struct dra_allocation *allocation = &s->allocations[at->claim];

	if (c->taken || !counters_meet(&s->pools[c->pool], c->device) ||
	    !taints_allow(choice, c->device) || !constraints_add(s, at, choice->name, c->device))
		return false;
	counters_move(&s->pools[c->pool], c->device, -1);
	c->taken = true;
	allocation->made[allocation->count++] = (struct dra_choice_made){
		.request = at->request, .choice = at->choice, .slice = c->slice, .device = c->device
	};
	return true;
}

static void device_give(struct search *s, const struct spot *at, uint32_t index)
{
	struct candidate *c = &s->candidates[index];
	const struct dra_claim *claim = s->question->claims[at->claim];

	s->allocations[at->claim].count--;
	c->taken = false;
	counters_move(&s->pools[c->pool], c->device, 1);
	constraints_undo(
		s, at, s->claims[at->claim].requests[at->request].choices[at->choice].choice->name,
		claim->constraint_count);
}

static enum found place_all(struct search *s, struct spot at, const struct choice_state *state)
{
	uint32_t index = state->all[at.device];
	struct spot next = at;
	enum found found;

	if (!device_take(s, &at, index)) {
		/* Free, and a constraint keeps it away: that is no matter of what else is chosen. kube-scheduler gives up as well. */
		if (s->candidates[index].taken ||
		    !counters_meet(&s->pools[s->candidates[index].pool],
				   s->candidates[index].device) ||
		    !taints_allow(state->choice, s->candidates[index].device))
			return NOT;
		s->why = "it asks for all devices, and a constraint does not hold for all of them";
		return WRONG;
	}
	next.device++;
	found = place(s, next, true, 0);
	if (found != YES)
		device_give(s, &at, index);
	return found;
}

static enum found place_some(struct search *s, struct spot at, struct choice_state *state,
			     uint32_t from)
{
	struct spot next = at;

	next.device++;
	for (uint32_t i = from; i < s->candidate_count; i++) {
		enum found found;

		if (s->steps++ >= DRA_STEPS_MAX) {
			s->why =
				"to find out which devices it can have takes more steps than Fairlead makes";
			return WRONG;
		}
		if (s->candidates[i].taken)
			continue;
		found = matches(s, state, i);
		if (found == WRONG)
			return WRONG;
		if (found == NOT || !device_take(s, &at, i))
			continue;
		found = place(s, next, true, i + 1);
		if (found == YES)
			return YES;
		device_give(s, &at, i);
		if (found != NOT)
			return found;
	}
	return NOT;
}

static enum found place_choices(struct search *s, struct spot at, const struct dra_request *request)
{
	bool all_too_many = true;

	for (uint32_t i = 0; i < request->choice_count; i++) {
		enum found found;

		at.choice = i;
		found = place(s, at, true, 0);
		if (found == TOO_MANY)
			continue;
		if (found != NOT)
			return found;
		all_too_many = false;
	}
	return all_too_many ? TOO_MANY : NOT;
}

/* chosen: which choice of the request it is stands fast. from: the first candidate that is looked at. */
static enum found place(struct search *s, struct spot at, bool chosen, uint32_t from)
{
	const struct dra_claim *claim;
	struct choice_state *state;
	enum found found;

	if (at.claim == s->question->claim_count)
		return YES;
	claim = s->question->claims[at.claim];
	if (at.request == claim->request_count) {
		found = place(s, (struct spot){ .claim = at.claim + 1 }, false, 0);
		return found == TOO_MANY ? NOT : found;
	}
	if (!chosen)
		return place_choices(s, at, &claim->requests[at.request]);
	state = &s->claims[at.claim].requests[at.request].choices[at.choice];
	if (state->choice->all && !state->need)
		return NOT;
	if (at.device == state->need)
		return place(s, (struct spot){ .claim = at.claim, .request = at.request + 1 },
			     false, 0);
	if (s->allocations[at.claim].count + state->need - at.device > DRA_RESULTS_MAX)
		return TOO_MANY;
	return state->choice->all ? place_all(s, at, state) : place_some(s, at, state, from);
}

/* --- the question --------------------------------------------------------------------------------------------------------------- */

static enum found choice_begin(struct search *s, const struct dra_inventory *inventory,
			       struct choice_state *state, bool whole)
{
	const struct dra_choice *choice = state->choice;

	if (choice->problem) {
		s->why = choice->problem;
		return WRONG;
	}
	state->class = dra_class_find(inventory, choice->class);
	if (!state->class || state->class->problem) {
		s->why = state->class ? state->class->problem
				      : arena_printf(s->arena, "there is no DeviceClass %.100s",
						     choice->class);
		return WRONG;
	}
	state->match = arena_alloc(s->arena, s->candidate_count + 1);
	state->need = (uint32_t)choice->count;
	if (!choice->all)
		return YES;
	if (!whole) {
		s->why = "it asks for all devices, and a pool of them is being changed";
		return WRONG;
	}
	state->all = arena_new_array(s->arena, uint32_t, s->candidate_count + 1);
	state->need = 0;
	for (uint32_t i = 0; i < s->candidate_count; i++) {
		enum found found = matches(s, state, i);

		if (found == WRONG)
			return WRONG;
		if (found == YES)
			state->all[state->need++] = i;
	}
	return YES;
}

static enum found claim_begin(struct search *s, const struct dra_inventory *inventory,
			      const struct dra_claim *claim, struct claim_state *state, bool whole)
{
	uint32_t constraints = claim->constraint_count;

	if (claim->problem) {
		s->why = claim->problem;
		return WRONG;
	}
	state->requests = arena_new_array(s->arena, struct request_state, claim->request_count + 1);
	state->constraints = arena_new_array(s->arena, struct constraint_state, constraints + 1);
	for (uint32_t i = 0; i < constraints; i++)
		state->constraints[i].values =
			arena_new_array(s->arena, const struct cel_attribute *, DRA_RESULTS_MAX);
	for (uint32_t i = 0; i < claim->request_count; i++) {
		const struct dra_request *request = &claim->requests[i];

		state->requests[i].choices =
			arena_new_array(s->arena, struct choice_state, request->choice_count);
		for (uint32_t j = 0; j < request->choice_count; j++) {
			state->requests[i].choices[j].choice = &request->choices[j];
			if (choice_begin(s, inventory, &state->requests[i].choices[j], whole) ==
			    WRONG)
				return WRONG;
		}
	}
	return YES;
}

enum dra_verdict dra_allocate(struct dra_inventory *inventory, const struct dra_question *question,
			      struct arena *arena, struct dra_answer *ret)
{
	struct search s = { .question = question, .arena = arena, .why = "" };
	enum found found = YES;
	bool whole;

	CHECK(question->claim_count <= DRA_CLAIMS_MAX);
	arena_init(&s.scratch, SCRATCH_BYTES);
	whole = candidates_gather(&s, inventory);
	candidates_sort(&s);
	s.claims = arena_new_array(arena, struct claim_state, question->claim_count + 1);
	s.allocations = arena_new_array(arena, struct dra_allocation, question->claim_count + 1);
	for (uint32_t i = 0; found == YES && i < question->claim_count; i++)
		found = claim_begin(&s, inventory, question->claims[i], &s.claims[i], whole);
	if (found == YES)
		found = place(&s, (struct spot){ 0 }, false, 0);
	arena_deinit(&s.scratch);
	*ret = (struct dra_answer){ .allocations = s.allocations, .why = s.why, .steps = s.steps };
	return found == YES ? DRA_FITS : found == WRONG ? DRA_BAD : DRA_NO_ROOM;
}

bool *dra_pool_free(const struct dra_pool *pool,
		    enum dra_state (*state)(void *context, const struct dra_slice *slice,
					    const struct dra_device *device),
		    void *context, struct arena *arena)
{
	struct dra_question question = { .state = state, .context = context };
	struct search s = { .question = &question, .arena = arena };
	struct pool_state counters = { .pool = pool };
	uint32_t count = 0, at = 0;
	bool *ret;

	for (uint32_t i = 0; i < pool->slice_count; i++)
		count += pool->slices[i]->device_count;
	ret = arena_alloc(arena, count + 1);
	if (pool->incomplete || pool->invalid)
		return ret;
	pool_begin(&s, &counters);
	for (uint32_t i = 0; i < pool->slice_count; i++)
		for (uint32_t j = 0; j < pool->slices[i]->device_count; j++, at++) {
			const struct dra_device *device = &pool->slices[i]->devices[j];

			ret[at] = state(context, pool->slices[i], device) == DRA_FREE &&
				  counters_meet(&counters, device);
		}
	return ret;
}
