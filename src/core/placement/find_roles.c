/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for unlike tasks (core/model/roles.h). All roles lie in one domain, the narrowest that holds them: one node, else
 * a domain of the narrowest level, else of the next one. Inside it the hardest role is placed first, each as a gang of its own,
 * and what it takes is gone for the next:
 *
 *	server 1 x 0 GPUs 16 processors, worker 4 x 2 GPUs 4 processors; rack r0: nodes of 4 GPUs and 24 processors each
 *	worker first, it has the most GPUs: two on n0, two on n1		16 processors are left on each
 *	server: n0, the lower one
 *
 * Domains of one level are compared by (speed, hosts, free GPUs, order): the speed is that of the role with the most GPUs, where the fabric is
 * described; it is the role for which `max_slowdown` is meant. To place unlike things in the best way is a hard problem, so
 * this one may find no place where there is one: where the first order of the roles (GPUs) finds none, the orders by processors
 * and by memory are tried too, and then some more, up to ORDERS. What it finds always fits (`tests/optimal/roles.py` counts what is missed).
 *
 * Roles that run on the nodes of masks of their own share a node only where `together` of the wish has it: once one of them lies on another
 * node, that node is barred for the next.
 *
 * What is tried is taken in the space and rolled back, so the space comes back as it was.
 */
#include <string.h>

#include "base/check.h"
#include "core/placement/speed.h"

enum { HARD_ORDERS = 3, ORDERS = 8, SCRATCH_BYTES = 1 << 30 };

struct roles_search {
	struct space *space;
	const struct place_request *request;
	struct shape wish[ROLES_MAX]; /* of one role alone, anywhere in the domain */
	uint32_t tasks[ROLES_MAX];
	uint32_t order[ORDERS][ROLES_MAX]; /* hardest first */
	uint32_t used; /* roles that have tasks */
	uint32_t talker; /* the role by whose speed places are compared; ROLES_MAX = none */
	struct name_id model; /* of all GPUs; 0 = any of the classes */
	uint64_t classes; /* with such GPUs for it */
	int64_t gpus, cpu_milli, ram_mib; /* of all tasks */
	struct search all; /* for GPUs: of the wish as a whole */
	struct arena scratch; /* of one try */
};

/* One try: where each role lies; `placed` tasks found a place before the role `stuck`. */
struct roles_try {
	struct placement place[ROLES_MAX];
	uint32_t placed, stuck;
	struct verdict why;
};

struct roles_best {
	bool found, node;
	uint32_t step; /* of the rate between the tasks that talk most; 0 = not known */
	uint32_t hosts, at; /* domain, or rank of the node */
	int64_t free;
	uint32_t order, level;
	struct name_id model;
	uint64_t classes;
};

/* --- what is asked ------------------------------------------------------------------------------------- */

static uint32_t request_role(const struct place_request *request, uint32_t task)
{
	return shape_role(request->shape, request->which ? (uint32_t)request->which[task] : task);
}

static uint64_t hardness(const struct shape *wish, uint32_t order)
{
	return order == 0 ? wish->gpus : order == 1 ? wish->cpu_milli : wish->memory_mib;
}

/* By what is hard in this order, then in the first one; among equals the earlier role first. */
static void order_make(struct roles_search *s, uint32_t order)
{
	uint32_t count = 0;

	for (uint32_t role = 0; role < s->request->shape->role_count; role++) {
		uint32_t at = count;

		if (!s->tasks[role])
			continue;
		for (; at > 0; at--) {
			const struct shape *before = &s->wish[s->order[order][at - 1]],
					   *own = &s->wish[role];
			uint64_t a = hardness(before, order), b = hardness(own, order);

			if (a > b || (a == b && hardness(before, 0) >= hardness(own, 0)))
				break;
			s->order[order][at] = s->order[order][at - 1];
		}
		s->order[order][at] = role;
		count++;
	}
	s->used = count;
}

/* Of the first order: back to front, begun at the second and the third role, the first two and the last two in turn. Of three roles that
 * is every order there is. */
static void orders_turn(struct roles_search *s)
{
	const uint32_t *first = s->order[0];
	uint32_t n = s->used;

	for (uint32_t i = 0; i < n; i++) {
		s->order[3][i] = first[n - 1 - i];
		s->order[4][i] = first[(i + 1) % n];
		s->order[5][i] = first[(i + 2) % n];
		s->order[6][i] = first[n > 1 && i < 2 ? 1 - i : i];
		s->order[7][i] = first[n > 1 && i + 2 >= n ? 2 * n - 3 - i : i];
	}
}

