/* SPDX-License-Identifier: Apache-2.0 */
#include "core/scheduling/reserve/time_slots.h"

#include "core/placement/parts.h"
#include "core/scheduling/pass.h"
#include "core/scheduling/queues/window.h"

static struct space *space_of(struct pass *pass, enum slot_space where)
{
	return where == SLOT_NOW ? &pass->view->space : &pass->view->ahead;
}

/* --- when a reservation is in the way --------------------------------------------------------------------- */

bool shape_holds_endlessly(const struct shape *shape)
{
	return shape_is_part(shape) || shape->align != 0;
}

struct slot_asker slot_asker_make(struct pass *pass, const struct job *job)
{
	return (struct slot_asker){
		.length_ms = job_expected_ms(pass->facts, job),
		.declared = job->limit_ms > 0,
		.guesses = ahead_guesses(pass, job),
		/* When a claim starts is not known before its place is (claim_plan). */
		.before = !job_claims(pass, job),
		.endless = shape_holds_endlessly(shape_get(pass->facts, job->shape)),
	};
}

static int64_t slot_lent_ms(const struct slot_asker *asker, const struct time_slot *slot)
{
	return asker->endless || !asker->before || slot->end_ms == INT64_MAX
		       ? INT64_MIN
		       : slot->lent_ms[asker->declared];
}

static int64_t slot_end_ms(const struct slot_asker *asker, const struct time_slot *slot)
{
	return asker->endless || (slot->unsure && !asker->guesses) ? INT64_MAX : slot->end_ms;
}

bool slot_is_in_way(const struct slot_asker *asker, const struct time_slot *slot, int64_t start_ms)
{
	return slot_lent_ms(asker, slot) < start_ms + asker->length_ms &&
	       slot_end_ms(asker, slot) > start_ms;
}

int64_t slot_turns_ms(const struct slot_asker *asker, const struct time_slot *slot,
		      int64_t start_ms)
{
	int64_t lent_ms = slot_lent_ms(asker, slot), end_ms = slot_end_ms(asker, slot);

	if (end_ms <= start_ms)
		return INT64_MAX;
	return lent_ms < start_ms + asker->length_ms ? end_ms : lent_ms - asker->length_ms + 1;
}

void reservation_set_end(struct pass *pass, const struct job *job, struct reservation *r)
{
	r->end_ms = shape_holds_endlessly(r->shape)
			    ? INT64_MAX
			    : r->start_ms + job_stays_ms(pass->facts, job, r->start_ms);
	r->unsure = (!job->limit_ms && !job->estimate_ms) || ahead_guesses(pass, job);
}

bool reservation_follows(const struct pass *pass, const struct reservation *r)
{
	for (uint32_t i = 0; pass->reserved && i < r->kept_count; i++) {
		const struct kept_node *node = pass->reserved[r->kept[i].rank];

		for (const struct kept *k = node ? node->first : NULL; k; k = k->next)
			if (k->hold.mask & r->kept[i].hold.mask && k->slot->end_ms <= r->start_ms)
				return true;
	}
	return false;
}

/* --- in the spaces ------------------------------------------------------------------------------------------ */

void slots_add(struct pass *pass, struct reservation *r)
{
	int64_t lent_ms = r->collects ? INT64_MIN : r->lend_ms;

	if (!pass->reserved)
		pass->reserved = arena_new_array(pass->arena, struct kept_node *,
						 pass->view->space.node_count + 1);
	r->slot = arena_new(pass->arena, struct time_slot);
	*r->slot = (struct time_slot){
		.lent_ms = { r->claim ? INT64_MIN : lent_ms, lent_ms },
		.start_ms = r->start_ms,
		.end_ms = r->end_ms,
		.unsure = r->unsure,
		.late = r->late,
	};
	for (struct kept *k = r->kept; k < r->kept + r->kept_count; k++) {
		struct kept_node **node = &pass->reserved[k->rank];

		if (!*node)
			*node = arena_new(pass->arena, struct kept_node);
		k->alone = k->hold.part || k->hold.aligned;
		k->slot = r->slot;
		k->next = (*node)->first;
		(*node)->first = k;
	}
}

static bool hold_is_nothing(const struct hold *hold)
{
	return !hold->mask && !hold->cpu_milli && !hold->ram_mib;
}

static bool hold_same(const struct hold *a, const struct hold *b)
{
	return a->mask == b->mask && a->cpu_milli == b->cpu_milli && a->ram_mib == b->ram_mib;
}

/* What reservations that are on hold of the node when `at` starts. */
static void peak_raise(const struct kept_node *node, enum slot_space where,
		       const struct time_slot *at, struct hold *peak)
{
	int64_t cpu = 0, ram = 0;

	for (const struct kept *k = node->first; k; k = k->next) {
		if (k->alone || !k->slot->on[where] || k->slot->start_ms > at->start_ms ||
		    k->slot->end_ms <= at->start_ms)
			continue;
		cpu += k->hold.cpu_milli;
		ram += k->hold.ram_mib;
	}
	peak->cpu_milli = cpu > peak->cpu_milli ? cpu : peak->cpu_milli;
	peak->ram_mib = ram > peak->ram_mib ? ram : peak->ram_mib;
}

static struct hold node_wants(const struct kept_node *node, enum slot_space where)
{
	struct hold want = { 0 };
	bool sums = false;