/* The order was tried before, under another number. */
static bool order_is_old(const struct roles_search *s, uint32_t order)
{
	for (uint32_t i = 0; i < order; i++)
		if (memcmp(s->order[order], s->order[i], s->used * sizeof(uint32_t)) == 0)
			return true;
	return false;
}

/* Ranks that come to others later are not compared: how fast they talk to those is not said by their own place. */
static void talker_find(struct roles_search *s)
{
	const struct shape *shape = s->request->shape;

	s->talker = ROLES_MAX;
	if (space_fabric(s->space) && !s->request->which && !shape->spread)
		s->talker = speed_widest_role(shape, s->request->tasks);
	if (s->talker < ROLES_MAX && (uint64_t)s->tasks[s->talker] * s->wish[s->talker].gpus < 2)
		s->talker = ROLES_MAX;
	for (uint32_t role = 0; role < shape->role_count; role++)
		if (role != s->talker)
			s->wish[role].max_slowdown = 0;
}

static void roles_begin(struct roles_search *s, struct space *space,
			const struct place_request *request)
{
	const struct shape *shape = request->shape;

	s->space = space;
	s->request = request;
	s->used = 0;
	s->gpus = s->cpu_milli = s->ram_mib = 0;
	memset(s->tasks, 0, sizeof(s->tasks));
	for (uint32_t i = 0; i < request->tasks; i++)
		s->tasks[request_role(request, i)]++;
	for (uint32_t role = 0; role < shape->role_count; role++) {
		shape_of_role(shape, role, &s->wish[role]);
		s->wish[role].require = 0;
		s->gpus += (int64_t)s->wish[role].gpus * s->tasks[role];
		s->cpu_milli += (int64_t)s->wish[role].cpu_milli * s->tasks[role];
		s->ram_mib += (int64_t)s->wish[role].memory_mib * s->tasks[role];
	}
	talker_find(s);
	s->model = request->model;
	s->classes = search_begin(&s->all, space, request) ? s->all.classes : 0;
	for (uint32_t i = 0; i < HARD_ORDERS; i++)
		order_make(s, i);
	orders_turn(s);
}

/* Of one role, in this domain or on this node. Nodes are closed for their GPUs: one that takes none may go there. */
static struct place_request role_request(const struct roles_search *s, uint32_t role,
					 uint32_t domain, int32_t rank)
{
	struct place_request request = *s->request;

	request.shape = &s->wish[role];
	request.tasks = s->tasks[role];
	request.which = NULL;
	request.domain = domain;
	request.rank = rank;
	request.model = s->model;
	request.closed |= ~s->classes;
	if (shape_is_masked(s->request->shape))
		request.suits = 0; /* they are those of the wish as a whole */
	if (!s->wish[role].gpus) {
		request.closed = request.suits = 0;
		request.model.v = 0;
	}
	return request;
}

/* --- one try ------------------------------------------------------------------------------------------- */

/* Further roles with masks are kept from the nodes that this one was given, but for those that are enough for several. `barred`: as in
 * struct place_request, of this try; NULL = none yet. */
static uint64_t *roles_bar(struct roles_search *s, uint32_t role, const struct placement *place,
			   uint64_t *barred)
{
	const struct shape *shape = s->request->shape;
	const uint32_t row = bits_row(s->space->node_count);

	if (!shape->together.v || !shape->role_mask[role].v)
		return barred;
	for (uint32_t i = 0; i < place->count; i++) {
		const uint32_t rank = place->ranks[i];

		if (traits_in(&s->space->traits.at[space_at(s->space, rank)->traits],
			      shape->together))
			continue;
		if (!barred) {
			barred = arena_new_array(&s->scratch, uint64_t, row);
			if (s->request->barred)
				memcpy(barred, s->request->barred, row * sizeof(*barred));
		}
		barred[rank / 64] |= UINT64_C(1) << rank % 64;
	}
	return barred;
}

/* How many of its tasks have a place, and whether it is the nodes given to other roles that keep the rest away. */
static void role_is_stuck(struct roles_search *s, const struct place_request *request,
			  struct roles_try *ret)
{
	struct place_request free = *request;
	const uint32_t width = place_width(s->space, request);

	ret->placed += width;
	free.barred = s->request->barred;
	if (request->barred != free.barred && place_width(s->space, &free) == request->tasks)
		verdict_set(&ret->why, REASON_FRAGMENTATION, PLACE_ROLES_SHARE, 0, width,
			    request->tasks);
}

static bool roles_place(struct roles_search *s, uint32_t order, uint32_t domain, int32_t rank,
			struct roles_try *ret, bool counts)
{
	uint32_t mark = space_mark(s->space), i;
	uint64_t *barred = NULL;

	arena_reset(&s->scratch);
	ret->placed = 0;
	ret->stuck = ROLES_MAX;
	for (i = 0; i < s->used; i++) {
		uint32_t role = s->order[order][i];
		struct place_request request = role_request(s, role, domain, rank);

		if (barred && s->request->shape->role_mask[role].v)
			request.barred = barred;
		if (place_anywhere(s->space, &request, &s->scratch, &ret->place[role],
				   counts ? &ret->why : NULL)) {
			ret->stuck = role;
			if (counts)
				role_is_stuck(s, &request, ret);
			ret->why.role = (uint8_t)(role + 1);
			break;
		}
		placement_take(s->space, &ret->place[role], &s->wish[role]);
		barred = roles_bar(s, role, &ret->place[role], barred);
		ret->placed += s->tasks[role];
	}
	space_rollback(s->space, mark);
	return i == s->used;
}

/* In the first order that finds a place; ORDERS = none does. */
static uint32_t roles_try_orders(struct roles_search *s, uint32_t domain, int32_t rank,
				 struct roles_try *ret)
{
	for (uint32_t order = 0; order < ORDERS; order++) {
		if (order_is_old(s, order))
			continue;
		if (roles_place(s, order, domain, rank, ret, false))
			return order;
	}
	return ORDERS;
}

static uint32_t talker_step(struct roles_search *s, const struct roles_try *try)
{
	struct fabric_estimate here;

	if (s->talker == ROLES_MAX)
		return 0;
	speed_estimate(s->space, &try->place[s->talker], &s->scratch, &here);
	return speed_step(here.mbps);
}

static uint32_t hosts_count(struct roles_search *s, const struct roles_try *try)
{
	uint64_t *seen;
	uint32_t hosts = 0;

	seen = arena_new_array(&s->scratch, uint64_t, bits_row(s->space->node_count));
	for (uint32_t i = 0; i < s->used; i++) {
		const struct placement *place = &try->place[s->order[0][i]];

		for (uint32_t t = 0; t < place->count; t++) {
			uint32_t rank = place->ranks[t];

			hosts += !(seen[rank / 64] >> rank % 64 & 1);
			seen[rank / 64] |= UINT64_C(1) << rank % 64;
		}
	}
	return hosts;
}

/* --- which domain ---------------------------------------------------------------------------------------- */

static bool best_is(const struct roles_search *s, const struct roles_best *best, uint32_t step,
		    uint32_t hosts, int64_t free)
{
	if (!best->found)
		return true;
	if (step != best->step)
		return step > best->step;
	if (hosts != best->hosts)
		return hosts < best->hosts;
	return s->request->scatter ? free > best->free : free < best->free;
}

/* The sums say already that not all of it fits. */
static bool node_is_short(const struct roles_search *s, uint32_t rank)
{
	const struct place_node *node = space_at(s->space, rank);

	return !node->ready || bits_count(place_node_free(node)) < s->gpus ||
	       (s->cpu_milli && node->cpu_free < s->cpu_milli) ||
	       (s->ram_mib && node->ram_free < s->ram_mib);
}

static bool one_node(struct roles_search *s, struct roles_best *best)
{
	const struct domain *in = &s->space->domains.at[s->request->domain];
	uint32_t first = in->first, end = in->end;
	struct roles_try try;

	if (s->request->rank != RANK_NONE) {
		first = (uint32_t)s->request->rank;
		end = first + 1;
	}
	for (uint32_t rank = first; rank < end; rank++) {
		int64_t free = bits_count(place_node_free(space_at(s->space, rank)));
		uint32_t order, step;

		if (node_is_short(s, rank) ||
		    (s->talker == ROLES_MAX && !best_is(s, best, 0, 1, free)))
			continue;
		order = roles_try_orders(s, s->request->domain, (int32_t)rank, &try);
		step = order < ORDERS ? talker_step(s, &try) : 0;
		if (order < ORDERS && best_is(s, best, step, 1, free))
			*best = (struct roles_best){ .found = true,
						     .node = true,
						     .step = step,
						     .hosts = 1,
						     .at = rank,
						     .free = free,
						     .order = order,
						     .level = LEVEL_NODE,
						     .model = s->model,
						     .classes = s->classes };
	}
	return best->found;
}