	for (const struct kept *k = node->first; k; k = k->next) {
		if (k->alone || !k->slot->on[where])
			continue;
		want.mask |= k->hold.mask;
		sums = sums || k->hold.cpu_milli || k->hold.ram_mib;
	}
	for (const struct kept *k = node->first; sums && k; k = k->next)
		if (!k->alone && k->slot->on[where])
			peak_raise(node, where, k->slot, &want);
	return want;
}

static void node_note(struct pass *pass, uint32_t rank)
{
	struct kept_node *node = pass->reserved[rank];

	if (node->unsettled)
		return;
	node->unsettled = true;
	node->next_unsettled = pass->unsettled;
	pass->unsettled = node;
}

static void node_settle(struct pass *pass, struct kept_node *node, enum slot_space where)
{
	struct space *space = space_of(pass, where);
	struct hold want = node_wants(node, where);
	uint32_t rank = node->first->rank;

	node->unsettled = false;
	if (hold_same(&want, &node->wanted[where]))
		return;
	if (!hold_is_nothing(&node->promised[where]))
		space_unpromise(space, rank, &node->promised[where]);
	node->wanted[where] = want;
	node->promised[where] = hold_unpromised(space, rank, want);
	if (!hold_is_nothing(&node->promised[where]))
		space_promise(space, rank, &node->promised[where]);
}

void slot_turn(struct pass *pass, struct reservation *r, enum slot_space where, bool on)
{
	struct space *space = space_of(pass, where);

	r->slot->on[where] = on;
	for (struct kept *k = r->kept; k < r->kept + r->kept_count; k++) {
		struct hold ahead;

		if (!k->alone) {
			node_note(pass, k->rank);
			continue;
		}
		if (where == SLOT_AHEAD) { /* there it comes for good */
			ahead = hold_unpromised(space, k->rank, k->hold);
			space_promise(space, k->rank, &ahead);
		} else if (on) {
			k->promised = hold_unpromised(space, k->rank, k->hold);
			space_promise(space, k->rank, &k->promised);
		} else {
			space_unpromise(space, k->rank, &k->promised);
		}
	}
}

void slots_settle(struct pass *pass, enum slot_space where)
{
	for (struct kept_node *node = pass->unsettled; node; node = node->next_unsettled)
		node_settle(pass, node, where);
	pass->unsettled = NULL;
}

void slots_forget_ahead(struct pass *pass)
{
	for (uint32_t i = 0; i < pass->reservation_count; i++) {
		struct reservation *r = &pass->reservations[i];

		r->slot->on[SLOT_AHEAD] = false;
		for (uint32_t k = 0; k < r->kept_count; k++) {
			struct kept_node *node = pass->reserved[r->kept[k].rank];

			node->wanted[SLOT_AHEAD] = node->promised[SLOT_AHEAD] = (struct hold){ 0 };
		}
	}
}

/* --- whether a place still serves --------------------------------------------------------------------------- */

static const struct kept *kept_at(const struct pass *pass, uint32_t rank)
{
	return pass->reserved && pass->reserved[rank] ? pass->reserved[rank]->first : NULL;
}

uint32_t slots_promised(const struct pass *pass, uint32_t rank)
{
	uint32_t mask;

	if (!kept_at(pass, rank))
		return 0;
	mask = pass->reserved[rank]->promised[SLOT_NOW].mask;
	for (const struct kept *k = kept_at(pass, rank); k; k = k->next)
		if (k->alone && k->slot->on[SLOT_NOW])
			mask |= k->promised.mask;
	return mask;
}

bool slots_allow(const struct pass *pass, const struct slot_asker *asker, uint32_t rank,
		 uint32_t mask, int64_t start_ms, int64_t *ret_late_ms)
{
	for (const struct kept *k = kept_at(pass, rank); k; k = k->next) {
		if (!(k->hold.mask & mask) || !slot_is_in_way(asker, k->slot, start_ms))
			continue;
		if (!k->slot->late || slot_end_ms(asker, k->slot) == INT64_MAX)
			return false;
		if (k->slot->end_ms > *ret_late_ms)
			*ret_late_ms = k->slot->end_ms;
	}
	return true;
}

void slots_free(const struct pass *pass, const struct slot_asker *asker, uint32_t rank,
		int64_t start_ms, int64_t *cpu_milli, int64_t *ram_mib)
{
	int64_t most_cpu = 0, most_ram = 0;

	if (!kept_at(pass, rank))
		return;
	for (const struct kept *at = kept_at(pass, rank); at; at = at->next) {
		int64_t cpu = 0, ram = 0, at_ms = at->slot->start_ms;

		if (at->alone || !slot_is_in_way(asker, at->slot, start_ms))
			continue;
		for (const struct kept *k = kept_at(pass, rank); k; k = k->next) {
			if (k->alone || !slot_is_in_way(asker, k->slot, start_ms) ||
			    k->slot->start_ms > at_ms || slot_end_ms(asker, k->slot) <= at_ms)
				continue;
			cpu += k->hold.cpu_milli;
			ram += k->hold.ram_mib;
		}
		most_cpu = cpu > most_cpu ? cpu : most_cpu;
		most_ram = ram > most_ram ? ram : most_ram;
	}
	*cpu_milli += pass->reserved[rank]->promised[SLOT_NOW].cpu_milli - most_cpu;
	*ram_mib += pass->reserved[rank]->promised[SLOT_NOW].ram_mib - most_ram;
}