static bool one_domain(struct roles_search *s, uint32_t level, struct roles_best *best)
{
	const struct space *space = s->space;
	struct roles_try try;

	for (uint32_t domain = space->level_first[level]; domain < space->level_first[level + 1];
	     domain++) {
		int64_t free;
		uint32_t order, hosts, step;

		if (!domain_allowed(s->request, space, domain))
			continue;
		free = space_free_gpus(space, domain, s->classes);
		if (free < s->gpus)
			continue;
		order = roles_try_orders(s, domain, RANK_NONE, &try);
		hosts = order < ORDERS ? hosts_count(s, &try) : 0;
		step = order < ORDERS ? talker_step(s, &try) : 0;
		if (order < ORDERS && best_is(s, best, step, hosts, free))
			*best = (struct roles_best){ .found = true,
						     .step = step,
						     .hosts = hosts,
						     .at = domain,
						     .free = free,
						     .order = order,
						     .level = level,
						     .model = s->model,
						     .classes = s->classes };
	}
	return best->found;
}

/* From the narrowest level to the widest allowed; replicas lie as wide as they may. */
static bool levels(struct roles_search *s, struct roles_best *best)
{
	const struct shape *shape = s->request->shape;

	for (uint32_t level = s->space->level_count + 1; level-- > shape->require;) {
		if (s->space->domains.at[s->request->domain].level > level)
			break;
		if (shape->spread && level != shape->require && level != shape->prefer)
			continue;
		if (one_domain(s, level, best))
			return true;
	}
	return false;
}

/* --- the answer ---------------------------------------------------------------------------------------- */

/* The places of the roles, put in the order of the tasks asked for. */
static void placement_join(const struct roles_search *s, const struct roles_try *try,
			   struct arena *arena, struct placement *ret)
{
	uint32_t next[ROLES_MAX] = { 0 };

	ret->count = s->request->tasks;
	ret->which = s->request->which;
	ret->parts = ret->parts_mib = ret->slices = NULL;
	ret->ranks = arena_new_array(arena, uint32_t, ret->count);
	ret->masks = arena_new_array(arena, uint32_t, ret->count);
	for (uint32_t i = 0; i < ret->count; i++) {
		uint32_t role = request_role(s->request, i);

		ret->ranks[i] = try->place[role].ranks[next[role]];
		ret->masks[i] = try->place[role].masks[next[role]++];
	}
}

/* The most tasks that some domain of the level holds, and which: of a node its rank. */
static uint32_t tasks_together(struct roles_search *s, bool nodes, uint32_t *ret_at)
{
	uint32_t level = nodes ? 0 : s->request->shape->require, most = 0;
	const struct domain *in = &s->space->domains.at[s->request->domain];
	uint32_t first = nodes ? in->first : s->space->level_first[level],
		 end = nodes ? in->end : s->space->level_first[level + 1];
	struct roles_try try;

	*ret_at = 0;
	for (uint32_t at = first; at < end; at++) {
		if (!nodes && !domain_allowed(s->request, s->space, at))
			continue;
		(void)roles_place(s, 0, nodes ? s->request->domain : at,
				  nodes ? (int32_t)at : RANK_NONE, &try, true);
		if (try.placed > most) {
			most = try.placed;
			*ret_at = at;
		}
	}
	return most;
}

static bool must_be_one_model(const struct roles_search *s)
{
	return s->gpus && s->classes && models_are_one(&s->all) && models_matter(&s->all);
}

/* The most tasks that find a place with GPUs of one model. */
static uint32_t one_model_most(struct roles_search *s)
{
	struct model_turn turn = { .begun = false };
	uint32_t most = 0;

	while (model_turn_next(&s->all, &turn)) {
		struct roles_try try;

		s->model = turn.model;
		s->classes = search_of_model(&s->all, turn.model).classes;
		(void)roles_place(s, 0, s->request->domain, s->request->rank, &try, true);
		most = try.placed > most ? try.placed : most;
	}
	s->model = s->request->model;
	s->classes = s->all.classes;
	return most;
}

/* Too few GPUs for all; what the first role lacks beside those before it; or too narrow a level. */
static void roles_verdict(struct roles_search *s, struct verdict *ret)
{
	const struct shape *shape = s->request->shape;
	int64_t free = s->request->rank == RANK_NONE
			       ? space_free_gpus(s->space, s->request->domain, s->classes)
			       : bits_count(place_node_free(
					 space_at(s->space, (uint32_t)s->request->rank)));
	struct roles_try try;
	uint32_t at, most;

	if (s->gpus && !s->classes) {
		(void)class_verdict(s->space, shape, ret);
		if (ret->code == REASON_NONE) /* there are some, and all are closed */
			verdict_set(ret, REASON_CAPACITY, 0, 0, 0, s->gpus);
		return;
	}
	if (free < s->gpus) {
		verdict_set(ret, REASON_CAPACITY, 0, 0, free, s->gpus);
		return;
	}
	if (!roles_place(s, 0, s->request->domain, s->request->rank, &try, true)) {
		*ret = try.why;
		return;
	}
	most = tasks_together(s, shape->require == LEVEL_NODE, &at);
	if (most == s->request->tasks && must_be_one_model(s))
		verdict_set(ret, REASON_FRAGMENTATION, PLACE_ONE_MODEL, 0, one_model_most(s),
			    s->request->tasks);
	else
		verdict_set(ret, REASON_TOPOLOGY, shape->require, at, most, s->request->tasks);
}

/* All tasks have one role: an ordinary gang. */
static int one_role(const struct roles_search *s, struct arena *arena, struct placement *ret,
		    struct verdict *ret_why)
{
	uint32_t role = s->order[0][0];
	struct place_request request = role_request(s, role, s->request->domain, s->request->rank);
	struct shape wish = s->wish[role];
	int rc;

	wish.require = s->request->shape->require;
	request.shape = &wish;
	rc = place_anywhere(s->space, &request, arena, ret, ret_why);
	if (rc == 0 && ret)
		ret->which = s->request->which;
	if (rc && ret_why)
		ret_why->role = (uint8_t)(role + 1);
	return rc;
}

static bool place_best(struct roles_search *s, struct roles_best *best)
{
	const struct shape *shape = s->request->shape;
	bool node = shape->require == LEVEL_NODE || s->request->rank != RANK_NONE;

	*best = (struct roles_best){ .found = false };
	if ((node || !shape->spread) && one_node(s, best))
		return true;
	return !node && levels(s, best);
}

static bool best_before(const struct roles_best *a, const struct roles_best *b)
{
	if (!b->found || a->level != b->level)
		return !b->found || a->level > b->level;
	if (a->step != b->step)
		return a->step > b->step;
	return a->hosts != b->hosts ? a->hosts < b->hosts : a->free < b->free;
}

/* All GPUs of one model: the cheapest that has room; of models that cost the same the best place. */
static bool place_best_model(struct roles_search *s, struct roles_best *best)
{
	struct model_turn turn = { .begun = false };

	*best = (struct roles_best){ .found = false };
	while (model_turn_next(&s->all, &turn) && !(best->found && turn.dearer)) {
		struct roles_best here;

		s->model = turn.model;
		s->classes = search_of_model(&s->all, turn.model).classes;
		if (place_best(s, &here) && best_before(&here, best))
			*best = here;
	}
	s->model = s->request->model;
	s->classes = s->all.classes;
	return best->found;
}

static int roles_search(struct roles_search *s, struct arena *arena, struct placement *ret,
			struct verdict *ret_why)
{
	struct roles_best best;
	struct roles_try try;

	if (!(must_be_one_model(s) ? place_best_model(s, &best) : place_best(s, &best))) {
		if (ret_why)
			roles_verdict(s, ret_why);
		return PLACE_NO;
	}
	if (!ret)
		return 0;
	s->model = best.model;
	s->classes = best.classes;
	CHECK(roles_place(s, best.order, best.node ? s->request->domain : best.at,
			  best.node ? (int32_t)best.at : RANK_NONE, &try, false));
	placement_join(s, &try, arena, ret);
	ret->domain =
		best.node ? space_at(s->space, best.at)->domain[s->space->level_count] : best.at;
	ret->level = (uint8_t)best.level;
	return 0;
}

int roles_find(struct space *space, const struct place_request *request, struct arena *arena,
	       struct placement *ret, struct verdict *ret_why)
{
	struct roles_search s;
	int rc;

	roles_begin(&s, space, request);
	if (s.used == 1)
		return one_role(&s, arena, ret, ret_why);
	arena_init(&s.scratch, SCRATCH_BYTES);
	rc = roles_search(&s, arena, ret, ret_why);
	arena_deinit(&s.scratch);
	return rc;
}

/* More tasks never fit better, so it is looked for by halves. */
uint32_t roles_width(struct space *space, const struct place_request *request)
{
	struct place_request tried = *request;
	uint32_t first = 0, end = request->tasks;

	while (first < end) {
		tried.tasks = end - (end - first) / 2;
		if (roles_find(space, &tried, NULL, NULL, NULL) == 0)
			first = tried.tasks;
		else
			end = tried.tasks - 1;
	}
	return first;
}
